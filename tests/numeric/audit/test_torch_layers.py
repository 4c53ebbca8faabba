"""Layers of torch.nn: they read vectors, have a fast path, and are given a causal mask.

Their norms come after the sums (post-norm) if `norm_first` does not say otherwise.
"""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import nn

import otimes as ot
from tests.numeric.audit.unchanged import unchanged

VECTORS = torch.randn(2, 9, 16, generator=torch.Generator().manual_seed(0))
MASK = nn.Transformer.generate_square_subsequent_mask(9)
ORDERS = pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])


def layer(**options: object) -> nn.TransformerEncoderLayer:
    torch.manual_seed(1)
    return nn.TransformerEncoderLayer(16, 4, 24, **{"batch_first": True, **options})


def stack(norm: nn.Module | None = None, **options: object) -> nn.TransformerEncoder:
    return nn.TransformerEncoder(layer(**options), 2, norm, enable_nested_tensor=False)


def attention(**options: object) -> nn.MultiheadAttention:
    torch.manual_seed(1)
    return nn.MultiheadAttention(16, 4, **options)


MAKE: dict[str, Callable[..., nn.Module]] = {
    "layer": layer,
    "pre-norm layer": lambda: layer(norm_first=True),
    "stack": stack,
    "attention": attention,
}


POST_NORM = [
    f"{place}.0"
    for place in ("resid_pre", "attn_out", "resid_mid", "ln1", "mlp_pre", "mlp_post", "mlp_out")
] + ["resid_post.0", "ln2.0"]
PRE_NORM = [
    f"{place}.0"
    for place in ("resid_pre", "ln1", "attn_out", "resid_mid", "ln2", "mlp_pre", "mlp_post")
] + ["mlp_out.0", "resid_post.0"]


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
@ORDERS
def test_a_layer_passes(norm_first: bool, options: dict[str, object], dtype: torch.dtype) -> None:
    report = ot.audit(layer(**options, norm_first=norm_first, dtype=dtype), VECTORS)
    assert report.passed, str(report)
    assert list(report.ratios) == (PRE_NORM if norm_first else POST_NORM)
    assert any("causal mask" in note for note in report.notes)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("options", [{}, {"batch_first": True}, {"bias": False}], ids=str)
def test_an_attention_passes(options: dict[str, object], dtype: torch.dtype) -> None:
    report = ot.audit(attention(**options, dtype=dtype), VECTORS)
    assert report.passed, str(report)
    assert list(report.ratios) == ["pattern.0", "attn_out.0"]


@pytest.mark.parametrize("norm", [None, nn.LayerNorm(16)])
@ORDERS
def test_a_stack_passes(norm_first: bool, norm: nn.Module | None) -> None:
    report = ot.audit(stack(norm=norm, norm_first=norm_first), VECTORS[0])
    assert report.passed, str(report)
    assert ("ln_final" in report.ratios) == (norm is not None)
    assert len(report.ratios) == 18 + (norm is not None)


@ORDERS
def test_a_callable_is_given_the_vectors_and_shows_what_the_layer_returns(norm_first: bool) -> None:
    module = layer(norm_first=norm_first, dtype=torch.float64).eval()
    vectors = VECTORS.double()

    def masked(given: torch.Tensor) -> torch.Tensor:
        assert given is vectors
        return module(given, src_mask=MASK.double())

    assert ot.audit(masked, vectors, weights=module).passed
    report = ot.audit(module, vectors, weights=module, names={})  # nobody gave it a mask
    assert report.first_failure.place == ("resid_post.0" if norm_first else "ln2.0")
    assert "without the causal mask" in report.first_failure.diagnosis


def generic(module: nn.Module) -> nn.Module:
    """The module with parameters that hide nothing."""
    draw = torch.Generator().manual_seed(2)
    for parameter in module.parameters():
        noise = torch.randn(parameter.shape, generator=draw, dtype=parameter.dtype)
        parameter.data.add_(noise, alpha=0.2)
    return module.eval()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@ORDERS
def test_the_other_order_of_norms_is_named(norm_first: bool, dtype: torch.dtype) -> None:
    """The weights are the same: only what is computed with them tells."""
    other = generic(stack(norm_first=not norm_first, dtype=dtype))
    module = stack(norm_first=norm_first, dtype=dtype)
    module.load_state_dict(other.state_dict())
    vectors, mask = VECTORS.to(dtype), MASK.to(dtype)
    report = ot.audit(lambda x: other(x, mask=mask), vectors, weights=module)
    assert report.first_failure.place == ("resid_post.1" if norm_first else "ln2.1")
    names = ("post-norm for pre-norm", "pre-norm for post-norm")
    assert names[not norm_first] in report.first_failure.diagnosis
    report = ot.audit(other, vectors, weights=module)  # with its activations
    assert report.first_failure.place == ("ln1.0" if norm_first else "attn_out.0")
    assert names[not norm_first] in report.first_failure.diagnosis


class Norms(nn.TransformerEncoderLayer):
    """torch's own layer, written out, with its steps for a test to make wrong ones of."""

    def forward(self, src: torch.Tensor, src_mask: torch.Tensor, **_: object) -> torch.Tensor:
        x = self.first(src, self._sa_block(src, src_mask, None))
        return self.second(x, self._ff_block(x))

    def first(self, x: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
        return self.norm1(x + part)

    def second(self, x: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
        return self.norm2(x + part)


def unbiased(norm: nn.LayerNorm, x: torch.Tensor) -> torch.Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred / (x.var(-1, keepdim=True) + norm.eps).sqrt() * norm.weight + norm.bias


# The steps, the first place and what is said of it by hooks; what is said of the result alone.
PLANTED: dict[str, tuple[dict[str, Callable], str, str, str]] = {
    "norms swapped": (
        {
            "first": lambda m, x, part: m.norm2(x + part),
            "second": lambda m, x, part: m.norm1(x + part),
        },
        "resid_mid.0",  # which is what norm1 reads
        "",
        "each has the other's gain and bias",
    ),
    "unbiased variance": (
        {"first": lambda m, x, part: unbiased(m.norm1, x + part)},
        "mlp_pre.0",
        "unbiased variance",
        "unbiased variance",
    ),
    "the second norm forgotten": (
        {"second": lambda m, x, part: x + part},
        "ln2.0",
        "without the LayerNorm",
        "without the LayerNorm",
    ),
    "the second residual forgotten": (
        {"second": lambda m, x, part: m.norm2(part)},
        "resid_post.0",
        "without the residual connection around the MLP",
        "without the residual connection around the MLP",
    ),
    "norms of the parts": (
        {
            "first": lambda m, x, part: x + m.norm1(part),
            "second": lambda m, x, part: x + m.norm2(part),
        },
        "resid_mid.0",  # which is what norm1 reads
        "without the residual connection around attention",
        "before it is added",
    ),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_mistake_of_a_post_norm_layer_is_named(name: str, dtype: torch.dtype) -> None:
    steps, place, shown, returned = PLANTED[name]
    module = generic(Norms(16, 4, 24, batch_first=True, dtype=dtype))
    vectors = VECTORS.to(dtype)
    assert ot.audit(module, vectors).passed
    for step, wrong in steps.items():
        setattr(module, step, partial(wrong, module))
    report = ot.audit(module, vectors)
    assert report.first_failure.place == place, str(report)
    assert shown in report.first_failure.diagnosis
    plain = layer(dtype=dtype)
    plain.load_state_dict(module.state_dict())
    mask = MASK.to(dtype)
    report = ot.audit(lambda x: module(x, mask), vectors, weights=plain)  # its result alone
    assert report.first_failure.place == "ln2.0", str(report)
    assert returned in report.first_failure.diagnosis


def test_the_fast_path_takes_any_gelu_for_the_exact_one() -> None:
    """A mistake of torch (2.13): with hooks, or in training mode, the same module has tanh GELU."""
    report = ot.audit(layer(activation=nn.GELU("tanh"), dtype=torch.float64), VECTORS)
    assert report.first_failure.place == "ln2.0"
    assert "exact GELU for tanh GELU" in report.first_failure.diagnosis
    assert ot.audit(layer(activation=nn.GELU("tanh"), batch_first=False), VECTORS).passed


@pytest.mark.parametrize(
    ("part", "place", "says"),
    [("linear1", "mlp_pre.0", "without b_in"), ("self_attn.out_proj", "attn_out.0", "b_O")],
)
@ORDERS
def test_a_mistake_that_zero_biases_hide_is_found(
    norm_first: bool, part: str, place: str, says: str
) -> None:
    class Wrong(nn.TransformerEncoderLayer):
        def forward(self, *given: object, **options: object) -> torch.Tensor:
            bias = self.get_submodule(part).bias
            kept, bias.data = bias.data, torch.zeros_like(bias.data)
            try:
                return super().forward(*given, **options)
            finally:
                bias.data = kept

    module = Wrong(16, 4, 24, norm_first=norm_first)
    nn.init.zeros_(module.get_submodule(part).bias)
    assert ot.audit(module, VECTORS, generic=False).passed
    report = ot.audit(module, VECTORS)
    assert report.first_failure.place == place
    assert says in report.first_failure.diagnosis


def with_norm1(norm: nn.Module) -> nn.Module:
    module = layer()
    module.norm1 = norm
    return module


def orders_mixed() -> nn.Module:
    module = stack()
    module.layers[1].norm_first = True
    return module


@pytest.mark.parametrize(
    ("module", "says"),
    [
        (lambda: attention(add_bias_kv=True), "MultiheadAttention has add_bias_kv=True"),
        (lambda: attention(add_zero_attn=True), "has add_zero_attn=True"),
        (lambda: attention(kdim=8), "has kdim=8"),
        (lambda: attention(vdim=8), "has vdim=8"),
        (lambda: layer(activation=torch.tanh), "the activation 'tanh', which is not supported"),
        (lambda: layer(activation=lambda x: x), "the activation '<lambda>', which is not"),
        (lambda: stack(norm=nn.LayerNorm(16, eps=0.1)), "of another ε than its layers have"),
        (lambda: stack(norm=nn.RMSNorm(16)), "a norm of the kind RMSNorm; known: LayerNorm"),
        (lambda: layer().to("meta"), "on the device 'meta'"),
        (lambda: with_norm1(nn.Identity()), "a norm of the kind Identity; known: LayerNorm"),
        (lambda: with_norm1(nn.LayerNorm(16, eps=0.1)), "norms of different ε, 1e-05 and 0.1"),
        (lambda: orders_mixed(), "the layers of TransformerEncoder differ in norm_order"),
        (lambda: nn.TransformerEncoder(layer(), 0), "TransformerEncoder has no layers"),
        (lambda: nn.TransformerDecoderLayer(16, 4), "Layer of torch.nn cannot be audited: it att"),
        (lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 4), 1), "Decoder of torch"),
        (
            lambda: nn.Transformer(16, 4, 1, 1, batch_first=True),
            "Transformer of torch.nn cannot be audited",
        ),
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
