"""What the judge answers in a reader's browser, where Pyodide runs this module.

A request is JSON, `{"do": "replay" | "decide" | "exercise", ...}`, and so is the answer. What the
reader got wrong, such as a formula that cannot be read, is answered by `{"error": sentence}`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import typed
from otimes.algebra.errors import OtimesError
from otimes.algebra.explain.search import with_budget
from otimes.algebra.language.unicode import unicode_text
from otimes.algebra.notation.text import read_claim, shown
from otimes.algebra.verdict import Verdict, decide
from otimes.proofs import replay

SHOWN = (
    (re.compile(r"(?<=[\w)\]]) 1_1×1(?![\w×])"), ""),  # as in rotation(i 1)
    (re.compile(r"\(\(([^()]*)\)\)"), r"(\1)"),
    (re.compile(r"(?<!\w)1_[\w·]+×1(?![0-9A-Za-z_])"), "𝟏"),  # a column of ones, whose length fits
    (re.compile(r"(?<!\w)1_1×(\w+)"), "𝟏ᵀ"),
    (re.compile(r"(?<= - )\(([\w ᵀ⁻¹]+)\)"), r"\1"),
    (re.compile(r"\(-(\w+) \+ (\w+)\)"), r"(\2 - \1)"),
    (re.compile(r"(?<=I_\()(\w+)\*(\w+)(?=\))"), r"\1·\2"),
)
"""What printed formulas have, and how a page shows it: as a student writes it."""

ARGUMENTS = re.compile(r"\b(diag|gelu|log|relu|rotation|silu|softmax|sqrt|tr)\b(?!\s*\()")
"""A function without brackets."""

MOST_NEEDS = 2
"""The number of missing hypotheses that are proposed for a false claim, and that of their parts."""

SEARCHED = 0.3
"""Units of work for the steps of a proof: a second or two in a browser, which waits for them."""


def answer(request: str) -> str:
    """Return the answer to a request, both as JSON."""
    asked = json.loads(request)
    try:
        found = ANSWERS[asked["do"]](asked)
    except (OtimesError, ValueError) as error:
        found = {"error": str(error)}
    return json.dumps(found, ensure_ascii=False)


def replayed(asked: dict[str, Any]) -> dict[str, Any]:
    """Return whether the checker accepts a certificate, and what it says of it."""
    try:
        certificate = json.loads(
            asked["certificate"],
            object_pairs_hook=replay.once,
            parse_constant=replay.no_number,
        )
        return {"accepted": True, "said": replay.check(certificate)}
    except (replay.Rejected, json.JSONDecodeError) as why:
        return {"accepted": False, "said": str(why)}


def decided(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the verdict on an equation, with the steps of its proof or its counterexample."""
    given = [line for line in asked.get("given", "").split("\n") if line.strip()]
    claim = read_claim(asked["equation"], None, given, asked.get("shapes") or None)
    verdict = decide(claim.lhs, claim.rhs, claim.given)
    needs = asked.get("needs", True)  # a build does not ask: finding them takes longest
    found = {
        "status": verdict.status,
        "reading": _plain(f"{shown(claim.lhs)} = {shown(claim.rhs)}"),
        "reason": verdict.reason,
        "steps": _steps(verdict),
        "counterexample": _counterexample(verdict, (claim.lhs, claim.rhs)),
        "needs": _needs(verdict) if needs else [],
    }
    if verdict.certificate is not None:
        found["replayed"] = replayed({"certificate": json.dumps(verdict.certificate)})
    return found


def exercise(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the verdict on `left = answer`, unless the answer is not of the form asked for."""
    left, shapes = asked["left"], asked.get("shapes", "")
    names = typed.names_of(left, shapes)
    said = typed.read(asked["answer"], left, names)
    if not said:
        return {"error": "type the right side of the equation"}
    if "=" in said:
        return {"error": "type the right side alone, without the equals sign"}
    for pattern, why in asked.get("without", []):
        if re.search(pattern, re.sub(r"\s", "", said)):
            return {"error": why}
    if other := typed.unknown(said, names):
        known = sorted(names - typed.names_of(re.sub(r"\w+\s*:", "", shapes)))
        ones = ["𝟏"] if "𝟏" in left else []
        return {"error": f"there is no {other} in this exercise, only {', '.join(known + ones)}"}
    if function := ARGUMENTS.search(said):
        name = function.group(1)
        return {"error": f"write what {name} is applied to in brackets: {name}(…)"}
    return decided({**asked, "equation": f"{left} = {said}"})


ANSWERS = {"replay": replayed, "decide": decided, "exercise": exercise}


def _needs(verdict: Verdict) -> list[str]:
    """Return the hypotheses under which a claim is true, those of few words first."""
    said = sorted((str(need) for need in verdict.would_need), key=lambda need: need.count(" and "))
    return [need for need in said if need.count(" and ") < MOST_NEEDS][:MOST_NEEDS]


def _steps(verdict: Verdict) -> dict[str, Any] | None:
    """Return the chain from one side to the other, a line for each rule."""
    if verdict.status != "proved":
        return None
    with with_budget(SEARCHED):
        chain = verdict.steps
    if chain is None or not len(chain):
        return None
    return {
        "preface": chain.preface(unicode_text),
        "first": _plain(unicode_text(chain.lhs)),
        "lines": [
            {
                "shown": _plain(unicode_text(line.expression)),
                "rule": line.rules,
                "says": line.readings,
            }
            for line in chain.lines
        ],
    }


def _counterexample(verdict: Verdict, stated: tuple[Any, Any]) -> dict[str, Any] | None:
    """Return the numbers that refute a claim: names with values, and both sides as stated."""
    found = verdict.counterexample
    if found is None:
        return None
    numbers = {**found.sizes, **found.indices, **found.scalars}
    matrices = [
        each for name, array in found.arrays.items() for each in _matrices(name, array.tolist())
    ]
    sides = []
    for expression, value, entry in zip(stated, found.values, (found.lhs, found.rhs), strict=True):
        rows = [[str(entry)]] if found.entry is None else _texts(value.tolist())
        name = _plain(unicode_text(expression))
        sides.append({"name": name, "rows": rows, "at": found.entry or (0, 0)})
    return {
        "numbers": [[str(symbol), str(value)] for symbol, value in numbers.items()],
        "matrices": matrices,
        "functions": [[f"{name}(x)", str(of_x)] for name, of_x in found.functions.items()],
        "sides": sides,
        "entry": found.entry,
        "left": str(found.lhs),
        "right": str(found.rhs),
        "presupposes": [str(each) for each in found.presupposes],
    }


def _matrices(name: str, value: Any) -> Iterator[dict[str, Any]]:
    """Yield the matrix of a name, or the matrices of a family, one for each index."""
    if value and value[0] and isinstance(value[0][0], list):
        for k, member in enumerate(value):
            yield from _matrices(f"{name}[{k}]", member)
    else:
        yield {"name": name, "rows": _texts(value)}


def _plain(text: str) -> str:
    """Return a printed formula as a student writes it.

    >>> _plain("A (X W_V + 1_n×1 b) - (X W_O)")
    'A (X W_V + 𝟏 b) - X W_O'
    """
    for found, shown_as in SHOWN:
        text = found.sub(shown_as, text)
    return text


def _texts(rows: list[list[Any]]) -> list[list[str]]:
    return [[str(entry) for entry in row] for row in rows]
