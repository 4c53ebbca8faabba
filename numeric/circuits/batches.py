"""Functions of one prompt on a batch of prompts: the tables of all of them, stacked."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from otimes.algebra.errors import OtimesError
from otimes.numeric.circuits.result import Named
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.progress import tracked
from otimes.numeric.prompt import is_batch

Function = TypeVar("Function", bound=Callable[..., Named])


def over_prompts(function: Function) -> Function:
    """Return a function of a model and a prompt that also takes a batch of prompts.

    The tables of a batch are stacked along a first axis "prompt".

    >>> from otimes.numeric.circuits.behaviour import head_patterns
    >>> head_patterns("one_layer", ["x = 1", "y = 2"], layer=0)
    <attention pattern [prompt 2, head 4, query 3, key 3] float64>

    Raises: OtimesError for prompts of different lengths.
    """

    @wraps(function)
    def of_one_or_many(model: ModelSource, prompt: Any, *args: Any, **kwargs: Any) -> Named:
        if not is_batch(prompt):
            return function(model, prompt, *args, **kwargs)
        loaded = load_model(model)
        tables = [function(loaded, each, *args, **kwargs) for each in tracked(prompt, "prompts")]
        return stacked(tables, prompt)

    return cast("Function", of_one_or_many)


def stacked(tables: Sequence[Named], prompts: Sequence[Any]) -> Named:
    """Return the tables of several prompts as one; labels that differ between them are dropped.

    The total of the stacked table is that of all tables.
    """
    first = tables[0]
    shapes = sorted({each.values.shape for each in tables})
    if len(shapes) > 1:
        raise OtimesError(
            f"the tables of these {len(tables)} prompts have different shapes, such as"
            f" {shapes[0]} and {shapes[-1]}, and cannot be stacked: the prompts of a batch must"
            " have one length"
        )
    labels = {
        axis: names
        for axis, names in first.labels.items()
        if all(list(each.labels[axis]) == list(names) for each in tables)
    }
    if all(isinstance(prompt, str) for prompt in prompts):
        labels["prompt"] = list(prompts)
    wholes = [each.whole for each in tables if each.whole is not None]
    return Named(
        first.kind,
        np.stack([each.values for each in tables]),
        ("prompt", *first.axes),
        labels,
        first.baseline,
        first.about if all(each.about == first.about for each in tables) else "",
        sum(wholes) if wholes else None,
    )
