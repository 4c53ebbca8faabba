"""Functions in terms of one another: gates, differences of scores, angles with π in them."""

from __future__ import annotations

from sympy import HadamardPower, Identity, Matrix, Rational, pi, sqrt

from otimes.algebra.language.defined import CrossEntropy, Quotient, Rotation
from otimes.algebra.language.nonlinear import RowSoftmax
from tests.algebra.decide.points.symbols import (
    E_,
    F_,
    K_,
    PE,
    Claims,
    a,
    m,
    n,
    ones,
    row,
    th,
    x1,
    y1,
)
from tests.algebra.decide.shorthand import f, had

CLAIMS = Claims()
pair, true, false = CLAIMS.pair, CLAIMS.holds, CLAIMS.fails
one = ones(n, m)
cubic = sqrt(2 / pi) * (E_ + Rational(44715, 1000000) * HadamardPower(E_, 3))

# -- gates
pair(
    "gelu_tanh by sigmoid",
    f("gelu_tanh", E_),
    had(E_, f("sigmoid", 2 * cubic)),
    had(E_, f("sigmoid", cubic)),
)
pair(
    "gelu_tanh, x in front",
    f("gelu_tanh", E_),
    had(
        E_,
        one
        + f(
            "tanh",
            sqrt(2 / pi) * had(E_, one + Rational(44715, 1000000) * HadamardPower(E_, 2)),
        ),
    )
    / 2,
    had(E_, one + f("tanh", cubic)),
)
pair(
    "gelu_tanh, its even part",
    f("gelu_tanh", E_) + f("gelu_tanh", -E_),
    had(E_, f("tanh", cubic)),
    E_,
)
pair(
    "sigmoid of a difference",
    f("sigmoid", E_ - F_),
    Quotient(f("exp", E_), f("exp", E_) + f("exp", F_)),
    Quotient(f("exp", F_), f("exp", E_) + f("exp", F_)),
)
pair(
    "softplus of a difference",
    f("softplus", E_ - F_),
    f("log", f("exp", E_) + f("exp", F_)) - F_,
    f("log", f("exp", E_) + f("exp", F_)) - E_,
)
pair(
    "loss of two classes",
    CrossEntropy(row(x1, y1), row(ones(n, 1), 0 * ones(n, 1))),
    f("softplus", y1 - x1),
    f("softplus", x1 - y1),
)
pair("abs of a product", f("abs", had(E_, F_)), had(f("abs", E_), f("abs", F_)), had(E_, F_))

pair(
    "tanh of a sum",
    had(f("tanh", E_ + F_), one + had(f("tanh", E_), f("tanh", F_))),
    f("tanh", E_) + f("tanh", F_),
    had(f("tanh", E_), f("tanh", F_)),
)

# -- softmax of sums
square = had(PE, PE)
pair(
    "half the temperature",
    had(RowSoftmax(2 * E_), square * ones(m, m)),
    square,
    had(square, square * ones(m, m)),
)
pair(
    "three experts",
    had(RowSoftmax(E_ + F_ + K_), had(PE, RowSoftmax(F_ + K_)) * ones(m, m)),
    had(PE, RowSoftmax(F_ + K_)),
    had(PE, RowSoftmax(F_)),
)

# -- angles
pair("sine half a turn on", f("sin", E_ + pi * one), -f("sin", E_), f("sin", E_))
pair("sine a quarter on", f("sin", E_ + pi / 2 * one), f("cos", E_), -f("cos", E_))
pair("cosine a turn on", f("cos", E_ + 2 * pi * one), f("cos", E_), -f("cos", E_))
pair("sine of the supplement", f("sin", pi * one - E_), f("sin", E_), f("cos", E_))
pair("cosine of three quarters", f("cos", 3 * pi / 2 * one), 0 * one, one)
pair("a quarter turn", Rotation(pi / 2), Matrix([[0, -1], [1, 0]]), Matrix([[0, 1], [-1, 0]]))
pair("half a turn", Rotation(a + pi), -Rotation(a), Rotation(a))
true("a whole turn", Rotation(th + 2 * pi * ones(m, 1)), Rotation(th))
pair("cosine of π/3", f("cos", pi / 3 * one), one / 2, sqrt(3) / 2 * one)
pair("sine of 5π/4", f("sin", 5 * pi / 4 * one), -one / sqrt(2), one / sqrt(2))
true("a third of a turn, three times", Rotation(2 * pi / 3) ** 3, Identity(2))
pair(
    "turned by π/6", f("sin", E_ + pi / 6 * one), sqrt(3) / 2 * f("sin", E_) + f("cos", E_) / 2, E_
)
false("a fifth of a turn", f("cos", 2 * pi / 5 * one), one / 2)
false("a third of a turn", f("sin", 2 * pi / 3 * one), 0 * one)
false("a tenth of a radian", f("sin", Rational(1, 10) * one), 0 * one)
false("one over π is no angle", f("sin", one / pi), 0 * one)
false("π squared is no angle", f("cos", pi**2 * one), one)
true("a turn of both", Rotation(pi) * Rotation(pi), Identity(2))
