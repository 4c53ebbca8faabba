"""Strategies for heads, configurations and small models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from otimes.numeric.config import (
    ACTIVATIONS,
    BIASES,
    LAYOUTS,
    NORM_ORDERS,
    NORMS,
    POSITIONS,
    Config,
)
from otimes.numeric.model import Model, make_model
from otimes.numeric.strategies.matrices import (
    Convention,
    Draw,
    check_convention,
    float_matrices,
    integer_matrices,
    one_of,
    size_or_drawn,
    sizes,
)

EIGHTHS = st.integers(-12, 12).map(lambda k: k / 8)  # exact in every float type, and shrink to 0


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """The weights of one head, and its circuits.

    In the row convention weights act on the right: `W_Q`, `W_K`, `W_V` are [d_model, d_head] and
    `W_O` [d_head, d_model]; in the column convention each is the transpose of that.
    """

    W_Q: Any
    W_K: Any
    W_V: Any
    W_O: Any
    convention: Convention

    @property
    def d_model(self) -> int:
        """The width of the residual stream."""
        return int(self.W_O.shape[1 if self.convention == "row" else 0])

    @property
    def d_head(self) -> int:
        """The width of queries, keys and values."""
        return int(self.W_O.shape[0 if self.convention == "row" else 1])

    @property
    def W_OV(self) -> Any:
        """The OV circuit, [d_model, d_model] in either convention."""
        return self.W_V @ self.W_O if self.convention == "row" else self.W_O @ self.W_V

    @property
    def W_QK(self) -> Any:
        """The QK circuit, [d_model, d_model] in either convention."""
        return self.W_Q @ self.W_K.T if self.convention == "row" else self.W_Q.T @ self.W_K


@st.composite
def heads(
    draw: Draw,
    d_model: int | None = None,
    d_head: int | None = None,
    convention: Convention = "row",
    exact: bool = True,
) -> Head:
    """Draw a Head; sizes that are not given are drawn. `exact`: int64, else float64.

    >>> from hypothesis import given
    >>> @given(heads(d_model=3, d_head=2))
    ... def test(head):
    ...     assert head.W_Q.shape == (3, 2) and head.W_O.shape == (2, 3)
    ...     assert np.linalg.matrix_rank(head.W_OV) <= 2
    >>> test()
    """
    model, head = size_or_drawn(draw, d_model), size_or_drawn(draw, d_head)
    reads, writes = (model, head), (head, model)
    if check_convention(convention) == "column":
        reads, writes = writes, reads
    matrices = integer_matrices if exact else float_matrices
    W_Q, W_K, W_V = (draw(matrices(*reads)) for _ in range(3))
    return Head(W_Q, W_K, W_V, draw(matrices(*writes)), convention)


@st.composite
def configs(draw: Draw, /, **fields: Any) -> Config:
    """Draw the configuration of a small model; the given `fields` are kept.

    Sizes shrink to 1, and the architecture to attention-only without positions, biases and norms.
    Settings that change scores (`windows`, `qk_norm`, …) are plain unless they are given.

    >>> from hypothesis import given
    >>> @given(configs(norm="rms"))
    ... def test(config):
    ...     assert "ln1_bias" not in config.tensor_shapes()
    >>> test()
    """

    def size(name: str, least: int, most: int) -> Any:
        """Return the given size, or draw it."""
        return fields[name] if name in fields else draw(sizes(least, most))

    def kind(name: str, options: Sequence[Any]) -> Any:
        """Return the given option, or draw it."""
        return fields[name] if name in fields else one_of(draw, options)

    found: dict[str, Any] = dict(fields)
    found["positions"] = kind("positions", POSITIONS[:4])
    rotary = found["positions"] == "rotary"
    groups = fields.get("n_kv_heads") or 1
    found["n_heads"] = n_heads = fields.get("n_heads") or groups * draw(sizes(1, 4))
    divisors = [count for count in range(n_heads, 0, -1) if n_heads % count == 0]
    found["n_kv_heads"] = kind("n_kv_heads", divisors)
    found["d_head"] = size("d_head", 2 if rotary else 1, 4)
    found["d_mlp"] = d_mlp = size("d_mlp", 0, 3)
    found["norm"] = kind("norm", NORMS)
    for name, least, most in (("n_layers", 0, 2), ("d_model", 1, 3), ("d_vocab", 2, 5)):
        found[name] = size(name, least, most)
    found["n_ctx"] = size("n_ctx", 1, 6)
    if rotary:
        found["rotary_dims"] = kind("rotary_dims", range(2, found["d_head"] + 1, 2))
        found["rotary_layout"] = kind("rotary_layout", LAYOUTS)
        found["rotary_stretch"] = kind(
            "rotary_stretch", ((), (4.0,), (8.0, 0.1, 0.5, 2.0), (4.0, 0.1, 0.5, 9.0, 1.2))
        )
    if d_mlp:
        found["activation"] = kind("activation", ACTIVATIONS)
        found["gated"] = kind("gated", (False, True))
        found["parallel"] = kind("parallel", (False, True))
    if found["norm"] != "none":
        found["final_norm"] = kind("final_norm", (False, True))
        orders = NORM_ORDERS[: 1 if found.get("parallel") else 2]
        found["norm_order"] = kind("norm_order", orders)
    found["tied"] = kind("tied", (False, True))
    if "biases" not in fields:
        without = [] if d_mlp else ["b_in", "b_out"]
        without += [] if found.get("gated") else ["b_gate"]
        possible = [name for name in BIASES if name not in without]
        found["biases"] = tuple(name for name in possible if draw(st.booleans()))
    return Config(**found)


@st.composite
def models(
    draw: Draw,
    /,
    n_layers: int | None = None,
    n_heads: int | None = None,
    d_model: int | None = None,
    d_head: int | None = None,
    positions: str | None = None,
    config: Config | None = None,
    **fields: Any,
) -> Model:
    """Draw a small reference model whose weights are multiples of 1/8; sizes not given are drawn.

    It is attention-only, with shortformer positions or none; d_vocab is 2 to 5, n_ctx 1 to 6.
    Further `fields` are those of `Config`, such as `norm="rms"` or `d_mlp=3`; what goes with them
    (a final norm, the activation) is drawn as in `configs`. Norms come before attention and the
    MLP, and positions are learned or none, unless they are given. With a `config` the architecture
    and all sizes are those of the config. Layers, heads and sizes shrink to 1, weights to 0.

    >>> from hypothesis import given
    >>> @given(models(n_layers=1))
    ... def test(model):
    ...     assert model.forward([0])["logits"].shape == (1, model.d_vocab)
    >>> test()
    """
    kind = config
    if kind is None:
        rotary = positions == "rotary"
        found: dict[str, Any] = {
            "n_layers": draw(sizes(1, 2)) if n_layers is None else n_layers,
            "n_heads": draw(sizes(1, 2)) if n_heads is None else n_heads,
            "d_model": size_or_drawn(draw, d_model),
            "d_head": draw(sizes(2 if rotary else 1, 2)) if d_head is None else d_head,
            "positions": positions,
        }
        if positions is None:
            found["positions"] = one_of(draw, ("none", "learned" if fields else "shortformer"))
        plain = {"norm": "none", "d_mlp": 0, "n_kv_heads": None, "tied": False, "biases": ()}
        plain |= {"norm_order": "pre"} if fields.get("norm", "none") != "none" else {}
        kind = draw(configs(**{**plain, **found, **fields}))
    weights = {
        name: draw(arrays(np.float32, shape, elements=EIGHTHS, fill=st.nothing()))
        for name, shape in kind.tensor_shapes().items()
    }
    return make_model("drawn", kind, weights)
