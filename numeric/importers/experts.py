"""The experts of a checkpoint: their router, and the neurons of all of them in one tensor.

A checkpoint has the experts of a layer in one array, as a live module of transformers 5, or one by
one. A tensor of this package holds their neurons one after the other, then those of a shared
expert; a layer without experts has its neurons first and zeros after. The arrays are copied.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError
from otimes.numeric.config import Config
from otimes.numeric.importers.checkpoint import Settings, Tensors, tensor
from otimes.numeric.tensors import Tensor, stack

Fields = dict[str, Any]
GATED = {"gate": "mlp.gate_proj", "in": "mlp.up_proj", "out": "mlp.down_proj"}


@dataclass(frozen=True, slots=True)
class ExpertNames:
    """The names of a family's experts in a block, and of its settings.

    `routers` are the possible names of the router, `experts` those of one expert's gate, up and
    output, each with {} for its number. `whole` holds all experts in one array for gate and up and
    one for outputs, which a checkpoint may have as the two `stored`; with `interleaved` (gpt-oss)
    the columns of gate and up alternate, and weights act on the right. `count`, `width` and
    `shared_width` are settings.
    """

    routers: tuple[str, ...] = ("mlp.gate",)
    experts: tuple[Mapping[str, str], ...] = (
        {
            "gate": "mlp.experts.{}.gate_proj",
            "in": "mlp.experts.{}.up_proj",
            "out": "mlp.experts.{}.down_proj",
        },
    )
    whole: str = "mlp.experts"
    stored: tuple[str, str] | None = None
    interleaved: bool = False
    shared: str = ""
    shared_gate: str = ""
    choice_bias: tuple[str, ...] = ()
    count: str = "num_experts"
    width: str = "moe_intermediate_size"
    dense: Mapping[str, str] = field(default_factory=lambda: GATED)

    @property
    def settings(self) -> set[str]:
        """The settings that `sizes` reads."""
        return {self.count, "num_local_experts", "num_experts_per_tok", self.width}


def sizes(names: ExpertNames, name: str, settings: Settings, d_shared: int = 0) -> Fields:
    """Return the numbers of experts, and d_mlp."""
    key = names.count if names.count in settings else "num_local_experts"
    count, chosen = settings.size(key), settings.size("num_experts_per_tok")
    if chosen > count:
        raise OtimesError(f"{name} has num_experts_per_tok={chosen}, but {count} experts")
    return {
        "n_experts": count,
        "experts_per_token": chosen,
        "d_shared": d_shared,
        "d_mlp": count * settings.size(names.width) + d_shared,
    }


def read_experts(
    names: ExpertNames, config: Config, tensors: Tensors, block: str
) -> dict[str, Tensor]:
    """Return the weights of routers and experts of all layers; `block` has {} for the layer."""
    layers = [
        _Layer(names, config, tensors, block.format(number), number in config.dense_layers)
        for number in range(config.n_layers)
    ]
    read = {
        "W_gate": [each.neurons("gate").T for each in layers],
        "W_in": [each.neurons("in").T for each in layers],
        "W_out": [each.neurons("out") for each in layers],
        "W_router": [each.router() for each in layers],
        "b_router": [each.router_bias() for each in layers if config.has("b_router")],
        "b_choice": [each.choice_bias() for each in layers if config.has("b_choice")],
        "b_gate": [each.bias("gate") for each in layers if config.has("b_gate")],
        "b_in": [each.bias("in") for each in layers if config.has("b_in")],
        "b_experts": [each.bias("out") for each in layers if config.has("b_experts")],
    }
    return {name: stack(arrays) for name, arrays in read.items() if arrays}


class _Layer:
    """The experts of one layer."""

    def __init__(
        self, names: ExpertNames, config: Config, tensors: Tensors, block: str, dense: bool
    ) -> None:
        self.names, self.config, self.tensors, self.block = names, config, tensors, block
        self.dense = dense
        self.width = (config.d_mlp - config.d_shared) // config.n_experts

    def neurons(self, part: str) -> np.ndarray:
        """Return gate, up or output of all neurons [d_mlp, d_model]."""
        if self.dense:
            return self._dense(part)
        rows = [self._of_experts(part).reshape(-1, self.config.d_model)]
        if self.config.d_shared:
            rows.append(
                self._linear(f"{self.names.shared}.{_LAST[part]}", part, self.config.d_shared)
            )
        return np.concatenate(rows) if len(rows) > 1 else rows[0]

    def router(self) -> np.ndarray:
        """Return W_router [d_model, n_routed]; zeros in a layer without experts."""
        c = self.config
        if self.dense:
            return np.zeros((c.d_model, c.n_routed), np.float32)
        columns = [self._get(self._router_name + ".weight", (c.n_experts, c.d_model))]
        if c.shared_gate:
            columns.append(self._get(self.names.shared_gate + ".weight", (1, c.d_model)))
        return np.concatenate(columns).T

    def router_bias(self) -> np.ndarray:
        """Return b_router [n_routed]."""
        return self._get(self._router_name + ".bias", (self.config.n_routed,))

    def choice_bias(self) -> np.ndarray:
        """Return b_choice [n_experts]."""
        count = (self.config.n_experts,)
        if self.dense:
            return np.zeros(count, np.float32)
        known = [name for name in self.names.choice_bias if self.block + name in self.tensors]
        name = (known or self.names.choice_bias)[0]
        stored = self.tensors.get(self.block + name)
        if stored is not None and stored.ndim == 2:  # ERNIE's has an axis of one group
            return self._get(name, (1, *count))[0]
        return self._get(name, count)

    def bias(self, part: str) -> np.ndarray:
        """Return a bias of all experts: of neurons [d_mlp], or of outputs [n_experts, d_model]."""
        c, whole = self.config, self.names.whole
        if part == "out":
            return self._get(f"{whole}.down_proj_bias", (c.n_experts, c.d_model))
        both = self._get(f"{whole}.gate_up_proj_bias", (c.n_experts, 2 * self.width))
        return both[:, _START[part] :: 2].reshape(-1)

    @property
    def _router_name(self) -> str:
        known = [
            name for name in self.names.routers if f"{self.block}{name}.weight" in self.tensors
        ]
        return (known or self.names.routers)[0]

    @property
    def _whole(self) -> tuple[str, str]:
        """The names of the arrays of all experts: gate and up, and outputs."""
        usual = (f"{self.names.whole}.gate_up_proj", f"{self.names.whole}.down_proj")
        stored = self.names.stored
        return stored if stored and self.block + stored[0] in self.tensors else usual

    def _of_experts(self, part: str) -> np.ndarray:
        """Return gate, up or output of the neurons of each expert [expert, neuron, d_model]."""
        c, (both, out) = self.config, self._whole
        whole = out if part == "out" else both
        count, width, d = c.n_experts, self.width, c.d_model
        if self.block + whole not in self.tensors:
            return np.stack([self._one(part, expert) for expert in range(count)])
        if self.names.interleaved:
            if part == "out":
                return self._get(whole, (count, width, d))
            gate_up = self._get(whole, (count, d, 2 * width))
            return gate_up[:, :, _START[part] :: 2].swapaxes(1, 2)
        if part == "out":
            return self._get(whole, (count, d, width)).swapaxes(1, 2)
        first = _START[part] * width
        return self._get(whole, (count, 2 * width, d))[:, first : first + width]

    def _one(self, part: str, expert: int) -> np.ndarray:
        each = [names[part].format(expert) for names in self.names.experts]
        known = [name for name in each if f"{self.block}{name}.weight" in self.tensors]
        return self._linear((known or each)[0], part, self.width)

    def _linear(self, name: str, part: str, width: int) -> np.ndarray:
        """Return a linear layer of an expert as [neuron, d_model]."""
        d = self.config.d_model
        shape = (d, width) if part == "out" else (width, d)
        found = self._get(name + ".weight", shape)
        return found.T if part == "out" else found

    def _dense(self, part: str) -> np.ndarray:
        """Return the neurons of an MLP without experts, and zeros for the others."""
        c, name = self.config, self.names.dense[part]
        whole = f"{self.block}{name}.weight"
        if whole not in self.tensors:
            raise OtimesError(f"the checkpoint lacks {whole}, of a layer without experts")
        stored = self.tensors[whole]
        width = stored.shape[1 if part == "out" else 0]
        own = self._linear(name, part, width)
        if width > c.d_mlp:
            raise OtimesError(
                f"{whole} has {width} neurons, but the experts of a layer have only {c.d_mlp}: such"
                " a checkpoint is not supported"
            )
        return np.concatenate([own, np.zeros((c.d_mlp - width, c.d_model), own.dtype)])

    def _get(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        return tensor(self.tensors, self.block + name, shape)


_START = {"gate": 0, "in": 1}
_LAST = {"gate": "gate_proj", "in": "up_proj", "out": "down_proj"}
