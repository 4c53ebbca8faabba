"""What the tests of bounds have seen: how many random cases, and the worst error/bound of a type.

Printed at the end of a run, so that the long profile says what it found.
"""

from collections import defaultdict

CASES: dict[str, int] = defaultdict(int)
WORST: dict[str, float] = defaultdict(float)


def note(dtype: str, ratio: float) -> None:
    """Count a case: one implementation, one place or one statement, on one draw."""
    CASES[dtype] += 1
    WORST[dtype] = max(WORST[dtype], float(ratio))


def summary() -> str:
    """Return the whole in one line, or nothing if no case was tried in this process."""
    if not CASES:
        return ""
    worst = ", ".join(f"{dtype} {WORST[dtype]:.3g}" for dtype in sorted(CASES))
    return f"rounding bounds: {sum(CASES.values())} random cases, worst error/bound {worst}"
