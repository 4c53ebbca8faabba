"""What an entry of the catalogue is: a claim, and what a reader needs to know about it.

A theorem is declared by a decorated function: its name is the theorem's, its docstring the prose of
the page, and what it returns the claim, most often an equation.

    @theorem(title="Mixed product", chapter=1, source="…", covers=("S0-37",))
    def kron_mul_kron() -> Statement:
        \"\"\"Two Kronecker products multiply factor by factor. …\"\"\"
        return Statement(kron(A, B) * kron(C, D), kron(A * C, B * D))

Everything else, the proof, the exact check, the check on models, the mutants and the page, is
derived from that claim.
"""

from __future__ import annotations

import inspect as python_inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import sympy

from algebra.errors import ConventionError, OtimesError
from algebra.latex import latex
from algebra.shapes import inspect, shape_of
from algebra.signature import Signature
from numeric.binding import WEIGHT_AXES
from proofs.claims import Bound, Claim, Statement, equations
from proofs.wording import SIGNS, TEX, said

if TYPE_CHECKING:
    from algebra.derivation import Derivation

Convention = Literal["row", "column", "either"]


@dataclass(frozen=True, slots=True)
class Theorem:
    """An entry of the catalogue. `.claim()` builds what it says anew."""

    name: str
    title: str
    chapter: int
    convention: Convention
    source: str
    covers: tuple[str, ...]
    prose: str
    state: Callable[[], Claim]

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        """Travel between processes by name: the catalogue is the same everywhere."""
        from proofs.catalogue import find

        return find, (self.name,)

    def claim(self) -> Claim:
        """Return what it claims; raise ConventionError when it mixes the two conventions."""
        try:
            claim = self.state()
        except (ValueError, TypeError) as error:  # SymPy's own refusal to build an expression
            raise OtimesError(f"{self.name} cannot be stated: {error}") from error
        if claim.expressions:
            check_convention(self, inspect(*claim.expressions))
        return claim

    def statement(self) -> Statement:
        """Return the equation of an entry that claims one; raise OtimesError of any other."""
        claim = self.claim()
        if not isinstance(claim, Statement):
            raise OtimesError(f"{self.name} is no equation: its claim is of the kind {claim.kind}")
        return claim

    def latex(self) -> str:
        """Return what it says as TeX; empty for a claim that is said in words only."""
        return said(self.claim(), latex, TEX)

    def text(self) -> str:
        """Return what it says as Unicode text, for a terminal."""
        from algebra.text import unicode_text

        return said(self.claim(), unicode_text, SIGNS)

    def steps(self) -> Derivation | None:
        """Return a chain of named rules from one side of an equation to the other, if there is."""
        return _steps(self)

    def symbols(self) -> dict[str, str]:
        """Return the shape of each matrix symbol and family, as `n × d` with its indices before."""
        expressions = self.claim().expressions
        tensors = inspect(*expressions).tensors if expressions else {}
        return {name: " × ".join(_sizes(tensor)) for name, tensor in tensors.items()}


@cache
def _steps(theorem: Theorem) -> Derivation | None:
    from algebra.decide import decide

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
    """Declare a theorem: the decorated function is its statement, the docstring its prose."""

    def declare(state: Callable[[], Claim]) -> Theorem:
        prose = python_inspect.cleandoc(state.__doc__ or "")
        if not prose:
            raise OtimesError(f"the theorem {state.__name__} needs a paragraph saying what it says")
        return Theorem(
            state.__name__, title, chapter, convention, source, tuple(covers), prose, state
        )

    return declare


def check_convention(theorem: Theorem, signature: Signature) -> None:
    """Refuse a statement whose weights stand as in the other convention than it declares.

    In the row convention weights act on the right (`W_V` is d × d_head), in the column convention
    on the left (d_head × d).
    """
    for name, tensor in signature.tensors.items():
        axes = WEIGHT_AXES.get(name)
        if axes is None or name == "W_pos" or "1" in axes:  # a vector acts on neither side
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
    """Return the sizes of an expression's two axes as they are printed."""
    shape = shape_of(expression)
    return ["1", "1"] if shape is None else [str(dimension) for dimension in shape]


def _sizes(tensor: Any) -> list[str]:
    counts = getattr(tensor, "counts", ())
    return [str(dimension) for dimension in (*counts, *tensor.shape)]
