"""The exceptions of otimes.

A message states what was requested, what was given (with shapes) and what to do. All derive from
`OtimesError`, which is raised for mistakes of the caller, never for bugs of otimes.
"""

from __future__ import annotations

from typing import Any


class OtimesError(Exception):
    """The base class of all exceptions of otimes."""


class ShapeError(OtimesError):
    """Shapes do not match; the message names them, the position, and a likely correction."""


class LanguageError(OtimesError):
    """An expression contains something unsupported, which the message names."""


class ConventionError(OtimesError):
    """A statement mixes the row and the column convention."""


class RuleError(OtimesError):
    """A rule does not apply at the given subexpression."""


class Refuted(OtimesError):
    """A claim to be proved is false; `.counterexample` has values at which it fails.

    `.verdict` is the verdict. The message ends with the usual hypotheses under which the claim
    holds, which are looked for when it is first read.
    """

    def __init__(self, message: str, counterexample: Any = None, verdict: Any = None) -> None:
        super().__init__(message)
        self.counterexample = counterexample
        self.verdict = verdict

    def __str__(self) -> str:
        needed = self.verdict.holds_if if self.verdict is not None else ""
        return "\n".join(filter(None, (super().__str__(), needed)))


class Undecided(OtimesError):
    """A claim could be neither proved nor refuted, for the reason in the message."""
