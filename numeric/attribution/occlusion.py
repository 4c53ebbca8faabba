r"""Perturbation-based attribution: the decrease of a logit when a token is replaced or perturbed.

$A_i = f(x) - f(x_{\setminus i})$, with one forward pass per token. For an f that is linear in each
token it is that token's contribution. Where tokens only act jointly (f = AND) each gets the whole
value, and the scores sum to more than f.

Source: Zeiler and Fergus 2014 (occlusion); Li et al. 2016, “Understanding neural networks through
representation erasure”.
"""

from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError
from otimes.numeric.attribution.question import StandIn, ask
from otimes.numeric.attribution.target import Tokens
from otimes.numeric.circuits.batches import over_prompts
from otimes.numeric.circuits.result import Named
from otimes.numeric.load import ModelSource
from otimes.numeric.progress import tracked
from otimes.numeric.prompt import together


@over_prompts
def occlusion(
    model: ModelSource,
    prompt: Any,
    target: Tokens = None,
    foil: Tokens = None,
    position: Any = -1,
    *,
    replacement: StandIn = None,
) -> Named:
    r"""Return the decrease of a logit f without each token, $f(x) - f(x_{\setminus i})$ [position].

    The token's embedding is replaced by zero (None), another token's embedding, or an array
    (d_model,) or (position, d_model); the position embedding is kept.
    Proved by: occlusion_of_linear, for linear f.

    >>> occlusion("one_layer", "for i in range", "(").axes
    ('position',)

    Raises: OtimesError for an invalid prompt, token, position or replacement.
    """
    question = ask(model, prompt, target, foil, position)
    x, other = question.embed(), question.stand_in(replacement)
    whole = question.value()
    lost = np.zeros(len(x))
    for some in tracked(together(len(x), len(x)), "occluding"):
        gone = np.arange(some.start, some.stop)
        without = np.repeat(x[None], len(gone), axis=0)
        without[np.arange(len(gone)), gone] = other[gone]
        lost[some] = whole - question.values(without)
    return question.by_token("occlusion", lost)


@over_prompts
def perturbation(
    model: ModelSource,
    prompt: Any,
    target: Tokens = None,
    foil: Tokens = None,
    position: Any = -1,
    *,
    noise: float = 0.5,
    n_samples: int = 20,
    seed: int = 0,
) -> Named:
    r"""Return the mean decrease of a logit f when noise is added to one embedding [position].

    It is $f(x) - E f(x + ε_i)$.

    ε_i has independent normal entries in row i, with standard deviation `noise` times the range of
    the embedding's entries; the standard error of the mean is reported in the table's title.

    >>> perturbation("one_layer", "for i in range", "(", n_samples=2).axes
    ('position',)

    Raises: OtimesError for negative noise or fewer than two samples.
    """
    if not noise >= 0 or n_samples < 2:
        raise OtimesError(
            f"perturbation takes non-negative noise and at least 2 samples,"
            f" got noise={noise} and n_samples={n_samples}"
        )
    question = ask(model, prompt, target, foil, position)
    x = question.embed()
    rng = np.random.default_rng(seed)
    added = noise * np.ptp(x) * rng.standard_normal((n_samples, *x.shape))
    whole = question.value()
    lost = np.zeros((len(x), n_samples))
    for some in tracked(together(len(x) * n_samples, len(x)), "perturbing"):
        token, sample = np.divmod(np.arange(some.start, some.stop), n_samples)
        blurred = np.repeat(x[None], len(token), axis=0)
        blurred[np.arange(len(token)), token] += added[sample, token]
        lost[token, sample] = whole - question.values(blurred)
    error = lost.std(axis=1, ddof=1).max() / np.sqrt(n_samples)
    note = f"{n_samples} samples, standard error at most {error:.2g}"
    return question.by_token("perturbation", lost.mean(axis=1), note=note)
