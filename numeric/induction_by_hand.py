r"""An induction model with hand-written weights.

The residual stream has four subspaces: current token, previous token, predicted token, position.

    head 0.0   a previous-token head: query i attends to position i − 1 (position 0 to itself);
               copies current token → previous token
    head 1.0   an induction head: the query's current token matches the key's *previous token*
               (K-composition); copies current token → predicted token
    unembed    reads the predicted token

With T the tokens as one-hot rows, $A_1$ the pattern of head 0.0 and β the sharpness, its logits are
$softmax(β T (A_1 T)^T) T$, with the causal mask: the tokens that followed earlier occurrences of
the current one, weighted by attention. Position 0 counts as its own predecessor, because a row of a
pattern must sum to 1. With a BOS token, which occurs only there, this has no effect; without one
the first token of a text is predicted as its own successor half of the time.

Source: Elhage et al. 2021, “Mechanistic theory of induction heads”; Olsson et al. 2022.
"""

import numpy as np

from otimes.algebra.errors import OtimesError
from otimes.numeric.config import Config
from otimes.numeric.model import Model, make_model

HERE, BEFORE, TO_COME = range(3)


def induction_by_hand(d_vocab: int, n_ctx: int, sharpness: float = 40.0) -> Model:
    r"""Return a two-layer model with one head per layer that does induction by construction.

    The logit of a token is the attention of head 1.0 on its occurrences, from 0 to 1. The attention
    score of a match is `sharpness` = β, that of others 0, so the attention on others is about
    $n e^{-β}$ for n tokens.
    Proved by: induction_model_scores, induction_model_output, induction_predicts_successor.
    Source: Elhage et al. 2021, “Mechanistic theory of induction heads”.

    >>> model = induction_by_hand(5, 8)
    >>> logits = model.forward([0, 3, 1, 4, 3, 1])["logits"]  # 0 is BOS
    >>> logits[4:].argmax(axis=1).tolist()
    [1, 4]

    Raises: OtimesError if `d_vocab` or `n_ctx` is less than 1, or `sharpness` is not positive.
    """
    if d_vocab < 1 or n_ctx < 1 or not sharpness > 0:
        raise OtimesError(
            "an induction model needs d_vocab ≥ 1, n_ctx ≥ 1 and sharpness > 0, got"
            f" {d_vocab}, {n_ctx} and {sharpness}"
        )
    k = max(d_vocab, n_ctx)
    config = Config(2, 1, 3 * d_vocab + n_ctx, k, d_vocab, n_ctx, "shortformer")
    weights = {name: np.zeros(shape) for name, shape in config.tensor_shapes().items()}
    blocks = [slice(b * d_vocab, (b + 1) * d_vocab) for b in (HERE, BEFORE, TO_COME)]
    here, before, to_come = blocks
    position = slice(3 * d_vocab, None)
    token, place = np.eye(d_vocab), np.eye(n_ctx)
    previous = np.eye(n_ctx, k=-1)
    previous[0, 0] = 1  # position 0 is its own predecessor

    asked = sharpness * np.sqrt(k)  # scores are divided by √d_head
    W_Q, W_K, W_V, W_O = (weights[f"W_{name}"] for name in "QKVO")
    weights["W_E"][:, here] = token
    weights["W_pos"][:, position] = place
    W_Q[0, 0, position, :n_ctx] = asked * previous
    W_K[0, 0, position, :n_ctx] = place
    W_Q[1, 0, here, :d_vocab] = asked * token
    W_K[1, 0, before, :d_vocab] = token
    for layer, written in ((0, before), (1, to_come)):
        W_V[layer, 0, here, :d_vocab] = token
        W_O[layer, 0, :d_vocab, written] = token
    weights["W_U"][to_come] = token
    return make_model("induction_by_hand", config, weights)
