"""A chain of equations A = B = C …: each equation is decided, and explained by a rewrite rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from textwrap import indent
from typing import Any

from otimes.algebra.decide.display import counterexample_html
from otimes.algebra.errors import LanguageError, RuleError, ShapeError
from otimes.algebra.explain.derivation import Step, one_step
from otimes.algebra.facts.equations import Need, stated
from otimes.algebra.language.assumptions import inequalities_of
from otimes.algebra.language.latex import latex
from otimes.algebra.language.unicode import unicode_text
from otimes.algebra.notation.text import read_chain
from otimes.algebra.rules.given import as_pair
from otimes.algebra.verdict import Verdict, decide


@dataclass(frozen=True, slots=True)
class Link:
    """One equation of a chain: its verdict, and the rewrite step if a single rule proves it.

    `verdict` is None if the equation is invalid, for example if the shapes of its sides differ;
    `error` is then the message.
    """

    before: Any
    after: Any
    verdict: Verdict | None
    step: Step | None
    error: str = ""

    @property
    def status(self) -> str:
        """The status of the verdict, or "invalid"."""
        return self.verdict.status if self.verdict is not None else "invalid"

    @property
    def reason(self) -> str:
        """Why, in one sentence."""
        return self.verdict.reason if self.verdict is not None else self.error

    @property
    def found(self) -> str:
        """The status, and how the link was proved or why it was not."""
        several = "the same expression" if self.before == self.after else "in several steps"
        how = f"by {self.step.rule}" if self.step else several
        return f"proved, {how}" if self.status == "proved" else f"{self.status}: {self.reason}"

    @property
    def holds_if(self) -> str:
        """The usual hypotheses under which a refuted link holds, in words; else ""."""
        return self.verdict.holds_if if self.verdict is not None else ""

    def __str__(self) -> str:
        return f"{unicode_text(self.before)} = {unicode_text(self.after)}   ({self.found})"


class Chain(tuple[Link, ...]):
    """The links of a chain e0 = e1 = … = en, in their order."""

    __slots__ = ()

    @property
    def passed(self) -> bool:
        """Whether every link is proved."""
        return all(link.status == "proved" for link in self)

    def __bool__(self) -> bool:
        """Return `passed`, so that `assert check_chain(…)` fails where a link does."""
        return self.passed

    @property
    def first_failure(self) -> int | None:
        """The number of the first link that is not proved, from 1; None if there is none."""
        return next((k for k, link in enumerate(self, 1) if link.status != "proved"), None)

    def __str__(self) -> str:
        """Return the links by number, each failing one with its counterexample, and what it needs.

        A refuted link says under which usual hypotheses it holds.
        """
        lines = []
        for number, link in enumerate(self, 1):
            lines.append(f"{number}. {link}")
            if link.verdict is not None and link.verdict.counterexample is not None:
                lines.append(indent(str(link.verdict.counterexample), "       "))
            if link.holds_if:
                lines.append(f"       {link.holds_if}")
        links = "1 link" if len(self) == 1 else f"{len(self)} links"
        return "\n".join([*lines, f"{links}: {self._summary()}"])

    def _summary(self) -> str:
        failed = [str(k) for k, link in enumerate(self, 1) if link.status != "proved"]
        if not failed:
            return "all are proved"
        *before, last = failed
        which = f"links {', '.join(before)} and {last} are" if before else f"link {last} is"
        return f"{which} not proved"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the links as a table, each failing one with its counterexample multiplied out."""
        rows = []
        for number, link in enumerate(self, 1):
            sides = f"$ {latex(link.before)} = {latex(link.after)} $"
            cells = (f"{number}.", escape(sides), escape(link.found))
            left = '<td style="text-align:left">'
            rows.append(f"<tr>{''.join(f'{left}{cell}</td>' for cell in cells)}</tr>")
            if link.verdict is not None and link.verdict.counterexample is not None:
                shown = counterexample_html(link.verdict.counterexample)
                shown += f"<div>{escape(link.holds_if)}</div>" if link.holds_if else ""
                rows.append(f'<tr><td></td><td colspan="2">{shown}</td></tr>')
        links = "1 link" if len(self) == 1 else f"{len(self)} links"
        return f"<table>{''.join(rows)}</table><div>{links}: {self._summary()}</div>"


def check_chain(
    expressions: str | Sequence[Any], given: Sequence[Any] = (), *, shapes: str | None = None
) -> Chain:
    """Return one link for each pair of neighbours of a chain e0 = e1 = … = en, as `calc` does.

    `given` are the hypotheses of `decide`. Expressions and hypotheses may be strings in LaTeX or
    Unicode, or the chain one string; `shapes` declares their symbols (see `parse`). A proved link
    names its rule when one use of one rule explains it, and otherwise holds no step: `explain` may
    find several. A link that is not proved has its verdict, with the counterexample, and the links
    after it are checked all the same.
    Raises RuleError when there is nothing to check.

    >>> from sympy import MatrixSymbol, Symbol, Transpose
    >>> from otimes.algebra.language.linear import matmul
    >>> n = Symbol("n")
    >>> A, B = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n)
    >>> found = check_chain([Transpose(matmul(A, B)), matmul(B.T, A.T), matmul(A.T, B.T)])
    >>> print(found)
    1. (A B)ᵀ = Bᵀ Aᵀ   (proved, by transpose_mul)
    2. Bᵀ Aᵀ = Aᵀ Bᵀ   (refuted: the sides differ at exact numbers)
           n = 2
           B = np.array([[0, 0], [0, 1]])
           A = np.array([[0, 0], [1, 0]])
           # left side 0, right side 1 at row 0, column 1
           it holds if B is diagonal and A is diagonal, or if B commutes with A, or if B times A \
is the identity, or if A times B is the identity
    2 links: link 2 is not proved
    >>> found.first_failure
    2
    >>> check_chain("(A B)^T C = B^T A^T C", shapes="A: n n, B: n n, C: n d").passed
    True
    """
    given = [given] if isinstance(given, str | Need) else given
    if any(isinstance(each, str) for each in (expressions, *expressions, *given)):
        expressions, given = read_chain(expressions, given, shapes)
    if len(expressions) < 2:
        raise RuleError(f"a chain needs at least two expressions, got {len(expressions)}")
    equations = (each for each in stated(given).given if inequalities_of(each) is None)
    pairs = tuple(map(as_pair, equations))
    return Chain(_link(before, after, given, pairs) for before, after in pairwise(expressions))


def _link(before: Any, after: Any, given: Sequence[Any], pairs: tuple[Any, ...]) -> Link:
    try:
        verdict = decide(before, after, given)
    except (ShapeError, LanguageError) as error:
        return Link(before, after, None, None, str(error))
    step = one_step(before, after, pairs) if verdict.status == "proved" else None
    return Link(before, after, verdict, step)
