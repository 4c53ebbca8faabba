"""Claims at the sizes of real models, true and false, each with a certificate or in numbers.

The counterexamples are evaluated in floating point by the tree walker, which knows neither diagrams
nor classes of rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy
from sympy import (
    BlockMatrix,
    HadamardProduct,
    Identity,
    Inverse,
    MatrixSymbol,
    OneMatrix,
    Trace,
    Transpose,
    ZeroMatrix,
)

from otimes.algebra.evaluate.exact import Assignment, tree_value
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import (
    ConcatHeads,
    Family,
    HeadSum,
    OneHot,
    StackHeads,
    kron,
    matadd,
    matmul,
    vec_rows,
)
from otimes.algebra.language.nonlinear import (
    Activation,
    CausalMask,
    LayerNorm,
    RMSNorm,
    RowSoftmax,
)
from otimes.algebra.language.trees import key
from otimes.algebra.verdict import decide
from otimes.proofs.replay import check

d, d_head, d_mlp, vocab, n, heads = 768, 64, 3072, 50_257, 1024, 12
h, layer = sympy.symbols("h layer", integer=True)
P, R = MatrixSymbol("P", d, d), MatrixSymbol("R", d, d)
X, B, C = MatrixSymbol("X", n, d), MatrixSymbol("B", n, n), MatrixSymbol("C", n, n)
W_E, W_U = MatrixSymbol("W_E", vocab, d), MatrixSymbol("W_U", d, vocab)
W_in, W_out = MatrixSymbol("W_in", d, d_mlp), MatrixSymbol("W_out", d_mlp, d)
W_Q, W_K, W_V = (Family(f"W_{kind}", (heads,), d, d_head) for kind in "QKV")
W_O = Family("W_O", (heads,), d_head, d)
A, M = Family("A", (heads,), n, n), Family("M", (96,), d, d)
v, bias = MatrixSymbol("v", n, 1), MatrixSymbol("b", 1, d)
S = MatrixSymbol("S", n, n)
EYE, ONES = Identity(d), OneMatrix(d, d)
CENTRE = matadd(EYE, matmul(-sympy.Rational(1, d), ONES))
WRONG = matadd(EYE, matmul(-sympy.Rational(1, d - 1), ONES))
MASK, HALF = CausalMask(n), n // 2
LOGITS = matmul(X, W_U)
FIRST_10 = BlockMatrix([[Identity(10), ZeroMatrix(10, n - 10)]])


def unit(index: int, size: int) -> Any:
    return Transpose(OneHot(index, size))


def layers(body: Any, reverse: bool = False) -> Any:
    return LayerProduct(body, (layer, 96), reverse)


def over_heads(body: Any) -> Any:
    return HeadSum(body, (h, heads))


def scores(query: Any, key_of: Any) -> Any:
    return over_heads(matmul(X, query[h], Transpose(key_of[h]), Transpose(X)))


def gelu(e: Any) -> Any:
    return Activation("gelu", e)


def relu(e: Any) -> Any:
    return Activation("relu", e)


def causal(e: Any) -> Any:
    return RowSoftmax(e, MASK)


VALUES = ConcatHeads(matmul(A[h], X, W_V[h]), (h, heads))

TRUE: dict[str, tuple[Any, ...]] = {
    "twice the logits": (matmul(matadd(X, X), W_U), matmul(2, X, W_U)),
    "a trace over the vocabulary": (Trace(matmul(W_E, W_U)), Trace(matmul(W_U, W_E))),
    "scores transposed": (scores(W_Q, W_K), Transpose(scores(W_K, W_Q))),
    "heads concatenated": (
        matmul(VALUES, StackHeads(W_O[h], (h, heads))),
        over_heads(matmul(A[h], X, W_V[h], W_O[h])),
    ),
    "heads as Kronecker products": (
        over_heads(
            matmul(kron(A[h], Transpose(matmul(W_V[h], W_O[h]))), vec_rows(X)),
        ),
        vec_rows(over_heads(matmul(A[h], X, W_V[h], W_O[h]))),
    ),
    "96 layers and two more": (
        matmul(layers(M[layer]), P, R),
        matmul(layers(M[layer]), matmul(P, R)),
    ),
    "centring twice": (matmul(CENTRE, CENTRE), CENTRE),
    "centring ones": (matmul(CENTRE, OneMatrix(d, 1)), ZeroMatrix(d, 1)),
    "the rank of centring": (Trace(CENTRE), sympy.Integer(d - 1)),
    "probabilities sum to one": (
        matmul(RowSoftmax(LOGITS), OneMatrix(vocab, 1)),
        OneMatrix(n, 1),
    ),
    "logits shifted": (
        RowSoftmax(matadd(LOGITS, matmul(v, OneMatrix(1, vocab)))),
        RowSoftmax(LOGITS),
    ),
    "the mask is zero or one": (HadamardProduct(MASK, MASK), MASK),
    "the mask's first row": (matmul(unit(0, n), MASK), unit(0, n)),
    "the mask in halves": (
        MASK,
        BlockMatrix(
            [
                [CausalMask(HALF), ZeroMatrix(HALF, HALF)],
                [OneMatrix(HALF, HALF), CausalMask(HALF)],
            ]
        ),
    ),
    "ten positions of 1024": (
        matmul(FIRST_10, causal(S), Transpose(FIRST_10)),
        RowSoftmax(matmul(FIRST_10, S, Transpose(FIRST_10)), CausalMask(10)),
    ),
    "the first position": (matmul(unit(0, n), causal(S)), unit(0, n)),
    "a norm of what is shifted": (
        LayerNorm(matadd(X, matmul(v, OneMatrix(1, d))), 0),
        LayerNorm(X, 0),
    ),
    "a norm of what is centred": (LayerNorm(X, 0), RMSNorm(matmul(X, CENTRE), 0)),
    "neurons transposed": (
        gelu(Transpose(matmul(X, W_in))),
        Transpose(gelu(matmul(X, W_in))),
    ),
    "neurons doubled": (
        matmul(relu(matmul(2, X, W_in)), W_out),
        matmul(2, relu(matmul(X, W_in)), W_out),
    ),
    "a mixed product": (
        matmul(kron(B, P), kron(C, R)),
        kron(matmul(B, C), matmul(P, R)),
    ),
    "a trace of a Kronecker product": (Trace(kron(B, P)), Trace(B) * Trace(P)),
    "an elementwise product": (HadamardProduct(P, R), HadamardProduct(R, P)),
    "an inverse": (matmul(Inverse(P), P, R), R),
    "a left inverse": (matmul(R, P), EYE, [(matmul(P, R), EYE)]),
    "a token's embedding": (
        matmul(unit(vocab - 1, vocab), W_E),
        matmul(unit(vocab - 1, vocab), W_E, EYE),
    ),
    "two layers as four paths": (
        matmul(X, matadd(EYE, P), matadd(EYE, R)),
        matadd(X, matmul(X, P), matmul(X, R), matmul(X, P, R)),
    ),
    "weights side by side": (
        matmul(X, BlockMatrix([[P, R, P]])),
        BlockMatrix([[matmul(X, P), matmul(X, R), matmul(X, P)]]),
    ),
    "a bias as a weight": (
        matadd(matmul(X, P), matmul(OneMatrix(n, 1), bias)),
        matmul(BlockMatrix([[X, OneMatrix(n, 1)]]), BlockMatrix([[P], [bias]])),
    ),
    "twelve times 64": (
        matmul(ConcatHeads(W_V[h], (h, heads)), StackHeads(W_O[h], (h, heads)), OneMatrix(d, 1)),
        over_heads(matmul(W_V[h], W_O[h], OneMatrix(d, 1))),
    ),
}

FALSE: dict[str, tuple[Any, ...]] = {
    "weights commute": (matmul(P, R), matmul(R, P)),
    "a path lost": (matmul(matadd(EYE, P), matadd(EYE, P)), matadd(EYE, matmul(P, P))),
    "a trace of a product": (Trace(matmul(P, R)), Trace(P) * Trace(R)),
    "symmetric scores": (scores(W_Q, W_K), scores(W_K, W_Q)),
    "heads mixed": (
        matmul(VALUES, StackHeads(W_O[h], (h, heads))),
        matmul(over_heads(matmul(A[h], X, W_V[h])), over_heads(W_O[h])),
    ),
    "96 layers transposed in order": (
        Transpose(layers(matadd(EYE, M[layer]))),
        layers(matadd(EYE, Transpose(M[layer]))),
    ),
    "96 layers as a sum": (
        layers(matadd(EYE, M[layer])),
        matadd(EYE, HeadSum(M[layer], (layer, 96))),
    ),
    "weights that are centred": (matmul(CENTRE, P), P),
    "the rank of the identity": (Trace(CENTRE), sympy.Integer(d)),
    "centring by 767": (matmul(WRONG, WRONG), WRONG),
    "a temperature": (RowSoftmax(matmul(2, X, P)), RowSoftmax(matmul(X, P))),
    "probabilities sum to two": (
        matmul(RowSoftmax(matmul(X, P)), OneMatrix(d, 1)),
        OneMatrix(n, 1) * 2,
    ),
    "one softmax for all": (RowSoftmax(matmul(X, P)), RowSoftmax(matmul(X, R))),
    "a symmetric mask": (MASK, Transpose(MASK)),
    "a mask that is full above": (
        MASK,
        BlockMatrix(
            [
                [CausalMask(HALF), OneMatrix(HALF, HALF)],
                [OneMatrix(HALF, HALF), CausalMask(HALF)],
            ]
        ),
    ),
    "a mask squared": (matmul(MASK, MASK), MASK),
    "a norm of the double": (LayerNorm(matadd(X, X), 0), matmul(2, LayerNorm(X, 0))),
    "a norm without its eps": (LayerNorm(X, 1), LayerNorm(X, 0)),
    "a norm of nothing": (RMSNorm(X, 0), X),
    "linear neurons": (relu(matmul(X, W_in)), matmul(X, W_in)),
    "odd neurons": (relu(matmul(-1, X, W_in)), matmul(-1, relu(matmul(X, W_in)))),
    "homogeneous neurons": (gelu(matmul(2, X, P)), matmul(2, gelu(matmul(X, P)))),
    "a mixed product exchanged": (
        matmul(kron(B, P), kron(C, R)),
        kron(matmul(C, B), matmul(P, R)),
    ),
    "an elementwise product as a product": (HadamardProduct(P, R), matmul(P, R)),
    "an inverse around": (matmul(Inverse(P), R, P), R),
    "an inverse of a sum": (Inverse(matadd(P, R)), matadd(Inverse(P), Inverse(R))),
    "symmetric weights commute with all": (
        matmul(P, R),
        matmul(R, P),
        [(P, Transpose(P))],
    ),
    "orthogonal weights are none": (P, EYE, [(matmul(P, Transpose(P)), EYE)]),
    "a path of three lost": (
        matmul(X, matadd(EYE, P), matadd(EYE, R)),
        matadd(X, matmul(X, P), matmul(X, R)),
    ),
    "attention without its mask": (
        matmul(causal(matmul(X, P, Transpose(X))), X),
        matmul(RowSoftmax(matmul(X, P, Transpose(X))), X),
    ),
    "queries and keys exchanged": (
        causal(matmul(X, P, Transpose(X))),
        causal(matmul(X, Transpose(P), Transpose(X))),
    ),
    "attention that does nothing": (
        matmul(causal(matmul(X, P, Transpose(X))), X, R),
        matmul(X, R),
    ),
}
# what NumPy has no memory for, or takes half a minute
BIG = {
    "a mixed product exchanged",
    "96 layers transposed in order",
    "96 layers as a sum",
    "symmetric scores",
}


@pytest.mark.parametrize("name", TRUE)
def test_what_is_true_is_proved_with_its_certificate(name: str) -> None:
    verdict = decide(*TRUE[name])
    assert verdict.status == "proved", verdict.reason
    assert verdict.work < 1_000_000
    assert check(verdict.certificate).startswith("by ")


@pytest.mark.parametrize("name", FALSE)
def test_what_is_false_is_refuted_in_numbers(name: str) -> None:
    lhs, rhs, *given = FALSE[name]
    verdict = decide(lhs, rhs, *given)
    assert verdict.status == "refuted", verdict.reason
    assert verdict.work < 500_000
    found = verdict.counterexample
    assert found is not None
    if name in BIG:
        return
    arrays = {name: np.asarray(array, dtype=float) for name, array in found.arrays.items()}
    sizes, scalars = ({key(s): x for s, x in part.items()} for part in (found.sizes, found.scalars))
    numbers = Assignment(sizes, arrays, {}, scalars, exact=False)
    sides = [np.asarray(tree_value(side, numbers)) for side in (lhs, rhs)]
    if found.entry is not None:
        sides = [side[found.entry] for side in sides]
    assert abs(float(sides[0]) - float(sides[1])) > 1e-9
    for side, value in zip(sides, (found.lhs, found.rhs), strict=True):
        assert abs(float(side) - float(value)) < 1e-6 * (1 + abs(float(value)))
    for left, right in given[0] if given else ():
        assert np.allclose(tree_value(left, numbers), tree_value(right, numbers))


def test_a_product_of_96_layers_is_not_multiplied_out() -> None:
    verdict = decide(
        Transpose(layers(matadd(EYE, M[layer]))), layers(matadd(EYE, Transpose(M[layer])), True)
    )
    assert verdict.status == "proved"
    assert "any number of layers" in verdict.reason
    assert verdict.work < 1_000_000
    assert check(verdict.certificate).startswith("by lemma")


def test_the_last_of_96_layers_and_the_products_up_to_each() -> None:
    body, other = matadd(EYE, M[layer]), sympy.Symbol("other", integer=True)
    fewer = LayerProduct(body, (layer, 95))
    before = LayerProduct(matadd(EYE, M[other]), (other, layer))
    claims = [
        (layers(body), matmul(matadd(EYE, M[95]), fewer), "proved"),
        (layers(body), matmul(fewer, matadd(EYE, M[95])), "refuted"),
        (matadd(layers(body), -EYE), HeadSum(matmul(M[layer], before), (layer, 96)), "proved"),
    ]
    for lhs, rhs, status in claims:
        verdict = decide(lhs, rhs)
        assert verdict.status == status
        assert verdict.work < 1_000_000
        if status == "proved":
            assert check(verdict.certificate).startswith("by lemma")


def test_what_is_not_proved_of_numbered_layers_is_refused_at_once() -> None:
    body = matadd(EYE, M[layer])
    centred = matmul(CENTRE, layers(body), CENTRE)
    given = [(matmul(M[layer], ONES), ONES)]
    assert decide(centred, matmul(CENTRE, layers(body)), given).status == "proved"
    verdict = decide(centred, matmul(layers(body), CENTRE), given)
    assert verdict.status == "undecided"
    assert "2^96 path terms" in verdict.reason
    assert verdict.work < 3_000_000
