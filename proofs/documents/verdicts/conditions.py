"""Conditions of a sentence: whether an equation is false with them, too."""

from __future__ import annotations

import re
from collections.abc import Sequence

from otimes.algebra.notation.tree import (
    Name,
    Node,
    Statement,
    bare,
    latex,
    walk,
)
from otimes.proofs.documents.prose.assumptions import plain_words
from otimes.proofs.documents.prose.items import Item
from otimes.proofs.documents.proving.attempts import attempted, named
from otimes.proofs.documents.proving.conclusions import equations_in, refuted_by, says_more
from otimes.proofs.documents.proving.every_reading import has_assumption
from otimes.proofs.documents.proving.related import keys_in
from otimes.proofs.documents.proving.suppositions import supposes
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.symbols.context import Definition
from otimes.proofs.documents.symbols.hypotheses import Hypothesis
from otimes.proofs.documents.symbols.signs import is_sign
from otimes.proofs.documents.verdicts.circumstances import is_conditional, is_denied
from otimes.proofs.documents.verdicts.definitions import Definitions
from otimes.proofs.documents.verdicts.suggestions import SLIPS
from otimes.proofs.documents.verdicts.wrong_definitions import USED

NEAR = 6  # lines before a conclusion in which definitions are what it follows from
DONE = (
    r"(?:replac|freez|froz|writ|stack|multipl|shift|rotat|permut|appl|append|insert|fold|merg|"
    r"concatenat|expand|substitut|scal|mask)"
)
CONSTRUCTED = re.compile(
    rf"\b(?:if|when)\s+(?:(?:we|one|you)\s+(?:now\s+|also\s+|then\s+)?{DONE}"
    rf"|(?:[\w-]+\s+){{1,4}}(?:is|are)\s+(?:now\s+|also\s+|then\s+)?{DONE}\w*ed\b"
    r"|(?:[\w-]+\s+){1,4}(?:is|are)\s+(?:frozen|written)\b)",
    re.IGNORECASE,
)
CHOSEN = re.compile(
    r"\b(?:cho(?:o|s)\w+|such that|scal\w+|constrain\w*|requir\w+|impos\w+|want|assum\w+|train\w*|"
    r"learn\w*|fit\w*|tun\w+|pick\w*|select\w*)\b",
    re.IGNORECASE,
)
# A property with which the counterexample complies.
INVERTIBLE = re.compile(r"\b(?:invertible|non-?singular)\b", re.IGNORECASE)


class Conditions(Definitions):
    """Decides whether the condition of a sentence excuses an equation."""

    def _condition_is_used(self, item: Item, found: Found, sides: Sequence[Node]) -> bool:
        """Return whether the condition of a sentence defines symbols, and the verdict uses them."""
        words = self.document.sentence_before(item.formula)
        start = item.formula.start - len(words)
        before = [e for e in self.items if start <= e.formula.start < item.formula.start]
        stated = [s for each in before for s in each.statements if s.relations]
        if any(each.error for each in before):
            return False
        equations = [each for each in stated if each.relations == ("=",)]
        if (
            equations
            and not has_assumption(words, but="if")
            and self._is_false_given(equations, sides, item)
        ):
            return True  # it is false with what the condition says, too
        clauses = self.document.clauses_before(item.formula)
        if supposes(self.context, clauses, sides[0], sides[1], item.line, but="if"):
            return False
        more = [each for each in stated if not self._says_what(each)]
        built = found.suggestion and CONSTRUCTED.search(words)
        if built and self._is_false_given(more, sides, item):
            return True  # “If we replace W by W R” says what is done, and supposes nothing
        edit = found.edit if found.suggestion else ""
        slip = bool(edit) and not self.context.is_excused(edit, item.line)
        if not stated:  # “If nothing happens in between, …”: words alone, and no property
            return slip
        if all(statement.relations == (r"\in",) for statement in stated):
            # “If all rows are shifted by the same row u ∈ …” declares u, and an edit is evidence
            declared = {bare(term) for s in stated for term in (*s.subjects, s.terms[0])}
            mine = {e for s in item.statements for e in walk(s) if isinstance(e, Name)}
            plain = INVERTIBLE.search(words) and not has_assumption(words, but="if")
            slip = found.edit in SLIPS
            return declared <= mine and (slip or bool(plain))
        heads = [bare(each.terms[0]) for each in stated]
        own = {e for side in sides for e in walk(side) if isinstance(e, Name)}
        defines = all(each.relations in (("=",), (r"\in",)) for each in stated)
        named = all(isinstance(e, Name) for e in heads)
        if found.suggestion and defines and named and not own & {*heads}:
            return True  # it defines symbols that are not in the equation
        defined = 0
        for statement in stated:
            if statement.relations == ("=",) and latex(bare(statement.terms[0])) in (
                self.context.definitions
            ):
                defined += 1
            elif statement.relations != (r"\in",):
                return False
        used = {int(row) for row in USED.findall(found.why)}
        return defined > 0 and (slip or bool(used & {each.line for each in (*before, item)}))

    def _is_slip(self, item: Item, found: Found) -> bool:
        """Return whether an edit that no case explains and no word excuses mends an equation."""
        slip = bool(found.suggestion) and found.edit in SLIPS
        return slip and not self.context.is_excused(found.edit, item.line)

    def _is_doubted(self, item: Item, found: Found, sides: Sequence[Node]) -> bool:
        """Return whether words before an equation deny it, or are a condition that excuses it."""
        words = plain_words(self.document.sentence_before(item.formula))
        if is_denied(words):
            return True
        return is_conditional(words) and not self._condition_is_used(item, found, sides)

    def _is_slip_in_words(self, item: Item, found: Found) -> bool:
        """Return whether an edit mends an equation, and the condition after it is words alone."""
        end = self.document.sentence_end(item.formula)
        edit = found.edit if found.suggestion else ""
        if edit not in SLIPS or self.document.formulas_between(item.formula.end, end):
            return False
        return not self.context.is_excused(edit, item.line)

    def _is_false_given(
        self, stated: Sequence[Statement], sides: Sequence[Node], item: Item
    ) -> bool:
        """Return whether a claim is false, too, given what its sentence states: equations."""
        pairs = equations_in(stated)
        given = [Hypothesis(*pair, f"line {item.line}", declared=True) for pair in pairs or ()]
        given += self.context.declared_hypotheses(sides) if given else []
        symbols = self.context.symbols_at(item.line)
        return not stated or bool(given and refuted_by(sides[0], sides[1], given, symbols))

    def _says_what(self, statement: Statement) -> bool:
        """Return whether a statement declares or defines a symbol, or gives a sign."""
        if statement.relations == (r"\in",):
            return True
        head = bare(statement.terms[0])
        if statement.relations == ("=",):
            return isinstance(head, Name) and latex(head) in self.context.definitions
        return is_sign(statement)

    def _concluded(self, item: Item, left: Node, right: Node) -> Found | None:
        """Return the refutation of a conclusion by what is stated before it, or None.

        None if there are formulas about its symbols that were not read, or words that may assume
        more, in the paragraphs that name these.
        """
        mine = keys_in(left) | keys_in(right)
        before = [e for e in self.items if e.formula.start < item.formula.start]
        near = [e for e in before if self.document.is_one_paragraph(e.line, item.line)]
        terms = [(e.line, term) for e in before for s in e.statements for term in s.terms]
        lines = {line for line, term in terms if mine & keys_in(term)}
        lines |= {each.line for each in (*near, item)}
        if any(each.error for each in near):
            return None
        if any(says_more(self.document.words_near(line)) for line in lines):
            return None
        given = self.context.declared_hypotheses([left, right])  # also of other sections
        for each in near:
            stated = equations_in(each.statements)
            if stated is None:
                return None
            given += [Hypothesis(*pair, f"line {each.line}", declared=True) for pair in stated]
        return refuted_by(left, right, given, self.context.symbols_at(item.line)) if given else None

    def _concluded_from_definitions(self, item: Item, left: Node, right: Node) -> Found | None:
        """Return the refutation of a conclusion by definitions on the lines before it, or None.

        “A = softmax(S), so that A 1 = 1” concludes, and assumes nothing of S.
        """
        used: dict[str, Definition] = {}
        others = self.context.instances([left, right])
        sides = [self.context.unfolded(side, used, None, others) for side in (left, right)]
        words = self.document.sentence_before(item.formula)
        near = all(0 <= item.line - each.line <= NEAR for each in used.values())
        if not used or not near or has_assumption(words) or CHOSEN.search(words):
            return None
        symbols = self.context.symbols_at(item.line)
        given = self.context.declared_hypotheses(sides)
        verdict, reading = attempted(sides[0], sides[1], given, symbols)
        if verdict is None or verdict.status != "refuted":
            return None
        why = f"the sides differ at exact numbers, with {named(used)}"
        return Found("refuted", why, verdict.counterexample, reading=reading)
