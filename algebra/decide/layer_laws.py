"""Laws about products over layers, each proved by induction when it is first needed.

A law is a lemma (`lemmas`): it is stated for any layers A_l, B_l, and used for those of a claim for
which its hypotheses follow. So what is proved by induction once, such as

    X A_l = B_l X for each layer   gives   X ΠA = ΠB X

need not be found by the induction for a claim in which it is one step of many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import permutations
from typing import Any, NamedTuple

import sympy
from sympy import Identity, KroneckerProduct, MatrixSymbol, Transpose

from otimes.algebra.decide.lemmas import Cited
from otimes.algebra.language.binders import free_symbols, substituted
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import Family, HeadSum, as_product, kron, matadd, matmul
from otimes.algebra.language.sizes import same_size

Equation = tuple[Any, Any]
Body = Callable[[Any], Any]  # the layer at an index
Law = tuple[Any, Any, list[Equation]]
n, p, L, r = sympy.symbols("n p L r", integer=True, positive=True)
l, m = sympy.symbols("l m", integer=True)  # noqa: E741 (as on paper)
MOST = 10  # products of one claim, and matrices that may pass one, for which laws are tried


class Form(NamedTuple):
    """The form of a product: its number of layers, and the order of a sum over paths."""

    count: Any
    order: Any  # None for a product
    reverse: bool
    index: Any = l
    other: Any = m

    def of(self, body: Body, turned: bool = False) -> Any:
        """Return the product of some layers, or the sum over paths of the order."""
        limit, reverse = (self.index, self.count), self.reverse != turned
        if self.order is None:
            return LayerProduct(body(self.index), limit, reverse)
        return OrderSum(body(self.index), limit, self.order, reverse)


def _equal(form: Form, A: Body, B: Body) -> Law:
    return form.of(A), form.of(B), [(A(form.index), B(form.index))]


def _transposed(form: Form, A: Body, B: Body) -> Law:
    layer = A(form.index), Transpose(B(form.index))
    return form.of(A, turned=True), Transpose(form.of(B)), [layer]


def _passes(form: Form, A: Body, B: Body, X: Body) -> Law:
    at, x = form.index, X(None)
    layer = matmul(x, A(at)), matmul(B(at), x)
    return matmul(x, form.of(A)), matmul(form.of(B), x), [layer]


def _beside_left(form: Form, A: Body, B: Body, I: Body) -> Law:  # noqa: E741
    layer = A(form.index), kron(B(form.index), I(None))
    return form.of(A), kron(form.of(B), I(None)), [layer]


def _beside_right(form: Form, A: Body, B: Body, I: Body) -> Law:  # noqa: E741
    layer = A(form.index), kron(I(None), B(form.index))
    return form.of(A), kron(I(None), form.of(B)), [layer]


def _beside(form: Form, A: Body, B: Body, C: Body) -> Law:
    at = form.index
    return form.of(A), kron(form.of(B), form.of(C)), [(A(at), kron(B(at), C(at)))]


def _scaled(form: Form, A: Body, B: Body, c: Body) -> Law:
    at = form.index
    factor = sympy.Pow(c(None), form.count if form.order is None else form.order, evaluate=False)
    return form.of(A), matmul(factor, form.of(B)), [(A(at), matmul(c(None), B(at)))]


def _reversed(form: Form, A: Body) -> Law:
    at, other = form.index, form.other
    commute = matmul(A(at), A(other)), matmul(A(other), A(at))
    return form.of(A), form.of(A, turned=True), [commute]


def _factors(form: Form, A: Body, B: Body, C: Body) -> Law:
    at, other = form.index, form.other
    layer = A(at), matmul(B(at), C(at))
    commute = matmul(B(at), C(other)), matmul(C(other), B(at))
    return form.of(A), matmul(form.of(B), form.of(C)), [layer, commute]


def _inverse(form: Form, A: Body, B: Body) -> Law:
    product = matmul(form.of(A), form.of(B, turned=True))
    one = Identity(product.shape[0])
    return product, one, [(matmul(A(form.index), B(form.index)), one)]


def _orthogonal(form: Form, A: Body) -> Law:
    layer, whole = A(form.index), form.of(A)
    one = Identity(layer.shape[0])
    known = matmul(layer, Transpose(layer)), one
    return matmul(whole, Transpose(whole)), one, [known]


def _identity(form: Form, A: Body) -> Law:
    one = Identity(A(form.index).shape[0])
    return form.of(A), one, [(A(form.index), one)]


def _no_paths_of_two(form: Form, A: Body, B: Body) -> Law:
    at, other = form.index, form.other
    one = Identity(A(at).shape[0])
    layer = A(at), matadd(one, B(at))
    none = matmul(B(at), B(other)), sympy.ZeroMatrix(*B(at).shape)
    return form.of(A), matadd(one, HeadSum(B(at), (at, form.count))), [layer, none]


# What each law is about, in the order in which one may be used to prove another.
SQUARE, PAIR, TIMES = (n, n), (p, p), (n * p, n * p)
LAWS: dict[str, tuple[Callable[..., Law], dict[str, Any], bool]] = {
    "layers that are equal": (_equal, {"A": SQUARE, "B": SQUARE}, True),
    "transposed layers": (_transposed, {"A": SQUARE, "B": SQUARE}, True),
    "what passes each layer": (_passes, {"A": SQUARE, "B": PAIR, "X": "p n"}, True),
    "layers beside the same matrix": (
        _beside_left,
        {"A": TIMES, "B": SQUARE, "I": "identity"},
        True,
    ),
    "the same matrix beside layers": (
        _beside_right,
        {"A": TIMES, "B": PAIR, "I": "identity"},
        True,
    ),
    "layers beside layers": (_beside, {"A": TIMES, "B": SQUARE, "C": PAIR}, False),
    "scaled layers": (_scaled, {"A": SQUARE, "B": SQUARE, "c": "scalar"}, True),
    "layers that are the identity": (_identity, {"A": SQUARE}, False),
    "inverse layers": (_inverse, {"A": SQUARE, "B": SQUARE}, False),
    "orthogonal layers": (_orthogonal, {"A": SQUARE}, False),
    "layers that commute": (_reversed, {"A": SQUARE}, False),
    "layers of factors that commute": (
        _factors,
        {"A": SQUARE, "B": SQUARE, "C": SQUARE},
        False,
    ),
    "no paths of two layers": (_no_paths_of_two, {"A": SQUARE, "B": SQUARE}, False),
}


class Wanted(NamedTuple):
    """A law that may be useful, and the values of its symbols as functions of the layer."""

    law: str
    form: Form
    values: Mapping[str, Body]


def statement(law: str, ordered: bool, reverse: bool) -> Law:
    """Return a law in its general form."""
    make, symbols, _ = LAWS[law]
    form = Form(L, r if ordered else None, reverse)
    return make(form, **{name: _symbol(name, shape, symbols) for name, shape in symbols.items()})


def _symbol(name: str, shape: Any, symbols: Mapping[str, Any]) -> Body:
    """Return a symbol of a law as a function of the index."""
    if shape == "scalar":
        return lambda _: sympy.Symbol(name)
    if shape == "identity":  # of the size that is left
        size = p if symbols["B"] == SQUARE else n
        return lambda _: Identity(size)
    if isinstance(shape, str):
        return lambda _: MatrixSymbol(name, p, n)
    family = Family(name, (L,), *shape)
    return lambda at: family[at]


# -- which laws speak of the products of a claim ---------------------------------------------------


def form_of(e: Any, index: Any, other: Any) -> Form | None:
    """Return the form of a product over a symbolic number of layers, or None."""
    order = e.order if isinstance(e, OrderSum) else None
    if not isinstance(e, LayerProduct | OrderSum) or e.count.is_Integer:
        return None
    if not (isinstance(e.count, sympy.Symbol) or e.count.is_positive):
        return None
    if order is not None and not (order.is_integer and order.is_positive):
        return None
    return Form(e.count, order, e.reverse, index, other)


def layer_of(e: Any) -> Body:
    """Return the layers of a product as a function of the index."""
    return lambda at: substituted(e.body, {e.index: at})


def constant(e: Any) -> Body:
    """Return the constant function of the layer."""
    return lambda _: e


def wanted(products: Sequence[Any], passing: Sequence[Any], fresh: Any) -> Iterator[Wanted]:
    """Yield laws that may hold for products of a claim, and for the matrices beside them."""
    forms = [(e, form) for e in products if (form := form_of(e, *fresh)) is not None][:MOST]
    for e, form in forms:
        yield from _of_one(e, form)
    for (e, form), (f, its) in permutations(forms, 2):
        if (form.count, form.order) != (its.count, its.order):
            continue
        A, B = layer_of(e), layer_of(f)
        if e.shape == f.shape:
            if form.reverse != its.reverse:
                yield Wanted("transposed layers", its, {"A": A, "B": B})
                yield Wanted("inverse layers", form, {"A": A, "B": B})
            elif products.index(e) < products.index(f):
                yield Wanted("layers that are equal", form, {"A": A, "B": B})
    for x in passing[:MOST]:
        for e, form in forms:
            for f, its in forms:
                alike = (form.count, form.order, form.reverse) == (
                    its.count,
                    its.order,
                    its.reverse,
                )
                fits = same_size(x.shape[0], f.shape[0]) and same_size(x.shape[1], e.shape[0])
                if alike and fits:
                    values = {"A": layer_of(e), "B": layer_of(f), "X": constant(x)}
                    yield Wanted("what passes each layer", form, values)


def _of_one(e: Any, form: Form) -> Iterator[Wanted]:
    """Yield the laws that apply to a product, by the form of its layers."""
    body, A = e.body, layer_of(e)

    def part(factor: Any) -> Body:
        return lambda at: substituted(factor, {e.index: at})

    def fixed(factor: Any) -> bool:
        return e.index not in free_symbols(factor)

    if isinstance(body, Identity):
        yield Wanted("layers that are the identity", form, {"A": A})
    if isinstance(body, Transpose):
        turned = form._replace(reverse=not form.reverse)
        yield Wanted("transposed layers", turned, {"A": A, "B": part(body.args[0])})
    if isinstance(body, KroneckerProduct) and all(same_size(*a.shape) for a in body.args):
        first, *rest = body.args
        second = rest[0] if len(rest) == 1 else kron(*rest)
        if isinstance(second, Identity):
            values = {"A": A, "B": part(first), "I": constant(second)}
            yield Wanted("layers beside the same matrix", form, values)
        elif isinstance(first, Identity):
            values = {"A": A, "B": part(second), "I": constant(first)}
            yield Wanted("the same matrix beside layers", form, values)
        else:
            values = {"A": A, "B": part(first), "C": part(second)}
            yield Wanted("layers beside layers", form, values)
    if isinstance(body, sympy.MatMul):
        numbers = [a for a in body.args if not a.is_Matrix]
        matrices = [a for a in body.args if a.is_Matrix]
        if numbers and matrices and all(map(fixed, numbers)) and _plain(numbers):
            rest = as_product(matrices)
            values = {"A": A, "B": part(rest), "c": constant(sympy.Mul(*numbers))}
            yield Wanted("scaled layers", form, values)
        elif not numbers and all(same_size(*a.shape) for a in matrices):
            for k in range(1, len(matrices)):
                halves = [part(as_product(half)) for half in (matrices[:k], matrices[k:])]
                values = {"A": A, "B": halves[0], "C": halves[1]}
                yield Wanted("layers of factors that commute", form, values)
    if isinstance(body, sympy.MatAdd) and any(isinstance(a, Identity) for a in body.args):
        rest = [a for a in body.args if not isinstance(a, Identity)]
        if len(rest) == len(body.args) - 1:
            other = part(rest[0] if len(rest) == 1 else matadd(*rest))
            yield Wanted("no paths of two layers", form, {"A": A, "B": other})
    yield Wanted("layers that commute", form, {"A": A})
    if form.order is None:
        yield Wanted("orthogonal layers", form, {"A": A})


def _plain(numbers: Iterable[Any]) -> bool:
    """Return whether numbers are made of symbols alone."""
    return not any(e.atoms(sympy.MatrixExpr) for e in numbers)


def beside(sides: Iterable[Any], products: Iterable[Any]) -> list[Any]:
    """Return the matrices next to products, or to sums with one, and at the ends of layers."""
    known, found = set(products), dict[Any, None]()
    for side in sides:
        for e in sympy.preorder_traversal(side):
            if not isinstance(e, sympy.MatMul):
                continue
            matrices = [a for a in e.args if a.is_Matrix]
            for k, one in enumerate(matrices):
                if one in known or (isinstance(one, sympy.MatAdd) and known & {*one.args}):
                    found.update(dict.fromkeys(_runs(matrices[k + 1 :], known)))
                    found.update(dict.fromkeys(_runs(matrices[:k][::-1], known, turned=True)))
    return list(found)


def _runs(matrices: Sequence[Any], known: Any, turned: bool = False) -> Iterator[Any]:
    """Yield the first of some matrices, and all of them up to a product."""
    run: list[Any] = []
    for one in matrices:
        if one in known:
            break
        run.append(one)
    if run:
        yield run[0]
    if len(run) > 1:
        yield as_product(run[::-1] if turned else run)


def ends(products: Iterable[Any]) -> Iterator[Any]:
    """Yield the first and the last factor of the layers if they do not depend on the layer."""
    for e in products:
        body = getattr(e, "body", None)
        if isinstance(body, sympy.MatMul):
            matrices = [a for a in body.args if a.is_Matrix]
            for one in (matrices[0], matrices[-1]):
                if e.index not in free_symbols(one):
                    yield one


def instance(want: Wanted, law: Any, premises: Sequence[tuple[Any, Sequence[str]]]) -> Cited:
    """Return the instance of a proved law for the given values."""
    make, symbols, _ = LAWS[want.law]
    form = want.form
    lhs, rhs, _ = make(form, **want.values)
    sizes: dict[str, Any] = {"L": form.count, "r": form.order}
    tensors: dict[str, Any] = {}
    scalars: dict[str, Any] = {}
    for name, shape in symbols.items():
        value = want.values[name](form.index)
        if shape == "scalar":
            scalars[name] = value
            continue
        if shape == "identity":
            sizes["p" if symbols["B"] == SQUARE else "n"] = value.shape[0]
            continue
        if isinstance(shape, str):
            tensors[name] = ((), value)
            continue
        tensors[name] = ((form.index,), value)
        if shape in (SQUARE, PAIR):
            sizes[str(shape[0])] = value.shape[0]
    kept = {name: sizes[name] for name in law.claim.signature.sizes}
    return Cited(law, lhs, rhs, kept, tensors, scalars, (), tuple(premises))


def premises_of(want: Wanted) -> list[Equation]:
    """Return the hypotheses of a law for the given values."""
    return LAWS[want.law][0](want.form, **want.values)[2]


@cache
def order_of(law: str) -> int:
    """Return the place of a law among all."""
    return list(LAWS).index(law)
