"""Chapter 3: convolution as heads whose patterns are shifts, its reach, and what heads cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy
from sympy import BlockMatrix, Identity, Inverse, MatrixSymbol, OneMatrix, Trace, ZeroMatrix

from otimes.algebra.facts import Fact
from otimes.algebra.language.linear import (
    ConcatHeads,
    Family,
    HeadSum,
    StackHeads,
    kron,
    matadd,
    matmul,
)
from otimes.algebra.language.nonlinear import CausalMask
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.attention_head.scores import less
from otimes.proofs.catalogue.symbols import H, X, d, d_head, m, n, size
from otimes.proofs.claims import Bound, Definition, Entries, Statement
from otimes.proofs.theorem import theorem

CORDONNIER = (
    "Cordonnier, Loukas and Jaggi 2020, “On the Relationship between Self-Attention and "
    "Convolutional Layers”, arXiv:1911.03584"
)
T, R, U = size("T"), size("R"), size("U")
t, r, u = sympy.symbols("t r u", integer=True)
k, L = size("k"), size("L")
SHIFT = less(Identity(n), Inverse(CausalMask(n)))  # ones just below the diagonal
S = Family("S", (T,), n, n)
W = Family("W", (T,), d, d)


def _convolve_plainly(X: Any, W: Any, n: int, d: int) -> Any:
    found = np.zeros((n, d), dtype=object)
    for position in range(n):
        for tap in range(min(3, position + 1)):
            for a in range(d):
                for b in range(d):
                    found[position, b] += X[position - tap, a] * W[tap, a, b]
    return found


@theorem(
    title="A causal convolution of width three: each tap a shift and a matrix",
    chapter=3,
    source=f"{CORDONNIER}, §3; Dauphin et al. 2017, “Language Modeling with Gated Convolutional "
    "Networks”, on causal convolution",
    covers=("S1-23",),
)
def causal_convolution() -> Definition:
    """conv(X)_i = Σ_t x_{i-t} W_t, where what lies before the first position counts as zero. In
    matrices: Σ_t Sᵗ X W_t, S being the shift by one position, with ones just below its diagonal. It
    is the identity less the inverse of the causal mask, for the mask sums over all positions so far
    and I - S takes differences: they undo each other.

    The width is three here to show the powers; the theorems beside it are for any width.
    """
    taps = Family("W", (3,), d, d)
    value = matadd(matmul(X, taps[0]), matmul(SHIFT, X, taps[1]), matmul(SHIFT, SHIFT, X, taps[2]))
    return Definition("conv", value, _convolve_plainly, on_models=False)


@theorem(
    title="A convolution is attention with shifts for patterns",
    chapter=3,
    convention="either",
    source=f"{CORDONNIER}, theorem 1",
    covers=("S1-23", "B17"),
)
def convolution_is_shifted_heads() -> Statement:
    """Give each tap t of a convolution R heads, all with the shift S_t for a pattern, whose OV
    circuits add up to the tap W_t. Concatenated and multiplied by W_O as in any model, these T·R
    heads compute the convolution Σ_t S_t X W_t, for a kernel of any width T. One head a tap is
    enough if the rank of W_t is at most d_head; in general it takes R = ⌈d/d_head⌉
    (`taps_split_into_heads`).

    So attention can do all that such a convolution does. The difference is in the patterns: a
    convolution has them fixed, by position alone; attention computes them from what is there.
    """
    W_V, W_O = Family("W_V", (T, R), d, d_head)[t, r], Family("W_O", (T, R), d_head, d)[t, r]
    heads = ConcatHeads(matmul(S[t], X, W_V), (t, T), (r, R))
    return Statement(
        matmul(heads, StackHeads(W_O, (t, T), (r, R))),
        HeadSum(matmul(S[t], X, W[t]), (t, T)),
        given=[(HeadSum(matmul(W_V, W_O), (r, R)), W[t])],
        on_models=False,
    )


@theorem(
    title="Any matrix is a sum of OV circuits that read d_head coordinates each",
    chapter=3,
    convention="either",
    source="block multiplication",
    covers=("S1-23", "B17"),
)
def taps_split_into_heads() -> Statement:
    """Let E_r pick coordinates, d_head at a time, so that together they pick all: Σ_r E_r E_rᵀ = I.
    Head r reads W E_r and writes back through E_rᵀ, and the sum over heads is W whatever its rank.
    With ⌈d/d_head⌉ heads there is nothing that a full-width matrix could do and heads could not.
    """
    E = Family("E", (R,), d, d_head)[r]
    whole = MatrixSymbol("W", d, d)
    return Statement(
        HeadSum(matmul(matmul(whole, E), sympy.Transpose(E)), (r, R)),
        whole,
        given=[(HeadSum(matmul(E, sympy.Transpose(E)), (r, R)), Identity(d))],
        on_models=False,
    )


@theorem(
    title="With a null key whose value is zero, attention weights may sum to less than one",
    chapter=3,
    source="zero padding in convolutions; Miller 2023, “Attention is off by one”, on null keys",
    covers=("S1-23", "B17"),
)
def null_key_completes_a_pattern() -> Statement:
    """The first rows of a shift are zero: position 0 has no predecessor. No softmax gives that, for
    its rows sum to one. Add one key whose value is zero, in practice a BOS token that heads learn
    to ignore, and let it take what is left: [1 - B1 | B] on the values [0; V] is B V. So zero
    padding costs one null key, and induction heads, which need a previous token, need a BOS.
    """
    B, V = MatrixSymbol("B", n, m), MatrixSymbol("V", m, d_head)
    left = less(OneMatrix(n, 1), matmul(B, OneMatrix(m, 1)))
    with_null = BlockMatrix([[left, B]])
    return Statement(
        matmul(with_null, BlockMatrix([[ZeroMatrix(1, d_head)], [V]])),
        matmul(B, V),
        bind=({"B": Source("pattern"), "V": Source("v")},),
    )


@theorem(
    title="A null key completes rows that sum to less than one to a pattern",
    chapter=3,
    source="zero padding in convolutions; Miller 2023, “Attention is off by one”, on null keys",
    covers=("S1-23", "B17"),
)
def null_key_makes_a_pattern() -> Statement:
    """Let the null key take c = 1 - B1, what the rows of B leave. Then the rows of [c | B] sum to
    one. If B has no negative entry and no row that sums to more than one, as shifts have not,
    nothing in [c | B] is negative either: it is a pattern, and a softmax comes as near to it as one
    likes.
    """
    B, c = MatrixSymbol("B", n, m), MatrixSymbol("c", n, 1)
    ones = BlockMatrix([[OneMatrix(1, 1)], [OneMatrix(m, 1)]])
    return Statement(
        matmul(BlockMatrix([[c, B]]), ones),
        OneMatrix(n, 1),
        given=[(c, less(OneMatrix(n, 1), matmul(B, OneMatrix(m, 1))))],
        on_models=False,
    )


@theorem(
    title="Convolutions compose by adding their shifts",
    chapter=3,
    source="the product of two polynomials in the shift",
    covers=("S1-24",),
)
def convolutions_compose() -> Statement:
    """One convolution after another: every tap u of the second meets every tap t of the first, the
    shifts multiply and so do the matrices. Shifts by t and by u make a shift by t + u, so widths T
    and U give a width T + U - 1: each layer adds its width less one to what can be reached.
    """
    V, Q = Family("V", (U,), d, d), Family("Q", (U,), n, n)
    first = HeadSum(kron(S[t], W[t]), (t, T))
    second = HeadSum(kron(Q[u], V[u]), (u, U))
    both = kron(matmul(Q[u], S[t]), matmul(V[u], W[t]))
    return Statement(matmul(second, first), HeadSum(both, (u, U), (t, T)), on_models=False)


def _reach_plainly(L: int, k: int) -> int:
    reached = {0}
    for _ in range(L):
        reached = {offset + tap for offset in reached for tap in range(k)}
    return len(reached)


@theorem(
    title="L layers of convolutions of width k reach 1 + L(k - 1) positions",
    chapter=3,
    source="Dauphin et al. 2017, “Language Modeling with Gated Convolutional Networks”",
    covers=("S1-24",),
)
def convolution_receptive_field() -> Definition:
    """The offsets that a position reads are sums of L numbers from 0 to k - 1: those from 0 to L(k
    - 1). So the field grows with depth, one width less one a layer. Attention needs no depth for
    it: a single layer may read all positions so far. A token further back than the field has no
    effect on a stack of convolutions, whatever its weights.
    """
    return Definition("reach", 1 + L * (k - 1), _reach_plainly, on_models=False)


def _multiplications(*sizes: Any) -> Any:
    """Return how many multiplications a product of an a × b and a b × c matrix takes: a·b·c.

    That is what the product of two such matrices of ones adds up to.
    """
    a, b, c = sizes
    product = matmul(OneMatrix(a, b), OneMatrix(b, c))
    return Trace(matmul(OneMatrix(1, a), product, OneMatrix(c, 1)))


# Values, the pattern on them, and W_O; in full width a matrix d × d on the stream, and the pattern.
FACTORED = (
    _multiplications(n, d, d_head) + _multiplications(n, n, d_head) + _multiplications(n, d_head, d)
)
FULL = _multiplications(n, d, d) + _multiplications(n, n, d)


@theorem(
    title="The cost of moving values: 2·n·d·d_head + n²·d_head multiplications for each head",
    chapter=3,
    source="counting: a product of an a × b and a b × c matrix takes a·b·c multiplications",
    covers=("S1-20",),
)
def cost_of_factored_heads() -> Statement:
    """Values first, X W_V; then the pattern on them; then W_O: three products through d_head, in
    each of H heads. A product of matrices of ones counts its own multiplications, so the left side
    is a count and no formula. In the other order, or with W_OV multiplied out, a head works on
    d-dimensional vectors throughout: the result is the same, the number of multiplications is not.
    """
    return Statement(H * FACTORED, H * (2 * n * d * d_head + n**2 * d_head), on_models=False)


@theorem(
    title="Factored heads cost d_head (2d + n) / d (d + n) of full-width ones",
    chapter=3,
    source="counting multiplications",
    covers=("S1-20",),
)
def factored_heads_cost_ratio() -> Statement:
    """With a full d × d matrix in place of W_V W_O a head takes n·d² + n²·d multiplications. The
    ratio, here multiplied out, does not depend on the number of heads. For short prompts it is 2
    d_head/d, for long ones d_head/d. This is what the low rank buys, and why W_OV is multiplied out
    on paper only.
    """
    return Statement(H * FACTORED * d * (d + n), H * FULL * d_head * (2 * d + n), on_models=False)


@theorem(
    title="With two heads or more, factored heads cost less",
    chapter=3,
    source="counting multiplications",
    covers=("S1-20",),
)
def factored_heads_cost_less() -> Bound:
    """Let d = H·d_head, as usual. Divided by n, a factored head takes d_head (2d + n)
    multiplications and a full-width one d (d + n). With H = 2 + e heads the first is less by at
    least n·d_head, and with two heads by just that. With one head there is nothing to save: to
    factor a matrix of full rank only costs.
    """
    e = sympy.Symbol("e", real=True)
    width = (2 + e) * d_head
    saved = Entries(OneMatrix(1, 1), times=e * (2 + e) * d_head**2 + e * d_head * n)
    return Bound(
        d_head * (2 * width + n) + d_head * n,
        width * (width + n),
        [saved],
        given=[Fact("nonnegative", e)],
        on_models=False,
        tight={"e": 0, "d_head": 1, "n": 1},
    )
