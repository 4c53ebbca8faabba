"""The independent checker: it accepts every certificate, and no change that matters."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from sympy import Inverse, MatrixSymbol, Symbol

from otimes.algebra.decide.certificate import from_json, to_json
from otimes.algebra.verdict import decide
from otimes.proofs import replay
from otimes.proofs.catalogue import find
from tests.proofs.certificates import changed, changes, claims, crossed, disguised, is_false
from tests.proofs.forged import (
    FORGED,
    A,
    B,
    F,
    I,
    O,
    U,
    W,
    a,
    box,
    by_hand,
    h,
    inverse,
    inverted,
    k,
    m,
    mul,
    n,
    over,
    plus,
    square,
    t,
    use,
)

ROOT = Path(__file__).parents[2]
LONG = os.environ.get("OTIMES_LONG") == "1"
CLAIMS = claims()
CHANGES = 200 if LONG else 10  # of each certificate, drawn from several hundred
CROSSED = 100_000 if LONG else 1_000  # certificates with a part of another


def some(every: int) -> list[str]:
    """Return the claims; of those of the suite that need no facts, one in `every`."""
    return [
        name
        for number, name in enumerate(CLAIMS)
        if LONG or not name.startswith("suite: ") or CLAIMS[name][2] or number % every == 0
    ]


PROVED_HERE, CHANGED = some(2), some(6)


@cache
def certificate(name: str) -> dict[str, Any]:
    lhs, rhs, given = CLAIMS[name]
    verdict = decide(lhs, rhs, given)
    assert verdict.status == "proved", verdict.reason
    made = verdict.certificate
    assert made is not None
    return dict(json.loads(to_json(made)))


def of_theorem(name: str) -> dict[str, Any]:
    stated = find(name).statement()
    made = decide(stated.lhs, stated.rhs).certificate
    assert made is not None
    return dict(json.loads(to_json(made)))


def rejected(made: dict[str, Any]) -> bool:
    try:
        replay.check(made)
    except replay.Rejected:
        return True
    return False


@pytest.mark.parametrize("name", PROVED_HERE)
def test_every_proof_has_a_certificate_that_is_accepted(name: str) -> None:
    """Also with its terms, facts and uses in another order, its wires and symbols renumbered."""
    made = certificate(name)
    assert "cancel" in replay.check(made)
    draw = random.Random(name)
    for _ in range(3):
        replay.check(disguised(made, draw))


def test_all_rules_and_facts_are_met() -> None:
    made = [certificate(name) for name in PROVED_HERE]
    assert {each["proof"]["rule"] for each in made} == {"cancel"}
    facts = {fact[2] for each in made for fact in each["proof"].get("facts", [])}
    assert facts >= {"inverse", "inverse_of_square", "gram_zero", "function_congruence"}
    assert any(each["given"] and each["proof"]["uses"] for each in made)
    uses = [use for each in made for use in each["proof"].get("uses", [])]
    holes = [index for use in uses for index in use["context"]["hole"]]
    assert any(wire < 0 for index in holes for wire in index)  # a block of a hypothesis


def states(made: dict[str, Any]) -> str:
    """Return what a certificate claims."""
    parts = ("tensors", "scalars", "indices", "given", "nonzero", "lhs", "rhs")
    return json.dumps([len(made["sizes"]), *[made[part] for part in parts]])


def assert_true(wrong: dict[str, Any], made: dict[str, Any], draw: random.Random, at: Any) -> None:
    """Assert that a changed certificate that is accepted claims the same, or what is true."""
    if states(wrong) != states(made):
        assert not is_false(wrong, draw, 3), at


@pytest.mark.parametrize("name", CHANGED)
def test_a_changed_certificate_is_rejected_or_its_claim_is_true(name: str) -> None:
    """Exact numbers, put into the changed trees by another program, do not refute what passes."""
    draw = random.Random(name)
    made = certificate(name)
    every = list(changes(made))
    accepted = 0
    for path, value in draw.sample(every, min(CHANGES, len(every))):
        wrong = changed(made, path, value)
        if not rejected(wrong):
            accepted += 1
            assert_true(wrong, made, draw, path)
    assert accepted < 0.7 * CHANGES


def test_parts_of_other_certificates_prove_nothing_false() -> None:
    draw = random.Random(0)
    names = [name for name in PROVED_HERE if len(json.dumps(certificate(name))) < 8_000]
    accepted = 0
    for _ in range(CROSSED):
        made = certificate(draw.choice(names))
        wrong = crossed(
            made, made if draw.random() < 0.5 else certificate(draw.choice(names)), draw
        )
        if not rejected(wrong):
            accepted += 1
            assert_true(wrong, made, draw, wrong)
    assert accepted < CROSSED / 2


def that_matter(made: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield copies of a certificate, each with a change after which it proves nothing."""
    proof = made["proof"]
    uses, facts = proof.get("uses", []), proof.get("facts", [])
    if made["rhs"] != 0 and json.dumps(made["rhs"])[:12] != '["ZeroMatrix':
        yield "lhs doubled", changed(made, ["lhs"], ["MatMul", 2, made["lhs"]])
        yield "rhs doubled", changed(made, ["rhs"], ["MatMul", 2, made["rhs"]])
        if uses:
            yield "sides swapped", {**made, "lhs": made["rhs"], "rhs": made["lhs"]}
    for schema in (3, 99, 4.0, "4"):
        yield "another schema", changed(made, ["schema"], schema)
    yield "another rule", changed(made, ["proof", "rule"], "believe me")
    yield "one more part", {**made, "more": 1}
    yield "one more part of the proof", {**made, "proof": {**proof, "more": 1}}
    for part in made:
        yield "a part left out", {key: value for key, value in made.items() if key != part}
    if made["tensors"]:
        yield "a tensor undeclared", changed(made, ["tensors"], made["tensors"][:-1])
    for u, one in enumerate(uses):
        place = ["proof", "uses", u]
        yield "a use dropped", changed(made, ["proof", "uses"], uses[:u] + uses[u + 1 :])
        for factor in (2, -1):
            scaled = ["Mul", factor, one["coefficient"]]
            yield "another coefficient", changed(made, [*place, "coefficient"], scaled)
        for fact in (-1, len(made["given"]) + len(facts), "given", True, 0.0):
            yield "no such fact", changed(made, [*place, "fact"], fact)
        hole = one["context"]["hole"]
        yield "no hole", changed(made, [*place, "context", "hole"], hole[:1])
        yield "two holes", changed(made, [*place, "context", "hole"], [*hole, *hole])
        for b, part in enumerate(one["context"]["boxes"]):
            where = [*place, "context", "boxes", b, 2]
            yield "a wire too many", changed(made, where, [*part[2], 0])
            yield "a wire that is not there", changed(made, where, [99] * max(len(part[2]), 1))
    if uses:
        for g in range(len(made["given"])):
            kept = made["given"][:g] + made["given"][g + 1 :]
            yield "a hypothesis withdrawn", changed(made, ["given"], kept)


def test_changes_that_matter_are_rejected() -> None:
    told = [
        (name, change, rejected(wrong))
        for name in CHANGED[:: 4 if LONG else 8]
        if "one row" not in name  # where both sides are 0, and hypotheses are idle
        for change, wrong in that_matter(certificate(name))
    ]
    assert [(name, change) for name, change, rejected in told if not rejected] == []
    assert len(told) > (450 if LONG else 200)


# -- certificates of what is false -----------------------------------------------------------------


@pytest.mark.parametrize("name", FORGED)
def test_what_is_false_has_no_certificate(name: str) -> None:
    with pytest.raises(replay.Rejected):
        replay.check(FORGED[name])


SHIFTED = ["Add", 1, a]
AT_H, AT_K = t(F, h), t(F, k)
PROVED = {"rule": "cancel", "uses": [use(0)]}
TRUE: dict[str, dict[str, Any]] = {
    "divided by what the statement is divided by": by_hand(
        mul(over(SHIFTED), A), O, use(0, over(SHIFTED)), given=[[[], A, O]]
    ),
    "an inverse": by_hand(mul(inverse(A), A), I, use(0), facts=[inverted(A)]),
    "an inverse at a head": by_hand(
        mul(inverse(AT_H), AT_H),
        I,
        use(0),
        indices=[["h", m]],
        facts=[inverted(AT_H)],
    ),
    "an inverse at every head": by_hand(
        ["HeadSum", mul(inverse(AT_H), AT_H), m],
        mul(m, I),
        use(0, 1, [[2]], **square(sizes=[m])),
        facts=[inverted(AT_H, *[m])],
    ),
    "a square turned": by_hand(
        mul(B, A),
        I,
        use(1),
        given=[[[], mul(A, B), I]],
        facts=[["axiom", [], "inverse_of_square", 0, {"E": A, "F": B}, [PROVED]]],
    ),
    "the root of a Gram matrix": by_hand(
        U,
        ["ZeroMatrix", n, m],
        use(1),
        given=[[[], mul(["Transpose", U], U), ["ZeroMatrix", m, m]]],
        facts=[["axiom", [], "gram_zero", 0, {"X": U}, [PROVED]]],
    ),
    "a hypothesis in a context": by_hand(
        mul(B, A),
        mul(B, B),
        use(0, 1, **square(box(B, [0], [2]), sizes=[n], hole=[[2], [1]])),
        given=[[[], A, B]],
    ),
    "a product over no layers": by_hand(["LayerProduct", t(W, h), 0, False], I),
    "a root of what is": by_hand(
        plus(A, mul(["Pow", ["Pow", a, ["Rational", 1, 2]], 2], A)),
        mul(["Add", 1, a], A),
    ),
}


@pytest.mark.parametrize("name", TRUE)
def test_their_true_neighbours_have(name: str) -> None:
    """So the false ones are not rejected for a slip of the pen."""
    replay.check(TRUE[name])


def test_a_head_is_inverted_at_its_own_index() -> None:
    made = {**TRUE["an inverse at a head"], "indices": [["h", m], ["k", m]]}
    assert not rejected(made)
    assert rejected({**made, "lhs": mul(inverse(AT_H), AT_K)})
    assert rejected({**made, "lhs": mul(inverse(AT_K), AT_K)})


def test_a_symbol_called_like_an_inverse_is_no_inverse() -> None:
    size = Symbol("n", positive=True, integer=True)
    R = MatrixSymbol("R", size, size)
    assert decide(Inverse(R), MatrixSymbol("(R)⁻¹", size, size)).status == "refuted"


def test_a_false_claim_has_no_certificate() -> None:
    size = Symbol("n", positive=True, integer=True)
    R = MatrixSymbol("R", size, size)
    assert decide(R, R.T).certificate is None


def run(file: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Return a run of the checker by itself, without packages and from elsewhere."""
    command = [sys.executable, "-I", "-S", str(ROOT / "proofs" / "replay.py"), str(file), *more]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=file.parent)


def test_the_file_runs_alone(tmp_path: Path) -> None:
    """Nothing of ours on the path, no site packages: the standard library is enough."""
    made = of_theorem("two_layer_paths")
    text = to_json(made)
    nested = '["Transpose", ' * 4000 + '["tensor", 0]' + "]" * 4000
    files = {
        "good": (text, 0, "accepted"),
        "bad": (to_json({**made, "lhs": ["MatMul", 2, made["lhs"]]}), 1, "rejected"),
        "deep": (to_json({**made, "lhs": "deep"}).replace('"deep"', nested), 1, "rejected"),
        "twice": ('{"schema": 4, ' + text[1:], 1, "rejected: a key stands twice"),
        "no number": (text.replace('"schema":4', '"schema":NaN'), 1, "rejected: NaN"),
        "infinite": (text.replace('"schema":4', '"schema":-Infinity'), 1, "rejected"),
        "list": ("[]", 1, "rejected"),
        "no text": (text.replace('"schema":4', '"schema":"\\ud800"'), 1, "rejected"),
        "cut": (text[:-10], 2, "cannot read"),
        "empty": ("", 2, "cannot read"),
    }
    for name, (content, status, word) in files.items():
        file = tmp_path / f"{name}.json"
        file.write_text(content, encoding="utf-8")
        told = run(file)
        assert told.returncode == status, name + told.stdout + told.stderr
        assert told.stdout.startswith(word), name + told.stdout
    assert run(tmp_path / "none.json").returncode == 2
    assert run(tmp_path / "good.json", "another").returncode == 2


def test_json_round_trip() -> None:
    made = of_theorem("head_is_kron")
    assert from_json(to_json(made)) == made
