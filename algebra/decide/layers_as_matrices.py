"""Products over layers as matrices of which laws are known.

Each product over a symbolic number of layers becomes one matrix, named by its layers: two products
whose layers have the same normal form are the same matrix. The laws that hold for these products
(`layer_laws`) are facts about the matrices. What is left is a claim without layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import sympy

from otimes.algebra.budget import STEPS, Budget, Exhausted, limited, spend, steps_left
from otimes.algebra.decide.axiom_statements import Instance
from otimes.algebra.decide.axioms import AXIOMS, OF_POWERS
from otimes.algebra.decide.claim import Claim
from otimes.algebra.decide.decision import Decision, LayeredProof, Proof
from otimes.algebra.decide.induction import Induction, Opened, Scope
from otimes.algebra.decide.kept import decisions_kept
from otimes.algebra.decide.layer_laws import (
    Wanted,
    beside,
    ends,
    instance,
    order_of,
    premises_of,
    statement,
    wanted,
)
from otimes.algebra.decide.lemmas import Cited
from otimes.algebra.decide.trials import without_trials
from otimes.algebra.errors import LanguageError, RuleError, ShapeError, Undecided
from otimes.algebra.language.binders import free_symbols, names_in
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import HeadSum
from otimes.algebra.language.positions import Shift
from otimes.algebra.language.shapes import inspect

Decide = Callable[[Claim], Decision]
Equation = tuple[Any, Any]
LAW = 5.0  # units for the proof of a law, which are not of the budget of a claim
PREMISE = 0.05  # units for each hypothesis of a law
STATED = 500  # steps for the claim that states it
ROUNDS = 3  # of laws about the products that other laws are about
ALL = 1_000
_KNOWN: ContextVar[int] = ContextVar("laws", default=ALL)  # that may be used
LAWS_PROVED: dict[tuple[str, bool, bool], Decision | None] = {}
_PREMISES: ContextVar[dict[Any, Decision | None] | None] = ContextVar("premises", default=None)


class AsMatrices(Opened):
    """A claim in which each product over layers is a matrix."""

    def __init__(self, same: Callable[[Any, Any], bool], names: set[str]) -> None:
        super().__init__(sympy.Dummy("all", integer=True, positive=True), same, names)

    def tag(self, e: Any) -> Any:
        """Return the number of layers, or the exponent, which is part of an expression's name."""
        if isinstance(e, HeadSum):
            return e.limits[0][1]
        return e.exp if isinstance(e, sympy.Pow) else e.count

    def unfolds(self, e: Any) -> bool:
        """Return whether an expression becomes one matrix: a product, or a sum over path orders."""
        if isinstance(e, OrderSum):
            return not (e.count.is_Integer and e.order.is_Integer)
        if isinstance(e, sympy.Pow):
            return bool(e.exp.free_symbols)
        if isinstance(e, HeadSum):
            parts = e.body.args if isinstance(e.body, sympy.KroneckerProduct) else (e.body,)
            index = e.limits[0][0]
            return len(e.limits) == 1 and any(
                isinstance(part, OrderSum) and part.order == index for part in parts
            )
        return isinstance(e, LayerProduct) and not e.count.is_Integer

    def known(self, e: Any, scope: Scope) -> Any:
        """Return the matrix for an expression. Raises RuleError if an order is an index."""
        if isinstance(e, OrderSum) and free_symbols(e.order) & {*scope}:
            raise RuleError(f"the order {e.order} is an index")
        return super().known(e, scope)


def as_matrices(claim: Claim, decided: Decide, with_laws: bool = True) -> Decision | None:
    """Return a proof of a claim from laws about its products over layers, or None.

    Without laws, only those claims are proved that hold for any matrices in place of the products.
    """
    names = names_in(*claim.sides, *[side for pair in claim.given for side in pair])
    plan = AsMatrices(same_by(decided), names)
    scope = dict(claim.signature.indices.values())

    def shown(pair: Equation) -> Equation:
        own = dict(inspect(*pair).indices.values())
        return plan.still(pair[0], {**scope, **own}), plan.still(pair[1], {**scope, **own})

    try:
        sides, given = shown(claim.sides), [shown(pair) for pair in claim.equations]
        lemmas = [each.at(*shown((each.lhs, each.rhs)), {}) for each in claim.lemmas]
        if not (plan.opaque or lemmas):
            return None  # what is left would be the same claim
        cited = laws_about(plan, claim.sides, claim.premise, decided, shown) if with_laws else []
        inner = Claim(*sides, (*given, *claim.inequalities), (*lemmas, *cited))
    except (RuleError, ShapeError, LanguageError):
        return None
    inner.placed(claim.places, claim.facts, claim.fixed)
    inner.of_products = tuple(axioms_about(plan))
    inner.within, inner.besides = claim.within, layers_of(plan)
    if claim.not_evaluated:
        inner.whole = claim.stated
    if with_laws and not inner.cited:
        return None
    found = decided(inner)
    if found.status != "proved":
        return None
    proof = Proof("layers as they are", layered=LayeredProof(plan, found))
    reason = f"each product over layers is taken as one matrix: {found.reason}"
    return Decision("proved", reason, claim, proof=proof, conditional=found.conditional)


def axioms_about(plan: AsMatrices) -> Iterator[Instance]:
    """Yield what axioms say of the products of a plan, with the matrices for these."""
    for e in [e for e in plan.opaque if isinstance(e, LayerProduct)]:
        for shift in e.body.atoms(Shift):
            for said in AXIOMS[OF_POWERS].of(shift):
                if (said.lhs.body, said.lhs.count, said.lhs.reverse) == (
                    e.body,
                    e.count,
                    e.reverse,
                ):
                    yield replace(said, lhs=plan.opaque[e])


def layers_of(plan: Opened) -> tuple[Any, ...]:
    """Return one layer of each product that is a matrix."""
    found = []
    for e in [e for e in plan.opaque if isinstance(e, LayerProduct | OrderSum)]:
        with suppress(RuleError):
            found.append(plan.still(e.body, {e.index: e.count}))
    return tuple(found)


def same_by(decided: Decide) -> Callable[[Any, Any], bool]:
    """Return whether two bodies have one normal form, whatever the hypotheses say."""

    def same(lhs: Any, rhs: Any) -> bool:
        if lhs == rhs:
            return True
        try:
            found = decided(Claim(lhs, rhs))
        except (LanguageError, ShapeError):
            return False
        return found.strategy == "one normal form" and found.status == "proved"

    return same


def laws_about(
    plan: Opened,
    sides: Iterable[Any],
    premise: Callable[[Any, Any], Claim],
    decided: Decide,
    shown: Callable[[Equation], Equation],
) -> list[Cited]:
    """Return the laws about the products of a plan whose hypotheses follow."""
    sides = list(sides)
    fresh = [sympy.Symbol(plan.fresh(name), integer=True) for name in ("layer", "other")]
    found: list[Cited] = []
    tried: set[Any] = set()
    for _ in range(ROUNDS):
        products = [e for e in plan.opaque if isinstance(e, LayerProduct | OrderSum)]
        known = {*products, *[plan.opaque[e] for e in products]}
        passing = list(dict.fromkeys([*beside(sides, known), *ends(products)]))
        new = []
        for want in wanted(products, passing, fresh):
            if order_of(want.law) >= _KNOWN.get() or want.form.count in plan.counts:
                continue  # a law is about one layer or more
            mark = want.law, want.form, tuple(value(fresh[0]) for value in want.values.values())
            if mark in tried:
                continue
            tried.add(mark)
            if (cited := _cited(want, premise, decided)) is not None:
                new.append(cited.at(*shown((cited.lhs, cited.rhs)), {}))
        if not new:
            break
        found += new
    return found


def _cited(want: Wanted, premise: Callable[[Any, Any], Claim], decided: Decide) -> Cited | None:
    """Return a law for these values if its hypotheses follow, else None."""
    proofs = []
    for lhs, rhs in premises_of(want):
        spend(STATED)
        try:
            found = _follows(premise(lhs, rhs), decided)
        except (ShapeError, LanguageError, Undecided):
            return None
        if found is None:
            return None
        proofs.append(found)
    known = law(want.law, want.form.order is not None, want.form.reverse, decided)
    if known is None or known.claim is None:
        return None
    letters = {"l": want.form.index.name, "m": want.form.other.name}
    names = [[letters[one] for one in inspect(*pair).indices] for pair in known.claim.given]
    return instance(want, known, list(zip(proofs, names, strict=True)))


def laws_known() -> int:
    """Return how many laws may be used: those before the one that is proved."""
    return _KNOWN.get()


@contextmanager
def premises_kept() -> Iterator[None]:
    """Decide each hypothesis of a law once within this context, which is one decision."""
    token = _PREMISES.set({})
    try:
        yield
    finally:
        _PREMISES.reset(token)


def _follows(asked: Claim, decided: Decide) -> Decision | None:
    """Return a short proof of a hypothesis of a law, or None."""
    kept = _PREMISES.get()
    stated = asked.sides, asked.given, asked.inequalities, asked.whole, asked.orders_done
    key = *stated, asked.places, asked.facts, asked.fixed, _KNOWN.get()
    if kept is not None and key in kept:
        return kept[key]
    asked.is_simple = True
    whole = steps_left() >= PREMISE * STEPS
    found: Decision | None = None
    with suppress(Exhausted), limited(PREMISE * STEPS), without_trials():
        found = decided(asked)
    found = found if found is not None and found.status == "proved" else None
    if kept is not None and (found is not None or whole):
        kept[key] = found
    return found


def law(name: str, ordered: bool, reverse: bool, decided: Decide) -> Decision | None:
    """Return the proof of a law, for which those before it may be used, or None.

    It is looked for once: the functions `decided` of several claims decide a law alike.
    """
    if (name, ordered, reverse) not in LAWS_PROVED:
        LAWS_PROVED[name, ordered, reverse] = _proof_of(name, ordered, reverse, decided)
    return LAWS_PROVED[name, ordered, reverse]


def _proof_of(name: str, ordered: bool, reverse: bool, decided: Decide) -> Decision | None:
    token = _KNOWN.set(order_of(name))
    try:
        with Budget(LAW, counted=False), without_trials(), premises_kept(), decisions_kept():
            found = decided(Claim(*statement(name, ordered, reverse)))
    except Exhausted:
        return None
    finally:
        _KNOWN.reset(token)
    return found if found.status == "proved" else None


def laws_of_the_step(
    plan: Induction, premise: Callable[[Any, Any], Claim], decided: Decide
) -> Sequence[Cited]:
    """Return the laws about the first L layers in the step of an induction."""
    opened = plan.opened

    def shown(pair: Equation) -> Equation:
        return opened.still(pair[0], {}), opened.still(pair[1], {})

    return laws_about(opened, plan.step, premise, decided, shown)
