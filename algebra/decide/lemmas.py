"""Lemmas: proved equations that are used in the proof of another claim.

A lemma is proved by itself, for all sizes, numbers of layers and matrices. So it may be used for
others: an instance puts sizes and matrices in, and proves the hypotheses of the lemma for these. In
the step of an induction, a lemma about L layers is used for the first L layers, and for L + 1. This
is sound because nothing in the proof of the lemma is about one number of layers, or one matrix: it
is a certificate by itself, in which nothing of the claim is presupposed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import sympy

from otimes.algebra.errors import LanguageError
from otimes.algebra.language.functions import is_partial
from otimes.algebra.language.linear import Family, FamilyMember
from otimes.algebra.language.nonlinear import Activation, LayerNorm, RMSNorm, RowSoftmax
from otimes.algebra.language.shapes import inspect
from otimes.algebra.language.unicode import short_text

Equation = tuple[Any, Any]


@dataclass(frozen=True)
class Cited:
    """An instance `lhs` = `rhs` of a lemma.

    `lemma` is the decision that proved it. Its symbols, by name, stand for `sizes`, `scalars` and
    `tensors`, each of these with the indices that it is a function of; its free indices are called
    `frees`. `premises` are its hypotheses as put in: for each a decision with the names of its free
    indices, or the number of the same hypothesis of the claim.
    """

    lemma: Any
    lhs: Any
    rhs: Any
    sizes: Mapping[str, Any]
    tensors: Mapping[str, tuple[tuple[Any, ...], Any]]
    scalars: Mapping[str, Any] = field(default_factory=dict)
    frees: tuple[str, ...] = ()
    premises: tuple[Any, ...] = ()

    def at(self, lhs: Any, rhs: Any, sizes: Mapping[str, Any]) -> Cited:
        """Return the instance for other sizes, where it says `lhs` = `rhs`."""
        return replace(self, lhs=lhs, rhs=rhs, sizes={**self.sizes, **sizes})


def as_it_is(lemma: Any) -> Cited:
    """Return the lemma itself as an instance; its hypotheses are those of the claim."""
    claim = lemma.claim
    signature = claim.signature
    tensors = {}
    for name, tensor in signature.tensors.items():
        if isinstance(tensor, Family):
            at = tuple(sympy.Symbol(f"{name}~{k}", integer=True) for k in range(len(tensor.counts)))
            tensors[name] = (at, tensor[at])
        else:
            tensors[name] = ((), tensor)
    return Cited(
        lemma,
        claim.lhs,
        claim.rhs,
        dict(signature.sizes),
        tensors,
        dict(signature.scalars),
        tuple(inspect(claim.lhs, claim.rhs).indices),
        tuple(range(len(claim.equations))),
    )


def refuse_other_symbols(lemma: Any, claim: Any) -> None:
    """Raise LanguageError if a lemma has symbols that are not those of the claim."""
    mine, theirs = lemma.signature, claim.signature
    for kind in ("tensors", "sizes", "scalars"):
        known = getattr(theirs, kind)
        for name, symbol in getattr(mine, kind).items():
            if known.get(name) != symbol:
                raise LanguageError(
                    f"the lemma {_shown(lemma)} contains {name}, of which the claim and its "
                    "hypotheses say nothing"
                )


def presupposed_in(lemma: Any) -> Any:
    """Return a part of a lemma, or of its hypotheses, that is not defined everywhere, or None.

    A lemma is used for other numbers of layers and other matrices, where such a part may have no
    value.
    """
    for side in (*lemma.sides, *[side for pair in lemma.equations for side in pair]):
        for e in sympy.preorder_traversal(side):
            if _is_partial(e, lemma.signature.sizes.values()):
                return e
    return None


def _is_partial(e: Any, sizes: Any) -> bool:
    if isinstance(e, sympy.MatPow | sympy.Pow):
        whole = e.exp.is_Integer and e.exp >= 0
        return not (whole or e.exp in sizes or e.base in sizes or e.base.is_number)
    if isinstance(e, FamilyMember):
        return any(index.is_Integer and index != 0 for index in e.indices)
    masked = isinstance(e, RowSoftmax) and e.mask is not None
    function = isinstance(e, Activation) and is_partial(e.name)
    return masked or function or isinstance(e, RMSNorm | LayerNorm)


def _shown(claim: Any) -> str:
    return f"{short_text(claim.lhs)} = {short_text(claim.rhs)}"


def why_not(number: int, lemma: Any) -> str:
    """Return why a lemma cannot be used, by the decision on it; "" if it can."""
    said = f"lemma {number + 1}, {_shown(lemma.claim)},"
    if lemma.status == "refuted":
        return f"{said} is false"
    if lemma.status == "undecided":
        return f"{said} was not proved: {lemma.reason}"
    part = presupposed_in(lemma.claim)
    if part is not None:
        return f"{said} presupposes that {short_text(part)} is defined, and a lemma is for all"
    return ""
