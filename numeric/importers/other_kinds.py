"""Why a known kind of model has no importer, and what can be done with it instead."""

ENCODERS = (*("albert", "deberta", "deberta-v2", "electra", "ernie", "modernbert", "mpnet", "vit"),)
ENCODER_DECODERS = (
    *("bart", "longt5", "m2m_100", "marian", "mbart", "mt5", "pegasus", "t5", "t5gemma", "umt5"),
    *("whisper",),
)
RECURRENT = (
    *("bamba", "falcon_h1", "falcon_mamba", "granitemoehybrid", "jamba", "kimi_linear", "lfm2"),
    *("lfm2_moe", "mamba", "mamba2", "minimax", "nemotron_h", "olmo_hybrid", "qwen3_5"),
    *("qwen3_5_moe", "qwen3_next", "recurrent_gemma", "rwkv", "xlstm", "zamba", "zamba2"),
)

OTHERWISE = {
    **dict.fromkeys(
        ("hunyuan_v1_dense", "hunyuan_v1_moe", "nanochat"),
        "whose queries and keys are normalised after they are rotated",
    ),
    **dict.fromkeys(
        ("llama4", "llama4_text"),
        "whose attention is in chunks, whose queries and keys are normalised after they are "
        "rotated, and whose router scales what experts read",
    ),
    "apertus": "whose activation, xIELU, has parameters of its own in each layer",
    "phimoe": "whose router (sparsemixer) gives each chosen expert a softmax of its own",
    **dict.fromkeys(
        ("gemma3n", "gemma3n_text"),
        "which has several streams (AltUp), embeddings for each layer and sparse activations",
    ),
}
"""Decoders whose attention or MLP the reference does not have, and what it lacks."""

_ENCODE = "`encode` is the pass without a mask (docs/models.md has a mapping of such weights)"
_WHY = {
    **{kind: f"{what}: the reference does not have this" for kind, what in OTHERWISE.items()},
    **dict.fromkeys(ENCODERS, f"an encoder, whose positions see all others: {_ENCODE}"),
    **dict.fromkeys(
        ENCODER_DECODERS,
        f"an encoder and a decoder that reads it, and the reference reads one text only: {_ENCODE},"
        " and `relative_bias` is T5's bias of distances",
    ),
    **dict.fromkeys(
        RECURRENT,
        "made of layers that carry a state from token to token, and the reference has attention"
        " only: `lstm` is its recurrent layer, and the attention layers can be loaded as a mapping"
        " of arrays",
    ),
}


def why_not(kind: str) -> str:
    """Return why a kind is not imported and what to do, or "" for an unknown one.

    >>> why_not("albert")[:39]
    'an encoder, whose positions see all oth'
    """
    return _WHY.get(kind, "")
