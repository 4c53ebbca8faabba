"""Free and bound symbols, and the renaming that gives every symbol a unique name.

SymPy distinguishes symbols by name, assumptions and dummy index, and lets an index be bound twice;
otimes distinguishes them by name alone. After `standardised`

    two different symbols have different names, and none is a Dummy
    a bound index has the name of no free symbol, no matrix and no function
    no index is bound again inside its own scope; outside of it, it may be

Such an expression is returned unchanged. Our classes declare their bound indices; only
`free_symbols` and `substituted` need to know which symbols are free.

>>> from sympy import Dummy, MatrixSymbol, Symbol
>>> from otimes.algebra.language.constants import PI
>>> from otimes.algebra.language.linear import Family, HeadSum
>>> n, H, h = Symbol("n"), Symbol("H"), Symbol("h")
>>> A = Family("A", (H,), n, n)
>>> substituted(HeadSum(A[h] * A[Symbol("g")], (h, H)), {Symbol("g"): h}).limits
((h′, H),)
>>> sides, _, _ = standardised([Dummy("a"), Dummy("a")])
>>> sides
[a, a′]
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import sympy
from sympy import Symbol
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.errors import LanguageError
from otimes.algebra.language.constants import PI
from otimes.algebra.language.trees import rebuilt

Pair = tuple[Any, Any]

# The positions of limits and indices among the arguments of SymPy classes. In both, the first
# argument is the scope, a limit is in the scope of those before it; others are outside.
_LIMITS: dict[type, Callable[[int], Sequence[int]]] = {
    sympy.Sum: lambda arguments: range(arguments - 1, 0, -1),
}
_INDICES: dict[type, slice] = {
    MatrixElement: slice(1, None),
    sympy.KroneckerDelta: slice(0, 2),
}


def _places(e: Any) -> Sequence[int]:
    """Return the positions of the limits among the arguments of a node, the outermost first."""
    limits = _LIMITS.get(type(e)) or getattr(e, "limit_places", None)
    return () if limits is None else limits(len(e.args))


def bindings(e: Any) -> tuple[tuple[Symbol, Any], ...]:
    """Return pairs (index, number of its values) for the indices a node binds, outermost first."""
    return tuple((limit[0], _count(limit)) for limit in _limits(e))


def _limits(e: Any) -> tuple[Any, ...]:
    return tuple(e.args[at] for at in _places(e))


def index_places(e: Any) -> range:
    """Return the positions of the arguments of a node that are indices (symbols or integers)."""
    where: slice = _INDICES.get(type(e)) or getattr(e, "index_places", None) or slice(0)
    return range(len(e.args))[where]


def indices_of(e: Any) -> tuple[Any, ...]:
    """Return the arguments of a node that are indices."""
    return tuple(e.args[place] for place in index_places(e))


@lru_cache(maxsize=50_000)
def free_symbols(e: Any) -> frozenset[Symbol]:
    """Return the free symbols of an expression, including those in its sizes."""
    return frozenset([e]) if isinstance(e, Symbol) else _free(e, e.args, free_symbols)


@lru_cache(maxsize=50_000)
def used_as_numbers(e: Any) -> frozenset[Symbol]:
    """Return the free symbols that occur as a scalar or in a size."""
    if isinstance(e, Symbol):
        return frozenset([e])
    indices = index_places(e)
    arguments = [a for at, a in enumerate(e.args) if at not in indices]
    return _free(e, arguments, used_as_numbers)


def _free(
    e: Any, arguments: Sequence[Any], of: Callable[[Any], frozenset[Symbol]]
) -> frozenset[Symbol]:
    """Return the union of `of(argument)` over the arguments, without the indices the node binds."""
    places = _places(e)
    if not places:
        return frozenset().union(*map(of, arguments))
    inside = of(arguments[0])
    for at in reversed(places):
        index, *bounds = arguments[at]
        inside = (inside - {index}).union(*map(of, bounds))
    others = [a for at, a in enumerate(arguments) if at and at not in places]
    return inside.union(*map(of, others))


def substituted(e: Any, values: Mapping[Symbol, Any]) -> Any:
    """Return an expression with values substituted for free symbols, without evaluation.

    A bound index that would capture a symbol of a value is renamed.
    """
    free = free_symbols(e)
    live = {symbol: sympy.sympify(v) for symbol, v in values.items() if symbol in free}
    if not live:
        return e
    if isinstance(e, Symbol):
        return live[e]
    places = _places(e)
    if not places:
        return rebuilt(e, [substituted(a, live) for a in e.args])
    arguments = list(e.args)
    for at in range(1, len(arguments)):
        if at not in places:
            arguments[at] = substituted(arguments[at], live)
    taken: set[str] | None = None
    for at in places:
        index, *bounds = arguments[at]
        bounds = [substituted(bound, live) for bound in bounds]
        live = {symbol: v for symbol, v in live.items() if symbol != index}
        new = index
        if any(index in free_symbols(v) for v in live.values()):
            if taken is None:
                taken = names_in(e, *live, *live.values())
            new = _like(index, fresh_name(index.name, taken))
            taken.add(new.name)
            live[index] = new
        arguments[at] = sympy.Tuple(new, *bounds)
    arguments[0] = substituted(arguments[0], live)
    return rebuilt(e, arguments)


def names_in(*expressions: Any) -> set[str]:
    """Return all names in expressions: of symbols (free or bound), matrices and functions."""
    found = _Found(expressions)
    return {*found.symbols, *found.tensors, *found.functions}


def fresh_name(name: str, taken: Iterable[str]) -> str:
    """Return the name, with primes appended until it is not in `taken`."""
    while name in taken:
        name += "′"
    return name


# -- unique names ----------------------------------------------------------------------------------


class Standard(NamedTuple):
    """Expressions with unique names, and the original of each free symbol that was renamed."""

    sides: list[Any]
    given: list[Pair]
    origin: dict[Symbol, Symbol]


def standardised(sides: Sequence[Any], given: Sequence[Pair] = ()) -> Standard:
    """Return the sides and hypotheses of a claim with unique names (see the module docstring).

    A free index of a hypothesis is universally quantified, so it is bound by that hypothesis; it
    may share a name with an index of the same range. Raises LanguageError for noncommutative
    symbols.
    """
    everything = [*sides, *[side for pair in given for side in pair]]
    if not all(isinstance(e, sympy.Basic) for e in everything):
        return Standard(list(sides), list(given), {})  # which `shapes` refuses
    found = _Found(everything)
    found.refuse_what_does_not_commute()
    scoped = found.binds or (found.has_indices and given)
    if not scoped and found.is_clean:
        return Standard(list(sides), list(given), {})
    return _Renaming(found, sides, given).standard()


@lru_cache(maxsize=1_000)
def _role(kind: type) -> str:
    """Return what the nodes of a class do to names: "tensor", "function", "binds" or "indices"."""
    if kind is sympy.MatrixSymbol:
        return "tensor"
    if name_kind := getattr(kind, "name_kind", ""):
        return str(name_kind)
    limits = _LIMITS.get(kind) or getattr(kind, "limit_places", None)
    if limits is not None and limits(2):
        return "binds"
    return "indices" if kind in _INDICES or getattr(kind, "index_places", None) else ""


class _Found:
    """The names in expressions, collected in one walk that ignores scopes."""

    def __init__(self, expressions: Iterable[Any]) -> None:
        self.symbols: dict[str, list[Symbol]] = {}  # by name, in order of first occurrence
        self.tensors: set[str] = set()
        self.functions: set[str] = set()
        self.binds = self.has_indices = self.has_open_deltas = False
        stack = list(expressions)[::-1]
        seen: dict[int, Any] = {}  # keeps the objects alive, so that no id is reused
        while stack:
            e = stack.pop()
            if id(e) in seen:
                continue
            seen[id(e)] = e
            kind: Any = type(e)
            if kind is Symbol or isinstance(e, Symbol):
                known = self.symbols.setdefault(e.name, [])
                known += [e] * (e not in known)
                continue
            arguments = e.args
            if not arguments:
                continue
            role = _role(kind)
            if role == "tensor":
                self.tensors.add(e.name)
                stack += arguments[:0:-1]
                continue
            if role == "function":
                self.functions.add(e.name)
            elif role == "binds":
                self.binds = True
            elif role == "indices" and index_places(e):
                self.has_indices = True
                self.has_open_deltas |= kind is sympy.KroneckerDelta and len(arguments) == 2
            stack += arguments[::-1]

    @property
    def is_clean(self) -> bool:
        """Return whether no two symbols would share a name if all were free."""
        return all(len(known) == 1 and self.is_plain(known[0]) for known in self.symbols.values())

    def is_plain(self, symbol: Symbol) -> bool:
        """Return whether a symbol may keep its name: it is not a Dummy, a function or an entry."""
        is_name = symbol.name not in self.functions and "[" not in symbol.name
        return type(symbol) is Symbol and is_name

    def refuse_what_does_not_commute(self) -> None:
        for symbol in chain.from_iterable(self.symbols.values()):
            if not symbol.is_commutative:
                raise LanguageError(
                    f"the symbol {symbol.name} is declared commutative=False, and the numbers "
                    "of the language commute: use a MatrixSymbol for it"
                )


class _Scope(NamedTuple):
    """The bound indices around a part: new symbols, ranges, and renamed parts (a cache)."""

    new: dict[Symbol, Symbol]
    ranges: dict[Symbol, Any]
    known: dict[int, tuple[Any, Any]]

    def within(self, index: Symbol, new: Symbol, values: Any) -> _Scope:
        return _Scope({**self.new, index: new}, {**self.ranges, new: values}, {})


class _Renaming:
    """One pass over a claim and its hypotheses that assigns unique names."""

    def __init__(self, found: _Found, sides: Sequence[Any], given: Sequence[Pair]) -> None:
        self.sides, self.given = sides, given
        self.strict = found.has_open_deltas  # whose range is that of their indices elsewhere
        self.occurring = {*found.symbols, *found.tensors, *found.functions}
        self.bound: dict[str, tuple[Symbol, Any]] = {}  # by new name: the index and its range
        self.free_in_sides = frozenset().union(*map(free_symbols, sides))
        self.every = [self._free_indices(pair) for pair in given]
        free = set(self.free_in_sides)
        for pair, every in zip(given, self.every, strict=True):
            free |= frozenset().union(*map(free_symbols, pair)) - every.keys()
        self.new = self._names_of(found, free)
        self.reserved = found.tensors | found.functions | {s.name for s in free - self.new.keys()}
        self.reserved |= {s.name for s in self.new.values()}
        self.origin = {new: old for old, new in self.new.items()}

    def standard(self) -> Standard:
        scope = _Scope(self.new, {}, {})
        sides = [self.walk(side, scope) for side in self.sides]
        given = []
        for pair, every in zip(self.given, self.every, strict=True):
            inner = scope
            for index, values in every.items():
                new = self._for_all(index, values, inner)
                if new != index:
                    self.origin[new] = index
                inner = inner.within(index, new, values)
            given.append((self.walk(pair[0], inner), self.walk(pair[1], inner)))
        return Standard(sides, given, self.origin)

    # -- names -------------------------------------------------------------------------------------

    def _names_of(self, found: _Found, free: set[Symbol]) -> dict[Symbol, Symbol]:
        """Return new symbols for the free symbols that must be renamed; plain ones choose first."""
        claimed: set[str] = set()
        others: list[Symbol] = []
        for symbol in sorted(chain.from_iterable(found.symbols.values()), key=lambda s: s != PI):
            if symbol in free and symbol.name not in claimed and found.is_plain(symbol):
                claimed.add(symbol.name)
            elif symbol in free:
                others.append(symbol)
        claimed |= found.tensors | found.functions
        new: dict[Symbol, Symbol] = {}
        for symbol in others:
            name = next(name for name in self._names_for(symbol) if name not in claimed)
            claimed.add(name)
            new[symbol] = _like(symbol, name)
        return new

    def _names_for(self, symbol: Symbol) -> Iterator[str]:
        """Yield candidate names: the symbol's own, then with primes; none occurs elsewhere.

        Brackets are replaced, as `A[0, 0]` is an entry of A.
        """
        name = symbol.name.replace("[", "⟨").replace("]", "⟩")
        while True:
            if name == symbol.name or name not in self.occurring:
                yield name
            name += "′"

    def _for_all(self, index: Symbol, values: Any, scope: _Scope) -> Symbol:
        """Return the symbol for a free (universally quantified) index of a hypothesis."""
        if index in self.free_in_sides and type(index) is Symbol and index not in self.new:
            own = _range_in(self.sides, index)
            if own is None or values is None or _same(own, values):
                return index
        return self._index(index, values, scope)

    def _index(
        self, index: Symbol, values: Any, scope: _Scope, inside: Collection[str] = ()
    ) -> Symbol:
        """Return the symbol for a bound index.

        Names bound `inside` the scope are avoided, so closed subexpressions are unchanged.
        """
        refused = {symbol.name for symbol in scope.ranges}.union(inside, self.reserved)
        for name in self._names_for(index):
            if name in refused:
                continue
            known = self.bound.get(name)
            if known is None:
                keeps = type(index) is Symbol and name == index.name
                self.bound[name] = (index if keeps else _like(index, name)), values
                return self.bound[name][0]
            if not self.strict or _same(known[1], values):
                return known[0]
        raise AssertionError  # the names never run out

    # -- walking -----------------------------------------------------------------------------------

    def walk(self, e: Any, scope: _Scope) -> Any:
        if isinstance(e, Symbol):
            return scope.new.get(e, e)
        arguments = e.args
        if not arguments:
            return e
        known = scope.known.get(id(e))
        if known is not None:
            return known[1]
        if _places(e):
            new = self._binder(e, scope)
        else:
            new = _with(e, arguments, [self.walk(a, scope) for a in arguments])
        scope.known[id(e)] = e, new
        return new

    def _binder(self, e: Any, scope: _Scope) -> Any:
        places = _places(e)
        arguments = [
            a if at == 0 or at in places else self.walk(a, scope) for at, a in enumerate(e.args)
        ]
        if not all(isinstance(limit[0], Symbol) for limit in _limits(e)):
            return e  # which `shapes` refuses
        inner = scope
        for at in places:
            index, *bounds = e.args[at]
            bounds = [self.walk(bound, inner) for bound in bounds]
            values = None  # the ranges matter only for deltas without an explicit range
            if self.strict:  # an index j < l has the range of l
                count = _count((index, *bounds))
                values = inner.ranges.get(count, count)
            later = {limit[0].name for limit in _limits(e)[places.index(at) + 1 :]}
            new = self._index(index, values, inner, later | _bound_names(e.args[0]))
            arguments[at] = _with(e.args[at], e.args[at].args, [new, *bounds])
            inner = inner.within(index, new, values)
        arguments[0] = self.walk(e.args[0], inner)
        return _with(e, e.args, arguments)

    def _free_indices(self, pair: Pair) -> dict[Symbol, Any]:
        """Return the free indices of a hypothesis with their ranges; None if a range is unknown."""
        free = frozenset().union(*map(free_symbols, pair))
        found: dict[Symbol, Any] = {}
        for part in _parts(pair):
            for index in indices_of(part):
                if index in free and found.get(index) is None:
                    found[index] = _range_at(part, index)
        return found


@lru_cache(maxsize=50_000)
def _bound_names(e: Any) -> frozenset[str]:
    """Return the names of all bound indices of an expression."""
    if isinstance(e, Symbol) or not e.args:
        return frozenset()
    here = frozenset(index.name for index, *_ in _limits(e) if isinstance(index, Symbol))
    return here.union(*map(_bound_names, e.args))


def _with(e: Any, old: Sequence[Any], new: list[Any]) -> Any:
    """Return a node with new arguments, or the node itself if they are unchanged."""
    return e if all(map(operator.is_, old, new)) else rebuilt(e, new)


def _like(symbol: Symbol, name: str) -> Symbol:
    """Return a symbol with another name and the same assumptions."""
    return Symbol(name, **symbol.assumptions0)


def _count(limit: Any) -> Any:
    """Return the number of values in a limit, or the limit itself if it does not start at 0."""
    if len(limit) == 2:
        return limit[1]
    return limit[2] + 1 if len(limit) == 3 and limit[1] == 0 else limit


def _same(a: Any, b: Any) -> bool:
    are_counts = isinstance(a, sympy.Expr) and isinstance(b, sympy.Expr)
    return bool(a == b or (are_counts and sympy.expand(a) == sympy.expand(b)))


def _parts(expressions: Iterable[Any]) -> Iterator[Any]:
    """Yield all subexpressions of the expressions."""
    stack = list(expressions)
    while stack:
        e = stack.pop()
        stack += e.args
        yield e


def _range_in(expressions: Iterable[Any], index: Symbol) -> Any:
    """Return the number of values of a free index, or None if no part determines it."""
    ranges = (_range_at(part, index) for part in _parts(expressions) if index in indices_of(part))
    return next((values for values in ranges if values is not None), None)


def _range_at(part: Any, index: Symbol) -> Any:
    """Return the number of values of an index of a node, or None if the node does not fix it."""
    if type(part) is MatrixElement:
        return part.args[0].shape[part.args[1:].index(index)]
    if type(part) is sympy.KroneckerDelta:
        return part.args[2][1] + 1 if len(part.args) > 2 else None
    return part.count_of(index)
