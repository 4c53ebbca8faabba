"""Chapter 6: induction, written down in weights and proved, and the scores that look for it."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from sympy import (
    BlockMatrix,
    HadamardProduct,
    Identity,
    MatrixExpr,
    MatrixSymbol,
    OneMatrix,
    Symbol,
    Trace,
    Transpose,
    ZeroMatrix,
)
from sympy.matrices.expressions.diagonal import DiagonalOf

from otimes.algebra.facts import Fact
from otimes.algebra.language.linear import OneHot, matadd, matmul
from otimes.algebra.language.nonlinear import CausalMask, RowSoftmax
from otimes.numeric.circuits.behaviour import head_behaviour
from otimes.numeric.induction_by_hand import induction_by_hand
from otimes.numeric.model import Model
from otimes.proofs.catalogue.sources import FRAMEWORK, OLSSON, PRIMER
from otimes.proofs.catalogue.symbols import A, V, X, beta, m, n, p, row
from otimes.proofs.claims import (
    Bound,
    Definition,
    Entries,
    ErrorLaw,
    Method,
    Statement,
    Trial,
)
from otimes.proofs.theorem import lemma, theorem

T = MatrixSymbol("T", n, V)  # the tokens, a one-hot row each
A_1, A_2 = MatrixSymbol("A_1", n, n), MatrixSymbol("A_2", n, n)


@theorem(
    title="An induction model written by hand: the residual stream between its heads",
    chapter=6,
    convention="row",
    source=f"{FRAMEWORK}, “How induction heads work”; {OLSSON}",
    covers=("B18", "S3-103"),
)
def induction_model_stream() -> Statement:
    """An induction model can be written by hand, and this is its first step: a head copies to every
    position the token before it. The stream has three blocks of V numbers each, for the token here,
    the token before and the prediction. The embedding T fills the first. The head's pattern A_1
    attends one position back, and its weights read the first block and write to the second.

    The second head then compares tokens with previous tokens (`induction_model_scores`).
    """
    return Statement(_after_first_head(), _two_tokens(), on_models=False)


@theorem(
    title="An induction model written by hand: its scores are matches",
    chapter=6,
    convention="row",
    source=f"{FRAMEWORK}, “How induction heads work”; {OLSSON}",
    covers=("B18", "S3-103"),
)
def induction_model_scores() -> Statement:
    """In the hand-written induction model the second head compares the token here with the token
    before each earlier position. Its query reads the first block of the stream and its key the
    second, where the first head has put the previous token (`induction_model_stream`). So the score
    of query i and key j is β if token i equals the token before j, and 0 otherwise. A_1 is the
    pattern of the first head, and each 0 is a block of zeros.

    The first head enters through the keys only. This is K-composition, and induction in this model
    depends on it. `ot.induction_by_hand` is this model.
    """
    here, before = _block(0), _block(1)
    stream = _after_first_head()
    return Statement(
        matmul(beta, stream, here, Transpose(matmul(stream, before))),
        matmul(beta, T, Transpose(matmul(A_1, T))),
        on_models=False,
    )


@theorem(
    title="An induction model written by hand: its output",
    chapter=6,
    convention="row",
    source=f"{FRAMEWORK}, “How induction heads work”; {OLSSON}",
    covers=("B18", "S3-103"),
)
def induction_model_output() -> Statement:
    """The hand-written induction model predicts, for each position, the tokens that followed
    earlier copies of the token here: its logits are softmax(βT(A_1T)ᵀ) T. The second head attends
    to positions whose previous token matches and copies the tokens there to the third block of the
    stream, the only one that the unembedding reads. The scores are multiplied by a large number β.

    The left side is the model, weight for weight. A_1 may be any pattern; if it attends exactly one
    position back, A_1T is the text shifted by one.

    What A_1 moved does not reach the logits directly. The virtual head of the two writes nothing.
    """
    here, before, to_come = _block(0), _block(1), _block(2)
    stream = _two_tokens()
    scores = matmul(beta, stream, here, Transpose(matmul(stream, before)))
    pattern = RowSoftmax(scores, CausalMask(n))
    matches = RowSoftmax(matmul(beta, T, Transpose(matmul(A_1, T))), CausalMask(n))
    return Statement(
        matmul(matadd(stream, matmul(pattern, stream, here, Transpose(to_come))), to_come),
        matmul(matches, T),
        on_models=False,
    )


@theorem(
    title="Attention that is kept where tokens match returns the query's own token",
    chapter=6,
    source=f"{OLSSON}, prefix matching; one-hot rows are idempotent",
)
def weights_on_matches() -> Statement:
    """If weights are kept only where two tokens match, then a weighted sum of the second tokens is
    the first token, times a number. T and P hold one token in each row, as one-hot vectors, and B
    (n × m) holds weights. T Pᵀ has a 1 where row i of T and row j of P are the same token, so B ∘
    (T Pᵀ) keeps the matches, and row i of (B ∘ (T Pᵀ)) P is token i times the total weight kept.

    It is used for induction heads, which attend to positions where tokens match
    (`matching_head_finds_its_token`).
    """
    kept = HadamardProduct(B, matmul(T, Transpose(P)), evaluate=False)
    return Statement(
        matmul(kept, P),
        HadamardProduct(T, matmul(kept, OneMatrix(m, V)), evaluate=False),
        given=(_one_token_a_row(T), _one_token_a_row(P)),
        on_models=False,
    )


@theorem(
    title="A head that attends only behind its own token finds that token one position earlier",
    chapter=6,
    source=f"{OLSSON}, prefix matching",
)
def matching_head_finds_its_token() -> Statement:
    """If a head attends only to positions whose previous token (row of P) equals the query's token
    (row of T), then averaging these previous tokens gives the query's token: B P = T. The pattern B
    has rows that sum to one, and B ∘ (T Pᵀ) = B says that it has weight on matches only.

    This is the pattern of an ideal induction head, a softmax with large scores at matches. The
    token that it copies is the one after the match (`induction_predicts_successor`).
    """
    kept = HadamardProduct(B, matmul(T, Transpose(P)), evaluate=False)
    return Statement(
        matmul(B, P),
        T,
        given=(
            _one_token_a_row(T),
            _one_token_a_row(P),
            lemma("weights_on_matches"),
            (kept, B),
            (matmul(B, OneMatrix(m, 1)), OneMatrix(n, 1)),
        ),
        on_models=False,
    )


@theorem(
    title="An induction head predicts the token that followed last time",
    chapter=6,
    convention="row",
    source=f"{FRAMEWORK}, “How induction heads work”; {OLSSON}",
    covers=("S3-103", "B18"),
)
def induction_predicts_successor() -> Statement:
    """An induction head continues a text as it went before: A B … A is followed by B. The matrix N
    (V × V) says which token follows which in the text so far: a position with previous token P has
    the token P N = T. A pattern A_2 that attends only behind copies of the current token (A_2 P =
    T) then outputs T N, the successor of the token at each position.

    The first position has no previous token. A pattern must attend somewhere, so it acts as its own
    predecessor, and P N = T asks that the first token follow itself. That is harmless only if this
    token never occurs again, which is why induction needs a beginning-of-text token.
    """
    Q, N = MatrixSymbol("P", n, V), MatrixSymbol("N", V, V)
    return Statement(
        matmul(A_2, T),
        matmul(T, N),
        given=((matmul(A_2, Q), T), (matmul(Q, N), T)),
        on_models=False,
    )


@theorem(
    title="With score β at matches an induction head errs by O(e^−β)",
    chapter=6,
    source=f"{OLSSON}; softmax as its scores grow",
    covers=("S3-103",),
)
def induction_sharpness() -> ErrorLaw:
    """A softmax with finite scores leaves some attention on positions that do not match. With score
    β at matches and 0 elsewhere, an induction head's error is about n e^{−β} for n such positions;
    the law measured is that it falls like e^{−β}. The error is what is missing from 1 in the logits
    of the hand-written model, on a text that is repeated once.

    So trained heads need large scores at matches.
    """

    def error(step: float) -> float:
        tokens = _said_twice(6)
        model = induction_by_hand(8, len(tokens), -math.log(step))
        logits = model.forward(tokens, ["logits"])["logits"]
        return max(
            1.0 - float(logits[i, tokens[i + 1]])
            for i in range(len(tokens) // 2 + 1, len(tokens) - 1)
        )

    return ErrorLaw(
        r"1 - \ell_{i, t_{i+1}}", error, order=1.0, start=1e-3, halvings=8, small=r"e^{-\beta}"
    )


@theorem(
    title="The hand-written induction model, computed",
    chapter=6,
    source=f"{FRAMEWORK}, “How induction heads work”",
    covers=("B18", "S2-04"),
)
def induction_by_hand_method() -> Method:
    """`ot.induction_by_hand` makes the hand-written induction model as an ordinary model with
    weights, and the usual forward pass runs it. Its logits are those of the formula, which is
    computed by loops over tokens (`induction_model_output`).

    It shows that two layers of attention can do induction. That one layer cannot is another claim.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        few = [0, *(1 + int(token) % 6 for token in tokens)]
        for sharpness in (2.0, 30.0):
            made = induction_by_hand(7, len(few), sharpness)
            value = made.forward(few, ["logits"])["logits"]
            # A score is off by four roundings, a softmax by twice that and n additions; the second
            # scores are β times the first weights. Doubled for what is of higher order.
            u, size = np.finfo(float).eps / 2, len(few)
            first = u * (8 * sharpness + 2 * size + 8)
            bound = 2 * (2 * sharpness * first + 8 * u * sharpness + first)
            plain = _induction_by_loops(few, 7, sharpness)
            yield Trial(f"logits of the model, β = {sharpness:g}", value, np.array(plain), bound)
            weights = _induction_weights(7, len(few), sharpness)
            for name, found in made.weights.items():
                expected = weights.get(name, np.zeros(found.shape))
                yield Trial(
                    f"{name}, β = {sharpness:g}", np.asarray(found), expected, 4 * u * expected
                )

    return Method(
        "ot.induction_by_hand",
        (
            "induction_model_stream",
            "induction_model_scores",
            "induction_model_output",
            "induction_predicts_successor",
        ),
        trials,
        law=r"\mathrm{softmax}(\beta\, T (A_1 T)^\top)\, T",
    )


@theorem(
    title="The prefix-matching score",
    chapter=6,
    source=f"{OLSSON}, “Per-head analysis”; {PRIMER}, “Induction heads”",
    covers=("S3-104",),
)
def prefix_matching() -> Definition:
    """The prefix-matching score tells induction heads from others: how much a head attends to the
    position just after an earlier occurrence of the current token, averaged over the positions
    whose token has occurred before. B (n × n) has a 1 at each such pair of positions, and p is the
    number of positions that are asked.

    The score is about attention alone. A head may attend there and write something else, so a
    copying score is used besides (`copying_on_prompt`).
    """

    def plain(**given: Any) -> Any:
        pattern, places, asked = given["A"], given["B"], given["p"]
        total = sum(
            pattern[i][j] * places[i][j] for i in range(len(pattern)) for j in range(len(pattern))
        )
        return Fraction(1, asked) * total

    marked = MatrixSymbol("B", n, n)
    return Definition(
        "prefix matching",
        Trace(matmul(A, Transpose(marked))) / p,
        plain,
        obeys=("prefix_matching_at_most_one",),
        on_models=False,
    )


@theorem(
    title="The prefix-matching score is at most one",
    chapter=6,
    source=f"{OLSSON}, “Per-head analysis”",
    covers=("S3-104",),
)
def prefix_matching_at_most_one() -> Bound:
    """The prefix-matching score is at most one: the attention of each position sums to one, and the
    score counts only part of it for each position that is asked. In the formula b has a 1 for these
    positions and B marks the places that count.

    It reaches one if all attention of these positions is on marked pairs.
    """
    marked, asked = MatrixSymbol("B", n, n), MatrixSymbol("b", n, 1)
    ones = OneMatrix(n, 1)
    rest = matadd(matmul(asked, Transpose(ones)), matmul(-1, marked))
    return Bound(
        Trace(matmul(A, Transpose(marked))),
        Trace(matmul(Transpose(ones), asked)),
        because=(Entries(HadamardProduct(A, rest, evaluate=False)),),
        given=(
            Fact("nonnegative", A),
            Fact("nonnegative", rest),
            (matmul(A, ones), ones),
        ),
        tight={"A": [[1, 0], [1, 0]], "B": [[0, 0], [1, 0]], "b": [[0], [1]]},
        on_models=False,
    )


@theorem(
    title="The copying score of a head on a prompt",
    chapter=6,
    convention="row",
    source=f"{OLSSON}, “Per-head analysis”, copying",
    covers=("S3-104",),
)
def copying_on_prompt() -> Definition:
    """The copying score of a head on a prompt is how much it raises the logits of the very tokens
    that it attends to, on average over positions. The diagonal of X W_V W_O W_U Tᵀ is the effect of
    each position on the logit of its own token; the pattern A averages it.

    Together with prefix matching it identifies induction heads.

    It is in units of logits and depends on the prompt. The copying score by eigenvalues
    (`copying_scores_method`) is about the whole vocabulary and uses no prompt.
    """

    def plain(**given: Any) -> Any:
        pattern, stream, tokens = given["A"], given["X"], given["T"]
        W_V, W_O, W_U = given["W_V"], given["W_O"], given["W_U"]
        size, total = len(pattern), 0
        for i in range(size):
            for j in range(size):
                own = sum(
                    stream[j][a] * W_V[a][k] * W_O[k][b] * W_U[b][t] * tokens[j][t]
                    for a in range(len(W_V))
                    for k in range(len(W_O))
                    for b in range(len(W_U))
                    for t in range(len(tokens[j]))
                    if tokens[j][t]
                )
                total += pattern[i][j] * own
        return [[Fraction(1, size) * total]]

    own = matmul(X, row.W_V, row.W_O, row.W_U, Transpose(T))
    return Definition(
        "copying on a prompt",
        matmul(1 / n, OneMatrix(1, n), A, DiagonalOf(own)),
        plain,
        on_models=False,
    )


@theorem(
    title="Scores of heads by what they attend to",
    chapter=6,
    source=f"{OLSSON}, “Per-head analysis”",
    covers=("S3-104",),
)
def induction_scores_method() -> Method:
    """`ot.head_behaviour` runs a model on random tokens that are repeated once, and averages its
    attention patterns: attention to the previous token, and attention to the token after the
    earlier occurrence of the current one, which is p − 1 positions back for a repeated part of
    length p.

    Random tokens are used because only the repetition can then be predicted.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if not model.n_layers:
            return
        size = min(len(tokens), model.n_ctx // 2)
        prompt = [*tokens[:size], *tokens[:size]]
        found = head_behaviour(model, np.array([prompt])).values
        previous, same, prefix = np.zeros((3, model.n_layers, model.n_heads))
        earlier = [[j for j in range(i) if prompt[j] == prompt[i]] for i in range(2 * size)]
        for layer in range(model.n_layers):
            pattern = model.forward(prompt, [f"pattern.{layer}"])[f"pattern.{layer}"].tolist()
            for head in range(model.n_heads):
                A = pattern[head]
                looks = [A[i][i - 1] for i in range(1, 2 * size)]
                previous[layer, head] = math.fsum(looks) / len(looks)
                looks = [A[i][i - size + 1] for i in range(size, 2 * size)]
                prefix[layer, head] = math.fsum(looks) / len(looks)
                looks = [A[i][j] for i, before in enumerate(earlier) for j in before]
                same[layer, head] = math.fsum(looks) / sum(map(bool, earlier))
        bound = 2 * size * np.finfo(float).eps  # a mean of that many weights, each at most one
        yield Trial("previous token", found[0], previous, bound)
        yield Trial("duplicate token", found[1], same, bound)
        yield Trial("prefix matching", found[2], prefix, bound)

    return Method(
        "ot.head_behaviour",
        ("prefix_matching_at_most_one",),
        trials,
        law=r"\frac1p \sum_{i \ge p} A_{i, i-p+1}",
    )


B, P = MatrixSymbol("B", n, m), MatrixSymbol("P", m, V)


def _after_first_head() -> MatrixExpr:
    """Return the stream of the model between its heads, n × 3 V."""
    embedded = BlockMatrix([[T, ZeroMatrix(n, V), ZeroMatrix(n, V)]])
    return matadd(embedded, matmul(A_1, embedded, _block(0), Transpose(_block(1))))


def _two_tokens() -> MatrixExpr:
    """Return the same stream by its blocks: the tokens, the tokens before, and nothing yet."""
    return BlockMatrix([[T, matmul(A_1, T), ZeroMatrix(n, V)]])


def _block(number: int) -> MatrixExpr:
    """Return what chooses one of three blocks of the stream, 3 V × V."""
    return BlockMatrix([[Identity(V) if k == number else ZeroMatrix(V, V)] for k in range(3)])


def _one_token_a_row(tokens: MatrixSymbol) -> tuple[Any, Any]:
    """Return what says that a row has one entry that is not zero: t_u t_v = 0 unless u = v."""
    u = Symbol("u", integer=True)
    column = matmul(tokens, OneHot(u, V))
    repeated = matmul(column, OneMatrix(1, V))
    return (
        HadamardProduct(tokens, repeated, evaluate=False),
        matmul(column, Transpose(OneHot(u, V))),
    )


def _said_twice(period: int) -> list[int]:
    once = random.Random(0).sample(range(1, period + 2), period)
    return [0, *once, *once]


def _induction_weights(d_vocab: int, n_ctx: int, sharpness: float) -> dict[str, np.ndarray]:
    """Return the weights of the induction model, entry by entry.

    The stream holds the token here, the token before, the token to come, and the position.
    """
    width, d_head = 3 * d_vocab + n_ctx, max(d_vocab, n_ctx)
    W_E, W_U = np.zeros((d_vocab, width)), np.zeros((width, d_vocab))
    W_pos = np.zeros((n_ctx, width))
    W_Q, W_K, W_V = np.zeros((3, 2, 1, width, d_head))
    W_O = np.zeros((2, 1, d_head, width))
    for token in range(d_vocab):
        W_E[token, token] = W_U[2 * d_vocab + token, token] = 1
        W_Q[1, 0, token, token] = sharpness * math.sqrt(d_head)  # the token here asks
        W_K[1, 0, d_vocab + token, token] = 1  # for the token before
        for layer in (0, 1):
            W_V[layer, 0, token, token] = W_O[layer, 0, token, (1 + layer) * d_vocab + token] = 1
    for at in range(n_ctx):
        place = 3 * d_vocab + at
        W_pos[at, place] = W_K[0, 0, place, at] = 1
        W_Q[0, 0, place, max(at - 1, 0)] = sharpness * math.sqrt(d_head)
    ends = {"W_E": W_E, "W_pos": W_pos, "W_U": W_U}
    return {**ends, "W_Q": W_Q, "W_K": W_K, "W_V": W_V, "W_O": W_O}


def _induction_by_loops(tokens: Sequence[int], d_vocab: int, sharpness: float) -> list[list[float]]:
    def weights(scores: Sequence[float]) -> list[float]:
        powers = [math.exp(score - max(scores)) for score in scores]
        return [power / math.fsum(powers) for power in powers]

    size = range(len(tokens))
    first = [weights([sharpness * (j == max(i - 1, 0)) for j in range(i + 1)]) for i in size]
    found = []
    for i in size:
        matches = [
            math.fsum(first[j][k] for k in range(j + 1) if tokens[k] == tokens[i])
            for j in range(i + 1)
        ]
        second = weights([sharpness * each for each in matches])
        found.append(
            [
                math.fsum(second[j] for j in range(i + 1) if tokens[j] == token)
                for token in range(d_vocab)
            ]
        )
    return found
