"""A document as text: its formulas and the prose around them, each with its position."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from otimes.algebra.errors import OtimesError

HEADING = re.compile(
    r"(?m)^(#{1,6})\s|^[ \t]*\\(part|chapter|(?:sub){0,2}section)\*?\{"
    r"|^[ \t]{0,3}(?:\(\d+(?:\.\d+)*\)\s*\*\*|\*\*(?=(?:Theorem|Lemma|Proposition|Corollary|Example"
    r"|Exercise|Problem)\b)|\\begin\{(?:theorem|lemma|proposition|corollary|example|exercise)\*?\})"
)
HEADED = re.compile(r"(?m)^#{1,6}\s.*\n|\\(?:part|chapter|(?:sub){0,2}section)\*?\{.*\}\s")
NUMBERED = 9  # the level of a theorem or another numbered paragraph
GENERAL = re.compile(
    r"notation|set-?up|setting|preliminar|convention|background|definition|symbol|shapes?\b"
    r"|\bmodel\b|architecture|assumption",
    re.IGNORECASE,
)
NOTATION = re.compile(r"notation|set-?up|setting|preliminar|convention|symbols\b", re.IGNORECASE)
TABULAR = re.compile(
    r"\\begin\{(tabularx?\*?|longtable)\}(?:(?!\\begin\{\1\}).)*?\\end\{\1\}", re.DOTALL
)
MARK = "\N{REPLACEMENT CHARACTER}"  # a formula in the text of clauses
DELIMITED = re.compile(rf"(?:\$\$?|\\\(|\\\[|`)?{MARK}(?:\$\$?|\\\)|\\\]|`)?")
END_OF_CLAUSE = re.compile(rf"[.;:!?](?=\s|\Z)|(?<!{MARK}),|,(?!\s*(?:and\s+)?{MARK})")
END_OF_SENTENCE = re.compile(r"[.!?](?:\s|\Z)|\n[ \t]*\n")
OPENED = re.compile(r"(?:\$\$|\\\[|\\begin\{[a-z]+\*?\})\s*\Z")  # what opens a displayed formula
LARGEST = 20_000_000  # characters of one document
# `<!-- otimes … -->` in Markdown and `% otimes …` in LaTeX; after other text with a colon.
COMMENT = re.compile(
    r"<!--\s*otimes\b:?((?:(?!<!--).)*?)-->"
    r"|(?m:(?:^[ \t]*%+\s*otimes\b:?|(?<![\\\d\s%`])[ \t]*%+[ \t]*otimes:)([^\n]*)$)",
    re.DOTALL,
)


class DocumentError(OtimesError):
    """A document cannot be read."""


ROTATIONS = re.compile(r"\brotat\w+|\brotary\b|\bRoPE\b|\bRoFormer\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula of a document: the text that is read, and where each character comes from.

    `offsets` are the offsets in the document of the characters of `tex`; without them, the
    characters follow each other from `start`. `plain`: Unicode in a code span, no LaTeX.
    """

    tex: str
    start: int
    end: int
    display: bool
    plain: bool = False
    offsets: tuple[int, ...] = ()
    problem: str = ""  # why its macros could not be expanded

    def offset(self, at: int) -> int:
        """Return the offset in the document of a character of the formula."""
        if self.offsets:
            return self.offsets[min(at, len(self.offsets) - 1)]
        return self.start + at


@dataclass(frozen=True, slots=True)
class Clause:
    """The words of a part of a sentence, and the formulas in it, or else in the sentence."""

    words: str
    formulas: tuple[Formula, ...]


@dataclass
class Document:
    """The text of a document and its formulas in order.

    `hidden` are the stretches that are no prose: code, comments. `cells` are the offsets at which
    the cells of a notebook begin.
    """

    name: str
    text: str
    formulas: list[Formula] = field(default_factory=list)
    hidden: list[tuple[int, int]] = field(default_factory=list)
    cells: Sequence[int] = ()
    comments: list[Comment] = field(default_factory=list)

    @cached_property
    def lines(self) -> list[int]:
        """The offsets at which lines begin."""
        return [0, *[match.end() for match in re.finditer("\n", self.text)]]

    @cached_property
    def has_rotations(self) -> bool:
        """Whether the text is about rotations."""
        return ROTATIONS.search(self.prose) is not None

    @cached_property
    def prose(self) -> str:
        """The text with code and comments blanked."""
        pieces, at = [], 0
        for start, end in sorted([*self.hidden, *[(c.start, c.end) for c in self.comments]]):
            if end > at:
                start = max(start, at)
                pieces += [self.text[at:start], " " * (end - start)]
                at = end
        return "".join([*pieces, self.text[at:]])

    def position(self, offset: int) -> tuple[int, int]:
        """Return the line and the column of an offset, both counted from 1.

        In a notebook, lines are counted within the cell.
        """
        line = bisect_right(self.lines, offset)
        column = offset - self.lines[line - 1] + 1
        if self.cells:
            begin = self.cells[bisect_right(self.cells, offset) - 1]
            line -= bisect_right(self.lines, begin) - 1
        return line, column

    def row(self, offset: int) -> int:
        """Return the line of an offset in the whole text, counted from 1."""
        return bisect_right(self.lines, offset)

    def named_lines(self, text: str) -> str:
        """Return a text about lines of the whole text, with the lines of cells in a notebook."""
        if not self.cells:
            return text

        def named(match: re.Match[str]) -> str:
            offset = self.lines[min(int(match[1]), len(self.lines)) - 1]
            return f"line {self.position(offset)[0]} of cell {self.cell(offset)}"

        return re.sub(r"\bline (\d+)", named, text)

    @cached_property
    def headings(self) -> list[tuple[int, int]]:
        """The rows of headings, with their levels."""
        levels = {"part": 0, "chapter": 1, "section": 2, "subsection": 3, "subsubsection": 4}
        found = []
        for match in HEADING.finditer(self.prose):
            level = len(match[1]) if match[1] else levels.get(match[2], NUMBERED)
            found.append((self.row(match.start()), level))
        return found

    def is_in_scope(self, said: int, row: int) -> bool:
        """Return whether a row's section is that of another row, or contains it."""
        at = bisect_right(self.headings, (said, 99)) - 1
        if at < 0 or row < said:
            return at < 0 or row >= self.headings[at][0]
        return row < self._ends_of_sections[at]

    @cached_property
    def _ends_of_sections(self) -> list[int]:
        """The rows at which the sections of the headings end."""
        ends = [1 << 60] * len(self.headings)
        open_: list[int] = []
        for at, (row, level) in enumerate(self.headings):
            while open_ and self.headings[open_[-1]][1] >= level:
                ends[open_.pop()] = row
            open_.append(at)
        return ends

    @cached_property
    def _paragraphs(self) -> list[int]:
        """The offsets at which paragraphs and items of lists end.

        A displayed formula goes on with a sentence.
        """
        ends = re.finditer(
            r"\n[ \t]*\n|\n(?=[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]|[ \t]*\\item\b)", self.text
        )
        return [match.start() for match in ends if not self._goes_on(match)]

    def _goes_on(self, blank: re.Match[str]) -> bool:
        """Return whether a sentence goes on after a blank line, with or after a formula."""
        before = self.text[max(0, blank.start() - 3) : blank.start()].rstrip()[-2:]
        after = self.text[blank.end() : blank.end() + 2]
        if after in ("$$", r"\[", r"\b"):
            return before[-1:] in (",", ":") or before[-1:].isalnum()
        return before in ("$$", r"\]") and after[:1].islower()

    def is_one_paragraph(self, row: int, other: int) -> bool:
        """Return whether two rows are of one paragraph."""
        return self.paragraph(row) == self.paragraph(other)

    def paragraph(self, row: int) -> int:
        """Return the number of the paragraph of a row, the last one of what is below."""
        return bisect_right(self._paragraphs, self.lines[min(row, len(self.lines)) - 1])

    def words_near(self, row: int) -> str:
        """Return the words of the paragraph of a row, without formulas, from two rows around."""
        return self.words(*self._near(row))

    def words(self, begin: int, end: int) -> str:
        """Return the words between two offsets, without formulas."""
        return " ".join(text for text, _ in self._pieces(begin, end))

    def clauses_near(self, row: int) -> list[Clause]:
        """Return the clauses of the paragraph of a row, from two rows around."""
        return self.clauses(*self._near(row))

    def clauses_before(self, formula: Formula) -> list[Clause]:
        """Return the clauses between the end of the last sentence and a formula."""
        length = len(self.sentence_before(formula)) + 2  # its blanks may be fewer than there
        return self.clauses(max(0, formula.start - length), formula.start)

    def clauses(self, begin: int, end: int) -> list[Clause]:
        """Return the clauses between two offsets. A list of formulas is no end of one.

        >>> from otimes.proofs.documents.containers.markdown import read_markdown
        >>> document = read_markdown("", "Let $x$ be the normalized row, $g$, $b$ be vectors.")
        >>> [(each.words, [f.tex for f in each.formulas]) for each in document.clauses(0, 60)]
        [('Let   be the normalized row', ['x']), ('  ,   be vectors', ['g', 'b']), ('', [])]
        """
        formulas: list[Formula] = []
        text = ""
        for words, formula in self._pieces(begin, end):
            text += words.replace(MARK, " ")
            if formula is not None:
                formulas.append(formula)
                text += MARK
        found, at = [], 0
        for sentence in END_OF_SENTENCE.split(DELIMITED.sub(MARK, text)):
            every = tuple(formulas[at : at + sentence.count(MARK)])
            for clause in END_OF_CLAUSE.split(sentence):
                own = tuple(formulas[at : at + clause.count(MARK)])
                found.append(Clause(clause.replace(MARK, " "), own or every))
                at += len(own)
        return found

    @cached_property
    def formulas_by_sentence(self) -> list[tuple[Formula, ...]]:
        """The formulas of each sentence, those of several where it is not seen to end."""
        found: list[list[Formula]] = [[]]
        for words, formula in self._pieces(0, len(self.text)):
            if END_OF_SENTENCE.search(words):
                found.append([])
            if formula is not None:
                found[-1].append(formula)
        return [tuple(each) for each in found if each]

    def _near(self, row: int) -> tuple[int, int]:
        """Return the offsets of the rows around one, as far as they are of its paragraph."""
        near = [
            each
            for each in range(max(1, row - 2), min(len(self.lines), row + 2) + 1)
            if self.is_one_paragraph(each, row)
        ]
        return self.lines[near[0] - 1], [*self.lines, len(self.text)][near[-1]]

    def _pieces(self, begin: int, end: int) -> Iterator[tuple[str, Formula | None]]:
        """Yield the words between two offsets, each with the formula after it, None at last."""
        at = begin
        for formula in self.formulas:
            if formula.start < end and formula.end > at:
                yield self.prose[at : max(at, formula.start)], formula
                at = max(at, min(formula.end, end))
        yield self.prose[at:end], None

    def words_of_section(self, row: int) -> str:
        """Return the text of the section of a row, from its heading to some lines below the row."""
        at = bisect_right(self.headings, (row, 99)) - 1
        begin = self.headings[at][0] if at >= 0 else 1
        end = self.lines[row + 1] if row + 1 < len(self.lines) else len(self.prose)
        return self.prose[self.lines[max(begin, row - 80) - 1] : end]

    def is_general(self, row: int) -> bool:
        """Return whether declarations on a row apply to the whole text.

        They do before the first heading, in the first section with formulas, and in one about
        notation.
        """
        at = bisect_right(self.headings, (row, 99)) - 1
        if at < 0 or not self.formulas:
            return True
        first = bisect_right(self.headings, (self.row(self.formulas[0].start), 99)) - 1
        return at <= first or GENERAL.search(self._title(at)) is not None

    def is_about_notation(self, row: int) -> bool:
        """Return whether a row is before the first heading, or of a section about notation."""
        at = bisect_right(self.headings, (row, 99)) - 1
        return at < 0 or NOTATION.search(self._title(at)) is not None

    def _title(self, at: int) -> str:
        begin = self.lines[self.headings[at][0] - 1]
        return self.text[begin : self.text.find("\n", begin)]

    @cached_property
    def _tables(self) -> list[tuple[int, int]]:
        """The offsets at which LaTeX tables begin and end."""
        return [match.span() for match in TABULAR.finditer(self.text)]

    def is_in_table(self, row: int) -> bool:
        """Return whether a line is of a table."""
        begin = self.lines[row - 1]
        if self.text[begin : begin + 200].lstrip()[:1] == "|":
            return True
        at = bisect_right(self._tables, (begin, 1 << 60)) - 1
        return at >= 0 and begin < self._tables[at][1]

    def cell(self, offset: int) -> int | None:
        """Return the cell of a notebook that an offset is in, counted from 1."""
        return bisect_right(self.cells, offset) if self.cells else None

    def before(self, formula: Formula, length: int = 240) -> str:
        """Return the prose before a formula, in the same paragraph.

        A displayed formula belongs to the paragraph before it, if a sentence goes on there.
        """
        start = max(0, formula.start - length)
        text = self.prose[start : formula.start]
        text = HEADED.split(text)[-1]
        own = text.rpartition("\n\n")[2]
        opened = OPENED.search(text)
        if opened is None or own.strip() != opened[0].strip():
            return own
        words = text[: opened.start()].rstrip()
        if words[-1:] in (",", ":") or words[-1:].isalnum():
            return words.rpartition("\n\n")[2] + " " + opened[0].strip()
        return own

    def sentence_before(self, formula: Formula) -> str:
        """Return the words between the end of the last sentence and a formula."""
        return re.split(r"(?<=[.!?])\s", self.before(formula))[-1]

    def sentence(self, formula: Formula) -> str:
        """Return the words of the sentence of a formula, without this and other formulas."""
        start, end = formula.start - len(self.sentence_before(formula)), self.sentence_end(formula)
        pieces, at = [], start
        for each in self.formulas_between(start, end):
            if each.end > at:  # and is not within the formula before it
                pieces.append(self.prose[at : each.start])
                at = each.end
        return " ".join([*pieces, self.prose[at:end]])

    def sentence_end(self, formula: Formula) -> int:
        """Return the offset at which the sentence of a formula ends."""
        rest = self.prose[formula.end : formula.end + 240]
        return formula.end + len(re.split(r"(?<=[.!?])\s|\n\s*\n", rest)[0])

    def next_heading(self, row: int) -> int:
        """Return the offset of the first heading below a row, or the end of the text."""
        at = bisect_right(self.headings, (row, 99))
        return self.lines[self.headings[at][0] - 1] if at < len(self.headings) else len(self.text)

    def formulas_between(self, start: int, end: int) -> list[Formula]:
        """Return the formulas that begin between two offsets."""
        starts = self._starts
        return self.formulas[bisect_left(starts, start) : bisect_left(starts, end)]

    @cached_property
    def _starts(self) -> list[int]:
        return [formula.start for formula in self.formulas]


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment for otimes in a document: its text, and its position."""

    text: str
    start: int
    end: int


def comments_in(text: str) -> list[Comment]:
    """Return the comments for otimes in a text.

    >>> [comment.text for comment in comments_in("a <!-- otimes: A: n n --> b")]
    ['A: n n']
    """
    return [
        Comment((match[1] or match[2] or "").strip(), match.start(), match.end())
        for match in COMMENT.finditer(text)
    ]
