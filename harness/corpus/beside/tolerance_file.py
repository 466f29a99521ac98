"""The tolerance of a model's expected data: ``data.json`` or ``config.txt``."""

from pathlib import Path
from typing import Annotated

import msgspec

from harness.core.files.reading import MOST_SETTINGS, read_regular

TOLERANCE_FILE = "data.json"
"""The file of ONNX's own backend tests."""

_CONFIG_FILE = "config.txt"
"""The file of ``onnx_test_runner``: lines of ``key: value``."""

TOLERANCE_FILES = frozenset({TOLERANCE_FILE, _CONFIG_FILE})

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
    """Return the tolerance in a folder, or the defaults if it has none; ``data.json`` takes precedence.

    Raises:
        msgspec.DecodeError: The file is not JSON, or a tolerance is not a number of at least 0.
        ValueError: A file is not a regular file, or a line of ``config.txt`` has no such number.
    """
    if (folder / TOLERANCE_FILE).exists():
        return msgspec.json.decode(
            read_regular(folder / TOLERANCE_FILE, MOST_SETTINGS), type=ExpectedTolerance
        )
    if (folder / _CONFIG_FILE).exists():
        return _from_config(read_regular(folder / _CONFIG_FILE, MOST_SETTINGS).decode(errors="replace"))
    return ExpectedTolerance()


def _from_config(text: str) -> ExpectedTolerance:
    pairs = (line.partition(":") for line in text.splitlines())
    values = {key.strip(): value.strip() for key, _, value in pairs}
    names = {"rtol": "relative_per_sample_tolerance", "atol": "per_sample_tolerance"}
    bounds = {name: float(values[key]) for name, key in names.items() if values.get(key)}
    return msgspec.convert(bounds, ExpectedTolerance)
