"""Why a claim is undecided: what is left of it, and what would settle it.

Both sides are read again, which costs nothing that the decision did not. Of the terms that do not
cancel a few are shown, in the symbols of the claim; for functions that differ, the difference of
their arguments; for hypotheses, whether they occur in what is left; for a claim about every depth,
what is left in the step of its induction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import sympy

from otimes.algebra.budget import Budget, Exhausted
from otimes.algebra.decide.axioms import AXIOMS
from otimes.algebra.decide.claim import Claim
from otimes.algebra.decide.from_equations import signs_in
from otimes.algebra.decide.function_parts import functions_in
from otimes.algebra.decide.induction import induction
from otimes.algebra.diagrams.diagram import Diagram
from otimes.algebra.diagrams.dimensions import Clash
from otimes.algebra.diagrams.sums import Terms, difference
from otimes.algebra.errors import OtimesError, RuleError, Undecided
from otimes.algebra.explain.readback import NotWritten, Renderer
from otimes.algebra.language import coefficients
from otimes.algebra.language.coefficients import Coefficient
from otimes.algebra.language.shapes import inspect
from otimes.algebra.language.sizes import normal_size
from otimes.algebra.language.unicode import unicode_text
from otimes.algebra.reading.interpretation import Applied, Interpretation
from otimes.algebra.reading.read import read

UNITS = 0.2  # of work for all of this
SHOWN = 4  # terms
WIDTH = 160  # characters of a sum that is shown
MOST_SIGNS = 2  # axioms of which it is said that they need a sign
SIGNS = {"positive": "> 0", "nonnegative": "≥ 0", "nonzero": "≠ 0"}
OF_ANY = ("relu_nonnegative", "reciprocal_cancel", "rsqrt_sqrt", "sqrt_square", "exp_log")
"""The axioms with a sign that are about every function of a name: it goes without saying."""


def obstacles(claim: Claim) -> list[str]:
    """Return sentences on what stands in the way of a proof, and what would settle the claim."""
    try:
        with Budget(UNITS):
            return [*_obstacles(claim)]
    except (Exhausted, OtimesError):
        return []


def _obstacles(claim: Claim) -> Iterator[str]:
    try:
        reading, ((left, right), *given) = read(
            claim.signature, (claim.lhs, claim.rhs), *claim.given
        )
    except Clash:
        yield from _of_cuts(claim)
        return
    except Undecided:
        yield from _at_depth(claim)
        return
    rest = difference(left.terms, right.terms)
    if not rest:
        return
    scalar = not claim.lhs.is_Matrix
    yield f"left side − right side leaves {shown(reading, rest, scalar)}"
    yield from _of_functions(reading, rest)
    yield from _of_signs(claim)
    idle = []
    for number, (one, other) in zip(claim.numbers, given, strict=False):
        terms = difference(one.terms, other.terms)
        if number >= 0 and terms and not _occurs(terms, rest):
            idle.append(number)
            yield f"the matrices of hypothesis {number + 1} do not occur together in this"
    if idle:
        yield "an equation that links what is left with the hypotheses, as a lemma, would settle it"


# -- what is left ----------------------------------------------------------------------------------


def shown(reading: Interpretation, terms: Terms, scalar: bool) -> str:
    """Return some terms of a sum of diagrams as text, in the symbols of the claim."""
    ordered = sorted(terms.items(), key=lambda term: (len(term[0].boxes), len(term[0].sorts)))
    texts: list[str] = []
    for diagram, coefficient in ordered[:SHOWN]:
        text = _term(reading, diagram, coefficient, scalar)
        minus = text.startswith("-")
        sign = (" − " if minus else " + ") if texts else ("−" if minus else "")
        texts.append(sign + (text[1:] if minus else text))
        if sum(map(len, texts)) > WIDTH:
            break
    more = len(terms) - len(texts)
    return "".join(texts) + (f" and {more} more term{'s' * (more > 1)}" if more else "")


def _term(reading: Interpretation, diagram: Diagram, coefficient: Coefficient, scalar: bool) -> str:
    """Return one term as an expression; if there is none, as matrices with indices."""
    if not _is_positive(coefficient):
        return f"-{_term(reading, diagram, -1 * coefficient, scalar)}"
    marks = [-1 - leg for leg in (*diagram.rows, *diagram.cols) if leg < 0]
    plain = diagram._replace(
        rows=tuple([leg for leg in diagram.rows if leg >= 0]),
        cols=tuple([leg for leg in diagram.cols if leg >= 0]),
    )
    where = f" (in block {', '.join(map(str, marks))})" if marks else ""
    try:
        return unicode_text(Renderer(reading, (), scalar).term(coefficient, plain)) + where
    except NotWritten:
        return _indexed(reading, plain, coefficient) + where


def _indexed(reading: Interpretation, diagram: Diagram, coefficient: Coefficient) -> str:
    """Return a term in index notation."""
    letters = [chr(ord("a") + k % 26) + "′" * (k // 26) for k in range(len(diagram.sorts))]
    ends = {*diagram.rows, *diagram.cols, *[wire for _, wire in diagram.named]}
    factors = []
    for label, *wires in diagram.boxes:
        one = reading.labels[label]
        blocks = [str(-1 - item) for item in (*one.row_branch, *one.col_branch) if item < 0]
        name = one.name + (f"⟨{','.join(blocks)}⟩" if blocks else "")
        factors.append(f"{name}[{', '.join(letters[w] for w in wires)}]" if wires else name)
    inner = [letters[w] for w in range(len(diagram.sorts)) if w not in ends]
    number = coefficients.to_sympy(coefficient)
    front = "" if number == 1 else f"{unicode_text(number)} "
    return front + (f"Σ_{','.join(inner)} " if inner else "") + (" ".join(factors) or "1")


# -- functions and hypotheses ----------------------------------------------------------------------


def _of_functions(reading: Interpretation, rest: Terms) -> Iterator[str]:
    """Yield how the arguments differ of two values of one function that are left, one of each."""
    by_name = {known.name: known for known in reading.applied}
    met = {reading.labels[box[0]].name for diagram in rest for box in diagram.boxes}
    plus = {_function_in(reading, d, by_name) for d, c in rest.items() if _is_positive(c)}
    minus = {_function_in(reading, d, by_name) for d, c in rest.items() if not _is_positive(c)}
    left = sorted({*plus} - {*minus} - {""})
    right = sorted({*minus} - {*plus} - {""})
    for one, other in zip(left, right, strict=True) if len(left) == len(right) else ():
        f, g = by_name[one], by_name[other]
        alike = {_others(reading, d, one) for d in rest} & {
            _others(reading, d, other) for d in rest
        }
        if f.function == g.function and met >= {one, other} and alike - {None}:
            yield from _arguments(reading, f, g)


def _others(reading: Interpretation, d: Diagram, name: str) -> tuple[str, ...] | None:
    """Return the names of the boxes besides one of this name, or None if there is none."""
    names = [reading.labels[box[0]].name for box in d.boxes]
    if name not in names:
        return None
    names.remove(name)
    return tuple(sorted(names))


def _of_signs(claim: Claim) -> Iterator[str]:
    """Yield which axioms would say more of a function if the signs of its argument were known."""
    signs = signs_in(claim)
    functions = dict.fromkeys(e for side in claim.sides for e in functions_in(side))
    said = []
    for e in functions:
        for axiom in AXIOMS.values():
            for one in axiom.of(e):
                missing = [
                    f"{unicode_text(x)} {SIGNS[s]}" for x, s in one.signs if not signs.has(x, s)
                ]
                if missing and not one.premises and one.axiom not in OF_ANY:
                    known = " and ".join(dict.fromkeys(missing))
                    said.append(
                        f"the axiom {one.axiom} would apply to {unicode_text(e)} if {known}"
                    )
    yield from list(dict.fromkeys(said))[:MOST_SIGNS]


def _function_in(reading: Interpretation, d: Diagram, known: dict[str, Applied]) -> str:
    names = [reading.labels[box[0]].name for box in d.boxes]
    return next((name for name in names if name in known), "")


def _is_positive(c: Coefficient) -> bool:
    """Return whether a coefficient is written without a minus before it, or as a sum."""
    if isinstance(c, coefficients.Scalar) and len(c.numerator) > 1:
        return True
    return not str(coefficients.to_sympy(c)).startswith("-")


def _arguments(reading: Interpretation, f: Applied, g: Applied) -> Iterator[str]:
    names = unicode_text(f.stated), unicode_text(g.stated)
    if (f.slots, f.features, len(f.arguments)) != (g.slots, g.features, len(g.arguments)):
        yield f"{names[0]} and {names[1]} are functions of arguments of different sizes"
        return
    if names[0] == names[1]:
        return
    parts = [getattr(e, "args", ()) for e in (f.stated, g.stated)]
    pairs = [
        (x, y) for x, y in zip(*parts, strict=False) if getattr(x, "is_Matrix", False) and x != y
    ]
    if len(pairs) == 1:
        x, y = (unicode_text(side) for side in pairs[0])
        yield f"{names[0]} and {names[1]} would be equal if {x} = {y}"


def _occurs(terms: Terms, rest: Terms) -> bool:
    """Return whether the matrices of a term of an equation are all in a term that is left."""
    parts = [Counter(box[0] for box in d.boxes) for d in terms]
    whole = [Counter(box[0] for box in d.boxes) for d in rest]
    return any(part <= other for part in parts if part for other in whole)


def _of_cuts(claim: Claim) -> Iterator[str]:
    """Yield two parts of a claim that read one size in different orders."""
    seen: dict[Any, tuple[str, str]] = {}
    for side in (claim.lhs, claim.rhs):
        for e in sympy.preorder_traversal(side):
            if not isinstance(e, sympy.KroneckerProduct | sympy.BlockMatrix):
                continue
            for size, legs in zip(map(normal_size, e.shape), _legs(e), strict=True):
                text, known = seen.setdefault(size, (unicode_text(e), legs))
                if known != legs:
                    yield (
                        f"{text} reads an index of {size} values as {known}, and "
                        f"{unicode_text(e)} as {legs}"
                    )
                    return


def _legs(e: Any) -> list[str]:
    """Return how the rows and the columns of a part are read."""
    reading, ((value,),) = read(inspect(e), [e])
    return [reading.dimensions.show(legs) for legs in (value.rows, value.cols)]


# -- depth -----------------------------------------------------------------------------------------


def _at_depth(claim: Claim) -> Iterator[str]:
    """Yield what is left in the induction over a number of layers."""
    for depth in claim.depths[:1]:
        try:
            plan = induction(claim.lhs, claim.rhs, claim.given, depth, lambda x, y: x == y)
        except RuleError as why:
            yield f"there is no induction over {depth}: {why}"
            return
        try:
            base = _left_of(plan.base, claim.given)
            step = _left_of(plan.step, (*claim.given, plan.hypothesis))
        except OtimesError as why:
            yield f"the induction over {depth} fails: {why}"
            return
        if base:
            yield f"for one layer, left side − right side leaves {base}"
            return
        if step:
            names = [f"{unicode_text(name)} for {unicode_text(e)}" for name, e in plan.named]
            known = " = ".join(map(unicode_text, plan.hypothesis))
            yield (
                f"in the induction over {depth}, with {' and '.join(names[:3])}, and with {known}, "
                f"one layer more leaves {step}; a lemma that makes this zero would settle it"
            )


def _left_of(sides: Sequence[Any], given: Sequence[Any]) -> str:
    """Return what is left of an equation as text, "" if nothing is."""
    lhs, rhs = sides
    one = Claim(lhs, rhs, given)
    reading, ((left, right), *_) = read(one.signature, (one.lhs, one.rhs))
    rest = difference(left.terms, right.terms)
    return shown(reading, rest, not one.lhs.is_Matrix) if rest else ""
