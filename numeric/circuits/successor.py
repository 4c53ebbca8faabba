r"""Successor heads: heads that take the items of a sequence (Monday, 1, one) to the next item.

The effective OV circuit of a head is $MLP_0(W_E) W_V W_O W_U$: its row t says what attending to
token t does to the logits, with the embedding of t replaced by what the first MLP makes of it.

Source: Gould et al. 2023, “Successor Heads: Recurring, Interpretable Attention Heads”.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from otimes.algebra.errors import OtimesError
from otimes.numeric.circuits.result import Named
from otimes.numeric.circuits.weights import CIRCUITS
from otimes.numeric.config import check_settings
from otimes.numeric.forward import mlp
from otimes.numeric.functions import centred, linear, normalise
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.model import Model
from otimes.numeric.prompt import read_token

SETTINGS = (*CIRCUITS, "embed_scale", "logit_cap", "qk_norm", "local_base")
"""The settings that are taken into account, or change nothing here."""


def successor_scores(
    model: ModelSource, items: Sequence[int] | Sequence[str], cyclic: bool = False
) -> Named:
    r"""Return the share of items (as of 1, 2, 3, …) of which each head raises the successor most.

    The axes are layer and head, the scores from 0 to 1.

    `items` are tokens in their order, as text or ids. Row t of the effective OV circuit
    $MLP_0(W_E) W_V W_O W_U$ is looked at among the items only: the score is the share of items, the
    last excepted, for which the next one has the largest entry. With `cyclic` the first item
    follows the last. Norms are taken of the row itself; the final norm without its scale, which
    changes no order. Heads of the first layer read before the MLP, and have no score (NaN).
    Source: Gould et al. 2023.

    >>> from otimes.numeric.load import load_model
    >>> successor_scores(load_model("gpt2_tiny"), "0123456789").values.shape
    (4, 4)

    Raises: OtimesError for fewer than two items, an item twice, or a model without MLPs.
    """
    model = load_model(model)
    check_settings(model.config, "successor scores", SETTINGS)
    tokens = _read_items(model, items)
    if not model.config.d_mlp or not model.n_layers:
        raise OtimesError(
            f"successor scores are of what the first MLP makes of tokens, and {model.name} has no"
            " MLP; ov_circuit and full_ov are the circuits of a model without"
        )
    values = np.full((model.n_layers, model.n_heads), np.nan)
    after = np.roll(np.arange(len(tokens)), -1)
    n_asked = len(tokens) if cyclic else len(tokens) - 1
    made = first_mlp(model, tokens)
    for layer in range(1, model.n_layers):
        tables = effective_tables(model, layer, made, tokens)
        found = tables.argmax(axis=2) == after
        values[layer] = found[:, :n_asked].mean(axis=1)
    return Named(
        "successor score",
        values,
        ("layer", "head"),
        baseline=1 / len(tokens),
        about=f"share of {n_asked} items whose next item is raised most",
    )


def _read_items(model: Model, items: Sequence[int] | Sequence[str]) -> list[int]:
    tokens = [read_token(model, item) for item in items]
    if len(tokens) < 2:
        raise OtimesError(f"a sequence needs at least two items, got {len(tokens)}")
    twice = [item for item, token in zip(items, tokens, strict=True) if tokens.count(token) > 1]
    if twice:
        raise OtimesError(f"{twice[0]!r} is twice among the items, so that what follows is unclear")
    return tokens


def first_mlp(model: Model, tokens: Sequence[int]) -> Float[np.ndarray, "item d_model"]:
    """Return what the first MLP writes for the embedding of each token."""
    config = model.config.of_layer(0)
    layer, rows = model.layer(0), model.part("W_E", np.asarray(tokens)) * config.embed_scale
    if config.norms_before:
        rows = normalise(rows, config.norm, config.norm_eps, layer.ln2_gain, layer.ln2_bias)
    return mlp(config, layer, rows)["mlp_out"]


def effective_tables(
    model: Model, layer: int, made: Float[np.ndarray, "item d_model"], tokens: Sequence[int]
) -> Float[np.ndarray, "head item output"]:
    """Return the effective OV circuits of a layer's heads among some tokens."""
    config, weights = model.config, model.layer(layer)
    if config.norms_before:
        made = normalise(made, config.norm, config.norm_eps, weights.ln1_gain, weights.ln1_bias)
    unembed = model.part("W_U")[:, np.asarray(tokens)]
    heads = [weights.head(number) for number in range(config.n_heads)]
    wrote = np.stack([linear(linear(made, head.W_V), head.W_O) for head in heads])
    if config.final_norm:
        wrote = centred(wrote, config.norm) * model.part("ln_final_gain")
    return np.asarray(wrote @ unembed)
