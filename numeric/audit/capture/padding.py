"""Capture a live module of Hugging Face on a batch with padding."""

from typing import Any

import numpy as np
import torch

from otimes.numeric.audit.capture.hooks import watch
from otimes.numeric.audit.capture.modules import left_as_it_was
from otimes.numeric.importers.unwrap import called
from otimes.numeric.model import Model


def recorded(
    module: torch.nn.Module, rows: np.ndarray, mask: np.ndarray, model: Model, kind: str
) -> tuple[Any, dict[str, Any]]:
    """Return logits and activations; positions are those that `generate` gives."""
    places: dict[str, Any] = {}
    device = next(module.parameters()).device
    options = {"attention_mask": torch.as_tensor(mask).to(device)}
    if model.config.positions in ("learned", "rotary"):
        counted = torch.as_tensor(np.maximum(mask.cumsum(axis=1) - 1, 0)).to(device)
        options["position_ids"] = counted
    with left_as_it_was(module) as hooks:
        watch(kind, module, model, lambda n, v: places.update({n: v.detach().clone()}), hooks)
        answer = called(module, torch.as_tensor(rows).to(device), **options)
    return getattr(answer, "logits", None), places
