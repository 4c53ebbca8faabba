"""Passes with replacements, beside a pass in plain loops with hooks."""

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.block import place_names
from otimes.numeric.interventions.frozen import held
from otimes.numeric.interventions.hooks import Hook, hook
from otimes.numeric.interventions.passes import Pass, intervene
from otimes.numeric.interventions.patching import activation_patching
from tests.numeric.interventions.plain import plain
from tests.numeric.random_models import ALL, KINDS, TINY_TOKENS, random_model

OTHER = [5, 1, 10, 2, 0, 7]
SOME = ("attention only", "gpt2", "llama", "gptj", "everything", "mlp without norms")
PLACES = ("q", "k", "v", "pattern", "z", "head_out", "attn_out", "resid_mid", "mlp_out", "mlp_post")
CLOSE = 1e-10  # entries are of order 10, and a pass in float64 rounds a few hundred times


def close(found: dict, expected: dict) -> bool:
    return all(
        np.abs(found[name] - value).max() < CLOSE
        for name, value in expected.items()
        if name in found
    )


@pytest.mark.parametrize("kind", SOME)
def test_what_follows_from_a_replaced_part_is_computed_again(kind: str) -> None:
    model = random_model(KINDS[kind])
    rng = np.random.default_rng(1)
    names = place_names(model.config)
    for place in PLACES:
        if f"{place}.0" not in names or (place == "resid_mid" and model.config.parallel):
            continue
        per_head = place in ("q", "k", "v", "pattern", "z", "head_out")
        part = (1, [2, 4]) if per_head else ([2, 4],)
        like = plain(model, TINY_TOKENS)[f"{place}.0"]
        drawn = rng.standard_normal(like[part].shape)

        def edit(name: str, value: np.ndarray, place=place, part=part, drawn=drawn) -> np.ndarray:
            if name == f"{place}.0":
                value[part] = drawn
            if name == "resid_pre.1":
                value[3] = 2 * value[3] + 1
            return value

        asked = hook(f"{place}.0", heads=1 if per_head else None, positions=[2, 4])
        found = intervene(
            model,
            TINY_TOKENS,
            {asked: drawn, hook("resid_pre.1", positions=-3): lambda row: 2 * row + 1},
        )
        assert close(found, plain(model, TINY_TOKENS, edit)), place


@pytest.mark.parametrize("kind", ALL)
def test_own_values_change_nothing_and_a_whole_stream_is_the_other_prompt(kind: str) -> None:
    model = random_model(ALL[kind])
    before, other = model.forward(TINY_TOKENS), model.forward(OTHER)
    run = Pass(model, np.array(TINY_TOKENS))
    for name in place_names(model.config):
        if not name.endswith(".1"):
            assert close(run.edited({Hook(name): before[name]}), before), name
        if name.startswith("resid_pre"):
            found = run.edited({Hook(name): other[name]})
            assert np.abs(found["logits"] - other["logits"]).max() < CLOSE


def test_ablations_replace_by_zeros_means_other_prompts_and_noise() -> None:
    model = random_model(KINDS["gpt2"])
    batch = [TINY_TOKENS, OTHER, OTHER[::-1]]
    each = [model.forward(row) for row in batch]
    mean = sum(places["mlp_out.0"] for places in each) / 3
    found = intervene(model, batch, {"mlp_out.0": "mean", "z.1": "zero"}, prompts=batch)
    assert found["z.1"].shape == (3, 4, 6, 6)
    assert not found["z.1"].any()
    assert all(np.abs(row - mean).max() < CLOSE for row in found["mlp_out.0"])
    mixed = intervene(model, batch[:2], {"v.0": "resample"}, source=batch[1:], record=["v.0"])
    assert np.abs(mixed["v.0"] - [each[1]["v.0"], each[2]["v.0"]]).max() < CLOSE
    noisy = [
        intervene(model, TINY_TOKENS, {"ln2.0": "noise"}, noise=0.5, seed=seed)["ln2.0"]
        for seed in (3, 3, 4)
    ]
    added = noisy[0] - each[0]["ln2.0"]
    assert (noisy[0] == noisy[1]).all()
    assert (noisy[0] != noisy[2]).all()
    assert 0.3 < added.std() < 0.7


def test_scores_of_activation_patching_are_those_of_single_passes() -> None:
    model = random_model(KINDS["gpt2"])
    clean, corrupt = plain(model, TINY_TOKENS), plain(model, OTHER)

    def lead(places: dict) -> float:
        return places["logits"][-1, 3] - places["logits"][-1, 8]

    whole = lead(clean) - lead(corrupt)
    for direction, tokens, source in (
        ("denoise", OTHER, clean),
        ("noise", TINY_TOKENS, corrupt),
    ):
        found = activation_patching(
            model, TINY_TOKENS, OTHER, 3, 8, kind="z", by_position=True, direction=direction
        )
        assert found.values.shape == (2, 4, 6)
        for layer, head, at in ((0, 1, 2), (0, 0, 5), (1, 3, 5)):

            def edit(name: str, value: np.ndarray, at=at, head=head, layer=layer, source=source):
                if name == f"z.{layer}":
                    value[head, at] = source[name][head, at]
                return value

            score = (lead(plain(model, tokens, edit)) - lead(corrupt)) / whole
            assert abs(found.values[layer, head, at] - score) < CLOSE
    by_stream = activation_patching(model, TINY_TOKENS, OTHER, 3, 8, kind="resid_pre")
    changed = np.array(TINY_TOKENS) != np.array(OTHER)
    assert np.abs(by_stream.values[0, ~changed]).max() < CLOSE
    by_metric = activation_patching(
        model, TINY_TOKENS, OTHER, metric=lambda row: row[3] - row[8], by_position=True
    )
    plainly = activation_patching(model, TINY_TOKENS, OTHER, 3, 8, by_position=True)
    assert np.abs(by_metric.values - plainly.values).max() < CLOSE


def test_what_is_held_is_proved_and_measured_and_what_is_not_is_named() -> None:
    model = random_model(KINDS["gpt2"])
    found = held(model, TINY_TOKENS, {hook("v.0", heads=2): "zero"}, hold="pattern")
    found.check(["pattern", "ln1.0"])
    assert found.first_change == "z.0"
    assert "q.1" not in found.proved
    assert all(found.changes[name] == 0 for name in found.proved)
    with pytest.raises(OtimesError, match=r"ln1\.1 is not held: .* v\.0 → z\.0 → attn_out\.0 → "):
        found.check("ln1")
    free = held(model, TINY_TOKENS, {"head_out.0": "zero"})
    with pytest.raises(OtimesError, match=r"pattern\.1 is not held: .* head_out\.0 → attn_out\.0"):
        free.check("pattern")
    with pytest.raises(OtimesError, match=r"pattern\.0 cannot be both changed and held"):
        held(model, TINY_TOKENS, {"pattern.0": 0.0}, hold="pattern")


MESSAGES = {
    "unknown": ({"zz.0": 0.0}, {}, r"no hook point 'zz\.0'; it has embed, resid_pre\.0…1, "),
    "layer": ({"z.2": 0.0}, {}, r"no hook point 'z\.2'"),
    "head": ({hook("z.0", heads=4): 0.0}, {}, r"z\.0 has no head 4: random has heads 0 to 3"),
    "no head": ({hook("ln1.0", heads=0): 0.0}, {}, r"ln1\.0 is not computed by heads"),
    "position": ({hook("z.0", positions=6): 0.0}, {}, "position 6 is out of range"),
    "word": ({"z.0": "none"}, {}, r"z\.0: the replacement 'none' is unknown"),
    "source": ({"z.0": "resample"}, {}, r"z\.0: 'resample' needs `source`"),
    "mean": ({"z.0": "mean"}, {}, r"z\.0: 'mean' needs `prompts`"),
    "noise": ({"z.0": "noise"}, {"noise": -1}, "noise must be a finite, non-negative number"),
    "nan": ({"z.0": np.nan}, {}, r"z\.0: the replacement has entries that are not finite"),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_bad_interventions_are_refused_in_a_sentence(case: str) -> None:
    interventions, options, message = MESSAGES[case]
    with pytest.raises(OtimesError, match=message):
        intervene(random_model(KINDS["gpt2"]), TINY_TOKENS, interventions, **options)


def test_values_of_the_wrong_shape_are_refused_with_both_shapes() -> None:
    model = random_model(KINDS["gpt2"])
    with pytest.raises(ShapeError, match=r"z\.0\[1\] has shape \(1, 6, 6\) .* shape \(5, 2\)"):
        intervene(model, TINY_TOKENS, {hook("z.0", heads=1): np.ones((5, 2))})
    with pytest.raises(ShapeError, match="has 6 tokens and `source` has 5"):
        intervene(model, TINY_TOKENS, {"z.0": "resample"}, source=OTHER[1:])
    with pytest.raises(ShapeError, match="6 tokens and the corrupt one 5"):
        activation_patching(model, TINY_TOKENS, OTHER[1:], 3)
    with pytest.raises(OtimesError, match=r"resid_mid\.0 cannot be replaced .* parallel=True"):
        intervene(random_model(KINDS["neox"]), OTHER, {"resid_mid.0": "zero"})
    with pytest.raises(OtimesError, match=r"score is 0/0"):
        activation_patching(model, TINY_TOKENS, TINY_TOKENS, 3)
