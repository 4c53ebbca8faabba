"""Each guard of the checker: without it, and it alone, a certificate of what is false passes."""

from __future__ import annotations

import ast
import contextlib
import io
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from otimes.proofs import replay
from tests.proofs.forged import FORGED, FORMAL, GUARDS

SOURCE = Path(replay.__file__).read_text(encoding="utf-8")


def message(call: ast.Call) -> str:
    """Return what a guard says, with … for what it fills in."""
    said = call.args[1]
    if isinstance(said, ast.Constant):
        return str(said.value)
    assert isinstance(said, ast.JoinedStr)
    return "".join(
        str(part.value) if isinstance(part, ast.Constant) else "…" for part in said.values
    )


def guard(node: ast.AST) -> str | None:
    """Return the message of a statement that is a guard."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        function = node.value.func
        if isinstance(function, ast.Name) and function.id == "demand":
            return message(node.value)
    return None


MESSAGES = {said for node in ast.walk(ast.parse(SOURCE)) if (said := guard(node)) is not None}


class _Switched(ast.NodeTransformer):
    """A source in which each guard can be switched off by its message."""

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        said = guard(node)
        if said is None:
            return node
        switched = ast.parse(f"if is_on({said!r}): pass").body[0]
        assert isinstance(switched, ast.If)
        switched.body = [node]
        return ast.copy_location(switched, node)


class _Checker(ModuleType):
    """The checker without the guard whose message is `off`; it notes those that it `met`."""

    def __init__(self) -> None:
        super().__init__("replay_with_switches")
        self.__file__, self.off, self.met = replay.__file__, "", set[str]()
        tree = ast.fix_missing_locations(_Switched().visit(ast.parse(SOURCE)))
        exec(compile(tree, replay.__file__, "exec"), self.__dict__)

    def is_on(self, message: str) -> bool:
        """Return whether a guard demands anything."""
        self.met.add(message)
        return message != self.off


@cache
def switched() -> Any:
    checker = _Checker()
    checker.__dict__["is_on"] = checker.is_on
    return checker


@pytest.fixture(autouse=True)
def all_guards_are_on_again() -> Iterator[None]:
    yield
    switched().off = ""


def without(message: str) -> Any:
    """Return the checker without a guard: one module, until another guard is switched off."""
    checker = switched()
    checker.off = message
    return checker


def why(checker: Any, made: Any) -> str | None:
    """Return why a checker rejects a certificate, None if it does not."""
    try:
        checker.check(made)
    except checker.Rejected as reason:
        return str(reason)
    return None


def test_every_guard_is_known() -> None:
    assert {*GUARDS, *FORMAL} == MESSAGES
    assert not set(GUARDS) & set(FORMAL)


@pytest.mark.parametrize("message", GUARDS)
def test_no_guard_is_idle(message: str) -> None:
    made = FORGED[GUARDS[message]]
    reason = why(replay, made)
    assert reason is not None
    parts = message.split("…")
    assert reason.startswith(parts[0])
    assert reason.endswith(parts[-1])
    assert why(without(message), made) is None


@cache
def reached() -> dict[str, list[str]]:
    """Return which false claims reach each guard: it makes no difference to the others."""
    checker = without("")
    found: dict[str, list[str]] = {message: [] for message in MESSAGES}
    for name, made in FORGED.items():
        checker.met.clear()
        assert why(checker, made) == why(replay, made)
        for message in checker.met:
            found[message].append(name)
    return found


@pytest.mark.parametrize("message", FORMAL)
def test_a_guard_of_the_form_stops_nothing_false(message: str) -> None:
    """Where this is red, the guard has become one of the others, and that is to be said."""
    names, mutant = reached()[message], without(message)
    assert [name for name in names if why(mutant, FORGED[name]) is None] == []


# Lines that are not calls of `demand`, such as what a statement gives to a proof. Each change lets
# a false claim through.
KNOWN = [
    (
        "inside = whole(part, len(claim.frees))",
        "inside = True",
        "any matrix for a sum that another sum binds",
    ),
    (
        'boxes += [(self.label(("inner", self.sizes[w])), (new[w],)) for w in t.inner]',
        "pass",
        "a function of the sums of rows and of columns",
    ),
    (
        "ranges = tuple([(*factors, self.sizes[w]) for factors, w in columns])",
        "ranges = tuple([(*factors, 0) for factors, w in columns])",
        "a sum over another number of members",
    ),
    (
        "if wire in wires[len(columns) :]:",
        "if False:",
        "a sum turned around in some of its factors",
    ),
    (
        "end = plus(self.sizes[wire], UNITY.items(), -1)",
        "end = self.sizes[wire]",
        "a sum turned around about another middle",
    ),
    (
        "for wire in tops:\n            boxes = self.directed(boxes, wire)",
        "for wire in touched:\n            boxes = self.directed(boxes, wire)",
        "a free index turned around",
    ),
    (
        "if self.noting and not any(names(tree, one) for one in depths):",
        "if self.noting:",
        "past a depth without an inverse",
    ),
    (
        'depths += [["i", k] for k in range(self.frees)] if depths else []',
        "pass",
        "an inverse at an index of the claim, at each depth",
    ),
    ('return "free", part[1]', "pass", "an inverse at one index for all"),
    (
        "self.noting and some and not before and not none",
        "self.noting",
        "inverted before the first layer",
    ),
    (
        "self.noting and some and not before and not none",
        "self.noting and some and not none",
        "inverted before the first layer",
    ),
    (
        "self.noting and some and not before and not none",
        "self.noting and some and not before",
        "the root in no layer",
    ),
    (
        'return any_of.setdefault(part[1], ("any", len(any_of), size))',
        'return "any", 0',
        "an inverse beyond its range",
    ),
    (
        "symbols(base[:1]) if divides and len(base[0]) == 1 else",
        "symbols(base[:1]) if divides else",
        "divided by a part of what is divided by",
    ),
    (
        "signs.pop() if some and len(signs) == 1 else 0",
        "max(signs) if some else 0",
        "divided by a sum that may vanish",
    ),
    ("if some and len(signs) == 1", "if len(signs) == 1", "divided by what is not negative"),
    ("if sign > 0:", "if sign:", "relu of what may be negative: less a square"),
    ('& {"negative", "nonpositive"}', '& {"negative", "nonzero"}', "divided by a sum of two signs"),
    (
        "whole(part, len(claim.frees))",
        "whole(part, len(free))",
        "any matrix for those of all layers",
    ),
    ("if mine[0] < other[0] else", "if mine[0] > other[0] else", "a mask that sees what is later"),
    (
        "*[t.by(MINUS) for t in same], *self.times(same, rest)]",
        "]",
        "a mask of pairs by their first parts",
    ),
    ("if first.isdisjoint(t.wires())", "if True", "a softmax of any scores as their mean"),
    (
        "masked and any(found[1] != [UNIT] for _, found in ways)",
        "False",
        "a softmax without its mask",
    ),
    (
        "columns = sized([x.cols[k] for k in number])",
        "columns = sized(x.cols)",
        "the mean of columns that are masked",
    ),
    (
        "set(inductions(proof))",
        "{over}",
        "an induction within another, from what it has at one depth",
    ),
    (
        "number_of.setdefault(wire, len(number_of))",
        "number_of[wire] = len(number_of)",
        "layers whose index is taken for a row",
    ),
    ("in self.context.ones and self.ready", "in self.context.ones", "a premise for one layer"),
    (
        "in self.context.firsts and self.ready",
        "in self.context.firsts",
        "a premise for the last layer",
    ),
    (
        "odd = [arg for arg in args if args.count(arg) % 2]",
        "odd = []",
        "relu of what may be negative: a square times a symbol",
    ),
    (
        'sure = all("nonnegative" in part for part in parts)',
        "sure = True",
        "relu of what may be negative: a sum with a symbol",
    ),
    (
        '({"nonnegative"} if k % 2 == 0 else set())',
        '{"nonnegative"}',
        "relu of what may be negative: a cube",
    ),
    (
        'if self.closed(["Activation", name, tree], scope) in self.partial:',
        "if self.partial is not None:",
        "divided by what may be zero: a symbol",
    ),
    (
        "known = sign or (len(over) == 1 and symbols([over]) <= self.nonzero)",
        "known = True",
        "divided by what may be zero: a multiple",
    ),
    (
        'return every(args) & {"nonzero"} | every(odd) & {"nonnegative"}',
        'return {"nonzero"} | every(odd) & {"nonnegative"}',
        "divided by what may be zero: a square",
    ),
    (
        'positive = AXIOMS["degrees"].get(name) and every([arg]) == SIGNS["positive"]',
        "positive = True",
        "divided by what may be zero: a relu",
    ),
    (
        "return max(parts, key=len) if sure else set()",
        'return {*SIGNS["positive"]} if sure else set()',
        "divided by what may be zero: a sum of squares",
    ),
    (
        'if gate[:2] == ["Activation", "sigmoid"]',
        "if gate",
        "relu of what may be negative: one less exp",
    ),
    (
        "if times(dict(a), under) == times(over, dict(b))",
        "if over",
        "equal ratios",
    ),
    (
        "if x.at == y.at and x.at in (self.delta, ones):",
        "if x.at in (self.delta, ones):",
        "ones beside any matrix",
    ),
    (
        'if set(over) != {(("pi", Fraction(1)),)} or under',
        'if (("pi", Fraction(1)),) not in over or under',
        "the sine of π and a",
    ),
    ("Fraction(1)),)} or under != UNITY:", "Fraction(1)),)}:", "the sine of π over n + 1"),
    ("int(many) if many.denominator == 1 else None", "int(many)", "the sine of a fifth of π"),
    ("if turn > 12 else root", "if turn > 24 else root", "the cosine of π as that of 0"),
    ("twelfth % 24, twelfth % 12", "twelfth % 24, 2 * twelfth % 12", "the sine of π/6 as of π/3"),
    ("j = (number[j[0]], *j[1:])", "j = (0, *j[1:])", "the blocks of a softmax as if all alike"),
    (
        "shared = sorted({name for m, _ in parts for name, _ in m} & known)",
        "shared = sorted({name for m, _ in parts for name, _ in m})",
        "any factor under relu",
    ),
    ("self.measure(tree, least=0)", "self.size(tree)", "an order that may be 0"),
    (
        "outer, self.noting = self.noting, False",
        "outer = self.noting",
        "divided by a that is in a size: of a matrix",
    ),
    (
        "stated(certificate, presupposed=False)",
        "stated(certificate)",
        "a lemma that presupposes an inverse",
    ),
    ('proved(context, lemma, lemma.frees, certificate["proof"])', "pass", "a lemma that is false"),
    (
        "proved(reader.context, premise._replace(frees=every), every, proof)",
        "pass",
        "a lemma whose hypothesis is false",
    ),
]


@pytest.mark.parametrize(("old", "new", "name"), KNOWN)
def test_what_a_statement_gives(old: str, new: str, name: str) -> None:
    assert SOURCE.count(old) == 1
    mutant = ModuleType("replay_with_a_change")
    mutant.__file__ = replay.__file__
    exec(compile(SOURCE.replace(old, new), mutant.__name__, "exec"), mutant.__dict__)
    assert why(replay, FORGED[name]) is not None
    assert why(mutant, FORGED[name]) is None


def test_a_key_twice(tmp_path: Path) -> None:
    """Who reads the text sees that 1 is 2; the last of two keys would be taken."""
    file = tmp_path / "made.json"
    text = json.dumps({**FORGED["two different numbers"], "lhs": 2})
    file.write_text('{"lhs": 1, ' + text[1:], encoding="utf-8")
    for checker, status in ((replay, 1), (without("a key stands twice in one object"), 0)):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            assert checker.main([str(file)]) == status, said.getvalue()


def test_a_hypothesis_about_a_member_that_there_is_not_gives_nothing() -> None:
    n: list[Any] = ["size", 0]
    z, past = ["tensor", 0], ["tensor", 1, 7]  # of a family of two
    logarithm, relu = ["Activation", "log", z], ["Activation", "relu", z]
    fact = ["axiom", [], "relu_nonnegative", 0, {"X": z}, []]
    proof: dict[str, Any] = {"rule": "cancel", "facts": [fact]}
    proof["uses"] = [{"fact": 1, "coefficient": 1, "at": []}]
    made: dict[str, Any] = {"schema": 4, "sizes": ["n"], "scalars": [], "indices": []}
    made |= {"tensors": [["z", [], n, n], ["K", [2], n, n]], "nonzero": [], "proof": proof}
    made |= {"given": [[[], ["MatMul", logarithm, past], z]], "lhs": relu, "rhs": z}
    assert why(replay, made) == "an index is out of range"
    made["given"] = [[[], ["MatMul", logarithm, ["tensor", 1, 1]], z]]
    assert why(replay, made) is None
    made["given"] = [[[n], ["MatMul", logarithm, ["tensor", 1, ["i", 0]]], z]]
    assert why(replay, made) == "an index does not run over that size"
    made["given"] = [[[2], ["MatMul", logarithm, ["tensor", 1, ["i", 0]]], z]]
    assert why(replay, made) is None
