"""Exercises of the lessons: fenced blocks of YAML, made into forms that the judge answers.

```exercise
equation: what the answer completes, as in `left: (A ⊗ B)(C ⊗ D)`
```

A block has `question`, `hints` and `solution`, and one of

- `left`, with `answer` and `wrong`: the reader types the right side of an equation;
- `claim`, with `is: proved` or `is: refuted`: the reader says whether it is true;
- `value`, with `within`: the reader types a number.

The build asks the judge too: it must accept `answer`, refuse each of `wrong`, and refute one.
"""

from __future__ import annotations

import json
import re
import sys
from html import escape
from itertools import count
from pathlib import Path
from typing import Any

import yaml
from mkdocs.exceptions import PluginError

sys.path.insert(0, str(Path(__file__).parent / "browser"))
import answers
from in_browser import ANSWER

BLOCK = re.compile(r"^```exercise\n(.*?)^```$", re.MULTILINE | re.DOTALL)
JUDGED = ("left", "shapes", "given", "without")


class ExerciseError(PluginError):
    """An exercise that is not well formed, or whose answer the judge does not accept."""


def replaced(markdown: str, page: str) -> str:
    """Return a page with its exercises as forms, numbered. Raises ExerciseError."""
    numbers = count(1)

    def form(match: re.Match[str]) -> str:
        number = next(numbers)
        said = yaml.safe_load(match.group(1))
        try:
            return exercise(said, number)
        except (KeyError, ValueError) as error:
            raise ExerciseError(f"{page}: exercise {number}: {error}") from None

    return BLOCK.sub(form, markdown)


def exercise(said: dict[str, Any], number: int) -> str:
    """Return one exercise as Markdown. Raises ValueError where the judge and the author differ."""
    if "left" in said:
        kind, data, form = "equation", _equation(said), _typed("= …", "the right side")
    elif "claim" in said:
        kind, data, form = "judgement", _judgement(said), choice()
    else:
        kind, data, form = "value", _value(said), _typed("a number", "the number")
    return block(f"Exercise {number}", kind, data, said, form)


def block(title: str, kind: str, data: dict[str, Any], said: dict[str, Any], form: str) -> str:
    """Return an exercise of a kind as Markdown: what the judge is asked, the words and the form."""
    attribute = escape(json.dumps(data, ensure_ascii=False))
    hints = [_folded(f"Hint {place}", hint) for place, hint in enumerate(said.get("hints", ()), 1)]
    return "\n\n".join(
        [
            f'<div class="judge exercise" data-kind="{kind}" data-exercise="{attribute}" markdown>',
            f'<p class="judge-title">{title}</p>',
            said["question"].strip(),
            form,
            ANSWER,
            *hints,
            _folded("Solution", said["solution"]),
            "</div>",
        ]
    )


def _equation(said: dict[str, Any]) -> dict[str, Any]:
    data = {key: said[key] for key in JUDGED if key in said}
    found = _asked({**data, "answer": said["answer"]})
    if found.get("status") != "proved":
        raise ValueError(f"the judge does not accept {said['answer']!r}: {found}")
    statuses = []
    for wrong in said["wrong"]:
        statuses.append(_asked({**data, "answer": wrong}).get("status"))
        if statuses[-1] == "proved":
            raise ValueError(f"the judge accepts {wrong!r}, which is listed as wrong")
    if "refuted" not in statuses:
        raise ValueError("no wrong answer is refuted: list one that a reader could type")
    return data


def _asked(data: dict[str, Any]) -> dict[str, Any]:
    """Return what the judge says of an answer, without what a false one would need."""
    request = {"do": "exercise", "needs": False, **data}
    found: dict[str, Any] = json.loads(answers.answer(json.dumps(request)))
    return found


def _judgement(said: dict[str, Any]) -> dict[str, Any]:
    data = {"equation": said["claim"]}
    data |= {key: said[key] for key in ("shapes", "given") if key in said}
    found = answers.decided({**data, "needs": False})["status"]
    if found != said["is"]:
        raise ValueError(f"the judge finds {said['claim']!r} {found}, and not {said['is']}")
    return data


def _value(said: dict[str, Any]) -> dict[str, Any]:
    value = float(said["value"])
    return {"value": value, "within": float(said.get("within", 0)), "said": said["right"].strip()}


def _typed(placeholder: str, label: str) -> str:
    return (
        f'<form><label>{label}<input name="answer" spellcheck="false" autocomplete="off"'
        f' placeholder="{placeholder}"></label><p><button class="ask">Check</button></p></form>'
    )


def choice() -> str:
    """Return the two buttons with which a reader judges a claim."""
    return (
        '<p><button type="button" class="ask" value="proved">True for all sizes</button>'
        '<button type="button" class="ask" value="refuted">False</button></p>'
    )


def _folded(title: str, text: str) -> str:
    return f"<details markdown>\n<summary>{title}</summary>\n\n{text.strip()}\n\n</details>"
