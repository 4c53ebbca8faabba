"""The location and form of an unexplained error: one head, some positions, noise."""

import numpy as np

from otimes.numeric.audit.diagnosis.fit import axes_of
from otimes.numeric.audit.reference.comparison import Comparison
from otimes.numeric.rounding.linear import Array


def described(compared: Comparison, place: str) -> str:
    """Return a text on the location and form of an unexplained error, which is no diagnosis."""
    prompt, near = compared.prompts[0], compared.expected(place)[0]
    shown, ours = prompt.places[place].value, near.value
    error = np.broadcast_to(np.asarray(near.error), ours.shape)
    claimed = np.isfinite(error) & np.isfinite(ours)
    with np.errstate(all="ignore"):
        off = np.where(claimed, np.abs(shown - ours), 0.0)
        wrong = claimed & ~(off <= error)
    if not wrong.any() or not np.isfinite(shown[claimed]).all():
        return ""
    return _where(place, wrong, claimed) or _how(shown[claimed], ours[claimed], off[claimed])


def _where(place: str, wrong: Array, claimed: Array) -> str:
    if np.count_nonzero(wrong) == 1:
        entry = ", ".join(str(int(i)) for i in np.argwhere(wrong)[0])
        return f"is wrong in one entry only, [{entry}]"
    for axis, called in sorted(axes_of(place, wrong.ndim)):
        others = tuple(i for i in range(wrong.ndim) if i != axis)
        which = np.flatnonzero(np.any(wrong, axis=others))
        if 2 * len(which) <= wrong.shape[axis]:
            listed = ", ".join(map(str, which[:6])) + (", …" if len(which) > 6 else "")
            if len(which) == 1:
                called = called[:-1]
            return f"is wrong at {called} {listed} only, and right at the others"
    share = wrong.sum() / claimed.sum()
    return f"is wrong in {share:.0%} of the entries, here and there" if share < 0.4 else ""


def _how(shown: Array, ours: Array, off: Array) -> str:
    size, other = float(np.linalg.norm(ours)), float(np.linalg.norm(shown))
    if not size or not other or len(ours) < 64:
        return ""
    alike = float(ours @ shown) / (size * other)
    if abs(alike) < 6 / len(ours) ** 0.5:
        return (
            f"has nothing to do with the right values (their correlation is {alike:.2g}), as if it "
            "were made with other weights"
        )
    share = off[np.abs(ours) > 0] / np.abs(ours)[np.abs(ours) > 0]
    relative = float(np.sqrt(np.mean(np.minimum(share, 1.0) ** 2)))
    proportional = np.quantile(share, 0.99) < 20 * max(float(np.median(share)), 1e-300)
    # Noise that is centred and proportional to the entries is not a systematic mistake.
    mean = abs(float(((shown - ours) * np.sign(ours)).sum())) / float(off.sum())
    if relative < 0.02 and proportional and mean < 6 / len(ours) ** 0.5:
        bits = max(1, round(-np.log2(relative)))
        noise = f"noise of relative size {relative:.1g}"
        return f"is off by {noise} everywhere: about {bits} bits are right"
    return ""
