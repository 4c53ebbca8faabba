"""Moves: small rewrites tried by the search for steps, in the order given by `strategies`.

A move is given one subexpression and proposes changes, each the use of one named rule. Moves need
not be trusted: every step is later matched with its rule and decided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, permutations
from typing import Any, NamedTuple

import sympy
from sympy import (
    BlockMatrix,
    HadamardProduct,
    Identity,
    KroneckerProduct,
    MatAdd,
    MatMul,
    OneMatrix,
    Sum,
    Symbol,
    Trace,
    Transpose,
)

from otimes.algebra.errors import OtimesError
from otimes.algebra.language import coefficients
from otimes.algebra.language.linear import ConcatHeads, Family, HeadSum, StackHeads
from otimes.algebra.language.trees import key, rebuilt
from otimes.algebra.language.unicode import unicode_text
from otimes.algebra.rules import RULES
from otimes.algebra.rules.given import hypotheses
from otimes.algebra.rules.products import coefficient, traces, without_traces
from otimes.algebra.rules.rule import (
    BINDERS,
    NAMES,
    Path,
    bound,
    is_matrix,
    mentions,
    product,
    renamed,
    split_scalars,
    tensor,
)
from otimes.algebra.rules.structure import rows_of


class Change(NamedTuple):
    """A proposal: the part at `path` below a node becomes `new`, by the rule of this name."""

    rule: str
    path: Path
    reverse: bool
    new: Any


Move = Callable[[Any, "Scope"], "list[Change] | None"]


def index_names(*expressions: Any) -> tuple[Any, ...]:
    """Return the symbols available as indices of sums, those already used first."""
    used = {index for e in expressions for x in e.atoms(*BINDERS) for index in bound(x)}
    spare = [Symbol(name, integer=True) for name in ("h", "g", "f")]
    named = (Symbol, sympy.MatrixSymbol, Family)
    known = {s.name for e in expressions for s in e.atoms(*named)}
    plain = [index for index in used if not isinstance(index, sympy.Dummy)]  # dummies share names
    first = sorted(plain, key=lambda index: str(index.name))
    return (*first, *[s for s in (*spare, *NAMES) if s.name not in known])


@dataclass(frozen=True, slots=True)
class Scope:
    """The context of a move: symbols for renamed indices, and the hypotheses."""

    names: tuple[Any, ...] = ()
    given: tuple[tuple[Any, Any], ...] = ()


def by_hypothesis(part: Any, search: Scope) -> list[Change] | None:
    """Apply a hypothesis, from its longer side to its shorter side."""
    for name, rule in hypotheses(search.given).items():
        new = next(rule.results(part), None)
        if new is not None:
            return [Change(name, (), False, new)]
    return None


def open_hypothesis(part: Any, search: Scope) -> list[Change] | None:
    """Apply a hypothesis that replaces a symbol by a Kronecker product, or a product by a sum."""
    for number, pair in enumerate(search.given, 1):
        for old, new in (pair, pair[::-1]):
            if part == old and type(new) is KroneckerProduct and not new.has(old):
                return [Change(f"given_{number}", (), True, new)]
            if type(part) is type(old) is MatMul and new.has(MatAdd) and not old.has(MatAdd):
                changes = _opened_in_product(f"given_{number}", part, old, new)
                if changes is not None:
                    return changes
    return None


def _opened_in_product(name: str, part: Any, old: Any, new: Any) -> list[Change] | None:
    count = len(old.args)
    for k in range(len(part.args) - count + 1):
        if part.args[k : k + count] == old.args and not new.has(old.args[0]):
            if part == old:
                return [Change(name, (), True, new)]
            grouped = product(*part.args[:k], old, *part.args[k + count :])
            return [Change("mul_assoc", (), True, grouped), Change(name, (k,), True, new)]
    return None


def apart(part: Any, search: Scope) -> list[Change] | None:
    """Rename the index of a sum if another factor of the product uses the same index."""
    for k, x in enumerate(part.args):
        if type(x) not in BINDERS:
            continue
        others = [y for j, y in enumerate(part.args) if j != k]
        taken = {s for y in others for s in y.free_symbols}
        taken |= {s for y in others for z in y.atoms(*BINDERS) for s in bound(z)}
        if taken & set(bound(x)):
            free = [s for s in search.names if s not in taken and not _touches(x, s)]
            names = [free.pop(0) if s in taken and free else s for s in bound(x)]
            new = renamed(x, names)
            if new is not None and new != x:
                name = "sum_rename" if type(x) is Sum else "index_rename"
                return [Change(name, (k,), False, new)]
    return None


def concat_first(part: Any, search: Scope) -> list[Change] | None:
    """Under a trace, rotate a product so that ConcatHeads comes before StackHeads."""
    inner = part.args[0]
    if type(inner) is MatMul and (type(inner.args[0]), type(inner.args[-1])) == (
        StackHeads,
        ConcatHeads,
    ):
        turned = product(inner.args[-1], *inner.args[:-1])
        return [Change("trace_cyclic", (), False, Trace(turned))]
    return None


def _touches(e: Any, symbol: Any) -> bool:
    return mentions(e, [symbol]) or any(symbol in bound(z) for z in e.atoms(*BINDERS))


def _neighbours(part: Any) -> Iterator[tuple[int, Any, Any, int]]:
    """Yield (k, factor k, an adjacent factor, the axis of the latter that factor k multiplies)."""
    for k, (x, y) in enumerate(pairwise(part.args)):
        yield k, x, y, 0
        yield k + 1, y, x, 1


def split_special(part: Any, search: Scope) -> list[Change] | None:
    """Rewrite ones next to a Kronecker product as a Kronecker product, and apply kron_mul_kron."""
    for k, x, y, axis in _neighbours(part):
        if type(x) is OneMatrix and type(y) is KroneckerProduct:
            split = _ones_like(x, [z.shape[axis] for z in y.args], 1 - axis)
            changes = _mixed(part, k, split, "kron_ones_ones")
            if changes is not None:
                return changes
    return None


def _mixed(part: Any, k: int, split: Any, name: str) -> list[Change] | None:
    """Replace factor k by an equal Kronecker product, and multiply factor by factor."""
    if split is None:
        return None
    opened = rebuilt(part, [*part.args[:k], split, *part.args[k + 1 :]])
    mixed = next(RULES["kron_mul_kron"].results(opened), None)
    if mixed is None:
        return None
    return [*_reverse_kron(split, name, (k,)), Change("kron_mul_kron", (), False, mixed)]


def _ones_like(x: Any, sizes: list[Any], axis: int) -> Any:
    """Return a matrix of ones as ⊗ of ones with these sizes along an axis, or None."""
    other = x.shape[1 - axis]
    if sympy.Mul(*sizes) != x.shape[axis]:
        return None
    rest = sizes if sympy.Mul(*sizes) == other else [*[sympy.S.One] * (len(sizes) - 1), other]
    pairs = zip(sizes, rest, strict=True)
    return tensor(*[OneMatrix(*((a, b) if axis == 0 else (b, a))) for a, b in pairs])


def _reverse_kron(split: Any, name: str, path: Path) -> list[Change]:
    """Return the changes that rewrite one identity or matrix of ones as ⊗, factor by factor."""
    states = [split]
    while type(states[-1]) is KroneckerProduct:
        merged = next(RULES[name].results(states[-1]), None)
        if merged is None:
            return []
        states.append(merged)
    return [Change(name, path, True, new) for new in reversed(states[:-1])]


def beside_one(part: Any, search: Scope) -> list[Change] | None:
    """Rewrite X next to A ⊗ b, b of size one on that side, as X ⊗ I₁, and multiply."""
    for k, x, y, axis in _neighbours(part):
        if is_matrix(x) and type(x) is not KroneckerProduct and type(y) is KroneckerProduct:
            wide = [z.shape[axis] != 1 for z in y.args]
            if sum(wide) == 1:
                split = tensor(*[x if is_wide else Identity(1) for is_wide in wide])
                changes = _mixed(part, k, split, "kron_one")
                if changes is not None:
                    return changes
    return None


def ones_in_blocks(part: Any, search: Scope) -> list[Change] | None:
    """Split ones next to a block matrix into the same blocks."""
    for k, x, y, axis in _neighbours(part):
        if type(x) is OneMatrix and type(y) is BlockMatrix:
            cut = [[OneMatrix(x.shape[0], row[0].shape[0]) for row in rows_of(y)]]
            if axis == 1:
                cut = [[OneMatrix(z.shape[1], x.shape[1])] for z in rows_of(y)[0]]
            if len(cut) * len(cut[0]) > 1:
                return [Change("block_ones", (k,), True, BlockMatrix(cut))]
    return None


def blocks_together(part: Any, search: Scope) -> list[Change] | None:
    """Factor out the common left factors of a sum of products that end in block matrices."""
    if all(type(x) is MatMul and type(x.args[-1]) is BlockMatrix for x in part.args):
        fronts = {x.args[:-1] for x in part.args}
        if len(fronts) == 1:
            (front,) = fronts
            together = product(*front, MatAdd(*[x.args[-1] for x in part.args], evaluate=False))
            if any(map(is_matrix, front)):
                return [Change("mul_add", (), True, together)]
    return None


def split_in_hadamard(part: Any, search: Scope) -> list[Change] | None:
    """Rewrite I as I ⊗ I in a Hadamard product with a Kronecker product."""
    krons = [y for y in part.args if type(y) is KroneckerProduct]
    for k, x in enumerate(part.args):
        if type(x) is Identity and krons:
            sizes = [z.shape for z in krons[0].args]
            if all(r == c for r, c in sizes) and sympy.Mul(*[r for r, _ in sizes]) == x.shape[0]:
                split = tensor(*[Identity(r) for r, _ in sizes])
                return _reverse_kron(split, "kron_one_one", (k,))
    return None


def split_ones(part: Any, search: Scope) -> list[Change] | None:
    """Rewrite a matrix of ones in a product as a column times a row."""
    _, matrices = split_scalars(part)
    if len(matrices) > 1:
        for k, x in enumerate(part.args):
            if type(x) is OneMatrix and 1 not in x.shape:
                new = next(RULES["ones_outer"].results(x))
                return [Change("ones_outer", (k,), False, new)]
    return None


def join_ones(part: Any, search: Scope) -> list[Change] | None:
    """Rewrite a product that is a column of ones times a row of ones as one matrix."""
    numbers, matrices = split_scalars(part)
    if len(matrices) == 2 and all(type(x) is OneMatrix for x in matrices):
        x, y = matrices
        if x.shape[1] == 1 and 1 not in (x.shape[0], y.shape[1]):
            new = OneMatrix(x.shape[0], y.shape[1])
            if not numbers:
                return [Change("ones_outer", (), True, new)]
            grouped = product(*numbers, product(x, y))
            return [
                Change("mul_assoc", (), True, grouped),
                Change("ones_outer", (len(numbers),), True, new),
            ]
    return None


def least_rotation(part: Any, search: Scope) -> list[Change] | None:
    """Rotate, and perhaps transpose, the product under a trace to its least form by `order`."""
    inner = part.args[0]
    body = inner.body if type(inner) is HeadSum else inner

    def again(new: Any) -> Any:
        return HeadSum(new, *inner.limits) if type(inner) is HeadSum else new

    if type(body) is HadamardProduct and order(_turned(body)) < order(body):
        return [Change("trace_transpose", (), True, Trace(again(Transpose(body))))]
    if type(body) is not MatMul or not all(map(is_matrix, body.args)):
        return None
    here = list(body.args)
    back = [_turned(x) for x in reversed(here)]
    ways = [
        (way[k:] + way[:k], turned)
        for turned, way in ((0, here), (1, back))
        for k in range(len(here))
    ]
    best, turned = min(ways, key=lambda way: ([order(x) for x in way[0]], way[1]))
    if best == here:
        return None
    if not turned:
        return [Change("trace_cyclic", (), False, Trace(again(product(*best))))]
    at_body = (0, 0) if type(inner) is HeadSum else (0,)
    flipped = product(*[Transpose(x) for x in reversed(here)])
    return [
        Change("trace_transpose", (), True, Trace(again(Transpose(body)))),
        Change("transpose_mul", at_body, False, flipped),
    ]


def _turned(x: Any) -> Any:
    """Return the transpose, with transposes moved to the leaves."""
    kind = type(x)
    if kind is Transpose:
        return x.args[0]
    if kind is Identity:
        return x
    if kind is OneMatrix:
        return OneMatrix(*reversed(x.shape))
    if kind in (HadamardProduct, KroneckerProduct):
        turned = [_turned(y) for y in x.args]
        return rebuilt(x, sorted(turned, key=order) if kind is HadamardProduct else turned)
    return Transpose(x)


def diagonal_way(part: Any, search: Scope) -> list[Change] | None:
    """Replace I ∘ A by I ∘ Aᵀ if the latter comes first by `order`."""
    if any(type(x) is Identity for x in part.args):
        for k, x in enumerate(part.args):
            if type(x) is Transpose or (type(x) is not Identity and order(_way(x)) < order(x)):
                turned = rebuilt(part, [*part.args[:k], Transpose(x), *part.args[k + 1 :]])
                return [Change("hadamard_one_transpose", (), False, turned)]
    return None


def _way(x: Any) -> Any:
    if type(x) is MatMul and all(map(is_matrix, x.args)):
        return product(*[_turned(y) for y in reversed(x.args)])
    return _turned(x) if type(x) is KroneckerProduct else x


def ordered(name: str) -> Move:
    """Return the move that sorts the arguments by the commutativity rule of this name."""

    def move(part: Any, _: Scope) -> list[Change] | None:
        arguments = sorted(part.args, key=order)
        if arguments == list(part.args):
            return None
        return [Change(name, (), False, rebuilt(part, arguments))]

    return move


def ordered_sum(part: Any, search: Scope) -> list[Change] | None:
    """Bring a sum to standard form: the order and names of its indices, the order of factors."""
    is_head_sum = type(part) is HeadSum
    if len(part.limits) > (4 if is_head_sum else 5):
        return None
    if len(set(bound(part))) != len(part.limits):
        return None
    names = [s for s in search.names if not mentions(part, [s])][: len(part.limits)]
    ways = []
    for limits in permutations(part.args[1:]):
        turned = rebuilt(part, [part.args[0], *limits])
        named = renamed(turned, names) if bound(turned) != names else turned
        if named is not None:
            body = named.args[0]
            best = canonical_number(body) if type(body) in (sympy.Mul, sympy.Pow) else body
            final = rebuilt(named, [best or body, *named.args[1:]])
            ways.append((order(final), turned, named, final))
    _, *states = min(ways, key=lambda way: way[0], default=(None, part, part, part))
    rules = ["sum_comm", "sum_rename", "scalar_arith"]
    if is_head_sum:
        rules = ["head_sum_comm", "index_rename"]
    changes = []
    for name, old, new in zip(rules, [part, *states], states, strict=False):
        of_body = name == "scalar_arith"
        if old != new:
            changes.append(Change(name, (0,) * of_body, False, new.args[0] if of_body else new))
    return changes or None


def arithmetic(part: Any, search: Scope) -> list[Change] | None:
    """Rewrite a scalar as a sum of monomials, or a quotient of two such sums."""
    if type(part) not in (sympy.Add, sympy.Mul, sympy.Pow):
        return None
    best = canonical_number(part)
    if best is None or best == part:
        return None
    return [Change("scalar_arith", (), False, best)]


@lru_cache(maxsize=4096)
def canonical_number(number: Any) -> Any:
    """Return a scalar as a sum of monomials, or a quotient of two; None if it is not supported."""
    (plain,) = without_traces(number)  # in which the symbols are found quickly
    names = {key(s): s for s in plain.free_symbols}
    positive = {name for name, s in names.items() if s.is_positive}
    names.update({f"tr({k})": t for k, t in enumerate(dict.fromkeys(traces(number)))})
    try:
        value = coefficients.from_sympy(plain, positive)
    except OtimesError:
        return None
    simple = coefficients.to_sympy(value)
    if isinstance(value, coefficients.Scalar) and value.denominator != {coefficients.ONE: 1}:
        simple = sympy.cancel(simple)
    return simple.xreplace({s: names[s.name] for s in simple.free_symbols if s.name in names})


@lru_cache(maxsize=65536)
def order(e: Any) -> tuple[int, str]:
    """Return the key for sorting terms and factors: the length of the text, then the text."""
    text = unicode_text(coefficient(e)[1]) if type(e) is MatMul else unicode_text(e)
    return len(text), text + unicode_text(e)
