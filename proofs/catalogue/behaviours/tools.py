"""Chapter 11: what the tools of the field compute.

Each tool has an entry: what it computes, as a theorem or a definition. The tools that can be
installed are compared with otimes on the same weights and prompts in `tests/peers`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations, product
from math import factorial, fsum
from typing import Any

import numpy as np
import sympy
from sympy import (
    HadamardProduct,
    Identity,
    MatrixExpr,
    MatrixSymbol,
    OneMatrix,
    Trace,
    Transpose,
    ZeroMatrix,
    sqrt,
)

from otimes.algebra.language.derivative import gradient
from otimes.algebra.language.linear import Family, HeadSum, OneHot, kron, matadd, matmul, vec_rows
from otimes.algebra.language.nonlinear import Activation, RowSoftmax
from otimes.algebra.language.positions import OneHotLast, Shift
from otimes.numeric.attribution.question import ask
from otimes.numeric.attribution.shapley import shapley_values
from otimes.numeric.binding import Source
from otimes.numeric.drawn import drawn_attention
from otimes.numeric.model import Model
from otimes.numeric.rounding import gamma
from otimes.proofs.catalogue.interventions.patching import minus
from otimes.proofs.catalogue.sources import PRIMER, TRANSFORMER_LENS
from otimes.proofs.catalogue.symbols import (
    A,
    V,
    X,
    d,
    d_head,
    d_mlp,
    n,
    r,
    row,
    size,
)
from otimes.proofs.claims import Definition, Method, NonIdentity, Observation, Statement, Trial
from otimes.proofs.theorem import theorem

CAPTUM = "Kokhlikyan et al. 2020, “Captum: A unified and generic model interpretability library”"
SHAP = "Lundberg and Lee 2017, “A Unified Approach to Interpreting Model Predictions”"
INSEQ = "Sarti et al. 2023, “Inseq: An Interpretability Toolkit for Sequence Generation Models”"
LIT = "Tenney et al. 2020, “The Language Interpretability Tool”"
NNSIGHT = "Fiotto-Kaufman et al. 2025, “NNsight and NDIF”"
PYVENE = "Wu et al. 2024, “pyvene: A Library for Understanding and Improving PyTorch Models via "
PYVENE += "Interventions”; Geiger et al. 2024, “Finding Alignments Between Interpretable Causal "
PYVENE += "Variables and Distributed Neural Representations”"
REFT = "Wu et al. 2024, “ReFT: Representation Finetuning for Language Models”, §3.2"
SAE_LENS = "Bloom et al. 2024, SAELens"
MARKS = "Marks, Karvonen and Mueller 2024, dictionary_learning"
GAO = "Gao et al. 2024, “Scaling and evaluating sparse autoencoders”, §2.3"
BERTVIZ = "Vig 2019, “A Multiscale Visualization of Attention in the Transformer Model”"
EXBERT = "Hoover, Strobelt and Gehrmann 2020, “exBERT”"
CIRCUITSVIS = "Cooney and Nanda 2023, CircuitsVis"
LM_DEBUGGER = "Geva et al. 2022, “LM-Debugger: An Interactive Tool for Inspection and Intervention "
LM_DEBUGGER += "in Transformer-Based Language Models”, §2"
VIT = "Dosovitskiy et al. 2021, “An Image is Worth 16x16 Words”, §3.1; Joseph 2023, ViT Prisma"
IN_PRIMER = f"{PRIMER}, “Tools”"
UNIT = 2.0**-53

i, j, k, g, a, b = sympy.symbols("i j k g a b", integer=True)
G, M, N, S = size("G"), size("M"), size("N"), size("S")
w, x, y, mu = (MatrixSymbol(name, d, 1) for name in ("w", "x", "y", "mu"))


def linear(at: MatrixExpr) -> MatrixExpr:
    """Return the linear function wᵀ x."""
    return matmul(Transpose(w), at)


def squared(matrix: Any) -> Any:
    """Return the squared Frobenius norm."""
    return Trace(matmul(matrix, Transpose(matrix)))


# -- attribution -----------------------------------------------------------------------------------


@theorem(
    title="Captum: of a linear function, occlusion and gradients give the same attribution",
    chapter=11,
    source=f"{CAPTUM}; {IN_PRIMER}",
    covers=("S3-137",),
)
def captum_methods_agree_when_linear() -> Statement:
    """Captum computes gradient × input, ∇f(x) ⊙ (x - y) with a baseline y; integrated gradients,
    the same with the mean gradient on the line from y to x; and feature ablation (occlusion), f(x)
    less f where feature i has its baseline. For f = wᵀx all three are w_i (x_i - y_i): gradients on
    the left have nothing to average over, and on the right feature i is replaced.

    So a difference between them on a model is a measure of how far it is from linear on that input,
    and no bug. Captum's integrated gradients are `integrated_gradients_are_complete`, of nodes and
    weights in float32.
    """
    unit = OneHot(i, d)
    replaced = matadd(x, matmul(unit, Transpose(unit), minus(y, x)))
    return Statement(
        matmul(Transpose(unit), HadamardProduct(w, minus(x, y))),
        minus(linear(x), linear(replaced)),
        on_models=False,
    )


@theorem(
    title="Captum: integrated gradients of a quadratic function need one node",
    chapter=11,
    source=f"{CAPTUM}; Davis and Rabinowitz 1984, Methods of Numerical Integration, §2.1",
    covers=("S3-137",),
)
def integrated_gradients_of_quadratic() -> Statement:
    """F = xᵀQx with Q symmetric has the gradient 2Qx, which is linear on the line from y to x: its
    mean is its value in the middle, Q(x + y). Multiplied by x - y it sums to f(x) - f(y). A rule
    with any nodes that is exact for linear functions (Gauss, midpoints, and not right ends) gives
    the same attributions.
    """
    Q = MatrixSymbol("Q", d, d)
    middle = matmul(Q, matadd(x, y))
    return Statement(
        matmul(Transpose(minus(x, y)), middle),
        minus(matmul(Transpose(x), Q, x), matmul(Transpose(y), Q, y)),
        given=((Transpose(Q), Q),),
        on_models=False,
    )


def coalition(present: MatrixExpr) -> MatrixExpr:
    """Return x where a feature is present and the mean of the data elsewhere."""
    absent = minus(OneMatrix(d, 1), present)
    return matadd(HadamardProduct(present, x), HadamardProduct(absent, mu))


@theorem(
    title="SHAP: the Shapley values of a linear function",
    chapter=11,
    source=f"{SHAP}, corollary 1; Štrumbelj and Kononenko 2014",
    covers=("S3-139",),
)
def shapley_values_of_linear() -> Statement:
    """A coalition z has some features at their values x and the others at the mean μ of the data.
    Let z_1, …, z_G be coalitions without feature i, and let feature i join each: the mean of what f
    = wᵀx gains is w_i (x_i - μ_i), whatever the coalitions are. The Shapley value is that mean over
    the coalitions that stand before i in all orders of the features.
    """
    z = Family("z", (G,), d, 1)[g]
    gained = minus(linear(coalition(matadd(z, OneHot(i, d)))), linear(coalition(z)))
    return Statement(
        matmul(1 / G, HeadSum(gained, (g, G))),
        matmul(Transpose(OneHot(i, d)), HadamardProduct(w, minus(x, mu))),
        on_models=False,
    )


@theorem(
    title="SHAP: in every order the gains add up",
    chapter=11,
    source=f"{SHAP}, property 1 (local accuracy); Shapley 1953",
    covers=("S3-139",),
)
def gains_of_an_order_add_up() -> Statement:
    """Let M features join one after the other, and let v_k be what f has gained over f with none
    when k of them are there. What each adds is v_k - v_{k-1}, in rows (I - Z) v with the shift Z by
    one. These sum to the last v, f with all features less f with none, in every order and for every
    f. The Shapley values are means of such gains over orders: they are complete without any
    condition on f.
    """
    v = MatrixSymbol("v", M, 1)
    gains = matmul(minus(Identity(M), Shift(M)), v)
    return Statement(
        matmul(OneMatrix(1, M), gains), matmul(Transpose(OneHotLast(M)), v), on_models=False
    )


@theorem(
    title="shapley_values: by all coalitions, and by all orders",
    chapter=11,
    source=f"{SHAP}, theorem 2; Shapley 1953",
    covers=("S3-139",),
)
def shapley_values_method() -> Method:
    """Σ_S |S|! (M - |S| - 1)!/M! (f(S ∪ i) - f(S)) over the coalitions S without token i; beside
    it, the mean of the gains over all M! orders of the tokens, one after the other. KernelSHAP
    fits a linear function of the coalitions instead, with weights (M - 1)/((M over |S|) |S| (M -
    |S|)): the solution is the same values (`tests/numeric/attribution/test_shapley.py` has it in
    exact numbers), if all coalitions are taken. It draws some of them where M is large.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        few = list(tokens)[:4]
        found = shapley_values(model, few, 3)
        question = ask(model, few, 3, None, -1)
        every = question.embed()
        values = {
            subset: question.value(every * np.array(subset)[:, None])
            for subset in np.ndindex(2, 2, 2, 2)
        }
        gains: list[list[float]] = [[] for _ in few]
        for order in permutations(range(len(few))):
            there = [0] * len(few)
            for token in order:
                before = values[tuple(there)]
                there[token] = 1
                gains[token].append(values[tuple(there)] - before)
        plain = np.array([fsum(each) / factorial(len(few)) for each in gains])
        # The sums of at most 16 products, whose factors are weights of at most 1, and the products
        # with W_U, whose terms may be added in another order.
        last = "ln_final" if model.config.final_norm else "final"
        rows = [
            model.forward(few, [last])[last][-1],
            *(model.part("W_E", few) * model.config.embed_scale),
        ]
        sizes = max(float(np.abs(each) @ np.abs(question.goal.row)) for each in rows)
        bound = gamma(64 + 4 * model.d_model, UNIT) * 16 * (sizes + max(map(abs, values.values())))
        yield Trial("each token", found.values, plain, bound)
        yield Trial("their sum", float(found.values.sum()), found.whole or 0.0, bound * len(few))

    rests = ("shapley_values_of_linear", "gains_of_an_order_add_up")
    return Method("ot.shapley_values", rests, trials)


stream = MatrixSymbol("x", 1, d)
one_row = RowSoftmax(matmul(stream, row.W_U))
difference = minus(OneHot(a, V), OneHot(b, V))


@theorem(
    title="Inseq: the contrastive gradient of log probabilities is that of the logits",
    chapter=11,
    convention="row",
    source=f"{INSEQ}; Yin and Neubig 2022, “Interpreting Language Models with Contrastive "
    "Explanations”, §3",
    covers=("S3-138",),
)
def contrast_of_log_probabilities() -> Statement:
    """Log p_a - log p_b has the same gradient as the logit of a less the logit of b: the normaliser
    is common to both. So a contrastive attribution can be made of logits, as here with `foil`, or
    of log probabilities, and it is the same. J is the derivative of all logits in what is
    attributed to, and I - 1 p that of log softmax, with p the probabilities.
    """
    p, J = MatrixSymbol("p", 1, V), MatrixSymbol("J", V, d)
    lead = Transpose(difference)
    of_log = matmul(minus(Identity(V), matmul(OneMatrix(V, 1), p)), J)
    return Statement(matmul(lead, of_log), matmul(lead, J), on_models=False)


@theorem(
    title="Inseq: a difference of probabilities has another gradient",
    chapter=11,
    convention="row",
    source=f"{INSEQ}, contrast_prob_diff",
    covers=("S3-138",),
)
def contrast_of_probabilities_is_another() -> NonIdentity:
    """p_a - p_b, which Inseq offers as well, is another question: its gradient is weighted by both
    probabilities and sees all other tokens (`gradient_of_probability`). Where both are nearly zero
    it vanishes, however sure the model is between the two.
    """
    return NonIdentity(
        gradient(Trace(matmul(one_row, difference)), stream),
        gradient(Trace(matmul(stream, row.W_U, difference)), stream),
    )


@theorem(
    title="Inseq: the gradient of a probability",
    chapter=11,
    convention="row",
    source=INSEQ,
    covers=("S3-138",),
)
def gradient_of_probability() -> Statement:
    """∇p_a = p_a (e_a - p) W_Uᵀ: the token's own direction less the mean direction of all tokens
    under p, times p_a. Inseq attributes the probability of the token that was generated by default,
    Captum whatever function it is given, and otimes the logit; name it in a report.
    """
    p, token = MatrixSymbol("p", 1, V), OneHot(a, V)
    softmax_slope = minus(sympy.DiagMatrix(Transpose(p)), matmul(Transpose(p), p))
    return Statement(
        matmul(Transpose(token), softmax_slope, Transpose(row.W_U)),
        matmul(p, token, minus(Transpose(token), p), Transpose(row.W_U)),
        on_models=False,
    )


@theorem(
    title="LIT: a server that draws attributions",
    chapter=11,
    source=f"{LIT}; {IN_PRIMER}",
    covers=("S3-140",),
)
def language_interpretability_tool() -> Observation:
    """LIT shows a model's predictions, attention and attributions in a browser; the numbers come
    from the gradients that the model's wrapper gives it. Its “Grad L2 Norm” would be held to the
    length of each token's gradient divided by the sum of these lengths (`gradient_norm`), its “Grad
    · Input” to gradient × input divided by the sum of absolute values
    (`gradient_times_input_score`).
    """
    return Observation(
        criterion="the scores of LIT's gradient maps are those of `ot.gradient_norms` and "
        "`ot.gradient_times_input`, divided by their sums of absolute values",
        cannot="LIT is a web server with a page in the browser, for a person to look at; its "
        "package (lit-nlp 1.3.1) needs NumPy below 2 and shap below 0.46",
    )


# -- weights and hooks -----------------------------------------------------------------------------


@theorem(
    title="TransformerLens: folding the norm and the value bias, at once",
    chapter=11,
    convention="row",
    source=f"{TRANSFORMER_LENS}: fold_ln, fold_value_biases",
    covers=("S3-141",),
)
def processed_head_writes_the_same() -> Statement:
    """What a head with a LayerNorm before it writes, and the same with processed weights: the gain
    g is multiplied into W_V, the norm's bias β goes through W_V into b_V, and b_V through W_O into
    the output bias, since each row of the pattern sums to one. What is left of the norm has neither
    gain nor bias. Centring is `centring_folds_into_writers`; the unembedding,
    `centred_unembedding_keeps_probabilities`.
    """
    gain, beta = MatrixSymbol("ln1_gain", d, 1), MatrixSymbol("ln1_bias", 1, d)
    b_V, ones = MatrixSymbol("b_V", 1, d_head), OneMatrix(n, 1)
    plain = MatrixSymbol("N", n, d)  # what is left of the norm
    diagonal = sympy.DiagMatrix(gain)
    read = matadd(matmul(plain, diagonal), matmul(ones, beta))
    values = matadd(matmul(read, row.W_V), matmul(ones, b_V))
    bias = matmul(matadd(matmul(beta, row.W_V), b_V), row.W_O)
    return Statement(
        matmul(A, values, row.W_O),
        matadd(matmul(A, plain, matmul(diagonal, row.W_V), row.W_O), matmul(ones, bias)),
        given=((matmul(A, ones), ones),),
        on_models=False,
    )


@theorem(
    title="NNsight: interventions at different positions commute",
    chapter=11,
    convention="row",
    source=f"{NNSIGHT}; {IN_PRIMER}",
    covers=("S3-142",),
)
def disjoint_interventions_commute() -> Statement:
    """NNsight writes a program of interventions down and runs it inside the pass, here or on a
    server. An intervention is a replacement at a hook point, as in `ot.intervene`: rows of Y where
    P selects, rows of X elsewhere. Two at one hook point that select different positions (P Q = 0)
    give the same in either order; where they overlap, the later one wins
    (`patching_twice_is_patching_once`). At two hook points the pass decides which comes first, not
    the program.
    """
    P, Q = MatrixSymbol("P", n, n), MatrixSymbol("Q", n, n)
    Y, Z = MatrixSymbol("Y", n, d), MatrixSymbol("Z", n, d)

    def put(where: MatrixExpr, base: MatrixExpr, new: MatrixExpr) -> MatrixExpr:
        return matadd(matmul(where, new), matmul(minus(Identity(n), where), base))

    nothing = ZeroMatrix(n, n)
    return Statement(
        put(P, put(Q, X, Z), Y),
        put(Q, put(P, X, Y), Z),
        given=((matmul(P, Q), nothing), (matmul(Q, P), nothing)),
        on_models=False,
    )


R = MatrixSymbol("R", r, d)  # r orthonormal rows
ORTHONORMAL = ((matmul(R, Transpose(R)), Identity(r)),)
unseen = MatrixSymbol("u", d, 1)  # a direction that R does not see
OUTSIDE = ((matmul(R, unseen), ZeroMatrix(r, 1)),)


def interchanged() -> MatrixExpr:
    """Return the base X with the coordinates of the source Y in the row space of R."""
    source = MatrixSymbol("Y", n, d)
    return matadd(X, matmul(minus(source, X), Transpose(R), R))


@theorem(
    title="pyvene: an interchange in a subspace has the source's coordinates in it",
    chapter=11,
    convention="row",
    source=PYVENE,
    covers=("S3-143",),
)
def interchange_has_the_coordinates_of_the_source() -> Statement:
    """Rotate, exchange r coordinates with those of another prompt, rotate back: X + (Y - X)RᵀR,
    where the rows of R are orthonormal. The coordinates in the row space of R are then those of the
    source, exactly. With R = I it is activation patching; distributed alignment search trains R.
    """
    source = MatrixSymbol("Y", n, d)
    return Statement(
        matmul(interchanged(), Transpose(R)),
        matmul(source, Transpose(R)),
        given=ORTHONORMAL,
        on_models=False,
    )


@theorem(
    title="pyvene: an interchange in a subspace leaves the rest",
    chapter=11,
    convention="row",
    source=PYVENE,
    covers=("S3-143",),
)
def interchange_leaves_the_rest() -> Statement:
    """Any direction u that is orthogonal to the rows of R reads from the edited activation what it
    read before, whether these rows are orthonormal or not. They must be for
    `interchange_has_the_coordinates_of_the_source`: rounding in a long training is enough to break
    that.
    """
    return Statement(
        matmul(interchanged(), unseen), matmul(X, unseen), given=OUTSIDE, on_models=False
    )


W, bias = MatrixSymbol("W", r, d), MatrixSymbol("b", 1, r)
wanted = matadd(matmul(stream, Transpose(W)), bias)


def low_rank_edit() -> MatrixExpr:
    """Return LoReFT of one row: x + (x Wᵀ + b - x Rᵀ) R."""
    return matadd(stream, matmul(minus(wanted, matmul(stream, Transpose(R))), R))


@theorem(
    title="pyreft: LoReFT is the identity outside the row space of R",
    chapter=11,
    convention="row",
    source=f"{REFT}, equation 2",
    covers=("S3-152",),
)
def reft_leaves_the_rest() -> Statement:
    """H + Rᵀ(W h + b - R h), in rows: the edit is a combination of the r rows of R, so nothing
    changes outside their span. r is usually below ten, so that an edit of a stream of thousands of
    dimensions has a few thousand parameters.
    """
    return Statement(
        matmul(low_rank_edit(), unseen), matmul(stream, unseen), given=OUTSIDE, on_models=False
    )


@theorem(
    title="pyreft: in the row space of R, LoReFT writes W h + b",
    chapter=11,
    convention="row",
    source=f"{REFT}, equation 2",
    covers=("S3-152",),
)
def reft_writes_what_is_learned() -> Statement:
    """R h is replaced by W h + b, whatever it was: an interchange (`pyvene`) whose source is a
    learned affine function of the activation itself. With W = R and b = 0 it changes nothing.
    """
    return Statement(
        matmul(low_rank_edit(), Transpose(R)), wanted, given=ORTHONORMAL, on_models=False
    )


# -- features --------------------------------------------------------------------------------------

Z = MatrixSymbol("Z", N, d)
W_enc, b_enc = MatrixSymbol("W_enc", d, S), MatrixSymbol("b_enc", 1, S)
D, b_dec = MatrixSymbol("D", S, d), MatrixSymbol("b_dec", 1, d)
F = MatrixSymbol("F", N, S)
alpha = sympy.Symbol("alpha", nonnegative=True)


def every_row(of: Any) -> Any:
    """Return a bias in each of N rows."""
    return matmul(OneMatrix(N, 1), of)


@theorem(
    title="SAELens: subtracting the decoder's bias first is another bias of the encoder",
    chapter=11,
    convention="row",
    source=f"{SAE_LENS}, apply_b_dec_to_input",
    covers=("S3-144",),
)
def decoder_bias_folds_into_encoder() -> Statement:
    """ReLU((z - b_dec) W_enc + b_enc) = ReLU(z W_enc + (b_enc - b_dec W_enc)): whether an
    autoencoder subtracts b_dec is a matter of parametrisation, and the features are the same. The
    settings and the weights must be of one kind, or every feature is off by a constant.
    """
    folded = minus(b_enc, matmul(b_dec, W_enc))
    return Statement(
        Activation("relu", matadd(matmul(minus(stream, b_dec), W_enc), b_enc)),
        Activation("relu", matadd(matmul(stream, W_enc), folded)),
        on_models=False,
    )


@theorem(
    title="dictionary_learning: the loss that its trainers print",
    chapter=11,
    convention="row",
    source=f"{MARKS}, StandardTrainer",
    covers=("S3-145",),
)
def mean_loss_of_dictionary() -> Definition:
    """The mean over N activations of the squared error, summed over dimensions, plus α times the
    mean L1 norm of the features: `sparse_autoencoder_loss` divided by N. A mean over dimensions as
    well, which other libraries take, is another α.
    """

    def plain(Z: Any, F: Any, D: Any, b_dec: Any, alpha: Any, **sizes: Any) -> Any:
        total = 0
        for t in range(len(Z)):
            for at in range(len(b_dec[0])):
                written = sum(F[t][unit] * D[unit][at] for unit in range(len(D)))
                total += (Z[t][at] - written - b_dec[0][at]) ** 2
            total += alpha * sum(F[t][unit] for unit in range(len(D)))
        return total / sympy.Integer(len(Z))

    left = matadd(Z, matmul(-1, F, D), matmul(-1, every_row(b_dec)))
    l1 = Trace(matmul(OneMatrix(1, N), F, OneMatrix(S, 1)))
    return Definition(
        "mean loss",
        (squared(left) + alpha * l1) / N,
        plain,
        on_models=False,
        obeys=("sparse_autoencoder_loss", "decoder_bias_folds_into_encoder"),
    )


@theorem(
    title="TopK: with an orthonormal decoder the error is what is left out",
    chapter=11,
    convention="row",
    source=f"{GAO}; Belrose 2024, sparsify",
    covers=("S3-146",),
)
def top_k_error_is_what_is_left_out() -> Statement:
    """Keep k features whose directions, the rows of E, are orthonormal, with the coefficients x Eᵀ:
    the squared error is ‖x‖² less the squares of these coefficients. So among the rows of an
    orthonormal decoder the k with the largest coefficients in absolute value are best, which is the
    reason for a TopK encoder. (It keeps the largest, whatever their absolute values, and a decoder
    is not orthonormal: there are more features than dimensions.)

    The figure that the trainer prints, the fraction of variance unexplained, is this error over the
    sum of ‖x - x̄‖² over activations x with the mean x̄.
    """
    chosen = MatrixSymbol("E", r, d)
    kept = matmul(stream, Transpose(chosen))
    return Statement(
        squared(minus(stream, matmul(kept, chosen))),
        squared(stream) - squared(kept),
        given=((matmul(chosen, Transpose(chosen)), Identity(r)),),
        on_models=False,
    )


@theorem(
    title="Neuronpedia: pages about features",
    chapter=11,
    source="Lin 2023, Neuronpedia",
    covers=("S3-150",),
)
def neuronpedia() -> Observation:
    """A page of Neuronpedia shows for a feature the prompts where it is most active, how often it
    is active, and the tokens that its direction promotes and suppresses. These would be held to
    `ot.top_activations`, `ot.feature_density` (`densities_sum_to_l0`), and `ot.feature_logits`, d_k
    W_U (`reconstruction_is_sum_over_features`).
    """
    return Observation(
        criterion="density and logits on a page are those of the published weights",
        cannot="Neuronpedia is a web site, and the autoencoders and models that its pages are "
        "about must be downloaded from a hub",
    )


# -- pictures --------------------------------------------------------------------------------------


@theorem(
    title="BertViz: the products that the neuron view draws sum to the score",
    chapter=11,
    convention="row",
    source=f"{BERTVIZ}, §3.3",
    covers=("S2-30", "S3-147"),
)
def neuron_view_sums_to_score() -> Statement:
    """The head view and the model view of BertViz draw the pattern A. The neuron view takes one
    query i and one key j apart: the bars are the entries of q_i ⊙ k_j, and their sum, divided by
    √d_head, is the score before the softmax. What the bars say depends on the basis of the head,
    which is arbitrary: an invertible map on queries and its inverse on keys changes every bar and
    no score.
    """
    Q, keys = MatrixSymbol("q", n, d_head), MatrixSymbol("k", n, d_head)
    query, key = matmul(Transpose(OneHot(i, n)), Q), matmul(Transpose(OneHot(j, n)), keys)
    scores = matmul(1 / sqrt(d_head), Q, Transpose(keys))
    return Statement(
        matmul(1 / sqrt(d_head), HadamardProduct(query, key), OneMatrix(d_head, 1)),
        matmul(Transpose(OneHot(i, n)), scores, OneHot(j, n)),
        on_models=False,
    )


@theorem(
    title="exBERT: attention that is summed up over heads is again attention",
    chapter=11,
    source=EXBERT,
    covers=("S3-147",),
)
def mean_of_heads_is_a_pattern() -> Statement:
    """ExBERT draws the mean of the patterns of the heads that are chosen. Its rows sum to one, as
    those of each head do. It is the pattern of no head, and does not tell what is moved: heads have
    different W_OV.
    """
    other, ones = MatrixSymbol("A_2", n, n), OneMatrix(n, 1)
    share = sympy.Symbol("c", real=True)
    mixed = matadd(matmul(share, A), matmul(1 - share, other))
    given = ((matmul(A, ones), ones), (matmul(other, ones), ones))
    return Statement(matmul(mixed, ones), ones, given=given, on_models=False)


@theorem(
    title="CircuitsVis: patterns weighted by what the values write",
    chapter=11,
    convention="row",
    source=f"{CIRCUITSVIS}; Kobayashi et al. 2020, “Attention is Not Only a Weight”",
    covers=("S3-149",),
)
def value_weighted_pattern_squared() -> Statement:
    """In place of A_ij, the value-weighted pattern draws the length of what head h really moves
    from j to i, A_ij ‖x_j W_V W_O‖: its square is that of the vector A_ij x_j W_V W_O. A weight of
    0.9 on a position whose value is nearly zero (a sink) then is as pale as what it writes. Rows do
    not sum to one any more.
    """
    weight = matmul(Transpose(OneHot(i, n)), A, OneHot(j, n))
    value = matmul(Transpose(OneHot(j, n)), X, row.W_V, row.W_O)
    return Statement(
        squared(matmul(weight, value)), Trace(weight) ** 2 * squared(value), on_models=False
    )


@theorem(
    title="drawn_attention: the arrays that BertViz and CircuitsVis draw",
    chapter=11,
    source=f"{BERTVIZ}; {CIRCUITSVIS}",
    covers=("S2-30", "S3-147", "S3-149"),
)
def drawn_attention_method() -> Method:
    """The pattern of each head, and the value-weighted one, entry by entry: softmax of the recorded
    scores by loops, and the length of each row that a head's values write.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if not model.n_layers or model.config.sinks:
            return
        places = model.forward(tokens)
        plain = drawn_attention(model, tokens)
        weighted = drawn_attention(model, tokens, weighted=True)
        for layer, head in product(range(model.n_layers), range(model.n_heads)):
            scores, values = places[f"scores.{layer}"][head], places[f"v.{layer}"][head]
            drawn, lengths = np.zeros((2, *scores.shape))
            for query in range(len(tokens)):
                largest = max(scores[query, : query + 1])
                raised = [np.exp(each - largest) for each in scores[query, : query + 1]]
                drawn[query, : query + 1] = [each / fsum(raised) for each in raised]
            for key in range(len(tokens)):
                terms = values[key][:, None] * model.W_O[layer, head]
                written = [fsum(column) for column in terms.T]
                lengths[:, key] = fsum(each * each for each in written) ** 0.5
            # exp is within two units, and its argument is off by the difference's rounding.
            spread = 2 + np.abs(scores).max() * 4
            bound = gamma(len(tokens) + 8, UNIT) * spread * drawn
            found = plain.attention[layer][0, head]
            yield Trial(f"pattern of head {layer}.{head}", found, drawn, bound)
            sizes = np.linalg.norm(np.abs(values) @ np.abs(model.W_O[layer, head]), axis=1)
            more = gamma(model.d_head + model.d_model + 8, UNIT) * sizes * drawn
            yield Trial(
                f"weighted pattern of head {layer}.{head}",
                weighted.attention[layer][0, head],
                drawn * lengths,
                bound * lengths + more,
            )

    rests = ("neuron_view_sums_to_score", "value_weighted_pattern_squared")
    return Method("ot.drawn_attention", rests, trials)


@theorem(
    title="LM-Debugger: setting the coefficient of a value vector",
    chapter=11,
    convention="row",
    source=LM_DEBUGGER,
    covers=("S3-148",),
)
def coefficient_of_value_vector() -> Statement:
    """LM-Debugger shows each row v_i of W_out through the logit lens, v_i W_U, and lets the user
    set its coefficient, the neuron's activation m_i, to some c. On the direct path the logits of
    every position move by (c - m_i) v_i W_U, a multiple of what the tool showed. Later layers react
    as well, and a final norm rescales, so that the model's answer moves by more than that.
    """
    neurons, W_out = MatrixSymbol("mlp_post", n, d_mlp), MatrixSymbol("W_out", d_mlp, d)
    c, unit = MatrixSymbol("c", n, 1), OneHot(i, d_mlp)
    moved = matmul(minus(c, matmul(neurons, unit)), Transpose(unit))
    return Statement(
        minus(
            matmul(matadd(neurons, moved), W_out, row.W_U),
            matmul(neurons, W_out, row.W_U),
        ),
        matmul(
            minus(c, matmul(neurons, unit)),
            matmul(Transpose(unit), W_out, row.W_U),
        ),
        bind=({"c": Source("mlp_pre", cols=1), "W_U": Source("W_U", cols=30)},),
    )


@theorem(
    title="ViT Prisma: a patch embedding is one linear map, the same for each patch",
    chapter=11,
    convention="row",
    source=VIT,
    covers=("S3-153",),
)
def patch_embedding_is_one_linear_map() -> Statement:
    """A vision transformer cuts an image into n patches, writes the pixels of each in a row of X,
    and multiplies by W_E: on all pixels at once that is I_n ⊗ W_E, a convolution whose stride is
    its width. From there on it is the same forward pass as that of a language model without a mask
    (`ot.encode`, which takes such rows), and every theorem about attention without a mask applies.
    There is no vocabulary on the input side: what names W_E W_QK W_Eᵀ is about pixels.
    """
    embed = MatrixSymbol("W", d_mlp, d)  # pixels of a patch × d
    patches = MatrixSymbol("X", n, d_mlp)
    return Statement(
        vec_rows(matmul(patches, embed)),
        matmul(kron(Identity(n), Transpose(embed)), vec_rows(patches)),
        on_models=False,
    )


@theorem(
    title="The attention spreadsheet of the notes",
    chapter=11,
    source=PRIMER,
    covers=("S1-30",),
)
def attention_spreadsheet() -> Observation:
    """A spreadsheet that works one attention head out in cells, to which a note of the literature
    links. Its cells would be held to scores q kᵀ/√d_head, their softmax row by row, and the
    products of pattern, values and W_O.
    """
    return Observation(
        criterion="every cell is the value that the formula of its column gives",
        cannot="the note links to the file and does not contain it",
    )


@theorem(
    title="Oxen: versions of data",
    chapter=11,
    source="Oxen.ai, the host of a blog that the notes review",
    covers=("S2-33",),
)
def data_versions() -> Observation:
    """Oxen keeps versions of data sets. It makes no mathematical claim: there is nothing to prove
    and nothing to compare with.
    """
    return Observation(
        criterion="none: it states no formula",
        cannot="it is a store for files, outside the mathematics of transformers",
    )
