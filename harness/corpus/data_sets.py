"""Data sets: what a model is fed and expected to return, from ``test_data_set_N`` folders or made here."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from harness.core.value import STRING, Tensor, Value, leaves, pack
from harness.corpus.errors import ModelError, blame
from harness.corpus.generate import generate
from harness.corpus.port import Port, ValueType
from harness.corpus.protos import decode_named

GENERATED = "generated"
"""Name of the data set that was made here because the model has none."""

DATA_SET = re.compile(r"test_data_set_(\d+)")
"""Name of a folder that holds a data set."""

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


def read_data_sets(
    home: Path, ports: tuple[Port, ...], outputs: tuple[Port, ...], declared: Mapping[str, ValueType]
) -> tuple[DataSet, ...]:
    """The data sets of one model; none where it has no data.

    Args:
        home: The folder with the ``test_data_set_N``; it need not exist.
        ports: The graph inputs that have to be fed.
        outputs: The graph outputs.
        declared: All graph inputs, those with an initializer included, by name.

    Raises:
        ModelError: The data cannot be read, or does not fit the model.
    """
    with blame(home):
        folders = _data_set_folders(home)
    return tuple(_read_data_set(folder, ports, outputs, declared) for folder in folders)


def generated(path: Path, model: str, ports: tuple[Port, ...], seed: int) -> DataSet:
    """A data set for a model that has none.

    Raises:
        ModelError: For one of the inputs nothing can be made.
    """
    inputs = []
    for port in ports:
        try:
            inputs.append((port.name, generate(model, port, seed)))
        except (ValueError, MemoryError) as error:
            raise ModelError(path, f"input {port.name!r}: {error}") from error
    return DataSet(name=GENERATED, inputs=tuple(inputs))


def hash_inputs(digest: "hashlib._Hash", data_set: DataSet) -> None:
    """Add the names, types, shapes and elements of all inputs to a digest."""
    for name, value in data_set.inputs:
        for leaf, part in leaves(name, value):
            # repr() keeps neighbours apart: no name or shape can be read as the start of the next.
            digest.update(repr((leaf, part and part.dtype, part and part.array.shape)).encode())
            if isinstance(part, Tensor):
                digest.update(_bytes(part))


def _bytes(part: Tensor) -> bytes:
    return repr([str(item) for item in part.array.ravel()]).encode() if part.dtype == STRING else pack(part)


def _data_set_folders(home: Path) -> list[Path]:
    """The ``test_data_set_N`` folders by rising N."""
    if not home.is_dir():
        return []
    numbered = [(int(match[1]), one) for one in home.iterdir() if (match := DATA_SET.fullmatch(one.name))]
    return [folder for _, folder in sorted(numbered)]


def _read_data_set(
    folder: Path, ports: tuple[Port, ...], outputs: tuple[Port, ...], declared: Mapping[str, ValueType]
) -> DataSet:
    with blame(folder):
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
        with blame(file):
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
