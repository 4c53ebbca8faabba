"""Cached decoding: a right cache passes; stale, shifted and holed ones are found and named."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest
import torch
from torch import Tensor

import otimes as ot
from otimes.numeric.model import Model
from otimes.numeric.random_weights import random_model

TOKENS = [[5, 1, 9, 60, 33, 2, 7, 2, 17, 41], [8, 8, 25, 7, 50, 3, 11, 40, 12, 6]]
FIRST = 5


class Decoder:
    """A decoder with a cache in plain torch; `keep`, `at` and `mask` are where it may go wrong."""

    def __init__(
        self,
        model: Model,
        keep: Callable = lambda old, new, step: torch.cat([old, new], 2),
        at: Callable = lambda seen, n: torch.arange(seen, seen + n),
        mask: Callable = lambda seen, n: torch.ones(n, seen + n).tril(seen),
    ) -> None:
        self.model, self.keep, self.at, self.mask = model, keep, at, mask
        self.w = {name: torch.tensor(each) for name, each in model.weights.items()}

    def __call__(self, tokens, cache):
        c, w = self.model.config, self.w
        seen, layers = (0, None) if cache is None else cache
        tokens = torch.as_tensor(tokens)
        place, new = self.at(seen, tokens.shape[1]), []
        x = w["W_E"][tokens]
        if c.positions == "learned":
            x = x + w["W_pos"][place]
        for layer in range(c.n_layers):
            y = self.norm(x, "ln1", layer)
            q, k, v = (self.heads(y, name, layer) for name in "QKV")
            if c.positions == "rotary":
                q, k = self.turned(q, place), self.turned(k, place)
            if layers is not None:
                k, v = (
                    self.keep(old, now, (seen, FIRST))
                    for old, now in zip(layers[layer], (k, v), strict=True)
                )
            new.append((k, v))
            share = c.n_heads // c.kv_heads
            keys, values = (each.repeat_interleave(share, 1) for each in (k, v))
            scores = q @ keys.mT / c.d_head**0.5
            mask = self.mask(k.shape[2] - q.shape[2], q.shape[2])
            pattern = scores.masked_fill(mask == 0, -torch.inf).softmax(-1)
            z = (pattern @ values).transpose(1, 2).flatten(2)
            x = x + z @ w["W_O"][layer].flatten(0, 1)
            if "b_O" in w:
                x = x + w["b_O"][layer]
            y = self.norm(x, "ln2", layer)
            if c.gated:
                h = torch.nn.functional.silu(y @ w["W_gate"][layer]) * (y @ w["W_in"][layer])
                x = x + h @ w["W_out"][layer]
            else:
                h = torch.nn.functional.gelu(
                    y @ w["W_in"][layer] + w["b_in"][layer], approximate="tanh"
                )
                x = x + h @ w["W_out"][layer] + w["b_out"][layer]
        x = self.norm(x, "ln_final", None)
        return x @ (w["W_E"].T if c.tied else w["W_U"]), (seen + tokens.shape[1], new)

    def norm(self, x: Tensor, name: str, layer: int | None) -> Tensor:
        gain, bias = (self.w.get(f"{name}_{part}") for part in ("gain", "bias"))
        gain, bias = (e if e is None or layer is None else e[layer] for e in (gain, bias))
        if self.model.config.norm == "rms":
            return torch.nn.functional.rms_norm(x, x.shape[-1:], gain, self.model.config.norm_eps)
        return torch.nn.functional.layer_norm(
            x, x.shape[-1:], gain, bias, self.model.config.norm_eps
        )

    def heads(self, y: Tensor, name: str, layer: int) -> Tensor:
        made = torch.einsum("bpd,hdk->bhpk", y, self.w[f"W_{name}"][layer])
        return made + self.w[f"b_{name}"][layer][:, None] if f"b_{name}" in self.w else made

    def turned(self, rows: Tensor, place: Tensor) -> Tensor:
        half = rows.shape[-1] // 2
        angle = place[:, None] * 10000.0 ** (-torch.arange(half) / half).double()
        a, b = rows[..., :half], rows[..., half:]
        return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


def first_of(old: Tensor) -> Tensor:
    return old[:, :, :FIRST]


def values_only(keep: Callable) -> Callable:
    """Return what keeps keys as they are and does something else with values, which come second."""
    calls = count()
    return lambda old, new, step: keep(old, new, step) if next(calls) % 2 else joined(old, new)


def joined(old: Tensor, new: Tensor) -> Tensor:
    return torch.cat([old, new], 2)


RIGHT_AT = lambda seen, n: torch.arange(seen, seen + n)  # noqa: E731 (the default, once more)
WRONG: dict[str, tuple[dict, str]] = {
    "stale": (
        {"keep": lambda old, new, step: torch.cat([first_of(old), new], 2)},
        "stale cache: no",
    ),
    "dropped": ({"keep": lambda old, new, step: new}, "a dropped cache"),
    "overwritten": (
        {"keep": lambda old, new, step: torch.cat([old[:, :, : FIRST - 1], new], 2)},
        "overwrites the one before, and the last of the prefill",
    ),
    "a hole": (
        {
            "keep": lambda old, new, step: torch.cat(
                [old[:, :, : FIRST - 1], old[:, :, FIRST:], new]
                if step[0] == FIRST
                else [old, new],
                2,
            )
        },
        "a cache with a hole: the last token of the prefill is missing",
    ),
    "not written": (
        {"keep": lambda old, new, step: joined(old, 0 * new)},
        "keys and values of decoded tokens are not written, and zeros are read",
    ),
    "values not written": (
        {"keep": values_only(lambda old, new, step: joined(old, 0 * new))},
        "stale cache: values of decoded tokens are not written",
    ),
    "values in another order": (
        {"keep": values_only(lambda old, new, step: joined(new, old))},
        "values of decoded tokens come before the others",
    ),
    "the prefill twice": (
        {"at": lambda seen, n: RIGHT_AT(seen, n) + FIRST * int(seen > 0)},
        "positions that count the prefill twice",
    ),
    "one too far": ({"at": lambda seen, n: RIGHT_AT(seen, n) + int(seen > 0)}, "one too far"),
    "that of the token before": (
        {"at": lambda seen, n: RIGHT_AT(seen, n) - int(seen > 0)},
        "that of the token before",
    ),
    "all at 0": ({"at": lambda seen, n: torch.arange(n)}, "positions that are all 0"),
    "top left": (
        {"mask": lambda seen, n: torch.ones(n, seen + n).tril()},
        "aligned at the top left",
    ),
}


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_a_right_cache_passes(kind: str) -> None:
    model = random_model(kind=kind, n_layers=1)
    for first in (None, 1):
        report = ot.audit_decoding(Decoder(model), TOKENS, model, prefill=first)
        assert report.passed, str(report)


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_cache_is_found_and_named(fault: str, kind: str) -> None:
    model, (options, words) = random_model(kind=kind, n_layers=1), WRONG[fault]
    report = ot.audit_decoding(Decoder(model, **options), TOKENS, model)
    assert not report.passed
    assert words in str(report)


def test_a_fault_of_the_whole_prompt_is_not_one_of_the_cache() -> None:
    model = random_model(kind="gpt2", n_layers=1)
    wrong = model.changed({"b_O": 2 * model.b_O})
    report = ot.audit_decoding(Decoder(wrong), TOKENS, model)
    assert not report.passed
    assert "cached decoding was not compared" in str(report)


def test_what_is_asked_wrongly_is_said() -> None:
    model = random_model(kind="gpt2", n_layers=1)
    with pytest.raises(ot.OtimesError, match=r"prefill=10 .* it is from 1 to 9 for prompts of 10"):
        ot.audit_decoding(Decoder(model), TOKENS, model, prefill=10)
    with pytest.raises(ot.OtimesError, match=r"\(logits, cache\) for \(tokens, cache\)"):
        ot.audit_decoding(lambda tokens, cache: tokens, TOKENS, model)
    with pytest.raises(ot.OtimesError, match="weights= is needed to audit the decoding of Decoder"):
        ot.audit_decoding(Decoder(model), TOKENS)
