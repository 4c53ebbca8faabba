r"""Linear probes: can a property of the input be read linearly off an activation?

    ridge      $\min_{W, b} \|X W + b - Z\|^2 + λ \|W\|^2$, Z the one-hot labels; in closed form
    logistic   $\min_{W, b} -\sum_i \log softmax(x_i W + b)_{z_i} + \frac{λ}{2} \|W\|^2$

A high accuracy does not say that the model uses the property, nor even that the activation encodes
it: with as many dimensions as examples a probe fits any labels. Selectivity is the accuracy minus
that on a control task, in which each type of input has a random label; the description length is
what it costs to send the labels with a probe that is trained on those already sent.

Source: Alain and Bengio 2017; Belinkov 2022, “Probing Classifiers”; Hewitt and Liang 2019,
“Designing and Interpreting Probes with Control Tasks”; Voita and Titov 2020, “Information-Theoretic
Probing with Minimum Description Length”.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import log_softmax

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.brief import Brief
from otimes.numeric.given import real_array
from otimes.numeric.probes.data import one_hot, read_labels, read_rows

KINDS = ("ridge", "logistic")
NEWTON_STEPS = 8


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Probe(Brief):
    """A linear classifier of activations: scores are $x W + b$, one for each class."""

    kind: str
    W: Float[np.ndarray, "d class"]
    b: Float[np.ndarray, " class"]
    classes: np.ndarray

    def scores(self, activations: Any) -> Float[np.ndarray, "example class"]:
        """Return the score of each class. Raises: ShapeError for another width."""
        rows = read_rows(activations)
        if rows.shape[1] != len(self.W):
            raise ShapeError(f"the probe reads {len(self.W)} dimensions, got {rows.shape[1]}")
        return np.asarray(rows @ self.W + self.b)

    def predict(self, activations: Any) -> np.ndarray:
        """Return the class with the largest score of each example."""
        return np.asarray(self.classes[self.scores(activations).argmax(axis=1)])

    def accuracy(self, activations: Any, labels: Any) -> float:
        """Return the share of examples whose label is predicted."""
        found, labels = self.predict(activations), np.asarray(labels)
        if labels.shape != found.shape:
            raise ShapeError(f"{len(found)} examples need {len(found)} labels, got {labels.shape}")
        return float((found == labels).mean())

    def log_loss(self, activations: Any, labels: Any) -> float:
        r"""Return the mean of $-\\log softmax(x W + b)_z$ in nats. Logistic probes only.

        Raises: OtimesError for a ridge probe, or a label that the probe does not know.
        """
        if self.kind != "logistic":
            raise OtimesError("log_loss is of logistic probes: ridge scores are not log odds")
        labels, logs = np.asarray(labels), log_softmax(self.scores(activations), axis=1)
        if labels.shape != logs.shape[:1]:
            raise ShapeError(f"{len(logs)} examples need {len(logs)} labels, got {labels.shape}")
        at = np.searchsorted(self.classes, labels)
        known = at < len(self.classes)
        if not known.all() or (self.classes[at] != labels).any():
            raise OtimesError(
                f"the labels have a class that is not one of the probe's, {self.classes.tolist()}"
            )
        return float(-logs[np.arange(len(labels)), at].mean())


def fit_probe(
    activations: Any, labels: Any, kind: str = "logistic", *, penalty: float = 1.0
) -> Probe:
    """Return a linear probe, ridge or logistic, with the penalty λ on its weights.

    `activations` [example, d], `labels` [example], of any type that can be sorted. The intercept is
    not penalised. The logistic probe is the minimum of a convex function, found by L-BFGS and
    Newton steps.

    Proved by: ridge_probe_is_the_minimum, enough_dimensions_fit_any_labels.

    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((40, 3))
    >>> fit_probe(rows, rows[:, 0] > 0, penalty=0.01).accuracy(rows, rows[:, 0] > 0)
    1.0

    Raises: OtimesError for an unknown kind, a penalty that is not positive, or labels of one class;
    ShapeError for shapes that do not fit.
    """
    if kind not in KINDS:
        raise OtimesError(f"kind must be 'ridge' or 'logistic', got {kind!r}")
    _check_penalty(penalty)
    rows = read_rows(activations)
    numbers, classes = read_labels(labels, len(rows))
    target = one_hot(numbers, len(classes))
    fit = _ridge if kind == "ridge" else _logistic
    W, b = fit(rows, target, float(penalty))
    return Probe(kind, W, b, classes)


def _check_penalty(penalty: Any) -> None:
    if not isinstance(penalty, int | float | np.floating) or not 0 < penalty < np.inf:
        raise OtimesError(f"penalty must be a positive number, got {penalty!r}")


def _ridge(rows: np.ndarray, target: np.ndarray, penalty: float) -> tuple[np.ndarray, np.ndarray]:
    mean, goal = rows.mean(axis=0), target.mean(axis=0)
    X = rows - mean
    W = np.linalg.solve(X.T @ X + penalty * np.eye(X.shape[1]), X.T @ (target - goal))
    return W, goal - mean @ W


def _logistic(
    rows: np.ndarray, target: np.ndarray, penalty: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the minimum: L-BFGS comes near, and Newton steps end at the rounding of the slope."""
    mean, d, classes = rows.mean(axis=0), rows.shape[1], target.shape[1]
    X = rows - mean  # the intercept is free: the minimum is the same, and better conditioned

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        W, b = np.split(flat.reshape(d + 1, classes), [d])
        logs = log_softmax(X @ W + b, axis=1)
        gap = np.exp(logs) - target
        gradient = np.concatenate([X.T @ gap + penalty * W, gap.sum(axis=0)[None]])
        return -(target * logs).sum() + penalty / 2 * (W**2).sum(), gradient.ravel()

    def curvature(flat: np.ndarray) -> LinearOperator:
        W, b = np.split(flat.reshape(d + 1, classes), [d])
        p = np.exp(log_softmax(X @ W + b, axis=1))

        def times(move: np.ndarray) -> np.ndarray:
            V, c = np.split(move.reshape(d + 1, classes), [d])
            moved = X @ V + c
            moved = p * (moved - (p * moved).sum(axis=1, keepdims=True))
            return np.concatenate([X.T @ moved + penalty * V, moved.sum(axis=0)[None]]).ravel()

        return LinearOperator((flat.size, flat.size), matvec=times, dtype=np.float64)

    options = {"maxiter": 5000, "maxfun": 20000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 30}
    start = np.zeros((d + 1) * classes)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x
    W, b = np.split(_newton(found, loss, curvature).reshape(d + 1, classes), [d])
    return W, b[0] - mean @ W


def _newton(
    flat: np.ndarray,
    loss: Callable[[np.ndarray], tuple[float, np.ndarray]],
    curvature: Callable[[np.ndarray], LinearOperator],
) -> np.ndarray:
    """Return a minimum from a point near it, by Newton steps as long as the slope falls."""
    slope = loss(flat)[1]
    for _ in range(NEWTON_STEPS):
        # A rough step is enough: what it leaves of the slope is what the next one starts from.
        step, _ = cg(curvature(flat), -slope, rtol=1e-6, maxiter=4 * len(flat))
        after = loss(flat + step)[1]
        if not np.linalg.norm(after) < np.linalg.norm(slope) / 2:
            break
        flat, slope = flat + step, after
    return flat


def control_labels(types: Any, labels: Any, seed: int = 0) -> np.ndarray:
    """Return the labels of a control task: one random label for each type of input.

    `types` [example] says which examples are of one type, such as the token; each type gets a label
    drawn from the frequencies of `labels`. A probe can be right about these only by remembering
    them. Source: Hewitt and Liang 2019.

    >>> control_labels([7, 7, 3, 7], [0, 1, 1, 1]).tolist()
    [1, 1, 1, 1]

    Raises: ShapeError unless there is one type for each label.
    """
    kinds, labels = np.asarray(types), np.asarray(labels)
    if kinds.ndim != 1 or kinds.shape != labels.shape:
        raise ShapeError(
            f"types and labels must have one entry for each example, got {kinds.shape} and"
            f" {labels.shape}"
        )
    each, which = np.unique(kinds, return_inverse=True)
    drawn = np.random.default_rng(seed).choice(labels, size=len(each))
    return np.asarray(drawn[which])


@dataclass(frozen=True, slots=True)
class Selectivity:
    """The accuracies of a probe on a task and on its control task, on held-out examples."""

    task: float
    control: float

    @property
    def selectivity(self) -> float:
        """The difference of the two accuracies."""
        return self.task - self.control


def selectivity(
    activations: Any,
    labels: Any,
    types: Any,
    kind: str = "logistic",
    *,
    penalty: float = 1.0,
    held_out: float = 0.25,
    seed: int = 0,
) -> Selectivity:
    """Return the accuracy of a probe on held-out examples, and that on a control task.

    The control task has the types of `control_labels`; a share `held_out` of the examples, drawn
    at random, is for both accuracies.

    >>> rng = np.random.default_rng(0)
    >>> tokens = rng.integers(20, size=400)
    >>> rows = rng.standard_normal((20, 30))[tokens]
    >>> found = selectivity(rows, tokens % 2, tokens)
    >>> found.task, found.control  # a probe of 30 dimensions remembers 20 tokens
    (1.0, 1.0)

    Raises: OtimesError for a share that leaves no examples, or what `fit_probe` raises.
    """
    rows, labels = read_rows(activations), np.asarray(labels)
    control = control_labels(types, labels, seed)
    if not isinstance(held_out, float) or not 0 < held_out < 1:
        raise OtimesError(f"held_out must be a share between 0 and 1, got {held_out!r}")
    count = round(held_out * len(rows))
    if not 0 < count < len(rows):
        raise OtimesError(f"{held_out:g} of {len(rows)} examples leaves none to train or to test")
    order = np.random.default_rng(seed).permutation(len(rows))
    test, train = order[:count], order[count:]
    accuracies = [
        fit_probe(rows[train], each[train], kind, penalty=penalty).accuracy(rows[test], each[test])
        for each in (labels, control)
    ]
    return Selectivity(*accuracies)


def description_length(
    activations: Any,
    labels: Any,
    *,
    penalty: float = 1.0,
    blocks: Sequence[float] = (0.05, 0.1, 0.2, 0.4, 0.7, 1.0),
) -> float:
    r"""Return the online code length of labels, $\sum_i -\log p_{θ_{<i}}(z_i | x_i)$, in bits.

    The examples are sent in their order, in blocks that end at the given shares: the first with
    uniform probabilities, each other with a logistic probe that is trained on those before it. A
    property that is easy to read costs few bits; random labels cost about $N \log_2 k$.
    Source: Rissanen 1984; Voita and Titov 2020, §3.2.

    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((200, 4))
    >>> easy, random = rows[:, 0] > 0, rng.integers(2, size=200)
    >>> description_length(rows, easy) < 100 < description_length(rows, random)
    True

    Raises: OtimesError for blocks that do not increase to 1, or labels of one class.
    """
    rows = read_rows(activations)
    numbers, classes = read_labels(labels, len(rows))
    _check_penalty(penalty)
    ends = [round(share * len(rows)) for share in real_array(blocks, "blocks").ravel()]
    if not ends or ends[-1] != len(rows) or sorted({*ends}) != ends or ends[0] < 1:
        raise OtimesError(
            f"blocks must be increasing shares that end at 1, with examples in each; got {blocks}"
        )
    nats = ends[0] * np.log(len(classes))
    for start, stop in itertools.pairwise(ends):
        some = slice(start, stop)
        nats += _code(
            rows[:start], numbers[:start], rows[some], numbers[some], len(classes), penalty
        )
    return float(nats / np.log(2))


def _code(
    known: np.ndarray,
    labels: np.ndarray,
    rows: np.ndarray,
    sent: np.ndarray,
    count: int,
    penalty: float,
) -> float:
    """Return the code length of labels in nats, by a probe that was trained on others."""
    W, b = _logistic(known, one_hot(labels, count), penalty)
    # A class that was not seen has no finite intercept: one example in all is added, uniformly.
    logs = log_softmax(rows @ W + b, axis=1)
    share = 1 / (len(known) + 1)
    mixed = np.log((1 - share) * np.exp(logs) + share / count)
    return float(-mixed[np.arange(len(sent)), sent].sum())
