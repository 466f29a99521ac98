"""The schemas of operators that the CPU EP computes, frozen in `kernels.json`.

They are frozen because a form must stay the same with another release of onnx or onnxruntime. Reading it
needs neither package; `kernel_file.py` writes it.
"""

import functools
from pathlib import Path

import msgspec

Types = dict[str, tuple[str, ...]]
"""Type variable of a schema -> element types."""

FILE = Path(__file__).with_name("kernels.json")


class OperatorSchema(msgspec.Struct, frozen=True, kw_only=True):
    """One operator in a range of opsets in which its schema is the same.

    Attributes:
        domain: Its domain; empty for ONNX's own.
        since: The version of its schema.
        first: The first opset in which the CPU EP has kernels for this schema.
        last: The last one.
        inputs: Type of each formal input: a type variable, or an element type; ``?`` follows an optional one,
            ``*`` one that stands for several. The type of a non-tensor has a parenthesis.
        outputs: The same for the outputs.
    """

    domain: str = ""
    name: str
    since: int
    first: int
    last: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[str, ...] = ()
    kernels: tuple[Types, ...]


@functools.cache
def operators() -> tuple[OperatorSchema, ...]:
    """Return all operators, sorted by domain, name and version."""
    return tuple(msgspec.json.decode(line, type=OperatorSchema) for line in FILE.read_bytes().splitlines())
