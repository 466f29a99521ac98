"""A case as an entry of the row cache."""

from pathlib import Path
from typing import Any

import msgspec

from harness.core.records.run_work import Work
from harness.core.values.value import NamedValues, from_wire, to_wire
from harness.corpus.beside.data_sets import DataSet
from harness.corpus.beside.file_state import files_state
from harness.corpus.case import Case
from harness.corpus.inputs.recipe import Recipe
from harness.corpus.model.model_facts import ModelFacts
from harness.corpus.model.port import Port, ValueType
from harness.corpus.work.work_share import NodeWork

KEPT_FORMAT = 13
"""Increase it when other facts of a case are kept."""

_WireValues = tuple[tuple[str, Any], ...]


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    """A case in the row cache, with values in their wire form; most fields are those of ``Case``.

    Attributes:
        files: External data files, relative to the model's folder.
        state: Their state alone.
        values: Name, inputs and expected outputs of each data set.
    """

    files: tuple[str, ...]
    values: tuple[tuple[str, _WireValues, _WireValues], ...]
    ports: tuple[Port, ...]
    outputs: tuple[str, ...]
    output_types: tuple[ValueType, ...]
    rtol: float
    atol: float
    digest: str
    state: str
    facts: ModelFacts
    work: Work
    node_work: NodeWork
    recipe: Recipe | None = None
    fixed: dict[str, int] = {}
    tasks: dict[str, str] = {}
    vary: tuple[str, ...] = ()


_decoder = msgspec.msgpack.Decoder(_Kept)
_SAME = [name for name in Case.__struct_fields__ if name in _Kept.__struct_fields__]


def pack_case(case: Case) -> bytes:
    """Return a case as an entry of the row cache."""
    kept = _Kept(
        files=tuple(str(file.relative_to(case.model_path.parent)) for file in case.external),
        values=tuple((one.name, _to_wire(one.inputs), _to_wire(one.expected)) for one in case.data_sets),
        **{name: getattr(case, name) for name in _SAME},
    )
    return msgspec.msgpack.encode(kept)


def unpack_case(content: bytes, path: Path) -> Case | None:
    """Return the case from a kept entry, or None if its external data has changed."""
    kept = _decoder.decode(content)
    files = tuple(path.parent / file for file in kept.files)
    if files:
        external = files_state(files)
        if external is None or external.text != kept.state:
            return None
    data_sets = (
        DataSet(name=name, inputs=_from_wire(inputs), expected=_from_wire(expected))
        for name, inputs, expected in kept.values
    )
    same = {name: getattr(kept, name) for name in _SAME}
    return Case(model_path=path, external=files, data_sets=tuple(data_sets), **same)


def _to_wire(values: NamedValues) -> _WireValues:
    return tuple((name, to_wire(value)) for name, value in values)


def _from_wire(wires: _WireValues) -> NamedValues:
    return tuple((name, from_wire(wire)) for name, wire in wires)
