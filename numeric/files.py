"""Reading and writing the files of a model folder: atomic writes, and never a pickle.

Weights are memory-mapped: only the parts that are used are read.
"""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from otimes.algebra.errors import OtimesError
from otimes.numeric.config import listed
from otimes.numeric.tensors import BFLOAT16, Tensor, dtype_name, stored_arrays, tensor_of

DTYPES: dict[str, Any] = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": BFLOAT16}
NAMES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16"}

_REFUSED = (
    "{} is a pickle, which can run arbitrary code when it is loaded, so it is not loaded:"
    " save the weights with safetensors"
)
_PICKLE_SUFFIXES = {".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt"}


def check_writable(path: Path, folder: bool = False) -> None:
    """Raise OtimesError if a file, or files in a folder, cannot be written; the folder is made.

    Called before long computations, whose result would otherwise be lost.
    """
    try:
        if folder:
            path.mkdir(parents=True, exist_ok=True)
        elif path.is_dir():
            raise OtimesError(f"cannot write {path}: it is a folder")
        elif path.exists() and not os.access(path, os.W_OK):
            raise OtimesError(f"cannot write {path}: permission denied")
        with tempfile.TemporaryFile(dir=path if folder else path.parent):
            pass
    except OSError as error:
        raise OtimesError(f"cannot write {path}: {error.strerror or error}") from None


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically: to a temporary name, which is then renamed."""
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.write_bytes(content)
    unfinished.replace(path)


def write_weights(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write a safetensors file atomically, one stored array after the other, in their dtypes."""
    header: dict[str, Any] = {}
    end = 0
    # The widest numbers come first, as the format has them, so that all are aligned.
    order = sorted(tensors, key=lambda name: (-stored_arrays(tensors[name])[0].itemsize, name))
    for name in order:
        tensor = tensors[name]
        begin, end = end, end + sum(part.nbytes for part in stored_arrays(tensor))
        header[name] = {
            "dtype": NAMES[dtype_name(tensor)],
            "shape": list(tensor.shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    unfinished = path.with_name(path.name + ".unfinished")
    with unfinished.open("wb") as opened:
        opened.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            for part in stored_arrays(tensors[name]):
                opened.write(np.ascontiguousarray(part).data.cast("B") if part.size else b"")
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


def read_weights(path: Path, leave_out: bool = False) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file by name; see `read_arrays`."""
    return {name: tensor_of(array) for name, array in read_arrays(path, leave_out).items()}


def read_arrays(path: Path, leave_out: bool = False) -> dict[str, np.ndarray]:
    """Return the arrays of a safetensors file by name, as read-only views of the mapped file.

    Those in bfloat16, which NumPy lacks, have the dtype `BFLOAT16`. With `leave_out`, tensors of
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
        tensors[name] = content[start + begin : start + end].view(DTYPES[dtype]).reshape(shape)
    return tensors


def refuse_pickle(path: Path) -> None:
    """Raise OtimesError if a file is a pickle or a zip archive as torch.save writes."""
    try:
        with path.open("rb") as opened:
            first = opened.read(9)
    except OSError as error:
        raise OtimesError(f"cannot read {path}: {error.strerror}") from None
    plain = first[:1] == b"\x80" and 2 <= int.from_bytes(first[1:2], "little") <= 5
    # The length of a safetensors header may begin with the same two bytes; the header follows it.
    header = first[8:] == b"{" and int.from_bytes(first[:8], "little") < path.stat().st_size
    if (plain and not header) or first[:4] == b"PK\x03\x04":
        raise OtimesError(_REFUSED.format(path))
