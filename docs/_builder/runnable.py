"""Code to run: the theorem in Python and on the command line."""

from __future__ import annotations

from pathlib import Path

from otimes.proofs.claims import Method, Statement
from otimes.proofs.theorem import Theorem


def text(theorem: Theorem) -> str:
    """Return the section: how to get the theorem, its proof and its checks."""
    file = Path(file_of(theorem)).name
    every = f'ot.load_theorems("{file}")'
    named = f"{file}::{theorem.name}" if theorem.own else theorem.name
    lines = [
        "import otimes as ot",
        *([] if theorem.own else ["from otimes.proofs.catalogue import find"]),
        "",
        f'theorem = next(each for each in {every} if each.name == "{theorem.name}")'
        if theorem.own
        else f'theorem = find("{theorem.name}")',
        "print(theorem)",
    ]
    claim = theorem.claim()
    if isinstance(claim, Statement):
        lines += ["print(theorem.steps())  # the derivation, every step"]
    if isinstance(claim, Method):
        lines += [f"help({claim.function})"]
    lines.append("print(ot.verify(theorem, quick=True))")
    python = "\n".join(lines)
    shell = f"otimes show {named}\notimes verify {named}"
    return f"## Code to run\n\n```python\n{python}\n```\n\n```sh\n{shell}\n```"


def file_of(theorem: Theorem) -> str:
    """Return the file that declares a theorem."""
    return theorem.state.__code__.co_filename
