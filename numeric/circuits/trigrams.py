r"""Skip-trigrams of a head, [source] … [destination] → [output], and skip-trigram bugs.

When a destination token d attends to a source s, the logit of output o changes by

    c(d, s, o) = a(d, s) · M(s, o)

a(d, s): the attention of d to s in a context with each token of the vocabulary once (softmax of a
row of the full QK circuit); M: the full OV circuit minus the mean of each row, since logits matter
only up to a constant. For a fixed source c has rank one in (d, o):

    c(d, s, o) · c(d', s, o') = c(d, s, o') · c(d', s, o)

A head that increases the probability of `keep … in → mind` and `keep … at → bay` must also increase
that of `keep … in → bay` and `keep … at → mind`: the products of the effects are equal. These are
the skip-trigram bugs.

Source: Elhage et al. 2021, “Interpretation as skip-trigrams”, “Primarily positional … bugs”.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int, Integer

from otimes.algebra.errors import OtimesError
from otimes.numeric.circuits.factored import Factored, largest
from otimes.numeric.circuits.heads import full_ov, full_qk
from otimes.numeric.circuits.result import visible_text
from otimes.numeric.circuits.weights import BLOCK_BYTES, Precision, blocks
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.progress import tracked


class Trigram(NamedTuple):
    """A skip-trigram: its three tokens as ids and as text, and its effect on the logit."""

    source: int
    destination: int
    output: int
    effect: float
    text: tuple[str, str, str]

    def __str__(self) -> str:
        source, destination, output = map(repr, self.text)
        return f"{source} … {destination} → {output}  {self.effect:+.3g}"


class ForcedBug(NamedTuple):
    """Two skip-trigrams that occur in a text, and the two that they force, which do not occur.

    The product of the effects of `meant` equals that of `forced`.
    """

    meant: tuple[Trigram, Trigram]
    forced: tuple[Trigram, Trigram]


@dataclass(frozen=True, slots=True, eq=False)
class SkipTrigrams(Sequence[Trigram]):
    """The largest skip-trigrams of a head, the largest first, with the head's circuits."""

    layer: int
    head: int
    found: tuple[Trigram, ...]
    attention: "Attention" = field(repr=False)
    outputs: Factored = field(repr=False)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        """Return one skip-trigram, or a slice of them."""
        return self.found[index]

    def __len__(self) -> int:
        return len(self.found)

    def effect(self, source: int, destination: int, output: int) -> float:
        """Return c(d, s, o) of any three tokens."""
        share = self.attention.share(destination)[source]
        return float(share * self.outputs.rows(source)[output])

    def trigram(self, source: int, destination: int, output: int) -> Trigram:
        """Return any three tokens as a skip-trigram of this head."""
        names = self.outputs.column_labels
        tokens = (source, destination, output)
        text = tuple(names[token] if names else str(token) for token in tokens)
        return Trigram(*tokens, self.effect(*tokens), text)  # type: ignore[arg-type]

    def forced_bugs(
        self, text: Sequence[int] | Integer[np.ndarray, " pos"], window: int = 128
    ) -> list[ForcedBug]:
        """Return pairs of these skip-trigrams that occur in a text and force two that do not.

        [s] … [d] → [o] occurs where o directly follows d, and s is d or precedes it, all within
        `window` tokens. Two skip-trigrams with the same source, different destinations and
        different outputs force the two with exchanged outputs. A pair is returned if the bigrams
        (d, o') and (d', o) do not occur in the text; the pairs are sorted by the smaller effect of
        the forced ones, the largest first. Proved by: skip_trigrams_rank_one.
        """
        tokens = np.asarray(text)
        neighbours = set(zip(tokens[:-1].tolist(), tokens[1:].tolist(), strict=True))

        def occurs(each: Trigram) -> bool:
            if (each.destination, each.output) not in neighbours:
                return False
            at_pair = (tokens[:-1] == each.destination) & (tokens[1:] == each.output)
            pairs, sources = np.flatnonzero(at_pair), np.flatnonzero(tokens == each.source)
            before = np.searchsorted(sources, pairs, side="right") - 1
            seen = before >= 0
            return bool((pairs[seen] - sources[before[seen]] + 2 <= window).any())

        there = [each for each in self.found if occurs(each)]
        bugs = []
        for one, other in combinations(there, 2):
            if one.source != other.source or one.destination == other.destination:
                continue
            crossed = (one.destination, other.output), (other.destination, one.output)
            if one.output == other.output or any(pair in neighbours for pair in crossed):
                continue
            forced = tuple(self.trigram(one.source, d, o) for d, o in crossed)
            bugs.append(ForcedBug((one, other), forced))  # type: ignore[arg-type]
        return sorted(bugs, key=lambda bug: -min(each.effect for each in bug.forced))

    def __repr__(self) -> str:
        return f"<{len(self)} skip-trigrams of head {self.layer}.{self.head}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr><td>{} … {} → {}</td>".format(*map(visible_text, each.text))
            + f"<td>{each.effect:+.3g}</td></tr>"
            for each in self.found
        )
        return (
            f"<table><caption>{escape(repr(self)[1:-1])}</caption>"
            f"<tr><th>source … destination → output</th><th>effect</th></tr>{rows}</table>"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Attention:
    """The attention a(d, s), computed by rows [d_vocab]."""

    scores: Factored

    def share(self, destination: int) -> Float[np.ndarray, " d_vocab"]:
        """Return the attention of a destination to each source."""
        return _softmax(self.scores.rows([destination]))[0]

    def by_blocks(self, block_bytes: int) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Yield a slice of destinations, their attention before division, and its divisors.

        The arrays are [destination, source], where each row has the maximum 1, and [destination].
        """
        n_tokens = self.scores.shape[0]
        every = list(blocks(n_tokens, n_tokens, self.scores.left.dtype, block_bytes))
        for some in tracked(every, "attending"):
            raised = self.scores.rows(some)
            for row in raised:  # one row at a time stays in the cache
                np.exp(np.subtract(row, row.max(), out=row), out=row)
            yield some, raised, raised.sum(axis=1)


class BestOutputs:
    """The largest effect of each source, $max_o M(s, o)$: a bound until it is computed.

    The bound is $‖A_s‖ max_o ‖B_o‖$ where M = A B (Cauchy–Schwarz), which costs no product over the
    vocabulary. `most` has the bound or, where `known`, the maximum.
    """

    def __init__(self, outputs: Factored, block_bytes: int) -> None:
        self.outputs, self.block_bytes = outputs, block_bytes
        left, right = outputs.left, outputs.right
        unit = np.finfo(left.dtype).eps
        slack = 1 + 4 * (left.shape[1] + 4) * unit  # of the norms, and of the product it bounds
        longest = np.linalg.norm(right, axis=0).max()
        self.most = np.linalg.norm(left, axis=1) * longest * left.dtype.type(slack)
        self.known = np.zeros(len(left), dtype=bool)

    def settle(self, sources: np.ndarray) -> None:
        """Compute the maxima of some sources."""
        missing = np.unique(sources[~self.known[sources]])
        width = self.outputs.shape[1]
        for some in blocks(len(missing), width, self.most.dtype, self.block_bytes):
            rows = self.outputs.rows(missing[some])
            self.most[missing[some]] = rows.max(axis=1)
        self.known[missing] = True


def skip_trigrams(
    model: ModelSource,
    layer: int,
    head: int,
    k: int = 50,
    *,
    sources: Sequence[int] | None = None,
    distance: int | None = None,
    tokens: Sequence[str] | None = None,
    dtype: Precision = np.float64,
    block_bytes: int = BLOCK_BYTES,
) -> SkipTrigrams:
    """Return the k skip-trigrams of a head with the largest effects, of all d_vocab³.

    A skip-trigram is source … destination → output: the destination attends to a source somewhere
    before it, which raises the logit of the output.

    With `sources`, only of those with these source tokens (the attention is unchanged). The result
    is exact: the k largest are among the k best outputs of the k pairs (d, s) with the largest best
    output. The full QK circuit is computed, one block at a time, and of the full OV circuit the
    rows of sources whose bound exceeds the k-th largest effect found so far.
    Proved by: one_layer_expansion, skip_trigrams_rank_one.

    >>> from otimes.numeric.load import load_model
    >>> print(skip_trigrams(load_model("one_layer"), 0, 1, 2)[1])
    ' SMALL' … ' CYRILLIC' → ' LETTER'  +3.19

    Raises: OtimesError for a head out of range, or k < 1.
    """
    model = load_model(model)
    if k < 1:
        raise OtimesError(f"k must be at least 1, got {k}")
    chosen = (
        np.arange(model.d_vocab) if sources is None else model.check_tokens(sorted(set(sources)))
    )
    attention = Attention(full_qk(model, layer, head, dtype, distance, tokens))
    whole = full_ov(model, layer, head, dtype, tokens)
    moved = whole.right - whole.right.mean(axis=1, keepdims=True)
    outputs = Factored(whole.left, moved, whole.row_labels, whole.column_labels)
    found = []
    for destination, source in best_pairs(attention, outputs, chosen, k, block_bytes):
        row = outputs.rows(source)
        effects = attention.share(destination)[source] * row
        found += [(float(effects[o]), source, destination, int(o)) for o in largest(effects, k)]
    found.sort(key=lambda each: (-each[0], *each[1:]))
    names = outputs.column_labels
    every = [
        Trigram(s, d, o, effect, tuple(names[t] if names else str(t) for t in (s, d, o)))  # type: ignore[arg-type]
        for effect, s, d, o in found[:k]
    ]
    return SkipTrigrams(layer, head, tuple(every), attention, outputs)


def best_pairs(
    attention: Attention,
    outputs: Factored,
    chosen: Int[np.ndarray, " source"],
    k: int,
    block_bytes: int = BLOCK_BYTES,
) -> list[tuple[int, int]]:
    """Return the k pairs (d, s) with the largest $a(d, s) max_o M(s, o)$, s among the chosen."""
    best = BestOutputs(outputs, block_bytes)
    dtype = outputs.left.dtype
    places, values = np.empty(0, np.int64), np.empty(0, dtype)
    for some, raised, sums in attention.by_blocks(block_bytes):
        least = values[-1] if len(values) == k else dtype.type(-1)
        # The largest share of a row is 1 / sum. A later pair that only equals the k-th loses.
        rows = np.flatnonzero(best.most[chosen].max() / sums > least)
        for row in rows.tolist():
            shares = (raised[row] / sums[row])[chosen]
            columns, effects = _largest_of_row(shares, best, chosen, k, least)
            places = np.concatenate([places, columns + (some.start + row) * len(chosen)])
            values = np.concatenate([values, effects])
            keep = largest(values, k)
            places, values = places[keep], values[keep]
            least = values[-1] if len(values) == k else least
    return [(p // len(chosen), int(chosen[p % len(chosen)])) for p in places.tolist()]


def _largest_of_row(
    shares: Float[np.ndarray, " source"],
    best: BestOutputs,
    chosen: Int[np.ndarray, " source"],
    k: int,
    least: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns and the effects of the k largest above `least` in one row.

    Those with the k largest bounds are computed, until the k largest are computed ones: every other
    is at most its bound.
    """
    while True:
        columns = np.flatnonzero(shares * best.most[chosen] > least)
        effects = shares[columns] * best.most[chosen[columns]]
        top = largest(effects, k)
        sources = chosen[columns[top]]
        if best.known[sources].all():
            top = np.sort(top)
            return columns[top], effects[top]
        best.settle(chosen[columns[largest(effects, 4 * k)]])


def _softmax(rows: np.ndarray) -> np.ndarray:
    raised = np.exp(rows - rows.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))
