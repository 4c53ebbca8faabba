"""The cases of a claim, as a certificate has them: the values of an index, each in one case.

The values of a case are sums of a number and symbols. A symbol is a size, from 1 on, or an index
that is left, from 0 on. So i = 0, i with L = i + r, and i = L are the values 0, …, L of an index.

>>> i, L, r = sympy.symbols("i L r")
>>> split = Split(Over(i, 0, L), "x = x", (At({i: i, L: i + r}, None),))
>>> as_data(split, lambda proof: {})["cases"][0]["at"]
{'i': {'': 0, 'i': 1}, 'L': {'': 0, 'i': 1, 'r': 1}}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import sympy
from sympy import Symbol

from otimes.algebra.language.unicode import unicode_text

MOST_CASES = 16  # proofs that a certificate may have


class Over(NamedTuple):
    """The index, or the size, that cases tell apart, with its least value and its last, or None."""

    index: Symbol
    least: int
    last: Any


class At(NamedTuple):
    """A case: what symbols of the claim are in it, and the decision on it.

    Those of `from_zero` are indices, which may be 0.
    """

    values: Mapping[Symbol, Any]
    decision: Any
    from_zero: frozenset[Symbol] = frozenset()


class Split(NamedTuple):
    """The cases of a claim, which is stated for people; a case may have cases of its own."""

    over: Over
    claim: str
    parts: tuple[At, ...]


def stated(lhs: Any, rhs: Any, given: Iterable[Any]) -> str:
    """Return a claim as text."""

    def shown(each: Any) -> str:
        pair = each.args if isinstance(each, sympy.Eq) else each
        if isinstance(pair, tuple | list) and len(pair) == 2:
            return " = ".join(unicode_text(sympy.sympify(side)) for side in pair)
        return str(each)

    known = ", ".join(map(shown, given))
    return shown((lhs, rhs)) + (f" where {known}" if known else "")


def as_data(split: Split, certified: Callable[[Any], Any]) -> dict[str, Any]:
    """Return cases as data, each with its certificate, for the schema that `certified` gives."""
    over = split.over
    last = None if over.last is None else _terms(over.last)
    return {
        "claim": split.claim,
        "over": {"index": str(over.index), "least": over.least, "last": last},
        "cases": [
            {
                "at": {str(symbol): _terms(value) for symbol, value in one.values.items()},
                "from_zero": sorted(map(str, one.from_zero)),
                "proof": certified(one.decision),
            }
            for one in split.parts
        ],
    }


def leaves(decisions: Sequence[Any]) -> int:
    """Return the number of proofs in decisions that may have cases."""
    splits = [one.split for one in decisions]
    return sum(leaves([at.decision for at in one.parts]) if one else 1 for one in splits)


def _terms(value: Any) -> dict[str, int]:
    """Return a sum of a number, at "", and multiples of symbols, by their names."""
    number, rest = sympy.expand(sympy.sympify(value).doit()).as_coeff_Add()
    terms = [] if rest == 0 else [term.as_coeff_Mul() for term in sympy.Add.make_args(rest)]
    return {"": int(number), **{str(symbol): int(factor) for factor, symbol in terms}}
