r"""Equations in a section that gives their symbols numbers: `X N = [1 1; 1 3]`."""

from __future__ import annotations

from dataclasses import replace

from otimes.algebra.errors import OtimesError
from otimes.algebra.notation.elaborate import elaborate, shape_error
from otimes.algebra.notation.symbols import Symbols
from otimes.algebra.notation.tree import (
    Apply,
    Grid,
    Group,
    Name,
    Node,
    Number,
    Power,
    bare,
    is_constant,
    latex,
    walk,
)
from otimes.algebra.verdict import Verdict
from otimes.proofs.documents.formulas.squares import squared
from otimes.proofs.documents.proving.attempts import attempted, named, symbols_in
from otimes.proofs.documents.proving.numeric_shapes import (
    misfit_in_numbers,
    numbers_given,
    with_lists_turned,
)
from otimes.proofs.documents.proving.other_readings import with_columns_of_ones
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.symbols.context import Context, Definition
from otimes.proofs.documents.symbols.terms import is_value


def in_numbers(
    context: Context, lhs: Node, rhs: Node, line: int, general: bool = False
) -> Found | None:
    """Return the verdict on a matrix in numbers, where a section gives all symbols numbers.

    `general`: also on a claim without numbers that does not stand beside them.
    """
    written = any(isinstance(e, Grid) for side in (lhs, rhs) for e in walk(side))
    within: dict[str, Definition] = {}  # also those with numbers
    own = lhs, rhs, *[context.unfolded(side, within) for side in (lhs, rhs)]
    names = {latex(e): e for side in own for e in walk(side) if isinstance(e, Name)}
    powers = {text: replace(e, sup=()) for text, e in names.items() if context.has_exponent(e)}
    powers = {text: e for text, e in powers.items() if latex(e) in context.numbers}
    symbols = {latex(e) for side in (lhs, rhs) for e in symbols_in(side)}
    all_in_numbers = bool(symbols) and symbols <= context.numbers.keys()
    if not (context.numbers and (written or powers or all_in_numbers)):
        return None
    itself = (bare(lhs), rhs)
    texts = {*names, *within, *map(latex, powers.values())}
    given = numbers_given(context, texts, line, itself)
    numbers = [is_value(side) for side in (lhs, rhs)]
    if not (written or any(numbers) or general):  # it is, unless the numbers stand beside it
        given = {t: d for t, d in given.items() if context.together(d.line, line)}
    if isinstance(bare(lhs), Name) and is_value(rhs):  # other numbers are of another example
        given.pop(latex(bare(lhs)), None)
    for text, e in powers.items():
        if latex(e) in given:
            base = given[latex(e)]
            power = Power(Group(base.rhs, stands_for=e), Number(names[text].sup[0].text))
            given[text] = Definition(names[text], power, base.line)
    used: dict[str, Definition] = {}
    a, b = (context.unfolded(side, used, None, given) for side in (lhs, rhs))
    if not used.keys() & given.keys():
        return None
    parts = [e for side in (a, b) for e in walk(side)]
    functions = {e.function for e in parts if isinstance(e, Apply)}
    if any(isinstance(e, Name) and not is_constant(e) for e in parts if e not in functions):
        return None
    if any(isinstance(e, Number) and "." in e.text for e in parts):
        return None  # rounded, perhaps
    known = context.symbols_at(line)
    a, b = squared(a, b) or (a, b)
    verdict, reading = attempted(*_as_numbers(a, b, known), [], known, certain=True)
    if verdict is None:
        a, b = with_columns_of_ones(a, b)
        verdict, reading = attempted(*_as_numbers(a, b, known), [], known, certain=True)
    why = f"in numbers, with {named(used)}"
    if verdict is None:
        verdict, reading = _with_lists(context, lhs, rhs, given, known) or (None, "")
    if verdict is None and (written or any(numbers)):
        misfit = misfit_in_numbers(context, (lhs, rhs), given, known)
        return Found("shape", f"{misfit}; {why}") if misfit else None
    if verdict is None or verdict.status == "undecided":
        return None
    return Found(verdict.status, why, verdict.counterexample, reading=reading)


def _with_lists(
    context: Context, lhs: Node, rhs: Node, given: dict[str, Definition], symbols: Symbols
) -> tuple[Verdict, str] | None:
    """Return the verdict in numbers where each list is a row or a column, None if both do."""
    found: dict[str, tuple[Verdict, str]] = {}
    for put in with_lists_turned(given):
        a, b = (context.unfolded(side, {}, None, put) for side in (lhs, rhs))
        if not shape_error([a, b], symbols):
            verdict, reading = attempted(*_as_numbers(a, b, symbols), [], symbols, certain=True)
            if verdict is None:
                return None
            found[verdict.status] = verdict, reading
    return found.popitem()[1] if len(found) == 1 else None


def _as_numbers(lhs: Node, rhs: Node, symbols: Symbols) -> tuple[Node, Node]:
    """Return sides with the entry of a 1 × 1 matrix in its place where the other is a number."""
    sides = []
    for side, other in ((lhs, rhs), (rhs, lhs)):
        number = is_value(other) and not any(isinstance(e, Grid) for e in walk(other))
        try:
            value = elaborate([side], symbols).terms[0] if number else None
        except OtimesError:
            value = None
        one = getattr(value, "shape", None) == (1, 1)
        sides.append(Apply(Name("tr"), (side,)) if one else side)
    return sides[0], sides[1]
