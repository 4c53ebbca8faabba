"""Equations that are false for some values of their symbols: mistakes, or claims left open.

A counterexample refutes an equation for any values. The text may mean less: it may define a symbol,
assume something of it, or write one symbol in two ways. Only where nothing of the kind is left is
the equation refuted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import sympy

from otimes.algebra.errors import OtimesError
from otimes.algebra.notation.elaborate import elaborate
from otimes.algebra.notation.functions import ROWS
from otimes.algebra.notation.symbols import Symbols, block_key, key_of, text_of
from otimes.algebra.notation.tree import (
    Apply,
    Grid,
    Group,
    Indexed,
    Name,
    Node,
    Power,
    Product,
    bare,
    is_constant,
    latex,
    walk,
)
from otimes.algebra.notation.typed import Elaborated
from otimes.algebra.verdict import Verdict
from otimes.proofs.documents.formulas.common_factor import common_names, without_factor
from otimes.proofs.documents.proving.attempts import (
    TRIAL,
    attempted,
    is_proved,
    named,
    shown,
    symbols_in,
)
from otimes.proofs.documents.proving.other_readings import by_columns, plainly_labelled
from otimes.proofs.documents.proving.questions import decide
from otimes.proofs.documents.proving.under_hypotheses import offered, with_definitions
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.symbols.context import Context, Definition
from otimes.proofs.documents.symbols.hypotheses import Hypothesis
from otimes.proofs.documents.verdicts.suggestions import folded, suggestion

TRACES = ("tr", "Tr", "trace", "Trace")
COMMUTE = "commute, which is an assumption"
ASSUMPTION = "it is an assumption about"
DIFFER = "the sides differ at exact numbers"
MOST_CANCELLING = 5  # products that are taken for the identity
SOON = 12  # lines after a claim, on which an assumption may be stated


@dataclass(frozen=True, slots=True)
class FalseClaim:
    """An equation on a line of a document, with its context and a counterexample, `verdict`."""

    context: Context
    lhs: Node
    rhs: Node
    symbols: Symbols
    read: Elaborated
    verdict: Verdict
    line: int

    def found(self) -> Found:
        """Return the verdict: refuted, or why the counterexample does not decide the claim."""
        made = self._of_sizes() or self._of_a_function() or self._of_given_values()
        made = made or self._of_a_mistake()
        return made if made.reading else replace(made, reading=shown(self.read))

    def _names(self, *sides: Node) -> list[Name]:
        return [e for side in sides or (self.lhs, self.rhs) for e in symbols_in(side)]

    def _of_sizes(self) -> Found | None:
        """Return the verdict on a claim about sizes alone."""
        sizes, mine = self.symbols.sizes(), [text_of(e) for e in self._names()]
        if not mine or not all(text in sizes for text in mine):
            return None
        if self._differ_by_a_number():
            why = "the sides differ by a number, whatever the sizes are"
            return Found("refuted", why, self.verdict.counterexample)
        if self._is_of_matrices():
            return Found("refuted", "the sides differ for some sizes", self.verdict.counterexample)
        return Found("undecided", "it is about sizes, and holds for some of them")

    def _is_of_matrices(self) -> bool:
        """Return whether a claim is about a trace or matrices of any size, and false of them.

        It is also false if all its columns of ones have one length.
        """
        parts = [e for side in (self.lhs, self.rhs) for e in walk(side)]
        trace = any(isinstance(e, Apply) and e.function.base in TRACES for e in parts)
        if not trace and not getattr(self.read.terms[0], "is_Matrix", False):
            return False
        alike = self.symbols.copy()
        alike.same_ones = True
        verdict, _ = attempted(self.lhs, self.rhs, (), alike)
        return verdict is not None and verdict.status == "refuted"

    def _of_a_function(self) -> Found | None:
        r"""Return the verdict "undecided" where a letter may be a function: `N(A^T A) = N(A)`."""
        why = self.context.maybe_function([self.lhs, self.rhs], self.symbols)
        why = why or exponential_in(self._names()) or summed_over(self.lhs, self.rhs)
        return Found("undecided", why) if why else None

    def _of_given_values(self) -> Found | None:
        """Return the verdict "undecided" on a claim that may only give a scalar its value."""
        kinds = {getattr(self.symbols.lookup(e)[1], "kind", "") for e in self._names()}
        two_sided = self._names(self.lhs) and self._names(self.rhs)
        grids = any(isinstance(bare(e), Grid) for side in (self.lhs, self.rhs) for e in walk(side))
        if bool(self._names(self.lhs)) != bool(self._names(self.rhs)) and grids:
            return Found("undecided", "it gives values of what is not given in numbers itself")
        if not kinds or not kinds <= {"scalar", "size"} or two_sided:
            return None
        return Found("undecided", "it gives a value, or is about values that are given elsewhere")

    def _of_a_mistake(self) -> Found:
        """Return the verdict, with the edit that makes the claim true, if there is one."""
        lhs, rhs, symbols = self.lhs, self.rhs, self.symbols
        assumption = assumed(lhs, rhs)
        if self._equates_symbols():
            assumption = "it says that two symbols stand for the same"
        if _are_identities(lhs, rhs):
            return Found("needs-hypothesis", assumption)
        edit = suggestion(lhs, rhs, symbols)
        if not assumption and self._is_of_a_fixed_point():
            return Found("needs-hypothesis", f"{ASSUMPTION} a fixed point, or an eigenvector")
        if assumption and edit and edit.is_evidence and not self._is_constant():
            assumption = ""  # `(I - P)^2 = I - P` has no such edit
        known = self._of_defined() if assumption else None
        if known is not None or (assumption and not (edit and self._is_constant())):
            return known or Found("needs-hypothesis", assumption)
        proposed, kind = (edit.shown(), edit.kind) if edit else ("", "")
        sure = self._has_definitions() or not (self.read.undeclared or kind in ("factor", "term"))
        added = kind in ("term", "number") and self.read.undeclared
        if edit and (added or not (edit.is_evidence or sure)):
            kind = ""
        given, under = self._given()
        false = under is not None and under.status == "refuted"
        said = [h for h in given if h.origin[:1] != "“"] if false else []  # not by a word nearby
        about = {key_of(e) for h in said for e in self._names(h.lhs, h.rhs)}
        columns = by_columns(lhs, rhs, symbols) if ROWS in self.read.doubts else None
        why = self._true_reading(columns)
        if why:
            return Found("needs-hypothesis", why, suggestion=proposed)
        only, declared = self._one_sided(about) if not edit else ([], True)
        settled = bool(said) and {self._key(text) for text in only} <= about
        cancelling = self._cancelling() if only and declared and not settled else ""
        if cancelling:
            return Found("needs-hypothesis", f"true given {cancelling}")
        one_sided = [f"{', '.join(only)} on one side only"] if only and not declared else []
        if doubts := [*self._doubts(columns, about), *one_sided]:
            why = f"not proved, and numbers do not settle it: {'; '.join(doubts)}"
            verdict = "needs-hypothesis" if one_sided else "undecided"
        elif under is not None and under.status == "undecided" and _are_said(given):
            why = f"it is false in general, and open given {'; '.join(map(str, given))}"
            verdict = "undecided"
        else:
            why, verdict = DIFFER, "refuted"
        example = self.verdict.counterexample
        if verdict == "refuted" and edit is None and false:
            mended = suggestion(lhs, rhs, symbols, given=given)
            proposed = mended.shown() if mended else ""
        inverse = any(h.origin.startswith("“invertible”") for h in given)
        unless = settled or inverse or about & self.read.undeclared.keys()
        if false and under is not None and unless:
            why, example = f"{why}, given {'; '.join(map(str, given))}", under.counterexample
        return Found(verdict, why, example, proposed, differ=verdict != "refuted", edit=kind)

    def _equates_symbols(self) -> bool:
        """Return whether a claim is that two symbols are the same, whatever both sides have."""
        sides = self.lhs, self.rhs
        numbers = {k for k, kind in self.read.undeclared.items() if kind == "scalar"}
        for name in common_names(*sides, frozenset(numbers)):
            left, right = (without_factor(side, name) for side in sides)
            sides = (left, right) if left is not None and right is not None else sides
        return all(isinstance(bare(side), Name) for side in sides)

    def _is_of_a_fixed_point(self) -> bool:
        r"""Return whether a matrix keeps a vector, `P x = x`: nothing else is known of the two."""
        names = [replace(e, sup=()) for e in self._names()]
        if {latex(e) for e in names} & self.context.definitions.keys():
            return False
        sides = [bare(side) for side in (self.lhs, self.rhs)]
        if all(isinstance(e, Power) and e.exponent == "T" for e in sides[1:]):
            sides = [sides[0], bare(sides[1].base)] if isinstance(sides[1], Power) else sides
        vector, factors = sides[1], _factors(sides[0])
        kept = isinstance(vector, Name) and not vector.base.lstrip("\\")[:1].isupper()
        alone = latex(vector)
        return kept and len(factors) == 2 and len({latex(e) for e in names}) == 2 and (
            factors[1] == alone or factors[0] == latex(Power(vector, "T"))
        )  # fmt: skip

    def _is_constant(self) -> bool:
        return is_constant(self.lhs) or is_constant(self.rhs)

    def _true_reading(self, columns: Verdict | None) -> str:
        """Return under which other reading the claim is true, or ""."""
        sides = plainly_labelled(self.lhs), plainly_labelled(self.rhs)
        if sides != (self.lhs, self.rhs) and is_proved(*sides, self.symbols):
            return "true if labels that differ only in how they are written are the same"
        by_column = columns is not None and columns.status == "proved"
        return "true if softmax is taken along columns" if by_column else ""

    def _doubts(self, columns: Verdict | None, about: Collection[str]) -> list[str]:
        """Return the assumptions of the reading that the text does not state.

        `about` are the symbols of which hypotheses say what they are.
        """
        settled = columns is not None and columns.status == "refuted"
        doubts = [doubt for doubt in self.read.doubts if doubt != ROWS or not settled]
        keys = {self.symbols.lookup(e)[0] for e in self._names()}
        both = sorted(key for key in keys if block_key(key) in keys)
        doubts += [f"{key} and one state of it were taken as unrelated" for key in both]
        undeclared = {k: kind for k, kind in self.read.undeclared.items() if k not in about}
        if undeclared and not self._is_false_without_numbers():
            taken = [f"{key} for a {kind}" for key, kind in sorted(undeclared.items())]
            doubts.append(f"{', '.join(taken)} was taken, and that is not declared")
        return doubts

    def _is_false_without_numbers(self) -> bool:
        """Return whether the claim is false without undeclared numbers that all its terms have."""
        lhs, rhs, undeclared = self.lhs, self.rhs, self.read.undeclared
        numbers = frozenset(key for key, kind in undeclared.items() if kind == "scalar")
        for name in common_names(lhs, rhs, numbers):
            left, right = without_factor(lhs, name), without_factor(rhs, name)
            if left is not None and right is not None:
                lhs, rhs = left, right
        try:
            read = elaborate([lhs, rhs], self.symbols)
            verdict = decide(read.terms[0], read.terms[1], budget=TRIAL)
        except OtimesError:
            return False
        return verdict.status == "refuted" and not read.undeclared

    def _differ_by_a_number(self) -> bool:
        """Return whether the sides differ by a nonzero number."""
        example, (left, right) = self.verdict.counterexample, self.read.terms[:2]
        if example is None:
            return False
        try:
            number = Fraction(str(example.lhs)) - Fraction(str(example.rhs))
            more = sympy.Rational(number.numerator, number.denominator)
            other = sympy.Add(right, more, evaluate=False)
            return bool(number) and decide(left, other, budget=TRIAL).status == "proved"
        except (ValueError, AttributeError, OtimesError):
            return False

    def _of_defined(self) -> Found | None:
        """Return the refutation of a claim whose symbols are all defined, or None."""
        names = {latex(e) for e in self._names()}
        others = self.context.instances([self.lhs, self.rhs])
        known = self.context.definitions
        if not names or not all(text in known or text in others for text in names):
            return None
        used: dict[str, Definition] = {}
        sides = self.lhs, self.rhs
        a, b = (self.context.unfolded(side, used, None, others) for side in sides)
        try:
            read = elaborate([a, b], self.symbols)
            verdict = decide(read.terms[0], read.terms[1], budget=TRIAL)
        except OtimesError:
            return None
        sizes, lookup = self.symbols.sizes(), self.symbols.lookup
        if not used or verdict.status != "refuted" or read.undeclared or read.doubts:
            return None
        if any(text_of(e) not in sizes and lookup(e)[1] is None for e in self._names(a, b)):
            return None
        why = f"the sides differ at exact numbers; with {named(used)}"
        return Found("refuted", why, verdict.counterexample, reading=shown(read))

    def _given(self) -> tuple[list[Hypothesis], Verdict | None]:
        """Return the hypotheses that the text offers, and the verdict under all of them.

        Each by itself has been tried.
        """
        itself = [latex(folded(side)) for side in (self.lhs, self.rhs)]
        given = [
            each
            for each in (
                *self.context.declared_hypotheses([self.lhs, self.rhs]),
                *offered(self.context, self.lhs, self.rhs, self.symbols, 0),
            )
            if [latex(each.lhs), latex(each.rhs)] != itself
            and is_in_scope(self.context, each.origin, self.line)
        ]
        verdict = attempted(self.lhs, self.rhs, given, self.symbols)[0] if given else None
        put = [with_definitions(self.context, each) for each in given]
        if verdict is not None and verdict.status == "refuted" and put != given:
            others = self.context.instances([self.lhs, self.rhs])
            sides = self.lhs, self.rhs
            a, b = (self.context.unfolded(side, {}, None, others) for side in sides)
            defined, _ = attempted(a, b, put, self.symbols)
            verdict = defined if defined is not None and defined.status == "proved" else verdict
        return given, verdict

    def _one_sided(self, about: Collection[str]) -> tuple[list[str], bool]:
        """Return the symbols on one side only, and whether they are sufficiently declared.

        If both sides have some, the equation may define one of them. If one side has
        them all, and they are declared, it claims independence of them. So it does of a Greek
        letter by which a symbol is defined.
        """
        sizes = self.symbols.sizes()
        left, right = (
            {self._text(e): e for e in self._bases(side) if text_of(e) not in sizes}
            for side in (self.lhs, self.rhs)
        )
        only = sorted(left.keys() ^ right.keys())
        both = bool(left.keys() - right.keys()) and bool(right.keys() - left.keys())
        value = not (left and right) and self._names()  # perhaps an assumption: `tr(A) = k`
        sized = any(text_of(e) in sizes for e in value) if value else False
        sure = self._has_definitions() or {
            key_of(e) for e in (*left.values(), *right.values())
        } <= {*about}
        both = (both or sized) and not sure
        names = {**left, **right}
        declared = [each for each in self.context.hypotheses if each.declared]
        about = {key_of(e) for h in declared for e in self._names(h.lhs, h.rhs)} | {*about}
        groups = [e for side in (self.lhs, self.rhs) for e in walk(side) if isinstance(e, Group)]
        put_in = {latex(e) for each in groups if each.stands_for for e in symbols_in(each)}
        known = all(
            getattr(self.symbols.lookup(names[text])[1], "trusted", False)
            or key_of(names[text]) in about
            or (names[text].base[0] == "\\" and latex(names[text]) in put_in)
            for text in only
        )
        return only[:4], known and not both

    def _bases(self, side: Node) -> list[Name]:
        """Return the symbols of a side, `W` of `W^2`."""
        powers = self.context.has_exponent
        return [replace(e, sup=()) if powers(e) else e for e in self._names(side)]

    def _has_definitions(self) -> bool:
        """Return whether definitions are put in, so that the claim itself is none."""
        parts = [e for side in (self.lhs, self.rhs) for e in walk(side)]
        return any(isinstance(e, Group) and e.stands_for is not None for e in parts)

    def _key(self, text: str) -> str:
        """Return the key of a symbol of the claim without indices."""
        return next((key_of(e) for e in self._names() if self._text(e) == text), text)

    def _text(self, name: Name) -> str:
        """Return a symbol without indices; a number tells symbols apart that are not declared."""
        numbered = self.symbols.lookup(name)[1] is None and not self._has_definitions()
        return _without_indices(name, numbered)

    def _cancelling(self) -> str:
        """Return products of neighbours on one side that would have to be the identity.

        They are of two symbols, or of a symbol and its transpose.
        """
        left, right = (set(map(latex, symbols_in(side))) for side in (self.lhs, self.rhs))
        pairs: dict[str, Hypothesis] = {}
        for e in (e for side in (self.lhs, self.rhs) for e in walk(side)):
            for a, b in pairwise(map(bare, e.factors)) if isinstance(e, Product) else ():
                names = {latex(name) for part in (a, b) for name in symbols_in(part)}
                turned = [isinstance(part, Power) and part.exponent == "T" for part in (a, b)]
                same = len(
                    {latex(bare(p.base)) if isinstance(p, Power) else latex(p) for p in (a, b)}
                )
                gram = same == 1 and turned[0] != turned[1]
                plain = isinstance(a, Name) and isinstance(b, Name)
                if names <= left ^ right and (gram or plain):
                    product = Product((a, b), ("", ""))
                    pairs[latex(product)] = Hypothesis(product, Name("I"), "", False)
        every = [*pairs.values()][:MOST_CANCELLING]
        for given in (*[[each] for each in every], every) if every else ():
            verdict, _ = attempted(self.lhs, self.rhs, given, self.symbols)
            if verdict is not None and verdict.status == "proved":
                return "; ".join(map(str, given))
        return ""


def summed_over(*sides: Node) -> str:
    r"""Return that an index that is twice on one side, and not on the other, may be summed over.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> summed_over(*parse_formula(r"\delta_{kl} v_l = v_k")[0].terms)
    'the index l may be summed over, as it stands twice on one side'
    >>> summed_over(*parse_formula(r"a_k = b_k + c_l")[0].terms)
    ''
    """
    every, of_entries = [], set()
    for side in sides:
        bound = {i for e in walk(side) if isinstance(e, Indexed) for i in e.indices}
        names = [e for e in walk(side) if isinstance(e, Name)]
        indices = [[s.text for s in e.sub if s.kind == "index"] for e in names]
        every.append([letter for of in indices for letter in of if letter not in bound])
        of_entries |= {letter for of in indices if len(of) > 1 for letter in of}
    for mine, other in (every, every[::-1]):
        twice = {letter for letter in mine if mine.count(letter) > 1} - {*other}
        if found := sorted(twice & of_entries):
            return f"the index {found[0]} may be summed over, as it stands twice on one side"
    return ""


def _are_identities(*sides: Node) -> bool:
    """Return whether two identities are equated, of which one has no size: `I = I_4`."""
    names = [e for e in map(bare, sides) if isinstance(e, Name) and e.base in ("I", "Id")]
    return len(names) == len(sides) and not all(e.sub for e in names)


def exponential_in(names: Sequence[Name]) -> str:
    r"""Return that a power of e is no symbol that takes values of its own, "" where there is none.

    >>> from otimes.algebra.notation.tree import Slot
    >>> exponential_in([Name("e", sup=(Slot("label", "At"),))])
    'e^{\\mathrm{At}} may be an exponential, which is not in the language'
    """
    powers = [e for e in names if e.base == "e" and not e.sub and len(e.sup) == 1]
    open_ = [e for e in powers if e.sup[0].kind not in ("number", "index")]
    return f"{latex(open_[0])} may be an exponential, which is not in the language" if open_ else ""


def _are_said(given: Sequence[Hypothesis]) -> bool:
    """Return whether several hypotheses are from the text, and not from the literature."""
    said = [h for h in given if "literature" not in h.origin or "orthonormal" in h.origin]
    return len(said) > 1


def is_in_scope(context: Context, origin: str, line: int) -> bool:
    """Return whether what is said somewhere may be meant on a line: in scope, or soon after it.

    `origin` names the line where it is said, as "line 3"; what names none is meant everywhere.
    """
    said = re.search(r"line (\d+)", origin)
    at = int(said[1]) if said else line
    return context.in_scope(at, line) and at <= line + SOON


def _without_indices(name: Name, numbered: bool = False) -> str:
    """Return a symbol as text without the indices below it, or with those that are numbers."""
    kept = ("label", "number") if numbered else ("label",)
    return latex(replace(name, sub=tuple(s for s in name.sub if s.kind in kept), select=""))


def assumed(lhs: Node, rhs: Node) -> str:
    """Return why an equation can only be an assumption about its symbols, or an empty string.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> (equation,) = parse_formula("P^2 = P")
    >>> assumed(*equation.terms)
    'it is an assumption about P, and holds only if it is made'
    """
    names = {_numbered(e) for side in (lhs, rhs) for e in symbols_in(side)}
    about = ", ".join(sorted({key_of(e) for side in (lhs, rhs) for e in symbols_in(side)}))
    text = f"{ASSUMPTION} {about}, and holds only if it is made"
    free = any(isinstance(e, Name) and not is_constant(e) for s in (lhs, rhs) for e in walk(s))
    if free and (is_constant(lhs) or is_constant(rhs)):
        return text
    left, right = _factors(lhs), _factors(rhs)
    sums = any(isinstance(e, Indexed) for side in (lhs, rhs) for e in walk(side))
    if len(names) == 1 and (len(left) == 1 or len(right) == 1) and not sums:
        return text
    if len(left) == 2 and left == right[::-1] and left != right:
        return f"it says that {left[0]} and {left[1]} {COMMUTE}"
    return ""


def _numbered(name: Name) -> str:
    """Return the key of a symbol with the numbers below it, which tell symbols apart."""
    numbers = ",".join(slot.text for slot in name.sub if slot.kind == "number")
    return f"{key_of(name)}_{numbers}"


def _factors(node: Node) -> list[str]:
    inner = bare(node)
    if isinstance(inner, Product):
        return [latex(bare(factor)) for factor in inner.factors]
    if isinstance(inner, Power) and isinstance(bare(inner.base), Product):
        return ["", "", ""]
    return [latex(inner)]
