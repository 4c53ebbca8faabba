"""The ways in which correct code computes the operations of a transformer, each in its dtype.

Orders of summation, algorithms in one pass and in two, blockwise and shifted softmaxes, torch's own
kernels. Each takes and returns torch tensors or NumPy arrays of the dtype that it is said to be in,
on 2-D inputs.
"""

import math
from collections.abc import Callable

import numpy as np
import scipy.special
import torch
from torch.nn import functional

Operation = Callable[..., np.ndarray]
TORCH = {name: getattr(torch, name) for name in ("float64", "float32", "float16", "bfloat16")}


def in_torch(dtype: str, function: Callable[..., torch.Tensor]) -> Operation:
    """Return a function of float64 arrays that are put to a dtype of torch, and back."""

    def run(*arrays: np.ndarray | None) -> np.ndarray:
        tensors = [None if a is None else torch.tensor(a).to(TORCH[dtype]) for a in arrays]
        with torch.no_grad():
            return function(*tensors).double().numpy()

    return run


def in_numpy(dtype: str, function: Callable[..., np.ndarray]) -> Operation:
    """Return a function of float64 arrays that are put to a dtype of NumPy, and back."""

    def run(*arrays: np.ndarray | None) -> np.ndarray:
        typed = [None if a is None else a.astype(dtype) for a in arrays]
        with np.errstate(all="ignore"):
            found = function(*typed)
        assert found.dtype == dtype
        return found.astype(np.float64)

    return run


# -- products: (rows, weight, bias or None) --------------------------------------------------------


def _plus(product: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    return product if bias is None else product + bias


def one_by_one(rows: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    total = np.zeros((len(rows), weight.shape[1]), rows.dtype)
    if bias is not None:
        total = total + bias  # where a fused product begins
    for k in range(rows.shape[1]):
        total = total + rows[:, k, None] * weight[k]
    return total


def backwards(rows: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    return _plus(one_by_one(rows[:, ::-1], weight[::-1], None), bias)


def pairwise(rows: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    return _plus((rows[:, None, :] * weight.T[None]).sum(axis=-1), bias)


def in_blocks(rows: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    total = np.zeros((len(rows), weight.shape[1]), rows.dtype)
    for start in range(0, rows.shape[1], 5):
        total = total + rows[:, start : start + 5] @ weight[start : start + 5]
    return _plus(total, bias)


def library(rows: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    return _plus(rows @ weight, bias)


def accumulated_in_double(
    rows: np.ndarray, weight: np.ndarray, bias: np.ndarray | None
) -> np.ndarray:
    wide = rows.astype(np.float64) @ weight.astype(np.float64)
    return _plus(wide, bias).astype(rows.dtype)


def _linear(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    return functional.linear(rows, weight.mT, bias)


def _apart(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    return rows @ weight if bias is None else rows @ weight + bias


PRODUCTS: dict[str, tuple[str, Operation]] = {
    f"{function.__name__} {dtype}": (dtype, in_numpy(dtype, function))
    for dtype in ("float32", "float64")
    for function in (one_by_one, backwards, pairwise, in_blocks, library, accumulated_in_double)
}
PRODUCTS |= {
    f"torch{name} {dtype}": (dtype, in_torch(dtype, function))
    for dtype in TORCH
    for name, function in (("", _linear), (" apart", _apart))
}
PRODUCTS["library float16"] = ("float16", in_numpy("float16", library))

# -- norms: (rows, gain, bias), the bias None for "rms" --------------------------------------------


def norms(kind: str, eps: float) -> dict[str, tuple[str, Operation]]:
    """Return the implementations of a norm."""

    def squared(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean = rows.mean(axis=-1, keepdims=True) if kind == "layer" else rows.dtype.type(0)
        return rows - mean, ((rows - mean) ** 2).mean(axis=-1, keepdims=True)

    def scaled(c: np.ndarray, square: np.ndarray, gain: np.ndarray, bias: np.ndarray | None):
        return _plus(c / np.sqrt(square + c.dtype.type(eps)) * gain, bias)

    def two_passes(rows: np.ndarray, gain: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
        return scaled(*squared(rows), gain, bias)

    def one_pass(rows: np.ndarray, gain: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
        mean = rows.mean(axis=-1, keepdims=True) if kind == "layer" else rows.dtype.type(0)
        square = np.maximum((rows**2).mean(axis=-1, keepdims=True) - mean**2, 0)
        return scaled(rows - mean, square, gain, bias)

    def welford(rows: np.ndarray, gain: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
        if kind != "layer":
            return two_passes(rows, gain, bias)
        mean, total = np.zeros((len(rows), 1), rows.dtype), np.zeros((len(rows), 1), rows.dtype)
        for k in range(rows.shape[1]):
            column = rows[:, k, None]
            step = column - mean
            mean = mean + step / rows.dtype.type(k + 1)
            total = total + step * (column - mean)
        return scaled(rows - mean, total / rows.dtype.type(rows.shape[1]), gain, bias)

    def by_reciprocal(rows: np.ndarray, gain: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
        c, square = squared(rows)
        one = rows.dtype.type(1)
        return _plus(c * (one / np.sqrt(square + rows.dtype.type(eps))) * gain, bias)

    def shifted(rows: np.ndarray, gain: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
        """As torch does on processors: x r - μ r, then gain and bias."""
        mean = rows.mean(axis=-1, keepdims=True) if kind == "layer" else rows.dtype.type(0)
        _, square = squared(rows)
        r = rows.dtype.type(1) / np.sqrt(square + rows.dtype.type(eps))
        return _plus((rows * r + -mean * r) * gain, bias)

    def torchs(rows: torch.Tensor, gain: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        if kind == "layer":
            return functional.layer_norm(rows, rows.shape[-1:], gain, bias, eps)
        return functional.rms_norm(rows, rows.shape[-1:], gain, eps)

    def llamas(rows: torch.Tensor, gain: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        wide = rows.float()
        scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
        return gain * scaled.to(rows.dtype)

    found: dict[str, tuple[str, Operation]] = {
        f"{function.__name__} {dtype}": (dtype, in_numpy(dtype, function))
        for dtype in ("float32", "float64")
        for function in (two_passes, one_pass, welford, by_reciprocal, shifted)
    }
    found |= {f"torch {dtype}": (dtype, in_torch(dtype, torchs)) for dtype in TORCH}
    if kind == "rms":
        halves = ("float32", "float16", "bfloat16")
        found |= {f"llama {dtype}": (dtype, in_torch(dtype, llamas)) for dtype in halves}
    return found


# -- softmax of the visible entries: (scores,), the mask being causal ------------------------------


def _visible(scores: np.ndarray) -> np.ndarray:
    return np.tri(*scores.shape, dtype=bool)


def shifted_softmax(scores: np.ndarray) -> np.ndarray:
    seen = np.where(_visible(scores), scores, scores.dtype.type(-np.inf))
    weights = np.exp(seen - seen.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def unshifted_softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.where(_visible(scores), np.exp(scores), scores.dtype.type(0))
    return weights / weights.sum(axis=1, keepdims=True)


def log_softmax(scores: np.ndarray) -> np.ndarray:
    seen = np.where(_visible(scores), scores, scores.dtype.type(-np.inf))
    highest = seen.max(axis=1, keepdims=True)
    total = highest + np.log(np.exp(seen - highest).sum(axis=1, keepdims=True))
    return np.exp(seen - total)


def binary_softmax(scores: np.ndarray) -> np.ndarray:
    scaled = scores * scores.dtype.type(1 / math.log(2))
    seen = np.where(_visible(scores), scaled, scores.dtype.type(-np.inf))
    weights = np.exp2(seen - seen.max(axis=1, keepdims=True))
    return weights * (scores.dtype.type(1) / weights.sum(axis=1, keepdims=True))


def _torch_softmax(scores: torch.Tensor) -> torch.Tensor:
    hidden = ~torch.ones_like(scores, dtype=torch.bool).tril()
    return scores.masked_fill(hidden, -math.inf).softmax(-1)


SOFTMAXES: dict[str, tuple[str, Operation]] = {
    f"{function.__name__} {dtype}": (dtype, in_numpy(dtype, function))
    for dtype in ("float32", "float64")
    for function in (shifted_softmax, unshifted_softmax, log_softmax, binary_softmax)
}
SOFTMAXES |= {f"torch {dtype}": (dtype, in_torch(dtype, _torch_softmax)) for dtype in TORCH}

# -- attention in one go: (q, k, v), only z is shown -----------------------------------------------


def flash(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return z by blocks of three keys, each rescaling what went before."""
    n_pos, d_head = q.shape
    kind = q.dtype.type
    highest = np.full((n_pos, 1), -np.inf, q.dtype)
    total, z = np.zeros((n_pos, 1), q.dtype), np.zeros((n_pos, v.shape[1]), q.dtype)
    for start in range(0, n_pos, 3):
        block = slice(start, start + 3)
        scores = q @ k[block].T * kind(1 / math.sqrt(d_head))
        seen = np.where(np.tri(n_pos, dtype=bool)[:, block], scores, kind(-np.inf))
        new = np.maximum(highest, seen.max(axis=1, keepdims=True))
        old = np.exp(highest - new)
        weights = np.exp(seen - new)
        total = total * old + weights.sum(axis=1, keepdims=True)
        z = z * old + weights @ v[block]
        highest = new
    return z / total


def _sdpa(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]


ATTENTIONS: dict[str, tuple[str, Operation]] = {
    f"torch {dtype}": (dtype, in_torch(dtype, _sdpa)) for dtype in TORCH
}
ATTENTIONS |= {
    f"flash {dtype}": (dtype, in_numpy(dtype, flash)) for dtype in ("float32", "float64")
}

# -- activations: (x,) -----------------------------------------------------------------------------


def _by_erf(x: np.ndarray) -> np.ndarray:
    kind = x.dtype.type
    return kind(0.5) * x * (kind(1) + scipy.special.erf(x / kind(math.sqrt(2))))


def _by_normal(x: np.ndarray) -> np.ndarray:
    return x * scipy.special.ndtr(x)


def _by_tanh(x: np.ndarray) -> np.ndarray:
    kind = x.dtype.type
    inner = kind(math.sqrt(2 / math.pi)) * (x + kind(0.044715) * x * x * x)
    return kind(0.5) * x * (kind(1) + np.tanh(inner))


def _by_exp(x: np.ndarray) -> np.ndarray:
    return x / (x.dtype.type(1) + np.exp(-x))


def _half_tanh(x: np.ndarray) -> np.ndarray:
    kind = x.dtype.type
    return x * (kind(0.5) + kind(0.5) * np.tanh(x * kind(0.5)))


_FORMULAS: dict[str, tuple[Operation, ...]] = {
    "relu": (lambda x: np.maximum(x, x.dtype.type(0)),),
    "gelu": (_by_erf, _by_normal),
    "gelu_tanh": (_by_tanh,),
    "silu": (_by_exp, _half_tanh),
    "relu2": (lambda x: np.maximum(x, 0) ** 2, lambda x: np.where(x > 0, x, 0) * x),
    "quick_gelu": (
        lambda x: x * scipy.special.expit(x.dtype.type(1.702) * x),
        lambda x: x / (x.dtype.type(1) + np.exp(-x.dtype.type(1.702) * x)),
    ),
    "sigmoid": (scipy.special.expit, lambda x: x.dtype.type(1) / (x.dtype.type(1) + np.exp(-x))),
    "tanh": (np.tanh,),
    "exp": (np.exp,),
    "rsqrt": (lambda x: x.dtype.type(1) / np.sqrt(x),),
}
_TORCHS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
    "relu2": lambda x: torch.relu(x).square(),
    "quick_gelu": lambda x: (
        (x.float() * torch.sigmoid(1.702 * x.float())).to(x.dtype)
        if x.dtype in (torch.float16, torch.bfloat16)
        else x * torch.sigmoid(1.702 * x)
    ),
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "exp": torch.exp,
    "rsqrt": torch.rsqrt,
}


def activations(name: str) -> dict[str, tuple[str, Operation]]:
    """Return the implementations of an activation."""
    found = {
        f"formula {number} {dtype}": (dtype, in_numpy(dtype, formula))
        for dtype in ("float32", "float64")
        for number, formula in enumerate(_FORMULAS[name])
    }
    return found | {f"torch {dtype}": (dtype, in_torch(dtype, _TORCHS[name])) for dtype in TORCH}
