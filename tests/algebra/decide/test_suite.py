"""The suite of identities: each verdict, and each counterexample held by another evaluator."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import reduce
from typing import Any

import numpy as np
import pytest
import sympy
from sympy import KroneckerProduct, MatAdd, MatMul, MatrixSymbol, Symbol

from otimes.algebra.language.shapes import inspect
from otimes.algebra.verdict import decide
from tests.algebra.decide.suite import BEYOND, KINDS, SUITE, Identity, Kind
from tests.algebra.decide.suite.plain import Plain
from tests.algebra.decide.suite.renaming import canonical

every_kind = pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
TRUE = [identity for identity in SUITE if identity.truth]
FALSE = [identity for identity in SUITE if not identity.truth]


def test_the_suite_is_large_and_of_every_kind() -> None:
    assert len(TRUE) >= 200
    assert len(FALSE) >= 140
    assert len(KINDS) == 12
    for kind in KINDS:
        truths = [identity.truth for identity in kind.identities]
        assert truths.count(True) >= 20, kind.name
        assert truths.count(False) >= 10, kind.name
    assert len({repr(identity) for identity in SUITE}) == len(SUITE)


def test_no_two_entries_are_alike() -> None:
    met: dict[str, Identity] = {}
    for identity in SUITE:
        other = met.setdefault(canonical(identity), identity)
        assert other is identity, f"{identity!r} is {other!r} in other letters"


def test_no_entry_is_trivial() -> None:
    for identity in SUITE:
        assert identity.lhs != identity.rhs, identity


@contextmanager
def named(identity: Identity) -> Iterator[None]:
    """Name the identity in a failure."""
    try:
        yield
    except Exception as failure:
        failure.add_note(repr(identity))
        raise


@every_kind
def test_verdict(kind: Kind) -> None:
    for identity in kind.identities:
        with named(identity):
            verdict = decide(identity.lhs, identity.rhs, identity.given)
            assert verdict.status == ("proved" if identity.truth else "refuted"), verdict
            if not identity.truth:
                confirm(identity, verdict.counterexample)


@every_kind
def test_verdict_when_nothing_is_evaluated(kind: Kind) -> None:
    """The same, with every product of two, every power a product, and no constructor's help."""
    for identity in kind.identities:
        lhs, rhs, *given = (
            stated(side)
            for side in (identity.lhs, identity.rhs, *[s for pair in identity.given for s in pair])
        )
        with named(identity):
            verdict = decide(lhs, rhs, list(zip(given[::2], given[1::2], strict=True)))
            assert verdict.status == ("proved" if identity.truth else "refuted"), verdict


@pytest.mark.parametrize("identity", BEYOND, ids=repr)
def test_what_is_true_beyond_equations_is_never_refuted(identity: Identity) -> None:
    assert decide(identity.lhs, identity.rhs, identity.given, budget=0.5).status != "refuted"


@every_kind
def test_what_is_called_true_holds_at_random_numbers(kind: Kind) -> None:
    """The suite itself is tried: by the other evaluator, before any verdict."""
    for identity in kind.identities:
        if identity.truth and not identity.given:
            with named(identity):
                assert_holds_at_random_numbers(identity)


def assert_holds_at_random_numbers(identity: Identity) -> None:
    draw = random.Random(5)
    signature = inspect(identity.lhs, identity.rhs)
    tried = 0
    for _ in range(12):
        sizes = {name: draw.choice((1, 2, 2, 3)) for name in signature.sizes}
        if any(power.exp.q > 1 for power in _powers(identity)):
            sizes = {
                name: 16 if name == "k" else 2 for name in sizes
            }  # √k and its root are numbers
        if any(_size(count, sizes) <= index for count, index in signature.fixed.items()):
            continue
        indices = {
            name: draw.randrange(_size(count, sizes))
            for name, (_, count) in signature.indices.items()
        }
        scalars = {name: draw.randint(1, 4) for name in signature.scalars}
        arrays = {name: _drawn(tensor, sizes, draw) for name, tensor in signature.tensors.items()}
        plain = Plain({**sizes, **indices, **scalars}, arrays)
        with suppress(ZeroDivisionError):  # a singular matrix has no inverse
            assert plain.value(identity.lhs) == plain.value(identity.rhs)
            tried += 1
        if tried == 3:
            return
    assert tried


def confirm(identity: Identity, found: Any) -> None:
    """Hold a counterexample against the definitions, and paste it into NumPy."""
    numbers = {**found.sizes, **found.indices, **found.scalars}
    named = {symbol.name: value for symbol, value in numbers.items()}
    plain = Plain(named, found.arrays)
    left, right = plain.value(identity.lhs), plain.value(identity.rhs)
    if found.entry is not None:
        left, right = (side[found.entry[0]][found.entry[1]] for side in (left, right))
    assert (left, right) == (found.lhs, found.rhs)
    assert left != right
    for pair in identity.given:
        for one_side, other in _at_every_index(pair, plain):
            assert one_side == other, "a hypothesis does not hold"
    sides = (identity.lhs, identity.rhs, *[side for pair in identity.given for side in pair])
    names = {each.name for side in sides for each in side.atoms(MatrixSymbol)}
    assert names <= found.arrays.keys()
    pasted: dict[str, Any] = {"np": np}
    exec(str(found), pasted)
    for name, value in named.items():
        assert pasted[name] == value
    for name, array in found.arrays.items():
        assert np.array_equal(pasted[name], array)


def test_a_wrong_counterexample_is_not_confirmed() -> None:
    identity = FALSE[0]
    found = decide(identity.lhs, identity.rhs).counterexample
    assert found is not None
    confirm(identity, found)
    for name in found.arrays:
        found.arrays[name] = 0 * found.arrays[name]
    with pytest.raises(AssertionError):
        confirm(identity, found)


def _at_every_index(pair: tuple[Any, Any], plain: Plain) -> list[tuple[Any, Any]]:
    """Return both sides of a hypothesis at every value of its free indices."""
    worlds = [plain]
    for name, (_, count) in inspect(*pair).indices.items():
        worlds = [
            Plain({**world.numbers, name: k}, world.arrays)
            for world in worlds
            for k in range(plain.size(count))
        ]
    return [(world.value(pair[0]), world.value(pair[1])) for world in worlds]


def stated(e: Any) -> Any:
    """Return an expression built anew, unevaluated: factors two by two, powers as products."""
    if not e.args or isinstance(e, Symbol | MatrixSymbol | sympy.ImmutableDenseMatrix):
        return e
    if isinstance(e, sympy.Inverse):
        return sympy.Inverse(stated(e.args[0]))
    if isinstance(e, sympy.MatPow) and e.exp.is_Integer and e.exp > 1:
        base = stated(e.base)
        return reduce(_two, [base] * int(e.exp))
    args = [stated(a) if isinstance(a, sympy.Expr) else a for a in e.args]
    if isinstance(e, MatMul):
        return reduce(_two, reversed(args), None)
    if isinstance(e, MatAdd):
        return reduce(lambda x, y: MatAdd(x, y, evaluate=False), args)
    if isinstance(e, KroneckerProduct):
        return reduce(lambda x, y: sympy.Basic.__new__(KroneckerProduct, x, y), args)
    if isinstance(e, sympy.HadamardProduct):
        return sympy.HadamardProduct(*args, evaluate=False)
    if isinstance(e, sympy.Add | sympy.Mul | sympy.Pow):
        return type(e)(*args, evaluate=False)
    return type(e)(*args) if isinstance(e, sympy.MatrixExpr) else e


def _two(right: Any, left: Any) -> Any:
    return left if right is None else MatMul(left, right, evaluate=False)


def _powers(identity: Identity) -> set[Any]:
    return identity.lhs.atoms(sympy.Pow) | identity.rhs.atoms(sympy.Pow)


def _size(count: Any, sizes: dict[str, int]) -> int:
    return Plain(sizes, {}).size(count)


def _drawn(tensor: Any, sizes: dict[str, int], draw: random.Random) -> Any:
    counts = () if isinstance(tensor, MatrixSymbol) else tensor.counts
    shape = [_size(size, sizes) for size in (*counts, *tensor.shape)]
    flat = [draw.randint(-3, 3) for _ in range(int(np.prod(shape)))]
    return np.array(flat, dtype=object).reshape(shape)
