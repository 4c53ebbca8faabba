"""What it is worth in numbers: trained models, their reference pass, and what they score.

- `config`, `model`: what kind of transformer; one as plain arrays, read from a folder, checked;
- `forward`, `functions`: the reference pass, every place recorded, in float64;
- `random_weights`: a model of any kind with drawn weights;
- `processing`: other weights, same function;
- `tokenizer`: byte-level byte-pair encoding and the bundled sample text;
- `measure`: losses and the scores of heads;
- `circuits`, `plot`: what the weights say by themselves, in factored form; pictures of it;
- `frozen`, `paths`: a pass with its patterns held fixed, and what goes through which heads in it;
- `twin`, `corpus`, `training`: the same model in torch and how it is trained (extra `train`).

The names below are loaded when they are first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numeric.config import Config, gpt2_config, llama_config
    from numeric.model import Model, bundled_models, load_model, make_model, save_model
    from numeric.random_weights import random_model
    from numeric.tokenizer import Tokenizer, load_tokenizer, sample_text, sample_tokens

__otimes__ = "numeric"

__all__ = [
    "Config",
    "Model",
    "Tokenizer",
    "bundled_models",
    "gpt2_config",
    "llama_config",
    "load_model",
    "load_tokenizer",
    "make_model",
    "random_model",
    "sample_text",
    "sample_tokens",
    "save_model",
]

_HOME = dict.fromkeys(("Config", "gpt2_config", "llama_config"), "config")
_HOME |= dict.fromkeys(
    ("Model", "bundled_models", "load_model", "make_model", "save_model"), "model"
)
_HOME |= {"random_model": "random_weights"}
_HOME |= dict.fromkeys(("Tokenizer", "load_tokenizer", "sample_text", "sample_tokens"), "tokenizer")


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module 'numeric' has no attribute {name!r}")
    return getattr(import_module(f"numeric.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
