"""What an implementation shows on some tokens, as arrays that can be judged.

An implementation is called with the caller's own tokens, of whatever kind they are, and returns
logits, or logits and a mapping of places. Everything is read as float64 here, the type that it has
being remembered; a batch becomes a list of prompts; grouped keys and values that are not repeated
are. What has the wrong shape, and what is not finite, is kept apart, to be said in a sentence of
its own.

Each place has a type of its own. Most have the one that the implementation computes in; a place
that is coarser is known up to one rounding to its type, for itself and for what reads it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from algebra.errors import OtimesError
from numeric.audit.calling import called
from numeric.audit.judge import Shown
from numeric.audit.spoilt import spoilt_entries
from numeric.config import Config, listed
from numeric.forward import place_names
from numeric.model import Model
from numeric.rounding.linear import Near
from numeric.rounding.places import kind_of
from numeric.rounding.precision import TINY, UNIT_ROUNDOFF, gamma

DTYPES = tuple(UNIT_ROUNDOFF)


@dataclass(slots=True)
class Collected:
    """The prompts with their places; the types of the arrays; what could not be used, and why.

    `spoilt`: the places that are not finite, [prompt, ...], which the prompts are without.
    `coarser`: the types of places that are shown in a coarser type than most, `dtype`.
    `unturned`: queries and keys are known to be those before the rotation. `as_held`: the weights
    of the reference were read off what is audited, and need not be rounded to its type.
    """

    prompts: list[Shown]
    dtypes: dict[str, str]
    unfit: dict[str, str] = field(default_factory=dict)
    spoilt: dict[str, np.ndarray] = field(default_factory=dict)
    coarser: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unturned: bool = False
    as_held: bool = False

    @property
    def dtype(self) -> str:
        """The type of most places: what the implementation computes in.

        Logits are often cast for a loss or a comparison, and say so only if there is nothing else.
        """
        types = [each for name, each in self.dtypes.items() if name != "logits"]
        types = types or [*self.dtypes.values()]
        most = max(types.count(each) for each in types)
        return coarsest(each for each in types if types.count(each) == most)


def coarsest(dtypes: Iterable[str]) -> str:
    """Return the coarsest of some types, all of which are known."""
    return max(dtypes, key=lambda each: UNIT_ROUNDOFF[each])


class Plain(NamedTuple):
    """An array of NumPy, and the name of the type that it had."""

    array: np.ndarray
    dtype: str


class AsShown(Mapping[str, Near]):
    """Places as they were shown, in their own type; in float64 when one is asked for.

    Not before: in float64 all places of a float32 pass are a good part of the model's weights.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], coarser: Mapping[str, str]) -> None:
        self.arrays, self.coarser = arrays, coarser

    def __getitem__(self, place: str) -> Near:
        """Return a place: known as it is, or up to one rounding to a type that is coarser."""
        near = Near.exactly(self.arrays[place])
        if place not in self.coarser:
            return near
        dtype = self.coarser[place]
        return Near(near.value, np.abs(near.value) * gamma(1, UNIT_ROUNDOFF[dtype]) + TINY[dtype])

    def __iter__(self) -> Iterator[str]:
        """Return the names of the places."""
        return iter(self.arrays)

    def __len__(self) -> int:
        """Return how many places were shown."""
        return len(self.arrays)

    def __contains__(self, place: object) -> bool:
        """Return whether a place was shown; none is converted."""
        return place in self.arrays


def plain(array: Any) -> Plain:
    """Return an array of NumPy or torch in float64, and the name of the type that it had."""
    array, dtype = as_it_is(array)
    return Plain(np.asarray(array, dtype=np.float64), dtype)


def as_it_is(array: Any) -> Plain:
    """Return an array of NumPy or torch as one of NumPy, and the name of the type that it had."""
    if isinstance(array, Plain):
        return array
    if hasattr(array, "detach"):
        array = array.detach()
        if str(array.device).partition(":")[0] == "meta":
            raise OtimesError("an array is on the device 'meta', where there are no numbers")
        name = str(array.dtype).removeprefix("torch.")
        array = array.cpu()
        array = (array.float() if name == "bfloat16" else array).numpy()
    else:
        array = np.asarray(array)
        name = array.dtype.name
    if name == "longdouble":
        array, name = array.astype(np.float64), "float64"
    return Plain(array, name)


def token_rows(tokens: Any, model: Model) -> np.ndarray:
    """Return tokens as [prompt, pos], or say what is wrong with them."""
    if isinstance(tokens, Mapping):
        raise OtimesError(
            f"tokens came as a mapping of {listed(tokens)}: give the token ids by themselves, and "
            "prompts of different lengths one by one, for an audit knows no padding"
        )
    if hasattr(tokens, "detach"):
        tokens = tokens.detach().cpu().numpy()
    try:
        array = np.asarray(tokens)
    except ValueError:
        raise OtimesError(
            "the prompts of a batch have one length, got different ones: audit them one by one, "
            "for an audit knows no padding"
        ) from None
    if not array.ndim or array.dtype.kind not in "iufb":
        raise OtimesError(
            "tokens are one prompt or a batch of prompts of one length, as whole numbers, got "
            f"{type(tokens).__name__}"
        )
    array = array[None] if array.ndim == 1 else array
    if not array.size:
        raise OtimesError("the prompt is empty; the model needs at least one token")
    if array.ndim != 2:
        raise OtimesError(
            f"tokens are one prompt or a batch of prompts of one length, got shape {array.shape}"
        )
    return np.stack([model.check_tokens(row) for row in array])


def collect(
    call: Callable[[Any], Any],
    tokens: Any,
    model: Model,
    names: Mapping[str, str] | None = None,
    rows: np.ndarray | None = None,
    output: str = "logits",
) -> Collected:
    """Return what an implementation shows on tokens; `names` says which of its names are ours.

    `rows` are the tokens [prompt, pos] as the model has them, where the implementation is given
    something else, and `output` the place that it returns. Raises: OtimesError when it raises, or
    returns neither that nor that and places.
    """
    rows = token_rows(tokens, model) if rows is None else rows
    logits, activations = _answer(called(call, tokens))
    return gather(logits, activations, rows, model, names, output)


def _answer(answer: Any) -> tuple[Any, Mapping[str, Any]]:
    if hasattr(answer, "logits"):
        return answer.logits, {}
    if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], Mapping):
        return answer
    if isinstance(answer, Mapping):
        return None, answer
    if hasattr(answer, "shape"):
        return answer, {}
    raise OtimesError(
        "the implementation must return logits, or logits and a mapping of places, and returned "
        f"{type(answer).__name__}"
    )


def gather(
    logits: Any,
    activations: Mapping[str, Any],
    rows: np.ndarray,
    model: Model,
    names: Mapping[str, str] | None = None,
    output: str = "logits",
) -> Collected:
    """Return logits (or another `output`) and places of a batch of prompts, to be judged."""
    known, renamed = place_names(model.config), dict(names or {})
    wrong = [ours for ours in renamed.values() if ours not in known]
    if wrong:
        raise OtimesError(
            f"names= maps to {listed(wrong)}, no place of this model; it has {listed(known)}"
        )
    named = {renamed.get(name, name): array for name, array in activations.items()}
    if logits is not None:
        named[output] = logits
    extra = [name for name in named if name not in known]
    places: list[dict[str, np.ndarray]] = [{} for _ in rows]
    found = Collected([], {})
    for name in known:
        if name not in named or named[name] is None:
            continue
        array, dtype = as_it_is(named[name])
        if dtype not in DTYPES:
            found.unfit[name] = f"is of type {dtype}; known are {listed(DTYPES)}"
            continue
        shape = _shape(name, model.config, rows.shape[1])
        fitted = _fit(array, name, model.config, rows.shape, shape)
        if fitted is None:
            found.unfit[name] = f"has the shape {array.shape}, and {shape} is expected" + (
                f" for each of {len(rows)} prompts" if len(rows) > 1 else ""
            )
            continue
        if fitted.shape[1:] != array.shape[-len(shape) :]:
            said = f"{kind_of(name)} is shown once for each group, and repeated here"
            found.notes.extend([] if said in found.notes else [said])
        found.dtypes[name] = dtype
        if spoilt_entries(fitted, name) is not None:
            found.spoilt[name] = fitted
            continue
        for index, one in enumerate(fitted):
            places[index][name] = one
    if not found.dtypes and not found.unfit:
        raise OtimesError(
            "the implementation showed neither logits nor a place that is known; known are "
            f"{listed(known)}"
        )
    found.coarser = _coarser(found)
    found.prompts = [
        Shown(row, AsShown(shown, found.coarser)) for row, shown in zip(rows, places, strict=True)
    ]
    if extra:
        found.notes.append(f"not compared, as there are no such places: {listed(extra[:8])}")
    return found


def _coarser(found: Collected) -> dict[str, str]:
    """Return the types of the places that are coarser than what most have, and say which."""
    if not found.dtypes:
        return {}
    unit = UNIT_ROUNDOFF[found.dtype]
    coarser = {name: each for name, each in found.dtypes.items() if UNIT_ROUNDOFF[each] > unit}
    for dtype in dict.fromkeys(coarser.values()):
        names = [name for name, each in coarser.items() if each == dtype]
        more = f" and {len(names) - 4} more" if len(names) > 4 else ""
        found.notes.append(
            f"precision: shown in {dtype}, the rest in {found.dtype}: {listed(names[:4])}{more}"
        )
    return coarser


def _shape(place: str, config: Config, n_pos: int) -> tuple[int, ...]:
    kind = kind_of(place)
    if kind == "logits":
        return (n_pos, config.d_vocab)
    if kind in ("q", "k", "v", "z"):
        return (config.n_heads, n_pos, config.d_head)
    if kind in ("scores", "pattern"):
        return (config.n_heads, n_pos, n_pos)
    if kind == "head_out":
        return (config.n_heads, n_pos, config.d_model)
    return (n_pos, config.d_mlp if kind in ("mlp_pre", "mlp_post") else config.d_model)


def _fit(
    array: np.ndarray, place: str, config: Config, batch: tuple[int, ...], shape: tuple[int, ...]
) -> np.ndarray | None:
    """Return the array as [prompt, *shape], or None if it is of no such shape."""
    grouped = (config.kv_heads, *shape[1:])
    for each in (shape, grouped) if kind_of(place) in ("k", "v") else (shape,):
        if array.shape == (batch[0], *each):
            fitted = array
        elif batch[0] == 1 and array.shape == each:
            fitted = array[None]
        else:
            continue
        if each != shape:
            fitted = np.repeat(fitted, config.n_heads // config.kv_heads, axis=1)
        return fitted
    return None
