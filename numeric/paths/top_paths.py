r"""The paths with the largest contributions to one logit, with a bound on all unvisited paths.

A best-first search over tails. A tail is the last heads of a path; the heads before it see it as a
direction $a ⊗ w$ (see `pairs`), with a ≥ 0 because patterns and scales are non-negative. Let
$D_h$[pos] be an upper bound on ‖z_q‖ at a position for every path q that ends in head h and has at
least one head before h:

    T_{hg} ≥ ‖W_O^g C diag(g_l) W_V^h‖_2
    R_h = max(‖z_h‖, D_h)                         z_h: the output of h on the sources alone
    D_h = A_h (max_{g before h} T_{hg} R_g) / s_l

Then every path with h directly before the tail, and at least one head before h, has an absolute
contribution of at most $(a · D_h) ‖w W_O^T‖$ (Cauchy–Schwarz). With frozen MLP gates, the norm of
an MLP's output between g and h is at most μ[pos] times the norm of its input,

    μ = ‖C diag(gain) W_in‖_2 max|G| ‖W_out‖_2 / s,

so $‖W_O^g‖ (\prod (1 + μ) - 1) ‖C diag(g_l) W_V^h‖$ is added to T. Tails are expanded in descending
order of this bound, in batches. When no remaining bound exceeds the k-th largest path found, the
result is proven. In deep models the bound is loose; the result is then marked as not proven, with a
bound on all unvisited paths.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, repeat

import numpy as np
from jaxtyping import Float

from otimes.algebra.errors import OtimesError
from otimes.numeric.frozen import Direction, FrozenPass
from otimes.numeric.frozen_layer import FrozenLayer, FrozenMLP, centre
from otimes.numeric.paths.directions import Directions, at_the_end
from otimes.numeric.paths.orders import Heads, direct_streams
from otimes.numeric.paths.pairs import order_one_z
from otimes.numeric.paths.path_tables import Path, PathTable
from otimes.numeric.progress import tracked
from otimes.numeric.rounding import UNIT_ROUNDOFF, gamma

TAILS_AT_ONCE = 64


@dataclass(frozen=True, slots=True, repr=False)
class TopPaths(PathTable):
    """The paths with the largest absolute contributions, the largest first.

    `bound` is an upper bound on the absolute contribution of any unvisited path. If `proven`, these
    are the k largest of all paths, up to rounding of their values. `visited` is the number of paths
    whose contribution was computed.
    """

    bound: float = field(kw_only=True)
    proven: bool = field(kw_only=True)
    visited: int = field(kw_only=True)

    def _about(self) -> str:
        if self.proven:
            return f"proven to be the largest; {self.visited} paths visited"
        return f"not proven: others are at most {self.bound:.3g}; {self.visited} paths visited"


BUDGET = 1024
"""The default maximum number of tails that are expanded."""

DeepBounds = list[Float[np.ndarray, "head pos"]]
"""D for the heads of each layer; 0 in the first layer, which reads no other head."""


def top_paths(
    frozen: FrozenPass,
    direction: Direction,
    k: int,
    budget: int = BUDGET,
    deep: DeepBounds | None = None,
) -> TopPaths:
    """Return the k paths of any order with the largest absolute contributions.

    At most `budget` tails are expanded; expanding one computes the contributions of all paths with
    one more head before it. `deep` is `deep_bounds(frozen)`, which is the same for all directions.
    Raises: OtimesError unless `k` and `budget` are integers of at least 1.
    """
    if not all(isinstance(each, int | np.integer) and each >= 1 for each in (k, budget)):
        raise OtimesError(
            f"k and budget must be integers of at least 1, got k={k} and budget={budget}"
        )
    deep = deep_bounds(frozen) if deep is None else deep
    search = _Search(frozen.until(direction.position), direction, deep)
    found: list[tuple[float, int, Path]] = []  # a heap of the k largest, the smallest first
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
    for _ in tracked(repeat(None), "searching paths"):
        if not (heap and budget):
            break
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
                child = _Tail((step, *tail.heads), opened[at].direction)
                heapq.heappush(heap, (-float(bounds[step]), next(order), child))
    bound = max(unvisited, -heap[0][0] if heap else 0.0)
    best = sorted(found, key=lambda entry: (-entry[0], entry[1]))
    proven = bound == 0.0 or (len(found) == k and bound <= found[0][0])
    paths = tuple(path for _, _, path in best)
    return TopPaths(paths, bound=bound, proven=proven, visited=visited)


@dataclass(frozen=True, slots=True, eq=False)
class _Tail:
    """The last heads of a path, and a direction, which is *after* the first head until expanded."""

    heads: Heads
    direction: Directions


class _Search:
    """The data shared by all tails: layers, each head's output z on the sources, the bounds D."""

    def __init__(self, frozen: FrozenPass, direction: Direction, deep: DeepBounds) -> None:
        self.frozen, self.direction = frozen, direction
        self.layers = list(frozen.layers())
        self.z = list(order_one_z(frozen))
        self.deep = [bounds[:, : frozen.n_pos] for bounds in deep]

    def root(self) -> _Tail:
        """Return the empty tail, with the direction on the final residual stream."""
        return _Tail((), at_the_end(self.frozen, self.direction))

    def direct_value(self) -> float:
        """Return the contribution of the direct path."""
        *_, direct = direct_streams(self.frozen)
        place = self.direction.position
        return float(direct[place] @ self.direction.row) + self.direction.constant

    def before(self, tail: _Tail) -> _Tail:
        """Return the tail with its direction pulled back through its first head."""
        if not tail.heads:
            return tail
        (number, head), *others = tail.heads
        direction = tail.direction
        for between in reversed(range(number + 1, self._first(others))):
            _, direction = direction.pull_after(self.frozen, between)
        on_written, _ = direction.pull_after(self.frozen, number)
        return _Tail(tail.heads, on_written.through(self.layers[number], head))

    def open(self, tails: list[_Tail]) -> Iterator[tuple[_Tail, np.ndarray, np.ndarray]]:
        """Yield for each tail the paths with one more head before it, [layer, head].

        These are the tail, the contributions of these paths, and the bounds on all longer ones. The
        layers are those before the tail's first head.
        """
        first = np.array([self._first(tail.heads) for tail in tails])
        shape = (len(tails), len(self.layers), self.frozen.model.n_heads)
        values, bounds = np.zeros(shape), np.zeros(shape)
        slack = 1 + gamma(self._roundings(), UNIT_ROUNDOFF[str(self.frozen.dtype)])
        going: list[int] = []  # the tails that start after the layer, in the order of `stack`
        stack: Directions | None = None
        for number in reversed(range(int(first.max()))):
            joining = np.flatnonzero(first == number + 1).tolist()
            if joining:
                more = [tails[at].direction for at in joining]
                stack = more[0].with_more(more[1:]) if stack is None else stack.with_more(more)
                going += joining
            assert stack is not None  # the loop starts directly before the latest tail
            on_written, stack = stack.pull_after(self.frozen, number)
            W_O = self.layers[number].W_O
            values[going, number] = on_written.on_heads(self.z[number], W_O)
            bounds[going, number] = slack * on_written.at_most(self.deep[number], W_O)
        for at, tail in enumerate(tails):
            yield tail, values[at, : first[at]], bounds[at, : first[at]]

    def _first(self, heads: Sequence[tuple[int, int]]) -> int:
        """Return the first layer of a tail; n_layers for the empty tail."""
        return heads[0][0] if heads else len(self.layers)

    def _roundings(self) -> int:
        """Return an upper bound on the roundings in a bound: sums over positions and widths."""
        model, sizes = self.frozen.model, self.frozen.model.config
        widths = 6 * (model.d_model + max(model.d_head, sizes.value_width)) + 2 * (
            model.d_model + sizes.d_mlp
        )
        return (len(self.layers) + 1) * (2 * self.frozen.n_pos + widths + 64)


def deep_bounds(frozen: FrozenPass) -> DeepBounds:
    """Return $D_h$ for the heads of each layer; it holds for all directions and positions."""
    layers: list[FrozenLayer] = []
    deep: list[np.ndarray] = []
    reach: list[np.ndarray] = []
    grown: list[np.ndarray] = []  # of each earlier layer: the product of 1 + μ of MLPs since then
    z_of_layers = order_one_z(frozen)
    for number in tracked(range(frozen.model.n_layers), "bounding paths"):
        layer, z = frozen.layer(number), next(z_of_layers)
        read = np.zeros_like(layer.pattern[:, 0])
        for before, reached, growth in zip(layers, reach, grown, strict=True):
            through, around = _norms(before, layer)
            lengths = through[:, :, None] + around[:, :, None] * (growth - 1)
            read = np.maximum(read, (lengths * reached).max(axis=1))  # [head, head before, pos]
        deep.append(np.einsum("hqk,hk->hq", layer.pattern, read / layer.scale[:, 0]))
        reach.append(np.maximum(np.sqrt((z**2).sum(axis=2)).T, deep[-1]))
        layers.append(layer)
        grown.append(np.ones(frozen.n_pos))
        mlp = frozen.mlp(number)
        if mlp is not None:
            seen = grown[:-1] if mlp.parallel else grown
            for growth in seen:
                growth *= 1 + _mlp_norm(mlp)
    return deep


def _norms(before: FrozenLayer, layer: FrozenLayer) -> tuple[np.ndarray, np.ndarray]:
    """Return $T_{hg} ≥ ‖W_O^g C diag(gain) W_V^h‖_2$, and the product of the two norms.

    Both are [head, earlier head], and include the rounding of the product.
    """
    written = centre(before.W_O, layer.centring)
    d_model = written.shape[-1]
    unit = UNIT_ROUNDOFF[str(written.dtype)]
    value_sizes = np.linalg.norm(layer.gain[:, None] * layer.W_V, axis=(1, 2))
    sizes = value_sizes[:, None] * np.linalg.norm(before.W_O, axis=(1, 2))
    n_heads, d_head, _ = written.shape
    read = (layer.gain[:, None] * layer.W_V).transpose(1, 0, 2).reshape(d_model, -1)
    all_pairs = written.reshape(n_heads * d_head, d_model) @ read  # one product for all pairs
    by_pair = all_pairs.reshape(n_heads, d_head, len(layer.W_V), -1).transpose(2, 0, 1, 3)
    norms = np.linalg.norm(by_pair, ord=2, axis=(2, 3))
    # Centring and the product round d_model + 3 times each; `sizes` bounds the Frobenius norm.
    # Centring is a projection, which does not increase norms.
    rounded: np.ndarray = norms + gamma(4 * (d_model + 8), unit) * sizes
    return rounded, sizes * (1 + gamma(4 * (d_model + 8), unit))


def _mlp_norm(mlp: FrozenMLP) -> Float[np.ndarray, " pos"]:
    """Return $μ$, an upper bound on the norm of the frozen MLP as a linear map, by position."""
    unit = UNIT_ROUNDOFF[str(mlp.W_in.dtype)]
    weights = np.linalg.norm(mlp.gain[:, None] * mlp.W_in, ord=2) * np.linalg.norm(mlp.W_out, ord=2)
    slack = 1 + gamma(8 * (sum(mlp.W_in.shape) + 8), unit)
    most: np.ndarray = slack * weights * np.abs(mlp.gates).max(axis=1) / mlp.scale[:, 0]
    return most
