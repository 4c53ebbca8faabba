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
    """The stream has three blocks: the token here, the token before, and what is to come; the
    embedding fills the first. The first head, whose pattern A₁ looks one position back, reads the
    first block and writes to the second: W_V chooses the one, W_O is the other, transposed. So
    every position then holds its token and, beside it, the one before.
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
    """The second head asks with the token here for a key whose *token before* is the same, which
    the first head has copied there (`induction_model_stream`).

    The left side is that model, weight for weight, a stack of blocks of any size; the right side is
    what its second head compares: β where the token of the query is the one that the first head saw
    from the key, 0 elsewhere. The first head enters through the keys alone. That is K-composition,
    and without it there is no induction. `ot.induction_by_hand` is this model.
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
    """The second head copies the token that it attends to into the block of what is to come, and
    the unembedding reads that block only. Its pattern is the softmax, over what has been said, of
    its scores on the stream that the first head left (`induction_model_stream`). So the logits are
    softmax(β T (A₁T)ᵀ) T: each token gets the attention to where it stood behind the token that is
    here now.

    The left side is the model, weight for weight. A₁ may be any pattern here; with exact attention
    one position back, A₁T is the text moved by one. What A₁ moved does not come through to the
    logits by itself: the virtual head of the two writes nothing.
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
    """T and P hold a token each in every row. Keep of some weights A only those where row i of T
    and row j of P are the same token, and mix P with them: what comes out at i is the token of row
    i, times the weight that was kept.

    T Pᵀ has a one at each match, and multiplying entry by entry keeps the matches.
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
    """A pattern that looks only where the *token before* is the query's own token, and whose rows
    sum to one, averages copies of that token: mixing the tokens before gives the tokens here.

    This is the pattern of an induction head at its best, a softmax with large scores at matches.
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
    """Let N say which token follows which in the text so far, and P hold the token before each
    position. A pattern that looks only behind its own token then predicts, everywhere at once, the
    token that N says: A B … A is continued with B.

    A position needs a token before it. The first has none, and a pattern, which must look
    somewhere, makes it its own predecessor: P N = T then asks that the first token follow itself.
    That is harmless only for a token that never comes again: this is why induction needs a BOS.
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
    """Scores are finite, so a little attention is left on positions that do not match: with scores
    β at matches and 0 elsewhere, about n e^−β. The step here is e^−β, the error what is missing
    from 1 in the logits of the model written by hand, on a text that is said twice.

    Trained heads have to find the same compromise: large scores for matches, and little to lose.
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
    """The weights of the model written by hand, made into a model like any other and run by the
    same forward pass as the trained ones: its logits are those of the theorem, computed by loops
    over tokens. So two layers can do induction; that one layer cannot is another claim.
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
    """How much a head attends to the token *after* the earlier occurrence of the present one, on
    average over positions whose token has occurred. B marks the places: a one for each of the p
    positions that are asked, in the column after its earlier occurrence.

    The score is about attention alone. A head may look there and write something else, which is
    why a second score asks what it copies.
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
    """All attention of a position together is one, and the score counts some of it, for each of the
    positions that are asked. What is missing is the attention to where B has no mark: the entries
    of A times 1 − B in the rows that are asked, b.
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
    """What a head adds to the logits of the very tokens that it attends to, on average over the
    prompt: the diagonal of X W_OV W_U Tᵀ, each position's effect on the logit of its own token,
    averaged with the pattern.

    It is in units of logits and depends on the prompt; the copying score by eigenvalues is about
    the whole vocabulary and no prompt.
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
    """`ot.head_behaviour` runs a model on random tokens said twice and averages patterns: attention
    to the token before, and to the token after the earlier occurrence. Random tokens are used so
    that nothing but the repetition can be known.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if not model.n_layers:
            return
        size = min(len(tokens), model.n_ctx // 2)
        prompt = [*tokens[:size], *tokens[:size]]
        found = head_behaviour(model, np.array([prompt])).values
        previous = np.zeros((model.n_layers, model.n_heads))
        prefix = np.zeros((model.n_layers, model.n_heads))
        for layer in range(model.n_layers):
            pattern = model.forward(prompt, [f"pattern.{layer}"])[f"pattern.{layer}"].tolist()
            for head in range(model.n_heads):
                A = pattern[head]
                looks = [A[i][i - 1] for i in range(1, 2 * size)]
                previous[layer, head] = math.fsum(looks) / len(looks)
                looks = [A[i][i - size + 1] for i in range(size, 2 * size)]
                prefix[layer, head] = math.fsum(looks) / len(looks)
        bound = 2 * size * np.finfo(float).eps  # a mean of that many weights, each at most one
        yield Trial("previous token", found[0], previous, bound)
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
