"""The links of the chains of a document, one after the other, each with its verdict."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from otimes.algebra.budget import STEPS, steps_done
from otimes.algebra.errors import OtimesError
from otimes.algebra.notation.elaborate import elaborate
from otimes.algebra.notation.parser import parse_formula, printed_back
from otimes.algebra.notation.symbols import (
    Declared,
    size_of,
)
from otimes.algebra.notation.tokens import NotationError
from otimes.algebra.notation.tree import (
    Derivative,
    Dots,
    Indexed,
    Name,
    Node,
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
from otimes.proofs.documents.containers.source import Document
from otimes.proofs.documents.prose.assumptions import assumes, plain_words
from otimes.proofs.documents.prose.consistency import dotted_vectors
from otimes.proofs.documents.prose.items import Item, composed, is_matrix_like
from otimes.proofs.documents.proving.derivatives import with_shapes
from otimes.proofs.documents.proving.every_reading import has_assumption
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.reporting.report import Equation
from otimes.proofs.documents.symbols.context import Context
from otimes.proofs.documents.symbols.declared_again import (
    another_since,
    declared_again,
    without,
)
from otimes.proofs.documents.symbols.declared_in_formulas import declared_as
from otimes.proofs.documents.symbols.identity_maps import map_of, same_sizes
from otimes.proofs.documents.symbols.like_sums import are_alike
from otimes.proofs.documents.symbols.terms import (
    is_range,
)
from otimes.proofs.documents.verdicts.circumstances import (
    doubted_by,
    has_condition_after,
    is_called_undefined,
    is_conditional,
)
from otimes.proofs.documents.verdicts.equalities import Equalities
from otimes.proofs.documents.verdicts.properties_in_words import contradicted_by_words
from otimes.proofs.documents.verdicts.scopes import unless_said_elsewhere
from otimes.proofs.documents.verdicts.suggestions import SLIPS
from otimes.proofs.documents.verdicts.suspects import Use
from otimes.proofs.documents.verdicts.wrong_declarations import Judged
from otimes.proofs.documents.verdicts.wrong_definitions import EQUALS, USED, WrongDefinitions

UNEQUAL = re.compile(r"\s*(\w)\s*\\(?:ne|neq)\s*(\w)\s*")  # below a sum
MOST_WORK = 300.0  # units of work for the equations of one document
SPENT = "the work for one document is used up by the equations before: check it in several files"
TRANSPOSED = re.compile(
    r"\^(?:\{\s*(?:\\top|T|\\intercal)\s*\}|\\top\b|\\intercal\b|T(?![A-Za-z]))|ᵀ"
)
TOLD = 25  # formulas after which progress is told
# An environment with rows of its own; around them `&` and `\\` only align the lines of a display.
GRID = re.compile(
    r"(\\begin\{(?:\w*matrix\*?|cases|array)\}.*?\\end\{(?:\w*matrix\*?|cases|array)\})",
    re.DOTALL,
)
BREAK = re.compile(r"(?<!\\)&|\\\\(?:\s*\[[^\]]*\])?")
COMMENT = re.compile(r"(?:&|\\q?quad|\s)*(?:\\(?:text|tag)\{[^{}]*\}\s*)+\\\\")  # at a row's end
MACRO = re.compile(r"\\[A-Za-z]+")
MACROS = re.compile(
    r"\s*\\(?:(?:new|renew|provide)command|def|let|DeclareMathOperator|definecolor)\b"
)
DEFINES = frozenset((":=", r"\triangleq", r"\leftarrow", r"\mapsto"))
STATES = re.compile(r"=|≈|∈|←|\\(?:approx|in|leftarrow|triangleq|equiv|le|leq|ge|geq)\b")


class LinkChecker(Equalities):
    """Judges formulas in order; `blamed` are the declarations that proofs contradict."""

    begun = 0  # the steps that were done before

    def __init__(self, document: Document, context: Context, items: list[Item]) -> None:
        super().__init__(document, context, items)
        self.wrong = WrongDefinitions(document, context)
        ones = [(offset, name, None) for offset, name in context.ones]
        self.named: list[tuple[int, Name, Node | None]] = [
            *ones,
            *context.gradients,
            *context.entries,
        ]
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
        more = any(composed([item]))  # than a symbol by itself
        if more:
            self.context.sentence = self.document.sentence(item.formula)
        if states and not printed_back(
            item.statements,
            self.context.base.functions,
            self.context.base.values - self.context.base.functions,
        ):
            yield self._unread(item, NotationError("printed back it is another formula"))
            return
        if more:
            item.statements = [with_shapes(self.context, e, item.line) for e in item.statements]
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
                    found = found and self._unless_sums_are_alike(item, statement, k, found)
                    found = found and _unless_over_pairs(statement, k, found)
                    sides = statement.terms[k : k + 2]
                    found = found and unless_said_elsewhere(self.judge, found, sides, item.line)
                except RecursionError:
                    found = Found("unread", "it is nested too deeply")
                except OtimesError as error:  # the others are decided
                    found = Found("undecided", str(error))
                if found is not None:
                    links[k] = self._equation(item, statement, k, found), found
                    yield links[k][0]
            self.wrong.note(item, statement, links, self._slips(item))
            self._compare_with_words(item, statement, links)

    def _compare_with_words(
        self, item: Item, statement: Statement, links: Mapping[int, tuple[Equation, Found]]
    ) -> None:
        """Call a definition wrong that does not have the property which words say of it."""
        name = bare(statement.terms[0])
        defined = 0 in links and links[0][1].verdict == "definition" and len(links) == 1
        plain = isinstance(name, Name) and is_matrix_like(name) and not name.select
        if not (defined and plain and statement is item.statements[-1]):
            return
        if statement.relations[0] not in (*EQUALS, *DEFINES) or not isinstance(name, Name):
            return
        value = statement.terms[1]
        found = contradicted_by_words(
            self.context, self.document, item.formula, name, value, item.line
        )
        if found is not None:
            equation = links[0][0]
            equation.verdict, equation.why = found.verdict, found.why
            equation.suggestion = found.suggestion

    def _slips(self, item: Item) -> list[str]:
        """Return the kinds of edits that no words around a formula excuse, none of one in doubt."""
        words = plain_words(self.document.sentence_before(item.formula))
        doubted = doubted_by(words) or has_condition_after(self.document, item.formula)
        conditional = any(statement.after for statement in item.statements)
        if doubted or conditional or has_assumption(words):
            return []
        return [kind for kind in SLIPS if not self.context.is_excused(kind, item.line)]

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
        rows = [int(row) for row in USED.findall(found.why)]
        if found.is_wrong and (why := another_since(self.context, rows, item.line)):
            return replace(found, verdict="undecided", why=f"{found.why}, but {why}")
        if found.verdict != "proved":
            return found
        left, right = statement.terms[k], statement.terms[k + 1]
        again = declared_again(self.context, [left, right], item.line)
        if again is None:
            return found
        if rows and not found.hypotheses and min(rows) >= max(at for _, (_, at) in again.pairs):
            return found  # what is used was said after that
        with without(self.context, again):
            anew = self.judge.claim(left, right, item.line, item.formula.tex)
        return anew if anew.verdict == "proved" else Found("needs-hypothesis", str(again))

    def _unless_sums_are_alike(
        self, item: Item, statement: Statement, k: int, found: Found
    ) -> Found:
        r"""Return a proof that takes no two sums for one: `F = \sum_f A^f` and `G = \sum_g A^g`.

        The letters tell the heads of two layers apart, though nothing else does.
        """
        rows = {int(row) for row in USED.findall(found.why)} if found.verdict == "proved" else ()
        every = [d for known in self.context.definitions.values() for d in known if d.line in rows]
        alike = [d for d in every if any(are_alike(d, other) for other in every)]
        if not alike:
            return found
        texts = {latex(d.lhs) for d in alike}
        left, right = statement.terms[k], statement.terms[k + 1]
        known = self.context.definitions
        self.context.definitions = {text: d for text, d in known.items() if text not in texts}
        try:
            anew = self.judge.claim(left, right, item.line, item.formula.tex)
        finally:
            self.context.definitions = known
        if anew.verdict == "proved":
            return anew
        named = " and ".join(sorted(texts))
        return Found("needs-hypothesis", f"true if {named} are one sum, over one set")

    def _states(self, item: Item) -> bool:
        """Return whether a formula that was not read may state something."""
        tex = item.formula.tex
        if re.fullmatch(r"\s*\\[A-Za-z]+\s*", tex) or MACROS.match(tex):  # a sign by itself
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
        found = found and self.judge.of_this_section(found, [term], item.line)
        if found is not None and is_called_undefined(self.document, item.formula):
            found = replace(found, verdict="undecided", why=f"{found.why}, as the text may say")
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
        if relation == r"\mapsto":
            shape = self.judge.shapes([right], item.line, source)
            return shape or Found("definition", "it says what a function maps to what")
        if relation in DEFINES:
            return self._definition(item, left, right, always=True)
        if relation in EQUALS:
            same = same_sizes(left, right, item.line, self.context.maps)
            self.context.same_sizes += [same] if same else []
            return self._equality(item, statement, k)
        nearly = relation in (r"\approx", r"\simeq")
        if relation == ":" and (known := map_of(statement)):
            self.context.maps |= dict([known])
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
        from otimes.proofs.documents.verdicts.inequalities import approximate, compared, different

        source = item.formula.tex
        if relation in (r"\approx", r"\simeq"):
            return approximate(self.judge, left, right, item.line, source)
        if relation != r"\ne":
            found = compared(self.judge, left, right, relation, item.line)
        else:
            found = different(self.judge, left, right, item.line, source)
        words = plain_words(self.document.sentence_before(item.formula))
        doubted = doubted_by(words) or is_conditional(words) or assumes(words)
        doubted = doubted or has_condition_after(self.document, item.formula)
        if found is not None and found.verdict == "refuted" and doubted:
            return replace(found, verdict="undecided")
        return found

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


def _unless_over_pairs(statement: Statement, k: int, found: Found) -> Found:
    r"""Return a verdict, undecided where a sum may run over pairs: `\sum_{i \ne j} a_{ij} = s`.

    It does if the other side has no j, and what is summed has one.
    """
    if not found.is_wrong:
        return found
    sides = statement.terms[k], statement.terms[k + 1]
    for one, other in (sides, sides[::-1]):
        for e in walk(one):
            if not isinstance(e, Indexed) or len(e.indices) > 1:
                continue
            pair = UNEQUAL.fullmatch(e.lower)
            if pair is not None and pair[2] in _subscripts(e.body) - _subscripts(other):
                why = f"the sum may run over {pair[1]} and {pair[2]}"
                return replace(found, verdict="undecided", why=why)
    return found


def _subscripts(node: Node) -> set[str]:
    return {slot.text for e in walk(node) if isinstance(e, Name) for slot in e.sub}


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
