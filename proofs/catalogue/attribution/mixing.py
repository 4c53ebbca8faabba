"""Chapter 8: context mixing: weighted norms, distances, and what norms leave out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import fsum, sqrt
from typing import Any

import numpy as np
from sympy import (
    HadamardPower,
    HadamardProduct,
    Identity,
    MatrixExpr,
    MatrixSymbol,
    OneMatrix,
    Rational,
    Trace,
    Transpose,
    symbols,
)
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.facts import Fact
from otimes.algebra.language.linear import (
    HeadSum,
    OneHot,
    matadd,
    matmul,
)
from otimes.algebra.language.nonlinear import RSQRT, Activation
from otimes.numeric.attribution.mixing import (
    context_mixing,
    output_value_norms,
    value_norms,
)
from otimes.numeric.binding import Source
from otimes.numeric.model import Model
from otimes.numeric.rounding import gamma
from otimes.numeric.tokenizer import sample_tokens
from otimes.proofs.catalogue.sources import PRIMER
from otimes.proofs.catalogue.symbols import A, H, X, d, d_head, h, heads, m, n, row
from otimes.proofs.claims import (
    Bound,
    Definition,
    Entries,
    Load,
    Method,
    NonIdentity,
    Observation,
    Observed,
    Statement,
    Trial,
)
from otimes.proofs.theorem import theorem

KOBAYASHI = "Kobayashi et al. 2020, “Attention is Not Only a Weight”"
ALTI = "Ferrando et al. 2022, “Measuring the Mixing of Contextual Information”"
UNIT = 2.0**-53
half = Rational(1, 2)

W_V, W_O = row.W_V, row.W_O
READ: tuple[dict[str, Source], ...] = ({"X": Source("ln1")}, {"X": Source("resid_pre")})
i, j, k = symbols("i j k", integer=True)


def squares(rows: MatrixExpr) -> MatrixExpr:
    """Return the squared length of each row, as a column."""
    return matmul(HadamardPower(rows, 2), OneMatrix(rows.shape[1], 1))


def lengths(rows: MatrixExpr) -> MatrixExpr:
    """Return the length of each row, as a column: the square over its root."""
    squared = squares(rows)
    return HadamardProduct(squared, Activation(RSQRT, squared))


# -- weighted norms --------------------------------------------------------------------------------


def _row_times(line: Any, W: Any) -> list[Any]:
    return [sum(line[a] * W[a][b] for a in range(len(line))) for b in range(len(W[0]))]


@theorem(
    title="The norm of a value-weighted vector",
    chapter=8,
    convention="row",
    source=f"{PRIMER}, “Context mixing for input attribution”; {KOBAYASHI}, §2",
    covers=("S3-032",),
)
def value_norm() -> Definition:
    """The value-weighted norm ‖a_ij x_j W_V‖ measures how much query i takes from key j as the
    attention weight times the length of the key's value. It corrects attention maps: a head often
    gives most of its weight to a token, such as the first one or a full stop, whose value is nearly
    zero.

    The value's length depends on the basis inside the head (`value_norm_depends_on_basis`); the
    output norm does not (`output_value_norm`).
    """

    def plain(A: Any, X: Any, W_V: Any, n: int, **_: Any) -> list[list[float]]:
        values = [_row_times(X[key], W_V) for key in range(n)]
        return [
            [A[a][b] * sqrt(fsum(float(entry) ** 2 for entry in values[b])) for b in range(n)]
            for a in range(n)
        ]

    return Definition(
        "the norms of the weighted values of a head",
        matmul(A, DiagMatrix(lengths(matmul(X, W_V)))),
        plain,
        bind=READ,
        obeys=("weight_comes_out_of_the_norm", "value_norm_depends_on_basis"),
        places={"v": matmul(X, W_V), "z": matmul(A, X, W_V)},
    )


@theorem(
    title="The norm of an output-value-weighted vector",
    chapter=8,
    convention="row",
    source=f"{PRIMER}, “Context mixing for input attribution”; {KOBAYASHI}, §2",
    covers=("S3-033",),
)
def output_value_norm() -> Definition:
    """The norm ‖a_ij x_j W_OV‖ measures how much a head moves from position j to position i, as the
    length of the vector that is written to the stream. Unlike the norm of the value, it does not
    depend on how W_OV is split into factors (`output_value_norm_ignores_basis`).

    A length has no direction. Two long vectors may cancel (`norms_are_at_most_additive`), and a
    long one may be read by no later component.
    """

    def plain(A: Any, X: Any, W_V: Any, W_O: Any, n: int, **_: Any) -> list[list[float]]:
        moved = [_row_times(_row_times(X[key], W_V), W_O) for key in range(n)]
        return [
            [A[a][b] * sqrt(fsum(float(entry) ** 2 for entry in moved[b])) for b in range(n)]
            for a in range(n)
        ]

    return Definition(
        "the norms of what a head moves",
        matmul(A, DiagMatrix(lengths(matmul(X, W_V, W_O)))),
        plain,
        bind=READ,
        obeys=("weight_comes_out_of_the_norm", "output_value_norm_ignores_basis"),
        places={"head_out": matmul(A, X, W_V, W_O)},
    )


@theorem(
    title="The attention weight factors out of the norm of a value",
    chapter=8,
    source=f"{KOBAYASHI}, §2",
    covers=("S3-032", "S3-033"),
)
def weight_comes_out_of_the_norm() -> Statement:
    """The norm of a weighted value is the weight times the norm of the value: ‖a_ij v_j‖² = a_ij²
    ‖v_j‖². So norms are computed once for each key and multiplied by the pattern, instead of once
    for each pair.
    """
    weights, values = matmul(Transpose(A), OneHot(i, n)), MatrixSymbol("v", n, d_head)
    return Statement(
        squares(matmul(DiagMatrix(weights), values)),
        HadamardProduct(HadamardPower(weights, 2), squares(values)),
        places={"z": matmul(A, values)},
        bare=False,
    )


M, N = MatrixSymbol("M", d_head, d_head), MatrixSymbol("N", d_head, d_head)


@theorem(
    title="The norm of a value depends on the basis inside the head",
    chapter=8,
    convention="row",
    source=f"{KOBAYASHI}; the gauge of a head, see `ov_gauge`",
    covers=("S3-032",),
)
def value_norm_depends_on_basis() -> NonIdentity:
    """The norm of a value x W_V changes under a change of basis inside the head, W_V M with W_O
    adapted, although the head computes the same. Even a scale M = 2I does it. In the formula M N =
    I.

    So value norms cannot be compared between heads or between models. Use norms behind W_O
    (`output_value_norm_ignores_basis`).
    """
    return NonIdentity(
        squares(matmul(X, W_V, M)),
        squares(matmul(X, W_V)),
        given=((matmul(M, N), Identity(d_head)),),
    )


@theorem(
    title="The norm of an output-value vector does not depend on the basis inside the head",
    chapter=8,
    convention="row",
    source=f"{KOBAYASHI}; the gauge of a head, see `ov_gauge`",
    covers=("S3-033",),
)
def output_value_norm_ignores_basis() -> Statement:
    """The length of x W_V W_O does not change when the basis inside the head does, since M and N =
    M⁻¹ cancel in the product. So it is a property of the head and not of how its weights are
    stored, and may be compared between heads.
    """
    return Statement(
        squares(matmul(X, matmul(W_V, M), matmul(N, W_O))),
        squares(matmul(X, matmul(W_V, W_O))),
        given=((matmul(M, N), Identity(d_head)),),
        on_models=False,
    )


@theorem(
    title="Norms are subadditive: the triangle inequality and its gap",
    chapter=8,
    source=f"{PRIMER}, “Context mixing for input attribution”; Horn and Johnson, §5.1",
    covers=("S3-036",),
)
def norms_are_at_most_additive() -> Bound:
    """The length of a sum of vectors is at most the sum of their lengths, with equality only if all
    point in the same direction. The difference of the squares is ½ Σ_jk ‖T_j‖ ‖T_k‖ ‖U_j − U_k‖²,
    where T_j = t_j U_j has length t_j ≥ 0 and direction U_j.

    So the norms of a head's contributions from its sources are not shares of what it writes. What
    is missing is how much their directions differ.
    """
    unit, size = MatrixSymbol("U", m, d), MatrixSymbol("t", m, 1)
    whole = matmul(Transpose(size), unit)
    entry = matmul(unit, OneHot(k, d))
    between = matadd(matmul(entry, OneMatrix(1, m)), matmul(-1, OneMatrix(m, 1), Transpose(entry)))
    distances = HeadSum(HadamardPower(between, 2), (k, d))
    return Bound(
        Trace(matmul(whole, Transpose(whole))),
        Trace(matmul(OneMatrix(1, m), size, Transpose(size), OneMatrix(m, 1))),
        because=[Entries(HadamardProduct(matmul(size, Transpose(size)), distances), half)],
        given=[(squares(unit), OneMatrix(m, 1)), Fact("nonnegative", size)],
        tight={"U": [[0, 1], [0, 1]], "t": [[2], [3]]},
        on_models=False,
    )


@theorem(
    title="How far norms are from additive in the trained models",
    chapter=8,
    source=f"{PRIMER}, “Context mixing for input attribution”",
    covers=("S3-036",),
)
def slack_of_norms() -> Observation:
    """How much do the vectors from different sources cancel in trained models? For the last
    position of a prompt, the length of what a head writes is compared with the sum of the lengths
    of its parts from all sources.

    A ratio near 1 says that norms are nearly additive; a small one says that they tell little about
    what is written.
    """

    def observe(load: Load) -> Observed:
        ratios = []
        for name in ("one_layer", "two_layer", "induction", "gpt2_tiny"):
            model = load(name)
            places = model.forward(sample_tokens(32))
            for layer, head in product(range(model.n_layers), range(model.n_heads)):
                moved = places[f"v.{layer}"][head] @ model.W_O[layer, head]
                parts = places[f"pattern.{layer}"][head, -1][:, None] * moved
                whole = np.linalg.norm(parts.sum(axis=0))
                ratios.append(float(whole / np.linalg.norm(parts, axis=1).sum()))
        figure = (
            f"length of the sum over the sum of lengths, {len(ratios)} heads of four models: from "
            f"{min(ratios):.2f} to {max(ratios):.2f}, median {np.median(ratios):.2f}"
        )
        slack = {
            "1 minus the largest": 1 - max(ratios),
            "1 minus the median": 1 - np.median(ratios),
        }
        return Observed(figure, slack)

    return Observation(
        "never above 1, and for half of the heads below 0.9, so that norms overstate what is "
        "written by a tenth or more",
        observe,
        {"1 minus the largest": -gamma(1024, UNIT), "1 minus the median": 0.1},
        outcome="seen at random too",
    )


# -- distances -------------------------------------------------------------------------------------


@theorem(
    title="The output of a layer is the sum of the contributions of all positions",
    chapter=8,
    convention="row",
    source=f"{ALTI}, §3; Kobayashi et al. 2021",
    covers=("S3-034",),
)
def layer_is_sum_over_sources() -> Statement:
    """What an attention layer leaves at a position is a sum over all source positions: for each
    position j what all heads bring from j, and for j = i also the stream itself. In the formula e_j
    e_jᵀ X keeps row j of the stream only, and the patterns A[h] are kept.

    So the output can be attributed to source tokens, skip connection included. An output bias would
    be one more term from no position.
    """
    keep = matmul(OneHot(j, n), Transpose(OneHot(j, n)))

    def layer(stream: MatrixExpr) -> MatrixExpr:
        moved = matmul(heads.A[h], stream, heads.row.W_V[h], heads.row.W_O[h])
        return matadd(stream, HeadSum(moved, (h, H)))

    after = layer(X)
    return Statement(after, HeadSum(layer(matmul(keep, X)), (j, n)), places={"resid_mid": after})


brought = MatrixSymbol("T", m, d)  # what each of m sources brings to one query


def _size(rows: MatrixExpr) -> MatrixExpr:
    """Return the sum of |entry| of each row, as a column."""
    sizes = matadd(Activation("relu", rows), Activation("relu", matmul(-1, rows)))
    return matmul(sizes, OneMatrix(d, 1))


def _nearness() -> MatrixExpr:
    y, ones = matmul(OneMatrix(1, m), brought), OneMatrix(m, 1)
    without = matadd(matmul(ones, y), matmul(-1, brought))
    return Activation("relu", matadd(matmul(ones, _size(y)), matmul(-1, _size(without))))


@theorem(
    title="Contributions by distance",
    chapter=8,
    source=f"{PRIMER}, “Context mixing for input attribution”; {ALTI}, §3",
    covers=("S3-034",),
)
def distance_contribution() -> Definition:
    """A source position can be scored by how much nearer it brings the result to what it is: c_j =
    max(0, ‖y‖₁ − ‖y − T_j‖₁), where y = Σ_j T_j is the result at a query, T_j the part from source
    j (rows of T, m × d), and ‖·‖₁ the sum of absolute values. Divided by their sum these are
    shares.

    Unlike a norm it takes directions into account: a part that points away from y counts zero.
    Other distances give other shares.
    """

    def plain(T: Any, m: int, d: int, **_: Any) -> list[list[float]]:
        y = [fsum(float(T[a][b]) for a in range(m)) for b in range(d)]
        near = [
            max(0.0, fsum(map(abs, y)) - fsum(abs(y[b] - float(T[a][b])) for b in range(d)))
            for a in range(m)
        ]
        return [[each] for each in near]

    return Definition(
        "how much nearer each source brings a query to what it is",
        _nearness(),
        plain,
        on_models=False,
        obeys=("layer_is_sum_over_sources", "distance_contributions_sum_to_one"),
    )


@theorem(
    title="Contributions by distance sum to one",
    chapter=8,
    source=f"{ALTI}, §3",
    covers=("S3-034",),
)
def distance_contributions_sum_to_one() -> Statement:
    """Contributions by distance (`distance_contribution`), divided by their sum, are shares: none
    is negative and they sum to one. So a matrix of them is like an attention pattern, and layers of
    them can be multiplied as in attention rollout. They are the entries of c (m × 1) before the
    division.

    If every source points away from the result, the sum is zero and there are no shares.
    """
    near = MatrixSymbol("c", m, 1)
    shares = matmul(1 / Trace(matmul(OneMatrix(1, m), near)), near)
    return Statement(matmul(OneMatrix(1, m), shares), OneMatrix(1, 1), on_models=False)


# -- functions -------------------------------------------------------------------------------------


def _norms_by_loops(model: Model, tokens: Sequence[int], through_W_O: bool) -> Iterator[Trial]:
    if model.n_layers == 0:
        return
    names = [f"{place}.{layer}" for layer in range(model.n_layers) for place in ("pattern", "v")]
    places = model.forward(tokens, names)
    found = (output_value_norms if through_W_O else value_norms)(model, tokens).values
    few = gamma(model.d_model + model.d_head + 6, UNIT)
    for layer in range(model.n_layers):
        for head in range(model.n_heads):
            pattern, v = places[f"pattern.{layer}"][head], places[f"v.{layer}"][head]
            W_O = model.W_O[layer, head]
            plain, bound = np.zeros((2, *pattern.shape))
            for key, value in enumerate(v):
                moved = [fsum(value * column) for column in W_O.T] if through_W_O else value
                sizes = np.abs(value) @ np.abs(W_O) if through_W_O else np.abs(value)
                plain[:, key] = pattern[:, key] * sqrt(fsum(entry**2 for entry in moved))
                # An error of an entry moves a length by at most as much: ‖a + e‖ ≤ ‖a‖ + ‖e‖.
                bound[:, key] = pattern[:, key] * few * np.linalg.norm(sizes) * 2
            yield Trial(f"head {layer}.{head}", found[layer, head], plain, bound)


@theorem(
    title="value_norms and output_value_norms",
    chapter=8,
    source=f"{KOBAYASHI}, §2",
    covers=("S3-032", "S3-033"),
)
def weighted_norms_method() -> Method:
    """`value_norms` and `output_value_norms` compute, for every head, query and key, the norms of
    the weighted value and of what it writes to the stream. They are compared with loops. Value
    biases, where a model has them, are part of the values and so in both.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        yield from _norms_by_loops(model, tokens, False)
        yield from _norms_by_loops(model, tokens, True)

    rests = ("value_norm", "output_value_norm", "weight_comes_out_of_the_norm")
    return Method("ot.output_value_norms", rests, trials)


@theorem(
    title="context_mixing: the shares of a layer, by distance",
    chapter=8,
    source=f"{ALTI}, §3",
    covers=("S3-034",),
)
def context_mixing_method() -> Method:
    """`context_mixing` computes, for a layer, how near each source brings each query to its result,
    and the shares (`distance_contribution`). It is compared with loops over queries and entries. A
    query whose sources all point away has no shares and gets NaN.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        each = ("pattern", "v", "resid_pre", "resid_mid")
        names = [f"{place}.{layer}" for layer in range(model.n_layers) for place in each]
        places = model.forward(tokens, names)
        found = context_mixing(model, tokens).values
        few = gamma(2 * model.d_model + model.d_head + model.n_heads + 10, UNIT)
        for layer in range(model.n_layers):
            pattern, v, pre, mid = (places[f"{place}.{layer}"] for place in each)
            W_O = model.W_O[layer]
            moved, sizes = np.zeros((2, model.n_heads, len(tokens), model.d_model))
            for head, key in np.ndindex(model.n_heads, len(tokens)):
                moved[head, key] = [fsum(v[head, key] * column) for column in W_O[head].T]
                sizes[head, key] = np.abs(v[head, key]) @ np.abs(W_O[head])
            plain, bound = np.zeros((2, len(tokens), len(tokens)))
            for query, y in enumerate(mid):
                near, doubt = [], []
                for key in range(len(tokens)):
                    part = (pre[key] if key == query else np.zeros(model.d_model)).copy()
                    size = np.abs(part)
                    for head in range(model.n_heads):
                        part += pattern[head, query, key] * moved[head, key]
                        size += pattern[head, query, key] * sizes[head, key]
                    near.append(max(0.0, fsum(np.abs(y)) - fsum(np.abs(y - part))))
                    doubt.append(few * (2 * np.abs(y).sum() + size.sum()))
                total = fsum(near)
                shares = np.array(near) / total if total else np.full(len(near), np.nan)
                plain[query] = shares
                off = 2 * (np.array(doubt) + shares * sum(doubt)) / total if total else shares
                bound[query] = off + few * shares
            defined = ~np.isnan(plain)
            yield Trial(
                f"layer {layer}, which are shares",
                (~np.isnan(found[layer])).astype(float),
                defined.astype(float),
                0.0,
            )
            yield Trial(
                f"layer {layer}, every query and key",
                found[layer][defined],
                plain[defined],
                bound[defined],
            )

    rests = ("distance_contribution", "layer_is_sum_over_sources")
    return Method("ot.context_mixing", rests, trials)
