"""What the checker reads says what the author wrote: both are evaluated at random small sizes."""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import sympy

from otimes.algebra.language import cut_ranges, index_arithmetic, split_orders
from otimes.algebra.language.binders import free_symbols, names_in
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import Family, HeadSum
from otimes.algebra.verdict import decide
from otimes.proofs.replay import check
from tests.algebra.decide.test_unrolled import TRUE, decided
from tests.proofs.certificates import claims
from tests.proofs.plain_values import Certified, Numbers, Other, Plain, inverses, powers
from tests.proofs.random_trees import UndefinedError

LONG = os.environ.get("OTIMES_LONG") == "1"
LARGEST = 12  # of sizes that are compared
WORLDS = 8 if LONG else 2
EVERY = 1 if LONG else 12


def compared(made: dict[str, Any], sides: tuple[Any, Any], own: int, seed: int) -> str:
    """Return "same", "different", or why a statement and its certificate are not compared.

    The statement has `own` hypotheses; those that follow in the certificate were added.
    """
    if any(n.is_Integer and n > LARGEST for e in sides for n in _lengths_in(e)):
        return "too large"
    draw = random.Random(seed)
    names = {str(name) for name in names_in(*sides)}
    sizes = {str(s): draw.choice((1, 2, 2, 3)) for e in sides for s in _sizes(e)}
    sizes |= {name: draw.choice((1, 2, 3)) for name in made["sizes"] if name not in sizes}
    numbers = Numbers(sizes, seed)
    world = Certified(made, numbers)
    if max(_lengths(made["tensors"], world), default=0) > LARGEST:
        return "too large"
    for number, (name, *_) in enumerate(made["tensors"]):
        if name in names:
            continue
        if name.endswith("⁻¹"):
            world.defined[name] = inverses(world, name)
        elif name.endswith("^"):
            world.defined[name] = powers(world, number)
        else:
            return "other names"
    counts = [world.number(count) for _, count in made["indices"]]
    if min(counts, default=1) < 1:
        return "no value"
    at = [draw.randrange(count) for count in counts]
    by_name = dict(zip([name for name, _ in made["indices"]], at, strict=True))
    free = {s: by_name[s.name] for e in sides for s in e.free_symbols if s.name in by_name}
    known = {*sizes, *by_name, *[name for name, _ in made["scalars"]]}
    if any(s.name not in known for e in sides for s in free_symbols(e)):
        return "an instance"  # of a certificate without a free index of the claim
    plain = Plain(numbers, world)
    try:
        if world.defined and not all(map(world.holds, made["given"][own:])):
            return "different"  # an added hypothesis is not about powers or inverses
        theirs = [world.value(made[side], at) for side in ("lhs", "rhs")]
        mine = [plain.value(side, free) for side in sides]
    except (UndefinedError, ZeroDivisionError):
        return "no value"
    except Other as what:
        return f"not evaluated: {what}"
    return "same" if theirs == mine else "different"


def _lengths(tensors: Any, world: Certified) -> list[int]:
    lengths = [each for _, counts, *shape in tensors for each in (*counts, *shape)]
    return [world.number(each) for each in lengths if each != "integers"]


def _lengths_in(e: Any) -> list[Any]:
    """Return the numbers of rows and columns of the matrices in an expression."""
    parts = [p for p in sympy.preorder_traversal(e) if getattr(p, "is_Matrix", False)]
    return [sympy.sympify(n) for part in parts for n in part.shape]


def _sizes(e: Any) -> set[Any]:
    """Return the symbols of the sizes of matrices, and of what indices run over."""
    return {s for n in _lengths_in(e) for s in n.free_symbols}


def statements() -> dict[str, Any]:
    """Return the claims by name: sides, number of hypotheses, and how they are decided."""
    found: dict[str, Any] = {
        name: (each[:2], len(each[2]), lambda each=each: decided(each))
        for name, each in TRUE.items()
    }
    for name, (lhs, rhs, given) in claims().items():
        found[name] = (
            (lhs, rhs),
            len(given),
            lambda lhs=lhs, rhs=rhs, given=given: decide(lhs, rhs, given),
        )
    return found


def test_a_certificate_states_what_was_claimed() -> None:
    said, wrong = Counter[str](), []
    for number, (name, (sides, own, find)) in enumerate(statements().items()):
        if number % EVERY:
            continue
        made = find().certificate
        if made is None or "cases" in made:
            said["no certificate, or cases"] += 1
            continue
        for seed in range(WORLDS):
            how = compared(made, sides, own, seed)
            said[how.split(":")[0]] += 1
            wrong += [(name, seed)] * (how == "different")
    assert not wrong
    assert said["same"] > 0.8 * sum(said.values()), said


def plant(monkeypatch: pytest.MonkeyPatch, module: ModuleType, old: str, new: str) -> None:
    """Put a mistake in a module, everywhere where its functions are used."""
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    assert source.count(old) == 1
    made = ModuleType(module.__name__)
    exec(compile(source.replace(old, new), str(module.__file__), "exec"), made.__dict__)
    for other in [each for name, each in sys.modules.items() if name.startswith("otimes.")]:
        for name, value in list(vars(other).items()):
            if getattr(value, "__module__", "") == module.__name__ and hasattr(made, name):
                monkeypatch.setattr(other, name, getattr(made, name))


n, L, p, q, k = sympy.symbols("n L p q k", integer=True, positive=True)
l, i, j, s = sympy.symbols("l i j s", integer=True)  # noqa: E741 (a layer)
F, G = Family("F", (L + 1,), n, n), Family("G", (p + q,), n, n)
x, A = sympy.MatrixSymbol("x", n, 1), sympy.MatrixSymbol("A", n, n)
PLANTED = [
    (
        cut_ranges,
        "not e.reverse])",
        "e.reverse])",
        (
            sympy.Inverse(LayerProduct(F[l + 1], (l, L))),
            LayerProduct(sympy.Inverse(F[l + 1]), (l, L)),
        ),
    ),
    (
        cut_ranges,
        "later = _over(e, _at(e, first + index)",
        "later = _over(e, _at(e, index)",
        (
            LayerProduct(G[l], (l, p + q)),
            LayerProduct(G[l], (l, q)) * LayerProduct(G[l], (l, p)),
        ),
    ),
    (
        split_orders,
        "following = substituted(first.body, {first.index: layer + first.count})",
        "following = substituted(first.body, {first.index: layer})",
        (
            OrderSum(G[l], (l, p + q), k),
            HeadSum(OrderSum(G[l], (l, q), k - s) * OrderSum(G[l], (l, p), s), (s, k + 1)),
        ),
    ),
    (
        index_arithmetic,
        "strict = matadd(mask, matmul(-1, sympy.Identity(count)))",
        "strict = mask",
        (A[i, 0] * sympy.Sum(x[j, 0], (j, 0, i - 1)), A[i, 0] * sympy.Sum(x[j, 0], (j, 0, i))),
    ),
]


@pytest.mark.parametrize(("module", "old", "new", "false"), PLANTED)
def test_a_mistake_in_the_elaboration_shows(
    module: ModuleType, old: str, new: str, false: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The false claim is proved then, and the checker accepts: only the comparison tells."""
    assert decide(*false).status != "proved"
    plant(monkeypatch, module, old, new)
    made = decide(*false).certificate
    assert made is not None
    check(made)
    assert "different" in [compared(made, false, 0, seed) for seed in range(8)]
