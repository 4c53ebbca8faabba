"""Whether the words of an observation's criterion name its thresholds.

The page shows the words, and the measurement is held to the thresholds. A threshold that the words
do not name may have been changed after a look at the result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from otimes.proofs.claims import Observation

COUNTS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
NUMBERS = {word: float(number) for number, word in enumerate(COUNTS)} | {"twenty": 20.0}
SINGLE = {
    "half": (0.5,),
    "halved": (0.5, 2.0),
    "tenth": (0.1,),
    "twice": (2.0,),
    "everywhere": (1.0,),
}
A_NUMBER = rf"(\d+(?:\.\d+)?|{'|'.join(NUMBERS)})"
SHARE = re.compile(rf"\b{A_NUMBER} (?:cases |of the )?(?:of|in) {A_NUMBER}\b")
TENTHS = re.compile(rf"\b{A_NUMBER} tenths\b")
PLAIN = re.compile(rf"([−-]?)(?<![\w.]){A_NUMBER}(?![\w]|\.\d)( ?%)?")
DIFFERENCE = re.compile(r"\b(minus|above|beyond|more|less|saved|gain|rate|slope|signs|sinks)\b")
"""Words in the names of values that are compared with zero: one number is larger than another."""
TINY, NEARLY = 1e-6, 1e-3


def unsaid(claim: Observation) -> str:
    """Return which thresholds the words of the criterion do not name; empty if they name all.

    >>> unsaid(Observation("more than half of the heads", above={"share": 0.5}))
    ''
    >>> unsaid(Observation("more than half of the heads", above={"share": 0.3}))
    'the criterion in words does not name the threshold 0.3 of “share”'
    """
    numbers = {*_spoken(claim.criterion)}
    missing = [
        f"the criterion in words does not name the threshold {above:g} of “{name}”"
        for name, above in claim.above.items()
        if not _is_said(name, float(above), numbers)
    ]
    return "; ".join(missing)


def _is_said(name: str, above: float, numbers: set[float]) -> bool:
    """Return whether a threshold is a number that is named, or zero for a difference.

    “At least 7” of whole numbers is more than 6.5, “within 0.1” is more than 0.9 of 1 − x, and
    “below −1” is more than 1 of −x.
    """
    if abs(above) < TINY and DIFFERENCE.search(name):
        return True
    whole = above > 1 and above % 1 == 0.5
    meant = [above, *((1 - above,) if above > 0 else ()), *((above + 0.5,) if whole else ())]
    return any(_near(each, number) for each in meant for number in numbers)


def _near(one: float, other: float) -> bool:
    """Return whether two numbers are equal up to rounding; “everywhere” is 1 or nearly."""
    return abs(one - other) <= (NEARLY if other == 1 and one < 1 else TINY)


def _spoken(words: str) -> Iterator[float]:
    """Yield the numbers in words: digits, per cent, “half”, “nine tenths”, “three cases of four”.

    >>> sorted({*_spoken("at least three cases of four, or 90 %, and twice")})
    [0.75, 0.9, 2.0, 3.0, 4.0]
    """
    for word, values in SINGLE.items():
        if re.search(rf"\b{word}\b", words):
            yield from values
    for part, whole in SHARE.findall(words):
        yield _value(part)
        if _value(whole):
            yield _value(part) / _value(whole)
    for tenths in TENTHS.findall(words):
        yield _value(tenths) / 10
    for sign, number, percent in PLAIN.findall(words):
        size = _value(number) / (100 if percent else 1)
        yield from (size, -size) if sign else (size,)


def _value(text: str) -> float:
    return NUMBERS[text] if text in NUMBERS else float(text)
