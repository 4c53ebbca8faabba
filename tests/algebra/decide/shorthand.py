"""Short names for what the suites of claims are written with, and a sample of a suite."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any

import pytest
import sympy
from sympy import BlockMatrix, HadamardProduct

from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import HeadSum
from otimes.algebra.language.nonlinear import Activation

EVERY = 1 if os.environ.get("OTIMES_LONG") else 12  # of so many claims one is tried
L = sympy.Symbol("L", integer=True, positive=True)
l = sympy.Symbol("l", integer=True)  # noqa: E741 (the layer)


def layers(body: Any, count: Any = L, reverse: bool = False) -> Any:
    """Return the product over the layers l, the last one first unless in reverse."""
    return LayerProduct(body, (l, count), reverse)


def total(body: Any, count: Any = L) -> Any:
    """Return the sum over the layers l."""
    return HeadSum(body, (l, count))


def f(name: str, argument: Any) -> Any:
    """Return a function of each entry."""
    return Activation(name, argument)


def had(*factors: Any) -> Any:
    """Return an entrywise product as it is written."""
    return HadamardProduct(*factors, evaluate=False)


def rows(*lines: Any) -> Any:
    """Return blocks by their rows."""
    return BlockMatrix([list(line) for line in lines])


def some(claims: Mapping[str, Any], but: Collection[str] = ()) -> Any:
    """Run a test for one of `EVERY` claims, those in `but` left out; for all in the long tests."""
    names = [name for name in claims if name not in but]
    return pytest.mark.parametrize("name", names[::EVERY])
