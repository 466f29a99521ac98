"""Values in numpy's own files: ``.npy`` with one array, ``.npz`` with several by name. Never a pickle."""

import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from harness.core.files.zips import open_zip
from harness.core.values.value import DTYPES, Array, Tensor, tensor
from harness.corpus.model.data_budget import PART_BYTES, TEXT_BYTES, DataBudget
from harness.corpus.model.port import ValueType

_TEXTS = frozenset("SU")
"""Kinds of arrays of texts, each of which becomes an object."""


def read_npy(content: bytes, declared: ValueType, budget: DataBudget) -> Tensor:
    """Return the array of a ``.npy`` file; the declared type applies to unnamed bytes, such as bfloat16.

    Raises:
        ValueError: It is not such a file, or truncated, pickled, too large, or of a type that ONNX lacks.
    """
    with _as_value_errors():
        budget.take(len(content))
        return as_tensor(np.load(io.BytesIO(content), allow_pickle=False), declared, budget)


def read_npz(content: bytes, budget: DataBudget) -> dict[str, Array]:
    """Return the arrays of a ``.npz`` file by name.

    Raises:
        ValueError: As ``read_npy``.
    """
    with _as_value_errors(), open_zip(io.BytesIO(content)) as archive:
        # Only as much of a member is unpacked as its entry declares; a few kilobytes can declare any size.
        budget.take(sum(member.file_size + PART_BYTES for member in archive.infolist()))
        return {name.removesuffix(".npy"): _member(archive, name) for name in archive.namelist()}


def _member(archive: zipfile.ZipFile, name: str) -> Array:
    with archive.open(name) as file:  # read in pieces, so that it is never in memory twice
        array: Array = np.lib.format.read_array(file, allow_pickle=False)
        return array


def as_tensor(array: Array, declared: ValueType, budget: DataBudget) -> Tensor:
    """Return an array as a tensor.

    Raises:
        ValueError: ONNX lacks its type, or its texts would be too large.
    """
    if array.dtype.kind in _TEXTS:
        budget.take(array.size * TEXT_BYTES)
    wanted = DTYPES.get(declared.dtype)
    if array.dtype.kind == "V" and wanted is not None and array.dtype.itemsize == wanted.itemsize:
        # numpy saves types other than its own as unnamed bytes.
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
