"""The term of a path through two heads, and known mistakes in computing it.

It is A₂ A₁ X W_OV¹ W_OV² W_U for the stream X before the first layer, as a formula in the language:
a known mistake is a `Swap` of a pattern, a circuit, their products or the whole term. With norms
before the heads, each is a linear map whose scale is frozen at that of the pass: rows are divided
by their scales, D, and multiplied by L, which centres them (LayerNorm) and applies the gain. The
term is then D A₂ D₂ A₁ D₁ X L₁ W_OV¹ L₂ W_OV² L W_U; biases and MLPs are on other paths. Source:
Elhage et al. 2021.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from operator import index

import sympy
from sympy import HadamardProduct, Identity, Rational, Transpose

from otimes.algebra.errors import OtimesError
from otimes.algebra.language.linear import as_product, matadd, matmul
from otimes.algebra.mutations import Swap
from otimes.numeric.audit.analyses.circuits import OV, changes_of_a_circuit, circuit
from otimes.numeric.audit.analyses.question import Array, Asked, Replaced, d, m, n, symbol
from otimes.numeric.config import Config

Pair = tuple[int, int]
W_U, W_E = symbol("W_U", d, m), symbol("W_E", m, d)


def path_term(asked: Asked, replaced: Replaced) -> Array:
    """Return the contribution to the logits of the path through two heads."""
    return asked.value(term(asked).xreplace(dict(replaced)))


@dataclass(frozen=True, slots=True)
class Path:
    """The factors of a path through two heads, of which those of norms are 1 without norms."""

    first: Pair
    second: Pair
    config: Config

    @property
    def stream(self) -> sympy.MatrixExpr:
        """The stream before the first layer."""
        own = self.config.positions == "learned" or self.config.embed_norm
        return symbol("resid_pre[0]", n, d) if own else symbol("embed", n, d)

    def scales(self, layer: int | None) -> sympy.MatrixExpr:
        """Return the diagonal matrix of 1 / scale of a norm, the final one with None."""
        there = self.config.norms_before if layer is not None else self.config.final_norm
        return symbol(_of_norm("scales", layer), n, n) if there else Identity(n)

    def linear(self, layer: int | None) -> sympy.MatrixExpr:
        """Return the matrix that centres rows and applies the gain of a norm."""
        there = self.config.norms_before if layer is not None else self.config.final_norm
        return symbol(_of_norm("linear", layer), d, d) if there else Identity(d)

    def mixed(self, late: sympy.MatrixExpr, early: sympy.MatrixExpr) -> sympy.MatrixExpr:
        """Return the product of patterns, with the scales of what each head reads."""
        one, two = self.scales(self.first[0]), self.scales(self.second[0])
        return _product(self.scales(None), late, two, early, one)

    def product(self, early: sympy.MatrixExpr, late: sympy.MatrixExpr) -> sympy.MatrixExpr:
        """Return the product of circuits, with the norms that each head reads through."""
        one, two = self.linear(self.first[0]), self.linear(self.second[0])
        return _product(one, early, two, late, self.linear(None))

    def whole(self) -> sympy.MatrixExpr:
        """Return the term: patterns act on positions, circuits on the residual stream."""
        mixed = self.mixed(_pattern(self.second), _pattern(self.first))
        product = self.product(circuit(OV, *self.first), circuit(OV, *self.second))
        return matmul(mixed, self.stream, product, W_U)

    def through(self, head: Pair | None) -> sympy.MatrixExpr:
        """Return the term of the path through one head only, or of the direct path."""
        if head is None:
            return _product(self.scales(None), self.stream, self.linear(None), W_U)
        mixed = _product(self.scales(None), _pattern(head), self.scales(head[0]))
        reads = _product(self.linear(head[0]), circuit(OV, *head), self.linear(None))
        return matmul(mixed, self.stream, reads, W_U)


def _product(*factors: sympy.MatrixExpr) -> sympy.MatrixExpr:
    """Return a product without its factors of 1."""
    return as_product([each for each in factors if not isinstance(each, Identity)])


def _of_norm(what: str, layer: int | None) -> str:
    return f"{what}_ln_final" if layer is None else f"{what}_ln1[{layer}]"


def term(asked: Asked) -> sympy.MatrixExpr:
    """Return the formula of the path in question."""
    return _term(*two_heads(asked), asked.model.config)


@lru_cache(maxsize=64)
def _term(first: Pair, second: Pair, config: Config) -> sympy.MatrixExpr:
    return Path(first, second, config).whole()


def _pattern(head: Pair) -> sympy.MatrixSymbol:
    return symbol(f"pattern[{head[0]}, {head[1]}]", n, n)


def two_heads(asked: Asked) -> tuple[Pair, Pair]:
    """Return the two heads of a path, the earlier one first."""
    order = asked.model.config.norm_order
    if order != "pre":
        raise OtimesError(
            f"a path term is audited in models whose norms come before the heads, got"
            f" norm_order={order!r}"
        )
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


def _norms(path: Path) -> Iterator[Swap]:
    """Yield the mistakes in the norms of a path, and in where it begins."""
    if path.stream != symbol("embed", n, d):
        yield Swap("the embedding without positions", {path.stream: symbol("embed", n, d)})
    reads = (path.first[0], path.second[0])
    for says, layers in (
        ("norms", (*reads, None)),
        ("norms that the heads read through", reads),
        ("final norm", (None,)),
    ):
        scales = {D: Identity(n) for D in map(path.scales, layers) if Identity(n) != D}
        linear = {L: Identity(d) for L in map(path.linear, layers) if Identity(d) != L}
        if scales:
            yield Swap(f"without the {says}", {**scales, **linear})
            yield Swap(f"without the scales of the {says}", scales)
            yield Swap(f"without the gains of the {says}, and not centred", linear)


def path_mistakes(asked: Asked, shape: tuple[int, ...]) -> Iterator[Swap]:
    """Yield the known mistakes of a path term."""
    first, second = two_heads(asked)
    path, whole = Path(first, second, asked.model.config), term(asked)
    mixed, embed, product, _ = whole.args
    A1, A2, C1, C2 = (*map(_pattern, (first, second)), circuit(OV, *first), circuit(OV, *second))
    itself, unchanged = Identity(n), Identity(d)
    transposed, added = Transpose(matmul(C1, C2)), matadd(C1, C2)
    only_second, only_first, direct = map(path.through, (second, first, None))

    def of_both(patterns: sympy.MatrixExpr) -> sympy.MatrixExpr:
        return _product(path.scales(None), patterns, path.scales(first[0]))

    if shape[-1:] == (asked.model.d_model,):
        yield Swap("the term before W_U", {whole: matmul(mixed, embed, product)})
    yield from (
        Swap("the product of patterns reversed: A₁ A₂ for A₂ A₁", {mixed: path.mixed(A1, A2)}),
        Swap("the product of circuits reversed", {product: path.product(C2, C1)}),
        Swap("the circuits transposed", {product: path.product(transposed, unchanged)}),
        Swap("each of the circuits transposed", {C1: Transpose(C1), C2: Transpose(C2)}),
        Swap("the first pattern only: the second is missing", {A2: itself}),
        Swap("the second pattern only: the first is missing", {A1: itself}),
        Swap("no pattern: both are missing", {mixed: itself}),
        Swap("patterns multiplied entry by entry", {mixed: of_both(HadamardProduct(A2, A1))}),
        Swap("patterns added and not multiplied", {mixed: of_both(matadd(A2, A1))}),
        Swap("circuits added and not multiplied", {product: path.product(added, unchanged)}),
        Swap("the product of patterns transposed", {mixed: of_both(Transpose(matmul(A2, A1)))}),
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
        "the two heads exchanged: the first layer's taken for the second's",
        {whole: _term(*heads, asked.model.config)},
    )
    yield from _norms(path)
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
