"""Chapter 3: how attention knows where a token stands: by added vectors, by rotation, or not."""

from __future__ import annotations

from typing import Any

import sympy
from sympy import HadamardProduct, Identity, ImmutableMatrix, Inverse, MatrixSymbol, Transpose

from otimes.algebra.language.linear import Family, HeadSum, OneHot, matadd, matmul
from otimes.algebra.language.nonlinear import CausalMask, RowSoftmax
from otimes.proofs.catalogue.attention_head.scores import less
from otimes.proofs.catalogue.sources import FRAMEWORK, ROFORMER, VASWANI
from otimes.proofs.catalogue.symbols import H, X, d, d_head, h, heads, n, row
from otimes.proofs.claims import NonIdentity, Statement
from otimes.proofs.theorem import theorem

TRANSFORMERS_AS_SETS = f"Lee et al. 2019, “Set Transformer”, §3; {VASWANI}, §3.5"

i, j, q = sympy.symbols("i j q", integer=True)
P = MatrixSymbol("P", n, n)
R = Family("R", (n,), d_head, d_head)
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
    """Shuffle the positions of the stream, and what a layer of heads writes is shuffled the same
    way: rows and columns of each pattern are permuted, and nothing else changes. A stack of such
    layers, with MLPs and norms that act on each position by itself, is a function of a set.

    So order must come from somewhere: position vectors added at the bottom, rotations of queries
    and keys, or the causal mask, which by itself already lets a model tell positions apart.
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
    """Shuffle the tokens under fixed position vectors, x_i = W_E[t_i] + W_pos[i]: the output is no
    longer the shuffled output. It is not the addition that does it but that one summand stays in
    its place while the other moves.
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
    """Under the mask the first position can only read itself, so a token that was first and now is
    last writes something else. A decoder without any position vectors can know how far it has come:
    an evenly spread head gives the first token a weight of one over the number of positions so far.
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
    """Row i of the queries and row j of the keys are turned by rotations R_i and R_j. In their
    score only R_i R_jᵀ remains, between W_Q and W_Kᵀ. For rotations that is R of the difference i -
    j, whatever i and j are (`rotations_by_difference`). So there is no W_QK of such a head: there
    is W_Q R_Δ W_Kᵀ for each distance Δ, and a “QK circuit” or a composition score says nothing
    until a distance is named.
    """
    queries, keys = _turned(row.W_Q, R[q]), _turned(row.W_K, R[q])
    score = matmul(Transpose(OneHot(i, n)), queries, Transpose(keys), OneHot(j, n))
    between = matmul(row.W_Q, matmul(R[i], Transpose(R[j])), Transpose(row.W_K))
    return Statement(
        score,
        matmul(Transpose(OneHot(i, n)), X, between, Transpose(X), OneHot(j, n)),
        on_models=False,
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
    """In each plane of two coordinates, R_i turns by the angle iθ. R_i R_jᵀ is again a rotation,
    its cosine cos iθ cos jθ + sin iθ sin jθ = cos (i - j)θ and its sine that of (i - j)θ: the
    addition theorems. All planes together are a block diagonal matrix of such, so it holds for R_i
    as a whole, with a θ of its own for each plane.
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
    """Start counting elsewhere: every R_i becomes R_i G with the same orthogonal G. All scores
    stay, for queries and keys are turned alike. With learned position vectors this is not so: there
    each absolute position has weights of its own.
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
    """Multiply out W_Q W_Kᵀ of a rotary model, as one would of any other, and one has the circuit
    for distance zero: what a position scores with itself. At other distances it is another matrix,
    and even its norm, hence any composition score, is another number.
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
    """A change of basis C inside the head, W_Q C and W_K C⁻ᵀ, passes through a rotation that
    commutes with C. So it changes no score at any distance if it commutes with all rotations: for
    distinct angles, a rotation and a scale in each plane, 2 numbers a plane instead of d_head².
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
    """The converse. Let W_Q and W_K have full column rank, hence left inverses. The change that C
    makes to the circuit of one distance, seen through the left inverses, is C R - R C. It is zero
    only if C commutes with that rotation. Undoing a basis found without rotations on a rotary model
    therefore changes what the model computes.
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
