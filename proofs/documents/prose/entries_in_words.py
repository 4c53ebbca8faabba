r"""Small letters that words say are the entries of a matrix: “$a_{ij}$ are the entries of $A$”.

Such a sentence is a definition, `a_{ij} = A_{ij}`, that counts for other indices.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from otimes.algebra.notation.tree import Entry, Group, Name, bare
from otimes.proofs.documents.prose.declared_in_words import Prose

NTH = r"(?:⟦\d+⟧[\s-]*(?:th\s+)?)?"
ENTRIES = r"(?:entry|entries|elements?|coefficients?|components?)"
IS = r"(?:is|are|be|being|denotes?|for)"
NAME = r"⟦(?P<name>\d+)⟧"
WHOLE = r"(?:the\s+(?:[\w-]+\s+){0,2})?⟦(?P<whole>\d+)⟧"
SAID = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{NAME},?\s+{IS}\s+(?:the\s+)?{NTH}{ENTRIES}\s+of\s+{WHOLE}",
        rf"\bthe\s+{ENTRIES}\s+{NAME}\s+of\s+{WHOLE}",
        rf"{WHOLE},?\s+(?:with|has|have|whose)\s+(?:the\s+)?{ENTRIES}\s+(?:are\s+)?{NAME}",
    )
]


def entries_in(prose: Prose) -> Iterator[tuple[int, Name, Entry]]:
    """Yield the letters with two indices and the entries that they are, with offsets of the words.

    The letter is another one than that of the matrix, of which `A_{ij}` is the entry anyway.
    """
    for pattern in SAID:
        for match in pattern.finditer(prose.text):
            name = _name(prose, match["name"])
            whole = _name(prose, match["whole"])
            if name is None or whole is None or name.base == whole.base:
                continue
            if [slot.kind for slot in name.sub] == ["index", "index"] and whole.base.isupper():
                yield prose.offset(match.end()), name, Entry(Group(whole), name.sub)


def _name(prose: Prose, number: str) -> Name | None:
    r"""Return the symbol that a formula is, or that it declares: `A \in ℝ^{n \times n}`."""
    statements = prose.statements(int(number))
    if len(statements) != 1 or statements[0].relations not in ((), (r"\in",)):
        return None
    first = bare(statements[0].terms[0])
    return first if isinstance(first, Name) and not statements[0].subjects else None
