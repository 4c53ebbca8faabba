"""The command line: what goes where, and which status it ends with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import otimes as ot
from otimes.cli import main
from otimes.numeric.model import save_model
from otimes.numeric.random_weights import random_model
from otimes.numeric.tokenizer import load_tokenizer
from otimes.proofs.evidence import Report
from tests.forked import otimes as forked
from tests.otimes.reports import ALL_WELL, FELL_SHORT, WELL


@dataclass(frozen=True)
class Ran:
    status: int
    out: str
    err: str


class Otimes:
    """`otimes ARGUMENTS`, in this process, with `verify` answered by a report of ours if given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, *arguments: str, report: Report | BaseException | None = None) -> Ran:
        def answer(names: Any, models: Any, on_progress: Any, **_: Any) -> Report:
            on_progress(1, 2, "kron_mul_kron")
            if isinstance(report, BaseException):
                raise report
            assert report is not None
            return report

        if report is not None:
            self.monkeypatch.setattr(ot, "verify", answer)
        self.monkeypatch.setattr(sys, "argv", ["otimes", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        seen = self.capsys.readouterr()
        return Ran(int(stop.value.code or 0), seen.out, seen.err)


@pytest.fixture
def otimes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Otimes:
    # What `show` prints is kept, and the reports of these tests are no real ones.
    monkeypatch.setenv("OTIMES_CACHE", str(tmp_path / "cache"))
    return Otimes(monkeypatch, capsys)


def test_all_well(otimes: Otimes) -> None:
    ran = otimes("verify", report=ALL_WELL)
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.splitlines()[-1] == ALL_WELL.summary()
    assert ran.out.splitlines()[-1].startswith("1 theorem:")
    assert "\x1b" not in ran.out


def test_what_fell_short_is_shown_and_ends_with_1(otimes: Otimes) -> None:
    ran = otimes("verify", report=FELL_SHORT)
    assert (ran.status, ran.err) == (1, "")
    assert "heads_compose: proof refuted\n    n = 1\n    A = np.array([[2]])" in ran.out
    assert "heads_compose: a mutant escaped\n    drop a term: A = B" in ran.out
    assert ran.out.splitlines()[-1] == FELL_SHORT.summary()


def test_json_is_all_there_is_on_stdout(otimes: Otimes) -> None:
    ran = otimes("verify", "--json", report=FELL_SHORT)
    assert (ran.status, ran.err) == (1, "")
    content = json.loads(ran.out)
    assert content["schema"] == 2
    assert [each["passed"] for each in content["theorems"]] == [True, False, False]


def test_json_stays_json_when_a_figure_is_not_a_number(otimes: Otimes) -> None:
    broken = replace(WELL.models[0], passed=False, ratio=float("inf"))
    ran = otimes("verify", "--json", report=Report((replace(WELL, models=(broken,)),)))
    assert ran.status == 1
    json.loads(ran.out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_what_came_from_the_cache_is_told(otimes: Otimes) -> None:
    report = Report((replace(WELL, from_cache=True), WELL))
    *_, told, empty, last = otimes("verify", report=report).out.splitlines()
    assert told == (
        "from the cache, as nothing they depend on has changed: 1 of 2 (--fresh runs all checks)."
    )
    assert (empty, last) == ("", report.summary())
    content = json.loads(otimes("verify", "--json", report=report).out)
    assert [each["from_cache"] for each in content["theorems"]] == [True, False]
    shown = otimes("show", "kron_mul_kron", report=Report(report.theorems[:1])).out
    assert "checks      from the cache (--fresh runs them again)" in shown


@pytest.mark.parametrize("command", [("verify",), ("show", "kron_mul_kron"), ("coverage",)])
def test_fresh_takes_nothing_from_the_cache(
    monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], tmp_path: Path
) -> None:
    monkeypatch.setenv("OTIMES_CACHE", str(tmp_path / "cache"))
    seen: list[bool] = []

    def answer(*_: Any, cache: Any, **__: Any) -> Report:
        seen.append(cache.fresh)
        return ALL_WELL

    monkeypatch.setattr(ot, "verify", answer)
    for options in ((), ("--fresh",)):
        monkeypatch.setattr(sys, "argv", ["otimes", *command, *options])
        with pytest.raises(SystemExit):
            main()
    assert seen == [False, True]


def test_show(otimes: Otimes) -> None:
    ran = otimes("show", "kron_mul_kron", report=ALL_WELL)
    assert ran.status == 0
    theorem = WELL.theorem
    for part in (theorem.title, theorem.text(), theorem.source, theorem.prose, theorem.latex()):
        assert part in ran.out
    assert "one_layer   evaluated: error/bound 0.11, sensitivity 3.1e-14" in ran.out


def test_show_json(otimes: Otimes) -> None:
    ran = otimes("show", "kron_mul_kron", "--json", report=ALL_WELL)
    assert json.loads(ran.out)["theorems"][0]["name"] == "kron_mul_kron"


@pytest.mark.parametrize("command", ["verify", "show"])
def test_an_unknown_theorem_names_the_near_ones(otimes: Otimes, command: str) -> None:
    ran = otimes(command, "kron_mul_kro")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("there is no theorem 'kron_mul_kro'; similar names are kron_mul_kron")
    assert len(ran.err.splitlines()) == 1


def test_an_unknown_model_is_named(otimes: Otimes) -> None:
    ran = otimes("verify", "kron_mul_kron", "--model", "three_layer", "--json")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("there is no model 'three_layer'")
    assert len(ran.err.splitlines()) == 1


def test_an_unknown_recipe_is_named(otimes: Otimes) -> None:
    ran = otimes("train", "three_layer")
    assert (ran.status, ran.out) == (2, "")
    assert "'three_layer'" in ran.err
    assert "induction" in ran.err


def test_training_without_torch_says_what_to_install(
    otimes: Otimes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "otimes.numeric.training", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    ran = otimes("train", "induction")
    assert ran.status == 2
    assert "training needs torch, which is not installed: pip install" in ran.err


def test_a_misspelt_command(otimes: Otimes) -> None:
    ran = otimes("verfy")
    assert (ran.status, ran.out) == (2, "")
    assert "No such command 'verfy'" in ran.err


def test_an_interruption_is_one_line(otimes: Otimes) -> None:
    ran = otimes("verify", report=KeyboardInterrupt())
    assert (ran.status, ran.out, ran.err.strip()) == (130, "", "interrupted")


def test_a_bug_of_ours_keeps_its_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: Any, **__: Any) -> Report:
        raise ZeroDivisionError

    monkeypatch.setattr(ot, "verify", broken)
    monkeypatch.setattr(sys, "argv", ["otimes", "verify"])
    with pytest.raises(ZeroDivisionError):
        main()


def test_one_theorem_really_verified() -> None:
    run = forked("verify", "kron_transpose", "--model", "zero_layer", "--json")
    assert (run.returncode, run.stderr) == (0, "")
    (theorem,) = json.loads(run.stdout)["theorems"]
    assert theorem["proof"]["status"] == "proved"


def test_a_reader_that_leaves_early_is_no_traceback() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    run = subprocess.run(
        [sys.executable, "-m", "otimes", "show", "kron_transpose"],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert run.stderr == ""


def test_axioms_are_listed(otimes: Otimes) -> None:
    ran = otimes("axioms")
    assert (ran.status, ran.err) == (0, "")
    assert "softmax(S) 1_m×1 = 1_n×1" in ran.out
    assert ran.out.splitlines()[-1] == f"{len(ot.AXIOMS)} axioms"
    listed = json.loads(otimes("axioms", "--json").out)
    assert [axiom["name"] for axiom in listed["axioms"]] == list(ot.AXIOMS)


def test_paths(otimes: Otimes) -> None:
    ran = otimes(
        "paths", "induction", "--prompt", "def f(x): return f(", "--token", "x", "--top", "3"
    )
    assert (ran.status, ran.err) == (0, "")
    on_prompt = ot.paths("induction", load_tokenizer().encode("def f(x): return f("))
    token = load_tokenizer().encode("x")[0]
    lines = ran.out.splitlines()
    assert lines[0].startswith(f"induction: the logit of 'x' (token {token}) after position")
    for value in (*on_prompt.by_order(-1, token), *[p.value for p in on_prompt.top(3, -1, token)]):
        assert f"{value:+.4f}" in ran.out
    assert "largest paths: proven largest, 25 visited" in lines
    assert lines[-1].startswith("closure: error/bound 0.0")


def test_paths_json(otimes: Otimes) -> None:
    ran = otimes("paths", "two_layer", "--tokens", "5,6,7", "--position", "1", "--json")
    assert (ran.status, ran.err) == (0, "")
    content = json.loads(ran.out)
    assert (content["schema"], content["tokens"], content["position"]) == (1, [5, 6, 7], 1)
    on_prompt = ot.paths("two_layer", [5, 6, 7])
    token = content["token"]
    assert token == on_prompt.model.forward([5, 6, 7])["logits"][1].argmax()
    assert content["orders"] == on_prompt.by_order(1, token).tolist()
    assert content["virtual_heads"] == on_prompt.virtual_heads(1, token).tolist()
    assert content["shapley"] == on_prompt.shapley(1, token).tolist()
    best = content["top"]
    assert best["proven"] is True
    assert [path["value"] for path in best["paths"]] == [
        p.value for p in on_prompt.top(10, 1, token)
    ]
    assert content["closure"]["ratio"] <= 1


def test_paths_through_mlps_or_with_what_they_gave(otimes: Otimes) -> None:
    asked = ("paths", "gpt2_tiny", "--tokens", "5,6,7", "--token", "9")
    assert "their outputs on this prompt are constant sources" in otimes(*asked).out
    assert "their gates are frozen" in otimes(*asked, "--mlp", "gates").out
    sources, gates = (
        json.loads(otimes(*asked, "--json", "--mlp", kind).out) for kind in ("sources", "gates")
    )
    assert (sources["mlp"], gates["mlp"]) == ("sources", "gates")
    assert abs(sources["logit"] - gates["logit"]) < 1e-10
    assert abs(sources["orders"][0] - gates["orders"][0]) > 1e-3
    assert otimes(*asked, "--mlp", "none").status == 2


def test_paths_on_the_sample_of_a_model_without_heads(otimes: Otimes) -> None:
    ran = otimes("paths", "zero_layer")
    assert ran.status == 0
    assert "largest paths" not in ran.out


def test_paths_as_a_page(otimes: Otimes, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert otimes("paths", "one_layer", "--tokens", "1,2", "--html", str(page)).status == 0
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--tokens", "1,x"], "--tokens must be comma-separated integers, got '1,x'"),
        (["--tokens", "1", "--prompt", "a"], "give either --prompt or --tokens, not both"),
        (["--tokens", "1,99999"], "token 99999 at position 1 is not in the vocabulary"),
        (["--prompt", ""], "the prompt is empty"),
        (["--prompt", "a" * 2000], "the prompt has"),
        (["--position", "48"], "position 48 is out of range: the prompt has the positions 0 to 47"),
        (["--token", "hello world"], "'hello world' is 7 tokens ('he', 'l',"),
        (["--token", "1024"], "token 1024 is not in the vocabulary"),
        (["--top", "0"], "Invalid value for '--top': 0 is not in the range"),
        (["--html", "/nowhere/at/all.html"], "cannot write /nowhere/at/all.html: No such file"),
    ],
)
def test_paths_asked_wrongly(otimes: Otimes, arguments: list[str], said: str) -> None:
    ran = otimes("paths", "two_layer", *arguments)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith(said)
    assert len(ran.err.splitlines()) == 1


def test_paths_of_a_model_with_another_vocabulary(otimes: Otimes, tmp_path: Path) -> None:
    model = random_model()
    save_model(tmp_path / "mine", model.config, model.weights, {})
    ran = otimes("paths", str(tmp_path / "mine"), "--prompt", "a")
    assert ran.status == 2
    assert ran.err.startswith("mine has 64 tokens, the bundled tokenizer 1024: give --tokens")
    ran = otimes("paths", str(tmp_path / "mine"), "--tokens", "1,2,3", "--token", "7")
    assert ran.status == 0
    assert ran.out.startswith("mine: the logit of '#7' (token 7) after position 2")


WRONG = "$A, B \\in \\mathbb{R}^{n \\times n}$ and $(AB)^T = A^T B^T$, $A + B = B + A$.\n"


def test_a_document_with_a_wrong_equation_ends_with_1(otimes: Otimes, tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_text(WRONG)
    ran = otimes("check", str(file))
    assert (ran.status, ran.err) == (1, "")
    assert f"{file}:1:41: refuted: (AB)^T = A^T B^T" in ran.out
    assert ran.out.splitlines()[-1].endswith("3 equations: 1 proved, 1 refuted, 1 definition")
    file.write_text("$A, B \\in \\mathbb{R}^{n \\times n}$, $A + B = B + A$")
    assert otimes("check", str(file)).status == 0


def test_check_writes_json_sarif_html_annotations_and_edits(otimes: Otimes, tmp_path: Path) -> None:
    file, sarif, html = tmp_path / "a.md", tmp_path / "a.sarif", tmp_path / "a.html"
    file.write_text(WRONG)
    ran = otimes("check", str(file), "--json", "--sarif", str(sarif), "--html", str(html))
    assert (ran.status, ran.err) == (1, "")
    assert json.loads(ran.out)["documents"][0]["counts"]["refuted"] == 1
    assert json.loads(sarif.read_text())["runs"][0]["results"][0]["ruleId"] == "refuted"
    assert html.read_text().startswith("<!doctype html>")
    assert otimes("check", str(file), "--github").out.startswith("::error file=")
    assert "+ (A B)^T = B^T A^T" in otimes("check", str(file), "--fix").out
    assert file.read_text() == WRONG


def test_check_refuses_what_is_no_document(otimes: Otimes, tmp_path: Path) -> None:
    ran = otimes("check", str(tmp_path / "a.md"))
    assert (ran.status, ran.out) == (2, "")
    assert "cannot read" in ran.err
    assert otimes("check").status == 2
    assert otimes("check", "a.md", "b.md", "--html", "c").status == 2


def test_prove_shows_the_steps_or_the_counterexample(otimes: Otimes) -> None:
    ran = otimes("prove", "(A ⊗ B)(C ⊗ D) = A C ⊗ B D")
    assert ran.status == 0
    assert "kron_mul_kron" in ran.out
    ran = otimes("prove", "A X = X A", "--shapes", "A: n n, X: n n")
    assert ran.status == 1
    assert "refuted" in ran.out
    assert "np.array" in ran.out
    ran = otimes("prove", "P P X = P X", "--given", "P P = P", "--json")
    assert json.loads(ran.out)["verdict"] == "proved"
    assert otimes("prove", "A +").status == 2
    assert otimes("prove", "A X = X", "--shapes", "A: n d, X: n n").status == 2


def test_the_cell_magic_checks_a_cell(capsys: pytest.CaptureFixture[str]) -> None:
    magics: dict[str, Any] = {}

    class Shell:
        def register_magic_function(self, function: Any, kind: str, name: str) -> None:
            magics[f"{kind} {name}"] = function

    ot.load_ipython_extension(Shell())
    magics["cell check"]("", WRONG)
    assert "refuted" in capsys.readouterr().out
