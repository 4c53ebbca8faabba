"""Reading and writing the files of a model folder: atomic writes, and never a pickle.

Weights are memory-mapped: only the parts that are used are read.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from otimes.algebra.errors import OtimesError
from otimes.numeric.config import listed

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}

_REFUSED = (
    "{} is a pickle, which can run arbitrary code when it is loaded, so it is not loaded:"
    " save the weights with safetensors"
)
_PICKLE_SUFFIXES = {".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt"}


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically: to a temporary name, which is then renamed."""
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.write_bytes(content)
    unfinished.replace(path)


def json_bytes(content: dict[str, Any]) -> bytes:
    """Return JSON data as the bytes of a file."""
    return (json.dumps(content, indent=2) + "\n").encode()


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file of a model folder."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise OtimesError(f"{path.parent} is not a model folder: it has no {path.name}") from None
    except OSError as error:
        raise OtimesError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise OtimesError(f"{path} is not a JSON file: {error}") from None
    if not isinstance(content, dict):
        raise OtimesError(f"{path} must hold a JSON object, it holds a {type(content).__name__}")
    return content


def read_weights(path: Path, leave_out: bool = False) -> dict[str, np.ndarray]:
    """Return the tensors of a safetensors file by name, as read-only views of the mapped file.

    Tensors in bfloat16, which NumPy lacks, are copied to float32. With `leave_out`, tensors of
    non-float dtypes (masks, step counts) are left out. Raises: OtimesError if the file does not
    exist, is a pickle (which can run arbitrary code), is damaged, or has tensors of other dtypes.
    """
    if not path.exists():
        others = sorted(p.name for p in path.parent.iterdir() if p.suffix in _PICKLE_SUFFIXES)
        hint = f"; {_REFUSED.format(others[0])}" if others else ""
        raise OtimesError(f"{path.parent} is not a model folder: it has no {path.name}{hint}")
    refuse_pickle(path)
    try:
        with safe_open(path, framework="numpy") as opened:
            stored = {name: opened.get_slice(name) for name in opened.keys()}  # noqa: SIM118 - not a dict
            kinds = {name: (each.get_dtype(), each.get_shape()) for name, each in stored.items()}
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise OtimesError(
            f"the weights file {path} is damaged or not a safetensors file: {error}"
        ) from None
    for name, (dtype, _) in kinds.items():
        if dtype not in DTYPES and not leave_out:
            raise OtimesError(
                f"{path}: {name} has the dtype {dtype}; supported are {listed(DTYPES)}"
            )
    # safe_open has checked the header and that every tensor lies within the file.
    content = np.memmap(path, dtype=np.uint8, mode="r")
    start = 8 + int.from_bytes(content[:8].tobytes(), "little")
    header = json.loads(content[8:start].tobytes())
    tensors = {}
    for name, (dtype, shape) in kinds.items():
        if dtype not in DTYPES:
            continue
        begin, end = header[name]["data_offsets"]
        array = content[start + begin : start + end].view(DTYPES[dtype]).reshape(shape)
        tensors[name] = _widened(array) if dtype == "BF16" else array
    return tensors


def _widened(stored: np.ndarray) -> np.ndarray:
    """Return bfloat16 numbers, given as 16-bit patterns, as float32: they are its upper half."""
    return (stored.astype(np.uint32) << 16).view(np.float32)


def refuse_pickle(path: Path) -> None:
    """Raise OtimesError if a file is a pickle or a zip archive as torch.save writes."""
    try:
        with path.open("rb") as opened:
            first = opened.read(4)
    except OSError as error:
        raise OtimesError(f"cannot read {path}: {error.strerror}") from None
    plain = first[:1] == b"\x80" and 2 <= int.from_bytes(first[1:2], "little") <= 5
    if plain or first == b"PK\x03\x04":
        raise OtimesError(_REFUSED.format(path))
