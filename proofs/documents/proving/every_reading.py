"""Claims about symbols that are not declared, under each kind that these may have.

A small letter may stand for a column, a row, a matrix or a number. Where only some of these conform
with the rest of an equation, the others are no readings of it. A claim that is proved in every
reading is true, and one that is refuted in every reading is false, whatever the symbols are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from otimes.algebra.errors import OtimesError
from otimes.algebra.notation.dimensions import ONE
from otimes.algebra.notation.elaborate import elaborate, shape_error
from otimes.algebra.notation.expectations import is_expectation
from otimes.algebra.notation.symbols import VECTORS, Declared, Kind, Symbols, default, text_of
from otimes.algebra.notation.tree import (
    Apply,
    Grid,
    Indexed,
    Name,
    Node,
    Power,
    Tensor,
    bare,
    latex,
    walk,
)
from otimes.algebra.notation.typed import FormulaShapeError, Undeclared
from otimes.algebra.notation.vocabulary import ELEMENTWISE, FUNCTIONS
from otimes.proofs.documents.proving.attempts import symbols_in
from otimes.proofs.documents.reporting.found import Found

MOST_OPEN = 4  # symbols whose kinds are tried together
MOST_READINGS = 10  # that conform
SIDES: list[Kind] = ["column", "row"]
NARROW = "it conforms only if a vector or a matrix has one entry"
# What is said where symbols do not fit in a reading, and might in a sloppy notation.
MISFITS = (
    "the shapes conform only",
    "it does not conform where",
    "are added, a number and a matrix",
)
LENGTH = " entries, and is used as a vector of "  # both lengths are declared
SAID = {"column": "a column", "row": "a row", "matrix": "a matrix", "scalar": "a number"}
# Words after which a text may assume something that is not read: a property of symbols, or more.
PROPERTY = re.compile(
    r"unit|orthogonal\w*|orthonormal\w*|eigen\w+|null ?space|kernel|stochastic|idempotent|"
    r"projections?|projectors?|symmetric|skew\w*|commut\w+|normali[sz]ed|cent(?:er|re)d|whitened|"
    r"one-hot|diagonal|rotations?|\bPS?D\b|\bSPD\b|definite",
    re.IGNORECASE,
)
ASSUMED = re.compile(
    rf"\b(?:{PROPERTY.pattern}|small|fixed|such that|satisf\w+|independent|only if|approximat\w+|"
    r"special case|stationary|optim\w+|minimi[sz]\w+|if)\b",
    re.IGNORECASE,
)


def in_every_reading(
    lhs: Node,
    rhs: Node,
    symbols: Symbols,
    source: str,
    judged: Callable[[Symbols], Found],
) -> Found | None:
    """Return the verdict that all readings have in common, or None.

    `judged` returns the verdict in one of them. Where the claim is proved in some readings only, it
    is true if the symbols are what they are there. A claim that conforms in none is a shape error.
    """
    conforming: list[tuple[dict[str, Kind], Symbols]] = []
    errors: list[str] = []
    usual: list[str] = []  # those in which small letters are what they usually are
    try:
        for kinds, trial in readings(lhs, rhs, symbols):
            if is_mixed(kinds.values()) and conforming:
                continue  # columns and rows are not mixed without need
            error = _not_conforming(lhs, rhs, trial, source)
            as_numbers = [_letter(text) for text, kind in kinds.items() if kind == "scalar"]
            if error is None and as_numbers and VECTORS.issuperset(as_numbers):
                continue  # a letter for vectors is no number without need
            a_vector = _has_greek_vector(kinds) and not _has_function_values(lhs, rhs, kinds)
            if error is None and (conforming or errors) and a_vector:
                continue  # nor is a Greek letter a vector whose rows are repeated
            unusual = error is None and conforming and not _is_usual((kinds, trial))
            if unusual and _adds_a_vector(lhs, rhs, trial, source):
                continue  # nor is a small letter a matrix to whose rows a vector is added
            if error is None:
                return None
            if error:
                errors.append(error)
                vague = as_numbers and VECTORS.issuperset(as_numbers)
                usual += [error] if _is_usual((kinds, trial)) and not vague else []
            else:
                conforming.append((kinds, trial))
        written = any(isinstance(e, Grid) for side in (lhs, rhs) for e in walk(side))
        blocks = all(error.startswith("a block is") for error in usual)
        sure = (blocks or not written) and not _has_open_function([lhs, rhs], symbols)
        if not conforming and usual and NARROW not in usual and sure:
            return Found("shape", usual[0])
        if not 0 < len(conforming) <= MOST_READINGS or not any(map(_is_usual, conforming)):
            return None
        found = [(kinds, judged(trial)) for kinds, trial in conforming]
    except OtimesError:
        return None
    plain = [each for kinds, each in found if not _has_greek_vector(kinds)]
    if plain and all(each.verdict == "proved" for each in plain):
        greek = {text for kinds, _ in found for text in kinds if _letter(text) == "\\"}
        said = f"; where {', '.join(sorted(greek))} is a number" if len(plain) < len(found) else ""
        return replace(plain[0], why=f"{plain[0].why}{said}")
    verdicts = {each.verdict for _, each in found}
    # i may be the imaginary unit
    imaginary = any(latex(e) in ("i", "i^{2}") for side in (lhs, rhs) for e in symbols_in(side))
    if (written or imaginary) and "refuted" in verdicts:
        return None  # entries are given of an example, or of unknowns that it is solved for
    if len(verdicts) == 1 and verdicts & {"proved", "refuted"}:
        return found[0][1]
    true = [(kinds, each) for kinds, each in found if each.verdict == "proved"]
    if not true:
        return None
    kinds, each = true[0]
    said = ", ".join(f"{text} is {SAID[kind]}" for text, kind in kinds.items())
    return Found("needs-hypothesis", f"true if {said}", reading=each.reading)


def _has_open_function(terms: Sequence[Node], symbols: Symbols) -> bool:
    r"""Return whether a function of which nothing is said is applied to different arguments.

    `\phi(W x)` may be a column and `\phi(w^\top x)` a number.
    """
    known = {each for each in FUNCTIONS if len(each) > 1 and each[0] != "\\"}
    known |= set(ELEMENTWISE) | symbols.elementwise
    applied: dict[str, set[str]] = {}
    for e in (e for term in terms for e in walk(term)):
        if isinstance(e, Apply) and e.function.base not in known:
            arguments = ",".join(map(latex, e.arguments))
            applied.setdefault(latex(e.function), set()).add(arguments)
    return any(len(each) > 1 for each in applied.values())


def misfit(lhs: Node, rhs: Node, symbols: Symbols) -> Found | None:
    """Return the shape error of terms that do not conform, whatever Greek letters stand for."""
    errors: list[str] = []
    name = bare(lhs)
    greek = any(map(_is_small_greek, symbols_in(rhs))) and not _is_small_greek(name)
    is_new = isinstance(name, Name) and symbols.lookup(name)[1] is None
    for kinds, trial in readings(lhs, rhs, symbols) if greek else ():
        error = shape_error([rhs] if is_new else [lhs, rhs], trial)
        if error is None and errors and _has_greek_vector(kinds):
            continue
        if not error:
            return None
        errors.append(error)
    return Found("shape", errors[0]) if errors and NARROW not in errors else None


def _is_small_greek(node: Node) -> bool:
    return isinstance(node, Name) and node.base[0] == "\\" and node.base[1].islower()


def _has_greek_vector(kinds: dict[str, Kind]) -> bool:
    greek = (kind for text, kind in kinds.items() if _letter(text) == "\\")
    return any(kind in ("column", "row") for kind in greek)


def _has_function_values(lhs: Node, rhs: Node, kinds: dict[str, Kind]) -> bool:
    r"""Return whether the only Greek vectors of a reading are values of functions: `\sigma(z)`."""
    parts = (e for side in (lhs, rhs) for e in walk(side))
    functions = {latex(e.function) for e in parts if isinstance(e, Apply)}
    return not _has_greek_vector({t: kind for t, kind in kinds.items() if t not in functions})


def _letter(text: str) -> str:
    r"""Return the letter of a symbol without its accents and styles, a backslash for a Greek one.

    >>> _letter(r"\hat{\mathbf{x}}_{i}"), _letter(r"\beta_{i}")
    ('x', '\\')
    """
    return re.sub(r"^(?:\\[A-Za-z]+\{)+", "", text)[:1]


def _not_conforming(lhs: Node, rhs: Node, trial: Symbols, source: str) -> str | None:
    """Return why a claim does not conform, "" if it does, None where that cannot be said.

    It does not where a vector or a matrix would have a single entry.
    """
    try:
        read = elaborate([lhs, rhs], trial, source)
    except (FormulaShapeError, Undeclared) as error:
        if LENGTH in str(error):
            return str(error).partition(";")[0]
        short = any(part in str(error) for part in MISFITS)
        return NARROW if short else shape_error([lhs, rhs], trial, source) or None
    small = {key for key, shape in read.shapes.items() if shape == (ONE, ONE)}
    tried = {key for key, known in trial.known.items() if not known.trusted}
    return NARROW if small & tried else ""


def _adds_a_vector(lhs: Node, rhs: Node, trial: Symbols, source: str) -> bool:
    """Return whether a claim conforms only where a vector is added to each row of a matrix."""
    try:
        elaborate([lhs, rhs], trial, source)
    except (FormulaShapeError, Undeclared) as error:
        return str(error).startswith("cannot add")
    return False


def _is_usual(reading: tuple[dict[str, Kind], Symbols]) -> bool:
    """Return whether no small letter is a matrix in a reading."""
    tried = [(key, known) for key, known in reading[1].known.items() if not known.trusted]
    return not any(known.kind == "matrix" and key[:1].islower() for key, known in tried)


def readings(lhs: Node, rhs: Node, symbols: Symbols) -> Iterator[tuple[dict[str, Kind], Symbols]]:
    """Yield the kinds that the symbols of a claim may have which are not declared.

    What is transposed is no number. Readings in which some are columns and some rows come last.
    """
    open_: dict[str, list[Name]] = {}
    vectors: dict[str, Declared] = {}
    parts = [e for side in (lhs, rhs) for e in walk(side)]
    ends = [e.upper for e in parts if isinstance(e, Indexed) and e.upper is not None]
    sizes = symbols.sizes() | {text_of(e) for end in ends for e in symbols_in(end)}
    for e in (e for side in (lhs, rhs) for e in symbols_in(side)):
        if is_expectation(e):
            continue
        if e.style == "bb":
            return  # a set
        key, known = symbols.lookup(e)
        is_open = known is None or not (known.trusted or known.rows or known.line)
        if is_open and not _is_size(e, sizes) and _kinds(e):
            open_.setdefault(key, []).append(e)
        elif known is not None and known.kind == "vector" and not symbols.side_of(known):
            open_.setdefault(key, []).append(e)
            vectors[key] = known
    if len(open_) > MOST_OPEN:
        return
    powers = [e for e in parts if isinstance(e, Power)]
    turned = {latex(bare(e.base)) for e in powers if e.exponent == "T"}
    entrywise = (e for e in parts if isinstance(e, Tensor) and e.mark == r"\odot")
    joined = {latex(bare(factor)) for e in entrywise for factor in e.factors}
    choices = [
        _possible(names, turned, symbols.side, joined) if key not in vectors else SIDES
        for key, names in open_.items()
    ]
    for kinds in sorted(product(*choices), key=is_mixed):
        trial = symbols.copy()
        for key, kind in zip(open_, kinds, strict=True):
            known = vectors.get(key)
            if known is None:
                trial.known[key] = Declared(kind, trusted=False)
            else:
                trial.known[key] = replace(known, side=kind)
        texts = (latex(names[0]) for names in open_.values())
        yield dict(zip(texts, kinds, strict=True)), trial


def _is_size(name: Name, sizes: Collection[str]) -> bool:
    """Return whether a symbol is a size, or a power of one: `d^2`."""
    power = name.sup and all(slot.kind == "number" for slot in name.sup)
    return text_of(replace(name, sup=()) if power else name) in sizes


def _possible(
    names: Sequence[Name], turned: Collection[str], side: str, joined: Collection[str]
) -> list[Kind]:
    """Return what a symbol may be: no number if it is transposed, and no row among columns.

    What is joined entry by entry is no number either, and may be a matrix.
    """
    kinds = [*_kinds(names[0])]
    if any(latex(each) in joined for each in names):
        kinds = [*dict.fromkeys((*kinds, "matrix"))]
        turned = {*turned, *joined}
    if any(latex(each) in turned for each in names):
        kinds = [kind for kind in kinds if kind != "scalar"]
    return [kind for kind in kinds if not side or kind in (side, "scalar", "matrix")]


def is_mixed(kinds: Iterable[str]) -> bool:
    """Return whether some vectors are columns and others rows."""
    return {"column", "row"} <= {*kinds}


def _kinds(name: Name) -> tuple[Kind, ...]:
    """Return what an undeclared symbol may be by its typography, the usual first."""
    usual = default(name)
    if usual is None:
        return ()
    if usual.kind == "matrix":
        if usual.trusted:
            return ("matrix",)
        if name.sub and name.sub[0].kind == "number":  # one of several maps: F_1
            return ("matrix", "row", "column")
        return ("matrix", "row", "column", "scalar") if name.sub else ("matrix", "scalar")
    if len(name.sub) > 1 or name.base[0] == "\\":
        return ("scalar",) if len(name.sub) > 1 else ("scalar", "column", "row")
    if usual.kind == "vector" or name.base in VECTORS:
        return ("column", "row", "matrix") if name.style else ("column", "row", "scalar", "matrix")
    return ("scalar", "column", "row", "matrix")


def has_assumption(words: str, but: str = "") -> bool:
    """Return whether a text contains a word, `but` one, that may assume something of a symbol.

    >>> has_assumption("for a unit vector"), has_assumption("the head writes")
    (True, False)
    """
    return any(match[0].lower() != but for match in ASSUMED.finditer(words))
