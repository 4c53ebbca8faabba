"""Finding a chain of named rules between two sides of a proved equation.

`explain` proposes and `Derivation.check` disposes. Both sides are rewritten, rule by rule, until
they meet; the shortest way through everything that was met on either side is the chain. Where the
two sides have a part in common, only what differs is explained. No chain found is None, and says
nothing about the truth of the equation: that is the judge's business.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import permutations
from typing import Any, NamedTuple

import sympy
from sympy import (
    HadamardProduct,
    Identity,
    KroneckerProduct,
    MatAdd,
    MatMul,
    OneMatrix,
    Symbol,
    Trace,
    Transpose,
)

from algebra import scalars
from algebra.decide import decide
from algebra.derivation import Derivation, Step, one_step
from algebra.errors import OtimesError
from algebra.language import ConcatHeads, Family, HeadSum, StackHeads
from algebra.rules import RULES
from algebra.rules.given import as_pair, hypotheses
from algebra.rules.heads import bound, renamed
from algebra.rules.products import coefficient, traces, without_traces
from algebra.rules.rule import (
    Path,
    children,
    is_matrix,
    mentions,
    product,
    rebuilt,
    replaced,
    split_scalars,
    tensor,
)
from algebra.text import unicode_text

SECONDS = 20.0
MAX_STEPS = 600  # rewrites of one side before it is left as it is
MAX_NODES = 2_000  # of one side, and how deep it may be
MAX_DEPTH = 60
MAX_SHORTCUTS = 60  # chains longer than this are not searched for steps that skip others


def explain(
    lhs: Any, rhs: Any, budget: float | None = None, given: Sequence[Any] = ()
) -> Derivation | None:
    """Return a chain of named steps from lhs to rhs, each of them decided, or None.

    `budget`: seconds after which the search gives up (20 when None). `given`: equations that hold
    besides, as pairs or `sympy.Eq`; a step that uses the first of them is called `given_1`.

    >>> from sympy import Identity, MatrixSymbol, Symbol
    >>> from algebra.language import kron, matmul
    >>> n, d = Symbol("n"), Symbol("d")
    >>> A, W = MatrixSymbol("A", n, n), MatrixSymbol("W", d, d)
    >>> print(explain(matmul(kron(A, Identity(d)), kron(Identity(n), W)), kron(A, W)))
      (A ⊗ I_d) (I_n ⊗ W)
    = A I_n ⊗ I_d W         kron_mul_kron
    = A ⊗ W                 one_mul, mul_one
    """
    if not (isinstance(lhs, sympy.Basic) and isinstance(rhs, sympy.Basic)):
        return None
    if _is_large(lhs) or _is_large(rhs):
        return None
    pairs = tuple(as_pair(each) for each in given)
    until = time.monotonic() + (SECONDS if budget is None else budget)
    search = _Search(lhs, rhs, until, pairs)
    steps = search.chain(lhs, rhs)
    if steps is None:
        return None
    steps = [replace(step, given=pairs) for step in steps]
    steps = [step.turned().turned() if step.reverse else step for step in steps]
    derivation = Derivation(lhs, rhs, tuple(steps))
    return derivation if derivation.check() else None


def _is_large(e: Any) -> bool:
    """Return whether a tree has more nodes, or is deeper, than is worth a chain of steps."""
    nodes, stack = 0, [(e, 0)]
    while stack:
        part, depth = stack.pop()
        nodes += 1
        if nodes > MAX_NODES or depth > MAX_DEPTH:
            return True
        stack += [(x, depth + 1) for x in part.args]
    return False


class Change(NamedTuple):
    """A proposal: the part at `path` below a node becomes `new`, by the rule of this name."""

    rule: str
    path: Path
    reverse: bool
    new: Any


Move = Callable[[Any, "_Search"], "list[Change] | None"]


@dataclass(slots=True)
class _Search:
    """One search, with the names that bound indices may take and the time that is left."""

    lhs: Any
    rhs: Any
    deadline: float
    given: tuple[tuple[Any, Any], ...] = ()
    idle: set[tuple[int, Any]] = field(default_factory=set)  # (move, part): nothing to do
    names: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        sums = self.lhs.atoms(*_BINDERS) | self.rhs.atoms(*_BINDERS)
        used = {index for x in sums for index in bound(x)}
        spare = [Symbol(name, integer=True) for name in ("h", "g", "f", "i", "j")]
        named = (Symbol, sympy.MatrixSymbol, Family)
        known = {s.name for side in (self.lhs, self.rhs) for s in side.atoms(*named)}
        self.names = sorted(used, key=lambda index: str(index.name))
        self.names += [s for s in spare if s.name not in known]

    def chain(self, lhs: Any, rhs: Any, depth: int = 0) -> list[Step] | None:
        """Return the shorter of two chains: by the parts that differ, and by what both become."""
        if lhs == rhs:
            return []
        step = one_step(lhs, rhs, self.given)
        if step is not None:
            return [step]
        found = [self._by_parts(lhs, rhs, depth), self._by_rewriting(lhs, rhs)]
        return min((steps for steps in found if steps is not None), key=_length, default=None)

    # -- by parts ------------------------------------------------------------------------------

    def _by_parts(self, lhs: Any, rhs: Any, depth: int) -> list[Step] | None:
        """Explain the arguments that differ, one after the other, where each pair is equal."""
        if type(lhs) is not type(rhs) or depth > 12 or time.monotonic() > self.deadline:
            return None
        if len(lhs.args) != len(rhs.args):
            return self._by_middle(lhs, rhs, depth)
        inside = {k for k, _ in children(lhs)} & {k for k, _ in children(rhs)}
        differing = [k for k, (x, y) in enumerate(zip(lhs.args, rhs.args, strict=True)) if x != y]
        if not inside.issuperset(differing):
            return None
        if any(not _equal(lhs.args[k], rhs.args[k], self.given) for k in differing):
            return self._by_middle(lhs, rhs, depth)
        steps: list[Step] = []
        current = lhs
        for k in differing:
            part = self.chain(lhs.args[k], rhs.args[k], depth + 1)
            if part is None:
                return None
            for step in part:
                after = replaced(current, (k,), step.after)
                steps.append(Step(step.rule, (k, *step.path), step.reverse, current, after))
                current = after
        return steps if current == rhs else None

    def _by_middle(self, lhs: Any, rhs: Any, depth: int) -> list[Step] | None:
        """Put brackets around what differs between the common ends of two products."""
        if type(lhs) is not MatMul:
            return None
        x, y = list(lhs.args), list(rhs.args)
        ahead = 0
        while ahead < min(len(x), len(y)) - 1 and x[ahead] == y[ahead]:
            ahead += 1
        behind = 0
        while behind < min(len(x), len(y)) - ahead - 1 and x[-1 - behind] == y[-1 - behind]:
            behind += 1
        if not ahead and not behind:
            return None
        middles = [z[ahead : len(z) - behind] for z in (x, y)]
        if not all(any(map(is_matrix, z)) for z in middles):
            return None
        inner = (product(*middles[0]), product(*middles[1]))
        if not _equal(*inner, self.given):
            return None
        part = self.chain(inner[0], inner[1], depth + 1)
        if part is None:
            return None
        ends = [product(*x[:ahead], z, *x[len(x) - behind :]) for z in inner]
        steps = [] if ends[0] == lhs else [Step("mul_assoc", (), True, lhs, ends[0], self.given)]
        current = ends[0]
        for step in part:
            after = replaced(current, (ahead,), step.after)
            steps.append(Step(step.rule, (ahead, *step.path), step.reverse, current, after))
            current = after
        if current != rhs:
            steps.append(Step("mul_assoc", (), False, current, rhs))
        return steps if all(s.matches() for s in steps[:1] + steps[-1:]) else None

    # -- by rewriting --------------------------------------------------------------------------

    def _by_rewriting(self, lhs: Any, rhs: Any) -> list[Step] | None:
        """Rewrite both sides in several orders of the rules, and return the shortest way across."""
        edges: dict[Any, list[Step]] = {}
        for moves in STRATEGIES:
            ends = [self._rewritten(side, moves, edges) for side in (lhs, rhs)]
            if time.monotonic() > self.deadline and ends[0] != ends[1]:
                return None
        steps = _shortest(edges, lhs, rhs)
        return None if steps is None else _with_shortcuts(steps, self.given)

    def _rewritten(self, e: Any, moves: Sequence[int], edges: dict[Any, list[Step]]) -> Any:
        """Rewrite until nothing applies, adding each step to the edges, both ways round."""
        seen = {e}
        last: int | None = None
        for _ in range(MAX_STEPS):
            if time.monotonic() > self.deadline:
                return e
            again = [last] if last is not None and last in SWEEPING else []
            found = self._next(e, again) or self._next(e, moves)
            if found is None:
                return e
            last, changes = found  # a rule is used up everywhere before another one has its turn
            for name, path, reverse, new in changes:
                after = replaced(e, path, new)
                step = Step(name, path, reverse, e, after)
                edges.setdefault(e, []).append(step)
                edges.setdefault(after, []).append(Step(name, path, not reverse, after, e))
                e = after
            if e in seen:
                return e
            seen.add(e)
        return e

    def _next(self, e: Any, moves: Sequence[int]) -> tuple[int, list[Change]] | None:
        parts: dict[type, list[tuple[Path, Any]]] = {}
        for path, part in _parts(e):
            parts.setdefault(type(part), []).append((path, part))
        for number in moves:
            kinds, move = MOVES[number]
            for kind in kinds or parts:
                for path, part in parts.get(kind, ()):
                    if (number, part) in self.idle:
                        continue
                    changes = move(part, self)
                    if changes:
                        return number, [c._replace(path=path + c.path) for c in changes]
                    self.idle.add((number, part))
        return None


_BINDERS = (HeadSum, ConcatHeads, StackHeads)


def _parts(e: Any, path: Path = (), inside_number: bool = False) -> Iterator[tuple[Path, Any]]:
    """Yield (path, part), parents first; of nested numbers only the outermost."""
    number = not is_matrix(e) and type(e) is not Trace
    if not (number and inside_number):
        yield path, e
    for position, argument in children(e):
        yield from _parts(argument, (*path, position), number)
    if type(e) is MatMul:
        for position, argument in enumerate(e.args):
            if not is_matrix(argument) and not argument.has(Trace):
                yield (*path, position), argument


@lru_cache(maxsize=4096)
def _equal(a: Any, b: Any, given: tuple[tuple[Any, Any], ...]) -> bool:
    try:
        return decide(a, b, given, budget=0.0).status == "proved"
    except OtimesError:
        return False


def _length(steps: list[Step]) -> tuple[int, int]:
    """Return how long a chain reads: its shown lines, then its steps."""
    lines = len(Derivation(steps[0].before, steps[-1].after, tuple(steps)).lines) if steps else 0
    return lines, len(steps)


def _shortest(edges: dict[Any, list[Step]], start: Any, goal: Any) -> list[Step] | None:
    """Return the shortest chain of the edges from start to goal."""
    came: dict[Any, Step | None] = {start: None}
    queue = deque([start])
    while queue and goal not in came:
        here = queue.popleft()
        for step in edges.get(here, ()):
            if step.after not in came:
                came[step.after] = step
                queue.append(step.after)
    if goal not in came:
        return None
    chain: list[Step] = []
    back = came[goal]
    while back is not None:
        chain.append(back)
        back = came[back.before]
    return chain[::-1]


def _with_shortcuts(steps: list[Step], given: tuple[tuple[Any, Any], ...]) -> list[Step]:
    """Replace stretches of a chain that one use of one rule does as well."""
    if len(steps) > MAX_SHORTCUTS:
        return steps
    chain = [steps[0].before, *[s.after for s in steps]] if steps else []
    result: list[Step] = []
    here = 0
    while here < len(steps):
        for there in range(len(steps), here + 1, -1):
            jump = one_step(chain[here], chain[there], given)
            if jump is not None:
                result.append(jump)
                here = there
                break
        else:
            result.append(steps[here])
            here += 1
    return result


# -- moves: what is done, in which order ----------------------------------------------------------

MOVES: list[tuple[tuple[type, ...], Move]] = []
SWEEPING: set[int] = set()  # moves that, once begun, are made everywhere before another


def _by(name: str, last: bool = False) -> int:
    """Add the move that uses a rule from left to right, and return its number."""
    rule = RULES[name]

    def move(part: Any, _: _Search) -> list[Change] | None:
        results = rule.results(part)
        new = next(results, None)
        if last:
            new = [new, *results][-1]
        return None if new is None else [Change(name, (), False, new)]

    number = _add(rule.kinds, move)
    SWEEPING.add(number)
    return number


def _add(kinds: tuple[type, ...], move: Move) -> int:
    MOVES.append((kinds, move))
    return len(MOVES) - 1


def _by_hypothesis(part: Any, search: _Search) -> list[Change] | None:
    """Use what is given, from its longer side to its shorter."""
    for name, rule in hypotheses(search.given).items():
        new = next(rule.results(part), None)
        if new is not None:
            return [Change(name, (), False, new)]
    return None


def _apart(part: Any, search: _Search) -> list[Change] | None:
    """Rename the index of a sum where a neighbouring factor uses the same one."""
    for k, x in enumerate(part.args):
        if type(x) not in (HeadSum, StackHeads, ConcatHeads):
            continue
        others = [y for j, y in enumerate(part.args) if j != k]
        taken = {s for y in others for s in y.free_symbols}
        taken |= {s for y in others for z in y.atoms(*_BINDERS) for s in bound(z)}
        if taken & set(bound(x)):
            free = [s for s in search.names if s not in taken and not _touches(x, s)]
            names = [free.pop(0) if s in taken and free else s for s in bound(x)]
            new = renamed(x, names)
            if new is not None and new != x:
                return [Change("index_rename", (k,), False, new)]
    return None


def _concat_first(part: Any, search: _Search) -> list[Change] | None:
    """Under a trace, bring heads side by side before heads one below the other."""
    inner = part.args[0]
    if type(inner) is MatMul and (type(inner.args[0]), type(inner.args[-1])) == (
        StackHeads,
        ConcatHeads,
    ):
        turned = product(inner.args[-1], *inner.args[:-1])
        return [Change("trace_cyclic", (), False, Trace(turned))]
    return None


def _touches(e: Any, symbol: Any) -> bool:
    return mentions(e, [symbol]) or any(symbol in bound(z) for z in e.atoms(*_BINDERS))


def _split_special(part: Any, search: _Search) -> list[Change] | None:
    """Write I or 1 as a Kronecker product next to one, and multiply factor by factor."""
    for k in range(len(part.args) - 1):
        for mine, other, axis in ((k, k + 1, 0), (k + 1, k, 1)):
            x, y = part.args[mine], part.args[other]
            if type(x) is OneMatrix and type(y) is KroneckerProduct:
                split = _ones_like(x, [z.shape[axis] for z in y.args], 1 - axis)
                if split is None:
                    continue
                opened = rebuilt(part, [*part.args[:mine], split, *part.args[mine + 1 :]])
                mixed = next(iter(RULES["kron_mul_kron"].results(opened)), None)
                if mixed is not None:
                    steps = _reverse_kron(split, "kron_ones_ones", (mine,))
                    return [*steps, Change("kron_mul_kron", (), False, mixed)]
    return None


def _ones_like(x: Any, sizes: list[Any], axis: int) -> Any:
    """Return the matrix of ones as ⊗ of ones whose sizes on an axis are these."""
    other = x.shape[1 - axis]
    if sympy.Mul(*sizes) != x.shape[axis]:
        return None
    rest = sizes if sympy.Mul(*sizes) == other else [*[sympy.S.One] * (len(sizes) - 1), other]
    pairs = zip(sizes, rest, strict=True)
    return tensor(*[OneMatrix(*((a, b) if axis == 0 else (b, a))) for a, b in pairs])


def _reverse_kron(split: Any, name: str, path: Path) -> list[Change]:
    """Return the steps that open ⊗ of specials from the one matrix it is, factor by factor."""
    states = [split]
    while type(states[-1]) is KroneckerProduct:
        merged = next(iter(RULES[name].results(states[-1])), None)
        if merged is None:
            return []
        states.append(merged)
    return [Change(name, path, True, new) for new in reversed(states[:-1])]


def _split_in_hadamard(part: Any, search: _Search) -> list[Change] | None:
    """Write I as I ⊗ I next to a Kronecker product, so that both multiply elementwise."""
    krons = [y for y in part.args if type(y) is KroneckerProduct]
    for k, x in enumerate(part.args):
        if type(x) is Identity and krons:
            sizes = [z.shape for z in krons[0].args]
            if all(r == c for r, c in sizes) and sympy.Mul(*[r for r, _ in sizes]) == x.shape[0]:
                split = tensor(*[Identity(r) for r, _ in sizes])
                return _reverse_kron(split, "kron_one_one", (k,))
    return None


def _split_ones(part: Any, search: _Search) -> list[Change] | None:
    """Write a matrix of ones inside a product as a column times a row."""
    _, matrices = split_scalars(part)
    if len(matrices) > 1:
        for k, x in enumerate(part.args):
            if type(x) is OneMatrix and 1 not in x.shape:
                new = next(iter(RULES["ones_outer"].results(x)))
                return [Change("ones_outer", (k,), False, new)]
    return None


def _join_ones(part: Any, search: _Search) -> list[Change] | None:
    """Write a column of ones times a row of ones, when that is the whole product, as one matrix."""
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


def _least_rotation(part: Any, search: _Search) -> list[Change] | None:
    """Turn a product under a trace, and transpose it, to the way that comes first in order."""
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
    """Return the transpose with transposes pushed to the leaves, as the moves leave it."""
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


def _diagonal_way(part: Any, search: _Search) -> list[Change] | None:
    """Of I ∘ A and I ∘ Aᵀ, take the one that comes first in order."""
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


def _ordered(name: str) -> Move:
    def move(part: Any, _: _Search) -> list[Change] | None:
        arguments = sorted(part.args, key=order)
        if arguments == list(part.args):
            return None
        return [Change(name, (), False, rebuilt(part, arguments))]

    return move


def _ordered_sum(part: Any, search: _Search) -> list[Change] | None:
    """Order the indices of a sum over heads and name them, the same way on both sides."""
    if len(part.limits) > 4 or len(set(bound(part))) != len(part.limits):
        return None
    names = [s for s in search.names if not mentions(part, [s])][: len(part.limits)]
    ways = []
    for limits in permutations(part.limits):
        turned = HeadSum(part.body, *limits)
        named = renamed(turned, names) if bound(turned) != names else turned
        if named is not None:
            ways.append((order(named), turned, named))
    _, turned, named = min(ways, key=lambda way: way[0], default=(None, part, part))
    if named == part:
        return None
    changes = [Change("head_sum_comm", (), False, turned)] if turned != part else []
    return changes + ([Change("index_rename", (), False, named)] if named != turned else [])


def _arithmetic(part: Any, search: _Search) -> list[Change] | None:
    """Write a number as one sum of monomials, or as one quotient of two."""
    if is_matrix(part) or type(part) is Trace or not part.args:
        return None
    best = _canonical_number(part)
    if best is None or best == part:
        return None
    return [Change("scalar_arith", (), False, best)]


@lru_cache(maxsize=4096)
def _canonical_number(number: Any) -> Any:
    names = {s.name: s for s in number.free_symbols if isinstance(s, Symbol)}
    names.update({f"tr({k})": t for k, t in enumerate(dict.fromkeys(traces(number)))})
    (plain,) = without_traces(number)
    try:
        value = scalars.from_sympy(plain, {s.name for s in number.free_symbols if s.is_positive})
    except OtimesError:
        return None
    simple = scalars.to_sympy(value)
    if isinstance(value, scalars.Scalar) and value.denominator != {scalars.ONE: 1}:
        simple = sympy.cancel(simple)
    return simple.xreplace({s: names[s.name] for s in simple.free_symbols if s.name in names})


@lru_cache(maxsize=65536)
def order(e: Any) -> tuple[int, str]:
    """Return a key by which terms and factors are put in order: the shortest first."""
    text = unicode_text(coefficient(e)[1]) if type(e) is MatMul else unicode_text(e)
    return len(text), text + unicode_text(e)


ZEROS = [
    *map(_by, ["mul_zero", "add_zero", "kron_zero", "hadamard_zero", "head_sum_zero"]),
    *map(_by, ["trace_zero", "zero_transpose", "vec_zero"]),
]
UNITS = list(map(_by, ["one_transpose", "ones_transpose", "one_mul", "mul_one", "one_smul"]))
UNITS += list(map(_by, ["hadamard_ones", "kron_one", "ones_one", "one_hot_one"]))
POWERS = list(map(_by, ["adjoint_transpose", "pow_zero", "pow_succ"]))
POWERS += list(map(_by, ["hadamard_pow_succ", "diag_hadamard", "diagonal_hadamard"]))
POWERS += list(map(_by, ["diagonal_of_ones", "block_diag"]))
TRANSPOSES = [
    *map(_by, ["transpose_transpose", "transpose_mul", "transpose_smul", "transpose_add"]),
    *map(_by, ["kron_transpose", "hadamard_transpose", "head_sum_transpose", "concat_transpose"]),
    *map(_by, ["stack_transpose", "transpose_pow", "transpose_one_by_one"]),
]
GIVEN = [_add((), _by_hypothesis)]
INVERSES = list(map(_by, ["one_inv", "inv_inv", "mul_inv_rev", "smul_inv", "kron_inv"]))
INVERSES += list(map(_by, ["transpose_inv", "mul_inv", "inv_mul"]))
BLOCKS = list(map(_by, ["block_transpose", "block_mul", "block_add", "trace_block", "block_kron"]))
BLOCKS.append(_by("mul_block"))
BRACKETS = [_by("mul_assoc", last=True), _by("hadamard_assoc")]
TENSORS = [_by("kron_one_one"), _by("kron_mul_kron"), _by("ones_mul_ones")]
NUMBERS = list(map(_by, ["mul_smul", "kron_smul", "hadamard_smul", "trace_smul", "vec_smul"]))
NUMBERS.append(_by("head_sum_smul"))
SUMS = [_by("add_assoc", last=True)]
SUMS += list(map(_by, ["mul_add", "add_mul", "smul_add", "kron_add", "hadamard_add", "trace_add"]))
SUMS += list(map(_by, ["head_sum_add", "vec_add"]))
HEADS = list(map(_by, ["one_hot_sum", "one_hot_mul", "concat_mul_stack", "concat_mul_one_kron"]))
HEADS += [_add((Trace,), _concat_first)]
HEADS += list(map(_by, ["one_kron_mul_stack", "mul_concat", "stack_mul", "concat_add"]))
HEADS += [_add((MatMul, KroneckerProduct, HadamardProduct), _apart)]
HEADS += list(map(_by, ["head_sum_mul", "head_sum_kron", "head_sum_hadamard", "vec_head_sum"]))
HEADS += list(map(_by, ["head_sum_nested", "head_sum_const", "trace_head_sum_smul"]))
VECTORS = list(map(_by, ["vec_rows_mul", "vec_cols_mul", "vec_ones", "vec_column", "vec_row"]))
VECTORS += list(map(_by, ["vec_rows_outer", "kron_column_row", "kron_ones_ones"]))
ELEMENTWISE = list(map(_by, ["hadamard_one_one", "kron_hadamard_kron", "trace_hadamard_one"]))
ELEMENTWISE += [_add((HadamardProduct,), _split_in_hadamard), _by("diagonal_mul_diagonal")]
TRACES = list(map(_by, ["trace_one", "trace_ones", "trace_kron"]))
LATE = [
    _add((MatMul,), _split_special),
    _add((MatMul,), _join_ones),
    _add((MatMul,), _split_ones),
    _by("one_by_one_mul"),
    _by("diagonal_mul"),
    _by("trace_transpose"),
    _by("kron_assoc"),
    _by("vec_cols_vec_rows"),
    _add((HadamardProduct,), _diagonal_way),
    _add((HadamardProduct,), _ordered("hadamard_comm")),
    _add((Trace,), _least_rotation),
    _by("smul_smul"),
    _add((), _arithmetic),
    _add((HeadSum,), _ordered_sum),
    _add((MatAdd,), _ordered("add_comm")),
    _by("add_collect"),
]

EARLY = [*ZEROS, *UNITS, *POWERS]
STRATEGIES: list[list[int]] = [
    EARLY
    + TRANSPOSES
    + INVERSES
    + BRACKETS
    + GIVEN
    + BLOCKS
    + TENSORS
    + NUMBERS
    + SUMS
    + HEADS
    + TRACES
    + ELEMENTWISE
    + VECTORS
    + LATE,
    EARLY
    + TENSORS
    + INVERSES
    + BLOCKS
    + SUMS
    + TRANSPOSES
    + HEADS
    + NUMBERS
    + BRACKETS
    + GIVEN
    + VECTORS
    + TRACES
    + ELEMENTWISE
    + LATE,
]
