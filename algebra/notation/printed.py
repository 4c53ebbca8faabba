r"""The notation of `unicode_text` and `latex` that papers do not use.

`e_i` is a one-hot column, `M_n` the causal mask, `Shift_n`, `pos_n` and `last_n` the constants of
positions. `W[h]` is a member of a family, `A[i, j]` an entry, both counted from 0; below and above
a symbol, indices count from 1. `∏←_l<L` multiplies layers with the later one on the left,
`Σ←_l<L^(k)` sums the paths of order k, `[W[h] … h<H]` and `[W[h] ⋮ h<H]` are blocks. All this is
read where symbols are declared in a string, and not in documents.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import sympy
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import ConcatHeads, HeadSum, OneHot, StackHeads, matmul
from otimes.algebra.language.nonlinear import CausalMask
from otimes.algebra.language.positions import OneHotLast, Positions, Shift
from otimes.algebra.notation.arithmetic import arithmetic
from otimes.algebra.notation.dimensions import ONE, Shape, Size, formula, size_symbol
from otimes.algebra.notation.names import Names
from otimes.algebra.notation.symbols import Declared, full_key, text_of
from otimes.algebra.notation.tokens import NotationError
from otimes.algebra.notation.tree import Entry, Indexed, Name, Node, Power, Slot, bare
from otimes.algebra.notation.typed import FormulaShapeError, Typed

CONSTANTS: dict[str, tuple[Any, bool]] = {  # and whether it is square
    "M": (CausalMask, True),
    "Shift": (Shift, True),
    "pos": (Positions, False),
    "last": (OneHotLast, False),
}
BLOCKS: dict[str, Any] = {r"\dots": ConcatHeads, r"\vdots": StackHeads}
SIZE = r"[^<]+?"
UP_TO = re.compile(rf"(?:({SIZE})\\le)?\s*([a-z]|\\ell)\s*(\\le|<)\s*({SIZE})")


class Printed(Names):
    """Reads symbols, entries and sums in the notation of the printers."""

    # -- symbols -----------------------------------------------------------------------------------

    def printed_name(self, e: Name) -> Typed | None:
        """Return the meaning of a symbol in the notation of the printers, if it has one there."""
        key, known = self.symbols.lookup(e)
        special = None if e.marks or e.select or e.sup else self._special(e, known)
        if special is not None or known is None or known.kind not in ("matrix", "scalar"):
            return special
        if known.counts and len(known.counts) == len(e.sup):
            base = Name(e.base, e.style, e.marks, e.sub, span=e.span)
            return self._member(base, e.sup, key, known, from_one=True)
        if len(e.sup) == 1 and not known.counts and self.is_number(e.sup[0]):
            base = Name(e.base, e.style, e.marks, e.sub, span=e.span)
            return self.infer(Power(base, self._parsed(e.sup[0].text), span=e.span))
        return None

    def _special(self, e: Name, known: Declared | None) -> Typed | None:
        if len(e.sub) != 1 or (known is not None and known.full == full_key(e)):
            return None
        (slot,) = e.sub
        if e.base == "e" and not e.style and known is None and slot.kind != "label":
            return self._one_hot(e, slot)
        if e.base in CONSTANTS and self.is_number(slot):
            cls, square = CONSTANTS[e.base]
            size = self._size(slot.text, e)
            return Typed(
                (size, size if square else ONE), lambda: cls(self.solver.expression(size)), e.span
            )
        return None

    def is_number(self, slot: Slot) -> bool:
        """Return whether a slot holds a size, and no index."""
        if slot.kind == "expression" or (slot.kind == "number" and slot.text.isdigit()):
            found = self._whole(slot.text)
            return found is not None and not self._letters(found)
        return slot.text in self.symbols.sizes()

    def _one_hot(self, e: Name, slot: Slot) -> Typed:
        size = self.solver.fresh()
        at = self._at(slot, size, e)
        return Typed((size, ONE), lambda: OneHot(at, self.solver.expression(size)), e.span)

    def _member(
        self, e: Name, slots: Sequence[Slot], key: str, known: Declared, from_one: bool = False
    ) -> Typed:
        """Return a member of a family, which may be a number."""
        counts = known.counts or tuple(
            self.counts.setdefault((key, ("member", k)), self.solver.fresh())
            for k in range(len(slots))
        )
        indices = [
            (self._at(slot, count, e, from_one), count)
            for slot, count in zip(slots, counts, strict=True)
        ]
        text = text_of(e)
        self.names[text] = key
        if known.kind == "scalar":
            return self._scalar_symbol(e, text, indices)
        return self._matrix_symbol(e, text, self._shape_of(e, key, text, known), known, indices)

    # -- entries and members -----------------------------------------------------------------------

    def printed_entry(self, e: Entry) -> Typed:
        """Return a member of a family, `W[h]`, or an entry, `A[i, j]`, counted from 0."""
        if e.square and isinstance(e.base, Name):
            key, known = self.symbols.lookup(e.base)
            if known is not None and len(e.indices) == (len(known.counts) or 1):
                return self._member(e.base, e.indices, key, known)
        if len(e.indices) != 2:
            raise NotationError("an entry has two indices", e.span)
        base = self.infer(e.base)
        if base.shape is None or not base.known:
            raise NotationError(f"{self.quoted(e.base)} has no entries", e.span)
        row, col = (
            self._at(slot, size, e, from_one=not e.square)
            for slot, size in zip(e.indices, base.shape, strict=True)
        )
        return Typed(None, lambda: MatrixElement(base.build(), row, col), e.span)

    def _at(self, slot: Slot, count: Size, e: Node, from_one: bool = False) -> Any:
        """Return an index; a letter runs over what it selects from."""
        if slot.kind == "index" and slot.text not in self.symbols.sizes():
            return self._index(slot.text.replace("\\", ""), count, e)
        found = self._whole(slot.text)
        if found is None:
            raise NotationError(f"the index {slot.text} is not in the language", e.span)
        if not from_one:
            return found
        letters = self._letters(found)
        return found - 1 + sum(sympy.expand(found).coeff(letter) for letter in letters)

    def _index(self, letter: str, count: Size, e: Node) -> sympy.Symbol:
        """Return the symbol of an index; a free one has one range in the whole formula."""
        inside = any(bound == letter for bound, _, _ in self.bound)
        if inside or not self.symbols.printed:
            return super()._index(letter, count, e)
        usual = self.counts.setdefault(("free", letter), self.solver.fresh())
        if not self.solver.unify(usual, count):
            raise FormulaShapeError(
                f"the index {letter} of {self.quoted(e)} runs over {self.solver.show(count)} "
                f"values, and elsewhere over {self.solver.show(usual)}",
                e.span,
            )
        return sympy.Symbol(letter, integer=True)

    # -- whole numbers -----------------------------------------------------------------------------

    def _parsed(self, text: str) -> Node:
        from otimes.algebra.notation.parser import parse_formula

        words = {key.partition("_")[0] for key in self.symbols.known}
        (statement,) = parse_formula(text, words=words, plain="\\" not in text)
        return bare(statement.terms[0])

    def _whole(self, number: str | Node) -> Any:
        """Return a whole number made of sizes and indices, or None."""
        try:
            node = self._parsed(number) if isinstance(number, str) else number
        except (NotationError, ValueError):
            return None
        return arithmetic(node, self._letter)

    def _letter(self, e: Name) -> Any:
        text = text_of(e)
        for letter, _, symbol in reversed(self.bound):
            if letter == text:
                return symbol
        if text in self.symbols.sizes() or len(text) > 1 or text.isupper():
            return size_symbol(text)
        return sympy.Symbol(text, integer=True)

    def _letters(self, number: Any) -> list[sympy.Symbol]:
        """Return the indices in a number."""
        return [s for s in number.free_symbols if not s.is_positive]

    def _size(self, text: str, e: Node) -> Size:
        found = self._whole(text)
        if found is None:
            raise NotationError(f"{text} is not a size", e.span)
        return formula(found)

    # -- sums, layers and blocks -------------------------------------------------------------------

    def printed_sum(self, e: Indexed) -> Typed | None:
        """Return a sum, or blocks, over an index in a form that only the printers write."""
        if e.kind == "all" and e.mark == r"\sum":
            return self._over(e, [(letter, self._own(letter)) for letter in e.indices], None)
        if len(e.indices) != 1:
            return None
        (index,) = e.indices
        if e.mark in BLOCKS:
            count = self._size_of_node(e.upper, e)
            return self._over(e, [(index, count)], BLOCKS[e.mark])
        if e.mark == r"\prod" or e.arrow:
            return self._ordered(e, index)
        found = UP_TO.fullmatch(e.lower.strip()) if e.kind == "range" else None
        if found is None or found[2] != index:
            return None
        return self._partial(e, index, found)

    def _own(self, letter: str) -> Size:
        count = self.solver.fresh()
        self.binders.append((letter, count))
        return count

    def _size_of_node(self, node: Node | None, e: Node) -> Size:
        found = None if node is None else self._whole(node)
        if found is None:
            raise NotationError("it is not clear how many blocks there are", e.span)
        return formula(found)

    def _over(self, e: Indexed, limits: Sequence[tuple[str, Size]], cls: Any) -> Typed:
        """Return a sum or blocks over indices, each with its number of values."""
        scopes = [(i, n, sympy.Symbol(i.replace("\\", ""), integer=True)) for i, n in limits]
        body = self._under(e, scopes)
        if not body.known:
            return self._unknown(e, self.quoted(e))
        shape = body.shape
        if cls is not None and shape is None:
            shape = (ONE, ONE)

        def build() -> Any:
            ranges = [(symbol, self.solver.expression(count)) for _, count, symbol in scopes]
            if shape is None:
                return sympy.Sum(body.build(), *[(i, 0, n - 1) for i, n in reversed(ranges)])
            return (cls or HeadSum)(_matrix(body), *ranges)

        if cls is not None and shape is not None:
            several: Size = tuple(atom for _, count, _ in scopes for atom in count)
            wide = cls is ConcatHeads
            shape = (shape[0], (*several, *shape[1])) if wide else ((*several, *shape[0]), shape[1])
        return Typed(shape, build, e.span)

    def _under(self, e: Indexed, scopes: Sequence[tuple[str, Size, sympy.Symbol]]) -> Typed:
        self.bound += scopes
        body = self.infer(e.body)
        del self.bound[-len(scopes) :]
        return body

    def _range(self, number: Any) -> Size:
        """Return how many values an index has that runs up to a number.

        Up to another index, it has the range of that one.
        """
        letters = self._letters(number)
        if not letters:
            return formula(number)
        same = [size for _, size, symbol in self.bound if symbol in letters]
        free = [self.counts.setdefault(("free", s.name), self.solver.fresh()) for s in letters]
        return (same or free)[0]

    def _partial(self, e: Indexed, index: str, found: re.Match[str]) -> Typed:
        """Return a sum over a part of a range: `Σ_j≤i`, `Σ_0≤j≤i`, `Σ_j<i`."""
        end = self._whole(found[4])
        first = sympy.Integer(0) if found[1] is None else self._whole(found[1])
        if end is None or first is None:
            raise NotationError(f"it is not clear what {self.quoted(e)} runs over", e.span)
        last = end - 1 if found[3] == "<" else end
        count = self._range(last) if self._letters(last) else formula(last + 1)
        symbol = sympy.Symbol(index.replace("\\", ""), integer=True)
        self.partial += 1
        body = self._under(e, [(index, count, symbol)])
        if not body.known:
            return self._unknown(e, self.quoted(e))

        def build() -> Any:
            if body.shape is not None and first == 0:
                return HeadSum(body.build(), (symbol, last + 1))
            return sympy.Sum(self.as_scalar(body), (symbol, first, last))

        return Typed(body.shape if first == 0 else None, build, e.span)

    def _ordered(self, e: Indexed, index: str) -> Typed | None:
        """Return a product over layers, or the sum of all paths of one order through them."""
        ends = self._ends(e, index)
        if ends is None:
            return None
        number, reverse = ends
        order = None if e.mark == r"\prod" else self._whole(e.upper or "1")
        symbol = sympy.Symbol(index.replace("\\", ""), integer=True)
        body = self._under(e, [(index, self._range(number), symbol)])
        if not body.known:
            return self._unknown(e, self.quoted(e))
        shape: Shape = body.shape if body.shape is not None else (ONE, ONE)
        if not self.solver.unify(*shape):
            raise FormulaShapeError(
                f"cannot multiply layers {self._with_shape(e.body, body)}: they are not square",
                e.span,
            )

        def build() -> Any:
            layer = _matrix(body)
            if order is None:
                return LayerProduct(layer, (symbol, number), reverse=reverse)
            return OrderSum(layer, (symbol, number), order, reverse=reverse)

        return Typed(shape, build, e.span)

    def _ends(self, e: Indexed, index: str) -> tuple[Any, bool] | None:
        r"""Return the number of layers, and whether the later ones stand on the right.

        `∏←_l<L` says it by its arrow, `\prod_{l=L}^{1}` by the order of its limits.
        """
        found = UP_TO.fullmatch(e.lower.strip()) if e.kind == "range" else None
        if found is not None and found[2] == index and found[3] == "<" and e.arrow:
            number, reverse = self._whole(found[4]), e.arrow == r"\to"
        elif e.kind == "from" and e.upper is not None and e.mark == r"\prod":
            first, last = self._whole(e.lower), self._whole(e.upper)
            number, reverse = (last, True) if first == 1 else (first, False)
            if 1 not in (first, last):
                return None
        else:
            return None
        return None if number is None else (number, reverse)


def _matrix(body: Typed) -> Any:
    """Return a body as a matrix: a number as the 1 × 1 matrix that has it as its entry."""
    built = body.build()
    return built if body.shape is not None else matmul(built, sympy.Identity(1))
