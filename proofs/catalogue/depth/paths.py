"""Chapter 6: what layers make of each other: virtual heads and the ensemble of paths."""

from __future__ import annotations

from typing import Any

from sympy import Identity, MatrixExpr, MatrixSymbol, Rational, Symbol, Trace, Transpose, symbols

from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import (
    ConcatHeads,
    Family,
    HeadSum,
    StackHeads,
    kron,
    matadd,
    matmul,
    vec_rows,
)
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.sources import FRAMEWORK, PRIMER, VEIT
from otimes.proofs.catalogue.symbols import (
    H,
    L,
    V,
    column,
    d,
    d_head,
    h,
    l,
    layers,
    n,
    r,
    row,
    size,
)
from otimes.proofs.claims import Statement
from otimes.proofs.theorem import theorem


@theorem(
    title="Two heads in sequence are a head: virtual attention heads",
    chapter=6,
    convention="column",
    source=f"{FRAMEWORK}, “Two-layer attention-only transformers”",
    covers=("S0-48", "S3-018"),
)
def heads_compose() -> Statement:
    """A head that reads what another head wrote acts like one head, whose pattern is the product of
    the patterns and whose OV circuit is the product of the OV circuits. That is a virtual head, and
    the composition is called V-composition.

    The later head stands on the left in both factors. The pattern of a virtual head is computed
    from no scores of its own; it is again causal, and its rows sum to one.
    """
    A_1, A_2 = MatrixSymbol("A_1", n, n), MatrixSymbol("A_2", n, n)
    V_1, V_2 = (MatrixSymbol(f"W_V{k}", d_head, d) for k in (1, 2))
    O_1, O_2 = (MatrixSymbol(f"W_O{k}", d, d_head) for k in (1, 2))

    def source(name: str, k: int) -> Source:
        few = 2 if name == "pattern" else None  # (n d)² entries are formed; causality allows it
        turned = name != "pattern"
        return Source(name, k - 1, ("earlier head", "later head")[k - 1], few, few, turned)

    return Statement(
        matmul(kron(A_2, matmul(O_2, V_2)), kron(A_1, matmul(O_1, V_1))),
        kron(matmul(A_2, A_1), matmul(matmul(O_2, V_2), matmul(O_1, V_1))),
        bind=(
            {
                f"{symbol}{k}": source(name, k)
                for symbol, name in (("A_", "pattern"), ("W_V", "W_V"), ("W_O", "W_O"))
                for k in (1, 2)
            },
        ),
    )


@theorem(
    title="The path expansion of a two-layer transformer",
    chapter=6,
    convention="column",
    source=f"{FRAMEWORK}, “Two-layer attention-only transformers”; {PRIMER}, "
    "“Prediction head and transformer decompositions”",
    covers=("S4-25",),
)
def two_layer_paths() -> Statement:
    """With the patterns frozen, the product of two layers multiplies out into the direct path, one
    term for each head of either layer, and one virtual head for each pair of a later and an earlier
    head: (1 + H)² paths from tokens to logits.

    H is a symbol, so this is one equation for every number of heads. It accounts for what moves
    along the OV circuits; what heads do to each other's patterns (Q- and K-composition) is inside
    A², which was computed from what layer 1 wrote.
    """
    T = MatrixSymbol("T", n, V)
    g = size("g")
    W_E, W_U = column.W_E, column.W_U

    def head(layer: int, index: object) -> tuple[object, object]:
        member = layers.A[layer, index]
        return member, matmul(layers.column.W_O[layer, index], layers.column.W_V[layer, index])

    def block(layer: int, index: object) -> object:
        return matadd(
            kron(Identity(n), Identity(d)), HeadSum(kron(*head(layer, index)), (index, H))
        )

    (A_1, OV_1), (A_2, OV_2) = head(0, h), head(1, g)
    (A_late, OV_late) = head(1, h)
    logits = matmul(
        kron(Identity(n), W_U), block(1, h), block(0, h), kron(Identity(n), W_E), vec_rows(T)
    )
    paths = matadd(
        kron(Identity(n), matmul(W_U, W_E)),
        HeadSum(kron(A_1, matmul(W_U, OV_1, W_E)), (h, H)),
        HeadSum(kron(A_late, matmul(W_U, OV_late, W_E)), (h, H)),
        HeadSum(kron(matmul(A_2, A_1), matmul(W_U, OV_2, OV_1, W_E)), (g, H), (h, H)),
    )
    return Statement(
        logits,
        matmul(paths, vec_rows(T)),
        places={"logits": logits},
        depth=2,
    )


@theorem(
    title="The path expansion by order, for every depth",
    chapter=6,
    convention="column",
    source=f"{PRIMER}, “Prediction head and transformer decompositions”; {VEIT}",
    covers=("S3-015",),
)
def paths_by_order() -> Statement:
    """With the patterns frozen, L layers of H heads are the sum of what their paths of order 0, 1,
    …, L do to the embedding. A path of order k goes through k heads in k different layers, the
    later on the left, and past the other layers.

    L and H are symbols: this is one theorem about every transformer of this kind, proved by
    induction over the layers. The last layer is taken off; the paths through L + 1 layers are those
    that go past it, and those that end in it.
    """
    x, by_heads = vec_rows(X_0), _heads()
    stream = matmul(LayerProduct(matadd(_past(), by_heads), (l, L)), x)
    orders = HeadSum(OrderSum(by_heads, (l, L), k), (k, L + 1))
    return Statement(stream, matmul(orders, x), places={"final": stream}, bind=(_EMBEDDED,))


@theorem(
    title="The number of paths of all orders: (1 + H)^L",
    chapter=6,
    source=f"{PRIMER}, “Prediction head and transformer decompositions”; {VEIT}",
    covers=("S3-015", "B2"),
)
def paths_count() -> Statement:
    """The paths of all orders together are (1 + H)^L: at each layer a path goes past it, or through
    one of its H heads. Those of order k choose k layers and a head in each, so there are H^k of
    them for each choice, and most paths are of high order: twelve layers of twelve heads have
    23,298,085,122,481 paths, eleven heads long on average.

    It is the ensemble of paths with the number 1 for each head.
    """
    of_order = OrderSum(matmul(H, Identity(1)), (l, L), k)
    return Statement(Trace(HeadSum(of_order, (k, L + 1))), (1 + H) ** L)


@theorem(
    title="The residual stream is the sum of what the layers write",
    chapter=6,
    convention="column",
    source=f"{FRAMEWORK}, “Virtual weights and the residual stream as a communication channel”",
)
def layers_write() -> Statement:
    """What leaves the last layer is the embedding plus what each layer writes; and a layer writes
    what its heads make of the stream that the layers before it have left.

    The stream is never overwritten; that is why any layer can read what any earlier one wrote.
    """
    x, by_heads = vec_rows(X_0), _heads()
    stream = matmul(LayerProduct(matadd(_past(), by_heads), (l, L)), x)
    before = LayerProduct(matadd(_past(), _heads(j)), (j, l))
    written = HeadSum(matmul(by_heads, before), (l, L))
    return Statement(
        stream,
        matmul(matadd(_past(), written), x),
        places={"final": stream},
        bind=(_EMBEDDED,),
    )


@theorem(
    title="The transpose of a stack of layers pulls a direction of the output back to the input",
    chapter=6,
    convention="column",
    source=f"{FRAMEWORK}; the adjoint of a product, as in backpropagation",
)
def adjoint_of_layers() -> Statement:
    """What a direction reads at the end, it reads at the beginning after it was pulled back layer
    by layer: patterns and OV circuits are transposed, and the last layer comes first.

    So one sweep backwards gives what every source contributes to a logit, however many paths lead
    there.
    """
    layer = matadd(_past(), _heads())
    pulled = HeadSum(kron(Transpose(layers.A[l, h]), Transpose(_ov(l, h))), (h, H))
    few = 4  # (n d)² entries are formed; causality allows it
    return Statement(
        Transpose(LayerProduct(layer, (l, L))),
        LayerProduct(matadd(_past(), pulled), (l, L), reverse=True),
        bind=({"A": Source("pattern", rows=few, cols=few)},),
    )


@theorem(
    title="All virtual heads of two layers in one matrix product",
    chapter=6,
    convention="column",
    source=f"{FRAMEWORK}, “Two-layer attention-only transformers”",
)
def virtual_heads_at_once() -> Statement:
    """What each pair of heads of two layers adds to a direction u is one product of two tables:
    what every later head reads of u, and what every earlier head writes.

    There are as many pairs as heads squared, but only as many rows and columns as heads, so no pair
    has to be followed by itself.
    """
    g = Symbol("g", integer=True)
    u, x = vec_rows(MatrixSymbol("U", n, d)), vec_rows(X_0)
    later, earlier = kron(layers.A[1, g], _ov(1, g)), kron(layers.A[0, h], _ov(0, h))
    pair = matmul(Transpose(u), later, earlier, x)
    reads = StackHeads(matmul(Transpose(u), later), (g, H))
    writes = ConcatHeads(matmul(earlier, x), (h, H))
    return Statement(
        StackHeads(ConcatHeads(pair, (h, H)), (g, H)),
        matmul(reads, writes),
        bind=({**_EMBEDDED, "U": Source("final")},),
    )


@theorem(
    title="The Shapley value of a head in two layers",
    chapter=6,
    convention="column",
    source="Shapley 1953, A value for n-person games; Owen 1972, Multilinear extensions of games",
)
def shapley_two_layers() -> Statement:
    """With every head switched on by a half, a head of the first layer adds what it adds by itself
    and half of each virtual head that it is part of. That is its Shapley value: each path is shared
    equally among its heads.

    In general the value is the mean, over all strengths from 0 to 1, of what a head adds when all
    others have that strength; for L layers a few strengths give the mean exactly.
    """
    g = Symbol("g", integer=True)
    u, x = vec_rows(MatrixSymbol("U", n, d)), vec_rows(X_0)
    later, earlier = kron(layers.A[1, g], _ov(1, g)), kron(layers.A[0, h], _ov(0, h))
    half = Rational(1, 2)
    by_half = matadd(_past(), matmul(half, HeadSum(later, (g, H))))
    share = matadd(
        matmul(Transpose(u), earlier, x),
        matmul(half, HeadSum(matmul(Transpose(u), later, earlier, x), (g, H))),
    )
    return Statement(
        ConcatHeads(matmul(Transpose(u), by_half, earlier, x), (h, H)),
        ConcatHeads(share, (h, H)),
        bind=({**_EMBEDDED, "U": Source("final")},),
    )


@theorem(
    title="Running a model again and again with frozen patterns adds one order of paths each time",
    chapter=6,
    source=f"{FRAMEWORK}, “Term importance analysis”",
    covers=("B3",),
)
def replay_by_order() -> Statement:
    """Run a model again and again with its patterns kept, and let each layer add to the stream not
    what it makes of what it reads, but what it made in the run before; nothing in the first run.
    Run r then leaves the paths of order less than r, and one more run those of order r as well,
    whatever the layers do, as long as it is linear.

    L and r are symbols: the theorem is about every depth and every run. The layers before layer l
    do to each other what all L layers do, so if the run before gave layer l the paths of order less
    than r through them, this run gives the end the paths of order less than r + 1 through all.
    """
    M = Family("M", (L,), n, n)

    def of_order_less(runs: Any, count: Any) -> MatrixExpr:
        return HeadSum(OrderSum(M[j], (j, count), k), (k, runs))

    replayed = HeadSum(matmul(M[l], of_order_less(r, l)), (l, L))
    return Statement(
        of_order_less(r + 1, L),
        matadd(Identity(n), replayed),
        bind=({"M": Source("pattern")},),
    )


@theorem(
    title="Layers that read the paths of order r - 1 write the paths of order r",
    chapter=6,
    source=f"{FRAMEWORK}, “Term importance analysis”; {PRIMER}, "
    "“Prediction head and transformer decompositions”",
)
def orders_by_recursion() -> Statement:
    """Let each layer read the paths of order r - 1 through the layers before it: together the
    layers write the paths of order r, for every r from 1 on and for every depth.

    So one pass gives all orders, if it carries one stream for each and every layer reads the stream
    of order r - 1 to write to that of order r: about half as many layers as L runs of the model.
    """
    M = Family("M", (L,), n, n)
    written = HeadSum(matmul(M[l], OrderSum(M[j], (j, l), r - 1)), (l, L))
    return Statement(OrderSum(M[j], (j, L), r), written, bind=({"M": Source("pattern")},))


@theorem(
    title="Attention scores split by the components that queries and keys read",
    chapter=6,
    convention="row",
    source=f"{FRAMEWORK}, “Two-layer attention-only transformers”",
    covers=("S3-021", "B1"),
)
def scores_by_composition() -> Statement:
    """The scores of a head of the second layer are a sum of (1 + H)² terms: queries and keys each
    come straight from the embedding or through one head of the first layer. The terms are called
    direct, Q-composition, K-composition, and Q- and K-composition.

    An induction head is one whose K-composition with a previous-token head is large. The values do
    not enter: V-composition is another matter.
    """
    g = Symbol("g", integer=True)
    circuit = matmul(row.W_Q, Transpose(row.W_K))

    def through(index: Symbol) -> MatrixExpr:
        W_V, W_O = layers.row.W_V[0, index], layers.row.W_O[0, index]
        return matmul(layers.A[0, index], X_0, W_V, W_O)

    stream = matadd(X_0, HeadSum(through(h), (h, H)))
    return Statement(
        matmul(stream, circuit, Transpose(stream)),
        matadd(
            matmul(X_0, circuit, Transpose(X_0)),
            HeadSum(matmul(through(g), circuit, Transpose(X_0)), (g, H)),
            HeadSum(matmul(X_0, circuit, Transpose(through(h))), (h, H)),
            HeadSum(matmul(through(g), circuit, Transpose(through(h))), (g, H), (h, H)),
        ),
        bind=(
            {
                **_EMBEDDED,
                "W_Q": Source("W_Q", 1, "later head"),
                "W_K": Source("W_K", 1, "later head"),
            },
        ),
    )


@theorem(
    title="The six-index tensor of second-layer scores",
    chapter=6,
    convention="row",
    source=f"{FRAMEWORK}, “Path expansion of attention scores QK circuit”",
    covers=("B1",),
)
def qk_six_index() -> Statement:
    """All scores of a second-layer head, as one tensor on pairs of positions: Id ⊗ Id for what
    comes straight from the embedding on both sides, A_g ⊗ Id where the query came through head g
    (Q-composition), Id ⊗ A_h where the key came through head h (K-composition), and A_g ⊗ A_h for
    both. Each stands with what the streams meet in the middle, W_QK between the OV circuits.

    So there are six indices: two for the positions that are compared, two for those that they were
    moved from, and two for the stream, or for tokens if X_0 is the embedded prompt.
    """
    g = Symbol("g", integer=True)
    circuit, eye = matmul(row.W_Q, Transpose(row.W_K)), Identity(n)

    def pattern(head: Symbol) -> MatrixExpr:
        return layers.A[0, head]

    def ov(head: Symbol) -> MatrixExpr:
        return matmul(layers.row.W_V[0, head], layers.row.W_O[0, head])

    def term(query: Any, key: Any, middle: Any) -> MatrixExpr:
        return matmul(kron(query, key), kron(X_0, X_0), vec_rows(middle))

    stream = matadd(X_0, HeadSum(matmul(pattern(h), X_0, ov(h)), (h, H)))
    by_query, by_key = matmul(ov(g), circuit), matmul(circuit, Transpose(ov(h)))
    by_both = matmul(ov(g), circuit, Transpose(ov(h)))
    few = 2  # (n n) × (d d) entries are formed; causality allows it
    return Statement(
        vec_rows(matmul(stream, circuit, Transpose(stream))),
        matadd(
            term(eye, eye, circuit),
            HeadSum(term(pattern(g), eye, by_query), (g, H)),
            HeadSum(term(eye, pattern(h), by_key), (h, H)),
            HeadSum(term(pattern(g), pattern(h), by_both), (g, H), (h, H)),
        ),
        bind=(
            {
                "X_0": Source("embed", rows=few),
                "A": Source("pattern", rows=few, cols=few),
                "W_Q": Source("W_Q", 1, 0),
                "W_K": Source("W_K", 1, 0),
            },
        ),
    )


X_0 = MatrixSymbol("X_0", n, d)  # what the first layer reads
k, j = symbols("k j", integer=True)
_EMBEDDED = {"X_0": Source("embed")}


def _past() -> MatrixExpr:
    return kron(Identity(n), Identity(d))


def _ov(layer: Any, head: Symbol) -> MatrixExpr:
    return matmul(layers.column.W_O[layer, head], layers.column.W_V[layer, head])


def _heads(layer: Symbol = l) -> MatrixExpr:
    """Return what the heads of a layer do together, their patterns frozen."""
    return HeadSum(kron(layers.A[layer, h], _ov(layer, h)), (h, H))
