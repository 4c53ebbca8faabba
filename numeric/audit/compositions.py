"""Composition scores of pairs of heads, and what people compute instead.

The score is ‖W_OV W_R‖ / (‖W_OV‖ ‖W_R‖) for the writer's OV circuit and what the reader reads by:
W_QK, W_QKᵀ or its own W_OV. Ingredients: both circuits, the order, the norm, what is divided by,
and what is made of the score. A circuit is a pair of narrow factors, left @ rightᵀ, so that norms
are those of small matrices. Source: Elhage et al. 2021.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from numeric.audit.asked import Array, Asked, Formula, Mistakes, Replaced
from numeric.audit.circuits import factor
from numeric.audit.copying import triangle

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Circuit:
    """A circuit left @ rightᵀ, both narrow, with the triangles R of their QR decompositions."""

    left: Array
    right: Array
    left_triangle: Array
    right_triangle: Array

    @classmethod
    def of(cls, left: Array, right: Array) -> "Circuit":
        """Return a circuit by its two factors."""
        return cls(left, right, triangle(left), triangle(right))

    def norm(self, kind: str) -> float:
        """Return its norm: those that rotations leave alone are that of a small matrix."""
        if kind in DENSE_NORMS:
            return DENSE_NORMS[kind](self.left @ self.right.T)
        small = self.left_triangle @ self.right_triangle.T
        return float(np.linalg.norm(small, SMALL_NORMS[kind]))

    def turned(self) -> "Circuit":
        """Return the transpose."""
        return Circuit(self.right, self.left, self.right_triangle, self.left_triangle)


SMALL_NORMS: dict[str, Literal[2, "nuc", "fro"]] = {"": "fro", "spectral": 2, "nuclear": "nuc"}
DENSE_NORMS: dict[str, Callable[[Array], float]] = {
    "columns": lambda dense: float(np.abs(dense).sum(0).max()),
    "rows": lambda dense: float(np.abs(dense).sum(1).max()),
    "entries": lambda dense: float(np.abs(dense).sum()),
    "largest": lambda dense: float(np.abs(dense).max()),
}
SIDES = {"q": "queries, W_QK", "k": "keys, W_QKᵀ", "v": "values, W_OV"}


def composition(kind: str) -> Formula:
    """Return the formula of one kind of composition, "q", "k" or "v"."""

    def table(asked: Asked, replaced: Replaced) -> Array:
        model = asked.model
        scores = np.full((model.n_layers, model.n_heads) * 2, np.nan)
        side = replaced.get("side", kind)
        divided_by = replaced.get("divisor_norm", replaced.get("norm", ""))
        writers: dict[Pair, tuple[Circuit, float]] = {}
        readers: dict[Pair, tuple[Circuit, float]] = {}
        for early, h, late, g in np.ndindex(scores.shape):
            if early >= late:
                continue
            writer, reader = (early, h), (late, g)
            if replaced.get("roles") == "exchanged":
                writer, reader = reader, writer
            if replaced.get("roles") == "heads":
                writer, reader = (early, g), (late, h)
            if "writer_head" in replaced:
                writer = (early, (h + replaced["writer_head"]) % model.n_heads)
            if "reader_head" in replaced:
                reader = (late, (g + replaced["reader_head"]) % model.n_heads)
            if writer not in writers:
                one = _writer(asked, writer, replaced.get("writer", ""))
                writers[writer] = one, one.norm(divided_by)
            if reader not in readers:
                one = _reader(asked, reader, side, replaced.get("reader", ""))
                readers[reader] = one, one.norm(divided_by)
            with np.errstate(all="ignore"):
                score = _score(asked, replaced, writers[writer], readers[reader])
            scores[early, h, late, g] = score
            if asked.screening:
                break
        return scores

    return table


def _writer(asked: Asked, of: Pair, made: str) -> Circuit:
    left, right = factor(asked, "W_V", *of), factor(asked, "W_O", *of)
    if made == "gain":
        left = asked.model.part("ln1_gain", of[0])[:, None] * left
    if made == "centred":
        right = right - right.mean(0)
    if made == "W_O":
        left = np.eye(left.shape[1])
    if made == "W_V":
        left, right = np.eye(left.shape[1]), left
    if made == "QK":
        left, right = factor(asked, "W_Q", *of), factor(asked, "W_K", *of)
    if made == "sum":
        left, right = (_beside(asked, name, of[0]) for name in ("W_V", "W_O"))
    circuit = Circuit.of(left, right)
    return circuit.turned() if made == "transposed" else circuit


def _reader(asked: Asked, of: Pair, kind: str, made: str) -> Circuit:
    names = ("W_V", "W_O") if kind == "v" else ("W_Q", "W_K")
    left, right = (factor(asked, name, *of) for name in names)
    if made == "sum":
        left, right = (_beside(asked, name, of[0]) for name in names)
    if kind == "k":
        left, right = right, left
    gain = asked.model.part("ln1_gain", of[0])[:, None]
    if made in ("gain", "one_gain"):
        left = gain * left
    if made == "gain" and kind != "v":
        right = gain * right
    if made == "half":
        right = np.eye(left.shape[1])
    circuit = Circuit.of(left, right)
    return circuit.turned() if made == "transposed" else circuit


def _beside(asked: Asked, name: str, layer: int) -> Array:
    """Return the factors of all heads of a layer side by side, so that circuits are summed."""
    heads = range(asked.model.n_heads)
    return np.concatenate([factor(asked, name, layer, head) for head in heads], axis=1)


def _score(
    asked: Asked,
    replaced: Replaced,
    writer: tuple[Circuit, float],
    reader: tuple[Circuit, float],
) -> float:
    (written, of_writer), (read, of_reader) = writer, reader
    first, second = (read, written) if replaced.get("order") else (written, read)
    one, two = ((len(each.left), len(each.right)) for each in (first, second))
    fits = {"trace": one == two[::-1], "entrywise": one == two and one[1] == two[0]}
    if not fits.get(replaced.get("numerator", ""), one[1] == two[0]):
        return float("nan")
    inner = first.right.T @ second.left
    if replaced.get("numerator") == "trace":
        size = float((inner * (first.left.T @ second.right)).sum())
    elif replaced.get("numerator") == "entrywise":
        dense = (first.left @ first.right.T) * (second.left @ second.right.T)
        size = float(np.linalg.norm(dense))
    else:
        norm = replaced.get("norm", "")
        if norm in DENSE_NORMS:
            size = DENSE_NORMS[norm](first.left @ inner @ second.right.T)
        else:
            small = first.left_triangle @ inner @ second.right_triangle.T
            size = float(np.linalg.norm(small, SMALL_NORMS[norm]))
    divisor = {
        "none": 1.0,
        "writer": of_writer,
        "reader": of_reader,
        "product": size,
        "smaller": min(of_writer, of_reader),
        "larger": max(of_writer, of_reader),
        "sum": of_writer + of_reader,
        "root": np.sqrt(of_writer * of_reader),
        "squares": (of_writer * of_reader) ** 2,
    }.get(replaced.get("divisor", ""), of_writer * of_reader)
    score = size / divisor
    model = asked.model
    return float(
        {
            "squared": score**2,
            "root": np.sqrt(score),
            "less_chance": score - model.d_model**-0.5,
            "less_head_chance": score - model.d_head**-0.5,
            "over_chance": score * model.d_model**0.5,
            "over_head_chance": score * model.d_head**0.5,
            "squared_size": score * size,
        }.get(replaced.get("made", ""), score)
    )


def composition_mistakes(kind: str) -> Mistakes:
    """Return the known mistakes of one kind of composition."""

    def mistakes(asked: Asked, shape: tuple[int, ...]) -> Iterator[tuple[str, Replaced]]:
        yield "the writer's circuit transposed", {"writer": "transposed"}
        yield "the reader's circuit transposed", {"reader": "transposed"}
        yield "the product in the other order", {"order": "other"}
        yield (
            "the product in the other order, the reader's circuit transposed",
            {"order": "other", "reader": "transposed"},
        )
        yield "both circuits transposed", {"writer": "transposed", "reader": "transposed"}
        for other, says in SIDES.items():
            if other != kind:
                yield (
                    f"another side of the reader (queries, keys and values mixed up): its {says}",
                    {"side": other},
                )
        yield (
            "writer and reader exchanged, the table with its axes transposed",
            {"roles": "exchanged"},
        )
        yield "the heads of writer and reader exchanged", {"roles": "heads"}
        yield "the writer's W_O for its W_V W_O", {"writer": "W_O"}
        only = {
            "q": "W_Q for its W_Q W_Kᵀ",
            "k": "W_K for its W_K W_Qᵀ",
            "v": "W_V for its W_V W_O",
        }
        yield f"the reader's {only[kind]}", {"reader": "half"}
        yield (
            "the writer's W_O and the reader's first factor alone",
            {"writer": "W_O", "reader": "half"},
        )
        yield "what the writer writes centred (the mean subtracted)", {"writer": "centred"}
        yield "the gain of the norm folded into the writer", {"writer": "gain"}
        yield "the gain of the norm folded into the reader", {"reader": "gain"}
        yield "the gain of the norm folded into the side that reads only", {"reader": "one_gain"}
        yield (
            "the gains of the norms folded into writer and reader",
            {"writer": "gain", "reader": "gain"},
        )
        yield "another norm: the spectral for the Frobenius norm", {"norm": "spectral"}
        yield "another norm: the nuclear for the Frobenius norm", {"norm": "nuclear"}
        for norm, says in (
            ("columns", "the largest column sum, the 1-norm,"),
            ("rows", "the largest row sum, the ∞-norm,"),
            ("entries", "the sum of absolute entries"),
            ("largest", "the largest entry"),
        ):
            yield f"another norm: {says} for the Frobenius norm", {"norm": norm}
        yield "a Frobenius norm divided by spectral norms", {"divisor_norm": "spectral"}
        yield "a Frobenius norm divided by nuclear norms", {"divisor_norm": "nuclear"}
        mixed = {"norm": "spectral", "divisor_norm": ""}
        yield "a spectral norm divided by Frobenius norms", mixed
        yield "the trace of the product for its norm", {"numerator": "trace"}
        yield "circuits multiplied entry by entry", {"numerator": "entrywise"}
        yield "the writer's W_V for its W_V W_O", {"writer": "W_V"}
        yield "the writer's QK circuit for its OV circuit", {"writer": "QK"}
        yield "the writers of a layer summed up", {"writer": "sum"}
        yield "the readers of a layer summed up", {"reader": "sum"}
        for divisor, says in (
            ("none", "a score that is not divided by the norms of the circuits (not normalised)"),
            ("writer", "a score divided by the writer's norm only"),
            ("reader", "a score divided by the reader's norm only"),
            ("product", "a norm divided by itself: all scores are normalised to one"),
            ("sum", "a score divided by the sum of both norms and not by their product"),
            ("root", "a score divided by the root of the product of norms"),
            ("squares", "a score divided by the squared norms"),
            ("smaller", "a score divided by the smaller norm only"),
            ("larger", "a score divided by the larger norm only"),
        ):
            yield says, {"divisor": divisor}
        for made, says in (
            ("squared", "a score that is squared"),
            ("root", "the root of the score"),
            ("less_chance", "a score from which chance, the baseline 1/√d_model, is subtracted"),
            ("less_head_chance", "a score from which the baseline 1/√d_head is subtracted"),
            ("over_chance", "a score divided by chance, the baseline 1/√d_model"),
            ("over_head_chance", "a score divided by the baseline 1/√d_head"),
            ("squared_size", "a score whose numerator is squared"),
        ):
            yield says, {"made": made}
        yield "squared norms that are not normalised", {"divisor": "none", "made": "squared"}
        for by in range(1, asked.model.n_heads):
            yield f"another head of the writer's layer ({by} further)", {"writer_head": by}
            yield f"another head of the reader's layer ({by} further)", {"reader_head": by}

    return mistakes
