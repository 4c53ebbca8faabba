"""Rewrites of the residual stream: centred, or rotated.

In a post-norm model, whose stream is normalised, fewer coordinates give the same function: outputs
of attention and MLP may be centred, and features permuted.

The coordinates are found before anything is judged, from activations that need none of the stream:
the embedding of the tokens, and the outputs of attention and MLP computed from the recorded z and
`mlp_post`. If most of these differ from the reference, the stream may be *centred* (the mean of all
that is written to it is subtracted, which LayerNorm cancels), or *rotated*: the inner products of
rows are right, and one orthogonal matrix, fitted to all rows, maps the reference to the recording.

Heads and neurons may be in other coordinates too. Then the activations of a pass from the tokens
are used instead, up to the first one whose rows have other inner products.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.linalg import lstsq, norm, svd

from otimes.numeric.audit.findings import Gauge
from otimes.numeric.audit.reference.comparison import Comparison, with_model
from otimes.numeric.audit.reference.evaluator import layer_of
from otimes.numeric.block import kind_of
from otimes.numeric.model import Model
from otimes.numeric.rounding.linear import Array, Near

STREAM = (
    *("embed", "resid_pre", "head_out", "attn_out"),
    *("resid_mid", "mlp_out", "resid_post", "final"),
)
NORMED = ("ln_embed", "ln1", "ln1_post", "ln2", "ln2_post", "ln_final", "qk_in")
WRITERS = ("attn_out", "mlp_out")
CENTRED = "the residual stream is centred"
ROTATED = "the residual stream is rotated"
PERMUTED = "the features of the residual stream are permuted, or have other signs"

ROWS = 512
"""Inner products of at most this many rows are compared."""

Rows = list[tuple[str, Array, Array]]
"""Hook points of the stream, with the rows of the reference and the recorded ones."""


def align_stream(compared: Comparison) -> Comparison:
    """Return the comparison with the residual stream in the coordinates of the reference."""
    if not _first_and_writers(compared):
        return compared
    found = _settled(compared, _beside_what_is_shown) or _settled(compared, _beside_the_tokens)
    return found or compared


def _settled(compared: Comparison, rows_of: Callable[[Comparison], Rows]) -> Comparison | None:
    """Return the comparison in the coordinates of the reference, None if they are not found."""
    if _mostly_ours(compared, rows := rows_of(compared)):
        return compared
    found = _rotated(compared, rows)
    if found or not _may_be_centred(compared.model):
        return found
    found = with_model(compared, centred_writers(compared.model))
    if not _mostly_ours(found, rows := rows_of(found)):
        found = _rotated(found, rows)
    if found is None:
        return None
    return replace(found, gauges=(*found.gauges, Gauge("resid_pre.0", CENTRED)))


def _mostly_ours(compared: Comparison, rows: Rows) -> bool:
    """Return whether most rows agree with the reference, up to rounding and a constant row."""
    agreeing = sum(_misfit(ours, shown) < _slack(compared, place) for place, ours, shown in rows)
    return agreeing * 2 > len(rows)


def _misfit(ours: Array, shown: Array) -> float:
    if not np.isfinite(shown).all():
        return float("inf")
    return float(norm(ours - shown) / (norm(ours) + 1e-300))


def _slack(compared: Comparison, place: str) -> float:
    """Return the misfit that rounding allows, by the width of the stream and the precision."""
    shown = [prompt.places[place] for prompt in compared.prompts]
    size = norm([norm(near.value) for near in shown]) + 1e-300
    coarser = norm([norm(near.error) for near in shown]) / size
    return float(300 * compared.unit * np.sqrt(compared.model.d_model) + 16 * coarser)


def _beside_what_is_shown(compared: Comparison) -> Rows:
    """Return the recorded activations of the stream that are not computed from the stream."""
    before = {"attn_out": "z", "mlp_out": "mlp_post"}
    shown = compared.recorded
    found = []
    for place in _first_and_writers(compared):
        kind = kind_of(place)
        if kind not in WRITERS or place.replace(kind, before[kind]) in shown:
            found.append(_rows(compared, place, [near.value for near in compared.nearly(place)]))
    return found


def _beside_the_tokens(compared: Comparison) -> Rows:
    """Return pairs of stream activations: those of a pass from the tokens, and the recorded ones.

    They stop where the inner products of rows differ: after a mistake, in whatever basis.
    """
    passes = compared.with_places([{} for _ in compared.prompts]).evaluators()
    found: Rows = []
    for place in _first_and_writers(compared):
        row = _rows(compared, place, [each.near(place).value for each in passes])
        if not _same_products(compared, row):
            break
        found.append(row)
        for each in passes:
            each.forget(layer_of(place) or 0)
    return found


def _same_products(compared: Comparison, row: tuple[str, Array, Array]) -> bool:
    """Return whether the inner products of rows agree, which no orthogonal matrix changes.

    A relative error of the rows is doubled in their products.
    """
    ours, shown = row[1][:ROWS], row[2][:ROWS]
    if not np.isfinite(shown).all():
        return False
    slack = _slack(compared, row[0])
    return bool(norm(ours @ ours.T - shown @ shown.T) < slack * (2.1 + slack) * norm(ours) ** 2)


def _first_and_writers(compared: Comparison) -> list[str]:
    shown = compared.recorded
    first = [place for place in ("embed", "resid_pre.0") if place in shown][:1]
    return first + [place for place in compared.places if kind_of(place) in WRITERS]


def centred_writers(model: Model) -> Model:
    """Return the model whose stream has mean zero at every position, which LayerNorm cancels.

    In a post-norm model the outputs of attention and MLP have mean zero.
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


def _rotated(compared: Comparison, pairs: Rows) -> Comparison | None:
    """Return the comparison under an orthogonal matrix fitted to all pairs but outliers, if any."""
    rows = [row for row in pairs if _same_products(compared, row)]
    while len(rows) * 2 > len(pairs):
        slack = [_slack(compared, place) for place, _, _ in rows]
        rotation = _fit([ours for _, ours, _ in rows], [shown for _, _, shown in rows], slack)
        misfits = {place: _misfit(ours @ rotation, shown) for place, ours, shown in rows}
        worst = max(misfits, key=lambda place: misfits[place])
        if misfits[worst] < _slack(compared, worst):
            exact = _signed_permutation(rotation)
            if compared.model.config.post_norm and not _passes_norms(compared.model, exact):
                return None
            turn = rotation if exact is None else exact
            places = [_turned_back(p.places, turn, compared.unit) for p in compared.prompts]
            gauge = Gauge("resid_pre.0", ROTATED if exact is None else PERMUTED)
            return compared.with_places(places, gauge)
        rows = [row for row in rows if row[0] != worst]
    return None


def _signed_permutation(rotation: Array) -> Array | None:
    """Return the signed permutation nearest to a fitted matrix, if it is one up to rounding."""
    # For centred rows the sign of the vector of ones is not determined.
    for each in (rotation, rotation - 2 * rotation.mean(axis=0)):
        snapped = np.round(each)
        if np.abs(each - snapped).max() < 1e-3 and (np.abs(snapped).sum(0) == 1).all():
            return snapped
    return None


def _passes_norms(model: Model, exact: Array | None) -> bool:
    """Return whether norm and rotation commute, as a post-norm stream requires.

    Permutations do, and with other signs where no mean is subtracted.
    """
    if exact is None:
        return False
    return model.config.norm == "rms" or bool((exact.sum(axis=0) == exact.sum() / len(exact)).all())


def _rows(compared: Comparison, place: str, values: list[Array]) -> tuple[str, Array, Array]:
    """Return expected and recorded rows; from outputs of a layer the mean row is subtracted."""
    ours = np.concatenate(values)
    shown = np.concatenate([prompt.places[place].value for prompt in compared.prompts])
    if kind_of(place) in WRITERS:
        ours, shown = ours - ours.mean(0), shown - shown.mean(0)
    return place, ours, shown


def _fit(ours: list[Array], shown: list[Array], slack: list[float]) -> Array:
    """Return the orthogonal matrix that maps the rows of the reference to the recorded ones.

    Rows are weighted by their tolerance. The polar factor of the product of both squares the
    condition number; two refinement steps of least squares do not.
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


def _turned_back(places: Mapping[str, Near], rotation: Array, unit: float) -> dict[str, Near]:
    """Return the activations with the stream rotated back, and the error that this adds."""
    turned = {}
    for name, near in places.items():
        if kind_of(name) not in (*STREAM, *NORMED):
            turned[name] = near
            continue
        value = near.value @ rotation.T
        size = norm(near.value, axis=-1, keepdims=True)
        carried = norm(near.error, axis=-1, keepdims=True)
        error = carried + 6 * unit * size
        turned[name] = Near(value, np.broadcast_to(error, value.shape))
    return turned
