"""Each guard of the checker: without it, and it alone, a certificate of what is false passes."""

from __future__ import annotations

import ast
import contextlib
import io
import json
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from proofs import replay
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


class _Without(ast.NodeTransformer):
    """A source without the guards that have a message."""

    def __init__(self, message: str) -> None:
        self.message = message

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        return ast.copy_location(ast.Pass(), node) if guard(node) == self.message else node


@cache
def without(message: str) -> Any:
    """Return the checker without a guard."""
    tree = ast.fix_missing_locations(_Without(message).visit(ast.parse(SOURCE)))
    mutant = ModuleType("replay_without_a_guard")
    mutant.__file__ = replay.__file__
    exec(compile(tree, mutant.__name__, "exec"), mutant.__dict__)
    return mutant


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


@pytest.mark.parametrize("message", FORMAL)
def test_a_guard_of_the_form_stops_nothing_false(message: str) -> None:
    """Where this is red, the guard has become one of the others, and that is to be said."""
    mutant = without(message)
    assert [name for name, made in FORGED.items() if why(mutant, made) is None] == []


def test_a_key_twice(tmp_path: Path) -> None:
    """Who reads the text sees that 1 is 2; the last of two keys would be taken."""
    file = tmp_path / "made.json"
    text = json.dumps({**FORGED["two different numbers"], "lhs": 2})
    file.write_text('{"lhs": 1, ' + text[1:], encoding="utf-8")
    for checker, status in ((replay, 1), (without("a key stands twice in one object"), 0)):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            assert checker.main([str(file)]) == status, said.getvalue()
