r"""Attention scores of one head, split by the components that the query and the key read.

The residual stream before layer l is a sum of components: the embedding, positions, and the outputs
of earlier heads. With frozen norm scales, query and key are sums over these components, and a score

    S_{qk} = Σ_c Σ_e (Ŷ_c W_Q)_q · (Ŷ_e W_K)_k / √d_head

has one term for each pair. In the second layer of an attention-only model these are the (1 + H)²
terms of the framework's six-index tensor: `direct` (neither side reads a head), `Q` (the query
does: Q-composition), `K` (the key does), `Q+K` (both do). Position embeddings, the biases of
queries and keys, each b_O, and each MLP's output are components too. With frozen gates, components
pass through the MLPs, whose own components are then their constants. Rotary embeddings are applied
to each component.

Source: Elhage et al. 2021, “The QK circuit: a six-dimensional tensor”, “Path expansion of attention
scores”.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from otimes.numeric.brief import Brief
from otimes.numeric.config import check_settings
from otimes.numeric.frozen import FrozenPass
from otimes.numeric.functions import rotate
from otimes.numeric.paths.orders import check_path

COMPOSITIONS = ("direct", "Q", "K", "Q+K")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ScoreTerms(Brief):
    """The scores of one query in one head, [query component, key component, key].

    `names` are the components: `embed`, `positions`, `bias`, `b_O.l`, `mlp.l`, and heads `l.h`;
    `through_head` marks the heads.
    """

    layer: int
    head: int
    query: int
    names: tuple[str, ...]
    through_head: tuple[bool, ...]
    terms: Float[np.ndarray, "query_part key_part key"]

    def scores(self) -> Float[np.ndarray, " key"]:
        """Return the scores, the sum of all terms, for the keys up to the query."""
        return self.terms.sum(axis=(0, 1))

    def by_composition(self) -> dict[str, Float[np.ndarray, " key"]]:
        """Return the scores [key] by composition: `direct`, `Q`, `K`, `Q+K`."""
        heads = np.array(self.through_head)
        sides = ((~heads, ~heads), (heads, ~heads), (~heads, heads), (heads, heads))
        return {
            name: self.terms[query][:, key].sum(axis=(0, 1))
            for name, (query, key) in zip(COMPOSITIONS, sides, strict=True)
        }


def score_terms(frozen: FrozenPass, layer: int, head: int, query: int) -> ScoreTerms:
    """Return the terms of the scores of a head for one query and the keys up to it.

    Raises: OtimesError if the head or the position is out of range.

    Proved by: scores_by_composition, qk_six_index.
    """
    model = frozen.model
    also = (
        "n_experts",
        "gate_limit",
        "windows",
        "local_base",
        "unrotated_layers",
        "sinks",
        "attn_scale",
        "embed_scale",
        "output_norms",
    )
    check_settings(model.config, "the terms of scores", also)
    ((layer, head),) = check_path(frozen, [(layer, head)])
    config = model.config.of_layer(layer)
    place = frozen.at(query)
    shown = frozen.until(place)
    reader = shown.layer(layer)

    def part(name: str) -> np.ndarray:
        return model.part(name, layer)[head].astype(frozen.dtype, copy=False)

    W_Q, W_K, b_Q, b_K = (part(name) for name in ("W_Q", "W_K", "b_Q", "b_K"))

    def turned(rows: np.ndarray) -> np.ndarray:
        if config.positions != "rotary":
            return rows
        return rotate(rows, *config.rotation, n_pos=frozen.n_pos)

    names, through_head, queries, keys = [], [], [], []

    def add(name: str, is_head: bool, q: np.ndarray, k: np.ndarray) -> None:
        names.append(name)
        through_head.append(is_head)
        queries.append(turned(q)[place])
        keys.append(turned(k))

    for (name, is_head), stream in zip(*components(shown, layer), strict=True):
        rows = reader.read(stream)
        add(name, is_head, rows @ W_Q, rows @ W_K)
    if config.positions == "shortformer":
        added = model.part("W_pos", slice(shown.n_pos)).astype(frozen.dtype)
        add("positions", False, added @ W_Q, added @ W_K)
    if config.norm == "layer" or {"b_Q", "b_K"} & {*config.biases}:
        norm_bias = model.part("ln1_bias", layer).astype(frozen.dtype)
        everywhere = np.ones((shown.n_pos, 1), dtype=frozen.dtype)
        add("bias", False, everywhere * (norm_bias @ W_Q + b_Q),
            everywhere * (norm_bias @ W_K + b_K))  # fmt: skip
    terms = np.einsum("ck,epk->cep", np.stack(queries), np.stack(keys), optimize=True)
    scaled = terms * frozen.dtype.type(config.score_scale)
    return ScoreTerms(layer, head, place, tuple(names), tuple(through_head), scaled)


def components(
    frozen: FrozenPass, layer: int
) -> tuple[list[tuple[str, bool]], Float[np.ndarray, "part pos d_model"]]:
    """Return the components of the residual stream before a layer: (name, is a head), rows."""
    model, config = frozen.model, frozen.model.config
    names, first = [("embed", False)], [model.part("W_E", frozen.tokens) * config.embed_scale]
    if config.positions == "learned":
        names.append(("positions", False))
        first.append(model.part("W_pos", slice(frozen.n_pos)))
    parts = np.stack(first).astype(frozen.dtype)
    stream = frozen.first
    for number in range(layer):
        block = frozen.layer(number)
        z = block.z(stream[None])[0] + block.constant()
        new = [z[:, head] @ block.W_O[head] for head in range(model.n_heads)]
        names += [(f"{number}.{head}", True) for head in range(model.n_heads)]
        stream = frozen.after(number, stream[None], np.sum(new, axis=0)[None])[0]
        stream = stream + frozen.entering(number)
        if "b_O" in config.biases or config.has("ln1_post_bias"):
            names.append((f"b_O.{number}", False))
            b_O = frozen.attention_bias(number)
            new.append(np.broadcast_to(b_O, stream.shape))
        before = np.concatenate([parts, np.zeros((len(new), *stream.shape), parts.dtype)])
        written = np.concatenate([np.zeros_like(parts), np.stack(new)])
        parts = frozen.after(number, before, written)
        if config.d_mlp:
            names.append((f"mlp.{number}", False))
            mlp = frozen.mlp(number)
            brought = frozen.mlp_outs[number] if mlp is None else mlp.constant()
            parts = np.concatenate([parts, brought[None]])
    return names, parts
