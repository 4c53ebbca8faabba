"""Equations of a document: what they define, what they assume, and what they claim."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product as pairs

from otimes.algebra.notation.expectations import is_expectation
from otimes.algebra.notation.symbols import (
    key_of,
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
    bare,
    is_constant,
    latex,
    walk,
)
from otimes.proofs.documents.containers.source import Document
from otimes.proofs.documents.prose.assumptions import assumes, plain_words
from otimes.proofs.documents.prose.items import Item
from otimes.proofs.documents.proving.arithmetic import computed
from otimes.proofs.documents.proving.attempts import named, symbols_in
from otimes.proofs.documents.proving.closed_sums import by_recurrence
from otimes.proofs.documents.proving.conclusions import is_concluded
from otimes.proofs.documents.proving.related import keys_in
from otimes.proofs.documents.proving.rotations import rotated_rightly, rotated_wrongly
from otimes.proofs.documents.proving.softmax_quotients import by_entries
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.symbols.context import Context, Definition
from otimes.proofs.documents.symbols.decompositions import parts_defined_by
from otimes.proofs.documents.symbols.factorisations import factored
from otimes.proofs.documents.symbols.hypotheses import Hypothesis
from otimes.proofs.documents.symbols.terms import (
    are_shapes,
    has_trace,
    is_order,
    is_value,
    occurs,
    size_name,
)
from otimes.proofs.documents.verdicts.by_examples import unequal
from otimes.proofs.documents.verdicts.circumstances import (
    BOTH_SIDES,
    CONDITIONAL,
    SUPPOSED,
    announces_definition,
    doubted_by,
    has_condition_after,
    has_differentials,
    is_conditional,
    is_denied,
    is_given_anew,
    is_goal,
    is_of_a_moment,
    is_of_differentials,
    is_system,
    is_wanted,
    opens_case,
    without_existence,
)
from otimes.proofs.documents.verdicts.false_claims import ASSUMPTION, COMMUTE, DIFFER
from otimes.proofs.documents.verdicts.qualified import OTHER_CASE, Link, Qualified
from otimes.proofs.documents.verdicts.usual_members import by_usual_members

ZEROS = ("0", r"\mathbf{0}", r"\vec{0}")
SO_THAT = re.compile(r"\b(?:so that|so|hence|thus|therefore)[\s$]*\Z", re.IGNORECASE)
# “The function $f(x) = |x|$ is another example”: a second function of the name.
FUNCTION = re.compile(
    r"\b(?:functions?|(?:counter-?)?examples?(?:\s+(?:with|is|of))?)\s*$", re.IGNORECASE
)


class Equalities(Qualified):
    """Judges each equation by the first of its rules that has an answer."""

    def __init__(self, document: Document, context: Context, items: list[Item]) -> None:
        super().__init__(document, context, items)
        self.cases: dict[str, int] = {}  # symbols that have a value for one paragraph, with lines
        self.moments: dict[str, tuple[int, Hypothesis]] = {}  # constants of a sentence or section

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

    def _is_a_value_again(self, link: Link) -> bool:
        """Return whether a symbol is given the constant or the number that it was given before."""
        name = bare(link.left)
        if link.k or not isinstance(name, Name):
            return False
        if not (is_constant(link.right) or is_value(link.right)):
            return False
        known = self.context.definitions.get(latex(name))
        return bool(known) and known is not None and known[0].rhs == link.right

    def _is_zero_in_passing(self, link: Link) -> bool:
        """Return whether a symbol is zero in one sentence: “with equality iff $v = 0$”."""
        name = bare(link.left)
        zero = isinstance(bare(link.right), Name | Number) and latex(bare(link.right)) in ZEROS
        plain = isinstance(name, Name) and not (name.sub or name.sup)
        return zero and plain and is_of_a_moment(link.words)

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
        """Make hypotheses that are not declared of what symbols were in other paragraphs only."""
        for text, said in [*self.cases.items()]:
            if not self.context.together(said, line):
                for known in self.context.definitions.pop(text, ()):
                    given = Hypothesis(known.lhs, known.rhs, f"line {said}", False, said)
                    self.context.hypotheses.append(given)
                del self.cases[text]

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
        if found.verdict == "refuted" and self._is_of_expectations(link):
            why = "numbers say nothing of an expectation"
            found = replace(found, verdict="undecided", why=why, counterexample=None)
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

    def _is_of_expectations(self, link: Link) -> bool:
        """Return whether a side, with definitions put in or without, has an expectation."""
        sides = [link.left, link.right]
        others = self.context.instances(sides)
        sides += [self.context.unfolded(side, {}, None, others) for side in sides]
        parts = (e for side in sides for e in walk(side))
        return any(isinstance(e, Name) and is_expectation(e) for e in parts)

    def _outright(self, link: Link) -> Found | None:
        """Return the verdict on shapes, sizes, values and the like, None on another equation."""
        if self._is_a_value_again(link):
            return Found("definition", "it is a value")
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
        supposed = CONDITIONAL.search(link.words) or BOTH_SIDES.search(link.words)
        if turned is not None and not (is_denied(link.words) or supposed):
            return turned
        if has_differentials(link.left, link.right):
            changed = self._in_changes(link.left, link.right, link.item, link.words)
            if is_of_differentials(link.left, link.right):
                return changed or Found(
                    "undecided", "a d before a matrix may be a differential: it is not decided"
                )
            if changed is not None and changed.verdict in ("proved", "needs-hypothesis"):
                return changed
        if self._is_to_be_solved(link):
            row = link.item.line
            given = Hypothesis(link.left, link.right, f"line {row}", False, row)
            self.context.hypotheses.append(given)
            return Found("definition", "it is to be solved")
        if link.first and is_wanted(link.words) and not isinstance(bare(link.left), Name):
            return Found("definition", "it is a condition that is to be met")
        if (
            link.first
            and is_goal(link.words)
            and self._defines(link.left, link.right, False, link.item.line)
        ):
            return Found("undecided", "it is to be shown, and its left side is not defined")
        return None

    def _is_to_be_solved(self, link: Link) -> bool:
        """Return whether words say that a product with an unknown, `A x = b`, is to be solved."""
        product = isinstance(bare(link.left), Product)
        if not (link.first and product and is_system(link.words)):
            return False
        if not (isinstance(bare(link.right), Name | Product) or is_constant(link.right)):
            return False
        terms, line = [link.left, link.right], link.item.line
        return self.judge.shapes(terms, line, link.item.formula.tex) is None

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
        if found is not None and found.verdict == "proved" and is_value(link.right):
            value = Definition(bare(link.left), link.right, link.item.line)
            self.context.numbers.setdefault(text, []).append(value)
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
        entries = self._softmax_by_entries(link)
        if entries is not None:
            return entries
        entry = self._entry_by_members(link) if link.k == 0 else None
        if entry is not None:
            return entry
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

    def _entry_by_members(self, link: Link) -> Found | None:
        """Return the verdict on an entry by rows and columns that nothing declares, or None."""
        judged = partial(self.judge.claim, line=link.item.line, source=link.item.formula.tex)
        found = by_usual_members(self.context, link.left, link.right, link.item.line, judged)
        after = has_condition_after(self.document, link.item.formula)
        doubted = doubted_by(link.words) or is_conditional(link.words) or after
        said = self.context.instances([link.left]).get(latex(bare(link.left)))
        if found is not None and found.is_wrong and said is not None:
            apart = not self.context.in_scope(said.line, link.item.line)
            other = apart or self._is_of_another_case(link.item, found, said.line)
            return None if doubted or other else replace(found, against=(said.line,))
        return found

    def _softmax_by_entries(self, link: Link) -> Found | None:
        """Return the verdict on a softmax as a quotient of exponentials, or None."""
        line, source = link.item.line, link.item.formula.tex
        judged = partial(self.judge.claim, line=line, source=source)
        found = by_entries(self.context, link.left, link.right, line, judged)
        after = has_condition_after(self.document, link.item.formula)
        doubted = doubted_by(link.words) or is_conditional(link.words) or after
        if found is not None and found.verdict == "refuted" and doubted:
            return replace(found, verdict="undecided")
        return found

    def _as_definition(self, link: Link) -> Found | None:
        """Return the verdict on an equation that defines one of its sides, or None."""
        if (found := self._decomposed(link)) is not None:
            return found
        announced = link.first and announces_definition(link.words)
        known = self.context.definitions.get(latex(bare(link.left))) if link.k == 0 else None
        if link.k == 0 and self._defines(link.left, link.right, announced, link.item.line):
            said = (
                self._said_again(link.item, link.left, link.right)
                or self._of_part(link.item, link.left, link.right)
                or self._unrolled(link.item, link.left, link.right)
            )
            if said is None and (
                self._is_given_a_constant(link.left, link.right, link.item.line)
                or self._is_zero_in_passing(link)
            ):
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
        if link.k and self._begins(link):
            return self._definition(link.item, link.left, link.right)
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

    def _decomposed(self, link: Link) -> Found | None:
        """Return the verdict on a sum of parts that are then defined by its left side, or None."""
        if link.k or len(link.statement.terms) > 2:
            return None
        parts = parts_defined_by(self.context, link.left, link.right, link.item.line)
        if not parts or self.seen & parts.keys():
            return None
        text, ahead = latex(bare(link.left)), self.context.ahead
        ahead[text] = [each for each in ahead.get(text, ()) if each.rhs != link.right]
        used: dict[str, Definition] = {}
        right = self.context.unfolded(link.right, used, parts, parts)
        found = self.judge.claim(link.left, right, link.item.line, "")
        return replace(found, why=f"{found.why}; with {named(used)}", span=None)

    def _begins(self, link: Link) -> bool:
        """Return whether a later link gives a new symbol a start, as in `m_0 = v_0 = 0`."""
        name = bare(link.left)
        numbered = isinstance(name, Name) and any(s.kind == "number" for s in name.sub)
        defined = self._defines(link.left, link.right, False, link.item.line)
        return numbered and is_constant(link.right) and self._is_new(name) and defined

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
        if found.verdict == "undecided":
            found = unequal(self.context, link.left, link.right, link.item.line) or found
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
