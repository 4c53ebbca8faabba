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
from otimes.numeric.load import bundled_models
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
    title="The feed-forward layer: f(x W_in + b_in) W_out + b_out",
    chapter=4,
    convention="row",
    source=f"{PRIMER}, “Feedforward network block”; {VASWANI}, §3.3",
    covers=("S0-31",),
)
def feed_forward_layer() -> Definition:
    """g(X W_in + b_in) W_out + b_out: every position by itself, in three steps. W_in reads d_mlp
    numbers from the stream, g acts on each of them alone, W_out writes them back. X is what the
    layer reads: the stream after attention, behind its norm where there is one. (Here with GPT-2's
    g; that g may be any function is used everywhere below.)
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
    """All neurons side by side, each from its own column: what neuron u is depends on one column of
    W_in and one entry of b_in, as g acts on each number alone. Column u is a detector, and its
    product with the stream is how well it matches. Softmax would not do: there every neuron would
    depend on all others.
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
    covers=("S0-34", "S3-011"),
)
def feed_forward_is_sum_over_neurons() -> Statement:
    """Each neuron adds its row of W_out, times how active it is: what the layer writes is a
    combination of d_mlp fixed rows, of which only the coefficients depend on the input. So a
    neuron's effect on the logits can be told one by one, and what it can ever write is known from
    the weights.

    Rows of W_out and columns of W_in are different vectors: calling both w_u makes W_out the
    transpose of W_in. How active a neuron is depends on the position too.
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
    """The layer is added to the stream, like a head: x^mid + FFN(x^mid), for each neuron its row,
    and b_out once. Nothing that stands in the stream is erased, though a neuron may write its
    negative.
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
    """For one position x: FFN(x) = g(x Kᵀ) V = Σ_u g(x · k_u) v_u, with the rows k_u of K = W_inᵀ
    as keys and the rows v_u of V = W_out as values. It is attention's formula with fixed keys and
    values, as many as there are neurons, and with g in place of softmax: several memories may
    answer fully, or none.

    Nothing of g is used but that it acts on each number alone.
    """
    x = MatrixSymbol("x_i", 1, d)
    K, V = MatrixSymbol("K", d_mlp, d), MatrixSymbol("V", d_mlp, d)
    one = Transpose(OneHot(u, d_mlp))
    answer = activation(matmul(x, Transpose(matmul(one, K))))
    return Statement(
        matmul(activation(matmul(x, Transpose(K))), V),
        HeadSum(matmul(answer, matmul(one, V)), (u, d_mlp)),
        bind=(
            {
                "x_i": Source("ln2", rows=1),
                "K": Source("W_in", transposed=True),
                "V": Source("W_out"),
            },
        ),
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
    """Let E be any matrix with W_out E W_out = W_out (the pseudo-inverse is one): then E W_out
    projects onto the rows of W_out, and leaves what the neurons write as it is. Where d_mlp < d
    that is a real restriction; with d_mlp > d the rows usually span everything.
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
    """Without its bias the output has at most rank min(d, d_mlp), for any number of positions and
    any g at all: the bound comes from W_out alone. A layer with few neurons writes into a small
    subspace, which one can read from its weights.
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
    """If g were the identity, the layer would be one affine map of the stream, X (W_in W_out) plus
    a constant: more neurons than dimensions would gain nothing. That is why d_mlp > d makes sense
    only with a nonlinear g.
    """
    layer = matadd(
        matmul(matadd(matmul(X, W_in), everywhere(b_in)), W_out),
        everywhere(b_out),
    )
    constant = matadd(matmul(b_in, W_out), b_out)
    return Statement(
        layer, matadd(matmul(X, matmul(W_in, W_out)), everywhere(constant)), bind=READS
    )


@theorem(
    title="The rank of a linear layer through neurons",
    chapter=4,
    convention="row",
    source="Goodfellow, Bengio and Courville 2016, “Deep learning”, §6.1",
    covers=("S0-71",),
)
def linear_layer_rank() -> Property:
    """The product W_in W_out has rank at most min(d, d_mlp), and so never more than d, however many
    neurons stand between: with d_mlp > d the same map has a smaller layer, and with d_mlp < d it is
    a bottleneck.
    """
    return Property(Fact("rank_at_most", matmul(W_in, W_out), Min(d, d_mlp)), bind=(FEW_NEURONS,))


@theorem(
    title="2d ReLU neurons pass a stream of d dimensions on unchanged",
    chapter=4,
    source="Glorot, Bordes and Bengio 2011, “Deep sparse rectifier networks”, §3",
    covers=("S0-71",),
)
def relu_pairs_pass_the_stream() -> Statement:
    """A number is ReLU(x) - ReLU(-x): two neurons for each dimension, which read it with + and -
    and write it so. A ReLU layer can do all that a linear one can, at the price of 2d neurons, and
    d_mlp = 4d leaves as many again for what is not linear. (GELU and SiLU obey the same identity.)
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
    """All pre-activations of a text together, positions × neurons, have at most rank d, as they are
    read from streams of d dimensions (one more with a bias): their columns are far from free.
    """
    return Property(Fact("rank_at_most", matmul(X, W_in), Min(n, d, d_mlp)), bind=(LONG,))


@theorem(
    title="After the activation function the rank of neurons is not bounded by d",
    chapter=4,
    source="follows by example",
    covers=("S0-72",),
)
def activation_raises_rank() -> NonIdentity:
    """For a stream of one dimension the pre-activations N are of rank one, and every such matrix
    has N NᵀN = tr(NNᵀ) N. After ReLU that is false: the rank has grown.
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
    """A stream of two dimensions only: before ReLU the rank is at most two, after it nothing is
    left of that but min(n, d_mlp), and this is reached (the check shows three positions and three
    neurons of rank three, in exact numbers).
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
    """On text a trained model makes use of it: the activations of its neurons at many positions
    span more dimensions than the stream has. Their singular values are counted as a computer counts
    them, those above rounding.
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
        return Observed(
            figure, {"dimensions beyond d after": after - width, "before": width - before}
        )

    return Observation(
        "the numerical rank of mlp_post is above d, and that of mlp_pre without its bias is not",
        observe,
        {"dimensions beyond d after": 0, "before": -1},
        outcome="seen at random too",
    )


@theorem(
    title="Four times as many neurons as dimensions",
    chapter=4,
    source=f"{VASWANI}, §3.3",
    covers=("S0-32",),
)
def neurons_are_four_times_d() -> Observation:
    """d_mlp = 4d is a habit and no theorem: most models keep to it, and nothing here uses it. With
    a gate (Llama's kind) there are three matrices in place of two, and 8d/3 gives as many weights.
    """

    def observe(load: Load) -> Observed:
        public = {"GPT-2 small": gpt2_config(), "Llama 3.2 1B": llama_config()}
        bundled = {name: load(name).config for name in bundled_models()}
        configs = {name: c for name, c in {**public, **bundled}.items() if c.d_mlp}
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
    """For a permutation Q, g(N Q) = g(N) Q whatever g is. So W_in Q and QᵀW_out make the same
    layer: the number of a neuron means nothing, and two models are compared neuron by neuron only
    after they have been matched.
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
    """A factor for each neuron that is not negative, written as a square, passes through ReLU. So
    of a ReLU neuron the length of its column of W_in and that of its row of W_out mean nothing by
    themselves, only their product does. GELU has no such freedom, nor has any g a sign to spare
    unless it is odd.
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
    """For an orthogonal Q that is no permutation g(NQ) is another thing than g(N)Q: neurons are a
    privileged basis. That features should lie along it is a further claim, and an empirical one.
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
    """Rotate the stream, let W_in undo it, and every neuron is what it was: the stream has no
    privileged basis of its own. (A norm between the two asks for more, see the gauge of the
    stream.)
    """
    turn = MatrixSymbol("Q", d, d)
    return Statement(
        activation(matmul(matmul(X, turn), matmul(Transpose(turn), W_in))),
        activation(matmul(X, W_in)),
        given=[(matmul(turn, Transpose(turn)), Identity(d))],
        on_models=False,
    )
