"""Tensors stored in one array per layer, or in bfloat16: their numbers, and that none is copied."""

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError
from otimes.numeric.files import read_weights, write_weights
from otimes.numeric.model import checked_model
from otimes.numeric.tensors import BFLOAT16, StoredTensor, as_floats, stack, tensor_of
from tests.numeric.random_models import TINY, random_weights

PARTS = [np.arange(6.0).reshape(2, 3) + 10 * layer for layer in range(4)]
INDICES = [
    2, -1, np.int64(1), slice(1, 3), [0, 2], (1, 0), (slice(None), 1), (2, slice(None), 2), ...,
    np.array([True, False, True, True]),
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_an_index_gives_what_it_gives_of_the_whole_array(index: object) -> None:
    found = stack(PARTS)[index]
    assert np.array_equal(found, np.stack(PARTS)[index])  # type: ignore[call-overload]


def test_a_layer_is_not_copied() -> None:
    assert np.shares_memory(stack(PARTS)[3], PARTS[3])
    assert np.shares_memory(stack(PARTS)[3, 1], PARTS[3])


def test_numpy_computes_with_it() -> None:
    tensor, whole = stack(PARTS), np.stack(PARTS)
    assert np.array_equal(2 * tensor - 1, 2 * whole - 1)
    assert np.array_equal(np.einsum("lij,j->li", tensor, whole[0, 0]), whole @ whole[0, 0])
    assert np.array_equal(tensor.T, whole.T)
    assert (len(tensor), tensor.ndim, tensor.size, tensor.nbytes) == (4, 3, 24, 192)
    assert [part.tolist() for part in tensor] == whole.tolist()


def bits(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype="<u2").view(BFLOAT16)


def test_bfloat16_has_the_sign_exponent_and_fraction_of_the_format() -> None:
    """1 sign bit, 8 bits of exponent with bias 127, 7 bits of fraction: worked out by hand."""
    numbers = bits(0x0000, 0x3F80, 0xC000, 0x4049, 0x0080, 0x0001, 0x7F80, 0x7FC0)
    expected = [0, 1, -2, (1 + 73 / 128) * 2, 2.0**-126, 2.0**-133, np.inf, np.nan]
    assert np.array_equal(as_floats(numbers), np.array(expected, np.float32), equal_nan=True)


def test_numpy_does_not_compute_with_the_bits() -> None:
    """The two bytes of a number are never taken for another number."""
    for compute in (lambda x: x + 1, lambda x: x @ x, lambda x: x.astype(np.float64) + 1):
        with pytest.raises((TypeError, ValueError)):
            compute(bits(0x3F80, 0xC000))


def test_bfloat16_is_converted_when_it_is_read() -> None:
    stored = bits(*range(0x3F80, 0x3F80 + 6)).reshape(3, 2)
    tensor = tensor_of(stored)
    expected = 1 + np.arange(6.0).reshape(3, 2) / 128
    assert (tensor.dtype, tensor.stored_dtype, tensor.nbytes) == (np.float32, "bfloat16", 12)
    assert np.array_equal(tensor[[2, 0]], expected[[2, 0]])
    assert np.array_equal(tensor.T[1], expected.T[1])
    assert np.array_equal(stack([stored, stored])[1], expected)
    assert np.shares_memory(tensor.parts[0], stored)


def test_layers_of_different_dtypes_have_their_common_one() -> None:
    tensor = stack([np.ones(2, np.float32), np.ones(2, np.float64), bits(0x3F80, 0x4000)])
    assert tensor.dtype == np.float64
    assert np.array_equal(tensor, [[1, 1], [1, 1], [1, 2]])


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_what_is_written_is_read_again(dtype: str, tmp_path) -> None:
    """The library that defines the format reads the same numbers from the file."""
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file

    numbers = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0))
    given = numbers.to(getattr(torch, dtype))
    as_bits = given.view(torch.int16).numpy().view(BFLOAT16) if dtype == "bfloat16" else None
    array = given.numpy() if as_bits is None else as_bits
    tensors = {
        "whole": tensor_of(array),
        "of layers": stack(list(array)),
        "transposed": tensor_of(array.T),
        "none": np.zeros((0, 4), np.float32),
    }
    path = tmp_path / "weights.safetensors"
    write_weights(path, tensors)
    theirs, ours = load_file(path), read_weights(path)
    assert theirs["whole"].dtype == given.dtype
    for name in ("whole", "of layers"):
        assert torch.equal(theirs[name], given)
        assert np.array_equal(ours[name], given.double().numpy())
    assert torch.equal(theirs["transposed"], given.permute(2, 1, 0))
    assert theirs["none"].shape == (0, 4)


def test_a_number_that_is_not_finite_is_found_in_its_layer() -> None:
    weights: dict = random_weights(TINY)
    layers = [np.array(each) for each in weights["W_Q"]]
    layers[1][2, 4, 0] = np.inf
    with pytest.raises(OtimesError, match=r"W_Q is not finite: its entry \(1, 2, 4, 0\) is inf"):
        checked_model("mine", TINY, {**weights, "W_Q": stack(layers)})


def test_the_arrays_of_a_user_stay_writeable() -> None:
    weights: dict = random_weights(TINY)
    layers = [np.array(each) for each in weights["W_Q"]]
    model = checked_model("mine", TINY, {**weights, "W_Q": stack(layers)})
    stored = model.weights["W_Q"]
    assert isinstance(stored, StoredTensor)
    with pytest.raises(ValueError, match="read-only"):
        stored[0][0, 0, 0] = 1
    layers[0][0, 0, 0] = 1
    assert stored[0][0, 0, 0] == 1
