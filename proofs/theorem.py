"""The class of an entry of the catalogue, a claim with title, source and prose.

A theorem is declared by a decorated function: its name is that of the theorem, its docstring is the
prose of the page, and its return value is the claim, usually an equation.

    @theorem(title="Mixed product", chapter=1, source="…", covers=("S0-37",))
    def kron_mul_kron() -> Statement:
        \"\"\"Two Kronecker products multiply factor by factor. …\"\"\"
        return Statement(kron(A, B) * kron(C, D), kron(A * C, B * D))

The proof, the exact check, the check on models, the mutants and the page are derived from the
claim.
"""

from __future__ import annotations

import inspect as python_inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal

import sympy

from otimes.algebra.errors import ConventionError, OtimesError
from otimes.algebra.language.latex import latex
from otimes.algebra.language.shapes import inspect, shape_of
from otimes.algebra.language.signature import Signature
from otimes.numeric.binding import WEIGHT_AXES
from otimes.proofs.claims import Bound, Claim, Lemma, Statement, equations
from otimes.proofs.render import SIGNS, TEX, said

if TYPE_CHECKING:
    from otimes.algebra.explain.derivation import Derivation

Convention = Literal["row", "column", "either"]


@dataclass(frozen=True, slots=True)
class Theorem:
    """An entry of the catalogue; `.claim()` builds its claim."""

    name: str
    title: str
    chapter: int
    convention: Convention
    source: str
    covers: tuple[str, ...]
    prose: str
    state: Callable[[], Claim]

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        """Pickle by reference, as a function is: an entry is a variable of its module."""
        return resolve_name, (f"{self.state.__module__}:{self.name}",)

    def claim(self) -> Claim:
        """Return the claim; raise ConventionError if it mixes the two conventions."""
        try:
            claim = self.state()
        except (ValueError, TypeError) as error:  # from SymPy's constructors
            raise OtimesError(f"{self.name} cannot be stated: {error}") from error
        if claim.expressions:
            check_convention(self, inspect(*claim.expressions))
        return claim

    def statement(self) -> Statement:
        """Return the claim if it is an equation; raise OtimesError otherwise."""
        claim = self.claim()
        if not isinstance(claim, Statement):
            raise OtimesError(f"{self.name} is not an equation: its kind is {claim.kind}")
        return claim

    def latex(self) -> str:
        """Return the claim as TeX; empty if it has no formula."""
        return said(self.claim(), latex, TEX)

    def text(self) -> str:
        """Return the claim as Unicode text, for a terminal."""
        from otimes.algebra.language.unicode import unicode_text

        return said(self.claim(), unicode_text, SIGNS)

    def steps(self) -> Derivation | None:
        """Return a derivation from one side of an equation to the other by named rules, or None."""
        return _steps(self)

    def symbols(self) -> dict[str, str]:
        """Return the shape of each matrix symbol and family, `n × d` with index counts first."""
        expressions = self.claim().expressions
        tensors = inspect(*expressions).tensors if expressions else {}
        return {name: " × ".join(_sizes(tensor)) for name, tensor in tensors.items()}


@cache
def _steps(theorem: Theorem) -> Derivation | None:
    from otimes.algebra.verdict import decide

    claim = theorem.claim()
    if not isinstance(claim, Statement | Bound):
        return None
    stated = claim.statement if isinstance(claim, Bound) else claim
    return decide(stated.lhs, stated.rhs, equations(stated.given)).steps


def theorem(
    *,
    title: str,
    chapter: int,
    source: str,
    covers: Sequence[str] = (),
    convention: Convention = "either",
) -> Callable[[Callable[[], Claim]], Theorem]:
    """Declare a theorem: the function returns its claim, the docstring is its prose."""

    def declare(state: Callable[[], Claim]) -> Theorem:
        prose = python_inspect.cleandoc(state.__doc__ or "")
        if not prose:
            raise OtimesError(
                f"the theorem {state.__name__} needs a docstring, the prose of its page"
            )
        name, ids = state.__name__, tuple(covers)
        new = Theorem(name, title, chapter, convention, source, ids, prose, state)
        DECLARED[name] = new
        return new

    return declare


DECLARED: dict[str, Theorem] = {}
"""Every theorem by its name; importing a chapter of the catalogue adds its theorems."""


def find(name: str) -> Theorem:
    """Return the theorem of this name; an OtimesError names similar ones if there is none."""
    if name in DECLARED:
        return DECLARED[name]
    near = get_close_matches(name, DECLARED, n=3) or DECLARED
    raise OtimesError(f"there is no theorem {name!r}; there are {', '.join(near)}")


def lemma(name: str, **at: Any) -> Lemma:
    """Return an earlier theorem as a hypothesis, with some of its symbols replaced by name.

    The hypotheses of the earlier theorem must follow from the other hypotheses; its own proof is
    not repeated.  Raises OtimesError for an unknown theorem or one that is not an equation.

    >>> import otimes.proofs.catalogue
    >>> lemma("kron_mul_kron").name
    'kron_mul_kron'
    """
    stated = find(name).statement()
    symbols = {
        s.name: s
        for e in stated.expressions
        for s in e.atoms(sympy.Symbol, sympy.MatrixSymbol)
        if isinstance(s, sympy.Symbol | sympy.MatrixSymbol)
    }
    missing = sorted(at.keys() - symbols.keys())
    if missing:
        raise OtimesError(f"{name} has no symbol {missing[0]}; it has {', '.join(sorted(symbols))}")
    new = {symbols[key]: value for key, value in at.items()}
    given = tuple((a.xreplace(new), b.xreplace(new)) for a, b in equations(stated.given))
    return Lemma(name, stated.lhs.xreplace(new), stated.rhs.xreplace(new), given)


def check_convention(theorem: Theorem, signature: Signature) -> None:
    """Raise ConventionError for weights whose shape is that of the other convention.

    In the row convention weights act on the right (`W_V` is d × d_head), in the column convention
    on the left (d_head × d).
    """
    for name, tensor in signature.tensors.items():
        axes = WEIGHT_AXES.get(name)
        if axes is None or name == "W_pos" or "1" in axes:  # a vector has the same axes in both
            continue
        shape = tuple(str(dimension) for dimension in tensor.shape)
        row = axes[-2:]
        if theorem.convention == "row" and shape != row:
            raise ConventionError(
                f"{theorem.name} is in the row convention, where {name} is {' × '.join(row)}, and "
                f"its {name} is {' × '.join(shape)}"
            )
        if theorem.convention == "column" and shape != row[::-1]:
            raise ConventionError(
                f"{theorem.name} is in the column convention, where {name} is "
                f"{' × '.join(row[::-1])}, and its {name} is {' × '.join(shape)}"
            )


def layout_of(expression: sympy.Basic) -> list[str]:
    """Return the two sizes of an expression as strings."""
    shape = shape_of(expression)
    return ["1", "1"] if shape is None else [str(dimension) for dimension in shape]


def _sizes(tensor: Any) -> list[str]:
    counts = getattr(tensor, "counts", ())
    return [str(dimension) for dimension in (*counts, *tensor.shape)]
