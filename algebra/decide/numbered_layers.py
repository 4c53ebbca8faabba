"""Claims about a large number of layers, as 96: proved for any number of them.

A product of 96 layers I + B has 2⁹⁶ terms. So the number becomes a symbol, and what is proved for
every value of that symbol is used at 96: the claim is an instance of a lemma.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement
from typing import Any

import sympy
from sympy import Integer, Symbol, Tuple

from otimes.algebra.decide.certificate_trees import Scope, Trees
from otimes.algebra.decide.claim import Claim
from otimes.algebra.decide.decision import Decision, Proof
from otimes.algebra.decide.lemmas import presupposed_in
from otimes.algebra.errors import OtimesError
from otimes.algebra.language.affine import AffineMember
from otimes.algebra.language.binders import fresh_name, names_in
from otimes.algebra.language.cut_ranges import MANY
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import Family, HeadSum
from otimes.algebra.language.shapes import inspect
from otimes.algebra.language.trees import key, parts_of, rebuilt

ALIKE = 2  # numbers that are made symbols
Decide = Callable[[Claim], Decision]


def for_any_number(claim: Claim, decided: Decide) -> Decision | None:
    """Return a proof of a claim about so many numbered layers from one about any number of them."""
    every = _numbers(claim)
    numbers = sorted(number for number in every if number - 1 not in every)  # else one more layer
    if not numbers or len(numbers) > ALIKE or claim.cited or claim.lemmas or claim.within:
        return None
    names = names_in(*_sides(claim))
    symbols = {
        number: Symbol(fresh_name(f"L_{number}", names), integer=True, positive=True)
        for number in numbers
    }
    for factors_too in (False, True):
        found = _decided(claim, symbols, factors_too, decided)
        if found is not None and found.status == "proved":
            known = {key(symbol): Integer(number) for number, symbol in symbols.items()}
            shown = ", ".join(map(str, numbers))
            reason = f"it holds for any number of layers in the place of {shown}: {found.reason}"
            proof = Proof("an instance", instance=(found, known))
            return Decision("proved", reason, claim, proof=proof, conditional=found.conditional)
    return None


def is_numbered(claim: Claim) -> bool:
    """Return whether a claim has products over a large number of layers."""
    return bool(_numbers(claim))


def _decided(
    claim: Claim, symbols: dict[int, Symbol], factors_too: bool, decided: Decide
) -> Decision | None:
    def general(e: Any) -> Any:
        return _general(e, symbols, factors_too)

    given = [tuple(map(general, pair)) for pair in claim.equations]
    try:
        lemma = Claim(general(claim.lhs), general(claim.rhs), (*given, *claim.inequalities))
    except OtimesError:
        return None
    if len(lemma.equations) != len(claim.equations) or presupposed_in(lemma) is not None:
        return None
    if not ((lemma.depths or lemma.is_affine) and _is_instance(claim, lemma, symbols)):
        return None
    return decided(lemma)


def _sides(claim: Claim) -> list[Any]:
    return [*claim.sides, *[side for pair in claim.given for side in pair]]


def _numbers(claim: Claim) -> set[int]:
    """Return the numbers of layers of products and of sums over paths, where they are many.

    Beside members at affine indices, as S[l + 1], those of other sums count as well.
    """
    kinds = LayerProduct, OrderSum, HeadSum
    found = {e for side in claim.sides for e in parts_of(side, *kinds)}
    sums = {e for e in found if isinstance(e, HeadSum)}
    counts = {e.count for e in found - sums}
    if sums and claim.is_affine:
        counts |= {count for e in sums for _, count in e.limits}
    return {int(count) for count in counts if count.is_Integer and count >= MANY}


def _general(e: Any, symbols: dict[int, Symbol], factors_too: bool) -> Any:
    """Return an expression with symbols for numbers of layers, and for one more than these."""

    def number(value: Any) -> Any:
        if not (isinstance(value, sympy.Basic) and value.is_Integer):
            return walk(value)
        for known, symbol in symbols.items():
            if value in (known, known + 1):
                return symbol + (int(value) - known)
        sums = combinations_with_replacement(symbols.items(), 2)
        both = [x + y for (k, x), (m, y) in sums if value == k + m]
        return both[0] if both else value

    def walk(e: Any) -> Any:
        if isinstance(e, Family):
            return Family(e.name, [number(count) for count in e.counts], *e.shape)
        if isinstance(e, AffineMember):
            forms = [Tuple(number(form[0]), *form[1:]) for form in e.args[1]]
            counts = [number(count) for count in e.counts]
            return AffineMember(walk(e.family), forms, counts, *e.variables)
        if isinstance(e, Tuple):
            return Tuple(*map(number, e))
        if isinstance(e, sympy.Pow) and not e.is_Matrix:
            return sympy.Pow(walk(e.base), number(e.exp), evaluate=False)
        if factors_too and isinstance(e, Integer):
            return number(e)
        if not e.args or isinstance(e, sympy.MatrixSymbol | sympy.Identity):
            return e
        if isinstance(e, OrderSum):
            return OrderSum(walk(e.body), walk(e.args[1]), number(e.order), e.reverse)
        new = [walk(part) for part in e.args]
        return e if new == list(e.args) else rebuilt(e, new)

    return walk(e)


def _is_instance(claim: Claim, lemma: Claim, symbols: dict[int, Symbol]) -> bool:
    """Return whether a claim is a lemma with numbers put in, tree for tree."""
    mine, theirs = Trees(claim.signature), Trees(lemma.signature)
    numbers = {key(symbol): number for number, symbol in symbols.items()}
    sizes = [numbers.get(name, mine.sizes.get(name)) for name in theirs.sizes]

    def put(tree: Any) -> Any:
        if not isinstance(tree, list):
            return tree
        if tree[0] == "size":
            name = [*theirs.sizes][tree[1]]
            return numbers[name] if name in numbers else ["size", sizes[tree[1]]]
        if tree[0] == "scalar":
            return mine.symbol([*theirs.scalars][tree[1]])
        if tree[0] == "tensor":
            return ["tensor", mine.tensors[[*theirs.tensors][tree[1]]], *map(put, tree[2:])]
        made = [put(part) for part in tree]
        whole = made[0] == "Add" and all(isinstance(part, int) for part in made[1:])
        return sum(made[1:]) if whole else made

    def trees(writer: Trees, stated: Claim) -> Iterator[Any]:
        scope = Scope().bound(*inspect(*stated.sides).indices)
        return (writer.tree(side, scope) for side in stated.sides)

    if {*mine.sizes} | numbers.keys() != {*theirs.sizes} or {*mine.tensors} != {*theirs.tensors}:
        return False
    return [*trees(mine, claim)] == [put(tree) for tree in trees(theirs, lemma)]
