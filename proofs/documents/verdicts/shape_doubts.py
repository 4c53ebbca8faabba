r"""Signs that authors use for more than one thing, where terms do not conform as they are read.

An identity without an index may have another size than where it was declared, and a dot between `x`
and a function of `x` may join entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from otimes.algebra.errors import OtimesError
from otimes.algebra.notation.elaborate import check_shapes
from otimes.algebra.notation.symbols import Symbols
from otimes.algebra.notation.tree import Apply, Name, Node, Product, bare, walk

IDENTITIES = ("I", "Id")


def of_an_identity(terms: Sequence[Node], symbols: Symbols) -> str:
    """Return that the identity may have another size, where terms conform then, or ""."""
    names = {e for term in terms for e in walk(term) if isinstance(e, Name)}
    plain = {e for e in names if e.base in IDENTITIES and not e.sub}
    declared = {symbols.lookup(e)[0] for e in plain} & symbols.known.keys()
    if not declared:
        return ""
    trial = symbols.copy()
    for key in declared:
        del trial.known[key]
    try:
        check_shapes(terms, trial)
    except OtimesError:
        return ""
    return f", but {min(declared)} may have another size here"


def of_a_dot(terms: Sequence[Node]) -> str:
    r"""Return that a dot may join entries, as in `x \cdot \sigma(x)`, or "".

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> of_a_dot(parse_formula(r"x \cdot \sigma(x)")[0].terms)
    ', but the dot may join entries'
    >>> of_a_dot(parse_formula(r"Q \cdot K")[0].terms)
    ''
    """
    for e in (e for term in terms for e in walk(term) if isinstance(e, Product)):
        for (a, b), mark in zip(pairwise(e.factors), e.marks[1:], strict=True):
            sides = ((bare(a), bare(b)), (bare(b), bare(a)))
            if mark == r"\cdot" and any(_is_of(one, other) for one, other in sides):
                return ", but the dot may join entries"
    return ""


def _is_of(function: Node, of: Node) -> bool:
    """Return whether a term is a function of another one, a symbol."""
    applied = isinstance(function, Apply) and isinstance(of, Name)
    return applied and of in [*walk(function)]
