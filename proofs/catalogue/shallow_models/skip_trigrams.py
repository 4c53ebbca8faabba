"""Chapter 5: skip-trigrams: what one head does to a pair of tokens, and what it cannot avoid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from math import exp, fsum, sqrt
from typing import Any

import numpy as np
import sympy
from sympy import Identity, MatrixSymbol, Min, OneMatrix, Symbol, Transpose
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.facts import Fact
from otimes.algebra.language.linear import Family, HeadSum, matadd, matmul
from otimes.algebra.language.nonlinear import RowSoftmax
from otimes.algebra.language.trees import stated
from otimes.numeric.circuits.trigrams import SkipTrigrams, skip_trigrams
from otimes.numeric.corpus import read_source
from otimes.numeric.model import Model
from otimes.numeric.rounding import UNIT_ROUNDOFF
from otimes.numeric.tokenizer import byte_alphabet, load_tokenizer, sample_tokens
from otimes.proofs.catalogue.sources import FRAMEWORK
from otimes.proofs.catalogue.symbols import H, V, d_head, h, m, n, row
from otimes.proofs.claims import (
    Bound,
    Definition,
    Entries,
    Load,
    Method,
    NonIdentity,
    Observation,
    Observed,
    Property,
    Statement,
    Trial,
)
from otimes.proofs.theorem import theorem

SKIP = f"{FRAMEWORK}, “Interpretation as skip-trigrams”"
BUGS = f"{FRAMEWORK}, “Skip-trigram bugs”"

source = MatrixSymbol("t", V, 1)  # a source token as a one-hot column
shares = MatrixSymbol("a", V, 1)  # what each destination token gives it
moved = matmul(Transpose(source), row.W_E, row.W_V, row.W_O, row.W_U)
dest, other_dest, out, other_out = (Symbol(name, integer=True) for name in ("b", "c", "o", "p"))


@theorem(
    title="The effect of a skip-trigram",
    chapter=5,
    convention="row",
    source=SKIP,
    covers=("S4-18",),
)
def skip_trigram_effect() -> Definition:
    """A skip-trigram [source] … [destination] → [output] is what one head does for three tokens:
    standing on the destination token d, it attends to a source token s somewhere before and changes
    the logit of the output o. Its effect is c(d, s, o) = a(d, s) M(s, o). Here M is the full OV
    circuit W_E W_V W_O W_U less the mean of each row, and a(d, s) is the share of attention that d
    would give s if every token of the vocabulary stood there once. The formula is the table over d
    and o for one source, the one-hot t.

    One-layer models can be described by lists of such triples.

    The real share depends on the prompt, since a softmax divides by everything that is there.
    """
    scores = matmul(
        1 / sympy.sqrt(d_head), row.W_E, row.W_Q, Transpose(row.W_K), Transpose(row.W_E)
    )
    centred = matadd(Identity(V), matmul(-1 / V, OneMatrix(V, V)))
    table = matmul(row.W_E, row.W_V, row.W_O, row.W_U, centred)
    return Definition(
        "the effect of a skip-trigram",
        matmul(RowSoftmax(scores), source, Transpose(source), table),
        plain=_effects_of_source,
        obeys=("skip_trigrams_rank_one", "full_qk_gives_scores", "full_ov_rank_column"),
        on_models=False,
    )


def _effects_of_source(
    W_E: Any,
    W_Q: Any,
    W_K: Any,
    W_V: Any,
    W_O: Any,
    W_U: Any,
    t: Any,
    **sizes: int,
) -> np.ndarray:
    n_tokens, inner = len(W_E), W_Q.shape[1]
    queries, keys, values = (_through(W_E, w) for w in (W_Q, W_K, W_V))
    logits = _through(_through(values, W_O), W_U)
    picked = [float(x) for x in t[:, 0]]
    table = [[x - fsum(outputs) / n_tokens for x in outputs] for outputs in logits]
    effects = np.zeros((n_tokens, n_tokens))
    for d in range(n_tokens):
        raised = [exp(_dot(queries[d], key) / sqrt(inner)) for key in keys]
        share = _dot(raised, picked) / fsum(raised)
        for o in range(n_tokens):
            effects[d, o] = share * fsum(picked[s] * table[s][o] for s in range(n_tokens))
    return effects


def _through(vectors: Any, weight: Any) -> list[list[float]]:
    return [[_dot(vector, column) for column in zip(*weight, strict=True)] for vector in vectors]


def _dot(one: Any, other: Any) -> float:
    return fsum(float(x) * float(y) for x, y in zip(one, other, strict=True))


@theorem(
    title="Skip-trigram bugs: every 2 × 2 minor of a source's effects vanishes",
    chapter=5,
    convention="row",
    source=BUGS,
    covers=("S4-22", "B19"),
)
def skip_trigrams_rank_one() -> Statement:
    """A head's effect on skip-trigrams with one source is a product, a(destination) · μ(output), so
    the effects on different triples are tied together. If a head makes “keep … in → mind” and “keep
    … at → bay” likely, it must make “keep … in → bay” and “keep … at → mind” likely too. The
    equation says that every 2 × 2 minor of the table of effects is zero; b and c are destinations,
    o and p outputs. The source is the one-hot column t.

    These errors, called skip-trigram bugs, are not a failure of training. No weights can avoid them
    with one head.
    """

    def effect(at: Symbol, of: Symbol) -> Any:
        return stated(MatrixElement, matmul(shares, moved), at, of)

    return Statement(
        effect(dest, out) * effect(other_dest, other_out),
        effect(dest, other_out) * effect(other_dest, out),
        on_models=False,
    )


@theorem(
    title="The skip-trigram effects of one source form a matrix of rank one",
    chapter=5,
    convention="row",
    source=BUGS,
    covers=("S4-22", "B19"),
)
def skip_trigrams_of_a_source() -> Property:
    """For one source token and one head, the table of effects (destinations × outputs) has rank
    one: it is a column of attention shares a times a row of the full OV circuit. The source is the
    one-hot column t.

    It is the reason for skip-trigram bugs (`skip_trigrams_rank_one`), and holds whatever the
    weights are.
    """
    return Property(Fact("rank_at_most", matmul(shares, moved), 1), on_models=False)


@theorem(
    title="With H heads the skip-trigram effects of one source have rank at most H",
    chapter=5,
    source=BUGS,
    covers=("S4-23",),
)
def skip_trigrams_of_heads() -> Property:
    """With H heads the table of a source's effects (destinations × outputs) is a sum of H products
    a_h μ_h and has rank at most H. So two heads can produce “keep … in → mind” and “keep … at →
    bay” without the wrong pairs: one head attends from “in” and raises “mind”, the other from “at”
    and raises “bay”.

    With more exclusive pairs than heads some errors are forced again.
    """
    a, mu = Family("a", (H,), V, 1)[h], Family("mu", (H,), 1, V)[h]
    return Property(
        Fact("rank_at_most", HeadSum(matmul(a, mu), (h, H)), Min(V, H)), on_models=False
    )


@theorem(
    title="One head orders the outputs of a source in the same way at every destination",
    chapter=5,
    source=BUGS,
    covers=("S4-23",),
)
def one_head_keeps_the_order() -> Bound:
    """One head prefers the outputs of a source in the same order at every destination. If it moves
    output o at least as much as output p for a given source (μ_o ≥ μ_p), then at every destination
    its effect on o is at least that on p, because attention shares a are not negative.

    So it cannot prefer “mind” after “in” and “bay” after “at” for the same source “keep”. Other
    heads or the bigram table of the destination can correct it.
    """
    share, more, less = (MatrixSymbol(name, 1, 1) for name in ("a", "mu_o", "mu_p"))
    gap = matadd(more, matmul(-1, less))
    return Bound(
        sympy.Trace(matmul(share, less)),
        sympy.Trace(matmul(share, more)),
        because=(Entries(matmul(share, gap)),),
        given=(Fact("nonnegative", share), Fact("nonnegative", gap)),
        tight={"a": [[0]], "mu_o": [[3]], "mu_p": [[1]]},
        on_models=False,
    )


@theorem(
    title="An attention layer is more than a table of skip-trigrams: softmax couples tokens",
    chapter=5,
    source=SKIP,
    covers=("B20",),
)
def softmax_couples_tokens() -> NonIdentity:
    """A one-layer model is more than a table of skip-trigrams, because the softmax couples all
    tokens in the prompt. Add further tokens, with scores U beside the old scores S: the weights of
    the old tokens shrink, as they are divided by a larger sum. The left side has the new weights of
    the old tokens.

    So a list of skip-trigrams says what a head prefers, and not what it does in a given prompt. A
    source with a high score can hide another.
    """
    old, new = MatrixSymbol("S", n, m), MatrixSymbol("U", n, m)
    both = sympy.BlockMatrix([[old, new]])
    first = sympy.BlockMatrix([[Identity(m)], [sympy.ZeroMatrix(m, m)]])
    return NonIdentity(matmul(RowSoftmax(both), first), RowSoftmax(old))


@theorem(
    title="The largest skip-trigrams of a head",
    chapter=5,
    convention="row",
    source=SKIP,
    covers=("S4-21",),
)
def largest_skip_trigrams() -> Method:
    """`skip_trigrams` finds the k skip-trigrams of a head with the largest effects among all V³
    triples, from the two circuits and without forming all triples. An effect is an attention share
    times an entry of a row, so the k largest are among the k best outputs of the k best
    (destination, source) pairs.

    It is compared with dense tables of all destinations and outputs, for some sources.
    """
    return Method(
        "skip_trigrams",
        ("skip_trigrams_rank_one", "one_layer_at_one_position"),
        _largest_by_tables,
        law=r"c(d, s, o) = a(d, s)\, M(s, o)",
    )


def _largest_by_tables(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
    """Yield the largest effects of a head for three sources, and those of whole tables."""
    if not model.n_layers or model.config.positions == "rotary" or not model.config.bare:
        return
    k, sources = 8, sorted(set(tokens))[:3]
    for head in range(min(2, model.n_heads)):
        found = skip_trigrams(model, 0, head, k, sources=sources)
        yield Trial(f"head 0.{head}", np.array([found.layer, found.head]), np.array([0, head]), 0.0)
        W_E, W_U = model.W_E.astype(float), model.W_U.astype(float)
        W_Q, W_K, W_V, W_O = (
            w[0, head].astype(float) for w in (model.W_Q, model.W_K, model.W_V, model.W_O)
        )
        scores = (W_E @ W_Q) @ (W_E @ W_K).T / sqrt(model.d_head)
        raised = np.exp(scores - scores.max(axis=1, keepdims=True))
        share = (raised / raised.sum(axis=1, keepdims=True))[:, sources]
        some = [*sources, *range(min(FEW, model.d_vocab))]
        table = (W_E[some] @ W_V) @ W_O @ W_U
        table -= table.mean(axis=1, keepdims=True)
        moved = table[: len(sources)]
        every = np.einsum("ds,so->dso", share, moved)
        largest = np.sort(every.ravel())[::-1][:k]
        yield Trial(
            f"head 0.{head}, the {k} largest of {every.size} effects",
            np.array([each.effect for each in found]),
            largest,
            bound := _rounding(model, head, scores, moved) * float(np.max(share)),
        )
        at = [every[each.destination, sources.index(each.source), each.output] for each in found]
        yield Trial(f"head 0.{head}, where they are", largest, np.array(at), 2 * bound)
        yield from _circuits_of(found, some, (scores[some], table), _rounding_of(model, head))


FEW = 64  # rows of the tables that are compared, at most


def _circuits_of(
    found: SkipTrigrams,
    some: Sequence[int],
    tables: tuple[np.ndarray, np.ndarray],
    bounds: tuple[float, float],
) -> Iterator[Trial]:
    """Yield rows of the two circuits that are returned with the skip-trigrams, multiplied out."""
    head, circuits = f"{found.layer}.{found.head}", (found.attention.scores, found.outputs)
    names = ("scores", "outputs")
    for what, circuit, plain, bound in zip(names, circuits, tables, bounds, strict=True):
        made = circuit.left[some] @ circuit.right
        yield Trial(f"{what} of head {head}", made, plain, bound)


def _rounding_of(model: Model, head: int) -> tuple[float, float]:
    """Return bounds on the difference of two computations of a score, and of an output."""
    E, U = (np.abs(w.astype(float)) for w in (model.W_E, model.W_U))
    Q, K, W_V, W_O = (
        np.abs(w[0, head].astype(float)) for w in (model.W_Q, model.W_K, model.W_V, model.W_O)
    )
    few = 2 * (2 * model.d_model + model.d_head + model.d_vocab + 8) * UNIT_ROUNDOFF["float64"]
    scores = float(((E @ Q) @ (E @ K).T).max()) / sqrt(model.d_head)
    return few * scores, few * 2 * float((((E @ W_V) @ W_O) @ U).max())


def _rounding(model: Model, head: int, scores: np.ndarray, moved: np.ndarray) -> float:
    """Return a bound on the rounding of an effect, relative to its share, in either computation.

    A score is a product of three sums, so it is wrong by at most gamma times the same product of
    absolute values; a share by a factor exp of twice that; an entry of the table likewise.
    """
    u = UNIT_ROUNDOFF["float64"]
    E, U = (np.abs(w.astype(float)) for w in (model.W_E, model.W_U))
    Q, K, W_V, W_O = (
        np.abs(w[0, head].astype(float)) for w in (model.W_Q, model.W_K, model.W_V, model.W_O)
    )
    terms = 2 * model.d_model + model.d_head + 4
    wrong_scores = terms * u * float(((E @ Q) @ (E @ K).T).max()) / sqrt(model.d_head)
    share = np.expm1(2 * wrong_scores + 2 * (model.d_vocab + 4) * u)
    entries = float((((E @ W_V) @ W_O) @ U).max())
    table = (terms + model.d_vocab) * u * 2 * entries
    return float(2 * (share * (np.abs(moved).max() + table) + table))


@theorem(
    title="Large skip-trigrams of the trained model occur in text",
    chapter=5,
    convention="row",
    source=SKIP,
    covers=("S4-21",),
)
def skip_trigrams_read_like_text() -> Observation:
    """Do the largest skip-trigrams of the trained one-layer model occur in real text? The framework
    paper reads such triples off its model. Here a triple counts if its source … destination output
    stands like that in real Python code, with the source as far back as the model can see. The
    twenty largest of each head are compared with triples in which the outputs have been exchanged
    among the twenty.

    The largest effects are not the most frequent ones. Rare tokens have large rows, and nothing in
    the tables says how often a pair ever meets.
    """
    return Observation(
        "more of the 20 largest skip-trigrams of each head occur in every 20th file of the "
        "standard library than with their outputs exchanged at random, in 99 of 100 exchanges",
        _trigrams_in_text,
        {"share of exchanges with fewer": 0.99},
    )


def _trigrams_in_text(load: Load) -> Observed:
    model = load("one_layer")
    heads = [list(skip_trigrams(model, 0, head, 20)) for head in range(model.n_heads)]
    found = [[(each.source, each.destination) for each in largest] for largest in heads]
    outputs = [[each.output for each in largest] for largest in heads]
    asked = {
        (*pair, o) for pairs, of in zip(found, outputs, strict=True) for pair in pairs for o in of
    }
    in_text = _in_text(asked, _library(), model)

    def occur(order: Sequence[Sequence[int]]) -> int:
        return sum(
            (*pair, of[k]) in in_text
            for pairs, of, places in zip(found, outputs, order, strict=True)
            for pair, k in zip(pairs, places, strict=True)
        )

    rng, places = np.random.default_rng(0), [range(len(of)) for of in outputs]
    hits = occur(places)
    exchanged = [occur([rng.permutation(len(of)).tolist() for of in outputs]) for _ in range(1000)]
    beaten = float(np.mean([hits > other for other in exchanged]))
    total = sum(map(len, outputs))
    shown = next((str(e) for of in heads for e in of if tuple(e[:3]) in in_text), "none")
    figure = (
        f"{hits} of {total} occur, such as {shown}; with outputs exchanged on average "
        f"{np.mean(exchanged):.1f}, fewer in {beaten:.1%} of 1000 exchanges"
    )
    return Observed(figure, {"share of exchanges with fewer": beaten})


@lru_cache(maxsize=1)
def _library() -> list[list[int]]:
    """Return the tokens of every 20th file of the standard library."""
    tokenizer = load_tokenizer()
    return [tokenizer.encode(text) for text in read_source().texts[::20]]


def _in_text(
    asked: set[tuple[int, int, int]], texts: Sequence[Sequence[int]], model: Model
) -> set[tuple[int, int, int]]:
    """Return which [source] … [destination] [output] occur, the source within the context."""
    sources: dict[tuple[int, int], list[int]] = {}
    for source, destination, output in asked:
        sources.setdefault((destination, output), []).append(source)
    found = set()
    for tokens in texts:
        for at, pair in enumerate(pairwise(tokens)):
            if pair in sources:
                seen = {*tokens[max(0, at + 1 - model.n_ctx) : at + 1]}
                found |= {(each, *pair) for each in sources[pair] if each in seen}
    return found


@theorem(
    title="Two bugs that the trained model is forced to have",
    chapter=5,
    convention="row",
    source=BUGS,
    covers=("S4-22", "B19"),
)
def trained_model_has_forced_bugs() -> Observation:
    """An example of forced skip-trigram bugs in the trained one-layer model: after “ if”, head 0.2
    raises “ not” where “ is” is the current token, and “ else” where “Error” is, as Python does.
    Because the effects are a product, it must also raise “ else” after “ is” and “ not” after
    “Error”; the product of these two effects equals that of the first two
    (`skip_trigrams_rank_one`).
    """
    return Observation(
        "all four effects are above 0.1 in the logit, and the 2 × 2 minor vanishes within rounding",
        _forced_bugs,
        {"smallest effect": 0.1, "rounding bound minus |minor|": 0.0},
    )


def _forced_bugs(load: Load) -> Observed:
    model, tokenizer = load("one_layer"), load_tokenizer()
    source, is_, error, not_, else_ = (
        tokenizer.encode(text)[0] for text in (" if", " is", "Error", " not", " else")
    )
    found = skip_trigrams(model, 0, 2, 1, sources=[source])
    meant = [found.effect(source, is_, not_), found.effect(source, error, else_)]
    forced = [found.effect(source, is_, else_), found.effect(source, error, not_)]
    straight, crossed = meant[0] * meant[1], forced[0] * forced[1]
    rounding = 8 * UNIT_ROUNDOFF["float64"] * abs(straight)  # four numbers, three products each way
    shown = ", ".join(f"{x:.2f}" for x in (*meant, *forced))
    figure = f"effects {shown}; minor {straight - crossed:.1g}"
    least, slack = min(*meant, *forced), rounding - abs(straight - crossed)
    return Observed(figure, {"smallest effect": least, "rounding bound minus |minor|": slack})


@theorem(
    title="Byte-level tokens include the space before a word",
    chapter=5,
    source=f"Sennrich, Haddow and Birch 2016; {SKIP}",
    covers=("S4-27",),
)
def tokens_begin_with_a_space() -> Observation:
    """In a byte-level tokenizer the space before a word is part of the word's token, so “ not” and
    “not” are two tokens with two different rows in every table. When skip-trigrams are read, the
    spaces have to be visible.

    Such a tokenizer loses nothing: the strings of the tokens, put side by side, are the text.
    """
    return Observation(
        "the symbols of the tokens of the sample text, side by side, spell its bytes; and of the "
        "20 largest skip-trigrams of each head of the one-layer model more than half have a token "
        "with a space first",
        _spaces,
        {"lossless": 0.5, "share with a space": 0.5},
        outcome="seen at random too",
    )


def _spaces(load: Load) -> Observed:
    model, tokenizer = load("one_layer"), load_tokenizer()
    tokens = sample_tokens()
    text = tokenizer.decode(tokens)
    alphabet = byte_alphabet()
    spelled = "".join(alphabet[byte] for byte in text.encode())
    lossless = "".join(tokenizer.token_symbols(tokens)) == spelled and (
        tokenizer.encode(text) == list(tokens)
    )
    found = [each for head in range(model.n_heads) for each in skip_trigrams(model, 0, head, 20)]
    spaced = sum(any(token.startswith(" ") for token in each.text) for each in found)
    figure = (
        f"{len(tokens)} tokens spell {len(spelled)} bytes; {spaced} of {len(found)} have a space"
    )
    return Observed(
        figure, {"lossless": float(lossless), "share with a space": spaced / len(found)}
    )
