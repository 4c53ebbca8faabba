r"""Information about a property, in features and in a control function of them.

    $I(Z; F) = Σ p(z, f) \log \frac{p(z, f)}{p(z) p(f)}$,   $G = I(Z; F) - I(Z; c(F)) ≥ 0$

A control function c keeps a part of the features, such as the token of a contextual embedding. The
gain G is what the features say about Z beyond it; it is not negative, by the data-processing
inequality. Estimates are those of the empirical distribution, which are too large for few examples.

Source: Pimentel et al. 2020, “Information-Theoretic Probing for Linguistic Structure”; Cover and
Thomas 2006, §2.8.
"""

from typing import Any, NamedTuple

import numpy as np

from otimes.algebra.errors import OtimesError, ShapeError


def mutual_information(first: Any, second: Any) -> float:
    """Return the mutual information of two discrete properties of the same examples, in bits.

    Both are labels [example]. Source: Shannon 1948.

    >>> mutual_information([0, 0, 1, 1], ["a", "a", "b", "b"])
    1.0
    >>> mutual_information([0, 0, 1, 1], [0, 1, 0, 1])
    0.0

    Raises: ShapeError unless there is one label of each kind for each example.
    """
    one, other = (_numbers(each) for each in (first, second))
    if one.shape != other.shape:
        raise ShapeError(f"{len(one)} and {len(other)} labels: there must be one for each example")
    joint = np.zeros((one.max() + 1, other.max() + 1))
    np.add.at(joint, (one, other), 1 / len(one))
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    there = joint > 0
    return max(0.0, float((joint[there] * np.log2(joint[there] / apart[there])).sum()))


class InformationGain(NamedTuple):
    """The information about a property in the features, and in the control function, in bits."""

    features: float
    control: float

    @property
    def gain(self) -> float:
        """What the features say beyond the control function; not negative."""
        return self.features - self.control


def information_gain(labels: Any, features: Any, control: Any) -> InformationGain:
    """Return the information about labels in discrete features, and in a function of these.

    `labels`, `features` and `control` are labels [example]: features are those of clusters, or of
    the signs of an activation; `control` has one value for each value of the features.

    Proved by: data_processing, information_gain_is_mean_divergence.

    >>> found = information_gain([0, 1, 0, 1], ["a0", "a1", "b0", "b1"], ["a", "a", "b", "b"])
    >>> found.gain, found.control
    (1.0, 0.0)

    Raises: OtimesError if control is not a function of the features; ShapeError for other lengths.
    """
    values, kept = _numbers(features), _numbers(control)
    if values.shape != kept.shape:
        raise ShapeError(
            f"{len(values)} features and {len(kept)} control values: there must be one of each for"
            " each example"
        )
    first = np.zeros(values.max() + 1, dtype=np.int64)
    first[values] = kept
    wrong = np.flatnonzero(first[values] != kept)
    if len(wrong):
        raise OtimesError(
            f"control is not a function of the features: the feature of example {wrong[0]} has"
            " another control value elsewhere"
        )
    return InformationGain(mutual_information(labels, values), mutual_information(labels, kept))


def _numbers(labels: Any) -> np.ndarray:
    array = np.asarray(labels)
    if array.ndim != 1 or not len(array):
        raise ShapeError(f"labels must be a list of at least one, got the shape {array.shape}")
    return np.asarray(np.unique(array, return_inverse=True)[1])
