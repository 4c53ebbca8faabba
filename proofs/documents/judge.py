"""The verdict on one equation, or one link of a chain, in the context of its document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import sympy

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.algebra.language.nonlinear import CausalMask
from otimes.algebra.language.unicode import unicode_text
from otimes.algebra.notation.elaborate import check_shapes, elaborate
from otimes.algebra.notation.functions import ROWS
from otimes.algebra.notation.symbols import Symbols, full_key, key_of, text_of
from otimes.algebra.notation.tokens import NotationError
from otimes.algebra.notation.tree import (
    Grid,
    Indexed,
    Name,
    Node,
    Number,
    Power,
    Product,
    Slot,
    bare,
    latex,
    walk,
)
from otimes.algebra.notation.typed import Elaborated, FormulaShapeError, Undeclared
from otimes.algebra.verdict import Verdict, decide
from otimes.proofs.documents.common_factor import common_names, without_factor
from otimes.proofs.documents.context import Context, Definition, Hypothesis, is_constant
from otimes.proofs.documents.suggestions import shown_edit, suggestion

BUDGET = 4.0  # units of work for one equation
TRIAL = 0.5  # units for an attempt: a hypothesis, an edit
MOST_HYPOTHESES = 12
MOST_NODES = 1500  # parts of an equation that is decided
# The sides of a claim, hypotheses, and the definitions that are put in.
Attempt = tuple[Node, Node, list[Hypothesis], dict[str, Definition]]
VERDICTS = (
    "proved",
    "refuted",
    "shape",
    "definition",
    "needs-hypothesis",
    "undecided",
    "unread",
)


@dataclass(slots=True)
class Found:
    """A verdict with its reasons; `reading` is the statement that was decided."""

    verdict: str
    why: str = ""
    counterexample: Any = None
    suggestion: str = ""
    reading: str = ""
    hypotheses: tuple[str, ...] = ()
    facts: frozenset[str] = frozenset()  # by which an inequality is proved, without certificate
    span: tuple[int, int] | None = None
    blamed: list[tuple[str, int]] = field(default_factory=list)  # declarations, by key and line
    differ: bool = False  # whether the sides differ at exact numbers, settled or not


class Judge:
    """Decides the links of a document, with what it has declared and defined so far."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def claim(self, lhs: Node, rhs: Node, line: int, source: str) -> Found:
        """Return the verdict on lhs = rhs."""
        if sum(1 for side in (lhs, rhs) for _ in walk(side)) > MOST_NODES:
            return Found("undecided", "it is too long to be decided")
        try:
            return self._claim(lhs, rhs, self.context.symbols_at(line), line, source)
        except FormulaShapeError as error:
            return self._conflict(error, lhs, rhs, line, source)

    def _claim(self, lhs: Node, rhs: Node, symbols: Symbols, line: int, source: str) -> Found:
        """Return the verdict, or raise FormulaShapeError."""
        try:
            return self._decided(lhs, rhs, symbols, line, source)
        except Undeclared as error:
            found = self._by_definitions(lhs, rhs, symbols) or self._unfolded(
                lhs, rhs, symbols, line
            )
            found = found or self._by_order_of_vec(lhs, rhs, symbols)
            return found or Found("undecided", str(error), span=error.span)
        except NotationError as error:
            return Found("undecided", str(error), span=error.span)
        except FormulaShapeError:
            raise
        except OtimesError as error:
            return Found("undecided", str(error))

    def _decided(self, lhs: Node, rhs: Node, symbols: Symbols, line: int, source: str) -> Found:
        read = elaborate([lhs, rhs], symbols, source)
        reading = _shown(read)
        verdict = decide(read.terms[0], read.terms[1], budget=BUDGET)
        if verdict.status == "proved":
            readings = [doubt for doubt in read.doubts if " was read " in doubt or "rows" in doubt]
            return Found("proved", "; ".join([verdict.reason, *readings]), reading=reading)
        found = self._by_definitions(lhs, rhs, symbols) or self._by_hypotheses(
            lhs, rhs, symbols, line
        )
        found = (
            found
            or self._as_powers(lhs, rhs, symbols)
            or self._by_size_of_ones(lhs, rhs, symbols)
            or self._by_causality(lhs, rhs, read)
            or self._unfolded(lhs, rhs, symbols, line)
        )
        if found is not None:
            return found
        if verdict.status == "undecided":
            return Found("undecided", verdict.reason, reading=reading)
        if _are_numbers(lhs, rhs):
            why = "these numbers are not exactly equal; they may be rounded"
            return Found("undecided", why, reading=reading)
        open_ = self._open_by_definition(lhs, rhs, symbols)
        return open_ or self._refuted(lhs, rhs, symbols, read, verdict, reading)

    def _open_by_definition(self, lhs: Node, rhs: Node, symbols: Symbols) -> Found | None:
        """Return that a claim is open, though false for any values: its symbols are defined.

        What is defined by what the language does not have can be anything.
        """
        given = self.context.declared_hypotheses([lhs, rhs])
        if given:
            verdict, reading = self._attempt(lhs, rhs, given, symbols)
            if verdict is None or verdict.status == "undecided":
                named = "; ".join(map(str, given))
                return Found("undecided", f"it is false in general, and open given {named}")
        others = self.context.instances([lhs, rhs], only_weights=True)
        known = {**dict.fromkeys(self.context.definitions), **dict.fromkeys(others)}
        texts = {latex(e) for side in (lhs, rhs) for e in walk(side)}
        readable = [t for t in known if t in texts and self._can_unfold(t, lhs, rhs, symbols)]
        used: dict[str, Definition] = {}
        put = {text: each for text, each in others.items() if text in readable}
        a, b = (self.context.unfolded(side, used, readable, put) for side in (lhs, rhs))
        if not used:
            return None
        verdict, reading = self._attempt(a, b, (), symbols)
        if verdict is None or verdict.status == "refuted":
            return None
        names = "; ".join(f"{text} as on line {d.line}" for text, d in sorted(used.items()))
        if verdict.status == "proved":
            return Found("proved", f"with {names}", reading=reading)
        return Found("undecided", f"{verdict.reason}; with {names}", reading=reading)

    def _can_unfold(self, text: str, lhs: Node, rhs: Node, symbols: Symbols) -> bool:
        """Return whether a claim with a definition put in is in the language."""
        put = self.context.instances([lhs, rhs], only_weights=True)
        put = {text: put[text]} if text in put else {}
        sides = [self.context.unfolded(side, {}, [text], put) for side in (lhs, rhs)]
        try:
            elaborate(sides, symbols)
        except OtimesError:
            return False
        return True

    def _unfolded(self, lhs: Node, rhs: Node, symbols: Symbols, line: int) -> Found | None:
        """Judge the claim that remains when what stands on one side only is put in."""
        left, right = ({latex(e) for e in _with_wholes(side)} for side in (lhs, rhs))
        one_sided = (left ^ right) & self.context.definitions.keys()
        others = self.context.instances([lhs, rhs], only_weights=True)
        both = left & right
        others = {
            text: each
            for text, each in others.items()
            if text in left ^ right and latex(_whole(each.lhs)) not in both
        }
        used: dict[str, Definition] = {}
        a, b = (self.context.unfolded(side, used, one_sided, others) for side in (lhs, rhs))
        if not used:
            return None
        try:
            found = self._decided(a, b, symbols, line, "")
        except (OtimesError, FormulaShapeError):
            return None
        names = "; ".join(f"{text} as on line {d.line}" for text, d in sorted(used.items()))
        found.why = f"{found.why}; with {names}"
        if found.verdict == "refuted" and used.keys() & self.context.sizes:
            return replace(found, verdict="undecided", counterexample=None)  # sizes of an example
        return (found.differ and self._in_part(lhs, rhs, symbols, line, used)) or found

    def _in_part(
        self, lhs: Node, rhs: Node, symbols: Symbols, line: int, used: dict[str, Definition]
    ) -> Found | None:
        """Return that a claim is false with one definition put in, if that leaves no doubt.

        It is asked only where the sides differ with all definitions put in.
        """
        for text, definition in sorted(used.items()):
            a, b = (self.context.unfolded(side, {}, [text]) for side in (lhs, rhs))
            try:
                read = elaborate([a, b], symbols)
                verdict = decide(read.terms[0], read.terms[1], budget=TRIAL)
            except OtimesError:
                continue
            if verdict.status != "refuted":
                continue
            reading = _shown(read)
            found = self._refuted(a, b, symbols, read, verdict, reading)
            if found.verdict == "refuted":
                found.why = f"{found.why}; with {text} as on line {definition.line}"
                return found
        return None

    def _by_order_of_vec(self, lhs: Node, rhs: Node, symbols: Symbols) -> Found | None:
        """Return that a claim is true if vec stacks the columns, or the rows, but not both."""
        if symbols.vec:
            return None
        true = []
        for order, said in (("cols", "columns"), ("rows", "rows")):
            ordered = symbols.copy()
            ordered.vec = order
            verdict, reading = self._attempt(lhs, rhs, (), ordered)
            if verdict is not None and verdict.status == "proved":
                true.append((said, reading))
        if len(true) != 1:
            return None
        return Found("needs-hypothesis", f"true if vec stacks the {true[0][0]}", reading=true[0][1])

    def _as_powers(self, lhs: Node, rhs: Node, symbols: Symbols) -> Found | None:
        """Return that a claim is true if numbers above symbols are powers, or else labels."""
        numbers = {
            key_of(e)
            for side in (lhs, rhs)
            for e in walk(side)
            if isinstance(e, Name) and e.sup and e.sup[0].kind == "number" and e.sup[0].text != "1"
        }
        if not numbers:
            return None
        other = symbols.copy()
        other.labelled ^= numbers
        verdict, reading = self._attempt(lhs, rhs, (), other)
        if verdict is None or verdict.status != "proved":
            return None
        kinds = " and ".join(
            f"the number above {key} is a {'power' if key in symbols.labelled else 'label'}"
            for key in sorted(numbers)
        )
        return Found("needs-hypothesis", f"true if {kinds}", reading=reading)

    def _by_causality(self, lhs: Node, rhs: Node, read: Elaborated) -> Found | None:
        """Return that a claim with sums up to an index is true if matrices in it are causal."""
        sums = [e for side in (lhs, rhs) for e in walk(side) if isinstance(e, Indexed)]
        if not any(each.kind in ("range", "from") for each in sums):
            return None
        atoms = {a for term in read.terms for a in term.atoms(sympy.MatrixSymbol)}
        square = [a for a in sorted(atoms, key=str) if a.shape[0] == a.shape[1] and a.shape[0] != 1]
        if not 0 < len(square) <= 2:
            return None
        given = [(sympy.HadamardProduct(a, CausalMask(a.shape[0])), a) for a in square]
        try:
            verdict = decide(read.terms[0], read.terms[1], given=given, budget=TRIAL)
        except OtimesError:
            return None
        if verdict.status != "proved":
            return None
        named = " and ".join(str(square[k].name) for k in verdict.used)
        why = f"true given that {named} is causal: zero above the diagonal"
        return Found("needs-hypothesis", why, reading=_shown(read))

    def _by_size_of_ones(self, lhs: Node, rhs: Node, symbols: Symbols) -> Found | None:
        """Return that a claim is true if all columns of ones that it has are of one size."""
        used: dict[str, Definition] = {}
        others = self.context.instances([lhs, rhs])
        a, b = (self.context.unfolded(side, used, None, others) for side in (lhs, rhs))
        ones = [e for side in (a, b) for e in walk(side) if isinstance(e, Name) and e.base == "1"]
        if len(ones) < 2 or any(e.sub for e in ones):
            return None
        alike = symbols.copy()
        alike.same_ones = True
        verdict, reading = self._attempt(a, b, (), alike)
        if verdict is None or verdict.status != "proved":
            return None
        names = "".join(f"; with {text} as on line {d.line}" for text, d in sorted(used.items()))
        why = f"true if every {latex(ones[0])} has the same number of entries{names}"
        return Found("needs-hypothesis", why, reading=reading)

    # -- what makes it true ------------------------------------------------------------------------

    def _by_definitions(self, lhs: Node, rhs: Node, symbols: Symbols) -> Found | None:
        """Try the claim with what the document has defined put in: first what is on one side."""
        left, right = ({latex(e) for e in walk(side)} for side in (lhs, rhs))
        others = self.context.instances([lhs, rhs])
        known = self.context.definitions.keys()
        one_sided = sorted((left ^ right) & (known | others.keys()))
        sides: dict[tuple[Node, Node], dict[str, Definition]] = {}
        for only in (*[[text] for text in one_sided], one_sided, None):
            used: dict[str, Definition] = {}
            put = {t: each for t, each in others.items() if only is None or t in only}
            a, b = (self.context.unfolded(side, used, only, put) for side in (lhs, rhs))
            if used:
                sides.setdefault((a, b), used)
        plain: list[Attempt] = [(a, b, [], used) for (a, b), used in sides.items()]
        given = [(a, b, self.context.declared_hypotheses([a, b]), u) for a, b, _, u in plain]
        return self._first_proved([*plain, *[each for each in given if each[2]]], symbols)

    def _first_proved(
        self,
        attempts: Sequence[Attempt],
        symbols: Symbols,
    ) -> Found | None:
        """Return the first of several claims, with hypotheses and definitions, that is proved."""
        for a, b, given, used in attempts:
            verdict, reading = self._attempt(a, b, given, symbols)
            if verdict is not None and verdict.status == "proved":
                hypotheses = tuple(str(given[k]) for k in verdict.used)
                names = [f"{text} as on line {d.line}" for text, d in sorted(used.items())]
                why = f"with {'; '.join(names)}{_given(hypotheses)}"
                return Found("proved", why, reading=reading, hypotheses=hypotheses)
        return None

    def _by_hypotheses(self, lhs: Node, rhs: Node, symbols: Symbols, line: int) -> Found | None:
        """Try the claim under hypotheses: those that are declared, then those that are offered."""
        declared = self.context.declared_hypotheses([lhs, rhs])
        if declared:
            verdict, reading = self._attempt(lhs, rhs, declared, symbols)
            if verdict is not None and verdict.status == "proved":
                used = tuple(str(declared[k]) for k in verdict.used)
                return Found("proved", _given(used).strip("; "), reading=reading, hypotheses=used)
        offered = self._offered(lhs, rhs, symbols, line)
        attempts = [[each] for each in offered]
        if len(offered) > 1:
            attempts.append(offered)
        definitions: dict[str, Definition] = {}
        left, right = (self.context.unfolded(side, definitions) for side in (lhs, rhs))
        sides = [(lhs, rhs)] + ([(left, right)] if definitions else [])
        if declared:
            attempts = [each for attempt in attempts for each in (attempt, [*declared, *attempt])]
        for a, b in sides:
            for every in attempts:
                verdict, reading = self._attempt(a, b, every, symbols)
                if verdict is not None and verdict.status == "proved":
                    used = tuple(str(every[k]) for k in verdict.used)
                    why = f"true given {'; '.join(used)}, which is not declared"
                    return Found("needs-hypothesis", why, reading=reading, hypotheses=used)
        return None

    def _offered(self, lhs: Node, rhs: Node, symbols: Symbols, line: int) -> list[Hypothesis]:
        """Return the hypotheses that the text offers, without those that cannot be stated here."""
        different = {
            (latex(each.lhs), latex(each.rhs)): each
            for each in reversed([*self.context.candidates([lhs, rhs], line)])
        }
        found = [*reversed(different.values())][:MOST_HYPOTHESES]
        return [each for each in found if _can_be_stated(lhs, rhs, each, symbols)]

    def _attempt(
        self, lhs: Node, rhs: Node, given: Sequence[Hypothesis], symbols: Symbols
    ) -> tuple[Verdict | None, str]:
        """Return the verdict under hypotheses, or None where they cannot be stated together."""
        terms = [lhs, rhs]
        for hypothesis in given:
            terms += [hypothesis.lhs, hypothesis.rhs]
        starts = range(2, len(terms), 2)
        try:
            read = elaborate(terms, symbols, starts=starts)
            pairs = [sympy.Eq(*read.terms[k : k + 2], evaluate=False) for k in starts]
            if any(isinstance(pair, sympy.logic.boolalg.BooleanAtom) for pair in pairs):
                return None, ""
            verdict = decide(
                read.terms[0], read.terms[1], given=pairs, budget=TRIAL if given else BUDGET
            )
        except OtimesError:
            return None, ""
        return verdict, _shown(read)

    # -- what is false -----------------------------------------------------------------------------

    def _refuted(
        self,
        lhs: Node,
        rhs: Node,
        symbols: Symbols,
        read: Elaborated,
        verdict: Verdict,
        reading: str,
    ) -> Found:
        """Return that a claim is false, or why a counterexample does not settle it."""
        sizes = symbols.sizes()
        mine = [text_of(e) for side in (lhs, rhs) for e in _symbols(side)]
        if mine and all(text in sizes for text in mine):
            if self._differ_by_a_number(read, verdict):
                why = "the sides differ by a number, whatever the sizes are"
                return Found("refuted", why, verdict.counterexample, reading=reading)
            why = "it is about sizes, and holds for some of them"
            return Found("undecided", why, reading=reading)
        kinds = {getattr(symbols.lookup(e)[1], "kind", "") for s in (lhs, rhs) for e in _symbols(s)}
        if kinds and kinds <= {"scalar", "size"} and not (_symbols(lhs) and _symbols(rhs)):
            why = "it gives a value, or is about values that are given elsewhere"
            return Found("undecided", why, reading=reading)
        assumption = assumed(lhs, rhs)
        if all(isinstance(bare(side), Name) for side in (lhs, rhs)):
            assumption = "it says that two symbols stand for the same"
        constant = is_constant(lhs) or is_constant(rhs)
        if assumption and not constant:
            known = self._of_defined(lhs, rhs, symbols)
            return known or Found("needs-hypothesis", assumption, reading=reading)
        edit = suggestion(lhs, rhs, lambda a, b: self._holds(a, b, symbols))
        if assumption and not edit:
            return Found("needs-hypothesis", assumption, reading=reading)
        proposed = shown_edit(*edit, "=") if edit else ""
        alike = self._attempt(_plainly_labelled(lhs), _plainly_labelled(rhs), (), symbols)[0]
        if alike is not None and alike.status == "proved":
            why = "true if labels that differ only in how they are written are the same"
            return Found("needs-hypothesis", why, suggestion=proposed, reading=reading)
        doubts = list(read.doubts)
        plain = self._without_number(lhs, rhs, symbols, read) if read.undeclared else None
        if plain is not None:
            read = plain
        if ROWS in doubts and (other := self._by_columns(lhs, rhs, symbols)) is not None:
            if other.status == "proved":
                why = "true if softmax is taken along columns"
                return Found("needs-hypothesis", why, suggestion=proposed, reading=reading)
            if other.status == "refuted":
                doubts.remove(ROWS)
        if read.undeclared:
            taken = [f"{key} for a {kind}" for key, kind in sorted(read.undeclared.items())]
            doubts.append(f"{', '.join(taken)} was taken, and that is not declared")
        only, declared = self._one_sided(lhs, rhs, symbols) if not edit else ([], True)
        if only and declared:
            cancelling = self._cancelling(lhs, rhs, symbols)
            if cancelling:
                return Found("needs-hypothesis", f"true given {cancelling}", reading=reading)
        elif only:
            doubts.append(f"{', '.join(only)} on one side only")
        saving = "" if doubts else self._may_be_saved(lhs, rhs, symbols)
        if saving:
            return Found("undecided", saving, suggestion=proposed, reading=reading, differ=True)
        if not doubts:
            counterexample = verdict.counterexample
            why = "the sides differ at exact numbers"
            return Found("refuted", why, counterexample, proposed, reading)
        why = f"not proved, and numbers do not settle it: {'; '.join(doubts)}"
        kind = "needs-hypothesis" if only and not declared else "undecided"
        return Found(kind, why, suggestion=proposed, reading=reading, differ=True)

    def _without_number(
        self, lhs: Node, rhs: Node, symbols: Symbols, read: Elaborated
    ) -> Elaborated | None:
        """Return the claim without numbers that all its terms have, where it is false, too."""
        numbers = frozenset(key for key, kind in read.undeclared.items() if kind == "scalar")
        for name in common_names(lhs, rhs, numbers):
            left, right = without_factor(lhs, name), without_factor(rhs, name)
            if left is not None and right is not None:
                lhs, rhs = left, right
        try:
            found = elaborate([lhs, rhs], symbols)
            verdict = decide(found.terms[0], found.terms[1], budget=TRIAL)
        except OtimesError:
            return None
        return found if verdict.status == "refuted" and not found.undeclared else None

    def _by_columns(self, lhs: Node, rhs: Node, symbols: Symbols) -> Verdict | None:
        """Return the verdict with every softmax taken along columns."""
        other = symbols.copy()
        other.softmax = "columns"
        return self._attempt(lhs, rhs, (), other)[0]

    def _differ_by_a_number(self, read: Elaborated, verdict: Verdict) -> bool:
        """Return whether the left side is the right side and a number that is not 0."""
        example = verdict.counterexample
        try:
            number = Fraction(str(example.lhs)) - Fraction(str(example.rhs))  # type: ignore[union-attr]
            more = sympy.Rational(number.numerator, number.denominator)
            other = sympy.Add(read.terms[1], more, evaluate=False)
            return bool(number) and decide(read.terms[0], other, budget=TRIAL).status == "proved"
        except (ValueError, AttributeError, OtimesError):
            return False

    def _of_defined(self, lhs: Node, rhs: Node, symbols: Symbols) -> Found | None:
        """Return that a claim is false where all its symbols are defined, and that decides it."""
        names = {latex(e) for side in (lhs, rhs) for e in _symbols(side)}
        if not names or not names <= self.context.definitions.keys():
            return None
        used: dict[str, Definition] = {}
        a, b = (self.context.unfolded(side, used) for side in (lhs, rhs))
        try:
            read = elaborate([a, b], symbols)
            verdict = decide(read.terms[0], read.terms[1], budget=TRIAL)
        except OtimesError:
            return None
        free = [e for side in (a, b) for e in _symbols(side)]
        sizes = symbols.sizes()
        if verdict.status != "refuted" or read.undeclared or read.doubts:
            return None
        if any(text_of(e) not in sizes and symbols.lookup(e)[1] is None for e in free):
            return None
        named = "; ".join(f"{text} as on line {d.line}" for text, d in sorted(used.items()))
        why = f"the sides differ at exact numbers; with {named}"
        return Found("refuted", why, verdict.counterexample, reading=_shown(read))

    def _may_be_saved(self, lhs: Node, rhs: Node, symbols: Symbols) -> str:
        """Return why a false claim may be true under all that the text offers, or nothing."""
        offered = [
            each for each in self._offered(lhs, rhs, symbols, 0) if "literature" not in each.origin
        ]
        if len(offered) < 2:  # each by itself has been tried
            return ""
        verdict, _ = self._attempt(lhs, rhs, offered, symbols)
        if verdict is None or verdict.status != "undecided":
            return ""
        return f"it is false in general, and open given {'; '.join(map(str, offered))}"

    def _holds(self, lhs: Node, rhs: Node, symbols: Symbols) -> bool:
        verdict, _ = self._attempt(lhs, rhs, (), symbols)
        return verdict is not None and verdict.status == "proved"

    def _one_sided(self, lhs: Node, rhs: Node, symbols: Symbols) -> tuple[list[str], bool]:
        """Return the symbols on one side only, and whether they need no explanation.

        If both sides have some, the equation may be what says what one of them is. If one side has
        them all, and they are declared, it claims that they do not matter.
        """
        left, right = ({_without_indices(e): e for e in _symbols(side)} for side in (lhs, rhs))
        only = sorted(left.keys() ^ right.keys())
        both = bool(left.keys() - right.keys()) and bool(right.keys() - left.keys())
        names = {**left, **right}
        sizes = symbols.sizes()
        about = {
            key_of(e)
            for each in self.context.hypotheses
            if each.declared
            for side in (each.lhs, each.rhs)
            for e in _symbols(side)
        }
        known = all(
            symbols.lookup(names[text])[1] is not None
            or text_of(names[text]) in sizes
            or key_of(names[text]) in about
            for text in only
        )
        return only[:4], known and not both

    def _cancelling(self, lhs: Node, rhs: Node, symbols: Symbols) -> str:
        """Return two neighbours on one side whose product would have to be the identity."""
        left, right = (set(map(latex, _symbols(side))) for side in (lhs, rhs))
        for e in (e for side in (lhs, rhs) for e in walk(side) if isinstance(e, Product)):
            for a, b in pairwise(map(bare, e.factors)):
                if {latex(a), latex(b)} <= left ^ right:
                    given = Hypothesis(Product((a, b), ("", "")), Name("I"), "", False)
                    verdict, _ = self._attempt(lhs, rhs, [given], symbols)
                    if verdict is not None and verdict.status == "proved":
                        return str(given)
        return ""

    # -- shapes ------------------------------------------------------------------------------------

    def shapes(
        self, terms: Sequence[Node], line: int, source: str, symbols: Symbols | None = None
    ) -> Found | None:
        """Return that terms, equal by the formula, do not conform, or None where they do."""
        try:
            check_shapes(terms, symbols or self.context.symbols_at(line), source)
        except FormulaShapeError as error:
            return self._blame(error, terms, line, source)
        except OtimesError:
            return None
        return None

    def _conflict(
        self, error: FormulaShapeError, lhs: Node, rhs: Node, line: int, source: str
    ) -> Found:
        """Return the verdict where the shapes of a claim and the declarations do not fit.

        If the claim is proved with a declared shape the other way round, the declaration is wrong.
        """
        for turned in self._transposed(lhs, rhs, line):
            symbols = self.context.symbols_at(line)
            for key, _ in turned:
                known = symbols.known[key]
                symbols.known[key] = replace(known, rows=known.cols, cols=known.rows)
            try:
                found = self._claim(lhs, rhs, symbols, line, source)
            except ShapeError:
                continue
            if found.verdict == "proved" or found.why.startswith("true given"):
                found.blamed = turned
                return found
        found = self._blame(error, [lhs, rhs], line, source)
        symbols = self.context.symbols_at(line)
        edit = suggestion(lhs, rhs, lambda a, b: self._holds(a, b, symbols))
        found.suggestion = shown_edit(*edit, "=") if edit else ""
        return found

    def _transposed(self, lhs: Node, rhs: Node, line: int) -> list[list[tuple[str, int]]]:
        """Return the declarations that may be transposed: each one, and those of a line."""
        symbols = self.context.symbols_at(line)
        used = [
            (key, at)
            for key, at in self.context.lines_of([lhs, rhs], line)
            if symbols.known[key].kind == "matrix"
            and symbols.known[key].rows != symbols.known[key].cols
        ]
        of_lines = [[each for each in used if each[1] == at] for at in sorted({a for _, a in used})]
        found = [[each] for each in used] + of_lines
        unique = {tuple(subset): subset for subset in found}
        return [*unique.values()]

    def _is_by_number(self, key: str, terms: Sequence[Node], line: int) -> bool:
        """Return whether a symbol has the shape of one that another number tells apart."""
        symbols = self.context.symbols_at(line)
        said = {known.full for other, known in self.context.declared if other == key}
        names = [e for term in terms for e in walk(term) if isinstance(e, Name)]
        return any(
            symbols.lookup(e)[0] == key and "" not in said and full_key(e) not in said
            for e in names
            if any(slot.kind in ("number", "label") for slot in e.sub)
        )

    def _is_example(self, terms: Sequence[Node], line: int) -> bool:
        """Return whether numbers stand for sizes that have names, or entries are written out."""
        symbols = self.context.symbols_at(line)
        declared = [symbols.known[key] for key, _ in self.context.lines_of(terms, line)]
        atoms = {atom for known in declared for size in (known.rows, known.cols) for atom in size}
        numbers = any(isinstance(atom, int) and atom > 1 for atom in atoms)
        names = any(isinstance(atom, str) for atom in atoms)
        grids = [e for term in terms for e in walk(term) if isinstance(e, Grid)]
        entries = any(
            all(isinstance(c, Number) for row in grid.rows for c in row)
            or any(isinstance(c, Number) and c.text not in "01" for c in walk(grid))
            for grid in grids
        )
        return (numbers and names) or (entries and bool(atoms))

    def _blame(
        self, error: FormulaShapeError, terms: Sequence[Node], line: int, source: str
    ) -> Found:
        if self._is_example(terms, line):
            return Found("undecided", f"{error}; the numbers may be an example", span=error.span)
        elsewhere = [
            (key, at)
            for key, at in self.context.lines_of(terms, line)
            if self.context.is_elsewhere(key, at, line) or self._is_by_number(key, terms, line)
        ]
        if elsewhere:  # a letter may mean something else here
            keys = {key for key, _ in elsewhere}
            every = [(key, known.line) for key, known in self.context.declared if key in keys]
            try:
                check_shapes(terms, self.context.symbols_at(line, every), source)
                certain = False
            except FormulaShapeError:
                certain = True
            except OtimesError:
                certain = False
            if not certain:
                where = "; ".join(
                    f"{key} is declared in another section, line {at}" for key, at in elsewhere
                )
                return Found("undecided", f"{error}, but {where}", span=error.span)
        weak = self._of_other_sections(terms, line)
        if weak and self._is_right_without(weak, terms, line, source, "square" in str(error)):
            where = "; ".join(f"{key} is declared on line {at}" for key, at in weak)
            why = f"{error}, but {where}, and may be something else here"
            return Found("undecided", why, span=error.span)
        lines = sorted({at for _, at in self.context.lines_of(terms, line) if at != line})
        said = f" (shapes from line {', '.join(map(str, lines))})" if lines else ""
        return Found("shape", f"{error}{said}", span=error.span)

    def _of_other_sections(self, terms: Sequence[Node], line: int) -> list[tuple[str, int]]:
        """Return the letters in terms that are declared in another section, not about notation."""
        context = self.context
        return [
            (key, at)
            for key, at in context.lines_of(terms, line)
            if len(key) == 1 and not (context.in_scope(at, line) or context.is_general(at))
        ]

    def _is_right_without(
        self,
        without: list[tuple[str, int]],
        terms: Sequence[Node],
        line: int,
        source: str,
        square: bool,
    ) -> bool:
        """Return whether terms are equal, or may be, without some declarations."""
        if len(terms) != 2:
            return False
        symbols = self.context.symbols_at(line, without)
        try:
            found = self._claim(terms[0], terms[1], symbols, line, source)
        except FormulaShapeError:
            return False
        return found.verdict in ("proved", "needs-hypothesis") or (
            square and found.verdict == "undecided"
        )


def _whole(node: Node) -> Node:
    """Return the matrix of which a symbol may be an entry, or the term itself."""
    two = isinstance(node, Name) and len(node.sub) == 2
    return replace(node, sub=()) if two and isinstance(node, Name) else node


def _with_wholes(node: Node) -> Iterator[Node]:
    for e in walk(node):
        yield e
        if _whole(e) is not e:
            yield _whole(e)


def _shown(read: Elaborated) -> str:
    return f"{unicode_text(read.terms[0])} = {unicode_text(read.terms[1])}"


def _can_be_stated(lhs: Node, rhs: Node, given: Hypothesis, symbols: Symbols) -> bool:
    """Return whether a hypothesis conforms with a claim and with what is declared."""
    try:
        elaborate([lhs, rhs, given.lhs, given.rhs], symbols, starts=(2,))
    except OtimesError:
        return False
    return True


def _are_numbers(*sides: Node) -> bool:
    """Return whether sides are made of numbers only, which may be rounded."""
    parts = [e for side in sides for e in walk(side)]
    if any(isinstance(e, Name) for e in parts):
        return False
    decimal = any(isinstance(e, Number) and "." in e.text for e in parts)
    return decimal or not any(isinstance(e, Grid) for e in parts)


def _plainly_labelled(node: Any) -> Any:
    """Return a term in which `h_1` and `h1`, `W_v` and `W_V` are written alike."""
    if isinstance(node, Slot):
        text = re.sub(r"\\mathrm|[{}_]", "", node.text)
        label = node.kind == "label" or len(text) != 1
        return Slot("label" if label else node.kind, text.casefold() if len(text) > 1 else text)
    if isinstance(node, tuple):
        return tuple(_plainly_labelled(part) for part in node)
    if isinstance(node, Node):
        parts = {f.name: _plainly_labelled(getattr(node, f.name)) for f in fields(node)}
        return replace(node, **{**parts, "span": node.span})
    return node


def _without_indices(name: Name) -> str:
    """Return a symbol as text without the indices below it."""
    labels = tuple(slot for slot in name.sub if slot.kind == "label")
    return latex(replace(name, sub=labels))


def _given(hypotheses: Sequence[str]) -> str:
    return f"; given {'; '.join(hypotheses)}" if hypotheses else ""


def _symbols(node: Node) -> list[Name]:
    """Return the symbols of a term that can stand for anything."""
    return [
        e
        for e in walk(node)
        if isinstance(e, Name) and e.base not in ("I", "Id", "tr", "Tr") and not is_constant(e)
        and len(e.base) < 3
    ]  # fmt: skip


def assumed(lhs: Node, rhs: Node) -> str:
    """Return why an equation can only be an assumption about its symbols, or an empty string.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> (equation,) = parse_formula("P^2 = P")
    >>> assumed(*equation.terms)
    'it is an assumption about P, and holds only if it is made'
    """
    names = {key_of(e) for side in (lhs, rhs) for e in _symbols(side)}
    about = ", ".join(sorted(names))
    text = f"it is an assumption about {about}, and holds only if it is made"
    if is_constant(lhs) or is_constant(rhs):
        return text
    left, right = _factors(lhs), _factors(rhs)
    sums = any(isinstance(e, Indexed) for side in (lhs, rhs) for e in walk(side))
    if len(names) == 1 and (len(left) == 1 or len(right) == 1) and not sums:
        return text
    if len(left) == 2 and left == right[::-1] and left != right:
        return f"it says that {left[0]} and {left[1]} commute, which is an assumption"
    return ""


def _factors(node: Node) -> list[str]:
    inner = bare(node)
    if isinstance(inner, Product):
        return [latex(bare(factor)) for factor in inner.factors]
    if isinstance(inner, Power) and isinstance(bare(inner.base), Product):
        return ["", "", ""]
    return [latex(inner)]
