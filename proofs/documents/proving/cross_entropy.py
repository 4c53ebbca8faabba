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
    Indexed,
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
from otimes.proofs.documents.symbols.hypotheses import Hypothesis

LOGARITHMS = ("log", "ln")
UNITS = ("e", "1", "u", "o", r"\delta")


def entropy(loss: Node, other: Node) -> Any:
    r"""Return a loss with products of vectors for sums of entries, as `\sum_i y_i \log p_i`.

    For `\log p_y` the product is of `e_y`, if the other side has it.
    """

    def change(part: Any) -> Any:
        if isinstance(part, Indexed) and part.mark == r"\sum" and len(part.indices) == 1:
            return _summed(part)
        of = _logarithm_of(part)
        if of is None or len(of.sub) != 1 or of.sup:
            return None
        units = {e for e in walk(other) if isinstance(e, Name) and e.sub == of.sub}
        units = {e for e in units if e.base in UNITS and e != of}
        if len(units) != 1:
            return None
        whole = replace(part, arguments=(replace(of, sub=()),))
        return Apply(Name("inner"), (units.pop(), whole))

    return mapped(loss, change)


def _logarithm_of(node: Any) -> Name | None:
    """Return the symbol of which a term is the logarithm, or None."""
    if not isinstance(node, Apply) or node.function.base not in LOGARITHMS or node.below:
        return None
    of = bare(node.arguments[0])
    return of if isinstance(of, Name) else None


def _summed(sum_: Indexed) -> Node | None:
    """Return a sum of products of entries and logarithms of entries as a product of vectors."""
    factors = [*map(bare, sum_.body.factors)] if isinstance(sum_.body, Product) else []
    if len(factors) != 2 or not isinstance(factors[0], Name):
        return None
    of = _logarithm_of(factors[1])
    if of is None or not isinstance(factors[1], Apply):
        return None
    own = [len(e.sub) == 1 and e.sub[0].text == sum_.indices[0] for e in (factors[0], of)]
    if not all(own) or of.sup or factors[0].sup:
        return None
    whole = replace(factors[1], arguments=(replace(of, sub=()),))
    return Apply(Name("inner"), (replace(factors[0], sub=()), whole))


def distributions(loss: Node) -> Iterator[list[Hypothesis]]:
    """Yield that the entries of what multiplies a logarithm add up to one: of a column, of a row.

    Nothing is yielded for a loss without logarithms.
    """
    found: dict[str, Name] = {}
    for e in walk(loss):
        factors = [*map(bare, e.factors)] if isinstance(e, Product) else []
        if isinstance(e, Apply) and e.function == Name("inner"):
            factors = [*map(bare, e.arguments)]
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
