"""Chapter 8: attention through layers: rollout, and what looking at a position does not say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from sympy import (
    Identity,
    MatrixSymbol,
    Rational,
    symbols,
)

from otimes.algebra.facts import Fact, attention_pattern
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import Family, HeadSum, kron, matadd, matmul
from otimes.numeric.attribution.mixing import (
    attention_rollout,
)
from otimes.numeric.binding import Source
from otimes.numeric.model import Model
from otimes.numeric.rounding import gamma
from otimes.proofs.catalogue.sources import FRAMEWORK, PRIMER
from otimes.proofs.catalogue.symbols import H, L, d, d_head, h, heads, l, layers, n
from otimes.proofs.claims import (
    Method,
    NonIdentity,
    Property,
    Statement,
    Trial,
)
from otimes.proofs.theorem import theorem

ABNAR = "Abnar and Zuidema 2020, “Quantifying Attention Flow in Transformers”"
UNIT = 2.0**-53
half = Rational(1, 2)
k = symbols("k", integer=True)


# -- rollout ---------------------------------------------------------------------------------------

mean_pattern = matmul(1 / H, HeadSum(layers.A[l, h], (h, H)))
rollout = LayerProduct(matmul(half, matadd(mean_pattern, Identity(n))), (l, L))
FEW = {"A": Source("pattern", rows=4, cols=4)}  # causality allows it


@theorem(
    title="Attention rollout is a sum over paths",
    chapter=8,
    source=f"{PRIMER}, “Context mixing for input attribution”; {ABNAR}, §3",
    covers=("S3-035", "B16"),
)
def rollout_is_path_sum() -> Statement:
    """Attention rollout, a popular way to combine the patterns of all layers, is the product over
    all layers of ½(I + Ā), where Ā is the mean pattern of a layer's heads. Multiplied out, it is a
    sum over all paths: a path through k heads counts with weight 2^{−L} H^{−k} times the product of
    its patterns.

    So it is the path expansion of the model with every OV circuit replaced by the same number.
    Which heads write much, or cancel each other, does not enter.
    """
    orders = HeadSum(OrderSum(mean_pattern, (l, L), k), (k, L + 1))
    return Statement(rollout, matmul(half**L, orders), bind=(FEW,))


@theorem(
    title="The rows of a rollout are shares",
    chapter=8,
    source=f"{ABNAR}, §3",
    covers=("S3-035",),
)
def rollout_is_stochastic() -> Property:
    """Each row of an attention rollout has non-negative entries that sum to one, since means and
    products of such matrices have this property. So a row can be read as shares of the input
    tokens.

    That it can be read so does not mean that the shares say how much each token mattered.
    """
    return Property(
        Fact("row_stochastic", rollout),
        given=attention_pattern(layers.A[l, h], causal=False),
        on_models=False,
    )


@theorem(
    title="A rollout is causal",
    chapter=8,
    source=f"{ABNAR}, §3",
    covers=("S3-035",),
)
def rollout_is_causal() -> Property:
    """In a causal model, attention rollout gives no position a share of a later one: sums and
    products of lower triangular matrices are lower triangular. B[l] is the mean pattern of layer l.
    """
    B = Family("B", (L,), n, n)[l]
    product_of_layers = LayerProduct(matmul(half, matadd(B, Identity(n))), (l, L))
    given = (Fact("lower_triangular", B),)
    return Property(Fact("lower_triangular", product_of_layers), given=given, on_models=False)


@theorem(
    title="Attention rollout is exact where every OV circuit is the identity",
    chapter=8,
    convention="column",
    source=f"{ABNAR}, §3",
    covers=("S3-035",),
)
def rollout_when_exact() -> Statement:
    """Attention rollout would describe a model exactly if every OV circuit were the identity and
    each layer took half of its stream and half of the mean of its heads. Then a layer is ½(Ā + I)
    on positions, for each feature alike, and layers multiply.

    No trained model is like that. These are the assumptions behind the method.
    """
    circuit = matmul(heads.column.W_O[h], heads.column.W_V[h])
    moved = matmul(1 / H, HeadSum(kron(heads.A[h], circuit), (h, H)))
    mixed = matmul(half, matadd(matmul(1 / H, HeadSum(heads.A[h], (h, H))), Identity(n)))
    return Statement(
        matmul(half, matadd(kron(Identity(n), Identity(d)), moved)),
        kron(mixed, Identity(d)),
        given=((circuit, Identity(d)),),
        on_models=False,
    )


# -- attention and what is moved -------------------------------------------------------------------

X_0 = MatrixSymbol("X_0", n, d)
A_2 = MatrixSymbol("A_2", n, n)
V_2, O_2 = MatrixSymbol("V_2", d, d_head), MatrixSymbol("O_2", d_head, d)
first = Family("A", (L, H), n, n)[0, h]
first_ov = matmul(layers.row.W_V[0, h], layers.row.W_O[0, h])
after_first = matadd(X_0, HeadSum(matmul(first, X_0, first_ov), (h, H)))
SECOND: dict[str, Any] = {
    "X_0": Source("embed"),
    "A_2": Source("pattern", 1, "later head"),
    "V_2": Source("W_V", 1, "later head"),
    "O_2": Source("W_O", 1, "later head"),
}


@theorem(
    title="Attending to a position is not reading the token at it",
    chapter=8,
    convention="row",
    source=f"{FRAMEWORK}, on residual streams; class notes on attention heads",
    covers=("S1-21",),
)
def attending_is_not_reading_the_token() -> Statement:
    """A head that attends to position j reads the residual stream there, and not only the token at
    j. The stream at j also holds what heads of earlier layers brought from other positions k: this
    part comes from token k with weight (A_2 A_1)_ik, even where A_2 itself gives k no weight. V_2
    and O_2 are the value and output weights of the second-layer head, and A_2 its pattern.

    Induction heads are the standard example. They attend to a token because of what a
    previous-token head has written there.

    A pattern shows where a head looks, not what it finds.
    """
    return Statement(
        matmul(A_2, after_first, matmul(V_2, O_2)),
        matadd(
            matmul(A_2, X_0, matmul(V_2, O_2)),
            HeadSum(matmul(matmul(A_2, first), X_0, first_ov, matmul(V_2, O_2)), (h, H)),
        ),
        bind=(SECOND,),
        places={
            Source("resid_post", 0): after_first,
            Source("head_out", 1, "later head"): matmul(A_2, after_first, V_2, O_2),
        },
    )


@theorem(
    title="The output of a head is not determined by the tokens it attends to",
    chapter=8,
    convention="row",
    source="class notes on attention heads",
    covers=("S1-21",),
)
def tokens_attended_do_not_fix_the_output() -> NonIdentity:
    """The output of a second-layer head cannot be computed from its pattern and the embeddings of
    the tokens alone. That would be A_2 X_0 V_2 O_2; the head also reads what the first layer wrote.
    On the trained two-layer models the two differ by far more than rounding.

    So attention weights in later layers are not attributions to tokens
    (`attending_is_not_reading_the_token`).
    """
    return NonIdentity(
        matmul(A_2, after_first, matmul(V_2, O_2)),
        matmul(A_2, X_0, matmul(V_2, O_2)),
        bind=(SECOND,),
        on_models=True,
    )


# -- the function ----------------------------------------------------------------------------------


@theorem(
    title="attention_rollout: all paths, one by one",
    chapter=8,
    source=f"{ABNAR}, §3",
    covers=("S3-035", "B16"),
)
def attention_rollout_method() -> Method:
    """`attention_rollout` multiplies ½(Ā + I) over the layers. It is compared with the sum over all
    paths: for every choice of a head, or of none, in each layer, the product of the patterns times
    2^{−L} H^{−k} for k heads (`rollout_is_path_sum`).
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if model.n_layers == 0:
            return
        count, n_heads = model.n_layers, model.n_heads
        places = model.forward(tokens, [f"pattern.{layer}" for layer in range(count)])
        total = np.zeros((len(tokens), len(tokens)))
        for choice in product(range(-1, n_heads), repeat=count):
            path = np.eye(len(tokens))
            for layer, head in enumerate(choice):
                if head >= 0:
                    path = places[f"pattern.{layer}"][head] @ path
            total += path / 2**count / n_heads ** sum(head >= 0 for head in choice)
        found = attention_rollout(model, tokens).at(layer=count - 1).values
        # All terms are positive: the sum is its own size, and so is each product.
        steps = count * (len(tokens) + n_heads + 2) + (1 + n_heads) ** count
        yield Trial("the last layer", found, total, 2 * gamma(steps, UNIT) * total)

    return Method("ot.attention_rollout", ("rollout_is_path_sum", "rollout_is_stochastic"), trials)
