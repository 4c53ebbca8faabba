"""What is certain of the signs of all entries of an expression, by its form.

An axiom such as log(x y) = log x + log y holds for positive numbers. It is used where they are
certainly positive: exp of anything, a softmax, sums and products of what is positive, even powers;
and what stands under a logarithm in the claim, since a claim is about values at which its sides are
defined. The checker has the same rules (`Reader.signs` in `proofs/replay.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import sympy
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalOf
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.errors import LanguageError
from otimes.algebra.language import coefficients
from otimes.algebra.language.affine import AffineMember
from otimes.algebra.language.assumptions import NONE, Assumptions
from otimes.algebra.language.binders import bindings
from otimes.algebra.language.functions import KNOWN
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import FamilyMember, OneHot, vec_cols, vec_rows
from otimes.algebra.language.nonlinear import RECIPROCAL, Activation, CausalMask, RowSoftmax
from otimes.algebra.language.trees import parts_of

Signs = frozenset[str]
UNKNOWN: Signs = frozenset()
NONNEGATIVE: Signs = frozenset({"nonnegative"})
NONZERO: Signs = frozenset({"nonzero"})
POSITIVE = NONNEGATIVE | NONZERO
NAMED = {"positive": POSITIVE, "nonnegative": NONNEGATIVE, "nonzero": NONZERO}
OF_VALUES = {
    "exp": POSITIVE,
    "sigmoid": POSITIVE,
    "softplus": POSITIVE,
    "relu": NONNEGATIVE,
    "abs": NONNEGATIVE,
}


class SignsIn:
    """The signs of expressions in a claim: of scalars by assumptions, of arguments as stated.

    `free` are the free indices of the claim, which states something for their one value only, and
    an axiom that uses it may be matched at any. So an argument with such an index counts only if
    it is of members of families that the claim has at no other index. Products over layers state
    nothing, since there may be none.
    """

    def __init__(
        self,
        stated: Iterable[Any] = (),
        assumptions: Assumptions = NONE,
        free: Iterable[sympy.Symbol] = (),
    ) -> None:
        self.assumptions = assumptions
        self.stated: dict[Any, Signs] = {}
        sides, indices = tuple(stated), frozenset(free)
        for node in [node for e in sides for node in _evaluated(e, indices)]:
            domain = KNOWN[node.name].domain if node.name in KNOWN else None
            if domain is not None and _is_at_one_index(node.argument, sides, indices):
                known = self.stated.get(node.argument, UNKNOWN)
                self.stated[node.argument] = known | NAMED[domain]

    def has(self, e: Any, sign: str) -> bool:
        """Return whether all entries certainly have a sign: positive, nonnegative or nonzero."""
        return self.of(e) >= NAMED[sign]

    def of(self, e: Any) -> Signs:
        """Return what is certain of all entries."""
        known = self.stated.get(e, UNKNOWN)
        if not getattr(e, "is_Matrix", False) and not e.has(sympy.MatrixExpr):
            return known | self._of_number(e)
        by_form = _BY_FORM.get(type(e))
        return known if by_form is None else known | by_form(self, e)

    def _of_number(self, e: Any) -> Signs:
        try:
            known = self.assumptions.named("nonnegative")
            value = coefficients.lift(coefficients.from_sympy(e, known))
        except LanguageError:
            return UNKNOWN
        signs = [self.assumptions.sign(side) for side in (value.numerator, value.denominator)]
        if all(signs):
            return POSITIVE if signs[0] == signs[1] else NONZERO
        nonzero = self.assumptions.named("nonzero")
        names = {name for m in value.numerator for name, _ in m if not name.startswith("#")}
        return NONZERO if len(value.numerator) == 1 and names <= nonzero else UNKNOWN

    def _activation(self, e: Activation) -> Signs:
        of = self.of(e.argument)
        if e.name == RECIPROCAL:
            return of
        if e.name in ("sqrt", "rsqrt"):
            return POSITIVE if of == POSITIVE else NONNEGATIVE
        if e.name == "relu" and of == POSITIVE:
            return POSITIVE
        return OF_VALUES.get(e.name, UNKNOWN)

    def _power(self, e: sympy.HadamardPower) -> Signs:
        base, exponent = e.args
        of = self.of(base)
        return of | NONNEGATIVE if exponent.is_Integer and exponent % 2 == 0 else of

    def _hadamard(self, e: Any) -> Signs:
        often = Counter(e.args)
        every = _all(map(self.of, often))
        once = _all(self.of(factor) for factor, times in often.items() if times % 2)
        return (every & NONZERO) | (once & NONNEGATIVE)

    def _sum(self, e: Any) -> Signs:
        parts = list(map(self.of, e.args))
        if _is_complement(e):
            return POSITIVE
        if not all(part >= NONNEGATIVE for part in parts):
            return UNKNOWN
        return POSITIVE if POSITIVE in parts else NONNEGATIVE

    def _product(self, e: Any) -> Signs:
        numbers = [part for part in e.args if not part.has(sympy.MatrixExpr)]
        every = _all(map(self.of, e.args))
        if every == POSITIVE or len(e.args) - len(numbers) < 2:
            return every
        return every & NONNEGATIVE

    def _inside(self, e: Any) -> Signs:
        return self.of(e.args[0])

    def _trace(self, e: Any) -> Signs:
        of = self.of(e.args[0])
        return of if of >= NONNEGATIVE else UNKNOWN


def _is_complement(e: Any) -> bool:
    """Return whether a sum is 1 - sigmoid(x)."""
    one, *rest = sorted(e.args, key=lambda part: type(part) is not sympy.OneMatrix)
    if type(one) is not sympy.OneMatrix or len(rest) != 1 or not isinstance(rest[0], sympy.MatMul):
        return False
    minus, *other = rest[0].args
    gate = other[0] if minus == -1 and len(other) == 1 else None
    return isinstance(gate, Activation) and gate.name == "sigmoid"


def _evaluated(e: Any, indices: frozenset[sympy.Symbol]) -> Iterator[Activation]:
    """Yield the functions of entries that are evaluated at all values of the bound indices.

    Those are not in products over layers, nor in a sum whose range depends on an index.
    """
    if isinstance(e, LayerProduct | OrderSum | AffineMember):
        return
    if isinstance(e, Activation):
        yield e
    limits = bindings(e)
    if any(count.free_symbols & indices for _, count in limits):
        return
    inner = indices | {index for index, _ in limits}
    for part in e.args:
        yield from _evaluated(part, inner)


def _is_at_one_index(e: Any, sides: Iterable[Any], free: frozenset[sympy.Symbol]) -> bool:
    """Return whether an expression has free indices in families alone that have no others."""
    if not e.free_symbols & free:
        return True
    members = parts_of(e, FamilyMember)
    without = {member: sympy.MatrixSymbol("_", *member.shape) for member in members}
    if e.xreplace(without).free_symbols & free:
        return False
    names = {member.family.name for member in members}
    others = {each for side in sides for each in parts_of(side, FamilyMember)}
    return {each for each in others if each.family.name in names} <= members and len(
        {each.family.name for each in members}
    ) == len(members)


def _all(signs: Iterable[Signs]) -> Signs:
    return POSITIVE.intersection(*signs)


def _always(signs: Signs) -> Callable[[SignsIn, Any], Signs]:
    return lambda of, e: signs


_BY_FORM: dict[type, Callable[[SignsIn, Any], Signs]] = {
    sympy.OneMatrix: _always(POSITIVE),
    **dict.fromkeys((sympy.Identity, sympy.ZeroMatrix, OneHot, CausalMask), _always(NONNEGATIVE)),
    RowSoftmax: lambda of, e: POSITIVE if e.mask is None else UNKNOWN,
    Activation: SignsIn._activation,
    sympy.HadamardPower: SignsIn._power,
    sympy.HadamardProduct: SignsIn._hadamard,
    sympy.KroneckerProduct: lambda of, e: _all(map(of.of, e.args)),
    **dict.fromkeys((sympy.MatAdd, sympy.Add), SignsIn._sum),
    **dict.fromkeys((sympy.MatMul, sympy.Mul), SignsIn._product),
    **dict.fromkeys(
        (sympy.Transpose, vec_rows, vec_cols, DiagonalOf, MatrixElement), SignsIn._inside
    ),
    DiagMatrix: lambda of, e: of.of(e.args[0]) & NONNEGATIVE,
    sympy.Trace: SignsIn._trace,
}
