"""The links of the chains of a document, one after the other, each with its verdict."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from otimes.algebra.budget import STEPS, steps_done
from otimes.algebra.errors import OtimesError
from otimes.algebra.notation.derivatives import transposed
from otimes.algebra.notation.elaborate import elaborate
from otimes.algebra.notation.parser import parse_formula, printed_back
from otimes.algebra.notation.symbols import (
    Declared,
    key_of,
    size_of,
    text_of,
)
from otimes.algebra.notation.tokens import NotationError
from otimes.algebra.notation.tree import (
    Apply,
    Derivative,
    Dots,
    Grid,
    Group,
    Name,
    Node,
    Power,
    Product,
    Space,
    Statement,
    Sum,
    bare,
    is_constant,
    latex,
    walk,
)
from otimes.algebra.notation.typed import FormulaShapeError
from otimes.algebra.notation.vocabulary import CONDITIONS
from otimes.proofs.documents.arithmetic import computed
from otimes.proofs.documents.assumptions import assumes, plain_words
from otimes.proofs.documents.attempts import attempted, named, symbols_in
from otimes.proofs.documents.by_members import by_members
from otimes.proofs.documents.circumstances import (
    CONDITIONAL,
    EXPECTATION,
    announces_definition,
    doubted_by,
    follows_from_more,
    has_condition_after,
    has_unit_after,
    is_conditional,
    is_denied,
    is_goal,
    is_named_in_words,
    is_of_a_moment,
    is_of_another,
    is_of_another_case,
    is_of_differentials,
    is_revised,
    opens_case,
    says_what_a_word_means,
    without_existence,
)
from otimes.proofs.documents.closed_sums import by_recurrence
from otimes.proofs.documents.conclusions import equations_in, is_concluded, refuted_by, says_more
from otimes.proofs.documents.consistency import dotted_vectors
from otimes.proofs.documents.context import Context, Definition
from otimes.proofs.documents.declared_again import declared_again, without
from otimes.proofs.documents.declared_in_formulas import declared_as
from otimes.proofs.documents.definitions import Definitions
from otimes.proofs.documents.derivatives import by_chain_rule, turned_gradients
from otimes.proofs.documents.every_reading import has_assumption
from otimes.proofs.documents.factorisations import factored
from otimes.proofs.documents.false_claims import ASSUMPTION, COMMUTE, DIFFER
from otimes.proofs.documents.found import Found
from otimes.proofs.documents.hypotheses import Hypothesis
from otimes.proofs.documents.items import Item
from otimes.proofs.documents.parts_of_functions import of_part
from otimes.proofs.documents.pseudo_inverses import PENROSE, conditions, is_pseudo_inverse
from otimes.proofs.documents.recurrences import is_of, recurs
from otimes.proofs.documents.related import keys_in
from otimes.proofs.documents.report import Equation
from otimes.proofs.documents.rotations import rotated_rightly, rotated_wrongly
from otimes.proofs.documents.signs import is_sign
from otimes.proofs.documents.source import Document
from otimes.proofs.documents.suppositions import supposes
from otimes.proofs.documents.suspects import Use
from otimes.proofs.documents.terms import (
    are_shapes,
    has_trace,
    is_order,
    is_range,
    is_value,
    occurs,
    size_name,
)
from otimes.proofs.documents.unrolled import unrolled
from otimes.proofs.documents.wrong_declarations import Judged
from otimes.proofs.documents.wrong_definitions import EQUALS, USED, WrongDefinitions

SLIPS = ("swap", "transpose", "sign", "index")  # edits that no other case explains
OTHER_CASE = "it may be about another case than the definition before"
MOST_WORK = 300.0  # units of work for the equations of one document
SPENT = "the work for one document is used up by the equations before: check it in several files"
TRANSPOSED = re.compile(
    r"\^(?:\{\s*(?:\\top|T|\\intercal)\s*\}|\\top\b|\\intercal\b|T(?![A-Za-z]))|ᵀ"
)
NEAR = 6  # lines before a conclusion in which definitions are what it follows from
TOLD = 25  # formulas after which progress is told
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
SO_THAT = re.compile(r"\b(?:so that|so|hence|thus|therefore)[\s$]*\Z", re.IGNORECASE)
CHOSEN = re.compile(
    r"\b(?:cho(?:o|s)\w+|such that|scal\w+|constrain\w*|requir\w+|impos\w+|want|assum\w+|train\w*|"
    r"learn\w*|fit\w*|tun\w+|pick\w*|select\w*)\b",
    re.IGNORECASE,
)
# “If $G$ is the gradient of the loss by $Y$” says what G is.
GRADIENT_IF = re.compile(
    r"\bif\b(?=[^.;,]{0,80}\b(?:is|be|denotes)\s+the\s+(?:\w+\s+)?(?:gradient|derivative)\b)",
    re.IGNORECASE,
)
LAYOUT = re.compile(
    r"\b(?:layout|convention|notation|numerator|denominator|jacobian)\b", re.IGNORECASE
)
TURNED = "true if the derivative has the shape of the transpose"
# A property with which the counterexample complies.
INVERTIBLE = re.compile(r"\b(?:invertible|non-?singular)\b", re.IGNORECASE)
# An environment with rows of its own; around them `&` and `\\` only align the lines of a display.
GRID = re.compile(
    r"(\\begin\{(?:\w*matrix\*?|cases|array)\}.*?\\end\{(?:\w*matrix\*?|cases|array)\})",
    re.DOTALL,
)
BREAK = re.compile(r"(?<!\\)&|\\\\(?:\s*\[[^\]]*\])?")
COMMENT = re.compile(r"(?:&|\\q?quad|\s)*(?:\\(?:text|tag)\{[^{}]*\}\s*)+\\\\")  # at a row's end
MACRO = re.compile(r"\\[A-Za-z]+")
DEFINES = frozenset((":=", r"\triangleq", r"\leftarrow", r"\mapsto"))
STATES = re.compile(r"=|≈|∈|←|\\(?:approx|in|leftarrow|triangleq|equiv|le|leq|ge|geq)\b")


class LinkChecker(Definitions):
    """Judges formulas in order; `blamed` are the declarations that proofs contradict."""

    begun = 0  # the steps that were done before

    def __init__(self, document: Document, context: Context, items: list[Item]) -> None:
        super().__init__(document, context, items)
        self.cases: dict[str, int] = {}  # symbols that have a value for one paragraph, with lines
        self.layouts: dict[bool, int] = {}  # whether derivatives have the other shape, first lines
        self.moments: dict[str, tuple[int, Hypothesis]] = {}  # constants of a sentence or section
        self.wrong = WrongDefinitions(document, context)
        ones = [(offset, name, None) for offset, name in context.ones]
        self.named: list[tuple[int, Name, Node | None]] = [*ones, *context.gradients]
        self.named.sort(key=lambda each: each[0])
        self.said = 0  # how many of the symbols that words define are defined

    def equations(self, on_progress: Callable[[int, int], None] | None = None) -> list[Equation]:
        """Return the equations of the formulas, with their verdicts."""
        found: list[Equation] = []
        self.begun = steps_done()
        for k, item in enumerate(self.items):
            if on_progress is not None and k % TOLD == 0:
                on_progress(k, len(self.items))
            found += self.of_item(item)
            for statement in item.statements:
                if statement.relations:
                    self.seen |= {latex(e) for e in walk(statement) if isinstance(e, Name)}
        self.wrong.name()
        return found

    def of_item(self, item: Item) -> Iterator[Equation]:
        """Yield the equations of one formula."""
        self._leave_cases(item.line)
        self._leave_moments(item.formula.start)
        while self.said < len(self.named):
            offset, name, value = self.named[self.said]
            if offset > item.formula.start:
                break
            self.said += 1
            row = self.document.row(offset)
            if value is not None:
                self.context.definitions.pop(latex(name), None)
            if not is_constant(name):
                self.context.define(name, value or self._ones(name, row), row)
        if item.error is not None:
            if self._states(item):
                yield self._unread(item, item.error)
            return
        states = any(statement.relations for statement in item.statements)
        self.context.sentence = self.document.sentence(item.formula)
        if states and not printed_back(
            item.statements,
            self.context.base.functions,
            self.context.base.values - self.context.base.functions,
        ):
            yield self._unread(item, NotationError("printed back it is another formula"))
            return
        for statement in item.statements:
            if not statement.relations:
                yield from self.expression(item, statement)
                continue
            links: dict[int, tuple[Equation, Found]] = {}
            for k in range(len(statement.relations)):
                try:
                    spent = steps_done() - self.begun > MOST_WORK * STEPS
                    found = Found("undecided", SPENT) if spent else self.link(item, statement, k)
                    found = found and self._unless_declared_again(item, statement, k, found)
                except RecursionError:
                    found = Found("unread", "it is nested too deeply")
                except OtimesError as error:  # the others are decided
                    found = Found("undecided", str(error))
                if found is not None:
                    links[k] = self._equation(item, statement, k, found), found
                    yield links[k][0]
            self.wrong.note(item, statement, links)

    def _ones(self, name: Name, line: int) -> Node:
        """Return a column of ones, of as many entries as a symbol is declared with."""
        known = self.context.symbols_at(line).lookup(name)[1]
        size = "".join(map(str, known.rows)) if known is not None else ""
        below = rf"_{{{size}}}" if re.fullmatch(r"[A-Za-z](?:_[A-Za-z])?|\d+", size) else ""
        return parse_formula(rf"\mathbf{{1}}{below}")[0].terms[0]

    def _unless_declared_again(
        self, item: Item, statement: Statement, k: int, found: Found
    ) -> Found:
        """Return a proof without what was said of symbols before these were declared again."""
        if found.verdict != "proved":
            return found
        left, right = statement.terms[k], statement.terms[k + 1]
        again = declared_again(self.context, [left, right], item.line)
        if again is None:
            return found
        rows = [int(row) for row in USED.findall(found.why)]
        if rows and not found.hypotheses and min(rows) >= max(at for _, (_, at) in again.pairs):
            return found  # what is used was said after that
        with without(self.context, again):
            anew = self.judge.claim(left, right, item.line, item.formula.tex)
        return anew if anew.verdict == "proved" else Found("needs-hypothesis", str(again))

    def _states(self, item: Item) -> bool:
        """Return whether a formula that was not read may state something."""
        tex = item.formula.tex
        if re.fullmatch(r"\s*\\[A-Za-z]+\s*", tex):  # a sign by itself
            return False
        unbalanced = any(tex.count(a) != tex.count(b) for a, b in ("()", "{}"))
        return bool(STATES.search(tex)) or item.formula.display or unbalanced

    def _unread(self, item: Item, error: NotationError) -> Equation:
        line, column = self.document.position(item.formula.offset(error.span[0]))
        return self._made(item, line, column, item.formula.tex, Found("unread", str(error)))

    def _equation(self, item: Item, statement: Statement, k: int, found: Found) -> Equation:
        left, right = statement.terms[k], statement.terms[k + 1]
        start = left.span[0] if k == 0 else right.span[0]
        start = min(statement.span[0], start) if k == 0 else start
        tex = item.formula.tex[(statement.span[0] if k == 0 else left.span[0]) : right.span[1]]
        line, column = self.document.position(item.formula.offset(start))
        if found.suggestion:
            found = replace(found, suggestion=self._as_written(item, statement, found.suggestion))
        for key in found.blamed:
            self.blamed.setdefault(key, []).append(f"{_short(tex)} on line {line}")
        return self._made(item, line, column, tex, found, (start, right.span[1]))

    def _made(
        self,
        item: Item,
        line: int,
        column: int,
        tex: str,
        found: Found,
        span: tuple[int, int] | None = None,
    ) -> Equation:
        start, end = span or (0, len(item.formula.tex))
        return Equation(
            self.document.name,
            line,
            column,
            _in_one_line(tex),
            found.verdict,
            self.document.named_lines(found.why),
            found.counterexample,
            found.suggestion,
            found.reading,
            found.hypotheses,
            cell=self.document.cell(item.formula.start),
            span=(item.formula.offset(start), self._end(item, max(end - 1, start))),
            facts=tuple(sorted(found.facts)),
        )

    def _as_written(self, item: Item, statement: Statement, tex: str) -> str:
        """Return LaTeX with the symbols of a formula as they are written in the document."""
        written: dict[str, str] = {}
        derivatives: dict[str, str] = {}
        for e in walk(statement):
            begin, end = e.span
            if isinstance(e, Name | Derivative) and 0 <= begin < end:
                own = self.document.text[item.formula.offset(begin) : self._end(item, end - 1)]
                (written if isinstance(e, Name) else derivatives).setdefault(latex(e), own)
        found = _replaced_in(tex, written)
        turned = TRANSPOSED.search(item.formula.tex)
        if turned is not None:
            found = re.sub(r"\^\{T\}(?=([A-Za-z])?)", lambda m: turned[0] + " " * bool(m[1]), found)
        try:
            same = parse_formula(found, self.context.base.functions) == parse_formula(
                tex, self.context.base.functions
            )
        except NotationError:  # a macro of the document
            same = "\\" in found
        return _replaced_in(found if same else tex, derivatives)

    def _end(self, item: Item, last: int) -> int:
        """Return where in the document a formula's character ends, or the macro it comes from."""
        at = item.formula.offset(last)
        name = MACRO.match(self.document.text, at)
        return name.end() if name else at + 1

    def expression(self, item: Item, statement: Statement) -> Iterator[Equation]:
        """Report a formula without a relation if its shapes do not match, or words equate it."""
        term = statement.terms[0]
        said = self._said_of_a_part(item, statement)
        if said is not None:
            part, about = said
            line, column = self.document.position(item.formula.offset(statement.span[0]))
            tex = item.formula.tex[slice(*statement.span)]
            equation = self._made(item, line, column, tex, about, statement.span)
            stated = replace(statement, terms=(part, term), relations=("=",))
            self.wrong.note(item, stated, {0: (equation, about)})
            yield equation
            return
        if not isinstance(bare(term), Product | Sum) or any(
            mark == r"\times" for mark in getattr(bare(term), "marks", ())
        ):
            return
        symbols = self.context.symbols_at(item.line)
        for (key, line), known in self._contradicted().items():
            if line <= item.line:
                symbols.known[key] = known
        for circuit in ("W_OV", "W_QK"):  # square by what they are, as wide as the stream
            if circuit not in symbols.known and "d" in symbols.sizes():
                symbols.known[circuit] = Declared("matrix", ("d",), ("d",))
        found = self.judge.shapes([term], item.line, item.formula.tex, symbols)
        if found is None:
            doubt = dotted_vectors(term, symbols)
            found = Found("needs-hypothesis", doubt) if doubt else None
        if found is not None:
            line, column = self.document.position(item.formula.offset(statement.span[0]))
            tex = item.formula.tex[slice(*statement.span)]
            equation = self._made(item, line, column, tex, found, statement.span)
            self.wrong.judged.append(Judged(equation, Use((term, term), {}, item.line)))
            yield equation

    def _said_of_a_part(self, item: Item, statement: Statement) -> tuple[Node, Found] | None:
        """Return a row or a column that words say a formula is, and the verdict, None if open."""
        part = self.context.parts.get(item.formula.start)
        if part is None or len(item.statements) > 1:
            return None
        known = self.context.definitions.get(latex(part.whole))
        words = plain_words(self.document.sentence_before(item.formula))
        if not known or not self.context.in_scope(known[0].line, item.line) or doubted_by(words):
            return None
        term = statement.terms[0]
        every = [(e, self.judge.claim(e, term, item.line, "")) for e in part.readings()]
        proved = [each for each in every if each[1].verdict == "proved"]
        refuted = [each for each in every if each[1].verdict == "refuted"]
        if proved:
            return proved[0]
        if refuted and all(found.is_wrong for _, found in every):
            return refuted[0][0], replace(refuted[0][1], against=(known[0].line,))
        return None

    def _contradicted(self) -> dict[tuple[str, int], Declared]:
        """Return the declarations that equations contradict; others follow them."""
        return {
            (key, line): known
            for key, line in sorted(self.context.wrong)
            for known in self.context.declarations_of(key)
            if known.line == line
        }

    def link(self, item: Item, statement: Statement, k: int) -> Found | None:
        """Return the verdict on a link of a chain, or None where it states nothing to judge."""
        relation, left, right = statement.relations[k], statement.terms[k], statement.terms[k + 1]
        source = item.formula.tex
        if relation in (r"\in", r"\notin"):
            return self._membership(item, statement, k) if isinstance(right, Space) else None
        if relation in DEFINES:
            return self._definition(item, left, right, always=True)
        if relation in EQUALS:
            return self._equality(item, statement, k)
        nearly = relation in (r"\approx", r"\simeq")
        if relation == ":" or (k and statement.relations[k - 1] == ":"):
            return Found("definition", "it says between which sets a function maps")
        if is_range(left) and is_range(right) and not nearly:
            return None
        shape = self.judge.shapes([left, right], item.line, source)
        if shape is not None and nearly:
            return self.judge.of_this_section(shape, [left, right], item.line)
        found = self._other(item, relation, left, right) if shape is None else None
        if found is not None:
            return found
        what = "an approximation" if nearly else f"a statement with {relation}"
        return Found("undecided", f"it is {what}, and equations are decided")

    def _other(self, item: Item, relation: str, left: Node, right: Node) -> Found | None:
        """Return the verdict on a statement that is no equation, None where it is open."""
        from otimes.proofs.documents.inequalities import approximate, compared, different

        source = item.formula.tex
        if relation in (r"\approx", r"\simeq"):
            return approximate(self.judge, left, right, item.line, source)
        if relation != r"\ne":
            found = compared(self.judge, left, right, relation, item.line)
        else:
            found = different(self.judge, left, right, item.line, source)
        words = plain_words(self.document.sentence_before(item.formula))
        doubted = doubted_by(words)
        if found is not None and found.verdict == "refuted" and doubted:
            return replace(found, verdict="undecided")
        return found

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

    def _membership(self, item: Item, statement: Statement, k: int) -> Found:
        term, space = bare(statement.terms[k]), statement.terms[k + 1]
        if k and statement.relations[k - 1] == "=" and any(isinstance(e, Dots) for e in walk(term)):
            term = bare(statement.terms[k - 1])  # `X = [x_1, \dots, x_n] \in ℝ^{d×n}`
            if isinstance(term, Name):
                return Found("definition", "it declares a shape")
        if isinstance(term, Name) and k == 0:
            return Found("definition", "it declares a shape")
        sizes = [size_of(size) for size in getattr(space, "sizes", ())]
        declared = declared_as(sizes, item.line)
        if declared is None:
            return Found("undecided", "the sizes of the space are not read")
        symbols = self.context.symbols_at(item.line)
        symbols.known["⟨member⟩"] = replace(declared, line=item.line)
        member = Name("⟨member⟩", span=space.span)
        try:
            read = elaborate([statement.terms[k], member], symbols, item.formula.tex)
        except FormulaShapeError as error:
            if any(isinstance(atom, int) and atom > 1 for size in sizes for atom in size or ()):
                return Found("undecided", f"{error}; the numbers may be an example")
            why = str(error).replace("⟨member⟩", "the space")
            found = Found("shape", why, span=error.span)
            return self.judge.of_this_section(found, [term], item.line)
        except OtimesError as error:
            return Found("undecided", str(error))
        for key, kind in read.undeclared.items():  # a shape that the space leaves no choice of
            shape = read.shapes.get(key)
            if shape is None or not {a for size in shape for a in size} <= {*symbols.sizes(), 1}:
                continue
            if kind == "matrix" and key not in symbols.known:
                self.context.declared.append((key, Declared("matrix", *shape, item.line)))
        return Found("definition", "the shape is as it is said")

    def _of_order(self, item: Item, left: Node, right: Node) -> Found | None:
        """Return the verdict on an equation up to an order, `… + O(x^2)`, None on another."""
        if not any(isinstance(e, Name) and e.base == "O" for e in walk(right)):
            return None
        from otimes.proofs.documents.approximations import of_order

        return of_order(self.judge, left, right, item.line)

    def _said_again(self, item: Item, left: Node, right: Node) -> Found | None:
        """Return the verdict on an equation that a definition at other indices decides."""
        others = self.context.instances([left, right])
        said = others.get(latex(bare(left)))
        if said is None or isinstance(said.lhs, Apply):
            return None
        if not self.context.in_scope(said.line, item.line) or _has_first_case(item, left, right):
            return None
        found = self.judge.claim(left, right, item.line, item.formula.tex)
        if found.verdict == "proved":
            return found
        apart = {t: d for t, d in others.items() if not self.context.is_member(d.lhs)}
        for each in (others, apart):  # rows of a matrix may be put in on one side only
            used: dict[str, Definition] = {}
            put, by = (self.context.unfolded(side, used, None, each) for side in (left, right))
            if keys_in(put) == keys_in(by):
                break
        words = plain_words(self.document.sentence_before(item.formula))
        if keys_in(put) != keys_in(by) or doubted_by(words):
            return None
        found = self.judge.claim(Group(put), by, item.line, "")
        members = any(self.context.is_member(e) for e in walk(right))
        if found.verdict != "refuted" and not (found.verdict == "shape" and members):
            return None
        return replace(found, why=f"{found.why}; with {named(used)}", against=(said.line,))

    def _stacked(self, item: Item, left: Node, right: Node) -> Found | None:
        """Return the verdict on a matrix whose rows or columns are defined one by one, or None."""
        judged = partial(self.judge.claim, line=item.line, source="")
        found = by_members(self.context, left, right, item.line, judged)
        words = plain_words(self.document.sentence_before(item.formula))
        if found is None or (found.verdict != "proved" and doubted_by(words)):
            return None
        if not self.context.definitions.get(latex(bare(left))):
            self.context.define(bare(left), right, item.line)
        return found

    def _restated(self, item: Item, left: Node, right: Node) -> Found | None:
        """Return the verdict on a second definition that says the first again, or None.

        “We write S = X W X^T” after S = Q K^T claims that both are equal. Where they are not, one
        edit of it tells a mistake from a new S.
        """
        known = self.context.definitions.get(latex(bare(left)))
        if not known or not self.context.in_scope(known[0].line, item.line):
            return None
        found = self.judge.claim(left, right, item.line, item.formula.tex)
        if found.verdict == "proved":
            return found
        if found.verdict != "refuted" or not found.suggestion:
            return None
        words = plain_words(self.document.sentence_before(item.formula))
        since = self.document.prose[self.document.lines[known[0].line - 1] : item.formula.start]
        revised = is_revised(since) or is_of_another(words) or doubted_by(words)
        return None if revised or self._redefines(left, right, item) else found

    def _of_part(self, item: Item, left: Node, right: Node) -> Found | None:
        """Return the verdict on a part of a function of which the whole is defined before."""
        judged = partial(self.judge.claim, line=item.line, source="")
        found = of_part(self.context, left, right, item.line, judged)
        words = plain_words(self.document.sentence_before(item.formula))
        return None if found is not None and found.is_wrong and doubted_by(words) else found

    def _unrolled(self, item: Item, left: Node, right: Node) -> Found | None:
        """Return the refutation of a sum by the recurrence that it unrolls, or None."""
        name = bare(left)
        words = plain_words(self.document.sentence_before(item.formula))
        if not isinstance(name, Name) or doubted_by(words):
            return None
        for said in self.context.generic.get(key_of(name), ()):
            found = unrolled(left, right, said)
            if found is not None and self.context.in_scope(said.line, item.line):
                return replace(found, against=(said.line,))
        return None

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

    def _applied(self, left: Node, right: Node, item: Item) -> Found | None:
        """Return the verdict on a function of arguments that its definition decides, or None."""
        term = bare(left)
        if not isinstance(term, Apply) or latex(term) in self.context.definitions:
            return None
        said = self.context.instances([term]).get(latex(term))
        if said is None or not self.context.in_scope(said.line, item.line):
            return None
        found = self.judge.claim(left, right, item.line, item.formula.tex)
        if found.verdict == "undecided":
            found = self.judge.shapes([Group(said.rhs), right], item.line, "") or found
        plain = all(isinstance(bare(each), Name) for each in term.arguments)
        sure = found.verdict in ("proved", "refuted", "shape")
        return found if sure or not plain else None

    def _inverted(self, left: Node, right: Node, item: Item) -> Found | None:
        """Return the verdict on a pseudo-inverse by the conditions of Penrose, None if open.

        Exactly one matrix satisfies all four.
        """
        whole = bare(left)
        if not (is_pseudo_inverse(whole) and self.context.pseudo):
            return None
        if latex(whole) in self.context.definitions:
            return None
        used: dict[str, Definition] = {}
        base = Group(self.context.unfolded(whole.base, used))
        with_definitions = f", with {named(used)}" if used else ""
        given: list[str] = []
        for condition in conditions(base, Group(right)):
            found = self.judge.claim(*condition, item.line, "")
            given += found.hypotheses
            if found.verdict == "refuted" and not has_assumption(
                self.document.sentence_before(item.formula)
            ):
                shown = conditions(whole.base, whole)[0]
                why = f"{found.why}; a pseudo-inverse has {latex(shown[0])} = {latex(shown[1])}"
                return replace(found, why=f"{why}{with_definitions}", suggestion="")
            if found.verdict != "proved":
                return None
        self.context.define(whole, right, item.line)
        why = f"it satisfies the four conditions of Penrose{with_definitions}"
        return Found("proved", why, hypotheses=tuple(dict.fromkeys(given)), facts=PENROSE)

    def _derived(self, left: Node, right: Node, item: Item) -> Found | None:
        """Return the verdict on a derivative that definitions and the chain rule decide, or None.

        A number may depend on a matrix in ways that are not said: a term more is no error.
        """
        chain = by_chain_rule(self.context, left, right, item.line)
        if chain is None:
            return None
        found = self.judge.claim(chain.value, chain.other, item.line, "")
        if found.verdict == "shape":
            alone = self.judge.shapes([left, right], item.line, item.formula.tex)
            if alone is None and LAYOUT.search(self.document.sentence(item.formula)):
                return Found("needs-hypothesis", TURNED)
            if alone or found.suggestion:
                return alone or found
            of = Power(Group(chain.other), "T")
            turned = self.judge.claim(chain.value, of, item.line, "")
            if turned.verdict == "proved":
                mended = f"{latex(left)} = {latex(Power(Group(right), 'T'))}"
                return replace(found, suggestion=mended)
            turned_within = turned_gradients(chain.other)
            layouts = [turned_within, Power(Group(turned_within), "T")]
            every = [self.judge.claim(chain.value, each, item.line, "") for each in layouts]
            words = GRADIENT_IF.sub("", self.document.sentence_before(item.formula))
            wrong = all(each.verdict == "shape" for each in (turned, *every))
            return found if wrong and not has_assumption(words) else None
        if found.verdict == "refuted":
            other = transposed([chain.value, chain.other])
            if other and self.judge.claim(other[0], other[1], item.line, "").verdict == "proved":
                return Found("needs-hypothesis", TURNED)
            if has_assumption(GRADIENT_IF.sub("", self.document.sentence_before(item.formula))):
                return None
            single = not isinstance(bare(chain.other), Sum)  # another dependence adds a term
            if not (chain.whole or single) and found.edit in ("", "term"):
                why = f"the chain rule gives another value, with {chain.how}"
                return Found("needs-hypothesis", f"{why}: are there other dependences?")
        elif found.verdict != "proved":
            return None
        self.context.define(bare(left), right, item.line)
        found = replace(found, why=f"{found.why}; by the chain rule, with {chain.how}")
        return self._in_one_layout(found, left, right, item.line)

    def _in_one_layout(self, found: Found, left: Node, right: Node, line: int) -> Found:
        """Return a proof, in question if derivatives before have the shape of the transpose."""
        asked = bare(left)
        if not isinstance(asked, Derivative) or found.verdict != "proved":
            return found
        as_it_is = self.judge.shapes([replace(asked, gradient=True), right], line, "") is None
        turned = Power(Group(right), "T")
        as_other = self.judge.shapes([replace(asked, gradient=True), turned], line, "") is None
        if as_it_is == as_other:  # a square matrix
            return found
        said = self.layouts.setdefault(not as_it_is, line)
        other = self.layouts.get(as_it_is, 0)
        if not 0 < other < said:
            return found
        why = f"{found.why}; in the other layout of derivatives than on line {other}"
        return replace(found, verdict="needs-hypothesis", why=why)

    def _is_of_another_case(self, item: Item, found: Found, said: int) -> bool:
        """Return whether a sentence may define a symbol for another case than on the line `said`.

        It does not where one edit of a kind that no case explains makes both definitions agree.
        """
        slip = found.edit in SLIPS and found.suggestion
        if slip and not self.context.is_excused(found.edit, item.line):
            return False
        since = self.document.prose[self.document.lines[said - 1] : item.formula.start]
        since = re.split(r"\n\s*\n", since)[-1]
        words = self.document.sentence_before(item.formula), self.document.sentence(item.formula)
        return any(is_of_another_case(each, since) for each in words)

    def _is_derived_anew(self, left: Node, item: Item) -> bool:
        """Return whether a derivative was given in another paragraph, maybe of another number."""
        known = self.context.definitions.get(latex(bare(left)), ())
        return any(not self.context.together(each.line, item.line) for each in known)

    def _declare_again(self, name: Node, line: int) -> None:
        """Record that a symbol is the one declared before, where its definition is said again."""
        said = self.context.definitions.get(latex(name))
        if not said or not isinstance(name, Name) or name.sub or name.sup:
            return
        key, known = self.context.symbols_at(line).lookup(name)
        if known is not None and known.line and not self.context.in_scope(known.line, line):
            self.context.declared.append((key, replace(known, line=line)))
            said[0] = replace(said[0], line=line)

    def _is_assumed(self, left: Node, right: Node, line: int) -> bool:
        """Return whether an equation is itself a hypothesis that the text declares."""
        sides = [latex(left), latex(right)]
        declared = [each for each in self.context.hypotheses if each.declared]
        return any(
            [latex(h.lhs), latex(h.rhs)] == sides and h.origin == f"line {line}" for h in declared
        )

    def _is_again(self, left: Node, right: Node, item: Item) -> bool:
        """Return whether an equation that conforms by itself is about a symbol that is defined."""
        known = isinstance(bare(left), Name) and latex(bare(left)) in self.context.definitions
        return known and self.judge.shapes([left, right], item.line, item.formula.tex) is None

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

    def _has_values(self, left: Node, right: Node, why: str, line: int) -> bool:
        """Return whether a section gives a symbol numbers with which a claim was not decided."""
        names = {latex(e) for side in (left, right) for e in walk(side) if isinstance(e, Name)}
        for text in names & self.given_numbers:
            known = self.context.numbers.get(text, ())
            here = not known or any(self.context.in_scope(each.line, line) for each in known)
            if here and f"{text} as on line" not in why:
                return True
        return False

    def _equality(self, item: Item, statement: Statement, k: int) -> Found:
        left, right = statement.terms[k], statement.terms[k + 1]
        source = item.formula.tex
        words = without_existence(plain_words(self.document.sentence_before(item.formula)))
        first = k == 0 and statement is item.statements[0]
        if are_shapes(left) and are_shapes(right):
            return Found("definition", "it relates shapes")
        if all(map(is_order, (left, right))):
            return Found("undecided", "it compares orders of growth")
        if (order := self._of_order(item, left, right)) is not None:
            doubted = order.verdict == "refuted" and doubted_by(words)
            return replace(order, verdict="undecided") if doubted else order
        if k == 0 and isinstance(bare(left), Name) and is_value(right):
            known = self.context.definitions.get(latex(bare(left)))
            if known and isinstance(bare(right), Grid) and not is_value(known[0].rhs):
                found = self.judge.in_numbers(left, right, item.line)
                if found is not None:
                    return found
            name = bare(left)
            if isinstance(name, Name) and self.context.has_exponent(name):
                power = self.judge.in_numbers(left, right, item.line)
                if power is not None:
                    return power
            self._note_matrix(bare(left), right, item)
            return Found("definition", "it is a value")
        sizes = self.context.symbols_at(item.line).sizes()
        if (size_name(left) in sizes or size_name(right) in sizes) and not has_trace(left):
            if (
                k == 0
                and isinstance(bare(left), Name)
                and latex(bare(left)) not in (self.context.definitions)
            ):
                self.context.define(bare(left), right, item.line)
                self.context.sizes.add(latex(bare(left)))
                if any(map(is_value, statement.terms)):  # of an example: `d = k = 2`
                    self.cases[latex(bare(left))] = item.line
            return Found("definition", "it relates sizes")
        turned = rotated_wrongly(left, right) if self.document.has_rotations else None
        if turned is not None and not (is_denied(words) or CONDITIONAL.search(words)):
            return turned
        announced = first and announces_definition(words)
        if is_of_differentials(left, right):
            return Found(
                "undecided", "a d before a matrix may be a differential: it is not decided"
            )
        if first and is_goal(words) and self._defines(left, right, False, item.line):
            return Found("undecided", "it is to be shown, and its left side is not defined")
        applied = self._applied(left, right, item) if k == 0 else None
        if applied is not None and applied.verdict == "refuted" and doubted_by(words):
            return replace(applied, verdict="undecided", why="it is false without the condition")
        if applied is not None:
            return applied
        stacked = self._stacked(item, left, right) if k == 0 else None
        if stacked is not None:
            return stacked
        derived = self._inverted(left, right, item) if k == 0 else None
        if derived is not None:
            return derived
        derived = self._derived(left, right, item) if k == 0 else None
        if derived is not None:
            return derived
        if k == 0 and isinstance(bare(left), Derivative) and self._is_derived_anew(left, item):
            return Found("undecided", "it may be the derivative of another number than before")
        known = self.context.definitions.get(latex(bare(left))) if k == 0 else None
        if known and isinstance(bare(right), Grid) and not is_value(known[0].rhs):
            found = self.judge.in_numbers(left, right, item.line)
            if found is not None:
                return found
        restated = self._restated(item, left, right) if announced else None
        if restated is not None:
            return restated
        if k == 0 and self._defines(left, right, announced, item.line):
            said = (
                self._said_again(item, left, right)
                or self._of_part(item, left, right)
                or self._unrolled(item, left, right)
            )
            if said is None and self._is_given_a_constant(left, right, item.line):
                given = Hypothesis(left, right, f"line {item.line}", False, item.line)
                sentence = is_of_a_moment(words)
                end = self.document.sentence_end(item.formula) if sentence else None
                end = self.document.next_heading(item.line) if end is None else end
                self.moments[latex(bare(left))] = end, given
            elif said is None and first and self._is_case(left, words, item.line):
                self.cases[latex(bare(left))] = item.line
            if said is not None and said.verdict == "proved":
                self.context.define(bare(left), right, item.line)
            before = known[0].line if known and said is None else 0
            found = said or self._definition(item, left, right)
            if before and found.is_wrong and self._is_of_another_case(item, found, before):
                return replace(found, verdict="undecided", why=OTHER_CASE)
            return found
        if (
            k == 0
            and isinstance(bare(right), Name)
            and self._is_new(right)
            and not (occurs(bare(right), left))
        ):
            return self._definition(item, right, left)
        here = statement is item.statements[0]
        if here and assumes(words) and not isinstance(bare(statement.terms[0]), Name | Apply):
            shape = self.judge.shapes([left, right], item.line, source)
            return shape or Found("definition", "it is assumed")
        if self._is_assumed(left, right, item.line):
            return Found("definition", "it is assumed")
        product = factored(left, right, words, item.line) if first else None
        defined = self.context.definitions.keys()
        if product is not None and self.judge.shapes([left, right], item.line, source) is not None:
            product = None  # as with the square of a rectangular matrix
        if product is not None and not {latex(e) for e in walk(right)} & defined:
            self.context.factorisations.append(product)
            return Found("definition", "it says what a product is")
        found = computed(self.context, left, right, item.line) or self.judge.claim(
            left, right, item.line, source
        )
        if k and COMMUTE in found.why and self._is_a_step([left, right], item.line):
            return replace(found, verdict="refuted", why=f"{DIFFER}: {found.why}")
        if k == 0 and found.verdict in ("undecided", "needs-hypothesis"):
            solved = self._by_recurrence(item, left, right)
            if solved is not None and solved.is_wrong:
                return solved
            found = solved or found
        open_ = found.verdict in ("refuted", "undecided", "needs-hypothesis")
        if open_ and self.document.has_rotations and rotated_rightly(left, right):
            return Found("needs-hypothesis", "true where rotations add their angles")
        if k == 0 and found.verdict == "proved":
            self._declare_again(bare(left), item.line)
        if first and found.why.startswith(ASSUMPTION):
            concluded = is_concluded(words)
            if concluded or SO_THAT.search(words):
                found = self._concluded_from_definitions(item, left, right) or found
            if concluded and found.why.startswith(ASSUMPTION):
                found = self._concluded(item, left, right) or found
        if k == 0 and found.verdict in ("undecided", "needs-hypothesis", "refuted"):
            new = self._introduced(left, right)
            if new:
                self.introduced |= dict.fromkeys(new, item.line)
                given = Hypothesis(left, right, f"line {item.line}", True, item.line)
                self.context.hypotheses.append(given)
                return Found("definition", f"it introduces {', '.join(new)}")
        if k == 0 and self._describes(left, right, item.line):
            given = Hypothesis(left, right, f"line {item.line}", True, item.line)
            self.context.hypotheses.append(given)
            return Found("definition", "it says what a symbol is that was just introduced")
        known = self.context.definitions.get(latex(bare(left))) if k == 0 else None
        elsewhere = known is not None and not self.context.in_scope(known[0].line, item.line)
        if elsewhere and found.verdict != "proved":
            self.context.definitions.pop(latex(bare(left)))
            return self._definition(item, left, right)
        conditional = any(each.after for each in item.statements)
        if conditional and statement.after in CONDITIONS and found.verdict != "proved":
            return Found("definition", "it is a condition")
        accused = found.verdict in ("refuted", "shape") and first
        if accused and says_what_a_word_means(words, left, right):
            return Found("definition", "it says what a word means")
        if has_condition_after(self.document, item.formula):
            conditional = conditional or not self._is_slip_in_words(item, found)
        if (
            is_conditional(words)
            and not conditional
            and self._condition_is_used(item, found, [left, right])
        ):
            words = ""
        if found.verdict == "refuted" and (conditional or is_conditional(words)):
            return replace(found, verdict="undecided", why="it is false without the condition")
        if found.verdict == "refuted" and is_denied(words):
            return replace(
                found, verdict="undecided", why="it is false, and the sentence denies something"
            )
        begins = item.formula.tex[: left.span[0]]
        named = isinstance(bare(left), Name) and is_named_in_words(begins)
        if found.verdict in ("refuted", "shape") and k == 0 and named:
            why = "its left side is named in words"
            return replace(found, verdict="undecided", why=why)
        again = found.verdict == "shape" and k == 0 and self._is_again(left, right, item)
        if again and self._misfit_within(item, right) is None:  # what conforms may define it anew
            return replace(found, verdict="undecided", why="it says otherwise than the definition")
        if found.verdict == "shape" and k == 0 and self._is_other(left, right, item):
            return replace(found, verdict="undecided", why=f"{found.why}; it is defined otherwise")
        if found.is_wrong and known and self._is_of_another_case(item, found, known[0].line):
            return replace(found, verdict="undecided", why=OTHER_CASE)
        if found.verdict == "refuted" and k == 0 and self._redefines(left, right, item):
            return replace(found, verdict="undecided", why="it says otherwise than the definition")
        if found.verdict == "refuted" and k == 0 and _is_of_a_form(left, right):
            why = f"it may say what {source[slice(*left.span)]} is"
            return replace(found, verdict="needs-hypothesis", why=why)
        last = k + 2 == len(statement.terms) and statement is item.statements[-1]
        if found.verdict == "refuted" and last and self._has_unit(item, left, right):
            return replace(found, verdict="undecided", why="a unit follows the number")
        if found.verdict == "refuted" and k == 0 and self._may_be_redefined(left, right, item):
            return replace(found, verdict="undecided", why="its left side may be defined again")
        if found.verdict == "refuted" and EXPECTATION.search(source):
            return replace(found, verdict="undecided", why="an expectation is not in the language")
        if found.verdict == "refuted" and self._has_values(left, right, found.why, item.line):
            return replace(found, verdict="undecided", why="its symbols are given numbers")
        open_ = follows_from_more(words) and not found.why.startswith("in numbers")
        if found.verdict == "refuted" and open_ and self._loose(left, right):
            why = "it is false in general, and follows from something that is not read"
            return replace(found, verdict="undecided", why=why)
        return found


def _has_first_case(item: Item, left: Node, right: Node) -> bool:
    r"""Return whether a recurrence stands beside its first case: `x_n = b, x_j = f(x_{j+1})`."""
    name = bare(left)
    heads = [bare(statement.terms[0]) for statement in item.statements]
    if not isinstance(name, Name) or not recurs(name, right):
        return False
    return any(isinstance(head, Name) and head != name and is_of(head, name) for head in heads)


def _is_of_a_form(left: Node, right: Node) -> bool:
    r"""Return whether an equation may define a bilinear form: `\langle x, y \rangle = x^T A y`."""
    form, by = bare(left), bare(right)
    if not (isinstance(form, Apply) and form.function.base == "inner" and isinstance(by, Product)):
        return False
    ends = [e.base if isinstance(e, Power) else e for e in map(bare, by.factors)]
    plain = [*map(bare, form.arguments)]
    both = [[*map(latex, pair)] for pair in (plain, ends[:: len(ends) - 1])]
    return len(ends) > 2 and all(isinstance(e, Name) for e in plain) and both[0] == both[1]


def _replaced_in(text: str, put: dict[str, str]) -> str:
    """Return a text with the longest parts replaced first."""
    pattern = "|".join(map(re.escape, sorted(put, key=len, reverse=True)))
    return re.sub(pattern, lambda match: put[match[0]], text) if put else text


def _in_one_line(tex: str) -> str:
    r"""Return LaTeX without the marks that align the lines of a display; a matrix keeps its own.

    >>> print(_in_one_line(r"A &= B \\ &= \begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}"))
    A = B = \begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}
    >>> print(_in_one_line(r"A &= B && \text{by (1)} \\ &= C"))
    A = B = C
    """
    parts = GRID.split(tex)
    parts[::2] = [BREAK.sub(" ", COMMENT.sub(" ", part)) for part in parts[::2]]
    return " ".join("".join(parts).split())


def _short(tex: str) -> str:
    text = " ".join(tex.split())
    return text if len(text) <= 50 else text[:49] + "…"
