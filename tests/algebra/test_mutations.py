"""Every operator of mutation, and that it is applied at every node of an expression."""

import pytest
import sympy
from sympy import MatrixSymbol, Symbol, Trace, Transpose

from otimes.algebra.language.linear import HeadSum, kron, matadd, matmul, vec_cols, vec_rows
from otimes.algebra.language.nonlinear import Activation, CausalMask, LayerNorm, RMSNorm, RowSoftmax
from otimes.algebra.mutations import OPERATORS, Swap, mutants
from otimes.proofs.catalogue.symbols import H, alpha, h, heads

n = Symbol("n", positive=True, integer=True)
A, B, C = (MatrixSymbol(name, n, n) for name in "ABC")


@pytest.mark.parametrize(
    ("operator", "expression", "wrong"),
    [
        ("swap factors", matmul(A, B), matmul(B, A)),
        ("swap factors", kron(A, B), kron(B, A)),
        ("lose a factor", matmul(A, B), A),
        ("drop a transpose", Transpose(A), A),
        ("insert a transpose", A, Transpose(A)),
        ("lose a term", matadd(A, B), B),
        ("count a term twice", matadd(A, B), matadd(matmul(2, A), B)),
        ("flip a sign", matadd(A, B), matadd(A, matmul(-1, B))),
        ("invert a scale", matmul(alpha, A), matmul(1 / alpha, A)),
        ("rotate a trace", Trace(matmul(A, B, C)), Trace(matmul(B, C, A))),
        ("the other vec", vec_rows(A), vec_cols(A)),
        ("first head only", HeadSum(heads.A[h], (h, H)), heads.A[0]),
        ("another head or layer", heads.A[1], heads.A[0]),
        ("softmax over the wrong axis", RowSoftmax(A), Transpose(RowSoftmax(Transpose(A)))),
        ("lose a mask", RowSoftmax(A, CausalMask(n)), RowSoftmax(A)),
        ("lose a function", Activation("gelu", A), A),
        ("the other norm", RMSNorm(A, 1), LayerNorm(A, 1)),
        ("another eps", LayerNorm(A), LayerNorm(A, 1)),
    ],
)
def test_an_operator(operator: str, expression: sympy.Basic, wrong: sympy.Basic) -> None:
    assert wrong in list(OPERATORS[operator](expression))


def test_operators_reach_every_node() -> None:
    made = [m.expression for m in mutants(kron(matmul(A, matadd(B, C)), A))]
    assert kron(matmul(A, matadd(B, Transpose(C))), A) in made
    assert kron(matmul(A, B), A) in made


def test_operators_reach_into_an_inverse() -> None:
    found = [mutant.expression for mutant in mutants(sympy.Inverse(matmul(A, B)))]
    assert sympy.Inverse(matmul(B, A)) in found
    assert sympy.Inverse(A) in found


def test_operators_reach_into_functions() -> None:
    scores = RowSoftmax(matmul(A, Transpose(B)), CausalMask(n))
    made = [m.expression for m in mutants(matmul(scores, C))]
    assert matmul(RowSoftmax(matmul(A, B), CausalMask(n)), C) in made
    assert matmul(RowSoftmax(matmul(Transpose(B), A), CausalMask(n)), C) in made


def test_what_sympy_refuses_to_build_is_left_out() -> None:
    """Two factors of sizes that are numbers cannot be swapped: SymPy itself says so."""
    x, w = MatrixSymbol("x", 3, 2), MatrixSymbol("w", 2, 3)
    assert list(mutants(matmul(x, w)))
    relu = Activation("relu", matmul(x, w))
    assert [mutant for mutant in mutants(relu) if mutant.name == "lose a function"]


def test_operators_reach_into_blocks() -> None:
    whole = sympy.BlockMatrix([[matmul(A, B), C]])
    wrong = {mutant.expression for mutant in mutants(whole)}
    assert sympy.BlockMatrix([[matmul(B, A), C]]) in wrong
    assert sympy.BlockMatrix([[matmul(A, B), Transpose(C)]]) in wrong
    assert sympy.BlockMatrix([[A, C]]) in wrong


def test_two_swaps_at_once() -> None:
    transposed = Swap("transposed", {matmul(A, B): Transpose(matmul(A, B))})
    other, doubled = Swap("C for A", {A: C}), Swap("2 A for A", {A: matmul(2, A)})

    def value(one: Swap, two: Swap) -> sympy.Basic:
        both = one.together(two)
        assert both is not None
        return matmul(A, B).xreplace(dict(both.nodes))

    assert value(transposed, other) == value(other, transposed) == Transpose(matmul(C, B))
    assert value(other, doubled) == value(doubled, other) == matmul(matmul(2, C), B)
    assert other.together(Swap("B for A", {A: B})) is None


def test_steps_that_the_language_cannot_state_are_replaced_by_name() -> None:
    norm, other = Swap("the 1-norm", {"norm": 1}), Swap("C for A", {A: C})
    both = norm.together(other)
    assert both == Swap("the 1-norm; and C for A", {"norm": 1, A: C})
    assert norm.together(Swap("the 2-norm", {"norm": 2})) is None
