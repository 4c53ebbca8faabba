"""Chapter 11: what heads attend to, what they take away, and what a model loses without them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from sympy import (
    HadamardProduct,
    Identity,
    MatrixSymbol,
    OneMatrix,
    S,
    Symbol,
    Trace,
    Transpose,
)

from otimes.algebra.facts import Fact
from otimes.algebra.language.linear import matadd, matmul
from otimes.algebra.language.nonlinear import CausalMask, RowSoftmax
from otimes.algebra.language.positions import Shift
from otimes.numeric.behaviours.ablation import ablation_losses
from otimes.numeric.behaviours.attention import (
    attention_scores,
    best_offset_score,
    joiner_scores,
    positional_scores,
    syntactic_scores,
)
from otimes.numeric.behaviours.syntax import RELATIONS, python_relations
from otimes.numeric.binding import Source
from otimes.numeric.circuits.behaviour import duplicate_token_score
from otimes.numeric.circuits.copying import copying_scores
from otimes.numeric.metrics import repeated_prompts
from otimes.numeric.model import Model
from otimes.numeric.rounding import gamma
from otimes.numeric.tokenizer import load_tokenizer
from otimes.proofs.catalogue.behaviours.text import N_POS, SOURCES, prompts
from otimes.proofs.catalogue.interventions.patching import minus
from otimes.proofs.catalogue.sources import FRAMEWORK, OLSSON, PRIMER
from otimes.proofs.catalogue.symbols import A, V, d, n, size
from otimes.proofs.claims import (
    Bound,
    Definition,
    Entries,
    Load,
    Method,
    Observation,
    Observed,
    Square,
    Statement,
    Trial,
)
from otimes.proofs.theorem import theorem

PATTERNS = f"{PRIMER}, “Attention Heads with Interpretable Attention Patterns”"
VOITA = "Voita et al. 2019, “Analyzing Multi-Head Self-Attention”"
CORREIA = "Correia, Niculae and Martins 2019, “Adaptively Sparse Transformers”"
WANG = "Wang et al. 2023, “Interpretability in the Wild”"
BANDWIDTH = f"{FRAMEWORK}, “Subspaces and Residual Stream Bandwidth”"
MEMORY = f"{PRIMER}, “Residual Stream” (behaviours)"
UNIT = 2.0**-53

asked, words = size("q"), size("w")
M = MatrixSymbol("M", n, n)  # ones where attention counts
ones = OneMatrix(n, 1)
earlier = minus(CausalMask(n), Identity(n))  # ones strictly below the diagonal


def entrywise(*factors: Any) -> Any:
    """Return the product entry by entry."""
    return HadamardProduct(*factors, evaluate=False)


def total(matrix: Any) -> Any:
    """Return the sum of the entries of an n × n matrix."""
    return Trace(matmul(Transpose(ones), matrix, ones))


# -- scores of patterns ----------------------------------------------------------------------------


@theorem(
    title="The attention of a head on chosen pairs",
    chapter=11,
    source=f"{PATTERNS}; {OLSSON}",
    covers=("S3-097", "S3-098", "S3-100"),
)
def attention_score() -> Definition:
    """Most scores of heads are one score. Mark with a one in M the pairs (query, key) that the head
    is supposed to look at, sum its attention there, and divide by the number q of queries that have
    such a pair. Ones just below the diagonal make the previous-token score, (n − k) of them k below
    it the score of the position k back; ones at earlier occurrences of the same token the
    duplicate-token score; ones at the earlier pieces of the same word the joiner score.

    A score says where a head looks, and nothing about what it moves.
    """

    def plain(**given: Any) -> Any:
        pattern, marks, queries = given["A"], given["M"], given["q"]
        found = sum(
            pattern[i][j] * marks[i][j] for i in range(len(pattern)) for j in range(len(pattern))
        )
        return Fraction(1, queries) * found

    return Definition(
        "attention score",
        Trace(matmul(A, Transpose(M))) / asked,
        plain,
        obeys=("attending_only_there_scores_one", "attention_score_at_most_one"),
        on_models=False,
    )


@theorem(
    title="A head that attends to nothing but the chosen keys scores one",
    chapter=11,
    source=PATTERNS,
    covers=("S3-097", "S3-098", "S3-100"),
)
def attending_only_there_scores_one() -> Statement:
    """Let every row of the pattern sum to one (A 1 = 1), and let A be zero where M is zero
    (A ∘ M = A). Then the attention on the marked pairs is n, one for each query: divided by the n
    queries the score is exactly 1. This is the score's upper end, for previous-token, duplicate and
    joiner heads alike.

    The first token of a text has no previous token, yet its row must sum to one. So the mean is
    taken over the queries that have a pair, and a real head scores 1 on those only.
    """
    return Statement(
        Trace(matmul(A, Transpose(M))),
        n,
        given=((entrywise(A, M), A), (matmul(A, ones), ones)),
        on_models=False,
    )


@theorem(
    title="An attention score is at most one",
    chapter=11,
    source=PATTERNS,
    covers=("S3-097", "S3-098", "S3-100"),
)
def attention_score_at_most_one() -> Bound:
    """What is missing from n is the attention on pairs that are not marked, tr A(11ᵀ − M)ᵀ, which
    is a sum of nonnegative numbers. So 1 minus the score is the share of attention spent elsewhere,
    and a score of 0.9 leaves a tenth for all other positions together.
    """
    unmarked = minus(OneMatrix(n, n), M)
    return Bound(
        Trace(matmul(A, Transpose(M))),
        n,
        because=(Entries(entrywise(A, unmarked)),),
        given=(
            (matmul(A, ones), ones),
            Fact("nonnegative", A),
            Fact("nonnegative", unmarked),
        ),
        tight={"A": np.array([[1, 0], [1, 0]]), "M": np.array([[1, 0], [1, 1]])},
        on_models=False,
    )


@theorem(
    title="The pattern of a perfect previous-token head",
    chapter=11,
    source=PATTERNS,
    covers=("S3-097",),
)
def looking_back_scores_one() -> Statement:
    """On n + 1 tokens, Shift has ones just below its diagonal: query i attends to key i − 1 and to
    nothing else. Its attention on the pairs that are marked, which are the same ones, is n: one for
    each query but the first, which has no token before it. Divided by n, the score is 1.
    """
    back = Shift(n + 1)
    return Statement(Trace(matmul(back, Transpose(back))), n, on_models=False)


@theorem(
    title="What uniform attention scores",
    chapter=11,
    source=PATTERNS,
    covers=("S3-097",),
)
def uniform_attention_scores() -> Statement:
    """The zero of the scale. A head without a mask that attends equally everywhere, A = 11ᵀ/n,
    spends (n − 1)/n on the previous tokens of n − 1 queries: a score of 1/n. With a causal mask
    query i (from 0) spreads over i + 1 keys, and the score is the mean of 1/(i + 1) over i ≥ 1,
    (1/2 + … + 1/n)/(n − 1): more, because early queries have little to choose from. `.baseline`
    of `ot.attention_scores` is that number. A short prompt makes every head look like a
    previous-token head: with four tokens uniform attention scores 0.36.
    """
    uniform = matmul(1 / n, OneMatrix(n, n))
    return Statement(Trace(matmul(uniform, Transpose(Shift(n)))), (n - 1) / n, on_models=False)


@theorem(
    title="A causal head never attends to the next position",
    chapter=11,
    source=PATTERNS,
    covers=("S3-097",),
)
def later_positions_score_zero() -> Statement:
    """Positional heads are said to attend to the token itself, the previous one, or the next. In a
    decoder the third kind cannot exist: with the causal mask the attention of query i on key i + 1
    is exactly 0 whatever the scores are, so their sum, tr(Shift · A), is 0. Heads that look ahead
    are found in encoders such as BERT.
    """
    scores = MatrixSymbol("S", n, n)
    return Statement(
        Trace(matmul(Shift(n), RowSoftmax(scores, CausalMask(n)))),
        S.Zero,
        bind=({"S": Source("scores")},),
    )


def _attention_on_same(labels: str) -> Any:
    """Return the attention of queries on earlier keys of the same label, from one-hot rows."""
    rows = MatrixSymbol(labels, n, V if labels == "T" else words)
    return total(entrywise(A, earlier, matmul(rows, Transpose(rows)))) / asked


def _plain_same(labels: str) -> Any:
    def plain(**given: Any) -> Any:
        pattern, rows, queries = given["A"], given[labels], given["q"]
        found: Any = 0
        for i in range(len(pattern)):
            for j in range(i):
                same = sum(rows[i][c] * rows[j][c] for c in range(len(rows[0])))
                found += pattern[i][j] * same
        return Fraction(1, queries) * found

    return plain


@theorem(
    title="The duplicate-token score",
    chapter=11,
    source=f"{PATTERNS}; {WANG}",
    covers=("S3-100",),
)
def duplicate_token() -> Definition:
    """Attention to earlier occurrences of the query's own token. T has a one-hot row for each
    token, so entry (i, j) of T Tᵀ is 1 where the tokens are equal; the strictly lower triangle
    leaves the earlier ones, and q is the number of queries whose token occurred before. In the
    circuit for indirect objects such heads tell that a name is there for the second time.

    The diagonal must be left out. A token is equal to itself, and a head that attends to its own
    position would pass for a duplicate-token head.
    """
    return Definition(
        "duplicate-token score",
        _attention_on_same("T"),
        _plain_same("T"),
        obeys=("attending_only_there_scores_one", "attention_score_at_most_one"),
        on_models=False,
    )


@theorem(
    title="The joiner score: attention within a word",
    chapter=11,
    source=f"{PATTERNS}; {CORREIA}",
    covers=("S3-098",),
)
def joiner() -> Definition:
    """A tokenizer cuts words, and a joiner head puts them together: it attends to the earlier
    pieces of the word that the query is in. B has a row for each token, with a one in the column of
    its word; q is the number of tokens that continue a word.

    The previous token is often a piece of the same word. So a joiner score means little without the
    previous-token score beside it: on the tokens that begin a word, only a positional head looks
    one back.
    """
    return Definition(
        "joiner score",
        _attention_on_same("B"),
        _plain_same("B"),
        obeys=("attending_only_there_scores_one", "attention_score_at_most_one"),
        on_models=False,
    )


@theorem(
    title="Attention scores of models, by loops",
    chapter=11,
    source=PATTERNS,
    covers=("S3-097", "S3-098", "S3-099"),
)
def attention_scores_method() -> Method:
    """`ot.attention_scores` sums over prompts and divides at the end. Here the same by loops over
    queries and keys, with its baseline; `ot.positional_scores` and `ot.joiner_scores` are special
    cases, and `ot.syntactic_scores` counts how often the related token has the most attention.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if not model.n_layers:
            return
        few, layer = list(tokens), model.n_layers - 1
        names = [3 * (i // 3) for i in range(len(few))]
        patterns = model.forward(few, [f"pattern.{layer}"])[f"pattern.{layer}"].tolist()
        bound = gamma(len(few) ** 2 + 4, UNIT)
        same = np.array([[i > j and names[i] == names[j] for j in range(len(few))]
                         for i in range(len(few))])  # fmt: skip
        on_same, on_second, hits = [], [], []
        for pattern in patterns:
            rows = [sum(pattern[i][j] for j in range(i) if names[j] == names[i])
                    for i in range(len(few)) if names[i] < i]  # fmt: skip
            on_same.append(sum(rows) / len(rows))
            back = [pattern[i][i - 2] for i in range(2, len(few))]
            on_second.append(sum(back) / len(back))
            right = [max(range(i + 1), key=pattern[i].__getitem__) == i // 2
                     for i in range(1, len(few))]  # fmt: skip
            hits.append(sum(right) / len(right))
        found = attention_scores(model, few, same)
        yield Trial("chosen pairs", found.values[layer], np.array(on_same), bound)
        shares = [(i - names[i]) / (i + 1) for i in range(len(few)) if names[i] < i]
        yield Trial("baseline", found.baseline or 0.0, sum(shares) / len(shares), bound)
        by_words = joiner_scores(model, few, names).values[layer]
        yield Trial("within words", by_words, np.array(on_same), bound)
        two_back = positional_scores(model, [2], few).values[0, layer]
        yield Trial("two back", two_back, np.array(on_second), bound)
        related = [-1, *(i // 2 for i in range(1, len(few)))]
        scores = syntactic_scores(model, few, related).values[layer]
        yield Trial("related token", scores + 1, np.array(hits) + 1, bound)

    rests = ("attending_only_there_scores_one", "looking_back_scores_one")
    return Method("ot.attention_scores", rests, trials)


# -- patterns of trained models --------------------------------------------------------------------


@theorem(
    title="Previous-token heads in the trained models",
    chapter=11,
    source=f"{PATTERNS}; {OLSSON}",
    covers=("S3-097",),
)
def previous_token_heads_seen() -> Observation:
    """A head is a previous-token head if most of its attention is on the token before, whatever
    that token is: the prompts are random tokens, in which nothing but the position tells where to
    look. Induction needs such a head, so the model that learnt induction should have one.
    """

    def observe(load: Load) -> Observed:
        scores = positional_scores(load("induction"), [1])
        index, value = scores.top(1)[0]
        figure = f"head {index['layer']}.{index['head']} of induction attends {value:.2f} one back"
        return Observed(figure, {"attention to the previous token": value})

    return Observation(
        "some head of `induction` spends more than half of its attention on the previous token, on "
        "random tokens",
        observe,
        {"attention to the previous token": 0.5},
    )


@theorem(
    title="Duplicate-token heads in the trained models",
    chapter=11,
    source=f"{PATTERNS}; {WANG}",
    covers=("S3-100",),
)
def duplicate_token_heads_seen() -> Observation:
    """Random tokens are said twice. The second time every token has one earlier occurrence, and a
    duplicate-token head finds it. Looked for in each trained model with attention.
    """

    def observe(load: Load) -> Observed:
        best = (0.0, "")
        for name in ("one_layer", "two_layer", "induction", "gpt2_tiny"):
            model = load(name)
            scores = duplicate_token_score(model, repeated_prompts(model.d_vocab, n_prompts=4))
            layer, head = np.unravel_index(scores.argmax(), scores.shape)
            best = max(best, (float(scores.max()), f"{layer}.{head} of {name}"))
        figure = f"most attention to earlier occurrences: {best[0]:.2f}, head {best[1]}"
        return Observed(figure, {"attention to the same token": best[0]})

    return Observation(
        "some head of a trained model spends more than half of its attention on earlier "
        "occurrences of the token, on random tokens said twice",
        observe,
        {"attention to the same token": 0.5},
        outcome="not seen",
    )


@theorem(
    title="Joiner heads in the trained model with MLPs",
    chapter=11,
    source=f"{PATTERNS}; {CORREIA}",
    covers=("S3-098",),
)
def joiner_heads_seen() -> Observation:
    """Such heads were found in encoders for translation, and attend exclusively to the earlier
    pieces of the word. The bundled tokenizer has 1024 tokens and cuts most words, so there is much
    to join.
    """

    def observe(load: Load) -> Observed:
        scores = joiner_scores(load("gpt2_tiny"), prompts()[:2])
        index, value = scores.top(1)[0]
        figure = (
            f"head {index['layer']}.{index['head']} of gpt2_tiny spends {value:.2f} within the "
            f"word, uniform attention {scores.baseline:.2f}"
        )
        return Observed(figure, {"attention within the word": value})

    return Observation(
        "on tokens that continue a word some head of gpt2_tiny spends more than half of its "
        "attention on the earlier pieces of the word",
        observe,
        {"attention within the word": 0.5},
    )


@theorem(
    title="Syntactic heads: relations of Python's grammar",
    chapter=11,
    source=f"{PATTERNS}; {VOITA}, §5.2",
    covers=("S3-099",),
)
def syntactic_heads_seen() -> Observation:
    """A head is called syntactic if it attends most to the token that a word depends on (its verb,
    its noun) more often, by ten per cent, than the best fixed offset would. The bundled models read
    Python, whose parser gives exact dependencies: an argument and the function it is given to, a
    value and the name it is assigned to, the second operand and the first, an attribute and its
    object, a statement and the keyword of its block.

    The baseline is what makes the claim strong. An attribute is always two tokens after its object,
    so attention to that offset is right there and shows no grammar.
    """

    def observe(load: Load) -> Observed:
        model = load("gpt2_tiny")
        tables = [python_relations(source) for source in SOURCES]
        related = {
            relation: np.array([table[relation][:N_POS] for table in tables])
            for relation in RELATIONS
        }
        scores = syntactic_scores(model, prompts(), related)
        above, texts = [], []
        for relation in RELATIONS:
            index, value = scores.at(relation=relation).top(1)[0]
            offset = best_offset_score(related[relation])
            above.append(value - offset)
            head = f"{index['layer']}.{index['head']}"
            texts.append(f"{relation} {value:.2f} (head {head}, best offset {offset:.2f})")
        return Observed("; ".join(texts), {"above the best offset": max(above)})

    return Observation(
        "for some relation the accuracy of a head of gpt2_tiny is at least 0.1 above that of the "
        "best fixed offset",
        observe,
        {"above the best offset": 0.1 - 1e-12},
        outcome="not seen",
    )


# -- what a model loses ----------------------------------------------------------------------------


@theorem(
    title="Heads with a function of their own",
    chapter=11,
    source=f"{FRAMEWORK}, “Attention Heads are Independent and Additive”",
    covers=("S1-06",),
)
def head_with_one_function() -> Observation:
    """If a head has a function that can be isolated, taking it away should harm one task and leave
    another as it was. Random tokens said twice are two tasks in one text: the first time there is
    nothing to know but frequencies, the second time the text can be copied. Each head is replaced
    by its mean, which keeps what it always writes.
    """

    def observe(load: Load) -> Observed:
        model = load("induction")
        tokens = repeated_prompts(model.d_vocab, period=24, n_prompts=4)
        change = ablation_losses(model, tokens)
        first = change.values[..., :23].mean(axis=(1, 2))
        again = change.values[..., 24:].mean(axis=(1, 2))
        selective = np.where(np.abs(first) < again / 10, again, 0.0)
        best = int(selective.argmax())
        figure = (
            f"without {change.labels['component'][best]} of induction the loss on repeated tokens "
            f"changes by {again[best]:+.2f} nats, the first time by {first[best]:+.3f}"
        )
        return Observed(figure, {"nats lost on one task only": float(selective[best])})

    return Observation(
        "without some head of `induction` the loss on repeated tokens grows by more than 0.5 nats, "
        "and changes by less than a tenth of that on tokens said for the first time",
        observe,
        {"nats lost on one task only": 0.5},
    )


FACTS = (
    ("from os", " import"), ("for i", " in"), ("if x is", " None"), ("    def f(", "self"),
    ("raise", " ValueError"), ("with open(p)", " as"), ("if x", ":"), ("x = x if y", " else"),
    ("class A(", "object"), ("if x not", " in"),
)  # fmt: skip
"""Beginnings of Python source, and what every programmer knows to follow."""


def _without(model: Model, names: Sequence[str]) -> Model:
    """Return a model with some weights replaced by zeros."""
    return model.changed({name: np.zeros_like(model.weights[name]) for name in names})


def _last_logits(model: Model, beginnings: Sequence[str]) -> list[np.ndarray]:
    """Return the logits at the last token of each text; texts of one length are run together."""
    rows = [load_tokenizer().encode(text) for text in beginnings]
    found = [np.empty(0)] * len(rows)
    for length in {len(tokens) for tokens in rows}:
        some = [number for number, tokens in enumerate(rows) if len(tokens) == length]
        run = model.forward(np.array([rows[number] for number in some]), ["logits"])
        for number, logits in zip(some, run["logits"][:, -1], strict=True):
            found[number] = logits
    return found


def _first_token(text: str) -> int:
    return load_tokenizer().encode(text)[0]


def _loss_on_facts(model: Model) -> float:
    """Return the mean loss on what follows the beginnings of `FACTS`, in nats."""
    answers = [_first_token(after) for _, after in FACTS]
    logits = _last_logits(model, [before for before, _ in FACTS])
    losses = [np.logaddexp.reduce(x) - x[t] for x, t in zip(logits, answers, strict=True)]
    return float(np.mean(losses))


@theorem(
    title="Facts are lost with the MLPs rather than with the heads",
    chapter=11,
    source=f"{FRAMEWORK}, “Attention Heads”; {PRIMER}, “Factuality and hallucinations”",
    covers=("S1-22",),
)
def facts_in_mlps() -> Observation:
    """Attention moves what is there already, so a fact that the prompt does not contain should come
    from elsewhere: possibly from the MLPs. What a small model of Python knows are its idioms, such
    as `in` after `for i`. All MLPs are taken away, and then all heads, by zeros.
    """

    def observe(load: Load) -> Observed:
        model = load("gpt2_tiny")
        whole = _loss_on_facts(model)
        mlps, heads = (
            _loss_on_facts(_without(model, names)) - whole
            for names in (("W_out", "b_out"), ("W_O", "b_O"))
        )
        figure = f"{len(FACTS)} facts: {mlps:+.2f} nats without MLPs, {heads:+.2f} without heads"
        return Observed(figure, {"more lost without MLPs": float(mlps - heads)})

    return Observation(
        "the mean loss on what follows ten beginnings of Python source grows more without the MLPs "
        "of gpt2_tiny than without its heads",
        observe,
        {"more lost without MLPs": 0.0},
        outcome="seen at random too",
    )


AMBIGUOUS = (
    ("print(x", "items[x", ")", "]"),
    ("{x", "(x", "}", ")"),
    ("import x", "from x", "\n", " import"),
    ("for x", "if x", " in", ":"),
    ("lambda x", "def x", ":", "("),
    ("with x", "for x", " as", " in"),
    ("while x", "return x", ":", "\n"),
    ("elif x", "assert x", ":", ","),
    ("('x", '("x', "'", '"'),
    ("del x", "def x", "\n", "("),
)
"""Two texts with the same last token, what follows the first, and what follows the second."""


@theorem(
    title="The context says what an ambiguous token means",
    chapter=11,
    source="a talk on the framework paper: “Paris” next to “Hilton”; "
    f"{FRAMEWORK}, “Virtual weights and the residual stream as a communication channel”",
    covers=("S2-29",),
)
def context_disambiguates() -> Observation:
    """“Paris” alone is a city, and with “Hilton” beside it a name: heads bring the context to the
    token, and later layers read both. In Python source the token x is as ambiguous: after `print(x`
    comes a closing parenthesis, after `items[x` a bracket. Two texts end in the same token, and the
    logit difference between the two continuations should be larger in the text where the first is
    right. A model without layers sees the last token only, and gives the same difference for both
    (`zero_layer_logits`).
    """

    def observe(load: Load) -> Observed:
        texts = [text for first, second, *_ in AMBIGUOUS for text in (first, second)]
        logits = np.array(_last_logits(load("gpt2_tiny"), texts)).reshape(len(AMBIGUOUS), 2, -1)
        right = 0
        for (*_, of_first, of_second), last in zip(AMBIGUOUS, logits, strict=True):
            differences = last[:, _first_token(of_first)] - last[:, _first_token(of_second)]
            right += int(differences[0] > differences[1])
        figure = f"gpt2_tiny tells {right} of {len(AMBIGUOUS)} pairs of contexts apart"
        return Observed(figure, {"pairs told apart": right})

    return Observation(
        "in at least nine of ten pairs of texts with the same last token, the difference of the "
        "logits of the two continuations is larger where the first of them is right",
        observe,
        {"pairs told apart": 8.5},
    )


# -- memory management -----------------------------------------------------------------------------

x, W_OV = MatrixSymbol("x", 1, d), MatrixSymbol("W_OV", d, d)


@theorem(
    title="A head scales an eigenvector of its OV circuit by 1 + λ",
    chapter=11,
    convention="row",
    source=f"{BANDWIDTH}; {MEMORY}",
    covers=("S3-123", "S2-16"),
)
def head_scales_eigenvector() -> Statement:
    """Let a head attend to its own position with all its weight, and let x W_OV = λ x. Then it adds
    λ x to the stream, and x becomes (1 + λ) x: with λ = −1 nothing is left of it, with a positive λ
    it grows. This is how a head deletes: its OV circuit has negative eigenvalues, and it attends to
    the token that holds what is to be deleted.

    With weight a on its own position the factor is 1 + a λ. Attention to another position takes
    away what stands there, from here, which deletes nothing.
    """
    lam, weight = Symbol("lambda", real=True), Symbol("a", real=True)
    return Statement(
        matadd(x, matmul(weight, x, W_OV)),
        matmul(1 + weight * lam, x),
        given=((matmul(x, W_OV), matmul(lam, x)),),
        on_models=False,
    )


@theorem(
    title="Eigenvalues between −2 and 0 shrink the stream",
    chapter=11,
    convention="row",
    source=f"{BANDWIDTH}; {MEMORY}",
    covers=("S3-123",),
)
def negative_eigenvalue_shrinks() -> Bound:
    """‖x‖² − ‖(1 + λ) x‖² = −λ (2 + λ) ‖x‖², which is positive for λ between −2 and 0, and for no
    other. Here λ = −2/(1 + c) with c > 0, which takes each value between −2 and 0 once, so that the
    difference is 4c/(1 + c)² ‖x‖². At λ = −2 the direction is reversed at full length, and below it
    is written back longer: “negative” alone does not say “deleted”.
    """
    c = Symbol("c", positive=True)
    lam = -2 / (1 + c)
    after = matadd(x, matmul(x, W_OV))
    return Bound(
        Trace(matmul(after, Transpose(after))),
        Trace(matmul(x, Transpose(x))),
        because=(Square(x, 4 * c / (1 + c) ** 2),),
        not_attained="the difference is 4c/(1 + c)² ‖x‖², which is positive unless x is 0",
        given=((matmul(x, W_OV), matmul(lam, x)),),
        on_models=False,
    )


@theorem(
    title="Heads that delete in the trained models",
    chapter=11,
    source=f"{BANDWIDTH}; {MEMORY}",
    covers=("S3-123", "S2-16"),
)
def memory_heads_seen() -> Observation:
    """Some heads have large negative eigenvalues in W_OV and primarily attend to the present token,
    “potentially serving to delete information”. The first half is Σ Re λ / Σ |λ| of the bare OV
    circuit (`ot.copying_scores(model, "bare")`), and the second the mean attention to the position
    itself, on Python source. Both are asked of one head.
    """

    def observe(load: Load) -> Observed:
        best = (-1.0, "none")
        for name in ("one_layer", "two_layer", "induction", "gpt2_tiny"):
            model = load(name)
            folded = model.fold_norms() if model.config.norm != "none" else model
            scores = copying_scores(folded, "bare").values
            here = positional_scores(model, [0], prompts()[:2]).values[0]
            both = np.minimum(-scores, here)
            layer, head = np.unravel_index(both.argmax(), both.shape)
            text = f"head {layer}.{head} of {name}: Σ Re λ / Σ |λ| = {scores[layer, head]:.2f}, "
            text += f"attention to its own position {here[layer, head]:.2f}"
            best = max(best, (float(both.max()), text))
        return Observed(best[1], {"the smaller of −score and attention": best[0]})

    return Observation(
        "some head of a trained model has a score of its bare OV circuit below −0.5, and spends "
        "more than half of its attention on its own position",
        observe,
        {"the smaller of −score and attention": 0.5},
    )
