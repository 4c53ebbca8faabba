"""What a student types as an answer, made readable: names that run together, and plain signs.

The names of an exercise are those of its left side and of its shapes. `XW_QW_KᵀXᵀ` is read as
`X W_Q W_Kᵀ Xᵀ`, and a name that the exercise does not have is refused by `unknown`, because the
judge would take it for another matrix.
"""

from __future__ import annotations

import re
from collections.abc import Collection

NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:_(?:[A-Za-z0-9]+|\{[^{}]*\}))*|(?<![0-9])_")
FUNCTIONS = frozenset(
    (
        "I",
        "Id",
        "diag",
        "exp",
        "gelu",
        "log",
        "max",
        "mean",
        "min",
        "relu",
        "rotation",
        "silu",
        "softmax",
        "sqrt",
        "sum",
        "tr",
        "trace",
        "transpose",
        "vec_cols",
        "vec_rows",
    )
)
SIGNS = (
    (r"\\otimes\b|\botimes\b", "⊗"),
    (r"\\circ\b", "∘"),
    (r"\\operatorname\{vec\}_r|\bvec_r\b", "vec_rows"),
    (r"\\mathbf\{1\}", "𝟏"),
    (r"\^\{?(?:T|\\top|\\mathsf\{T\}|\\intercal)\}?(?![a-z])|\.T(?![a-z])", "ᵀ"),
    (r"_\{(\w+)\}", r"_\1"),
    (r"\bR[Ee]LU\b|\bRelu\b", "relu"),
    (r"\bSoftmax\b", "softmax"),
    (r"\bones\b", "𝟏"),
    (r"\$", " "),
    (r"@", " "),
    (r"(?<=[\w)\]])'", "ᵀ"),
)


def names_of(*texts: str) -> set[str]:
    """Return the names in some formulas, and in what says of their shapes.

    >>> sorted(names_of("A X W_V", "A: n n, X: n d"))
    ['A', 'W_V', 'X', 'd', 'n']
    """
    return {name for text in texts for name in NAME.findall(text)}


def read(said: str, left: str, names: Collection[str]) -> str:
    """Return an answer with its signs and spaces as the judge reads them.

    A leading equals sign, or the left side and one, is what the form shows already. Where the
    left side has a product entry by entry, a star is one; elsewhere it is a matrix product.

    >>> read("= AXW_VW_O", "A (X W_V)", {"A", "X", "W_V", "W_O"})
    'A X W_V W_O'
    >>> read("1 + G.T", "(I + G)ᵀ", {"I", "G"})
    'I + Gᵀ'
    """
    if "rotation" in left:  # as the lesson writes it: R_{j - i}
        said = re.sub(r"\bR_?[({]([^(){}]*)[)}]", r"rotation(\1)", said)
    for pattern, sign in SIGNS:
        said = re.sub(pattern, sign, said)
    said = re.sub(r"(?<!\^)[*·]", " ∘ " if "∘" in left else " ", said)
    before, equals, after = said.partition("=")
    if equals and _bare(before) in ("", _bare(left)):
        said = after
    said = _transposed(_kronecker(said))
    said = re.sub(r"\bId?_\{?([a-z]{2,})\}?", lambda m: _identity(m, names), said)
    if "I" in names_of(left):
        said = re.sub(r"(?:(?<=[-+])|^)\s*1\s*(?=$|[-+])", " I ", said)
    if "𝟏" in left:
        said = re.sub(r"(?<![\w.])1(?=\s*[A-Za-zᵀ])", "𝟏", said)
    return NAME.sub(lambda match: _spaced(match, names), said).strip()


KRON = re.compile(r"(?:\b(?:np|numpy)\.)?\bkron\(")


def _kronecker(said: str) -> str:
    """Return an answer with `⊗` for calls of `kron`, as NumPy writes it.

    >>> _kronecker("kron(A B, W) x")
    '((A B) ⊗ (W)) x'
    """
    while found := KRON.search(said):
        depth, comma, end = 1, 0, found.end()
        while end < len(said) and depth:
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(said[end], 0)
            if said[end] == "," and depth == 1:
                comma = end
            end += 1
        if depth or not comma:
            break
        left, right = said[found.end() : comma].strip(), said[comma + 1 : end - 1].strip()
        said = f"{said[: found.start()]}(({left}) ⊗ ({right})){said[end:]}"
    return said


TRANSPOSE = re.compile(r"\b(?:(?:np|numpy)\.)?transpose(?=(\((?:[^()]|\([^()]*\))*\)))")


def _transposed(said: str) -> str:
    """Return an answer with `ᵀ` for calls of `transpose`.

    >>> _transposed("X transpose(O V)")
    'X (O V)ᵀ'
    """
    while found := TRANSPOSE.search(said):
        end = found.end() + len(found.group(1))
        said = f"{said[: found.start()]}{found.group(1)}ᵀ{said[end:]}"
    return said


def _identity(match: re.Match[str], names: Collection[str]) -> str:
    """Return an identity matrix without its size, where that is a product of sizes: `I_nd`."""
    size = match.group(1)
    return "I" if size not in names and {*size} <= {*names} else match.group()


def _bare(text: str) -> str:
    return re.sub(r"\s", "", text)


def _spaced(match: re.Match[str], names: Collection[str]) -> str:
    """Return a name as it is, or the names that it is made of."""
    word = match.group()
    if word in names or word in FUNCTIONS or match.string[: match.start()].endswith("\\"):
        return word
    parts = _parts(word, {*names, *FUNCTIONS})
    return " ".join(parts) if parts else word


def _parts(word: str, names: Collection[str]) -> list[str]:
    """Return the names that a word is made of, longest first; nothing if it is not."""
    if not word:
        return []
    for length in range(len(word), 0, -1):
        if word[:length] in names:
            rest = _parts(word[length:], names)
            if rest or length == len(word):
                return [word[:length], *rest]
    return []


def unknown(said: str, names: Collection[str]) -> str:
    """Return the first name in an answer that the exercise does not have; empty if there is none.

    >>> unknown("A X WV", {"A", "X", "W_V"})
    'WV'
    """
    for match in NAME.finditer(said):
        word, command = match.group(), said[: match.start()].endswith("\\")
        sized = re.fullmatch(r"I(?:d)?_(?:\{)?\w+(?:\})?", word)
        if not (command or sized or word in names or word in FUNCTIONS):
            return word
    return ""
