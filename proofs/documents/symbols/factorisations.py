r"""Products that a text factors: “we decompose $W_V W_O = U \Sigma Z^\top$”.

Such an equation defines the product, and says nothing of its factors. In a claim it is put in for
the product and for its transpose.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from otimes.algebra.notation.tree import Group, Name, Node, Power, Product, bare, mapped, walk

FACTORS = re.compile(
    r"\b(?:decompos(?:es?|ed|ing|ition)|factor(?:s|ed|i[sz]\w+)?|diagonali[sz]e\w*|"
    r"eigen-?decompositions?|SVDs?)\b"
    r"(?:\s+(?!(?:then|hence|so|that|thus|shows?|implies|where|if|with|and)\b)[\w-]+){0,6}"
    r"\s*[,:(]?\s*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Factorisation:
    """A product that was written as another on a line."""

    factors: tuple[Node, ...]
    value: Node
    line: int

    def put_in(self, node: Node) -> Node:
        """Return a term with the value for the product, and its transpose for the reverse."""
        turned = tuple(
            e.base if isinstance(e, Power) else Power(e, "T") for e in reversed(self.factors)
        )

        def change(part: Any) -> Any:
            if not isinstance(part, Product):
                return None
            for run, value in (
                (self.factors, Group(self.value)),
                (turned, Power(Group(self.value), "T")),
            ):
                at = _place(part, run)
                if at is not None:
                    end = at + len(run)
                    factors = (*part.factors[:at], value, *part.factors[end:])
                    if len(factors) == 1:
                        return value
                    rest = Product(factors, (*part.marks[:at], "", *part.marks[end:]))
                    return mapped(rest, change)
            return None

        return mapped(node, change)

    def names(self) -> set[Name]:
        """Return the symbols of the product."""
        return {e for factor in self.factors for e in walk(factor) if isinstance(e, Name)}


def factored(left: Node, right: Node, words: str, line: int) -> Factorisation | None:
    """Return the factorisation that an equation is by the words before it, or None."""
    product = bare(left)
    if not (isinstance(product, Product) and FACTORS.search(words)) or any(product.marks):
        return None
    factors = tuple(bare(factor) for factor in product.factors)
    known = Factorisation(factors, right, line)
    other = {e for e in walk(right) if isinstance(e, Name)}
    bases = [bare(e.base) if isinstance(e, Power) and e.exponent == "T" else e for e in factors]
    plain = all(isinstance(e, Name) for e in bases)
    return known if plain and len(other) > 1 and not other & known.names() else None


def _place(product: Product, run: Sequence[Node]) -> int | None:
    """Return where factors stand next to each other in a product, or None."""
    factors = [bare(factor) for factor in product.factors]
    for at in range(len(factors) - len(run) + 1):
        end = at + len(run)
        if factors[at:end] == [*run] and not any(product.marks[at:end]):
            return at
    return None
