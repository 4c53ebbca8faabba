"""Chapter 3: how sharp attention is, and what many layers of it do: bounds for all sizes."""

from __future__ import annotations

from fractions import Fraction

import sympy
from sympy import (
    BlockMatrix,
    HadamardProduct,
    Identity,
    MatrixSymbol,
    OneMatrix,
    Symbol,
    Trace,
    Transpose,
    ZeroMatrix,
    symbols,
)

from otimes.algebra.facts import Fact
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import Family, OneHot, matadd, matmul
from otimes.algebra.language.nonlinear import Activation, RowSoftmax
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.attention_head.patterns import SOFTMAX
from otimes.proofs.catalogue.symbols import L, l, m, n, q
from otimes.proofs.claims import Bound, Entries, Example, Statement
from otimes.proofs.theorem import lemma, theorem

CHAINS = "Kemeny and Snell 1960, “Finite Markov Chains”, chapter 3"
DONG = "Dong, Cordonnier and Loukas 2021, “Attention is Not All You Need”, §2"
j, k = symbols("j k", integer=True)
HALF = Fraction(1, 2)
delta = Symbol("delta", real=True)


def less(a: object, b: object) -> object:
    """Return a − b."""
    return matadd(a, matmul(-1, b))


@theorem(
    title="A weight times exp of how far its score is behind another is that other weight",
    chapter=3,
    source=SOFTMAX,
    covers=("S2-23", "S0-26"),
)
def weights_follow_gaps() -> Statement:
    """How much attention one key gets compared with another depends only on the gap between their
    scores: a_ij exp(s_ik − s_ij) = a_ik, where a_ij is the weight of key j for query i and s_ij its
    score. The equation says this for every row i and all keys j at once. A key whose score is 5
    behind has e^−5 of the weight. Summed over j it says that 1/a_ik is the sum of all exp(s_ij −
    s_ik).

    So a weight can be found without the sum in the denominator of the softmax. S holds the scores,
    divided by the temperature if there is one; k is a key.
    """
    S, picked = MatrixSymbol("S", n, m), OneHot(k, m)
    weight, everywhere = RowSoftmax(S), OneMatrix(1, m)
    ahead = less(matmul(S, picked, everywhere), S)
    return Statement(
        HadamardProduct(weight, Activation("exp", ahead), evaluate=False),
        matmul(weight, picked, everywhere),
        bind=({"S": Source("scores", rows=4, cols=5)},),
    )


@theorem(
    title="What a key lacks of all attention is a sum of exponentials of gaps",
    chapter=3,
    source=SOFTMAX,
    covers=("S2-23",),
)
def weight_missing_from_a_key() -> Statement:
    """What one key does not get of a query's attention is a sum over the other keys, each with exp
    of how far its score is ahead: 1 − a_ik = a_ik Σ_{j≠k} exp(s_ij − s_ik), for every row i of
    weights a and scores s.

    At low temperature, s = t/τ, each term is exp(−Δ_j/τ) with the gap Δ_j to key j: if all gaps to
    the best key are at least Δ, what it lacks is at most (m − 1) e^{−Δ/τ} of its own weight. At
    high temperature each term tends to 1, and the weight to 1/m.
    """
    S, picked = MatrixSymbol("S", n, m), OneHot(k, m)
    weight = matmul(RowSoftmax(S), picked)
    behind = less(S, matmul(S, picked, OneMatrix(1, m)))
    others = less(OneMatrix(m, 1), picked)
    return Statement(
        less(OneMatrix(n, 1), weight),
        HadamardProduct(weight, matmul(Activation("exp", behind), others), evaluate=False),
        bind=({"S": Source("scores", rows=4, cols=5)},),
    )


@theorem(
    title="A score that is ahead by g has at least e^g times the weight",
    chapter=3,
    source=SOFTMAX,
    covers=("S2-23", "S0-26"),
)
def weight_at_most_exp_of_gap() -> Bound:
    """A lead in score is a lead in attention: if the score of key k is ahead of that of key j by at
    least g, then a_j ≤ e^−g a_k, where a are the weights of the two keys. The lead g may be
    negative. For g = 5 the key behind has less than one hundredth of the other's weight.

    At low temperature g = Δ/τ: summed over the m − 1 other keys, 1 − a_max is at most (m − 1)
    e^{−Δ/τ} a_max, so the head looks one key up. At high temperature g = −r/τ, with r the range of
    the scores: summed over j, and over k, e^{−r/τ}/m ≤ a ≤ e^{r/τ}/m for every weight a
    (`weights_are_strictly_inside`).
    """
    s, e_j, e_k = MatrixSymbol("s", 1, m), OneHot(j, m), OneHot(k, m)
    g, weight = MatrixSymbol("g", 1, 1), RowSoftmax(s)
    own, other = matmul(weight, e_j), matmul(weight, e_k)
    over = matadd(matmul(s, e_k), matmul(-1, s, e_j), matmul(-1, g))
    curve = matadd(Activation("exp", over), matmul(-1, over), matmul(-1, OneMatrix(1, 1)))
    return Bound(
        Trace(own),
        Trace(matmul(Activation("exp", matmul(-1, g)), other)),
        because=(Entries(matmul(own, curve)), Entries(matmul(own, over))),
        given=(Fact("nonnegative", over),),
        tight={"s": [[1, 1]], "g": [[0]], "j": 0, "k": 1},
        on_models=False,
    )


@theorem(
    title="No visible key is ignored: every attention weight is at least e^−r/m",
    chapter=3,
    source=SOFTMAX,
    covers=("S0-26", "S2-23"),
)
def weights_are_strictly_inside() -> Bound:
    """An attention weight is never zero, and never one if there is another key. If the scores of a
    query's m keys differ by at most r, then every key has at least the weight e^−r/m, which is
    positive. For ten keys within r = 2 of each other this is 0.0135.

    The other m − 1 keys have at least (m − 1)e^−r/m together, so no key has more than one less
    this. In the formula s (1 × m) are the scores, k is the key, and the hypothesis says that no
    score is more than r above that of k.

    Equality needs equal scores, r = 0.
    """
    s, picked, spread = MatrixSymbol("s", 1, m), OneHot(k, m), MatrixSymbol("r", 1, 1)
    weight, everywhere = RowSoftmax(s), OneMatrix(1, m)
    over = matadd(matmul(spread, everywhere), matmul(s, picked, everywhere), matmul(-1, s))
    curve = matadd(Activation("exp", over), matmul(-1, over), matmul(-1, everywhere))
    return Bound(
        sympy.Integer(1),
        m * Trace(matmul(Activation("exp", spread), weight, picked)),
        because=tuple(
            Entries(HadamardProduct(weight, each, evaluate=False)) for each in (curve, over)
        ),
        given=(Fact("nonnegative", over),),
        tight={"s": [[1, 1]], "r": [[0]], "k": 0},
        on_models=False,
    )


P, x = MatrixSymbol("P", n, q), MatrixSymbol("x", q, 1)
ONE_GROUP_EACH = (
    (HadamardProduct(P, P, evaluate=False), P),
    (matmul(P, OneMatrix(q, 1)), OneMatrix(n, 1)),
)


@theorem(
    title="Scores that are equal within groups have exponentials that are equal within groups",
    chapter=3,
    source="a function of equal numbers is equal",
)
def exp_of_groups() -> Statement:
    """If keys come in groups and all keys of a group have the same score, the exponentials of the
    scores are equal within groups, too. P_jg is 1 if key j is in group g and 0 if not, and x_g is
    the score of group g. The scores of all n keys are then P x, and their exponentials P exp(x):
    exp acts on the q numbers of the groups, before they are handed out to the keys.

    It is a step to the weights that softmax gives to such keys (`weights_of_groups`).
    """
    return Statement(
        Activation("exp", matmul(Transpose(x), Transpose(P))),
        matmul(Transpose(Activation("exp", x)), Transpose(P)),
        given=ONE_GROUP_EACH,
        on_models=False,
    )


@theorem(
    title="What softmax gives to keys whose scores come in groups",
    chapter=3,
    source=f"{SOFTMAX}; Olsson et al. 2022, on induction heads",
    covers=("S3-103", "S0-26"),
)
def weights_of_groups() -> Statement:
    """If the scores of a query take only a few values, its attention weights can be written down: a
    key whose group has the score x_g gets the weight exp(x_g) / Σ_g c_g exp(x_g), where c_g is the
    number of keys in group g. In the formula P_jg is 1 if key j is in group g and 0 if not, for n
    keys and q groups.

    For an induction head there are two groups: k matches with score β and n − k others with score
    0. The weight that does not go to matches is (n − k)/(n − k + k e^β), so with 100 positions and
    one match it takes β = 9.2 to leave 1 % elsewhere: log of 99 · 99.
    """
    power = Activation("exp", x)
    total = matmul(OneMatrix(1, n), P, power)
    return Statement(
        matmul(total, RowSoftmax(matmul(Transpose(x), Transpose(P)))),
        matmul(Transpose(power), Transpose(P)),
        given=(*ONE_GROUP_EACH, lemma("exp_of_groups")),
        on_models=False,
    )


# -- weight off the first position -----------------------------------------------------------------

off = Family("B", (L,), n, n)  # what positions after the first give each other, by layer
spare = Family("s", (L,), n, 1)
ones = OneMatrix(n, 1)
FACTOR = 1 - delta
KEPT = BlockMatrix(
    [[off[l], spare[l]], [ZeroMatrix(1, n), matmul(FACTOR, Identity(1))]],
)
LEFT = LayerProduct(off[l], (l, L))
ALL = LayerProduct(KEPT, (l, L))
SHARES = (matadd(matmul(off[l], ones), spare[l]), matmul(FACTOR, ones))
EXAMPLES = tuple(
    Example({"B": layers, "s": spared})  # for δ of 0, 1/2 or 1
    for layers, spared in (
        ([[[0]]], [[[0]]]),
        ([[[HALF]], [[0]]], [[[0]], [[HALF]]]),
        ([[[1]], [[HALF]]], [[[0]], [[HALF]]]),
        ([[[HALF, 0], [HALF, HALF]]], [[[HALF], [0]]]),
    )
)
BOTH = BlockMatrix([[ones], [Identity(1)]])
INTO = BlockMatrix([[Identity(n)], [ZeroMatrix(1, n)]])


@theorem(
    title="What is spared in each layer completes a product of patterns to (1 − δ)^L",
    chapter=3,
    source=CHAINS,
    covers=("B15",),
)
def spared_weight_completes_powers() -> Statement:
    """If every row of each of L matrices sums to 1 − δ, every row of their product sums to (1 −
    δ)^L. Rows that sum to less are brought up to 1 − δ by one more column: B[l] are the weights
    that positions after the first give one another in layer l, and s[l] is what each row lacks.
    Both are put into one matrix, with 1 − δ in the corner.

    It is a step to the fall of attention off the first position (`off_first_at_most_power`).
    """
    return Statement(matmul(ALL, BOTH), matmul(FACTOR**L, BOTH), given=(SHARES,), on_models=False)


@theorem(
    title="The corner of a product of block triangular matrices is the product of the corners",
    chapter=3,
    source=CHAINS,
    covers=("B15",),
)
def corner_of_product() -> Statement:
    """A product of block triangular matrices [[B, s], [0, c]] has in its upper left corner the
    product of the blocks B, whatever the columns s are: what goes to the lower row never comes
    back.

    It is a step to the fall of attention off the first position (`off_first_at_most_power`). The
    index l runs over the layers.
    """
    return Statement(matmul(ALL, INTO), matmul(INTO, LEFT), on_models=False)


@theorem(
    title="Weight that has not reached the first position falls as (1 − δ)^L with depth",
    chapter=3,
    source=CHAINS,
    covers=("B15",),
)
def off_first_at_most_power() -> Bound:
    """If every position gives the first one at least the share δ of its attention in each layer,
    then what it gives to all other positions after L layers is at most (1 − δ)^L. The patterns may
    be any, and may differ from layer to layer. B[l] is the pattern of layer l between positions
    after the first, and j one of these.

    Skip connections prevent it: the identity path keeps all of its weight.
    """
    e = Transpose(OneHot(j, n))
    onto = BlockMatrix([[ZeroMatrix(n, 1)], [Identity(1)]])
    read = BlockMatrix([[e, ZeroMatrix(1, 1)]])
    return Bound(
        Trace(matmul(e, LEFT, ones)),
        FACTOR**L,
        because=(Entries(matmul(read, ALL, onto)),),
        given=(
            Fact("nonnegative", off[l]),
            Fact("nonnegative", spare[l]),
            Fact("nonnegative", FACTOR),
            SHARES,
            *EXAMPLES,
            lemma("spared_weight_completes_powers"),
            lemma("corner_of_product"),
        ),
        tight={"B": [[[HALF]]], "s": [[[0]]], "delta": HALF, "j": 0},
        on_models=False,
    )


# -- rank collapse ---------------------------------------------------------------------------------

rest, shared = Family("R", (L,), n, n), Family("p", (L,), 1, n)


@theorem(
    title="Rank collapse: pure attention shrinks differences between positions in every layer",
    chapter=3,
    source=DONG,
    covers=("B15",),
)
def differences_shrink_with_depth() -> Statement:
    """Without skip connections attention makes positions alike: what differs between them shrinks
    by a factor 1 − δ in each layer, if δ is the share of every row of the pattern that is the same
    for all queries. Split each pattern as δ 1 p + (1 − δ) R: a part p that all positions share, and
    the rest R, whose rows sum to one. Let C subtract the mean over positions. Then C A_L ⋯ A_1 = (1
    − δ)^L C R_L ⋯ R_1 at any depth.

    In a transformer δ itself grows, as scores of nearly equal rows are nearly equal: that makes the
    fall doubly exponential (`pure_attention_loses_rank`).
    """
    centred = less(Identity(n), matmul(1 / n, ones, OneMatrix(1, n)))
    pattern = matadd(matmul(delta, ones, shared[l]), matmul(FACTOR, rest[l]))
    return Statement(
        matmul(centred, LayerProduct(pattern, (l, L))),
        matmul(FACTOR**L, centred, LayerProduct(rest[l], (l, L))),
        given=((matmul(rest[l], ones), ones),),
        on_models=False,
    )
