"""Chapter 7: models compared over their vocabulary: correlation, alignment, stitching."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum
from typing import Any

import numpy as np
from sympy import (
    HadamardPower,
    Identity,
    ImmutableMatrix,
    MatrixExpr,
    MatrixSymbol,
    OneMatrix,
    Rational,
    Symbol,
    Trace,
    Transpose,
)

from otimes.algebra.language.linear import matadd, matmul
from otimes.algebra.language.nonlinear import RSQRT, Activation
from otimes.numeric.circuits.embedding_space import (
    align_layers,
    correlations,
    stitching_map,
    vocabulary,
)
from otimes.numeric.model import Model
from otimes.proofs.catalogue.reading_weights.embedding_space import (
    RIGHT_INVERSE,
    ROUNDOFF,
    E,
    E_back,
)
from otimes.proofs.catalogue.sources import DAR
from otimes.proofs.catalogue.symbols import V, d, m, n, p, q
from otimes.proofs.claims import (
    Bound,
    Definition,
    Load,
    Method,
    NonIdentity,
    Observation,
    Observed,
    Square,
    Statement,
    Trial,
)
from otimes.proofs.theorem import theorem


@theorem(
    title="Pearson correlation",
    chapter=7,
    source="Pearson 1895; used across the vocabulary in " + DAR,
    covers=("S0-64",),
)
def pearson() -> Definition:
    """The Pearson correlation of two rows u and v is the cosine of the angle between them after
    each is centred: subtract the mean, then divide the dot product by both lengths. P = I − 11ᵀ/V
    subtracts the mean. It is between −1 and 1.

    It compares shapes: adding a constant to a row, or multiplying it by a positive number, changes
    nothing. So it suits logits, which are defined up to a constant.
    """

    def plain(**given: Any) -> Any:
        u, v = given["u"][0], given["v"][0]
        mean_u, mean_v = sum(u) / len(u), sum(v) / len(v)
        both = sum((a - mean_u) * (b - mean_v) for a, b in zip(u, v, strict=True))
        sizes = [sum((a - mean) ** 2 for a in each) for each, mean in ((u, mean_u), (v, mean_v))]
        with np.errstate(divide="ignore", invalid="ignore"):  # a constant row has no correlation
            return [[both / (sizes[0] * sizes[1]) ** 0.5]]

    return Definition(
        "Pearson correlation",
        matmul(_one_over_length(_u), _dot(_u, _v), _one_over_length(_v)),
        plain,
        obeys=("covariance_of_affine", "variance_of_affine", "pearson_at_most_one"),
        on_models=False,
    )


@theorem(
    title="Correlation is unchanged by shifts and positive scales",
    chapter=7,
    source="Pearson 1895",
    covers=("S0-64",),
)
def covariance_of_affine() -> Statement:
    """Adding a constant to a row does not change its covariance with another, and multiplying the
    row by a multiplies the covariance by a. In the formula the row is a u + b 1, and P = I − 11ᵀ/V
    removes b. The other row is v.

    So logits, which are defined only up to a constant for each position, can be compared by their
    correlation.
    """
    return Statement(_dot(_shifted, _v), matmul(_a, _dot(_u, _v)), on_models=False)


@theorem(
    title="A factor changes a correlation by its sign only",
    chapter=7,
    source="Pearson 1895",
    covers=("S0-64",),
)
def variance_of_affine() -> Statement:
    """Replacing a row u by a u + b multiplies its variance by a². The covariance is multiplied by a
    (`covariance_of_affine`), so the correlation with another row changes only by the sign of a.

    Singular vectors and similar directions are known only up to sign. Compare them by the absolute
    value of the correlation.
    """
    return Statement(_dot(_shifted, _shifted), matmul(_a**2, _dot(_u, _u)), on_models=False)


@theorem(
    title="The Pearson correlation is at most one",
    chapter=7,
    source="Cauchy and Schwarz; Lagrange 1773",
    covers=("S0-64",),
)
def pearson_at_most_one() -> Bound:
    """A Pearson correlation is between −1 and 1: ⟨u, v⟩² ≤ ‖u‖² ‖v‖² for any two rows, here the
    centred ones. The difference is half the sum of squares of all u_s v_t − u_t v_s.

    Equality means that the centred rows are multiples of each other.
    """
    product = matmul(_u, Transpose(_v))
    crossed = matadd(matmul(Transpose(_u), _v), matmul(-1, Transpose(_v), _u))
    return Bound(
        Trace(matmul(product, Transpose(product))),
        Trace(matmul(_u, Transpose(_u))) * Trace(matmul(_v, Transpose(_v))),
        because=(Square(crossed, Rational(1, 2)),),
        tight={"u": [[1, 2]], "v": [[2, 4]]},
        on_models=False,
    )


@theorem(
    title="Inner products over the vocabulary from a d × d Gram matrix",
    chapter=7,
    source=f"{DAR}, on aligning layers; the Gram matrix of a product",
    covers=("B14", "S0-63"),
)
def gram_of_projected() -> Statement:
    """Directions of two models can be compared over their common vocabulary by a d × d matrix. A
    direction a of model A becomes a row a E_A with one entry for each of the V tokens, where E_A (d
    × V) is that model's embedding or unembedding, and the same holds for B. The inner products of
    such rows, less their means, depend on E_A P E_Bᵀ alone, where P = I − 11ᵀ/V subtracts the mean.

    So comparing many directions over a vocabulary of 50,000 costs no more than comparing them in
    the stream.
    """
    A, B = MatrixSymbol("A", m, p), MatrixSymbol("B", n, q)
    E_A, E_B = MatrixSymbol("E_A", p, V), MatrixSymbol("E_B", q, V)
    return Statement(
        matmul(matmul(A, E_A), _CENTRE, Transpose(matmul(B, E_B))),
        matmul(A, matmul(E_A, _CENTRE, Transpose(E_B)), Transpose(B)),
        on_models=False,
    )


@theorem(
    title="A rotation of the stream cancels over the vocabulary",
    chapter=7,
    convention="row",
    source=f"{DAR}, on aligning layers",
    covers=("S0-65",),
)
def rotations_cancel() -> Statement:
    """If the residual stream of a model is rotated by R, what its weights say over the vocabulary
    does not change: V_A becomes V_A R, the unembedding E becomes RᵀE, and their product stays V_A
    E.

    So two models that look unrelated in the stream can be compared through their common vocabulary.
    """
    R = MatrixSymbol("R", d, d)
    written = MatrixSymbol("V_A", m, d)
    return Statement(
        matmul(matmul(written, R), matmul(Transpose(R), E)),
        matmul(written, E),
        given=((matmul(R, Transpose(R)), Identity(d)),),
        on_models=False,
    )


@theorem(
    title="The similarity of two layers does not depend on the order of their neurons",
    chapter=7,
    source=f"{DAR}, on aligning layers; class notes, where the one number is left open",
    covers=("S0-63",),
)
def likeness_ignores_order_of_neurons() -> Statement:
    """A measure of how similar two layers are should not depend on the order of their neurons. In
    the table of correlations between all pairs of neurons, A M Bᵀ, the sum of squares does not:
    permuting the rows of A by P leaves it unchanged. The best match of each row and an optimal
    pairing do not depend on the order either.

    The sum along the diagonal does. With it, a layer compared with a reordered copy of itself seems
    to be different.
    """
    A, B = MatrixSymbol("A", n, p), MatrixSymbol("B", n, q)
    P, M = MatrixSymbol("P", n, n), MatrixSymbol("M", p, q)
    table, permuted = matmul(A, M, Transpose(B)), matmul(matmul(P, A), M, Transpose(B))
    swapped, two = ImmutableMatrix([[0, 1], [1, 0]]), MatrixSymbol("S", 2, 2)  # of two neurons
    return Statement(
        Trace(matmul(Transpose(permuted), permuted)),
        Trace(matmul(Transpose(table), table)),
        given=((matmul(Transpose(P), P), Identity(n)),),
        on_models=False,
        printed={"E39": (Trace(matmul(swapped, two)), Trace(two))},
    )


@theorem(
    title="align_layers: which layer of one model corresponds to which of another",
    chapter=7,
    source=f"{DAR}, on aligning layers; Kuhn 1955, “The Hungarian method”",
    covers=("S0-63",),
)
def align_layers_method() -> Method:
    """`ot.align_layers` finds which layer of one model corresponds to which layer of another. It
    correlates rows over the vocabulary, reduces each pair of layers to one number (the mean of the
    best matches in both directions; the published text leaves this open), and takes the one-to-one
    pairing with the largest sum.

    The check is that a model with shuffled layers is recognised, and that correlations agree with
    loops over tokens.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if not model.n_layers or model.config.norm != "none":
            return
        rows, table = model.W_O[0, 0][:2], model.W_U
        found = correlations(rows, table, rows[::-1], table)
        plain = [
            [_pearson_by_loops((a @ table).tolist(), (b @ table).tolist()) for b in rows[::-1]]
            for a in rows
        ]
        # Through the Gram matrix, entries are sums of V products of size up to ‖row‖² ‖E‖².
        lengths = [np.linalg.norm(r @ (table - table.mean(axis=1, keepdims=True))) for r in rows]
        most = (np.linalg.norm(rows, axis=1).max() * np.linalg.norm(table)) ** 2
        bound = 8 * (model.d_vocab + model.d_model) * ROUNDOFF * most / min(lengths) ** 2
        yield Trial("correlations", found, np.array(plain), bound)
        heads = {name: np.roll(model.weights[name], 1, 0) for name in ("W_Q", "W_K", "W_V", "W_O")}
        shuffled = model.changed(heads)
        pairs = align_layers(model, shuffled).pairs
        order = [(k, (k + 1) % model.n_layers) for k in range(model.n_layers)]
        yield Trial("pairs of shuffled layers", np.array(pairs), np.array(order), 0.0)
        yield _similarities(model, shuffled)

    return Method(
        "ot.align_layers",
        (
            "gram_of_projected",
            "likeness_ignores_order_of_neurons",
            "rotations_cancel",
            "covariance_of_affine",
        ),
        trials,
    )


def _similarities(A: Model, B: Model) -> Trial:
    """Return how alike the layers are by the rows of W_O, beside the same from all logits."""
    found = align_layers(A, B, ("W_O",)).similarity.values
    plain, doubt = np.zeros((2, A.n_layers, B.n_layers))
    for i, j in np.ndindex(plain.shape):
        centred = []
        for model, layer in ((A, i), (B, j)):
            rows = np.concatenate(list(model.W_O[layer])) @ model.W_U
            centred.append(rows - rows.mean(axis=1, keepdims=True))
        lengths = [np.linalg.norm(each, axis=1) for each in centred]
        like = np.abs(centred[0] @ centred[1].T) / np.outer(*lengths)
        plain[i, j] = (like.max(axis=1).mean() + like.max(axis=0).mean()) / 2
        longest = max(np.linalg.norm(each.W_O, axis=-1).max() for each in (A, B))
        most = (longest * np.linalg.norm(A.W_U)) ** 2
        shortest = min(float(each.min()) for each in lengths)
        doubt[i, j] = 8 * (A.d_vocab + A.d_model) * ROUNDOFF * most / shortest**2
    return Trial("how alike the layers are", found, plain, doubt)


@theorem(
    title="Stitching a model to a rotated copy of itself undoes the rotation",
    chapter=7,
    convention="row",
    source=f"{DAR}, on stitching",
    covers=("S0-70",),
)
def stitching_to_itself() -> Statement:
    """Going from the stream of one model to that of another through their common vocabulary, K =
    E_A E_B′ with E_B′ a right inverse of E_B, recovers a rotation exactly: for a model and its copy
    with the stream rotated by R, K = R. For a model and itself K is the identity. Nothing is
    fitted. In the formula the right inverse of E is E_back, and E_back R is that of RᵀE.

    Between models that were trained separately K is an approximation, since their embeddings span
    different subspaces.
    """
    R = MatrixSymbol("R", d, d)
    return Statement(matmul(E, matmul(E_back, R)), R, given=(RIGHT_INVERSE,), on_models=False)


@theorem(
    title="stitching_map: from one residual stream to another through the vocabulary",
    chapter=7,
    source=f"{DAR}, on stitching",
    covers=("S0-70",),
)
def stitching_method() -> Method:
    """`ot.stitching_map` computes the map from one model's stream to another's through the
    vocabulary, with the pseudo-inverse of the second embedding. It is checked on a model and itself
    (the identity) and on a copy of it whose stream lists its coordinates in reverse order (that
    permutation), up to rounding.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if model.config.final_norm:
            return
        condition = np.linalg.cond(model.W_U @ model.W_U.T)  # the square of that of W_U
        bound = 8 * model.d_vocab * ROUNDOFF * condition
        yield Trial("to itself", stitching_map(model, model).K, np.eye(model.d_model), bound)
        turned = model.changed({"W_U": model.W_U[::-1].copy()})
        found = stitching_map(model, turned).K
        yield Trial("to itself turned", found, np.eye(model.d_model)[::-1], bound)
        other = model.changed({"W_U": np.roll(model.W_U, 1, axis=1)})
        stitched, E_A, E_B = stitching_map(model, other), model.W_U, other.W_U
        K = np.linalg.solve(E_B @ E_B.T, E_B @ E_A.T).T
        bound *= float(np.linalg.norm(E_A) / np.linalg.norm(E_B, -2))
        yield Trial("to its tokens in another order", stitched.K, K, bound)
        missing = np.linalg.norm(K @ E_B - E_A) / np.linalg.norm(E_A)
        yield Trial("what is missing then", stitched.residual, float(missing), bound)

    return Method("ot.stitching_map", ("stitching_to_itself",), trials, law="K = E_A E_B'")


@theorem(
    title="Two embeddings of one vocabulary need not span one space",
    chapter=7,
    source=DAR,
    covers=("S0-61",),
)
def subspaces_need_not_coincide() -> NonIdentity:
    """Two models with the same vocabulary need not use the same subspace of it. If they did, the
    projection E′E onto the row space of the first embedding would leave the second, E_B, unchanged;
    the inequality says that in general it does not. In the formula E′ is E_back.

    What the two share is the space with one dimension for each token, and within it each has d
    dimensions of its own.
    """
    other = MatrixSymbol("E_B", p, V)
    return NonIdentity(matmul(other, E_back, E), other, given=(RIGHT_INVERSE,))


@theorem(
    title="Do two models with one vocabulary share one embedding space?",
    chapter=7,
    source=DAR,
    covers=("S0-61",),
)
def single_space() -> Observation:
    """Do two trained models with the same tokenizer use the same d-dimensional subspace of the
    vocabulary space? Nothing requires it (`subspaces_need_not_coincide`), so it is measured, by the
    principal angles between the row spaces of their unembeddings.

    Cosines near 1 would mean that directions of one model can be read in the other without loss.
    """

    def observe(load: Load) -> Observed:
        A, B = (vocabulary(load(name)).T for name in ("one_layer", "two_layer"))
        drawn = np.random.default_rng(0).standard_normal(B.shape)
        bases = [np.linalg.qr(each)[0] for each in (A, B, drawn)]
        trained, chance = (
            np.linalg.svd(bases[0].T @ basis, compute_uv=False) for basis in bases[1:]
        )
        figure = (
            f"mean cosine of the principal angles of one_layer and two_layer {trained.mean():.2f}, "
            f"of one_layer and a random space {chance.mean():.2f}; smallest {trained.min():.2f}"
        )
        return Observed(figure, {"smallest cosine": float(trained.min())})

    return Observation(
        "all principal angles between the row spaces of the unembeddings of two models trained on "
        "the same text have cosines above 0.9",
        observe,
        {"smallest cosine": 0.9},
        outcome="not seen",
    )


@theorem(
    title="What fine-tuning changed, expressed over the vocabulary",
    chapter=7,
    convention="row",
    source=f"{DAR}, on fine-tuned models",
    covers=("S0-62",),
)
def change_over_vocabulary() -> Statement:
    """What fine-tuning changed in a weight can be read over the vocabulary like the weight itself,
    since projection is linear: (W + ΔW) E = W E + ΔW E. ΔW is the change, and E maps the stream to
    the vocabulary.

    The rows of ΔW E say which tokens were promoted or demoted. Whether they have to do with the
    training data is an empirical question (`fine_tuning_read`).
    """
    W, change = MatrixSymbol("W", m, d), MatrixSymbol("DeltaW", m, d)
    return Statement(
        matmul(matadd(W, change), E), matadd(matmul(W, E), matmul(change, E)), on_models=False
    )


@theorem(
    title="The change by fine-tuning, projected to the vocabulary",
    chapter=7,
    source=f"{DAR}, on fine-tuned models",
    covers=("S0-62",),
)
def fine_tuning_read() -> Observation:
    """Does the change of weights by fine-tuning, projected to the vocabulary, show what the model
    was trained on? Dar et al. fine-tuned GPT-2 on film reviews and found words of praise and blame
    in the projected differences.

    The projection is linear and proved (`change_over_vocabulary`); what is claimed here is the
    content.
    """
    return Observation(
        "the top tokens of the rows of ΔW E are words of what was fine-tuned on, more often than "
        "for a random ΔW",
        cannot="it takes a model before and after fine-tuning, and no such pair is bundled",
    )


_CENTRE = matadd(Identity(V), matmul(-1 / V, OneMatrix(V, V)))
_u, _v = MatrixSymbol("u", 1, V), MatrixSymbol("v", 1, V)
_a, _b = Symbol("a", real=True), Symbol("b", real=True)
_shifted = matadd(matmul(_a, _u), matmul(_b, OneMatrix(1, V)))


def _dot(u: Any, v: Any) -> MatrixExpr:
    """Return the inner product of two rows without their means."""
    return matmul(u, _CENTRE, Transpose(v))


def _one_over_length(u: Any) -> MatrixExpr:
    squares = HadamardPower(matmul(u, _CENTRE), 2)
    return Activation(RSQRT, matmul(squares, OneMatrix(V, 1)))


def _pearson_by_loops(u: list[float], v: list[float]) -> float:
    mean_u, mean_v = fsum(u) / len(u), fsum(v) / len(v)
    both = fsum((a - mean_u) * (b - mean_v) for a, b in zip(u, v, strict=True))
    sizes = [fsum((a - mean) ** 2 for a in each) for each, mean in ((u, mean_u), (v, mean_v))]
    return float(both / (sizes[0] * sizes[1]) ** 0.5)
