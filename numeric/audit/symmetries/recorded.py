"""Where an activation is recorded: before a scale, a cap or a norm that follows it, or after one.

Common hooks see the output of a linear layer, and so queries before their norm, scores before they
are capped, or the embedding before it is scaled. Nothing is computed otherwise: such an activation
counts as not recorded, and what is computed from it must be right.
"""

from collections.abc import Iterator

from otimes.numeric.audit.reference.comparison import Comparison
from otimes.numeric.audit.reference.edits import config_to, times
from otimes.numeric.audit.reference.evaluator import layer_of
from otimes.numeric.audit.symmetries.candidate import Rewrite, explains, here, hidden, hiding
from otimes.numeric.block import kind_of


def scores_on_their_way(compared: Comparison, place: str) -> Iterator[Rewrite]:
    """Yield the rewrite of scores recorded before they are scaled, capped or lowered."""
    config = compared.model.config
    unscaled = {"attn_scale": 1.0, "score_cap": 0.0, "positions": "none", "rotary_dims": 0}
    uncapped = {"score_cap": 0.0, "positions": "none", "rotary_dims": 0}
    level = {"positions": "none"}
    scale = "divided by √d_head" if not config.attn_scale else "scaled"
    alibi = config.positions == "alibi"
    for fields, says, possible in (
        (unscaled, f"scores are recorded before they are {scale}", True),
        (uncapped, "scores are recorded before they are capped", config.score_cap > 0),
        (level, "scores are recorded before the distances of ALiBi are added", alibi),
    ):
        if possible and explains(compared, place, config_to(**fields)):
            yield hiding(compared, says, place)
            return


def before_their_norm(compared: Comparison, place: str) -> Iterator[Rewrite]:
    """Yield the rewrite of queries and keys recorded before they are normalised and rotated."""
    if compared.model.config.qk_norm == "none":
        return
    act = config_to(qk_norm="none", positions="none", rotary_dims=0)
    wrong = [name for name in here(compared, place, ("q", "k")) if compared.ratio(name) > 1]
    own = [name for name in wrong if explains(compared, name, act)]
    if place in own:
        yield hiding(compared, f"{' and '.join(own)} recorded before the norm", *own)


def before_the_scale(compared: Comparison, place: str) -> Iterator[Rewrite]:
    """Yield the rewrite of the embedding recorded before it is multiplied by `embed_scale`."""
    scale = compared.model.config.embed_scale
    if scale != 1 and explains(compared, place, times(1 / scale)):
        yield hiding(compared, "recorded before the embedding is scaled", place)


def before_the_write_scale(compared: Comparison, place: str) -> Iterator[Rewrite]:
    """Yield the rewrite of an output of attention or MLP recorded before `write_scale`."""
    scale = compared.model.config.write_scale
    if scale != 1 and explains(compared, place, times(1 / scale)):
        yield hiding(compared, "recorded before it is scaled", place)


def after_the_norm(compared: Comparison, place: str) -> Iterator[Rewrite]:
    """Yield the rewrite of an output of attention or MLP recorded after the norm that follows."""
    if not compared.model.config.norms_output:
        return
    norm = {"attn_out": "ln1_post", "mlp_out": "ln2_post"}[kind_of(place)]
    after = f"{norm}.{layer_of(place)}"
    rest = compared.with_places(hidden(compared, place, after))
    if compared.within(place, rest.expected(after)):
        yield hiding(compared, "recorded after the norm that follows", place)
