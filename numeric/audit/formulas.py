"""The formulas of analyses, each with a *mistake* argument: what people compute instead.

Circuits, copying scores, composition scores, direct logit attribution, the logit lens and the term
of a path. Without a mistake a formula gives what the value should be. Conventions: rows, so that
W_OV = W_V W_O. Source: Elhage et al. 2021; nostalgebraist 2020.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from algebra.errors import OtimesError
from numeric.config import check_pre_norm
from numeric.functions import centred, norm_scale
from numeric.model import Model

Array = np.ndarray


@dataclass(slots=True)
class Asked:
    """What an analysis is asked about; `moved` moves every number that it reads, for the scale."""

    model: Model
    tokens: Array | None
    layer: Any
    head: Any
    rng: np.random.Generator | None = None
    unit: float = 0.0

    def moved(self, array: Array) -> Array:
        """Return numbers that the analysis reads, moved by a rounding if that is what is tried."""
        if self.rng is None:
            return array
        sign = self.rng.integers(0, 2, array.shape) * 2 - 1
        return np.asarray(array * (1 + 2 * self.unit * sign))

    def weight(self, name: str, layer: int, head: int) -> Array:
        """Return a weight of one head."""
        return self.moved(self.model.part(name, layer)[head % self.model.n_heads])

    def places(self, names: Sequence[str]) -> dict[str, Array]:
        """Return places of the reference pass."""
        if self.tokens is None:
            raise OtimesError("this analysis is one of a prompt: give tokens=")
        found = self.model.forward(self.tokens, list(names))
        return {name: self.moved(each) for name, each in found.items()}

    def one_head(self) -> tuple[int, int]:
        """Return the layer and head that are asked about."""
        if not isinstance(self.layer, int) or not isinstance(self.head, int):
            raise OtimesError("this analysis is one of a head: give layer= and head= as numbers")
        if not 0 <= self.layer < self.model.n_layers or not 0 <= self.head < self.model.n_heads:
            raise OtimesError(
                f"there is no head {self.layer}.{self.head} in {self.model.name}, which has "
                f"{self.model.n_layers} layers of {self.model.n_heads} heads"
            )
        return self.layer, self.head


Analysis = Callable[[Asked, str], Array]


def _gain(asked: Asked, layer: int) -> Array:
    return asked.model.part("ln1_gain", layer)[:, None]


def ov_circuit(asked: Asked, mistake: str = "") -> Array:
    """Return W_V W_O of a head."""
    layer, head = asked.one_head()
    head += {"next_head": 1, "head_before": -1}.get(mistake, 0)
    letter = {"keys": "W_K", "queries": "W_Q"}.get(mistake, "W_V")
    W_V, W_O = asked.weight(letter, layer, head), asked.weight("W_O", layer, head)
    if mistake == "summed":
        return sum_over_heads(asked, ov_circuit)
    if mistake == "gain":
        W_V = _gain(asked, layer) * W_V
    product = W_V @ W_O
    if mistake == "transposed":
        return np.asarray(product.T)
    if mistake == "scaled":
        return np.asarray(product / np.sqrt(asked.model.d_head))
    return np.asarray(product)


def sum_over_heads(asked: Asked, circuit: "Analysis") -> Array:
    """Return a circuit summed over the heads of the layer that is asked about."""
    layer, _ = asked.one_head()
    model = asked.model
    each = [
        circuit(Asked(model, None, layer, head, asked.rng, asked.unit), "")
        for head in range(model.n_heads)
    ]
    return np.asarray(sum(each))


def qk_circuit(asked: Asked, mistake: str = "") -> Array:
    """Return W_Q W_Kᵀ of a head."""
    layer, head = asked.one_head()
    head += {"next_head": 1, "head_before": -1}.get(mistake, 0)
    if mistake == "summed":
        return sum_over_heads(asked, qk_circuit)
    Q = asked.weight("W_V" if mistake == "values" else "W_Q", layer, head)
    K = asked.weight("W_V" if mistake == "values_for_keys" else "W_K", layer, head)
    if mistake == "gain":
        Q, K = _gain(asked, layer) * Q, _gain(asked, layer) * K
    product = {"of_queries": lambda: Q @ Q.T, "of_keys": lambda: K @ K.T}.get(
        mistake, lambda: Q @ K.T
    )()
    if mistake == "symmetric":
        return np.asarray((product + product.T) / 2)
    if mistake == "transposed":
        return np.asarray(product.T)
    if mistake == "scaled":
        return np.asarray(product / np.sqrt(asked.model.d_head))
    return np.asarray(product)


def copying_score(asked: Asked, mistake: str = "") -> Array:
    """Return Σ Re λ / Σ |λ| of the full OV circuit of a head, or of all."""
    model = asked.model
    if asked.layer is None:
        return np.array(
            [
                [
                    copying_score(
                        Asked(model, None, layer, head, asked.rng, asked.unit), mistake
                    ).item()
                    for head in range(model.n_heads)
                ]
                for layer in range(model.n_layers)
            ]
        )
    layer, head = asked.one_head()
    W_V, W_O = asked.weight("W_V", layer, head), asked.weight("W_O", layer, head)
    E, U = asked.moved(model.part("W_E")), asked.moved(model.part("W_U"))
    values = _eigenvalues(asked, mistake, (E, W_V, W_O, U))
    total, sizes = values.real.sum(), np.abs(values).sum()
    if mistake.startswith("singular"):
        sizes = np.linalg.svd(E @ W_V @ W_O @ U, compute_uv=False).sum()
    others: dict[str, Callable[[], float]] = {
        "singular": lambda: 1.0,
        "fraction": lambda: float((values.real > 0).mean()),
        "real_sizes": lambda: total / np.abs(values.real).sum(),
        "size_of_sum": lambda: np.abs(values.sum()) / sizes,
        "positive_share": lambda: values.real[values.real > 0].sum() / sizes,
        "trace": lambda: total,
        "trace_over_norm": lambda: total / np.linalg.norm(E @ W_V @ W_O @ U),
    }
    return np.asarray(others[mistake]() if mistake in others else total / sizes)


def _eigenvalues(asked: Asked, mistake: str, factors: tuple[Array, Array, Array, Array]) -> Array:
    """Return the eigenvalues of E W_V W_O U that are not zero, or of another circuit."""
    E, W_V, W_O, U = factors
    if mistake == "of_queries_and_keys":
        layer, head = asked.one_head()
        W_V, W_O, U = asked.weight("W_Q", layer, head), asked.weight("W_K", layer, head).T, E.T
    if mistake == "bare":
        small = W_O @ W_V
    elif mistake == "embeddings":
        small = (W_O @ E.T) @ (E @ W_V)
    elif mistake == "unembeddings":
        small = (W_O @ U) @ (U.T @ W_V)
    elif mistake == "transposed":
        small = (W_V.T @ U) @ (E @ W_O.T)
    else:
        small = (W_O @ U) @ (E @ W_V)
    return np.asarray(np.linalg.eigvals(small))


def _composition(kind: str) -> Analysis:
    def composition(asked: Asked, mistake: str = "") -> Array:
        model = asked.model
        table = np.full((model.n_layers, model.n_heads) * 2, np.nan)
        for index in np.ndindex(table.shape):
            early, h, late, g = index
            if early < late:
                table[index] = _one_score(asked, kind, mistake, (early, h), (late, g))
        return table

    return composition


def _one_score(
    asked: Asked, kind: str, mistake: str, writer: tuple[int, int], reader: tuple[int, int]
) -> float:
    W_V, W_O = asked.weight("W_V", *writer), asked.weight("W_O", *writer)
    Q, K = asked.weight("W_Q", *reader), asked.weight("W_K", *reader)
    written = W_V @ W_O
    qk, ov = Q @ K.T, asked.weight("W_V", *reader) @ asked.weight("W_O", *reader)
    kind = {"other_side": {"q": "k", "k": "q", "v": "q"}[kind]}.get(mistake, kind)
    read = {"q": qk, "k": qk.T, "v": ov}[kind]
    if mistake == "transposed":
        written = written.T
    if mistake == "reader_transposed":
        read = read.T
    product = read @ written if mistake == "order" else written @ read
    kinds: dict[str, Literal[2, "nuc", "fro"]] = {"spectral": 2, "nuclear": "nuc"}
    order = kinds.get(mistake, "fro")
    size, *norms = (float(np.linalg.norm(m, order)) for m in (product, written, read))
    if mistake == "unnormalised":
        return size
    if mistake == "one_norm":
        return size / norms[0]
    if mistake == "squared":
        return (size / (norms[0] * norms[1])) ** 2
    if mistake == "less_chance":
        return size / (norms[0] * norms[1]) - float(asked.model.d_model**-0.5)
    return size / (norms[0] * norms[1])


def direct_logit_attribution(asked: Asked, mistake: str = "") -> Array:
    """Return what each head writes into each logit, behind the final norm."""
    model, config = asked.model, asked.model.config
    check_pre_norm(config, "direct logit attribution")
    stream = "resid_pre.0" if model.n_layers else "final"
    names = [f"z.{layer}" for layer in range(model.n_layers)]
    places = asked.places(["final", *names])
    final = places["final"]
    heads = np.stack(
        [places[n] @ asked.moved(model.part("W_O", layer)) for layer, n in enumerate(names)]
    )
    if mistake.startswith("bias_in_heads"):
        shared = model.n_heads if mistake == "bias_in_heads" else 1
        heads = heads + model.part("b_O")[:, None, None] / shared
    if mistake == "no_value_bias":
        heads = heads - (model.part("b_V")[:, :, None] @ model.part("W_O"))
    if config.final_norm and mistake != "no_norm":
        by = {
            "own_scale": lambda: heads,
            "last_scale": lambda: final[-1:],
            "first_scale": lambda: asked.places([stream])[stream],
        }.get(mistake, lambda: final)()
        scale = norm_scale(by, config.norm, config.norm_eps)
        heads = heads if mistake == "not_centred" else centred(heads, config.norm)
        heads = heads if mistake == "no_scale" else heads / scale
        heads = heads if mistake == "no_gain" else heads * model.part("ln_final_gain")
        heads = heads + model.part("ln_final_bias") if mistake == "norm_bias" else heads
    return np.asarray(heads @ asked.moved(model.part("W_U")))


def logit_lens(asked: Asked, mistake: str = "") -> Array:
    """Return the logits of the stream before each layer and at the end, each by its own norm."""
    model, config = asked.model, asked.model.config
    layers = range(model.n_layers)
    names = [f"resid_pre.{layer}" for layer in layers]
    other = {"after_attention": "resid_mid", "outputs": "mlp_out" if config.d_mlp else "attn_out"}
    if mistake in other and model.n_layers:
        names = ["resid_pre.0", *(f"{other[mistake]}.{layer}" for layer in layers)]
    else:
        names = [*names, "final"]
    places = asked.places(names)
    rows = np.stack([places[name] for name in names])
    if mistake == "increments":
        rows = np.concatenate([rows[:1], np.diff(rows, axis=0)])
    if config.final_norm and mistake != "no_norm":
        by = {"final_scale": rows[-1:], "first_scale": rows[:1]}.get(mistake, rows)
        scaled = rows if mistake == "not_centred" else centred(rows, config.norm)
        if mistake != "no_scale":
            scaled = scaled / norm_scale(by, config.norm, config.norm_eps)
        gain, bias = model.part("ln_final_gain"), model.part("ln_final_bias")
        scaled = scaled if mistake in ("no_gain", "no_affine") else scaled * gain
        rows = scaled if mistake in ("no_bias", "no_affine") else scaled + bias
    logits = rows @ asked.moved(model.part("W_U"))
    return np.asarray(logits if mistake == "no_b_U" else logits + model.part("b_U"))


def path_term(asked: Asked, mistake: str = "") -> Array:
    """Return $A_2 A_1 W_E W_{OV}^1 W_{OV}^2 W_U$ of two heads, in a model without norms."""
    model = asked.model
    if not model.config.bare:
        raise OtimesError("a path term is audited in models without norms, MLPs and biases")
    try:
        (early, late), (h, g) = asked.layer, asked.head
    except TypeError:
        raise OtimesError("a path term is one of two heads: layer=(0, 1), head=(2, 3)") from None
    places = asked.places(["embed", f"pattern.{early}", f"pattern.{late}"])
    first, second = places[f"pattern.{early}"][h], places[f"pattern.{late}"][g]
    one = asked.weight("W_V", early, h) @ asked.weight("W_O", early, h)
    two = asked.weight("W_V", late, g) @ asked.weight("W_O", late, g)
    mixed = {
        "patterns_reversed": lambda: first @ second,
        "first_pattern_only": lambda: first,
        "second_pattern_only": lambda: second,
        "patterns_multiplied": lambda: first * second,
        "patterns_transposed": lambda: (second @ first).T,
    }.get(mistake, lambda: second @ first)()
    circuit = two @ one if mistake == "circuits_reversed" else one @ two
    circuit = circuit.T if mistake == "transposed" else circuit
    circuit = {"first_circuit_only": one, "second_circuit_only": two}.get(mistake, circuit)
    source = places["embed"]
    if mistake in ("from_stream", "from_later_stream"):
        stream = f"resid_pre.{early if mistake == 'from_stream' else late}"
        source = asked.places([stream])[stream]
    return np.asarray(mixed @ source @ circuit @ asked.moved(model.part("W_U")))


_HEADS = {
    "next_head": "another head (the next)",
    "head_before": "another head (the one before)",
    "summed": "the sum over all heads of the layer",
    "gain": "weights with the gain of the norm folded in",
}
SAYS: dict[str, tuple[Analysis, dict[str, str]]] = {
    "ov_circuit": (
        ov_circuit,
        {
            "transposed": "W_O W_V for W_V W_O: the circuit transposed, as columns have it",
            "keys": "W_K for W_V",
            "queries": "W_Q for W_V",
            "scaled": "a circuit divided by √d_head",
            **_HEADS,
        },
    ),
    "qk_circuit": (
        qk_circuit,
        {
            "transposed": "W_K W_Qᵀ for W_Q W_Kᵀ: the circuit transposed",
            "scaled": "a circuit divided by √d_head",
            "values": "W_V for W_Q",
            "values_for_keys": "W_V for W_K",
            "symmetric": "the symmetric part of the circuit",
            "of_queries": "W_Q W_Qᵀ for W_Q W_Kᵀ",
            "of_keys": "W_K W_Kᵀ for W_Q W_Kᵀ",
            **_HEADS,
        },
    ),
    "copying_score": (
        copying_score,
        {
            "bare": "the circuit on the stream and not on the vocabulary",
            "embeddings": "W_Eᵀ for W_U, the embedding on both sides",
            "unembeddings": "W_Uᵀ for W_E, the unembedding on both sides",
            "transposed": "the circuit transposed, W_Oᵀ W_Vᵀ for W_V W_O",
            "of_queries_and_keys": "the QK circuit for the OV circuit",
            "singular": "singular values for eigenvalues",
            "singular_sizes": "singular values for the sizes of eigenvalues",
            "positive_share": "the positive eigenvalues only, for all",
            "trace": "the trace alone: not divided by Σ |λ| (not normalised)",
            "trace_over_norm": "the trace divided by the Frobenius norm and not by Σ |λ|",
            "fraction": "the fraction of positive eigenvalues",
            "real_sizes": "Σ |Re λ| for Σ |λ|",
            "size_of_sum": "|Σ λ| for Σ Re λ",
        },
    ),
    **{
        f"{kind}_composition": (
            _composition(kind),
            {
                "transposed": "the writer's circuit transposed",
                "reader_transposed": "the reader's circuit transposed",
                "less_chance": "a score from which chance, the baseline 1/√d_model, is subtracted",
                "order": "the product in the other order",
                "other_side": "another side of the reader (queries, keys and values mixed up)",
                "spectral": "another norm: the spectral for the Frobenius norm",
                "nuclear": "another norm: the nuclear for the Frobenius norm",
                "unnormalised": "a score that is not divided by the norms of the circuits",
                "one_norm": "a score divided by the writer's norm only",
                "squared": "a score that is squared",
            },
        )
        for kind in "qkv"
    },
    "direct_logit_attribution": (
        direct_logit_attribution,
        {
            "own_scale": "per-part norm statistics: each part is divided by its own scale",
            "no_norm": "no final norm",
            "no_gain": "no gain of the final norm",
            "not_centred": "parts that are not centred",
            "bias_in_heads": "b_O shared out among the heads",
            "bias_in_heads_whole": "b_O added to every head",
            "no_value_bias": "heads without b_V",
            "norm_bias": "the bias of the final norm added to every part",
            "no_scale": "parts that are not divided by the scale of the final norm",
            "last_scale": "the scale of the last position at every position",
            "first_scale": "the scale of the first stream, the embedding, and not of the last",
        },
    ),
    "logit_lens": (
        logit_lens,
        {
            "no_norm": "no final norm",
            "no_gain": "no gain of the final norm",
            "no_bias": "no bias of the final norm",
            "no_b_U": "no b_U",
            "no_affine": "no gain and no bias of the final norm",
            "not_centred": "streams that are not centred: no mean is subtracted",
            "no_scale": "streams that are not divided by their scale",
            "first_scale": "the scale of the first stream, the embedding, in every row",
            "after_attention": "the streams after attention (resid_mid)",
            "outputs": "what each part writes out, and not the stream",
            "increments": "what each layer adds, and not the stream",
        },
    ),
    "path_term": (
        path_term,
        {
            "patterns_reversed": "the product of patterns reversed: A₁ A₂ for A₂ A₁",
            "circuits_reversed": "the product of circuits reversed",
            "transposed": "the circuits transposed",
            "first_pattern_only": "the first pattern only",
            "second_pattern_only": "the second pattern only",
            "patterns_multiplied": "patterns multiplied entry by entry",
            "patterns_transposed": "the product of patterns transposed",
            "first_circuit_only": "the first head's OV circuit only",
            "second_circuit_only": "the second head's OV circuit only: the first is missing",
            "from_stream": "the stream with positions for the embedding of the tokens",
            "from_later_stream": "the stream before the later head for the embedding",
        },
    ),
}
