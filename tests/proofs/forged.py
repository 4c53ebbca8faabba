"""Certificates of what is false, made by hand; for each guard of the checker one that it stops.

`FORGED` has them by name. Each claim fails at the numbers that a comment beside it gives, or is
false at sight (1 = 2, shapes that differ). `GUARDS` says which guard of `proofs/replay.py` alone
rejects which of them; `FORMAL` has the guards that no false claim is known to need, and why.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Tree = Any

n, m, L = (["size", k] for k in range(3))
a, b = (["scalar", k] for k in range(2))
A, B, C, U, V, S = (["tensor", k] for k in range(6))
F, G, X, W, Y = range(6, 11)
TENSORS = [
    *[[name, [], n, n] for name in "ABC"],
    ["U", [], n, m],
    ["V", [], m, n],
    ["S", [], 1, 1],
    ["F", [m], n, n],
    ["G", [m], n, n],
    ["X", [2], n, n],
    ["W", [L], n, n],
    ["Y", [L], 1, 1],
]
I, O, ONES = ["Identity", n], ["ZeroMatrix", n, n], ["OneMatrix", n, n]  # noqa: E741
ONE, O_1 = ["OneMatrix", n, 1], ["ZeroMatrix", 1, 1]
S_1, PI = ["OneMatrix", 1, 1], ["pi"]
h, k = ["i", 0], ["i", 1]


def by_hand(lhs: Tree, rhs: Tree, *uses: Any, **parts: Any) -> dict[str, Any]:
    """Return a certificate by hand: of the parts, those of the proof are put there."""
    proof: dict[str, Any] = {"rule": "cancel", "splits": [], "facts": [], "uses": list(uses)}
    proof |= {key: parts.pop(key) for key in ("splits", "facts") if key in parts}
    made = {
        "schema": 4,
        "sizes": ["n", "m", "L"],
        "scalars": [["a", []], ["b", []]],
        "tensors": TENSORS,
        "indices": [],
        "given": [],
        "nonzero": [],
        "lhs": lhs,
        "rhs": rhs,
        "proof": proof,
    }
    return made | parts


def use(fact: int, coefficient: Tree = 1, at: Iterable[Any] = (), **context: Any) -> dict[str, Any]:
    """Return a use of a fact, in a context where parts of one are given."""
    made = {"fact": fact, "coefficient": coefficient, "at": list(at)}
    if context:
        parts: dict[str, Any] = {part: [] for part in ("sizes", "held", "free", "boxes")}
        parts |= {"rows": [], "cols": [], "hole": [[], []]}
        made["context"] = parts | context
    return made


def square(*boxes: Any, **parts: Any) -> dict[str, Any]:
    """Return the context of an n × n claim; its wires 0 and 1 are the row and the column."""
    more = parts.pop("sizes", [])
    made = {"sizes": [n, n, *more], "rows": [0], "cols": [1], "boxes": list(boxes)}
    return {**made, "hole": [[0], [1]], **parts}


def box(tree: Tree, row: Any = (), col: Any = (), *indices: Any) -> list[Any]:
    return [tree, list(indices), list(row), list(col)]


def t(number: int, *indices: Tree) -> Tree:
    return ["tensor", number, *indices]


def mul(*factors: Tree) -> Tree:
    return ["MatMul", *factors]


def plus(*terms: Tree) -> Tree:
    return ["MatAdd", *terms]


def inverse(tree: Tree) -> Tree:
    return ["MatPow", tree, -1]


def over(tree: Tree) -> Tree:
    return ["Pow", tree, -1]


def of(name: str, x: Tree) -> Tree:
    return ["Activation", name, x]


def had(*x: Tree) -> Tree:
    return ["HadamardProduct", *x]


def transposed(x: Tree) -> Tree:
    return ["Transpose", x]


def softmax(*x: Tree) -> Tree:
    return ["RowSoftmax", *x]


def induction(base: Any, step: Any, depth: int = 2) -> dict[str, Any]:
    return {"proof": {"rule": "induction", "over": depth, "base": base, "step": step}}


def cancel(*uses: Any, facts: Iterable[Any] = (), splits: Iterable[Any] = ()) -> dict[str, Any]:
    return {"rule": "cancel", "splits": list(splits), "facts": list(facts), "uses": list(uses)}


def said(lhs: Tree, rhs: Tree, name: str, form: int, proofs: Any = (), **values: Any) -> Any:
    """Return the certificate of what an axiom says."""
    given = values.pop("given", [])
    fact = ["axiom", [], name, form, values, list(proofs)]
    return by_hand(lhs, rhs, use(len(given), 1), facts=[fact], given=given)


def inverted(tree: Tree, *counts: Tree) -> Any:
    """Return the fact that a matrix with its inverse before it is the identity."""
    return ["axiom", list(counts), "inverse", 1, {"E": tree}, []]


def equal_of(lhs: Tree, rhs: Tree, proofs: Iterable[Any]) -> Any:
    """Return the fact that a function of equal arguments is equal: the function of the left."""
    kind, *args = lhs
    if kind == "RowSoftmax":
        letters = "SMTN" if len(args) > 1 else "ST"
        pairs = zip(letters, [*args, *rhs[1:]], strict=False)
        form, values = len(args) - 1, dict(pairs)
    elif kind == "Activation":
        form, values = 2, {"g": args[0], "S": args[1], "T": rhs[2]}
    else:
        form, values = 3 + (kind == "LayerNorm"), {"e": args[1], "S": args[0], "T": rhs[1]}
    return ["axiom", [], "function_congruence", form, values, list(proofs)]


def congruent(lhs: Tree, rhs: Tree, *proofs: Any, **parts: Any) -> dict[str, Any]:
    """Return the certificate of two functions that are equal where their arguments are."""
    fact = equal_of(lhs, rhs, list(proofs))
    return by_hand(lhs, rhs, use(len(parts.get("given", [])), 1), facts=[fact], **parts)


def selects(matrix: Tree) -> list[Any]:
    return [[[], had(matrix, matrix), matrix], [[], mul(matrix, ONE), ONE]]


def lemma(made: dict[str, Any], *proofs: Any, **values: Any) -> Any:
    """Return the fact that an instance of a lemma is; what is not put in stands for itself."""
    own = {"sizes": [n, m, L], "scalars": [a, b], "tensors": [*map(itself, range(len(TENSORS)))]}
    return ["lemma", [], made, own | values, list(proofs)]


def as_lemma(made: dict[str, Any]) -> dict[str, Any]:
    """Return the proof of a claim that is a lemma as it stands."""
    _, _, certificate, values, proofs = lemma(made)
    return {"rule": "lemma", "lemma": certificate, "values": values, "proofs": proofs}


def itself(number: int) -> Tree:
    return t(number, *[["i", k] for k in range(len(TENSORS[number][1]))])


def instead(**trees: Tree) -> list[Tree]:
    """Return what is put in for the matrices of a lemma: other trees for those that are named."""
    return [trees.get(name, itself(k)) for k, (name, *_) in enumerate(TENSORS)]


def in_cases(
    *cases: dict[str, Any], last: Any = None, proof: Any = None, **parts: Any
) -> dict[str, Any]:
    """Return the certificate of A = A at values of an index i; K is a size of the statement."""
    shown = [{"at": at, "from_zero": [], "proof": proof or by_hand(A, A)} for at in cases]
    over = {"index": "i", "least": 0, "last": last}
    return {"schema": 4, "claim": "A = A", "over": over, "cases": shown} | parts


NONE, SOME, MORE_THAN_ONE = {"i": {"": 0}}, {"i": {"i": 1}}, {"i": {"": 1, "i": 1}}
UPTO = [  # 0 ≤ i ≤ K
    {"i": {"": 0}, "K": {"r": 1}},
    {"i": {"i": 1}, "K": {"i": 1}},
    {"i": {"i": 1}, "K": {"i": 1, "r": 1}},
]
NEXT = ["Add", L, -1]
LATER = ["Add", L, 1]


def _less_two(layers: Tree) -> Tree:
    """Return (layers - 2) I, as a sum over layers."""
    return plus(["HeadSum", I, layers], mul(-2, I))


def _power_plus_b(index: Tree) -> Tree:
    """Return Aʰ + B."""
    return plus(["LayerProduct", A, index, False], B)


def _less(e: Tree) -> Tree:
    """Return A - A e⁻¹ e."""
    return plus(A, mul(-1, A, inverse(e), e))


SELF = cancel()
# Where i is 0 or 1, this is 0, and else 1.
NEITHER = [
    "Add",
    1,
    *[["Mul", -1, ["MatrixElement", ["Identity", 2], h, value]] for value in (0, 1)],
]
NOT_FIRST = ["Add", 1, ["Mul", -1, ["MatrixElement", ["Identity", n], h, 0]]]
PREFIX = ["LayerProduct", inverse(t(F, k)), h, False]
SCALED = ["LayerProduct", mul(over(a), I), h, False]
ORDERS = ["OrderSum", plus(I, t(W, k)), L, h, False]
SHORT = ["LayerProduct", ["OneMatrix", n, 1], h]
ROOT = of("rsqrt", B)
HALF = ["Mul", ["Rational", 1, 2], n]


def _vanishing(given: Tree, *uses: Any, lhs: Tree = A, **parts: Any) -> dict[str, Any]:
    return by_hand(lhs, O, *uses, given=[[[], given, O]], **parts)


def _through_inverse(e: Tree, *, index: int, fact: int, at: Any = (), **more: Any) -> list[Any]:
    """Return uses that A = A·e⁻¹·e = 0, where the hypothesis says that e is 0."""
    sizes = [n, n, *more.pop("sizes", [])]
    first = square(box(A, [0], [2]), sizes=sizes, hole=[[2], [1]], **more)
    then = square(box(A, [0], [2]), box(e, [2], [3]), sizes=sizes, hole=[[3], [1]], **more)
    return [use(fact, -1, at, **first), use(index, 1, (), **then)]


PATTERN = softmax(A, B)
SIGNED = {
    "a symbol": A,
    "a product": had(A, B),
    "a square times a symbol": had(A, A, B),
    "a sum with a symbol": plus(had(A, A), B),
    "a cube": ["HadamardPower", A, 3],
    "a matrix product with a symbol": mul(of("exp", A), B),
    "less a square": mul(-1, had(A, A)),
    "a number": mul(a, of("exp", A)),
    "a function": of("tanh", A),
    "a reciprocal": of("reciprocal", A),
    "a Kronecker product": ["KroneckerProduct", of("exp", A), B],
    "a transpose": ["Transpose", A],
    "a masked softmax": softmax(A, B),
    "a Gram matrix": mul(["Transpose", A], A),
    "one less exp": plus(ONES, mul(-1, of("exp", A))),
    "one less two sigmoids": plus(ONES, mul(-2, of("sigmoid", A))),
}
VANISHING = {
    "a symbol": B,
    "a square": had(B, B),
    "a product": had(of("exp", A), B),
    "a relu": of("relu", B),
    "a sum of squares": plus(had(A, A), had(B, B)),
    "one and a symbol": plus(ONES, B),
    "a root": of("sqrt", B),
    "an identity": I,
    "a multiple": mul(a, ONES),
    "a product of weights and what may vanish": mul(of("exp", A), B),
}
IS_0, IS_1 = (["MatrixElement", ["Identity", 2], h, value] for value in (0, 1))
ONLY_1 = mul(IS_1, ONES)
AT_1 = softmax(A, ONLY_1)
Z = 11
PICKED = mul(
    ["MatrixElement", ["ImmutableDenseMatrix", 2, 1, 0, ["Trace", inverse(t(Z, 1))]], h, 0],
    ["OneMatrix", 1, 1],
)
LESS_2 = ["Add", L, -2]
ALL_BUT_LAST = plus(["HeadSum", inverse(t(11, k)), NEXT], ["HeadSum", S, LESS_2])
W_SUM, W_SUM_1 = ["HeadSum", t(W, h), L], ["HeadSum", t(W, k), L]
BY_ZERO = mul(["Add", IS_1, ["Mul", IS_1, a]], plus(I, B), inverse(t(X, h)))


ONE_BY_A = ["Add", 1, ["Mul", 0, over(a)]]


def _rms_norm(x: Tree, eps: Tree) -> Tree:
    """Return the definition of a norm with an eps for each row: the row sums of a matrix."""
    square_mean = mul(over(n), ["HadamardPower", x, 2], ONE)
    return mul(["DiagMatrix", of("rsqrt", plus(square_mean, mul(eps, ONE)))], x)


MEMBERS = [["S", ["integers"], n, n], ["U", [], n, 1]]
EVEN = ["KroneckerProduct", ["tensor", 1], ["OneHot", 0, 2]]


def member(constant: Tree, *parts: Tree) -> Tree:
    """Return a member at an affine index of the family over the integers in `MEMBERS`."""
    return ["tensor", 0, ["at", constant, *parts]]


FORGED: dict[str, dict[str, Any]] = {
    # -- found by hand in the second version -------------------------------------------------------
    # n = 2, A = [[1, 1], [0, 0]]: a wire that is summed over is not one that is fixed
    "a function of the sums of rows and of columns": by_hand(
        of("f", mul(A, ONE)), of("f", mul(transposed(A), ONE))
    ),
    # n = 2, A exchanges the rows, C = I, B = diag(1, 0)
    "rows chosen where each has its own eps": by_hand(
        _rms_norm(mul(A, C), B),
        mul(A, _rms_norm(C, B)),
        use(2),
        given=selects(A),
        facts=[
            [
                "axiom",
                [],
                "function_choose_rows",
                2,
                {"P": A, "X": C, "e": B},
                [cancel(use(0)), cancel(use(1))],
            ]
        ],
    ),
    # -- π is a number of its own, and sin and cos are known at multiples of π/2 ------------------
    "the sine of π and a": by_hand(of("sin", mul(plus(PI, a), S_1)), O_1),
    "the sine of π over n + 1": by_hand(of("sin", mul(PI, ["Pow", ["Add", n, 1], -1], S_1)), O_1),
    "the sine of a fifth of π": by_hand(
        of("sin", mul(["Rational", 1, 5], PI, S_1)), mul(["Rational", 1, 2], S_1)
    ),
    "the sine of π/6 as of π/3": by_hand(
        of("sin", mul(["Rational", 1, 6], PI, S_1)),
        mul(["Rational", 1, 2], ["Pow", 3, ["Rational", 1, 2]], S_1),
    ),
    "the cosine of π as that of 0": by_hand(of("cos", mul(PI, S_1)), S_1),
    "the sine of a": by_hand(of("sin", mul(a, S_1)), O_1),
    "a divided by π as 1": by_hand(mul(a, over(PI)), 1),
    # -- found by hand in the first version of this checker ----------------------------------------
    # a = 0, A = 1, n = 1: before the first layer there is none, and nothing is divided by a
    "divided by a in no layer": by_hand(
        plus(A, ["HeadSum", SCALED, n]),
        ["HeadSum", SCALED, n],
        use(0, over(a)),
        given=[[[], mul(a, A), O]],
    ),
    # h = 0, F = 0, A = 1: the product before the first layer is I, and inverts nothing
    "inverted before the first layer": by_hand(
        plus(A, PREFIX),
        PREFIX,
        use(
            1,
            -1,
            [[3]],
            **square(box(A, [0], [2]), sizes=[n, m], held=[[3, 0]], hole=[[2], [1]]),
        ),
        use(
            0,
            1,
            [[4]],
            **square(
                box(A, [0], [2]),
                box(inverse(t(F, k)), [2], [3], [m, [4]]),
                sizes=[n, n, m],
                held=[[4, 0]],
                hole=[[3], [1]],
            ),
        ),
        indices=[["h", m]],
        given=[[[m], t(F, h), O]],
        facts=[inverted(t(F, k), *[m])],
    ),
    # a = -1: 0**0 is 1
    "0 to a power that may be 0": by_hand(["Pow", 0, ["Add", 1, a]], 0),
    # A = 1: there is no i = -1, and none that is 2
    "an index held below the range": _vanishing(
        O, use(0, 1, [[2]], **square(sizes=[2], held=[[2, -1]]))
    )
    | {"given": [[[2], mul(NEITHER, A), O]]},
    "an index held above the range": _vanishing(
        O, use(0, 1, [[2]], **square(sizes=[2], held=[[2, 2]]))
    )
    | {"given": [[[2], mul(NEITHER, A), O]]},
    # h = 1, X_0 = 0, X_1 = I, A = I: X_0 is inverted where h is 0, and only there
    "an inverse of another case": by_hand(
        plus(A, inverse(t(X, h))),
        inverse(t(X, h)),
        *[
            one
            for mark in (-1, -2)
            for one in [
                use(
                    1,
                    -1,
                    **square(box(A, [0], [2]), sizes=[n], free=[[0, [mark]]], hole=[[2], [1]]),
                ),
                use(
                    0,
                    1,
                    **square(
                        box(A, [0], [2]),
                        box(inverse(t(X, 0)), [2], [3]),
                        sizes=[n, n],
                        free=[[0, [mark]]],
                        hole=[[3], [1]],
                    ),
                ),
            ]
        ],
        indices=[["h", 2]],
        given=[[[], t(X, 0), O]],
        splits=[[2, [["|", [], []]]]],
        facts=[inverted(t(X, 0))],
    ),
    # n = 1, m = 2, A = 1: I is not I + Σ W
    "orders over two ranges": by_hand(
        ["HeadSum", mul(ORDERS, A), n], ["HeadSum", mul(ORDERS, A), m]
    ),
    # L = 2, h = 1, Y = (0, 1), S = 1: at h = 0 nothing is claimed, as Y_0 has no inverse root
    "a hypothesis of induction where a root is not defined": by_hand(
        plus(S, of("rsqrt", t(Y, h))),
        of("rsqrt", t(Y, h)),
        indices=[["h", L]],
        given=[[[], t(Y, 0), O_1]],
        **induction(
            cancel(
                use(1, -1, boxes=[box(S)]),
                use(0, 1, boxes=[box(S), box(of("rsqrt", t(Y, 0))), box(of("rsqrt", t(Y, 0)))]),
                facts=[["axiom", [], "rsqrt_square", 0, {"X": t(Y, 0)}, []]],
            ),
            cancel(
                use(1, 1, [[-1, 0]], sizes=[L], free=[[0, [-1, 0]]]),
                use(1, 1, [[-1, 0]], sizes=[L], held=[[0, 0]], free=[[0, [-2]]]),
            ),
        ),
    ),
    # the same, beside: [S, Y_h⁻¹] = [0, Y_h⁻¹]
    "a hypothesis of induction in a block beside what is not defined": by_hand(
        ["BlockMatrix", [S, inverse(t(Y, h))]],
        ["BlockMatrix", [O_1, inverse(t(Y, h))]],
        indices=[["h", L]],
        given=[[[], t(Y, 0), O_1]],
        **induction(
            cancel(
                use(1, -1, cols=[-1], boxes=[box(S)]),
                use(0, 1, cols=[-1], boxes=[box(S), box(inverse(t(Y, 0)))]),
                facts=[inverted(t(Y, 0))],
            ),
            cancel(
                use(1, 1, [[-1, 0]], sizes=[L], cols=[-1], free=[[0, [-1, 0]]], hole=[[], [-1]]),
                use(
                    1,
                    1,
                    [[-1, 0]],
                    sizes=[L],
                    held=[[0, 0]],
                    cols=[-1],
                    free=[[0, [-2]]],
                    hole=[[], [-1]],
                ),
            ),
        ),
    ),
    "an order that is no product, in reverse = 3": by_hand(
        *[
            [
                "HeadSum",
                ["KroneckerProduct", ["OrderSum", ["OneMatrix", 1, n], L, h, 3], SHORT],
                n,
            ]
        ]
        * 2
    ),
    "one tree under hypotheses that say nothing": by_hand(
        A,
        A,
        given=[[[], ["nonsense"], A]],
    ),
    # the weights under a mask of zeros sum to no number
    "weights under a mask of zeros": by_hand(
        ["ZeroMatrix", n, 1],
        ONE,
        use(0),
        facts=[["axiom", [], "softmax_sum", 1, {"S": A, "M": O}, []]],
    ),
    # h = 0, B = 1: at h = 0 the premise is not defined, which a mask of zeros must not hide
    "a premise under no mask": by_hand(
        plus(of("f", mul(IS_0, B)), softmax(A, ONES)),
        plus(of("f", O), softmax(A, ONES)),
        use(0, 1, **square(free=[[0, [-1]]])),
        indices=[["h", 2]],
        splits=[[2, [["|", [], []]]]],
        facts=[
            equal_of(
                of("f", plus(mul(IS_0, B), AT_1)),
                of("f", AT_1),
                [
                    cancel(
                        use(0, -1, **square(box(B, [0], [1]), box(IS_0), hole=[[0], []])),
                        use(
                            1,
                            -1,
                            **square(box(B, [0], [1]), box(IS_0), sizes=[n], hole=[[0], [2]]),
                        ),
                        facts=[
                            ["axiom", [], "softmax_sum", 1, {"S": A, "M": ONLY_1}, []],
                            ["axiom", [], "softmax_mask", 0, {"S": A, "M": ONLY_1}, [SELF]],
                        ],
                    )
                ],
            )
        ],
    ),
    # h = 0, X = (0, 1), A = 1: nor may a factor that is zero there
    "a premise times zero": by_hand(
        plus(of("f", mul(IS_0, A)), inverse(t(X, 1))),
        plus(of("f", O), inverse(t(X, 1))),
        use(1, 1, **square(free=[[0, [-1]]])),
        given=[[[], t(X, 0), O]],
        indices=[["h", 2]],
        splits=[[2, [["|", [], []]]]],
        facts=[
            equal_of(
                of("f", plus(mul(IS_0, A), BY_ZERO)),
                of("f", BY_ZERO),
                [
                    cancel(
                        use(
                            1, -1, **square(box(A, [0], [2]), box(IS_0), sizes=[n], hole=[[2], [1]])
                        ),
                        use(
                            0,
                            1,
                            **square(
                                box(A, [0], [2]),
                                box(IS_0),
                                box(inverse(t(X, h)), [2], [3]),
                                sizes=[n, n],
                                hole=[[3], [1]],
                            ),
                        ),
                        facts=[inverted(t(X, h))],
                    )
                ],
            )
        ],
    ),
    # h = 0, Y = (1, 0), S = 1, B = 1 (n = 1): nor an entry that stands elsewhere at h = 0
    "a premise beside what is not defined": by_hand(
        plus(of("f", plus(mul(IS_0, S), O_1)), inverse(t(Z, h))),
        plus(of("f", O_1), inverse(t(Z, h))),
        use(1, 1, free=[[0, [-1]]]),
        tensors=[*TENSORS, ["Z", [2], 1, 1]],
        given=[[[], t(Z, 1), O_1]],
        indices=[["h", 2]],
        splits=[[2, [["|", [], []]]]],
        facts=[
            equal_of(
                of("f", plus(mul(IS_0, S), PICKED)),
                of("f", PICKED),
                [
                    cancel(
                        use(1, -1, boxes=[box(S), box(IS_0)]),
                        use(0, 1, boxes=[box(S), box(IS_0), box(inverse(t(Z, 1)))]),
                        facts=[inverted(t(Z, 1))],
                    )
                ],
            )
        ],
    ),
    # B = 0, A = 1: there is no inverse of an inverse
    "an inverse of an inverse that is nowhere": by_hand(
        A,
        O,
        use(
            0,
            1,
            **square(
                box(A, [0], [2]), box(inverse(inverse(B)), [2], [3]), sizes=[n, n], hole=[[3], [1]]
            ),
        ),
        given=[[[], B, O]],
    ),
    # m = 2, h = 1, F = (0, 1), A = 1: the claim is for this h
    "an inverse at one index for all": by_hand(
        plus(A, inverse(t(F, h))),
        inverse(t(F, h)),
        use(
            1,
            -1,
            [[3]],
            **square(box(A, [0], [2]), sizes=[n, m], held=[[3, 0]], hole=[[2], [1]]),
        ),
        use(
            0,
            1,
            **square(
                box(A, [0], [2]),
                box(inverse(t(F, k)), [2], [3], [m, [4]]),
                sizes=[n, n, m],
                held=[[4, 0]],
                hole=[[3], [1]],
            ),
        ),
        indices=[["h", m]],
        given=[[[], t(F, 0), O]],
        facts=[inverted(t(F, k), m)],
    ),
    # L = 2, W = (0, 1), A = 1: the sum of one layer has no inverse
    "an inverse at each depth": by_hand(
        plus(A, inverse(["HeadSum", t(W, h), L])),
        inverse(["HeadSum", t(W, h), L]),
        given=[[[], t(W, 0), O]],
        **induction(
            cancel(
                use(1, -1, **square(box(A, [0], [2]), sizes=[n], hole=[[2], [1]])),
                use(
                    0,
                    1,
                    **square(
                        box(A, [0], [2]),
                        box(inverse(["HeadSum", t(W, k), L]), [2], [3]),
                        sizes=[n, n],
                        hole=[[3], [1]],
                    ),
                ),
                facts=[inverted(["HeadSum", t(W, k), L])],
            ),
            cancel(use(1)),
        ),
    ),
    # the same with what the claim has at its own index: L = 2, h = 1, Y = (0, 1), S = 1
    "an inverse at an index of the claim, at each depth": by_hand(
        ["BlockMatrix", [S, inverse(t(Y, h))]],
        ["BlockMatrix", [O_1, inverse(t(Y, h))]],
        indices=[["h", L]],
        given=[[[], t(Y, 0), O_1]],
        **induction(
            cancel(
                use(1, -1, cols=[-1], boxes=[box(S)]),
                use(0, 1, cols=[-1], boxes=[box(S), box(inverse(t(Y, h)))]),
                facts=[inverted(t(Y, h))],
            ),
            cancel(
                use(1, 1, [[-1, 0]], sizes=[L], cols=[-1], free=[[0, [-1, 0]]], hole=[[], [-1]]),
                use(
                    1,
                    1,
                    [[-1, 0]],
                    sizes=[L],
                    held=[[0, 0]],
                    cols=[-1],
                    free=[[0, [-2]]],
                    hole=[[], [-1]],
                ),
            ),
        ),
    ),
    # n = 1, A = B = 0, C = 1: the statement inverts I + B, and not A + B
    "an inverse beyond its range": by_hand(
        plus(C, ["HeadSum", inverse(_power_plus_b(h)), n]),
        ["HeadSum", inverse(_power_plus_b(h)), n],
        use(1, -1, [[3]], **square(box(C, [0], [2]), sizes=[n, 2], held=[[3, 1]], hole=[[2], [1]])),
        use(
            0,
            1,
            **square(
                box(C, [0], [2]),
                box(inverse(_power_plus_b(h)), [2], [3], [2, [4]]),
                sizes=[n, n, 2],
                held=[[4, 1]],
                hole=[[3], [1]],
            ),
        ),
        given=[[[], plus(A, B), O]],
        facts=[inverted(_power_plus_b(h), 2)],
    ),
    # n = 2, F = 0 but for one entry: the body has F_h in its last block, or row h of all F_k
    "layers whose index is taken for a row": by_hand(
        *[
            ["LayerProduct", ["BlockMatrix", [A, B], [C, last]], n, False]
            for last in (
                t(11, h),
                ["HeadSum", mul(["OneHot", k, n], transposed(["OneHot", h, n]), t(11, k)), n],
            )
        ],
        tensors=[*TENSORS, ["Z", [n], n, n]],
    ),
    # m = L = 2, W = (0, I), A = I: for m = 1 it holds where W_0 + W_1 has an inverse, not for L = 1
    "an induction within another, from what it has at one depth": by_hand(
        ["BlockMatrix", [_less(W_SUM), mul(["Add", m, -1], A), inverse(W_SUM)]],
        ["BlockMatrix", [O, O, inverse(W_SUM)]],
        tensors=[["A", [], n, n], *[["B", [], n, n]] * 8, ["W", [L], n, n]],
        given=[[[], t(W, 0), O]],
        **induction(
            cancel(
                use(1, -1, **square(box(A, [0], [2]), sizes=[n], cols=[-1, 1], hole=[[2], [1]])),
                facts=[inverted(W_SUM_1)],
            ),
            induction(
                cancel(
                    use(1, 1, **square(cols=[-1, 1], hole=[[0], [-1, 1]])),
                    use(1, m, **square(cols=[-2, 1], hole=[[0], [-1, 1]])),
                    use(
                        0,
                        m,
                        **square(
                            box(A, [0], [2]),
                            box(inverse(["HeadSum", t(W, ["i", 2]), L]), [2], [3]),
                            sizes=[n, n],
                            cols=[-2, 1],
                            hole=[[3], [1]],
                        ),
                    ),
                ),
                cancel(
                    use(1, 1, **square(cols=[-1, 1], hole=[[0], [-1, 1]])),
                    use(2, 1, **square(cols=[-2, 1], hole=[[0], [-2, 1]])),
                ),
            )["proof"],
            depth=1,
        ),
    ),
    # L = 2, a = 0, A = 1: what a premise has for one layer is not that the statement divides by a
    "a premise for one layer": by_hand(
        plus(of("f", A), mul(over(["Add", L, -1, a]), B)),
        plus(of("f", O), mul(over(["Add", L, -1, a]), B)),
        use(1, 1),
        given=[[[], mul(a, A), O]],
        facts=[
            equal_of(
                of("f", A),
                of("f", O),
                [induction(cancel(use(0, over(a))), cancel(use(1)))["proof"]],
            )
        ],
    ),
    # L = 3, h = 2, Z = (1, 1, 0), Y = (0, 0, 1), S = 1: the statement inverts all but the last Z
    "a premise for the last layer": by_hand(
        plus(of("f", mul(t(Y, h), S)), ALL_BUT_LAST),
        plus(of("f", O_1), ALL_BUT_LAST),
        use(2, 1),
        tensors=[*TENSORS, ["Z", [L], 1, 1]],
        indices=[["h", L]],
        given=[[[L], mul(t(11, h), t(Y, h), S), O_1], [[], t(Y, 0), O_1]],
        splits=[[NEXT, [["|", [], [LESS_2]]]], [L, [["|", [], [LESS_2], []]]]],
        facts=[
            equal_of(
                of("f", mul(t(Y, h), S)),
                of("f", O_1),
                [
                    induction(
                        cancel(use(1, 1, boxes=[box(S)])),
                        cancel(
                            use(2, 1, [[-1, 0]], sizes=[L], free=[[0, [-1, 0]]]),
                            use(3, -1, [[-2]], free=[[0, [-2]]], boxes=[box(mul(t(Y, h), S))]),
                            use(
                                0,
                                1,
                                [[-2]],
                                free=[[0, [-2]]],
                                boxes=[box(inverse(t(11, ["i", 2])), (), (), [LATER, [-2]])],
                            ),
                            facts=[inverted(t(11, ["i", 2]), LATER)],
                        ),
                    )["proof"]
                ],
            )
        ],
    ),
    # n = 1, S = 1: the order is 0, and no index is 1
    "an order that may be 0": by_hand(
        plus(S, ["OrderSum", S, L, ["Add", n, -1], False]),
        ["OrderSum", S, L, ["Add", n, -1], False],
        use(0, 1, [[-2, 0]], sizes=[["Add", n, -1]], held=[[0, 0]]),
        splits=[[n, [["|", [], [["Add", n, -1]]]]]],
        given=[[[n], mul(NOT_FIRST, S), O_1]],
    ),
    # L = 4, A = 1: at L = 3 the claim divides by 0
    "past a depth that is divided by": by_hand(
        plus(mul(NEXT, ["Add", L, -2], A), mul(over(["Add", L, -3]), B)),
        mul(over(["Add", L, -3]), B),
        **induction(cancel(), cancel(use(0, ["Mul", L, over(["Add", L, -2])]))),
    ),
    # L = 3, a = 0, A = 1: only for one layer it is divided by a
    "divided by what may vanish for one layer": by_hand(
        plus(A, mul(over(["Add", L, -1, a]), B)),
        mul(over(["Add", L, -1, a]), B),
        scalars=[["a", ["nonnegative"]], ["b", []]],
        given=[[[], mul(a, A), O]],
        **induction(cancel(use(0, over(a))), cancel(use(1))),
    ),
    # a = 0, A = 1
    "divided by a part of what is divided by": _vanishing(
        mul(a, A), use(0, over(a)), lhs=plus(A, mul(over(["Add", 1, a]), O))
    ),
    # a = -1, A = 1
    "divided by a sum that may vanish": _vanishing(
        mul(["Add", 1, a], A), use(0, over(["Add", 1, a]))
    ),
    # a = 1, A = 1
    "divided by a sum of two signs": _vanishing(
        mul(["Add", a, -1], A),
        use(0, over(["Add", a, -1])),
        scalars=[["a", ["nonzero"]], ["b", []]],
    ),
    # a = b = 0, A = 1
    "divided by what is not negative": _vanishing(
        mul(["Add", a, b], A),
        use(0, over(["Add", a, b])),
        scalars=[["a", ["nonnegative"]], ["b", ["nonnegative"]]],
    ),
    # B = 0: A B⁻¹ B is not A
    "a premise by an inverse that is nowhere": by_hand(
        of("f", A),
        of("f", O),
        use(1, 1),
        given=[[[], B, O]],
        facts=[
            equal_of(
                of("f", A),
                of("f", O),
                [
                    cancel(
                        use(1, -1, **square(box(A, [0], [2]), sizes=[n], hole=[[2], [1]])),
                        use(
                            0,
                            1,
                            **square(
                                box(A, [0], [2]),
                                box(inverse(B), [2], [3]),
                                sizes=[n, n],
                                hole=[[3], [1]],
                            ),
                        ),
                        facts=[inverted(B)],
                    )
                ],
            )
        ],
    ),
    # -- SOUNDNESS.md, in the words of this schema -------------------------------------------------
    # L = 1, A = 1
    "L to the L vanishes": by_hand(
        mul(["Pow", L, L], A), O, **induction(cancel(), cancel(use(0, ["Pow", L, L])))
    ),
    # n = 1, m = 2
    "a range that is forgotten": by_hand(
        ["HeadSum", ["HeadSum", A, n], m], ["HeadSum", ["HeadSum", A, n], n]
    ),
    # L = 3, A = 1
    "the first block of a row is not walked": by_hand(
        ["BlockMatrix", [plus(mul(NEXT, A), mul(-1, NEXT, A)), mul(L, I)]],
        ["BlockMatrix", [O, I]],
        **induction(cancel(), cancel()),
    ),
    # L = 3, A = 1
    "past an undefined depth": by_hand(
        plus(mul(NEXT, ["Add", L, -2], A), mul(over(["Add", L, -2]), B)),
        mul(over(["Add", L, -2]), B),
        **induction(cancel(), cancel(use(0, mul(L, over(["Add", L, -2]))))),
    ),
    "a function of another index": by_hand(
        of("f", t(F, h)), of("f", t(F, k)), indices=[["h", m], ["k", m]]
    ),
    "an index of another binder": by_hand(
        ["HeadSum", ["HeadSum", mul(t(F, h), t(G, k)), m], m],
        ["HeadSum", ["HeadSum", mul(t(F, k), t(G, k)), m], m],
    ),
    "a layer by the index outside": by_hand(
        ["HeadSum", ["LayerProduct", t(F, k), m, False], m],
        ["HeadSum", ["LayerProduct", t(F, h), m, False], m],
    ),
    "NaN is NaN": by_hand(mul(float("nan"), A), mul(float("nan"), A)),
    "an unknown kind": by_hand(["Nonsense", A], ["Nonsense", A]),
    "an ill-shaped product": by_hand(mul(U, U), mul(U, U)),
    "an ill-shaped sum": by_hand(plus(A, U), plus(A, U)),
    "an argument too many": by_hand(
        ["Transpose", A, B],
        ["Transpose", A, B],
    ),
    "1 is not true": by_hand(1, True),
    "1 is not 1.0": by_hand(mul(1, A), mul(1.0, A)),
    "an index that is true": by_hand(t(X, 1), t(X, True)),
    "a size that is true": by_hand(
        ["Identity", m],
        ["Identity", ["size", True]],
    ),
    "a number of layers that is false": by_hand(["LayerProduct", A, False, True], I),
    "a number of layers that is 0.0": by_hand(["LayerProduct", A, 0.0, True], I),
    "an order that is false": by_hand(["OrderSum", A, 2, False, True], I),
    "in reverse by 1": by_hand(
        ["LayerProduct", t(X, h), 2, True],
        ["LayerProduct", t(X, h), 2, 1],
    ),
    # -- numbers -----------------------------------------------------------------------------------
    # a = -1
    "the root of a square": by_hand(["Pow", ["Pow", a, 2], ["Rational", 1, 2]], a),
    # a = 1, b = 3
    "the root of a quotient": by_hand(
        ["Pow", ["Mul", a, over(["Add", 1, b])], ["Rational", 1, 2]],
        ["Pow", a, ["Rational", 1, 2]],
    ),
    # a = 0, A = 1
    # n = 1, m = 3
    "the root of a quotient of sizes": by_hand(
        ["Pow", ["Mul", n, over(["Add", 1, m])], ["Rational", 1, 2]],
        ["Pow", n, ["Rational", 1, 2]],
    ),
    "divided by what may be zero": _vanishing(mul(a, A), use(0, over(a))),
    "divided by n - 1": _vanishing(mul(["Add", n, -1], A), use(0, over(["Add", n, -1]))),
    "divided by another scalar than the statement is": _vanishing(
        mul(a, A), use(0, ["Mul", over(a), over(b)]), lhs=mul(over(b), A)
    ),
    "divided by what may vanish, in a box": _vanishing(
        mul(a, A), use(0, 1, **square(box(mul(over(a), I), [0], [2]), sizes=[n], hole=[[2], [1]]))
    ),
    "three is two": by_hand(["Trace", ["Identity", plus(1, 2)]], 2),
    "0 is 1 by 1 / 0": by_hand(0, 1, use(0, over(0)), given=[[[], 0, 0]]),
    # A = 2, n = 1
    "a negative power of a trace": by_hand(["Pow", ["Trace", A], ["Add", -1, 0]], 1),
    "a negative power of entries": by_hand(["HadamardPower", A, -1], ONES),
    "a square of a matrix as if it were a number": by_hand(
        ["Pow", A, 2], ["Pow", transposed(A), 2]
    ),
    "two different numbers": by_hand(1, 2),
    # -- sizes and indices -------------------------------------------------------------------------
    # n = 1, m = 2: the trace is 2
    "a split that does not add up": by_hand(
        ["Trace", ["Identity", ["Mul", n, m]]],
        ["Pow", n, 2],
        splits=[[["Mul", n, m], [n, n]]],
    ),
    # n = 1, S = 1: there is no second index
    "half of a size": by_hand(
        S,
        O_1,
        use(0, 1, [[0, 1]], sizes=[HALF, 2], held=[[0, 0], [1, 1]]),
        splits=[[n, [HALF, 2]]],
        given=[[[n], mul(NOT_FIRST, S), O_1]],
    ),
    "a size less one": by_hand(
        S,
        O_1,
        use(0, 1, [[-2, 0]], sizes=[["Add", n, -1]], held=[[0, 0]]),
        splits=[[n, [["|", [], [["Add", n, -1]]]]]],
        given=[[[n], mul(NOT_FIRST, S), O_1]],
    ),
    # an empty sum is 0
    # -- cases, which leave out values of an index or have them twice ------------------------------
    "no case for none": in_cases(SOME),
    "no case for all": in_cases(UPTO[0], UPTO[2], last={"K": 1}),
    "a case that stands twice": in_cases(NONE, SOME, SOME),
    "a case from two on": in_cases(NONE, MORE_THAN_ONE),
    "a case of two more": in_cases(*UPTO[:2], {"i": {"i": 1}, "K": {"": 2, "i": 1}}, last={"K": 1}),
    "a case in which all is twice the half": in_cases(
        *UPTO[:2], {"i": {"i": 1}, "K": {"i": 2}}, last={"K": 1}
    ),
    "a case for every other value": in_cases(NONE, {"i": {"i": 2}}),
    "cases up to a size of twice as many": in_cases(*UPTO, last={"K": 2}),
    "cases up to one of two sizes": in_cases(*UPTO, last={"K": 1, "m": 1}),
    "a case for some in the place of none": in_cases(
        NONE, SOME, proof=by_hand(A, A, indices=[["i", m]])
    ),
    "a case of a case that is missing": in_cases(NONE, SOME, proof=in_cases(SOME)),
    "rows that are equal times what may be zero": by_hand(
        A,
        B,
        use(1, 1),
        given=[[[], mul(["DiagMatrix", mul(A, ONE)], A), mul(["DiagMatrix", mul(A, ONE)], B)]],
        facts=[
            ["axiom", [], "product_cancel", 0, {"S": A, "T": B, "w": mul(A, ONE)}, [cancel(use(0))]]
        ],
    ),
    "rows of which nothing is known": by_hand(
        A,
        B,
        use(0, 1),
        facts=[["axiom", [], "product_cancel", 0, {"S": A, "T": B, "w": ONE}, [cancel()]]],
    ),
    "fewer shifts than there are positions": by_hand(
        ["LayerProduct", ["Shift", n], m, False],
        O,
        use(0, 1),
        facts=[["axiom", [], "shift_power", 0, {"n": n}, []]],
    ),
    "as many shifts as there are layers": by_hand(
        ["LayerProduct", ["Shift", n], m, False],
        O,
        use(0, 1),
        facts=[["axiom", [], "shift_power", 0, {"n": m}, []]],
    ),
    "the weights of no columns": by_hand(
        plus(
            mul(softmax(mul(["OneMatrix", n, 0], ["CausalMask", 0])), ["OneMatrix", 0, 1]),
            mul(["ZeroMatrix", n, 0], ["ZeroMatrix", 0, 1]),
        ),
        ONE,
        use(0, 1),
        facts=[
            [
                "axiom",
                [],
                "softmax_sum",
                0,
                {"S": mul(["OneMatrix", n, 0], ["CausalMask", 0])},
                [],
            ]
        ],
    ),
    "an index beyond its only value": by_hand(["MatrixElement", ["Identity", 1], 0, 1], 1),
    # n = 2: e_1 of four entries is not e_3
    "an index into a block of any size": by_hand(
        ["OneHot", 1, ["Add", n, 2]],
        ["BlockMatrix", [["ZeroMatrix", n, 1]], [["OneHot", 1, 2]]],
        splits=[[["Add", n, 2], [["|", [n], [2]]]]],
    ),
    # n = 1, m = 2, F = (1, 1)
    "an index over another size": by_hand(["HeadSum", t(F, h), n], ["HeadSum", t(F, h), m]),
    # n = 1, m = 2, S_l = 1
    "a sum over another number of members": by_hand(
        ["HeadSum", member(0, [1, h]), n], ["HeadSum", member(0, [1, h]), m], tensors=MEMBERS
    ),
    # n = 2, S_l = l, U = (0, 1): 2 on the left, 1 on the right
    "members by an index in factors": by_hand(
        ["HeadSum", mul(["MatrixElement", EVEN, h, 0], member(0, [1, h])), ["Mul", 2, n]],
        ["HeadSum", mul(["MatrixElement", ["tensor", 1], h, 0], member(0, [1, h])), n],
        splits=[[["Mul", 2, n], [n, ["|", [], []]]], [2, [["|", [], []]]]],
        tensors=MEMBERS,
    ),
    # n = 1, m = 2, S_0 = G_0 = 1, S_1 = G_1 = 0
    "a sum turned around in some of its factors": by_hand(
        ["HeadSum", mul(member(["Add", m, -1], [-1, h]), ["tensor", 2, h]), m],
        ["HeadSum", mul(member(0, [1, h]), ["tensor", 2, h]), m],
        tensors=[*MEMBERS, ["G", [m], n, n]],
    ),
    # n = m = 1, S_0 = 0 and S_1 = 1
    "a sum turned around about another middle": by_hand(
        ["HeadSum", member(m, [-1, h]), m],
        ["HeadSum", member(0, [1, h]), m],
        tensors=MEMBERS,
    ),
    # n = 1, m = 2, S_0 = 0 and S_1 = 1
    "a free index turned around": by_hand(
        member(["Add", m, -1], [-1, h]),
        member(0, [1, h]),
        indices=[["h", m]],
        tensors=MEMBERS,
    ),
    # n = m = 1, S_0 = 0 and S_1 = 1
    "a hypothesis past the last member": by_hand(
        member(m),
        O,
        use(0, 1, [["at", m]], **square(sizes=[])),
        given=[[[m], member(0, [1, h]), O]],
        tensors=MEMBERS,
    ),
    # n = 1, S_0 = S_2 = 0 and S_1 = 1
    "a hypothesis at half an index": by_hand(
        member(n),
        O,
        use(0, 1, [["at", ["Mul", ["Rational", 1, 2], n]]], **square(sizes=[])),
        given=[[[["Add", 1, n]], member(0, [2, h]), O]],
        tensors=MEMBERS,
    ),
    # n = 1, m = 2, A = G = 1
    "a hypothesis beyond its range": by_hand(
        mul(n, A),
        mul(m, A),
        use(0, 1, [[2]], **square(sizes=[n])),
        use(0, -1, [[2]], **square(sizes=[m])),
        given=[[[m], A, t(G, h)]],
    ),
    # n = 1, m = 2, A = 1
    "a hole of another size": by_hand(
        n,
        m,
        use(0, 1, sizes=[m], hole=[[0], [0]]),
        use(0, -1, sizes=[n], hole=[[0], [0]]),
        given=[[[], A, I]],
    ),
    # -- shapes ------------------------------------------------------------------------------------
    "zeros of two shapes": by_hand(O, ["ZeroMatrix", m, m]),
    "a block that is missing": by_hand(
        ["BlockMatrix", [A, B], [C]], ["BlockMatrix", [A, B], [C, O]]
    ),
    "an entry that is missing": by_hand(
        ["ImmutableDenseMatrix", 2, 2, 1, 2, 3], ["ImmutableDenseMatrix", 2, 2, 1, 2, 3, 0]
    ),
    "an entry that is a matrix": by_hand(
        ["ImmutableDenseMatrix", 1, 1, A], ["ImmutableDenseMatrix", 1, 1, transposed(A)]
    ),
    # -- layers ------------------------------------------------------------------------------------
    # n = 1, m = 2, A = 2
    "layers in two factors": by_hand(
        ["LayerProduct", A, ["Mul", n, m], False],
        ["LayerProduct", A, n, False],
        splits=[[["Mul", n, m], [n, m]]],
    ),
    # n = 1, m = 2, L = 1, W = 1
    "an order in two factors": by_hand(
        ["HeadSum", mul(["OrderSum", t(W, k), L, h, False], A), ["Mul", n, m]],
        mul(m, ["HeadSum", mul(["OrderSum", t(W, k), L, h, False], A), n]),
        splits=[[["Mul", n, m], [n, m]]],
    ),
    # n = m = 1, A = 1: one way to take two of two layers, three of three
    "only the last layers": by_hand(
        ["OrderSum", A, ["Add", n, m], 2, False],
        ["OrderSum", A, ["Add", n, n, m], 2, False],
        splits=[
            [["Add", n, m], [["|", [n], [m]]]],
            [["Add", n, n, m], [["|", [["Mul", 2, n]], [m]]]],
        ],
    ),
    "layers in another order": by_hand(
        ["LayerProduct", t(X, h), 2, False], ["LayerProduct", t(X, h), 2, True]
    ),
    "layers without the first": by_hand(["LayerProduct", t(X, h), 2, False], t(X, 1)),
    # -- rules -------------------------------------------------------------------------------------
    "two trees said to be one": by_hand(A, B),
    "a hypothesis twice": by_hand(A, mul(2, B), use(0), use(0), given=[[[], A, B]]),
    "a hypothesis in another order": by_hand(mul(B, A), O, use(0), given=[[[], mul(A, B), O]]),
    "an inverse that is nowhere": _vanishing(
        B,
        *_through_inverse(inverse(B), index=0, fact=1, sizes=[n, n]),
        facts=[inverted(B)],
    ),
    "an inverse of something else": by_hand(mul(inverse(A), B), I, use(0), facts=[inverted(A)]),
    "inverses in the wrong order": by_hand(inverse(mul(A, B)), mul(inverse(A), inverse(B))),
    "parts that are not square": by_hand(inverse(mul(U, V)), mul(inverse(V), inverse(U))),
    "one-sided and not square": by_hand(
        mul(V, U),
        ["Identity", m],
        use(1),
        given=[[[], mul(U, V), I]],
        facts=[["axiom", [], "inverse_of_square", 0, {"E": U, "F": V}, [cancel(use(0))]]],
    ),
    "the root of a product": by_hand(
        A,
        O,
        use(1),
        given=[[[], mul(A, B), O]],
        facts=[["axiom", [], "gram_zero", 0, {"X": A}, [cancel(use(0))]]],
    ),
    # B = 0
    "the root of what nobody takes the root of": _vanishing(
        had(A, B),
        use(1, -1, **square(box(A, [0], [1]))),
        use(0, 1, **square(box(ROOT, [0], [1]), box(ROOT, [0], [1]))),
        facts=[["axiom", [], "rsqrt_square", 0, {"X": B}, []]],
    ),
    "the root in no layer": by_hand(
        mul(["LayerProduct", ROOT, 0, False], A),
        O,
        use(1, -1, **square(box(A, [0], [1]))),
        use(0, 1, **square(box(ROOT, [0], [1]), box(ROOT, [0], [1]))),
        given=[[[], had(A, B), O]],
        facts=[["axiom", [], "rsqrt_square", 0, {"X": B}, []]],
    ),
    # B = 0: there are no weights
    "the weights under no mask": by_hand(
        mul(PATTERN, ONE),
        ONE,
        use(0),
        given=[],
        facts=[["axiom", [], "softmax_sum", 1, {"S": A, "M": C}, []]],
    ),
    "a mask that is no mask": said(had(PATTERN, B), PATTERN, "softmax_mask", 0, [SELF], S=A, M=B),
    **{
        f"relu of what may be negative: {name}": said(of("relu", x), x, "relu_nonnegative", 0, X=x)
        for name, x in SIGNED.items()
    },
    # B = 0, or B = -1
    **{
        f"divided by what may be zero: {name}": _vanishing(
            had(A, x),
            use(1, -1, **square(box(A, [0], [1]))),
            use(0, 1, **square(box(of("reciprocal", x), [0], [1]))),
            facts=[["axiom", [], "reciprocal_cancel", 0, {"X": x}, []]],
        )
        for name, x in VANISHING.items()
    },
    # A = -1: the root of A ∘ A is 1, and A has no root
    "the root of a square as if of a product": by_hand(
        of("sqrt", had(A, A)),
        A,
        use(0, 1),
        use(1, 1),
        facts=[
            ["axiom", [], "sqrt_product", 0, {"X": A, "Y": A}, []],
            ["axiom", [], "sqrt_square", 0, {"X": A}, []],
        ],
    ),
    "tanh reflected as relu": said(
        plus(of("tanh", A), mul(-1, of("tanh", mul(-1, A)))),
        A,
        "activation_reflected",
        0,
        g="tanh",
        X=A,
    ),
    "two functions of one matrix": congruent(of("f", A), of("g", A), SELF),
    "two norms of one matrix": congruent(["RMSNorm", A, 0], ["RMSNorm", A, 1], SELF),
    "a softmax with a mask and one without": congruent(PATTERN, softmax(A), SELF),
    "one function of two matrices": congruent(of("f", A), of("f", B), SELF),
    "a function of what is not proved equal": congruent(of("f", A), of("f", B)),
    "scores doubled": by_hand(softmax(mul(2, A)), softmax(A)),
    "a softmax of columns": by_hand(softmax(transposed(A)), transposed(softmax(A))),
    "any factor under relu": by_hand(of("relu", mul(a, A)), mul(a, of("relu", A))),
    "a negative factor under relu": by_hand(of("relu", mul(-1, A)), mul(-1, of("relu", A))),
    # A = -1: relu(relu(A)) is relu(A), and relu(A) is not A
    "relu as if it were injective": said(
        of("relu", A),
        A,
        "function_injective",
        0,
        [cancel(use(0), facts=[["axiom", [], "relu_idempotent", 0, {"X": A}, []]])],
        g="relu",
        S=of("relu", A),
        T=A,
    ),
    # n = 1, m = 2
    "equal ratios": by_hand(
        of("f", mul(over(["Add", n, 1]), A)), of("f", mul(over(["Add", m, 1]), A))
    ),
    "the blocks of a softmax in another order": by_hand(
        softmax(["BlockMatrix", [A, B]]), softmax(["BlockMatrix", [B, A]])
    ),
    "the blocks of a softmax as if all alike": by_hand(
        mul(softmax(["BlockMatrix", [A, B]]), ["BlockMatrix", [I], [O]]),
        mul(softmax(["BlockMatrix", [A, B]]), ["BlockMatrix", [O], [I]]),
    ),
    "ones beside any matrix": by_hand(["KroneckerProduct", ONES, A], ["KroneckerProduct", ONES, B]),
    "any function of zero": by_hand(of("f", O), O),
    "a function of a sum": by_hand(of("f", plus(A, B)), plus(of("f", A), of("f", B))),
    "rows chosen by another matrix": said(
        of("f", mul(A, B)),
        mul(A, of("f", B)),
        "function_choose_rows",
        1,
        [cancel(use(0)), cancel(use(1))],
        g="f",
        P=A,
        X=B,
        given=selects(C),
    ),
    # -- masks and softmax in blocks ---------------------------------------------------------------
    "a mask that sees what is later": by_hand(
        ["CausalMask", 2],
        ["ImmutableDenseMatrix", 2, 2, 1, 1, 0, 1],
        splits=[[2, [["|", [], []]]]],
    ),
    "a mask of pairs by their first parts": by_hand(
        ["CausalMask", ["Mul", n, m]],
        ["KroneckerProduct", ["CausalMask", n], ["OneMatrix", m, m]],
        splits=[[["Mul", n, m], [n, m]]],
    ),
    "a softmax of any scores as their mean": by_hand(softmax(A), mul(over(n), ["OneMatrix", n, n])),
    "a softmax without its mask": by_hand(PATTERN, softmax(A)),
    "the mean of columns that are masked": by_hand(
        softmax(
            ["BlockMatrix", [["ZeroMatrix", n, n], ["ZeroMatrix", n, m]]],
            ["BlockMatrix", [["OneMatrix", n, n], ["ZeroMatrix", n, m]]],
        ),
        mul(
            over(["Add", n, m]),
            ["BlockMatrix", [["OneMatrix", n, n], ["ZeroMatrix", n, m]]],
        ),
    ),
    # -- any matrix for the one that is there ------------------------------------------------------
    "any number for a matrix": by_hand(
        ["vec_rows", A],
        ["vec_cols", A],
        proof={"rule": "generalise", "part": A, "shape": [1, 1], "proof": SELF},
    ),
    # n = 1, m = 2, G = (1, 0), F = (1, 0): the left side is Σ G_h m F_h
    "any matrix for a sum that another sum binds": by_hand(
        ["HeadSum", mul(t(G, h), ["HeadSum", t(F, h), m]), m],
        mul(["HeadSum", t(G, h), m], ["HeadSum", t(F, h), m]),
        proof={
            "rule": "generalise",
            "part": ["HeadSum", t(F, h), m],
            "shape": [n, n],
            "proof": SELF,
        },
    ),
    # n = 1, m = 2, G = (1, 0), F = (1, 0), C = 1: the left side is Σ G_h m F_h
    "a sum of another index rewritten": by_hand(
        ["HeadSum", mul(t(G, h), ["HeadSum", t(F, h), m]), m],
        mul(["HeadSum", t(G, h), m], C),
        given=[[[], ["HeadSum", t(F, h), m], C]],
        proof={
            "rule": "rewrite",
            "at": [0, 1, 2],
            "by": C,
            "equal": cancel(use(0)),
            "proof": SELF,
        },
    ),
    # h = 0, F = (1, 0), n = 1: F_k is bound
    "any matrix for one at an index that is bound": by_hand(
        ["HeadSum", t(F, h), m],
        mul(m, t(F, 0)),
        proof={"rule": "generalise", "part": t(F, h), "shape": [n, n], "proof": SELF},
    ),
    # 0 0⁻¹ = 0: that any matrix of the statement has an inverse is not stated of what is put in
    "any inverse for that of zero": by_hand(
        I,
        O,
        proof={
            "rule": "rewrite",
            "at": [0],
            "by": mul(inverse(O), O),
            "equal": {
                "rule": "generalise",
                "part": O,
                "shape": [n, n],
                "proof": cancel(use(0, -1, **square()), facts=[inverted(t(len(TENSORS)))]),
            },
            "proof": cancel(),
        },
    ),
    # L = 2, W = (0, 1): the index is bound, and not that of the last layer
    "any matrix for those of all layers": by_hand(
        mul(L, ["HeadSum", mul(t(W, h), t(W, h)), L]),
        mul(["HeadSum", t(W, h), L], ["HeadSum", t(W, h), L]),
        **induction(SELF, {"rule": "generalise", "part": t(W, h), "shape": [n, n], "proof": SELF}),
    ),
    # -- induction ---------------------------------------------------------------------------------
    # L = 2, D = diag(0, 1)
    "a matrix of the size of the depth": by_hand(
        ["Trace", t(11)],
        ["MatrixElement", t(11), 0, 0],
        tensors=[*TENSORS, ["D", [], L, L]],
        **induction(cancel(), cancel(use(0))),
    ),
    # L = 2, A = 1
    "a hypothesis that the depth satisfies": by_hand(
        A,
        O,
        given=[[[], mul(["Add", L, -2], A), O]],
        **induction(cancel(use(0, -1)), cancel(use(1))),
    ),
    # n = 1, L = 2, A = 1
    "a number that is not zero at one depth": by_hand(
        A,
        O,
        given=[[[], mul(["Add", n, -1], A), O]],
        nonzero=[["Add", n, ["Mul", -1, L]]],
        **induction(cancel(use(0, over(["Add", n, -1]))), cancel(use(1))),
    ),
    # L = 3, A = 1: at L = 2 nothing is claimed, as 0 has no inverse
    "past a depth without an inverse": by_hand(
        ["BlockMatrix", [mul(NEXT, A), inverse(_less_two(L))]],
        ["BlockMatrix", [O, inverse(_less_two(L))]],
        **induction(
            cancel(),
            cancel(
                use(
                    1,
                    ["Mul", -1, L],
                    sizes=[n, n, n],
                    rows=[0],
                    cols=[-1, 1],
                    boxes=[box(A, [2], [1])],
                    hole=[[0], [2]],
                ),
                use(
                    0,
                    L,
                    sizes=[n, n, n],
                    rows=[0],
                    cols=[-1, 1],
                    boxes=[box(inverse(_less_two(LATER)), [0], [2])],
                    hole=[[2], [-1, 1]],
                ),
                facts=[inverted(_less_two(LATER))],
            ),
        ),
    ),
    "a depth that is no last layer": by_hand(
        ["HeadSum", t(W, h), L], t(W, 0), **induction(cancel(), cancel(use(0)))
    ),
    "the base alone": by_hand(mul(L, A), A, **induction(cancel(), cancel())),
    "the step from itself": by_hand(mul(L, A), O, **induction(cancel(use(0)), cancel(use(0)))),
    "the hypothesis for all layers": by_hand(
        ["LayerProduct", t(W, h), L, False],
        ["LayerProduct", t(W, h), L, True],
        **induction(cancel(), cancel(use(0, 1, **square()))),
    ),
}

# -- which guard stops which -----------------------------------------------------------------------

FORGED |= {
    # A is not 0 where its hypothesis is not proved
    "a lemma without its hypothesis": by_hand(
        A, O, use(0, 1), facts=[lemma(by_hand(A, O, use(0, 1), given=[[[], A, O]]))]
    ),
    "a lemma whose hypothesis is false": by_hand(
        A,
        O,
        use(0, 1),
        facts=[lemma(by_hand(A, O, use(0, 1), given=[[[], A, O]]), cancel())],
    ),
    # a = 0, A = 1, n = 1: what is declared says nothing of a number
    **{
        f"divided by a that is in a size: {where}": by_hand(
            A, O, use(0, over(a)), given=[[[], mul(a, A), O]], **parts
        )
        for where, parts in {
            "of a matrix": {"tensors": [*TENSORS, ["", [], ONE_BY_A, 1]]},
            "of an index of a matrix": {"tensors": [*TENSORS, ["", [ONE_BY_A], 1, 1]]},
            "of an index": {"indices": [["h", ONE_BY_A]]},
        }.items()
    },
    # a = -1
    "a root of a that is in a size": by_hand(
        ["Pow", ["Pow", a, 2], ["Rational", 1, 2]],
        a,
        tensors=[*TENSORS, ["", [["Add", 1, ["Mul", 0, ["Pow", a, ["Rational", 1, 2]]]]], 1, 1]],
    ),
    "a lemma that is false": by_hand(A, O, use(0, 1), facts=[lemma(by_hand(A, O))]),
    # numbers commute, matrices do not
    "matrices for the numbers of a lemma": by_hand(
        ["Mul", A, B],
        ["Mul", B, A],
        use(0, 1),
        facts=[lemma(by_hand(["Mul", a, b], ["Mul", b, a]), scalars=[A, B])],
    ),
    # a = 0, A = 1
    "a lemma about a number that is not zero": by_hand(
        A,
        O,
        use(1, 1),
        given=[[[], mul(a, A), O]],
        facts=[
            lemma(
                by_hand(
                    A,
                    O,
                    use(0, over(a)),
                    given=[[[], mul(a, A), O]],
                    scalars=[["a", ["nonzero"]], ["b", []]],
                ),
                cancel(use(0, 1)),
            )
        ],
    ),
    "a lemma that presupposes that a number is not zero": by_hand(
        A,
        O,
        use(1, 1),
        given=[[[], mul(a, A), O]],
        facts=[
            lemma(
                by_hand(A, O, use(0, over(a)), given=[[[], mul(a, A), O]], nonzero=[a]),
                cancel(use(0, 1)),
            )
        ],
    ),
    # a matrix of one entry is symmetric
    "a lemma about matrices of one entry": by_hand(
        A, transposed(A), use(0, 1), facts=[lemma(by_hand(S, transposed(S)), tensors=instead(S=A))]
    ),
    # zero has no inverse
    "a lemma that presupposes an inverse": by_hand(
        O,
        I,
        use(0, 1),
        facts=[
            lemma(
                by_hand(mul(inverse(A), A), I, use(0, 1), facts=[inverted(A)]),
                tensors=instead(A=O),
            )
        ],
    ),
    # n = 1: of no layers the sum is zero
    "a lemma about layers that there need not be": by_hand(
        ["HeadSum", I, ["Add", n, -1]],
        mul(["Add", n, -1], I),
        use(0, 1),
        facts=[lemma(by_hand(["HeadSum", I, m], mul(m, I)), sizes=[n, ["Add", n, -1], L])],
    ),
    # of one entry is every member
    "a lemma about members of one entry": by_hand(
        t(11, ["at", 0]),
        transposed(t(11, ["at", 0])),
        use(0, 1),
        tensors=[*TENSORS, ["Z", ["integers"], n, n]],
        facts=[
            lemma(
                by_hand(
                    t(11, ["at", 0]),
                    transposed(t(11, ["at", 0])),
                    tensors=[*TENSORS, ["Z", ["integers"], 1, 1]],
                ),
                tensors=[*instead(), ["family", 11]],
            )
        ],
    ),
    "a lemma of another claim": by_hand(A, O) | {"proof": as_lemma(by_hand(A, A))},
    "a lemma of another range": by_hand(t(X, h), t(X, 0), indices=[["h", 2]])
    | {"proof": as_lemma(by_hand(t(X, h), t(X, 0), indices=[["h", 1]]))},
    # F_h Σ_k F_k is not Σ_k F_k F_k
    "an index of a matrix that is put in is another": by_hand(
        ["HeadSum", ["HeadSum", mul(t(F, h), t(F, k)), m], m],
        mul(m, ["HeadSum", mul(t(F, h), t(F, h)), m]),
        use(0, 1),
        facts=[
            lemma(
                by_hand(["HeadSum", t(F, h), m], ["HeadSum", t(F, h), m]),
                tensors=instead(F=["HeadSum", mul(t(F, h), t(F, k)), m]),
            )
        ],
    ),
}

GUARDS = {
    "… = … is in … cases": "no case for none",
    "two values of a case depend on each other": "a case in which all is twice the half",
    "a case is at other values than c and c + s": "a case for every other value",
    "the last value is no size and a number": "cases up to a size of twice as many",
    "a case is about another value of its index": "a case for some in the place of none",
    "… is not certainly …": "relu of what may be negative: a symbol",
    "a hypothesis of a lemma has no proof": "a lemma without its hypothesis",
    "a scalar of a lemma is no number": "matrices for the numbers of a lemma",
    "a scalar of a lemma has another property": "a lemma about a number that is not zero",
    "a lemma presupposes what is not zero": "a lemma that presupposes that a number is not zero",
    "a matrix of a lemma has another shape": "a lemma about matrices of one entry",
    "a family of a lemma has another shape": "a lemma about members of one entry",
    "a lemma says something else": "a lemma of another claim",
    "a root of a sum, or of zero": "the root of a quotient of sizes",
    "a root of what may be negative": "the root of a square",
    "a number that may vanish is divided by": "divided by what may be zero",
    "a size that may vanish is not stated": "a size less one",
    "a matrix of another shape is in its place": "any number for a matrix",
    "a rewritten part has an index that is bound": "a sum of another index rewritten",
    "… is not a size": "half of a size",
    "a size is not positive": "the weights of no columns",
    "… is not a number": "an order that is false",
    "a split does not add up to its size": "a split that does not add up",
    "an index is negative": "an index held below the range",
    "an index is out of range": "an index held above the range",
    "an integer index into a block of any size": "an index into a block of any size",
    "an index in factors is no number": "members by an index in factors",
    "a fact is used at an index out of range": "a hypothesis past the last member",
    "an index is no integer": "a hypothesis at half an index",
    "an index does not run over that size": "an index over another size",
    "sizes do not fit": "zeros of two shapes",
    "a matrix is raised to the power of a number": "a square of a matrix as if it were a number",
    "a block": "a block that is missing",
    "a number of layers is split into factors": "layers in two factors",
    "an order that is split": "an order in two factors",
    "what is not defined in the statement is used": "an inverse of another case",
    "… terms do not cancel": "two different numbers",
    "… says nothing of this function": "tanh reflected as relu",
    "… is a matrix": "rows chosen where each has its own eps",
    "the depth is the size of a matrix": "a matrix of the size of the depth",
    "a hypothesis names the depth": "a hypothesis that the depth satisfies",
    "… is not in the language": "an argument too many",
    "an entrywise power not natural": "a negative power of entries",
    "layers that follow others without number": "only the last layers",
}

ERROR = "without it Python raises an error, which is a rejection, too"
WORK = "it bounds the work"
SHAPE = "what it refuses has no meaning that could be false"
IDLE = "what it refuses is read in one way only, and nothing false follows"
TWICE = "another guard refuses the same"
FORMAL = {
    "a power is too high": WORK,
    "an index has a power": WORK,
    "no affine index": f"{IDLE}; {ERROR}",
    "a root of a number with a large prime factor": WORK,
    "a term has too many symmetries": WORK,
    "there are too many terms": WORK,
    "there are too many layers": WORK,
    "there are too many cases": WORK,
    "the values in cases are too large": WORK,
    "a part of cases is missing": f"{IDLE}; {ERROR}",
    "no claim of cases": IDLE,
    "cases of nothing": f"{IDLE}; {ERROR}",
    "a case has other parts": IDLE,
    "the least value is no number": ERROR,
    "a value is no integer": "a part of a whole number is not among the values that are counted",
    "it takes too much work": WORK,
    "a number is too large": WORK,
    "a power that is not whole": f"{WORK}; {ERROR}",
    "no such …": IDLE,
    "no such matrix": f"{IDLE}; {ERROR}",
    "an index is not in scope": f"{IDLE}; {ERROR}",
    "a use of no fact": f"{IDLE}; {ERROR}",
    "an index in a context does not fit": ERROR,
    "a context has no such wire": f"{IDLE}; {ERROR}",
    "the depth is no size": IDLE,
    "no rule": IDLE,
    "a proof has other parts": IDLE,
    "a use has other parts": IDLE,
    "other parts": f"{IDLE}; {ERROR}",
    "a part is missing, or one too many": f"{IDLE}; {ERROR}",
    "the schema is …, and 4 is read here": IDLE,
    "a scalar has an unknown property": IDLE,
    "a union of one block": IDLE,
    "a matrix is wanted, and a scalar given": SHAPE,
    "the body of a … is of the wrong kind": SHAPE,
    "DiagMatrix of a wide matrix": SHAPE,
    "an activation has no name": SHAPE,
    "a root of a negative number": "a statement that has one has no meaning",
    "a fact of another kind": IDLE,
    "a generalisation has other parts": IDLE,
    "a rewriting has other parts": IDLE,
    "a Rational is p/q": ERROR,
    "… is no index": ERROR,
    "a matrix has other indices": ERROR,
    "the size of an explicit matrix is no number": ERROR,
    "a premise has no proof": ERROR,
    "a symbol has no value": ERROR,
    "a split is trivial": f"{ERROR}: the recursion does not end",
    "an order may be zero": f"{ERROR}, or the sum is right",
    "a power is no number": f"{TWICE}: … is not a number",
    "a division by zero": f"{TWICE}: the statement would divide by zero, and say nothing",
    "two wires of different sizes are joined": "a context multiplies a fact, by whatever it is",
    "indices over different sizes are compared": f"{TWICE}: sizes do not fit",
    "… has another shape": f"{TWICE}: sizes do not fit",
    "a premise": "the indices that follow are always of last layers",
    "two inductions over one depth": "the inner step still has to be proved",
    "a count beside the depth": f"{TWICE}: an index runs over a part of the layers as it stands",
    "a count beside it": f"{TWICE}: an index runs over a part of the layers as it stands",
    "a size is split twice": "nothing false is known to need it: the last layer would be the first",
    "a key stands twice in one object": "of a file: see test_a_key_twice",
    "an explicit matrix lacks entries": ERROR,
    "an entry of a matrix is a matrix": f"{TWICE}: sizes do not fit",
    "a fact about the last layer is used at another": "nothing false is known to need it",
    "a fact of another shape": SHAPE,
    "a scalar is added to a matrix, or equal to one": SHAPE,
    "an integer index into factors of any size": ERROR,
    "an exponent is divided by a sum": IDLE,
    "a context has other parts": f"{IDLE}; {ERROR}",
    "an induction has other parts": IDLE,
    "an instance has other parts": IDLE,
    "a number has too many terms": WORK,
    "there are too many terms in a product": WORK,
    "a power of a scalar is too high": WORK,
}
