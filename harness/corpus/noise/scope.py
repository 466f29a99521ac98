"""What is known of the tensors of a graph while it is walked through."""

from typing import TYPE_CHECKING

from harness.corpus.noise.operators import CIRCULAR, CONTROL_INPUTS, COPIES
from harness.corpus.noise.tensor_types import COMPUTED, declared_sizes, declared_types
from harness.corpus.noise.terms import Dims
from harness.corpus.noise.whole import is_whole
from harness.corpus.schema_types import bodies, domain_of

if TYPE_CHECKING:
    import onnx

SIZES = frozenset({"Shape", "Size"})
"""Operators that read how large a tensor is, and do not care for its values."""


class Scope:
    """What is known of the tensors that a node may read."""

    def __init__(self) -> None:
        self.types: dict[str, str] = {}
        self.sizes: dict[str, Dims] = {}
        self.constant: set[str] = set()
        """Weights, and what is computed of these alone: before the model runs."""
        self.held: set[str] = set()
        """What says how large something is."""
        self.whole: set[str] = set()
        """Floats that are whole numbers, and small."""
        self.noisy: set[str] = set()
        """What carries noise."""
        self.not_angles: set[str] = set()
        """What is read by others than circular functions."""

    def within(self, graph: "onnx.GraphProto") -> "Scope":
        """The scope of a graph that sees this one."""
        inner = Scope()
        inner.types = self.types | declared_types(graph)
        inner.sizes = self.sizes | declared_sizes(graph)
        inner.constant = self.constant | {weight.name for weight in graph.initializer}
        inner.constant |= {sparse.values.name for sparse in graph.sparse_initializer}
        inner.held = self.held | _held(graph)
        inner.whole = self.whole | {weight.name for weight in graph.initializer if is_whole(weight)}
        inner.noisy = set(self.noisy)
        inner.not_angles = _not_angles(graph)
        return inner

    def is_float(self, name: str) -> bool:
        """Whether operators compute in what it is."""
        return self.types.get(name) in COMPUTED

    def varies(self, name: str) -> bool:
        """Whether it is a float that may carry noise."""
        return self.is_float(name) and name not in self.constant and name not in self.held


def _held(graph: "onnx.GraphProto") -> set[str]:
    """Tensors that sizes come from; what reads the size of a tensor does not care for its values."""
    held: set[str] = set()
    for node in reversed(graph.node):
        control = CONTROL_INPUTS.get(node.op_type, frozenset())
        held.update(name for index, name in enumerate(node.input) if index in control)
        if node.op_type not in SIZES and held.intersection(node.output):
            held.update(node.input)
    return held - {""}


def _not_angles(graph: "onnx.GraphProto") -> set[str]:
    """Tensors that somebody reads who is no circular function, and does not only hand them on to one."""
    read = {port.name for port in graph.output}
    for node in reversed(graph.node):
        for body in bodies(node):
            read |= _not_angles(body) | {name for inner in body.node for name in inner.input}
        plain = not domain_of(node)
        if plain and node.op_type in CIRCULAR:
            continue
        if not plain or node.op_type not in COPIES or read.intersection(node.output):
            read.update(node.input)
    return read
