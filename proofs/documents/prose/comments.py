"""Comments for otimes in a document: shapes, hypotheses, equations to ignore."""

from __future__ import annotations

from dataclasses import replace

from otimes.algebra.errors import OtimesError
from otimes.algebra.notation.parser import parse_formula
from otimes.algebra.notation.symbols import declarations
from otimes.proofs.documents.containers.source import Comment, Document, DocumentError
from otimes.proofs.documents.prose.notation import Notation
from otimes.proofs.documents.reporting.report import Equation
from otimes.proofs.documents.symbols.context import Context
from otimes.proofs.documents.symbols.hypotheses import Hypothesis

SETTINGS = ("convention", "vec", "softmax")
Ignored = tuple[int, int, str]


def read_comments(
    document: Document, notation: Notation
) -> tuple[Context, list[Hypothesis], list[Ignored], list[Equation]]:
    """Return the context from a notation and comments, the hypotheses, and what is ignored.

    The last list has what could not be read in comments.
    """
    context = Context(
        notation.symbols,
        in_scope=document.is_in_scope,
        is_general=document.is_general,
        is_about_notation=document.is_about_notation,
        together=document.is_one_paragraph,
        words_near=document.words_near,
        clauses_near=document.clauses_near,
        formulas_by_sentence=lambda: document.formulas_by_sentence,
        words_of_section=document.words_of_section,
    )
    origin = f"notation {notation.name}" if notation.name else ""
    given = [_hypothesis(text, origin) for text in notation.given]
    ignored: list[Ignored] = []
    problems: list[Equation] = []
    for comment in document.comments:
        if comment.text.startswith("ignore"):
            reason = comment.text[6:].strip(" :") or "no reason is given"
            ignored.append((comment.start, comment.end, reason))
            continue
        word = ""
        for part in filter(None, map(str.strip, comment.text.split(";"))):
            more = word == "given" and "=" in part and ":" not in part  # one more hypothesis
            part = f"given: {part}" if more else part
            word = part.partition(":")[0]
            try:
                _read_part(part, document.row(comment.start), context, given)
            except OtimesError as error:
                problems.append(_problem(document, comment, part, error))
    return context, given, ignored, problems


def _read_part(part: str, line: int, context: Context, given: list[Hypothesis]) -> None:
    word, colon, said = part.partition(":")
    if word == "given" and said.partition(":")[0].strip() in SETTINGS:
        _read_part(said.strip(), line, context, given)
    elif word == "given" and colon:
        given.append(_hypothesis(said, f"line {line}"))
    elif word == "convention" and said.strip() in ("row", "column"):
        context.base.convention = said.strip()
    elif word == "vec" and said.strip() in ("rows", "cols", "columns"):
        context.base.vec = said.strip().replace("columns", "cols")
    elif word == "softmax" and said.strip() in ("rows", "columns"):
        context.base.softmax = said.strip()
    elif word == "elementwise" and colon:
        context.base.elementwise |= set(said.replace(",", " ").split())
    else:
        symbols = declarations(part)
        context.base.functions |= symbols.functions
        context.declared += [
            (key, replace(known, line=line)) for key, known in symbols.known.items()
        ]


def _problem(document: Document, comment: Comment, part: str, error: OtimesError) -> Equation:
    at = document.text.find(part, comment.start)
    start = at if comment.start <= at < comment.end else comment.start
    line, column = document.position(start)
    why = f"this comment is not read: {error}"
    cell = document.cell(start)
    return Equation(
        document.name, line, column, part, "unread", why, cell=cell, span=(start, start + len(part))
    )


def _hypothesis(text: str, origin: str) -> Hypothesis:
    statements = parse_formula(text, plain="\\" not in text)
    if len(statements) != 1 or len(statements[0].terms) != 2:
        raise DocumentError(f"the hypothesis {text.strip()!r} is not an equation")
    return Hypothesis(*statements[0].terms, origin, declared=True)
