"""What a generated input holds: what was said about it, what the graph asks for, or what its name tells."""

import math
import re
from collections.abc import Mapping

import msgspec

from harness.core.model_settings import InputSettings, Number, Scalar
from harness.core.value import STRING
from harness.corpus.attempts import Values
from harness.corpus.domains import Domain, Extent
from harness.corpus.element_types import is_floating
from harness.corpus.port import Port
from harness.corpus.sizes import size_of


class Range(msgspec.Struct, frozen=True):
    """Values drawn evenly from ``low <= x < high``; whole numbers where the type is one of integers.

    None of them has a magnitude below ``away``, but where the range has no others.
    """

    low: Number
    high: Number
    away: float = 0.0


class Indices(msgspec.Struct, frozen=True):
    """Whole numbers from 0 to below ``rows``, whatever the element type."""

    rows: int


class Counting(msgspec.Struct, frozen=True):
    """0, 1, 2 and so on along the last axis; from 0 again at ``rows``, where that is given."""

    rows: int | None = None


class Constant(msgspec.Struct, frozen=True):
    """The same value everywhere."""

    value: Scalar


class Pattern(msgspec.Struct, frozen=True):
    """These values in the order of the elements; the last one is repeated."""

    values: tuple[float, ...]


class Distinct(msgspec.Struct, frozen=True):
    """Whole numbers from 0 to below ``rows``, different along an axis as long as there are enough of them."""

    rows: int
    axis: int


class DistinctTuples(msgspec.Struct, frozen=True):
    """Index tuples along the last axis, different from each other as long as there are enough of them."""

    sizes: tuple[int, ...]


Content = Range | Indices | Counting | Constant | Pattern | Distinct | DistinctTuples


class Restricted(msgspec.Struct, frozen=True, kw_only=True):
    """A domain with numbers in place of the names of dimensions.

    Attributes:
        domain: The domain.
        rows: The least of the lengths that the values index; None where they index nothing.
        most: The least of the lengths that the values count along; None likewise.
        sizes: Of the axes that index tuples point into.
    """

    domain: Domain
    rows: int | None = None
    most: int | None = None
    sizes: tuple[int, ...] = ()


_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_MASKS = ({"attention", "mask"}, {"input", "mask"})
_POSITIONS = {"position", "ids"}
_IMAGES = frozenset({"image", "images", "img"})
_IMAGE_RANK = 3


def content_of(
    port: Port, settings: InputSettings | None, domain: Restricted | None, values: Values = "plain"
) -> Content | None:
    """What to generate for an input.

    Args:
        port: The input; a tensor.
        settings: What was said about it, if anything.
        domain: What the graph demands of it; None where it demands nothing.
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
    rows = domain.rows if domain is not None else None
    if whole and last_two == _POSITIONS:
        return Counting(rows)
    if domain is not None and (demanded := _demanded(domain)) is not None:
        return demanded
    if last_two in _MASKS and (whole or port.type.dtype == "bool"):
        # Of a row that is masked as a whole, attention makes NaN.
        return Constant(value=True)
    rank = len(port.type.shape or ())
    if _IMAGES.intersection(words) and is_floating(port.type.dtype) and rank >= _IMAGE_RANK:
        return Range(0.0, 1.0)
    varied = _varied(port.type.dtype, values)
    return varied if domain is None else _restricted(port.type.dtype, domain.domain, varied)


def restricted(domain: Domain, sizes: Mapping[str, int]) -> Restricted:
    """A domain at given sizes of dimensions; lengths that are not among them restrict nothing."""
    rows, most, tuples = (
        tuple(size for size in (_resolved(extent, sizes) for extent in extents) if size)
        for extents in (domain.extents, domain.lengths, domain.tuples)
    )
    return Restricted(
        domain=domain,
        rows=min(rows, default=None),
        most=min(most, default=1) if domain.lengths else None,
        sizes=tuples if len(tuples) == len(domain.tuples) else (),
    )


def _resolved(extent: Extent, sizes: Mapping[str, int]) -> int | None:
    return extent if isinstance(extent, int) else size_of(extent, sizes)


def _demanded(restricted: Restricted) -> Content | None:
    """What a graph demands where it leaves no choice of ranges."""
    domain = restricted.domain
    if domain.pattern:
        return Pattern(domain.pattern)
    if restricted.sizes:
        return DistinctTuples(restricted.sizes)
    if restricted.rows is not None and domain.distinct is not None:
        return Distinct(restricted.rows, domain.distinct)
    if restricted.rows is not None:
        return Indices(restricted.rows)
    if restricted.most is not None:
        return Range(1, restricted.most + 1)
    return None


def _restricted(dtype: str, domain: Domain, varied: Content | None) -> Content | None:
    """The part of the values that an operator is defined for."""
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
    """Whole numbers in a range; as far as the type goes, and without zero where it has to stay away."""
    least, most = _limits(dtype)
    first, beyond = max(math.ceil(low), least), min(math.ceil(high), most + 1)
    if away:
        first, beyond = max(first, 1), max(beyond, 2) + 1
    return Range(first, max(beyond, first + 1))


_SPAN = 2.0
"""How far values go from the one bound that an operator has: as far as nearly all standard normal ones."""


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
