"""A model once more in float64: what it says of the truth, as far as that can be computed.

Weights, inputs and everything in between are double. What the model itself rounds stays rounded: a ``Cast``
to a narrower type, and operators that ONNX does not define for doubles, which keep float32 between casts.
"""

import contextlib
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from harness.core.value import Sequence, Tensor, Value
from harness.corpus.cache import cache_root, fill_once
from harness.corpus.case import Case
from harness.corpus.data_sets import DataSet
from harness.corpus.errors import ModelError, blame
from harness.corpus.facts import model_facts
from harness.corpus.model_file import parse_model, read_model_file
from harness.corpus.port import Port, ValueType
from harness.corpus.scenario import Inapplicable
from harness.corpus.upcast_graph import NotInFloat64Error, upcast_graph

if TYPE_CHECKING:
    import onnx

FORMAT = 1
"""Rises when models in float64 change although those that they are made from do not."""

LARGEST = 512 << 20
"""Bytes that a model may take in float64: it is held in memory several times, and no file may pass 2 GiB."""

NARROWER = frozenset({"float32", "float16", "bfloat16"})
"""Element types that become float64."""

_MODEL = "model.onnx"


def float64_case(case: Case) -> Case | Inapplicable:
    """The case with everything that is float32, float16 or bfloat16 in float64; without expected outputs.

    The model is written into the cache, once.

    Returns:
        ``Inapplicable`` where the model has no such form, or cannot be rewritten for whatever reason.

    Raises:
        ModelError: The model in the cache is broken or has gone.
        UsageError: The cache cannot be written.
    """
    if not case.facts.float_types & NARROWER:
        return Inapplicable("nothing in the model is of a float type narrower than float64")
    digest = hashlib.sha256(f"float64 {FORMAT} {case.digest}".encode()).hexdigest()
    path = cache_root() / "float64" / digest / _MODEL
    if not path.is_file():
        try:
            with blame(case.model_path):
                model = _upcast(case)
        except ModelError as error:
            return Inapplicable(f"the model has no form in float64: {error.cause}")
        fill_once(path.parent, lambda folder: _write(model, folder))
    with contextlib.suppress(OSError):  # a cache that others own: then it is for them to prune
        os.utime(path.parent)
    with blame(path):
        facts = model_facts(parse_model(read_model_file(path)))
    return msgspec.structs.replace(
        case,
        model_path=path,
        external=(),
        ports=tuple(Port(name=port.name, type=_wider_type(port.type)) for port in case.ports),
        output_types=tuple(map(_wider_type, case.output_types)),
        data_sets=tuple(
            DataSet(name=one.name, inputs=tuple((name, _wider(value)) for name, value in one.inputs))
            for one in case.data_sets
        ),
        digest=digest,
        facts=facts,
    )


def _write(model: "onnx.ModelProto", folder: Path) -> None:
    (folder / _MODEL).write_bytes(model.SerializeToString())


def _upcast(case: Case) -> "onnx.ModelProto":
    size = case.model_path.stat().st_size + sum(file.stat().st_size for file in case.external)
    if size > LARGEST // 2:
        raise NotInFloat64Error(f"it would take more than {LARGEST >> 20} MiB")
    model = parse_model(read_model_file(case.model_path))
    upcast_graph(model, case.model_path.parent)
    return model


def _wider(value: Value) -> Value:
    if isinstance(value, Sequence):
        return Sequence(items=tuple(map(_wider, value.items)))
    if isinstance(value, Tensor) and value.dtype in NARROWER:
        with np.errstate(invalid="ignore"):  # a signalling NaN is a NaN like any other
            return Tensor(dtype="float64", array=value.array.astype(np.float64))
    return value


def _wider_type(declared: ValueType) -> ValueType:
    return msgspec.structs.replace(
        declared,
        dtype="float64" if declared.dtype in NARROWER else declared.dtype,
        item=None if declared.item is None else _wider_type(declared.item),
    )
