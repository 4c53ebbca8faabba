"""The verdict on one equation, or one link of a chain, in the context of its document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from otimes.algebra.errors import OtimesError
from otimes.algebra.notation.elaborate import check_shapes, elaborate, shape_error
from otimes.algebra.notation.entries import with_entries
from otimes.algebra.notation.symbols import Symbols, key_of
from otimes.algebra.notation.tokens import NotationError
from otimes.algebra.notation.tree import (
    Apply,
    Derivative,
    Grid,
    Group,
    Name,
    Node,
    Number,
    Power,
    Product,
    Sum,
    bare,
    is_constant,
    latex,
    walk,
)
from otimes.algebra.notation.typed import FormulaShapeError, Undeclared, WrongSide
from otimes.algebra.notation.vocabulary import FUNCTIONS
from otimes.proofs.documents.formulas.addends import declared_addends, unequal
from otimes.proofs.documents.formulas.squares import SQUARED, squared
from otimes.proofs.documents.prose.sides import read_as_rows
from otimes.proofs.documents.proving.attempts import (
    BUDGET,
    TRIAL,
    attempted,
    named,
    one_equation,
    shown,
    symbols_in,
)
from otimes.proofs.documents.proving.compositions import unless_composed
from otimes.proofs.documents.proving.conclusions import is_solved, refuted_by
from otimes.proofs.documents.proving.every_reading import PROPERTY, in_every_reading, misfit
from otimes.proofs.documents.proving.in_numbers import in_numbers
from otimes.proofs.documents.proving.lengths import by_lengths
from otimes.proofs.documents.proving.other_readings import (
    NEURONS,
    activations,
    as_powers,
    by_causality,
    by_order_of_vec,
    by_size_of_ones,
    with_columns_of_ones,
    with_ones,
)
from otimes.proofs.documents.proving.questions import decide
from otimes.proofs.documents.proving.related import unread_relation
from otimes.proofs.documents.proving.suppositions import supposes
from otimes.proofs.documents.proving.under_hypotheses import (
    by_definitions,
    by_hypotheses,
    given_text,
    offered,
)
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.symbols.applications import applications_in, hides_argument
from otimes.proofs.documents.symbols.context import Context, Definition
from otimes.proofs.documents.symbols.shifts import AWAY, around
from otimes.proofs.documents.symbols.signs import signs_used
from otimes.proofs.documents.symbols.terms import is_value
from otimes.proofs.documents.verdicts.actions import unless_plain
from otimes.proofs.documents.verdicts.false_claims import (
    ASSUMPTION,
    DIFFER,
    FalseClaim,
    is_in_scope,
)
from otimes.proofs.documents.verdicts.shape_conflicts import FITS_NUMBERS, ShapeConflicts
from otimes.proofs.documents.verdicts.signed_vectors import unless_signed
from otimes.proofs.documents.verdicts.spectra import OPEN, by_spectra, is_about_spectra
from otimes.proofs.documents.verdicts.suggestions import Edit, folded, suggestion

MOST_NODES = 1500  # parts of an equation that is decided
NOT_A_NUMBER = "a 1 before a matrix"  # is said where a column of ones may be meant


class Judge:
    """Decides the links of a document, with what it has declared and defined so far."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.conflicts = ShapeConflicts(context, self._claim)
        self.reads_in_every_way = False  # now: not again within

    def shapes(
        self, terms: Sequence[Node], line: int, source: str, symbols: Symbols | None = None
    ) -> Found | None:
        r"""Return the shape error of terms that a formula equates, or None.

        A factor 1 is a column of ones where they conform only so: `X = 1 b^\top`.
        """
        found = self.conflicts.shapes(terms, line, source, symbols)
        if found is not None and NOT_A_NUMBER in found.why:
            ones = [with_ones(term) for term in terms]
            return self.conflicts.shapes(ones, line, source, symbols) if ones != terms else found
        return found

    def misfit(self, lhs: Node, rhs: Node, line: int, source: str) -> Found | None:
        """Return the shape error of a definition, whatever its Greek letters stand for."""
        found = misfit(lhs, rhs, self.context.symbols_at(line))
        if found is None or self._may_have_another_shape([lhs, rhs], line):
            return None
        return self.conflicts.doubted(found, [lhs, rhs], line, source)

    def misfit_within(self, term: Node, line: int, source: str) -> Found | None:
        """Return the shape error of a term by itself, whatever is not declared stands for."""
        found = self.shapes([term], line, source)
        if found is not None and NOT_A_NUMBER in found.why:
            ones, _ = with_columns_of_ones(term, term)
            if ones != term:
                return self.misfit_within(ones, line, source)
        if found is None and not self._may_have_another_shape([term], line):
            symbols = self.context.symbols_at(line)
            found = in_every_reading(term, term, symbols, source, lambda trial: Found("undecided"))
            found = found and self.conflicts.doubted(found, [term], line, source)
        turned = found is not None and self.conflicts.turn_products([term], line, source)
        return None if turned or (found and not found.is_wrong) else found

    def of_this_section(self, found: Found, terms: Sequence[Node], line: int) -> Found:
        """Return the shape error, or "undecided" where letters are declared in another section."""
        return self.conflicts.of_this_section(found, terms, line)

    def claim(self, lhs: Node, rhs: Node, line: int, source: str) -> Found:
        """Return the verdict on lhs = rhs, with the signs of numbers that it may rest on."""
        with one_equation():
            in_numbers = self.in_numbers(lhs, rhs, line)
            found = (
                in_numbers
                or by_spectra(self.context, lhs, rhs, line)
                or self._in_squares(lhs, rhs, line)
                or self._in_ones(lhs, rhs, line, source)
            )
            misfit = found.verdict == "shape" or found.why.endswith(FITS_NUMBERS)
            if misfit and not in_numbers:  # with the sizes of another section
                example = self.in_numbers(lhs, rhs, line, general=True)
                found = example if example and example.verdict == "proved" else found
            if found.verdict == "undecided":
                found = self._with_activations(lhs, rhs, line, source) or found
            refuted = found.verdict == "refuted" and not (found.hypotheses or in_numbers)
            if refuted:
                found = self._with_all_definitions(found, lhs, rhs, line)
            if refuted and found.verdict == "refuted":
                found = self._unless_of_spectra(found, lhs, rhs, line)
            if refuted and found.verdict == "refuted":
                found = self._unless_shifted(found, lhs, rhs, line)
            if refuted and found.verdict == "refuted":
                found = unless_plain(found, self.context, lhs, rhs, line)
            if refuted and found.verdict == "refuted":
                found = unless_signed(found, self.context, lhs, rhs, line)
        signs = signs_used([lhs, rhs], self.context.symbols_at(line))
        if found.verdict != "proved" or not signs:
            return found
        return replace(found, why=f"{found.why}; where {', '.join(signs)}")

    def in_numbers(self, lhs: Node, rhs: Node, line: int, general: bool = False) -> Found | None:
        """Return the verdict where a section gives all symbols numbers, None elsewhere."""
        return in_numbers(self.context, lhs, rhs, line, general)

    def _with_activations(self, lhs: Node, rhs: Node, line: int, source: str) -> Found | None:
        """Return the verdict where Greek letters act on each entry, None where it is open.

        A function of a vector and of a number does. It is so without being said in a text about
        neurons.
        """
        others = self.context.instances([lhs, rhs])
        sides = [self.context.unfolded(side, {}, None, others) for side in (lhs, rhs)]
        open_ = activations(sides, self.context.symbols_at(line))
        if not open_ or len({latex(e) for e in applications_in(sides)}) < 2:
            return None
        with self.context.acting_on_entries(open_):
            found = self._in_ones(lhs, rhs, line, source)
        said = NEURONS.search(self.context.words_of_section(line))
        names = " and ".join(sorted(open_))
        if found.verdict == "proved" or (found.is_wrong and said):
            return replace(found, why=f"{found.why}; where {names} acts on each entry")
        return None

    def _unless_of_spectra(self, found: Found, lhs: Node, rhs: Node, line: int) -> Found:
        """Return a refutation, unless the claim is about singular values, and not all is read."""
        if not is_about_spectra(self.context, lhs, rhs, line):
            return found
        return replace(found, verdict="undecided", why=OPEN, differ=False)

    def _in_squares(self, lhs: Node, rhs: Node, line: int) -> Found | None:
        """Return the verdict on the squares of norms, or None where it is open."""
        squares = squared(lhs, rhs)
        if squares is None:
            return None
        found = self._in_ones(*squares, line, "")
        sure = found.verdict == "proved" or found.is_wrong or found.why.startswith("true given")
        if found.is_wrong and PROPERTY.search(self.context.words_of_section(line)):
            return None  # what turns a vector, or has norm one, may be said in words
        why = f"{SQUARED}: {found.why}" if found.why else SQUARED
        return replace(found, why=why, span=None, suggestion="") if sure else None

    def _with_all_definitions(self, found: Found, lhs: Node, rhs: Node, line: int) -> Found:
        """Return a refutation, unless the claim is true or open with all definitions put in.

        A symbol that is defined takes no values of its own.
        """
        used: dict[str, Definition] = {}
        others = self.context.instances([lhs, rhs])
        a, b = (self.context.unfolded(side, used, None, others) for side in (lhs, rhs))
        if not used:
            return found
        given = self.context.declared_hypotheses([a, b])
        verdict, reading = attempted(a, b, given, self.context.symbols_at(line))
        general = not (found.suggestion or any(is_value(each.rhs) for each in used.values()))
        if verdict is None and general and _is_misfit([a, b], self.context.symbols_at(line)):
            why = f"it is false in general, and does not conform with {named(used)}"
            return replace(found, verdict="undecided", why=why, differ=False)
        if verdict is None or verdict.status == "refuted":
            return self._unless_orthonormal(found, a, b, line)
        if verdict.status == "proved":
            hypotheses = tuple(str(given[k]) for k in verdict.used)
            why = f"with {named(used)}{given_text(hypotheses)}"
            return Found("proved", why, reading=reading, hypotheses=hypotheses)
        why = f"it is false in general, and open with {named(used)}"
        return replace(found, verdict="undecided", why=why, differ=False)

    def _unless_shifted(self, found: Found, lhs: Node, rhs: Node, line: int) -> Found:
        """Return a refutation, unless its shift matrix may take no other values.

        It stands where the equation is false of states on a circle.
        """
        others = self.context.instances([lhs, rhs]) | self.context.members_of([lhs, rhs])
        sides = [self.context.unfolded(side, {}, None, others) for side in (lhs, rhs)]
        names = {replace(e, span=(0, 0)) for s in sides for e in walk(s) if isinstance(e, Name)}
        shifts = [shift for shift in self.context.shifts if shift.name in names]
        if not shifts:
            return found
        (a, b), symbols = around(sides, shifts, self.context.symbols_at(line))
        verdict, _ = attempted(a, b, (), symbols)
        weak = any(shift.weak for shift in shifts)
        if verdict is not None and verdict.status == "refuted" and not weak:
            return replace(found, why=f"{found.why}; {AWAY}")
        why = f"it is false of other matrices than the shift on line {shifts[0].line}"
        return replace(found, verdict="undecided", why=why, counterexample=None, suggestion="")

    def _unless_orthonormal(self, found: Found, a: Node, b: Node, line: int) -> Found:
        """Return a refutation, unless it is open where U and V of `U Σ Vᵀ` are orthonormal."""
        symbols = self.context.symbols_at(line)
        given = [h for h in offered(self.context, a, b, symbols, line) if "orthonormal" in h.origin]
        if found.suggestion or not given:
            return found
        given += self.context.declared_hypotheses([a, b])
        verdict, _ = attempted(a, b, given, symbols)
        if verdict is None or verdict.status == "refuted":
            return found
        why = f"it is false in general, and open given {'; '.join(map(str, given))}"
        return replace(found, verdict="undecided", why=why, differ=False)

    def _in_ones(self, lhs: Node, rhs: Node, line: int, source: str) -> Found:
        """Return the verdict on lhs = rhs, where a factor 1 may be a column of ones."""
        if sum(1 for side in (lhs, rhs) for _ in walk(side)) > MOST_NODES:
            return Found("undecided", "it is too long to be decided")
        found = self._as_it_stands(lhs, rhs, line, source)
        ones = with_columns_of_ones(lhs, rhs)
        if found.verdict == "proved" or ones == (lhs, rhs):
            return found
        other = self._as_it_stands(ones[0], ones[1], line, source)
        if found.verdict == "needs-hypothesis" and other.verdict != "proved":
            return found
        if not found.is_wrong and other.verdict in ("undecided", "shape"):
            return found
        if other.is_wrong:
            misread = found.verdict == "shape" or NOT_A_NUMBER in found.why
            return other if misread else found
        if other.verdict == "proved":
            return replace(other, why=f"{other.why}; where 1 is a column of ones")
        return Found("needs-hypothesis", f"if 1 is a column of ones: {other.why}")

    def _as_it_stands(self, lhs: Node, rhs: Node, line: int, source: str) -> Found:
        """Return the verdict on lhs = rhs, without other readings of a number 1."""
        symbols = self.context.symbols_at(line)
        try:
            found = self._claim(lhs, rhs, symbols, line, source)
            misfit = found.verdict == "undecided" and "; but " in found.why
            if misfit and self.conflicts.turn_products([lhs, rhs], line, source):
                found = self._claim(lhs, rhs, self.context.symbols_at(line), line, source)
            if found.verdict in ("undecided", "needs-hypothesis"):
                return (
                    self._as_defined_below(lhs, rhs, symbols, line)
                    or self._as_factored(lhs, rhs, symbols, line)
                    or self._of_addends([lhs, rhs], symbols, line, source)
                    or found
                )
            factored = self._as_factored(lhs, rhs, symbols, line) if found.is_wrong else None
            if factored is not None and not factored.is_wrong:
                return factored
            return self._as_defined_elsewhere(found, lhs, rhs, symbols, line)
        except FormulaShapeError as error:
            if self.conflicts.turn_products([lhs, rhs], line, source):
                return self._as_it_stands(lhs, rhs, line, source)
            return self.conflicts.conflict(error, lhs, rhs, line, source)

    def _as_defined_below(self, lhs: Node, rhs: Node, symbols: Symbols, line: int) -> Found | None:
        """Return the verdict on an open claim by the definitions that follow, as after “where”.

        None where these leave it open, too, or where a symbol has several.
        """
        below: dict[str, Definition] = {}
        for other in self.context.other_definitions([lhs, rhs], line):
            for text, each in other.items():
                if each.line < line or text in self.context.definitions or text in below:
                    return None
                below[text] = each
        if not below:
            return None
        used: dict[str, Definition] = {}
        a, b = (self.context.unfolded(side, used, None, below) for side in (lhs, rhs))
        try:
            found = self._claim(a, b, symbols, line, "")
        except FormulaShapeError as error:
            found = self.conflicts.doubted(Found("shape", str(error)), [a, b], line, "")
        except OtimesError:
            return None
        sure = found.verdict == "proved" or found.is_wrong
        return replace(found, why=f"{found.why}; with {named(used)}", span=None) if sure else None

    def _as_factored(self, lhs: Node, rhs: Node, symbols: Symbols, line: int) -> Found | None:
        """Return the verdict with what the text says that a product is, None where it is open.

        A factor of it that is left is not defined by that.
        """
        for known in reversed(self.context.factorisations):
            a, b = known.put_in(lhs), known.put_in(rhs)
            if (a, b) == (lhs, rhs) or not self.context.in_scope(known.line, line):
                continue
            try:
                found = self._claim(a, b, symbols, line, "")
            except FormulaShapeError as error:
                found = self.conflicts.doubted(Found("shape", str(error)), [a, b], line, "")
            left = known.names() & {e for side in (a, b) for e in walk(side)}
            true = found.verdict == "proved" or found.why.startswith("true given")
            if true or (found.is_wrong and not left):
                said = latex(Product(known.factors, ("",) * len(known.factors)))
                return replace(found, why=f"{found.why}; with {said} as on line {known.line}")
        return None

    def _of_addends(
        self, terms: Sequence[Node], symbols: Symbols, line: int, source: str
    ) -> Found | None:
        """Return the shape error of declared addends, whatever the other symbols are, or None."""
        for addend in declared_addends(terms, symbols):
            wrong = self.misfit_within(addend, line, source)
            if wrong is not None:
                return wrong
        found = unequal(terms, symbols)
        if found is None or self._may_have_another_shape(found[1], line):
            return None
        why = f"cannot add vectors of different lengths: {found[0]}"
        wrong = self.conflicts.doubted(Found("shape", why), found[1], line, "")
        return wrong if wrong.is_wrong else None

    def _as_defined_elsewhere(
        self, found: Found, lhs: Node, rhs: Node, symbols: Symbols, line: int
    ) -> Found:
        """Return the verdict on a false claim whose symbols have another definition, too.

        It may be soon after the claim, as after “where”, or before it.
        """
        if not found.is_wrong:
            return found
        members = self.context.members_of([lhs, rhs])
        put = [self.context.unfolded(side, {}, (), members) for side in (lhs, rhs)]
        entries = with_entries(put, symbols)
        columns = _as_columns(symbols, [lhs, rhs])
        if entries is not None and not _is_misfit(entries, columns):
            verdict, reading = attempted(entries[0], entries[1], (), columns)
            if verdict is None or verdict.status != "refuted":
                why = "with an index, a vector may be its entry"
                return Found("undecided", why, reading=reading)
        for other in self.context.other_definitions([lhs, rhs], line):
            used: dict[str, Definition] = {}
            sides = [self.context.unfolded(side, used, (), other) for side in (lhs, rhs)]
            for only in ((), None):
                a, b = (self.context.unfolded(side, used, only) for side in sides)
                verdict, reading = attempted(a, b, (), symbols)
                if verdict is not None and verdict.status == "proved":
                    if any(is_value(each.rhs) or is_constant(each.rhs) for each in used.values()):
                        return Found("needs-hypothesis", f"true with {named(used)}")
                    return Found("proved", f"with {named(used)}", reading=reading)
                true = by_hypotheses(self.context, a, b, symbols, line)
                if true is not None:
                    return replace(true, why=f"{true.why}; with {named(used)}")
            below = any(each.line >= line for each in used.values())
            open_ = verdict is None or verdict.status != "refuted"
            if below and open_ and _may_conform([a, b], symbols):
                why = f"it is false in general, and open with {named(used)}"
                return replace(found, verdict="undecided", why=why, differ=False)
        return found

    def _claim(self, lhs: Node, rhs: Node, symbols: Symbols, line: int, source: str) -> Found:
        """Return the verdict, or raise FormulaShapeError."""
        try:
            return self._decided(lhs, rhs, symbols, line, source)
        except Undeclared as error:
            found = by_definitions(self.context, lhs, rhs, symbols) or self._unfolded(
                lhs, rhs, symbols, line
            )
            found = found or by_order_of_vec(
                lhs, rhs, symbols, partial(self._ordered, lhs, rhs, line)
            )
            found = found or self._in_every_reading(lhs, rhs, symbols, line, source)
            if found is None and isinstance(error, WrongSide):
                found = self.conflicts.wrong_side(error, [lhs, rhs], line, source)
            if found is not None:
                return found
            edit = self._conforming(error, lhs, rhs, symbols, line)
            if edit is None:
                return Found("undecided", str(error), span=error.span)
            why = str(error).partition("; but ")[0]
            return Found("shape", why, suggestion=edit.shown(), edit=edit.kind, span=error.span)
        except NotationError as error:
            return Found("undecided", str(error), span=error.span)
        except FormulaShapeError:
            raise
        except OtimesError as error:
            return Found("undecided", str(error))

    def _conforming(
        self, error: Undeclared, lhs: Node, rhs: Node, symbols: Symbols, line: int
    ) -> Edit | None:
        """Return the edit that makes a claim true whose shapes do not conform, if there is one."""
        if "; but " not in str(error) or self.reads_in_every_way:
            return None
        return self.conflicts.by_edit(lhs, rhs, symbols, line)

    def _decided(self, lhs: Node, rhs: Node, symbols: Symbols, line: int, source: str) -> Found:
        read = elaborate([lhs, rhs], symbols, source)
        reading = shown(read)
        verdict = decide(read.terms[0], read.terms[1], budget=BUDGET)
        if verdict.status == "proved":
            turned, sure = read_as_rows(read, lhs, rhs, symbols)
            if turned and not sure:
                why = f"it conforms only where {' and '.join(turned)}: say so, or declare the shape"
                return Found("undecided", why, reading=reading)
            readings = [doubt for doubt in read.doubts if " was read " in doubt or "rows" in doubt]
            readings += [f"where {each}" for each in turned]
            readings += self._contradicted(lhs, rhs, symbols)
            proof = Found("proved", "; ".join([verdict.reason, *readings]), reading=reading)
            return unless_composed(proof, self.context, lhs, rhs, symbols)
        found = (
            by_definitions(self.context, lhs, rhs, symbols)
            or by_hypotheses(self.context, lhs, rhs, symbols, line)
            or as_powers(lhs, rhs, symbols)
            or by_size_of_ones(self.context, lhs, rhs, symbols)
            or by_lengths(self.context, lhs, rhs, symbols)
            or by_causality(lhs, rhs, read)
            or self._unfolded(lhs, rhs, symbols, line)
        )
        if found is not None:
            return found
        if verdict.status == "undecided":
            return Found("undecided", verdict.reason, reading=reading)
        if _are_numbers(lhs, rhs) and not _are_whole(lhs, rhs):
            why = "these numbers are not exactly equal; they may be rounded"
            return Found("undecided", why, reading=reading)
        open_ = self._open_by_definition(lhs, rhs, symbols, line)
        found = open_ or FalseClaim(self.context, lhs, rhs, symbols, read, verdict, line).found()
        if found.verdict == "undecided" and found.differ and read.undeclared:
            # in a reading in which all is declared there are no more readings
            found = self._in_every_reading(lhs, rhs, symbols, line) or found
        return self._settled(found, lhs, line)

    def _settled(self, found: Found, lhs: Node, line: int) -> Found:
        """Return the refutation of a claim that an edit makes true, unless words excuse it.

        A symbol may be defined again.
        """
        if not (found.differ and found.edit) or isinstance(bare(folded(lhs)), Name):
            return found
        if self.context.is_excused(found.edit, line):
            return found
        return replace(found, verdict="refuted", why=DIFFER, differ=False)

    def _in_every_reading(
        self, lhs: Node, rhs: Node, symbols: Symbols, line: int, source: str = ""
    ) -> Found | None:
        """Return the verdict on a claim with symbols that are not declared, whatever they are."""
        if self.reads_in_every_way:
            return None
        self.reads_in_every_way = True
        if self._has_members_apart([lhs, rhs]):
            symbols = self._with_members(symbols, [lhs, rhs])
        else:
            members = self.context.members_of([lhs, rhs])
            lhs, rhs = (self.context.unfolded(side, {}, (), members) for side in (lhs, rhs))
        try:
            judged = partial(self._ordered, lhs, rhs, line)
            found = in_every_reading(lhs, rhs, symbols, source, judged)
            if found is not None and found.verdict == "shape":
                if self._may_have_another_shape([lhs, rhs], line, source):
                    return None
                certain, found = found, self.conflicts.doubted(found, [lhs, rhs], line, source)
                edit = None if found.is_wrong else self.conflicts.by_edit(lhs, rhs, symbols, line)
                if edit is not None:
                    found = replace(certain, suggestion=edit.shown(), edit=edit.kind)
        finally:
            self.reads_in_every_way = False
        if found is not None and found.verdict == "refuted":
            clauses = self.context.clauses_near(line)
            return None if supposes(self.context, clauses, lhs, rhs, line) else found
        return found

    def _may_have_another_shape(
        self, terms: Sequence[Node], line: int, source: str | None = None
    ) -> bool:
        """Return whether the shape of a symbol may be another one here: a row of a matrix, too.

        With a source: and whether the terms may conform in another one.
        """
        used = self.context.lines_of(terms, line)
        every = [e for term in terms for e in walk(term) if isinstance(e, Name)]
        names = [replace(e, select="") if e.select else e for e in every]
        symbols = self.context.symbols_at(line)
        members = [
            e
            for e in names
            if e.base.isupper()
            and [s.kind for s in e.sub] == ["index"]
            and latex(e) not in self.context.definitions
        ]
        declared = [symbols.lookup(e)[1] for e in members]
        if any(known is None or "_" not in known.full for known in declared):
            return True  # the symbol is declared without an index
        here, noted = self.context.in_scope, self.context.is_about_notation
        other = [(k, at) for k, at in used if len(k) == 1 and not (here(at, line) or noted(at))]
        if not other or source is None:
            return bool(other)
        return not self.conflicts.fit_in_no_reading(terms, line, {key for key, _ in other}, source)

    def _contradicted(self, lhs: Node, rhs: Node, symbols: Symbols) -> list[str]:
        """Return the declared shapes with which a proved claim does not conform."""
        names = [e for side in (lhs, rhs) for e in walk(side) if isinstance(e, Name)]
        mine = {symbols.lookup(e)[0] for e in names}
        wrong = sorted((line, key) for key, line in self.context.wrong if key in mine)
        return [f"but not with the shape of {key} on line {line}" for line, key in wrong]

    def _ordered(self, lhs: Node, rhs: Node, line: int, symbols: Symbols) -> Found:
        try:
            return self._decided(lhs, rhs, symbols, line, "")
        except OtimesError:  # a symbol whose shape is that of its definition
            used: dict[str, Definition] = {}
            a, b = (self.context.unfolded(side, used) for side in (lhs, rhs))
        try:
            found = self._decided(a, b, symbols, line, "")
            return replace(found, why=f"{found.why}; with {named(used)}") if used else found
        except FormulaShapeError as error:
            return Found("shape", str(error))
        except OtimesError as error:
            return Found("undecided", str(error))

    def _open_by_definition(
        self, lhs: Node, rhs: Node, symbols: Symbols, line: int
    ) -> Found | None:
        """Return the verdict on a claim, false in general, whose symbols are defined, or None.

        A definition that the language cannot express leaves the claim open.
        """
        given = [
            each
            for each in self.context.declared_hypotheses([lhs, rhs])
            if is_in_scope(self.context, each.origin, line)
        ]
        if given:
            verdict, reading = attempted(lhs, rhs, given, symbols)
            if verdict is not None and verdict.status == "undecided":
                names = "; ".join(map(str, given))
                return Found("undecided", f"it is false in general, and open given {names}")
        others = self.context.instances([lhs, rhs], only_weights=True)
        texts = {latex(e) for side in (lhs, rhs) for e in walk(side)}
        known = sorted(t for t in texts if t in self.context.definitions or t in others)
        readable = [t for t in known if self._can_unfold(t, lhs, rhs, symbols)]
        related = unread_relation(self.context, [lhs, rhs], known, symbols)
        if related:
            edit = suggestion(lhs, rhs, symbols)
            slip = edit is not None and edit.kind == "sign" and edit.is_evidence
            return None if slip else Found("undecided", related)
        used: dict[str, Definition] = {}
        put = {text: each for text, each in others.items() if text in readable}
        a, b = (self.context.unfolded(side, used, readable, put) for side in (lhs, rhs))
        if not used:
            return None
        verdict, reading = attempted(a, b, (), symbols)
        if verdict is None or verdict.status == "refuted":
            return None
        if verdict.status == "proved":
            return Found("proved", f"with {named(used)}", reading=reading)
        return Found("undecided", f"{verdict.reason}; with {named(used)}", reading=reading)

    def _can_unfold(self, text: str, lhs: Node, rhs: Node, symbols: Symbols) -> bool:
        """Return whether a claim with a definition substituted is in the language."""
        put = self.context.instances([lhs, rhs], only_weights=True)
        put = {text: put[text]} if text in put else {}
        sides = [self.context.unfolded(side, {}, [text], put) for side in (lhs, rhs)]
        try:
            elaborate(sides, symbols)
        except OtimesError:
            return False
        return True

    def _unfolded(
        self, lhs: Node, rhs: Node, symbols: Symbols, line: int, here: bool = False
    ) -> Found | None:
        """Judge the claim that remains after substitution of what only one side has.

        `here`: only with definitions of letters in scope. Others may prove a claim, and refute
        none: a letter may mean something else in another section.
        """
        left, right = ({latex(e) for e in _with_wholes(side)} for side in (lhs, rhs))
        known = self.context.definitions
        one_sided = {text for text in left ^ right if text in known}
        one_sided = {t for t in one_sided if not self.context.lists_members(known[t][0])}
        others = self.context.instances([lhs, rhs], only_weights=True)
        others |= self.context.powers_in([lhs, rhs])
        if here:
            one_sided = {t for t in one_sided if not self._is_elsewhere(known[t][0], line)}
            others = {t: d for t, d in others.items() if not self._is_elsewhere(d, line)}
        both = left & right
        others = {
            text: each
            for text, each in others.items()
            if text in left ^ right and latex(_whole(each.lhs)) not in both
        }
        used: dict[str, Definition] = {}
        a, b = (self.context.unfolded(side, used, one_sided, others) for side in (lhs, rhs))
        if self._has_members_apart([a, b]):
            others = {t: d for t, d in others.items() if not self.context.is_member(d.lhs)}
            used = {}
            a, b = (self.context.unfolded(side, used, one_sided, others) for side in (lhs, rhs))
            symbols = self._with_members(symbols, [a, b])
        if not used:
            long = "its definitions, put in, are too long to be decided"
            return Found("undecided", long) if one_sided else None
        try:
            found = self._decided(a, b, symbols, line, "")
        except FormulaShapeError as error:
            misfitting = self._unfolded_shape(error, a, b, line, used)
            members = self.context.members_of([lhs, rhs])
            if misfitting is not None or not members or members.keys() == used.keys():
                return misfitting
            a, b = (self.context.unfolded(side, {}, (), members) for side in (lhs, rhs))
            return self._unfolded_shape(error, a, b, line, members)
        except OtimesError:
            text = shape_error([a, b], symbols)
            misfit = FormulaShapeError(text, lhs.span) if text else None
            return self._unfolded_shape(misfit, a, b, line, used) if misfit else None
        if found.verdict == "needs-hypothesis" and found.why.startswith(ASSUMPTION):
            found = self._as_consequence(a, b, symbols, line) or found
        elsewhere = any(self._is_elsewhere(each, line) for each in used.values())
        slip = found.edit not in ("", "term", "number") and not isinstance(bare(lhs), Name)
        if found.verdict == "refuted" and elsewhere and not here and not slip:
            return self._unfolded(lhs, rhs, symbols, line, here=True)
        why = self._of_an_example([a, b], used, symbols) or self._of_a_pattern(used)
        if found.verdict == "refuted" and why:
            return Found("undecided", why, reading=found.reading)
        found.why = f"{found.why}; with {named(used)}"
        if found.verdict == "refuted" and used.keys() & self.context.sizes:
            return replace(found, verdict="undecided", counterexample=None)  # sizes of an example
        return (found.differ and self._in_part(lhs, rhs, symbols, line, used)) or found

    def _has_members_apart(self, sides: Sequence[Node]) -> bool:
        """Return whether symbols stand for rows of matrices that do not occur as a whole.

        The symbols alone say as much.
        """
        names = [e for side in sides for e in walk(side) if isinstance(e, Name) and not e.select]
        wholes = {m.whole for every in self.context.members.values() for m in every}
        return bool(self.context.members_of(sides)) and not wholes & {*names}

    def _with_members(self, symbols: Symbols, sides: Sequence[Node]) -> Symbols:
        """Return symbols in which rows of matrices are rows, or vectors if they do not conform."""
        rows = self.context.with_members(symbols, sides, sided=True)
        try:
            elaborate(sides, rows)
        except WrongSide:
            return self.context.with_members(symbols, sides)
        except OtimesError:
            pass
        return rows

    def _as_consequence(self, lhs: Node, rhs: Node, symbols: Symbols, line: int) -> Found | None:
        """Return the refutation of a claim in terms of defined symbols, or None.

        It is no assumption about those by which they are defined, if these have assumptions
        already, under which it is false, or if it says what a term is that is not constant.
        """
        given = [
            each
            for each in self.context.declared_hypotheses([lhs, rhs])
            if is_in_scope(self.context, each.origin, line)
        ]
        constant = is_constant(lhs) or is_constant(rhs)
        if any(e.function.base not in FUNCTIONS for e in applications_in([lhs, rhs])):
            return None  # it may say what a function is
        if (constant and not given) or is_solved(self.context.words_near(line)):
            return None
        return refuted_by(lhs, rhs, given, symbols)

    def _unfolded_shape(
        self, error: FormulaShapeError, a: Node, b: Node, line: int, used: dict[str, Definition]
    ) -> Found | None:
        """Return the shape error of a claim with definitions put in, if an edit mends it."""
        edit = self.conflicts.by_edit(a, b, self.context.symbols_at(line), line)
        why = f"{error}; with {named(used)}"
        if edit is not None:
            return Found("shape", why, suggestion=edit.shown(), edit=edit.kind, span=error.span)
        names = [e for side in (a, b) for e in symbols_in(side)]
        plain = all(e.base.lstrip("\\")[0].isupper() and _has_no_index(e) for e in names)
        if not (names and plain and self.context.factored) or any(
            self._is_elsewhere(each, line) for each in used.values()
        ):
            return None  # a small letter may be a number, and one with an index an entry
        found = Found("shape", why, span=error.span)
        found = self.conflicts.doubted(found, [a, b], line, "", error.broadcast)
        return found if found.is_wrong else None

    def _is_elsewhere(self, known: Definition, line: int) -> bool:
        """Return whether a letter is defined in another section."""
        name = known.lhs
        letter = isinstance(name, Name) and (len(key_of(name)) == 1 or _is_greek(name))
        return letter and not self.context.in_scope(known.line, line)

    def _of_an_example(
        self, sides: Sequence[Node], used: dict[str, Definition], symbols: Symbols
    ) -> str:
        """Return which number or matrix of numbers may be one case of several, or ""."""
        for text, each in sorted(used.items()):
            if isinstance(bare(each.rhs), Number):
                return f"{text} has the value on line {each.line} perhaps only in one case"
            free = any(latex(e) not in used for side in sides for e in symbols_in(side))
            if _is_grid(each.rhs) and free:
                return f"{text} is the example on line {each.line}, and other symbols are free"
        return ""

    def _of_a_pattern(self, used: dict[str, Definition]) -> str:
        """Return which function of another argument may compute more than is shown, or ""."""
        for text, each in sorted(used.items()):
            applied = isinstance(each.lhs, Apply) and text not in self.context.definitions
            if applied and hides_argument(each.lhs, each.rhs):
                return f"the pattern in {text}, line {each.line}, may depend on its argument"
        return ""

    def _in_part(
        self, lhs: Node, rhs: Node, symbols: Symbols, line: int, used: dict[str, Definition]
    ) -> Found | None:
        """Return the refutation of a claim with one definition substituted, or None.

        It is asked only where the sides differ with all definitions substituted.
        """
        for text, definition in sorted(used.items()):
            a, b = (self.context.unfolded(side, {}, [text]) for side in (lhs, rhs))
            alone = {text: definition}
            if self._of_an_example([a, b], alone, symbols) or self._of_a_pattern(alone):
                continue
            try:
                read = elaborate([a, b], symbols)
                verdict = decide(read.terms[0], read.terms[1], budget=TRIAL)
            except OtimesError:
                continue
            if verdict.status != "refuted":
                continue
            found = FalseClaim(self.context, a, b, symbols, read, verdict, line).found()
            if found.verdict == "refuted":
                found.why = f"{found.why}; with {text} as on line {definition.line}"
                return found
        return None


def _as_columns(symbols: Symbols, terms: Sequence[Node]) -> Symbols:
    """Return symbols in which declared vectors of which there are only entries are columns.

    A row has the same entries.
    """
    names = [e for term in terms for e in symbols_in(term)]
    whole = {symbols.lookup(e)[0] for e in names if not e.sub}
    found = symbols.copy()
    for e in names:
        key, known = symbols.lookup(e)
        if known is None or key in whole or known.kind != "vector" or symbols.side_of(known):
            continue
        found.known[key] = replace(known, side="column")
    return found


def _is_misfit(terms: Sequence[Node], symbols: Symbols) -> bool:
    """Return whether terms that are equated do not conform."""
    try:
        check_shapes(terms, symbols)
    except FormulaShapeError:
        return True
    except Undeclared as error:  # in no shape, if all that is in the terms is declared
        names = [e for term in terms for e in symbols_in(term)]
        known = all(symbols.lookup(e)[1] is not None for e in names)
        return known and "; but " in str(error)
    except OtimesError:
        return False
    return False


def _may_conform(terms: Sequence[Node], symbols: Symbols) -> bool:
    """Return whether terms that are equated conform, or are not in the language."""
    try:
        elaborate(terms, symbols)
    except FormulaShapeError:
        return False
    except Undeclared as error:
        return "; but " not in str(error)
    except OtimesError:
        return True
    return True


def _is_greek(name: Name) -> bool:
    return name.base[0] == "\\" and not name.sub and not name.sup


def _whole(node: Node) -> Node:
    """Return the matrix of which a symbol may be an entry, or the term itself."""
    two = isinstance(node, Name) and len(node.sub) == 2
    return replace(node, sub=()) if two and isinstance(node, Name) else node


def _has_no_index(name: Name) -> bool:
    return not any(slot.kind == "index" for slot in name.sub)


def _with_wholes(node: Node) -> Iterator[Node]:
    """Yield the parts of a term in which definitions are put in: not what is within derivatives."""
    derivatives = [e for e in walk(node) if isinstance(e, Derivative)]
    inside = {id(part) for each in derivatives for part in walk(each) if part is not each}
    for e in walk(node):
        if id(e) in inside:
            continue
        yield e
        if _whole(e) is not e:
            yield _whole(e)


def _is_grid(node: Node) -> bool:
    """Return whether a term is a matrix of numbers."""
    return isinstance(bare(node), Grid) and not any(isinstance(e, Name) for e in walk(node))


def _are_whole(*sides: Node) -> bool:
    """Return whether sides are sums, products and powers of whole numbers."""
    parts = [e for side in sides for e in walk(side)]
    kinds = (Number, Sum, Product, Power, Group)
    whole = all(isinstance(e, kinds) and "/" not in getattr(e, "marks", ()) for e in parts)
    return whole and not any(isinstance(e, Number) and "." in e.text for e in parts)


def _are_numbers(*sides: Node) -> bool:
    """Return whether sides are made of numbers only, which may be rounded."""
    parts = [e for side in sides for e in walk(side)]
    if any(isinstance(e, Name) for e in parts):
        return False
    decimal = any(isinstance(e, Number) and "." in e.text for e in parts)
    return decimal or not any(isinstance(e, Grid) for e in parts)
