"""What it is worth in numbers: trained models, their reference pass, and what they score.

- `model`: a transformer as plain arrays, read from a folder and checked;
- `forward`: the reference pass, every place recorded, in float64;
- `tokenizer`: byte-level byte-pair encoding and the bundled sample text;
- `measure`: losses and the scores of heads;
- `twin`, `corpus`, `training`: the same model in torch and how it is trained (extra `train`).

The names below are loaded when they are first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numeric.model import Config, Model, bundled_models, load_model, make_model
    from numeric.tokenizer import Tokenizer, load_tokenizer, sample_text, sample_tokens

__otimes__ = "numeric"

__all__ = [
    "Config",
    "Model",
    "Tokenizer",
    "bundled_models",
    "load_model",
    "load_tokenizer",
    "make_model",
    "sample_text",
    "sample_tokens",
]

_HOME = dict.fromkeys(("Config", "Model", "bundled_models", "load_model", "make_model"), "model")
_HOME |= dict.fromkeys(("Tokenizer", "load_tokenizer", "sample_text", "sample_tokens"), "tokenizer")


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module 'numeric' has no attribute {name!r}")
    return getattr(import_module(f"numeric.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
