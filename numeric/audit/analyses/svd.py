"""Audit of (U, S, Vᵀ) of a head's OV circuit; only the signs of vectors are free.

Three things are diagnosed: the layout of U and Vᵀ, transformations of the singular values, and the
decomposed matrix, which is searched among the known mistakes of a circuit.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sympy

from otimes.algebra.errors import OtimesError
from otimes.numeric.audit.analyses.circuits import OV, circuit, circuit_mistakes, ov_circuit
from otimes.numeric.audit.analyses.question import (
    NO_FIGURES,
    RIGHT,
    Array,
    Asked,
    Figures,
    Replaced,
)
from otimes.numeric.audit.analyses.transforms import altered
from otimes.numeric.audit.analyses.values import shown, without_numbers
from otimes.numeric.rounding.precision import UNIT_ROUNDOFF

INFINITE = float("inf")
NEARLY = 1e-3
"""Matrices whose singular values are further off than that are not decomposed to be sure."""


def svd_misfit(value: Any, asked: Asked) -> tuple[str, str, str, Figures]:
    """Return the type of (U, S, Vᵀ), a diagnosis, a note, and ratio, error and bound."""
    matrix = ov_circuit(asked, RIGHT)
    U, S, W, dtype = _triple(value, matrix)
    unit = UNIT_ROUNDOFF.get(dtype, UNIT_ROUNDOFF["float64"])
    relative = 64 * unit * np.sqrt(len(matrix))
    true = np.linalg.svd(matrix, compute_uv=False)
    granted = relative * float(true[0])
    note = ""
    for array, called in ((U, "U"), (S, "S"), (W, "Vᵀ")):
        where = without_numbers(array)
        note = note or (f"has no numbers: {called} {where}" if where else "")
    if note:
        return dtype, "", note, NO_FIGURES
    if len(U) != len(matrix) or W.shape[1] != len(matrix) or len(S) > len(true):
        note = f"has arrays of the shapes {_shapes(U, S, W)}, and {_expected(asked)} is expected"
        figures = NO_FIGURES
    else:
        off = max(_misfit(U, S, W, matrix), float(np.abs(S - true[: len(S)]).max(initial=0.0)))
        slanted = _not_orthonormal(U, S, W, granted)
        ratio = max(off / granted if granted else off and INFINITE, slanted / relative)
        if ratio <= 1:
            return dtype, "", "", (ratio, off, granted)
        figures = (ratio, off, granted) if off > granted else (ratio, slanted, relative)
    said = [
        says
        for says, left, values, right in _arranged(U, S, W, true)
        if _misfit(left, values, right, matrix) <= granted
    ]
    left_out = true[len(S) :].max(initial=0.0) > granted
    if not said and left_out and _cut_off(U, S, W, matrix) <= granted:
        said = [f"the SVD cut off behind {len(S)} singular values"]
    if not said:
        known = _circuits(asked, U, S, W)
        said = [
            f"the SVD of {says}"
            for says, made in known
            if made.shape != matrix.shape or np.abs(made - matrix).max() > granted
            if _misfit(U, S, W, made) <= granted or _cut_off(U, S, W, made) <= granted
        ]
    if not said and not note:
        said = _of_others(U, S, W, granted, asked, matrix, true)
    return dtype, f"matches {'; or '.join(said[:3])}" if said else "", note, figures


def _shapes(*arrays: Array) -> str:
    return ", ".join(str(each.shape) for each in arrays)


def _expected(asked: Asked) -> str:
    d, r = asked.model.d_model, asked.model.d_head
    return f"({d}, {r}), ({r},), ({r}, {d}) or ({d}, {d}), ({d},), ({d}, {d})"


def _triple(value: Any, matrix: Array) -> tuple[Array, Array, Array, str]:
    """Return U, S, Vᵀ and their dtype. Raises: OtimesError if the value is no such triple."""
    d = len(matrix)
    says = f"svd takes three arrays (U, S, Vᵀ) of a [{d}, {d}] circuit and got"
    do = "give what np.linalg.svd returns"
    if hasattr(value, "shape"):
        raise OtimesError(f"{says} one array of the shape {tuple(value.shape)}: {do}")
    if not isinstance(value, Sequence) or len(value) != 3:
        of = f" of {len(value)}" if isinstance(value, Sequence) else ""
        raise OtimesError(f"{says} a {type(value).__name__}{of}: {do}")
    (U, dtype), (S, _), (W, _) = map(shown, value, ("U", "S", "Vᵀ"))
    if S.ndim == 2 and S.shape[0] == S.shape[1] and not (S - np.diag(np.diag(S))).any():
        S = np.diag(S)
    if (U.ndim, S.ndim, W.ndim) != (2, 1, 2):
        raise OtimesError(f"{says} arrays of the shapes {_shapes(U, S, W)}: {do}")
    return U, S, W, dtype


def _misfit(left: Array, values: Array, right: Array, matrix: Array) -> float:
    """Return the largest |U S Vᵀ - matrix|, or infinity if the shapes do not fit."""
    rank = len(values)
    left, right = left[:, :rank], right[:rank]
    if left.shape != (len(matrix), rank) or right.shape != (rank, matrix.shape[1]):
        return INFINITE
    with np.errstate(all="ignore"):
        off = float(np.abs((left * values) @ right - matrix).max(initial=0.0))
    return off if np.isfinite(off) else INFINITE


def _cut_off(left: Array, values: Array, right: Array, matrix: Array) -> float:
    """Return the largest error of U S Vᵀ as the truncated SVD of a matrix."""
    rank = len(values)
    if rank >= min(matrix.shape):
        return INFINITE
    if left.shape != (len(matrix), rank) or right.shape != (rank, matrix.shape[1]):
        return INFINITE
    diagonal = (left * (matrix @ right.T)).sum(0)  # of Uᵀ M V, which is S: soon seen if it is not
    if np.abs(diagonal - values).max(initial=0.0) > NEARLY * np.abs(values).max(initial=0.0):
        return INFINITE
    U, S, W = np.linalg.svd(matrix)
    return _misfit(left, values, right, (U[:, :rank] * S[:rank]) @ W[:rank])


def _not_orthonormal(U: Array, S: Array, W: Array, granted: float) -> float:
    """Return the largest error of orthonormality of the vectors of nonzero singular values."""
    which = granted < S
    off = 0.0
    for vectors in (U.T, W):
        some = vectors[: len(S)][which] if len(vectors) >= len(S) else vectors
        off = max(off, float(np.abs(some @ some.T - np.eye(len(some))).max(initial=0.0)))
    return off


def _arranged(
    U: Array, S: Array, W: Array, true: Array
) -> Iterator[tuple[str, Array, Array, Array]]:
    """Yield the triple with known changes of U, Vᵀ and S undone."""
    rank, largest = len(S), true[0]
    true = true[:rank] if rank <= len(true) else np.pad(true, (0, rank - len(true)))
    with np.errstate(all="ignore"):
        undone: dict[str, Callable[[], Array]] = {
            "": lambda: S,
            "squared singular values": lambda: np.sqrt(np.abs(S)),
            "the roots of the singular values": lambda: S**2,
            "singular values in ascending order": lambda: S[::-1],
            "singular values divided by the largest (normalised)": lambda: S * largest,
            "singular values divided by their sum (normalised)": lambda: S * true.sum(),
            "singular values divided by the Frobenius norm (normalised)": lambda: (
                S * np.linalg.norm(true)
            ),
            "squared singular values divided by their sum (normalised)": lambda: np.sqrt(
                np.abs(S) * (true**2).sum()
            ),
            "the logarithms of the singular values": lambda: np.exp(S),
            "the reciprocals of the singular values": lambda: 1 / S,
        }
        values = {says: undo() for says, undo in undone.items()}
    if (S < 0).any():
        values["negative singular values: S is never less than zero"] = np.abs(S)
        values["the negated singular values"] = -S
    if np.abs(S - 1).max(initial=0.0) <= 1e-4:
        values["U and Vᵀ without singular values: all are one"] = true
    arranged = {
        "": (U, W),
        "V for Vᵀ, which is transposed": (U, W.T),
        "Uᵀ for U": (U.T, W),
        "Uᵀ for U and V for Vᵀ": (U.T, W.T),
        "the matrix transposed: U and V swapped": (W.T, U.T),
        "U and Vᵀ exchanged without being transposed": (W, U),
    }
    if (np.diff(S) > 0).any() and (np.diff(S) >= 0).all():
        turned = U[:, :rank][:, ::-1], W[:rank][::-1]
        arranged["U and Vᵀ with their columns and rows in reverse order"] = turned
    for how, (left, right) in arranged.items():
        for says, each in values.items():
            if how or says:
                said = " and ".join(part for part in (how, says) if part)
                yield said, left, each, right
    yield "singular values that are in U or Vᵀ already (scaled by S)", U, np.ones_like(S), W


def _of_others(
    U: Array, S: Array, W: Array, granted: float, asked: Asked, matrix: Array, true: Array
) -> list[str]:
    """Return the diagnoses for a triple of which only some arrays are right."""
    rank = len(S)
    if rank > min(U.shape[1], len(W)):
        return []
    signs = np.sign(np.einsum("ir,ij,rj->r", U[:, :rank], matrix, W[:rank]))
    if (signs < 0).any() and _misfit(U[:, :rank] * signs, S, W, matrix) <= granted:
        return ["signs of U and Vᵀ that do not belong together"]
    own = true[:rank]
    if _misfit(U, S, W, matrix) <= granted:
        if (np.diff(S) > granted).any():
            return ["singular values, each with its vectors, that are not in descending order"]
        return ["vectors that are not orthonormal"]
    if np.abs(S - own).max(initial=0.0) <= granted:
        return ["the right singular values with other vectors"]
    if _misfit(U, own, W, matrix) <= granted:
        if np.abs(np.sort(S) - np.sort(own)).max(initial=0.0) <= granted:
            return ["singular values in another order than U and Vᵀ"]
        for says, made in altered(asked.model, own, S):
            if np.abs(made - S).max(initial=0.0) <= granted * max(1.0, S.max() / own.max()):
                return [f"singular values that are {says}"]
        return ["U and Vᵀ with other singular values than theirs"]
    return []


def _circuits(asked: Asked, U: Array, S: Array, W: Array) -> Iterator[tuple[str, Array]]:
    """Yield the matrices that may have been decomposed by mistake."""
    shape = len(U), W.shape[1]
    layer, head = asked.one_head()
    for name in ("W_V", "W_O", "W_Q", "W_K"):
        weight = asked.weight(name, layer, head)
        for says, made in ((f"{name} alone", weight), (f"{name}ᵀ alone", weight.T)):
            if made.shape == shape:
                yield says, made
    others = [
        (f"another head, {one}.{two}", {circuit(OV, layer, head): circuit(OV, one, two)})
        for one, two in asked.other_heads()
    ]
    for says, replaced in (*others, *circuit_mistakes(OV, asked, shape)):
        # A few columns rule out a circuit of rank d_head; of a sum, U S Vᵀ may be a part.
        is_product = not any(getattr(new, "has", bool)(sympy.MatAdd) for new in replaced.values())
        if not is_product or _nearly(asked, replaced, U, S, W):
            made = ov_circuit(asked, replaced)
            if made.shape == shape:
                yield says, made


def _nearly(asked: Asked, replaced: Replaced, U: Array, S: Array, W: Array) -> bool:
    """Return whether U S Vᵀ roughly equals a circuit in its first columns."""
    rank = len(S)
    if rank > min(U.shape[1], len(W)):
        return False
    few = ov_circuit(replace(asked, screening=True), replaced)
    shown = (U[:, :rank] * S) @ W[:rank, : few.shape[1]]
    if few.shape != shown.shape:
        return False
    return bool(np.abs(few - shown).max(initial=0.0) <= NEARLY * np.abs(few).max(initial=0.0))
