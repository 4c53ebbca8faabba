"""What is typed at first: names of other libraries, a batch of one, activations by a wrong name."""

from __future__ import annotations

import copy
import pickle
import re

import numpy as np
import pytest

import otimes as ot

MODEL = ot.random_model(n_layers=2)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("cfg", "no attribute cfg: use model.config"),
        ("W_OV", "no attribute W_OV: use otimes.ov_circuit(model, layer, head)"),
        ("nonsense", "no attribute nonsense"),
    ],
)
def test_an_attribute_that_a_model_does_not_have(name: str, says: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(says) + "$"):
        getattr(MODEL, name)
    assert not hasattr(MODEL, name)


def test_models_are_copied_and_pickled() -> None:
    for other in (copy.copy(MODEL), copy.deepcopy(MODEL), pickle.loads(pickle.dumps(MODEL))):
        assert np.array_equal(other.W_Q, MODEL.W_Q)


def test_an_activation_by_a_wrong_name() -> None:
    recorded = MODEL.forward([1, 2, 3])
    assert "…, logits float64[3, 64]>" in repr(recorded)
    with pytest.raises(ot.OtimesError, match=r"'pattern.9' is recorded: there are pattern.0, patt"):
        recorded["pattern.9"]
    with pytest.raises(KeyError, match="with the number of a layer, as in pattern.0"):
        recorded["blocks.0.attn.hook_z"]
    assert recorded.get("pattern.9") is None
    assert "pattern.9" not in recorded


def test_a_batch_of_one_is_a_prompt() -> None:
    one, alone = ot.paths(MODEL, np.array([[1, 2, 3]])), ot.paths(MODEL, [1, 2, 3])
    assert np.array_equal(one.by_order(-1, 5), alone.by_order(-1, 5))
    with pytest.raises(ot.ShapeError, match="a batch of 2 was given"):
        ot.paths(MODEL, [[1, 2, 3], [4, 5, 6]])


def test_direct_attribution_is_plotted_by_component() -> None:
    direct = ot.direct_logit_attribution(MODEL, [1, 2, 3])
    labels = [tick.get_text() for tick in ot.plot(direct).axes[0].get_yticklabels()]
    assert labels == list(direct.by_component(heads=True).labels["component"])
    with pytest.raises(ot.OtimesError, match="cannot plot Paths: plot takes tables of scores"):
        ot.plot(ot.paths(MODEL, [1, 2, 3]))  # type: ignore[arg-type]  # as one may guess


def test_a_table_of_paths_is_plotted_by_path() -> None:
    paths = ot.paths("two_layer", [5, 6, 7, 8])
    every, few = paths.up_to(2, position=-1, token=9), paths.top(3, position=-1, token=9)
    axis = ot.plot(few).axes[0]
    assert [bar.get_width() for bar in axis.patches] == [path.value for path in few]
    assert axis.get_xlabel() == "contribution of a path (logits)"
    assert axis.get_title() == str(few).splitlines()[-1]
    assert "all 25 paths of order ≤ 2" in (axis := ot.plot(every).axes[0]).get_title()
    assert len(axis.get_yticklabels()) == 24


def test_writers_and_readers_are_named() -> None:
    with pytest.raises(ot.OtimesError, match=r"as in 'head 0.1' and 'head 1.2 K', got \(0, 1\)"):
        ot.virtual_weights(MODEL, (0, 1), (1, 0))  # type: ignore[arg-type]  # as one may guess


def test_a_theorem_of_the_catalogue_by_its_name() -> None:
    assert ot.catalogue()["kron_mul_kron"].name == "kron_mul_kron"
    assert ot.catalogue()[0] is next(iter(ot.catalogue()))
    with pytest.raises(ot.OtimesError, match="similar names are kron_mul_kron"):
        ot.catalogue()["kron_mul_kro"]
    with pytest.raises(AttributeError, match="did you mean catalogue"):
        ot.search  # type: ignore[attr-defined]  # noqa: B018  # a name of the command line
