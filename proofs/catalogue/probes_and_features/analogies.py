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
    """If activations are sums of features, X = Z F with the directions of features as rows of F,
    then reading a feature exactly requires a different set of directions: readers R with F R = I.
    Reader k has dot product 1 with feature k and 0 with all others. With features (1, 0) and (1, 1)
    the reader of the second is (0, 1).

    So to write a feature (steering) add a row of F, and to read it (probing) multiply by a column
    of R.
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
    """The dot product with a feature's own direction does not return the feature's value, even if
    exact readers R exist: X Fᵀ = Z F Fᵀ is Z only if the features are orthonormal. Overlapping
    features are picked up too.

    So a steering vector is in general not a good probe, and a probe's weights are not a good
    steering vector.
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
    """Is the difference between two forms of a word one direction in the embedding? If it is, the
    same vector leads from one form to the other for all words, and adding it does what the other
    form does. The concept tested is a space before the word, for which the vocabulary of
    `gpt2_tiny` has the most pairs. Directions are taken from other words than those they are tried
    on.
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
    """If a word's vector is a sum of two features, one for the country and one for being a city or
    a country name, then analogies are exact: e(Madrid) − e(Spain) + e(France) = e(Paris), since
    (f_1 + g_1) − (f_1 + g_2) + (f_2 + g_2) = f_2 + g_1.

    It is why analogies are taken as evidence for linear features. The converse does not follow.
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
    """Do analogies hold in the embeddings of the trained models? Their vocabularies have no
    countries, but they have words with and without a space before them. Tried is “self is to ␣self
    as name is to ␣name”, for words next to each other in the alphabet, leaving out the three words
    that the analogy is made of.
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
    """`analogies` gives the rank of the fourth vector in an analogy: how many vectors of the
    embedding are nearer to a − b + c. It is compared with counting one by one. Planted sums of two
    features must have rank 0 in every analogy (`parallelogram_is_additive`).
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
