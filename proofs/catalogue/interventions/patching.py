"""Chapter 9: an activation of one prompt in the pass of another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sympy import (
    Identity,
    MatrixExpr,
    MatrixSymbol,
    Transpose,
    symbols,
)

from otimes.algebra.language.linear import HeadSum, matadd, matmul
from otimes.algebra.language.nonlinear import Activation
from otimes.numeric.binding import Source
from otimes.numeric.interventions.frozen import held
from otimes.numeric.interventions.hooks import hook
from otimes.numeric.interventions.passes import intervene
from otimes.numeric.interventions.patching import activation_patching
from otimes.numeric.model import Model
from otimes.numeric.rounding import LocalBounds, gamma
from otimes.proofs.catalogue.sources import PRIMER
from otimes.proofs.catalogue.symbols import H, V, X, d, h, heads, n
from otimes.proofs.claims import Definition, Method, NonIdentity, Statement, Trial
from otimes.proofs.theorem import theorem

INTERVENTIONS = f"{PRIMER}, “Causal Interventions”"
HEIMERSHEIM = "Heimersheim and Nanda 2024, “How to use and interpret activation patching”"
UNIT = 2.0**-53

other = MatrixSymbol("Y", n, d)  # the same stream on another prompt
chosen = MatrixSymbol("P", n, n)  # the positions that are replaced: a diagonal of ones and zeros
projector = ((matmul(chosen, chosen), chosen),)
rest = matadd(Identity(n), matmul(-1, chosen))
reader = MatrixSymbol("u", d, 1)
alpha = symbols("alpha", real=True)


def minus(first: Any, second: Any) -> Any:
    """Return the difference of two matrices."""
    return matadd(first, matmul(-1, second))


def patched(base: MatrixExpr, source: MatrixExpr) -> MatrixExpr:
    """Return a stream with the chosen positions of another one: P Y + (I - P) X."""
    return matadd(matmul(chosen, source), matmul(rest, base))


def frozen_layer(stream: MatrixExpr) -> MatrixExpr:
    """Return a layer of heads with the patterns kept: X + Σ_h A_h X W_V W_O."""
    moved = matmul(heads.A[h], stream, heads.row.W_V[h], heads.row.W_O[h])
    return matadd(stream, HeadSum(moved, (h, H)))


@theorem(
    title="A patched activation",
    chapter=9,
    convention="row",
    source=INTERVENTIONS,
    covers=("S3-047",),
)
def patched_activation() -> Definition:
    """Activation patching runs the model on one prompt (the base) with some activation replaced by
    its value on another prompt (the source), here at the positions that P selects: rows of Y there
    and rows of X elsewhere. Everything after it is computed anew.

    It measures which activations carry the information that differs between two prompts. It is an
    intervention, do(f = Y), which differs from looking at prompts where f happens to be Y.

    With a corrupt base and a clean source it is called denoising; the other way round it is
    noising.
    """

    def plain(P: Any, X: Any, Y: Any, n: int, d: int, **_: Any) -> list[list[Any]]:
        def entry(i: int, k: int) -> Any:
            there = sum(P[i][j] * Y[j][k] for j in range(n))
            return there + X[i][k] - sum(P[i][j] * X[j][k] for j in range(n))

        return [[entry(i, k) for k in range(d)] for i in range(n)]

    return Definition(
        "the stream of one prompt with some rows of another",
        patched(X, other),
        plain,
        on_models=False,
        obeys=("patching_with_own_value_changes_nothing", "patching_twice_is_patching_once"),
    )


@theorem(
    title="Patching with an activation's own value changes nothing",
    chapter=9,
    convention="row",
    source=INTERVENTIONS,
    covers=("S3-047", "S3-048"),
)
def patching_with_own_value_changes_nothing() -> Statement:
    """Replacing an activation by its own value changes nothing: if source and base are the same
    prompt, everything computed from the stream stays the same, for any function g. P selects the
    positions to be patched in the stream X.

    So it is a test of the hooks that should be run before any result of patching is believed.
    """
    return Statement(
        Activation("g", patched(X, X)),
        Activation("g", X),
        on_models=False,
    )


@theorem(
    title="Patching twice is patching once",
    chapter=9,
    convention="row",
    source=INTERVENTIONS,
    covers=("S3-047",),
)
def patching_twice_is_patching_once() -> Statement:
    """Patching the same positions twice from the same source is the same as patching once, since
    the selection P satisfies PP = P. If all positions are patched, nothing of the base is left. X
    is the stream of the base and Y that of the source.
    """
    return Statement(
        patched(patched(X, other), other),
        patched(X, other),
        given=projector,
        on_models=False,
    )


@theorem(
    title="With the patterns kept, patching is linear",
    chapter=9,
    convention="row",
    source=f"{INTERVENTIONS}; {HEIMERSHEIM}",
    covers=("S3-047", "S3-053"),
)
def patching_is_linear_with_frozen_patterns() -> Statement:
    """With attention patterns kept, moving an activation half of the way to its value on another
    prompt has half the effect of a full patch, and effects of patching several positions add up.
    The formula shows a layer of heads and a fraction α. X is the stream on one prompt, Y that on
    the other.

    What patching does to the patterns of later layers is not in this equation. That part makes
    patching results different from linear attributions.
    """
    mixed = matadd(matmul(1 - alpha, X), matmul(alpha, other))
    return Statement(
        frozen_layer(mixed),
        matadd(matmul(1 - alpha, frozen_layer(X)), matmul(alpha, frozen_layer(other))),
        bind=({"Y": Source("embed", example=True)},),
        places={"resid_mid": frozen_layer(X)},
    )


@theorem(
    title="Noising and denoising agree for a linear metric",
    chapter=9,
    convention="row",
    source=f"{INTERVENTIONS}; {HEIMERSHEIM}",
    covers=("S3-053",),
)
def noising_and_denoising_agree_when_linear() -> Statement:
    """Patching compares two runs of a model, a clean one that shows some behaviour and a corrupt
    one that does not, and moves activations from one to the other. For a linear model, what is lost
    by replacing a part of the clean run by the corrupt one (noising) equals what is gained by
    replacing that part of the corrupt run by the clean one (denoising). In the formula X is the
    clean and Y the corrupt stream, P selects positions, and u reads the metric.

    So the normalised scores (m − m_corrupt)/(m_clean − m_corrupt) of the two add up to one. Any
    disagreement between the two directions in a real model therefore measures nonlinearity
    (`noising_and_denoising_of_quadratic`).
    """

    def metric(stream: MatrixExpr) -> MatrixExpr:
        return matmul(frozen_layer(stream), reader)

    noised = minus(metric(patched(X, other)), metric(X))
    denoised = minus(metric(patched(other, X)), metric(other))
    return Statement(
        noised,
        matmul(-1, denoised),
        places={"resid_mid": frozen_layer(X)},
        bind=(
            {
                "Y": Source("attn_out", example=True),
                "P": Source("pattern", example=True),
                "u": Source("W_U", cols=1),
            },
        ),
        unchanged_by={
            "W_U with its columns shifted": "u reads any metric, of one token or another"
        },
    )


x, y, step = (MatrixSymbol(name, d, 1) for name in ("x", "y", "delta"))
quadric = MatrixSymbol("Q", d, d)


def _both(at: MatrixExpr) -> MatrixExpr:
    return matmul(Transpose(at), quadric, at)


@theorem(
    title="The difference of noising and denoising for a quadratic metric",
    chapter=9,
    source=HEIMERSHEIM,
    covers=("S3-053",),
)
def noising_and_denoising_of_quadratic() -> Statement:
    """If two parts of an input act together, noising (replacing a part of a clean input by a
    corrupt one) and denoising (the reverse) give different answers. For f(x) = xᵀQx with clean x,
    corrupt y and patched part δ of y − x, the two changes sum to −δᵀ(Q + Qᵀ)(y − x − δ): the
    patched part times the part that is not patched.

    For AND, noising makes either part look essential, and denoising makes neither look sufficient.
    For OR it is the other way round.
    """
    symmetric = matadd(quadric, Transpose(quadric))
    noised = minus(_both(matadd(x, step)), _both(x))
    denoised = minus(_both(minus(y, step)), _both(y))
    unpatched = minus(minus(y, x), step)
    return Statement(
        matadd(noised, denoised),
        matmul(-1, Transpose(step), symmetric, unpatched),
        on_models=False,
    )


@theorem(
    title="Noising and denoising of a product differ",
    chapter=9,
    source=HEIMERSHEIM,
    covers=("S3-053",),
)
def noising_is_not_denoising() -> NonIdentity:
    """What is lost by replacing a part of a clean input by a corrupt one (noising) is in general
    not what is gained by the reverse (denoising). A quadratic function xᵀQx, in which two parts act
    together, already shows it. Here x is clean, y corrupt, and δ the patched part of y − x.

    So a paper has to say in which direction it patches.
    """
    noised = minus(_both(matadd(x, step)), _both(x))
    denoised = minus(_both(minus(y, step)), _both(y))
    return NonIdentity(noised, matmul(-1, denoised))


first, second = (MatrixSymbol(name, d, 1) for name in ("delta_1", "delta_2"))


@theorem(
    title="The interaction of two interventions",
    chapter=9,
    source=f"{PRIMER}, “Circuit Analysis”, on its limits",
    covers=("S3-057",),
)
def interaction_of_interventions() -> Statement:
    """Two interventions made together can do more, or less, than the sum of what each does alone.
    For f(x) = xᵀQx + bx the difference is δ_1ᵀ(Q + Qᵀ)δ_2; for linear f it is zero. They add δ_1
    and δ_2 to x.

    A search that patches one component at a time cannot see interactions, so it can miss components
    that are backups of each other.
    """
    linear = MatrixSymbol("b", 1, d)

    def f(at: MatrixExpr) -> MatrixExpr:
        return matadd(_both(at), matmul(linear, at))

    together = minus(f(matadd(x, first, second)), f(x))
    apart = matadd(minus(f(matadd(x, first)), f(x)), minus(f(matadd(x, second)), f(x)))
    symmetric = matadd(quadric, Transpose(quadric))
    return Statement(
        minus(together, apart),
        matmul(Transpose(first), symmetric, second),
        on_models=False,
    )


@theorem(
    title="Self-repair: the change of a logit beyond the direct one",
    chapter=9,
    convention="row",
    source="McGrath et al. 2023, “The Hydra Effect”; Rushing and Nanda 2024, “Explorations of "
    "Self-Repair in Language Models”",
    covers=("S3-109",),
)
def compensation() -> Definition:
    """Self-repair is measured by the change of a logit beyond the direct one: the total change when
    a component is removed, (Y − X) W_U, minus the direct change −f W_U. X is the final stream, Y
    the final stream without the component, and f what it wrote.

    It is zero if later layers do not react. If the component promotes a token, a positive value for
    that token means that later layers make up for the loss.
    """
    written, W_U = MatrixSymbol("f", n, d), MatrixSymbol("W_U", d, V)

    def plain(X: Any, Y: Any, f: Any, W_U: Any, n: int, d: int, V: int, **_: Any) -> Any:
        def entry(i: int, w: int) -> Any:
            return sum((Y[i][k] - X[i][k] + f[i][k]) * W_U[k][w] for k in range(d))

        return [[entry(i, w) for w in range(V)] for i in range(n)]

    return Definition(
        "the change of a logit beyond the direct one",
        minus(matmul(minus(other, X), W_U), matmul(-1, written, W_U)),
        plain,
        on_models=False,
        obeys=("compensation_is_what_later_layers_add",),
    )


@theorem(
    title="Self-repair is the change of what later layers write",
    chapter=9,
    convention="row",
    source="McGrath et al. 2023, “The Hydra Effect”",
    covers=("S3-109",),
)
def compensation_is_what_later_layers_add() -> Statement:
    """What later layers write when a component is removed, minus what they write otherwise, is all
    of the self-repair. The final stream is E + f + R, what was there before, what the component
    wrote and what later layers wrote; without the component it is E + S. The change of a logit
    beyond −f u is (S − R) u.

    So it can be attributed to later heads and MLPs one by one.
    """
    before, written, after, again = (MatrixSymbol(name, n, d) for name in ("E", "f", "R", "S"))
    whole, without = matadd(before, written, after), matadd(before, again)
    change = matmul(minus(without, whole), reader)
    return Statement(
        minus(change, matmul(-1, written, reader)),
        matmul(minus(again, after), reader),
        on_models=False,
    )


def _places_are_right(
    local: LocalBounds, places: Mapping[str, np.ndarray], tokens: Sequence[int], but: set[str]
) -> Iterator[Trial]:
    """Yield each activation beside what the formula of its operation makes of those it reads."""
    recorded = {**places, "tokens": np.array(tokens)}
    for name in places:
        if name not in but:
            judged = local.place(name, recorded)
            yield Trial(name, places[name], judged.value, judged.bound)


def _scores_of_all_pairs(model: Model, places: Mapping[str, np.ndarray]) -> Iterator[Trial]:
    """Yield the scores of all pairs, those that are masked later included."""
    for layer in range(model.n_layers):
        q, k = places[f"q.{layer}"], places[f"k.{layer}"]
        plain = np.einsum("hik,hjk->hij", q, k) / np.sqrt(model.d_head)
        size = np.einsum("hik,hjk->hij", np.abs(q), np.abs(k)) / np.sqrt(model.d_head)
        there = np.isfinite(places[f"scores.{layer}"])
        bound = 2 * gamma(model.d_head + 4, UNIT) * size[there]
        yield Trial(f"scores.{layer}", places[f"scores.{layer}"][there], plain[there], bound)


@theorem(
    title="intervene: passes with replaced activations, by loops",
    chapter=9,
    convention="row",
    source=INTERVENTIONS,
    covers=("S3-047", "S3-048", "S3-049", "S3-050", "S3-051"),
)
def intervene_method() -> Method:
    """`ot.intervene` runs a model with some activations replaced: by zero, by a mean over prompts,
    by their value on another prompt, or with noise added. It is checked in attention-only models on
    the last layer, against sums of the recorded head outputs with one of them replaced, unembedded
    by loops.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if not model.config.bare or not model.n_layers:
            return
        layer, last = model.n_layers - 1, len(tokens) - 1
        changed = [(token + 1) % model.d_vocab for token in tokens]
        places, source = model.forward(tokens), model.forward(changed)
        name, head = f"head_out.{layer}", model.n_heads - 1
        noise = np.random.default_rng(9).standard_normal(places[name][head].shape)
        local = LocalBounds(model, "float64")
        replacements = {
            "zero": np.zeros_like(noise),
            "mean": (places[name][head] + source[name][head]) / 2,
            "resample": source[name][head],
            "noise": places[name][head] + noise,
        }
        for kind, new in replacements.items():
            by: Any = (lambda part: part + noise) if kind == "noise" else kind
            found = intervene(
                model,
                list(tokens),
                {hook(name, heads=head): by},
                source=changed,
                prompts=[list(tokens), changed],
            )
            yield from _places_are_right(local, found, tokens, {name, f"attn_out.{layer}"})
            if kind == "zero":
                yield from _scores_of_all_pairs(model, found)
            added = found[name].sum(axis=0)
            doubt = gamma(2 * model.d_model + 8, UNIT) * (np.abs(found[name]).sum(axis=0))
            yield Trial(f"{kind}, sum over heads", found[f"attn_out.{layer}"], added, doubt)
            plainly = np.array([*places[name][:head], new, *places[name][head + 1 :]])
            written = np.abs(places[f"z.{layer}"]) @ np.abs(model.W_O[layer])
            bound = 4 * gamma(model.d_head + 8, UNIT) * (written + np.abs(plainly))
            yield Trial(f"{kind}, {name}", found[name], plainly, bound)
            found = found["logits"][last, 3]
            rows = [*places[name][:head, last], new[last], *places[name][head + 1 :, last]]
            rows.append(places[f"resid_pre.{layer}"][last])
            column = model.W_U[:, 3]
            plain = sum(float(row[k] * column[k]) for row in rows for k in range(model.d_model))
            size = sum(np.abs(row) @ np.abs(column) for row in [*rows, *source[name][:, last]])
            count = (len(rows) + 4) * (model.d_model + 8)
            yield Trial(f"{kind} of head {layer}.{head}", found, plain, gamma(count, UNIT) * size)

    rests = ("patching_with_own_value_changes_nothing", "patching_twice_is_patching_once")
    return Method("ot.intervene", rests, trials)


@theorem(
    title="activation_patching: the normalised score in both directions",
    chapter=9,
    convention="row",
    source=f"{INTERVENTIONS}; {HEIMERSHEIM}",
    covers=("S3-053", "S3-047"),
)
def activation_patching_method() -> Method:
    """Activation patching replaces an activation of one run of a model by its value in another, and
    asks how far a metric m moves from the one to the other. `ot.activation_patching` gives the
    normalised score (m − m_corrupt)/(m_clean − m_corrupt) of patching each activation, in both
    directions. In a model without layers the score must be 1 at the last position and 0 elsewhere;
    in attention-only models the scores of the last layer's heads follow from their recorded
    outputs.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if not model.config.bare or not model.n_layers:
            return
        layer, last = model.n_layers - 1, len(tokens) - 1
        corrupt = [(token + 1) % model.d_vocab for token in tokens]
        ours, theirs = model.forward(tokens), model.forward(corrupt)
        column, name = model.W_U[:, 3], f"head_out.{layer}"
        m_clean, m_corrupt = ours["logits"][last, 3], theirs["logits"][last, 3]
        whole = m_clean - m_corrupt
        gaps = np.array([
            sum(float((a - b) * c) for a, b, c in zip(x, y, column, strict=True))
            for x, y in zip(ours[name][:, last], theirs[name][:, last], strict=True)
        ])  # fmt: skip
        parts = [*ours[name][:, last], *theirs[name][:, last]]
        parts += [places[f"resid_pre.{layer}"][last] for places in (ours, theirs)]
        size = sum(np.abs(part) @ np.abs(column) for part in parts)
        few = gamma(4 * (model.d_model + model.n_heads + 8), UNIT)
        bound = 4 * few * size / abs(whole) * (1 + np.abs(gaps / whole))
        for direction in ("denoise", "noise"):
            found = activation_patching(
                model, list(tokens), corrupt, 3, kind="head_out", direction=direction
            )
            plain = gaps / whole if direction == "denoise" else 1 - gaps / whole
            yield Trial(f"{direction}, last layer", found.values[layer], plain, bound)

    return Method("ot.activation_patching", ("noising_and_denoising_agree_when_linear",), trials)


@theorem(
    title="held: activations that are held are proved and measured to stay",
    chapter=9,
    convention="row",
    source=f"{INTERVENTIONS}; Elhage et al. 2021, on freezing attention patterns",
    covers=("S3-047",),
)
def held_method() -> Method:
    """`held` runs a model with some activations held at their recorded values while others are
    changed. Here patterns are held while the values of a first-layer head are doubled. Activations
    that read nothing that changes are proved to stay the same, and measured to stay exactly.

    In attention-only models the logits then move by what a pass through the recorded patterns says.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if not model.n_layers:
            return
        found = held(model, list(tokens), {hook("v.0", heads=0): lambda v: 2 * v}, hold="pattern")
        still = max(found.changes[name] for name in found.proved)
        yield Trial("what is proved to be held", still, 0.0, 0.0)
        plain, size = np.zeros((2, len(tokens), model.d_head))
        places = model.forward(tokens)
        local = LocalBounds(model, "float64")
        yield Trial("the model", float(found.model is model), 1.0, 0.0)
        asked = (hook("v.0", heads=0),)
        yield Trial("what is changed", float(found.interventions == asked), 1.0, 0.0)
        yield from _places_are_right(local, found.before, tokens, set())
        patterns = {f"pattern.{layer}" for layer in range(model.n_layers)}
        yield from _places_are_right(local, found.places, tokens, {"v.0", *patterns})
        for name in patterns:
            yield Trial(f"{name}, held", found.places[name], found.before[name], 0.0)
        doubled = np.array([2 * places["v.0"][0], *places["v.0"][1:]])
        yield Trial("v.0, of which one head is doubled", found.places["v.0"], doubled, 0.0)
        weights, values = places["pattern.0"][0], places["v.0"][0]
        for i, j in np.ndindex(weights.shape):
            plain[i] += weights[i, j] * (2 * values[j])
            size[i] += 2 * weights[i, j] * np.abs(values[j])
        bound = gamma(len(tokens) + 4, UNIT) * 2 * size
        yield Trial("what the head makes of it", found.places["z.0"][0], plain, bound)
        if not model.config.bare:
            return
        moved = places["pattern.0"][0] @ places["v.0"][0] @ model.W_O[0, 0]
        size = np.abs(moved)
        for layer in range(1, model.n_layers):
            added, much = np.zeros((2, *moved.shape))
            for head in range(model.n_heads):
                pattern = places[f"pattern.{layer}"][head]
                W_V, W_O = model.W_V[layer, head], model.W_O[layer, head]
                added += pattern @ moved @ W_V @ W_O
                much += pattern @ size @ np.abs(W_V) @ np.abs(W_O)
            moved, size = moved + added, size + much
        change = found.places["final"] - places["final"]
        each = len(tokens) + model.d_model + model.d_head + model.n_heads + 8
        few = gamma(2 * (model.n_layers + 1) * each, UNIT)
        streams = np.abs(places["final"]) + np.abs(found.places["final"])
        grown = size + sum(np.abs(places[f"resid_pre.{at}"]) for at in range(model.n_layers))
        largest = float((grown + streams).max())
        yield Trial("the change of the last stream", change, moved, few * largest * model.d_model)

    rests = ("patching_is_linear_with_frozen_patterns",)
    return Method("ot.held", rests, trials)
