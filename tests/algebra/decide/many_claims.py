"""A count of what is said of many random claims while nothing tries numbers.

    python -m tests.algebra.decide.many_claims names=2000 functions=10000 --seed 20261

Each generator of claims draws as many as asked for. With trials off, a wrong proof has nothing that
hides it: whatever is proved is proved by proof alone. Its certificate is replayed, and both sides
are computed at numbers by the evaluator of that generator, which shares nothing with the judge. One
claim in `TRIED` is decided with trials too, so that refutations are counted and their numbers
confirmed.
Every line of the output is one generator; a fault is printed with the claim.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from statistics import median
from typing import Any, NamedTuple

import sympy

from otimes.algebra.decide.certificate import to_json
from otimes.algebra.errors import OtimesError
from otimes.algebra.language.binders import standardised
from otimes.algebra.language.index_arithmetic import elaborated
from otimes.algebra.language.shapes import inspect
from otimes.algebra.mutations import mutants
from otimes.algebra.verdict import Verdict, decide
from otimes.proofs import replay
from tests.algebra.decide import (
    conditional,
    depth_claims,
    function_claims,
    indices,
    test_function_claims,
    test_generated,
)
from tests.algebra.decide.adversarial import Attack
from tests.algebra.decide.adversarial_plain import Plain
from tests.algebra.decide.attack import Claim, false_at, fault_of, proof_alone
from tests.algebra.decide.statements import Statements

TRIED = 10  # of so many claims, one is decided with trials
CLOSE = 1e-9  # between sums of a few products of numbers of order 1, in double precision


class Drawn(NamedTuple):
    """A claim, whether it is meant to be true, and who says that a verdict is wrong."""

    lhs: Any
    rhs: Any
    given: Any
    true: bool
    proved_wrongly: Callable[[Verdict], str | None]
    refuted_wrongly: Callable[[Verdict], str | None]
    lemmas: Any = ()


def attacks(attack: Callable[[int], Any], seed: int) -> Iterator[Drawn]:
    """Yield claims about names, or plain ones, which may be true or not."""
    while True:
        yield _scoped(attack(seed).claim(), False, seed)
        seed += 1


def _scoped(claim: Claim, true: bool, seed: int) -> Drawn:
    def proved(_: Verdict) -> str | None:
        return str(world) if (world := false_at(claim, seed)) else None

    def refuted(verdict: Verdict) -> str | None:
        return fault_of(claim, verdict.counterexample)

    return Drawn(claim.lhs, claim.rhs, claim.given, true, proved, refuted)


def depths(seed: int) -> Iterator[Drawn]:
    """Yield claims for every depth: those of the suite with one or two mistakes made in them."""
    draw = random.Random(seed)
    plain = [sides for sides in depth_claims.TRUE.values() if len(sides) == 2]
    while True:
        sides = list(draw.choice(plain))
        changes = draw.choice((0, 1, 1, 2))
        for _ in range(changes):
            at = draw.randrange(2)
            several = [one.expression for one in mutants(sides[at])]
            sides[at] = draw.choice(several or [sides[at]])
        if getattr(sides[0], "shape", ()) == getattr(sides[1], "shape", ()):
            yield _scoped(depth_claims.claim(*sides), not changes, draw.randrange(10**6))


def statements(seed: int) -> Iterator[Drawn]:
    """Yield identities and near misses in the language without hypotheses."""
    made, draw = Statements(seed), random.Random(seed)
    while True:
        for true in (True, False):
            lhs, rhs, _ = made.identity() if true else made.near_miss()

            def proved(_: Verdict, lhs: Any = lhs, rhs: Any = rhs) -> str | None:
                worlds = test_generated.WORLDS
                same = all(test_generated.agree(lhs, rhs, world, draw) for world in worlds)
                return None if same else "the sides differ"

            def refuted(verdict: Verdict, lhs: Any = lhs, rhs: Any = rhs) -> str | None:
                return None if test_generated.confirmed(verdict, lhs, rhs) else "not confirmed"

            yield Drawn(lhs, rhs, (), true, proved, refuted)


def hypotheses(seed: int) -> Iterator[Drawn]:
    """Yield identities and near misses under hypotheses of every kind."""
    draw = random.Random(seed)
    of_kind = [conditional.Claims(kind, seed + k) for k, kind in enumerate(conditional.KINDS)]
    while True:
        made, true = draw.choice(of_kind), draw.random() < 0.5
        lhs, rhs, _ = made.identity() if true else made.near_miss()

        def proved(_: Verdict, made: Any = made, lhs: Any = lhs, rhs: Any = rhs) -> str | None:
            same = test_generated.hold_together(made.kind, lhs, rhs, draw)
            return None if same else "the sides differ"

        def refuted(verdict: Verdict, lhs: Any = lhs, rhs: Any = rhs) -> str | None:
            return None if test_generated.confirmed(verdict, lhs, rhs) else "not confirmed"

        yield Drawn(lhs, rhs, made.kind.given, true, proved, refuted)


def functions(seed: int) -> Iterator[Drawn]:
    """Yield claims about functions, masks, positions, powers, layers and signs."""
    made, draw = function_claims.Claims(seed), random.Random(seed)
    while True:
        for true in (True, False):
            claim = made.identity() if true else made.near_miss()

            def proved(verdict: Verdict, claim: Any = claim) -> str | None:
                try:
                    test_function_claims.hold_together(claim, verdict, draw)
                except AssertionError as wrong:
                    return str(wrong)
                return None

            def refuted(verdict: Verdict, claim: Any = claim) -> str | None:
                confirmed = test_function_claims.is_confirmed(claim, verdict)
                return None if confirmed else "not confirmed"

            meant = true and not claim.open
            yield Drawn(claim.lhs, claim.rhs, claim.given, meant, proved, refuted, claim.lemmas)


def positions(seed: int) -> Iterator[Drawn]:
    """Yield claims of index arithmetic, with one or two indices wrong."""
    draw = random.Random(seed)
    plain = [sides for sides in indices.TRUE.values() if len(sides) == 2]
    plain = [sides for sides in plain if not any(side.has(sympy.Inverse) for side in sides)]
    while True:
        sides = list(draw.choice(plain)[:2])
        changes = draw.choice((0, 1, 1, 2, 2, 3))
        for _ in range(changes):
            at = draw.randrange(2)
            sides[at] = draw.choice([*indices.near_misses(sides[at])] or [sides[at]])
        lhs, rhs = sides
        if _is_size(lhs, rhs):
            continue

        def gap(lhs: Any = lhs, rhs: Any = rhs) -> float:
            return max(indices.apart(lhs, rhs, k) for k in range(12))

        def proved(_: Verdict, gap: Callable[[], float] = gap) -> str | None:
            return f"{gap()} apart" if gap() > CLOSE else None

        def refuted(_: Verdict, gap: Callable[[], float] = gap) -> str | None:
            return None if gap() > CLOSE else "the sides agree in loops"

        yield Drawn(lhs, rhs, (), not changes, proved, refuted)


def _is_size(*sides: Any) -> bool:
    """Return whether an index has become a size, 1 or more; the loops draw it from 0 on."""
    try:
        plain, _ = elaborated(sides)
        return bool({"i", "j"} & inspect(*standardised(plain).sides).sizes.keys())
    except OtimesError:
        return False


GENERATORS: dict[str, tuple[Callable[[int], Iterator[Drawn]], float]] = {  # and its budget
    "names": (lambda seed: attacks(Attack, seed), 0.05),
    "plain": (lambda seed: attacks(Plain, seed), 0.1),
    "statements": (statements, 1),
    "hypotheses": (hypotheses, 0.1),
    "functions": (functions, 0.06),
    "positions": (positions, 0.1),
    "depths": (depths, 0.1),
}


def counted(name: str, many: int, seed: int) -> dict[str, Any]:
    """Return what was said of claims of one generator, and print each fault."""
    claims, budget = GENERATORS[name][0](seed), GENERATORS[name][1]
    said: Counter[str] = Counter()
    replays: list[float] = []
    began = time.process_time()
    for number in range(many):
        claim = next(claims)
        outcome, why = outcome_of(claim, budget, number % TRIED == 0, replays)
        said[outcome] += 1
        if why:
            said["faults"] += 1
            print(f"{name}, claim {number} of seed {seed}: {outcome}, {why}", flush=True)
            print(f"  {claim.lhs}\n= {claim.rhs}\n  given {claim.given}", flush=True)
    spent = time.process_time() - began
    found = {"generator": name, "seed": seed, "claims": many, **said}
    return found | {
        "certificates": len(replays),
        "replay_median_ms": round(1000 * median(replays), 3) if replays else None,
        "cpu_s": round(spent, 1),
    }


def outcome_of(
    claim: Drawn, budget: float, trials: bool, replays: list[float]
) -> tuple[str, str | None]:
    """Return what was said of a claim, and what is wrong with it or None."""
    try:
        with nullcontext() if trials else proof_alone():
            verdict = decide(claim.lhs, claim.rhs, claim.given, budget, lemma=claim.lemmas)
            if verdict.status == "proved":
                made = json.loads(to_json(verdict.certificate or {}))
    except OtimesError:
        return "refused", None
    kind = "true" if claim.true else "open"
    if verdict.status == "refuted":
        wrong = "it is true" if claim.true else claim.refuted_wrongly(verdict)
        return ("wrongly refuted" if wrong else "refuted"), wrong
    if verdict.status == "undecided":
        return f"undecided, {kind}", None
    if wrong := claim.proved_wrongly(verdict):
        return "wrongly proved", wrong
    started = time.process_time()
    try:
        replay.check(made)
    except replay.Rejected as reason:
        return "certificate rejected", str(reason)
    replays.append(time.process_time() - started)
    return f"proved, {kind}", None


def main(arguments: list[str]) -> int:
    """Print a line for each generator; return 1 if there was a fault."""
    reader = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    reader.add_argument("counts", nargs="+", metavar="GENERATOR=COUNT")
    reader.add_argument("--seed", type=int, default=1)
    asked = reader.parse_args(arguments)
    faults = 0
    for each in asked.counts:
        name, many = each.split("=")
        found = counted(name, int(many), asked.seed)
        faults += found.get("faults", 0)
        print(json.dumps(found), flush=True)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
