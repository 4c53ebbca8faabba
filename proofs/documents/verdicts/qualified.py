"""What words, other definitions and other readings excuse in an equation that is called wrong."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import chain

from otimes.algebra.notation.symbols import full_key, text_of
from otimes.algebra.notation.tree import (
    Apply,
    Name,
    Node,
    Number,
    Statement,
    Sum,
    bare,
    is_constant,
    latex,
    walk,
)
from otimes.algebra.notation.vocabulary import CONDITIONS
from otimes.proofs.documents.containers.source import Document
from otimes.proofs.documents.formulas.common_factor import without_common_ends
from otimes.proofs.documents.prose.assumptions import plain_words
from otimes.proofs.documents.prose.items import Item
from otimes.proofs.documents.proving.arithmetic import is_symmetric
from otimes.proofs.documents.proving.attempts import symbols_in
from otimes.proofs.documents.proving.every_reading import LENGTH
from otimes.proofs.documents.proving.related import keys_in
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.symbols.context import Context, Definition
from otimes.proofs.documents.symbols.recurrences import is_of
from otimes.proofs.documents.symbols.shifts import AWAY, POSITIONS, without_positions
from otimes.proofs.documents.symbols.terms import (
    is_value,
)
from otimes.proofs.documents.verdicts.circumstances import (
    BASIS,
    follows_from_more,
    has_condition_after,
    has_unit_after,
    is_conditional,
    is_denied,
    is_in_another_layout,
    is_named_in_words,
    is_of_another_case,
    says_what_a_word_means,
    without_existence,
)
from otimes.proofs.documents.verdicts.defined_sides import DefinedSides
from otimes.proofs.documents.verdicts.left_sides import may_be_defined
from otimes.proofs.documents.verdicts.wrong_definitions import USED

OTHER_CASE = "it may be about another case than the definition before"


@dataclass(frozen=True, slots=True)
class Link:
    """An equation of a chain: its place in a formula, and the words before it in its sentence."""

    item: Item
    statement: Statement
    k: int
    words: str

    @property
    def left(self) -> Node:
        """The left side."""
        return self.statement.terms[self.k]

    @property
    def right(self) -> Node:
        """The right side."""
        return self.statement.terms[self.k + 1]

    @property
    def first(self) -> bool:
        """Whether it is the first of its formula."""
        return self.k == 0 and self.statement is self.item.statements[0]


class Qualified(DefinedSides):
    """Qualifies the verdict on an equation by the text around it."""

    def __init__(self, document: Document, context: Context, items: list[Item]) -> None:
        super().__init__(document, context, items)
        self.suspended: dict[str, tuple[int, list[Definition]]] = {}  # by those of another case
        self.unused: list[tuple[int, set[str]]] = []  # lines of assumptions that no rule can use
        self.open_chains: dict[frozenset[str], int] = {}  # ends of chains with a link not decided

    def _qualified(self, link: Link, found: Found) -> Found:
        """Return a verdict, unless words or other definitions excuse what is called wrong."""
        words = link.words
        known = self.context.definitions.get(latex(bare(link.left))) if link.k == 0 else None
        slip = self._is_slip(link.item, found)
        again_slip = slip and not is_in_another_layout(self.document.sentence(link.item.formula))
        elsewhere = known is not None and not self.context.in_scope(known[0].line, link.item.line)
        if elsewhere and found.verdict != "proved":
            self.context.definitions.pop(latex(bare(link.left)))
            return self._definition(link.item, link.left, link.right)
        conditional = any(each.after for each in link.item.statements)
        if conditional and link.statement.after in CONDITIONS and found.verdict != "proved":
            return Found("definition", "it is a condition")
        accused = found.verdict in ("refuted", "shape") and link.first
        if accused and says_what_a_word_means(words, link.left, link.right):
            return Found("definition", "it says what a word means")
        away = AWAY in found.why  # no condition on positions explains that
        if away:
            before = self.document.sentence_before(link.item.formula)
            words = without_existence(plain_words(without_positions(before)))
            conditional = False
        after = POSITIONS.match(self.document.text, link.item.formula.end) if away else None
        if after is None and has_condition_after(self.document, link.item.formula):
            conditional = conditional or not self._is_slip_in_words(link.item, found)
        if (
            is_conditional(words)
            and not conditional
            and self._condition_is_used(link.item, found, [link.left, link.right])
        ):
            words = ""
        numbers = is_value(link.left) and is_value(link.right)  # are what they are
        if found.verdict == "refuted" and (conditional or is_conditional(words)) and not numbers:
            return replace(found, verdict="undecided", why="it is false without the condition")
        if found.verdict == "refuted" and is_denied(words):
            return replace(
                found, verdict="undecided", why="it is false, and the sentence denies something"
            )
        begins = link.item.formula.tex[: link.left.span[0]]
        named = isinstance(bare(link.left), Name) and is_named_in_words(begins)
        if found.verdict in ("refuted", "shape") and link.k == 0 and named:
            why = "its left side is named in words"
            return replace(found, verdict="undecided", why=why)
        again = (
            found.verdict == "shape"
            and link.k == 0
            and self._is_again(link.left, link.right, link.item)
        )
        if (
            again and not again_slip and self._misfit_within(link.item, link.right) is None
        ):  # what conforms may define it anew
            return replace(found, verdict="undecided", why="it says otherwise than the definition")
        if (
            found.verdict == "shape"
            and link.k == 0
            and self._is_other(link.left, link.right, link.item)
        ):
            return replace(found, verdict="undecided", why=f"{found.why}; it is defined otherwise")
        if found.is_wrong and known and self._is_of_another_case(link.item, found, known[0].line):
            end, text = self.document.next_heading(link.item.line), latex(bare(link.left))
            self.suspended[text] = end, self.context.definitions.pop(text)
            self.context.define(bare(link.left), link.right, link.item.line)
            return replace(found, verdict="undecided", why=OTHER_CASE)
        if (
            found.verdict == "refuted"
            and link.k == 0
            and not again_slip
            and self._redefines(link.left, link.right, link.item)
        ):
            return replace(found, verdict="undecided", why="it says otherwise than the definition")
        if found.verdict == "refuted" and link.k == 0 and may_be_defined(link.left, link.right):
            why = f"it may say what {link.item.formula.tex[slice(*link.left.span)]} is"
            return replace(found, verdict="needs-hypothesis", why=why)
        last = (
            link.k + 2 == len(link.statement.terms) and link.statement is link.item.statements[-1]
        )
        if found.verdict == "refuted" and last and self._has_unit(link.item, link.left, link.right):
            return replace(found, verdict="undecided", why="a unit follows the number")
        if (
            found.verdict == "refuted"
            and link.k == 0
            and not again_slip
            and self._may_be_redefined(link.left, link.right, link.item)
        ):
            return replace(found, verdict="undecided", why="its left side may be defined again")
        if found.verdict == "refuted" and not slip and BASIS.search(link.words):
            return replace(found, verdict="undecided", why="words assume more, of a basis")
        if found.verdict == "refuted" and self._has_values(link, found, slip):
            return replace(found, verdict="undecided", why="its symbols are given numbers")
        open_ = follows_from_more(words) and not found.why.startswith("in numbers")
        if found.verdict == "refuted" and open_ and self._loose(link.left, link.right):
            why = "it is false in general, and follows from something that is not read"
            return replace(found, verdict="undecided", why=why)
        ends = frozenset((latex(link.left), latex(link.right)))
        if found.verdict == "refuted" and ends in self.open_chains:
            why = (
                f"it is false in general, and a link of the chain on line {self.open_chains[ends]}"
            )
            return replace(found, verdict="undecided", why=f"{why} is not decided")
        if found.verdict == "refuted" and (name := self._function_alone(link)):
            why = f"it is false in general, and {name} is a function elsewhere"
            return replace(found, verdict="undecided", why=why)
        if found.is_wrong and self._mixes_examples(found, link.item.line):
            return replace(found, verdict="undecided", why=f"{found.why}, of different sections")
        if found.verdict == "refuted" and (name := self._new_symbol(link)):
            why = f"it is false in general, and may say what {name} is"
            return replace(found, verdict="needs-hypothesis", why=why)
        if found.verdict == "refuted" and (name := self._new_state(link)):
            why = f"it is false in general, and may say what {name} is"
            return replace(found, verdict="needs-hypothesis", why=why)
        if found.verdict == "refuted" and (line := self._unused_assumption(link)):
            why = f"it is false in general, and the assumption on line {line} cannot be used"
            return replace(found, verdict="undecided", why=why)
        return found

    def _excused_shape(self, link: Link, found: Found) -> str:
        """Return why terms that do not conform may be meant otherwise, or ""."""
        if latex(link.right).startswith("[") and isinstance(bare(link.right), Name | Number):
            return "it may be about matrices of one entry"
        if self._has_adjoint(link):
            return "* may be the conjugate transpose"
        rows = [int(row) for row in USED.findall(found.why)] if LENGTH in found.why else []
        headings = [row for row, _ in self.document.headings]
        apart = [row for row in rows if any(row < at <= link.item.line for at in headings)]
        return f"line {apart[0]} may be about another vector" if apart else ""

    def _has_adjoint(self, link: Link) -> bool:
        r"""Return whether a symbol stands with a star and without, as in `I - 2 u u^*`."""
        sides = [self.context.unfolded(side, {}) for side in (link.left, link.right)]
        names = {e for side in sides for e in walk(side) if isinstance(e, Name)}
        starred = [e for e in names if e.sup and e.sup[-1].text in ("*", r"\ast")]
        return any(replace(e, sup=e.sup[:-1]) in names for e in starred)

    def _loose(self, left: Node, right: Node) -> set[str]:
        """Return the symbols of one side that no definition relates to those of the other."""
        mine = keys_in(left) | keys_in(right)
        loose = keys_in(left) ^ keys_in(right)
        for known in (each for every in self.context.definitions.values() for each in every):
            by = keys_in(known.rhs)
            if mine & keys_in(known.lhs) and (mine & by or not by):
                loose -= keys_in(known.lhs) | by
        return loose

    def _is_of_another_case(self, item: Item, found: Found, said: int) -> bool:
        """Return whether a sentence may define a symbol for another case than on the line `said`.

        It does not where one edit of a kind that no case explains makes both definitions agree.
        """
        if self._is_slip(item, found):
            return False
        since = self.document.prose[self.document.lines[said - 1] : item.formula.start]
        since = re.split(r"\n\s*\n", since)[-1]
        words = self.document.sentence_before(item.formula), self.document.sentence(item.formula)
        return any(is_of_another_case(each, since) for each in words)

    def _has_unit(self, item: Item, left: Node, right: Node) -> bool:
        """Return whether numbers are equated and a unit follows, as in `= 2$ GB`."""
        after = has_unit_after(self.document, item.formula)
        return after and is_value(left) and is_value(right)

    def _may_be_redefined(self, left: Node, right: Node, item: Item) -> bool:
        """Return whether a defined symbol is equated with a term of which not all is declared."""
        known = self.context.definitions.get(latex(bare(left)))
        if known is None:
            return False
        symbols = self.context.symbols_at(item.line)
        names = [e for e in symbols_in(right) if text_of(e) not in symbols.sizes()]
        said = self.context.definitions
        name = bare(left)
        names = [e for e in names if latex(e) not in said]
        names = [e for e in names if not (isinstance(name, Name) and is_of(e, name))]
        of = self.context.members  # by which they are declared
        names = [e for e in names if not any(is_of(e, m.name) for m in of.get(e.base, ()))]
        found = [symbols.lookup(e)[1] for e in names]
        return any(each is None or not each.line for each in found)

    def _has_values(self, link: Link, found: Found, slip: bool) -> bool:
        """Return whether a section gives a symbol numbers with which a claim was not decided.

        With numbers that are not symmetric, an equation with a `slip` is as false as without.
        """
        sides = (link.left, link.right)
        names = {latex(e) for side in sides for e in walk(side) if isinstance(e, Name)}
        for text in names & self.given_numbers:
            known = self.context.numbers.get(text, ())
            here = [d for d in known if self.context.in_scope(d.line, link.item.line)]
            if f"{text} as on line" in found.why or (known and not here):
                continue
            if not (slip and here and not any(is_symmetric(each.rhs) for each in here)):
                return True
        return False

    def _function_alone(self, link: Link) -> str:
        """Return a symbol without arguments that is defined with them, `K` of `K(x, z)`, or ""."""
        nodes = [e for side in (link.left, link.right) for e in walk(side)]
        applied = {latex(e.function) for e in nodes if isinstance(e, Apply)}
        names = {latex(e) for e in nodes if isinstance(e, Name)} - applied
        return min(names & self.context.functions.keys(), default="")

    def _mixes_examples(self, found: Found, line: int) -> bool:
        """Return whether numbers of another section were put in beside those of this one."""
        rows = {int(row) for row in USED.findall(found.why)}
        known = chain(*self.context.definitions.values(), *self.context.numbers.values())
        values = {each.line for each in known if each.line in rows and is_value(each.rhs)}
        apart = {self.context.in_scope(row, line) for row in values}
        return len(apart) == 2

    def _new_symbol(self, link: Link) -> str:
        """Return a side that is one symbol, of which nothing is declared or defined, or "".

        It is not in the other side, but as a term in an update, `b = b + e`.
        """
        symbols = self.context.symbols_at(link.item.line)
        for side, other in ((bare(link.right), link.left), (bare(link.left), link.right)):
            if not isinstance(side, Name) or is_constant(side) or side.sup:
                continue
            is_first = latex(side) not in self.seen
            if side.sub and not is_first:
                continue
            terms = [*map(bare, inner.terms)] if isinstance(inner := bare(other), Sum) else []
            if side in [*walk(other)] and not (other is link.right and side in terms):
                continue
            known = symbols.lookup(side)[1]
            declared = known is not None and (known.rows or known.line) and not is_first
            declared = declared or text_of(side) in symbols.sizes()
            if not declared and latex(side) not in self.context.definitions:
                return latex(side)
        return ""

    def _new_state(self, link: Link) -> str:
        r"""Return a state that only the term before has, and that nothing defines, or "".

        So a chain goes on with `x^2 = F x^1 = F G x^0`.
        """
        before, after = map(bare, without_common_ends(link.left, link.right))
        whole = before in map(bare, (link.left, link.right))
        if not link.k or whole or not isinstance(before, Name) or not (before.sub or before.sup):
            return ""
        text = latex(before)
        known = self.context.symbols_at(link.item.line).lookup(before)[1]
        declared = known is not None and not before.sup and known.full == full_key(before)
        others = {latex(e) for e in walk(after) if isinstance(e, Name)}
        old = text in others or text in self.seen or text in self.context.definitions
        return "" if old or declared else text

    def _unused_assumption(self, link: Link) -> int:
        """Return the line of an assumption about both sides that no rule can use, or 0."""
        mine = keys_in(link.left) | keys_in(link.right)
        for line, keys in self.unused:
            if mine & keys and self.context.together(line, link.item.line):
                return line
        return 0
