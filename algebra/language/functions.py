"""The named activation functions, each on floats, on exact numbers and on intervals.

A `Function` has implementations for NumPy and torch floats and for exact numbers (an `Interval` if
the value is irrational), and general properties. A name that is not in `KNOWN` stands for an
arbitrary function: trials replace it by a polynomial, but it has no value.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from itertools import zip_longest
from math import inf, pi, sqrt
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mpmath import iv

from otimes.algebra.errors import OtimesError
from otimes.algebra.language.backends import is_torch
from otimes.algebra.language.deferred import Deferred
from otimes.algebra.language.intervals import Interval, bounds
from otimes.algebra.language.logarithms import Logarithm, logarithm_of, value_at
from otimes.algebra.language.roots import exact_root

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")
special: Any = Deferred("scipy.special")

Exact = int | Fraction | Interval
CUBIC, SLOPE = Fraction(44715, 1_000_000), sqrt(2 / pi)
QUICK = Fraction(1702, 1000)


@dataclass(frozen=True, slots=True)
class Function:
    """An activation function: its implementations and its properties.

    `at_zero` is g(0) if that is an integer. `domain` is what an argument must be: "positive",
    "nonnegative" or "nonzero", or None where every number will do. `exact` returns g(x) if that is
    rational, else None. `source` is the paper. Relations between values, such as g(-x) = -g(x), are
    axioms.
    """

    name: str
    on_floats: Callable[[Any], Any]
    in_torch: Callable[[Any, Any], Any]  # (torch, tensor)
    on_interval: Callable[[Any], Any]
    tex: str
    source: str
    at_zero: int | None = None
    nonnegative: bool = False
    domain: str | None = None
    exact: Callable[[Any], Any] | None = None


def value_of(
    name: str, number: Exact, functions: Mapping[str, Callable[[Any], Any]] = MappingProxyType({})
) -> Exact:
    """Return the value of a function at an exact number: exact if possible, else an interval.

    `functions` are those chosen for names that stand for any function. Raises OtimesError where the
    function is undefined.
    """
    known = KNOWN.get(name)
    if known is None:
        value: Exact = functions.get(name, stand_in(name))(number)
        return value
    found: Exact | None = None
    if isinstance(number, Logarithm):
        found = value_at(name, number)
    elif not isinstance(number, Interval):
        found = known.exact(number) if known.exact else None
        found = known.at_zero if number == 0 and found is None else found
    if found is not None:
        return found
    return Interval(known.on_interval(bounds(number)))


def is_defined(name: str, number: Any) -> bool:
    """Return whether a known function has a value at an exact number."""
    domain = KNOWN[name].domain
    return domain is None or (number != 0 if domain == "nonzero" else _ABOVE[domain](number))


def is_partial(name: str) -> bool:
    """Return whether a function has no value at some numbers."""
    return name in KNOWN and KNOWN[name].domain is not None


_ABOVE: dict[str, Callable[[Any], bool]] = {
    "positive": lambda number: number > 0,
    "nonnegative": lambda number: number >= 0,
}


def on_floats(name: str, array: Any) -> Any:
    """Return a function applied to every entry of a NumPy or torch float array."""
    known = KNOWN.get(name)
    if known is None:
        raise OtimesError(
            f"the activation {name} stands for any function, and has no value on numbers: name one "
            f"of {', '.join(KNOWN)}"
        )
    if is_torch(array):
        return known.in_torch(import_module("torch"), array)
    return known.on_floats(array)


def stand_in(name: str) -> Polynomial:
    """Return the polynomial substituted for an arbitrary function in trials, fixed by its name."""
    draw = random.Random(name)
    return Polynomial(tuple(draw.choice((-3, -2, -1, 1, 2, 3)) for _ in range(4)))


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A polynomial, its coefficients from the constant one upwards."""

    coefficients: tuple[int | Fraction, ...]

    def __call__(self, x: Any) -> Any:
        return sum((c * x**k for k, c in enumerate(self.coefficients)), 0)

    def plus(self, other: Polynomial, factor: Fraction) -> Polynomial:
        """Return the sum with a multiple of another polynomial."""
        pairs = zip_longest(self.coefficients, other.coefficients, fillvalue=0)
        sums = [Fraction(x + factor * y) for x, y in pairs]
        return Polynomial(tuple([int(x) if x.denominator == 1 else x for x in sums]))

    def __str__(self) -> str:
        """Return the polynomial as a Python expression in x."""
        terms = [(c, k) for k, c in enumerate(self.coefficients) if c or k == 0]
        return " + ".join(f"{c!r}*x**{k}" for c, k in terms)


def interpolated(values: Mapping[int | Fraction, int | Fraction], more: Polynomial) -> Polynomial:
    """Return the polynomial with these values, plus `more` times that which is zero there.

    >>> str(interpolated({0: 1, 2: 5}, Polynomial((1,))))
    '1*x**0 + 1*x**2'
    """
    total, vanishing = Polynomial((0,)), Polynomial((1,))
    for point, value in values.items():  # Newton's form
        step = Fraction(value - total(point)) / Fraction(vanishing(point))
        total = total.plus(vanishing, step)
        vanishing = Polynomial((0, *vanishing.coefficients)).plus(vanishing, Fraction(-point))
    for k, c in enumerate(more.coefficients):
        total = total.plus(Polynomial((*[0] * k, *vanishing.coefficients)), Fraction(c))
    return total


# -- on intervals ----------------------------------------------------------------------------------


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + iv.exp(-x))


def _tanh(x: Any) -> Any:
    return 1 - 2 / (iv.exp(2 * x) + 1)


def _relu(x: Any) -> Any:
    return iv.mpf([max(x.a, 0), max(x.b, 0)])


def _rsqrt(x: Any) -> Any:
    if not x.a > 0:
        raise OtimesError("the argument of a reciprocal square root may be zero or negative")
    return 1 / iv.sqrt(x)


def _sqrt(x: Any) -> Any:
    if not x.a >= 0:
        raise OtimesError("the argument of a square root may be negative")
    return iv.sqrt(x)


def _log(x: Any) -> Any:
    if not x.a > 0:
        raise OtimesError("the argument of a logarithm may be zero or negative")
    return iv.log(x)


def _reciprocal(x: Any) -> Any:
    if x.a <= 0 <= x.b:
        raise OtimesError("an entry that is divided by may be zero")
    return 1 / x


def _gelu(x: Any) -> Any:
    return x * (1 + _erf(x / iv.sqrt(iv.mpf(2)))) / 2


def _gelu_tanh(x: Any) -> Any:
    return x * (1 + _tanh(iv.sqrt(2 / iv.pi) * (x + bounds(CUBIC) * x**3))) / 2


def _erf(x: Any) -> Any:
    """Return erf(x) by its series, with an error below the first omitted term.

    The terms alternate, decreasing from k = x² on; cancellation before that costs 2 x² / log 2
    bits. For large |x|, 1 - exp(-x²) < |erf(x)| < 1.
    """
    largest = float(abs(x).b)
    if not largest < 12:
        tail = iv.exp(-(x**2))
        far = iv.mpf([1 - tail.b, 1])
        return far if x.a > 9 else -far if x.b < -9 else iv.mpf([-1, 1])
    slope = 2 / iv.sqrt(iv.pi)  # an upper bound on the derivative
    with _extra_bits(int(3 * largest**2)):
        middle = iv.mpf(x.mid)
        spread = slope * (x - middle)
        return slope * _erf_series(middle) + spread


@contextmanager
def _extra_bits(bits: int) -> Iterator[None]:
    iv.prec += bits
    try:
        yield
    finally:
        iv.prec -= bits


def _erf_series(x: Any) -> Any:
    total, term, k = x, x, 0
    square = x**2
    while k <= square.b or not abs(term).b < iv.eps * iv.mpf("1e-20"):
        k += 1
        term = -term * square / k
        total = total + term / (2 * k + 1)
    rest = abs(term).b
    return total + iv.mpf([-rest, rest])


def _exact_rsqrt(x: Any) -> Any:
    if x <= 0:
        raise OtimesError("the argument of a reciprocal square root is not positive")
    try:
        return exact_root(x, Fraction(-1, 2))
    except OtimesError:
        return None


def _exact_sqrt(x: Any) -> Any:
    if x < 0:
        raise OtimesError("the argument of a square root is negative")
    try:
        return exact_root(x, Fraction(1, 2)) if x else 0
    except OtimesError:
        return None


def _exact_reciprocal(x: Any) -> Any:
    if x == 0:
        raise OtimesError("an entry that is divided by is zero")
    return 1 / Fraction(x)


KNOWN: dict[str, Function] = {
    known.name: known
    for known in (
        Function(
            "relu",
            lambda x: np.maximum(x, 0),
            lambda torch, x: torch.relu(x),
            _relu,
            r"\operatorname{ReLU}",
            "Fukushima 1969, Visual feature extraction by a multilayered network",
            at_zero=0,
            nonnegative=True,
            exact=lambda x: max(x, 0),
        ),
        Function(
            "gelu",
            lambda x: x * special.ndtr(x),
            lambda torch, x: torch.nn.functional.gelu(x),
            _gelu,
            r"\operatorname{GELU}",
            "Hendrycks and Gimpel 2016, Gaussian error linear units, arXiv:1606.08415",
            at_zero=0,
        ),
        Function(
            "gelu_tanh",
            lambda x: 0.5 * x * (1 + np.tanh(SLOPE * (x + float(CUBIC) * x * x * x))),
            lambda torch, x: torch.nn.functional.gelu(x, approximate="tanh"),
            _gelu_tanh,
            r"\operatorname{GELU}_{\tanh}",
            "Hendrycks and Gimpel 2016, Gaussian error linear units, arXiv:1606.08415, section 2",
            at_zero=0,
        ),
        Function(
            "silu",
            lambda x: x * special.expit(x),
            lambda torch, x: torch.nn.functional.silu(x),
            lambda x: x * _sigmoid(x),
            r"\operatorname{SiLU}",
            "Elfwing, Uchibe and Doya 2017, Sigmoid-weighted linear units, arXiv:1702.03118",
            at_zero=0,
        ),
        Function(
            "quick_gelu",
            lambda x: x * special.expit(1.702 * x),
            lambda torch, x: x * torch.sigmoid(1.702 * x),
            lambda x: x * _sigmoid(bounds(QUICK) * x),
            r"\operatorname{GELU}_{\sigma}",
            "Hendrycks and Gimpel 2016, Gaussian error linear units, arXiv:1606.08415, section 2",
            at_zero=0,
        ),
        Function(
            "tanh",
            lambda x: np.tanh(x),
            lambda torch, x: torch.tanh(x),
            _tanh,
            r"\tanh",
            "the hyperbolic tangent",
            at_zero=0,
        ),
        Function(
            "sigmoid",
            lambda x: special.expit(x),
            lambda torch, x: torch.sigmoid(x),
            _sigmoid,
            r"\sigma",
            "the logistic function",
            nonnegative=True,
            exact=lambda x: None if x else Fraction(1, 2),
        ),
        Function(
            "abs",
            lambda x: np.abs(x),
            lambda torch, x: torch.abs(x),
            lambda x: abs(x),
            r"\operatorname{abs}",
            "the absolute value, entry by entry",
            at_zero=0,
            nonnegative=True,
        ),
        Function(
            "softplus",
            lambda x: np.logaddexp(0, x),
            lambda torch, x: torch.nn.functional.softplus(x, threshold=inf),
            lambda x: iv.log(1 + iv.exp(x)),
            r"\operatorname{softplus}",
            "Dugas et al. 2001, Incorporating second-order functional knowledge",
            nonnegative=True,
        ),
        Function(
            "erf",
            lambda x: special.erf(x),
            lambda torch, x: torch.erf(x),
            lambda x: _erf(x),
            r"\operatorname{erf}",
            "the Gauss error function",
            at_zero=0,
        ),
        Function(
            "exp",
            lambda x: np.exp(x),
            lambda torch, x: torch.exp(x),
            lambda x: iv.exp(x),
            r"\exp",
            "the exponential function",
            nonnegative=True,
            at_zero=1,
        ),
        Function(
            "rsqrt",
            lambda x: 1 / np.sqrt(x),
            lambda torch, x: torch.rsqrt(x),
            _rsqrt,
            r"\operatorname{rsqrt}",
            "the reciprocal square root x^(-1/2), of positive numbers",
            nonnegative=True,
            domain="positive",
            exact=_exact_rsqrt,
        ),
        Function(
            "sqrt",
            lambda x: np.sqrt(x),
            lambda torch, x: torch.sqrt(x),
            _sqrt,
            r"\operatorname{sqrt}",
            "the square root, entry by entry",
            at_zero=0,
            nonnegative=True,
            domain="nonnegative",
            exact=_exact_sqrt,
        ),
        Function(
            "reciprocal",
            lambda x: 1 / x,
            lambda torch, x: torch.reciprocal(x),
            _reciprocal,
            r"\operatorname{reciprocal}",
            "the quotient of one by a number, entry by entry",
            domain="nonzero",
            exact=_exact_reciprocal,
        ),
        Function(
            "log",
            lambda x: np.log(x),
            lambda torch, x: torch.log(x),
            _log,
            r"\log",
            "the natural logarithm",
            domain="positive",
            exact=logarithm_of,
        ),
        Function(
            "sin",
            lambda x: np.sin(x),
            lambda torch, x: torch.sin(x),
            lambda x: iv.sin(x),
            r"\sin",
            "the sine of an angle in radians",
            at_zero=0,
        ),
        Function(
            "cos",
            lambda x: np.cos(x),
            lambda torch, x: torch.cos(x),
            lambda x: iv.cos(x),
            r"\cos",
            "the cosine of an angle in radians",
            at_zero=1,
        ),
    )
}
