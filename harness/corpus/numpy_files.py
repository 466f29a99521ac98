"""Values in numpy's own files: ``.npy`` with one array, ``.npz`` with several by name. Never a pickle."""

import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from harness.core.value import DTYPES, Array, Tensor, tensor
from harness.corpus.port import ValueType

LIMIT_BYTES = 4 << 30
"""Unpacked size of the arrays of one ``.npz`` at most: a few kilobytes can claim any size."""


def read_npy(content: bytes, declared: ValueType) -> Tensor:
    """Return the array of a ``.npy`` file; the declared type is that of unnamed bytes, such as bfloat16.

    Raises:
        ValueError: It is no such file, cut short, pickled, or of a type that ONNX does not have.
    """
    with _as_value_errors():
        return as_tensor(np.load(io.BytesIO(content), allow_pickle=False), declared)


def read_npz(content: bytes) -> dict[str, Array]:
    """Return the arrays of a ``.npz`` file by name.

    Raises:
        ValueError: As ``read_npy``, or the arrays would be too large.
    """
    with _as_value_errors(), zipfile.ZipFile(io.BytesIO(content)) as archive:
        total = sum(member.file_size for member in archive.infolist())
        if total > LIMIT_BYTES:
            raise ValueError(f"the arrays would take {total} bytes unpacked, and the limit is {LIMIT_BYTES}")
        return {
            name.removesuffix(".npy"): np.load(io.BytesIO(archive.read(name)), allow_pickle=False)
            for name in archive.namelist()
        }


def as_tensor(array: Array, declared: ValueType) -> Tensor:
    """Return an array as a tensor.

    Raises:
        ValueError: ONNX does not have its type.
    """
    wanted = DTYPES.get(declared.dtype)
    if array.dtype.kind == "V" and wanted is not None and array.dtype.itemsize == wanted.itemsize:
        # numpy saves types that are not its own as bytes without a name.
        return Tensor(dtype=declared.dtype, array=array.view(wanted))
    try:
        return tensor(array.astype(array.dtype.newbyteorder("="), copy=False))
    except TypeError as error:
        raise ValueError(str(error)) from error


@contextmanager
def _as_value_errors() -> Iterator[None]:
    """Turn all errors of numpy and zipfile for broken bytes into ``ValueError``."""
    try:
        yield
    except ValueError as error:
        if "allow_pickle" in str(error):
            what = "holds pickled Python objects, which are not read; save arrays of numbers or of texts"
            raise ValueError(what) from error
        raise
    except MemoryError:
        raise
    except Exception as error:  # of zipfile, zlib, and Python's tokenizer, which parses numpy's headers
        raise ValueError(f"not a whole file of arrays: {error}") from error
