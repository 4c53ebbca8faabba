"""Which part of which activation is replaced, and by what.

A hook is a hook point of the reference pass, optionally with heads and positions. The names are
those that `Model.forward` records: `z.1`, `mlp_out.0`, `resid_pre.2`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.block import OF_HEADS, briefly, kind_of, place_names
from otimes.numeric.config import listed
from otimes.numeric.given import real_array
from otimes.numeric.model import Model
from otimes.numeric.prompt import read_position

Replacement = float | np.ndarray | str | Callable[[np.ndarray], Any]
"""A number, an array, a function of the activation, or a name of `NAMED`."""

NAMED = ("zero", "mean", "resample", "noise")


@dataclass(frozen=True, slots=True)
class Hook:
    """A hook point, with the heads and positions that are meant; None means all of them."""

    name: str
    heads: tuple[int, ...] | None = None
    positions: tuple[int, ...] | None = None

    def index(self, n_pos: int) -> tuple[Any, ...]:
        """Return the NumPy index of the part in the activation of one prompt."""
        positions = range(n_pos) if self.positions is None else self.positions
        at = np.array([read_position(n_pos, each) for each in positions], dtype=np.int64)
        if kind_of(self.name) not in OF_HEADS:
            return (at,)
        if self.positions is None:
            return () if self.heads is None else (np.array(self.heads),)
        heads = slice(None) if self.heads is None else np.array(self.heads)[:, None]
        return (heads, at)

    def __str__(self) -> str:
        """Return the name with heads in brackets and positions after an @."""
        heads = "" if self.heads is None else f"[{','.join(map(str, self.heads))}]"
        at = "" if self.positions is None else f"@{','.join(map(str, self.positions))}"
        return f"{self.name}{heads}{at}"


def hook(
    name: str,
    heads: int | Sequence[int] | None = None,
    positions: int | Sequence[int] | None = None,
) -> Hook:
    """Return a part of an activation, as a key of the interventions of `intervene`.

    `heads` and `positions` are numbers or lists of them, None for all; positions may be negative,
    from the end. Of `scores` and `pattern`, positions are those of the queries.

    >>> print(hook("z.1", heads=2, positions=[-1]))
    z.1[2]@-1
    """
    return Hook(name, _numbers("heads", heads), _numbers("positions", positions))


def _numbers(what: str, given: Any) -> tuple[int, ...] | None:
    if given is None:
        return None
    numbers = [given] if np.ndim(given) == 0 else list(given)
    wrong = [x for x in numbers if isinstance(x, bool) or not isinstance(x, int | np.integer)]
    if wrong or not numbers:
        raise OtimesError(f"{what} must be an integer or a list of integers, got {given!r}")
    if len(set(numbers)) < len(numbers):
        raise OtimesError(f"{what} must be distinct, got {given!r}")
    return tuple(int(each) for each in numbers)


def checked_hook(model: Model, given: Any) -> Hook:
    """Return a hook that was given as a name or as `hook(…)`.

    Raises: OtimesError for a hook point or a head that the model does not have.
    """
    asked = Hook(given) if isinstance(given, str) else given
    if not isinstance(asked, Hook):
        raise OtimesError(f"a hook point is a name such as 'z.0' or hook('z.0', …), got {given!r}")
    known = place_names(model.config)
    if asked.name not in known:
        raise OtimesError(
            f"{model.name} has no hook point {asked.name!r}; it has {listed(briefly(model.config))}"
        )
    if asked.heads is None:
        return asked
    if kind_of(asked.name) not in OF_HEADS:
        raise OtimesError(
            f"{asked.name} is not computed by heads, and heads={list(asked.heads)} was given; hook"
            f" points of heads are {listed(OF_HEADS)}"
        )
    wrong = [head for head in asked.heads if not 0 <= head < model.n_heads]
    if wrong:
        raise OtimesError(
            f"{asked.name} has no head {wrong[0]}: {model.name} has heads 0 to {model.n_heads - 1}"
        )
    return asked


def changeable_hook(model: Model, given: Any) -> Hook:
    """Return a hook whose replacement can have an effect.

    Raises: OtimesError for `resid_mid` of a parallel block, which nothing reads.
    """
    asked = checked_hook(model, given)
    if kind_of(asked.name) == "resid_mid" and model.config.parallel:
        raise OtimesError(
            f"{asked.name} cannot be replaced in a model with parallel=True: nothing reads it, as"
            " the outputs of attention and MLP are added to resid_pre together"
        )
    return asked


def replaced(asked: Hook, value: np.ndarray, by: Any) -> np.ndarray:
    """Return a copy of an activation in which the part that a hook names is replaced.

    `by` is a function of the part, or what replaces it: of the shape of the part, of the whole
    activation, or one that broadcasts to the part.
    Raises: ShapeError for another shape, OtimesError for values that are not finite numbers.
    """
    index = asked.index(value.shape[-2])
    part = value[index]
    new = by(part.copy()) if callable(by) else by
    array = real_array(new, f"{asked}: the replacement", finite=False)
    if array.shape == value.shape:
        array = array[index]
    if not _broadcasts(array.shape, part.shape):
        raise ShapeError(
            f"{asked} has shape {part.shape} on this prompt, and the replacement has shape"
            f" {array.shape}: give an array of that shape, or one that broadcasts to it"
        )
    if not np.isfinite(array).all():
        raise OtimesError(f"{asked}: the replacement has entries that are not finite numbers")
    out = value.copy()
    out[index] = array
    return out


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, to) == to
    except ValueError:
        return False


def by_place(hooks: Mapping[Hook, Any]) -> dict[str, list[tuple[Hook, Any]]]:
    """Return the replacements of each hook point, in the order in which they were given."""
    found: dict[str, list[tuple[Hook, Any]]] = {}
    for asked, by in hooks.items():
        found.setdefault(asked.name, []).append((asked, by))
    return found
