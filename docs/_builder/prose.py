"""Converts the Unicode formulas in the prose of theorems to TeX.

Docstrings are also read in terminals, so they contain `A ⊗ W_O W_V` and not TeX. A small grammar
finds these formulas and puts them between dollar signs; in doubt it leaves text unchanged. Code and
TeX formulas are unchanged.
"""

from __future__ import annotations

import re

import sympy

from otimes.algebra.language.latex import latex

# A name with a subscript (W_QK, σ_{r+1}); letters with a mark (Bᵀ, A², αX); a capital alone.
SUBSCRIPTED = r"[A-Za-zα-ω]_(?:[A-Za-z0-9]+|\{[^{}\\]*\})"
MARKED = r"(?:[A-Zα-ω][ᵀ²³]*)*(?:[A-Z][ᵀ²³]|[α-ω])(?:[A-Zα-ω][ᵀ²³]*)*"
FORMULA_ATOM = rf"(?:√?{SUBSCRIPTED}[ᵀ²³]*|{MARKED}|Id|[A-Z])(?![\w\-])"
AFTER_OPERATOR = rf"(?:{FORMULA_ATOM}|\d+|[a-z](?!\w))"
OPERATOR = r"\s[⊗∘×=+−/]\s"


def _grouped(inner: str) -> str:
    """A bracket around a formula, with a mark or without."""
    return rf"\({inner}\)[ᵀ²³]*"


def _chain(unit: str, later: str) -> str:
    """Units that stand side by side or have an operator between them."""
    return rf"{unit}(?:\s{unit}|{OPERATOR}{later})*"


_INNER = _chain(rf"(?:{FORMULA_ATOM}|[A-Z]{{2}}(?=\)ᵀ)|1(?={OPERATOR}))", AFTER_OPERATOR)
_UNIT = rf"(?:{FORMULA_ATOM}|{_grouped(_INNER)}|1(?={OPERATOR}))"
_WHOLE = _chain(_UNIT, rf"(?:{AFTER_OPERATOR}|{_grouped(_INNER)})")
FORMULA = re.compile(rf"(?<![\w\-(]){_WHOLE}(?![\w(])|[⊗∘](?!\d)")
UNTOUCHED = re.compile(r"(`[^`]*`|\$[^$]*\$)")
SENTENCE_ENDS = re.compile(r"(?:^|[.:?!“(]\s*|\n\s*\n\s*)$")
SIGNS = {"⊗": r"\otimes", "∘": r"\circ", "×": r"\times", "−": "-", "Id": r"\mathrm{Id}"}
PLAIN = "=+/()"
MARKS = {"ᵀ": r"\top", "²": "2", "³": "3"}
TOKEN = re.compile(rf"√|{SUBSCRIPTED}|Id|[ᵀ²³]+|[⊗∘×=+−/()]|\d+|[A-Za-zα-ω]|\s+")


def markdown(prose: str) -> str:
    r"""Return prose with its formulas between dollar signs.

    >>> markdown("A head is A ⊗ W_O W_V, of d_head rows.")
    'A head is $A \\otimes W_{O} W_{V}$, of $d_{\\mathrm{head}}$ rows.'
    """
    pieces = UNTOUCHED.split(prose.strip())
    pieces[::2] = [FORMULA.sub(_between_dollars, _apostrophes(text)) for text in pieces[::2]]
    return "".join(pieces)


def heading(title: str) -> str:
    """Return a title with its subscripts set, as HTML that also reads as text.

    >>> heading("The scores through W_QK")
    'The scores through <i>W</i><sub>QK</sub>'
    """
    return re.sub(r"\b([A-Za-z])_([A-Za-z0-9]+)", r"<i>\1</i><sub>\2</sub>", title)


def tex(formula: str) -> str:
    """Return the TeX of a formula written in Unicode."""
    parts: list[str] = []
    root = False
    for sign in TOKEN.findall(formula):
        if sign == "√":
            root = True
        elif sign.isspace():
            continue
        elif sign[0] in MARKS:
            parts.append("^{" + "".join(MARKS[mark] for mark in sign) + "}")
        elif sign in SIGNS or sign in PLAIN or sign.isdigit():
            parts.append(" " + SIGNS.get(sign, sign) + " ")
        else:
            plain = sign.isascii() and "{" not in sign
            name = str(latex(sympy.Symbol(sign))) if plain else _subscripted(sign)
            parts.append(rf"\sqrt{{{name}}}" if root else f"{name} ")
            root = False
    joined = re.sub(r"\s+", " ", "".join(parts)).strip()
    return joined.replace(" ^{", "^{").replace("( ", "(").replace(" )", ")")


def _subscripted(name: str) -> str:
    """Return the TeX of a name with Greek in it, or with a subscript in braces."""
    letter, _, below = name.partition("_")
    below = below.strip("{}")
    if len(below) > 1 and below.isalpha():
        below = rf"\mathrm{{{below}}}"
    return f"{letter}_{{{below}}}" if below else letter


def _apostrophes(text: str) -> str:
    return re.sub(r"(?<=\w)'(?=\w|\s)", "’", text)


def _between_dollars(match: re.Match[str]) -> str:
    formula = match.group()
    if formula in {"A", "I"} and _is_a_word(match):
        return formula
    return formula if formula == "Id" else f"${tex(formula)}$"


def _is_a_word(match: re.Match[str]) -> bool:
    """Whether a lone A is the article (it opens a sentence before a word), or I the pronoun."""
    before, after = match.string[: match.start()], match.string[match.end() :]
    return match.group() == "I" or bool(
        SENTENCE_ENDS.search(before) and re.match(r"\s+[a-z]", after)
    )
