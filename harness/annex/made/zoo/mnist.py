"""The MNIST classifier on the page of the NNAPI provider, node by node."""

from harness.annex.made.zoo.graph_builder import Architecture, GraphBuilder
from harness.annex.made.zoo.inputs import digits


def build(g: GraphBuilder, *, channels: tuple[int, int]) -> None:
    """Add two convolutions with biases as nodes, and a matrix product with a reshaped weight."""
    first, second = channels
    x = g.input("Input3", (1, 1, 28, 28), digits)
    with g.scope("conv1"):
        x = _conv(g, x, (1, first))
        x = g.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    with g.scope("conv2"):
        x = _conv(g, x, channels)
        x = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[3, 3])
    flat = second * 4 * 4
    x = g.op("Reshape", x, g.ints(1, flat))
    with g.scope("dense"):
        weight = g.normal("weight", (second, 4, 4, 10), (1 / flat) ** 0.5)
        x = g.op("MatMul", x, g.op("Reshape", weight, g.ints(flat, 10)))
        x = g.op("Add", x, g.normal("bias", (1, 10), 0.05))
    g.output("Plus214_Output_0", x, "float32", (1, 10))


def _conv(g: GraphBuilder, x: str, channels: tuple[int, int]) -> str:
    before, after = channels
    weight = g.normal("weight", (after, before, 5, 5), (2 / (25 * before)) ** 0.5)
    x = g.op("Conv", x, weight, kernel_shape=[5, 5], strides=[1, 1], auto_pad="SAME_UPPER")
    return g.op("Relu", g.op("Add", x, g.normal("bias", (after, 1, 1), 0.05)))


MNIST = Architecture(
    name="mnist",
    what="digit classifier of the NNAPI page: Conv + Add, Relu, MaxPool, a reshaped weight, MatMul + Add",
    build=build,
    sizes={"small": {"channels": (8, 16)}, "base": {"channels": (32, 64)}},
    opsets=(12, 22),
    symbolic=False,
)
