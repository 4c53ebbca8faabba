"""Reading powers and inverses.

Inverses of products are taken factor by factor; others are tensors with E E⁻¹ = E⁻¹ E = I.
"""

from __future__ import annotations

from contextlib import suppress
from functools import reduce
from typing import Any

import sympy
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.diagrams.diagram import UNIT
from otimes.algebra.diagrams.sums import DiagramSum, difference
from otimes.algebra.errors import LanguageError, Undecided
from otimes.algebra.language import coefficients
from otimes.algebra.language.sizes import same_size
from otimes.algebra.language.unicode import short_text, unicode_text
from otimes.algebra.reading.interpretation import Interpretation


def inverse(reading: Interpretation, e: Any) -> DiagramSum:
    """Return the value of e⁻¹, taken factor by factor, or a new tensor for the inverse.

    The inverse of a product of square matrices, of a Kronecker product, a transpose, a power
    and a multiple are those of the parts, which exist because the whole has one.
    """
    kind = type(e)
    if kind is sympy.Identity:
        return reading.value(e)
    if kind in (sympy.Inverse, sympy.MatPow) and e.exp == -1:
        return reading.value(e.base)
    if kind is sympy.MatPow:
        return power(reading, sympy.MatPow(e.base, -e.exp, evaluate=False))
    if kind in (sympy.Transpose, sympy.Adjoint):
        return reading.transposed(inverse(reading, e.args[0]))
    factors = [a for a in e.args if getattr(a, "is_Matrix", False)]
    if kind is sympy.KroneckerProduct and all(same_size(*f.shape) for f in factors):
        return reduce(reading.beside, [inverse(reading, factor) for factor in factors])
    if kind is sympy.MatMul and all(same_size(*f.shape) for f in factors):
        result = reduce(reading.product, [inverse(reading, f) for f in reversed(factors)])
        for argument in e.args:
            if not getattr(argument, "is_Matrix", False):
                number = coefficients.from_sympy(argument, reading.nonnegative)
                factor = DiagramSum((), (), {UNIT: coefficients.inverse(number)})
                result = reading.beside(factor, result)
        return result
    return _new_inverse(reading, e)


def power(reading: Interpretation, e: sympy.MatPow) -> DiagramSum:
    """Return an integer power of a square matrix."""
    if int(e.exp) == 0:
        identity = reading.identity(sympy.Identity(e.shape[0]))
        with suppress(Undecided):  # the base has no part in the power, but its sizes are cut
            base = reading.value(e.base)
            for legs in (base.rows, base.cols):
                reading.dimensions.fit(identity.rows, legs)
        return identity
    base = reading.value(e.base) if e.exp > 0 else inverse(reading, e.base)
    return reading.raised(base, abs(int(e.exp)))


def scalar_power(reading: Interpretation, e: sympy.Pow) -> DiagramSum:
    """Return a power of a scalar; for a trace, entry or sum the exponent must be an integer."""
    if e.exp.free_symbols:
        raise Undecided(f"the power {short_text(e)} of a number is not expanded")
    if not e.has(sympy.Trace, MatrixElement, sympy.Sum, sympy.KroneckerDelta):
        factor = coefficients.from_sympy(e, reading.nonnegative)
        return DiagramSum((), (), {UNIT: factor} if factor != 0 else {})
    if not isinstance(e.exp, sympy.Integer):
        raise LanguageError(
            f"the power {e.exp} of a trace, entry or sum is not in the language, in {short_text(e)}"
        )
    if e.exp > 0:
        base = reading.value(e.base)
    else:  # as the inverse of a matrix of one entry
        base = inverse(reading, sympy.ImmutableDenseMatrix([[e.base]]))
    return reduce(reading.beside, [base] * abs(int(e.exp)), DiagramSum((), (), {UNIT: 1}))


def _new_inverse(reading: Interpretation, e: Any) -> DiagramSum:
    """Return a new tensor for e⁻¹; equal arguments give the same tensor."""
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
