"""Products of weights that conform and sum over the wrong space: weights act on the other side.

An embedding times an unembedding may sum over the vocabulary or over the entries of a state. The
circuits of a head, W_OV and W_QK, map states to states: their weights meet in the head.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from otimes.algebra.errors import OtimesError
from otimes.algebra.notation.dimensions import Size
from otimes.algebra.notation.elaborate import elaborate
from otimes.algebra.notation.symbols import Declared, Symbols, key_of
from otimes.algebra.notation.tree import Name, Node, Product, bare, latex, walk
from otimes.proofs.documents.prose.conventions import order_of
from otimes.proofs.documents.symbols.context import Context

VOCABULARY = frozenset(("V", "𝒱", "v", "d_vocab", "n_vocab"))
WEIGHTS = {"W_OV": ["W_O", "W_V"], "W_QK": ["W_K", "W_Q"]}
STATES = frozenset(("d", "d_model", "d_m", "D"))  # what the width of the stream is called


def sums_over_wrong_space(context: Context, left: Node, right: Node, line: int) -> str:
    """Return why a definition sums over the vocabulary or over the entries of states, or ""."""
    symbols = context.symbols_at(line)
    return _over_vocabulary(right, symbols) or _over_states(left, right, symbols)


def _over_vocabulary(term: Node, symbols: Symbols) -> str:
    for e in walk(term):
        if not isinstance(e, Product):
            continue
        factors = [*map(bare, e.factors)]
        for k, (a, b) in enumerate(pairwise(factors)):
            if not (isinstance(a, Name) and isinstance(b, Name) and order_of(a, b)):
                continue
            left, right = symbols.lookup(a)[1], symbols.lookup(b)[1]
            if left is None or right is None or left.cols != right.rows:
                continue
            others = factors[k - 1 : k] if k else [], factors[k + 2 : k + 3]
            if not _fits_turned(left, right, *others, symbols):
                continue
            if left.rows != left.cols and VOCABULARY & {str(atom) for atom in left.cols}:
                lines = ", ".join(map(str, sorted({left.line, right.line})))
                return (
                    f"with the shapes of line {lines}, {latex(e)} sums over the vocabulary: "
                    "there weights act on the other side"
                )
    return ""


def _fits_turned(
    left: Declared,
    right: Declared,
    before: Sequence[Node],
    after: Sequence[Node],
    symbols: Symbols,
) -> bool:
    """Return whether two factors of a product conform with those around them if exchanged."""
    known = [
        [symbols.lookup(e)[1] for e in each if isinstance(e, Name)] for each in (before, after)
    ]
    fits = all(each is None or each.cols == right.rows for each in known[0])
    return fits and all(each is None or each.rows == left.cols for each in known[1])


def _over_states(left: Node, right: Node, symbols: Symbols) -> str:
    """Return why a circuit, W_OV or W_QK, is no map of states as it is defined, or ""."""
    name = bare(left)
    weights = WEIGHTS.get(key_of(name).upper()) if isinstance(name, Name) else None
    factors = [e for e in walk(right) if isinstance(e, Name)]
    if weights is None or sorted(key_of(e).upper() for e in factors) != weights:
        return ""
    known = [symbols.lookup(e)[1] for e in factors]
    sizes = [{each.rows, each.cols} for each in known if each is not None and each.line]
    state = set.intersection(*sizes) & _states(symbols) if len(sizes) == len(factors) else set()
    try:
        shape = {str(size) for size in elaborate([right], symbols).terms[0].shape}
    except (OtimesError, AttributeError):
        return ""
    if (
        len(state) != 1
        or len(shape) != 1
        or shape <= {str(atom) for size in state for atom in size}
    ):
        return ""
    lines = ", ".join(map(str, sorted({each.line for each in known if each is not None})))
    made = " × ".join([*shape, *shape])
    return (
        f"with the shapes of line {lines}, {latex(right)} is {made}, and sums over the entries of "
        "states: there weights act on the other side"
    )


def _states(symbols: Symbols) -> set[Size]:
    """Return the sizes that states may have: what is usual, and that of the embeddings."""
    found: set[Size] = {(name,) for name in STATES}
    for key in ("W_E", "W_U"):
        known = symbols.known.get(key)
        if known is not None:
            both = (known.rows, known.cols)
            found |= {s for s in both if s and not VOCABULARY & {str(atom) for atom in s}}
    return found
