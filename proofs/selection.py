"""The theorems that are asked for: by name, as objects, in files, and by an expression."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from otimes.algebra.errors import OtimesError
from otimes.proofs.catalogue import find
from otimes.proofs.claims import Lemma
from otimes.proofs.keywords import matches
from otimes.proofs.theorem import Theorem
from otimes.proofs.theorem import lemma as stated_lemma
from otimes.proofs.theorem_files import import_file, theorem_files

Asked = str | Path | Theorem
"""A theorem, the name of one of the catalogue, a file or folder, or `FILE::NAME`."""


def selected(asked: Asked | Iterable[Asked], keyword: str | None = None) -> tuple[Theorem, ...]:
    """Return the theorems that are asked for, in this order and each once.

    `keyword` keeps those whose name or title it matches (`matches`). Raises: OtimesError for what
    does not exist, or if nothing is left.

    >>> [each.name for each in selected(["kron_mul_kron", "kron_transpose"], "mul")]
    ['kron_mul_kron']
    """
    every = [asked] if isinstance(asked, Asked) else list(asked)
    found = dict.fromkeys(theorem for each in every for theorem in _of(each))
    chosen = tuple(
        theorem
        for theorem in found
        if keyword is None or matches(keyword, f"{theorem.name} {theorem.title}")
    )
    if not chosen and keyword is not None:
        raise OtimesError(f"no theorem matches {keyword!r}, of {len(found)}")
    return chosen


def load_theorems(path: str | Path) -> tuple[Theorem, ...]:
    """Return the theorems that a Python file, or each file of a folder, declares.

    Raises: OtimesError for a file that cannot be imported, or that declares no theorem.
    """
    found: list[Theorem] = []
    for file in theorem_files(Path(path)):
        module = import_file(file)
        own = [
            each
            for each in vars(module).values()
            if isinstance(each, Theorem) and each.state.__module__ == module.__name__
        ]
        if not own:
            raise OtimesError(
                f"{file} declares no theorem: decorate a function with otimes.theorem"
            )
        found += own
    return tuple(dict.fromkeys(found))


def lemma(name: str, **at: Any) -> Lemma:
    """Return a theorem of the catalogue, or one declared before, as a hypothesis of a Statement.

    `at` replaces some of its symbols, by name. Its own hypotheses must follow from the others.
    Raises: OtimesError for an unknown theorem, or one that is not an equation.

    >>> lemma("kron_mul_kron").name
    'kron_mul_kron'
    """
    return stated_lemma(name, **at)


def _of(asked: Asked) -> Iterator[Theorem]:
    if isinstance(asked, Theorem):
        yield asked
        return
    path, _, name = str(asked).partition("::")
    if not isinstance(asked, Path) and not name and not path.endswith(".py") and "/" not in path:
        # A name of the catalogue; where there is none, it may be a folder.
        if not re.fullmatch(r"\w+", path) or not Path(path).is_dir():
            yield find(path)
            return
        try:
            yield find(path)
            return
        except OtimesError:
            pass
    every = load_theorems(path)
    chosen = [theorem for theorem in every if name in ("", theorem.name)]
    if not chosen:
        names = ", ".join(theorem.name for theorem in every)
        raise OtimesError(f"{path} declares no theorem {name!r}; it declares {names}")
    yield from chosen
