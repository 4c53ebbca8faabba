"""Definitions that are named where a later equation is called wrong."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text
from otimes.proofs.documents.report import to_json, to_sarif

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
