"""Claims about rows of matrices, as e_iᵀ K, from those about the members K[i] of a family.

A recurrence such as S[i + 1] = S[i] + (e_iᵀ K)ᵀ e_iᵀ V has a new row of K and of V at each
position. Where a claim and its hypotheses use a matrix only through its rows, these rows are a
family of 1 × k matrices, and induction over positions applies to families. The same claim for any
family is proved as a lemma, and the lemma is applied to the rows e_iᵀ K (`with_members_for_rows`).
A lemma has no instance at another index, such as e_{i+1}ᵀ K or D[i + 1]. There the claim itself is
read as one about a family K of 1 × k matrices (`as_members`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import sympy
from sympy import MatrixSymbol, Symbol, Transpose
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.decide.claim import Claim
from otimes.algebra.decide.decision import Decision
from otimes.algebra.decide.lemmas import Cited, as_it_is, presupposed_in
from otimes.algebra.errors import OtimesError
from otimes.algebra.language.affine import AffineMember
from otimes.algebra.language.binders import fresh_name, names_in
from otimes.algebra.language.linear import (
    Family,
    FamilyMember,
    HeadSum,
    OneHot,
    as_product,
    matadd,
    matmul,
)
from otimes.algebra.language.nonlinear import Activation
from otimes.algebra.language.shapes import inspect
from otimes.algebra.language.trees import parts_of, rebuilt, stated

Decide = Callable[[Claim], Decision]


def with_members_for_rows(claim: Claim, decided: Decide) -> Decision | None:
    """Return a proof of a claim from that with members of families for rows, or None."""
    if claim.cited or claim.sides in claim.within or not claim.equations or not claim.has_members:
        return None
    lhs, rhs, said = claim.asked
    given = [each.args if isinstance(each, sympy.Eq) else each for each in said]
    if not all(isinstance(pair, tuple | list) for pair in given):
        return None
    rows = _Rows([lhs, rhs, *[side for pair in given for side in pair]])
    if not rows.families:
        return None
    try:
        pairs = [tuple(rows.members(side) for side in pair) for pair in given]
        lemma = Claim(rows.members(lhs), rows.members(rhs), pairs)
        if not lemma.is_affine or presupposed_in(lemma) is not None or rows.moved(lemma):
            return None
        found = decided(lemma)
        cited = _cited(found, claim, rows, decided) if found.status == "proved" else None
        whole = cited and decided(claim.premise(*claim.sides, [cited]))
    except OtimesError:
        return None
    if not whole or whole.status != "proved":
        return None
    names = ", ".join(sorted(matrix.name for matrix in rows.families))
    reason = f"for any members of families in the place of the rows of {names}, {found.reason}"
    return replace(whole, reason=reason, strategy="")


def as_members(lhs: Any, rhs: Any, given: Sequence[Any]) -> tuple[Any, Any, list[Any]] | None:
    """Return a claim with a family of the same name for each matrix of which it has only rows.

    None without such matrices, or without a member at an affine index: there is no recurrence.
    """
    pairs = [each.args if isinstance(each, sympy.Eq) else each for each in given]
    plain = [each for each in pairs if isinstance(each, tuple | list) and len(each) == 2]
    if len(plain) < len(pairs):
        return None
    stated_sides = [lhs, rhs, *[side for pair in plain for side in pair]]
    if not all(isinstance(side, sympy.Basic | int) for side in stated_sides):
        return None
    sides = [*map(sympy.sympify, stated_sides)]
    rows = _Rows(sides, at_any=True)
    made = [rows.members(side) for side in sides]
    indices = {i for e in made for m in parts_of(e, FamilyMember) for i in m.indices}
    if not rows.families or all(i.is_Symbol or i.is_Integer for i in indices):
        return None
    return made[0], made[1], [*zip(made[2::2], made[3::2], strict=True)]


def as_matrices(claim: tuple[Any, Any, list[Any]]) -> tuple[Any, Any, list[Any]] | None:
    """Return a claim with 1 × 1 matrices for numbers that are made of their entries, or None.

    Recurrences are of members, and not of their entries.
    """
    lhs, rhs, given = claim
    pairs = [(lhs, rhs), *given]
    if not any(_is_number(pair) and any(map(_has_entry, pair)) for pair in pairs):
        return None
    made = [tuple(map(_as_matrix, pair)) if _is_number(pair) else pair for pair in pairs]
    return *made[0], made[1:]


def _is_number(pair: Any) -> bool:
    return not any(getattr(side, "is_Matrix", False) for side in pair)


def _has_entry(e: Any) -> bool:
    return any(map(_is_member, parts_of(e, MatrixElement)))


def _is_member(e: Any) -> bool:
    """Return whether a number is the entry of a member that is a 1 × 1 matrix."""
    entry = isinstance(e, MatrixElement) and isinstance(e.args[0], FamilyMember)
    return entry and e.args[0].shape == (1, 1)


def _as_matrix(e: Any) -> Any:
    """Return a number as a 1 × 1 matrix."""
    if _is_member(e):
        return e.args[0]
    if e == 0:
        return sympy.ZeroMatrix(1, 1)
    if isinstance(e, sympy.Add):
        return matadd(*map(_as_matrix, e.args))
    if isinstance(e, sympy.Mul) and _has_entry(e):
        return matmul(*[_as_matrix(part) if _has_entry(part) else part for part in e.args])
    if isinstance(e, sympy.exp) and _has_entry(e):
        return Activation("exp", _as_matrix(e.args[0]))
    if isinstance(e, sympy.Sum) and len(e.limits) == 1 and e.limits[0][1] == 0:
        index, _, last = e.limits[0]
        return HeadSum(_as_matrix(e.function), (index, last + 1))
    return matmul(e, sympy.Identity(1))


class _Rows:
    """A family for each matrix of which some expressions have only rows, at indices.

    With `at_any` these may be numbers and i + 1, too, and the family has the name of the matrix.
    """

    def __init__(self, sides: list[Any], at_any: bool = False) -> None:
        self.names, self.at_any = names_in(*sides), at_any
        self.families: dict[Any, Family] = {}
        self.refused: set[Any] = set()  # the matrices that occur otherwise
        made = [self.members(side) for side in sides]
        self.refused = {e for one in made for e in parts_of(one, MatrixSymbol)} & {*self.families}
        for matrix in self.refused:
            del self.families[matrix]

    def member(self, matrix: Any, index: Any) -> Any:
        """Return the family member that stands for a row, or None if the matrix has no family."""
        plain = isinstance(matrix, MatrixSymbol) and (self.at_any or isinstance(index, Symbol))
        if not plain or matrix in self.refused:
            return None
        if matrix not in self.families:
            name = matrix.name if self.at_any else fresh_name(f"{matrix.name}_row", self.names)
            self.names.add(name)
            self.families[matrix] = Family(name, (matrix.shape[0],), 1, matrix.shape[1])
        return self.families[matrix][index]

    def members(self, e: Any) -> Any:
        """Return an expression with members for rows."""
        if not e.args or isinstance(e, MatrixSymbol | FamilyMember):
            return e
        if isinstance(e, MatrixElement):
            row = self.member(*e.args[:2])
            return e if row is None else stated(MatrixElement, row, sympy.S.Zero, e.args[2])
        if isinstance(e, sympy.MatMul):
            return self.product(e)
        new = [part if isinstance(part, sympy.Tuple) else self.members(part) for part in e.args]
        return e if new == list(e.args) else rebuilt(e, new)

    def product(self, e: Any) -> Any:
        factors, rest = list[Any](), list(e.args)
        while rest:
            row = None
            if len(rest) > 1:
                one, other = rest[:2]
                if isinstance(one, Transpose) and isinstance(one.args[0], OneHot):
                    row = self.member(other, one.args[0].args[0])
                elif isinstance(one, Transpose) and isinstance(other, OneHot):
                    row = self.member(one.args[0], other.args[0])
                    row = None if row is None else Transpose(row)
            factors.append(self.members(rest[0]) if row is None else row)
            rest = rest[1 if row is None else 2 :]
        return as_product(factors)

    def moved(self, lemma: Claim) -> bool:
        """Return whether a member for a row is at an affine index: these are no rows."""
        own = {family.name for family in self.families.values()}
        sides = [*lemma.sides, *lemma.sides_given]
        return any(m.family.name in own for side in sides for m in parts_of(side, AffineMember))

    def rows(self, e: Any) -> Any:
        """Return an expression with the rows in the place of their members."""
        known = {family.name: matrix for matrix, family in self.families.items()}
        if isinstance(e, FamilyMember) and e.family.name in known:
            return self.row(known[e.family.name], *e.indices)
        if not e.args or isinstance(e, MatrixSymbol | FamilyMember):
            return e
        new = [part if isinstance(part, sympy.Tuple) else self.rows(part) for part in e.args]
        return e if new == list(e.args) else rebuilt(e, new)

    @staticmethod
    def row(matrix: Any, index: Any) -> Any:
        return matmul(Transpose(OneHot(index, matrix.shape[0])), matrix)


def _cited(found: Decision, claim: Claim, rows: _Rows, decided: Decide) -> Cited | None:
    """Return a lemma about members for the rows, whose hypotheses are those of the claim."""
    lemma = found.claim
    assert lemma is not None
    cited = as_it_is(found)
    own = {family.name: matrix for matrix, family in rows.families.items()}
    tensors = {
        name: (at, rows.row(own[name], *at)) if name in own else (at, e)
        for name, (at, e) in cited.tensors.items()
    }
    premises: list[Any] = []
    for pair in lemma.equations:
        sides = rows.rows(pair[0]), rows.rows(pair[1])
        if sides in claim.equations:
            premises.append(claim.equations.index(sides))
            continue
        premise = claim.premise(*sides)
        premise.within = claim.within | {premise.sides}  # which has rows as well
        one = decided(premise)
        if one.status != "proved":
            return None
        premises.append((one, list(inspect(*pair).indices)))
    made = cited.at(rows.rows(lemma.lhs), rows.rows(lemma.rhs), {})
    return replace(made, tensors=tensors, premises=tuple(premises))
