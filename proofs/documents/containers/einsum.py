r"""Calls of einsum in text, as the formulas that they compute.

`S = torch.einsum('qd,kd->qk', Q, K)` is read as `S = Q K^\top`, what is no product of matrices as a
sum of entries, and a call that words such as “which is” join to a formula, as that equation.
Letters that all operands and the result have, such as b and h for the batch and the heads, are left
out: the formula holds for each of their values.

>>> in_latex("S = torch.einsum('bhqd,bhkd->bhqk', Q, K)")
'S = Q K^\\top'
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from string import ascii_lowercase

from otimes.proofs.documents.containers.source import Document, Formula

CALL = re.compile(
    r"(?:(?P<name>[A-Za-z]\w*)\s*=\s*)?(?:(?:torch|np|numpy|jnp|tf|t|einops)\.)?einsum\(\s*"
    r"(?:r?(?P<mark>['\"])(?P<first>[^'\"]*)(?P=mark)\s*,)?(?P<operands>[^()'\"]*?)"
    r"(?:,\s*(?P<end>['\"])(?P<last>[^'\"]*)(?P=end))?\s*,?\s*\)\s*"
)
SUBSCRIPTS = re.compile(r"[A-Za-z ]+(?:,[A-Za-z ]+)*->[A-Za-z ]*")
OPERAND = re.compile(r"(?:self\.|model\.)?([A-Za-z]\w*)(\.T)?")
SPANS = re.compile(r"(?<!`)`([^`\n]*einsum\([^`\n]*)`(?!`)|\\texttt\{([^{}\n]*einsum\([^{}\n]*)\}")
# What joins a call to a formula that says the same.
IS = re.compile(
    r",?\s*(?:(?:which|that|this|it)\s+)?(?:is|equals|computes|returns)(?: just| simply)?\s+"
    r"(\$\$?|\\\()"
)


def with_einsum(document: Document) -> Document:
    """Return a document with the formulas that calls of einsum in its text stand for."""
    if "einsum(" not in document.text:
        return document
    found = [*_formulas(document)]
    document.formulas = sorted([*document.formulas, *found], key=lambda each: each.start)
    return document


def _formulas(document: Document) -> Iterator[Formula]:
    for match in SPANS.finditer(document.text):
        group = 1 if match[1] is not None else 2
        code = match[group].replace(r"\_", "_").replace(r"\textquotesingle", "'")
        start, end = match.span(group)
        tex = in_latex(code) or _with_what_follows(document, code, match.end())
        if tex:
            offsets = (start,) * len(tex) + (end - 1,)
            yield Formula(tex, start, end, False, offsets=offsets)


def in_latex(code: str, result: str = "") -> str:
    """Return the equation that a call of einsum states, empty where it states none.

    `result` is what it is equal to, in LaTeX, where the code does not name it.
    """
    call = CALL.fullmatch(code.strip())
    if call is None or not (result or call["name"]):
        return ""
    subscripts = call["first"] if call["first"] is not None else call["last"] or ""
    operands = [OPERAND.fullmatch(each.strip()) for each in call["operands"].split(",")]
    if not SUBSCRIPTS.fullmatch(subscripts.strip()) or None in operands:
        return ""
    *letters, output = _letters(subscripts)
    if len(letters) != len(operands) or any(len({*each}) != len(each) for each in letters):
        return ""
    shared = {letter for letter in output if all(letter in each for each in letters)}
    if len(letters) > 1:  # with one operand, nothing is a batch
        letters = ["".join(c for c in each if c not in shared) for each in letters]
        output = "".join(c for c in output if c not in shared)
    if any(len(each) not in (1, 2) for each in letters) or len(output) > 2:
        return ""
    pairs = [
        (_symbol(operand[1]), each[::-1] if operand[2] else each)
        for operand, each in zip(operands, letters, strict=True)
        if operand is not None
    ]
    chain = _chain(pairs, output)
    if chain:
        return f"{result or _symbol(call['name'])} = {chain}"
    factors = [_indexed(*pair) for pair in pairs]
    summed = sorted({*"".join(letters)} - {*output})
    left = _indexed(f"({result})" if result else _symbol(call["name"]), output)
    sums = "".join(rf"\sum_{{{letter}}} " for letter in summed)
    return f"{left} = {sums}{' '.join(factors)}"


def _letters(subscripts: str) -> list[str]:
    """Return one letter for each axis, also where axes have names, as in `q dim, k dim -> q k`."""
    parts = subscripts.replace("->", ",").split(",")
    named = any(" " in part.strip() for part in parts)
    axes = [part.split() if named else [*part.strip()] for part in parts]
    taken = {axis for part in axes for axis in part if len(axis) == 1}
    free = (letter for letter in ascii_lowercase if letter not in taken)
    known = {name: name if len(name) == 1 else next(free) for part in axes for name in part}
    return ["".join(known[name] for name in part) for part in axes]


def _chain(operands: Sequence[tuple[str, str]], output: str) -> str:
    """Return a product of matrices, some transposed, that sums over each inner letter once."""
    rest, factors, at = [*operands], [], output[:1]
    counts = Counter("".join(letters for _, letters in operands))
    while rest and len(output) == 2:
        here = [each for each in rest if at in each[1] and len(each[1]) == 2]
        if len(here) != 1 or (at != output[0] and counts[at] != 2):
            return ""
        ((symbol, letters),) = here
        factors.append(symbol if letters[0] == at else rf"{symbol}^\top")
        at = letters.replace(at, "")
        rest.remove(here[0])
    ends = at == output[1:] and all(counts[letter] == 1 for letter in output)
    return " ".join(factors) if ends and factors else ""


def _indexed(symbol: str, letters: str) -> str:
    if not letters:
        return symbol
    if symbol.endswith("}") and "_{" in symbol:  # the label stays, and the indices are an entry
        return f"({symbol})_{{{','.join(letters)}}}"
    return f"{symbol}_{{{','.join(letters)}}}"


def _symbol(name: str) -> str:
    """Return a name of a program as a symbol: `W_OV` as `W_{OV}`, `scores` in roman type."""
    base, _, label = name.partition("_")
    if len(base) == 1:
        return rf"{base}_{{\mathrm{{{label}}}}}".replace("_{\\mathrm{}}", "")
    return rf"\mathrm{{{name.replace('_', '')}}}"


def _with_what_follows(document: Document, code: str, end: int) -> str:
    """Return the equation of a call with the formula that words join it to."""
    text = document.text
    joined = IS.match(text, end)
    if joined is None:
        return ""
    close = {"$": "$", "$$": "$$", r"\(": r"\)"}[joined[1]]
    until = text.find(close, joined.end())
    formula = text[joined.end() : until] if 0 < until < joined.end() + 200 else ""
    return in_latex(code, formula.strip()) if formula and "=" not in formula else ""
