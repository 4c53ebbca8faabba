r"""Attention on chosen pairs of positions: positional, joiner and syntactic heads.

A pair is a query i and a key j. The score of a head is the attention on the chosen keys of a query,
averaged over the queries that have one, $mean_i \sum_{j: M_{ij} = 1} A_{ij}$. A head that attends
to nothing else scores 1, and one that attends equally to all positions up to its own scores the
baseline, the mean of $|\{j: M_{ij} = 1\}| / (i + 1)$.

Source: Voita et al. 2019, “Analyzing Multi-Head Self-Attention”; Correia et al. 2019, “Adaptively
Sparse Transformers” (heads that join subwords); Clark et al. 2019, “What Does BERT Look At?”;
Ferrando et al. 2024, “A Primer on the Inner Workings of Transformer-based Language Models”.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.behaviours.syntax import word_numbers
from otimes.numeric.circuits.result import Named
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.metrics import attention_totals, repeated_prompts
from otimes.numeric.model import Model
from otimes.numeric.progress import tracked
from otimes.numeric.prompt import Prompts, read_prompts, together, token_texts


def attention_scores(model: ModelSource, prompts: Prompts, pairs: Any) -> Named:
    r"""Return the mean attention of each head on chosen pairs [layer, head], from 0 to 1.

    `pairs` [query, key], or [prompt, query, key], is true where attention counts. The mean is over
    the queries of all prompts that have a chosen key. `.baseline` is the score of attention that is
    uniform over the positions up to the query.
    Proved by: attention_score, looking_back_scores_one.

    >>> two_back = np.eye(4, k=-2, dtype=bool)
    >>> attention_scores("one_layer", [5, 6, 7, 8], two_back)
    <attention on chosen pairs [layer 1, head 4] float64, random baseline 0.2917>

    Raises: ShapeError for `pairs` of another shape, OtimesError if no pair is chosen or a key is
    after its query, where a causal model never attends.
    """
    model = load_model(model)
    tokens = read_prompts(model, prompts)
    chosen = _pairs(pairs, *tokens.shape)
    (total,) = attention_totals(model, tokens, chosen)
    return Named(
        "attention on chosen pairs",
        total / chosen.any(axis=2).sum(),
        ("layer", "head"),
        baseline=uniform_score(chosen),
    )


def uniform_score(pairs: Bool[np.ndarray, "... query key"]) -> float:
    """Return the score of attention that is uniform over the positions up to the query.

    >>> uniform_score(np.array([[[0, 0], [1, 0]]], dtype=bool))
    0.5
    """
    chosen = np.asarray(pairs, dtype=bool)
    counts = chosen.sum(axis=-1)
    seen = np.arange(1, chosen.shape[-2] + 1)
    return float((counts / seen)[counts > 0].mean())


def positional_scores(
    model: ModelSource, offsets: Sequence[int] = (0, 1, 2, 3), prompts: Prompts | None = None
) -> Named:
    r"""Return the mean attention of each head to the position k before [offset, layer, head].

    $mean_{i \ge k} A_{i, i-k}$ for each k of `offsets`: 0 is the position itself, 1 the previous
    token. The prompts are random tokens by default, so that only the position can tell a head where
    to look.
    Proved by: attention_score, later_positions_score_zero.

    >>> scores = positional_scores("induction", [0, 1])
    >>> scores.at(offset="1 before").top(1)[0][0]
    {'layer': 0, 'head': 1}

    Raises: OtimesError for an offset that is negative or as long as the prompt.
    """
    model = load_model(model)
    tokens = read_prompts(model, repeated_prompts(model.d_vocab) if prompts is None else prompts)
    n_pos = tokens.shape[1]
    for offset in offsets:
        if isinstance(offset, bool) or not isinstance(offset, int | np.integer):
            raise OtimesError(f"an offset is a number of positions, got {offset!r}")
        if not 0 <= offset < n_pos:
            raise OtimesError(
                f"offset {offset} is out of range: on {n_pos} tokens a head attends 0 to"
                f" {n_pos - 1} positions back, and never to a later position"
            )
    masks = [np.eye(n_pos, k=-offset) for offset in offsets]
    totals = attention_totals(model, tokens, *masks)
    counts = np.array([(n_pos - offset) * len(tokens) for offset in offsets], dtype=float)
    names = [f"{offset} before" for offset in offsets]
    axes = ("offset", "layer", "head")
    return Named("attention by offset", totals / counts[:, None, None], axes, {"offset": names})


def joiner_scores(model: ModelSource, prompts: Prompts, words: Any = None) -> Named:
    """Return the mean attention to earlier tokens of the same word [layer, head], from 0 to 1.

    The mean is over tokens that continue a word. `words` [prompt, pos] or [pos] are integers, equal
    for the tokens of one word, and needed for models with another vocabulary than the bundled one.
    `.baseline` is the score of uniform attention.

    >>> joiner_scores("gpt2_tiny", "def my_function_name(value):").values.shape
    (4, 4)

    Raises: OtimesError if no token continues a word; ShapeError for `words` of another shape.
    """
    model = load_model(model)
    tokens = read_prompts(model, prompts)
    pairs = same_word_pairs(_words(model, tokens, words))
    if not pairs.any():
        raise OtimesError("no token continues a word in these prompts, so there is nothing to join")
    found = attention_scores(model, tokens, pairs)
    return Named("attention within words", found.values, found.axes, baseline=found.baseline)


def same_word_pairs(words: Int[np.ndarray, "prompt pos"]) -> Bool[np.ndarray, "prompt query key"]:
    """Return where a key is an earlier token of the word of the query.

    >>> same_word_pairs(np.array([[0, 1, 1]])).astype(int).tolist()
    [[[0, 0, 0], [0, 0, 0], [0, 1, 0]]]
    """
    return np.tril(words[:, :, None] == words[:, None, :], k=-1)


def syntactic_scores(model: ModelSource, prompts: Prompts, related: Any) -> Named:
    """Return how often each head attends most to the related token [layer, head], from 0 to 1.

    `related` [prompt, pos] or [pos] is the position of an earlier token that the token is related
    to, such as the function of which it is an argument, or −1 for none; or it maps names of
    relations to such arrays, and the scores are [relation, layer, head]. The score is the share of
    the tokens with a relation at which the related position has the most attention (the first of
    equal ones). `.baseline`, of one relation, is `best_offset_score`: a head is called syntactic if
    it is above it by a tenth (Voita et al. 2019, §5.2).

    >>> scores = syntactic_scores("gpt2_tiny", "print(x)", [-1, -1, -1, 1, -1])
    >>> scores.values.shape, scores.baseline
    ((4, 4), 1.0)

    Raises: OtimesError if no token is related, or to a later one; ShapeError for another shape.
    """
    model = load_model(model)
    tokens = read_prompts(model, prompts)
    given = related if isinstance(related, Mapping) else {"related": related}
    arrays = {name: _related(each, tokens.shape) for name, each in given.items()}
    hits = np.zeros((len(arrays), model.n_layers, model.n_heads))
    places = [f"pattern.{layer}" for layer in range(model.n_layers)]
    for some in tracked(together(*tokens.shape), "reading prompts"):
        patterns = model.forward(tokens[some], places)
        for layer, place in enumerate(places):
            most = patterns[place].argmax(axis=-1)  # [prompt, head, query]
            for number, at in enumerate(arrays.values()):
                hits[number, layer] += (most == at[some][:, None]).sum(axis=(0, 2))
    counts = np.array([(at >= 0).sum() for at in arrays.values()])
    shares, what = hits / counts[:, None, None], "attention to the related token"
    if isinstance(related, Mapping):
        return Named(what, shares, ("relation", "layer", "head"), {"relation": list(arrays)})
    best = best_offset_score(arrays["related"])
    return Named(what, shares[0], ("layer", "head"), baseline=best)


def best_offset_score(related: Any) -> float:
    """Return the best score that attention to one offset has: the share of the commonest distance.

    >>> best_offset_score([[-1, 0, 1, 0]]).__round__(3)
    0.667
    """
    at = np.atleast_2d(np.asarray(related))
    _, query = np.nonzero(at >= 0)
    return float(np.bincount(query - at[at >= 0]).max() / len(query))


def _related(given: Any, shape: tuple[int, ...]) -> Int[np.ndarray, "prompt pos"]:
    at = _one_each(given, shape, "related")
    if (at >= np.arange(shape[1])).any() or (at < -1).any():
        raise OtimesError("each entry of `related` is −1 or the position of an earlier token")
    if (at < 0).all():
        raise OtimesError("no token of these prompts is related to another: `related` is all −1")
    return at


def _pairs(pairs: Any, n_prompts: int, n_pos: int) -> Bool[np.ndarray, "prompt query key"]:
    chosen = np.asarray(pairs)
    if chosen.shape not in ((n_pos, n_pos), (n_prompts, n_pos, n_pos)):
        raise ShapeError(
            f"pairs must have the shape {(n_pos, n_pos)} or {(n_prompts, n_pos, n_pos)} for"
            f" {n_prompts} prompts of {n_pos} tokens, got {chosen.shape}"
        )
    chosen = np.broadcast_to(chosen.astype(bool), (n_prompts, n_pos, n_pos))
    if not chosen.any():
        raise OtimesError("no pair of a query and a key is chosen: `pairs` is false everywhere")
    if np.triu(chosen, k=1).any():
        raise OtimesError(
            "`pairs` chooses a key after its query, where a causal model never attends"
        )
    return chosen


def _words(model: Model, tokens: np.ndarray, words: Any) -> Int[np.ndarray, "prompt pos"]:
    if words is not None:
        return _one_each(words, tokens.shape, "words")
    texts = [token_texts(model, row) for row in tokens]
    return np.array([word_numbers(row) for row in texts])


def _one_each(given: Any, shape: tuple[int, ...], name: str) -> Int[np.ndarray, "prompt pos"]:
    """Return integers, one for each token of each prompt."""
    array: Float[np.ndarray, ...] = np.asarray(given)
    if array.shape not in (shape, shape[1:] if shape[0] == 1 else shape):
        raise ShapeError(
            f"`{name}` has the shape {array.shape}, and one integer is needed for each of"
            f" {shape[0]} × {shape[1]} tokens"
        )
    if array.dtype.kind not in "iu":
        raise OtimesError(f"`{name}` holds integers, got {array.dtype}")
    return array.reshape(shape)
