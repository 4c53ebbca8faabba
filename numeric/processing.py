"""Weight processing: transformations of the weights that preserve the function of a model.

    fold_norm_biases    fold the bias of each norm into the biases of the maps that read it
    fold_norm_gains     fold the gain of each norm into the weights that read it
    centre_readers      fold the centring of each LayerNorm into the weights that read it
    centre_writers      centre the weights that write; LayerNorm becomes RMSNorm
    fold_value_biases   fold b_V into b_O
    drop_key_biases     drop b_K
    centre_unembedding  centre the rows of W_U (logits change, probabilities do not)
    untie               give W_U a tensor of its own

Each returns a new model, states its assumptions, and raises an error where they do not hold. The
logits are preserved up to rounding unless stated otherwise. Computed weights are float64, whatever
the stored dtype; unchanged weights are shared, not copied.

Sources: Elhage et al. 2021, “A Mathematical Framework for Transformer Circuits”, “Notes on
transformer architectures”; the first two folds and both centrings of weights are also what
TransformerLens does when it loads a model.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol, TypeVar

import numpy as np

from otimes.algebra.errors import RuleError
from otimes.numeric.config import EVERY_BIAS, PATTERN_SETTINGS, Config, check_settings
from otimes.numeric.forward import Weights
from otimes.numeric.tensors import Tensor

ATTENTION_READS = ("Q", "K", "V")

Model = TypeVar("Model", bound="Changeable")


class Changeable(Weights, Protocol):
    """The part of `Model` that is needed to change its weights."""

    @property
    def weights(self) -> Mapping[str, Tensor]:
        """The tensors as stored."""

    def changed(self: Model, weights: Mapping[str, Tensor], config: Config | None = None) -> Model:
        """Return a copy with some weights replaced, and optionally the configuration."""


FOLDING = (*PATTERN_SETTINGS, "n_experts", "gate_limit", "embed_scale", "embed_norm", "logit_cap")
"""The settings that stay as they are when norms are folded or weights centred."""


def fold_norm_biases(model: Model) -> Model:
    """Return the model with the bias b of each norm folded: $(x̂ + b) W + c = x̂ W + (b W + c)$.

    Assumes that only affine maps read the output of a norm (shortformer positions may be added). A
    map without a bias gets one.

    Proved by: norm_gain_and_bias_fold.
    """
    model = with_scales_in_weights(model)
    config = model.config
    check_settings(config, "folding norms", _folding(config))
    if config.norm != "layer":
        return model
    changed = {}
    for letter in ATTENTION_READS:
        moved = np.einsum("ld,lhdk->lhk", model.part("ln1_bias"), _stored(model, f"W_{letter}"))
        changed[f"b_{letter}"] = _stored(model, f"b_{letter}") + moved
    changed["ln1_bias"] = np.zeros_like(model.part("ln1_bias"))
    if config.d_mlp:
        for name in _mlp_reads(config):
            moved = np.einsum("ld,ldm->lm", model.part("ln2_bias"), _stored(model, f"W_{name}"))
            changed[f"b_{name}"] = _stored(model, f"b_{name}") + moved
        changed["ln2_bias"] = np.zeros_like(model.part("ln2_bias"))
    if config.final_norm:
        changed["b_U"] = model.part("b_U") + model.part("ln_final_bias") @ model.part("W_U")
        changed["ln_final_bias"] = np.zeros_like(model.part("ln_final_bias"))
    return model.changed(changed, _with_biases(config, changed))


def _folding(config: Config) -> tuple[str, ...]:
    """Return the settings that folding takes into account; latents have no place for a bias."""
    return FOLDING if config.norm == "layer" else (*FOLDING, "kv_rank")


def _attention_reads(config: Config) -> tuple[str, ...]:
    """Return the weights of attention that read its norm: in latent attention, those of latents."""
    if not config.kv_rank:
        return tuple(f"W_{letter}" for letter in ATTENTION_READS)
    return ("W_DQ" if config.q_rank else "W_Q", "W_DKV", "W_KR")


def fold_norm_gains(model: Model) -> Model:
    r"""Return the model with the gain g of each norm folded: $(x̂ · g) W = x̂ (diag(g) W)$.

    Assumes that only linear maps read the output of a norm and nothing is added to it first. So
    biases of the norms must be folded before, and shortformer models are not supported: W_pos is
    added after the gain and shared by all layers. A tied model becomes untied.

    Raises: RuleError if these assumptions do not hold.

    Proved by: norm_gain_and_bias_fold.
    """
    model = with_scales_in_weights(model)
    config = model.config
    check_settings(config, "folding norms", _folding(config))
    if config.norm == "none":
        return model
    model = _with_whole_gains(model)
    _need_no_norm_biases(model, "fold the gains")
    if config.positions == "shortformer" and (model.part("ln1_gain") != 1).any():
        raise RuleError(
            "cannot fold the gains of a shortformer model: its position embeddings are added after"
            " the gain, and would need different values in every layer"
        )
    model = untie(model) if config.final_norm else model
    changed = {}
    for name in _attention_reads(config):
        gain, read = model.part("ln1_gain"), _stored(model, name)
        gain = gain[:, :, None] if read.ndim == 3 else gain[:, None, :, None]
        changed[name] = gain * read
    changed["ln1_gain"] = np.ones_like(model.part("ln1_gain"))
    if config.d_mlp:
        for name in _mlp_reads(config):
            changed[f"W_{name}"] = model.part("ln2_gain")[:, :, None] * _stored(model, f"W_{name}")
        changed["ln2_gain"] = np.ones_like(model.part("ln2_gain"))
    if config.final_norm:
        changed["W_U"] = model.part("ln_final_gain")[:, None] * model.part("W_U")
        changed["ln_final_gain"] = np.ones_like(model.part("ln_final_gain"))
    return model.changed(changed)


def centre_readers(model: Model) -> Model:
    r"""Return the model with $W - \frac{1}{d} 1 1^T W$ for each W that reads a LayerNorm.

    The output of the norm without gain and bias has mean zero, so the column means of W have no
    effect; after this the weights do the centring themselves. Assumes LayerNorms with folded gains
    and biases, and no shortformer positions. A tied model becomes untied.
    Raises: RuleError if these assumptions do not hold.

    Proved by: centring_folds_into_readers.
    """
    model = with_scales_in_weights(model)
    config = model.config
    check_settings(config, "centring the reading weights", FOLDING)
    if config.norm != "layer":
        raise RuleError(f"cannot centre the reading weights: norm is {config.norm!r}, not 'layer'")
    model = _with_whole_gains(model)
    _need_no_norm_biases(model, "centre the reading weights")
    for gain in ("ln1_gain", "ln2_gain", "ln_final_gain"):
        if (model.part(gain) != 1).any():
            raise RuleError(f"cannot centre the reading weights: {gain} is not 1; fold it first")
    if config.positions == "shortformer":
        raise RuleError(
            "cannot centre the reading weights of a shortformer model: queries and keys also read"
            " position embeddings, which are not centred"
        )
    model = untie(model) if config.final_norm else model
    names = [f"W_{name}" for name in (*ATTENTION_READS, *_mlp_reads(config))]
    names += ["W_U"] if config.final_norm else []
    return model.changed({name: _centred(_stored(model, name), axis=-2) for name in names})


def centre_writers(model: Model) -> Model:
    r"""Return the model with $W - W \frac{1}{d} 1 1^T$ for each W that writes to the stream.

    The residual stream then has mean zero at every position, where LayerNorm equals RMSNorm: the
    new model has norm "rms". Assumes that the residual stream is read through LayerNorms only, by
    the unembedding too (`final_norm`), and that norm biases are folded. A tied model becomes
    untied. Raises: RuleError if these assumptions do not hold.

    Proved by: centring_folds_into_writers, centred_writers_keep_mean_zero.
    """
    model = with_scales_in_weights(model)
    config = model.config
    also = [each for each in FOLDING if each != "embed_norm"]
    check_settings(config, "centring the writing weights", also)
    if config.norm != "layer" or not config.final_norm:
        raise RuleError(
            "cannot centre the writing weights: the residual stream must be read through"
            f" LayerNorms only, got norm={config.norm!r}, final_norm={config.final_norm}"
        )
    _need_no_norm_biases(model, "centre the writing weights")
    model = untie(model)
    names = ["W_E", "W_O", "b_O", "W_out", "b_out", "b_experts"]
    names += ["W_pos"] if config.positions == "learned" else []
    present = [name for name in names if name in model.weights]
    centred = {name: _centred(_stored(model, name), axis=-1) for name in present}
    return model.changed(centred, replace(model.config, norm="rms"))


def fold_value_biases(model: Model) -> Model:
    r"""Return the model without b_V: $A (V + 1 b_V) W_O = A V W_O + 1 b_V W_O$.

    Assumes that the rows of a pattern A sum to 1, so that every position gets the same vector. The
    new output bias is $b_O + \sum_h b_V^h W_O^h$.

    Proved by: value_biases_fold_into_output_bias.

    Raises: RuleError for a model with sinks, where they sum to less.
    """
    if "b_V" not in model.config.biases:
        return model
    if model.config.sinks:
        raise RuleError(
            "cannot fold b_V into b_O: with sinks=True the rows of a pattern sum to less than 1"
        )
    model = with_scales_in_weights(model)
    moved = np.einsum("lhk,lhkd->ld", model.part("b_V"), model.part("W_O"))
    biases = tuple({*model.config.biases, "b_O"} - {"b_V"})
    return model.changed({"b_O": model.part("b_O") + moved}, replace(model.config, biases=biases))


def drop_key_biases(model: Model) -> Model:
    r"""Return the model without b_K, which adds $q_i · b_K$ to all scores of query i.

    Assumes that softmax is unchanged when a constant is added to a row. With rotary positions the
    term $q_i · R_{j-i} b_K$ depends on the position j of the key, so b_K must be zero in all
    rotated dimensions. Raises: RuleError if it is not.

    Proved by: key_bias_is_irrelevant.
    """
    config = model.config
    if "b_K" not in config.biases:
        return model
    turned = np.argwhere(model.part("b_K")[..., : config.rotary_dims])
    if turned.size:
        layer, head, entry = (int(i) for i in turned[0])
        raise RuleError(
            f"cannot drop b_K: rotary positions rotate it, and at layer {layer}, head {head} it is"
            f" not zero in the rotated dimension {entry}, so that its effect on the scores depends"
            " on the key"
        )
    biases = tuple(name for name in config.biases if name != "b_K")
    return model.changed({}, replace(config, biases=biases))


def centre_unembedding(model: Model) -> Model:
    r"""Return the model with $W_U - W_U \frac{1}{V} 1 1^T$, and b_U likewise.

    Assumes that only probabilities matter: softmax is unchanged when a constant is added to all
    logits of a position. The logits change: each row then has mean zero. A tied model becomes
    untied.

    Proved by: centred_unembedding_keeps_probabilities.
    """
    model = untie(with_scales_in_weights(model))
    changed = {"W_U": _centred(model.part("W_U"), axis=-1)}
    if "b_U" in model.config.biases:
        changed["b_U"] = _centred(model.part("b_U"), axis=-1)
    return model.changed(changed)


def untie(model: Model) -> Model:
    """Return the model with W_U stored as a separate tensor, the transpose of W_E.

    Proved by: tied_unembedding_is_transpose.
    """
    if not model.config.tied:
        return model
    return model.changed({"W_U": model.part("W_E").T}, replace(model.config, tied=False))


def _with_whole_gains(model: Model) -> Model:
    """Return the model with its gains stored as they are, and not minus 1."""
    config = model.config
    if not config.gain_offset:
        return model
    gains = [name for name in config.tensor_shapes() if name.endswith("_gain")]
    whole = {name: _stored(model, name) + 1.0 for name in gains}
    return model.changed(whole, replace(config, gain_offset=False))


def with_scales_in_weights(model: Model) -> Model:
    """Return the model with `write_scale` and `logit_scale` multiplied into its weights."""
    config = model.config
    if config.write_scale == config.logit_scale == 1:
        return model
    one = replace(config, write_scale=1.0, logit_scale=1.0)
    names = [name for name in config.tensor_shapes() if config.scale_of(name) != 1]
    changed = {name: model.part(name) for name in names}
    if config.tied and config.logit_scale != 1:
        one, changed["W_U"] = replace(one, tied=False), model.part("W_U")
    return model.changed(changed, one)


def _mlp_reads(config: Config) -> tuple[str, ...]:
    """Return the names of the weights that read the input of an MLP, its router's included."""
    if not config.d_mlp:
        return ()
    return ("in", *(["gate"] if config.gated else []), *(["router"] if config.n_experts else []))


def _stored(model: Changeable, name: str) -> np.ndarray:
    """Return a tensor as stored: with n_kv_heads heads for keys and values; zeros if absent."""
    if name in model.weights:
        return np.asarray(model.weights[name], dtype=np.float64)
    return np.zeros(model.config.shape(name))


def _with_biases(config: Config, changed: dict[str, np.ndarray]) -> Config:
    present = tuple({*config.biases, *(name for name in changed if name in EVERY_BIAS)})
    return replace(config, biases=present)


def _centred(array: np.ndarray, axis: int) -> np.ndarray:
    centred: np.ndarray = array - array.mean(axis=axis, keepdims=True)
    return centred


def _need_no_norm_biases(model: Changeable, what: str) -> None:
    for bias in ("ln1_bias", "ln2_bias", "ln_final_bias"):
        if model.part(bias).any():
            raise RuleError(f"cannot {what}: {bias} is not zero; apply fold_norm_biases first")
