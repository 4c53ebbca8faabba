"""The constants and operations in a claim, each with its meaning, for the page of a theorem.

The table of symbols has what a claim is about: matrices, numbers, indices. Here is the rest that a
reader may not know by sight, such as a one-hot vector, the causal mask or a product over layers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import sympy

from otimes.algebra.language.latex import latex
from otimes.proofs.claims import Statement
from otimes.proofs.theorem import Theorem

# What is printed as itself, by its class: the first one of a claim stands for all.
CONSTANTS = {
    "OneHot": "the one-hot column with 1 at its index and 0 elsewhere",
    "OneHotLast": "the one-hot column of that length with 1 at its end",
    "CausalMask": "the causal mask: 1 on and below the diagonal, 0 above it",
    "Shift": "the shift by one position: 1 just below the diagonal, 0 elsewhere",
    "OneMatrix": "the matrix with all entries 1, a column if only one size is written",
    "Identity": "the identity matrix of that size",
}

# What is printed by a sign, by its class.
OPERATIONS = {
    "KroneckerProduct": (r"\otimes", "the Kronecker product, `numpy.kron`"),
    "HadamardProduct": (r"\circ", "the entrywise (Hadamard) product"),
    "HadamardPower": (r"S^{\circ 2}", "the entrywise power, here the square"),
    "vec_rows": (r"\operatorname{vec}_r", "the rows of a matrix, stacked to one column"),
    "vec_cols": (r"\operatorname{vec}_c", "the columns of a matrix, stacked to one column"),
    "RowSoftmax": (
        r"\operatorname{softmax}",
        "exp of each entry, divided by their sum along the row, where a mask, written below, is 1",
    ),
    "LayerNorm": (
        r"\operatorname{LayerNorm}",
        "each row less its mean, divided by the root of its variance + eps, without gain and bias",
    ),
    "RMSNorm": (
        r"\operatorname{RMSNorm}",
        "each row divided by the root of its mean square + eps, without gain",
    ),
    "DiagMatrix": (r"\operatorname{diag}", "the diagonal matrix with the entries of a vector"),
    "DiagonalOf": (r"\operatorname{DiagonalOf}", "the diagonal of a matrix, as a column"),
    "Trace": (r"\operatorname{tr}", "the trace, the sum of the diagonal"),
    "LogSumExp": (
        r"\operatorname{logsumexp}",
        "the logarithm of the sum of the exponentials of each row",
    ),
    "CrossEntropy": (
        r"\operatorname{crossentropy}",
        "the cross-entropy of each row of logits with its row of targets, in nats",
    ),
    "Rotation": (
        r"\operatorname{rotation}",
        "the rotation by one angle in each plane of two coordinates",
    ),
    "LayerProduct": (
        r"\prod_{l=L}^{1}",
        "the ordered product over layers, the last layer on the left",
    ),
    "OrderSum": (
        r"\sum_{l_1 < \cdots < l_k}",
        "the sum over all choices of k layers, in each the later layer on the left",
    ),
}


def text(theorem: Theorem) -> str:
    r"""Return a list of the constants and operations of a claim; empty if it has none.

    >>> from otimes.proofs.catalogue import find
    >>> print(text(find("kron_transpose")))
    Notation:
    <BLANKLINE>
    - $\otimes$: the Kronecker product, `numpy.kron`
    """
    found: dict[str, Any] = {}
    for node in _nodes(stated(theorem)):
        name = type(node).__name__
        if name not in found and not (name == "Identity" and node.shape[0] == 1):
            found[name] = node
    constants = [f"${latex(found[k])}$: {said}" for k, said in CONSTANTS.items() if k in found]
    signs = [f"${sign}$: {said}" for k, (sign, said) in OPERATIONS.items() if k in found]
    activation = [_ACTIVATION] if _has_any_activation(found.get("Activation")) else []
    listed = [f"- {each}" for each in (*constants, *signs, *activation)]
    return "\n".join(["Notation:", "", *listed]) if listed else ""


def stated(theorem: Theorem) -> tuple[Any, ...]:
    """Return the expressions that the page of a theorem shows or speaks of.

    What only ties the claim to recorded activations is left out.
    """
    claim = theorem.claim()
    places = tuple(claim.places.values()) if isinstance(claim, Statement) else ()
    shown = claim.expressions[: len(claim.expressions) - len(places)]
    words = set(re.findall(r"\w+", theorem.prose))
    symbols = {s for each in places for s in each.free_symbols if str(s) in words}
    return (*shown, *sorted(symbols, key=str))


_ACTIVATION = "$g$: the activation function of the MLP, applied to each entry"


def _has_any_activation(node: Any) -> bool:
    return node is not None and str(node.args[0]) == "g"


def _nodes(expressions: Iterable[Any]) -> Iterator[sympy.Basic]:
    for each in expressions:
        if isinstance(each, sympy.Basic):
            yield from sympy.preorder_traversal(each)
