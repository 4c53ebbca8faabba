"""What the lessons show of the bundled models: numbers and figures, computed from the weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from figures import bars, blocks, figure, pattern
from lesson_prompt import POSITION, chance, number, power, prompt, run, sizes
from otimes.numeric.circuits.composition import composition_scores
from otimes.numeric.circuits.copying import copying_scores
from otimes.numeric.paths.ensemble import paths as ensemble


def tensor_products() -> dict[str, str]:
    """Return the values of the lesson on ⊗: the head 0.1, which attends to the token before."""
    model, places = run()
    _, texts = prompt()
    weights, stream = places["pattern.0"][1], places["resid_pre.0"]
    n, d = stream.shape
    ov = (model.W_V[0, 1] @ model.W_O[0, 1]).T  # in the column convention
    whole = np.kron(weights, ov) @ stream.reshape(-1)
    apart = abs(whole.reshape(n, d) - places["head_out.0"][1]).max()
    shown = pattern(weights, texts, "head 0.1")
    four = weights[:4, :4]
    return {
        **sizes(),
        "entries": f"{(n * d) ** 2:,}",
        "stored": f"{n * n + 2 * d * model.d_head:,}",
        "apart": power(apart),
        "previous": f"{np.diagonal(weights, -1).min():.2f}",
        "shift": figure(
            shown,
            "The pattern of head 0.1: each row is a token that looks, each column one that is"
            " looked at. The largest weight of each row is printed.",
        ),
        "blocks": figure(
            blocks(four, "W", "the matrix A ⊗ W for four positions"),
            f"$A \\otimes W$ for the first four positions. Each square is a {d} × {d} block: a copy"
            " of $W$, times one entry of $A$.",
        ),
    }


def heads() -> dict[str, str]:
    """Return the values of the lesson on heads: the induction heads of layer 1."""
    model, places = run()
    tokens, texts = prompt()
    stream, z = places["resid_pre.1"], places["z.1"]
    weights = places["pattern.1"][3]
    ov = model.W_V[1, 3] @ model.W_O[1, 3]
    singular = np.linalg.svd(ov, compute_uv=False)
    concatenated = np.concatenate(list(z), axis=1) @ model.W_O[1].reshape(-1, model.d_model)
    token = tokens[POSITION + 1]
    each = [float(out[POSITION] @ model.W_U[:, token]) for out in places["head_out.1"]]
    return {
        **sizes(),
        "rank": str(np.linalg.matrix_rank(ov)),
        "largest_singular": f"{singular[0]:.1f}",
        "smallest_singular": f"{singular[model.d_head - 1]:.1f}",
        "ov_entries": f"{model.d_model**2:,}",
        "factors": f"{2 * model.d_model * model.d_head:,}",
        "head_apart": power(abs(weights @ stream @ ov - places["head_out.1"][3]).max()),
        "concat_apart": power(abs(concatenated - sum(places["head_out.1"])).max()),
        "attends": f"{weights[POSITION, POSITION - 5]:.2f}",
        "pattern": figure(
            pattern(weights, texts, "head 1.3"),
            "The pattern of head 1.3. In the second half of the prompt it looks at the token after"
            " the last occurrence of the same token: it is an induction head.",
        ),
        "writes": figure(
            bars(each, [f"head 1.{h}" for h in range(len(each))], "logits", "what each head adds"),
            "What each head of layer 1 adds to the logit of the line end, where the model has read"
            " `import os` for the second time.",
        ),
        "sum_of_heads": f"{sum(each):.2f}",
    }


def paths() -> dict[str, str]:
    """Return the values of the lesson on paths: one logit, as a sum over paths."""
    model, places = run()
    tokens, _ = prompt()
    token = tokens[POSITION + 1]
    found = ensemble(model, tokens)
    orders = [float(value) for value in found.by_order(POSITION, token)]
    virtual = np.asarray(found.virtual_heads(POSITION, token))
    logits = places["logits"][POSITION]
    heads_, layers = model.n_heads, model.n_layers
    names = ["no head", "one head", "two heads"]
    top = found.top(6, POSITION, token).paths
    return {
        **sizes(),
        "paths": str((1 + heads_) ** layers),
        "virtual": str(heads_**layers),
        "gpt2_paths": f"{13**12:,}",
        "mean_order": f"{12 * 12 / 13:.2f}",
        "chance": f"{100 * chance(logits, token):.0f}",
        "logit": f"{float(logits[token]):.2f}",
        "direct": number(orders[0]),
        "single": number(orders[1]),
        "pairs": number(orders[2]),
        "up_to_one": number(orders[0] + orders[1]),
        "largest_pair": f"{np.ceil(100 * abs(virtual).max()) / 100:.2f}",
        "closure": power(abs(sum(orders) - float(logits[token]))),
        "orders": figure(
            bars(orders, names, "logits", "the logit by order"),
            "The logit of the line end after the second `import os`, split by the number of heads"
            " on the path.",
        ),
        "top": figure(
            bars(
                [float(p.value) for p in top],
                [str(p).partition(":")[0] for p in top],
                "logits",
                "top paths",
            ),
            f"The six largest of the {(1 + heads_) ** layers} paths.",
        ),
    }


def circuits() -> dict[str, str]:
    """Return the values of the lesson on QK: the score of head 0.1, by tokens and positions."""
    model, places = run()
    tokens = places["resid_pre.0"]
    parts = {"token": tokens, "position": places["qk_in.0"] - tokens}
    labels, values = [], []
    for asks, query in parts.items():
        for found, keys in parts.items():
            labels.append(f"{asks} → {found}")
            values.append(_margin(query[POSITION], keys, (0, 1), POSITION - 1))
    ranked = np.linalg.matrix_rank(model.W_Q[0, 1] @ model.W_K[0, 1].T)
    return {
        **sizes(),
        "query": str(POSITION + 1),
        "margin": f"{sum(values):.1f}",
        "rank": str(ranked),
        "terms": figure(
            bars(values, labels, "units of the score", "the margin by terms"),
            "The margin of the token before, in the scores of the second `os` in head 0.1, by what"
            " the query and the key read.",
        ),
    }


def induction() -> dict[str, str]:
    """Return the values of the lesson on induction: what the key of head 1.3 reads."""
    model, places = run()
    query, key = places["qk_in.1"][POSITION], POSITION - 5
    position = places["qk_in.1"] - places["resid_pre.1"]
    own = _margin(query, places["resid_pre.0"] + position, (1, 3), key)
    told = [_margin(query, write, (1, 3), key) for write in places["head_out.0"]]
    back = [np.diagonal(weights, -1).mean() for weights in places["pattern.0"]]
    writers = [f"0.{h}" for h, weight in enumerate(back) if weight > 0.5]
    scores = composition_scores(model, "K")
    ((pair, score),) = scores.top(1)
    copying = copying_scores(model).values
    return {
        **sizes(),
        "attends": f"{places['pattern.1'][3][POSITION, key]:.2f}",
        "own": f"{own:.1f}",
        "told": f"{sum(told):.1f}",
        "writers": f"{', '.join(writers[:-1])} and {writers[-1]}",
        "chance": f"{1 / np.sqrt(model.d_model):.3f}",
        "score": f"{score:.3f}",
        "pair": f"{pair['writer']} and {pair['reader']}",
        "copying": f"{copying[1, 3]:.2f}",
        "copying_first": number(copying[0, 1]),
        "vocabulary": f"{model.d_vocab:,}",
        "keys": figure(
            bars(
                [own, *told],
                ["itself", *[f"head 0.{h}" for h in range(len(told))]],
                "units of the score",
                "the margin by what the key reads",
            ),
            "The margin of the line end after the first `os`, in the scores of the second `os` in"
            " head 1.3, by who has written what its key reads.",
        ),
    }


def _margin(query: Any, keys: Any, head: tuple[int, int], key: int) -> float:
    """Return how far the score of a key is above the mean of the others, from POSITION."""
    model, _ = run()
    layer, number = head
    scores = (query @ model.W_Q[layer, number]) @ (keys @ model.W_K[layer, number]).T
    seen = scores[: POSITION + 1] / np.sqrt(model.d_head)
    return float(seen[key] - np.delete(seen, key).mean())
