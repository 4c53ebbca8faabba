"""Statements as strings: `parse`, and what `decide`, `prove` and `facts` make of strings.

>>> parse("A ⊗ W_O W_V", shapes="A: n n, W_O: d k, W_V: k d")
KroneckerProduct(A, W_O*W_V)
>>> shown(parse("A 1 = 1", shapes="A: n n"))
'A 1_n×1 = 1_n×1'
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import sympy

from otimes.algebra.errors import LanguageError, ShapeError
from otimes.algebra.language.unicode import unicode_text
from otimes.algebra.notation.elaborate import elaborate
from otimes.algebra.notation.parser import parse_formula
from otimes.algebra.notation.printed import CONSTANTS
from otimes.algebra.notation.printed_functions import FUNCTIONS
from otimes.algebra.notation.symbols import Symbols, declarations
from otimes.algebra.notation.tokens import NotationError
from otimes.algebra.notation.tree import Node, Statement
from otimes.algebra.notation.typed import Elaborated, Undeclared

NAMES = FUNCTIONS | {name for name in CONSTANTS if len(name) > 1}
SHOWN = 60
"""The number of characters of a formula that a message repeats."""
EQUALITIES = frozenset(("=", r"\equiv"))


class Claim(NamedTuple):
    """An equation with its hypotheses, as `decide` takes them."""

    lhs: Any
    rhs: Any
    given: list[Any]


def parse(text: str, shapes: str | None = None) -> Any:
    r"""Return the statement that a formula makes, as a SymPy expression or `sympy.Eq`.

    `text` is LaTeX or Unicode: `"A ⊗ W_O W_V"`, `r"\sum_{h=1}^H A^h \otimes W_O^h W_V^h"`.
    `shapes` declares symbols: `"A: n n, W_V[H]: k d, a: scalar, g: function"`, rows before columns;
    a function acts entry by entry. A capital that is not declared is a matrix of the shape that the
    formula requires; a small letter must be declared, but for e_i, a one-hot column. What
    `unicode_text` prints is read back. Raises ShapeError where shapes do not conform,
    NotationError for what cannot be read.

    >>> from otimes.algebra.language.unicode import unicode_text
    >>> print(unicode_text(parse(r"\sum_{h=1}^H A^h \otimes W_O^h W_V^h")))
    Σ_h A[h] ⊗ W_O[h] W_V[h]
    """
    symbols = declarations(shapes or "")
    (terms,) = _read([text], symbols)
    found = _elaborated(terms, symbols, text)
    if len(found) == 1:
        return found[0]
    if len(found) == 2:
        return sympy.Eq(*found, evaluate=False)
    raise NotationError("a chain of equations is several statements: parse each link")


def read_claim(
    lhs: Any, rhs: Any = None, given: Sequence[Any] = (), shapes: str | None = None
) -> Claim:
    """Return a claim whose sides and hypotheses may be strings, with one shape for each symbol.

    With `rhs` None, `lhs` is an equation. Symbols have the same shapes in the claim and in the
    hypotheses. Raises as `parse` does.

    >>> read_claim("P P X = P X", given=["P^2 = P"], shapes="P: n n, X: n d").given
    [Eq(P**2, P)]
    """
    symbols = declarations(shapes or "")
    strings = [each for each in (lhs, rhs, *given) if isinstance(each, str)]
    sides = dict(zip(strings, _read(strings, symbols), strict=True))
    if isinstance(lhs, str) and (rhs is None or isinstance(rhs, str)):
        terms = [*sides[lhs], *([] if rhs is None else sides[rhs])]
        source = lhs if rhs is None else ""
        if len(terms) != 2:
            raise NotationError("an equation with two sides is needed, such as 'A B = C'")
        both = _elaborated_with(terms, symbols, source, bool(given))
        lhs, rhs = both.terms
        _remember(symbols, both)
    else:
        lhs, rhs = (
            _elaborated(sides[side], symbols, side)[0] if isinstance(side, str) else side
            for side in (lhs, rhs)
        )
        if rhs is None:
            raise LanguageError("decide needs two sides, or one string with an equation")
    return Claim(lhs, rhs, [_hypothesis(each, sides, symbols) for each in given])


def read_chain(
    expressions: str | Sequence[Any], given: Sequence[Any] = (), shapes: str | None = None
) -> tuple[list[Any], list[Any]]:
    """Return the expressions of a chain and its hypotheses, of which some are strings.

    The chain may be one string. A symbol that is not declared has the shape that the chain requires
    or, where its expressions have different shapes, the first expression with that symbol.

    >>> read_chain("(A B)^T = B^T A^T = A^T B^T", shapes="A: n n, B: n n")[0]
    [(A*B).T, B.T*A.T, A.T*B.T]
    """
    symbols = declarations(shapes or "")
    links = [expressions] if isinstance(expressions, str) else list(expressions)
    strings = [each for each in (*links, *given) if isinstance(each, str)]
    sides = dict(zip(strings, _read(strings, symbols), strict=True))
    every = [term for link in links if isinstance(link, str) for term in sides[link]]
    try:
        found = iter(_together(every, symbols))
    except ShapeError:  # a link whose sides have different shapes is an invalid one
        found = iter([_together([term], symbols)[0] for term in every])
    chain: list[Any] = []
    for link in links:
        chain += [next(found) for _ in sides[link]] if isinstance(link, str) else [link]
    return chain, [_hypothesis(each, sides, symbols) for each in given]


def _together(terms: Sequence[Node], symbols: Symbols) -> list[Any]:
    """Return expressions of one shape; other formulas give their symbols the same shapes."""
    found = _elaborated_with(terms, symbols, "", several=True)
    _remember(symbols, found)
    return found.terms


def read_expression(
    text: str, given: Sequence[Any] = (), shapes: str | None = None
) -> tuple[Any, list[Any]]:
    """Return an expression and its hypotheses, of which some are strings.

    >>> read_expression("A B", ["A B = B A"], shapes="A: n n, B: n n")
    (A*B, [Eq(A*B, B*A)])
    """
    claim = read_claim(text, text, given, shapes)
    return claim.lhs, claim.given


def _hypothesis(each: Any, sides: dict[str, tuple[Node, ...]], symbols: Symbols) -> Any:
    if not isinstance(each, str):
        return each
    terms = _elaborated(sides[each], symbols, each)
    if len(terms) != 2:
        raise NotationError(f"the hypothesis {each!r} is not an equation with two sides")
    return sympy.Eq(*terms, evaluate=False)


def _read(texts: Sequence[str], symbols: Symbols) -> list[tuple[Node, ...]]:
    """Return the terms of each text, which is one expression or a chain of equations."""
    symbols.printed = True
    symbols.elementwise |= {name for name in symbols.functions if name.isidentifier()}
    words = {re.sub(r"[_^].*", "", key) for key in symbols.known} | NAMES
    values = {word for word in words if word not in symbols.functions} - NAMES
    functions = symbols.functions | FUNCTIONS
    found = []
    for text in texts:
        plain = "\\" not in text
        try:
            statements = parse_formula(_as_math(text), functions, words, plain, values)
        except NotationError as error:
            raise _located(error, text) from None
        if len(statements) != 1:
            ends = ": a full stop or a comma ends one" if len(statements) > 1 else ""
            raise NotationError(
                f"one statement is needed, and {_cut(text)} has {len(statements)}{ends}"
            )
        found.append(_terms(statements[0]))
    return found


def _as_math(text: str) -> str:
    """Return a formula in which NumPy's A.T is Aᵀ and A @ B a product; offsets are unchanged.

    >>> _as_math("(A @ B).T = B.T @ A.T")
    '(A * B)^T = B^T * A^T'
    """
    return re.sub(r"(?<=[\w)\]}])\.T(?![\w.])", "^T", text).replace("@", "*")


def _located(error: NotationError, text: str) -> NotationError:
    """Return an error with the part of the formula that it is about, and the formula.

    >>> print(_located(NotationError("two superscripts follow each other", (5, 7)), "A^{x}^y"))
    two superscripts follow each other, near '^y' in 'A^{x}^y'
    """
    start, end = error.span
    part = text[start:end].strip()
    near = f", near {_cut(part)}" if part not in ("", text.strip()) else ""
    return NotationError(f"{error}{near} in {_cut(text)}", error.span)


def _cut(text: str) -> str:
    return repr(text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…")


def _terms(statement: Statement) -> tuple[Node, ...]:
    for relation in statement.relations:
        if relation not in EQUALITIES:
            raise NotationError(f"{relation} is not an equation", statement.span)
    return statement.terms


def _elaborated(terms: Sequence[Node], symbols: Symbols, source: str) -> list[Any]:
    return _elaborated_with(terms, symbols, source, False).terms


def _elaborated_with(
    terms: Sequence[Node], symbols: Symbols, source: str, several: bool
) -> Elaborated:
    found = elaborate(terms, symbols, source)
    open_ones = [key for key, kind in found.undeclared.items() if kind != "matrix"]
    if open_ones:
        raise Undeclared(
            f"it is not declared what {', '.join(open_ones)} stands for: add it to shapes, as in "
            f"'{open_ones[0]}: d 1' or '{open_ones[0]}: scalar'"
        )
    return found


def _remember(symbols: Symbols, found: Elaborated) -> None:
    """Give the symbols of a claim, in its hypotheses, the shapes that they have in the claim."""
    from otimes.algebra.notation.symbols import Declared

    for key, shape in found.shapes.items():
        if key not in symbols.known and shape is not None:
            symbols.known[key] = Declared("matrix", *shape)


def shown(expression: Any) -> str:
    """Return a statement as one line of Unicode.

    >>> shown(parse("A B = C"))
    'A B = C'
    """
    if isinstance(expression, sympy.Eq):
        return f"{unicode_text(expression.lhs)} = {unicode_text(expression.rhs)}"
    return unicode_text(expression)
