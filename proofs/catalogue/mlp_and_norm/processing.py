"""Chapter 4: the functions that rewrite a model, each with the theorem that makes it right.

A deep model is not compared end to end, where no rounding bound is of use, but place by place: from
the same recorded stream every reader of the new model must give what the old one gives, and every
writer must write what it wrote, or that centred. The old model is read in plain loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import exp, fsum, sqrt
from typing import Any, NamedTuple

import numpy as np

from otimes.numeric import processing
from otimes.numeric.model import Model
from otimes.numeric.rounding.functions import normalised, softmax
from otimes.numeric.rounding.linear import Near, linear
from otimes.numeric.rounding.precision import gamma, precision
from otimes.proofs.catalogue.sources import FRAMEWORK, PRESS_WOLF, ROLE_OF_BIAS, TRANSFORMER_LENS
from otimes.proofs.claims import Method, Trial
from otimes.proofs.theorem import theorem

NORMS = f"{FRAMEWORK}, “Handling layer normalization”"

DOUBLE = precision("float64")
Rewriting = Callable[[Model], Model]
Places = dict[str, np.ndarray]


class Reader(NamedTuple):
    """What reads a norm: from the stream at a place, through gain and bias, with W and b."""

    place: str
    name: str
    gain: np.ndarray
    shift: np.ndarray
    W: np.ndarray
    b: np.ndarray


def _readers(model: Model) -> Iterator[Reader]:
    """Yield everything that reads a norm; the heads of a layer side by side."""
    for number in range(model.n_layers):
        layer = model.layer(number)
        for letter in "QKV":
            W = np.concatenate(list(getattr(layer, f"W_{letter}")), axis=1)
            b = getattr(layer, f"b_{letter}").reshape(-1)
            place = f"resid_pre.{number}"
            yield Reader(place, f"W_{letter}", layer.ln1_gain, layer.ln1_bias, W, b)
        if model.config.d_mlp:
            place = f"resid_pre.{number}" if model.config.parallel else f"resid_mid.{number}"
            for name in ("in", "gate") if model.config.gated else ("in",):
                W, b = getattr(layer, f"W_{name}"), getattr(layer, f"b_{name}")
                yield Reader(place, f"W_{name}", layer.ln2_gain, layer.ln2_bias, W, b)
    if model.config.final_norm:
        gain, shift = model.ln_final_gain, model.ln_final_bias
        yield Reader("final", "W_U", gain, shift, model.W_U, model.b_U)


def _normalised(model: Model, row: np.ndarray, reader: Reader) -> Near:
    rows, config = Near.exactly(row[None]), model.config
    gain = Near.exactly(reader.gain)
    return normalised(rows, config.norm, config.norm_eps, gain, reader.shift, DOUBLE)


def _by_loops(model: Model, row: np.ndarray, reader: Reader) -> np.ndarray:
    """Return what a reader makes of one row of the stream."""
    mean = fsum(row) / len(row) if model.config.norm == "layer" else 0.0
    spread = sqrt(fsum((x - mean) ** 2 for x in row) / len(row) + model.config.norm_eps)
    rest = zip(row, reader.gain, reader.shift, strict=True)
    normed = [(x - mean) / spread * gain + shift for x, gain, shift in rest]
    return _product_by_loops(normed, reader.W, reader.b)


def _product_by_loops(row: Any, W: np.ndarray, b: np.ndarray) -> np.ndarray:
    columns = zip(W.T.tolist(), b.tolist(), strict=True)
    entries = [x * 1.0 for x in row]
    return np.array(
        [
            fsum([bias, *(x * w for x, w in zip(entries, column, strict=True))])
            for column, bias in columns
        ]
    )


def _is(what: str, found: Any, expected: float) -> Trial:
    """Return whether every number of the new model is what it was to become, exactly."""
    found = np.asarray(found, dtype=np.float64)
    return Trial(what, found, np.full_like(found, expected), np.zeros_like(found))


def _of_norms(model: Model, what: str) -> np.ndarray:
    """Return the gains or the biases of all norms, one after the other."""
    norms = ["ln1", *(["ln2"] if model.config.d_mlp else [])]
    norms += ["ln_final"] if model.config.final_norm else []
    return np.concatenate([np.ravel(getattr(model, f"{norm}_{what}")) for norm in norms])


READERS = ("W_Q", "W_K", "W_V", "W_in", "W_gate", "W_U")
READ_BIASES = ("b_Q", "b_K", "b_V", "b_in", "b_gate", "b_U")
WRITERS = ("W_E", "W_pos", "W_O", "b_O", "W_out", "b_out")


def _rest_is_kept(old: Model, new: Model, *but: str) -> Iterator[Trial]:
    """Yield whether all weights but those that a rewriting is about are what they were."""
    names = sorted(new.weights.keys() & old.weights.keys() - {*but})
    found, before = (
        np.concatenate([np.ravel(getattr(model, name)) for name in names]) for model in (new, old)
    )
    yield Trial("all other weights", found, before, 0.0)


def _without_mean(what: str, centred: np.ndarray, before: np.ndarray, axis: int) -> Trial:
    """Return whether an array is what it was, less its means along an axis."""
    count, lines = before.shape[axis], np.moveaxis(before, axis, -1)
    means = np.array([fsum(line) / count for line in lines.reshape(-1, count).tolist()])
    plain = np.moveaxis(lines - means.reshape(lines.shape[:-1])[..., None], -1, axis)
    size = np.abs(before) + np.abs(before).mean(axis, keepdims=True)
    return Trial(what, centred, plain, gamma(count + 4, 2**-53) * size)


def _biases_are_gone(old: Model, new: Model) -> Iterator[Trial]:
    yield _is("biases of norms", _of_norms(new, "bias"), 0.0)
    yield from _rest_is_kept(old, new, *READ_BIASES, "ln1_bias", "ln2_bias", "ln_final_bias")


def _gains_are_one(old: Model, new: Model) -> Iterator[Trial]:
    yield _is("gains of norms", _of_norms(new, "gain"), 1.0)
    yield from _rest_is_kept(old, new, *READERS, "ln1_gain", "ln2_gain", "ln_final_gain")


def _readers_are_centred(old: Model, new: Model) -> Iterator[Trial]:
    for before, reader in zip(_readers(old), _readers(new), strict=True):
        what = f"{reader.name} reading {reader.place}"
        yield _without_mean(what, reader.W, before.W, axis=0)
    yield from _rest_is_kept(old, new, *READERS)


def _reads_alike(
    rewritten: Rewriting,
    before: Rewriting,
    done: Callable[[Model, Model], Iterator[Trial]],
    model: Model,
    tokens: Sequence[int],
    norms: tuple[str, ...] = ("layer",),
) -> Iterator[Trial]:
    """Yield what each reader of the rewritten model gives, beside that of the old one in loops.

    And that the rewriting was `done`: a function that changes nothing keeps all readings.
    """
    if model.config.norm not in norms:
        return
    model = before(model)
    new, places = rewritten(model), model.forward(tokens)
    yield from done(model, new)
    for old_reader, reader in zip(_readers(model), _readers(new), strict=True):
        row = places[reader.place][-1]
        # What is folded or centred is rounded: a sum of d products, a few more for a mean.
        W, few = (
            np.abs(old_reader.W) * np.abs(old_reader.gain)[:, None],
            gamma(len(row) + 4, 2**-53),
        )
        doubt = few * (W + W.mean(axis=0))
        moved = few * (np.abs(old_reader.shift) @ np.abs(old_reader.W) + np.abs(old_reader.b))
        now = linear(_normalised(new, row, reader), Near(reader.W, doubt), reader.b, DOUBLE)
        then = linear(
            _normalised(model, row, old_reader), Near.exactly(old_reader.W), old_reader.b, DOUBLE
        )
        yield Trial(
            f"{reader.name} reading {reader.place}",
            now.value[0],
            _by_loops(model, row, old_reader),
            now.error[0] + then.error[0] + moved,
        )


def _same(model: Model) -> Model:
    return model


def _without_norm_biases(model: Model) -> Model:
    return processing.fold_norm_biases(model)


def _without_gains(model: Model) -> Model:
    return processing.fold_norm_gains(processing.fold_norm_biases(model))


@theorem(
    title="fold_norm_biases: the bias of each norm moves into the weights that read it",
    chapter=4,
    source=f"{NORMS}; {TRANSFORMER_LENS}",
    covers=("S0-03", "S2-06"),
)
def fold_norm_biases_is_right() -> Method:
    """The function `fold_norm_biases` moves the bias β of each norm into the weights W that read
    it, as βW in their biases, and sets β to zero. For the same stream all queries, keys, values,
    neurons and logits stay what they were; a reader without a bias gets one.

    It is the first step of simplifying a model before its weights are read, and rests on
    `norm_gain_and_bias_fold`.
    """
    return Method(
        "otimes.numeric.processing.fold_norm_biases",
        ("norm_gain_and_bias_fold",),
        partial(_reads_alike, processing.fold_norm_biases, _same, _biases_are_gone),
    )


@theorem(
    title="fold_norm_gains: the gain of each norm moves into the weights that read it",
    chapter=4,
    source=f"{NORMS}; {TRANSFORMER_LENS}",
    covers=("S0-03",),
)
def fold_norm_gains_is_right() -> Method:
    """The function `fold_norm_gains` moves the gain γ of each norm into the weights that read it: W
    becomes diag(γ) W and the gain becomes one.

    Norm biases must have been folded before, since behind a gain of one they would be multiplied by
    the wrong weights. A model with tied embeddings is untied, because only one of the two uses of
    the matrix stands behind the norm.
    """
    return Method(
        "otimes.numeric.processing.fold_norm_gains",
        ("norm_gain_and_bias_fold", "norm_gain_is_diagonal", "tied_unembedding_is_transpose"),
        partial(
            _reads_alike,
            processing.fold_norm_gains,
            _without_norm_biases,
            _gains_are_one,
            norms=("layer", "rms"),
        ),
    )


@theorem(
    title="centre_readers: the weights that read a LayerNorm subtract the mean",
    chapter=4,
    source=TRANSFORMER_LENS,
    covers=("S0-05",),
)
def centre_readers_is_right() -> Method:
    """The function `centre_readers` replaces each matrix W that reads a LayerNorm by PW, whose
    columns sum to zero. What it reads has mean zero, so the result is the same. This removes a part
    of the weights that has no effect (`centring_folds_into_readers`).

    It requires folded gains and is refused otherwise.
    """
    return Method(
        "otimes.numeric.processing.centre_readers",
        ("centring_folds_into_readers", "centred_readers_need_folded_gain"),
        partial(_reads_alike, processing.centre_readers, _without_gains, _readers_are_centred),
    )


# -- writers ---------------------------------------------------------------------------------------


class Writer(NamedTuple):
    """What writes to the stream: W on some rows that were recorded, and b."""

    name: str
    rows: np.ndarray
    W: np.ndarray
    b: np.ndarray


def _writers(model: Model, places: Places, tokens: Sequence[int]) -> Iterator[Writer]:
    """Yield all that writes to the last position; the heads of a layer as one."""
    last, none = len(tokens) - 1, np.zeros(model.d_model)
    yield Writer("W_E", np.ones((1, 1)), model.W_E[[tokens[last]]], none)
    if model.config.positions == "learned":
        yield Writer("W_pos", np.ones((1, 1)), model.W_pos[[last]], none)
    for number in range(model.n_layers):
        layer = model.layer(number)
        z, W_O = places[f"z.{number}"][:, last].reshape(1, -1), np.concatenate(list(layer.W_O))
        yield Writer(f"W_O of layer {number}", z, W_O, layer.b_O)
        if model.config.d_mlp:
            post = places[f"mlp_post.{number}"][[last]]
            yield Writer(f"W_out of layer {number}", post, layer.W_out, layer.b_out)


def _writes_centred(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
    if model.config.norm != "layer":
        return
    model = _without_norm_biases(model)
    new, places = processing.centre_writers(model), model.forward(tokens)
    yield from _rest_is_kept(model, new, *WRITERS)
    for name in sorted({*WRITERS} & model.weights.keys()):
        yield _without_mean(name, getattr(new, name), getattr(model, name), axis=-1)
    pairs = zip(_writers(model, places, tokens), _writers(new, places, tokens), strict=True)
    for old, now in pairs:
        few = gamma(model.d_model + 4, 2**-53)
        spread = np.abs(old.W) + np.abs(old.W).mean(axis=1, keepdims=True)
        found = linear(Near.exactly(now.rows), Near(now.W, few * spread), now.b, DOUBLE)
        plain = _product_by_loops(old.rows[0], old.W, old.b)
        size = np.abs(old.rows[0]) @ np.abs(old.W) + np.abs(old.b)
        bound = found.error[0] + few * (size + size.mean()) + few * np.abs(old.b).mean()
        yield Trial(f"{now.name} writes", found.value[0], plain - fsum(plain) / len(plain), bound)
    # The norm of the new model, on what is now a stream without a mean.
    old_reader, reader = (list(_readers(each))[-1] for each in (model, new))
    row = places["final"][-1]
    centred = row - row.mean()
    doubt = np.full_like(row, gamma(len(row) + 2, 2**-53) * np.abs(row).mean())
    rows = Near(centred[None], (doubt + 2**-53 * np.abs(centred))[None])
    near = normalised(
        rows, "rms", new.config.norm_eps, Near.exactly(reader.gain), reader.shift, DOUBLE
    )
    now_read = linear(near, Near.exactly(reader.W), reader.b, DOUBLE)
    then = _normalised(model, row, old_reader)
    then_read = linear(then, Near.exactly(old_reader.W), old_reader.b, DOUBLE)
    yield Trial(
        "logits behind RMSNorm, of the centred stream",
        now_read.value[0],
        _by_loops(model, row, old_reader),
        now_read.error[0] + then_read.error[0],
    )


@theorem(
    title="centre_writers: LayerNorm becomes RMSNorm",
    chapter=4,
    source=TRANSFORMER_LENS,
    covers=("S0-05",),
)
def centre_writers_is_right() -> Method:
    """The function `centre_writers` turns LayerNorm into RMSNorm: each matrix W that writes to the
    stream becomes WP, biases and position vectors included, so the stream of the new model is the
    centred stream of the old one (`centring_folds_into_writers`).

    It is the step after which all norms of a model only rescale.
    """
    return Method(
        "otimes.numeric.processing.centre_writers",
        (
            "centring_folds_into_writers",
            "centred_writers_keep_mean_zero",
            "layer_norm_is_rms_norm_of_centred",
        ),
        _writes_centred,
    )


# -- attention -------------------------------------------------------------------------------------


def _value_biases_folded(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
    if "b_V" not in model.config.biases:
        return
    new, places = processing.fold_value_biases(model), model.forward(tokens)
    yield _is("value biases", new.b_V, 0.0)
    yield from _rest_is_kept(model, new, "b_V", "b_O")
    for number in range(model.n_layers):
        layer, other = model.layer(number), new.layer(number)
        read = places.get(f"ln1.{number}", places[f"resid_pre.{number}"])
        weights = places[f"pattern.{number}"][:, -1]
        written, plain = other.b_O.copy(), layer.b_O.copy()
        size, short = np.abs(layer.b_O), np.zeros(model.d_model)
        for head in range(model.n_heads):
            a, W_V, W_O = weights[head], other.W_V[head], other.W_O[head]
            written = written + a @ (read @ W_V) @ W_O
            values = [_product_by_loops(row, layer.W_V[head], layer.b_V[head]) for row in read]
            z = [
                fsum(x * v for x, v in zip(a, column, strict=True))
                for column in np.transpose(values)
            ]
            plain = plain + _product_by_loops(z, layer.W_O[head], np.zeros(model.d_model))
            constant = np.abs(layer.b_V[head]) @ np.abs(layer.W_O[head])
            size = size + a @ (np.abs(read) @ np.abs(W_V)) @ np.abs(W_O) + constant
            short = short + abs(fsum(a) - 1) * constant  # a row sums to one but for rounding
        products = len(tokens) + 2 * model.d_model + model.n_heads * model.d_head + 8
        bound = 2 * gamma(products, 2**-53) * size + short
        yield Trial(f"attn_out.{number}, last position", written, plain, bound)


@theorem(
    title="fold_value_biases: what the value biases add at every position moves into b_O",
    chapter=4,
    source=TRANSFORMER_LENS,
    covers=("S0-07",),
)
def fold_value_biases_is_right() -> Method:
    """The function `fold_value_biases` moves what the value biases add at every position into the
    output bias: the new b_O is b_O + Σ_h b_V W_O, and the value biases are zero. Each attention
    layer writes the same as before (`value_biases_fold_into_output_bias`).

    Afterwards all constants of an attention layer are in one vector.
    """
    return Method(
        "otimes.numeric.processing.fold_value_biases",
        ("value_biases_fold_into_output_bias", "value_bias_passes_through"),
        _value_biases_folded,
    )


def _softmax_by_loops(scores: Sequence[float]) -> np.ndarray:
    highest = max(scores)
    weights = [exp(score - highest) for score in scores]
    return np.array(weights) / fsum(weights)


def _key_biases_dropped(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
    if "b_K" not in model.config.biases or model.config.positions == "rotary":
        return
    new, places = processing.drop_key_biases(model), model.forward(tokens)
    yield _is("key biases", new.b_K, 0.0)
    yield from _rest_is_kept(model, new, "b_K")
    for number in range(model.n_layers):
        layer, read = new.layer(number), places[f"qk_in.{number}"]
        for head in range(model.n_heads):
            q = Near.exactly(places[f"q.{number}"][head, [-1]] / sqrt(model.d_head))
            k = linear(Near.exactly(read), Near.exactly(layer.W_K[head]), layer.b_K[head], DOUBLE)
            scores = linear(q, Near(k.value.T, k.error.T), None, DOUBLE)
            found = softmax(scores, np.ones(scores.value.shape, dtype=bool), DOUBLE)
            keys = places[f"k.{number}"][head]
            plain = [fsum(x * y for x, y in zip(q.value[0], key, strict=True)) for key in keys]
            # The recorded keys were rounded with their bias in them.
            size = np.abs(read) @ np.abs(layer.W_K[head]) + np.abs(model.b_K[number, head])
            wrong = gamma(model.d_model + 3, 2**-53) * (np.abs(q.value) @ size.T)
            near = Near(np.array([plain]), wrong + 2**-53 * np.abs(plain))
            then = softmax(near, np.ones(wrong.shape, dtype=bool), DOUBLE)
            yield Trial(
                f"pattern.{number}, head {head}, last position",
                found.value[0],
                _softmax_by_loops(plain),
                found.error[0] + then.error[0],
            )


@theorem(
    title="drop_key_biases: the model is unchanged without them",
    chapter=4,
    source=ROLE_OF_BIAS,
    covers=("S0-08",),
)
def drop_key_biases_is_right() -> Method:
    """The function `drop_key_biases` sets all key biases to zero. Every score of a query changes by
    the same number, so all patterns and outputs stay as they are (`key_bias_is_irrelevant`).

    Models with rotary positions are refused, unless the biases are zero wherever they would be
    rotated.
    """
    return Method(
        "otimes.numeric.processing.drop_key_biases",
        ("key_bias_is_irrelevant", "key_bias_matters_when_turned"),
        _key_biases_dropped,
    )


# -- the unembedding -------------------------------------------------------------------------------


def _unembedding(
    rewritten: Rewriting, probabilities: bool, model: Model, tokens: Sequence[int]
) -> Iterator[Trial]:
    """Yield logits or probabilities at the last position, from what the unembedding reads."""
    new, places = rewritten(model), model.forward(tokens)
    yield _is("tied", new.config.tied, 0.0)
    yield from _rest_is_kept(model, new, "W_U", "b_U")
    if probabilities:
        yield _without_mean("W_U", new.W_U, model.W_U, axis=1)
        yield _without_mean("b_U", new.b_U, model.b_U, axis=0)
    row = Near.exactly(places.get("ln_final", places["final"])[[-1]])
    old = model.W_E.T if model.config.tied else model.W_U
    doubt = gamma(model.d_vocab + 2, 2**-53) * (np.abs(old) + np.abs(old).mean(axis=1)[:, None])
    now = linear(row, Near(new.W_U, doubt), new.b_U, DOUBLE)
    then = linear(row, Near.exactly(old), model.b_U, DOUBLE)
    plain = _product_by_loops(row.value[0], old, model.b_U)
    if probabilities:
        seen = np.ones(now.value.shape, dtype=bool)
        wrong = gamma(model.d_vocab + 2, 2**-53) * (np.abs(model.b_U) + np.abs(model.b_U).mean())
        now = softmax(Near(now.value, now.error + wrong), seen, DOUBLE)
        then, plain = softmax(then, seen, DOUBLE), _softmax_by_loops(plain.tolist())
    what = "probabilities" if probabilities else "logits"
    yield Trial(f"{what}, last position", now.value[0], plain, now.error[0] + then.error[0])


@theorem(
    title="centre_unembedding: probabilities are unchanged",
    chapter=4,
    source=TRANSFORMER_LENS,
)
def centre_unembedding_is_right() -> Method:
    """The function `centre_unembedding` subtracts from each row of W_U, and from b_U, its mean over
    the vocabulary. All logits of a position change by the same number, so every probability stays
    as it is (`centred_unembedding_keeps_probabilities`).

    The logits themselves change.
    """
    return Method(
        "otimes.numeric.processing.centre_unembedding",
        ("centred_unembedding_keeps_probabilities", "centred_unembedding_changes_logits"),
        partial(_unembedding, processing.centre_unembedding, True),
    )


@theorem(
    title="untie: the embedding and the unembedding become two matrices",
    chapter=4,
    source=PRESS_WOLF,
)
def untie_is_right() -> Method:
    """The function `untie` gives a model with tied embeddings a separate unembedding matrix, the
    transpose of W_E. Afterwards each of the two can be changed without the other, which folding and
    centring require.

    Nothing else is computed, so logits differ at most by the order in which numbers are added.
    """
    return Method(
        "otimes.numeric.processing.untie",
        ("tied_unembedding_is_transpose",),
        partial(_unembedding, processing.untie, False),
    )
