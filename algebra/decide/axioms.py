"""The axioms, which are assumed and not derived: each named, sourced, and stated once.

The statements are data: `axioms.json`, which `otimes axioms` prints and `proofs/replay.py` checks
proofs by. An axiom is an equation for all matrices of matching shapes. A *reading* is built into
the normal form (`reading.opaque_functions`), which is then equal for both sides; the others are
relations, which `decide` adds to the hypotheses for every function in a claim. An axiom with
premises is used only if they are proved. Three axioms are of linear algebra: the definition of an
inverse, and two that need finite dimension or real numbers (`entailment.consequences`). Each is
tested numerically.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice, permutations
from pathlib import Path
from typing import Any

import sympy
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalOf

from otimes.algebra.decide.signs import SignsIn
from otimes.algebra.language.latex import latex
from otimes.algebra.language.linear import OneHot, as_product, matadd, matmul
from otimes.algebra.language.nonlinear import (
    RSQRT,
    Activation,
    CausalMask,
    LayerNorm,
    RMSNorm,
    RowSoftmax,
    definition,
)
from otimes.algebra.language.positions import KINDS, OneHotLast
from otimes.algebra.language.sizes import same_size
from otimes.algebra.language.trees import rebuilt

Equation = tuple[Any, Any]
Proves = Callable[[Any, Any], bool]
Values = Callable[[Any], Iterator[tuple[int, dict[str, Any]]]]


@dataclass(frozen=True, slots=True)
class Instance:
    """A form of an axiom for values of its symbols: an equation, and its premises.

    `signs` are expressions that must be positive, nonnegative or nonzero.
    """

    axiom: str
    form: int
    values: dict[str, Any]
    lhs: Any
    rhs: Any
    premises: tuple[Equation, ...]
    signs: tuple[tuple[Any, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Axiom:
    """An axiom with its source and its general statement.

    `values_of` yields (form, values of its symbols) for a function that occurs in a claim, or for a
    pair of functions where `of_pairs`; a reading, which is built into the normal form, has none.
    """

    name: str
    says: str
    source: str
    example: Instance
    values_of: Values | None = None
    of_pairs: bool = False

    def of(self, subject: Any) -> Iterator[Instance]:
        """Yield the instances of the axiom for a function, or for a pair of functions."""
        if self.values_of is not None and isinstance(subject, tuple) == self.of_pairs:
            for form, values in self.values_of(subject):
                yield instance(self.name, form, values)

    def to_json(self) -> dict[str, Any]:
        """Return the axiom as plain data: name, description, source, and statement in TeX."""
        said = self.example
        signs = [f"{latex(e)} {_COMPARED[sign]}" for e, sign in said.signs]
        return {
            "name": self.name,
            "says": self.says,
            "source": self.source,
            "tex": f"{latex(said.lhs)} = {latex(said.rhs)}",
            "premises": [f"{latex(lhs)} = {latex(rhs)}" for lhs, rhs in said.premises] + signs,
        }


_COMPARED = {"positive": "> 0", "nonnegative": r"\ge 0", "nonzero": r"\ne 0"}  # entry by entry

# -- the statements, from trees to SymPy -----------------------------------------------------------

_MADE: dict[str, Callable[..., Any]] = {
    "MatMul": matmul,
    "MatAdd": matadd,
    "MatPow": lambda e, k: sympy.Inverse(e) if k == -1 else sympy.Identity(e.shape[0]),
    "Mul": sympy.Mul,
    "Rational": sympy.Rational,
    "Pow": sympy.Pow,
    "HadamardProduct": lambda *e: sympy.HadamardProduct(*e, evaluate=False),
    "BlockMatrix": lambda *lines: sympy.BlockMatrix([list(line) for line in lines]),
    "Transpose": sympy.Transpose,
    "HadamardPower": sympy.HadamardPower,
    "DiagMatrix": DiagMatrix,
    "DiagonalOf": DiagonalOf,
    "Identity": sympy.Identity,
    "OneMatrix": sympy.OneMatrix,
    "ZeroMatrix": sympy.ZeroMatrix,
    "OneHot": OneHot,
    "CausalMask": CausalMask,
    **{kind.__name__: kind for kind in KINDS},
    "Add": sympy.Add,
    "RowSoftmax": RowSoftmax,
    "Activation": Activation,
    "RMSNorm": RMSNorm,
    "LayerNorm": LayerNorm,
}


def _expression(tree: Any, symbols: dict[str, Any]) -> Any:
    """Return a schema of `axioms.json` as an expression in these symbols."""
    if isinstance(tree, int | str):
        return sympy.sympify(tree) if isinstance(tree, int) else tree
    kind, *args = tree
    if kind == "?":
        return symbols[args[0]]
    if isinstance(kind, list):  # a row of blocks
        return [_expression(part, symbols) for part in tree]
    return _MADE[kind](*[_expression(arg, symbols) for arg in args])


def instance(name: str, form: int, values: dict[str, Any]) -> Instance:
    """Return a form of an axiom for these values of its symbols."""
    schema = STATEMENTS[name]["forms"][form]
    symbols = {
        length: size
        for matrix, shape in schema["matrices"].items()
        for length, size in zip(shape, values[matrix].shape, strict=True)
    } | values
    lhs, rhs = (_expression(schema[side], symbols) for side in ("lhs", "rhs"))
    premises = [
        (_expression(x, symbols), _expression(y, symbols)) for x, y in schema.get("premises", ())
    ]
    signs = [(symbols[symbol], sign) for symbol, sign in schema.get("signs", {}).items()]
    return Instance(name, form, values, lhs, rhs, tuple(premises), tuple(signs))


def _example(name: str) -> Instance:
    """Return the general statement of an axiom."""
    form = STATEMENTS[name]["forms"][0]
    lengths = [n for shape in form["matrices"].values() for n in shape if isinstance(n, str)]
    symbols: dict[str, Any] = {
        n: sympy.Symbol(n, integer=True, positive=True) for n in (*form.get("sizes", ()), *lengths)
    }
    of = {"g": form.get("functions", ["g"])[0], "i": sympy.Symbol("i", integer=True)}
    of |= {n: sympy.Symbol("epsilon", positive=True) for n in ("e", "eps")}
    of["c"] = sympy.Symbol("c", positive=True)
    symbols |= {n: of[n] for n in form.get("others", ())}
    for matrix, shape in form["matrices"].items():
        symbols[matrix] = sympy.MatrixSymbol(matrix, *[symbols.get(n, n) for n in shape])
    return instance(name, 0, symbols)


def _by_its_function(name: str) -> Values:
    """Return the values for a subject that is written f(X, ...) in the forms of an axiom."""
    forms = [
        (number, function, form.get("functions"))
        for number, form in enumerate(STATEMENTS[name]["forms"])
        for function in islice(_functions_of_symbols([form["lhs"], form["rhs"]]), 1)
    ]

    def values_of(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
        args = _arguments(e)
        for number, (kind, *parameters), functions in forms:
            if kind == type(e).__name__ and len(args) == len(parameters):
                pairs = list(zip(parameters, args, strict=True))
                fixed = all(p == a for p, a in pairs if isinstance(p, str))
                if fixed and (functions is None or args[0] in functions):
                    yield number, {p[1]: a for p, a in pairs if p[0] == "?"}

    return values_of


def _functions_of_symbols(tree: Any) -> Iterator[Any]:
    """Yield the functions f(X, ...) of symbols alone in a schema."""
    if isinstance(tree, list):
        if tree[0] in FUNCTIONS and all(
            isinstance(p, str) or p[:1] == ["?"] for p in tree[1:] if not isinstance(p, int)
        ):
            yield tree
        for part in tree:
            yield from _functions_of_symbols(part)


def _stated() -> dict[str, Axiom]:
    found = {}
    for name, one in STATEMENTS.items():
        values_of = _by_its_function(name) if name in DATA["axioms"] else None
        found[name] = Axiom(name, one["says"], one["source"], _example(name), values_of)
    return found


DATA = json.loads(Path(__file__).parents[1].joinpath("axioms.json").read_text(encoding="utf-8"))
STATEMENTS = DATA["axioms"] | DATA["readings"]
CONSTANTS: tuple[type, ...] = (CausalMask, *KINDS)
FUNCTIONS = ("RowSoftmax", "Activation", "RMSNorm", "LayerNorm", *[k.__name__ for k in CONSTANTS])
AXIOMS = _stated()
MAX_FACTORS, MAX_PRODUCTS = 4, 4  # of products of causal matrices
MAX_FUNCTIONS = 60  # in one claim, including those from axioms


# -- which instances -------------------------------------------------------------------------------


def _subjects(name: str, of_pairs: bool = False) -> Callable[[Values], None]:
    """Declare the (form, values) of an axiom for a function, where its form alone does not say."""

    def declare(values_of: Values) -> None:
        AXIOMS[name] = replace(AXIOMS[name], values_of=values_of, of_pairs=of_pairs)

    return declare


@_subjects("softmax_exp", of_pairs=True)
def _(pair: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    for weights, e in permutations(pair):
        if isinstance(weights, RowSoftmax) and _is(e, "exp") and _same_shape(weights, e):
            mask = weights.args[1:]
            yield len(mask), {"S": e.argument, **dict(zip("M", mask, strict=False))}


@_subjects("causal_softmax_first")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if isinstance(e, RowSoftmax) and isinstance(e.mask, CausalMask):
        yield 0, {"S": e.args[0]}


@_subjects("causal_softmax_last")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if isinstance(e, RowSoftmax) and isinstance(e.mask, CausalMask):
        yield 0, {"S": e.args[0]}


@_subjects("softmax_alone")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if isinstance(e, RowSoftmax) and isinstance(e.mask, sympy.Identity):
        yield 0, {"S": e.args[0]}


@_subjects("exp_sum")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if _is(e, "exp") and (parts := _summands(e.argument)):
        yield 0, dict(zip("XY", parts, strict=True))


@_subjects("root_exp")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    for form, root in enumerate(("sqrt", RSQRT)):
        if _is(e, root) and _is(e.argument, "exp"):
            yield form, {"X": e.argument.argument}


@_subjects("exp_half_log")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if _is(e, "exp") and isinstance(e.argument, sympy.MatMul) and len(e.argument.args) == 2:
        number, inner = e.argument.args
        if number in (sympy.S.Half, -sympy.S.Half) and _is(inner, "log"):
            yield int(bool(number < 0)), {"X": inner.argument}


@_subjects("root_square")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if _is(e, "sqrt") and (root := entrywise_root(e.argument)):
        yield 0, {"X": root}


@_subjects("relu_scale_rows")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    factors = _factors(e) if _is(e, "relu") else ()
    for form, scale in enumerate(factors[:1] + factors[-1:]):
        if isinstance(scale, DiagMatrix) and scale.args[0].shape[1] == 1:
            rest = factors[:-1] if form else factors[1:]
            yield form, {"S": as_product(rest), "w": scale.args[0]}


@_subjects("norm_scale_rows")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    factors = _factors(e) if isinstance(e, RMSNorm | LayerNorm) and e.eps == 0 else ()
    if factors and isinstance(factors[0], DiagMatrix) and factors[0].args[0].shape[1] == 1:
        scaled = {"S": as_product(factors[1:]), "w": factors[0].args[0]}
        yield int(isinstance(e, LayerNorm)), scaled


@_subjects("tanh_exp", of_pairs=True)
def _(pair: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    for e, other in permutations(pair):
        if _is(e, "tanh") and _is(other, "exp") and _same_shape(e, other):
            yield 0, {"X": e.argument}
            yield 1, {"X": e.argument}


@_subjects("softplus_reflected")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    inner = e.argument if _is(e, "log") else None
    if isinstance(inner, sympy.MatAdd) and len(inner.args) == 2:
        for one, other in permutations(inner.args):
            if type(one) is sympy.OneMatrix and _is(other, "exp") and not _is_minus(other.argument):
                yield 0, {"X": other.argument}


def _is_minus(e: Any) -> bool:
    """Return whether an expression is a negative number times another."""
    return isinstance(e, sympy.MatMul) and e.args[0].is_Rational and e.args[0] < 0


@_subjects("softmax_two")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    scores = e.args[0] if isinstance(e, RowSoftmax) and e.mask is None else None
    if isinstance(scores, sympy.BlockMatrix) and scores.blockshape == (1, 2):
        pair = dict(zip("xy", scores.blocks, strict=True))
        if all(part.shape[1] == 1 for part in pair.values()):
            yield 0, pair


@_subjects("sigmoid_tanh")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if _is(e, "tanh"):
        yield 0, {"X": e.argument}
    elif _is(e, "sigmoid") and isinstance(e.argument, sympy.MatMul) and e.argument.args[0] == 2:
        yield 0, {"X": as_product(e.argument.args[1:])}


def _entries(e: Any) -> tuple[Any, Any] | None:
    """Return X and Y if an expression is X ∘ Y, also as a scaling, or as a product u vᵀ."""
    if isinstance(e, sympy.HadamardProduct):
        first, *rest = e.args
        return first, rest[0] if len(rest) == 1 else sympy.HadamardProduct(*rest, evaluate=False)
    if isinstance(e, sympy.HadamardPower) and e.args[1].is_Integer and e.args[1] > 1:
        base, exponent = e.args
        return base, sympy.HadamardPower(base, exponent - 1) if exponent > 2 else base
    if not isinstance(e, sympy.MatMul):
        return None
    (rows, cols), one = e.shape, sympy.OneMatrix
    numbers = [part for part in e.args if not part.is_Matrix]
    matrices = [part for part in e.args if part.is_Matrix]
    first, *rest = matrices
    if numbers:
        if type(first) is one and not rest:
            return None
        return matmul(*numbers, one(rows, cols)), as_product(matrices)
    if isinstance(first, DiagMatrix):
        return matmul(_column(first.args[0]), one(1, cols)), as_product(rest)
    if isinstance(rest[-1], DiagMatrix):
        row = sympy.Transpose(_column(rest[-1].args[0]))
        return as_product(matrices[:-1]), matmul(one(rows, 1), row)
    if first.shape[1] == 1 and len(rest) == 1 and not {type(first), type(rest[0])} & {one}:
        return matmul(first, one(1, cols)), matmul(one(rows, 1), rest[0])
    return None


def _column(e: Any) -> Any:
    return e if e.shape[1] == 1 else sympy.Transpose(e)


for _function in ("reciprocal", "sqrt", "log"):

    @_subjects(f"{_function}_product")
    def _(e: Any, name: str = _function) -> Iterator[tuple[int, dict[str, Any]]]:
        if _is(e, name) and (factors := _entries(e.argument)):
            yield 0, dict(zip("XY", factors, strict=True))


_NESTED = {
    "reciprocal_twice": ("reciprocal", ["reciprocal"]),
    "reciprocal_exp": ("reciprocal", ["exp"]),
    "reciprocal_sqrt": ("reciprocal", ["sqrt"]),
    "log_exp": ("log", ["exp"]),
    "log_reciprocal": ("log", ["reciprocal"]),
    "log_root": ("log", ["sqrt", "rsqrt"]),
}
"""The axioms about a function of a function: the outer one, and the inner one of each form."""

for _axiom in _NESTED:

    @_subjects(_axiom)
    def _(e: Any, name: str = _axiom) -> Iterator[tuple[int, dict[str, Any]]]:
        outer, inner = _NESTED[name]
        if _is(e, outer) and isinstance(e.argument, Activation) and e.argument.name in inner:
            yield inner.index(e.argument.name), {"X": e.argument.argument}


@_subjects("log_sigmoid")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    inner: Any = e.argument if _is(e, "log") else None
    if _is(inner, "sigmoid"):
        yield 0, {"X": inner.argument}
        argument = inner.argument
        number, *rest = argument.args if isinstance(argument, sympy.MatMul) else [sympy.S.Zero]
        if number.is_Rational and number < 0:
            yield 1, {"X": _times(-number, as_product(rest))}
    elif isinstance(inner, sympy.MatAdd) and len(inner.args) == 2:
        for one, other in permutations(inner.args):
            minus = type(one) is sympy.OneMatrix and isinstance(other, sympy.MatMul)
            if minus and other.args[0] == -1 and _is(as_product(other.args[1:]), "sigmoid"):
                yield 2, {"X": as_product(other.args[1:]).argument}


@_subjects("rsqrt_sqrt", of_pairs=True)
def _(pair: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    for e, other in permutations(pair):
        if _is(e, RSQRT) and _is(other, "sqrt") and e.argument == other.argument:
            yield 0, {"X": e.argument}


@_subjects("sigmoid_exp", of_pairs=True)
def _(pair: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    for e, other in permutations(pair):
        if _is(e, "sigmoid") and _is(other, "exp") and _same_shape(e, other):
            yield 0, {"X": e.argument}
            yield 1, {"X": e.argument}


@_subjects("log_softmax")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if _is(e, "log") and isinstance(e.argument, RowSoftmax) and e.argument.mask is None:
        yield 0, {"S": e.argument.args[0]}
    elif (scores := _summed_exp(e)) is not None:
        yield 0, {"S": scores}


@_subjects("logsumexp_shift")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    scores = _summed_exp(e)
    terms = [] if scores is None else _terms(scores)
    if len(terms) > 1:
        for k, term in enumerate(terms):
            if (shift := _along_rows(term)) is not None:
                rest = terms[:k] + terms[k + 1 :]
                yield 0, {"S": rest[0] if len(rest) == 1 else matadd(*rest), "v": shift}


def _summed_exp(e: Any) -> Any:
    """Return S if an expression is log(exp(S) 1), else None."""
    product = isinstance(e, Activation) and isinstance(e.argument, sympy.MatMul)
    factors = list(e.argument.args) if product and _is(e, "log") else []
    if len(factors) == 2 and _is(factors[0], "exp") and isinstance(factors[1], sympy.OneMatrix):
        return factors[0].argument
    return None


def _along_rows(e: Any) -> Any:
    """Return v if an expression is v 1ᵀ, the same number along each row, else None."""
    *before, last = e.args if isinstance(e, sympy.MatMul) else [e]
    if not isinstance(last, sympy.OneMatrix):
        return None
    if last.shape[0] == 1 and any(part.is_Matrix for part in before):
        return as_product(before)
    return as_product([*before, sympy.OneMatrix(last.shape[0], 1)])


@_subjects("angle_sum")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if isinstance(e, Activation) and e.name in ("cos", "sin") and (parts := _summands(e.argument)):
        yield int(e.name == "sin"), dict(zip("XY", parts, strict=True))


def _summands(e: Any) -> tuple[Any, Any] | None:
    """Return the first term of a sum and the rest, also of (a + b) θ, of W (θ + φ)/2 and of 2 θ."""
    terms = _terms(e)
    if len(terms) > 1:
        return terms[0], terms[1] if len(terms) == 2 else matadd(*terms[1:])
    if not isinstance(e, sympy.MatMul):
        return None
    numbers = [part for part in e.args if not part.is_Matrix]
    rest = as_product([part for part in e.args if part.is_Matrix])
    factor, other = sympy.Mul(*numbers).as_coeff_Mul()
    if abs(factor.p) > 1:
        first = sympy.Rational(sympy.sign(factor), factor.q)
        return _times(first * other, rest), _times((factor - first) * other, rest)
    return None


def _terms(e: Any) -> list[Any]:
    """Return the terms of a sum, of a product with one sum in it, or of a multiple by a sum."""
    if isinstance(e, sympy.MatAdd):
        return list(e.args)
    if not isinstance(e, sympy.MatMul):
        return [e]
    matrices = [part for part in e.args if part.is_Matrix]
    number = sympy.expand(sympy.Mul(*[part for part in e.args if not part.is_Matrix]))
    if isinstance(number, sympy.Add):
        return [_times(one, as_product(matrices)) for one in number.args]
    for k, part in enumerate(matrices):
        if isinstance(part, sympy.MatAdd):
            before, after = matrices[:k], matrices[k + 1 :]
            terms = [as_product([*before, *_of(term), *after]) for term in part.args]
            return [_times(number, term) for term in terms]
    return [e]


def _of(e: Any) -> Sequence[Any]:
    return e.args if isinstance(e, sympy.MatMul) else [e]


def _times(number: Any, e: Any) -> Any:
    return e if number == 1 else matmul(number, *_of(e))


@_subjects("relu_idempotent")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if _is(e, "relu") and _is(e.argument, "relu"):
        yield 0, {"X": e.argument.argument}


@_subjects("relu_square")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if _is(e, "relu") and (root := entrywise_root(e.argument)):
        yield 0, {"X": root}


@_subjects("relu_scale_columns")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    factors = _factors(e)
    if factors and _is(e, "relu") and _is_squares(factors[-1]):
        w = factors[-1].args[0].args[0]
        yield int(w.shape[1] != 1), {"S": as_product(factors[:-1]), "w": w}


@_subjects("function_choose_rows")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if factors := _factors(e):
        values = {"P": factors[0], "X": as_product(factors[1:])}
        form = [RowSoftmax, Activation, RMSNorm, LayerNorm].index(type(e))
        yield form, values | dict(zip("?gee"[form], _parameters(e), strict=False))


@_subjects("activation_choose_columns")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if isinstance(e, Activation) and (factors := _factors(e)):
        yield 0, {"g": e.name, "S": as_product(factors[:-1]), "Q": factors[-1]}


@_subjects("softmax_permute_columns")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    factors = _factors(e)
    if factors and isinstance(e, RowSoftmax) and same_size(*factors[-1].shape):
        yield 0, {"S": as_product(factors[:-1]), "Q": factors[-1]}


@_subjects("function_congruence", of_pairs=True)
def _(pair: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    e, f = pair
    mine, theirs = _matrices(e), _matrices(f)
    alike = type(e) is type(f) and _parameters(e) == _parameters(f)
    if mine and alike and len(mine) == len(theirs) and _same_shape(e, f):
        form = len(mine) - 1 or [RowSoftmax, None, Activation, RMSNorm, LayerNorm].index(type(e))
        values = dict([*zip("SM", mine, strict=False), *zip("TN", theirs, strict=False)])
        yield form, values | dict(zip("??gee"[form], _parameters(e), strict=False))


@_subjects("causal_mask_product", of_pairs=True)
def _(pair: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    mask, e = pair
    if isinstance(mask, CausalMask) and isinstance(e, sympy.MatMul):
        factors = _matrices(e)
        square = all(_same_shape(factor, mask) for factor in factors)
        for start, stop in combinations(range(len(factors) + 1 if square else 0), 2):
            for k in range(start + 1, stop):
                yield 0, {"A": as_product(factors[start:k]), "B": as_product(factors[k:stop])}


# -- what a claim needs ----------------------------------------------------------------------------


def instances(
    expressions: Sequence[Any],
    proves: Proves,
    signs: SignsIn | None = None,
    given: Sequence[Equation] = (),
) -> list[Instance]:
    """Return the instances of the axioms for the functions in expressions, with proved premises.

    `proves` decides whether an equation holds. It is called for subexpressions only, so the
    recursion ends if it uses axioms itself. `signs` tells which arguments are positive. Functions
    of an argument that is simpler by a hypothesis `given` are taken into account.
    """
    signs = signs or SignsIn(expressions)
    nodes = list(dict.fromkeys(node for e in expressions for node in functions_in(e)))
    nodes += [e for e in map(_without_number, nodes) if e is not None and e not in nodes]
    stated = set(nodes)
    related = {
        "softmax_quotient": any(_is(e, "reciprocal") for e in nodes),
        "gelu_erf": any(_is(e, "erf") for e in nodes),
        "causal_softmax_last": any(isinstance(e, OneHotLast) for e in nodes),
    }
    found = []
    for node in nodes:  # the list grows: a function after a selection of rows is added
        for instance in _said_of(node, proves, signs):
            if instance.axiom == "rsqrt_square" and node not in stated:
                continue  # its argument may be zero, unless the claim takes its root
            if not related.get(instance.axiom, True):
                continue  # it is about a function that the claim does not have
            found.append(instance)
            if len(nodes) < MAX_FUNCTIONS:
                nodes += [f for f in dict.fromkeys(functions_in(instance.rhs)) if f not in nodes]
        if len(nodes) < MAX_FUNCTIONS:
            simpler = dict.fromkeys(_with_simpler_arguments(node, given))
            nodes += [f for f in simpler if f not in nodes]
    roots = [e for e in nodes if isinstance(e, Activation) and e.name == RSQRT]
    divides = any(_is(e, "reciprocal") or _is(e, "log") for e in nodes)
    weights = [e for e in nodes if divides and isinstance(e, RowSoftmax)]
    pairs = [
        *combinations(nodes, 2),
        *[(e, exp) for e in weights if (exp := Activation("exp", e.args[0])) not in stated],
        *[(e, Activation(RSQRT, sympy.OneMatrix(*e.shape))) for e in roots],
        *_weights_in_blocks(nodes),
        *_products_under_masks(expressions),
    ]
    return found + [instance for pair in pairs for instance in _said_of(pair, proves, signs)]


def _with_simpler_arguments(e: Any, given: Sequence[Equation]) -> Iterator[Any]:
    """Yield a function of X for one of exp(log(X)), and what hypotheses make of its arguments.

    Whether these are equal is a premise of `function_congruence`.
    """
    if isinstance(e, CONSTANTS):
        return
    inner = [f for part in _matrices(e) for f in part.atoms(Activation)]
    for f in inner:
        if isinstance(f.argument, Activation) and (f.name, f.argument.name) in UNDONE:
            yield e.xreplace({f: f.argument.argument})
    for pair in given:
        less, more = sorted(pair, key=lambda side: side.count(sympy.Basic))
        if less.is_Matrix and more != less and any(part.has(more) for part in _matrices(e)):
            yield rebuilt(e, [arg.xreplace({more: less}) for arg in e.args])


UNDONE = (("exp", "log"), ("log", "exp"), ("reciprocal", "reciprocal"))


def _without_number(e: Any) -> Any:
    """Return relu(X) for relu(c X), as which it is read, and likewise other functions, or None."""
    if not isinstance(e, Activation) or e.name not in DATA["degrees"]:
        return None
    argument = e.argument
    if not isinstance(argument, sympy.MatMul) or argument.args[0].is_Matrix:
        return None
    return Activation(e.name, as_product([part for part in argument.args if part.is_Matrix]))


def _weights_in_blocks(nodes: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield pairs (softmax of block scores, exp of these), if exp of one block occurs."""
    exps = [e.argument for e in nodes if _is(e, "exp")]
    for e in nodes:
        scores = e.args[0] if isinstance(e, RowSoftmax) else None
        if isinstance(scores, sympy.BlockMatrix) and scores not in exps:
            yield from [(e, Activation("exp", scores))] if {*scores.blocks} & {*exps} else []


def _products_under_masks(expressions: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the causal masks of elementwise products, each with products of few matrices.

    Under a transposed mask the products are transposed.
    """
    parts = list(dict.fromkeys(e for one in expressions for e in sympy.preorder_traversal(one)))
    known = dict.fromkeys(m for e in parts if isinstance(e, sympy.HadamardProduct) for m in e.args)
    products = [run for e in parts if 1 < len(run := _run(e)) <= MAX_FACTORS] if known else []
    for mask in known:
        turned = isinstance(mask, sympy.Transpose)
        whole = mask.args[0] if turned else mask
        for run in products[:MAX_PRODUCTS] if isinstance(whole, CausalMask) else ():
            yield whole, matmul(*[sympy.Transpose(e) for e in run[::-1]] if turned else run)


def _run(e: Any) -> Sequence[Any]:
    """Return the factors of a product or of a power of a matrix."""
    if isinstance(e, sympy.MatPow) and e.exp.is_Integer and 1 < e.exp <= MAX_FACTORS:
        return [e.base] * int(e.exp)
    return _matrices(e) if isinstance(e, sympy.MatMul) else ()


def _said_of(subject: Any, proves: Proves, signs: SignsIn) -> Iterator[Instance]:
    for axiom in AXIOMS.values():
        for instance in axiom.of(subject):
            if all(signs.has(*each) for each in instance.signs) and all(
                proves(*premise) for premise in instance.premises
            ):
                yield instance


def functions_in(e: Any) -> Iterator[Any]:
    """Yield the nonlinear functions in an expression, also those in the definition of a norm."""
    for node in sympy.preorder_traversal(e):
        if isinstance(node, (RowSoftmax, Activation, *CONSTANTS)):
            yield node
        elif isinstance(node, RMSNorm | LayerNorm):
            yield node
            yield from functions_in(definition(node))


def _is(e: Any, name: str) -> bool:
    return isinstance(e, Activation) and e.name == name


def _same_shape(e: Any, f: Any) -> bool:
    return all(map(same_size, e.shape, f.shape))


def _factors(e: Any) -> tuple[Any, ...]:
    """Return the factors of the argument of an unmasked function; () if it is no product."""
    if isinstance(e, (tuple, *CONSTANTS)) or (isinstance(e, RowSoftmax) and e.mask is not None):
        return ()
    argument = _matrices(e)[0]
    is_product = isinstance(argument, sympy.MatMul) and all(a.is_Matrix for a in argument.args)
    return tuple(argument.args) if is_product and len(argument.args) > 1 else ()


def _is_squares(e: Any) -> bool:
    """Return whether a factor has the form diag(w ∘ w)."""
    return (
        isinstance(e, DiagMatrix)
        and isinstance(e.args[0], sympy.HadamardPower)
        and e.args[0].args[1] == 2
    )


def entrywise_root(e: Any) -> Any:
    """Return X if an expression has the form of an entrywise square of X, else None."""
    factors: Counter[Any] = Counter()
    for factor in e.args if isinstance(e, sympy.HadamardProduct) else [e]:
        is_power = isinstance(factor, sympy.HadamardPower) and factor.args[1].is_Integer
        base, exponent = factor.args if is_power else (factor, 1)
        factors[base] += int(exponent)
    roots = [base for base, exponent in factors.items() for _ in range(exponent // 2)]
    if not roots or any(exponent % 2 for exponent in factors.values()):
        return None
    return roots[0] if len(roots) == 1 else sympy.HadamardProduct(*roots, evaluate=False)


def _arguments(e: Any) -> tuple[Any, ...]:
    return (e.name, e.argument) if isinstance(e, Activation) else tuple(e.args)


def _matrices(e: Any) -> tuple[Any, ...]:
    return tuple(a for a in e.args if getattr(a, "is_Matrix", False))


def _parameters(e: Any) -> tuple[Any, ...]:
    """Return the parameters of a function besides matrices: its name, or the eps of a norm."""
    return tuple(a for a in _arguments(e) if not getattr(a, "is_Matrix", False))
