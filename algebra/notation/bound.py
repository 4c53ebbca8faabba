"""Which slots of which symbols a sum binds, and what the sums of a formula run over.

`x_j` under a sum over j is a member of a family; then `x_i` in the same formula is another member.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from otimes.algebra.notation.affine import affine, ends_of, first_values
from otimes.algebra.notation.partial import end_of, ends_apart, letters_in
from otimes.algebra.notation.symbols import key_of
from otimes.algebra.notation.tree import Indexed, Name, Node, Slot, children

Place = tuple[str, int]


@dataclass(slots=True)
class Bindings:
    """The places of bound indices by key of symbol, and the explicit ranges of each index."""

    places: dict[str, set[Place]] = field(default_factory=dict)
    ranges: dict[str, set[str]] = field(default_factory=dict)
    letters: set[str] = field(default_factory=set)
    ends: set[str] = field(default_factory=set)  # indices that a sum may run up to
    sizes: frozenset[str] = frozenset()
    runs_to: frozenset[str] = frozenset()  # letters that nothing binds, up to which sums run
    plain: set[Name] = field(default_factory=set)  # symbols without superscripts
    above: set[str] = field(default_factory=set)  # the keys of symbols with an index above
    from_zero: bool = False  # whether indices count from 0

    def end_of(self, e: Indexed, bound: Collection[str]) -> tuple[str, int] | None:
        """Return the index that a sum within others runs up to, and how many values more."""
        return end_of(e, self.ends | {*bound}, self.sizes, bound, self.from_zero)


def bindings_of(
    terms: Iterable[Node], sizes: Collection[str] = (), general: bool = False
) -> Bindings:
    """Return which slots are bound somewhere in terms that belong together.

    `general`: some of them are hypotheses, whose free indices stand for all their values. Then what
    has the free index of a member of a family is one, too: `V^h` of `M^h = V^h O^h`.
    """
    terms = [*terms]
    ends = (letters_in(terms) | ends_apart(terms)) - {*sizes}
    found = Bindings(ends=ends, sizes=frozenset(sizes), from_zero=first_values(terms) == {"0"})
    for term in terms:
        _collect(term, frozenset(), found)
    found.runs_to = frozenset(ends_of(terms) - found.letters - found.sizes)
    if general:
        _close(terms, found)
    return found


def _close(terms: Iterable[Node], found: Bindings) -> None:
    """Add the places of the free indices that members of families have."""
    free = [each for term in terms for each in _free(term, frozenset())]
    letters, before = set[str](), -1
    while len(letters) != before:
        before = len(letters)
        letters |= {at for key, place, at in free if place in found.places.get(key, ())}
        for key, place, at in free:
            if at in letters:
                found.places.setdefault(key, set()).add(place)


def _free(node: Node, bound: frozenset[str]) -> Iterator[tuple[str, Place, str]]:
    """Yield the free indices of the symbols of a term, with their places."""
    if isinstance(node, Indexed):
        bound |= {*node.indices}
    if isinstance(node, Name):
        for place, slot in slots_at(node):
            if slot.kind == "index" and slot.text not in bound:
                yield key_of(node), place, slot.text
    for child in children(node):
        yield from _free(child, bound)


def _collect(node: Node, bound: frozenset[str], found: Bindings) -> None:
    if isinstance(node, Indexed):
        found.letters |= {*node.indices}
        if node.kind == "from" and found.end_of(node, bound) is None:
            from otimes.algebra.notation.tree import latex

            upper = "" if node.upper is None else latex(node.upper)
            for index in node.indices:
                found.ranges.setdefault(index, set()).add(f"{node.lower}:{upper}")
        _collect(node.body, bound | {*node.indices}, found)
        return
    if isinstance(node, Name):
        if not node.sup:
            found.plain.add(node)
        elif affine(node.sup[0]) is not None:
            found.above.add(key_of(node))
        for place, slot in slots_at(node):
            if slot.kind == "index" and slot.text in bound:
                found.places.setdefault(key_of(node), set()).add(place)
    for child in children(node):
        _collect(child, bound, found)


def slots_at(name: Name) -> list[tuple[Place, Slot]]:
    """Return the slots of a symbol with their places."""
    below = [(("sub", k), slot) for k, slot in enumerate(name.sub)]
    return below + [(("sup", k), slot) for k, slot in enumerate(name.sup)]
