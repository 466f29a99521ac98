"""A case: one model with everything that is needed to run it and to know the answer."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.core.value import STRING, Tensor, Value, leaves, pack
from harness.corpus.errors import ModelError
from harness.corpus.external import external_files
from harness.corpus.facts import ModelFacts, model_facts
from harness.corpus.generate import generate
from harness.corpus.port import Port, ValueType, value_type
from harness.corpus.protos import decode_named
from harness.corpus.suites import Suite
from harness.corpus.tolerance_file import read_tolerance

if TYPE_CHECKING:
    import onnx

GENERATED = "generated"
"""Name of the data set that was made here because the model has none."""

_MODEL_LIMIT = (1 << 31) - 1
"""Bytes that a protobuf message may have; larger models keep their weights in other files."""

_DATA_SET = re.compile(r"test_data_set_(\d+)")
_VALUE_FILE = re.compile(r"(input|output)_(\d+)\.pb")

NamedValues = tuple[tuple[str, Value], ...]


class DataSet(msgspec.Struct, frozen=True, kw_only=True):
    """Inputs of one run, with the expected outputs where there are any.

    Attributes:
        name: Such as ``test_data_set_0``, or ``generated``.
        inputs: ``(input name, value)`` for every input that has to be fed, in the order of the model.
        expected: ``(output name, value)`` for the outputs that the data set knows; may be empty.
    """

    name: str
    inputs: NamedValues
    expected: NamedValues = ()


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One model, ready to run.

    Attributes:
        model_path: The model's file.
        ports: The graph inputs that have to be fed: those without an initializer.
        outputs: Names of the graph outputs.
        output_types: Their declared types, in the same order.
        data_sets: At least one.
        rtol: Relative tolerance of the expected outputs; says nothing about any execution provider.
        atol: Absolute tolerance of the expected outputs.
        digest: SHA-256 in hex over the model, its external data and the inputs of all data sets.
        facts: What the model is made of.
    """

    model_path: Path
    ports: tuple[Port, ...]
    outputs: tuple[str, ...]
    output_types: tuple[ValueType, ...]
    data_sets: tuple[DataSet, ...]
    rtol: float
    atol: float
    digest: str
    facts: ModelFacts


def load_case(suite: Suite, model: str, dimensions: Mapping[str, int], seed: int = 0) -> Case:
    """Read one model with its data sets, or with a generated one where it has none.

    External data is checked and hashed, not loaded.

    Args:
        suite: The suite.
        model: One of its models.
        dimensions: Sizes of symbolic dimensions by name; the others are 1 in generated inputs.
        seed: Of generated inputs.

    Raises:
        ModelError: The model, its external data or its test data is missing or broken.
    """
    path = suite.model_path(model)
    with _blame(path):
        if path.stat().st_size > _MODEL_LIMIT:
            raise ModelError(path, "larger than 2 GiB, which ONNX does not allow; use external data")
        content = path.read_bytes()
        proto = _parse(content)
        digest = hashlib.sha256(content)
        for file in external_files(proto, path):
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
        declared = {info.name: value_type(info.type, dimensions) for info in proto.graph.input}
        weights = {weight.name for weight in proto.graph.initializer}
        ports = tuple(Port(name=name, type=kind) for name, kind in declared.items() if name not in weights)
        outputs = tuple(Port(name=info.name, type=value_type(info.type, dimensions)) for info in proto.graph.output)
        facts = model_facts(proto)
    home = suite.data_folder(model)
    data_sets = tuple(_read_data_set(folder, ports, outputs, declared) for folder in _data_set_folders(home))
    if not data_sets:
        data_sets = (_generated(path, model, ports, seed),)
    for data_set in data_sets:
        _hash_inputs(digest, data_set)
    with _blame(home / "data.json"):
        tolerance = read_tolerance(home)
    return Case(
        model_path=path,
        ports=ports,
        outputs=tuple(port.name for port in outputs),
        output_types=tuple(port.type for port in outputs),
        data_sets=data_sets,
        rtol=tolerance.rtol,
        atol=tolerance.atol,
        digest=digest.hexdigest(),
        facts=facts,
    )
