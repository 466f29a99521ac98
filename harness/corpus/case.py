"""A case: one model with everything that is needed to run it and to know the answer."""

import hashlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.core.value import from_wire, to_wire, value_bytes
from harness.corpus.data_sets import DataSet, NamedValues, generated, hash_inputs, read_data_sets
from harness.corpus.errors import ModelError, blame
from harness.corpus.external import external_files
from harness.corpus.facts import ModelFacts, model_facts
from harness.corpus.file_state import FileState, cached_state, files_state, model_state
from harness.corpus.port import Port, ValueType, model_text, value_type
from harness.corpus.protos import parse
from harness.corpus.shelf import LARGEST, open_shelf
from harness.corpus.suites import Suite
from harness.corpus.tolerance_file import TOLERANCE_FILE, ExpectedTolerance, read_tolerance

if TYPE_CHECKING:
    import onnx

__all__ = ["Case", "DataSet", "load_case"]

_MODEL_LIMIT = (1 << 31) - 1
"""Bytes that a protobuf message may have; larger models keep their weights in other files."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One model, ready to run.

    Attributes:
        model_path: The model's file.
        external: Its external data files, all below the model's folder.
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
    external: tuple[Path, ...] = ()
    ports: tuple[Port, ...]
    outputs: tuple[str, ...]
    output_types: tuple[ValueType, ...]
    data_sets: tuple[DataSet, ...]
    rtol: float
    atol: float
    digest: str
    facts: ModelFacts

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the values of all data sets take."""
        return sum(
            value_bytes(value)
            for data_set in self.data_sets
            for _, value in (*data_set.inputs, *data_set.expected)
        )


def load_case(suite: Suite, model: str, dimensions: Mapping[str, int], seed: int = 0) -> Case:
    """Read one model with its data sets, or with a generated one where it has none.

    External data is checked and hashed, not loaded. What was read before comes from the shelf of the suite's
    cache. For a built-in suite it is enough that the model is still there. For a folder the model, its test
    data and its external data must look unchanged: same files, same sizes, same times; see ``file_state``.

    Args:
        suite: The suite.
        model: One of its models.
        dimensions: Sizes of symbolic dimensions by name; the others are 1 in generated inputs.
        seed: Of generated inputs.

    Raises:
        ModelError: The model, its external data or its test data is missing or broken.
    """
    path = suite.model_path(model)
    # Taken before anything is read: what changes from now on has another state the next time.
    began, state = time.time_ns(), _state(suite, model, path)
    if suite.cache is None or state is None:
        return _read(suite, model, path, dimensions, seed)[0]
    shelf = open_shelf(suite.cache)
    name = repr((str(path), sorted(dimensions.items()), seed))
    kept = shelf.get(name, state.text)
    case = None if kept is None else _unpack(kept, path)
    if case is None:
        case, external = _read(suite, model, path, dimensions, seed)
        if external and state.settled(began) and external.settled(began) and case.nbytes < LARGEST:
            shelf.put(name, state.text, _pack(case, external))
    return case


def _state(suite: Suite, model: str, path: Path) -> FileState | None:
    return cached_state(path) if suite.kind == "built_in" else model_state(path, suite.data_folder(model))


def _read(
    suite: Suite, model: str, path: Path, dimensions: Mapping[str, int], seed: int
) -> tuple[Case, FileState | None]:
    """The case from its files, with the state of its external data before it was read."""
    with blame(path):
        if path.stat().st_size > _MODEL_LIMIT:
            raise ModelError(path, "larger than 2 GiB, which ONNX does not allow; use external data")
        if not path.is_file():
            raise ModelError(path, "not a file")
        content = path.read_bytes()
        proto = _parse(content)
        digest = hashlib.sha256(content)
        files = external_files(proto, path)
        external = files_state(files)
        for file in files:
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
        declared = dict(_declared(info, dimensions) for info in proto.graph.input)
        weights = {weight.name for weight in proto.graph.initializer}
        weights.update(sparse.values.name for sparse in proto.graph.sparse_initializer)
        ports = tuple(Port(name=name, type=kind) for name, kind in declared.items() if name not in weights)
        produced = [_declared(info, dimensions) for info in proto.graph.output]
        outputs = tuple(Port(name=name, type=kind) for name, kind in produced)
        facts = model_facts(proto)
    home = suite.data_folder(model)
    tolerance = ExpectedTolerance()
    data_sets = read_data_sets(home, ports, outputs, declared)
    if data_sets:
        with blame(home / TOLERANCE_FILE):
            tolerance = read_tolerance(home)
    else:
        data_sets = (generated(path, model, ports, seed),)
    for data_set in data_sets:
        hash_inputs(digest, data_set)
    case = Case(
        model_path=path,
        external=files,
        ports=ports,
        outputs=tuple(port.name for port in outputs),
        output_types=tuple(port.type for port in outputs),
        data_sets=data_sets,
        rtol=tolerance.rtol,
        atol=tolerance.atol,
        digest=digest.hexdigest(),
        facts=facts,
    )
    return case, external


def _declared(info: "onnx.ValueInfoProto", dimensions: Mapping[str, int]) -> tuple[str, ValueType]:
    return model_text(info.name), value_type(info.type, dimensions)


def _parse(content: bytes) -> "onnx.ModelProto":
    import onnx

    model: onnx.ModelProto = parse(onnx.ModelProto, content)
    # Protobuf reads an empty file, and a good deal of random bytes, as a message without any field.
    if not model.HasField("graph"):
        raise ValueError("not an ONNX model: it has no graph")
    return model


_WireValues = tuple[tuple[str, Any], ...]


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    """A case as it lies on the shelf, values in their wire form.

    Attributes:
        files: External data files, relative to the model's folder.
        external: Their state.
    """

    files: tuple[str, ...]
    external: str
    ports: tuple[Port, ...]
    outputs: tuple[str, ...]
    output_types: tuple[ValueType, ...]
    data_sets: tuple[tuple[str, _WireValues, _WireValues], ...]
    rtol: float
    atol: float
    digest: str
    facts: ModelFacts


_decoder = msgspec.msgpack.Decoder(_Kept)
_encoder = msgspec.msgpack.Encoder()


def _pack(case: Case, external: FileState) -> bytes:
    kept = _Kept(
        files=tuple(str(file.relative_to(case.model_path.parent)) for file in case.external),
        external=external.text,
        ports=case.ports,
        outputs=case.outputs,
        output_types=case.output_types,
        data_sets=tuple((one.name, _to_wire(one.inputs), _to_wire(one.expected)) for one in case.data_sets),
        rtol=case.rtol,
        atol=case.atol,
        digest=case.digest,
        facts=case.facts,
    )
    return _encoder.encode(kept)


def _unpack(content: bytes, path: Path) -> Case | None:
    """The case that was kept, or None where its external data has changed."""
    kept = _decoder.decode(content)
    files = tuple(path.parent / file for file in kept.files)
    if files:
        external = files_state(files)
        if external is None or external.text != kept.external:
            return None
    return Case(
        model_path=path,
        external=files,
        ports=kept.ports,
        outputs=kept.outputs,
        output_types=kept.output_types,
        data_sets=tuple(
            DataSet(name=name, inputs=_from_wire(inputs), expected=_from_wire(expected))
            for name, inputs, expected in kept.data_sets
        ),
        rtol=kept.rtol,
        atol=kept.atol,
        digest=kept.digest,
        facts=kept.facts,
    )


def _to_wire(values: NamedValues) -> _WireValues:
    return tuple((name, to_wire(value)) for name, value in values)


def _from_wire(wires: _WireValues) -> NamedValues:
    return tuple((name, from_wire(wire)) for name, wire in wires)
