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
from otimes.proofs.catalogue.recorded import of_QK
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
    """If a later attention head reads what an earlier head wrote, the two together act like one
    head: its pattern is the product A_2 A_1 of the patterns, and its OV circuit the product of the
    OV circuits. Such a pair is called a virtual attention head. This is V-composition, as the later
    head reads through its values. The weights of the earlier head have the number 1, those of the
    later head 2.

    So a model with few heads has many more ways to move information.

    The later head stands on the left in both factors. The product pattern is again causal with rows
    that sum to one, but it is not a softmax of any scores.
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
            }
            | {f"X_{k}": Source("resid_pre", layer=k, rows=2) for k in (0, 1)},
        ),
        places={
            Source("head_out", k - 1, head, rows=2): matmul(A, X, Transpose(read), Transpose(write))
            for k, head, A, X, read, write in (
                (1, "earlier head", A_1, X_0, V_1, O_1),
                (2, "later head", A_2, X_1, V_2, O_2),
            )
        },
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
    """With its attention patterns held constant, a two-layer attention-only transformer is a sum
    over paths: the direct path, one term for each head of either layer, and one virtual head for
    each pair of a first-layer and a second-layer head. That is (1 + H)² terms, for every number H
    of heads.

    Each term is a pattern ⊗ a table from input tokens to logits, so all that moves along values can
    be read term by term.

    What heads do to each other's patterns (Q- and K-composition) is inside the second layer's
    patterns, which were computed from what the first layer wrote.
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
    """With patterns held constant, an attention-only transformer of any depth is the sum of all its
    paths, ordered by how many heads they pass. A path of order k goes through one head in each of k
    different layers, later ones on the left, and straight past the other layers. Order 0 is the
    direct path, order 1 single heads, order 2 virtual heads.

    This is the framework's path expansion as one theorem for all numbers L of layers and H of
    heads, proved by induction over the layers.

    MLPs and norms need further assumptions (`gpt2_path_sum`).
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
    """An attention-only transformer with L layers of H heads has (1 + H)^L paths: at each layer a
    path goes straight on or through one of the H heads. Twelve layers of twelve heads have
    23,298,085,122,481 paths. Of order k there are C(L, k) H^k.

    So most paths are long, and nobody can look at all of them; methods group or rank them.

    In the formula each head is replaced by the number 1, so the sum over paths counts them.
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
    """The final residual stream is the embedding plus what each layer writes, where layer l reads
    what all layers before it have left. In the formula the product over j < l is the stream that
    layer l reads.

    The stream is never overwritten, so any layer can read what any earlier one wrote. This form of
    the expansion needs one term for each layer, where the sum over paths has exponentially many.
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
    """To find what every position and feature of the input contributes to one number read from the
    output, apply the transposed model to the direction that is read. The transpose of a stack of
    layers is the stack of transposed layers in reverse order, with patterns and OV circuits
    transposed.

    So one backward pass gives the contributions of all sources to a logit, however many paths there
    are. It is what back-propagation does for a model with frozen patterns.
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
    """The contributions of all virtual heads of two layers to one direction U of the output are one
    matrix product: a table of what every second-layer head reads of U, times a table of what every
    first-layer head writes.

    There are H² pairs but only H rows and H columns to compute, so all pairs are obtained at the
    cost of about 2H single heads.
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
        bind=(
            {**_EMBEDDED, "X_1": Source("resid_pre", layer=1), "U": Source("final", example=True)},
        ),
        places={
            Source("resid_post", 0): _after(0, X_0),
            Source("resid_post", 1): _after(1, X_1),
        },
    )


@theorem(
    title="The Shapley value of a head in two layers",
    chapter=6,
    convention="column",
    source="Shapley 1953, A value for n-person games; Owen 1972, Multilinear extensions of games",
)
def shapley_two_layers() -> Statement:
    """In a model of two layers, the Shapley value of a first-layer head, its fair share of a logit,
    is its own direct term plus half of each virtual head that it is part of. It is obtained by
    running the second layer at half strength. So each path is divided equally among the heads on
    it.

    In general the value is the mean, over all strengths between 0 and 1 of the other heads, of what
    the head adds (`shapley_every_depth`). U is the direction that is read. The patterns are held
    constant.
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
        bind=(
            {**_EMBEDDED, "X_1": Source("resid_pre", layer=1), "U": Source("final", example=True)},
        ),
        places={
            Source("resid_post", 0): _after(0, X_0),
            Source("resid_post", 1): _after(1, X_1),
        },
    )


@theorem(
    title="Running a model again and again with frozen patterns adds one order of paths each time",
    chapter=6,
    source=f"{FRAMEWORK}, “Term importance analysis”",
    covers=("B3",),
)
def replay_by_order() -> Statement:
    """Running a model again and again with frozen patterns gives its paths one order at a time. In
    each run every layer adds to the stream what it computed in the run before, and nothing in the
    first run. After run r + 1 the stream holds all paths of order at most r.

    It is the experiment by which the framework paper separated direct paths, single heads and
    virtual heads without listing paths. The formula is the step from one run to the next, for any
    linear layers M[l].

    Mind the numbering: run 1 gives order 0.
    """
    M = Family("M", (L,), n, n)

    def of_order_less(runs: Any, count: Any) -> MatrixExpr:
        return HeadSum(OrderSum(M[j], (j, count), k), (k, runs))

    replayed = HeadSum(matmul(M[l], of_order_less(r, l)), (l, L))
    return Statement(
        of_order_less(r + 1, L),
        matadd(Identity(n), replayed),
        bind=({"M": Source("pattern", example=True)},),
    )


@theorem(
    title="Layers that read the paths of order r - 1 write the paths of order r",
    chapter=6,
    source=f"{FRAMEWORK}, “Term importance analysis”; {PRIMER}, "
    "“Prediction head and transformer decompositions”",
)
def orders_by_recursion() -> Statement:
    """The paths of order r can be computed from those of order r − 1: let each layer read the paths
    of order r − 1 through the layers before it; what all layers write together are the paths of
    order r. M[l] (n × n) is what layer l adds, any linear map.

    So a single pass that carries one stream for each order gives all of them, with about half as
    many layer applications as running the model L times.
    """
    M = Family("M", (L,), n, n)
    written = HeadSum(matmul(M[l], OrderSum(M[j], (j, l), r - 1)), (l, L))
    return Statement(
        OrderSum(M[j], (j, L), r), written, bind=({"M": Source("pattern", example=True)},)
    )


@theorem(
    title="Attention scores split by the components that queries and keys read",
    chapter=6,
    convention="row",
    source=f"{FRAMEWORK}, “Two-layer attention-only transformers”",
    covers=("S3-021", "B1"),
)
def scores_by_composition() -> Statement:
    """The scores of a second-layer head split into (1 + H)² terms, by where the query and the key
    come from: each is made from the embedding X_0 directly or from the output of one first-layer
    head. Terms with a head on the query side only are called Q-composition, on the key side only
    K-composition.

    An induction head is one whose scores come from K-composition with a head that attends to the
    previous token.

    Values do not enter scores. V-composition is a different thing (`heads_compose`).
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
                "qk_in": Source("qk_in", layer=1),
                "W_Q": Source("W_Q", 1, "later head"),
                "W_K": Source("W_K", 1, "later head"),
            },
        ),
        places={
            Source("resid_post", 0): stream,
            **of_QK(layer=1, head="later head"),
        },
    )


@theorem(
    title="The six-index tensor of second-layer scores",
    chapter=6,
    convention="row",
    source=f"{FRAMEWORK}, “Path expansion of attention scores QK circuit”",
    covers=("B1",),
)
def qk_six_index() -> Statement:
    """All scores of a second-layer head, for all pairs of positions, form a sum of tensor products:
    I ⊗ I for query and key taken straight from the embedding, A_g ⊗ I where the query came through
    first-layer head g (Q-composition), I ⊗ A_h where the key came through head h (K-composition),
    and A_g ⊗ A_h for both. Each is multiplied by W_QK between the corresponding OV circuits.

    This is the framework's six-index tensor: two indices for the positions compared, two for the
    positions that the information came from, and two for features (or for tokens, if X_0 is the
    embedded prompt).
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
                "qk_in": Source("qk_in", layer=1),
                "A": Source("pattern", rows=few, cols=few),
                "W_Q": Source("W_Q", 1, 0),
                "W_K": Source("W_K", 1, 0),
            },
        ),
        places={
            Source("resid_post", 0, rows=few): stream,
            **of_QK(layer=1, head=0),
        },
    )


X_0 = MatrixSymbol("X_0", n, d)  # what the first layer reads
k, j = symbols("k j", integer=True)
_EMBEDDED = {"X_0": Source("embed")}


def _past() -> MatrixExpr:
    return kron(Identity(n), Identity(d))


def _ov(layer: Any, head: Symbol) -> MatrixExpr:
    return matmul(layers.column.W_O[layer, head], layers.column.W_V[layer, head])


X_1 = MatrixSymbol("X_1", n, d)  # what the second layer reads


def _after(layer: int, stream: MatrixSymbol) -> MatrixExpr:
    """Return the stream after a layer of heads, with positions as rows."""
    moved = matmul(layers.A[layer, h], stream, Transpose(_ov(layer, h)))
    return matadd(stream, HeadSum(moved, (h, H)))


def _heads(layer: Symbol = l) -> MatrixExpr:
    """Return what the heads of a layer do together, their patterns frozen."""
    return HeadSum(kron(layers.A[layer, h], _ov(layer, h)), (h, H))
