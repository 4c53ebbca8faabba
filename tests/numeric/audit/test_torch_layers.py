"""Layers of torch.nn: they read vectors, have a fast path, and are given a causal mask."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

import otimes as ot
from tests.numeric.audit.unchanged import unchanged

VECTORS = torch.randn(2, 9, 16, generator=torch.Generator().manual_seed(0))
MASK = nn.Transformer.generate_square_subsequent_mask(9)


def layer(**options: object) -> nn.TransformerEncoderLayer:
    torch.manual_seed(1)
    given = {"batch_first": True, "norm_first": True, **options}
    return nn.TransformerEncoderLayer(16, 4, 24, **given)


def stack(**options: object) -> nn.TransformerEncoder:
    return nn.TransformerEncoder(layer(), 2, enable_nested_tensor=False, **options)


def attention(**options: object) -> nn.MultiheadAttention:
    torch.manual_seed(1)
    return nn.MultiheadAttention(16, 4, **options)


MAKE: dict[str, Callable[..., nn.Module]] = {
    "layer": layer,
    "stack": stack,
    "attention": attention,
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_first": False},
        {"bias": False},
        {"activation": "gelu"},
        {"activation": nn.functional.silu},
        {"layer_norm_eps": 0.1, "dropout": 0.5},
    ],
    ids=["as it is", "positions first", "no biases", "gelu", "silu", "another ε, dropout"],
)
def test_a_layer_passes(options: dict[str, object], dtype: torch.dtype) -> None:
    report = ot.audit(layer(**options, dtype=dtype), VECTORS)
    assert report.passed, str(report)
    assert len(report.ratios) == 9
    assert any("causal mask" in note for note in report.notes)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("options", [{}, {"batch_first": True}, {"bias": False}], ids=str)
def test_an_attention_passes(options: dict[str, object], dtype: torch.dtype) -> None:
    report = ot.audit(attention(**options, dtype=dtype), VECTORS)
    assert report.passed, str(report)
    assert list(report.ratios) == ["pattern.0", "attn_out.0"]


@pytest.mark.parametrize("norm", [None, nn.LayerNorm(16)])
def test_a_stack_passes(norm: nn.Module | None) -> None:
    report = ot.audit(stack(norm=norm), VECTORS[0])
    assert report.passed, str(report)
    assert ("ln_final" in report.ratios) == (norm is not None)


def test_a_callable_is_given_the_vectors_and_shows_what_the_layer_returns() -> None:
    module = layer(dtype=torch.float64).eval()
    vectors = VECTORS.double()

    def masked(given: torch.Tensor) -> torch.Tensor:
        assert given is vectors
        return module(given, src_mask=MASK.double())

    assert ot.audit(masked, vectors, weights=module).passed
    report = ot.audit(module, vectors, weights=module, names={})  # nobody gave it a mask
    assert report.first_failure.place == "resid_post.0"
    assert "without the causal mask" in report.first_failure.diagnosis


def test_the_fast_path_takes_any_gelu_for_the_exact_one() -> None:
    """A mistake of torch (2.13): with hooks, or in training mode, the same module has tanh GELU."""
    report = ot.audit(layer(activation=nn.GELU("tanh"), dtype=torch.float64), VECTORS)
    assert report.first_failure.place == "resid_post.0"
    assert "exact GELU for tanh GELU" in report.first_failure.diagnosis
    assert ot.audit(layer(activation=nn.GELU("tanh"), batch_first=False), VECTORS).passed


@pytest.mark.parametrize(
    ("part", "place", "says"),
    [("linear1", "mlp_pre.0", "without b_in"), ("self_attn.out_proj", "attn_out.0", "b_O")],
)
def test_a_mistake_that_zero_biases_hide_is_found(part: str, place: str, says: str) -> None:
    class Wrong(nn.TransformerEncoderLayer):
        def forward(self, *given: object, **options: object) -> torch.Tensor:
            bias = self.get_submodule(part).bias
            kept, bias.data = bias.data, torch.zeros_like(bias.data)
            try:
                return super().forward(*given, **options)
            finally:
                bias.data = kept

    module = Wrong(16, 4, 24, norm_first=True)
    nn.init.zeros_(module.get_submodule(part).bias)
    assert ot.audit(module, VECTORS, generic=False).passed
    report = ot.audit(module, VECTORS)
    assert report.first_failure.place == place
    assert says in report.first_failure.diagnosis


@pytest.mark.parametrize(
    ("module", "says"),
    [
        (lambda: attention(add_bias_kv=True), "MultiheadAttention has add_bias_kv=True"),
        (lambda: attention(add_zero_attn=True), "has add_zero_attn=True"),
        (lambda: attention(kdim=8), "has kdim=8"),
        (lambda: attention(vdim=8), "has vdim=8"),
        (lambda: layer(norm_first=False), "TransformerEncoderLayer has norm_first=False"),
        (lambda: layer(activation=torch.tanh), "the activation 'tanh', which is not supported"),
        (lambda: layer(activation=lambda x: x), "the activation '<lambda>', which is not"),
        (lambda: stack(norm=nn.LayerNorm(16, eps=0.1)), "of another ε than its layers have"),
        (lambda: stack(norm=nn.RMSNorm(16)), "a norm of the kind RMSNorm; known: LayerNorm"),
        (lambda: layer().to("meta"), "on the device 'meta'"),
    ],
)
def test_what_the_reference_does_not_have_is_refused_by_name(module, says: str) -> None:
    with pytest.raises(ot.OtimesError, match=says):
        ot.audit(module(), VECTORS)


@pytest.mark.parametrize(
    ("vectors", "says"),
    [
        ([1, 2, 3], r"vectors of the residual stream .* shape \[pos, 16\].* got int64 \(3,\)"),
        (VECTORS[..., :5], r"vectors .* \[prompt, pos, 16\], got \(2, 9, 5\)"),
        (torch.zeros(0, 16), r"got \(0, 16\)"),
        (VECTORS * float("nan"), r"vectors are not finite, their entry \(0, 0, 0\) is nan"),
    ],
)
def test_what_are_no_vectors_is_said_in_a_sentence(vectors, says: str) -> None:
    with pytest.raises(ot.OtimesError, match=says):
        ot.audit(layer(), vectors)


@pytest.mark.parametrize("kind", MAKE)
def test_a_layer_comes_back_as_it_was(kind: str) -> None:
    module = MAKE[kind]()
    with unchanged(module):
        assert ot.audit(module, VECTORS).passed


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("kind", MAKE)
def test_also_after_an_interrupt(kind: str, error: type[BaseException]) -> None:
    module = MAKE[kind]()

    def stop(*_: object) -> None:
        raise error

    module.register_forward_hook(stop)
    said = ot.OtimesError if error is RuntimeError else error
    with pytest.raises(said), unchanged(module):
        ot.audit(module, VECTORS)


def test_the_comparison_with_before_can_fail() -> None:
    module = layer()
    with pytest.raises(AssertionError, match=r"linear1\.bias"), unchanged(module):
        module.linear1.bias.data += 1
    with pytest.raises(AssertionError, match="mode"), unchanged(module):
        module.eval()
