"""The content of a generated input: from its settings, from the graph, or from its name."""

import math
import re
from collections.abc import Mapping

import msgspec

from harness.core.records.model_settings import InputSettings, Number, SettingValue
from harness.core.values.value import STRING
from harness.corpus.inputs.attempts import ValueRange
from harness.corpus.inputs.open_sizes import dimension_size
from harness.corpus.model.element_types import is_floating, limits_of
from harness.corpus.model.port import Port, name_words
from harness.corpus.model.symbols import AXIS
from harness.operators.value_domains import Domain, Extent, TableColumn


class Range(msgspec.Struct, frozen=True):
    """Values drawn evenly from ``low <= x < high``; whole numbers for integer types.

    Magnitudes are at least ``away``, unless the range has no such values.
    """

    low: Number
    high: Number
    away: float = 0.0


class Indices(msgspec.Struct, frozen=True):
    """Whole numbers from 0 to below ``rows``, for any element type."""

    rows: int


class Counting(msgspec.Struct, frozen=True):
    """0, 1, 2 and so on along the last axis, starting again from 0 at ``rows`` if given."""

    rows: int | None = None


class Constant(msgspec.Struct, frozen=True):
    """The same value everywhere."""

    value: SettingValue


class Pattern(msgspec.Struct, frozen=True):
    """These values in the order of the elements; the last one is repeated."""

    values: tuple[float, ...]


class Padded(msgspec.Struct, frozen=True):
    """One value up to the length of each row, and another for the rest of the last axis."""

    counts: float
    hidden: float


class Distinct(msgspec.Struct, frozen=True):
    """Whole numbers from 0 to below ``rows``, different along an axis if there are enough of them."""

    rows: int
    axis: int


class DistinctTuples(msgspec.Struct, frozen=True):
    """Index tuples along the last axis, all different if there are enough of them."""

    sizes: tuple[int, ...]


class TableRows(msgspec.Struct, frozen=True):
    """A value of each of these columns in each row; one column stands for all. Numbers stay within bounds."""

    columns: tuple[TableColumn, ...]
    low: float = -math.inf
    high: float = math.inf


Content = Range | Indices | Counting | Constant | Pattern | Padded | Distinct | DistinctTuples | TableRows


_COMMON = {"plain", "natural"}
"""Values to which most models have an answer."""

_MASKS = ({"attention", "mask"}, {"input", "mask"})
_POSITIONS = {"position", "ids"}
_IMAGES = frozenset({"image", "images", "img"})
_IMAGE_RANK = 3
_RATE = re.compile(r"(?:^|[^a-z])(?:sr|sample_?rate|sampling_?rate)$", re.IGNORECASE)
_SAMPLE_RATE = 16000
"""Samples per second that speech models expect."""


def content_of(
    port: Port,
    settings: InputSettings | None,
    domain: Domain | None,
    sizes: Mapping[str, int],
    values: ValueRange = "plain",
) -> Content | None:
    """Return the content to generate for an input, a tensor; None if only the element type decides.

    The graph is defined for the values of ``domain``, where lengths without a size restrict nothing.
    ``values`` are used if nothing else decides.

    Raises:
        ValueError: The settings do not suit the element type.
    """
    asked = None if settings is None else _asked(port.type.dtype, settings)
    if (content := asked or _sample_rate(port)) is not None:
        return content
    words = name_words(port.name)
    last_two = set(words[-2:])
    whole = "int" in port.type.dtype
    rows = rows_of(domain, sizes)
    if whole and last_two == _POSITIONS:
        return Counting(rows)
    if domain is not None and (demanded := _demanded(domain, rows, sizes, values)) is not None:
        return demanded
    if last_two in _MASKS and (whole or port.type.dtype == "bool"):
        # Attention returns NaN for a row that is masked completely.
        return Constant(value=True)
    rank = len(port.type.shape or ())
    if _IMAGES.intersection(words) and is_floating(port.type.dtype) and rank >= _IMAGE_RANK:
        return Range(0.0, 1.0)
    varied = _varied(port.type.dtype, values)
    return varied if domain is None else _restricted(port.type.dtype, domain, varied)


def _sample_rate(port: Port) -> Content | None:
    """Return the sample rate for a scalar whose name says that it is one; None for any other input."""
    scalar = math.prod(size or 0 for size in port.type.shape or ()) == 1
    named = scalar and _RATE.search(port.name) is not None
    return Constant(_SAMPLE_RATE) if named and _holds(port.type.dtype, _SAMPLE_RATE) else None


def _holds(dtype: str, number: int) -> bool:
    """Return whether an element type holds a whole number."""
    if is_floating(dtype):
        return dtype in {"float64", "float32", "float16"}
    return "int" in dtype and number <= limits_of(dtype)[1]


def rows_of(domain: Domain | None, sizes: Mapping[str, int]) -> int | None:
    """Return the number of rows of the shortest table that an input indexes; None if the graph shows none."""
    return None if domain is None else min(_known(domain.extents, sizes), default=None)


def _known(extents: tuple[Extent, ...], sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Return the known lengths of axes, except 0; of an axis without a name the least one of all inputs."""
    known = (one if isinstance(one, int) else _size_of(one, sizes) for one in extents)
    return tuple(size for size in known if size)


def _size_of(name: str, sizes: Mapping[str, int]) -> int | None:
    size = dimension_size(name, sizes)
    if size is not None or not name.startswith(AXIS):
        return size
    return min((one for of, one in sizes.items() if of.endswith(f" {name}")), default=None)


def _demanded(
    domain: Domain, rows: int | None, sizes: Mapping[str, int], values: ValueRange
) -> Content | None:
    """Return the content that a graph demands, if it leaves no choice of ranges."""
    if domain.padding is not None:
        return _padded(*domain.padding, values)
    if domain.pattern:
        return Pattern(domain.pattern)
    if domain.columns:
        low = -math.inf if domain.low is None else domain.low
        return TableRows(domain.columns, low, math.inf if domain.high is None else domain.high)
    tuples = _known(domain.tuples, sizes)
    if tuples and len(tuples) == len(domain.tuples):
        return DistinctTuples(tuples)
    if rows is not None:
        return Indices(rows) if domain.distinct is None else Distinct(rows, domain.distinct)
    return Range(1, min(_known(domain.lengths, sizes), default=1) + 1) if domain.lengths else None


def _padded(counts: float, hidden: float, values: ValueRange) -> Content:
    """Return a mask of padding; what hides nothing where a model had no answer, or a weak one, to padding."""
    return Padded(counts, hidden) if values in _COMMON else Constant(counts)


def _restricted(dtype: str, domain: Domain, varied: Content | None) -> Content | None:
    """Return the part of the values for which operators are defined."""
    if dtype in {STRING, "bool", "float8e8m0", ""} or dtype.startswith("complex"):
        return varied
    if (domain.low, domain.high, domain.away) == (None, None, 0.0):
        return varied
    wanted = domain
    if isinstance(varied, Range):
        wanted = domain.within(Domain(low=varied.low, high=varied.high))
    low, high = wanted.low, wanted.high
    if low is None:
        low = -_SPAN if high is None else min(-_SPAN, high - _SPAN)
    if high is None:
        high = max(_SPAN, low + _SPAN)
    if "int" in dtype:
        return _whole(dtype, low, high, wanted.away)
    return Range(low, high, wanted.away)


def _whole(dtype: str, low: float, high: float, away: float) -> Content:
    """Return whole numbers in a range, within the limits of the type, without zero if ``away`` is set."""
    least, most = limits_of(dtype)
    first, beyond = max(math.ceil(low), least), min(math.ceil(high), most + 1)
    if away:
        first, beyond = max(first, 1), max(beyond, 2) + 1
    return Range(first, max(beyond, first + 1))


_SPAN = 2.0
"""Distance of values from an operator's only bound: that of nearly all standard normal values."""


def _varied(dtype: str, values: ValueRange) -> Content | None:
    """Return values other than those that the element type alone decides; some types have none."""
    if values in _COMMON or dtype in {STRING, "float8e8m0", ""} or dtype.startswith("complex"):
        return None
    if dtype == "bool":
        return None if values == "wide" else Constant(values == "positive")
    if "int" not in dtype:
        return _OF_FLOATS[values]
    low, high = _OF_INTEGERS[values]
    return Range(low, min(high, limits_of(dtype)[1] + 1))


_OF_FLOATS: dict[ValueRange, Content] = {
    "positive": Range(0.1, 1.0),
    "wide": Range(-10.0, 10.0),
    "small": Range(-0.1, 0.1),
}
_OF_INTEGERS: dict[ValueRange, tuple[int, int]] = {"positive": (1, 3), "wide": (0, 8), "small": (0, 1)}


def _asked(dtype: str, settings: InputSettings) -> Content | None:
    if settings.value is not msgspec.UNSET:
        _check(dtype, settings.value)
        return Constant(settings.value)
    if settings.high is msgspec.UNSET:
        return None
    if dtype in {STRING, "bool"} or dtype.startswith("complex"):
        raise ValueError(f"values of type {dtype} have no range; give it a value")
    low = 0 if settings.low is msgspec.UNSET else settings.low
    _check(dtype, low)
    # The upper end is never drawn, so it may be one more than the type holds.
    _check(dtype, settings.high, beyond=1)
    return Range(low, settings.high)


def _check(dtype: str, value: SettingValue, beyond: int = 0) -> None:
    if isinstance(value, str) != (dtype == STRING):
        raise ValueError(f"{value!r} is no value of type {dtype}")
    if dtype == "bool" and value not in (0, 1):
        raise ValueError(f"{value!r} is no value of type bool")
    if "int" in dtype and not isinstance(value, str):
        least, most = limits_of(dtype)
        if value != int(value) or not least <= value <= most + beyond:
            raise ValueError(f"{value!r} is no value of type {dtype}, which holds {least} to {most}")
