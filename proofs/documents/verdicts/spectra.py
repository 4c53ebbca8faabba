r"""Orthonormal vectors in claims: if `M = \sum_i s_i u_i u_i^T`, then `\mathrm{tr} M = \sum_i s_i`.

What a text calls orthonormal, or singular vectors, or eigenvectors of a symmetric matrix, are the
columns of a matrix U with Uᵀ U = I, and the numbers beside them the entries of a diagonal matrix D.
A claim about sums over them is one about U and D: it is decided as that. A claim about singular
values of which the text gives no more is left open.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from otimes.algebra.notation.dimensions import Size
from otimes.algebra.notation.elaborate import shape_error
from otimes.algebra.notation.symbols import Declared, Symbols, key_of
from otimes.algebra.notation.tree import (
    Apply,
    Group,
    Indexed,
    Name,
    Node,
    Number,
    Power,
    Product,
    Slot,
    Tensor,
    bare,
    latex,
    mapped,
    walk,
)
from otimes.algebra.verdict import Verdict
from otimes.proofs.documents.prose.declared_in_words import Prose
from otimes.proofs.documents.proving.attempts import attempted, named
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.symbols.context import Context, Definition
from otimes.proofs.documents.symbols.hypotheses import Hypothesis

LIST = r"(?P<list>⟦\d+⟧(?:\s*(?:,|and|,\s*and|to)\s*⟦\d+⟧){0,5})"
SYMMETRIC = re.compile(r"\b(?:symmetric|orthonormal|covariance|hermitian)\b", re.IGNORECASE)
# “Orthonormal eigenvectors $u_i$”, “left singular vectors $u_i$”, “$u_1, …, u_m$ are orthonormal”.
VECTORS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\borthonormal\s+(?:\w+\s+){{0,2}}{LIST}",
        rf"\bsingular vectors\s+{LIST}",
        rf"{LIST}\s*,?\s*(?:(?:is|are|be|being)\s+)?(?:(?!not\b)\w+\s+){{0,2}}orthonormal\b",
    )
]
OF_SYMMETRIC = re.compile(rf"\beigenvectors\s+{LIST}", re.IGNORECASE)
DECOMPOSED = re.compile(
    r"\b(?:SVDs?|singular[- ]value decomposition|spectral decomposition|eigen-?decomposition)\b"
    r"[^.⟦]{0,40}(?P<list>⟦\d+⟧)",
    re.IGNORECASE,
)
VALUES = [
    re.compile(rf"\b(?:singular |eigen-?)values?\s+(?:\w+\s+){{0,2}}{LIST}", re.IGNORECASE),
    re.compile(
        rf"{LIST}\s+(?:is|are|be|denotes?)\s+(?:the|its|their)\s+(?:\w+\s+)?"
        r"(?:singular |eigen-?)values?\b",
        re.IGNORECASE,
    ),
]
SENTENCE = re.compile(r"[^.!?]+(?:[.!?](?!\s|$)[^.!?]*)*[.!?]?")
OPEN = "what the text says of singular values or eigenvectors is not all read"


def read_spectra(prose: Prose, context: Context) -> None:
    """Note the letters that sentences call orthonormal vectors, or singular values, with lines."""
    for match in SENTENCE.finditer(prose.text):
        said = match[0]
        patterns = [*VECTORS, *([OF_SYMMETRIC] if SYMMETRIC.search(said) else [])]
        for number, name in _listed(prose, patterns, said):
            context.orthonormal |= (
                {(name.base, prose.row(number))} if name.base[0] != "\\" else set()
            )
        for each in DECOMPOSED.finditer(said):
            number, words = int(each["list"].strip("⟦⟧")), each[0].lower()
            for name in _of_decomposition(
                prose, number, alike="singular" not in words and "svd" not in words
            ):
                context.orthonormal.add((name.base, prose.row(number)))
        for number, name in _listed(prose, VALUES, said):
            context.spectrum.add((name.base, prose.row(number)))


def _listed(
    prose: Prose, patterns: Sequence[re.Pattern[str]], said: str
) -> Iterator[tuple[int, Name]]:
    """Yield the symbols with one index in the formulas that words name, with their numbers."""
    for match in (each for pattern in patterns for each in pattern.finditer(said)):
        for number in map(int, re.findall(r"\d+", match["list"])):
            for statement in prose.statements(number):
                if "=" not in statement.relations:
                    terms = (*statement.terms[:1], *statement.subjects)
                    for e in (e for term in terms for e in walk(term)):
                        if isinstance(e, Name) and len(e.sub) == 1:
                            yield number, e


def _of_decomposition(prose: Prose, number: int, alike: bool) -> Iterator[Name]:
    r"""Yield the vectors of a sum of outer products in a formula: `\sum_i \sigma_i u_i v_i^T`.

    `alike`: only if both are the same, as those of a symmetric matrix are.
    """
    for statement in prose.statements(number):
        for e in (e for term in statement.terms[1:] for e in walk(term)):
            factors = [*map(bare, e.factors)] if isinstance(e, Product) else []
            for first, last in pairwise(factors):
                turned = isinstance(last, Power) and last.exponent == "T"
                second = bare(last.base) if isinstance(last, Power) and turned else None
                pair = [e for e in (first, second) if isinstance(e, Name) and len(e.sub) == 1]
                if len(pair) == 2 and not (alike and first != second):
                    yield from pair


class _NotReadError(Exception):
    """A claim with vectors of a family otherwise than in a sum of outer products."""


@dataclass
class _Matrices:
    """Turns sums over families into products of matrices."""

    letters: Collection[str]
    families: dict[str, Name]  # the matrix by the letter of its columns
    diagonals: dict[str, Name]
    upper: Node | None = None

    def of_claim(self, lhs: Node, rhs: Node) -> tuple[Node, Node]:
        """Return the sides with matrices in them."""
        a, b = mapped(lhs, self.change), mapped(rhs, self.change)
        index = {s.text for side in (a, b) for e in walk(side) for s in self._slots(e)}
        if len(index) == 1:  # `M u_j = \lambda_j u_j`, for every j: M U = U D
            a, b = (self._of_every(side, *index) for side in (a, b))
        if any(self._slots(e) for side in (a, b) for e in walk(side)):
            raise _NotReadError
        return a, b

    def change(self, e: Any) -> Node | None:
        """Return the product of matrices that a sum over a family is, None for another term."""
        if not isinstance(e, Indexed):
            return None
        if e.mark != r"\sum" or len(e.indices) != 1 or e.kind not in ("from", "all"):
            raise _NotReadError
        if e.kind == "from" and (e.lower != "1" or e.upper is None):
            raise _NotReadError
        if e.upper is not None:
            if self.upper is not None and latex(self.upper) != latex(e.upper):
                raise _NotReadError
            self.upper = e.upper
        body = bare(e.body)
        factors = [*map(bare, body.factors)] if isinstance(body, Product) else [body]
        if isinstance(body, Product) and "/" in body.marks:
            raise _NotReadError
        numbers, pair, powers = [], [], []
        for factor in factors:
            vector = self._vector(factor, e.indices[0])
            power = self._power(factor, e.indices[0])
            if isinstance(factor, Number):
                numbers.append(factor)
            elif vector is not None:
                pair.append(vector)
            elif power is not None:
                powers.append(power)
            else:
                raise _NotReadError
        if not pair and powers:
            inner = powers[0] if len(powers) == 1 else Product((*powers,), ("",) * len(powers))
            product: tuple[Node, ...] = (*numbers, Apply(Name("tr"), (inner,)))
        elif len(pair) == 2 and not pair[0][1] and pair[1][1]:
            product = (*numbers, pair[0][0], *powers, Power(pair[1][0], "T"))
        else:
            raise _NotReadError
        return Group(Product(product, ("",) * len(product)))

    def _of_every(self, side: Node, index: str) -> Node:
        """Return a side for all values of its free index at once."""
        inner = bare(side)
        factors = [*inner.factors] if isinstance(inner, Product) else [inner]
        vector = self._vector(bare(factors[-1]), index)
        if vector is None or vector[1]:
            raise _NotReadError
        rest: list[Node] = []
        powers: list[Node] = []
        for factor in factors[:-1]:
            power = self._power(bare(factor), index)
            (rest if power is None else powers).append(factor if power is None else power)
        found = (*rest, vector[0], *powers)
        return Product(found, ("",) * len(found))

    def _slots(self, e: Any) -> list[Slot]:
        """Return the index of a vector of a family, or of a number beside it, on its own."""
        if not isinstance(e, Name) or len(e.sub) != 1:
            return []
        return [*e.sub] if e.base in self.letters or latex(replace(e, sub=(), sup=())) in (
            self.diagonals) else []  # fmt: skip

    def _vector(self, e: Node, index: str) -> tuple[Name, bool] | None:
        """Return the matrix whose column a factor is, and whether it is transposed, or None."""
        turned = isinstance(e, Power) and e.exponent == "T"
        name = bare(e.base) if isinstance(e, Power) and turned else e
        if not isinstance(name, Name) or [s.text for s in name.sub] != [index] or name.sup:
            return None
        if name.base not in self.letters:
            return None
        label = (Slot("label", name.base),)
        return self.families.setdefault(name.base, Name("Q", sub=label)), turned

    def _power(self, e: Node, index: str) -> Node | None:
        """Return the power of a diagonal matrix that a number of a family is, or None."""
        exponent = e.exponent if isinstance(e, Power) else ""
        e = bare(e.base) if isinstance(e, Power) else e
        if not isinstance(e, Name) or [s.text for s in e.sub] != [index] or e.base in self.letters:
            return None
        if e.sup:
            exponent = Number(e.sup[0].text)
            if len(e.sup) > 1 or e.sup[0].kind != "number":
                return None
        text = latex(replace(e, sub=(), sup=()))
        label = (Slot("label", text.strip("\\")),)
        name = self.diagonals.setdefault(text, Name("D", sub=label))
        whole = isinstance(exponent, Number) and exponent.text.isdigit()
        if exponent and not whole and exponent != "-1":
            return None
        return Power(name, exponent) if exponent else name


def by_spectra(context: Context, lhs: Node, rhs: Node, line: int) -> Found | None:
    """Return the verdict on a claim about sums over orthonormal vectors, or None."""
    if not context.orthonormal:
        return None
    here = [(v, at) for v, at in sorted(context.orthonormal) if context.in_scope(at, line)]
    letters = {each for each, _ in here}
    used: dict[str, Definition] = {}
    others = context.instances([lhs, rhs])
    sides = [context.unfolded(side, used, None, others) for side in (lhs, rhs)]
    sums = [e for side in sides for e in walk(side) if isinstance(e, Indexed)]
    names = {e for each in sums for e in walk(each) if isinstance(e, Name)}
    if not letters & {e.base for e in names}:
        return None
    matrices = _Matrices(letters, {}, {})
    try:
        a, b = matrices.of_claim(*sides)
    except _NotReadError:
        return None
    mine = dict(each for each in here if each[0] in matrices.families)
    said = "; ".join(f"{letter}_i orthonormal (line {at})" for letter, at in mine.items())
    why = "; ".join(filter(None, (f"with {said}", named(used) and f"with {named(used)}")))
    verdict, reading = _attempted(context, a, b, matrices, line, complete=False)
    if verdict is None:
        return _misfit(context, a, b, matrices, line)
    if verdict.status == "undecided":
        return None
    if verdict.status == "proved":
        return Found("proved", why, reading=reading, hypotheses=(said,))
    complete, _ = _attempted(context, a, b, matrices, line, complete=True)
    if complete is not None and complete.status == "refuted":
        differ = f"the sides differ at exact numbers, {why}"
        return Found("refuted", differ, reading=reading, hypotheses=(said,))
    return Found("needs-hypothesis", f"it is open whether the vectors are a basis; {why}")


def _attempted(
    context: Context, lhs: Node, rhs: Node, matrices: _Matrices, line: int, complete: bool
) -> tuple[Verdict | None, str]:
    """Return the verdict with what is given of the matrices of families.

    `complete`: whether vectors of which no size is declared are a basis.
    """
    symbols = _declared(context, (lhs, rhs), matrices, line, complete)
    given: list[Hypothesis] = []
    identity = Name("I")
    for name in matrices.families.values():
        known, turned = symbols.known[key_of(name)], Power(name, "T")
        given.append(Hypothesis(Product((turned, name), ("", "")), identity, "", True))
        if known.rows == known.cols:
            given.append(Hypothesis(Product((name, turned), ("", "")), identity, "", True))
    for name in matrices.diagonals.values():
        given.append(Hypothesis(Power(name, "T"), name, "", True))
        given.append(Hypothesis(name, Tensor(r"\odot", (name, identity)), "", True))
    return attempted(lhs, rhs, given, symbols, certain=True)


def _declared(
    context: Context, sides: Collection[Node], matrices: _Matrices, line: int, complete: bool
) -> Symbols:
    """Return the symbols of a line, with the matrices of families among them."""
    symbols = context.symbols_at(line).copy()
    size = latex(matrices.upper) if matrices.upper is not None else r"\rho"
    width = (int(size),) if size.isdigit() else (size,)
    for letter, name in matrices.families.items():
        known = symbols.lookup(Name(letter, sub=(Slot("index", "i"),)))[1]
        rows = known.rows if known is not None and known.kind == "vector" else ()
        rows = rows or _rows_of(name, sides, symbols)
        rows = rows or (width if complete else (f"{letter}0",))
        symbols.known[key_of(name)] = Declared("matrix", rows, width, line)
    for name in matrices.diagonals.values():
        symbols.known[key_of(name)] = Declared("matrix", width, width, line)
    return symbols


def _misfit(context: Context, lhs: Node, rhs: Node, matrices: _Matrices, line: int) -> Found | None:
    """Return the shape error of a claim about families whose sizes are all declared, or None."""
    symbols = _declared(context, (lhs, rhs), matrices, line, complete=False)
    rows = {e: symbols.known[key_of(name)].rows for e, name in matrices.families.items()}
    open_ = any(size == (f"{letter}0",) for letter, size in rows.items())
    if open_ or not shape_error([lhs, rhs], symbols):
        return None
    said = ", ".join(f"{e}_i has {'·'.join(map(str, size))} entries" for e, size in rows.items())
    return Found("shape", f"the sides do not conform: {said}")


def _rows_of(matrix: Name, sides: Collection[Node], symbols: Symbols) -> Size:
    """Return the size of the vectors of a family by what is declared of a sum over them, or ()."""
    for e in (e for side in sides for e in walk(side)):
        if not (isinstance(e, Group) and isinstance(e.stands_for, Name)):
            continue
        known, inner = symbols.lookup(e.stands_for)[1], bare(e)
        if known is None or known.kind != "matrix" or not isinstance(inner, Product):
            continue
        if matrix in inner.factors:
            return known.rows
        if Power(matrix, "T") in inner.factors:
            return known.cols
    return ()


def is_about_spectra(context: Context, lhs: Node, rhs: Node, line: int) -> bool:
    """Return whether a claim is about singular values or vectors of which not all is read."""
    if not (context.spectrum or context.orthonormal):
        return False
    known = {
        each for each, at in context.spectrum | context.orthonormal if context.in_scope(at, line)
    }
    used: dict[str, Definition] = {}
    sides = [context.unfolded(side, used) for side in (lhs, rhs)]
    names = [e for side in (*sides, lhs, rhs) for e in walk(side) if isinstance(e, Name)]
    return any(e.base in known and len(e.sub) == 1 for e in names)
