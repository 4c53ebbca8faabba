"""The independent checker: it accepts every certificate, and no change that matters."""

import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from algebra.certificate import from_json, to_json
from algebra.decide import decide
from proofs import replay
from proofs.catalogue import catalogue
from tests.algebra.test_hypotheses import PROVED, P, S, alpha

ROOT = Path(__file__).parents[2]
NOT_TOLD_YET = {"left inverse of a square matrix", "real"}  # facts that are not equational


def _of_theorem(name: str) -> dict[str, Any]:
    stated = next(t for t in catalogue() if t.name == name).statement()
    made = decide(stated.lhs, stated.rhs).certificate
    assert made is not None
    return made


def _conditional(name: str) -> dict[str, Any] | None:
    return decide(*PROVED[name]).certificate


@pytest.mark.parametrize("name", [theorem.name for theorem in catalogue()])
def test_every_theorem_is_replayed(name: str) -> None:
    assert "cancel" in replay.check(from_json(to_json(_of_theorem(name))))


@pytest.mark.parametrize("name", PROVED)
def test_conditional_proofs_are_replayed(name: str) -> None:
    made = _conditional(name)
    if made is None:
        given = PROVED[name][2]
        inverses = "Inverse" in str(PROVED[name][:2]) or "**(-1)" in str(PROVED[name][:2])
        assert inverses or name in NOT_TOLD_YET or not given
    else:
        assert "uses" in replay.check(from_json(to_json(made)))


def _changed(made: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield copies of a certificate, each with one change after which it proves nothing."""

    def with_change(path: list[Any], value: Any) -> dict[str, Any]:
        changed = copy.deepcopy(made)
        at = changed
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = value
        return changed

    yield "lhs doubled", with_change(["lhs"], ["MatMul", 2, made["lhs"]])
    if isinstance(made["rhs"], list) and made["rhs"][0] != "ZeroMatrix":  # twice 0 is 0
        yield "rhs doubled", with_change(["rhs"], ["MatMul", 2, made["rhs"]])
    yield "lhs counted twice", with_change(["lhs"], ["MatAdd", made["lhs"], made["lhs"]])
    yield "lhs transposed twice over", with_change(["lhs"], ["Transpose", made["lhs"]])
    yield "another schema", with_change(["schema"], 99)
    for side in ("lhs", "rhs"):
        for k, renaming in enumerate(made["renamings"][side]):
            yield (
                "a renaming lost",
                with_change(
                    ["renamings", side],
                    made["renamings"][side][:k] + made["renamings"][side][k + 1 :],
                ),
            )
            if renaming:
                yield (
                    "not a bijection",
                    with_change(["renamings", side, k], [renaming[0]] * (len(renaming) + 1)),
                )
                yield (
                    "a wire too many",
                    with_change(["renamings", side, k], [*renaming, len(renaming)]),
                )
    for name, (counts, rows, cols) in made["tensors"].items():
        if rows != cols:
            yield "a shape turned", with_change(["tensors", name], [counts, cols, rows])
        yield (
            "a tensor undeclared",
            with_change(["tensors"], {k: v for k, v in made["tensors"].items() if k != name}),
        )
    for k, use in enumerate(made["uses"]):
        yield "a use dropped", with_change(["uses"], made["uses"][:k] + made["uses"][k + 1 :])
        yield (
            "a use doubled",
            with_change(["uses", k, "coefficient"], ["Mul", 2, use["coefficient"]]),
        )
        yield (
            "a use turned",
            with_change(["uses", k, "coefficient"], ["Mul", -1, use["coefficient"]]),
        )
        yield "an unlisted hypothesis", with_change(["uses", k, "given"], len(made["given"]))
        boxes = use["context"]["boxes"]
        hole = next(i for i, box in enumerate(boxes) if box[0] == "hole")
        yield (
            "no hole",
            with_change(["uses", k, "context", "boxes"], boxes[:hole] + boxes[hole + 1 :]),
        )
        yield "two holes", with_change(["uses", k, "context", "boxes"], [*boxes, boxes[hole]])
        if len(set(boxes[hole][1])) > 1:
            yield (
                "a hole the wrong way round",
                with_change(["uses", k, "context", "boxes", hole, 1], boxes[hole][1][::-1]),
            )
    for k in range(len(made["given"])):
        yield (
            "a hypothesis withdrawn",
            with_change(["given"], made["given"][:k] + made["given"][k + 1 :]),
        )


def _rejected(made: dict[str, Any]) -> bool:
    try:
        replay.check(json.loads(to_json(made)))
    except replay.Rejected:
        return True
    return False


# Changes that can leave a true claim rightly certified: a hypothesis that reads the same from both
# sides, a matrix of any shape declared with its shape turned.
HARMLESS = {"a hole the wrong way round": 2, "a shape turned": 2}


def test_changes_that_matter_are_rejected() -> None:
    certificates = [_of_theorem(theorem.name) for theorem in catalogue()]
    certificates += [made for name in PROVED if (made := _conditional(name)) and made["uses"]]
    rejected = 0
    accepted: dict[str, int] = {}
    for made in certificates:
        for change, wrong in _changed(made):
            if _rejected(wrong):
                rejected += 1
            else:
                accepted[change] = accepted.get(change, 0) + 1
    assert accepted == HARMLESS
    assert rejected > 900


def test_dividing_by_a_scalar_that_may_vanish_is_rejected() -> None:
    """alpha A = 0 does not give A = 0; a use with the coefficient 1/alpha must not pass."""
    made = decide(alpha * P * P, alpha * P, [(P * P, P)]).certificate
    assert made is not None
    (use,) = made["uses"]
    wrong = copy.deepcopy(made)
    wrong["lhs"], wrong["rhs"] = (
        ["MatMul", ["MatrixSymbol", "P"], ["MatrixSymbol", "P"]],
        [
            "MatrixSymbol",
            "P",
        ],
    )
    wrong["given"] = [
        [
            ["MatMul", ["Symbol", "alpha"], wrong["lhs"]],
            ["MatMul", ["Symbol", "alpha"], wrong["rhs"]],
        ]
    ]
    wrong["uses"][0]["coefficient"] = ["Pow", ["Symbol", "alpha"], -1]
    assert _rejected(wrong)
    assert use["given"] == 0


def test_the_file_runs_alone(tmp_path: Path) -> None:
    """Nothing of ours on the path, no site packages: the standard library is enough."""
    good = tmp_path / "good.json"
    good.write_text(to_json(_of_theorem("two_layer_paths")), encoding="utf-8")
    bad = tmp_path / "bad.json"
    made = _of_theorem("two_layer_paths")
    bad.write_text(to_json({**made, "lhs": ["MatMul", 2, made["lhs"]]}), encoding="utf-8")
    words = {
        good: (0, "accepted"),
        bad: (1, "rejected"),
        tmp_path / "none.json": (2, "cannot read"),
    }
    for file, (status, word) in words.items():
        command = [sys.executable, "-I", "-S", str(ROOT / "proofs" / "replay.py"), str(file)]
        run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert run.returncode == status, run.stdout + run.stderr
        assert run.stdout.startswith(word)


def test_no_certificate_is_made_of_what_is_not_proved() -> None:
    assert decide(S, S.T).certificate is None


def test_json_round_trip() -> None:
    made = _of_theorem("head_is_kron")
    assert from_json(to_json(made)) == json.loads(to_json(made)) == json.loads(json.dumps(made))
