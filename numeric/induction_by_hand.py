r"""An induction model whose weights are written down, not trained: every entry has a reason.

The stream has four blocks: the token here, the token before, what is to come, and the position.

    head 0.0   query i asks for position i − 1 (position 0 for itself); copies token → token before
    head 1.0   the query's token is compared with the key's *token before* (K-composition);
               copies token → what is to come
    unembed    reads what is to come

With T the tokens as one-hot rows, $A_1$ the pattern of the first head and β the sharpness, its
logits are $softmax(β T (A_1 T)^T) T$, causal: the tokens that came after earlier occurrences of the
present one, each weighted by attention. Position 0 is its own predecessor, as a pattern must attend
somewhere: the first token seems to follow itself. A token that occurs there only, BOS, does no
harm; without it the first token of a text is taken for its own successor, half of the time.

Source: Elhage et al. 2021, “Mechanistic theory of induction heads”; Olsson et al. 2022.
"""

import numpy as np

from algebra.errors import OtimesError
from numeric.config import Config
from numeric.model import Model, make_model

HERE, BEFORE, TO_COME = range(3)


def induction_by_hand(d_vocab: int, n_ctx: int, sharpness: float = 40.0) -> Model:
    r"""Return a two-layer model of one head each that continues what it has seen, by construction.

    A logit is the attention that head 1.0 pays to the tokens in question, from 0 to 1. The score of
    a match is `sharpness`, that of all else 0, so what goes astray is about $n e^{-β}$.
    Proved by: induction_model_scores, induction_model_output, induction_predicts_successor.
    Source: Elhage et al. 2021, “Mechanistic theory of induction heads”.

    >>> model = induction_by_hand(5, 8)
    >>> logits = model.forward([0, 3, 1, 4, 3, 1])["logits"]  # 0 is BOS
    >>> logits[4:].argmax(axis=1).tolist()
    [1, 4]

    Raises: OtimesError if there is no token, no position, or no sharpness.
    """
    if d_vocab < 1 or n_ctx < 1 or not sharpness > 0:
        raise OtimesError(
            f"an induction model needs a token, a position and a sharpness above 0, not {d_vocab}, "
            f"{n_ctx} and {sharpness}"
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
