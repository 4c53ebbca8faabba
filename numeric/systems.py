"""Systems of the literature: their published sizes, parameter counts, and what holds for them.

`systems.json` has the data, from the papers and their repositories. A parameter count is the sum of
the sizes of all tensors of the configuration. Statements of the catalogue have conditions on the
architecture; here they are read off a configuration.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.resources import files
from math import prod
from typing import Any

from otimes.algebra.errors import OtimesError
from otimes.numeric.config import Config, listed
from otimes.numeric.model import Model
from otimes.numeric.random_weights import random_model
from otimes.numeric.tables import text_table

Condition = Callable[[Config, str], bool]

CONDITIONS: dict[str, Condition] = {
    "later_tokens_have_no_gradient": lambda config, kind: kind == "decoder",
    "kv_cache_is_last_row": lambda config, kind: kind == "decoder",
    "attention_forgets_order": lambda config, kind: kind.startswith("encoder"),
    "position_vectors_break_symmetry": lambda config, kind: config.positions == "learned",
    "layers_write": lambda config, kind: config.norm_order == "pre",
    "norm_gain_and_bias_fold": lambda config, kind: config.norm_order == "pre",
    "centring_folds_into_writers": lambda config, kind: (
        config.norm == "layer" and config.norm_order == "pre"
    ),
    "key_bias_is_irrelevant": lambda config, kind: (
        "b_K" in config.biases and config.positions != "rotary"
    ),
    "rotary_scores_by_distance": lambda config, kind: config.positions == "rotary",
    "value_biases_fold_into_output_bias": lambda config, kind: "b_V" in config.biases,
    "tied_unembedding_is_transpose": lambda config, kind: config.tied,
    "feed_forward_is_sum_over_neurons": lambda config, kind: config.d_mlp > 0,
}
"""Theorems of the catalogue, and whether they are about an architecture."""

OF_RECURRENT = ("cell_is_a_gated_sum",)


@dataclass(frozen=True, slots=True)
class System:
    """A system of the literature: its configuration and what is published about it.

    `kind` is "decoder" (causal), "encoder" (no mask), "encoder–decoder" (the configuration is that
    of the encoder) or "recurrent" (no configuration). `published` is the number of parameters as
    printed; `parameters` is counted from the sizes. `extra` are parameters that the configuration
    does not have, such as segment embeddings.
    """

    name: str
    kind: str
    config: Config | None
    published: str
    parameters: int
    source: str
    extra: dict[str, int] = field(default_factory=dict)

    @property
    def causal(self) -> bool:
        """Whether a position reads only itself and earlier ones."""
        return self.kind in ("decoder", "recurrent")

    def small(self, seed: int = 0) -> Model:
        """Return a model of two layers with this architecture, small sizes and random weights.

        >>> systems("Llama 2 70B").small().config.kv_heads
        1

        Raises: OtimesError for a recurrent system.
        """
        if self.config is None:
            raise OtimesError(f"{self.name} is no transformer: `lstm` computes a layer of it")
        return random_model(small_config(self.config), seed, name=f"{self.name}, small")

    @property
    def ratio(self) -> float:
        """The counted parameters over the published ones; printed numbers are rounded.

        >>> systems("GPT-3").ratio < 1  # the paper rounds 174.6 up
        True
        """
        unit = {"M": 10**6, "B": 10**9}.get(self.published[-1], 1)
        return self.parameters / (float(self.published.rstrip("MB").replace(",", "")) * unit)

    @property
    def statements(self) -> dict[str, bool]:
        """Whether theorems of the catalogue with conditions apply, by name.

        >>> systems("BERT-base").statements["kv_cache_is_last_row"]
        False
        """
        applies = {
            name: self.config is not None and condition(self.config, self.kind)
            for name, condition in CONDITIONS.items()
        }
        return applies | dict.fromkeys(OF_RECURRENT, self.config is None)

    def __repr__(self) -> str:
        millions = f"{self.parameters / 1e6:,.1f}M parameters, published as {self.published}"
        sizes = "" if self.config is None else f", {', '.join(self.config.summary())}"
        return f"<{self.name}: {self.kind}, {millions}{sizes}>"


def small_config(config: Config) -> Config:
    """Return the same architecture with two layers of small sizes.

    >>> small_config(systems("GPT-3").config).d_model
    32
    """
    sizes: dict[str, Any] = {"n_layers": 2, "n_heads": 4, "d_model": 32, "d_head": 8}
    sizes |= {"d_vocab": 11, "n_ctx": 16, "d_mlp": 48}
    if config.n_kv_heads is not None:
        sizes["n_kv_heads"] = max(1, 4 * config.kv_heads // config.n_heads)
    if config.rotary_dims:
        sizes["rotary_dims"] = max(2, 8 * config.rotary_dims // config.d_head)
    return replace(config, **sizes)


def count_parameters(config: Config) -> int:
    """Return the number of parameters: the sizes of all tensors, added.

    >>> count_parameters(systems("GPT-2 small").config)
    124439808
    """
    return sum(prod(shape) for shape in config.tensor_shapes().values())


class Systems(tuple[System, ...]):
    """All systems; printed as a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        return text_table(HEAD, [list(_row(each)) for each in self])


HEAD = ("", "kind", "layers", "d_model", "heads", "norm", "positions", "tied", "counted", "print")


def systems(name: str | None = None) -> Any:
    """Return the systems of the literature as a table, or the one of this name.

    >>> gpt2 = systems("GPT-2 small")
    >>> gpt2.parameters, gpt2.published
    (124439808, '124M')
    >>> sum(gpt2.statements.values())
    10

    Raises: OtimesError for an unknown name.
    """
    every = _every()
    if name is None:
        return every
    for each in every:
        if each.name == name:
            return each
    raise OtimesError(f"there is no system {name!r}; there are {listed(e.name for e in every)}")


@lru_cache(maxsize=1)
def _every() -> Systems:
    text = files("otimes.numeric").joinpath("systems.json").read_text(encoding="utf-8")
    return Systems(_read(each) for each in json.loads(text))


def _read(stored: dict[str, Any]) -> System:
    config, extra = None, {name: prod(sizes) for name, sizes in stored.get("extra", {}).items()}
    if "lstm" in stored:
        parameters = _of_lstm(**stored["lstm"])
    else:
        config = Config.from_json(stored["config"], stored["name"])
        parameters = count_parameters(config)
    return System(
        stored["name"],
        stored["kind"],
        config,
        stored["published"],
        parameters + sum(extra.values()),
        stored["source"],
        extra,
    )


def _of_lstm(layers: int, d_hidden: int, d_vocab: int) -> int:
    """Return the parameters of a language model of LSTM layers, with one bias for each gate."""
    gates = 4 * (d_hidden * d_hidden + d_hidden * d_hidden + d_hidden)
    return d_vocab * d_hidden + layers * gates + d_hidden * d_vocab + d_vocab


def _row(each: System) -> Iterator[str]:
    config = each.config
    counted = f"{each.parameters / 1e6:,.1f}M"
    if config is None:
        yield from (each.name, each.kind, *["–"] * 6, counted, each.published)
        return
    norm = f"{config.norm} {config.norm_order}"
    tied = "yes" if config.tied else "no"
    yield from (each.name, each.kind, f"{config.n_layers}", f"{config.d_model}")
    yield from (f"{config.n_heads}", norm, config.positions, tied, counted, each.published)
