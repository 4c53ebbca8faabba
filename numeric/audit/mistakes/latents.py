"""Mistakes in latent attention: norms of latents, and the scale of scores with a rotary part."""

from collections.abc import Iterator

from otimes.numeric.audit.reference.edits import scaled, times, weights_to, with_config
from otimes.numeric.audit.reference.evaluator import Mistake, Operation, makes_act
from otimes.numeric.config import Config
from otimes.numeric.rounding.activations import At
from otimes.numeric.rounding.linear import Near, linear

CALLED = {"kv_latent": "keys and values", "q_latent": "queries"}
DOWN = {"kv_latent": "W_DKV", "q_latent": "W_DQ"}


def mistakes(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes of latent attention."""
    if not config.kv_rank or not config.n_layers:
        return
    for kind in ("kv_latent", *(["q_latent"] if config.q_rank else [])):
        of = f"the latent of {CALLED[kind]}"
        yield Mistake(f"{of} without its norm", {kind: _unnormed}, 0)
        yield Mistake(f"{of} without its norm, and without its gain", {kind: _projected}, 0)
        yield Mistake(f"{of} normalised without its gain", {kind: _ungained})
        for eps in sorted({config.norm_eps, 1e-5, 1e-6, 1e-8} - {config.latent_eps}):
            says = f"{of} normalised with ε = {eps:g} for {config.latent_eps:g}"
            yield Mistake(says, {kind: _with_eps(eps)}, 2)
    plain = config.d_head**-0.5
    for says, scale in {
        "scores divided by the root of the width without rotary positions": config.d_key**-0.5,
        "scores without the square of YaRN's factor": plain,
        "scores with YaRN's factor, and not its square": (plain * config.score_scale) ** 0.5,
    }.items():
        factor = scale / config.score_scale
        if abs(factor - 1) > 1e-12:
            yield Mistake(says, {"scores": times(factor)})
    says = "keys without the rotary part that all heads share"
    yield Mistake(says, {"k": weights_to(W_KR=lambda w: 0 * w)})


def _projected(at: At, operation: Operation) -> Near:
    """Act: the projection as it is."""
    return linear(at.only(), at.weight(DOWN[at.weights.kind]), None, at.p)


def _unnormed(at: At, operation: Operation) -> Near:
    """Act: the projection times the gain, not normalised."""
    return scaled(_projected(at, operation), at.weights[f"{at.weights.kind}_gain"])


def _ungained(at: At, operation: Operation) -> Near:
    """Act: the norm without its gain."""
    return scaled(operation(at), 1 / at.weights[f"{at.weights.kind}_gain"])


@makes_act
def _with_eps(at: At, operation: Operation, eps: float) -> Near:
    """Act: the norm with another ε."""
    return operation(with_config(at, latent_eps=eps))
