"""The gradient of a logit at every place, by torch's autograd on the twin: another program."""

import numpy as np
import torch

from otimes.numeric.model import Model
from otimes.numeric.torch_model import TorchModel


def gradients(
    model: Model, tokens: list[int], token: int, position: int, foil: int | None = None
) -> tuple[float, dict[str, np.ndarray]]:
    """Return the logit (less that of a foil) and its gradient at each place; zero if unused."""
    twin = TorchModel.of_model(model)
    record: dict[str, torch.Tensor] = {}
    logits = twin(torch.tensor([tokens]), record)[0, position]
    goal = logits[token] - (0 if foil is None else logits[foil])
    places = {name: each for name, each in record.items() if name != "logits"}
    found = torch.autograd.grad(goal, list(places.values()), allow_unused=True)
    return goal.item(), {
        name: np.zeros(each.shape[1:]) if gradient is None else gradient[0].numpy()
        for (name, each), gradient in zip(places.items(), found, strict=True)
    }
