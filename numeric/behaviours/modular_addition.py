r"""Networks that add modulo p: trained until they grok, and written by hand in a Fourier basis.

    logits(a, b) = (A_a + B_b)² C     one-hot inputs a, b, hidden units squared, no biases

The function is one of degree three in its weights, so a network of norm ‖θ‖ has the logits of the
same network of norm one times ‖θ‖³. Trained on a part of all pairs (a, b), it first memorises them
and is wrong about all others; under weight decay it then finds a solution that is right about every
pair, whose weights are waves in a few frequencies: the logit of c is a sum of cos(ω (a + b - c)).

Source: Power et al. 2022, “Grokking”; Nanda et al. 2023, “Progress measures for grokking via
mechanistic interpretability”; Gromov 2023, “Grokking modular arithmetic” (this network); Varma et
al. 2023, “Explaining grokking through circuit efficiency”.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.brief import Brief
from otimes.numeric.files import (
    check_writable,
    json_bytes,
    read_json,
    read_weights,
    write_weights,
    write_whole,
)
from otimes.numeric.given import is_whole
from otimes.numeric.tokenizer import BUNDLED

DEGREE = 3
"""The logits are a polynomial of this degree in the weights."""
NAMES = ("A", "B", "C")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AdditionNetwork(Brief):
    """A network (A_a + B_b)² C on pairs of numbers modulo p; its weights are read-only."""

    A: Float[np.ndarray, "p hidden"]
    B: Float[np.ndarray, "p hidden"]
    C: Float[np.ndarray, "hidden p"]

    def __post_init__(self) -> None:
        """Check the shapes. Raises: ShapeError if they do not fit."""
        p, hidden = np.shape(self.A)
        if np.shape(self.B) != (p, hidden) or np.shape(self.C) != (hidden, p):
            raise ShapeError(
                f"A is {p} × {hidden}, so B must have that shape and C be {hidden} × {p}; got"
                f" {np.shape(self.B)} and {np.shape(self.C)}"
            )

    @property
    def p(self) -> int:
        """The modulus."""
        return len(self.A)

    @property
    def norm(self) -> float:
        """The norm of all weights as one vector."""
        return float(
            np.sqrt(sum(float(np.square(each).sum()) for each in (self.A, self.B, self.C)))
        )

    def logits(self) -> Float[np.ndarray, "a b c"]:
        """Return the logit of each answer c to each pair (a, b)."""
        return np.asarray(np.square(self.A[:, None] + self.B[None]) @ self.C)

    def right(self) -> Bool[np.ndarray, "a b"]:
        """Return for which pairs the largest logit is that of a + b modulo p."""
        return np.asarray(self.logits().argmax(axis=2) == sums(self.p))


def sums(p: int) -> np.ndarray:
    """Return a + b modulo p for all pairs.

    >>> sums(3).tolist()
    [[0, 1, 2], [1, 2, 0], [2, 0, 1]]
    """
    each = np.arange(p)
    return np.asarray((each[:, None] + each) % p)


def fourier_addition(p: int, frequencies: Sequence[int]) -> AdditionNetwork:
    r"""Return the network whose logits are $Σ_k \cos(ω_k (a + b - c))$ with $ω_k = 2π k / p$.

    Eight hidden units for each frequency: a product is a difference of squares, 4 u v = (u + v)² -
    (u - v)², and the products are those of the addition theorems.

    Proved by: product_of_squares, angles_add.

    >>> bool(fourier_addition(7, [2]).right().all())
    True

    Raises: OtimesError for p < 3, or a frequency that is not 1 to (p - 1) / 2.
    """
    if isinstance(p, bool) or not isinstance(p, int) or p < 3:
        raise OtimesError(f"the modulus must be an integer of at least 3, got {p!r}")
    listed = isinstance(frequencies, Sequence | np.ndarray) and len(frequencies) > 0
    if not listed or any(not is_whole(k) or not 1 <= k <= (p - 1) // 2 for k in frequencies):
        got = list(frequencies) if listed else repr(frequencies)
        raise OtimesError(f"frequencies must be some of 1 to {(p - 1) // 2}, got {got}")
    angles = 2 * np.pi * np.outer(frequencies, np.arange(p)) / p
    first, second, answer = [], [], []
    for cos, sin in zip(np.cos(angles), np.sin(angles), strict=True):
        for left, right, out in (
            (cos, cos, cos),
            (sin, sin, -cos),
            (sin, cos, sin),
            (cos, sin, sin),
        ):
            first += [left, left]
            second += [right, -right]
            answer += [out / 4, -out / 4]
    return AdditionNetwork(np.array(first).T, np.array(second).T, np.array(answer))


def fourier_shares(network: AdditionNetwork) -> Float[np.ndarray, "hidden frequency"]:
    r"""Return the share of each hidden unit's weights in each frequency 0, …, ⌊p/2⌋.

    The shares of a unit, of its columns of A and B and its row of C together, sum to 1. A unit that
    is a wave has 1 in one frequency; one of random weights about 2/p in each but the first.

    >>> fourier_shares(fourier_addition(7, [2])).round(12)[0].tolist()
    [0.0, 0.0, 1.0, 0.0]

    Raises: OtimesError for a unit whose weights are all zero.
    """
    p = network.p
    waves = np.stack([np.fft.fft(each, axis=0) for each in (network.A, network.B, network.C.T)])
    power = np.square(np.abs(waves)).sum(axis=0)
    folded = power[: p // 2 + 1].copy()
    folded[1 : (p + 1) // 2] += power[: p // 2 : -1]
    if not power.any(axis=0).all():
        raise OtimesError("the weights of a hidden unit are all zero: it has no frequency")
    return np.asarray((folded / power.sum(axis=0)).T)


def share_of_the_sum(network: AdditionNetwork) -> float:
    r"""Return the share of the variance of the logits that is a function of a + b - c modulo p.

    The logits are centred over c, which leaves their softmax. Functions of a + b - c are the sums
    of $\cos(ω_k (a + b - c))$ and sines: the share is 1 for `fourier_addition`, and about 1/p² for
    random logits.

    >>> round(share_of_the_sum(fourier_addition(7, [2])), 12)
    1.0

    Raises: OtimesError for logits that are the same for all answers.
    """
    p, logits = network.p, network.logits()
    logits -= logits.mean(axis=2, keepdims=True)
    whole = float(np.square(logits).sum())
    if not whole:
        raise OtimesError("the logits are the same for all answers: they have no variance")
    difference = (sums(p)[..., None] - np.arange(p)) % p
    means = np.bincount(difference.ravel(), logits.ravel()) / p**2
    return float(np.square(means).sum()) * p**2 / whole


def circuit_efficiency(
    network: AdditionNetwork, pairs: Bool[np.ndarray, "a b"] | None = None
) -> float:
    r"""Return the mean margin of the right answer over ‖θ‖³: the logits for weights θ of norm one.

    The margin is the logit of a + b less the largest other. `pairs` says which pairs count, by
    default all. Weight decay favours the circuit that has the larger logits for its norm.
    Source: Varma et al. 2023, §3.

    >>> network = fourier_addition(7, [2])
    >>> round(circuit_efficiency(network) * network.norm**3, 3)  # 1 - cos(2 π / 7)
    0.377

    Raises: ShapeError for pairs that are not p × p, OtimesError if there are none.
    """
    p, logits = network.p, network.logits()
    chosen = np.ones((p, p), bool) if pairs is None else np.asarray(pairs, bool)
    if chosen.shape != (p, p):
        raise ShapeError(f"pairs must be a 0/1 array {p} × {p}, got {chosen.shape}")
    if not chosen.any():
        raise OtimesError("no pair is chosen, so there is no margin")
    answer = sums(p)[..., None]
    right = np.take_along_axis(logits, answer, axis=2)[..., 0]
    np.put_along_axis(logits, answer, -np.inf, axis=2)
    return float((right - logits.max(axis=2))[chosen].mean()) / network.norm**DEGREE


@dataclass(frozen=True, slots=True)
class AdditionRecipe:
    """The settings of a run; with the seed they determine it."""

    p: int = 31
    hidden: int = 128
    share: float = 0.4
    scale: float = 0.5
    learning_rate: float = 3e-3
    weight_decay: float = 1.0
    steps: int = 6000
    every: int = 250
    memorised_at: int = 500


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AdditionRun(Brief):
    """A run: which pairs it was trained on, its curve, and the network early and at the end.

    The columns of `curve` are the step, the loss on the training pairs in nats, and the shares of
    training pairs and of other pairs that are right.
    """

    recipe: AdditionRecipe
    seed: int
    trained_on: Bool[np.ndarray, "a b"]
    curve: Float[np.ndarray, "time 4"]
    memorises: AdditionNetwork
    generalises: AdditionNetwork


def train_addition(
    recipe: AdditionRecipe | None = None,
    seed: int = 0,
    on_progress: Callable[[int, int, float], None] | None = None,
) -> AdditionRun:
    """Train a network on a part of all pairs: full batches, cross-entropy, Adam, weight decay.

    `memorises` is the network after `recipe.memorised_at` steps. The bundled run is that of the
    default recipe, `otimes train modular_addition`: half a minute on one core.

    >>> run = train_addition(AdditionRecipe(p=5, hidden=8, steps=20, every=10, memorised_at=10))
    >>> run.curve.shape, int(run.trained_on.sum())
    ((3, 4), 10)

    Raises: OtimesError for a recipe that leaves no pair to train on or to test on.
    """
    recipe = AdditionRecipe() if recipe is None else recipe
    p, rng = recipe.p, np.random.default_rng(seed)
    count = int(recipe.share * p * p)
    if not 0 < count < p * p or not 0 <= recipe.memorised_at <= recipe.steps:
        raise OtimesError(f"the recipe trains on {count} of {p * p} pairs, {recipe}")
    chosen = np.zeros(p * p, bool)
    chosen[rng.permutation(p * p)[:count]] = True
    shapes = ((p, recipe.hidden), (p, recipe.hidden), (recipe.hidden, p))
    weights = [recipe.scale * rng.standard_normal(shape) for shape in shapes]
    adam, curve = _Adam(recipe, weights), []
    early: list[np.ndarray] = []
    for step in range(recipe.steps + 1):
        loss, gradients = loss_and_gradients(weights, chosen.reshape(p, p))
        if step % recipe.every == 0:
            right = AdditionNetwork(*weights).right().ravel()
            curve.append((step, loss, right[chosen].mean(), right[~chosen].mean()))
            if on_progress is not None:
                on_progress(step, recipe.steps, loss)
        if step == recipe.memorised_at:
            early = [each.copy() for each in weights]
        if step < recipe.steps:
            adam.step(weights, gradients)
    grid = chosen.reshape(p, p)
    networks = (AdditionNetwork(*early), AdditionNetwork(*weights))
    return AdditionRun(recipe, seed, grid, np.array(curve), *networks)


def loss_and_gradients(
    weights: list[np.ndarray], chosen: np.ndarray
) -> tuple[float, list[np.ndarray]]:
    """Return the mean cross-entropy on the chosen pairs, and its gradients."""
    A, B, C = weights
    a, b = np.nonzero(chosen)
    first, second = np.eye(len(A))[a], np.eye(len(A))[b]
    target = np.eye(len(A))[(a + b) % len(A)]
    hidden = A[a] + B[b]
    logits = np.square(hidden) @ C
    logits -= logits.max(axis=1, keepdims=True)
    weight = np.exp(logits)
    weight /= weight.sum(axis=1, keepdims=True)
    loss = -float(np.log((weight * target).sum(axis=1)).mean())
    gap = (weight - target) / len(a)
    down = 2 * hidden * (gap @ C.T)
    return loss, [first.T @ down, second.T @ down, np.square(hidden).T @ gap]


class _Adam:
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019), β = 0.9 and 0.98."""

    def __init__(self, recipe: AdditionRecipe, weights: list[np.ndarray]) -> None:
        self.recipe, self.done = recipe, 0
        self.mean = [np.zeros_like(each) for each in weights]
        self.square = [np.zeros_like(each) for each in weights]

    def step(self, weights: list[np.ndarray], gradients: list[np.ndarray]) -> None:
        """Change the weights in place."""
        self.done += 1
        for weight, gradient, mean, square in zip(
            weights, gradients, self.mean, self.square, strict=True
        ):
            mean += 0.1 * (gradient - mean)
            square += 0.02 * (gradient**2 - square)
            size = np.sqrt(square / (1 - 0.98**self.done)) + 1e-8
            move = mean / (1 - 0.9**self.done) / size + self.recipe.weight_decay * weight
            weight -= self.recipe.learning_rate * move


FILES = ("modular_addition.safetensors", "modular_addition.json")


def save_addition(run: AdditionRun, folder: str | Path) -> Path:
    """Write a run into a folder, as float32, and return the folder."""
    path = Path(folder)
    check_writable(path, folder=True)
    path.mkdir(parents=True, exist_ok=True)
    tensors = {
        f"{which}.{name}": getattr(getattr(run, which), name).astype(np.float32)
        for which in ("memorises", "generalises")
        for name in NAMES
    }
    write_weights(path / FILES[0], {**tensors, "trained_on": run.trained_on.astype(np.float32)})
    card: dict[str, Any] = {
        "command": "otimes train modular_addition",
        "recipe": asdict(run.recipe),
        "seed": run.seed,
        "columns": ["step", "loss", "right, trained on", "right, others"],
        "curve": [[float(f"{each:.6g}") for each in row] for row in run.curve],
    }
    write_whole(path / FILES[1], json_bytes(card))
    return path


def load_addition(folder: str | Path | None = None) -> AdditionRun:
    """Return a run from a folder, by default the bundled one.

    >>> run = load_addition()
    >>> [float(row[2:].min()) < 1 for row in run.curve[[2, -1]]]  # early and at the end
    [True, False]
    """
    path = BUNDLED if folder is None else Path(folder)
    card, stored = read_json(path / FILES[1]), read_weights(path / FILES[0])
    networks = [
        AdditionNetwork(*(np.asarray(stored[f"{which}.{name}"], np.float64) for name in NAMES))
        for which in ("memorises", "generalises")
    ]
    trained_on = np.asarray(stored["trained_on"]) > 0
    recipe = AdditionRecipe(**card["recipe"])
    return AdditionRun(recipe, card["seed"], trained_on, np.array(card["curve"]), *networks)
