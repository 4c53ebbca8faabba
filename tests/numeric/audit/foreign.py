"""A transformer as strangers write it, in torch, with a switch for each mistake and each rewrite.

Nothing of the package computes here: weights come by name as tensors, and every formula is written
out again. `run` returns logits and places. A mistake or a rewrite is a word in `has`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - its usual name

from otimes.numeric.config import Config
from otimes.numeric.model import Model


@dataclass
class Foreign:
    """A foreign implementation of a model; `has` names what it does otherwise."""

    model: Model
    dtype: torch.dtype = torch.float32
    has: tuple[str, ...] = ()
    only_logits: bool = False
    hide: tuple[str, ...] = ()
    w: dict[str, Tensor] = field(init=False)

    def __post_init__(self) -> None:
        self.w = {
            name: torch.tensor(np.asarray(each)).double()
            for name, each in self.model.weights.items()
        }
        self.c: Config = self.model.config
        self.rewrite_weights()
        self.w = {name: each.to(self.dtype) for name, each in self.w.items()}

    def __call__(self, tokens):
        rows = torch.as_tensor(np.asarray(tokens))
        rows = rows[None] if rows.ndim == 1 else rows
        places: dict[str, list[Tensor]] = {}
        logits = []
        for row in rows:
            at: dict[str, Tensor] = {}
            with torch.no_grad():
                logits.append(self.run(row, at))
            for name, value in at.items():
                places.setdefault(name, []).append(value)
        if self.only_logits:
            return torch.stack(logits)
        hidden = {
            name: torch.stack(each)
            for name, each in places.items()
            if name.partition(".")[0] not in self.hide
        }
        return torch.stack(logits), hidden

    def is_(self, word: str) -> bool:
        return word in self.has

    # -- rewrites of the weights -------------------------------------------------------------------

    def rewrite_weights(self) -> None:
        w, c = self.w, self.c
        generator = torch.Generator().manual_seed(5)

        def draw(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator, dtype=torch.float64)

        heads, dh, d = c.n_heads, c.d_head, c.d_model
        if c.kv_heads != heads:
            for name in ("W_K", "W_V", "b_K", "b_V"):
                if name in w:
                    w[name] = w[name].repeat_interleave(heads // c.kv_heads, dim=1)
        if c.tied:
            w["W_U"] = w["W_E"].T.clone()
        folds = any(map(self.is_, ("fold_bias", "fold", "centred", "rotated")))
        if folds and c.norm == "layer":
            for letter in "QKV":
                b = torch.einsum("ld,lhdk->lhk", w["ln1_bias"], w[f"W_{letter}"])
                w[f"b_{letter}"] = w.get(f"b_{letter}", 0) + b
            w["b_in"] = w.get("b_in", 0) + torch.einsum("ld,ldm->lm", w["ln2_bias"], w["W_in"])
            w["b_U"] = w.get("b_U", 0) + w["ln_final_bias"] @ w["W_U"]
            for name in ("ln1_bias", "ln2_bias", "ln_final_bias"):
                w[name] = torch.zeros_like(w[name])
        if self.is_("fold") or self.is_("centred") or self.is_("rotated"):
            for letter in "QKV":
                w[f"W_{letter}"] = w["ln1_gain"][:, None, :, None] * w[f"W_{letter}"]
            for name in ("W_in", "W_gate"):
                if name in w:
                    w[name] = w["ln2_gain"][:, :, None] * w[name]
            w["W_U"] = w["ln_final_gain"][:, None] * w["W_U"]
            for name in ("ln1_gain", "ln2_gain", "ln_final_gain"):
                w[name] = torch.ones_like(w[name])
        centre = self.is_("centred") or self.is_("centre_writers")
        if centre or (self.is_("rotated") and c.norm == "layer"):
            for name in ("W_E", "W_pos", "W_O", "b_O", "W_out", "b_out"):
                if name in w:
                    w[name] = w[name] - w[name].mean(-1, keepdim=True)
        if self.is_("rotated"):
            q = torch.linalg.qr(draw(d, d))[0]
            if self.is_("permuted_features"):
                q = torch.eye(d, dtype=torch.float64)[torch.randperm(d, generator=generator)]
            for name in ("W_E", "W_pos", "W_O", "b_O", "W_out", "b_out"):
                if name in w:
                    w[name] = w[name] @ q
            for name in ("W_Q", "W_K", "W_V", "W_in", "W_gate", "W_U"):
                if name in w:
                    w[name] = q.T @ w[name]
        if self.is_("fold_value_bias") and "b_V" in w:
            w["b_O"] = w["b_O"] + torch.einsum("lhk,lhkd->ld", w["b_V"], w["W_O"])
            w["b_V"] = torch.zeros_like(w["b_V"])
        if self.is_("drop_key_bias") and "b_K" in w:
            w["b_K"] = torch.zeros_like(w["b_K"])
        if self.is_("permuted_heads"):
            order = torch.tensor([2, 0, 3, 1])[:heads]
            for name in ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V"):
                if name in w:
                    w[name] = w[name][:, order]
        if self.is_("basis_vo"):
            b = draw(c.n_layers, heads, dh, dh) + 2 * torch.eye(dh, dtype=torch.float64)
            w["W_V"] = w["W_V"] @ b
            if "b_V" in w:
                w["b_V"] = torch.einsum("lhk,lhkj->lhj", w["b_V"], b)
            w["W_O"] = torch.linalg.solve(b, w["W_O"])
        if self.is_("basis_qk"):
            b = self._basis(draw)
            inverse = torch.linalg.inv(b).mT
            for letter, turn in (("Q", b), ("K", inverse)):
                w[f"W_{letter}"] = w[f"W_{letter}"] @ turn
                if f"b_{letter}" in w:
                    w[f"b_{letter}"] = torch.einsum("lhk,lhkj->lhj", w[f"b_{letter}"], turn)
        if self.is_("scale_in_q"):
            for name in ("W_Q", "b_Q"):
                if name in w:
                    w[name] = w[name] / math.sqrt(dh)
        if self.is_("permuted_neurons"):
            order = torch.randperm(c.d_mlp, generator=generator)
            for name in ("W_in", "W_gate", "b_in", "b_gate"):
                if name in w:
                    w[name] = w[name][..., order]
            w["W_out"] = w["W_out"][:, order]
        if self.is_("scaled_neurons"):
            factor = torch.rand(c.d_mlp, generator=generator, dtype=torch.float64) + 0.5
            w["W_in"] = w["W_in"] * factor
            w["W_out"] = w["W_out"] / factor[:, None]
        if self.is_("centre_unembed"):
            w["W_U"] = w["W_U"] - w["W_U"].mean(-1, keepdim=True)
            if "b_U" in w:
                w["b_U"] = w["b_U"] - w["b_U"].mean()

    def _basis(self, draw: Callable[..., Tensor]) -> Tensor:
        c = self.c
        if c.positions != "rotary":
            eye = torch.eye(c.d_head, dtype=torch.float64)
            return draw(c.n_layers, c.n_heads, c.d_head, c.d_head) + 2 * eye
        # only what commutes with the rotation: a turn and a stretch of each pair
        b = torch.eye(c.d_head, dtype=torch.float64).repeat(c.n_layers, c.n_heads, 1, 1)
        half = c.rotary_dims // 2
        for i in range(half):
            j, k = (2 * i, 2 * i + 1) if c.rotary_layout == "interleaved" else (i, i + half)
            x, y = draw(2).tolist()
            for r, s, value in ((j, j, 1.5 + x / 4), (k, k, 1.5 + x / 4), (j, k, y), (k, j, -y)):
                b[..., r, s] = value
        return b

    # -- the pass ----------------------------------------------------------------------------------

    def norm(self, x: Tensor, name: str, layer: int | None) -> Tensor:
        w, c, is_ = self.w, self.c, self.is_
        pick = (lambda n: w[n]) if layer is None else (lambda n: w[n][layer])
        gain = pick(f"{name}_gain")
        bias = pick(f"{name}_bias") if f"{name}_bias" in w else None
        if is_("eps6") or is_("eps_none") or is_("eps12"):
            eps = 1e-6 if is_("eps6") else 1e-12 if is_("eps12") else 0.0
        else:
            eps = c.norm_eps
        kind = c.norm
        if is_("rotated") or is_("rms_of_centred"):
            kind = "rms"
        if is_("wrong_norm"):
            kind = "rms" if kind == "layer" else "layer"
        if is_(f"{name}_of_other"):
            other = {"ln1": "ln2", "ln2": "ln1"}[name]
            gain = w[f"{other}_gain"][layer]
            bias = w[f"{other}_bias"][layer] if bias is not None else None
        if is_("norm_torch"):
            if kind == "layer":
                return F.layer_norm(x, x.shape[-1:], gain, bias, eps)
            return F.rms_norm(x, x.shape[-1:], gain, eps)
        mean = x.mean(-1, keepdim=True) if kind == "layer" else torch.zeros_like(x[:, :1])
        if is_("norm_axis"):
            mean = x.mean(0, keepdim=True) if kind == "layer" else torch.zeros_like(x[:1])
        centred = x - mean
        if is_("one_pass"):
            var = (x**2).mean(-1, keepdim=True) - mean**2
        elif is_("norm_axis"):
            var = (centred**2).mean(0, keepdim=True)
        elif is_("unbiased"):
            var = (centred**2).sum(-1, keepdim=True) / (x.shape[-1] - 1)
        elif is_("variance_about_zero"):
            var = (x**2).mean(-1, keepdim=True)
        else:
            var = (centred**2).mean(-1, keepdim=True)
        if is_("rsqrt"):
            y = centred * torch.rsqrt(var + eps)
        elif is_("eps_outside"):
            y = centred / (var.sqrt() + eps)
        elif is_("annotated"):
            y = centred / (x.std(-1, keepdim=True) + eps)
        elif is_("no_root"):
            y = centred / (var + eps)
        else:
            y = centred / torch.sqrt(var + eps)
        if is_("half_norm"):
            y = y.to(torch.bfloat16).to(self.dtype)
        if is_("gain_plus_one"):
            gain = gain + 1
        if not is_("gain_lost"):
            y = y * gain
        if bias is not None and not is_("norm_bias_lost"):
            y = y + bias * (gain if is_("bias_first") else 1)
        return y

    def rotate(self, x: Tensor, which: str) -> Tensor:
        """Rotary positions of [head, pos, d_head]."""
        c, is_ = self.c, self.is_
        if c.positions != "rotary" or is_("no_rotary"):
            return x
        if (is_("rotary_q_only") and which == "k") or (is_("rotary_k_only") and which == "q"):
            return x
        dims = c.rotary_dims
        if is_("rotary_width"):
            dims = c.d_head if dims != c.d_head else 4
        base = c.rotary_base
        if is_("rotary_base"):
            base = 500000.0 if base != 500000.0 else 10000.0
        half = dims // 2
        wide = torch.float64 if self.dtype == torch.float64 else torch.float32
        exponent = torch.arange(half, dtype=wide) * 2 / dims
        if is_("rotary_exponent"):
            exponent = exponent / 2
        frequency = base**-exponent
        positions = torch.arange(x.shape[1], dtype=wide)
        if is_("rotary_from_one") or (is_("rotary_q_from_one") and which == "q"):
            positions = positions + 1
        angle = positions[:, None] * frequency
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        if is_("rotary_backwards"):
            sin = -sin
        layout = c.rotary_layout
        if is_("rotary_layout"):
            layout = "interleaved" if layout == "half" else "half"
        turned = x.clone()
        if layout == "half":
            a, b = x[..., :half], x[..., half:dims]
            turned[..., :half] = a * cos - b * sin
            turned[..., half:dims] = (
                (b * cos + a * sin) if not is_("rotary_sign") else (b * cos - a * sin)
            )
        else:
            a, b = x[..., 0:dims:2], x[..., 1:dims:2]
            turned[..., 0:dims:2] = a * cos - b * sin
            turned[..., 1:dims:2] = b * cos + a * sin
        return turned

    def project(self, x: Tensor, letter: str, layer: int) -> Tensor:
        c, is_ = self.c, self.is_
        source = letter
        if is_("qkv_as_kqv"):
            source = {"Q": "K", "K": "Q", "V": "V"}[letter]
        if is_("qkv_as_qvk"):
            source = {"Q": "Q", "K": "V", "V": "K"}[letter]
        weight = self.w[f"W_{source}"][layer]
        bias = self.w[f"b_{source}"][layer] if f"b_{source}" in self.w else None
        if is_("interleaved"):
            every = torch.stack([self.w[f"W_{x}"][layer] for x in "QKV"], dim=1)  # head 3 d k
            flat = every.permute(2, 0, 1, 3).reshape(c.d_model, -1)
            weight = flat.reshape(c.d_model, 3, c.n_heads, c.d_head)[:, "QKV".index(letter)]
            weight = weight.permute(1, 0, 2)
            if bias is not None:
                each = torch.stack([self.w[f"b_{x}"][layer] for x in "QKV"], dim=1).reshape(-1)
                bias = each.reshape(3, c.n_heads, c.d_head)["QKV".index(letter)]
        if is_(f"transposed_{letter}"):
            square = weight.permute(1, 0, 2).reshape(c.d_model, -1).T
            weight = square.reshape(c.d_model, c.n_heads, c.d_head).permute(1, 0, 2)
        if is_("groups_tiled") and letter in "KV":
            share = c.n_heads // c.kv_heads
            weight = weight[::share].repeat(share, 1, 1)
        if is_("einsum"):
            out = torch.einsum("td,hdk->htk", x, weight)
        else:
            wide = x @ weight.permute(1, 0, 2).reshape(c.d_model, -1)
            if bias is not None and is_("fused_bias"):
                wide = wide + bias.reshape(-1)
            if is_("head_stride"):
                wide = wide.reshape(len(x), c.d_head, c.n_heads).permute(2, 0, 1)
            elif is_("view_heads"):
                wide = wide.reshape(c.n_heads, len(x), c.d_head)
            else:
                wide = wide.reshape(len(x), c.n_heads, c.d_head).permute(1, 0, 2)
            out = wide
        if bias is not None and not is_("fused_bias") and not is_(f"no_b_{letter}"):
            if is_(f"double_b_{letter}"):
                out = out + bias[:, None]
            out = out + bias[:, None]
        return out

    def attention(self, x: Tensor, layer: int, at: dict[str, Tensor], raw: Tensor) -> Tensor:
        c, is_, w = self.c, self.is_, self.w
        reads = raw if is_("unnormalised") else x
        q, k = self.project(reads, "Q", layer), self.project(reads, "K", layer)
        v = self.project(raw if is_("v_unnormalised") else reads, "V", layer)
        shown_q, shown_k = q, k
        q, k = self.rotate(q, "q"), self.rotate(k, "k")
        if is_("rotary_twice"):
            q, k = self.rotate(q, "q"), self.rotate(k, "k")
        if is_("stale_key"):
            k = k.clone()
            k[:, -1] = k[:, -2]
        if is_("bad_head") and layer == 1:
            k = k.clone()
            k[2] = k[1]
        if not is_("show_before_rotary"):
            shown_q, shown_k = q, k
        at[f"q.{layer}"], at[f"k.{layer}"], at[f"v.{layer}"] = shown_q, shown_k, v
        if is_("show_groups"):
            share = c.n_heads // c.kv_heads
            at[f"k.{layer}"], at[f"v.{layer}"] = shown_k[::share], v[::share]
        n = len(x)
        scale = 1 / math.sqrt(c.d_head)
        if is_("no_scale") or is_("scale_in_q"):
            scale = 1.0
        if is_("scale_d_head"):
            scale = 1 / c.d_head
        if is_("scale_d_model"):
            scale = 1 / math.sqrt(c.d_model)
        if is_("scale_first"):
            scores = (q * scale**0.5) @ (k * scale**0.5).mT
        elif is_("keys_next_head"):
            scores = q @ k.roll(1, 0).mT * scale
        elif is_("scores_transposed"):
            scores = k @ q.mT * scale
        else:
            scores = q @ k.mT * scale
        if is_("soft_cap"):
            scores = 50 * torch.tanh(scores / 50)
        if is_("half_scores"):
            scores = scores.to(torch.float16).to(self.dtype)
        at[f"scores.{layer}"] = scores
        if is_("show_unscaled"):
            at[f"scores.{layer}"] = scores / scale
        if is_("show_shifted"):
            at[f"scores.{layer}"] = scores - scores.max(-1, keepdim=True).values
        visible = torch.ones(n, n, dtype=torch.bool).tril()
        if is_("mask_one_more"):
            visible = torch.ones(n, n, dtype=torch.bool).tril(1)
        if is_("mask_one_less"):
            visible = torch.ones(n, n, dtype=torch.bool).tril(-1)
            visible[0, 0] = True
        if is_("no_mask") or is_("mask_after"):
            visible = torch.ones(n, n, dtype=torch.bool)
        if is_("mask_reversed"):
            visible = visible.T
        if is_("window"):
            visible = visible.triu(-4)
        if is_("mask_small"):
            masked = torch.where(visible, scores, scores - 10)
        elif is_("mask_zero"):
            masked = torch.where(visible, scores, torch.zeros_like(scores))
        else:
            masked = scores.masked_fill(~visible, -math.inf)
        if is_("sdpa"):
            z = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
            pattern = None
        elif is_("flash"):
            z, pattern = self.flash(scores, v), None
        else:
            if is_("softmax_queries"):
                pattern = masked.softmax(-2)
            elif is_("softmax_heads"):
                pattern = scores.softmax(0) * visible
            elif is_("softmax_one"):
                e = torch.exp(masked)
                pattern = e / (1 + e.sum(-1, keepdim=True))
            elif is_("softmax_log"):
                pattern = torch.exp(masked - torch.logsumexp(masked, -1, keepdim=True))
            elif is_("softmax_plain"):
                e = torch.exp(masked)
                pattern = e / e.sum(-1, keepdim=True)
            elif is_("softmax_float"):
                pattern = masked.float().softmax(-1).to(self.dtype)
            else:
                pattern = masked.softmax(-1)
            if is_("mask_after"):
                pattern = pattern * torch.ones(n, n).tril().to(self.dtype)
            if is_("half_softmax"):
                pattern = pattern.to(torch.bfloat16).to(self.dtype)
            values = v
            if is_("values_next_head"):
                values = v.roll(1, 0)
            if is_("mixes_keys"):
                values = k
            z = (pattern.mT if is_("pattern_transposed") else pattern) @ values
            if is_("dropout_scale"):
                z = z / 0.9
        if pattern is not None:
            at[f"pattern.{layer}"] = pattern
        else:
            del at[f"scores.{layer}"]
        at[f"z.{layer}"] = z
        out_weight = w["W_O"][layer]
        if is_("heads_reversed"):
            out_weight = out_weight.flip(0)
        if is_("transposed_O"):
            out_weight = out_weight.reshape(c.d_model, -1).T.reshape(out_weight.shape)
        if is_("head_out"):
            at[f"head_out.{layer}"] = torch.einsum("hpk,hkd->hpd", z, out_weight)
        if is_("merge_stride"):
            flat = z.permute(1, 2, 0).reshape(n, -1)
        elif is_("merge_view"):
            flat = z.reshape(n, -1)
        else:
            flat = z.permute(1, 0, 2).reshape(n, -1)
        if is_("head_sum"):
            out = sum(z[h] @ out_weight[h] for h in range(c.n_heads))
        else:
            out = flat @ out_weight.reshape(-1, c.d_model)
        if is_("head_mean"):
            out = out / c.n_heads
        if "b_O" in w and not is_("no_b_O"):
            out = out + w["b_O"][layer] * (2 if is_("double_b_O") else 1)
        return out

    def flash(self, scores: Tensor, v: Tensor) -> Tensor:
        heads, n, _ = scores.shape
        highest = torch.full((heads, n, 1), -math.inf, dtype=self.dtype)
        total, z = torch.zeros_like(highest), torch.zeros_like(v)
        for start in range(0, n, 4):
            block = scores[..., start : start + 4]
            seen = torch.ones(n, n, dtype=torch.bool).tril()[:, start : start + 4]
            block = block.masked_fill(~seen, -math.inf)
            new = torch.maximum(highest, block.max(-1, keepdim=True).values)
            old, weights = torch.exp(highest - new), torch.exp(block - new)
            total = total * old + weights.sum(-1, keepdim=True)
            z = z * old + weights @ v[:, start : start + 4]
            highest = new
        return z / total

    def act(self, x: Tensor) -> Tensor:
        name = self.c.activation
        if self.is_("wrong_gelu"):
            name = "gelu" if name != "gelu" else "gelu_tanh"
        if self.is_("act_relu"):
            name = "relu"
        if self.is_("quick_gelu"):
            return x * torch.sigmoid(1.702 * x)
        if self.is_("no_act"):
            return x
        if self.is_("coarse_gelu"):
            return 0.5 * x * (1 + torch.tanh(0.797885 * (x + 0.0447 * x**3)))
        return {
            "gelu": lambda: F.gelu(x),
            "gelu_tanh": lambda: F.gelu(x, approximate="tanh"),
            "silu": lambda: x / (1 + torch.exp(-x)) if self.is_("silu_plain") else F.silu(x),
            "relu": lambda: F.relu(x),
        }[name]()

    def mlp(self, x: Tensor, layer: int, at: dict[str, Tensor]) -> Tensor:
        w, c, is_ = self.w, self.c, self.is_
        w_in = w["W_in"][layer]
        if is_("weights_of_layer_0"):
            w_in = w["W_in"][0]

        def through(name: str, weight: Tensor) -> Tensor:
            y = x @ weight
            if f"b_{name}" in w and not is_(f"no_b_{name}"):
                y = y + w[f"b_{name}"][layer] * (2 if is_(f"double_b_{name}") else 1)
            return y

        if c.gated:
            gate, up = through("gate", w["W_gate"][layer]), through("in", w_in)
            if is_("gate_swapped"):
                gate, up = up, gate
            pre = gate
            if is_("no_up"):
                post = self.act(gate)
            elif is_("act_on_up"):
                post = gate * self.act(up)
            elif is_("gate_added"):
                post = self.act(gate) + up
            else:
                post = self.act(gate) * up
        else:
            pre = through("in", w_in)
            post = self.act(pre)
        if is_("half_mlp"):
            post = post.to(torch.bfloat16).to(self.dtype)
        at[f"mlp_pre.{layer}"], at[f"mlp_post.{layer}"] = pre, post
        out = post @ w["W_out"][layer]
        if "b_out" in w and not is_("no_b_out"):
            out = out + w["b_out"][layer] * (2 if is_("double_b_out") else 1)
        return out

    def run(self, tokens: Tensor, at: dict[str, Tensor]) -> Tensor:
        w, c, is_ = self.w, self.c, self.is_
        n = len(tokens)
        x = w["W_E"][tokens]
        if is_("one_hot"):
            x = F.one_hot(tokens, c.d_vocab).to(self.dtype) @ w["W_E"]
        if is_("embed_scaled"):
            x = x * math.sqrt(c.d_model)
        if c.positions == "learned" and not is_("no_positions"):
            pos = w["W_pos"][1 : n + 1] if is_("positions_off") else w["W_pos"][:n]
            x = x + pos * (2 if is_("positions_twice") else 1)
        for layer in range(c.n_layers):
            if is_("layer_skipped") and layer == 1:
                at[f"resid_pre.{layer}"] = x
                continue
            at[f"resid_pre.{layer}"] = x
            y = x if is_("no_ln1") else self.norm(x, "ln1", layer)
            at[f"ln1.{layer}"] = y
            out = self.attention(y, layer, at, x)
            attn = at[f"attn_out.{layer}"] = out
            mid = x + out
            if is_("no_residual"):
                mid = out
            if is_("post_residual"):
                mid = y + out
            if is_("double_residual"):
                mid = 2 * x + out
            at[f"resid_mid.{layer}"] = mid
            parallel = c.parallel != is_("wrong_block")
            reads = x if parallel else mid
            y = reads if is_("no_ln2") else self.norm(reads, "ln2", layer)
            at[f"ln2.{layer}"] = y
            out = self.mlp(y, layer, at)
            at[f"mlp_out.{layer}"] = out
            if is_("attention_lost"):
                mid = x
            if is_("mlp_no_residual"):
                mid = torch.zeros_like(mid)
            x = (x + out) + attn if is_("other_order") else mid + out
            if is_("half_stream"):
                x = x.to(torch.bfloat16).to(self.dtype)
            if is_("single_stream"):
                x = x.float().to(self.dtype)
            at[f"resid_post.{layer}"] = x
        y = x if is_("no_final_norm") else self.norm(x, "ln_final", None)
        at["ln_final"] = y
        unembed = w["W_U"]
        if is_("tied") and not c.tied:
            unembed = w["W_E"].T
        logits = y @ unembed
        if "b_U" in w and not is_("no_b_U"):
            logits = logits + w["b_U"]
        if is_("logits_scaled"):
            logits = logits / math.sqrt(c.d_model)
        if is_("logit_cap"):
            logits = 30 * torch.tanh(logits / 30)
        if is_("logits_rolled"):
            logits = logits.roll(1, 0)
        at["logits"] = logits
        return logits
