"""Integrated gradients: captum's on a module of Hugging Face, and ours on the same weights."""

import numpy as np
import pytest
import torch

from otimes.numeric.attribution.gradients import integrated_gradients, line_integral
from otimes.numeric.load import load_model
from tests.peers.makers import KINDS

pytest.importorskip("transformers")
attr = pytest.importorskip("captum.attr")
pytestmark = pytest.mark.filterwarnings("ignore")

PROMPT = [3, 1, 4, 1, 5, 9]
TARGET = 26
STEPS = 24
RULES = {"gauss": "gausslegendre", "midpoint": "riemann_middle", "right": "riemann_right"}


def theirs(module: torch.nn.Module, rule: str) -> np.ndarray:
    embed = module.get_input_embeddings()(torch.tensor([PROMPT])).detach()

    def logit(rows: torch.Tensor) -> torch.Tensor:
        return module(inputs_embeds=rows).logits[:, -1, TARGET]

    found = attr.IntegratedGradients(logit).attribute(
        embed, baselines=0 * embed + 0.1, n_steps=STEPS, method=rule
    )
    return found[0].sum(-1).detach().numpy()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", KINDS)
def test_captum_agrees(kind: str, rule: str) -> None:
    torch.manual_seed(2)
    module = KINDS[kind](attn_implementation="eager").double().eval()
    model = load_model(module)
    baseline = np.full(model.d_model, 0.1)
    ours = integrated_gradients(
        model, PROMPT, TARGET, baseline=baseline, n_steps=STEPS, rule=rule
    ).values
    # captum holds nodes and weights in float32, and NeoX and Llama compute norms or angles in it.
    scale = np.abs(ours).sum()
    difference = np.abs(ours - theirs(module, RULES[rule])).max()
    assert difference <= 64 * 2.0**-24 * scale
    other = theirs(module, RULES["right" if rule == "gauss" else "gauss"])
    assert np.abs(ours - other).max() > 64 * 2.0**-24 * scale  # another rule is told apart


def test_the_integral_of_a_cubic_is_captum_s() -> None:
    end = np.array([[2.0, -1.0]])
    ours = line_integral(lambda x: 3 * x**2, np.zeros((1, 2)), end, 2)
    found = attr.IntegratedGradients(lambda x: (x**3).sum(1)).attribute(
        torch.tensor(end), n_steps=2, method="gausslegendre"
    )
    assert np.abs(found.numpy() - ours).max() < 2.0**-20  # their weights are float32
