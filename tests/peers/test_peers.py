"""Other people's transformers, audited: correct ones pass, and what they are known for is named.

Needs the extra `audit` (`make test-peers`); skipped without it.
"""

from types import MethodType

import numpy as np
import pytest
import torch

import otimes as ot
from otimes.numeric.audit.capture.modules import generic
from otimes.numeric.importers.transformer_lens import STILL
from otimes.numeric.load import load_model
from tests.numeric.audit.unchanged import unchanged
from tests.peers.makers import KINDS, LENSES, TOKENS, gpt2, lens

pytest.importorskip("transformers")
pytest.importorskip("transformer_lens")
pytestmark = pytest.mark.filterwarnings("ignore")


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
    model = load_model(module)
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
    """What a module raises is said in a sentence; an interrupt goes through."""
    module = LIVE[kind]()

    def stop(*_: object) -> None:
        raise error

    list(module.modules())[-1].register_forward_hook(stop)
    said = ot.OtimesError if error is RuntimeError else error
    with pytest.raises(said) as raised, unchanged(module):
        ot.audit(module, TOKENS)
    if error is RuntimeError:
        assert "an array of shape (2, 18) (torch.int64) and raised Run" in str(raised.value)
        assert isinstance(raised.value.__cause__, RuntimeError)


@pytest.mark.parametrize("wrapped", [torch.nn.DataParallel, torch.compile], ids=["data", "compile"])
def test_what_a_wrapper_runs_is_audited(wrapped) -> None:
    weights = wrapped(gpt2())
    report = ot.audit(weights, TOKENS[:1])
    assert report.passed, str(report)
    assert any("was audited by itself: give weights=" in note for note in report.notes)
    report = ot.audit(gpt2(), TOKENS[:1], weights=weights)
    assert report.first_failure.place == "resid_pre.0"


class Logits(torch.nn.Module):
    """A module around one of the library, that nobody knows and that shows logits only."""

    def __init__(self, inner: torch.nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.inner(tokens).logits


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_logits_alone_are_judged_in_float64(kind: str, dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    module = KINDS[kind]().to(dtype)
    with unchanged(module):
        report = ot.audit(Logits(module), TOKENS[:1], weights=module)
    assert report.passed, str(report)
    rotary = kind in ("llama", "mistral", "qwen2")
    rounded = dtype == torch.bfloat16 and rotary  # which holds its frequencies in it
    assert any("precision" in note for note in report.notes) == rounded
    assert any("those of a copy in float64" in note for note in report.notes) != rounded


def test_a_bug_that_only_float64_shows_is_found_in_logits_alone() -> None:
    torch.manual_seed(1)
    module, tokens = KINDS["llama"](), TOKENS[:1, :10]
    module.model.norm.variance_epsilon = 1e-8
    with torch.no_grad():
        module.model.embed_tokens.weight.mul_(100)
        assert ot.audit(lambda _: module(tokens).logits, tokens, weights=module).passed
    report = ot.audit(Logits(module), tokens, weights=module)
    assert "ε = 1e-08 and not 1e-06 (in ln_final only)" in report.first_failure.diagnosis


def quantised(module: torch.nn.Module) -> torch.nn.Module:
    return torch.ao.quantization.quantize_dynamic(module, {torch.nn.Linear}, torch.qint8)


def in_float8(module: torch.nn.Module) -> torch.nn.Module:
    weight = module.model.layers[0].mlp.gate_proj.weight
    weight.data = weight.data.to(torch.float8_e4m3fn)
    return module


def in_integers(module: torch.nn.Module) -> torch.nn.Module:
    part = module.model.layers[0].mlp.gate_proj
    part.weight = torch.nn.Parameter(torch.ones(48, 32, dtype=torch.int8), requires_grad=False)
    return module


def of_another_shape(module: torch.nn.Module) -> torch.nn.Module:
    module.model.layers[1].mlp.gate_proj = torch.nn.Linear(31, 48, bias=False)
    return module


def without_a_norm(module: torch.nn.Module) -> torch.nn.Module:
    module.model.layers[1].input_layernorm = torch.nn.Identity()
    return module


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (without_a_norm, "LlamaForCausalLM has Identity for model.layers.1.input_layernorm: the"),
        (quantised, r"quantised weights \(model.layers.0.self_attn.q_proj._packed_params"),
        (in_float8, r"quantised weights \(torch.float8_e4m3fn\)"),
        (in_integers, "gate_proj.weight holds int8: quantised weights are not supported"),
        (
            of_another_shape,
            r"1.mlp.gate_proj.weight has shape \(48, 31\), but .* require \(48, 32\)",
        ),
        (lambda module: module.to("meta"), "on the device 'meta', where its weights have no numb"),
    ],
)
def test_modules_that_cannot_be_read_are_refused_in_a_sentence(change, says: str) -> None:
    with pytest.raises(ot.OtimesError, match=says):
        ot.audit(change(KINDS["llama"]()), TOKENS)


def test_a_prompt_with_its_mask_is_refused_in_a_sentence() -> None:
    import transformers

    tokens = transformers.BatchEncoding({"input_ids": TOKENS, "attention_mask": TOKENS * 0 + 1})
    with pytest.raises(ot.OtimesError, match="a mapping of input_ids and attention_mask: give the"):
        ot.audit(gpt2(), tokens)


def _set(path: str, name: str, value: object):
    """Return the bug of an attribute that is another in every block."""

    def plant(module: torch.nn.Module) -> None:
        blocks = module.get_submodule(path.partition(":")[0])
        for block in blocks:
            setattr(block.get_submodule(path.partition(":")[2]), name, value)

    return plant


def _other_base(module: torch.nn.Module) -> None:
    module.model.rotary_emb.inv_freq = 500000.0 ** -(torch.arange(0, 8, 2) / 8)


def _coarse_frequencies(module: torch.nn.Module) -> None:
    module.model.rotary_emb.inv_freq = module.model.rotary_emb.inv_freq.bfloat16().float()


BUGS = {
    "no scale": ("llama", _set("model.layers:self_attn", "scaling", 1.0), "pattern.0", "scale"),
    "another base": ("llama", _other_base, "pattern.0", "rotary base 500000 for 10000"),
    "another ε": (
        "llama",
        _set("model.layers:input_layernorm", "variance_epsilon", 1e-3),
        "ln1.0",
        "ε = 0.001 and not 1e-06",
    ),
    "sequential": (
        "neox",
        _set("gpt_neox.layers:", "use_parallel_residual", False),
        "ln2.0",
        "sequential block for a parallel one",
    ),
    "tanh": (
        "neox",
        _set("gpt_neox.layers:mlp", "act", torch.nn.GELU("tanh")),
        "mlp_post.0",
        "tanh GELU for exact GELU",
    ),
    "frequencies": ("llama", _coarse_frequencies, "pattern.0", "rounded to bfloat16"),
    "one ε": ("gpt2", lambda m: setattr(m.transformer.h[1].ln_2, "eps", 1e-3), "ln2.1", "0.001"),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_in_a_live_module_is_found_where_it_is_and_named(
    bug: str, dtype: torch.dtype
) -> None:
    """Also beside the steps in float32 that Llama and NeoX have in float64."""
    kind, plant, place, says = BUGS[bug]
    torch.manual_seed(4)
    module = KINDS[kind](attn_implementation="eager").to(dtype)
    plant(module)
    report = ot.audit(module, TOKENS[:, :12])
    assert report.first_failure.place == place, str(report)
    assert says in report.first_failure.diagnosis


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
    assert "all logits of a position are shifted" in said


@pytest.mark.parametrize(
    ("kind", "refactored"), [("gpt2", False), ("gpt2", True), ("llama", False), ("neox", False)]
)
def test_every_kind_after_processing(kind: str, refactored: bool) -> None:
    """Also with the factors of heads made orthogonal, which rotary queries do not allow."""
    raw = generic(lens(torch.float32, **LENSES[kind]), STILL)
    hooked = lens(torch.float32, **LENSES[kind])
    every = ("fold_ln", "center_writing_weights", "center_unembed", "fold_value_biases")
    hooked.load_and_process_state_dict(
        {name: each.clone() for name, each in raw.state_dict().items()},
        refactor_factored_attn_matrices=refactored,
        **dict.fromkeys(every, True),
    )
    report = ot.audit(hooked, TOKENS[:, :12], weights=raw)
    assert report.passed, str(report)
    said = " ".join(str(gauge) for gauge in report.gauges)
    assert ("another basis inside the heads" if refactored else "b_V is moved into b_O") in said


def test_an_audit_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    for module in (gpt2(), lens(torch.float32, **LENSES["gpt2"])):
        capsys.readouterr()
        ot.audit(module, TOKENS[:1])
        assert capsys.readouterr() == ("", "")


def test_processing_in_float64_rounds_weights_to_float32_and_that_is_found() -> None:
    module = gpt2().double()
    report = ot.audit(processed(torch.float64, module), TOKENS, weights=module)
    assert not report.passed
    assert report.first_failure.kind == "precision"
    assert "rounded to float32" in report.first_failure.diagnosis
