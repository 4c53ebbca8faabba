"""Sparse autoencoders of SAELens with the same weights: features and reconstructions agree.

SAELens computes in float64 here, so that the two differ by rounding only: by at most γ times the
sum of the absolute values of all terms (Higham 2002, §3.1).
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

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
