r"""Brackets with several parts, norms, matrices and definitions by cases.

Parts that commas or semicolons separate are rows, arguments or lists. Parts with another sign
between them, `p(x \mid z)`, `\{x : x > 0\}`, `[0, 1)`, are a `Listing`, which is read and never
decided.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection

from otimes.algebra.notation.stream import Stream
from otimes.algebra.notation.tokens import NotationError, Token
from otimes.algebra.notation.tree import (
    Apply,
    Cases,
    Dots,
    Grid,
    Group,
    Indexed,
    Listing,
    Name,
    Node,
    Norm,
    Product,
)
from otimes.algebra.notation.vocabulary import CASES, DOTS, MATRICES

CLOSING = {"(": ")", "[": "]", r"\{": r"\}", r"\langle": r"\rangle", r"\lfloor": r"\rfloor",
           r"\lceil": r"\rceil", r"\lbrace": r"\rbrace"}  # fmt: skip
LENGTHS = ("em", "ex", "pt", "mm", "cm")  # after a number, in brackets
OPENED = {*CLOSING, "{"}
CLOSED = {*CLOSING.values(), "}"}
FARTHEST = 300  # tokens after a bar, among which the one that closes it is sought
SEPARATORS = (",", ";", ":", "|", r"\mid", r"\|")


class Lists(Stream, ABC):
    """Reads what has brackets around it; the expressions inside are read by the class above."""

    in_cell = 0  # cells of matrices that are being read
    inside = 0  # brackets that are open, in which a bar may stand alone

    @abstractmethod
    def expression(self) -> Node:
        """Read a sum of products."""

    @abstractmethod
    def line_breaks(self) -> None:
        """Skip line breaks inside a chain."""

    @abstractmethod
    def relation(self) -> str | None:
        """Take a relation, and return it, if one comes next."""

    # -- brackets ----------------------------------------------------------------------------------

    def brackets(self, start: int) -> Node:
        """Read a group, a list, a row, an inner product."""
        opened = self.take()
        close = CLOSING[opened.text]
        if (at := self._dots_of_blocks(opened)) is not None:
            return self._blocks(at, start)
        if self.is_at(close):
            self.take()
            return Listing((), (), (opened.text, close), span=self.from_(start))
        parts, marks = self.parts()
        half_open = opened.text in "([" and self.is_at(")", "]")
        half_open |= opened.text == r"\lfloor" and self.is_at(r"\rceil")  # rounded
        found = self.take().text if half_open else self.expect(close, opened).text
        plain = set(marks[1:]) <= {",", ";"} and found == close
        span = self.from_(start)
        if plain and opened.text == r"\langle" and len(parts) == 2:
            return Apply(Name("inner"), parts, span=span)
        if plain and len(parts) == 1 and opened.text in ("(", "[", r"\{"):
            return Group(parts[0], opened.text, span=span)
        if plain and opened.text == "[":
            return Grid(_rows(parts, marks), "[", span=span)
        if plain and opened.text == "(" and ";" not in marks:
            return Grid((parts,), "(", span=span)
        return Listing(parts, marks, (opened.text, found), span=span)

    def _dots_of_blocks(self, opened: Token) -> int | None:
        """Return where `… h<H` begins in a bracket `[W[h] … h<H]`, or None."""
        if not self.plain or opened.text != "[":
            return None
        depth = 0
        for at in range(self.at, len(self.tokens) - 3):
            text = self.tokens[at].text
            depth += (text in OPENED) - (text in CLOSED)
            if depth < 0:
                return None
            if depth == 0 and text in (r"\dots", r"\vdots") and self.tokens[at + 2].text == "<":
                return at
        return None

    def _blocks(self, at: int, start: int) -> Node:
        """Read blocks side by side or stacked, `[W[h] … h<H]`, with one index or several."""
        body = self._parsed(self.tokens[self.at : at])
        self.at = at
        mark = self.take().text
        limits: list[tuple[str, Node]] = []
        while not limits or self.is_at(","):
            if limits:
                self.take()
            index, _, upper = self.take(), self.take(), self._upper()
            limits.append((index.text, upper))
        self.expect("]", self.tokens[start])
        for index_, upper in reversed(limits):
            body = Indexed(mark, (index_,), "below", index_, upper, body, span=self.from_(start))
        return body

    def _upper(self) -> Node:
        """Read the number of blocks, as far as the next comma or bracket."""
        run: list[Token] = []
        while self.here is not None and not self.is_at(",", "]"):
            run.append(self.take())
        return self._parsed(run)

    @abstractmethod
    def _parsed(self, tokens: list[Token]) -> Node:
        """Parse tokens as an expression."""

    def parts(self) -> tuple[tuple[Node, ...], tuple[str, ...]]:
        """Read expressions separated by signs that are not operations, such as commas."""
        bars, self.bars = self.bars, 0
        self.inside += 1
        parts, marks = [], [""]
        while True:
            self.line_breaks()
            parts.append(self.expression())
            mark = self._separator()
            if mark is None:
                break
            marks.append(mark)
        self.inside -= 1
        self.bars = bars
        return tuple(parts), tuple(marks)

    def _separator(self) -> str | None:
        if self.is_at(*SEPARATORS) and not (
            self.is_at(":") and self.at + 1 < len(self.tokens) and self._follows("=")
        ):
            return self.take().text
        return self.relation()

    def _follows(self, text: str) -> bool:
        return self.tokens[self.at + 1].text == text

    def is_lone_bar(self) -> bool:
        """Return whether the bar that comes next separates parts, and opens no norm."""
        here = self.here
        if not self.inside or here is None:
            return False
        depth = count = 0
        for token in self.tokens[self.at : self.at + FARTHEST]:
            depth += (token.text in OPENED) - (token.text in CLOSED)
            if depth < 0:
                break
            count += depth == 0 and token.text == here.text
        return count % 2 == 1

    # -- norms -------------------------------------------------------------------------------------

    def norm(self, start: int) -> Node:
        """Read a norm, or an absolute value."""
        opened = self.take()
        double = opened.text == r"\|"
        if opened.text == "|" and self.is_at("|") and not self.here.spaced:  # type: ignore[union-attr]
            self.take()
            double = True
        bars, self.bars = self.bars, 1
        inner = self.expression()
        if opened.text == r"\|":
            self.expect(r"\|", opened)
        else:
            self.expect("|", opened)
            if double:
                self.expect("|", opened)
        self.bars = bars
        mark = r"\|" if double else "|"
        return Norm(inner, "", mark, span=self.from_(start))

    # -- matrices and cases ------------------------------------------------------------------------

    def matrix(self, begun: Token, start: int) -> Node:
        """Read an environment: a matrix, or a definition by cases."""
        name = "".join(token.text for token in self.raw_group())
        if name in CASES:
            return Cases(self._cases(begun, name), span=self.from_(start))
        if name not in MATRICES:
            raise NotationError(
                f"the environment {name} is not read here", (begun.start, begun.end)
            )
        if name == "array" and self.is_at("{"):
            self.raw_group()
        if name.endswith("*") and self.is_at("["):  # how its columns are aligned
            while self.here is not None and self.take().text != "]":
                pass
        rows: list[list[Node | None]] = [[]]
        filled = False
        while not self._ends(begun, name):
            if self.is_at("&"):
                self.take()
                if not filled:
                    rows[-1].append(None)
                filled = False
            elif self.is_at(r"\\"):
                self.take()
                if not filled:
                    rows[-1].append(None)
                rows.append([])
                filled = False
                self._skip_length()
            elif self.is_at(r"\hline"):
                self.take()
            else:
                self.in_cell += 1
                rows[-1].append(self._cell())
                self.in_cell -= 1
                filled = True
        if rows[-1] and not filled:
            rows[-1].append(None)
        if not rows[-1]:
            rows.pop()
        grid = Grid(tuple(map(tuple, rows)), "", span=self.from_(start))
        if name.startswith("vmatrix"):
            return Apply(Name("det"), (grid,), span=self.from_(start))
        if name.startswith("Vmatrix"):
            return Norm(grid, "", r"\|", span=self.from_(start))
        return grid

    def _skip_length(self) -> None:
        r"""Skip the space between two rows, as in `\\[0.5em]`."""
        texts = [token.text for token in self.tokens[self.at : self.at + 5]]
        if texts[:1] == ["["] and texts[-1:] == ["]"] and "".join(texts[2:4]) in LENGTHS:
            self.at += len(texts)

    def _ends(self, begun: Token, name: str) -> bool:
        """Return whether the environment ends here, and take its end."""
        if self.here is None:
            raise NotationError(f"{name} is not closed", (begun.start, begun.end))
        if not self.is_at(r"\end"):
            return False
        self.take()
        self.raw_group()
        return True

    def _cell(self) -> Node:
        """Read one cell; arrows and dots around it show that it is a row or a column."""
        start = self.at
        parts: list[Node] = []
        while self.here is not None and not self.is_at("&", r"\\", r"\end"):
            if self.here.text in DOTS or self.here.text in (r"\uparrow", r"\downarrow"):
                token = self.take()
                parts.append(Dots(token.text, span=(token.start, token.end)))
            else:
                parts.append(self.expression())
        if len(parts) == 1:
            return parts[0]
        return Product(tuple(parts), ("",) * len(parts), span=self.from_(start))

    def _cases(self, begun: Token, name: str) -> tuple[tuple[Node, ...], ...]:
        rows: list[list[Node]] = [[]]
        while not self._ends(begun, name):
            if self.is_at("&"):
                self.take()
            elif self.is_at(r"\\"):
                self.take()
                rows.append([])
            else:
                self.in_cell += 1
                rows[-1].append(self._case(("&", r"\\", r"\end")))
                self.in_cell -= 1
        return tuple(tuple(row) for row in rows if row)

    def _case(self, ends: Collection[str]) -> Node:
        """Read a value or a condition: expressions, relations and words."""
        start = self.at
        parts: list[Node] = []
        marks: list[str] = []
        while True:
            while self.is_at(",", ".", ";", r"\quad"):
                self.take()
            mark = self.relation() or ""
            if self.here is None or self.is_at(*ends):
                break
            marks.append(mark)
            token = self.here
            if token.kind == "word":
                self.take()
                parts.append(Name(token.text.strip(), span=(token.start, token.end)))
            else:
                parts.append(self.expression())
        if len(parts) == 1 and not marks[0]:
            return parts[0]
        return Listing(tuple(parts), tuple(marks), span=self.from_(start))


def _rows(parts: tuple[Node, ...], marks: tuple[str, ...]) -> tuple[tuple[Node, ...], ...]:
    """Return the rows of a matrix in brackets, which semicolons separate."""
    rows: list[list[Node]] = [[]]
    for part, mark in zip(parts, marks, strict=True):
        if mark == ";":
            rows.append([])
        rows[-1].append(part)
    return tuple(map(tuple, rows))
