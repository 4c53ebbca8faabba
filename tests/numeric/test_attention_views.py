"""What the pictures of attention refuse; their arrays are compared in tests/peers."""

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError
from otimes.numeric.attention_views import drawn_attention
from otimes.numeric.attribution.mixing import output_value_norms


def test_weighted_patterns_are_the_norms_of_what_is_moved() -> None:
    drawn = drawn_attention("two_layer", "x = 1", weighted=True)
    moved = output_value_norms("two_layer", "x = 1").values
    assert np.array_equal(np.concatenate(drawn.attention), moved)
    assert drawn.tokens == ("x", " =", " 1")


def test_refusals() -> None:
    with pytest.raises(OtimesError, match="zero_layer has no layers"):
        drawn_attention("zero_layer", "x = 1")
    with pytest.raises(OtimesError, match="takes one prompt, got a batch"):
        drawn_attention("one_layer", ["x = 1", "y = 2"])
    with pytest.raises(OtimesError, match="layer 1 of 1 layers does not exist"):
        drawn_attention("one_layer", "x = 1").circuitsvis(1)
