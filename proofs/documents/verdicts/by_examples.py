"""Statements about ranks, determinants and norms that are false at exact numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain

from otimes.algebra.notation.symbols import Declared, key_of
from otimes.algebra.notation.tree import (
    Apply,
    Name,
    Node,
    Norm,
    Product,
    Tensor,
    bare,
    latex,
    walk,
)
from otimes.proofs.documents.proving.bounds import RANKS, of_rank
from otimes.proofs.documents.proving.scalar_examples import different, exceeding
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.symbols.context import Context, Definition
from otimes.proofs.documents.symbols.hypotheses import Hypothesis

# Words for what a rank is where it is as large as it can be.
FULL = re.compile(r"\b(?:full|generic\w*|independent|almost|typical\w*|exactly)\b", re.IGNORECASE)
RANK = re.compile(r"\brank\b", re.IGNORECASE)
INVERTIBLE = re.compile(r"\b(?:invertible|non-?singular)\b", re.IGNORECASE)


def exceeded(context: Context, left: Node, right: Node, line: int) -> Found | None:
    """Return the refutation of left ≤ right by exact numbers, or None.

    The text says nothing of the matrices, and not that ranks are as large as they can be. A bound
    on a norm has symbols on both sides: one by a constant is mostly assumed.
    """
    used: dict[str, Definition] = {}
    sides = with_definitions(context, [left, right], used)
    if not (_of_ranks(sides) or all(_matrices(side, context, line) for side in sides)):
        return None
    if any(is_bound(side, context, line) for side in sides) or may_be_full(context, line):
        return None
    if _of_elsewhere(used, context, line) or _has_a_rank(sides, context, line):
        return None
    shown = exceeding(*sides, context.symbols_at(line))
    return _refuted(f"it is false at exact numbers: {shown}", used) if shown else None


def unequal(context: Context, left: Node, right: Node, line: int) -> Found | None:
    """Return the refutation of an equation of ranks, determinants or norms, or None.

    The text says nothing of the matrices in it, which both sides have: `‖x‖ = ‖y‖` says what they
    are.
    """
    used: dict[str, Definition] = {}
    sides = with_definitions(context, [left, right], used)
    mine = [_matrices(side, context, line) for side in sides]
    if not mine[0] or mine[0] != mine[1] or not any(map(_is_beyond, chain(*map(walk, sides)))):
        return None
    if any(is_bound(side, context, line) for side in sides):
        return None
    if _of_elsewhere(used, context, line) or _has_a_rank(sides, context, line):
        return None
    shown = different(*sides, context.symbols_at(line))
    return _refuted(f"the sides are {shown}", used) if shown else None


def _is_beyond(node: Node) -> bool:
    """Return whether a term is a rank, a determinant or a norm, which equations are not about."""
    of = node.function.base if isinstance(node, Apply) else ""
    return of == "det" or of in RANKS or isinstance(node, Norm)


def _has_a_rank(sides: Sequence[Node], context: Context, line: int) -> bool:
    """Return whether words speak of ranks near a statement that has none: “let M have rank one”."""
    return bool(RANK.search(context.words_near(line))) and not _of_ranks(sides)


def _of_elsewhere(used: dict[str, Definition], context: Context, line: int) -> bool:
    """Return whether a definition is of another section, or of a symbol that is declared since."""
    for each in used.values():
        if not context.in_scope(each.line, line):
            return True
        keys = {key_of(e) for e in walk(each.lhs) if isinstance(e, Name)}
        later = [d.line for key in keys for d in context.declarations_of(key)]
        if any(each.line < at <= line for at in later):
            return True
    return False


def _refuted(why: str, used: dict[str, Definition]) -> Found:
    names = "".join(f"; with {text} as on line {d.line}" for text, d in sorted(used.items()))
    return Found("refuted", f"{why}{names}")


def _of_ranks(sides: Sequence[Node]) -> bool:
    return any(of_rank(e) is not None for side in sides for e in walk(side))


def _matrices(node: Node, context: Context, line: int) -> list[str]:
    """Return the declared matrices and vectors of a term, by their keys."""
    known = context.symbols_at(line).known
    keys = {key_of(e) for e in walk(node) if isinstance(e, Name)}
    return sorted(key for key in keys & known.keys() if known[key].kind in ("matrix", "vector"))


def may_be_full(context: Context, line: int) -> bool:
    """Return whether words say that ranks are as large as they can be."""
    return bool(FULL.search(context.words_near(line)) or INVERTIBLE.search(context.sentence))


def with_definitions(
    context: Context, sides: Sequence[Node], used: dict[str, Definition]
) -> tuple[Node, Node]:
    """Return two terms with the definitions of the text put in; these are noted in `used`."""
    put = context.instances(sides)
    left, right = (context.unfolded(bare(side), used, None, put) for side in sides)
    return left, right


def is_bound(node: Node, context: Context, line: int) -> bool:
    """Return whether a symbol of a term is defined, or occurs in an earlier hypothesis.

    How ⊗ acts binds none, and what is said of `A^h` says nothing of `A`.
    """
    names = {e for e in walk(node) if isinstance(e, Name)}
    mine = {key_of(e) for e in names}
    plain = {key_of(e) for e in names if not e.sup}
    about = {
        key_of(e)
        for each in context.hypotheses
        if (each.declared or _line(each) <= line) and not _acts(each)
        for side in (each.lhs, each.rhs)
        for e in walk(side)
        if isinstance(e, Name) and not (_has_index_above(e) and key_of(e) in plain)
    }
    symbols = context.symbols_at(line)
    for word, keys, _ in context.words:
        square = word != "invertible"
        about |= {key for key in keys if square or _may_be_square(symbols.known.get(key))}
    defined = {text for e in names for text in (latex(e),) if text in context.definitions}
    return bool(defined or context.instances([node]) or mine & about)


def _has_index_above(name: Name) -> bool:
    """Return whether a symbol has a head or a layer above, and no power: `A^h`."""
    return any(slot.kind == "index" for slot in name.sup)


def _acts(given: Hypothesis) -> bool:
    r"""Return whether a hypothesis says how ⊗ acts: `(A \otimes W) x = A x W^\top`."""
    sides = [bare(side) for side in (given.lhs, given.rhs)]
    return any(
        isinstance(side, Product) and isinstance(bare(side.factors[0]), Tensor) for side in sides
    )


def _may_be_square(known: Declared | None) -> bool:
    return known is None or known.kind != "matrix" or known.rows == known.cols


def _line(hypothesis: Hypothesis) -> int:
    said = re.search(r"line (\d+)", hypothesis.origin)
    return int(said[1]) if said else 0
