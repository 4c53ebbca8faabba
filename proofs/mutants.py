"""The mutants of a claim (`otimes.algebra.mutations`), each of which must be refuted.

A check that cannot fail is not a check. Each mutant is decided as the theorem is: it is refuted by
exact numbers, or it is still true (`tr ABC` rotated), in which case the exact evaluator must agree
and the mutant is listed. A mutant whose shapes do not fit is decided again with all sizes equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, count
from random import Random
from typing import Any, TypeVar

import sympy

from otimes.algebra.budget import Budget
from otimes.algebra.decide.counterexample import Draw, draw_assignment, search
from otimes.algebra.errors import LanguageError, OtimesError, ShapeError
from otimes.algebra.evaluate.exact import Assignment
from otimes.algebra.facts import Fact
from otimes.algebra.language.shapes import same_shape, shape_of
from otimes.algebra.language.signature import Signature
from otimes.algebra.language.unicode import unicode_text
from otimes.algebra.mutations import OPERATORS, mutants
from otimes.algebra.verdict import decide
from otimes.proofs.claims import Described, Example, Lemma, assumed, sides_of
from otimes.proofs.hypotheses import SEED, drawer, signature_of, unmet

WORK_SHORT, WORK_EACH = 1.0, 10.0  # units of work
WORK_FIRST = 5.0  # to look for numbers
FEW, AT_EXAMPLES = 8, 24  # trials before anything is proved
AGREE = 12  # trials of what is proved
WITHOUT = "without a hypothesis"
REFUTED, STILL_TRUE, ILL_SHAPED = "refuted", "still true", "ill shaped"
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class WrongClaim:
    """An equation with a mutant for one of its sides, or without one of its hypotheses."""

    operator: str
    side: str
    lhs: sympy.Basic
    rhs: sympy.Basic

    def __str__(self) -> str:
        if self.operator == WITHOUT:
            return f"without {self.side}"
        changed = self.lhs if self.side == "left" else self.rhs
        return f"{self.operator}, {self.side} side: {unicode_text(changed)}"


@dataclass(frozen=True, slots=True)
class MutantEvidence:
    """The verdicts on the mutants of a claim; those `escaped` are neither refuted nor proved."""

    refuted: int
    still_true: tuple[str, ...]
    escaped: tuple[str, ...]
    ill_shaped: int

    @classmethod
    def of(cls, verdicts: Iterable[tuple[Any, str]]) -> MutantEvidence:
        """Return the evidence of mutants with their verdicts: three are known, others escaped."""
        found: dict[str, list[str]] = {REFUTED: [], STILL_TRUE: [], ILL_SHAPED: []}
        escaped = []
        for mutant, verdict in verdicts:
            if verdict == STILL_TRUE:
                found[verdict].append(str(mutant))
            elif verdict in found:
                found[verdict].append("")
            else:
                escaped.append(f"{mutant}: {verdict}")
        return cls(
            len(found[REFUTED]), tuple(found[STILL_TRUE]), tuple(escaped), len(found[ILL_SHAPED])
        )

    @property
    def passed(self) -> bool:
        """Whether every mutant was accounted for, and at least one was refuted."""
        return not self.escaped and self.refuted > 0


def check_mutants(lhs: sympy.Basic, rhs: sympy.Basic, given: Sequence[Any] = ()) -> MutantEvidence:
    """Return the verdicts on every mutant of lhs = rhs.

    The claim without one of its hypotheses is a mutant too: if it still holds, the hypothesis is
    superfluous.
    """
    return MutantEvidence.of(_verdicts(lhs, rhs, given))


def _verdicts(
    lhs: sympy.Basic, rhs: sympy.Basic, given: Sequence[Any]
) -> Iterator[tuple[WrongClaim, str]]:
    draws = _Draws(given)
    for k, mutant in chain(_fewer_hypotheses(lhs, rhs, given), _all_given(lhs, rhs, given)):
        verdict = _judge(mutant.lhs, mutant.rhs, k, draws if k is given else _Draws(k))
        if verdict == ILL_SHAPED:
            left, right, *sides = with_equal_sizes(mutant.lhs, mutant.rhs, *sides_of(k))
            examples = [each for each in given if isinstance(each, Example)]
            alike = [*zip(sides[::2], sides[1::2], strict=True), *examples]
            verdict = _judge(left, right, alike, _Draws(alike))
        superfluous = verdict == STILL_TRUE and mutant.operator == WITHOUT
        yield mutant, "holds all the same" if superfluous else verdict


def wrong_claims(lhs: sympy.Basic, rhs: sympy.Basic) -> Iterator[WrongClaim]:
    """Yield lhs = rhs with each mutant of either side, operator by operator."""
    wrong = [WrongClaim(m.name, "left", m.expression, rhs) for m in mutants(lhs)]
    wrong += [WrongClaim(m.name, "right", lhs, m.expression) for m in mutants(rhs)]
    order = list(OPERATORS)
    yield from sorted(wrong, key=lambda claim: order.index(claim.operator))


Claimed = Iterator[tuple[Sequence[Any], WrongClaim]]  # a mutant, and the hypotheses it stands under


def _all_given(lhs: sympy.Basic, rhs: sympy.Basic, given: Sequence[Any]) -> Claimed:
    for mutant in wrong_claims(lhs, rhs):
        yield given, mutant


def _fewer_hypotheses(lhs: sympy.Basic, rhs: sympy.Basic, given: Sequence[Any]) -> Claimed:
    """Yield the claim without each of its hypotheses; a lemma is true, and cannot be lost.

    Declared properties, which say what a matrix is, stay. With a hypothesis goes a lemma that
    assumes it.
    """
    for k, each in enumerate(given):
        if not isinstance(each, Lemma | Example | Described | Fact):
            rest = [*given[:k], *given[k + 1 :]]
            left = [
                one
                for one in rest
                if not isinstance(one, Lemma)
                or not unmet([one, *(other for other in rest if not isinstance(other, Lemma))])
            ]
            yield left, WrongClaim(WITHOUT, f"hypothesis {k + 1}", lhs, rhs)


class _Draws:
    """Numbers at which hypotheses hold, drawn once for all mutants in the same symbols.

    Such numbers are expensive to find. The k-th draw has a seed of its own. The values of
    subexpressions, most of which a mutant shares with the claim, are cached with the numbers.
    """

    def __init__(self, given: Sequence[Any]) -> None:
        self.draw: Draw = drawer(given) if given else draw_assignment
        self.made: dict[Any, Assignment | None] = {}

    def again(self) -> Draw:
        """Return a draw function that begins with the first numbers."""
        number = count()

        def drawn(
            signature: Signature, rng: Random, largest: int, entries: int, roots: dict[str, int]
        ) -> Assignment | None:
            parts = (signature.tensors, signature.sizes, signature.scalars, signature.indices)
            speaks_of = frozenset(symbol for part in parts for symbol in part.values())
            sizes = frozenset(signature.fixed.items()), frozenset(signature.dimensions)
            alike = speaks_of, sizes, tuple(roots.items()), frozenset(signature.masks)
            key = (*alike, largest, entries, next(number))
            if key not in self.made:
                found = self.draw(signature, Random(SEED + key[-1]), largest, entries, roots)
                self.made[key] = None if found is None else found.remembering()
            return self.made[key]

        return drawn


def _judge(lhs: sympy.Basic, rhs: sympy.Basic, given: Sequence[Any], draws: _Draws) -> str:
    """Return one of the three verdicts that are known, or a word for what went wrong."""
    try:
        signature = signature_of(given, lhs, rhs)
        if not same_shape(shape_of(lhs), shape_of(rhs)):
            return ILL_SHAPED
        tried = partial(search, lhs, rhs, signature, 4)
        # Most mutants are false, and numbers show it sooner than that nothing proves them. What is
        # true is mostly proved at once; numbers at which a rare mutant is false are hard to find.
        few = AT_EXAMPLES if any(isinstance(each, Example) for each in given) else FEW
        for attempts, units in ((few, WORK_SHORT), (None, WORK_EACH)):
            draw = draws.again() if attempts or given else None
            if _within(WORK_FIRST, partial(tried, draw, attempts)) is not None:
                return REFUTED
            verdict = decide(lhs, rhs, assumed(given), budget=units)
            if verdict.status != "undecided":
                break
        if verdict.status != "proved":
            return verdict.reason if verdict.status == "undecided" else REFUTED
        with Budget(WORK_EACH):
            trial = tried(draws.again(), AGREE)
    except (ShapeError, LanguageError):
        return ILL_SHAPED
    return STILL_TRUE if trial is None else "proved, but the exact evaluator disagrees"


def _within(units: float, find: Callable[[], Found]) -> Found | None:
    """Return the result of a search, or None where there is no value or too much work."""
    with suppress(OtimesError), Budget(units):
        return find()
    return None


def with_equal_sizes(*expressions: Any) -> tuple[Any, ...]:
    """Return expressions with every size made the same symbol."""
    size = sympy.Symbol("s", positive=True, integer=True)
    names = {s for e in expressions for s in _size_symbols(e)}
    return tuple(e.xreplace(dict.fromkeys(names, size)) for e in expressions)


def _size_symbols(e: sympy.Basic) -> set[sympy.Symbol]:
    found: set[sympy.Symbol] = set()
    for part in sympy.preorder_traversal(e):
        shape = part.shape if isinstance(part, sympy.MatrixExpr) else ()
        known = [each for each in shape if each is not None]  # of a diagonal of n × m
        found |= {s for dimension in known for s in sympy.sympify(dimension).free_symbols}
    return found
