"""Sums and products with their rounding errors: the multilinear part of a forward pass.

A `Near` is a float64 array with an entrywise error bound: 0 for recorded activations, positive for
intermediate results that an implementation did not record. Every function here takes such arrays
and a `Precision`, and returns the result with its error: the propagated error of the inputs plus
the error of the operation. The bounds are those of Higham 2002, §3.5. They hold for every order of
summation, with or without fused multiply-adds.

With `Precision.likely`, rounding errors are treated as independent: the error of a sum of n
products is 6 u √n (‖a ∘ b‖₂ + |Σ a b|), with the size of the partial sums, instead of γ_n Σ |a b|;
errors of the factors are propagated as 2 √Σ (δa b)² instead of Σ |δa b|. With `Precision.sampled`,
‖a ∘ b‖₂ is estimated from below by the terms with the largest a.
"""

import numpy as np

from otimes.numeric.rounding.precision import Precision

Array = np.ndarray


NOTHING = bytes(8)
"""A zero that all entries of a zero error share; faster than `broadcast_to`."""


class Near:
    """An array `value` with an entrywise error bound `error` of the same shape, none by default.

    An error of zero is made when it is first asked for: a pass without bounds never does.
    """

    __slots__ = ("_error", "value")

    def __init__(self, value: Array, error: Array | None = None) -> None:
        self.value = value
        self._error = error

    @classmethod
    def exactly(cls, array: Array) -> "Near":
        """Return an array without error."""
        return cls(np.asarray(array, dtype=np.float64))

    @property
    def error(self) -> Array:
        """The bound of each entry."""
        if self._error is None:
            value = self.value
            self._error = np.ndarray(value.shape, np.float64, NOTHING, 0, (0,) * value.ndim)
        return self._error

    @property
    def exact(self) -> bool:
        """Whether the error is zero; for `exactly` this is decided without reading the entries."""
        error = self._error
        return error is None or not (any(error.strides) or (error.size and error.item(0)))

    @property
    def size(self) -> Array:
        """The largest possible absolute value of each entry."""
        size = np.abs(self.value)
        return size if self.exact else size + self.error


def linear(
    rows: Near, weight: Near, bias: Array | None, p: Precision, rescaled: int = 0, sums: int = 0
) -> Near:
    """Return rows @ weight + bias, also for stacks of matrices.

    `rescaled` is the number of extra roundings of the factors before the product; `sums` the number
    of extra roundings of a blockwise algorithm.
    """
    value = rows.value @ weight.value
    if p.exact:
        return Near.exactly(value if bias is None else value + bias)
    carried = _carried(rows, weight, p)
    n_terms = rows.value.shape[-1] + sums
    added = np.zeros(1) if bias is None else np.abs(bias)
    if p.likely:
        spread = _less_spread(rows, weight) if p.sampled else _spread(rows, weight)
        own = 6 * p.inner * n_terms**0.5 * (spread + np.abs(value) + added)
        own = own + 6 * rescaled * p.unit * spread
    if not p.likely or n_terms < SHORT:
        size = rows.size @ weight.size
        worst = p.within(n_terms + 1) * (size + added) + p.stored(rescaled) * size
        own = np.minimum(worst, own) if p.likely else worst
    error = carried + own
    stored = p.stored() * (np.abs(value) + error)
    if bias is not None:
        value = value + bias
        stored = stored + p.stored() * (np.abs(value) + error + stored)
    return Near(value, error + stored + (n_terms + 2) * p.tiny)


SHORT = 48
"""With fewer terms than this, the worst-case bound may be below the likely one."""


SHARE = 16
"""The stride at which terms are taken where the size of partial sums is sampled."""


def _less_spread(rows: Near, weight: Near) -> Array:
    """Return a lower bound on √Σ (a b)²: the sum over the terms with the largest rows.

    It is reduced by a factor of 1 - 2⁻¹⁰, as `_spread` is computed in float32.
    """
    n_terms = rows.value.shape[-1]
    if rows.value.ndim > 2 or n_terms < SHARE * SHORT // 2:
        return _spread(rows, weight)
    size = np.einsum("ik,ik->k", rows.value, rows.value)
    largest = np.argpartition(size, -(n_terms // SHARE))[-(n_terms // SHARE) :]
    squares = np.square(rows.value[:, largest]) @ np.square(weight.value[..., largest, :])
    return np.asarray((1 - 2.0**-10) * np.sqrt(squares))


def _spread(rows: Near, weight: Near) -> Array:
    """Return √Σ (a b)² for each entry of the product, computed in float32."""
    squares, scale = [], 1.0
    for x in (rows, weight):
        size = x.value if x.exact else x.size
        largest = float(max(size.max(initial=0.0), -size.min(initial=0.0))) or 1.0
        if not np.isfinite(largest):
            return np.asarray(np.sqrt(rows.size**2 @ weight.size**2))
        small = np.multiply(size, 1 / largest, dtype=np.float32, casting="same_kind")
        squares.append(np.square(small, out=small))
        scale *= largest
    return np.asarray(scale * np.sqrt((squares[0] @ squares[1]).astype(np.float64)))


def _carried(rows: Near, weight: Near, p: Precision) -> Array:
    """Return the propagated error of the factors."""
    carried = np.zeros(1)
    if not rows.exact:
        carried = _moved(rows.error, weight.size, p)
    if not weight.exact:
        carried = carried + _moved(np.abs(rows.value), weight.error, p)
    return carried


def _moved(a: Array, b: Array, p: Precision) -> Array:
    moved: Array = 2 * np.sqrt(a**2 @ b**2) if p.likely else a @ b
    return moved


def over_heads(z: Near, W_O: Near, bias: Array, p: Precision) -> Near:
    """Return the sum over the heads of z [head, pos, d_head] times W_O [head, d_head, d_model].

    The bound holds for one product over all heads, and for a sum of separately stored heads.
    """
    if p.exact or p.sampled:
        return _over_heads_at_once(z, W_O, bias, p)
    heads, _, d_head = z.value.shape
    each = z.value @ W_O.value
    value = each.sum(axis=0) + bias
    n_terms = heads * d_head
    if p.likely:
        carried = 2 * np.sqrt((_carried(z, W_O, p) ** 2).sum(axis=0))
        ends = np.abs(value) + np.abs(bias)
        spread = np.sqrt((_spread(z, W_O) ** 2).sum(axis=0)) + ends
        own = 6 * p.inner * n_terms**0.5 * spread
        spread = np.sqrt((each**2).sum(axis=0)) + ends
        partial = 6 * p.unit * (heads + 1) ** 0.5 * spread
    else:
        carried = _carried(z, W_O, p).sum(axis=0)
        size = (z.size @ W_O.size).sum(axis=0)
        own = p.within(n_terms + 1) * (size + np.abs(bias))
        partial = p.stored(heads + 1) * (np.abs(each).sum(axis=0) + np.abs(bias))
    error = carried + own + partial
    error = error + p.stored() * (np.abs(value) + error)
    return Near(value, error + (heads * (d_head + 1) + 2) * p.tiny)


def _over_heads_at_once(z: Near, W_O: Near, bias: Array, p: Precision) -> Near:
    """Return the same sum as one product, without a bound, or with the sampled one.

    The squares of H heads that sum to s sum to at least s²/H.
    """
    heads, n_pos, d_head = z.value.shape
    flat = Near.exactly(z.value.transpose(1, 0, 2).reshape(n_pos, heads * d_head))
    weight = Near.exactly(W_O.value.reshape(heads * d_head, -1))
    total = flat.value @ weight.value
    value = total + bias
    if p.exact:
        return Near.exactly(value)
    carried = 2 * np.sqrt((_carried(z, W_O, p) ** 2).sum(axis=0))
    ends = np.abs(value) + np.abs(bias)
    own = 6 * p.inner * (heads * d_head) ** 0.5 * (_less_spread(flat, weight) + ends)
    partial = 6 * p.unit * (heads + 1) ** 0.5 * (np.abs(total) / heads**0.5 + ends)
    error = carried + own + partial
    error = error + p.stored() * (np.abs(value) + error)
    return Near(value, error + (heads * (d_head + 1) + 2) * p.tiny)


def added(p: Precision, *terms: Near) -> Near:
    """Return a sum of a few arrays, in any order.

    Each term has one extra rounding: a fused implementation adds the unrounded term but records the
    rounded one.
    """
    value = np.asarray(sum(term.value for term in terms))
    if p.exact:
        return Near.exactly(value)
    error = np.asarray(sum(term.error for term in terms))
    size = np.asarray(sum(term.size for term in terms))
    partial = p.stored(len(terms) - 2) * size if len(terms) > 2 else 0.0
    own = p.stored(2) * (np.abs(value) + error) + p.stored() * size + partial
    return Near(value, error + own)


def multiplied(a: Near, b: Near, p: Precision) -> Near:
    """Return the entrywise product."""
    value = a.value * b.value
    if p.exact:
        return Near.exactly(value)
    carried = a.error * b.size + np.abs(a.value) * b.error
    return Near(value, carried + p.stored() * (np.abs(value) + carried) + p.tiny)
