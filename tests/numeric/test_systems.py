"""The table of systems: published numbers of parameters, and the statements that apply."""

import pytest

from otimes.algebra.errors import OtimesError
from otimes.numeric.systems import CONDITIONS, OF_RECURRENT, systems

EXACT = {
    "GPT-2 small": 124_439_808,
    "GPT-2 XL": 1_557_611_200,
    "Pythia 70M": 70_426_624,
    "Pythia 410M": 405_334_016,
    "Pythia 2.8B": 2_775_208_960,
    "Llama 2 7B": 6_738_415_616,
    "Llama 2 70B": 68_976_648_192,
    "BERT-base": 109_482_240,
    "BERT-large": 335_141_888,
    "T5-base": 222_903_552,
}
"""Counted by other people, of the published checkpoints."""


def test_parameters_are_those_of_the_checkpoints() -> None:
    assert {name: systems(name).parameters for name in EXACT} == EXACT
    assert all(abs(each.ratio - 1) < 0.04 for each in systems())  # what is printed is rounded


def test_statements_that_apply_are_theorems() -> None:
    from otimes.proofs.catalogue import find

    for name in (*CONDITIONS, *OF_RECURRENT):
        assert find(name).chapter
    gpt2, bert, pythia = (systems(n).statements for n in ("GPT-2 XL", "BERT-base", "Pythia 70M"))
    assert gpt2["kv_cache_is_last_row"]
    assert not bert["kv_cache_is_last_row"]
    assert bert["attention_forgets_order"]
    assert pythia["rotary_scores_by_distance"]
    assert not pythia["key_bias_is_irrelevant"]
    assert systems("LSTM of 650 units").statements["cell_is_a_gated_sum"]


def test_the_table_and_refusals() -> None:
    assert "Pythia 410M" in repr(systems())
    assert repr(systems("GPT-3")).startswith("<GPT-3: decoder, 174,604.3M parameters")
    with pytest.raises(OtimesError, match="there is no system 'GPT-9'; there are GPT-2 small"):
        systems("GPT-9")
    with pytest.raises(OtimesError, match="is no transformer"):
        systems("LSTM of 650 units").small()
