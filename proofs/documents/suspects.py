r"""Definitions that may be what is wrong where a later equation is refuted.

A text may define `\Pi = U U^\top` and conclude `\Pi^2 = \Pi`, which is false: the slip may be in
the definition. An equation is called wrong where it stands; with it are named the definitions that
it uses and of which one edit makes it true. A definition by which another equation is proved is
none of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from otimes.algebra.budget import STEPS, steps_done
from otimes.algebra.notation.symbols import Symbols
from otimes.algebra.notation.tree import Name, Node, latex, walk
from otimes.proofs.documents.attempts import TRIAL, attempted
from otimes.proofs.documents.context import Context, Definition
from otimes.proofs.documents.suggestions import edits_of

MOST_WORK = 1.0  # units for the edits of all definitions that an equation uses
MOST_EDITS = 40  # of one definition


def suspects(
    context: Context, lhs: Node, rhs: Node, line: int, symbols: Symbols
) -> tuple[set[int], set[int]]:
    """Return the lines of definitions that an equation uses, and of those with an edit for it.

    One edit of the right side of each of the second makes the equation true.
    """
    used: dict[str, Definition] = {}
    others = context.instances([lhs, rhs])
    claim = [context.unfolded(side, used, None, others) for side in (lhs, rhs)]
    earlier = {text: each for text, each in used.items() if each.line < line}
    begun, mended = steps_done(), set()
    for text, each in sorted(earlier.items(), key=lambda pair: (-pair[1].line, pair[0])):
        for edited in _edited(each, claim, symbols.sizes()):
            if steps_done() - begun > MOST_WORK * STEPS:
                break
            put = {**others, text: replace(each, rhs=edited)}
            a, b = (context.unfolded(side, {}, None, put) for side in (lhs, rhs))
            given = context.declared_hypotheses([a, b])
            verdict, _ = attempted(a, b, given, symbols, TRIAL)
            if verdict is not None and verdict.status == "proved":
                mended.add(each.line)
                break
    return {each.line for each in earlier.values()}, mended


def _edited(known: Definition, claim: Sequence[Node], sizes: set[str]) -> Iterator[Node]:
    """Yield the right side of a definition with one edit."""
    names = Counter(e for side in claim for e in walk(side) if isinstance(e, Name))
    tried = {latex(known.rhs)}
    for _, edited in edits_of(known.rhs, names, sizes):
        text = latex(edited)
        if len(tried) <= MOST_EDITS and text not in tried:
            tried.add(text)
            yield edited


@dataclass(slots=True)
class Suspects:
    """The definitions that equations of a document use, by line, and which may be wrong.

    `proved` are those by which an equation is proved; `wrong` has, for each equation that is called
    wrong, by its span, the definitions that it uses, and those of which an edit makes it true.
    """

    proved: set[int] = field(default_factory=set)
    wrong: dict[tuple[int, int], tuple[set[int], set[int]]] = field(default_factory=dict)

    def of(self, span: tuple[int, int]) -> list[int]:
        """Return the lines of the definitions that may be wrong in the place of an equation.

        One that several such equations share, and no other, may be, too.
        """
        if span not in self.wrong:
            return []
        used, mended = self.wrong[span]
        uses = Counter(line for lines, _ in self.wrong.values() for line in lines - self.proved)
        shared = {line for line in used if uses[line] > 1}
        return sorted((mended or (shared if len(shared) == 1 else set())) - self.proved)
