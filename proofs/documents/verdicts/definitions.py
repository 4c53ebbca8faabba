"""Definitions: the symbols that equations introduce, and the shapes that follow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from otimes.algebra.errors import OtimesError
from otimes.algebra.notation.dimensions import ONE
from otimes.algebra.notation.elaborate import elaborate
from otimes.algebra.notation.expectations import is_statistic
from otimes.algebra.notation.symbols import (
    VECTORS,
    Declared,
    Symbols,
    default,
    full_key,
    key_of,
    keys,
    split_by_index,
    text_of,
)
from otimes.algebra.notation.tree import (
    Apply,
    Derivative,
    Grid,
    Indexed,
    Name,
    Node,
    Norm,
    Number,
    Power,
    Product,
    Root,
    Tensor,
    bare,
    is_constant,
    latex,
    walk,
)
from otimes.algebra.notation.typed import Elaborated
from otimes.algebra.notation.vocabulary import FUNCTIONS, ROWWISE, words
from otimes.proofs.documents.containers.source import Document
from otimes.proofs.documents.formulas.addend_shapes import shapes_of_addends
from otimes.proofs.documents.prose.circuit_shapes import sums_over_wrong_space
from otimes.proofs.documents.prose.consistency import (
    dotted_vectors,
    lost_index,
    other_layer,
    same_layer_pairs,
)
from otimes.proofs.documents.prose.items import Item, is_capital, is_matrix_like
from otimes.proofs.documents.proving.attempts import named, symbols_in
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.symbols.context import Context, Definition
from otimes.proofs.documents.symbols.declarations import Declarations
from otimes.proofs.documents.symbols.declared_again import is_new_below
from otimes.proofs.documents.symbols.degrees import with_row_sums
from otimes.proofs.documents.symbols.hypotheses import Hypothesis
from otimes.proofs.documents.symbols.pseudo_inverses import is_pseudo_inverse
from otimes.proofs.documents.symbols.terms import is_value, lists_a_diagonal
from otimes.proofs.documents.verdicts.circumstances import is_revised
from otimes.proofs.documents.verdicts.judge import Judge

IN_CODE = re.compile(r"\b(?:in|as) (?:code|numpy|pytorch|python|einsum)\b", re.IGNORECASE)
SOON = 8  # lines after a factorization, on which it is said what its factors are
# Functions that mean something: an equation with one on its left side claims, and defines nothing.
MEANT = (FUNCTIONS | {"inner"}) - ROWWISE - words(r"f g \sigma \phi \mu \psi Attn attn RMS")


class Definitions:
    """Judges equations that define symbols, and records the shapes that follow."""

    def __init__(self, document: Document, context: Context, items: list[Item]) -> None:
        self.document = document
        self.context = context
        self.items = items
        self.judge = Judge(context)
        self.blamed: dict[tuple[str, int], list[str]] = {}
        self.seen: set[str] = set()
        self.introduced: dict[str, int] = {}  # by equations such as W = U Σ Vᵀ, with their lines
        self.given_numbers: set[str] = set()  # matrices that are written out
        self.learned: set[str] = set()  # symbols whose shapes definitions have shown
        self.inferred: list[tuple[str, Declared]] = []  # these shapes, by key
        self.layers = same_layer_pairs(items)

    def _definition(self, item: Item, left: Node, right: Node, always: bool = False) -> Found:
        self._declare_in_its_style(left, right, item)
        terms = [right] if self._is_new_family(left, item.line) else [left, right]
        shape = self.judge.shapes(terms, item.line, item.formula.tex)
        shape = shape or self.judge.misfit(left, right, item.line, item.formula.tex)
        if shape is not None and self._is_declared_anew(left, right, item, shape.is_wrong):
            shape = None
        if shape is not None and shape.is_wrong and self._is_of_another_section(left, item):
            shape = replace(shape, verdict="undecided")
        name = bare(left)
        if shape is not None and isinstance(name, Name):
            shape = None if is_new_below(self.context, name, item.line) else shape
        if shape is not None and _is_made_of_members(left, right):
            shape = None  # the shape is that of the members
        shape = shape or self._misfit_within(item, right)
        if shape is not None and self.judge.shapes(
            [left, right], item.line, item.formula.tex, self.context.base.copy()
        ):
            return shape
        if always:
            self.context.definitions.pop(latex(bare(left)), None)
        if isinstance(name, Name) and lists_a_diagonal(right):
            entries = Tensor(r"\odot", (name, Name("I")))
            given = Hypothesis(name, entries, f"line {item.line}", True, item.line)
            self.context.hypotheses.append(given)
            self.context.kinds.setdefault(key_of(name), Declared("matrix"))
            known = [each for every in self.context.generic.values() for each in every]
            self.context.define(name, with_row_sums(right, known) or right, item.line)
            return Found("definition", "it says that a matrix is diagonal")
        self.context.define(bare(left), right, item.line)
        if shape is not None:
            if self._is_other(left, right, item):
                return replace(shape, verdict="undecided")
            return shape
        self.introduced |= dict.fromkeys(self._introduced(left, right), item.line)
        self._learn(left, right, item)
        contracted = sums_over_wrong_space(self.context, left, right, item.line)
        if contracted:
            return Found("shape", contracted)
        doubt = self._doubt(left, right, item.line)
        if doubt:
            return Found("needs-hypothesis", doubt)
        symbols = self.context.symbols_at(item.line)
        indexed = {s.text for e in _names_by_index(right, symbols) for s in e.sub}
        names = [e for e in walk(right) if isinstance(e, Name)]
        indexed |= {s.text for e in names if self._is_labelled(e) for s in e.sub}
        loose = [i for i in loose_indices(left, right) if i not in symbols.sizes() | indexed]
        if loose:
            why = f"the index {', '.join(loose)} is on the right side only: what is it?"
            return Found("needs-hypothesis", why)
        return Found("definition", "")

    def _declare_in_its_style(self, left: Node, right: Node, item: Item) -> None:
        r"""Declare a letter that is defined by the same one in another style: `\mathsf X = X^\top`.

        Elsewhere the shape of one is that of the other.
        """
        name = bare(left)
        names = [e for e in walk(right) if isinstance(e, Name)]
        if not (isinstance(name, Name) and name.style and is_matrix_like(name)):
            return
        if not any(e.base == name.base and e.style != name.style for e in names):
            return
        key, symbols = keys(name)[0], self.context.symbols_at(item.line)
        if key in symbols.known:
            return
        symbols.known[key] = Declared("matrix")
        read = self._read([left, right], symbols)
        shape = None if read is None else read.shapes.get(key)
        if shape is not None and {a for size in shape for a in size} <= {*symbols.sizes(), 1}:
            self.context.declared.append((key, Declared("matrix", *shape, item.line)))

    def _is_new_family(self, left: Node, line: int) -> bool:
        r"""Return whether a capital with two indices is new: `V_{ij} := W x_j` may be a vector."""
        name = bare(left)
        if not isinstance(name, Name) or len(name.sub) != 2 or not is_matrix_like(name):
            return False
        return self.context.symbols_at(line).lookup(name)[1] is None

    def _misfit_within(self, item: Item, right: Node) -> Found | None:
        """Return the shape error within a term that would define a symbol, or None."""
        words = self.document.sentence_before(item.formula)
        if IN_CODE.search(words) or not self._is_of_this_section(right, item.line):
            return None
        found = self.judge.misfit_within(right, item.line, item.formula.tex)
        used: dict[str, Definition] = {}
        put = self.context.unfolded(right, used)
        near = all(self.context.in_scope(each.line, item.line) for each in used.values())
        if found is not None or not used or not near:
            return found
        found = self.judge.misfit_within(put, item.line, "")
        return found and replace(found, why=f"{found.why}; with {named(used)}", span=None)

    def _is_of_this_section(self, right: Node, line: int) -> bool:
        """Return whether the letters of a term are declared in this section, or about notation.

        What is defined anew often is so by letters that mean something else than before.
        """
        if any(s.text == "*" for e in walk(right) if isinstance(e, Name) for s in e.sup):
            return False  # an adjoint
        used = self.context.lines_of([right], line)
        letters = [at for key, at in used if len(key) == 1]
        of = self.document
        for key, _ in used:
            known = self.context.declarations_of(key)
            if len({(one.rows, one.cols) for one in known if of.is_in_scope(one.line, line)}) > 1:
                return False  # it has two shapes in this section
        return all(of.is_in_scope(at, line) or of.is_about_notation(at) for at in letters)

    def _is_labelled(self, e: Name) -> bool:
        """Return whether an index names a symbol: it is defined by terms that do not have it."""
        known = self.context.definitions.get(latex(e))
        if not known or not isinstance(known[0].lhs, Name):
            return False
        theirs = {s.text for other in walk(known[0].rhs) for s in getattr(other, "sub", ())}
        return not theirs & {s.text for s in e.sub}

    def _is_of_another_section(self, left: Node, item: Item) -> bool:
        """Return whether a symbol is declared in another section, which is not about notation."""
        name = bare(left)
        if not isinstance(name, Name):
            return False
        known = self.context.symbols_at(item.line).lookup(name)[1]
        if known is None or not known.line or self.context.in_scope(known.line, item.line):
            return False
        return not self.context.is_general(known.line)

    def _is_declared_anew(
        self, left: Node, right: Node, item: Item, is_wrong: bool = False
    ) -> bool:
        """Declare a symbol of another section with the shape that its definition here gives it.

        One of a section about notation has its shape everywhere: another one is wrong.
        """
        name = bare(left)
        symbols = self.context.symbols_at(item.line)
        key, known = symbols.lookup(name) if isinstance(name, Name) else ("", None)
        if known is None or not known.rows or self.context.in_scope(known.line, item.line):
            return False
        inferred = isinstance(name, Name) and latex(name) in self.learned
        if is_wrong and self.context.is_general(known.line) and not inferred:
            return False
        others = symbols.copy()
        del others.known[key]
        read = self._read([left, right], others)
        shape = None if read is None else read.shapes.get(key)
        atoms = [] if shape is None else [str(atom) for size in shape for atom in size]
        if shape is None or not all(e.isdigit() or e in symbols.sizes() for e in atoms):
            return False
        self.context.declared.append((key, Declared("matrix", *shape, item.line)))
        return True

    def _doubt(self, left: Node, right: Node, line: int) -> str:
        """Return how a definition contradicts the rest of the text, or ""."""
        lost = lost_index(left, right)
        if lost:
            return f"the index {lost} is on the left side only: what is it?"
        symbols = self.context.symbols_at(line)
        return other_layer(right, self.layers, line) or dotted_vectors(right, symbols)

    def _learn(self, left: Node, right: Node, item: Item) -> None:
        """Record the shape or the kind of a symbol, if its defining formula determines it."""
        name = bare(left)
        self._learn_addends(left, right, item)
        symbols = self.context.symbols_at(item.line)
        if isinstance(name, Name) and not name.sub and not name.sup:
            self._learn_number(name, left, right, item)
        if isinstance(name, Name) and not name.sub and self.context.has_exponent(name):
            self._learn_number(replace(name, sup=()), left, right, item)
        if not isinstance(name, Name) or not (is_matrix_like(name) or _is_small(name)):
            return
        if is_matrix_like(name) and any(slot.kind == "number" for slot in name.sub):
            return  # `T_0` says nothing of the shape of `T_1`
        key, known = symbols.lookup(name)
        if known is not None and (known.rows or known.cols or known.line):
            return
        if known is None and not is_matrix_like(name) and not _is_vector(name):
            symbols.known[key] = Declared("vector")
        read = self._read([left, right], symbols)
        if read is None and name.base in VECTORS and _is_of_matrices(right, symbols):
            symbols.known[key] = Declared("matrix", trusted=False)
            read = self._read([left, right], symbols)
            if read is None or ONE in (read.shapes.get(key) or (ONE,)):
                return
        if read is None:
            return
        own = text_of(name) if all(slot.kind == "index" for slot in name.sup) else key
        shape = read.shapes.get(key) or read.shapes.get(own)
        kinds = {kind for other, kind in read.undeclared.items() if other not in (key, own)}
        if shape is None or kinds - {"matrix"}:
            return
        if is_capital(name):
            self.context.kinds.setdefault(key_of(name), Declared("matrix"))
        others = read.undeclared.keys() - {key, own}
        solved = all(str(atom) in symbols.sizes() for size in shape for atom in size)
        if solved and not others and all(len(size) <= 1 for size in shape):
            declared = Declared("matrix", *shape, item.line, full=full_key(name))
            if ONE in shape and shape != (ONE, ONE) and _has_open_side(right, symbols):
                length = shape[0] if shape[1] == ONE else shape[1]
                declared = Declared("vector", length, line=item.line, full=full_key(name))
            self.context.declared.append((key, declared))
            self.context.sentences.add((key, item.line))
            self.learned.add(latex(name))
            self.inferred.append((key, declared))

    def _learn_addends(self, left: Node, right: Node, item: Item) -> None:
        """Record the shapes that the sums of a definition give to what is not declared."""
        symbols = self.context.symbols_at(item.line)
        new = [*shapes_of_addends(left, right, symbols, item.line)]
        if not new:
            return
        self.context.declared += new
        self.inferred += new
        self.context.sentences |= {(key, item.line) for key, _ in new}
        self.context.base.split |= split_by_index(self.context.declared)
        self.context.index, self.context.last = Declarations(), None

    def _read(self, terms: list[Node], symbols: Symbols) -> Elaborated | None:
        try:
            return elaborate(terms, symbols)
        except OtimesError:
            return None

    def _note_matrix(self, name: Node, value: Node, item: Item) -> None:
        """Record the numeric entries of a matrix, unless the document also gives it others."""
        text = latex(name)
        if not isinstance(name, Name) or not any(isinstance(e, Grid) for e in walk(value)):
            return
        if is_value(value):
            numbers = Definition(name, value, item.line)
            self.context.numbers.setdefault(text, []).append(numbers)
        if text in self.context.definitions or text in self.given_numbers:
            self.context.definitions.pop(text, None)
        else:
            declared = self.context.symbols_at(item.line).lookup(name)[1]
            if declared is None or not (declared.rows or declared.line):
                self.context.define(name, value, item.line)
        self.given_numbers.add(text)

    def _learn_number(self, name: Name, left: Node, right: Node, item: Item) -> None:
        """Record that a symbol is a scalar if its defining formula, or that of its square, is."""
        symbols = self.context.symbols_at(item.line)
        greek = name.base[0] == "\\"
        if symbols.lookup(name)[1] is not None or is_matrix_like(name):
            return
        if len(name.base) != 1 and not greek:
            return
        squared = isinstance(bare(left), Name) and bare(left) != name
        for side in ("", "column", "row") if squared else ("",):
            symbols.side = side or symbols.side
            try:
                read = elaborate([right], symbols, item.formula.tex)
            except OtimesError:
                continue
            certain = not read.undeclared or isinstance(bare(right), Root | Norm)
            value = read.terms[0]
            if (not getattr(value, "is_Matrix", True) or value.shape == (1, 1)) and certain:
                known = Declared("scalar", line=item.line, full=full_key(name))
                self.context.declared.append((symbols.lookup(name)[0], known))
                return

    def _introduced(self, left: Node, right: Node) -> list[str]:
        r"""Return the symbols that an equation introduces, as `W = U \Sigma V^\top` does.

        The left side is one symbol, and no symbol of the right side was in an equation before.
        """
        name = bare(left)
        if isinstance(name, Power) and name.exponent == "T":
            name = bare(name.base)
        names = {e for e in walk(right) if isinstance(e, Name) and not is_constant(e)}
        new = sorted(latex(e) for e in names)
        fresh = all(is_matrix_like(e) and self._is_new(e) for e in names)
        return new if isinstance(name, Name) and len(new) > 1 and fresh else []

    def _describes(self, left: Node, right: Node, line: int) -> bool:
        """Return whether an equation with a constant is about symbols introduced just before it."""
        names = {latex(e) for e in walk(left) if isinstance(e, Name) and not is_constant(e)}
        near = {text for text, at in self.introduced.items() if 0 <= line - at <= SOON}
        return is_constant(right) and bool(names) and names <= near

    def _is_other_row(self, said: int, line: int) -> bool:
        """Return whether two lines are of different rows of tables, which list alternatives."""
        return said != line and self.document.is_in_table(said) and self.document.is_in_table(line)

    def _defines(self, left: Node, right: Node, announced: bool, line: int = 0) -> bool:
        """Return whether an equation defines its left side: a symbol or a function, not met yet."""
        term = bare(left)
        if is_pseudo_inverse(term):
            return latex(term) not in self.context.definitions
        if not isinstance(term, Name | Apply | Derivative) or is_constant(term):
            return False
        if self.context.is_circular(term, right):
            return False
        if isinstance(term, Apply) and term.function.base in MEANT:
            return False
        if isinstance(term, Apply) and is_statistic(term.function):
            return False
        if isinstance(term, Name) and any(s.kind == "number" and s.text != "1" for s in term.sup):
            symbols = self.context.symbols_at(1 << 30)
            if not (symbols.is_labelled(term) or key_of(term) in self.context.labelled):
                whole = replace(term, sup=())
                return self._is_new(whole) and symbols.lookup(whole)[1] is None
        if isinstance(term, Name) and len(term.base) > 2 and not term.sub and not term.sup:
            return latex(term) not in self.context.definitions
        known = self.context.definitions.get(latex(term))
        if known is not None and (announced or self._is_other_row(known[0].line, line)):
            self.context.definitions.pop(latex(term))
            known = None
        return known is None

    def _is_other(self, left: Node, right: Node, item: Item) -> bool:
        """Return whether a symbol is redefined with a shape other than the one inferred before."""
        learned = isinstance(bare(left), Name) and latex(bare(left)) in self.learned
        return learned and self.judge.shapes([right], item.line, item.formula.tex) is None

    def _is_new(self, node: Node) -> bool:
        text = latex(bare(node))
        return (
            text not in self.context.definitions and text not in self.seen and not is_constant(node)
        )

    def _redefines(self, left: Node, right: Node, item: Item) -> bool:
        """Return whether an equation redefines a symbol: in terms of others, or as words say."""
        known = self.context.definitions.get(latex(bare(left)))
        if not known:
            return False
        units, symbols = _units(right), self.context.symbols_at(item.line)
        is_unit = bool(units) and not any(symbols.lookup(e)[1] for e in units)
        if is_unit and units == _units(known[0].rhs):
            return True  # the value in another case: 110M, then 340M
        matrices = [
            {e for e in walk(s) if isinstance(e, Name) and _is_large(e)}
            for s in (known[0].rhs, right)
        ]
        if matrices[0] == matrices[1] and is_revised(self.document.before(item.formula, 600)):
            return True
        plain, indexed = ({key_of(e) for e in _indexed(known[0].rhs, k)} for k in (False, True))
        if any(key_of(e) in plain - indexed for e in _indexed(right, True)):
            return True  # `U_r` for `U`
        if _is_of_other_members(known[0].rhs, right):
            return True
        sizes = self.context.symbols_at(known[0].line).sizes()
        every = self.context.instances([known[0].rhs, right])
        apart = {t: each for t, each in every.items() if not self.context.is_member(each.lhs)}
        for others in (every, apart):  # rows of a matrix may be put in on one side only
            before, now = (
                self.context.unfolded(s, {}, None, others) for s in (known[0].rhs, right)
            )
            if len((_keys(before) ^ _keys(now)) - sizes) < 2:
                return False
        return self._differ_in_several(known[0].rhs, right, sizes)

    def _differ_in_several(self, before: Node, now: Node, sizes: set[str]) -> bool:
        """Return whether two terms differ in more than a symbol, or a product with a name.

        A definition is put in where there are fewer differences with it.
        """
        sides = [before, now]
        differ = _keys(before) ^ _keys(now)
        while True:
            others = self.context.instances(sides)
            own = {latex(e) for s in sides for e in walk(s) if isinstance(e, Name)}
            own &= {*self.context.definitions, *others}
            trials = []
            for text in sorted(own):
                put = {text: others[text]} if text in others else {}
                trial = [self.context.unfolded(s, {}, [text], put) for s in sides]
                trials.append((_keys(trial[0]) ^ _keys(trial[1]), trial))
            fewer = [each for each in trials if len(each[0] - sizes) < len(differ - sizes)]
            if not fewer:
                break
            differ, sides = min(fewer, key=lambda each: len(each[0] - sizes))
        differ = differ - sizes
        known = (each for every in self.context.definitions.values() for each in every)
        named = any(differ == _keys(each.rhs) for each in known)
        return len(differ) > 1 and not named


def _keys(node: Node) -> set[str]:
    return {key_of(e) for e in walk(node) if isinstance(e, Name)}


def _is_of_other_members(before: Node, now: Node) -> bool:
    r"""Return whether two terms have several members of a family each, and none in common.

    So a text may define `h_1` by `\theta_{10}` and `\theta_{11}`, and again for another network.
    """
    families: list[dict[str, set[str]]] = [{}, {}]
    for members, side in zip(families, (before, now), strict=True):
        for e in (e for e in walk(side) if isinstance(e, Name) and e.sub):
            members.setdefault(key_of(e), set()).add(latex(e))
    return any(
        len(mine) > 1 and len(families[1][key]) > 1 and mine.isdisjoint(families[1][key])
        for key, mine in families[0].items()
        if key in families[1]
    )


def _units(node: Node) -> list[Name]:
    """Return the letters after a number, without where they are written; none in other terms."""
    inner = bare(node)
    if not isinstance(inner, Product) or not isinstance(bare(inner.factors[0]), Number):
        return []
    rest = [each for each in map(bare, inner.factors[1:]) if isinstance(each, Name)]
    whole = len(rest) + 1 == len(inner.factors) and "/" not in inner.marks
    return [replace(each, span=(0, 0)) for each in rest] if whole else []


def _is_made_of_members(left: Node, right: Node) -> bool:
    """Return whether a symbol is defined by members of a family with its name: `W_O` by `W_O^h`."""
    name = bare(left)
    names = [e for e in walk(right) if isinstance(e, Name)]
    return isinstance(name, Name) and any(
        key_of(e) == key_of(name) and latex(e) != latex(name) for e in names
    )


def _is_large(name: Name) -> bool:
    return is_matrix_like(name) or bool(name.style) or _is_vector(replace(name, sub=(), sup=()))


def _indexed(node: Node, with_index: bool) -> Iterator[Name]:
    """Yield the capitals of a term with indices below, or those without."""
    for e in walk(node):
        if not isinstance(e, Name) or not is_matrix_like(e) or is_constant(e):
            continue
        if any(slot.kind in ("index", "number") for slot in e.sub) == with_index:
            yield e


def _is_small(name: Name) -> bool:
    """Return whether a symbol is a small letter without indices, but perhaps with a number."""
    numbered = all(slot.kind == "number" for slot in name.sub)
    return len(name.base) == 1 and name.base.islower() and numbered and not name.sup


def _is_of_matrices(node: Node, symbols: Symbols) -> bool:
    """Return whether all symbols of a term are matrices of known shape."""
    known = [symbols.lookup(e)[1] for e in symbols_in(node)]
    return bool(known) and all(k is not None and k.kind == "matrix" and k.rows for k in known)


def _has_open_side(term: Node, symbols: Symbols) -> bool:
    """Return whether a term has vectors that neither words nor a matrix make rows or columns."""
    names = [e for e in walk(term) if isinstance(e, Name)]
    known = [each for e in names if (each := symbols.lookup(e)[1]) is not None]
    vectors = [each for each in known if each.kind == "vector"]
    beside = any(each.kind == "matrix" for each in known)
    return bool(vectors) and not beside and not any(map(symbols.side_of, vectors))


def _is_vector(name: Name) -> bool:
    """Return whether a symbol without indices is a vector by the conventions of the field."""
    known = default(name)
    return not name.sub and not name.sup and known is not None and known.kind == "vector"


def _names_by_index(node: Node, symbols: Symbols) -> Iterator[Name]:
    """Yield the symbols that are declared with their indices, which are then names."""
    for e in walk(node):
        known = symbols.lookup(e)[1] if isinstance(e, Name) else None
        if isinstance(e, Name) and known is not None and known.full == full_key(e):
            yield e


def loose_indices(left: Node, right: Node) -> list[str]:
    """Return the lower-case subscripts of a definition's right side that its left side lacks.

    >>> from otimes.algebra.notation.parser import parse_formula
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
