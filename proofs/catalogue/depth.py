"""Chapter 6: what layers make of each other: virtual heads and the ensemble of paths."""

from __future__ import annotations

from sympy import Identity, MatrixExpr, MatrixSymbol, Symbol, Trace, symbols

from algebra.language import (
    HeadSum,
    LayerProduct,
    OrderSum,
    kron,
    matadd,
    matmul,
    vec_rows,
)
from numeric.binding import Source
from proofs.catalogue.symbols import H, L, V, column, d, d_head, h, l, layers, n, size
from proofs.theorem import Statement, theorem

FRAMEWORK = "Elhage et al. 2021, “A Mathematical Framework for Transformer Circuits”"


@theorem(
    title="Two heads in a row are a head: virtual attention heads",
    chapter=6,
    convention="column",
    source=f"{FRAMEWORK}, “Two-layer attention-only transformers”",
    covers=("S0-48", "S3-018"),
)
def heads_compose() -> Statement:
    """A head that reads what another head wrote acts like one head, whose pattern is the product of
    the patterns and whose OV circuit is the product of the OV circuits. That is a virtual head, and
    the composition is called V-composition.

    The later head stands on the left in both factors. The pattern of a virtual head is not that of
    any softmax, but it is again causal and its rows sum to one.
    """
    A_1, A_2 = MatrixSymbol("A_1", n, n), MatrixSymbol("A_2", n, n)
    V_1, V_2 = (MatrixSymbol(f"W_V{k}", d_head, d) for k in (1, 2))
    O_1, O_2 = (MatrixSymbol(f"W_O{k}", d, d_head) for k in (1, 2))

    def source(name: str, k: int) -> Source:
        few = 3 if name == "pattern" else None  # (n d)² entries are formed; causality allows it
        turned = name != "pattern"
        which = {1: "earlier", 2: "later"}[k]
        return Source(name, f"{which} layer", f"{which} head", few, few, turned)

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
    title="The ensemble of paths of a two-layer transformer",
    chapter=6,
    convention="column",
    source=f"{FRAMEWORK}, “Two-layer attention-only transformers”; Ferrando et al. 2024, §2.3",
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
    title="The ensemble of paths, for every depth",
    chapter=6,
    convention="column",
    source="Ferrando et al. 2024, “A Primer on the Inner Workings”, §2.3; Veit et al. 2016",
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
    title="The number of paths",
    chapter=6,
    source="Ferrando et al. 2024, “A Primer on the Inner Workings”, §2.3; Veit et al. 2016",
    covers=("S3-015",),
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


X_0 = MatrixSymbol("X_0", n, d)  # what the first layer reads
k, j = symbols("k j", integer=True)
_EMBEDDED = {"X_0": Source("embed")}


def _past() -> MatrixExpr:
    return kron(Identity(n), Identity(d))


def _heads(layer: Symbol = l) -> MatrixExpr:
    """Return what the heads of a layer do together, their patterns frozen."""
    OV = matmul(layers.column.W_O[layer, h], layers.column.W_V[layer, h])
    return HeadSum(kron(layers.A[layer, h], OV), (h, H))
