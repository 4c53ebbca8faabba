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
from otimes.proofs.catalogue.interventions.patching import minus
from otimes.proofs.catalogue.sources import FRAMEWORK, OLSSON, PRIMER
from otimes.proofs.catalogue.symbols import A, V, d, n, size
from otimes.proofs.catalogue.text import N_POS, SOURCES, prompts
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
    """Most scores of attention heads are one score: mark with 1 in a matrix M the pairs (query,
    key) that the head is supposed to attend to, sum its attention there, and divide by the number q
    of queries that have such a pair. Ones just below the diagonal give the previous-token score,
    ones at earlier occurrences of the same token the duplicate-token score, ones at earlier pieces
    of the same word the joiner score.

    So heads can be classified by what they attend to. The score says nothing about what they move.
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
    """A head that attends to nothing but the marked pairs has the score one. A ∘ M = A says that
    the pattern is zero elsewhere and A1 = 1 that its rows sum to one; then the marked attention is
    n, one for each query.

    This is the upper end of the scale (`attention_score`).

    The first token of a text has no previous token, yet its row must sum to one. So a real head
    scores 1 only if the mean is taken over queries that have a marked pair.
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
    """An attention score is at most one, and what is missing is the share of attention on pairs
    that are not marked. A score of 0.9 leaves a tenth of the attention for all other positions
    together. In the formula M has entries at most 1 and A is a pattern (n × n).
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
    """The pattern of a perfect previous-token head is the shift: query i attends to key i − 1 and
    to nothing else. On n + 1 tokens its attention on these pairs is n, one for each query but the
    first, so the score is 1.

    Such heads are the first part of induction (`induction_model_stream`).
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
    """What previous-token score does a head get that attends equally everywhere? Without a mask, A
    = 11ᵀ/n, the marked attention is (n − 1)/n over n − 1 queries, a score of 1/n. With a causal
    mask query i (from 0) divides its attention over i + 1 keys, and the score is (1/2 + … + 1/n)/(n
    − 1), which is 0.36 for four tokens.

    So a score has to be compared with this baseline, and short prompts make every head look like a
    previous-token head. `ot.attention_scores` gives it as `.baseline`.
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
    """In a model with a causal mask no head attends to the next token: the attention of query i on
    key i + 1 is exactly zero, whatever the scores are, and so is their sum, tr(Shift · A). S (n ×
    n) are arbitrary scores.

    Texts that list heads for the next token speak of encoders such as BERT.
    """
    scores = MatrixSymbol("S", n, n)
    return Statement(
        Trace(matmul(Shift(n), RowSoftmax(scores, CausalMask(n)))),
        S.Zero,
        bind=({"S": Source("scores")},),
        places={"pattern": RowSoftmax(scores, CausalMask(n))},
        bare=False,
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
    """The duplicate-token score measures attention to earlier occurrences of the query's own token.
    Entry (i, j) of T Tᵀ is 1 if the tokens at i and j are equal (T has one-hot rows), M_n − I_n
    keeps the earlier positions, and q is the number of queries whose token occurred before.

    In the circuit for indirect objects, heads of this kind notice that a name occurs for the second
    time.

    The diagonal must be left out. Every token equals itself, so a head that attends to its own
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
    """The joiner score measures attention to the earlier pieces of the same word. A tokenizer cuts
    words into pieces, and a joiner head collects them. B has a 1 for each token in the column of
    its word, and q is the number of tokens that continue a word.

    The previous token is often such a piece. So compare with the previous-token score: on tokens
    that begin a word only a positional head still attends to the token before.
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
    """The attention score of a head is its mean attention to keys that were marked for each query
    (`attention_score`). `ot.attention_scores` computes it for all heads, summed over prompts and
    divided at the end. It is compared with loops over queries and keys, and so is its baseline.
    `ot.positional_scores` and `ot.joiner_scores` are special cases; `ot.syntactic_scores` counts
    how often the related token has the most attention.
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
    """Do the trained models have previous-token heads, with most of their attention on the token
    before, whatever it is? The prompts are random tokens, in which only the position says where to
    attend. Induction needs such a head, so the model that learnt induction should have one.
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
    """Do the trained models have duplicate-token heads? Random tokens are repeated once. In the
    second half every token has exactly one earlier occurrence, and a duplicate-token head attends
    to it (`duplicate_token`). Every trained model with attention is examined.
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
        "occurrences of the token, on random tokens repeated once",
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
    """Does the trained model with MLPs have joiner heads, which attend to the earlier pieces of a
    word? Such heads were found in encoders for translation. The bundled tokenizer has 1024 tokens
    and cuts most words, so there are many pieces to join.
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
    """Do heads follow the grammar of the text? A head is called syntactic if the token on which a
    word depends gets the most attention at least ten per cent more often than the best fixed offset
    would give. The bundled models read Python, whose parser gives exact dependencies: an argument
    and its function, a value and the name it is assigned to, the second operand and the first, an
    attribute and its object, a statement and the keyword of its block.

    The baseline matters. An attribute always stands two tokens after its object, so attention to
    that offset is right there and shows no grammar.
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
    """Does any head have a single function that can be isolated? If so, removing it should harm one
    task and leave another as it was. Random tokens that are repeated once are two tasks in one
    text: in the first half only frequencies are known, in the second half the text can be copied.
    Each head is replaced by its mean output, which keeps what it always writes.
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
    """Is what a model knows, rather than reads, stored in its MLPs? Attention moves what is already
    in the prompt, so other knowledge should be lost when MLPs are removed. A small model of Python
    knows idioms, such as `in` after `for i`. All MLPs are zero-ablated, then all heads, and the
    effects on such predictions are compared.
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
    """Does the context resolve what an ambiguous token means? The token “x” in Python is followed
    by a closing parenthesis after `print(x` and by a bracket after `items[x`. Two texts end in the
    same token; the logit difference of the two continuations should be larger in the text where the
    first one is right.

    Attention has to bring the context to the token. A model without layers sees the last token only
    and gives the same difference for both (`zero_layer_logits`).
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
    """A head that attends to its own position multiplies an eigenvector of its OV circuit by 1 +
    aλ: it adds a x W_OV = aλ x to the stream x, where a is the attention weight. With a = 1 and λ =
    −1 nothing of x is left; with positive λ it grows.

    So negative eigenvalues together with attention to the token itself can delete information.

    Attention to another position subtracts what stands there, which deletes nothing here.
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
    """A head that attends to its own position shortens an eigenvector x of W_OV exactly if its
    eigenvalue λ lies between −2 and 0: ‖x‖² − ‖(1 + λ)x‖² = −λ(2 + λ)‖x‖². In the formula λ is
    written −2/(1 + c) with c > 0, which takes each of these values once.

    At λ = −2 the vector is reversed at full length, and below it is made longer. So “negative
    eigenvalue” alone does not mean “deleted”.
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
    """Do the trained models have heads that delete information? Such heads are described as having
    large negative eigenvalues in W_OV and attending mainly to the current token. Measured are Σ Re
    λ/Σ |λ| of W_OV (`ot.copying_scores(model, "bare")`) and the mean attention to the position
    itself on Python source; one head has to satisfy both.
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
