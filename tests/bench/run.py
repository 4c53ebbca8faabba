"""How fast, side by side in one run: `make bench` prints what otimes takes and what others take.

Only the ratios mean something: absolute times are those of this machine, at this moment.
"""

from __future__ import annotations

import statistics
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import sympy
from rich.console import Console
from rich.table import Table
from sympy import Identity, KroneckerProduct, MatAdd, MatMul, MatrixSymbol
from sympy.matrices.expressions.kronecker import combine_kronecker

from otimes.algebra.evaluate.arrays import evaluate
from otimes.algebra.language.sizes import normal_size
from otimes.algebra.normal_form import normal_form
from otimes.algebra.verdict import decide
from otimes.proofs.catalogue import catalogue
from otimes.proofs.claims import Statement, equations

n, d = (sympy.Symbol(name, positive=True, integer=True) for name in ("n", "d"))


def layers(n_layers: int, n_heads: int, skip: Any) -> sympy.MatrixExpr:
    """Return the product over layers of (skip + Σ A ⊗ W), with a symbol for each head."""

    def head(layer: int, index: int) -> sympy.MatrixExpr:
        A = MatrixSymbol(f"A_{layer}_{index}", n, n)
        return KroneckerProduct(A, MatrixSymbol(f"W_{layer}_{index}", d, d))

    return MatMul(
        *[MatAdd(skip, *[head(layer, k) for k in range(n_heads)]) for layer in range(n_layers)],
        evaluate=False,
    )


def seconds(run: Callable[[], Any], repeats: int = 5) -> float:
    """Return the least time of a few runs, each with nothing remembered from the one before."""
    times = []
    for _ in range(repeats):
        normal_size.cache_clear()
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def sympy_paths(product: sympy.MatrixExpr) -> int:
    """Expand with SymPy and combine each term's Kronecker products, which it cannot do at once."""
    return len([combine_kronecker(term) for term in product.expand().args])


def per_path() -> list[tuple[str, float, str, float]]:
    """Return what one path takes among more and more of them: the ratio to few stays near 1."""
    each = {}
    for n_layers, n_heads in ((2, 4), (4, 4), (4, 6), (4, 9)):
        product = layers(n_layers, n_heads, Identity(n * d))
        count = (1 + n_heads) ** n_layers
        assert len(normal_form(product)) == count
        each[count] = seconds(lambda product=product: normal_form(product), 3) / count
    few, *more = each
    return [(f"one of {k:,} paths", each[k], f"one of {few}", each[few]) for k in more]


def measured() -> list[tuple[str, float, str, float]]:
    """Return (what, our seconds, against what, their seconds)."""
    rows = []
    # SymPy cannot combine I with A ⊗ B; it is given an opaque skip of the same form instead.
    opaque = KroneckerProduct(MatrixSymbol("S", n, n), MatrixSymbol("U", d, d))
    product = layers(4, 4, opaque)
    assert len(normal_form(product)) == sympy_paths(product) == 625
    rows.append(
        (
            "625 paths of 4 layers of 4 heads",
            seconds(lambda: normal_form(product)),
            "SymPy expand + combine_kronecker",
            seconds(lambda: sympy_paths(product), 1),
        )
    )
    rows += per_path()
    two = layers(2, 16, Identity(n * d))
    one, other = two.args
    paths = MatAdd(*[MatMul(a, b) for a in one.args for b in other.args])
    assert decide(two, paths).status == "proved"
    two_opaque = layers(2, 16, opaque)
    rows.append(
        (
            "decide two layers of 16 heads (289 paths)",
            seconds(lambda: decide(two, paths)),
            "SymPy expand + combine_kronecker, one side",
            seconds(lambda: sympy_paths(two_opaque), 1),
        )
    )
    claims = [theorem.claim() for theorem in catalogue()]
    stated = [claim for claim in claims if isinstance(claim, Statement)]
    each = [seconds(lambda s=s: decide(s.lhs, s.rhs, equations(s.given))) for s in stated]
    rows.append(("decide a theorem of the catalogue (median)", statistics.median(each), "-", 0.0))
    rows.append(("decide a theorem of the catalogue (slowest)", max(each), "-", 0.0))
    A, W, X = MatrixSymbol("A", n, n), MatrixSymbol("W", d, d), MatrixSymbol("X", n * d, 1)
    draw = np.random.default_rng(0)
    a, w = draw.standard_normal((48, 48)), draw.standard_normal((64, 64))
    x = draw.standard_normal((48 * 64, 1))
    head = KroneckerProduct(A, W) * X
    rows.append(
        (
            "(A ⊗ W) x at n=48, d=64",
            seconds(lambda: evaluate(head, {"A": a, "W": w, "X": x})),
            "np.kron(A, W) @ x",
            seconds(lambda: np.kron(a, w) @ x),
        )
    )
    wide = {"A": (128, 128), "W": (256, 256), "X": (128 * 256, 1)}
    arrays = {name: draw.standard_normal(shape, np.float32) for name, shape in wide.items()}
    tracemalloc.start()
    evaluate(head, arrays)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    formed = 4 * (128 * 256) ** 2 / 1e9
    rows.append(
        (
            f"the same at n=128, d=256 in float32, {peak / 1e6:.2g} MB",
            seconds(lambda: evaluate(head, arrays)),
            f"np.kron(A, W) alone would be {formed:.2g} GB",
            0.0,
        )
    )
    return rows


def main() -> None:
    """Print the table."""
    table = Table("what", "otimes", "against", "theirs", "ratio")
    for what, ours, against, theirs in measured():
        ratio = f"{theirs / ours:.1f}×" if theirs else ""
        table.add_row(what, _shown(ours), against, _shown(theirs) if theirs else "", ratio)
    Console().print(table)


def _shown(time_taken: float) -> str:
    return f"{time_taken * 1e3:.3g} ms" if time_taken < 1 else f"{time_taken:.3g} s"


if __name__ == "__main__":
    main()
