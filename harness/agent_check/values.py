"""Checks of values: every element type, every kind of value, and how they travel."""

from collections.abc import Callable

import numpy as np

from harness.agent.tensor_files import FILE_FROM
from harness.agent_check import models
from harness.agent_check.bench import Bench, floats
from harness.agent_check.check import FaultError, Group, NotDoneError
from harness.agent_check.compare import same
from harness.core.value import BITS, DTYPES, STRING, Map, Sequence, Tensor, Value, tensor, unpack
from harness.engine.messages import Failed
from harness.engine.tensor_files import Tensors

TYPES = Group("element types")
VALUES = Group("values")
FILES = Group("tensors in files")

NEEDED = ("float32", "int64")
"""Element types without which an agent can run next to nothing."""

_SPECIAL = np.array(
    [0x7FC00000, 0xFFC00001, 0x7F800000, 0xFF800000, 0x80000000, 0x00000001, 0x7F7FFFFF], np.uint32
).view(np.float32)
"""Two NaN, both infinities, -0.0, the smallest and the largest number."""


def _patterns(dtype: str, elements: int) -> Tensor:
    """Return a vector with elements of many bits; of bool and complex numbers ordinary ones."""
    if dtype == "bool":
        return tensor(np.arange(elements) % 2 == 0)
    bits = BITS.get(dtype, 8 * DTYPES[dtype].itemsize)
    count = -(-elements * bits // 8)
    data = bytearray((37 * index + 11) % 256 for index in range(count))
    spare = count * 8 - elements * bits
    data[-1] &= 0xFF >> spare  # unused bits are 0
    return unpack(dtype, (elements,), bytes(data))


def _identity(bench: Bench, value: Tensor, *, needed: bool = False) -> None:
    """Send a tensor through a model that returns it."""
    bench.declines(f"dtype:{value.dtype}")
    answer = bench.ask(bench.path(f"identity-{value.dtype}", models.identity(value.dtype)), {"x": value})
    if answer.ran is not None:
        same(answer.outputs()[0][1], value)
    elif needed:
        raise FaultError("refused", f"{value.dtype}: {answer.result.message}")
    else:
        raise NotDoneError(answer.result.message)  # the runtime may have no such kernel


def _typed(dtype: str) -> Callable[[Bench], None]:
    # An odd number, so that packed types leave bits of the last byte unused.
    return lambda bench: _identity(bench, _patterns(dtype, 7), needed=dtype in NEEDED)


for name in DTYPES:
    TYPES.add(name, _typed(name))


@TYPES.check(STRING)
def _strings(bench: Bench) -> None:
    texts = ["", "a", "\u00fc\u4e2d\U0001f600", "line\nbreak", "nul\0", '"quoted"\\', " " * 10]
    _identity(bench, tensor(np.array(texts, dtype=object)))


@VALUES.check("a scalar")
def _scalar(bench: Bench) -> None:
    _identity(bench, tensor(np.array(2.5, np.float32)), needed=True)


@VALUES.check("a matrix, not transposed")
def _matrix(bench: Bench) -> None:
    _identity(bench, tensor(np.arange(6, dtype=np.float32).reshape(2, 3)), needed=True)


@VALUES.check("eight dimensions")
def _many_dimensions(bench: Bench) -> None:
    _identity(bench, tensor(np.arange(256, dtype=np.float32).reshape((2,) * 8)), needed=True)


@VALUES.check("a tensor without elements")
def _zero_size(bench: Bench) -> None:
    _identity(bench, tensor(np.zeros((0, 3), np.float32)), needed=True)


@VALUES.check("a tensor without elements between others")
def _zero_size_inside(bench: Bench) -> None:
    _identity(bench, tensor(np.zeros((2, 0, 4), np.int64)), needed=True)


@VALUES.check("a packed tensor without elements")
def _zero_size_packed(bench: Bench) -> None:
    _identity(bench, unpack("int4", (0,), b""))


@VALUES.check("texts without elements")
def _zero_strings(bench: Bench) -> None:
    _identity(bench, tensor(np.zeros((0,), dtype=object)))


@VALUES.check("NaN, infinities, -0.0 and denormal numbers keep their bits")
def _special_numbers(bench: Bench) -> None:
    _identity(bench, tensor(_SPECIAL), needed=True)


@VALUES.check("the ends of int64")
def _large_integers(bench: Bench) -> None:
    ends = np.array([-(1 << 63), (1 << 63) - 1, (1 << 53) + 1], np.int64)
    _identity(bench, tensor(ends), needed=True)


@VALUES.check("the end of uint64")
def _large_unsigned(bench: Bench) -> None:
    _identity(bench, tensor(np.array([(1 << 64) - 1, 1 << 63], np.uint64)))


@VALUES.check("numbers of odd sizes")
def _odd_sizes(bench: Bench) -> None:
    for size in (1, 2, 63, 64, 65, 4097):
        _identity(bench, tensor(np.arange(size, dtype=np.float32)), needed=True)


def _answered(bench: Bench, name: str, model: object, value: Value, expected: Value) -> None:
    answer = bench.ask(bench.path(name, model), {name[0]: value})  # type: ignore[arg-type]
    if isinstance(answer.result, Failed):
        raise NotDoneError(answer.result.message)
    same(answer.outputs()[0][1], expected)


@VALUES.check("a sequence as an input")
def _sequence_in(bench: Bench) -> None:
    bench.declines("value:sequence")
    value = Sequence(items=(floats(1.0), floats(2.0, 3.0), floats()))
    _answered(bench, "sequence", models.sequence_in(), value, tensor(np.array(3, np.int64)))


@VALUES.check("a sequence as an output")
def _sequence_out(bench: Bench) -> None:
    expected = Sequence(items=(floats(1.0, -2.0), floats(-1.0, 2.0)))
    _answered(bench, "x-sequence", models.sequence_out(), floats(1.0, -2.0), expected)


@VALUES.check("a map as an input")
def _map_in(bench: Bench) -> None:
    bench.declines("value:map")
    value = Map(keys=tensor(np.array(["c", "a"], dtype=object)), values=floats(3.0, 1.0))
    expected = tensor(np.array([[1.0, 0.0, 3.0]], np.float32))
    _answered(bench, "map", models.map_in(), value, expected)


@VALUES.check("a map as an output")
def _map_out(bench: Bench) -> None:
    keys = tensor(np.array([10, 20], np.int64))
    expected = Sequence(items=(Map(keys=keys, values=floats(0.5, 1.5)),))
    _answered(bench, "x-map", models.map_out(), tensor(np.array([[0.5, 1.5]], np.float32)), expected)


@VALUES.check("an empty optional as an input")
def _optional_empty(bench: Bench) -> None:
    bench.declines("value:optional")
    _answered(bench, "optional", models.optional_in(), None, tensor(np.array(False)))  # noqa: FBT003


@VALUES.check("an optional with a value")
def _optional_full(bench: Bench) -> None:
    bench.declines("value:optional")
    _answered(bench, "optional", models.optional_in(), floats(1.0), tensor(np.array(True)))  # noqa: FBT003


@VALUES.check("4 MiB in a message")
def _in_a_message(bench: Bench) -> None:
    _identity(bench, _large(4 << 20), needed=True)


@VALUES.check("the largest tensor, 1 GiB")
def _largest(bench: Bench) -> None:
    _identity(bench, _large(bench.setup.large_bytes))


def _large(nbytes: int) -> Tensor:
    return tensor(np.arange(nbytes // 4, dtype=np.uint32).view(np.float32))


def _by_files(bench: Bench, nbytes: int) -> list[str]:
    """Send a tensor through files; return the names of files that are left."""
    bench.declines("tensor_folders")
    folder = bench.folder("tensors")
    dialogue = bench.made_ready(tensor_folders=[str(folder)])
    tensors, value = Tensors((folder,)), _large(nbytes)
    path = bench.path("identity-float32", models.identity("float32"))
    inputs = [[["x", tensors.put(value)]]]
    dialogue.send(("job", 1, {**bench.job(path), "data_sets": inputs}))
    kept, bench.tensors = bench.tensors, tensors
    try:
        same(bench.answer(dialogue, 1).outputs()[0][1], value)
    finally:
        bench.tensors = kept
    return sorted(path.name for path in folder.iterdir())


@FILES.check("a tensor of 1 MiB comes and goes, and no file stays")
def _through_files(bench: Bench) -> None:
    left = _by_files(bench, 1 << 20)
    if left:
        raise FaultError("written", f"files are left: {', '.join(left[:4])}")


@FILES.check("a tensor of just 256 KiB")
def _smallest_file(bench: Bench) -> None:
    _by_files(bench, FILE_FROM)


@FILES.check("a file that is missing makes its job unfeedable, and no other")
def _missing_file(bench: Bench) -> None:
    bench.declines("tensor_folders")
    dialogue = bench.made_ready(tensor_folders=[str(bench.folder("tensors"))])
    path = bench.path("identity-float32", models.identity("float32"))
    for name in ("in-999", "../../etc/passwd", "/etc/passwd"):
        gone = {"dtype": "float32", "shape": [FILE_FROM], "file": name}
        dialogue.send(("job", 1, {**bench.job(path), "data_sets": [[["x", gone]]]}))
        if bench.answer(dialogue, 1).ran is not None:
            raise FaultError("accepted", f"it ran with a tensor in the file {name}, which must not be read")
    dialogue.send(("job", 2, bench.job(path, {"x": floats(1.0)})))
    same(bench.answer(dialogue, 2).outputs()[0][1], floats(1.0))
