"""The rotary settings of a checkpoint, as fields of `Config`."""

import math
from collections.abc import Mapping
from typing import Any

from otimes.algebra.errors import OtimesError
from otimes.numeric.config import listed
from otimes.numeric.importers.checkpoint import Settings
from otimes.numeric.importers.huggingface_settings import STRETCH

KINDS_OF_LAYERS = ("full_attention", "sliding_attention")
EVERY_KIND = (
    *("rope_theta", "rope_type", "type", "partial_rotary_factor"),
    "original_max_position_embeddings",
)
"""The parameters that a rotation of any kind may have."""
OPTIONAL = {
    "yarn": ("mscale", "mscale_all_dim", "truncate"),
    "longrope": ("factor", "attention_factor"),
}


def rotary(
    name: str, settings: Settings, d_head: int, fraction: float = 1.0, whole: bool = False
) -> dict[str, Any]:
    """Return the fields of rotary positions, with `n_ctx`; each unknown `rope_type` is refused.

    `fraction` is the default fraction of a head's dimensions that is rotated; `whole` says that
    the model rotates all of them and takes no notice of the setting, which is then refused. A
    model may state other parameters for layers with a window (Gemma 3).
    """
    longest = settings.size("max_position_embeddings")
    said = settings.get("rope_parameters") or settings.get("rope_scaling") or {}
    rope = dict(said.get("full_attention") or {}) if _nested(said) else dict(said)
    _check_keys(name, said)
    base = rope.get("rope_theta", settings.get("rope_theta", settings.get("rotary_emb_base", 1e4)))
    share = rope.get("partial_rotary_factor")
    if share is None:
        named = ("partial_rotary_factor", "rotary_pct")
        share = next((settings[key] for key in named if settings.get(key) is not None), fraction)
    if whole and share != 1:
        raise OtimesError(
            f"{name} has partial_rotary_factor={share}, which changes what is computed, or may, and"
            " is not supported"
        )
    dims = int(d_head * float(share))
    stretch = _stretch(name, settings, rope, dims, longest)
    if stretch[:1] == ("dynamic",):  # beyond its context the base grows
        longest = int(longest * max(stretch[1], 1.0))
    return {
        "n_ctx": longest,
        "positions": "rotary",
        "rotary_base": float(base),
        "rotary_dims": dims,
        "rotary_stretch": stretch,
    }


def _check_keys(name: str, said: Mapping[str, Any]) -> None:
    """Raise OtimesError for a parameter of the rotation that is not known."""
    parts = {key: said[key] for key in KINDS_OF_LAYERS if key in said} or {"": said}
    other = said.keys() - parts.keys() if "" not in parts else set()
    for each in parts.values():
        kind = each.get("rope_type", each.get("type", "default"))
        if kind not in STRETCH:  # which is refused by itself
            continue
        known = {*EVERY_KIND, *STRETCH[kind], *OPTIONAL.get(kind, ())}
        other |= {key for key, value in each.items() if key not in known and value is not None}
    if other:
        raise OtimesError(
            f"{name} has {listed(sorted(other))} in its rotary parameters, which changes what is "
            "computed, or may, and is not supported"
        )


def local_base(name: str, settings: Settings) -> float:
    """Return the rotary base of layers with a window, of a model that has another one for them."""
    said = settings.get("rope_parameters") or {}
    rope = said.get("sliding_attention") if _nested(said) else None
    if rope is None:
        return float(settings.get("rope_local_base_freq") or 1e4)
    kind = rope.get("rope_type", "default")
    if kind != "default":
        raise OtimesError(
            f"{name} has rope_type={kind!r} in layers with a window, which is not supported"
        )
    return float(rope.get("rope_theta", 1e4))


def _nested(said: Mapping[str, Any]) -> bool:
    return bool({*KINDS_OF_LAYERS} & said.keys())


def _stretch(
    name: str, settings: Settings, rope: dict[str, Any], dims: int, longest: int
) -> tuple[Any, ...]:
    """Return the `rotary_stretch` of the settings."""
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind not in STRETCH:
        raise OtimesError(
            f"{name} has rope_type={kind!r}, which changes the rotary frequencies and is not "
            f"supported; known are {listed(STRETCH)}"
        )
    beside = settings.get("original_max_position_embeddings")
    if beside is not None and kind in ("llama3", "yarn", "longrope"):
        rope["original_max_position_embeddings"] = beside
    if rope.get("original_max_position_embeddings") is None:
        rope["original_max_position_embeddings"] = longest
    if kind == "longrope":
        return _of_longrope(name, rope, dims, longest)
    if kind == "dynamic":
        factor = float(rope.get("factor") or 1.0)
        return () if factor == 1 else ("dynamic", factor, longest)
    rounded = rope.get("truncate", True)
    if kind == "yarn":
        rope |= _of_yarn(rope, longest)
    lacks = [each for each in STRETCH[kind] if rope.get(each) is None]
    if lacks:
        raise OtimesError(f"{name} has rope_type={kind!r} without {listed(lacks)}")
    numbers = tuple(float(rope[each]) for each in STRETCH[kind])
    return (*numbers, 0) if kind == "yarn" and not rounded and rounded is not None else numbers


def _of_yarn(rope: Mapping[str, Any], longest: int) -> dict[str, float]:
    """Return the numbers of YaRN, with the library's defaults."""
    factor = rope.get("factor") or longest / rope["original_max_position_embeddings"]

    def grown(share: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * share * math.log(factor) + 1.0

    scale = rope.get("attention_factor")
    if scale is None and rope.get("mscale") and rope.get("mscale_all_dim"):
        scale = grown(rope["mscale"]) / grown(rope["mscale_all_dim"])
    return {
        "factor": factor,
        "beta_slow": rope.get("beta_slow") or 1.0,
        "beta_fast": rope.get("beta_fast") or 32.0,
        "attention_factor": grown(1.0) if scale is None else scale,
    }


def _of_longrope(name: str, rope: Mapping[str, Any], dims: int, longest: int) -> tuple[Any, ...]:
    """Return the `rotary_stretch` of LongRoPE, with the library's default scale."""
    context = rope["original_max_position_embeddings"]
    divisors = [rope.get(each) for each in ("short_factor", "long_factor")]
    for key, each in zip(("short_factor", "long_factor"), divisors, strict=True):
        if each is None or len(each) != dims // 2:
            raise OtimesError(
                f"{name} has rope_type='longrope' with {key}={each!r}; it must have a number for"
                f" each of {dims // 2} pairs"
            )
    factor, scale = rope.get("factor") or longest / context, rope.get("attention_factor")
    if scale is None:
        scale = 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(context))
    numbers = [float(x) for each in divisors for x in each or ()]
    return ("longrope", context, float(scale), *numbers)
