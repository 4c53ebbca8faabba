"""One entry of the suite: an equation, what it is given, and whether it is true."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from sympy import sympify

KindName = Literal[
    "kron",
    "head",
    "path",
    "transpose",
    "trace",
    "Hadamard",
    "block",
    "projection",
    "inverse",
    "hypotheses",
    "index sum",
    "small size",
]


class Identity(NamedTuple):
    """An equation between SymPy expressions."""

    kind: KindName
    name: str
    lhs: Any
    rhs: Any
    given: tuple[tuple[Any, Any], ...]
    truth: bool

    def __repr__(self) -> str:
        return f"{self.kind}: {self.name}"


class Kind:
    """The identities of one kind, in the order in which they are stated."""

    def __init__(self, name: KindName) -> None:
        self.name: KindName = name
        self.identities: list[Identity] = []

    def true(self, name: str, lhs: Any, rhs: Any, *given: tuple[Any, Any]) -> None:
        """State what holds for all sizes and all values."""
        self.identities.append(_identity(self.name, name, lhs, rhs, given, True))

    def false(self, name: str, lhs: Any, rhs: Any, *given: tuple[Any, Any]) -> None:
        """State a mistake: somewhere the sides differ although all that is given holds."""
        self.identities.append(_identity(self.name, name, lhs, rhs, given, False))


def _identity(
    kind: KindName, name: str, lhs: Any, rhs: Any, given: tuple[tuple[Any, Any], ...], truth: bool
) -> Identity:
    """Return an entry, its explicit matrices those that SymPy holds in expressions."""
    return Identity(kind, name, sympify(lhs), sympify(rhs), given, truth)
