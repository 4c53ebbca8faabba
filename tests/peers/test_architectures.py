"""The decoders of `transformers`: logits of its own code, audits of it, and planted faults."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import otimes as ot
from tests.peers.architectures import DECODERS, TOKENS, decoder

pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")

WITHOUT_SDPA = (
    *(
        "gemma 2",
        "vaultgemma",
        "gpt-oss",
        "gpt-j",
        "gpt-neo",
        "bloom",
        "bloom, six heads",
        "mpt",
        "mpt, six heads",
    ),
)
# In transformers 5.23 Falcon's eager attention adds ALiBi twice: once in the mask.
WRONG_EAGER = ("falcon, alibi",)
RIGHT = [
    (name, attention)
    for name in DECODERS
    for attention in ("eager", "sdpa")
    if not (name in WITHOUT_SDPA and attention == "sdpa")
    and not (name in WRONG_EAGER and attention == "eager")
]


def usual(name: str) -> str:
    return "eager" if name in WITHOUT_SDPA else "sdpa"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", DECODERS)
def test_logits_are_those_of_the_library(name: str, dtype: torch.dtype) -> None:
    module = decoder(name, attn_implementation=usual(name)).to(dtype)
    model = ot.load_model(module)
    with torch.no_grad():
        theirs = module(TOKENS).logits.double().numpy()
    ours = np.stack([model.forward(row)["logits"] for row in TOKENS.tolist()])
    # Norms and angles are computed in float32, in about 60 operations on numbers of size 1.
    assert np.abs(ours - theirs).max() < 60 * 2.0**-24 * max(np.abs(theirs).max(), 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("name", "attention"), RIGHT)
def test_the_library_passes_the_audit(name: str, attention: str, dtype: torch.dtype) -> None:
    module = decoder(name, attn_implementation=attention).to(dtype)
    report = ot.audit(module, TOKENS)
    assert report.passed, str(report)


def test_a_scale_that_is_left_out_is_named() -> None:
    module = decoder("granite", attn_implementation="eager")
    for layer in module.model.layers:
        layer.residual_multiplier = 1.0
    report = ot.audit(module, TOKENS)
    assert report.first_failure.place == "resid_mid.0"
    assert "is added without its scale, 0.22" in report.first_failure.diagnosis


def test_alibi_twice_is_found() -> None:
    report = ot.audit(decoder("falcon, alibi", attn_implementation="eager"), TOKENS)
    assert report.first_failure.place == "pattern.0"


# What the reference is told wrongly, and the first hook point at which the library then differs.
FAULTS = {
    "gemma 2, another cap": ("gemma 2", {"score_cap": 2.5}, "pattern.0"),
    "gemma 2, no cap of logits": ("gemma 2", {"logit_cap": 0.0}, "logits"),
    "gemma 2, a window longer by one": ("gemma 2", {"windows": (6, 0, 6)}, "pattern.0"),
    "gemma 2, windows in the other layers": ("gemma 2", {"windows": (0, 5, 0)}, "pattern.0"),
    "gemma 2, the scale of its heads": ("gemma 2", {"attn_scale": 0.0}, "pattern.0"),
    "gemma 3, one rotary base": ("gemma 3", {"local_base": 1e6}, "pattern.0"),
    "gemma, gains as they are stored": ("gemma", {"gain_offset": False}, "ln1.0"),
    "gemma, embeddings not scaled": ("gemma", {"embed_scale": 1.0}, "resid_pre.0"),
    "granite, what blocks write unscaled": ("granite", {"write_scale": 1.0}, "resid_mid.0"),
    "granite, logits unscaled": ("granite", {"logit_scale": 1.0}, "logits"),
    "smollm 3, positions in the wrong layers": (
        "smollm 3",
        {"unrotated_layers": (0,)},
        "pattern.0",
    ),
    "nemotron, gains as they are stored": ("nemotron", {"gain_offset": False}, "ln1.0"),
    "bloom, other slopes": ("bloom", {"alibi_slopes": (0.5, 0.25, 0.125, 0.0625)}, "pattern.0"),
    "olmo 2, each head by itself": ("olmo 2", {"qk_norm": "head"}, "q.0"),
    "qwen 3, heads together": ("qwen 3", {"qk_norm": "all"}, "q.0"),
    "deepseek 3, another scale": ("deepseek 3, yarn", {"attn_scale": 0.0}, "pattern.0"),
    "deepseek 3, no groups": ("deepseek 3", {"router_groups": ()}, "mlp_out.1"),
    "ernie, no bias of the choice": (
        "ernie 4.5, experts",
        {"biases": ()},
        "mlp_out.1",
    ),
    "gpt-neo, divided scores": ("gpt-neo", {"attn_scale": 0.0}, "pattern.0"),
    "mixtral, one expert": ("mixtral", {"experts_per_token": 1}, "mlp_out.0"),
    "qwen 2, chosen first": ("qwen 2, experts", {"router": "chosen"}, "mlp_out.0"),
    "gpt-oss, another limit": ("gpt-oss", {"gate_limit": 0.01}, "mlp_out.0"),
    "falcon, in a row": ("falcon, two norms", {"parallel": False}, "resid_mid.0"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_where_it_is(fault: str) -> None:
    name, changes, place = FAULTS[fault]
    module = decoder(name, attn_implementation="eager")
    model = ot.load_model(module)
    wrong = model.changed({}, replace(model.config, **changes))
    report = ot.audit(module, TOKENS, weights=wrong, generic=False)
    assert not report.passed
    assert report.first_failure.place == place


REFUSED = {
    "qk_layernorm": ("stablelm", {"qk_layernorm": True}),
    "apply_residual_connection_post_layernorm": (
        "bloom",
        {"apply_residual_connection_post_layernorm": True},
    ),
    "rope_type": ("qwen 3", {"rope_parameters": {"rope_type": "proportional", "rope_theta": 9.0}}),
    "alpha and mrope_section in its rotary parameters": (
        "qwen 3",
        {"rope_parameters": {"rope_theta": 9.0, "alpha": 3.0, "mrope_section": [2, 1, 1]}},
    ),
    "qk_layernorm=True": ("persimmon", {"qk_layernorm": True}),
    "use_bias=True": ("ernie 4.5, experts", {"use_bias": True}),
    "multi_query=False": ("bigcode", {"multi_query": False}),
    "word_embed_proj_dim": ("opt", {"word_embed_proj_dim": 18}),
    "do_layer_norm_before": ("opt", {"do_layer_norm_before": False}),
    "clip_qkv=2.0": ("olmo", {"clip_qkv": 2.0}),
    "clip_qkv": ("mpt", {"attn_config": {"clip_qkv": 1.0}}),
    "use_bidirectional_attention": ("gemma 3", {"use_bidirectional_attention": True}),
}


@pytest.mark.parametrize("setting", REFUSED)
def test_a_setting_that_is_not_supported_is_named(setting: str) -> None:
    name, options = REFUSED[setting]
    with pytest.raises(ot.OtimesError, match=setting):
        ot.load_model(decoder(name, **options))


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("HunYuanDenseV1", "normalised after they are rotated: the reference does not have this"),
        ("Apertus", "whose activation, xIELU, has parameters of its own"),
        ("Phimoe", "whose router .sparsemixer. gives each chosen expert a softmax of its own"),
    ],
)
def test_an_architecture_that_the_reference_lacks_is_refused_with_the_reason(
    kind: str, says: str
) -> None:
    import transformers

    settings = {"vocab_size": 61, "pad_token_id": None, "hidden_size": 32, "num_hidden_layers": 1}
    settings |= {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
    settings |= {"intermediate_size": 16}
    config = getattr(transformers, f"{kind}Config")(**settings)
    module = getattr(transformers, f"{kind}ForCausalLM")(config)
    with pytest.raises(ot.OtimesError, match=says):
        ot.load_model(module)


def test_a_checkpoint_is_read_as_the_module(tmp_path) -> None:
    for name in (
        "gemma 3",
        "deepseek 3",
        "glm 4.5",
        "granite, experts",
        "minimax m2",
        "ernie 4.5, experts",
        "exaone, experts",
        "gpt-neo",
        "mixtral",
        "qwen 2, experts",
        "gpt-oss",
        "falcon, two norms",
        "mpt",
    ):
        module = decoder(name)
        module.save_pretrained(tmp_path / name)
        ours, theirs = ot.load_model(tmp_path / name), ot.load_model(module)
        assert ours.config == theirs.config
        row = TOKENS[0].tolist()
        assert np.array_equal(ours.forward(row)["logits"], theirs.forward(row)["logits"])
        again = ot.load_model(ours.save(tmp_path / f"{name} of ours"))
        # The same weights in another layout in memory: BLAS may sum in another order.
        difference = again.forward(row)["logits"] - theirs.forward(row)["logits"]
        assert np.abs(difference).max() < 1e-13


@pytest.mark.parametrize("kind", ["Gemma3", "Mistral3"])
def test_the_language_model_of_one_that_reads_images(kind: str, tmp_path) -> None:
    import transformers

    name = {"Gemma3": "gemma 3", "Mistral3": "ministral 3"}[kind]
    text = decoder(name)
    vision = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    vision |= {"num_attention_heads": 2, "image_size": 28, "patch_size": 14}
    settings = {"text_config": text.config.to_dict(), "vision_config": vision}
    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(**settings)
    module = getattr(transformers, f"{kind}ForConditionalGeneration")(config).eval()
    module.model.language_model.load_state_dict(text.model.state_dict())
    module.lm_head.weight = text.lm_head.weight
    module.save_pretrained(tmp_path)
    row = TOKENS[:1]
    with torch.no_grad():
        theirs = module(row).logits[0].double().numpy()
    ours = ot.load_model(tmp_path).forward(row[0].tolist())["logits"]
    assert np.abs(ours - theirs).max() < 60 * 2.0**-24 * max(np.abs(theirs).max(), 1)
    with pytest.raises(ot.OtimesError, match="reads text and images: give its language model"):
        ot.load_model(module)
