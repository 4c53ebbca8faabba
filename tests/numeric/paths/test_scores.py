"""Attention scores: each term against a product of the streams, all of them against the pass."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError
from otimes.numeric.paths.ensemble import paths
from tests.numeric.loops import turned
from tests.numeric.paths.cases import DEEP, case, close, enumeration, on_case
from tests.numeric.paths.enumeration import Enumeration


def streams_of(every: Enumeration, layer: int) -> dict[str, np.ndarray]:
    """What each component brings to queries and keys, before W_Q and W_K, by its name."""
    c, n = every.c, len(every.tokens)
    parts = {"embed": every.places["embed"]}
    if c.positions == "learned":
        parts["positions"] = every.W["W_pos"][:n]
    for below in range(layer):
        written = {}
        for head in range(c.n_heads):
            written[f"{below}.{head}"] = every.places[f"head_out.{below}"][head]
        if "b_O" in every.W:
            written[f"b_O.{below}"] = np.tile(every.W["b_O"][below], (n, 1))
        if every.through_mlps:
            read = parts if c.parallel else {**parts, **written}
            out = {name: every.mlp(below, rows, False) for name, rows in read.items()}
            parts = {k: rows + out.get(k, 0.0) for k, rows in {**parts, **written}.items()}
            parts[f"mlp.{below}"] = every.mlp(below, np.zeros((n, c.d_model)), True)
        else:
            parts |= written
            if c.d_mlp:
                parts[f"mlp.{below}"] = every.places[f"mlp_out.{below}"]
    recorded = every.places[f"resid_pre.{layer}"]
    read = {name: every.normed(rows, recorded, "ln1", layer, False) for name, rows in parts.items()}
    if c.positions == "shortformer":
        read["positions"] = every.W["W_pos"][:n]
    if "ln1_bias" in every.W:
        read["bias"] = np.tile(every.W["ln1_bias"][layer], (n, 1))
    elif "b_Q" in every.W:
        read["bias"] = np.zeros_like(recorded)
    return read


@pytest.mark.parametrize("name", ["two_layer", "induction", *DEEP])
def test_terms_of_the_six_index_tensor(name: str) -> None:
    model, _ = case(name)
    every, on_prompt = enumeration(name), on_case(name)
    c, query = model.config, 4
    for layer, head in product(range(c.n_layers), range(c.n_heads)):
        found = on_prompt.scores(layer, head, query)
        group = head // (c.n_heads // c.kv_heads)
        q, k = {}, {}
        for part, rows in streams_of(every, layer).items():
            q[part] = rows @ every.W["W_Q"][layer, head]
            k[part] = rows @ every.W["W_K"][layer, group]
            if part == "bias" and "b_Q" in every.W:
                q[part] = q[part] + every.W["b_Q"][layer, head]
            if part == "bias" and "b_K" in every.W:
                k[part] = k[part] + every.W["b_K"][layer, group]
        assert set(found.names) == set(q)
        expected = np.zeros(found.terms.shape)
        for a, b in product(range(len(found.names)), repeat=2):
            for key in range(query + 1):
                one, other = q[found.names[a]][query], k[found.names[b]][key]
                if c.positions == "rotary":
                    one, other = turned(c, list(one), query), turned(c, list(other), key)
                expected[a, b, key] = np.dot(one, other) / math.sqrt(c.d_head)
        close(found.terms, expected)
        close(found.scores(), every.places[f"scores.{layer}"][head, query, : query + 1])


@pytest.mark.parametrize("name", ["induction", "deep without positions", "deep gpt2"])
def test_compositions(name: str) -> None:
    model, _ = case(name)
    found = on_case(name).scores(1, 2, 5)
    by = found.by_composition()
    assert list(by) == ["direct", "Q", "K", "Q+K"]
    close(sum(by.values()), found.scores())
    heads = [at for at, part in enumerate(found.names) if part[0].isdigit()]
    others = [at for at in range(len(found.names)) if at not in heads]
    sides = {"direct": (others, others), "Q": (heads, others), "K": (others, heads)}
    for composition, (queries, keys) in {**sides, "Q+K": (heads, heads)}.items():
        close(by[composition], sum(found.terms[a, b] for a, b in product(queries, keys)))
    assert len(heads) == model.n_heads
    if not model.config.biases and model.config.positions == "none":
        assert found.terms.shape[:2] == (1 + model.n_heads, 1 + model.n_heads)


def test_induction_heads_find_their_keys_by_k_composition() -> None:
    """The story of the induction model, told by numbers: what a repeated token's query matches."""
    from otimes.numeric.metrics import repeated_prompts

    model, _ = case("induction")
    (prompt,) = repeated_prompts(model.d_vocab, period=16, n_prompts=1)
    query, after_the_earlier = 24, 24 - 16 + 1
    by = paths(model, prompt).scores(1, 2, query).by_composition()
    ahead = {
        name: row[after_the_earlier] - np.delete(row, after_the_earlier).mean()
        for name, row in by.items()
    }
    assert max(ahead, key=ahead.__getitem__) == "K"


def test_there_is_no_such_head() -> None:
    with pytest.raises(OtimesError, match="head 2.0 is out of range: random has 2 layers"):
        paths(*case("attention only")).scores(2, 0, 0)
