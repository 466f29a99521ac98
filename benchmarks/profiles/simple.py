"""Simple faults for every operator and element type: a wrong first output, in a form or in all.

Each stands for a kernel, or a form of its arguments, that is wrong: the least that a corpus has to show.
"""

from collections.abc import Iterator

import ml_dtypes
import numpy as np
import onnx

from benchmarks.fuzzing.faults.fault import Array, Site, off

_SHORT = 4
"""Numbers of a list attribute that are told apart; longer ones are only uniform or not."""


def simple_faults(site: Site, operator: str, dtype: str) -> Iterator[tuple[str, Array]]:
    """Yield the name of each fault that a node can have, and the wrong output.

    Args:
        site: The node.
        operator: Its operator with the domain.
        dtype: Element type of its first input, or of its output if it has none.
    """
    wrong = off(site)
    yield f"simple: {operator} {dtype}: wrong", wrong
    for form in _forms(site):
        yield f"form: {operator}: {form}", wrong
    for name, y in _partly(site.y):
        yield f"simple: {operator} {dtype}: {name}", y


def _partly(y: Array) -> Iterator[tuple[str, Array]]:
    if not y.size:
        return
    yield "unwritten", np.zeros_like(y)
    last = y.reshape(-1).copy()
    last[-1] = 0
    yield "last element unwritten", last.reshape(y.shape)
    if y.ndim and y.shape[0] > 1:
        repeated = y.copy()
        repeated[-1] = y[0]
        yield "last row repeated", repeated
    if y.ndim > 1:
        yield "transposed", np.swapaxes(y, -1, -2).reshape(y.shape)
    if y.dtype in (np.float32, np.float16):
        with np.errstate(all="ignore"):
            yield "eight bits", y.astype(ml_dtypes.bfloat16).astype(y.dtype)


def _forms(site: Site) -> Iterator[str]:
    yield f"rank {site.y.ndim}"
    for index, name in enumerate(site.node.input):
        if index and name:
            yield f"input {index} {'constant' if site.is_weight(index) else 'computed'}"
    for attribute in site.node.attribute:
        match attribute.type:
            case onnx.AttributeProto.INT:
                sign = "negative" if attribute.i < 0 else str(min(attribute.i, _SHORT))
                yield f"{attribute.name} {sign}"
            case onnx.AttributeProto.STRING:
                yield f"{attribute.name} {attribute.s.decode(errors='replace')[:40]}"
            case onnx.AttributeProto.INTS:
                uniform = len(set(attribute.ints)) < 2  # noqa: PLR2004 - all alike
                yield f"{attribute.name} of {len(attribute.ints)}, {'alike' if uniform else 'different'}"
            case _:
                yield f"{attribute.name} given"
