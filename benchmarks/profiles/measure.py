"""Measure candidates: their traits, and which planted faults each shows."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import onnx

from benchmarks.profiles.finding import Finding
from benchmarks.profiles.lab import Lab, operator_of
from benchmarks.profiles.session import RefusedError
from harness.core.text.errors import HarnessError, one_line
from harness.core.values.value import NamedValues, Tensor, Value
from harness.corpus.case import Case
from harness.corpus.inputs.open_sizes import open_dimensions
from harness.corpus.load_case import load_case
from harness.corpus.suites.suites import open_suite

LARGEST = 700_000
"""Bytes of a model that may be a candidate: an archive has at most a million."""

TOO_LARGE = "too large"

NOISY = frozenset({"float32", "float64", "float16", "bfloat16"})


def measure(suite: str, model: str) -> Finding:
    """Measure one candidate; whatever goes wrong is its reason to be none."""
    try:
        case = load_case(open_suite(suite), model, {})
        if case.external or case.model_path.stat().st_size > LARGEST:
            return Finding(suite=suite, model=model, why_not=TOO_LARGE)
        return _measured(suite, model, case)
    except (HarnessError, RefusedError) as error:
        return Finding(suite=suite, model=model, why_not=one_line(error))
    except Exception as error:  # noqa: BLE001 - a strange model costs itself, never the others
        return Finding(suite=suite, model=model, why_not=one_line(f"{type(error).__name__}: {error}"))


def _measured(suite: str, model: str, case: Case) -> Finding:
    lab = Lab(case)
    befell: dict[str, bool] = {}
    for name, result in lab.planted():
        befell[name] = befell.get(name, False) or lab.fails(result)
    arrays = [one for one in lab.values.values() if isinstance(one, np.ndarray)]
    ends = (*lab.inputs, *lab.golden)
    return Finding(
        suite=suite,
        model=model,
        ops=dict(Counter(_operators(lab.model.graph))),
        types=tuple(
            sorted(
                {one.dtype.name.replace("_", "") for one in arrays if one.dtype != object} | _declared(ends)
            )
        ),
        opset=case.facts.opsets.get("ai.onnx", 0),
        ranks=max((one.ndim for one in arrays), default=0),
        empty=any(_empty(value, name in dict(ends)) for name, value in lab.values.items()),
        special=any(_special(value) for _, value in ends),
        containers=any(not isinstance(value, Tensor) for _, value in ends),
        symbolic=bool(open_dimensions(case.ports))
        or any(p.type.symbols and any(p.type.symbols) for p in case.ports),
        befell=tuple(sorted(befell)),
        shown=tuple(sorted(name for name, shows in befell.items() if shows)),
    )


def _empty(value: object, is_end: bool) -> bool:  # noqa: FBT001 - a fact of the value
    """Return whether a tensor has no elements; a list of axes or sizes inside a model may have none."""
    if not isinstance(value, np.ndarray) or value.size:
        return False
    return is_end or value.dtype != np.int64 or value.ndim > 1


def _operators(graph: onnx.GraphProto) -> Iterator[str]:
    for node in graph.node:
        yield operator_of(node)
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _operators(attribute.g)


def _declared(values: NamedValues) -> set[str]:
    return {value.dtype for _, value in values if isinstance(value, Tensor)}


def _special(value: Value) -> bool:
    if not isinstance(value, Tensor) or value.dtype not in NOISY:
        return False
    return not np.isfinite(value.array.astype(np.float64)).all()
