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
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Integer

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

    def by_blocks(self, block_bytes: int) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield a slice of destinations and their attention [destination, source]."""
        n_tokens = self.scores.shape[0]
        every = list(blocks(n_tokens, n_tokens, self.scores.left.dtype, block_bytes))
        for some in tracked(every, "attending"):
            yield some, _softmax(self.scores.rows(some))


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

    With `sources`, only of those with these source tokens (the attention is unchanged). The result
    is exact: the k largest are among the k best outputs of the k pairs (d, s) with the largest best
    output. Two d_vocab × d_vocab matrices are computed, one block at a time.
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
    best = np.empty(model.d_vocab, dtype)
    by_rows = list(blocks(model.d_vocab, model.d_vocab, dtype, block_bytes))
    for some in tracked(by_rows, "best outputs"):
        best[some] = outputs.rows(some).max(axis=1)
    places, values = np.empty(0, np.int64), np.empty(0, dtype)
    for some, shares in attention.by_blocks(block_bytes):
        flat = (shares * best)[:, chosen].ravel()
        here = largest(flat, k)
        places = np.concatenate([places, here + some.start * len(chosen)])
        values = np.concatenate([values, flat[here]])
        keep = largest(values, k)
        places, values = places[keep], values[keep]
    found = []
    for place in places.tolist():
        destination, column = divmod(place, len(chosen))
        source = int(chosen[column])
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


def _softmax(rows: np.ndarray) -> np.ndarray:
    raised = np.exp(rows - rows.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))
