r"""Sparse autoencoders: an activation as a sum of few directions out of many.

An SAE reads an activation x as features h ≥ 0, most of them zero, and writes $\hat x = h D + b$
with one row of the decoder D for each feature. With $p = (x - b_{in}) W_{enc} + b_{enc}$:

    relu      h = ReLU(p)                                       Bricken et al. 2023
    gated     h = 1[p_gate > 0] ⊙ ReLU(p)                       Rajamanoharan et al. 2024, gated SAE
              p_gate = (x - b_in) W_gate + b_gate
    topk      h = ReLU(p) where p is among the k largest of its row, else 0     Gao et al. 2024
    jumprelu  h = p where p > θ, else 0                         Rajamanoharan et al. 2024, JumpReLU

A transcoder reads one activation and writes another (Dunefsky, Chlenski and Nanda 2024). A
crosscoder is a transcoder of activations that are put side by side (Lindsey et al. 2024).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Float
from safetensors.numpy import save as safetensors_bytes

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.files import (
    check_writable,
    json_bytes,
    read_arrays,
    read_json,
    write_whole,
)
from otimes.numeric.given import is_whole, real_array
from otimes.numeric.tokenizer import BUNDLED

Variant = Literal["relu", "gated", "topk", "jumprelu"]
VARIANTS: tuple[str, ...] = get_args(Variant)

Rows = Float[np.ndarray, "*rows d_in"]
Features = Float[np.ndarray, "*rows d_sae"]


class SAELoss(NamedTuple):
    """The two parts of the loss of an SAE, each a mean over rows."""

    reconstruction: float
    penalty: float

    def total(self, coefficient: float) -> float:
        """Return the reconstruction error plus `coefficient` times the penalty."""
        return self.reconstruction + coefficient * self.penalty


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SAE:
    """A sparse autoencoder, or a transcoder, in the row convention.

    `W_enc` [d_in, d_sae], `b_enc` [d_sae], `W_dec` [d_sae, d_out], `b_dec` [d_out]; `b_in` [d_in]
    is subtracted from the input (zero if left out; Bricken et al. have b_in = b_dec). A gated SAE
    has `W_gate` [d_in, d_sae] and `b_gate` [d_sae]; a TopK SAE has `k`; a JumpReLU SAE has
    `threshold` [d_sae], none of them negative. `hook_point` is the activation that is read,
    `output` the one that is written (the same if empty), `model` the name of its model.

    Raises: OtimesError for another variant, and a part that is missing or does not belong to it;
    ShapeError for arrays that do not fit.

    >>> sae = SAE(W_enc=np.eye(2), b_enc=np.array([0.0, -1.0]), W_dec=np.eye(2), b_dec=np.zeros(2))
    >>> sae
    <relu SAE of 2 features, d_in=2>
    >>> sae.encode(np.array([[3.0, 4.0], [-1.0, 0.5]])).tolist()
    [[3.0, 3.0], [0.0, 0.0]]
    """

    W_enc: Float[np.ndarray, "d_in d_sae"]
    b_enc: Float[np.ndarray, " d_sae"]
    W_dec: Float[np.ndarray, "d_sae d_out"]
    b_dec: Float[np.ndarray, " d_out"]
    variant: Variant = "relu"
    b_in: Float[np.ndarray, " d_in"] | None = None
    W_gate: Float[np.ndarray, "d_in d_sae"] | None = None
    b_gate: Float[np.ndarray, " d_sae"] | None = None
    threshold: Float[np.ndarray, " d_sae"] | None = None
    k: int | None = None
    hook_point: str = ""
    output: str = ""
    model: str = ""
    card: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise OtimesError(f"variant must be one of {', '.join(VARIANTS)}, got {self.variant!r}")
        _check_parts(self)
        for name, array in self.arrays().items():
            object.__setattr__(self, name, real_array(array, name, finite=False))
        _check_shapes(self)

    @property
    def d_in(self) -> int:
        """The width of the activation that is read."""
        return self.W_enc.shape[0]

    @property
    def d_sae(self) -> int:
        """The number of features."""
        return self.W_enc.shape[1]

    @property
    def d_out(self) -> int:
        """The width of the activation that is written."""
        return self.W_dec.shape[1]

    @property
    def is_transcoder(self) -> bool:
        """Whether it writes another activation than it reads."""
        return self.output not in ("", self.hook_point)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays that it has, by name."""
        found = {each: getattr(self, each) for each in AXES}
        return {name: array for name, array in found.items() if array is not None}

    def pre_activations(self, x: Rows) -> Features:
        """Return $(x - b_{in}) W_{enc} + b_{enc}$ [..., d_sae]."""
        shifted = self._read(x)
        pre: np.ndarray = shifted @ self.W_enc + self.b_enc
        return pre

    def encode(self, x: Rows) -> Features:
        """Return the features [..., d_sae] of activations [..., d_in]; none is negative.

        Raises: ShapeError if the last axis of x is not d_in.
        """
        pre = self.pre_activations(x)
        if self.variant == "gated":
            gate = self._read(x) @ self.W_gate + self.b_gate
            return np.where(gate > 0, np.maximum(pre, 0), 0.0)
        if self.variant == "topk":
            return np.where(_among_largest(pre, self.k or 0), np.maximum(pre, 0), 0.0)
        if self.variant == "jumprelu":
            return np.where(pre > self.threshold, pre, 0.0)
        return np.maximum(pre, 0)

    def decode(self, features: Features) -> Float[np.ndarray, "*rows d_out"]:
        """Return $h D + b_{dec}$ [..., d_out] for features h [..., d_sae]."""
        h = real_array(features, "the features")
        if h.ndim == 0 or h.shape[-1] != self.d_sae:
            raise ShapeError(f"features must have the shape (..., {self.d_sae}), got {h.shape}")
        decoded: np.ndarray = h @ self.W_dec + self.b_dec
        return decoded

    def __call__(self, x: Rows) -> Float[np.ndarray, "*rows d_out"]:
        """Return the reconstruction of activations [..., d_in]."""
        return self.decode(self.encode(x))

    def loss(self, x: Rows, target: Float[np.ndarray, "*rows d_out"] | None = None) -> SAELoss:
        r"""Return the mean over rows of $\lVert target - \hat x \rVert^2$, and of the penalty.

        The target is x itself, unless it is given, as for a transcoder. The penalty is the L1 norm
        of h for relu and the number of active features for jumprelu. For gated it is the L1 norm of
        ReLU(p_gate), and the error has that of the reconstruction from ReLU(p_gate) added, which
        trains the gate. For topk it is 0. A penalty with L1 sees the scale of the features, a count
        does not: see `rescaled`.
        """
        h = self.encode(x)
        target = real_array(x if target is None else target, "the target")
        if target.shape != (*h.shape[:-1], self.d_out):
            raise ShapeError(
                f"the target must have the shape {(*h.shape[:-1], self.d_out)}, got {target.shape}"
            )
        error = _mean_of_rows((target - self.decode(h)) ** 2)
        if self.variant == "relu":
            return SAELoss(error, _mean_of_rows(h))
        if self.variant == "jumprelu":
            return SAELoss(error, _mean_of_rows(h != 0))
        if self.variant == "gated":
            opened = np.maximum(self._read(x) @ self.W_gate + self.b_gate, 0)
            auxiliary = _mean_of_rows((target - self.decode(opened)) ** 2)
            return SAELoss(error + auxiliary, _mean_of_rows(opened))
        return SAELoss(error, 0.0)

    def rescaled(self, scales: float | Float[np.ndarray, " d_sae"]) -> "SAE":
        """Return the same function with feature k divided by its scale and its row multiplied.

        The reconstruction and the number of active features do not change. An L1 penalty does: it
        tends to 0 as the scale grows, which is why decoder rows are kept at norm 1 in training.
        A TopK SAE compares features with each other and takes one scale for all.
        Raises: OtimesError for a scale that is not positive, or several for a TopK SAE.

        >>> sae = SAE(np.eye(2), np.zeros(2), np.eye(2), np.zeros(2))
        >>> sae.rescaled(4.0).loss(np.ones((1, 2)))
        SAELoss(reconstruction=0.0, penalty=0.5)
        """
        by = real_array(scales, "scales", finite=False)
        if by.shape not in ((), (self.d_sae,)):
            raise ShapeError(
                f"scales must be one number or have the shape ({self.d_sae},), got {by.shape}"
            )
        if not (np.isfinite(by).all() and (by > 0).all()):
            raise OtimesError("a scale must be positive and finite")
        if self.variant == "topk" and by.ndim:
            raise OtimesError("a TopK SAE compares its features: give one scale for all of them")
        by = np.broadcast_to(by, (self.d_sae,))
        new: dict[str, Any] = {"W_enc": self.W_enc / by, "b_enc": self.b_enc / by}
        new["W_dec"] = self.W_dec * by[:, None]
        if self.threshold is not None:
            new["threshold"] = self.threshold / by
        return replace(self, **new)

    def unit_rows(self) -> "SAE":
        """Return the same function with decoder rows of norm 1; of norm 0 they stay.

        Raises: OtimesError for a TopK SAE, whose features are compared with each other.
        """
        norms = np.linalg.norm(self.W_dec, axis=1)
        return self.rescaled(1 / np.where(norms > 0, norms, 1.0))

    def fold_norm(
        self, gain: Float[np.ndarray, " d_in"], bias: Float[np.ndarray, " d_in"] | None = None
    ) -> "SAE":
        """Return the SAE of the normalised activation, before the gain and bias of its norm.

        If x = y ⊙ gain + bias, the features of the result on y are those of this SAE on x, and its
        output is that of this SAE, divided by the gain, less the bias: `(sae(x) - bias) / gain`.
        Of a transcoder only the encoder is behind the norm, and its output stays as it is.
        Raises: OtimesError for a gain of zero that the decoder would be divided by.
        """
        gain = real_array(gain, "gain")
        bias = np.zeros(self.d_in) if bias is None else real_array(bias, "bias")
        for name, array in (("gain", gain), ("bias", bias)):
            if array.shape != (self.d_in,):
                raise ShapeError(f"{name} must have the shape ({self.d_in},), got {array.shape}")
        if not (self.is_transcoder or gain.all()):
            raise OtimesError("a gain of zero cannot be divided out of the decoder")
        shift = bias if self.b_in is None else bias - self.b_in
        new: dict[str, Any] = {
            "W_enc": gain[:, None] * self.W_enc,
            "b_enc": self.b_enc + shift @ self.W_enc,
            "b_in": None,
        }
        if not self.is_transcoder:
            new |= {"W_dec": self.W_dec / gain, "b_dec": (self.b_dec - bias) / gain}
        if self.W_gate is not None and self.b_gate is not None:
            new["W_gate"] = gain[:, None] * self.W_gate
            new["b_gate"] = self.b_gate + shift @ self.W_gate
        return replace(self, **new)

    def save(self, folder: str | Path) -> Path:
        """Write the SAE into a folder that `load_sae` reads, and return the folder.

        Arrays are stored in float32. Raises: OtimesError if the folder cannot be written.
        """
        path = Path(folder)
        check_writable(path, folder=True)
        told = {name: getattr(self, name) for name in SETTINGS}
        arrays = self.arrays().items()
        stored = {name: np.ascontiguousarray(each, dtype=np.float32) for name, each in arrays}
        write_whole(path / WEIGHTS_FILE, safetensors_bytes(stored))
        write_whole(path / CONFIG_FILE, json_bytes({**told, "card": dict(self.card)}))
        return path

    def _read(self, x: Rows) -> Rows:
        """Return x less b_in, in float64."""
        rows = real_array(x, "the activations")
        if rows.ndim == 0 or rows.shape[-1] != self.d_in:
            raise ShapeError(
                f"this SAE reads activations of the shape (..., {self.d_in}), got {rows.shape}"
            )
        return rows if self.b_in is None else rows - self.b_in

    def __repr__(self) -> str:
        kind = "transcoder" if self.is_transcoder else "SAE"
        where = f" of {self.model}" if self.model else ""
        arrow = f"{self.hook_point} → {self.output}" if self.is_transcoder else self.hook_point
        return (
            f"<{self.variant} {kind} of {self.d_sae} features{', ' + arrow if arrow else ''}"
            f"{where}, d_in={self.d_in}>"
        )


AXES: dict[str, tuple[str, ...]] = {
    "W_enc": ("d_in", "d_sae"),
    "b_enc": ("d_sae",),
    "W_dec": ("d_sae", "d_out"),
    "b_dec": ("d_out",),
    "b_in": ("d_in",),
    "W_gate": ("d_in", "d_sae"),
    "b_gate": ("d_sae",),
    "threshold": ("d_sae",),
}
"""The arrays of an SAE, with their axes."""

PARTS: dict[str, tuple[str, ...]] = {
    "relu": (),
    "gated": ("W_gate", "b_gate"),
    "topk": ("k",),
    "jumprelu": ("threshold",),
}
"""What each variant has besides encoder and decoder."""

SETTINGS = ("variant", "k", "hook_point", "output", "model")
CONFIG_FILE, WEIGHTS_FILE = "sae.json", "sae.safetensors"


def load_sae(source: "SAE | str | Path") -> SAE:
    """Return a bundled SAE by its name, or the SAE in a folder that `SAE.save` wrote.

    Raises: OtimesError, in one sentence, for a folder without one, and for arrays that do not fit.

    >>> load_sae("gpt2_tiny_sae")
    <topk SAE of 512 features, resid_post.2 of gpt2_tiny, d_in=128>
    """
    if isinstance(source, SAE):
        return source
    if not isinstance(source, str | Path):
        raise OtimesError(f"an SAE is given by name, as a folder or as an SAE, got {source!r}")
    bundled = {path.parent.name: path.parent for path in BUNDLED.glob(f"*/{CONFIG_FILE}")}
    folder = bundled.get(str(source), Path(source))
    if not (folder / CONFIG_FILE).is_file():
        raise OtimesError(
            f"there is no SAE {str(source)!r}: it is neither bundled ({', '.join(sorted(bundled))})"
            f" nor a folder with {CONFIG_FILE}, which `SAE.save` writes"
        )
    told = read_json(folder / CONFIG_FILE)
    arrays: dict[str, Any] = {**read_arrays(folder / WEIGHTS_FILE)}
    known = {each.name for each in fields(SAE)}
    unknown = sorted((set(told) | set(arrays)) - known)
    if unknown:
        raise OtimesError(f"{folder} has {', '.join(unknown)}, which an SAE does not have")
    missing = sorted({"W_enc", "b_enc", "W_dec", "b_dec"} - set(arrays))
    if missing:
        raise OtimesError(f"{folder / WEIGHTS_FILE} lacks {', '.join(missing)}")
    return SAE(**arrays, **told)


def _check_parts(sae: SAE) -> None:
    """Raise OtimesError if a part of the variant is missing, or one of another is given."""
    for name in ("W_enc", "b_enc", "W_dec", "b_dec"):
        if getattr(sae, name) is None:
            raise OtimesError(f"{name} is missing: every SAE has it")
    for variant, parts in PARTS.items():
        for name in parts:
            given = getattr(sae, name) is not None
            if given != (variant == sae.variant):
                verb = "belongs to" if given else "is missing: it makes"
                raise OtimesError(f"{name} {verb} a {variant} SAE; this one is {sae.variant}")


def _check_shapes(sae: SAE) -> None:
    """Raise ShapeError for arrays that do not fit, OtimesError for values out of range."""
    for name in ("W_enc", "W_dec"):
        if getattr(sae, name).ndim != 2:
            raise ShapeError(f"{name} must be a matrix, got the shape {getattr(sae, name).shape}")
    sizes = {"d_in": sae.d_in, "d_sae": sae.d_sae, "d_out": sae.d_out}
    for name, array in sae.arrays().items():
        wanted = tuple(sizes[axis] for axis in AXES[name])
        if array.shape != wanted:
            axes = ", ".join(AXES[name])
            raise ShapeError(f"{name} must have the shape ({axes}) = {wanted}, got {array.shape}")
        if not np.isfinite(array).all():
            raise OtimesError(f"{name} has entries that are not finite")
    if sae.threshold is not None and (sae.threshold < 0).any():
        raise OtimesError("threshold must not be negative")
    if sae.k is not None and (not is_whole(sae.k) or not 1 <= sae.k <= sae.d_sae):
        raise OtimesError(f"k must be from 1 to d_sae = {sae.d_sae}, got {sae.k!r}")


def _among_largest(pre: Float[np.ndarray, "*rows d_sae"], k: int) -> np.ndarray:
    """Return where an entry is among the k largest of its row; of equal ones the first count."""
    order = np.argsort(-pre, axis=-1, kind="stable")[..., :k]
    chosen = np.zeros(pre.shape, dtype=bool)
    np.put_along_axis(chosen, order, values=True, axis=-1)
    return chosen


def _mean_of_rows(entries: np.ndarray) -> float:
    """Return the mean over rows of the sum of each row."""
    return float(entries.sum(axis=-1).mean()) if entries.size else 0.0
