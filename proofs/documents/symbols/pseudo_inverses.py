r"""Pseudo-inverses: what is known of `A^+` where a text says that it is one.

It is the only matrix P with A P A = A, P A P = P and both A P and P A symmetric (Penrose 1955).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from otimes.algebra.notation.tree import Group, Node, Power, Product, latex
from otimes.proofs.documents.symbols.hypotheses import Hypothesis

PENROSE = frozenset(("exactly one matrix satisfies the four conditions of Penrose",))


def is_pseudo_inverse(node: object) -> TypeGuard[Power]:
    """Return whether a term is `A^+`."""
    return isinstance(node, Power) and node.exponent == "+"


def of_pseudo_inverse(e: Power) -> Iterator[Hypothesis]:
    """Yield the four conditions as hypotheses."""
    for lhs, rhs in conditions(e.base, e):
        yield Hypothesis(lhs, rhs, f"as {latex(e)} is meant", True)


def conditions(base: Node, inverse: Node) -> list[tuple[Node, Node]]:
    """Return the equations of which all hold if a matrix is the pseudo-inverse of another.

    The first is the one that a wrong formula fails most often.
    """
    left, right = (_product(*pair) for pair in ((base, inverse), (inverse, base)))
    return [
        (_product(base, inverse, base), base),
        (_product(inverse, base, inverse), inverse),
        (Power(Group(left), "T"), left),
        (Power(Group(right), "T"), right),
    ]


def _product(*factors: Node) -> Product:
    return Product(factors, ("",) * len(factors))
