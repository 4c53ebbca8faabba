"""Chapter 11: the systems that the literature names, and what holds for each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from math import exp, fsum, log, sqrt, tanh
from typing import Any

import numpy as np
import sympy
from sympy import (
    BlockMatrix,
    HadamardProduct,
    Identity,
    MatrixExpr,
    MatrixSymbol,
    OneMatrix,
    Transpose,
    ZeroMatrix,
)
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.evaluate.arrays import evaluate
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import Family, HeadSum, matadd, matmul
from otimes.algebra.language.nonlinear import RowSoftmax
from otimes.numeric.config import Config
from otimes.numeric.encoder import encode, relative_bias
from otimes.numeric.model import Model
from otimes.numeric.random_weights import random_model
from otimes.numeric.recurrent import cell_as_sum, lstm
from otimes.numeric.rounding import gamma
from otimes.numeric.systems import count_parameters, small_config, systems
from otimes.proofs.catalogue.sources import VASWANI
from otimes.proofs.catalogue.symbols import d, m, n, size
from otimes.proofs.claims import Method, NonIdentity, Statement, Trial
from otimes.proofs.theorem import theorem

RADFORD = "Radford et al. 2019, “Language Models are Unsupervised Multitask Learners”"
BROWN = "Brown et al. 2020, “Language Models are Few-Shot Learners”, table 2.1"
DEVLIN = "Devlin et al. 2019, “BERT”; Sellam et al. 2022, “The MultiBERTs”"
RAFFEL = "Raffel et al. 2020, “Exploring the Limits of Transfer Learning with a Unified "
RAFFEL += "Text-to-Text Transformer”, §2.1"
LSTM = "Hochreiter and Schmidhuber 1997, “Long Short-Term Memory”; Gers et al. 2000 (forget gates)"
PYTHIA = "Biderman et al. 2023, “Pythia”; Touvron et al. 2023, “Llama 2”"
ALAMMAR = "Alammar 2018, “The Illustrated Transformer”"
UNIT = 2.0**-53
ARCHITECTURE = ("norm", "norm_order", "positions", "parallel", "tied", "gated", "biases")
"""What a small copy of a system has in common with it."""

t, s = sympy.symbols("t s", integer=True)
T = size("T")


def _parameters(config: Config) -> int:
    """Return the number of parameters, part by part, as a person would count them."""
    width, heads = config.d_model, config.n_heads * config.d_head
    shared = config.kv_heads * config.d_head
    biases = 0
    attention = width * (heads + 2 * shared) + heads * width
    if "b_Q" in config.biases:
        biases = heads + 2 * shared + width
    mlp = (3 if config.gated else 2) * width * config.d_mlp
    if "b_in" in config.biases:
        biases += config.d_mlp + width
    norm = 2 * width if config.norm == "layer" else width
    layer = attention + mlp + biases + 2 * norm
    whole = config.n_layers * layer + config.d_vocab * width * (1 if config.tied else 2)
    ends = norm * (int(config.final_norm) + int(config.embed_norm))
    return whole + ends + (config.n_ctx * width if config.positions == "learned" else 0)


@theorem(
    title="systems: sizes as published, and parameters as counted",
    chapter=11,
    source=f"{RADFORD}; {BROWN}; {PYTHIA}; {DEVLIN}; {RAFFEL}",
    covers=("S0-73", "S0-74", "S2-31", "S3-154", "S4-26"),
)
def systems_method() -> Method:
    """`systems` lists published models with the properties on which theorems depend: whether they
    are causal, where the norms are, how positions enter. GPT-2 and GPT-3 have norms before each
    part, learned positions and biases, so all that is said of these in chapters 2 to 6 applies. In
    Pythia the MLP reads the stream before attention (parallel), and positions are rotary, so there
    is one W_QK for each distance. Llama 2 has RMSNorm and no biases, so nothing is centred. BERT
    has its norms after each sum, so the stream is no sum of writes. T5 has no position vectors but
    biases of distances.

    The check counts the parameters part by part and compares them with the sum over all tensors.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        for each in systems():
            if each.config is not None:
                counted, plain = count_parameters(each.config), _parameters(each.config)
                yield Trial(each.name, np.float64(counted), np.float64(plain), 0.0)
                whole = np.float64(each.parameters - sum(each.extra.values()))
                yield Trial(f"the table's {each.name}", whole, np.float64(plain), 0.0)

    rests = ("feed_forward_is_sum_over_neurons",)
    return Method("otimes.numeric.systems.count_parameters", rests, trials)


def _reads_before_attention(model: Model, places: dict[str, np.ndarray]) -> Trial:
    """Return what the MLP computes in a parallel block, beside it the same from `resid_pre`."""
    x, eps = places["resid_pre.0"], model.config.norm_eps
    plain, bound = np.zeros((2, *places["mlp_pre.0"].shape))
    for at, line in enumerate(x):
        mean = fsum(line) / len(line)
        scale = (fsum((each - mean) ** 2 for each in line) / len(line) + eps) ** 0.5
        normed = [(each - mean) / scale for each in line] * model.ln2_gain[0] + model.ln2_bias[0]
        plain[at] = [
            fsum([*(normed * weight), b])
            for weight, b in zip(model.W_in[0].T, model.b_in[0], strict=True)
        ]
        sizes = (np.abs(line) + abs(mean)) / scale * np.abs(model.ln2_gain[0])
        sizes = (sizes + np.abs(model.ln2_bias[0])) @ np.abs(model.W_in[0])
        bound[at] = gamma(4 * len(line) + 20, UNIT) * (sizes + np.abs(model.b_in[0]))
    return Trial("parallel MLP", places["mlp_pre.0"], plain, bound)


SMALL = {"n_layers": 2, "n_heads": 4, "d_model": 32, "d_head": 8, "d_vocab": 11, "n_ctx": 16}
SMALL |= {"d_mlp": 48}
"""The sizes of a small copy."""


def _numbers_of(what: str, small: Config, whole: Config) -> Trial:
    """Return every number of a small configuration, beside what it should be: a share, or kept."""
    plain: dict[str, Any] = {**vars_of(whole), **SMALL}
    if whole.n_kv_heads is not None:
        plain["n_kv_heads"] = max(1, SMALL["n_heads"] * whole.n_kv_heads // whole.n_heads)
    if whole.rotary_dims:
        plain["rotary_dims"] = max(2, SMALL["d_head"] * whole.rotary_dims // whole.d_head)
    names = [name for name, each in plain.items() if isinstance(each, int | float)]
    found = [float(getattr(small, name)) for name in names]
    expected = [float(plain[name]) for name in names]
    return Trial(f"every number of {what}", np.array(found), np.array(expected), 0.0)


def vars_of(config: Config) -> dict[str, Any]:
    """Return the settings of a configuration by name."""
    return {each.name: getattr(config, each.name) for each in fields(config)}


@theorem(
    title="Small copies of the systems: what is masked has the weight zero",
    chapter=11,
    source=f"{RADFORD}; {BROWN}; {PYTHIA}; {DEVLIN}",
    covers=("S0-73", "S0-74", "S3-154", "S4-26"),
)
def small_copies_method() -> Method:
    """Small models with random weights and the architecture of each system in `systems_method`, of
    two layers, are run to test the listed properties: in decoders no position attends to a later
    one, exactly; in encoders each does; in Pythia's parallel block the MLP reads what attention
    reads, behind its own norm.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        prompt = [token % 11 for token in tokens][:6]
        for each in systems():
            if each.config is None:
                continue
            small = random_model(small_config(each.config), 0)
            for name in ARCHITECTURE:
                same = getattr(small.config, name) == getattr(each.config, name)
                yield Trial(f"{name} of {each.name}", float(same), 1.0, 0.0)
            yield _numbers_of(each.name, small.config, each.config)
            places = small.forward(prompt) if each.causal else encode(small, prompt)
            later = np.triu(np.ones((6, 6), dtype=bool), 1)
            attended = float((places["pattern.0"][:, later] > 0).mean())
            yield Trial(each.name, 1 + attended, 1.0 if each.causal else 2.0, 0.0)
            if each.config.parallel:
                yield _reads_before_attention(small, places)

    rests = ("later_tokens_have_no_gradient", "no_cache_without_a_mask")
    return Method("otimes.numeric.systems.small_config", rests, trials)


@theorem(
    title="BERT: without a mask there is nothing to cache",
    chapter=11,
    convention="row",
    source=DEVLIN,
    covers=("S0-74", "S4-26"),
)
def no_cache_without_a_mask() -> NonIdentity:
    """Without a causal mask, as in BERT, what is computed for earlier positions changes when a
    token is added: the old queries also read the new row y. So there is nothing that could be
    cached, and theorems that need the causal mask do not hold for encoders. The right-hand side is
    what the old queries read before. In the formula q are the old queries, X the old rows and y the
    new row.

    In particular every position knows the whole text. `attention_forgets_order` does hold, up to
    the position vectors.
    """
    old, new = MatrixSymbol("X", m, d), MatrixSymbol("y", 1, d)
    query = MatrixSymbol("q", n, d)
    alone = RowSoftmax(matmul(query, Transpose(old)))
    longer = RowSoftmax(BlockMatrix([[matmul(query, Transpose(old)), matmul(query, new.T)]]))
    whole = BlockMatrix([[old], [new]])
    return NonIdentity(matmul(longer, whole), matmul(alone, old))


def _layers_of_encoder(
    model: Model, tokens: Sequence[int], places: dict[str, np.ndarray]
) -> Iterator[Trial]:
    """Yield each step of a pass from what was recorded before it, with the weights of the model."""
    config, few = model.config, gamma(4 * (model.d_model + model.config.d_mlp) + 40, UNIT)
    yield Trial("embed", places["embed"], model.W_E[list(tokens)] * config.embed_scale, 0.0)
    for number in range(model.n_layers):
        layer = model.layer(number)
        read = places[f"{'ln1' if config.norms_before else 'resid_pre'}.{number}"]
        scores, out = [], np.zeros_like(read) + layer.b_O
        sizes, most = [], np.abs(out)
        for head in range(model.n_heads):
            weights = layer.head(head)
            rows = [np.einsum("ij,jk->ik", read, each) for each in (weights.W_Q, weights.W_K)]
            q, k = rows[0] + weights.b_Q, rows[1] + weights.b_K
            scores.append(np.einsum("ik,jk->ij", q, k) * config.score_scale)
            q, k = (
                np.abs(read) @ np.abs(weight) + np.abs(bias)
                for weight, bias in ((weights.W_Q, weights.b_Q), (weights.W_K, weights.b_K))
            )
            sizes.append(q @ k.T * config.score_scale)
            pattern = places[f"pattern.{number}"][head]
            values = np.einsum("ij,jk->ik", read, weights.W_V) + weights.b_V
            z = np.einsum("qk,kj->qj", pattern, values)
            out = out + np.einsum("qj,jd->qd", z, weights.W_O)
            values = np.abs(read) @ np.abs(weights.W_V) + np.abs(weights.b_V)
            most = most + pattern @ values @ np.abs(weights.W_O)
            found, bound = places[f"z.{number}"][head], gamma(len(tokens) + 40, UNIT) + few
            yield Trial(f"z of head {number}.{head}", found, z, bound * (pattern @ values))
        found = places[f"scores.{number}"]
        yield Trial(f"scores of layer {number}", found, np.array(scores), few * np.array(sizes))
        few_out = gamma(2 * model.d_model + len(tokens) + 40, UNIT)
        found = places[f"attn_out.{number}"]
        yield Trial(f"attention of layer {number}", found, out, few_out * most)
        if config.d_mlp:
            neurons, weight = places[f"mlp_post.{number}"], layer.W_out
            plain = np.einsum("ij,jk->ik", neurons, weight) + layer.b_out
            most = np.abs(neurons) @ np.abs(weight) + np.abs(layer.b_out)
            yield Trial(f"MLP of layer {number}", places[f"mlp_out.{number}"], plain, few * most)
        yield from _streams_of_encoder(model, number, places)
    end = model.n_layers - 1
    last = f"ln2.{end}" if config.post_norm and config.d_mlp else f"resid_post.{end}"
    yield Trial("the last stream", places["final"], places[last], 0.0)
    if config.final_norm:
        gain, bias = model.ln_final_gain, model.ln_final_bias
        yield _norm_by_loops(model, "ln_final", places, "final", gain, bias)


def _streams_of_encoder(
    model: Model, number: int, places: dict[str, np.ndarray]
) -> Iterator[Trial]:
    """Yield the sums, the norms and the neurons' inputs of a layer, from what they read."""
    config, layer = model.config, model.layer(number)
    pre, mid, post = (f"resid_{name}.{number}" for name in ("pre", "mid", "post"))
    plain = places[pre] + places[f"attn_out.{number}"]
    yield Trial(mid, places[mid], plain, UNIT * np.abs(plain))
    first, second = (pre, mid) if config.norms_before else (mid, post)
    added = mid
    if config.norms_before or config.post_norm:
        gain, bias = layer.ln1_gain, layer.ln1_bias
        yield _norm_by_loops(model, f"ln1.{number}", places, first, gain, bias)
        added = f"ln1.{number}" if config.post_norm else mid
    if not config.d_mlp:
        yield Trial(post, places[post], places[added], 0.0)
        return
    plain = places[added] + places[f"mlp_out.{number}"]
    yield Trial(post, places[post], plain, UNIT * np.abs(plain))
    read = added
    if config.norms_before or config.post_norm:
        gain, bias = layer.ln2_gain, layer.ln2_bias
        yield _norm_by_loops(model, f"ln2.{number}", places, second, gain, bias)
        read = f"ln2.{number}" if config.norms_before else added
    neurons = np.einsum("ij,jk->ik", places[read], layer.W_in) + layer.b_in
    sizes = np.abs(places[read]) @ np.abs(layer.W_in) + np.abs(layer.b_in)
    few = 2 * gamma(model.d_model + 2, UNIT)
    yield Trial(f"mlp_pre.{number}", places[f"mlp_pre.{number}"], neurons, few * sizes)


def _norm_by_loops(
    model: Model,
    name: str,
    places: dict[str, np.ndarray],
    read: str,
    gain: np.ndarray,
    bias: np.ndarray,
) -> Trial:
    """Return the rows behind a norm, beside those by loops over rows."""
    eps, layer_norm = model.config.norm_eps, model.config.norm == "layer"
    plain, bound = np.zeros((2, *places[read].shape))
    for at, row in enumerate(places[read]):
        mean = fsum(row) / len(row) if layer_norm else 0.0
        scale = sqrt(fsum((each - mean) ** 2 for each in row) / len(row) + eps)
        plain[at] = (row - mean) / scale * gain + bias
        # The mean is off by at most gamma times that of absolute values, and so are differences.
        size = (np.abs(row) + 2 * np.abs(row).mean()) / scale
        off = size + (1 + float(size.max())) * np.abs(plain[at] - bias) / (np.abs(gain) + 1e-300)
        bound[at] = 4 * gamma(len(row) + 10, UNIT) * (off * np.abs(gain) + np.abs(bias))
    return Trial(name, places[name], plain, bound)


@theorem(
    title="encode: the pass without a mask",
    chapter=11,
    source=f"{DEVLIN}; {VASWANI}",
    covers=("S0-74", "S4-26", "S3-153"),
)
def encode_method() -> Method:
    """`encode` runs a model without a mask, as an encoder. It is compared with a computation head
    by head. Checked also: without position vectors, shuffled tokens give shuffled activations
    (`attention_forgets_order`), and keys that are padding have the weight zero, exactly.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if model.config.positions not in ("none", "learned", "shortformer") or not model.n_layers:
            return
        config = replace(model.config, positions="none")
        bare = model.changed({}, config)
        order = np.random.default_rng(0).permutation(len(tokens))
        first = encode(bare, tokens)
        yield from _layers_of_encoder(bare, tokens, first)
        second = encode(bare, [tokens[at] for at in order])
        sizes = np.abs(first["resid_pre.0"]).max() * np.abs(model.W_V[0]).max()
        sizes *= np.abs(model.W_O[0]).max() * model.d_model * model.d_head * model.n_heads
        few = gamma(model.d_model + model.d_head + len(tokens) + 40, UNIT)
        scores = first["scores.0"][:, order][:, :, order]
        spread = np.abs(scores).max() + 1
        yield Trial("scores", second["scores.0"], scores, 40 * few * spread * model.d_head)
        pattern = first["pattern.0"][:, order][:, :, order]
        bound = 160 * few * spread * model.d_head
        yield Trial("patterns", second["pattern.0"], pattern, bound * pattern)
        keys = np.arange(len(tokens)) < len(tokens) - 2
        padded = encode(bare, tokens, keys=keys)["pattern.0"]
        yield Trial("padding", 1 + padded[..., -2:], np.ones_like(padded[..., -2:]), 0.0)

    return Method("ot.encode", ("attention_forgets_order", "no_cache_without_a_mask"), trials)


@theorem(
    title="T5: a bias that depends on the query alone changes nothing",
    chapter=11,
    convention="row",
    source=RAFFEL,
    covers=("S4-26",),
)
def bias_of_the_query_changes_nothing() -> Statement:
    """In T5, positions enter as a number B_ij, for each distance and head, that is added to the
    score of query i and key j. A bias that depends on the query alone, c_i, changes no attention
    weight, because softmax ignores what is constant along a row. S are the other scores.

    So only differences within the table of biases matter. A constant added to the whole table
    cannot be seen, nor can a head whose biases are all equal. It is the same reason as in
    `key_bias_is_irrelevant`.
    """
    bias, of_query = MatrixSymbol("B", n, n), MatrixSymbol("c", n, 1)
    scores = MatrixSymbol("S", n, n)
    shifted = matadd(scores, bias, matmul(of_query, OneMatrix(1, n)))
    return Statement(RowSoftmax(shifted), RowSoftmax(matadd(scores, bias)), on_models=False)


@theorem(
    title="relative_bias: buckets of distances",
    chapter=11,
    source=RAFFEL,
    covers=("S4-26",),
)
def relative_bias_method() -> Method:
    """`relative_bias` computes T5's table of position biases: each distance falls into a bucket,
    and the bucket has a number. It is compared entry by entry, with buckets found by comparing
    powers instead of logarithms.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        buckets, most, count = 32, 128, 40
        table = np.random.default_rng(1).standard_normal((buckets, 3))
        for both in (True, False):
            half = buckets // 2 if both else buckets
            exact = half // 2
            plain = np.zeros((3, count, count))
            for query in range(count):
                for key in range(count):
                    far = abs(key - query) if both else max(query - key, 0)
                    bucket = far
                    if far >= exact:
                        # far ≥ exact · (most/exact)^(k/(half - exact)), in whole numbers
                        wide = half - exact
                        steps = [
                            step
                            for step in range(wide)
                            if far**wide * exact**step >= exact**wide * most**step
                        ]
                        bucket = exact + max(steps)
                    bucket += half if both and key > query else 0
                    plain[:, query, key] = table[bucket]
            found = relative_bias(table, count, most, both)
            yield Trial(f"both directions: {both}", found, plain, 0.0)

    return Method("ot.relative_bias", ("bias_of_the_query_changes_nothing",), trials)


@theorem(
    title="LSTM: the cell is a gated sum over time",
    chapter=11,
    source=LSTM,
    covers=("S4-26",),
)
def cell_is_a_gated_sum() -> Statement:
    """The cell of an LSTM, a kind of recurrent network, is a weighted sum over the past: c_t = f_t
    ∘ c_{t−1} + i_t ∘ g_t. What was written s steps ago is multiplied by all forget gates since
    then. In the formula steps are numbered backwards from now, and each step is the matrix
    `[[diag(f), i ∘ g], [0, 1]]` on the cell with a 1 below it.

    It resembles attention, but the weights are products of gates and not a softmax: they do not sum
    to one, and each unit of the cell has its own.
    """
    f, i, g = (Family(name, (T,), d, 1) for name in ("f", "i", "g"))
    written = HadamardProduct(i[t], g[t])

    def step(kept: MatrixExpr, added: MatrixExpr) -> MatrixExpr:
        return BlockMatrix([[kept, added], [ZeroMatrix(1, d), Identity(1)]])

    def since(steps: sympy.Expr) -> MatrixExpr:
        return LayerProduct(DiagMatrix(f[s]), (s, steps), reverse=True)

    return Statement(
        LayerProduct(step(DiagMatrix(f[t]), written), (t, T), reverse=True),
        step(since(T), HeadSum(matmul(since(t), written), (t, T))),
        on_models=False,
    )


@theorem(
    title="lstm: gates by loops, and the cell as a sum",
    chapter=11,
    source=LSTM,
    covers=("S4-26",),
)
def lstm_method() -> Method:
    """`lstm` runs an LSTM layer. It is compared, on the embeddings of a prompt, with loops over
    units, and its last cell with the sum over all earlier positions of what is left of each
    (`cell_is_a_gated_sum`).
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        rng = np.random.default_rng(2)
        x, hidden = model.part("W_E", list(tokens))[:5, :6], 3
        W_x, W_h = rng.standard_normal((x.shape[1], 12)), rng.standard_normal((hidden, 12))
        places = lstm(x, W_x, W_h, np.full(12, 0.1))
        c, h = [0.0] * hidden, [0.0] * hidden
        plain: dict[str, list[list[float]]] = {name: [] for name in "ifgoch"}
        for at in x:
            pre = [
                fsum([*(at * W_x[:, k]), *(np.array(h) * W_h[:, k]), 0.1])
                for k in range(4 * hidden)
            ]
            sigma = [1 / (1 + exp(-each)) for each in pre]
            g = [tanh(each) for each in pre[2 * hidden : 3 * hidden]]
            c = [sigma[hidden + u] * c[u] + sigma[u] * g[u] for u in range(hidden)]
            h = [sigma[3 * hidden + u] * tanh(c[u]) for u in range(hidden)]
            gates = dict(zip("ifgo", np.reshape(sigma, (4, hidden)).tolist(), strict=True))
            for name, each in {**gates, "g": g, "c": c, "h": h}.items():
                plain[name].append(each)
        # Each step multiplies an earlier error of h by at most ‖W_h‖, and adds that of its sums.
        spread = 1 + np.abs(W_h).sum()
        each_step = gamma(40, UNIT) * (np.abs(x).max() * np.abs(W_x).sum() + spread)
        bound = each_step * sum(spread**k for k in range(len(x)))
        for name, each in plain.items():
            yield Trial(f"{name} at every step", places[name], np.array(each), bound)
        parts = cell_as_sum(places)[:, -1]
        sizes = np.abs(parts).sum(axis=0)
        yield Trial("the cell", parts.sum(axis=0), places["c"][-1], gamma(4 * len(x), UNIT) * sizes)

    return Method("ot.lstm", ("cell_is_a_gated_sum",), trials)


@theorem(
    title="The worked softmax of The Illustrated Transformer",
    chapter=11,
    source=f"{ALAMMAR}, “Self-Attention in Detail”",
    covers=("S2-32",),
)
def illustrated_transformer_method() -> Method:
    """A popular introduction computes attention for two scores, 112 and 96: divided by √64 they are
    14 and 12, whose softmax is printed as 0.88 and 0.12. The odds are e² in any case, since only
    the difference counts. The softmax used here is compared with exp computed directly, and with
    the printed numbers up to their rounding.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        scores = MatrixSymbol("S", 1, 2)
        pattern = RowSoftmax(matmul(sympy.Rational(1, 8), scores))
        found = evaluate(pattern, {"S": np.array([[112.0, 96.0]])})[0]
        plain = np.array([1 / (1 + exp(-2)), 1 / (1 + exp(2))])
        yield Trial("the weights", found, plain, gamma(20, UNIT) * plain)
        yield Trial("as printed", np.round(found, 2), np.array([0.88, 0.12]), 0.0)
        yield Trial("log odds", log(found[0] / found[1]), 2.0, gamma(60, UNIT) * 2)

    return Method("ot.evaluate", ("softmax_ignores_row_constants",), trials)
