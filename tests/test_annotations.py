"""The shapes written in the annotations of `numeric` are the shapes that arrive.

In a process of its own: the tests of wrong input must meet the package's own sentences, and not
those of a type checker that was quicker.
"""

from __future__ import annotations

import subprocess
import sys

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
"""A whole number will do where a float is asked for."""

CHECKED = """
import warnings
# beartype draws which item of a container it looks at, also while a strategy draws
warnings.filterwarnings("ignore", "Do not use the `random` module inside strategies")
import tests.test_annotations
from jaxtyping import TypeCheckError, install_import_hook
with install_import_hook("otimes.numeric", "tests.test_annotations.checked"):
    import numpy as np
    from otimes.numeric.attribution import direct, gradients, mixing, occlusion, relevance
    from otimes.numeric.circuits import behaviour, composition, copying, embedding_space
    from otimes.numeric.circuits import heads, lens, trigrams, virtual
    from otimes.numeric.forward import forward_pass
    from otimes.numeric.load import bundled_models, load_model
    from otimes.numeric.paths.ensemble import paths
    from otimes.numeric.paths.loss import loss_table
    from otimes.proofs.verification import verify
from tests.numeric.random_models import KINDS, TINY, TINY_TOKENS, random_model

tiny = random_model(TINY)
import os
for config in [*KINDS.values()][:: 1 if os.environ.get("OTIMES_LONG") == "1" else 3]:
    on_prompt = paths(random_model(config), TINY_TOKENS)
    on_prompt.by_order(), on_prompt.replay(), on_prompt.closure, on_prompt._repr_html_()
    on_prompt.virtual_heads(4, 3), list(on_prompt.triples(4, (3, 2)))
    if config.n_layers:
        on_prompt.path([(0, 1)], 4, 3), on_prompt.scores(1, 2, 3).by_composition()
    loss_table(on_prompt.model, [TINY_TOKENS], virtual_heads=True)
    lens.logit_lens(on_prompt.model, TINY_TOKENS)
    for position in (-2, None):
        found = direct.direct_logit_attribution(on_prompt.model, TINY_TOKENS, 3, 5, position)
        found.by_component(), found.by_head(), found.by_source(), found.by_neuron(), found.closure
    asked = (on_prompt.model, TINY_TOKENS, 3, None, 4)
    gradients.input_gradient(*asked), gradients.smooth_grad(*asked, n_samples=2)
    gradients.integrated_gradients(*asked, baseline=2, n_steps=2)
    relevance.relevance(*asked, epsilon=0.1), occlusion.occlusion(*asked)
    mixing.output_value_norms(*asked[:2]), mixing.context_mixing(*asked[:2])
    if config.norm == "none" and config.n_layers:
        model = on_prompt.model
        copying.copying_scores(model), composition.composition_scores(model)
        heads.full_ov(model, 0, 1).svd(), heads.full_qk(model, 0, 1).top(3)
        trigrams.skip_trigrams(model, 0, 0, 3).forced_bugs(TINY_TOKENS)
        virtual.virtual_weights(model, "embed", "unembed").eigenvalues()
        lens.spectral_bands(model, 2).energy(model.W_E)
        embedding_space.stitching_map(model, model), embedding_space.inverse_defects(model)
        embedding_space.align_layers(model, model, ["W_OV", "W_Q"])
        behaviour.duplicate_token_score(model, np.array([TINY_TOKENS]))
try:
    forward_pass(tiny, np.ones(3, dtype=int), embed=np.ones((2, tiny.d_model)))
except TypeCheckError:
    print("an embedding of another length than the prompt is noticed")
report = verify(["scores_through_W_QK"], bundled_models())
print(report.passed)
"""


def test_annotations_hold_at_run_time() -> None:
    run = subprocess.run(
        [sys.executable, "-c", CHECKED], capture_output=True, text=True, check=False
    )
    assert run.stderr == ""
    assert run.stdout.splitlines() == [
        "an embedding of another length than the prompt is noticed",
        "True",
    ]
