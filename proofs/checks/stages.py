"""That the arrays of a claim stand where a forward pass has them.

Queries, keys and values are computed of what attention reads, neurons of what the MLP reads, and
logits of the end of the stream. A pattern moves values, and not keys; raw scores move nothing. A
claim in which scores stand for a pattern, or the last stream for what a head reads, holds for all
matrices like the right one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import sympy
from sympy import MatMul, MatrixSymbol

from otimes.algebra.language.linear import FamilyMember
from otimes.algebra.language.nonlinear import Activation, LayerNorm, RMSNorm, RowSoftmax
from otimes.numeric.binding import Source, source_of
from otimes.proofs.checks.wiring import ends, factors
from otimes.proofs.claims import Claim

Bind = Mapping[str, Source]

OF_ATTENTION = frozenset({"W_Q", "W_K", "W_V"})
OF_MLP = frozenset({"W_in", "W_gate"})
NOT_READ_BY: dict[str, frozenset[str]] = {
    "final": OF_ATTENTION | OF_MLP,
    "ln_final": OF_ATTENTION | OF_MLP,
    "ln1": OF_MLP | {"W_U"},
    "qk_in": OF_MLP | {"W_U"},
    "ln2": OF_ATTENTION | {"W_U"},
    "resid_mid": OF_ATTENTION,
}
"""Streams by the weights that no model without parallel blocks multiplies with them."""

MOVED = frozenset({"v", "z", "embed", "one_hot", "resid_pre", "ln1", "head_out", "attn_out"})
NOT_MOVED: dict[str, frozenset[str]] = {
    "pattern": frozenset({"q", "k", "qk_in", "scores", "mlp_pre", "final", "ln_final", "logits"}),
    "scores": MOVED | {"q", "k", "qk_in", "pattern", "scores", "final", "ln_final", "logits"},
}
"""Matrices of queries and keys by what they are not multiplied with, position by position."""

OUTPUTS: tuple[tuple[Any, frozenset[str], str], ...] = (
    (RowSoftmax, frozenset({"pattern"}), "softmax is applied to {}, which it gives"),
    (Activation, frozenset({"mlp_post"}), "the activation function is applied to {} once more"),
    (
        LayerNorm | RMSNorm,
        frozenset({"ln1", "ln2", "ln_final", "qk_in"}),
        "a norm is applied to {}, which is behind one",
    ),
)
"""Functions with the activations that they give, and so are not applied to."""


def displaced(claim: Claim) -> str:
    """Return which arrays of a claim stand where no forward pass has them; empty if none does.

    >>> from otimes.algebra.language.linear import matmul
    >>> from otimes.proofs.catalogue.symbols import A, X, row
    >>> from otimes.proofs.claims import Statement
    >>> right = Statement(matmul(A, X, row.W_V), matmul(A, matmul(X, row.W_V)))
    >>> displaced(right)
    ''
    >>> displaced(Statement(right.lhs, right.rhs, bind=({"A": Source("scores")},)))
    'resid_pre is multiplied by scores, which move nothing: a pattern does'
    """
    binds: Sequence[Bind] = getattr(claim, "bind", ({},))
    found = [each for bind in binds for e in claim.expressions for each in _wrong(e, bind)]
    return "; ".join(dict.fromkeys(found))


def _wrong(e: Any, bind: Bind) -> Iterator[str]:
    if isinstance(e, MatMul):
        both = [ends(each, bind) for each in factors(e)]
        for (_, left), (right, _) in pairwise(both):
            for one in left:
                for other in right:
                    if one.axis == other.axis:
                        yield from _clashes(one.array, other.array, one.axis)
    args = getattr(e, "args", ())
    for function, given, said in OUTPUTS:
        if isinstance(e, function):
            terms = _terms(args[-1 if isinstance(e, Activation) else 0], bind)
            yield from (said.format(name) for name in terms if name in given)
    for each in args:
        yield from _wrong(each, bind)


def _clashes(one: str, other: str, axis: str) -> Iterator[str]:
    for a, b in ((one, other), (other, one)):
        if axis == "d" and b in NOT_READ_BY.get(a, ()):
            yield f"{b} does not read {a} in any layer"
        if axis == "n" and b in NOT_MOVED.get(a, ()):
            why = "which move nothing: a pattern does" if a == "scores" else "which moves values"
            yield f"{b} is multiplied by {a}, {why}"


def _terms(e: Any, bind: Bind) -> Iterator[str]:
    """Yield the arrays that are terms of an expression, with a number before them or not."""
    if isinstance(e, sympy.MatAdd):
        for each in e.args:
            yield from _terms(each, bind)
    elif isinstance(e, MatMul) and len(factors(e)) == 1:
        yield from _terms(factors(e)[0], bind)
    elif isinstance(e, MatrixSymbol | FamilyMember):
        symbol = e.family if isinstance(e, FamilyMember) else e
        source = source_of(str(symbol.name), bind)
        if source is not None and not source.rows and not source.cols:
            yield source.name
