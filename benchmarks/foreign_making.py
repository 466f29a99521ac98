"""What strangers' models are made of, and the register of the ways to make one."""

import io
import os
import random
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
from onnx import TensorProto, helper, numpy_helper

PASS = ("pass",)
INVALID = ("invalid_model",)
NO_INPUT = ("no_input",)
LACKING = ("unsupported",)
"""Of valid models for which the CPU provider has no kernel or operator, or whose version it does not know."""
DEADLY = ("crash", "invalid_model", "pass")
"""Of models that kill onnxruntime 1.31 on x86-64: another release, or another processor, may know better."""
DISPUTED = ("reference_disputed",)
POSIX = os.name == "posix"

Write = Callable[[Path, random.Random], None]
KINDS: dict[str, tuple[Write, tuple[str, ...]]] = {}
SLOW: dict[str, tuple[Write, tuple[str, ...]]] = {}
HEADER = '<ir_version: 9, opset_import: ["" : 17, "ai.onnx.ml" : 3, "com.microsoft" : 1, "mine" : 1]>'


def kind(*verdicts: str, slow: bool = False, posix: bool = False) -> Callable[[Write], Write]:
    """Register a way to write a model into an empty folder, with the verdicts that are right."""

    def register(write: Write) -> Write:
        if POSIX or not posix:
            (SLOW if slow else KINDS)[write.__name__] = write, verdicts
        return write

    return register


def text(graph: str, header: str = HEADER) -> onnx.ModelProto:
    return onnx.parser.parse_model(f"{header} {graph}")


def save(folder: Path, model: onnx.ModelProto, name: str = "model.onnx") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model.SerializeToString())
    return path


def relu(size: int) -> onnx.ModelProto:
    return text(f"agraph (float[{size}] x) => (float[{size}] y) {{ y = Relu(x) }}")


def sizes(rng: random.Random, count: int = 1) -> list[int]:
    return [rng.randint(2, 12) for _ in range(count)]


def weight(rng: random.Random, name: str, *shape: int) -> TensorProto:
    drawn = np.random.default_rng(rng.randrange(1 << 30)).standard_normal(shape) / 4
    return numpy_helper.from_array(drawn.astype(np.float32), name)


def node_model(nodes: list[Any], inputs: list[Any], outputs: list[Any], weights: list[Any]) -> Any:
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


OPSETS = {"": 17, "ai.onnx.ml": 3, "com.microsoft": 1}
FLOAT = TensorProto.FLOAT
info = helper.make_tensor_value_info


def data_sets(folder: Path, size: int, count: int = 1) -> Iterator[tuple[Path, Any, Any]]:
    for index in range(count):
        x = np.linspace(-1 - index, 1, size, dtype=np.float32)
        yield folder / f"test_data_set_{index}", x, np.maximum(x, 0)


def add_file(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def external(model: onnx.ModelProto, **entries: str) -> onnx.ModelProto:
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.ClearField("float_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    return model


def added(size: int) -> onnx.ModelProto:
    x, y = info("x", FLOAT, [size]), info("y", FLOAT, [size])
    zeros = numpy_helper.from_array(np.zeros(size, np.float32), "w")
    return node_model([helper.make_node("Add", ["x", "w"], ["y"])], [x], [y], [zeros])


def tree(depth: int) -> Any:
    """A chain of decisions: at each depth one leaf and one further decision."""
    inner, leaves = list(range(depth)), list(range(depth, 2 * depth + 1))
    count = len(inner) + len(leaves)
    attributes = {
        "n_targets": 1,
        "nodes_nodeids": inner + leaves,
        "nodes_treeids": [0] * count,
        "nodes_featureids": [0] * count,
        "nodes_modes": ["BRANCH_LEQ"] * depth + ["LEAF"] * len(leaves),
        "nodes_values": [0.5] * count,
        "nodes_truenodeids": [one + 1 for one in inner] + [0] * len(leaves),
        "nodes_falsenodeids": [depth + 1 + one for one in inner] + [0] * len(leaves),
        "target_ids": [0] * len(leaves),
        "target_nodeids": leaves,
        "target_treeids": [0] * len(leaves),
        "target_weights": [1.0] * len(leaves),
    }
    # The last decision's first branch is a leaf: the one whose number follows.
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", **attributes)
    return node_model([node], [info("x", FLOAT, ["N", 1])], [info("y", FLOAT, ["N", 1])], [])
