"""A suite of one tiny model that shows whether a provider computes anything."""

from pathlib import Path

import numpy as np

from harness.corpus.cache import cache_root, fill_once
from harness.corpus.suites import Suite, open_folder

FORMAT = 1
"""Version of the model; part of its folder's name."""

MODEL = "probe.onnx"


def probe_suite() -> Suite:
    """Return the suite: one model with its expected output, kept in the cache so that its golden is reused.

    Its operators are Conv and Relu; nearly every provider supports one of them. All values are small
    integers, exact at every precision that a provider may use.

    Raises:
        UsageError: The cache cannot be written.
    """
    return open_folder(fill_once(cache_root() / f"probe-v{FORMAT}", _write))


def _write(folder: Path) -> None:
    import onnx
    from onnx import helper, numpy_helper

    image = (np.arange(16, dtype=np.float32) % 5 - 2).reshape(1, 1, 4, 4)
    kernel = np.array([[1, 0, -1], [2, 0, -2], [1, 0, -1]], np.float32).reshape(1, 1, 3, 3)
    windows = np.lib.stride_tricks.sliding_window_view(image[0, 0], (3, 3))
    answer = np.maximum((windows * kernel[0, 0]).sum(axis=(2, 3)), 0).reshape(1, 1, 2, 2)
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["c"], name="conv"),
            helper.make_node("Relu", ["c"], ["y"], name="relu"),
        ],
        "probe",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, image.shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, answer.shape)],
        [numpy_helper.from_array(kernel, "w")],
    )
    # An opset and IR version that the oldest supported runtime accepts.
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7), folder / MODEL
    )
    data = folder / "test_data_set_0"
    data.mkdir()
    for name, value in (("input_0.pb", image), ("output_0.pb", answer.astype(np.float32))):
        (data / name).write_bytes(numpy_helper.from_array(value).SerializeToString())
