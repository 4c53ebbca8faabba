"""What is measured of an SAE: how sparse it is, how much it explains, and what its features do."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.attribution.target import Tokens, read_target
from otimes.numeric.circuits.result import Named
from otimes.numeric.config import check_settings
from otimes.numeric.features.sae import SAE, load_sae
from otimes.numeric.functions import centred, norm_scale
from otimes.numeric.given import count, is_whole, real_array
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.model import Model
from otimes.numeric.prompt import Prompts, read_prompt, read_prompts, token_texts

Features = Float[np.ndarray, "*rows d_sae"]
SAESource = SAE | str
"""An SAE, the name of a bundled one, or a folder."""


def l0(features: Features) -> float:
    """Return the mean number of active features of a row. (It is a count, and not a norm.)

    >>> l0(np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]]))
    1.5
    """
    return float(np.count_nonzero(_features(features), axis=-1).mean())


def feature_density(features: Features) -> Float[np.ndarray, " d_sae"]:
    """Return the fraction of rows in which each feature is active; the sum over features is L0.

    >>> feature_density(np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]])).tolist()
    [0.5, 0.0, 1.0]
    """
    h = _features(features)
    density: np.ndarray = (h != 0).reshape(-1, h.shape[-1]).mean(axis=0)
    return density


def variance_explained(
    x: Float[np.ndarray, "*rows d"], reconstruction: Float[np.ndarray, "*rows d"]
) -> float:
    """Return 1 - (squared error) / (squared deviation of x from its mean over rows).

    1 is a perfect reconstruction; the mean of all rows in place of each has 0.
    Raises: ShapeError for arrays of different shapes, OtimesError if all rows of x are equal.

    >>> variance_explained(np.array([[0.0], [2.0]]), np.array([[1.0], [1.0]]))
    0.0
    """
    x, other = real_array(x, "x"), real_array(reconstruction, "the reconstruction")
    if x.shape != other.shape:
        raise ShapeError(f"x has the shape {x.shape} and its reconstruction {other.shape}")
    if not x.ndim or not x.size:
        raise ShapeError(f"x must have the shape (..., d), got {x.shape}")
    rows = x.reshape(-1, x.shape[-1])
    if (rows == rows[0]).all():
        raise OtimesError("all rows are equal: there is no variance to explain")
    spread = float(((rows - rows.mean(axis=0)) ** 2).sum())
    return 1 - float(((x - other) ** 2).sum()) / spread


class FeatureTokens(NamedTuple):
    """Tokens with the logits that one unit of a feature adds to them, the largest first."""

    token: str
    logit: float


def feature_logits(
    model: ModelSource, sae: SAESource, feature: int | None = None
) -> Float[np.ndarray, "..."]:
    """Return what one unit of a feature adds to each logit on its direct path: $d_k W_U$.

    [d_vocab] for one feature, [d_sae, d_vocab] for all. The gain of the final norm and, of a
    LayerNorm, its centring are included. Its scale is not, since it depends on the prompt: entries
    of a row can be compared with each other.
    Raises: OtimesError for a feature that there is not, and an SAE that does not write into the
    residual stream of this model.
    """
    loaded, read = load_model(model), load_sae(sae)
    _check_writes(loaded, read)
    rows = read.W_dec if feature is None else read.W_dec[_feature(read, feature)]
    config = loaded.config
    kind = config.norm if config.final_norm else "none"
    direct: np.ndarray = centred(rows, kind) * loaded.part("ln_final_gain") @ loaded.part("W_U")
    return direct


def feature_tokens(
    model: ModelSource, sae: SAESource, feature: int, n_tokens: int = 10
) -> list[FeatureTokens]:
    """Return the tokens that a feature promotes most on its direct path; see `feature_logits`."""
    loaded = load_model(model)
    logits = feature_logits(loaded, sae, feature)
    best = np.argsort(-logits, kind="stable")[: count(n_tokens, "n_tokens")]
    texts = token_texts(loaded, best)
    return [FeatureTokens(text, float(logits[k])) for text, k in zip(texts, best, strict=True)]


def feature_attribution(
    model: ModelSource,
    sae: SAESource,
    prompt: Any,
    target: Tokens = None,
    foil: Tokens = None,
    position: int = -1,
) -> Named:
    """Return what each feature contributes to a logit, or logit difference, on its direct path.

    $h_k d_k r$ for each active feature, where r is the direction that the logit reads behind the
    final norm, whose scale is that of this forward pass; and what `b_dec` and the error of the
    reconstruction contribute. Together they are the direct contribution of the activation: that of
    the whole residual stream for `resid_post` of the last layer, where it is the logit but for the
    biases behind the stream.
    Raises: OtimesError as `direct_logit_attribution` and `feature_logits`.
    """
    loaded, read = load_model(model), load_sae(sae)
    check_settings(loaded.config, "feature attribution", ("embed_scale", "embed_norm"))
    _check_writes(loaded, read)
    if np.ndim(position) or position is None:
        raise OtimesError(f"position must be a single index here, got position={position!r}")
    asked = read_prompt(loaded, prompt)
    goal = read_target(loaded, asked, target, foil, position)
    wanted = sorted({read.hook_point, read.output or read.hook_point, "final"})
    found = loaded.forward(asked.tokens, wanted)
    (at,) = goal.positions
    h = read.encode(found[read.hook_point][at])
    written = found[read.output or read.hook_point][at]
    config = loaded.config
    kind = config.norm if config.final_norm else "none"
    reader = centred(goal.rows[0] * loaded.part("ln_final_gain"), kind)
    reader = reader / norm_scale(found["final"][at], kind, config.norm_eps)
    active = np.flatnonzero(h)
    shares = [*(h[active] * (read.W_dec[active] @ reader)), read.b_dec @ reader]
    shares.append((written - read.decode(h)) @ reader)
    names = [*(f"feature {k}" for k in active), "b_dec", "error of the reconstruction"]
    return Named(
        "contribution",
        np.array(shares),
        ("feature",),
        {"feature": names},
        about=f"features of {read.hook_point}, to {goal.name(loaded)}",
        whole=float(written @ reader),
    )


class Activating(NamedTuple):
    """A position at which a feature is active: the prompt, the position, its value, its text."""

    prompt: int
    position: int
    value: float
    text: str


def top_activations(
    model: ModelSource, sae: SAESource, prompts: Prompts, feature: int, n_examples: int = 10
) -> list[Activating]:
    """Return the positions of prompts at which a feature is most active, the largest first.

    The text is that of up to eight tokens before the position and of the token itself.
    Raises: OtimesError for a feature that there is not, and prompts that are invalid.
    """
    loaded, read = load_model(model), load_sae(sae)
    number = _feature(read, feature)
    most = count(n_examples, "n_examples")
    rows = read_prompts(loaded, prompts)
    values = read.encode(loaded.forward(rows, [read.hook_point])[read.hook_point])[..., number]
    order = np.argsort(-values, axis=None, kind="stable")[:most]
    found = []
    for prompt, at in zip(*np.unravel_index(order, values.shape), strict=True):
        if values[prompt, at] > 0:
            before = rows[prompt, max(0, at - 8) : at + 1]
            text = "".join(token_texts(loaded, before))
            found.append(Activating(int(prompt), int(at), float(values[prompt, at]), text))
    return found


def _features(features: Features) -> Features:
    h = real_array(features, "the features")
    if h.ndim == 0 or not h.size:
        raise ShapeError(f"features must have the shape (..., d_sae), got {h.shape}")
    return h


def _feature(sae: SAE, feature: int) -> int:
    if not is_whole(feature) or not 0 <= feature < sae.d_sae:
        raise OtimesError(f"the features are 0 to {sae.d_sae - 1}, got {feature!r}")
    return int(feature)


def _check_writes(model: Model, sae: SAE) -> None:
    """Raise OtimesError if what the SAE writes is no part of the residual stream of the model."""
    if sae.model not in ("", model.name):
        raise OtimesError(f"this SAE is of {sae.model}, and the model is {model.name}")
    place = (sae.output or sae.hook_point).partition(".")[0]
    if place not in IN_STREAM or sae.d_out != model.d_model:
        raise OtimesError(
            f"the decoder writes {sae.output or sae.hook_point!r}, and has a direct path to the"
            f" logits only from the residual stream: {', '.join(IN_STREAM)}"
        )


IN_STREAM = ("embed", "resid_pre", "resid_mid", "resid_post", "attn_out", "mlp_out", "final")
"""The activations that are the residual stream, or are added to it."""
