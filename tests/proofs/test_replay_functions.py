"""Certificates of proofs about functions: accepted, and no function is taken for what it is not."""

from __future__ import annotations

import json
import random
import time
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import sympy
from sympy import HadamardProduct, Identity, Inverse, MatrixSymbol, OneMatrix, Trace

from algebra.axioms import AXIOMS
from algebra.certificate import to_json
from algebra.decide import decide
from algebra.language import Family, HeadSum, LayerProduct, OneHot, kron, matadd, matmul
from algebra.nonlinear import Activation, CausalMask, LayerNorm, RMSNorm, RowSoftmax
from proofs import replay
from tests.algebra import test_nonlinear
from tests.proofs.certificates import changed, changes, disguised, is_false
from tests.proofs.test_replay import by_hand, rejected, that_matter

CHANGES = 24  # of each certificate, drawn from several hundred

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
    "no later key": (
        HadamardProduct(RowSoftmax(S, CausalMask(n)), CausalMask(n).T, evaluate=False),
        HadamardProduct(RowSoftmax(S, CausalMask(n)), Identity(n), evaluate=False),
    ),
}
CLAIMS = {
    **{f"true: {name}": claim for name, claim in test_nonlinear.TRUE.items()},
    **{
        f"axiom: {name}": (one.example.lhs, one.example.rhs, one.example.premises)
        for name, one in AXIOMS.items()
    },
    **MORE,
}


@cache
def _certificate(name: str) -> dict[str, Any]:
    verdict = decide(*CLAIMS[name])
    assert verdict.status == "proved", verdict.reason
    made = verdict.certificate
    assert made is not None
    return json.loads(to_json(made))


@pytest.mark.parametrize("name", CLAIMS)
def test_every_proof_has_a_certificate_that_is_accepted(name: str) -> None:
    made = _certificate(name)
    start = time.perf_counter()
    replay.check(made)
    print(f"{name}: {1000 * (time.perf_counter() - start):.1f} ms")
    draw = random.Random(name)
    for _ in range(3):
        replay.check(json.loads(json.dumps(disguised(made, draw))))


def test_all_axioms_that_are_relations_are_met() -> None:
    uses = [use for name in CLAIMS for use in _certificate(name)["uses"]]
    met = {use["fact"][1] for use in uses if use["fact"][0] == "axiom"}
    assert met == {name for name, axiom in AXIOMS.items() if not axiom.built_in}
    assert any(use["fact"][3] for use in uses if use["fact"][0] == "axiom")  # for all heads


@pytest.mark.parametrize("name", CLAIMS)
def test_a_changed_certificate_is_rejected_or_its_claim_is_true(name: str) -> None:
    draw = random.Random(name)
    made = _certificate(name)
    every = list(changes(made))
    for path, value in draw.sample(every, min(CHANGES, len(every))):
        wrong = changed(made, path, value)
        if not rejected(wrong):
            assert not is_false(wrong, draw), path


def test_changes_that_matter_are_rejected() -> None:
    told = [
        (name, change, rejected(wrong))
        for name in CLAIMS
        for change, wrong in that_matter(_certificate(name))
    ]
    assert [(name, change) for name, change, no in told if not no] == []
    assert len(told) > 500


# -- certificates of what is false -----------------------------------------------------------------

N, M, ALPHA = ["Symbol", "n"], ["Symbol", "m"], ["Symbol", "alpha"]
A, B, C, U = (["MatrixSymbol", name] for name in "ABCU")
ONES, ONE, ZERO, EYE = (
    ["OneMatrix", N, N],
    ["OneMatrix", N, 1],
    ["ZeroMatrix", N, N],
    ["Identity", N],
)
MASK = ["CausalMask", N]
SUMS = ["MatMul", B, ONE]
SQUARES, CUBES = (["DiagMatrix", ["HadamardPower", SUMS, power]] for power in (2, 3))
F_0, F_1, F_H, F_K = (["FamilyMember", "F", index] for index in (0, 1, "h", "k"))
G_H, G_K = (["FamilyMember", "G", index] for index in "hk")
BOTH = {"indices": {"h": M, "k": M}}
WIRES = {"rows": [0], "cols": [1], "named": [], "sorts": [N, N]}
COLUMN = {"rows": [0], "cols": [], "named": [], "boxes": [["hole", [0]]], "sorts": [N]}
HERE = {**WIRES, "boxes": [["hole", [0, 1]]]}


def _of(name: str, x: Any) -> Any:
    return ["Activation", name, x]


def _softmax(*x: Any) -> Any:
    return ["RowSoftmax", *x]


def _mul(*x: Any) -> Any:
    return ["MatMul", *x]


def _plus(*x: Any) -> Any:
    return ["MatAdd", *x]


def _had(*x: Any) -> Any:
    return ["HadamardProduct", *x]


def _t(x: Any) -> Any:
    return ["Transpose", x]


def _minus(x: Any) -> Any:
    return ["MatMul", -1, x]


def _use(fact: Any, context: Any = HERE, coefficient: Any = 1) -> Any:
    return {"fact": fact, "coefficient": coefficient, "context": context}


def _axiom(name: str, *of: Any, limits: Any = (), proofs: Any = ()) -> Any:
    return ["axiom", name, list(of), list(limits), list(proofs)]


def _box(name: str, wires: Any, indices: Any = ()) -> Any:
    return ["box", name, list(indices), wires, [], []]


def _given(k: int) -> dict[str, Any]:
    """Return the proof of hypothesis k."""
    wires, named = (WIRES, [0, 1]) if k % 2 == 0 else ({**WIRES, "cols": [], "sorts": [N]}, [0])
    return {**NO_USES, "uses": [_use(["given", k], {**wires, "boxes": [["hole", named]]})]}


NO_USES = {"mode": "normal forms", "splits": [], "fused": False, "defined": {}, "uses": []}


def _said(
    lhs: Any, rhs: Any, name: str, *of: Any, proofs: Any = (), context: Any = HERE, **parts: Any
) -> Any:
    """Return the certificate of what an axiom says."""
    return by_hand(lhs, rhs, uses=[_use(_axiom(name, *of, proofs=proofs), context)], **parts)


def _vanishes(hypothesis: Any, *uses: Any, lhs: Any = A, **parts: Any) -> Any:
    return by_hand(lhs, ZERO, given=[hypothesis], uses=list(uses), **parts)


def _around(*boxes: Any, **parts: Any) -> Any:
    """Return a context of boxes at the entries of a matrix."""
    return {**WIRES, "boxes": list(boxes), **parts}


def _no_root(tree: Any, box: Any, limits: Any = (), named: Any = (), hole: Any = (0, 1)) -> Any:
    """Return uses that A = A∘r∘r∘B = 0 where A∘B = 0: r = B^(-1/2), wherever it is a number."""
    sorts = [N, N, *[M for _ in limits]]
    at = {"named": list(named), "sorts": sorts}
    square = _axiom("rsqrt_square", tree, limits=limits)
    a, hole_of_b = _box("A", [0, 1]), ["hole", list(hole)]
    return [
        _use(square, _around(a, hole_of_b, **at), -1),
        _use(["given", 0], _around(box, box, ["hole", [0, 1]], **at)),
    ]


def _selected(matrix: Any) -> Any:
    return [[_had(matrix, matrix), matrix], [_mul(matrix, ONE), ONE]]


PATTERN = _softmax(A, B)
WEIGHTS = _had(B, _of("exp", A))
ROOT = _of("rsqrt", B)
HIDDEN = _had(ROOT, ROOT, B, A)
BY_ALPHA = _mul(["Pow", ALPHA, -1], A)
EMPTY = _no_root(ROOT, _box("r", [0, 1]))
R_DEFINED = {"defined": {"r": [ROOT]}}
A_B = [_had(A, B), ZERO]
AT_1 = [_had(A, F_1), ZERO]
IF_ONE = _mul(["KroneckerDelta", "j", 1, M], ["FamilyMember", "F", "j"])

FEW = ["Add", N, -1]
FEWER = _softmax(_mul(["OneMatrix", N, FEW], ["CausalMask", FEW]))

FALSE: dict[str, dict[str, Any]] = {
    # what functions are
    "a softmax of columns": by_hand(_softmax(_t(A)), _t(_softmax(A))),
    "scores shifted along columns": by_hand(_softmax(_plus(A, _mul(ONE, _t(ONE), B))), _softmax(A)),
    "scores doubled": by_hand(_softmax(_mul(2, A)), _softmax(A)),
    "equal weights without their number": by_hand(_softmax(ZERO), ONES),
    "equal weights under a mask": by_hand(_softmax(ZERO, A), _mul(["Pow", N, -1], ONES)),
    "a mask forgotten": by_hand(_softmax(A, B), _softmax(A)),
    "a mask for scores": by_hand(_softmax(A, B), _softmax(B, A)),
    "blocks of a softmax": by_hand(
        _softmax(["BlockMatrix", [A, B]]), ["BlockMatrix", [_softmax(A), _softmax(B)]]
    ),
    "a function transposed": by_hand(_of("f", _t(A)), _of("f", A)),
    "another matrix": by_hand(_of("f", A), _of("f", B)),
    "another function": by_hand(_of("f", A), _of("g", A)),
    "a function off the diagonal": by_hand(_of("f", _had(A, EYE)), _had(_of("f", A), EYE)),
    "a function of a sum": by_hand(_of("f", _plus(A, B)), _plus(_of("f", A), _of("f", B))),
    "indices exchanged": by_hand(_of("f", _plus(F_H, G_K)), _of("f", _plus(F_K, G_H)), **BOTH),
    "another free index": by_hand(_of("f", F_H), _of("f", F_K), **BOTH),
    "another head": by_hand(_of("f", F_0), _of("f", F_1)),
    "a head for all": by_hand(["HeadSum", _of("f", F_H), ["h", M]], _mul(M, _of("f", F_0))),
    "a function of a sum of heads": by_hand(
        ["HeadSum", _of("f", F_H), ["h", M]], _of("f", ["HeadSum", F_H, ["h", M]])
    ),
    "any function of zero": by_hand(_of("f", ZERO), ZERO),
    "sigmoid of zero": by_hand(_of("sigmoid", ZERO), ZERO),
    "relu of minus one": by_hand(_of("relu", _minus(ONES)), _minus(ONES)),
    "a negative factor under relu": by_hand(_of("relu", _minus(A)), _minus(_of("relu", A))),
    "any factor under relu": by_hand(_of("relu", _mul(ALPHA, A)), _mul(ALPHA, _of("relu", A))),
    "a factor under gelu": by_hand(_of("gelu", _mul(2, A)), _mul(2, _of("gelu", A))),
    "a factor under a root": by_hand(_of("rsqrt", _mul(4, A)), _mul(2, ROOT)),
    "a norm with eps": by_hand(["RMSNorm", _mul(2, A), 1], ["RMSNorm", A, 1]),
    "two norms": by_hand(["RMSNorm", A, 0], ["LayerNorm", A, 0]),
    "a norm of columns": by_hand(["RMSNorm", _t(A), 0], _t(["RMSNorm", A, 0])),
    "a mask of another kind": by_hand(MASK, _t(MASK)),
    # what axioms say, and of what
    "an unlisted axiom": _said(A, B, "believe_me", A, B),
    "a sum that is no softmax": _said(_mul(A, ONE), ONE, "softmax_sum", A, context=COLUMN),
    "the sum of a transposed softmax": _said(
        _mul(_t(_softmax(A)), ONE), ONE, "softmax_sum", _t(_softmax(A)), context=COLUMN
    ),
    "a mask that is no mask": _said(_had(PATTERN, B), PATTERN, "softmax_mask", PATTERN),
    "a mask by a proof of something else": _said(
        _had(PATTERN, B),
        PATTERN,
        "softmax_mask",
        PATTERN,
        proofs=[{**NO_USES, "mode": "same trees", "lhs": B, "rhs": B}],
    ),
    "a mask under other hypotheses": _said(
        _had(PATTERN, B),
        PATTERN,
        "softmax_mask",
        PATTERN,
        proofs=[{**_given(0), "given": [_selected(B)[0]]}],
    ),
    "any matrix is a causal mask": _said(_had(A, A), A, "causal_mask_is_mask", A),
    "any function reflected": _said(
        _plus(_of("f", A), _minus(_of("f", _minus(A)))), A, "activation_reflected", _of("f", A)
    ),
    "tanh reflected as relu": _said(
        _plus(_of("tanh", A), _minus(_of("tanh", _minus(A)))),
        A,
        "activation_reflected",
        _of("tanh", A),
    ),
    "gelu of gelu": _said(
        _of("gelu", _of("gelu", A)), _of("gelu", A), "relu_idempotent", _of("gelu", _of("gelu", A))
    ),
    "parts of gelu": _said(
        _had(_of("gelu", A), _of("gelu", _minus(A))), ZERO, "relu_parts", _of("gelu", A)
    ),
    "softmax from gelu": _said(
        _had(_softmax(A), _mul(_of("gelu", A), ONES)),
        _of("gelu", A),
        "softmax_exp",
        _softmax(A),
        _of("gelu", A),
    ),
    "the weights of no softmax": _said(
        _had(_softmax(A, A), _mul(_had(_of("exp", A), A), ONES)),
        _had(_of("exp", A), A),
        "softmax_exp",
        _of("exp", A),
        _of("exp", A),
    ),
    "gelu of scaled columns": _said(
        _of("gelu", _mul(A, SQUARES)),
        _mul(_of("gelu", A), SQUARES),
        "relu_scale_columns",
        _of("gelu", _mul(A, SQUARES)),
    ),
    "columns scaled by any numbers": _said(
        _of("relu", _mul(A, ["DiagMatrix", SUMS])),
        _mul(_of("relu", A), ["DiagMatrix", SUMS]),
        "relu_scale_columns",
        _of("relu", _mul(A, ["DiagMatrix", SUMS])),
    ),
    "columns scaled by cubes": _said(
        _of("relu", _mul(A, CUBES)),
        _mul(_of("relu", A), CUBES),
        "relu_scale_columns",
        _of("relu", _mul(A, CUBES)),
    ),
    "rows chosen by any matrix": _said(
        _of("f", _mul(A, B)), _mul(A, _of("f", B)), "function_choose_rows", _of("f", _mul(A, B))
    ),
    "rows chosen by another matrix": _said(
        _of("f", _mul(A, B)),
        _mul(A, _of("f", B)),
        "function_choose_rows",
        _of("f", _mul(A, B)),
        proofs=[_given(0), _given(1)],
        given=_selected(C),
    ),
    "rows chosen of what is no function of rows": _said(
        _t(_mul(A, B)),
        _mul(A, _t(B)),
        "function_choose_rows",
        _t(_mul(A, B)),
        proofs=[_given(0), _given(1)],
        given=_selected(A),
    ),
    "rows chosen under a mask": _said(
        _softmax(_mul(A, B), C),
        _mul(A, _softmax(B, C)),
        "function_choose_rows",
        _softmax(_mul(A, B), C),
        proofs=[_given(0), _given(1)],
        given=_selected(A),
    ),
    "a mask lost with the rows": _said(
        _softmax(_mul(A, B), C),
        _mul(A, _softmax(B)),
        "function_choose_rows",
        _softmax(_mul(A, B), C),
        proofs=[_given(0), _given(1)],
        given=_selected(A),
    ),
    "columns chosen of a softmax": _said(
        _softmax(_mul(B, _t(A))),
        _mul(_softmax(B), _t(A)),
        "activation_choose_columns",
        _softmax(_mul(B, _t(A))),
        proofs=[_given(0), _given(1)],
        given=_selected(A),
    ),
    "columns repeated, not permuted": _said(
        _softmax(_mul(B, A)),
        _mul(_softmax(B), A),
        "softmax_permute_columns",
        _softmax(_mul(B, A)),
        proofs=[_given(0), _given(1)],
        given=_selected(A),
    ),
    "rows chosen by one head for all": by_hand(
        _of("f", _mul(F_K, A)),
        _mul(F_K, _of("f", A)),
        given=_selected(F_H),
        uses=[
            _use(
                _axiom(
                    "function_choose_rows",
                    _of("f", _mul(F_H, A)),
                    limits=[["h", M]],
                    proofs=[_given(0), _given(1)],
                ),
                _around(["hole", [0, 1, 2]], named=[["k", 2]], sorts=[N, N, M]),
            )
        ],
        **BOTH,
    ),
    "two functions of one matrix": _said(
        _of("f", A), _of("g", A), "function_congruence", _of("f", A), _of("g", A), proofs=[NO_USES]
    ),
    "two norms of one matrix": _said(
        ["RMSNorm", A, 0],
        ["RMSNorm", A, 1],
        "function_congruence",
        ["RMSNorm", A, 0],
        ["RMSNorm", A, 1],
        proofs=[NO_USES],
    ),
    "a softmax with a mask and one without": _said(
        _softmax(A, B),
        _softmax(A),
        "function_congruence",
        _softmax(A, B),
        _softmax(A),
        proofs=[NO_USES],
    ),
    "one function of two matrices": _said(
        _of("f", A), _of("f", B), "function_congruence", _of("f", A), _of("f", B), proofs=[NO_USES]
    ),
    # what is not always defined
    "the root of what nobody takes the root of": _vanishes(A_B, *EMPTY, **R_DEFINED),
    "an inverse that is nowhere": by_hand(
        B,
        ZERO,
        given=[[A, ZERO]],
        defined={"z": [["MatPow", A, -1]]},
        uses=[
            _use(
                ["inverse", "z", "left"],
                _around(_box("B", [0, 2]), ["hole", [2, 1]], sorts=[N, N, N]),
                -1,
            ),
            _use(
                ["given", 0],
                _around(_box("B", [0, 2]), _box("z", [2, 3]), ["hole", [3, 1]], sorts=[N, N, N, N]),
            ),
        ],
    ),
    "the root in no layer": _vanishes(
        A_B, *EMPTY, lhs=_mul(["LayerProduct", ROOT, ["l", 0], False], A), **R_DEFINED
    ),
    "the root at a free index, for all": by_hand(
        _plus(A, _of("rsqrt", F_H)),
        _of("rsqrt", F_H),
        given=[[_had(A, IF_ONE), ["ZeroMatrix", N, N], ["j", M]]],
        indices={"h": M},
        defined={"r": [_of("rsqrt", F_K), ["k", M]]},
        uses=[
            _use(
                _axiom("rsqrt_square", _of("rsqrt", F_K), limits=[["k", M]]),
                _around(_box("A", [0, 1]), ["hole", [0, 1, 2]], named=[[1, 2]], sorts=[N, N, M]),
                -1,
            ),
            _use(
                ["given", 0],
                _around(
                    _box("r", [2, 0, 1], [None]),
                    _box("r", [2, 0, 1], [None]),
                    ["hole", [0, 1, 2]],
                    named=[[1, 2]],
                    sorts=[N, N, M],
                ),
            ),
        ],
    ),
    "an inverse at a free index, for all": by_hand(
        _plus(A, ["MatPow", F_H, -1]),
        ["MatPow", F_H, -1],
        given=[[IF_ONE, ZERO, ["j", M]]],
        indices={"h": M},
        defined={"z": [["MatPow", F_K, -1], ["k", M]]},
        uses=[
            _use(
                ["inverse", "z", "left"],
                {
                    **WIRES,
                    "named": [[1, 2]],
                    "boxes": [_box("A", [0, 3]), ["hole", [3, 1, 2]]],
                    "sorts": [N, N, M, N],
                },
                -1,
            ),
            _use(
                ["given", 0],
                {
                    **WIRES,
                    "named": [[1, 2]],
                    "boxes": [
                        _box("A", [0, 3]),
                        _box("z", [2, 3, 4], [None]),
                        ["hole", [4, 1, 2]],
                    ],
                    "sorts": [N, N, M, N, N],
                },
            ),
        ],
    ),
    "weights that sum to zero": by_hand(
        WEIGHTS,
        ZERO,
        given=[[_mul(WEIGHTS, ONE), ["ZeroMatrix", N, 1]]],
        defined={"s": [PATTERN]},
        uses=[
            _use(_axiom("softmax_exp", PATTERN, _of("exp", A)), HERE, -1),
            _use(["given", 0], _around(_box("s", [0, 1]), ["hole", [0]])),
        ],
    ),
    "keys that some see": by_hand(
        _softmax(["BlockMatrix", [A, B]], ["BlockMatrix", [C, C]]),
        ["BlockMatrix", [_softmax(A, C), ZERO]],
    ),
    "scores of keys that nobody sees": by_hand(
        _softmax(["BlockMatrix", [A, B]], ["BlockMatrix", [C, ZERO]]),
        ["BlockMatrix", [_softmax(_plus(A, B), C), ZERO]],
    ),
    "the weights under no mask": by_hand(
        ONE,
        ["ZeroMatrix", N, 1],
        given=[[B, ZERO]],
        defined={"s": [PATTERN]},
        uses=[
            _use(_axiom("softmax_sum", PATTERN), _around(["hole", [0]], cols=[], sorts=[N]), -1),
            _use(
                _axiom(
                    "softmax_mask",
                    PATTERN,
                    proofs=[
                        {
                            **NO_USES,
                            "uses": [
                                _use(["given", 0], _around(_box("B", [0, 1]), ["hole", [0, 1]])),
                                _use(["given", 0], HERE, -1),
                            ],
                        }
                    ],
                ),
                _around(["hole", [0, 1]], cols=[]),
                -1,
            ),
            _use(["given", 0], _around(_box("s", [0, 1]), ["hole", [0, 1]], cols=[])),
        ],
    ),
    "equal where it is defined": by_hand(
        _of("f", A),
        _of("f", ZERO),
        given=[[B, ZERO]],
        uses=[
            _use(
                _axiom(
                    "function_congruence",
                    _of("f", HIDDEN),
                    _of("f", A),
                    proofs=[
                        {
                            **NO_USES,
                            "uses": [
                                _use(
                                    _axiom("rsqrt_square", ROOT),
                                    _around(_box("A", [0, 1]), ["hole", [0, 1]]),
                                )
                            ],
                        }
                    ],
                ),
                HERE,
                -1,
            ),
            _use(
                _axiom(
                    "function_congruence",
                    _of("f", HIDDEN),
                    _of("f", ZERO),
                    proofs=[
                        {
                            **NO_USES,
                            "defined": {"r": [ROOT]},
                            "uses": [
                                _use(
                                    ["given", 0],
                                    _around(
                                        _box("A", [0, 1]),
                                        _box("r", [0, 1]),
                                        _box("r", [0, 1]),
                                        ["hole", [0, 1]],
                                    ),
                                )
                            ],
                        }
                    ],
                )
            ),
        ],
    ),
    "divided by what may vanish, in a box": _vanishes(
        [_mul(ALPHA, A), ZERO],
        _use(["given", 0], _around(_box("z", [0, 2]), ["hole", [2, 1]], sorts=[N, N, N])),
        defined={"z": [_mul(["Pow", ALPHA, -1], EYE)]},
    ),
    "divided by what may vanish, in an axiom": _vanishes(
        [_mul(ALPHA, B), ZERO],
        _use(
            _axiom("activation_reflected", _of("relu", BY_ALPHA)),
            _around(_box("B", [0, 1]), ["hole", [0, 1]]),
            ["Mul", -1, ALPHA],
        ),
        _use(["given", 0], _around(_box("r", [0, 1]), ["hole", [0, 1]])),
        _use(["given", 0], _around(_box("s", [0, 1]), ["hole", [0, 1]]), -1),
        lhs=_had(A, B),
        defined={"r": [_of("relu", BY_ALPHA)], "s": [_of("relu", _minus(BY_ALPHA))]},
    ),
    "the weights of no columns": by_hand(
        A,
        A,
        uses=[
            _use(_axiom("softmax_sum", FEWER), _around(["hole", [0]], cols=[0], sorts=[N]), sign)
            for sign in (1, -1)
        ],
    ),
    "divided by the number of no columns": _vanishes(
        [_mul(FEW, A), ZERO],
        _use(
            ["given", 0],
            _around(_box("z", [2, 3]), ["hole", [0, 1]], sorts=[N, N, N, FEW]),
        ),
        defined={"z": [_softmax(["ZeroMatrix", N, FEW])]},
    ),
}


@pytest.mark.parametrize("name", FALSE)
def test_what_is_false_has_no_certificate(name: str) -> None:
    with pytest.raises(replay.Rejected):
        replay.check(json.loads(json.dumps(FALSE[name])))


# Each check of the checker, what it is replaced by, and what is then accepted.
CHECKS = [
    (" or self.strict:", " and False:", "the root of what nobody takes the root of"),
    ('elif kind == "Inverse" or', "elif", "an inverse that is nowhere"),
    ("key[0] in every else key", "True else key", "the root at a free index, for all"),
    ("key[0] in every else key", "True else key", "an inverse at a free index, for all"),
    (" and not arguments[1:]\n", "\n", "the weights under no mask"),
    ('("softmax_sum", "softmax_exp")', '("softmax_sum",)', "weights that sum to zero"),
    (" and len(ways) == 1:", ":", "keys that some see"),
    (
        "        if marks_of(d.cols) == marks_of(way)\n",
        "",
        "scores of keys that nobody sees",
    ),
    ("demand(not free, ", "demand(True, ", "rows chosen by one head for all"),
    ("self.strict = True\n", "self.strict = False\n", "equal where it is defined"),
    ("False\n            square", "True\n            square", "the root in no layer"),
    ("demand(safe, ", "demand(True, ", "divided by what may vanish, in a box"),
    ("demand(safe, ", "demand(True, ", "divided by what may vanish, in an axiom"),
    ("demand(natural or ", "demand(True or ", "the weights of no columns"),
    ("            _checked({**proof", "            ({**proof", "rows chosen by another matrix"),
    ("{**proof, **claim,", "{**claim, **proof,", "a mask under other hypotheses"),
    ('"rhs": right}', '"rhs": right, **proof}', "a mask by a proof of something else"),
    ("demand(len(proofs) == len(premises), ", "demand(True, ", "a mask that is no mask"),
    ('"softmax_sum", "RowSoftmax", *_', '"softmax_sum", *_', "a sum that is no softmax"),
    (
        '"causal_mask_is_mask", "CausalMask", _',
        '"causal_mask_is_mask", *_',
        "any matrix is a causal mask",
    ),
    ('"relu" | "gelu" | "gelu_tanh" | "silu", x', "_, x", "any function reflected"),
    ('"relu", ["Activation", "relu", _] as x', "_, x", "gelu of gelu"),
    ('"relu_parts", "Activation", "relu"', '"relu_parts", "Activation", _', "parts of gelu"),
    ('demand(power[:2] == ["Activation", "exp"], ', "demand(True, ", "softmax from gelu"),
    ('demand(weights[0] == "RowSoftmax", ', "demand(True, ", "the weights of no softmax"),
    (
        '"relu_scale_columns", "Activation", "relu"',
        '"relu_scale_columns", "Activation", _',
        "gelu of scaled columns",
    ),
    (
        'demand(scale[0] == "DiagMatrix" and scale[1][::2] == ["HadamardPower", 2], ',
        "demand(True, ",
        "columns scaled by any numbers",
    ),
    ('scale[1][::2] == ["HadamardPower", 2]', "True", "columns scaled by cubes"),
    (
        '"RowSoftmax", ["MatMul", p, _, *_] as x:',
        '"RowSoftmax", ["MatMul", p, _, *_] as x, *_:',
        "a mask lost with the rows",
    ),
    (', sums_to_one(["Transpose", q])]', "]", "columns repeated, not permuted"),
    ('demand(other[0][:2] == ["Activation", g], ', "demand(True, ", "two functions of one matrix"),
    ("demand(other[0][::2] == [e[0], eps], ", "demand(True, ", "two norms of one matrix"),
    ("touched.count(wire) == 1 for", "True for", "scores shifted along columns"),
    ("if not kept and not arguments[1:]:", "if not kept:", "equal weights under a mask"),
    (" & self.positive)", ")", "any factor under relu"),
    ("if other == kind and", "if", "another function"),
    (
        "if not any(added((a.terms, ONE), (b.terms, MINUS)) for a, b in pairs):",
        "if True:",
        "another matrix",
    ),
    ("VALUES.get(name, {})", "{0: 0}", "any function of zero"),
]


@pytest.mark.parametrize(("check", "without", "name"), CHECKS)
def test_no_check_is_idle(check: str, without: str, name: str) -> None:
    """Without one of its checks the checker accepts what is false."""
    source = Path(replay.__file__).read_text(encoding="utf-8")
    assert source.count(check) == 1
    mutant = ModuleType("replay_without_a_check")
    exec(compile(source.replace(check, without), mutant.__name__, "exec"), mutant.__dict__)
    mutant.check(json.loads(json.dumps(FALSE[name])))
