r"""Sums of parts that a text then says: `W = S + K` with `S = \frac12 (W + W^\top)`.

Such an equation defines nothing: its parts are defined by what it stands for.
"""

from __future__ import annotations

from otimes.algebra.notation.symbols import full_key
from otimes.algebra.notation.tree import Name, Node, bare, is_constant, latex, walk
from otimes.proofs.documents.symbols.context import Context, Definition


def parts_defined_by(context: Context, left: Node, right: Node, line: int) -> dict[str, Definition]:
    """Return the definitions that follow of new symbols on the right side, if one is by the left.

    They are in the same paragraph. Of a symbol with two of them nothing is known.
    """
    whole = bare(left)
    if not isinstance(whole, Name):
        return {}
    symbols = context.symbols_at(line)
    found: dict[str, Definition] = {}
    for e in walk(right):
        text = latex(e) if isinstance(e, Name) and not is_constant(e) else ""
        if not isinstance(e, Name) or not text or text in context.definitions:
            continue
        known = symbols.lookup(e)[1]
        own = not (e.sub or e.sup) or (known is not None and known.full == full_key(e))
        if known is not None and known.line and own:
            continue
        after = [d for d in context.ahead.get(text, ()) if context.together(line, d.line)]
        after = [d for d in after if d.line >= line and bare(d.rhs) != whole]
        if len(after) == 1:
            found[text] = after[0]
    names = {text: {e for e in walk(d.rhs) if isinstance(e, Name)} for text, d in found.items()}
    return found if any(whole in each for each in names.values()) else {}
