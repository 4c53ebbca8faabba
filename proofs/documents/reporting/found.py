"""The verdict on an equation of a document, with its reasons."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

VERDICTS = (
    "proved",
    "refuted",
    "shape",
    "definition",
    "needs-hypothesis",
    "undecided",
    "unread",
)


@dataclass(slots=True)
class Found:
    """A verdict with its reasons; `reading` is the statement that was decided."""

    verdict: str
    why: str = ""
    counterexample: Any = None
    suggestion: str = ""
    reading: str = ""
    hypotheses: tuple[str, ...] = ()
    facts: frozenset[str] = frozenset()  # by which an inequality is proved, without certificate
    span: tuple[int, int] | None = None
    blamed: list[tuple[str, int]] = field(default_factory=list)  # declarations, by key and line
    differ: bool = False  # whether the sides differ at exact numbers, settled or not
    against: tuple[int, ...] = ()  # the lines of definitions that say otherwise
    edit: str = ""  # what was edited to make the equation true, such as "swap"

    @property
    def is_wrong(self) -> bool:
        """Whether a claim is called wrong."""
        return self.verdict in ("refuted", "shape")

    @property
    def is_decided(self) -> bool:
        """Whether a claim is proved, or called wrong."""
        return self.verdict == "proved" or self.is_wrong
