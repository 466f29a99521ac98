"""Small model packages for tests: a classifier of three layers, in variants that differ in one thing each."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

CPU = "CPUExecutionProvider"

_SHAPES = ((32, 64), (64, 64), (64, 10))


def classifier(*, levels: int = 0, scale: float = 1.0) -> onnx.ModelProto:
    """Return a model of a sum and three products, in float32 unless weights are quantized.

    They have so many ``levels`` on each side of 0. ``scale`` changes the last weight, for another model.
    """
    draw = np.random.default_rng(0)
    bias = (draw.normal(size=32) / 64).astype(np.float32)
    # A sum behind a product would be fused with it.
    nodes = [helper.make_node("Add", ["x", "bias"], ["sum"])]
    initializers, last = [numpy_helper.from_array(bias, "bias")], "sum"
    for number, shape in enumerate(_SHAPES):
        weight = (draw.normal(size=shape) / 8).astype(np.float32)
        if number == len(_SHAPES) - 1:
            weight *= np.float32(scale)
        name, product = f"w{number}", f"m{number}"
        if levels:
            step = float(np.abs(weight).max()) / levels
            quantized = np.clip(np.rint(weight / step), -levels, levels).astype(np.int8)
            initializers += [
                numpy_helper.from_array(quantized, f"{name}q"),
                numpy_helper.from_array(np.array(step, np.float32), f"{name}s"),
            ]
            nodes.append(helper.make_node("DequantizeLinear", [f"{name}q", f"{name}s"], [name]))
        else:
            initializers.append(numpy_helper.from_array(weight, name))
        nodes.append(helper.make_node("MatMul", [last, name], [product]))
        last = product
        if number < len(_SHAPES) - 1:
            nodes.append(helper.make_node("Relu", [product], [f"r{number}"]))
            last = f"r{number}"
    graph = helper.make_graph(
        nodes,
        "classifier",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["batch", 32])],
        [helper.make_tensor_value_info(last, onnx.TensorProto.FLOAT, ["batch", 10])],
        initializers,
    )
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])


def labeller(*, levels: int = 0, scale: float = 1.0) -> onnx.ModelProto:
    """Return the classifier with the number of the class as its only output: scores stay inside."""
    model = classifier(levels=levels, scale=scale)
    graph = model.graph
    graph.node.append(helper.make_node("ArgMax", [graph.output[0].name], ["label"], axis=1, keepdims=0))
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info("label", onnx.TensorProto.INT64, ["batch"]))
    return model


def write_package(root: Path, variants: Mapping[str, onnx.ModelProto], **bodies: Mapping[str, Any]) -> Path:
    """Write a package with the component ``main``; ``bodies`` are keys of single variants beside the model.

    A variant is for the CPU provider, unless its body says otherwise. A key ``ort`` extends what onnxruntime
    reads.
    """
    table: dict[str, Any] = {}
    for name, model in variants.items():
        (root / name).mkdir(parents=True)
        onnx.save(model, root / name / "model.onnx")
        body = dict(bodies.get(name, {}))
        ort = {"model_file": "model.onnx", **body.pop("ort", {})}
        table[name] = {"ep": CPU, "executor_info": {"ort": ort}, **body}
    write_manifest(root, {"main": {"variants": table}})
    return root


def write_manifest(root: Path, components: Mapping[str, Any]) -> None:
    """Write the manifest of a package."""
    manifest = {"schema_version": "1.0", "components": components}
    (root / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
