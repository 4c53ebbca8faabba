r"""A frozen pass: one prompt, with every attention pattern and every norm scale held fixed.

What is left of the transformer is linear in its stream. Row convention, for a layer with heads h:

    read     Ŷ = C(X) · g / s         C takes off the row mean in a LayerNorm; s: the scale
    head h   z_h = A_h Ŷ W_V          and, once, what it gives for no stream at all (`constant`):
                                      the rows of A_h (b W_V + b_V), b the bias of the norm
    write    X ← X + Σ_h z_h W_O

The **sources** are what heads have not written: the embedding with the positions that are in the
stream, then after each layer its b_O and what its MLP gave when the prompt was really run. A
head's own constant is a source that this head alone reads: b_V belongs to its head.

The final norm, frozen, and the unembedding make a **direction** of each token at each position: a
row w of the stream's width, and a number that comes on top once and belongs to the sources.

The adjoint of a layer takes a direction at its output to one at its input. Where that direction
lives on one position, what a head makes of it is again a row of attention times a row of the
stream's width (`FrozenLayer.pull_back`): this is why single paths are cheap.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from algebra.errors import OtimesError, ShapeError
from numeric.functions import norm_scale
from numeric.model import Model

Token = int | tuple[int, int] | np.ndarray
"""A token; a pair (one, other), for the difference of their logits; or any row [d_model]."""

TOKENS_AT_ONCE = 4096


@dataclass(frozen=True, slots=True, eq=False)
class FrozenLayer:
    """The attention of one layer, linear in the stream; streams come stacked, [part, pos, d]."""

    pattern: Float[np.ndarray, "head pos pos"]
    scale: Float[np.ndarray, "pos 1"]
    centring: float  # what is added of the row mean: -1 in a LayerNorm, else 0
    gain: Float[np.ndarray, " d_model"]
    W_V: Float[np.ndarray, "head d_model d_head"]
    norm_bias: Float[np.ndarray, " d_model"]
    b_V: Float[np.ndarray, "head d_head"]
    W_O: Float[np.ndarray, "head d_head d_model"]

    @property
    def value_bias(self) -> Float[np.ndarray, "head d_head"]:
        """What values are for no stream at all, $b W_V + b_V$."""
        return self.norm_bias @ self.W_V + self.b_V

    def read(self, rows: Float[np.ndarray, "*parts pos d_model"]) -> np.ndarray:
        """Return $C(X) · g / s$: the norm, its scale fixed and its bias left to the heads."""
        return centre(rows, self.centring) / self.scale * self.gain

    def z(self, streams: Float[np.ndarray, "part pos d_model"]) -> np.ndarray:
        """Return $A_h Ŷ W_V$ of every head, [part, pos, head, d_head], linear in the streams."""
        n_parts, n_pos, d_model = streams.shape
        n_heads, _, d_head = self.W_V.shape
        side_by_side = self.W_V.transpose(1, 0, 2).reshape(d_model, n_heads * d_head)
        values = self.read(streams).reshape(n_parts * n_pos, d_model) @ side_by_side
        # All parts share the patterns, so a head multiplies them as the columns of one matrix.
        values = values.reshape(n_parts, n_pos, n_heads, d_head).transpose(2, 1, 0, 3)
        mixed = self.pattern @ values.reshape(n_heads, n_pos, n_parts * d_head)
        return mixed.reshape(n_heads, n_pos, n_parts, d_head).transpose(2, 1, 0, 3)

    def constant(self) -> Float[np.ndarray, "pos head d_head"]:
        """Return what each head gives for no stream at all: $A_h 1 (b W_V + b_V)$."""
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
        """Return a direction $a ⊗ w$ before one head: $(a A_h / s) ⊗ C(g · w W_O^T W_V^T)$."""
        before = attention @ self.pattern[head] / self.scale[:, 0]
        read = row @ self.W_O[head].T @ self.W_V[head].T
        return before, centre(read * self.gain, self.centring)


@dataclass(frozen=True, slots=True, eq=False)
class Direction:
    """What a logit is of the stream: $x ↦ x · w + constant$ at one position."""

    position: int
    row: Float[np.ndarray, " d_model"]
    constant: float


@dataclass(frozen=True, slots=True, eq=False)
class FrozenPass:
    """One prompt with its patterns, norm scales and MLP outputs (none in a model without MLPs).

    `first` is the stream before the first layer. Arrays are of `dtype`.
    """

    model: Model
    tokens: Int[np.ndarray, " pos"]
    patterns: tuple[Float[np.ndarray, "head pos pos"], ...]
    scales: tuple[Float[np.ndarray, "pos 1"], ...]
    final_scale: Float[np.ndarray, "pos 1"]
    first: Float[np.ndarray, "pos d_model"]
    mlp_outs: tuple[Float[np.ndarray, "pos d_model"], ...]
    dtype: np.dtype[Any]

    @property
    def n_pos(self) -> int:
        """The length of the prompt."""
        return len(self.tokens)

    def until(self, position: int) -> "FrozenPass":
        """Return the pass up to a position, as views: nothing there depends on what comes after."""
        n = position + 1
        return replace(
            self,
            tokens=self.tokens[:n],
            patterns=tuple(pattern[:, :n, :n] for pattern in self.patterns),
            scales=tuple(scale[:n] for scale in self.scales),
            final_scale=self.final_scale[:n],
            first=self.first[:n],
            mlp_outs=tuple(out[:n] for out in self.mlp_outs),
        )

    def layer(self, number: int) -> FrozenLayer:
        """Return one layer, its weights in `dtype`."""

        def part(name: str) -> np.ndarray:
            return self.model.part(name, number).astype(self.dtype, copy=False)

        return FrozenLayer(
            pattern=self.patterns[number],
            scale=self.scales[number],
            centring=_centring(self.model),
            gain=part("ln1_gain"),
            W_V=part("W_V"),
            norm_bias=part("ln1_bias"),
            b_V=part("b_V"),
            W_O=part("W_O"),
        )

    def layers(self) -> Iterator[FrozenLayer]:
        """Yield the layers, the first one first."""
        for number in range(self.model.n_layers):
            yield self.layer(number)

    def entering(self, number: int) -> Float[np.ndarray, "pos d_model"]:
        """Return the sources that enter after a layer has read: b_O, and what its MLP gave."""
        b_O = self.model.part("b_O", number).astype(self.dtype, copy=False)
        if self.mlp_outs:
            return b_O + self.mlp_outs[number]
        return np.broadcast_to(b_O, self.first.shape)

    def at(self, position: Any) -> int:
        """Return a position counted from the front, or say that there is none."""
        if isinstance(position, bool) or not isinstance(position, int | np.integer):
            raise OtimesError(f"a position is a whole number, got {position!r}")
        if not -self.n_pos <= position < self.n_pos:
            raise OtimesError(
                f"there is no position {position}: the prompt has the positions"
                f" 0 to {self.n_pos - 1}"
            )
        return int(position) % self.n_pos

    def direction(self, position: int, token: Token) -> Direction:
        """Return the direction of a token's logit (a difference of two, a row) at a position."""
        place = self.at(position)
        row, constant = self._unembedding(token)
        norm_bias = self._of_final_norm("ln_final_bias")
        pulled = centre(row * self._of_final_norm("ln_final_gain"), self._final_centring())
        return Direction(
            position=place,
            row=pulled / self.final_scale[place],
            constant=float(norm_bias @ row) + constant,
        )

    def normed(self, streams: Float[np.ndarray, "part pos d_model"]) -> np.ndarray:
        """Return the final norm of streams, its scale fixed, without its bias."""
        gain = self._of_final_norm("ln_final_gain")
        return centre(streams, self._final_centring()) / self.final_scale * gain

    def unembed(
        self,
        rows: Float[np.ndarray, "*parts d_model"],
        tokens: Int[np.ndarray, " chosen"] | None = None,
    ) -> np.ndarray:
        """Return $Y W_U$ for all tokens or the chosen ones; a block of W_U at a time."""
        if tokens is not None:
            return rows @ self._columns(tokens)
        logits = np.empty((*rows.shape[:-1], self.model.d_vocab), dtype=self.dtype)
        for start in range(0, self.model.d_vocab, TOKENS_AT_ONCE):
            block = slice(start, start + TOKENS_AT_ONCE)
            logits[..., block] = rows @ self._columns(block)
        return logits

    def constants(self, tokens: Int[np.ndarray, " chosen"] | None = None) -> np.ndarray:
        """Return what no stream is needed for, [token]: b_U and the final norm's bias, read."""
        bias = self.model.part("b_U", slice(None) if tokens is None else tokens)
        return self.unembed(self._of_final_norm("ln_final_bias"), tokens) + bias.astype(self.dtype)

    def check_tokens(self, tokens: Any) -> Int[np.ndarray, "*chosen"]:
        """Return token numbers as an array, or say which of them the vocabulary lacks."""
        array = np.asarray(tokens)
        if not np.issubdtype(array.dtype, np.integer):
            raise OtimesError(f"tokens are whole numbers, got {tokens!r}")
        wrong = array[(array < 0) | (array >= self.model.d_vocab)]
        if wrong.size:
            raise OtimesError(
                f"token {wrong.flat[0]} is not in the vocabulary of {self.model.name}, which has"
                f" the tokens 0 to {self.model.d_vocab - 1}"
            )
        return array

    def _unembedding(self, token: Token) -> tuple[np.ndarray, float]:
        """Return the column of W_U that is asked for, and its part of b_U."""
        if isinstance(token, tuple):
            if len(token) != 2:
                raise OtimesError(f"a difference of logits is of two tokens, got {token!r}")
            (one, above), (other, below) = (self._unembedding(each) for each in token)
            return one - other, above - below
        if isinstance(token, np.ndarray) and token.dtype.kind == "f":
            if token.shape != (self.model.d_model,):
                raise ShapeError(
                    f"a direction has shape (d_model,) = ({self.model.d_model},), got {token.shape}"
                )
            return token.astype(self.dtype, copy=False), 0.0
        chosen = self.check_tokens(token)
        if chosen.size != 1:
            raise OtimesError(
                "a logit is that of one token; a tuple of two means their difference, and an array"
                f" [d_model] of real numbers any direction, got {token!r}"
            )
        chosen = chosen.reshape(1)
        return self._columns(chosen)[:, 0], float(self.model.part("b_U", chosen)[0])

    def _columns(self, chosen: Any) -> np.ndarray:
        """Return columns of W_U; no others are converted."""
        if self.model.config.tied:
            columns = self.model.part("W_E", chosen).T
        else:
            columns = self.model.part("W_U", (slice(None), chosen))
        return columns.astype(self.dtype, copy=False)

    def _of_final_norm(self, name: str) -> np.ndarray:
        return self.model.part(name).astype(self.dtype, copy=False)

    def _final_centring(self) -> float:
        return _centring(self.model) if self.model.config.final_norm else 0.0


def freeze(model: Model, tokens: Any, dtype: Any = np.float64) -> FrozenPass:
    """Return the frozen pass of a prompt: run it once, keep patterns, scales and MLP outputs.

    >>> from numeric.model import load_model
    >>> freeze(load_model("two_layer"), [5, 6, 7]).patterns[1].shape
    (4, 3, 3)
    """
    kind = np.dtype(dtype)
    if kind not in (np.float64, np.float32):
        raise OtimesError(f"paths are computed in float64 or float32, not in {kind}")
    config, tokens = model.config, model.check_tokens(tokens)
    normed, layers = config.norm != "none", range(model.n_layers)
    each = ["pattern", *(["resid_pre"] if normed else []), *(["mlp_out"] if config.d_mlp else [])]
    record = ["embed", *[f"{place}.{number}" for number in layers for place in each]]
    places = model.forward(tokens, [*record, *(["final"] if config.final_norm else [])])

    def cast(array: np.ndarray) -> np.ndarray:
        return array.astype(kind, copy=False)

    def scale(place: str, there_is: bool) -> np.ndarray:
        if not there_is:
            return np.broadcast_to(kind.type(1), (len(tokens), 1))
        return cast(norm_scale(places[place], config.norm, config.norm_eps))

    first = places["embed"]
    if config.positions == "learned":
        first = first + model.part("W_pos", slice(len(tokens)))
    return FrozenPass(
        model=model,
        tokens=tokens,
        patterns=tuple(cast(places[f"pattern.{number}"]) for number in layers),
        scales=tuple(scale(f"resid_pre.{number}", normed) for number in layers),
        final_scale=scale("final", config.final_norm),
        first=cast(first),
        mlp_outs=tuple(cast(places[f"mlp_out.{n}"]) for n in layers if config.d_mlp),
        dtype=kind,
    )


def centre(rows: Float[np.ndarray, "*rows d_model"], centring: float) -> np.ndarray:
    """Return $x + c · mean(x)$ of each row: c = -1 centres it, c = 0 leaves it alone."""
    return rows + centring * rows.mean(axis=-1, keepdims=True) if centring else rows


def _centring(model: Model) -> float:
    return -1.0 if model.config.norm == "layer" else 0.0
