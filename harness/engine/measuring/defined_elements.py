"""Outputs of which ONNX leaves some elements undefined: the others are judged."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.comparison.output_rows import with_details
from harness.core.values.value import NamedValues, Tensor, Value
from harness.engine.answers.compare_sets import flat, numbered
from harness.engine.answers.evidence import CellRule, Evidence
from harness.engine.tasks.outcome import Ran

Defined = Mapping[str, NDArray[np.bool_]]
"""Output, with the number of its data set -> which elements are defined, of its shape."""


def partly_defined(evidence: Evidence, rule: CellRule) -> Defined:
    """Return which elements of outputs are defined, of those that are not undefined as a whole.

    Outputs of converted models and of the scenario ``generate`` are undefined as a whole.
    """
    if evidence.full is not None or rule.generation is not None:
        return {}
    known = (evidence.undefined or {}).items()
    return {name: one.defined for name, one in known if one.defined is not None}


def wholly_undefined(evidence: Evidence, rule: CellRule) -> dict[str, str]:
    """Return the outputs that are undefined as a whole, with the reason."""
    partly = partly_defined(evidence, rule)
    return {name: one.why for name, one in (evidence.undefined or {}).items() if name not in partly}


def with_defined(outcome: Ran, answers: Sequence[NamedValues], partly: Defined) -> Ran:
    """Return an outcome with the right values in place of elements that are not defined.

    A result of another form than the answer stays.
    """
    if not partly:
        return outcome
    right = dict(flat(answers))

    def settled(name: str, value: Value) -> Value:
        golden, where = right.get(name), partly.get(name)
        if where is None or not isinstance(golden, Tensor) or not isinstance(value, Tensor):
            return value
        if (golden.dtype, golden.array.shape) != (value.dtype, value.array.shape):
            return value
        return Tensor(dtype=value.dtype, array=np.where(where, value.array, golden.array))

    def of_set(index: int, outputs: NamedValues) -> NamedValues:
        return tuple((name, settled(numbered(index, name), value)) for name, value in outputs)

    return msgspec.structs.replace(
        outcome,
        outputs=tuple(of_set(index, outputs) for index, outputs in enumerate(outcome.outputs)),
        second=None if outcome.second is None else of_set(0, outcome.second),
    )


def with_count(row: OutputMetrics, partly: Defined) -> OutputMetrics:
    """Return a row with the number of its elements that are undefined."""
    defined = partly.get(row.name)
    return row if defined is None else with_details(row, undefined=int(np.count_nonzero(~defined)))
