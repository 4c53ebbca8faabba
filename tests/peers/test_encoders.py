"""Encoders of transformers beside `ot.encode`: BERT, T5 and ViT, with random weights in float64."""

from typing import Any

import numpy as np
import pytest
import torch

import otimes as ot
from otimes.numeric.config import Config
from otimes.numeric.encoder import encode, relative_bias
from otimes.numeric.model import Model, make_model

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")

PROMPT = [3, 1, 4, 1, 5, 9]
WIDTH, HEADS, LAYERS, HIDDEN = 32, 4, 2, 48
ALL = ("b_Q", "b_K", "b_V", "b_O", "b_in", "b_out")


def made(kind: Any, config: Any, **options: Any) -> Any:
    torch.manual_seed(1)
    module = kind(config, **options).double().eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return module


def array(parameter: Any) -> np.ndarray:
    return parameter.detach().numpy()


def heads(weight: np.ndarray) -> np.ndarray:
    """Return a weight [d_model, out] as [head, d_model, d_head]."""
    return weight.reshape(weight.shape[0], HEADS, -1).swapaxes(0, 1)


def model(config: Config, layers: list[dict[str, np.ndarray]], **ends: np.ndarray) -> Model:
    stacked = {name: np.stack([each[name] for each in layers]) for name in layers[0]}
    weights = {name: np.zeros(shape) for name, shape in config.tensor_shapes().items()}
    return make_model("peer", config, {**weights, **stacked, **ends})


def attention(linear: dict[str, Any], out: Any, biases: bool = True) -> dict[str, np.ndarray]:
    found = {f"W_{name}": heads(array(each.weight).T) for name, each in linear.items()}
    found["W_O"] = array(out.weight).T.reshape(HEADS, -1, WIDTH)
    if biases:
        found |= {f"b_{name}": array(each.bias).reshape(HEADS, -1) for name, each in linear.items()}
        found["b_O"] = array(out.bias)
    return found


def layer(first: Any, second: Any, up: Any, down: Any, biases: bool = True) -> dict[str, Any]:
    found = {"ln1_gain": array(first.weight), "ln2_gain": array(second.weight)}
    found |= {"W_in": array(up.weight).T, "W_out": array(down.weight).T}
    if biases:
        found |= {"ln1_bias": array(first.bias), "ln2_bias": array(second.bias)}
        found |= {"b_in": array(up.bias), "b_out": array(down.bias)}
    return found


def close(ours: np.ndarray, theirs: Any) -> bool:
    """Return whether two float64 passes agree: some thousand roundings of the largest entry."""
    return bool(np.abs(ours - array(theirs)).max() <= 2.0**-40 * np.abs(ours).max())


def test_bert() -> None:
    module = made(
        transformers.BertModel,
        transformers.BertConfig(
            vocab_size=61, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
            intermediate_size=HIDDEN, max_position_embeddings=20, attn_implementation="eager",
        ),
    )  # fmt: skip
    config = Config(
        LAYERS, HEADS, WIDTH, 8, 61, 20, "learned", d_mlp=HIDDEN, activation="gelu", norm="layer",
        norm_order="post", norm_eps=1e-12, embed_norm=True, tied=True, biases=ALL,
    )  # fmt: skip
    layers = []
    for each in module.encoder.layer:
        own, out = each.attention.self, each.attention.output
        linear = {"Q": own.query, "K": own.key, "V": own.value}
        norms = (out.LayerNorm, each.output.LayerNorm)
        found = layer(*norms, each.intermediate.dense, each.output.dense)
        layers.append({**attention(linear, out.dense), **found})
    embeddings = module.embeddings
    bert = model(
        config,
        layers,
        W_E=array(embeddings.word_embeddings.weight),
        W_pos=array(embeddings.position_embeddings.weight),
        ln_embed_gain=array(embeddings.LayerNorm.weight),
        ln_embed_bias=array(embeddings.LayerNorm.bias),
    )
    segments = [0, 0, 0, 1, 1, 1]
    rows = bert.W_E[PROMPT] + array(embeddings.token_type_embeddings.weight)[segments]
    ids = {"input_ids": torch.tensor([PROMPT]), "token_type_ids": torch.tensor([segments])}
    seen = torch.tensor([[1, 1, 1, 1, 1, 0]])
    assert close(encode(bert, rows=rows)["final"], module(**ids).last_hidden_state[0])
    padded = encode(bert, rows=rows, keys=np.array([True] * 5 + [False]))["final"]
    assert close(padded, module(**ids, attention_mask=seen).last_hidden_state[0])
    assert not close(padded, module(**ids).last_hidden_state[0])


def test_t5() -> None:
    module = made(
        transformers.T5EncoderModel,
        transformers.T5Config(
            vocab_size=61, d_model=WIDTH, d_kv=8, d_ff=HIDDEN, num_layers=LAYERS, num_heads=HEADS,
            relative_attention_num_buckets=8, relative_attention_max_distance=16,
        ),
    )  # fmt: skip
    config = Config(
        LAYERS, HEADS, WIDTH, 8, 61, 40, "none", d_mlp=HIDDEN, activation="relu", norm="rms",
        norm_eps=1e-6, attn_scale=1.0, final_norm=True, tied=True,
    )  # fmt: skip
    layers = []
    for each in module.encoder.block:
        own, dense = each.layer[0].SelfAttention, each.layer[1].DenseReluDense
        norms = (each.layer[0].layer_norm, each.layer[1].layer_norm)
        linear = {"Q": own.q, "K": own.k, "V": own.v}
        found = layer(*norms, dense.wi, dense.wo, biases=False)
        layers.append({**attention(linear, own.o, biases=False), **found})
    t5 = model(
        config,
        layers,
        W_E=array(module.shared.weight),
        ln_final_gain=array(module.encoder.final_layer_norm.weight),
    )
    prompt = [*PROMPT, *range(7, 40)]
    table = array(module.encoder.block[0].layer[0].SelfAttention.relative_attention_bias.weight)
    theirs = module(input_ids=torch.tensor([prompt])).last_hidden_state[0]
    bias = relative_bias(table, len(prompt), 16)
    # T5 computes norms and softmax in float32 whatever its weights are.
    assert np.abs(encode(t5, prompt, score_bias=bias)["ln_final"] - array(theirs)).max() < 2.0**-17
    assert not close(encode(t5, prompt)["ln_final"], theirs)
    own = module.encoder.block[0].layer[0].SelfAttention.compute_bias(39, 39)[0]
    assert np.array_equal(bias, array(own))


def test_vit() -> None:
    # Its "eager" attention computes the softmax in float32.
    module = made(
        transformers.ViTModel,
        transformers.ViTConfig(
            hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
            intermediate_size=HIDDEN, image_size=12, patch_size=4, attn_implementation="sdpa",
        ),
        add_pooling_layer=False,
    )  # fmt: skip
    config = Config(
        LAYERS, HEADS, WIDTH, 8, 1, 10, "learned", d_mlp=HIDDEN, activation="gelu", norm="layer",
        norm_eps=1e-12, final_norm=True, tied=True, biases=ALL,
    )  # fmt: skip
    layers = [_vit_layer(each) for each in module.layers]
    embeddings = module.embeddings
    vit = model(
        config,
        layers,
        W_pos=array(embeddings.position_embeddings)[0],
        ln_final_gain=array(module.layernorm.weight),
        ln_final_bias=array(module.layernorm.bias),
    )
    image = torch.randn(1, 3, 12, 12, dtype=torch.float64)
    projection = embeddings.patch_embeddings.projection
    pixels = image[0].unfold(1, 4, 4).unfold(2, 4, 4).permute(1, 2, 0, 3, 4).reshape(9, -1).numpy()
    patches = pixels @ array(projection.weight).reshape(WIDTH, -1).T + array(projection.bias)
    rows = np.concatenate([array(embeddings.cls_token)[0], patches])
    ours = encode(vit, rows=rows)["ln_final"]
    assert close(ours, module(pixel_values=image).last_hidden_state[0])


def _vit_layer(each: Any) -> dict[str, np.ndarray]:
    named = {name.rpartition(".")[2]: part for name, part in each.named_modules()}
    known = {name: part for name, part in each.named_modules() if hasattr(part, "weight")}
    linear, norms, others = {}, [], []
    for name, part in known.items():
        if isinstance(part, torch.nn.LayerNorm):
            norms.append(part)
        elif name.endswith(("query", "q_proj")):
            linear["Q"] = part
        elif name.endswith(("key", "k_proj")):
            linear["K"] = part
        elif name.endswith(("value", "v_proj")):
            linear["V"] = part
        else:
            others.append(part)
    assert len(norms) == 2, named
    out, up, down = others
    return {**attention(linear, out), **layer(*norms, up, down)}


SIZES = {"vocab_size": 61, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
SIZES |= {"hidden_size": WIDTH, "intermediate_size": HIDDEN, "max_position_embeddings": 22}
SHORT = {"vocab_size": 61, "dim": WIDTH, "n_layers": LAYERS, "n_heads": HEADS, "hidden_dim": HIDDEN}
ENCODERS = {
    "Bert": SIZES,
    "Roberta": {**SIZES, "pad_token_id": 1},
    "XLMRoberta": {**SIZES, "pad_token_id": 1},
    "Camembert": {**SIZES, "pad_token_id": 1},
    "DistilBert": {**SHORT, "max_position_embeddings": 22},
}


@pytest.mark.parametrize("kind", ENCODERS)
def test_encoders_are_loaded(kind: str, tmp_path: Any) -> None:
    settings = getattr(transformers, f"{kind}Config")(**ENCODERS[kind], attn_implementation="eager")
    tokens = [3, 4, 5, 6, 7, 9]
    for end in ("Model", "ForMaskedLM"):
        module = made(getattr(transformers, kind + end), settings)
        body = module if end == "Model" else getattr(module, module.base_model_prefix)
        theirs = body(torch.tensor([tokens])).last_hidden_state[0]
        assert close(encode(module, tokens)["final"], theirs)
        module.save_pretrained(tmp_path / end)
        loaded = ot.load_model(tmp_path / end)
        assert close(encode(loaded, tokens)["final"], theirs)
    keys = np.array([True] * 4 + [False] * 2)
    padded = body(torch.tensor([tokens]), attention_mask=torch.tensor(keys[None])).last_hidden_state
    assert close(encode(loaded, tokens, keys=keys)["final"][:4], padded[0, :4])
    for call in (loaded.forward, lambda t: ot.audit(module, t), lambda t: ot.logit_lens(loaded, t)):
        with pytest.raises(ot.OtimesError, match="encoder, whose positions see all others"):
            call(tokens)
    module.config.position_embedding_type = "relative_key"
    with pytest.raises(ot.OtimesError, match=r"position_embedding_type='relative_key'"):
        ot.load_model(module)
