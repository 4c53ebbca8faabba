"""A module that shows its logits only is judged in float64 too, on a copy, and left as it was."""

import re
from dataclasses import replace
from functools import partial
from threading import Lock
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

import otimes as ot
from otimes.numeric.audit.capture.float64_copy import WIDER, _rotary_table
from otimes.numeric.audit.report import Report
from otimes.numeric.model import Model
from otimes.numeric.random_weights import random_model
from otimes.numeric.rounding.activations import in_dtype
from otimes.numeric.torch_model import TorchModel
from tests.numeric.audit.catalogue import KINDS
from tests.numeric.audit.foreign import Foreign
from tests.numeric.audit.unchanged import unchanged

TOKENS = torch.randint(0, 29, (1, 8), generator=torch.Generator().manual_seed(0))
CLOSELY = "only logits are recorded: those of a copy in float64 were judged as well"


class Strange(nn.Module):
    """A module of a class that nobody knows, which computes what a `Foreign` does."""

    def __init__(self, foreign: Foreign) -> None:
        super().__init__()
        self.foreign = foreign
        for name, tensor in foreign.w.items():
            self.register_parameter(name, nn.Parameter(tensor))
        self.register_buffer("calls", torch.zeros(2))
        self.dropout = nn.Dropout(0.5)

    def forward(self, tokens: Tensor) -> Tensor:
        self.calls += 1
        torch.rand(1)
        # Read anew, for other parameters than those of before may have been put in their stead.
        self.foreign.w = dict(self.named_parameters(recurse=False))
        return self.dropout(self.foreign(tokens))


SMALL = {kind: replace(config, norm_eps=1e-7) for kind, config in KINDS.items()}
"""With an ε that in float32 cannot be told from none, or from 1e-12."""


def strange(*words: str, dtype: torch.dtype = torch.float32, kind: str = "gpt2") -> Strange:
    return Strange(Foreign(random_model(SMALL[kind], seed=3), dtype, words, only_logits=True))


def audited(call: object, kind: str = "gpt2") -> Report:
    return ot.audit(call, TOKENS, weights=random_model(SMALL[kind], seed=3))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
def test_a_right_module_passes(kind: str, dtype: torch.dtype) -> None:
    report = audited(strange(dtype=dtype, kind=kind), kind)
    assert report.passed, str(report)
    assert (CLOSELY in report.notes) == (dtype != torch.float64)


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_what_only_float64_shows_is_found_and_named(kind: str) -> None:
    module = strange("eps12", kind=kind)
    with torch.no_grad():
        logits = module.eval()(TOKENS)
    assert audited(lambda _: logits, kind).passed  # nothing is seen in float32
    report = audited(module, kind)
    assert (report.first_failure.place, report.dtype) == ("logits", "float64")
    assert "ε = " in report.first_failure.diagnosis


def run(module: nn.Module, tokens: Tensor) -> Tensor:
    return module(tokens)


@pytest.mark.parametrize(
    "ways",
    [lambda m: m.forward, lambda m: partial(m), lambda m: partial(run, m), lambda m: Outer(m)],
    ids=["method", "partial", "filled in", "inside another"],
)
def test_a_module_is_seen_in_methods_and_in_what_is_filled_in(ways) -> None:
    assert CLOSELY in audited(ways(strange())).notes


class Outer(nn.Module):
    """Another module around one, that hands out its logits as some libraries do."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, tokens: Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=self.module(tokens))


class Closed(nn.Module):
    """A module that runs its parts in a lambda, which closes over them."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, dropout = strange(), nn.Dropout(0.5)
        self.dropout, inner = dropout, self.inner
        self.forward = lambda tokens: (dropout(inner(tokens)), None)


def test_a_copy_runs_its_own_parts_where_a_lambda_closes_over_them() -> None:
    """In training mode the dropout of the original would be on; and it returns (logits, loss)."""
    module = Closed().train()
    report = audited(module)
    assert report.passed, str(report)
    assert CLOSELY in report.notes


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_logits_in_half_precision_may_be_cast_to_float32(kind: str) -> None:
    module = strange(dtype=torch.bfloat16, kind=kind)
    stored = in_dtype(random_model(SMALL[kind], seed=3), "bfloat16")

    def closed(tokens: Tensor) -> Tensor:
        return module.foreign(tokens).float()

    for call in (partial(cast, module), closed):
        report = ot.audit(call, TOKENS, weights=stored)
        assert report.passed, str(report)
        assert report.dtype == "bfloat16"
    # In float32 code it would be a fault.
    single = strange(kind=kind)
    assert not audited(lambda tokens: single.foreign(tokens).bfloat16().float(), kind).passed


def cast(module: nn.Module, tokens: Tensor) -> Tensor:
    return module(tokens).float()


# -- what is right in float32 and not in float64 ---------------------------------------------------


@pytest.mark.parametrize("kind", ["llama", "neox"])
def test_steps_written_out_in_float32_are_widened(kind: str) -> None:
    """Its softmax and rotary angles are computed in float32, whatever type it is given."""
    report = audited(strange("softmax_float", kind=kind), kind)
    assert report.passed, str(report)
    assert CLOSELY in report.notes
    if kind == "neox":
        bug = audited(strange("softmax_float", "eps12", kind=kind), kind)
        assert "ε = " in bug.first_failure.diagnosis


def _frequencies(half: int) -> Tensor:
    return 10000.0 ** -(torch.arange(half).float() / half)


def _angles(half: int) -> Tensor:
    return torch.arange(20)[:, None] * _frequencies(half)


TABLES = {
    "frequencies": _frequencies,
    "cosines": lambda half: _angles(half).cos().repeat(1, 2),
    "sines": lambda half: _angles(half).sin()[None, None],
    "both": lambda half: torch.polar(torch.ones(20, half), _angles(half)),
}


@pytest.mark.parametrize("table", TABLES)
def test_rotary_tables_are_taken_as_they_were_before_rounding(table: str) -> None:
    """And only those: another base is not taken for a rounding."""
    half = KINDS["llama"].rotary_dims // 2
    rounded = TABLES[table](half)
    wide = rounded.to(WIDER[rounded.dtype])
    exact = _rotary_table(wide, KINDS["llama"])
    assert exact.shape == rounded.shape
    angle = torch.arange(20)[:, None] * 10000.0 ** -(torch.arange(half).double() / half)
    oracle = {
        "frequencies": angle[1],
        "cosines": torch.cat([angle.cos()] * 2, -1),
        "sines": angle.sin()[None, None],
        "both": torch.complex(angle.cos(), angle.sin()),
    }[table]
    assert (exact - oracle).abs().max() < 1e-14 < (wide - oracle).abs().max()
    assert _rotary_table(wide, replace(KINDS["llama"], rotary_base=10001.0)) is wide


class Scaled(nn.Module):
    """A model whose unembedding was multiplied by 3 and rounded, and whose logits are a third."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.twin = TorchModel.of_model(model, torch.float32)
        self.twin.W_U.data *= 3

    def forward(self, tokens: Tensor) -> Tensor:
        return self.twin(tokens) / 3


def test_weights_that_were_rounded_once_more_are_named_as_precision() -> None:
    bare = random_model(n_layers=0, seed=3)  # it has no step that usual code makes in float32
    scaled = ot.audit(Scaled(bare), TOKENS % bare.d_vocab, weights=bare)
    for report in (audited(strange("fold")), scaled):
        assert report.passed, str(report)
        assert "precision: a copy in float64 is right to float32 and no further" in report.notes


def test_a_half_precision_step_stays_a_fault() -> None:
    assert not audited(strange("half_softmax")).passed


class InFloat32(Strange):
    """It runs in float32 only."""

    def forward(self, tokens: Tensor) -> Tensor:
        if self.W_E.dtype != torch.float32:
            raise TypeError("float32 only")
        return super().forward(tokens)


class Locked(Strange):
    """It cannot be copied."""

    def __init__(self, foreign: Foreign) -> None:
        super().__init__(foreign)
        self.lock = Lock()


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (InFloat32, r"in float32, as the float64 copy of .* raised TypeError: float32 only"),
        (Locked, r"in float32, as deepcopy was called with a Locked and raised TypeError: cannot"),
    ],
)
def test_a_module_without_a_copy_in_float64_is_judged_as_it_is(made, says: str) -> None:
    for words in ((), ("no_final_norm",)):
        report = audited(made(strange(*words).foreign))
        assert report.passed == (not words)
        assert re.search(says, report.notes[-1]), report.notes


# -- left as it was --------------------------------------------------------------------------------


def test_a_module_comes_back_as_it_was() -> None:
    for module in (strange(), strange(dtype=torch.bfloat16)):
        with unchanged(module):
            audited(module)


@pytest.mark.parametrize("at", [0, 1], ids=["the module", "its copy"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_also_after_an_interrupt(error: type[BaseException], at: int) -> None:
    module, runs = strange(), []

    def stop(*_: object) -> None:
        runs.append(1)
        if len(runs) > at:
            raise error("here")

    module.dropout.register_forward_hook(stop)
    with unchanged(module):
        if error is KeyboardInterrupt:
            with pytest.raises(KeyboardInterrupt):
                audited(module)
        elif at:
            assert "raised ValueError: here" in audited(module).notes[-1]
        else:
            with pytest.raises(
                ot.OtimesError, match=r"Strange was called with .* ValueError: here"
            ):
                audited(module)
    assert len(runs) == at + 1
