"""A chain of equations that an author wrote: each link decided, and explained by a rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from otimes.algebra.errors import RuleError
from otimes.algebra.explain.derivation import Step, one_step
from otimes.algebra.language.unicode import unicode_text
from otimes.algebra.rules.given import as_pair
from otimes.algebra.verdict import Verdict, decide


@dataclass(frozen=True, slots=True)
class Link:
    """One link of an author's own chain: the judge's verdict, and the rule if one rule does it."""

    before: Any
    after: Any
    verdict: Verdict
    step: Step | None

    def __str__(self) -> str:
        found = self.step.rule if self.step else "no single rule"
        why = f"{self.verdict.status}, by {found}"
        if self.verdict.status != "proved":
            why = f"{self.verdict.status}: {self.verdict.reason}"
        return f"{unicode_text(self.before)} = {unicode_text(self.after)}   ({why})"


def check_chain(expressions: Sequence[Any], given: Sequence[Any] = ()) -> tuple[Link, ...]:
    """Return one link for each pair of neighbours of a chain e0 = e1 = … = en, as `calc` does.

    A link that is not proved has its verdict; a proved link names its rule when one use of
    one rule explains it, and otherwise holds no step: `explain` may find several.
    Raises RuleError when there is nothing to check.

    >>> from sympy import MatrixSymbol, Symbol, Transpose
    >>> from otimes.algebra.language.linear import matmul
    >>> n = Symbol("n")
    >>> A, B = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n)
    >>> (link,) = check_chain([Transpose(matmul(A, B)), matmul(Transpose(B), Transpose(A))])
    >>> print(link)
    (A B)ᵀ = Bᵀ Aᵀ   (proved, by transpose_mul)
    """
    if len(expressions) < 2:
        raise RuleError(f"a chain has at least two expressions, and {len(expressions)} was given")
    pairs = tuple(as_pair(each) for each in given)
    links = []
    for before, after in pairwise(expressions):
        verdict = decide(before, after, pairs)
        step = one_step(before, after, pairs) if verdict.status == "proved" else None
        links.append(Link(before, after, verdict, step))
    return tuple(links)
