"""The collection of the facts about one matrix.

`KEPT` and `ABSORBED` are tables of properties that operations preserve; `IMPLIED` lists the
implications between properties of one matrix. `FactSet` applies them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import sympy

from otimes.algebra.facts.bounds import Numbers
from otimes.algebra.facts.fact import PROPERTIES, SAME, Fact
from otimes.algebra.facts.hypotheses import PAIRED
from otimes.algebra.language.sizes import same_size

Known = dict[str, Fact]

TRIANGLES = ("lower_triangular", "upper_triangular", "diagonal")
ORTHOGONAL = ("orthonormal_columns", "orthonormal_rows", "orthogonal", "permutation")

# Properties of the result if all operands have them.
KEPT = {
    "product": (*TRIANGLES, *ORTHOGONAL, "nonnegative", "invertible", "identity"),
    "Kronecker product": (
        *(*TRIANGLES, *ORTHOGONAL, "nonnegative", "invertible", "identity"),
        *("symmetric", "positive_semidefinite", "projection"),
    ),
    "sum": (
        *(*TRIANGLES, "nonnegative", "symmetric", "antisymmetric"),
        *("positive_semidefinite", "zero"),
    ),
    "Hadamard product": ("nonnegative", "symmetric", "positive_semidefinite", "identity"),
    "power": (
        *(*TRIANGLES, "orthogonal", "permutation", "nonnegative", "invertible", "identity"),
        *("symmetric", "positive_semidefinite", "projection", "zero"),
    ),
    "inverse": (
        *(*TRIANGLES, "orthogonal", "permutation", "identity"),
        *("symmetric", "antisymmetric", "positive_semidefinite"),
    ),
    "block diagonal of": (
        *(*TRIANGLES, *ORTHOGONAL, "nonnegative", "invertible", "identity"),
        *("symmetric", "antisymmetric", "positive_semidefinite", "projection", "zero"),
    ),
    "concatenation": ("nonnegative", "zero"),
}
# Properties of the result if one operand has them.
ABSORBED = {
    "product": ("zero",),
    "Kronecker product": ("zero",),
    "Hadamard product": ("zero", *TRIANGLES),
}
# Implications between properties of one matrix, premises to conclusions; applied only where its
# shape allows.
IMPLIED = {
    "zero": "nonnegative diagonal antisymmetric projection",
    "identity": "permutation diagonal projection",
    "permutation": "orthogonal nonnegative rows_sum_to_one columns_sum_to_one",
    "permutation diagonal": "identity",
    "orthogonal": "orthonormal_columns orthonormal_rows invertible",
    "orthonormal_columns": "orthogonal",
    "orthonormal_rows": "orthogonal",
    "orthogonal lower_triangular": "diagonal",
    "orthogonal upper_triangular": "diagonal",
    "orthogonal nonnegative": "permutation",
    "orthogonal positive_semidefinite": "identity",
    "diagonal": "lower_triangular upper_triangular symmetric",
    "lower_triangular upper_triangular": "diagonal",
    "symmetric lower_triangular": "diagonal",
    "symmetric upper_triangular": "diagonal",
    "antisymmetric lower_triangular": "zero",
    "antisymmetric upper_triangular": "zero",
    "symmetric antisymmetric": "zero",
    "projection antisymmetric": "zero",
    "positive_semidefinite": "symmetric",
    "diagonal nonnegative": "positive_semidefinite",
    "diagonal positive_semidefinite": "nonnegative",
    "diagonal rows_sum_to_one": "identity",
    "projection symmetric": "positive_semidefinite",
    "projection invertible": "identity",
    "row_stochastic": "rows_sum_to_one nonnegative",
    "column_stochastic": "columns_sum_to_one nonnegative",
    "rows_sum_to_one nonnegative": "row_stochastic",
    "columns_sum_to_one nonnegative": "column_stochastic",
}
IMPLICATIONS = [(p.split(), c) for p, conclusions in IMPLIED.items() for c in conclusions.split()]


class FactSet:
    """The facts about one expression; `close` adds everything that they imply."""

    def __init__(self, e: Any, numbers: Numbers) -> None:
        self.e = e
        self.numbers = numbers
        self.known: Known = {}
        self.is_square = same_size(*e.shape)
        least = numbers.least(*e.shape)
        self.known["rank_at_most"] = Fact(
            "rank_at_most", e, least, "at most the smaller of its sizes"
        )

    def add(self, name: str, rule: str, premises: Iterable[Fact] = (), value: Any = None) -> None:
        """Add a fact unless it is known; a bound on the rank is combined with the known one."""
        if name == "rank_at_most":
            self._bound(Fact(name, self.e, self.numbers.least(value), rule, tuple(premises)))
        elif name not in self.known and (self.is_square or not PROPERTIES[name].square):
            self.known[name] = Fact(name, self.e, value, rule, tuple(premises))

    def take(self, fact: Fact) -> None:
        """Add an existing fact about this expression."""
        if fact.name == "rank_at_most":
            self._bound(fact)
        elif fact.name not in PAIRED:
            self.known.setdefault(fact.name, fact)

    def _bound(self, fact: Fact) -> None:
        old = self.known["rank_at_most"]
        both = self.numbers.least(old.value, fact.value)
        if both == old.value:
            return
        if both != fact.value:
            fact = Fact(fact.name, self.e, both, "the least of two bounds", (old, fact))
        self.known["rank_at_most"] = fact

    def keep(self, operation: str, parts: Sequence[Known]) -> None:
        """Add the properties that the operation preserves."""
        for name in KEPT[operation]:
            if all(name in part for part in parts):
                premises = dict.fromkeys(part[name] for part in parts)
                self.add(name, f"a {operation} {_of(operation)}{PROPERTIES[name].many}", premises)
        for name in ABSORBED.get(operation, ()):
            part = next((part for part in parts if name in part), None)
            if part is not None:
                rule = f"a {operation} with a factor that {PROPERTIES[name].one}"
                self.add(name, rule, [part[name]])

    def carry(self, names: Iterable[str], part: Known, rule: str, *premises: Fact) -> None:
        """Add those of these properties that the operand has, each with its value."""
        for name in names:
            if name in part:
                self.add(name, rule, [*premises, part[name]], part[name].value)

    def rank(self, rule: str, parts: Sequence[Known], join: Callable[..., Any]) -> None:
        """Add the rank bound that `join` computes from those of the operands."""
        ranks = [part["rank_at_most"] for part in parts]
        value = join(*[rank.value for rank in ranks])
        self.add("rank_at_most", rule, dict.fromkeys(ranks), value)

    def sums(
        self,
        rule: str,
        parts: Sequence[Known],
        join: Callable[..., Any],
        names: Iterable[str] = ("rows_sum_to", "columns_sum_to"),
    ) -> None:
        """Add the constant row and column sums that `join` computes from those of the operands."""
        for name in names:
            if all(name in part for part in parts):
                facts = [part[name] for part in parts]
                value = self.numbers.tidy(join(*[fact.value for fact in facts]))
                self.add(name, rule, dict.fromkeys(facts), value)

    def close(self) -> None:
        """Add the implied facts until no new one follows."""
        before = -1
        while before != len(self.known):
            before = len(self.known)
            for names, conclusion in IMPLICATIONS:
                if conclusion not in self.known and all(name in self.known for name in names):
                    said = " and ".join(PROPERTIES[name].one for name in names)
                    self.add(conclusion, f"it {said}", [self.known[name] for name in names])
            self._close_sums()
            rank = self.known["rank_at_most"]
            if "zero" in self.known and rank.value != 0:
                self.add("rank_at_most", "it is zero", [self.known["zero"]], sympy.S.Zero)
            elif rank.value == 0:
                self.add("zero", "only zero has rank 0", [rank])

    def _close_sums(self) -> None:
        known, one = self.known, sympy.S.One
        for side, other in (("rows", "columns"), ("columns", "rows")):
            total, to_one = f"{side}_sum_to", f"{side}_sum_to_one"
            if to_one in known:
                self.add(total, SAME, [known[to_one]], one)
            elif total in known and self.numbers.equal(known[total].value, one):
                self.add(to_one, SAME, [known[total]])
            if f"{other}_sum_to" in known:
                theirs = known[f"{other}_sum_to"]
                for name, sign in (("symmetric", 1), ("antisymmetric", -1)):
                    if name in known:
                        rule = f"its {side} are {'minus ' * (sign < 0)}its {other}"
                        self.add(total, rule, [known[name], theirs], sign * theirs.value)
            if "zero" in known:
                self.add(total, "it is zero", [known["zero"]], sympy.S.Zero)
            if total in known and known[total].value == 0:
                rule = f"its {other} add to zero, so they are linearly dependent"
                size = self.e.shape[side == "rows"]
                self.add("rank_at_most", rule, [known[total]], size - 1)


def without_indices(known: Known, indices: Iterable[sympy.Symbol]) -> Known:
    """Return the facts whose values do not depend on the indices."""
    bound = set(indices)
    return {
        name: fact
        for name, fact in known.items()
        if fact.value is None or not fact.value.free_symbols & bound
    }


def _of(operation: str) -> str:
    """Return "of ", to follow the name of an operation, or "" if the name contains it."""
    return "" if operation.endswith(" of") else "of "
