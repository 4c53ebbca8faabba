"""Forms of wrong attention: rotations, heads, masks and softmax. See `fit`.

The rotation angle of each plane of queries and keys; the head whose keys and values were read; the
pairs of positions that a mask admits; the temperature of the softmax.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from scipy.special import expit

from otimes.numeric.audit.diagnosis.fit import ANYWHERE, Form, Said, Seen, number
from otimes.numeric.audit.reference.edits import not_turned, weights_to
from otimes.numeric.audit.reference.evaluator import Act, Mistake, layer_of
from otimes.numeric.block import kind_of
from otimes.numeric.functions import causal_mask
from otimes.numeric.rounding.linear import Array
from otimes.numeric.rounding.precision import stored_as

FACTORS = (2.0, 4.0, 8.0, 16.0, 0.5, 0.25, 0.125)


def turned_otherwise(seen: Seen) -> Iterator[tuple[Array, Said]]:
    """Yield the finding that queries or keys were rotated by other angles."""
    config = seen.config
    if config.positions != "rotary" or len(seen.reference.tokens) < 3:
        return
    plain = computed(seen, not_turned)
    half = config.rotary_dims // 2
    pair = np.arange(half)
    if config.rotary_layout == "interleaved":
        first, second = 2 * pair, 2 * pair + 1
    else:
        first, second = pair, pair + half
    before = plain[..., first] + 1j * plain[..., second]
    now = seen.shown[..., first] + 1j * seen.shown[..., second]
    right = seen.ours[..., first] + 1j * seen.ours[..., second]
    name = {"q": "b_Q", "k": "b_K"}[kind_of(seen.place)]
    if config.has(name):
        bias = seen.part(name, layer_of(seen.place))[:, None]
        says = f"{name}, the bias, added after the rotation and not before"
        yield computed(seen, weights_to(**{name: np.zeros_like})) + bias, says

    def turned(phase: Array) -> Array:
        value = plain.copy()
        made = before * phase
        value[..., first], value[..., second] = made.real, made.imag
        return value

    angles = np.angle((right * before.conj()).sum(0))  # [pos, plane], of what is right
    positions = np.arange(len(angles))[:, None]
    whole = positions * angles[1:2]
    for dtype in ("float16", "bfloat16"):
        rounded: dict[str, Array] = {
            "angles": np.exp(1j * stored_as(whole, dtype)),
            "frequencies": np.exp(1j * positions * stored_as(angles[1:2], dtype)),
            "sines and cosines": stored_as(np.cos(whole), dtype)
            + 1j * stored_as(np.sin(whole), dtype),
        }
        for what, each in rounded.items():
            says = f"a half-precision step: the rotary {what} are rounded to {dtype}"
            yield turned(each), says
    phase = (now * before.conj()).sum(0)
    phase = phase / np.maximum(np.abs(phase), 1e-300)
    yield turned(phase), partial(_said_of_angles, seen, phase, angles[1])
    each = now * before.conj()
    each = each.sum(1) / np.maximum(np.abs(each.sum(1)), 1e-300)
    says = "rotary positions over the wrong axis: each head is rotated by its own number"
    yield turned(each[:, None]), says


def computed(seen: Seen, act: Act) -> Array:
    """Return the activation computed with a mistake from the recorded inputs."""
    mistake = Mistake("", {kind_of(seen.place): act})
    return seen.reference.with_mistake(mistake).near(seen.place).value


def _said_of_angles(seen: Seen, phase: Array, right: Array) -> str:
    """Return a text on how angles differ, from their differences between positions."""
    steps = phase[1:] * phase[:-1].conj()
    if np.abs(steps - steps[:1]).max(initial=0.0) > 1e-3:
        return "rotary positions of another order: angles do not grow evenly with the position"
    step = np.angle(steps[0])
    start = np.abs(phase[0] - 1).max()
    with np.errstate(all="ignore"):
        ratio = step / right
    if start > 1e-3 and np.abs(ratio - 1).max() < 1e-3:
        return "rotary positions that do not begin at 0: off by an offset"
    if np.abs(ratio - ratio[0]).max() < 1e-3:
        return (
            f"rotary angles multiplied by {number(seen, float(round(ratio[0], 4)))}: "
            "other frequencies, as of positions that are scaled"
        )
    dims = seen.config.rotary_dims
    logs = np.log(np.abs(step[1:]))
    slope = logs / (-2 * np.arange(1, len(step)) / dims)
    if np.ptp(slope) < 1e-3 * np.abs(slope).max():
        return f"rotary base {np.exp(slope.mean()):.6g} for {seen.config.rotary_base:g}"
    other = [i for i, each in enumerate(ratio) if abs(each - 1) > 1e-4]
    said = ", ".join(f"{ratio[i]:.4g}" for i in other[:4])
    return (
        f"other rotary frequencies (rescaled, as for long contexts): planes "
        f"{', '.join(map(str, other[:4]))} turn {said} times as fast"
    )


def heads_of_others(seen: Seen) -> Iterator[tuple[Array, Said]]:
    """Yield the finding that heads read the queries, keys or values of other heads."""
    layer = layer_of(seen.place)
    if kind_of(seen.place) == "scores":
        q, k = seen.other(f"q.{layer}"), seen.other(f"k.{layer}")
        root = seen.config.d_head**0.5
        left, right = q / root, np.swapaxes(k, -1, -2)
        names = ("queries", "keys")
    else:
        left, right = seen.other(f"pattern.{layer}"), seen.other(f"v.{layer}")
        names = ("patterns", "values")
    heads = seen.config.n_heads
    seen_entries = np.isfinite(seen.error[0])
    for name in reversed(names):
        order = []
        for h in range(heads):
            made = left[h] @ right if name == names[1] else left @ right[h]
            off = np.abs(np.where(seen_entries, made - seen.shown[h], 0.0)).max((1, 2))
            order.append(int(np.argmin(off)))
        value = left @ right[order] if name == names[1] else left[order] @ right
        yield value, partial(_said_of_heads, seen, name, order)


def _said_of_heads(seen: Seen, name: str, order: list[int]) -> str:
    config = seen.config
    if config.kv_heads == config.n_heads or name in ("queries", "patterns"):
        return f"the {name} of another head: heads 0, 1, … read {', '.join(map(str, order))}"
    share = config.n_heads // config.kv_heads
    groups = [g // share for g in order]
    if groups == [h % config.kv_heads for h in range(config.n_heads)]:
        how = (
            "repeated in the wrong order: tiled (head h reads group h mod groups), not interleaved"
        )
    elif len(set(groups)) == 1:
        how = f"of group {groups[0]} (the first is 0) used by all heads"
    else:
        how = f"in the wrong order: heads 0, 1, … read groups {', '.join(map(str, groups))}"
    return f"grouped {name} {how}"


def biased_by_distance(seen: Seen) -> Iterator[tuple[Array, Said]]:
    """Yield the finding that scores have a bias for the distance of query and key (ALiBi)."""
    n_pos = seen.shown.shape[-1]
    distance = np.arange(n_pos)[:, None] - np.arange(n_pos)
    mask = causal_mask(n_pos)
    off = np.where(mask, seen.shown - seen.ours, 0.0)
    slope = (off * distance * mask).sum((1, 2)) / np.maximum((distance**2 * mask).sum(), 1)
    said = ", ".join(f"{each:.4g}" for each in slope[:4])
    value = np.where(mask, seen.ours + slope[:, None, None] * distance, seen.shown)
    yield value, f"scores with a bias for distance (ALiBi), of slopes {said}"


def another_softmax(seen: Seen) -> Iterator[tuple[Array, Said]]:
    """Yield the finding that the softmax has another axis, mask or temperature."""
    shown, n_pos = seen.shown, seen.shown.shape[-1]
    if not np.isfinite(shown).all() or (shown < 0).any():
        return
    causal = causal_mask(n_pos)
    scores = np.where(causal, seen.other(f"scores.{layer_of(seen.place)}"), _all_scores(seen))
    over_heads = np.exp(scores - scores.max(0))
    over_heads = over_heads / over_heads.sum(0)
    yield np.where(causal, over_heads, shown), "a softmax over the wrong axis: over the heads"
    visible = np.asarray((shown > 0).all(axis=0))
    flat = (np.ptp(np.where(visible, shown, shown.max(-1, keepdims=True)), axis=-1) == 0).all(0)
    made = _softmax(scores, visible)
    if (visible != causal).any():
        says = partial(_said_of_mask, visible, flat & (visible.sum(1) > 1))
        yield np.where(flat[:, None], shown, made), says
    else:
        with np.errstate(all="ignore"):
            logs = np.where(causal, np.log(shown), 0.0)
        off = causal.sum(-1)[:, None]
        a = np.where(causal, scores - (scores * causal).sum(-1, keepdims=True) / off, 0.0)
        b = np.where(causal, logs - logs.sum(-1, keepdims=True) / off, 0.0)
        factor = float((a * b).sum() / (a**2).sum())
        by = f"scores multiplied by {number(seen, factor)} before it"
        yield _softmax(factor * scores, causal), f"a softmax at another temperature: {by}"


def filled_mask(seen: Seen) -> Iterator[tuple[Array, Said]]:
    """Yield the finding that masked scores are a finite number, or shifted by one, and not -∞."""
    n_pos = seen.shown.shape[-1]
    causal = causal_mask(n_pos)
    if n_pos < 3 or not np.isfinite(seen.shown).all() or not (seen.shown > 0).all():
        return
    scores = _all_scores(seen)
    own = np.diagonal(np.log(seen.shown) - scores, axis1=-2, axis2=-1)[..., None]
    later = np.log(seen.shown) - own  # masked scores as the softmax read them
    everywhere = np.ones_like(causal)
    filled, moved = (float(np.median(each[:, ~causal])) for each in (later, later - scores))
    for says, masked in (
        (f"masked scores are set to {filled:.4g}", filled),
        (f"{moved:.4g} is added to masked scores", scores + moved),
    ):
        value = _softmax(np.where(causal, scores, masked), everywhere)
        yield value, f"a causal mask that is not -∞: {says}"


WEIGHTINGS: dict[str, Callable[[Array], Array]] = {
    "ReLU": lambda s: np.maximum(s, 0),
    "squared ReLU": lambda s: np.maximum(s, 0) ** 2,
    "sigmoid": expit,
    "softplus": lambda s: np.logaddexp(0, s),
    "1 + ELU": lambda s: np.where(s > 0, 1 + s, np.exp(np.minimum(s, 0))),
    "absolute value": np.abs,
    "square": np.square,
    "nothing but the score itself": lambda s: s,
}


def another_weighting(seen: Seen) -> Iterator[tuple[Array, Said]]:
    """Yield the finding that keys are weighted by another function of the scores than exp."""
    n_pos = seen.shown.shape[-1]
    causal = causal_mask(n_pos)
    scores = np.where(causal, seen.other(f"scores.{layer_of(seen.place)}"), 0.0)
    shown = np.where(causal, seen.shown, 0.0)
    for called, function in WEIGHTINGS.items():
        weights = np.where(causal, function(scores), 0.0)
        says = f"no softmax: keys are weighted by {called},"
        yield weights, f"{says} which is not normalised"
        keys = np.arange(1, n_pos + 1)[:, None]
        yield weights / keys, f"{says} divided by the number of keys"
        # A row is a multiple of its weights, by a factor of about one over their sum.
        factor = (shown * weights).sum(-1) / np.maximum((weights**2).sum(-1), 1e-300)
        total = weights.sum(-1)
        heavy = np.abs(total) > 0.1
        if heavy.any() and np.abs(factor * total - 1)[heavy].max() < 1e-2:
            yield factor[..., None] * weights, f"{says} normalised to sum to one"


def _all_scores(seen: Seen) -> Array:
    """Return the scores of all pairs, masked ones too."""
    q, k = (seen.other(f"{kind}.{layer_of(seen.place)}") for kind in "qk")
    return np.asarray(q @ np.swapaxes(k, -1, -2) / seen.config.d_head**0.5)


def _softmax(scores: Array, visible: Array) -> Array:
    with np.errstate(all="ignore"):
        masked = np.where(visible, scores, -np.inf)
        powers = np.exp(masked - masked.max(-1, keepdims=True))
        return np.nan_to_num(powers / powers.sum(-1, keepdims=True))


def _said_of_mask(visible: Array, flat: Array) -> str:
    """Return a description of a mask [query, key]."""
    n_pos = visible.shape[0]
    causal = causal_mask(n_pos)
    i, j = np.arange(n_pos)[:, None], np.arange(n_pos)
    rest = ~flat[:, None]

    def same(mask: Array) -> bool:
        return bool((np.where(rest, mask, visible) == visible).all())

    if same(causal & (i != j)):
        even = ", and those that see nothing attend to all alike" if flat.any() else ""
        return f"a causal mask off by one: no query sees its own key{even}"
    for size in range(2, n_pos):
        if same(causal | ((i < size) & (j < size))):
            return f"a prefix mask: the first {size} positions all see each other"
        if same(causal & (i // size == j // size)):
            return f"a causal mask in blocks of {size}: no query sees keys of an earlier block"
        if same(causal & ((i - j) % size == 0)):
            return f"a strided causal mask: each query sees every {size}th key"
        if same(causal & (i - j < size)):
            return f"a sliding window of {size}: each query sees the last {size} keys only"
        if same(np.tri(n_pos, k=size - 1, dtype=bool)):
            return f"a causal mask off by {size - 1}: queries see later keys"
    hidden = ~(visible | ~causal | np.eye(n_pos, dtype=bool)).all(axis=0)
    if same(causal & (~hidden | (i == j))) or same(causal & ~hidden):
        which = ", ".join(map(str, np.flatnonzero(hidden)[:4]))
        return f"a mask that hides the keys at some positions ({which}), as if they were padding"
    more, fewer = (visible & ~causal).any(), (causal & ~visible).any()
    what = "sees later keys" if more and not fewer else "hides earlier keys" if fewer else "both"
    what = "both sees later keys and hides earlier ones" if more and fewer else what
    return f"another mask than the causal one: it {what}"


ROTATED: tuple[Form, ...] = (turned_otherwise, *ANYWHERE)


def dropped_weights(seen: Seen) -> Iterator[tuple[Array, Said]]:
    """Yield the finding of dropout in the pattern: some weights are 0, the others are larger.

    What is mixed determines the weights of a query that sees no more keys than a value is wide.
    Those of later queries are not determined, and not compared.
    """
    layer = layer_of(seen.place)
    values, pattern = seen.other(f"v.{layer}"), seen.other(f"pattern.{layer}")
    ratios: dict[tuple[int, ...], tuple[Array, Array]] = {}
    for head, query in np.ndindex(*pattern.shape[:2]):
        keys = np.flatnonzero(pattern[head, query] > 0)
        if len(keys) <= values.shape[-1]:
            mixed, _, rank, _ = np.linalg.lstsq(
                values[head, keys].T, seen.shown[head, query], rcond=None
            )
            if rank == len(keys):
                ratios[head, query] = keys, mixed / pattern[head, query, keys]
    flat = np.concatenate([np.zeros(0), *(ratio for _, ratio in ratios.values())])
    kept = flat > 0.5
    if len(ratios) < FEWEST_QUERIES or kept.all() or not kept.any():
        return
    scale, value = float(np.median(flat[kept])), seen.shown.copy()
    for (head, query), (keys, ratio) in ratios.items():
        weights = np.where(ratio > scale / 2, scale, 0.0) * pattern[head, query, keys]
        value[head, query] = weights @ values[head, keys]
    if scale > 1:
        says = "dropout that was left on in the pattern: of the weights that z determines, "
        share = f"{1 - kept.mean():.0%} are zero, and the others divided by {1 / scale:.3g}"
        yield value, says + share


FEWEST_QUERIES = 6
"""How many queries must have weights that are determined."""

SCORED: tuple[Form, ...] = (heads_of_others, biased_by_distance, *ANYWHERE)
MIXED: tuple[Form, ...] = (heads_of_others, dropped_weights, *ANYWHERE)
PATTERN: tuple[Form, ...] = (another_softmax, filled_mask, another_weighting, *ANYWHERE)
