"""The residual stream in other coordinates: centred, or rotated.

Where the stream itself is normalised (post-norm), fewer coordinates give the same function: what is
written to it may be centred, and its features may stand in another order.

Found before the walk, from pairs that need no coordinates of the stream: the embedding of the
tokens, and what attention and MLP write given what heads and neurons hold. If most of these are
not ours, the stream may be *centred* (what writes to it has lost its mean, which no LayerNorm
sees), or *rotated*: all products between rows are as they should be, and one orthogonal matrix,
fitted on the rows of all pairs, takes every place of the stream to ours.

Heads and neurons may be in other coordinates as well, and then say nothing of what is written. So
what most of these pairs do not tell is asked of a pass from the tokens, up to where what is written
has other products between its rows.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.linalg import lstsq, norm, svd

from numeric.audit.evaluate import Evaluator, layer_of
from numeric.audit.findings import Gauge
from numeric.audit.judge import Judge
from numeric.model import Model
from numeric.rounding.linear import Array, Near
from numeric.rounding.places import kind_of

STREAM = (
    "embed",
    "resid_pre",
    "head_out",
    "attn_out",
    "resid_mid",
    "mlp_out",
    "resid_post",
    "final",
)
NORMED = ("ln1", "ln2", "ln_final", "qk_in")
WRITERS = ("attn_out", "mlp_out")
CENTRED = "the residual stream is centred"
ROTATED = "the residual stream is rotated"
PERMUTED = "the features of the residual stream stand in another order, or with other signs"

ROWS = 512
"""Products between so many rows are looked at, no more."""

Rows = list[tuple[str, Array, Array]]
"""Places of the stream with our rows and those that were shown."""


def settle_stream(judge: Judge) -> None:
    """Put the places of the stream into our coordinates, if they are found to be in others."""
    if _first_and_writers(judge) and not _settled(judge, _beside_what_is_shown):
        _settled(judge, _beside_the_tokens)


def _settled(judge: Judge, rows_of: Callable[[Judge], Rows]) -> bool:
    """Return whether the coordinates of the stream are found, and go over to ours."""
    model = judge.model
    if _mostly_ours(judge, rows := rows_of(judge)):
        return True
    if _may_be_centred(model):
        if _rotated(judge, rows):
            return True
        judge.use(centred_writers(model), rewritten=True)
        if _mostly_ours(judge, rows := rows_of(judge)):
            judge.gauges.append(Gauge("resid_pre.0", CENTRED))
            return True
    found = _rotated(judge, rows)
    if not found:
        judge.use(model, rewritten=False)
    elif _may_be_centred(model):
        judge.gauges.append(Gauge("resid_pre.0", CENTRED))
    return found


def _mostly_ours(judge: Judge, rows: Rows) -> bool:
    """Return whether in most pairs the rows are ours, but for rounding and a constant row."""
    agreeing = sum(_misfit(ours, shown) < _slack(judge, place) for place, ours, shown in rows)
    return agreeing * 2 > len(rows)


def _misfit(ours: Array, shown: Array) -> float:
    if not np.isfinite(shown).all():
        return float("inf")
    return float(norm(ours - shown) / (norm(ours) + 1e-300))


def _slack(judge: Judge, place: str) -> float:
    """Return what rounding may make of a misfit: of the stream's width, and of a coarser place."""
    shown = [prompt.places[place] for prompt in judge.prompts]
    size = norm([norm(near.value) for near in shown]) + 1e-300
    coarser = norm([norm(near.error) for near in shown]) / size
    return float(300 * judge.unit * np.sqrt(judge.model.d_model) + 16 * coarser)


def _beside_what_is_shown(judge: Judge) -> Rows:
    """Return the shown places of the stream that are computed from nothing of the stream."""
    before = {"attn_out": "z", "mlp_out": "mlp_post"}
    shown = judge.prompts[0].places
    found = []
    for place in _first_and_writers(judge):
        kind = kind_of(place)
        if kind not in WRITERS or place.replace(kind, before[kind]) in shown:
            found.append(_rows(judge, place, [near.value for near in judge.nearly(place)]))
    return found


def _beside_the_tokens(judge: Judge) -> Rows:
    """Return shown places of the stream with what a pass from the tokens has there.

    Up to where products between rows are not ours: after a mistake that is so in any coordinates.
    """
    passes = [
        Evaluator(judge.model, prompt.tokens, {}, parts=judge.parts) for prompt in judge.prompts
    ]
    found: Rows = []
    for place in _first_and_writers(judge):
        row = _rows(judge, place, [each.near(place).value for each in passes])
        if not _same_products(judge, row):
            break
        found.append(row)
        for each in passes:
            each.forget(layer_of(place) or 0)
    return found


def _same_products(judge: Judge, row: tuple[str, Array, Array]) -> bool:
    """Return whether products between shown rows are ours, as no orthogonal matrix changes them.

    Rows that are off by a share of their size have products that are off by twice as much.
    """
    ours, shown = row[1][:ROWS], row[2][:ROWS]
    if not np.isfinite(shown).all():
        return False
    slack = _slack(judge, row[0])
    return bool(norm(ours @ ours.T - shown @ shown.T) < slack * (2.1 + slack) * norm(ours) ** 2)


def _first_and_writers(judge: Judge) -> list[str]:
    shown = judge.prompts[0].places
    first = [place for place in ("embed", "resid_pre.0") if place in shown][:1]
    return first + [place for place in judge.places if kind_of(place) in WRITERS]


def centred_writers(model: Model) -> Model:
    """Return the model whose stream has mean zero at every position, which no LayerNorm sees.

    Of a post-norm model: the one whose parts write rows of mean zero, which the norms make so.
    """
    ends = () if model.config.post_norm else ("W_E", "W_pos")  # read before the first norm
    names = [
        name
        for name in (*ends, "W_O", "b_O", "W_out", "b_out")
        if name in model.weights and (name != "W_pos" or model.config.positions == "learned")
    ]
    changed = {}
    if model.config.tied:
        changed["W_U"] = model.part("W_E").T
    for name in names:
        whole = np.asarray(model.weights[name], dtype=np.float64)
        changed[name] = whole - whole.mean(axis=-1, keepdims=True)
    return model.changed(changed, replace(model.config, tied=False))


def _may_be_centred(model: Model) -> bool:
    config = model.config
    return config.norm == "layer" and (config.final_norm or config.post_norm)


def _rotated(judge: Judge, pairs: Rows) -> bool:
    """Fit one orthogonal matrix on all pairs, dropping those that do not join in; judge by it."""
    rows = [row for row in pairs if _same_products(judge, row)]
    while len(rows) * 2 > len(pairs):
        slack = [_slack(judge, place) for place, _, _ in rows]
        rotation = _fit([ours for _, ours, _ in rows], [shown for _, _, shown in rows], slack)
        misfits = {place: _misfit(ours @ rotation, shown) for place, ours, shown in rows}
        worst = max(misfits, key=lambda place: misfits[place])
        if misfits[worst] < _slack(judge, worst):
            exact = _signed_permutation(rotation)
            if judge.model.config.post_norm and not _passes_norms(judge.model, exact):
                return False
            turn = rotation if exact is None else exact
            judge.show([_turned_back(p.places, turn, judge) for p in judge.prompts])
            judge.gauges.append(Gauge("resid_pre.0", ROTATED if exact is None else PERMUTED))
            return True
        rows = [row for row in rows if row[0] != worst]
    return False


def _signed_permutation(rotation: Array) -> Array | None:
    """Return the signed permutation that a fitted matrix is but for rounding, if it is one."""
    # Of centred rows the fit leaves open which way the row of ones is turned.
    for each in (rotation, rotation - 2 * rotation.mean(axis=0)):
        snapped = np.round(each)
        if np.abs(each - snapped).max() < 1e-3 and (np.abs(snapped).sum(0) == 1).all():
            return snapped
    return None


def _passes_norms(model: Model, exact: Array | None) -> bool:
    """Return whether the norm of turned rows is the norm turned, as a stream of norms needs it.

    Features in another order are, and with other signs where no mean is subtracted.
    """
    if exact is None:
        return False
    return model.config.norm == "rms" or bool((exact.sum(axis=0) == exact.sum() / len(exact)).all())


def _rows(judge: Judge, place: str, values: list[Array]) -> tuple[str, Array, Array]:
    """Return our rows and the shown ones, off their means: constants need no rotation to agree."""
    ours = np.concatenate(values)
    shown = np.concatenate([prompt.places[place].value for prompt in judge.prompts])
    if kind_of(place) in WRITERS:
        ours, shown = ours - ours.mean(0), shown - shown.mean(0)
    return place, ours, shown


def _fit(ours: list[Array], shown: list[Array], slack: list[float]) -> Array:
    """Return the orthogonal matrix that takes our rows to the shown ones.

    Rows are scaled alike first, and count for less where they may be farther off. The polar factor
    of the product of both squares the condition number; two steps of least squares from there do
    not.
    """
    scale = [min(slack) / each / (norm(a) + 1e-300) for a, each in zip(ours, slack, strict=True)]
    a = np.concatenate([s * rows for s, rows in zip(scale, ours, strict=True)])
    b = np.concatenate([s * rows for s, rows in zip(scale, shown, strict=True)])
    rotation = _polar(a.T @ b)
    for _ in range(2):
        step = lstsq(a @ rotation, b - a @ rotation, rcond=1e-12)[0]
        rotation = _polar(rotation + rotation @ step)
    return rotation


def _polar(matrix: Array) -> Array:
    left, _, right = svd(matrix)
    return np.asarray(left @ right)


def _turned_back(places: Mapping[str, Near], rotation: Array, judge: Judge) -> dict[str, Near]:
    """Return the places with those of the stream turned back, and the error that this makes."""
    turned = {}
    for name, near in places.items():
        if kind_of(name) not in (*STREAM, *NORMED):
            turned[name] = near
            continue
        value = near.value @ rotation.T
        size = norm(near.value, axis=-1, keepdims=True)
        carried = norm(near.error, axis=-1, keepdims=True)
        error = carried + 6 * judge.unit * size
        turned[name] = Near(value, np.broadcast_to(error, value.shape))
    return turned
