"""Rules of softmax, masks, activations and norms: each axiom is a rule of the same name.

An axiom that is a relation between functions is stated in `axioms` alone; its rule is derived from
that statement by `_declared`. An axiom that is built into the normal form has a rule here. A rule
does not check the premises of its axiom: `decide` does, when it proves the step. Congruence (equal
arguments give equal values) needs no rule, as a step may be made inside an argument.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import Any

import sympy
from sympy import (
    BlockMatrix,
    HadamardPower,
    HadamardProduct,
    KroneckerProduct,
    MatAdd,
    MatMul,
    OneMatrix,
    Transpose,
    ZeroMatrix,
)

from otimes.algebra.decide.axiom_statements import Axiom, Equation, instance
from otimes.algebra.decide.axioms import AXIOMS
from otimes.algebra.decide.function_parts import CONSTANTS
from otimes.algebra.decide.signs import SignsIn
from otimes.algebra.language import functions
from otimes.algebra.language.intervals import Interval
from otimes.algebra.language.linear import HeadSum, OneHot, vec_cols, vec_rows
from otimes.algebra.language.nonlinear import (
    RSQRT,
    Activation,
    CausalMask,
    LayerNorm,
    RMSNorm,
    RowSoftmax,
    definition,
)
from otimes.algebra.language.trees import rebuilt
from otimes.algebra.rules.given import transposed
from otimes.algebra.rules.rule import (
    RULES,
    Rule,
    is_matrix,
    pairs,
    product,
    register,
    rule,
    split_scalars,
    tensor,
    total,
    with_pair,
)
from otimes.algebra.rules.structure import rows_of
from otimes.algebra.rules.symbols import A, B, M, X, d, n, positive, row, u

NORMS = (RMSNorm, LayerNorm)
ROWWISE = (RowSoftmax, Activation, *NORMS)

# -- softmax ------------------------------------------------------------------------------------


@rule(RowSoftmax, example=RowSoftmax(total(A, product(u, OneMatrix(1, n)))))
def softmax_shift(e: Any) -> Iterator[Any]:
    """Drop the terms that are constant along each row; if none is left, masked scores are 0."""
    scores, *mask = e.args
    terms = scores.args if type(scores) is MatAdd else (scores,)
    kept = [x for x in terms if not _is_constant_along_rows(x)]
    if kept and len(kept) < len(terms):
        yield RowSoftmax(total(*kept), *mask)
    elif not kept and mask and type(scores) is not ZeroMatrix:
        yield RowSoftmax(ZeroMatrix(*scores.shape), *mask)


@rule(RowSoftmax, example=RowSoftmax(product(u, OneMatrix(1, d))))
def softmax_constant(e: Any) -> Iterator[Any]:
    scores, *mask = e.args
    terms = scores.args if type(scores) is MatAdd else (scores,)
    if not mask and all(map(_is_constant_along_rows, terms)):
        yield product(1 / sympy.sympify(e.shape[1]), OneMatrix(*e.shape))


def _is_constant_along_rows(e: Any) -> bool:
    """Return whether all columns of a matrix are visibly equal."""
    if type(e) in (OneMatrix, ZeroMatrix):
        return True
    if type(e) is MatMul:
        return is_matrix(e.args[-1]) and _is_constant_along_rows(e.args[-1])
    if type(e) is HeadSum:
        return _is_constant_along_rows(e.body)
    return type(e) in (KroneckerProduct, MatAdd) and all(map(_is_constant_along_rows, e.args))


@rule(MatMul, example=product(Transpose(OneHot(row, n)), RowSoftmax(A)))
def softmax_row(e: Any) -> Iterator[Any]:
    yield from _row_inside(e, RowSoftmax)


@rule(MatMul, example=product(Transpose(OneHot(row, n)), RMSNorm(X)))
def norm_row(e: Any) -> Iterator[Any]:
    yield from _row_inside(e, *NORMS)


def _row_inside(e: Any, *kinds: type) -> Iterator[Any]:
    for k, x, y in pairs(e, Transpose):
        if type(y) in kinds and type(x.args[0]) is OneHot:
            arguments = [product(x, a) if is_matrix(a) else a for a in y.args]
            yield with_pair(e, k, rebuilt(y, arguments))


@rule(RowSoftmax, *NORMS, example=RowSoftmax(BlockMatrix([[A], [B]])))
def function_stack(e: Any) -> Iterator[Any]:
    """Apply a row-wise function, softmax or a norm, to each of the stacked blocks."""
    blocks, *others = e.args
    if type(blocks) is BlockMatrix and blocks.blockshape[1] == 1 and type(e) in NORMS:
        yield BlockMatrix([[rebuilt(e, [x, *others])] for (x,) in rows_of(blocks)])
    if type(blocks) is BlockMatrix and blocks.blockshape[1] == 1 and not others:
        yield BlockMatrix([[RowSoftmax(x)] for (x,) in rows_of(blocks)])


@rule(RowSoftmax, example=RowSoftmax(BlockMatrix([[A, B]]), BlockMatrix([[M, ZeroMatrix(n, n)]])))
def softmax_unseen_columns(e: Any) -> Iterator[Any]:
    """Drop the blocks of columns that the mask excludes; their weights are zero."""
    if type(e.mask) is BlockMatrix is type(e.args[0]):
        (scores,), (masks,) = ([list(row) for row in rows_of(x)] for x in (e.args[0], e.mask))
        seen = [k for k, x in enumerate(masks) if type(x) is not ZeroMatrix]
        if len(seen) == 1 < len(masks):
            parts = [ZeroMatrix(*x.shape) for x in masks]
            parts[seen[0]] = RowSoftmax(scores[seen[0]], masks[seen[0]])
            yield BlockMatrix([parts])


# -- activations --------------------------------------------------------------------------------


@rule(MatMul, example=product(Transpose(OneHot(row, n)), Activation("g", A)))
def activation_row(e: Any) -> Iterator[Any]:
    """Take a row or a column inside an activation."""
    yield from _row_inside(e, Activation)
    for k, x, y in pairs(e, Activation, OneHot):
        yield with_pair(e, k, Activation(x.name, product(x.argument, y)))


@rule(Activation, example=Activation("g", Transpose(A)))
def activation_transpose(e: Any) -> Iterator[Any]:
    if type(e.argument) is Transpose:
        yield Transpose(Activation(e.name, e.argument.args[0]))


@rule(vec_rows, vec_cols, example=vec_rows(Activation("g", A)))
def activation_vec(e: Any) -> Iterator[Any]:
    inner = e.args[0]
    if type(inner) is Activation:
        yield Activation(inner.name, rebuilt(e, [inner.argument]))


@rule(Activation, example=Activation("g", BlockMatrix([[A, B]])))
def activation_block(e: Any) -> Iterator[Any]:
    if type(e.argument) is BlockMatrix:
        yield BlockMatrix([[Activation(e.name, x) for x in row] for row in rows_of(e.argument)])


@rule(Activation, example=Activation("g", product(u, OneMatrix(1, n))))
def activation_repeat(e: Any) -> Iterator[Any]:
    """Also g(1 vᵀ) = 1 g(vᵀ), and g(X ⊗ 1) = g(X) ⊗ 1."""
    x = e.argument
    if type(x) is MatMul and sum(map(is_matrix, x.args)) > 1:
        if type(x.args[-1]) is OneMatrix and x.args[-1].shape[0] == 1:
            yield product(Activation(e.name, product(*x.args[:-1])), x.args[-1])
        numbers, (first, *others) = split_scalars(x)
        if type(first) is OneMatrix and first.shape[1] == 1:
            yield product(first, Activation(e.name, product(*numbers, *others)))
    if type(x) is KroneckerProduct:
        own = [k for k, y in enumerate(x.args) if type(y) is not OneMatrix]
        if own and own[-1] - own[0] + 1 == len(own) < len(x.args):
            inside = Activation(e.name, tensor(*x.args[own[0] : own[-1] + 1]))
            yield tensor(*x.args[: own[0]], inside, *x.args[own[-1] + 1 :])


@rule(Activation, example=Activation("gelu", ZeroMatrix(n, d)))
def activation_zero(e: Any) -> Iterator[Any]:
    if type(e.argument) is ZeroMatrix:
        yield from _constant(e, Fraction(0))


@rule(Activation, example=Activation("relu", product(2, OneMatrix(n, d))))
def activation_ones(e: Any) -> Iterator[Any]:
    numbers, matrices = _factors(e.argument)
    factor = sympy.Mul(*numbers)
    if len(matrices) == 1 and type(matrices[0]) is OneMatrix and factor.is_Rational:
        yield from _constant(e, Fraction(int(factor.p), int(factor.q)))


def _constant(e: Any, number: Fraction) -> Iterator[Any]:
    """Yield g(number) times ones, if the value is rational."""
    if e.name not in functions.KNOWN or not functions.is_defined(e.name, number):
        return
    value = functions.value_of(e.name, number)
    if not isinstance(value, Interval):
        one = OneMatrix(*e.shape)
        known = sympy.Rational(value.numerator, value.denominator)
        yield ZeroMatrix(*e.shape) if known == 0 else one if known == 1 else product(known, one)


@rule(Activation, example=Activation("relu", product(positive, A)))
def relu_scale(e: Any) -> Iterator[Any]:
    if e.name == "relu":
        for factor, rest in _positive_factors(e.argument):
            yield product(factor, Activation(e.name, rest))


@rule(Activation, example=Activation(RSQRT, product(positive, u)))
def rsqrt_scale(e: Any) -> Iterator[Any]:
    if e.name == RSQRT:
        for factor, rest in _positive_factors(e.argument):
            yield product(sympy.Pow(factor, -sympy.S.Half), Activation(e.name, rest))


@rule(*NORMS, example=RMSNorm(product(positive, A)))
def norm_scale(e: Any) -> Iterator[Any]:
    if e.eps == 0:
        for _, rest in _positive_factors(e.args[0]):
            yield type(e)(rest, e.eps)


def _positive_factors(e: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the positive scalar factor of a product, if it has one, and the remaining product."""
    numbers, matrices = _factors(e)
    size = [abs(x) if x.is_Rational else x for x in map(sympy.sympify, numbers)]
    out = [k for k, x in enumerate(size) if x.is_positive and x != 1]
    if out:
        left = [sympy.sign(x) if k in out else x for k, x in enumerate(numbers)]
        rest = product(*[x for x in left if x != 1], *matrices)
        yield sympy.Mul(*[size[k] for k in out]), rest


def _factors(e: Any) -> tuple[list[Any], list[Any]]:
    return split_scalars(e) if type(e) is MatMul else ([], [e])


# -- norms --------------------------------------------------------------------------------------


@rule(RMSNorm, example=RMSNorm(X))
def rms_norm_definition(e: Any) -> Iterator[Any]:
    yield definition(e)


@rule(LayerNorm, example=LayerNorm(X))
def layer_norm_definition(e: Any) -> Iterator[Any]:
    yield definition(e)


# -- axioms ---------------------------------------------------------------------------------------


@rule(HadamardProduct, example=AXIOMS["causal_mask_product"].example.lhs)
def causal_mask_product(e: Any) -> Iterator[Any]:
    """Drop a causal mask of a product of two matrices under that mask."""
    for mask in [one for one in e.args if type(one) is CausalMask]:
        rest = [one for one in e.args if one != mask]
        for x in rest:
            parts = x.args if type(x) is MatMul else ()
            if len(parts) == 2 and all(mask in _under(part) for part in parts):
                yield rest[0] if len(rest) == 1 else HadamardProduct(*rest, evaluate=False)


def _under(e: Any) -> tuple[Any, ...]:
    """Return the factors of an entrywise product."""
    return e.args if type(e) is HadamardProduct else (e,)


def instances(name: str, e: Any) -> Iterator[tuple[Any, tuple[Equation, ...]]]:
    """Yield each rewriting of an expression by the named axiom, with its premises."""
    axiom, found = AXIOMS[name], _functions_at(e)
    for subject in combinations(found, 2) if axiom.of_pairs else found:
        for said in axiom.of(subject):
            signs = SignsIn((said.lhs, said.rhs)) if said.signs else None
            if signs is not None and not all(signs.has(*each) for each in said.signs):
                continue  # neither side shows what is positive
            for new in _put(e, said.lhs, said.rhs):
                yield new, said.premises


def _functions_at(e: Any) -> list[Any]:
    """Return the function applications near the root of an expression, the subjects of axioms."""
    found: dict[Any, None] = {}
    stack = [(e, 0)]
    while stack:
        part, depth = stack.pop()
        if type(part) in (*ROWWISE, *CONSTANTS):
            found[part] = None
            if type(part) is Activation and _looks_negative(part.argument):
                found[Activation(part.name, negated(part.argument))] = None
            if type(part) is Activation and type(part.argument) is Activation:
                found[part.argument] = None
        elif depth < 3:
            stack += [(x, depth + 1) for x in part.args]
    return list(found)


def _put(e: Any, lhs: Any, rhs: Any) -> Iterator[Any]:
    """Yield e with `lhs` replaced by `rhs`, up to brackets, signs and the order of terms."""
    if plain(e) == plain(lhs):
        yield rhs
    elif type(e) is type(lhs) is MatMul:
        yield from _put_in_product(e, lhs, rhs)
    elif type(e) is type(lhs) and type(e) in (MatAdd, HadamardProduct):
        wanted = Counter(_terms(lhs))
        rest = []
        for x in e.args:
            if wanted[plain(x)] > 0:
                wanted[plain(x)] -= 1
            else:
                rest.append(x)
        if not +wanted:
            yield rebuilt(e, [rhs, *rest])
    if type(lhs) is MatMul and type(e) is MatMul:
        yield from _put_in_product(e, transposed(lhs), transposed(rhs))


def _terms(e: Any) -> list[Any]:
    """Return the `plain` form of each term or factor, with elementwise powers multiplied out."""
    opened = [
        y
        for x in e.args
        for y in ([x.args[0]] * int(x.args[1]) if _is_power(x) and type(e) is not MatAdd else [x])
    ]
    return list(map(plain, opened))


def _put_in_product(e: Any, lhs: Any, rhs: Any) -> Iterator[Any]:
    old = list(map(plain, lhs.args))
    for k in range(len(e.args) - len(old) + 1):
        if list(map(plain, e.args[k : k + len(old)])) == old:
            yield product(*e.args[:k], rhs, *e.args[k + len(old) :])


def _is_power(e: Any) -> bool:
    return type(e) is HadamardPower and bool(e.args[1].is_Integer) and e.args[1] > 1


@lru_cache(maxsize=50_000)
def plain(e: Any) -> Any:
    """Return a key that ignores brackets, the order of terms and the position of signs."""
    kind = type(e)
    if kind is MatMul:
        numbers, matrices = split_scalars(e)
        factor, *inner = sympy.Mul(*numbers), *map(plain, matrices)
        flat: list[Any] = []
        for x in inner:
            if isinstance(x, tuple) and x[0] == "product":
                factor, x = factor * x[1], list(x[2])
            flat += x if isinstance(x, list) else [x]
        if len(flat) == 1 and isinstance(flat[0], tuple) and flat[0][0] == "sum":
            return ("sum", frozenset((_scaled(x, factor), count) for x, count in flat[0][1]))
        return flat[0] if factor == 1 and len(flat) == 1 else ("product", factor, tuple(flat))
    if kind is MatAdd:
        return ("sum", frozenset(Counter(map(plain, e.args)).items()))
    if kind is HadamardProduct or _is_power(e):
        parts = _terms(e) if kind is HadamardProduct else [plain(e.args[0])] * int(e.args[1])
        return ("elementwise", frozenset(Counter(parts).items()))
    if kind is Activation:
        return ("function", e.name, plain(e.argument))
    if not e.args or isinstance(e, sympy.MatrixSymbol):
        return ("symbol", e)  # compared with a tuple, SymPy would read the words in it
    return (kind.__name__, *map(plain, e.args))  # SymPy compares with a name, not with a class


def _scaled(e: Any, factor: Any) -> Any:
    own, flat = (e[1], e[2]) if isinstance(e, tuple) and e[0] == "product" else (1, (e,))
    factor = factor * own
    return flat[0] if factor == 1 and len(flat) == 1 else ("product", factor, flat)


def negated(e: Any) -> Any:
    """Return -e, with the sign distributed over the terms of a sum."""
    if type(e) is MatAdd:
        return rebuilt(e, map(negated, e.args))
    numbers, matrices = _factors(e)
    factor = -sympy.Mul(*numbers)
    return product(*([] if factor == 1 else [factor]), *matrices)


def _looks_negative(e: Any) -> bool:
    if type(e) is MatAdd:
        return _looks_negative(e.args[0])
    return bool(sympy.Mul(*_factors(e)[0]).could_extract_minus_sign())


def _declared(axiom: Axiom, *kinds: type, signed: str = "") -> Rule:
    """Register the rule of an axiom, which applies it to the functions that occur.

    Of `signed`, a symbol of the axiom, a sign is required: its example has exp of it instead.
    """
    shown = axiom.example
    if signed:
        positive = Activation("exp", shown.values[signed])
        shown = instance(axiom.name, 0, {**shown.values, signed: positive})

    def build(e: Any) -> Iterator[Any]:
        for new, _ in instances(axiom.name, e):
            yield new

    kinds = kinds or (type(shown.lhs),)
    return register(Rule(axiom.name, shown.lhs, kinds, build, premises=shown.premises))


for _name in (
    *("softmax_sum", "causal_mask_is_mask", "causal_mask_diagonal", "causal_mask_order"),
    *("causal_mask_first", "activation_reflected", "activation_odd", "sigmoid_reflected"),
    *("sigmoid_gate", "sigmoid_tanh", "abs_relu", "softplus_log"),
    *("exp_sum", "exp_reflected", "relu_idempotent", "softmax_quotient", "softmax_two"),
    *("root_exp", "exp_half_log", "softplus_reflected", "root_square"),
    *("gelu_erf", "gelu_tanh", "causal_softmax_last", "tanh_exp", "tanh_sum", "abs_product"),
    *("sigmoid_difference", "softplus_difference", "softmax_product"),
    *("relu_square", "relu_parts", "relu_scale_columns"),
    *("rsqrt_square", "softmax_mask", "activation_choose_columns", "softmax_permute_columns"),
    *("softmax_exp", "causal_softmax_first", "softmax_alone"),
    *("shift_entries", "shift_back", "shift_power", "shift_mask", "shift_positions"),
    *("position_ends", "position_sums", "position_counts", "last_position"),
    *(
        "reciprocal_twice",
        "reciprocal_product",
        "reciprocal_exp",
        "reciprocal_sqrt",
        "log_exp",
        "log_reciprocal",
        "log_root",
        "log_sigmoid",
        "sigmoid_exp",
        "log_softmax",
        "cos_even",
        "circle",
        "angle_sum",
        "logsumexp_shift",
    ),
    *("reciprocal_cancel", "rsqrt_sqrt", "sqrt_square", "sqrt_product", "exp_log", "log_product"),
):
    _declared(AXIOMS[_name])
_declared(AXIOMS["relu_nonnegative"], signed="X")
_declared(AXIOMS["relu_scale_rows"], signed="w")
_declared(AXIOMS["norm_scale_rows"], signed="w")
_declared(AXIOMS["function_choose_rows"], *ROWWISE)
PREMISED = tuple(name for name, axiom in AXIOMS.items() if name in RULES and axiom.example.premises)
