r"""An equation and a definition of which one must be wrong.

Where one edit of the equation makes the two agree, the equation is called wrong: `M = K^\top Q` and
`(Q x)^\top (K y) = x^\top M y`. Where none does, as with `\hat W k = v`, and one edit of the
definition makes them agree, the definition is.
"""

from __future__ import annotations

from collections import Counter

from otimes.algebra.budget import STEPS, steps_done
from otimes.algebra.errors import OtimesError
from otimes.algebra.notation.elaborate import elaborate
from otimes.algebra.notation.symbols import key_of
from otimes.algebra.notation.tree import Name, Node, latex, walk
from otimes.proofs.documents.proving.attempts import TRIAL, attempted, symbols_in
from otimes.proofs.documents.proving.questions import decide
from otimes.proofs.documents.symbols.context import Context
from otimes.proofs.documents.verdicts.suggestions import edits_of
from otimes.proofs.documents.verdicts.suspects import MOST_WORK, Use, holds


def is_false(context: Context, use: Use) -> bool:
    """Return whether exact numbers refute an equation with its definitions put in.

    All is declared, but numbers that both sides have, and the hypotheses of the text hold.
    """
    sides = [context.unfolded(side, {}, (), use.definitions) for side in use.sides]
    symbols = context.symbols_at(use.line)
    try:
        read = elaborate(sides, symbols)
        verdict = decide(read.terms[0], read.terms[1], budget=TRIAL)
    except OtimesError:
        return False
    if verdict.status != "refuted" or read.doubts:
        return False
    both = _keys(sides[0]) & _keys(sides[1])
    if any(kind != "scalar" or key not in both for key, kind in read.undeclared.items()):
        return False
    given = context.declared_hypotheses(sides)
    under = attempted(sides[0], sides[1], given, symbols)[0] if given else verdict
    return under is not None and under.status == "refuted"


def mends_itself(context: Context, use: Use) -> bool:
    """Return whether one edit of an equation makes it true with its definitions as they are."""
    begun, sizes = steps_done(), context.symbols_at(use.line).sizes()
    for k, side in enumerate(use.sides):
        others = Counter(e for e in walk(use.sides[1 - k]) if isinstance(e, Name))
        for _, edited in edits_of(side, others, sizes):
            if steps_done() - begun > MOST_WORK * STEPS:
                return False
            sides = (edited, use.sides[1]) if k == 0 else (use.sides[0], edited)
            put = [context.unfolded(each, {}, (), use.definitions) for each in sides]
            if latex(sides[0]) != latex(sides[1]) and holds(context, put[0], put[1], use.line):
                return True
    return False


def _keys(node: Node) -> set[str]:
    return {key_of(e) for e in symbols_in(node) if isinstance(e, Name)}
