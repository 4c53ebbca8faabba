"""The kinds of claims that the catalogue makes, as data: what is said, and how it may be tried.

    Statement    lhs = rhs, for every size and all values (under hypotheses, if any are given)
    Fails        lhs = rhs is no identity, although one might think so
    Bound        smaller ≤ larger, as the difference is a sum of squares and nonnegative things
    Holds        a property: a rank, causality, stochasticity, symmetry
    Definition   what a name stands for: one expression, and the same in plain loops
    ErrorLaw     an approximation, and the power of the step with which its error falls
    Method       a function of `numeric`, the theorems that make it right, and plain loops beside it
    Observation  an empirical claim, tried on the bundled models

Each kind has its checks in `proofs/checks/`. A claim holds expressions and functions, no results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import sympy
from sympy import Trace, Transpose

from algebra.facts import Fact
from algebra.language import matmul
from numeric.binding import Source
from numeric.model import Model

Binding = Mapping[str, Source]
Pair = tuple[Any, Any]
Printed = Pair | Callable[[], Pair]
"""A form in print; a function where its parts do not fit together, so that stating it raises."""


@dataclass(frozen=True, slots=True)
class Statement:
    """An equation, where its parts are seen in a forward pass, and what its symbols are there.

    `given` are equations that hold besides: pairs, `sympy.Eq`, or what `lemma` returns. `places`
    maps a recorded place (`z`, `attn_out`, …) to the part of the statement that claims to be it.
    `bind` gives symbols a meaning on a model where their names do not; several bindings are tried
    in order, and the first that a model can satisfy is used. `depth`: the number of layers of
    the models whose logits the statement gives, where it says so of one depth only. `bare`:
    whether its places are those of bare heads, so that models with norms, biases or MLPs, where the
    same places are something else, have nothing to say about it. `config`: the fields that the
    configuration of a model must have for the statement to speak of it, as `{"norm": "layer"}`.
    An activation called `g`, which may be any, is that of the model. `on_models` is false for a
    statement about things that no model has (all reason for it belongs in the prose). `printed` are
    wrong forms of it that are in print, by the number of the erratum.
    """

    kind: ClassVar[str] = "identity"

    lhs: sympy.Basic
    rhs: sympy.Basic
    places: Mapping[str, sympy.Basic] = field(default_factory=dict)
    given: Sequence[Any] = ()
    bind: Sequence[Binding] = ({},)
    depth: int | None = None
    bare: bool = True
    config: Mapping[str, Any] = field(default_factory=dict)
    on_models: bool = True
    printed: Mapping[str, Printed] = field(default_factory=dict)

    @property
    def expressions(self) -> tuple[Any, ...]:
        """All that it speaks of; the sides come first."""
        return (self.lhs, self.rhs, *sides_of(self.given), *self.places.values())


@dataclass(frozen=True, slots=True)
class Fails:
    """lhs = rhs is no identity: exact numbers at which `given` holds tell the sides apart.

    On a model the two sides must differ by more than their rounding bounds, if `on_models`.
    """

    kind: ClassVar[str] = "counterexample"

    lhs: sympy.Basic
    rhs: sympy.Basic
    given: Sequence[Any] = ()
    bind: Sequence[Binding] = ({},)
    on_models: bool = False

    @property
    def expressions(self) -> tuple[Any, ...]:
        """All that it speaks of; the sides come first."""
        return (self.lhs, self.rhs, *sides_of(self.given))


@dataclass(frozen=True, slots=True)
class Square:
    """`times` · ‖matrix‖², the sum of the squares of the entries: never negative."""

    matrix: Any
    times: Any = 1

    @property
    def value(self) -> Any:
        """The number, as an expression."""
        return self.times * Trace(matmul(self.matrix, Transpose(self.matrix)))


@dataclass(frozen=True, slots=True)
class Entries:
    """`times` · the sum of the entries of a matrix that has no negative entry."""

    matrix: Any
    times: Any = 1

    @property
    def value(self) -> Any:
        """The number, as an expression."""
        rows, cols = self.matrix.shape
        ones = sympy.OneMatrix
        return self.times * Trace(matmul(ones(1, rows), self.matrix, ones(cols, 1)))


@dataclass(frozen=True, slots=True)
class Bound:
    """smaller ≤ larger, two numbers: their difference is the sum of what is in `because`.

    `given`: equations, and `Fact("nonnegative", …)` for what `because` rests on. `tight`: numbers
    by the name of the symbol (arrays of integers or Fractions; sizes follow from them, or are
    named) at which both are equal; None where they never are.
    """

    kind: ClassVar[str] = "bound"

    smaller: Any
    larger: Any
    because: Sequence[Square | Entries]
    given: Sequence[Any] = ()
    tight: Mapping[str, Any] | None = None
    bind: Sequence[Binding] = ({},)
    on_models: bool = True

    @property
    def statement(self) -> Statement:
        """The equation behind it: the difference is a sum of things that are not negative."""
        said = [each for each in self.given if not isinstance(each, Fact)]
        rest = sympy.Add(*[term.value for term in self.because])
        return Statement(
            self.larger - self.smaller,
            rest,
            given=said,
            bind=self.bind,
            on_models=self.on_models,
        )

    @property
    def expressions(self) -> tuple[Any, ...]:
        """All that it speaks of; the two numbers come first."""
        return (self.smaller, self.larger, *sides_of(self.given))


@dataclass(frozen=True, slots=True)
class Holds:
    """A property of an expression for every size, as the facts engine derives it from `given`.

    `given`: Facts and equations. A bound on a rank must be attained by some exact numbers unless
    `attained` is false (with the reason in the prose).
    """

    kind: ClassVar[str] = "property"

    fact: Fact
    given: Sequence[Any] = ()
    attained: bool = True
    bind: Sequence[Binding] = ({},)
    on_models: bool = True

    @property
    def expressions(self) -> tuple[Any, ...]:
        """All that it speaks of; the subject comes first."""
        return (self.fact.subject, *sides_of(self.given))


@dataclass(frozen=True, slots=True)
class Definition:
    """What a name stands for: one expression, and the same number in plain loops.

    `plain(**numbers)` gets an array or number for each symbol of `value`, by name, sizes among
    them, and returns the value by loops over indices, on exact numbers where `value` has no
    function in it. `obeys` names theorems about it. `places` and `bind` are as in a Statement.
    """

    kind: ClassVar[str] = "definition"

    name: str
    value: Any
    plain: Callable[..., Any]
    given: Sequence[Any] = ()
    places: Sequence[str] = ()
    bind: Sequence[Binding] = ({},)
    bare: bool = True
    config: Mapping[str, Any] = field(default_factory=dict)
    on_models: bool = True
    obeys: Sequence[str] = ()

    @property
    def expressions(self) -> tuple[Any, ...]:
        """All that it speaks of; what is defined comes first."""
        return (self.value, *sides_of(self.given))


@dataclass(frozen=True, slots=True)
class ErrorLaw:
    """`error(step)` falls like step to the power `order`, measured as steps halve from `start`.

    `law` says so in TeX. `error` is deterministic: what is random in it has a fixed seed.
    """

    kind: ClassVar[str] = "approximation"

    law: str
    error: Callable[[float], float]
    order: float
    start: float = 0.1
    halvings: int = 6

    expressions: ClassVar[tuple[Any, ...]] = ()


@dataclass(frozen=True, slots=True)
class Trial:
    """One comparison of a Method: its value, that of plain loops, and the rounding bound between.

    The bound is derived, entry by entry or for all entries, never chosen.
    """

    what: str
    value: np.ndarray | float
    plain: np.ndarray | float
    bound: np.ndarray | float


@dataclass(frozen=True, slots=True)
class Method:
    """A function of ours, the theorems that make it right, and what plain loops say beside it.

    `function` is its public name (`ot.ov_eigenvalues`). `trials(model, tokens)` yields comparisons
    on a model and a prompt, none where the function has nothing to say there.
    """

    kind: ClassVar[str] = "method"

    function: str
    rests_on: Sequence[str]
    trials: Callable[[Model, Sequence[int]], Iterator[Trial]]
    law: str = ""

    expressions: ClassVar[tuple[Any, ...]] = ()


@dataclass(frozen=True, slots=True)
class Observed:
    """What was seen: a figure in words and numbers, and whether the claim held there."""

    figure: str
    seen: bool


@dataclass(frozen=True, slots=True)
class Observation:
    """An empirical claim: what to look at on the bundled models, or why that cannot be done here.

    `criterion` says what counts as seen, before anything is looked at. `seen` says what came of it,
    as the prose does: on the same models another outcome is a mistake, here or in what is observed.
    """

    kind: ClassVar[str] = "observation"

    criterion: str
    observe: Callable[[], Observed] | None = None
    cannot: str = ""
    seen: bool = True

    expressions: ClassVar[tuple[Any, ...]] = ()


Claim = Statement | Fails | Bound | Holds | Definition | ErrorLaw | Method | Observation


@dataclass(frozen=True, slots=True)
class Lemma:
    """An earlier theorem at some values of its symbols, to be used as a hypothesis."""

    name: str
    lhs: Any
    rhs: Any
    given: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """Numbers at which the other hypotheses hold, or all of them but one: arrays by name.

    Stands among hypotheses that random numbers hardly ever satisfy, and says nothing itself.
    Symbols that are not named are drawn. A claim that lost a hypothesis is tried on it too.
    """

    numbers: Mapping[str, Any]


def lemma(name: str, **at: Any) -> Lemma:
    """Return an earlier theorem as a hypothesis, with some of its symbols replaced by name.

    What the earlier theorem itself assumes must follow from the other hypotheses; its proof is its
    own.  Raises OtimesError for a theorem that there is none of, or one that is no equation.

    >>> lemma("kron_mul_kron").name
    'kron_mul_kron'
    """
    from algebra.errors import OtimesError
    from proofs.catalogue import find

    stated = find(name).claim()
    if not isinstance(stated, Statement):
        raise OtimesError(f"{name} is no equation, so it cannot be used as a hypothesis")
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


def as_pair(each: Any) -> Pair:
    """Return the two sides of a hypothesis: of a pair, a `sympy.Eq` or a lemma."""
    if isinstance(each, Lemma | sympy.Eq):
        return each.lhs, each.rhs
    left, right = each
    return left, right


def equations(given: Sequence[Any]) -> tuple[Pair, ...]:
    """Return the equations among hypotheses, as pairs."""
    return tuple(as_pair(each) for each in given if not isinstance(each, Fact | Example))


def sides_of(given: Sequence[Any]) -> tuple[Any, ...]:
    """Return both sides of every equation among hypotheses."""
    return tuple(side for pair in equations(given) for side in pair)
