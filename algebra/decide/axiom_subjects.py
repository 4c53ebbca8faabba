"""The subjects of the axioms: the functions in a claim that each is about, and what it says there.

An axiom is about each expression that is written like the first function of its statement, such as
g(X). Where this does not tell, the axiom is declared here, with the values of its symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, islice, permutations
from typing import Any

import sympy
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.decide.axiom_statements import DATA, STATEMENTS, Values
from otimes.algebra.decide.function_parts import (
    CONSTANTS,
    along_rows,
    argument_factors,
    arguments_of,
    difference_of,
    elementwise_factors,
    entrywise_root,
    is_applied,
    is_squares,
    matrix_arguments,
    multiple_of,
    parameters_of,
    same_shape,
    scaled_rows,
    selected_softmax,
    summands,
    summed_exp,
    terms_of,
)
from otimes.algebra.language.linear import as_product, matadd
from otimes.algebra.language.nonlinear import (
    RSQRT,
    Activation,
    CausalMask,
    LayerNorm,
    RMSNorm,
    RowSoftmax,
)
from otimes.algebra.language.sizes import same_size

FUNCTIONS = ("RowSoftmax", "Activation", "RMSNorm", "LayerNorm", *[k.__name__ for k in CONSTANTS])
DECLARED: dict[str, tuple[Values, bool]] = {}
"""The values of the symbols of an axiom, and whether it is about a pair of functions."""


def subjects_of(name: str) -> tuple[Values | None, bool]:
    """Return the values of an axiom at its subjects, and whether these are pairs of functions."""
    if name in DECLARED:
        return DECLARED[name]
    return (_by_its_function(name) if name in DATA["axioms"] else None), False


def _by_its_function(name: str) -> Values:
    """Return the values for a subject that is written f(X, ...) in the forms of an axiom."""
    forms = [
        (number, function, form.get("functions"))
        for number, form in enumerate(STATEMENTS[name]["forms"])
        for function in islice(_functions_of_symbols([form["lhs"], form["rhs"]]), 1)
    ]

    def values_of(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
        args = arguments_of(e)
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


def _declared(name: str, of_pairs: bool = False) -> Callable[[Values], None]:
    """Declare the (form, values) of an axiom for a function, where its form alone does not say."""

    def declare(values_of: Values) -> None:
        DECLARED[name] = values_of, of_pairs

    return declare


@_declared("softmax_exp", of_pairs=True)
def _(pair: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    for weights, e in permutations(pair):
        if isinstance(weights, RowSoftmax) and is_applied(e, "exp") and same_shape(weights, e):
            mask = weights.args[1:]
            yield len(mask), {"S": e.argument, **dict(zip("M", mask, strict=False))}


@_declared("causal_softmax_first")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if isinstance(e, RowSoftmax) and isinstance(e.mask, CausalMask):
        yield 0, {"S": e.args[0]}


@_declared("causal_softmax_last")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if isinstance(e, RowSoftmax) and isinstance(e.mask, CausalMask):
        yield 0, {"S": e.args[0]}


@_declared("softmax_alone")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if isinstance(e, RowSoftmax) and isinstance(e.mask, sympy.Identity):
        yield 0, {"S": e.args[0]}


@_declared("exp_sum")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if is_applied(e, "exp") and (parts := summands(e.argument)):
        yield 0, dict(zip("XY", parts, strict=True))


@_declared("root_exp")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    for form, root in enumerate(("sqrt", RSQRT)):
        if is_applied(e, root) and is_applied(e.argument, "exp"):
            yield form, {"X": e.argument.argument}


@_declared("exp_half_log")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if is_applied(e, "exp") and isinstance(e.argument, sympy.MatMul) and len(e.argument.args) == 2:
        number, inner = e.argument.args
        if number in (sympy.S.Half, -sympy.S.Half) and is_applied(inner, "log"):
            yield int(bool(number < 0)), {"X": inner.argument}


@_declared("root_square")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if is_applied(e, "sqrt") and (root := entrywise_root(e.argument)):
        yield 0, {"X": root}


@_declared("relu_scale_rows")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    factors = argument_factors(e) if is_applied(e, "relu") else ()
    for form, scale in enumerate(factors[:1] + factors[-1:]):
        if isinstance(scale, DiagMatrix) and scale.args[0].shape[1] == 1:
            rest = factors[:-1] if form else factors[1:]
            yield form, {"S": as_product(rest), "w": scale.args[0]}
    if is_applied(e, "relu") and (scaled := scaled_rows(e.argument)):
        yield 0, dict(zip("Sw", scaled, strict=True))


@_declared("norm_scale_rows")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    factors = argument_factors(e) if isinstance(e, RMSNorm | LayerNorm) and e.eps == 0 else ()
    if factors and isinstance(factors[0], DiagMatrix) and factors[0].args[0].shape[1] == 1:
        scaled = {"S": as_product(factors[1:]), "w": factors[0].args[0]}
        yield int(isinstance(e, LayerNorm)), scaled
    if isinstance(e, RMSNorm | LayerNorm) and e.eps == 0 and (rows := scaled_rows(e.args[0])):
        yield int(isinstance(e, LayerNorm)), dict(zip("Sw", rows, strict=True))


@_declared("tanh_exp", of_pairs=True)
def _(pair: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    for e, other in permutations(pair):
        if is_applied(e, "tanh") and is_applied(other, "exp") and same_shape(e, other):
            yield 0, {"X": e.argument}
            yield 1, {"X": e.argument}


@_declared("softplus_reflected")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    for inner in _one_plus_exp(e):
        if not _is_minus(inner):
            yield 0, {"X": inner}


def _one_plus_exp(e: Any) -> Iterator[Any]:
    """Yield X if an expression is log(1 + exp(X))."""
    inner = e.argument if is_applied(e, "log") else None
    if isinstance(inner, sympy.MatAdd) and len(inner.args) == 2:
        for one, other in permutations(inner.args):
            if type(one) is sympy.OneMatrix and is_applied(other, "exp"):
                yield other.argument


def _is_minus(e: Any) -> bool:
    """Return whether an expression is a negative number times another."""
    return isinstance(e, sympy.MatMul) and e.args[0].is_Rational and e.args[0] < 0


@_declared("softmax_two")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    scores = e.args[0] if isinstance(e, RowSoftmax) and e.mask is None else None
    if isinstance(scores, sympy.BlockMatrix) and scores.blockshape == (1, 2):
        pair = dict(zip("xy", scores.blocks, strict=True))
        if all(part.shape[1] == 1 for part in pair.values()):
            yield 0, pair


@_declared("sigmoid_tanh")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if is_applied(e, "tanh"):
        yield 0, {"X": e.argument}
    elif (
        is_applied(e, "sigmoid")
        and isinstance(e.argument, sympy.MatMul)
        and e.argument.args[0] == 2
    ):
        yield 0, {"X": as_product(e.argument.args[1:])}


for _function in ("abs", "reciprocal", "sqrt", "log"):

    @_declared(f"{_function}_product")
    def _(e: Any, name: str = _function) -> Iterator[tuple[int, dict[str, Any]]]:
        if is_applied(e, name) and (factors := elementwise_factors(e.argument)):
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

    @_declared(_axiom)
    def _(e: Any, name: str = _axiom) -> Iterator[tuple[int, dict[str, Any]]]:
        outer, inner = _NESTED[name]
        if is_applied(e, outer) and isinstance(e.argument, Activation) and e.argument.name in inner:
            yield inner.index(e.argument.name), {"X": e.argument.argument}


@_declared("log_sigmoid")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    inner: Any = e.argument if is_applied(e, "log") else None
    if is_applied(inner, "sigmoid"):
        yield 0, {"X": inner.argument}
        argument = inner.argument
        number, *rest = argument.args if isinstance(argument, sympy.MatMul) else [sympy.S.Zero]
        if number.is_Rational and number < 0:
            yield 1, {"X": multiple_of(-number, as_product(rest))}
    elif isinstance(inner, sympy.MatAdd) and len(inner.args) == 2:
        for one, other in permutations(inner.args):
            minus = type(one) is sympy.OneMatrix and isinstance(other, sympy.MatMul)
            if minus and other.args[0] == -1 and is_applied(as_product(other.args[1:]), "sigmoid"):
                yield 2, {"X": as_product(other.args[1:]).argument}


@_declared("rsqrt_sqrt", of_pairs=True)
def _(pair: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    for e, other in permutations(pair):
        if is_applied(e, RSQRT) and is_applied(other, "sqrt") and e.argument == other.argument:
            yield 0, {"X": e.argument}


@_declared("sigmoid_exp", of_pairs=True)
def _(pair: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    for e, other in permutations(pair):
        if is_applied(e, "sigmoid") and is_applied(other, "exp") and same_shape(e, other):
            yield 0, {"X": e.argument}
            yield 1, {"X": e.argument}


@_declared("tanh_sum")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if is_applied(e, "tanh") and (parts := summands(e.argument)):
        yield 0, dict(zip("XY", parts, strict=True))


@_declared("sigmoid_difference")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if is_applied(e, "sigmoid") and (parts := difference_of(e.argument)):
        yield 0, dict(zip("XY", parts, strict=True))


@_declared("softplus_difference")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    for inner in _one_plus_exp(e):
        if parts := difference_of(inner):
            yield 0, dict(zip("XY", parts, strict=True))


@_declared("softmax_product")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if isinstance(e, RowSoftmax) and e.mask is None and (parts := summands(e.args[0])):
        yield 0, dict(zip("ST", parts, strict=True))


@_declared("log_softmax")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if is_applied(e, "log") and (weights := selected_softmax(e.argument)) is not None:
        yield 0, {"S": weights.args[0]}
    elif (scores := summed_exp(e)) is not None:
        yield 0, {"S": scores}


@_declared("logsumexp_shift")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    scores = summed_exp(e)
    terms = [] if scores is None else terms_of(scores)
    if len(terms) > 1:
        for k, term in enumerate(terms):
            if (shift := along_rows(term)) is not None:
                rest = terms[:k] + terms[k + 1 :]
                yield 0, {"S": rest[0] if len(rest) == 1 else matadd(*rest), "v": shift}


@_declared("angle_sum")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if isinstance(e, Activation) and e.name in ("cos", "sin") and (parts := summands(e.argument)):
        yield int(e.name == "sin"), dict(zip("XY", parts, strict=True))


@_declared("relu_idempotent")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if is_applied(e, "relu") and is_applied(e.argument, "relu"):
        yield 0, {"X": e.argument.argument}


@_declared("relu_square")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if is_applied(e, "relu") and (root := entrywise_root(e.argument)):
        yield 0, {"X": root}


@_declared("relu_scale_columns")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    factors = argument_factors(e)
    if factors and is_applied(e, "relu") and is_squares(factors[-1]):
        w = factors[-1].args[0].args[0]
        yield int(w.shape[1] != 1), {"S": as_product(factors[:-1]), "w": w}


@_declared("function_choose_rows")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if factors := argument_factors(e):
        values = {"P": factors[0], "X": as_product(factors[1:])}
        form = [RowSoftmax, Activation, RMSNorm, LayerNorm].index(type(e))
        yield form, values | dict(zip("?gee"[form], parameters_of(e), strict=False))


@_declared("activation_choose_columns")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if isinstance(e, Activation) and (factors := argument_factors(e)):
        yield 0, {"g": e.name, "S": as_product(factors[:-1]), "Q": factors[-1]}


@_declared("softmax_permute_columns")
def _(e: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    factors = argument_factors(e)
    if factors and isinstance(e, RowSoftmax) and same_size(*factors[-1].shape):
        yield 0, {"S": as_product(factors[:-1]), "Q": factors[-1]}


@_declared("function_congruence", of_pairs=True)
def _(pair: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    e, f = pair
    mine, theirs = matrix_arguments(e), matrix_arguments(f)
    alike = type(e) is type(f) and parameters_of(e) == parameters_of(f)
    if mine and alike and len(mine) == len(theirs) and same_shape(e, f):
        form = len(mine) - 1 or [RowSoftmax, None, Activation, RMSNorm, LayerNorm].index(type(e))
        values = dict([*zip("SM", mine, strict=False), *zip("TN", theirs, strict=False)])
        yield form, values | dict(zip("??gee"[form], parameters_of(e), strict=False))


@_declared("causal_mask_product", of_pairs=True)
def _(pair: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    mask, e = pair
    if isinstance(mask, CausalMask) and isinstance(e, sympy.MatMul):
        factors = matrix_arguments(e)
        square = all(same_shape(factor, mask) for factor in factors)
        for start, stop in combinations(range(len(factors) + 1 if square else 0), 2):
            for k in range(start + 1, stop):
                yield 0, {"A": as_product(factors[start:k]), "B": as_product(factors[k:stop])}
