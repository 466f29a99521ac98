"""How closely a result has to agree with a model's expected data: ``data.json``, or ``config.txt``."""

from pathlib import Path
from typing import Annotated

import msgspec

from harness.corpus.errors import read_regular

TOLERANCE_FILE = "data.json"
"""The file of ONNX's own backend tests."""

CONFIG_FILE = "config.txt"
"""The file of ``onnx_test_runner``: lines of ``key: value``."""

TOLERANCE_FILES = frozenset({TOLERANCE_FILE, CONFIG_FILE})

_Bound = Annotated[float, msgspec.Meta(ge=0)]


class ExpectedTolerance(msgspec.Struct, frozen=True, kw_only=True):
    """The tolerance of expected data, with the defaults of ONNX's own backend tests; other keys are ignored.

    Attributes:
        rtol: Relative, as in ``|result - expected| <= atol + rtol * |expected|``.
        atol: Absolute.
    """

    rtol: _Bound = 1e-3
    atol: _Bound = 1e-7


def read_tolerance(folder: Path) -> ExpectedTolerance:
    """The tolerance in a folder, or the defaults where it holds none; ``data.json`` goes first.

    Raises:
        msgspec.DecodeError: The file is not JSON, or a tolerance is not a number of at least 0.
        ValueError: A file is none, or a line of ``config.txt`` holds no such number.
    """
    if (folder / TOLERANCE_FILE).exists():
        return msgspec.json.decode(read_regular(folder / TOLERANCE_FILE), type=ExpectedTolerance)
    if (folder / CONFIG_FILE).exists():
        return _from_config(read_regular(folder / CONFIG_FILE).decode(errors="replace"))
    return ExpectedTolerance()


def _from_config(text: str) -> ExpectedTolerance:
    pairs = (line.partition(":") for line in text.splitlines())
    said = {key.strip(): value.strip() for key, _, value in pairs}
    names = {"rtol": "relative_per_sample_tolerance", "atol": "per_sample_tolerance"}
    bounds = {name: float(said[key]) for name, key in names.items() if said.get(key)}
    return msgspec.convert(bounds, ExpectedTolerance)
