r"""Properties that words say of what an equation defines: `$S = W - W^\top$, which is symmetric`.

The definition is called wrong where it does not have the property, and one edit gives it that, or
where nothing is left open in it but sizes. What else the text says of its symbols may give it the
property: then nothing is called wrong.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from otimes.algebra.notation.symbols import text_of
from otimes.algebra.notation.tree import Group, Name, Node, Number, Power, Product, Sum, latex
from otimes.proofs.documents.containers.source import Document, Formula
from otimes.proofs.documents.proving.attempts import attempted, symbols_in
from otimes.proofs.documents.proving.under_hypotheses import offered
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.symbols.context import Context
from otimes.proofs.documents.verdicts.contradictions import is_false
from otimes.proofs.documents.verdicts.suggestions import SLIPS, edits_of, folded
from otimes.proofs.documents.verdicts.suspects import MOST_EDITS, Use, holds

Sides = tuple[Node, Node]
Property = Callable[[Node], Sides]

END = r"(?:\$\$?|\\\)|\\\]|`)?\s*"
SIZE = r"(?:\$[^$\n]{1,30}\$\s+)?"
KIND = r"(?:symmetric\s+|orthogonal\s+|centering\s+|centring\s+|square\s+)?"
WORD = (
    r"(?P<word>symmetric|antisymmetric|skew-?symmetric|idempotent|projection|projector)\b"
    r"(?!\s+(?:in|if|when|only|unless|up|part|about|with|under|of|head|layer|bias)\b)"
)
SUM = (
    r"(?P<side>rows|columns)\s+(?:all\s+|each\s+)?(?:sum|add\s+up)\s+to\s+"
    r"(?P<sum>zero|one|\$0\$|\$1\$)"
)
AFTER = re.compile(
    rf"{END}(?:,?\s*(?:which|that)\s+is\s+(?:then\s+|again\s+)?(?:an?\s+)?{KIND}"
    rf"|is\s+(?:an?\s+)?{KIND}|,\s*an?\s+{SIZE}{KIND}|be\s+(?:an?|the)\s+{SIZE}{KIND}"
    rf"|(?:[^.;$]|\$[^$\n]{{1,30}}\$){{0,60}}[.;]\s+(?:It|This(?:\s+matrix)?)\s+is\s+(?:an?\s+)?{KIND})"
    rf"{WORD}"
    rf"|{END},?\s*(?:(?:which|that)\s+)?(?P<does>projects)\s+(?:onto|out|away)\b",
    re.IGNORECASE,
)
SUMS = re.compile(
    rf"{END}(?:,?\s*(?:and|so|so\s+that)?\s*(?:whose|its)\s+|[.;]\s+Its\s+){SUM}", re.IGNORECASE
)
BEFORE = re.compile(
    r"\b(?P<word>symmetric|antisymmetric|skew-?symmetric)(?P<does>)\s+part\s+(?:is|of\s+\S{1,12}\s+is)\s+\$?$",
    re.IGNORECASE,
)


def contradicted_by_words(
    context: Context, document: Document, formula: Formula, name: Name, value: Node, line: int
) -> Found | None:
    """Return the verdict on a definition that does not have the property that words say, or None.

    The words are those before its formula, or just after it.
    """
    for said, property_ in _said(document, formula):
        put = context.unfolded(value, {}, None, context.instances([value]))
        if not _is_refuted(context, property_(Group(put)), line):
            continue
        sizes = context.symbols_at(line).sizes()
        closed = all(text_of(e) in sizes for e in symbols_in(put))
        kinds = ("sign",) if closed else SLIPS
        mended = ""
        for kind, edited in _likelier_first(islice(edits_of(value, Counter(), sizes), MOST_EDITS)):
            others = context.instances([edited])
            sides = property_(Group(context.unfolded(edited, {}, None, others)))
            if kind in kinds and holds(context, *sides, line):
                mended = f"{latex(name)} = {latex(folded(edited))}"
                break
        if mended or closed:
            why = f"it is not what the words say, “{said}”: the sides of "
            left, right = (latex(side) for side in property_(name))
            return Found("refuted", f"{why}{left} = {right} differ", suggestion=mended)
    return None


def _likelier_first(edited: Iterable[tuple[str, Node]]) -> list[tuple[str, Node]]:
    """Return edits, those of a sign first, and of these the one of the last term."""
    every = [*edited]
    signs = [each for each in every if each[0] == "sign"]
    return [*reversed(signs), *[each for each in every if each[0] != "sign"]]


def _is_refuted(context: Context, sides: Sides, line: int) -> bool:
    """Return whether exact numbers refute a property, whatever else is said of its symbols."""
    if not is_false(context, Use(sides, {}, line)):
        return False
    symbols = context.symbols_at(line)
    given = offered(context, *sides, symbols, line)
    given += context.declared_hypotheses(sides)
    verdict = attempted(*sides, given, symbols)[0] if given else None
    return not given or (verdict is not None and verdict.status == "refuted")


def _said(document: Document, formula: Formula) -> Iterator[tuple[str, Property]]:
    """Yield the words for properties of what a formula defines, and the equations that they say."""
    for match in (
        AFTER.match(document.prose, formula.end),
        BEFORE.search(document.sentence_before(formula)),
    ):
        if match is not None:
            word = match["word"] or match["does"]
            yield word, PROPERTIES[word.lower().replace("-", "")]
    sums = SUMS.match(document.prose, formula.end)
    if sums is not None:
        one = sums["sum"] in ("one", "$1$")
        yield f"{sums['side']} sum to {sums['sum']}", _sums(sums["side"].lower() == "rows", one)


def _symmetric(x: Node) -> Sides:
    return Power(x, "T"), x


def _antisymmetric(x: Node) -> Sides:
    return Power(x, "T"), Sum((x,), ("-",))


def _idempotent(x: Node) -> Sides:
    return Product((x, x), ("", "")), x


def _sums(rows: bool, one: bool) -> Property:
    ones = Name("1", "bf")

    def sides(x: Node) -> Sides:
        product = Product((x if rows else Power(x, "T"), ones), ("", ""))
        return product, ones if one else Number("0")

    return sides


PROPERTIES: dict[str, Property] = {
    "symmetric": _symmetric,
    "antisymmetric": _antisymmetric,
    "skewsymmetric": _antisymmetric,
    "idempotent": _idempotent,
    "projection": _idempotent,
    "projector": _idempotent,
    "projects": _idempotent,
}
