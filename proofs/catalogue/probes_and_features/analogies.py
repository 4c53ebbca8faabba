"""Chapter 10: features as directions, in embeddings and in what they do to the logits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from math import fsum, sqrt

import numpy as np
from sympy import Identity, MatrixSymbol, Transpose

from otimes.algebra.language.linear import matadd, matmul
from otimes.numeric.forward import forward_pass
from otimes.numeric.model import Model
from otimes.numeric.probes.analogies import analogies
from otimes.numeric.tokenizer import load_tokenizer
from otimes.proofs.catalogue.probes_and_features.reading import N, k
from otimes.proofs.catalogue.sources import PRIMER
from otimes.proofs.catalogue.symbols import d
from otimes.proofs.claims import Load, Method, NonIdentity, Observation, Observed, Statement, Trial
from otimes.proofs.theorem import theorem

HYPOTHESIS = f"{PRIMER}, “Linear Representation Hypothesis”"
PARK = (
    "Park, Choe and Veitch 2024, “The Linear Representation Hypothesis and the Geometry of Large "
    "Language Models”"
)
MIKOLOV = "Mikolov, Yih and Zweig 2013, “Linguistic Regularities in Continuous Space Word Models”"

values, features = MatrixSymbol("Z", N, k), MatrixSymbol("F", k, d)
readers = MatrixSymbol("R", d, k)
dual = (matmul(features, readers), Identity(k))


@theorem(
    title="Features are read along other directions than they are written",
    chapter=10,
    convention="row",
    source=f"{HYPOTHESIS}; {PARK}, §2 and §3",
    covers=("S3-072",),
)
def read_and_write_directions_are_dual() -> Statement:
    """The hypothesis says X = Z F: activations are sums of features f_k times their values z_k. A
    probe that returns the values exactly has weights R with F R = I: each reader has the product 1
    with its own feature and 0 with all others. Steering adds f_k, a row of F; probing multiplies
    with r_k, a column of R.
    """
    return Statement(matmul(values, features, readers), values, given=(dual,), on_models=False)


@theorem(
    title="A feature's own direction is no probe for it",
    chapter=10,
    convention="row",
    source=f"{HYPOTHESIS}; {PARK}, §3",
    covers=("S3-072",),
)
def own_direction_is_no_probe() -> NonIdentity:
    """X Fᵀ is not Z, though X = Z F and exact readers exist: unless the features are orthonormal,
    the product with f_k also returns what overlaps with it. Unless they are orthogonal, some exact
    reader has another direction than its feature, in a model that represents all of them linearly.
    """
    return NonIdentity(
        matmul(values, features, Transpose(features)), values, given=(dual,), on_models=False
    )


@lru_cache(maxsize=1)
def _pairs() -> tuple[tuple[int, int], ...]:
    """Return each word of the vocabulary without and with a space before it, as two tokens."""
    vocabulary = load_tokenizer().vocabulary
    words = sorted(each for each in vocabulary if each.isascii() and each.isalpha())
    return tuple(
        (vocabulary[each], vocabulary["Ġ" + each])
        for each in words
        if len(each) > 2 and "Ġ" + each in vocabulary
    )


RANDOM = 3


def _effects(model: Model, pairs: Sequence[tuple[int, int]]) -> np.ndarray:
    """Return the cosines of changed logits [direction]: the concept's first, then random ones.

    The directions are added to the embedding of the first word of each pair; the change of the
    logits is compared with that of putting the second word in its place.
    """
    rng = np.random.default_rng(0)
    half = len(pairs) // 2
    plain, spaced = np.array(pairs).T
    E = model.W_E
    concept = (E[spaced[half:]] - E[plain[half:]]).mean(axis=0)
    others = rng.standard_normal((RANDOM, len(concept)))
    others *= np.linalg.norm(concept) / np.linalg.norm(others, axis=1, keepdims=True)
    start = E[plain[:half]]
    rows = [start, E[spaced[:half]], start + concept, *(start + each for each in others)]
    embed = np.stack(rows)[:, :, None]
    tokens = np.broadcast_to(plain[:half, None], embed.shape[:-1])
    logits = forward_pass(model, tokens, ["logits"], embed)["logits"][:, :, 0]
    changes = logits[1:] - logits[0]
    sizes = np.linalg.norm(changes, axis=-1)
    found: np.ndarray = ((changes[1:] * changes[0]).sum(-1) / (sizes[1:] * sizes[0])).mean(axis=1)
    return found


def _see_directions(load: Load) -> Observed:
    model, pairs = load("gpt2_tiny"), _pairs()
    W_E = model.W_E
    changes = np.array([W_E[spaced] - W_E[plain] for plain, spaced in pairs])
    others = (changes.sum(axis=0) - changes) / (len(changes) - 1)
    sizes = np.linalg.norm(changes, axis=1) * np.linalg.norm(others, axis=1)
    alike = float(((changes * others).sum(axis=1) / sizes).mean())
    effect, *random = _effects(model, pairs)
    figure = (
        f"{len(pairs)} words with and without a space: the difference of the embeddings has a mean "
        f"cosine of {alike:.2f} with the mean difference of the other words; adding that of one "
        f"half to the words of the other changes the logits as the space does, with a mean cosine "
        f"of {effect:.2f}, and random directions with at most {max(random):.2f}"
    )
    return Observed(
        figure,
        {"cosine of differences": alike, "effect above random directions": effect - max(random)},
    )


@theorem(
    title="A space before a word as a direction",
    chapter=10,
    source=f"{HYPOTHESIS}; {PARK}, §4",
    covers=("S3-072",),
)
def space_is_a_direction() -> Observation:
    """If a concept is a direction, then the vector that leads from one form of a word to the other
    is nearly the same for all words, and adding it does what the other form does. The concept here
    is the one for which the vocabulary of `gpt2_tiny` has the most pairs: whether a space stands
    before a word. The directions are those of other words than the ones that they are tried on.
    """
    return Observation(
        "the differences have a mean cosine of more than 0.2 with the mean of the others, and the "
        "direction's effect on held-out words is nearer to that of the space than the effects of "
        f"{RANDOM} random directions",
        _see_directions,
        {"cosine of differences": 0.2, "effect above random directions": 0.0},
    )


@theorem(
    title="A sum of two features makes parallelograms",
    chapter=10,
    convention="row",
    source=f"{HYPOTHESIS}; {MIKOLOV}",
    covers=("S3-073",),
)
def parallelogram_is_additive() -> Statement:
    """Let the embedding of a word be f + g, a part for the country and a part for being a city.
    Then e(Madrid) - e(Spain) + e(France) is (f₁ + g₁) - (f₁ + g₂) + (f₂ + g₂) = f₂ + g₁, exactly
    e(Paris).
    """
    f_1, f_2, g_1, g_2 = (MatrixSymbol(name, 1, d) for name in ("f_1", "f_2", "g_1", "g_2"))
    madrid, spain, france = matadd(f_1, g_1), matadd(f_1, g_2), matadd(f_2, g_2)
    return Statement(matadd(madrid, matmul(-1, spain), france), matadd(f_2, g_1), on_models=False)


def _see_analogies(load: Load) -> Observed:
    pairs = _pairs()
    quadruples = [(*first, *second) for first, second in pairwise(pairs)]
    shares = {
        name: float((analogies(load(name).W_E, quadruples) == 0).mean())
        for name in ("one_layer", "two_layer", "gpt2_tiny")
    }
    figure = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
    return Observed(
        f"of {len(quadruples)} analogies, the nearest token is the right one in {figure}",
        {"smallest share": min(shares.values())},
    )


@theorem(
    title="self : ␣self = name : ␣name, tried on embeddings",
    chapter=10,
    source=f"{HYPOTHESIS}; {MIKOLOV}",
    covers=("S3-073",),
)
def analogies_in_embeddings() -> Observation:
    """The vocabularies here have no countries. What they have are words with and without a space
    before them, in which the same change of form is made; the analogy of each two words next to
    each other in the alphabet is tried, without the three that it is made of.
    """
    return Observation(
        "in every model more than half of the analogies have the right nearest token",
        _see_analogies,
        {"smallest share": 0.5},
        outcome="not seen",
    )


@theorem(
    title="analogies: the rank of the fourth vector",
    chapter=10,
    source=MIKOLOV,
    covers=("S3-073",),
)
def analogies_method() -> Method:
    """The rank of the fourth vector is the number of vectors that are nearer, counted one by one
    over rows of the embedding. Planted sums of two features have the rank 0 in every analogy.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        rows = model.W_E[:20]
        four = (3, 7, 12, 5)
        goal = rows[7] - rows[3] + rows[12]
        cosines = [fsum(goal * row) / sqrt(fsum(row * row)) for row in rows]
        nearer = sum(cosines[at] > cosines[5] for at in range(20) if at not in four)
        yield Trial("rank", 1 + analogies(rows, np.array([four]))[0], 1 + nearer, 0.0)
        planted = np.concatenate([rows[:4] + rows[19], rows[:4] + rows[18], rows[8:18]])
        quadruples = [(0, 4, 1, 5), (2, 6, 3, 7), (5, 1, 6, 2)]
        yield Trial("planted", 1 + analogies(planted, quadruples), np.ones(3), 0.0)

    return Method("ot.analogies", ("parallelogram_is_additive",), trials)
