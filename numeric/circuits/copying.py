r"""Copying heads: the eigenvalues of OV circuits, and a copying score for each head.

The full OV circuit on the vocabulary, $W_E W_V W_O W_U$, and the bare OV circuit in the residual
stream, $W_V W_O$, answer different questions, and their scores can have opposite signs: the first
measures whether attending to a token increases its own logit, the second whether a direction of the
residual stream is written back with the same sign.

Source: Elhage et al. 2021, “Detecting copying behavior”.
"""

import numpy as np
from jaxtyping import Complex, Float

from otimes.algebra.errors import OtimesError
from otimes.numeric.circuits.factored import eigenvalues
from otimes.numeric.circuits.result import Named
from otimes.numeric.circuits.weights import (
    Precision,
    check_dtype,
    check_folded,
    embed_after_unembed,
    gains_before_heads,
    weight,
)
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.model import Model
from otimes.numeric.progress import tracked

CIRCUITS = {"full": "W_E W_V W_O W_U", "bare": "W_V W_O"}


def ov_eigenvalues(
    model: ModelSource, circuit: str = "full", dtype: Precision = np.float64
) -> Named:
    r"""Return the eigenvalues of all OV circuits [layer, head, eigenvalue], complex, by size.

    `circuit` "full" is $W_E W_V W_O W_U$ (d_vocab × d_vocab), "bare" $W_V W_O$ (d_model × d_model).
    The nonzero ones are those of the d_head × d_head matrices $W_O (W_U W_E) W_V$ and $W_O W_V$,
    which are used here; $W_U W_E$ is computed once for all heads.
    Proved by: full_ov_trace, power_sums_of_AB_and_BA.  Source: Elhage et al. 2021.

    >>> from otimes.numeric.load import load_model
    >>> ov_eigenvalues(load_model("one_layer"))
    <eigenvalues of W_E W_V W_O W_U [layer 1, head 4, eigenvalue 32] complex128>

    Raises: RuleError if norm gains are not folded; OtimesError for an unknown circuit.
    """
    model = load_model(model)
    if circuit not in CIRCUITS:
        raise OtimesError(f"circuit must be 'full' or 'bare', got {circuit!r}")
    gains = ("ln_final_gain",) if circuit == "full" else ()
    check_folded(model, f"a {circuit} OV circuit", *gains_before_heads(model), *gains)
    return Named(
        f"eigenvalues of {CIRCUITS[circuit]}",
        small_eigenvalues(model, circuit, check_dtype(dtype)),
        ("layer", "head", "eigenvalue"),
        about="the d_head largest; all others are zero",
    )


def small_eigenvalues(
    model: Model, circuit: str, dtype: Precision
) -> Complex[np.ndarray, "n_layers n_heads d_head"]:
    """Return the eigenvalues of the d_head × d_head matrices, ignoring norms."""
    L, H, d, k = model.n_layers, model.n_heads, model.d_model, model.d_head
    small = np.empty((L, H, k, k), dtype)
    around = embed_after_unembed(model, dtype) if circuit == "full" and L else None
    for layer in tracked(range(L), "multiplying"):
        W_V, W_O = (weight(model, name, layer, dtype) for name in ("W_V", "W_O"))
        # All heads at once: one product of [H k, d] with [d, d], not H thin ones.
        read = W_O if around is None else (W_O.reshape(H * k, d) @ around).reshape(H, k, d)
        np.matmul(read, W_V, out=small[layer])
    return eigenvalues(small)


def copying_scores(
    model: ModelSource, circuit: str = "full", dtype: Precision = np.float64
) -> Named:
    r"""Return the copying score of each head [layer, head]: 1 if it copies, −1 if it suppresses.

    It is $\sum Re λ / \sum |λ|$ over the eigenvalues of the head's OV circuit.

    1: all eigenvalues are positive, and attending to a token tends to increase its logit (a copying
    head); −1: to decrease it. As $\sum λ$ is the trace, the numerator for the full circuit is the
    sum over tokens of the effect on their own logit; single tokens may differ in sign.
    Proved by: full_ov_trace.  Source: Elhage et al. 2021, “Detecting copying behavior”.

    >>> from otimes.numeric.load import load_model
    >>> float(copying_scores(load_model("induction")).values[1].max().round(2))
    1.0
    """
    model = load_model(model)
    found = ov_eigenvalues(model, circuit, dtype)
    return Named(
        f"copying score of {CIRCUITS[circuit]}",
        sum_over_size(found.values),
        ("layer", "head"),
        about="Σ Re λ / Σ |λ|",
    )


def sum_over_size(found: Complex[np.ndarray, "*heads k"]) -> Float[np.ndarray, "*heads"]:
    """Return Σ Re λ / Σ |λ| along the last axis; 0 where all eigenvalues are 0."""
    size = np.abs(found).sum(axis=-1)
    total = found.real.sum(axis=-1)
    return np.divide(total, size, out=np.zeros_like(total), where=size > 0)
