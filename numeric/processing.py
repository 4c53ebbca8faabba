"""Other weights, same function: a model rewritten so that a part of it disappears.

    fold_norm_biases    the bias of each norm          into the biases of what reads it
    fold_norm_gains     the gain of each norm          into the weights of what reads it
    centre_readers      the centring of each LayerNorm into the weights of what reads it
    centre_writers      the centring of each LayerNorm into what writes: LayerNorm becomes RMSNorm
    fold_value_biases   b_V                            into b_O
    drop_key_biases     b_K                            away
    centre_unembedding  the mean of each row of W_U    away (logits move, probabilities do not)
    untie               W_U becomes a tensor of its own

Each returns a new model, says what it relies on, refuses where that does not hold, and leaves the
logits as they are, but for rounding and where it says otherwise. What is computed is float64,
whatever type the weights were stored in; what is not touched is shared, not copied.

Sources: Elhage et al. 2021, “A Mathematical Framework for Transformer Circuits”, “Notes on
transformer architectures”; the first two folds and both centrings of weights are also what
TransformerLens does when it loads a model.
"""

from dataclasses import replace

import numpy as np

from algebra.errors import RuleError
from numeric.config import BIASES, Config, check_pre_norm
from numeric.model import Model

ATTENTION_READS = ("Q", "K", "V")


def fold_norm_biases(model: Model) -> Model:
    """Return the model with the bias b of each norm moved on: $(x̂ + b) W + c = x̂ W + (b W + c)$.

    Relies on: what a norm gives is read by linear maps only, position vectors added or not. What
    reads it gets a bias if it had none.

    Proved by: norm_gain_and_bias_fold.
    """
    config = model.config
    check_pre_norm(config, "folding norms")
    if config.norm != "layer":
        return model
    changed = {}
    for letter in ATTENTION_READS:
        moved = np.einsum("ld,lhdk->lhk", model.ln1_bias, _stored(model, f"W_{letter}"))
        changed[f"b_{letter}"] = _stored(model, f"b_{letter}") + moved
    changed["ln1_bias"] = np.zeros_like(model.ln1_bias)
    if config.d_mlp:
        for name in _mlp_reads(config):
            moved = np.einsum("ld,ldm->lm", model.ln2_bias, _stored(model, f"W_{name}"))
            changed[f"b_{name}"] = _stored(model, f"b_{name}") + moved
        changed["ln2_bias"] = np.zeros_like(model.ln2_bias)
    if config.final_norm:
        changed["b_U"] = model.b_U + model.ln_final_bias @ model.W_U
        changed["ln_final_bias"] = np.zeros_like(model.ln_final_bias)
    return model.changed(changed, _with_biases(config, changed))


def fold_norm_gains(model: Model) -> Model:
    r"""Return the model with the gain g of each norm moved on: $(x̂ · g) W = x̂ (diag(g) W)$.

    Relies on: what a norm gives is read by linear maps only, and nothing is added to it first. So
    biases of the norms must have been folded before, and a shortformer model, where W_pos is added
    after the gain and is the same in every layer, is refused. A tied model becomes untied.

    Raises: RuleError where that does not hold.

    Proved by: norm_gain_and_bias_fold.
    """
    config = model.config
    check_pre_norm(config, "folding norms")
    if config.norm == "none":
        return model
    _need_no_norm_biases(model, "fold the gains")
    if config.positions == "shortformer" and (model.ln1_gain != 1).any():
        raise RuleError(
            "cannot fold the gains of a shortformer model: its position vectors are added after"
            " the gain, and would need other values in every layer"
        )
    model = untie(model) if config.final_norm else model
    changed = {}
    for letter in ATTENTION_READS:
        gain = model.ln1_gain[:, None, :, None]
        changed[f"W_{letter}"] = gain * _stored(model, f"W_{letter}")
    changed["ln1_gain"] = np.ones_like(model.ln1_gain)
    if config.d_mlp:
        for name in _mlp_reads(config):
            changed[f"W_{name}"] = model.ln2_gain[:, :, None] * _stored(model, f"W_{name}")
        changed["ln2_gain"] = np.ones_like(model.ln2_gain)
    if config.final_norm:
        changed["W_U"] = model.ln_final_gain[:, None] * model.W_U
        changed["ln_final_gain"] = np.ones_like(model.ln_final_gain)
    return model.changed(changed)


def centre_readers(model: Model) -> Model:
    r"""Return the model with $W - \frac{1}{d} 1 1^T W$ for each W that reads a LayerNorm.

    What such a norm gives before gain and bias has mean zero, so the column means of W never
    count: afterwards the weights do the centring themselves. Relies on: LayerNorms whose gains and
    biases were folded, and nothing added to what they give (no shortformer positions). A tied
    model becomes untied. Raises: RuleError where that does not hold.

    Proved by: centring_folds_into_readers.
    """
    config = model.config
    check_pre_norm(config, "centring what reads the norms")
    if config.norm != "layer":
        raise RuleError(
            f"cannot centre what reads the norms: they are {config.norm!r}, not 'layer'"
        )
    _need_no_norm_biases(model, "centre what reads the norms")
    for gain in ("ln1_gain", "ln2_gain", "ln_final_gain"):
        if (getattr(model, gain) != 1).any():
            raise RuleError(f"cannot centre what reads the norms: {gain} is not 1; fold it first")
    if config.positions == "shortformer":
        raise RuleError(
            "cannot centre what reads the norms of a shortformer model: queries and keys read"
            " position vectors as well, and those are not centred"
        )
    model = untie(model) if config.final_norm else model
    names = [f"W_{name}" for name in (*ATTENTION_READS, *_mlp_reads(config))]
    names += ["W_U"] if config.final_norm else []
    return model.changed({name: _centred(_stored(model, name), axis=-2) for name in names})


def centre_writers(model: Model) -> Model:
    r"""Return the model with $W - W \frac{1}{d} 1 1^T$ for all that writes to the stream.

    The stream then has mean zero at every position, so that LayerNorm, which subtracts the mean
    first, is RMSNorm: the new model has norm "rms". Relies on: whatever reads the stream reads it
    through a LayerNorm, the unembedding too (`final_norm`), and the norms have no bias left. A tied
    model becomes untied. Raises: RuleError where that does not hold.

    Proved by: centring_folds_into_writers, centred_writers_keep_mean_zero.
    """
    config = model.config
    check_pre_norm(config, "centring what writes to the stream")
    if config.norm != "layer" or not config.final_norm:
        raise RuleError(
            "cannot centre what writes to the stream: all that reads it must be a LayerNorm,"
            f" and here norm={config.norm!r}, final_norm={config.final_norm}"
        )
    _need_no_norm_biases(model, "centre what writes to the stream")
    model = untie(model)
    names = ["W_E", "W_O", "b_O", "W_out", "b_out"]
    names += ["W_pos"] if config.positions == "learned" else []
    present = [name for name in names if name in model.weights]
    centred = {name: _centred(_stored(model, name), axis=-1) for name in present}
    return model.changed(centred, replace(model.config, norm="rms"))


def fold_value_biases(model: Model) -> Model:
    r"""Return the model without b_V: $A (V + 1 b_V) W_O = A V W_O + 1 b_V W_O$.

    Relies on: the rows of a pattern A sum to one, so that every position gets the same, and b_O can
    bring it: $b_O + \sum_h b_V^h W_O^h$.

    Proved by: value_biases_fold_into_output_bias.
    """
    if "b_V" not in model.config.biases:
        return model
    moved = np.einsum("lhk,lhkd->ld", model.b_V, model.W_O)
    biases = tuple({*model.config.biases, "b_O"} - {"b_V"})
    return model.changed({"b_O": model.b_O + moved}, replace(model.config, biases=biases))


def drop_key_biases(model: Model) -> Model:
    r"""Return the model without b_K: it adds $q_i · b_K$ to all scores of query i alike.

    Relies on: a softmax does not change when the same number is added to a whole row. With rotary
    positions the bias is turned by the position j of the key, $q_i · R_{j-i} b_K$ is not the same
    for all keys, and nothing can be dropped; unless b_K is zero in all dimensions that are turned.
    Raises: RuleError if it is not.

    Proved by: key_bias_is_irrelevant.
    """
    config = model.config
    if "b_K" not in config.biases:
        return model
    turned = np.argwhere(model.b_K[..., : config.rotary_dims])
    if turned.size:
        layer, head, entry = (int(i) for i in turned[0])
        raise RuleError(
            f"cannot drop b_K: rotary positions turn it, and at layer {layer}, head {head} it is"
            f" not zero in the turned dimension {entry}, so that it counts for one key more than"
            " for another"
        )
    biases = tuple(name for name in config.biases if name != "b_K")
    return model.changed({}, replace(config, biases=biases))


def centre_unembedding(model: Model) -> Model:
    r"""Return the model with $W_U - W_U \frac{1}{V} 1 1^T$, and b_U likewise.

    Relies on: probabilities are a softmax of the logits, which does not change when the same number
    is added to all logits of a position. The logits do: each row then has mean zero. A tied model
    becomes untied.

    Proved by: centred_unembedding_keeps_probabilities.
    """
    model = untie(model)
    changed = {"W_U": _centred(model.W_U, axis=-1)}
    if "b_U" in model.config.biases:
        changed["b_U"] = _centred(model.b_U, axis=-1)
    return model.changed(changed)


def untie(model: Model) -> Model:
    """Return the model with the transpose of W_E as a W_U of its own.

    Proved by: tied_unembedding_is_transpose.
    """
    if not model.config.tied:
        return model
    return model.changed({"W_U": model.W_E.T}, replace(model.config, tied=False))


def _mlp_reads(config: Config) -> tuple[str, ...]:
    """Return the names of the maps with which an MLP reads."""
    if not config.d_mlp:
        return ()
    return ("in", "gate") if config.gated else ("in",)


def _stored(model: Model, name: str) -> np.ndarray:
    """Return a tensor in the shape in which it is stored: a group's keys and values once."""
    if name in model.weights:
        return np.asarray(model.weights[name], dtype=np.float64)
    return np.zeros(model.config.shape(name))


def _with_biases(config: Config, changed: dict[str, np.ndarray]) -> Config:
    present = tuple({*config.biases, *(name for name in changed if name in BIASES)})
    return replace(config, biases=present)


def _centred(array: np.ndarray, axis: int) -> np.ndarray:
    centred: np.ndarray = array - array.mean(axis=axis, keepdims=True)
    return centred


def _need_no_norm_biases(model: Model, what: str) -> None:
    for bias in ("ln1_bias", "ln2_bias", "ln_final_bias"):
        if getattr(model, bias).any():
            raise RuleError(f"cannot {what}: {bias} is not zero; fold_norm_biases moves it first")
