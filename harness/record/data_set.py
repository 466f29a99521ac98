"""The data set of one call: arrays, and their files where the harness finds them.

onnxruntime's inputs of any kind become arrays that need no pickle.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_ELEMENT_TYPES = {"float": "float32", "double": "float64", "string": "str", "bool": "bool"}


class UnsavedError(Exception):
    """A call that cannot be saved, and why."""


def array(name: str, value: Any, kind: str) -> Any:
    """Return the value of an input as an array that needs no pickle."""
    import numpy as np

    if callable(value):
        value = value()
    if type(value).__name__ == "OrtValue":
        value = value.numpy()
    if kind and not kind.startswith(("tensor(", "optional(tensor(")):
        raise UnsavedError(f"the input {name!r} is a {kind}, and only tensors are recorded")
    if isinstance(value, (list, tuple)):
        element = kind.rpartition("tensor(")[2].rstrip(")")
        value = np.asarray(value, dtype=_ELEMENT_TYPES.get(element, element))
    if not isinstance(value, (np.ndarray, np.generic)):
        raise UnsavedError(
            f"the input {name!r} is fed a {type(value).__name__}, and only arrays are recorded"
        )
    array = np.asarray(value)
    if array.dtype.kind in "OS":
        texts = [one.decode() if isinstance(one, bytes) else str(one) for one in array.ravel().tolist()]
        array = np.array(texts, dtype="U").reshape(array.shape)
    return array


def call_digest(arrays: Mapping[str, Any]) -> str:
    """Return a digest that identifies calls with equal inputs."""
    from hashlib import sha256

    digest = sha256()
    for name, array in sorted(arrays.items()):
        digest.update(repr((name, array.dtype.str, array.shape)).encode("utf-8", "backslashreplace"))
        digest.update(array.tobytes())
    return digest.hexdigest()[:24]


def write_data_set(home: str, arrays: Mapping[str, Any]) -> str:
    """Write arrays into a new ``test_data_set_N`` of a folder; return its path.

    No existing one is overwritten.
    """
    import zipfile

    import numpy as np

    os.makedirs(home, exist_ok=True)
    number = 0
    while True:
        folder = os.path.join(home, f"test_data_set_{number}")
        try:
            os.mkdir(folder)
            break
        except FileExistsError:
            number += 1
    try:
        part = os.path.join(folder, f"part-{os.getpid()}")
        # Not np.savez, for which an input named "file" is its own argument.
        with zipfile.ZipFile(part, "w") as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
        os.replace(part, os.path.join(folder, "inputs.npz"))
    except BaseException:
        remove_data_set(folder)
        raise
    return folder


def write_recorded_model(home: str, content: bytes) -> None:
    """Write a model that the application has as bytes, unless it exists."""
    os.makedirs(home, exist_ok=True)
    path = os.path.join(home, "model.ort" if content[4:8] == b"ORTM" else "model.onnx")
    if not os.path.exists(path):
        part = f"{path}.{os.getpid()}-{threading.get_ident()}"
        with open(part, "wb") as file:
            file.write(content)
        os.replace(part, path)


def remove_data_set(folder: str) -> None:
    """Remove a data set that this process made, and nothing else."""
    for name in os.listdir(folder):
        os.remove(os.path.join(folder, name))
    os.rmdir(folder)


def models_in(folder: str) -> int:
    """Return how many models of a folder the harness finds.

    An ``.ort`` file beside its ``.onnx`` does not count.
    """
    names = [name for name in os.listdir(folder) if not name.startswith("._")]
    stems = {name[: -len(".onnx")] for name in names if name.lower().endswith(".onnx")}
    other = {name[: -len(".ort")] for name in names if name.lower().endswith(".ort")}
    return len(stems | other)
