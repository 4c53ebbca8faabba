r"""A frozen pass: one prompt, with every attention pattern and every norm scale held fixed.

What is left of the transformer is linear in its stream. Row convention, for a layer with heads h:

    read     Ŷ = C(X) · g / s         C takes off the row mean in a LayerNorm; s: the scale
    head h   z_h = A_h Ŷ W_V          and, once, what it gives for no stream at all (`constant`):
                                      the rows of A_h (b W_V + b_V), b the bias of the norm
    write    X ← X + Σ_h z_h W_O

The **sources** are what heads have not written: the embedding with the positions that are in the
stream, then after each layer its b_O and, of its MLP, one of two things. A head's own constant is a
source that this head alone reads: b_V belongs to its head.

    mlp="sources"   what the MLP gave when the prompt was really run, wherever that came from
    mlp="gates"     what it gives for no stream; its gates are fixed (see `frozen_layer`), and what
                    lies in the stream goes past it and through it: X ← X + MLP(X)

The final norm, frozen, and the unembedding make a **direction** of each token at each position: a
row w of the stream's width, and a number that comes on top once and belongs to the sources.

The adjoint of a layer takes a direction at its output to one at its input. Where that direction
lives on one position, what a head makes of it is again a row of attention times a row of the
stream's width (`FrozenLayer.pull_back`): this is why single paths are cheap. Gates differ from
position to position, so that through an MLP a direction becomes a row for each position.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int

from algebra.errors import OtimesError, ShapeError
from numeric.config import check_pre_norm
from numeric.frozen_layer import FrozenLayer, FrozenMLP, centre
from numeric.functions import ACTIVATION, GATE, norm_scale
from numeric.model import Model
from numeric.prompt import read_position, read_prompt

Token = int | tuple[int, int] | np.ndarray
"""A token; a pair (one, other), for the difference of their logits; or any row [d_model]."""

MLPKind = Literal["sources", "gates"]
"""What of an MLP is held fixed: what it gave, or its gates."""

TOKENS_AT_ONCE = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Direction:
    """What a logit is of the stream: $x ↦ x · w + constant$ at one position."""

    position: int
    row: Float[np.ndarray, " d_model"]
    constant: float


@dataclass(frozen=True, slots=True, eq=False)
class FrozenPass:
    """One prompt with its patterns and norm scales, and its MLPs' outputs or their gates.

    `first` is the stream before the first layer. Of `mlp_outs` and `mlp_gates` one is empty, and
    both are without MLPs. Arrays are of `dtype`.
    """

    model: Model
    tokens: Int[np.ndarray, " pos"]
    patterns: tuple[Float[np.ndarray, "head pos pos"], ...]
    scales: tuple[Float[np.ndarray, "pos 1"], ...]
    final_scale: Float[np.ndarray, "pos 1"]
    first: Float[np.ndarray, "pos d_model"]
    mlp_outs: tuple[Float[np.ndarray, "pos d_model"], ...]
    mlp_gates: tuple[Float[np.ndarray, "pos d_mlp"], ...]
    mlp_scales: tuple[Float[np.ndarray, "pos 1"], ...]
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
            mlp_gates=tuple(gates[:n] for gates in self.mlp_gates),
            mlp_scales=tuple(scale[:n] for scale in self.mlp_scales),
        )

    def layer(self, number: int) -> FrozenLayer:
        """Return the attention of one layer, its weights in `dtype`."""
        return FrozenLayer(
            pattern=self.patterns[number],
            scale=self.scales[number],
            centring=_centring(self.model),
            gain=self._part("ln1_gain", number),
            W_V=self._part("W_V", number),
            norm_bias=self._part("ln1_bias", number),
            b_V=self._part("b_V", number),
            W_O=self._part("W_O", number),
        )

    def layers(self) -> Iterator[FrozenLayer]:
        """Yield the attention of the layers, the first one first."""
        for number in range(self.model.n_layers):
            yield self.layer(number)

    def mlp(self, number: int) -> FrozenMLP | None:
        """Return the MLP of one layer if streams go through it, its weights in `dtype`."""
        if not self.mlp_gates:
            return None
        return FrozenMLP(
            gates=self.mlp_gates[number],
            scale=self.mlp_scales[number],
            centring=_centring(self.model),
            gain=self._part("ln2_gain", number),
            W_in=self._part("W_in", number),
            norm_bias=self._part("ln2_bias", number),
            b_in=self._part("b_in", number),
            W_out=self._part("W_out", number),
            b_out=self._part("b_out", number),
            parallel=self.model.config.parallel,
        )

    def after(
        self,
        number: int,
        before: Float[np.ndarray, "part pos d_model"],
        written: Float[np.ndarray, "part pos d_model"] | None = None,
    ) -> np.ndarray:
        """Return what leaves a block, given what came to it and what its heads wrote (or nothing).

        Linear in both: what enters besides is `entering`.
        """
        middle = before if written is None else before + written
        mlp = self.mlp(number)
        return middle if mlp is None else middle + mlp.apply(before if mlp.parallel else middle)

    def pull_after(
        self, number: int, directions: Float[np.ndarray, "part pos d_model"]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the adjoint of `after`: directions on what heads wrote, and on what came."""
        mlp = self.mlp(number)
        if mlp is None:
            return directions, directions
        on_all = directions + mlp.pull(directions)
        return (directions if mlp.parallel else on_all), on_all

    def entering(self, number: int) -> Float[np.ndarray, "pos d_model"]:
        """Return the sources that enter after a layer has read: b_O, and what its MLP brings."""
        b_O = np.broadcast_to(self._part("b_O", number), self.first.shape)
        if self.mlp_outs:
            return b_O + self.mlp_outs[number]
        mlp = self.mlp(number)
        if mlp is None:
            return b_O
        return b_O + mlp.constant() + (0 if mlp.parallel else mlp.apply(b_O[None])[0])

    def at(self, position: Any) -> int:
        """Return a position counted from the front, or say that there is none."""
        return read_position(self.n_pos, position)

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
            if not np.isfinite(token).all():
                raise OtimesError("a direction must be finite, and this one has NaN or infinity")
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

    def _part(self, name: str, number: int) -> np.ndarray:
        return self.model.part(name, number).astype(self.dtype, copy=False)

    def _of_final_norm(self, name: str) -> np.ndarray:
        return self.model.part(name).astype(self.dtype, copy=False)

    def _final_centring(self) -> float:
        return _centring(self.model) if self.model.config.final_norm else 0.0


def freeze(
    model: Model, tokens: Any, dtype: Any = np.float64, mlp: MLPKind = "sources"
) -> FrozenPass:
    """Return the frozen pass of a prompt, text or tokens: run once, patterns, scales, MLPs kept.

    Raises: OtimesError for another type than float64 and float32, and another `mlp`.

    >>> from numeric.model import load_model
    >>> freeze(load_model("two_layer"), [5, 6, 7]).patterns[1].shape
    (4, 3, 3)
    """
    try:
        kind = np.dtype(dtype)
    except TypeError:
        raise OtimesError(f"paths are computed in float64 or float32, not in {dtype!r}") from None
    if kind not in (np.float64, np.float32):
        raise OtimesError(f"paths are computed in float64 or float32, not in {kind}")
    if mlp not in ("sources", "gates"):
        raise OtimesError(
            f"of MLPs either the outputs are fixed (mlp='sources') or the gates (mlp='gates'),"
            f" got mlp={mlp!r}"
        )
    check_pre_norm(model.config, "paths and frozen norms")
    config, tokens = model.config, read_prompt(model, tokens).tokens
    normed, layers = config.norm != "none", range(model.n_layers)
    gated = config.d_mlp > 0 and mlp == "gates"
    mlp_reads = "resid_pre" if config.parallel else "resid_mid"
    each = {"pattern", *(["resid_pre"] if normed else [])}
    if config.d_mlp:
        each |= {"mlp_out"} if mlp == "sources" else {"mlp_pre", *([mlp_reads] if normed else [])}
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
        mlp_outs=tuple(cast(places[f"mlp_out.{n}"]) for n in layers if config.d_mlp and not gated),
        mlp_gates=tuple(cast(_gates(model, places[f"mlp_pre.{n}"])) for n in layers if gated),
        mlp_scales=tuple(scale(f"{mlp_reads}.{n}", normed) for n in layers if gated),
        dtype=kind,
    )


def _gates(model: Model, pre: Float[np.ndarray, "pos d_mlp"]) -> np.ndarray:
    """Return what the rest of an MLP is multiplied with, entry by entry."""
    config = model.config
    assert config.activation is not None  # the configuration of a model with an MLP names one
    gates: np.ndarray = (ACTIVATION if config.gated else GATE)[config.activation](pre)
    return gates


def _centring(model: Model) -> float:
    return -1.0 if model.config.norm == "layer" else 0.0
