"""Sums and products with their rounding errors: the multilinear part of a pass.

A `Near` is an array in float64 and how far a correct implementation may be from it, entry by entry:
zero for what was recorded, more for what it computed and did not show. Every function here takes
such arrays and a `Precision`, and returns the next: what the inputs carry over, and what the
operation adds. The bounds are those of Higham 2002, §3.5, and hold for every order of summation,
fused multiply-adds and partial sums included.

With `Precision.likely`, n products are summed as if their errors were independent: 6 u √n times
(‖a ∘ b‖₂ + |Σ a b|), the size of partial sums, instead of γ_n Σ |a b|.
"""

from dataclasses import dataclass

import numpy as np

from numeric.rounding.precision import Precision

Array = np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Near:
    """What was computed: within `error` of `value`, which has the same shape."""

    value: Array
    error: Array

    @classmethod
    def exactly(cls, array: Array) -> "Near":
        """Return an array that is known as it is."""
        value = np.asarray(array, dtype=np.float64)
        return cls(value, np.zeros_like(value))

    @property
    def size(self) -> Array:
        """The largest absolute value that each entry may have."""
        return np.abs(self.value) + self.error


def linear(
    rows: Near, weight: Near, bias: Array | None, p: Precision, rescaled: int = 0, sums: int = 0
) -> Near:
    """Return rows @ weight + bias, for stacks of matrices alike.

    `rescaled`: how often an entry of a factor may have been stored again before the product;
    `sums`: how many more roundings a blockwise algorithm makes on its way.
    """
    value = rows.value @ weight.value
    size = rows.size @ weight.size
    carried = 0.0
    if rows.error.any():
        carried = rows.error @ weight.size
    if weight.error.any():
        carried = carried + np.abs(rows.value) @ weight.error
    n_terms = rows.value.shape[-1] + sums
    added = np.zeros(1) if bias is None else np.abs(bias)
    worst = p.within(n_terms + 1) * (size + added)
    if p.likely:
        spread = np.sqrt(rows.size**2 @ weight.size**2)
        sharp = 6 * p.inner * n_terms**0.5 * (spread + np.abs(value) + added)
        again = 6 * rescaled * p.unit * spread
        own = np.minimum(worst, sharp) + np.minimum(p.stored(rescaled) * size, again)
    else:
        own = worst + p.stored(rescaled) * size
    error = carried + own
    stored = p.stored() * (np.abs(value) + error)
    if bias is not None:
        value = value + bias
        stored = stored + p.stored() * (np.abs(value) + error + stored)
    return Near(value, error + stored + (n_terms + 2) * p.tiny)


def over_heads(z: Near, W_O: Near, bias: Array, p: Precision) -> Near:
    """Return the sum over the heads of z [head, pos, d_head] times W_O [head, d_head, d_model].

    Either in one product, or head by head, each stored and then added to the others.
    """
    heads, _, d_head = z.value.shape
    each = z.value @ W_O.value
    size = (z.size @ W_O.size).sum(axis=0)
    carried = (z.error @ W_O.size).sum(axis=0)
    value = each.sum(axis=0) + bias
    worst = p.within(heads * d_head + 1) * (size + np.abs(bias))
    partial = p.stored(heads + 1) * (np.abs(each).sum(axis=0) + np.abs(bias))
    if p.likely:
        spread = np.sqrt((z.size**2 @ W_O.size**2).sum(axis=0)) + np.abs(value) + np.abs(bias)
        worst = np.minimum(worst, 6 * p.inner * (heads * d_head) ** 0.5 * spread)
        spread = np.sqrt((each**2).sum(axis=0)) + np.abs(value) + np.abs(bias)
        partial = np.minimum(partial, 6 * p.unit * (heads + 1) ** 0.5 * spread)
    error = carried + worst + partial
    error = error + p.stored() * (np.abs(value) + error)
    return Near(value, error + (heads * (d_head + 1) + 2) * p.tiny)


def added(p: Precision, *terms: Near) -> Near:
    """Return a sum of a few arrays, in any order.

    Each term counts with one rounding of its own: an implementation that adds it while it is still
    being computed shows it rounded, and adds it as it was.
    """
    value = np.asarray(sum(term.value for term in terms))
    error = np.asarray(sum(term.error for term in terms))
    size = np.asarray(sum(term.size for term in terms))
    partial = p.stored(len(terms) - 2) * size if len(terms) > 2 else 0.0
    own = p.stored(2) * (np.abs(value) + error) + p.stored() * size + partial
    return Near(value, error + own)


def multiplied(a: Near, b: Near, p: Precision) -> Near:
    """Return the product entry by entry."""
    value = a.value * b.value
    carried = a.error * b.size + np.abs(a.value) * b.error
    return Near(value, carried + p.stored() * (np.abs(value) + carried) + p.tiny)
