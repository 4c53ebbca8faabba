"""Fit a relation between a wrong activation and the right one if no known mistake fits.

Each *form* is a relation with parameters: the right values times a factor, plus a vector, with
permuted rows or columns, clipped, another sum of known activations … The parameters are fitted. A
form is reported only if it gives all recorded entries to within rounding, and the right values do
not. It describes a fault, and never excuses one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np

from otimes.numeric.audit.reference.comparison import Comparison
from otimes.numeric.audit.reference.evaluator import Evaluator, layer_of, placed
from otimes.numeric.block import inputs_of, kind_of, place_names
from otimes.numeric.config import TENSORS, Config
from otimes.numeric.rounding.linear import Array

LOOSE = 64.0
"""The largest error of a fit, in roundings of the largest entry."""


@dataclass(slots=True)
class Seen:
    """An activation on the first prompt where it is wrong: recorded, expected, and its pass."""

    compared: Comparison
    place: str
    shown: Array
    ours: Array
    error: Array
    reference: Evaluator

    @property
    def config(self) -> Config:
        """The configuration of the model."""
        return self.compared.model.config

    @property
    def claimed(self) -> Array:
        """A 0/1 array of the entries with a finite bound."""
        return np.isfinite(self.error)

    def is_(self, value: Array) -> bool:
        """Return whether values equal the recorded ones to within rounding."""
        here = self.claimed
        with np.errstate(all="ignore"):
            off = np.abs(self.shown - value)[here]
            largest = np.abs(value)[here].max(initial=0.0)
            return bool((off <= LOOSE * self.compared.unit * largest + 8 * self.error[here]).all())

    def other(self, name: str) -> Array:
        """Return another activation of the pass, recorded or else expected."""
        return self.reference.has(name).value

    def part(self, name: str, layer: int | None) -> Array:
        """Return a weight, or its part for a layer if it has a layer axis."""
        if TENSORS[name][0] != "n_layers":
            return self.compared.model.part(name)
        assert layer is not None  # callers know the layer
        return self.compared.model.part(name, layer)


Said = str | Callable[[], str]
Form = Callable[[Seen], Iterator[tuple[Array, Said]]]
"""Values that may be the recorded ones, each with its relation to the right ones in words."""


def seen_at(compared: Comparison, place: str) -> Seen | None:
    """Return an activation on the first prompt where its error is more than rounding."""
    every = zip(compared.prompts, compared.expected(place), compared.evaluators(), strict=True)
    for prompt, near, reference in every:
        error = np.broadcast_to(np.asarray(near.error), near.value.shape)
        seen = Seen(compared, place, prompt.places[place].value, near.value, error, reference)
        if not seen.is_(near.value):
            return seen
    return None


def fitted(seen: Seen, forms: tuple[Form, ...]) -> str:
    """Return the first form that fits, as "matches …", or an empty string."""
    for form in forms:
        for value, says in form(seen):
            if seen.is_(value):
                return f"matches {says if isinstance(says, str) else says()}"
    return ""


def number(seen: Seen, value: float) -> str:
    """Return a text for a factor: its name in this model (such as √d_head), or the number."""
    return number_of(seen.config, len(seen.reference.tokens), value)


def number_of(config: Config, n_pos: int, value: float) -> str:
    """Return a text for a factor: its name for a model and prompt length, or the number."""
    sizes: dict[str, float] = {
        "n_heads": config.n_heads,
        "d_head": config.d_head,
        "d_model": config.d_model,
        "the number of positions": n_pos,
    }
    if config.rotary_dims:
        sizes["the rotary width"] = config.rotary_dims
    names: dict[str, float] = {"1": 1.0, "2": 2.0, "√2": 2**0.5, "1/2": 0.5, "1/√2": 2**-0.5}
    for name, size in sizes.items():
        names |= {
            name: size, f"√{name}": size**0.5, f"1/{name}": 1 / size, f"1/√{name}": size**-0.5
        }  # fmt: skip
    same = [name for name, known in names.items() if abs(abs(value) - known) <= 1e-5 * known]
    if not same:
        return f"{value:.4g}"
    return ("" if value > 0 else "-") + " = ".join(same[:3])


def entries_left_out(seen: Seen) -> Iterator[tuple[Array, Said]]:
    """Yield the finding that some entries are zero, also by dropout, which scales the others."""
    zero = (seen.shown == 0) & (np.abs(seen.ours) > 0) & seen.claimed
    kept = (seen.shown != 0) & seen.claimed
    if not zero.any():
        return
    if not kept.any():
        yield np.zeros_like(seen.shown), "all entries zero: the step is left out"
        return
    factor = float(np.median(seen.shown[kept] / seen.ours[kept]))
    value = np.where(zero, 0.0, seen.ours * factor)
    yield value, partial(_said_of_zeros, seen, zero, kept, factor)


def _said_of_zeros(seen: Seen, zero: Array, kept: Array, factor: float) -> str:
    for axis, called in axes_of(seen.place, zero.ndim):
        others = tuple(i for i in range(zero.ndim) if i != axis)
        whole = (zero | ~seen.claimed).all(axis=others)
        if (zero == np.moveaxis(np.broadcast_to(whole, _last(zero, axis)), -1, axis)).all():
            which = ", ".join(map(str, np.flatnonzero(whole)[:4]))
            return f"zero in some {called} that are left out ({which})"
    share = zero.sum() / (zero | kept).sum()
    if abs(factor - 1) < 1e-5:
        return f"zero in {share:.0%} of the entries"
    return (
        f"dropout that was left on: {share:.0%} of the entries are zero, and the others "
        f"divided by {1 / factor:.3g}"
    )


def axes_of(place: str, ndim: int) -> list[tuple[int, str]]:
    """Return the axes of an activation by number and name: heads, columns and positions."""
    columns = {"mlp_pre": "neurons", "mlp_post": "neurons", "logits": "tokens"}
    columns |= {"scores": "keys", "pattern": "keys"}
    heads = [(0, "heads")] if ndim == 3 else []
    return [*heads, (ndim - 1, columns.get(kind_of(place), "features")), (ndim - 2, "positions")]


def _last(array: Array, axis: int) -> tuple[int, ...]:
    return (*(n for i, n in enumerate(array.shape) if i != axis), array.shape[axis])


def multiplied(seen: Seen) -> Iterator[tuple[Array, Said]]:
    """Yield the finding that all entries (with or without the bias), or each head, are scaled."""
    here = seen.claimed & np.isfinite(seen.ours)
    ours = np.where(here, seen.ours, 0.0)
    shown = np.where(here, seen.shown, 0.0)
    factor = float((ours * shown).sum() / max((ours**2).sum(), 1e-300))
    if factor:
        says = f"the right values multiplied by {number(seen, factor)}: another scale"
        yield np.where(here, factor * ours, seen.shown), says
    if ours.ndim == 3 and len(ours) > 1:
        each = (ours * shown).sum((1, 2)) / np.maximum((ours**2).sum((1, 2)), 1e-300)
        said = ", ".join(number(seen, float(f)) for f in each[:6])
        value = np.where(here, each[:, None, None] * ours, seen.shown)
        yield value, f"each head multiplied by a factor of its own: {said}"
    if kind_of(seen.place) in ("scores", "pattern") or ours.shape[-2] < 3:
        return
    mean, shown_mean = ours.mean(-2, keepdims=True), shown.mean(-2, keepdims=True)
    a, b = ours - mean, shown - shown_mean
    factor = float((a * b).sum() / max((a**2).sum(), 1e-300))
    says = f"the product multiplied by {number(seen, factor)}, beside its bias: another scale"
    bias = partial(_as_bias, seen, (shown_mean - factor * mean)[..., 0, :])
    yield factor * a + shown_mean, bias if abs(factor - 1) < 1e-5 else says


def _as_bias(seen: Seen, vector: Array) -> str:
    """Return a text for a vector that is added at every position."""
    layers = range(seen.config.n_layers)
    own = OWN_BIAS.get(kind_of(seen.place), "")
    has_own = bool(own) and seen.config.has(own)
    for name in TENSORS:
        if not name.startswith(("b_", "ln")) or not seen.config.has(name):
            continue
        per_layer = TENSORS[name][0] == "n_layers"
        for layer in layers if per_layer else (None,):
            known = seen.part(name, layer)
            if known.shape != vector.shape:
                continue
            where = "" if layer in (None, layer_of(seen.place)) else f" of layer {layer}"
            for factor in (1, -1, 2, -2, seen.config.n_heads - 1):
                if _same(vector, factor * known, seen):
                    times = "" if abs(factor) == 1 else f"{abs(factor)} times "
                    what = "added" if factor > 0 else "subtracted"
                    return f"a wrong bias: {times}{name}{where} {what}"
            if has_own and _same(vector, known - seen.part(own, layer_of(seen.place)), seen):
                return f"a wrong bias: {name}{where} for {own}"
    return "a wrong bias: the same vector is added at every position"


OWN_BIAS = {
    "q": "b_Q", "k": "b_K", "v": "b_V", "attn_out": "b_O", "mlp_pre": "b_in", "mlp_out": "b_out",
    "logits": "b_U",
}  # fmt: skip


def _same(a: Array, b: Array, seen: Seen) -> bool:
    largest = max(np.abs(seen.shown[seen.claimed]).max(initial=0.0), np.abs(b).max(initial=0.0))
    return bool(np.abs(a - b).max(initial=0.0) <= 4 * LOOSE * seen.compared.unit * largest)


def rows_multiplied(seen: Seen) -> Iterator[tuple[Array, Said]]:
    """Yield the finding that each row is multiplied by its own factor."""
    here = seen.claimed & np.isfinite(seen.ours)
    ours, shown = np.where(here, seen.ours, 0.0), np.where(here, seen.shown, 0.0)
    factor = (ours * shown).sum(-1) / np.maximum((ours**2).sum(-1), 1e-300)
    value = np.where(here, factor[..., None] * ours, seen.shown)
    yield value, partial(_said_of_factors, seen, ours, factor[..., None])


def _said_of_factors(seen: Seen, ours: Array, factor: Array) -> str:
    """Return in words by which factors [..., 1] rows are multiplied."""
    for e in (0.0, seen.config.norm_eps, 1e-6, 1e-5):
        root = np.sqrt((ours**2).mean(-1, keepdims=True) + e)
        if np.abs(factor * root - 1).max() < 1e-4:
            return "rows that are normalised once more: each divided by its root mean square"
    length = np.sqrt((ours**2).sum(-1, keepdims=True))
    if np.abs(factor * length - 1).max() < 1e-4:
        return "rows that are normalised: each divided by its length"
    if kind_of(seen.place) == "pattern":
        return "a softmax that is not normalised: rows do not sum to one"
    positions = np.unique(np.argwhere(np.abs(factor[..., 0] - 1) > 1e-5)[:, -1])
    if len(positions) == 1:
        scale = number(seen, float(factor.take(positions[0], axis=-2).ravel()[-1]))
        return f"position {positions[0]} multiplied by {scale}, and no other"
    return "rows each multiplied by a factor of its own: another scale at each position"


def moved_about(seen: Seen) -> Iterator[tuple[Array, Said]]:
    """Yield the finding that heads, rows or columns of the right values are permuted."""
    square = kind_of(seen.place) in ("scores", "pattern")
    if seen.shown.ndim == 3 and not square:
        order = _order(seen.shown, seen.ours)
        yield seen.ours[order], f"heads in another order: {', '.join(map(str, order))}"
    if not square:
        order = _order(np.moveaxis(seen.shown, -2, 0), np.moveaxis(seen.ours, -2, 0))
        yield seen.ours[..., order, :], _said_of_positions(order)
    if seen.shown.shape[-1] <= 4096 and kind_of(seen.place) != "pattern":
        order = _order(np.moveaxis(seen.shown, -1, 0), np.moveaxis(seen.ours, -1, 0))
        moved = [f"{i} has {j}" for i, j in enumerate(order) if i != j]
        _, called = axes_of(seen.place, seen.shown.ndim)[-2]
        yield seen.ours[..., order], f"{called} in another order ({', '.join(moved[:4])})"


def _said_of_positions(order: Array) -> str:
    n_pos = len(order)
    moved = [i for i, j in enumerate(order) if i != j]
    if (order == n_pos - 1 - np.arange(n_pos)).all():
        return "positions in reverse order"
    if moved == [n_pos - 1]:
        return f"a stale last position: it has that of position {order[-1]}"
    said = ", ".join(f"position {i} has that of position {order[i]}" for i in moved[:4])
    return f"rows shifted to other positions: {said}"


def _order(shown: Array, ours: Array) -> Array:
    """Return for each recorded item the nearest expected one, along the first axis."""
    a, b = shown.reshape(len(shown), -1), ours.reshape(len(ours), -1)
    a, b = np.nan_to_num(a, posinf=0, neginf=0), np.nan_to_num(b, posinf=0, neginf=0)
    distance = (a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * a @ b.T
    return np.asarray(distance.argmin(1))


def function_of_entries(seen: Seen) -> Iterator[tuple[Array, Said]]:
    """Yield the finding that every entry is a function of the right entry, or of its input."""
    ours, shown = seen.ours[seen.claimed], seen.shown[seen.claimed]
    low, high = shown.min(initial=np.inf), shown.max(initial=-np.inf)
    clipped = {
        f"at most {high:.4g}": (-np.inf, high),
        f"at least {low:.4g}": (low, np.inf),
        f"[{low:.4g}, {high:.4g}]": (low, high),
    }
    functions = {
        f"the right values clipped (clamped) to {says}": np.clip(seen.ours, *edges)
        for says, edges in clipped.items()
        # One wrong entry is no evidence of clipping.
        if np.count_nonzero(np.abs(shown - ours) > seen.error[seen.claimed]) > 1
    }
    says = "the right values without their signs: the absolute value of each"
    functions[says] = np.abs(seen.ours)
    if cap := _cap(ours, shown):
        says = f"the right values soft-capped at {cap:.4g}: c tanh(x / c)"
        functions[says] = cap * np.tanh(seen.ours / cap)
    for says, value in functions.items():
        yield np.where(seen.claimed, value, seen.shown), says
    if kind_of(seen.place) != "mlp_post" or seen.config.gated:
        return
    x = seen.other(placed("mlp_pre", layer_of(seen.place) or 0)).ravel()
    order = np.argsort(x)
    x, y = x[order], seen.shown.ravel()[order]
    middle = np.interp(x[1:-1:2], x[::2], y[::2])
    if len(x) > 200 and np.median(np.abs(middle - y[1:-1:2])) < 1e-3 * np.abs(y).max():
        says = f"another function of each entry for the activation {seen.config.activation}"
        yield seen.shown, says


def _cap(ours: Array, shown: Array) -> float:
    """Return the c of c tanh(x / c), found by bisection at the largest entry."""
    at = int(np.abs(ours).argmax())
    x, y = abs(float(ours[at])), abs(float(shown[at]))
    if not 0 < y < x:
        return 0.0
    low, high = y, 1e4 * x
    for _ in range(200):
        cap = (low + high) / 2
        low, high = (cap, high) if cap * np.tanh(x / cap) < y else (low, cap)
    return (low + high) / 2


def another_sum(seen: Seen) -> Iterator[tuple[Array, Said]]:
    """Yield the finding that another sum of known activations was computed."""
    terms = _terms(seen)
    flat = {name: array.ravel() for name, array in terms.items()}
    shown = seen.shown.ravel()
    if not np.isfinite(shown).all():
        return
    right = [n if n in terms else "positions" for n in inputs_of(seen.config, seen.place)]
    if seen.place == "resid_pre.0" and seen.config.positions == "learned":
        right.append("positions")
    for count in (1, 2, 3):
        fits = []
        for names in combinations(flat, count):
            columns = np.stack([flat[name] for name in names], axis=1)
            factors = np.linalg.lstsq(columns, shown, rcond=None)[0]
            value = (columns @ factors).reshape(seen.shown.shape)
            if (np.abs(factors) > 1e-6).all() and seen.is_(value):
                plain = sum(abs(f - 1) > 1e-4 for f in factors)
                fits.append((plain, len(set(names) - set(right)), value, names, factors))
        if fits:
            *_, value, names, factors = min(fits, key=lambda fit: fit[:2])
            says = f"{_summed(seen, names, factors)} for {' + '.join(right)}: another sum"
            yield value, says


def _terms(seen: Seen) -> dict[str, Array]:
    layer = layer_of(seen.place)
    order = place_names(seen.config)
    before = set(order[: order.index(seen.place)])
    kinds = ("resid_pre", "ln1", "attn_out", "resid_mid", "ln2", "mlp_out", "resid_post")
    layers = [each for each in (layer, (layer or 0) - 1) if each is not None and each >= 0]
    if layer is None:
        layers = [seen.config.n_layers - 1]
    names = ["embed", *(f"{kind}.{each}" for each in layers for kind in kinds)]
    terms = {name: seen.other(name) for name in names if name in before}
    if seen.config.positions == "learned":
        terms["positions"] = seen.compared.model.part("W_pos", slice(len(seen.reference.tokens)))
    distinct: dict[str, Array] = {}
    for name, array in terms.items():
        if not any(np.array_equal(array, each) for each in distinct.values()):
            distinct[name] = array
    return distinct


def _summed(seen: Seen, names: tuple[str, ...], factors: Array) -> str:
    said = []
    for name, factor in zip(names, factors, strict=True):
        if abs(factor - 1) < 1e-4:
            said.append(name)
        elif abs(factor - 2) < 1e-4:
            said.append(f"2 · {name} (it is added twice)")
        else:
            said.append(f"{number(seen, float(factor))} · {name}")
    return " + ".join(said)


def another_unembedding(seen: Seen) -> Iterator[tuple[Array, Said]]:
    """Yield the finding that logits are a linear function of the last stream, not by W_U.

    The matrix is fitted to all prompts, which must have more tokens than d_model.
    """
    config = seen.config
    name = "ln_final" if config.final_norm else "final"
    every = zip(seen.compared.prompts, seen.compared.evaluators(), strict=True)
    rows, logits = zip(
        *((pass_.has(name).value, prompt.places[seen.place].value) for prompt, pass_ in every),
        strict=True,
    )
    stream = np.concatenate(rows)
    if config.logit_cap or len(stream) < config.d_model + MORE_ROWS:
        return
    bias = seen.compared.model.part("b_U") if config.has("b_U") else 0.0
    matrix = np.linalg.lstsq(stream, np.concatenate(logits) - bias, rcond=None)[0]
    says = f"logits that are a linear function of {name}, but not by W_U: another unembedding"
    if config.tied:
        says += ", which is not tied to W_E"
    yield seen.other(name) @ matrix + bias, says


MORE_ROWS = 4
"""How many tokens more than d_model a fitted unembedding needs: what they leave is no accident."""

ANYWHERE: tuple[Form, ...] = (
    entries_left_out,
    multiplied,
    moved_about,
    function_of_entries,
    rows_multiplied,
)
SUMS: tuple[Form, ...] = (another_sum, *ANYWHERE)
