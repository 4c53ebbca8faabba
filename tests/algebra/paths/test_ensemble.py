"""The ensemble of paths: its sum is the product, its counts are those of brute force."""

from __future__ import annotations

import itertools
import tracemalloc
from fractions import Fraction
from typing import Any

import pytest
import sympy
from sympy import Identity, MatrixSymbol, Symbol
from sympy.matrices.expressions.fourier import DFT

from otimes.algebra.errors import LanguageError, OtimesError, ShapeError
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import Family, HeadSum, kron, matadd, matmul, vec_rows
from otimes.algebra.paths.ensemble import expand_paths
from otimes.algebra.paths.path import IncreasingSum
from otimes.algebra.verdict import decide

n, d, d_head, V, H, L = sympy.symbols("n d d_head V H L", integer=True, positive=True)
h, l = sympy.symbols("h l", integer=True)  # noqa: E741 (a layer, as in the papers)
SKIP = kron(Identity(n), Identity(d))
T, W_E, W_U = MatrixSymbol("T", n, V), MatrixSymbol("W_E", d, V), MatrixSymbol("W_U", V, d)


def head(layer: Any, index: Any, count: Any = (L, H)) -> Any:
    A = Family("A", count, n, n)
    W_V, W_O = Family("W_V", count, d_head, d), Family("W_O", count, d, d_head)
    return kron(A[layer, index], matmul(W_O[layer, index], W_V[layer, index]))


def layer(number: Any, heads: Any = H, count: Any = (L, H)) -> Any:
    return matadd(SKIP, HeadSum(head(number, h, count), (h, heads)))


def plain(name: str) -> Any:
    return MatrixSymbol(name, n, n)


def transformer(layers: int, heads: int) -> Any:
    return LayerProduct(layer(l, heads, (layers, heads)), (l, layers))


PRODUCTS: dict[str, Any] = {
    "no sum at all": matmul(plain("A"), plain("B")),
    "one layer": matadd(Identity(n), plain("A")),
    "plain terms": matmul(
        matadd(Identity(n), plain("B"), plain("C")), matadd(Identity(n), plain("A"))
    ),
    "the same layer twice": sympy.MatPow(matadd(Identity(n), plain("A")), 3, evaluate=False),
    "scalars": matmul(
        sympy.Rational(1, 2),
        matadd(matmul(3, Identity(n)), matmul(-1, plain("B"))),
        matadd(Identity(n), plain("A")),
    ),
    "a layer without an identity": matmul(
        matadd(plain("B"), plain("C")), matadd(Identity(n), plain("A"))
    ),
    "identities on every side": matmul(
        matadd(Identity(n), Identity(n), plain("B")), matadd(Identity(n), matmul(2, Identity(n)))
    ),
    "sums inside sums": matmul(
        plain("U"), matadd(Identity(n), matadd(plain("A"), plain("B"))), plain("E")
    ),
    "nested products": matmul(
        plain("U"), matmul(matadd(Identity(n), plain("B")), matadd(Identity(n), plain("A")))
    ),
    "heads of number 3": matmul(layer(1, 3, (2, 3)), layer(0, 3, (2, 3))),
    "two terms a head": matadd(
        Identity(n),
        HeadSum(
            matadd(Family("P", 2, n, n)[h], Family("Q", 2, n, n)[h]),
            (h, 2),
        ),
    ),
    "heads of any number": matmul(layer(2), layer(1), layer(0)),
    "an MLP between": matmul(
        layer(1, 2, (2, 2)),
        matadd(SKIP, kron(Identity(n), MatrixSymbol("M", d, d))),
        layer(0, 2, (2, 2)),
    ),
    "from tokens to logits": matmul(
        kron(Identity(n), W_U), layer(1), layer(0), kron(Identity(n), W_E), vec_rows(T)
    ),
    "a LayerProduct": transformer(2, 2),
    "a LayerProduct on a row": LayerProduct(
        matadd(Identity(n), HeadSum(Family("P", (3, 2), n, n)[l, h], (h, 2))), (l, 3), reverse=True
    ),
    "no layers": LayerProduct(matadd(Identity(n), plain("A")), (l, 0)),
}


def written_out(e: Any) -> Any:
    """Return the product with the layers, and the heads where their number is one, written out."""
    if isinstance(e, LayerProduct):
        factors = [written_out(factor) for factor in e.factors()]
        return matmul(*factors) if factors else Identity(e.shape[0])
    if isinstance(e, HeadSum) and e.limits[0][1].is_Integer:
        (index, count), *others = e.limits
        body = HeadSum(e.body, *others) if others else e.body
        members = [written_out(body.xreplace({index: sympy.Integer(k)})) for k in range(count)]
        return matadd(*members)
    if isinstance(e, sympy.MatMul | sympy.MatAdd):
        return e.func(*[written_out(argument) for argument in e.args], evaluate=False)
    return e


@pytest.mark.parametrize("name", PRODUCTS)
def test_the_sum_of_all_paths_is_the_product(name: str) -> None:
    product = PRODUCTS[name]
    paths = list(expand_paths(product))
    for face in ("expression", "product"):
        total = matadd(*[getattr(path, face) for path in paths])
        assert decide(written_out(product), total).status == "proved", face


@pytest.mark.parametrize("name", PRODUCTS)
def test_the_sums_of_all_orders_are_the_product(name: str) -> None:
    product = PRODUCTS[name]
    paths = expand_paths(product)
    orders = range(len(paths.count_by_order))
    total = matadd(*[paths.sum_of_order(k) for k in orders])
    assert decide(written_out(product), written_out(total)).status == "proved"


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_path_less_is_not_the_product(name: str) -> None:
    product = PRODUCTS[name]
    kept = [path.expression for path in expand_paths(product)][:-1]
    if kept:
        assert decide(written_out(product), matadd(*kept)).status == "refuted"


@pytest.mark.parametrize("name", PRODUCTS)
def test_counts_agree_with_the_paths_themselves(name: str) -> None:
    expansion = expand_paths(PRODUCTS[name])
    paths = list(expansion)
    counted = expansion.count_by_order
    for k, count in enumerate(counted):
        here = [path for path in paths if path.order == k]
        assert sympy.expand(sum(path.count for path in here) - count) == 0
        assert [repr(p) for p in expansion.order(k)] == [repr(p) for p in here]
        assert sympy.expand(expansion.count_of_order(k) - count) == 0
    assert sympy.expand(sum(counted) - expansion.count) == 0
    assert [path.order for path in paths] == sorted(path.order for path in paths)
    mean = sum(sympy.sympify(count) * k for k, count in enumerate(counted)) / sum(counted)
    assert sympy.cancel(mean - expansion.mean_order) == 0
    assert not list(expansion.order(len(counted)))
    assert all(len(path.steps) == path.order for path in paths)


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_rank_finds_the_path_that_the_walk_meets_there(name: str) -> None:
    expansion = expand_paths(PRODUCTS[name])
    walked = [path.expression for path in expansion]
    assert [expansion[k].expression for k in range(len(walked))] == walked
    assert expansion[-1].expression == walked[-1]
    assert [path.expression for path in expansion[1:3]] == walked[1:3]


def test_counts_of_unequal_layers_agree_with_brute_force() -> None:
    heads = [1, 3, 0, 2, 5]
    product = matmul(
        *[
            matadd(Identity(n), HeadSum(Family(f"P{k}", count, n, n)[h], (h, count)))
            for k, count in enumerate(heads)
        ]
    )
    brute = [0] * 6
    for choice in itertools.product(*[range(count + 1) for count in heads]):
        brute[sum(c > 0 for c in choice)] += 1
    paths = expand_paths(product)
    assert paths.count_by_order == brute[:5]
    assert paths.mean_order == Fraction(sum(k * c for k, c in enumerate(brute)), sum(brute))


def test_twelve_layers_of_twelve_heads() -> None:
    paths = expand_paths(transformer(12, 12))
    assert paths.count == 13**12 == 23_298_085_122_481
    assert paths.mean_order == Fraction(144, 13)
    assert paths.count_by_order == [sympy.binomial(12, k) * 12**k for k in range(13)]
    assert repr(paths) == "<23298085122481 paths, mean order 144/13>"


def test_nothing_is_built_that_is_not_asked_for() -> None:
    tracemalloc.start()
    paths = expand_paths(transformer(12, 12))
    first = [path.expression for path in itertools.islice(paths, 200)]
    last, middle = paths[-1], paths[10**13]
    assert len(paths.sum_of_order(2).args) == 66
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(set(first)) == 200
    assert last.order == 12
    assert last.layers == tuple(range(12))
    assert middle.order == 11
    assert peak < 100e6


def test_a_thousand_layers_and_a_milliard_heads_are_counted_and_entered() -> None:
    paths = expand_paths(transformer(1000, 10**9))
    assert paths.count == (1 + 10**9) ** 1000
    second = next(paths.order(2))
    assert second.layers == (0, 1)
    assert paths[10**11].layers == (99,)


def test_a_path_says_what_it_takes() -> None:
    paths = expand_paths(transformer(3, 2))
    path = list(paths.order(2))[-1]
    assert path.order == 2
    assert [(step.layer, step.heads) for step in path.steps] == [(1, (1,)), (2, (1,))]
    assert path.steps[0].term == head(1, 1, (3, 2)).xreplace({})
    assert path.latex() == (
        r"A^{3,2} \, A^{2,2} \otimes W_{O}^{3,2} \, W_{V}^{3,2} \, W_{O}^{2,2} \, W_{V}^{2,2}"
    )
    assert repr(path) == "<path of order 2 through layers 1, 2>"


def test_on_a_row_the_later_layer_stands_on_the_right() -> None:
    P = Family("P", (3,), n, n)
    body = matadd(Identity(n), P[l])
    column = list(expand_paths(LayerProduct(body, (l, 3))).order(2))
    row = list(expand_paths(LayerProduct(body, (l, 3), reverse=True)).order(2))
    assert [path.layers for path in column] == [path.layers for path in row]
    assert column[0].expression == matmul(P[1], P[0])
    assert row[0].expression == matmul(P[0], P[1])


def test_symbols_of_heads_and_layers_stay_symbols() -> None:
    paths = expand_paths(LayerProduct(layer(l), (l, L)))
    assert paths.count == (1 + H) ** L
    assert sympy.simplify(paths.mean_order - L * H / (1 + H)) == 0
    assert paths.count_of_order(2) == sympy.binomial(L, 2) * H**2
    zero, one, two = itertools.islice(paths, 3)
    assert zero.expression == SKIP
    assert one.expression == HeadSum(head(l, h), (l, L), (h, H))
    assert two.order == 2
    assert two.count == sympy.binomial(L, 2) * H**2
    assert isinstance(two.expression, IncreasingSum)
    assert r"\sum_{1 \le l_{1} < l_{2} \le L}" in two.latex()


def test_a_sum_over_increasing_layers_agrees_with_the_layers_written_out() -> None:
    P = Family("P", (4,), n, n)
    body = matadd(Identity(n), P[l])
    M = Symbol("M", integer=True, positive=True)
    symbolic = expand_paths(LayerProduct(body.xreplace({P: Family("P", (M,), n, n)}), (l, M)))
    for k in (2, 3, 4):
        terms = symbolic.sum_of_order(k).xreplace({M: sympy.Integer(4)}).terms()
        numeric = expand_paths(LayerProduct(body, (l, 4))).sum_of_order(k)
        assert decide(matadd(*terms) if k < 4 else next(terms), numeric).status == "proved"


@pytest.mark.parametrize("k", [0, 1, 2, 3, 4, 7])
def test_counts_of_a_symbolic_depth_are_right_at_every_number(k: int) -> None:
    mlp = matadd(SKIP, kron(Identity(n), Family("M", (L,), d, d)[l]))
    paths = expand_paths(LayerProduct(matmul(mlp, layer(l)), (l, L)))
    for depth in (1, 2, 4):
        numeric = expand_paths(
            LayerProduct(
                matmul(
                    matadd(SKIP, kron(Identity(n), Family("M", (depth,), d, d)[l])),
                    layer(l, 3, (depth, 3)),
                ),
                (l, depth),
            )
        )
        symbolic = sympy.sympify(paths.count_of_order(k))
        assert symbolic.subs({L: depth, H: 3}) == numeric.count_of_order(k)
    with pytest.raises(LanguageError, match=r"is not of the form I \+ HeadSum"):
        next(iter(paths))


def test_latex_writes_a_line_an_order_and_says_how_many_there_are() -> None:
    text = expand_paths(transformer(12, 12)).latex(limit=2)
    assert text == (
        r"\begin{aligned} & I_{n} \otimes I_{d} \\ & + A^{1,1} \otimes W_{O}^{1,1} \, W_{V}^{1,1} "
        r"\\ & + \cdots \quad (23298085122481 \text{ paths}) \end{aligned}"
    )
    A, B = plain("A"), plain("B")
    small = expand_paths(matmul(matadd(Identity(n), matmul(-1, B)), matadd(Identity(n), A)))
    assert small.latex() == (r"\begin{aligned} & I_{n} \\ & + A - B \\ & - B \, A \end{aligned}")
    assert small._repr_latex_() == rf"$\displaystyle {small.latex()}$"


def test_layer_product_prints_in_its_direction() -> None:
    P = Family("P", (L,), n, n)
    body = matadd(Identity(n), P[l])
    assert r"\prod_{l=L}^{1}" in sympy.latex(LayerProduct(body, (l, L)))
    assert r"\prod_{l=1}^{L}" in sympy.latex(LayerProduct(body, (l, L), reverse=True))
    rebuilt = LayerProduct(body, (l, L), reverse=True)
    assert rebuilt.func(*rebuilt.args) == rebuilt
    assert rebuilt.free_symbols >= {L}
    assert l not in rebuilt.free_symbols


A, B = plain("A"), plain("B")
WRONG: list[tuple[Any, type[OtimesError], str]] = [
    (7, LanguageError, "expand_paths was given int 7: a matrix product of layers is needed"),
    (Symbol("x"), LanguageError, "expand_paths was given Symbol x: a matrix product"),
    (matmul(A, W_E), ShapeError, "cannot multiply A .n × n. by W_E .d × V."),
    (matadd(Identity(d), A), ShapeError, "cannot add"),
    (LayerProduct(W_E, (l, L)), ShapeError, r"W_E \(d × V\): a square matrix is needed"),
    (LayerProduct(Family("P", (3,), n, n)[l], (l, L)), ShapeError, "runs over 3 values"),
    (matmul(DFT(n), matadd(Identity(n), A)), LanguageError, "DFT is not in the language"),
]


@pytest.mark.parametrize(("product", "kind", "sentence"), WRONG)
def test_wrong_input_is_told_in_a_sentence(product: Any, kind: type, sentence: str) -> None:
    with pytest.raises(kind, match=sentence) as caught:
        expand_paths(product)
    assert "\n" not in str(caught.value)


def test_wrong_questions_are_told_in_a_sentence() -> None:
    endless = expand_paths(LayerProduct(layer(l), (l, L)))
    with pytest.raises(OtimesError, match="the number of layers L is a symbol"):
        _ = endless.count_by_order
    with pytest.raises(OtimesError, match="the number of layers L is a symbol"):
        _ = endless[3]
    paths = expand_paths(transformer(2, 2))
    with pytest.raises(OtimesError, match="there is no path 9: ranks run from 0 to 8"):
        _ = paths[9]
    for order in (-1, 1.5, "two"):
        with pytest.raises(OtimesError, match="orders are integers from 0 on"):
            paths.order(order)  # type: ignore[arg-type]
    with pytest.raises(OtimesError, match="more than 1000 terms"):
        expand_paths(transformer(20, 2)).sum_of_order(10)
    with pytest.raises(OtimesError, match="at least 1"):
        paths.latex(limit=0)
    skipless = expand_paths(LayerProduct(Family("P", (L,), n, n)[l] * 1, (l, L)))
    assert skipless.count == 1
    with pytest.raises(ShapeError, match="put a number for L"):
        LayerProduct(layer(l), (l, L)).factors()
    with pytest.raises(ShapeError, match="multiplies matrices, not int"):
        LayerProduct(3, (l, L))
    for limit in ((3, L), (l, -1)):
        with pytest.raises(ShapeError, match="a Symbol and how many layers there are, 0 or more"):
            LayerProduct(layer(l), limit)
    with pytest.raises(ShapeError, match="one index and its count"):
        LayerProduct(layer(l), l)
