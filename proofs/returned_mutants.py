"""Mutants of what the functions of Methods return: each part in turn has one number changed.

A part is an array, a number or a truth value, under its name in the record, the dictionary or the
model that is returned; of an object that computes tables on demand, what a method of it returns.
Its largest entry is made one hundredth larger, or an integer by one. The trials of a Method compare
every part with plain loops, so that each of these changes turns a trial red. Words are no parts,
nor is a model within a record: only its first weight is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import fields, is_dataclass
from functools import partial, wraps
from types import FunctionType
from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError
from otimes.numeric.model import Model
from otimes.numeric.rounding import worst_ratio
from otimes.proofs.claims import Method
from otimes.proofs.method_mutants import Case, function_of, replaced

SHOWN = frozenset(("latex", "to_pandas"))  # methods that show again what other parts hold
LARGER = 1.01
FROM_ZERO = 0.01

Path = tuple[str, ...]
"""The names and indices that lead to a part, from the outside in."""


def parts_seen(claim: Method, cases: Sequence[Case]) -> dict[str, bool]:
    """Return, of each part that the function returns, whether its trials detect a change of it."""
    found: dict[Path, bool] = {}
    for model, tokens in cases:
        for path in _paths(claim, model, tokens):
            if not found.get(path):
                found[path] = is_red(claim, model, tokens, partial(_with_wrong, path))
    return {".".join(path): seen for path, seen in found.items()}


def is_red(
    claim: Method, model: Model, tokens: Sequence[int], change: Callable[[Any], Any]
) -> bool:
    """Return whether a trial fails if all that the function returns is changed in this way."""
    function = function_of(claim)

    @wraps(function)
    def wrong(*args: Any, **kwargs: Any) -> Any:
        return change(function(*args, **kwargs))

    try:
        with replaced(claim, function, wrong) as trials:
            return any(
                np.shape(trial.value) != np.shape(trial.plain)
                or worst_ratio(trial.value, trial.plain, trial.bound) > 1
                for trial in trials(model, tokens)
            )
    except (OtimesError, ArithmeticError, LookupError, ValueError):
        return True


def _paths(claim: Method, model: Model, tokens: Sequence[int]) -> list[Path]:
    """Return the parts of all that the function returns in a trial."""
    found: dict[Path, None] = {}

    def note(result: Any) -> Any:
        found.update(dict.fromkeys(_parts(result)))
        return result

    is_red(claim, model, tokens, note)
    return list(found)


def _parts(result: Any, path: Path = ()) -> Iterator[Path]:
    if _is_numbers(result) or (path and isinstance(result, Model)):
        yield path or ("all",)
        return
    for name, part in _members(result).items():
        yield from _parts(part, (*path, name))
    if not path:
        yield from ((f"{name}()",) for name in _tables(result))


def _is_numbers(result: Any) -> bool:
    if isinstance(result, np.ndarray):
        return result.size > 0 and result.dtype.kind in "fiubc"
    return isinstance(result, int | float | complex | np.number | np.bool_)


def _members(result: Any) -> dict[str, Any]:
    """Return what a result consists of, by name."""
    if isinstance(result, Model):
        return dict(result.weights)
    if isinstance(result, Mapping):
        return {str(key): each for key, each in result.items()}
    if isinstance(result, list | tuple):
        return {str(number): each for number, each in enumerate(result)}
    if is_dataclass(result):
        return {each.name: getattr(result, each.name) for each in fields(result)}
    return {}


def _tables(result: Any) -> list[str]:
    """Return the public methods of an object that is no record of numbers."""
    plain = isinstance(result, Model | Mapping | list | tuple | str | np.ndarray)
    if plain or is_dataclass(result) or result is None or _is_numbers(result):
        return []
    methods = {name: x for name, x in vars(type(result)).items() if isinstance(x, FunctionType)}
    return [name for name in methods if name[0] != "_" and name not in SHOWN]


def _with_wrong(path: Path, result: Any) -> Any:
    """Return a result whose part at a path is wrong; the same where it has no such part."""
    if path in ((), ("all",)) and _is_numbers(result):
        return _wrong(result)
    if not path:
        is_model = isinstance(result, Model)
        return _with_wrong((next(iter(result.weights)),), result) if is_model else result
    first, rest = path[0], path[1:]
    if first.endswith("()"):
        return _with_wrong_table(result, first.removesuffix("()"))
    members = _members(result)
    if first not in members:
        return result
    part = _with_wrong(rest, members[first])
    if isinstance(result, Model):
        return result.changed({first: part}, result.config)
    if isinstance(result, Mapping):
        return {key: part if str(key) == first else each for key, each in result.items()}
    if isinstance(result, list | tuple):
        each = [part if str(number) == first else old for number, old in enumerate(result)]
        return type(result)(*each) if hasattr(result, "_fields") else type(result)(each)
    made = copy(result)
    object.__setattr__(made, first, part)
    return made


def _with_wrong_table(result: Any, name: str) -> Any:
    """Return an object one of whose methods returns wrong numbers, all of them."""
    made, method = copy(result), getattr(result, name)

    def wrong(*args: Any, **kwargs: Any) -> Any:
        table = method(*args, **kwargs)
        for path in list(_parts(table)):
            table = _with_wrong(path, table)
        return table

    setattr(made, name, wrong)
    return made


def _wrong(part: Any) -> Any:
    """Return a number one hundredth larger, an integer by one; an array with its largest entry."""
    if isinstance(part, bool | np.bool_):
        return not part
    if isinstance(part, int | np.integer):
        return part + 1
    if not isinstance(part, np.ndarray):
        return part * LARGER if part else part + FROM_ZERO
    made, sizes = np.array(part), np.abs(part.astype(complex))
    sizes[~np.isfinite(sizes)] = -1.0
    where = np.unravel_index(int(np.argmax(sizes)), made.shape)
    made[where] = _wrong(made[where])
    return made
