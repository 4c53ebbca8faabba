r"""What a model loses when an activation is replaced by its reconstruction.

With the losses of the model itself, with the reconstruction in place of the activation, and with
the activation ablated, the loss recovered is $(L_{abl} - L_{SAE}) / (L_{abl} - L)$: 1 for a perfect
reconstruction, 0 for one that is as bad as the ablation.
Source: Bricken et al. 2023, “Towards Monosemanticity”.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from otimes.algebra.errors import OtimesError
from otimes.numeric.features.measures import SAESource
from otimes.numeric.features.sae import SAE, load_sae
from otimes.numeric.interventions.passes import intervene
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.metrics import losses_of_logits
from otimes.numeric.model import Model
from otimes.numeric.progress import tracked
from otimes.numeric.prompt import Prompts, read_prompts

ABLATIONS = ("zero", "mean")


class LossRecovered(NamedTuple):
    """Mean losses in nats: of the model, with the reconstruction, and with the ablation."""

    original: float
    spliced: float
    ablated: float

    @property
    def fraction(self) -> float:
        """(ablated - spliced) / (ablated - original). Raises: OtimesError where this is 0/0."""
        if self.ablated == self.original:
            raise OtimesError(
                "the ablation does not change the loss, so that the loss recovered is 0/0"
            )
        return (self.ablated - self.spliced) / (self.ablated - self.original)


def loss_recovered(
    model: ModelSource, sae: SAESource, prompts: Prompts, ablation: str = "zero"
) -> LossRecovered:
    """Return the losses of next tokens with an activation, its reconstruction, and an ablation.

    `.fraction` is the loss recovered. The ablation is "zero", or "mean": the mean of the
    activation over all positions of all prompts. The activation is the one that the SAE writes: of
    a transcoder its output, computed from what it reads in the same pass.

    >>> found = loss_recovered("gpt2_tiny", "gpt2_tiny_sae", "for i in range(10):")
    >>> 0 < found.fraction < 1
    True

    Raises: OtimesError for another ablation, an SAE of another model, a prompt that is invalid or
    of one token only.
    """
    loaded, read = load_model(model), load_sae(sae)
    if ablation not in ABLATIONS:
        raise OtimesError(f"ablation must be 'zero' or 'mean', got {ablation!r}")
    if read.model not in ("", loaded.name):
        raise OtimesError(f"this SAE is of {read.model}, and the model is {loaded.name}")
    rows = read_prompts(loaded, prompts)
    if rows.shape[1] == 1:
        raise OtimesError("a loss needs a prompt of at least two tokens, got one")
    place = read.output or read.hook_point
    mean = 0.0 if ablation == "zero" else loaded.forward(rows, [place])[place].mean(axis=(0, 1))
    found = [
        [
            _loss(loaded, row, place, by)
            for by in (_itself, _reconstruction(loaded, read, row), mean)
        ]
        for row in tracked(rows, "splicing the SAE")
    ]
    return LossRecovered(*map(float, np.mean(found, axis=0)))


def _itself(activation: np.ndarray) -> np.ndarray:
    """Return the activation: the original loss is computed as the others are."""
    return activation


def _reconstruction(model: Model, sae: SAE, row: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return what replaces the activation: a function of it, which a transcoder does not use."""
    if not sae.is_transcoder:
        return sae
    written = sae(model.forward(row, [sae.hook_point])[sae.hook_point])
    return lambda activation: written


def _loss(model: Model, row: np.ndarray, place: str, by: Any) -> float:
    """Return the mean loss on one prompt where an activation is replaced."""
    logits = intervene(model, row, {place: by}, record=["logits"])["logits"]
    return float(losses_of_logits(logits, row).mean())
