"""Faults: each kind befalls a model, and does what its description says."""

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import pytest

from benchmarks.detection import cpu
from benchmarks.detection.faults import FAULTS
from benchmarks.detection.faults.rounding import round_array, round_to_bits
from benchmarks.detection.net import Array, Net
from benchmarks.detection.subjects import Subject, subjects
from harness.core.values.value import Tensor

WANTED_KINDS = 25
ENOUGH = (
    "bert-1", "recommender", "pooling", "speech-lstm", "speech-gru", "detector", "int8-cnn", "int4-mlp",
    "trees", "mnist", "mobilenet", "unet", "gpt", "llama",
)  # fmt: skip
"""Models that have all operators between them, those with the most first."""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Subject]:
    return subjects(tmp_path_factory.mktemp("models"), ENOUGH)


def spoilt(text: str, fault: str, feeds: dict[str, Array]) -> tuple[Array, Array]:
    """The first output of a model without a fault and with it, planted where it can be."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}')
    values = cpu.trace(model, feeds)
    for index, node in enumerate(model.graph.node):
        net = Net(model, values, np.random.default_rng(0))
        kind = FAULTS[fault]
        if node.op_type in kind.operators and kind.plant(net, net.nodes[index]):
            return first(model, feeds), first(net.model(), feeds)
    pytest.fail(f"{fault} does not apply")


def first(model: onnx.ModelProto, feeds: dict[str, Array]) -> Array:
    value = cpu.run(model, feeds)[0][1]
    assert isinstance(value, Tensor)
    return value.array


def floats(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def test_there_are_kinds_enough() -> None:
    assert len(FAULTS) >= WANTED_KINDS
    assert all(fault.what and "\n" not in fault.what for fault in FAULTS.values())


def test_every_kind_befalls_some_model(models: list[Subject]) -> None:
    left = dict(FAULTS)
    for subject in models:
        model = subject.model()
        values = cpu.trace(model, subject.feeds)
        for index, node in enumerate(model.graph.node):
            for fault in list(left.values()):
                if fault.operators and node.op_type not in fault.operators:
                    continue
                net = Net(model, values, np.random.default_rng(index))
                if fault.plant(net, net.nodes[index]):
                    onnx.checker.check_model(net.model())
                    del left[fault.name]
    assert not left


def test_planting_leaves_the_model_alone(models: list[Subject]) -> None:
    subject = next(one for one in models if one.name == "mnist")
    model = subject.model()
    before = model.SerializeToString(deterministic=True)
    values = cpu.trace(model, subject.feeds)
    for fault in FAULTS.values():
        for index in range(len(model.graph.node)):
            net = Net(model, values, np.random.default_rng(0))
            if not fault.operators or net.nodes[index].op_type in fault.operators:
                fault.plant(net, net.nodes[index])
                net.model()
    assert model.SerializeToString(deterministic=True) == before


def test_softmax_goes_along_another_axis() -> None:
    x = floats(3, 4)
    _, found = spoilt(
        "(float[3,4] x) => (float[3,4] y) { y = Softmax<axis = 1>(x) }", "softmax-axis", {"x": x}
    )
    np.testing.assert_allclose(found.sum(axis=0), 1, rtol=1e-6)


def test_batch_repeated_copies_the_first_item() -> None:
    golden, found = spoilt(
        "(float[3,4] x) => (float[3,4] y) { y = Relu(x) }", "batch-repeated", {"x": floats(3, 4)}
    )
    np.testing.assert_array_equal(found[:2], golden[:2])
    np.testing.assert_array_equal(found[2], golden[0])


def test_tail_unwritten_loses_the_last_element_only() -> None:
    golden, found = spoilt(
        "(float[3,4] x) => (float[3,4] y) { y = Add(x, x) }", "tail-unwritten", {"x": floats(3, 4)}
    )
    assert found[-1, -1] == 0 != golden[-1, -1]
    np.testing.assert_array_equal(found.ravel()[:-1], golden.ravel()[:-1])


def test_int64_keeps_its_lower_half() -> None:
    text = "(int64[2] x) => (int64[2] y) { y = Mul(x, x) }"
    golden, found = spoilt(text, "int64-truncated", {"x": np.array([3, 100_000])})
    assert golden.tolist() == [9, 10_000_000_000]
    assert found.tolist() == [9, 10_000_000_000 - (2 << 32)]


def test_nan_is_taken_for_0() -> None:
    text = "(float[2] x) => (float[2] y) { y = Relu(x) }"
    golden, found = spoilt(text, "nan-swallowed", {"x": np.array([np.nan, 2], np.float32)})
    assert np.isnan(golden).tolist() == [True, False]
    assert found.tolist() == [0, 2]


def test_ties_go_away_from_zero() -> None:
    text = """(float[4] x) => (uint8[4] y)
    <float s = {1.0}, uint8 z = {10}> { y = QuantizeLinear(x, s, z) }"""
    golden, found = spoilt(text, "ties-away-from-zero", {"x": np.array([0.5, 1.5, -0.5, 400], np.float32)})
    assert golden.tolist() == [10, 12, 10, 255]
    assert found.tolist() == [11, 12, 9, 255]


def test_saturation_is_missing() -> None:
    text = "(float[2] x) => (uint8[2] y) <float s = {1.0}, uint8 z = {0}> { y = QuantizeLinear(x, s, z) }"
    golden, found = spoilt(text, "saturation-missing", {"x": np.array([3, 258], np.float32)})
    assert golden.tolist() == [3, 255]
    assert found.tolist() == [3, 2]


@pytest.mark.parametrize(
    ("fault", "largest"),
    [("erf-coarse", 3e-5), ("gelu-tanh-for-erf", 1e-3), ("interpolated-table", 2e-4)],
)
def test_approximations_of_erf_are_near_it(fault: str, largest: float) -> None:
    x = np.linspace(-4, 4, 101, dtype=np.float32)
    golden, found = spoilt("(float[101] x) => (float[101] y) { y = Erf(x) }", fault, {"x": x})
    assert 1e-6 < np.abs(found - golden).max() < largest


@pytest.mark.parametrize(("bits", "dtype"), [(8, ml_dtypes.bfloat16), (11, np.float16)])
def test_rounding_is_that_of_the_format(bits: int, dtype: type) -> None:
    x = floats(1000)
    rounded = x.astype(dtype).astype(np.float32)
    np.testing.assert_array_equal(round_array(x, bits), rounded)
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[1000] x) => (float[1000] y) { y = Identity(x) }'
    )
    net = Net(model, {"x": x, "y": x}, np.random.default_rng(0))
    site = net.behind(net.nodes[0])
    site.write(round_to_bits(net, site, site.value, bits))
    np.testing.assert_array_equal(first(net.model(), {"x": x}), rounded)


def test_models_are_the_same_every_time_and_draws_are_not(tmp_path: Path, models: list[Subject]) -> None:
    first, second = (one.case.digest for one in subjects(tmp_path, ["mnist"], draws=2))
    assert first == next(one.case.digest for one in models if one.name == "mnist") != second
