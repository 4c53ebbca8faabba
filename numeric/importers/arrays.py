"""Conversion of torch tensors to NumPy arrays."""

import sys
from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError
from otimes.numeric.tensors import BFLOAT16


def array_of(tensor: Any) -> np.ndarray:
    """Return a torch or NumPy tensor as an array that shares its memory, if that is on the CPU.

    The array of a tensor in bfloat16 has the dtype `BFLOAT16`.
    """
    if not hasattr(tensor, "detach"):
        return np.asarray(tensor)
    if str(tensor.device).partition(":")[0] == "meta":
        raise OtimesError("the module is on the device 'meta', where its weights have no numbers")
    kind = type(tensor)
    if kind.__module__ not in ("torch", "torch.nn.parameter"):
        raise OtimesError(
            f"the module holds weights as {kind.__name__}: only plain tensors of torch are read, "
            "neither spread over machines nor quantised"
        )
    if tensor.is_quantized or (tensor.is_floating_point() and tensor.itemsize < 2):
        raise OtimesError(f"the module holds quantised weights ({tensor.dtype}): not supported")
    tensor = tensor.detach().cpu()
    if str(tensor.dtype) == "torch.bfloat16":
        return np.asarray(tensor.view(sys.modules["torch"].int16).numpy().view(BFLOAT16))
    return np.asarray(tensor.numpy())
