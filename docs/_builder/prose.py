"""Converts the Unicode formulas in the prose of theorems to TeX.

Docstrings are also read in terminals, so they contain `A ⊗ W_O W_V` and not TeX. A small grammar
finds these formulas and puts them between dollar signs; in doubt it leaves text unchanged. Code and
TeX formulas are unchanged.
"""

from __future__ import annotations

import re

import sympy

from otimes.algebra.language.latex import latex

HIGH = r"\^(?:\{[^{}\\$]*\}|[A-Za-z0-9]+|\([A-Za-z0-9]+(?:\s?[-+−]\s?[A-Za-z0-9]+)*\))"
MARK = rf"(?:[ᵀ²³⁻¹′]+|{HIGH})"
BELOW = r"(?:\d+|[A-Za-z]+|[ΔΛα-ω]|\{[^{}\\$]*\})"
# A name with a subscript (W_QK, σ_{r+1}); letters with a mark (Bᵀ, A², αX); a sum over an index.
SUBSCRIPTED = rf"(?:[A-Za-zα-ωΦ]_{BELOW}|1_\{{[^{{}}\\$]*\}})"
STRONG = rf"(?:{SUBSCRIPTED}{MARK}?|[A-Za-z]{MARK}|[Δα-ω]{MARK}?)"
RUN = rf"(?:[a-z](?=[Δα-ω])|[A-Z])*{STRONG}(?:{STRONG}|[A-Z])*"
SUM = r"[Σ∏]_(?:[A-Za-z]+|\{[^{}\\$]*\})"
POWER = rf"\d+{HIGH}"
# A small letter by itself. The article a, e.g. and i.e. are no formulas, and what stands in the
# brackets of a call or of indices, as in Q(x + y) and W[h, l], stays as it is written there.
INSIDE = r"(?<!\w\()(?<![\[‖])(?<!\[\w, )(?<!\w\(\w, )(?<!\w\(\w [+‖·−] )"
SMALL = rf"√?{INSIDE}(?<![\w\-’'.])(?:[b-z]|a(?=, [b-z]\b))(?![\w\-’'(]|\.\w)"
FORMULA_ATOM = rf"(?:(?:√?{RUN}|{SUM}|{POWER}|Id|[A-Z])(?![\w\-])|{SMALL})"
AFTER_OPERATOR = rf"(?:{FORMULA_ATOM}|√?\d+(?:[.,]\d+)*(?![\w.]*\w)|√?[a-z](?!\w))"
OPERATOR = r"\s[⊗∘×=+−/≤≥≠≈·]\s"


def _grouped(inner: str) -> str:
    """A bracket around a formula, with a mark or without."""
    return rf"\({inner}\){MARK}?"


def _chain(unit: str, later: str) -> str:
    """Units that stand side by side or have an operator between them."""
    return rf"{unit}(?:\s{unit}|{OPERATOR}{later}|/{later})*"


_INNER = _chain(rf"(?:{FORMULA_ATOM}|[A-Z]{{2}}(?=\)[ᵀ^])|1(?={OPERATOR}))", AFTER_OPERATOR)
_SIGN = r"(?![A-Za-z]{3})[^()‖`$*]"  # no word is inside a norm or the argument of a function
_NORM = rf"‖(?:{_SIGN}){{1,30}}‖[²³]?"
NAMED = r"(?:softmax|exp|log|tr|rank|diag|ReLU|relu|RMSNorm|LN|Var|KL|cos|sin|silu)"
_CALL = rf"{NAMED}\((?:{_SIGN}|\((?:{_SIGN}){{1,20}}\){MARK}?|{_NORM}){{1,40}}\){MARK}?"
_UNIT = rf"(?:{FORMULA_ATOM}|{_grouped(_INNER)}|{_NORM}|{_CALL}|1(?={OPERATOR}))"
_WHOLE = _chain(_UNIT, rf"(?:{AFTER_OPERATOR}|{_grouped(_INNER)}|{_NORM}|{_CALL})")
FORMULA = re.compile(rf"(?<![\w\-])(?<!\w\(){_WHOLE}(?![\w(])|[⊗∘](?!\d)")
UNTOUCHED = re.compile(r"(`[^`]*`|\$[^$]*\$)")
SENTENCE_ENDS = re.compile(r"(?:^|[.:?!“(]\s*|\n\s*\n\s*)$")
SIGNS = {
    "⊗": r"\otimes", "∘": r"\circ", "×": r"\times", "−": "-", "·": r"\cdot",
    "≤": r"\le", "≥": r"\ge", "≠": r"\ne", "≈": r"\approx", "Id": r"\mathrm{Id}",
    "‖": r"\Vert", "½": r"\tfrac12", "Δ": r"\Delta", "Λ": r"\Lambda",
    "Σ": r"\sum", "∏": r"\prod", "Φ": r"\Phi",
}  # fmt: skip
PLAIN = "=+/(),.⟨⟩"
MARKS = {"ᵀ": r"\top", "²": "2", "³": "3", "⁻": "-", "¹": "1", "′": r"\prime"}
INDICES = re.compile(r"\\mathrm\{([ab]{2}|[ijkl]{2}|mk)\}")
"""Two indices of an entry, which are no word."""
TOKEN = re.compile(
    rf"√|{NAMED}(?=\()|{SUM}|{SUBSCRIPTED}|Id|{MARK}|[⊗∘×=+−/(),·≤≥≠≈‖½⟨⟩ΔΛΦ]|\d+(?:[.,]\d+)*|[A-Za-zα-ω]|\s+"
)


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
            continue
        if sign.isspace():
            continue
        if sign[0] in MARKS or sign[0] == "^":
            parts.append(_raised(sign))
            continue
        shown = _shown(sign)
        parts.append(rf"\sqrt{{{shown.strip()}}}" if root else shown)
        root = False
    joined = re.sub(r"\s+", " ", INDICES.sub(r"\1", "".join(parts))).strip()
    joined = re.sub(r"(operatorname\{\w+\}) \(", r"\1(", joined)
    return joined.replace(" ^{", "^{").replace("( ", "(").replace(" )", ")")


def _shown(sign: str) -> str:
    """Return the TeX of one sign, with blanks around it where they belong."""
    if "_" in sign:
        simple = sign.isascii() and "{" not in sign
        return f"{latex(sympy.Symbol(sign)) if simple else _subscripted(sign)} "
    if len(sign) > 1 and sign.isalpha() and sign not in SIGNS:
        return rf"\operatorname{{{sign}}}"
    if sign in SIGNS or sign in PLAIN or sign[0].isdigit():
        return f" {SIGNS.get(sign, sign)} "
    return f"{latex(sympy.Symbol(sign)) if sign.isascii() else sign} "


def _raised(sign: str) -> str:
    """Return the TeX of a mark, or of a power such as ^k and ^{k − 1}."""
    if sign[0] != "^":
        return "^{" + " ".join(MARKS[mark] for mark in sign).replace("- ", "-") + "}"
    inner = sign[1:].strip("{}()")
    word = len(inner) > 1 and inner.isalpha() and inner.isascii()
    shown = rf"\mathrm{{{inner}}}" if word else tex(inner.replace("-", "−"))
    return "^{" + re.sub("^- ", "-", shown).replace(" - ", "-").replace(" + ", "+") + "}"


def _subscripted(name: str) -> str:
    """Return the TeX of a name with Greek in it, or with a subscript in braces."""
    letter, _, below = name.partition("_")
    below = below.strip("{}")
    if len(below) > 1 and below.isalpha() and letter not in "Σ∏":
        below = rf"\mathrm{{{below}}}"
    elif not below.isalnum():
        below = tex(below).replace(" + ", "+").replace(" - ", "-")
    below = SIGNS.get(below, below)
    return f"{SIGNS.get(letter, letter)}_{{{below}}}"


def _apostrophes(text: str) -> str:
    return re.sub(r"(?<=\w)'(?=\w|\s)", "’", text)


def _between_dollars(match: re.Match[str]) -> str:
    formula = match.group()
    if formula in {"A", "I"} and _is_a_word(match):
        return formula
    if formula == "Id" or "".join(TOKEN.findall(formula)) != formula:
        return formula
    return f"${tex(formula)}$"


def _is_a_word(match: re.Match[str]) -> bool:
    """Whether a lone A is the article (it opens a sentence before a word), or I the pronoun."""
    before, after = match.string[: match.start()], match.string[match.end() :]
    return match.group() == "I" or bool(
        SENTENCE_ENDS.search(before) and re.match(r"\s+[a-z]", after)
    )
