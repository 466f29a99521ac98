"""``data.json``: how closely a result has to agree with a model's expected data."""

from pathlib import Path
from typing import Annotated

import msgspec

TOLERANCE_FILE = "data.json"

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
    """The tolerance in a folder, or the defaults where it holds none.

    Raises:
        msgspec.DecodeError: The file is not JSON, or a tolerance is not a number of at least 0.
    """
    try:
        data = (folder / TOLERANCE_FILE).read_bytes()
    except FileNotFoundError:
        return ExpectedTolerance()
    return msgspec.json.decode(data, type=ExpectedTolerance)
