r"""Layer-wise relevance propagation: a logit distributed backwards over the terms of each sum.

The relevance of a sum $z_j = Σ_i a_i w_{ij}$ is distributed over its terms in proportion,

    $R_i = Σ_j \frac{a_i w_{ij}}{z_j + ε \, sign z_j} R_j$,

with biases as terms like any other. Patterns, the scales of norms and the factors of activation
functions (act(x)/x; the activated gate) are constants (Ali et al. 2022), so the rule is applied to
linear maps only: products with weights, patterns times values, the residual stream. With ε = 0
relevance is conserved: tokens, positions and biases share the whole logit, and the relevance of a
row is the gradient of the frozen model times the row. An ε > 0 absorbs a part of each sum's
relevance, most where the terms nearly cancel.

The computation follows this: in $R_i = a_i s_i$ the factor s is a gradient, which each sum in the
backward pass multiplies by $|z| / (|z| + ε)$. No division by a sum that may be zero is needed.

Source: Bach et al. 2015; Montavon et al. 2019 (ε); Ali et al. 2022, “XAI for Transformers: Better
Explanations through Conservative Propagation”.
"""

from typing import Any

import numpy as np
from jaxtyping import Float

from otimes.algebra.errors import OtimesError
from otimes.numeric.attribution.question import Question, ask
from otimes.numeric.attribution.reverse import reverse_pass, run, value
from otimes.numeric.attribution.target import Tokens
from otimes.numeric.circuits.batches import over_prompts
from otimes.numeric.circuits.result import Named
from otimes.numeric.forward import Places
from otimes.numeric.load import ModelSource


@over_prompts
def relevance(
    model: ModelSource,
    prompt: Any,
    target: Tokens = None,
    foil: Tokens = None,
    position: Any = -1,
    *,
    epsilon: float = 0.0,
) -> Named:
    """Return the relevance of tokens, of positions and of biases [part, position].

    `epsilon` is ε. With ε = 0 all of them sum to the logit; `.missing` is what an ε > 0 absorbs.
    Proved by: relevance_is_conserved, relevance_lost_to_bias_and_epsilon.

    >>> found = relevance("two_layer", "for i in range", "(")
    >>> found.values.shape, abs(found.missing) < 1e-12
    ((3, 7), True)

    Raises: OtimesError for a negative ε, or an invalid prompt, token or position.
    """
    if not epsilon >= 0:
        raise OtimesError(f"epsilon must be non-negative, got epsilon={epsilon}")
    question = ask(model, prompt, target, foil, position)
    places = run(question.model, question.tokens)
    gradients = reverse_pass(question.model, places, question.goal, frozen=True, epsilon=epsilon)
    f = value(places, question.goal)
    seen = np.zeros((3, len(question.prompt.tokens)))
    of_tokens = (gradients["embed"] * question.embed()).sum(axis=1)
    seen[0, : len(of_tokens)] = of_tokens
    if question.model.config.positions == "learned":
        W_pos = question.model.part("W_pos", slice(len(of_tokens)))
        seen[1, : len(of_tokens)] = (gradients["embed"] * W_pos).sum(axis=1)
    seen[2, : len(of_tokens)] = _of_biases(question, places, gradients, f, epsilon)
    labels = {"part": ("token", "position", "biases"), "position": question.prompt.strings}
    about = question.about + (f"; ε = {epsilon:g}" if epsilon else "")
    return Named("relevance", seen, ("part", "position"), labels, about=about, whole=f)


def _of_biases(
    question: Question, places: Places, gradients: Places, f: float, epsilon: float
) -> Float[np.ndarray, " pos"]:
    """Return the total relevance of all biases at each position: each bias times its gradient."""
    model, config = question.model, question.model.config
    total = np.zeros(len(places["embed"]))
    for layer in range(model.n_layers):
        for bias, place in (("ln1_bias", "ln1"), ("b_O", "attn_out"), ("ln2_bias", "ln2"),
                            ("b_out", "mlp_out"), ("ln1_post_bias", "ln1_post"),
                            ("ln2_post_bias", "ln2_post")):  # fmt: skip
            if bias in model.weights:
                total += gradients[f"{place}.{layer}"] @ model.part(bias, layer)
        if "b_experts" in model.weights:
            shares = places[f"routing.{layer}"][..., : config.n_experts]
            added = shares @ model.part("b_experts", layer)
            total += (gradients[f"mlp_out.{layer}"] * added).sum(axis=-1)
        if "b_V" in model.weights:
            total += np.einsum("hpk,hk->p", gradients[f"v.{layer}"], model.part("b_V", layer))
        if "b_in" in model.weights:
            total += gradients[f"mlp_{'up' if config.gated else 'pre'}.{layer}"] @ model.part(
                "b_in", layer
            )
    at_end = question.goal.constant
    if "ln_final_bias" in model.weights:
        at_end += float(question.goal.row @ model.part("ln_final_bias"))
    # The logit itself is a sum too, whose ε also absorbs relevance.
    total[question.goal.position] += at_end * (abs(f) / (abs(f) + epsilon) if epsilon else 1.0)
    return total
