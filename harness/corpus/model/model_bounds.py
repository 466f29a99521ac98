"""Limits on the cost of reading a model: its functions once they are inlined, and its imported versions.

A file of 3 kB can call its functions 10^14 times. Every runtime inlines them, and so do parts of the harness,
so that is found out before anything of the model is walked or run.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from harness.core.text.errors import one_line
from harness.corpus.model.model_errors import OverBoundError
from harness.corpus.model.nodes import FunctionKey, all_nodes, called_by, local_functions
from harness.corpus.model.port import model_text

if TYPE_CHECKING:
    import onnx

MOST_NODES = 200_000
"""Largest number of nodes in a model's functions once all calls are inlined.

Exported language models have some 20,000.
"""

_MOST_BYTES = 256 << 20
"""Largest size of these nodes in bytes, in the form in which functions hold them."""

_LATEST_OPSET = (1 << 31) - 1
"""The largest version that ONNX's own functions accept."""


class _Size(NamedTuple):
    nodes: int
    nbytes: int


def check_bounds(model: "onnx.ModelProto") -> None:
    """Check a model's demands on everything that reads it.

    Raises:
        OverBoundError: Its functions call each other too often.
        ValueError: A function calls itself, or an imported version is invalid.
    """
    for imports in (model, *model.functions):
        for one in imports.opset_import:
            if not 0 <= one.version <= _LATEST_OPSET:
                domain = one_line(model_text(one.domain) or "ai.onnx", 60)
                raise ValueError(f"it imports version {one.version} of {domain}, which does not exist")
    if model.functions:
        _check_functions(model)


def _check_functions(model: "onnx.ModelProto") -> None:
    functions = local_functions(model)
    calls: dict[FunctionKey, list[FunctionKey]] = {}
    sizes: dict[FunctionKey, _Size] = {}

    def called_in(nodes: "Iterable[onnx.NodeProto]") -> list[FunctionKey]:
        names = map(called_by, all_nodes(nodes))
        return [name for name in names if name in functions]

    def inlined(names: Iterable[FunctionKey]) -> _Size:
        parts = [sizes[name] for name in names]
        return _Size(
            # Capped, so that the numbers stay small whatever they are added to.
            min(sum(part.nodes for part in parts), MOST_NODES + 1),
            min(sum(part.nbytes for part in parts), _MOST_BYTES + 1),
        )

    first = called_in(model.graph.node)
    pending = [(name, False) for name in first]
    while pending:  # no recursion: functions may call each other in chains of any length
        name, is_done = pending.pop()
        if name in sizes:
            continue
        if is_done:
            inner = inlined(calls[name])
            own = functions[name]
            sizes[name] = _Size(inner.nodes + len(own.node), inner.nbytes + own.ByteSize())
        elif name in calls:
            raise ValueError(f"its function {one_line(model_text(name[1]), 60)!r} calls itself")
        else:
            calls[name] = called_in(functions[name].node)
            pending.append((name, True))
            pending += ((one, False) for one in dict.fromkeys(calls[name]) if one not in sizes)
    total = inlined(first)
    if total.nodes > MOST_NODES or total.nbytes > _MOST_BYTES:
        raise OverBoundError(
            f"its functions call each other so often that it has more than {MOST_NODES:,} nodes or"
            f" {_MOST_BYTES >> 20} MiB once they are inlined, the bound of the harness"
        )
