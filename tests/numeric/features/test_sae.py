"""Sparse autoencoders against plain loops: features, losses, scales, norms, and files."""

from dataclasses import replace
from math import exp, fsum
from pathlib import Path

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.features.measures import (
    feature_attribution,
    feature_density,
    feature_logits,
    feature_tokens,
    l0,
    top_activations,
    variance_explained,
)
from otimes.numeric.features.sae import SAE, VARIANTS, load_sae
from otimes.numeric.features.splice import loss_recovered
from otimes.numeric.forward import block
from otimes.numeric.load import load_model

rng = np.random.default_rng(0)
D_IN, D_SAE = 4, 7
X = rng.standard_normal((9, D_IN))


def an_sae(variant: str) -> SAE:
    """Return an SAE with random weights."""
    draw = np.random.default_rng(1).standard_normal
    extra = {
        "relu": {},
        "topk": {"k": 3},
        "jumprelu": {"threshold": np.abs(draw(D_SAE))},
        "gated": {"W_gate": draw((D_IN, D_SAE)), "b_gate": draw(D_SAE)},
    }[variant]
    return SAE(
        draw((D_IN, D_SAE)),
        draw(D_SAE),
        draw((D_SAE, D_IN)),
        draw(D_IN),
        variant,  # type: ignore[arg-type]
        b_in=draw(D_IN),
        **extra,
    )


def features_by_loops(sae: SAE, x: np.ndarray) -> np.ndarray:
    """Return the features of each row by the formulas of the papers, one number at a time."""
    assert sae.b_in is not None
    h = np.zeros((len(x), D_SAE))
    for t in range(len(x)):
        row = [x[t][j] - sae.b_in[j] for j in range(D_IN)]
        pre = [
            fsum(row[j] * sae.W_enc[j][u] for j in range(D_IN)) + sae.b_enc[u] for u in range(D_SAE)
        ]
        for u in range(D_SAE):
            if sae.variant == "gated":
                assert sae.W_gate is not None
                assert sae.b_gate is not None
                gate = fsum(row[j] * sae.W_gate[j][u] for j in range(D_IN)) + sae.b_gate[u]
                h[t, u] = max(pre[u], 0) if gate > 0 else 0
            elif sae.variant == "jumprelu":
                assert sae.threshold is not None
                h[t, u] = pre[u] if pre[u] > sae.threshold[u] else 0
            elif sae.variant == "topk":
                among = sorted(pre, reverse=True)[: sae.k]
                h[t, u] = max(pre[u], 0) if pre[u] in among else 0
            else:
                h[t, u] = max(pre[u], 0)
    return h


@pytest.mark.parametrize("variant", VARIANTS)
def test_features_and_loss_are_those_of_plain_loops(variant: str) -> None:
    sae = an_sae(variant)
    h = features_by_loops(sae, X)
    assert np.allclose(sae.encode(X), h, rtol=1e-13, atol=1e-13)
    assert np.count_nonzero(h) not in (0, h.size)
    rebuilt = np.array(
        [
            [fsum(h[t][u] * sae.W_dec[u][j] for u in range(D_SAE)) + sae.b_dec[j] for j in range(4)]
            for t in range(len(X))
        ]
    )
    assert np.allclose(sae(X), rebuilt, rtol=1e-12, atol=1e-12)
    found = sae.loss(X)
    error = fsum(np.ravel((X - rebuilt) ** 2)) / len(X)
    count = sum(1 for each in np.ravel(h) if each) / len(X)
    if variant == "gated":
        assert sae.W_gate is not None
        assert sae.b_gate is not None
        gate = np.maximum((X - sae.b_in) @ sae.W_gate + sae.b_gate, 0)
        by_gate = gate @ sae.W_dec + sae.b_dec
        assert found.reconstruction == pytest.approx(error + ((X - by_gate) ** 2).sum(1).mean())
        assert found.penalty == pytest.approx(gate.sum(1).mean())
    else:
        assert found.reconstruction == pytest.approx(error)
        expected = {"relu": fsum(np.ravel(h)) / len(X), "jumprelu": count, "topk": 0.0}[variant]
        assert found.penalty == pytest.approx(expected)
    assert found.total(2.0) == found.reconstruction + 2 * found.penalty
    assert l0(h) == pytest.approx(count)
    assert feature_density(h).sum() == pytest.approx(count)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_scale_of_features_is_free(variant: str) -> None:
    sae = an_sae(variant)
    scales = 4.0 if variant == "topk" else 2.0 ** np.arange(D_SAE)
    other = sae.rescaled(scales)
    assert np.allclose(other(X), sae(X), rtol=1e-13, atol=1e-13)
    assert np.array_equal(other.encode(X), sae.encode(X) / scales)
    if variant != "topk":
        assert np.allclose(np.linalg.norm(sae.unit_rows().W_dec, axis=1), 1)
    if variant == "relu":
        assert sae.rescaled(4.0).loss(X).penalty == sae.loss(X).penalty / 4
    if variant == "jumprelu":
        assert sae.rescaled(4.0).loss(X).penalty == sae.loss(X).penalty


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_gain_and_bias_of_a_norm_fold_in(variant: str) -> None:
    sae, gain, bias = an_sae(variant), np.array([2.0, -1.0, 0.5, 3.0]), np.array([1.0, 0, -1, 2])
    folded = sae.fold_norm(gain, bias)
    behind = X * gain + bias
    assert np.allclose(folded.encode(X), sae.encode(behind), rtol=1e-12, atol=1e-12)
    assert np.allclose(folded(X), (sae(behind) - bias) / gain, rtol=1e-12, atol=1e-12)
    of_mlp = replace(sae, hook_point="ln2.1", output="mlp_out.1")  # only what it reads is behind it
    assert np.allclose(of_mlp.fold_norm(gain, bias)(X), sae(behind), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_sae_comes_back_from_its_folder(variant: str, tmp_path: Path) -> None:
    sae = replace(an_sae(variant), hook_point="resid_post.1", model="mine", card={"seed": 3})
    again = load_sae(str(sae.save(tmp_path / "one")))
    assert repr(again) == repr(sae)
    assert again.card == {"seed": 3}
    for name, array in sae.arrays().items():
        assert np.array_equal(again.arrays()[name], array.astype(np.float32))


def test_what_does_not_fit_is_refused_in_a_sentence(tmp_path: Path) -> None:
    sae = an_sae("relu")
    with pytest.raises(ShapeError, match=r"shape \(\.\.\., 4\), got \(2, 3\)"):
        sae.encode(np.zeros((2, 3)))
    with pytest.raises(ShapeError, match=r"\(\.\.\., 7\)"):
        sae.decode(np.zeros(4))
    with pytest.raises(ShapeError, match=r"b_enc must have the shape \(d_sae\) = \(7,\)"):
        replace(sae, b_enc=np.zeros(6))
    with pytest.raises(OtimesError, match="W_dec has entries that are not finite"):
        replace(sae, W_dec=np.full((D_SAE, D_IN), np.nan))
    with pytest.raises(OtimesError, match="k is missing"):
        replace(sae, variant="topk")
    with pytest.raises(OtimesError, match="k belongs to a topk SAE"):
        replace(sae, k=2)
    with pytest.raises(OtimesError, match="k must be from 1 to d_sae = 7, got 8"):
        replace(sae, variant="topk", k=8)
    with pytest.raises(OtimesError, match="variant must be one of relu"):
        replace(sae, variant="swish")  # type: ignore[arg-type]
    with pytest.raises(OtimesError, match="threshold must not be negative"):
        replace(sae, variant="jumprelu", threshold=-np.ones(D_SAE))
    with pytest.raises(OtimesError, match="a scale must be positive"):
        sae.rescaled(0.0)
    with pytest.raises(OtimesError, match="give one scale"):
        an_sae("topk").rescaled(np.ones(D_SAE))
    with pytest.raises(OtimesError, match="a gain of zero"):
        sae.fold_norm(np.array([1.0, 0, 1, 1]))
    with pytest.raises(OtimesError, match="there is no SAE 'nothing'"):
        load_sae("nothing")
    folder = sae.save(tmp_path / "cut")
    (folder / "sae.json").write_text('{"variant": "relu", "what": 1}')
    with pytest.raises(OtimesError, match="what, which an SAE does not have"):
        load_sae(folder)
    with pytest.raises(OtimesError, match="all rows are equal"):
        variance_explained(np.ones((3, 2)), np.ones((3, 2)))


def test_soft_thresholds_are_the_best_features_of_an_orthonormal_decoder() -> None:
    """Against coordinate descent from many starts, which knows nothing of the formula."""
    alpha = 0.8
    rows = np.linalg.qr(rng.standard_normal((D_IN, D_IN)))[0][:3]
    z = rng.standard_normal(D_IN)

    def loss(h: np.ndarray) -> float:
        return float(((z - h @ rows) ** 2).sum() + alpha * h.sum())

    best = np.maximum(rows @ z - alpha / 2, 0)
    least = min(
        loss(best + step)
        for step in 0.05 * rng.standard_normal((2000, 3))
        if (best + step).min() >= 0
    )
    assert loss(best) <= least


def test_the_bundled_sae_explains_its_activations() -> None:
    sae = load_sae("gpt2_tiny_sae")
    model = load_model(sae.model)
    prompt = "for i in range(10):\n    print(i)\n"
    x = model.forward(model_tokens(prompt), [sae.hook_point])[sae.hook_point]
    assert variance_explained(x, sae(x)) > 0.5
    assert (np.count_nonzero(sae.encode(x), axis=1) <= 16).all()
    assert sae.card["held_out"]["variance_explained"] > 0.8


def model_tokens(prompt: str) -> np.ndarray:
    """Return a prompt as tokens."""
    from otimes.numeric.tokenizer import load_tokenizer

    return np.array(load_tokenizer().encode(prompt))


def test_the_contributions_of_features_add_up() -> None:
    sae, model = load_sae("gpt2_tiny_sae"), load_model("gpt2_tiny")
    found = feature_attribution(model, sae, "for i in range", "(")
    assert found.missing == pytest.approx(0, abs=1e-12)
    (name, value), *_ = [
        (label, value)
        for label, value in zip(found.labels["feature"], found.values, strict=True)
        if label.startswith("feature ")
    ]
    number = int(name.removeprefix("feature "))
    at = model.forward(model_tokens("for i in range"))
    h = sae.encode(at[sae.hook_point][-1])
    last = at["final"][-1]
    scale = (last.var() + model.config.norm_eps) ** 0.5
    token = int(model_tokens("(")[0])
    assert value == pytest.approx(h[number] * feature_logits(model, sae, number)[token] / scale)
    best = feature_tokens(model, sae, number, 3)
    assert best[0].logit == feature_logits(model, sae, number).max()
    assert feature_logits(model, sae).shape == (512, model.d_vocab)


def test_the_positions_where_a_feature_is_most_active() -> None:
    sae, prompts = load_sae("gpt2_tiny_sae"), ["for i in range", "if x is None"]
    model = load_model(sae.model)
    rows = [model_tokens(prompt) for prompt in prompts]
    if len(rows[0]) != len(rows[1]):
        rows = [row[: min(map(len, rows))] for row in rows]
    values = np.stack(
        [sae.encode(model.forward(r, ["resid_post.2"])["resid_post.2"]) for r in rows]
    )
    feature = int(values.max(axis=(0, 1)).argmax())
    top = top_activations(model, sae, np.stack(rows), feature, 2)
    assert top[0].value == values[..., feature].max()
    assert values[top[0].prompt, top[0].position, feature] == top[0].value
    assert [each.value for each in top] == sorted((each.value for each in top), reverse=True)


def test_an_sae_of_another_model_or_activation_is_refused() -> None:
    sae = load_sae("gpt2_tiny_sae")
    with pytest.raises(OtimesError, match="this SAE is of gpt2_tiny, and the model is two_layer"):
        feature_logits("two_layer", sae, 0)
    with pytest.raises(OtimesError, match="the features are 0 to 511, got 512"):
        feature_logits("gpt2_tiny", sae, 512)
    with pytest.raises(OtimesError, match="only from the residual stream"):
        feature_logits("gpt2_tiny", replace(sae, hook_point="mlp_post.2"), 0)


def test_scales_of_a_gated_sae_are_those_of_its_paper() -> None:
    """W_mag = W_gate · exp(r_mag), as the paper ties the two encoders."""
    sae = an_sae("gated")
    assert sae.W_gate is not None
    r_mag = np.linspace(-1, 1, D_SAE)
    tied = replace(sae, W_enc=sae.W_gate * np.exp(r_mag))
    u = 2
    assert tied.b_in is not None
    pre = (X[0] - tied.b_in) @ sae.W_gate[:, u] * exp(r_mag[u]) + tied.b_enc[u]
    assert tied.pre_activations(X)[0, u] == pytest.approx(pre)


def test_the_loss_recovered_against_a_pass_with_the_rows_replaced() -> None:
    """By hand: the last block and the unembedding on the reconstruction of `resid_post.2`."""
    sae, model = load_sae("gpt2_tiny_sae"), load_model("gpt2_tiny")
    tokens = model_tokens("for i in range(10):")

    def loss(stream: np.ndarray) -> float:
        config = model.config
        x = block(config.of_layer(3), model.layer(3), stream, model.part("W_pos"))["resid_post"]
        x = x - x.mean(axis=1, keepdims=True)
        x = x / np.sqrt((x**2).mean(axis=1, keepdims=True) + config.norm_eps)
        logits = (x * model.ln_final_gain + model.ln_final_bias) @ model.W_U + model.b_U
        chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        return float(-np.mean([np.log(chances[i, t]) for i, t in enumerate(tokens[1:])]))

    x = model.forward(tokens, ["resid_post.2"])["resid_post.2"]
    zero, mean = (loss_recovered(model, sae, tokens, each) for each in ("zero", "mean"))
    assert zero.original == pytest.approx(loss(x), rel=1e-12)
    assert zero.spliced == pytest.approx(loss(sae(x)), rel=1e-12)
    assert zero.ablated == pytest.approx(loss(0 * x), rel=1e-12)
    assert mean.ablated == pytest.approx(loss(0 * x + x.mean(axis=0)), rel=1e-12)
    expected = (zero.ablated - zero.spliced) / (zero.ablated - zero.original)
    assert zero.fraction == pytest.approx(expected)
    with pytest.raises(OtimesError, match="ablation must be 'zero' or 'mean', got 'none'"):
        loss_recovered(model, sae, tokens, "none")


def test_a_transcoder_is_spliced_where_it_writes() -> None:
    """One that writes zeros is as bad as the zero ablation of what it writes."""
    draw = np.random.default_rng(0).standard_normal
    nothing = SAE(
        draw((128, 3)),
        np.zeros(3),
        np.zeros((3, 128)),
        np.zeros(128),
        hook_point="ln2.1",
        output="mlp_out.1",
    )
    found = loss_recovered("gpt2_tiny", nothing, "for i in range")
    assert found.spliced == found.ablated != found.original
