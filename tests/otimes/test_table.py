"""The table says what the report holds, in colour and in plain text."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console
from rich.text import Text

from otimes._table import (
    block,
    definitions,
    evidence,
    figure,
    legend,
    plain_table,
    print_table,
    rich_table,
    shortcomings,
)
from otimes.proofs.evidence import DefinitionEvidence, ProofEvidence, Report
from otimes.proofs.mutants import MutantEvidence
from tests.otimes.reports import ALL_WELL, FELL_SHORT


def on_a_terminal(width: int) -> str:
    page = io.StringIO()
    Console(file=page, width=width, force_terminal=True, color_system="truecolor").print(
        rich_table(FELL_SHORT, width)
    )
    return page.getvalue()


def test_the_plain_table_is_aligned_and_colourless() -> None:
    head, well, short, nowhere = plain_table(FELL_SHORT).splitlines()
    names = ["proof", "exact", "recorded", "evaluated", "sensitivity", "mutants"]
    assert head.split() == ["theorem", *names]
    assert well.split()[1:] == ["proved", "40", "-", "1:", "0.11", "3.1e-14", "7", "(1)"]
    assert short.split()[1:6] == ["refuted", "failed", "0", "of", "1:"]
    assert short.endswith("1.2e+03  -          2.0e-13      5, 1 escaped")
    assert nowhere.split()[3:6] == ["-", "none", "-"]
    for word in names:
        column = head.index(word)
        assert all(line[column - 1] == " " != line[column] for line in (well, short, nowhere))


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_fits_a_terminal(width: int) -> None:
    page = Text.from_ansi(on_a_terminal(width)).plain
    assert all(len(line) <= width for line in page.splitlines())
    for text in ("kron_mul_kron", "heads_compose", "refuted", "1.2e+03", "2.0e-13", "escaped"):
        assert page.count(text) == 1, text
    assert ("Kronecker products multiply" in page) == (width == 120)


def test_a_terminal_that_is_too_narrow_has_lines_with_all_that_was_seen() -> None:
    page = io.StringIO()
    print_table(FELL_SHORT, Console(file=page, width=44))
    said = " ".join(page.getvalue().split())
    assert max(map(len, page.getvalue().splitlines())) <= 44
    assert "heads_compose: proof refuted, exact failed, recorded 0 of 1: 1.2e+03, sens" in said
    page = io.StringIO()
    print_table(FELL_SHORT, Console(file=page, width=100))
    assert "heads_compose   refuted" in page.getvalue()


def test_checks_that_were_not_made_have_no_columns() -> None:
    (well,) = ALL_WELL.theorems
    quick = Report((replace(well, models=(), mutants=None, needs_models=False),))
    head, line = plain_table(quick).splitlines()
    assert (head.split(), line.split()[1:]) == (["theorem", "proof", "exact"], ["proved", "40"])
    assert legend(quick) == "exact: examples drawn."
    unneeded = Report((replace(well, models=(), needs_models=False),))
    assert "none" not in plain_table(unneeded)
    assert "models" not in f"{legend(unneeded)} {unneeded.summary()}"
    assert quick.summary() == "1 theorem: 1 proved, 1 exact"
    assert legend(ALL_WELL).startswith("exact: examples drawn. evaluated: models on which both")


def test_only_what_fell_short_is_red() -> None:
    red = [line for line in on_a_terminal(120).splitlines() if "\x1b[1;31m" in line]
    assert len(red) == 2
    assert "heads_compose" in red[0]
    assert "kron_transpose" in red[1]


def test_each_shortcoming_names_theorem_check_model_and_figures() -> None:
    assert not list(shortcomings(ALL_WELL))
    blocks = [block(heading, detail) for heading, detail in shortcomings(FELL_SHORT)]
    assert blocks == [
        "heads_compose: proof refuted\n    n = 1\n    A = np.array([[2]])\n    # left side 2, ...",
        "heads_compose: a mutant escaped\n    drop a term: A = B",
        "kron_transpose: applies to none of the models\n    zero_layer: nothing to read",
    ]


def test_a_proved_equation_that_fails_on_a_model_says_where() -> None:
    proved = replace(FELL_SHORT.theorems[1], proof=ProofEvidence("proved", "by its normal form"))
    blocks = [block(heading, detail) for heading, detail in shortcomings(Report((proved,)))]
    assert blocks[:2] == [
        "heads_compose: exact check failed\n    n = 1; d = 1",
        "heads_compose: model two_layer\n    error/bound 1234.5 at layer 1",
    ]


def test_what_cannot_be_stated_is_said_once() -> None:
    failed = replace(
        FELL_SHORT.theorems[1],
        proof=ProofEvidence("error", "heads_compose cannot be stated: the sizes differ"),
        mutants=MutantEvidence(0, (), (), 0),
    )
    assert list(shortcomings(Report((failed,)))) == [
        ("heads_compose: proof error", "heads_compose cannot be stated: the sizes differ")
    ]


def test_mutants_that_were_never_refuted_are_a_shortcoming() -> None:
    idle = replace(ALL_WELL.theorems[0], mutants=MutantEvidence(0, (), (), 9))
    ((heading, _),) = shortcomings(Report((idle,)))
    assert heading == "kron_mul_kron: no mutant was refuted"


def test_what_is_taken_for_granted_is_said_and_can_fall_short() -> None:
    assert definitions(ALL_WELL) == ""
    held = DefinitionEvidence("one_layer", True, 0.25, "layer 0")
    broken = DefinitionEvidence("two_layer", False, 7.5, "layer 1, head 2")
    report = replace(ALL_WELL, definitions=(held, broken))
    assert "on 2 models, 1 within the bound (worst error/bound 7.50)" in definitions(report)
    ((heading, seen),) = shortcomings(report)
    assert heading.endswith("model two_layer")
    assert seen == "error/bound 7.50 at layer 1, head 2"


def test_the_evidence_lists_every_check() -> None:
    well, short, _ = FELL_SHORT.theorems
    assert dict(evidence(well)) == {
        "kind": "identity",
        "proof": "proved",
        "exact": "40 examples on exact numbers, all agree",
        "one_layer": "evaluated: error/bound 0.11, sensitivity 3.1e-14",
        "zero_layer": "does not apply: it has no heads",
        "mutants": "7 refuted, 2 ill-shaped",
        "still true": "rotate: tr(A B) = tr(B A)",
    }
    assert dict(evidence(short))["two_layer"].endswith("FAILED")


@pytest.mark.parametrize(
    ("number", "text"), [(0.0, "0"), (99.96, "99.96"), (0.009, "9.0e-03"), (float("nan"), "nan")]
)
def test_figures(number: float, text: str) -> None:
    assert figure(number) == text
