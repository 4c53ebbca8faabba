"""Mutants of the functions that Methods are about: each trial must turn red when one is broken.

A function is broken by its arguments: it reads another head or layer, W_K for W_Q, tokens in
another order, an array with its columns shifted or transposed. The trial and its plain loops keep
the right ones. A mutant that returns, bit for bit, what the function returns does not read what was
changed, and is listed; any other must turn the trial red.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, wraps
from importlib import import_module
from inspect import signature
from types import ModuleType
from typing import Any

import numpy as np
import sympy

from otimes.algebra.errors import OtimesError
from otimes.numeric.config import Config
from otimes.numeric.model import Model
from otimes.numeric.rounding import worst_ratio
from otimes.proofs.claims import Method, Trial
from otimes.proofs.mutants import REFUTED, STILL_TRUE, MutantEvidence

Change = Callable[[str, Any, Model | None], Any]
"""From an argument's name, its value and the model: a wrong value, or the same."""


TOKENS = ("tokens", "prompt", "prompts", "clean", "corrupt")
"""The names of arguments that are prompts."""

Case = tuple[Model, Sequence[int]]
"""A model, and tokens of it."""


def check_broken(claim: Method, cases: Sequence[Case], others: Sequence[Case]) -> MutantEvidence:
    """Return which ways of breaking the function turn its trials red, on one model at least.

    The other cases are for a function that is not called on the first.
    """
    found = dict(_verdicts(claim, cases)) or dict(_verdicts(claim, others))
    if not found:
        found = {"any": f"no trial calls {claim.function}"}
    for name, why in claim.unchanged_by.items():
        if found.pop(name, "") == STILL_TRUE:
            found[f"{name} ({why})"] = STILL_TRUE
        else:
            found[name] = "it is said to change nothing, and a trial fails"
    return MutantEvidence.of(found.items())


def _verdicts(claim: Method, cases: Sequence[Case]) -> Iterator[tuple[str, str]]:
    """Yield the verdict on each change; none where the function is not called."""
    left: dict[str, str] = {}
    for model, tokens in cases:
        sound: list[bytes] = []
        _seen(claim, model, tokens, None, sound)
        for name, change in CHANGES.items() if sound else ():
            broken: list[bytes] = []
            if left.get(name) == REFUTED:
                continue
            if _is_red(claim, model, tokens, change, broken):
                left[name] = REFUTED
            elif broken != sound and name not in claim.unchanged_by:
                left[name] = f"{claim.function} returns something else, and its trials pass"
            else:
                left.setdefault(name, STILL_TRUE)
    yield from left.items()


def _is_red(
    claim: Method, model: Model, tokens: Sequence[int], change: Change, returned: list[bytes]
) -> bool:
    """Return whether a trial fails, or the function refuses its arguments."""
    try:
        trials = _seen(claim, model, tokens, change, returned)
    except (OtimesError, ArithmeticError, LookupError, ValueError):
        return True
    return any(
        np.shape(trial.value) != np.shape(trial.plain)
        or worst_ratio(trial.value, trial.plain, trial.bound) > 1
        for trial in trials
    )


def _seen(
    claim: Method,
    model: Model,
    tokens: Sequence[int],
    change: Change | None,
    returned: list[bytes],
) -> list[Trial]:
    """Return the trials with a changed function, and collect what it returned."""
    with _broken(claim, change, returned) as trials:
        return list(trials(model, tokens))


@contextmanager
def _broken(
    claim: Method, change: Change | None, returned: list[bytes]
) -> Iterator[Callable[..., Iterator[Trial]]]:
    """Yield the trials of a claim whose function gets wrong arguments."""
    function = function_of(claim)
    with replaced(claim, function, _with_wrong_arguments(function, change, returned)) as trials:
        yield trials


@contextmanager
def replaced(
    claim: Method, function: Callable[..., Any], wrong: Callable[..., Any]
) -> Iterator[Callable[..., Iterator[Trial]]]:
    """Yield the trials of a claim in which another function stands for its own."""
    trials: Any = claim.trials
    if isinstance(trials, partial):
        given = [wrong if each is function else each for each in trials.args]
        yield partial(trials.func, *given, **trials.keywords)
        return
    places = list(_places(trials.__globals__, function))
    for owner, name in places:
        _put(owner, name, wrong)
    try:
        yield trials
    finally:
        for owner, name in places:
            _put(owner, name, function)


def _places(scope: dict[str, Any], function: Any) -> Iterator[tuple[Any, str]]:
    """Yield where a function is found: in a scope, or as an attribute of what is in it."""
    own = function.__name__
    for name, value in list(scope.items()):
        if value is function:
            yield scope, name
        elif isinstance(value, ModuleType | type) and vars(value).get(own) is function:
            yield value, own


def _put(owner: Any, name: str, function: Any) -> None:
    if isinstance(owner, dict):
        owner[name] = function
    else:
        setattr(owner, name, function)


def _with_wrong_arguments(
    function: Callable[..., Any], change: Change | None, returned: list[bytes]
) -> Callable[..., Any]:
    parameters = signature(function)

    @wraps(function)
    def wrong(*args: Any, **kwargs: Any) -> Any:
        bound = parameters.bind(*args, **kwargs)
        if change is not None:
            model = next((x for x in bound.arguments.values() if isinstance(x, Model)), None)
            for name, argument in bound.arguments.items():
                if not isinstance(argument, Model) or argument is model:  # the first of two
                    bound.arguments[name] = change(name, argument, model)
        result = function(*bound.args, **bound.kwargs)
        returned.append(_digest(result))
        return result

    return wrong


def function_of(claim: Method) -> Callable[..., Any]:
    """Return the function that a Method is about; of an autoencoder, its encoder.

    Raises: OtimesError if there is none of this name.
    """
    name = claim.function.removeprefix("ot.")
    module, _, last = name.rpartition(".")
    try:
        found: Any = getattr(import_module(module or "otimes"), last)
    except (ImportError, AttributeError) as error:
        said = f"a Method is about {claim.function}, which is not found: {error}"
        raise OtimesError(f"{said}; write ot.NAME, or the module and the name") from None
    made: Callable[..., Any] = vars(found)["encode"] if isinstance(found, type) else found
    return made


class _Results(pickle.Pickler):
    """A pickler of what a function returned, without the model."""

    def persistent_id(self, part: Any) -> str | None:
        return part.name if isinstance(part, Model) else None


def _digest(result: Any) -> bytes:
    """Return a result as bytes; for a model, its stored tensors without cached conversions."""
    if isinstance(result, Model):
        arrays = {name: np.asarray(result.weights[name]) for name in sorted(result.weights)}
        result = repr(result.config), arrays
    file = io.BytesIO()
    try:
        _Results(file).dump(result)
    except (pickle.PicklingError, TypeError, AttributeError):
        return repr(result).encode()
    return file.getvalue()


# -- ways of breaking ------------------------------------------------------------------------------


def _of_model(change: Callable[[Model], Mapping[str, np.ndarray]]) -> Change:
    def changed(name: str, argument: Any, model: Model | None) -> Any:
        if not isinstance(argument, Model):
            return argument
        return argument.changed(dict(change(argument)), argument.config)

    return changed


def _rolled(name: str, axis: int) -> Change:
    return _of_model(
        lambda model: {name: np.roll(model.weights[name], 1, axis)} if name in model.weights else {}
    )


def _swapped(one: str, other: str) -> Change:
    def swap(model: Model) -> Mapping[str, np.ndarray]:
        a, b = model.weights.get(one), model.weights.get(other)
        if a is None or b is None or a.shape != b.shape:
            return {}
        return {one: np.asarray(b), other: np.asarray(a)}

    return _of_model(swap)


def _next(axis: str) -> Change:
    def changed(name: str, argument: Any, model: Model | None) -> Any:
        if name != axis or model is None or not isinstance(argument, int):
            return argument
        return (argument + 1) % getattr(model, f"n_{axis}s")

    return changed


def _other_tokens(name: str, argument: Any, model: Model | None) -> Any:
    if name not in TOKENS or len(argument) < 2 or not isinstance(argument[0], int | np.integer):
        return argument
    return [*argument[1:], argument[0]]


def _shifted(name: str, argument: Any, model: Model | None) -> Any:
    if isinstance(argument, dict):
        return {key: _shifted(key, value, model) for key, value in argument.items()}
    is_array = isinstance(argument, np.ndarray) and argument.ndim
    return np.roll(argument, 1, -1) if is_array else argument


def _other_number(name: str, argument: Any, model: Model | None) -> Any:
    return argument * 1.01 if isinstance(argument, float) else argument


def _config(change: Callable[[Config], Mapping[str, Any]]) -> Change:
    def changed(name: str, argument: Any, model: Model | None) -> Any:
        is_config = isinstance(argument, Config)
        return replace(argument, **change(argument)) if is_config else argument

    return changed


def _one_less(name: str, argument: Any, model: Model | None) -> Any:
    is_length = isinstance(argument, int) and name.startswith("max_")
    return argument - 1 if is_length else argument


def _other_expression(name: str, argument: Any, model: Model | None) -> Any:
    return sympy.Transpose(argument) if isinstance(argument, sympy.MatrixExpr) else argument


def _transposed(name: str, argument: Any, model: Model | None) -> Any:
    if not isinstance(argument, np.ndarray) or argument.ndim != 2:
        return argument
    return argument.T if argument.shape[0] == argument.shape[1] else argument


def _first(change: Change) -> Change:
    """Return the change of a left side only."""
    return lambda name, argument, model: (
        change(name, argument, model) if name == "lhs" else argument
    )


OTHER_NORM = {"layer": "rms", "rms": "layer", "none": "none"}

CHANGES: dict[str, Change] = {
    "W_K for W_Q": _swapped("W_Q", "W_K"),
    "W_V of another head": _rolled("W_V", 1),
    "W_O of another head": _rolled("W_O", 1),
    "W_V of another layer": _rolled("W_V", 0),
    "W_out with its columns shifted": _rolled("W_out", -1),
    "W_U with its columns shifted": _rolled("W_U", -1),
    "W_U with its rows shifted": _rolled("W_U", 0),
    "W_E with its columns shifted": _rolled("W_E", -1),
    "W_O of another layer": _rolled("W_O", 0),
    "another layer": _next("layer"),
    "another head": _next("head"),
    "tokens in another order": _other_tokens,
    "arrays with their columns shifted": _shifted,
    "square arrays transposed": _transposed,
    "numbers a hundredth larger": _other_number,
    "a layer more": _config(lambda config: {"n_layers": config.n_layers + 1}),
    "tied embeddings for untied": _config(lambda config: {"tied": not config.tied}),
    "the norm of another kind": _config(lambda config: {"norm": OTHER_NORM[config.norm]}),
    "a length one less": _one_less,
    "an expression transposed": _first(_other_expression),
}
"""Every way of breaking a function, by its name."""
