"""GPT-1 of Hugging Face, whose norms come after the sums: a callable, its weights by our names."""

from functools import partial

import numpy as np
import pytest
import torch

import otimes as ot
from tests.peers.makers import SIZES, TOKENS

pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")

LAYERS, HEADS, D = 3, 4, 32


def gpt1(dtype: torch.dtype) -> torch.nn.Module:
    import transformers

    sizes = {"n_positions": 40, "n_embd": D, "n_layer": LAYERS, "n_head": HEADS}
    config = transformers.OpenAIGPTConfig(**{**sizes, **SIZES})
    module = transformers.OpenAIGPTLMHeadModel(config)
    draw = torch.Generator().manual_seed(0)
    for parameter in module.parameters():
        parameter.data.add_(torch.randn(parameter.shape, generator=draw), alpha=0.2)
    return module.to(dtype).eval()


def by_our_names(module: torch.nn.Module) -> dict[str, np.ndarray]:
    t = {name: each.detach().numpy() for name, each in module.transformer.state_dict().items()}

    def all_of(part: str) -> np.ndarray:
        return np.stack([t[f"h.{layer}.{part}"] for layer in range(LAYERS)])

    fused = all_of("attn.c_attn.weight").reshape(LAYERS, D, 3, HEADS, -1)
    biases = all_of("attn.c_attn.bias").reshape(LAYERS, 3, HEADS, -1)
    weights = {"W_E": t["tokens_embed.weight"], "W_pos": t["positions_embed.weight"]}
    for number, letter in enumerate("QKV"):
        weights[f"W_{letter}"] = fused[:, :, number].swapaxes(1, 2)
        weights[f"b_{letter}"] = biases[:, number]
    weights["W_O"] = all_of("attn.c_proj.weight").reshape(LAYERS, HEADS, -1, D)
    weights["b_O"] = all_of("attn.c_proj.bias")
    for ours, theirs in (("in", "c_fc"), ("out", "c_proj")):
        weights[f"W_{ours}"] = all_of(f"mlp.{theirs}.weight")
        weights[f"b_{ours}"] = all_of(f"mlp.{theirs}.bias")
    for norm in ("1", "2"):
        weights[f"ln{norm}_gain"] = all_of(f"ln_{norm}.weight")
        weights[f"ln{norm}_bias"] = all_of(f"ln_{norm}.bias")
    return weights


def shown(module: torch.nn.Module, tokens: torch.Tensor) -> tuple[torch.Tensor, dict]:
    places: dict[str, torch.Tensor] = {}

    def after(name: str, _: object, __: object, value: torch.Tensor) -> None:
        places[name] = value

    def before(name: str, _: object, given: tuple[torch.Tensor, ...]) -> None:
        places[name] = given[0]

    hooks = []
    for layer, block in enumerate(module.transformer.h):
        for place, part in {
            "attn_out": block.attn.c_proj, "ln1": block.ln_1, "mlp_pre": block.mlp.c_fc,
            "mlp_out": block.mlp.c_proj, "ln2": block.ln_2,
        }.items():  # fmt: skip
            hooks.append(part.register_forward_hook(partial(after, f"{place}.{layer}")))
        for place, part in {
            "resid_pre": block, "resid_mid": block.ln_1, "resid_post": block.ln_2,
            "mlp_post": block.mlp.c_proj,
        }.items():  # fmt: skip
            hooks.append(part.register_forward_pre_hook(partial(before, f"{place}.{layer}")))
    with torch.no_grad():
        logits = module(tokens).logits
    for hook in hooks:
        hook.remove()
    return logits, places


SAID = {"activation": "gelu_tanh", "norm_eps": 1e-5}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_gpt1_passes_as_post_norm_only(dtype: torch.dtype) -> None:
    module = gpt1(dtype)
    weights = by_our_names(module)
    call = partial(shown, module)
    report = ot.audit(call, TOKENS, weights=weights, config={**SAID, "norm_order": "post"})
    assert report.passed, str(report)
    assert len(report.ratios) == 9 * LAYERS + 1
    before = ot.audit(call, TOKENS, weights=weights, config=SAID)
    assert before.first_failure.place == "ln1.0"
    assert "post-norm for pre-norm" in before.first_failure.diagnosis


def test_its_logits_alone_tell_the_order_of_norms() -> None:
    module = gpt1(torch.float64)
    weights = by_our_names(module)

    def logits(tokens: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return module(tokens).logits

    assert ot.audit(logits, TOKENS, weights=weights, config={**SAID, "norm_order": "post"}).passed
    report = ot.audit(logits, TOKENS, weights=weights, config=SAID)
    assert "post-norm for pre-norm" in report.first_failure.diagnosis
