"""Every way otimes says no, each as one sentence a person can act on.

A message says what was asked, what was got (with shapes) and what to do. `OtimesError` is the one
root: catching it catches every mistake of the caller, and nothing that is a bug of ours.
"""

from __future__ import annotations

from typing import Any


class OtimesError(Exception):
    """The root: something was asked that cannot be answered as it stands."""


class ShapeError(OtimesError):
    """Two shapes that had to agree do not; says which, where, and the likely mend."""


class LanguageError(OtimesError):
    """An expression holds something that the language does not have (yet); names it."""


class ConventionError(OtimesError):
    """A statement mixes the row and the column convention."""


class RuleError(OtimesError):
    """A rule was asked for at a place where it does not apply."""


class Refuted(OtimesError):
    """A claim that was to be proved is false; `.counterexample` shows where."""

    def __init__(self, message: str, counterexample: Any = None) -> None:
        super().__init__(message)
        self.counterexample = counterexample


class Undecided(OtimesError):
    """A claim could be neither proved nor refuted; the message says why."""
