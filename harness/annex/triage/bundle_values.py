"""The data of a bundle: inputs and outputs in ONNX's own layout of test data."""

from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Literal

from harness.annex.triage.bundle_model import WrittenModel
from harness.annex.triage.manifest import BundledSet, BundledValue
from harness.core.values.value import Map, NamedValues, Sequence, Tensor, Value
from harness.corpus.beside.data_sets import DataSet
from harness.corpus.beside.value_file import write_value
from harness.corpus.model.port import ValueType


def write_set(
    root: Path, number: int, data_set: DataSet, model: WrittenModel, limits: Mapping[str, float]
) -> BundledSet:
    """Write ``test_data_set_<number>`` below ``root``."""
    home = root / f"test_data_set_{number}"
    return BundledSet(
        inputs=write_values(root, home, "input", data_set.inputs, model.inputs),
        outputs=write_values(root, home, "output", data_set.expected, model.outputs, limits),
    )


def write_values(
    root: Path,
    home: Path,
    role: Literal["input", "output"],
    values: NamedValues,
    types: Mapping[str, ValueType],
    limits: Mapping[str, float] | None = None,
) -> tuple[BundledValue, ...]:
    """Write values as ``<role>_<number>.pb`` into a folder of the bundle, which is made.

    A file's number is the position of its value among the types, which are in the order of the model. A value
    with another structure is written with its own structure. ``limits`` are those of the outputs.
    """
    home.mkdir(parents=True, exist_ok=True)
    written = []
    places = {name: place for place, name in enumerate(types)}
    further = count(len(places))
    for name, value in values:
        declared = types.get(name)
        if declared is None or not _fits(value, declared):
            declared = _type_of(value)
        number = places[name] if name in places else next(further)
        path = home / f"{role}_{number}.pb"
        write_value(path, value, declared, name)
        written.append(
            BundledValue(
                name=name,
                kind=structure_of(declared),
                file=path.relative_to(root).as_posix(),
                limit=(limits or {}).get(name),
            )
        )
    return tuple(written)


def structure_of(declared: ValueType) -> str:
    """Return the structure of a type as text, such as ``optional(sequence(tensor))``."""
    if declared.kind in {"tensor", "map"}:
        return declared.kind
    return f"{declared.kind}({structure_of(declared.item or ValueType(kind='tensor'))})"


def _fits(value: Value, declared: ValueType) -> bool:
    item = declared.item or ValueType(kind="tensor")
    if declared.kind == "optional":
        return value is None or _fits(value, item)
    if declared.kind == "sequence":
        return isinstance(value, Sequence) and all(_fits(one, item) for one in value.items)
    return isinstance(value, Map if declared.kind == "map" else Tensor)


def _type_of(value: Value) -> ValueType:
    if isinstance(value, Sequence):
        first = value.items[0] if value.items else None
        item = ValueType(kind="tensor") if first is None else _type_of(first)
        return ValueType(kind="sequence", item=item)
    if value is None:
        return ValueType(kind="optional", item=ValueType(kind="tensor"))
    return ValueType(kind="map" if isinstance(value, Map) else "tensor")
