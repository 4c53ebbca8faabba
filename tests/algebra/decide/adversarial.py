"""Claims that attack names: of bound indices, depths, dummies, and of what a prover makes up.

`Attack(seed).claim()` draws a claim in few names, which are shared by as many things as can be: an
index is bound twice, free beside where it is bound, called like a matrix, like `last` or `Π_L`. The
right side is the left one rewritten, now and then as somebody would who overlooks a capture. Most
claims are multiplied by (H - 1)(H - 2)(H - 3)(H - 4), so that small sizes tell no sides apart.

Whether a claim is true is not known here: `tests.algebra.decide.scoped` computes it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import sympy
from sympy import (
    Dummy,
    HadamardProduct,
    Identity,
    MatrixSymbol,
    Symbol,
    Trace,
    Transpose,
    ZeroMatrix,
)
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import (
    ConcatHeads,
    Family,
    HeadSum,
    StackHeads,
    kron,
    matadd,
    matmul,
)
from otimes.algebra.language.nonlinear import Activation, RowSoftmax
from otimes.algebra.language.trees import stated
from tests.algebra.bound_trees import (
    Binding,
    places,
    renamed,
    replaced,
)
from tests.algebra.decide.adversarial_moves import MOVES, WEIGHTS
from tests.algebra.decide.attack import Claim
from tests.algebra.decide.scoped import World, identity, scaled

NAMES = ["l", "h", "u", "k", "last", "last′", "Π_L", "Ω_L", "Σ_L", "Π_L′", "Σ_L′", "power_L"]
POSITIVE = {"integer": True, "positive": True}


class Attack:
    """Draws of one seed."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        draw = self.draw
        names = draw.sample(NAMES, len(NAMES))
        dummies = draw.random() < 0.15
        self.n = Symbol("n", integer=True, positive=True)
        self.L, self.H = (Symbol(name, integer=True, positive=True) for name in "LH")
        if draw.random() < 0.05:
            self.L = Dummy(draw.choice("LHn"), integer=True, positive=True)
        self.pool = [Symbol(name, integer=True) for name in names[:3]]
        if dummies:  # that share a name
            self.pool = [Dummy("l", integer=True) for _ in range(2)] + self.pool[:1]
        elif draw.random() < 0.1:  # symbols that differ in what is assumed of them
            self.pool[1] = Symbol(self.pool[0].name, integer=True, nonnegative=True)
        elif draw.random() < 0.2:  # an index begins at 0, whatever is assumed of it
            self.pool[-1] = Symbol(names[2], integer=True, positive=True)
        called = [*"ABFGEc"]
        if draw.random() < 0.3:  # matrices, families and functions that are called like an index
            for k in draw.sample(range(6), 2):
                called[k] = draw.choice([i.name for i in self.pool] + ["Π_L", "Σ_L", "Ω_L", "last"])
        self.A, self.B = (MatrixSymbol(name, self.n, self.n) for name in called[:2])
        self.F = Family(called[2], (self.L,), self.n, self.n)
        self.G = Family(called[3], (self.H,), self.n, self.n)
        self.E = Family(called[4], (self.L, self.H), self.n, self.n)
        self.c = Dummy("c") if dummies else Symbol(called[5])
        self.function = draw.choice(["g", "g", "relu", *[i.name for i in self.pool]])
        if not self.function.isidentifier():
            self.function = "g"
        self.free = {self.pool[0]: self.L, self.pool[-1]: self.H}
        self.plain = draw.random() < 0.75  # without functions, which are slow to read
        self.binders = 0

    def claim(self) -> Claim:
        """Return a claim; how it came to be is its kind."""
        kinds = (self.rewritten, self.of_templates, self.twins, self.taken, self.numbered)
        claim = self.draw.choices((*kinds, self.indexed), (12, 5, 1, 1, 1, 1))[0]()
        claim.dims, claim.counts = [self.n, *claim.dims], [self.L, self.H, *claim.counts]
        return claim

    def rewritten(self) -> Claim:
        draw = self.draw
        e = self.expression(draw.choice((2, 3, 3, 4)), {})
        new, kinds = e, []
        for _ in range(draw.choice((1, 1, 2, 3))):
            new, kind = self.moved(new)
            kinds.append(kind)
        lhs, rhs = self.hidden(e, new)
        return Claim(lhs, rhs, kind="+".join(kinds))

    def hidden(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Return a claim that says as much of large sizes and nothing, or as much, of small."""
        draw = self.draw
        if draw.random() < 0.6:
            size = draw.choice((self.H, self.H, self.L))
            vanishing = [size - k for k in range(1, 5)]
            if not getattr(x, "is_Matrix", False):
                return tuple(sympy.Mul(*vanishing, z, evaluate=False) for z in (x, y))
            x, y = matmul(*vanishing, x), matmul(*vanishing, y)
        if draw.random() < 0.3 and getattr(x, "is_Matrix", False):
            i = draw.choice(self.pool)
            around = draw.choice(
                (
                    lambda z: HeadSum(matmul(self.member(i, self.L), z), (i, self.L)),
                    lambda z: LayerProduct(matadd(Identity(self.n), z), (i, self.L)),
                    lambda z: matmul(z, self.A),
                    lambda z: kron(z, self.A),
                    lambda z: Trace(z),
                    lambda z: matmul(z, sympy.Inverse(self.A)),
                )
            )
            x, y = around(x), around(y)
        if getattr(x, "is_Matrix", False) and x.shape == self.A.shape and draw.random() < 0.4:
            i = draw.choice(self.pool)
            w = LayerProduct(self.F[i], (i, self.L))
            x, y = matadd(w, x), matadd(w, y)
        return (x, y) if draw.random() < 0.5 else (y, x)

    def member(self, index: Any, count: Any) -> Any:
        return self.F[index] if count == self.L else self.G[index]

    # -- expressions -------------------------------------------------------------------------------

    def visible(self, scope: Binding, count: Any) -> list[Any]:
        """Return the indices that may stand for a value below a count, free ones among them."""
        found = [i for i, of in scope.items() if of == count]
        found += [i for i, of in self.free.items() if of == count and i not in scope]
        return found

    def leaf(self, scope: Binding) -> Any:
        draw = self.draw
        over_layers, over_heads = self.visible(scope, self.L), self.visible(scope, self.H)
        bound_layers = [i for i in over_layers if i in scope] or over_layers
        bound_heads = [i for i in over_heads if i in scope] or over_heads
        if draw.random() < 0.2:
            bound_layers, bound_heads = over_layers, over_heads
        options: list[Any] = [self.A, self.B]
        if bound_layers:
            options += [self.F[draw.choice(bound_layers)]] * (6 if scope else 1)
        if bound_heads:
            options += [self.G[draw.choice(bound_heads)]] * (4 if scope else 1)
        if bound_heads and bound_layers:
            options += [self.E[draw.choice(bound_layers), draw.choice(bound_heads)]] * 2
        options += [self.F[0]] if draw.random() < 0.1 else []
        return draw.choice(options)

    def expression(self, depth: int, scope: Binding) -> Any:
        """Return a square matrix over n."""
        draw = self.draw
        if depth <= 0:
            return self.leaf(scope)

        def sub(inner: Binding = scope) -> Any:
            return self.expression(depth - 1, inner)

        options: list[Callable[[], Any]] = [
            lambda: matadd(sub(), sub()),
            lambda: matmul(sub(), sub()),
            lambda: Transpose(sub()),
            lambda: matmul(self.scalar(scope), sub()),
        ]
        if draw.random() < 0.2:
            options += [lambda: HadamardProduct(sub(), sub(), evaluate=False)]
        if not self.plain:
            options += [lambda: Activation(self.function, sub())] * 2
            options += [lambda: RowSoftmax(sub())]
        if len(scope) < 3 and self.binders < 5:
            options += [lambda: self.binder(sub, scope)] * 9
        return draw.choice(options)()

    def scalar(self, scope: Binding) -> Any:
        draw = self.draw
        options: list[Any] = [self.c, sympy.Integer(2), sympy.S.NegativeOne, self.H, self.L]
        options += [Trace(self.leaf(scope))]
        for count in (self.L, self.H):
            known = self.visible(scope, count)
            if known:
                i, j = draw.choice(known), draw.choice(known)
                options.append(sympy.KroneckerDelta(i, j, (0, count - 1)))
        k = draw.choice(self.pool)
        inner = {**scope, k: self.n}
        entry = MatrixElement(self.leaf(inner), k, k)
        if k not in scope:
            options.append(stated(sympy.Sum, entry, sympy.Tuple(k, 0, self.n - 1)))
        return draw.choice(options)

    def binder(self, sub: Callable[..., Any], scope: Binding) -> Any:
        draw = self.draw
        self.binders += 1
        i = draw.choice(self.pool)
        count = draw.choice((self.L, self.L, self.H))
        turned = draw.random() < 0.4
        kind = draw.choices(
            ("sum", "doubled", "concat", "product", "before", "orders", "all", "numbered"),
            (5, 2, 1, 5, 3, 3, 1, 1),
        )[0]
        inside = {**scope, i: count}
        layers = [j for j in scope if scope[j] in (self.L, self.H)]
        if kind == "doubled":
            j, other = draw.choice(self.pool), draw.choice((self.L, self.H))
            return HeadSum(sub({**inside, j: other}), (i, count), (j, other))
        if kind == "concat":
            return matmul(ConcatHeads(sub(inside), (i, count)), StackHeads(sub(inside), (i, count)))
        if kind == "product":
            return LayerProduct(sub(inside), (i, count), turned)
        if kind == "before" and layers:
            before = draw.choice(layers)
            inside = {**scope, i: scope[before]}
            if draw.random() < 0.5:
                return LayerProduct(sub(inside), (i, before), turned)
            order = draw.choice((1, 1, 2, 3, 4))
            return OrderSum(sub(inside), (i, before), order, turned)
        if kind == "orders":
            order = draw.choice((0, 1, 2, 2, 3, 5))
            return OrderSum(sub(inside), (i, count), order, turned)
        if kind == "all":
            k = draw.choice(self.pool)
            return HeadSum(OrderSum(sub(inside), (i, count), k, turned), (k, count + 1))
        if kind == "numbered":
            number = draw.choice((2, 3))
            named = draw.choice((LayerProduct, HeadSum))
            return named(sub({**scope, i: sympy.Integer(number)}), (i, number))
        return HeadSum(sub(inside), (i, count))

    # -- moves, sound and naive --------------------------------------------------------------------

    def moved(self, e: Any) -> tuple[Any, str]:
        """Return the tree after one move at a random place, and what the move is called."""
        found = list(places(e, {}))
        for move in self.draw.choices(MOVES, WEIGHTS, k=8):
            self.draw.shuffle(found)
            for path, part, scope in found:
                new = move(self, part, scope)
                if new is not None and new != part:
                    return replaced(e, path, new), move.__name__.strip("_")
        return e, "same"

    # -- templates ---------------------------------------------------------------------------------

    def of_templates(self) -> Claim:
        """Return a claim of one of the shapes that once deceived the judge, in other names."""
        draw = self.draw
        i, j, k = (draw.choice(self.pool) for _ in range(3))
        kinds = ("orders", "products", "sums", "powers", "counts", "limits", "nested", "nested")
        kind = draw.choice(kinds)
        scope = {k: self.L, i: self.L} if kind in ("orders", "counts", "nested") else {i: self.L}
        x = self.expression(draw.choice((1, 2)), scope)
        y = draw.choice((x, x, renamed(x, i, j)))
        order = draw.choice((1, 2, 3, 4))
        if kind == "orders":
            sides = [HeadSum(OrderSum(z, (m, k), order), (k, self.L)) for z, m in ((x, i), (y, j))]
        elif kind == "products":
            sides = [LayerProduct(z, (m, self.L)) for z, m in ((x, i), (y, j))]
        elif kind == "sums":
            sides = [HeadSum(z, (m, self.L)) for z, m in ((x, i), (y, j))]
        elif kind == "powers":
            bases = [draw.choice((self.c, self.H, self.L, 2 * self.L)) for _ in range(2)]
            sides = [matmul(sympy.Pow(base, self.L), self.A) for base in bases]
            nothing = ZeroMatrix(self.n, self.n)
            sides[1] = draw.choice((sides[1], nothing, matmul(2, sides[0])))
        elif kind == "counts":
            inner = [LayerProduct(z, (m, k)) for z, m in ((x, i), (y, j))]
            sides = [HeadSum(matmul(self.member(k, self.L), z), (k, self.L)) for z in inner]
        elif kind == "nested":  # products and sums over layers beside an index of their name
            outer = self.expression(1, {k: self.L})
            over = draw.choice(
                (
                    lambda z, m: LayerProduct(z, (m, self.L)),
                    lambda z, m: OrderSum(z, (m, self.L), order),
                    lambda z, m: HeadSum(z, (m, self.L)),
                )
            )
            inner = [over(z, m) for z, m in ((x, i), (y, j))]
            inner[1] = draw.choice((inner[1], matadd(inner[0], inner[1], matmul(-1, inner[0]))))
            sides = [HeadSum(matmul(outer, z), (k, self.L)) for z in inner]
        else:
            sides = [HeadSum(x, (i, self.L), (j, self.H)), HeadSum(x, (j, self.H), (i, self.L))]
            sides[1] = draw.choice((sides[1], matmul(self.H, HeadSum(x, (i, self.L)))))
        lhs, rhs = self.hidden(*sides)
        return Claim(lhs, rhs, kind=f"template {kind}")

    def twins(self) -> Claim:
        """Return what is equal if two symbols that share a name are one."""
        draw = self.draw
        role = draw.choice(("number", "size", "count", "depth", "index"))
        declared = {"number": {}, "index": {"integer": True}}.get(role, POSITIVE)
        one = Dummy("t", **declared) if draw.random() < 0.6 else Symbol("t", **declared)
        other = Dummy("t", **declared)
        if draw.random() < 0.3 and isinstance(one, Symbol):
            other = Symbol("t", real=True, **declared)
        given: list[tuple[Any, Any]] = []
        sides: list[Any] = [matmul(x, self.A) for x in (one, other)]
        if role == "number" and draw.random() < 0.5:
            given = [(draw.choice((one, other)), draw.choice((sympy.S.One, sympy.S.Zero)))]
            sides[1] = draw.choice((self.A, ZeroMatrix(self.n, self.n)))
        elif role == "size" and draw.random() < 0.6:
            sides = [Trace(Identity(x)) for x in (one, other)]
        elif role == "count":
            sides = [HeadSum(self.A, (self.pool[0], x)) for x in (one, other)]
        elif role == "depth":
            sides = [LayerProduct(self.A, (self.pool[0], x)) for x in (one, other)]
            sides = [matadd(sides[0], sides[1]), matadd(sides[0], sides[draw.choice((0, 1))])]
        elif role == "index":
            pairs = draw.choices(((one, other), (one, one), (other, one)), k=2)
            products = [matmul(self.F[x], self.F[y]) for x, y in pairs]
            sides = [HeadSum(x, (one, self.L), (other, self.L)) for x in products]
        lhs, rhs = self.hidden(*sides)
        claim = Claim(lhs, rhs, given, kind=f"twins {role}")
        if role in ("size", "count", "depth"):
            claim.counts = [one, other]

        def model(world: World) -> None:
            for x, y in given:
                world.numbers[x] = int(y)

        claim.model = model
        return claim

    def taken(self) -> Claim:
        """Return a claim whose hypotheses speak of what a prover would call by a new name."""
        draw = self.draw
        shape = (self.n, self.n)
        zero, one = ZeroMatrix(*shape), Identity(self.n)
        i, j = draw.choice(self.pool), draw.choice(self.pool)
        order = draw.choice((1, 2, 5))
        lhs = draw.choice(
            (
                OrderSum(self.F[i], (i, self.L), order),
                LayerProduct(self.F[i], (i, self.L)),
                HeadSum(self.F[i], (i, self.L)),
                matmul(sympy.Pow(self.c, self.L), LayerProduct(self.F[i], (i, self.L))),
            )
        )
        rhs = draw.choice((zero, one, self.A, matmul(self.A, lhs), lhs.xreplace({i: j})))
        given, known = [], {}
        for name in draw.sample(["Π_L", "Ω_L", "Ω_L′", "Σ_L", "Σ_L′", "last"], 2):
            matrix = MatrixSymbol(name, *shape)
            known[matrix] = draw.choice((zero, one))
            given.append((matrix, known[matrix]))
        if draw.random() < 0.3:
            index = Symbol("last", integer=True)
            given.append((matmul(self.F[index], self.A), matmul(self.A, self.F[index])))
        if draw.random() < 0.3:
            given.append((Symbol("power_L"), draw.choice((sympy.S.One, sympy.S.Zero))))

        def model(world: World) -> None:
            size, layers = world.sizes[self.n], world.sizes[self.L]
            for matrix, to in known.items():
                same = int(isinstance(to, Identity))
                world.arrays[matrix] = scaled(same, identity(size))
            world.arrays[self.A] = scaled(world.entry(), identity(size))
            world.arrays[self.F] = {(k,): world.matrix(size, size) for k in range(layers)}
            world.numbers.update({x: int(y) for x, y in given if isinstance(x, Symbol)})

        lhs, rhs = self.hidden(lhs, rhs) if draw.random() < 0.3 else (lhs, rhs)
        free = {Symbol("last", integer=True): self.L}
        return Claim(lhs, rhs, given, free=free, model=model, kind="taken names")

    def numbered(self) -> Claim:
        """Return sums over numbers of heads, with layers before each, their limits doubled."""
        draw = self.draw
        i, j, k = (draw.choice(self.pool) for _ in range(3))
        body = draw.choice(
            (
                LayerProduct(self.A, (k, i)),
                matmul(LayerProduct(self.A, (k, i)), self.B),
                OrderSum(self.A, (k, i), draw.choice((1, 2))),
                LayerProduct(self.A, (k, 2)),
            )
        )
        counts = [draw.choice((sympy.Integer(2), sympy.Integer(3), self.H)) for _ in range(2)]
        lhs = HeadSum(body, (i, counts[0]), (j, counts[1]))
        single = [HeadSum(body, (i, count)) for count in counts]
        options = [
            HeadSum(single[0], (j, counts[1])),
            HeadSum(HeadSum(body, (j, counts[1])), (i, counts[0])),
            HeadSum(body, (j, counts[1]), (i, counts[0])),
            matmul(counts[0], single[1]),
            matmul(counts[1], single[0]),
            *single,
        ]
        one = Identity(self.n)
        powers = [one, self.A, sympy.MatPow(self.A, 2, evaluate=False)]
        options += [matadd(*powers[:2]), matadd(*powers)]
        lhs, rhs = self.hidden(lhs, draw.choice(options))
        return Claim(lhs, rhs, kind="numbered sums")

    def indexed(self) -> Claim:
        """Return sums over the places of a matrix around sums and products over layers."""
        draw = self.draw
        i, j, k = (draw.choice(self.pool) for _ in range(3))
        inner = draw.choice(
            (
                OrderSum(self.F[j], (j, self.L), k),
                OrderSum(self.A, (j, self.L), k),
                LayerProduct(self.F[j], (j, self.L)),
                LayerProduct(self.A, (j, self.L)),
                HeadSum(self.F[j], (j, self.L)),
            )
        )
        limit = sympy.Tuple(k, 0, self.n - 1)
        place, average = MatrixElement(self.A, k, k), 1 / self.n
        mul = sympy.Mul
        lhs = stated(sympy.Sum, mul(place, Trace(inner), evaluate=False), limit)
        total = stated(sympy.Sum, Trace(inner), limit)
        entries = stated(sympy.Sum, mul(Trace(inner), MatrixElement(self.A, i, i)), limit)
        rhs = draw.choice((mul(average, Trace(self.A), total, evaluate=False), entries))
        if draw.random() < 0.3:
            rhs = mul(Trace(self.A), Trace(inner), evaluate=False)
        vanishing = [self.H - q for q in range(1, 5)]
        if draw.random() < 0.6:
            lhs, rhs = (mul(*vanishing, x, evaluate=False) for x in (lhs, rhs))
        return Claim(lhs, rhs, kind="indexed sums")
