"""What is taken as true and not derived: each axiom named, sourced, and stated once.

The statements are data: `axioms.json`, which `otimes axioms` prints and `proofs/replay.py` checks
proofs by. An axiom is an equation in any matrices of fitting shapes. A *reading* is built into the
normal form (`applied`), so that both sides have one form; the others are relations, which `decide`
adds to the hypotheses for every function that occurs in a claim. An axiom with premises is used
where they were proved. Three axioms are about linear algebra itself: what an inverse is, and two
that need finite dimension or real numbers (`entailment.consequences`). Each is tested in numbers.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import sympy
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalOf

from otimes.algebra.language.functions import KNOWN
from otimes.algebra.language.latex import latex
from otimes.algebra.language.linear import OneHot, matadd, matmul
from otimes.algebra.language.nonlinear import (
    RSQRT,
    Activation,
    CausalMask,
    LayerNorm,
    RMSNorm,
    RowSoftmax,
    definition,
)
from otimes.algebra.language.sizes import same_size

Equation = tuple[Any, Any]
Proves = Callable[[Any, Any], bool]
Says = Callable[[Any], Iterator[tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class Instance:
    """An axiom for one subject: an equation, and the premises that it was proved from.

    The subject is a function that occurs, or a pair of them; None for the general statement.
    """

    axiom: str
    lhs: Any
    rhs: Any
    premises: tuple[Equation, ...] = ()
    subject: Any = None


@dataclass(frozen=True, slots=True)
class Axiom:
    """A fact that is taken as true, with its source and its statement in general matrices.

    `says_of` yields (lhs, rhs, premise, …) for a function that occurs in a claim, or for a pair of
    functions where `of_pairs`; a reading, which is built into the normal form, has none.
    """

    name: str
    says: str
    source: str
    example: Instance
    says_of: Says | None = None
    of_pairs: bool = False

    @property
    def built_in(self) -> bool:
        """Whether the axiom is part of the normal form."""
        return self.says_of is None

    def of(self, subject: Any) -> Iterator[Instance]:
        """Yield the instances of the axiom for a subject."""
        if self.says_of is not None and isinstance(subject, tuple) == self.of_pairs:
            for lhs, rhs, *premises in self.says_of(subject):
                yield Instance(self.name, lhs, rhs, tuple(premises), subject)

    def to_json(self) -> dict[str, Any]:
        """Return the axiom as plain data: its name, words, source, and statement in TeX."""
        said = self.example
        return {
            "name": self.name,
            "says": self.says,
            "source": self.source,
            "tex": f"{latex(said.lhs)} = {latex(said.rhs)}",
            "premises": [f"{latex(lhs)} = {latex(rhs)}" for lhs, rhs in said.premises],
        }


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


def _example(name: str, form: dict[str, Any]) -> Instance:
    """Return the general statement of an axiom."""
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
    premises = [
        (_expression(x, symbols), _expression(y, symbols)) for x, y in form.get("premises", ())
    ]
    lhs, rhs = _expression(form["lhs"], symbols), _expression(form["rhs"], symbols)
    return Instance(name, lhs, rhs, tuple(premises))


def _stated() -> dict[str, Axiom]:
    return {
        name: Axiom(name, one["says"], one["source"], _example(name, one["forms"][0]))
        for name, one in (DATA["axioms"] | DATA["readings"]).items()
    }


DATA = json.loads(Path(__file__).parents[1].joinpath("axioms.json").read_text(encoding="utf-8"))
AXIOMS = _stated()
MAX_FUNCTIONS = 60  # in one claim, with those that axioms bring in
GATE = {"silu": sympy.Integer(1), "quick_gelu": sympy.Rational(851, 500)}  # x sigmoid(c x)


def _relation(name: str, of_pairs: bool = False) -> Callable[[Says], None]:
    """Declare what an axiom says of a function that occurs: (lhs, rhs, premise, …)."""

    def declare(says_of: Says) -> None:
        AXIOMS[name] = replace(AXIOMS[name], says_of=says_of, of_pairs=of_pairs)

    return declare


def _ones(rows: Any, cols: Any) -> Any:
    return sympy.OneMatrix(rows, cols)


def _same_shape(e: Any, f: Any) -> bool:
    return all(map(same_size, e.shape, f.shape))


def _square(e: Any) -> Any:
    return sympy.HadamardPower(e, 2)


# -- functions: relations --------------------------------------------------------------------------


@_relation("softmax_sum")
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(e, RowSoftmax):
        rows, cols = e.shape
        yield matmul(e, _ones(cols, 1)), _ones(rows, 1)


@_relation("softmax_mask")
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(e, RowSoftmax) and e.mask is not None:
        zero_or_one = (sympy.HadamardProduct(e.mask, e.mask, evaluate=False), e.mask)
        yield sympy.HadamardProduct(e, e.mask, evaluate=False), e, zero_or_one


@_relation("softmax_exp", of_pairs=True)
def _(pair: Any) -> Iterator[tuple[Any, ...]]:
    for weights, e in permutations(pair):
        is_exp = isinstance(e, Activation) and e.name == "exp"
        if is_exp and isinstance(weights, RowSoftmax) and _same_shape(weights, e):
            shown = e if weights.mask is None else sympy.HadamardProduct(e, weights.mask)
            total = matmul(shown, _ones(e.shape[1], e.shape[1]))
            yield sympy.HadamardProduct(RowSoftmax(e.argument, *weights.args[1:]), total), shown


@_relation("causal_mask_is_mask")
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(e, CausalMask):
        yield sympy.HadamardProduct(e, e, evaluate=False), e


@_relation("causal_mask_diagonal")
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(e, CausalMask):
        yield DiagonalOf(e), _ones(e.shape[0], 1)


@_relation("causal_mask_order")
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(e, CausalMask):
        yield matadd(e, sympy.Transpose(e)), matadd(_ones(*e.shape), sympy.Identity(e.shape[0]))


@_relation("causal_mask_first")
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(e, CausalMask):
        rows = e.shape[0]
        yield matmul(e, OneHot(sympy.Integer(0), rows)), _ones(rows, 1)


@_relation("activation_transpose")
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(e, Activation):  # which the reading knows, but for a symmetric argument
        yield Activation(e.name, sympy.Transpose(e.argument)), sympy.Transpose(e)


@_relation("activation_reflected")
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if _reflection(e) == "identity":
        turned = Activation(e.name, matmul(-1, e.argument))
        yield matadd(e, matmul(-1, turned)), e.argument


@_relation("activation_odd")
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if _reflection(e) == "odd":
        yield Activation(e.name, matmul(-1, e.argument)), matmul(-1, e)


@_relation("sigmoid_reflected")
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if _reflection(e) == "one":
        yield matadd(e, Activation(e.name, matmul(-1, e.argument))), _ones(*e.shape)


@_relation("sigmoid_gate")
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(e, Activation) and e.name in GATE:
        gate = Activation("sigmoid", matmul(GATE[e.name], e.argument))
        yield e, sympy.HadamardProduct(e.argument, gate, evaluate=False)


@_relation("sigmoid_tanh")
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(e, Activation) and e.name == "tanh":
        gate = Activation("sigmoid", matmul(2, e.argument))
        yield matmul(2, gate), matadd(_ones(*e.shape), e)


@_relation("exp_sum")
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(e, Activation) and e.name == "exp" and isinstance(e.argument, sympy.MatAdd):
        powers = [Activation("exp", term) for term in first_and_rest(e.argument)]
        yield e, sympy.HadamardProduct(*powers, evaluate=False)


@_relation("exp_reflected")
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if _reflection(e) == "inverse":
        turned = Activation(e.name, matmul(-1, e.argument))
        yield sympy.HadamardProduct(e, turned, evaluate=False), _ones(*e.shape)


@_relation("relu_idempotent")
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(e, Activation) and e.name == "relu":
        inner = e.argument
        if isinstance(inner, Activation) and inner.name == "relu":
            yield e, inner


@_relation("relu_square")
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(e, Activation) and e.name == "relu" and (root := entrywise_root(e.argument)):
        yield e, _square(root)


@_relation("relu_parts")
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(e, Activation) and e.name == "relu":
        turned = Activation("relu", matmul(-1, e.argument))
        yield sympy.HadamardProduct(e, turned, evaluate=False), sympy.ZeroMatrix(*e.shape)


@_relation("relu_scale_columns")
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    factors = _factors(e)
    if factors and isinstance(e, Activation) and e.name == "relu" and _is_squares(factors[-1]):
        yield e, matmul(Activation("relu", _product(factors[:-1])), factors[-1])


@_relation("rsqrt_square")
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(e, Activation) and e.name == RSQRT:
        yield sympy.HadamardProduct(_square(e), e.argument, evaluate=False), _ones(*e.shape)


@_relation("function_choose_rows")
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    factors = _factors(e)
    if factors:
        chosen, rest = factors[0], _product(factors[1:])
        yield e, matmul(chosen, _applied_to(e, rest)), *_chooses(chosen)


@_relation("activation_choose_columns")
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    factors = _factors(e)
    if factors and isinstance(e, Activation):
        chosen, rest = factors[-1], _product(factors[:-1])
        yield e, matmul(_applied_to(e, rest), chosen), *_chooses(sympy.Transpose(chosen))


@_relation("softmax_permute_columns")
def _(e: Any) -> Iterator[tuple[Any, ...]]:
    factors = _factors(e)
    if factors and isinstance(e, RowSoftmax) and same_size(*factors[-1].shape):
        chosen, rest = factors[-1], _product(factors[:-1])
        premises = (*_chooses(chosen), _chooses(sympy.Transpose(chosen))[1])
        yield e, matmul(_applied_to(e, rest), chosen), *premises


@_relation("function_congruence", of_pairs=True)
def _(pair: Any) -> Iterator[tuple[Any, ...]]:
    e, f = pair
    mine, theirs = _matrices(e), _matrices(f)
    alike = type(e) is type(f) and _parameters(e) == _parameters(f)
    if alike and len(mine) == len(theirs) and _same_shape(e, f):
        yield e, f, *zip(mine, theirs, strict=True)


# -- what a claim needs ----------------------------------------------------------------------------


def instances(expressions: Sequence[Any], proves: Proves) -> list[Instance]:
    """Return what the axioms say of the functions in some expressions, their premises proved.

    `proves` says whether an equation certainly holds. It is asked about parts of the expressions
    only, so asking it to use axioms itself comes to an end.
    """
    nodes = list(dict.fromkeys(node for e in expressions for node in functions_in(e)))
    stated = set(nodes)
    found = []
    for node in nodes:  # which grows: what is left when rows were chosen is a function too
        for instance in _said_of(node, proves):
            if instance.axiom == "rsqrt_square" and node not in stated:
                continue  # its argument may be zero where nothing that is stated takes its root
            found.append(instance)
            if len(nodes) < MAX_FUNCTIONS:
                nodes += [f for f in functions_in(instance.rhs) if f not in nodes]
    roots = [e for e in nodes if isinstance(e, Activation) and e.name == RSQRT]
    pairs = [*combinations(nodes, 2), *[(e, Activation(RSQRT, _ones(*e.shape))) for e in roots]]
    return found + [instance for pair in pairs for instance in _said_of(pair, proves)]


def _said_of(subject: Any, proves: Proves) -> Iterator[Instance]:
    for axiom in AXIOMS.values():
        for instance in axiom.of(subject):
            if all(proves(*premise) for premise in instance.premises):
                yield instance


def functions_in(e: Any) -> Iterator[Any]:
    """Yield the nonlinear functions in an expression, those that a norm is made of among them."""
    for node in sympy.preorder_traversal(e):
        if isinstance(node, RowSoftmax | CausalMask | Activation):
            yield node
        elif isinstance(node, RMSNorm | LayerNorm):
            yield node
            yield from functions_in(definition(node))


def _reflection(e: Any) -> str | None:
    if not isinstance(e, Activation) or e.name not in KNOWN:
        return None
    return KNOWN[e.name].reflected


def _factors(e: Any) -> tuple[Any, ...]:
    """Return the factors of the argument of a function without mask, none if it is no product."""
    if isinstance(e, CausalMask | tuple) or (isinstance(e, RowSoftmax) and e.mask is not None):
        return ()
    argument = _matrices(e)[0]
    is_product = isinstance(argument, sympy.MatMul) and all(a.is_Matrix for a in argument.args)
    return tuple(argument.args) if is_product and len(argument.args) > 1 else ()


def _is_squares(e: Any) -> bool:
    """Return whether a factor is a diagonal of squares, as it is written: diag(w ∘ w)."""
    return (
        isinstance(e, DiagMatrix)
        and isinstance(e.args[0], sympy.HadamardPower)
        and e.args[0].args[1] == 2
    )


def first_and_rest(e: Any) -> tuple[Any, Any]:
    """Return a sum as its first term and the others."""
    first, *rest = e.args
    return first, rest[0] if len(rest) == 1 else matadd(*rest)


def entrywise_root(e: Any) -> Any:
    """Return X where an expression is written as the entrywise square of X, else None."""
    factors: Counter[Any] = Counter()
    for factor in e.args if isinstance(e, sympy.HadamardProduct) else [e]:
        is_power = isinstance(factor, sympy.HadamardPower) and factor.args[1].is_Integer
        base, exponent = factor.args if is_power else (factor, 1)
        factors[base] += int(exponent)
    if any(exponent % 2 for exponent in factors.values()):
        return None
    roots = [base for base, exponent in factors.items() for _ in range(exponent // 2)]
    return roots[0] if len(roots) == 1 else sympy.HadamardProduct(*roots, evaluate=False)


def _product(factors: tuple[Any, ...]) -> Any:
    return factors[0] if len(factors) == 1 else matmul(*factors)


def _matrices(e: Any) -> tuple[Any, ...]:
    return tuple(a for a in e.args if getattr(a, "is_Matrix", False))


def _parameters(e: Any) -> tuple[Any, ...]:
    """Return what a function has besides matrices: its name, or the eps of a norm."""
    return tuple(a for a in e.args if not getattr(a, "is_Matrix", False))


def _applied_to(e: Any, argument: Any) -> Any:
    """Return the same function of another argument."""
    if isinstance(e, Activation):
        return Activation(e.name, argument)
    return type(e)(argument, *e.args[1:])


def _chooses(chosen: Any) -> tuple[Equation, Equation]:
    """Return what says that each row of a matrix is zero but for a single one."""
    rows, cols = chosen.shape
    squared = sympy.HadamardProduct(chosen, chosen, evaluate=False)
    return (squared, chosen), (matmul(chosen, _ones(cols, 1)), _ones(rows, 1))
