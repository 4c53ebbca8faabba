"""The tools of the field on the same weights and prompts: attributions, interventions, pictures.

Both sides compute in float64, so that they differ by roundings of about 2^-53 of the largest term,
some thousand in a pass through these small modules: 2^-40 of the largest value is allowed. Each
test also sees that a near miss (another foil, position, layer, head or matrix) is told apart.
"""

import json
import re
from typing import Any

import numpy as np
import pytest
import torch

from otimes.numeric.attention_views import drawn_attention
from otimes.numeric.attribution.gradients import gradient_times_input, input_gradient
from otimes.numeric.attribution.occlusion import occlusion
from otimes.numeric.attribution.shapley import shapley_values
from otimes.numeric.circuits.composition import composition_scores
from otimes.numeric.features.sae import load_sae
from otimes.numeric.interventions.hooks import hook
from otimes.numeric.interventions.passes import intervene
from otimes.numeric.load import load_model
from tests.peers.makers import KINDS, LENSES, lens

pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")

PROMPT, OTHER = [3, 1, 4, 1, 5, 9], [2, 7, 1, 8, 2, 8]
TARGET, FOIL = 26, 5
CLOSE, APART = 2.0**-40, 2.0**-12


def made(kind: str = "gpt2") -> Any:
    torch.manual_seed(2)
    module = KINDS[kind](attn_implementation="eager").double().eval()
    with torch.no_grad():  # weights of 0.02 make all logits alike
        for parameter in module.parameters():
            parameter.mul_(4.0) if parameter.ndim > 1 else parameter.add_(
                0.2 * torch.randn_like(parameter)
            )
    return module


def agree(ours: Any, theirs: Any, miss: Any, close: float = CLOSE) -> None:
    """Check that two arrays agree up to rounding, and that a third one would not."""
    ours, theirs, miss = (np.asarray(each, dtype=np.float64) for each in (ours, theirs, miss))
    assert ours.shape == theirs.shape
    scale = np.abs(ours).max()
    assert np.abs(ours - theirs).max() <= close * scale
    assert np.abs(miss - theirs).max() > APART * scale


def logit_of(module: Any, foil: int | None = None) -> Any:
    def logit(rows: torch.Tensor) -> torch.Tensor:
        logits = module(inputs_embeds=rows).logits[:, -1]
        return logits[:, TARGET] - (logits[:, foil] if foil is not None else 0.0)

    return logit


def embedded(module: Any) -> torch.Tensor:
    return module.get_input_embeddings()(torch.tensor([PROMPT])).detach()


# -- attribution -----------------------------------------------------------------------------------


def test_captum_agrees_on_gradients_and_ablation() -> None:
    attr = pytest.importorskip("captum.attr")
    module = made()
    x = embedded(module)
    times = attr.InputXGradient(logit_of(module)).attribute(x.clone().requires_grad_())
    contrast = attr.InputXGradient(logit_of(module, FOIL)).attribute(x.clone().requires_grad_())
    saliency = attr.Saliency(logit_of(module)).attribute(x.clone().requires_grad_(), abs=False)
    tokens = torch.arange(len(PROMPT))[None, :, None].expand_as(x)
    ablation = attr.FeatureAblation(logit_of(module)).attribute(x, feature_mask=tokens)
    few = (x[:, :4].contiguous(), tokens[:, :4].contiguous())
    shapley = attr.ShapleyValues(logit_of(module)).attribute(few[0], feature_mask=few[1])
    ours = gradient_times_input(module, PROMPT, TARGET).values
    contrasted = gradient_times_input(module, PROMPT, TARGET, FOIL).values
    agree(ours, times[0].sum(-1).detach(), contrasted)
    agree(contrasted, contrast[0].sum(-1).detach(), ours)
    gradient = input_gradient(module, PROMPT, TARGET).values
    agree(gradient, saliency[0], input_gradient(module, PROMPT, FOIL).values)
    agree(occlusion(module, PROMPT, TARGET).values, ablation[0, :, 0], ours)
    exact = shapley_values(module, PROMPT[:4], TARGET).values
    miss = occlusion(module, PROMPT[:4], TARGET).values
    agree(exact, shapley[0, :, 0], miss, 64 * 2.0**-24)  # captum sums gains up in float32


def test_shap_agrees() -> None:
    shap = pytest.importorskip("shap")
    module = made()
    prompt, rows = PROMPT[:5], embedded(module)[:, :5]

    def game(coalitions: np.ndarray) -> np.ndarray:
        mask = torch.from_numpy(np.asarray(coalitions, dtype=np.float64))[:, :, None]
        with torch.no_grad():
            return logit_of(module)(rows * mask).numpy()

    nobody, everybody = np.zeros((1, 5)), np.ones((1, 5))
    ours = shapley_values(module, prompt, TARGET).values
    miss = occlusion(module, prompt, TARGET).values
    exact = shap.explainers.Exact(game, shap.maskers.Independent(nobody))(everybody)
    agree(ours, exact.values[0], miss)
    kernel = shap.KernelExplainer(game, nobody).shap_values(everybody, silent=True)[0]
    # KernelSHAP adds up by a constraint, and solves a least-squares problem of condition 100.
    assert np.abs(kernel - ours).max() <= 128 * CLOSE * np.abs(ours).max()


def test_shap_of_a_linear_function_is_the_theorem() -> None:
    shap = pytest.importorskip("shap")
    rng = np.random.default_rng(0)
    w, data, x = rng.standard_normal(4), rng.standard_normal((50, 4)), rng.standard_normal(4)
    explainer = shap.LinearExplainer((w, 0.3), shap.maskers.Independent(data, max_samples=50))
    agree(w * (x - data.mean(axis=0)), explainer.shap_values(x[None])[0], w * x)


def test_inseq_agrees_on_a_contrast() -> None:
    inseq = pytest.importorskip("inseq")
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    module = made()
    ends = {"pad": 60, "eos": 59, "bos": 58}
    for name, token in ends.items():
        setattr(module.config, f"{name}_token_id", token)
    words = Tokenizer(models.WordLevel({f"t{at}": at for at in range(61)}, unk_token="t0"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    named = {f"{name}_token": f"t{token}" for name, token in ends.items()}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="t0", **named)
    tokenizer.name_or_path = module.config._name_or_path = "peer"
    attributing = inseq.load_model(module, "input_x_gradient", tokenizer=tokenizer)
    text = " ".join(f"t{token}" for token in PROMPT)
    out = attributing.attribute(
        text,
        f"{text} t{TARGET}",
        attributed_fn="contrast_logits_diff",
        contrast_targets=f"{text} t{FOIL}",
        show_progress=False,
    )
    theirs = out[0].target_attributions[: len(PROMPT), 0].sum(-1)
    ours = gradient_times_input(module, PROMPT, TARGET, FOIL).values
    miss = gradient_times_input(module, PROMPT, TARGET).values
    agree(ours, theirs, miss, 64 * 2.0**-24)  # inseq keeps attributions in float32


# -- interventions ---------------------------------------------------------------------------------


def patched(module: Any, name: str, at: int) -> np.ndarray:
    places = intervene(module, PROMPT, {hook(name, positions=at): "resample"}, source=OTHER)
    return places["logits"]


def test_nnsight_agrees() -> None:
    nnsight = pytest.importorskip("nnsight")
    module = made()
    ours, miss = patched(module, "resid_post.0", 3), patched(module, "resid_post.0", 2)
    wrapped = nnsight.NNsight(module)
    with wrapped.trace(torch.tensor([OTHER])):
        found = wrapped.transformer.h[0].output.save()
    source = found[0] if isinstance(found, tuple) else found
    with wrapped.trace(torch.tensor([PROMPT])):
        out = wrapped.transformer.h[0].output
        (out[0] if isinstance(found, tuple) else out)[:, 3] = source[:, 3]
        logits = wrapped.lm_head.output.save()
    agree(ours, logits[0].detach(), miss)


def test_pyvene_agrees() -> None:
    pyvene = pytest.importorskip("pyvene")
    module = made()
    config = pyvene.IntervenableConfig(
        [{"layer": 0, "component": "block_output", "unit": "pos", "max_number_of_units": 1}],
        pyvene.VanillaIntervention,
    )
    intervenable = pyvene.IntervenableModel(config, model=module)
    base, source = ({"input_ids": torch.tensor([each])} for each in (PROMPT, OTHER))
    with torch.no_grad():
        _, out = intervenable(base, [source], {"sources->base": ([[[3]]], [[[3]]])})
    agree(patched(module, "resid_post.0", 3), out.logits[0], patched(module, "resid_post.0", 2))


def test_pyvene_s_subspace_is_the_theorem() -> None:
    pyvene = pytest.importorskip("pyvene")
    torch.manual_seed(0)
    made = pyvene.LowRankRotatedSpaceIntervention(embed_dim=12, low_rank_dimension=3).double()
    R = made.rotate_layer.weight.detach().numpy().T
    base, source = np.random.default_rng(1).standard_normal((2, 5, 12))
    theirs = made(torch.from_numpy(base), torch.from_numpy(source)).detach()
    agree(base + (source - base) @ R.T @ R, theirs, source)


def test_pyreft_s_edit_is_the_theorem() -> None:
    pyreft = pytest.importorskip("pyreft")
    torch.manual_seed(0)
    made = pyreft.LoreftIntervention(embed_dim=12, low_rank_dimension=3, dtype=torch.float64)
    made = made.double().eval()
    R = made.rotate_layer.weight.detach().numpy().T
    W, b = made.learned_source.weight.detach().numpy(), made.learned_source.bias.detach().numpy()
    x = np.random.default_rng(1).standard_normal((5, 12))
    edited = x + (x @ W.T + b - x @ R.T) @ R
    agree(edited, made(torch.from_numpy(x)).detach(), x + (x @ W.T - x @ R.T) @ R)


# -- features --------------------------------------------------------------------------------------

SAE = load_sae("gpt2_tiny_sae")
X = load_model("gpt2_tiny").forward("for i in range(10):\n    print(i)\n")["resid_post.2"]


def loaded(module: Any, **arrays: np.ndarray) -> Any:
    state = {name: torch.from_numpy(np.array(each)) for name, each in arrays.items()}
    module.double().load_state_dict({**module.state_dict(), **state})
    return module


def test_dictionary_learning_agrees() -> None:
    from dataclasses import replace

    dictionary = pytest.importorskip("dictionary_learning.dictionary")
    trainers = pytest.importorskip("dictionary_learning.trainers.top_k")
    weights = {"encoder.weight": SAE.W_enc.T, "encoder.bias": SAE.b_enc}
    weights["decoder.weight"] = SAE.W_dec.T
    relu = replace(SAE, variant="relu", k=None, b_in=SAE.b_dec)
    theirs = loaded(dictionary.AutoEncoder(128, 512), bias=SAE.b_dec, **weights)
    x = torch.from_numpy(X)
    rebuilt, features = theirs(x, output_features=True)
    other = replace(relu, b_in=None)
    agree(relu.encode(X), features.detach(), other.encode(X))
    agree(relu(X), rebuilt.detach(), other(X))
    topk = loaded(trainers.AutoEncoderTopK(128, 512, 16), b_dec=SAE.b_dec, **weights)
    ours = replace(SAE, variant="topk", k=16, b_in=SAE.b_dec)
    agree(ours.encode(X), topk.encode(x).detach(), replace(ours, k=15).encode(X))


def test_the_loss_of_dictionary_learning_is_the_definition() -> None:
    standard = pytest.importorskip("dictionary_learning.trainers.standard")
    from dataclasses import replace

    trainer = standard.StandardTrainer(
        1, activation_dim=128, dict_size=512, layer=0, lm_name="", l1_penalty=0.1,
        device="cpu", warmup_steps=0, sparsity_warmup_steps=None,
    )  # fmt: skip
    weights = {"encoder.weight": SAE.W_enc.T, "encoder.bias": SAE.b_enc}
    loaded(trainer.ae, bias=SAE.b_dec, **weights, **{"decoder.weight": SAE.W_dec.T})
    theirs = float(trainer.loss(torch.from_numpy(X), step=10))
    relu = replace(SAE, variant="relu", k=None, b_in=SAE.b_dec)
    F = relu.encode(X)
    error, l1 = ((X - relu(X)) ** 2).sum() / len(X), F.sum() / len(X)
    agree([error + 0.1 * l1], [theirs], [error / X.shape[1] + 0.1 * l1])


def test_sparsify_agrees() -> None:
    from dataclasses import replace

    sparsify = pytest.importorskip("sparsify")
    config = sparsify.SparseCoderConfig(num_latents=512, k=16)
    coder = sparsify.SparseCoder(128, config, dtype=torch.float64)
    arrays = {"encoder.weight": SAE.W_enc.T, "encoder.bias": SAE.b_enc}
    loaded(coder, **arrays, W_dec=SAE.W_dec, b_dec=SAE.b_dec)
    found = coder(torch.from_numpy(X))
    ours = replace(SAE, variant="topk", k=16, b_in=SAE.b_dec)
    agree(ours(X), found.sae_out.detach(), replace(ours, k=15)(X))
    error = ((X - ours(X)) ** 2).sum()
    agree([error / ((X - X.mean(axis=0)) ** 2).sum()], [float(found.fvu)], [error / (X**2).sum()])


# -- weights and pictures --------------------------------------------------------------------------


def test_composition_scores_are_those_of_transformer_lens() -> None:
    torch.manual_seed(3)
    module = lens(torch.float64, **LENSES["attention only"])
    ours = composition_scores(module, "K").values[0, :4, 4:]  # heads of layer 0 and of layer 1
    theirs = module.all_composition_scores("K").detach().numpy()[0, :, 1, :]
    agree(ours, theirs, module.all_composition_scores("Q").detach().numpy()[0, :, 1, :])


def test_bertviz_draws_our_patterns() -> None:
    bertviz = pytest.importorskip("bertviz")
    drawn = drawn_attention("two_layer", "for i in range")
    page = bertviz.head_view(**drawn.bertviz(), html_action="return").data
    stored = json.loads(re.search(r'"attn": (\[\[\[\[.*?\]\]\]\])', page).group(1))
    ours = np.stack([each[0] for each in drawn.attention])
    weighted = drawn_attention("two_layer", "for i in range", weighted=True)
    agree(ours, stored, np.stack([each[0] for each in weighted.attention]))


def test_circuitsvis_draws_our_patterns() -> None:
    circuitsvis = pytest.importorskip("circuitsvis")
    drawn = drawn_attention("two_layer", "for i in range")
    page = str(circuitsvis.attention.attention_heads(**drawn.circuitsvis(1)))
    stored = json.loads(re.search(r'"attention": (\[\[\[.*?\]\]\])', page).group(1))
    agree(drawn.attention[1][0], stored, drawn.attention[0][0])
