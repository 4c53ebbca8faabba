"""Live modules of other libraries as reference models.

A module is recognised by the name of its class, so that unused libraries need not be installed.
Each setting is supported, known to have no effect, or refused by name: an ignored setting would
make a correct implementation look wrong, or a wrong one right. Rotary frequencies are computed from
the settings in float64, not read from the buffers of a module, which are float32.

    Hugging Face        GPT-2, GPT-NeoX (`huggingface`), and the decoders of `families`: Llama and
                        those made of its parts, those with experts, and older ones
    TransformerLens     HookedTransformer (`transformer_lens`)
    torch.nn            TransformerEncoderLayer, TransformerEncoder, MultiheadAttention
                        (`torch_layers`)
"""

from typing import Any

from otimes.algebra.errors import OtimesError
from otimes.numeric.importers import huggingface, torch_layers, transformer_lens
from otimes.numeric.importers.arrays import array_of
from otimes.numeric.importers.other_kinds import why_not
from otimes.numeric.importers.unwrap import unwrapped
from otimes.numeric.model import Model

CLASSES = {
    "GPT2": "gpt2",
    "GPTNeoX": "gpt_neox",
    "Llama": "llama",
    "Mistral": "mistral",
    "Qwen2": "qwen2",
    "Qwen3": "qwen3",
    "Mixtral": "mixtral",
    "Qwen2Moe": "qwen2_moe",
    "Qwen3Moe": "qwen3_moe",
    "GptOss": "gpt_oss",
    "DeepseekV2": "deepseek_v2",
    "DeepseekV3": "deepseek_v3",
    "Olmo": "olmo",
    "Olmo2": "olmo2",
    "Olmo3": "olmo3",
    "Gemma": "gemma",
    "Gemma2": "gemma2",
    "Phi": "phi",
    "Phi3": "phi3",
    "StableLm": "stablelm",
    "Starcoder2": "starcoder2",
    "GPTJ": "gptj",
    "OPT": "opt",
    "GPTNeo": "gpt_neo",
    "GPTBigCode": "gpt_bigcode",
    "Persimmon": "persimmon",
    "Bloom": "bloom",
    "Falcon": "falcon",
    "Mpt": "mpt",
    "SeedOss": "seed_oss",
    "Cohere": "cohere",
    "Cohere2": "cohere2",
    "Granite": "granite",
    "GraniteMoe": "granitemoe",
    "SmolLM3": "smollm3",
    "Exaone4": "exaone4",
    "Nemotron": "nemotron",
    "Arcee": "arcee",
    "Jais2": "jais2",
    "ExaoneMoe": "exaone_moe",
    "Ernie4_5": "ernie4_5",
    "Ernie4_5_Moe": "ernie4_5_moe",
    "Helium": "helium",
    "Ministral": "ministral",
    "Ministral3": "ministral3",
    "Cwm": "cwm",
    "Glm": "glm",
    "Glm4": "glm4",
    "Glm4Moe": "glm4_moe",
    "Glm4MoeLite": "glm4_moe_lite",
    "SolarOpen": "solar_open",
    "Dots1": "dots1",
    "MiniMaxM2": "minimax_m2",
    "Olmoe": "olmoe",
    "FlexOlmo": "flex_olmo",
    "VaultGemma": "vaultgemma",
}
ENCODERS = {
    "Bert": "bert",
    "Roberta": "roberta",
    "XLMRoberta": "xlm-roberta",
    "Camembert": "camembert",
    "DistilBert": "distilbert",
}
HUGGING_FACE = {
    **{f"{name}{end}": kind for name, kind in ENCODERS.items() for end in ("ForMaskedLM", "Model")},
    "GPT2LMHeadModel": "gpt2",
    "Gemma3ForCausalLM": "gemma3_text",
    "Gemma3TextModel": "gemma3_text",
    **{f"{name}{end}": kind for name, kind in CLASSES.items() for end in ("ForCausalLM", "Model")},
}

NORMS = ("ln_", "norm", "input_layernorm", "post_attention_layernorm", "final_layer_norm")
"""Prefixes of the names of norms in Hugging Face modules."""

KNOWN = (*HUGGING_FACE, "HookedTransformer", *torch_layers.KINDS)
"""The known classes of live modules."""


def of_module(source: Any) -> Model:
    """Return the reference model of a live module, which is not changed; weights are shared.

    Raises: OtimesError for a class that is not known, or a setting that is not supported.
    """
    source = unwrapped(source)
    kind = kind_of_module(source)
    if kind == "lens":
        return transformer_lens.of_module(source)
    if kind in torch_layers.KINDS.values():
        return torch_layers.of_module(source, str(kind))
    if kind is not None:
        return of_hugging_face(source, kind)
    check_reference(source)
    kind = getattr(getattr(source, "config", None), "model_type", None)
    if kind in huggingface.OF_TEXT_AND_IMAGES:
        raise OtimesError(
            f"{type(source).__name__} reads text and images: give its language model, "
            "module.model.language_model, or the folder of the checkpoint"
        )
    if isinstance(kind, str) and why_not(kind):
        raise OtimesError(f"{type(source).__name__} is of the kind {kind!r}, {why_not(kind)}")
    raise OtimesError(
        f"there is no importer for {type(source).__name__} of {type(source).__module__}: "
        "load it as a mapping of the canonical names to its tensors, with config=; docs/models.md "
        "has these names, and the classes of transformers, transformer_lens and torch.nn that are "
        "read as they are"
    )


def kind_of_module(module: Any) -> str | None:
    """Return the kind of a live module, None if it is not a known one."""
    for each in type(module).__mro__:
        library = each.__module__.partition(".")[0]
        if each.__name__ in HUGGING_FACE and library == "transformers":
            return HUGGING_FACE[each.__name__]
        if each.__name__ == "HookedTransformer" and library == "transformer_lens":
            return "lens"
        if each.__name__ in torch_layers.KINDS and each.__module__.startswith("torch.nn."):
            return torch_layers.KINDS[each.__name__]
    return None


def check_reference(source: Any) -> None:
    """Raise OtimesError if a module is one of torch.nn that computes what the reference cannot."""
    for each in type(source).__mro__:
        why = torch_layers.WITHOUT_REFERENCE.get(each.__name__)
        if why and each.__module__.startswith("torch.nn."):
            raise OtimesError(f"{each.__name__} of torch.nn cannot be audited: {why}")


def of_hugging_face(module: Any, kind: str) -> Model:
    """Return the reference model of a live Hugging Face module."""
    for name, part in module.named_modules():
        if type(part).__name__ == "Identity" and name.rpartition(".")[2].startswith(NORMS):
            raise OtimesError(
                f"{type(module).__name__} has Identity for {name}: the reference has a norm there"
            )
    settings = module.config.to_dict()
    state = module.state_dict()
    packed = [name for name in state if "_packed_params" in name]
    if packed:
        raise OtimesError(f"the module holds quantised weights ({packed[0]}): not supported")
    tensors = {
        name: array_of(tensor) for name, tensor in state.items() if hasattr(tensor, "detach")
    }
    return huggingface.model_of(type(module).__name__, kind, settings, tensors)
