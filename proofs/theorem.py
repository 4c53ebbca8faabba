"""The class of an entry of the catalogue, a claim with title, source and prose.

A theorem is declared by a decorated function: its name is that of the theorem, its docstring is the
prose of the page, and its return value is the claim, usually an equation.

    @theorem(title="Mixed product", chapter=1, source="…", covers=("S0-37",))
    def kron_mul_kron() -> Statement:
        \"\"\"Two Kronecker products multiply factor by factor. …\"\"\"
        return Statement(kron(A, B) * kron(C, D), kron(A * C, B * D))

The proof, the exact check, the check on models, the mutants and the page are derived from the
claim. In a file of your own, `@theorem` alone is enough; `otimes verify FILE` checks its theorems.
"""

from __future__ import annotations

import inspect as python_inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from html import escape
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal, overload

import sympy

from otimes.algebra.errors import ConventionError, OtimesError
from otimes.algebra.language.latex import latex
from otimes.algebra.language.shapes import inspect, shape_of
from otimes.algebra.language.signature import Signature
from otimes.algebra.notation.text import read_claim
from otimes.numeric.binding import WEIGHT_AXES
from otimes.proofs.claims import Bound, Claim, Lemma, NonIdentity, Statement, assumed, equations
from otimes.proofs.render import SIGNS, TEX, said
from otimes.proofs.theorem_files import PREFIX, described, from_file, line_of

if TYPE_CHECKING:
    from otimes.algebra.explain.derivation import Derivation

Convention = Literal["row", "column", "either"]


@dataclass(frozen=True, slots=True, repr=False)
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
    shapes: str = ""

    def __reduce__(self) -> tuple[Any, tuple[str, ...]]:
        """Pickle by reference, as a function is: an entry is a variable of its module."""
        module = self.state.__module__
        if module.startswith(PREFIX):
            return from_file, (self.state.__code__.co_filename, self.name)
        return resolve_name, (f"{module}:{self.name}",)

    @property
    def own(self) -> bool:
        """Whether it is a theorem of a user, and not of the catalogue."""
        return not (self.state.__module__ or "").startswith("otimes.")

    def claim(self) -> Claim:
        """Return the claim. Raises: OtimesError if it cannot be built.

        An equation may be stated as a pair, as `sympy.Eq` or as a string. A ConventionError says
        that the claim mixes the row and the column convention.
        """
        try:
            stated = self.state()
        except OtimesError:
            raise
        except (Exception, SystemExit) as error:  # a user's function, or a constructor of SymPy
            where = line_of(error, Path(self.state.__code__.co_filename))
            raise OtimesError(f"{self.name} cannot be stated{where}: {described(error)}") from error
        claim = _claim_of(self.name, stated, self.shapes)
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

    def __repr__(self) -> str:
        try:
            return f"<theorem {self.name}: {self.text()}>"
        except OtimesError as error:
            return f"<theorem {self.name}: {error}>"

    def _repr_latex_(self) -> str:
        return f"$$\n{self.latex()}\n$$"

    def _repr_html_(self) -> str:
        """Return the title, the formula, the prose and the source."""
        tex = f"<div>$$ {escape(self.latex())} $$</div>" if self.latex() else ""
        source = f"<div><i>{escape(self.source)}</i></div>" if self.source else ""
        heading = f"<div><b>{escape(self.title)}</b> <code>{self.name}</code></div>"
        return f"{heading}{tex}<div>{escape(self.prose)}</div>{source}"

    def symbols(self) -> dict[str, str]:
        """Return the shape of each matrix symbol and family, `n × d` with index counts first."""
        expressions = self.claim().expressions
        tensors = inspect(*expressions).tensors if expressions else {}
        return {name: " × ".join(_sizes(tensor)) for name, tensor in tensors.items()}


def _claim_of(name: str, stated: Any, shapes: str) -> Claim:
    """Return what a theorem's function returned as a claim; `shapes` are those of strings."""
    if isinstance(stated, str):
        return Statement(*read_claim(stated, None, (), shapes)[:2])
    if isinstance(stated, sympy.Eq):
        return Statement(stated.lhs, stated.rhs)
    if isinstance(stated, tuple) and len(stated) == 2:
        stated = Statement(*stated)
    if isinstance(stated, Statement | NonIdentity):
        parts = (stated.lhs, stated.rhs, *stated.given)
        if any(isinstance(each, str) for each in parts):
            read = read_claim(stated.lhs, stated.rhs, stated.given, shapes)
            return replace(stated, lhs=read.lhs, rhs=read.rhs, given=read.given)
    if isinstance(stated, Claim):
        return stated
    hint = "return otimes.Statement(lhs, rhs)"
    if stated in (sympy.true, sympy.false, True, False):
        hint = f"SymPy evaluates Eq(lhs, rhs) at once; {hint}"
    raise OtimesError(f"{name} returns {stated!r}, which is not a claim: {hint}")


@cache
def _steps(theorem: Theorem) -> Derivation | None:
    from otimes.algebra.verdict import decide

    claim = theorem.claim()
    if not isinstance(claim, Statement | Bound):
        return None
    stated = claim.statement if isinstance(claim, Bound) else claim
    return decide(stated.lhs, stated.rhs, assumed(stated.given)).steps


@overload
def theorem(state: Callable[[], Any], /) -> Theorem: ...


@overload
def theorem(
    *,
    title: str = "",
    chapter: int = 0,
    source: str = "",
    covers: Sequence[str] = (),
    convention: Convention = "either",
    shapes: str = "",
) -> Callable[[Callable[[], Any]], Theorem]: ...


def theorem(
    state: Callable[[], Any] | None = None,
    /,
    *,
    title: str = "",
    chapter: int = 0,
    source: str = "",
    covers: Sequence[str] = (),
    convention: Convention = "either",
    shapes: str = "",
) -> Theorem | Callable[[Callable[[], Any]], Theorem]:
    r"""Declare a theorem: the function returns its claim, the docstring is its prose.

    The claim is a `Statement`, a pair of its sides, or another kind of `proofs/claims.py`. `title`
    is by default the name of the function, in words; `chapter` and `covers` are those of the
    catalogue. In the `convention` "row" or "column", weights of the other shape are refused.
    Sides and hypotheses may be strings in LaTeX or Unicode, and the claim one string with an
    equation; `shapes` declares their symbols (see `parse`).

    >>> from sympy import MatrixSymbol, Symbol
    >>> n = Symbol("n")
    >>> A, B = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n)
    >>> @theorem
    ... def product_of_sum():
    ...     return Statement((A + B) * A, A**2 + B * A)
    >>> product_of_sum
    <theorem product_of_sum: (A + B) A = B A + A²>
    >>> @theorem(shapes="A: n n, X: n d")
    ... def mixed_twice():
    ...     return r"(A \otimes I_d) \operatorname{vec}_r(X) = \operatorname{vec}_r(A X)"
    >>> mixed_twice
    <theorem mixed_twice: (A ⊗ I_d) vec_rows(X) = vec_rows(A X)>
    """

    def declare(state: Callable[[], Any]) -> Theorem:
        prose = python_inspect.cleandoc(state.__doc__ or "")
        name, ids = state.__name__, tuple(covers)
        called = title or name.replace("_", " ").capitalize()
        new = Theorem(name, called, chapter, convention, source, ids, prose, state, shapes)
        (OWN if new.own else DECLARED)[name] = new
        return new

    return declare if state is None else declare(state)


DECLARED: dict[str, Theorem] = {}
"""Every theorem of the catalogue by its name; importing a chapter adds its theorems."""

OWN: dict[str, Theorem] = {}
"""The theorems of users by name, the last declared if there are several."""


def find(name: str) -> Theorem:
    """Return the theorem of this name; an OtimesError names similar ones if there is none."""
    for declared in (DECLARED, OWN):
        if name in declared:
            return declared[name]
    if Path(name).suffix:
        raise OtimesError(
            f"{name!r} is no theorem and no Python file of theorems; "
            f"`otimes check {name}` checks the equations of a document"
        )
    every = [*DECLARED, *OWN]
    near = get_close_matches(name, every, n=3) or [each for each in every if name.lower() in each]
    hint = f"similar names are {', '.join(near[:3])}" if near else "`otimes search` finds theorems"
    raise OtimesError(f"there is no theorem {name!r}; {hint}")


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
