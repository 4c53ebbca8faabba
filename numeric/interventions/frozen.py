"""A pass in which some activations are held at their values, and what that does and does not fix.

An intervention changes what depends on it. To hold an activation is to replace it by its value on
the same prompt, so that what is read through it alone does not change either. Which hook points are
then unchanged follows from what each reads: a hook point keeps its value if no chain of reads leads
to it from an intervention, except through a held one. That is a proof for every model of this
configuration, and every prompt; the pass is the measurement beside it.

A frozen attention pattern is the usual case: with it held the patterns are constant, but the scales
of the norms and the gates of the MLPs are not, and the model is not linear until they are held,
too. Of a hook point that is held in part, the rest may change, and so may what reads it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError
from otimes.numeric.block import inputs_of, place_names
from otimes.numeric.config import listed
from otimes.numeric.forward import Places
from otimes.numeric.interventions.hooks import Hook, Replacement, checked_hook
from otimes.numeric.interventions.passes import Pass, resolved
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.model import Model
from otimes.numeric.prompt import read_position, read_prompt


@dataclass(frozen=True, eq=False, repr=False)
class Held:
    """A pass with interventions and held activations, beside the unchanged pass.

    `places` are its activations, `before` those of the unchanged pass. `hold` are the hook points
    that are held, `parts` those of which some heads or positions are.
    """

    model: Model
    places: Places
    before: Places
    interventions: tuple[Hook, ...]
    hold: tuple[str, ...]
    parts: tuple[Hook, ...] = ()

    @cached_property
    def causes(self) -> dict[str, str]:
        """For each hook point that may change, what it changes by: an input, or itself."""
        found: dict[str, str] = {}
        asked = {each.name for each in self.interventions}
        for name in place_names(self.model.config):
            if name in asked:
                found[name] = name
            elif name not in self.hold:
                moved = [read for read in self._reads(name) if read in found]
                if moved:
                    found[name] = moved[0]
        return found

    def _reads(self, name: str) -> tuple[str, ...]:
        reads = inputs_of(self.model.config, name)
        kind, _, layer = name.partition(".")
        return (*reads, f"head_out.{layer}") if kind == "attn_out" else reads

    @cached_property
    def proved(self) -> tuple[str, ...]:
        """The hook points that cannot change, on any prompt: nothing that they read does."""
        return tuple(each for each in place_names(self.model.config) if each not in self.causes)

    @cached_property
    def changes(self) -> dict[str, float]:
        """The largest change of an entry of each hook point, measured."""
        return {name: self._change(Hook(name)) for name in place_names(self.model.config)}

    @property
    def first_change(self) -> str | None:
        """The first hook point that changed and that no intervention names."""
        asked = {each.name for each in self.interventions}
        later = (name for name, size in self.changes.items() if size and name not in asked)
        return next(later, None)

    def why(self, name: str) -> tuple[str, ...]:
        """Return the chain of reads from an intervention to a hook point; empty if there is none.

        Raises: OtimesError for a hook point that the model does not have.
        """
        checked_hook(self.model, name)
        if name not in self.causes:
            return ()
        chain = [name]
        while self.causes[chain[-1]] != chain[-1]:
            chain.append(self.causes[chain[-1]])
        return tuple(reversed(chain))

    def check(self, names: Iterable[str | Hook] | str | Hook) -> None:
        """Raise an OtimesError naming the first of some hook points that is not held, and why.

        A kind without a layer stands for all layers: "pattern". `hook(name, heads, positions)` is
        a part of a hook point.
        """
        for asked in _hooks(self.model, names, "names"):
            if self._may_change(asked) or self._change(asked):
                raise OtimesError(self._why_not(asked))

    def _may_change(self, asked: Hook) -> bool:
        n_pos = len(self.before["embed"])
        return asked.name in self.causes and not any(
            _covers(part, asked, n_pos) for part in self.parts
        )

    def _change(self, asked: Hook) -> float:
        part = asked.index(len(self.before["embed"]))
        gap = self.places[asked.name][part] - self.before[asked.name][part]
        return float(np.abs(gap).max())

    def _why_not(self, asked: Hook) -> str:
        change, chain = self._change(asked), " → ".join(self.why(asked.name))
        if not change:
            return (
                f"{asked} is not proved to be held: it does not change on this prompt, and may on"
                f" another, through {chain}"
            )
        return (
            f"{asked} is not held: it changes by up to {change:.3g} on this prompt, through {chain}"
        )

    def __repr__(self) -> str:
        count = len(self.changes)
        return (
            f"<{len(self.proved)} of {count} hook points of {self.model.name} are held, proved and"
            f" measured; the first change is at {self.first_change}>"
        )


def held(
    model: ModelSource,
    tokens: Any,
    interventions: Mapping[str | Hook, Replacement],
    hold: Iterable[str | Hook] | str | Hook = (),
    **options: Any,
) -> Held:
    """Return a pass with interventions in which some activations are held at their values.

    `hold` are hook points ("pattern.1"), kinds of them ("pattern"), or parts (`hook(name, heads,
    positions)`), replaced by what they are on the unchanged prompt. The other arguments are those
    of `intervene`. The result says which hook points cannot change (`proved`, from what each
    reads), how much each did (`changes`), and `check(names)` raises an error that names the first
    hook point that is not held, with the chain of reads by which it changes.

    >>> found = held("two_layer", "x = 1", {"v.0": "zero"}, hold="pattern")
    >>> found.check("pattern")
    >>> found.first_change, found.why("q.1")
    ('z.0', ('v.0', 'z.0', 'attn_out.0', 'resid_mid.0', 'resid_post.0', 'resid_pre.1', 'qk_in.1', \
'q.1'))

    Raises: OtimesError for a hook point that is both changed and held, or what `intervene` raises.
    """
    loaded = load_model(model)
    row = read_prompt(loaded, tokens).tokens
    run = Pass(loaded, row)
    changed = resolved(loaded, row, interventions, **options)
    kept = _hooks(loaded, hold, "hold")
    both = [str(a) for a in changed if any(_overlap(a, b, len(row)) for b in kept)]
    if both:
        raise OtimesError(f"{listed(both)} cannot be both changed and held")
    values = {each: run.places[each.name] for each in kept}
    names = tuple(each.name for each in kept if each == Hook(each.name))
    parts = tuple(each for each in kept if each != Hook(each.name))
    return Held(loaded, run.edited({**changed, **values}), run.places, tuple(changed), names, parts)


def _hooks(model: Model, given: Any, what: str) -> list[Hook]:
    """Return the hooks that names, kinds and parts stand for, each once."""
    if not isinstance(given, str | Hook | Iterable):
        raise OtimesError(f"{what} must be hook points, as names or `hook(…)`, got {given!r}")
    every = place_names(model.config)
    found: dict[Hook, None] = {}
    for each in [given] if isinstance(given, str | Hook) else given:
        members = [Hook(name) for name in every if each in (name, name.split(".")[0])]
        found |= dict.fromkeys(members or [checked_hook(model, each)])
    return list(found)


def _positions(part: Hook, n_pos: int) -> set[int]:
    given = range(n_pos) if part.positions is None else part.positions
    return {read_position(n_pos, each) for each in given}


def _covers(part: Hook, other: Hook, n_pos: int) -> bool:
    """Return whether all of another part of the same hook point is in a part."""
    if part.name != other.name:
        return False
    heads = part.heads is None or (other.heads is not None and {*other.heads} <= {*part.heads})
    return heads and _positions(other, n_pos) <= _positions(part, n_pos)


def _overlap(part: Hook, other: Hook, n_pos: int) -> bool:
    if part.name != other.name or not _positions(part, n_pos) & _positions(other, n_pos):
        return False
    return part.heads is None or other.heads is None or bool({*part.heads} & {*other.heads})
