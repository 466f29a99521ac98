"""Data sets: inputs and expected outputs of a model, from the files beside it."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from harness.core.records.model_settings import ModelSettings
from harness.core.text.errors import valid_names
from harness.core.values.value import STRING, NamedValues, Tensor, Value, leaves, pack
from harness.corpus.beside.data_set_files import DataFile, SavedSet, find_data_sets
from harness.corpus.beside.numpy_files import as_tensor, read_npy, read_npz
from harness.corpus.model.data_budget import DataBudget
from harness.corpus.model.model_errors import InputError, ModelError, SettingsError, blame
from harness.corpus.model.port import Port, ValueType
from harness.corpus.model.protos import decode_named
from harness.corpus.model.symbols import axis_name, free_symbols

_REMEDY = "fix this test data, or remove it to have inputs generated"

GENERATED = "generated"
"""Name of the data set that is generated for a model without any."""


class DataSet(msgspec.Struct, frozen=True, kw_only=True):
    """Inputs of one run, and expected outputs.

    Attributes:
        name: Such as ``test_data_set_0``, or ``generated``.
        inputs: ``(input name, value)`` for every input that has to be fed, in the order of the model.
        expected: ``(output name, value)`` for the outputs in the data set; may be empty.
    """

    name: str
    inputs: NamedValues
    expected: NamedValues = ()


class ModelSignature(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs that have to be fed, the outputs, and all inputs by name, those with an initializer too."""

    ports: tuple[Port, ...]
    outputs: tuple[Port, ...]
    declared: dict[str, ValueType]


def read_data_sets(path: Path, home: Path, signature: ModelSignature) -> tuple[DataSet, ...]:
    """Return the data sets of one model, from its ``test_data_set_N`` in a folder, which need not exist.

    A data set without any input, of a model that has inputs, is left out whatever its outputs are: they
    belong to other inputs than the generated ones.

    Raises:
        InputError: The data cannot be read, or does not fit the model.
    """
    try:
        budget = DataBudget()
        read = (_read_data_set(saved, signature, budget) for saved in find_data_sets(path, home))
        return tuple(data_set for data_set in read if data_set is not None)
    except InputError:
        raise
    except ModelError as error:
        raise InputError(error.path, f"{error.cause}; {_REMEDY}") from error


def check_names(
    path: Path, settings: ModelSettings, ports: tuple[Port, ...], outputs: tuple[Port, ...]
) -> None:
    """Check that a model has the dimensions, inputs and outputs that its settings name.

    Raises:
        SettingsError: It lacks one of them.
    """
    symbols = free_symbols(symbol for port in ports for symbol in port.type.symbols)
    unnamed = (
        axis_name(axis)
        for port in ports
        for axis, symbol in enumerate(port.type.symbols)
        if symbol is not None and not symbol
    )
    inputs = [port.name for port in ports]
    named = [(name, "dimension", list(symbols)) for name in settings.dimensions]
    named += [(name, "input", inputs) for name in settings.inputs]
    named += [(name, "dimension", [*symbols, *dict.fromkeys(unnamed)]) for name in settings.vary]
    named += [(name, "output", [port.name for port in outputs]) for name in settings.tasks if name]
    for name, kind, known in named:
        if name not in known:
            what = f"its settings name the {kind} {name!r}, which it does not have"
            raise SettingsError(path, what, valid_names(name, known))


def hash_data_set(digest: "hashlib._Hash", data_set: DataSet) -> None:
    """Add the names, types, shapes and elements of all inputs and expected outputs to a digest."""
    for role, values in (("input", data_set.inputs), ("output", data_set.expected)):
        for name, value in values:
            for leaf, part in leaves(name, value):
                # repr() keeps neighbours apart: no name or shape can look like the start of the next.
                shape = part and part.array.shape
                digest.update(repr((role, leaf, part and part.dtype, shape)).encode())
                if isinstance(part, Tensor):
                    digest.update(_bytes(part))


def _bytes(part: Tensor) -> bytes:
    return repr([str(item) for item in part.array.ravel()]).encode() if part.dtype == STRING else pack(part)


def _read_data_set(saved: SavedSet, signature: ModelSignature, budget: DataBudget) -> DataSet | None:
    inputs = _read_values(saved, "input", signature.ports, signature.declared, budget)
    ports = signature.ports
    if ports and not any(file.role in {"input", "both"} for file in saved.files):
        return None
    missing = [port.name for port in ports if port.name not in inputs]
    if missing:
        what = f"no data for {len(missing)} of {len(ports)} inputs: {', '.join(map(repr, missing))}"
        raise ModelError(saved.path, f"{what}; there is {', '.join(saved.names) or 'nothing'}")
    known = {port.name: port.type for port in signature.outputs}
    expected = _read_values(saved, "output", signature.outputs, known, budget)
    return DataSet(name=saved.name, inputs=tuple(inputs.items()), expected=tuple(expected.items()))


def _read_values(
    saved: SavedSet,
    role: str,
    ports: tuple[Port, ...],
    declared: Mapping[str, ValueType],
    budget: DataBudget,
) -> dict[str, Value]:
    """Return values by name: the name inside the file if the model has it, else the file number's."""
    values: dict[str, Value] = {}
    for file in saved.files:
        if file.role not in {role, "both"}:
            continue
        with blame(file.path):
            for name, value in _decode(file, role, ports, declared, budget):
                if name in values:
                    raise ModelError(file.path, f"a second value for {role} {name!r}")
                values[name] = value
    return values


def _decode(
    file: DataFile,
    role: str,
    ports: tuple[Port, ...],
    declared: Mapping[str, ValueType],
    budget: DataBudget,
) -> Iterator[tuple[str, Value]]:
    content = file.read()
    if file.role == "both":
        for index, array in enumerate(read_npz(content, budget).get(f"{role}s", ())):
            port = _port(ports, index, role)
            yield port.name, as_tensor(array, port.type, budget)
    elif file.index is None:
        for name, array in read_npz(content, budget).items():
            if name not in declared:
                raise ValueError(f"the model has no {role} {name!r}; {valid_names(name, declared)}")
            yield name, as_tensor(array, declared[name], budget)
    elif file.path.suffix == ".npy":
        port = _port(ports, file.index, role)
        yield port.name, read_npy(content, port.type, budget)
    else:
        # Beyond the inputs that have to be fed are those with an initializer, which the file has to name.
        kind = ports[file.index].type if file.index < len(ports) else ValueType(kind="tensor")
        name, value = decode_named(content, kind, file.folder, budget)
        known = name in declared and declared[name].kind == kind.kind
        yield name if known else _port(ports, file.index, role).name, value


def _port(ports: tuple[Port, ...], index: int, role: str) -> Port:
    if index >= len(ports):
        raise ValueError(f"the model has only {len(ports)} {role}s")
    return ports[index]
