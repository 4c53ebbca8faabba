"""What the parts of a pass cost, in passes: `make bench`, or `python -m tests.bench.paths --small`.

A random attention-only model of the size of GPT-2 small, 128 tokens, float32 weights, everything
computed in float64. All times are of one run on one machine, so only the ratios mean something.
The plain pass is the reference's, once as it is, and once without its unembedding of all positions,
which is the stricter measure: the parts need the logits of one position only.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from otimes.numeric.frozen import FrozenPass, freeze
from otimes.numeric.model import Model
from otimes.numeric.paths.ensemble import Paths
from otimes.numeric.paths.orders import path_stream
from otimes.numeric.paths.top_paths import top_paths
from otimes.numeric.random_weights import random_model

GPT2_SIZE = {"n_layers": 12, "n_heads": 12, "d_model": 768, "d_head": 64, "d_vocab": 50257}
SMALL = {"n_layers": 6, "n_heads": 6, "d_model": 192, "d_head": 32, "d_vocab": 5000}


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of the fastest run; the most memory it held beyond what was there, in bytes."""

    seconds: float
    peak: int


def cost(run: Callable[[], Any], repeats: int) -> Cost:
    """Return what a computation takes; memory is measured in a run of its own, which is slower."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    tracemalloc.start()
    run()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return Cost(min(times), peak)


def plain_seconds(model: Model, tokens: list[int], repeats: int) -> Cost:
    """Return the cost of the reference pass, nothing recorded but the logits."""
    return cost(lambda: model.forward(tokens, ["logits"]), repeats)


def forward_and_backward(frozen: FrozenPass) -> None:
    """One frozen pass and the adjoint of its logit: what one node of the Shapley integral costs."""
    direction = frozen.direction(-1, 0)
    stream, z_of_layers = frozen.first[None], []
    for number, layer in enumerate(frozen.layers()):
        z = layer.z(stream) + layer.constant()
        z_of_layers.append(z)
        stream = stream + layer.write(z) + frozen.entering(number)
    back = np.zeros_like(stream)
    back[:, direction.position] = direction.row
    for number in reversed(range(frozen.model.n_layers)):
        layer = frozen.layer(number)
        back = back + layer.pull_z(layer.pull_write(back))


def main() -> None:
    """Print a row for each part: its cost in passes, what was asked of it, and its memory."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--small", action="store_true", help="6 layers of width 192: seconds")
    options.add_argument("--repeats", type=int, default=3)
    asked = options.parse_args()
    sizes, n_pos = (SMALL, 48) if asked.small else (GPT2_SIZE, 128)
    model = random_model(**sizes, n_ctx=n_pos, dtype=np.float32)
    tokens = np.random.default_rng(0).integers(0, model.d_vocab, n_pos).tolist()
    L, H = model.n_layers, model.n_heads

    plain = plain_seconds(model, tokens, asked.repeats)
    bare = random_model(**{**sizes, "d_vocab": 8}, n_ctx=n_pos, dtype=np.float32)
    strict = plain_seconds(bare, [token % 8 for token in tokens], asked.repeats)
    weights = sum(each.nbytes for each in model.weights.values())
    recorded = sum(each.nbytes for each in bare.forward([0] * n_pos).values())
    recorded += n_pos * model.d_vocab * 8

    frozen = freeze(model, tokens)
    both_ways = cost(lambda: forward_and_backward(frozen), asked.repeats)

    def fresh() -> Paths:
        return Paths(frozen)

    rows: list[tuple[str, Callable[[], Any], str, float]] = [
        ("freeze", lambda: freeze(model, tokens), "", np.inf),
        ("orders 0 … L, last position", lambda: fresh().by_order(-1), "L/2 + 2", L / 2 + 2),
        ("replay, last position", lambda: fresh().replay(-1), "", np.inf),
        ("order-1 terms", lambda: fresh().heads(-1, 0), "", np.inf),
        ("all virtual heads", lambda: fresh().virtual_heads(-1, 0), "5", 5),
        ("all triples", lambda: list(fresh().triples(-1, 0)), "", np.inf),
        ("Shapley values", lambda: fresh().shapley(-1, 0), "", np.inf),
        ("10 best paths", lambda: fresh().top(10, -1, 0), "", np.inf),
    ]
    table = Table(title=f"{L} layers, {H} heads, d={model.d_model}, V={model.d_vocab}, n={n_pos}")
    for column in ("", "seconds", "plain passes", "without unembedding", "at most", "peak MB"):
        table.add_column(column, justify="left" if not column else "right")

    def show(name: str, found: Cost, limit: str, most: float) -> None:
        passes, strictly = found.seconds / plain.seconds, found.seconds / strict.seconds
        missed = "" if strictly <= most else " missed"
        table.add_row(
            name, f"{found.seconds:.3g}", f"{passes:.2f}", f"{strictly:.2f}",
            limit + missed, f"{found.peak / 1e6:.0f}",
        )  # fmt: skip

    show("plain pass", plain, "", np.inf)
    show("frozen pass and its adjoint", both_ways, "", np.inf)
    peak = 0
    shapley = 0.0
    for name, run, limit, most in rows:
        found = cost(run, 1 if "triples" in name or "best" in name else asked.repeats)
        show(name, found, limit, most)
        peak = max(peak, found.peak)
        shapley = found.seconds if name.startswith("Shapley") else shapley
    console = Console()
    console.print(table)
    console.print(
        f"Shapley values: {shapley / both_ways.seconds:.2f} frozen passes forward and back, at most"
        f" L = {L}"
    )
    heaviest = (weights + peak) / 1e6
    allowed = (weights + 3 * recorded) / 1e6
    console.print(
        f"memory: weights {weights / 1e6:.0f} MB, recorded activations {recorded / 1e6:.0f} MB;"
        f" heaviest part with the weights {heaviest:.0f} MB, at most weights + 3 × recorded ="
        f" {allowed:.0f} MB"
    )
    enumerated(frozen, console)


def enumerated(frozen: FrozenPass, console: Console) -> None:
    """Print what enumerating would take, from the time of a few paths of the mean order."""
    L, H = frozen.model.n_layers, frozen.model.n_heads
    depth = min(L, max(1, round(L * H / (1 + H))))
    path = tuple((layer, 0) for layer in range(depth))
    start = time.perf_counter()
    for _ in range(3):
        path_stream(frozen, path)
    one = (time.perf_counter() - start) / 3
    years = one * float(1 + H) ** L / 3.15e7
    best = top_paths(frozen, frozen.direction(-1, 0), 10)
    console.print(
        f"enumerating (1 + H)^L = {float(1 + H) ** L:.3g} paths at {one * 1e3:.0f} ms each:"
        f" {years:.2g} years; the 10 best were {'' if best.proven else 'not '}proven best after"
        f" visiting {best.visited}"
    )


if __name__ == "__main__":
    main()
