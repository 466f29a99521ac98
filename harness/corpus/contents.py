"""What a generated input holds: what was said about it, what the graph asks for, or what its name tells."""

import re

import msgspec

from harness.core.model_settings import InputSettings, Number, Scalar
from harness.core.value import STRING
from harness.corpus.attempts import Values
from harness.corpus.element_types import is_floating
from harness.corpus.port import Port


class Range(msgspec.Struct, frozen=True):
    """Values drawn evenly from ``low <= x < high``; whole numbers where the type is one of integers."""

    low: Number
    high: Number


class Indices(msgspec.Struct, frozen=True):
    """Whole numbers from 0 to below ``rows``, whatever the element type."""

    rows: int


class Counting(msgspec.Struct, frozen=True):
    """0, 1, 2 and so on along the last axis; from 0 again at ``rows``, where that is given."""

    rows: int | None = None


class Constant(msgspec.Struct, frozen=True):
    """The same value everywhere."""

    value: Scalar


Content = Range | Indices | Counting | Constant

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_MASKS = ({"attention", "mask"}, {"input", "mask"})
_POSITIONS = {"position", "ids"}
_IMAGES = frozenset({"image", "images", "img"})
_IMAGE_RANK = 3


def content_of(
    port: Port, settings: InputSettings | None, rows: int | None, values: Values = "plain"
) -> Content | None:
    """What to generate for an input.

    Args:
        port: The input; a tensor.
        settings: What was said about it, if anything.
        rows: Of the table that it indexes; None where it indexes none.
        values: Which values it holds where nothing else says anything.

    Returns:
        None where nothing but the element type says anything.

    Raises:
        ValueError: The settings do not suit the element type.
    """
    if settings is not None and (said := _said(port.type.dtype, settings)) is not None:
        return said
    words = [word.lower() for word in _WORD.findall(port.name)]
    last_two = set(words[-2:])
    whole = "int" in port.type.dtype
    if whole and last_two == _POSITIONS:
        return Counting(rows)
    if rows is not None:
        return Indices(rows)
    if last_two in _MASKS and (whole or port.type.dtype == "bool"):
        # Of a row that is masked as a whole, attention makes NaN.
        return Constant(value=True)
    rank = len(port.type.shape or ())
    if _IMAGES.intersection(words) and is_floating(port.type.dtype) and rank >= _IMAGE_RANK:
        return Range(0.0, 1.0)
    return _varied(port.type.dtype, values)


def _varied(dtype: str, values: Values) -> Content | None:
    """Other values than those of the element type alone; some types have none."""
    if values == "plain" or dtype in {STRING, "float8e8m0", ""} or dtype.startswith("complex"):
        return None
    if dtype == "bool":
        return None if values == "wide" else Constant(values == "positive")
    if "int" not in dtype:
        return _OF_FLOATS[values]
    low, high = _OF_INTEGERS[values]
    return Range(low, min(high, _limits(dtype)[1] + 1))


_OF_FLOATS: dict[Values, Content] = {
    "positive": Range(0.1, 1.0),
    "wide": Range(-10.0, 10.0),
    "small": Range(-0.1, 0.1),
}
_OF_INTEGERS: dict[Values, tuple[int, int]] = {"positive": (1, 3), "wide": (0, 8), "small": (0, 1)}


def _said(dtype: str, settings: InputSettings) -> Content | None:
    if settings.value is not msgspec.UNSET:
        _check(dtype, settings.value)
        return Constant(settings.value)
    if settings.high is msgspec.UNSET:
        return None
    if dtype in {STRING, "bool"} or dtype.startswith("complex"):
        raise ValueError(f"values of type {dtype} have no range; give it a value")
    low = 0 if settings.low is msgspec.UNSET else settings.low
    _check(dtype, low)
    # The upper end itself is never drawn, so it may be one more than the type holds.
    _check(dtype, settings.high, beyond=1)
    return Range(low, settings.high)


def _check(dtype: str, value: Scalar, beyond: int = 0) -> None:
    if isinstance(value, str) != (dtype == STRING):
        raise ValueError(f"{value!r} is no value of type {dtype}")
    if dtype == "bool" and value not in (0, 1):
        raise ValueError(f"{value!r} is no value of type bool")
    if "int" in dtype and not isinstance(value, str):
        least, most = _limits(dtype)
        if value != int(value) or not least <= value <= most + beyond:
            raise ValueError(f"{value!r} is no value of type {dtype}, which holds {least} to {most}")


def _limits(dtype: str) -> tuple[int, int]:
    bits = int(re.sub(r"\D", "", dtype))
    return (0, (1 << bits) - 1) if dtype.startswith("u") else (-(1 << bits - 1), (1 << bits - 1) - 1)
