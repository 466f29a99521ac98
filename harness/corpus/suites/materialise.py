"""Suites that onnx has as code, or in its own layout, written in ONNX's usual layout.

``<model>/model.onnx``, ``<model>/test_data_set_0/input_0.pb``, ``output_0.pb``, and ``<model>/data.json`` if
the tolerance of the expected data is not the default.
"""

import shutil
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx

from harness.core.values.value import Map, Sequence, Value, tensor
from harness.corpus.beside.tolerance_file import TOLERANCE_FILE, ExpectedTolerance
from harness.corpus.model.nodes import weight_names
from harness.corpus.model.port import value_type
from harness.corpus.model.protos import encode, tensor_value


def write_node_suite(folder: Path) -> None:
    """Generate ONNX's operator tests (about 5 s)."""
    from onnx.backend.test.case.node import collect_testcases

    # Collecting seeds numpy's global generator for each test, so the data is the same everywhere. Callers'
    # own random numbers must not change. The tests' overflows and divisions by zero are on purpose.
    state = np.random.get_state()  # noqa: NPY002 - the generator that onnx uses
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # onnx's own annotations allow cases without a model; those of this suite all have one.
            cases: list[Any] = collect_testcases(None)
    finally:
        np.random.set_state(state)  # noqa: NPY002
    for case in cases:
        home = folder / case.name
        home.mkdir()
        (home / "model.onnx").write_bytes(case.model.SerializeToString())
        _write_tolerance(home, ExpectedTolerance(rtol=case.rtol, atol=case.atol))
        for index, (inputs, outputs) in enumerate(case.data_sets):
            data_set = home / f"test_data_set_{index}"
            data_set.mkdir()
            _write_values(data_set, "input", inputs, case.model.graph.input)
            _write_values(data_set, "output", outputs, case.model.graph.output)


def write_light_suite(folder: Path, light: Path) -> None:
    """Copy the nine light models, each with the input that its expected output was computed from.

    They are in folder ``light`` of onnx's test data; ``real`` beside it has the tolerances.
    """
    tolerances = _light_tolerances(light.with_name("real"))
    for path in sorted(light.glob("light_*.onnx")):
        model = onnx.load(path, load_external_data=False)
        fed = [port for port in model.graph.input if port.name not in weight_names(model.graph)]
        home = folder / path.stem
        data_set = home / "test_data_set_0"
        data_set.mkdir(parents=True)
        shutil.copyfile(path, home / "model.onnx")
        _write_tolerance(home, tolerances.get(path.name, ExpectedTolerance()))
        _write_values(data_set, "input", [_ramp(port) for port in fed], fed)
        for index in range(len(model.graph.output)):
            expected = path.with_name(f"{path.stem}_output_{index}.pb")
            shutil.copyfile(expected, data_set / f"output_{index}.pb")


def _write_values(
    data_set: Path, role: str, items: Iterable[Any], declared: Iterable[onnx.ValueInfoProto]
) -> None:
    for index, (item, info) in enumerate(zip(items, declared, strict=True)):
        data = encode(_as_value(item), value_type(info.type, {}))
        (data_set / f"{role}_{index}.pb").write_bytes(data)


def _as_value(item: Any) -> Value:
    """Return a value of ONNX's test cases: array, numpy scalar, ``TensorProto``, list, dict or None."""
    if item is None:
        return None
    if isinstance(item, list):
        return Sequence(items=tuple(_as_value(entry) for entry in item))
    if isinstance(item, dict):
        return Map(keys=tensor(np.array(list(item))), values=tensor(np.array(list(item.values()))))
    if hasattr(item, "data_type"):
        return tensor_value(item)
    return tensor(np.asarray(item))


def _ramp(info: onnx.ValueInfoProto) -> np.ndarray[Any, Any]:
    """Return ``arange(n) / n`` in the declared shape, as ONNX's own runner feeds to these models."""
    shape = [size or 1 for size in value_type(info.type, {}).shape or ()]
    count = int(np.prod(shape))
    return (np.arange(count).reshape(shape) / count).astype(np.float32)


class _RealTest(msgspec.Struct):
    url: str
    rtol: float = ExpectedTolerance().rtol
    atol: float = ExpectedTolerance().atol


def _light_tolerances(real: Path) -> dict[str, ExpectedTolerance]:
    """Return the tolerances by file name; ONNX keeps them apart from the light models."""
    tests = [msgspec.json.decode(file.read_bytes(), type=_RealTest) for file in real.glob("*/data.json")]
    return {test.url.rpartition("/")[2]: ExpectedTolerance(rtol=test.rtol, atol=test.atol) for test in tests}


def _write_tolerance(home: Path, tolerance: ExpectedTolerance) -> None:
    if tolerance != ExpectedTolerance():
        (home / TOLERANCE_FILE).write_bytes(msgspec.json.encode(tolerance))
