"""The same transformer as a torch module, for training and as an independent implementation.

It has the weights of `otimes.numeric.model.Model` under the same names and shapes, takes a batch of
prompts, and records the same activations, each with a leading batch axis. It shares no code with
the reference forward pass, so that the two can be compared (`tests/numeric/test_torch_model.py`):
norms and activation functions are torch's own, and all heads are one matrix product.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from otimes.numeric.config import Config
from otimes.numeric.model import Model

ACTIVATION: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": functional.gelu,
    "gelu_tanh": partial(functional.gelu, approximate="tanh"),
    "quick_gelu": lambda rows: rows * torch.sigmoid(1.702 * rows),
    "relu": functional.relu,
    "relu2": lambda rows: functional.relu(rows).square(),
    "silu": functional.silu,
}


class TorchModel(nn.Module):
    """A transformer of any architecture that `Config` describes.

    Its parameters have the names and shapes of `Config.tensor_shapes`, and any floating-point dtype
    of torch. Prompts must be on the device of the parameters.
    """

    def __init__(self, config: Config, weights: dict[str, Tensor]) -> None:
        super().__init__()
        self.config = config
        for name in config.tensor_shapes():
            self.register_parameter(name, nn.Parameter(weights[name]))

    @classmethod
    def of_model(cls, model: Model, dtype: torch.dtype = torch.float64) -> "TorchModel":
        """Return the torch model of a reference model, with copies of its weights."""
        return cls(
            model.config,
            {name: torch.tensor(weight).to(dtype) for name, weight in model.weights.items()},
        )

    def weights(self) -> dict[str, Tensor]:
        """Return the weights by name, without their gradients."""
        return {name: parameter.detach() for name, parameter in self.named_parameters()}

    def forward(self, tokens: Tensor, record: dict[str, Tensor] | None = None) -> Tensor:
        """Return the logits [batch, pos, d_vocab]; store every activation in `record` if given."""
        config = self.config
        n_pos = tokens.shape[1]
        places: dict[str, Tensor] = {}
        residual = places["embed"] = self.W_E[tokens] * config.embed_scale
        if config.positions == "learned":
            residual = residual + self.W_pos[:n_pos]
        if config.embed_norm:
            residual = places["ln_embed"] = self._norm("ln_embed", None, residual)
        for layer in range(config.n_layers):
            at, residual = self._block(layer, residual, record is not None)
            places |= {f"{place}.{layer}": value for place, value in at.items()}
        places["final"] = residual
        if config.final_norm:
            residual = places["ln_final"] = self._norm("ln_final", None, residual)
        logits = residual @ (self.W_E.mT if config.tied else self.W_U)
        if "b_U" in config.biases:
            logits = logits + self.b_U
        logits = logits * config.logit_scale
        if config.logit_cap:
            logits = config.logit_cap * torch.tanh(logits / config.logit_cap)
        places["logits"] = logits
        if record is not None:
            record |= places
        return logits

    def _block(
        self, layer: int, resid_pre: Tensor, recording: bool
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Return the activations of one block, if recording, and the residual stream after it."""
        config = self.config.of_layer(layer)
        at = {"resid_pre": resid_pre}
        attn_in = resid_pre
        if config.norms_before:
            attn_in = at["ln1"] = self._norm("ln1", layer, resid_pre)
        attention = self._attention(layer, attn_in)
        # Training needs only the sum over heads: concatenated heads times stacked W_O.
        side_by_side = attention["z"].transpose(1, 2).flatten(2)
        attn_out = side_by_side @ self.W_O[layer].flatten(0, 1)
        if "b_O" in config.biases:
            attn_out = attn_out + self.b_O[layer]
        attn_out = attn_out * config.write_scale
        written = attn_out
        if config.norms_output:
            written = at["ln1_post"] = self._norm("ln1_post", layer, attn_out)
        mlp_in = resid_post = resid_mid = resid_pre + written
        if config.post_norm:
            mlp_in = resid_post = at["ln1"] = self._norm("ln1", layer, resid_mid)
        elif config.parallel:
            mlp_in = resid_pre
        if config.d_mlp and config.norms_before:
            mlp_in = at["ln2"] = self._norm("ln2", layer, mlp_in)
        stream = resid_post
        if config.d_mlp:
            mlp = self._mlp(layer, mlp_in)
            mlp["mlp_out"] = mlp["mlp_out"] * config.write_scale
            written = mlp["mlp_out"]
            if config.norms_output:
                written = at["ln2_post"] = self._norm("ln2_post", layer, written)
            stream = resid_post = resid_post + written
            at |= mlp
            if config.post_norm:
                stream = at["ln2"] = self._norm("ln2", layer, resid_post)
        if not recording:
            return {}, stream
        at |= {
            **attention,
            "head_out": attention["z"] @ self.W_O[layer] * config.write_scale,
            "attn_out": attn_out,
            "resid_mid": resid_mid,
            "resid_post": resid_post,
        }
        return at, stream

    def _attention(self, layer: int, rows: Tensor) -> dict[str, Tensor]:
        """Return the activations of all heads of a layer, [batch, head, …]."""
        config = self.config.of_layer(layer)
        n_pos = rows.shape[1]
        qk_in = rows
        if config.positions == "shortformer":
            qk_in = rows + self.W_pos[:n_pos]
        if config.kv_rank:
            return self._mixed(layer, qk_in, *self._of_latents(layer, qk_in, rows))
        query = self._heads("Q", layer, qk_in)
        key = self._heads("K", layer, qk_in)
        if config.qk_norm != "none":
            query = self._normed_heads(query, self.q_norm_gain[layer])
            key = self._normed_heads(key, self.k_norm_gain[layer])
        return self._mixed(layer, qk_in, query, key, self._heads("V", layer, rows))

    def _of_latents(
        self, layer: int, qk_in: Tensor, rows: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, dict[str, Tensor]]:
        """Return queries, keys and values of latent attention before the rotation, and latents."""
        config = self.config

        def latent(name: str, weight: Tensor, read: Tensor) -> Tensor:
            gain = self._gain(getattr(self, f"{name}_gain")[layer])
            return functional.rms_norm(read @ weight, gain.shape, gain, config.latent_eps)

        places = {"kv_latent": latent("kv_latent", self.W_DKV[layer], rows)}
        read = qk_in
        if config.q_rank:
            read = places["q_latent"] = latent("q_latent", self.W_DQ[layer], qk_in)
        own = self._heads("K", layer, places["kv_latent"])
        shared = (qk_in @ self.W_KR[layer])[:, None].expand(-1, own.shape[1], -1, -1)
        value = self._heads("V", layer, places["kv_latent"])
        return self._heads("Q", layer, read), torch.cat([shared, own], -1), value, places

    def _mixed(
        self,
        layer: int,
        qk_in: Tensor,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        more: dict[str, Tensor] | None = None,
    ) -> dict[str, Tensor]:
        """Return the activations of heads from queries and keys before the rotation."""
        config, rows = self.config.of_layer(layer), qk_in
        n_pos = rows.shape[1]
        if config.positions == "rotary":
            query, key = _turned(query, config), _turned(key, config)
        shares = config.n_heads // config.kv_heads
        key = key.repeat_interleave(shares, dim=1)
        value = value.repeat_interleave(shares, dim=1)
        scores = query @ key.mT
        scores = scores * config.attn_scale if config.attn_scale else scores / config.d_head**0.5
        if config.score_cap:
            scores = config.score_cap * torch.tanh(scores / config.score_cap)
        place = torch.arange(n_pos, device=rows.device)
        behind = place[:, None] - place
        if config.positions == "alibi":
            slopes = torch.tensor(config.alibi_slopes, dtype=rows.dtype, device=rows.device)
            scores = scores - slopes[:, None, None] * behind.to(rows.dtype)
        visible = (behind >= 0) & (behind < (config.window or n_pos))
        masked = scores.masked_fill(~visible, -math.inf)
        if config.sinks:
            sink = self.sinks[layer][:, None, None].expand(len(rows), -1, n_pos, 1)
            pattern = torch.cat([masked, sink], dim=-1).softmax(-1)[..., :-1]
        else:
            pattern = masked.softmax(-1)
        return {
            **(more or {}),
            "qk_in": qk_in,
            "q": query,
            "k": key,
            "v": value,
            "scores": scores,
            "pattern": pattern,
            "z": pattern @ value,
        }

    def _heads(self, letter: str, layer: int, rows: Tensor) -> Tensor:
        """Map [batch, pos, d_model] to [batch, head, pos, d_head] in one matrix product."""
        weight = getattr(self, f"W_{letter}")[layer]
        wide = rows @ weight.transpose(0, 1).flatten(1)
        if f"b_{letter}" in self.config.biases:
            wide = wide + getattr(self, f"b_{letter}")[layer].flatten()
        return wide.unflatten(-1, (len(weight), -1)).transpose(1, 2)

    def _normed_heads(self, heads: Tensor, gain: Tensor) -> Tensor:
        """Return queries or keys [batch, head, pos, d_head] after their norm."""
        if self.config.qk_norm == "head":
            return self._plain_norm(heads, self.config.d_head) * self._gain(gain)[:, None]
        flat = heads.transpose(1, 2).flatten(2)
        normed = self._plain_norm(flat, flat.shape[-1]) * self._gain(gain).flatten()
        return normed.unflatten(-1, (heads.shape[1], -1)).transpose(1, 2)

    def _plain_norm(self, rows: Tensor, width: int) -> Tensor:
        if self.config.norm == "rms":
            return functional.rms_norm(rows, (width,), None, self.config.norm_eps)
        return functional.layer_norm(rows, (width,), None, None, self.config.norm_eps)

    def _gain(self, gain: Tensor) -> Tensor:
        return gain + 1 if self.config.gain_offset else gain

    def _mlp(self, layer: int, rows: Tensor) -> dict[str, Tensor]:
        config = self.config
        assert config.activation is not None  # the configuration of a model with an MLP names one
        activate = ACTIVATION[config.activation]

        def through(name: str, rows: Tensor) -> Tensor:
            mapped = rows @ getattr(self, f"W_{name}")[layer]
            biased = f"b_{name}" in config.biases
            return mapped + getattr(self, f"b_{name}")[layer] if biased else mapped

        pre = through("gate" if config.gated else "in", rows)
        limit = config.gate_limit or math.inf
        post = activate(pre.clamp(max=limit))
        if config.gated:
            up = through("in", rows)
            post = post * (up.clamp(-limit, limit) + 1 if config.gate_limit else up)
        at = {"mlp_pre": pre, "mlp_post": post}
        if not config.n_experts:
            return {**at, "mlp_out": through("out", post)}
        at |= self._routing(layer, rows)
        return at | self._experts(layer, post, at["routing"])

    def _routing(self, layer: int, rows: Tensor) -> dict[str, Tensor]:
        """Return the logits of the router and the weights of experts, by torch's own top-k."""
        config = self.config
        logits = rows @ self.W_router[layer]
        if "b_router" in config.biases:
            logits = logits + self.b_router[layer]
        own, gate = logits[..., : config.n_experts], logits[..., config.n_experts :]
        if layer in config.dense_layers:
            weights = torch.ones_like(own)
        else:
            every = own.sigmoid() if config.router == "sigmoid" else own.softmax(-1)
            compared = every
            if "b_choice" in config.biases:
                compared = every + self.b_choice[layer]
            chosen = self._among_groups(compared).topk(config.experts_per_token).indices
            picked = every.gather(-1, chosen)
            if config.router != "all":
                picked = picked / picked.sum(-1, keepdim=True)
            weights = torch.zeros_like(own).scatter(-1, chosen, picked * config.router_scale)
        if config.d_shared:
            whole = torch.ones_like(own[..., :1])
            shared = gate.sigmoid() if config.shared_gate else whole
            weights = torch.cat([weights, whole if layer in config.dense_layers else shared], -1)
        return {"router": logits, "routing": weights}

    def _among_groups(self, compared: Tensor) -> Tensor:
        """Return what is compared, -∞ in groups that are not chosen."""
        if not self.config.router_groups:
            return compared
        groups, kept, counted = self.config.router_groups
        split = compared.unflatten(-1, (groups, -1))
        best = split.topk(counted).values.sum(-1).topk(kept).indices
        mask = torch.zeros(split.shape[:-1], dtype=torch.bool).scatter(-1, best, True)
        return split.masked_fill(~mask[..., None], -math.inf).flatten(-2)

    def _experts(self, layer: int, neurons: Tensor, weights: Tensor) -> dict[str, Tensor]:
        """Return the output of the experts, one by one."""
        config, start = self.config, 0
        width = (config.d_mlp - config.d_shared) // config.n_experts
        out: Tensor | float = 0.0
        routed = []
        for expert in range(weights.shape[-1]):
            end = start + (width if expert < config.n_experts else config.d_shared)
            share, own = weights[..., expert, None], neurons[..., start:end]
            written = own @ self.W_out[layer, start:end]
            if "b_experts" in config.biases and expert < config.n_experts:
                written = written + self.b_experts[layer, expert]
            out = out + share * written
            routed.append(share * own)
            start = end
        if "b_out" in config.biases:
            out = out + self.b_out[layer]
        assert isinstance(out, Tensor)  # there is an expert
        return {"routed": torch.cat(routed, -1), "mlp_out": out}

    def _norm(self, name: str, layer: int | None, rows: Tensor) -> Tensor:
        """Return the output of the named norm; the rows unchanged in a model without norms."""
        config = self.config
        if config.norm == "none":
            return rows
        gain = getattr(self, f"{name}_gain")
        gain = self._gain(gain if layer is None else gain[layer])
        if config.norm == "rms":
            return functional.rms_norm(rows, (config.d_model,), gain, config.norm_eps)
        bias = getattr(self, f"{name}_bias")
        bias = bias if layer is None else bias[layer]
        return functional.layer_norm(rows, (config.d_model,), gain, bias, config.norm_eps)


def _turned(rows: Tensor, config: Config) -> Tensor:
    """Return queries or keys [batch, head, pos, d_head] rotated by their positions.

    Pairs are multiplied as complex numbers by e^{i·angle}. For bfloat16 rows this is done in
    float32: eight significant bits are too few for a position.
    """
    half = config.rotary_dims // 2
    wide = rows if rows.dtype == torch.float64 else rows.float()
    turning, rest = wide.split([2 * half, config.d_head - 2 * half], dim=-1)
    if config.rotary_layout == "half":
        pairs = turning.unflatten(-1, (2, half)).mT
    else:
        pairs = turning.unflatten(-1, (half, 2))
    numbers = {"dtype": torch.float64, "device": rows.device}
    frequency, scale = _frequencies(config, rows.shape[2], numbers)
    angle = torch.outer(torch.arange(rows.shape[2], **numbers), frequency)
    unit = torch.polar(torch.full_like(angle, scale), angle)
    numbers_turned = torch.view_as_complex(pairs.contiguous()) * unit.to(
        torch.complex128 if wide.dtype == torch.float64 else torch.complex64
    )
    pairs = torch.view_as_real(numbers_turned)
    turned = pairs.mT.flatten(-2) if config.rotary_layout == "half" else pairs.flatten(-2)
    return torch.cat([turned, rest], dim=-1).to(rows.dtype)


def _frequencies(config: Config, n_pos: int, numbers: dict[str, Any]) -> tuple[Tensor, float]:
    """Return the rotary frequencies of a prompt of this length, and the factor of entries."""
    half, stretch = config.rotary_dims // 2, config.rotary_stretch
    exponent = torch.arange(half, **numbers) / half
    plain = torch.pow(config.rotary_base, -exponent)
    if not stretch or not isinstance(stretch[0], str):
        if len(stretch) < 5:
            return _stretched(plain, config), 1.0
        return _ramped(plain, config), stretch[4]
    kind, *rest = stretch
    if kind == "longrope":
        context, scale, *divisors = rest
        chosen = divisors[half:] if n_pos > context else divisors[:half]
        return plain / torch.tensor(chosen, **numbers), scale
    factor, context = rest
    if n_pos <= context:
        return plain, 1.0
    ratio = 1 + factor * (n_pos - context) / context
    return plain * torch.pow(ratio, -exponent * half / (half - 1)), 1.0


def _ramped(frequency: Tensor, config: Config) -> Tensor:
    """Return the rotary frequencies of YaRN, by a linear ramp as in its authors' code."""
    factor, slow, fast, context, _, *unrounded = config.rotary_stretch

    def pair_that_turns(times: float) -> float:
        wavelengths = math.log(context / (times * 2 * math.pi)) / math.log(config.rotary_base)
        return config.rotary_dims / 2 * wavelengths

    low, high = pair_that_turns(fast), pair_that_turns(slow)
    if not unrounded:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, config.rotary_dims - 1)
    number = torch.arange(len(frequency), dtype=frequency.dtype, device=frequency.device)
    ramp = ((number - low) / ((high - low) or 0.001)).clamp(0, 1)
    return frequency / factor * ramp + frequency * (1 - ramp)


def _stretched(frequency: Tensor, config: Config) -> Tensor:
    """Return scaled rotary frequencies, by wavelengths as in Meta's code for Llama 3.1."""
    stretch = config.rotary_stretch
    if not stretch:
        return frequency
    if len(stretch) == 1:
        return frequency / stretch[0]
    factor, low, high, context = stretch
    wavelength = 2 * math.pi / frequency
    smooth = (context / wavelength - low) / (high - low)
    between = (1 - smooth) * frequency / factor + smooth * frequency
    slow = torch.where(wavelength > context / low, frequency / factor, between)
    return torch.where(wavelength < context / high, frequency, slow)
