"""The reference pass against loops over plain Python numbers, and bugs that it must not survive."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import scipy.special

import otimes.numeric.forward
from otimes.algebra.errors import OtimesError
from otimes.numeric.block import place_names
from otimes.numeric.config import Config
from otimes.numeric.forward import block, one_head
from otimes.numeric.functions import masked_softmax, normalise, rotate
from otimes.numeric.layer import HeadWeights
from otimes.numeric.model import Model, make_model
from tests.numeric.loops import by_loops
from tests.numeric.random_models import (
    ALL,
    EVERY,
    FULL,
    KINDS,
    TINY,
    TINY_TOKENS,
    random_model,
    random_weights,
)

# Unit roundoff 1.1e-16; entries up to about 100; at most 8 rounded sums of at most 7 terms in a
# row lead from the tokens to the logits: 1.1e-16 * 100 * 8 * 7 = 6e-13, and as much again for the
# condition of the softmax.  With MLPs there are 14 sums of at most 13 terms on the way, but of
# entries up to about 10, since norms bring the stream back to order one.  A wrong formula is wrong
# in the first digits.
TOLERANCE = 1e-12


def largest_difference(model: Model, tokens: list[int]) -> float:
    found = model.forward(tokens)
    expected = by_loops(model, tokens)
    assert tuple(found) == place_names(model.config)
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


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("tokens", [TINY_TOKENS, [4]])
def test_every_kind_is_what_loops_compute(kind: str, tokens: list[int]) -> None:
    assert largest_difference(random_model(EVERY[kind], seed=3), tokens) < TOLERANCE


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
    assert len(places) == 3 + 2 * 12


def test_shapes_of_the_places_of_a_full_block() -> None:
    model = random_model(KINDS["llama"])
    places = model.forward(TINY_TOKENS)
    shapes = {
        "ln1.1": (6, 9), "q.1": (4, 6, 6), "k.1": (4, 6, 6), "v.1": (4, 6, 6),
        "ln2.1": (6, 9), "mlp_pre.1": (6, 13), "mlp_post.1": (6, 13), "mlp_out.1": (6, 9),
        "resid_post.1": (6, 9), "final": (6, 9), "ln_final": (6, 9), "logits": (6, 11),
    }  # fmt: skip
    assert {place: places[place].shape for place in shapes} == shapes


def test_only_what_is_asked_for_is_kept() -> None:
    model = random_model(FULL)
    places = model.forward(TINY_TOKENS)
    some = model.forward(TINY_TOKENS, ["pattern.1", "embed", "logits"])
    assert sorted(some) == ["embed", "logits", "pattern.1"]
    assert all(np.array_equal(some[place], places[place]) for place in some)
    with pytest.raises(
        OtimesError, match=r"no activation pattern and q\.2; it has embed, resid_pre\.0…1,"
    ):
        model.forward(TINY_TOKENS, ["pattern", "q.2"])


def test_numbers_that_grow_beyond_float64_are_named_by_their_place() -> None:
    config = replace(TINY, positions="none")
    weights = {name: weight.astype(float) for name, weight in random_weights(config).items()}
    weights["W_V"][1] *= 1e200
    weights["W_O"][1] *= 1e200
    with pytest.raises(
        OtimesError,
        match=r"resid_post\.1 is not finite: its entry \(0, 0\) is inf\. The weights are so",
    ):
        make_model("huge", config, weights).forward(TINY_TOKENS)


def test_cross_attention_of_one_head() -> None:
    """Three queries on one text, five keys on another of another width, any mask."""
    draw = np.random.default_rng(0)
    x, y = draw.standard_normal((3, 4)), draw.standard_normal((5, 6))
    shapes = {"W_Q": (4, 2), "W_K": (6, 2), "W_V": (6, 2), "W_O": (2, 4)}
    head = HeadWeights(
        **{name: draw.standard_normal(shape) for name, shape in shapes.items()},
        **{name: draw.standard_normal(2) for name in ("b_Q", "b_K", "b_V")},
    )
    visible = draw.random((3, 5)) < 0.5
    visible[:, 0] = True
    at = one_head(x, y, y, visible, head)
    for i in range(3):
        q = x[i] @ head.W_Q + head.b_Q
        scores = [
            q @ (y[j] @ head.W_K + head.b_K) / np.sqrt(2) if visible[i, j] else -np.inf
            for j in range(5)
        ]
        pattern = scipy.special.softmax(scores)
        z = sum(pattern[j] * (y[j] @ head.W_V + head.b_V) for j in range(5))
        # Ten roundings on numbers below 20.
        assert np.abs(at["pattern"][i] - pattern).max() < 10 * 20 * 2.0**-53
        assert np.abs(at["head_out"][i] - z @ head.W_O).max() < 10 * 20 * 2.0**-53
    visible[1] = False
    with pytest.raises(OtimesError, match="all keys of query 1 are masked"):
        one_head(x, y, y, visible, head)


def test_a_pattern_is_causal_and_its_rows_sum_to_one() -> None:
    for head in random_model().forward(TINY_TOKENS)["pattern.1"]:
        assert (head[np.triu_indices(6, k=1)] == 0).all()
        # A row is divided by its own sum: n rounded divisions and n additions.
        assert np.abs(head.sum(axis=1) - 1).max() <= 2 * 6 * 2.0**-53


def test_scores_are_recorded_before_the_mask() -> None:
    assert np.isfinite(random_model().forward(TINY_TOKENS)["scores.0"]).all()


def _swap_queries_and_keys(query_in, key_in, value_in, visible, head, config, *_):
    swapped = replace(head, W_Q=head.W_K, W_K=head.W_Q)
    return ONE_HEAD(query_in, key_in, value_in, visible, swapped, config)


def _values_with_positions(query_in, key_in, value_in, *rest):
    return ONE_HEAD(query_in, key_in, query_in, *rest)


def _keys_without_positions(query_in, key_in, value_in, *rest):
    return ONE_HEAD(value_in, value_in, value_in, *rest)


def _temperature_forgotten(query_in, key_in, value_in, visible, head, config, *_):
    warm = replace(head, W_Q=head.W_Q * np.sqrt(head.W_Q.shape[1]))
    return ONE_HEAD(query_in, key_in, value_in, visible, warm, config)


def _without_bias(name):
    def bug(query_in, key_in, value_in, visible, head, config, *_):
        less = replace(head, **{name: np.zeros_like(getattr(head, name))})
        return ONE_HEAD(query_in, key_in, value_in, visible, less, config)

    return bug


ONE_HEAD = otimes.numeric.forward.one_head
SOFTMAX = masked_softmax
BUGS: dict[str, tuple[str, Callable]] = {
    "a query sees the next token": ("visible_keys", lambda n, w: np.tri(n, k=1, dtype=bool)),
    "a query does not see itself": (
        "visible_keys",
        lambda n, w: np.tri(n, k=-1, dtype=bool) | (np.arange(n) == 0),
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
    monkeypatch.setattr(otimes.numeric.forward, where, wrong)
    assert largest_difference(random_model(), TINY_TOKENS) > 1e6 * TOLERANCE


def _changed_config(**changes):
    """A block that takes the model for one of another kind."""
    return "block", lambda config, *rest: block(replace(config, **changes), *rest)


def _sum_added(config, layer, *rest):
    """A post-norm block whose second sum takes up the first one, before its norm."""
    at = block(config, layer, *rest)
    at["resid_post"] = at["resid_mid"] + at["mlp_out"]
    eps, gain, bias = config.norm_eps, layer.ln2_gain, layer.ln2_bias
    at["ln2"] = normalise(at["resid_post"], config.norm, eps, gain, bias)
    return at


def _norm_with(formula: Callable) -> tuple[str, Callable]:
    return "normalise", lambda rows, kind, eps, gain, bias: formula(rows, kind, eps, gain, bias)


FULL_BUGS: dict[str, tuple[str, tuple[str, Callable]]] = {
    "queries have no bias": ("gpt2", ("one_head", _without_bias("b_Q"))),
    "values have no bias": ("gpt2", ("one_head", _without_bias("b_V"))),
    "the other activation": ("gpt2", _changed_config(activation="gelu")),
    "relu for gelu": ("neox", _changed_config(activation="relu")),
    "not gated": ("llama", _changed_config(gated=False)),
    "the parallel block in a row": ("neox", _changed_config(parallel=False)),
    "a block in parallel": ("gpt2", _changed_config(parallel=True)),
    "the sum passed on and not its norm": ("encoder", ("passes_on", lambda config: "resid_post")),
    "the sum added and not its norm": ("encoder", ("block", _sum_added)),
    "the other layout": ("gptj", _changed_config(rotary_layout="half")),
    "the layout of the others": ("neox", _changed_config(rotary_layout="interleaved")),
    "all of d_head turned": ("gptj", _changed_config(rotary_dims=6)),
    "frequencies not stretched": ("llama 3.1", _changed_config(rotary_stretch=())),
    "all frequencies stretched": ("llama 3.1", _changed_config(rotary_stretch=(8.0,))),
    "not scaled": ("yarn", _changed_config(rotary_stretch=(8.0, 0.2, 1.0, 12.0, 1.0))),
    "the shares of Llama 3.1": ("yarn", _changed_config(rotary_stretch=(8.0, 0.2, 1.0, 12.0))),
    "another base": ("gptj", _changed_config(rotary_base=10000.0)),
    "turned the other way": (
        "neox",
        ("rotate", lambda rows, *kind: rotate(rows[::-1], *kind)[::-1]),
    ),
    "centred in RMSNorm": (
        "llama",
        _norm_with(lambda rows, kind, *rest: normalise(rows, "layer", *rest)),
    ),
    "not centred in LayerNorm": (
        "gpt2",
        _norm_with(lambda rows, kind, *rest: normalise(rows, "rms", *rest)),
    ),
    "no epsilon": (
        "llama",
        _norm_with(lambda rows, kind, eps, *rest: normalise(rows, kind, 0.0, *rest)),
    ),
    "epsilon outside of the root": (
        "llama",
        _norm_with(lambda rows, kind, eps, *rest: normalise(rows, kind, eps**2, *rest)),
    ),
    "the variance of a sample": (
        "gpt2",
        _norm_with(
            lambda x, kind, eps, gain, bias: (
                (x - x.mean(1, keepdims=True))
                / np.sqrt(x.var(1, ddof=1, keepdims=True) + eps)
                * gain
                + bias
            )
        ),
    ),
    "the gain on the bias too": (
        "gpt2",
        _norm_with(
            lambda rows, kind, eps, gain, bias: (
                (normalise(rows, kind, eps, np.ones(1), 0 * bias) + bias) * gain
            )
        ),
    ),
}


@pytest.mark.parametrize("bug", FULL_BUGS)
def test_the_loops_see_a_bug_in_a_full_block(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, (where, wrong) = FULL_BUGS[bug]
    monkeypatch.setattr(otimes.numeric.forward, where, wrong)
    assert largest_difference(random_model(EVERY[kind], seed=3), TINY_TOKENS) > 1e6 * TOLERANCE


def test_grouped_heads_share_keys_in_order() -> None:
    """Heads 0 and 1 have the first key head, 2 and 3 the second; loops see heads dealt in turn."""
    model = random_model(KINDS["llama"])
    assert np.array_equal(model.W_K[:, 0], model.W_K[:, 1])
    assert np.array_equal(model.W_K[1, 3], model.weights["W_K"][1, 1])
    weights = {**model.weights, "W_K": model.weights["W_K"][:, ::-1]}
    other = make_model("other", model.config, weights)
    difference = other.forward(TINY_TOKENS)["k.0"] - np.array(by_loops(model, TINY_TOKENS)["k.0"])
    assert np.abs(difference).max() > 1e6 * TOLERANCE


def test_rotary_scores_depend_on_the_distance_alone() -> None:
    """The same token everywhere: every diagonal of the scores is constant."""
    for kind in ("llama", "neox", "gptj"):
        scores = random_model(EVERY[kind]).forward([5] * 7)["scores.0"]
        for distance in range(1, 6):
            diagonal = np.diagonal(scores, -distance, axis1=1, axis2=2)
            # Twelve products and turns of numbers below 10.
            assert np.ptp(diagonal, axis=1).max() < 12 * 10 * 10 * 2.0**-53
        assert np.ptp(scores[:, 6], axis=1).min() > 1e-3


def test_config_is_what_the_places_say() -> None:
    assert place_names(Config(0, 1, 2, 1, 2, 2, "none")) == ("embed", "final", "logits")


def test_logits_are_computed_only_when_they_are_recorded() -> None:
    """A W_U so large that logits overflow is not even looked at when only the stream is wanted."""
    weights = random_weights(TINY)
    model = make_model("loud", TINY, {**weights, "W_U": np.full(weights["W_U"].shape, 1.79e308)})
    expected = make_model("loud", TINY, weights).forward(TINY_TOKENS)["final"]
    assert (model.forward(TINY_TOKENS, ["final"])["final"] == expected).all()
    with pytest.raises(OtimesError, match="logits is not finite"):
        model.forward(TINY_TOKENS, ["logits"])


@pytest.mark.parametrize("kind", ALL)
def test_stacked_prompts_have_the_activations_of_each(kind: str) -> None:
    """A batch is one product for all prompts; each of them must be what it is by itself."""
    model = random_model(ALL[kind])
    prompts = [TINY_TOKENS, TINY_TOKENS[::-1], [1, 2, 3, 4, 5, 6]]
    together = model.forward(prompts)
    assert tuple(together) == place_names(model.config)
    for number, prompt in enumerate(prompts):
        for place, alone in model.forward(prompt).items():
            assert np.abs(together[place][number] - alone).max() < TOLERANCE, place
