"""Certificates of claims about one position, by induction over the number of positions.

In the step i runs over the first n positions and the last one, as two blocks. In the first block
the claim is the hypothesis of the induction, and in the second the lemma about S[n].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from otimes.algebra.decide.certificate_trees import Scope, Tree, Trees
from otimes.algebra.decide.decision import PositionProof, Proof
from otimes.algebra.decide.lemmas import as_it_is
from otimes.algebra.decide.positions import legs_of
from otimes.algebra.diagrams.legs import branches
from otimes.algebra.language.shapes import inspect, shape_of
from otimes.algebra.language.trees import key

WHOLE, FIRST, LAST = [0], [-1, 0], [-2]  # at wire 0, also in the first block; and the last one


def at_position(writer: Any, claim: Any, found: PositionProof, scope: Scope) -> dict[str, Any]:
    """Return the proof of a claim about one of n positions, or of n + 1."""
    if found.first is not None:
        return _of_one_more(writer, claim, found, scope)
    n = found.depth
    inner = scope.bound("the last position")
    base, step = (replace(inner, depths={**scope.depths, n: at}) for at in ("base", "step"))
    if found.start is not None:
        proofs = {"base": writer.proof(found.start.claim, found.start.proof, base)}
    else:
        proofs = {"base": _cancelled(writer, claim, base, [(_lemma(found, n), [])], n)}
    lemma = _lemma(found, n + found.shift)
    proofs["step"] = _cancelled(writer, claim, step, [(None, FIRST), (lemma, LAST)], n)
    return {"rule": "induction", "over": writer.sizes[key(n)], **proofs}


def _of_one_more(writer: Any, claim: Any, found: PositionProof, scope: Scope) -> dict[str, Any]:
    """Return a proof for n + 1 positions: the first n, and the last one."""
    n, first = found.depth, found.first
    here = as_it_is(_Proved(first, Proof("at a position", position=found._replace(first=None))))
    made = _cancelled(writer, claim, scope, [(here, FIRST), (_lemma(found, n), LAST)], n)
    made = {**made, "uses": [_at_whole(use) for use in made["uses"]]}
    size = writer.tree(n, scope)
    return {**made, "splits": [*made["splits"], [["Add", size, 1], [["|", [size], []]]]]}


def _at_whole(use: dict[str, Any]) -> dict[str, Any]:
    """Return a use of a fact that is about the first positions alone, and not in a block."""
    return {**use, "at": [WHOLE if index == FIRST else index for index in use["at"]]}


class _Proved:
    """A claim with its proof."""

    def __init__(self, claim: Any, proof: Any) -> None:
        self.claim, self.proof = claim, proof


def _lemma(found: PositionProof, number: Any) -> Any:
    """Return the lemma about the last position, for a number of positions."""
    lemma = as_it_is(found.end)
    return lemma.at(lemma.lhs, lemma.rhs, {key(found.depth): number})


def _cancelled(
    writer: Any, claim: Any, scope: Scope, facts: Sequence[Any], depth: Any
) -> dict[str, Any]:
    """Return a proof in which each fact is the claim where the position lies in one block.

    A fact is a lemma, or None for the hypothesis of the induction.
    """
    reading, legs = legs_of(claim, [*(shape_of(claim.lhs) or ()), *_others(claim, depth)])
    splits = writer.splits(claim, Proof("normal forms", reading), scope)
    made: list[Any] = []
    uses: list[Any] = []
    hypotheses = claim.facts + (scope.depths.get(depth) == "step")
    for lemma, block in facts:
        number = claim.facts
        names = list(inspect(claim.lhs, claim.rhs).indices)
        if lemma is not None:
            fact, every = writer.instance(lemma, {}, splits, scope)
            names = list(every)
            number = hypotheses + len(made)
            made.append(fact)
        uses += _uses(writer, claim, scope, legs, (number, names, block, depth), reading)
    return {"rule": "cancel", "splits": splits, "facts": made, "uses": uses}


def _others(claim: Any, depth: Any) -> list[Any]:
    """Return the numbers of values of the free indices other than the position."""
    return [n for _, n in inspect(claim.lhs, claim.rhs).indices.values() if not n.has(depth)]


def _uses(
    writer: Trees,
    claim: Any,
    scope: Scope,
    legs: Sequence[Any],
    fact: tuple[int, list[str], list[int], Any],
    reading: Any,
) -> Iterator[dict[str, Any]]:
    """Yield the uses of a fact: one for each block of the rows, the columns and the indices."""
    number, names, block, depth = fact
    shape = shape_of(claim.lhs) or ()
    sizes = [*shape, *_others(claim, depth)]
    indices = inspect(claim.lhs, claim.rhs).indices
    for choice in product(*[_branches(*each, reading) for each in zip(sizes, legs, strict=True)]):
        wires = [writer.tree(depth, scope)] if block == FIRST else []
        placed = []
        for branch in choice:
            at = []
            for item in branch:
                at.append(item if isinstance(item, int) else len(wires))
                wires += [] if isinstance(item, int) else [writer.tree(item, scope)]
            placed.append(at)
        sides = placed[: len(shape)] or [[], []]
        others = iter(placed[len(shape) :])
        where = {one: block if n.has(depth) else next(others) for one, (_, n) in indices.items()}
        yield {
            "fact": number,
            "coefficient": 1,
            "at": [where[one] for one in names],
            "context": {
                "sizes": wires,
                "held": [],
                "free": [[scope.indices[one][1], at] for one, at in where.items()],
                "rows": sides[0],
                "cols": sides[1],
                "boxes": [],
                "hole": sides,
            },
        }


def _branches(size: Any, legs: Any, reading: Any) -> list[list[Tree]]:
    """Return the blocks of a size: in each the marks, and the sizes of the wires."""
    if legs is None:
        return [[size] if size != 1 else []]
    known = reading.dimensions.expressions
    return [[item if item < 0 else known[item] for item in branch] for branch in branches(legs)]
