"""The reference pass against loops over plain Python numbers, and bugs that it must not survive."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import numeric.forward
from numeric.forward import causal_mask, masked_softmax
from numeric.model import Model
from tests.numeric.random_models import TINY, TINY_TOKENS, random_model

# Unit roundoff 1.1e-16; entries up to about 100; at most 8 rounded sums of at most 7 terms in a
# row lead from the tokens to the logits: 1.1e-16 * 100 * 8 * 7 = 6e-13, and as much again for the
# condition of the softmax.  A wrong formula is wrong in the first digits.
TOLERANCE = 1e-12


def by_loops(model: Model, tokens: list[int]) -> dict[str, list]:
    """Every place by sums over indices, as the formulas define them, on lists of floats."""
    d_model, d_head, n_heads = model.d_model, model.d_head, model.n_heads
    n = len(tokens)
    X = [[float(model.W_E[t, c]) for c in range(d_model)] for t in tokens]
    places: dict[str, list] = {"embed": X}
    for L in range(model.n_layers):
        places[f"resid_pre.{L}"] = X
        P = [[X[i][c] + float(model.W_pos[i, c]) for c in range(d_model)] for i in range(n)]
        places[f"qk_in.{L}"] = P
        for place in ("q", "k", "v", "scores", "pattern", "z", "head_out"):
            places[f"{place}.{L}"] = []
        for h in range(n_heads):

            def read(rows, weight, h=h, L=L):
                return [
                    [
                        math.fsum(rows[i][c] * float(weight[L, h, c, a]) for c in range(d_model))
                        for a in range(d_head)
                    ]
                    for i in range(n)
                ]

            q, k, v = read(P, model.W_Q), read(P, model.W_K), read(X, model.W_V)
            scores = [
                [math.fsum(q[i][a] * k[j][a] for a in range(d_head)) / math.sqrt(d_head)
                 for j in range(n)]
                for i in range(n)
            ]  # fmt: skip
            pattern = [
                [
                    math.exp(scores[i][j]) / math.fsum(math.exp(s) for s in scores[i][: i + 1])
                    if j <= i
                    else 0.0
                    for j in range(n)
                ]
                for i in range(n)
            ]
            z = [
                [math.fsum(pattern[i][j] * v[j][a] for j in range(n)) for a in range(d_head)]
                for i in range(n)
            ]
            out = [
                [
                    math.fsum(z[i][a] * float(model.W_O[L, h, a, c]) for a in range(d_head))
                    for c in range(d_model)
                ]
                for i in range(n)
            ]
            for place, value in zip(
                ("q", "k", "v", "scores", "pattern", "z", "head_out"),
                (q, k, v, scores, pattern, z, out),
                strict=True,
            ):
                places[f"{place}.{L}"].append(value)
        heads_out = places[f"head_out.{L}"]
        attn_out = [
            [math.fsum(heads_out[h][i][c] for h in range(n_heads)) for c in range(d_model)]
            for i in range(n)
        ]
        X = [[X[i][c] + attn_out[i][c] for c in range(d_model)] for i in range(n)]
        places[f"attn_out.{L}"] = attn_out
        places[f"resid_mid.{L}"] = X
        places[f"resid_post.{L}"] = X
    places["logits"] = [
        [math.fsum(X[i][c] * float(model.W_U[c, t]) for c in range(d_model))
         for t in range(model.d_vocab)]
        for i in range(n)
    ]  # fmt: skip
    return places


def largest_difference(model: Model, tokens: list[int]) -> float:
    found = model.forward(tokens)
    expected = by_loops(model, tokens)
    assert sorted(found) == sorted(expected)
    return max(float(np.abs(found[place] - np.array(expected[place])).max()) for place in found)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("tokens", [TINY_TOKENS, [4], [10, 10, 0, 1, 2, 3, 4]])
def test_every_place_is_what_loops_compute(seed: int, tokens: list[int]) -> None:
    assert largest_difference(random_model(seed=seed), tokens) < TOLERANCE


@pytest.mark.parametrize(
    "config",
    [
        replace(TINY, positions="none"),
        replace(TINY, n_layers=0),
        replace(TINY, n_heads=1, d_head=1, d_model=1),
        replace(TINY, d_vocab=1, n_ctx=1),
    ],
    ids=["no positions", "no layer", "width one", "one token"],
)
def test_the_edges_of_the_sizes(config) -> None:
    tokens = [0] if config.d_vocab == 1 else TINY_TOKENS
    assert largest_difference(random_model(config), tokens) < TOLERANCE


def test_shapes_and_types_of_the_places() -> None:
    places = random_model().forward(TINY_TOKENS)
    shapes = {
        "embed": (6, 5), "resid_pre.0": (6, 5), "qk_in.0": (6, 5),
        "q.0": (3, 6, 2), "k.0": (3, 6, 2), "v.0": (3, 6, 2),
        "scores.0": (3, 6, 6), "pattern.0": (3, 6, 6),
        "z.0": (3, 6, 2), "head_out.0": (3, 6, 5),
        "attn_out.0": (6, 5), "resid_mid.0": (6, 5), "resid_post.0": (6, 5),
        "logits": (6, 11),
    }  # fmt: skip
    assert {place: places[place].shape for place in shapes} == shapes
    assert {array.dtype for array in places.values()} == {np.dtype(np.float64)}
    assert len(places) == 2 + 2 * 12


def test_a_pattern_is_causal_and_its_rows_sum_to_one() -> None:
    for head in random_model().forward(TINY_TOKENS)["pattern.1"]:
        assert (head[np.triu_indices(6, k=1)] == 0).all()
        # A row is divided by its own sum: n rounded divisions and n additions.
        assert np.abs(head.sum(axis=1) - 1).max() <= 2 * 6 * 2.0**-53


def test_scores_are_recorded_before_the_mask() -> None:
    assert np.isfinite(random_model().forward(TINY_TOKENS)["scores.0"]).all()


def test_a_large_hidden_score_changes_nothing() -> None:
    """With the maximum over the whole row, the visible entries would all underflow to 0 / 0."""
    scores = np.array([[1.0, 5000.0], [2.0, 3.0]])
    pattern = masked_softmax(scores, causal_mask(2))
    assert pattern[0].tolist() == [1.0, 0.0]
    assert np.isfinite(pattern).all()


def test_large_scores_do_not_overflow() -> None:
    pattern = masked_softmax(np.array([[0.0, 0.0], [1e4, -1e4]]), causal_mask(2))
    assert pattern.tolist() == [[1.0, 0.0], [1.0, 0.0]]


def _swap_queries_and_keys(qk_in, v_in, visible, W_Q, W_K, W_V, W_O):
    return ONE_HEAD(qk_in, v_in, visible, W_K, W_Q, W_V, W_O)


def _values_with_positions(qk_in, v_in, visible, *weights):
    return ONE_HEAD(qk_in, qk_in, visible, *weights)


def _keys_without_positions(qk_in, v_in, visible, *weights):
    return ONE_HEAD(v_in, v_in, visible, *weights)


def _temperature_forgotten(qk_in, v_in, visible, W_Q, *weights):
    return ONE_HEAD(qk_in, v_in, visible, W_Q * np.sqrt(W_Q.shape[1]), *weights)


ONE_HEAD = numeric.forward.one_head
SOFTMAX = masked_softmax
BUGS: dict[str, tuple[str, Callable]] = {
    "a query sees the next token": ("causal_mask", lambda n: np.tri(n, k=1, dtype=bool)),
    "a query does not see itself": (
        "causal_mask",
        lambda n: np.tri(n, k=-1, dtype=bool) | (np.arange(n) == 0),
    ),
    "the softmax runs over queries": ("masked_softmax", lambda s, m: SOFTMAX(s.T, m.T).T),
    "the mask comes after the softmax": (
        "masked_softmax",
        lambda s, m: SOFTMAX(s, np.ones_like(m)) * m,
    ),
    "queries and keys are swapped": ("one_head", _swap_queries_and_keys),
    "values read the positions": ("one_head", _values_with_positions),
    "queries and keys do not": ("one_head", _keys_without_positions),
    "the scale is forgotten": ("one_head", _temperature_forgotten),
}


@pytest.mark.parametrize("bug", BUGS)
def test_the_loops_see_a_planted_bug(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, wrong = BUGS[bug]
    monkeypatch.setattr(numeric.forward, where, wrong)
    assert largest_difference(random_model(), TINY_TOKENS) > 1e6 * TOLERANCE
