r"""The paths that matter most on one logit, best first, with a bound on all that were not visited.

A tail is the later end of a path; to the heads before it it is a direction $a ⊗ w$ (see `pairs`),
with a ≥ 0 because patterns and scales are. Let $D_h$[pos] be an upper bound of ‖z_q‖ at a position
for every path q that ends in head h and went through at least one head before:

    T_{hg} ≥ ‖W_O^g C diag(g_l) W_V^h‖_2
    R_h = max(‖z_h‖, D_h)                         z_h: what h makes of the sources alone
    D_h = A_h (max_{g before h} T_{hg} R_g) / s_l

Then every path that goes through h right before the tail, and through at least one head before h,
is at most $(a · D_h) ‖w W_O^T‖$ in size (Cauchy–Schwarz). Tails are opened in the order of that
bound, many at a time. When no bound left is above the k-th best found, those are proven best. In
deep models the bound is far from tight, and the answer then says “not proven”, and how large
anything not visited can still be.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np
from jaxtyping import Float

from algebra.errors import OtimesError
from numeric.frozen import Direction, FrozenLayer, FrozenPass, centre
from numeric.paths.orders import Heads, direct_streams, path_name
from numeric.paths.pairs import order_one_z
from numeric.rounding import UNIT_ROUNDOFF, gamma

TAILS_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Path:
    """A path, its heads as (layer, head) from the earliest on, and what it adds to the logit."""

    heads: Heads
    value: float

    @property
    def order(self) -> int:
        """Through how many heads it goes."""
        return len(self.heads)

    def __str__(self) -> str:
        return f"{path_name(self.heads)}: {self.value:+.4g}"


@dataclass(frozen=True, slots=True)
class BestPaths:
    """The largest paths by size, the largest first, and how large any other can be.

    No path that was not visited exceeds `bound` in size; with `proven` these are the k largest of
    all paths, as far as the rounding of their values lets one tell. `visited` counts the paths
    whose value was computed.
    """

    paths: tuple[Path, ...]
    bound: float
    proven: bool
    visited: int

    def __iter__(self) -> Iterator[Path]:
        return iter(self.paths)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Path:
        return self.paths[index]


BUDGET = 1024
"""How many tails are opened at most, unless asked otherwise."""

DeepBounds = list[Float[np.ndarray, "head pos"]]
"""D of each layer's heads; 0 in the first layer, which reads no head."""


def best_paths(
    frozen: FrozenPass,
    direction: Direction,
    k: int,
    budget: int = BUDGET,
    deep: DeepBounds | None = None,
) -> BestPaths:
    """Return the k paths of any order whose values are largest in size.

    At most `budget` tails are opened, each of which gives the values of all paths that begin with
    one more head. What `deep_bounds` gives is the same for every direction and may be handed in.
    Raises: OtimesError unless k and the budget are at least 1.
    """
    if not all(isinstance(each, int | np.integer) and each >= 1 for each in (k, budget)):
        raise OtimesError(
            f"asked for the {k} best paths by opening {budget} tails:"
            " both are whole numbers, at least 1"
        )
    deep = deep_bounds(frozen) if deep is None else deep
    search = _Search(frozen.until(direction.position), direction, deep)
    found: list[tuple[float, int, Path]] = []  # the k best, the worst of them first
    order = count()

    def offer(heads: Heads, value: float) -> None:
        entry = (abs(value), next(order), Path(heads, value))
        if len(found) < k:
            heapq.heappush(found, entry)
        elif entry[0] > found[0][0]:
            heapq.heapreplace(found, entry)

    offer((), search.direct_value())
    visited, unvisited = 1, 0.0
    heap = [(-np.inf, next(order), search.root())]
    while heap and budget:
        wanted = found[0][0] if len(found) == k else 0.0
        opened: list[_Tail] = []
        while heap and len(opened) < min(TAILS_AT_ONCE, budget) and -heap[0][0] > wanted:
            opened.append(search.before(heapq.heappop(heap)[2]))
        if not opened:
            break
        budget -= len(opened)
        for at, (tail, values, bounds) in enumerate(search.open(opened)):
            visited += values.size
            least = found[0][0] if len(found) == k else 0.0
            for number, head in np.argwhere(np.abs(values) > least):
                step = (int(number), int(head))
                offer((step, *tail.heads), float(values[step]))
            least = found[0][0] if len(found) == k else 0.0
            worth = bounds > least
            unvisited = max(unvisited, float(bounds[~worth].max(initial=0.0)))
            for number, head in np.argwhere(worth):
                step = (int(number), int(head))
                child = _Tail((step, *tail.heads), opened[at].attention, opened[at].row)
                heapq.heappush(heap, (-float(bounds[step]), next(order), child))
    bound = max(unvisited, -heap[0][0] if heap else 0.0)
    best = sorted(found, key=lambda entry: (-entry[0], entry[1]))
    proven = bound == 0.0 or (len(found) == k and bound <= found[0][0])
    return BestPaths(tuple(path for _, _, path in best), bound, proven, visited)


@dataclass(frozen=True, slots=True, eq=False)
class _Tail:
    """The later end of a path and a direction: the one *behind* its first head until opened."""

    heads: Heads
    attention: Float[np.ndarray, " pos"]
    row: Float[np.ndarray, " d_model"]


class _Search:
    """What all tails share: the layers, what heads make of the sources, and the bounds D."""

    def __init__(self, frozen: FrozenPass, direction: Direction, deep: DeepBounds) -> None:
        self.frozen, self.direction = frozen, direction
        self.layers = list(frozen.layers())
        self.z = list(order_one_z(frozen))
        self.deep = [bounds[:, : frozen.n_pos] for bounds in deep]

    def root(self) -> _Tail:
        """Return the empty tail, the direction as it is at the end."""
        here = np.zeros(self.frozen.n_pos, dtype=self.frozen.dtype)
        here[self.direction.position] = 1.0
        return _Tail((), here, self.direction.row)

    def direct_value(self) -> float:
        """Return the value of the path through no head."""
        *_, direct = direct_streams(self.frozen)
        place = self.direction.position
        return float(direct[place] @ self.direction.row) + self.direction.constant

    def before(self, tail: _Tail) -> _Tail:
        """Return the tail with its direction taken back through its first head."""
        if not tail.heads:
            return tail
        number, head = tail.heads[0]
        return _Tail(tail.heads, *self.layers[number].pull_back(head, tail.attention, tail.row))

    def open(self, tails: list[_Tail]) -> Iterator[tuple[_Tail, np.ndarray, np.ndarray]]:
        """Yield for each tail, [layer, head], the paths that begin one head earlier.

        First their values; then the bound of all that begin earlier still. Only the layers before
        the tail's first one are there.
        """
        attention = np.stack([tail.attention for tail in tails])
        rows = np.stack([tail.row for tail in tails])
        n_layers = len(self.layers)
        first = [tail.heads[0][0] if tail.heads else n_layers for tail in tails]
        shape = (len(tails), n_layers, self.frozen.model.n_heads)
        values, bounds = np.zeros(shape), np.zeros(shape)
        slack = 1 + gamma(self._roundings(), UNIT_ROUNDOFF[str(self.frozen.dtype)])
        for number in range(max(first)):
            z, W_O = self.z[number], self.layers[number].W_O
            n_pos, n_heads, d_head = z.shape
            read = (rows @ W_O.reshape(n_heads * d_head, -1).T).reshape(-1, n_heads, d_head)
            attended = (attention @ z.reshape(n_pos, -1)).reshape(-1, n_heads, d_head)
            values[:, number] = (attended * read).sum(axis=2)
            length = np.sqrt((read**2).sum(axis=2))
            bounds[:, number] = slack * (attention @ self.deep[number].T) * length
        for at, tail in enumerate(tails):
            yield tail, values[at, : first[at]], bounds[at, : first[at]]

    def _roundings(self) -> int:
        """Return how many roundings a bound meets: sums over positions and widths, twice each."""
        n_layers, model = len(self.layers), self.frozen.model
        return (n_layers + 1) * (2 * self.frozen.n_pos + 6 * (model.d_model + model.d_head) + 32)


def deep_bounds(frozen: FrozenPass) -> DeepBounds:
    """Return $D_h$ for the heads of each layer, whatever the direction and its position."""
    layers: list[FrozenLayer] = []
    deep: list[np.ndarray] = []
    reach: list[np.ndarray] = []
    for layer, z in zip(frozen.layers(), order_one_z(frozen), strict=True):
        read = np.zeros_like(layer.pattern[:, 0])
        for before, reached in zip(layers, reach, strict=True):
            lengths = _norms(before, layer)[:, :, None] * reached  # [head, head before, pos]
            read = np.maximum(read, lengths.max(axis=1))
        deep.append(np.einsum("hqk,hk->hq", layer.pattern, read / layer.scale[:, 0]))
        reach.append(np.maximum(np.sqrt((z**2).sum(axis=2)).T, deep[-1]))
        layers.append(layer)
    return deep


def _norms(before: FrozenLayer, layer: FrozenLayer) -> Float[np.ndarray, "head before"]:
    """Return $T_{hg} ≥ ‖W_O^g C diag(gain) W_V^h‖_2$, the rounding of the product on top."""
    written = centre(before.W_O, layer.centring)
    d_model = written.shape[-1]
    unit = UNIT_ROUNDOFF[str(written.dtype)]
    value_sizes = np.linalg.norm(layer.gain[:, None] * layer.W_V, axis=(1, 2))
    sizes = value_sizes[:, None] * np.linalg.norm(before.W_O, axis=(1, 2))
    norms = np.empty_like(sizes)
    for head, W_V in enumerate(layer.W_V):
        product = written @ (layer.gain[:, None] * W_V)
        norms[head] = np.linalg.norm(product, ord=2, axis=(1, 2))
    # Centring and the product round d_model + 3 times each; their sizes bound the Frobenius norm.
    rounded: np.ndarray = norms + gamma(4 * (d_model + 8), unit) * sizes
    return rounded
