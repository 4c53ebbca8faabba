r"""Layer-wise relevance propagation: a logit handed back, sum by sum, in the shares of its terms.

What a sum $z_j = Σ_i a_i w_{ij}$ is relevant for goes to its terms in proportion,

    $R_i = Σ_j \frac{a_i w_{ij}}{z_j + ε \, sign z_j} R_j$,

biases being terms like others. Patterns, the scales of norms and what activations multiply by
(act(x)/x; the activated gate) are taken as they are (Ali et al. 2022), so that relevance meets sums
only: products with weights, patterns over values, the stream. With ε = 0 nothing is lost: tokens,
positions and biases share the whole logit, and the relevance of a row is the gradient of the frozen
model times the row. An ε > 0 takes something from every sum, most from those that nearly cancel.

That is how it is computed: in $R_i = a_i s_i$ the share s is a gradient, which every sum on the way
back multiplies by $|z| / (|z| + ε)$. Nothing is divided by a sum that may be zero.

Source: Bach et al. 2015; Montavon et al. 2019 (ε); Ali et al. 2022, “XAI for Transformers: Better
Explanations through Conservative Propagation”.
"""

from typing import Any

import numpy as np
from jaxtyping import Float

from algebra.errors import OtimesError
from numeric.attribution.question import Question, ask
from numeric.attribution.reverse import reverse_pass, run, value
from numeric.attribution.target import Tokens
from numeric.circuits.result import Named
from numeric.forward import Places
from numeric.model import Model


def relevance(
    model: Model | str,
    prompt: Any,
    target: Tokens = None,
    foil: Tokens = None,
    position: Any = -1,
    *,
    epsilon: float = 0.0,
) -> Named:
    """Return the relevance of tokens, of positions and of biases [part, position].

    With ε = 0 all of them sum to the logit; `.missing` is what an ε > 0 takes away.
    Proved by: relevance_is_conserved, relevance_lost_to_bias_and_epsilon.

    >>> found = relevance("two_layer", "for i in range", "(")
    >>> found.values.shape, abs(found.missing) < 1e-12
    ((3, 7), True)

    Raises: OtimesError for a negative ε, or a prompt, token or position that there is not.
    """
    if not epsilon >= 0:
        raise OtimesError(f"ε is not negative, got epsilon={epsilon}")
    question = ask(model, prompt, target, foil, position)
    places = run(question.model, question.tokens)
    gradients = reverse_pass(question.model, places, question.goal, held=True, epsilon=epsilon)
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
    """Return what all biases at each position are relevant for: each times its gradient."""
    model, config = question.model, question.model.config
    total = np.zeros(len(places["embed"]))
    for layer in range(model.n_layers):
        for bias, place in (("ln1_bias", "ln1"), ("b_O", "attn_out"), ("ln2_bias", "ln2"),
                            ("b_out", "mlp_out")):  # fmt: skip
            if bias in model.weights:
                total += gradients[f"{place}.{layer}"] @ model.part(bias, layer)
        if "b_V" in model.weights:
            total += np.einsum("hpk,hk->p", gradients[f"v.{layer}"], model.part("b_V", layer))
        if "b_in" in model.weights:
            total += gradients[f"mlp_{'up' if config.gated else 'pre'}.{layer}"] @ model.part(
                "b_in", layer
            )
    at_end = question.goal.constant
    if "ln_final_bias" in model.weights:
        at_end += float(question.goal.row @ model.part("ln_final_bias"))
    # The last sum, the logit itself, takes its part of them as well.
    total[question.goal.position] += at_end * (abs(f) / (abs(f) + epsilon) if epsilon else 1.0)
    return total
