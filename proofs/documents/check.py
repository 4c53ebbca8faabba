r"""Check the mathematics of a document: every equation, and every link of a chain.

>>> report = check_text(r"Let $A, B \in \mathbb{R}^{n \times n}$. Then $(AB)^T = A^T B^T$.")
>>> [(each.verdict, each.suggestion) for each in report.equations]
[('definition', ''), ('refuted', '(A B)^T = B^T A^T')]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from otimes.algebra.notation.parser import parse_formula
from otimes.algebra.notation.symbols import (
    Declared,
    default,
    key_of,
    split_by_index,
)
from otimes.algebra.notation.tokens import NotationError
from otimes.algebra.notation.tree import (
    Name,
    is_constant,
    walk,
)
from otimes.proofs.documents.containers.einsum import with_einsum
from otimes.proofs.documents.containers.files import read_document
from otimes.proofs.documents.containers.markdown import read_markdown
from otimes.proofs.documents.containers.source import Document
from otimes.proofs.documents.prose.assertions import assertions
from otimes.proofs.documents.prose.comments import read_comments
from otimes.proofs.documents.prose.consistency import clashes
from otimes.proofs.documents.prose.conventions import convention_notes
from otimes.proofs.documents.prose.declared_in_words import (
    Prose,
    columns_of_ones,
    said_in,
    softmax_in,
)
from otimes.proofs.documents.prose.entries_in_words import entries_in
from otimes.proofs.documents.prose.gradients import read_gradients
from otimes.proofs.documents.prose.items import (
    Item,
    composed_functions,
    confirmed,
    declare,
    defined_in,
    families_in,
    labelled,
    numbered_in,
    offered,
    order_of_vec,
    read_items,
    with_an_index,
)
from otimes.proofs.documents.prose.notation import Notation, load_notation
from otimes.proofs.documents.prose.parts_in_words import parts_in
from otimes.proofs.documents.prose.rows_and_columns import members_in
from otimes.proofs.documents.prose.rows_as_columns import declare_rows_as_columns
from otimes.proofs.documents.prose.said import Said
from otimes.proofs.documents.prose.shift_matrices import shifts_in
from otimes.proofs.documents.prose.sides import declare_sides
from otimes.proofs.documents.proving.compositions import joins_entries
from otimes.proofs.documents.reporting.report import DocumentReport, Equation
from otimes.proofs.documents.symbols.context import Context
from otimes.proofs.documents.symbols.declarations import Declarations
from otimes.proofs.documents.symbols.declared_in_formulas import declared_by
from otimes.proofs.documents.verdicts.actions import ways_of_acting
from otimes.proofs.documents.verdicts.links import LinkChecker
from otimes.proofs.documents.verdicts.replacements import false_replacements
from otimes.proofs.documents.verdicts.said_shapes import said_shapes
from otimes.proofs.documents.verdicts.spectra import read_spectra
from otimes.proofs.documents.verdicts.wrong_declarations import wrong_declarations

FACTORED = re.compile(
    r"\bSVDs?\b|\bsingular (?:values?|vectors?)\b|\beigen-?decompos\w+|"
    r"\bspectral (?:theorem|decomp)",
    re.IGNORECASE,
)

PSEUDO = re.compile(r"\bpseudo-?\s?inverses?\b|\bMoore\b", re.IGNORECASE)


def check_document(
    path: str | Path,
    notation: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> DocumentReport:
    """Return the verdict on every equation of a Markdown, LaTeX or notebook file.

    `notation`: "primer", "framework" or a TOML file with the shapes of symbols that the document
    does not declare. No code of the document is run, and no file but the given one is read.
    `on_progress` is called with the numbers of formulas that are done, and of all formulas.
    Raises OtimesError for a file that cannot be read.
    """
    return _checked(read_document(Path(path)), load_notation(notation), on_progress)


def check_text(text: str, notation: str | None = None) -> DocumentReport:
    """Return the verdict on every equation of a text in Markdown, as `check_document` does."""
    return _checked(with_einsum(read_markdown("text", text)), load_notation(notation))


def check_cell(line: str, cell: str) -> None:
    """Print the verdicts on a cell of a notebook, in Markdown; the line may name a notation.

    Lines count as in the cell, the first of which is `%%check`.
    """
    print(check_text(f"\n{cell}", line.strip() or None))


# -- the whole document ----------------------------------------------------------------------------


def _checked(
    document: Document,
    notation: Notation,
    on_progress: Callable[[int, int], None] | None = None,
) -> DocumentReport:
    context, given, ignored, problems = read_comments(document, notation)
    items = read_items(document, context)
    declare(items, context, document)
    prose = Prose(document)
    gradients = read_gradients(prose, items)
    context.gradients = [(each.offset, each.name, each.value) for each in gradients]
    said, words, convention, elementwise = said_in(prose)
    context.declared += [(each.key, each.declared) for each in said]
    declare_sides(prose, context, items)
    context.base.split |= split_by_index(context.declared)
    context.sentences |= {(each.key, each.declared.line) for each in said}
    context.local |= {(each.key, each.declared.line) for each in said if each.local}
    context.index, context.last = Declarations(), None  # what was declared has changed
    context.words = [(word.word, word.keys, document.row(word.offset)) for word in words]
    context.base.convention = context.base.convention or convention
    context.base.elementwise |= elementwise
    context.base.softmax = context.base.softmax or softmax_in(prose)
    context.base.vec = context.base.vec or order_of_vec(document.prose)
    context.labelled = labelled(items)
    context.ahead = defined_in(items)
    context.factored = bool(FACTORED.search(prose.text))
    context.pseudo = bool(PSEUDO.search(prose.text))
    context.joins_entries = joins_entries(prose.text, (e.tex for e in document.formulas))
    for member in members_in(prose, items):
        context.members.setdefault(member.name.base, []).append(member)
    declare_rows_as_columns(context, items)
    context.shifts = shifts_in(prose, ((item.line, item.statements) for item in items))
    shifts = {key_of(shift.name) for shift in context.shifts}  # ones “below the diagonal”
    context.words = [
        each for each in context.words if not ("diag" in each[0] and shifts & {*each[1]})
    ]
    read_spectra(prose, context)
    context.kinds = confirmed(items)
    context.base.families = families_in(items)
    context.indexed = with_an_index(items)
    context.composed = composed_functions(items)
    for word in words:  # what is diagonal is a matrix
        for key in word.matrices:
            context.kinds.setdefault(key, Declared("matrix"))
    for members in context.members.values():  # what has rows or columns is a matrix
        for member in members:
            context.base.known.setdefault(key_of(member.whole), Declared("matrix"))
    context.hypotheses += [*given, *offered(items, document)]
    context.last = None
    context.ones = columns_of_ones(prose)
    context.entries = [*entries_in(prose)]
    context.parts = parts_in(prose)
    context.base.apart = numbered_in(context)
    context.last = None
    context.base.acts = ways_of_acting(items, context)
    context.last = None
    checker = LinkChecker(document, context, items)
    equations = checker.equations(on_progress)
    if checker.blamed:  # again, without the declarations that proved equations contradict
        blamed = checker.blamed
        context.wrong |= blamed.keys()
        context.definitions.clear()
        context.factorisations.clear()
        context.last = None
        checker = LinkChecker(document, context, items)
        equations = checker.equations(on_progress)
        _blame_declarations(equations, blamed, said, document)
    contradicted = wrong_declarations(context, checker.wrong.judged, checker.inferred)
    _blame_declarations(equations, contradicted, said, document)
    equations += assertions(prose, context, items)
    equations += false_replacements(prose, context, items)
    equations += said_shapes(prose, context, checker.judge)
    equations += clashes(items, context, document)
    equations += problems
    _ignore(equations, ignored, document)
    equations.sort(key=lambda each: (each.cell or 0, each.line, each.column))
    notes = convention_notes(items, document, convention, context.symbols_at(1 << 30))
    return DocumentReport(
        document.name,
        equations,
        len(document.formulas),
        _undeclared(items, context),
        notes,
        document.text,
    )


def _undeclared(items: Iterable[Item], context: Context) -> dict[str, int]:
    every = context.symbols_at(1 << 30)
    found: dict[str, int] = {}
    for item in items:
        symbols = context.symbols_at(item.line)  # also what is declared for one sentence
        sizes = symbols.sizes() | every.sizes()
        for statement in item.statements:
            if not statement.relations:
                continue
            for e in walk(statement):
                if not isinstance(e, Name) or e.base in ("I", "Id") or is_constant(e):
                    continue
                key, known = symbols.lookup(e)
                known = known or every.lookup(e)[1]
                ours = key in symbols.functions or key in sizes or len(e.base) > 2
                if known is None and not ours and default(e) is not None and "•" not in key:
                    found[key] = found.get(key, 0) + 1
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def _blame_declarations(
    equations: list[Equation],
    blamed: dict[tuple[str, int], list[str]],
    said: Iterable[Said],
    document: Document,
) -> None:
    """Report declarations that proved equations contradict."""
    for (key, line), where in blamed.items():
        why = f"the shape declared for {key} does not fit {'; '.join(dict.fromkeys(where))}"
        why = document.named_lines(why)
        own = [
            e
            for e in equations
            if document.row(e.span[0]) == line and e.verdict in ("definition", "shape")
        ]
        own = [e for e in own if r"\in" in e.tex or "∈" in e.tex]
        mine = [e for e in own if key in _declared_in(e.tex)]
        in_words = any(each.key == key and each.declared.line == line for each in said)
        own = mine or ([] if in_words else own)
        if own:
            for equation in own[:1]:
                equation.verdict = "shape"
                equation.why = (
                    why if equation.why == "it declares a shape" else (f"{equation.why}; {why}")
                )
            continue
        for each in said:
            if each.key == key and each.declared.line == line:
                at = document.position(each.offset)
                cell, span = document.cell(each.offset), (each.offset, each.offset)
                equations.append(
                    Equation(document.name, *at, each.text, "shape", why, cell=cell, span=span)
                )
                break


def _declared_in(tex: str) -> set[str]:
    """Return the keys of the symbols that a formula declares."""
    try:
        return {key for each in parse_formula(tex) for key, _ in declared_by(each, 0)}
    except NotationError:
        return set()


def _ignore(
    equations: list[Equation], ignored: list[tuple[int, int, str]], document: Document
) -> None:
    """Mark the equations that comments ignore, with the reasons of these comments.

    A comment concerns the equations of its line, or else those of the next formula.
    """
    for start, end, reason in ignored:
        row = document.row(start)
        rows = {id(e): document.row(e.span[0]) for e in equations}
        after = sorted((e for e in equations if e.span[0] >= end), key=lambda e: e.span)
        chosen = [e for e in equations if rows[id(e)] == row]
        chosen = chosen or [e for e in after if rows[id(e)] == rows[id(after[0])]]
        for equation in chosen:
            equation.ignored = reason
