"""Reading inverses: pushed into products where they can be, else a tensor with two equations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from algebra import scalars
from algebra.diagram import UNIT
from algebra.dimensions import same_size
from algebra.errors import LanguageError
from algebra.text import short_text, unicode_text
from algebra.values import Value, difference

if TYPE_CHECKING:
    from algebra.interpret import Interpretation


def inverse(reading: Interpretation, e: Any) -> Value:
    """Return the value of e⁻¹: pushed into products, or a tensor with its two equations.

    The inverse of a product of square matrices, of a Kronecker product, a transpose, a power
    and a multiple are those of the parts, which exist because the whole has one.
    """
    kind = type(e)
    if kind is sympy.Identity:
        return reading.value(e)
    if kind in (sympy.Inverse, sympy.MatPow) and e.exp == -1:
        return reading.value(e.base)
    if kind is sympy.MatPow:
        return reading.power(sympy.MatPow(e.base, -e.exp, evaluate=False))
    if kind in (sympy.Transpose, sympy.Adjoint):
        return reading.transposed(inverse(reading, e.args[0]))
    factors = [a for a in e.args if getattr(a, "is_Matrix", False)]
    if kind is sympy.KroneckerProduct and all(same_size(*f.shape) for f in factors):
        result = inverse(reading, factors[0])
        for factor in factors[1:]:
            result = reading.beside(result, inverse(reading, factor))
        return result
    if kind is sympy.MatMul and all(same_size(*f.shape) for f in factors):
        result = inverse(reading, factors[-1])
        for factor in reversed(factors[:-1]):
            result = reading.product(result, inverse(reading, factor))
        for argument in e.args:
            if not getattr(argument, "is_Matrix", False):
                number = scalars.from_sympy(argument, reading.nonnegative)
                result = reading.beside(Value((), (), {UNIT: scalars.inverse(number)}), result)
        return result
    return _new_inverse(reading, e)


def _new_inverse(reading: Interpretation, e: Any) -> Value:
    """Return a tensor that stands for e⁻¹; equal arguments give the same tensor."""
    value = reading.value(e)
    reading.dimensions.fit(value.rows, value.cols)
    for name, (known, _) in reading.inverses.items():
        if not difference(known, value.terms):
            return reading.tensor(name, e.shape, (), ())
    if any(d.named for d in value.terms):
        raise LanguageError(
            f"the inverse of {short_text(e)}, which has a free index, is not in the language"
        )
    name = reading.fresh_name(f"({unicode_text(e)})⁻¹")
    reading.inverses[name] = (value.terms, e)
    return reading.tensor(name, e.shape, (), ())
