"""Definitions that are named where a later equation is called wrong."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text
from otimes.proofs.documents.reporting.report import to_json, to_sarif

SAID = r"""Let $Q, R \in \mathbb{R}^{n \times n}$.

We define $P = Q R^\top$.

"""
NAMED = "or the definition on line 3 is wrong"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Then $P R = Q R R$.", [True]),
        ("Then $P R = Q R R$ and $P Q = Q R Q$.", [True, True]),
        (r"Then $P R = Q R^\top R$ and $P Q = Q R Q$.", [False, False]),  # it proves the first
        (r"Then $Q R = R Q$.", [False]),  # it is not used
        # no edit mends it, and two equations are wrong
        ("Then $P R = R R R$ and $P Q = R Q Q$.", [True, True]),
        ("Then $P R = R R R$.", [False]),
    ],
)
def test_a_definition_is_named_that_may_be_wrong(text: str, named: list[bool]) -> None:
    found = check_text(SAID + text).equations[2:]
    assert [NAMED in each.why for each in found] == named
    assert [each.related == ((None, 3),) for each in found] == named


def test_what_contradicts_a_definition_names_it() -> None:
    text = r"The columns of $h$ are $h(X)_i = \sum_j A_{ji} W x_j$, and $h(X) = W X A^\top$."
    sizes = r"A \in \mathbb{R}^{n \times n}$, $W \in \mathbb{R}^{d \times d}"
    listed = r"$X = [x_1, \dots, x_n] \in \mathbb{R}^{d \times n}$"
    found = check_text(f"Let ${sizes}$ and {listed}.\n\n{text}").equations[-1]
    assert (found.verdict, found.related) == ("refuted", ((None, 3),))


def test_json_and_sarif_have_the_place_of_the_definition() -> None:
    report = check_text(f"{SAID}Then $P R = Q R R$.")
    equation = to_json([report])["documents"][0]["equations"][-1]
    assert equation["related"] == [{"cell": None, "line": 3}]
    result = to_sarif([report], "1")["runs"][0]["results"][-1]
    (place,) = result["relatedLocations"]
    assert place["physicalLocation"]["region"] == {"startLine": 3}


CALLED = r"""Let $Q, R, S \in \mathbb{R}^{n \times n}$.
Let $u \in \mathbb{R}^{n}$ with $u^\top u = 1$.

We set $P = Q R^\top$.

"""


@pytest.mark.parametrize(
    ("text", "verdicts"),
    [
        # one edit of the definition against two of the claims
        ("Then $P R = Q R R$ and $P Q = Q R Q$.", "refuted refuted refuted"),
        (r"Then $S P = S Q R$ and $P^\top = R^\top Q^\top$.", "refuted refuted refuted"),
        ("Then $P R = Q R R$.", "definition refuted"),
        ("Then $P R = R Q R$.", "definition refuted"),  # no edit of the definition makes it true
        (r"Then $P R = Q R R = u^\top u \, Q R R$.", "refuted refuted proved"),
        (
            r"Then $P R = Q R R$, $P Q = Q R Q$ and $P S = Q R^\top S$.",
            "definition refuted refuted proved",
        ),
        # a proof that an edit leaves as it is
        (
            r"Then $P R = Q R R$, $P Q = Q R Q$ and $P S - P S = 0$.",
            "refuted refuted refuted proved",
        ),
        # a second definition that says the first again
        (r"We write $P = Q R$ as well.", "definition refuted"),
        (r"We write $P = (R Q^\top)^\top$ as well.", "definition proved"),
        (r"For another layer we write $P = Q R$.", "definition definition"),
        (r"We write $P = Q S R$ from here on.", "definition definition"),
    ],
)
def test_the_fewest_edits_decide_what_is_wrong(text: str, verdicts: str) -> None:
    found = check_text(CALLED + text).equations[3:]
    assert " ".join(each.verdict for each in found) == verdicts


def test_the_line_of_a_chain_is_called_wrong_that_an_edit_mends() -> None:
    text = r"""Let $X \in \mathbb{R}^{n \times d}$ and $W_Q, W_K \in \mathbb{R}^{d \times k}$.

Let $Q = X W_Q$ and $K = X W_K$. The scores are
$$S = Q^\top K = X W_Q W_K^\top X^\top.$$"""
    *_, first, second = check_text(text).equations
    assert (first.verdict, second.verdict) == ("shape", "shape")
    assert first.suggestion == "S = Q K^{T}"
    assert first.related == ((None, 4),)


@pytest.mark.parametrize(
    ("text", "verdicts"),
    [
        ("Then $C 1 = 0$. And $\\mathrm{tr}(C) = d - 1$.", "refuted refuted refuted"),
        ("Then $C^\\top = C$. And $C 1 = 0$ and $C^2 = C$.", "refuted proved refuted refuted"),
        ("Then $C^\\top = C$. And $C 1 = 0$.", "definition proved refuted"),
        ("Then $C 1 = 0$.", "definition refuted"),
    ],
)
def test_equations_about_a_definition_alone_contradict_it(text: str, verdicts: str) -> None:
    said = "We set $C = I_d - 1 1^\\top$, a $d \\times d$ matrix.\n\n"
    found = check_text(said + text).equations
    assert " ".join(each.verdict for each in found) == verdicts


SCORES = r"""Let $W_Q$ and $W_K$ be $k \times d$, and let
$X = [x_1, \dots, x_n] \in \mathbb{R}^{d \times n}$. We have $Q = W_Q X$ and $K = W_K X$. Scores:

$$S = K^\top Q = X^\top W_Q^\top W_K X .$$

One entry is $S_{ij} = x_i^\top W_Q^\top W_K x_j$."""


def test_a_definition_is_wrong_that_the_rest_of_its_chain_and_an_entry_contradict() -> None:
    found = {each.tex: each for each in check_text(SCORES).equations}
    assert found[r"S = K^\top Q"].verdict == "refuted"
    assert "line 4 and line 6 contradict this" in found[r"S = K^\top Q"].why
    right = check_text(SCORES.replace(r"K^\top Q", r"Q^\top K")).equations
    assert not [each for each in right if each.verdict in ("refuted", "shape")]
    alone = check_text(SCORES.partition("\n\nOne")[0]).equations[-2]
    assert (alone.tex, alone.verdict) == (r"S = K^\top Q", "definition")  # the link may be wrong


def test_a_proof_that_needs_more_than_definitions_keeps_no_definition() -> None:
    more = r" Here $d = H k$ for $H$ heads. The pattern is $A = \mathrm{softmax}(S)$, row by row."
    more += r" Then $A \mathbf{1} = \mathbf{1}$."
    found = {each.tex: each for each in check_text(SCORES + more).equations}
    assert found[r"S = K^\top Q"].verdict == "refuted"
    assert found[r"A \mathbf{1} = \mathbf{1}"].verdict == "proved"
