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
    """The unembedding is linear, so the logits are a sum: those of the embedding X_0 plus those of
    everything that was added to the residual stream, f[l] W_U.

    This is the basis of direct logit attribution: a component's contribution to a logit is known
    without running the model again.

    A component also acts on later layers that read it; that effect is not in its own term.
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
    """The logits are a sum over components: the embedding with positions X_0, the output Y[l, h] of
    each head of each layer, the output biases b_O[l], and the output F[l] of each MLP, each
    multiplied by W_U.

    Components are taken as recorded in a forward pass; how they were computed does not matter.

    With a norm before the unembedding this holds for the stream. The norm is linear only with its
    scale held fixed (`lens_steps_add_up`).
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
    """An attention score after L layers is a sum over pairs of paths, one that leads to the query
    and one that leads to the key. A score is linear in the query's stream and in the key's stream,
    so it is linear in their tensor product, and both factors are sums over paths of orders k and j.
    M[l] is what layer l adds to the stream, any linear map with patterns held constant.

    For two layers this is the framework's six-index tensor (`qk_six_index`); here it is for every
    depth.
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
    """A score behind L layers of H heads is a sum of (1 + H)^{2L} terms, since (1 + H)^L paths lead
    to the query and as many to the key. At the twelfth layer of a model with twelve heads, with
    eleven layers before it, that is 13²² or about 3 · 10²⁴.

    Nobody reads them one by one. Methods that use this expansion group paths or stop at low orders.
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
    """The mean number of heads on a path, over all (1 + H)^L paths, is L H/(1 + H). At each layer a
    random path takes one of the H heads with probability c = H/(1 + H). For twelve layers of twelve
    heads the mean is 11.08.

    So nearly all paths are long, although in trained models short paths carry most of what matters.

    In the formula each head is marked by a matrix N with N² = 0, which makes the coefficient of N
    the mean.
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
    """One forward pass can compute the paths of all orders separately. Let each layer multiply what
    goes through its heads by a mark S: the result is Σ_k (paths of order k) ⊗ S^k, for every depth
    and every matrix S. M[l] is what the heads of layer l add, a linear map with patterns held
    constant.

    If S is a number τ, the stream is a polynomial in τ whose coefficients are the orders. If S
    shifts from one slot to the next, slot k holds order k at the end, so nothing is run twice.

    With S as a strength of all heads, it says how the output depends on that strength.
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
    """A forward pass with three slots computes the direct path, the single heads and the virtual
    heads (orders 0, 1 and 2) of a model of any depth, and discards longer paths. The mark S with S³
    = 0 moves from one slot to the next at each head. M[l] is what the heads of layer l add, a
    linear map with patterns held constant.

    So low orders do not require that all paths are computed.
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
