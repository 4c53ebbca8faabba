"""Which theorem uses which, as recorded: the edges of the map, and the links of a page.

An entry uses another if the proof used it as a lemma, if a function rests on it, if a definition
obeys it, or if a step of its derivation is a rule of the same name; or if its text names it, unless
the other uses it: a text also names what follows from it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from otimes.proofs.claims import Definition, Lemma, Method
from otimes.proofs.evidence import TheoremReport

MOST_ALIKE = 5
NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+")


@dataclass(frozen=True, slots=True)
class Relations:
    """The names of entries that an entry uses, that use it, and whose proofs are alike."""

    uses: tuple[str, ...] = ()
    used_by: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()


@dataclass(frozen=True)
class Graph:
    """All uses by name, and the rules in the derivation of each entry."""

    uses: Mapping[str, tuple[str, ...]]
    rules: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def of(self, name: str) -> Relations:
        """Return the relations of one entry."""
        used_by = self._users.get(name, ())
        near = {name, *self.uses.get(name, ()), *used_by}
        return Relations(self.uses.get(name, ()), used_by, self._alike(name, near))

    def _alike(self, name: str, near: set[str]) -> tuple[str, ...]:
        """Return the entries that share the most rules; a rule that many use counts less."""
        scores: dict[str, float] = {}
        for rule in dict.fromkeys(self.rules.get(name, ())):
            for other in self._by_rule[rule]:
                scores[other] = scores.get(other, 0.0) + 1 / self.times[rule]
        alike = [each for each, score in scores.items() if each not in near and score >= 0.05]
        return tuple(sorted(alike, key=lambda each: (-scores[each], each))[:MOST_ALIKE])

    @cached_property
    def _users(self) -> dict[str, tuple[str, ...]]:
        """The entries that use each one."""
        found: dict[str, tuple[str, ...]] = {}
        for name, all_used in self.uses.items():
            for used in all_used:
                found[used] = (*found.get(used, ()), name)
        return found

    @cached_property
    def _by_rule(self) -> dict[str, list[str]]:
        """The entries whose derivations have each rule."""
        found: dict[str, list[str]] = {}
        for name, rules in self.rules.items():
            for rule in dict.fromkeys(rules):
                found.setdefault(rule, []).append(name)
        return found

    @cached_property
    def times(self) -> Counter[str]:
        """In how many derivations each rule occurs."""
        return Counter(rule for theirs in self.rules.values() for rule in theirs)


def graph(reports: Iterable[TheoremReport], rules: Mapping[str, Sequence[str]]) -> Graph:
    """Return the graph of the entries of a report; entries outside the report are left out."""
    listed = list(reports)
    names = {each.theorem.name for each in listed}
    rests = {
        each.theorem.name: [*_used(each), *rules.get(each.theorem.name, ())] for each in listed
    }
    uses = {}
    for each in listed:
        name = each.theorem.name
        named = NAME.findall(each.theorem.prose) if each.proof.status != "error" else []
        found = [*rests[name], *(n for n in named if name not in rests.get(n, ()))]
        uses[name] = tuple(dict.fromkeys(n for n in found if n in names and n != name))
    return Graph(uses, rules)


def _used(report: TheoremReport) -> list[str]:
    """Return the names that the evidence of an entry mentions; not all are of entries."""
    found = list(report.proof.used)
    if report.proof.status == "error":
        return found
    claim = report.theorem.claim()
    if isinstance(claim, Method):
        found += claim.rests_on
    elif isinstance(claim, Definition):
        found += claim.obeys
    found += [each.name for each in getattr(claim, "given", ()) if isinstance(each, Lemma)]
    return found
