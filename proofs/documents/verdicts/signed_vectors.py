r"""Vectors whose entries have a sign, as a code $c \ge 0$: no rule uses that.

So an equation that is false of any vectors may be true of these.
"""

from __future__ import annotations

from dataclasses import replace

from otimes.algebra.notation.tree import Node
from otimes.proofs.documents.proving.related import keys_in
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.symbols.context import Context


def unless_signed(found: Found, context: Context, lhs: Node, rhs: Node, line: int) -> Found:
    """Return what is said of a false equation, unless a text says of what signs its vectors are."""
    others = context.instances([lhs, rhs])
    mine = keys_in(*(context.unfolded(side, {}, None, others) for side in (lhs, rhs)))
    said = [each for each in sorted(context.signed) if each[0] in mine]
    near = [(key, at) for key, at in said if context.in_scope(at, line) and at <= line]
    if not near:
        return found
    key, at = near[0]
    why = f"it is false in general, and the sign of {key} on line {at} is not used"
    return replace(found, verdict="undecided", why=why, counterexample=None, suggestion="")
