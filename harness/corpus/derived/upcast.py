"""A model in float64: as close to the exact answer as possible.

Weights, inputs and everything in between are double. Roundings of the model itself stay: a ``Cast`` to a
narrower type. A model with an operator that would keep float32 has no such form; the agent computes it node
by node, see ``harness.agent.float64``.
"""

import contextlib
import os
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from harness.core.values.value import Sequence, Tensor, Value
from harness.corpus.beside.data_sets import DataSet
from harness.corpus.case import Case
from harness.corpus.derived.derived_facts import derived_facts
from harness.corpus.derived.derived_models import MODEL_FILE, derive, digest_of
from harness.corpus.derived.scenario_case import Inapplicable
from harness.corpus.model.element_types import NARROWER
from harness.corpus.model.model_errors import ModelError, blame
from harness.corpus.model.port import Port, ValueType

if TYPE_CHECKING:
    import onnx

_FORMAT = 2
"""Increase it when models in float64 change although their sources do not."""

_NOT_NARROWER = "nothing in the model is of a float type narrower than float64: equality judges it"

_LARGEST = 512 << 20
"""Largest size in bytes of a model in float64: it is held in memory several times, and no file may exceed
2 GiB."""


FLOAT64_BYTES = 2 << 30
"""Largest size in bytes of a model's values at any time while it is computed node by node."""


def composed_case(case: Case) -> Case | Inapplicable:
    """Return the case unchanged, if it can be computed in float64 node by node; integers stay integers.

    Returns:
        Return ``Inapplicable`` if its only floats are float64, or if its weights alone exceed the bound.
    """
    if case.facts.float_types and not case.facts.float_types & NARROWER:
        return Inapplicable(_NOT_NARROWER)
    size = case.model_path.stat().st_size + sum(file.stat().st_size for file in case.external)
    if 2 * size > FLOAT64_BYTES:
        return Inapplicable(
            f"float64 needs {2 * size / (1 << 30):.2g} GiB for its weights alone, more than"
            f" {FLOAT64_BYTES >> 30} GiB"
        )
    return case


def float64_case(case: Case) -> Case | Inapplicable:
    """Return the case with float32, float16 and bfloat16 replaced by float64; without expected outputs.

    The model is written to the cache, once.

    Returns:
        Return ``Inapplicable`` if the model has no such form, or cannot be rewritten for any reason.

    Raises:
        ModelError: The model in the cache is broken or missing.
        UsageError: The cache cannot be written.
    """
    if not case.facts.float_types & NARROWER:
        return Inapplicable(_NOT_NARROWER)

    def make(model: "onnx.ModelProto") -> dict[str, bytes]:
        # It imports onnx, which a model from the cache does not need.
        from harness.corpus.derived.upcast_graph import NotInFloat64Error, upcast_graph

        size = case.model_path.stat().st_size + sum(file.stat().st_size for file in case.external)
        if size > _LARGEST // 2:
            raise NotInFloat64Error(f"it would take more than {_LARGEST >> 20} MiB")
        upcast_graph(model, case.model_path.parent)
        return {MODEL_FILE: model.SerializeToString()}

    digest = digest_of("float64", _FORMAT, case.digest)
    try:
        path = derive(case, "float64", digest, make) / MODEL_FILE
    except ModelError as error:
        return Inapplicable(f"the model has no form in float64: {error.cause}")
    with contextlib.suppress(OSError):  # a cache of another owner
        os.utime(path.parent)
    with blame(path):
        facts = derived_facts(path, digest)
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
