"""The description of a forward pass as data: its hook points, what each reads, and its weights.

A `Step` is one operation. The order of the hook points, the inputs of each (`inputs_of`) and its
weights (`WEIGHTS`) are stated here once, by what a configuration declares: the kind and order of
norms, the variant of attention, the MLP, the positions. The reference pass, its rounding bounds and
the audit read it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from otimes.numeric.config import Config

OF_HEADS = ("q", "k", "v", "scores", "pattern", "z", "head_out")
ENDS = ("embed", "ln_embed", "final", "ln_final", "logits")
"""The hook points outside the blocks."""

WEIGHTS: dict[str, tuple[str, ...]] = {
    "embed": ("W_E",),
    "ln_embed": ("W_pos", "ln_embed_gain", "ln_embed_bias"),
    "resid_pre": ("W_pos",),
    "ln1": ("ln1_gain", "ln1_bias"),
    "qk_in": ("W_pos",),
    "q_latent": ("W_DQ", "q_latent_gain"),
    "kv_latent": ("W_DKV", "kv_latent_gain"),
    "q": ("W_Q", "b_Q", "q_norm_gain"),
    "k": ("W_K", "b_K", "k_norm_gain", "W_KR"),
    "v": ("W_V", "b_V"),
    "pattern": ("sinks",),
    "head_out": ("W_O",),
    "attn_out": ("W_O", "b_O"),
    "ln1_post": ("ln1_post_gain", "ln1_post_bias"),
    "ln2": ("ln2_gain", "ln2_bias"),
    "mlp_pre": ("W_in", "b_in", "W_gate", "b_gate"),
    "mlp_post": ("W_in", "b_in"),
    "router": ("W_router", "b_router"),
    "routing": ("b_choice",),
    "mlp_out": ("W_out", "b_out", "b_experts"),
    "ln2_post": ("ln2_post_gain", "ln2_post_bias"),
    "final": ("W_pos",),
    "ln_final": ("ln_final_gain", "ln_final_bias"),
    "logits": ("W_U", "b_U"),
}
"""The weights that each operation may have."""


@dataclass(frozen=True, slots=True)
class Step:
    """One operation of a block: the hook point that it computes, and those that it reads."""

    kind: str
    reads: tuple[str, ...] = ()


@lru_cache(maxsize=256)
def block_steps(config: Config) -> tuple[Step, ...]:
    """Return the operations of one block, in the order of the forward pass.

    >>> [step.kind for step in block_steps(Config(1, 1, 4, 2, 10, 8, "none"))][-3:]
    ['attn_out', 'resid_mid', 'resid_post']
    """
    return (*_attention(config), *_mlp(config))


def _attention(config: Config) -> Iterator[Step]:
    yield Step("resid_pre")
    attn_in = "resid_pre"
    if config.norms_before:
        attn_in = "ln1"
        yield Step("ln1", ("resid_pre",))
    yield Step("qk_in", (attn_in,))
    if config.q_rank:
        yield Step("q_latent", ("qk_in",))
    if config.kv_rank:
        yield Step("kv_latent", (attn_in,))
    yield Step("q", ("q_latent" if config.q_rank else "qk_in",))
    yield Step("k", ("kv_latent", "qk_in") if config.kv_rank else ("qk_in",))
    yield Step("v", ("kv_latent" if config.kv_rank else attn_in,))
    yield Step("scores", ("q", "k"))
    yield Step("pattern", ("scores",))
    yield Step("z", ("pattern", "v"))
    yield Step("head_out", ("z",))
    yield Step("attn_out", ("z",))
    written = "attn_out"
    if config.norms_output:
        written = "ln1_post"
        yield Step("ln1_post", ("attn_out",))
    yield Step("resid_mid", ("resid_pre", written))
    if config.post_norm:
        yield Step("ln1", ("resid_mid",))


def _mlp(config: Config) -> Iterator[Step]:
    middle = "ln1" if config.post_norm else "resid_mid"
    if not config.d_mlp:
        yield Step("resid_post", (middle,))
        return
    mlp_in = "resid_pre" if config.parallel else middle
    if config.norms_before:
        yield Step("ln2", (mlp_in,))
        mlp_in = "ln2"
    yield Step("mlp_pre", (mlp_in,))
    yield Step("mlp_post", ("mlp_pre", mlp_in) if config.gated else ("mlp_pre",))
    neurons = "mlp_post"
    if config.n_experts:
        neurons = "routed"
        yield Step("router", (mlp_in,))
        yield Step("routing", ("router",))
        yield Step("routed", ("mlp_post", "routing"))
    biased = config.has("b_experts")
    yield Step("mlp_out", (neurons, "routing") if biased else (neurons,))
    written = "mlp_out"
    if config.norms_output:
        written = "ln2_post"
        yield Step("ln2_post", ("mlp_out",))
    before: tuple[str, ...] = ("resid_mid",)
    if config.parallel:  # one sum of three terms
        before = ("resid_pre", "ln1_post" if config.norms_output else "attn_out")
    if config.post_norm:
        before = ("ln1",)
    yield Step("resid_post", (*before, written))
    if config.post_norm:
        yield Step("ln2", ("resid_post",))


def head_width_of(kind: str, config: Config) -> int:
    """Return the number of columns of q, k, v or z of a head."""
    return config.value_width if kind in ("v", "z") else config.d_head


def width_of(kind: str, config: Config) -> int:
    """Return the number of columns of an activation that has rows for positions only.

    >>> width_of("mlp_pre", Config(1, 1, 4, 2, 10, 8, "none", d_mlp=6, activation="relu"))
    6
    """
    if kind == "logits":
        return config.d_vocab
    if kind in ("q_latent", "kv_latent"):
        return config.q_rank if kind == "q_latent" else config.kv_rank
    if kind == "router":
        return config.n_routed
    if kind == "routing":
        return config.n_experts + (config.d_shared > 0)
    return config.d_mlp if kind in ("mlp_pre", "mlp_post", "routed") else config.d_model


def neurons(config: Config) -> str:
    """Return the name of the activation that the output weight of an MLP reads."""
    return "routed" if config.n_experts else "mlp_post"


def passes_on(config: Config) -> str:
    """Return the name of the activation that is the residual stream after a block."""
    return "ln2" if config.post_norm and config.d_mlp else "resid_post"


@lru_cache(maxsize=64)
def place_names(config: Config) -> tuple[str, ...]:
    """Return the names of all activations of a forward pass, in order.

    >>> place_names(Config(0, 1, 4, 2, 10, 8, "none"))
    ('embed', 'final', 'logits')
    """
    kinds = [step.kind for step in block_steps(config)]
    blocks = [f"{kind}.{number}" for number in range(config.n_layers) for kind in kinds]
    end = ("final", "ln_final", "logits") if config.final_norm else ("final", "logits")
    start = ("embed", "ln_embed") if config.embed_norm else ("embed",)
    return (*start, *blocks, *end)


def briefly(config: Config) -> list[str]:
    """Return the hook points, with one name for all layers: `z.0` to `z.3` as `z.0…3`.

    >>> briefly(Config(4, 1, 4, 2, 10, 8, "none"))[:3]
    ['embed', 'resid_pre.0…3', 'qk_in.0…3']
    """
    last = config.n_layers - 1
    names = []
    for name in place_names(config):
        kind, _, layer = name.partition(".")
        if not layer:
            names.append(name)
        elif layer == "0":
            names.append(f"{kind}.0" + (f"…{last}" if last else ""))
    return names


@lru_cache(maxsize=256)
def _reads(config: Config) -> dict[str, tuple[str, ...]]:
    return {step.kind: step.reads for step in block_steps(config)}


@lru_cache(maxsize=4096)
def inputs_of(config: Config, place: str) -> tuple[str, ...]:
    """Return the names of the activations that an activation is computed from.

    >>> inputs_of(Config(2, 1, 4, 2, 10, 8, "none"), "z.1")
    ('pattern.1', 'v.1')
    """
    kind, layer = kind_of(place), place.rpartition(".")[2]
    if kind == "embed":
        return ("tokens",)
    if kind == "ln_embed":
        return ("embed",)
    if kind in ("ln_final", "logits"):
        return ("ln_final",) if kind == "logits" and config.final_norm else ("final",)
    if kind in ("resid_pre", "final"):
        number = config.n_layers if kind == "final" else int(layer)
        if number:
            return (f"{passes_on(config)}.{number - 1}",)
        return ("ln_embed" if config.embed_norm else "embed",)
    return tuple(f"{each}.{layer}" for each in _reads(config)[kind])


@lru_cache(maxsize=4096)
def kind_of(place: str) -> str:
    """Return the name of an activation without its layer."""
    return place.partition(".")[0]
