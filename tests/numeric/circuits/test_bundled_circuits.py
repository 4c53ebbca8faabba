"""What the weights of the bundled models say by themselves."""

import numpy as np

from otimes.numeric.circuits.behaviour import head_behaviour
from otimes.numeric.circuits.composition import composition_scores
from otimes.numeric.circuits.copying import copying_scores
from otimes.numeric.load import load_model
from otimes.numeric.model_card import copying_score


def test_induction_is_found_by_weights_alone() -> None:
    """Every head of layer 1 that matches prefixes copies, and its keys read the first layer, the
    head that looks one token back first of all, by more than chance; its queries do not read it.
    """
    model = load_model("induction")
    scores = composition_scores(model)
    behaviour = head_behaviour(model)
    previous = int(behaviour.at(score="previous token").values[0].argmax())
    matching = behaviour.at(score="prefix matching").values[1]
    copying = copying_scores(model).values[1]
    K, Q, V = (scores.at(kind=kind, writer=f"0.{previous}") for kind in "KQV")
    for head in range(model.n_heads):
        assert matching[head] > 0.5
        assert copying[head] > 0.9
        by_keys = float(K.at(reader=f"1.{head}").values)
        assert by_keys > 1.4 * scores.baseline
        for other in (Q, V):
            assert float(other.at(reader=f"1.{head}").values) < scores.baseline
        of_all = [float(scores.at(kind="K", writer=f"0.{h}", reader=f"1.{head}").values)
                  for h in range(model.n_heads)]  # fmt: skip
        assert int(np.argmax(of_all)) == previous


def test_copying_heads_of_the_trained_models() -> None:
    """On the vocabulary they copy; on the stream alone the same heads look quite otherwise."""
    full, bare = (copying_scores(load_model("induction"), circuit) for circuit in ("full", "bare"))
    assert (full.values[1] > 0.9).all()
    assert (bare.values[1] < 0).all()
    one = copying_scores(load_model("one_layer")).values[0]
    assert (one > 0.7).any()
    assert (one > 0).all()


def test_the_cards_score_is_the_same() -> None:
    for name in ("one_layer", "two_layer", "induction"):
        model = load_model(name)
        assert np.abs(copying_score(model) - copying_scores(model).values).max() < 1e-12
