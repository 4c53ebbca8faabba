"""Composition scores of pairs of heads, and known mistakes in computing them.

The score is ‖W_OV W_R‖ / (‖W_OV‖ ‖W_R‖) for the writer's OV circuit and the reader's circuit W_R:
W_QK, W_QKᵀ or W_OV. A circuit is left @ rightᵀ with narrow factors, stated in the language, so that
norms are those of small matrices. The steps that a mistake may replace: the factors of "writer" and
"reader", the "product", its "size", the "norm", the "divisor" and the "score". Source: Elhage et
al. 2021.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy
from sympy import Identity, Transpose

from otimes.algebra.language.linear import matadd, matmul
from otimes.algebra.mutations import Swap
from otimes.numeric.audit.analyses.copying import triangle
from otimes.numeric.audit.analyses.question import (
    Array,
    Asked,
    Replaced,
    d,
    gain,
    r,
    row_scaled,
    symbol,
    weight,
)

Pair = tuple[int, int]
Factors = tuple[sympy.MatrixExpr, sympy.MatrixExpr]

W_Q, W_K, W_V, W_O = map(weight, ("W_Q", "W_K", "W_V", "W_O"))
OUT = Transpose(W_O)
n_heads = sympy.Symbol("n_heads", positive=True, integer=True)
SIDES = {"q": (W_Q, W_K), "k": (W_K, W_Q), "v": (W_V, OUT)}
CALLED = {"q": "queries, W_QK", "k": "keys, W_QKᵀ", "v": "values, W_OV"}
FIRST = {"q": "W_Q for its W_Q W_Kᵀ", "k": "W_K for its W_K W_Qᵀ", "v": "W_V for its W_V W_O"}


@dataclass(frozen=True, slots=True)
class Circuit:
    """A matrix left @ inner @ rightᵀ, with the R of the QR decompositions of left and right."""

    left: Array
    inner: Array
    right: Array
    triangles: tuple[Array, Array]

    @classmethod
    def of(cls, asked: Asked, factors: Factors) -> "Circuit":
        """Return the circuit left @ rightᵀ of the head in question."""
        left, right = map(asked.value, factors)
        return cls(left, np.eye(left.shape[1]), right, (triangle(left), triangle(right)))

    def __matmul__(self, other: "Circuit") -> "Circuit":
        inner = self.inner @ (self.right.T @ other.left) @ other.inner
        return Circuit(self.left, inner, other.right, (self.triangles[0], other.triangles[1]))

    def small(self) -> Array:
        """Return a small matrix with the same singular values."""
        return np.asarray(self.triangles[0] @ self.inner @ self.triangles[1].T)

    def dense(self) -> Array:
        """Return the matrix as an array."""
        return np.asarray(self.left @ self.inner @ self.right.T)


Norm = Callable[[Circuit], Any]


def _frobenius(circuit: Circuit) -> Any:
    return np.linalg.norm(circuit.small())


def _spectral(circuit: Circuit) -> Any:
    return np.linalg.norm(circuit.small(), 2)


def _nuclear(circuit: Circuit) -> Any:
    return np.linalg.norm(circuit.small(), "nuc")


def _trace(writer: Circuit, reader: Circuit, norm: Norm) -> Any:
    if len(writer.left) != len(reader.right):
        return np.nan
    return ((writer @ reader).inner * (writer.left.T @ reader.right)).sum()


def _entrywise(writer: Circuit, reader: Circuit, norm: Norm) -> Any:
    one, two = writer.dense(), reader.dense()
    return np.linalg.norm(one * two) if one.shape == two.shape else np.nan


NORMS: dict[str, Norm] = {
    "the spectral": _spectral,
    "the nuclear": _nuclear,
    "the largest column sum, the 1-norm,": lambda c: np.abs(c.dense()).sum(0).max(),
    "the largest row sum, the ∞-norm,": lambda c: np.abs(c.dense()).sum(1).max(),
    "the sum of absolute entries": lambda c: np.abs(c.dense()).sum(),
    "the largest entry": lambda c: np.abs(c.dense()).max(),
}
DIVISORS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "a score that is not divided by the norms of the circuits (not normalised)": (
        lambda writer, reader, size: 1.0
    ),
    "a score divided by the writer's norm only": lambda writer, reader, size: writer,
    "a score divided by the reader's norm only": lambda writer, reader, size: reader,
    "a norm divided by itself: all scores are normalised to one": lambda writer, reader, size: size,
    "a score divided by the sum of both norms and not by their product": (
        lambda writer, reader, size: writer + reader
    ),
    "a score divided by the root of the product of norms": (
        lambda writer, reader, size: np.sqrt(writer * reader)
    ),
    "a score divided by the squared norms": lambda writer, reader, size: (writer * reader) ** 2,
    "a score divided by the smaller norm only": lambda writer, reader, size: min(writer, reader),
    "a score divided by the larger norm only": lambda writer, reader, size: max(writer, reader),
}
SCORES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "a score that is squared": lambda score, size, model: score**2,
    "the root of the score": lambda score, size, model: np.sqrt(score),
    "a score from which chance, the baseline 1/√d_model, is subtracted": (
        lambda score, size, model: score - model.d_model**-0.5
    ),
    "a score from which the baseline 1/√d_head is subtracted": (
        lambda score, size, model: score - model.d_head**-0.5
    ),
    "a score divided by chance, the baseline 1/√d_model": (
        lambda score, size, model: score * model.d_model**0.5
    ),
    "a score divided by the baseline 1/√d_head": lambda score, size, model: (
        score * model.d_head**0.5
    ),
    "a score whose numerator is squared": lambda score, size, model: score * size,
}


def composition(kind: str, asked: Asked, replaced: Replaced) -> Array:
    """Return the scores of one kind of composition, "q", "k" or "v"."""
    model = asked.model
    scores = np.full((model.n_layers, model.n_heads) * 2, np.nan)
    norm = replaced.get("norm", _frobenius)
    divisor_norm = replaced.get("divisor norm", norm)
    factors = (
        replaced.get("writer", _right)(W_V, OUT),
        replaced.get("reader", _right)(*SIDES[replaced.get("side", kind)]),
    )
    found: dict[tuple[Pair, Factors], tuple[Circuit, Any]] = {}
    for early, h, late, g in np.ndindex(scores.shape):
        if early >= late:
            continue
        writer = early, (h + replaced.get("writer head", 0)) % model.n_heads
        reader = late, (g + replaced.get("reader head", 0)) % model.n_heads
        heads = replaced.get("heads", _right)(writer, reader)
        with np.errstate(all="ignore"):
            for key in zip(heads, factors, strict=True):
                if key not in found:
                    made = Circuit.of(asked.of(*key[0]), key[1])
                    found[key] = made, divisor_norm(made)
            pair = (found[key] for key in zip(heads, factors, strict=True))
            scores[early, h, late, g] = _score(asked, replaced, norm, *pair)
        if asked.screening:
            break
    return scores


def _right(first: Any, second: Any) -> Any:
    return first, second


def _score(
    asked: Asked,
    replaced: Replaced,
    norm: Norm,
    writer: tuple[Circuit, Any],
    reader: tuple[Circuit, Any],
) -> float:
    first, second = (reader, writer) if "order" in replaced else (writer, reader)
    one, two = first[0], second[0]
    size = replaced.get("size", lambda one, two, norm: norm(one @ two))
    if len(one.right) != len(two.left):
        return float("nan")
    found = size(one, two, norm)
    divisor = replaced.get("divisor", lambda writer, reader, size: writer * reader)
    score = found / divisor(writer[1], reader[1], found)
    return float(replaced.get("score", lambda score, size, model: score)(score, found, asked.model))


def _turned(left: sympy.MatrixExpr, right: sympy.MatrixExpr) -> Factors:
    return right, left


def _first_gained(left: sympy.MatrixExpr, right: sympy.MatrixExpr) -> Factors:
    return row_scaled(gain("ln1"), left), right


def _gained(left: sympy.MatrixExpr, right: sympy.MatrixExpr) -> Factors:
    """Return the factors, with the gain folded into those that read the residual stream."""
    behind = right if right == OUT else row_scaled(gain("ln1"), right)
    return row_scaled(gain("ln1"), left), behind


def _of_all_heads(*factors: sympy.MatrixExpr) -> Factors:
    """Return the factors of all heads of a layer, concatenated, whose product is a sum."""
    every = {}
    for w in (W_Q, W_K, W_V, W_O):
        rows, columns = (n_heads * r if size == r else size for size in w.shape)
        every[w] = symbol(f"{w.name} of all heads", rows, columns)
    left, right = (factor.xreplace(every) for factor in factors)
    return left, right


def composition_mistakes(kind: str, asked: Asked, shape: tuple[int, ...]) -> Iterator[Swap]:
    """Yield the known mistakes of one kind of composition."""
    inside, centring = Identity(r), matadd(Identity(d), matmul(-1 / d, sympy.OneMatrix(d, d)))

    def out(left: sympy.MatrixExpr, right: sympy.MatrixExpr) -> Factors:
        return inside, right

    def first(left: sympy.MatrixExpr, right: sympy.MatrixExpr) -> Factors:
        return left, inside

    writers: dict[str, Callable[..., Factors]] = {
        "the writer's circuit transposed": _turned,
        "the writer's W_O for its W_V W_O": out,
        "what the writer writes centred (the mean subtracted)": lambda L, R: (
            (L, matmul(centring, R))
        ),
        "the gain of the norm folded into the writer": _first_gained,
        "the writer's W_V for its W_V W_O": lambda L, R: (inside, L),
        "the writer's QK circuit for its OV circuit": lambda L, R: (W_Q, W_K),
        "the writers of a layer summed up": _of_all_heads,
    }
    readers: dict[str, Callable[..., Factors]] = {
        "the reader's circuit transposed": _turned,
        f"the reader's {FIRST[kind]}": first,
        "the gain of the norm folded into the reader": _gained,
        "the gain of the norm folded into the side that reads only": _first_gained,
        "the readers of a layer summed up": _of_all_heads,
    }
    steps: dict[str, Replaced] = {
        **{says: {"writer": factors} for says, factors in writers.items()},
        **{says: {"reader": factors} for says, factors in readers.items()},
        "the product in the other order": {"order": "other"},
        **{
            f"another side of the reader (queries, keys and values mixed up): its {says}": {
                "side": side
            }
            for side, says in CALLED.items()
            if side != kind
        },
        "writer and reader exchanged, the table with its axes transposed": {
            "heads": lambda writer, reader: (reader, writer)
        },
        "the heads of writer and reader exchanged": {
            "heads": lambda writer, reader: ((writer[0], reader[1]), (reader[0], writer[1]))
        },
        **{
            f"another norm: {says} for the Frobenius norm": {"norm": norm}
            for says, norm in NORMS.items()
        },
        "a Frobenius norm divided by spectral norms": {"divisor norm": _spectral},
        "a Frobenius norm divided by nuclear norms": {"divisor norm": _nuclear},
        "a spectral norm divided by Frobenius norms": {
            "norm": _spectral,
            "divisor norm": _frobenius,
        },
        "the trace of the product for its norm": {"size": _trace},
        "circuits multiplied entry by entry": {"size": _entrywise},
        **{says: {"divisor": divisor} for says, divisor in DIVISORS.items()},
        **{says: {"score": score} for says, score in SCORES.items()},
        "both circuits transposed": {"writer": _turned, "reader": _turned},
        "the product in the other order, the reader's circuit transposed": {
            "order": "other",
            "reader": _turned,
        },
        "the writer's W_O and the reader's first factor alone": {"writer": out, "reader": first},
        "the gains of the norms folded into writer and reader": {
            "writer": _first_gained,
            "reader": _gained,
        },
        "squared norms that are not normalised": {
            "divisor": lambda writer, reader, size: 1.0,
            "score": lambda score, size, model: score**2,
        },
    }
    yield from (Swap(says, replaced) for says, replaced in steps.items())
    for by in range(1, asked.model.n_heads):
        for which in ("writer", "reader"):
            says = f"another head of the {which}'s layer ({by} further)"
            yield Swap(says, {f"{which} head": by})
