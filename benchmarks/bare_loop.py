"""Create, run once, compare: what the harness is measured against. A script of its own, without the harness.

It has nothing to lose and keeps nothing: one process, one thread for onnxruntime, test data parsed before
the clock starts, no placement, no record, no second run to see whether the first was luck. It crashes where
a provider does, so models known for that have to be left out by name.

    python bare_loop.py FOLDER TARGET [--hold] [--skip GLOB]...

FOLDER holds one folder for each model, TARGET is a matrix's target as JSON. With ``--hold`` a session of a
one-node model lives as long as the loop: some providers otherwise set their device up anew for every model.
One line of JSON comes out: the loop's seconds, and how many models there were, ran and gave the right answer.
"""

import argparse
import fnmatch
import importlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper

ort: Any = importlib.import_module("onnxruntime")  # has no types

HELD = "test_relu"
RTOL, ATOL = 1e-3, 1e-5

READERS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "tensor_type": (onnx.TensorProto, onnx.numpy_helper.to_array),
    "sequence_type": (onnx.SequenceProto, onnx.numpy_helper.to_list),
    "optional_type": (onnx.OptionalProto, onnx.numpy_helper.to_optional),
}


def main() -> None:
    """Read all the data, loop, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("target", type=json.loads)
    parser.add_argument("--hold", action="store_true")
    parser.add_argument("--skip", action="append", default=[])
    arguments = parser.parse_args()
    ort.set_default_logger_severity(4)
    create = creator(arguments.target)
    cases = [
        read(folder)
        for folder in sorted(path.parent for path in arguments.folder.glob("*/test_data_set_0"))
        if not any(fnmatch.fnmatch(folder.name, glob) for glob in arguments.skip)
    ]
    held = create(arguments.folder / HELD / "model.onnx") if arguments.hold else None
    started = time.perf_counter()
    results = [attempt(create, *case) for case in cases]
    took_s = time.perf_counter() - started
    del held
    ran = sum(result is not None for result in results)
    print(
        "\n" + json.dumps({"loop_s": took_s, "models": len(cases), "ran": ran, "right": results.count(True)})
    )


def attempt(
    create: Callable[[Path], Any], model: Path, feeds: dict[str, Any], expected: list[Any]
) -> bool | None:
    """Whether the answer is right; None where there is none."""
    try:
        outputs = create(model).run(None, feeds)
    except Exception:  # noqa: BLE001 - what cannot be loaded, fed or computed costs its time and no more
        return None
    return len(outputs) == len(expected) and all(map(alike, outputs, expected))


def alike(found: Any, expected: Any) -> bool:
    """Whether two values agree, as simply as numpy can say it."""
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(alike, found, expected))
    if expected is None or found is None:
        return found is expected
    found, expected = np.asarray(found), np.asarray(expected)
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return False
    if found.dtype.kind not in "fc":
        return np.array_equal(found, expected)
    return np.allclose(found, expected, rtol=RTOL, atol=ATOL, equal_nan=True)


def creator(target: dict[str, Any]) -> Callable[[Path], Any]:
    """A function that makes a session of a model's file on the target."""
    name = target["provider"]
    options = {key: str(value) for key, value in target.get("options", {}).items()}
    devices: list[Any] = []
    if "plugin" in target:
        library = importlib.import_module(target["plugin"]).get_library_path()
        ort.register_execution_provider_library(name, library)
        kind = target.get("device", {}).get("type", "")
        devices = [
            device
            for device in ort.get_ep_devices()
            if device.ep_name == name and kind in device.device.type.name
        ][:1]

    def create(model: Path) -> Any:
        settings = ort.SessionOptions()
        settings.intra_op_num_threads = 1
        if not devices:
            return ort.InferenceSession(model, settings, [name], [options], enable_fallback=0)
        settings.add_provider_for_devices(devices, options)
        return ort.InferenceSession(model, settings, enable_fallback=0)

    return create


def read(folder: Path) -> tuple[Path, dict[str, Any], list[Any]]:
    """A model's file, its inputs by name and its expected outputs; the first data set."""
    path = folder / "model.onnx"
    graph = onnx.load(path, load_external_data=False).graph
    data = folder / "test_data_set_0"
    inputs = [value(data / f"input_{at}.pb", info) for at, info in enumerate(graph.input)]
    feeds = {info.name: item for info, item in zip(graph.input, inputs, strict=True) if item is not None}
    return path, feeds, [value(data / f"output_{at}.pb", info) for at, info in enumerate(graph.output)]


def value(path: Path, info: onnx.ValueInfoProto) -> Any:
    """A serialized value as numpy has it; None for an empty optional."""
    kind, convert = READERS[info.type.WhichOneof("value")]
    return convert(kind.FromString(path.read_bytes()))


if __name__ == "__main__":
    main()
