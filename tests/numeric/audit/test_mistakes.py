"""Mistakes that are seen from afar, or that leave little behind: each is named in its words."""

import re

import pytest
import torch
from torch.nn import functional

from tests.numeric.audit.plain import Net
from tests.numeric.audit.test_plain import LOGITS, LONG, report_on

STREAM = ("resid_pre", "resid_mid", "resid_post")
ATTENTION = ("q", "k", "v", "pattern", "z", "attn_out")


def zeros_first(x):
    return torch.cat([0 * x[..., :1, :], x[..., :-1, :]], -2)


def without(n, name, row, call):
    """What a step makes with a row of a weight zero."""
    kept = n.w[name]
    n.w[name] = kept.clone()
    n.w[name][:, row] = 0
    made = call()
    n.w[name] = kept
    return made


def tables_of_the_other_layout(n, x, cos, sin):
    half, (a, b) = x.shape[-1] // 2, x.chunk(2, -1)
    cos, sin = cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1)
    first = a * cos[:, :half] - b * sin[:, :half]
    return torch.cat([first, b * cos[:, half:] + a * sin[:, half:]], -1)


def pairs_of_the_other_layout(n, x, cos, sin):
    """As rotate_half of neighbours, with cosines and sines of halves."""
    cos, sin = torch.cat([cos, cos], -1), torch.cat([sin, sin], -1)
    turned = torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)
    return x * cos + turned * sin


def values_turned(n, p, v, lay):
    return p @ n.turn(v, "K", lay)


def reflected(n, x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin - b * cos], -1)


def masked(visible, fill=-1e9):
    def mask(n, s, lay):
        return s.masked_fill(
            ~visible(torch.arange(s.shape[-2])[:, None], torch.arange(s.shape[-1])), fill
        )

    return mask


def last_key_lost(n, p, v, lay):
    return p[..., :-1] @ v[:, :-1]


def normalised_start(n, tokens):
    return functional.layer_norm(Net.embed(n, tokens), (n.c["d"],))


def sum_of_squares(n, x, which, lay, g, b):
    c = x - x.mean(-1, keepdim=True)
    return c / (c.pow(2).sum(-1, keepdim=True) + 1e-5).sqrt() * g + b


def swapped_heads(n, z, lay):
    return Net.out(n, z[[2, 1, 0, 3]] if lay == 1 else z, lay)


def normed_queries_and_keys(n, q, k, v, lay):
    return *(functional.rms_norm(x, x.shape[-1:], eps=1e-6) for x in (q, k)), v


def bfloat(x):
    return x.bfloat16().to(x.dtype)


def stream_twice(n, mid, m, x, lay):
    return mid + m + x


# family, what is shown (all, only logits, or some kinds of places), words, the wrong steps
MISTAKES = {
    "values a position late": (
        "g",
        (),
        "before, and the first has zeros",
        {"qkv": lambda n, q, k, v, lay: (q, k, zeros_first(v))},
    ),
    "keys and values rolled": (
        "n",
        LOGITS,
        "stale keys and values.*those of the last",
        {"qkv": lambda n, q, k, v, lay: (q, k.roll(1, -2), v.roll(1, -2))},
    ),
    "the last key is not mixed": ("l", (), "without that of the last key", {"mix": last_key_lost}),
    "stride of grouped keys": (
        "l",
        (),
        "stride.*keys",
        {
            "k": lambda n, x, lay: (
                (x @ n.w["W_K"][lay].permute(1, 0, 2).reshape(48, -1))
                .reshape(-1, 12, 2)
                .permute(2, 0, 1)
            )
        },
    ),
    "groups tiled where they are read": (
        "l",
        ATTENTION,
        "keys and values in the wrong order: tiled",
        {"repeat": lambda n, x, what: x.repeat(2, 1, 1)},
    ),
    "groups averaged": (
        "l",
        (),
        "averaged over the groups",
        {"repeat": lambda n, x, what: x.mean(0, keepdim=True).expand(4, -1, -1)},
    ),
    "tables of the other layout": (
        "l",
        (),
        "mix two layouts",
        {"rotate": tables_of_the_other_layout},
    ),
    "pairs of the other layout": (
        "l",
        (),
        "the right tables turn the pairs of the other",
        {"rotate": pairs_of_the_other_layout},
    ),
    "values rotated after they are recorded": (
        "l",
        ATTENTION,
        "applied to values as well, after they are recorded",
        {"mix": values_turned},
    ),
    "a reflection": ("n", (), "cosine's sign wrong in the second half", {"rotate": reflected}),
    "rotary frequencies reversed": (
        "l",
        LOGITS,
        "frequencies in reverse order",
        {"inv_freq": lambda n: Net.inv_freq(n).flip(0)},
    ),
    "rotary frequencies of the stream": (
        "n",
        ATTENTION,
        "the width d_model",
        {"inv_freq": lambda n: 1e4 ** (-torch.arange(0, 4, 2) / 64)},
    ),
    "rotary by heads": (
        "l",
        LOGITS,
        "turned by its own number",
        {
            "turn": lambda n, x, what, lay: n.rotate(
                x,
                *(
                    (torch.arange(len(x))[:, None, None] * n.inv_freq()).cos(),
                    (torch.arange(len(x))[:, None, None] * n.inv_freq()).sin(),
                ),
            )
        },
    ),
    "a prefix": ("g", STREAM, "first 3 keys", {"mask": masked(lambda i, j: (j <= i) | (j < 3))}),
    "no own key": (
        "g",
        STREAM,
        "off by one.*attends to all alike",
        {"mask": masked(lambda i, j: j < i)},
    ),
    "over heads": (
        "g",
        LOGITS,
        "over the heads, of scores that were masked",
        {"softmax": lambda n, s, lay: s.softmax(0), "mask": masked(lambda i, j: j <= i)},
    ),
    "mean of heads": (
        "l",
        STREAM,
        "averaged over the heads",
        {"softmax": lambda n, s, lay: s.softmax(-1).mean(0, keepdim=True).expand(4, -1, -1)},
    ),
    "ReLU for exp": (
        "l",
        STREAM,
        "ReLU for the exponential",
        {
            "mask": masked(lambda i, j: j <= i, 0.0),
            "softmax": lambda n, s, lay: s.relu() / (s.relu().sum(-1, keepdim=True) + 1e-9),
        },
    ),
    "a cap": (
        "l",
        LOGITS,
        r"soft-capped at 5:",
        {"scores": lambda n, q, k, lay: 5 * torch.tanh(Net.scores(n, q, k, lay) / 5)},
    ),
    "ALiBi": (
        "l",
        STREAM,
        r"ALiBi\), -0.07 for",
        {
            "scores": lambda n, q, k, lay: (
                Net.scores(n, q, k, lay)
                - 0.07 * (torch.arange(20.0)[:, None] - torch.arange(20)).to(q.dtype)
            )
        },
    ),
    "queries and keys normalised": (
        "n",
        LOGITS,
        "queries and keys normalised",
        {"qkv": normed_queries_and_keys},
    ),
    "scores clipped": (
        "g",
        (),
        r"clipped \(clamped\) to \[-1, 1\]",
        {"scores": lambda n, q, k, lay: Net.scores(n, q, k, lay).clamp(-1, 1)},
    ),
    "two heads swapped": (
        "g",
        LOGITS,
        r"heads 0 and 2 in the wrong order.*layer 1",
        {"out": swapped_heads},
    ),
    "L2 norm": (
        "g",
        STREAM,
        "sum of squares",
        {
            "normed": lambda n, x, which, *rest: (sum_of_squares if which == "ln2" else Net.normed)(
                n, x, which, *rest
            )
        },
    ),
    "one divisor": (
        "g",
        (),
        "averaged over all positions",
        {
            "normed": lambda n, x, which, lay, g, b: (
                (x - x.mean(-1, keepdim=True))
                / (x.var(-1, unbiased=False).mean() + 1e-5).sqrt()
                * g
                + b
            )
        },
    ),
    "no gate": (
        "l",
        (),
        "without its gate",
        {"post": lambda n, pre, x, lay: n.act(n.pre(x, lay, "in"))},
    ),
    "last neuron": (
        "n",
        (),
        "last neuron",
        {"down": lambda n, m, lay: without(n, "W_out", -1, lambda: Net.down(n, m, lay))},
    ),
    "last feature": (
        "g",
        STREAM,
        "last feature",
        {
            "pre": lambda n, x, lay, name="in": without(
                n, "W_in", -1, lambda: Net.pre(n, x, lay, name)
            )
        },
    ),
    "stream twice": ("g", LOGITS, "once more after the MLP", {"end": stream_twice}),
    "post-norm sum in a parallel block": (
        "n",
        LOGITS,
        "norm of the stream",
        {"mid": lambda n, x, h, a, lay: h + a},
    ),
    "stream clipped": (
        "l",
        (),
        r"clipped \(clamped\) to \[-1.5, 1.5\]",
        {"end": lambda n, mid, m, x, lay: (mid + m).clamp(-1.5, 1.5)},
    ),
    "stream scaled": (
        "l",
        LOGITS,
        r"stream after a layer multiplied by 0.9.*layer 0",
        {"end": lambda n, mid, m, x, lay: (mid + m) * (0.9 if lay == 0 else 1)},
    ),
    "values scaled": (
        "n",
        STREAM,
        "values multiplied by 0.3",
        {"v": lambda n, x, lay: 0.3 * Net.v(n, x, lay)},
    ),
    "tokens late": (
        "l",
        (),
        "the first token 0",
        {"embed": lambda n, t: Net.embed(n, torch.cat([0 * t[:1], t[:-1]]))},
    ),
    "embedding normalised": ("l", (), r"a LayerNorm \(ε = 1e-05", {"embed": normalised_start}),
    "last position twice": (
        "g",
        (),
        "off by one at the end",
        {"positions": lambda n, t: torch.arange(len(t)).clamp(max=len(t) - 2)},
    ),
    "positions again": (
        "g",
        (),
        "again in the middle",
        {"positions": lambda n, t: torch.arange(len(t)) % (len(t) // 2)},
    ),
    "positions after padding": (
        "g",
        (),
        r"position p reads vector p \+3",
        {"positions": lambda n, t: torch.arange(len(t)) + 3},
    ),
    "other weights": (
        "g",
        (),
        "as if it were made with other weights",
        {
            "unembed": lambda n, x: (
                x
                @ torch.randn(
                    48, 80, generator=torch.Generator().manual_seed(3), dtype=torch.float64
                ).to(x.dtype)
            )
        },
    ),
    "softmax in bfloat16": (
        "l",
        LOGITS,
        "the softmax is computed in bfloat16",
        {"softmax": lambda n, s, lay: s.bfloat16().softmax(-1).to(s.dtype)},
    ),
    "a norm of bfloat16": (
        "l",
        LOGITS,
        r"what a norm reads is rounded to bfloat16 \(in ln2 only",
        {
            "normed": lambda n, x, which, *rest: Net.normed(
                n, bfloat(x) if which == "ln2" else x, which, *rest
            )
        },
    ),
    "ε of a hidden norm": (
        "g",
        STREAM,
        "ε = 1e-06 and not 1e-05",
        {"eps": lambda n, which, lay: 1e-6 if which == "ln2" else 1e-5},
    ),
    "ε of a hidden norm, within its bound": (
        "g",
        STREAM,
        r"ε = 1e-06 and not 1e-05 \(in ln2\): all rows lean",
        {"eps": lambda n, which, lay: 1e-6 if (which, lay) == ("ln2", 1) else 1e-5},
    ),
}

# Of those that logits alone show, which takes seconds, every fourth one in an ordinary run.
FROM_LOGITS = [name for name, (_, shown, _, _) in MISTAKES.items() if shown == LOGITS]
ORDINARY = [n for n in MISTAKES if LONG or n not in FROM_LOGITS or n in FROM_LOGITS[1::4]]


@pytest.mark.parametrize("name", ORDINARY)
def test_a_mistake_is_named(name):
    family, shown, words, steps = MISTAKES[name]
    if shown == LOGITS:
        report = report_on(family, LOGITS, **steps)
    else:
        report = report_on(family, "float32", only=shown, **steps)
    assert not report.passed
    assert re.search(words, report.first_failure.diagnosis), str(report)


def test_an_epsilon_outside_the_root_is_told_from_all_rows():
    def normed(n, x, which, lay, g, b):
        return x / (x.pow(2).mean(-1, keepdim=True).sqrt() + 1e-5) * g

    report = report_on("l", "float32", scale=10.0, normed=normed)
    assert "outside the root: all rows lean to it" in report.first_failure.diagnosis, str(report)


def test_one_layer_with_the_weights_of_another_is_not_all_in_reverse_order():
    def first_again(w, c):
        again = {name: each.copy() for name, each in w.items()}
        for name in again:
            if again[name].shape[0] == c["L"]:
                again[name][2] = w[name][0]
        return again, c

    report = report_on("n", "float32", first_again, only=STREAM)
    assert "layer 0" in report.first_failure.diagnosis
    assert "reverse" not in report.first_failure.diagnosis
