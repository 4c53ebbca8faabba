"""From the syntax tree of a formula to the SymPy statement, with the shapes that it requires.

One walk collects what the sizes must satisfy and returns, for each part, a function that builds it
once all sizes are known. Sizes that stay open become symbols of their own, so that the statement is
as general as the formula: a proof of it covers every special case.

`doubts` are the reasons for which a counterexample to the statement need not be one to what was
meant: symbols that were not declared, functions of which nothing is known, indices that are related
in a way that the statement does not have.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise, product
from typing import Any

from sympy import OneMatrix, ZeroMatrix

from otimes.algebra.notation.actions import as_actions
from otimes.algebra.notation.bound import bindings_of
from otimes.algebra.notation.capital_ends import with_small_ends
from otimes.algebra.notation.derivatives import in_either_shape
from otimes.algebra.notation.dimensions import ONE, Shape, Size, Unknown
from otimes.algebra.notation.entries import has_plain_entries, read_as_entries, with_entries
from otimes.algebra.notation.functions import Functions
from otimes.algebra.notation.generality import fixed_symbol
from otimes.algebra.notation.numbered import Found, in_several_shapes
from otimes.algebra.notation.slices import TURNS, Turned, has_slices
from otimes.algebra.notation.symbols import (
    Declared,
    Symbols,
    default,
    text_of,
)
from otimes.algebra.notation.tokens import NotationError
from otimes.algebra.notation.tree import (
    Apply,
    Cases,
    Derivative,
    Differential,
    Dots,
    Entry,
    Fraction,
    Grid,
    Group,
    Indexed,
    Listing,
    Name,
    Node,
    Norm,
    Number,
    Power,
    Product,
    Root,
    Space,
    Sum,
    Tensor,
    bare,
    is_constant,
    latex,
    walk,
)
from otimes.algebra.notation.turns import turns_of
from otimes.algebra.notation.typed import (
    Elaborated,
    FormulaShapeError,
    Typed,
    Undeclared,
    WrongSide,
)
from otimes.algebra.notation.vocabulary import SOFTMAX

FRESH = "pqrstabc"
PLAIN = (
    "cannot multiply",
    "cannot equate",
    "cannot take",
    "an inner product takes",
    "a block is",
)
MOST_TURNED = 4  # vectors of which each is turned by itself


def elaborate(
    terms: Sequence[Node], symbols: Symbols, source: str = "", starts: Sequence[int] = ()
) -> Elaborated:
    r"""Return terms that are equal by the formula as SymPy expressions of one shape.

    `source` is the text of the formula, for messages. `starts` are the places where another
    equation begins, which shares the symbols: a hypothesis. Raises FormulaShapeError where shapes
    do not conform, Undeclared where it is not known what a symbol is, NotationError for what the
    language does not have.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> (equation,) = parse_formula(r"(A \otimes B)(C \otimes D) = AC \otimes BD")
    >>> found = elaborate(equation.terms, Symbols())
    >>> found.terms[1]
    KroneckerProduct(A*C, B*D)
    """
    named = _acted(with_small_ends(terms, symbols.sizes()), symbols, source, starts)
    return _in_either_way(partial(_elaborated, source=source, starts=starts), named, symbols)


def _in_either_way(
    read: Callable[[Sequence[Node], Symbols], Found], terms: Sequence[Node], symbols: Symbols
) -> Found:
    """Return what `read` makes of terms with the shapes that conform, where there is a choice."""
    return in_either_shape(
        lambda each: in_several_shapes(partial(read, each), each, symbols), terms
    )


def _elaborated(
    terms: Sequence[Node], symbols: Symbols, source: str, starts: Sequence[int]
) -> Elaborated:
    try:
        return _oriented(terms, symbols, source, starts).elaborated()
    except (FormulaShapeError, Undeclared) as error:
        found = _by_entries(terms, symbols, source, starts)
        if found is not None:
            return found
        if isinstance(error, Undeclared):
            raise
        raise _certain(error, terms, symbols, source) from None


def shape_error(terms: Sequence[Node], symbols: Symbols, source: str = "") -> str | None:
    """Return how terms do not conform if undeclared matrices may have any shape, "" if they do.

    Return None where that cannot be said: a vector that is added to a matrix may be meant for each
    of its rows, and what is not in the language has any shape.
    """
    if has_plain_entries(terms):
        return None
    terms = _acted(terms, symbols, source)
    try:
        _in_either_way(partial(_inferred, source=source), terms, symbols)
    except FormulaShapeError as error:
        return str(error) if is_plain(error) else None
    except NotationError:
        return None
    return ""


def is_plain(error: FormulaShapeError) -> bool:
    """Return whether no reading of a sum, in which rows are repeated, makes its terms conform."""
    text = str(error)
    if text.startswith(PLAIN) or text.endswith(" joins matrices"):
        return True
    shapes = re.findall(r"\((\S[^()]*?) × (\S[^()]*?)\)", text)[-2:]
    if error.broadcast or not text.startswith("cannot add") or len(shapes) != 2:
        return False
    ones = [[size == "1" for size in shape] for shape in shapes]
    return ones[0] == ones[1]


def check_shapes(terms: Sequence[Node], symbols: Symbols, source: str = "") -> None:
    """Raise FormulaShapeError where the shapes of terms, equal by the formula, do not conform."""
    terms = _acted(terms, symbols, source)
    _in_either_way(partial(_check_shapes, source=source), terms, symbols)


def _acted(
    terms: Sequence[Node], symbols: Symbols, source: str, starts: Sequence[int] = ()
) -> Sequence[Node]:
    """Return terms in which ⊗ acts on a matrix from both sides, where they conform only so."""

    def conform(terms: Sequence[Node], on: Collection[Node]) -> bool:
        begun = starts if max(starts, default=0) < len(terms) else ()
        try:
            trial = _oriented(terms, symbols, source, begun)
            trial.infer_all()
            shapes = [trial.infer(part).shape for part in on]
        except (FormulaShapeError, NotationError):
            return False
        sizes = [trial.solver.resolved(size) for shape in shapes for size in shape or (ONE,)]
        return ONE not in sizes

    return as_actions(terms, symbols, conform)


def _inferred(terms: Sequence[Node], symbols: Symbols, source: str) -> None:
    _oriented(terms, symbols, source).infer_all()


def _check_shapes(terms: Sequence[Node], symbols: Symbols, source: str) -> None:
    try:
        _inferred(terms, symbols, source)
    except FormulaShapeError as error:
        if _by_entries(terms, symbols, source) is None:
            raise _certain(error, terms, symbols, source) from None


def _by_entries(
    terms: Sequence[Node], symbols: Symbols, source: str, starts: Sequence[int] = ()
) -> Elaborated | None:
    """Return the reading in which `u_i` is an entry of the declared vector `u`, if it conforms."""
    entries = None if symbols.printed else with_entries(terms, symbols)
    if entries is None:
        return None
    try:
        found = _oriented(entries, symbols, source, starts).elaborated()
    except (FormulaShapeError, NotationError):
        return None
    # what is known of entries, such as their sum, is often said in words that are not read
    found.doubts += [f"{text} was read as an entry" for text in read_as_entries(terms, symbols)]
    return found


def _oriented(
    terms: Sequence[Node], symbols: Symbols, source: str, starts: Sequence[int] = ()
) -> _Elaborator:
    """Return the reading in which slices are rows and columns, or else the one that conforms."""
    if not has_slices(terms):
        return _upright(terms, symbols, source, starts)
    fitting = []
    for turned in (turns := turns_of(terms, symbols)):
        try:
            trial = _upright(terms, symbols, source, starts, turned)
            trial.infer_all()
        except (FormulaShapeError, Undeclared):
            continue
        fitting.append(trial)
        if turned == TURNS[0] or turns is not TURNS:  # in an order
            break
    return fitting[0] if len(fitting) == 1 else _upright(terms, symbols, source, starts, TURNS[0])


def _upright(
    terms: Sequence[Node],
    symbols: Symbols,
    source: str,
    starts: Sequence[int] = (),
    turned: Turned | None = None,
) -> _Elaborator:
    """Return the reading in which vectors are columns or rows as declared, else what conforms.

    Raises WrongSide if the terms conform only where what is said to be a column is a row.
    """
    bindings = bindings_of(terms, symbols.sizes(), general=bool(starts))
    made = partial(_Elaborator, terms, symbols, source, bindings, starts=starts, turned=turned)
    vectors = {e for term in terms for e in walk(term) if _is_open_vector(e, symbols)}
    if not vectors:
        return made()
    named = {e for e in vectors if not is_constant(e)}
    if named and named <= _of_either_side(terms):  # diag(u) is the same for a row and a column
        return made("column")
    said = {e: side for e in vectors if (side := symbols.side_of(_known(e, symbols)))}
    if said:
        as_declared = _conforming(partial(made, declared=True), vectors, symbols)
        if _conforms(as_declared):
            return as_declared
    other = _conforming(made, vectors, symbols)
    if said and _conforms(other):
        e, side = min(said.items(), key=lambda pair: latex(pair[0]))
        line = getattr(_known(e, symbols), "line", 0)
        where = f" (line {line})" if line else ""
        raise WrongSide(f"it does not conform where {latex(e)} is a {side}{where}", e.span, line)
    return other


def _of_either_side(terms: Sequence[Node]) -> set[Node]:
    """Return the symbols that occur only in diag(u), and in entries of the softmax of u."""
    nodes = [e for term in terms for e in walk(term)]
    calls = [e for e in nodes if isinstance(e, Apply) and e.function.base in ("diag", "Diag")]
    bases = [bare(e.base) for e in nodes if isinstance(e, Entry) and len(e.indices) == 1]
    bases += [e for e in nodes if isinstance(e, Apply) and len(e.below) == 1]
    calls += [e for e in bases if isinstance(e, Apply) and e.function.base in SOFTMAX]
    inside = [bare(e.arguments[0]) for e in calls if len(e.arguments) == 1]
    return {e for e in inside if nodes.count(e) == inside.count(e)}


def _conforming(
    made: Callable[..., _Elaborator], vectors: Collection[Node], symbols: Symbols
) -> _Elaborator:
    """Return the reading in which vectors are columns or rows, whichever conforms.

    Where both do, the convention decides; where none does, each vector is decided by itself.
    """
    trials = {side: made(side) for side in ("column", "row")}
    fitting = []
    for trial in trials.values():
        try:
            trial.infer_all()
        except (FormulaShapeError, Undeclared):  # what is not read so is no reading
            continue
        if not trial.has_narrow_matrix():
            fitting.append(trial)
    if len(fitting) == 1:
        return fitting[0]
    keys = {symbols.lookup(e)[0] for e in vectors if isinstance(e, Name)}
    if not fitting and len(keys) == 1:
        return trials[symbols.convention or "column"]
    with_number = [trial for trial in fitting if trial.equates_the_number_one()]
    if len(with_number) == 1:
        return with_number[0]
    if len(fitting) == 2:
        return trials[symbols.convention] if symbols.convention else made("open")
    return made()


def _conforms(trial: _Elaborator) -> bool:
    try:
        trial.infer_all()
    except (FormulaShapeError, Undeclared):
        return False
    return not trial.has_narrow_matrix() and not trial.has_short_vector()


def _known(e: Node, symbols: Symbols) -> Declared | None:
    """Return what a symbol is declared to be, or is by its typography."""
    if not isinstance(e, Name):
        return None
    e = replace(e, select="") if e.select else e
    return symbols.lookup(e)[1] or default(e)


def _is_open_vector(e: Node, symbols: Symbols) -> bool:
    known = _known(e, symbols)
    return known is not None and known.kind == "vector"


def _certain(
    error: FormulaShapeError, terms: Sequence[Node], symbols: Symbols, source: str
) -> FormulaShapeError | Undeclared:
    """Return the error if it does not depend on what undeclared symbols were taken for."""
    if has_plain_entries(terms):
        return Undeclared(f"{error}; but plain letters may be entries of bold ones", error.span)
    trial = _lenient(terms, symbols, source)
    try:
        trial.infer_all()
    except FormulaShapeError as certain:
        if not trial.solver.unsure:
            return certain
    except NotationError:
        pass
    else:
        if has_slices(terms) and _slices_fit_no_way(terms, symbols, source):
            return error
        if _is_careful(terms, symbols) and _fits_no_way(terms, symbols, source):
            return error
    named = ", ".join(sorted(trial.undeclared)) or "the symbols"
    return Undeclared(f"{error}; but {named} may be something else: declare the shapes", error.span)


def _lenient(
    terms: Sequence[Node],
    symbols: Symbols,
    source: str,
    side: str | tuple[str, ...] = "",
    turned: Turned | None = None,
) -> _Elaborator:
    """Return a reading that assumes nothing of symbols that are not declared."""
    bindings = bindings_of(terms, symbols.sizes())
    return _Elaborator(terms, symbols, source, bindings, side, lenient=True, turned=turned)


def _is_careful(terms: Sequence[Node], symbols: Symbols) -> bool:
    """Return whether a vector is transposed, or multiplied with two matrices.

    One matrix beside a vector, `x W` for `W x`, may be how code or another text writes it.
    """
    nodes = [e for t in terms for e in walk(t)]
    turned = [bare(e.base) for e in nodes if isinstance(e, Power) and e.exponent == "T"]
    runs = [[bare(f) for f in e.factors] for e in nodes if isinstance(e, Product)]
    capitals = [sum(isinstance(f, Name | Power) and _is_large(f) for f in run) for run in runs]
    return any(_is_open_vector(e, symbols) for e in turned) or max(capitals, default=0) > 1


def _is_large(node: Node) -> bool:
    inner = bare(node.base) if isinstance(node, Power) else node
    return isinstance(inner, Name) and inner.base[:1].isupper() and inner.base != "I"


def _fits_no_way(terms: Sequence[Node], symbols: Symbols, source: str) -> bool:
    """Return whether no choice of row or column for each vector makes the terms conform.

    A vector that is added to a matrix may be meant for each of its rows.
    """
    vectors = [e for t in terms for e in walk(t) if _is_open_vector(e, symbols)]
    known = [symbols.lookup(e)[1] for e in vectors if isinstance(e, Name)]
    if len(known) > MOST_TURNED or not any(d and d.rows and d.line for d in known):
        return False
    for sides in product(("column", "row"), repeat=len(known)):
        trial = _lenient(terms, symbols, source, side=sides)
        try:
            trial.infer_all()
        except FormulaShapeError as error:
            if is_plain(error) and not trial.solver.unsure:
                continue
        except NotationError:
            pass
        return False
    return True


def _slices_fit_no_way(terms: Sequence[Node], symbols: Symbols, source: str) -> bool:
    """Return whether the terms do not conform, whichever way slices are turned."""
    for turned in TURNS:
        trial = _lenient(terms, symbols, source, turned=turned)
        try:
            trial.infer_all()
        except FormulaShapeError:
            if not trial.solver.unsure:
                continue
        except NotationError:
            pass
        return False
    return True


class _Elaborator(Functions):
    """One formula: all its terms, whose sizes are solved together."""

    def infer(self, node: Node) -> Typed:
        read = _READ.get(type(node))
        if read is None:
            raise NotationError(_BEYOND.get(type(node), "this is not in the language"), node.span)
        return read(self, node)

    # -- the whole ---------------------------------------------------------------------------------

    def infer_all(self) -> list[Typed]:
        """Return the shapes of all terms, or raise why there are none: each is found once."""
        if self.refused is not None:
            raise self.refused
        if self.inferred is None:
            try:
                self.inferred = self._infer_all()
            except NotationError as error:
                self.refused = error
                raise
        return self.inferred

    def _infer_all(self) -> list[Typed]:
        if self.lenient:
            self._find_confirmed()
        found, partial = [], []
        for node in self.nodes:
            before = self.partial
            found.append(self.infer(node))
            partial.append(self.partial > before)
        if len({*partial[: min(self.starts, default=len(partial))]}) > 1:
            self.doubts.append("only one side sums over a part of a range")
        for k, ((a, b), (x, y)) in enumerate(
            zip(pairwise(found), pairwise(self.nodes), strict=True)
        ):
            if k + 1 not in self.starts:
                self.same(a, b, "equate", x, y)
        self._match_binders()
        self.settle_ones()
        self._orient()
        return found

    def _match_binders(self) -> None:
        """Give sums over one letter the same range where nothing else determines it."""
        for letter, count in self.binders:
            if self.solver.unknowns(count):
                for other, known in self.binders:
                    if other == letter and not self.solver.unknowns(known):
                        self.solver.unify(count, known)
                        break

    def _find_confirmed(self) -> None:
        """Record which symbols are used as matrices somewhere."""
        for term in self.nodes:
            for e in walk(term):
                if isinstance(e, Tensor):
                    for factor in e.factors:
                        self._confirm(factor)
                elif isinstance(e, Power) and e.exponent == "T":
                    self._confirm(e.base)

    def equates_the_number_one(self) -> bool:
        """Return whether a side is a bare 1, and the others numbers: no column of ones is meant."""
        found = self.infer_all()
        numbers = all(each.shape is None or self.is_one_by_one(each) for each in found)
        return numbers and any(each.literal == "1" for each in found)

    def has_narrow_matrix(self) -> bool:
        """Return whether a capital came out with one row or column, or is defined as 1 × 1."""
        return any(
            self.solver.resolved(size) == ONE for shape in self.matrices for size in shape
        ) or any(all(self.solver.resolved(size) == ONE for size in shape) for shape in self.wholes)

    def has_short_vector(self) -> bool:
        """Return whether a vector of unknown length came out with one entry.

        An undeclared small letter that is not transposed may be a number.
        """
        nodes = [e for term in self.nodes for e in walk(term)]
        turned = {
            self.symbols.lookup(base)[0]
            for e in nodes
            if isinstance(e, Power) and e.exponent == "T" and isinstance(base := bare(e.base), Name)
        }
        return any(
            all(self.solver.resolved(size) == ONE for size in shape)
            for key, (shape, known) in self.shapes.items()
            if shape is not None and known.kind == "vector" and not known.rows
            if known.trusted or self.symbols.side_of(known) or key in turned
        )

    def elaborated(self) -> Elaborated:
        found = self.infer_all()
        if self.anything:
            what, span = self.anything[0]
            raise Undeclared(f"it is not declared {what}", span)
        if self.has_narrow_matrix():
            raise Undeclared(
                "the shapes conform only if a matrix has one row or column: declare the shapes",
                self.nodes[0].span,
            )
        if self.has_short_vector():
            why = "the shapes conform only if a vector has one entry: declare the shapes"
            raise Undeclared(why, self.nodes[0].span)
        self._name_open_sizes()
        ends = [*sorted(self.starts), len(found)]
        terms: list[Any] = []
        for start, end in pairwise([0, *ends]):
            terms += self._built(found[start:end])
            if start:
                self._check_generality(self.nodes[start:end], terms[start:end])
        self._doubt_related()
        shapes = {key: shape for key, (shape, _) in self.shapes.items()}
        solved = {
            key: None if s is None else (self.solver.resolved(s[0]), self.solver.resolved(s[1]))
            for key, s in shapes.items()
        }
        doubts = list(dict.fromkeys(self.doubts))
        return Elaborated(terms, doubts, self.names, self.undeclared, solved)

    def _check_generality(self, nodes: Sequence[Node], terms: Sequence[Any]) -> None:
        """Refuse a hypothesis in which an index is free, and part of the name of a symbol."""
        name = fixed_symbol(nodes, terms, lambda e: self._named(text_of(e), False))
        if name is not None:
            why = f"{self.quoted(name)} has an index, and is not known to be one of a family"
            raise NotationError(f"{why}: declare it with its index", name.span)

    def _built(self, group: list[Typed]) -> list[Any]:
        """Return the sides of one equation, all matrices of one shape or all numbers."""
        shape = next((each.shape for each in group if each.shape is not None), None)
        is_scalar = shape is None or any(e.shape is None and not e.literal for e in group)
        return [self._as_side(each, shape, is_scalar) for each in group]

    def _as_side(self, each: Typed, shape: Shape | None, scalar: bool) -> Any:
        if scalar:
            return self.as_scalar(each)
        if each.shape is None and shape is not None:
            return self._constant(each, shape)
        return each.build()

    def _constant(self, each: Typed, shape: Shape) -> Any:
        """Return the matrix that a bare 0 or 1 stands for as a side of an equation of matrices."""
        rows, cols = map(self.solver.expression, shape)
        if each.literal == "0":
            return ZeroMatrix(rows, cols)
        if each.literal == "1" and (rows == 1 or cols == 1):
            return OneMatrix(rows, cols)
        raise FormulaShapeError(
            f"a number is equated with a matrix of shape {self.solver.show_shape(shape)}",
            each.span,
        )

    def _orient(self) -> None:
        """Decide which vectors are columns, by what they are multiplied with."""
        waiting = [(key, shape, span) for key, shape, span in self.vectors]
        for strict in (True, False):
            taken: set[Unknown] = set()
            for shape in self.matrices:
                taken |= self.solver.unknowns(shape[0]) | self.solver.unknowns(shape[1])
            still = []
            for key, shape, span in waiting:
                rows, cols = map(self.solver.resolved, shape)
                if rows == ONE or cols == ONE:
                    continue
                free = [self._is_free(size, taken) for size in (rows, cols)]
                if free == [False, True] or (not strict and self.symbols.convention == "column"):
                    self.solver.unify(cols, ONE)
                elif free == [True, False] or (not strict and self.symbols.convention == "row"):
                    self.solver.unify(rows, ONE)
                elif not strict:
                    self.anything.append((f"whether {key} is a row or a column", span))
                else:
                    still.append((key, shape, span))
            waiting = still
        self._measure()

    def _measure(self) -> None:
        """Require the declared lengths of vectors that were transposed one by one."""
        for text, shape, length, span in [] if self.lenient else self.lengths:
            rows, cols = map(self.solver.resolved, shape)
            size = rows if cols == ONE else cols
            if ONE in (rows, cols) and not self.solver.unify(size, length):
                raise FormulaShapeError(
                    f"{text} has {self.solver.show(length)} entries, and is used as a vector of "
                    f"{self.solver.show(size)}", span,
                )  # fmt: skip

    def _is_free(self, size: Size, taken: set[Unknown]) -> bool:
        return len(size) == 1 and isinstance(size[0], Unknown) and size[0] not in taken

    def _name_open_sizes(self) -> None:
        used = set(self.symbols.sizes()) | set(self.names)
        names = chain(FRESH, (f"{c}{k}" for k in range(2, 99) for c in FRESH))
        sizes = [s for shape, _ in self.shapes.values() if shape is not None for s in shape]
        for size in [*sizes, *self.counts.values()]:
            for unknown in sorted(self.solver.unknowns(size)):
                if unknown not in self.solver.values:
                    name = next(
                        n for n in names if n not in used and n not in self.bindings.letters
                    )
                    self.solver.values[unknown] = (name,)
        for number in range(1, self.solver.count + 1):  # sizes of constants that nothing fixes
            unknown = Unknown(number)
            if unknown not in self.solver.values:
                self.solver.values[unknown] = (next(n for n in names if n not in used),)

    def _doubt_related(self) -> None:
        for patterns in self.patterns.values():
            if len(patterns) > 1 and any(patterns.values()):
                self.doubts.append(f"{' and '.join(sorted(patterns))} were taken as unrelated")
        for index, ranges in self.bindings.ranges.items():
            if len(ranges) > 1:
                self.doubts.append(f"sums over {index} have different ranges")


_BEYOND: dict[type, str] = {
    Listing: "sets, intervals and conditions are not in the language",
    Cases: "a definition by cases is not in the language",
    Space: "a space is no value",
}
_READ: dict[type, Callable[[_Elaborator, Any], Typed]] = {
    Number: _Elaborator.number,
    Name: _Elaborator.name,
    Dots: _Elaborator.dots,
    Group: _Elaborator.group,
    Sum: _Elaborator.sum,
    Product: _Elaborator.product,
    Tensor: _Elaborator.tensor,
    Power: _Elaborator.power_or_norm,
    Fraction: _Elaborator.fraction,
    Derivative: _Elaborator.derivative,
    Differential: _Elaborator.differential,
    Root: _Elaborator.root,
    Indexed: _Elaborator.indexed,
    Apply: _Elaborator.apply,
    Entry: _Elaborator.entry,
    Norm: _Elaborator.norm,
    Grid: _Elaborator.grid,
}
