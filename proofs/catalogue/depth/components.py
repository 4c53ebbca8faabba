"""Chapter 6: logits as a sum over components, and the paths between them by their order."""

from __future__ import annotations

from typing import Any

from sympy import Identity, MatrixExpr, MatrixSymbol, OneMatrix, Symbol, Trace, ZeroMatrix, symbols

from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import Family, HeadSum, kron, matadd, matmul
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.residual_stream.stream import SUMMED
from otimes.proofs.catalogue.sources import FRAMEWORK, PRIMER, VEIT
from otimes.proofs.catalogue.symbols import H, L, d, h, l, m, n, row
from otimes.proofs.claims import Statement
from otimes.proofs.theorem import theorem

X_0 = MatrixSymbol("X_0", n, d)  # what the first layer reads
j, k = symbols("j k", integer=True)
M = Family("M", (L,), n, n)  # what a layer adds to a stream, as a matrix


@theorem(
    title="The unembedding acts on each component of the stream separately",
    chapter=6,
    convention="row",
    source=f"{PRIMER}, “Prediction as a sum of component outputs”",
    covers=("S0-11",),
)
def unembed_distributes() -> Statement:
    """The unembedding is linear, so the logits are a sum of logits: those of the embedding and
    those of everything that was written to the stream.

    That is why a component can be asked for its direct effect on a logit without running the model
    again. A component has an effect besides that, through the later layers that read it.
    """
    f = Family("f", (L,), n, d)
    logits = matmul(matadd(X_0, HeadSum(f[l], (l, L))), row.W_U)
    return Statement(
        logits,
        matadd(matmul(X_0, row.W_U), HeadSum(matmul(f[l], row.W_U), (l, L))),
        places={"logits": logits},
        bind=({"X_0": Source("embed"), "f": Source("attn_out")},),
        unchanged_by={"attn_out of another layer": "all layers are summed"},
    )


@theorem(
    title="Logits are a sum over heads, feed-forward layers and the embedding",
    chapter=6,
    convention="row",
    source=f"{PRIMER}, “Prediction as a sum of component outputs”, equation 10",
    covers=("S3-014", "S0-10", "S0-11"),
)
def logits_are_sum_of_components() -> Statement:
    """The stream at the end holds the embedding (with the position), what each head of each layer
    wrote, the output biases, and what each feed-forward layer wrote; any linear reader, as the
    unembedding is one, reads their sum.

    Components are taken as they were recorded; how they came about does not matter. With a norm
    before the unembedding the equation is about the stream: the norm is linear only once its scale
    is held fixed, see `lens_steps_add_up`.
    """
    Y, F = Family("Y", (L, H), n, d), Family("F", (L,), n, d)
    b_O, one = Family("b_O", (L,), 1, d), OneMatrix(n, 1)
    parts = (
        X_0,
        HeadSum(Y[l, h], (l, L), (h, H)),
        HeadSum(matmul(one, b_O[l]), (l, L)),
        HeadSum(F[l], (l, L)),
    )
    stream = matadd(*parts)
    return Statement(
        matmul(stream, row.W_U),
        matadd(
            matmul(X_0, row.W_U),
            HeadSum(matmul(Y[l, h], row.W_U), (l, L), (h, H)),
            HeadSum(matmul(one, b_O[l], row.W_U), (l, L)),
            HeadSum(matmul(F[l], row.W_U), (l, L)),
        ),
        places={"final": stream},
        bind=(
            {
                "X_0": Source("resid_pre", layer=0),
                "Y": Source("head_out"),
                "F": Source("mlp_out"),
            },
        ),
        unchanged_by={
            **SUMMED,
            "W_U with its columns shifted": "after a final norm the logits are of another stream",
        },
        bare=False,
    )


@theorem(
    title="A score is a sum over pairs of paths, one to the query and one to the key",
    chapter=6,
    source=f"{FRAMEWORK}, “Path expansion of attention scores QK circuit”",
    covers=("B1",),
)
def score_path_pairs() -> Statement:
    """A score reads the stream twice, for the query and for the key, so it is linear in the tensor
    product of the stream with itself. After L layers that product is a sum over *pairs* of paths:
    one that made the query, of order k, and one that made the key, of order j.

    Of two layers this is the six-index tensor of the framework, with its direct, Q-, K- and Q- and
    K-composed terms; here it is for every depth.
    """
    stream = LayerProduct(matadd(Identity(n), M[l]), (l, L))
    queries = HeadSum(OrderSum(M[l], (l, L), k), (k, L + 1))
    keys = HeadSum(OrderSum(M[l], (l, L), j), (j, L + 1))
    return Statement(kron(stream, stream), kron(queries, keys), bind=(_FEW_PATTERNS,))


@theorem(
    title="The number of pairs of paths in a score",
    chapter=6,
    source=f"{FRAMEWORK}, “Path expansion of attention scores QK circuit”",
    covers=("B1",),
)
def score_path_pairs_count() -> Statement:
    """Behind L layers of H heads, (1 + H)^L paths lead to the query and as many to the key, so a
    score is a sum of (1 + H)^2L terms. With one layer before it that is (1 + H)²; at the twelfth
    layer of a model with twelve heads it is 13²² or about 3 · 10²⁴: nobody reads them one by one.
    """
    heads = matmul(H, Identity(1))
    queries = HeadSum(OrderSum(heads, (l, L), k), (k, L + 1))
    keys = HeadSum(OrderSum(heads, (l, L), j), (j, L + 1))
    return Statement(Trace(kron(queries, keys)), (1 + 2 * H + H**2) ** L)


@theorem(
    title="The mean order of all paths",
    chapter=6,
    source=f"{PRIMER}, “Prediction head and transformer decompositions”; {VEIT}",
    covers=("B2",),
)
def paths_mean_order() -> Statement:
    """A path drawn at random from all (1 + H)^L goes through one of the heads of a layer with
    probability c = H/(1 + H). Mark each head passed by N with N² = 0: what is left in front of N is
    the mean number of heads on a path, c L.

    So the mean order is L H/(1 + H): of twelve layers of twelve heads, 11.08. Most paths are long,
    and still the short ones carry most of what matters.
    """
    c = Symbol("c", real=True)
    N = MatrixSymbol("N", m, m)
    marked = LayerProduct(matadd(Identity(m), matmul(c, N)), (l, L))
    return Statement(
        matmul(1 + H, marked),
        matadd(matmul(1 + H, Identity(m)), matmul(L * H, N)),
        given=((matmul(N, N), ZeroMatrix(m, m)), (c * (1 + H), H)),
        on_models=False,
    )


@theorem(
    title="One forward pass for the paths of all orders",
    chapter=6,
    source=f"{FRAMEWORK}, “Term importance analysis”; generating functions",
    covers=("B4",),
)
def graded_pass() -> Statement:
    """Let each layer mark what goes through its heads by a matrix S: one pass through the marked
    layers is the sum over all orders k of the paths of that order, each marked by S^k, for every
    depth and every S.

    With S = τ a number the stream is x = Σ x_k τ^k, a polynomial whose coefficients are the orders;
    with S a shift from one slot to the next, slot k holds order k at the end. So no layer is run
    twice. With S the strength of all heads, what the model gives is known for every strength.
    """
    power = LayerProduct(S, (j, k))
    return Statement(
        LayerProduct(matadd(_past(), kron(M[l], S)), (l, L)),
        HeadSum(kron(OrderSum(M[l], (l, L), k), power), (k, L + 1)),
        bind=({**_FEW_PATTERNS, "S": Source("W_U", rows=2, cols=2)},),
    )


@theorem(
    title="A graded pass with three grades computes orders 0, 1 and 2",
    chapter=6,
    source=f"{FRAMEWORK}, “Term importance analysis”; generating functions",
    covers=("B4",),
)
def graded_pass_truncated() -> Statement:
    """Where the mark runs out after two heads, S³ = 0, the marked pass is the direct path, the
    paths of order one with S and those of order two with S², and nothing else, however deep the
    model.

    So orders beyond those wanted need not be computed: three slots are enough for virtual heads.
    """
    one, two = (OrderSum(M[l], (l, L), order) for order in (1, 2))
    return Statement(
        LayerProduct(matadd(_past(), kron(M[l], S)), (l, L)),
        matadd(_past(), kron(one, S), kron(two, matmul(S, S))),
        given=((matmul(S, S, S), ZeroMatrix(m, m)),),
        on_models=False,
    )


S = MatrixSymbol("S", m, m)
_FEW_PATTERNS: dict[str, Any] = {"M": Source("pattern", rows=4, cols=4)}  # causality allows it


def _past() -> MatrixExpr:
    return kron(Identity(n), Identity(m))
