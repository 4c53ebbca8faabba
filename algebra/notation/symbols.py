"""What the symbols of formulas stand for: shapes, sizes and functions, as they were declared.

Symbols are known by their keys, which leave out indices: the key of `W_V^{l,h}` is `W_V`. An
undeclared symbol is known by its typography: capitals are matrices, bold small letters vectors,
small letters with two indices the entries of a matrix.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

from otimes.algebra.errors import OtimesError
from otimes.algebra.notation.arithmetic import arithmetic
from otimes.algebra.notation.dimensions import ONE, Size, formula, names_in, size_symbol
from otimes.algebra.notation.numbered_sizes import sizes_at
from otimes.algebra.notation.tokens import NotationError
from otimes.algebra.notation.tree import Name, Node, Number, Slot, bare

Kind = Literal["matrix", "vector", "column", "row", "scalar", "size", "index", "function"]
MARKS = {"hat": "\u0302", "widehat": "\u0302", "tilde": "\u0303", "widetilde": "\u0303",
         "bar": "\u0304", "overline": "\u0304", "vec": "\u20d7", "dot": "\u0307",
         "ddot": "\u0308", "check": "\u030c", "underline": "\u0332"}  # fmt: skip
VECTORS = frozenset("xyzuvwqkrhbes")
OF_HEADS = frozenset("qkvo")  # queries, keys, values, outputs
INDICES = "ijklmnpqstuv"
SIZE_LETTERS = frozenset("ndmkpqrsHLNVDTM")
ASSUMED = frozenset(
    ("positive", "nonnegative", "nonzero", "negative", "nonpositive", "real", "integer", "even")
)


@dataclass(frozen=True, slots=True)
class Declared:
    """What a symbol stands for. `line` is where the document says so, 0 where it does not.

    `trusted`: whether it is declared, or plain from the formula, and not only from its typography.
    `full` is the symbol with its indices, as it was declared. `counts` are the numbers of members
    of a family, one for each index; `assumed` is what is assumed of a number, such as "positive".
    `side` is "column" or "row" for a vector that is said to be one. `name` is the symbol as it was
    declared, with all its indices.
    """

    kind: Kind
    rows: Size = ()
    cols: Size = ()
    line: int = 0
    trusted: bool = True
    full: str = ""
    counts: tuple[Size, ...] = ()
    assumed: tuple[str, ...] = ()
    side: str = ""
    name: Name | None = None


@dataclass(slots=True)
class Symbols:
    """The known symbols, by their keys, and the conventions of a document.

    `labelled` are the keys whose number above is a layer or a head, and no power; `convention` is
    the side on which weights act: "row", "column" or unknown; `vec` is "rows" or "cols"; `values`
    are letters that are no functions, whatever follows them; `elementwise` are functions that act
    entry by entry; `split` are keys of symbols that have several shapes, so that an index below is
    part of the name: `b_e`, `b_d`. `same_ones`: whether all columns of ones have one size.
    `softmax` is "rows" or "columns" where it is said along which a softmax runs. `side` is "column"
    or "row" where it is said that all vectors are.
    `stacked` are keys of small letters for all positions, `x`, where `x_i` is one of these.
    `acts`: how ⊗ acts on matrices of a shape, and of any under two empty sizes
    (`otimes.algebra.notation.actions`).
    `apart` are symbols with a number, as text, that are defined by themselves: `B_2` beside `B`.
    `families` are keys of matrices that two indices number: `X_{ij}` is transposed, so no entry.
    `printed`: whether the notation is also that of the printers, in which `e_i` is a one-hot column
    and `M_n` the causal mask (`otimes.algebra.notation.printed`).
    `by_number`: whether matrices W_1 and W_2 of which nothing is declared have shapes of their own.
    `sides` is what a text takes rows of a matrix for, by their keys: "row", "column" or "either".
    """

    known: dict[str, Declared] = field(default_factory=dict)
    labelled: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    values: set[str] = field(default_factory=set)
    elementwise: set[str] = field(default_factory=set)
    split: set[str] = field(default_factory=set)
    convention: str = ""
    vec: str = ""
    same_ones: bool = False
    softmax: str = ""
    printed: bool = False
    side: str = ""
    stacked: set[str] = field(default_factory=set)
    families: set[str] = field(default_factory=set)
    acts: dict[tuple[Size, Size], str] = field(default_factory=dict)
    apart: set[str] = field(default_factory=set)
    sides: dict[str, str] = field(default_factory=dict)
    by_number: bool = False

    def copy(self) -> Symbols:
        """Return symbols to which more can be added without changing these."""
        return Symbols(
            dict(self.known),
            set(self.labelled),
            set(self.functions),
            set(self.values),
            set(self.elementwise),
            set(self.split),
            self.convention,
            self.vec,
            self.same_ones,
            self.softmax,
            self.printed,
            self.side,
            set(self.stacked),
            set(self.families),
            dict(self.acts),
            set(self.apart),
            dict(self.sides),
            self.by_number,
        )

    def side_of(self, known: Declared | None) -> str:
        """Return what a vector is said to be, by itself or with all others: "column" or "row"."""
        if known is None or known.kind != "vector":
            return ""
        return known.side or self.side

    def lookup(self, name: Name) -> tuple[str, Declared | None]:
        """Return the key under which a symbol is declared, and what it stands for."""
        if self.split and not self.split.isdisjoint(keys(name)):
            full = full_key(name)
            return (full, self.known[full]) if full in self.known else self._alike(name)
        if self.printed and (exact := self._exactly(name)) is not None:
            return exact, self.known[exact]
        is_apart = bool(name.sub) and bool(self.apart) and text_of(name) in self.apart
        for key in keys(name):
            if is_apart and self._is_by_letter(key):
                return full_key(name), None
            if key in self.known and not _is_other(name, self.known[key]):
                block = block_key(key)
                if key in self.stacked and block not in self.known and _is_block(name):
                    return block, None
                key = block if block in self.known and _is_block(name) else key
                return key, at_indices(self.known[key], name)
        folded = key_of(name).casefold()
        if name.sub and name.sub[0].kind in ("label", "index") and len(folded) > 1:
            for key, known in self.known.items():  # W_u for W_U
                if key[0] == name.base[0] and key.casefold() == folded:
                    return key, known
        return key_of(name), None

    def _is_by_letter(self, key: str) -> bool:
        """Return whether a symbol was declared without an index."""
        known = self.known.get(key)
        return known is not None and known.name is not None and not known.name.sub

    def _alike(self, name: Name) -> tuple[str, Declared | None]:
        """Return the declaration of a symbol with another index: `x_i` for `x_j`."""
        if name.sub and all(s.kind == "index" and s.text.rstrip("'") in INDICES for s in name.sub):
            pattern = re.compile(
                re.escape(_marked(letters(name.base, ""), name.marks) + "_")
                + ",".join([f"[{INDICES}]"] * len(name.sub))
            )
            for key, known in self.known.items():
                if pattern.fullmatch(key):
                    return key, known
        return full_key(name), None

    def _exactly(self, name: Name) -> str | None:
        """Return the key of the declaration with these indices: B_1 beside B_2."""
        if not name.sub:
            return None
        full = full_key(name)
        return next((key for key, known in self.known.items() if known.full == full), None)

    def sizes(self) -> set[str]:
        """Return the names of sizes."""
        found = {key for key, known in self.known.items() if known.kind == "size"}
        for known in self.known.values():
            for size in (known.rows, known.cols, *known.counts):
                found |= names_in(size)
        return found

    def is_labelled(self, name: Name) -> bool:
        """Return whether a number above the symbol is a label, and no power.

        A matrix that is declared as rectangular has no powers.
        """
        if any(key in self.labelled for key in keys(name)):
            return True
        known = self.lookup(name)[1]
        if known is None or not (known.rows and known.cols):
            return False
        return known.rows != known.cols and not {ONE, (1,)} & {known.rows, known.cols}


@lru_cache(maxsize=1 << 14)
def keys(name: Name) -> tuple[str, ...]:
    """Return the keys that a symbol may be declared under, the most specific first."""
    found = []
    for styled in (True, False):
        style = name.style if styled or name.style == "cal" else ""
        for sup in (True, False):
            labels = [s.text for s in name.sup if _is_label(name, s)] if sup else []
            found.append(_key(name, style, labels))
    return tuple(dict.fromkeys(found))


def key_of(name: Name) -> str:
    r"""Return the key of a symbol without its indices and its style.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> key_of(parse_formula(r"\mathbf{W}_{V}^{l,h}")[0].terms[0])
    'W_V'
    """
    return keys(name)[-1]


def block_key(key: str) -> str:
    """Return the key of the blocks `x_i` of a stacked vector `x`."""
    return f"{key}_•"


def _is_block(name: Name) -> bool:
    """Return whether a symbol has one index: `x_i`, `x_{j'}`, `x_{j-1}`."""
    kinds = [slot.kind for slot in name.sub]
    return kinds in (["index"], ["expression"]) and not name.select


def _is_other(name: Name, known: Declared) -> bool:
    """Return whether the declared symbol is a scalar with the letter of a vector: `b` and `𝐛_d`."""
    if known.kind != "scalar" or known.full == full_key(name) or not known.trusted:
        return False
    usual = default(name)
    return bool(name.sub) and usual is not None and usual.kind == "vector"


@lru_cache(maxsize=1 << 12)
def at_indices(known: Declared, name: Name) -> Declared:
    """Return what a symbol stands for at its indices, where its sizes depend on these."""
    if known.name is None or not known.rows or name == known.name:
        return known
    sizes = sizes_at(known.name, name, (known.rows, known.cols))
    if sizes == (known.rows, known.cols):
        return known
    rows, cols = sizes or ((), ())
    return replace(known, rows=rows, cols=cols, name=replace(name, span=(0, 0)))


def as_declared(known: Declared, name: Name) -> Declared:
    """Return what a declaration says of a symbol, with the symbol as it is written there."""
    return replace(known, full=full_key(name), name=replace(name, span=(0, 0)))


def full_key(name: Name) -> str:
    """Return the key of a symbol with the indices below it: `b_e`, `W_1`."""
    sub = ",".join(slot.text for slot in name.sub)
    return _marked(letters(name.base, ""), name.marks) + (f"_{sub}" if sub else "")


def split_by_index(declared: list[tuple[str, Declared]]) -> set[str]:
    """Give symbols that only an index distinguishes separate keys, and return their old keys.

    So it is where the same letter is declared with two indices and two shapes, but once each.
    """
    shapes: dict[str, dict[str, set[object]]] = {}
    for key, known in declared:
        if known.full and known.kind in ("matrix", "vector", "scalar"):
            of_key = shapes.setdefault(key, {})
            of_key.setdefault(known.full, set()).add((known.kind, known.rows, known.cols))
    split = {
        key
        for key, of_key in shapes.items()
        if all(len(each) == 1 for each in of_key.values())
        and len(set().union(*of_key.values())) > 1
    }
    declared[:] = [
        (known.full if key in split and known.full else key, known) for key, known in declared
    ]
    return split


def _key(name: Name, style: str, labels: list[str]) -> str:
    base = _marked(letters(name.base, style), name.marks)
    sub = [slot.text for slot in name.sub if slot.kind == "label" or _is_name_part(name, slot)]
    text = unicodedata.normalize("NFC", base)
    text += "_" + ",".join(sub) if sub else ""
    text += f"[{name.select}]" if name.select else ""
    return text + (f"^{','.join(labels)}" if labels else "")


def _is_label(name: Name, slot: Slot) -> bool:
    """Return whether what stands above is part of the name: `W^q`, `W^V`, but not `x^l`."""
    return slot.kind == "label" or (name.base == "W" and slot.text in OF_HEADS)


def _marked(base: str, marks: Iterable[str]) -> str:
    """Return a letter with its accents and primes, and with Δ before it where it is a change."""
    for mark in marks:
        base = (
            f"Δ{base}" if mark == "Delta" else base + ("'" if mark == "'" else MARKS.get(mark, ""))
        )
    return base


def _is_name_part(name: Name, slot: Slot) -> bool:
    """Return whether a small letter below is part of the name: `d_h`, `d_k`, but not `x_i`."""
    return (name.base == "d" and slot.kind == "index") or (
        name.base == "W" and slot.kind == "index" and len(name.sub) == 1
    )


@lru_cache(maxsize=1 << 12)
def letters(base: str, style: str) -> str:
    r"""Return the letter of a symbol in Unicode, bold and script ones as such.

    >>> letters("x", "bf"), letters("V", "cal"), letters(r"\alpha", "")
    ('𝐱', '𝒱', 'alpha')
    """
    if base.startswith("\\"):
        return f"{base[1:]}_{style}" if style else base[1:]
    if len(base) == 1 and base.isascii() and base.isalpha():
        name = f"{'CAPITAL' if base.isupper() else 'SMALL'} {base.upper()}"
        try:
            if style == "bf":
                return unicodedata.lookup(f"MATHEMATICAL BOLD {name}")
            if style == "cal":
                return unicodedata.lookup(f"MATHEMATICAL BOLD SCRIPT {name}".replace("BOLD ", ""))
        except KeyError:
            return f"{base}_{style}"
    return f"{base}_{style}" if style else base


def text_of(name: Name, without: Iterable[tuple[str, int]] = ()) -> str:
    """Return a symbol as one word, with the slots at some places left open."""
    return _text_of(name, frozenset(without))


@lru_cache(maxsize=1 << 14)
def _text_of(name: Name, open_at: frozenset[tuple[str, int]]) -> str:
    base = _marked(letters(name.base, name.style), name.marks)
    text = unicodedata.normalize("NFC", base)
    for where, sign, slots in (("sub", "_", name.sub), ("sup", "^", name.sup)):
        parts = ["•" if (where, k) in open_at else slot.text for k, slot in enumerate(slots)]
        if parts and not all(part == "•" for part in parts):
            inside = ",".join(parts)
            plain = inside.replace("_", "").isalnum()
            text += sign + (inside if plain else f"{{{inside}}}")
    return text + (f"⟨{name.select}⟩" if name.select else "")


@lru_cache(maxsize=1 << 14)
def default(name: Name) -> Declared | None:
    """Return what an undeclared symbol stands for by its typography; None where that is open."""
    base = name.base
    indices = [slot for slot in name.sub if slot.kind in ("index", "number", "expression")]
    if base.startswith("\\"):
        capital = base[1].isupper()
        if not capital and name.style == "bf" and len(indices) < 2:
            return Declared("vector", trusted=False)
        return Declared("matrix" if capital else "scalar", trusted=False)
    if name.style == "cal" or len(base) > 1:
        return None
    if base.isupper():
        weight = base == "W" or name.style == "bf"
        return Declared("matrix", trusted=weight)
    if len(indices) >= 2:
        return Declared("scalar", trusted=False)
    if name.style == "bf":
        return Declared("vector", trusted=True)
    if base in VECTORS or (base in "anp" and name.style):
        return Declared("vector", trusted=False)
    return Declared("scalar", trusted=False)


def size_of(node: Node) -> Size | None:
    r"""Return the size that a formula names, `d_h`, `4d`, `n \cdot d`, or None if it is none."""
    from otimes.algebra.notation.tree import Norm, Power, Product

    node = bare(node)
    if isinstance(node, Power) and isinstance(node.exponent, Number):
        base, power = size_of(node.base), node.exponent.text
        whole = base is not None and len(base) == 1 and power.isdigit() and int(power) <= 64
        if whole and base is not None and isinstance(base[0], int) and int(power) > 0:
            return (base[0] ** int(power),)
    if isinstance(node, Number):
        return (int(node.text),) if node.text.isdigit() and int(node.text) > 0 else None
    if isinstance(node, Norm) and node.mark == "|":
        return size_of(node.argument)
    if isinstance(node, Name):
        return (text_of(node),)
    if isinstance(node, Product) and "/" not in node.marks:
        parts = [size_of(factor) for factor in node.factors]
        return None if None in parts else tuple(a for part in parts for a in part or ())
    return None


def formula_size(node: Node) -> Size | None:
    """Return a size that is a polynomial in sizes, `n + 1`, `2*d`, or None if it is none.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> formula_size(parse_formula("d + 1")[0].terms[0])
    (Formula(expression=d + 1),)
    """
    found = arithmetic(node, lambda name: size_symbol(text_of(name)))
    return None if found is None else formula(found)


def declarations(shapes: str) -> Symbols:
    """Return the symbols that a text declares: `"A: n n, W_V[H]: d k, a: scalar, n: size"`.

    A name is followed by a colon and its numbers of rows and columns, or by what it is: scalar,
    size, function, or what is assumed of a number, such as positive. `W_V[H]` is a family of H
    matrices. Raises OtimesError for what is not of this form.

    >>> declarations("A: n n, a: scalar").known["A"].rows
    ('n',)
    >>> declarations("W_V[L, H]: d k").known["W_V"].counts
    (('L',), ('H',))
    """
    symbols = Symbols()
    for part in re.split(r"[,;\n](?![^\[]*\])", shapes):
        if not part.strip():
            continue
        name, colon, said = part.partition(":")
        words = said.replace("×", " ").replace(r"\times", " ").split()
        usage = f"{part.strip()!r} should be like 'A: n d' (rows, columns) or 'a: scalar'"
        if not colon or not words:
            raise OtimesError(usage)
        run, bracket, counts = name.strip().partition("[")
        symbol = _symbol(run, usage)
        known = replace(_declared(words, usage), full=full_key(symbol))
        if bracket:
            each = counts.rstrip("] ").split(",")
            known = replace(known, counts=tuple(_size_word(word, usage) for word in each))
        symbols.known[known.full if keys(symbol)[0] in symbols.known else keys(symbol)[0]] = known
        if words[0] == "function":
            symbols.functions.add(symbol.base)
    return symbols


def _symbol(run: str, usage: str) -> Name:
    from otimes.algebra.notation.parser import parse_formula

    base = re.match(r"[^\W_]*", run).group()  # type: ignore[union-attr]
    words = [base] if base[:1].isalpha() else []
    try:
        (statement,) = parse_formula(run, words=words, plain="\\" not in run)
    except (NotationError, ValueError):
        raise OtimesError(f"{usage}; {run!r} is no symbol") from None
    symbol = bare(statement.terms[0])
    if not isinstance(symbol, Name) or symbol.base.isdigit():
        raise OtimesError(usage)
    return symbol


def _declared(words: list[str], usage: str) -> Declared:
    if words and set(words) <= ASSUMED:
        return Declared("scalar", assumed=tuple(words))
    if len(words) > 2:
        raise OtimesError(usage)
    if len(words) == 1:
        kind = words[0]
        if kind == "scalar":
            return Declared("scalar")
        if kind == "size":
            return Declared("size")
        if kind == "function":
            return Declared("function")
        raise OtimesError(usage)
    rows, cols = (_size_word(word, usage) for word in words)
    return Declared("matrix", rows, cols)


def _size_word(word: str, usage: str) -> Size:
    from otimes.algebra.notation.parser import parse_formula

    try:
        (statement,) = parse_formula(word, plain="\\" not in word)
    except (NotationError, ValueError):
        raise OtimesError(usage) from None
    size = None if "*" in word else size_of(statement.terms[0])
    if size is None:
        size = formula_size(statement.terms[0])
    if size is None:
        raise OtimesError(usage)
    return size
