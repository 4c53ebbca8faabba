"""The circuits of a head, W_V W_O and W_Q W_Kᵀ, and known mistakes in computing them.

Each is a formula in the language: a known mistake is a `Swap` of its factors or of the product.
Conventions: rows. Source: Elhage et al. 2021.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
import sympy
from sympy import HadamardProduct, Identity, Rational, Trace, Transpose
from sympy.matrices.expressions.diagonal import DiagonalOf

from otimes.algebra.language.linear import matadd, matmul
from otimes.algebra.language.nonlinear import RSQRT, Activation
from otimes.algebra.mutations import Swap
from otimes.numeric.audit.analyses.question import (
    SCREENED,
    Array,
    Asked,
    Replaced,
    d,
    gain,
    m,
    row_scaled,
    symbol,
    weight,
)

BEHIND = {"W_Q": "W_Qᵀ", "W_K": "W_Kᵀ", "W_V": "W_Vᵀ", "W_O": "W_O"}
"""How each weight is written as the right factor of a circuit."""

OV, QK = ("W_V", "W_O"), ("W_Q", "W_K")


def left_factor(name: str, layer: int, head: int) -> sympy.MatrixExpr:
    """Return a weight of a head as a left factor, d_model × d_head."""
    one = weight(name, layer, head)
    return Transpose(one) if name == "W_O" else one


def right_factor(name: str, layer: int, head: int) -> sympy.MatrixExpr:
    """Return a weight of a head as a right factor, d_head × d_model."""
    one = weight(name, layer, head)
    return one if name == "W_O" else Transpose(one)


@lru_cache(maxsize=4096)
def circuit(letters: tuple[str, str], layer: int, head: int) -> sympy.MatrixExpr:
    """Return the product of two weights of a head, d_model × d_model."""
    return matmul(left_factor(letters[0], layer, head), right_factor(letters[1], layer, head))


def circuit_of(letters: tuple[str, str], asked: Asked, replaced: Replaced) -> Array:
    """Return the value of a circuit W_QK or W_OV, with some steps of its formula replaced."""
    steps = dict(replaced)
    change = steps.pop("singular values", None)
    expression = circuit(letters, *asked.one_head()).xreplace(steps)
    if change is None:
        return asked.value(expression)
    left, right = expression, Identity(d)
    kinds = [each.is_Matrix for each in expression.args]
    if isinstance(expression, sympy.MatMul) and kinds == [True, True]:
        left, right = expression.args
    whole = replace(asked, screening=False)
    (Q, R), (P, S) = np.linalg.qr(whole.value(left)), np.linalg.qr(whole.value(right).T)
    U, values, W = np.linalg.svd(R @ S.T)
    columns = P[: SCREENED if asked.screening else None].T
    return np.asarray((Q @ (U * change(values))) @ (W @ columns))


def circuit_mistakes(
    letters: tuple[str, str], asked: Asked, shape: tuple[int, ...]
) -> Iterator[Swap]:
    """Yield the known mistakes of a circuit: other factors, heads and gains, other products."""
    model, own = asked.model, asked.one_head()
    left, right = left_factor(letters[0], *own), right_factor(letters[1], *own)
    whole = matmul(left, right)
    if shape == (model.d_head, model.d_head):
        says = "the product inside the head, [d_head, d_head]"
        yield Swap(says, {whole: matmul(right, left)})
    if shape == (model.d_vocab, model.d_vocab):
        W_E, W_U = symbol("W_E", m, d), symbol("W_U", d, m)
        behind = W_U if letters == OV else Transpose(W_E)
        yield Swap("the full circuit on the vocabulary", {whole: matmul(W_E, whole, behind)})
    yield from changes_of_a_circuit(letters, asked)
    for other in asked.other_heads():
        of = f"of another head, {other[0]}.{other[1]}"
        yield Swap(f"{letters[0]} {of}", {left: left_factor(letters[0], *other)})
        yield Swap(f"{letters[1]} {of}", {right: right_factor(letters[1], *other)})
        turned = Transpose(circuit(letters, *other))
        yield Swap(f"the circuit {of}, transposed", {whole: turned})
    for rank in range(1, model.d_head):
        says = f"the circuit cut off behind {rank} singular values"
        yield Swap(says, {"singular values": partial(_largest, rank)})
    spectral = {"singular values": lambda values: values / values[0]}
    yield Swap("a circuit divided by its spectral norm", spectral)


def _largest(rank: int, values: Array) -> Array:
    return np.where(np.arange(len(values)) < rank, values, 0)


def changes_of_a_circuit(letters: tuple[str, str], asked: Asked) -> Iterator[Swap]:
    """Yield the swaps of the weights and of the circuit of a head."""
    layer, head = own = asked.one_head()
    left, right = left_factor(letters[0], *own), right_factor(letters[1], *own)
    whole = matmul(left, right)
    yield from _other_factors(letters, left, right, own)
    for letter, factor in zip(letters, (left, right), strict=True):
        one = weight(letter, *own)
        for made, says in (
            ("reshaped", f"{letter} reshaped where it is to be transposed"),
            ("strided", f"{letter} of a head taken with a stride, every n_heads-th column"),
        ):
            yield Swap(
                says,
                {
                    factor: factor.xreplace(
                        {one: symbol(f"{letter} {made}[{layer}, {head}]", *one.shape)}
                    )
                },
            )
    yield from _gains(letters, left, right, layer, asked.model.n_layers)
    reads, writes = ("reads", "writes") if letters == OV else ("queries", "keys")
    centring = matadd(Identity(d), matmul(-1 / d, sympy.OneMatrix(d, d)))
    first, second = {left: matmul(centring, left)}, {right: matmul(right, centring)}
    yield Swap(f"what it {reads} centred: the column means subtracted", first)
    yield Swap(f"what it {writes} centred: the row means subtracted", second)
    yield Swap("a circuit centred on both sides", {**first, **second})
    for says, made in _other_matrices(letters, layer, head, asked.model.n_heads):
        yield Swap(says, {whole: made})


def _other_matrices(
    letters: tuple[str, str], layer: int, head: int, n_heads: int
) -> Iterator[tuple[str, sympy.MatrixExpr]]:
    """Yield other matrices made of a layer's circuits, as replacements of one head's circuit."""
    heads = [circuit(letters, layer, each) for each in range(n_heads)]
    whole, every, half = heads[head], matadd(*heads), Rational(1, 2)
    turned, identity = Transpose(whole), Identity(d)
    yield "the sum over all heads of the layer", every
    yield "the mean over all heads of the layer", matmul(Rational(1, n_heads), every)
    if n_heads > 1:
        others = matadd(*heads[:head], *heads[head + 1 :])
        yield "the sum over the other heads of the layer", others
    yield "the sum over the heads of the layer up to this one", matadd(*heads[: head + 1])
    if letters == OV:
        yield "a circuit with the identity added: the residual stream", matadd(whole, identity)
        yield "a circuit less the identity", matadd(whole, matmul(-1, identity))
    yield "the symmetric part of the circuit", matmul(half, matadd(whole, turned))
    antisymmetric = matmul(half, matadd(whole, matmul(-1, turned)))
    yield "the antisymmetric part of the circuit", antisymmetric
    rows = row_scaled(Activation(RSQRT, DiagonalOf(matmul(whole, turned))), whole)
    yield "a circuit whose rows are normalised to length one", rows
    columns = row_scaled(Activation(RSQRT, DiagonalOf(matmul(turned, whole))), turned)
    yield "a circuit whose columns are normalised to length one", Transpose(columns)
    length = sympy.Pow(Trace(matmul(turned, whole)), -half)
    yield "a circuit divided by its Frobenius norm", matmul(length, whole)
    diagonal = matmul(-1, HadamardProduct(whole, identity))
    yield "a circuit whose diagonal is set to zero", matadd(whole, diagonal)
    yield "the circuit applied twice", matmul(whole, whole)


def _other_factors(
    letters: tuple[str, str],
    first: sympy.MatrixExpr,
    second: sympy.MatrixExpr,
    own: tuple[int, int],
) -> Iterator[Swap]:
    """Yield circuits of other weights of the same head."""
    right = f"{letters[0]} {BEHIND[letters[1]]}"
    for left in BEHIND:
        for other in BEHIND:
            if (left, other) == letters:
                continue
            says = f"{'W_Oᵀ' if left == 'W_O' else left} {BEHIND[other]} for {right}"
            if (other, left) == letters and letters == OV:
                says = "W_O W_V for W_V W_O: the circuit transposed, as columns have it"
            elif (other, left) == letters:
                says = f"{says}: the circuit transposed"
            elif other == letters[1]:
                says = f"{left} for {letters[0]}, {says}"
            elif left == letters[0]:
                says = f"{other} for {letters[1]}, {says}"
            elif (left, other) in (OV, QK):
                says = f"the {'QK' if (left, other) == QK else 'OV'} circuit: {says}"
            both = {first: left_factor(left, *own), second: right_factor(other, *own)}
            yield Swap(says, {factor: new for factor, new in both.items() if factor != new})


def _gains(
    letters: tuple[str, str],
    left: sympy.MatrixExpr,
    right: sympy.MatrixExpr,
    layer: int,
    n_layers: int,
) -> Iterator[Swap]:
    """Yield weights into which the gain of a norm is folded."""
    first, second = letters

    def reading(norm: str, of: int = layer, made: str = "") -> Replaced:
        return {left: row_scaled(gain(norm, of, made=made), left)}

    def writing(norm: str, *of: int) -> Replaced:
        return {right: Transpose(row_scaled(gain(norm, *of), Transpose(right)))}

    for other in range(n_layers):
        if other != layer:
            says = f"weights with the gain of the norm of another layer, {other}, folded in"
            both = writing("ln1", other) if letters == QK else {}
            yield Swap(says, {**reading("ln1", other), **both})
    yield Swap(f"weights with the gain of the norm folded in ({first})", reading("ln1"))
    for made, says in (("squared", "twice (squared)"), ("inverted", "divided out")):
        nodes = reading("ln1", made=made)
        yield Swap(f"{first} with the gain of ln1 folded in {says}", nodes)
    yield Swap(f"{first} with the gain of ln2, which is another norm", reading("ln2"))
    if letters == QK:
        both = {**reading("ln1"), **writing("ln1", layer)}
        yield Swap("weights with the gain of the norm folded in", both)
        yield Swap(f"weights with the gain of the norm folded in ({second})", writing("ln1", layer))
    else:
        for norm, of in (("ln1", (layer,)), ("ln2", (layer,)), ("ln_final", ())):
            yield Swap(f"{second} with the gain of {norm} on what it writes", writing(norm, *of))


ov_circuit, qk_circuit = partial(circuit_of, OV), partial(circuit_of, QK)
