"""Chapter 3: how attention knows where a token stands: by added vectors, by rotation, or not."""

from __future__ import annotations

from typing import Any

import sympy
from sympy import HadamardProduct, Identity, ImmutableMatrix, Inverse, MatrixSymbol, Transpose

from otimes.algebra.language.linear import Family, HeadSum, OneHot, matadd, matmul
from otimes.algebra.language.nonlinear import CausalMask, RowSoftmax
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.attention_head.scores import less
from otimes.proofs.catalogue.sources import FRAMEWORK, ROFORMER, VASWANI
from otimes.proofs.catalogue.symbols import H, X, d, d_head, h, heads, n, row
from otimes.proofs.claims import NonIdentity, Statement
from otimes.proofs.theorem import theorem

TRANSFORMERS_AS_SETS = f"Lee et al. 2019, “Set Transformer”, §3; {VASWANI}, §3.5"

i, j, q = sympy.symbols("i j q", integer=True)
P = MatrixSymbol("P", n, n)
R = Family("R", (n,), d_head, d_head)
PLAIN_ROTARY: dict[str, Any] = {"positions": "rotary", "biases": (), "qk_norm": "none"}
PLAIN_ROTARY |= {"attn_scale": 0.0, "score_cap": 0.0}
PERMUTATION = (
    (matmul(P, Transpose(P)), Identity(n)),
    (HadamardProduct(P, P, evaluate=False), P),
)


def attention(stream: Any, *moved: Any, mask: bool = False) -> Any:
    """Return what a layer of heads writes for the stream, its rows first multiplied by `moved`."""
    W_Q, W_K = Family("W_Q", (H,), d, d_head)[h], Family("W_K", (H,), d, d_head)[h]
    back = [Transpose(factor) for factor in reversed(moved)]
    scores = matmul(*moved, stream, W_Q, Transpose(W_K), Transpose(stream), *back)
    pattern = RowSoftmax(scores, *([CausalMask(n)] if mask else []))
    return HeadSum(matmul(pattern, *moved, stream, heads.row.W_V[h], heads.row.W_O[h]), (h, H))


@theorem(
    title="Without positions and without a mask, attention is permutation equivariant",
    chapter=3,
    convention="row",
    source=TRANSFORMERS_AS_SETS,
    covers=("S2-19",),
)
def attention_forgets_order() -> Statement:
    """Without position information and without a mask, attention cannot tell the order of its
    inputs: shuffle the rows of the stream by a permutation P, and the outputs are the same,
    shuffled in the same way. The hypotheses say that P is a permutation matrix.

    MLPs and norms act on each position by itself, so a whole stack of such layers is a function of
    a set. Order has to come from position vectors, from rotations of queries and keys, or from the
    causal mask.
    """
    return Statement(attention(X, P), matmul(P, attention(X)), given=PERMUTATION, on_models=False)


@theorem(
    title="Position embeddings break the permutation symmetry of attention",
    chapter=3,
    convention="row",
    source=TRANSFORMERS_AS_SETS,
    covers=("S2-19",),
)
def position_vectors_break_symmetry() -> NonIdentity:
    """Adding position vectors W_pos to the embeddings makes attention depend on the order of
    tokens: shuffle the tokens X under fixed position vectors, and the output is no longer the
    shuffled output. P is a permutation matrix and W_pos (n × d) holds a vector for each position.

    What breaks the symmetry is that one of the two summands moves and the other stays in its place
    (`attention_forgets_order` is the case without position vectors).
    """
    W_pos = MatrixSymbol("W_pos", n, d)
    shuffled = attention(matadd(matmul(P, X), W_pos))
    return NonIdentity(shuffled, matmul(P, attention(matadd(X, W_pos))), given=PERMUTATION)


@theorem(
    title="The causal mask breaks the permutation symmetry of attention",
    chapter=3,
    convention="row",
    source="Haviv et al. 2022, “Transformer Language Models without Positional Encodings Still "
    "Learn Positional Information”",
    covers=("S2-19",),
)
def causal_mask_breaks_symmetry() -> NonIdentity:
    """The causal mask alone makes attention depend on the order of tokens, without any position
    vectors. The first position can attend only to itself, so a token that moves from first to last
    writes something else. In the formula P is a permutation matrix.

    So a decoder without position embeddings can still learn positions. A head that attends evenly,
    for example, gives the first token the weight 1/(number of positions so far).
    """
    shuffled = attention(matmul(P, X), mask=True)
    return NonIdentity(shuffled, matmul(P, attention(X, mask=True)), given=PERMUTATION)


def _turned(W: Any, rotation: Any) -> Any:
    """Return X W with row q turned by the rotation of that position."""
    here = OneHot(q, n)
    return HeadSum(matmul(here, Transpose(here), X, W, rotation), (q, n))


@theorem(
    title="With rotary positions, W_QK is a family of matrices, one for each distance",
    chapter=3,
    convention="row",
    source=f"{ROFORMER}, §3.2",
    covers=("B11",),
)
def rotary_scores_by_distance() -> Statement:
    """With rotary position embeddings a head has not one matrix W_QK but one for each distance
    between query and key. Query i is multiplied by a rotation R[i] and key j by R[j] (d_head ×
    d_head), so their score contains W_Q R[i] R[j]ᵀ W_Kᵀ. For rotations R[i] R[j]ᵀ depends on i − j
    only (`rotations_by_difference`).

    So “the QK circuit” or a composition score of such a head has no meaning until a distance is
    named.
    """
    queries, keys = _turned(row.W_Q, R[q]), _turned(row.W_K, R[q])
    score = matmul(Transpose(OneHot(i, n)), queries, Transpose(keys), OneHot(j, n))
    between = matmul(row.W_Q, matmul(R[i], Transpose(R[j])), Transpose(row.W_K))
    return Statement(
        score,
        matmul(Transpose(OneHot(i, n)), X, between, Transpose(X), OneHot(j, n)),
        places={"scores": matmul(1 / sympy.sqrt(d_head), queries, Transpose(keys))},
        bind=({"X": Source("qk_in"), "R": Source("rotation")},),
        bare=False,
        config=PLAIN_ROTARY,
        unchanged_by={
            "rotation with its columns shifted": "one permutation of the entries of all queries "
            "and keys changes no dot product"
        },
    )


def _rotation(cosine: Any, sine: Any) -> Any:
    return ImmutableMatrix([[cosine, sine], [-sine, cosine]])


@theorem(
    title="One rotation times another one's transpose is the rotation by the difference",
    chapter=3,
    source=f"{ROFORMER}, §3.2.1",
    covers=("B11",),
)
def rotations_by_difference() -> Statement:
    """A rotation by one angle times the transpose of a rotation by another is the rotation by the
    difference of the angles. In the formula cos_i and sin_i are the cosine and sine of the angle
    iθ; the entries of the product are cos((i − j)θ) and sin((i − j)θ) by the addition theorems. For
    the angle jθ they are cos_j and sin_j.

    Rotary position embeddings rest on this: a query turned by iθ and a key turned by jθ have a
    score that depends on i − j only. They consist of many such 2 × 2 rotations, with an angle θ for
    each.
    """
    a, b, c, e = sympy.symbols("cos_i sin_i cos_j sin_j", real=True)
    return Statement(
        matmul(_rotation(a, b), Transpose(_rotation(c, e))),
        _rotation(a * c + b * e, b * c - a * e),
        on_models=False,
    )


@theorem(
    title="Moving all positions by the same amount changes no rotary score",
    chapter=3,
    convention="row",
    source=f"{ROFORMER}, §3.2",
    covers=("B11",),
)
def rotary_scores_ignore_a_shift() -> Statement:
    """Starting to count positions elsewhere changes no score of a rotary model: if all rotations
    R[q] are multiplied by the same orthogonal G, queries and keys are turned alike and their dot
    products stay.

    With learned position vectors this fails, since each absolute position has weights of its own.
    """
    G = MatrixSymbol("G", d_head, d_head)

    def scores(rotation: Any) -> Any:
        return matmul(_turned(row.W_Q, rotation), Transpose(_turned(row.W_K, rotation)))

    return Statement(
        scores(matmul(R[q], G)),
        scores(R[q]),
        given=[(matmul(G, Transpose(G)), Identity(d_head))],
        on_models=False,
    )


@theorem(
    title="A rotary head has no single W_QK: it depends on the distance",
    chapter=3,
    convention="row",
    source=f"{ROFORMER}, §3.2; {FRAMEWORK}, whose QK circuit assumes that there are no rotations",
    covers=("B11",),
)
def rotary_W_QK_depends_on_distance() -> NonIdentity:
    """If one multiplies out W_Q W_Kᵀ for a model with rotary positions, one gets the matrix for
    distance zero only, which scores a position with itself. At another distance, with the rotation
    R_Δ between the factors, it is another matrix. The inequality shows that even its norm differs,
    and so would any composition score. R_Δ (d_head × d_head) is an orthogonal matrix.
    """
    T = MatrixSymbol("R_delta", d_head, d_head)
    W_QK = matmul(row.W_Q, Transpose(row.W_K))
    turned = matmul(row.W_Q, T, Transpose(row.W_K))
    orthogonal = (matmul(T, Transpose(T)), Identity(d_head))
    return NonIdentity(_norm(turned), _norm(W_QK), given=[orthogonal])


def _norm(a: Any) -> Any:
    return sympy.Trace(matmul(a, Transpose(a)))


@theorem(
    title="With rotary positions a QK gauge must commute with the rotations",
    chapter=3,
    convention="row",
    source=f"{ROFORMER}, §3.2; linear algebra: the commutant",
    covers=("B8",),
)
def rotary_qk_gauge() -> Statement:
    """With rotary positions, the basis of queries and keys can be changed only by matrices that
    commute with the rotations. Then W_Q C and W_K (C⁻¹)ᵀ have the same scores at every distance,
    since C passes through R_Δ and cancels. R_Δ is the rotation that belongs to the distance Δ of
    query and key.

    If the angles of the planes are distinct, such a C is a rotation and a scale in each plane. That
    is 2 numbers for each plane, d_head in all, instead of the d_head² without rotary positions
    (`qk_gauge`).
    """
    C, T = MatrixSymbol("C", d_head, d_head), MatrixSymbol("R_delta", d_head, d_head)
    return Statement(
        matmul(matmul(row.W_Q, C), T, Transpose(matmul(row.W_K, Transpose(Inverse(C))))),
        matmul(row.W_Q, T, Transpose(row.W_K)),
        given=[(matmul(C, T), matmul(T, C))],
        on_models=False,
    )


@theorem(
    title="A QK gauge that keeps all rotary scores commutes with the rotations",
    chapter=3,
    convention="row",
    source=f"{ROFORMER}, §3.2; linear algebra: the commutant",
    covers=("B8",),
)
def rotary_qk_gauge_is_commutant() -> Statement:
    """In a head with rotary positions, queries and keys are multiplied by rotations, and a score
    contains R_Δ, the rotation for the distance Δ. A change of basis C of queries and keys that
    keeps all scores must commute with these rotations. L_Q and L_K are left inverses of W_Q and
    W_K, which exist if these have independent columns. Seen through them, the change that C makes
    at one distance is C R_Δ − R_Δ C, which must therefore be zero.

    It is the converse of `rotary_qk_gauge`. A change of basis that is free in a model without
    rotary positions changes the scores of one with them.
    """
    C, T = MatrixSymbol("C", d_head, d_head), MatrixSymbol("R_delta", d_head, d_head)
    L_Q, L_K = MatrixSymbol("L_Q", d_head, d), MatrixSymbol("L_K", d_head, d)
    changed = matmul(matmul(row.W_Q, C), T, Inverse(C), Transpose(row.W_K))
    change = less(changed, matmul(row.W_Q, T, Transpose(row.W_K)))
    return Statement(
        matmul(L_Q, change, Transpose(L_K), C),
        less(matmul(C, T), matmul(T, C)),
        given=[(matmul(L_Q, row.W_Q), Identity(d_head)), (matmul(L_K, row.W_K), Identity(d_head))],
        on_models=False,
    )
