"""The kinds of claims in the catalogue, as data.

    Statement    lhs = rhs for all sizes and values, under the hypotheses `given`
    NonIdentity  lhs = rhs is not an identity, although it may look like one
    Bound        smaller ≤ larger, because the difference is a sum of nonnegative terms
    Property     a property of a matrix: a rank, causality, stochasticity, symmetry
    Definition   the meaning of a name: an expression, and the same in plain loops
    ErrorLaw     an approximation, and the order at which its error converges
    Method       a function of `numeric`, the theorems that it rests on, and plain loops to compare
    Observation  an empirical claim, tested on the bundled models

Each kind has its checks in `proofs/checks/`. A claim has expressions and functions, no results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import sympy
from sympy import Trace, Transpose

from otimes.algebra.errors import OtimesError
from otimes.algebra.facts import Fact
from otimes.algebra.facts.equations import equations_of, facts_in
from otimes.algebra.language.linear import matmul
from otimes.numeric.binding import Source
from otimes.numeric.model import Model

Binding = Mapping[str, Source]
Pair = tuple[Any, Any]
Place = str | Source
"""An activation by its name, or one of a certain layer, head or part."""
Printed = Pair | Callable[[], Pair]
"""A published form; a function if its shapes do not match, so that building it raises."""


@dataclass(frozen=True, slots=True)
class Statement:
    """An equation, with the activations and weights of a model that it is checked on.

    `given` are hypotheses: pairs, `sympy.Eq`, results of `lemma`, and properties of matrices as
    `Fact`, `attention_pattern(A)` or SymPy's `Q.orthogonal(P)`. `places` maps a recorded
    activation (`z`, `attn_out`, …, or a `Source`) to the expression that must equal it. `bind` maps
    symbols to weights and activations where their names do not; of several bindings, the first that
    a model can satisfy is used. `depth` is the number of layers, if the statement is about the
    logits of models of one depth. `bare`: its `places` are those of attention-only models without
    norms and biases; on others its sides are only compared with each other. `config`: fields that
    the model's configuration must have, such as `{"norm": "layer"}`. An activation called `g` is
    arbitrary in the proof, and the model's own in the check. `unchanged_by` are wrong bindings that
    make no difference to what is recorded, such as "b_Q for b_K", with the reasons. `on_models` is
    false if no model has the quantities in it (the prose says why). `printed` has published wrong
    forms, by the number of the erratum.
    """

    kind: ClassVar[str] = "identity"

    lhs: sympy.Basic
    rhs: sympy.Basic
    places: Mapping[Place, sympy.Basic] = field(default_factory=dict)
    given: Sequence[Any] = ()
    bind: Sequence[Binding] = ({},)
    depth: int | None = None
    bare: bool = True
    config: Mapping[str, Any] = field(default_factory=dict)
    unchanged_by: Mapping[str, str] = field(default_factory=dict)
    on_models: bool = True
    printed: Mapping[str, Printed] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "given", said(self.given))

    @property
    def expressions(self) -> tuple[Any, ...]:
        """The expressions in it; the two sides come first."""
        return (self.lhs, self.rhs, *sides_of(self.given), *self.places.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What ties a claim to the forward pass: `places`, and the rest as in a Statement."""

    places: Mapping[Place, sympy.Basic] = field(default_factory=dict)
    bare: bool = True
    config: Mapping[str, Any] = field(default_factory=dict)
    unchanged_by: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NonIdentity(Held):
    """lhs = rhs is not an identity: the sides differ at some exact values that satisfy `given`.

    If `on_models`, they must also differ on a model by more than their rounding bounds.
    """

    kind: ClassVar[str] = "counterexample"

    lhs: sympy.Basic
    rhs: sympy.Basic
    given: Sequence[Any] = ()
    bind: Sequence[Binding] = ({},)
    on_models: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "given", said(self.given))

    @property
    def expressions(self) -> tuple[Any, ...]:
        """The expressions in it; the two sides come first."""
        return (self.lhs, self.rhs, *sides_of(self.given))


@dataclass(frozen=True, slots=True)
class Square:
    """`times` · ‖matrix‖², a multiple of the squared Frobenius norm: nonnegative."""

    matrix: Any
    times: Any = 1

    @property
    def value(self) -> Any:
        """The scalar, as an expression."""
        return self.times * Trace(matmul(self.matrix, Transpose(self.matrix)))


@dataclass(frozen=True, slots=True)
class Entries:
    """`times` · the sum of the entries of a nonnegative matrix."""

    matrix: Any
    times: Any = 1

    @property
    def value(self) -> Any:
        """The scalar, as an expression."""
        rows, cols = self.matrix.shape
        ones = sympy.OneMatrix
        return self.times * Trace(matmul(ones(1, rows), self.matrix, ones(cols, 1)))


@dataclass(frozen=True, slots=True)
class Bound(Held):
    """smaller ≤ larger for two scalars, because larger - smaller is the sum of `because`.

    `given`: equations, and `Fact("nonnegative", …)` for the matrices in `because`. `tight`: values
    by symbol name at which both sides are equal (arrays of integers or Fractions; sizes follow
    from them, or are given by name); if there are none, `not_attained` says why.
    """

    kind: ClassVar[str] = "bound"

    smaller: Any
    larger: Any
    because: Sequence[Square | Entries]
    given: Sequence[Any] = ()
    tight: Mapping[str, Any] | None = None
    not_attained: str = ""
    bind: Sequence[Binding] = ({},)
    on_models: bool = True

    @property
    def statement(self) -> Statement:
        """The equation that it follows from: the difference is a sum of nonnegative terms."""
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
        """The expressions in it; the two scalars come first."""
        return (self.smaller, self.larger, *sides_of(self.given))


@dataclass(frozen=True, slots=True)
class Property(Held):
    """A property of an expression for all sizes, derived by `facts` from `given`.

    `given`: Facts and equations. A rank bound must be attained at some exact values unless
    `attained` is false (the prose says why).
    """

    kind: ClassVar[str] = "property"

    fact: Fact
    given: Sequence[Any] = ()
    attained: bool = True
    bind: Sequence[Binding] = ({},)
    on_models: bool = True

    @property
    def expressions(self) -> tuple[Any, ...]:
        """The expressions in it; the subject comes first."""
        return (self.fact.subject, *sides_of(self.given))


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition of a name: an expression, and the same value in plain loops.

    `plain(**values)` is called with an array or number for each symbol of `value`, sizes included,
    and computes the value by loops over indices; with exact numbers unless `value` has a nonlinear
    function. `obeys` names theorems about it. `places` are names where the value is recorded, or as
    in a Statement, as `bind` and `unchanged_by` are.
    """

    kind: ClassVar[str] = "definition"

    name: str
    value: Any
    plain: Callable[..., Any]
    given: Sequence[Any] = ()
    places: Sequence[str] | Mapping[Place, sympy.Basic] = ()
    bind: Sequence[Binding] = ({},)
    bare: bool = True
    config: Mapping[str, Any] = field(default_factory=dict)
    unchanged_by: Mapping[str, str] = field(default_factory=dict)
    on_models: bool = True
    obeys: Sequence[str] = ()

    @property
    def expressions(self) -> tuple[Any, ...]:
        """The expressions in it; the value comes first."""
        return (self.value, *sides_of(self.given))


@dataclass(frozen=True, slots=True)
class ErrorLaw:
    """`error(step)` = O(step ** order), measured with steps halved from `start`.

    `quantity` is the error in TeX, and `small` the step. `error` must be deterministic: its random
    numbers have a fixed seed.

    >>> import math
    >>> ErrorLaw("e^h - 1 - h", lambda h: math.exp(h) - 1 - h, order=2).law
    'e^h - 1 - h = O(h^{2})'
    """

    kind: ClassVar[str] = "approximation"

    quantity: str
    error: Callable[[float], float]
    order: float
    start: float = 0.1
    halvings: int = 6
    small: str = "h"

    expressions: ClassVar[tuple[Any, ...]] = ()

    @property
    def law(self) -> str:
        """The statement in TeX, with the order that is measured."""
        power = f"^{{{self.order:g}}}" if self.order != 1 else ""
        return f"{self.quantity} = O({self.small}{power})"


@dataclass(frozen=True, slots=True)
class Trial:
    """One comparison of a Method: its value, that of plain loops, and a bound on the difference.

    The rounding bound is computed, for each entry or for all of them, never chosen.
    """

    what: str
    value: np.ndarray | float
    plain: np.ndarray | float
    bound: np.ndarray | float


@dataclass(frozen=True, slots=True)
class Method:
    """A function of otimes, the theorems that it rests on, and comparisons with plain loops.

    `function` is its public name (`ot.ov_eigenvalues`). `trials(model, tokens)` yields comparisons
    on a model and a prompt, none where the function does not apply. They must fail when the
    function gets wrong arguments (`method_mutants.CHANGES`); `unchanged_by` are those that change
    what it returns but nothing that is compared, with the reasons. They must fail, too, when a part
    of what it returns is changed by a hundredth (`returned_mutants.py`), but for the parts in
    `not_compared`, with the reasons.
    """

    kind: ClassVar[str] = "method"

    function: str
    rests_on: Sequence[str]
    trials: Callable[[Model, Sequence[int]], Iterator[Trial]]
    law: str = ""
    unchanged_by: Mapping[str, str] = field(default_factory=dict)
    not_compared: Mapping[str, str] = field(default_factory=dict)

    expressions: ClassVar[tuple[Any, ...]] = ()


@dataclass(frozen=True, slots=True)
class Observed:
    """The result of a measurement: the figures as text, and the value of each criterion by name."""

    figure: str
    values: Mapping[str, float]


Load = Callable[[str], Model]
"""Returns a bundled model by its name: the trained one, or one with random weights in its place."""

Outcome = Literal["seen", "not seen", "seen at random too"]


@dataclass(frozen=True, slots=True)
class Observation:
    """An empirical claim: a measurement on the bundled models, or why it cannot be made on them.

    `observe(load)` measures the models that `load(name)` returns. It is run on the trained models,
    and on controls: models of the same configurations with random weights. The claim is "seen" if
    it holds for the trained models and for at most one control, and "seen at random too" if it
    holds for more. `control` is false for a measurement that is not about training, such as one of
    a tokenizer; it is "measured" or "not seen". `criterion` is the condition in words, and `above`
    the same as data: each value must be larger than this, a number that the words name (“half”,
    “nine tenths”, “0.2”), or zero for a difference. It is fixed before the measurement; `changed`
    says why, if it ever was changed after one. `outcome` is what the prose says; another outcome
    fails the check.
    """

    kind: ClassVar[str] = "observation"

    criterion: str
    observe: Callable[[Load], Observed] | None = None
    above: Mapping[str, float] = field(default_factory=dict)
    cannot: str = ""
    outcome: Outcome = "seen"
    control: bool = True
    changed: str = ""

    expressions: ClassVar[tuple[Any, ...]] = ()


Claim = Statement | NonIdentity | Bound | Property | Definition | ErrorLaw | Method | Observation


@dataclass(frozen=True, slots=True)
class Lemma:
    """An earlier theorem with some symbols substituted, used as a hypothesis."""

    name: str
    lhs: Any
    rhs: Any
    given: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class Described:
    """A declared property of a matrix, written as an equation.

    It describes the matrix. A theorem may hold without it, which other hypotheses may not.
    """

    lhs: Any
    rhs: Any
    fact: Fact


@dataclass(frozen=True, slots=True)
class Example:
    """Values, by name, at which all other hypotheses hold, or all but one.

    For hypotheses that random values rarely satisfy; it is no hypothesis itself. Symbols that are
    not named are drawn at random. Claims with a hypothesis removed are tested on it, too.
    """

    numbers: Mapping[str, Any]


def said(given: Any) -> tuple[Any, ...]:
    """Return the hypotheses of an equation one by one; declared properties as equations.

    That a matrix has no negative entries stays a `Fact`, because it is no equation.
    Raises: OtimesError where something given is neither an equation nor a property.

    >>> n = sympy.Symbol("n")
    >>> A = sympy.MatrixSymbol("A", n, n)
    >>> [each.lhs for each in said([sympy.Q.symmetric(A), sympy.Q.orthogonal(A)])]
    [A.T, A.T*A]
    """
    alone = isinstance(given, Fact | sympy.Basic | Lemma | Example | str)
    found: list[Any] = []
    for each in facts_in([given] if alone else given):
        if not isinstance(each, Fact):
            found.append(each)
            continue
        if each.name in ("nonnegative", "row_stochastic"):
            found.append(Fact("nonnegative", each.subject))
        found += [Described(left, right, each) for left, right in equations_of(each)]
    for each in found:
        pair = isinstance(each, tuple | list) and len(each) == 2
        if not (pair or isinstance(each, Fact | Lemma | Example | Described | sympy.Eq | str)):
            raise OtimesError(
                f"the hypothesis {each} is not understood: a theorem has as hypotheses equations "
                "(pairs or sympy.Eq), properties of matrices (Fact, attention_pattern, Q.…) and "
                "lemmas"
            )
    return tuple(found)


def as_pair(each: Any) -> Pair:
    """Return the two sides of a hypothesis: of a pair, a `sympy.Eq` or a lemma."""
    if isinstance(each, Lemma | Described | sympy.Eq):
        return each.lhs, each.rhs
    left, right = each
    return left, right


def equations(given: Sequence[Any]) -> tuple[Pair, ...]:
    """Return the equations among hypotheses, as pairs."""
    return tuple(as_pair(each) for each in given if not isinstance(each, Fact | Example))


def assumed(given: Sequence[Any]) -> tuple[Any, ...]:
    """Return hypotheses as `decide` takes them: equations as pairs, then facts that are none."""
    return (*equations(given), *(each for each in given if isinstance(each, Fact)))


def sides_of(given: Sequence[Any]) -> tuple[Any, ...]:
    """Return both sides of every equation among hypotheses."""
    return tuple(side for pair in equations(given) for side in pair)
