"""The gradient at every place, against torch's autograd on the twin."""

import numpy as np
import pytest

from otimes.numeric.attribution.question import ask
from otimes.numeric.attribution.reverse import reverse_pass, run, value
from tests.numeric.attribution.by_torch import gradients
from tests.numeric.attribution.cases import FOIL, POSITION, TARGET, case, near
from tests.numeric.random_models import KINDS


@pytest.mark.parametrize("kind", [*KINDS, "two_layer", "induction", "gpt2_tiny"])
@pytest.mark.parametrize(("foil", "position"), [(None, -1), (FOIL, POSITION)])
def test_the_gradient_at_every_place(kind: str, foil: int | None, position: int) -> None:
    model, tokens = case(kind)
    expected, at = gradients(model, tokens, TARGET, position, foil)
    question = ask(model, tokens, TARGET, foil, position)
    goal = question.goal
    places = run(model, np.array(tokens))
    assert near(value(places, goal), expected)
    found = reverse_pass(model, places, goal)
    missing = {name for name in at if name.split(".")[0] in ("scores", "head_out")}
    assert at.keys() - found.keys() == missing
    for name in found.keys() - {f"mlp_up.{layer}" for layer in range(model.n_layers)}:
        if name.startswith("qk_in") and model.positions != "shortformer":
            continue  # there torch has one tensor for what queries, keys and values read
        # The products along the way are of up to 1e3 times the size of what is left at the end.
        assert near(found[name], at[name], 1e-10), name


def test_a_check_that_can_fail() -> None:
    """What torch finds for another token, or one position off, is something else altogether."""
    model, tokens = case("llama")
    found = ask(model, tokens, TARGET, None, POSITION).gradient()[1]
    for token, position in ((FOIL, POSITION), (TARGET, POSITION - 1)):
        at = gradients(model, tokens, token, position)[1]["embed"][: POSITION + 1]
        assert not near(found, at, 0.1)
