"""What circuits of all heads cost, against TransformerLens where there is one, or written out.

    python -m tests.bench.circuits [--small] [--precision 32|64] [--theirs PYTHON]
    make bench THEIRS=PYTHON

PYTHON is the interpreter of an environment that has TransformerLens 3; its part runs there, on the
same weights, by its own functions (`all_composition_scores`, the eigenvalues of its factored
matrices, `stack_head_results` and `logit_attrs` on 128 tokens, the pass included on both sides).
Then the numbers of both are compared as well, within a bound (`tests/bench/agreement.py`). Without
one, the formulas as they stand are timed on a few heads or pairs, multiplied out over d_model, and
scaled up.

Each computation runs in a process of its own: its peak is what that process came to hold beyond
what it held when it began. All of one run on one machine: only the ratios mean something. Both
sides have the same number of threads.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from otimes.numeric.load import load_model
from otimes.numeric.model import save_model
from otimes.numeric.random_weights import random_model
from tests.bench.agreement import apart, error_over_bound

GPT2_SIZE = {"n_layers": 12, "n_heads": 12, "d_model": 768, "d_head": 64, "d_vocab": 50257}
SMALL = {"n_layers": 4, "n_heads": 4, "d_model": 192, "d_head": 32, "d_vocab": 5000}
WHAT = (
    "eigenvalues of full OV",
    "Q-composition",
    "K-composition",
    "V-composition",
    "direct logits of heads",
)
N_POS = 128

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
        found = run()
        times.append(time.perf_counter() - wall)
        cpu.append(time.process_time() - used)
    peak = rss()["VmHWM"] - before
    if into:
        import numpy as np
        np.savez(into, **{name: np.asarray(each) for name, each in keep(found).items()})
    print(json.dumps([min(times), min(cpu), peak]))
what, folder, bits, threads, repeats, into = json.loads(sys.argv[1])
with open(folder + "/tokens.json") as file:
    tokens = json.load(file)
keep = lambda found: {"values": found}
"""

OURS = (
    MEASURE
    + """
import numpy as np
from otimes.numeric.attribution.direct import direct_logit_attribution
from otimes.numeric.circuits.composition import composition_scores
from otimes.numeric.circuits.copying import ov_eigenvalues
from otimes.numeric.load import load_model
dtype = np.float32 if bits == 32 else np.float64
model = load_model(folder)
if what.startswith("eigen"):
    run = lambda: ov_eigenvalues(model, dtype=dtype)
elif what.startswith("direct"):
    run = lambda: direct_logit_attribution(model, tokens, tokens, position=None).by_head()
else:
    run = lambda: composition_scores(model, what[0], dtype=dtype)
measure(run, repeats)
"""
)

THEIRS = (
    MEASURE
    + """
import warnings
warnings.filterwarnings("ignore")
import torch
from safetensors.torch import load_file
from transformer_lens import HookedTransformer, HookedTransformerConfig
torch.set_num_threads(threads)
torch.set_grad_enabled(False)
with open(folder + "/config.json") as file:
    config = json.load(file)
sizes = {name: config[name] for name in ("n_layers", "n_heads", "d_model", "d_head", "d_vocab")}
dtype = torch.float32 if bits == 32 else torch.float64
model = HookedTransformer(HookedTransformerConfig(
    **sizes, n_ctx=len(tokens), attn_only=True, normalization_type=None, dtype=dtype, seed=0))
weights = load_file(folder + "/weights.safetensors")
state = {name: torch.zeros_like(each) for name, each in model.state_dict().items()
         if name.rpartition(".")[2][:2] in ("b_", "W_")}
state |= {"embed.W_E": weights["W_E"], "unembed.W_U": weights["W_U"]}
state |= {f"blocks.{layer}.attn.W_{name}": weights[f"W_{name}"][layer]
          for layer in range(sizes["n_layers"]) for name in "QKVO"}
print(model.load_state_dict(state, strict=False).unexpected_keys)
del weights, state
if what.startswith("eigen"):
    run = lambda: (model.OV.__rmatmul__(model.W_E) @ model.W_U).eigenvalues
elif what.startswith("direct"):
    def run():
        _, cache = model.run_with_cache(
            torch.tensor([tokens]), return_type=None, names_filter=lambda name: "hook_z" in name)
        return cache, cache.logit_attrs(cache.stack_head_results(-1), torch.tensor([tokens]))
    keep = lambda found: {
        "tokens": tokens,
        "values": found[1].numpy().reshape(sizes["n_layers"], sizes["n_heads"], len(tokens)),
        "z": torch.stack([found[0][f"blocks.{layer}.attn.hook_z"][0]
                          for layer in range(sizes["n_layers"])]).numpy()}
else:
    run = lambda: model.all_composition_scores(what[0])
measure(run, 1)
"""
)

WRITTEN_OUT = (
    MEASURE
    + """
import numpy as np
from otimes.numeric.load import load_model
dtype = np.float32 if bits == 32 else np.float64
model = load_model(folder)
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
def written():
    z = model.forward(tokens, ["z.0"])["z.0"][0].astype(dtype)
    rows = (z[:, :, None] * W["W_O"][0]).sum(axis=1)
    return (rows * model.weights["W_U"][:, tokens].T).sum(axis=1)
counts = {"e": L * H, "d": L * H}
count = counts.get(what[0], H * H * L * (L - 1) // 2)
print_ = print
def print(text):
    wall, cpu, peak = json.loads(text)
    print_(json.dumps([wall * count, cpu * count, peak]))
measure({"e": head, "d": written}.get(what[0], pair), 3)
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
    options.add_argument("--precision", type=int, choices=(32, 64), action="append")
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--what", choices=WHAT, action="append", help="not all of it")
    options.add_argument("--theirs", metavar="PYTHON", help="one that has TransformerLens 3")
    asked = options.parse_args()
    sizes = dict(SMALL if asked.small else GPT2_SIZE)
    sizes["n_layers"] = asked.layers or sizes["n_layers"]
    for bits in asked.precision or (32, 64):
        Console(width=130).print(measured(sizes, bits, asked))


def measured(sizes: dict[str, int], bits: int, asked: argparse.Namespace) -> Table:
    """Return the table of one precision."""
    against = "TransformerLens" if asked.theirs else "written out"
    table = Table(title=f"float{bits}, {sizes}, threads: {asked.threads}", min_width=100)
    columns = ["", "otimes s", "MB", f"{against} s", "MB", "faster", "by processor", "memory"]
    for column in [*columns, *(["apart", "error/bound"] if asked.theirs else [])]:
        table.add_column(column, justify="left" if not column else "right")
    with tempfile.TemporaryDirectory() as folder:
        write_model(Path(folder), sizes, bits)
        for what in asked.what or WHAT:
            table.add_row(*row(what, folder, bits, asked))
    return table


def write_model(folder: Path, sizes: dict[str, int], bits: int) -> None:
    """Put a random model and a prompt where both sides find them."""
    dtype = np.float32 if bits == 32 else np.float64
    model = random_model(**sizes, n_ctx=N_POS, dtype=dtype)
    save_model(folder, model.config, model.weights, {})
    tokens = np.random.default_rng(0).integers(sizes["d_vocab"], size=N_POS)
    (folder / "tokens.json").write_text(json.dumps(tokens.tolist()), encoding="utf-8")


def row(what: str, folder: str, bits: int, asked: argparse.Namespace) -> list[str]:
    """Run both sides of one computation and return what is told of them."""
    files = [f"{folder}/{side}.npz" for side in ("ours", "theirs")] if asked.theirs else ["", ""]
    theirs = (asked.theirs, THEIRS) if asked.theirs else (sys.executable, WRITTEN_OUT)
    sides = ((sys.executable, OURS), theirs)
    (mine, my_cpu, my_peak), (wall, cpu, peak) = (
        run_apart(python, code, [what, folder, bits, asked.threads, 2, into],
                  asked.threads)
        for (python, code), into in zip(sides, files, strict=True)
    )  # fmt: skip
    cells = [
        what, f"{mine:.3g}", f"{my_peak / 1e6:.0f}", f"{wall:.3g}", f"{peak / 1e6:.0f}",
        f"{wall / mine:.1f}×", f"{cpu / my_cpu:.1f}×", f"{my_peak / peak:.1%}",
    ]  # fmt: skip
    if asked.theirs:
        found = [dict(np.load(file)) for file in files]
        cells.append(f"{apart(what, *found):.1e}")
        cells.append(f"{error_over_bound(what, load_model(folder), *found):.1e}")
    return cells


if __name__ == "__main__":
    main()
