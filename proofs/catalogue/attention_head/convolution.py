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
    """A causal convolution of width three computes at each position a sum of three terms: X at the
    same position times W_0, at the previous position times W_1, and at the one before that times
    W_2 (each d × d). What lies before the first position counts as zero.

    Convolutional models of text are made of such layers, and attention heads can imitate them
    (`convolution_is_shifted_heads`).

    In the formula the shift by one position is I − M_n⁻¹. The causal mask M_n adds up all positions
    so far, and taking differences undoes this. The width is three to show the powers; the theorems
    beside it hold for any width.
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
    """Attention heads whose patterns are shifts compute a convolution. For each offset t of the
    kernel, called a tap, take R heads that all attend t positions back (pattern S[t]) and whose OV
    circuits add up to the kernel's matrix W[t]. Then the layer computes Σ_t S[t] X W[t], for a
    kernel of any width T.

    One head for each tap is enough if W[t] has rank at most d_head; in general ⌈d/d_head⌉ heads are
    needed (`taps_split_into_heads`).

    So attention can do all that such a convolution does. What differs is that a convolution's
    pattern is fixed and attention's is computed from the content.
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
    """Every d × d matrix W is a sum of OV circuits of rank at most d_head: let each E[r] (d ×
    d_head) select some of the coordinates, so that together they select all, and let head r read
    with W E[r] and write with E[r]ᵀ.

    So ⌈d/d_head⌉ heads with the same pattern can do whatever one full-width matrix could.
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
    """Softmax weights always sum to one, so a head cannot attend to nothing. It can attend to a key
    whose value is zero: if that key takes the weight 1 − B1 that the rows of B leave, what is read
    is B V. Here B (n × m) is a pattern whose rows may sum to less than one.

    A first token at the start of the text (BOS) often has this role in trained models. Zero padding
    of a convolution and previous-token heads at the first position need such a key.
    """
    B, V = MatrixSymbol("B", n, m), MatrixSymbol("V", m, d_head)
    left = less(OneMatrix(n, 1), matmul(B, OneMatrix(m, 1)))
    with_null = BlockMatrix([[left, B]])
    return Statement(
        matmul(with_null, BlockMatrix([[ZeroMatrix(1, d_head)], [V]])),
        matmul(B, V),
        places={"z": matmul(B, V)},
        bind=({"B": Source("pattern"), "V": Source("v")},),
        bare=False,
    )


@theorem(
    title="A null key completes rows that sum to less than one to a pattern",
    chapter=3,
    source="zero padding in convolutions; Miller 2023, “Attention is off by one”, on null keys",
    covers=("S1-23", "B17"),
)
def null_key_makes_a_pattern() -> Statement:
    """Give one more key the weight that the rows of B leave, c = 1 − B1: then all rows of [c, B]
    sum to one. If B has no negative entries and no row sum above one, nothing in [c, B] is
    negative, so it is an attention pattern. A softmax can come as near to it as one likes.

    With `null_key_completes_a_pattern` this turns weights that sum to less than one into attention
    that a model can compute.
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
    """Two convolutions in sequence are one convolution with a wider kernel: each tap u of the
    second meets each tap t of the first, the shifts multiply (Q[u] S[t]) and so do the matrices
    (V[u] W[t]). Shifts by t and by u make a shift by t + u, so widths T and U give width T + U − 1.

    This is the same algebra as that of heads in two layers (`heads_compose`), with fixed patterns.
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
    """A stack of L convolutions of width k sees 1 + L(k − 1) positions: each layer reaches k − 1
    positions further back. Three layers of width 3 see 7 positions.

    Attention needs no depth for this, since one layer can read all positions so far. A token
    further back than the field has no effect on the stack at all, whatever its weights.
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
    """An attention layer needs 2 n d d_head + n² d_head multiplications for each head to apply
    given patterns: n d d_head for the values, n² d_head to mix them, n d_head d for the output. In
    the formula each product of all-ones matrices counts its own multiplications. For H heads it is
    H times as many.

    The cost depends on the order of the products; with W_OV multiplied out every vector has d
    entries instead of d_head (`factored_heads_cost_ratio`). Computing the patterns comes on top.
    """
    return Statement(H * FACTORED, H * (2 * n * d * d_head + n**2 * d_head), on_models=False)


@theorem(
    title="Factored heads cost d_head (2d + n) / d (d + n) of full-width ones",
    chapter=3,
    source="counting multiplications",
    covers=("S1-20",),
)
def factored_heads_cost_ratio() -> Statement:
    """Computing a head through d_head dimensions, instead of with a full d × d matrix W_OV, costs
    the fraction d_head (2d + n)/(d (d + n)) of the multiplications. For short prompts (n small)
    this is 2 d_head/d, for long ones d_head/d; for d = 768 and d_head = 64 that is 1/6 and 1/12.
    The equation is the ratio, multiplied out. Both sides are for H heads.

    So W_OV is multiplied out on paper only.
    """
    return Statement(H * FACTORED * d * (d + n), H * FULL * d_head * (2 * d + n), on_models=False)


@theorem(
    title="With two heads or more, factored heads cost less",
    chapter=3,
    source="counting multiplications",
    covers=("S1-20",),
)
def factored_heads_cost_less() -> Bound:
    """With at least two heads, and d = H · d_head as usual, computing a head through its d_head
    dimensions takes fewer multiplications than with the full matrix W_OV. In the formula H = 2 + e
    and both costs are divided by n; at least d_head n of them is saved.

    With one head there is nothing to save, since factoring a matrix of full rank adds work.
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
