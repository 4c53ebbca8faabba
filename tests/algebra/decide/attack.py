"""Attacks on the judge: a claim with ways to draw numbers for it, and what a wrong verdict is.

A verdict is wrong when `proved` stands beside a world in which the hypotheses hold and the sides
differ, and when a counterexample is none: it breaks a hypothesis or an assumption, a length in it
is less than one, or the sides agree. The values come from `tests.algebra.decide.scoped`.
"""

from __future__ import annotations

import json
import operator
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import sympy
from sympy import MatrixSymbol, Symbol
from sympy.core.relational import Relational

from otimes.algebra.decide import trials
from otimes.algebra.errors import OtimesError
from otimes.algebra.language.linear import Family, FamilyMember
from otimes.algebra.language.trees import rebuilt
from otimes.algebra.verdict import Verdict, decide
from otimes.proofs.replay import Rejected, check
from tests.algebra.decide.scoped import NoValue, World, differ, real, value

LARGE = (5, 6, 7)
WORLDS = 4
BUDGET = 0.2  # what `decide` may spend on a claim: more costs time, and only adds verdicts
COMPARED: dict[type, Callable[[Any, Any], bool]] = {
    sympy.Unequality: operator.ne,
    sympy.StrictGreaterThan: operator.gt,
    sympy.GreaterThan: operator.ge,
    sympy.StrictLessThan: operator.lt,
    sympy.LessThan: operator.le,
}
Binding = dict[Any, Any]  # the indices in scope, each with what the innermost binder says of it


@contextmanager
def proof_alone() -> Iterator[None]:
    """Let nothing try numbers: what is proved is proved by proof alone, and nothing is refuted."""
    kept = trials.search
    trials.search = lambda *_, **__: None
    try:
        yield
    finally:
        trials.search = kept


def judged(claim: Claim, seed: int) -> tuple[Verdict | None, str | None]:
    """Return the verdict on a claim, None for a refusal, and what is wrong with it, if anything."""
    try:
        verdict = decide(claim.lhs, claim.rhs, claim.given, budget=BUDGET)
        found = verdict.counterexample
    except OtimesError:
        return None, None
    if verdict.status == "proved":
        world = false_at(claim, seed)
        return verdict, world and f"proved, and false at {world}"
    if found is not None and (why := fault_of(claim, found)):
        return verdict, f"refuted, but {why}:\n{found}"
    return verdict, None


def fault(claim: Claim, seed: int) -> str | None:
    """Return what is wrong with the verdict on a claim, or None: it is right, or a refusal."""
    return judged(claim, seed)[1]


def rejected(verdict: Verdict) -> str | None:
    """Return why a proof does not pass the checker, or None: its certificate is accepted."""
    if verdict.certificate is None:
        return "no certificate"
    try:
        check(json.loads(json.dumps(verdict.certificate)))
    except Rejected as why:
        return str(why)
    return None


@dataclass
class Claim:
    """A claim, and how to draw numbers for it: its sizes, and what satisfies its hypotheses."""

    lhs: Any
    rhs: Any
    given: list[Any] = field(default_factory=list)  # pairs, and inequalities of scalars
    dims: list[Any] = field(default_factory=list)  # symbols of sizes of matrices
    counts: list[Any] = field(default_factory=list)  # symbols of numbers of heads and layers
    free: Binding = field(default_factory=dict)  # the free indices of hypotheses
    model: Callable[[World], None] | None = None
    kind: str = ""

    def worlds(self, seed: int, many: int = WORLDS) -> Iterator[World]:
        """Yield worlds, most of them with large counts, and all with matrices of few rows."""
        draw = random.Random(seed)
        for k in range(many):
            sizes = {size: draw.choice((1, 1, 2, 2, 3)) for size in self.dims}
            several = (1, 2, 3, 4, 5) if k == 1 else LARGE
            sizes.update({count: draw.choice(several) for count in self.counts})
            world = World(sizes, draw.randrange(10**9))
            if self.model is not None:
                self.model(world)
            yield world

    def __str__(self) -> str:
        given = "".join(f"\n  given {each}" for each in self.given)
        return f"[{self.kind}]\n  {self.lhs}\n= {self.rhs}{given}"


def false_at(claim: Claim, seed: int, many: int = WORLDS) -> World | None:
    """Return a world in which the hypotheses hold and the sides differ, or None."""
    for world in claim.worlds(seed, many):
        try:
            if satisfied(claim, world) and differ(claim.lhs, claim.rhs, world):
                return world
        except NoValue:
            continue
    return None


def satisfied(claim: Claim, world: World) -> bool:
    """Return whether every hypothesis holds at every value of its free indices."""
    for each in claim.given:
        if isinstance(each, Relational):
            left, right = (real(value(side, world)) for side in each.args)
            if not COMPARED[type(each)](left, right):
                return False
            continue
        x, y = each
        mine = [i for i in claim.free if i in x.free_symbols | y.free_symbols]
        spaces: list[dict[Any, int]] = [{}]
        for i in mine:
            count = world.symbol(claim.free[i]) if isinstance(claim.free[i], Symbol) else 0
            several = range(count or int(claim.free[i]))
            spaces = [{**at, i: k} for at in spaces for k in several]
        outside = world.indices
        for at in spaces:
            world.indices = {**outside, **at}
            if differ(x, y, world):
                world.indices = outside
                return False
        world.indices = outside
    return True


def fault_of(claim: Claim, found: Any) -> str | None:
    """Return what is wrong with a counterexample, or None where nothing is."""
    world = World({**found.sizes}, 0)
    world.indices = dict(found.indices)
    world.numbers = dict(found.scalars)
    world.functions = dict(found.functions)
    given = [each.args if isinstance(each, Relational) else each for each in claim.given]
    sides = [claim.lhs, claim.rhs, *[side for pair in given for side in pair]]
    for symbol, number in found.scalars.items():
        if not admissible(symbol, number):
            return f"{symbol} = {number} is not what {symbol._assumptions_orig} declares"
    for tensor in {part for e in sides for part in e.atoms(MatrixSymbol, Family)}:
        array = found.arrays[tensor.name]
        if isinstance(tensor, Family):
            at = product(*map(range, array.shape[:-2]))
            world.arrays[tensor] = {each: array[each].tolist() for each in at}
        else:
            world.arrays[tensor] = array.tolist()
    try:
        if not satisfied(claim, world):
            return "the hypotheses do not hold"
        if not differ(claim.lhs, claim.rhs, world):
            return "the sides do not differ"
    except NoValue as why:
        return f"it is not admissible: {why}"
    return None


def admissible(symbol: Any, number: Any) -> bool:
    """Return whether a symbol's assumptions allow a number."""
    whole = number == int(number)
    tests = {
        "positive": number > 0,
        "negative": number < 0,
        "nonnegative": number >= 0,
        "nonpositive": number <= 0,
        "nonzero": number != 0,
        "zero": number == 0,
        "integer": whole,
        "even": whole and number % 2 == 0,
        "odd": whole and number % 2 == 1,
    }
    return all(holds for name, holds in tests.items() if symbol._assumptions_orig.get(name))


# -- smaller claims --------------------------------------------------------------------------------


def minimised(claim: Claim, seed: int) -> Claim:
    """Return a claim with the same kind of fault in which no part can be left out."""
    smaller: Claim | None = claim
    while smaller is not None:
        claim = smaller
        smaller = next((c for c in _smaller(claim) if _faulty(c, seed)), None)
    return claim


def _faulty(claim: Claim, seed: int) -> bool:
    try:
        return fault(claim, seed) is not None
    except Exception:  # noqa: BLE001 (a smaller claim may be no claim at all)
        return False


def _smaller(claim: Claim) -> Iterator[Claim]:
    for at in range(len(claim.given)):
        yield replace(claim, given=claim.given[:at] + claim.given[at + 1 :])
    for path, part in _parts(claim.lhs):  # what stands on both sides is left out on both
        other = _at(claim.rhs, path)
        for k in range(len(part.args) if type(part) is type(other) else 0):
            pairs = ((part.args[k], other.args[k]), (_without(part, k), _without(other, k)))
            for x, y in pairs if k < len(other.args) else ():
                lhs, rhs = _put(claim.lhs, path, x), _put(claim.rhs, path, y)
                if isinstance(lhs, sympy.Expr) and isinstance(rhs, sympy.Expr):
                    yield replace(claim, lhs=lhs, rhs=rhs)
    for side in ("lhs", "rhs"):
        whole = getattr(claim, side)
        for path, part in _parts(whole):
            for new in _simpler(part):
                with_new = _put(whole, path, new)
                if with_new is not None:
                    yield replace(claim, **{side: with_new})


def _parts(e: Any, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    yield path, e
    if not isinstance(e, FamilyMember | MatrixSymbol | sympy.BlockMatrix):
        for k, part in enumerate(e.args):
            if isinstance(part, sympy.Expr):
                yield from _parts(part, (*path, k))


def _simpler(e: Any) -> Iterator[Any]:
    """Yield the parts of an expression that are of its kind, and it with one argument less."""
    is_matrix = getattr(e, "is_Matrix", False)
    if isinstance(e, sympy.Integer | FamilyMember | MatrixSymbol | sympy.Identity) or not e.args:
        return
    yield from (a for a in e.args if getattr(a, "is_Matrix", None) == is_matrix)
    yield from (x for k in range(len(e.args)) if (x := _without(e, k)) is not None)
    if is_matrix:
        yield from e.atoms(MatrixSymbol)


def _without(e: Any, k: int) -> Any:
    """Return a sum or a product of at least three parts without one of them, else None."""
    several = isinstance(e, sympy.MatAdd | sympy.MatMul | sympy.Add | sympy.Mul)
    return rebuilt(e, e.args[:k] + e.args[k + 1 :]) if several and len(e.args) > 2 else None


def _at(e: Any, path: tuple[int, ...]) -> Any:
    for k in path:
        if k >= len(e.args):
            return None
        e = e.args[k]
    return e


def _put(e: Any, path: tuple[int, ...], new: Any) -> Any:
    if not path:
        return new
    arguments = list(e.args)
    arguments[path[0]] = _put(arguments[path[0]], path[1:], new)
    try:
        return rebuilt(e, arguments) if None not in arguments else None
    except (OtimesError, TypeError, ValueError, AttributeError):
        return None
