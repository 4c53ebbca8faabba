"""Chapter 8: direct logit attribution, what each part of a model writes straight into a logit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import fsum, sqrt
from typing import Any

import numpy as np
import sympy
from sympy import HadamardProduct, Identity, MatrixExpr, MatrixSymbol, OneMatrix, Transpose, symbols
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import Family, HeadSum, OneHot, matadd, matmul
from otimes.algebra.language.nonlinear import Activation, LayerNorm, RowSoftmax
from otimes.numeric.attribution.direct import direct_logit_attribution
from otimes.numeric.binding import Source
from otimes.numeric.forward import Places
from otimes.numeric.model import Model
from otimes.numeric.rounding import gamma
from otimes.proofs.catalogue.mlp_and_norm.parts import (
    bias,
    centring,
    diagonal,
    eps,
    everywhere,
    reciprocal_deviation,
)
from otimes.proofs.catalogue.sources import FRAMEWORK, PRIMER, TRANSFORMER_LENS
from otimes.proofs.catalogue.symbols import (
    A,
    H,
    L,
    V,
    X,
    d,
    d_mlp,
    h,
    l,
    layers,
    n,
    row,
    size,
)
from otimes.proofs.claims import Definition, Method, NonIdentity, Statement, Trial
from otimes.proofs.theorem import theorem

UNIT = 2.0**-53
TINY = 1e-300  # a row without spread has no scale of its own, and ε is all there is
CONCEPTS = (
    "Geva et al. 2022, “Transformer Feed-Forward Layers Build Predictions by Promoting Concepts in "
    "the Vocabulary Space”"
)

i, j, k, u, w, o = symbols("i j k u w o", integer=True)
W_V, W_O, W_U = row.W_V, row.W_O, row.W_U
W_out = MatrixSymbol("W_out", d_mlp, d)
token, foil = OneHot(w, V), OneHot(o, V)
position = Transpose(OneHot(i, n))
written = MatrixSymbol("f", n, d)  # what some component writes at each position
neurons = MatrixSymbol("mlp_post", n, d_mlp)
r = MatrixSymbol("r", d, 1)  # a direction of the stream that is read, such as W_U e_w
ONE_TOKEN = Source("W_U", cols=1)  # the column of a token
ANY_TOKEN = {"W_U with its columns shifted": "the token is any, and no activation depends on it"}

# The stream that the heads of each layer read, a norm before it or not.
read = Family("X", (L,), n, d)


# -- scores ----------------------------------------------------------------------------------------


@theorem(
    title="Direct logit attribution of a component",
    chapter=8,
    convention="row",
    source=f"{PRIMER}, “Logit attribution”; {FRAMEWORK}",
    covers=("S3-039",),
)
def direct_logit_of_component() -> Definition:
    """The direct logit of a component is what it adds to a logit through the unembedding alone: it
    writes a row f to the residual stream, and f W_U is its contribution to the logits of all
    tokens. For token w it is the dot product of f with column w of W_U.

    It is the quickest answer to “which component produced this prediction?”.

    It is not the effect of the component. Later layers read f too, and may amplify it, cancel it,
    or make up for it (`effect_is_direct_and_the_rest`).
    """

    def plain(f: Any, W_U: Any, n: int, d: int, V: int, **_: Any) -> list[list[Any]]:
        return [[sum(f[i][k] * W_U[k][w] for k in range(d)) for w in range(V)] for i in range(n)]

    return Definition(
        "the direct logits of a component",
        matmul(written, W_U),
        plain,
        bind=({"f": Source("attn_out"), "W_U": Source("W_U", cols=8)},),  # of eight tokens
        obeys=("direct_logits_add_up", "direct_logits_with_frozen_scale"),
        places={"resid_mid": matadd(X, written)},
        unchanged_by=ANY_TOKEN,
        bare=False,
    )


@theorem(
    title="Direct logit attribution of a neuron",
    chapter=8,
    convention="row",
    source=f"{PRIMER}, “Logit attribution”; {CONCEPTS}",
    covers=("S3-040",),
)
def direct_logit_of_neuron() -> Definition:
    """The direct logit of a neuron is its activation times the dot product of its row of W_out with
    the unembedding column r of a token. The activations are `mlp_post`, and W_out belongs to the
    same layer.

    So it is a product of how active the neuron is, which depends on the prompt, and what its row
    says about the token, which is fixed.

    A neuron whose row promotes a token demotes it when its activation is negative, which is
    possible with GELU.
    """

    def plain(mlp_post: Any, W_out: Any, r: Any, n: int, d: int, d_mlp: int, **_: Any) -> Any:
        says = [sum(W_out[u][k] * r[k][0] for k in range(d)) for u in range(d_mlp)]
        return [[mlp_post[i][u] * says[u] for u in range(d_mlp)] for i in range(n)]

    return Definition(
        "the direct logits of neurons",
        matmul(neurons, DiagMatrix(matmul(W_out, r))),
        plain,
        bind=({"r": ONE_TOKEN},),
        obeys=("mlp_direct_logit_is_sum_over_neurons",),
        places={"mlp_out": matadd(matmul(neurons, W_out), everywhere(MatrixSymbol("b_out", 1, d)))},
        unchanged_by=ANY_TOKEN,
        bare=False,
    )


@theorem(
    title="Direct logit attribution of a source of a head",
    chapter=8,
    convention="row",
    source=f"{PRIMER}, “Logit attribution”",
    covers=("S3-041",),
)
def direct_logit_of_source() -> Definition:
    """A head's direct logit can be divided over the positions it attends to: from position j it
    brings the row a_ij x_j W_OV, whose dot product with the unembedding column r of a token is the
    contribution of j.

    So it shows which positions matter through this head. A large attention weight means little if
    the row moved is small, or unrelated to r.

    x_j is the stream before the layer. It may hold more than the token at j
    (`attending_is_not_reading_the_token`).
    """

    def plain(
        A: Any, X: Any, W_V: Any, W_O: Any, r: Any, n: int, d: int, d_head: int, **_: Any
    ) -> list[list[Any]]:
        rows, inner = range(d), range(d_head)
        says = []
        for j in range(n):
            value = [sum(X[j][k] * W_V[k][a] for k in rows) for a in inner]
            moved = [sum(value[a] * W_O[a][k] for a in inner) for k in rows]
            says.append(sum(moved[k] * r[k][0] for k in rows))
        return [[A[i][j] * says[j] for j in range(n)] for i in range(n)]

    moved = matmul(X, matmul(W_V, W_O), r)
    return Definition(
        "the direct logits of the sources of a head",
        matmul(A, DiagMatrix(moved)),
        plain,
        places={"head_out": matmul(A, X, matmul(W_V, W_O))},
        bind=({"X": Source("ln1"), "r": ONE_TOKEN}, {"X": Source("resid_pre"), "r": ONE_TOKEN}),
        unchanged_by=ANY_TOKEN,
        obeys=("head_direct_logit_is_sum_over_sources",),
    )


# -- completeness ----------------------------------------------------------------------------------


@theorem(
    title="The direct logits of all components add up",
    chapter=8,
    convention="row",
    source=f"{PRIMER}, “Prediction as a sum of component outputs” and “Logit attribution”; "
    f"{FRAMEWORK}",
    covers=("S3-042", "S3-039"),
)
def direct_logits_add_up() -> Statement:
    """In an attention-only model without norms, the direct logits of the embedding and of all heads
    in all layers sum to the logit, exactly. In the formula e_i picks a position and e_w a token.

    So nothing is left unexplained, and a forgotten component shows as a difference. It is linearity
    of the unembedding and nothing else.
    """
    patterns, of = layers.A[l, h], layers.row
    embedded = MatrixSymbol("X_0", n, d)
    head = matmul(patterns, read[l], of.W_V[l, h], of.W_O[l, h])
    stream = matadd(embedded, HeadSum(head, (l, L), (h, H)))
    logit = matmul(position, stream, W_U, token)
    parts = HeadSum(matmul(position, head, W_U, token), (l, L), (h, H))
    return Statement(
        logit,
        matadd(matmul(position, embedded, W_U, token), parts),
        bind=({"X_0": Source("embed"), "X": Source("resid_pre")},),
        places={"final": stream, "logits": matmul(stream, W_U)},
    )


@theorem(
    title="A head's direct logit is the sum over its sources, biases included",
    chapter=8,
    convention="row",
    source=f"{PRIMER}, “Logit attribution”; {FRAMEWORK}",
    covers=("S3-042", "S3-041"),
)
def head_direct_logit_is_sum_over_sources() -> Statement:
    """What a head contributes to any direction r that is read is the sum over source positions of
    a_ij (x_j W_V + b_V) W_O r. The value bias belongs to the head; the weights of a row sum to one,
    so it adds b_V W_O r in all.

    r is a column of the unembedding, that column behind a frozen norm, or a difference of two.

    In print the source row x_j is found replaced by the row of a neuron. Shapes fit, but then
    nothing depends on position j.
    """
    values = matadd(matmul(X, W_V), everywhere(bias.b_V))
    neuron = matmul(Transpose(OneHot(u, d_mlp)), W_out)
    whole = matmul(position, A, values, W_O, r)
    without = matmul(position, A, X, W_V, W_O, r)

    def over_sources(row_of_source: MatrixExpr) -> HeadSum:
        return HeadSum(matmul(A[i, j], row_of_source, W_O, r), (j, n))

    return Statement(
        whole,
        over_sources(matmul(Transpose(OneHot(j, n)), values)),
        bind=(
            {"X": Source("ln1"), "r": ONE_TOKEN},
            {"X": Source("resid_pre"), "r": ONE_TOKEN},
        ),
        printed={"E02": (without, over_sources(matmul(neuron, W_V)))},
        places={"z": matmul(A, values), "head_out": matmul(A, values, W_O)},
        bare=False,
        unchanged_by=ANY_TOKEN,
    )


@theorem(
    title="An MLP's direct logit is the sum over its neurons",
    chapter=8,
    convention="row",
    source=f"{PRIMER}, “Logit attribution”; {CONCEPTS}",
    covers=("S3-042", "S3-040"),
)
def mlp_direct_logit_is_sum_over_neurons() -> Statement:
    """What an MLP contributes to any direction r that is read is a sum over its neurons, activation
    times the dot product of r with the neuron's row of W_out, plus one term for the output bias
    that belongs to no neuron.

    In print one finds the activations of one layer with the rows of W_out of the layer before. Such
    a sum has the right shapes and is not the MLP's contribution.
    """
    b_out, other = MatrixSymbol("b_out", 1, d), MatrixSymbol("W_before", d_mlp, d)

    def over_neurons(rows: MatrixExpr) -> HeadSum:
        each = matmul(Transpose(OneHot(u, d_mlp)), rows, r)
        return HeadSum(matmul(neurons[i, u], each), (u, d_mlp))

    whole = matmul(position, matadd(matmul(neurons, W_out), everywhere(b_out)), r)
    return Statement(
        whole,
        matadd(over_neurons(W_out), matmul(b_out, r)),
        bind=({"r": ONE_TOKEN},),
        printed={"E19": (matmul(position, neurons, W_out, r), over_neurons(other))},
        places={"mlp_out": matadd(matmul(neurons, W_out), everywhere(b_out))},
        bare=False,
        unchanged_by=ANY_TOKEN,
    )


C = size("C")
c = symbols("c", integer=True)
parts = Family("f", (C,), 1, d)  # what each writes at one position
whole = HeadSum(parts[c], (c, C))
gain = diagonal(MatrixSymbol("ln_final_gain", 1, d))
shift = MatrixSymbol("ln_final_bias", 1, d)
normed_logit = matmul(matadd(matmul(LayerNorm(whole, eps), gain), shift), r)


def _with_scales(scale: MatrixExpr) -> MatrixExpr:
    """Return the sum of what the parts are worth, each divided by a size, and the bias."""
    each = matmul(scale, parts[c], centring, gain, r)
    return matadd(HeadSum(each, (c, C)), matmul(shift, r))


@theorem(
    title="Behind a final norm, direct logits add up if all use the scale of the whole stream",
    chapter=8,
    convention="row",
    source=f"{FRAMEWORK}, “Handling layer normalization”; {PRIMER}, “Logit attribution”",
    covers=("S3-043", "S3-042", "B9"),
)
def direct_logits_with_frozen_scale() -> Statement:
    """Behind a final LayerNorm, the direct logits of all components still sum to the logit if each
    is divided by the same σ, that of the whole stream. Each component f[c] is centred, divided by
    σ, multiplied by the gain and read by r, the unembedding column of a token; the norm's bias is
    one more term.

    “My components do not add up to the logits” most often means that the norm was left out, or that
    each component was normalised by itself.

    The sum is exact for the prompt at hand. Another prompt has another σ.
    """
    without_norm = HeadSum(matmul(parts[c], r), (c, C))
    return Statement(
        normed_logit,
        _with_scales(reciprocal_deviation(whole)),
        on_models=False,
        printed={"E57": (normed_logit, without_norm)},
    )


@theorem(
    title="Direct logits of components that are normalised separately do not add up",
    chapter=8,
    convention="row",
    source=f"{FRAMEWORK}, “Handling layer normalization”",
    covers=("B9",),
)
def direct_logits_with_own_scales_do_not_add_up() -> NonIdentity:
    """If each component is normalised by its own mean and standard deviation, as if it were the
    whole stream, the results do not sum to the logits. Small components are made as long as large
    ones. The components are the rows f[c], and r is the unembedding column of a token.

    Divide all components by the scale of the whole stream (`direct_logits_with_frozen_scale`).
    """
    return NonIdentity(normed_logit, _with_scales(reciprocal_deviation(parts[c])))


# -- contrasts -------------------------------------------------------------------------------------


@theorem(
    title="A logit difference is a log ratio of probabilities",
    chapter=8,
    convention="row",
    source=f"{PRIMER}, “Logit attribution”; class notes on the softmax",
    covers=("S3-044",),
)
def logit_difference_is_log_ratio() -> Statement:
    """The difference of two logits is the logarithm of the ratio of the two probabilities: f_w −
    f_o = log P(w)/P(o). The normaliser of the softmax is the same for both and cancels. A
    difference of log 2 ≈ 0.69 means odds of two to one.

    This is why analyses use logit differences. A single logit says nothing about a probability.
    """
    final = MatrixSymbol("X_L", n, d)
    logits = matmul(final, W_U)
    chances = RowSoftmax(logits)
    up = Activation("exp", matmul(logits, token))
    down = Activation("exp", matmul(-1, logits, foil))
    return Statement(
        matmul(chances, token),
        HadamardProduct(matmul(chances, foil), up, down),
        bind=({"X_L": Source("ln_final")}, {"X_L": Source("final")}),
        bare=False,
        places={"logits": logits},
    )


@theorem(
    title="Attribution of a logit difference is a difference of attributions",
    chapter=8,
    convention="row",
    source=f"{PRIMER}, “Logit attribution”",
    covers=("S3-044",),
)
def direct_logit_difference() -> Statement:
    """A component's contribution to the logit difference of tokens w and o is the difference of its
    two direct logits, f (W_U[:,w] − W_U[:,o]). The contributions of all components add up to the
    logit difference.

    A component that raises all tokens by the same amount contributes nothing, as it should.
    """
    between = matadd(matmul(W_U, token), matmul(-1, W_U, foil))
    return Statement(
        matmul(written, between),
        matadd(matmul(written, W_U, token), matmul(-1, written, W_U, foil)),
        bind=({"f": Source("attn_out")},),
        places={
            "resid_mid": matadd(X, written),
            "logits": matmul(MatrixSymbol("final", n, d), W_U),
        },
    )


common = MatrixSymbol("c", d, 1)  # what is added to every column of W_U
SHIFTED = matadd(W_U, matmul(common, OneMatrix(1, V)))


@theorem(
    title="Adding one column to all columns of W_U leaves the probabilities unchanged",
    chapter=8,
    convention="row",
    source=f"{PRIMER}, “Logit attribution”; {TRANSFORMER_LENS}",
    covers=("S3-045",),
)
def common_column_keeps_probabilities() -> Statement:
    """Adding the same column c (d × 1) to every column of the unembedding changes no probability:
    all logits of a position change by the same number, X_L c.

    So W_U is determined only up to such a column. Centring it, with minus the mean column as c, is
    one choice among many.
    """
    final = MatrixSymbol("X_L", n, d)
    return Statement(
        RowSoftmax(matmul(final, SHIFTED)),
        RowSoftmax(matmul(final, W_U)),
        bind=({"X_L": Source("ln_final"), "c": Source("ln_final_gain", example=True)},),
        bare=False,
        places={"logits": matmul(final, W_U)},
    )


@theorem(
    title="Adding one column to all columns of W_U leaves logit differences unchanged",
    chapter=8,
    convention="row",
    source=f"{PRIMER}, “Logit attribution”",
    covers=("S3-045",),
)
def common_column_keeps_differences() -> Statement:
    """Adding the same column c to every column of the unembedding changes no logit difference,
    neither of the model nor of any component f.

    So statements about logit differences do not depend on which of the equivalent unembeddings a
    library uses.
    """
    between = matadd(token, matmul(-1, foil))
    return Statement(
        matmul(written, SHIFTED, between),
        matmul(written, W_U, between),
        bind=({"f": Source("attn_out"), "c": Source("ln_final_gain", example=True)},),
        bare=False,
        places={"resid_mid": matadd(X, written)},
        unchanged_by=ANY_TOKEN,
    )


@theorem(
    title="Adding one column to all columns of W_U changes direct logits of single tokens",
    chapter=8,
    convention="row",
    source=f"{PRIMER}, “Logit attribution”",
    covers=("S3-045",),
)
def common_column_moves_direct_logits() -> Statement:
    """Adding the same column c to every column of the unembedding changes the direct logit f W_U
    e_w of a component, what its output f adds to the logit of token w, by f c: the same for all
    tokens but different for each component. The model's predictions do not change.

    So “this head adds 3 to the logit of w” depends on an arbitrary choice. Centre W_U first, so
    that numbers are relative to the mean over tokens, or use logit differences.
    """
    return Statement(
        matmul(written, SHIFTED, token),
        matadd(matmul(written, W_U, token), matmul(written, common)),
        bind=({"f": Source("attn_out"), "c": Source("ln_final_gain", example=True)},),
        bare=False,
        places={"resid_mid": matadd(X, written)},
        unchanged_by=ANY_TOKEN,
    )


# -- direct and not --------------------------------------------------------------------------------

later = Family("M", (L,), d, d)  # what each later layer does to a row, the patterns being kept
wrote = MatrixSymbol("f", 1, d)


@theorem(
    title="The effect of an ablation is the direct logit plus what later layers change",
    chapter=8,
    convention="row",
    source=f"{FRAMEWORK}; McGrath et al. 2023, “The Hydra Effect”",
)
def effect_is_direct_and_the_rest() -> Statement:
    """Removing what a component wrote changes a logit by its direct logit plus what the later
    layers did with it. With patterns, scales and gates held constant the later layers are linear
    maps M[l], and the effect of f on the direction r is f r plus, for each later layer, what had
    become of f until then, times M[l] r.

    So direct attribution equals the effect only for components of the last layer.

    Layers that are not held constant can also react to the gap. Self-repair is of this kind and not
    in this sum.
    """
    through = LayerProduct(matadd(Identity(d), later[l]), (l, L), reverse=True)
    before = LayerProduct(matadd(Identity(d), later[k]), (k, l), reverse=True)
    return Statement(
        matmul(wrote, through, r),
        matadd(matmul(wrote, r), HeadSum(matmul(wrote, before, later[l], r), (l, L))),
        on_models=False,
    )


@theorem(
    title="A component whose output a later layer erases has a direct logit and no effect",
    chapter=8,
    convention="row",
    source=f"{FRAMEWORK}, “Subspaces and residual stream bandwidth”, on deletion; "
    "Rushing and Nanda 2024",
)
def erased_write_has_no_effect() -> Statement:
    """A component can have a large direct logit and no effect at all: if a later layer M erases
    what it wrote (f M = −f), nothing of f reaches the logits. Direct attribution still reports f r
    for the component and −f r for the layer that erases it.

    Both look important, and cancel. Check effects by interventions.
    """
    M = MatrixSymbol("M", d, d)
    return Statement(
        matmul(wrote, matadd(Identity(d), M), r),
        sympy.ZeroMatrix(1, 1),
        given=((matmul(wrote, M), matmul(-1, wrote)),),
        on_models=False,
    )


# -- the function ----------------------------------------------------------------------------------


class _LastLogit:
    """The logit of a token after a prompt, and how a row of the last stream is read into it."""

    def __init__(self, model: Model, places: Places, token: int) -> None:
        config, row = model.config, places["final"][-1]
        self.centred = config.final_norm and config.norm == "layer"
        self.gain = model.part("ln_final_gain") * model.W_U[:, token]
        middle = self._mean(row)
        spread = [(float(entry) - middle) ** 2 for entry in row]
        self.scale = sqrt(fsum(spread) / len(row) + config.norm_eps) if config.final_norm else 1.0
        # A square moves by twice what its root does, and the root by u of what was added up.
        few = gamma(model.d_model + 4, UNIT)
        unsure = (np.abs(row) + np.abs(row).mean()) @ np.abs(row - middle) / max(fsum(spread), TINY)
        self.doubt = few * (2 + unsure) if config.final_norm else 0.0
        self.few = gamma(3 * model.d_model + model.d_head + 12, UNIT)

    def _mean(self, row: np.ndarray) -> float:
        return fsum(row) / len(row) if self.centred else 0.0

    def of(self, row: np.ndarray, size: np.ndarray) -> tuple[float, float]:
        """Return what a row adds to the logit, and a bound, from the sizes of what made it."""
        value = fsum((row - self._mean(row)) * self.gain) / self.scale
        spread = size + (size.mean() if self.centred else 0.0)
        return value, float(spread @ np.abs(self.gain)) / self.scale * (self.few + self.doubt)


@theorem(
    title="direct_logit_attribution: parts by loops, and together the logit",
    chapter=8,
    convention="row",
    source=f"{PRIMER}, “Logit attribution”; {FRAMEWORK}",
    covers=("S3-039", "S3-040", "S3-041", "S3-042", "S3-043", "B9"),
)
def direct_logit_attribution_method() -> Method:
    """`direct_logit_attribution` gives the contribution of each source of each head, of each
    neuron, of the biases and of the embedding to a logit, with the norm's scale of this forward
    pass. Each is compared with a computation by loops, and together they are the logit of the
    model.

    It is tried on models without norms and on one with LayerNorms, MLPs, gains and all biases.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        found = direct_logit_attribution(model, tokens, 3)
        places, last = model.forward(tokens), len(tokens) - 1
        logit = _LastLogit(model, places, 3)
        everything, doubt = [], 0.0
        by_source = found.by_source().values
        by_head = found.by_head().values
        for layer, head in product(range(model.n_layers), range(model.n_heads)):
            W_O, v = model.W_O[layer, head], places[f"v.{layer}"][head]
            weights = places[f"pattern.{layer}"][head, last]
            terms = [
                logit.of(weight * (value @ W_O), weight * (np.abs(value) @ np.abs(W_O)))
                for weight, value in zip(weights, v, strict=True)
            ]
            plain, bound = np.array(terms).T
            yield Trial(f"sources of head {layer}.{head}", by_source[layer, head], plain, bound)
            few = gamma(2 * len(plain), UNIT)
            doubt_of_head = 2 * fsum(bound) + few * fsum(np.abs(plain))
            yield Trial(f"head {layer}.{head}", by_head[layer, head], fsum(plain), doubt_of_head)
            everything += list(plain)
            doubt += bound.sum()
        for layer in range(model.n_layers if model.config.d_mlp else 0):
            W_out, active = model.part("W_out", layer), places[f"mlp_post.{layer}"][last]
            rows = [n_u * W_out[u] for u, n_u in enumerate(active)]
            plain, bound = np.array([logit.of(row, np.abs(row)) for row in rows]).T
            neurons_found = found.by_neuron().values[layer]
            yield Trial(f"neurons of layer {layer}", neurons_found, plain, bound)
            everything += list(plain)
            doubt += bound.sum()
        others = [model.W_E[tokens[last]]]
        others += [model.W_pos[last]] if model.config.positions == "learned" else []
        names = [name for name in ("b_O", "b_out") if name in model.config.biases]
        others += [model.part(name, layer) for name in names for layer in range(model.n_layers)]
        for added in others:
            value, bound_of_row = logit.of(added, np.abs(added))
            everything.append(value)
            doubt += bound_of_row
        if model.config.final_norm:
            added = model.part("ln_final_bias") * model.W_U[:, 3]
            everything.append(fsum(added))
            doubt += gamma(model.d_model, UNIT) * np.abs(added).sum()
        if "b_U" in model.config.biases:
            everything.append(float(model.part("b_U", 3)))
        # The pass adds the same terms in its own order, over a widest sum of d_mlp or H d_head.
        widest = model.n_heads * model.d_head + model.config.d_mlp + 4 * model.n_layers
        sizes = fsum(abs(each) for each in everything)
        doubt = 2 * doubt * (1 + gamma(widest, UNIT) / logit.few) + gamma(widest, UNIT) * sizes
        whole = places["logits"][last, 3]
        yield Trial("all parts together", whole, fsum(everything), doubt)
        yield Trial("all components", found.by_component().values.sum(), whole, doubt)

    rests = (
        "direct_logits_with_frozen_scale",
        "direct_logits_add_up",
        "head_direct_logit_is_sum_over_sources",
        "mlp_direct_logit_is_sum_over_neurons",
    )
    return Method("ot.direct_logit_attribution", rests, trials)
