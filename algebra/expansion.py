"""Fixed sizes: two expressions compared as polynomials in all the entries of their matrices.

At fixed small sizes some equations hold that hold for no larger one (Cayley–Hamilton at n = 2), so
different normal forms do not refute. With every size a number, both sides are polynomials in
finitely many entries; the tree walker computes them with one symbol for each entry, exactly.
"""

from __future__ import annotations

from itertools import product
from math import comb
from typing import Any

import numpy as np
import sympy

from algebra import scalars
from algebra.exact import Assignment, array_shape, tree_value
from algebra.language import FamilyMember
from algebra.nonlinear import Activation, LayerNorm, RMSNorm, RowSoftmax
from algebra.shapes import Signature

MAX_MONOMIALS = 100_000


def equal_as_polynomials(lhs: sympy.Basic, rhs: sympy.Basic, signature: Signature) -> bool | None:
    """Return whether both sides are the same polynomial in all entries; None if not decidable so.

    None when a size is a symbol, when something is divided by or a root is taken, or when there
    could be more than `MAX_MONOMIALS` monomials.
    """
    if signature.sizes:
        return None
    degrees = _degree(lhs), _degree(rhs)
    if None in degrees:
        return None
    degree = max(d for d in degrees if d is not None)
    sizes = Assignment({}, {})
    shapes = {name: array_shape(tensor, sizes) for name, tensor in signature.tensors.items()}
    unknowns = sum(int(np.prod(shape)) for shape in shapes.values()) + len(signature.scalars)
    if comb(unknowns + degree, degree) > MAX_MONOMIALS:
        return None
    arrays = {name: _unknowns(name, shape) for name, shape in shapes.items()}
    numbers: Any = {name: scalars.generator(name) for name in signature.scalars}
    ranges = [range(sizes.size(count)) for _, count in signature.indices.values()]
    for values in product(*ranges):
        indices = dict(zip(signature.indices, values, strict=True))
        assignment = Assignment({}, arrays, indices, numbers)
        left, right = tree_value(lhs, assignment), tree_value(rhs, assignment)
        if not np.all(np.equal(left, right)):
            return False
    return True


def _unknowns(name: str, shape: tuple[int, ...]) -> Any:
    array = np.empty(shape, dtype=object)
    for place in np.ndindex(shape):
        array[place] = scalars.generator(f"{name}[{','.join(map(str, place))}]")
    return array


def _degree(e: Any) -> int | None:
    """Return a bound on the degree in entries and scalars; None when it is no polynomial."""
    if isinstance(e, sympy.MatrixSymbol | FamilyMember | sympy.Symbol):
        return 1
    if isinstance(e, sympy.Pow | sympy.MatPow | sympy.HadamardPower):
        base, exponent = _degree(e.args[0]), e.args[1]
        if base is None or not exponent.is_Integer or (exponent < 0 and base > 0):
            return None
        return base * abs(int(exponent))
    if isinstance(e, sympy.Inverse | RowSoftmax | Activation | RMSNorm | LayerNorm):
        return None
    parts = [_degree(a) for a in e.args if isinstance(a, sympy.Expr)]
    if isinstance(e, sympy.ImmutableDenseMatrix):
        parts = [_degree(entry) for entry in e]
    if None in parts:
        return None
    known = [part for part in parts if part is not None]
    if isinstance(e, sympy.Mul | sympy.MatMul | sympy.KroneckerProduct | sympy.HadamardProduct):
        return sum(known)
    return max(known, default=0)
