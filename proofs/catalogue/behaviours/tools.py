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
from otimes.numeric.attention_views import drawn_attention
from otimes.numeric.attribution.question import ask
from otimes.numeric.attribution.shapley import shapley_values
from otimes.numeric.binding import Source
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
    """For a linear function f = wᵀx, three attribution methods of the library Captum agree:
    gradient × input with a baseline y, integrated gradients, and feature ablation all give w_i (x_i
    − y_i). The right-hand side of the formula replaces feature i by its baseline.

    So a difference between them measures how far a model is from linear on an input, and is no bug.
    Captum computes with nodes and weights in float32.
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
    """For a quadratic function f = xᵀQx (Q symmetric) integrated gradients need one evaluation of
    the gradient, at the midpoint between baseline y and input x. The gradient 2Qx is linear along
    the line, so its mean is its value in the middle, Q(x + y), and the scores sum to f(x) − f(y).

    Every rule that is exact for linear functions gives the same scores. A sum over right ends does
    not.
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
    """For a linear function f = wᵀx the Shapley value of feature i is w_i (x_i − μ_i), where μ is
    the mean of the data, used for absent features. The gain when feature i joins is the same for
    every coalition z[g] without i, so the mean over coalitions is this number.

    It is the reference against which SHAP is easiest to understand. For nonlinear functions the
    gain depends on the coalition.
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
    """If features are added one after the other, the gains add up to the total gain, in every order
    and for every function. v (M × 1) holds what has been gained after each feature, and the gains
    are the differences (I − Z)v with the shift Z.

    Shapley values are means of these gains over all orders. So they always sum to f with all
    features minus f with none.
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
    """`shapley_values` divides a change of the output among the tokens of a prompt: the Shapley
    value of token i is the mean of what it adds, over all orders in which tokens may be added. It
    is computed exactly from all coalitions S (sets of tokens that are present) without i, with
    weights |S|! (M − |S| − 1)!/M! for M tokens, and compared with the mean over all M! orders.

    KernelSHAP, the usual approximation, fits a linear function of the coalitions with certain
    weights; with all coalitions its solution is the same values
    (`tests/numeric/attribution/test_shapley.py` has this in exact numbers). For many tokens it
    draws some of them.
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
    """The gradient of log p_a − log p_b is the gradient of the difference of the two logits, since
    the normaliser of the softmax is common to both. J is the derivative of all logits, and I − 1p
    turns it into that of the log-probabilities, where p are the probabilities.

    So the contrastive attributions of the library Inseq can be made from logits or
    log-probabilities alike. For probabilities themselves they differ
    (`contrast_of_probabilities_is_another`).
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
    """The gradient of p_a − p_b differs from that of the difference of logits: it is weighted by
    both probabilities and depends on all other tokens (`gradient_of_probability`). In the formula x
    is the final stream at one position, and derivatives are taken in it.

    Inseq offers both. If both probabilities are near zero, the gradient of p_a − p_b vanishes,
    however clearly the model prefers one to the other.
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
    """The gradient of the probability of a token is p_a times the difference between the token's
    unembedding column and the mean column under the predicted distribution: ∇p_a = p_a (e_a − p)
    W_Uᵀ.

    Inseq attributes the probability of the generated token by default, Captum whatever function it
    is given, and otimes the logit. Reports should say which.
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
    from gradients that the model's wrapper provides. It is a web server for a person to look at and
    is not run here.

    Its “Grad L2 Norm” would be compared with the length of each token's gradient divided by the sum
    of all lengths (`gradient_norm`), its “Grad · Input” with gradient × input divided by the sum of
    absolute values (`gradient_times_input_score`).
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
    """TransformerLens folds the norm's gain and bias and the value bias of a head in one step, and
    the head writes the same: the gain is multiplied into W_V, the norm's bias goes through W_V into
    the value bias, and that through W_O into the output bias. This uses A1 = 1, rows of the pattern
    that sum to one. N are the rows after the norm, before its gain and bias.

    So weights loaded by TransformerLens differ from those in the file, but the model computes the
    same. Centring is `centring_folds_into_writers`, and the unembedding
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
    """Two interventions at different positions can be made in either order. An intervention
    replaces rows of an activation, an array that the model computes at some point: P and Q select
    the positions (PQ = QP = 0), Y and Z hold the new rows, X the old ones.

    Libraries such as NNsight run programs of interventions inside a forward pass. Where two
    overlap, the later one wins (`patching_twice_is_patching_once`). At two different activations
    the forward pass decides which comes first, not the program.
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
    """An interchange intervention in a subspace replaces some coordinates of an activation by those
    of another prompt: X + (Y − X)RᵀR, where the rows of R (r × d) are orthonormal. Afterwards the
    coordinates in that subspace, X Rᵀ, are exactly those of the source Y.

    With R = I it is activation patching. Distributed alignment search, in the library pyvene,
    trains R.
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
    """An interchange in a subspace leaves all other directions unchanged: any u with R u = 0 reads
    from X + (Y − X)RᵀR what it read before.

    This does not need orthonormal rows of R. The source's coordinates do
    (`interchange_has_the_coordinates_of_the_source`), and rounding in a long training can be enough
    to lose that.
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
    """LoReFT, a way to fine-tune by editing activations, adds to a row x a combination of r rows of
    R: x + ((xWᵀ + b) − xRᵀ)R. So it changes nothing in directions orthogonal to these rows. W (r ×
    d) and b are learned, and u is any direction with R u = 0.

    r is usually below ten, so an edit of a stream with thousands of dimensions has few parameters.
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
    """LoReFT (`reft_leaves_the_rest`) replaces the coordinates of an activation in the subspace of
    R by learned ones: after the edit they are xWᵀ + b, whatever they were before. R has orthonormal
    rows. The activation is the row x.

    It is an interchange whose source is an affine function of the activation itself. With W = R and
    b = 0 it does nothing.
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
    """Whether an autoencoder subtracts the decoder's bias from its input or not is a matter of
    parametrisation: ReLU((x − b_dec)W_enc + b_enc) is the same as an encoder with the bias b_enc −
    b_dec W_enc.

    Weights and settings must belong together when they are loaded, as from SAELens. Otherwise every
    feature is off by a constant.
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
    """The loss printed by the trainers of the library `dictionary_learning` is the mean over N
    activations of the squared error plus α times the mean L1 norm of the features, which is
    `sparse_autoencoder_loss` divided by N. F are the features, D and b_dec the decoder, Z the
    activations.

    Other libraries also take a mean over dimensions. Then the same α means another penalty.
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
    """If the decoder's directions are orthonormal, keeping some of them (rows of E) leaves the
    squared error ‖x‖² minus the squares of the coefficients x Eᵀ that are kept. So the k largest
    coefficients in absolute value are the best choice, which motivates TopK autoencoders.

    TopK itself keeps the largest values, not absolute values, and a real decoder is not
    orthonormal, since it has more features than dimensions. The fraction of variance unexplained,
    which trainers print, is this error over the sum of ‖x − x̄‖², x̄ being the mean of the
    activations.
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
    """Neuronpedia is a website with a page for each feature: prompts where it is most active, how
    often it is active, and the tokens that its direction promotes and suppresses. The site is not
    queried here.

    The same figures are given by `ot.top_activations`, `ot.feature_density` (`densities_sum_to_l0`)
    and `ot.feature_logits` (`reconstruction_is_sum_over_features`).
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
    """BertViz's neuron view draws the products of the entries of a query and a key; their sum,
    divided by √d_head, is the attention score before the softmax. The head view and the model view
    draw the pattern itself. In the formula q and k (n × d_head) hold the queries and keys.

    The single bars depend on the basis inside the head, which is arbitrary (`qk_gauge`): an
    invertible map on queries with its inverse transpose on keys changes every bar and no score.
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
    """The mean of several heads' attention patterns, which exBERT draws, again has rows that sum to
    one. So it looks like the pattern of a head. In the formula two patterns A and A_2 are averaged
    with weights c and 1 − c.

    But it is the pattern of no head, and says little about what is moved, since the heads have
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
    """A value-weighted pattern, as drawn by CircuitsVis, shows A_ij ‖x_j W_V W_O‖ instead of A_ij:
    the length of what the head moves from j to i. The formula is its square.

    So attention to a sink, whose value is nearly zero, appears as small as what it writes. Rows no
    longer sum to one.
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
    """`drawn_attention` returns the arrays that BertViz and CircuitsVis draw: the pattern of each
    head, and the pattern weighted by the length of what the values write. They are compared entry
    by entry with loops.
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
    """LM-Debugger shows each row v_i of W_out by its logits v_i W_U and lets the user set the
    neuron's activation from m_i to some c. On the direct path all logits at a position then change
    by (c − m_i) v_i W_U, a multiple of what was shown. In the formula `mlp_post` holds the
    activations of all positions (n × d_mlp), and column i is set to c (n × 1).

    Later layers react as well and a final norm rescales, so the model's answer changes by more than
    this.
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
        bind=(
            {
                "c": Source("mlp_post", cols=1, example=True),
                "W_U": Source("W_U", cols=30, example=True),
            },
        ),
        places={
            "mlp_out": matadd(
                matmul(neurons, W_out), matmul(OneMatrix(n, 1), MatrixSymbol("b_out", 1, d))
            )
        },
        bare=False,
    )


@theorem(
    title="ViT Prisma: a patch embedding is one linear map, the same for each patch",
    chapter=11,
    convention="row",
    source=VIT,
    covers=("S3-153",),
)
def patch_embedding_is_one_linear_map() -> Statement:
    """A vision transformer cuts an image into n patches and multiplies the pixels of each patch (a
    row of X) by the same matrix. On all pixels at once this is I_n ⊗ Wᵀ, a convolution whose stride
    equals its width.

    From there on it computes what a language model without a mask does, so theorems about attention
    without a mask apply (`ot.encode` takes such rows). There is no vocabulary on the input side:
    W_E W_QK W_Eᵀ is about pixels.
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
    """A note of the literature links to a spreadsheet that works out one attention head in cells.
    It is not opened here. Its cells would be compared with scores q kᵀ/√d_head, their softmax row
    by row, and the products of pattern, values and W_O.
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
    """Oxen is a tool that keeps versions of data sets. It makes no mathematical claim, so there is
    nothing to prove and nothing to compare with. The entry is here because the notes behind this
    catalogue list the tool.
    """
    return Observation(
        criterion="none: it states no formula",
        cannot="it is a store for files, outside the mathematics of transformers",
    )
