"""The implementation of `otimes paths`: reading its options, and its text output."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import otimes as ot

if TYPE_CHECKING:
    from collections.abc import Iterable

    from otimes.numeric.frozen import MLPKind
    from otimes.numeric.model import Model
    from otimes.numeric.paths.ensemble import Paths
    from otimes.numeric.paths.summary import Summary

PROMPT = 48
"""The length of the default prompt, the beginning of the bundled sample, in tokens."""
BAR = 24


def paths_of(model: Model, prompt: str | None, tokens: str | None, mlp: MLPKind) -> Paths:
    """Return the ensemble of paths on `prompt`, on comma-separated `tokens`, or on the sample."""
    from otimes.numeric.tokenizer import load_tokenizer, sample_tokens

    if tokens is not None:
        if prompt is not None:
            raise ot.OtimesError("give either --prompt or --tokens, not both")
        try:
            numbers = [int(number) for number in tokens.split(",")]
        except ValueError:
            raise ot.OtimesError(
                f"--tokens must be comma-separated integers, got {tokens!r}"
            ) from None
        return ot.paths(model, numbers, mlp=mlp)
    _need_tokenizer(model)
    if prompt is None:
        return ot.paths(model, sample_tokens(min(PROMPT, model.n_ctx)), mlp=mlp)
    return ot.paths(model, load_tokenizer().encode(prompt), mlp=mlp)


def summary_of(on_prompt: Paths, position: int, token: str | None, top: int) -> Summary:
    """Return the summary of a token's logit; the token is given as text or as an id."""
    number = None if token is None else _token_number(on_prompt.model, token)
    return on_prompt.summary(position, number, top)


def _token_number(model: Model, token: str) -> int:
    from otimes.numeric.tokenizer import load_tokenizer

    if token.isdecimal():
        return int(token)
    _need_tokenizer(model)
    encoded = load_tokenizer().encode(token)
    if len(encoded) != 1:
        parts = ", ".join(repr(text) for text in load_tokenizer().token_strings(encoded))
        raise ot.OtimesError(f"{token!r} is {len(encoded)} tokens ({parts}): give one of them")
    return encoded[0]


def _need_tokenizer(model: Model) -> None:
    from otimes.numeric.tokenizer import load_tokenizer

    if model.d_vocab != load_tokenizer().d_vocab:
        raise ot.OtimesError(
            f"{model.name} has {model.d_vocab} tokens, the bundled tokenizer"
            f" {load_tokenizer().d_vocab}: give --tokens, and --token as an id"
        )


def write_page(summary: Summary, file: str) -> None:
    """Write the summary as an HTML page."""
    from otimes.numeric.paths.views import html_page

    Path(file).write_text(html_page(summary), encoding="utf-8")


def path_report(summary: Summary) -> str:
    """Return the orders, heads and largest paths of a summary as text."""
    from otimes.numeric.paths.orders import path_name
    from otimes.numeric.paths.summary import visible

    model, best = summary.model, summary.best
    before = "".join(summary.strings[: summary.position + 1])[-60:]
    whose = f"{visible(summary.token_string)!r} (token {summary.token})"
    where = f"after position {summary.position}"
    lines = [
        f"{model.name}: the logit of {whose} {where}, {summary.logit:+.4f}",
        f"    …{visible(before)}",
        *([f"    {summary.about_mlps}"] if summary.about_mlps else []),
        "",
        "by order",
        *_bars(
            (f"order {order}" if order else "direct", value)
            for order, value in enumerate(summary.orders.tolist())
        ),
    ]
    if model.n_layers:
        names = [f"{each}.{head}" for each, head in _heads(model)]
        table = zip(names, summary.heads.flat, summary.shapley.flat, strict=True)
        strongest = sorted(table, key=lambda row: -abs(row[2]))[: max(12, model.n_heads)]
        said = "proven largest" if best.proven else f"others at most {best.bound:.3g}, not proven"
        lines += [
            "",
            "heads, the largest Shapley values first",
            f"    {'':7}  order 1  Shapley",
            *[f"    {name:7} {alone:+8.4f} {share:+8.4f}" for name, alone, share in strongest],
            "",
            f"largest paths: {said}, {best.visited} visited",
            *_bars((path_name(path.heads), path.value) for path in best),
        ]
    ratio, error = summary.closure
    lines += ["", f"closure: error/bound {ratio:.2g} in the worst layer, end to end {error:.2g}"]
    return "\n".join(lines)


def _heads(model: Model) -> Iterable[tuple[int, int]]:
    return ((layer, head) for layer in range(model.n_layers) for head in range(model.n_heads))


def _bars(rows: Iterable[tuple[str, float]]) -> list[str]:
    named = list(rows)
    largest = max(abs(value) for _, value in named) or 1.0
    width = max(len(name) for name, _ in named)
    return [
        f"    {name:{width}} {value:+9.4f}  {'█' * round(BAR * abs(value) / largest)}"
        for name, value in named
    ]
