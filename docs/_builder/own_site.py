"""Builds a site of theorems of a user, with the pages that those of the catalogue have.

`otimes pages THEOREMS... --html --out FOLDER` runs it. The site has a page for each theorem, their
map, the glossary, and the pages on methods that these link to; the judge, where Pyodide has been
fetched. What it leaves out of this project's site is not linked.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import evidence  # first: it takes the digest of the code that the others import

# isort: split
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

from otimes.algebra.errors import OtimesError
from otimes.proofs.selection import selected

ROOT = Path(__file__).parents[2]
NAV: list[Any] = [
    {"Home": "index.md"},
    {"Theorems": []},
    {"Map": "map.md"},
    {"Glossary": "glossary.md"},
    {
        "Methods": [
            {"Conventions": "conventions.md"},
            {"Normal form": "normal-form.md"},
            {"Axioms": ["axioms/index.md"]},
            {"Rules of derivations": "rules.md"},
            {"The checker": "checker.md"},
            {"Rounding": "rounding.md"},
            {"Guarantees and limits": "guarantees.md"},
        ]
    },
]


def main(theorems: Sequence[str], keyword: str | None, out: str, quick: bool) -> int:
    """Build the site: 0 if all theorems passed their checks, else 1. Raises OtimesError."""
    evidence.chosen, evidence.quick = selected(theorems, keyword), quick
    names = [theorem.name for theorem in evidence.chosen]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise OtimesError(
            f"two theorems are called {twice[0]}, and a page has the name of its theorem:"
            " rename one, or build two sites"
        )
    config = load_config(
        str(ROOT / "mkdocs.yml"),
        site_dir=str(Path(out).absolute()),
        site_name="Theorems",
        site_description="Theorems, with their proofs and the evidence for them",
        strict=False,
        nav=NAV,
        exclude_docs="\n".join(["/_builder/", *_left_out()]),
        extra={"generator": False, "polyfills": ["assets/iframe-worker/shim.js"], "own": True},
    )
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    config.plugins.on_shutdown()
    return 0 if evidence.report().passed else 1


def _left_out() -> list[str]:
    """Return the pages of this project's site that have no place in the other."""
    kept = json.dumps(NAV)
    return [
        f"/{page}"
        for path in sorted((ROOT / "docs").rglob("*.md"))
        if f'"{(page := path.relative_to(ROOT / "docs").as_posix())}"' not in kept
    ]


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    try:
        sys.exit(main(**asked))
    except (OtimesError, Abort) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
