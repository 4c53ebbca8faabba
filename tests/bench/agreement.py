"""Do two programs give the same numbers, as far as rounding lets them?

Both are given the same weights. What follows are bounds of first order in the unit roundoff u,
γ_m = m u / (1 - m u), for any order of the products:

composition    A product of the four weights W_1 … W_4, however it is made, is off by at most
               γ_m ‖W_1‖ … ‖W_4‖ in norm, m the terms of its sums; the norms of both circuits that
               it is divided by are off likewise.
eigenvalues    Those of the d_head × d_head matrix M, off by E, move by at most κ(V) ‖E‖, V the
               eigenvectors (Bauer and Fike 1960); ‖E‖ is γ_m of the product of norms, and what the
               QR algorithm adds, a small multiple of u ‖M‖ (taken as d_head).
direct logits  Local, as an end-to-end bound says nothing: on the z that a side found in its pass,
               its z W_O r is off by at most γ_m |z| |W_O| |r|.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from otimes.numeric.model import Model
from otimes.numeric.rounding import UNIT_ROUNDOFF, gamma

Arrays = dict[str, np.ndarray]


def apart(what: str, ours: Arrays, theirs: Arrays) -> float:
    """Return the largest difference of two results, relative to the largest number in them."""
    one, other = ours["values"], theirs["values"]
    size = np.abs(other).max()
    if what.startswith("eigen"):
        heads = np.ndindex(one.shape[:-1])
        return float(max(_matched(one[head], other[head]).max() for head in heads) / size)
    if not what.startswith("direct"):
        one, other = one[0], other.reshape(one[0].shape)
    return float(np.nanmax(np.abs(one - other)) / size)


def error_over_bound(what: str, model: Model, ours: Arrays, theirs: Arrays) -> float:
    """Return the largest difference of two results in units of what rounding may make of both."""
    unit = UNIT_ROUNDOFF[str(model.weights["W_E"].dtype)]
    if what.startswith("eigen"):
        return _eigenvalues(model, ours["values"], theirs["values"], unit)
    if what.startswith("direct"):
        return _direct(model, ours["values"], theirs, unit)
    return _composition(what[0], model, ours["values"][0], theirs["values"], unit)


def _norms(model: Model, name: str) -> np.ndarray:
    """Return the Frobenius norms of a weight of all heads, [head of all]."""
    return np.linalg.norm(model.weights[name].astype(np.float64), axis=(2, 3)).reshape(-1)


def _circuit_norms(model: Model, first: str, second: str, across: bool) -> np.ndarray:
    """Return the Frobenius norms of products of two weights, through small matrices."""
    A, B = (model.weights[name].astype(np.float64) for name in (first, second))
    B = B if across else B.swapaxes(2, 3)
    grams = (A.swapaxes(2, 3) @ A) * (B.swapaxes(2, 3) @ B)
    return np.sqrt(grams.sum(axis=(2, 3))).reshape(-1)


def _composition(
    kind: str, model: Model, ours: np.ndarray, theirs: np.ndarray, unit: float
) -> float:
    L, H = model.n_layers, model.n_heads
    theirs = theirs.reshape(L * H, L * H)
    W_OV = _norms(model, "W_V") * _norms(model, "W_O") / _circuit_norms(model, "W_V", "W_O", False)
    W_QK = _norms(model, "W_Q") * _norms(model, "W_K") / _circuit_norms(model, "W_Q", "W_K", True)
    condition = np.outer(W_OV, W_OV if kind == "V" else W_QK)
    # Products of four matrices and norms of both circuits, each off by γ_m; and two programs.
    m = 3 * model.d_model + 2 * model.d_head
    bound = 2 * 3 * gamma(m, unit) * condition
    earlier = ~np.isnan(ours)
    return float((np.abs(ours - theirs) / bound)[earlier].max())


def _eigenvalues(model: Model, ours: np.ndarray, theirs: np.ndarray, unit: float) -> float:
    U, E = (model.weights[name].astype(np.float64) for name in ("W_U", "W_E"))
    around, sizes = U @ E, np.linalg.norm(U) * np.linalg.norm(E)
    worst = 0.0
    for layer, head in np.ndindex(model.n_layers, model.n_heads):
        W_V, W_O = (model.weights[name][layer, head].astype(np.float64) for name in ("W_V", "W_O"))
        M = W_O @ around @ W_V
        kappa = np.linalg.cond(np.linalg.eig(M)[1])
        m = model.d_vocab + 2 * model.d_model
        error = gamma(m, unit) * sizes * np.linalg.norm(W_O) * np.linalg.norm(W_V)
        error += model.d_head * unit * np.linalg.norm(M)
        found = _matched(ours[layer, head], theirs[layer, head])
        worst = max(worst, float(found.max() / (2 * kappa * error)))
    return worst


def _matched(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the distances of numbers in the plane, each paired with one of the others."""
    distances = np.abs(one[:, None] - other[None, :])
    return np.asarray(distances[linear_sum_assignment(distances)])


def _direct(model: Model, ours: np.ndarray, theirs: Arrays, unit: float) -> float:
    """Hold each side against the formula in float64 on the z that it found itself."""
    tokens = theirs["tokens"]
    own = model.forward(tokens, [f"z.{layer}" for layer in range(model.n_layers)])
    rows = model.weights["W_U"][:, tokens].astype(np.float64)
    worst = 0.0
    for layer in range(model.n_layers):
        W_O = model.weights["W_O"][layer].astype(np.float64)
        pulled, sizes = W_O @ rows, np.abs(W_O) @ np.abs(rows)
        of_theirs = theirs["z"][layer].transpose(1, 0, 2).astype(np.float64)
        sides = ((ours, own[f"z.{layer}"], 2.0**-53), (theirs["values"], of_theirs, unit))
        for found, z, u in sides:
            expected = np.einsum("hik,hki->hi", z, pulled)
            m = model.d_model + model.d_head + 4
            bound = (gamma(m, u) + gamma(m, 2.0**-53)) * np.einsum("hik,hki->hi", np.abs(z), sizes)
            worst = max(worst, float((np.abs(found[layer] - expected) / bound).max()))
    return worst
