"""The parsed formulas of a document, and what they declare before anything is judged."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from otimes.algebra.notation.elaborate import shape_error
from otimes.algebra.notation.expectations import LETTER
from otimes.algebra.notation.parser import parse_formula
from otimes.algebra.notation.symbols import (
    Declared,
    key_of,
    text_of,
)
from otimes.algebra.notation.tokens import NotationError
from otimes.algebra.notation.tree import (
    Apply,
    Fraction,
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
    is_constant,
    latex,
    walk,
)
from otimes.algebra.notation.vocabulary import RELATIONS
from otimes.proofs.documents.containers.source import Document, Formula
from otimes.proofs.documents.formulas.small_t import transposes_by_t, with_capital_t
from otimes.proofs.documents.prose.assumptions import (
    assumes,
    is_for_letters,
    is_local,
    opens_a_case,
    plain_words,
)
from otimes.proofs.documents.proving.conclusions import is_concluded
from otimes.proofs.documents.proving.other_readings import with_columns_of_ones
from otimes.proofs.documents.symbols.context import Context, Definition
from otimes.proofs.documents.symbols.declared_in_formulas import (
    declared_by,
    functions_in,
    takes_expectations,
    values_in,
)
from otimes.proofs.documents.symbols.hypotheses import Hypothesis
from otimes.proofs.documents.symbols.signs import QUANTITIES, consistent, signs_of, vectors_among
from otimes.proofs.documents.symbols.terms import occurs

# Words before what a sentence assumes of a matrix: “for a projection $P = P^T = P^2$”.
SUCH = re.compile(
    r"\b(?:for|if|when|with|where|let|take|given|such that|satisf\w+|suppose|"
    r"projections?|projectors?|symmetric|idempotent|involutions?)\b",
    re.IGNORECASE,
)
MOST = 12_000  # formulas of one document that are read
OPENINGS = {relation[0] for relation in RELATIONS}

VEC = re.compile(r"\bvec\b|\\vect?\b|\bvectori[sz]\w+|\bflatten\w*|\bunroll\w*", re.IGNORECASE)
# How a sentence about vec says which order it has.
ON_TOP = (
    r"(?:on top of|below|beneath|under|after) (?:each other|one another)|"
    r"one (?:below|under|beneath|on top of|after) (?:the other|another|the next)|end to end"
)
ORDERS = re.compile(
    rf"\b(row|column)s\b[^.;,]{{0,40}}?\b(?:{ON_TOP}|stacked|concatenated|joined)\b|"
    r"\b(?:stack|concatenat|join)\w*(?: (?:the|its|all|up|together|\w+'s|\$\w\$))* (row|column)s\b|"
    r"\b(row|column)(?:-| )by(?:-| )\3\b|\b(row|column) after \4\b|\b(row|column)[- ]wise\b",
    re.IGNORECASE,
)
# “NumPy flattens in C order, unlike our vec” is about two orders.
COMPARED = re.compile(
    r"\b(?:unlike|whereas|while|but|not|instead|numpy|pytorch|torch|tensorflow|jax|code|contrast|"
    r"differ\w*|if|or|either|some|would|authors?)\b",
    re.IGNORECASE,
)
ROW_MAJOR = re.compile(r"\brow[- ]major\b|\bC[- ]order\b", re.IGNORECASE)
COLUMN_MAJOR = re.compile(r"\bcolumn[- ]major\b|\bFortran[- ]order\b", re.IGNORECASE)


@dataclass(slots=True)
class Item:
    """A formula of a document with what it states, or why it was not read."""

    formula: Formula
    line: int
    statements: list[Statement]
    error: NotationError | None = None


def read_items(document: Document, context: Context) -> list[Item]:
    """Parse every formula; one that begins with a relation continues the one before."""
    context.base.functions |= functions_in(formula.tex for formula in document.formulas)
    if takes_expectations((formula.tex for formula in document.formulas), document.prose):
        context.base.functions.add(LETTER)
    functions = context.base.functions
    context.base.values |= values_in(formula.tex for formula in document.formulas)
    values = context.base.values - functions
    by_t = transposes_by_t([formula.tex for formula in document.formulas])
    items: list[Item] = []
    for k, formula in enumerate(document.formulas):
        if k < MOST:
            formula = _continued(formula, items, document)
        line = document.row(formula.offset(0))
        try:
            if k >= MOST:
                many = f"{len(document.formulas):,} formulas"
                raise NotationError(f"the document has {many}: the first {MOST:,} are read")
            if formula.problem:
                raise NotationError(formula.problem)
            tex = with_capital_t(formula.tex) if by_t else formula.tex
            statements = parse_formula(tex, functions, plain=formula.plain, values=values)
            items.append(Item(formula, line, statements))
        except NotationError as error:
            items.append(Item(formula, line, [], error))
        except RecursionError:
            items.append(Item(formula, line, [], NotationError("nested too deeply")))
    return items


def _continued(formula: Formula, items: list[Item], document: Document) -> Formula:
    """Return a formula that begins with a relation, preceded by the last term before it."""
    begun = formula.tex.lstrip(" \n&")
    if begun[:1] not in OPENINGS:
        return formula
    relation = next((r for r in sorted(RELATIONS, key=len)[::-1] if _begins(begun, r)), None)
    last = items[-1] if items else None
    if relation is None or last is None or not last.statements or relation.isalpha():
        return formula
    if isinstance(last.statements[-1].terms[-1], Space):
        return formula
    between = document.text[last.formula.end : formula.start]
    chain = bool(last.statements[-1].relations) and not re.search(r"[.!?]\s+\w", between)
    near = len(between) < 20 or (len(between) < 80 and chain)
    if not near or formula.plain:
        return formula
    span = last.statements[-1].terms[-1].span
    head = last.formula.tex[slice(*span)]
    offsets = [last.formula.offset(k) for k in range(*span)]
    offsets += [formula.offset(k) for k in range(-1, len(formula.tex))]
    return replace(formula, tex=f"{head} {formula.tex}", offsets=tuple(offsets))


def _begins(text: str, relation: str) -> bool:
    r"""Return whether a text begins with a relation, and not with a longer command: `\left`."""
    after = text[len(relation) : len(relation) + 1]
    return text.startswith(relation) and not (relation[0] == "\\" and after.isalpha())


def composed(items: Iterable[Item]) -> Iterator[tuple[Item, Statement]]:
    """Yield the statements that are more than a symbol by itself."""
    for item in items:
        for statement in item.statements:
            if statement.relations or not isinstance(statement.terms[0], Name):
                yield item, statement


def declare(items: Iterable[Item], context: Context, document: Document) -> None:
    """Add the declarations in memberships, such as A ∈ ℝⁿˣᵐ, and the signs of numbers."""
    signs: list[tuple[str, Declared]] = []
    items = [*items]
    free = QUANTITIES - _indices_and_sizes(items)
    for item in items:
        words = plain_words(document.sentence_before(item.formula))
        local, plain = is_local(words), is_for_letters(words)
        for statement in item.statements:
            found = [*declared_by(statement, item.line)]
            context.declared += found
            if not is_concluded(words):
                said = [*signs_of(statement, item.line, context.base.functions, free)]
                signs += said
                if local or opens_a_case(words):
                    context.local |= {(key, item.line) for key, _ in said}
            context.local |= {(key, item.line) for key, _ in found if local or plain > len(key) - 1}
    terms = [(term, item.line) for item in items for s in item.statements for term in s.terms]
    context.signed |= vectors_among(signs, terms, document.next_heading)
    signs = [(key, known) for key, known in signs if (key, known.line) not in context.signed]
    context.declared += consistent(signs, document.paragraph)


def _indices_and_sizes(items: Iterable[Item]) -> set[str]:
    """Return the letters in indices, in sizes, and at the ends of sums."""
    found: set[str] = set()
    for e in (e for item in items for s in item.statements for e in walk(s)):
        if isinstance(e, Name):
            found |= {letter for slot in (*e.sub, *e.sup) for letter in slot.text}
        elif isinstance(e, Space):
            found |= {
                each.base for size in e.sizes for each in walk(size) if isinstance(each, Name)
            }
        elif isinstance(e, Indexed):
            ends = walk(e.upper) if e.upper is not None else ()
            found |= {*e.indices, *e.lower, *(part.base for part in ends if isinstance(part, Name))}
    return found


def order_of_vec(text: str) -> str:
    """Return what vec stacks according to the text: "rows", "cols", or "".

    >>> order_of_vec("Write vec(M) for the columns of M on top of each other.")
    'cols'
    >>> order_of_vec("Here vec reads a matrix row by row."), order_of_vec("We go row by row.")
    ('rows', '')
    """
    found = [
        *re.findall(r"stack(?:s|ing)?(?: the| its| all)? (row|column)s", text, re.IGNORECASE),
        *re.findall(r"\b(row|column)[- ]stack(?:ing|ed)\b", text, re.IGNORECASE),
        *re.findall(r"\b(row|column)s (?:are )?stacked\b", text, re.IGNORECASE),
        *re.findall(r"\b(row|column)[- ](?:major|wise)\s+vec", text, re.IGNORECASE),
    ]
    for sentence in re.split(r"[.!?](?=\s)|\n\s*\n", text):
        if VEC.search(sentence) and not COMPARED.search(sentence):
            found += [each for match in ORDERS.findall(sentence) for each in match if each]
            found += ["row"] * bool(ROW_MAJOR.search(sentence))
            found += ["column"] * bool(COLUMN_MAJOR.search(sentence))
    kinds = {each.lower() for each in found}
    return {"row": "rows", "column": "cols"}[kinds.pop()] if len(kinds) == 1 else ""


def labelled(items: Iterable[Item]) -> dict[str, list[int]]:
    """Return the lines at which symbols have labels as superscripts: letters, or a 1.

    So has a symbol with the number of a layer that is defined by others with such labels, as in
    `S^2 = X^1 W^2`.
    """
    items = [*items]
    found: dict[str, set[int]] = {}
    for item in items:
        for name in _names([item]):
            if name.sup and (name.sup[0].kind != "number" or name.sup[0].text == "1"):
                found.setdefault(key_of(name), set()).add(item.line)
    for item in items:
        for statement in item.statements:
            left = bare(statement.terms[0])
            numbered = isinstance(left, Name) and [s.kind for s in left.sup] == ["number"]
            if not numbered or statement.relations[:1] != ("=",) or not isinstance(left, Name):
                continue
            by = [e for e in walk(statement.terms[1]) if isinstance(e, Name) and e.sup]
            same = is_capital(left) or any(e.sup == left.sup for e in by)
            if same and {*map(key_of, by)} & found.keys() - {key_of(left)}:
                found.setdefault(key_of(left), set()).add(item.line)
    return {key: sorted(rows) for key, rows in found.items()}


def confirmed(items: Iterable[Item]) -> dict[str, Declared]:
    """Return the capitals that are used as matrices, with ⊗ or a transpose, or are diagonal.

    A small letter that is transposed is a vector, and so is one of which a diagonal matrix is made.
    """
    items = [*items]
    found: dict[str, Declared] = {}
    parts = [e for _, statement in composed(items) for e in walk(statement)]
    ends = {bare(e.upper) for e in parts if isinstance(e, Indexed) and e.upper is not None}
    for e in parts:  # `\frac1N \sum_{i=1}^N`: the number of terms
        below = bare(e.below) if isinstance(e, Fraction) else None
        if below in ends and isinstance(below, Name) and is_capital(below):
            found[key_of(below)] = Declared("size")
    for _, statement in composed(items):
        if statement.relations[:1] in (("=",), (":=",)):
            name, value = map(bare, statement.terms[:2])
            diagonal = isinstance(value, Apply) and value.function.base in ("diag", "Diag")
            if diagonal and isinstance(name, Name) and is_capital(name):
                found[key_of(name)] = Declared("matrix")
        for e in walk(statement):
            operands: tuple[Node, ...] = ()
            if isinstance(e, Tensor):
                operands = e.factors
            elif isinstance(e, Power) and e.exponent == "T":
                operands = (e.base,)
            for operand in map(bare, operands):
                if isinstance(operand, Name) and is_capital(operand):
                    found[key_of(operand)] = Declared("matrix")
                elif isinstance(e, Power) and isinstance(operand, Name) and is_small(operand):
                    found[key_of(operand)] = Declared("vector", trusted=False)
            vector = _on_a_diagonal(e)
            if vector is not None:
                found.setdefault(key_of(vector), Declared("vector", trusted=False))
            number = _over_a_size(e)
            if number is not None:
                found.setdefault(key_of(number), Declared("scalar"))
    return found


def _on_a_diagonal(e: Node) -> Name | None:
    r"""Return the small letter, Latin or Greek, of which `\mathrm{diag}(\gamma)` is a matrix."""
    if not isinstance(e, Apply) or e.function.base not in ("diag", "Diag"):
        return None
    inner = bare(e.arguments[0]) if len(e.arguments) == 1 else None
    if not isinstance(inner, Name) or is_matrix_like(inner) or inner.sub or inner.sup:
        return None
    return inner if len(inner.base) == 1 or inner.base[0] == "\\" else None


def _over_a_size(e: Node) -> Name | None:
    r"""Return a small Greek letter that is divided by a symbol: `\alpha` of `\alpha / r`."""
    above: Node | None = None
    if isinstance(e, Fraction) and isinstance(bare(e.below), Name):
        above = bare(e.above)
    elif isinstance(e, Product) and e.marks == ("", "/") and isinstance(bare(e.factors[1]), Name):
        above = bare(e.factors[0])
    plain = isinstance(above, Name) and not (above.sub or above.sup or above.style or above.marks)
    greek = plain and isinstance(above, Name) and above.base[0] == "\\" and above.base[1].islower()
    return above if greek and isinstance(above, Name) else None


def families_in(items: Iterable[Item]) -> set[str]:
    r"""Return the keys of capitals with two indices that are matrices: `X_{ij}^\top`, `X_{ij} ≻ 0`.

    An entry is never transposed.
    """
    found: set[str] = set()
    for item in items:
        for statement in item.statements:
            parts = [e for term in statement.terms for e in walk(term)]
            names = [bare(e.base) for e in parts if isinstance(e, Power) and e.exponent == "T"]
            if {r"\succ", r"\succeq"} & {*statement.relations}:
                names += map(bare, statement.terms)
            for name in names:
                if isinstance(name, Name) and is_matrix_like(name) and len(name.sub) == 2:
                    found.add(key_of(name))
    return found


def with_an_index(items: Iterable[Item]) -> set[str]:
    """Return the capitals that occur with one index below, as LaTeX."""
    names = (e for _, statement in composed(items) for e in walk(statement) if isinstance(e, Name))
    return {latex(e) for e in names if is_matrix_like(e) and [s.kind for s in e.sub] == ["index"]}


def composed_functions(items: Iterable[Item]) -> list[tuple[str, int]]:
    r"""Return the functions that are defined by matrices, with lines: `f` of `f(x) = W x + b`.

    They act on no entry by itself, whatever another section says of the letter.
    """
    found = []
    for item in items:
        for statement in item.statements:
            term = bare(statement.terms[0])
            if statement.relations[:1] not in (("=",), (":=",)) or not isinstance(term, Apply):
                continue
            names = [e for e in walk(statement.terms[1]) if isinstance(e, Name)]
            plain = [bare(e) for e in term.arguments]
            letter = len(plain) == 1 and isinstance(plain[0], Name) and not plain[0].base.isupper()
            if letter and any(is_matrix_like(e) and not is_constant(e) for e in names):
                found.append((term.function.base, item.line))
    return found


def is_capital(name: Name) -> bool:
    """Return whether a symbol is one capital letter, and no identity."""
    return len(name.base) == 1 and name.base.isupper() and name.base != "I"


def is_matrix_like(name: Name) -> bool:
    """Return whether a symbol is a capital letter, Latin or Greek."""
    letter = name.base.lstrip("\\")
    return bool(letter) and letter[0].isupper() and (len(name.base) == 1 or name.base[0] == "\\")


def is_small(name: Name) -> bool:
    """Return whether a symbol is one small letter, Latin or Greek, without labels above it."""
    one = len(name.base) == 1 or name.base[:1] == "\\"
    return one and name.base.islower() and not name.sup and len(name.sub) < 2


def defined_in(items: Iterable[Item]) -> dict[str, list[Definition]]:
    """Return what equations may define, by the symbol."""
    found: dict[str, list[Definition]] = {}
    for item in items:
        for statement in item.statements:
            if statement.relations[:1] in (("=",), (":=",), (r"\triangleq",)):
                lhs, rhs = bare(statement.terms[0]), statement.terms[1]
                constant = is_constant(lhs) or is_constant(rhs)
                if isinstance(lhs, Name) and not (constant or occurs(lhs, rhs)):
                    definition = Definition(lhs, rhs, item.line)
                    found.setdefault(latex(lhs), []).append(definition)
    return found


def numbered_in(context: Context) -> set[str]:
    """Return the symbols with a number, as text, that their definitions give another shape.

    It is another one than that of the letter: `B_2 = B u` beside a matrix `B`.
    """
    found = set()
    for lhs, rhs, line in (
        (d.lhs, d.rhs, d.line) for known in context.ahead.values() for d in known
    ):
        if not isinstance(lhs, Name) or not lhs.sub or lhs.sup:
            continue
        symbols = context.symbols_at(line)
        numbered = all(slot.kind == "number" for slot in lhs.sub)
        if numbered and shape_error([lhs, rhs], symbols) and not shape_error([rhs], symbols):
            found.add(text_of(lhs))
    return found


def _names(items: Iterable[Item]) -> Iterator[Name]:
    for item in items:
        for statement in item.statements:
            yield from (e for e in walk(statement) if isinstance(e, Name))


def offered(items: Iterable[Item], document: Document) -> Iterator[Hypothesis]:
    """Yield the equations of a document that may serve as hypotheses: those with a constant side.

    Declared are those that a sentence assumes.
    """
    for item in items:
        for statement in item.statements:
            if statement.relations[:1] != ("=",):
                continue
            assumed = _assumes(document, item, statement)
            eigen = "eigen" in document.before(item.formula)
            for left, right in _links(statement) if assumed else [statement.terms[:2]]:
                lhs, rhs = with_columns_of_ones(left, right)
                said = assumed or (eigen and _is_of_eigenvector(lhs, rhs))
                if _is_compound(lhs) and (is_constant(rhs) or said):
                    yield Hypothesis(lhs, rhs, f"line {item.line}", said, item.line)
            if not assumed and SUCH.search(document.sentence_before(item.formula)[-80:]):
                for lhs, rhs in _properties(statement):
                    yield Hypothesis(lhs, rhs, f"line {item.line}", False, item.line)


def _properties(statement: Statement) -> Iterator[tuple[Node, Node]]:
    r"""Yield what a chain says of one matrix: `P = P^\top = P^2`, of a projection."""
    if {*statement.relations} != {"="}:
        return
    for sides in pairwise(map(bare, statement.terms)):
        plain = [bare(e.base) if isinstance(e, Power) else e for e in sides]
        names = {replace(e, sup=()) for e in plain if isinstance(e, Name)}
        capital = [e for e in names if is_matrix_like(e)]
        if len(names) == 1 == len(capital) and all(isinstance(e, Name) for e in plain):
            first, second = sides
            yield (first, second) if _is_compound(first) else (second, first)


def _links(statement: Statement) -> list[tuple[Node, Node]]:
    """Return the equations of a chain; where it ends in a constant, that each term is this."""
    if {*statement.relations} != {"="}:
        return [(statement.terms[0], statement.terms[1])]
    *terms, last = statement.terms
    if is_constant(last):
        return [(term, last) for term in terms]
    return [*pairwise(statement.terms)]


def _is_compound(lhs: Node) -> bool:
    inner = bare(lhs)
    power = isinstance(inner, Name) and inner.sup and inner.sup[0].kind == "number"
    return bool(power) or not isinstance(inner, Name | Apply | Number)


def _is_of_eigenvector(lhs: Node, rhs: Node) -> bool:
    r"""Return whether an equation is `W v = \lambda v`."""
    sides = [bare(side) for side in (lhs, rhs)]
    pairs = [[*map(bare, e.factors)] if isinstance(e, Product) else [] for e in sides]
    if any(len(pair) != 2 or not all(isinstance(e, Name) for e in pair) for pair in pairs):
        return False
    (matrix, vector), (number, same) = pairs
    greek = isinstance(number, Name) and number.base[0] == "\\"
    plain = not any(isinstance(e, Name) and e.sup for e in (matrix, number))
    return vector == same and greek and plain and isinstance(matrix, Name) and is_capital(matrix)


def _assumes(document: Document, item: Item, statement: Statement) -> bool:
    words = plain_words(document.sentence_before(item.formula))
    return assumes(words) and statement is item.statements[0]
