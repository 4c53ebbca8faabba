"""A claim is about what its title and words say: each slip here is true of all matrices."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import Identity, MatrixSymbol, Symbol, Transpose, ZeroMatrix

from otimes.algebra.errors import OtimesError
from otimes.algebra.facts import Fact
from otimes.algebra.language.linear import Family, matadd, matmul
from otimes.algebra.language.nonlinear import Activation, CausalMask, LayerNorm, RowSoftmax
from otimes.numeric.binding import Run, Source, run_of
from otimes.numeric.load import load_model
from otimes.numeric.random_weights import random_model
from otimes.proofs.catalogue import catalogue, find
from otimes.proofs.catalogue.symbols import A, X, d, d_head, d_mlp, n, row
from otimes.proofs.checks import meanings
from otimes.proofs.checks.constants import constant
from otimes.proofs.checks.stages import displaced
from otimes.proofs.checks.words import OTHERWISE, unworded
from otimes.proofs.claims import Definition, Property, Statement
from otimes.proofs.on_models import check_on_model
from otimes.proofs.rebound import check_bindings
from otimes.proofs.theorem import Theorem
from otimes.proofs.verification import verify_on_runs

S, v = MatrixSymbol("S", n, n), MatrixSymbol("v", n, d_head)
W_in = MatrixSymbol("W_in", d, d_mlp)
pre, final = MatrixSymbol("mlp_pre", n, d_mlp), MatrixSymbol("final", n, d)
g = Symbol("g", integer=True)

RECORDED = re.compile(
    r"\b(patterns?|attention weights?|scores?|keys?|quer(y|ies)|values?|neurons?|activations?|"
    r"stream|logits?|LayerNorm|RMSNorm|embedding)\b"
)
OTHERS = re.compile(
    r"(Shapley|singular) values?|(composition|prefix-matching) score|key-value|"
    r"scores? (of )?gradient"
)
FUNCTION = "about LayerNorm of any rows; the bound stream is an example of them"
SOFTMAX = "about softmax of any scores; moderate numbers stand for them"
PART = "bound to a part of the arrays, as whole ones are too large to form"
HYPOTHETICAL = "about a layer that no bundled model has"
UNRECORDED = {
    FUNCTION: """layer_norm_is_rms_norm_of_centred layer_norm_rescales_to_sqrt_d
        layer_norm_squared_length layer_norm_length_at_most_sqrt_d layer_norm_is_odd
        layer_norm_ignores_shift_and_scale layer_norm_is_not_linear layer_norm_derivative
        layer_norm_scale_passes_readers layer_norm_jacobian_along_stream
        centring_folds_into_readers frozen_norm_is_a_matrix""",
    SOFTMAX: """softmax_of_rows softmax_ratio weights_order_as_scores weights_follow_gaps
        weight_missing_from_a_key equal_rows_stay_equal""",
    PART: """neurons_write_their_values neuron_cosine projected_values linear_layer_rank
        preactivation_rank head_jacobian_of_earlier_token prediction_asks_for_its_token""",
    HYPOTHETICAL: """additive_alignment_scores self_alignment_scores latent_keys_are_absorbed
        relu_pairs_pass_the_stream relu_commutes_with_positive_scales""",
    "products of all layers' patterns, which no forward pass forms": """
        product_of_patterns_is_stochastic product_of_patterns_is_causal""",
    "a rearrangement of the stream, which is what it reads": """stream_is_sum_of_tensors
        stream_up_to vec_rows_mul""",
    "about any matrices for layers, of which patterns are an example": """replay_by_order
        score_path_pairs score_path_pairs_count source_is_carried_like_embedding""",
}
"""Entries on models whose title names something recorded and that no place can be given."""

RIGHT: dict[str, Any] = {
    "values": matmul(A, v),
    "two patterns": matmul(A, A, X),
    "queries": matmul(X, row.W_Q),
    "the logit lens": matmul(MatrixSymbol("resid_mid", n, d), row.W_U),
    "a pattern": RowSoftmax(MatrixSymbol("scores", n, n), CausalMask(n)),
    "a Gram matrix": matmul(final, Transpose(final)),
}
WRONG: dict[str, tuple[Any, str]] = {
    "keys for values": (matmul(A, MatrixSymbol("k", n, d_head)), "which moves values"),
    "scores for a pattern": (matmul(MatrixSymbol("scores", n, n), v), "which move nothing"),
    "the end of the stream": (matmul(final, row.W_V), "W_V does not read final"),
    "the MLP's stream": (matmul(MatrixSymbol("ln2", n, d), row.W_Q), "W_Q does not read ln2"),
    "attention's stream": (matmul(MatrixSymbol("ln1", n, d), W_in), "W_in does not read ln1"),
    "softmax twice": (RowSoftmax(matmul(2, A)), "softmax is applied to pattern"),
    "the activation twice": (Activation("g", MatrixSymbol("mlp_post", n, d_mlp)), "once more"),
    "the norm twice": (LayerNorm(MatrixSymbol("ln1", n, d)), "a norm is applied to ln1"),
}


@pytest.fixture(scope="module")
def run() -> Run:
    model = random_model(n_layers=2, n_heads=2, d_model=12, d_head=5, d_vocab=12, n_ctx=16)
    return run_of(model, [1, 7, 3, 3, 9])


@pytest.mark.parametrize("name", RIGHT)
def test_what_a_forward_pass_has_is_accepted(name: str) -> None:
    assert not displaced(Statement(RIGHT[name], RIGHT[name]))


@pytest.mark.parametrize("name", WRONG)
def test_what_no_forward_pass_has_is_named(name: str) -> None:
    expression, said = WRONG[name]
    assert said in displaced(Statement(expression, expression))


def test_a_binding_decides_what_stands_there() -> None:
    moved = Statement(matmul(S, v), matmul(S, v), bind=({"S": Source("pattern")},))
    assert not displaced(moved)
    assert "scores" in displaced(replace(moved, bind=({"S": Source("scores")},)))


def test_an_array_that_no_word_names_is_reported() -> None:
    keys = Statement(matmul(X, row.W_K), matmul(X, row.W_K))
    assert unworded("mine", "A query", "Queries are linear.", keys) == (
        "the claim is about W_K, which neither title nor prose names"
    )
    assert not unworded("mine", "A key", "Keys are linear.", keys)
    assert not unworded("mine", "A query", "", replace(keys, places={"k": matmul(X, row.W_K)}))
    bound = Statement(matmul(S, v), matmul(S, v), bind=({"S": Source("resid_pre")},))
    assert "resid_pre" in unworded("mine", "Values", "Any values.", bound)
    part = replace(bound, bind=({"S": Source("resid_pre", cols=2)},))
    example = replace(bound, bind=({"S": Source("resid_pre", example=True)},))
    assert not unworded("mine", "Values", "Any values.", part)
    assert not unworded("mine", "Values", "Any values.", example)


def test_a_weight_that_the_words_begin_with_is_read() -> None:
    logits = Statement(matmul(X, row.W_U), matmul(X, row.W_U))
    said = "the words begin with W_U, which the claim does not read"
    other = Statement(matmul(X, Transpose(row.W_E)), matmul(X, Transpose(row.W_E)))
    for title, prose in (("Logits are X W_U", ""), ("Logits", "They are X W_U. No token.")):
        assert not unworded("mine", title, prose, logits)
        assert said in unworded("mine", title, prose, other)
    later = "Tokens are read. Another sentence is about W_U."
    assert not unworded("mine", "Logits", later, other)
    assert said in unworded(
        "mine", "Logits", "Tokens are read. If W_E W_U = 0, so are they.", other
    )
    keys = Statement(matmul(row.W_Q, Transpose(row.W_K)), matmul(row.W_Q, Transpose(row.W_K)))
    assert not unworded("mine", "W_QK is a head's", "", keys)
    assert "b_K" in unworded("mine", "The key bias of a head", "", keys)


def test_every_exception_is_needed() -> None:
    for entry, name in OTHERWISE:
        found = find(entry)
        assert name in unworded("mine", found.title, found.prose, found.claim())


def test_a_claim_that_is_not_checked_on_models_binds_nothing() -> None:
    for theorem in catalogue():
        claim = theorem.claim()
        assert getattr(claim, "on_models", True) or not any(getattr(claim, "bind", ())), (
            theorem.name
        )


def test_a_hypothesis_that_makes_a_symbol_constant_is_reported() -> None:
    Q, noise = MatrixSymbol("Q", d, d), Family("N", (n,), d, 1)
    stated = Statement(matmul(X, Q), X)
    for given in ((Q, Identity(d)), (Transpose(Q), matmul(2, Identity(d)))):
        assert "makes Q" in constant("Any rotation", replace(stated, given=(given,)))
    assert "constant" in constant("Noise", replace(stated, given=((noise[g], ZeroMatrix(d, 1)),)))
    orthogonal = replace(stated, given=((matmul(Q, Transpose(Q)), Identity(d)),))
    assert not constant("Any rotation", orthogonal)
    assert not constant("Where Q is the identity", replace(stated, given=((Q, Identity(d)),)))


def test_a_property_and_a_definition_are_held_to_their_places(run: Run) -> None:
    pattern = RowSoftmax(S, CausalMask(n))
    causal = Property(Fact("causal", pattern), bind=({"S": Source("scores")},))
    tied = replace(causal, places={"pattern": pattern})
    named = Definition("moved", matmul(A, X), lambda A, X, **_: A @ X)
    written = {"head_out": matmul(A, X, row.W_V, row.W_O)}
    assert check_bindings(causal, [run]) is None
    for claim in (tied, replace(named, places=written)):
        found = check_bindings(claim, [run])
        assert found is not None
        assert found.passed
        assert found.noticed > 2
        assert _verified(claim, run).passed
    wrong = replace(tied, bind=({"S": Source("pattern")},))
    assert not _verified(wrong, run).passed
    wrong_part = replace(named, places={"head_out": matmul(A, X, row.W_K, row.W_O)})
    assert not _verified(wrong_part, run).passed


def test_a_place_may_be_that_of_one_layer(run: Run) -> None:
    stream = matadd(MatrixSymbol("X_0", n, d), MatrixSymbol("F", n, d))
    bind = {"X_0": Source("resid_pre", 0), "F": Source("attn_out", 0)}
    claim = Statement(stream, matadd(*reversed(stream.args)), bind=(bind,))
    for layer, passed in ((0, True), (1, False)):
        placed = replace(claim, places={Source("resid_mid", layer): stream})
        assert _verified(placed, run).models[0].passed is passed
    assert "name one" in _verified(replace(claim, places={"resid_mid": stream}), run).models[0].why


def test_an_example_is_not_what_a_claim_is_about(run: Run) -> None:
    Y = MatrixSymbol("Y", n, d)
    claim = Statement(
        matmul(matadd(X, Y), row.W_V),
        matadd(matmul(X, row.W_V), matmul(Y, row.W_V)),
        places={"v": matmul(X, row.W_V)},
        bind=({"Y": Source("embed")},),
    )
    found = check_bindings(claim, [run])
    assert found is not None
    assert any("embed" in change for change in found.unnoticed)
    again = check_bindings(replace(claim, bind=({"Y": Source("embed", example=True)},)), [run])
    assert again is not None
    assert again.passed


def test_what_a_title_names_is_compared_with_what_is_recorded() -> None:
    """An entry on models has places, or is listed with its reason; no reason is left over."""
    explained = {name: why for why, names in UNRECORDED.items() for name in names.split()}
    for theorem in catalogue():
        claim = theorem.claim()
        held = bool(getattr(claim, "places", ()))
        assert not (held and theorem.name in explained), theorem.name
        named = RECORDED.search(OTHERS.sub("", theorem.title)) and claim.expressions
        if named and getattr(claim, "on_models", True) and not held:
            assert theorem.name in explained, theorem.name
            sources = [each for bind in claim.bind for each in bind.values()]
            if explained[theorem.name] == PART:
                assert any(each.rows or each.cols for each in sources), theorem.name


def test_every_entry_means_what_it_says() -> None:
    """It fails where the words of an entry no longer name what its claim reads."""
    for theorem in catalogue():
        assert not [each for each in meanings(theorem, theorem.claim()) if each], theorem.name


def _verified(claim: Any, run: Run) -> Any:
    entry = Theorem("mine", "Mine", 0, "row", "", (), "", lambda: claim)
    return verify_on_runs(entry, [run])


def test_a_place_without_a_layer_is_refused(run: Run) -> None:
    from otimes.numeric.binding import Case, recorded

    with pytest.raises(OtimesError, match="has a layer, and no array of the claim does"):
        recorded(Source("z"), ["n", "d_head"], Case({}, {}), run)


def test_heads_in_the_other_order_are_of_other_groups() -> None:
    """As the prose of the entry says, of `llama_tiny`."""
    run = run_of(load_model("llama_tiny"), [1, 7, 3, 3, 9])
    claim = find("grouped_heads_mix_shared_values").statement()
    turned = {
        name: np.swapaxes(run.arrays[name], 1, 2) for name in ("grouped_pattern", "grouped_W_O")
    }
    assert run.arrays["grouped_pattern"].shape[1:3] == (2, 2)
    assert check_on_model(claim, run).passed
    assert not check_on_model(claim, replace(run, arrays={**run.arrays, **turned})).passed
