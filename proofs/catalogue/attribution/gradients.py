"""Chapter 8: attribution by gradients: to first order, times the input, in contrast."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import fsum, sqrt
from typing import Any

import numpy as np
import sympy
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
    ZeroMatrix,
    symbols,
)

from otimes.algebra.language.linear import HeadSum, OneHot, kron, matadd, matmul
from otimes.algebra.language.nonlinear import RSQRT, Activation, CausalMask, RowSoftmax
from otimes.numeric.attribution.gradients import (
    gradient_norms,
    gradient_times_input,
    input_gradient,
)
from otimes.numeric.attribution.question import Question, ask
from otimes.numeric.binding import Source
from otimes.numeric.load import load_model
from otimes.numeric.model import Model
from otimes.numeric.rounding import gamma
from otimes.numeric.tokenizer import sample_tokens
from otimes.proofs.catalogue.sources import PRIMER
from otimes.proofs.catalogue.symbols import H, V, X, d, d_mlp, h, heads, n, p, q, row
from otimes.proofs.claims import (
    Definition,
    ErrorLaw,
    Load,
    Method,
    Observation,
    Observed,
    Statement,
    Trial,
)
from otimes.proofs.theorem import theorem

SUNDARARAJAN = "Sundararajan, Taly and Yan 2017, “Axiomatic Attribution for Deep Networks”"
UNIT = 2.0**-53

x, y, delta = (MatrixSymbol(name, d, 1) for name in ("x", "y", "delta"))
quadric = MatrixSymbol("Q", d, d)
linear = MatrixSymbol("b", 1, d)
cubic = MatrixSymbol("t", 1, d**3)
half = Rational(1, 2)
i, w, o = symbols("i w o", integer=True)


def cube(at: MatrixExpr) -> MatrixExpr:
    """Return t (x ⊗ x ⊗ x): any cubic form of x, as the tensor t may be any."""
    return matmul(cubic, kron(at, at, at))


def cube_slope(at: MatrixExpr, along: MatrixExpr) -> MatrixExpr:
    """Return the derivative of the cubic form at a point in a direction: the product rule."""
    moved = ((along, at, at), (at, along, at), (at, at, along))
    return matadd(*(matmul(cubic, kron(*factors)) for factors in moved))


def square(at: MatrixExpr) -> MatrixExpr:
    """Return xᵀ Q x + b x."""
    return matadd(matmul(Transpose(at), quadric, at), matmul(linear, at))


def square_slope(at: MatrixExpr) -> MatrixExpr:
    """Return the gradient of `square`, as a row."""
    return matadd(matmul(Transpose(at), matadd(quadric, Transpose(quadric))), linear)


# -- to first order --------------------------------------------------------------------------------


@theorem(
    title="Taylor's theorem: value, gradient times step, and a remainder of second order",
    chapter=8,
    source=f"{PRIMER}, “Gradient-based input attribution”",
    covers=("S3-023",),
)
def taylor_of_quadratic() -> Statement:
    """The gradient predicts the change of a function up to an error of second order in the step.
    For a quadratic f(x) = xᵀQx + bx the error is exactly δᵀQδ; for a linear f it is zero. With f(x)
    = x², x = 1 and δ = 0.1, the gradient predicts 0.2, the true change is 0.21, and the error is
    0.01. In general x and δ are columns, Q is a square matrix and b a row.

    Every smooth function is like this near a point, with Q half its second derivatives. So
    gradients can be trusted for small steps, and how small depends on the curvature.
    """
    return Statement(
        square(matadd(x, delta)),
        matadd(square(x), matmul(square_slope(x), delta), matmul(Transpose(delta), quadric, delta)),
        on_models=False,
    )


@lru_cache(maxsize=1)
def a_logit() -> tuple[Question, np.ndarray, np.ndarray, np.ndarray]:
    """Return a question about gpt2_tiny, its embedding, gradient, and a direction to move in."""
    model = load_model("gpt2_tiny")
    tokens = sample_tokens(6)
    question = ask(model, tokens, None, None, -1)
    gradient = input_gradient(model, tokens).values
    embed = question.embed()
    direction = np.random.default_rng(8).standard_normal(embed.shape)
    return question, embed, gradient, direction * np.linalg.norm(embed) / np.linalg.norm(direction)


@theorem(
    title="The gradient of a logit is its first-order change",
    chapter=8,
    source=f"{PRIMER}, “Gradient-based input attribution”",
    covers=("S3-023", "S3-024"),
)
def taylor_of_logit() -> ErrorLaw:
    """The gradient of a logit predicts its change for small changes of the embeddings, with an
    error that falls with the square of the step h. f is the largest logit of a trained transformer
    with norms and MLPs, x all its embeddings, δ a direction as long as they are.

    It checks that the gradient is right: with a wrong entry the error would fall only in proportion
    to h.
    """

    def error(step: float) -> float:
        question, embed, gradient, direction = a_logit()
        moved = question.value(embed + step * direction) - question.value()
        return float(abs(moved - step * (gradient * direction).sum()))

    return ErrorLaw(
        r"f(x + h\delta) - f(x) - h \nabla f(x) \cdot \delta", error, order=2, start=0.01
    )


u = MatrixSymbol("u", d, 1)  # what is read at the end, such as a column of W_U
last = OneHot(i, n)
moved_by = MatrixSymbol("Delta", n, d)


def _frozen_layer(stream: MatrixExpr) -> MatrixExpr:
    W_V, W_O = heads.row.W_V[h], heads.row.W_O[h]
    return matadd(stream, HeadSum(matmul(heads.A[h], stream, W_V, W_O), (h, H)))


def _frozen_gradient() -> MatrixExpr:
    """Return the gradient of entry i of a frozen layer, read by u: n × d, a row a position."""
    W_V, W_O = heads.row.W_V[h], heads.row.W_O[h]
    back = matmul(Transpose(heads.A[h]), last, Transpose(u), Transpose(W_O), Transpose(W_V))
    return matadd(matmul(last, Transpose(u)), HeadSum(back, (h, H)))


@theorem(
    title="With frozen patterns the gradient is the transposed model",
    chapter=8,
    convention="row",
    source=f"{PRIMER}, “Gradient-based input attribution”",
    covers=("S3-024",),
)
def gradient_of_frozen_layer() -> Statement:
    """With attention patterns held constant, the gradient of anything read from a layer's output is
    obtained by the transposed layer. For what u reads at position i, the gradient with respect to
    row j of the stream is u itself for j = i, plus Σ_h a_ij u W_Oᵀ W_Vᵀ through the heads; G
    collects these rows, and the equation holds for changes Δ of any size.

    Attribution with frozen patterns is this linear map. With live patterns the gradient has more
    terms, through queries and keys (`head_jacobian`).
    """
    change = matadd(
        _frozen_layer(matadd(X, moved_by)),
        matmul(-1, _frozen_layer(X)),
    )
    return Statement(
        Trace(matmul(Transpose(last), change, u)),
        Trace(matmul(Transpose(_frozen_gradient()), moved_by)),
        bind=({"u": Source("W_U", cols=1), "Delta": Source("embed", example=True)},),
        places={"resid_mid": _frozen_layer(X)},
        unchanged_by={"W_U with its columns shifted": "u is the column of any token"},
    )


@theorem(
    title="The gradient in later tokens is zero",
    chapter=8,
    convention="row",
    source=f"{PRIMER}, “Gradient-based input attribution”",
    covers=("S3-024",),
)
def later_tokens_have_no_gradient() -> Statement:
    """In a causal model, what is computed at a position does not change when later tokens change by
    any amount Δ. The formula shows a head: the first p rows of its output, for streams X (p rows)
    and Y + Δ after them.

    So every attribution method must give later tokens the score zero. A nonzero score there is a
    bug.
    """
    Y, moved = MatrixSymbol("Y", q, d), MatrixSymbol("Delta", q, d)
    circuit = matmul(row.W_Q, Transpose(row.W_K))

    def head(later: MatrixExpr) -> MatrixExpr:
        before = MatrixSymbol("X", p, d)
        scores = [[matmul(before, circuit, Transpose(keys)) for keys in (before, later)]]
        mask = sympy.BlockMatrix([[CausalMask(p), ZeroMatrix(p, q)]])
        pattern = RowSoftmax(sympy.BlockMatrix(scores), mask)
        stream = sympy.BlockMatrix([[before], [later]])
        return matmul(pattern, stream, row.W_V, row.W_O)

    return Statement(head(matadd(Y, moved)), head(Y), on_models=False)


def _lengths_by_loops(G: Any, n: int, d: int, **_: Any) -> list[list[float]]:
    return [[sqrt(fsum(float(G[j][k]) ** 2 for k in range(d)))] for j in range(n)]


@theorem(
    title="Gradient norm: how sensitive a logit is to a token",
    chapter=8,
    source=f"{PRIMER}, “Gradient-based input attribution”; Simonyan, Vedaldi and Zisserman 2014; "
    "Li et al. 2016",
    covers=("S3-024",),
)
def gradient_norm() -> Definition:
    """The gradient norm of a token is the length of the gradient of a logit with respect to the
    token's embedding: √(Σ_k G_ik²) for row i of G (n × d). Other norms, the largest entry or the
    sum of absolute values, are also used.

    It says how much the logit could change for a small change of x_i in the worst direction. It
    does not say that x_i did anything as it is, nor in which sense.

    It is zero for later tokens (`later_tokens_have_no_gradient`).
    """
    G = MatrixSymbol("G", n, d)
    squares = matmul(HadamardPower(G, 2), OneMatrix(d, 1))
    return Definition(
        "the length of each row of the gradient",
        HadamardProduct(squares, Activation(RSQRT, squares)),
        _lengths_by_loops,
        on_models=False,
        obeys=("later_tokens_have_no_gradient", "gradient_of_frozen_layer"),
    )


# -- times input -----------------------------------------------------------------------------------


@theorem(
    title="The score gradient × input",
    chapter=8,
    source=f"{PRIMER}, “Gradient-based input attribution”; Denil et al. 2015; "
    "Shrikumar et al. 2017",
    covers=("S3-025",),
)
def gradient_times_input_score() -> Definition:
    """The score gradient × input of a token is the dot product of the gradient with respect to its
    embedding and the embedding itself. To first order it is how much f would lose if the embedding
    were scaled to zero. In the formula G (n × d) holds the gradients and X the embeddings, one row
    for each token.

    So unlike the gradient norm it has a sign and a reference, the zero vector. Whether zero is a
    sensible reference is a separate question.
    """
    G = MatrixSymbol("G", n, d)

    def plain(G: Any, X: Any, n: int, d: int, **_: Any) -> list[list[Any]]:
        return [[sum(G[j][k] * X[j][k] for k in range(d))] for j in range(n)]

    return Definition(
        "the gradient of each token times its embedding",
        matmul(HadamardProduct(G, X), OneMatrix(d, 1)),
        plain,
        bind=({"G": Source("attn_out", example=True)},),
        obeys=("gradient_times_input_is_complete_when_linear", "gradient_times_input_of_cubic"),
    )


@theorem(
    title="For a linear function the scores of gradient × input sum to the output",
    chapter=8,
    convention="row",
    source=f"{PRIMER}, “Gradient-based input attribution”",
    covers=("S3-025", "S3-026"),
)
def gradient_times_input_is_complete_when_linear() -> Statement:
    """For a linear function the scores gradient × input of all tokens sum to the output. Here the
    function is what u reads at position i behind a layer of heads with frozen patterns and without
    biases.

    With biases the sum misses their part, which is in f and in no gradient × input. For nonlinear
    functions see `gradient_times_input_of_cubic`.
    """
    return Statement(
        Trace(matmul(Transpose(_frozen_gradient()), X)),
        Trace(matmul(Transpose(last), _frozen_layer(X), u)),
        bind=({"u": Source("W_U", cols=1)},),
        places={"resid_mid": _frozen_layer(X)},
        unchanged_by={"W_U with its columns shifted": "u is the column of any token"},
    )


c = sympy.Symbol("c", positive=True)
W_in, W_out = MatrixSymbol("W_in", d, d_mlp), MatrixSymbol("W_out", d_mlp, d)


@theorem(
    title="Gradient × input is exact for functions of degree one, by Euler's theorem",
    chapter=8,
    convention="row",
    source=f"{PRIMER}, “Gradient-based input attribution”; "
    "Euler's theorem on homogeneous functions; Ancona et al. 2018, §3",
    covers=("S3-026",),
)
def relu_net_along_its_input() -> Statement:
    """A ReLU network without biases scales with its input: f(cx) = c f(x) for c > 0. So its
    derivative along its own input, ∇f(x)·x, is f(x): gradient × input is exact (Euler's theorem).
    The formula shows one layer of neurons; a chain of them has the same property.

    One bias, GELU or softmax breaks it. A transformer without biases, with patterns, norm scales
    and gates held constant, is of this kind.
    """
    at = MatrixSymbol("x", 1, d)

    def net(x: MatrixExpr) -> MatrixExpr:
        return matmul(Activation("relu", matmul(x, W_in)), W_out)

    return Statement(
        matadd(net(matmul(c, at)), matmul(-1, net(at))),
        matmul(c - 1, net(at)),
        on_models=False,
    )


@theorem(
    title="With its gates held constant, gradient × input of a ReLU layer is the layer",
    chapter=8,
    convention="row",
    source=f"{PRIMER}, “Gradient-based input attribution”; Balduzzi et al. 2017",
    covers=("S3-026",),
)
def relu_gradient_times_input() -> Statement:
    """For a ReLU layer, gradient × input gives the output exactly. The derivative of a ReLU is its
    gate, 1 where the neuron is active and 0 elsewhere, and gate times pre-activation a is the ReLU
    itself. So the Jacobian W_in diag(gate) W_out, applied to x, gives the layer's output for x.
    """
    gate, pre = MatrixSymbol("gate", 1, d_mlp), MatrixSymbol("a", 1, d_mlp)
    at = MatrixSymbol("x", 1, d)
    jacobian = matmul(W_in, sympy.DiagMatrix(Transpose(gate)), W_out)
    return Statement(
        matmul(at, jacobian),
        matmul(Activation("relu", pre), W_out),
        given=(
            (pre, matmul(at, W_in)),
            (Activation("relu", pre), HadamardProduct(gate, pre)),
        ),
        on_models=False,
    )


@theorem(
    title="For a function of degree k, gradient × input sums to k times the output",
    chapter=8,
    source="Euler's theorem on homogeneous functions",
    covers=("S3-026", "S3-025"),
)
def gradient_times_input_of_cubic() -> Statement:
    """If a function is homogeneous of degree k, f(λx) = λᵏ f(x), the scores gradient × input sum to
    k times the output. For a cubic form they sum to three times f. In the formula the cubic form is
    t(x ⊗ x ⊗ x), with a row t of coefficients.

    An attention head without its softmax is cubic in the stream (`head_without_softmax_is_cubic`).
    So “gradient × input explains the logit” is right for degree one only.
    """
    return Statement(cube_slope(x, x), matmul(3, cube(x)), on_models=False)


# -- where a gradient misleads ---------------------------------------------------------------------


def saturating(at: Any) -> MatrixExpr:
    """Return 1 - relu(1 - x) at a number, 1 × 1."""
    inside = matmul(1 - at, Identity(1))
    return matadd(Identity(1), matmul(-1, Activation("relu", inside)))


@theorem(
    title="A saturated function has changed although its gradient is zero",
    chapter=8,
    source=f"{SUNDARARAJAN}, §2.1",
    covers=("S3-027",),
)
def saturated_function_moves() -> Statement:
    """A function can have changed although its gradient is now zero: f(x) = 1 − relu(1 − x) rises
    from 0 at x = 0 to 1 at x = 1 and stays there, so f(2) − f(0) = 1, but at 2 the gradient is zero
    (`saturated_gradient_is_zero`).

    Gradients describe what happens near x, not how f came to its value. It is the argument for
    integrated gradients.
    """
    change = matadd(saturating(2), matmul(-1, saturating(0)))
    return Statement(change, Identity(1), on_models=False)


@theorem(
    title="The gradient of a saturated function is zero",
    chapter=8,
    source=f"{SUNDARARAJAN}, §2.1",
    covers=("S3-027",),
)
def saturated_gradient_is_zero() -> Statement:
    """Where a function has become constant, its gradient and gradient × input are zero: f(x) = 1 −
    relu(1 − x) equals 1 at 1 + c for every c > 0. Integrated gradients from 0 to 2 give 1, because
    they use the whole way.

    Attention and activations saturate in the same manner, so a zero gradient does not mean that an
    input played no part.
    """
    beyond = sympy.Symbol("c", positive=True)
    return Statement(saturating(1 + beyond), Identity(1), on_models=False)


@theorem(
    title="Shattered gradients: gradients of nearby inputs differ more with depth",
    chapter=8,
    source="Balduzzi et al. 2017, “The Shattered Gradients Problem”",
    covers=("S3-027",),
)
def gradients_shatter() -> Observation:
    """Do gradients at nearby inputs differ more in deeper networks? In a plain deep ReLU network
    the gradient along a line of inputs resembles white noise: neighbouring inputs share few active
    neurons. With skip connections it is smoother. Tried, as in the paper, on networks with random
    weights.

    If they differ, the gradient at a single point says little about its neighbourhood.
    """

    def alike(depth: int, skip: bool) -> float:
        """Return the mean correlation of the gradients of neighbours on a line of inputs."""
        rng = np.random.default_rng(depth)
        width, points = 200, np.linspace(-2, 2, 256)
        first, bias = rng.standard_normal((2, width))
        layers = rng.standard_normal((depth, width, width)) * np.sqrt(2 / width)
        out = rng.standard_normal(width)
        value, slope = np.outer(points, first) + bias, np.tile(first, (len(points), 1))
        for W in layers:
            gate = value > 0
            onwards, change = (value * gate) @ W, (slope * gate) @ W
            value = (value + onwards) / np.sqrt(2) if skip else onwards
            slope = (slope + change) / np.sqrt(2) if skip else change
        gradient = slope @ out
        gradient = gradient - gradient.mean()
        return float((gradient[1:] * gradient[:-1]).mean() / (gradient**2).mean())

    def observe(load: Load) -> Observed:
        shallow, deep, skipping = alike(2, False), alike(40, False), alike(40, True)
        figure = (
            f"autocorrelation of the gradient at neighbouring inputs: 2 layers {shallow:.2f}, 40 "
            f"layers {deep:.2f}, 40 layers with skips {skipping:.2f}"
        )
        margins = {"2 layers minus skips": shallow - skipping, "skips minus plain": skipping - deep}
        return Observed(figure, margins)

    return Observation(
        "random ReLU networks of width 200: highest with 2 layers, lowest with 40, and with 40 and "
        "skip connections in between",
        observe,
        {"2 layers minus skips": 0.0, "skips minus plain": 0.0},
        control=False,
    )


# -- contrasts -------------------------------------------------------------------------------------


@theorem(
    title="The contrastive gradient is the difference of gradients",
    chapter=8,
    convention="row",
    source=f"{PRIMER}, “Contrastive input attribution”; Yin and Neubig 2022",
    covers=("S3-037",),
)
def contrastive_gradient() -> Statement:
    """Why did the model predict w and not o? The gradient of the logit difference answers, and it
    is the difference of the two gradients. In the formula the logits are f(x) W_U with f a cubic
    form of x, and δ is the direction in which x changes. The rows of t hold the coefficients of the
    cubic form.

    What raises both tokens alike, such as grammar, drops out.
    """
    tensor = MatrixSymbol("t", d, d**3)
    W_U = row.W_U
    moved = ((delta, x, x), (x, delta, x), (x, x, delta))
    slope = matadd(*(matmul(tensor, kron(*factors)) for factors in moved))

    def of_token(index: Any) -> MatrixExpr:
        return matmul(Transpose(slope), W_U, OneHot(index, V))

    between = matadd(OneHot(w, V), matmul(-1, OneHot(o, V)))
    return Statement(
        matmul(Transpose(slope), W_U, between),
        matadd(of_token(w), matmul(-1, of_token(o))),
        on_models=False,
    )


@theorem(
    title="The gradient of a logit difference is its first-order change",
    chapter=8,
    source="Yin and Neubig 2022, “Interpreting Language Models with Contrastive Explanations”",
    covers=("S3-037",),
)
def taylor_of_lead() -> ErrorLaw:
    """The difference of two logits' gradients predicts how a logit difference f = f_w − f_o changes
    for small changes of the embeddings, with an error that falls with the square of the step h.
    Measured on a trained model, with the two gradients computed separately.
    """

    def error(step: float) -> float:
        _, embed, _, direction = a_logit()
        model, tokens = load_model("gpt2_tiny"), sample_tokens(6)
        lead = ask(model, tokens, 3, 5, -1)
        of_each = [ask(model, tokens, token, None, -1).gradient()[1] for token in (3, 5)]
        moved = lead.value(embed + step * direction) - lead.value()
        return float(abs(moved - step * ((of_each[0] - of_each[1]) * direction).sum()))

    return ErrorLaw(
        r"f(x + h\delta) - f(x) - h (\nabla f_w - \nabla f_o) \cdot \delta",
        error,
        order=2,
        start=0.01,
    )


# -- functions -------------------------------------------------------------------------------------


def likeliest(model: Model, tokens: Sequence[int]) -> Question:
    """Return the question about the likeliest token after a prompt."""
    return ask(model, tokens, None, None, -1)


@theorem(
    title="gradient_norms: lengths of rows",
    chapter=8,
    source=f"{PRIMER}, “Gradient-based input attribution”; Simonyan, Vedaldi and Zisserman 2014; "
    "Li et al. 2016",
    covers=("S3-024",),
)
def gradient_norms_method() -> Method:
    """`gradient_norms` returns the length of each row of a gradient, for p = 1, 2 and ∞. It is
    compared with lengths computed by loops.

    That the gradient itself is right is measured by `taylor_of_logit`.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        _, gradient = likeliest(model, tokens).gradient()
        sizes = np.abs(gradient).tolist()
        plain = {
            1: [fsum(line) for line in sizes],
            2: [sqrt(fsum(entry * entry for entry in line)) for line in sizes],
            np.inf: [max(line) for line in sizes],
        }
        for order, lengths in plain.items():
            found = gradient_norms(model, tokens, p=order).values
            bound = gamma(model.d_model + 4, UNIT) * np.array(lengths)
            yield Trial(f"p = {order}", found, np.array(lengths), bound)

    return Method("ot.gradient_norms", ("gradient_norm", "taylor_of_logit"), trials)


def of_another_order(model: Model, logit: float) -> float:
    """Return how far two passes that add in different orders may be apart, as is seen of logits.

    A rigorous bound through many layers would be of no use.
    """
    return 1e4 * UNIT * (1 + model.n_layers) * (1 + abs(logit))


@theorem(
    title="gradient_times_input: inner products of rows",
    chapter=8,
    source=f"{PRIMER}, “Gradient-based input attribution”; Denil et al. 2015; "
    "Shrikumar et al. 2017",
    covers=("S3-025",),
)
def gradient_times_input_method() -> Method:
    """`gradient_times_input` returns the dot product of each row of a gradient with the embedding
    of that token. It is compared with loops. On a model without layers a logit is linear in the
    embedding, and there the scores sum to the logit.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        question = likeliest(model, tokens)
        f, gradient = question.gradient()
        x = question.embed()
        found = gradient_times_input(model, tokens)
        products = [
            [a * b for a, b in zip(*lines, strict=True)]
            for lines in zip(gradient.tolist(), x.tolist(), strict=True)
        ]
        few = gamma(model.d_model + len(tokens) + 2, UNIT)
        sizes = few * np.abs(gradient * x).sum(axis=1)
        yield Trial("by loops", found.values, np.array([fsum(line) for line in products]), sizes)
        whole = float(model.forward(tokens, ["logits"])["logits"][-1].max())
        yield Trial("the logit", found.whole or 0.0, whole, of_another_order(model, whole))
        if model.n_layers == 0:
            yield Trial("all tokens", found.values.sum(), f, 2 * sizes.sum())

    rests = ("gradient_times_input_score", "gradient_times_input_is_complete_when_linear")
    return Method("ot.gradient_times_input", (*rests, "taylor_of_logit"), trials)
