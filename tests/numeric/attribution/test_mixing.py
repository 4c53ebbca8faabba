"""Norms, distances and rollout, by loops over what loops computed; rollout as a sum of paths."""

import itertools
import math

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError
from otimes.numeric.attribution.mixing import (
    attention_rollout,
    context_mixing,
    output_value_norms,
    value_norms,
)
from otimes.numeric.load import load_model
from otimes.numeric.random_weights import random_model as drawn
from tests.numeric.attribution.cases import case, near
from tests.numeric.loops import by_loops
from tests.numeric.random_models import KINDS, TINY_TOKENS, random_model

every_kind = pytest.mark.parametrize("kind", KINDS)


def output(model, layer: int, head: int, v: list[float]) -> list[float]:
    W_O = model.weights["W_O"][layer][head].astype(float).tolist()
    return [math.fsum(v[k] * W_O[k][j] for k in range(len(v))) for j in range(model.d_model)]


@every_kind
def test_norms_of_what_heads_move_and_write(kind: str) -> None:
    model, tokens = case(kind)
    places, n = by_loops(model, tokens), len(tokens)
    values = np.zeros((model.n_layers, model.n_heads, n, n))
    outputs = np.zeros_like(values)
    for layer, head in np.ndindex(values.shape[:2]):
        pattern, v = places[f"pattern.{layer}"][head], places[f"v.{layer}"][head]
        for i, j in np.ndindex(n, n):
            a = pattern[i][j]
            values[layer, head, i, j] = math.hypot(*(a * x for x in v[j]))
            written = output(model, layer, head, v[j])
            outputs[layer, head, i, j] = math.hypot(*(a * x for x in written))
    assert near(value_norms(model, tokens).values, values)
    assert near(output_value_norms(model, tokens).values, outputs)


@every_kind
def test_distances_by_loops(kind: str) -> None:
    model, tokens = case(kind)
    places, n = by_loops(model, tokens), len(tokens)
    found = context_mixing(model, tokens).values
    for layer in range(model.n_layers):
        for i in range(n):
            terms = []
            for j in range(n):
                term = list(places[f"resid_pre.{layer}"][i]) if i == j else [0.0] * model.d_model
                for head in range(model.n_heads):
                    a = places[f"pattern.{layer}"][head][i][j]
                    written = output(model, layer, head, places[f"v.{layer}"][head][j])
                    term = [x + a * w for x, w in zip(term, written, strict=True)]
                terms.append(term)
            y = places[f"resid_mid.{layer}"][i]
            b_O = model.b_O[layer]
            assert near(np.sum(terms, axis=0) + b_O, y)  # the parts and b_O make up the row
            length = math.fsum(map(abs, y))
            near_y = [
                max(0.0, length - math.fsum(abs(a - b) for a, b in zip(y, term, strict=True)))
                for term in terms
            ]
            if math.fsum(near_y):
                assert near(found[layer, i], np.array(near_y) / math.fsum(near_y), 1e-11)
            else:
                assert np.isnan(found[layer, i, : i + 1]).all()


@every_kind
@pytest.mark.parametrize("residual", [True, False])
def test_rollout_by_loops(kind: str, residual: bool) -> None:
    model, tokens = case(kind)
    places, n = by_loops(model, tokens), len(tokens)
    found = attention_rollout(model, tokens, residual=residual).values
    so_far = [[float(i == j) for j in range(n)] for i in range(n)]
    for layer in range(model.n_layers):
        heads = places[f"pattern.{layer}"]
        mean = [[math.fsum(h[i][j] for h in heads) / len(heads) for j in range(n)]
                for i in range(n)]  # fmt: skip
        if residual:
            mean = [[(mean[i][j] + (i == j)) / 2 for j in range(n)] for i in range(n)]
        so_far = [[math.fsum(mean[i][k] * so_far[k][j] for k in range(n)) for j in range(n)]
                  for i in range(n)]  # fmt: skip
        assert near(found[layer], so_far)


@pytest.mark.parametrize("kind", ["gpt2", "attention only", "induction", "gpt2_tiny"])
def test_rollout_is_a_sum_over_paths(kind: str) -> None:
    """Each path through k heads counts $2^{-L} H^{-k}$: all (1 + H)^L of them are enumerated."""
    model, tokens = case(kind)
    L, H, n = model.n_layers, model.n_heads, len(tokens)
    places = model.forward(tokens)
    total = np.zeros((n, n))
    for path in itertools.product([None, *range(H)], repeat=L):
        product = np.eye(n)
        for layer, head in enumerate(path):
            if head is not None:
                product = places[f"pattern.{layer}"][head] @ product
        order = sum(head is not None for head in path)
        total += 2.0**-L * float(H) ** -order * product
    found = attention_rollout(model, tokens).values[-1]
    assert near(found, total)
    assert near(found.sum(axis=1), np.ones(n))
    assert not np.triu(found, 1).any()


def test_rollout_is_what_happens_where_values_and_outputs_are_the_identity() -> None:
    model = drawn(n_layers=3, n_heads=1, d_model=6, d_head=6)
    eye = np.tile(np.eye(6), (3, 1, 1, 1))
    model = model.changed({"W_V": eye, "W_O": eye})
    places = model.forward(TINY_TOKENS)
    rolled = attention_rollout(model, TINY_TOKENS).values[-1]
    assert near(rolled @ places["embed"], places["final"] / 2**3)


def test_rollout_of_distances_multiplies_layers_as_they_are() -> None:
    model = load_model("two_layer")
    first, second = context_mixing(model, "x = [1, 2]").values
    found = attention_rollout(model, "x = [1, 2]", "distance")
    assert near(found.values[0], first)
    assert near(found.values[1], second @ first)
    assert near(found.values.sum(axis=2), np.ones(found.values.shape[:2]))


def test_the_basis_of_values_moves_their_norms_and_nothing_else() -> None:
    model, tokens = case("gpt2")
    M = np.random.default_rng(0).standard_normal((2, model.n_heads, model.d_head, model.d_head))
    gauged = model.changed(
        {
            "W_V": model.W_V @ M,
            "b_V": np.einsum("lhk,lhkm->lhm", model.b_V, M),
            "W_O": np.linalg.inv(M) @ model.W_O,
        }
    )
    # M has a condition of up to a few hundred.
    for same in (output_value_norms, context_mixing, attention_rollout):
        assert near(same(gauged, tokens).values, same(model, tokens).values, 1e-10)
    assert not near(value_norms(gauged, tokens).values, value_norms(model, tokens).values, 0.1)


def test_permuted_heads_are_permuted() -> None:
    model, tokens = case("gpt2")
    order = [2, 0, 3, 1]
    per_head = [f"{kind}_{letter}" for kind in "Wb" for letter in "QKV"] + ["W_O"]
    permuted = model.changed({name: model.weights[name][:, order] for name in per_head})
    for each in (value_norms, output_value_norms):
        assert near(each(permuted, tokens).values, each(model, tokens).values[:, order])
    for each in (context_mixing, attention_rollout):
        assert near(each(permuted, tokens).values, each(model, tokens).values)


def test_a_turned_stream_keeps_euclidean_norms_and_not_distances() -> None:
    """Distances are sums of absolute entries, as in the paper: they have a basis."""
    model, tokens = case("biases only")
    Q, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))
    turned = model.changed(
        {
            **{name: model.weights[name] @ Q for name in ("W_E", "W_O", "b_O", "W_pos")},
            **{name: Q.T @ model.weights[name] for name in ("W_Q", "W_K", "W_V", "W_U")},
        }
    )
    for same in (value_norms, output_value_norms):
        assert near(same(turned, tokens).values, same(model, tokens).values, 1e-11)
    moved, before = (context_mixing(each, tokens).values for each in (turned, model))
    assert not near(moved, before, 1e-2)


def test_norms_are_no_shares() -> None:
    """The length of a sum is at most the sum of lengths, and on a real head it is much less."""
    model, tokens = case("induction")
    places = model.forward(tokens)
    lengths = output_value_norms(model, tokens).values[1].sum(axis=2)
    together = np.linalg.norm(places["head_out.1"], axis=2)
    assert (together <= lengths * (1 + 1e-12)).all()
    assert (together[:, -1] < 0.9 * lengths[:, -1]).any()


def test_wrong_use() -> None:
    with pytest.raises(OtimesError, match="method must be 'attention' or 'distance', got 'flow'"):
        attention_rollout(random_model(), TINY_TOKENS, "flow")
    with pytest.raises(
        OtimesError, match="the prompt is text, but random has 11 tokens and the bundled vocabulary"
    ):
        value_norms(random_model(), "x")
    model, tokens = case("mlp without norms")
    with pytest.raises(
        OtimesError, match="all distance contributions of layer 0 at query position 1 are clipped"
    ):
        attention_rollout(model, tokens, "distance")
