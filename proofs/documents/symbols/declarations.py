"""Which declaration of a symbol counts on a line: the last one before it, or else the next."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace

from otimes.algebra.notation.symbols import Declared

BELOW = 8  # lines below an equation at which a declaration still counts for it
CLOSE = 4  # and one for a single paragraph
LONG = 20  # lines of a paragraph with its displays, in which a declaration for it counts
MOST = 24  # declarations of one symbol among which the side of a vector is sought

Key = tuple[str, int]  # a symbol, and the line on which it is declared


@dataclass(slots=True)
class OfSymbol:
    """The declarations of one symbol in order of their lines: the general and the local ones."""

    general: list[Declared] = field(default_factory=list)
    local: list[Declared] = field(default_factory=list)


@dataclass(slots=True)
class Declarations:
    """The declarations of a document, by symbol, so that a line's are found in few steps."""

    by_key: dict[str, OfSymbol] = field(default_factory=dict)
    count: int = 0

    def update(self, declared: list[tuple[str, Declared]], local: Collection[Key]) -> None:
        """Take in the declarations that were added since the last update."""
        if len(declared) < self.count:
            self.by_key, self.count = {}, 0
        for key, known in declared[self.count :]:
            of_symbol = self.by_key.setdefault(key, OfSymbol())
            into = of_symbol.local if (key, known.line) in local else of_symbol.general
            into.insert(bisect_right(into, known.line, key=_line), known)
        self.count = len(declared)

    def of(self, key: str) -> list[Declared]:
        """Return all declarations of a symbol."""
        found = self.by_key.get(key)
        return [*found.general, *found.local] if found else []

    def at(
        self,
        line: int,
        without: Collection[Key],
        wrong: Collection[Key],
        together: Callable[[int, int], bool],
    ) -> dict[str, Declared]:
        """Return the declaration of each symbol that counts on a line.

        `without` are left out; those that are `wrong` are, too, and those before them.
        """
        found: dict[str, Declared] = {}
        bad = bool(without or wrong)
        for key, of_symbol in self.by_key.items():
            if len(of_symbol.general) == 1 and not (bad or of_symbol.local):
                if of_symbol.general[0].line <= line + BELOW:
                    found[key] = of_symbol.general[0]
                continue
            known = self._of(key, of_symbol, line, without, wrong, together)
            if known is not None:
                found[key] = known
        return found

    def _of(
        self,
        key: str,
        of_symbol: OfSymbol,
        line: int,
        without: Collection[Key],
        wrong: Collection[Key],
        together: Callable[[int, int], bool],
    ) -> Declared | None:
        best: Declared | None = None
        chosen: list[Declared] = []
        for known in _before(of_symbol, line, together):
            if (key, known.line) in wrong:
                break  # what a text said before, it has said otherwise since
            if (key, known.line) in without:
                continue
            chosen.append(known)
            if known.kind != "vector" or known.side or len(chosen) > MOST:
                break
        for known in reversed(chosen):
            best = _with_side(known, best, line)
        for known in _after(of_symbol, line):
            near = known.line <= line + CLOSE and together(known.line, line)
            left_out = (key, known.line) in without or (key, known.line) in wrong
            if left_out or not (near or _is_general(of_symbol, known)):
                continue
            if best is None or (best.line < line and together(known.line, line)):
                best = _with_side(known, best, line)
        return best


def _line(known: Declared) -> int:
    return known.line


def _is_general(of_symbol: OfSymbol, known: Declared) -> bool:
    """Return whether a declaration is a general one of a symbol."""
    start = bisect_left(of_symbol.general, known.line, key=_line)
    end = bisect_right(of_symbol.general, known.line, key=_line)
    return known in of_symbol.general[start:end]


def _before(
    of_symbol: OfSymbol, line: int, together: Callable[[int, int], bool]
) -> Iterator[Declared]:
    """Yield the declarations down to a line that may count for it, the last first."""
    local, general = of_symbol.local, of_symbol.general
    far = bisect_right(local, line - LONG - 1, key=_line)
    near = [
        known
        for known in local[far : bisect_right(local, line, key=_line)]
        if line - known.line <= CLOSE or together(known.line, line)
    ]
    at = bisect_right(general, line, key=_line)
    while near or at:
        if near and (not at or near[-1].line > general[at - 1].line):
            yield near.pop()
        else:
            at -= 1
            yield general[at]


def _after(of_symbol: OfSymbol, line: int) -> Iterable[Declared]:
    """Return the declarations on the lines below a line, in order."""
    found: list[Declared] = []
    for each in (of_symbol.local, of_symbol.general):
        found += each[
            bisect_right(each, line, key=_line) : bisect_right(each, line + BELOW, key=_line)
        ]
    return sorted(found, key=_line)


def _with_side(known: Declared, before: Declared | None, line: int) -> Declared:
    """Return a declaration of a vector, with the side that one before it declares."""
    if before is None or not before.side or known.kind != "vector":
        return known
    later = known.line > line and bool(known.side)
    return known if known.side and not later else replace(known, side=before.side)


# -- declarations in formulas ----------------------------------------------------------------------
