"""Auditing what people compute *from* a model: circuits, scores, attributions, lenses.

Each analysis is written once, as a formula with a *mistake* argument: without one it is what the
value should be, with one what people compute instead. The distance granted is measured as for a
pass: 16 times what four runs deviate whose weights and places are moved by one unit of rounding of
the value's type. A diagnosis is a mistake that reproduces the value within its own distance.

    ov_circuit, qk_circuit      [d_model, d_model] of one head
    copying_score               of one head, or [layer, head]
    q_, k_, v_composition       [writer layer, head, reader layer, head]; only earlier writers count
    folded_weights              a mapping: gains and biases of the norms moved into what reads them
    direct_logit_attribution    [layer, head, pos, d_vocab]
    logit_lens                  [n_layers + 1, pos, d_vocab]
    path_term                   [pos, d_vocab] through two heads, layer and head being pairs
    svd                         (U, S, Vᵀ) of a head's OV circuit

Conventions: rows, so that W_OV = W_V W_O. Source: Elhage et al. 2021; nostalgebraist 2020.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from algebra.errors import OtimesError
from numeric.audit.collect import plain
from numeric.audit.evaluate import GRANTED, RUNS
from numeric.audit.findings import Finding, Gauge, Report
from numeric.config import listed
from numeric.functions import centred, norm_scale
from numeric.model import Model
from numeric.processing import fold_norm_biases, fold_norm_gains
from numeric.rounding.precision import UNIT_ROUNDOFF, worst_ratio

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
    if mistake == "gain":
        W_V = _gain(asked, layer) * W_V
    product = W_V @ W_O
    if mistake == "transposed":
        return np.asarray(product.T)
    if mistake == "scaled":
        return np.asarray(product / np.sqrt(asked.model.d_head))
    return np.asarray(product)


def qk_circuit(asked: Asked, mistake: str = "") -> Array:
    """Return W_Q W_Kᵀ of a head."""
    layer, head = asked.one_head()
    head += {"next_head": 1, "head_before": -1}.get(mistake, 0)
    Q = asked.weight("W_V" if mistake == "values" else "W_Q", layer, head)
    K = asked.weight("W_K", layer, head)
    if mistake == "gain":
        Q, K = _gain(asked, layer) * Q, _gain(asked, layer) * K
    product = {"of_queries": lambda: Q @ Q.T, "of_keys": lambda: K @ K.T}.get(
        mistake, lambda: Q @ K.T
    )()
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
    if mistake == "bare":
        small = W_O @ W_V
    elif mistake == "embeddings":
        small = (W_O @ E.T) @ (E @ W_V)
    else:
        small = (W_O @ U) @ (E @ W_V)
    if mistake == "singular":
        values = np.linalg.svd(E @ W_V @ W_O @ U, compute_uv=False)
        return np.asarray(values.sum() / np.abs(values).sum())
    values = np.linalg.eigvals(small)
    if mistake == "fraction":
        return np.asarray((values.real > 0).mean())
    if mistake == "real_sizes":
        return np.asarray(values.real.sum() / np.abs(values.real).sum())
    if mistake == "size_of_sum":
        return np.asarray(np.abs(values.sum()) / np.abs(values).sum())
    return np.asarray(values.real.sum() / np.abs(values).sum())


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
    return size / (norms[0] * norms[1])


def direct_logit_attribution(asked: Asked, mistake: str = "") -> Array:
    """Return what each head writes into each logit, behind the final norm."""
    model, config = asked.model, asked.model.config
    names = [f"z.{layer}" for layer in range(model.n_layers)]
    places = asked.places(["final", *names])
    final = places["final"]
    heads = np.stack(
        [places[n] @ asked.moved(model.part("W_O", layer)) for layer, n in enumerate(names)]
    )
    if mistake == "bias_in_heads":
        heads = heads + model.part("b_O")[:, None, None] / model.n_heads
    if config.final_norm and mistake != "no_norm":
        by = heads if mistake == "own_scale" else final
        scale = norm_scale(by, config.norm, config.norm_eps)
        kept = heads if mistake == "not_centred" else centred(heads, config.norm)
        heads = kept / scale
        if mistake != "no_gain":
            heads = heads * model.part("ln_final_gain")
    return np.asarray(heads @ asked.moved(model.part("W_U")))


def logit_lens(asked: Asked, mistake: str = "") -> Array:
    """Return the logits of the stream before each layer and at the end, each by its own norm."""
    model, config = asked.model, asked.model.config
    names = [f"resid_pre.{layer}" for layer in range(model.n_layers)]
    places = asked.places([*names, "final"])
    rows = np.stack([places[name] for name in (*names, "final")])
    if mistake == "increments":
        rows = np.concatenate([rows[:1], np.diff(rows, axis=0)])
    if config.final_norm and mistake != "no_norm":
        by = rows[-1:] if mistake == "final_scale" else rows
        scaled = centred(rows, config.norm) / norm_scale(by, config.norm, config.norm_eps)
        gain, bias = model.part("ln_final_gain"), model.part("ln_final_bias")
        scaled = scaled if mistake == "no_gain" else scaled * gain
        rows = scaled if mistake == "no_bias" else scaled + bias
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
    }.get(mistake, lambda: second @ first)()
    circuit = two @ one if mistake == "circuits_reversed" else one @ two
    circuit = circuit.T if mistake == "transposed" else circuit
    return np.asarray(mixed @ places["embed"] @ circuit @ asked.moved(model.part("W_U")))


_HEADS = {
    "next_head": "another head (the next)",
    "head_before": "another head (the one before)",
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
            "of_queries": "W_Q W_Qᵀ for W_Q W_Kᵀ",
            "of_keys": "W_K W_Kᵀ for W_Q W_Kᵀ",
            **_HEADS,
        },
    ),
    "copying_score": (
        copying_score,
        {
            "bare": "the circuit on the stream and not on the vocabulary",
            "embeddings": "W_Eᵀ for W_U",
            "singular": "singular values for eigenvalues",
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
        },
    ),
    "logit_lens": (
        logit_lens,
        {
            "no_norm": "no final norm",
            "no_gain": "no gain of the final norm",
            "no_bias": "no bias of the final norm",
            "no_b_U": "no b_U",
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
        },
    ),
}
OTHERS = ("folded_weights", "svd")


def audit_analysis(
    name: str,
    value: Any,
    model: Model,
    tokens: Any = None,
    layer: Any = None,
    head: Any = None,
) -> Report:
    """Return the report on something computed from a model; see the module for names and shapes.

    >>> from numeric.random_weights import random_model
    >>> m = random_model()
    >>> audit_analysis("ov_circuit", m.W_V[0, 1] @ m.W_O[0, 1], m, layer=0, head=1).passed
    True
    >>> wrong = audit_analysis("ov_circuit", (m.W_V[0, 1] @ m.W_O[0, 1]).T, m, layer=0, head=1)
    >>> wrong.first_failure.diagnosis
    'matches W_O W_V for W_V W_O: the circuit transposed, as columns have it'

    Raises: OtimesError for an analysis that is not known, or a question that is not complete.
    """
    if name not in SAYS and name not in OTHERS:
        raise OtimesError(f"there is no analysis {name!r}; known are {listed([*SAYS, *OTHERS])}")
    rows = None if tokens is None else model.check_tokens(np.asarray(tokens).reshape(-1))
    asked = Asked(model, rows, layer, head)
    if name == "folded_weights":
        return _folded_weights(value, model)
    if name == "svd":
        return _svd(value, asked)
    analysis, mistakes = SAYS[name]
    shown, dtype = plain(value)
    unit = UNIT_ROUNDOFF.get(dtype, UNIT_ROUNDOFF["float64"])
    gauges: tuple[Gauge, ...] = ()
    expected = analysis(asked, "")
    if shown.shape != expected.shape:
        why = f"has the shape {shown.shape}, and {expected.shape} is expected"
        return _report(name, dtype, _finding(name, "", why))
    ratio, error, bound = _ratio(analysis, asked, "", shown, unit)
    if ratio > 1 and name == "logit_lens":
        other = _ratio(analysis, asked, "final_scale", shown, unit)
        if other[0] <= 1:
            ratio, error, bound = other
            gauges = (Gauge(name, "all rows are divided by the scale of the last stream"),)
    if ratio <= 1:
        return Report(name, dtype, 0, {name: ratio}, (), gauges)
    fitting = [
        said
        for mistake, said in mistakes.items()
        if analysis(asked, mistake).shape == shown.shape
        and _ratio(analysis, asked, mistake, shown, unit)[0] <= 1
    ]
    diagnosis = f"matches {'; or '.join(fitting)}" if fitting else ""
    finding = _finding(name, diagnosis, "", (ratio, error, bound))
    return Report(name, dtype, 0, {name: ratio}, (finding,))


def _ratio(
    analysis: Analysis, asked: Asked, mistake: str, shown: Array, unit: float
) -> tuple[float, float, float]:
    """Return error/bound, error and bound, the bound being measured."""
    right = analysis(asked, mistake)
    claimed = np.isfinite(right)
    largest = 0.0
    for run in range(RUNS):
        rng = np.random.default_rng(run)
        moved = analysis(
            Asked(asked.model, asked.tokens, asked.layer, asked.head, rng, unit), mistake
        )
        largest = max(largest, float(np.abs(moved - right)[claimed].max(initial=0.0)))
    bound = GRANTED * largest + 8 * unit * np.abs(right)
    error = np.abs(shown - right)[claimed].max(initial=0.0)
    return (
        worst_ratio(shown[claimed], right[claimed], bound[claimed]),
        float(error),
        float(bound[claimed].max(initial=0.0)),
    )


def _finding(
    name: str, diagnosis: str, note: str, figures: tuple[float, float, float] | None = None
) -> Finding:
    ratio, error, bound = figures or (float("inf"), float("inf"), 0.0)
    return Finding(name, None, None, error, bound, ratio, diagnosis, estimated=True, note=note)


def _report(name: str, dtype: str, finding: Finding) -> Report:
    return Report(name, dtype, 0, {name: finding.ratio}, (finding,))


def _folded_weights(value: Mapping[str, Any], model: Model) -> Report:
    """Compare weights whose norms were folded, and say which fold was left out."""
    biases = fold_norm_biases(model)
    both = fold_norm_gains(biases)
    candidates = {"": both, "biases folded and gains not": biases, "nothing folded": model}
    if model.config.norm == "layer":
        plain_gain = fold_norm_gains(model.changed(_without_biases(model)))
        candidates["gains folded and biases lost"] = plain_gain
    shown = {name: plain(each) for name, each in value.items()}
    dtype = max((d for _, d in shown.values()), key=lambda d: UNIT_ROUNDOFF.get(d, 0.0))
    unit = UNIT_ROUNDOFF.get(dtype, UNIT_ROUNDOFF["float64"])

    def ratios(right: Model) -> dict[str, float]:
        found = {}
        for name, (array, _) in shown.items():
            if name not in right.config.tensor_shapes() or right.part(name).shape != array.shape:
                found[name] = float("inf")
                continue
            ours = right.part(name)
            size = np.abs(ours) + np.abs(ours).max(initial=0.0)
            found[name] = worst_ratio(array, ours, 8 * np.sqrt(model.d_model) * unit * size)
        return found

    every = {said: ratios(right) for said, right in candidates.items()}
    wrong = [name for name, ratio in every[""].items() if ratio > 1]
    if not wrong:
        return Report("folded_weights", dtype, 0, every[""], ())
    fits = [said for said, each in every.items() if said and all(r <= 1 for r in each.values())]
    diagnosis = f"matches {'; or '.join(fits)}" if fits else ""
    findings = tuple(
        Finding(name, None, None, float("nan"), 0.0, every[""][name], diagnosis,
                note=f"is not as folding makes it{': it ' + diagnosis if diagnosis else ''}")
        for name in wrong
    )  # fmt: skip
    return Report("folded_weights", dtype, 0, every[""], findings)


def _without_biases(model: Model) -> dict[str, Array]:
    names = ("ln1_bias", "ln2_bias", "ln_final_bias")
    return {n: np.zeros_like(model.part(n)) for n in names if n in model.weights}


def _svd(value: Sequence[Any], asked: Asked) -> Report:
    """Compare (U, S, Vᵀ) with the OV circuit that they should make; signs are free."""
    matrix = ov_circuit(asked)
    (U, dtype), (S, _), (W, _) = (plain(each) for each in value)
    unit = UNIT_ROUNDOFF.get(dtype, UNIT_ROUNDOFF["float64"])
    size = float(np.linalg.norm(matrix, 2))
    granted = 64 * unit * np.sqrt(max(matrix.shape)) * size
    true = np.linalg.svd(matrix, compute_uv=False)

    def made(left: Array, values: Array, right: Array) -> float:
        try:
            return float(np.abs((left * values) @ right - matrix).max())
        except ValueError:
            return float("inf")

    rank = len(S)
    off = max(made(U, S, W), float(np.abs(S - true[:rank]).max()))
    ratio = off / granted
    if ratio <= 1:
        return Report("svd", dtype, 0, {"svd": ratio}, ())
    says: dict[str, Callable[[], float]] = {
        "V for Vᵀ": lambda: made(U, S, W.T),
        "Uᵀ for U": lambda: made(U.T, S, W),
        "squared singular values": lambda: made(U, np.sqrt(np.abs(S)), W),
        "the matrix transposed": lambda: made(W.T, S, U.T),
        "U and Vᵀ without singular values": lambda: made(U, true[:rank], W),
    }
    fitting = [said for said, misfit in says.items() if misfit() <= granted]
    diagnosis = f"matches {'; or '.join(fitting)}" if fitting else ""
    return _report("svd", dtype, _finding("svd", diagnosis, "", (ratio, off, granted)))
