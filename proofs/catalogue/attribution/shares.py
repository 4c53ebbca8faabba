"""Chapter 8: what is handed back or taken away: relevance, occlusion, Shapley values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from sympy import (
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

from otimes.algebra.facts import Fact
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import Family, HeadSum, OneHot, kron, matadd, matmul
from otimes.numeric.attribution.occlusion import occlusion
from otimes.numeric.attribution.relevance import relevance
from otimes.numeric.binding import Source
from otimes.numeric.model import Model
from otimes.numeric.paths.ensemble import paths
from otimes.numeric.random_weights import random_model
from otimes.numeric.rounding import gamma
from otimes.proofs.catalogue.sources import PRIMER
from otimes.proofs.catalogue.symbols import H, L, X, d, h, heads, l, m, n, size
from otimes.proofs.claims import Method, NonIdentity, Property, Statement, Trial
from otimes.proofs.theorem import theorem

BACH = "Bach et al. 2015, “On Pixel-Wise Explanations … by Layer-Wise Relevance Propagation”"
ALI = (
    "Ali et al. 2022, “XAI for Transformers: Better Explanations through Conservative Propagation”"
)
ZEILER = "Zeiler and Fergus 2014, “Visualizing and Understanding Convolutional Networks”"
SHAPLEY = "Shapley 1953, A value for n-person games; Owen 1972, Multilinear extensions of games"
UNIT = 2.0**-53
half = Rational(1, 2)
i = symbols("i", integer=True)

# A layer of sums, z = Wᵀ a: what is relevant for z goes to a in proportion.
W = MatrixSymbol("W", m, n)
a = MatrixSymbol("a", m, 1)
share = MatrixSymbol("s", n, 1)  # R_j over the sum that it is divided by
of_sums = MatrixSymbol("R", n, 1)
handed_back = HadamardProduct(a, matmul(W, share))  # R_i = Σ_j a_i w_ij s_j


def _total(relevances: MatrixExpr) -> MatrixExpr:
    return matmul(OneMatrix(1, relevances.shape[0]), relevances)


# -- relevance -------------------------------------------------------------------------------------


@theorem(
    title="Relevance is conserved",
    chapter=8,
    source=f"{PRIMER}, “Gradient-based input attribution”; {BACH}",
    covers=("S3-030",),
)
def relevance_is_conserved() -> Statement:
    """R_i = Σ_j a_i w_ij s_j with s_j = R_j / z_j and z_j = Σ_k a_k w_kj: each sum hands its
    relevance to its terms in proportion, and the terms together get all of it, as z_j s_j = R_j.
    Nothing is asked of the weights but that no sum is zero which has some relevance.
    """
    sums = matmul(Transpose(W), a)
    return Statement(
        _total(handed_back),
        _total(of_sums),
        given=((HadamardProduct(sums, share), of_sums),),
        on_models=False,
    )


@theorem(
    title="The relevance that biases and ε absorb",
    chapter=8,
    source=f"{BACH}; Montavon et al. 2019, the ε-rule",
    covers=("S3-030",),
)
def relevance_lost_to_bias_and_epsilon() -> Statement:
    """Divide by z_j + b_j in place of z_j, where b_j is a bias that gets its own share, or ε with
    the sign of z_j: the terms get Σ_j b_j s_j less. So relevance that does not add up is no sign of
    a bug with ε > 0, and it is one with ε = 0 and all biases counted.
    """
    extra = MatrixSymbol("b", n, 1)
    divisor = matadd(matmul(Transpose(W), a), extra)
    return Statement(
        _total(handed_back),
        matadd(_total(of_sums), matmul(-1, Transpose(extra), share)),
        given=((HadamardProduct(divisor, share), of_sums),),
        on_models=False,
    )


@theorem(
    title="Relevance is conserved through any number of layers",
    chapter=8,
    source=f"{BACH}; {ALI}",
    covers=("S3-030",),
)
def relevance_is_conserved_at_every_depth() -> Property:
    """The shares of a layer are a matrix whose columns sum to one. A product of such matrices has
    columns that sum to one: what is relevant for the output reaches the input whole, however deep
    the network.
    """
    shares = Family("N", (L,), n, n)[l]
    back = LayerProduct(shares, (l, L), reverse=True)
    given = (Fact("columns_sum_to_one", shares),)
    return Property(Fact("columns_sum_to_one", back), given=given, on_models=False)


@theorem(
    title="relevance: the frozen model on one token at a time",
    chapter=8,
    source=f"{ALI}",
    covers=("S3-030",),
)
def relevance_method() -> Method:
    """With patterns kept, a model of bare heads is linear in its embedding, and the relevance of a
    token is what the model gives when all other tokens are zero. Beside it: that pass, token by
    token and layer by layer. Together they are the logit.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if not model.config.bare:
            return
        found = relevance(model, tokens, 3)
        places = model.forward(tokens)
        last, count = len(tokens) - 1, model.n_layers
        plain, sizes = np.zeros((2, len(tokens)))
        for token in range(len(tokens)):
            stream = np.zeros_like(places["embed"])
            stream[token] = places["embed"][token]
            size = np.abs(stream)
            for layer in range(count):
                moved, much = np.zeros((2, *stream.shape))
                for head in range(model.n_heads):
                    pattern = places[f"pattern.{layer}"][head]
                    W_V, W_O = model.W_V[layer, head], model.W_O[layer, head]
                    moved += pattern @ stream @ W_V @ W_O
                    much += pattern @ size @ np.abs(W_V) @ np.abs(W_O)
                stream, size = stream + moved, size + much
            plain[token] = stream[last] @ model.W_U[:, 3]
            sizes[token] = size[last] @ np.abs(model.W_U[:, 3])
        each = len(tokens) + model.d_model + model.d_head + model.n_heads + 4
        few = 2 * gamma((count + 1) * each, UNIT)
        yield Trial("each token", found.values[0], plain, few * sizes)
        whole = places["logits"][last, 3]
        yield Trial("all", found.values.sum(), whole, few * sizes.sum())

    rests = ("relevance_is_conserved", "relevance_is_conserved_at_every_depth")
    return Method("ot.relevance", rests, trials)


# -- occlusion -------------------------------------------------------------------------------------


@theorem(
    title="Occlusion of a linear function is the contribution of the token",
    chapter=8,
    convention="row",
    source=f"{PRIMER}, “Perturbation-based input attribution”; {ZEILER}",
    covers=("S3-031",),
)
def occlusion_of_linear() -> Statement:
    """f(X) - f(X without row i) for a layer of heads with frozen patterns, read anywhere by G: it
    is f of row i alone. So for a linear f occlusion, gradient × input and the parts of the sum are
    one and the same, and the scores of all tokens sum to f(X) - f(0).

    In a model the patterns move when a token is taken away, and occlusion counts that too.
    """
    keep = matmul(OneHot(i, n), Transpose(OneHot(i, n)))
    reader = MatrixSymbol("G", n, d)

    def f(stream: MatrixExpr) -> MatrixExpr:
        moved = matmul(heads.A[h], stream, heads.row.W_V[h], heads.row.W_O[h])
        return Trace(matmul(Transpose(reader), matadd(stream, HeadSum(moved, (h, H)))))

    without = matmul(matadd(Identity(n), matmul(-1, keep)), X)
    return Statement(
        f(X) - f(without),
        f(matmul(keep, X)),
        bind=({"G": Source("attn_out")},),
    )


@theorem(
    title="Occlusion counts what two tokens do together twice",
    chapter=8,
    source=f"{PRIMER}, “Perturbation-based input attribution”; Li et al. 2016",
    covers=("S3-031",),
)
def occlusion_overcounts_and() -> Statement:
    """F = xᵀQy is there only if both x and y are (for single bits, f is AND). Each one occluded
    takes all of f away, so the two scores sum to 2 f: more than there is. For OR it is the other
    way round: each one occluded takes nothing, as the other is enough.
    """
    x, y = MatrixSymbol("x", d, 1), MatrixSymbol("y", d, 1)
    Q, nothing = MatrixSymbol("Q", d, d), matmul(0, MatrixSymbol("x", d, 1))

    def f(first: MatrixExpr, second: MatrixExpr) -> MatrixExpr:
        return matmul(Transpose(first), Q, second)

    return Statement(
        matadd(
            matadd(f(x, y), matmul(-1, f(nothing, y))),
            matadd(f(x, y), matmul(-1, f(x, nothing))),
        ),
        matmul(2, f(x, y)),
        on_models=False,
    )


@theorem(
    title="occlusion: the model run with one token's row at zero",
    chapter=8,
    source=f"{ZEILER}; Li et al. 2016",
    covers=("S3-031",),
)
def occlusion_method() -> Method:
    """Beside it: a model that has one token more, whose embedding is zero, run on the prompt with
    that token in place of each other one in turn.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if model.config.tied:
            return  # a token more would be a logit more
        found = occlusion(model, tokens, 3).values
        table = np.concatenate([model.W_E, np.zeros((1, model.d_model))])
        readers = np.concatenate([model.W_U, np.zeros((model.d_model, 1))], axis=1)
        config = replace(model.config, d_vocab=model.d_vocab + 1)
        other = model.changed({"W_E": table, "W_U": readers}, config)
        prompts = [
            [model.d_vocab if at == place else token for at, token in enumerate(tokens)]
            for place in range(len(tokens))
        ]
        passes = [other.forward(prompt) for prompt in [list(tokens), *prompts]]
        logits = np.array([places["logits"][-1, 3] for places in passes])
        # The same pass up to the last product, whose terms may be added in another order.
        last = np.array([np.abs(places["final"][-1]) for places in passes])
        sizes = last @ np.abs(model.W_U[:, 3])
        bound = 2 * gamma(model.d_model + 2, UNIT) * (sizes[0] + sizes[1:])
        yield Trial("each token", found, logits[0] - logits[1:], bound)

    return Method("ot.occlusion", ("occlusion_of_linear", "occlusion_overcounts_and"), trials)


# -- Shapley ---------------------------------------------------------------------------------------

# A model of four layers with one number t by which every head's writing is multiplied. N is the
# head of the second layer whose share is wanted; the others of that layer cancel in a derivative.
layer = [MatrixSymbol(f"M_{number}", n, n) for number in (1, 2, 3, 4)]
N = MatrixSymbol("N", n, n)


def _slope(t: object) -> MatrixExpr:
    """Return what N adds when all other heads have the strength t."""
    first, _, third, fourth = (matadd(Identity(n), matmul(t, each)) for each in layer)
    return matmul(fourth, third, N, first)


def _shared_equally() -> MatrixExpr:
    """Return the sum over paths through N of the path over the number of heads in it."""
    first, _, third, fourth = layer
    pairs = [matmul(N, first), matmul(third, N), matmul(fourth, N)]
    triples = [matmul(third, N, first), matmul(fourth, N, first), matmul(fourth, third, N)]
    return matadd(
        N,
        *(matmul(half, each) for each in pairs),
        *(matmul(Rational(1, 3), each) for each in triples),
        matmul(Rational(1, 4), fourth, third, N, first),
    )


@theorem(
    title="A head's Shapley value shares each path equally among its heads",
    chapter=8,
    source=SHAPLEY,
    covers=("B6",),
)
def shapley_four_layers() -> Statement:
    """With patterns kept, the logits are linear in the strength of each head, and no path goes
    through a head twice. The Shapley value of a head, its mean effect over all orders in which
    heads may be switched on, is ∫ of what it adds when all others have strength t, over t from 0 to
    1; a path through k heads comes with t^(k-1), whose integral is 1/k, its equal share.

    In four layers the integrand is of degree three, and Simpson's rule gives the integral exactly.
    For any number of layers it is `shapley_every_depth`. All this holds for logits; a loss is not
    linear in the strengths.
    """
    sixth = Rational(1, 6)  # of the value at 0, which is N alone, four times at ½, and at 1
    mean = matadd(matmul(sixth, N), matmul(4 * sixth, _slope(half)), matmul(sixth, _slope(1)))
    return Statement(mean, _shared_equally(), on_models=False)


@theorem(
    title="At every depth the mean over strengths weights each path by its length",
    chapter=8,
    source=SHAPLEY,
    covers=("B6",),
)
def shapley_every_depth() -> Statement:
    """With S the strengths of all heads, the model is Σ_k P_k ⊗ S^k, P_k its paths through k heads:
    that is `graded_pass`, for every L. Take for P_k only those through the head that is asked
    about, whose own strength is one, and there are k - 1 others: Σ_k P_k ⊗ S^(k-1). Here S_k stands
    for that power, with S the diagonal of a few strengths t_g. A mean with weights w over them then
    counts each path by c_k = Σ_g w_g t_g^(k-1), for however many orders, K.

    The Shapley value is the mean over all strengths from 0 to 1, where c_k = ∫ t^(k-1) dt = 1/k:
    each path is shared equally among its heads. The highest power is L - 1, so ⌈L/2⌉ Gauss–Legendre
    nodes, exact for degrees below 2⌈L/2⌉, have these c_k as well (`shapley_method`).
    """
    orders, k = size("K"), symbols("k", integer=True)
    P, power = Family("P", (orders,), n, n)[k], Family("S", (orders,), m, m)[k]
    weights, one = MatrixSymbol("w", 1, m), MatrixSymbol("u", m, 1)
    counted = Family("c", (orders,), 1, 1)[k]
    graded = HeadSum(kron(P, power), (k, orders))
    return Statement(
        matmul(kron(Identity(n), weights), graded, kron(Identity(n), one)),
        HeadSum(kron(P, counted), (k, orders)),
        given=((matmul(weights, power, one), counted),),
        on_models=False,
    )


@theorem(
    title="Half strength does not give Shapley values beyond two layers",
    chapter=8,
    source=SHAPLEY,
    covers=("B6",),
)
def shapley_needs_enough_nodes() -> NonIdentity:
    """All heads at half strength give the Shapley value in two layers (`shapley_two_layers`), and
    not in more: a path through three heads then counts ¼ in place of ⅓.
    """
    return NonIdentity(_slope(half), _shared_equally())


@theorem(
    title="paths(…).shapley: every path shared equally among its heads",
    chapter=8,
    source=SHAPLEY,
    covers=("B6",),
)
def shapley_method() -> Method:
    """Beside the values from ⌈L/2⌉ nodes: all paths, one by one, each shared among its heads. On
    models of bare heads; in place of one without layers, a random one of four layers is taken.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if not model.config.bare:
            return
        if model.n_layers == 0:
            kind = replace(model.config, n_layers=4, n_heads=2, d_model=8, d_head=3)
            model = random_model(kind)
        found = paths(model, tokens).shapley(-1, 3)
        places, end = model.forward(tokens), len(tokens) - 1
        plain, bound = np.zeros((2, model.n_layers, model.n_heads))
        for choice in product(range(-1, model.n_heads), repeat=model.n_layers):
            on_path = [(at, head) for at, head in enumerate(choice) if head >= 0]
            row, size = places["embed"], np.abs(places["embed"])
            for at, head in on_path:
                pattern = places[f"pattern.{at}"][head]
                W_V, W_O = model.W_V[at, head], model.W_O[at, head]
                row = pattern @ row @ W_V @ W_O
                size = pattern @ size @ np.abs(W_V) @ np.abs(W_O)
            for at, head in on_path:
                plain[at, head] += row[end] @ model.W_U[:, 3] / len(on_path)
                bound[at, head] += size[end] @ np.abs(model.W_U[:, 3]) / len(on_path)
        each = len(tokens) + model.d_model + model.d_head + model.n_heads + 6
        steps = (model.n_layers + 1) * each + (1 + model.n_heads) ** model.n_layers
        yield Trial("each head", np.asarray(found), plain, 2 * gamma(steps, UNIT) * bound)

    rests = ("graded_pass", "shapley_every_depth", "shapley_two_layers", "shapley_four_layers")
    return Method("ot.paths", rests, trials)
