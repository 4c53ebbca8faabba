"""Certificates of proofs about functions: accepted, and no function is taken for what it is not."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any

import pytest
import sympy
from sympy import HadamardProduct, Identity, Inverse, MatrixSymbol, OneMatrix, Trace

from otimes.algebra.decide.axioms import AXIOMS
from otimes.algebra.decide.certificate import to_json
from otimes.algebra.language.defined import Quotient
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import Family, HeadSum, OneHot, kron, matadd, matmul
from otimes.algebra.language.nonlinear import Activation, CausalMask, LayerNorm, RMSNorm, RowSoftmax
from otimes.algebra.verdict import decide
from otimes.proofs import replay
from tests.algebra.decide.test_axioms import provable
from tests.algebra.language import test_nonlinear
from tests.proofs.certificates import changed, changes, disguised
from tests.proofs.forged import (
    ONE,
    ONES,
    A,
    B,
    C,
    I,
    O,
    as_lemma,
    box,
    by_hand,
    cancel,
    congruent,
    equal_of,
    had,
    mul,
    of,
    plus,
    said,
    selects,
    softmax,
    square,
    t,
    transposed,
    use,
)
from tests.proofs.forged import F as F_
from tests.proofs.forged import G as G_
from tests.proofs.forged import X as X_
from tests.proofs.test_replay import LONG, assert_true, rejected, that_matter

# Axioms without functions of their own; claims with equations use them.
OF_EQUATIONS = {"inverse", "inverse_commutes", "inverse_of_square", "gram_zero", "product_cancel"}
CHANGES = 24 if LONG else 8  # of each certificate, drawn from several hundred

n, m, d, H = sympy.symbols("n m d H", integer=True, positive=True)
h, i, j, l = sympy.symbols("h i j l", integer=True)  # noqa: E741 (a layer)
X, W = MatrixSymbol("X", n, d), MatrixSymbol("W", d, d)
S, P, v = MatrixSymbol("S", n, n), MatrixSymbol("P", n, n), MatrixSymbol("v", n, 1)
two, wide = MatrixSymbol("T", n, 2), MatrixSymbol("Y", d, 3)
F, R = Family("F", (H,), d, d), Family("R", (H,), n, n)
G, K = Family("G", (3,), d, d), Family("K", (2,), 3, 3)


def _f(e: Any) -> Any:
    return Activation("f", e)


def _relu(e: Any) -> Any:
    return Activation("relu", e)


def _parts(e: Any) -> Any:
    return matadd(_relu(e), matmul(-1, _relu(matmul(-1, e))))


def _row(index: Any, e: Any) -> Any:
    return matmul(OneHot(index, n).T, e)


def _selects(e: Any) -> list[Any]:
    return [(HadamardProduct(e, e, evaluate=False), e), (e * OneMatrix(n, 1), OneMatrix(n, 1))]


def _scores(e: Any) -> Any:
    return matmul(X, e, X.T)


def _f_diagonal(e: Any) -> Any:
    return HadamardProduct(Identity(n), Activation("exp", e), evaluate=False)


def _reciprocal(e: Any) -> Any:
    return Activation("reciprocal", e)


def _masked(e: Any) -> Any:
    return RowSoftmax(e, CausalMask(n))


def _divided(e: Any) -> Any:
    kept = HadamardProduct(e, CausalMask(n), evaluate=False)
    return Quotient(kept, kept * OneMatrix(n, n))


MORE: dict[str, tuple[Any, ...]] = {
    "heads one by one": (HeadSum(_f(X * G[h]), (h, 3)), matadd(*[_f(X * G[k]) for k in range(3)])),
    "a pattern for each of three heads": (
        HeadSum(RowSoftmax(_scores(G[h])) * OneMatrix(n, 1), (h, 3)),
        3 * OneMatrix(n, 1),
    ),
    "the pattern of one head": (RowSoftmax(_scores(G[1])) * OneMatrix(n, 1), OneMatrix(n, 1)),
    "two columns": (RowSoftmax(two + v * OneMatrix(1, 2)) * OneMatrix(2, 1), OneMatrix(n, 1)),
    "shifted scores, head by head": (
        HeadSum(RowSoftmax(v * OneMatrix(1, 3) + X * wide) * K[h], (h, 2)),
        matadd(*[RowSoftmax(X * wide) * K[k] for k in (0, 1)]),
    ),
    "an entry of a sum": (matmul(RowSoftmax(_row(i, S)), OneMatrix(n, 1))[0, 0], sympy.Integer(1)),
    "entries summed": (sympy.Sum(RowSoftmax(S)[i, j], (j, 0, n - 1)), sympy.Integer(1)),
    "one axiom at two free indices": (
        matadd(_parts(_row(i, S)), _parts(_row(j, S))),
        matadd(_row(i, S), _row(j, S)),
    ),
    "rows chosen by each head": (
        HeadSum(_f(matmul(R[h], X, W)), (h, H)),
        HeadSum(matmul(R[h], _f(X * W)), (h, H)),
        _selects(R[h]),
    ),
    "rows chosen by one head": (
        _f(matmul(R[h], X, W)),
        matmul(R[h], _f(X * W)),
        _selects(R[j]),
    ),
    "an inverse in scores": (RowSoftmax(_scores(W * Inverse(W))), RowSoftmax(X * X.T)),
    "layers of functions": (
        LayerProduct(Identity(d) + _relu(G[l]), (l, 3)),
        matmul(*[Identity(d) + _relu(G[k]) for k in (2, 1, 0)]),
    ),
    "relu of blocks": (
        _parts(sympy.BlockMatrix([[X, X]])),
        sympy.BlockMatrix([[X, X]]),
    ),
    "relu of what is positive": (_relu(Activation("exp", X)), Activation("exp", X)),
    "functions of functions": (
        RowSoftmax(_f(X * G[0]) * _f(X * G[1]).T) * OneMatrix(n, 1),
        OneMatrix(n, 1),
    ),
    "beside identities": (
        _f(matmul(kron(X, OneMatrix(m, m)), kron(W, Identity(m)))),
        kron(_f(X * W), OneMatrix(m, m)),
    ),
    "each head is centred": (
        HeadSum(LayerNorm(X * F[h]) * OneMatrix(d, 1), (h, H)),
        sympy.ZeroMatrix(n, 1),
    ),
    "the size of each head": (
        Trace(HeadSum(RMSNorm(X * F[h]) * RMSNorm(X * F[h]).T, (h, H))),
        H * n * d,
    ),
    "a function on the diagonal": (Trace(Activation("exp", S)), Trace(_f_diagonal(S))),
    "the reciprocal of a unit column": (_reciprocal(OneHot(0, n)), OneHot(0, n)),
    "one mask, scores in two forms": (
        RowSoftmax(_masked(matadd(S, v * OneMatrix(1, n))), CausalMask(n)),
        _divided(Activation("exp", _masked(S))),
    ),
    "no later key": (
        HadamardProduct(RowSoftmax(S, CausalMask(n)), CausalMask(n).T, evaluate=False),
        HadamardProduct(RowSoftmax(S, CausalMask(n)), Identity(n), evaluate=False),
    ),
}
CLAIMS = {
    **{f"true: {name}": claim for name, claim in test_nonlinear.TRUE.items()},
    **{
        f"axiom: {name}": (said.lhs, said.rhs, said.premises)
        for name, said in ((name, provable(one)) for name, one in AXIOMS.items())
    },
    **MORE,
}


@cache
def _certificate(name: str) -> dict[str, Any]:
    verdict = decide(*CLAIMS[name])
    assert verdict.status == "proved", verdict.reason
    made = verdict.certificate
    assert made is not None
    return dict(json.loads(to_json(made)))


@pytest.mark.parametrize("name", CLAIMS)
def test_every_proof_has_a_certificate_that_is_accepted(name: str) -> None:
    made = _certificate(name)
    replay.check(made)
    draw = random.Random(name)
    for _ in range(3):
        replay.check(disguised(made, draw))


def test_all_axioms_that_are_relations_are_met() -> None:
    facts = [fact for name in CLAIMS for fact in _certificate(name)["proof"].get("facts", [])]
    met = {fact[2] for fact in facts}
    assert met <= set(replay.AXIOMS["axioms"])
    assert met >= set(replay.AXIOMS["axioms"]) - OF_EQUATIONS
    assert any(fact[1] for fact in facts)  # for all heads


@pytest.mark.parametrize("name", CLAIMS)
def test_a_changed_certificate_is_rejected_or_its_claim_is_true(name: str) -> None:
    draw = random.Random(name)
    made = _certificate(name)
    every = list(changes(made))
    for path, value in draw.sample(every, min(CHANGES, len(every))):
        wrong = changed(made, path, value)
        if not rejected(wrong):
            assert_true(wrong, made, draw, path)


def test_changes_that_matter_are_rejected() -> None:
    told = [
        (name, change, rejected(wrong))
        for name in [*CLAIMS][:: 1 if LONG else 3]
        if "symmetric argument" not in name  # which the checker sees without the axiom
        for change, wrong in that_matter(_certificate(name))
    ]
    assert [(name, change) for name, change, no in told if not no] == []
    assert len(told) > (1500 if LONG else 500)


# -- what functions are, and what axioms say ------------------------------------------------------

ROWS, COLUMNS = (["size", number] for number in (0, 1))
MASK = ["CausalMask", ROWS]
SUMS = mul(B, ONE)
CUBES = ["DiagMatrix", ["HadamardPower", SUMS, 3]]
SQUARES = ["DiagMatrix", ["HadamardPower", SUMS, 2]]
F_0, F_1, F_H, F_K = (t(F_, index) for index in (0, 1, ["i", 0], ["i", 1]))
G_H, G_K = (t(G_, index) for index in (["i", 0], ["i", 1]))
BOTH = {"indices": [["h", COLUMNS], ["k", COLUMNS]]}
PATTERN = softmax(A, B)
HIDDEN = had(of("rsqrt", B), of("rsqrt", B), B, A)
GIVEN = [{"rule": "cancel", "uses": [use(fact)]} for fact in (0, 1)]


def chosen(lhs: Any, rhs: Any, name: str, form: int, **values: Any) -> dict[str, Any]:
    """Return what an axiom says of A, which chooses rows."""
    return said(lhs, rhs, name, form, GIVEN, given=selects(A), **values)


FALSE: dict[str, dict[str, Any]] = {
    "scores shifted along columns": by_hand(
        softmax(plus(A, mul(ONE, transposed(ONE), B))), softmax(A)
    ),
    "equal weights without their number": by_hand(softmax(O), ONES),
    "equal weights under a mask": by_hand(softmax(O, A), mul(["Pow", ROWS, -1], ONES)),
    "a mask forgotten": by_hand(PATTERN, softmax(A)),
    "a mask for scores": by_hand(PATTERN, softmax(B, A)),
    "blocks of a softmax": by_hand(
        softmax(["BlockMatrix", [A, B]]), ["BlockMatrix", [softmax(A), softmax(B)]]
    ),
    "keys that some see": by_hand(
        softmax(["BlockMatrix", [A, B]], ["BlockMatrix", [C, C]]),
        ["BlockMatrix", [softmax(A, C), O]],
    ),
    "scores of keys that nobody sees": by_hand(
        softmax(["BlockMatrix", [A, B]], ["BlockMatrix", [C, O]]),
        ["BlockMatrix", [softmax(plus(A, B), C), O]],
    ),
    "a function transposed": by_hand(of("f", transposed(A)), of("f", A)),
    "another matrix": by_hand(of("f", A), of("f", B)),
    "another function": by_hand(of("f", A), of("g", A)),
    "a function off the diagonal": by_hand(of("f", had(A, I)), had(of("f", A), I)),
    "indices exchanged": by_hand(of("f", plus(F_H, G_K)), of("f", plus(F_K, G_H)), **BOTH),
    "another free index": by_hand(of("f", F_H), of("f", F_K), **BOTH),
    "another head": by_hand(of("f", t(X_, 0)), of("f", t(X_, 1))),
    "a head for all": by_hand(["HeadSum", of("f", F_H), COLUMNS], mul(COLUMNS, of("f", F_0))),
    "a function of a sum of heads": by_hand(
        ["HeadSum", of("f", F_H), COLUMNS], of("f", ["HeadSum", F_H, COLUMNS])
    ),
    "sigmoid of zero": by_hand(of("sigmoid", O), O),
    "relu of minus one": by_hand(of("relu", mul(-1, ONES)), mul(-1, ONES)),
    "a factor under gelu": by_hand(of("gelu", mul(2, A)), mul(2, of("gelu", A))),
    "a factor under a root": by_hand(of("rsqrt", mul(4, A)), mul(2, of("rsqrt", A))),
    "a norm with eps": by_hand(["RMSNorm", mul(2, A), 1], ["RMSNorm", A, 1]),
    "two norms": by_hand(["RMSNorm", A, 0], ["LayerNorm", A, 0]),
    "a norm of columns": by_hand(["RMSNorm", transposed(A), 0], transposed(["RMSNorm", A, 0])),
    "a mask of another kind": by_hand(MASK, transposed(MASK)),
    "an unlisted axiom": said(A, B, "believe_me", 0, X=A),
    "an unlisted form": said(mul(PATTERN, ONE), ONE, "softmax_sum", 2, S=A, M=B),
    "a value too many": said(mul(softmax(A), ONE), ONE, "softmax_sum", 0, S=A, M=B),
    "a value too few": said(mul(PATTERN, ONE), ONE, "softmax_sum", 1, S=A),
    "a sum that is no softmax": said(mul(A, ONE), ONE, "softmax_sum", 0, S=A),
    "the sum of a transposed softmax": said(
        mul(transposed(softmax(A)), ONE), ONE, "softmax_sum", 0, S=A
    ),
    "a mask by a proof of something else": said(
        had(PATTERN, B), PATTERN, "softmax_mask", 0, [{"rule": "cancel"}], S=A, M=B
    ),
    "any matrix is a causal mask": said(had(A, A), A, "causal_mask_is_mask", 0, n=ROWS),
    "any function reflected": said(
        plus(of("f", A), mul(-1, of("f", mul(-1, A)))), A, "activation_reflected", 0, g="f", X=A
    ),
    "gelu of gelu": said(of("gelu", of("gelu", A)), of("gelu", A), "relu_idempotent", 0, X=A),
    "parts of gelu": said(had(of("gelu", A), of("gelu", mul(-1, A))), O, "relu_parts", 0, X=A),
    "softmax from gelu": said(
        had(softmax(A), mul(of("gelu", A), ONES)), of("gelu", A), "softmax_exp", 0, S=A
    ),
    "gelu of scaled columns": said(
        of("gelu", mul(A, SQUARES)),
        mul(of("gelu", A), SQUARES),
        "relu_scale_columns",
        0,
        S=A,
        w=SUMS,
    ),
    "columns scaled by cubes": said(
        of("relu", mul(A, CUBES)),
        mul(of("relu", A), CUBES),
        "relu_scale_columns",
        0,
        S=A,
        w=SUMS,
    ),
    "rows chosen by any matrix": said(
        of("f", mul(A, B)), mul(A, of("f", B)), "function_choose_rows", 1, g="f", P=A, X=B
    ),
    "rows selected under a transpose": chosen(
        transposed(mul(A, B)), mul(A, transposed(B)), "function_choose_rows", 1, g="f", P=A, X=B
    ),
    "rows chosen under a mask": chosen(
        softmax(mul(A, B), C), mul(A, softmax(B, C)), "function_choose_rows", 0, P=A, X=B
    ),
    "columns chosen of a softmax": chosen(
        softmax(mul(B, transposed(A))),
        mul(softmax(B), transposed(A)),
        "activation_choose_columns",
        0,
        g="f",
        S=B,
        Q=transposed(A),
    ),
    "columns repeated, not permuted": said(
        softmax(mul(B, A)),
        mul(softmax(B), A),
        "softmax_permute_columns",
        0,
        [*GIVEN, {"rule": "cancel"}],
        given=selects(A),
        S=B,
        Q=A,
    ),
    "rows chosen by one head for all": by_hand(
        of("f", mul(F_K, A)),
        mul(F_K, of("f", A)),
        use(2, 1, [[2]], **square(sizes=[COLUMNS], free=[[1, [2]]])),
        given=selects(F_H),
        facts=[
            [
                "axiom",
                [COLUMNS],
                "function_choose_rows",
                1,
                {"g": "f", "P": t(F_, ["i", 2]), "X": A},
                GIVEN,
            ]
        ],
        **BOTH,
    ),
    # B = 0: exp(A) ∘ B vanishes, and there are no weights
    "weights that sum to zero": by_hand(
        had(of("exp", A), B),
        O,
        use(1, -1),
        use(0, 1, **square(box(PATTERN, [0], [1]), sizes=[ROWS], hole=[[0], []])),
        given=[[[], mul(had(of("exp", A), B), ONE), ["ZeroMatrix", ROWS, 1]]],
        facts=[["axiom", [], "softmax_exp", 1, {"S": A, "M": B}, []]],
    ),
    # B = 0: A ∘ r ∘ r ∘ B is 0 where r is no number
    "equal where it is defined": by_hand(
        of("f", A),
        of("f", O),
        use(1, -1),
        use(2, 1),
        given=[[[], B, O]],
        facts=[
            equal_of(
                of("f", HIDDEN), of("f", other), [{"rule": "cancel", "facts": facts, "uses": uses}]
            )
            for other, facts, uses in (
                (
                    A,
                    [["axiom", [], "rsqrt_square", 0, {"X": B}, []]],
                    [use(1, 1, **square(box(A, [0], [1])))],
                ),
                (
                    O,
                    [],
                    [
                        use(
                            0,
                            1,
                            **square(box(A, [0], [1]), *[box(of("rsqrt", B), [0], [1])] * 2),
                        )
                    ],
                ),
            )
        ],
    ),
}


@pytest.mark.parametrize("name", FALSE)
def test_what_is_false_has_no_certificate(name: str) -> None:
    with pytest.raises(replay.Rejected):
        replay.check(FALSE[name])


def test_their_true_neighbours_have() -> None:
    for made in (
        said(mul(softmax(A), ONE), ONE, "softmax_sum", 0, S=A),
        chosen(of("f", mul(A, B)), mul(A, of("f", B)), "function_choose_rows", 1, g="f", P=A, X=B),
        chosen(softmax(mul(A, B)), mul(A, softmax(B)), "function_choose_rows", 0, P=A, X=B),
        congruent(of("f", A), of("f", B), GIVEN[0], given=[[[], A, B]]),
        by_hand(softmax(plus(A, mul(B, ONES))), softmax(A)),
        by_hand(of("relu", mul(4, A)), mul(4, of("relu", A))),
        by_hand(of("rsqrt", mul(4, A)), mul(["Rational", 1, 2], of("rsqrt", A))),
    ):
        replay.check(made)


@pytest.mark.parametrize("norm", [RMSNorm, LayerNorm])
def test_norms_of_blocks_one_below_the_other(norm: Any) -> None:
    """The ones in the definition of a norm are cut as its argument is."""
    k = sympy.Symbol("k", integer=True, positive=True)
    R, Q = MatrixSymbol("R", m, d), MatrixSymbol("Q", k, d)

    def stacked(*rows: Any) -> Any:
        return sympy.BlockMatrix([[row] for row in rows])

    for lhs, rhs in (
        (norm(stacked(X, R)), stacked(norm(X), norm(R))),
        (norm(stacked(X, stacked(R, Q))), stacked(norm(X), norm(R), norm(Q))),
        (norm(stacked(X, R) * W), stacked(norm(X * W), norm(R * W))),
        (norm(stacked(X, R) + stacked(X, R) * W), stacked(norm(X + X * W), norm(R + R * W))),
        (norm(norm(stacked(X, R))), stacked(norm(norm(X)), norm(norm(R)))),
    ):
        verdict = decide(lhs, rhs)
        assert verdict.status == "proved", verdict.reason
        assert replay.check(json.loads(to_json(verdict.certificate)))
    assert decide(norm(stacked(X, R)), stacked(norm(X), R)).status == "refuted"


@pytest.mark.parametrize(("function", "form"), [("log", 1), ("sqrt", 1), ("exp", 0)])
def test_logarithms_and_roots_are_injective_where_the_statement_has_them(
    function: str, form: int
) -> None:
    """A lemma is about total functions, under which log(-1) and log(-2) are both 0."""
    made = said(
        A,
        B,
        "function_injective",
        form,
        [cancel(use(0))],
        g=function,
        S=A,
        T=B,
        given=[[[], of(function, A), of(function, B)]],
    )
    assert replay.check(made)
    within = {**made, "proof": as_lemma(made)}
    within["proof"]["proofs"] = [cancel(use(0))]
    if form == 0:
        assert replay.check(within)
    else:
        with pytest.raises(replay.Rejected, match="not defined in the statement"):
            replay.check(within)
