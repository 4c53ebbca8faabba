"""Training of sparse autoencoders on the activations of a model: `otimes train sae`.

The text is that of `numeric.training`. Activations are computed by the reference forward pass, in
float64, and held in float32 as a buffer that is drawn from at random. All random numbers come from
one seeded NumPy generator and the number of steps is fixed. Activations are divided by one number,
so that their mean squared norm is d_in and a coefficient means the same for every model; it is
multiplied back into the weights at the end.
"""

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import relu

from otimes.algebra.errors import OtimesError
from otimes.numeric.block import briefly
from otimes.numeric.config import listed
from otimes.numeric.corpus import Source, encode_source, read_source
from otimes.numeric.features.measures import feature_density, l0, variance_explained
from otimes.numeric.features.sae import SAE, VARIANTS, Variant
from otimes.numeric.files import check_writable
from otimes.numeric.given import is_whole, real_array
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.model import Model
from otimes.numeric.progress import tracked
from otimes.numeric.prompt import together
from otimes.numeric.tokenizer import load_tokenizer
from otimes.numeric.training import even_windows

BANDWIDTH = 0.03
"""Width of the window in which a threshold of a JumpReLU SAE has a gradient."""


@dataclass(frozen=True, slots=True)
class SAERecipe:
    """The hyperparameters of a training run; with the text and the seed they determine it.

    `coefficient` multiplies the sparsity penalty (relu, gated, jumprelu), `k` is the number of
    active features (topk). `auxiliary` is that of the loss that revives features of a TopK SAE
    which were not active in the last `dead_after` steps (Gao et al. 2024).
    """

    variant: Variant = "topk"
    d_sae: int = 512
    k: int = 16
    coefficient: float = 0.05
    steps: int = 2000
    batch: int = 1024
    learning_rate: float = 1e-3
    warm_up_steps: int = 100
    decay_fraction: float = 0.2
    windows: int = 1500
    auxiliary: float = 1 / 32
    dead_after: int = 100

    def __post_init__(self) -> None:
        """Check the settings. Raises: OtimesError for one that is out of range."""
        if self.variant not in VARIANTS:
            raise OtimesError(f"variant must be one of {', '.join(VARIANTS)}, got {self.variant!r}")
        for name in ("d_sae", "k", "steps", "batch", "warm_up_steps", "windows", "dead_after"):
            if not is_whole(getattr(self, name)) or getattr(self, name) < 1:
                raise OtimesError(
                    f"{name} must be an integer of at least 1, got {getattr(self, name)!r}"
                )
        if self.variant == "topk" and self.k > self.d_sae:
            raise OtimesError(f"k must be from 1 to d_sae = {self.d_sae}, got {self.k}")
        for name in ("coefficient", "learning_rate", "decay_fraction", "auxiliary"):
            value = real_array(getattr(self, name), name)
            if value.ndim or value < 0 or (name == "decay_fraction" and not 0 < value <= 1):
                raise OtimesError(f"{name} is out of range, got {getattr(self, name)!r}")


RECIPES: dict[str, SAERecipe] = {
    "relu": SAERecipe("relu", coefficient=3.0),
    "gated": SAERecipe("gated", coefficient=5.0),
    "topk": SAERecipe("topk"),
    "jumprelu": SAERecipe("jumprelu", coefficient=0.6),
}
"""A recipe for each variant, tried on `resid_post.2` of gpt2_tiny."""


def train_sae(
    model: ModelSource,
    hook_point: str,
    out_folder: str | Path | None = None,
    output: str = "",
    recipe: SAERecipe | str = "topk",
    seed: int = 0,
    source: Source | None = None,
) -> SAE:
    """Return an SAE of one activation of a model, trained on the bundled text.

    `hook_point` is the activation that is read, such as "resid_post.2"; `output` another one that
    is written, which makes a transcoder ("ln2.1" to "mlp_out.1"). With `out_folder` the SAE is
    saved there. The text is that of the bundled tokenizer, so the model must have its vocabulary.
    `recipe` is a variant ("relu", "gated", "topk", "jumprelu") or an `SAERecipe`.

    Raises: OtimesError, before the training, for a hook point that the model does not have, for an
    unknown variant, another vocabulary, and a folder that cannot be written.
    """
    loaded = load_model(model)
    chosen = _recipe(recipe)
    if out_folder is not None:
        check_writable(Path(out_folder), folder=True)
    tokenizer = load_tokenizer()
    if loaded.d_vocab != tokenizer.d_vocab:
        raise OtimesError(
            f"{loaded.name} has d_vocab={loaded.d_vocab}, and the text is in a vocabulary of"
            f" {tokenizer.d_vocab} tokens"
        )
    names = [hook_point, output or hook_point]
    _check_hook_points(loaded, names)
    train_text, held_out = encode_source(source or read_source(), tokenizer)
    rows = _buffer(loaded, names, even_windows(train_text, loaded.config.n_ctx, chosen.windows))
    scales = [float(np.sqrt((each**2).mean())) or 1.0 for each in rows]
    scaled = [each / scale for each, scale in zip(rows, scales, strict=True)]
    trainer = Trainer(scaled[0], scaled[1], chosen, np.random.default_rng(seed))
    for step in tracked(range(chosen.steps), f"training a {chosen.variant} SAE of {hook_point}"):
        trainer.step(step)
    parts: dict[str, Any] = {**_unscaled(trainer.arrays(), *scales)}
    parts |= {"variant": chosen.variant, "hook_point": hook_point, "output": output}
    parts |= {"model": loaded.name, "k": chosen.k if chosen.variant == "topk" else None}
    held = _buffer(loaded, names, even_windows(held_out, loaded.config.n_ctx, 40))
    card = {"recipe": asdict(chosen), "seed": seed}
    sae = SAE(**parts, card=card | {"held_out": _figures(SAE(**parts), *held)})
    if out_folder is not None:
        sae.save(out_folder)
    return sae


def _recipe(recipe: SAERecipe | str) -> SAERecipe:
    if isinstance(recipe, SAERecipe):
        return recipe
    if recipe not in RECIPES:
        raise OtimesError(f"unknown variant {recipe!r}; the variants are {', '.join(RECIPES)}")
    return RECIPES[recipe]


def _check_hook_points(model: Model, names: list[str]) -> None:
    """Raise OtimesError for a hook point that the model does not have, or that has a head axis."""
    found = model.forward(np.array([0, 0]))
    for name in names:
        if name not in found:
            raise OtimesError(
                f"{model.name} has no activation {name!r}; it has {listed(briefly(model.config))}"
            )
        if found[name].ndim != 2:
            raise OtimesError(
                f"{name} has the shape {found[name].shape} for two positions: an SAE reads an"
                " activation [pos, d], such as resid_post or mlp_out"
            )


def _buffer(
    model: Model, names: list[str], windows: Int[np.ndarray, "window pos"]
) -> list[Float[np.ndarray, "row d"]]:
    """Return activations of all positions of all windows, as rows in float32."""
    parts: list[list[np.ndarray]] = [[] for _ in names]
    for some in tracked(together(*windows.shape), "computing activations"):
        found = model.forward(windows[some], list(set(names)))
        for part, name in zip(parts, names, strict=True):
            part.append(found[name].reshape(-1, found[name].shape[-1]).astype(np.float32))
    return [np.concatenate(part) for part in parts]


def _figures(sae: SAE, x: np.ndarray, target: np.ndarray) -> dict[str, float]:
    """Return what is measured on held-out activations."""
    h = sae.encode(x)
    density = feature_density(h)
    explained = variance_explained(target, sae.decode(h))
    return {
        "variance_explained": round(explained, 4),
        "l0": round(l0(h), 2),
        "features_never_active": int((density == 0).sum()),
        "rows": len(x),
    }


def _unscaled(
    arrays: dict[str, np.ndarray], scale_in: float, scale_out: float
) -> dict[str, np.ndarray]:
    """Return the weights for activations that are not divided by their scales.

    Features keep the size that they have on scaled activations.
    """
    read = ("W_enc", "W_gate")
    new = {name: array / scale_in if name in read else array for name, array in arrays.items()}
    new |= {name: array * scale_out for name, array in arrays.items() if name in ("W_dec", "b_dec")}
    if "b_in" in new:
        new["b_in"] = arrays["b_in"] * scale_in
    return new


class Trainer:
    """The parameters, the optimizer and the buffer of one run.

    Decoder rows have norm 1: the gradient along a row is removed before each step, and its norm is
    divided out after it (Bricken et al. 2023). Else an L1 penalty would only shrink the features.
    """

    def __init__(
        self,
        x: Float[np.ndarray, "row d_in"],
        target: Float[np.ndarray, "row d_out"],
        recipe: SAERecipe,
        rng: np.random.Generator,
    ) -> None:
        self.x, self.target = torch.from_numpy(x), torch.from_numpy(target)
        self.recipe, self.rng = recipe, rng
        W_dec = rng.standard_normal((recipe.d_sae, target.shape[1]))
        W_dec /= np.linalg.norm(W_dec, axis=1, keepdims=True)
        W_enc = W_dec.T if x.shape[1] == target.shape[1] else _columns(rng, x.shape[1], recipe)
        start: dict[str, np.ndarray] = {
            "W_enc": W_enc,
            "b_enc": np.zeros(recipe.d_sae),
            "W_dec": W_dec,
            "b_dec": target.mean(axis=0),
        }
        if recipe.variant == "gated":
            start |= {"scale": np.zeros(recipe.d_sae), "b_gate": np.zeros(recipe.d_sae)}
        if recipe.variant == "jumprelu":
            start["log_threshold"] = np.full(recipe.d_sae, math.log(0.05))
        self.p = {name: _parameter(each) for name, each in start.items()}
        self.b_in = torch.from_numpy(x.mean(axis=0))
        self.idle = torch.zeros(recipe.d_sae)
        self.optimizer = torch.optim.Adam(self.p.values(), lr=recipe.learning_rate)

    def step(self, number: int) -> float:
        """Make one step of gradient descent and return its loss."""
        recipe = self.recipe
        warm = (number + 1) / recipe.warm_up_steps
        cool = (recipe.steps - number) / (recipe.decay_fraction * recipe.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = recipe.learning_rate * min(1.0, warm, cool)
        rows = torch.from_numpy(self.rng.integers(0, len(self.x), size=recipe.batch))
        loss = self._loss(self.x[rows], self.target[rows])
        self.optimizer.zero_grad()
        loss.backward()
        self._along_the_sphere()
        self.optimizer.step()
        with torch.no_grad():
            self.p["W_dec"] /= self.p["W_dec"].norm(dim=1, keepdim=True)
        return float(loss.detach())

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of the SAE."""
        p = {name: each.detach().numpy().astype(np.float64) for name, each in self.p.items()}
        made = {name: p[name] for name in ("b_enc", "W_dec", "b_dec", "W_enc")}
        made["b_in"] = self.b_in.numpy().astype(np.float64)
        if "scale" in p:
            made |= {"W_gate": p["W_enc"], "b_gate": p["b_gate"]}
            made["W_enc"] = p["W_enc"] * np.exp(p["scale"])
        if "log_threshold" in p:
            made["threshold"] = np.exp(p["log_threshold"])
        return made

    def _loss(self, x: Tensor, target: Tensor) -> Tensor:
        p, coefficient = self.p, self.recipe.coefficient
        inner = (x - self.b_in) @ p["W_enc"]
        if self.recipe.variant == "gated":
            return self._gated_loss(inner, target)
        pre = inner + p["b_enc"]
        if self.recipe.variant == "relu":
            h = relu(pre)
            return self._error(h, target) + coefficient * h.sum(1).mean()
        if self.recipe.variant == "jumprelu":
            threshold = p["log_threshold"].exp()
            h = Jump.apply(pre, threshold)
            count = Step.apply(pre, threshold).sum(1).mean()
            return self._error(h, target) + coefficient * count
        values, places = relu(pre).topk(self.recipe.k, dim=1)
        h = torch.zeros_like(pre).scatter(1, places, values)
        return self._error(h, target) + self._revived(pre, h, target)

    def _gated_loss(self, inner: Tensor, target: Tensor) -> Tensor:
        p = self.p
        gate = inner + p["b_gate"]
        h = (gate > 0) * relu(inner * p["scale"].exp() + p["b_enc"])
        frozen = relu(gate) @ p["W_dec"].detach() + p["b_dec"].detach()
        auxiliary = (target - frozen).pow(2).sum(1).mean()
        penalty = relu(gate).sum(1).mean()
        return self._error(h, target) + self.recipe.coefficient * penalty + auxiliary

    def _error(self, h: Tensor, target: Tensor) -> Tensor:
        return (target - h @ self.p["W_dec"] - self.p["b_dec"]).pow(2).sum(1).mean()

    def _revived(self, pre: Tensor, h: Tensor, target: Tensor) -> Tensor:
        """Return the loss by which features that were long idle learn from what is left over."""
        with torch.no_grad():
            self.idle = torch.where((h > 0).any(0), 0.0, self.idle + 1)
            dead = self.idle > self.recipe.dead_after
            left = target - h @ self.p["W_dec"] - self.p["b_dec"]
        many = min(int(dead.sum()), 2 * self.recipe.k)
        if not many:
            return torch.zeros(())
        values, places = torch.where(dead, relu(pre), 0.0).topk(many, dim=1)
        again = torch.zeros_like(pre).scatter(1, places, values) @ self.p["W_dec"]
        return self.recipe.auxiliary * (left - again).pow(2).sum(1).mean()

    def _along_the_sphere(self) -> None:
        """Remove the part of the decoder's gradient along its rows."""
        rows = self.p["W_dec"]
        if rows.grad is not None:
            with torch.no_grad():
                rows.grad -= (rows.grad * rows).sum(1, keepdim=True) * rows


class Jump(torch.autograd.Function):
    """JumpReLU, with the gradient of its threshold by a rectangular window."""

    @staticmethod
    def forward(ctx: Any, pre: Tensor, threshold: Tensor) -> Tensor:
        """Return the entries above their threshold, else 0."""
        ctx.save_for_backward(pre, threshold)
        return pre * (pre > threshold)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradients of the entries and of the thresholds."""
        pre, threshold = ctx.saved_tensors
        inside = ((pre - threshold).abs() < BANDWIDTH / 2) / BANDWIDTH
        return grads[0] * (pre > threshold), (-threshold * inside * grads[0]).sum(0)


class Step(torch.autograd.Function):
    """Whether an entry is above its threshold, with the gradient by a rectangular window."""

    @staticmethod
    def forward(ctx: Any, pre: Tensor, threshold: Tensor) -> Tensor:
        """Return 1 for the entries above their threshold, else 0."""
        ctx.save_for_backward(pre, threshold)
        return (pre > threshold).to(pre.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor]:
        """Return the gradient of the thresholds; entries have none."""
        pre, threshold = ctx.saved_tensors
        inside = ((pre - threshold).abs() < BANDWIDTH / 2) / BANDWIDTH
        return None, (-inside * grads[0]).sum(0)


def _parameter(array: np.ndarray) -> Tensor:
    return torch.tensor(array, dtype=torch.float32, requires_grad=True)


def _columns(rng: np.random.Generator, d_in: int, recipe: SAERecipe) -> np.ndarray:
    columns = rng.standard_normal((d_in, recipe.d_sae))
    normed: np.ndarray = columns / np.linalg.norm(columns, axis=0)
    return normed
