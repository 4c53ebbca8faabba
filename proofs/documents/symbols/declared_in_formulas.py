r"""What formulas declare by their form: shapes by `W \in \mathbb{R}^{d \times m}`, functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from otimes.algebra.notation.dimensions import Size
from otimes.algebra.notation.parser import parse_formula
from otimes.algebra.notation.symbols import Declared, as_declared, keys, size_of
from otimes.algebra.notation.tokens import NotationError
from otimes.algebra.notation.tree import Name, Space, Statement, bare


def declared_by(statement: Statement, line: int) -> Iterator[tuple[str, Declared]]:
    r"""Yield the declarations in a membership such as `A, B \in \mathbb{R}^{n \times d}`.

    In `X = [x_1, x_2] \in \mathbb{R}^{d \times 2}` the first symbol is declared, and the last one
    where the chain ends in it: `G = A B = C \in \mathbb{R}^{n \times d}`.
    """
    *equal, last = statement.relations or ("",)
    space = statement.terms[-1]
    if last != r"\in" or {*equal} - {"=", ":=", r"\equiv"} or not isinstance(space, Space):
        return
    sizes = [size_of(size) for size in space.sizes]
    ends = dict.fromkeys((statement.terms[0], statement.terms[-2]))
    for subject in (*statement.subjects, *ends):
        name = bare(subject)
        if isinstance(name, Name):
            declared = declared_as(sizes, line)
            if declared is not None:
                yield keys(name)[0], as_declared(declared, name)


def declared_as(sizes: Sequence[Size | None], line: int) -> Declared | None:
    """Return the kind of the members of a space, by its number of sizes."""
    known = [size for size in sizes if size is not None]
    if len(known) != len(sizes) or len(sizes) > 2:
        return None
    if not known:
        return Declared("scalar", line=line)
    if len(known) == 1:
        return Declared("vector", known[0], line=line)
    return Declared("matrix", known[0], known[1], line)


MEMBERS = re.compile(
    r"^((?:[a-z](?:_\w|_\{\w+\})?\s*,\s*)*[a-z](?:_\w)?)\s*(?:\\in\b|∈)\s*(?:\\mathbb|\\R\b|ℝ)"
)
GRADIENT = re.compile(
    r"^\s*&?\s*([a-z])\s*&?\s*:?=\s*&?\s*(?:\\[dt]?frac\s*\{\s*)?\\(?:partial|nabla)\b"
)


def values_in(formulas: Iterable[str]) -> set[str]:
    r"""Return the letters that formulas declare as vectors or numbers: `g` of `g \in \mathbb{R}^d`.

    So is the gradient `g` of `g = \partial \ell / \partial y`.

    >>> sorted(values_in([r"g, h \in \mathbb{R}^d", r"f(x) \in \mathbb{R}"]))
    ['g', 'h']
    """
    found: set[str] = set()
    for tex in formulas:
        match = MEMBERS.match(tex.strip())
        if match is not None:
            found |= set(re.findall(r"(?:^|,\s*)([a-z])", match[1]))
        elif gradient := GRADIENT.match(tex):
            found.add(gradient[1])
    return found


HEADS = re.compile(
    r"^\s*&?\s*(\\?[A-Za-z]+)(?:\s*[_^]\s*(?:\{[^{}]*\}|\\?\w))*\s*(?:\\left)?\(([^()=+]{1,40})"
    r"(?:\\right)?\)(?:\s*[_^]\s*(?:\{[^{}]*\}|\w))*\s*&?\s*(?::=|=|\\triangleq|\\coloneqq)"
)


# The letter E by itself, and one before a bracket, of which it may be the expectation.
E_ALONE = re.compile(r"(?<![A-Za-z\\_{^])E(?![A-Za-z])")
E_OF = re.compile(
    r"E\s*(?:_\s*(?:\{[^{}]*\}|\w))?\s*(?:\\(?:left|[Bb]igl?)\s*)?"
    r"(?:(\[)|(\()(?![^()]*\)\s*:?=[^=]))"
)
RANDOM = re.compile(
    r"\b(?:random|expect\w+|(?:co)?varian\w+|probabilit\w+|means?)\b", re.IGNORECASE
)


def takes_expectations(formulas: Iterable[str], words: str) -> bool:
    r"""Return whether E is an expectation in formulas: it has brackets after it, each time.

    Round ones say so in a text with words such as “random”; there square ones do that stand once.

    >>> takes_expectations([r"\mu = E[x]", "W_E x"], ""), takes_expectations(["E[A] = E A"], "")
    (True, False)
    >>> takes_expectations([r"\mu = E(x)"], "a random x"), takes_expectations(["y = E(x)"], "")
    (True, False)
    """
    found = [E_OF.match(tex, at.start()) for tex in formulas for at in E_ALONE.finditer(tex)]
    square, random = any(each and each[1] for each in found), bool(RANDOM.search(words))
    return (square and random) or (bool(found) and all(found) and (square or random))


def functions_in(formulas: Iterable[str]) -> set[str]:
    r"""Return the letters that formulas define as functions: `h` of `h(x) = …`.

    Those of `\Phi(-a) = …` are functions, too, where they are small or Greek.

    >>> sorted(functions_in([r"h(x) = W x", "A(B + C) = AB + AC", r"\mathcal{L}(x) = 1"]))
    ['h']
    >>> sorted(functions_in([r"\Phi(-a) = 1 - \Phi(a)", "A(-b) = -Ab"]))
    ['\\Phi']
    """
    found = set()
    for tex in formulas:
        match = HEADS.match(tex)
        if match is None or (len(match[1]) > 1 and match[1][0] != "\\"):
            continue
        try:
            small = match[1][0] == "\\" or match[1].islower()
            statements = parse_formula(match[2].strip().removeprefix("-" if small else ""))
        except NotationError:
            continue
        if statements and all(
            not s.relations and isinstance(bare(s.terms[0]), Name) for s in statements
        ):
            found.add(match[1])
    return found
