r"""A frozen forward pass: one prompt, with all attention patterns and norm scales constant.

The frozen transformer is affine in its residual stream X. Row convention, for heads h of a layer:

    read     Ŷ = C(X) · g / s         C subtracts the row mean in a LayerNorm; s: the scale
    head h   z_h = A_h Ŷ W_V          plus its output at X = 0 (`constant`):
                                      the rows of A_h (b W_V + b_V), b the bias of the norm
    write    X ← X + Σ_h z_h W_O

The **sources** are the terms of the residual stream that no head wrote: the embedding with learned
positions, then after each layer its b_O and, depending on `mlp`, one of the following. The constant
of a head is a source for that head only: b_V belongs to its head.

    mlp="sources"   the MLP's output on this prompt, as a constant
    mlp="gates"     the MLP's output at X = 0; its gates are constant (see `frozen_layer`), and it
                    is part of the paths: X ← X + MLP(X)

The frozen final norm and the unembedding give each token at each position a **direction**: a row w
[d_model] with which the residual stream is multiplied, and a constant, which counts as a source.

The adjoint of a layer maps a direction at its output to one at its input. The adjoint of a head
maps a direction at one position to a product of an attention row and a row [d_model]
(`FrozenLayer.pull_back`), which makes single paths cheap. Gates differ between positions, so the
adjoint of an MLP has a separate row for each position.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.brief import Brief
from otimes.numeric.config import PATTERN_SETTINGS, check_settings
from otimes.numeric.experts import by_neuron
from otimes.numeric.frozen_layer import FrozenLayer, FrozenMLP, centre
from otimes.numeric.functions import ACTIVATION, GATE, linear, norm_scale
from otimes.numeric.importers.torch_layers import to_stream
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.model import Model
from otimes.numeric.output_norms import added_place, output_bias, output_scales, written
from otimes.numeric.prompt import are_integers, read_position, read_prompt

Token = int | tuple[int, int] | np.ndarray
"""A token; a pair (one, other), for their logit difference; or any row [d_model]."""

MLPKind = Literal["sources", "gates"]
"""What is constant in an MLP: its output, or its gates."""

TOKENS_AT_ONCE = 4096
FROZEN = (*PATTERN_SETTINGS, "kv_rank", "n_experts", "embed_scale", "embed_norm", "output_norms")
"""The settings that paths take into account: those of patterns, which are constant, and these."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Direction(Brief):
    """A logit as a function of the residual stream, $x ↦ x · w + constant$, at one position."""

    position: int
    row: Float[np.ndarray, " d_model"]
    constant: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FrozenPass(Brief):
    """One prompt with its patterns and norm scales, and the outputs or the gates of its MLPs.

    `first` is the residual stream before the first layer. Either `mlp_outs` or `mlp_gates` is
    empty; without MLPs both are. Arrays have the dtype `dtype`.
    """

    model: Model
    tokens: Int[np.ndarray, " pos"]
    patterns: tuple[Float[np.ndarray, "head pos pos"], ...]
    scales: tuple[Float[np.ndarray, "pos 1"], ...]
    latent_scales: tuple[Float[np.ndarray, "pos 1"], ...]
    final_scale: Float[np.ndarray, "pos 1"]
    first: Float[np.ndarray, "pos d_model"]
    mlp_outs: tuple[Float[np.ndarray, "pos d_model"], ...]
    mlp_gates: tuple[Float[np.ndarray, "pos d_mlp"], ...]
    mlp_scales: tuple[Float[np.ndarray, "pos 1"], ...]
    attn_out_scales: tuple[Float[np.ndarray, "pos 1"], ...]
    mlp_out_scales: tuple[Float[np.ndarray, "pos 1"], ...]
    mlp_shares: tuple[Float[np.ndarray, "pos expert"], ...]
    dtype: np.dtype[Any]

    @property
    def n_pos(self) -> int:
        """The length of the prompt."""
        return len(self.tokens)

    def until(self, position: int) -> "FrozenPass":
        """Return the pass up to a position, as views: attention is causal."""
        n = position + 1
        return replace(
            self,
            tokens=self.tokens[:n],
            patterns=tuple(pattern[:, :n, :n] for pattern in self.patterns),
            scales=tuple(scale[:n] for scale in self.scales),
            latent_scales=tuple(scale[:n] for scale in self.latent_scales),
            final_scale=self.final_scale[:n],
            first=self.first[:n],
            mlp_outs=tuple(out[:n] for out in self.mlp_outs),
            mlp_gates=tuple(gates[:n] for gates in self.mlp_gates),
            mlp_scales=tuple(scale[:n] for scale in self.mlp_scales),
            attn_out_scales=tuple(scale[:n] for scale in self.attn_out_scales),
            mlp_out_scales=tuple(scale[:n] for scale in self.mlp_out_scales),
            mlp_shares=tuple(shares[:n] for shares in self.mlp_shares),
        )

    def layer(self, number: int) -> FrozenLayer:
        """Return the attention of one layer, its weights in `dtype`.

        Where its output is normalised, the constant scale divides the rows of the patterns, and the
        rest of the norm is in W_O. In latent attention the scale of the latent divides the columns,
        and W_V is the product of the weights that make values, by the latent.
        """
        pattern = self.patterns[number]
        if self.model.config.norms_output:
            pattern = pattern / self.attn_out_scales[number]
        W_V, V_size = self._part("W_V", number), None
        if self.latent_scales:
            pattern = pattern / self.latent_scales[number][:, 0]
            down = self._part("W_DKV", number) * self._part("kv_latent_gain", number)
            V_size = np.abs(down).astype(np.float64) @ np.abs(W_V)
            W_V = down @ W_V
        return FrozenLayer(
            pattern=pattern,
            scale=self.scales[number],
            centring=_read_centring(self.model),
            gain=self._part("ln1_gain", number),
            W_V=W_V,
            norm_bias=self._part("ln1_bias", number),
            b_V=self._part("b_V", number),
            W_O=self._written("W_O", number),
            V_size=V_size,
        )

    def layers(self) -> Iterator[FrozenLayer]:
        """Yield the attention of each layer in order."""
        for number in range(self.model.n_layers):
            yield self.layer(number)

    def mlp(self, number: int) -> FrozenMLP | None:
        """Return the MLP of one layer, its weights in `dtype`; None unless its gates are frozen."""
        if not self.mlp_gates:
            return None
        return FrozenMLP(
            gates=self._gates(number),
            scale=self.mlp_scales[number],
            centring=_read_centring(self.model),
            gain=self._part("ln2_gain", number),
            W_in=self._part("W_in", number),
            norm_bias=self._part("ln2_bias", number),
            b_in=self._part("b_in", number),
            W_out=self._written("W_out", number),
            b_out=self._added_bias("mlp_out", number),
            parallel=self.model.config.parallel,
        )

    def after(
        self,
        number: int,
        before: Float[np.ndarray, "part pos d_model"],
        written: Float[np.ndarray, "part pos d_model"] | None = None,
    ) -> np.ndarray:
        """Return the linear part of a block's output, given its input and the output of its heads.

        The constant part is `entering`.
        """
        middle = before if written is None else before + written
        mlp = self.mlp(number)
        return middle if mlp is None else middle + mlp.apply(before if mlp.parallel else middle)

    def pull_after(
        self, number: int, directions: Float[np.ndarray, "part pos d_model"]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the adjoint of `after`: directions on the heads' output, and on the input."""
        mlp = self.mlp(number)
        if mlp is None:
            return directions, directions
        on_all = directions + mlp.pull(directions)
        return (directions if mlp.parallel else on_all), on_all

    def entering(self, number: int) -> Float[np.ndarray, "pos d_model"]:
        """Return the sources that a layer adds: b_O, and the constant part of its MLP."""
        b_O = np.broadcast_to(self.attention_bias(number), self.first.shape)
        if self.mlp_outs:
            return b_O + self.mlp_outs[number]
        mlp = self.mlp(number)
        if mlp is None:
            return b_O
        return b_O + mlp.constant() + (0 if mlp.parallel else mlp.apply(b_O[None])[0])

    def attention_bias(self, number: int) -> Float[np.ndarray, "*pos d_model"]:
        """Return what b_O and the norm of the output of attention add."""
        return self._added_bias("attn_out", number)

    def _added_bias(self, place: str, number: int) -> np.ndarray:
        name = {"attn_out": "b_O", "mlp_out": "b_out"}[place]
        added: Any = self._written(name, number)
        if place == "mlp_out" and self.model.config.has("b_experts"):
            shares = self.mlp_shares[number][:, : self.model.config.n_experts]
            added = added + shares @ self._written("b_experts", number)
        if not self.model.config.norms_output:
            return np.asarray(added)
        scales = self.attn_out_scales if place == "attn_out" else self.mlp_out_scales
        bias = output_bias(self.model, place, number).astype(self.dtype, copy=False)
        return np.asarray(added / scales[number] + bias)

    def _written(self, name: str, number: int) -> np.ndarray:
        return written(self.model, name, number).astype(self.dtype, copy=False)

    def _gates(self, number: int) -> np.ndarray:
        gates = self.mlp_gates[number]
        return gates / self.mlp_out_scales[number] if self.model.config.norms_output else gates

    def at(self, position: Any) -> int:
        """Return a non-negative position. Raises: OtimesError if it is out of range."""
        return read_position(self.n_pos, position)

    def direction(self, position: int, token: Token) -> Direction:
        """Return the direction of a logit (or logit difference, or row) at a position."""
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
        """Return the frozen final norm of residual streams, without its bias."""
        gain = self._of_final_norm("ln_final_gain")
        return centre(streams, self._final_centring()) / self.final_scale * gain

    def unembed(
        self,
        rows: Float[np.ndarray, "*parts d_model"],
        tokens: Int[np.ndarray, " chosen"] | None = None,
    ) -> np.ndarray:
        """Return $Y W_U$ for all tokens or the chosen ones, one block of columns at a time."""
        if tokens is not None:
            return rows @ self._columns(tokens)
        logits = np.empty((*rows.shape[:-1], self.model.d_vocab), dtype=self.dtype)
        for start in range(0, self.model.d_vocab, TOKENS_AT_ONCE):
            block = slice(start, start + TOKENS_AT_ONCE)
            logits[..., block] = rows @ self._columns(block)
        return logits

    def constants(self, tokens: Int[np.ndarray, " chosen"] | None = None) -> np.ndarray:
        """Return the constant part of the logits [token]: b_U plus the final norm's bias @ W_U."""
        bias = self.model.part("b_U", slice(None) if tokens is None else tokens)
        return self.unembed(self._of_final_norm("ln_final_bias"), tokens) + bias.astype(self.dtype)

    def check_tokens(self, tokens: Any) -> Int[np.ndarray, "*chosen"]:
        """Return token ids as an array. Raises: OtimesError if one is not in the vocabulary."""
        array = np.asarray(tokens)
        if not are_integers(array):
            raise OtimesError(f"token ids must be integers, got {tokens!r}")
        wrong = array[(array < 0) | (array >= self.model.d_vocab)]
        if wrong.size:
            raise OtimesError(
                f"token {wrong.flat[0]} is not in the vocabulary of {self.model.name}, which has"
                f" the token ids 0 to {self.model.d_vocab - 1}"
            )
        return array.astype(np.int64, copy=False)

    def _unembedding(self, token: Token) -> tuple[np.ndarray, float]:
        """Return the column of W_U of a token (or a difference, or a row), and its entry of b_U."""
        if isinstance(token, tuple):
            if len(token) != 2:
                raise OtimesError(f"a logit difference is a pair of two tokens, got {token!r}")
            (one, above), (other, below) = (self._unembedding(each) for each in token)
            return one - other, above - below
        if isinstance(token, np.ndarray) and token.dtype.kind == "f":
            if token.shape != (self.model.d_model,):
                raise ShapeError(
                    f"a direction must have shape (d_model,) = ({self.model.d_model},),"
                    f" got {token.shape}"
                )
            if not np.isfinite(token).all():
                raise OtimesError("a direction must be finite, got NaN or infinity")
            return token.astype(self.dtype, copy=False), 0.0
        chosen = self.check_tokens(token)
        if chosen.size != 1:
            raise OtimesError(
                "the target must be one token, a tuple of two tokens for their logit difference,"
                f" or a float array [d_model] for any direction, got {token!r}"
            )
        chosen = chosen.reshape(1)
        return self._columns(chosen)[:, 0], float(self.model.part("b_U", chosen)[0])

    def _columns(self, chosen: Any) -> np.ndarray:
        """Return columns of W_U; only these are converted to `dtype`."""
        if self.model.config.tied:
            columns = self.model.part("W_E", chosen).T * self.model.config.logit_scale
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
    model: ModelSource, tokens: Any, dtype: Any = np.float64, mlp: MLPKind = "sources"
) -> FrozenPass:
    """Return the frozen pass of a prompt, given as text or token ids; the model is run once.

    A layer or stack of torch.nn takes vectors [pos, d_model]; token t is then entry t of what it
    returns with a causal mask.

    Raises: OtimesError for a dtype other than float64 and float32, or an unknown `mlp`.

    >>> from otimes.numeric.load import load_model
    >>> freeze(load_model("two_layer"), [5, 6, 7]).patterns[1].shape
    (4, 3, 3)
    """
    model = load_model(model)
    try:
        kind = np.dtype(dtype)
    except TypeError:
        raise OtimesError(f"paths are computed in float64 or float32, not in {dtype!r}") from None
    if kind not in (np.float64, np.float32):
        raise OtimesError(f"paths are computed in float64 or float32, not in {kind}")
    if mlp not in ("sources", "gates"):
        raise OtimesError(
            f"mlp must be 'sources' (MLP outputs constant) or 'gates' (MLP gates constant),"
            f" got mlp={mlp!r}"
        )
    limit = ("gate_limit",) if mlp == "sources" else ()
    check_settings(model.config, "paths and frozen norms", (*FROZEN, *limit))
    if model.config.d_vocab:
        tokens = read_prompt(model, tokens).tokens
    else:
        model, tokens = to_stream(model, tokens)
    config = model.config
    normed, layers = config.norms_before, range(model.n_layers)
    gated = config.d_mlp > 0 and mlp == "gates"
    mlp_reads = "resid_pre" if config.parallel else "resid_mid"
    each = {"pattern", *(["resid_pre"] if normed else [])}
    if config.kv_rank:
        each |= {"ln1" if normed else "resid_pre"}
    if config.norms_output:
        each |= {"attn_out", *(["mlp_out"] if config.d_mlp else [])}
    adds = added_place(model, "mlp_out")
    if config.d_mlp:
        each |= {adds} if mlp == "sources" else {"mlp_pre", *([mlp_reads] if normed else [])}
        each |= {"routing"} if gated and config.n_experts else set()
    record = [
        "ln_embed" if config.embed_norm else "embed",
        *[f"{place}.{number}" for number in layers for place in each],
    ]
    places = model.forward(tokens, [*record, *(["final"] if config.final_norm else [])])

    def cast(array: np.ndarray) -> np.ndarray:
        return array.astype(kind, copy=False)

    def scale(place: str, there_is: bool) -> np.ndarray:
        if not there_is:
            return np.broadcast_to(kind.type(1), (len(tokens), 1))
        return cast(norm_scale(places[place], config.norm, config.norm_eps))

    def scales(place: str) -> tuple[np.ndarray, ...]:
        return tuple(map(cast, output_scales(model, place, places, len(tokens))))

    first = places["ln_embed" if config.embed_norm else "embed"]
    if config.positions == "learned" and not config.embed_norm:
        first = first + model.part("W_pos", slice(len(tokens)))
    reads = "ln1" if normed else "resid_pre"
    return FrozenPass(
        model=model,
        tokens=tokens,
        patterns=tuple(cast(places[f"pattern.{number}"]) for number in layers),
        scales=tuple(scale(f"resid_pre.{number}", normed) for number in layers),
        latent_scales=tuple(
            cast(_latent_scale(model, n, places[f"{reads}.{n}"])) for n in layers if config.kv_rank
        ),
        final_scale=scale("final", config.final_norm),
        first=cast(first),
        mlp_outs=tuple(cast(places[f"{adds}.{n}"]) for n in layers if config.d_mlp and not gated),
        mlp_gates=tuple(
            cast(_gates(model, places[f"mlp_pre.{n}"], places.get(f"routing.{n}")))
            for n in layers
            if gated
        ),
        mlp_shares=tuple(
            cast(places[f"routing.{n}"]) for n in layers if gated and config.n_experts
        ),
        mlp_scales=tuple(scale(f"{mlp_reads}.{n}", normed) for n in layers if gated),
        attn_out_scales=scales("attn_out"),
        mlp_out_scales=scales("mlp_out") if config.d_mlp else (),
        dtype=kind,
    )


def _latent_scale(
    model: Model, number: int, rows: Float[np.ndarray, "pos d_model"]
) -> Float[np.ndarray, "pos 1"]:
    """Return what the latents of keys and values are divided by."""
    latent = linear(rows, model.part("W_DKV", number))
    return norm_scale(latent, "rms", model.config.latent_eps)


def _gates(
    model: Model, pre: Float[np.ndarray, "pos d_mlp"], shares: np.ndarray | None
) -> np.ndarray:
    """Return the gates of an MLP: the factor of its linear branch, entry by entry.

    With experts it has the weight of the neuron's expert as a factor.
    """
    config = model.config
    assert config.activation is not None  # the configuration of a model with an MLP names one
    gates: np.ndarray = (ACTIVATION if config.gated else GATE)[config.activation](pre)
    return gates if shares is None else gates * by_neuron(config, shares)


def _centring(model: Model) -> float:
    return -1.0 if model.config.norm == "layer" else 0.0


def _read_centring(model: Model) -> float:
    """Return the centring of the norms that attention and MLPs read; 0 where they read none."""
    return _centring(model) if model.config.norms_before else 0.0
