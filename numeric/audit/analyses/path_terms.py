"""The term of a path through two heads, and known mistakes in computing it.

It is A₂ A₁ W_E W_OV¹ W_OV² W_U, in a model without norms, as a formula in the language: a known
mistake is a `Swap` of a pattern, a circuit, their products or the whole term. Source: Elhage et
al. 2021.
"""

from collections.abc import Iterator
from functools import lru_cache
from operator import index

import sympy
from sympy import HadamardProduct, Identity, Rational, Transpose

from otimes.algebra.errors import OtimesError
from otimes.algebra.language.linear import matadd, matmul
from otimes.algebra.mutations import Swap
from otimes.numeric.audit.analyses.circuits import OV, changes_of_a_circuit, circuit
from otimes.numeric.audit.analyses.question import Array, Asked, Replaced, d, m, n, symbol

Pair = tuple[int, int]
W_U, W_E = symbol("W_U", d, m), symbol("W_E", m, d)


def path_term(asked: Asked, replaced: Replaced) -> Array:
    """Return $A_2 A_1 W_E W_{OV}^1 W_{OV}^2 W_U$ of two heads, in a model without norms."""
    return asked.value(term(*two_heads(asked)).xreplace(dict(replaced)))


@lru_cache(maxsize=64)
def term(first: Pair, second: Pair) -> sympy.MatrixExpr:
    """Return the formula: patterns act on positions, circuits on the residual stream."""
    mixed = matmul(_pattern(second), _pattern(first))
    return matmul(
        mixed, symbol("embed", n, d), matmul(circuit(OV, *first), circuit(OV, *second)), W_U
    )


def _pattern(head: Pair) -> sympy.MatrixSymbol:
    return symbol(f"pattern[{head[0]}, {head[1]}]", n, n)


def two_heads(asked: Asked) -> tuple[Pair, Pair]:
    """Return the two heads of a path, the earlier one first."""
    model = asked.model
    if not model.config.bare:
        raise OtimesError("a path term is audited in models without norms, MLPs and biases")
    try:
        early, late = map(index, asked.layer)
        h, g = map(index, asked.head)
    except (TypeError, ValueError):
        raise OtimesError("a path term is one of two heads: layer=(0, 1), head=(2, 3)") from None
    one, two = asked.of(early, h).one_head(), asked.of(late, g).one_head()
    if one[0] == two[0]:
        raise OtimesError(f"a path goes through two layers, got layer=({one[0]}, {two[0]})")
    return min(one, two), max(one, two)


def _patterns(head: Pair, n_heads: int) -> dict[str, sympy.MatrixExpr]:
    """Return the replacements of a head's pattern by mistake, by name."""
    own = _pattern(head)
    diagonal = HadamardProduct(own, Identity(n))
    every = matadd(*(_pattern((head[0], each)) for each in range(n_heads)))
    return {
        "the pattern transposed": Transpose(own),
        "the pattern with the identity added": matadd(own, Identity(n)),
        "the pattern without its diagonal": matadd(own, matmul(-1, diagonal)),
        "the diagonal of the pattern only": diagonal,
        "a uniform pattern, 1/n, for that of the model": symbol("uniform", n, n),
        "the patterns of the layer summed up": every,
        "the mean of the patterns of the layer": matmul(Rational(1, n_heads), every),
    }


def path_mistakes(asked: Asked, shape: tuple[int, ...]) -> Iterator[Swap]:
    """Yield the known mistakes of a path term."""
    first, second = two_heads(asked)
    whole = term(first, second)
    mixed, embed, product, _ = whole.args
    (A2, A1), (C1, C2) = mixed.args, product.args
    itself, unchanged = Identity(n), Identity(d)
    both = {A1: itself, A2: itself, C1: unchanged, C2: unchanged}
    only_second, only_first, direct = (
        whole.xreplace(lost)
        for lost in ({A1: itself, C1: unchanged}, {A2: itself, C2: unchanged}, both)
    )
    if shape[-1:] == (asked.model.d_model,):
        yield Swap("the term before W_U", {whole: matmul(mixed, embed, product)})
    yield from (
        Swap("the product of patterns reversed: A₁ A₂ for A₂ A₁", {mixed: matmul(A1, A2)}),
        Swap("the product of circuits reversed", {product: matmul(C2, C1)}),
        Swap("the circuits transposed", {product: Transpose(product)}),
        Swap("each of the circuits transposed", {C1: Transpose(C1), C2: Transpose(C2)}),
        Swap("the first pattern only: the second is missing", {A2: itself}),
        Swap("the second pattern only: the first is missing", {A1: itself}),
        Swap("no pattern: both are missing", {mixed: itself}),
        Swap("patterns multiplied entry by entry", {mixed: HadamardProduct(A2, A1)}),
        Swap("patterns added and not multiplied", {mixed: matadd(A2, A1)}),
        Swap("circuits added and not multiplied", {product: matadd(C1, C2)}),
        Swap("the product of patterns transposed", {mixed: Transpose(mixed)}),
        Swap("each of the patterns transposed, A₂ᵀ A₁ᵀ", {A1: Transpose(A1), A2: Transpose(A2)}),
        Swap("the first head's OV circuit only: the second is missing", {C2: unchanged}),
        Swap("the second head's OV circuit only: the first is missing", {C1: unchanged}),
        Swap("no OV circuits", {product: unchanged}),
        Swap("the term of one head only, the second: the first is missing", {whole: only_second}),
        Swap("the term of one head only, the first: the second is missing", {whole: only_first}),
        Swap("the direct term of the embedding: both heads are missing", {whole: direct}),
    )
    for says, terms in (
        ("the term plus that of the second head alone (direct)", (whole, only_second)),
        ("the term plus that of the first head alone (direct)", (whole, only_first)),
        ("the term plus those of each head alone", (whole, only_second, only_first)),
        (
            "the sum of all paths through the two heads, the direct one too",
            (whole, only_second, only_first, direct),
        ),
        ("the sum of both heads' own terms", (only_second, only_first)),
    ):
        yield Swap(says, {whole: matadd(*terms)})
    yield Swap("W_Eᵀ for W_U (as if tied)", {W_U: Transpose(W_E)})
    heads = (first[0], second[1]), (second[0], first[1])
    yield Swap(
        "the two heads exchanged: the first layer's taken for the second's", {whole: term(*heads)}
    )
    for layer in sorted({first[0], second[0]}):
        if asked.model.positions != "none" or layer:
            which = "earlier" if layer == first[0] else "later"
            stream = f"the stream before the {which} head, resid_pre.{layer},"
            yield Swap(f"{stream} for the embedding", {embed: symbol(f"resid_pre[{layer}]", n, d)})
    for own, A, C in ((first, A1, C1), (second, A2, C2)):
        where = f"head {own[0]}.{own[1]}"
        for says, made in _patterns(own, asked.model.n_heads).items():
            yield Swap(f"{says}, of {where}", {A: made})
        for swap in changes_of_a_circuit(OV, asked.of(*own)):
            yield Swap(f"{swap.name}, of {where}", swap.nodes)
        for other in asked.of(*own).other_heads():
            named, said = f"{other[0]}.{other[1]}", f"for {where}"
            pattern, OV_circuit = {A: _pattern(other)}, {C: circuit(OV, *other)}
            yield Swap(f"another head, {named}, {said}", {**pattern, **OV_circuit})
            yield Swap(f"the pattern of another head, {named}, {said}", pattern)
            yield Swap(f"the OV circuit of another head, {named}, {said}", OV_circuit)
