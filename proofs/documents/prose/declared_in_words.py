"""Declarations in sentences and tables: shapes, sizes, convention, words for hypotheses.

Formulas are replaced by marks first, so that the patterns see `⟦3⟧ has ⟦4⟧ rows and ⟦5⟧ columns`.
Only plain sentences are taken as declarations; nothing is concluded from what is merely near.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import accumulate, islice
from string import ascii_lowercase

from otimes.algebra.notation.dimensions import Size
from otimes.algebra.notation.parser import parse_formula
from otimes.algebra.notation.symbols import Declared, as_declared, keys, size_of
from otimes.algebra.notation.tokens import NotationError
from otimes.algebra.notation.tree import Name, Node, Power, Space, Statement, bare
from otimes.proofs.documents.containers.source import Document, Formula
from otimes.proofs.documents.prose.items import is_matrix_like
from otimes.proofs.documents.prose.said import Said
from otimes.proofs.documents.prose.tables import said_in_tables, shape_of
from otimes.proofs.documents.symbols.declared_in_formulas import declared_as
from otimes.proofs.documents.symbols.signs import is_sign, signs_of

M = r"⟦(\d+)⟧"
LIST = rf"((?:{M}\s*(?:,|and|,\s*and|&)\s*){{0,20}}{M})"
ROWS_COLS = re.compile(rf"{M} has {M} rows and {M} columns", re.IGNORECASE)
# “The product of $A$ and $B$ is an $m \times p$ matrix” says nothing of the shape of $B$.
OF_A_RESULT = re.compile(
    r"\b(?:product|sum|difference|transposes?|inverse|quotient|composition|concatenation)\s+"
    r"(?:of|between)\b(?:(?!\b(?:is|are|has|have|where|with|if)\b)[^.;])*\Z",
    re.IGNORECASE,
)
DECLARING = re.compile(r"\b(?:let|where|with)\s+\Z", re.IGNORECASE)
IS_SHAPE = re.compile(
    rf"{LIST}\s+(?:is|are|be)\s+(?:(?:both|all|each|now)\s+)?(?:an?\s+)?"
    r"(?:(?:real|square|invertible|orthogonal|symmetric|diagonal|fixed|random)\s+)?"
    rf"(?:matrix|matrices)?\s*"
    rf"(?:of (?:shape|size|dimensions?)\s+)?{M}(?:\s+and\s+vice[- ]versa for {M})?",
    re.IGNORECASE,
)
HAS_SHAPE = re.compile(
    rf"{LIST}\s*,?\s+(?:(?:is|are|all|both|each|an?|the|same|matrix|matrices|of|with|have|has|having)"
    rf"\s+){{1,4}}(?:shapes?|sizes?|dimensions?)\s+(?:of\s+)?{M}(?!\s*(?:to|or)\b)",
    re.IGNORECASE,
)
SHAPE_OF = re.compile(
    rf"\b(?:shape|size|dimensions?) of {M} (?:is|are) (?:an?\s+)?{M}", re.IGNORECASE
)
APPOSITION = re.compile(
    rf"{M},?\s+(?:which is\s+|is\s+|be\s+|for\s+|denotes?\s+)?(?:an?|the)\s+(?:\w+\s+)?{M}"
    r"(?:\s+[\w-]+){0,2}\s+matrix\b",
    re.IGNORECASE,
)
SIZED = re.compile(
    rf"\b(?:an?|the)\s+(?:\w+\s+)?{M}(?:\s+[\w-]+){{0,2}}\s+matrix\s+{M}", re.IGNORECASE
)
IS_SIZE = re.compile(
    rf"{M}\s+(?:is|denotes|be)\s+(?:the\s+)?(?:number of|sequence length|length|context length|"
    r"(?:\w+\s)?dimension(?:ality)?|vocabulary size|size)",
    re.IGNORECASE,
)
SIZE_NAMED = re.compile(
    r"(?:number of [\w ]+?(?<!\bin)(?<!\bof)(?<!\bfor)(?<!\bby)(?<!\bper)|sequence length|"
    rf"(?:\w+ )?dimension(?:ality)?|vocabulary size)\s+{M}",
    re.IGNORECASE,
)
IS_SCALAR = re.compile(
    rf"{LIST}\s+(?:(?:is|are|be)\s+(?:an?\s+)?|an?\s+)(?:real\s+)?"
    r"(?:scalars?|(?:real )?numbers?)\b(?!\s+of\b)"
    rf"|\bscalars?\s+{LIST}"
    r"|\b(?:an?|any|some|all|two|real|positive|nonzero)\s+(?:(?:real|positive|nonzero|small)\s+)?"
    rf"(?:numbers?|constants?|coefficients?)\s+{LIST}(?!\s+of\b)",
    re.IGNORECASE,
)
QUANTITY = (
    r"(?:\w+\s+){0,2}?(?:norms?|scales?|temperatures?|step sizes?|learning rates?|thresholds?|"
    r"standard deviations?|variances?|root mean squares?|weight decay)\b"
)
IS_QUANTITY = re.compile(
    rf"{LIST}\s+(?:is|are|be|denotes?)\s+(?:an?|the|its|some)\s+{QUANTITY}"
    rf"|\b(?:an?|the|some)\s+{QUANTITY}\s+{LIST}",
    re.IGNORECASE,
)
IS_VECTOR = re.compile(
    rf"{LIST}\s+(?:is|are|be)\s+(?:considered\s+)?(?:an?\s+)?(row|column)\s+vectors?"
    rf"|\b(row|column) vectors?\s+{LIST}",
    re.IGNORECASE,
)
ENTRY = r"(?:entry|element|component|coordinate)"
ENTRYWISE = (
    rf"(?:(?:{ENTRY}|point)-?wise|{ENTRY}\s+by\s+{ENTRY}|(?:on|to|at)\s+(?:each|every)\s+"
    rf"(?:single\s+)?(?:{ENTRY}|number)|(?:on|to)\s+(?:all|individual|the)\s+"
    r"(?:entries|elements|components|coordinates))\b"
)
NONLINEAR = r"(?:activation function|nonlinearity|non-linearity)"
ACTIVATION = re.compile(
    rf"(?:{NONLINEAR}|(?:{ENTRY}|point)-?wise (?:function|activation|map))\s+(?:{M}|(g)\b)"
    rf"|{M}\s+(?:(?:is|be|acts?|acting|operates?|works?)\s+)?(?:applied\s+)?"
    rf"(?:(?:separately|independently)\s+)?{ENTRYWISE}"
    rf"|{M}\s*(?:,\s*|\(|(?:(?:is|be|denotes|for)\s+)?)(?:the|an?|some|any)\s+(?:[\w-]+\s+)?"
    rf"(?:{NONLINEAR}\b|(?P<is>activation)\b(?!\s+function))|\b(?P<the>activation)\s+{M}",
    re.IGNORECASE,
)
RANK = re.compile(
    rf"{M}[^.⟦]*?\brank\s+(?:(?:of\s+)?at most\s+|≤\s*|of\s+)?{M}"
    rf"|\brank of {M} (?:is |of )?(?:at most|bounded by|≤|no more than)\s*{M}",
    re.IGNORECASE,
)
SUBJECT = re.compile(
    r"\b(?:the|this|that|these|each|every|its|our|an?)\s+(?:[\w-]+\s+){1,3}?(?:has|have|is|are)\b",
    re.IGNORECASE,
)
INVERSE = re.compile(
    rf"(?<!pseudo)(?<!pseudo-)\binverse of (?:the )?(?:{M}|((?:un)?embedding) matrix)",
    re.IGNORECASE,
)
SINGULAR = re.compile(
    rf"\b(left|right)[- ]singular (?:vectors?|matrix|matrices|directions?) of {M}", re.IGNORECASE
)
PROJECTED = re.compile(
    r"\bproject\w*\s+(?:the\s+|a\s+|an\s+|intermediate\s+|internal\s+)*"
    r"(?:representations?|hidden states?|activations?|residual\w*|states?)\b(?: stream\w*)?"
    r"[^.⟦]{0,40}\b(?:on|onto|to|into|from)\b",
    re.IGNORECASE,
)
NAMED_SHAPE = re.compile(rf"((?:un)?embedding) matrix(?: \w+)? is {M}", re.IGNORECASE)
OF_ONES = re.compile(
    rf"{LIST}\s*,?\s+(?:(?:is|are|be|denotes?|as|for)\s+)?(?:the|a)\s+"
    r"(?:(?:column(?:\s+vector)?|vector)\s+(?:of\s+(?:all\s+)?ones|"
    r"whose\s+entries\s+are\s+all\s+(?:one|1))\b|"
    r"(?:all[- ])?ones\s+(?:column(?:\s+vector)?|vector)\b)",
    re.IGNORECASE,
)
IN_SPACE = re.compile(
    rf"(?<!\bof )(?<!\bof the ){LIST}\s+"
    rf"(?:(?:is|are|be|both|all|each|lies?|lives?|living|taken)\s+){{0,2}}(?:in|from)\s+{M}",
    re.IGNORECASE,
)
IN_LIST = re.compile(
    rf"(?:\b(?:let|where|with|and|vectors?|matri(?:x|ces)|weights?|bias(?:es)?|keys?|queries|query|"
    rf"values?|here)\s+|[:(]\s*|\A\s*|\n\n\s*){LIST}",
    re.IGNORECASE,
)
EACH = r"(?! (?:each|every|all) (?:heads?|layers?|positions?|tokens?)\b)"
LOCALLY = re.compile(
    rf"\b(?:if|when|where|for{EACH}|any|every(?! (?:head|layer|position|token)\b)|suppose)\b",
    re.IGNORECASE,
)
OF_SHAPE = rf"{M}\s*\((?:an?\s+|of\s+)?(?:shape:?\s+|size:?\s+)?{M}(?:\s+matrix)?\)"
IN_BRACKETS = re.compile(
    r"\b(?:matrix|matrices|invertible|orthogonal|symmetric|bias|biases|vectors?|pattern)\b"
    rf"[^.⟦]{{0,20}}((?:{OF_SHAPE}[\s,]*(?:and\s*)?){{1,6}})",
    re.IGNORECASE,
)
IS_WORD = re.compile(
    rf"{LIST}\s*,?\s*(?:\b(?:is|are|be|being|has|have|with)\s+(?:(?!not\b)\w+\s+){{0,2}})?$"
)
WORD_OF = re.compile(rf"(?:\s+(?!and\b|or\b|but\b|with\b)\w+){{0,2}}\s+{LIST}")
MOST_WORDS = 20  # of one kind in a sentence that are read
SENTENCE = re.compile(r"(?:[^.!?\n\\|]|\n(?!\s*\n)|[.!?](?!\s)|\\(?!\\)|\|(?![ \t]*\n))+")
NEAR = 200  # characters within which a symbol is beside a word by grammar
BY_ROWS = r"(?:row[- ]?wise|row by row|(?:to|of|in) (?:each|every) row)\b"
BY_COLUMNS = r"(?:column[- ]?wise|column by column|(?:to|of|in) (?:each|every) column)\b"
HYPOTHESES = {
    "orthogonal": re.compile(r"\borthogonal\b(?! (?:to|projec\w+|complement)\b)", re.IGNORECASE),
    "permutation": re.compile(r"\bpermutations?\b", re.IGNORECASE),
    "rotation": re.compile(r"\brotations?\b|\bunitary\b", re.IGNORECASE),
    "row-stochastic": re.compile(r"row[- ]stochastic|"
                                 r"rows?(?: of ⟦\d+⟧)? (?:(?:each|that|which|all) )?"
                                 r"(?:sums?|adds? up) to (?:one|1)\b", re.IGNORECASE),
    "column-stochastic": re.compile(r"column[- ]stochastic|"
                                    r"columns?(?: of ⟦\d+⟧)? (?:(?:each|that|which|all) )?"
                                    r"(?:sums?|adds? up) to (?:one|1)\b", re.IGNORECASE),
    "symmetric": re.compile(r"(?<!anti)(?<!non)(?<!a)\bsymmetric\b(?! (?:part|component))|"
                            r"\bcovariance\b|"
                            r"\bpositive[- ](?:semi-?)?definite\b", re.IGNORECASE),
    "diagonal": re.compile(r"(?<!block-)(?<!block )(?<!off-)\bdiagonal\b"
                           r"(?! (?:entr|element|block|term))", re.IGNORECASE),
    "idempotent": re.compile(r"\bidempotent\b|\bprojection matrix\b|"
                             r"\borthogonal projections?\b|\bprojectors?\b", re.IGNORECASE),
    "orthonormal columns": re.compile(r"orthonormal columns", re.IGNORECASE),
    "commute": re.compile(r"\bcommut(?:e|es|ing)\b", re.IGNORECASE),
    "square": re.compile(r"(?<!mean )(?<!least )\bsquare\b"
                         r"(?!\s+(?:root|of|norm|error|loss)\b)|"
                         r"\beigen(?:vectors?|values?|decomposition)\b", re.IGNORECASE),
    "invertible": re.compile(r"\binvertible\b|\bnonsingular\b", re.IGNORECASE),
    "unit": re.compile(r"\bunit (?:vectors?|norm|length)\b|\bunit (?=⟦)|"
                       r"\b(?:norm|length) (?:one|1)\b", re.IGNORECASE),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Word:
    """A word for a hypothesis beside a symbol: `orthogonal`, with the keys of the symbols.

    `matrices` are the keys of the capitals among them of which it is said by grammar.
    """

    word: str
    keys: tuple[str, ...]
    offset: int
    matrices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Asserted:
    """A property that a sentence asserts of a symbol.

    `what` is "rank" (at most a size), "inverse" (that it has one), "shape" (two sizes), "left
    singular" or "right singular" (that states are projected onto these singular vectors).
    """

    what: str
    key: str
    sizes: tuple[Size, ...]
    offset: int
    text: str
    named_first: bool = True  # whether the symbol is the subject of the sentence


class Prose:
    """The text of a document with its formulas replaced by placeholders."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.formulas = document.formulas
        pieces, offsets, at = [], [], 0
        spans = sorted(
            [(f.start, f.end, f"⟦{k}⟧") for k, f in enumerate(document.formulas)]
            + [(start, end, "") for start, end in document.hidden]
        )
        text = document.text
        for start, end, mark in spans:
            if start < at:
                continue
            before = _without_delimiter(text[at:start]) if mark else text[at:start]
            pieces.append(before)
            offsets.append((sum(map(len, pieces[-1:])), at))
            pieces.append(mark)
            offsets.append((len(mark), start))
            at = end + _delimiter_after(text, end) if mark else end
        pieces.append(text[at:])
        offsets.append((len(pieces[-1]), at))
        self.text = "".join(pieces)
        self._pieces = [each for each in offsets if each[0]] or [(0, 0)]
        self._begins = [0, *accumulate(length for length, _ in self._pieces)][:-1]

    def offset(self, at: int) -> int:
        """Return the offset in the document of a character of the text with placeholders."""
        k = bisect_right(self._begins, at) - 1
        length, start = self._pieces[k]
        return min(start + min(at - self._begins[k], length), len(self.document.text))

    def row(self, number: int) -> int:
        """Return the line of a formula, by its number."""
        return self.document.row(self.formulas[number].start)

    def statements(self, number: int) -> list[Statement]:
        """Return what a formula states, by its number, and nothing for one that is not read."""
        formula = self.formulas[number]
        try:
            return parse_formula(formula.tex, plain=formula.plain)
        except NotationError:
            return []

    def node(self, number: str | None) -> Node | None:
        """Return the expression of a formula, by its number, if it is one without relations."""
        if number is None:
            return None
        formula: Formula = self.formulas[int(number)]
        try:
            statements = parse_formula(formula.tex, plain=formula.plain)
        except NotationError:
            return None
        if len(statements) != 1 or statements[0].relations:
            return None
        return bare(statements[0].terms[0])

    def subjects(self, text: str) -> list[Name]:
        """Return the symbols that formulas in a text consist of or declare, as in A ∈ ….

        A formula with an operation declares none of its symbols.
        """
        found = []
        for number in re.findall(M, text):
            formula = self.formulas[int(number)]
            try:
                statements = parse_formula(formula.tex, plain=formula.plain)
            except NotationError:
                continue
            for statement in statements:
                if statement.relations in ((), (r"\in",)):
                    terms = (*statement.subjects, statement.terms[0])
                    found += [name for term in terms if isinstance(name := bare(term), Name)]
        return found

    def names(self, listed: str | None) -> list[Name]:
        """Return the symbols that formulas in a text consist of, `A` or `A, B`."""
        return [name for name, turned in self._listed(listed) if not turned]

    def turned(self, listed: str | None) -> list[Name]:
        r"""Return the symbols whose transposes formulas in a text list: `B` of `A, B^\top`."""
        return [name for name, turned in self._listed(listed) if turned]

    def _listed(self, listed: str | None) -> Iterator[tuple[Name, bool]]:
        for number in re.findall(M, listed or ""):
            formula = self.formulas[int(number)]
            try:
                statements = parse_formula(formula.tex, plain=formula.plain)
            except NotationError:
                continue
            terms = [bare(t) for s in statements for t in (*s.subjects, *s.terms)]
            turned = [isinstance(e, Power) and e.exponent == "T" for e in terms]
            names = [
                bare(e.base) if isinstance(e, Power) and e.exponent == "T" else e for e in terms
            ]
            plain = all(isinstance(e, Name) for e in names)
            if plain and not any(s.relations for s in statements):
                for name, transposed in zip(names, turned, strict=True):
                    if isinstance(name, Name):
                        yield name, transposed

    def compared(self, listed: str, line: int) -> Iterator[tuple[Name, Declared]]:
        """Yield the symbols that formulas in a text compare with a number, `s > 0`, and as what."""
        for number in re.findall(M, listed):
            formula = self.formulas[int(number)]
            try:
                statements = parse_formula(formula.tex, plain=formula.plain)
            except NotationError:
                continue
            for statement in filter(is_sign, statements):
                name = bare(statement.terms[0])
                for _, known in signs_of(statement, line, (), ascii_lowercase):
                    if isinstance(name, Name):
                        yield name, known

    def member(self, number: str, symbol: str = "") -> tuple[Name, Node] | None:
        """Return the symbol and the space of a formula such as A ∈ …, or None.

        The symbol is put before a formula that is a space by itself.
        """
        formula = self.formulas[int(number)]
        try:
            statements = parse_formula(symbol + formula.tex, plain=formula.plain)
        except NotationError:
            return None
        if len(statements) != 1 or statements[0].relations != (r"\in",):
            return None
        name, space = map(bare, statements[0].terms)
        return (name, space) if isinstance(name, Name) else None

    def defined(self, number: str) -> list[Name]:
        """Return the symbol that a formula consists of or defines: `C` of `C = I - J`."""
        formula = self.formulas[int(number)]
        try:
            statements = parse_formula(formula.tex, plain=formula.plain)
        except NotationError:
            return []
        terms = [s.terms[0] for s in statements[:1] if s.relations in ((), ("=",), (":=",))]
        return [name for term in terms if isinstance(name := bare(term), Name)]


def _without_delimiter(text: str) -> str:
    return re.sub(r"(?:\$\$|\$|\\\(|\\\[|`)\Z", "", text)


def _delimiter_after(text: str, at: int) -> int:
    for mark in ("$$", "$", r"\)", r"\]", "`"):
        if text.startswith(mark, at):
            return len(mark)
    return 0


def said_in(prose: Prose) -> tuple[list[Said], list[Word], str, set[str]]:
    """Return the declarations, the words for hypotheses, the convention and the activations."""
    said = [*_sentences(prose), *said_in_tables(prose.document)]
    elementwise = {
        node.base
        for match in ACTIVATION.finditer(prose.text)
        if isinstance(node := _function_in(prose, match), Name)
        and (node.base[0] == "\\" or not (match["is"] or match["the"]))
    }
    return said, [*_words(prose)], convention_of(prose.text), elementwise


def _function_in(prose: Prose, match: re.Match[str]) -> Node | None:
    """Return the formula that is an activation, or a plain g."""
    numbers = [each for each in match.groups() if each is not None and each.isdigit()]
    return prose.node(numbers[0]) if numbers else Name("g")


def columns_of_ones(prose: Prose) -> list[tuple[int, Name]]:
    """Return the symbols that a text says are columns of ones, with the offsets of the words."""
    return [
        (prose.offset(match.end()), name)
        for match in OF_ONES.finditer(prose.text)
        for name in prose.subjects(match[1])
    ]


def softmax_in(prose: Prose) -> str:
    """Return along what a text says that its softmax runs: "rows", "columns" or nothing."""
    found = set()
    for along, words in (("rows", BY_ROWS), ("columns", BY_COLUMNS)):
        words = words.replace(" ", r"\s+")
        named = (
            rf"softmax,?\s+\(?(?:(?:is|are|taken|applied|computed|acting|acts)\s+){{0,3}}{words}"
        )
        if re.search(rf"{named}|\b{words}\s+softmax", prose.text, re.IGNORECASE):
            found.add(along)
        for match in re.finditer(rf"{M},?\s+\(?(?:(?:taken|applied)\s+)?{words}", prose.text):
            if "softmax" in prose.formulas[int(match[1])].tex.lower():
                found.add(along)
    return found.pop() if len(found) == 1 else ""


def convention_of(text: str) -> str:
    """Return the convention that a text says it uses: "row", "column", or "" where it is open.

    >>> convention_of("the vector is considered a row vector")
    'row'
    """
    maps = r"\b(?:matrices|weights|maps)\b[^.;⟦]{0,30}\b(?:from|on) the"
    row = re.search(
        rf"\brow vectors?\b|\bright[- ]multipl|\bare rows(?! of)|{maps}\s+right\b",
        text,
        re.IGNORECASE,
    )
    column = re.search(
        rf"\bcolumn vectors?\b|\bleft[- ]multipl|\bare\s+columns(?! of)|{maps}\s+left\b",
        text,
        re.IGNORECASE,
    )
    return "" if bool(row) == bool(column) else "row" if row else "column"


def _sentences(prose: Prose) -> Iterator[Said]:
    text = prose.text
    for match in ROWS_COLS.finditer(text):
        sizes = [size_of(node) if (node := prose.node(n)) else None for n in match.groups()[1:]]
        yield from _matrices(prose, prose.names(match[0].split(" has ")[0]), sizes, match)
    for match in _about_symbols(IS_SHAPE, text):
        numbers = re.findall(M, match[0])
        other = match.groups()[-1]
        shape = prose.node(match.groups()[-2])
        sizes = shape_of(shape)
        names = prose.names(match[1])
        yield from _matrices(prose, names, sizes, match)
        if DECLARING.search(text[max(0, match.start() - 10) : match.start()]):
            yield from _matrices(prose, prose.turned(match[1]), [*reversed(sizes)], match)
        if other is not None and len(numbers) > 2:
            turned = [*reversed(sizes)] if sizes else []
            yield from _matrices(prose, prose.names(f"⟦{other}⟧"), turned, match)
    for pattern in (HAS_SHAPE, SHAPE_OF):
        for match in _about_symbols(pattern, text):
            *listed, shape_at = re.findall(M, match[0])
            names = [name for number in listed for name in prose.names(f"⟦{number}⟧")]
            yield from _matrices(prose, names, shape_of(prose.node(shape_at)), match)
    for match in IN_BRACKETS.finditer(text):
        for name, shape in re.findall(OF_SHAPE, match[1]):
            yield from _matrices(
                prose, prose.names(f"⟦{name}⟧"), shape_of(prose.node(shape)), match
            )
    for match in _about_symbols(APPOSITION, text):
        yield from _matrices(prose, prose.defined(match[1]), shape_of(prose.node(match[2])), match)
    for match in SIZED.finditer(text):
        yield from _matrices(prose, prose.defined(match[2]), shape_of(prose.node(match[1])), match)
    for pattern in (IS_SIZE, SIZE_NAMED):
        for match in pattern.finditer(text):
            node = prose.node(match[1])
            if isinstance(node, Name) and not node.sup:
                yield _said(prose, node, Declared("size", line=_line(prose, match)), match)
    yield from _in_spaces(prose)
    for match in IS_SCALAR.finditer(text):
        line = _line(prose, match)
        plain = [(name, Declared("scalar", line=line)) for name in prose.names(match[0])]
        for name, declared in (*plain, *prose.compared(match[0], line)):
            if not _is_entry(name):
                yield _said(prose, name, declared, match)
    for match in IS_QUANTITY.finditer(text):
        line = _line(prose, match)
        plain = [(name, Declared("scalar", line=line)) for name in prose.names(match[0])]
        for name, declared in (*plain, *prose.compared(match[0], line)):
            if name.base.islower() and not (name.sub or name.sup or name.style):
                yield _said(prose, name, declared, match)
    for match in IS_VECTOR.finditer(text):
        for name in prose.names(match[0]):
            # on which side matrices stand is the convention of the text, which it may change
            yield _said(prose, name, Declared("vector", line=_line(prose, match)), match)


def _about_symbols(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the sentences about symbols, and not about what is made of them."""
    for match in pattern.finditer(text):
        if OF_A_RESULT.search(text[max(0, match.start() - NEAR) : match.start()]) is None:
            yield match


def _is_entry(name: Name) -> bool:
    """Return whether a symbol is an entry of a matrix, as in “every scalar $Y_{ij}$”."""
    return name.base[:1].isupper() and [slot.kind for slot in name.sub] == ["index", "index"]


def _in_spaces(prose: Prose) -> Iterator[Said]:
    r"""Yield what `$b$ and $c$ in $\mathbb{R}^d$` and `$b$, $c \in \mathbb{R}^d$` declare.

    In the second, the symbols before the last one are as it is if all are capitals, or none.
    """
    for match in IN_SPACE.finditer(prose.text):
        *listed, space = re.findall(M, match[0])
        member = prose.member(space, r"x \in ")
        declared = _member_of(member[1], prose, match) if member else None
        for name in prose.names("".join(f"⟦{number}⟧" for number in listed)):
            if declared is not None and not (declared.kind == "vector" and is_matrix_like(name)):
                yield _said(prose, name, declared, match)
    for match in IN_LIST.finditer(prose.text):
        *listed, last = re.findall(M, match[0])
        names = prose.names("".join(f"⟦{number}⟧" for number in listed))
        member = prose.member(last) if len(names) == len(listed) and names else None
        if member is None:
            continue
        declared = _member_of(member[1], prose, match)
        capitals = {name.base.lstrip("\\")[:1].isupper() for name in (*names, member[0])}
        for name in names if len(capitals) == 1 else ():
            if declared is not None:
                yield _said(prose, name, declared, match)


def _member_of(space: Node, prose: Prose, match: re.Match[str]) -> Declared | None:
    if not isinstance(space, Space):
        return None
    return declared_as([size_of(size) for size in space.sizes], _line(prose, match))


def _matrices(
    prose: Prose, names: list[Name], sizes: list[Size | None], match: re.Match[str]
) -> Iterator[Said]:
    if len(sizes) != 2 or sizes[0] is None or sizes[1] is None:
        return
    declared = Declared("matrix", sizes[0], sizes[1], _line(prose, match))
    shape = prose.offset(match.start() + match[0].rfind("⟦"))
    for name in names:
        yield replace(_said(prose, name, declared, match), offset=shape)


def _said(prose: Prose, name: Name, declared: Declared, match: re.Match[str]) -> Said:
    before = prose.text[max(0, match.start() - 50) : match.start()].rpartition(". ")[2]
    local = bool(LOCALLY.search(before)) and declared.kind != "scalar"
    offset = prose.offset(match.start())
    declared = as_declared(declared, name)
    return Said(keys(name)[0], declared, offset, _text(prose, match), local)


def asserted_in(prose: Prose) -> Iterator[Asserted]:
    """Yield the assertions of sentences about ranks, inverses and shapes."""
    for match in RANK.finditer(prose.text):
        of, at_most = (match[1], match[2]) if match[1] else (match[3], match[4])
        if match[1] and _has_another_subject(prose, match):
            continue
        named, bound = prose.defined(of), prose.node(at_most)
        name = named[0] if named else None
        size = None if bound is None else size_of(bound)
        if isinstance(name, Name) and size is not None:
            found = _asserted("rank", keys(name)[-1], (size,), prose, match)
            yield replace(found, named_first=match[1] is not None)
    for match in INVERSE.finditer(prose.text):
        before = prose.text[max(0, match.start() - 60) : match.start()]
        if re.search(r"\b(?:no|not|right|left|has|pseudo|one-sided)\b[^.]*$", before):
            continue
        node = prose.node(match[1])
        key = keys(node)[-1] if isinstance(node, Name) else ""
        if match[2]:
            key = "W_E" if match[2].lower() == "embedding" else "W_U"
        if key:
            yield _asserted("inverse", key, (), prose, match)
    for match in SINGULAR.finditer(prose.text):
        after = prose.text[match.end() : match.end() + 250].partition("\n\n")[0]
        node = prose.node(match[2])
        if isinstance(node, Name) and PROJECTED.search(after):
            side = match[1].lower()
            yield _asserted(f"{side} singular", keys(node)[-1], (), prose, match)
    for match in NAMED_SHAPE.finditer(prose.text):
        key = "W_E" if match[1].lower() == "embedding" else "W_U"
        sizes = [size for size in shape_of(prose.node(match[2])) if size is not None]
        if len(sizes) == 2:
            yield _asserted("shape", key, tuple(sizes), prose, match)


def _has_another_subject(prose: Prose, match: re.Match[str]) -> bool:
    """Return whether the words after a formula are about something else: “The update has rank r”.

    The formula may also end its sentence.
    """
    ended = prose.formulas[int(match[1])].tex.rstrip().endswith(".")
    return ended or SUBJECT.search(match[0]) is not None


def _asserted(
    what: str, key: str, sizes: tuple[Size, ...], prose: Prose, match: re.Match[str]
) -> Asserted:
    return Asserted(what, key, sizes, prose.offset(match.start()), _text(prose, match))


def _text(prose: Prose, match: re.Match[str]) -> str:
    text = re.sub(M, lambda m: prose.formulas[int(m[1])].tex.strip(), match[0])
    return " ".join(text.split())


def _line(prose: Prose, match: re.Match[str]) -> int:
    return prose.document.row(prose.offset(match.start()))


def _words(prose: Prose) -> Iterator[Word]:
    """Yield the words for hypotheses, with the symbols of the same sentence before and after.

    A row of a table is a sentence.
    """
    for sentence in SENTENCE.finditer(prose.text):
        every = cache(partial(prose.subjects, sentence[0]))
        for word, pattern in HYPOTHESES.items():
            for found in islice(pattern.finditer(sentence[0]), MOST_WORDS):
                about = _about(sentence[0], found)
                own = prose.subjects(about) or _defined(prose, about)
                named = own or every()
                if named:
                    offset = prose.offset(sentence.start() + found.start())
                    mine = tuple(keys(name)[-1] for name in named)
                    capitals = tuple(keys(name)[-1] for name in own if is_matrix_like(name))
                    yield Word(word, mine, offset, capitals)


def _defined(prose: Prose, text: str) -> list[Name]:
    """Return the symbols that formulas in a text define: `D` of `D = diag(g)`."""
    return [name for number in re.findall(M, text) for name in prose.defined(number)]


def _about(sentence: str, word: re.Match[str]) -> str:
    """Return the formulas that a word is about by grammar, as in `⟦1⟧ is diagonal`, or ""."""
    before = IS_WORD.search(sentence[max(0, word.start() - NEAR) : word.start()])
    after = WORD_OF.match(sentence[word.end() : word.end() + NEAR])
    return (before[0] if before else "") + (after[0] if after else "")
