"""Sparse autoencoders of SAELens with the same weights: features and reconstructions agree.

SAELens computes in float64 here, so that the two differ by rounding only: by at most γ times the
sum of the absolute values of all terms (Higham 2002, §3.1).
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from otimes.numeric.features.measures import l0, variance_explained
from otimes.numeric.features.sae import SAE, VARIANTS, load_sae
from otimes.numeric.load import load_model
from otimes.numeric.rounding import gamma

lens = pytest.importorskip("sae_lens.saes")

BUNDLED = load_sae("gpt2_tiny_sae")
X = load_model("gpt2_tiny").forward("for i in range(10):\n    print(i)\n")["resid_post.2"]


def ours(variant: str) -> SAE:
    """Return the bundled weights as an SAE of a variant; SAELens subtracts b_dec."""
    extra: dict[str, Any] = {
        "relu": {},
        "topk": {"k": 16},
        "jumprelu": {"threshold": np.linspace(0.1, 1.5, 512)},
        "gated": {"W_gate": BUNDLED.W_enc, "b_gate": np.linspace(-0.5, 0.5, 512)},
    }[variant]
    told = {"variant": variant, "k": None, "b_in": BUNDLED.b_dec, **extra}
    sae = replace(BUNDLED, **told)
    scale = np.exp(np.linspace(-0.5, 0.5, 512))
    return replace(sae, W_enc=BUNDLED.W_enc * scale) if variant == "gated" else sae


def theirs(sae: SAE) -> Any:
    """Return the SAE of SAELens with the same weights."""
    kinds = {"relu": "Standard", "topk": "TopK", "jumprelu": "JumpReLU", "gated": "Gated"}
    kind = kinds[sae.variant]
    extra = {"k": sae.k} if sae.k else {}
    config = getattr(lens, f"{kind}SAEConfig")(
        d_in=128, d_sae=512, dtype="float64", apply_b_dec_to_input=True, **extra
    )
    made = getattr(lens, f"{kind}SAE")(config)
    arrays = {"W_dec": sae.W_dec, "b_dec": sae.b_dec, "W_enc": sae.W_enc, "b_enc": sae.b_enc}
    if sae.variant == "jumprelu":
        arrays["threshold"] = sae.threshold
    if sae.variant == "gated":
        r_mag = np.linspace(-0.5, 0.5, 512)
        arrays |= {"W_enc": sae.W_gate, "r_mag": r_mag, "b_mag": sae.b_enc, "b_gate": sae.b_gate}
        del arrays["b_enc"]
    made.load_state_dict({name: torch.from_numpy(np.array(each)) for name, each in arrays.items()})
    return made


@pytest.mark.parametrize("variant", VARIANTS)
def test_features_and_reconstructions_are_those_of_sae_lens(variant: str) -> None:
    sae = ours(variant)
    other = theirs(sae)
    with torch.no_grad():
        features = other.encode(torch.from_numpy(X)).to_dense().numpy()
        rebuilt = other.decode(torch.from_numpy(sae.encode(X))).numpy()
    assert sae.b_in is not None
    sizes = (np.abs(X) + np.abs(sae.b_in)) @ np.abs(sae.W_enc) + np.abs(sae.b_enc)
    bound = gamma(2 * 128 + 20, 2.0**-53) * sizes
    assert (np.abs(features - sae.encode(X)) <= bound).all()
    assert np.count_nonzero(features)
    sizes = sae.encode(X) @ np.abs(sae.W_dec) + np.abs(sae.b_dec)
    assert (np.abs(rebuilt - sae(X)) <= gamma(2 * 512 + 4, 2.0**-53) * sizes).all()


def trained(sae: SAE) -> Any:
    """Return the SAE of SAELens with the same weights as it is trained, with its losses."""
    kind = {"relu": "Standard", "jumprelu": "JumpReLU", "gated": "Gated"}[sae.variant]
    config = getattr(lens, f"{kind}TrainingSAEConfig")(
        d_in=128, d_sae=512, dtype="float64", apply_b_dec_to_input=True
    )
    made = getattr(lens, f"{kind}TrainingSAE")(config)
    names = ["W_dec", "b_dec", "W_enc", "b_enc", "threshold", "b_gate", "r_mag", "b_mag"]
    arrays = {**sae.arrays(), "r_mag": np.zeros(512), "b_mag": sae.b_enc}
    held = {name: torch.from_numpy(np.array(arrays[name])) for name in names if name in arrays}
    made.load_state_dict({name: held[name] for name in made.state_dict()})
    return made


@pytest.mark.filterwarnings("ignore")  # SAELens warns of its defaults
@pytest.mark.parametrize("variant", ["relu", "gated", "jumprelu"])
def test_losses_and_counts_are_those_of_sae_lens(variant: str) -> None:
    sae = ours(variant)
    rows = sae.W_dec / np.linalg.norm(sae.W_dec, axis=1, keepdims=True)  # its penalty weighs them
    sae = replace(sae, W_dec=rows, W_enc=BUNDLED.W_enc)
    step = lens.sae.TrainStepInput(
        sae_in=torch.from_numpy(X),
        coefficients={"l1": 1.0, "l0": 1.0, "pre_act_loss": 0.0},
        dead_neuron_mask=None,
        n_training_steps=1,
        is_logging_step=False,
    )
    out = trained(sae).training_forward_pass(step)
    losses, found = {name: float(each) for name, each in out.losses.items()}, sae.loss(X)
    auxiliary = losses.get("auxiliary_reconstruction_loss", 0.0)
    assert abs(losses["mse_loss"] + auxiliary - found.reconstruction) < 1e-10
    penalty = losses["l0_loss" if variant == "jumprelu" else "l1_loss"]
    assert abs(penalty - found.penalty) < 1e-10
    assert abs(float((out.feature_acts > 0).sum(-1).double().mean()) - l0(sae.encode(X))) < 1e-10
    calculator = pytest.importorskip("sae_lens.evals").ExplainedVarianceCalculator()
    calculator.add_batch(torch.from_numpy(sae(X)), torch.from_numpy(X))
    assert abs(calculator.compute() - variance_explained(X, sae(X))) < 1e-10
