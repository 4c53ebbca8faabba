"""Chapter 4: RMSNorm, the norm of Llama and its kin, as it is computed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sympy import HadamardProduct, MatrixSymbol
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.language.linear import matmul
from otimes.algebra.language.nonlinear import RSQRT, Activation, RMSNorm, mean_square
from otimes.proofs.catalogue.mlp_and_norm.parts import diagonal, eps, everywhere
from otimes.proofs.catalogue.symbols import X, d
from otimes.proofs.claims import Definition, Statement
from otimes.proofs.theorem import theorem

ZHANG = "Zhang and Sennrich 2019, “Root Mean Square Layer Normalization”"
WITH_RMS_NORM = {"norm": "rms"}
gain = MatrixSymbol("ln1_gain", 1, d)


@theorem(
    title="RMSNorm: divide by the root of the mean square, multiply by a gain",
    chapter=4,
    convention="row",
    source=f"{ZHANG}, §4",
)
def rms_norm_with_gain() -> Definition:
    """RMSNorm divides the vector of each position by the root of the mean of its d squared entries
    (plus a small ε) and multiplies it entry by entry by a gain. The vector (3, 4), for example,
    becomes (3, 4)/√12.5 before the gain.

    Llama, Mistral, Gemma and Qwen have it where GPT-2 has LayerNorm. It subtracts no mean and adds
    no bias, so facts about LayerNorm that need the centring, such as the lost dimension, do not
    hold for it.
    """

    def plain(X: Any, ln1_gain: Any, eps: Any, **sizes: Any) -> Any:
        result = np.zeros(np.shape(X))
        for i, entries in enumerate(X):
            root = math.sqrt(sum(entry**2 for entry in entries) / len(entries) + eps)
            for k, entry in enumerate(entries):
                result[i, k] = entry / root * ln1_gain[0][k]
        return result

    return Definition(
        "RMSNorm",
        matmul(RMSNorm(X, eps), diagonal(gain)),
        plain,
        places=("ln1",),
        bare=False,
        config=WITH_RMS_NORM,
        obeys=("layer_norm_is_rms_norm_of_centred", "rms_norm_scale_and_gain"),
    )


@theorem(
    title="An RMSNorm is a scale for each position and a gain for each dimension",
    chapter=4,
    convention="row",
    source=f"{ZHANG}, §4",
)
def rms_norm_scale_and_gain() -> Statement:
    """The output of an RMSNorm is the residual stream multiplied on the left by a diagonal matrix
    of scales, one for each position, and on the right by a diagonal matrix of gains, one for each
    dimension. The scale is one over the root of the mean square of the row.

    So with its scales held constant the norm is linear, and the gain folds into the weights that
    read it. The two diagonal matrices must not be exchanged: the first is n × n, the second d × d.
    """
    scale = DiagMatrix(Activation(RSQRT, mean_square(X, eps)))
    normalised = HadamardProduct(RMSNorm(X, eps), everywhere(gain), evaluate=False)
    return Statement(
        normalised,
        matmul(scale, X, diagonal(gain)),
        places={"ln1": matmul(scale, X, diagonal(gain))},
        bare=False,
        config=WITH_RMS_NORM,
    )
