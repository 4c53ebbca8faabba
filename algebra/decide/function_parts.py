"""The parts of an expression by its form: functions and their arguments, terms, factors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import sympy
from sympy.matrices.expressions.diagonal import DiagMatrix
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.language.linear import OneHot, as_product, matadd, matmul
from otimes.algebra.language.nonlinear import (
    Activation,
    CausalMask,
    LayerNorm,
    RMSNorm,
    RowSoftmax,
    definition,
)
from otimes.algebra.language.positions import KINDS, OneHotLast
from otimes.algebra.language.sizes import same_size

CONSTANTS: tuple[type, ...] = (CausalMask, *KINDS)
CHOSEN = (OneHot, OneHotLast, sympy.OneMatrix)


def functions_in(e: Any) -> Iterator[Any]:
    """Yield the nonlinear functions in an expression, also those in the definition of a norm."""
    for node in sympy.preorder_traversal(e):
        if isinstance(node, (RowSoftmax, Activation, *CONSTANTS)):
            yield node
        elif isinstance(node, RMSNorm | LayerNorm):
            yield node
            yield from functions_in(definition(node))


def is_applied(e: Any, name: str) -> bool:
    """Return whether an expression is the activation with this name of something."""
    return isinstance(e, Activation) and e.name == name


def same_shape(e: Any, f: Any) -> bool:
    """Return whether two matrices have one shape."""
    return all(map(same_size, e.shape, f.shape))


def arguments_of(e: Any) -> tuple[Any, ...]:
    """Return the arguments of a function; those of an activation are its name and its argument."""
    return (e.name, e.argument) if isinstance(e, Activation) else tuple(e.args)


def matrix_arguments(e: Any) -> tuple[Any, ...]:
    """Return the arguments of an expression that are matrices."""
    return tuple(a for a in e.args if getattr(a, "is_Matrix", False))


def parameters_of(e: Any) -> tuple[Any, ...]:
    """Return the parameters of a function besides matrices: its name, or the eps of a norm."""
    return tuple(a for a in arguments_of(e) if not getattr(a, "is_Matrix", False))


def argument_factors(e: Any) -> tuple[Any, ...]:
    """Return the factors of the argument of an unmasked function; () if it is no product."""
    if isinstance(e, (tuple, *CONSTANTS)) or (isinstance(e, RowSoftmax) and e.mask is not None):
        return ()
    argument = matrix_arguments(e)[0]
    is_product = isinstance(argument, sympy.MatMul) and all(a.is_Matrix for a in argument.args)
    return tuple(argument.args) if is_product and len(argument.args) > 1 else ()


def summands(e: Any) -> tuple[Any, Any] | None:
    """Return the first term of a sum and the rest, also of (a + b) θ, of W (θ + φ)/2 and of 2 θ."""
    terms = terms_of(e)
    if len(terms) > 1:
        return terms[0], terms[1] if len(terms) == 2 else matadd(*terms[1:])
    if not isinstance(e, sympy.MatMul):
        return None
    numbers = [part for part in e.args if not part.is_Matrix]
    rest = as_product([part for part in e.args if part.is_Matrix])
    factor, other = sympy.Mul(*numbers).as_coeff_Mul()
    if abs(factor.p) > 1:
        first = sympy.Rational(sympy.sign(factor), factor.q)
        return multiple_of(first * other, rest), multiple_of((factor - first) * other, rest)
    return None


def terms_of(e: Any) -> list[Any]:
    """Return the terms of a sum, of a product with one sum in it, or of a multiple by a sum."""
    if isinstance(e, sympy.MatAdd):
        return list(e.args)
    if not isinstance(e, sympy.MatMul):
        return [e]
    matrices = [part for part in e.args if part.is_Matrix]
    number = _expanded(sympy.Mul(*[part for part in e.args if not part.is_Matrix]))
    if isinstance(number, sympy.Add):
        return [multiple_of(one, as_product(matrices)) for one in number.args]
    for k, part in enumerate(matrices):
        if isinstance(part, sympy.MatAdd):
            before, after = matrices[:k], matrices[k + 1 :]
            terms = [as_product([*before, *_of(term), *after]) for term in part.args]
            return [multiple_of(number, term) for term in terms]
    return [e]


def _expanded(number: sympy.Expr) -> sympy.Expr:
    """Return a product of sums as a sum; traces and entries in it stay as they are."""
    parts = [
        e
        for e in sympy.preorder_traversal(number)
        if e.has(sympy.MatrixExpr) and not isinstance(e, sympy.Add | sympy.Mul | sympy.Pow)
    ]
    marks = {e: sympy.Dummy() for e in parts if not e.is_Matrix}
    return sympy.expand(number.xreplace(marks)).xreplace({m: e for e, m in marks.items()})


def difference_of(e: Any) -> tuple[Any, Any] | None:
    """Return X and Y if an expression is a sum with a term -Y, and X is the rest of it."""
    terms = terms_of(e)
    for k, term in enumerate(terms):
        sign = term.args[0] if isinstance(term, sympy.MatMul) else sympy.S.One
        if len(terms) > 1 and not sign.is_Matrix and sign.could_extract_minus_sign():
            rest = terms[:k] + terms[k + 1 :]
            return rest[0] if len(rest) == 1 else matadd(*rest), negated(term)
    return None


def negated(e: Any) -> Any:
    """Return a product with a number in it, times -1."""
    number, *rest = e.args
    return multiple_of(-number, as_product(rest))


def multiple_of(number: Any, e: Any) -> Any:
    """Return a number times a matrix, as one product."""
    return e if number == 1 else matmul(number, *_of(e))


def _of(e: Any) -> Sequence[Any]:
    return e.args if isinstance(e, sympy.MatMul) else [e]


def scaled_rows(e: Any) -> tuple[Any, Any] | None:
    """Return X and the column c 1 if an expression is c X for a number c such as exp(a)."""
    if not isinstance(e, sympy.MatMul):
        return None
    numbers = [part for part in e.args if not part.is_Matrix and part.has(sympy.MatrixExpr)]
    rest = [part for part in e.args if part not in numbers]
    if not numbers:
        return None
    return as_product(rest), matmul(*numbers, sympy.OneMatrix(e.shape[0], 1))


def elementwise_factors(e: Any) -> tuple[Any, Any] | None:
    """Return X and Y if an expression is X ∘ Y, also as a scaling, or as a product u vᵀ."""
    if isinstance(e, sympy.HadamardProduct):
        first, *rest = e.args
        return first, rest[0] if len(rest) == 1 else sympy.HadamardProduct(*rest, evaluate=False)
    if isinstance(e, sympy.HadamardPower) and e.args[1].is_Integer and e.args[1] > 1:
        base, exponent = e.args
        return base, sympy.HadamardPower(base, exponent - 1) if exponent > 2 else base
    if not isinstance(e, sympy.MatMul):
        return None
    (rows, cols), one = e.shape, sympy.OneMatrix
    numbers = [part for part in e.args if not part.is_Matrix]
    matrices = [part for part in e.args if part.is_Matrix]
    first, *rest = matrices
    if numbers:
        if type(first) is one and not rest:
            return _number_factors(sympy.Mul(*numbers), first)
        return matmul(*numbers, one(rows, cols)), as_product(matrices)
    if isinstance(first, DiagMatrix):
        return matmul(_column(first.args[0]), one(1, cols)), as_product(rest)
    if isinstance(rest[-1], DiagMatrix):
        row = sympy.Transpose(_column(rest[-1].args[0]))
        return as_product(matrices[:-1]), matmul(one(rows, 1), row)
    if first.shape[1] == 1 and len(rest) == 1 and not {type(first), type(rest[0])} & {one}:
        return matmul(first, one(1, cols)), matmul(one(rows, 1), rest[0])
    return None


def _number_factors(number: Any, ones: Any) -> tuple[Any, Any] | None:
    """Return a 1 and b 1 for a b 1, the factors of a number times a matrix of ones."""
    if isinstance(number, sympy.Mul):
        first, rest = number.args[0], sympy.Mul(*number.args[1:])
    elif isinstance(number, sympy.Pow) and number.exp.is_Integer and number.exp > 1:
        first, rest = number.base, sympy.Pow(number.base, number.exp - 1)
    else:
        return None
    return matmul(first, ones), matmul(rest, ones)


def _column(e: Any) -> Any:
    return e if e.shape[1] == 1 else sympy.Transpose(e)


def entrywise_root(e: Any) -> Any:
    """Return X if an expression has the form of an entrywise square of X, else None."""
    factors: Counter[Any] = Counter()
    for factor in e.args if isinstance(e, sympy.HadamardProduct) else [e]:
        is_power = isinstance(factor, sympy.HadamardPower) and factor.args[1].is_Integer
        base, exponent = factor.args if is_power else (factor, 1)
        factors[base] += int(exponent)
    roots = [base for base, exponent in factors.items() for _ in range(exponent // 2)]
    if not roots or any(exponent % 2 for exponent in factors.values()):
        return None
    return roots[0] if len(roots) == 1 else sympy.HadamardProduct(*roots, evaluate=False)


def is_squares(e: Any) -> bool:
    """Return whether a factor has the form diag(w ∘ w)."""
    return (
        isinstance(e, DiagMatrix)
        and isinstance(e.args[0], sympy.HadamardPower)
        and e.args[0].args[1] == 2
    )


def summed_exp(e: Any) -> Any:
    """Return S if an expression is log(exp(S) 1), else None."""
    product = isinstance(e, Activation) and isinstance(e.argument, sympy.MatMul)
    factors = list(e.argument.args) if product and is_applied(e, "log") else []
    if (
        len(factors) == 2
        and is_applied(factors[0], "exp")
        and isinstance(factors[1], sympy.OneMatrix)
    ):
        return factors[0].argument
    return None


def selected_softmax(e: Any) -> Any:
    """Return a softmax without a mask if an expression is it, or entries of it, else None."""
    while isinstance(e, sympy.MatMul | sympy.Transpose | MatrixElement):
        kept = [part for part in e.args if not _is_chosen(part) and not part.is_Number]
        if isinstance(e, MatrixElement):
            kept = [e.args[0]]
        if len(kept) != 1:
            return None
        (e,) = kept
    return e if isinstance(e, RowSoftmax) and e.mask is None else None


def _is_chosen(e: Any) -> bool:
    return isinstance(e.args[0] if isinstance(e, sympy.Transpose) else e, CHOSEN)


def along_rows(e: Any) -> Any:
    """Return v if an expression is v 1ᵀ, the same number along each row, else None."""
    *before, last = e.args if isinstance(e, sympy.MatMul) else [e]
    if not isinstance(last, sympy.OneMatrix):
        return None
    if last.shape[0] == 1 and any(part.is_Matrix for part in before):
        return as_product(before)
    return as_product([*before, sympy.OneMatrix(last.shape[0], 1)])
