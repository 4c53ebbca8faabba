r"""Shapes that sentences say of products: `its state $K^\top V$ is $r \times d$`.

What is declared gives the product a shape. A sentence that says another, of the sizes of its own
factors, is wrong: as a rule these are in the wrong order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from otimes.algebra.errors import OtimesError
from otimes.algebra.notation.elaborate import elaborate
from otimes.algebra.notation.tree import Name, Node, Power, Product, walk
from otimes.algebra.notation.typed import FormulaShapeError
from otimes.proofs.documents.prose.declared_in_words import M, Prose
from otimes.proofs.documents.prose.tables import shape_of
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.reporting.report import Equation
from otimes.proofs.documents.symbols.context import Context
from otimes.proofs.documents.symbols.declared_in_formulas import declared_as
from otimes.proofs.documents.verdicts.circumstances import is_conditional, is_denied
from otimes.proofs.documents.verdicts.judge import Judge

KIND = r"(?:(?!not\b)\w+\s+)?(?:matrix\s+)?(?:of\s+)?(?:(?:shape|size|dimensions?)\s+)?"
END = r"(?!\s*(?:to|or|and|if|when|after|unless|once|before)\b)"
SAID = (
    re.compile(rf"{M}\s+(?:is|has)\s+(?:an?\s+|the\s+|of\s+)?{KIND}{M}{END}"),
    re.compile(rf"{M}\s*[,(]\s*(?:which\s+is\s+)?(?:an?\s+|of\s+){KIND}{M}{END}"),
)
OF = re.compile(rf"\b(?:an?|the|this)\s+{M}\s+matrix\s+{M}", re.IGNORECASE)
SHAPE = re.compile(r"cannot equate .*? \((\S+ × \S+)\) and \S")


def said_shapes(prose: Prose, context: Context, judge: Judge) -> Iterator[Equation]:
    """Yield the shapes of products that sentences say and declarations contradict."""
    document = prose.document
    for match, term_at, shape_at in _matches(prose.text):
        term, shape = prose.node(term_at), prose.node(shape_at)
        words = prose.text[prose.text.rfind(". ", 0, match.start()) + 1 : match.start()]
        if not isinstance(term, Product | Power) or is_denied(words) or is_conditional(words):
            continue
        offset = prose.formulas[int(term_at)].start
        found = _wrong(term, shape, context, judge, document.row(offset))
        if found is not None:
            line, column = document.position(offset)
            text = re.sub(M, lambda m: prose.formulas[int(m[1])].tex.strip(), match[0])
            yield Equation(
                document.name,
                line,
                column,
                " ".join(text.split()),
                found.verdict,
                document.named_lines(found.why),
                cell=document.cell(offset),
                span=(offset, offset),
            )


def _matches(text: str) -> Iterator[tuple[re.Match[str], str, str]]:
    for pattern in SAID:
        yield from ((match, match[1], match[2]) for match in pattern.finditer(text))
    yield from ((match, match[2], match[1]) for match in OF.finditer(text))


def _wrong(
    term: Node, shape: Node | None, context: Context, judge: Judge, line: int
) -> Found | None:
    """Return the shape error of a product that is said to have a shape, or None."""
    sizes = shape_of(shape)
    member = declared_as(sizes, line) if len(sizes) == 2 else None
    if member is None:
        return None
    symbols = context.symbols_at(line)
    known = [symbols.lookup(e)[1] for e in walk(term) if isinstance(e, Name)]
    own = {size for each in known if each is not None for size in (each.rows, each.cols)}
    if any(each is None or each.kind != "matrix" or not each.line for each in known):
        return None
    if not {member.rows, member.cols} <= own:
        return None
    symbols.known["⟨said⟩"] = member
    try:
        elaborate([term, Name("⟨said⟩")], symbols)
    except FormulaShapeError as error:
        its = SHAPE.match(str(error))
        if its is None:  # the product does not conform itself
            return None
        found = Found("shape", f"by its factors it is {its[1]}")
        found = judge.conflicts.doubted(found, [term], line, "")
        return judge.of_this_section(found, [term], line) if found.is_wrong else None
    except OtimesError:
        return None
    return None
