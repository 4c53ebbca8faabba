"""Training of the bundled models: `otimes train NAME` (extra `train`).

The text is the source of Python's standard library, so nothing is downloaded. All random numbers
come from one seeded NumPy generator and the number of steps is fixed: two runs on one machine give
the same weights, on a CUDA device if there is one, else on the CPU. (The standard library differs
between versions of Python; the model card records the version.)

The `induction` recipe trains on repeated random sequences first. Only the earlier occurrence of a
token helps to predict these, and the induction heads that form persist when text is mixed in.
Source: Olsson et al. 2022, “In-context Learning and Induction Heads”; positions as in Press, Smith
and Lewis 2021, “Shortformer”.
"""

import math
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from safetensors.numpy import save
from torch import Tensor
from torch.nn.functional import cross_entropy

from otimes.algebra.errors import OtimesError
from otimes.numeric.config import BIASES, Config, gpt2_config, llama_config
from otimes.numeric.corpus import D_VOCAB, Source, encode_source, read_source
from otimes.numeric.files import check_writable
from otimes.numeric.metrics import mean_loss
from otimes.numeric.model import make_model, save_model
from otimes.numeric.model_card import figures
from otimes.numeric.tokenizer import load_tokenizer
from otimes.numeric.torch_model import TorchModel

Progress = Callable[[int, int, float], None]
"""A callback of `train`: (steps done, total steps, loss of the last step in nats)."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase of training on sequences of one length.

    In each batch, the fraction `repeated_fraction` are random sequences that repeat with a period
    drawn from `periods` (both ends included); the others are windows of the source text.
    """

    steps: int
    length: int
    repeated_fraction: float = 0.0
    periods: tuple[int, int] = (8, 32)


@dataclass(frozen=True, slots=True)
class Recipe:
    """The hyperparameters of a training run; with the text and the seed they determine it."""

    config: Config
    phases: tuple[Phase, ...]
    batch: int = 64
    learning_rate: float = 2e-3
    betas: tuple[float, float] = (0.9, 0.98)
    weight_decay: float = 0.01
    warm_up_steps: int = 200
    decay_fraction: float = 0.3
    gradient_clip: float = 1.0
    embedding_std: float = 0.5
    position_std: float = 0.7

    @property
    def steps(self) -> int:
        """The total number of steps of all phases."""
        return sum(phase.steps for phase in self.phases)


def _attention_only(n_layers: int) -> Config:
    return Config(
        n_layers=n_layers,
        n_heads=4,
        d_model=128,
        d_head=32,
        d_vocab=D_VOCAB,
        n_ctx=128,
        positions="shortformer" if n_layers else "none",
    )


RECIPES = {
    "zero_layer": Recipe(_attention_only(0), (Phase(3000, 128),)),
    "one_layer": Recipe(_attention_only(1), (Phase(1800, 128),)),
    "two_layer": Recipe(_attention_only(2), (Phase(1800, 128),)),
    "induction": Recipe(
        _attention_only(2),
        (Phase(3700, 64, repeated_fraction=1.0), Phase(800, 128, repeated_fraction=0.5)),
    ),
    # GPT-2's architecture and initialisation at a small size. A tied embedding starts small, since
    # logits are quadratic in it; the first norm rescales its output.
    "gpt2_tiny": Recipe(
        gpt2_config(
            n_layers=4, n_heads=4, d_model=128, d_head=32, d_mlp=512, d_vocab=D_VOCAB, n_ctx=128
        ),
        (Phase(2000, 128),),
        embedding_std=0.05,
        position_std=0.05,
    ),
    # A smaller one from seed 1: its neurons are compared with those of gpt2_tiny on short prompts.
    "gpt2_twin": Recipe(
        gpt2_config(
            n_layers=2, n_heads=2, d_model=64, d_head=32, d_mlp=256, d_vocab=D_VOCAB, n_ctx=128
        ),
        (Phase(1500, 64),),
        batch=32,
        embedding_std=0.05,
        position_std=0.05,
    ),
    # Llama's architecture: rotary positions, RMSNorm, grouped keys and values, a gated MLP.
    "llama_tiny": Recipe(
        llama_config(
            n_layers=2,
            n_heads=4,
            n_kv_heads=2,
            d_model=128,
            d_head=32,
            d_mlp=384,
            d_vocab=D_VOCAB,
            n_ctx=128,
            rotary_base=10000.0,
            rotary_dims=32,
            rotary_stretch=(),
        ),
        (Phase(1500, 128),),
        batch=32,
        embedding_std=0.05,
    ),
}


def train(
    name: str,
    out_folder: str | Path,
    seed: int = 0,
    on_progress: Progress | None = None,
    recipe: Recipe | None = None,
    source: Source | None = None,
    device: str | None = None,
) -> Path:
    """Train a model from random weights and return its folder, `out_folder/name`.

    The folder can be given to `load_model`. Its files are written atomically. For a model of your
    own, `recipe` replaces the recipe called `name`, and `source` the standard library. `device` is
    a torch device, by default "cuda" if there is one, else "cpu".

    Raises: OtimesError, before the training, for an unknown recipe, for one that does not fit the
    tokenizer and the text, for a device that torch cannot use, and a folder that cannot be written.
    """
    if recipe is None:
        if name not in RECIPES:
            raise OtimesError(f"unknown recipe {name!r}; the recipes are {', '.join(RECIPES)}")
        recipe = RECIPES[name]
    where = _usable(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    folder = Path(out_folder) / name
    check_writable(folder, folder=True)
    tokenizer = load_tokenizer()
    source = read_source() if source is None else source
    train_text, held_out_text = encode_source(source, tokenizer)
    _check_recipe(recipe, tokenizer.d_vocab, len(train_text), len(held_out_text))

    rng = np.random.default_rng(seed)
    with _repeatable(where):
        torch_model = TorchModel(recipe.config, initial_weights(recipe, rng)).to(where)
        _optimise(torch_model, recipe, train_text, rng, on_progress)

    weights = {tensor: value.cpu().numpy() for tensor, value in torch_model.weights().items()}
    card = make_card(name, recipe, seed, weights, source, (train_text, held_out_text))
    save_model(folder, recipe.config, weights, card)
    return folder


def _usable(device: str) -> torch.device:
    """Return a device of torch. Raises: OtimesError if there is none of that name."""
    try:
        found = torch.device(device)
        torch.ones(1, device=found).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        first = str(error).partition("\n")[0]
        raise OtimesError(f"torch cannot compute on the device {device!r}: {first}") from None
    return found


def _check_recipe(recipe: Recipe, d_vocab: int, n_train: int, n_held_out: int) -> None:
    """Raise OtimesError for a recipe that would fail later in the run."""
    config = recipe.config
    if config.d_vocab != d_vocab:
        raise OtimesError(
            f"the recipe has d_vocab={config.d_vocab}, but the tokenizer has {d_vocab} tokens"
        )
    longest = max((phase.length for phase in recipe.phases), default=0)
    if not 1 <= longest <= config.n_ctx:
        raise OtimesError(
            f"the recipe trains on sequences of length {longest}, but the model takes"
            f" at most n_ctx={config.n_ctx} tokens"
        )
    if min(n_train, n_held_out) <= config.n_ctx:
        raise OtimesError(
            f"the text is too short: it has {n_train} training tokens and {n_held_out} held-out"
            f" tokens, and a window needs n_ctx + 1 = {config.n_ctx + 1}"
        )


def make_card(
    name: str,
    recipe: Recipe,
    seed: int,
    weights: dict[str, np.ndarray],
    source: Source,
    texts: tuple[np.ndarray, np.ndarray],
) -> dict[str, Any]:
    """Return the content of `card.json`: the data, the hyperparameters and the final metrics.

    The metrics are computed by the reference forward pass on the saved weights; losses are in nats.
    """
    model = make_model(name, recipe.config, weights)
    train_text, held_out_text = texts
    measured = figures(model)
    on_text = {
        "uniform_guess": math.log(recipe.config.d_vocab),
        "bigram_entropy_of_train": bigram_entropy(train_text),
        "train": mean_loss(model, even_windows(train_text, recipe.config.n_ctx)),
        "held_out": mean_loss(model, even_windows(held_out_text, recipe.config.n_ctx)),
    }
    settings = asdict(recipe)
    return {
        "name": name,
        "what": f"{describe(recipe.config)}, trained from nothing on Python source",
        "data": {
            "text": "the source of Python's standard library, without tests",
            "python": platform.python_version(),
            "files": len(source.texts),
            "bytes": source.n_bytes,
            "sha256": source.sha256,
            "train_tokens": len(train_text),
            "held_out_tokens": len(held_out_text),
            "held_out": "every 20th file, in the order of their paths",
        },
        "settings": {key: value for key, value in settings.items() if key != "config"},
        "steps": recipe.steps,
        "seed": seed,
        "losses_nats": {key: round(value, 4) for key, value in on_text.items()}
        | measured["losses_nats"],
        "scores": measured["scores"],
        "parameters": sum(tensor.size for tensor in weights.values()),
        "weights_bytes": len(save(weights)),
        "train_again": f"otimes train {name}",
    }


def describe(config: Config) -> str:
    """Return a one-line description of the architecture.

    >>> describe(RECIPES["two_layer"].config)
    'attention-only transformer, 2 layers, no biases, no norm'
    """
    mlps = "gated MLPs" if config.gated else "MLPs"
    kind = f"transformer with {mlps}" if config.d_mlp else "attention-only transformer"
    heads = f"{config.n_heads} heads on {config.kv_heads} key/value heads"
    norm = {"none": "no norm", "layer": "LayerNorm", "rms": "RMSNorm"}[config.norm]
    norm += " after each sum" if config.post_norm else ""
    positions = {"learned": ["learned positions"], "rotary": ["rotary positions"]}
    parts = [
        f"{kind}, {config.n_layers} layers",
        *([heads] if config.kv_heads != config.n_heads else []),
        "biases" if config.biases else "no biases",
        norm,
        *positions.get(config.positions, []),
        *(["tied embedding"] if config.tied else []),
    ]
    return ", ".join(parts)


def even_windows(
    text: Int[np.ndarray, " tokens"], n_ctx: int, n_windows: int = 200
) -> Int[np.ndarray, "window n_ctx"]:
    """Return evenly spaced windows of a text."""
    starts = np.linspace(0, len(text) - n_ctx, n_windows).astype(np.int64)
    return np.stack([text[start : start + n_ctx] for start in starts])


def bigram_entropy(text: Int[np.ndarray, " tokens"]) -> float:
    """Return $H(t_{i+1} | t_i)$ in nats: the loss of the best bigram model on this text."""

    def entropy(counts: Int[np.ndarray, " kind"]) -> float:
        shares = counts / counts.sum()
        return float(-(shares * np.log(shares)).sum())

    _, pairs = np.unique(text[:-1] * (int(text.max()) + 1) + text[1:], return_counts=True)
    _, firsts = np.unique(text[:-1], return_counts=True)
    return entropy(pairs) - entropy(firsts)


def initial_weights(recipe: Recipe, rng: np.random.Generator) -> dict[str, Tensor]:
    """Return normal weights of variance 1 / fan-in, zero biases and unit gains.

    Embeddings and positions have the standard deviations of the recipe. In a shortformer model
    queries and keys read the sum of both, which must have similar sizes: with token embeddings a
    tenth of the positions, induction heads form after about 3,200 steps instead of 500. With MLPs,
    W_O and W_out start smaller by √(2 n_layers), as in GPT-2.
    """
    config = recipe.config
    deep = math.sqrt(2 * config.n_layers) if config.d_mlp else 1.0
    std = {
        "W_E": recipe.embedding_std,
        "W_pos": recipe.position_std,
        "W_O": (config.n_heads * config.d_head) ** -0.5 / deep,
        "W_out": max(config.d_mlp, 1) ** -0.5 / deep,
    }
    weights = {}
    for name, shape in config.tensor_shapes().items():
        if name == "W_pos" and config.positions == "shortformer":
            values = sinusoidal_positions(config.n_ctx, config.d_model, recipe.position_std)
        elif name in BIASES or name.endswith("_bias"):
            values = np.zeros(shape)
        elif name.endswith("_gain"):
            values = np.ones(shape)
        else:
            values = std.get(name, config.d_model**-0.5) * rng.standard_normal(shape)
        weights[name] = torch.tensor(values, dtype=torch.float32)
    return weights


def sinusoidal_positions(
    n_ctx: int, d_model: int, std: float
) -> Float[np.ndarray, "n_ctx d_model"]:
    """Return sines and cosines of the position at geometric frequencies (Vaswani et al. 2017).

    A sine wave of amplitude √2·std has standard deviation `std`.
    """
    frequencies = 10000.0 ** (-np.arange(0, d_model, 2) / d_model)
    angles = np.arange(n_ctx)[:, None] * frequencies
    positions = np.empty((n_ctx, d_model))
    positions[:, 0::2] = np.sin(angles)
    positions[:, 1::2] = np.cos(angles)[:, : d_model // 2]
    return math.sqrt(2) * std * positions


@contextmanager
def _repeatable(device: torch.device) -> Iterator[None]:
    """Use deterministic algorithms on a CUDA device; torch warns where there is none."""
    before = torch.are_deterministic_algorithms_enabled()
    if device.type == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what cuBLAS needs for it
        torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


def _optimise(
    torch_model: TorchModel,
    recipe: Recipe,
    text: Int[np.ndarray, " tokens"],
    rng: np.random.Generator,
    on_progress: Progress | None,
) -> list[float]:
    """Run all steps of the recipe; return the loss of each, in nats."""
    optimizer = torch.optim.AdamW(
        torch_model.parameters(),
        lr=recipe.learning_rate,
        betas=recipe.betas,
        weight_decay=recipe.weight_decay,
    )
    device = next(torch_model.parameters()).device
    losses: list[float] = []
    for phase in recipe.phases:
        for _ in range(phase.steps):
            for group in optimizer.param_groups:
                group["lr"] = recipe.learning_rate * schedule(recipe, len(losses))
            tokens = torch.from_numpy(draw_batch(phase, recipe, text, rng)).to(device)
            logits = torch_model(tokens[:, :-1])
            loss = cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(torch_model.parameters(), recipe.gradient_clip)
            optimizer.step()
            losses.append(loss.item())
            if on_progress is not None and (len(losses) % 20 == 0 or len(losses) == recipe.steps):
                on_progress(len(losses), recipe.steps, losses[-1])
    return losses


def schedule(recipe: Recipe, step: int) -> float:
    """Return the learning rate factor at a step: linear warm-up, constant, linear decay to 0."""
    warm = (step + 1) / recipe.warm_up_steps
    cool = (recipe.steps - step) / (recipe.decay_fraction * recipe.steps)
    return min(1.0, warm, cool)


def draw_batch(
    phase: Phase, recipe: Recipe, text: Int[np.ndarray, " tokens"], rng: np.random.Generator
) -> Int[np.ndarray, "batch length_and_next"]:
    """Return one batch: repeated random sequences first, then windows of the text.

    Each row has one token more than the input: the target at the last position.
    """
    n_repeated = round(phase.repeated_fraction * recipe.batch)
    rows = []
    for _ in range(n_repeated):
        period = int(rng.integers(phase.periods[0], phase.periods[1] + 1))
        once = rng.integers(0, recipe.config.d_vocab, size=period)
        rows.append(np.resize(once, phase.length + 1))
    starts = rng.integers(0, len(text) - phase.length, size=recipe.batch - n_repeated)
    rows += [text[start : start + phase.length + 1] for start in starts]
    return np.stack(rows).astype(np.int64)
