"""What circuits of all heads cost, against TransformerLens where there is one, or written out.

    python -m tests.bench.circuits [--small] [--precision 32|64] [--theirs PYTHON]

PYTHON is the interpreter of an environment that has TransformerLens; its part runs there, on a
random model of the same sizes, by its own functions (`all_composition_scores`, the eigenvalues of
its factored matrices). Without one, the formulas as they stand are timed on a few heads or pairs,
multiplied out over d_model, and scaled up. Each computation runs in a process of its own: its peak
is what that process came to hold beyond what it held when it began. All of one run on one machine:
only the ratios mean something. Both sides have the same number of threads.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

GPT2_SIZE = {"n_layers": 12, "n_heads": 12, "d_model": 768, "d_head": 64, "d_vocab": 50257}
SMALL = {"n_layers": 4, "n_heads": 4, "d_model": 192, "d_head": 32, "d_vocab": 5000}
WHAT = ("eigenvalues of full OV", "Q-composition", "K-composition", "V-composition")

MEASURE = """
import json, resource, sys, time
def rss():
    with open("/proc/self/status") as status:
        lines = dict(line.split(":", 1) for line in status)
    return {key: int(lines[key].split()[0]) * 1024 for key in ("VmRSS", "VmHWM")}
def measure(run, repeats):
    try:  # forget the peak of making the model
        with open("/proc/self/clear_refs", "w") as refs:
            refs.write("5")
    except OSError:
        pass
    before, times, cpu = rss()["VmRSS"], [], []
    for _ in range(repeats):
        wall, used = time.perf_counter(), time.process_time()
        run()
        times.append(time.perf_counter() - wall)
        cpu.append(time.process_time() - used)
    print(json.dumps([min(times), min(cpu), rss()["VmHWM"] - before]))
what, sizes, bits, threads, repeats = json.loads(sys.argv[1])
"""

OURS = (
    MEASURE
    + """
import numpy as np
from numeric.circuits.composition import composition_scores
from numeric.circuits.copying import ov_eigenvalues
from numeric.random_weights import random_model
dtype = np.float32 if bits == 32 else np.float64
model = random_model(**sizes, dtype=dtype)
if what.startswith("eigen"):
    measure(lambda: ov_eigenvalues(model, dtype=dtype), repeats)
else:
    measure(lambda: composition_scores(model, what[0], dtype=dtype), repeats)
"""
)

THEIRS = (
    MEASURE
    + """
import warnings
warnings.filterwarnings("ignore")
import torch
from transformer_lens import HookedTransformer, HookedTransformerConfig
torch.set_num_threads(threads)
torch.set_grad_enabled(False)
dtype = torch.float32 if bits == 32 else torch.float64
model = HookedTransformer(HookedTransformerConfig(
    **sizes, n_ctx=32, attn_only=True, normalization_type=None, dtype=dtype, seed=0))
if what.startswith("eigen"):
    def run():
        return (model.OV.__rmatmul__(model.W_E) @ model.W_U).eigenvalues
else:
    def run():
        return model.all_composition_scores(what[0])
measure(run, 1)
"""
)

WRITTEN_OUT = (
    MEASURE
    + """
import numpy as np
from numeric.random_weights import random_model
dtype = np.float32 if bits == 32 else np.float64
model = random_model(**sizes, dtype=dtype)
L, H = model.n_layers, model.n_heads
W = {name: model.weights[name][:, 0] for name in ("W_Q", "W_K", "W_V", "W_O")}
def head():
    A, B = model.weights["W_E"] @ W["W_V"][0], W["W_O"][0] @ model.weights["W_U"]
    return np.linalg.eigvals(B @ A)
def pair():
    A = W["W_V"][0] @ W["W_O"][0]
    B = {"Q": W["W_Q"][1] @ W["W_K"][1].T, "K": W["W_K"][1] @ W["W_Q"][1].T,
         "V": W["W_V"][1] @ W["W_O"][1]}[what[0] if what[0] in "QKV" else "V"]
    return np.linalg.norm(A @ B) / np.linalg.norm(A) / np.linalg.norm(B)
count = L * H if what.startswith("eigen") else H * H * L * (L - 1) // 2
print_ = print
def print(text):
    wall, cpu, peak = json.loads(text)
    print_(json.dumps([wall * count, cpu * count, peak]))
measure(head if what.startswith("eigen") else pair, 3)
"""
)


def run_apart(python: str, code: str, asked: list[Any], threads: int) -> list[float]:
    """Return wall seconds, processor seconds and peak bytes of one computation."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(names, str(threads))}
    root = str(Path(__file__).parents[2])
    environment["PYTHONPATH"] = root if python == sys.executable else ""
    found = subprocess.run(
        [python, "-c", code, json.dumps(asked)],
        capture_output=True, text=True, env=environment, check=False, cwd=root,
    )  # fmt: skip
    if found.returncode:
        raise SystemExit(found.stderr)
    return json.loads(found.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def main() -> None:
    """Print a row for each computation."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--small", action="store_true", help="4 layers of width 192: seconds")
    options.add_argument("--layers", type=int, help="fewer layers take less of their memory")
    options.add_argument("--precision", type=int, choices=(32, 64), default=32)
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--theirs", metavar="PYTHON", help="one that has TransformerLens")
    asked = options.parse_args()
    sizes = dict(SMALL if asked.small else GPT2_SIZE)
    sizes["n_layers"] = asked.layers or sizes["n_layers"]
    against = "TransformerLens" if asked.theirs else "written out"
    table = Table(title=f"float{asked.precision}, {sizes}, threads: {asked.threads}", min_width=100)
    for column in ("", "otimes s", "MB", f"{against} s", "MB", "faster", "by processor", "memory"):
        table.add_column(column, justify="left" if not column else "right")
    for what in WHAT:
        request = [what, sizes, asked.precision, asked.threads, 2]
        ours = run_apart(sys.executable, OURS, request, asked.threads)
        theirs = (
            run_apart(asked.theirs, THEIRS, request, asked.threads)
            if asked.theirs
            else run_apart(sys.executable, WRITTEN_OUT, request, asked.threads)
        )
        table.add_row(
            what, f"{ours[0]:.3g}", f"{ours[2] / 1e6:.0f}", f"{theirs[0]:.3g}",
            f"{theirs[2] / 1e6:.0f}", f"{theirs[0] / ours[0]:.1f}×", f"{theirs[1] / ours[1]:.1f}×",
            f"{ours[2] / theirs[2]:.1%}",
        )  # fmt: skip
    Console().print(table)


if __name__ == "__main__":
    main()
