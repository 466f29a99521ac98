"""Contents of a bundle; its model with external data under our own name, and without traces of its author."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec

from harness.annex.triage.scrub import Scrubber
from harness.core.records.fault import Fault
from harness.core.values.value import NamedValues
from harness.corpus.beside.data_sets import DataSet
from harness.corpus.model.external import make_external, read_external
from harness.corpus.model.port import ValueType, value_type
from harness.corpus.model.protos import parse_proto
from harness.plan.target import Target
from harness.plan.tolerance_entry import ToleranceEntry

if TYPE_CHECKING:
    import onnx

_LARGEST = (1 << 31) - (64 << 20)
"""Bytes of a model from which on its weights are moved out: a protobuf is at most 2 GiB."""

_OUTSIDE_FROM = 1024
"""Bytes from which on a weight is moved; shapes and scalars have to stay."""

_ALIGNMENT = 4096
"""Every moved weight begins at a multiple of so many bytes, as ONNX recommends for files that are mapped."""

_QUANTIZED = re.compile("Quantize|Integer|QLinear|MatMulNBits|FakeQuant")


class ModelSource(msgspec.Struct, frozen=True, kw_only=True):
    """A serialized model, as a bundle receives it, and the place of its external data, if it has any."""

    content: bytes
    folder: Path | None = None


class PrecedingModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model that must run before in the same process."""

    model: ModelSource
    inputs: NamedValues


class BundleContents(msgspec.Struct, frozen=True, kw_only=True):
    """Contents of a bundle.

    Attributes:
        model: The model, already converted if the cell's precision asks for that.
        inputs: By name, in the order of the model.
        expected: Right outputs by name; empty if none are known, as for some crashes.
        found: Wrong outputs by name; empty if there are none.
        limits: Name of an output -> the largest ``distance.distance`` that is no fault. Values of other
            outputs are not compared.
        further: Data sets that the same session runs after the first one.
        preceding: Models that run before in the same process, in this order.
        tolerance: The matrix's entry for the cell; None for the built-in tolerances.
        fingerprint: Environment of the target, from ``TargetReady``.
        library: The EP's library, if it is on this machine.
        time_limit_s: Seconds after which a trial of ``repro.py`` counts as hung.
    """

    fault: Fault
    model: ModelSource
    inputs: NamedValues
    expected: NamedValues = ()
    found: NamedValues = ()
    limits: Mapping[str, float] = {}
    further: tuple[DataSet, ...] = ()
    preceding: tuple[PrecedingModel, ...] = ()
    target: Target
    axes: Mapping[str, str] = {}
    tolerance: ToleranceEntry | None = None
    fingerprint: Mapping[str, Any] = {}
    library: Path | None = None
    printed: str = ""
    time_limit_s: float = 600.0


class WrittenModel(msgspec.Struct, frozen=True, kw_only=True):
    """The published facts about a model.

    Attributes:
        inputs: Declared types by name of the inputs that have to be fed, in the order of the model.
        outputs: Declared types by name of its outputs, likewise.
        names: Names of its nodes and tensors.
        producer: The program that made it.
    """

    inputs: dict[str, ValueType] = {}
    outputs: dict[str, ValueType] = {}
    names: frozenset[str] = frozenset()
    quantized: bool = False
    producer: str = ""


def write_bundle_model(source: ModelSource, path: Path, scrub: Scrubber) -> WrittenModel:
    """Write a model, and its external data beside it.

    A file that is not a ``ModelProto`` is written unchanged: the fault may concern that.

    Raises:
        ValueError: External data is missing, or outside its folder.
        OSError: A file cannot be read or written.
    """
    import onnx

    try:
        model: onnx.ModelProto = parse_proto(onnx.ModelProto, source.content)
    except ValueError:
        path.write_bytes(source.content)
        return WrittenModel()
    changed = _anonymise(model, scrub)
    side = path.with_suffix(".data")
    moved = _move_weights(model, source, side)
    path.write_bytes(model.SerializeToString() if changed or moved else source.content)
    return _described(model)


def _move_weights(model: "onnx.ModelProto", source: ModelSource, side: Path) -> bool:
    """Put external tensors, and those of too large a model, into one file; return whether there are any."""
    too_large = len(source.content) > _LARGEST
    chosen = [
        tensor
        for tensor in _tensors(model.graph, model.functions)
        if tensor.data_location == tensor.EXTERNAL
        or (too_large and tensor.HasField("raw_data") and len(tensor.raw_data) >= _OUTSIDE_FROM)
    ]
    if not chosen:
        return False
    with side.open("wb") as file:
        for tensor in chosen:
            _move(tensor, source.folder, file, side.name)
    return True


def _move(tensor: "onnx.TensorProto", folder: Path | None, file: IO[bytes], name: str) -> None:
    if tensor.data_location != tensor.EXTERNAL:
        content = tensor.raw_data
    elif folder is None:
        raise ValueError(f"tensor {tensor.name!r} is external data, and no folder of it is given")
    else:
        content = read_external(tensor, folder)
    offset = -(-file.tell() // _ALIGNMENT) * _ALIGNMENT
    file.write(bytes(offset - file.tell()))
    file.write(content)
    tensor.ClearField("raw_data")
    del tensor.external_data[:]
    make_external(tensor, name, offset, len(content))


def _anonymise(model: "onnx.ModelProto", scrub: Scrubber) -> bool:
    """Drop documentation, and metadata that names folders, users or hosts.

    Return whether anything was dropped.
    """
    changed = False
    for message in _messages(model):
        fields = message.DESCRIPTOR.fields_by_name
        if "doc_string" in fields and message.doc_string:
            message.ClearField("doc_string")
            changed = True
        if "metadata_props" in fields:
            kept = [one for one in message.metadata_props if _tells_nothing(one, scrub)]
            if len(kept) != len(message.metadata_props):
                copies = [type(one).FromString(one.SerializeToString()) for one in kept]
                del message.metadata_props[:]
                message.metadata_props.extend(copies)
                changed = True
    return changed


def _tells_nothing(entry: Any, scrub: Scrubber) -> bool:
    return all(isinstance(text, str) and scrub(text) == text for text in (entry.key, entry.value))


def _messages(message: Any) -> Iterator[Any]:
    """Yield a message and all messages in it. Subgraphs may be nested deeply, so this does not recurse."""
    waiting = [message]
    while waiting:
        one = waiting.pop()
        yield one
        for field, value in one.ListFields():
            if field.message_type is None:
                continue
            waiting += [value] if hasattr(value, "ListFields") else value


def _tensors(*roots: Any) -> list["onnx.TensorProto"]:
    import onnx

    flat = [one for root in roots for one in ([root] if hasattr(root, "ListFields") else root)]
    return [message for root in flat for message in _messages(root) if isinstance(message, onnx.TensorProto)]


def _described(model: "onnx.ModelProto") -> WrittenModel:
    given = {one.name for one in model.graph.initializer}
    given |= {one.values.name for one in model.graph.sparse_initializer}
    inputs = {port.name: _declared(port) for port in model.graph.input if port.name not in given}
    outputs = {port.name: _declared(port) for port in model.graph.output}
    names, quantized = {*inputs, *outputs, *given}, False
    for message in _messages(model.graph):
        if hasattr(message, "op_type"):
            names |= {message.name, *message.input, *message.output}
            quantized = quantized or bool(_QUANTIZED.search(message.op_type))
        elif hasattr(message, "dims"):
            names.add(message.name)
    return WrittenModel(
        inputs=inputs,
        outputs=outputs,
        names=frozenset(name for name in names if isinstance(name, str) and name),
        quantized=quantized,
        producer=model.producer_name if isinstance(model.producer_name, str) else "",
    )


def _declared(port: "onnx.ValueInfoProto") -> ValueType:
    try:
        return value_type(port.type, {})
    except ValueError:  # a type without values here: the value itself shows its structure
        return ValueType(kind="tensor")
