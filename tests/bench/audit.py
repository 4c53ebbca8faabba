"""What an audit costs, in passes and in memory: `make bench`, or `python -m tests.bench.audit`.

A GPT-2 of the small size, in plain torch, with random weights, on 128 tokens. A pass is the forward
pass in float64 of the same size, both the reference's and the module's own; the stricter is the
module's. Times are of the processor, beside those of the wall: other jobs change the latter. Each
row is measured in a process of its own, in which memory is counted from before the audit on and
includes the module itself.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from otimes.numeric.audit.audit import audit
from otimes.numeric.load import load_model
from tests.bench.gpt2 import GPT2LMHeadModel

SMALL = {"layers": 4, "heads": 4, "width": 256, "vocabulary": 5000}
MOST_PASSES, MOST_MEMORY = 8, 3
WAYS = ("live", "live, generic=False", "logits alone")


def cost(run: Callable[[], Any], repeats: int = 1) -> tuple[float, float]:
    """Return the least wall time and the least processor time of some runs, in seconds."""
    walls, processors = [], []
    for _ in range(repeats):
        wall, processor = time.perf_counter(), time.process_time()
        run()
        walls.append(time.perf_counter() - wall)
        processors.append(time.process_time() - processor)
    return min(walls), min(processors)


def resident(line: str) -> int:
    """Return the memory of this process, now (VmRSS) or at most (VmHWM), in bytes."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(each.split()[1]) * 1024 for each in status if each.startswith(line))


def measured(dtype: str, way: str, small: bool, repeats: int) -> dict[str, float]:
    """Return the figures of one row."""
    torch.manual_seed(0)
    warm = GPT2LMHeadModel(1, 2, 8, 11, 8)
    audit(warm, [1, 2, 3])  # whatever is imported and kept is not of this audit
    sizes = SMALL if small else {}
    module = GPT2LMHeadModel(**sizes).to(getattr(torch, dtype))
    weights = sum(each.nbytes for each in module.parameters())
    vocabulary = module.config.vocab_size
    tokens = np.random.default_rng(0).integers(0, vocabulary, 48 if small else 128).tolist()

    def call(asked: list[int]) -> Any:
        with torch.no_grad():
            return module(torch.tensor([asked]))[0]

    runs = {
        "live": lambda: audit(module, tokens),
        "live, generic=False": lambda: audit(module, tokens, generic=False),
        "logits alone": lambda: audit(call, tokens, weights=module),
    }
    gc.collect()
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    report = runs[way]()
    most = resident("VmHWM") - before + weights
    assert report.passed, report
    wall, processor = cost(runs[way], repeats)
    reference = load_model(module)
    own = module.double()
    theirs = cost(lambda: call_double(own, tokens), repeats + 1)
    ours = cost(lambda: reference.forward(tokens, ["logits"]), repeats + 1)
    return {
        "seconds": wall,
        "wall": wall / theirs[0],
        "own": processor / theirs[1],
        "reference": processor / ours[1],
        "memory": most / weights,
        "megabytes": weights / 1e6,
    }


def call_double(module: GPT2LMHeadModel, tokens: list[int]) -> None:
    """Run the module once."""
    with torch.no_grad():
        module(torch.tensor([tokens]))


def main() -> None:
    """Print a row for each way of auditing and each type, beside the limits."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--small", action="store_true", help="4 layers of width 256: seconds")
    options.add_argument("--repeats", type=int, default=2)
    options.add_argument("--row", nargs=2, help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.row:
        dtype, way = asked.row
        print(json.dumps(measured(dtype, way, asked.small, asked.repeats)))
        return
    table = Table(title="an audit, in forward passes of float64 and in times its weights")
    for column in (
        "", "type", "seconds", "ours", "its own", "wall", f"≤ {MOST_PASSES}",
        "memory", f"≤ {MOST_MEMORY}",
    ):  # fmt: skip
        table.add_column(column, justify="left" if column in ("", "type") else "right")
    for dtype in ("float32", "float64"):
        for way in WAYS:
            command = [sys.executable, "-m", "tests.bench.audit", "--row", dtype, way]
            command += [f"--repeats={asked.repeats}", *(["--small"] if asked.small else [])]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            found = json.loads(output.splitlines()[-1])
            table.add_row(
                way, dtype, f"{found['seconds']:.2f}", f"{found['reference']:.1f}",
                f"{found['own']:.1f}", f"{found['wall']:.1f}",
                "" if found["own"] <= MOST_PASSES else "missed", f"{found['memory']:.2f}",
                "" if found["memory"] <= MOST_MEMORY else "missed",
            )  # fmt: skip
    console = Console()
    console.print(table)
    console.print(
        "ours, its own: processor time in passes of the reference and of the module; wall: wall"
        " time in passes of the module"
    )


if __name__ == "__main__":
    main()
