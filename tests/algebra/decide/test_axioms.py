"""Every axiom holds in numbers, and says enough to be wrong when it is changed."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy

from otimes.algebra.decide.axiom_statements import Axiom, Instance, instance
from otimes.algebra.decide.axioms import AXIOMS, _with_simpler_arguments
from otimes.algebra.decide.counterexample import draw_assignment
from otimes.algebra.decide.satisfy import holds
from otimes.algebra.errors import OtimesError
from otimes.algebra.evaluate.exact import Assignment, array_shape, tree_value
from otimes.algebra.language.functions import KNOWN, value_of
from otimes.algebra.language.intervals import bounds
from otimes.algebra.language.layers import OrderSum
from otimes.algebra.language.linear import Family, matmul
from otimes.algebra.language.nonlinear import Activation, RowSoftmax
from otimes.algebra.language.shapes import inspect
from otimes.algebra.verdict import decide

SEED = 5
DRAWS = 12
COPIED = {"function_congruence", "function_injective", "gram_zero"}  # whose T is S, whose X is 0
COPIED |= {"product_cancel"}
IN_NUMBERS = [name for name in AXIOMS if name != "gelu_erf"]  # it has √2, which is no exact number
TINY = Fraction(1, 10**30)  # the arithmetic has 200 bits; the sums here lose a few of them


def one_hot_rows(rows: int, cols: int, draw: random.Random) -> Any:
    """Return a matrix each row of which chooses a column: all different ones where that can be."""
    places = [draw.randrange(cols) for _ in range(rows)]
    if rows == cols:
        draw.shuffle(places := list(range(cols)))
    return np.array([[int(j == place) for j in range(cols)] for place in places], dtype=object)


def stated(axiom: Axiom) -> Instance:
    """Return the example of an axiom, with squares for what must not be negative.

    What must be positive is an exponential, or is drawn so where a function is defined there only.
    """
    said = axiom.example
    signed = {
        name: Activation("exp", value) if sign == "positive" else sympy.HadamardPower(value, 2)
        for name, value in said.values.items()
        for signed, sign in said.signs
        if signed == value and not (sign == "positive" and is_partial(said)) and sign != "nonzero"
    }
    return instance(axiom.name, 0, said.values | signed)


def provable(axiom: Axiom) -> Instance:
    """Return the example of an axiom, in which what must not be zero certainly is not."""
    said = stated(axiom)
    if axiom.name != "product_cancel":
        return said
    return instance(axiom.name, 0, {**said.values, "w": Activation("exp", said.values["w"])})


def assignments(axiom: Axiom) -> list[Assignment]:
    """Return numbers at which the premises of an axiom hold and both sides have a value."""
    said, draw = stated(axiom), random.Random(SEED)
    equations = [(said.lhs, said.rhs), *said.premises]
    signature = inspect(*[side for pair in equations for side in pair])
    found = []
    while len(found) < DRAWS:
        a = draw_assignment(signature, draw, 3, 3, {})
        assert a is not None
        arrays = dict(a.in_numpy().arrays)
        for name, tensor in signature.tensors.items():
            shape = array_shape(tensor, a)
            if name in ("P", "Q") and said.premises:
                wide = one_hot_rows(*(shape if name == "P" else shape[::-1]), draw)
                arrays[name] = wide if name == "P" else wide.T
            elif name in ("E", "F"):  # E F = I: a unimodular matrix and its inverse
                step = np.eye(*shape, dtype=int).astype(object)
                step[0, -1] += 2 if shape[0] > 1 else 0
                arrays[name] = step if name == "E" else 2 * np.eye(*shape, dtype=int) - step
            elif name == "M":  # a mask: zeros and ones, a one in each row
                arrays[name] = np.vectorize(lambda x: int(x > 0), otypes=[object])(arrays[name])
                arrays[name][:, 0] = 1
            elif name in ("T", "X") and axiom.name in COPIED:
                arrays[name] = arrays.get("S", 0 * arrays[name])
            elif axiom.name == "squares_zero":
                arrays[name] = 0 * arrays[name]
            elif is_partial(said):
                arrays[name] = abs(arrays[name]) + 1
        scalars = {name: abs(value) for name, value in a.scalars.items()}
        a = Assignment(a.sizes, arrays, a.indices, scalars)
        try:
            tree_value(said.lhs, a), tree_value(said.rhs, a)
        except OtimesError:  # a row of zeros has no norm
            continue
        assert holds(said.premises, a), axiom.name
        found.append(a)
    return found


def is_partial(said: Instance) -> bool:
    """Whether a side has a value at some numbers only."""
    functions = said.lhs.atoms(Activation) | said.rhs.atoms(Activation)
    return any(KNOWN[e.name].domain for e in functions if e.name in KNOWN)


def gap(axiom: Axiom, factor: int = 1) -> Fraction:
    """Return an upper bound on how far the sides are apart, over all draws and entries."""
    most = Fraction(0)
    for a in assignments(axiom):
        said = stated(axiom)
        left, right = (tree_value(side, a) for side in (said.lhs, said.rhs))
        for x, y in zip(np.ravel(left), np.ravel(right), strict=True):
            apart = abs(bounds(x) - factor * bounds(y)).b
            most = max(most, Fraction(float(apart)))
    return most


@pytest.mark.parametrize("name", IN_NUMBERS)
def test_an_axiom_holds_in_numbers(name: str) -> None:
    assert gap(AXIOMS[name]) < TINY


@pytest.mark.parametrize("x", [-7, -1, 0, 1, 3])
def test_gelu_is_what_erf_makes_of_it(x: int) -> None:
    with mpmath.workprec(300):
        expected = mpmath.mpf(x) * (1 + mpmath.erf(x / mpmath.sqrt(2))) / 2
        apart = abs(bounds(value_of("gelu", x)) - mpmath.iv.mpf(expected))
    assert apart.b < 1e-30
    (argument,) = (e.argument for e in AXIOMS["gelu_erf"].example.rhs.atoms(Activation))
    assert argument.args[0] == 1 / sympy.sqrt(2)


ZERO_SIDES = {"gram_zero", "squares_zero", "activation_zero", "relu_parts", "activation_odd"}
ZERO_SIDES |= {"shift_power"}


@pytest.mark.parametrize("name", sorted({*IN_NUMBERS} - ZERO_SIDES))
def test_twice_an_axiom_does_not(name: str) -> None:
    assert gap(AXIOMS[name], factor=2) > Fraction(1, 100)


@pytest.mark.parametrize("name", AXIOMS)
def test_an_axiom_is_decided(name: str) -> None:
    said = provable(AXIOMS[name])
    assert decide(said.lhs, said.rhs, said.premises).status == "proved"


@pytest.mark.parametrize("name", [name for name, axiom in AXIOMS.items() if axiom.example.premises])
def test_without_its_premises_an_axiom_is_not_taken(name: str) -> None:
    said = AXIOMS[name].example
    # only masks are drawn as masks, and they satisfy the premise of softmax_mask
    expected = "undecided" if name == "softmax_mask" else "refuted"
    assert decide(said.lhs, said.rhs).status == expected


@pytest.mark.parametrize("name", sorted({*IN_NUMBERS} - ZERO_SIDES))
def test_a_changed_axiom_is_refuted(name: str) -> None:
    said = stated(AXIOMS[name])
    assert decide(said.lhs, matmul(2, said.rhs), said.premises).status == "refuted"


SIGNED = [name for name, axiom in AXIOMS.items() if axiom.example.signs]


@pytest.mark.parametrize("name", SIGNED)
def test_the_signs_that_an_axiom_asks_for_are_needed(name: str) -> None:
    """Without them the sides differ, except where the claim itself is about such numbers only."""
    said = AXIOMS[name].example
    presupposed = {e.argument for e in said.lhs.atoms(Activation) | said.rhs.atoms(Activation)}
    signed = {e for e, _ in said.signs} <= presupposed and is_partial(said)
    expected = "proved" if signed else "refuted"
    assert decide(said.lhs, said.rhs, said.premises).status == expected


def test_axioms_say_where_they_come_from() -> None:
    assert all(axiom.says and axiom.source for axiom in AXIOMS.values())
    assert all(axiom.to_json()["tex"] for axiom in AXIOMS.values())
    assert len({axiom.says for axiom in AXIOMS.values()}) == len(AXIOMS)


def test_an_entrywise_power_of_zero_is_no_square() -> None:
    n = sympy.Symbol("n", integer=True, positive=True)
    X, A = sympy.MatrixSymbol("X", n, n), sympy.MatrixSymbol("A", n, n)
    ones = Activation("relu", sympy.HadamardPower(X, sympy.Integer(0)))
    assert decide(matmul(ones, Activation("relu", A)), A).status == "refuted"


def test_a_hypothesis_about_a_sum_over_orders_simplifies_an_argument() -> None:
    """The sum has an attribute `count`, which is no method."""
    L, n = sympy.symbols("L n", integer=True, positive=True)
    k, order = sympy.symbols("k order", integer=True)
    A = sympy.MatrixSymbol("A", n, n)
    paths = OrderSum(Family("F", (L,), n, n)[k], (k, L), order)
    simpler = _with_simpler_arguments(RowSoftmax(paths), [(paths, A)])
    assert RowSoftmax(A) in [*simpler]
