"""Twelve derivations as papers have them: chains of equations, their hypotheses, and near misses.

Every link of a chain is proved for all sizes, with a certificate and named steps; every near miss
is refuted by numbers. The pages `derivations/` of the site are made of this list.

>>> from otimes.algebra.chain import check_chain
>>> lora = DERIVATIONS["lora"]
>>> check_chain(lora.chain, lora.given).passed
True
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sympy import (
    BlockMatrix,
    HadamardProduct,
    Identity,
    Inverse,
    KroneckerProduct,
    MatrixSymbol,
    OneMatrix,
    Transpose,
    ZeroMatrix,
    symbols,
)
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.language.defined import Rotation
from otimes.algebra.language.derivative import gradient, jacobian
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import (
    Family,
    HeadSum,
    OneHot,
    matadd,
    matmul,
    vec_rows,
)
from otimes.algebra.language.nonlinear import Activation, CausalMask, RowSoftmax
from otimes.algebra.language.positions import Positions


class Miss(NamedTuple):
    """An equation that is easily taken for one of the chain, and is false."""

    says: str
    lhs: Any
    rhs: Any
    given: tuple[Any, ...] = ()


class PaperDerivation(NamedTuple):
    """A derivation: its expressions in order, what is given, and what is false."""

    title: str
    source: str
    prose: str
    chain: tuple[Any, ...]
    misses: tuple[Miss, ...]
    given: tuple[Any, ...] = ()


n, d, k, m, H, L = symbols("n d k m H L", integer=True, positive=True)
i, j, l, h = symbols("i j l h", integer=True)  # noqa: E741 (the layer)
a, b, s = symbols("a b s", real=True)


def _matrices(names: str, rows: Any, cols: Any) -> list[Any]:
    return [MatrixSymbol(name, rows, cols) for name in names.split()]


def _times(*factors: Any) -> Any:
    return HadamardProduct(*factors, evaluate=False)


def _less(e: Any, f: Any) -> Any:
    return matadd(e, matmul(-1, f))


def _exp(e: Any) -> Any:
    return Activation("exp", e)


X, V_rows = _matrices("X V", n, d)


def _rotary() -> PaperDerivation:
    theta = MatrixSymbol("theta", k, 1)
    W_Q, W_K = _matrices("W_Q W_K", 2 * k, d)
    x, y = _matrices("x y", d, 1)
    query = matmul(Rotation(a * theta), W_Q, x)
    key = matmul(Rotation(b * theta), W_K, y)

    def between(rotation: Any) -> Any:
        return matmul(Transpose(x), Transpose(W_Q), rotation, W_K, y)

    relative = between(Rotation((b - a) * theta))
    return PaperDerivation(
        "Rotary positions are relative",
        "Su et al. 2021, “RoFormer”, §3.2.2",
        "The query of position $a$ and the key of position $b$ are rotated by their positions. "
        "Their score depends on the positions by the difference $b - a$ alone.",
        (
            matmul(Transpose(query), key),
            between(matmul(Transpose(Rotation(a * theta)), Rotation(b * theta))),
            relative,
        ),
        (
            Miss(
                "the difference the other way round",
                matmul(Transpose(query), key),
                between(Rotation((a - b) * theta)),
            ),
            Miss(
                "only the queries rotated",
                matmul(Transpose(query), W_K, y),
                relative,
            ),
        ),
    )


def _alibi() -> PaperDerivation:
    S, ones, p = MatrixSymbol("S", n, n), OneMatrix(n, 1), Positions(n)
    keys, queries = matmul(ones, Transpose(p)), matmul(p, Transpose(ones))
    causal = CausalMask(n)
    start = RowSoftmax(matadd(S, matmul(s, _less(keys, queries))), causal)
    return PaperDerivation(
        "The distances of ALiBi are a bias of the keys",
        "Press, Smith and Lewis 2022, “Train Short, Test Long”, §3",
        "The bias of key $j$ for query $i$ is $s\\,(j - i)$. Its part $-s\\,i$ is the same for a "
        "whole row, which softmax ignores.",
        (
            start,
            RowSoftmax(matadd(S, matmul(s, keys), matmul(-s, queries)), causal),
            RowSoftmax(matadd(S, matmul(s, keys)), causal),
        ),
        (
            Miss("the opposite slope", start, RowSoftmax(matadd(S, matmul(-s, keys)), causal)),
            Miss("no slope at all", start, RowSoftmax(S, causal)),
        ),
    )


def _kv_cache() -> PaperDerivation:
    x = MatrixSymbol("x", 1, d)
    W_Q, W_K, W_V = _matrices("W_Q W_K W_V", d, k)
    stream = BlockMatrix([[X], [x]])
    last = BlockMatrix([[ZeroMatrix(1, n), Identity(1)]])
    keys = BlockMatrix([[matmul(X, W_K)], [matmul(x, W_K)]])
    values = BlockMatrix([[matmul(X, W_V)], [matmul(x, W_V)]])
    scores = matmul(stream, W_Q, Transpose(W_K), Transpose(stream))
    whole = matmul(last, RowSoftmax(scores, CausalMask(n + 1)), stream, W_V)
    cached = matmul(RowSoftmax(matmul(x, W_Q, Transpose(keys))), values)
    stale = BlockMatrix([[matmul(X, W_V)], [ZeroMatrix(1, k)]])
    return PaperDerivation(
        "A cached step is the last row of the whole computation",
        "Pope et al. 2023, “Efficiently Scaling Transformer Inference”, §2.1; Vaswani et al. 2017, "
        "§3.2",
        "The stream has $n$ positions and one more, $x$. What attention writes at the last "
        "position is computed from its query and from the keys and values of all positions, of "
        "which those of the first $n$ are known from before.",
        (
            whole,
            matmul(RowSoftmax(matmul(last, scores)), stream, W_V),
            matmul(RowSoftmax(matmul(x, W_Q, Transpose(W_K), Transpose(stream))), stream, W_V),
            matmul(RowSoftmax(matmul(x, W_Q, Transpose(matmul(stream, W_K)))), matmul(stream, W_V)),
            cached,
        ),
        (
            Miss(
                "the value of the new position missing",
                whole,
                matmul(RowSoftmax(matmul(x, W_Q, Transpose(keys))), stale),
            ),
            Miss(
                "the new position not among the keys",
                whole,
                matmul(RowSoftmax(matmul(x, W_Q, Transpose(matmul(X, W_K)))), X, W_V),
            ),
        ),
    )


def _mla() -> PaperDerivation:
    c = symbols("c", integer=True, positive=True)
    down = MatrixSymbol("W_DKV", d, c)
    W_Q, W_UK, W_UV = (
        Family(name, (H,), rows, k)[h] for name, rows in (("W_Q", d), ("W_UK", c), ("W_UV", c))
    )
    W_O = Family("W_O", (H,), k, d)[h]
    latent = matmul(X, down)

    def layer(scores: Any, *values: Any) -> Any:
        return HeadSum(matmul(RowSoftmax(scores, CausalMask(n)), *values), (h, H))

    keys = Transpose(matmul(latent, W_UK))
    start = layer(matmul(X, W_Q, keys), matmul(latent, W_UV), W_O)
    absorbed = layer(
        matmul(X, matmul(W_Q, Transpose(W_UK)), Transpose(latent)),
        latent,
        matmul(W_UV, W_O),
    )
    return PaperDerivation(
        "Latent attention absorbs its up-projections",
        "DeepSeek-AI 2024, “DeepSeek-V2”, §2.1.2",
        "Keys and values are read from a latent vector, $C = X\\,W_{DKV}$. The matrices that "
        "expand it join those of the queries and of the output, so that the cache holds $C$ alone.",
        (
            start,
            layer(
                matmul(X, matmul(W_Q, Transpose(W_UK)), Transpose(latent)),
                matmul(latent, W_UV),
                W_O,
            ),
            absorbed,
        ),
        (
            Miss(
                "keys absorbed without their transpose, values for keys",
                start,
                layer(
                    matmul(X, matmul(W_Q, Transpose(W_UV)), Transpose(latent)),
                    latent,
                    matmul(W_UV, W_O),
                ),
            ),
            Miss(
                "the values absorbed by the keys' matrix",
                start,
                layer(
                    matmul(X, matmul(W_Q, Transpose(W_UK)), Transpose(latent)),
                    latent,
                    matmul(W_UK, W_O),
                ),
            ),
        ),
    )


def _online_softmax() -> PaperDerivation:
    S, T = MatrixSymbol("S", n, a_), MatrixSymbol("T", n, b_)
    V, W = MatrixSymbol("V", a_, d), MatrixSymbol("W", b_, d)
    old, new = _matrices("mu nu", n, 1)
    wide = OneMatrix(1, d)

    def shifted(scores: Any, maximum: Any) -> Any:
        return _exp(_less(scores, matmul(maximum, OneMatrix(1, scores.shape[1]))))

    def total(weights: Any) -> Any:
        return matmul(weights, OneMatrix(weights.shape[1], 1))

    rescale = _exp(_less(old, new))
    scores, values = BlockMatrix([[S, T]]), BlockMatrix([[V], [W]])
    first, second = shifted(S, old), shifted(T, new)
    weights = BlockMatrix([[shifted(S, new), second]])
    output = matmul(RowSoftmax(scores), values)
    whole = _times(output, matmul(total(weights), wide))
    inside = BlockMatrix([[_less(S, _wide(new, a_)), _less(T, _wide(new, b_))]])
    ones = OneMatrix(a_ + b_, a_ + b_)
    sums = matadd(_times(rescale, total(first)), total(second))
    end = matadd(_times(matmul(rescale, wide), matmul(first, V)), matmul(second, W))
    return PaperDerivation(
        "Softmax in one pass, rescaled when the maximum changes",
        "Milakov and Gimelshein 2018, “Online normalizer calculation for softmax”, §3; Dao et al. "
        "2022, “FlashAttention”, §3.1",
        "Scores come in two blocks, $S$ and then $T$. Sums over the first were formed with the "
        "shift $\\mu$, the maximum so far, and are rescaled to the shift $\\nu$. The result does "
        "not depend on the shifts, which need not be maxima. With $V$ and $W$ of ones it is the "
        "row sum.",
        (
            whole,
            matmul(_times(RowSoftmax(inside), matmul(_exp(inside), ones)), values),
            matmul(_exp(inside), values),
            matadd(matmul(shifted(S, new), V), matmul(second, W)),
            end,
        ),
        (
            Miss("the output not rescaled", whole, matadd(matmul(first, V), matmul(second, W))),
            Miss(
                "the row sums not rescaled",
                total(weights),
                matadd(total(first), total(second)),
            ),
            Miss(
                "divided by row sums of another shift",
                _times(output, matmul(sums, wide)),
                matadd(matmul(first, V), matmul(second, W)),
            ),
        ),
    )


def _wide(column: Any, size: Any) -> Any:
    return matmul(column, OneMatrix(1, size))


a_, b_ = symbols("a b", integer=True, positive=True)


def _linear_attention() -> PaperDerivation:
    Q, K = _matrices("Q K", n, d)
    V = MatrixSymbol("V", n, k)
    (row,) = (Transpose(OneHot(i, n)),)
    keys, values = matmul(Transpose(OneHot(j, n)), K), matmul(Transpose(OneHot(j, n)), V)

    def f(e: Any) -> Any:
        return Activation("phi", e)

    pattern = _times(matmul(f(Q), Transpose(f(K))), CausalMask(n))
    start = matmul(row, pattern, V)

    def state(end: Any) -> Any:
        return HeadSum(matmul(Transpose(f(keys)), values), (j, end))

    before = state(i)
    now = matmul(Transpose(f(matmul(row, K))), matmul(row, V))
    query = f(matmul(row, Q))
    return PaperDerivation(
        "Linear attention is a recurrence over a state",
        "Katharopoulos et al. 2020, “Transformers are RNNs”, §3.3–3.4",
        "Without softmax the causal sum over keys and values is taken first. It is a matrix, the "
        "state, to which each position adds $\\varphi(k_i)\\,v_i^\\top$.",
        (
            start,
            HeadSum(matmul(f(matmul(row, Q)), Transpose(f(keys)), values), (j, i + 1)),
            matmul(query, state(i + 1)),
            matmul(query, matadd(before, now)),
        ),
        (
            Miss("the state before the position", start, matmul(query, before)),
            Miss("without the causal mask", start, matmul(query, state(n))),
        ),
    )


def _rank_collapse() -> PaperDerivation:
    A, W = Family("A", (L,), n, n), Family("W", (L,), d, d)
    ones = OneMatrix(n, 1)
    centre = _less(Identity(n), matmul(1 / n, OneMatrix(n, n)))
    rows = (matmul(A[l], ones), ones)
    patterns = LayerProduct(A[l], (l, L))
    weights = LayerProduct(W[l], (l, L), True)
    start = matmul(centre, patterns, X, weights)
    return PaperDerivation(
        "Attention alone only shrinks what differs between positions",
        "Dong, Cordonnier and Loukas 2021, “Attention is not all you need”, §2 and appendix A",
        "$P = I - \\tfrac{1}{n} \\mathbf{1} \\mathbf{1}^\\top$ takes the mean off. The rows of "
        "patterns sum to one, so equal rows stay equal, through any number of layers without skip "
        "connections: what differs at the end comes from what differed at the start.",
        (
            start,
            matmul(
                centre,
                patterns,
                matadd(matmul(centre, X), matmul(1 / n, ones, Transpose(ones), X)),
                weights,
            ),
            matadd(
                matmul(centre, patterns, centre, X, weights),
                matmul(1 / n, centre, patterns, ones, Transpose(ones), X, weights),
            ),
            matmul(centre, patterns, centre, X, weights),
        ),
        (
            Miss(
                "patterns whose rows do not sum to one",
                start,
                matmul(centre, patterns, centre, X, weights),
            ),
            Miss(
                "the mean subtracted at the start only",
                matmul(patterns, centre, X, weights),
                matmul(centre, patterns, centre, X, weights),
                (rows,),
            ),
        ),
        (rows,),
    )


def _head_jacobian() -> PaperDerivation:
    q = MatrixSymbol("q", d, 1)
    K = MatrixSymbol("K", n, d)
    V = MatrixSymbol("V", n, k)
    weights = Transpose(RowSoftmax(Transpose(matmul(K, q))))
    spread = _less(DiagMatrix(weights), matmul(weights, Transpose(weights)))
    ones = OneMatrix(n, 1)
    mean = matmul(Transpose(V), weights)
    output = jacobian(mean, q)
    return PaperDerivation(
        "The Jacobian of a head is a covariance of keys and values",
        "Vaswani et al. 2017, §3.2.1, differentiated; Kim, Papamakarios and Mnih 2021, “The "
        "Lipschitz Constant of Self-Attention”, §3",
        "By the query, the weights $p$ have the Jacobian $(\\operatorname{diag} p - p\\,p^\\top) "
        "K$. The head's is the covariance of values and keys under $p$: values are centred at "
        "what the head writes.",
        (
            output,
            matmul(Transpose(V), spread, K),
            _less(
                matmul(Transpose(V), DiagMatrix(weights), K),
                matmul(mean, Transpose(matmul(Transpose(K), weights))),
            ),
            matmul(
                Transpose(_less(V, matmul(ones, Transpose(mean)))),
                DiagMatrix(weights),
                _less(K, matmul(ones, Transpose(matmul(Transpose(K), weights)))),
            ),
        ),
        (
            Miss("the weights held constant", output, matmul(Transpose(V), DiagMatrix(weights), K)),
            Miss(
                "the sign of the second term",
                output,
                matmul(
                    Transpose(V),
                    matadd(DiagMatrix(weights), matmul(weights, Transpose(weights))),
                    K,
                ),
            ),
        ),
    )


def _lora() -> PaperDerivation:
    r = symbols("r", integer=True, positive=True)
    W = MatrixSymbol("W", n, d)
    B, A = MatrixSymbol("B", n, r), MatrixSymbol("A", r, d)
    x, g = MatrixSymbol("x", d, 1), MatrixSymbol("g", n, 1)
    merged = matmul(matadd(W, matmul(s, B, A)), x)
    loss = matmul(Transpose(g), merged)
    return PaperDerivation(
        "The gradient of a low-rank update",
        "Hu et al. 2021, “LoRA”, §4.1",
        "$W + s\\,B A$ is applied without being formed. Of a loss whose gradient by the output is "
        "$g$, the gradient by $B$ is an outer product with $A x$.",
        (
            gradient(loss, B),
            gradient(
                matadd(matmul(Transpose(g), W, x), matmul(s, Transpose(g), B, matmul(A, x))),
                B,
            ),
            matmul(s, g, Transpose(matmul(A, x))),
        ),
        (
            Miss("the factor forgotten", gradient(loss, B), matmul(g, Transpose(matmul(A, x)))),
            Miss(
                "merged in the wrong order of scales",
                merged,
                matadd(matmul(W, x), matmul(B, matmul(A, x))),
            ),
        ),
    )


def _gauges() -> PaperDerivation:
    S, B = Family("S", (L + 1,), d, d), Family("B", (L,), d, d)
    layer = B[l]

    def layers(e: Any) -> Any:
        return LayerProduct(e, (l, L))

    changed = layers(matmul(Inverse(S[l + 1]), layer, S[l]))
    return PaperDerivation(
        "A basis for each layer changes the ends alone",
        "Elhage et al. 2021, “A Mathematical Framework for Transformer Circuits”, “privileged "
        "basis”; a gauge of each layer",
        "Before layer $l$ the residual stream is written in the basis $S_l$. The bases between the "
        "layers cancel, by induction over the number of layers.",
        (
            changed,
            matmul(Inverse(S[L]), layers(layer), S[0]),
        ),
        (
            Miss(
                "the last basis at both ends", changed, matmul(Inverse(S[L]), layers(layer), S[L])
            ),
            Miss(
                "one basis off",
                layers(matmul(Inverse(S[l]), layer, S[l])),
                matmul(Inverse(S[L]), layers(layer), S[0]),
            ),
        ),
    )


def _sinusoids() -> PaperDerivation:
    omega = MatrixSymbol("omega", k, 1)

    def wave(position: Any) -> Any:
        return BlockMatrix([[Activation(f, matmul(position, omega))] for f in ("sin", "cos")])

    def turn(by: Any) -> Any:
        cos, sin = (DiagMatrix(Activation(f, matmul(by, omega))) for f in ("cos", "sin"))
        return BlockMatrix([[cos, sin], [matmul(-1, sin), cos]])

    def both(first: Any, second: Any) -> Any:
        return matmul(Transpose(wave(first)), wave(second))

    products = [
        _times(*[Activation(f, matmul(position, omega)) for position in (a, b)])
        for f in ("sin", "cos")
    ]
    total = matmul(OneMatrix(1, k), Activation("cos", matmul(b - a, omega)))
    return PaperDerivation(
        "Sinusoidal positions compare by their distance",
        "Vaswani et al. 2017, “Attention Is All You Need”, §3.5",
        "The product of two position vectors is a sum of cosines of their distance, one for each "
        "frequency.",
        (
            both(a, b),
            matmul(OneMatrix(1, k), matadd(*products)),
            total,
        ),
        (
            Miss(
                "the sum of the positions",
                both(a, b),
                matmul(OneMatrix(1, k), Activation("cos", matmul(a + b, omega))),
            ),
            Miss("turned the other way", wave(b), matmul(turn(a - b), wave(a))),
        ),
    )


def _kfac() -> PaperDerivation:
    G, A = MatrixSymbol("G", n, n), MatrixSymbol("A", d, d)
    V = MatrixSymbol("V", n, d)
    given = ((Transpose(G), G), (Transpose(A), A))
    start = matmul(Inverse(KroneckerProduct(G, A)), vec_rows(V))
    end = vec_rows(matmul(Inverse(G), V, Inverse(A)))
    return PaperDerivation(
        "The step of K-FAC is two small solves",
        "Martens and Grosse 2015, “Optimizing Neural Networks with Kronecker-factored Approximate "
        "Curvature”, §3 and §4.2",
        "The Fisher matrix of a layer is taken to be $G \\otimes A$, of the second moments of the "
        "output's gradients and of the inputs. Its inverse is applied to a gradient $V$ without "
        "being formed.",
        (
            start,
            matmul(KroneckerProduct(Inverse(G), Inverse(A)), vec_rows(V)),
            vec_rows(matmul(Inverse(G), V, Transpose(Inverse(A)))),
            end,
        ),
        (
            Miss("the factors exchanged", *_swapped(G, V)),
            Miss("one inverse forgotten", start, vec_rows(matmul(Inverse(G), V, A)), given),
        ),
        given,
    )


def _swapped(G: Any, V: Any) -> tuple[Any, Any]:
    B, W = MatrixSymbol("A", n, n), MatrixSymbol("V", n, n)
    return (
        matmul(Inverse(KroneckerProduct(G, B)), vec_rows(W)),
        vec_rows(matmul(Inverse(B), W, Transpose(Inverse(G)))),
    )


DERIVATIONS: dict[str, PaperDerivation] = {
    "rotary": _rotary(),
    "alibi": _alibi(),
    "kv_cache": _kv_cache(),
    "mla": _mla(),
    "online_softmax": _online_softmax(),
    "linear_attention": _linear_attention(),
    "rank_collapse": _rank_collapse(),
    "head_jacobian": _head_jacobian(),
    "lora": _lora(),
    "gauges": _gauges(),
    "sinusoids": _sinusoids(),
    "kfac": _kfac(),
}
