"""A model open for surgery: its nodes, its weights, and the value that every tensor has on given inputs."""

from collections.abc import Mapping
from itertools import count
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

Array = NDArray[Any]
FLOAT32 = np.dtype(np.float32)


class Net:
    """Nodes of the main graph, to be changed in place.

    Nodes are added around the one that ``at`` names, so that the order stays topological.

    Args:
        model: Left as it is.
        values: Name of a tensor -> its value on the inputs in question, weights included; what is no tensor
            is left out.
        random: For choices that a fault leaves open.
    """

    def __init__(
        self, model: onnx.ModelProto, values: Mapping[str, Array], random: np.random.Generator
    ) -> None:
        self.values = values
        self.random = random
        self.nodes: list[onnx.NodeProto] = []
        for node in model.graph.node:
            self.nodes.append(onnx.NodeProto())
            self.nodes[-1].CopyFrom(node)
        self._model = model
        self._weights = {weight.name: weight for weight in model.graph.initializer}
        self._taken = {name for node in self.nodes for name in node.output} | self._weights.keys()

    @property
    def opset(self) -> int:
        """Version of ONNX's own operators."""
        return next(
            int(entry.version) for entry in self._model.opset_import if entry.domain in {"", "ai.onnx"}
        )

    def model(self) -> onnx.ModelProto:
        """The model as it stands."""
        graph = onnx.GraphProto()
        graph.CopyFrom(self._model.graph)
        del graph.node[:], graph.initializer[:]
        graph.node.extend(self.nodes)
        graph.initializer.extend(self._weights.values())
        made = helper.make_model(
            graph, opset_imports=self._model.opset_import, ir_version=self._model.ir_version
        )
        made.functions.extend(self._model.functions)
        return made

    def weight(self, name: str) -> Array | None:
        """The elements of a weight; None where the name is none."""
        return numpy_helper.to_array(self._weights[name]) if name in self._weights else None

    def constant(self, values: Any, dtype: Any = None) -> str:
        """A new weight; its name."""
        name = self.fresh()
        self._weights[name] = numpy_helper.from_array(np.array(values, dtype), name)
        return name

    def scalar(self, value: float) -> str:
        """A new float32 scalar."""
        return self.constant(value, np.float32)

    def is_float(self, name: str) -> bool:
        """Whether a tensor is of float32."""
        return name in self.values and self.values[name].dtype == FLOAT32

    def is_activation(self, name: str) -> bool:
        """Whether a tensor is computed or fed: no weight."""
        return name in self.values and name not in self._weights

    def producer(self, name: str) -> onnx.NodeProto | None:
        """The node that computes a tensor; None for inputs and weights."""
        return next((node for node in self.nodes if name in node.output), None)

    def readers(self, name: str) -> list[onnx.NodeProto]:
        """The nodes of the main graph that read a tensor."""
        return [node for node in self.nodes if name in node.input]

    def before(self, node: onnx.NodeProto) -> "Site":
        """The place before a node: for what changes its inputs, or takes its place altogether."""
        return Site(self, node, 0)

    def behind(self, node: onnx.NodeProto, output: int = 0) -> "Site":
        """The place between a node and the readers of one of its outputs."""
        return Site(self, node, 1, output)

    def fresh(self) -> str:
        """A name that nothing has yet."""
        name = next(
            name for name in map("planted_{}".format, count(len(self._taken))) if name not in self._taken
        )
        self._taken.add(name)
        return name


class Site:
    """Adds nodes at one place, in order.

    Args:
        net: The model.
        node: The node that is there.
        offset: 0 before the node, 1 behind it.
        output: The output in question.

    Attributes:
        value: Behind the node: the name under which it now writes its output; the name that the readers know
            waits for ``write``.
    """

    def __init__(self, net: Net, node: onnx.NodeProto, offset: int, output: int = 0) -> None:
        self._net = net
        self._place = next(index for index, other in enumerate(net.nodes) if other is node) + offset
        self._name = node.output[output]
        self._node = node
        self.value = ""
        if offset:
            self.value = node.output[output] = net.fresh()

    def op(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output; the output's name."""
        name = self._net.fresh()
        self._add(helper.make_node(op_type, inputs, [name], name=name, **attributes))
        return name

    def write(self, value: str) -> None:
        """What the readers get from now on."""
        self._add(helper.make_node("Identity", [value], [self._name], name=self._net.fresh()))

    def replace(self, value: str) -> None:
        """Take the node out, and give its readers a value that was added before it."""
        self._net.nodes = [node for node in self._net.nodes if node is not self._node]
        self.write(value)

    def _add(self, node: onnx.NodeProto) -> None:
        self._net.nodes.insert(self._place, node)
        self._place += 1


def attribute(node: onnx.NodeProto, name: str, default: Any = None) -> Any:
    """The value of an attribute."""
    found = next((one for one in node.attribute if one.name == name), None)
    return default if found is None else helper.get_attribute_value(found)


def set_attribute(node: onnx.NodeProto, name: str, value: Any) -> None:
    """Give an attribute a value, which replaces the one that it has."""
    drop_attribute(node, name)
    node.attribute.append(helper.make_attribute(name, value))


def drop_attribute(node: onnx.NodeProto, name: str) -> None:
    """Leave an attribute at its default."""
    kept = [one for one in node.attribute if one.name != name]
    del node.attribute[:]
    node.attribute.extend(kept)
