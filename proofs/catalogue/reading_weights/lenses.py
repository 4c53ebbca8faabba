"""Chapter 7: reading the middle of a model with its own unembedding: lenses and probes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum, sqrt
from typing import Any

import numpy as np
from sympy import (
    Identity,
    MatrixExpr,
    MatrixSymbol,
    OneMatrix,
    Trace,
    Transpose,
    ZeroMatrix,
    symbols,
)
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.language.linear import Family, HeadSum, OneHot, matadd, matmul
from otimes.algebra.language.nonlinear import LayerNorm
from otimes.numeric.binding import Source
from otimes.numeric.circuits.lens import logit_lens
from otimes.numeric.circuits.translators import fit_translator
from otimes.numeric.model import Model
from otimes.proofs.catalogue.mlp_and_norm.parts import WITH_LAYER_NORM, eps, gained
from otimes.proofs.catalogue.sources import FRAMEWORK, PRIMER
from otimes.proofs.catalogue.symbols import L, V, X, d, d_head, l, n, p, q, row, size
from otimes.proofs.claims import Bound, Method, NonIdentity, Square, Statement, Trial
from otimes.proofs.theorem import theorem

LENS = "nostalgebraist 2020, “Interpreting GPT: the logit lens”"
TUNED = "Belrose et al. 2023, “Eliciting Latent Predictions with the Tuned Lens”"
U = np.finfo(float).eps / 2

Y = MatrixSymbol("Y", n, d)  # what is written to the stream X
scale = MatrixSymbol("scale", n, 1)  # one over the size of the row that the last norm divides by
gain = MatrixSymbol("ln_final_gain", 1, d)


def _through_frozen_norm(rows: MatrixExpr) -> MatrixExpr:
    """Return logits through a LayerNorm that divides by a fixed number at each position."""
    centred = matadd(Identity(d), matmul(-1 / d, OneMatrix(d, d)))
    return matmul(DiagMatrix(scale), rows, centred, DiagMatrix(Transpose(gain)), row.W_U)


@theorem(
    title="The logit lens after a layer is a prefix sum of the writes",
    chapter=7,
    convention="row",
    source=f"{LENS}; {PRIMER}, “Decoding in vocabulary space”",
    covers=("S0-12",),
)
def logit_lens_is_prefix_sum() -> Statement:
    """The logit lens reads a middle layer as if it were the last: it applies the unembedding to the
    residual stream there. What it shows is a partial sum, the logits of the embedding and of the
    layers so far (f[l]). Between the readings at two layers lies exactly what the layers between
    them wrote, times W_U. X_0 is the embedding, f[l] what the first layers wrote, and f_later[k]
    what the later ones wrote.

    So one can see where in the network a prediction builds up. This is the lens for a model without
    a norm at the end (`lens_steps_add_up` has the norm).
    """
    written = Family("f", (L,), n, d)
    e = size("r")
    later = Family("f_later", (e,), n, d)
    k = symbols("k", integer=True)
    X_0 = MatrixSymbol("X_0", n, d)
    stream = matadd(X_0, HeadSum(written[l], (l, L)))
    end = matadd(stream, HeadSum(later[k], (k, e)))
    return Statement(
        matadd(matmul(end, row.W_U), matmul(-1, stream, row.W_U)),
        HeadSum(matmul(later[k], row.W_U), (k, e)),
        on_models=False,
    )


@theorem(
    title="With the scale of the final norm, steps of the logit lens add up",
    chapter=7,
    convention="row",
    source=f"{LENS}; {FRAMEWORK}, “Handling layer normalization”",
    covers=("S0-12",),
)
def lens_steps_add_up() -> Statement:
    """With a final LayerNorm, steps of the logit lens add up if all readings use the same scale,
    that of the final stream. The norm centres, divides row i by a number (scale holds its
    reciprocal), and multiplies by a gain; with the scale held fixed it is linear, so the reading of
    X + Y minus that of X is that of Y.

    Two scales are in use for the lens. The final one makes readings of different layers comparable
    and additive; each layer's own does not (`own_scale_does_not_add_up`).
    """
    return Statement(
        matadd(_through_frozen_norm(matadd(X, Y)), matmul(-1, _through_frozen_norm(X))),
        _through_frozen_norm(Y),
        bind=(
            {
                "X": Source("resid_pre"),
                "Y": Source("attn_out"),
                "scale": Source("embed", cols=1, example=True),
            },
        ),
        bare=False,
        config=WITH_LAYER_NORM,
        places={
            "resid_mid": matadd(X, Y),
            "ln_final": gained("ln_final", LayerNorm(MatrixSymbol("final", n, d), eps)),
            "logits": matmul(MatrixSymbol("ln_final", n, d), row.W_U),
        },
    )


@theorem(
    title="With the scale of each stream, steps of the logit lens do not add up",
    chapter=7,
    convention="row",
    source=f"{LENS}; {FRAMEWORK}, “Handling layer normalization”",
)
def own_scale_does_not_add_up() -> NonIdentity:
    """If the logit lens normalises each stream by its own size, as is usual, then the difference
    between two layers' readings is not the reading of what was written between them. Sizes differ
    from layer to layer, and the norm is not linear. X is the stream before and Y what a layer
    writes to it.

    Such a picture shows predictions correctly. Only do not read differences of its rows as
    contributions.
    """
    return NonIdentity(
        matadd(matmul(LayerNorm(matadd(X, Y)), row.W_U), matmul(-1, LayerNorm(X), row.W_U)),
        matmul(LayerNorm(Y), row.W_U),
        bind=({"X": Source("resid_pre"), "Y": Source("attn_out")},),
        on_models=True,
        places={"resid_mid": matadd(X, Y)},
        bare=False,
        unchanged_by={"W_U with its columns shifted": "the logits are those of any tokens"},
    )


@theorem(
    title="The logit lens is the prediction with later layers switched off",
    chapter=7,
    convention="row",
    source=f"{PRIMER}, “Decoding in vocabulary space”; {LENS}",
    covers=("S3-087",),
)
def lens_is_early_exit() -> Statement:
    """The logit lens after some layer is what the model would predict if all later layers wrote
    nothing. In the formula W_O and W_out of the later layers are zero, Z is what their heads have
    mixed and N the activations of their neurons; the final norm is the real one. X_0 + Σ_l f[l] is
    the stream that the lens reads, ε is the constant of the norm, and W_O and W_out of later layers
    have the index “later”.

    So the lens is an ablation of all later layers at once. It need not be what the model “believes”
    at that layer.

    The norm uses the size of the stream that is left, which is the lens with own scale. Output
    biases must be removed too.
    """
    written, eps = Family("f", (L,), n, d), symbols("epsilon", positive=True)
    Z, W_O = MatrixSymbol("Z", n, p), MatrixSymbol("W_O_later", p, d)
    N, W_out = MatrixSymbol("N", n, q), MatrixSymbol("W_out_later", q, d)
    stream = matadd(MatrixSymbol("X_0", n, d), HeadSum(written[l], (l, L)))
    return Statement(
        matmul(LayerNorm(matadd(stream, matmul(Z, W_O), matmul(N, W_out)), eps), row.W_U),
        matmul(LayerNorm(stream, eps), row.W_U),
        given=((W_O, ZeroMatrix(p, d)), (W_out, ZeroMatrix(q, d))),
        on_models=False,
    )


@theorem(
    title="logit_lens: the unembedding applied to each stream",
    chapter=7,
    source=LENS,
    covers=("S0-12", "S3-087"),
)
def logit_lens_method() -> Method:
    """`ot.logit_lens` applies the final norm and the unembedding to the stream at each layer. It is
    compared with two other computations: the recorded stream, normalised and unembedded by loops;
    and, for each layer, the forward pass of a model in which that layer and all later ones write
    nothing.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        for scale_of in ("own", "final"):
            found = logit_lens(model, tokens, scale_of).values[:, 0, :6]
            plain, bound = _lens_by_loops(model, tokens, scale_of == "own", 6)
            yield Trial(f"{scale_of} scale, by loops", found, plain, bound)
        own = logit_lens(model, tokens, "own").values[:, 0]
        _, bound = _lens_by_loops(model, tokens, True, model.d_vocab)
        for layer in range(model.n_layers):
            shapes = model.config.tensor_shapes()
            off: dict[str, np.ndarray] = {}
            for name in ("W_O", "b_O", "W_out", "b_out"):
                if name in shapes:
                    off[name] = np.array(model.weights[name], dtype=np.float64)
                    off[name][layer:] = 0.0
            skipped = model.changed(off).forward(tokens, ["logits"])["logits"][-1]
            yield Trial(f"layers from {layer} on ablated", own[layer], skipped, bound[layer])

    return Method(
        "ot.logit_lens",
        ("logit_lens_is_prefix_sum", "lens_steps_add_up", "lens_is_early_exit"),
        trials,
        law=r"\ell^l = \mathrm{LN}_f(x^l) W_U",
    )


@theorem(
    title="The unembedding is a linear probe for each token",
    chapter=7,
    convention="row",
    source=f"{PRIMER}, “Decoding in vocabulary space”",
    covers=("S3-090",),
)
def unembed_is_probe() -> Statement:
    """Each column of the unembedding is a linear probe: the logit of token w is the dot product of
    the final stream X_L with column w of W_U. The softmax over them is multinomial logistic
    regression, trained together with the model.

    So reading a token's logit and reading a probe for some other property are the same operation; a
    probe is one more column.
    """
    w = symbols("w", integer=True)
    final, token = MatrixSymbol("X_L", n, d), OneHot(w, V)
    logits = matmul(final, row.W_U)
    return Statement(
        matmul(final, matmul(row.W_U, token)),
        matmul(logits, token),
        on_models=False,
    )


@theorem(
    title="A fitted translator is never worse than the lens it contains",
    chapter=7,
    source=f"{TUNED}; least squares: Golub and Van Loan, §5.3",
    covers=("S3-088",),
)
def translator_no_worse() -> Bound:
    """A fitted affine map from a middle layer to the final stream is never worse than the logit
    lens, on the data it is fitted to. B_1 is the least-squares fit of Y ≈ X B (with a column of
    ones in X for the bias), and any other B, such as the identity, has an error larger by ‖X(B −
    B_1)‖².

    Such maps are called translators, and the reading a tuned lens.

    So part of a good score comes from the fit: the translator may have learnt what later layers do.
    Tuned lenses in the literature are fitted by the KL divergence of the logits instead. They
    contain the plain lens in the same way.
    """
    rows, target = MatrixSymbol("X", n, p), MatrixSymbol("Y", n, q)
    best, other = MatrixSymbol("B_1", p, q), MatrixSymbol("B", p, q)

    def missed(B: MatrixExpr) -> Any:
        left = matadd(target, matmul(-1, rows, B))
        return Trace(matmul(left, Transpose(left)))

    return Bound(
        missed(best),
        missed(other),
        because=(Square(matmul(rows, matadd(other, matmul(-1, best)))),),
        given=((matmul(Transpose(rows), rows, best), matmul(Transpose(rows), target)),),
        tight={"X": [[1]], "Y": [[2]], "B": [[2]], "B_1": [[2]]},
        on_models=False,
    )


@theorem(
    title="A translator of a head's output, and the logits it has without one",
    chapter=7,
    convention="row",
    source="Sakarvadia et al. 2023, “Attention Lens”",
    covers=("S3-089",),
)
def attention_lens() -> Statement:
    """A lens for a single head puts a fitted map I + D between what the head writes, A v W_O, and
    the unembedding. The logits are then a sum of two terms: the head's direct effect, and what D
    adds to it. Here v (n × d_head) are the head's values.

    With D = 0 it is direct logit attribution. A large second term shows the translator at work and
    not the head.
    """
    pattern, values = MatrixSymbol("A", n, n), MatrixSymbol("v", n, d_head)
    D = MatrixSymbol("D", d, d)
    written = matmul(pattern, values, row.W_O)
    return Statement(
        matmul(written, matadd(Identity(d), D), row.W_U),
        matadd(matmul(written, row.W_U), matmul(written, D, row.W_U)),
        places={"head_out": written},
        bind=({"D": Source("W_U", rows=128, cols=128)},),
        unchanged_by={
            "W_U with its columns shifted": "what a head adds to the logits is not recorded"
        },
    )


@theorem(
    title="fit_translator: an affine map from a stream to the final one",
    chapter=7,
    source=f"{TUNED}; Sakarvadia et al. 2023, “Attention Lens”",
    covers=("S3-088", "S3-089"),
)
def translator_method() -> Method:
    """`ot.fit_translator` fits an affine map by least squares, from rows recorded at one point of a
    model (a stream, or what a head writes) to rows at another. It is compared, on a few columns,
    with the normal equations solved by elimination.

    It is how tuned lenses are made here (`translator_no_worse`).
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if not model.n_layers:
            return
        places = model.forward(tokens, ["resid_pre.0", "head_out.0", "final"])
        target = places["final"][:, :2]
        for what, rows in (
            ("stream", places["resid_pre.0"][:, :3]),
            ("head", places["head_out.0"][0, :, :3]),
        ):
            A, b = fit_translator(rows, target)
            both = np.vstack([A, b])
            with_ones = np.hstack([rows, np.ones((len(rows), 1))])
            plain = _normal_equations(with_ones.tolist(), target.tolist())
            # Normal equations lose the square of the condition, which least squares do not.
            condition = np.linalg.cond(with_ones)
            bound = 20 * len(rows) * U * condition**2 * np.linalg.norm(both)
            yield Trial(f"from a {what}", both, np.array(plain), bound)

    return Method(
        "ot.fit_translator",
        ("translator_no_worse", "attention_lens"),
        trials,
        law=r"\ell^l = \mathrm{LN}_f(x^l A_l + b_l) W_U",
    )


def _lens_by_loops(
    model: Model, tokens: Sequence[int], own: bool, n_logits: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return some logits of the lens at the last position by loops, and the rounding between.

    Along the longest path lie 2 d + 10 roundings; centring and the scale see the same row. That is
    doubled for the other side, and again for what is of higher order.
    """
    config, size = model.config, model.d_model
    streams = [*(f"resid_pre.{layer}" for layer in range(model.n_layers)), "final"]
    places = model.forward(tokens, streams)
    rows = [places[name][-1].tolist() for name in streams]
    W_U, b_U = model.W_U[:, :n_logits], model.b_U[:n_logits]
    found, bounds = [], []
    for x in rows:
        y, most = list(x), [abs(entry) for entry in x]
        if config.final_norm:
            gains, biases = model.ln_final_gain.tolist(), model.ln_final_bias.tolist()
            centre = config.norm == "layer"
            sized = x if own else rows[-1]
            mean = fsum(x) / size if centre else 0.0
            mean_sized = fsum(sized) / size if centre else 0.0
            square = fsum((entry - mean_sized) ** 2 for entry in sized) / size
            over = 1 / sqrt(square + config.norm_eps)
            spread = fsum(map(abs, x)) / size if centre else 0.0
            y = [(x[a] - mean) * over * gains[a] + biases[a] for a in range(size)]
            most = [
                (abs(x[a]) + spread) * over * abs(gains[a]) + abs(biases[a]) for a in range(size)
            ]
        columns = W_U.T.tolist()
        found.append(
            [
                fsum(y[a] * column[a] for a in range(size)) + b
                for column, b in zip(columns, b_U.tolist(), strict=True)
            ]
        )
        bounds.append(4 * (2 * size + 10) * U * (np.array(most) @ np.abs(W_U) + np.abs(b_U)))
    return np.array(found), np.array(bounds)


def _normal_equations(rows: list[list[float]], target: list[list[float]]) -> list[list[float]]:
    """Return B with XᵀX B = XᵀY by Gaussian elimination with pivoting."""
    size, columns = len(rows[0]), len(target[0])
    table = [
        [fsum(x[a] * x[b] for x in rows) for b in range(size)]
        + [fsum(x[a] * y[c] for x, y in zip(rows, target, strict=True)) for c in range(columns)]
        for a in range(size)
    ]
    for a in range(size):
        best = max(range(a, size), key=lambda k: abs(table[k][a]))
        table[a], table[best] = table[best], table[a]
        table[a] = [entry / table[a][a] for entry in table[a]]
        for k in range(size):
            if k != a:
                factor = table[k][a]
                table[k] = [u - factor * v for u, v in zip(table[k], table[a], strict=True)]
    return [line[size:] for line in table]
