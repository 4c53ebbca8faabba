r"""The macros of a document, expanded in its formulas; every character keeps its place of origin.

`\newcommand`, `\renewcommand`, `\providecommand`, `\def` and `\DeclareMathOperator` are read. An
expansion is bounded, so that macros without end are noticed and not followed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from string import ascii_lowercase, ascii_uppercase

from otimes.proofs.documents.containers.source import Document, Formula

MOST = 400  # expansions in one formula
LONGEST = 20_000  # characters of one formula
HEAD = re.compile(
    r"""\\(?:(?:re)?newcommand|providecommand)\*?\s*\{?\s*(?P<new>\\[A-Za-z]+|\\.)\s*\}?
          \s*(?:\[(?P<count>\d)\])?\s*(?:\[(?P<default>[^\]]*)\])?\s*(?=\{)
      | \\def\s*(?P<def>\\[A-Za-z]+)(?P<parameters>(?:\#\d)*)\s*(?=\{)
      | \\DeclareMathOperator\*?\s*\{\s*(?P<operator>\\[A-Za-z]+)\s*\}\s*(?=\{)""",
    re.VERBOSE,
)
# The letters of `math_commands.tex`, which many papers use: `\vx` is bold, `\mX` and `\R`, too.
COMMANDS = re.compile(r"\\(?:input|include|usepackage)\{[^{}]*\bmath_?commands?(?:\.\w+)?\}")
NAME = re.compile(r"\\(?:[A-Za-z]+|.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Macro:
    """A macro, with its number of arguments; the first may have a default."""

    body: str
    arguments: int = 0
    default: str | None = None


# What nearly all authors mean by names that a site or a style file defines for them.
USUAL = {
    r"\norm": Macro(r"\|#1\|", 1),
    r"\abs": Macro(r"|#1|", 1),
    r"\vect": Macro(r"\mathbf{#1}", 1),
    r"\mat": Macro(r"\mathbf{#1}", 1),
}


def macros_in(text: str) -> tuple[dict[str, Macro], list[tuple[int, int]]]:
    r"""Return the macros that a text defines, and where the definitions stand.

    >>> macros_in(r"\newcommand{\OV}[1]{W_{OV}^{#1}}")[0]
    {'\\OV': Macro(body='W_{OV}^{#1}', arguments=1, default=None)}
    """
    found: dict[str, Macro] = {}
    spans = []
    for match in HEAD.finditer(text):
        end = _group_end(text, match.end())
        if end is None:
            continue
        body = text[match.end() + 1 : end - 1]
        if match["operator"]:
            found[match["operator"]] = Macro(rf"\operatorname{{{body}}}")
        elif match["def"]:
            found[match["def"]] = Macro(body, match["parameters"].count("#"))
        else:
            found[match["new"]] = Macro(body, int(match["count"] or 0), match["default"])
        spans.append((match.start(), end))
    return found, spans


def with_macros(document: Document) -> Document:
    """Return a document whose formulas have the macros of its text expanded."""
    macros, spans = macros_in(document.text)
    if COMMANDS.search(document.text):
        macros = math_commands() | macros
    macros = {name: each for name, each in USUAL.items() if name in document.text} | macros
    if macros:
        document.formulas = [
            expanded(formula, macros)
            for formula in document.formulas
            if not any(start <= formula.start < end for start, end in spans)
        ]
        document.hidden = sorted([*document.hidden, *spans])
    return document


def math_commands() -> dict[str, Macro]:
    r"""Return the macros for letters of `math_commands.tex`, by Goodfellow, Bengio and Courville.

    >>> math_commands()[r"\mX"]
    Macro(body='\\boldsymbol{X}', arguments=0, default=None)
    """
    found = {rf"\{prefix}{x}": x for x in ascii_lowercase for prefix in ("v", "ev", "rv")}
    found |= {rf"\{prefix}{x}": x for x in ascii_uppercase for prefix in ("m", "em", "rm")}
    found |= {rf"\v{greek}": rf"\{greek}" for greek in ("mu", "theta", "alpha", "beta")}
    found |= {rf"\m{greek}": rf"\{greek}" for greek in ("Sigma", "Lambda", "Phi", "Beta")}
    plain = {name: letter for name, letter in found.items() if name[1] == "e"}  # entries
    macros = {name: Macro(rf"\boldsymbol{{{letter}}}") for name, letter in found.items()}
    macros |= {name: Macro(letter) for name, letter in plain.items()}
    return macros | {r"\R": Macro(r"\mathbb{R}"), r"\E": Macro(r"\mathbb{E}")}


def expanded(formula: Formula, macros: dict[str, Macro]) -> Formula:
    r"""Return a formula with its macros expanded, or with the problem why they cannot be.

    >>> macros = {r"\A": Macro("B_{#1}", 1)}
    >>> expanded(Formula(r"x \A{i}", 10, 17, False), macros).tex
    'x B_{i}'
    """
    tex = formula.tex
    offsets = [formula.offset(k) for k in range(len(tex))]
    at = count = 0
    changed = False
    while True:
        match = NAME.search(tex, at)
        if match is None:
            break
        macro = macros.get(match[0])
        if macro is None:
            at = match.end()
            continue
        count += 1
        if count > MOST or len(tex) > LONGEST:
            return replace(formula, problem=f"the macro {match[0]} expands without end")
        arguments, end = _arguments(tex, match.end(), macro)
        if arguments is None:
            return replace(formula, problem=f"the macro {match[0]} lacks an argument")
        body, origins = _body(macro, arguments, tex, offsets, offsets[match.start()])
        if body[-1:].isalpha() and "\\" in body and tex[end : end + 1].isalpha():
            body, origins = f"{body} ", [*origins, offsets[match.start()]]
        tex = tex[: match.start()] + body + tex[end:]
        offsets = offsets[: match.start()] + origins + offsets[end:]
        at = match.start()
        changed = True
    return replace(formula, tex=tex, offsets=tuple(offsets)) if changed else formula


def _arguments(tex: str, at: int, macro: Macro) -> tuple[list[tuple[int, int] | str] | None, int]:
    """Return the stretches of the arguments, or the default text, and where they end."""
    found: list[tuple[int, int] | str] = []
    for number in range(macro.arguments):
        at = _skip_space(tex, at)
        if number == 0 and macro.default is not None:
            end = tex.find("]", at) if tex[at : at + 1] == "[" else -1
            if end < 0:
                found.append(macro.default)
            else:
                found.append((at + 1, end))
                at = end + 1
            continue
        if at >= len(tex):
            return None, at
        if tex[at] == "{":
            end = _group_end(tex, at) or 0
            if not end:
                return None, at
            found.append((at + 1, end - 1))
            at = end
        else:
            token = NAME.match(tex, at)
            end = token.end() if token else at + 1
            found.append((at, end))
            at = end
    return found, at


def _body(
    macro: Macro,
    arguments: list[tuple[int, int] | str],
    tex: str,
    offsets: list[int],
    origin: int,
) -> tuple[str, list[int]]:
    """Return the body with its arguments substituted, and where each character comes from."""
    body, origins, at = "", [], 0
    for match in re.finditer(r"#(\d)", macro.body):
        part = macro.body[at : match.start()]
        body += part
        origins += [origin] * len(part)
        at = match.end()
        number = int(match[1]) - 1
        if number >= len(arguments):
            continue
        argument = arguments[number]
        first = argument[:1] if isinstance(argument, str) else tex[slice(*argument)][:1]
        if first.isalpha() and re.search(r"\\[A-Za-z]+$", body):  # `\lVert#1` ends before a letter
            body += " "
            origins.append(origin)
        if isinstance(argument, str):
            body += argument
            origins += [origin] * len(argument)
        else:
            body += tex[slice(*argument)]
            origins += offsets[slice(*argument)]
    rest = macro.body[at:]
    return body + rest, [*origins, *[origin] * len(rest)]


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _group_end(text: str, at: int) -> int | None:
    """Return where the group that opens here ends, None where it does not."""
    depth = 0
    for k in range(at, min(len(text), at + LONGEST)):
        if text[k] == "\\":
            continue
        if text[k] in "{}" and (k == 0 or text[k - 1] != "\\"):
            depth += 1 if text[k] == "{" else -1
            if depth == 0:
                return k + 1
    return None
