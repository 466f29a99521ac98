"""Models that take the CPU provider down with them, or try to."""

# ruff: noqa: ARG001 - every kind is called alike

import random
from pathlib import Path

import numpy as np
from foreign_making import DEADLY, FLOAT, PASS, info, kind, node_model, save, text, tree, weight
from onnx import TensorProto, helper, numpy_helper


@kind(*DEADLY)
def divides_the_smallest(folder: Path, rng: random.Random) -> None:
    """onnxruntime 1.31 dies of SIGFPE: -2^31 / -1 is no int32."""
    divisor = numpy_helper.from_array(np.array([-1], np.int32), "d")
    least = numpy_helper.from_array(np.array([-(2**31)], np.int32), "least")
    nodes = [
        helper.make_node("Mul", ["x", "zero"], ["n"]),
        helper.make_node("Add", ["n", "least"], ["m"]),
        helper.make_node("Div", ["m", "d"], ["y"]),
    ]
    zero = numpy_helper.from_array(np.array([0], np.int32), "zero")
    x, y = info("x", TensorProto.INT32, [1]), info("y", TensorProto.INT32, None)
    save(folder, node_model(nodes, [x], [y], [divisor, least, zero]))


@kind(*DEADLY)
def no_groups(folder: Path, rng: random.Random) -> None:
    """onnxruntime 1.31 dies of SIGFPE: it divides by the number of groups."""
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], group=0)
    x, y = info("x", FLOAT, [1, 1, 4, 4]), info("y", FLOAT, None)
    save(folder, node_model([node], [x], [y], [weight(rng, "w", 1, 1, 2, 2)]))


@kind(*DEADLY)
def bottomless_tree(folder: Path, rng: random.Random) -> None:
    """onnxruntime 1.31 dies of SIGSEGV: it follows a tree by recursion, deeper than the stack."""
    save(folder, tree(100_000))


@kind("invalid_model", "out_of_memory", "no_golden")
def asks_for_too_much(folder: Path, rng: random.Random) -> None:
    size = 1 << rng.randint(45, 50)
    save(folder, text(f"agraph () => (float[n] y) <int64[1] s = {{{size}}}> {{ y = ConstantOfShape(s) }}"))


@kind("hang", slow=True)
def never_ends(folder: Path, rng: random.Random) -> None:
    save(
        folder,
        text("""agraph (float[1] x) => (float[1] y) <int64 most = {9223372036854775807}, bool go = {1}> {
            y = Loop (most, go, x) <body = b (int64 i, bool c, float[1] v) => (bool d, float[1] w) {
                d = Identity(c) w = Neg(v) }> }"""),
    )


@kind(*PASS, slow=True)
def three_gib_of_weights(folder: Path, rng: random.Random) -> None:
    rows = 3 << 20
    table = TensorProto(name="table", data_type=FLOAT, dims=[rows, 256], data_location=TensorProto.EXTERNAL)
    table.external_data.add(key="location", value="weights.bin")
    x, y = info("ids", TensorProto.INT64, [8]), info("y", FLOAT, None)
    save(folder, node_model([helper.make_node("Gather", ["table", "ids"], ["y"])], [x], [y], [table]))
    with (folder / "weights.bin").open("wb") as file:
        file.truncate(rows * 256 * 4)  # sparse: takes no room
