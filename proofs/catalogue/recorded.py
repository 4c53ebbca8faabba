"""What a forward pass records of a head, an MLP and the two ends, in the weights of an entry.

An entry about weights alone holds for all matrices. As `places` these say which they are: with
W_K in the place of W_V the values of the head would not be the recorded ones. All are about
models without norms and biases.
"""

from __future__ import annotations

from typing import Any

from sympy import MatrixSymbol, Transpose, sqrt

from otimes.algebra.language.linear import matmul
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.symbols import V, d, d_head, row, size
from otimes.proofs.claims import Place

Places = dict[Place, Any]
At = str | int

positions = size("n_pos")
read = MatrixSymbol("resid_pre", positions, d)
asked = MatrixSymbol("qk_in", positions, d)
pattern = MatrixSymbol("pattern", positions, positions)
tokens = MatrixSymbol("one_hot", positions, V)
last = MatrixSymbol("final", positions, d)


def of_OV(W_V: Any = row.W_V, W_O: Any = row.W_O) -> Places:
    """Return the values and the output of a head, for weights in the row convention."""
    return {"v": matmul(read, W_V), "head_out": matmul(pattern, read, W_V, W_O)}


def of_QK(W_Q: Any = row.W_Q, W_K: Any = row.W_K, layer: At = "layer", head: At = "head") -> Places:
    """Return the queries, keys and scores of a head, for weights in the row convention.

    Where the weights are those of one layer, `qk_in` is bound to the same.
    """
    queries, keys = matmul(asked, W_Q), matmul(asked, W_K)
    scores = matmul(1 / sqrt(d_head), queries, Transpose(keys))
    parts = {"q": queries, "k": keys, "scores": scores}
    return {Source(name, layer, head): part for name, part in parts.items()}


def of_ends(W_E: Any = row.W_E, W_U: Any = row.W_U) -> Places:
    """Return the embedded tokens and the logits, for weights in the row convention."""
    return {"embed": matmul(tokens, W_E), "logits": matmul(last, W_U)}
