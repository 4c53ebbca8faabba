"""Chapter 4: a feed-forward layer is a sum over neurons, and its neurons are a privileged basis.

The activation is called g and may be any function of one number, where nothing else is said.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import sympy
from sympy import (
    BlockMatrix,
    HadamardPower,
    HadamardProduct,
    Identity,
    MatrixSymbol,
    Min,
    Trace,
    Transpose,
)
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.facts import Fact
from otimes.algebra.language.linear import ConcatHeads, HeadSum, OneHot, matadd, matmul
from otimes.numeric.binding import Source
from otimes.numeric.config import gpt2_config, llama_config
from otimes.numeric.tokenizer import sample_tokens
from otimes.proofs.catalogue.mlp_and_norm.parts import (
    WITH_PLAIN_MLP,
    W_in,
    W_out,
    activation,
    b_in,
    b_out,
    everywhere,
    feed_forward,
    neurons,
)
from otimes.proofs.catalogue.sources import FRAMEWORK, GEVA, PRIMER, VASWANI
from otimes.proofs.catalogue.symbols import X, d, d_mlp, n
from otimes.proofs.claims import (
    Definition,
    Load,
    NonIdentity,
    Observation,
    Observed,
    Property,
    Statement,
)
from otimes.proofs.theorem import theorem

BASIS = f"{FRAMEWORK}, “Activation properties”"

READS = ({"X": Source("ln2")}, {"X": Source("resid_mid")})  # behind a norm, or in a model without
LONG = {"X": Source("W_E", rows=160)}  # more rows than the stream has dimensions
FEW_NEURONS = {**LONG, "W_in": Source("W_in", cols=40), "W_out": Source("W_out", rows=40)}
u = sympy.Symbol("u", integer=True)


def of_neuron(index: sympy.Symbol) -> Any:
    """Return what one neuron adds at each position: g(X w_in + b) w_out."""
    one = OneHot(index, d_mlp)
    before = matadd(matmul(X, W_in, one), everywhere(matmul(b_in, one)))
    return matmul(activation(before), Transpose(one), W_out)


@theorem(
    title="The feed-forward layer: gelu(x W_in + b_in) W_out + b_out",
    chapter=4,
    convention="row",
    source=f"{PRIMER}, “Feedforward network block”; {VASWANI}, §3.3",
    covers=("S0-31",),
)
def feed_forward_layer() -> Definition:
    """A feed-forward layer, or MLP, maps the vector of each position by itself, in three steps:
    W_in takes d_mlp dot products with it, the activation function acts on each of these numbers
    alone, and W_out combines rows of d entries with the results as weights. X is what the layer
    reads, behind its norm if there is one; the biases are added after each product.

    The activation here is GELU in GPT-2's tanh form, so that numbers can be computed. For any
    activation g the layer is a sum over its neurons (`feed_forward_is_sum_over_neurons`).
    """

    def plain(X: Any, W_in: Any, b_in: Any, W_out: Any, b_out: Any, **sizes: Any) -> Any:
        rows, width, hidden = len(X), len(W_in), len(W_out)
        result = np.zeros((rows, len(b_out[0])))
        for i in range(rows):
            post = []
            for unit in range(hidden):
                x = sum(X[i][k] * W_in[k][unit] for k in range(width)) + b_in[0][unit]
                inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
                post.append(0.5 * x * (1 + math.tanh(inner)))
            for k in range(result.shape[1]):
                total = sum(post[unit] * W_out[unit][k] for unit in range(hidden))
                result[i, k] = total + b_out[0][k]
        return result

    pre = matadd(matmul(X, W_in), everywhere(b_in))
    value = matadd(matmul(activation(pre, "gelu_tanh"), W_out), everywhere(b_out))
    return Definition(
        "FFN",
        value,
        plain,
        places=("mlp_out",),
        bind=READS,
        bare=False,
        config=WITH_PLAIN_MLP | {"activation": "gelu_tanh"},
        obeys=("feed_forward_is_sum_over_neurons", "key_value_memory"),
    )


@theorem(
    title="A neuron reads the stream with its own column",
    chapter=4,
    convention="row",
    source=f"{PRIMER}, “Feedforward network block”; {GEVA}",
    covers=("S0-33",),
)
def neuron_reads_its_column() -> Statement:
    """Each neuron of an MLP depends on one column of W_in and one entry of b_in only: its
    activation is g(X W_in e_u + b_u), because g acts on each number alone. So column u is the
    pattern that neuron u detects, and its dot product with the stream says how well it matches.

    The equation puts the activations of all d_mlp neurons side by side.

    With a softmax in place of g every neuron would depend on all others.
    """
    one = OneHot(u, d_mlp)
    alone = matadd(matmul(X, matmul(W_in, one)), everywhere(matmul(b_in, one)))
    return Statement(
        neurons(),
        ConcatHeads(activation(alone), (u, d_mlp)),
        places={"mlp_post": neurons()},
        bind=READS,
        bare=False,
        config=WITH_PLAIN_MLP,
    )


@theorem(
    title="A feed-forward layer is a sum over neurons",
    chapter=4,
    convention="row",
    source=f"{PRIMER}, “Feedforward network block”; {GEVA}",
    covers=("S0-31", "S0-34", "S3-011"),
)
def feed_forward_is_sum_over_neurons() -> Statement:
    """An MLP's output is a sum over its neurons: each contributes its row of W_out, multiplied by
    its activation. So the layer writes a combination of d_mlp fixed vectors, and only the
    coefficients depend on the input.

    Therefore the contribution of a single neuron to a logit can be computed, and what it can write
    is known from the weights.

    Rows of W_out and columns of W_in are different vectors. A text that calls both w_u makes W_out
    the transpose of W_in.
    """
    total = HeadSum(of_neuron(u), (u, d_mlp))
    layer = matadd(total, everywhere(b_out))
    one_row = everywhere(matmul(Transpose(OneHot(0, d_mlp)), W_out))
    same_names = matmul(neurons(), Transpose(W_in))
    return Statement(
        feed_forward(),
        layer,
        places={"mlp_out": feed_forward()},
        bind=READS,
        bare=False,
        config=WITH_PLAIN_MLP,
        printed={
            "E28": (feed_forward(), matadd(same_names, everywhere(b_out))),
            "E52": (one_row, total),
        },
    )


@theorem(
    title="The stream after a feed-forward layer",
    chapter=4,
    convention="row",
    source=f"{PRIMER}, “Feedforward network block”",
    covers=("S3-012",),
)
def feed_forward_adds_to_stream() -> Statement:
    """An MLP adds its output to the residual stream as heads do: the stream after it is the stream
    before (`resid_mid`), plus for each neuron its row of W_out times its activation, plus b_out
    once.

    Nothing in the stream is overwritten. A neuron can cancel a direction by writing its negative.
    """
    mid = MatrixSymbol("resid_mid", n, d)
    after = matadd(mid, matmul(neurons(), W_out), everywhere(b_out))
    return Statement(
        after,
        matadd(mid, HeadSum(of_neuron(u), (u, d_mlp)), everywhere(b_out)),
        places={"resid_post": after},
        bind=READS,
        bare=False,
        config=WITH_PLAIN_MLP,
    )


@theorem(
    title="A feed-forward layer as a key-value memory",
    chapter=4,
    source=f"{GEVA}, §2",
    covers=("S0-50",),
)
def key_value_memory() -> Statement:
    """An MLP can be read as a memory with fixed keys and values: FFN(x) = Σ_u g(x · k_u) v_u, where
    the keys k_u are the columns of W_in (rows of K = W_inᵀ) and the values v_u the rows of V =
    W_out. The input x is compared with each key, and the match decides how much of the value is
    written. In the formula x is the row x_i.

    Work on factual knowledge in MLPs is based on this reading.

    It is the formula of attention with keys and values that are weights, one pair for each neuron,
    and with g in place of softmax. So several memories can respond fully, or none.
    """
    x = MatrixSymbol("x_i", 1, d)
    K, V = MatrixSymbol("K", d_mlp, d), MatrixSymbol("V", d_mlp, d)
    one = Transpose(OneHot(u, d_mlp))
    answer = activation(matmul(x, Transpose(matmul(one, K))))
    matches = activation(matadd(matmul(X, Transpose(K)), everywhere(b_in)))
    return Statement(
        matmul(activation(matmul(x, Transpose(K))), V),
        HeadSum(matmul(answer, matmul(one, V)), (u, d_mlp)),
        places={"mlp_post": matches, "mlp_out": matadd(matmul(matches, V), everywhere(b_out))},
        bind=(
            {
                "X": Source("ln2"),
                "x_i": Source("ln2", rows=1),
                "K": Source("W_in", transposed=True),
                "V": Source("W_out"),
            },
        ),
        bare=False,
        config=WITH_PLAIN_MLP,
    )


# -- ranks -----------------------------------------------------------------------------------------


@theorem(
    title="What a feed-forward layer writes lies in the row space of W_out",
    chapter=4,
    convention="row",
    source=GEVA,
    covers=("S0-34",),
)
def feed_forward_writes_in_row_space() -> Statement:
    """What an MLP writes, without its output bias, lies in the span of the rows of W_out. E (d ×
    d_mlp) is any matrix with W_out E W_out = W_out, such as the pseudo-inverse. Then E W_out
    projects onto that span and leaves the output unchanged.

    If d_mlp < d this restricts what the layer can write. With d_mlp > d, as usual, the rows mostly
    span everything.
    """
    E = MatrixSymbol("E", d, d_mlp)
    written = matmul(neurons(), W_out)
    return Statement(
        matmul(written, matmul(E, W_out)),
        written,
        given=[(matmul(W_out, E, W_out), W_out)],
        on_models=False,
    )


@theorem(
    title="The rank of the output of a feed-forward layer",
    chapter=4,
    convention="row",
    source=GEVA,
    covers=("S0-34",),
)
def feed_forward_rank() -> Property:
    """The output of an MLP without its output bias has rank at most min(d, d_mlp) over any number
    of positions n, whatever the activation function is. The bound comes from W_out alone.

    So a layer with few neurons writes to a small subspace, which can be read off its weights.
    """
    written = matmul(activation(matmul(X, W_in)), W_out)
    return Property(Fact("rank_at_most", written, Min(n, d, d_mlp)), bind=(FEW_NEURONS,))


@theorem(
    title="With a linear activation two matrices are one",
    chapter=4,
    convention="row",
    source="Goodfellow, Bengio and Courville 2016, “Deep learning”, §6.1",
    covers=("S0-71",),
)
def linear_activation_collapses() -> Statement:
    """Without a nonlinear activation an MLP is one affine map: X W_in W_out plus a constant row.
    More neurons than dimensions would gain nothing then.

    This is why d_mlp > d makes sense only with a nonlinear g.
    """
    layer = matadd(
        matmul(matadd(matmul(X, W_in), everywhere(b_in)), W_out),
        everywhere(b_out),
    )
    constant = matadd(matmul(b_in, W_out), b_out)
    return Statement(
        layer,
        matadd(matmul(X, matmul(W_in, W_out)), everywhere(constant)),
        bind=READS,
        places={
            "mlp_pre": matadd(matmul(X, W_in), everywhere(b_in)),
            "mlp_out": feed_forward(),
        },
        bare=False,
        config=WITH_PLAIN_MLP,
    )


@theorem(
    title="The rank of a linear layer through neurons",
    chapter=4,
    convention="row",
    source="Goodfellow, Bengio and Courville 2016, “Deep learning”, §6.1",
    covers=("S0-71",),
)
def linear_layer_rank() -> Property:
    """Two matrices in sequence, W_in (d × d_mlp) and W_out (d_mlp × d), have a product of rank at
    most min(d, d_mlp). With more neurons than dimensions a smaller linear layer computes the same;
    with fewer the layer is a bottleneck.

    Only a nonlinear activation between the two makes a wide layer useful
    (`activation_reaches_full_rank`).
    """
    return Property(Fact("rank_at_most", matmul(W_in, W_out), Min(d, d_mlp)), bind=(FEW_NEURONS,))


@theorem(
    title="2d ReLU neurons pass a stream of d dimensions on unchanged",
    chapter=4,
    source="Glorot, Bordes and Bengio 2011, “Deep sparse rectifier networks”, §3",
    covers=("S0-71",),
)
def relu_pairs_pass_the_stream() -> Statement:
    """A ReLU layer with 2d neurons can pass its input on unchanged, because x = ReLU(x) − ReLU(−x):
    two neurons for each dimension, one reading it with a plus sign and one with a minus sign.

    So a ReLU layer can do all that a linear layer can. With d_mlp = 4d half of the neurons remain
    for what is not linear. GELU and SiLU satisfy the same identity.
    """
    both = BlockMatrix([[Identity(d), matmul(-1, Identity(d))]])
    apart = BlockMatrix([[Identity(d)], [matmul(-1, Identity(d))]])
    return Statement(matmul(activation(matmul(X, both), "relu"), apart), X)


@theorem(
    title="Before the activation function neurons have rank at most d",
    chapter=4,
    convention="row",
    source=GEVA,
    covers=("S0-72",),
)
def preactivation_rank() -> Property:
    """Before the activation function, the numbers in the neurons of an MLP on any text have rank at
    most d as a matrix (positions × neurons), since they are linear functions of streams with d
    entries. A bias adds at most one.

    So with 4d neurons most columns of this matrix depend on the others. The activation function
    removes this limit (`activation_raises_rank`).
    """
    return Property(Fact("rank_at_most", matmul(X, W_in), Min(n, d, d_mlp)), bind=(LONG,))


@theorem(
    title="After the activation function the rank of neurons is not bounded by d",
    chapter=4,
    source="follows by example",
    covers=("S0-72",),
)
def activation_raises_rank() -> NonIdentity:
    """After the activation function, the neurons of an MLP are no longer limited to the rank of
    what they read. Here the stream has one dimension (x is n × 1, w is 1 × d_mlp), so before ReLU
    the matrix has rank one. Every matrix N of rank one satisfies N NᵀN = tr(NNᵀ) N, and the
    inequality shows that ReLU breaks this.

    It is what makes wide hidden layers useful.
    """
    x, weights = MatrixSymbol("x", n, 1), MatrixSymbol("w", 1, d_mlp)
    after = activation(matmul(x, weights), "relu")
    gram = matmul(after, Transpose(after))
    return NonIdentity(matmul(gram, after), matmul(Trace(gram), after))


@theorem(
    title="An activation function can raise the rank to full",
    chapter=4,
    source="follows by example",
    covers=("S0-72",),
)
def activation_reaches_full_rank() -> Property:
    """An activation function can raise the rank of the neurons to the largest possible: from a
    stream with two dimensions only, ReLU neurons reach rank min(n, d_mlp). The check finds exact
    numbers with three positions and three neurons of rank three. X_2 (n × 2) is the stream and W_2
    (2 × d_mlp) the input weights.

    So neurons can be linearly independent of each other, though what they read is not.
    """
    streams, weights = MatrixSymbol("X_2", n, 2), MatrixSymbol("W_2", 2, d_mlp)
    after = activation(matmul(streams, weights), "relu")
    return Property(Fact("rank_at_most", after, Min(n, d_mlp)), on_models=False)


@theorem(
    title="The rank of neuron activations on a text",
    chapter=4,
    source="measured here",
    covers=("S0-72",),
)
def neuron_rank_on_text() -> Observation:
    """Do trained models use the higher rank that the activation function allows? Measured is the
    rank of the neuron activations (positions × neurons) on text, counting singular values above
    rounding error, in comparison with the d dimensions of the stream that they read.

    A rank above d says that neurons hold combinations that no linear map of the stream can give. It
    says nothing about what these mean.
    """

    def observe(load: Load) -> Observed:
        model = load("gpt2_tiny")
        tokens, width = np.asarray(sample_tokens(model.config.n_ctx)), model.d_model
        runs = [model.forward(tokens[start:]) for start in (0, 20, 40, 60)]
        positions, layer = sum(len(run["embed"]) for run in runs), model.n_layers - 1

        def rank(place: str, shift: Any) -> int:
            rows = np.concatenate([run[f"{place}.{layer}"] for run in runs]) - shift
            return int(np.linalg.matrix_rank(rows))

        before, after = rank("mlp_pre", model.b_in[layer]), rank("mlp_post", 0.0)
        figure = (
            f"at {positions} positions (the sample text read from four places on), in the last "
            f"layer of gpt2_tiny: rank {before} before the activation (bias taken off), {after} "
            f"after, where d = {width}"
        )
        ranks = {"rank after minus d": after - width, "d minus rank before": width - before}
        return Observed(figure, ranks)

    return Observation(
        "the numerical rank of mlp_post is above d, and that of mlp_pre without its bias is not",
        observe,
        {"rank after minus d": 0, "d minus rank before": -1e-9},
        outcome="seen at random too",
    )


@theorem(
    title="Four times as many neurons as dimensions",
    chapter=4,
    source=f"{VASWANI}, §3.3",
    covers=("S0-32",),
)
def neurons_are_four_times_d() -> Observation:
    """Most transformers have four times as many neurons in an MLP as dimensions in the stream,
    d_mlp = 4d. This is a habit and no theorem; nothing here depends on it.

    MLPs with a gate have three matrices instead of two. With 8d/3 neurons they have as many weights
    as a plain MLP with 4d. The bundled `llama_tiny`, which was trained after this criterion was
    fixed, has 3d; it is not among the models that are looked at.
    """

    def observe(load: Load) -> Observed:
        public = {"GPT-2 small": gpt2_config(), "Llama 3.2 1B": llama_config()}
        configs = {**public, "gpt2_tiny": load("gpt2_tiny").config}
        ratios = {name: c.d_mlp / c.d_model for name, c in configs.items()}
        figure = ", ".join(f"{name}: d_mlp/d = {ratio:g}" for name, ratio in ratios.items())
        off = max(abs(ratio - 4) for ratio in ratios.values())
        return Observed(figure, {"minus the largest |d_mlp/d_model - 4|": -off})

    return Observation(
        "d_mlp = 4 d_model in each configuration that has an MLP",
        observe,
        {"minus the largest |d_mlp/d_model - 4|": -1e-9},
        control=False,
    )


# -- the privileged basis --------------------------------------------------------------------------

N = MatrixSymbol("mlp_pre", n, d_mlp)
Q = MatrixSymbol("Q", d_mlp, d_mlp)
PERMUTATION = (
    (HadamardProduct(Q, Q, evaluate=False), Q),
    (matmul(Q, Transpose(Q)), Identity(d_mlp)),
)


@theorem(
    title="The neurons of an MLP may be permuted",
    chapter=4,
    source=BASIS,
    covers=("S3-013",),
)
def activation_commutes_with_permutations() -> Statement:
    """The numbering of the neurons in an MLP has no meaning: g(N Q) = g(N) Q for every permutation
    Q and every activation g. So W_in Q with QᵀW_out is the same layer. `mlp_pre` (n × d_mlp) is
    what the activation is applied to.

    Two models can be compared neuron by neuron only after their neurons have been matched. The
    hypotheses say that Q is a permutation matrix.
    """
    return Statement(
        activation(matmul(N, Q)), matmul(activation(N), Q), given=PERMUTATION, on_models=False
    )


@theorem(
    title="ReLU neurons may be scaled by positive numbers",
    chapter=4,
    source=BASIS,
    covers=("S3-013",),
)
def relu_commutes_with_positive_scales() -> Statement:
    """A ReLU neuron may be scaled: multiply its column of W_in (and its bias) by a positive number,
    divide its row of W_out by it, and the layer is the same. In the equation the factors are the
    squares of c, so they are not negative. `mlp_pre` (n × d_mlp) is what the ReLU is applied to.

    So of a ReLU neuron only the product of the two lengths has a meaning. GELU and SiLU have no
    such freedom.
    """
    scales = DiagMatrix(HadamardPower(MatrixSymbol("c", d_mlp, 1), 2))
    return Statement(
        activation(matmul(N, scales), "relu"),
        matmul(activation(N, "relu"), scales),
        bind=({"c": Source("b_in")},),
    )


@theorem(
    title="The neurons of an MLP may not be rotated",
    chapter=4,
    source=BASIS,
    covers=("S3-013",),
)
def activation_does_not_commute_with_rotations() -> NonIdentity:
    """The neurons of an MLP cannot be rotated: for an orthogonal Q that is no permutation, g(N Q)
    is in general not g(N) Q. In this sense the neurons are a privileged basis, unlike the
    coordinates of the residual stream. In the formula N is `mlp_pre` (n × d_mlp), what the
    activation is applied to.

    That features should lie along this basis is a further claim, and an empirical one.
    """
    return NonIdentity(
        activation(matmul(N, Q), "relu"),
        matmul(activation(N, "relu"), Q),
        given=PERMUTATION[1:],
    )


@theorem(
    title="A rotation of the stream does not change the neurons that read it",
    chapter=4,
    convention="row",
    source=BASIS,
    covers=("S3-013",),
)
def stream_rotation_is_unseen_by_neurons() -> Statement:
    """Rotate the residual stream by Q and let W_in undo it (QᵀW_in): every neuron has the same
    activation as before. So the stream that neurons read has no privileged basis of its own.

    A norm between stream and neurons restricts Q (`rms_norm_rotation`).
    """
    turn = MatrixSymbol("Q", d, d)
    return Statement(
        activation(matmul(matmul(X, turn), matmul(Transpose(turn), W_in))),
        activation(matmul(X, W_in)),
        given=[(matmul(turn, Transpose(turn)), Identity(d))],
        on_models=False,
    )
