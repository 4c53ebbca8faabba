r"""The cross-entropy of a text: `-y^\top \log p`, `-\log p_y`, `-\sum_i y_i \log p_i`.

Its derivative is p - y only where the entries of y add up to one, as those of a one-hot vector and
of a distribution do. Texts say so in many ways, or in none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from otimes.algebra.notation.tree import (
    Apply,
    Name,
    Node,
    Number,
    Power,
    Product,
    bare,
    latex,
    mapped,
    walk,
)
from otimes.proofs.documents.hypotheses import Hypothesis

LOGARITHMS = ("log", "ln")
UNITS = ("e", "1", "u", "o", r"\delta")


def entropy(loss: Node, other: Node) -> Any:
    r"""Return a loss with `e_y^\top \log p` for `\log p_y`, where the other side has `e_y`."""

    def change(part: Any) -> Any:
        if not isinstance(part, Apply) or part.function.base not in LOGARITHMS or part.below:
            return None
        of = bare(part.arguments[0])
        if not isinstance(of, Name) or len(of.sub) != 1 or of.sup:
            return None
        units = {e for e in walk(other) if isinstance(e, Name) and e.sub == of.sub}
        units = {e for e in units if e.base in UNITS and e != of}
        if len(units) != 1:
            return None
        whole = replace(part, arguments=(replace(of, sub=()),))
        return Product((Power(units.pop(), "T"), whole), ("", ""))

    return mapped(loss, change)


def distributions(loss: Node) -> Iterator[list[Hypothesis]]:
    """Yield that the entries of what multiplies a logarithm add up to one: of a column, of a row.

    Nothing is yielded for a loss without logarithms.
    """
    found: dict[str, Name] = {}
    for e in walk(loss):
        factors = [*map(bare, e.factors)] if isinstance(e, Product) else []
        if not any(isinstance(f, Apply) and f.function.base in LOGARITHMS for f in factors):
            continue
        for factor in factors:
            name = bare(factor.base) if isinstance(factor, Power) else factor
            if isinstance(name, Name) and not (name.sub and name.base not in UNITS):
                found[latex(name)] = name
    if not found:
        return
    ones, one = Name("1", "bf"), Number("1")
    for column in (True, False):
        sums = []
        for name in found.values():
            pair: tuple[Node, Node] = (Power(ones, "T"), name) if column else (name, ones)
            sums.append(Hypothesis(Product(pair, ("", "")), one, "", False))
        yield sums
