"""Notation: shapes, convention and hypotheses that a document does not state itself.

`primer` and `framework` are the notations of the two papers; any other name is a TOML file:

    convention = "row"            # weights act on the right; or "column"
    vec = "rows"                  # what a bare vec stacks; or "cols"
    given = ["A 1 = 1"]           # hypotheses, used by name
    [shapes]
    W_V = "d d_h"
    a = "scalar"

A comment in the document says the same: `<!-- otimes: W_V: d d_h; given: A 1 = 1 -->`.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from otimes.algebra.errors import OtimesError
from otimes.algebra.notation.symbols import Symbols, declarations

FOLDER = Path(__file__).parent / "notations"
BUILT_IN = ("primer", "framework")
KEYS = frozenset(("convention", "vec", "given", "shapes", "functions", "elementwise", "title"))


@dataclass(slots=True)
class Notation:
    """Declared symbols and hypotheses; `name` is what reports call it."""

    symbols: Symbols = field(default_factory=Symbols)
    given: list[str] = field(default_factory=list)
    name: str = ""


def load_notation(name: str | None) -> Notation:
    """Return a notation by name, or from a TOML file. Raises OtimesError for one that is wrong.

    >>> load_notation("primer").symbols.convention
    'row'
    """
    if name is None:
        return Notation()
    path = FOLDER / f"{name}.toml" if name in BUILT_IN else Path(name)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OtimesError(
            f"cannot read the notation {name}: {error.strerror}; known are {', '.join(BUILT_IN)}, "
            "and TOML files"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OtimesError(f"the notation {name} is not TOML: {error}") from None
    unknown = sorted(content.keys() - KEYS)
    if unknown:
        raise OtimesError(f"the notation {name} has {', '.join(unknown)}; known: {sorted(KEYS)}")
    shapes = content.get("shapes", {})
    if not all(isinstance(said, str) for said in shapes.values()):
        raise OtimesError(f"the shapes of the notation {name} are strings, such as W_V = 'd d_h'")
    symbols = declarations("; ".join(f"{key}: {said}" for key, said in shapes.items()))
    for key, declared in symbols.known.items():
        symbols.known[key] = declared
    symbols.convention = _one_of(content, "convention", ("row", "column"), name)
    symbols.vec = _one_of(content, "vec", ("rows", "cols"), name)
    symbols.functions |= set(content.get("functions", []))
    symbols.elementwise |= set(content.get("elementwise", []))
    return Notation(symbols, [str(each) for each in content.get("given", [])], name)


def _one_of(content: dict[str, object], key: str, allowed: tuple[str, ...], name: str) -> str:
    value = str(content.get(key, ""))
    if value and value not in allowed:
        raise OtimesError(f"{key} in the notation {name} is {' or '.join(allowed)}, not {value}")
    return value
