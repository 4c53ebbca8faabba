"""A claim: two sides and their hypotheses, checked, and with unique names."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import sympy

from otimes.algebra.decide.admissible import admits
from otimes.algebra.decide.axiom_statements import Instance
from otimes.algebra.decide.counterexample import with_positive_entries, with_thirds
from otimes.algebra.decide.empty_ranges import not_evaluated, refuse_short_sums
from otimes.algebra.decide.induction import depths_of
from otimes.algebra.decide.orders import orders_of
from otimes.algebra.decide.rolled import is_rolled_out
from otimes.algebra.decide.satisfy import holds, rolled_in, satisfying
from otimes.algebra.errors import LanguageError, OtimesError, ShapeError
from otimes.algebra.evaluate.exact import Assignment
from otimes.algebra.language.affine import AffineMember
from otimes.algebra.language.assumptions import condition, inequalities_of
from otimes.algebra.language.binders import standardised
from otimes.algebra.language.constants import PI
from otimes.algebra.language.defined import unfolded
from otimes.algebra.language.index_arithmetic import elaborated, without_arithmetic
from otimes.algebra.language.inverse_members import with_named_inverses
from otimes.algebra.language.linear import Family
from otimes.algebra.language.nonlinear import Activation, LayerNorm, RMSNorm, RowSoftmax
from otimes.algebra.language.shape_messages import Shape, renamed, show_shape
from otimes.algebra.language.shapes import inspect_shapes, same_shape, with_ranges
from otimes.algebra.language.signature import Signature
from otimes.algebra.language.sympy_forms import in_language
from otimes.algebra.language.trees import parts_of
from otimes.algebra.language.unicode import short_text


class Claim:
    """Two sides of one shape, and their hypotheses, with unique names.

    `origin` maps renamed symbols to the user's. Instances of lemmas, `cited`, are used like
    hypotheses and follow them in `given`; `lemmas` may be cited in the proof of another claim.
    `places` are the numbers that the equations of the hypotheses have in a certificate, where there
    are `facts` such equations, the first `fixed` of which are hypotheses of the whole claim.
    Raises ShapeError or LanguageError.
    """

    def __init__(
        self, lhs: Any, rhs: Any, given: Sequence[Any] = (), cited: Sequence[Any] = ()
    ) -> None:
        pairs = given if isinstance(given, Iterable) else ()
        said = [tuple(each) if isinstance(each, list) else each for each in pairs]
        self.asked = lhs, rhs, tuple(said)  # as they were
        self.shown = self.asked  # without what stands for something in it
        hypotheses, self.inequalities, self.numbers = _split(given)
        self.cited, self.lemmas = tuple(cited), tuple[Any, ...]()
        self.given: tuple[tuple[Any, Any], ...] = ()
        self.folded: tuple[Any, ...] | None = None  # sides and hypotheses with definitions in them
        self.is_simple = False  # whether only a short proof is looked for
        self.is_last = False  # whether it is what a claim about a position says of the last one
        self.of_products: tuple[Instance, ...] = ()  # axioms about products that are matrices in it
        self.besides: tuple[Any, ...] = ()  # what is read as well, so that sizes are cut alike
        self.orders_done: frozenset[Any] = frozenset()  # by the inductions around it
        self.facts = self.fixed = len(hypotheses)
        self.places = tuple(range(self.facts))
        hypotheses += [(each.lhs, each.rhs) for each in cited]
        self.numbers += (-1,) * len(self.cited)
        compared = [in_language(side) for each in self.inequalities for side in each.args]
        sides = [_expression(lhs), _expression(rhs), *compared]
        self.within: frozenset[tuple[Any, Any]] = frozenset()  # claims it is a premise of
        self.whole: tuple[Any, ...] = ()  # of a premise: all sides of the claim that is decided
        self.latest: tuple[Any, Any, Any] | None = None  # the last layer, the depth, its number
        self.condition: Callable[[Assignment], bool] = lambda _: True  # no equation
        taken: list[Any] = []

        def take(*what: Any) -> None:
            taken.append(what)
            self._take(*what)

        without_arithmetic(take, sides, hypotheses, len(compared))
        if len(taken) > 1:  # what was refused has index arithmetic
            stated = [*sides, *[side for pair in hypotheses for side in pair]]
            refuse_short_sums(stated, {*self.signature.sizes}, self.assumptions)

    def _take(self, sides: Sequence[Any], hypotheses: Sequence[Any]) -> None:
        """Take the sides, those of the inequalities, and the hypotheses, after a check."""
        (self.lhs, self.rhs, *compared), pairs, self.origin = standardised(sides, hypotheses)
        self._take_given(pairs)
        pairs_compared = zip(compared[::2], compared[1::2], strict=True)
        self.inequalities = tuple(
            type(each)(*pair, evaluate=False)
            for each, pair in zip(self.inequalities, pairs_compared, strict=True)
        )
        conditions = [condition(each) for each in self.inequalities]
        sides = [side for pair in self.given for side in pair]
        compared = [each.expression for each in conditions]
        try:
            self.signature, shapes = inspect_shapes(self.lhs, self.rhs, *sides, *compared)
            known = self.signature.assumptions.under(conditions, self.signature.roots)
            self.signature.assumptions = self.assumptions = known
            shapes = shapes[: 2 + len(sides)]
            for left, right in zip(shapes[::2], shapes[1::2], strict=True):
                if not same_shape(left, right):
                    raise ShapeError(_different_shapes(left, right))
        except OtimesError as error:
            if not self.origin:
                raise
            raise type(error)(f"{error}{renamed(self.origin)}") from None
        if self.signature.folded:
            self.folded = self.lhs, self.rhs, *self.given
        self.lhs, self.rhs = map(self._stated, (self.lhs, self.rhs))
        self.given = tuple((self._stated(left), self._stated(right)) for left, right in self.given)

    def _take_given(self, pairs: Sequence[Any]) -> None:
        """Take the hypotheses, those that index arithmetic adds before the instances of lemmas."""
        own, rest = pairs[: self.facts], pairs[self.facts :]
        cited, added = rest[: len(self.cited)], rest[len(self.cited) :]
        self.given = (*own, *added, *cited)
        self.numbers = (
            *self.numbers[: len(own)],
            *[-1] * len(added),
            *self.numbers[len(own) :],
        )
        if added:
            self.facts = self.fixed = len(own) + len(added)
            self.places = tuple(range(self.facts))

    def _stated(self, side: Any) -> Any:
        """Return a side with definitions unfolded, and with the ranges of its indices."""
        side = unfolded(side) if self.signature.folded else side
        return with_ranges(side, self.signature)

    def with_members_inverted(self) -> Claim | None:
        """Return the claim with a family for the inverses of the members of another, or None."""
        if self.cited:
            return None
        try:
            (lhs, rhs), given = elaborated(self.sides, self.given)
        except OtimesError:
            return None
        if tuple(given) == self.given and (lhs, rhs) == self.sides:
            return None
        return self.rewritten(lhs, rhs, given)

    def with_inverses_named(self) -> Claim:
        """Return the claim with a matrix for each inverse of a matrix symbol, or itself."""
        (lhs, rhs), given, _ = with_named_inverses(self.sides, self.equations)
        if self.cited or len(given) == len(self.equations):
            return self
        return self.rewritten(lhs, rhs, given)

    def rewritten(self, lhs: Any, rhs: Any, given: Sequence[Any]) -> Claim:
        """Return the claim written otherwise, with more hypotheses, which say what is in it."""
        made = Claim(lhs, rhs, (*given, *self.inequalities))
        made.numbers = (*self.numbers, *[-1] * (len(given) - len(self.given)))
        made.origin, made.shown = {**self.origin, **made.origin}, self.shown
        return made

    @property
    def sides(self) -> tuple[sympy.Basic, sympy.Basic]:
        """Both sides."""
        return self.lhs, self.rhs

    @property
    def stated(self) -> tuple[Any, ...]:
        """All sides of the claim that is decided, at values at which they are defined."""
        return self.whole or (*self.sides, *[side for pair in self.given for side in pair])

    @property
    def parts(self) -> tuple[Hashable, ...]:
        """All that a decision on the claim depends on, the instances of lemmas by identity."""
        asked = self.asked, self.shown, self.folded, self.whole
        about = *self.origin.items(), self.latest, self.besides, self.is_simple, self.is_last
        numbered = self.numbers, self.places, self.facts, self.fixed
        cited = tuple(map(id, self.cited)), tuple(map(id, self.lemmas))
        products = tuple((one.axiom, one.form, one.lhs) for one in self.of_products)
        stated = self.sides, self.given, self.inequalities, *asked
        return *stated, *numbered, *cited, products, about, self.within, self.orders_done

    @property
    def not_evaluated(self) -> frozenset[Any]:
        """The parts that may have no value, and that the claim need not evaluate."""
        return not_evaluated(self.stated)

    @property
    def depths(self) -> list[sympy.Symbol]:
        """The symbols over which induction may prove the claim."""
        found = depths_of(self.lhs, self.rhs, sizes=self.signature.sizes.values())
        indices = {index for index, _ in self.signature.indices.values()}
        return [depth for depth in found if depth not in indices]

    @property
    def equations(self) -> tuple[Any, ...]:
        """The equations among the hypotheses."""
        return self.given[: len(self.given) - len(self.cited)]

    @property
    def is_affine(self) -> bool:
        """Whether a side has members of families at affine indices."""
        return any(side.has(AffineMember) for side in self.sides)

    @property
    def has_members(self) -> bool:
        """Whether a side or a hypothesis has members of families at affine indices."""
        return any(side.has(AffineMember) for pair in (self.sides, *self.given) for side in pair)

    @property
    def recurrences(self) -> list[sympy.Symbol]:
        """The symbols up to which members are numbered, as n in S[n]; induction goes over them."""
        members = {m for side in self.sides for m in parts_of(side, AffineMember)}
        found = {s for m in members for constant, _ in m.forms for s in constant.free_symbols}
        return sorted(found - {*self.depths}, key=str)

    @property
    def hypotheses(self) -> tuple[Any, ...]:
        """The equations and the inequalities, for another claim with the same hypotheses."""
        return (*self.equations, *self.inequalities)

    def premise(self, lhs: Any, rhs: Any, cited: Sequence[Any] = ()) -> Claim:
        """Return another claim with the same hypotheses."""
        found = Claim(lhs, rhs, self.hypotheses, cited)
        found.orders_done = self.orders_done
        return found.placed(self.places, self.facts, self.fixed)

    def premise_on(self, lhs: Any, rhs: Any) -> Claim:
        """Return a premise of an axiom, without hypotheses where they can say nothing of it.

        They have its matrices in functions only, so what they say is of the values of these, and
        it has none of them.
        """
        apart = not _tensors((lhs, rhs)) & _tensors(map(_outside, self.sides_given))
        if self.given and apart and not _functions((lhs, rhs)) & _functions(self.sides_given):
            return Claim(lhs, rhs, self.inequalities).placed((), self.facts, self.fixed)
        return self.premise(lhs, rhs, self.cited)

    @property
    def sides_given(self) -> list[Any]:
        """The sides of all hypotheses."""
        return [side for pair in self.given for side in pair]

    def placed(self, places: Sequence[int], facts: int, fixed: int) -> Claim:
        """Return the claim, with the numbers of its hypotheses in a certificate."""
        self.places, self.facts, self.fixed = tuple(places), facts, fixed
        return self

    def source(self, number: int) -> Any:
        """Return the number of an equation in a certificate, or the instance of a lemma."""
        own = len(self.given) - len(self.cited)
        return self.places[number] if number < own else self.cited[number - own]

    @property
    def orders(self) -> list[sympy.Symbol]:
        """The symbols of orders over which induction may prove the claim."""
        return [k for k in orders_of(*self.sides) if k not in self.orders_done]

    def draw(self, signature: Signature, *how: Any) -> Assignment | None:
        """Return an assignment at which the hypotheses hold, or None if this draw found none.

        Half of those for a claim with logarithms, roots or divisions have positive entries only,
        and half of those for one with π have thirds of integers.
        """
        found = satisfying(self.given, signature, *how)
        if found is not None and PI in signature.scalars.values() and how[0].random() < 0.5:
            thirds = with_thirds(found, signature)
            found = thirds if admits(signature, thirds) and holds(self.given, thirds) else found
        if found is None or not self.signature.partial or how[0].random() < 0.5:
            return found
        positive = with_positive_entries(found, signature)
        return positive if holds(self.given, positive) else found

    @property
    def defined(self) -> frozenset[str]:
        """The names of the families that recurrences among the hypotheses define."""
        return frozenset(n for n in self.signature.tensors if is_rolled_out(n, self.given))

    def completed(self, assignment: Assignment) -> Assignment:
        """Return an assignment with the families that recurrences define computed from others."""
        return rolled_in(self.given, assignment)

    def allows(self, assignment: Assignment) -> bool:
        """Return whether the hypotheses hold at an assignment."""
        fits = admits(self.signature, assignment) and self.condition(assignment)
        return fits and holds(self.given, assignment)


def _tensors(expressions: Iterable[Any]) -> set[Any]:
    """Return the matrices, families and scalars in expressions."""
    atoms = (sympy.MatrixSymbol, Family, sympy.Symbol)
    found = {atom for e in expressions for atom in parts_of(e, *atoms)}
    return {a for a in found if not (isinstance(a, sympy.Symbol) and a.is_integer)}


def _functions(expressions: Iterable[Any]) -> set[Any]:
    """Return the functions in expressions."""
    return {f for e in expressions for f in parts_of(e, Activation, RowSoftmax, RMSNorm, LayerNorm)}


def _outside(e: Any) -> Any:
    """Return an expression without the functions in it."""
    functions = _functions([e])
    return e.xreplace({f: sympy.MatrixSymbol("·", *f.shape) for f in functions})


def _split(given: Sequence[Any]) -> tuple[list[Any], tuple[Any, ...], tuple[int, ...]]:
    """Return (equations, inequalities, positions of the equations) of a list of hypotheses."""
    if not isinstance(given, Iterable):
        raise LanguageError(
            f"the hypotheses are a list, and {type(given).__name__} {_one_line(given)} was given: "
            "write given=[…]"
        )
    equations, compared, numbers = [], [], []
    for number, each in enumerate(given):
        inequalities = inequalities_of(each)
        if inequalities is None:
            equations.append(_hypothesis(each))
            numbers.append(number)
        else:
            compared += inequalities
    return equations, tuple(compared), tuple(numbers)


def _hypothesis(each: Any) -> tuple[sympy.Basic, sympy.Basic]:
    if isinstance(each, sympy.Eq):
        return _expression(each.lhs), _expression(each.rhs)
    if isinstance(each, tuple | list) and len(each) == 2:
        return _expression(each[0]), _expression(each[1])
    raise LanguageError(
        "a hypothesis is a pair (left, right), a sympy.Eq or an inequality such as sympy.Ne(a, 0), "
        f"and {type(each).__name__} {_one_line(each)} was given"
    )


def _expression(side: Any) -> sympy.Basic:
    if isinstance(side, int | Fraction) and not isinstance(side, bool):
        return sympy.Rational(side)
    if isinstance(side, sympy.Basic):
        return in_language(side)
    if isinstance(side, sympy.MatrixBase):
        return in_language(side.as_immutable())
    raise LanguageError(
        f"decide was given {type(side).__name__} {_one_line(side)}: each side is a SymPy "
        "expression, such as MatrixSymbol('A', n, m) * MatrixSymbol('B', m, p)"
    )


def _one_line(given: Any, width: int = 60) -> str:
    if isinstance(given, sympy.Basic):
        return short_text(given, width)
    if isinstance(given, tuple | list):
        text = f"({', '.join(_one_line(each, width) for each in given)})"
    else:
        text = " ".join(repr(given).split())
    return text if len(text) <= width else text[: width - 1] + "…"


def _different_shapes(left: Shape | None, right: Shape | None) -> str:
    turned = left is not None and right is not None and same_shape(left, (right[1], right[0]))
    mend = "; did you mean the transpose of one side?" if turned else ""
    return f"the left side is {show_shape(left)}, the right side {show_shape(right)}{mend}"
