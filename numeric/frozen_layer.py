r"""The linear part of a block with frozen patterns, norm scales and MLP gates, and its adjoint.

    heads   z_h = A_h Ŷ W_V,  written Σ_h z_h W_O
    MLP     (N̂ W_in · G) W_out          N̂: the norm of its input, with frozen scale

G are the gates of an MLP: $act(x) = x · gate(x)$ for every activation function, so with constant
gates the MLP is affine, and on this prompt its output is the original one. The gate of a ReLU is 0
or 1 and locally constant; that of GELU and SiLU varies, so the frozen MLP has the same value there
but another derivative. In a gated MLP G is the activated gate, and paths go through the linear
branch.

Residual streams are stacked, [part, pos, d_model], and results are linear in them; the output at
zero input is a separate `constant`.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True, slots=True, eq=False)
class FrozenLayer:
    """The attention of one layer, linear in stacked residual streams [part, pos, d_model]."""

    pattern: Float[np.ndarray, "head pos pos"]
    scale: Float[np.ndarray, "pos 1"]
    centring: float  # the multiple of the row mean that is added: -1 in a LayerNorm, else 0
    gain: Float[np.ndarray, " d_model"]
    W_V: Float[np.ndarray, "head d_model d_head"]
    norm_bias: Float[np.ndarray, " d_model"]
    b_V: Float[np.ndarray, "head d_head"]
    W_O: Float[np.ndarray, "head d_head d_model"]
    V_size: Float[np.ndarray, "head d_model d_head"] | None = None
    """Where W_V is a product, that of the absolute values of its factors, for rounding bounds."""

    @property
    def value_bias(self) -> Float[np.ndarray, "head d_head"]:
        """The values at zero input, $b W_V + b_V$."""
        return self.norm_bias @ self.W_V + self.b_V

    def read(self, rows: Float[np.ndarray, "*parts pos d_model"]) -> np.ndarray:
        """Return $C(X) · g / s$: the frozen norm without its bias, which is in `value_bias`."""
        return centre(rows, self.centring) / self.scale * self.gain

    def z(self, streams: Float[np.ndarray, "part pos d_model"]) -> np.ndarray:
        """Return $A_h Ŷ W_V$ of every head, [part, pos, head, d_head], linear in the streams."""
        n_parts, n_pos, d_model = streams.shape
        n_heads, _, d_head = self.W_V.shape
        side_by_side = self.W_V.transpose(1, 0, 2).reshape(d_model, n_heads * d_head)
        values = self.read(streams).reshape(n_parts * n_pos, d_model) @ side_by_side
        # All parts share the patterns, so that they are the columns of one matrix.
        values = values.reshape(n_parts, n_pos, n_heads, d_head).transpose(2, 1, 0, 3)
        mixed = self.pattern @ values.reshape(n_heads, n_pos, n_parts * d_head)
        return mixed.reshape(n_heads, n_pos, n_parts, d_head).transpose(2, 1, 0, 3)

    def constant(self) -> Float[np.ndarray, "pos head d_head"]:
        """Return the output of each head at zero input: $A_h 1 (b W_V + b_V)$."""
        return self.pattern.sum(axis=2).T[:, :, None] * self.value_bias

    def write(self, z: Float[np.ndarray, "part pos head d_head"]) -> np.ndarray:
        """Return $Σ_h z_h W_O$, [part, pos, d_model]."""
        n_parts, n_pos, n_heads, d_head = z.shape
        stacked = self.W_O.reshape(n_heads * d_head, -1)
        written = z.reshape(n_parts * n_pos, n_heads * d_head) @ stacked
        return written.reshape(n_parts, n_pos, -1)

    def pull_write(self, directions: Float[np.ndarray, "part pos d_model"]) -> np.ndarray:
        """Return the adjoint of `write`, $G W_O^T$ of each head, [part, pos, head, d_head]."""
        n_parts, n_pos, d_model = directions.shape
        n_heads, d_head, _ = self.W_O.shape
        pulled = directions.reshape(-1, d_model) @ self.W_O.reshape(n_heads * d_head, d_model).T
        return pulled.reshape(n_parts, n_pos, n_heads, d_head)

    def pull_z(self, directions: Float[np.ndarray, "part pos head d_head"]) -> np.ndarray:
        """Return the adjoint of `z`, $C(g Σ_h A_h^T G_h W_V^T) / s$, [part, pos, d_model]."""
        n_parts, n_pos, n_heads, d_head = directions.shape
        columns = directions.transpose(2, 1, 0, 3).reshape(n_heads, n_pos, n_parts * d_head)
        mixed = self.pattern.transpose(0, 2, 1) @ columns
        rows = mixed.reshape(n_heads, n_pos, n_parts, d_head).transpose(2, 1, 0, 3)
        stacked = self.W_V.transpose(0, 2, 1).reshape(n_heads * d_head, -1)
        values = rows.reshape(n_parts * n_pos, n_heads * d_head) @ stacked
        return centre(values.reshape(n_parts, n_pos, -1) * self.gain, self.centring) / self.scale

    def pull_back(
        self,
        head: int,
        attention: Float[np.ndarray, "*parts pos"],
        row: Float[np.ndarray, "*parts d_model"],
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the adjoint of one head at $a ⊗ w$: $(a A_h / s) ⊗ C(g · w W_O^T W_V^T)$."""
        before = attention @ self.pattern[head] / self.scale[:, 0]
        read = row @ self.W_O[head].T @ self.W_V[head].T
        return before, centre(read * self.gain, self.centring)


@dataclass(frozen=True, slots=True, eq=False)
class FrozenMLP:
    """The MLP of one layer with constant gates, linear in its input.

    `parallel`: its input is that of attention, without the output of this layer's heads.
    """

    gates: Float[np.ndarray, "pos d_mlp"]
    scale: Float[np.ndarray, "pos 1"]
    centring: float
    gain: Float[np.ndarray, " d_model"]
    W_in: Float[np.ndarray, "d_model d_mlp"]
    norm_bias: Float[np.ndarray, " d_model"]
    b_in: Float[np.ndarray, " d_mlp"]
    W_out: Float[np.ndarray, "d_mlp d_model"]
    b_out: Float[np.ndarray, "*pos d_model"]
    parallel: bool

    def apply(self, streams: Float[np.ndarray, "part pos d_model"]) -> np.ndarray:
        """Return $(N̂ W_in · G) W_out$ of each part [part, pos, d_model].

        Proved by: frozen_gates_make_mlp_linear.
        """
        out = np.empty_like(streams)
        for part, rows in enumerate(streams):
            read = centre(rows, self.centring) / self.scale * self.gain
            out[part] = (read @ self.W_in * self.gates) @ self.W_out
        return out

    def constant(self) -> Float[np.ndarray, "pos d_model"]:
        """Return the output at zero input: $((b W_in + b_in) · G) W_out + b_out$."""
        out: np.ndarray = (
            (self.norm_bias @ self.W_in + self.b_in) * self.gates
        ) @ self.W_out + self.b_out
        return out

    def pull(self, directions: Float[np.ndarray, "part pos d_model"]) -> np.ndarray:
        """Return the adjoint of `apply`, $C(g · (D W_out^T · G) W_in^T) / s$ of each part."""
        back = np.empty_like(directions)
        for part, rows in enumerate(directions):
            read = (rows @ self.W_out.T * self.gates) @ self.W_in.T
            back[part] = centre(read * self.gain, self.centring) / self.scale
        return back


def centre(rows: Float[np.ndarray, "*rows d_model"], centring: float) -> np.ndarray:
    """Return $x + c · mean(x)$ of each row: c = -1 subtracts the mean, c = 0 changes nothing."""
    return rows + centring * rows.mean(axis=-1, keepdims=True) if centring else rows
