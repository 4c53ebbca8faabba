"""Equations whose shapes do not match: which declaration is wrong, or why nothing can be said."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.algebra.notation.actions import ROWS, acting
from otimes.algebra.notation.elaborate import check_shapes, shape_error
from otimes.algebra.notation.symbols import Declared, Symbols, full_key, text_of
from otimes.algebra.notation.tree import (
    Grid,
    Name,
    Node,
    Norm,
    Number,
    Product,
    Tensor,
    is_constant,
    latex,
    walk,
)
from otimes.algebra.notation.typed import FormulaShapeError, WrongSide
from otimes.proofs.documents.prose.items import is_matrix_like
from otimes.proofs.documents.proving.every_reading import in_every_reading
from otimes.proofs.documents.proving.numeric_shapes import conforms_in_numbers
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.symbols.context import Context, Definition
from otimes.proofs.documents.symbols.declarations import CLOSE, Declarations
from otimes.proofs.documents.symbols.equal_sizes import (
    conforms_where_equal,
    equal_sizes,
    said_equal,
    with_equal_sizes,
)
from otimes.proofs.documents.symbols.identity_maps import SameSizes, with_same_sizes
from otimes.proofs.documents.verdicts.shape_doubts import of_a_dot, of_an_identity
from otimes.proofs.documents.verdicts.suggestions import Edit, suggestion

SQUARE = frozenset(("square", "symmetric", "idempotent", "invertible"))
FITS_NUMBERS = ", but it conforms with the numbers that its symbols are given"
LITTLE = 0.5  # units of work for edits of a claim of which little is declared
# Words for an equation whose letters are not those of the text: “by the rule $(AB)^T = B^T A^T$”.
RULE = re.compile(
    r"\b(?:rules?|identit(?:y|ies)|laws?|formulas?|propert(?:y|ies)|recall|in general)\b",
    re.IGNORECASE,
)
CUT = frozenset("krpmst")  # letters for how much of a matrix is kept


@dataclass(frozen=True, slots=True)
class ShapeConflicts:
    """The verdicts on shapes; `claim` decides an equation, or raises FormulaShapeError."""

    context: Context
    claim: Callable[[Node, Node, Symbols, int, str], Found]

    def shapes(
        self, terms: Sequence[Node], line: int, source: str, symbols: Symbols | None = None
    ) -> Found | None:
        """Return the shape error of terms that a formula equates, or None."""
        try:
            check_shapes(terms, symbols or self.context.symbols_at(line), source)
        except FormulaShapeError as error:
            if conforms_where_equal(self.context, terms, line, source):
                return None
            return self._blame(error, terms, line, source)
        except OtimesError:
            return None
        return None

    def _claim_where_equal(self, lhs: Node, rhs: Node, line: int, source: str) -> Found | None:
        """Return the verdict with the sizes that a paragraph says are equal, None if none are."""
        symbols = self.context.symbols_at(line)
        equal = equal_sizes(self.context, symbols, line)
        if not equal:
            return None
        try:
            found = self.claim(lhs, rhs, with_equal_sizes(symbols, equal), line, source)
        except ShapeError:
            return None
        return replace(found, why=f"{found.why}; {said_equal(equal)}")

    def turn_products(self, terms: Sequence[Node], line: int, source: str) -> bool:
        """Declare vectors of d·n entries to have n·d, if terms conform only so.

        As a number of entries, both are the same; the order is that of a product with ⊗.
        """
        symbols = self.context.symbols_at(line)
        used = self.context.lines_of(terms, line)
        long = [
            (key, at)
            for key, at in used
            if symbols.known[key].kind == "vector" and len(symbols.known[key].rows) == 2
        ]
        for key, _ in long:
            symbols.known[key] = _reversed(symbols.known[key])
        try:
            check_shapes(terms, symbols, source)
        except OtimesError:
            return False
        for k, (key, known) in enumerate(self.context.declared):
            if (key, known.line) in long:
                self.context.declared[k] = (key, _reversed(known))
        self.context.index, self.context.last = Declarations(), None
        return bool(long)

    def wrong_side(
        self, error: WrongSide, terms: Sequence[Node], line: int, source: str
    ) -> Found | None:
        """Return the shape error where a vector is used as a row that its section calls a column.

        None where that is said elsewhere or of all vectors, or where a dot may join vectors.
        """
        nodes = [e for term in terms for e in walk(term)]
        dotted = any(r"\cdot" in e.marks for e in nodes if isinstance(e, Product))
        itself = any(known.line == error.line and known.side for _, known in self.context.declared)
        said = 0 < error.line <= line and self.context.in_scope(error.line, line)
        if dotted or not (said and itself):
            return None
        return self.doubted(Found("shape", str(error), span=error.span), terms, line, source)

    def conflict(
        self, error: FormulaShapeError, lhs: Node, rhs: Node, line: int, source: str
    ) -> Found:
        """Return the verdict on a claim that contradicts the declared shapes.

        If the claim is proved with a declared shape transposed, the declaration is wrong.
        """
        if (found := self._claim_where_equal(lhs, rhs, line, source)) is not None:
            return found
        if rule := self._of_a_rule([lhs, rhs], line, source):
            return Found("undecided", f"{error}{rule}", span=error.span)
        weak = self._of_other_sections([lhs, rhs], line)
        for turned in self._transposed(lhs, rhs, line):
            if any(each in weak for each in turned):
                continue  # the letter may mean something else here
            symbols = self.context.symbols_at(line)
            for key, _ in turned:
                known = symbols.known[key]
                symbols.known[key] = replace(known, rows=known.cols, cols=known.rows)
            try:
                found = self.claim(lhs, rhs, symbols, line, source)
            except ShapeError:
                continue
            if found.verdict == "proved" or found.why.startswith("true given"):
                found.blamed = turned
                return found
        found = self._blame(error, [lhs, rhs], line, source)
        symbols = self.context.symbols_at(line)
        for equal in self._same_sizes([lhs, rhs], line, source):
            found = self.claim(lhs, rhs, with_same_sizes(symbols, equal), line, source)
            if found.verdict == "proved":
                return replace(found, verdict="needs-hypothesis", why=f"true where {equal.shown()}")
            return replace(found, verdict="undecided", why=f"{error}, but {equal.shown()}")
        edit = suggestion(lhs, rhs, symbols) or self._edit_as_defined(lhs, rhs, symbols)
        found.suggestion, found.edit = (edit.shown(), edit.kind) if edit else ("", "")
        if edit is None or found.verdict != "undecided" or self._is_excused(edit, line):
            return found
        if found.why.endswith(FITS_NUMBERS):
            return found
        return replace(found, verdict="shape", why=f"{error}{self._lines([lhs, rhs], line)}")

    def _edit_as_defined(self, lhs: Node, rhs: Node, symbols: Symbols) -> Edit | None:
        """Return the edit that makes a claim true with all definitions put in."""
        used: dict[str, Definition] = {}
        others = self.context.instances([lhs, rhs])
        a, b = (self.context.unfolded(side, used, None, others) for side in (lhs, rhs))
        return suggestion(a, b, symbols, LITTLE) if used else None

    def _is_excused(self, edit: Edit, line: int) -> bool:
        """Return whether an edit is no evidence that the shapes are meant as declared."""
        return self.context.is_excused(edit.kind, line)

    def by_edit(self, lhs: Node, rhs: Node, symbols: Symbols, line: int) -> Edit | None:
        """Return the edit with which a claim conforms and is true, and does not without it."""
        edit = suggestion(lhs, rhs, symbols, LITTLE)
        return None if edit is None or self._is_excused(edit, line) else edit

    def _transposed(self, lhs: Node, rhs: Node, line: int) -> list[list[tuple[str, int]]]:
        """Return the sets of declarations that may be transposed: each one, and all of a line.

        A vector is never: whether it is a row or a column is what such a declaration says.
        """
        symbols = self.context.symbols_at(line)
        acted = acting([lhs, rhs], ROWS)
        states = {symbols.lookup(e)[0] for e in (acted.on if acted else ()) if isinstance(e, Name)}
        used = [
            (key, at)
            for key, at in self.context.lines_of([lhs, rhs], line)
            if symbols.known[key].kind == "matrix"
            and key not in states  # with rows for columns, ⊗ acts otherwise
            and symbols.known[key].rows != symbols.known[key].cols
            and (1,) not in (symbols.known[key].rows, symbols.known[key].cols)
        ]
        of_lines = [[each for each in used if each[1] == at] for at in sorted({a for _, a in used})]
        found = [[each] for each in used] + of_lines
        unique = {tuple(subset): subset for subset in found}
        return [*unique.values()]

    def _is_by_number(self, key: str, terms: Sequence[Node], line: int) -> bool:
        """Return whether a symbol's shape was declared for a symbol with another number.

        So it may be for `U_r`, the first r columns of a declared `U`.
        """
        symbols = self.context.symbols_at(line)
        said = {known.full for known in self.context.declarations_of(key)}
        sizes = symbols.sizes() | CUT
        names = [e for term in terms for e in walk(term) if isinstance(e, Name)]
        return any(
            symbols.lookup(e)[0] == key and "" not in said and full_key(e) not in said
            for e in names
            if any(slot.kind in ("number", "label") for slot in e.sub)
            or (len(e.sub) == 1 and e.sub[0].text in sizes)
        ) or any(symbols.lookup(e)[0] == key and self._is_marked_otherwise(e) for e in names)

    def _is_marked_otherwise(self, name: Name) -> bool:
        """Return whether a symbol has a number or a label above, and was declared with another."""
        if self.context.has_exponent(name):
            return False
        said = self.context.declarations_of(self.context.symbols_at(0).lookup(name)[0])
        above = {(s.kind, s.text) for s in name.sup if s.kind in ("number", "label")}
        others = [{(s.kind, s.text) for s in d.name.sup} for d in said if d.name is not None]
        return bool(above and others) and not any(above <= other for other in others)

    def _is_example(self, terms: Sequence[Node], line: int) -> bool:
        """Return whether sizes are numbers beside named sizes, or entries are given as numbers."""
        symbols = self.context.symbols_at(line)
        declared = [symbols.known[key] for key, _ in self.context.lines_of(terms, line)]
        atoms = {atom for known in declared for size in (known.rows, known.cols) for atom in size}
        numbers = any(isinstance(atom, int) and atom > 1 for atom in atoms)
        names = any(isinstance(atom, str) for atom in atoms)
        grids = [e for term in terms for e in walk(term) if isinstance(e, Grid)]
        entries = any(
            all(isinstance(c, Number) for row in grid.rows for c in row)
            or any(isinstance(c, Number) and c.text not in "01" for c in walk(grid))
            for grid in grids
        )
        return (numbers and names) or (entries and bool(atoms))

    def _blame(
        self, error: FormulaShapeError, terms: Sequence[Node], line: int, source: str
    ) -> Found:
        """Return the shape error, or the verdict "undecided" where the declaration is doubtful."""
        found = Found("shape", str(error), span=error.span)
        return self.doubted(found, terms, line, source, error.broadcast)

    def doubted(
        self, found: Found, terms: Sequence[Node], line: int, source: str, broadcast: str = ""
    ) -> Found:
        """Return a shape error, or the verdict "undecided" where the declaration is doubtful.

        `broadcast` says how code would make the shapes conform.
        """
        error = found.why
        why = (
            self._given_in_numbers(terms, line)
            or self._of_an_example(terms, line)
            or self._of_same_sizes(terms, line, source)
            or self._of_a_family(error, terms)
            or self._said_to_be_square(terms, line)
            or self._declared_elsewhere(terms, line, source)
            or self._weakly_declared(error, terms, line, source)
            or self._declared_otherwise(terms, line, source)
            or _with_bars(terms)
            or self._of_an_action(terms, line)
            or self._of_a_function(terms, line)
            or self._of_a_rule(terms, line, source)
            or of_an_identity(terms, self.context.symbols_at(line))
            or of_a_dot(terms)
        )
        if why:
            return replace(found, verdict="undecided", why=f"{error}{why}")
        if broadcast:
            return replace(
                found, verdict="needs-hypothesis", why=f"true in code, where {broadcast}"
            )
        return replace(found, why=f"{error}{self._lines(terms, line)}")

    def _of_a_function(self, terms: Sequence[Node], line: int) -> str:
        why = self.context.maybe_function(terms, self.context.symbols_at(line))
        return f"; {why}" if why else ""

    def _of_a_rule(self, terms: Sequence[Node], line: int, source: str) -> str:
        """Return that an equation is a rule about any matrices, where words call it one."""
        if len(terms) != 2 or not RULE.search(self.context.sentence):
            return ""
        symbols = self.context.symbols_at(line).copy()
        for name in {e for term in terms for e in walk(term) if isinstance(e, Name)}:
            key, known = symbols.lookup(name)
            if known is not None and known.kind in ("matrix", "vector"):
                symbols.known.pop(key, None)
        try:
            found = self.claim(terms[0], terms[1], symbols, line, source)
        except ShapeError:
            return ""
        true = found.verdict == "proved" or found.why.startswith("true if vec")
        return ", but it is true of any matrices that conform" if true else ""

    def _of_an_action(self, terms: Sequence[Node], line: int) -> str:
        """Return that A ⊗ W may act on a matrix from both sides, where it stands before one."""
        symbols = self.context.symbols_at(line)
        if symbols.acts and acting(terms, ROWS) is not None:
            return ""
        for e in (e for term in terms for e in walk(term) if isinstance(e, Product)):
            for left, right in pairwise(e.factors):
                known = symbols.lookup(right)[1] if isinstance(right, Name) else None
                matrix = known is not None and known.kind == "matrix" and known.cols != (1,)
                if matrix and any(isinstance(part, Tensor) for part in walk(left)):
                    return f", but ⊗ may act on rows and columns of {latex(right)}"
        return ""

    def _lines(self, terms: Sequence[Node], line: int) -> str:
        lines = sorted({at for _, at in self.context.lines_of(terms, line) if at != line})
        return f" (shapes from {', '.join(f'line {at}' for at in lines)})" if lines else ""

    def _of_an_example(self, terms: Sequence[Node], line: int) -> str:
        return "; the numbers may be an example" if self._is_example(terms, line) else ""

    def _of_a_family(self, error: str, terms: Sequence[Node]) -> str:
        r"""Return that `A_{l,h}` may be no entry where `A_l` is a sum of such, or ""."""
        others = self.context.instances(terms) if "runs over" in error else {}
        put = [self.context.unfolded(term, {}, None, others) for term in terms]
        parts = [e for term in put for e in walk(term) if isinstance(e, Name) and len(e.sub) == 2]
        like = [e for e in parts if latex(replace(e, sub=e.sub[:1])) in self.context.indexed]
        return f", but {latex(like[0])} may be a matrix by itself" if like else ""

    def _of_same_sizes(self, terms: Sequence[Node], line: int, source: str) -> str:
        """Return that terms conform where two sizes are equal, as the text says, or ""."""
        if conforms_where_equal(self.context, terms, line, source):
            equal = equal_sizes(self.context, self.context.symbols_at(line), line)
            return f", but it conforms {said_equal(equal)}"
        return "".join(f", but {e.shown()}" for e in self._same_sizes(terms, line, source)[:1])

    def _same_sizes(self, terms: Sequence[Node], line: int, source: str) -> list[SameSizes]:
        """Return the sizes that are equal by an identity, and with which terms conform."""
        symbols = self.context.symbols_at(line)
        found = []
        for equal in self.context.same_sizes:
            near = self.context.in_scope(equal.line, line) or self.context.is_general(equal.line)
            for either in (equal, equal.turned()) if near and equal.line <= line else ():
                try:
                    check_shapes(terms, with_same_sizes(symbols, either), source)
                except OtimesError:
                    continue
                found.append(either)
        return found

    def _given_in_numbers(self, terms: Sequence[Node], line: int) -> str:
        symbols = self.context.symbols_at(line)
        fits = conforms_in_numbers(self.context, terms, symbols, line)
        return FITS_NUMBERS if fits else ""

    def _said_to_be_square(self, terms: Sequence[Node], line: int) -> str:
        """Return which symbol has a property of square matrices, after it was declared, or ""."""
        symbols = self.context.symbols_at(line)
        for key, at in self.context.lines_of(terms, line):
            known = symbols.known.get(key)
            if known is None or known.kind != "matrix" or known.rows == known.cols:
                continue
            for word, keys, row in self.context.words:
                later = at + CLOSE < row or not self.context.together(at, row)
                if word in SQUARE and key in keys and later and row <= line:
                    return f", but {key} is “{word}” by line {row}, and may be square here"
        return ""

    def _declared_elsewhere(self, terms: Sequence[Node], line: int, source: str) -> str:
        """Return the declarations of other sections without which shapes match, or ""."""
        elsewhere = [
            (key, at)
            for key, at in self.context.lines_of(terms, line)
            if self.context.is_elsewhere(key, at, line) or self._is_by_number(key, terms, line)
        ]
        if not elsewhere:
            return ""
        keys = {key for key, _ in elsewhere}
        every = self._declarations_of(keys)
        try:
            check_shapes(terms, self.context.symbols_at(line, every), source)
        except FormulaShapeError:
            return ""
        except OtimesError:
            pass
        if self._conforms_in_no_shape(terms, line, every, source):
            return ""
        if len(terms) == 2 and self.fit_in_no_reading(terms, line, keys, source):
            return ""
        where = (f"{key} is declared in another section, line {at}" for key, at in elsewhere)
        return f", but {'; '.join(where)}"

    def _declared_otherwise(self, terms: Sequence[Node], line: int, source: str) -> str:
        """Return the line of other shapes of the symbols, with which terms conform, or "".

        Only beside a symbol of which nothing is declared in this section: it may be a rule for any
        matrices.
        """
        symbols = self.context.symbols_at(line)
        names = {e for term in terms for e in walk(term) if isinstance(e, Name)}
        every = [symbols.lookup(e)[1] for e in names if is_matrix_like(e) and not is_constant(e)]
        if all(k is not None and k.line and self.context.in_scope(k.line, line) for k in every):
            return ""
        other: dict[int, dict[str, Declared]] = {}
        for key, _ in self.context.lines_of(terms, line):
            now = symbols.known[key]
            for known in self.context.declarations_of(key):
                if known.rows and (known.rows, known.cols) != (now.rows, now.cols):
                    other.setdefault(known.line, {})[key] = known
        for at, declared in sorted(other.items()):
            trial = symbols.copy()
            for key, said in self.context.lines_of(terms, line):
                if not self.context.in_scope(said, line):
                    del trial.known[key]
            trial.known.update(declared)
            try:
                check_shapes(terms, trial, source)
            except OtimesError:
                continue
            return f", but with the shapes of line {at} it conforms"
        return ""

    def _conforms_in_no_shape(
        self, terms: Sequence[Node], line: int, without: list[tuple[str, int]], source: str
    ) -> bool:
        """Return whether terms do not conform, whatever the shape of one undeclared capital is."""
        symbols = self.context.symbols_at(line, without)
        names = {e for term in terms for e in walk(term) if isinstance(e, Name)}
        names = {e for e in names if e.base not in ("I", "Id", "tr", "Tr")}
        open_ = {e for e in names if symbols.lookup(e)[1] is None and len(e.base) == 1}
        sizes = symbols.sizes()
        open_ = {e for e in open_ if text_of(e) not in sizes}
        alone = len({full_key(e) for e in open_}) == 1 and all(e.base.isupper() for e in open_)
        return alone and bool(shape_error(terms, symbols, source))

    def _declarations_of(self, keys: Collection[str]) -> list[tuple[str, int]]:
        return [(key, d.line) for key in sorted(keys) for d in self.context.declarations_of(key)]

    def fit_in_no_reading(
        self, terms: Sequence[Node], line: int, without: Collection[str], source: str
    ) -> bool:
        """Return whether terms do not conform, whatever undeclared letters and others stand for."""
        symbols = self.context.symbols_at(line, self._declarations_of(without))
        found = in_every_reading(
            terms[0], terms[1], symbols, source, lambda trial: Found("undecided")
        )
        return found is not None and found.verdict == "shape"

    def _weakly_declared(self, error: str, terms: Sequence[Node], line: int, source: str) -> str:
        """Return the letters declared in other sections without which the claim is true, or ""."""
        square = "square" in error
        weak = self._of_other_sections(terms, line)
        if not weak or not self._is_right_without(weak, terms, line, source, square):
            weak = [] if square else self._of_other_paragraphs(terms, line, source)
        if not weak:
            return ""
        where = "; ".join(f"{key} is declared on line {at}" for key, at in weak)
        return f", but {where}, and may be something else here"

    def of_this_section(self, found: Found, terms: Sequence[Node], line: int) -> Found:
        """Return the shape error, or "undecided" where letters are declared in another section."""
        weak = self._of_other_sections(terms, line)
        if not weak:
            return found
        where = "; ".join(f"{key} is declared on line {at}" for key, at in weak)
        why = f"{found.why}, but {where}, and may be something else here"
        return replace(found, verdict="undecided", why=why)

    def _of_other_sections(self, terms: Sequence[Node], line: int) -> list[tuple[str, int]]:
        """Return the letters in terms that are declared in another section, not about notation."""
        context = self.context
        return [
            (key, at)
            for key, at in context.lines_of(terms, line)
            if len(key) == 1 and not (context.in_scope(at, line) or context.is_general(at))
        ]

    def _of_other_paragraphs(
        self, terms: Sequence[Node], line: int, source: str
    ) -> list[tuple[str, int]]:
        """Return a letter of another paragraph without whose declaration a claim is proved.

        It is declared with any number of rows or columns: a size that nothing else has.
        """
        for key, at in self.context.lines_of(terms, line):
            if len(key) > 1 or self.context.together(at, line) or len(terms) != 2:
                continue
            if not self._has_own_size(key):
                continue
            kind = self.context.symbols_at(line).known[key].kind
            symbols = self.context.symbols_at(line, [(key, at)])
            symbols.known.setdefault(key, Declared(kind))  # of any shape, and no number
            try:
                found = self.claim(terms[0], terms[1], symbols, line, source)
            except FormulaShapeError:
                continue
            if found.verdict == "proved":
                return [(key, at)]
        return []

    def _has_own_size(self, key: str) -> bool:
        """Return whether one size of a matrix is that of no other symbol."""
        mine = [known for other, known in self.context.declared if other == key]
        others = {
            size
            for other, known in self.context.declared
            for size in (known.rows, known.cols)
            if other != key
        }
        return any(
            known.kind == "matrix"
            and len({known.rows, known.cols} - others) == 1
            and known.rows != known.cols
            for known in mine
        )

    def _is_right_without(
        self,
        without: list[tuple[str, int]],
        terms: Sequence[Node],
        line: int,
        source: str,
        square: bool,
    ) -> bool:
        """Return whether two terms may be equal without some declarations."""
        if len(terms) != 2:
            return False
        symbols = self.context.symbols_at(line, without)
        try:
            found = self.claim(terms[0], terms[1], symbols, line, source)
        except FormulaShapeError:
            return False
        return found.verdict in ("proved", "needs-hypothesis") or (
            square and found.verdict == "undecided"
        )


def _reversed(known: Declared) -> Declared:
    return replace(known, rows=known.rows[::-1])


def _with_bars(terms: Sequence[Node]) -> str:
    """Return that bars may stand for absolute values, where there are any, or ""."""
    barred = [e for term in terms for e in walk(term) if isinstance(e, Norm) and e.mark == "|"]
    return f", but “{latex(barred[0])}” may be taken entry by entry" if barred else ""
