"""The declarations, definitions and hypotheses that apply at a line of a document."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from otimes.algebra.notation.affine import ends_of
from otimes.algebra.notation.partial import letters_in
from otimes.algebra.notation.slices import as_slots, places_of
from otimes.algebra.notation.symbols import (
    Declared,
    Symbols,
    block_key,
    full_key,
    key_of,
    keys,
)
from otimes.algebra.notation.tree import (
    Apply,
    Derivative,
    Dots,
    Entry,
    Grid,
    Group,
    Indexed,
    Name,
    Node,
    Number,
    Power,
    Slot,
    bare,
    latex,
    mapped,
    walk,
    with_arguments,
)
from otimes.algebra.notation.vocabulary import SOFTMAX
from otimes.proofs.documents.containers.source import Clause, Formula
from otimes.proofs.documents.symbols.applications import applications_in, has_letters, of_arguments
from otimes.proofs.documents.symbols.declarations import Declarations
from otimes.proofs.documents.symbols.excuses import is_excused
from otimes.proofs.documents.symbols.factorisations import Factorisation
from otimes.proofs.documents.symbols.hypotheses import (
    Hypothesis,
    by_word,
    circuits,
    diagonals,
    names_in,
    of_roots,
    of_singular_vectors,
    patterns,
    with_superscripts,
)
from otimes.proofs.documents.symbols.identity_maps import Map, SameSizes
from otimes.proofs.documents.symbols.instances import apart, instance, is_generic, only_labels
from otimes.proofs.documents.symbols.members import Member, Part
from otimes.proofs.documents.symbols.pseudo_inverses import is_pseudo_inverse, of_pseudo_inverse
from otimes.proofs.documents.symbols.recurrences import (
    is_above_another,
    letter_of,
    recurs,
    shifted,
    without_zeros,
)
from otimes.proofs.documents.symbols.shifts import Shift, steps_of
from otimes.proofs.documents.symbols.terms import (
    MAY_BE_A_FUNCTION,
    before_brackets,
    is_value,
    lists_a_diagonal,
)

NEAR = 12  # lines around a label above a symbol, where a number above it is one, too
DEEPEST = 4  # definitions within definitions that are put in
MOST_LINKED = 12  # declared hypotheses among which those that concern each other are taken
MOST_NAMES = 200  # of a claim and of what recurrences say of them
MOST_OTHERS = 6  # other definitions of the symbols of a claim that are tried
LONGEST = 400  # nodes of a side after that


@dataclass(frozen=True, slots=True)
class Definition:
    """`lhs` was defined as `rhs` on a line."""

    lhs: Node
    rhs: Node
    line: int


@dataclass(slots=True)
class Context:
    """The declarations and definitions of a document up to the present equation."""

    base: Symbols
    declared: list[tuple[str, Declared]] = field(default_factory=list)
    definitions: dict[str, list[Definition]] = field(default_factory=dict)
    generic: dict[str, list[Definition]] = field(default_factory=dict)  # with indices, by key
    functions: dict[str, list[Definition]] = field(default_factory=dict)  # of letters
    hypotheses: list[Hypothesis] = field(default_factory=list)
    words: list[tuple[str, tuple[str, ...], int]] = field(default_factory=list)
    kinds: dict[str, Declared] = field(default_factory=dict)  # by key, of any shape
    labelled: dict[str, list[int]] = field(default_factory=dict)  # the lines of labels above
    local: set[tuple[str, int]] = field(default_factory=set)  # declarations for one paragraph
    wrong: set[tuple[str, int]] = field(default_factory=set)  # those that equations contradict
    sentences: set[tuple[str, int]] = field(default_factory=set)  # declarations in words
    sizes: set[str] = field(default_factory=set)  # those that equations give a value
    indexed: set[str] = field(default_factory=set)  # capitals with one index below
    composed: list[tuple[str, int]] = field(default_factory=list)  # functions with matrices, lines
    signed: set[tuple[str, int]] = field(default_factory=set)  # vectors with signs, with lines
    same_sizes: list[SameSizes] = field(default_factory=list)
    maps: dict[str, Map] = field(default_factory=dict)  # by the function
    index: Declarations = field(default_factory=Declarations)  # of `declared`
    last: tuple[tuple[int, ...], Symbols] | None = None  # the last answer of `symbols_at`
    in_scope: Callable[[int, int], bool] = field(default=lambda said, row: True)
    is_general: Callable[[int], bool] = field(default=lambda said: True)
    is_about_notation: Callable[[int], bool] = field(default=lambda said: True)
    together: Callable[[int, int], bool] = field(default=lambda said, row: said == row)
    words_near: Callable[[int], str] = field(default=lambda row: "")  # of the paragraph
    clauses_near: Callable[[int], list[Clause]] = field(default=lambda row: [])
    formulas_by_sentence: Callable[[], list[tuple[Formula, ...]]] = field(default=list)
    words_of_section: Callable[[int], str] = field(default=lambda row: "")
    members: dict[str, list[Member]] = field(default_factory=dict)  # by the letter
    shifts: list[Shift] = field(default_factory=list)
    ahead: dict[str, list[Definition]] = field(default_factory=dict)  # by the symbol
    numbers: dict[str, list[Definition]] = field(default_factory=dict)  # matrices in numbers
    begun: dict[str, list[Name]] = field(default_factory=dict)  # with numbers, by the letter
    parts: Mapping[int, Part] = field(default_factory=dict)  # that words say formulas are
    ones: list[tuple[int, Name]] = field(default_factory=list)  # that words say, by offset
    factorisations: list[Factorisation] = field(default_factory=list)
    gradients: list[tuple[int, Name, Derivative]] = field(default_factory=list)  # in words
    entries: list[tuple[int, Name, Entry]] = field(default_factory=list)  # in words
    orthonormal: set[tuple[str, int]] = field(default_factory=set)  # letters of vectors, lines
    spectrum: set[tuple[str, int]] = field(default_factory=set)  # letters of singular values
    factored: bool = False  # whether the text is about singular values or eigendecompositions
    pseudo: bool = False  # whether the text is about pseudo-inverses
    joins_entries: bool = False  # whether ∘ is the product entry by entry
    sentence: str = ""  # the words of the sentence that is judged, without its formulas

    def symbols_at(self, line: int, without: Collection[tuple[str, int]] = ()) -> Symbols:
        """Return the symbols at a line, each by its last declaration before it, or else the next.

        `without` are declarations, by key and line, that are left out.
        """
        state = (line, len(self.declared), len(self.wrong), len(self.kinds))
        if not without and self.last is not None and self.last[0] == state:
            return self.last[1].copy()
        self.index.update(self.declared, self.local)
        symbols = self.base.copy()
        symbols.elementwise -= {f for f, said in self.composed if self.in_scope(said, line)}
        symbols.known.update(self.index.at(line, without, self.wrong, self.together))
        symbols.known.update(self._blocks(symbols))
        symbols.stacked |= set(self._stacked(symbols))
        symbols.known.update(self._of_members(symbols, line))
        for key, known in symbols.known.items():
            if known.assumed and known.line and not self._has_sign(key, known.line, line):
                symbols.known[key] = replace(known, assumed=())
        folded = {key.casefold() for key in symbols.known}
        for key, kind in self.kinds.items():
            if key.casefold() not in folded:
                symbols.known[key] = kind
        symbols.labelled |= {key for key, rows in self.labelled.items() if _is_near(rows, line)}
        for key, line_of in without:
            if symbols.known.get(key) and symbols.known[key].line == line_of:
                del symbols.known[key]
        if not without:
            self.last = state, symbols.copy()
        return symbols

    @contextmanager
    def acting_on_entries(self, functions: Collection[str]) -> Iterator[None]:
        """Read functions as those that act on each entry of a matrix."""
        before, self.base = self.base, self.base.copy()
        self.base.elementwise |= {*functions}
        self.last = None
        try:
            yield
        finally:
            self.base, self.last = before, None

    @contextmanager
    def redeclared(
        self,
        edited: Mapping[tuple[str, int], Declared],
        without: Collection[tuple[str, Declared]],
    ) -> Iterator[None]:
        """Read some declarations as others, by their keys and lines, and leave some out."""
        before = self.declared
        self.declared = [
            (each[0], edited.get((each[0], each[1].line), each[1]))
            for each in before
            if each not in without
        ]
        self.index, self.last = Declarations(), None
        try:
            yield
        finally:
            self.declared, self.index, self.last = before, Declarations(), None

    def _blocks(self, symbols: Symbols) -> dict[str, Declared]:
        r"""Return what `x_i` is where a text declares `x \in ℝ^{nd}` and `x^l \in ℝ^d`: a block."""
        found: dict[str, Declared] = {}
        for key, known in symbols.known.items():
            if known.kind != "vector" or len(known.rows) not in (1, 2):
                continue
            every = [e for e in self.declarations_of(key) if e.kind == "vector"]
            if any("_" in e.full for e in every):
                continue
            stacks = [e.rows for e in every if len(e.rows) == 2]
            parts = [e for e in every if len(e.rows) == 1 and any(e.rows[0] in s for s in stacks)]
            if parts and len(parts) + len(stacks) == len(every):
                full = block_key(key)
                found[full] = replace(parts[-1], full=full)
        return found

    def _stacked(self, symbols: Symbols) -> Iterator[str]:
        r"""Yield small letters for the states of all positions: `x \in ℝ^{nd}`, `ℝ^{n × d}`."""
        for key, known in symbols.known.items():
            if any("_" in each.full for each in self.declarations_of(key)):
                continue
            long = known.kind == "vector" and len(known.rows) == 2
            sides = {known.rows, known.cols}
            whole = known.kind == "matrix" and not sides & {(), (1,)}
            if long or (whole and len(key) == 1 and key.islower()):
                yield key

    def _has_sign(self, key: str, said: int, line: int) -> bool:
        """Return whether the sign of a number counts on a line.

        It does in its paragraph. One that is not of a case does in its section from there on, and
        everywhere if the section is about notation.
        """
        if self.together(said, line) or (key, said) in self.local:
            return self.together(said, line)
        return said <= line and (self.in_scope(said, line) or self.is_general(said))

    def declarations_of(self, key: str) -> list[Declared]:
        """Return all declarations of a symbol."""
        self.index.update(self.declared, self.local)
        return self.index.of(key)

    def lines_of(self, nodes: Iterable[Node], line: int) -> list[tuple[str, int]]:
        """Return the declarations that are used for the symbols in terms, by key and line."""
        symbols = self.symbols_at(line)
        found = []
        for node in nodes:
            for e in walk(node):
                if isinstance(e, Name):
                    key, known = symbols.lookup(e)
                    if known is not None and known.line and known.kind != "size":
                        found.append((key, known.line))
        return list(dict.fromkeys(found))

    def is_elsewhere(self, key: str, said: int, line: int) -> bool:
        """Return whether a declaration may be about a different symbol of the same name.

        It may if it applies to its paragraph only, or if it is in another section and is a
        mere sentence, or one of several declarations of the letter.
        """
        if (key, said) in self.local:
            return not self.together(said, line)
        every = self.declarations_of(key)
        if any(known.line == said and known.kind == "scalar" for known in every):
            return key not in self.definitions and not self.in_scope(said, line)
        if len(key) > 2 or self.in_scope(said, line):
            return False
        shapes = {(known.rows, known.cols) for known in every}
        return len(shapes) > 1 or ((key, said) in self.sentences and not self.is_general(said))

    def define(self, lhs: Node, rhs: Node, line: int) -> None:
        """Add a definition, unless it is circular or a property: `A^* = A^{-1}`, `y(0) = 0`."""
        if not (self.is_circular(lhs, rhs) or _is_property(lhs, rhs)):
            definition = Definition(lhs, rhs, line)
            self.definitions.setdefault(latex(lhs), []).append(definition)
            self.begin(lhs)
            if isinstance(lhs, Name) and (is_generic(lhs, ()) or letter_of(lhs)):
                self.generic.setdefault(key_of(lhs), []).append(definition)
            if isinstance(lhs, Apply) and has_letters(lhs):
                self.functions.setdefault(latex(lhs.function), []).append(definition)

    def forget(self, lhs: Apply) -> None:
        """Leave out the definitions of a function."""
        self.definitions.pop(latex(lhs), None)
        self.functions.pop(latex(lhs.function), None)

    def begin(self, lhs: Node) -> None:
        """Note a symbol with a number as index that has a value, as `S_0` of a recurrence."""
        if isinstance(lhs, Name) and any(s.kind == "number" for s in (*lhs.sub, *lhs.sup)):
            self.begun.setdefault(lhs.base, []).append(lhs)

    def zeros(self, base: str) -> list[Name]:
        """Return those of a letter that are zero, as both are where a text says `m_0 = v_0 = 0`."""
        begun = self.begun.get(base, ())
        return [e for e in begun if latex(bare(self.unfolded(e, {}))) in ("0", "(0)")]

    def instances(self, nodes: Sequence[Node], only_weights: bool = False) -> dict[str, Definition]:
        """Return instances of definitions with indices for the symbols in terms, by their LaTeX.

        Weights are defined for all layers and heads, and sums up to an index for all its values; of
        other symbols a text may say more later.
        """
        found = self._applications(nodes)
        names = [e for node in nodes for e in walk(node) if isinstance(e, Name)]
        seen = set[str]()
        for e in names:
            text = latex(e)
            if text in seen:
                continue
            seen.add(text)
            power = None if only_weights or text in self.definitions else self._power(e)
            power = power or self._entry(e) or self._slice(e)
            said = [
                d
                for d in self.generic.get(key_of(e), ())
                if d in self.definitions.get(latex(d.lhs), ())
                and (not only_weights or e.base == "W" or ends_of([d.rhs]) & letters_in([d.lhs]))
            ]
            part = power
            if part is None and text not in self.definitions and text not in found:
                made = (self._instance(each, e, nodes) for each in said)
                part = next(filter(None, made), None) or self._member(e)
            if part is not None:
                found[text] = part
            known = found.get(text) or next(iter(self.definitions.get(text, ())), None)
            if known is not None and text not in found and not only_weights:
                rhs = apart(known.rhs, nodes)
                if rhs is not known.rhs:
                    found[text] = known = Definition(known.lhs, rhs, known.line)
            if known is None or only_weights or len(names) > MOST_NAMES:
                continue
            if not self.lists_members(known):
                names += [each for each in walk(known.rhs) if isinstance(each, Name)]
        return found

    def _applications(self, nodes: Sequence[Node]) -> dict[str, Definition]:
        """Return what definitions of functions say of functions of other arguments."""
        found: dict[str, Definition] = {}
        for e in applications_in(nodes) if self.functions else ():
            text = latex(e)
            if text in self.definitions or text in found:
                continue
            for said in self.functions.get(latex(e.function), ()):
                now = self.definitions.get(latex(said.lhs), ())
                if said in now and isinstance(said.lhs, Apply):
                    whole = self.unfolded(said.rhs, {})
                    rhs = of_arguments(said.lhs, whole, e, self.symbols_at(said.line))
                    if rhs is not None:
                        found[text] = Definition(e, rhs, said.line)
                        break
        return found

    def _instance(self, said: Definition, name: Name, nodes: Sequence[Node]) -> Definition | None:
        """Return a definition for a symbol with other indices, or None where it says nothing."""
        rhs = self._at_indices(said, name, nodes, self.symbols_at(said.line).sizes())
        return None if rhs is None else Definition(name, rhs, said.line)

    def _at_indices(
        self, said: Definition, name: Name, nodes: Sequence[Node], sizes: Collection[str]
    ) -> Node | None:
        """Return what a definition says of a symbol with other indices, or None.

        What is defined by itself at other indices is put in down to the lowest that occurs.
        """
        if only_labels(said.lhs, said.rhs, name):
            return None
        begins = recurs(said.lhs, said.rhs) and not is_above_another(name, nodes)
        if begins and not is_above_another(name, self.begun.get(name.base, ())):
            return None
        found = instance(said.lhs, said.rhs, name, sizes)
        found = shifted(said.lhs, said.rhs, name, sizes) if found is None else found
        return None if found is None else without_zeros(found, self.zeros(name.base))

    def _slice(self, name: Name) -> Definition | None:
        """Return rows or columns of what is defined as a matrix."""
        base = replace(name, select="")
        known = self.definitions.get(latex(base)) if len(places_of(name)) == 2 else None
        if not known or self.lists_members(known[0]):
            return None
        whole = Group(known[0].rhs, stands_for=base)
        return Definition(name, Entry(whole, as_slots(name.select)), known[0].line)

    def is_excused(self, kind: str, line: int) -> bool:
        """Return whether words may assume that under which an equation holds without an edit."""
        return is_excused(kind, self.sentence, self.words_near(line), self.words_of_section(line))

    def other_definitions(self, nodes: Sequence[Node], line: int) -> list[dict[str, Definition]]:
        """Return other definitions of symbols in terms, each to be used by itself.

        They are those that follow soon, as after “where”, and those before the last one. Numbers
        are an example of what is defined.
        """
        found: list[dict[str, Definition]] = []
        for text in sorted({latex(e) for n in nodes for e in walk(n) if isinstance(e, Name)}):
            known = self.definitions.get(text, ())
            for each in self.ahead.get(text, ()):
                here = each.rhs in [d.rhs for d in known[:1]]
                near = each.line <= line or self.together(each.line, line)
                said = here or _is_in(each, nodes) or _is_property(each.lhs, each.rhs)
                said |= is_value(each.rhs) and any(not is_value(d.rhs) for d in known[:1])
                said |= is_value(each.rhs) and not self.in_scope(each.line, line)
                if near and not said:
                    found.append({text: each})
        return found[:MOST_OTHERS]

    def maybe_function(self, terms: Sequence[Node], symbols: Symbols) -> str:
        """Return that a letter before brackets in all terms may be a function, "" if it is none."""
        for head in before_brackets(terms):
            known = symbols.lookup(head)[1]
            declared = known is not None and (known.line or known.rows or known.trusted)
            if not declared and latex(head) not in self.definitions:
                return MAY_BE_A_FUNCTION.format(latex(head))
        return ""

    def maybe_map(self, terms: Sequence[Node], line: int) -> str:
        """Return that an undeclared letter before brackets may be no linear map, or ""."""
        symbols = self.symbols_at(line)
        for head in before_brackets(terms, once=True):
            known = symbols.lookup(head)[1]
            declared = known is not None and (known.line or known.rows)
            if not declared and latex(head) not in self.definitions:
                return MAY_BE_A_FUNCTION.format(latex(head))
        return ""

    def is_member(self, node: Node) -> bool:
        """Return whether a symbol is a row or a column of a matrix, as the text says."""
        return isinstance(node, Name) and self._member(node) is not None

    def members_of(self, nodes: Sequence[Node]) -> dict[str, Definition]:
        """Return the rows and columns of matrices that symbols in terms are, by their LaTeX."""
        names = [e for node in nodes for e in walk(node) if isinstance(e, Name)]
        return {latex(e): part for e in names if (part := self._member(e)) is not None}

    def with_members(self, symbols: Symbols, nodes: Sequence[Node], sided: bool = False) -> Symbols:
        """Return symbols in which rows and columns of declared matrices are vectors as long.

        Only for what has an index wherever it occurs in the terms. `sided`: rows are rows.
        """
        names = [e for node in nodes for e in walk(node) if isinstance(e, Name)]
        plain = {key_of(e) for e in names if not e.sub} | symbols.known.keys()
        lengths: dict[str, Declared] = {}
        for e in names:
            key = key_of(e)
            for member in self.members.get(e.base, ()) if key not in plain else ():
                if member.at(e) is not None and (known := _as_vector(member, symbols, sided)):
                    lengths[key] = known
        if lengths:
            symbols = symbols.copy()
            symbols.known.update(lengths)
        return symbols

    def _of_members(self, symbols: Symbols, line: int) -> dict[str, Declared]:
        """Return the rows and columns of matrices that another section declares otherwise."""
        found: dict[str, Declared] = {}
        for member in (each for every in self.members.values() for each in every):
            said = symbols.known.get(key_of(member.name))
            if said is None or not said.line or said.kind not in ("vector", "matrix"):
                continue
            if self.in_scope(member.line, line) and not self.in_scope(said.line, member.line):
                known = _as_vector(member, symbols, sided=False)
                found |= {key_of(member.name): known} if known is not None else {}
        return found

    def _member(self, name: Name) -> Definition | None:
        """Return the row or the column of a matrix that a symbol with an index is."""
        if latex(name) in self.definitions:
            return None
        for member in self.members.get(name.base, ()):
            shifted = self._shifted(member, name) if self.shifts else None
            part = member.at(name) if shifted is None else None
            if part is not None:
                return Definition(name, part, member.line)
            if shifted is not None:
                return shifted
        return None

    def _shifted(self, member: Member, name: Name) -> Definition | None:
        """Return the row or column before or after one, by a shift matrix of the text."""
        moved = steps_of(name.sub[0]) if len(name.sub) == 1 else None
        whole = member.at(replace(name, sub=(Slot("index", moved.letter),))) if moved else None
        for shift in self.shifts if moved and whole else ():
            part = bare(whole.base) if isinstance(whole, Power) else whole
            assert isinstance(part, Name)
            assert moved is not None
            matrix = shift.moved(replace(part, select=""), member.side, moved.number)
            if matrix is not None:
                row: Node = Entry(matrix, as_slots(part.select), span=name.span)
                row = Power(row, "T") if isinstance(whole, Power) else row
                return Definition(name, row, shift.line)
        return None

    def is_circular(self, lhs: Node, rhs: Node) -> bool:
        """Return whether a term, with all definitions substituted, contains a symbol."""
        text = latex(lhs)
        return any(latex(e) == text for e in walk(self.unfolded(rhs, {})) if type(e) is type(lhs))

    def has_exponent(self, name: Name) -> bool:
        """Return whether a number above a symbol is a power, and no layer or head."""
        number = len(name.sup) == 1 and name.sup[0].kind == "number" and name.sup[0].text != "1"
        return number and not any(key in self.labelled for key in keys(name))

    def powers_in(self, nodes: Sequence[Node]) -> dict[str, Definition]:
        """Return the powers of defined symbols in terms, by their LaTeX: `C^2`."""
        names = {latex(e): e for n in nodes for e in walk(n) if isinstance(e, Name)}
        found = {t: self._power(e) for t, e in names.items() if t not in self.definitions}
        return {t: each for t, each in found.items() if each is not None and self._is_solved(each)}

    def _is_solved(self, power: Definition) -> bool:
        """Return whether a symbol is not defined by powers of itself: `x = x^2 + c`."""
        within = walk(self.unfolded(power.rhs, {}))
        own = key_of(power.lhs) if isinstance(power.lhs, Name) else ""
        return not any(isinstance(e, Name) and key_of(e) == own for e in within)

    def _power(self, name: Name) -> Definition | None:
        """Return the definition of a symbol with a number above as a power of a defined one."""
        base = replace(name, sup=())
        known = self.definitions.get(latex(base)) if self.has_exponent(name) else None
        if not known:
            return None
        value = Group(known[0].rhs, stands_for=base)
        return Definition(name, Power(value, Number(name.sup[0].text)), known[0].line)

    def _entry(self, name: Name) -> Definition | None:
        """Return the definition of `C_{ab}` as an entry of the matrix `C`, if that is defined.

        That of `p_i` is an entry of `p`, if p is a function of a vector: a column by any name.
        """
        if len(name.sub) not in (1, 2):
            return None
        if any(slot.kind not in ("index", "number") for slot in name.sub):
            return None
        base = replace(name, sub=())
        known = self.definitions.get(latex(base))
        if not known or key_of(name) in self.generic:
            return None
        if not (name.base.isupper() if len(name.sub) == 2 else _is_softmax(known[0].rhs)):
            return None
        return Definition(
            name, Entry(Group(known[0].rhs, stands_for=base), name.sub), known[0].line
        )

    def unfolded(
        self,
        node: Node,
        used: dict[str, Definition],
        only: Collection[str] | None = None,
        instances: dict[str, Definition] | None = None,
    ) -> Node:
        """Return a term with definitions substituted for what they define.

        `only` are the symbols, as LaTeX, whose definitions may be used; `instances` are definitions
        of symbols with other indices, which are used, too.
        """
        for _ in range(DEEPEST):
            put: dict[str, Definition] = {}
            known = partial(self._put_in, only, instances or {})
            changed = _replaced(node, known, put, self.sizes)
            if changed == node or sum(1 for _ in walk(changed)) > LONGEST:
                return node
            used |= put
            node = changed
        return node

    def _put_in(
        self, only: Collection[str] | None, instances: dict[str, Definition], text: str
    ) -> Definition | None:
        """Return the definition to put in for a symbol, if there is one."""
        if text in instances:
            return instances[text]
        found = self.definitions.get(text) if only is None or text in only else None
        if not found or any(isinstance(e, Dots) for e in walk(found[0].rhs)):
            return None  # what is left out is not in the language
        return None if self.lists_members(found[0]) else found[0]

    def lists_members(self, known: Definition) -> bool:
        r"""Return whether a definition lists what is read as members: `X = [x_1, \dots, x_n]`.

        So does `D = \mathrm{diag}(s_1, \dots, s_n)`: it says that D is diagonal.
        """
        if lists_a_diagonal(known.rhs):
            return True
        if not isinstance(bare(known.rhs), Grid):
            return False
        listed = [e for e in walk(known.rhs) if isinstance(e, Name)]
        of = [[each.whole for each in self.members.get(e.base, ())] for e in listed]
        return bool(of) and all(wholes and {*wholes} == {known.lhs} for wholes in of)

    def candidates(self, nodes: Sequence[Node], line: int) -> Iterator[Hypothesis]:
        """Yield hypotheses that the text offers for the symbols in terms, then the literature's.

        They may also be about the symbols by which those are defined.
        """
        others = self.instances(nodes)
        parts = [*nodes, *[self.unfolded(node, {}, None, others) for node in nodes]]
        parts += [side for each in self.declared_hypotheses(parts) for side in (each.lhs, each.rhs)]
        names = {e for node in parts for e in walk(node) if isinstance(e, Name)}
        mine = {key_of(name) for name in names}
        for hypothesis in self.hypotheses:
            about = {key_of(e) for e in names_in(hypothesis.lhs, hypothesis.rhs)}
            itself = [latex(hypothesis.lhs), latex(hypothesis.rhs)] == [latex(n) for n in nodes]
            here = not hypothesis.line or self.in_scope(hypothesis.line, line)
            if not hypothesis.declared and about & mine and not itself and here:
                yield hypothesis
        for word, about_keys, said in self.words:
            for name in sorted(names, key=latex):
                if {key_of(name), key_of(name).rstrip("'")} & {*about_keys}:  # P' is as P is
                    every = self.declarations_of(key_of(name))
                    square = all(each.rows == each.cols for each in every)
                    yield from by_word(word, name, sorted(names, key=latex), said, square)
        middles = diagonals(parts) if self.factored else set()
        for name in sorted(names, key=latex):
            if name.base in (r"\Sigma", r"\Lambda") or latex(name) in middles:
                origin = f"as in the literature, {latex(name)} is diagonal or a covariance"
                yield Hypothesis(Power(name, "T"), name, origin, False)
        yield from self.circuits(
            names, {key_of(n) for n in map(bare, nodes[:1]) if isinstance(n, Name)}
        )
        written_out = {
            text
            for text, found in self.definitions.items()
            if not any(isinstance(e, Apply) for e in walk(found[0].rhs))
        }
        yield from patterns(nodes, written_out)
        yield from of_singular_vectors(parts, middles)

    def circuits(self, names: Collection[Name], sides: Collection[str]) -> Iterator[Hypothesis]:
        """Yield the definitions of W_OV and W_QK in the literature, for those that occur.

        What the document defines is meant so, unless it is defined again: it is one of `sides`.
        """
        said = (each[0].lhs for each in self.definitions.values())
        defined = {key_of(name) for name in said if isinstance(name, Name)} - {*sides}
        yield from circuits(names, defined, self.base.convention)

    def declared_hypotheses(self, nodes: Sequence[Node]) -> list[Hypothesis]:
        """Return the declared hypotheses about symbols in terms."""
        names = {
            replace(e, sup=()) if self.has_exponent(e) else e
            for node in nodes
            for e in walk(node)
            if isinstance(e, Name)
        }
        mine = {key_of(name) for name in names}
        found: list[Hypothesis] = []
        about = [
            (each, {key_of(e) for e in names_in(each.lhs, each.rhs)})
            for each in self.hypotheses
            if each.declared
        ]
        if len(about) < MOST_LINKED:  # and those about the symbols of the first ones
            mine = mine.union(*[named for each, named in about if named & mine])
        for hypothesis, named in about:
            if named & mine:
                found += with_superscripts(hypothesis, names)
        inverses = (e for node in nodes for e in walk(node) if is_pseudo_inverse(e))
        penrose = [h for e in inverses for h in of_pseudo_inverse(e)] if self.pseudo else []
        return [*found, *of_roots(names), *penrose]


def _as_vector(member: Member, symbols: Symbols, sided: bool) -> Declared | None:
    """Return a row or a column of a declared matrix as a vector as long."""
    whole = symbols.lookup(member.whole)[1]
    if whole is None or not (whole.rows and whole.cols):
        return None
    length = whole.cols if member.side == "row" else whole.rows
    side = ("row", "column")[(member.side == "column") != member.turned] if sided else ""
    return Declared("vector", length, line=member.line, full=full_key(member.name), side=side)


def _is_in(definition: Definition, nodes: Sequence[Node]) -> bool:
    """Return whether terms are the sides of a definition."""
    return [latex(bare(n)) for n in nodes] == [latex(definition.lhs), latex(bare(definition.rhs))]


def _is_near(rows: Sequence[int], line: int) -> bool:
    """Return whether one of the rows, which are in order, is near a line."""
    at = bisect_left(rows, line - NEAR)
    return at < len(rows) and rows[at] <= line + NEAR


def _is_softmax(node: Node) -> bool:
    """Return whether a term is a softmax, whose entries have the indices of its argument."""
    inner = bare(node)
    return isinstance(inner, Apply) and inner.function.base in SOFTMAX


def _is_property(lhs: Node, rhs: Node) -> bool:
    """Return whether an equation says a property of what it seems to define.

    So it is for an adjoint that is its symbol's own inverse, and for a function with a number.
    """
    if isinstance(lhs, Apply):
        return not any(isinstance(e, Name | Apply) for e in walk(rhs)) and isinstance(
            bare(rhs), Number
        )
    starred = isinstance(lhs, Name) and any(slot.text == "*" for slot in lhs.sup)
    own = {key_of(e) for e in names_in(rhs)}
    return starred and isinstance(lhs, Name) and own == {key_of(lhs)}


def _replaced(
    node: Any,
    known: Callable[[str], Definition | None],
    used: dict[str, Definition],
    sizes: Collection[str],
) -> Any:
    """Return a term with definitions put in; at the end of a sum, only those of `sizes`."""

    def change(part: Any) -> Any:
        if isinstance(part, Indexed) and isinstance(part.upper, Node):
            ends = {latex(e) for e in walk(part.upper) if isinstance(e, Name)}
            upper = mapped(part.upper, change) if ends <= {*sizes} else part.upper
            return replace(part, upper=upper, body=mapped(part.body, change))
        if not isinstance(part, Name | Apply | Derivative) and not is_pseudo_inverse(part):
            return None
        text = latex(part)
        definition = known(text)
        if definition is not None:
            used[text] = definition
            return Group(definition.rhs, stands_for=part)
        if isinstance(part, Power):
            return None
        if isinstance(part, Derivative):  # by the chain rule it may be another expression
            return part
        return part if isinstance(part, Name) else with_arguments(part, change)

    return mapped(node, change)
