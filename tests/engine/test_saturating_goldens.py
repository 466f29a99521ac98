"""Goldens of 8-bit products: right on every processor, also where the CPU provider's own sums saturate."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.core.records.verdict import Verdict
from harness.core.values.value import Array, Tensor
from harness.corpus.load_case import load_case
from harness.corpus.suites.suite import open_folder
from harness.golden.golden_cache import GoldenStore
from harness.golden.provenance import provenance
from tests.kit import by_model, run_matrix

pytestmark = pytest.mark.real_ep
ROWS, DEPTH, COLUMNS = 4, 64, 32


def write_product(path: Path, *, constant: bool) -> None:
    """Write MatMulInteger of uint8 and large int8, the second a weight or an input."""
    weights = np.random.default_rng(7).choice(np.array([-128, 127], np.int8), (DEPTH, COLUMNS))
    data = np.full((ROWS, DEPTH), 255, np.uint8)
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["a", "b"], ["y"])],
        "product",
        [helper.make_tensor_value_info("a", TensorProto.UINT8, data.shape)]
        + [helper.make_tensor_value_info("b", TensorProto.INT8, weights.shape)] * (not constant),
        [helper.make_tensor_value_info("y", TensorProto.INT32, (ROWS, COLUMNS))],
        [numpy_helper.from_array(weights, "b")] if constant else [],
    )
    folder = path.parent / "test_data_set_0"
    folder.mkdir(parents=True)
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path)
    for number, array in enumerate([data] if constant else [data, weights]):
        content = numpy_helper.from_array(array, "ab"[number]).SerializeToString()
        (folder / f"input_{number}.pb").write_bytes(content)


def exact(path: Path) -> Array:
    model = onnx.load(path)
    weights = numpy_helper.to_array(model.graph.initializer[0]).astype(np.int64)
    product: Array = np.full((ROWS, DEPTH), 255, np.int64) @ weights
    return product


def test_a_golden_has_the_exact_sums_and_judges_the_cpu_provider_by_them(tmp_path: Path) -> None:
    model = tmp_path / "models" / "product" / "model.onnx"
    write_product(model, constant=True)
    ort: Any = pytest.importorskip("onnxruntime")
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"a": np.full((ROWS, DEPTH), 255, np.uint8)})
    saturates = not np.array_equal(np.asarray(found), exact(model))
    records = by_model(
        run_matrix(
            tmp_path,
            """
            schema = 1
            [models]
            folders = ["models"]
            [[target]]
            name = "cpu"
            provider = "CPUExecutionProvider"
            """,
        )
    )
    (record,) = records.values()
    assert record.verdict is (Verdict.MISMATCH if saturates else Verdict.PASS)
    assert ("x64quantprecision" in record.reason) is saturates
    suite = open_folder(tmp_path / "models")
    golden = GoldenStore(provenance()).load(load_case(suite, record.model, {}))
    assert golden is not None
    value = dict(golden.outputs[0])["y"]
    assert isinstance(value, Tensor)
    assert np.array_equal(value.array, exact(model))
