"""Attention patterns as the arrays that BertViz and CircuitsVis draw.

Source: Vig 2019, “A Multiscale Visualization of Attention in the Transformer Model”; Cooney and
Nanda 2023, CircuitsVis; Kobayashi et al. 2020 (weights times the norms of what values write).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError
from otimes.numeric.attribution.mixing import output_value_norms
from otimes.numeric.brief import Brief
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.prompt import is_batch, read_prompt


@dataclass(frozen=True, slots=True, repr=False)
class DrawnAttention(Brief):
    """The attention of every layer on one prompt, and the prompt's tokens as text.

    `attention` has an array [1, head, query, key] for each layer, the format of Hugging Face's
    `output_attentions`.
    """

    attention: tuple[np.ndarray, ...]
    tokens: tuple[str, ...]

    def bertviz(self) -> dict[str, object]:
        """Return the arguments of `bertviz.head_view` and `model_view`, as torch tensors.

        Needs torch: `head_view(**drawn_attention(model, prompt).bertviz())`.
        """
        import torch

        drawn = tuple(torch.from_numpy(np.array(each)) for each in self.attention)
        return {"attention": drawn, "tokens": list(self.tokens)}

    def circuitsvis(self, layer: int = 0) -> dict[str, object]:
        """Return the arguments of `circuitsvis.attention.attention_heads` for one layer.

        The array is [head, query, key]. Raises: OtimesError for a layer that does not exist.

        >>> view = drawn_attention("one_layer", "x = 1").circuitsvis()
        >>> view["attention"].shape[0] == load_model("one_layer").n_heads
        True
        """
        if not -len(self.attention) <= layer < len(self.attention):
            raise OtimesError(f"layer {layer} of {len(self.attention)} layers does not exist")
        return {"attention": self.attention[layer][0], "tokens": list(self.tokens)}


def drawn_attention(model: ModelSource, prompt: Any, *, weighted: bool = False) -> DrawnAttention:
    r"""Return the attention patterns of a model on a prompt, for BertViz and CircuitsVis.

    With `weighted` each weight is multiplied by the length of what is moved,
    $A_{ij} \|v_j W_O\|$ (value-weighted patterns); rows then do not sum to 1.
    Proved by: neuron_view_sums_to_score, value_weighted_pattern_squared.

    >>> drawn = drawn_attention("two_layer", "for i in range")
    >>> len(drawn.attention), drawn.attention[0].sum(axis=-1).round(12).min()
    (2, np.float64(1.0))

    Raises: OtimesError for a model without layers, a batch of prompts, or an invalid prompt.
    """
    loaded = load_model(model)
    if not loaded.n_layers:
        raise OtimesError(f"{loaded.name} has no layers, and so no attention to draw")
    if is_batch(prompt):
        raise OtimesError("drawn_attention takes one prompt, got a batch: draw one at a time")
    read = read_prompt(loaded, prompt)
    wanted = [f"pattern.{layer}" for layer in range(loaded.n_layers)]
    places = loaded.forward(read.tokens, wanted)
    layers = [places[name] for name in wanted]
    if weighted:
        layers = [*output_value_norms(loaded, read.tokens).values]
    return DrawnAttention(tuple(each[None] for each in layers), tuple(read.strings))
