"""The numbers of the lesson on a model of one's own: the program that it shows is run for them."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np

import own_program
from lesson_prompt import power, sizes
from otimes.numeric.audit.audit import audit
from otimes.numeric.metrics import losses_of_logits

SHOWN = {
    "stored": own_program.STORED,
    "loaded": own_program.LOADED,
    "forward": own_program.FORWARD,
    "analysed": own_program.ANALYSED,
}


def values() -> dict[str, str]:
    """Return the numbers of the lesson, and the parts of the program by their names."""
    names: dict[str, Any] = {}
    printed = {}
    for part, source in SHOWN.items():
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(source, f"<{part}>", "exec"), names)  # noqa: S102  # our own program
        printed[part] = out.getvalue().strip()
    mine, tokens, forward = names["mine"], names["tokens"], names["forward"]
    right = np.sqrt(mine.d_head)

    def corrected(tokens: Any) -> Any:
        return forward(tokens, right)

    report = audit(corrected, tokens, weights=mine)
    if not report.passed or names["report"].passed:
        raise ValueError(f"the audit does not tell the right program from the wrong one: {report}")
    expected = mine.forward(tokens)["logits"]
    apart = {
        dtype.__name__: float(abs(forward(tokens, right, dtype)[0] - expected).max())
        for dtype in (np.float64, np.float32)
    }
    orders = printed["analysed"].splitlines()[0].strip("[]").split()
    return {
        **sizes(),
        **{part: f"```python\n{source}```" for part, source in SHOWN.items()},
        "finding": printed["forward"],
        "loss_right": f"{losses_of_logits(expected, tokens).mean():.2f}",
        "loss_wrong": f"{losses_of_logits(forward(tokens)[0], tokens).mean():.2f}",
        "checked": str(len(corrected(tokens)[1]) + 1),
        "float64": power(apart["float64"]),
        "float32": power(apart["float32"]),
        "orders": ", ".join(f"{float(order):.2f}".replace("-", "−") for order in orders),
    }
