"""Capture a live module of Hugging Face as it decodes: with its cache, token by token."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from otimes.numeric.audit.capture.collect import Capture, by_prompt, gather
from otimes.numeric.audit.capture.hooks import watch
from otimes.numeric.audit.capture.modules import captures_of as captures_at_once
from otimes.numeric.audit.capture.modules import left_as_it_was
from otimes.numeric.audit.reference.evaluator import layer_of
from otimes.numeric.block import kind_of
from otimes.numeric.importers.unwrap import called
from otimes.numeric.model import Model


def captures_of(
    module: torch.nn.Module, rows: np.ndarray, model: Model, kind: str, first: int
) -> tuple[Capture, Capture]:
    """Return the captures of one pass, and of a prefill of `first` tokens and single steps."""
    (whole,) = captures_at_once(module, rows, model, kind)
    places: dict[str, list[torch.Tensor]] = {}
    length = [0, 0]

    def keep(name: str, value: Any) -> None:
        step = by_prompt(value.detach().clone(), (len(rows), length[1] - length[0]))
        places.setdefault(name, []).append(_of_step(name, step, *length))

    logits, cache = [], None
    device = next(module.parameters()).device
    with left_as_it_was(module) as hooks:
        watch(kind, module, model, keep, hooks)
        for start, end in [(0, first), *((at, at + 1) for at in range(first, rows.shape[1]))]:
            length[:] = start, end
            step = torch.as_tensor(rows[:, start:end]).to(device)
            answer = called(module, step, past_key_values=cache, use_cache=True)
            cache = answer.past_key_values
            if hasattr(answer, "logits"):
                logits.append(answer.logits)
    joined = {
        name: _joined(name, parts, rows.shape[1])
        for name, parts in places.items()
        if kind_of(name) != "pattern" or _of_known_keys(parts, name, model)
    }
    capture = gather(torch.cat(logits, 1) if logits else None, joined, rows, model)
    return whole, replace(capture, unturned=whole.unturned, own_weights=True)


def _of_step(name: str, value: torch.Tensor, start: int, end: int) -> torch.Tensor:
    """Return the rows of a step's own tokens; a projection of a cache has those of all."""
    if kind_of(name) == "pattern" or value.shape[-2] == end - start:
        return value
    return value[..., start - end :, :]


def _of_known_keys(parts: list[torch.Tensor], name: str, model: Model) -> bool:
    """Return whether the keys of patterns are known: all up to the query, or those of a window.

    With fewer keys, as from a stale cache, it is not known which ones they are.
    """
    window, end = model.config.of_layer(layer_of(name) or 0).window, 0
    for part in parts:
        end += part.shape[-2]
        if part.shape[-1] != end and not (window and part.shape[-1] < end):
            return False
    return True


def _joined(name: str, parts: list[torch.Tensor], n_pos: int) -> torch.Tensor:
    """Return an activation of all tokens; a step's pattern has fewer keys, or those of a window."""
    if kind_of(name) != "pattern":
        return torch.cat(parts, dim=-2)
    wide, row = [], 0
    for part in parts:
        count = part.shape[-2]
        full = part.new_zeros((*part.shape[:-1], n_pos))
        end = row + count
        begin = end - part.shape[-1]
        full[..., max(begin, 0) : end] = part[..., max(-begin, 0) :]
        wide.append(full)
        row = end
    return torch.cat(wide, dim=-2)
