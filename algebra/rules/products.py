"""Rules of products, sums and ⊗: brackets, distributivity, identities, zeros and scalars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import sympy
from sympy import HadamardProduct, Identity, KroneckerProduct, MatAdd, MatMul, MatPow, ZeroMatrix

from otimes.algebra.budget import Budget, Exhausted, spend
from otimes.algebra.errors import LanguageError
from otimes.algebra.language import coefficients
from otimes.algebra.language.trees import rebuilt
from otimes.algebra.rules.rule import (
    MAKE,
    OF_MATRICES,
    elementwise,
    is_matrix,
    of_type,
    pairs,
    product,
    relation,
    rule,
    same_size,
    scalar_product,
    split_scalars,
    tensor,
    total,
    with_argument,
    with_pair,
)
from otimes.algebra.rules.symbols import A, B, C, D, a, b, c, d, n

# -- brackets and order -------------------------------------------------------------------------


def _without_brackets(e: Any) -> Iterator[Any]:
    """Remove the brackets of one argument, or of all of them."""
    inner = [k for k, _ in of_type(e, type(e))]
    for k in inner:
        yield with_argument(e, k, *e.args[k].args)
    if len(inner) > 1 and type(e) in (MatMul, MatAdd):
        yield rebuilt(e, [y for x in e.args for y in (x.args if type(x) is type(e) else (x,))])


for _name, _make in zip(("mul", "add", "kron", "hadamard"), MAKE.values(), strict=True):
    _example = _make(_make(A, B), C)
    rule(type(_example), example=_example, bookkeeping=True, name=_name + "_assoc")(
        _without_brackets
    )


@relation(MatAdd, example=(total(A, B), total(B, A)), bookkeeping=True)
def add_comm(before: Any, after: Any) -> bool:
    return type(after) is MatAdd and Counter(before.args) == Counter(after.args)


# -- distributivity -----------------------------------------------------------------------------


@rule(MatMul, example=product(A, total(B, C)))
def mul_add(e: Any) -> Iterator[Any]:
    """Distribute a product over a sum that has a matrix on its left."""
    for k, x in of_type(e, MatAdd):
        if any(map(is_matrix, e.args[:k])):
            yield total(*[with_argument(e, k, t) for t in x.args])


@rule(MatMul, example=product(total(A, B), C))
def add_mul(e: Any) -> Iterator[Any]:
    """Distribute a product over a sum that is its first matrix."""
    for k, x in of_type(e, MatAdd):
        if not any(map(is_matrix, e.args[:k])) and any(map(is_matrix, e.args[k + 1 :])):
            yield total(*[with_argument(e, k, t) for t in x.args])


@rule(MatMul, example=product(c, total(A, B)))
def smul_add(e: Any) -> Iterator[Any]:
    numbers, matrices = split_scalars(e)
    if numbers and len(matrices) == 1 and type(matrices[0]) is MatAdd:
        yield total(*[product(*numbers, t) for t in matrices[0].args])


def _over_a_sum(e: Any) -> Iterator[Any]:
    for k, x in of_type(e, MatAdd):
        yield total(*[with_argument(e, k, t) for t in x.args])


rule(KroneckerProduct, example=tensor(A, total(B, C)), name="kron_add")(_over_a_sum)
rule(HadamardProduct, example=elementwise(A, total(B, C)), name="hadamard_add")(_over_a_sum)


# -- the mixed product --------------------------------------------------------------------------


@rule(MatMul, example=product(tensor(A, B), tensor(C, D)))
def kron_mul_kron(e: Any) -> Iterator[Any]:
    """Multiply factor by factor, grouping adjacent factors so that the inner sizes match."""
    for k, x, y in pairs(e, KroneckerProduct, KroneckerProduct):
        if (groups := matched(x, y)) is not None:
            yield with_pair(e, k, tensor(*[product(tensor(*a), tensor(*b)) for a, b in groups]))


def matched(x: Any, y: Any) -> list[tuple[list[Any], list[Any]]] | None:
    """Return the factors in the smallest groups whose inner sizes match; None if just one group."""
    groups: list[tuple[list[Any], list[Any]]] = []
    left, right = list(x.args), list(y.args)
    if len(left) == len(right) and all(
        same_size(a.shape[1], b.shape[0]) for a, b in zip(left, right, strict=True)
    ):
        return [([a], [b]) for a, b in zip(left, right, strict=True)]
    while left and right:
        a, b = [left.pop(0)], [right.pop(0)]
        p, q = a[0].shape[1], b[0].shape[0]
        while not same_size(p, q):
            if _divides(p, q) and left:
                a.append(left.pop(0))
                p = p * a[-1].shape[1]
            elif _divides(q, p) and right:
                b.append(right.pop(0))
                q = q * b[-1].shape[0]
            else:
                return None
        groups.append((a, b))
    return groups if not left and not right and len(groups) > 1 else None


def _divides(part: Any, whole: Any) -> bool:
    return bool((sympy.sympify(whole) / part).as_numer_denom()[1] == 1)


# -- identities, zeros ---------------------------------------------------------------------------


@rule(MatMul, example=product(Identity(n), A), bookkeeping=True)
def one_mul(e: Any) -> Iterator[Any]:
    """Drop an identity that has a matrix on its right."""
    for k, _, _ in pairs(e, Identity):
        yield with_argument(e, k)


@rule(MatMul, example=product(A, Identity(n)), bookkeeping=True)
def mul_one(e: Any) -> Iterator[Any]:
    """Drop an identity that has a matrix on its left."""
    for k, _, _ in pairs(e, None, Identity):
        yield with_argument(e, k + 1)


@rule(KroneckerProduct, example=tensor(Identity(n), Identity(d)))
def kron_one_one(e: Any) -> Iterator[Any]:
    for k, x, y in pairs(e, Identity, Identity):
        yield with_pair(e, k, Identity(x.shape[0] * y.shape[0]))


def _zero(e: Any) -> Iterator[Any]:
    if any(type(x) is ZeroMatrix or x == 0 for x in e.args):
        yield ZeroMatrix(*e.shape)


rule(MatMul, example=product(A, ZeroMatrix(n, d)), name="mul_zero")(_zero)
rule(KroneckerProduct, example=tensor(A, ZeroMatrix(n, d)), name="kron_zero")(_zero)
rule(HadamardProduct, example=elementwise(A, ZeroMatrix(n, n)), name="hadamard_zero")(_zero)


@rule(MatAdd, example=total(A, ZeroMatrix(n, n)), bookkeeping=True)
def add_zero(e: Any) -> Iterator[Any]:
    for k, _ in of_type(e, ZeroMatrix):
        yield with_argument(e, k)


@rule(KroneckerProduct, example=tensor(A, Identity(1)), bookkeeping=True)
def kron_one(e: Any) -> Iterator[Any]:
    """Drop an identity of size one, on either side of ⊗."""
    for k, x in of_type(e, Identity):
        if x.shape[0] == 1 and len(e.args) > 1:
            yield with_argument(e, k)


# -- powers -------------------------------------------------------------------------------------


@rule(MatPow, example=MatPow(A, 3, evaluate=False))
def pow_succ(e: Any) -> Iterator[Any]:
    if isinstance(e.exp, sympy.Integer) and e.exp >= 1:
        less = e.exp - 1
        power = MatPow(e.base, less, evaluate=False) if less > 1 else e.base
        yield product(power, e.base) if less else e.base


@rule(MatPow, example=MatPow(A, 0, evaluate=False))
def pow_zero(e: Any) -> Iterator[Any]:
    if e.exp == 0:
        yield Identity(e.shape[0])


@rule(MatPow, example=MatPow(A, -2, evaluate=False))
def pow_neg(e: Any) -> Iterator[Any]:
    if isinstance(e.exp, sympy.Integer) and e.exp < 0:
        inverse = sympy.Inverse(e.base)
        yield inverse if e.exp == -1 else MatPow(inverse, -e.exp, evaluate=False)


# -- scalars ------------------------------------------------------------------------------------


@rule(MatMul, example=product(A, product(c, B)), bookkeeping=True)
def mul_smul(e: Any) -> Iterator[Any]:
    """Move scalars to the front of a product, also those inside brackets."""
    found: list[Any] = []
    factors: list[Any] = []
    for x in e.args:
        if type(x) is MatMul and not is_matrix(x.args[0]):
            numbers, matrices = split_scalars(x)
            found += numbers
            factors.append(product(*matrices))
        else:
            (factors if is_matrix(x) else found).append(x)
    moved = product(*found, *factors)
    if moved != e:
        yield moved


@rule(MatMul, example=product(a, b, A), bookkeeping=True)
def smul_smul(e: Any) -> Iterator[Any]:
    """Multiply the scalars at the front of a product."""
    numbers, matrices = split_scalars(e)
    if len(numbers) > 1 and all(not is_matrix(x) for x in e.args[: len(numbers)]):
        yield product(scalar_product(*numbers), *matrices)


@rule(MatMul, example=product(sympy.S.One, A), bookkeeping=True)
def one_smul(e: Any) -> Iterator[Any]:
    for k, x in enumerate(e.args):
        if x == 1 and len(e.args) > 1:
            yield with_argument(e, k)


def _scalars_out(e: Any) -> Iterator[Any]:
    """Take the scalars out of all the factors."""
    scaled = [split_scalars(x) if type(x) is MatMul else ([], [x]) for x in e.args]
    numbers = [c for found, _ in scaled for c in found]
    if numbers:
        yield product(*numbers, rebuilt(e, [product(*matrices) for _, matrices in scaled]))


rule(KroneckerProduct, example=tensor(A, product(c, B)), name="kron_smul")(_scalars_out)
rule(HadamardProduct, example=elementwise(A, product(c, B)), name="hadamard_smul")(_scalars_out)


@rule(MatAdd, example=total(product(a, A), product(b, A)))
def add_collect(e: Any) -> Iterator[Any]:
    """Collect the multiples of one matrix into the first of them."""
    kinds: dict[Any, list[Any]] = {}
    for x in e.args:
        number, core = coefficient(x)
        kinds.setdefault(core, []).append(number)
    for core, numbers in kinds.items():
        if len(numbers) > 1:
            first = next(k for k, x in enumerate(e.args) if coefficient(x)[1] == core)
            rest = [x if coefficient(x)[1] != core else None for x in e.args]
            number = sympy.Add(*numbers, evaluate=False)
            new = product(number, core)
            yield total(*[new if k == first else x for k, x in enumerate(rest) if x or k == first])


@rule(MatAdd, example=total(A, product(-1, A)))
def add_neg(e: Any) -> Iterator[Any]:
    """Drop two terms of a sum whose coefficients of the same matrix are opposite."""
    parts = [coefficient(x) for x in e.args]
    for i, (x, core) in enumerate(parts):
        for j in range(i + 1, len(parts)):
            y, other = parts[j]
            if core == other and scalar_arith.relates(sympy.Add(x, y), sympy.S.Zero):
                rest = [z for k, z in enumerate(e.args) if k not in (i, j)]
                yield total(*rest) if rest else ZeroMatrix(*e.shape)


def coefficient(x: Any) -> tuple[Any, Any]:
    """Return the scalar coefficient of a term, and its matrix."""
    if type(x) is not MatMul:
        return sympy.S.One, x
    numbers, matrices = split_scalars(x)
    return scalar_product(*numbers), product(*matrices)


ARITHMETIC = (
    sympy.Add,
    sympy.Mul,
    sympy.Pow,
    sympy.Symbol,
    sympy.Integer,
    sympy.Rational,
    sympy.core.numbers.Zero,
    sympy.core.numbers.One,
    sympy.core.numbers.NegativeOne,
    sympy.core.numbers.Half,
    *OF_MATRICES,
)


LARGEST = 4.0
"""Units of work for the form of a scalar."""


@relation(*ARITHMETIC, example=(c * (a + b), a * c + b * c), bookkeeping=True)
def scalar_arith(before: Any, after: Any) -> bool:
    """Relate two scalars that are equal as rational functions of their symbols and traces.

    Exact, by `otimes.algebra.language.coefficients`. Each trace, entry, delta or sum counts as a
    symbol of its own.
    """
    if not isinstance(after, sympy.Expr) or is_matrix(after):
        return False
    left, right = _form(before), _form(after)
    spend(left.work + right.work)
    if left.terms is not None and right.terms is not None:
        return left.terms == right.terms
    plain = without_traces(before, after)
    try:
        left_value, right_value = (coefficients.from_sympy(x, _positive(x)) for x in plain)
    except LanguageError:
        return False
    return bool(left_value == right_value)


class _Form(NamedTuple):
    """The terms of a scalar that is a sum of products of powers, or None.

    `work` are the steps of finding them, which each use is charged for.
    """

    terms: frozenset[Any] | None
    work: int


@lru_cache(maxsize=16_384)
def _form(x: Any) -> _Form:
    """Return the form of a scalar; it is kept, as a search compares a scalar with many others."""
    names = dict.fromkeys(traces(x))
    plain = _with(x, _symbols(tuple(names)))
    meant = {f"tr({k})": trace for k, trace in enumerate(names)}
    with Budget(LARGEST, counted=False) as budget:
        try:
            value = coefficients.lift(coefficients.from_sympy(plain, _positive(plain)))
        except (LanguageError, Exhausted):
            return _Form(None, budget.spent)
    if value.denominator != {coefficients.ONE: 1}:
        return _Form(None, budget.spent)
    terms = frozenset(
        (frozenset((meant.get(name, name), power) for name, power in monomial), factor)
        for monomial, factor in value.numerator.items()
    )
    return _Form(terms, budget.spent)


def _symbols(names: Sequence[Any]) -> dict[Any, Any]:
    return {trace: sympy.Symbol(f"tr({k})") for k, trace in enumerate(names)}


def without_traces(*numbers: Any) -> tuple[Any, ...]:
    """Return scalars with each distinct trace, entry, delta or sum replaced by a symbol `tr(k)`."""
    names = _symbols(tuple(dict.fromkeys(trace for x in numbers for trace in traces(x))))
    return tuple(_with(x, names) for x in numbers)


def traces(x: Any) -> Iterator[Any]:
    """Yield the traces, entries, deltas and sums in a scalar, from left to right."""
    if type(x) in OF_MATRICES:
        yield x
    elif type(x) in (sympy.Add, sympy.Mul, sympy.Pow):
        for y in x.args:
            yield from traces(y)


def _with(x: Any, names: dict[Any, Any]) -> Any:
    if x in names:
        return names[x]
    if type(x) in (sympy.Add, sympy.Mul, sympy.Pow):
        return type(x)(*[_with(y, names) for y in x.args], evaluate=False)
    return x


def _positive(x: Any) -> set[str]:
    return {s.name for s in x.free_symbols if s.is_positive}
