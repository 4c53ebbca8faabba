"""Each kind of claim passes its checks when it is right, and fails each of them when it is not."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import (
    Identity,
    Inverse,
    MatrixSymbol,
    Min,
    OneMatrix,
    Rational,
    Symbol,
    Trace,
    Transpose,
    ZeroMatrix,
    sqrt,
)
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.errors import OtimesError
from otimes.algebra.facts import Fact, attention_pattern
from otimes.algebra.language.linear import HeadSum, OneHot, matadd, matmul
from otimes.algebra.language.nonlinear import RowSoftmax
from otimes.numeric.binding import Run, Source, run_of
from otimes.numeric.load import load_model
from otimes.numeric.model import Model
from otimes.numeric.tokenizer import sample_tokens
from otimes.proofs.catalogue.symbols import A, X, d, d_head, m, n, row
from otimes.proofs.claims import (
    Bound,
    Claim,
    Definition,
    Entries,
    ErrorLaw,
    Example,
    Lemma,
    Load,
    Method,
    NonIdentity,
    Observation,
    Observed,
    Property,
    Square,
    Statement,
    Trial,
)
from otimes.proofs.evidence import TheoremReport
from otimes.proofs.theorem import Theorem, lemma
from otimes.proofs.verification import verify_on_runs

RUNS = [run_of(load_model("two_layer"), [int(t) for t in sample_tokens(8)])]
ONES = OneMatrix(n, 1)
a = MatrixSymbol("a", n, 1)
b = MatrixSymbol("b", n, 1)
B = MatrixSymbol("B", n, n)
C = MatrixSymbol("C", n, n)


def report(claim: Claim, runs: Sequence[Run] = RUNS) -> TheoremReport:
    entry = Theorem("mine", "Mine", 1, "either", "here", (), "prose", lambda: claim)
    return verify_on_runs(entry, runs)


def gram(x: Any, y: Any) -> Any:
    return Trace(matmul(Transpose(x), y))


# Cauchy and Schwarz, by Lagrange's identity: the difference is half the square of a bᵀ − b aᵀ.
CAUCHY = Bound(
    gram(a, b) ** 2,
    gram(a, a) * gram(b, b),
    [Square(matadd(matmul(a, Transpose(b)), matmul(-1, b, Transpose(a))), Rational(1, 2))],
    tight={"a": [[1], [2]], "b": [[2], [4]]},
    on_models=False,
)
RANK = Property(Fact("rank_at_most", matmul(row.W_V, row.W_O), Min(d, d_head)))
STOCHASTIC = Property(
    Fact("row_stochastic", matmul(A, B)),
    [
        Fact("nonnegative", A),
        Fact("rows_sum_to_one", A),
        Fact("nonnegative", B),
        Fact("rows_sum_to_one", B),
    ],
    on_models=False,
)
MEAN = Statement(
    matmul(A, matadd(X, matmul(ONES, MatrixSymbol("c", 1, d)))),
    matadd(matmul(A, X), matmul(ONES, MatrixSymbol("c", 1, d))),
    given=[(matmul(A, ONES), ONES)],
    on_models=False,
)


def scores_by_loops(n: int, d: int, d_head: int, X: Any, W_Q: Any, W_K: Any) -> Any:
    found = np.zeros((n, n), dtype=object)
    for k in range(d_head):
        query = [sum(X[i, c] * W_Q[c, k] for c in range(d)) for i in range(n)]
        key = [sum(X[j, c] * W_K[c, k] for c in range(d)) for j in range(n)]
        for i in range(n):
            for j in range(n):
                found[i, j] += query[i] * key[j]
    return found


SCORES = Definition(
    "scores",
    matmul(matmul(X, row.W_Q), Transpose(matmul(X, row.W_K))),
    scores_by_loops,
)


def softmax_by_loops(n: int, m: int, S: Any) -> Any:
    weights = np.zeros((n, m))
    for i in range(n):
        largest = max(S[i])
        total = sum(np.exp(S[i, j] - largest) for j in range(m))
        for j in range(m):
            weights[i, j] = np.exp(S[i, j] - largest) / total
    return weights


SOFTMAX = Definition(
    "softmax",
    RowSoftmax(MatrixSymbol("S", n, m)),
    softmax_by_loops,
    bind=({"S": Source("scores")},),
    on_models=False,
)


def derivative(order: float) -> ErrorLaw:
    return ErrorLaw("e", lambda h: abs(np.exp(h) - 1 - h), order)


def sums(model: Model, layer: int) -> np.ndarray:
    return np.asarray(model.W_V[layer, 0].sum(0, keepdims=True))


def trials(wrong: float = 0.0) -> Callable[[Model, Sequence[int]], Iterator[Trial]]:
    def compare(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        for layer in range(model.n_layers):
            W = model.W_V[layer, 0]
            plain = np.array([[sum(row_) for row_ in W.T.tolist()]])
            bound = len(W) * 2.0**-52 * np.abs(W).sum(0, keepdims=True)
            yield Trial(f"layer {layer}", sums(model, layer) * (1 + wrong), plain, bound)

    return compare


def anything(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
    yield Trial("a bound that allows anything", np.ones(3), np.zeros(3), np.inf)


def zeros(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
    yield Trial("zeros", np.zeros(3), np.zeros(3), 0.0)


METHOD = Method(f"{__name__}.sums", ["kron_mul_kron"], trials())


def trained(load: Load) -> Observed:
    """Tell the trained model from the controls."""
    return Observed("its name", {"share": 0.9 if load("zero_layer").name == "zero_layer" else 0.1})


def constant(value: float) -> Callable[[Load], Observed]:
    return lambda load: Observed(str(value), {"share": value})


SEEN = Observation("it is above one half", trained, {"share": 0.5})
FAILS = NonIdentity(matmul(B, C), matmul(C, B))

AT_RANDOM = "seen at random too"

GOOD: dict[str, tuple[Claim, str]] = {
    "bound": (CAUCHY, "proved"),
    "rank": (RANK, "proved"),
    "property": (STOCHASTIC, "proved"),
    "under a hypothesis": (MEAN, "proved"),
    "definition": (SCORES, "defined"),
    "definition with a function": (SOFTMAX, "defined"),
    "error law": (derivative(2), "measured"),
    "method": (METHOD, "checked"),
    "seen": (SEEN, "seen"),
    "seen at random too": (replace(SEEN, observe=constant(0.9), outcome=AT_RANDOM), AT_RANDOM),
    "no control": (replace(SEEN, observe=constant(0.9), control=False), "measured"),
    "not seen": (replace(SEEN, observe=constant(0.5), outcome="not seen"), "not seen"),
    "cannot": (Observation("half", cannot="no such model"), "cannot be tried here"),
    "no identity": (FAILS, "fails"),
    "a rank where an inverse exists": (
        Property(Fact("rank_at_most", matmul(Inverse(B), X), Min(n, d)), on_models=False),
        "proved",
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_right_claim_passes(name: str) -> None:
    claim, state = GOOD[name]
    found = report(claim)
    assert found.passed, found
    assert found.state == state
    assert found.kind == claim.kind


HALF = Square(CAUCHY.because[0].matrix, 1)  # type: ignore[union-attr]
BAD: dict[str, tuple[Claim, str]] = {
    "equal sides": (Statement(matmul(B, C), matmul(B, C), on_models=False), "proof"),
    "a bound by a wrong sum": (replace(CAUCHY, because=[HALF]), "proof"),
    "a bound the wrong way": (
        Bound(CAUCHY.larger, CAUCHY.smaller, [Square(HALF.matrix, Rational(-1, 2))]),
        "proof",
    ),
    "a bound by entries of unknown sign": (
        Bound(0, Trace(matmul(Transpose(ONES), B, ONES)), [Entries(B)], on_models=False),
        "proof",
    ),
    "a tight case that is not": (
        replace(CAUCHY, tight={"a": [[1], [2]], "b": [[2], [1]]}),
        "more",
    ),
    "a bound that nothing says is attained": (replace(CAUCHY, tight=None), "more"),
    "a rank too small": (Property(Fact("rank_at_most", RANK.fact.subject, 1)), "proof"),
    "a rank that is true and too large": (
        replace(RANK, fact=Fact("rank_at_most", RANK.fact.subject, d)),
        "more",
    ),
    "a rank too large": (Property(Fact("rank_at_most", RANK.fact.subject, d + d_head)), "more"),
    "a property without a hypothesis": (
        replace(STOCHASTIC, given=STOCHASTIC.given[1:]),
        "proof",
    ),
    "a hypothesis too many": (
        replace(MEAN, given=[*MEAN.given, (matmul(B, B), B)]),
        "mutants",
    ),
    "a property with a hypothesis too many": (
        replace(STOCHASTIC, given=[*STOCHASTIC.given, Fact("symmetric", C)]),
        "mutants",
    ),
    "no hypothesis": (replace(MEAN, given=[]), "proof"),
    "loops that say something else": (
        replace(SCORES, plain=lambda **k: scores_by_loops(**{**k, "W_K": 2 * k["W_K"]})),
        "exact",
    ),
    "loops that say nothing": (replace(SCORES, obeys=["no_such_theorem"]), "more"),
    "another power": (derivative(1.5), "proof"),
    "a wrong function": (replace(METHOD, trials=trials(1e-12)), "models"),
    "a function that is held to nothing": (replace(METHOD, trials=anything), "models"),
    "a function of zeros": (replace(METHOD, trials=zeros), "models"),
    "a sign that is not needed": (replace(CAUCHY, given=[Fact("nonnegative", a)]), "more"),
    "a function that is not there": (replace(METHOD, function="ot.sums"), "proof"),
    "a function that no trial calls": (replace(METHOD, function="ot.held"), "mutants"),
    "a function that rests on nothing": (replace(METHOD, rests_on=["no_such_theorem"]), "more"),
    "an observation that comes out the other way": (replace(SEEN, outcome="not seen"), "proof"),
    "a value that training does not explain": (replace(SEEN, observe=constant(0.9)), "proof"),
    "a criterion for another value": (replace(SEEN, above={"other": 0.5}), "proof"),
    "a threshold that the words do not name": (replace(SEEN, above={"share": 0.3}), "proof"),
    "an identity said to fail": (NonIdentity(matmul(B, Identity(n)), B), "proof"),
    "an erratum that is right": (
        replace(MEAN, printed={"E99": (matmul(B, Identity(n)), B)}),
        "more",
    ),
    "an erratum that is right under the hypotheses": (
        replace(MEAN, printed={"E99": (matmul(A, ONES), ONES)}),
        "more",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_wrong_claim_fails_where_it_is_wrong(name: str) -> None:
    claim, where = BAD[name]
    found = report(claim)
    assert not found.passed
    assert found.state == "failed"
    failed = {
        "proof": found.proof.status in ("error", "undecided", "refuted"),
        "exact": found.exact is not None and not found.exact.passed,
        "models": not found.on_models,
        "mutants": found.mutants is not None and not found.mutants.passed,
        "more": not all(check.passed for check in found.more),
    }
    assert failed[where], found


def test_numbers_at_which_all_is_zero_show_nothing() -> None:
    """Of two rows only (1, -1) and its negative have mean zero and mean square one."""
    z, small = MatrixSymbol("z", 1, n), "both sides were zero at all numbers that were tried"
    unit = [
        (matmul(z, Transpose(z)), matmul(n, Identity(1))),
        (matmul(z, ONES), ZeroMatrix(1, 1)),
    ]
    centring = matadd(Identity(n), matmul(-1 / n, ONES, Transpose(ONES)))
    shadow = matadd(centring, matmul(-1 / n, Transpose(z), z))
    stated = Statement(matmul(shadow, shadow), shadow, given=unit, on_models=False)
    found = report(stated)
    assert found.proof.status == "proved"
    assert found.exact is not None
    assert not found.exact.passed
    assert found.exact.detail == small
    larger = replace(stated, given=[*unit, Example({"z": [[1, 1, -1, -1]]})])
    assert report(larger).exact == replace(found.exact, passed=True, detail="", examples=40)


def test_a_bound_with_room_to_spare_hides_no_mistake_on_a_model() -> None:
    """The sum of all scores squared is far from its bound: only the equation tells what is off."""
    S = MatrixSymbol("S", n, n)
    sides = (gram(S, matmul(ONES, Transpose(ONES))) ** 2, n**2 * gram(S, S))
    cauchy = Bound(*sides, [], bind=({"S": Source("pattern")},))
    (seen,) = report(cauchy).models
    assert not seen.passed


def test_a_bound_that_is_too_wide_to_see_anything_is_no_evidence() -> None:
    """Behind a softmax an inverse with a large condition number leaves nothing of a bound."""
    M, N = (MatrixSymbol(name, d_head, d_head) for name in "MN")
    bind = {"M": Source("W_V", rows=32), "N": Source("W_Q", rows=32), "X": Source("qk_in")}
    reads = matmul(X, row.W_Q, M, Inverse(M), N, Inverse(N))
    pattern = RowSoftmax(matmul(reads, Transpose(matmul(X, row.W_K))))
    plain = RowSoftmax(matmul(X, row.W_Q, Transpose(matmul(X, row.W_K))))
    (seen,) = report(Statement(pattern, plain, bind=(bind,))).models
    assert not seen.passed
    assert seen.why.startswith("the bound is so wide")


def test_a_rank_that_no_matrix_of_the_shape_exceeds_is_not_seen_on_a_model() -> None:
    """On a prompt of 8 tokens no scores have a rank above 8, whatever d_head is."""
    scores = matmul(matmul(X, row.W_Q), Transpose(matmul(X, row.W_K)))
    claim = Property(Fact("rank_at_most", scores, Min(n, d, d_head)))
    assert not report(claim).on_models
    many = replace(claim, bind=({"X": Source("W_E", rows=48)},))
    (seen,) = report(many).models
    assert seen.applies
    assert seen.passed


def test_a_wrong_form_in_print_is_refuted_or_does_not_fit() -> None:
    printed = {
        "E98": (matmul(A, X), matmul(-1, A, X)),
        "E99": lambda: (matmul(X, A), X),
    }
    refuted, unfit = report(replace(MEAN, printed=printed)).more
    assert refuted.passed
    assert refuted.seen.startswith("refuted:\n")
    assert unfit.passed
    assert unfit.seen.startswith("does not fit together")


def test_a_lemma_is_named_among_what_a_proof_uses() -> None:
    assert report(MEAN).proof.used == ("hypothesis 1",)
    averaged = Lemma("averages", *matmul_of_ones(MEAN), ())
    assert report(replace(MEAN, given=[averaged])).proof.used == ("averages",)
    assert report(Statement(matadd(B, B), matmul(2, B), on_models=False)).proof.used == ()


def test_what_a_lemma_assumes_must_be_given() -> None:
    assuming = Lemma("averages", *matmul_of_ones(MEAN), ((matmul(B, B), B),))
    found = report(replace(MEAN, given=[assuming]))
    assert not found.passed
    assert "averages assumes" in found.proof.detail


def test_a_hypothesis_that_only_a_lemma_needs_is_needed() -> None:
    """Without it the lemma is gone too; what a lemma does not assume is not needed for it."""
    squares = (matmul(B, B), B)
    assuming = Lemma("averages", *matmul_of_ones(MEAN), (squares,))
    found = report(replace(MEAN, given=[squares, assuming]))
    assert found.mutants is not None
    assert not [each for each in found.mutants.escaped if "hypothesis" in each]
    idle = report(replace(MEAN, given=[squares, replace(assuming, given=())]))
    assert idle.mutants is not None
    assert [each for each in idle.mutants.escaped if "without hypothesis 1" in each]


def test_a_mutant_that_nothing_settles_has_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    settled = report(STOCHASTIC).mutants
    assert settled is not None
    assert settled.still_true
    monkeypatch.setattr("otimes.proofs.checks.properties.derives", lambda fact, given: None)
    found = report(STOCHASTIC).mutants
    assert found is not None
    assert len(found.escaped) == len(settled.still_true)
    assert "neither derived nor refuted by 40 examples" in found.escaped[0]


def test_definitions_and_failures_speak_of_facts_and_examples_too() -> None:
    """Whatever stands among hypotheses, what is spoken of are the sides of equations."""
    given = [Fact("nonnegative", A), Example({"A": [[1]]}), (matmul(A, ONES), ONES)]
    assert ONES in replace(SCORES, given=given).expressions
    assert ONES in replace(FAILS, given=given).expressions


def test_a_bound_of_a_size_that_a_mutant_loses_is_no_claim() -> None:
    one_factor = Property(Fact("rank_at_most", matmul(row.W_V, row.W_O), d_head), on_models=False)
    found = report(one_factor)
    assert found.mutants is not None
    assert found.mutants.ill_shaped > 0


def test_a_lemma_is_an_earlier_theorem_at_other_symbols() -> None:
    stated = lemma("kron_mul_kron")
    some = min(stated.lhs.atoms(MatrixSymbol), key=lambda symbol: symbol.name)
    other = MatrixSymbol("other", *some.shape)
    assert other in lemma("kron_mul_kron", **{some.name: other}).lhs.atoms(MatrixSymbol)
    with pytest.raises(OtimesError, match="has no symbol nothing"):
        lemma("kron_mul_kron", nothing=other)
    with pytest.raises(OtimesError, match="there is no theorem"):
        lemma("no_such_theorem")


def matmul_of_ones(stated: Statement) -> tuple[Any, Any]:
    """Return the hypothesis that a lemma of the tests stands for."""
    (each,) = stated.given
    return each


def test_the_numbers_of_a_pattern_are_those_of_one() -> None:
    from otimes.proofs.hypotheses import assignments

    found = list(assignments(attention_pattern(A), matmul(A, X), count=20))
    assert len(found) == 20
    for each in found:
        pattern = each.arrays["A"]
        assert np.all(pattern >= 0)
        assert np.all(pattern.sum(1) == 1)
        assert not np.any(np.triu(pattern.astype(float), 1))


def test_a_bound_with_a_root_is_searched_where_the_root_is_a_number() -> None:
    root = Bound(sqrt(n) * Trace(Identity(1)), n * Trace(Identity(1)), [], on_models=False)
    assert not report(root).passed


ON_MODEL = replace(MEAN, on_models=True, bind=({"c": Source("W_E", rows=1)},))


def test_a_hypothesis_that_nearly_holds_widens_the_bound_by_its_residual() -> None:
    """The rows of the pattern then sum to 1 + 1e-6, and the sides differ by as much."""
    run = RUNS[0]
    arrays = {**run.arrays, "pattern": run.arrays["pattern"] * (1 + 1e-6)}
    (seen,) = report(ON_MODEL, [replace(run, arrays=arrays)]).models
    assert seen.applies
    assert 0.9 < seen.ratio <= 1
    (usual,) = report(ON_MODEL).models
    assert usual.applies
    assert usual.ratio <= 1
    assert usual.sensitivity < 1e-12


def test_a_hypothesis_that_does_not_hold_on_a_model_shows_nothing_there() -> None:
    run = RUNS[0]
    arrays = {**run.arrays, "pattern": run.arrays["pattern"] * 2}
    found = report(ON_MODEL, [replace(run, arrays=arrays)])
    assert not found.models[0].applies
    assert "hypotheses do not hold" in found.models[0].why
    assert not found.passed


def test_an_index_is_a_number_on_a_model() -> None:
    """Σ_j a_ij x_j at some position i: on a model i is 1, and what is wrong there is seen."""
    i, j = Symbol("i", integer=True), Symbol("j", integer=True)
    weight = MatrixElement(A, i, j)
    read = matmul(Transpose(OneHot(i, n)), A, X)
    terms = HeadSum(matmul(weight, Transpose(OneHot(j, n)), X), (j, n))
    found = report(Statement(read, terms))
    assert found.passed
    assert found.models[0].applies
    assert found.models[0].ratio <= 1
    wrong = NonIdentity(read, matmul(2, terms), on_models=True)
    assert report(wrong).passed
    assert not report(replace(wrong, rhs=terms)).passed


def test_a_mutant_that_lost_a_size_of_the_bound_is_ill_shaped() -> None:
    claim = Property(Fact("rank_at_most", matmul(A, X, row.W_V), Min(d, d_head, n)))
    found = report(claim)
    assert found.mutants is not None
    assert found.mutants.ill_shaped
