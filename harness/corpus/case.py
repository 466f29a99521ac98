"""A case: one model with everything that is needed to run it and to know the answer."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harness.core.value import STRING, Tensor, Value, leaves, pack
from harness.corpus.errors import ModelError
from harness.corpus.external import external_files
from harness.corpus.facts import ModelFacts, model_facts
from harness.corpus.generate import generate
from harness.corpus.port import Port, ValueType, model_text, value_type
from harness.corpus.protos import decode_named, parse
from harness.corpus.suites import Suite
from harness.corpus.tolerance_file import TOLERANCE_FILE, ExpectedTolerance, read_tolerance

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
        if not path.is_file():
            raise ModelError(path, "not a file")
        content = path.read_bytes()
        proto = _parse(content)
        digest = hashlib.sha256(content)
        for file in external_files(proto, path):
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
    with _blame(home):
        folders = _data_set_folders(home)
    data_sets = tuple(_read_data_set(folder, ports, outputs, declared) for folder in folders)
    if data_sets:
        with _blame(home / TOLERANCE_FILE):
            tolerance = read_tolerance(home)
    else:
        data_sets = (_generated(path, model, ports, seed),)
    for data_set in data_sets:
        _hash_inputs(digest, data_set)
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


def _declared(info: "onnx.ValueInfoProto", dimensions: Mapping[str, int]) -> tuple[str, ValueType]:
    return model_text(info.name), value_type(info.type, dimensions)


def _data_set_folders(home: Path) -> list[Path]:
    """The ``test_data_set_N`` folders by rising N."""
    if not home.is_dir():
        return []
    numbered = [(int(match[1]), one) for one in home.iterdir() if (match := _DATA_SET.fullmatch(one.name))]
    return [folder for _, folder in sorted(numbered)]


def _read_data_set(
    folder: Path, ports: tuple[Port, ...], outputs: tuple[Port, ...], declared: Mapping[str, ValueType]
) -> DataSet:
    with _blame(folder):
        files = sorted(
            (match[1], int(match[2]), one)
            for one in folder.iterdir()
            if (match := _VALUE_FILE.fullmatch(one.name))
        )
    inputs = _read_values((one for one in files if one[0] == "input"), ports, declared)
    missing = [port.name for port in ports if port.name not in inputs]
    if missing:
        raise ModelError(
            folder, f"no data for {len(missing)} of {len(ports)} inputs: {', '.join(map(repr, missing))}"
        )
    known = {port.name: port.type for port in outputs}
    expected = _read_values((one for one in files if one[0] == "output"), outputs, known)
    return DataSet(name=folder.name, inputs=tuple(inputs.items()), expected=tuple(expected.items()))


def _read_values(
    files: Iterable[tuple[str, int, Path]], ports: tuple[Port, ...], declared: Mapping[str, ValueType]
) -> dict[str, Value]:
    """Values by name: the one inside the file where the model knows it, or else by the file's number."""
    values: dict[str, Value] = {}
    for role, index, file in files:
        with _blame(file):
            if index >= len(ports):
                raise ModelError(file, f"the model has only {len(ports)} {role}s")
            port = ports[index]
            name, value = decode_named(file.read_bytes(), port.type, file.parent)
            if name not in declared or declared[name].kind != port.type.kind:
                name = port.name
            if name in values:
                raise ModelError(file, f"a second value for {role} {name!r}")
            values[name] = value
    return values


def _generated(path: Path, model: str, ports: tuple[Port, ...], seed: int) -> DataSet:
    inputs = []
    for port in ports:
        try:
            inputs.append((port.name, generate(model, port, seed)))
        except (ValueError, MemoryError) as error:
            raise ModelError(path, f"input {port.name!r}: {error}") from error
    return DataSet(name=GENERATED, inputs=tuple(inputs))


def _hash_inputs(digest: "hashlib._Hash", data_set: DataSet) -> None:
    for name, value in data_set.inputs:
        for leaf, part in leaves(name, value):
            # repr() keeps neighbours apart: no name or shape can be read as the start of the next.
            digest.update(repr((leaf, part and part.dtype, part and part.array.shape)).encode())
            if isinstance(part, Tensor):
                digest.update(_bytes(part))


def _bytes(part: Tensor) -> bytes:
    return repr([str(item) for item in part.array.ravel()]).encode() if part.dtype == STRING else pack(part)


def _parse(content: bytes) -> "onnx.ModelProto":
    import onnx

    model: onnx.ModelProto = parse(onnx.ModelProto, content)
    # Protobuf reads an empty file, and a good deal of random bytes, as a message without any field.
    if not model.HasField("graph"):
        raise ValueError("not an ONNX model: it has no graph")
    return model


@contextmanager
def _blame(path: Path) -> Iterator[None]:
    """Turn whatever hostile or broken bytes cause into a ``ModelError`` that names the file."""
    try:
        yield
    except ModelError:
        raise
    except OSError as error:
        raise ModelError(path, error.strerror or str(error)) from error
    except MemoryError as error:
        raise ModelError(path, "does not fit into memory") from error
    except (ValueError, OverflowError, msgspec.DecodeError) as error:
        raise ModelError(path, str(error)) from error
