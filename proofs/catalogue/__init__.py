"""The catalogue, in reading order. A chapter is a folder, a topic of it a file.

A theorem is a decorated function; `proofs/claims.py` has the kinds of claims that it may return.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from html import escape
from importlib import import_module
from itertools import groupby
from typing import Any

from otimes.proofs.theorem import Theorem, find

__all__ = ["CHAPTERS", "catalogue", "find"]

CHAPTERS: dict[int, tuple[str, str, tuple[str, ...]]] = {
    1: ("Tensor products and conventions", "tensor_products", ("products", "conventions")),
    2: (
        "The residual stream",
        "residual_stream",
        (
            "stream",
            "positions",
            "channel",
            "symmetry",
            "superposition",
            "chance",
            "fourth_moments",
            "observations",
        ),
    ),
    3: (
        "The attention head",
        "attention_head",
        (
            "circuits",
            "one_head",
            "factors",
            "all_heads",
            "scores",
            "patterns",
            "averages",
            "causality",
            "concentration",
            "derivatives",
            "positions",
            "planes",
            "convolution",
            "streaming",
            "shared_keys",
            "architectures",
        ),
    ),
    4: (
        "Feed-forward layers, norms and biases",
        "mlp_and_norm",
        (
            "norms",
            "rms_norm",
            "folding",
            "neurons",
            "full_rank",
            "gates",
            "experts",
            "blocks",
            "edits",
            "processing",
        ),
    ),
    5: (
        "Zero and one layer",
        "shallow_models",
        ("zero_layer", "one_layer", "order_of_the_past", "skip_trigrams", "tables"),
    ),
    6: (
        "Depth",
        "depth",
        ("paths", "components", "composition", "importance", "induction_heads", "induction_seen"),
    ),
    7: (
        "Reading weights",
        "reading_weights",
        (
            "lenses",
            "embedding_space",
            "across_models",
            "singular_vectors",
            "traces",
            "eigenvalues",
            "successors",
        ),
    ),
    8: (
        "Attribution",
        "attribution",
        ("direct", "gradients", "integrals", "mixing", "rollout", "every_depth", "shares"),
    ),
    9: (
        "Interventions",
        "interventions",
        (
            "patching",
            "ablation",
            "edges",
            "estimates",
            "error_laws",
            "repair",
        ),
    ),
    10: (
        "Probes and features",
        "probes_and_features",
        (
            "reading",
            "information",
            "analogies",
            "erasing",
            "sparse_autoencoders",
            "transcoders",
        ),
    ),
    11: (
        "Behaviours and tools",
        "behaviours",
        ("heads", "neurons", "streams", "training", "knowledge", "tools", "systems", "programs"),
    ),
}
"""The title of each chapter, its folder, and the files in it in reading order."""


class Theorems(tuple[Theorem, ...]):
    """Theorems in reading order; printed as a list of names and titles, by chapter.

    `catalogue()["kron_mul_kron"]` is the theorem of this name.
    """

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        """Return a theorem by its number or name, or several as a slice."""
        return find(index) if isinstance(index, str) else super().__getitem__(index)

    def __repr__(self) -> str:
        lines = [f"{len(self)} theorems"]
        for chapter, members in self._chapters():
            lines += ["", chapter, *(f"  {each.name}: {each.title}" for each in members)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        parts = [f"<p>{len(self)} theorems</p>"]
        for chapter, members in self._chapters():
            items = "".join(
                f"<li><code>{each.name}</code> {escape(each.title)}</li>" for each in members
            )
            parts.append(f"<details><summary>{escape(chapter)}</summary><ul>{items}</ul></details>")
        return "".join(parts)

    def _chapters(self) -> Iterator[tuple[str, list[Theorem]]]:
        for number, members in groupby(self, key=lambda theorem: theorem.chapter):
            yield f"{number} {CHAPTERS[number][0]}", list(members)


@lru_cache(maxsize=1)
def catalogue() -> Theorems:
    """Return every theorem, chapter by chapter, in the order of the files."""
    found: list[Theorem] = []
    for _, folder, files in CHAPTERS.values():
        for file in files:
            module = import_module(f"otimes.proofs.catalogue.{folder}.{file}")
            entries = [entry for entry in vars(module).values() if isinstance(entry, Theorem)]
            found += [entry for entry in entries if entry.state.__module__ == module.__name__]
    return Theorems(found)


catalogue()  # importing a chapter declares its theorems, so that `find` knows them all
