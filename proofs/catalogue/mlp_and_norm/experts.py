"""Chapter 4: experts are neurons with weights, and the two orders of top-k and softmax."""

from __future__ import annotations

import sympy
from sympy import HadamardProduct, MatrixSymbol, OneMatrix
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.language.linear import ConcatHeads, Family, HeadSum, StackHeads, matmul
from otimes.algebra.language.nonlinear import Activation, RowSoftmax
from otimes.proofs.catalogue.symbols import d, d_mlp, n, size
from otimes.proofs.claims import NonIdentity, Statement
from otimes.proofs.theorem import theorem

E = size("E")
e = sympy.Symbol("e", integer=True)
MIXTRAL = "Jiang et al. 2024, “Mixtral of Experts”, §2.1"
S, C = MatrixSymbol("S", n, E), MatrixSymbol("C", n, E)
ONES = OneMatrix(E, E)
SHARES, NEURONS = Family("r", (E,), n, 1), Family("N", (E,), n, d_mlp)
W_OUT = Family("W_out", (E,), d_mlp, d)


@theorem(
    title="A layer of experts is an MLP whose neurons have the weights of their experts",
    chapter=4,
    convention="row",
    source=f"Shazeer et al. 2017, “Outrageously Large Neural Networks”, §2; {MIXTRAL}",
)
def experts_are_gated_neurons() -> Statement:
    """A mixture of experts is one MLP in which every neuron is multiplied by the weight of its
    expert. Expert e has activations N[e] and writes N[e] W_out[e]; the router gives it the weight
    r[e] at each position, 0 where it is not used. The right-hand side puts all neurons side by
    side.

    So what holds for neurons holds for experts: their contributions add up, and with gates and
    router weights held constant the layer is linear.

    The weight multiplies what an expert writes. Multiplying what it reads is a different model,
    since the activation is not linear.
    """
    weighted = matmul(DiagMatrix(SHARES[e]), NEURONS[e])
    return Statement(
        HeadSum(matmul(weighted, W_OUT[e]), (e, E)),
        matmul(ConcatHeads(weighted, (e, E)), StackHeads(W_OUT[e], (e, E))),
        on_models=False,
    )


@theorem(
    title="Softmax of all experts, then the chosen ones renormalised, is softmax of the chosen",
    chapter=4,
    source=f"{MIXTRAL}; OpenAI 2025, “gpt-oss-120b & gpt-oss-20b Model Card”, §2",
)
def router_softmax_of_all_renormalised() -> Statement:
    """In a mixture of experts, a router gives each expert a logit and the best few are used. Two
    ways to get their weights agree: take the softmax over all experts, keep the chosen ones and
    divide by their sum (Mixtral), or take the softmax of the chosen ones only (gpt-oss). S holds
    the router logits (positions × experts E), and C has a 1 at each chosen expert. The equation is
    multiplied by the row sums of exp(S), which are positive.

    Without the division, as in Qwen 2 and DeepSeek-V2, the weights sum to less than 1
    (`router_softmax_of_all_kept`).
    """
    total = matmul(Activation("exp", S), ONES)
    kept = HadamardProduct(RowSoftmax(S), C)
    return Statement(
        HadamardProduct(RowSoftmax(S, C), matmul(kept, ONES), total),
        HadamardProduct(kept, total),
        on_models=False,
    )


@theorem(
    title="A softmax of all experts, not renormalised, is not a softmax of the chosen ones",
    chapter=4,
    source=MIXTRAL,
)
def router_softmax_of_all_kept() -> NonIdentity:
    """Taking the softmax over all experts and keeping the chosen entries without dividing by their
    sum gives other weights than a softmax over the chosen ones: they sum to less than 1. S holds
    the router logits, and C has a 1 at each chosen expert and 0 elsewhere.

    Both conventions are in use. A model loaded with the wrong one runs and gives other results.
    """
    return NonIdentity(HadamardProduct(RowSoftmax(S), C), RowSoftmax(S, C))
