"""Facts: properties of matrix expressions, each with the rule and premises that it follows from.

`PROPERTIES` has the wording of every property. `Facts`, the result of `facts()`, prints as a
derivation: below each fact, indented, are its premises, down to the hypotheses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from typing import Any, ClassVar, NamedTuple

import sympy

from otimes.algebra.errors import LanguageError, OtimesError, ShapeError
from otimes.algebra.hints import Hinting
from otimes.algebra.language.linear import Family
from otimes.algebra.language.shape_messages import show_shape
from otimes.algebra.language.sizes import same_size
from otimes.algebra.language.unicode import short_text


class Property(NamedTuple):
    """The wording of a property, for one matrix and for several; `square`: for square ones only."""

    one: str
    many: str
    square: bool = False


PROPERTIES: dict[str, Property] = {  # the strongest first: the order in which facts are printed
    "zero": Property("is zero", "zero matrices"),
    "identity": Property("is the identity", "identities", True),
    "permutation": Property("is a permutation", "permutations", True),
    "orthogonal": Property("is orthogonal", "orthogonal matrices", True),
    "orthonormal_columns": Property("has orthonormal columns", "matrices with orthonormal columns"),
    "orthonormal_rows": Property("has orthonormal rows", "matrices with orthonormal rows"),
    "row_stochastic": Property("is row-stochastic", "row-stochastic matrices"),
    "column_stochastic": Property("is column-stochastic", "column-stochastic matrices"),
    "diagonal": Property("is diagonal", "diagonal matrices", True),
    "lower_triangular": Property("is lower triangular", "lower triangular matrices", True),
    "upper_triangular": Property("is upper triangular", "upper triangular matrices", True),
    "positive_semidefinite": Property(
        "is positive semidefinite", "positive semidefinite matrices", True
    ),
    "projection": Property("is a projection", "projections", True),
    "symmetric": Property("is symmetric", "symmetric matrices", True),
    "antisymmetric": Property("is antisymmetric", "antisymmetric matrices", True),
    "rows_sum_to_one": Property("has rows that sum to one", "matrices whose rows sum to one"),
    "columns_sum_to_one": Property(
        "has columns that sum to one", "matrices whose columns sum to one"
    ),
    "rows_sum_to": Property("has rows that each sum to {}", "matrices of constant row sums"),
    "columns_sum_to": Property(
        "has columns that each sum to {}", "matrices of constant column sums"
    ),
    "nonnegative": Property("has no negative entry", "nonnegative matrices"),
    "invertible": Property("is invertible", "invertible matrices", True),
    "rank_at_most": Property("has rank at most {}", "matrices of bounded rank"),
    "commutes_with": Property("commutes with {}", "commuting matrices", True),
    "times_is_identity": Property("times {} is the identity", "one-sided inverses"),
}
OTHER_NAMES = {"causal": "lower_triangular", "idempotent": "projection"}
WITH_VALUE = ("rows_sum_to", "columns_sum_to", "rank_at_most", "commutes_with", "times_is_identity")
GIVEN = "given"
SAME = "each sum is one"  # links two names of one property; not printed in derivations


@dataclass(frozen=True, slots=True)
class Fact:
    """A property of an expression: `Fact("lower_triangular", A)` declares one as a hypothesis.

    `name` is one of `PROPERTIES` ("causal" is another name of "lower_triangular"), `subject`
    a matrix expression, a family (all its members) or, for "nonnegative", a scalar; `value` is the
    argument of the property, as in `Fact("rank_at_most", W, r)`. A derived fact has its `rule` and
    `premises`. A free index in the subject is universally quantified. Raises OtimesError for an
    unknown property, ShapeError where a square matrix is needed.

    >>> n, m = sympy.symbols("n m")
    >>> print(Fact("nonnegative", sympy.MatrixSymbol("A", n, m)))
    A has no negative entry
    """

    name: str
    subject: Any
    value: Any = None
    rule: str = field(default=GIVEN, compare=False)
    premises: tuple[Fact, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        """Check that the property exists, and that it applies to the subject."""
        object.__setattr__(self, "name", _known_name(self.name))
        if self.rule == GIVEN:
            self._check()

    def _check(self) -> None:
        if (self.name in WITH_VALUE) != (self.value is not None):
            needs = "needs a" if self.value is None else "takes no"
            raise OtimesError(f"{self.name} {needs} value: Fact(name, subject, value)")
        if self.value is not None:
            object.__setattr__(self, "value", sympy.sympify(self.value))
        shape = getattr(self.subject, "shape", None)
        if shape is None and not (
            self.name == "nonnegative" and isinstance(self.subject, sympy.Expr)
        ):
            raise LanguageError(
                f"{self.name} is a property of a matrix, not of {self.subject!r:.60}"
            )
        if shape is not None and PROPERTIES[self.name].square and not same_size(*shape):
            hint = "; a cross-attention pattern is not causal" * (self.name == "lower_triangular")
            raise ShapeError(
                f"{_name(self.subject)} is {show_shape(shape)} and cannot be declared "
                f"{self.name}: a square matrix is needed{hint}"
            )

    @property
    def why(self) -> str:
        """The derivation as text: the fact, its rule, and its premises indented below."""
        return "\n".join(_derivation(self, set()))

    def __str__(self) -> str:
        wording = PROPERTIES[self.name]
        if self.value == 1:
            wording = PROPERTIES.get(f"{self.name}_one", wording)
        return f"{_name(self.subject)} {wording.one.format(_name(self.value))}"


class Facts(Hinting):
    """The known facts about an expression: `.holds(property)`, `.rank_at_most`; iterable in order.

    A property that is not listed is unknown, not false. `.unused` are the hypotheses whose form was
    not recognised. Printing shows every fact with its derivation, each derivation once.
    """

    MEANT: ClassVar = {
        "rank": ".rank_at_most, an upper bound for all sizes",
        "properties": ".holds(property), or iterate",
    }

    def __init__(
        self, subject: sympy.Basic, known: dict[str, Fact], unused: tuple[Any, ...] = ()
    ) -> None:
        self.subject = subject
        self.unused = unused
        self._known = {name: known[name] for name in PROPERTIES if name in known}

    @property
    def rank_at_most(self) -> sympy.Expr:
        """An upper bound on the rank for all sizes, as an expression in the sizes."""
        return self._known["rank_at_most"].value

    def holds(self, name: str) -> bool:
        """Return whether the property is known to hold; False means unknown.

        Raises OtimesError for an unknown property.
        """
        return self.get(name) is not None

    def get(self, name: str) -> Fact | None:
        """Return the fact with its derivation, or None where it is unknown."""
        return self._known.get(_known_name(name))

    def __iter__(self) -> Iterator[Fact]:
        return iter(self._known.values())

    def __len__(self) -> int:
        return len(self._known)

    def __str__(self) -> str:
        lines = [f"{_name(self.subject)}  ({show_shape(self.subject.shape)})"]
        printed: set[Fact] = set()
        for fact in self:
            if fact not in printed:
                lines += [f"  {line}" for line in _derivation(fact, printed)]
        lines += [f"  not used: {_name_of_hypothesis(each)}" for each in self.unused]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<facts of {_name(self.subject)}: {', '.join(self._known)}>"

    def _repr_html_(self) -> str:
        printed: set[Fact] = set()
        items = [_html(fact, printed) for fact in self if fact not in printed]
        items += [f"<li>not used: {escape(_name_of_hypothesis(e))}</li>" for e in self.unused]
        head = f"{escape(_name(self.subject))} ({escape(show_shape(self.subject.shape))})"
        return f"<div><b>{head}</b><ul>{''.join(items)}</ul></div>"


def _known_name(name: str) -> str:
    """Return the name of a property in `PROPERTIES`. Raises OtimesError for an unknown one."""
    name = OTHER_NAMES.get(name, name)
    if name not in PROPERTIES:
        raise OtimesError(f"there is no property {name!r}; known are {', '.join(PROPERTIES)}")
    return name


def _printed(fact: Fact, printed: set[Fact]) -> tuple[Fact, str, list[Fact]]:
    """Return the fact to print, its rule, and its premises (() if they were printed before)."""
    while fact.rule == SAME:
        printed.add(fact)
        (fact,) = fact.premises
    above = fact in printed and bool(fact.premises)
    printed.add(fact)
    return (
        (fact, "see above", []) if above else (fact, fact.rule, list(dict.fromkeys(fact.premises)))
    )


def _derivation(fact: Fact, printed: set[Fact]) -> list[str]:
    fact, why, premises = _printed(fact, printed)
    below = [f"  {line}" for premise in premises for line in _derivation(premise, printed)]
    return [f"{fact}: {why}", *below]


def _html(fact: Fact, printed: set[Fact]) -> str:
    fact, why, premises = _printed(fact, printed)
    inner = "".join(_html(premise, printed) for premise in premises)
    below = f"<ul>{inner}</ul>" if inner else ""
    return f"<li>{escape(str(fact))}: <i>{escape(why)}</i>{below}</li>"


def _name(expression: Any) -> str:
    is_family = isinstance(expression, Family)
    return f"every {expression.name}" if is_family else short_text(expression, 70)


def _name_of_hypothesis(hypothesis: Any) -> str:
    if isinstance(hypothesis, Fact):
        return str(hypothesis)
    lhs, rhs = hypothesis
    return f"{_name(lhs)} = {_name(rhs)}"
