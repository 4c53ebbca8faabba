"""Chapter 8: what is handed back or taken away: relevance, occlusion, Shapley values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import fsum

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
    """Layer-wise relevance propagation distributes the relevance of an output to its inputs, in
    proportion to what each contributed: R_i = Σ_j a_i w_ij R_j/z_j with z_j = Σ_k a_k w_kj. Nothing
    is lost: the inputs together receive all of R (n × 1). In the formula s holds the quotients
    R_j/z_j. W (m × n) holds the weights w_ij and a (m × 1) the inputs a_i.

    So scores of all inputs sum to the output that is explained. The only condition is that no z_j
    is zero where there is relevance.
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
    """If relevance is divided by z_j + b_j instead of z_j, where b_j is a bias or a stabilising ε,
    the inputs receive Σ_j b_j s_j less than the whole. This is the share of the bias. W holds the
    weights, a the inputs, R the relevance, and s the quotients.

    So with ε > 0 relevance that does not add up is expected. With ε = 0 and all biases counted it
    is a sign of a bug.
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
    """Relevance is conserved through any number of layers: the shares of one layer form a matrix
    whose columns sum to one, and products of such matrices have the same property. So the relevance
    at the output reaches the inputs completely, however deep the network. The shares of layer l are
    the matrix N[l].
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
    """`relevance` distributes a logit over tokens with patterns held constant. An attention-only
    model is then linear in its embedding, so the relevance of a token is the model's output for
    that token alone, with all others zero. It is compared with this pass, token by token and layer
    by layer; the scores sum to the logit.
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
        yield Trial("the logit", found.whole or 0.0, fsum(plain), few * sizes.sum())

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
    """Occlusion scores a token by how much the output changes when it is removed. For a linear
    function this is just the token's own contribution: here for a layer of heads with frozen
    patterns, read by G, f(X) − f(X without row i) is f of row i alone.

    So for linear functions occlusion, gradient × input and decomposition agree, and scores sum to
    f(X) − f(0).

    In a real model patterns change when a token is removed, and occlusion counts that too.
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
    """If an output needs two inputs together, occlusion counts it twice. For f = xᵀQy, removing x
    alone takes away all of f, and so does removing y alone, so the two scores sum to 2f. For single
    bits this is AND. x and y are two inputs and Q is any matrix.

    For OR it is the other way round: removing either one changes nothing, and both scores are zero.
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
    """`occlusion` runs the model with one token's embedding at zero and reports the change. It is
    compared with a model that has one more token, whose embedding is zero, run on the prompt with
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
    """With patterns held constant, the Shapley value of a head divides each path equally among the
    heads on it: a path through k heads gives each of them 1/k. The Shapley value is the mean effect
    of switching the head on, over all orders in which the heads may be switched on. It is also the
    integral over t from 0 to 1 of what the head adds when all others have strength t; there a path
    through k heads has the factor t^{k−1}, whose integral is 1/k.

    In four layers the integrand has degree three, and Simpson's rule is exact. N is the head's own
    term and M_1, M_3, M_4 the other layers. For any depth see `shapley_every_depth`.

    It holds for logits. A loss is not linear in the strengths.
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
    """For a model of any depth, averaging the contribution of a head over several strengths of the
    other heads weights each path by its length. The paths through the head with k − 1 other heads,
    P[k], are multiplied by t^{k−1} when the others have strength t; with weights w over strengths
    t_g a path counts c_k = Σ_g w_g t_g^{k−1}. In the formula S[k] stands for that power of the
    diagonal matrix of strengths, and u for the column of ones.

    The Shapley value is the mean over all strengths, with c_k = 1/k. The highest power is L − 1, so
    ⌈L/2⌉ Gauss–Legendre nodes give it exactly (`shapley_method`).
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
    """Running the other heads at half strength gives Shapley values in a model of two layers
    (`shapley_two_layers`), but not in deeper ones. A path through three heads then counts 1/4
    instead of 1/3. N is the head's own term and M_1, M_3 and M_4 are the other layers, as in
    `shapley_four_layers`.

    More strengths are needed, ⌈L/2⌉ of them for L layers (`shapley_every_depth`).
    """
    return NonIdentity(_slope(half), _shared_equally())


@theorem(
    title="paths(…).shapley: every path shared equally among its heads",
    chapter=8,
    source=SHAPLEY,
    covers=("B6",),
)
def shapley_method() -> Method:
    """`paths(…).shapley` computes the Shapley values of all heads from ⌈L/2⌉ strengths. It is
    compared with all paths listed one by one, each divided equally among its heads. It is tried on
    attention-only models; in place of the one without layers, a random model of four layers is
    used.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if not model.config.bare:
            return
        if model.n_layers == 0:
            kind = replace(model.config, n_layers=4, n_heads=2, d_model=8, d_head=3)
            model = random_model(kind)
        ensemble = paths(model, tokens)
        found = ensemble.shapley(-1, 3)
        places, end = model.forward(tokens), len(tokens) - 1
        plain, bound = np.zeros((2, model.n_layers, model.n_heads))
        orders, most = np.zeros((2, model.n_layers + 1))
        single, sizes = np.zeros((2, model.n_layers, model.n_heads))
        values, listed, doubts = [], [], []
        for choice in product(range(-1, model.n_heads), repeat=model.n_layers):
            on_path = [(at, head) for at, head in enumerate(choice) if head >= 0]
            row, size = places["embed"], np.abs(places["embed"])
            for at, head in on_path:
                pattern = places[f"pattern.{at}"][head]
                W_V, W_O = model.W_V[at, head], model.W_O[at, head]
                row = pattern @ row @ W_V @ W_O
                size = pattern @ size @ np.abs(W_V) @ np.abs(W_O)
            effect, much = row[end] @ model.W_U[:, 3], size[end] @ np.abs(model.W_U[:, 3])
            for at, head in on_path:
                plain[at, head] += effect / len(on_path)
                bound[at, head] += much / len(on_path)
            orders[len(on_path)] += effect
            most[len(on_path)] += much
            if len(on_path) == 1:
                single[on_path[0]], sizes[on_path[0]] = effect, much
            values.append(ensemble.path(on_path, -1, 3))
            listed.append(effect)
            doubts.append(much)
        each = len(tokens) + model.d_model + model.d_head + model.n_heads + 6
        steps = (model.n_layers + 1) * each + (1 + model.n_heads) ** model.n_layers
        few = 2 * gamma(steps, UNIT)
        yield Trial("each head", np.asarray(found), plain, few * bound)
        yield Trial("each path", np.array(values), np.array(listed), few * np.array(doubts))
        yield Trial("paths of one head", ensemble.heads(-1, 3), single, few * sizes)
        yield Trial("each order", ensemble.by_order(-1, 3), orders, few * most)
        sums, much = orders.cumsum(), few * most.sum() * np.ones(len(most))
        yield Trial("up to each order", ensemble.replay(-1, 3), sums, much)

    rests = ("graded_pass", "shapley_every_depth", "shapley_two_layers", "shapley_four_layers")
    other_tables = ("virtual_heads", "triples", "top", "scores", "likeliest", "summary", "up_to")
    return Method(
        "ot.paths",
        rests,
        trials,
        not_compared={f"{name}()": "a table of paths that the title does not name; "
                      "tests/numeric/paths compares it" for name in other_tables},
    )  # fmt: skip
