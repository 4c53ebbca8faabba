"""The traversal of an expression, from the leaves up, that collects the facts of each part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sympy

from otimes.algebra.facts.bounds import Numbers
from otimes.algebra.facts.fact import Fact
from otimes.algebra.facts.fact_set import FactSet, Known
from otimes.algebra.facts.hypotheses import Hypotheses, equal
from otimes.algebra.facts.normalise import times, transposed
from otimes.algebra.language.linear import FamilyMember, OneHot, matmul

LARGEST_FOR_NORMAL_FORM = 16  # nodes


class Walk:
    """The known facts of each normalised expression under the hypotheses, computed on demand."""

    def __init__(self, hypotheses: Hypotheses, numbers: Numbers, rules: Rules) -> None:
        self.hypotheses = hypotheses
        self.numbers = numbers
        self.rules = rules
        self._memo: dict[Any, Known] = {}

    def known(self, e: Any) -> Known:
        """Return the facts about a normalised expression, by property."""
        known = self._memo.get(e)
        if known is None:
            found = FactSet(e, self.numbers)
            rule = self.rules.get(type(e))
            if rule is not None:
                rule(self, e, found)
            for fact in self.hypotheses.about(e):
                found.take(fact)
            found.close()
            if isinstance(e, sympy.MatAdd | sympy.MatMul) and _may_cancel(e):
                _by_normal_form(found)
                found.close()
            if "projection" in found.known and e in self.hypotheses.traces:
                why = "the rank of a projection is its trace, a hypothesis"
                trace = self.hypotheses.traces[e]
                found.add("rank_at_most", why, [found.known["projection"]], trace)
                found.close()
            known = self._memo[e] = found.known
        return known

    def transposed(self, a: Any, b: Any) -> tuple[int, list[Fact]] | None:
        """Return (1, premises) if b = aᵀ, (-1, premises) if b = -aᵀ, else None."""
        if b == transposed(a):
            return 1, []
        if a == b:
            known = self.known(a)
            for name, sign in (("symmetric", 1), ("antisymmetric", -1)):
                if name in known:
                    return sign, [known[name]]
        return None

    def left_inverse(self, g: Any, f: Any) -> list[Fact] | None:
        """Return the premises from which g f = I follows, or None."""
        columns = ("orthonormal_columns",)
        for partner, names in ((transposed(f), columns), (f, (*columns, "symmetric"))):
            if g == partner and all(name in self.known(f) for name in names):
                return [self.known(f)[name] for name in names]
        if any(isinstance(x, sympy.Inverse) and x.args[0] == y for x, y in ((g, f), (f, g))):
            return []
        given = self.hypotheses.pair("times_is_identity", g, f)
        return None if given is None else [given]

    def commuting(self, factors: Sequence[Any]) -> list[Fact] | None:
        """Return the premises that imply that the factors commute pairwise, or None."""
        premises: list[Fact] = []
        distinct = list(dict.fromkeys(factors))
        for i, a in enumerate(distinct):
            for b in distinct[i + 1 :]:
                given = self.hypotheses.pair("commutes_with", a, b)
                if given is None:
                    return None
                premises.append(given)
        return premises


Rules = Mapping[type, Callable[[Walk, Any, FactSet], None]]
"""The function that adds the facts of each class of expressions."""


# -- the normal form -----------------------------------------------------------------------------


def _may_cancel(e: Any) -> bool:
    """Return whether terms could cancel: a constant matrix, or a symbol that occurs twice."""
    met: set[Any] = set()
    repeated = False
    for count, part in enumerate(sympy.preorder_traversal(e)):
        if count > LARGEST_FOR_NORMAL_FORM:
            return False
        if isinstance(part, sympy.Identity | sympy.OneMatrix | OneHot):
            repeated = True
        if isinstance(part, sympy.MatrixSymbol | FamilyMember):
            repeated = repeated or part in met
            met.add(part)
    return repeated


def _by_normal_form(found: FactSet) -> None:
    """Add the properties whose defining equations hold without hypotheses."""
    e, known = found.e, found.known
    rule = "both sides of {} have one normal form"
    rows, cols = e.shape
    claims: list[tuple[str, Any, Any, Any, str]] = [
        ("zero", None, e, sympy.ZeroMatrix(rows, cols), "E = 0")
    ]
    row_sums, col_sums = matmul(e, sympy.OneMatrix(cols, 1)), matmul(sympy.OneMatrix(1, rows), e)
    for total, fill, of_rows, of_cols in (
        (sympy.S.One, sympy.OneMatrix, "E 1 = 1", "1ᵀ E = 1ᵀ"),
        (sympy.S.Zero, sympy.ZeroMatrix, "E 1 = 0", "1ᵀ E = 0"),
    ):
        claims.append(("rows_sum_to", total, row_sums, fill(rows, 1), of_rows))
        claims.append(("columns_sum_to", total, col_sums, fill(1, cols), of_cols))
    gram = matmul(transposed(e), e)
    claims.append(("orthonormal_columns", None, gram, sympy.Identity(cols), "Eᵀ E = I"))
    if found.is_square:
        claims += [
            ("identity", None, e, sympy.Identity(rows), "E = I"),
            ("symmetric", None, transposed(e), e, "Eᵀ = E"),
            ("antisymmetric", None, transposed(e), times(-1, e), "Eᵀ = -E"),
            ("projection", None, matmul(e, e), e, "E E = E"),
        ]
    for name, value, left, right, claim in claims:
        if name not in known and equal(left, right):
            found.add(name, rule.format(claim), (), value)
            if name == "zero":
                return
