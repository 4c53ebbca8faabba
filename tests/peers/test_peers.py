"""Other people's transformers, audited: correct ones pass, and what they are known for is named.

Needs the extra `audit` (`make test-peers`); skipped without it.
"""

import warnings
from types import MethodType

import numpy as np
import pytest
import torch

import otimes as ot
from numeric.audit.importers import imported
from tests.numeric.audit.unchanged import unchanged

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")

TOKENS = torch.randint(0, 61, (2, 18), generator=torch.Generator().manual_seed(0))
SIZES = {"vocab_size": 61, "bos_token_id": None, "eos_token_id": None}


def gpt2(**options):
    sizes = {"n_positions": 40, "n_embd": 32, "n_layer": 2, "n_head": 4}
    config = transformers.GPT2Config(**{**sizes, **SIZES, **options})
    return transformers.GPT2LMHeadModel(config)


def neox(**options):
    sizes = {"max_position_embeddings": 40, "hidden_size": 32, "num_hidden_layers": 2}
    sizes |= {"num_attention_heads": 4, "intermediate_size": 48}
    config = transformers.GPTNeoXConfig(**{**sizes, **SIZES, **options})
    return transformers.GPTNeoXForCausalLM(config)


def llama(**options):
    sizes = {"max_position_embeddings": 40, "hidden_size": 32, "num_hidden_layers": 2}
    sizes |= {"num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 48}
    config = transformers.LlamaConfig(**{**sizes, **SIZES, **options})
    return transformers.LlamaForCausalLM(config)


KINDS = {"gpt2": gpt2, "neox": neox, "llama": llama}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("kind", KINDS)
def test_hugging_face_passes(kind: str, attention: str, dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    module = KINDS[kind](attn_implementation=attention).to(dtype)
    report = ot.audit(module, TOKENS)
    assert report.passed, str(report)


@pytest.mark.parametrize("kind", ["neox", "llama"])
def test_float32_inside_float64_code_is_named_as_precision(kind: str) -> None:
    report = ot.audit(KINDS[kind](attn_implementation="eager").double(), TOKENS)
    assert report.passed
    assert any("computed in float32" in note for note in report.notes)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_read_as_they_are_meant(kind: str) -> None:
    """The oracle is the module itself: its logits in float64, from our reference pass."""
    module = KINDS[kind]().double().eval()
    model = imported(module)
    with torch.no_grad():
        theirs = module(TOKENS).logits
    for row, logits in zip(TOKENS, theirs, strict=True):
        ours = model.forward(row.tolist())["logits"]
        assert np.abs(ours - logits.numpy()).max() < 1e-5  # float32 inside their float64


LIVE = {**KINDS, "lens": lambda: lens(torch.float32, **LENSES["gpt2"])}


@pytest.mark.parametrize("kind", LIVE)
def test_a_module_comes_back_as_it_was(kind: str) -> None:
    module = LIVE[kind]()
    with unchanged(module):
        assert ot.audit(module, TOKENS[:1]).passed


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("kind", LIVE)
def test_also_after_an_interrupt(kind: str, error: type[BaseException]) -> None:
    module = LIVE[kind]()

    def stop(*_: object) -> None:
        raise error

    list(module.modules())[-1].register_forward_hook(stop)
    with pytest.raises(error), unchanged(module):
        ot.audit(module, TOKENS)


def test_a_body_without_a_head_is_audited_up_to_its_end() -> None:
    for kind, body in (("gpt2", "transformer"), ("neox", "gpt_neox"), ("llama", "model")):
        report = ot.audit(getattr(KINDS[kind](), body), TOKENS[:1])
        assert report.passed, str(report)
        assert [*report.ratios][-1] == "ln_final"


def test_a_bug_in_a_live_module_is_found_though_its_parameters_hide_it() -> None:
    def without_bias(self: torch.nn.Module, rows: torch.Tensor) -> torch.Tensor:
        return rows @ self.weight  # which is what it gives as long as the bias is zero

    module = gpt2()
    for block in module.transformer.h:
        block.attn.c_proj.forward = MethodType(without_bias, block.attn.c_proj)
    assert ot.audit(module, TOKENS, generic=False).passed
    report = ot.audit(module, TOKENS)
    assert report.first_failure.place == "attn_out.0"
    assert "without b_O" in report.first_failure.diagnosis


# -- TransformerLens -------------------------------------------------------------------------------


def lens(dtype: torch.dtype, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lens = pytest.importorskip("transformer_lens")
        config = lens.HookedTransformerConfig(
            n_layers=2, d_model=32, n_ctx=40, d_head=8, n_heads=4, d_vocab=61, dtype=dtype,
            device="cpu", **{"d_mlp": 48, **options},
        )  # fmt: skip
        return lens.HookedTransformer(config)


LENSES = {
    "gpt2": {"act_fn": "gelu_new", "normalization_type": "LN"},
    "llama": {
        "act_fn": "silu",
        "normalization_type": "RMS",
        "positional_embedding_type": "rotary",
        "rotary_dim": 8,
        "gated_mlp": True,
        "n_key_value_heads": 2,
    },
    "neox": {
        "act_fn": "gelu",
        "normalization_type": "LN",
        "positional_embedding_type": "rotary",
        "rotary_dim": 4,
        "parallel_attn_mlp": True,
    },
    "attention only": {"attn_only": True, "normalization_type": None},
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("kind", LENSES)
def test_transformer_lens_passes(kind: str, dtype: torch.dtype) -> None:
    report = ot.audit(lens(dtype, **LENSES[kind]), TOKENS)
    assert report.passed, str(report)


def processed(dtype: torch.dtype, module, **options: bool):
    from transformer_lens.pretrained.weight_conversions import convert_gpt2_weights

    hooked = lens(dtype, d_mlp=128, **LENSES["gpt2"])
    tensors = convert_gpt2_weights(module, hooked.cfg)
    every = ("fold_ln", "center_writing_weights", "center_unembed", "fold_value_biases")
    hooked.load_and_process_state_dict(dict(tensors), **{o: options.get(o, True) for o in every})
    return hooked


def test_processed_weights_are_another_gauge_in_float32() -> None:
    module = gpt2()
    report = ot.audit(processed(torch.float32, module), TOKENS, weights=module)
    assert report.passed, str(report)
    said = " ".join(str(gauge) for gauge in report.gauges)
    assert "centred" in said
    assert "all logits of a position are moved" in said


def test_processing_in_float64_rounds_weights_to_float32_and_that_is_found() -> None:
    module = gpt2().double()
    report = ot.audit(processed(torch.float64, module), TOKENS, weights=module)
    assert not report.passed
    assert report.first_failure.kind == "precision"
    assert "rounded to float32" in report.first_failure.diagnosis
