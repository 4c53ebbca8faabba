"""Families of encoders: BERT and those made like it. `encode` is their pass.

A prompt is of one segment: the embedding of the first token type is added to the positions.
"""

from typing import Any

from otimes.numeric.importers.checkpoint import Settings
from otimes.numeric.importers.declared import OF_ALL, decoder, renamed
from otimes.numeric.importers.decoders import Decoder, Fields

BEFORE = 2
"""RoBERTa's table of positions begins with a row that is not used and one for padding."""


def encoder(name: str, settings: Settings) -> Fields:
    """Return what all encoders declare: no mask, and no norm at the end."""
    return {"causal": False, "final_norm": False}


def bert_positions(decoder: Decoder, name: str, settings: Settings) -> Fields:
    """Return learned positions, of which some families do not use the first rows."""
    longest = settings.size("max_position_embeddings") - decoder.before_positions
    return {"positions": "learned", "n_ctx": longest}


def distilbert_settings(name: str, settings: Settings) -> Settings:
    """Return the settings of DistilBERT under the names of Llama."""
    names = {
        "dim": "hidden_size",
        "n_layers": "num_hidden_layers",
        "n_heads": "num_attention_heads",
        "hidden_dim": "intermediate_size",
        "activation": "hidden_act",
    }
    return renamed(settings, names, layer_norm_eps=1e-12)


EVERY: dict[str, Any] = {
    "order": "post",
    "norm": "layer",
    "eps": "layer_norm_eps",
    "biases": lambda settings: OF_ALL,
    "embed": "embeddings.word_embeddings",
    "learned": "embeddings.position_embeddings",
    "embed_norm": "embeddings.LayerNorm",
    "final": "",
    "positions": bert_positions,
    "more": encoder,
}
BERT: dict[str, Any] = {
    **EVERY,
    "norms": {"ln1": "attention.output.LayerNorm", "ln2": "output.LayerNorm"},
    "heads": {
        "Q": "attention.self.query",
        "K": "attention.self.key",
        "V": "attention.self.value",
        "O": "attention.output.dense",
    },
    "mlp": {"in": "intermediate.dense", "out": "output.dense"},
    "token_types": "embeddings.token_type_embeddings",
    "layers": "encoder.layer",
}
ONLY: dict[str, tuple[Any, ...]] = {
    "position_embedding_type": ("absolute", None),
    "is_decoder": (False, None),
    "add_cross_attention": (False, None),
}
ROBERTA = decoder(
    {"type_vocab_size"},
    **BERT,
    body="roberta.",
    before_positions=BEFORE,
    only={**ONLY, "pad_token_id": (BEFORE - 1,)},
)

DECODERS: dict[str, Decoder] = {
    "bert": decoder({"type_vocab_size"}, **BERT, body="bert.", only=ONLY),
    "roberta": ROBERTA,
    "xlm-roberta": ROBERTA,
    "camembert": ROBERTA,
    "distilbert": decoder(
        {"dim", "n_layers", "n_heads", "hidden_dim", "activation", "qa_dropout"},
        {"sinusoidal_pos_embds", "seq_classif_dropout", "dropout"},
        **EVERY,
        norms={"ln1": "sa_layer_norm", "ln2": "output_layer_norm"},
        heads={
            **{letter: f"attention.{letter.lower()}_lin" for letter in "QKV"},
            "O": "attention.out_lin",
        },
        mlp={"in": "ffn.lin1", "out": "ffn.lin2"},
        body="distilbert.",
        layers="transformer.layer",
        standard=distilbert_settings,
        only=ONLY,
    ),
}
"""The families of encoders, by their `model_type`."""
