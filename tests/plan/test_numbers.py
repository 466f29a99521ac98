"""Every number of a matrix has a range that is told, and no number ends a command with a traceback."""

import math
import os
import re
import select
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from harness.core.text.errors import UsageError
from harness.plan.file_format import MatrixFile
from harness.plan.matrix import matrix_from
from harness.plan.runs_entry import LONGEST_S

Key = str | int

_TEXTS = {"options", "precisions", "device", "env", "option.any"}
_VALUES = {"low", "high", "value"}


def is_free(path: tuple[Key, ...]) -> bool:
    """Whether a number needs no range: it only becomes text, or is a value of an input, of any type."""
    return bool(_TEXTS & set(path)) or path[-1] in _VALUES


def numbers(kind: inspect.Type, path: tuple[Key, ...] = ()) -> Iterator[tuple[tuple[Key, ...], inspect.Type]]:
    """Yield every place of a number that a matrix can have, with its type."""
    match kind:
        case inspect.Metadata(type=inner):
            yield from numbers(inner, path)
        case inspect.StructType(fields=fields):
            for field in fields:
                yield from numbers(field.type, (*path, field.encode_name))
            if option_type := getattr(kind.cls, "option_type", None):
                yield from numbers(inspect.type_info(option_type), (*path, "option.any"))
        case inspect.DictType(value_type=inner):
            yield from numbers(inner, (*path, "any"))
        case inspect.ListType(item_type=inner):
            yield from numbers(inner, (*path, 0))
        case inspect.UnionType(types=options):
            for option in options:
                yield from numbers(option, path)
        case inspect.IntType() | inspect.FloatType():
            yield path, kind
        case _:
            pass


EVERY = list(numbers(inspect.type_info(MatrixFile)))
PLACES = sorted({path for path, _ in EVERY}, key=str)
BAD = [0, -1, 10**10, 10**30, 1e10, 1e30, float("inf"), -float("inf"), float("nan")]


def with_number(path: tuple[Key, ...], value: object) -> dict[str, Any]:
    """Return a small matrix with a number in one place."""
    matrix: dict[str, Any] = {
        "schema": 1,
        "models": {"suites": ["onnx-node"]},
        "target": [{"name": "a", "provider": "CPUExecutionProvider"}],
    }
    here: Any = matrix
    for key, following in zip(path, (*path[1:], None), strict=True):
        fresh: Any = value if following is None else [] if isinstance(following, int) else {}
        if isinstance(key, int):
            if len(here) <= key:
                here.append(fresh)
        elif key not in here or following is None:
            here[key] = fresh
        here = here[key]
    return matrix


def test_every_number_has_both_ends_of_its_range() -> None:
    bounded = {
        path
        for path, kind in EVERY
        if isinstance(kind, inspect.IntType | inspect.FloatType)
        and kind.le is not None
        and (kind.ge is not None or kind.gt is not None)
    }
    assert [path for path in PLACES if path not in bounded and not is_free(path)] == []
    assert len(bounded) > 30


@pytest.mark.parametrize("path", PLACES, ids=lambda path: ".".join(map(str, path)))
def test_a_number_is_taken_or_refused_with_its_range(path: tuple[Key, ...]) -> None:
    most = [getattr(kind, "le", None) for each, kind in EVERY if each == path]
    for value in BAD:
        told = refused(path, value)
        if not told:
            assert is_free(path) or any(value <= le for le in most if le is not None), value
        elif not is_free(path):
            assert re.search(r" from .* to |greater than .* at most ", told), (value, told)
        if not math.isfinite(value):
            assert told


def refused(path: tuple[Key, ...], value: float) -> str:
    """Return what is told about a number; empty if it is taken, with other problems or without."""
    try:
        matrix_from(with_number(path, value), Path("m.toml"))
    except UsageError as error:
        return "; ".join(each.what for each in error.problems if each.what.startswith("expected"))
    return ""


@pytest.mark.parametrize("value", ["0", "-1", "1e10", "1e30", "inf", "nan"])
def test_a_limit_that_no_system_can_wait_for_is_refused(value: str) -> None:
    matrix = with_number(("target", 0, "timeouts_s", "run"), float(value))
    with pytest.raises(UsageError) as caught:
        matrix_from(matrix, Path("m.toml"))
    assert (
        "m.toml: target[0].timeouts_s.run: expected a finite number greater than 0, at most 604800, got"
        in (str(caught.value))
    )


def test_every_system_can_wait_for_the_longest_limit() -> None:
    assert LONGEST_S <= threading.TIMEOUT_MAX
    assert LONGEST_S * 1000 < (1 << 32) - 1  # milliseconds of Windows
    if sys.platform != "win32":
        poll = select.poll()
        read, write = (open_end for open_end in _pipe())
        poll.register(read, select.POLLHUP)
        write.close()
        assert poll.poll(LONGEST_S * 1000)  # an OverflowError, if it were too long
        read.close()


def _pipe() -> tuple[Any, Any]:
    read, write = os.pipe()
    return os.fdopen(read, "rb"), os.fdopen(write, "wb")


def test_the_published_schema_has_the_ranges() -> None:
    text = (Path(__file__).parents[2] / "docs" / "reference" / "matrix.schema.json").read_bytes()
    timeouts = msgspec.json.decode(text)["$defs"]["Timeouts"]["properties"]
    assert {one["maximum"] for one in timeouts.values()} == {LONGEST_S}
