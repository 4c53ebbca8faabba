"""Capture the activations of an implementation on some tokens, as arrays to compare.

An implementation is called with the caller's own tokens, unchanged, and returns logits, or logits
and a mapping of activations. All are compared in float64, and their own dtype is recorded. A batch
becomes a list of prompts; keys and values of grouped-query attention are repeated for each head.
Arrays of the wrong shape, and non-finite ones, are kept apart and reported by themselves.

Most activations have the dtype that the implementation computes in. One of lower precision is known
up to one rounding to its dtype, both for itself and for what is computed from it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError
from otimes.numeric.audit.capture.nonfinite import nonfinite_entries
from otimes.numeric.audit.reference.comparison import Recording
from otimes.numeric.block import briefly, head_width_of, kind_of, place_names, width_of
from otimes.numeric.config import Config, listed
from otimes.numeric.importers.unwrap import called
from otimes.numeric.model import Model
from otimes.numeric.rounding.linear import Near
from otimes.numeric.rounding.precision import TINY, UNIT_ROUNDOFF, gamma

DTYPES = tuple(UNIT_ROUNDOFF)
ALIKE = 0.75
"""The similarity, by difflib, from which an unknown name is taken for a slip."""


@dataclass(frozen=True, slots=True)
class Capture:
    """The activations of an implementation on some prompts, and their dtypes by hook point.

    `unfit`: arrays that cannot be compared, with the reason. `nonfinite`: activations with
    non-finite entries [prompt, ...], which `prompts` leave out. `coarser`: the dtypes of those of
    lower precision than `dtype`. `unturned`: queries and keys are known to be recorded before
    the rotation. `own_weights`: the weights of the reference were read from the implementation
    itself, and need not be rounded to its dtype.
    """

    prompts: tuple[Recording, ...]
    dtypes: Mapping[str, str]
    unfit: Mapping[str, str]
    nonfinite: Mapping[str, np.ndarray]
    coarser: Mapping[str, str]
    notes: tuple[str, ...]
    unturned: bool = False
    own_weights: bool = False

    @property
    def dtype(self) -> str:
        """The dtype of most activations: what the implementation computes in."""
        return _usual(self.dtypes)

    @property
    def n_tokens(self) -> int:
        """The number of tokens of all prompts."""
        return sum(len(prompt.tokens) for prompt in self.prompts)

    @property
    def comparable(self) -> bool:
        """Whether all captured activations can be compared."""
        return not self.unfit and not self.nonfinite


def _usual(dtypes: Mapping[str, str]) -> str:
    """Return the dtype of most activations; that of logits, which are often cast, counts last."""
    types = [each for name, each in dtypes.items() if name != "logits"] or [*dtypes.values()]
    most = max(types.count(each) for each in types)
    return coarsest(each for each in types if types.count(each) == most)


def coarsest(dtypes: Iterable[str]) -> str:
    """Return the dtype of lowest precision."""
    return max(dtypes, key=lambda each: UNIT_ROUNDOFF[each])


SMALL = 2**14
"""The most entries of an activation that is kept in float64."""


class AsRecorded(Mapping[str, Near]):
    """Activations in their own dtype, converted to float64 one at a time, to save memory.

    Small ones are converted once.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], coarser: Mapping[str, str]) -> None:
        self.arrays, self.coarser = arrays, coarser
        self._small: dict[str, Near] = {}

    def __getitem__(self, place: str) -> Near:
        """Return an activation with its error: 0, or one rounding to a dtype of lower precision."""
        if place in self._small:
            return self._small[place]
        near = Near.exactly(self.arrays[place])
        if place in self.coarser:
            dtype = self.coarser[place]
            error = np.abs(near.value) * gamma(1, UNIT_ROUNDOFF[dtype]) + TINY[dtype]
            near = Near(near.value, error)
        if near.value.size <= SMALL:
            self._small[place] = near
        return near

    def __iter__(self) -> Iterator[str]:
        """Return the names of the hook points."""
        return iter(self.arrays)

    def __len__(self) -> int:
        """Return the number of activations."""
        return len(self.arrays)

    def __contains__(self, place: object) -> bool:
        """Return whether an activation was recorded; none is converted."""
        return place in self.arrays


def as_it_is(array: Any) -> tuple[np.ndarray, str]:
    """Return a NumPy or torch array as a NumPy array, and the name of its original dtype."""
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
    return array, name


def token_rows(tokens: Any, model: Model) -> np.ndarray:
    """Return tokens as an array [prompt, pos]. Raises: OtimesError if they are invalid."""
    if isinstance(tokens, Mapping):
        raise OtimesError(
            f"tokens came as a mapping of {listed(tokens)}: give the token ids alone, "
            "and prompts of different lengths one by one or to `audit_padded`"
        )
    if hasattr(tokens, "detach"):
        tokens = tokens.detach().cpu().numpy()
    try:
        array = np.asarray(tokens)
    except ValueError:
        raise OtimesError(
            "the prompts of a batch have one length, got different ones: audit them one by one, "
            "or padded, by `audit_padded`"
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
    names: Mapping[str, str | None] | None = None,
    rows: np.ndarray | None = None,
    output: str = "logits",
) -> Capture:
    """Return the activations of an implementation on tokens; `names` maps its names to ours.

    `rows` are the tokens [prompt, pos] of the model if the implementation reads other inputs;
    `output` is the hook point that it returns. Raises: OtimesError if it raises, or returns neither
    that array nor a pair of that array and a mapping of activations.
    """
    rows = token_rows(tokens, model) if rows is None else rows
    logits, activations = answer_of(called(call, tokens))
    return gather(logits, activations, rows, model, names, output)


def answer_of(answer: Any) -> tuple[Any, Mapping[str, Any]]:
    """Return the logits and the activations in what an implementation returned.

    Logits may come alone, as an attribute `logits`, or in a tuple with a loss or a cache, in which
    they are the only array of two axes or more. Raises: OtimesError if there are none.
    """
    if hasattr(answer, "logits"):
        return answer.logits, {}
    if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], Mapping):
        return answer
    if isinstance(answer, Mapping):
        return None, answer
    if hasattr(answer, "shape"):
        return answer, {}
    if isinstance(answer, tuple):
        wide = [each for each in answer if len(getattr(each, "shape", ())) > 1]
        if len(wide) == 1:
            return wide[0], {}
    raise OtimesError(
        "the implementation must return logits, or logits and a mapping of activations, and "
        f"returned {_returned(answer)}"
    )


def _returned(answer: Any) -> str:
    """Return what an implementation returned, in words."""
    if not isinstance(answer, tuple):
        return type(answer).__name__
    return "a tuple of " + listed(
        f"an array of shape {tuple(each.shape)}" if hasattr(each, "shape") else type(each).__name__
        for each in answer
    )


def gather(
    logits: Any,
    activations: Mapping[str, Any],
    rows: np.ndarray,
    model: Model,
    names: Mapping[str, str | None] | None = None,
    output: str = "logits",
) -> Capture:
    """Return the capture of logits (or another `output`) and activations of a batch of prompts."""
    known, renamed = place_names(model.config), dict(names or {})
    wrong = [ours for ours in renamed.values() if ours is not None and ours not in known]
    if wrong:
        raise OtimesError(
            f"names= maps to {listed(wrong)}, no hook point of this model; it has"
            f" {listed(briefly(model.config))}"
        )
    named = {
        ours: array
        for name, array in activations.items()
        if (ours := renamed.get(name, name)) is not None
    }
    if logits is not None:
        named[output] = logits
    extra = [name for name in named if name not in known]
    _check_spelling(extra, known)
    places: list[dict[str, np.ndarray]] = [{} for _ in rows]
    dtypes, unfit = dict[str, str](), dict[str, str]()
    nonfinite, notes = dict[str, np.ndarray](), list[str]()
    for name in known:
        if name not in named or named[name] is None:
            continue
        array, dtype = as_it_is(named[name])
        if dtype not in DTYPES:
            unfit[name] = f"is of type {dtype}; known are {listed(DTYPES)}"
            continue
        shape = _shape(name, model.config, rows.shape[1])
        fitted = _fit(array, name, model.config, rows.shape, shape)
        if fitted is None:
            unfit[name] = f"has the shape {array.shape}, and {shape} is expected" + (
                f" for each of {len(rows)} prompts" if len(rows) > 1 else ""
            )
            continue
        if fitted.shape[1:] != array.shape[-len(shape) :]:
            said = f"{kind_of(name)} has one entry for each group, and is repeated for its heads"
            notes.extend([] if said in notes else [said])
        dtypes[name] = dtype
        if nonfinite_entries(fitted, name) is not None:
            nonfinite[name] = fitted
            continue
        for index, one in enumerate(fitted):
            places[index][name] = one
    if not dtypes and not unfit:
        raise OtimesError(
            "the implementation returned neither logits nor an activation of a known hook point; "
            f"known are {listed(known)}"
        )
    coarser = _coarser(dtypes)
    notes += _notes_of_dtypes(coarser, dtypes)
    prompts = tuple(
        Recording(row, AsRecorded(shown, coarser)) for row, shown in zip(rows, places, strict=True)
    )
    if extra:
        notes.append(f"not compared, as there are no such hook points: {listed(extra[:8])}")
    return Capture(prompts, dtypes, unfit, nonfinite, coarser, tuple(notes))


def _check_spelling(extra: Iterable[str], known: Sequence[str]) -> None:
    """Raise OtimesError for unknown names that are much like those of hook points."""
    near = {name: get_close_matches(name, known, n=2, cutoff=ALIKE) for name in extra}
    said = [f"{name!r} (near {listed(like)})" for name, like in near.items() if like]
    if said:
        raise OtimesError(
            f"the implementation returned the activations {listed(said[:4])}, which are no hook "
            "points of this model: correct the names, or leave one out by names={'…': None}"
        )


def _coarser(dtypes: Mapping[str, str]) -> dict[str, str]:
    """Return the dtypes of the activations of lower precision than most."""
    unit = UNIT_ROUNDOFF[_usual(dtypes)] if dtypes else 0.0
    return {name: each for name, each in dtypes.items() if UNIT_ROUNDOFF[each] > unit}


def _notes_of_dtypes(coarser: Mapping[str, str], dtypes: Mapping[str, str]) -> Iterator[str]:
    for dtype in dict.fromkeys(coarser.values()):
        names = [name for name, each in coarser.items() if each == dtype]
        more = f" and {len(names) - 4} more" if len(names) > 4 else ""
        usual = _usual(dtypes)
        yield f"precision: recorded in {dtype}, the rest in {usual}: {listed(names[:4])}{more}"


def _shape(place: str, config: Config, n_pos: int) -> tuple[int, ...]:
    kind = kind_of(place)
    if kind in ("q", "k", "v", "z"):
        return (config.n_heads, n_pos, head_width_of(kind, config))
    if kind in ("scores", "pattern"):
        return (config.n_heads, n_pos, n_pos)
    if kind == "head_out":
        return (config.n_heads, n_pos, config.d_model)
    return (n_pos, width_of(kind, config))


def by_prompt(array: Any, batch: tuple[int, ...]) -> Any:
    """Return an activation whose positions of all prompts follow one another by prompt (OPT).

    >>> by_prompt(np.ones((6, 4)), (2, 3)).shape
    (2, 3, 4)
    """
    if len(getattr(array, "shape", ())) != 2 or array.shape[0] != batch[0] * batch[1]:
        return array
    return array.reshape(*batch, array.shape[1])


def _fit(
    array: np.ndarray, place: str, config: Config, batch: tuple[int, ...], shape: tuple[int, ...]
) -> np.ndarray | None:
    """Return the array as [prompt, *shape], or None if its shape does not fit."""
    grouped = (config.kv_heads, *shape[1:])
    array = by_prompt(array, batch) if len(shape) == 2 else array
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
