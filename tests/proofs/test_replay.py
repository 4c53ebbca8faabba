"""The independent checker: it accepts every certificate, and no change that matters."""

import copy
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from sympy import Identity, Inverse, MatrixSymbol, Symbol

from algebra.certificate import certificate, from_json, to_json
from algebra.decide import decide
from algebra.language import Family
from proofs import replay
from proofs.catalogue import find
from tests.proofs.certificates import changed, changes, claims, disguised, is_false

ROOT = Path(__file__).parents[2]
CLAIMS = claims()
CHANGES = 24  # of each certificate, drawn from several hundred
# The suite is large: of its claims, those that need no facts are changed one time in six.
CHANGED = [
    name
    for k, name in enumerate(CLAIMS)
    if not name.startswith("suite: ") or CLAIMS[name][2] or k % 6 == 0
]


@cache
def _certificate(name: str) -> dict[str, Any]:
    lhs, rhs, given = CLAIMS[name]
    verdict = decide(lhs, rhs, given)
    assert verdict.status == "proved", verdict.reason
    made = verdict.certificate
    assert made is not None
    return json.loads(to_json(made))


def _of_theorem(name: str) -> dict[str, Any]:
    stated = find(name).statement()
    made = decide(stated.lhs, stated.rhs).certificate
    assert made is not None
    return json.loads(to_json(made))


def rejected(made: dict[str, Any]) -> bool:
    try:
        replay.check(json.loads(json.dumps(made)))
    except replay.Rejected:
        return True
    return False


@pytest.mark.parametrize("name", CLAIMS)
def test_every_proof_has_a_certificate_that_is_accepted(name: str) -> None:
    """Also with its terms in another order, its wires and its bound indices renamed."""
    made = _certificate(name)
    assert "cancel" in replay.check(made) or made["mode"] == "same trees"
    draw = random.Random(name)
    for _ in range(3):
        replay.check(json.loads(json.dumps(disguised(made, draw))))


def test_all_modes_and_facts_are_met() -> None:
    made = [_certificate(name) for name in CLAIMS]
    assert {each["mode"] for each in made} == {"normal forms", "written out", "same trees"}
    facts = {use["fact"][0] for each in made for use in each["uses"]}
    assert facts == {"given", "turned", "root", "inverse", "axiom"}
    assert any(each["fused"] and each["uses"] for each in made)
    holes = [box[1] for each in made for box in _boxes(each) if box[0] == "hole"]
    assert any(wire < 0 for hole in holes for wire in hole)  # a block of a hypothesis


def _boxes(made: dict[str, Any]) -> Iterator[Any]:
    for use in made["uses"]:
        yield from use["context"]["boxes"]


@pytest.mark.parametrize("name", CHANGED)
def test_a_changed_certificate_is_rejected_or_its_claim_is_true(name: str) -> None:
    """Exact numbers, put into the changed trees by another program, do not refute what passes."""
    draw = random.Random(name)
    made = _certificate(name)
    every = list(changes(made))
    accepted = 0
    for path, value in draw.sample(every, min(CHANGES, len(every))):
        wrong = changed(made, path, value)
        if not rejected(wrong):
            accepted += 1
            same = wrong["mode"] == "same trees"  # e = e, whatever the shapes in e
            assert wrong["lhs"] == wrong["rhs"] if same else not is_false(wrong, draw), path
    assert accepted < CHANGES / 2


def that_matter(made: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield copies of a certificate, each with a change after which it proves nothing."""
    if made["rhs"] != 0 and json.dumps(made["rhs"])[:12] != '["ZeroMatrix':
        yield "lhs doubled", changed(made, ["lhs"], ["MatMul", 2, made["lhs"]])
        yield "rhs doubled", changed(made, ["rhs"], ["MatMul", 2, made["rhs"]])
        if made["uses"]:
            turned = {**made, "lhs": made["rhs"], "rhs": made["lhs"]}
            yield "sides swapped", turned
    yield "another schema", changed(made, ["schema"], 99)
    yield "another mode", changed(made, ["mode"], "believe me")
    for name in made["tensors"]:
        kept = {key: value for key, value in made["tensors"].items() if key != name}
        yield "a tensor undeclared", changed(made, ["tensors"], kept)
    for k, use in enumerate(made["uses"]):
        yield "a use dropped", changed(made, ["uses"], made["uses"][:k] + made["uses"][k + 1 :])
        for factor in (2, -1):
            scaled = ["Mul", factor, use["coefficient"]]
            yield "another coefficient", changed(made, ["uses", k, "coefficient"], scaled)
        unlisted = ["given", len(made["given"])]
        yield "an unlisted hypothesis", changed(made, ["uses", k, "fact"], unlisted)
        yield "an unlisted fact", changed(made, ["uses", k, "fact", 0], "believed")
        boxes = use["context"]["boxes"]
        hole = next(i for i, box in enumerate(boxes) if box[0] == "hole")
        place = ["uses", k, "context", "boxes"]
        yield "no hole", changed(made, place, boxes[:hole] + boxes[hole + 1 :])
        yield "two holes", changed(made, place, [*boxes, boxes[hole]])
        if len(boxes) > 1:
            yield "a box dropped", changed(made, place, boxes[: 1 - hole] + boxes[2 - hole :])
        for b, box in enumerate(boxes):
            where = [*place, b, 1 if box[0] == "hole" else 3]
            yield "a wire too many", changed(made, where, [*box[where[-1]], 0])
            yield (
                "a wire that is not there",
                changed(made, where, [99] * len(box[where[-1]]) or [99]),
            )
    if made["uses"]:
        for k in range(len(made["given"])):
            kept = made["given"][:k] + made["given"][k + 1 :]
            yield "a hypothesis withdrawn", changed(made, ["given"], kept)


def test_changes_that_matter_are_rejected() -> None:
    told = [
        (name, change, rejected(wrong))
        for name in CHANGED[::4]
        if "one row" not in name  # where both sides are 0, and hypotheses are idle
        for change, wrong in that_matter(_certificate(name))
    ]
    assert [(name, change) for name, change, rejected in told if not rejected] == []
    assert len(told) > 450


# -- certificates of what is false -----------------------------------------------------------------

n, m, d = (Symbol(name, positive=True, integer=True) for name in "nmd")
N, TWO = ["Symbol", "n"], ["Symbol", "m"]
A, B, C = (["MatrixSymbol", name] for name in "ABC")
EYE, ZERO = ["Identity", N], ["ZeroMatrix", N, N]
WIRE = {"rows": [0], "cols": [1], "named": [], "boxes": [["hole", [0, 1]]], "sorts": [N, N]}


NOWHERE = {"rows": [], "cols": [], "named": [], "boxes": [["hole", []]], "sorts": []}


def by_hand(lhs: Any, rhs: Any, *uses: tuple[list[Any], Any], **parts: Any) -> dict[str, Any]:
    """Return a certificate by hand: matrices A, B, C n × n, U n × m, V m × n, families F, G."""
    square = [[], N, N]
    made = {
        "schema": 2,
        "sizes": ["n", "m"],
        "scalars": {"alpha": "real"},
        "indices": {},
        "tensors": {
            **dict.fromkeys("ABC", square),
            "U": [[], N, TWO],
            "V": [[], TWO, N],
            **{name: [[["Symbol", "m"]], N, N] for name in "FG"},
        },
        "lhs": lhs,
        "rhs": rhs,
        "given": [],
        "mode": "normal forms",
        "splits": [],
        "fused": False,
        "defined": {},
        "uses": [{"fact": fact, "coefficient": c, "context": WIRE} for fact, c in uses],
    }
    return made | parts


def _mul(*factors: Any) -> list[Any]:
    return ["MatMul", *factors]


def _inverse(tree: Any) -> list[Any]:
    return ["MatPow", tree, -1]


def _power(tree: Any) -> list[Any]:
    return ["Pow", tree, -1]


ALPHA = ["Symbol", "alpha"]
SHIFTED = ["Add", 1, ALPHA]
U, V, VU = ["MatrixSymbol", "U"], ["MatrixSymbol", "V"], [["Symbol", "m"], ["Symbol", "m"]]
SMALL = {**WIRE, "sorts": VU}
AT_H, AT_K = ["FamilyMember", "F", "h"], ["FamilyMember", "F", "k"]
BOTH = {"indices": {"h": TWO, "k": TWO}}
EACH = ["h", TWO]
SUM_HK = ["MatAdd", ["FamilyMember", "F", "h"], ["FamilyMember", "G", "k"]]
SUM_KH = ["MatAdd", ["FamilyMember", "F", "k"], ["FamilyMember", "G", "h"]]
Q = {"Q": [[], 2, 2]}
TRACE = ["Trace", ["MatrixSymbol", "Q"]]


def _hamilton(name: str, size: Any) -> list[Any]:
    """Return the Cayley–Hamilton polynomial of a 2 × 2 matrix, at any size."""
    a = ["MatrixSymbol", name]
    traces = ["Add", ["Pow", ["Trace", a], 2], ["Mul", -1, ["Trace", _mul(a, a)]]]
    half = ["MatMul", ["Rational", 1, 2], traces, ["Identity", size]]
    return ["MatAdd", _mul(a, a), _mul(-1, ["Trace", a], a), half]


def _square(size: Any) -> dict[str, Any]:
    return {"tensors": {"Q": [[], size, size]}, "mode": "written out"}


FALSE: dict[str, dict[str, Any]] = {
    "0 = I by the inverse of 0": by_hand(
        ZERO, EYE, (["inverse", "z", "left"], 1), defined={"z": [_inverse(ZERO)]}
    ),
    "the same, of a matrix that is nowhere inverted": by_hand(
        _mul(A, B), EYE, (["inverse", "z", "left"], 1), defined={"z": [_inverse(A)]}
    ),
    "an inverse of something else": by_hand(
        _mul(_inverse(A), B), EYE, (["inverse", "z", "left"], 1), defined={"z": [_inverse(A)]}
    ),
    "one name for two inverses": by_hand(_inverse(A), _inverse(B)),
    "an inverse called as a matrix": by_hand(
        _inverse(A), C, defined={"C": [_inverse(A)]}, tensors={"A": [[], N, N]}
    ),
    "inverses in the wrong order": by_hand(_inverse(_mul(A, B)), _mul(_inverse(A), _inverse(B))),
    "divided by what may be zero": by_hand(
        A, ZERO, (["given", 0], _power(ALPHA)), given=[[_mul(ALPHA, A), ZERO]]
    ),
    "divided by a sum that may be zero": by_hand(
        A, ZERO, (["given", 0], _power(SHIFTED)), given=[[_mul(SHIFTED, A), ZERO]]
    ),
    "divided by another scalar than the statement is": by_hand(
        _mul(_power(["Symbol", "beta"]), A),
        ZERO,
        (["given", 0], _mul(_power(ALPHA), _power(["Symbol", "beta"]))),
        given=[[_mul(ALPHA, A), ZERO]],
        scalars={"alpha": "real", "beta": "real"},
    ),
    "divided by a term of a sum that the statement is divided by": by_hand(
        _mul(_power(SHIFTED), A),
        ZERO,
        (["given", 0], ["Mul", _power(ALPHA), _power(SHIFTED)]),
        given=[[_mul(ALPHA, A), ZERO]],
    ),
    "a transpose forgotten": by_hand(_inverse(["Transpose", A]), _inverse(A)),
    "a multiple forgotten": by_hand(_inverse(_mul(2, A)), _mul(2, _inverse(A))),
    "the inverse of 0 times a matrix": by_hand(_inverse(_mul(0, A)), ZERO),
    "parts that are not square": by_hand(_inverse(_mul(U, V)), _mul(_inverse(V), _inverse(U))),
    "the inverse of two heads": by_hand(_inverse(AT_H), _inverse(AT_K), **BOTH),
    "free indices exchanged": by_hand(_inverse(SUM_HK), _inverse(SUM_KH), **BOTH),
    "an inverse at one head for another": by_hand(
        _mul(_inverse(AT_H), AT_K),
        EYE,
        (["inverse", "z", "left"], 1),
        defined={"z": [_inverse(AT_H), EACH]},
        **BOTH,
    ),
    "a one-sided inverse turned": by_hand(
        _mul(V, U),
        ["Identity", TWO],
        given=[[_mul(U, V), EYE]],
        uses=[{"fact": ["turned", 0, 1], "coefficient": 1, "context": SMALL}],
    ),
    "turned where it is not square": by_hand(
        _mul(V, A, U),
        ["Identity", TWO],
        given=[[_mul(A, U, V), EYE]],
        uses=[{"fact": ["turned", 0, 2], "coefficient": 1, "context": SMALL}],
    ),
    "turned, and no identity": by_hand(
        _mul(B, A), C, (["turned", 0, 1], 1), given=[[_mul(A, B), C]]
    ),
    "turned at the end": by_hand(_mul(B, A), EYE, (["turned", 0, 2], 1), given=[[_mul(A, B), EYE]]),
    "a sum turned": by_hand(
        _mul(B, A), EYE, (["turned", 0, 1], 1), given=[[["MatAdd", A, B], EYE]]
    ),
    "the root of a product": by_hand(A, ZERO, (["root", 0], 1), given=[[_mul(A, B), ZERO]]),
    "the root of a square": by_hand(A, ZERO, (["root", 0], 1), given=[[_mul(A, A), ZERO]]),
    "the root of three": by_hand(
        A, ZERO, (["root", 0], 1), given=[[_mul(["Transpose", A], A, B), ZERO]]
    ),
    "the root of I": by_hand(A, ZERO, (["root", 0], 1), given=[[_mul(["Transpose", A], A), EYE]]),
    "another root": by_hand(B, ZERO, (["root", 0], 1), given=[[_mul(["Transpose", A], A), ZERO]]),
    "a hypothesis that is not there": by_hand(A, B, (["given", 0], 1)),
    "a product that is zero turned": by_hand(
        _mul(B, A), ZERO, (["turned", 0, 1], 1), given=[[_mul(A, B), ZERO]]
    ),
    "zeros of two shapes": by_hand(ZERO, ["ZeroMatrix", TWO, TWO]),
    "a sum of two shapes": by_hand(["MatAdd", A, ["ZeroMatrix", TWO, TWO]], A),
    "the root of a square of what may be negative": by_hand(
        ["Pow", ["Pow", ["Symbol", "alpha"], 2], ["Rational", 1, 2]], ["Symbol", "alpha"]
    ),
    "at an index that may not be there": by_hand(
        A,
        ZERO,
        given=[
            [
                _mul(["Add", 1, ["Mul", -1, ["KroneckerDelta", "i", "j", TWO]]], A),
                ZERO,
                ["i", TWO],
                ["j", TWO],
            ]
        ],
        uses=[
            {
                "fact": ["given", 0],
                "coefficient": 1,
                "context": {
                    **WIRE,
                    "boxes": [["hole", [0, 1, 2, 3]]],
                    "named": [[0, 2], [1, 3]],
                    "sorts": [N, N, TWO, TWO],
                },
            }
        ],
    ),
    "divided by what may vanish": by_hand(
        A,
        ZERO,
        (["given", 0], ["Pow", ["Symbol", "alpha"], -1]),
        given=[[_mul(["Symbol", "alpha"], A), ZERO]],
    ),
    "divided by n - 1": by_hand(
        A,
        ZERO,
        (["given", 0], ["Pow", ["Add", N, -1], -1]),
        given=[[_mul(["Add", N, -1], A), ZERO]],
    ),
    "divided by 0": by_hand(_mul(["Pow", 0, -1], A), B),
    "at one index only": by_hand(
        ["FamilyMember", "F", 0],
        ["FamilyMember", "F", 1],
        (["given", 0], 1),
        given=[[["FamilyMember", "F", 0], ["FamilyMember", "F", 0]]],
    ),
    "Cayley–Hamilton at every size": by_hand(_hamilton("Q", N), ZERO, **_square(N)),
    "Cayley–Hamilton at size 3": by_hand(_hamilton("Q", 3), ["ZeroMatrix", 3, 3], **_square(3)),
    "written out under hypotheses": by_hand(
        A, B, (["given", 0], 0), given=[[A, B]], mode="written out"
    ),
    "heads left out": by_hand(
        ["HeadSum", ["FamilyMember", "F", "h"], ["h", 3]],
        ["MatAdd", ["FamilyMember", "F", 0], ["FamilyMember", "F", 1]],
        tensors={"F": [[3], N, N]},
        mode="written out",
    ),
    "a head counted twice": by_hand(
        ["HeadSum", ["FamilyMember", "F", "h"], ["h", 2]],
        ["MatAdd", ["FamilyMember", "F", 1], ["FamilyMember", "F", 1]],
        tensors={"F": [[2], N, N]},
        mode="written out",
    ),
    "an index out of range": by_hand(
        ["HeadSum", ["FamilyMember", "F", "h"], ["h", 2]],
        ["MatAdd", ["FamilyMember", "F", 0], ["FamilyMember", "F", -1]],
        tensors={"F": [[2], N, N]},
        mode="written out",
    ),
    "kron does not commute, at numbers": by_hand(
        ["KroneckerProduct", ["MatrixSymbol", "P"], ["MatrixSymbol", "Q"]],
        ["KroneckerProduct", ["MatrixSymbol", "Q"], ["MatrixSymbol", "P"]],
        tensors={"P": [[], 2, 3], "Q": [[], 3, 2]},
        mode="written out",
    ),
    "layers the other way": by_hand(
        ["LayerProduct", ["FamilyMember", "F", "l"], ["l", 2], True],
        ["LayerProduct", ["FamilyMember", "F", "l"], ["l", 2], False],
        tensors={"F": [[2], N, N]},
    ),
    "a layer too few": by_hand(
        ["LayerProduct", ["FamilyMember", "F", "l"], ["l", 2], True],
        _mul(["FamilyMember", "F", 0]),
        tensors={"F": [[2], N, N]},
    ),
    "layers of another family": by_hand(
        ["LayerProduct", ["FamilyMember", "F", "l"], ["l", 2], True],
        _mul(["FamilyMember", "F", 0], ["FamilyMember", "F", 1]),
        tensors={"F": [[3], N, N]},
    ),
    "another entry of a hypothesis": by_hand(
        ["MatrixElement", ["MatrixSymbol", "Q"], 1, 1],
        0,
        given=[[["MatrixElement", ["MatrixSymbol", "Q"], 0, 0], 0]],
        uses=[{"fact": ["given", 0], "at": [], "coefficient": 1, "context": NOWHERE}],
        **_square(2),
    ),
    "a hypothesis beyond its last index": by_hand(
        ["MatrixElement", ["MatrixSymbol", "Q"], 1, 1],
        0,
        given=[[["KroneckerDelta", "i", 0, 2], 0, ["i", 2]]],
        uses=[{"fact": ["given", 0, 2], "at": [], "coefficient": 1, "context": NOWHERE}],
        **_square(2),
    ),
    "a hypothesis at an index it does not have": by_hand(
        ["MatrixElement", ["MatrixSymbol", "Q"], 1, 1],
        0,
        given=[[["MatrixElement", ["MatrixSymbol", "Q"], 1, 1], 0]],
        uses=[{"fact": ["given", 0, 1], "at": [], "coefficient": 1, "context": NOWHERE}],
        **_square(2),
    ),
    "a value of an index left out": by_hand(
        ["MatrixElement", ["MatrixSymbol", "Q"], "i", "i"],
        0,
        given=[[["MatrixElement", ["MatrixSymbol", "Q"], 0, 0], 0]],
        uses=[{"fact": ["given", 0], "at": [0], "coefficient": 1, "context": NOWHERE}],
        indices={"i": 2},
        **_square(2),
    ),
    "two trees said to be one": by_hand(A, B, mode="same trees"),
    "one tree of what nobody declared": by_hand(
        ["MatrixSymbol", "Z"], ["MatrixSymbol", "Z"], mode="same trees"
    ),
    "1 is not true": by_hand(1, True, mode="same trees"),
    "a split that does not add up": by_hand(
        ["Trace", ["Identity", ["Mul", N, TWO]]],
        ["Pow", N, 2],
        splits=[[["Mul", N, TWO], [N, N]]],
    ),
    "a split that never ends": by_hand(A, A, splits=[[N, [N, 1]]]),
    "blocks of one half": by_hand(
        ["BlockMatrix", [A, B], [C]], ["BlockMatrix", [A, B], [C, ZERO]], splits=[]
    ),
}


@pytest.mark.parametrize("name", FALSE)
def test_what_is_false_has_no_certificate(name: str) -> None:
    with pytest.raises(replay.Rejected):
        replay.check(json.loads(json.dumps(FALSE[name])))


TRUE: dict[str, dict[str, Any]] = {
    "divided by what the statement is divided by": by_hand(
        _mul(_power(SHIFTED), A), ZERO, (["given", 0], _power(SHIFTED)), given=[[A, ZERO]]
    ),
    "an inverse": by_hand(
        _mul(_inverse(A), A), EYE, (["inverse", "z", "left"], 1), defined={"z": [_inverse(A)]}
    ),
    "an inverse at a head": by_hand(
        _mul(_inverse(AT_H), AT_H),
        EYE,
        (["inverse", "z", "left"], 1),
        defined={"z": [_inverse(AT_H)]},
        indices={"h": TWO},
    ),
    "an inverse at every head": by_hand(
        ["HeadSum", _mul(_inverse(AT_H), AT_H), EACH],
        _mul(TWO, EYE),
        defined={"z": [_inverse(AT_K), ["k", TWO]]},
        uses=[
            {
                "fact": ["inverse", "z", "left"],
                "coefficient": 1,
                "context": {
                    **WIRE,
                    "boxes": [["hole", [0, 1, 2]]],
                    "sorts": [N, N, TWO],
                },
            }
        ],
    ),
    "a square turned": by_hand(_mul(B, A), EYE, (["turned", 0, 1], 1), given=[[_mul(A, B), EYE]]),
    "a root": by_hand(A, ZERO, (["root", 0], 1), given=[[_mul(["Transpose", A], A), ZERO]]),
    "Cayley–Hamilton": by_hand(_hamilton("Q", 2), ["ZeroMatrix", 2, 2], **_square(2)),
    "heads": by_hand(
        ["HeadSum", ["FamilyMember", "F", "h"], ["h", 2]],
        ["MatAdd", ["FamilyMember", "F", 0], ["FamilyMember", "F", 1]],
        tensors={"F": [[2], N, N]},
        mode="written out",
    ),
}


@pytest.mark.parametrize("name", TRUE)
def test_their_true_neighbours_have(name: str) -> None:
    """So the false ones are not rejected for a slip of the pen."""
    replay.check(json.loads(json.dumps(TRUE[name])))


def test_a_head_is_inverted_at_its_own_index() -> None:
    """The box of F_h⁻¹ has an index wire: one box for all heads, and F_h⁻¹ is not F_k⁻¹."""
    made = copy.deepcopy(TRUE["an inverse at a head"])
    assert not rejected(made)
    made["lhs"] = _mul(_inverse(AT_H), AT_K)
    made["indices"] = {"h": TWO, "k": TWO}
    assert rejected(made)


def test_a_symbol_called_like_an_inverse_is_no_inverse() -> None:
    R = MatrixSymbol("R", n, n)
    assert decide(Inverse(R), MatrixSymbol("(R)⁻¹", n, n)).status == "refuted"


def test_a_false_claim_gets_a_certificate_that_is_rejected() -> None:
    S = MatrixSymbol("S", n, n)
    assert decide(S, S.T).certificate is None
    assert rejected(certificate(S, S.T))
    F = Family("F", (2,), n, n)
    assert rejected(certificate(F[0], F[1], mode="written out"))
    assert not rejected(certificate(S * Identity(n), S))


def test_the_file_runs_alone(tmp_path: Path) -> None:
    """Nothing of ours on the path, no site packages: the standard library is enough."""
    made = _of_theorem("two_layer_paths")
    good, bad, deeper = tmp_path / "good.json", tmp_path / "bad.json", tmp_path / "deep.json"
    good.write_text(to_json(made), encoding="utf-8")
    bad.write_text(to_json({**made, "lhs": ["MatMul", 2, made["lhs"]]}), encoding="utf-8")
    made["lhs"] = "deep"
    nested = '["Transpose", ' * 4000 + '["MatrixSymbol", "W_U"]' + "]" * 4000
    deeper.write_text(to_json(made).replace('"deep"', nested), encoding="utf-8")
    words = {
        good: (0, "accepted"),
        bad: (1, "rejected"),
        deeper: (1, "rejected"),
        tmp_path / "none.json": (2, "cannot read"),
    }
    for file, (status, word) in words.items():
        command = [sys.executable, "-I", "-S", str(ROOT / "proofs" / "replay.py"), str(file)]
        run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert run.returncode == status, run.stdout + run.stderr
        assert run.stdout.startswith(word)


def test_json_round_trip() -> None:
    made = _of_theorem("head_is_kron")
    assert from_json(to_json(made)) == made
