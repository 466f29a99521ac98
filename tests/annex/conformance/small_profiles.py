"""Profiles of a few cases, with archives as a published one has them."""

import functools
import hashlib
import io
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from harness.annex.conformance.profiles.case_files import digests_of, noise_file
from harness.annex.conformance.profiles.profile import (
    CORE,
    Feature,
    Profile,
    ProfileCase,
    ProfileRules,
    encode_profile,
)
from harness.annex.conformance.profiles.profile_archive import write_archive
from harness.annex.conformance.verify.frozen_cases import FrozenCase, frozen_cases

Array = np.ndarray[Any, np.dtype[np.float32]]

RULES = ProfileRules(
    tolerances={"float32": (1e-4, 1e-5), "float16": (1e-3, 2.5e-3)}, noise_rms=3.0, noise_max=32.0, steps=1.0
)
SHAPE = (4, 16)

_OPERATORS = (
    ("Add", CORE, 21),
    ("Block", CORE, 21),
    ("FusedMatMul", "contrib", 21),
    ("Gather", CORE, 13),
    ("Neg", CORE, 13),
    ("Neg", CORE, 21),
)
"""Kind of model, feature and opset of the cases of ``operators_profile``; in the order of their names."""


@functools.cache
def tiny_profile(cases: int = 8) -> Profile:
    """Return a profile of so many cases; every fourth one belongs to the feature ``float16``."""
    features = [
        Feature(name=name, meaning=f"models of {name}") for name in ("float16", "float64", "float16+float64")
    ]
    kinds = [("Block", "float16" if index % 4 == 3 else CORE, 21) for index in range(cases)]
    names = [f"suite/case_{index:03}" for index in range(cases)]
    return _made("tiny", features, [*zip(names, kinds, strict=True)])


@functools.cache
def operators_profile(name: str = "operators") -> Profile:
    """Return a profile whose cases have one operator each, but for one; the same under every name."""
    features = [Feature(name="contrib", meaning="operators of com.microsoft")]
    names = [f"suite/{kind.lower()}_{index:03}" for index, (kind, *_) in enumerate(_OPERATORS)]
    return _made(name, features, [*zip(names, _OPERATORS, strict=True)])


def golden_of(index: int) -> Array:
    """Return the golden of a case."""
    return np.random.default_rng(index).normal(size=SHAPE).astype(np.float32)


def write_profile(folder: Path, profile: Profile) -> Path:
    """Write a published profile into a folder, beside others, and return the folder."""
    folder.mkdir(exist_ok=True)
    (folder / f"{profile.label}.json").write_bytes(encode_profile(profile))
    (folder / f"{profile.label}.zip").write_bytes(_MADE[profile.archive][1])
    return folder


def frozen_of(profile: Profile) -> dict[str, FrozenCase]:
    """Return what is frozen with the cases of a profile of this module."""
    return _frozen(profile.archive)


_MADE: dict[str, tuple[Profile, bytes]] = {}
"""SHA-256 of an archive -> a profile of it, as it was made, and the archive."""


@functools.cache
def _frozen(digest: str) -> dict[str, FrozenCase]:
    profile, content = _MADE[digest]
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "made.zip"
        archive.write_bytes(content)
        return frozen_cases(profile, archive)


def _made(
    name: str, features: Sequence[Feature], cases: Sequence[tuple[str, tuple[str, str, int]]]
) -> Profile:
    files: dict[str, bytes] = {}
    found = []
    for index, (path, (kind, of, opset)) in enumerate(cases):
        model = _model(kind, opset)
        own = _files_of(index, model)
        files |= {f"{path}/{file}": content for file, content in own.items()}
        digests = digests_of(own)
        ops = Counter(f"{node.domain}.{node.op_type}".lstrip(".") for node in model.graph.node)
        found.append(
            ProfileCase(
                name=path,
                feature=of,
                model=digests.model,
                inputs=digests.inputs,
                golden=digests.golden,
                ops=dict(ops),
                types=("float32", "int64") if kind == "Gather" else ("float32",),
                opset=opset,
            )
        )
    content = write_archive(files)
    profile = Profile(
        schema=1,
        name=name,
        version=1,
        title=name.capitalize(),
        about="For tests.",
        archive=hashlib.sha256(content).hexdigest(),
        rules=RULES,
        features=tuple(features),
        cases=tuple(found),
    )
    _MADE.setdefault(profile.archive, (profile, content))
    return profile


def _model(kind: str, opset: int) -> onnx.ModelProto:
    """Return a model of one operator; or a ``Block``: a product and two sums."""
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)]
    square = [numpy_helper.from_array(np.eye(SHAPE[1], dtype=np.float32), "w")]
    nodes, imports = [helper.make_node(kind, ["x"], ["y"])], [helper.make_opsetid("", opset)]
    if kind == "Add":
        nodes = [helper.make_node("Add", ["x", "x"], ["y"])]
    elif kind == "Gather":
        inputs.append(helper.make_tensor_value_info("i", TensorProto.INT64, SHAPE[:1]))
        nodes = [helper.make_node("Gather", ["x", "i"], ["y"])]
    elif kind == "FusedMatMul":
        nodes = [helper.make_node(kind, ["x", "w"], ["y"], domain="com.microsoft")]
        imports.append(helper.make_opsetid("com.microsoft", 1))
    elif kind == "Block":
        nodes = [
            helper.make_node("MatMul", ["x", "w"], ["p"]),
            helper.make_node("Add", ["p", "p"], ["s"]),
            helper.make_node("Add", ["s", "x"], ["y"]),
        ]
    weights = square if any("w" in node.input for node in nodes) else []
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, SHAPE)]
    graph = helper.make_graph(nodes, kind.lower(), inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


_FACTORS = {"block": 1 / 3, "add": 1 / 2, "neg": -1.0}
"""Graph -> its golden times this is its input."""


def _files_of(index: int, model: onnx.ModelProto) -> dict[str, bytes]:
    """Return the files of a case, with the noise of every second one."""
    golden = golden_of(index)
    fed = golden * np.float32(_FACTORS.get(model.graph.name, 1.0))
    files = {
        "model.onnx": model.SerializeToString(),
        "test_data_set_0/input_0.pb": numpy_helper.from_array(fed, "x").SerializeToString(),
        "test_data_set_0/output_0.pb": numpy_helper.from_array(golden, "y").SerializeToString(),
    }
    if len(model.graph.input) > 1:
        rows = numpy_helper.from_array(np.arange(SHAPE[0], dtype=np.int64), "i")
        files["test_data_set_0/input_1.pb"] = rows.SerializeToString()
    if index % 2:
        buffer = io.BytesIO()
        np.save(buffer, np.abs(golden).astype(np.float64) * 2.0**-24 + 1e-9)
        files[noise_file(0, 0)] = buffer.getvalue()
    return files
