"""Chapter 9: an activation of one prompt in the pass of another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    """The pass on one prompt (the base) goes on with what an activation was on another one (the
    source), at the positions that P selects: rows of Y there, rows of X elsewhere. Everything that
    reads it is computed again. In causal terms this is do(f = Y), which is not the same as looking
    at prompts on which f happens to be Y.

    In the direction “denoise” the base is the corrupt prompt and the source the clean one; in
    “noise” it is the other way round.
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
    """Take the source to be the base: whatever is computed from the stream, here any function g of
    its entries, is what it was. So resample ablation with the same prompt is a test that the hooks
    are right, before any result is believed.
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
    """P selects positions, so P² = P: a second patch of the same part from the same source finds
    it done. With P = I nothing of the base is left, and the rest of the pass is that of the source.
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
    """A layer of heads with frozen patterns, fed a stream part of the way from X to Y: its output
    is as far on the way. So half a patch has half the effect, and the effects of patches of several
    positions add up.

    What patching does to the patterns (of later layers, through queries and keys) is not in this
    equation. It is what makes patching more than arithmetic.
    """
    mixed = matadd(matmul(1 - alpha, X), matmul(alpha, other))
    return Statement(
        frozen_layer(mixed),
        matadd(matmul(1 - alpha, frozen_layer(X)), matmul(alpha, frozen_layer(other))),
        bind=({"Y": Source("embed")},),
    )


@theorem(
    title="Noising and denoising agree for a linear metric",
    chapter=9,
    convention="row",
    source=f"{INTERVENTIONS}; {HEIMERSHEIM}",
    covers=("S3-053",),
)
def noising_and_denoising_agree_when_linear() -> Statement:
    """For a linear model, what a metric loses when a part of the clean pass is replaced by the
    corrupt one is what it gains when that part of the corrupt pass is replaced by the clean one.
    So the normalised scores (m - m_corrupt) / (m_clean - m_corrupt) of the two directions add up
    to one.
    """

    def metric(stream: MatrixExpr) -> MatrixExpr:
        return matmul(frozen_layer(stream), reader)

    noised = minus(metric(patched(X, other)), metric(X))
    denoised = minus(metric(patched(other, X)), metric(other))
    return Statement(
        noised,
        matmul(-1, denoised),
        bind=({"Y": Source("embed"), "P": Source("pattern"), "u": Source("W_U", cols=1)},),
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
    """Take f(x) = xᵀQx, with x clean, y corrupt, and δ the part of y - x that is patched. The two
    changes, of x + δ against x and of y - δ against y, add up to -δᵀ(Q + Qᵀ)(y - x - δ): the
    patched part times the part that is not. Where the two act together, as in AND, noising shows
    either one as all-important and denoising shows neither; where either suffices it is the other
    way round.
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
    """For xᵀQx, the simplest function in which two parts act together, the loss by noising is not
    the gain by denoising.
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
    """Δ_12 - Δ_1 - Δ_2, what two interventions do together beyond what each does alone, is
    δ_1ᵀ(Q + Qᵀ)δ_2 for f(x) = xᵀQx + bx: of second order, and nothing where f is linear. A search
    that patches one component at a time cannot see it.
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
    """Δ_total - Δ_direct for a component that is taken away: the change of the logits, less the
    change that its own row f makes, which is -f W_U. X is the last stream, and Y the last stream
    of the pass without the component. It is zero if later layers do not react, positive in a
    logit if they step in.
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
    """The last stream is E + f + R: what was there before, what the component wrote, and what later
    layers wrote. Without the component it is E + R'. The change of a logit less the direct one is
    (R' - R) u, so self-repair is looked for in the later layers alone, one component at a time.
    """
    before, written, after, again = (MatrixSymbol(name, n, d) for name in ("E", "f", "R", "S"))
    whole, without = matadd(before, written, after), matadd(before, again)
    change = matmul(minus(without, whole), reader)
    return Statement(
        minus(change, matmul(-1, written, reader)),
        matmul(minus(again, after), reader),
        on_models=False,
    )


@theorem(
    title="intervene: passes with replaced activations, by loops",
    chapter=9,
    convention="row",
    source=INTERVENTIONS,
    covers=("S3-047", "S3-048", "S3-049", "S3-050", "S3-051"),
)
def intervene_method() -> Method:
    """The last layer of a model of bare heads, with the output of one head replaced: by zero, by
    its mean over two prompts, by what it is on another prompt, by itself with noise. Beside it: the
    recorded outputs of the heads, added up with that one replaced, and unembedded by a sum.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if not model.config.bare or not model.n_layers:
            return
        layer, last = model.n_layers - 1, len(tokens) - 1
        changed = [(token + 1) % model.d_vocab for token in tokens]
        places, source = model.forward(tokens), model.forward(changed)
        name, head = f"head_out.{layer}", model.n_heads - 1
        noise = np.random.default_rng(9).standard_normal(places[name][head].shape)
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
            )["logits"][last, 3]
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
    """The whole stream before the last layer, one position at a time, in a model without layers:
    the logit at the last position depends on the last row alone, so its score is 1 there and 0
    elsewhere; in other models of bare heads the scores of the heads of the last layer, from their
    recorded outputs, in either direction.
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
    """Patterns are held at their values while the values of a head in the first layer are doubled.
    Hook points that read nothing that changes are proved to stay, and measured to stay exactly. In
    a model of bare heads with its patterns held the logits then move by exactly what a pass through
    the recorded patterns says.
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
        for name in ("logits", *["mlp_out.0"] * bool(model.config.d_mlp)):
            judged = local.place(name, found.before)
            yield Trial(f"{name} before", found.before[name], judged.value, judged.bound)
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
