r"""Definitions that may be what is wrong where a later equation is refuted.

A text may define `\Pi = U U^\top` and conclude `\Pi^2 = \Pi`, which is false: the slip may be in
the definition. An equation is called wrong where it stands; with it are named the definitions that
it uses and of which one edit makes it true. A definition by which another equation is proved is
none of them.

The fewest edits decide what is wrong. Where one edit of a definition makes every equation true that
uses it, and these would need several edits themselves, the definition is called wrong, too. So is
one that a single equation says a second time: one of the two is wrong.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from otimes.algebra.notation.symbols import text_of
from otimes.algebra.notation.tree import Name, Node, Statement, bare, latex
from otimes.proofs.documents.containers.source import Document
from otimes.proofs.documents.prose.items import Item
from otimes.proofs.documents.proving.attempts import symbols_in
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.reporting.report import Equation
from otimes.proofs.documents.symbols.context import Context, Definition
from otimes.proofs.documents.verdicts.contradictions import is_false, mends_itself
from otimes.proofs.documents.verdicts.suggestions import folded
from otimes.proofs.documents.verdicts.suspects import Key, Use, holds, suspects, use_of
from otimes.proofs.documents.verdicts.wrong_declarations import Judged

USED = re.compile(r"\bas on line (\d+)")
MOST_EDITED = 2  # definitions, each of which may be what is wrong
MOST_USES = 12  # proved equations that are decided again with an edit
OPEN = ("undecided", "needs-hypothesis")
EQUALS = frozenset(("=", r"\equiv"))


class Mistake(NamedTuple):
    """An equation that is called wrong, and the definitions that may be so instead.

    `used` are those that it uses, `mended` their right sides with an edit that makes it true, by
    their LaTeX, and `against` the lines of those that say otherwise. `statement` tells the links of
    one chain from others; `edits` is how many edits the chain needs if the definitions are right.
    `closed`: nothing is free in it but sizes, so that it is about one definition alone. `open_`: it
    is not called wrong, but it is false with its definitions, whatever its other symbols are.
    """

    equation: Equation
    use: Use
    used: frozenset[Key]
    mended: dict[Key, dict[str, Node]]
    against: tuple[int, ...]
    statement: int
    edits: int
    closed: bool
    open_: bool = False


@dataclass(slots=True)
class WrongDefinitions:
    """The definitions that the equations of a document use, and which may be wrong.

    `defined` has the equation that is each definition, `proved` the equations that are proved by
    some, `wrong` those that are called wrong; `judged` has all equations.
    """

    document: Document
    context: Context
    defined: dict[Key, Equation] = field(default_factory=dict)
    proved: list[Use] = field(default_factory=list)
    wrong: list[Mistake] = field(default_factory=list)
    tried: dict[tuple[Key, str], bool] = field(default_factory=dict)
    judged: list[Judged] = field(default_factory=list)
    alone: dict[int, bool] = field(default_factory=dict)

    def note(
        self,
        item: Item,
        statement: Statement,
        links: Mapping[int, tuple[Equation, Found]],
        slips: Collection[str] = (),
    ) -> None:
        """Note the definitions of a chain, those that prove its links, and what is wrong in it.

        `slips` are the kinds of edits of a definition which no words excuse where a link is open.
        """
        for k, (equation, found) in links.items():
            sides = statement.terms[k], statement.terms[k + 1]
            use = Use(sides, {}, item.line)
            if found.verdict == "definition":
                for side in sides:
                    self.defined.setdefault(Key(item.line, latex(bare(side))), equation)
            elif found.verdict == "proved":
                if USED.search(found.why):
                    use = use_of(self.context, *sides, item.line)
                    self.proved.append(use)
                if all(links[j][1].verdict == "proved" for j in range(1, k) if j in links):
                    known = _from_definition(use, statement, links, 0, k)
                    self.proved += [known] if known is not use else []
            elif found.is_wrong and statement.relations[k] in EQUALS:
                use = use_of(self.context, *sides, item.line)
                beside = _edited(found, sides)
                other, its = links.get(k + beside, (equation, found)) if beside else (None, None)
                edits = 2 if its is not None and _is_supported(its) else 1
                start = item.formula.offset(statement.span[0])
                whole = _from_definition(use, statement, links, k - 1, k)
                mended = suspects(self.context, whole)
                closed = self._is_closed(use)
                used, at = frozenset(whole.keys), found.against
                self.wrong.append(Mistake(equation, use, used, mended, at, start, edits, closed))
                if other is not None and beside < 0 and other.verdict == "definition":
                    left = latex(bare(statement.terms[k - 1]))
                    mended_side = found.suggestion.partition(" = ")[0]
                    self._call_wrong(other, f"{left} = {mended_side}", [equation])
            elif statement.relations[k] in EQUALS and slips and _is_open(found):
                use = use_of(self.context, *sides, item.line)
                start = item.formula.offset(statement.span[0])
                self._note_open(equation, use, start, slips)
            if statement.relations[k] in EQUALS:
                self.judged.append(Judged(equation, use))

    def _note_open(
        self, equation: Equation, use: Use, statement: int, slips: Collection[str]
    ) -> None:
        """Note an equation that is open, if it is false with its definitions, and one is a slip."""
        scope = self.context.in_scope
        if not use.definitions or isinstance(bare(use.sides[0]), Name):
            return  # it may be a second definition
        if not all(scope(each.line, use.line) for each in use.definitions.values()):
            return
        if not is_false(self.context, use):
            return
        mended = suspects(self.context, use, slips)
        if mended:
            used = frozenset(use.keys)
            self.wrong.append(Mistake(equation, use, used, mended, (), statement, 1, False, True))

    def name(self) -> None:
        """Name the definitions that may be wrong, with the equations that are called so."""
        called = [each for each in self.wrong if not each.open_]
        firm = {key.line for use in self.proved for key in use.keys}
        uses = Counter(line for each in called for line in {key.line for key in each.used})
        for mistake in called:
            edited = [key for key in mistake.mended if self._edits(key, mistake)]
            rows = {key.line for key in edited} | ({*mistake.against} - firm)
            shared = {key.line for key in mistake.used if uses[key.line] > 1} - firm
            if not rows and len(shared) == 1:
                rows = shared
            if rows:
                self._relate(mistake.equation, sorted(rows))
        for key in sorted({key for each in self.wrong for key in each.mended}):
            using = [each for each in called if key in each.used]
            edits = [self._edits(key, each) for each in using]
            using += [each for each in self.wrong if each.open_ and key in each.mended]
            edits += [self._edits(key, each) for each in using[len(edits) :]]
            common = [text for text in edits[0] if all(text in other for other in edits)]
            needed = {each.statement: 0 for each in using}
            for each in using:
                needed[each.statement] = max(each.edits, needed[each.statement])
            if not common or key not in self.defined:
                continue
            several = sum(needed.values()) > 1
            if several or self._is_contradicted(using):
                said = f"{key.text} = {common[0]}"
                false = [each.equation for each in using]
                self._call_wrong(self.defined[key], said, false, several)

        self._call_closed()

    def _is_contradicted(self, using: Sequence[Mistake]) -> bool:
        """Return whether equations contradict a definition, of which one must be wrong.

        No edit of their own mends them: an equation that one edit mends is rather wrong itself.
        """
        for each in using:
            edited = {k for k in each.mended if self._edits(k, each)}
            if len(edited) > MOST_EDITED or mends_itself(self.context, each.use):
                return False
        return bool(using)

    def _call_closed(self) -> None:
        """Call a definition wrong that more equations about it alone contradict than follow."""
        for line in sorted({key.line for each in self.wrong if each.closed for key in each.used}):
            key = next((key for key in self.defined if key.line == line), None)
            false = [e for e in self.wrong if e.closed and {k.line for k in e.used} == {line}]
            true = [use for use in self.proved if line in {k.line for k in use.keys}]
            many = len({each.statement for each in false})
            definition = None if key is None else self.defined[key]
            if definition is None or definition.verdict != "definition":
                continue
            if many > max(1, len(true)):
                self._call_wrong(definition, "", [each.equation for each in false])

    def _is_closed(self, use: Use) -> bool:
        """Return whether an equation is about one definition, and leaves nothing open but sizes."""
        sizes = self.context.symbols_at(use.line).sizes()
        sides = [self.context.unfolded(side, {}, (), use.definitions) for side in use.sides]
        free = [e for side in sides for e in symbols_in(side) if text_of(e) not in sizes]
        return not free and len({key.line for key in use.keys}) == 1

    def _edits(self, key: Key, mistake: Mistake) -> list[str]:
        """Return the edits of a definition that mend an equation, and leave true what is proved."""
        return [
            text
            for text, edited in mistake.mended.get(key, {}).items()
            if self._leaves_true(key, text, edited)
        ]

    def _leaves_true(self, key: Key, text: str, edited: Node) -> bool:
        """Return whether what is proved by a definition is so, too, with another right side."""
        if (key, text) not in self.tried:
            uses = [use for use in self.proved if key in use.keys]
            self.tried[key, text] = len(uses) <= MOST_USES and all(
                use.is_true_with(self.context, key, edited) or not self._is_proved_alone(use)
                for use in uses
            )
        return self.tried[key, text]

    def _is_proved_alone(self, use: Use) -> bool:
        """Return whether an equation is proved by its definitions alone."""
        if id(use) not in self.alone:
            sides = [self.context.unfolded(side, {}, (), use.definitions) for side in use.sides]
            self.alone[id(use)] = holds(self.context, sides[0], sides[1], use.line)
        return self.alone[id(use)]

    def _relate(self, equation: Equation, rows: Sequence[int]) -> None:
        offsets = [self.document.lines[row - 1] for row in rows]
        equation.related = tuple(
            (self.document.cell(at), self.document.position(at)[0]) for at in offsets
        )
        lines = self.document.named_lines(" or ".join(f"line {row}" for row in rows))
        equation.why = f"{equation.why}; or the definition on {lines} is wrong"

    def _call_wrong(
        self, definition: Equation, edited: str, false: Sequence[Equation], several: bool = True
    ) -> None:
        """Call a definition wrong, an edit of which makes equations true.

        `several`: these would need several edits themselves; else one or the other is wrong.
        """
        lines = [*dict.fromkeys(f"line {self.document.row(e.span[0])}" for e in false)]
        refuted = [each for each in false if each.verdict == "refuted"]
        misfits = all(each.verdict == "shape" for each in false)
        definition.verdict = "shape" if misfits else "refuted"
        definition.counterexample = refuted[0].counterexample if refuted else None
        definition.suggestion = edited
        definition.related = tuple((each.cell, each.line) for each in false)
        said = " and ".join([", ".join(lines[:-1]), lines[-1]] if lines[1:] else lines)
        contradict, them = ("contradict", "them") if lines[1:] else ("contradicts", "it")
        mended = f"; one edit of this definition makes {them} true" if edited else ""
        either = "" if several else ": one or the other is wrong"
        definition.why = self.document.named_lines(f"{said} {contradict} this{either}{mended}")


def _from_definition(
    use: Use,
    statement: Statement,
    links: Mapping[int, tuple[Equation, Found]],
    first: int,
    k: int,
) -> Use:
    """Return a link as that of the symbol which an earlier one defines: `S = a = b`, `S = b`.

    The definition may be what is wrong, and not the link.
    """
    before = links.get(first)
    name = bare(statement.terms[first]) if 0 <= first < k else None
    if before is None or before[1].verdict != "definition" or not isinstance(name, Name):
        return use
    known = Definition(name, statement.terms[first + 1], use.line)
    return Use((name, use.sides[1]), {**use.definitions, latex(name): known}, use.line)


def _is_supported(found: Found) -> bool:
    """Return whether a link is true, perhaps given what the text says without declaring it."""
    return found.verdict == "proved" or found.why.startswith("true given")


def _is_open(found: Found) -> bool:
    """Return whether nothing is known to make an equation true, in any reading of it."""
    return found.verdict in OPEN and not found.why.startswith("true if")


def _edited(found: Found, sides: Sequence[Node]) -> int:
    """Return -1 or 1 where the edit that makes an equation true is of its left or right side."""
    if not found.suggestion:
        return 0
    left, right = (latex(folded(side)) for side in sides)
    if found.suggestion.startswith(f"{left} = "):
        return 1
    return -1 if found.suggestion.endswith(f" = {right}") else 0
