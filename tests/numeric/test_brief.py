"""Records of arrays print types and shapes."""

from __future__ import annotations

import numpy as np

import otimes as ot


def test_what_is_returned_can_be_printed() -> None:
    probe = ot.fit_probe(np.arange(12.0).reshape(6, 2), np.arange(6) % 2)
    assert repr(probe) == (
        "<Probe: kind 'logistic', W float64[2, 2], b float64[2], classes int64[2]>"
    )
    on_prompt = ot.paths("two_layer", [1, 2, 3, 4, 5, 6, 7, 8, 9])
    assert "terms float64[6, 6, 3]" in repr(on_prompt.scores(1, 0, 2))
    best = on_prompt.top(3, -1, 7)
    assert repr(best) == f"<3 paths: proven to be the largest; {best.visited} paths visited>"
    shown = repr(on_prompt.summary())
    assert "patterns (float64[4, 9, 9], float64[4, 9, 9])" in shown
    assert "\n" not in shown
