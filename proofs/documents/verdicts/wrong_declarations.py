r"""Declarations that may be what is wrong where equations contradict them.

A text may declare `A \in ℝ^{r×d}` and mean `d × r`: then no equation with A conforms. Where one
edit of a declaration makes every equation right that is called wrong with its symbol, and leaves
right what is so, the declaration is called wrong, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

from otimes.algebra.budget import STEPS, steps_done
from otimes.algebra.notation.elaborate import shape_error
from otimes.algebra.notation.symbols import Declared
from otimes.algebra.notation.tree import Derivative, Node, bare, latex
from otimes.proofs.documents.reporting.report import Equation
from otimes.proofs.documents.symbols.context import Context
from otimes.proofs.documents.symbols.terms import is_value
from otimes.proofs.documents.verdicts.suspects import Use, holds

MOST_WORK = 4.0  # units for the edits of all declarations of a document
MOST_SIZES = 8  # that a declaration may mean instead
MOST_USES = 24  # equations in which an edit is tried

DECIDED = ("proved", "refuted", "shape", "definition")

Inferred = Sequence[tuple[str, Declared]]  # symbols with the shapes that definitions show
At = tuple[str, int]  # a symbol, and the line on which it is declared


class Judged(NamedTuple):
    """An equation with the definitions that it uses; the sides of a term by itself are the same."""

    equation: Equation
    use: Use

    def sides(self, context: Context) -> list[Node]:
        """Return the sides with the definitions put in."""
        return [context.unfolded(side, {}, (), self.use.definitions) for side in self.use.sides]

    @property
    def is_wrong(self) -> bool:
        return self.equation.verdict in ("refuted", "shape")

    @property
    def weight(self) -> int:
        """How much it says that a declaration is wrong: more if it is false, whatever is edited."""
        return 2 if self.equation.verdict == "refuted" and not self.equation.suggestion else 1


class Edit(NamedTuple):
    """What declarations may mean instead; those of a lower `rank` are likelier."""

    declared: dict[At, Declared]
    rank: int


def wrong_declarations(
    context: Context, judged: Sequence[Judged], inferred: Inferred
) -> dict[At, list[str]]:
    """Return the declarations that are called wrong, each with the equations that say so.

    `inferred` are the shapes that the definitions of the text gave to symbols.
    """
    begun, wrong = steps_done(), [each for each in judged if each.is_wrong]
    uses = {id(each): _declarations_of(context, each, inferred) for each in judged if wrong}
    judged = [each for each in judged if each.equation.verdict in DECIDED]
    general = [each for each in judged if not any(map(is_value, each.use.sides))]  # no example
    against: dict[At, list[Judged]] = {}
    for each in wrong:
        for at in uses[id(each)]:
            against.setdefault(at, []).append(each)
    found: list[tuple[int, frozenset[At], list[Judged]]] = []
    for edit in _edits(context, against):
        mine = [each for each in general if edit.declared.keys() & uses[id(each)].keys()]
        false = [each for each in mine if each.is_wrong]
        places = {each.equation.span for each in false}
        enough = sum(each.weight for each in false) > 1 and (
            len(places) > 1 or any(each.weight > 1 for each in false)
        )
        if not enough or len(mine) > MOST_USES or steps_done() - begun > MOST_WORK * STEPS:
            continue
        if found and edit.rank > found[0][0]:
            break
        with context.redeclared(edit.declared, inferred):
            if all(_is_right(context, each) for each in mine):
                found.append((edit.rank, frozenset(edit.declared), false))
    every = {keys for _, keys, _ in found}
    if len(every) != 1:
        return {}
    ((_, keys, false), *_) = found
    said = [f"{each.equation.tex} on line {each.use.line}" for each in false]
    return dict.fromkeys(sorted(keys), said)


def _declarations_of(context: Context, judged: Judged, inferred: Inferred) -> dict[At, Declared]:
    """Return the declared matrices of an equation, and of the definitions that it uses."""
    symbols = context.symbols_at(judged.use.line)
    used = context.lines_of([*judged.use.sides, *judged.sides(context)], judged.use.line)
    found = {at: symbols.known[at[0]] for at in used if at[0] in symbols.known}
    said = {at: known for at, known in found.items() if (at[0], known) not in inferred}
    return {at: known for at, known in said.items() if _is_plain(known)}


def _is_plain(known: Declared) -> bool:
    """Return whether a declaration gives a matrix two named sizes."""
    sizes = (known.rows, known.cols)
    return known.kind == "matrix" and all(len(s) == 1 and isinstance(s[0], str) for s in sizes)


def _edits(context: Context, against: dict[At, list[Judged]]) -> Iterator[Edit]:
    """Yield what declarations may mean instead, the likelier first."""
    known = {
        at: each
        for at in sorted(against)
        for each in context.declarations_of(at[0])
        if each.line == at[1] and _is_plain(each)
    }
    every = [size for _, each in context.declared for size in (each.rows, each.cols)]
    sizes = {size for size in every if len(size) == 1 and isinstance(size[0], str)}
    turned = {
        at: replace(each, rows=each.cols, cols=each.rows)
        for at, each in known.items()
        if each.rows != each.cols
    }
    for at, each in turned.items():
        yield Edit({at: each}, 0)
    for at, each in known.items():
        if each.rows == each.cols:
            for size in sorted(sizes - {each.rows})[:MOST_SIZES]:
                yield Edit({at: replace(each, rows=size, cols=size)}, 0)
    for a, b in combinations(turned, 2):
        if a[1] == b[1]:
            yield Edit({a: turned[a], b: turned[b]}, 1)
    for at, each in known.items():
        for size in sorted(sizes - {each.rows, each.cols})[:MOST_SIZES]:
            yield Edit({at: replace(each, rows=size)}, 2)
            yield Edit({at: replace(each, cols=size)}, 2)
        if each.rows != each.cols:
            yield Edit({at: replace(each, rows=each.cols)}, 2)
            yield Edit({at: replace(each, cols=each.rows)}, 2)


def _is_right(context: Context, judged: Judged) -> bool:
    """Return whether an equation conforms, and is proved if it is one that was decided."""
    (left, right), line, verdict = judged.use.sides, judged.use.line, judged.equation.verdict
    symbols, own = context.symbols_at(line), context.definitions.get(latex(bare(left)), ())
    first = isinstance(bare(left), Derivative) or any(each.line == line for each in own)
    if left is right or verdict == "definition" or (verdict == "shape" and first):
        return not shape_error([left, right], symbols)
    first_side, second_side = judged.sides(context)
    return holds(context, first_side, second_side, line)
