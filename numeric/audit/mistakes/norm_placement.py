"""Mistakes in the placement of the norms: which sums are normalised, and with which gain.

In a pre-norm block each part reads the norm of the stream; a post-norm block normalises each sum
(Xiong et al. 2020). Both have the same weights, so only activations distinguish them.
"""

from collections.abc import Iterator
from dataclasses import replace

from otimes.numeric.audit.mistakes.mlp import SEQUENTIAL
from otimes.numeric.audit.reference.edits import (
    other_place,
    reading,
    with_inputs,
    with_weights,
)
from otimes.numeric.audit.reference.evaluator import Act, Mistake, Operation, makes_act
from otimes.numeric.config import Config
from otimes.numeric.rounding.activations import OPERATIONS, At
from otimes.numeric.rounding.linear import Near, added


def mistakes(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes in the placement of the norms."""
    if config.norm == "none" or not config.n_layers:
        return
    if config.norms_output:
        yield from _outputs(config)
        return
    yield from _gains(config)
    yield from _post_norm(config) if config.post_norm else _pre_norm(config)
    if not config.parallel:
        yield Mistake(
            "norms of what attention and the MLP write, before it is added, and not of the stream "
            "(x + norm(part(x)))",
            {
                "ln1": _passed_on,
                "ln2": _passed_on,
                "resid_mid": _part_normed("ln1", "attn_out"),
                **({"resid_post": _part_normed("ln2", "mlp_out")} if config.d_mlp else {}),
            },
        )


def _outputs(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes of a block that normalises what attention and MLP write."""
    after = ("ln1_post", "ln2_post") if config.d_mlp else ("ln1_post",)
    says = "without the norms of what attention and the MLP write"
    yield Mistake(says, dict.fromkeys(after, _passed_on), 0)
    if config.d_mlp:
        says = "the norms of what is written in the wrong order: each has the other's gain"
        acts = {"ln1_post": _affine_of("ln2_post"), "ln2_post": _affine_of("ln1_post")}
        yield Mistake(says, acts)
    if not config.norms_before:
        yield from _before_instead(config)
    if config.norms_before:
        says = "the norms before and after attention in the wrong order"
        yield Mistake(says, {"ln1": _affine_of("ln1_post"), "ln1_post": _affine_of("ln1")})


def _before_instead(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes of norms of what parts read, in a model that has norms of outputs."""
    attention: dict[str, Act] = {
        **dict.fromkeys(("qk_in", "v"), _reads_stream_normed("ln1_post", "resid_pre")),
        "ln1_post": _passed_on,
    }
    says = "pre-norm for norms of outputs:"
    of_mlp: dict[str, Act] = {}
    if config.d_mlp:
        reads = _reads_stream_normed("ln2_post", "resid_mid")
        reading_stream = ("mlp_pre", "mlp_post", "router")[: 1 + config.gated]
        names = (*reading_stream, *(("router",) if config.n_experts else ()))
        of_mlp = {**dict.fromkeys(names, reads), "ln2_post": _passed_on}
        yield Mistake(f"{says} the MLP reads the norm, and writes what is not normalised", of_mlp)
        yield Mistake(f"{says} attention and the MLP read norms", {**attention, **of_mlp}, 0)
    what = "attention reads the norm of the stream, and writes what is not normalised"
    yield Mistake(f"{says} {what}", attention, 0)


def _gains(config: Config) -> Iterator[Mistake]:
    """Yield norms with the gain and bias of another norm."""
    if config.d_mlp:
        says = "the two norms of the block in the wrong order: each has the other's gain and bias"
        yield Mistake(says, {"ln1": _affine_of("ln2"), "ln2": _affine_of("ln1")})
        says = "one norm for attention and MLP: the MLP's has the gain and bias of attention's"
        yield Mistake(says, {"ln2": _affine_of("ln1")})
    if config.final_norm:
        says = "a final norm with the gain and bias of the last block's norm"
        yield Mistake(says, {"ln_final": _affine_of("ln1", config.n_layers - 1)})


def _pre_norm(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes of a pre-norm block."""
    if config.parallel:
        says = "a sequential block for a parallel one: the MLP reads the stream after attention"
        yield Mistake(says, {"ln2": reading("resid_mid")}, 0)
        return
    acts: dict[str, Act] = {"ln1": _passed_on, "resid_post": _normed_after}
    if config.d_mlp:
        acts["ln2"] = lambda at, op: _normed("ln1", at, at.only())
        parallel, of_attention = SEQUENTIAL
        yield Mistake(f"{parallel} (ln2 reads resid_pre)", {"ln2": reading("resid_pre")})
        yield Mistake(of_attention, {"ln2": reading("attn_out")})
        # What goes into the second norm may have been recorded as the stream after attention.
        late = {"resid_mid": _before_attention, "resid_post": _with_attention}
        yield Mistake(parallel, late, 0)
    yield Mistake("post-norm for pre-norm: norms after each sum of the stream", acts, 0)


def _post_norm(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes of a post-norm block, where the stream is normalised after each sum.

    The second norm of a pre-norm block is recorded before its MLP; if only the block's output is
    recorded, the last sum replaces that of a norm.
    """
    reads: dict[str, Act] = dict.fromkeys(("qk_in", "v"), _reads_norm)
    acts: dict[str, Act] = {**reads, "ln1": reading("resid_pre"), "resid_post": _unnormed_after}
    if config.d_mlp:
        acts |= dict.fromkeys(("mlp_pre", "mlp_post")[: 1 + config.gated], _mlp_reads_second)
        around = "the residual connection around the MLP"
        says = f"{around} takes the sum after attention, and not the norm of it"
        yield Mistake(says, {"resid_post": _unnormed_after})
    says = "pre-norm for post-norm: norms before attention and MLP, not after"
    stream = dict.fromkeys(("resid_pre", "final"), _last_sum(config))
    yield Mistake(says, {**acts, "ln2": reading("resid_mid"), **stream}, 0)
    yield Mistake(f"{says} (the last sum is returned)", {**acts, "ln2": _passed_on}, 0)
    says = "attention reads the norm of the stream, and not the stream as it is"
    yield Mistake(says, reads)


def _before_attention(at: At, operation: Operation) -> Near:
    return other_place(at, "resid_pre")


def _with_attention(at: At, operation: Operation) -> Near:
    return added(at.p, *at.inputs.values(), other_place(at, "attn_out"))


def _normed(norm: str, at: At, rows: Near) -> Near:
    """Return the output of a norm of this layer."""
    return OPERATIONS[norm](replace(at, inputs={"rows": rows}))


def _passed_on(at: At, operation: Operation) -> Near:
    return at.only()


def _normed_after(at: At, operation: Operation) -> Near:
    """Return the output of a post-norm block, whose MLP reads its first normalised sum."""
    if not at.config.d_mlp:
        return _normed("ln1", at, at.only())
    return _normed("ln2", at, added(at.p, other_place(at, "ln2"), at.inputs["mlp_out"]))


def _unnormed_after(at: At, operation: Operation) -> Near:
    """Return the output of a pre-norm block."""
    middle = other_place(at, "resid_mid")
    return added(at.p, middle, at.inputs["mlp_out"]) if at.config.d_mlp else middle


@makes_act
def _last_sum(at: At, operation: Operation, config: Config) -> Near:
    """Act: pass on the output of the previous block without its norm."""
    layer = config.n_layers if at.weights.layer is None else at.weights.layer
    return other_place(at, f"resid_post.{layer - 1}") if layer else operation(at)


def _reads_norm(at: At, operation: Operation) -> Near:
    (kind,) = at.inputs
    return operation(with_inputs(at, **{kind: _normed("ln1", at, other_place(at, "resid_pre"))}))


@makes_act
def _reads_stream_normed(at: At, operation: Operation, norm: str, stream: str) -> Near:
    """Act: read the norm of the stream by the gain of a norm of outputs."""
    return operation(with_inputs(at, **{stream: _normed(norm, at, other_place(at, stream))}))


def _mlp_reads_second(at: At, operation: Operation) -> Near:
    return operation(with_inputs(at, ln1=_normed("ln2", at, other_place(at, "resid_mid"))))


@makes_act
def _part_normed(at: At, operation: Operation, norm: str, part: str) -> Near:
    others = [near for kind, near in at.inputs.items() if kind != part]
    return added(at.p, *others, _normed(norm, at, at.inputs[part]))


@makes_act
def _affine_of(at: At, operation: Operation, other: str, layer: int | None = None) -> Near:
    norm, index = at.weights.kind, at.weights.layer if layer is None else layer
    parts = [part for part in ("gain", "bias") if at.config.has(f"{norm}_{part}")]
    changed = {f"{norm}_{p}": at.weights.model.part(f"{other}_{p}", index) for p in parts}
    return operation(with_weights(at, **changed))
