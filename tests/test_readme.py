"""What the README shows is what happens."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

README = Path(__file__).parent.parent / "README.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_example_prints_what_is_shown_below_it() -> None:
    blocks = FENCE.findall(README.read_text(encoding="utf-8"))
    examples = [place for place, (language, _) in enumerate(blocks) if language == "python"]
    assert examples
    names: dict[str, Any] = {}
    for place in examples:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(blocks[place][1], str(README), "exec"), names)
        language, shown = blocks[place + 1]
        assert (language, printed.getvalue()) == ("", shown)
