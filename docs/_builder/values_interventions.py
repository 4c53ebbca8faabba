"""The numbers and figures of the lesson on interventions: patches of the induction heads."""

from __future__ import annotations

from typing import Any

from charts import bar_pairs, table
from figures import figure
from lesson_prompt import POSITION, number, power, prompt, run, shown, sizes
from otimes.numeric.interventions.hooks import hook
from otimes.numeric.interventions.passes import intervene
from otimes.numeric.interventions.patching import activation_patching
from otimes.numeric.tokenizer import load_tokenizer

COPIED, MATCHED = " as", " re"
"""What replaces the first line end, which is copied, and the first ` os`, which is matched."""


def values() -> dict[str, str]:
    """Return the numbers and figures of the lesson."""
    model, places = run()
    tokens, words = prompt()
    clean, token = tokens[: POSITION + 1], tokens[POSITION + 1]
    (copied,), (matched,) = map(load_tokenizer().encode, (COPIED, MATCHED))
    other = [*clean[:2], copied, *clean[3:]]
    unmatched = [clean[0], matched, *clean[2:]]
    difference = float(places["logits"][POSITION, token] - places["logits"][POSITION, copied])
    there = model.forward(other)["logits"][-1]
    without = model.forward(unmatched)["logits"][-1]
    rows, columns = ["layer 0", "layer 1"], [f"head {h}" for h in range(model.n_heads)]

    def patched(corrupt: Any, foil: Any, kind: str, direction: str = "denoise") -> Any:
        found = activation_patching(
            model, clean, corrupt, token, foil, -1, kind=kind, direction=direction
        )
        return found.values

    asked = (other, copied)
    scores, broken = patched(*asked, "z"), 1 - patched(*asked, "z", "noise")
    v, k = patched(*asked, "v"), patched(unmatched, None, "k")
    keys, stream = patched(unmatched, None, "z"), patched(*asked, "resid_pre")
    labels = [f"head {layer}.{h}" for layer in range(2) for h in range(model.n_heads)]
    return {
        **sizes(),
        **_ablations(model, places, token, labels),
        "clean": number(difference),
        "corrupt": number(float(there[token] - there[copied])),
        "clean_logit": number(float(places["logits"][POSITION, token])),
        "unmatched_logit": number(float(without[token])),
        "best": number(float(scores[1].max())),
        "best_head": f"1.{int(scores[1].argmax())}",
        "sum_of_scores": number(float(scores[1].sum())),
        "sum_of_values": number(float(v[1].sum())),
        "agree": power(float(abs(scores[1] - broken[1]).max())),
        "differ": number(float(abs(scores[0] - broken[0]).max())),
        "first_layer": number(float(abs(scores[0]).max())),
        "matched_best": number(float(keys[0].max())),
        "matched_head": f"0.{int(keys[0].argmax())}",
        "of_keys": number(float(k[1].sum())),
        "by_head": figure(
            table(scores, rows, columns, "scores of patching each head"),
            "The corrupt prompt has another token where the line end was copied from. The score of"
            " putting what each head mixed (`z`) on the clean prompt into the corrupt pass."
            " Outlined scores are negative.",
        ),
        "by_position": figure(
            table(
                stream,
                ["before layer 0", "before layer 1"],
                [shown(word) for word in words[: POSITION + 1]],
                "scores of patching the residual stream",
            ),
            "The same for the residual stream, at each position.",
        ),
        "matched": figure(
            table(keys, rows, columns, "scores of patching each head, with another corrupt prompt"),
            "The same heads, and another corrupt prompt: here the first ` os` is replaced by"
            " ` re`, and the line end after it stays.",
        ),
    }


def _ablations(model: Any, places: Any, token: int, labels: list[str]) -> dict[str, str]:
    """Return the direct logit of each head beside what is lost when it writes nothing."""
    tokens = prompt()[0]
    logit = float(places["logits"][POSITION, token])
    direct, lost = [], []
    for layer in range(model.n_layers):
        for head in range(model.n_heads):
            out = places[f"head_out.{layer}"][head][POSITION]
            direct.append(float(out @ model.W_U[:, token]))
            changed = intervene(model, tokens, {hook(f"z.{layer}", heads=head): "zero"})
            lost.append(logit - float(changed["logits"][POSITION, token]))
    first = max(range(model.n_heads), key=lambda h: lost[h])
    layer_0 = intervene(model, tokens, {"z.0": "zero"})["logits"][POSITION, token]
    return {
        "first_head": labels[first].removeprefix("head "),
        "first_direct": number(direct[first]),
        "first_lost": number(lost[first]),
        "lost_together": number(logit - float(layer_0)),
        "lost_sum": number(sum(lost[: model.n_heads])),
        "last_apart": power(max(abs(a - b) for a, b in zip(direct[4:], lost[4:], strict=True))),
        "ablated": figure(
            bar_pairs(
                direct,
                lost,
                labels,
                ("direct contribution", "lost without the head"),
                "direct contributions and effects of zero ablation",
            ),
            "The logit of the line end: what each head adds directly, and what is lost when the"
            " head writes nothing.",
        ),
    }
