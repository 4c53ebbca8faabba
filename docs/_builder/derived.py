"""The derivations of the theorems as data: searching for them is most of the work of a build.

They depend on the theorem and on the algebra alone, not on how pages are written, and are kept by
that; `chains` puts them on a page. The search has a smaller budget than that of `otimes show`:
without a limit, a few theorems take as long as all others together.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path

from evidence import Kept, kept_all, key_of
from otimes.algebra.errors import OtimesError
from otimes.algebra.explain import search
from otimes.algebra.explain.derivation import Derivation, Line
from otimes.algebra.language.latex import latex
from otimes.algebra.rules import RULES
from otimes.proofs.theorem import Theorem

BUDGET = search.BUDGET if os.environ.get("OTIMES_LONG") else 1.0
"""Units of work for a derivation, about a second each; with OTIMES_LONG=1 as many as elsewhere."""
TEXT_WIDTH = 96
NONE: Kept = {"steps": 0, "lines": [], "rules": []}
"""The data where no chain is found."""


def derivations(theorems: Iterable[Theorem]) -> dict[str, Kept]:
    """Return the data of the derivation of each theorem by name."""
    return _derivations(tuple(theorems))


@lru_cache(maxsize=1)  # pages and the map ask for the same
def _derivations(theorems: tuple[Theorem, ...]) -> dict[str, Kept]:
    asked = {theorem.name: theorem for theorem in theorems}
    keys = {
        name: key_of(theorem, "derivation", _digest(), BUDGET, name)
        for name, theorem in asked.items()
    }
    return kept_all("derivations found", keys, derivation, asked)


@cache
def _digest() -> str:
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()


def derivation(theorem: Theorem) -> Kept:
    """Return the derivation of a theorem as data.

    `lines` are those of its outline: TeX, what each does in words, the rules with how often, and
    whether all of them are bookkeeping. `text` has every step, `readings` the equations of the
    rules.
    """
    try:
        with search.with_budget(BUDGET):
            chain = theorem.steps()
    except OtimesError:  # a claim that cannot be stated: its page says why
        return NONE
    if chain is None or not len(chain):
        return NONE
    rules = sorted({step.rule for step in chain})
    return {
        "steps": len(chain),
        "preface": chain.preface(lambda e: f"${latex(e)}$"),
        "first": latex(chain.lhs),
        "lines": [_line(line) for line in chain.outline().lines],
        "text": chain.text(TEXT_WIDTH),
        "rules": rules,
        "readings": _readings(chain),
    }


def _line(line: Line) -> Kept:
    rules = Counter(step.rule for step in line.steps)
    moves = all(rule in RULES and RULES[rule].bookkeeping for rule in rules)
    tex = latex(line.expression)
    return {"tex": tex, "idea": line.idea, "rules": dict(rules), "moves": moves}


def _readings(chain: Derivation) -> list[str]:
    found = (f"{step.rule}: {step.reading}" for step in chain if step.reading)
    return list(dict.fromkeys(found))
