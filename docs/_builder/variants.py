"""The exercise on a theorem's page: edited versions of its claim, true and false.

The false ones are mutants of the theorem that were refuted (`otimes.proofs.mutants`); the true ones
are mutants that say the same, or the transpose of both sides. What a reader sees is decided here as
it stands, so that the judge in the page says the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import sympy

import exercises
from otimes.algebra.errors import OtimesError
from otimes.algebra.language.trees import rebuilt
from otimes.algebra.language.unicode import unicode_text
from otimes.algebra.verdict import decide
from otimes.algebra.written import Written, written
from otimes.proofs.claims import Pair, Statement, equations
from otimes.proofs.evidence import TheoremReport
from otimes.proofs.mutants import WrongClaim, with_equal_sizes, wrong_claims
from words import code

LONGEST = 130
"""Characters of an equation in an exercise."""
TRIED = 3
"""Edits of each kind that are decided; the first that can be shown is taken."""
BUDGET = 0.1
"""Units of work for a verdict, as a page should answer soon."""

EDITS = {
    "swap factors": "two factors have changed places",
    "drop a transpose": "a transpose is missing",
    "insert a transpose": "there is a transpose more",
    "lose a term": "a term is missing",
    "count a term twice": "a term is counted twice",
    "flip a sign": "a sign is different",
    "lose a factor": "a factor is missing",
    "invert a scale": "a number has become its inverse",
    "rotate a trace": "the factors in a trace are rotated",
    "the other vec": "the rows are stacked instead of the columns, or the other way round",
    "first head only": "only the first member of a sum is left",
    "softmax over the wrong axis": "the softmax runs along the columns",
    "lose a mask": "a mask is missing",
    "lose a function": "a function is missing",
    "the other norm": "one kind of norm stands for the other",
}
"""What has been done to the theorem, by the name of the mutation."""
BOTH = "both sides are transposed"


class Variant(NamedTuple):
    """An edited claim: its sides, what was done to it, whether it should be true.

    `square`: all sizes are equal in it.
    """

    lhs: sympy.Basic
    rhs: sympy.Basic
    edit: str
    is_true: bool
    square: bool = False


def text(report: TheoremReport) -> str:
    """Return the section with the exercises, as Markdown; empty where the claim has none."""
    claim = report.theorem.claim()
    if not isinstance(claim, Statement) or report.proof.status != "proved" or not report.mutants:
        return ""
    length = len(unicode_text(claim.lhs)) + len(unicode_text(claim.rhs))
    if length > LONGEST or len(claim.given) > 1:  # such claims are hard to judge by eye
        return ""
    given = list(equations(claim.given))
    same = report.mutants.still_true
    mutants = _mutants(claim)
    false = [_variant(each, False) for each in mutants if str(each) not in same]
    true = [_variant(each, True) for each in mutants if str(each) in same]
    found = [
        _first(false, given) or _first(*_square(false, given)),
        _first(true, given) or _first(*_square(true, given)) or _first(_turned(claim), given),
    ]
    chosen = [each for each in found if each is not None]
    if _is_odd(report.theorem.name):
        chosen.reverse()
    made = [_exercise(number, *each) for number, each in enumerate(chosen, 1)]
    return "\n\n".join(["## Is it still true?", INTRODUCTION, *made]) if made else ""


INTRODUCTION = "The theorem with one edit. Decide first, then ask the judge."


def _exercise(number: int, variant: Variant, asked: Written) -> str:
    data = {"equation": asked.equation, "shapes": asked.shapes, "needs": False}
    if asked.given:
        data["given"] = "\n".join(asked.given)
    under = f", where {' and '.join(map(code, asked.given))}" if asked.given else ""
    if variant.square:
        under += ", with square matrices of one size"
    said = {
        "question": f"{code(asked.equation)}{under}",
        "hints": [f"Compare it with the theorem: {variant.edit}."],
        "solution": _solution(variant),
    }
    return exercises.block(f"Exercise {number}", "judgement", data, said, exercises.choice())


def _solution(variant: Variant) -> str:
    if variant.edit == BOTH:
        return (
            "True: equal matrices have equal transposes. The transpose of a product is the product"
            " of the transposes in the other order; in $\\otimes$ and in sums the order stays."
        )
    if variant.is_true:
        return f"True, although {variant.edit}: it says the same as the theorem."
    return (
        f"False: {variant.edit}. It may hold for special matrices; the judge shows numbers for"
        " which the sides differ."
    )


def _first(variants: Iterable[Variant], given: Sequence[Pair]) -> tuple[Variant, Written] | None:
    """Return the first of a few variants whose text is decided as it should be, with its text."""
    tried = 0
    for each in variants:
        try:
            asked = written(each.lhs, each.rhs, given)
            if len(asked.equation) > LONGEST:
                continue
            tried += 1
            found = decide(asked.equation, given=asked.given, shapes=asked.shapes, budget=BUDGET)
        except (OtimesError, ValueError):  # shapes that do not fit, or what cannot be written
            continue
        if found.status == ("proved" if each.is_true else "refuted"):
            return each, asked
        if tried >= TRIED:
            break
    return None


def _square(variants: Iterable[Variant], given: Sequence[Pair]) -> tuple[list[Variant], list[Pair]]:
    """Return variants and hypotheses with all sizes equal, so that factors in any order fit."""
    sides = with_equal_sizes(*[side for pair in given for side in pair])
    made = [
        each._replace(lhs=lhs, rhs=rhs, square=True)
        for each in variants
        for lhs, rhs in [with_equal_sizes(each.lhs, each.rhs)]
    ]
    return made, list(zip(sides[::2], sides[1::2], strict=True))


def _variant(mutant: WrongClaim, is_true: bool) -> Variant:
    return Variant(mutant.lhs, mutant.rhs, EDITS[mutant.operator], is_true)


def _turned(claim: Statement) -> Iterator[Variant]:
    """Yield the transpose of both sides, unless they are numbers or unchanged."""
    lhs, rhs = transposed(claim.lhs), transposed(claim.rhs)
    if lhs is not None and rhs is not None and (lhs, rhs) != (claim.lhs, claim.rhs):
        yield Variant(lhs, rhs, BOTH, is_true=True)


def _mutants(claim: Statement) -> list[WrongClaim]:
    """Return the mutants of the edits that have words, those of the first edits first."""
    order = list(EDITS)
    known = [each for each in wrong_claims(claim.lhs, claim.rhs) if each.operator in EDITS]
    return sorted(known, key=lambda each: order.index(each.operator))


def transposed(e: Any) -> Any:
    """Return the transpose of an expression as one writes it; None for a number.

    >>> from sympy import MatrixSymbol
    >>> A, B = MatrixSymbol("A", 2, 2), MatrixSymbol("B", 2, 2)
    >>> print(transposed(A * B.T))
    B*A.T
    """
    if not getattr(e, "is_Matrix", False) or e.shape == (1, 1):
        return None
    if isinstance(e, sympy.Identity):
        return e
    if isinstance(e, sympy.OneMatrix | sympy.ZeroMatrix):
        return type(e)(*e.shape[::-1])
    if isinstance(e, sympy.Transpose):
        return e.args[0]
    if isinstance(e, sympy.MatMul):
        numbers = [each for each in e.args if not each.is_Matrix]
        return rebuilt(e, [*numbers, *[_factor(x) for x in e.args[::-1] if x.is_Matrix]])
    if isinstance(e, sympy.MatAdd | sympy.KroneckerProduct | sympy.HadamardProduct):
        return rebuilt(e, [_factor(each) for each in e.args])
    return sympy.Transpose(e)


def _factor(factor: Any) -> Any:
    """Return the transpose of a part of an expression; of a 1 × 1 matrix it is the matrix."""
    turned = transposed(factor)
    return factor if turned is None else turned


def _is_odd(name: str) -> bool:
    """Return the parity of a digest, so that the false one does not always come first."""
    return bool(hashlib.sha256(name.encode()).digest()[0] % 2)
