"""Equations of a document: what they define, what they claim, and what words excuse."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from itertools import product as pairs

from otimes.algebra.notation.symbols import (
    key_of,
    text_of,
)
from otimes.algebra.notation.tree import (
    Apply,
    Derivative,
    Grid,
    Group,
    Name,
    Node,
    Norm,
    Number,
    Power,
    Product,
    Statement,
    Sum,
    bare,
    is_constant,
    latex,
    walk,
)
from otimes.algebra.notation.vocabulary import CONDITIONS
from otimes.proofs.documents.arithmetic import computed, is_symmetric
from otimes.proofs.documents.assumptions import assumes, plain_words
from otimes.proofs.documents.attempts import symbols_in
from otimes.proofs.documents.circumstances import (
    CONDITIONAL,
    EXPECTATION,
    SUPPOSED,
    announces_definition,
    doubted_by,
    follows_from_more,
    has_condition_after,
    has_differentials,
    has_unit_after,
    is_conditional,
    is_denied,
    is_given_anew,
    is_goal,
    is_in_another_layout,
    is_named_in_words,
    is_of_a_moment,
    is_of_another_case,
    is_of_differentials,
    is_wanted,
    opens_case,
    says_what_a_word_means,
    without_existence,
)
from otimes.proofs.documents.closed_sums import by_recurrence
from otimes.proofs.documents.conclusions import is_concluded
from otimes.proofs.documents.context import Context, Definition
from otimes.proofs.documents.defined_sides import DefinedSides
from otimes.proofs.documents.every_reading import LENGTH
from otimes.proofs.documents.factorisations import factored
from otimes.proofs.documents.false_claims import ASSUMPTION, COMMUTE, DIFFER
from otimes.proofs.documents.found import Found
from otimes.proofs.documents.hypotheses import Hypothesis
from otimes.proofs.documents.items import Item
from otimes.proofs.documents.recurrences import is_of
from otimes.proofs.documents.related import keys_in
from otimes.proofs.documents.rotations import rotated_rightly, rotated_wrongly
from otimes.proofs.documents.shifts import AWAY, POSITIONS, without_positions
from otimes.proofs.documents.source import Document
from otimes.proofs.documents.terms import (
    are_shapes,
    has_trace,
    is_order,
    is_value,
    occurs,
    size_name,
)
from otimes.proofs.documents.wrong_definitions import USED

OTHER_CASE = "it may be about another case than the definition before"
SO_THAT = re.compile(r"\b(?:so that|so|hence|thus|therefore)[\s$]*\Z", re.IGNORECASE)


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


FUNCTION = re.compile(
    r"\b(?:functions?|(?:counter-?)?examples?(?:\s+(?:with|is|of))?)\s*$", re.IGNORECASE
)


class Equalities(DefinedSides):
    """Judges each equation by the first of its rules that has an answer."""

    def __init__(self, document: Document, context: Context, items: list[Item]) -> None:
        super().__init__(document, context, items)
        self.cases: dict[str, int] = {}  # symbols that have a value for one paragraph, with lines
        self.moments: dict[str, tuple[int, Hypothesis]] = {}  # constants of a sentence or section
        self.suspended: dict[str, tuple[int, list[Definition]]] = {}  # by those of another case
        self.unused: list[tuple[int, set[str]]] = []  # lines of assumptions that no rule can use
        self.open_chains: dict[frozenset[str], int] = {}  # ends of chains with a link not decided

    def _is_a_step(self, sides: Sequence[Node], line: int) -> bool:
        """Return whether a later link of a chain, of declared symbols only, assumes nothing."""
        symbols = self.context.symbols_at(line)
        known = [symbols.lookup(e)[1] for side in sides for e in symbols_in(side)]
        declared = all(each is not None and each.line and each.rows for each in known)
        return declared and not self.context.is_excused("swap", line)

    def _by_recurrence(self, item: Item, left: Node, right: Node) -> Found | None:
        """Return the verdict on a sum by the recurrence of its left side, or None."""
        judged = partial(self.judge.claim, line=item.line, source="")
        found = by_recurrence(self.context, left, right, item.line, judged)
        words = plain_words(self.document.sentence_before(item.formula))
        doubted = doubted_by(words) or has_condition_after(self.document, item.formula)
        return None if found is None or (found.is_wrong and doubted) else found

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

    def _is_assumed(self, left: Node, right: Node, line: int) -> bool:
        """Return whether an equation is itself a hypothesis that the text declares."""
        sides = [latex(left), latex(right)]
        declared = [each for each in self.context.hypotheses if each.declared]
        return any(
            [latex(h.lhs), latex(h.rhs)] == sides and h.origin == f"line {line}" for h in declared
        )

    def _is_case(self, left: Node, words: str, line: int) -> bool:
        """Return whether an equation is a case: a condition, or about what was declared before."""
        name = bare(left)
        if not isinstance(name, Name):
            return False
        known = self.context.symbols_at(line).lookup(name)[1]
        return opens_case(words, known is not None and 0 < known.line < line)

    def _is_given_a_constant(self, left: Node, right: Node, line: int) -> bool:
        """Return whether a symbol that was declared before is given a constant value."""
        name = bare(left)
        if not isinstance(name, Name) or name.sub or name.sup or not is_constant(right):
            return False
        known = self.context.symbols_at(line).lookup(name)[1]
        return known is not None and known.line > 0

    def _leave_moments(self, offset: int) -> None:
        """Make hypotheses that are not declared of constants whose part of the text has ended."""
        for text, (end, given) in [*self.moments.items()]:
            if end < offset:
                self.context.definitions.pop(text, None)
                self.context.hypotheses.append(given)
                del self.moments[text]
        for text, (end, known) in [*self.suspended.items()]:
            if end < offset:
                self.context.definitions[text] = known
                del self.suspended[text]

    def _leave_cases(self, line: int) -> None:
        """Forget the values that symbols had in other paragraphs only."""
        for text, said in [*self.cases.items()]:
            if not self.context.together(said, line):
                self.context.definitions.pop(text, None)
                del self.cases[text]

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

    def _equality(self, item: Item, statement: Statement, k: int) -> Found:
        """Return the verdict on an equation of a chain: the first that one of the rules gives."""
        words = without_existence(plain_words(self.document.sentence_before(item.formula)))
        link = Link(item, statement, k, words)
        found = (
            self._outright(link)
            or self._by_its_left_side(link)
            or self._as_definition(link)
            or self._as_assumption(link)
            or self._as_claim(link)
        )
        if found.verdict == "shape" and (why := self._excused_shape(link, found)):
            found = replace(found, verdict="undecided", why=f"{found.why}, but {why}")
        if found.verdict in ("needs-hypothesis", "undecided"):
            if SUPPOSED.search(words):
                self.unused.append((item.line, keys_in(link.left) | keys_in(link.right)))
            if len(statement.terms) > 2:
                texts = [latex(term) for term in statement.terms]
                for ends in pairs(texts[: k + 1], texts[k + 1 :]):
                    self.open_chains.setdefault(frozenset(ends), item.line)
        return found

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

    def _excused_shape(self, link: Link, found: Found) -> str:
        """Return why terms that do not conform may be meant otherwise, or ""."""
        if latex(link.right).startswith("[") and isinstance(bare(link.right), Name | Number):
            return "it may be about matrices of one entry"
        if re.search(r"\^\{?(?:\*|\\ast)", found.why):
            return "* may be the conjugate transpose"
        rows = [int(row) for row in USED.findall(found.why)] if LENGTH in found.why else []
        headings = [row for row, _ in self.document.headings]
        apart = [row for row in rows if any(row < at <= link.item.line for at in headings)]
        return f"line {apart[0]} may be about another vector" if apart else ""

    def _unused_assumption(self, link: Link) -> int:
        """Return the line of an assumption about both sides that no rule can use, or 0."""
        mine = keys_in(link.left) | keys_in(link.right)
        for line, keys in self.unused:
            if mine & keys and self.context.together(line, link.item.line):
                return line
        return 0

    def _outright(self, link: Link) -> Found | None:
        """Return the verdict on shapes, sizes, values and the like, None on another equation."""
        if are_shapes(link.left) and are_shapes(link.right):
            return Found("definition", "it relates shapes")
        if all(map(is_order, (link.left, link.right))):
            return Found("undecided", "it compares orders of growth")
        if (order := self._of_order(link.item, link.left, link.right)) is not None:
            doubted = order.verdict == "refuted" and doubted_by(link.words)
            return replace(order, verdict="undecided") if doubted else order
        if link.k == 0 and isinstance(bare(link.left), Name) and is_value(link.right):
            if (found := self._computed_anew(link)) is not None:
                return found
            name = bare(link.left)
            if isinstance(name, Name) and self.context.has_exponent(name):
                power = self.judge.in_numbers(link.left, link.right, link.item.line)
                if power is not None:
                    return power
            self._note_matrix(bare(link.left), link.right, link.item)
            return Found("definition", "it is a value")
        sizes = self.context.symbols_at(link.item.line).sizes()
        if (size_name(link.left) in sizes or size_name(link.right) in sizes) and not has_trace(
            link.left
        ):
            found = self._norm_as_size(link)
            if found is not None:
                return found
            if (
                link.k == 0
                and isinstance(bare(link.left), Name)
                and latex(bare(link.left)) not in (self.context.definitions)
            ):
                self.context.define(bare(link.left), link.right, link.item.line)
                self.context.sizes.add(latex(bare(link.left)))
                if any(map(is_value, link.statement.terms)):  # of an example: `d = k = 2`
                    self.cases[latex(bare(link.left))] = link.item.line
            return Found("definition", "it relates sizes")
        turned = rotated_wrongly(link.left, link.right) if self.document.has_rotations else None
        if turned is not None and not (is_denied(link.words) or CONDITIONAL.search(link.words)):
            return turned
        if has_differentials(link.left, link.right):
            changed = self._in_changes(link.left, link.right, link.item, link.words)
            if is_of_differentials(link.left, link.right):
                return changed or Found(
                    "undecided", "a d before a matrix may be a differential: it is not decided"
                )
            if changed is not None and changed.verdict in ("proved", "needs-hypothesis"):
                return changed
        if link.first and is_wanted(link.words) and not isinstance(bare(link.left), Name):
            return Found("definition", "it is a condition that is to be met")
        if (
            link.first
            and is_goal(link.words)
            and self._defines(link.left, link.right, False, link.item.line)
        ):
            return Found("undecided", "it is to be shown, and its left side is not defined")
        return None

    def _computed_anew(self, link: Link) -> Found | None:
        """Return the verdict on numbers for a symbol that is defined by others, or None.

        The numbers of another section are those of an example: they replace the definition.
        """
        text = latex(bare(link.left))
        known = self.context.definitions.get(text)
        if not known or not isinstance(bare(link.right), Grid) or is_value(known[0].rhs):
            return None
        if not self.context.in_scope(known[0].line, link.item.line):
            if is_value(link.right):
                self.suspended[text] = (
                    self.document.next_heading(link.item.line),
                    self.context.definitions.pop(text),
                )
            return None
        found = self.judge.in_numbers(link.left, link.right, link.item.line)
        if found is not None and found.verdict == "shape" and is_value(link.right):
            self.context.definitions.pop(text)  # numbers of another size are of another example
            return None
        return None if found and found.is_wrong and is_given_anew(link.words) else found

    def _norm_as_size(self, link: Link) -> Found | None:
        r"""Return the verdict on `\|y\|^2 = d` by what the text says of y, or None."""
        parts = [*walk(link.left)]
        norm = any(isinstance(e, Norm) and e.mark == r"\|" for e in parts)
        if not norm and not any(isinstance(e, Power) and e.exponent == "T" for e in parts):
            return None
        item = link.item
        if self._is_assumed(link.left, link.right, item.line):
            return Found("definition", "it is assumed")
        found = self.judge.claim(link.left, link.right, item.line, item.formula.tex)
        if found.verdict == "proved":
            return found
        known = any(text in self.context.definitions for text in map(latex, symbols_in(link.left)))
        wrong = found.verdict == "refuted" and known and not doubted_by(link.words)
        return self._qualified(link, found) if wrong else None

    def _by_its_left_side(self, link: Link) -> Found | None:
        """Return the verdict that another definition of the left side gives, or None."""
        announced = link.first and announces_definition(link.words)
        function = bare(link.left)
        if link.first and isinstance(function, Apply) and FUNCTION.search(link.words):
            self.context.forget(function)  # another function of the same name
        applied = self._applied(link.left, link.right, link.item) if link.k == 0 else None
        if applied is not None and applied.verdict == "refuted" and doubted_by(link.words):
            return replace(applied, verdict="undecided", why="it is false without the condition")
        if applied is not None:
            return applied
        stacked = self._stacked(link.item, link.left, link.right) if link.k == 0 else None
        if stacked is not None:
            return stacked
        derived = self._inverted(link.left, link.right, link.item) if link.k == 0 else None
        if derived is not None:
            return derived
        derived = self._derived(link.left, link.right, link.item) if link.k == 0 else None
        if derived is not None:
            return derived
        if (
            link.k == 0
            and isinstance(bare(link.left), Derivative)
            and self._is_derived_anew(link.left, link.item)
        ):
            return Found("undecided", "it may be the derivative of another number than before")
        if link.k == 0 and (found := self._computed_anew(link)) is not None:
            return found
        restated = self._restated(link.item, link.left, link.right) if announced else None
        if restated is not None:
            return restated
        return None

    def _as_definition(self, link: Link) -> Found | None:
        """Return the verdict on an equation that defines one of its sides, or None."""
        announced = link.first and announces_definition(link.words)
        known = self.context.definitions.get(latex(bare(link.left))) if link.k == 0 else None
        if link.k == 0 and self._defines(link.left, link.right, announced, link.item.line):
            said = (
                self._said_again(link.item, link.left, link.right)
                or self._of_part(link.item, link.left, link.right)
                or self._unrolled(link.item, link.left, link.right)
            )
            if said is None and self._is_given_a_constant(link.left, link.right, link.item.line):
                given = Hypothesis(
                    link.left, link.right, f"line {link.item.line}", False, link.item.line
                )
                sentence = is_of_a_moment(link.words)
                end = self.document.sentence_end(link.item.formula) if sentence else None
                end = self.document.next_heading(link.item.line) if end is None else end
                self.moments[latex(bare(link.left))] = end, given
            elif (
                said is None and link.first and self._is_case(link.left, link.words, link.item.line)
            ):
                self.cases[latex(bare(link.left))] = link.item.line
            if said is not None and said.verdict == "proved":
                self.context.define(bare(link.left), link.right, link.item.line)
            before = known[0].line if known and said is None else 0
            found = said or self._definition(link.item, link.left, link.right)
            if before and found.is_wrong and self._is_of_another_case(link.item, found, before):
                return replace(found, verdict="undecided", why=OTHER_CASE)
            return found
        turned = self._defines_turned(link) if link.k == 0 else None
        if turned is not None:
            return self._definition(link.item, turned, Power(Group(link.right), "T"))
        if (
            link.k == 0
            and isinstance(bare(link.right), Name)
            and self._is_new(link.right)
            and not (occurs(bare(link.right), link.left))
            and not (self.context.shifts and self.context.is_member(bare(link.right)))
        ):
            return self._definition(link.item, link.right, link.left)
        return None

    def _defines_turned(self, link: Link) -> Name | None:
        r"""Return the vector that an equation defines by its transpose: `h_i^\top = x_i^\top W`."""
        whole = bare(link.left)
        name = bare(whole.base) if isinstance(whole, Power) and whole.exponent == "T" else None
        if not isinstance(name, Name) or not name.base.islower() or len(name.sub) != 1:
            return None
        own = self.context.members_of([name]).values()
        of = {latex(e) for each in own for e in symbols_in(each.rhs)}
        defined = {text for text in of if text.partition("_{[")[0] in self.context.definitions}
        new = key_of(name) not in self.context.generic and self._is_new(name)
        known = self._defines(name, link.right, False, link.item.line)
        return name if new and known and not defined else None

    def _as_assumption(self, link: Link) -> Found | None:
        """Return the verdict on what a sentence assumes or decomposes, or None."""
        here = link.statement is link.item.statements[0]
        if (
            here
            and assumes(link.words)
            and not isinstance(bare(link.statement.terms[0]), Name | Apply)
        ):
            shape = self.judge.shapes(
                [link.left, link.right], link.item.line, link.item.formula.tex
            )
            return shape or Found("definition", "it is assumed")
        if self._is_assumed(link.left, link.right, link.item.line):
            return Found("definition", "it is assumed")
        product = (
            factored(link.left, link.right, link.words, link.item.line) if link.first else None
        )
        defined = self.context.definitions.keys()
        if (
            product is not None
            and self.judge.shapes([link.left, link.right], link.item.line, link.item.formula.tex)
            is not None
        ):
            product = None  # as with the square of a rectangular matrix
        if product is not None and not {latex(e) for e in walk(link.right)} & defined:
            self.context.factorisations.append(product)
            return Found("definition", "it says what a product is")
        return None

    def _as_claim(self, link: Link) -> Found:
        """Return the verdict on an equation that is decided, with what its symbols then are."""
        found = computed(self.context, link.left, link.right, link.item.line) or self.judge.claim(
            link.left, link.right, link.item.line, link.item.formula.tex
        )
        if (
            link.k
            and COMMUTE in found.why
            and self._is_a_step([link.left, link.right], link.item.line)
        ):
            return replace(found, verdict="refuted", why=f"{DIFFER}: {found.why}")
        if link.k == 0 and found.verdict in ("undecided", "needs-hypothesis"):
            solved = self._by_recurrence(link.item, link.left, link.right)
            if solved is not None and solved.is_wrong:
                return solved
            found = solved or found
        open_ = found.verdict in ("refuted", "undecided", "needs-hypothesis")
        if open_ and self.document.has_rotations and rotated_rightly(link.left, link.right):
            return Found("needs-hypothesis", "true where rotations add their angles")
        if link.k == 0 and found.verdict == "proved":
            self._declare_again(bare(link.left), link.item.line)
        if link.first and found.why.startswith(ASSUMPTION):
            concluded = is_concluded(link.words)
            if concluded or SO_THAT.search(link.words):
                found = self._concluded_from_definitions(link.item, link.left, link.right) or found
            if concluded and found.why.startswith(ASSUMPTION):
                found = self._concluded(link.item, link.left, link.right) or found
        if link.k == 0 and found.verdict in ("undecided", "needs-hypothesis", "refuted"):
            new = self._introduced(link.left, link.right)
            if new:
                self.introduced |= dict.fromkeys(new, link.item.line)
                given = Hypothesis(
                    link.left, link.right, f"line {link.item.line}", True, link.item.line
                )
                self.context.hypotheses.append(given)
                return Found("definition", f"it introduces {', '.join(new)}")
        if link.k == 0 and self._describes(link.left, link.right, link.item.line):
            given = Hypothesis(
                link.left, link.right, f"line {link.item.line}", True, link.item.line
            )
            self.context.hypotheses.append(given)
            return Found("definition", "it says what a symbol is that was just introduced")
        return self._qualified(link, found)

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
        if found.verdict == "refuted" and (conditional or is_conditional(words)):
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
        if found.verdict == "refuted" and link.k == 0 and _is_of_a_form(link.left, link.right):
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
        if found.verdict == "refuted" and EXPECTATION.search(link.item.formula.tex):
            return replace(found, verdict="undecided", why="an expectation is not in the language")
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
        if found.verdict == "refuted" and (line := self._unused_assumption(link)):
            why = f"it is false in general, and the assumption on line {line} cannot be used"
            return replace(found, verdict="undecided", why=why)
        return found


def _is_of_a_form(left: Node, right: Node) -> bool:
    r"""Return whether an equation may define a bilinear form: `\langle x, y \rangle = x^T A y`."""
    form, by = bare(left), bare(right)
    if not (isinstance(form, Apply) and form.function.base == "inner" and isinstance(by, Product)):
        return False
    ends = [e.base if isinstance(e, Power) else e for e in map(bare, by.factors)]
    plain = [*map(bare, form.arguments)]
    both = [[*map(latex, pair)] for pair in (plain, ends[:: len(ends) - 1])]
    return len(ends) > 2 and all(isinstance(e, Name) for e in plain) and both[0] == both[1]
