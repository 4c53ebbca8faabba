r"""The tokens of a formula, each with its offset; Unicode mathematics is read as its LaTeX.

Spacing, sizes of brackets, colours and the like mean nothing and are skipped. A comment runs from %
to the end of its line.

>>> [token.text for token in tokenize(r"A \otimes W_{O}^\top")]
['A', '\\otimes', 'W', '_', '{', 'O', '}', '^', '\\top']
>>> [token.text for token in tokenize("Wᵀ ⊗ I₂")]
['W', '^', '{', '\\top', '}', '\\otimes', 'I', '_', '{', '2', '}']
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from otimes.algebra.errors import OtimesError
from otimes.algebra.notation.row_comments import kept
from otimes.algebra.notation.vocabulary import (
    RELATIONS,
    SEPARATORS,
    SPACING,
    TEXTS,
    WITHOUT_MEANING,
)

LONGEST = 20_000  # characters of one formula
SAME = {
    "⊗": r"\otimes", "⊙": r"\odot", "∘": r"\circ", "⊘": r"\oslash",
    "·": r"\cdot", "⋅": r"\cdot", "×": r"\times",
    "∗": "*", "−": "-", "–": "-", "≤": r"\le", "≥": r"\ge", "≠": r"\ne", "≈": r"\approx",
    "∈": r"\in", "≜": r"\triangleq", "≔": ":=", "→": r"\to", "←": r"\leftarrow", "∝": r"\propto",
    "∑": r"\sum", "∏": r"\prod", "√": r"\sqrt", "∇": r"\nabla", "∂": r"\partial", "∞": r"\infty",
    "…": r"\dots", "⋯": r"\cdots", "⋮": r"\vdots", "⋱": r"\ddots", "‖": r"\|", "∥": r"\|",
    "′": "'", "″": "''", "𝟏": r"\mathbf1", "𝟙": r"\mathbf1", "ℝ": r"\mathbb{R}", "†": r"\dagger",
    "°": r"^\circ", "⊤": r"\top", "⊕": r"\oplus", "≡": r"\equiv", "ℓ": r"\ell", "∀": r"\forall",
    "⟨": r"\langle", "⟩": r"\rangle", "≪": r"\ll", "≫": r"\gg", "∼": r"\sim",
    "±": r"\pm", "∓": r"\mp",
    "α": r"\alpha", "β": r"\beta", "γ": r"\gamma", "δ": r"\delta", "ε": r"\epsilon",
    "ζ": r"\zeta", "η": r"\eta", "θ": r"\theta", "κ": r"\kappa", "λ": r"\lambda", "μ": r"\mu",
    "ν": r"\nu", "ξ": r"\xi", "π": r"\pi", "ρ": r"\rho", "σ": r"\sigma", "τ": r"\tau",
    "φ": r"\phi", "ϕ": r"\varphi", "χ": r"\chi", "ψ": r"\psi", "ω": r"\omega", "Γ": r"\Gamma",
    "Δ": r"\Delta", "Θ": r"\Theta", "Λ": r"\Lambda", "Ξ": r"\Xi", "Π": r"\Pi", "Σ": r"\Sigma",
    "Φ": r"\Phi", "Ψ": r"\Psi", "Ω": r"\Omega",
}  # fmt: skip
SYNONYMS = {
    r"\leq": r"\le", r"\leqslant": r"\le", r"\geq": r"\ge", r"\geqslant": r"\ge", r"\neq": r"\ne",
    r"\cdotp": r"\cdot", r"\ldots": r"\dots", r"\gets": r"\leftarrow", r"\dotsc": r"\dots",
    r"\rightarrow": r"\to", r"\intercal": r"\top", r"\lVert": r"\|", r"\rVert": r"\|",
    r"\Vert": r"\|", r"\coloneqq": ":=", r"\coloneq": ":=", r"\defeq": ":=",
     r"\transpose": r"\top", r"\newline": r"\\",
    r"\lbrack": "[", r"\rbrack": "]", r"\lbrace": r"\{", r"\rbrace": r"\}", r"\dotsb": r"\cdots",
    r"\prime": "'", r"\lvert": "|", r"\rvert": "|", r"\vert": "|", r"\ast": "*",
    r"\_": "_", r"\*": "*", r"\therefore": r"\quad", r"\because": r"\quad", r"\dag": r"\dagger",
    r"\lt": "<", r"\gt": ">", "...": r"\dots", "....": r"\dots",
    r"\nolinebreak": r"\quad", r"\thickapprox": r"\approx", r"\leadsto": r"\rightsquigarrow",
    r"\longleftarrow": r"\leftarrow", r"\smallsetminus": r"\setminus", r"\longmapsto": r"\mapsto",
    r"\tfrac": r"\frac", r"\dfrac": r"\frac", r"\colon": ":", r"\overrightarrow": r"\vec",
}  # fmt: skip
RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ᵀʰˡⁿⁱʲᵏᵐ", "0123456789+-Thlnijkm", strict=True))
LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ", "0123456789+-aehijklmnoprstuvx", strict=True))
NEGATED = {"=": r"\ne", r"\in": r"\notin", r"\equiv": r"\ne", r"\subset": r"\nsubseteq"}
WORD = re.compile(
    r"\\(?:[A-Za-z]+\*?|.)|[0-9]{1,3}(?:(?:\{,\}|,)[0-9]{3})+(?:\.[0-9]+)?(?![0-9])|[0-9]+(?:\.[0-9]+)?|:=|==|\.{3,4}|''+|\*\*|&|[^\W\d_]|.",
    re.DOTALL,
)

BRACED = frozenset(("+", "-", "=", "<", ">", ",", "/", r"\times", r"\cdot", r"\otimes"))
OLD_FONT = re.compile(
    r"\{\s*(?:\\(?P<font>bf|rm|cal|it|sf|tt|sl|em)(?![A-Za-z])\s*)+(?P<word>[A-Za-z][A-Za-z ]*)\}"
)


class NotationError(OtimesError):
    """A formula cannot be read; `.span` is the part of it that is the reason, as offsets."""

    def __init__(self, message: str, span: tuple[int, int] = (0, 0)) -> None:
        super().__init__(message)
        self.span = span


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a formula: its text in LaTeX, and the offsets where it begins and ends.

    `kind` is "letter", "number", "command", "word" (text in roman type, the whole word) or "mark".
    `spaced` says whether white space precedes it.
    """

    kind: str
    text: str
    start: int
    end: int
    spaced: bool = False


def tokenize(formula: str) -> list[Token]:
    r"""Return the tokens of a formula. Raises NotationError for one that is far too long.

    >>> tokenize(r"\mathrm{softmax}(S)")[0]
    Token(kind='word', text='softmax', start=0, end=16, spaced=False)
    """
    if len(formula) > LONGEST:
        raise NotationError(f"the formula has {len(formula)} characters; {LONGEST} are read")
    found: list[Token] = []
    at, spaced = 0, False
    while at < len(formula):
        here = formula[at]
        if here.isspace() or here == "~" or here in "\u200b\ufeff":
            at, spaced = at + 1, True
            continue
        if here == "\\" and formula[at + 1 : at + 2].isspace():  # a space, as `\\\` ends rows
            at, spaced = at + 2, True
            continue
        if here == "%":
            line = formula.find("\n", at)
            at = len(formula) if line < 0 else line
            continue
        if here in RAISED or here in LOWERED:
            at = _script(formula, at, found)
            continue
        if here in SAME:
            parts = WORD.findall(SAME[here])
            found += [Token(_kind(part), part, at, at + 1, spaced) for part in parts]
            at, spaced = at + 1, False
            continue
        if formula.startswith("||", at) and spaced and formula[at + 2 : at + 3].isspace():
            found.append(Token("mark", r"\|", at, at + 2, True))
            at, spaced = at + 2, False
            continue
        if here == "{" and (font := OLD_FONT.match(formula, at)):
            found += _in_old_font(font, spaced)
            at, spaced = font.end(), False
            continue
        text = WORD.match(formula, at).group()  # type: ignore[union-attr]
        if text[0].isdigit() and "," in text and _is_list(formula, at):
            text = text[: text.index(",")].rstrip("{")
        end = at + len(text)
        if text in TEXTS:
            words, end = _argument(formula, end)
            if text == r"\mathsf" and _is_styled(words, found):
                found.append(Token("command", text, at, at + len(text), spaced))
                at, spaced = at + len(text), False
                continue
            if words is not None:
                found.append(Token("word", words, at, end, spaced))
                at, spaced = end, False
                continue
            mixed = _mixed(formula, end)
            if mixed is not None:
                tokens, at = mixed
                found += tokens
                spaced = True
                continue
            if formula[end : end + 1] == "{":  # a formula in roman type
                at, spaced = end, False
                continue
        if text in WITHOUT_MEANING:
            at, spaced = _past_group(formula, end), True
            continue
        if text == r"\\":  # doubled, as some renderers of Markdown need it
            follows = formula[end : end + 2]
            if follows == r"\\":
                end += 2
            elif follows[:1] in ("{", "}"):
                text, end = "\\" + follows[0], end + 1
        if text == r"\not":
            negated = WORD.match(formula[end:].lstrip())
            word = SYNONYMS.get(negated.group(), negated.group()) if negated else ""
            if word in NEGATED:
                end = formula.index(negated.group(), end) + len(negated.group())  # type: ignore[union-attr]
                found.append(Token("command", NEGATED[word], at, end, spaced))
                at, spaced = end, False
                continue
        if text in SPACING:
            if text in SEPARATORS:
                found.append(Token("mark", r"\quad", at, end, True))
            at, spaced = end, True
            # `\left.` is an empty bracket
            if text in (r"\left", r"\right") and formula[at : at + 1] == ".":
                at += 1
            continue
        text = SYNONYMS.get(text, text).replace("{,}", "")
        if text[0].isdigit():
            text = text.replace(",", "")
        found.append(Token(_kind(text), text, at, end, spaced))
        at, spaced = end, False
    found = _with_double_bars(_ungrouped(_unboxed(_without_braces(found))))
    return [found[k] for k in kept(found)]


def _in_old_font(font: re.Match[str], spaced: bool) -> list[Token]:
    r"""Return the tokens of `{\bf x}` as of `\mathbf{x}`, and of `{\rm max}` as of a word."""
    word, at, end = font["word"].strip(), font.start(), font.end()
    style = {"bf": r"\mathbf", "cal": r"\mathcal"}.get(font["font"])
    if style is None or len(word) > 1:
        return [Token("word", word, at, end, spaced)]
    inside = font.start("word")
    return [
        Token("command", style, at, inside, spaced),
        Token("mark", "{", at, at + 1),
        Token("letter", word, inside, inside + 1),
        Token("mark", "}", end - 1, end),
    ]


def _without_braces(tokens: list[Token]) -> list[Token]:
    r"""Return tokens without braces that only change the space around a sign: `n{-}1`, `= {} A`."""
    dropped: set[int] = set()
    for k in range(len(tokens) - 1):
        empty = tokens[k].text == "{" and tokens[k + 1].text == "}"
        before = tokens[k - 1].text if k else ""
        raised = k + 2 < len(tokens) and tokens[k + 2].text in ("^", "_")
        if empty and not raised and (before in RELATIONS or before in ("", "+", "-", "&", r"\\")):
            dropped |= {k, k + 1}
    for k in range(len(tokens) - 2):
        opened, sign, closed = (token.text for token in tokens[k : k + 3])
        script = k > 0 and tokens[k - 1].text in ("^", "_")
        if opened == "{" and closed == "}" and sign in BRACED and not script:
            dropped |= {k, k + 2}
    return [token for k, token in enumerate(tokens) if k not in dropped]


def _past_group(formula: str, at: int) -> int:
    """Return where the braced argument of a command ends, whatever is in it."""
    while formula[at : at + 1].isspace():
        at += 1
    if formula[at : at + 1] != "{":
        return at
    depth = 0
    for k in range(at, len(formula)):
        depth += (formula[k] == "{") - (formula[k] == "}")
        if depth == 0:
            return k + 1
    return at


def _unboxed(tokens: list[Token]) -> list[Token]:
    r"""Return tokens without `\boxed` and its braces, which may hold a whole equation."""
    boxes = [k for k, token in enumerate(tokens) if token.text == r"\boxed"]
    dropped = set()
    for k in boxes:
        depth = 0
        for at in range(k + 1, len(tokens)):
            depth += (tokens[at].text == "{") - (tokens[at].text == "}")
            if depth == 0:
                dropped |= {k, k + 1, at} if at > k + 1 else set()
                break
    return [token for k, token in enumerate(tokens) if k not in dropped]


def _ungrouped(tokens: list[Token]) -> list[Token]:
    r"""Return tokens without the braces of `{\begin{aligned}…\end{aligned}}`."""
    texts = [token.text for token in tokens]
    last = len(texts) - 1 - texts[::-1].index(r"\end") if r"\end" in texts else 0
    whole = texts[-2:] == ["}", "}"] and "}" not in texts[last:-2]
    return tokens[1:-1] if texts[:2] == ["{", r"\begin"] and whole else tokens


def _with_double_bars(tokens: list[Token]) -> list[Token]:
    r"""Return tokens with `\vert\vert` as the one sign that `\|` is."""
    found: list[Token] = []
    for token in tokens:
        last = found[-1] if found else None
        if last is not None and token.text == last.text == "|" and last.end - last.start > 1:
            found[-1] = replace(last, text=r"\|", end=token.end)
        else:
            found.append(token)
    return found


def _is_list(formula: str, at: int) -> bool:
    """Return whether a comma between digits may separate them: inside brackets, without braces."""
    number = WORD.match(formula, at).group()  # type: ignore[union-attr]
    before = formula[:at]
    opened = sum(before.count(a) - before.count(b) for a, b in ("()", "[]", "{}"))
    return "{,}" not in number and opened > 0


def _kind(text: str) -> str:
    if text[0] == "\\" and len(text) > 1 and text[1].isalpha():
        return "command"
    if text[0].isdigit():
        return "number"
    if text == r"\dots":
        return "command"
    return "letter" if text.isalpha() else "mark"


def _script(formula: str, at: int, found: list[Token]) -> int:
    """Read a run of raised or lowered characters as a superscript or a subscript."""
    table, sign = (RAISED, "^") if formula[at] in RAISED else (LOWERED, "_")
    end = at
    while end < len(formula) and formula[end] in table:
        end += 1
    found += [Token("mark", sign, at, at + 1), Token("mark", "{", at, at + 1)]
    for k in range(at, end):
        text = table[formula[k]]
        if text == "T":
            text = r"\top"
        found.append(Token(_kind(text), text, k, k + 1))
    found.append(Token("mark", "}", end - 1, end))
    return end


def _mixed(formula: str, at: int) -> tuple[list[Token], int] | None:
    r"""Return the tokens of words with formulas among them, `\text{if $x > 0$}`, and their end."""
    close = formula.find("}", at)
    while close > 0 and formula.count("$", at, close) % 2:
        close = formula.find("}", close + 1)
    inner = formula[at + 1 : close]
    if formula[at : at + 1] != "{" or close < 0 or "$" not in inner:
        return None
    found: list[Token] = []
    begun = at + 1
    for k, part in enumerate(inner.split("$")):
        if k % 2:
            found += [replace(t, start=t.start + begun, end=t.end + begun) for t in tokenize(part)]
        elif part.strip():
            found.append(Token("word", part, begun, begun + len(part), True))
        begun += len(part) + 1
    return found, close + 1


def _is_styled(word: str | None, before: list[Token]) -> bool:
    r"""Return whether a word is a letter in another style: `\mathsf{X}`, but not `^\mathsf{T}`.

    That of a differential, an expectation or a probability is as in roman type.
    """
    letter = word is not None and len(word) == 1 and word.isalpha() and word not in "TtHdEP"
    return letter and not (before and before[-1].text == "^")


def _argument(formula: str, at: int) -> tuple[str | None, int]:
    """Return the braced argument of a command as text, and where it ends."""
    while at < len(formula) and formula[at].isspace():
        at += 1
    if formula[at : at + 1] != "{":
        letter = formula[at : at + 1]
        return (letter, at + 1) if letter.isalpha() else (None, at)
    depth = 0
    for k in range(at, len(formula)):
        depth += (formula[k] == "{") - (formula[k] == "}")
        if depth == 0:
            inner = re.sub(r"\\[,;:! ]", " ", formula[at + 1 : k])
            bare = re.sub(r"\\[_%&#$]", "", inner)
            if any(c in bare for c in "\\{}_^$"):
                return None, at
            return re.sub(r"\\([_%&#$])", r"\1", inner), k + 1
    return None, at
