"""Checks of values: every element type, every kind of value, and how they travel."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from harness.agent.tensor_files import FILE_FROM
from harness.annex.agent_check.bench import Bench, floats
from harness.annex.agent_check.bitwise import same
from harness.annex.agent_check.check_group import CheckGroup
from harness.annex.agent_check.early_ends import FaultError, NotDoneError
from harness.annex.agent_check.models import identity
from harness.core.values.value import (
    BITS,
    DTYPES,
    STRING,
    Array,
    Map,
    Sequence,
    Tensor,
    Value,
    tensor,
    unpack,
)
from harness.engine.processes.mapped_tensors import Tensors
from harness.engine.processes.messages import Failed

TYPES = CheckGroup("element types")
VALUE_CHECKS = CheckGroup("values")
FILES = CheckGroup("tensors in files")

_NEEDED = ("float32", "int64")
"""Element types without which an agent can run almost nothing."""

_SPECIAL = np.array(
    [0x7FC00000, 0xFFC00001, 0x7F800000, 0xFF800000, 0x80000000, 0x00000001, 0x7F7FFFFF], np.uint32
).view(np.float32)
"""Two NaN, both infinities, -0.0, the smallest and the largest number."""


def _patterns(dtype: str, elements: int) -> Tensor:
    """Return a vector with elements of many bits; for bool and complex numbers ordinary ones."""
    if dtype == "bool":
        return tensor(np.arange(elements) % 2 == 0)
    bits = BITS.get(dtype, 8 * DTYPES[dtype].itemsize)
    count = -(-elements * bits // 8)
    data = bytearray((37 * index + 11) % 256 for index in range(count))
    spare = count * 8 - elements * bits
    data[-1] &= 0xFF >> spare  # unused bits are 0
    return unpack(dtype, (elements,), bytes(data))


def _identity_path(bench: Bench, dtype: str) -> Path:
    return bench.path(f"identity-{dtype}", identity(dtype))


def _identity(bench: Bench, value: Tensor, *, needed: bool = False) -> None:
    """Send a tensor through a model that returns it."""
    bench.declines(f"dtype:{value.dtype}")
    answer = bench.ask(_identity_path(bench, value.dtype), {"x": value})
    if answer.ran is not None:
        same(answer.output, value)
    elif needed:
        raise FaultError("refused", f"{value.dtype}: {answer.result.message}")
    else:
        raise NotDoneError(answer.result.message)  # the runtime may have no such kernel


def _unchanged(*values: Tensor, needed: bool = True) -> Callable[[Bench], None]:
    def run(bench: Bench) -> None:
        for value in values:
            _identity(bench, value, needed=needed)

    return run


def _floats(array: Array) -> Tensor:
    return tensor(array.astype(np.float32))


for name in DTYPES:
    # An odd number, so that packed types leave bits of the last byte unused.
    TYPES.add(name, _unchanged(_patterns(name, 7), needed=name in _NEEDED))
_TEXTS = ["", "a", "\u00fc\u4e2d\U0001f600", "line\nbreak", "nul\0", '"quoted"\\', " " * 10]
TYPES.add(STRING, _unchanged(tensor(np.array(_TEXTS, dtype=object)), needed=False))

VALUE_CHECKS.add("a scalar", _unchanged(_floats(np.array(2.5))))
VALUE_CHECKS.add("a matrix, not transposed", _unchanged(_floats(np.arange(6).reshape(2, 3))))
VALUE_CHECKS.add("eight dimensions", _unchanged(_floats(np.arange(256).reshape((2,) * 8))))
VALUE_CHECKS.add("a tensor without elements", _unchanged(_floats(np.zeros((0, 3)))))
VALUE_CHECKS.add(
    "a tensor without elements between others", _unchanged(tensor(np.zeros((2, 0, 4), np.int64)))
)
VALUE_CHECKS.add("a packed tensor without elements", _unchanged(unpack("int4", (0,), b""), needed=False))
VALUE_CHECKS.add("texts without elements", _unchanged(tensor(np.zeros((0,), dtype=object)), needed=False))
VALUE_CHECKS.add("NaN, infinities, -0.0 and denormal numbers keep their bits", _unchanged(tensor(_SPECIAL)))
VALUE_CHECKS.add(
    "the ends of int64",
    _unchanged(tensor(np.array([-(1 << 63), (1 << 63) - 1, (1 << 53) + 1], np.int64))),
)
VALUE_CHECKS.add(
    "the end of uint64", _unchanged(tensor(np.array([(1 << 64) - 1, 1 << 63], np.uint64)), needed=False)
)
VALUE_CHECKS.add(
    "numbers of odd sizes", _unchanged(*(_floats(np.arange(size)) for size in (1, 2, 63, 64, 65, 4097)))
)


def _answers(model: str, given: Value, expected: Value, *, takes: str = "") -> Callable[[Bench], None]:
    """Return a check of one answer; ``takes`` is a kind of value that the agent may decline."""

    def run(bench: Bench) -> None:
        if takes:
            bench.declines(f"value:{takes}")
        answer = bench.ask(bench.path(model), {"x": given})
        if isinstance(answer.result, Failed):
            raise NotDoneError(answer.result.message)
        same(answer.output, expected)

    return run


VALUE_CHECKS.add(
    "a sequence as an input",
    _answers(
        "sequence",
        Sequence(items=(floats(1.0), floats(2.0, 3.0), floats())),
        tensor(np.array(3, np.int64)),
        takes="sequence",
    ),
)
VALUE_CHECKS.add(
    "a sequence as an output",
    _answers("to sequence", floats(1.0, -2.0), Sequence(items=(floats(1.0, -2.0), floats(-1.0, 2.0)))),
)
VALUE_CHECKS.add(
    "a map as an input",
    _answers(
        "map",
        Map(keys=tensor(np.array(["c", "a"], dtype=object)), values=floats(3.0, 1.0)),
        _floats(np.array([[1.0, 0.0, 3.0]])),
        takes="map",
    ),
)
VALUE_CHECKS.add(
    "a map as an output",
    _answers(
        "to map",
        _floats(np.array([[0.5, 1.5]])),
        Sequence(items=(Map(keys=tensor(np.array([10, 20], np.int64)), values=floats(0.5, 1.5)),)),
    ),
)
for title, optional in (("an empty optional as an input", None), ("an optional with a value", floats(1.0))):
    there = tensor(np.array(optional is not None))
    VALUE_CHECKS.add(title, _answers("optional", optional, there, takes="optional"))


def _large(nbytes: int) -> Tensor:
    return tensor(np.arange(nbytes // 4, dtype=np.uint32).view(np.float32))


VALUE_CHECKS.add("4 MiB in a message", lambda bench: _identity(bench, _large(4 << 20), needed=True))
VALUE_CHECKS.add("the largest tensor, 1 GiB", lambda bench: _identity(bench, _large(bench.setup.large_bytes)))


def _by_files(bench: Bench, nbytes: int) -> list[str]:
    """Send a tensor through files; return the names of remaining files."""
    bench.declines("tensor_folders")
    folder = bench.folder("tensors")
    dialogue = bench.made_ready(tensor_folders=[str(folder)])
    tensors, value = Tensors((folder,)), _large(nbytes)
    bench.send_job(dialogue, 1, _identity_path(bench, "float32"), data_sets=[[["x", tensors.put(value)]]])
    kept, bench.tensors = bench.tensors, tensors
    try:
        same(bench.answer(dialogue, 1).output, value)
    finally:
        bench.tensors = kept
    return sorted(path.name for path in folder.iterdir())


@FILES.check("a tensor of 1 MiB comes and goes, and no file stays")
def _through_files(bench: Bench) -> None:
    left = _by_files(bench, 1 << 20)
    if left:
        raise FaultError("written", f"files are left: {', '.join(left[:4])}")


FILES.add("a tensor of just 256 KiB", lambda bench: _by_files(bench, FILE_FROM))


@FILES.check("a file that is missing makes its job unfeedable, and no other")
def _missing_file(bench: Bench) -> None:
    bench.declines("tensor_folders")
    dialogue = bench.made_ready(tensor_folders=[str(bench.folder("tensors"))])
    path = _identity_path(bench, "float32")
    for name in ("in-999", "../../etc/passwd", "/etc/passwd"):
        gone = {"dtype": "float32", "shape": [FILE_FROM], "file": name}
        bench.send_job(dialogue, 1, path, data_sets=[[["x", gone]]])
        if bench.answer(dialogue, 1).ran is not None:
            raise FaultError("accepted", f"it ran with a tensor in the file {name}, which must not be read")
    bench.send_job(dialogue, 2, path, {"x": floats(1.0)})
    same(bench.answer(dialogue, 2).output, floats(1.0))
