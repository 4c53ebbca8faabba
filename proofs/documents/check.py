r"""Check the mathematics of a document: every equation, and every link of a chain.

>>> report = check_text(r"Let $A, B \in \mathbb{R}^{n \times n}$. Then $(AB)^T = A^T B^T$.")
>>> [(each.verdict, each.suggestion) for each in report.equations]
[('definition', ''), ('refuted', '(A B)^{T} = B^{T} A^{T}')]
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from otimes.algebra.errors import OtimesError
from otimes.algebra.notation.elaborate import elaborate
from otimes.algebra.notation.parser import parse_formula, printed_back
from otimes.algebra.notation.symbols import (
    Declared,
    declarations,
    default,
    key_of,
    size_of,
    text_of,
)
from otimes.algebra.notation.tokens import NotationError
from otimes.algebra.notation.tree import (
    Apply,
    Grid,
    Indexed,
    Name,
    Node,
    Number,
    Power,
    Product,
    Space,
    Statement,
    Tensor,
    bare,
    latex,
    walk,
)
from otimes.algebra.notation.typed import FormulaShapeError
from otimes.algebra.notation.vocabulary import CONDITIONS, FUNCTIONS, RELATIONS, ROWWISE, words
from otimes.proofs.documents.context import (
    Context,
    Hypothesis,
    declared_as,
    declared_by,
    functions_in,
    is_constant,
)
from otimes.proofs.documents.judge import Found, Judge
from otimes.proofs.documents.markdown import read_markdown
from otimes.proofs.documents.notation import Notation, load_notation
from otimes.proofs.documents.notebook import read_notebook
from otimes.proofs.documents.prose import Asserted, Prose, Said, asserted_in, said_in
from otimes.proofs.documents.report import DocumentReport, Equation
from otimes.proofs.documents.source import LARGEST, Document, DocumentError, Formula
from otimes.proofs.documents.tex import read_tex

EQUALS = frozenset(("=", r"\equiv"))
DEFINES = frozenset((":=", r"\triangleq", r"\leftarrow", r"\mapsto"))
ASSUMING = re.compile(
    r"\b(?:let|suppose|assume|assuming|given|if|whenever|such that|provided)"
    r"(?: that)?(?: \w+){0,2}\s*$",
    re.IGNORECASE,
)
LOCAL = re.compile(r"\b(?:any|every|each|some|all|arbitrary)(?: \w+){0,3}\s*$", re.IGNORECASE)
DEFINING = re.compile(
    r"\b(?:define[ds]?|denote[ds]?|denoting|write|writing|set|where|here|let|call)\b"
    r"(?:(?!\bso\b|\bhence\b|\bthus\b)[^.$\\`]){0,25}$",
    re.IGNORECASE,
)
DENIED = re.compile(
    r"\b(?:not|never|false|wrong|incorrect|mistake|fails?|instead of|isn't|aren't|doesn't)\b",
    re.IGNORECASE,
)
CONDITIONAL = re.compile(
    r"\b(?:if|when|whenever|unless|assuming|suppose|provided|under the|as long as)\b", re.IGNORECASE
)
STATES = re.compile(r"=|≈|∈|←|\\(?:approx|in|leftarrow|triangleq|equiv|le|leq|ge|geq)\b")


@dataclass(slots=True)
class Item:
    """A formula of a document with what it states, or why it was not read."""

    formula: Formula
    line: int
    statements: list[Statement]
    error: NotationError | None = None


def check_document(path: str | Path, notation: str | None = None) -> DocumentReport:
    """Return the verdict on every equation of a Markdown, LaTeX or notebook file.

    `notation`: "primer", "framework" or a TOML file with the shapes of symbols that the document
    does not declare. No code of the document is run, and no file but the given one is read.
    Raises OtimesError for a file that cannot be read.
    """
    path = Path(path)
    text = _read_file(path)
    return _checked(_document(path, text), load_notation(notation))


def check_text(text: str, notation: str | None = None) -> DocumentReport:
    """Return the verdict on every equation of a text in Markdown, as `check_document` does."""
    return _checked(read_markdown("text", text), load_notation(notation))


def check_cell(line: str, cell: str) -> None:
    """Print the verdicts on a cell of a notebook, in Markdown; the line may name a notation."""
    print(check_text(cell, line.strip() or None))


def _read_file(path: Path) -> str:
    try:
        if path.stat().st_size > LARGEST:
            raise DocumentError(f"{path} is larger than {LARGEST:,} bytes")
        data = path.read_bytes()
    except OSError as error:
        raise DocumentError(f"cannot read {path}: {error.strerror}") from None
    if b"\0" in data[:10_000]:
        raise DocumentError(f"{path} is not text")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise DocumentError(f"{path} is not UTF-8: line {line}") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _document(path: Path, text: str) -> Document:
    suffix = path.suffix.lower()
    if suffix in (".md", ".markdown", ".txt", ".qmd", ".rmd", ".mdx"):
        return read_markdown(str(path), text)
    if suffix in (".tex", ".ltx", ".latex"):
        return read_tex(str(path), text)
    if suffix == ".ipynb":
        return read_notebook(str(path), text)
    raise DocumentError(f"{path}: .md, .tex and .ipynb files are read, not {suffix or 'this'}")


# -- the whole document ----------------------------------------------------------------------------


def _checked(document: Document, notation: Notation) -> DocumentReport:
    context, given, ignored = _context(document, notation)
    items = _items(document, context)
    _declare(items, context, document)
    prose = Prose(document)
    said, words, convention, elementwise = said_in(prose)
    context.declared += [(each.key, each.declared) for each in said]
    context.sentences |= {(each.key, each.declared.line) for each in said}
    context.local |= {(each.key, each.declared.line) for each in said if each.local}
    context.words = [(word.word, word.keys, document.row(word.offset)) for word in words]
    context.base.convention = context.base.convention or convention
    context.base.elementwise |= elementwise
    context.base.vec = context.base.vec or _order_of_vec(document.prose)
    context.labelled = _labelled(items)
    context.kinds = _confirmed(items)
    context.hypotheses += [*given, *_offered(items, document)]
    checker = _Checker(document, context, items)
    equations = checker.equations()
    if checker.blamed:  # again, without the declarations that proved equations contradict
        blamed = checker.blamed
        context.wrong |= blamed.keys()
        context.definitions.clear()
        checker = _Checker(document, context, items)
        equations = checker.equations()
        _blame_declarations(equations, blamed, said, document)
    equations += _assertions(prose, context)
    _ignore(equations, ignored, document)
    equations.sort(key=lambda each: (each.cell or 0, each.line, each.column))
    notes = _notes(items, document, convention)
    return DocumentReport(
        document.name,
        equations,
        len(document.formulas),
        _undeclared(items, context),
        notes,
        document.text,
    )


def _context(
    document: Document, notation: Notation
) -> tuple[Context, list[Hypothesis], list[tuple[int, int, str]]]:
    """Return the context that notation and comments give, hypotheses and what is ignored."""
    context = Context(notation.symbols, in_scope=document.is_in_scope)
    origin = f"notation {notation.name}" if notation.name else ""
    given = [_hypothesis(text, origin) for text in notation.given]
    ignored = []
    for comment in document.comments:
        line = document.row(comment.start)
        if comment.text.startswith("ignore"):
            reason = comment.text[6:].strip(" :") or "no reason is given"
            ignored.append((comment.start, comment.end, reason))
            continue
        for part in comment.text.split(";"):
            word, colon, said = part.strip().partition(":")
            if word == "given" and colon:
                given.append(_hypothesis(said, f"line {line}"))
            elif word == "convention" and said.strip() in ("row", "column"):
                context.base.convention = said.strip()
            elif word == "vec" and said.strip() in ("rows", "cols"):
                context.base.vec = said.strip()
            elif word == "elementwise" and colon:
                context.base.elementwise |= set(said.replace(",", " ").split())
            elif part.strip():
                try:
                    symbols = declarations(part)
                except OtimesError as error:
                    raise DocumentError(f"{document.name}:{line}: {error}") from None
                context.base.functions |= symbols.functions
                context.declared += [
                    (key, replace(known, line=line)) for key, known in symbols.known.items()
                ]
    return context, given, ignored


def _hypothesis(text: str, origin: str) -> Hypothesis:
    statements = parse_formula(text, plain="\\" not in text)
    if len(statements) != 1 or len(statements[0].terms) != 2:
        raise DocumentError(f"the hypothesis {text.strip()!r} is not an equation")
    return Hypothesis(*statements[0].terms, origin, declared=True)


def _items(document: Document, context: Context) -> list[Item]:
    """Read every formula; a line that begins with a relation goes on with the one before."""
    context.base.functions |= functions_in(formula.tex for formula in document.formulas)
    functions = context.base.functions
    items: list[Item] = []
    for formula in document.formulas:
        formula = _continued(formula, items)
        line = document.row(formula.offset(0))
        try:
            if formula.problem:
                raise NotationError(formula.problem)
            statements = parse_formula(formula.tex, functions, plain=formula.plain)
            items.append(Item(formula, line, statements))
        except NotationError as error:
            items.append(Item(formula, line, [], error))
        except RecursionError:
            items.append(Item(formula, line, [], NotationError("nested too deeply")))
    return items


def _continued(formula: Formula, items: list[Item]) -> Formula:
    """Return a formula that begins with a relation together with the last term before it."""
    begun = formula.tex.lstrip(" \n&")
    relation = next((r for r in sorted(RELATIONS, key=len)[::-1] if begun.startswith(r)), None)
    last = items[-1] if items else None
    if relation is None or last is None or not last.statements or relation.isalpha():
        return formula
    near = formula.start - last.formula.end < 20
    if not near or formula.plain:
        return formula
    span = last.statements[-1].terms[-1].span
    head = last.formula.tex[slice(*span)]
    offsets = [last.formula.offset(k) for k in range(*span)]
    offsets += [formula.offset(k) for k in range(-1, len(formula.tex))]
    return replace(formula, tex=f"{head} {formula.tex}", offsets=tuple(offsets))


def _declare(items: Iterable[Item], context: Context, document: Document) -> None:
    for item in items:
        local = bool(LOCAL.search(_plain(document.sentence_before(item.formula))))
        for statement in item.statements:
            found = [*declared_by(statement, item.line)]
            context.declared += found
            if local:
                context.local |= {(key, item.line) for key, _ in found}


def _order_of_vec(text: str) -> str:
    """Return what a text says that vec stacks: "rows", "cols", or "" where it says neither."""
    found = set(
        re.findall(r"stack(?:s|ing)?(?: the| its| all)? (row|column)s", text, re.IGNORECASE)
    )
    kinds = {each.lower() for each in found}
    return {"row": "rows", "column": "cols"}[kinds.pop()] if len(kinds) == 1 else ""


def _labelled(items: Iterable[Item]) -> dict[str, set[int]]:
    """Return where symbols have labels above: letters, or a 1."""
    found: dict[str, set[int]] = {}
    for item in items:
        for name in _names([item]):
            if name.sup and (name.sup[0].kind != "number" or name.sup[0].text == "1"):
                found.setdefault(key_of(name), set()).add(item.line)
    return found


def _confirmed(items: Iterable[Item]) -> dict[str, Declared]:
    """Return the capitals that are matrices by what is done with them: ⊗, or a transpose."""
    found: dict[str, Declared] = {}
    for item in items:
        for statement in item.statements:
            for e in walk(statement):
                operands: tuple[Node, ...] = ()
                if isinstance(e, Tensor):
                    operands = e.factors
                elif isinstance(e, Power) and e.exponent == "T":
                    operands = (e.base,)
                for operand in map(bare, operands):
                    if isinstance(operand, Name) and _is_capital(operand):
                        found[key_of(operand)] = Declared("matrix")
    return found


def _is_capital(name: Name) -> bool:
    return len(name.base) == 1 and name.base.isupper() and name.base != "I"


def _names(items: Iterable[Item]) -> Iterator[Name]:
    for item in items:
        for statement in item.statements:
            yield from (e for e in walk(statement) if isinstance(e, Name))


def _offered(items: Iterable[Item], document: Document) -> Iterator[Hypothesis]:
    """Yield the equations of a document that may serve as hypotheses: those with a constant side.

    Declared are those that a sentence assumes.
    """
    for item in items:
        for statement in item.statements:
            if statement.relations[:1] != ("=",):
                continue
            lhs, rhs = statement.terms[:2]
            assumes = _assumes(document, item, statement)
            compound = not isinstance(bare(lhs), Name | Apply | Number)
            if compound and (is_constant(rhs) or assumes):
                yield Hypothesis(lhs, rhs, f"line {item.line}", declared=assumes)


def _assumes(document: Document, item: Item, statement: Statement) -> bool:
    words = document.sentence_before(item.formula)
    return bool(ASSUMING.search(_plain(words))) and statement is item.statements[0]


def _plain(words: str) -> str:
    return re.sub(r"(\$\$?|\\\(|\\\[|`)\s*$", "", words)


def _undeclared(items: Iterable[Item], context: Context) -> dict[str, int]:
    symbols = context.symbols_at(1 << 30)
    sizes = symbols.sizes()
    found: dict[str, int] = {}
    for item in items:
        for statement in item.statements:
            if not statement.relations:
                continue
            for e in walk(statement):
                if not isinstance(e, Name) or e.base in ("I", "Id") or is_constant(e):
                    continue
                key, known = symbols.lookup(e)
                ours = key in symbols.functions or key in sizes or len(e.base) > 2
                if known is None and not ours and default(e) is not None:
                    found[key] = found.get(key, 0) + 1
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def _notes(items: Iterable[Item], document: Document, convention: str) -> list[str]:
    """Return notes on the convention: where weights act on the right, and where on the left."""
    seen: dict[str, list[int]] = {"row": [], "column": []}
    for item in items:
        for statement in item.statements:
            for e in walk(statement):
                for side in _sides(e):
                    line = document.position(item.formula.offset(e.span[0]))[0]
                    if line not in seen[side]:
                        seen[side].append(line)
    places = [
        f"{side} convention on line{'s' * (len(at) > 1)} {', '.join(map(str, at))}"
        for side, at in seen.items()
        if at
    ]
    if convention and not seen[convention]:
        places.insert(0, f"{convention} convention by its words")
    return [f"the text mixes conventions: {'; '.join(places)}"] if len(places) > 1 else []


def _sides(e: Node) -> Iterator[str]:
    """Yield the convention that a product shows: `W_V W_O`, or `A ⊗ W` times something."""
    if not isinstance(e, Product):
        return
    for a, b in pairwise(map(bare, e.factors)):
        side = order_of(a, b)
        if side:
            yield side
        if isinstance(a, Tensor) and a.mark == r"\otimes" and isinstance(b, Name):
            yield "column"


VOCABULARY = frozenset(("V", "𝒱", "v", "d_vocab", "n_vocab"))
# Functions that mean something: an equation with one on its left side claims, and defines nothing.
MEANT = FUNCTIONS - ROWWISE - words(r"f g \sigma \phi \mu \psi Attn attn")
ORDERS = {
    ("V", "O"): "row",
    ("O", "V"): "column",
    ("IN", "OUT"): "row",
    ("OUT", "IN"): "column",
    ("E", "U"): "row",
    ("U", "E"): "column",
}


def order_of(a: Node, b: Node) -> str:
    """Return the convention in which two weights stand side by side, "" for other factors."""
    if not (isinstance(a, Name) and isinstance(b, Name) and a.base == b.base == "W"):
        return ""
    labels = [name.sub[0].text.replace("\\mathrm", "").strip("{}").upper() if name.sub else ""
              for name in (a, b)]  # fmt: skip
    return ORDERS.get((labels[0], labels[1]), "")


# -- equations -------------------------------------------------------------------------------------


class _Checker:
    def __init__(self, document: Document, context: Context, items: list[Item]) -> None:
        self.document = document
        self.context = context
        self.items = items
        self.judge = Judge(context)
        self.blamed: dict[tuple[str, int], list[str]] = {}
        self.seen: set[str] = set()

    def equations(self) -> list[Equation]:
        found: list[Equation] = []
        for item in self.items:
            found += self.of_item(item)
            for statement in item.statements:
                if statement.relations:
                    self.seen |= {latex(e) for e in walk(statement) if isinstance(e, Name)}
        return found

    def of_item(self, item: Item) -> Iterator[Equation]:
        if item.error is not None:
            if self._states(item):
                yield self._unread(item, item.error)
            return
        states = any(statement.relations for statement in item.statements)
        if states and not printed_back(item.statements, self.context.base.functions):
            yield self._unread(item, NotationError("printed back it is another formula"))
            return
        for statement in item.statements:
            if not statement.relations:
                yield from self.expression(item, statement)
                continue
            for k in range(len(statement.relations)):
                try:
                    found = self.link(item, statement, k)
                except RecursionError:
                    found = Found("unread", "it is nested too deeply")
                if found is not None:
                    yield self._equation(item, statement, k, found)

    def _states(self, item: Item) -> bool:
        """Return whether a formula that was not read may state something."""
        tex = item.formula.tex
        unbalanced = any(tex.count(a) != tex.count(b) for a, b in ("()", "{}"))
        return bool(STATES.search(tex)) or item.formula.display or unbalanced

    def _unread(self, item: Item, error: NotationError) -> Equation:
        line, column = self.document.position(item.formula.offset(error.span[0]))
        return self._made(item, line, column, item.formula.tex, Found("unread", str(error)))

    def _equation(self, item: Item, statement: Statement, k: int, found: Found) -> Equation:
        left, right = statement.terms[k], statement.terms[k + 1]
        start = left.span[0] if k == 0 else right.span[0]
        start = min(statement.span[0], start) if k == 0 else start
        tex = item.formula.tex[(statement.span[0] if k == 0 else left.span[0]) : right.span[1]]
        line, column = self.document.position(item.formula.offset(start))
        for key in found.blamed:
            self.blamed.setdefault(key, []).append(f"{_short(tex)} on line {line}")
        return self._made(item, line, column, tex, found, (start, right.span[1]))

    def _made(
        self,
        item: Item,
        line: int,
        column: int,
        tex: str,
        found: Found,
        span: tuple[int, int] | None = None,
    ) -> Equation:
        start, end = span or (0, len(item.formula.tex))
        return Equation(
            self.document.name,
            line,
            column,
            " ".join(tex.replace("&", " ").split()),
            found.verdict,
            self.document.named_lines(found.why),
            found.counterexample,
            found.suggestion,
            found.reading,
            found.hypotheses,
            cell=self.document.cell(item.formula.start),
            span=(item.formula.offset(start), item.formula.offset(max(end - 1, start)) + 1),
        )

    def expression(self, item: Item, statement: Statement) -> Iterator[Equation]:
        """Report a formula that states nothing only where its shapes do not conform."""
        term = statement.terms[0]
        if not isinstance(bare(term), Product) or any(
            mark == r"\times" for mark in getattr(bare(term), "marks", ())
        ):
            return
        symbols = self.context.symbols_at(item.line)
        for (key, line), known in self._contradicted().items():
            if line <= item.line:
                symbols.known[key] = known
        for circuit in ("W_OV", "W_QK"):  # square by what they are, as wide as the stream
            if circuit not in symbols.known and "d" in symbols.sizes():
                symbols.known[circuit] = Declared("matrix", ("d",), ("d",))
        found = self.judge.shapes([term], item.line, item.formula.tex, symbols)
        if found is not None:
            line, column = self.document.position(item.formula.offset(statement.span[0]))
            tex = item.formula.tex[slice(*statement.span)]
            yield self._made(item, line, column, tex, found, statement.span)

    def _contradicted(self) -> dict[tuple[str, int], Declared]:
        """Return the declarations that equations contradict; a bare product has to fit them."""
        return {
            (key, known.line): known
            for key, known in self.context.declared
            if (key, known.line) in self.context.wrong
        }

    def link(self, item: Item, statement: Statement, k: int) -> Found | None:
        relation, left, right = statement.relations[k], statement.terms[k], statement.terms[k + 1]
        source = item.formula.tex
        if relation in (r"\in", r"\notin"):
            return self._membership(item, statement, k) if isinstance(right, Space) else None
        if relation in DEFINES:
            return self._definition(item, left, right, always=True)
        if relation in EQUALS:
            return self._equality(item, statement, k)
        approximate = relation in (r"\approx", r"\simeq")
        if _is_range(left) and _is_range(right) and not approximate:
            return None
        shape = self.judge.shapes([left, right], item.line, source)
        if shape is not None and approximate:
            return shape
        what = "an approximation" if approximate else f"a statement with {relation}"
        return Found("undecided", f"it is {what}, and equations are decided")

    def _membership(self, item: Item, statement: Statement, k: int) -> Found:
        term, space = bare(statement.terms[k]), statement.terms[k + 1]
        if isinstance(term, Name) and k == 0:
            return Found("definition", "it declares a shape")
        sizes = [size_of(size) for size in getattr(space, "sizes", ())]
        declared = declared_as(sizes, item.line)
        if declared is None:
            return Found("undecided", "the sizes of the space are not read")
        symbols = self.context.symbols_at(item.line)
        symbols.known["⟨member⟩"] = replace(declared, line=item.line)
        member = Name("⟨member⟩", span=space.span)
        try:
            read = elaborate([statement.terms[k], member], symbols, item.formula.tex)
        except FormulaShapeError as error:
            return Found("shape", str(error).replace("⟨member⟩", "the space"), span=error.span)
        except OtimesError as error:
            return Found("undecided", str(error))
        for key, kind in read.undeclared.items():  # a shape that the space leaves no choice of
            shape = read.shapes.get(key)
            if kind == "matrix" and shape is not None and key not in symbols.known:
                self.context.declared.append((key, Declared("matrix", *shape, item.line)))
        return Found("definition", "the shape is as it is said")

    def _definition(self, item: Item, left: Node, right: Node, always: bool = False) -> Found:
        shape = self.judge.shapes([left, right], item.line, item.formula.tex)
        if shape is not None and self.judge.shapes(
            [left, right], item.line, item.formula.tex, self.context.base.copy()
        ):
            return shape
        if always:
            self.context.definitions.pop(latex(bare(left)), None)
        self.context.define(bare(left), right, item.line)
        if shape is not None:
            return shape
        self._learn(left, right, item)
        contracted = self._contracts_vocabulary(right, item.line)
        if contracted:
            return Found("shape", contracted)
        sizes = self.context.symbols_at(item.line).sizes()
        loose = [i for i in loose_indices(left, right) if i not in sizes]
        if loose:
            why = f"the index {', '.join(loose)} is on the right side only: what is it?"
            return Found("needs-hypothesis", why)
        return Found("definition", "")

    def _learn(self, left: Node, right: Node, item: Item) -> None:
        """Note the shape of a symbol if the formula that defines it determines it, or its kind."""
        name = bare(left)
        symbols = self.context.symbols_at(item.line)
        if not isinstance(name, Name) or not _is_capital(name):
            return
        known = symbols.lookup(name)[1]
        if known is not None and (known.rows or known.cols or known.line):
            return
        try:
            read = elaborate([left, right], symbols, item.formula.tex)
        except OtimesError:
            return
        key = symbols.lookup(name)[0]
        shape = read.shapes.get(key)
        if shape is None or any(kind != "matrix" for kind in read.undeclared.values()):
            return
        self.context.kinds.setdefault(key_of(name), Declared("matrix"))
        others = read.undeclared.keys() - {key}
        solved = all(str(atom) in symbols.sizes() for size in shape for atom in size)
        if solved and not others and len(shape[0]) == len(shape[1]) == 1:
            self.context.declared.append((key, Declared("matrix", *shape, item.line)))
            self.context.sentences.add((key, item.line))

    def _contracts_vocabulary(self, term: Node, line: int) -> str:
        """Return why a product of embedding and unembedding sums over the vocabulary."""
        symbols = self.context.symbols_at(line)
        for e in walk(term):
            if not isinstance(e, Product):
                continue
            for a, b in pairwise(map(bare, e.factors)):
                if not (isinstance(a, Name) and isinstance(b, Name) and order_of(a, b)):
                    continue
                left, right = symbols.lookup(a)[1], symbols.lookup(b)[1]
                if left is None or right is None or left.cols != right.rows:
                    continue
                if left.rows != left.cols and VOCABULARY & {str(atom) for atom in left.cols}:
                    lines = ", ".join(map(str, sorted({left.line, right.line})))
                    return (
                        f"with the shapes of line {lines}, {latex(e)} sums over the vocabulary: "
                        "there weights act on the other side"
                    )
        return ""

    def _equality(self, item: Item, statement: Statement, k: int) -> Found:
        left, right = statement.terms[k], statement.terms[k + 1]
        source = item.formula.tex
        words = _plain(self.document.sentence_before(item.formula))
        first = k == 0 and statement is item.statements[0]
        if k == 0 and isinstance(bare(left), Name) and _is_value(right):
            return Found("definition", "it is a value")
        sizes = self.context.symbols_at(item.line).sizes()
        if _size_name(left) in sizes or _size_name(right) in sizes:
            return Found("definition", "it relates sizes")
        if k == 0 and self._defines(left, right, bool(first and DEFINING.search(words))):
            return self._definition(item, left, right)
        if (
            k == 0
            and isinstance(bare(right), Name)
            and self._is_new(right)
            and not (_occurs(bare(right), left))
        ):
            return self._definition(item, right, left)
        if first and ASSUMING.search(words) and not isinstance(bare(left), Name | Apply):
            shape = self.judge.shapes([left, right], item.line, source)
            return shape or Found("definition", "it is assumed")
        found = self.judge.claim(left, right, item.line, source)
        known = self.context.definitions.get(latex(bare(left))) if k == 0 else None
        elsewhere = known is not None and not self.context.in_scope(known[0].line, item.line)
        if elsewhere and found.verdict != "proved":
            self.context.definitions.pop(latex(bare(left)))
            return self._definition(item, left, right)
        conditional = any(each.after for each in item.statements)
        if conditional and statement.after in CONDITIONS and found.verdict != "proved":
            return Found("definition", "it is a condition")
        if found.verdict == "refuted" and (conditional or CONDITIONAL.search(words)):
            return replace(found, verdict="undecided", why="it is false without the condition")
        if found.verdict == "refuted" and DENIED.search(words):
            return replace(
                found, verdict="undecided", why="it is false, and the sentence denies something"
            )
        if found.verdict == "refuted" and k == 0 and self._redefines(left, right):
            return replace(found, verdict="undecided", why="it says otherwise than the definition")
        return found

    def _defines(self, left: Node, right: Node, announced: bool) -> bool:
        """Return whether an equation defines its left side: a symbol or a function, not met yet."""
        term = bare(left)
        if not isinstance(term, Name | Apply) or is_constant(term) or _occurs(term, right):
            return False
        if isinstance(term, Apply) and term.function.base in MEANT:
            return False
        if isinstance(term, Name) and any(s.kind == "number" and s.text != "1" for s in term.sup):
            symbols = self.context.symbols_at(1 << 30)
            if not (symbols.is_labelled(term) or key_of(term) in self.context.labelled):
                return False  # a power
        if isinstance(term, Name) and len(term.base) > 2 and not term.sub and not term.sup:
            return latex(term) not in self.context.definitions
        known = self.context.definitions.get(latex(term))
        if known is not None and announced:
            self.context.definitions.pop(latex(term))
            known = None
        return known is None

    def _is_new(self, node: Node) -> bool:
        text = latex(bare(node))
        return (
            text not in self.context.definitions and text not in self.seen and not is_constant(node)
        )

    def _redefines(self, left: Node, right: Node) -> bool:
        """Return whether an equation gives a symbol a meaning with other symbols than before."""
        known = self.context.definitions.get(latex(bare(left)))
        if not known:
            return False
        sides = (self.context.unfolded(side, {}) for side in (known[0].rhs, right))
        before, now = ({key_of(e) for e in walk(side) if isinstance(e, Name)} for side in sides)
        return len(before ^ now) > 1


def _occurs(term: Node, inside: Node) -> bool:
    text = latex(term)
    return any(latex(e) == text for e in walk(inside) if type(e) is type(term))


def _size_name(node: Node) -> str:
    name = bare(node)
    return text_of(name) if isinstance(name, Name) and not is_constant(name) else ""


def _is_value(node: Node) -> bool:
    """Return whether a term is made of numbers only: a value that a symbol is given."""
    names = (Name, Apply, Indexed, Grid)
    return not any(isinstance(e, names) for e in walk(node)) and not is_constant(node)


def _is_range(node: Node) -> bool:
    return isinstance(bare(node), Name | Number)


def _short(tex: str) -> str:
    text = " ".join(tex.split())
    return text if len(text) <= 50 else text[:49] + "…"


def loose_indices(left: Node, right: Node) -> list[str]:
    """Return the small indices below symbols of a definition that its left side does not have.

    >>> (equation,) = parse_formula("c = a_{j} x_{u}")
    >>> loose_indices(*equation.terms)
    ['j', 'u']
    """
    if not isinstance(bare(left), Name):
        return []
    mine = set(re.findall(r"[a-z]", re.sub(r"\\[A-Za-z]+", "", latex(left))))
    bound = {index for e in walk(right) if isinstance(e, Indexed) for index in e.indices}
    found = []
    for e in walk(right):
        if isinstance(e, Name) and e.base != "d":
            for slot in e.sub:
                if slot.kind == "index":
                    letter = slot.text
                elif slot.kind == "label" and "_" in slot.text and "d_" not in slot.text:
                    letter = slot.text.rpartition("_")[2].strip("{}")
                else:
                    continue
                if len(letter) == 1 and letter.islower() and letter not in mine | bound:
                    found.append(letter)
    return sorted(set(found))


def _assertions(prose: Prose, context: Context) -> Iterator[Equation]:
    """Yield what sentences say wrongly of the rank, the inverse or the shape of a matrix."""
    document = prose.document
    for each in asserted_in(prose):
        line, column = document.position(each.offset)
        known = context.symbols_at(document.row(each.offset)).known.get(each.key)
        verdict, why = _contradiction(each, known, context)
        if why:
            yield Equation(document.name, line, column, each.text, verdict, why)


def _contradiction(each: Asserted, known: Declared | None, context: Context) -> tuple[str, str]:
    """Return the verdict on an assertion and why, without a reason where nothing is wrong."""
    if each.what == "rank":
        factors = {"W_OV": ("W_O", "W_V"), "W_QK": ("W_Q", "W_K")}.get(each.key, (each.key,))
        declared = [_declared_anywhere(context, key) for key in factors]
        sizes = [size for d in declared if d is not None for size in (d.rows, d.cols)]
        if None in declared or each.sizes[0] in sizes:
            return "", ""
        named = ", ".join(sorted({"·".join(map(str, size)) for size in sizes}))
        return "refuted", f"its rank may be as large as min({named}), which may be larger"
    if known is None or known.kind != "matrix" or known.rows == known.cols:
        return "", ""
    rows, cols = ("·".join(map(str, size)) for size in (known.rows, known.cols))
    if each.what == "inverse":
        why = f"{each.key} is {rows} × {cols} (line {known.line}): only a square matrix has one"
        return "shape", why
    if each.sizes[0] == known.cols or each.sizes[1] == known.rows:
        return "shape", f"{each.key} is declared {rows} × {cols} on line {known.line}"
    return "", ""


def _declared_anywhere(context: Context, key: str) -> Declared | None:
    return next((k for name, k in context.declared if name == key), None)


# -- afterwards ------------------------------------------------------------------------------------


def _blame_declarations(
    equations: list[Equation],
    blamed: dict[tuple[str, int], list[str]],
    said: Iterable[Said],
    document: Document,
) -> None:
    """Report declarations that proved equations contradict."""
    for (key, line), where in blamed.items():
        why = f"the shape declared for {key} does not fit {'; '.join(dict.fromkeys(where))}"
        own = [
            e
            for e in equations
            if document.row(e.span[0]) == line and e.verdict in ("definition", "shape")
        ]
        own = [e for e in own if r"\in" in e.tex or "∈" in e.tex]
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
                equations.append(Equation(document.name, *at, each.text, "shape", why))
                break


def _ignore(
    equations: list[Equation], ignored: list[tuple[int, int, str]], document: Document
) -> None:
    """Give equations the reasons for which comments ignore them.

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
