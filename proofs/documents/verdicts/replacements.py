r"""Replacements in words that do not leave unchanged what the next equation says is unchanged.

“Replace $W_Q$ by $W_Q R$ and $W_K$ by $W_K R^{-1}$. Then $(W_Q R)(W_K R^{-T})^T = W_Q W_K^T$”: the
equation is true, and the words are of another replacement. They are called wrong where one edit of
what a symbol is replaced by makes them agree with the equation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from otimes.algebra.notation.elaborate import shape_error
from otimes.algebra.notation.tree import Grid, Group, Name, Node, bare, is_constant, latex, mapped
from otimes.algebra.notation.tree import walk as parts_of
from otimes.proofs.documents.containers.source import Formula
from otimes.proofs.documents.prose.declared_in_words import Prose
from otimes.proofs.documents.prose.items import Item
from otimes.proofs.documents.proving.attempts import TRIAL, attempted
from otimes.proofs.documents.reporting.report import Equation
from otimes.proofs.documents.symbols.context import Context
from otimes.proofs.documents.verdicts.suggestions import edits_of

BY = re.compile(r"⟦(\d+)⟧\s+(?:by|with|becomes|into)\s+⟦(\d+)⟧")
REPLACED = re.compile(
    r"\b(?:replac\w+|chang\w+|substitut\w+|transform\w+|becomes)\b", re.IGNORECASE
)
ARROWS = (r"\to", r"\mapsto", r"\rightarrow", r"\longrightarrow", r"\longmapsto")
SENTENCE = re.compile(r"(?:[^.!?\n]|\n(?!\s*\n)|[.!?](?!\s))+")
# Words between a replacement and an equation, after which this is about something else.
DOUBT = re.compile(
    r"\b(?:not|no longer|but|others?|different|wrong\w*|instead|whereas|unlike|tempting|nai?ve\w*|"
    r"(?:in)?correct\w*|right|must|rather|however|unless|mistak\w+|fails?|breaks?|compensat\w+|"
    r"chang(?:es?|ed) (?!nothing|neither))\b",
    re.IGNORECASE,
)
NEXT = 3  # chains after a replacement that may say what it leaves unchanged


@dataclass(frozen=True, slots=True)
class Replaced:
    """A symbol that words replace by a term, and the formula that the term is of."""

    name: Name
    by: Node
    formula: Formula


def false_replacements(prose: Prose, context: Context, items: Sequence[Item]) -> Iterator[Equation]:
    """Yield the replacements that change what the equation after them says is unchanged."""
    parsed = {item.formula.start: item for item in items}
    for sentence in SENTENCE.finditer(prose.text):
        found = [*_replaced(sentence[0], prose, parsed)]
        if not found:
            continue
        start = found[0].formula.start
        after = [item for item in items if item.formula.start > start and _is_chain(item)]
        row = prose.document.row(start)
        near = [item for item in after[:NEXT] if context.together(item.line, row)]
        begin = prose.offset(sentence.start())
        for item in near:
            if DOUBT.search(prose.document.words(begin, item.formula.start)):
                break
            made = _contradicted(found, item, prose, context)
            if made is not None:
                yield made
                break


def _replaced(sentence: str, prose: Prose, parsed: Mapping[int, Item]) -> Iterator[Replaced]:
    numbers = [int(number) for number in re.findall(r"⟦(\d+)⟧", sentence)]
    if REPLACED.search(sentence):
        for match in BY.finditer(sentence):
            name, by = prose.node(match[1]), prose.node(match[2])
            if isinstance(name, Name) and by is not None:
                yield Replaced(name, by, prose.formulas[int(match[2])])
    for number in numbers:
        formula = prose.formulas[number]
        item = parsed.get(formula.start)
        for statement in item.statements if item else ():
            if len(statement.relations) == 1 and statement.relations[0] in ARROWS:
                for name, by in _pairs(*map(bare, statement.terms)):
                    yield Replaced(name, by, formula)


def _pairs(left: Node, right: Node) -> Iterator[tuple[Name, Node]]:
    r"""Yield the pairs of `W \to W M` and of `(W, V) \mapsto (W M, V M)`."""
    if isinstance(left, Grid) and isinstance(right, Grid) and len(left.rows) == 1:
        cells = zip(left.rows[0], right.rows[0], strict=False)
    else:
        cells = zip([left], [right], strict=True)
    for name, by in cells:
        if isinstance(name, Name) and by is not None:
            yield name, by


def _is_chain(item: Item) -> bool:
    return any(s.relations and {*s.relations} == {"="} for s in item.statements)


def _contradicted(
    every: Sequence[Replaced], item: Item, prose: Prose, context: Context
) -> Equation | None:
    """Return the replacement that an equation contradicts, with the edit that mends it."""
    statement = next(s for s in item.statements if s.relations and {*s.relations} == {"="})
    terms = [_plain(context.unfolded(term, {})) for term in statement.terms]
    for kept in terms:
        own = {latex(e) for e in parts_of(kept) if isinstance(e, Name)}
        found = [each for each in every if latex(each.name) in own]
        new = _new(found)
        if not found or own & new:
            continue
        put = {latex(each.name): each.by for each in found}
        changed = _put(kept, put)
        like = [t for t in terms if new and _count(t, new) == _count(changed, new)]
        if not like or not _holds(context, like[0], kept, item.line):
            continue
        status = _status(context, changed, kept, item.line)
        if status not in ("refuted", "shape"):
            continue
        for each in sorted(found, key=lambda each: _is_written(each.by, like[0])):
            edited = _mended(context, each, put, kept, item.line)
            if edited is not None:
                return _equation(each, edited, changed, kept, item, prose, status)
    return None


def _is_written(term: Node, whole: Node) -> bool:
    """Return whether a term is written in another, and not as the base of a power."""
    part, text = (re.sub(r"[\s()]", "", latex(each)) for each in (term, whole))
    return re.search(rf"{re.escape(part)}(?![\^}}])", text) is not None


def _new(found: Sequence[Replaced]) -> set[str]:
    """Return the symbols that replacements bring in."""
    own = {latex(each.name) for each in found}
    names = (e for each in found for e in parts_of(each.by) if isinstance(e, Name))
    return {latex(e) for e in names if not is_constant(e)} - own


def _count(term: Node, names: set[str]) -> int:
    return sum(isinstance(e, Name) and latex(e) in names for e in parts_of(term))


def _put(term: Node, put: Mapping[str, Node]) -> Node:
    def change(part: Any) -> Any:
        if not isinstance(part, Name):
            return None
        by = put.get(latex(part))
        return part if by is None else Group(by)

    changed: Node = mapped(term, change)
    return changed


def _plain(term: Node) -> Node:
    """Return a term without what the definitions in it stand for."""

    def change(part: Any) -> Any:
        defined = isinstance(part, Group) and part.stands_for is not None
        return Group(_plain(part.inner)) if defined else None

    plain: Node = mapped(term, change)
    return plain


def _status(context: Context, left: Node, right: Node, line: int) -> str:
    given = context.declared_hypotheses([left, right])
    symbols = context.symbols_at(line)
    if shape_error([left, right], symbols):
        return "shape"
    verdict, _ = attempted(left, right, given, symbols, TRIAL)
    return "" if verdict is None else verdict.status


def _holds(context: Context, left: Node, right: Node, line: int) -> bool:
    return _status(context, left, right, line) == "proved"


def _mended(
    context: Context, each: Replaced, put: Mapping[str, Node], kept: Node, line: int
) -> Node | None:
    """Return what to replace a symbol by, with one edit, so that nothing changes, or None."""
    sizes = context.symbols_at(line).sizes()
    for kind, edited in edits_of(each.by, Counter(), sizes):
        other = {**put, latex(each.name): edited}
        if kind in ("transpose", "swap") and _holds(context, _put(kept, other), kept, line):
            return edited
    return None


def _equation(
    each: Replaced, edited: Node, changed: Node, kept: Node, item: Item, prose: Prose, status: str
) -> Equation:
    document = prose.document
    start = each.formula.start
    name, kept_as, changed_as = latex(each.name), latex(kept), latex(changed)
    misfit = ", which does not conform" if status == "shape" else ""
    why = f"so {kept_as} becomes {changed_as}{misfit}: line {item.line} says that nothing changes"
    return Equation(
        document.name,
        *document.position(start),
        " ".join(each.formula.tex.split()),
        status,
        document.named_lines(why),
        suggestion=f"{name} \\to {latex(edited)}",
        cell=document.cell(start),
        span=(start, each.formula.end),
    )
