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
    """Expert e has the neurons N_e and writes N_e W_e; row i of what it writes is multiplied by the
    weight r_ie, 0 for a token that does not go there. Put the neurons of all experts side by side,
    each times its expert's weight, and the output weights on top of each other: one MLP writes the
    same. So what holds for neurons holds for experts: contributions add up, and with constant gates
    and weights the layer is linear.

    The weight goes to the output. Multiplying what an expert reads is another model, as its
    activation is not linear.
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
    """Mixtral takes the softmax P of all router logits S, keeps the chosen entries C and divides
    them by their sum; gpt-oss takes the softmax of the chosen logits. They are the same weights: Q
    times the sum of the kept entries of P is the kept entries of P. Both sides are multiplied by
    the row sums of exp(S), which are positive. For the choice it does not matter whether logits or
    their softmax are compared, since a softmax is monotone along a row.

    Without the division (Qwen 2, DeepSeek-V2) the weights sum to less than 1.
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
    """Softmax of all and then top-k gives the chosen experts less than their share: the weights of
    a token sum to what the softmax gave to them, and not to 1.
    """
    return NonIdentity(HadamardProduct(RowSoftmax(S), C), RowSoftmax(S, C))
