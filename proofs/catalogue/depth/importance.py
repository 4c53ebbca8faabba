"""Chapter 6: what direct path, heads and virtual heads are worth, in nats of loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from math import exp, fsum, log

import numpy as np
from sympy import MatrixExpr, MatrixSymbol, Rational

from otimes.algebra.language.linear import matadd, matmul
from otimes.numeric.model import Model
from otimes.numeric.paths.loss import LossTable, LossTerm, loss_table
from otimes.numeric.rounding import gamma
from otimes.numeric.tokenizer import sample_tokens
from otimes.proofs.catalogue.sources import FRAMEWORK
from otimes.proofs.claims import Load, Method, Observation, Observed, Statement, Trial
from otimes.proofs.theorem import theorem

IMPORTANCE = f"{FRAMEWORK}, “Term importance analysis”"
UNIT = 2.0**-53
HEADS_AT_MOST = 6  # (1 + H)² paths are followed one by one


@theorem(
    title="The Shapley values of two players are means of their marginal effects",
    chapter=6,
    source=f"Shapley 1953, A value for n-person games; {IMPORTANCE}",
    covers=("B3",),
)
def two_player_shapley() -> Statement:
    """If two parts of a model work together, there are two answers to how much one of them
    contributes: what it adds alone, and what it adds when the other is already there. The Shapley
    value is the mean of the two, and the values of both parts add up to the whole gain. Here v_0,
    v_1, v_2 and v_12 are what is achieved with neither, one or both.

    In the framework's two-layer model the first layer saves 1.3 nats alone and 0.05 nats after the
    second; for the second layer it is 5.2 and 4.0. Neither number is a share. The Shapley values
    are 0.68 and 4.6.
    """
    none, one, two, both = (MatrixSymbol(f"v_{name}", 1, 1) for name in ("0", "1", "2", "12"))

    def less(later: MatrixSymbol, before: MatrixSymbol) -> MatrixExpr:
        return matadd(later, matmul(-1, before))

    def value(alone: MatrixSymbol, other: MatrixSymbol) -> MatrixExpr:
        return matmul(Rational(1, 2), matadd(less(alone, none), less(both, other)))

    return Statement(matadd(value(one, two), value(two, one)), less(both, none), on_models=False)


@theorem(
    title="Term importance: losses with some of the paths, path by path",
    chapter=6,
    source=IMPORTANCE,
    covers=("B3",),
)
def term_importance_method() -> Method:
    """Term importance measures how much a group of paths contributes to a model's predictions, by
    the loss of the model with these paths and without them. `loss_table` predicts with frozen
    patterns and with only some of the paths: the direct path, then also single heads, then all; and
    with the single heads of one layer.

    It is compared with a computation that follows every path by itself, adds the logits of those
    that count, and takes the loss by loops.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if not model.config.bare or model.n_layers not in (1, 2) or model.n_heads > HEADS_AT_MOST:
            return
        table = loss_table(model, [tokens])
        rows = {term.name: term for term in table.terms}
        paths, sizes = _paths_one_by_one(model, tokens)

        def loss(some: Sequence[Path]) -> tuple[float, float]:
            logits, spread = (np.sum([each[p] for p in some], axis=0) for each in (paths, sizes))
            return _loss_by_loops(model, tokens, logits, spread)

        uniform = log(model.d_vocab)
        yield Trial("uniform", table.uniform, uniform, 4 * UNIT * uniform)
        yield Trial("model", table.model, *loss([*paths]))
        up_to = [[p for p in paths if len(p) <= order] for order in range(model.n_layers + 1)]
        lower = uniform, 0.0
        for order, some in enumerate(up_to):
            term = rows.pop(f"order {order}" if order else "direct")
            yield from _of_term(term, order, loss(some), lower)
            lower = loss(some)
        heads = [path for path in up_to[1] if path]
        terms = {f"layer {at}": [p for p in heads if p[0][0] == at] for at in range(model.n_layers)}
        terms |= {f"{layer}.{head}": [((layer, head),)] for ((layer, head),) in heads}
        yield Trial("the terms", float(rows.keys() == terms.keys()), 1.0, 0.0)
        direct, both = loss(up_to[0]), loss(up_to[1])
        for name, part in terms.items():
            others = loss([path for path in up_to[1] if path not in part])
            yield from _of_term(rows[name], 1, loss([(), *part]), direct)
            removed, doubt = both[0] - others[0], both[1] + others[1]
            yield Trial(f"{name}, removed", rows[name].removed or 0.0, removed, doubt)

    rests = ("two_layer_paths", "paths_by_order", "replay_by_order", "two_player_shapley")
    return Method("otimes.numeric.paths.loss.loss_table", rests, trials)


Path = tuple[tuple[int, int], ...]


def _of_term(
    term: LossTerm, order: int, loss: tuple[float, float], lower: tuple[float, float]
) -> Iterator[Trial]:
    """Yield the order of a term, its loss, and its change of the loss with lower orders only."""
    yield Trial(f"{term.name}, order", float(term.order), float(order), 0.0)
    yield Trial(f"{term.name}, loss", term.loss, *loss)
    doubt = loss[1] + lower[1] + 4 * UNIT * (loss[0] + lower[0])
    yield Trial(f"{term.name}, added", term.added, loss[0] - lower[0], doubt)


def _paths_one_by_one(
    model: Model, tokens: Sequence[int]
) -> tuple[dict[Path, np.ndarray], dict[Path, np.ndarray]]:
    """Return the logits of each path, and the same of absolute values."""
    places = model.forward(tokens)
    found, sizes = {}, {}
    for choice in product(range(-1, model.n_heads), repeat=model.n_layers):
        path = tuple((layer, head) for layer, head in enumerate(choice) if head >= 0)
        row, size = places["embed"], np.abs(places["embed"])
        for layer, head in path:
            pattern = places[f"pattern.{layer}"][head]
            into, out = model.W_V[layer, head], model.W_O[layer, head]
            row, size = pattern @ row @ into @ out, pattern @ size @ np.abs(into) @ np.abs(out)
        found[path], sizes[path] = row @ model.W_U, size @ np.abs(model.W_U)
    return found, sizes


def _loss_by_loops(
    model: Model, tokens: Sequence[int], logits: np.ndarray, sizes: np.ndarray
) -> tuple[float, float]:
    """Return the mean loss, and how far rounding may take another computation of it.

    A logit is off by gamma times its size, and the loss by at most twice the largest error of a
    logit; each exponential by u times what it is taken of, and the sum of V of them by V u.
    """
    lost, doubts = [], []
    each = len(tokens) + model.d_model + model.d_head + model.n_heads + 6
    few = gamma((model.n_layers + 1) * each + (1 + model.n_heads) ** model.n_layers, UNIT)
    for at, target in enumerate(tokens[1:]):
        row = logits[at].tolist()
        top = max(row)
        lost.append(log(fsum(exp(entry - top) for entry in row)) + top - row[target])
        widest = max(map(abs, row))
        doubts.append(2 * few * sizes[at].max() + (model.d_vocab + 8 + 8 * widest) * UNIT)
    return fsum(lost) / len(lost), 4 * max(doubts)


@lru_cache(maxsize=1)
def _two_layers(load: Load) -> LossTable:
    return loss_table(load("two_layer"), [sample_tokens()])


@theorem(
    title="Term importance in the trained two-layer model, in nats",
    chapter=6,
    source=IMPORTANCE,
    covers=("B3",),
)
def term_importance_in_nats() -> Observation:
    """How much does the loss fall when the direct path is used, when single heads are added, and
    when virtual heads are added? In the framework's two-layer model: 1.8 nats below uniform
    guessing, 5.2 more, and 0.3 more. So single heads do most, although there are many more virtual
    heads.

    Patterns are those of the full model. What a head does to the patterns of later heads is
    therefore counted with the later heads.
    """

    def observe(load: Load) -> Observed:
        direct, single, virtual = (-term.added for term in _two_layers(load).terms[:3])
        figure = (
            f"two_layer on the sample text: the direct path saves {direct:.2f} nats, single heads "
            f"{single:.2f} more and virtual heads {virtual:.2f} more"
        )
        margins = {"single minus direct": single - direct, "direct minus virtual": direct - virtual}
        return Observed(figure, margins)

    return Observation(
        "in two_layer single heads save more than the direct path, and that more than virtual "
        "heads, as in the framework's table",
        observe,
        {"single minus direct": 0.0, "direct minus virtual": 0.0},
    )


@theorem(
    title="The importance of a layer depends on which other layers are there",
    chapter=6,
    source=IMPORTANCE,
    covers=("B3",),
)
def layers_do_the_same_work() -> Observation:
    """How much does one layer contribute to a model's predictions? One answer adds its single heads
    to the direct path alone; another removes them from all single heads. In the framework's model
    the first layer saves 1.3 nats by the first answer and 0.05 by the second.

    If the first answer is larger, layers do some of the same work, and one number for the
    importance of a layer is not enough (`two_player_shapley`).
    """

    def observe(load: Load) -> Observed:
        layers = [term for term in _two_layers(load).terms if term.name.startswith("layer")]
        parts, shared = [], []
        for term in layers:
            alone, after = -term.added, -(term.removed or 0.0)
            shared.append(alone - after)
            mean = (alone + after) / 2
            parts.append(f"{term.name} {alone:.2f} alone, {after:.2f} after (mean {mean:.2f})")
        margins = {"least nats saved alone but not after": min(shared)}
        return Observed(f"nats saved in two_layer: {'; '.join(parts)}", margins)

    return Observation(
        "each layer of two_layer saves more beside the direct path alone than beside the other "
        "layer's heads as well",
        observe,
        {"least nats saved alone but not after": 0.0},
        outcome="seen at random too",
    )
