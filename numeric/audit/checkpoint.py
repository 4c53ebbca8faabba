"""Audit the code that runs a checkpoint in a local folder, against the checkpoint's weights.

An otimes model folder is run by `TorchModel`, a Hugging Face folder by transformers, and so is a
safetensors file with a configuration.
"""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError
from otimes.numeric.audit.audit import audit, audit_call
from otimes.numeric.audit.report import Report
from otimes.numeric.files import json_bytes
from otimes.numeric.load import load_model, settings_of
from otimes.numeric.model import Model

LENGTH = 32
"""The number of random tokens if none are given."""


def audit_folder(
    folder: str, tokens: list[int] | None = None, config: Mapping[str, Any] | None = None
) -> Report:
    """Return the report on the code that runs a checkpoint: a folder, or a bundled model's name.

    It may also be a safetensors file, with its settings in `config` or in a config.json beside it.
    Raises: OtimesError if there is no such checkpoint, or the library that runs it is missing.
    """
    model = load_model(folder, config)
    prompt = drawn(model) if tokens is None else list(tokens)
    model.check_tokens(prompt)
    try:
        settings = settings_of(folder) if config is None else config
        if "model_type" in settings:
            return audit(_loaded(Path(folder), settings), prompt, name=model.name)
        return _with_twin(model, prompt)
    except ModuleNotFoundError as missing:
        raise OtimesError(
            f"auditing {folder} needs {missing.name}, which is not installed: "
            "pip install torch==2.13.0, then pip install -e '.[audit]' in the checkout"
        ) from None


def drawn(model: Model) -> list[int]:
    """Return a random prompt with a fixed seed."""
    length = min(LENGTH, model.n_ctx)
    return [int(t) for t in np.random.default_rng(0).integers(0, model.d_vocab, length)]


def _loaded(path: Path, settings: Mapping[str, Any]) -> Any:
    """Return the module of transformers that runs a folder, or a safetensors file."""
    if path.is_dir():
        return _of_folder(str(path))
    with TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_bytes(json_bytes(dict(settings)))
        (Path(folder) / "model.safetensors").symlink_to(path.resolve())
        return _of_folder(folder)


def _of_folder(folder: str) -> Any:
    import transformers
    from transformers.utils import logging

    bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        return transformers.AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, use_safetensors=True, dtype="auto"
        )
    finally:
        if bars:
            logging.enable_progress_bar()


def _with_twin(model: Model, prompt: list[int]) -> Report:
    import torch

    from otimes.numeric.torch_model import TorchModel

    twin = TorchModel.of_model(model)

    def run(tokens: list[int]) -> tuple[Any, dict[str, Any]]:
        record: dict[str, Any] = {}
        with torch.no_grad():
            return twin(torch.tensor([tokens]), record), record

    return audit_call(run, prompt, model, name=f"the twin of {model.name}")
