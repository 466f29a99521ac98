"""What tests of the reducer do: subjects from ONNX's text form, one transformation alone, the CPU EP."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest

from harness.annex.triage.net import Net, load
from harness.annex.triage.reduce import NetTransformation, ReductionSteps, reduction
from harness.annex.triage.reduction_settings import ReductionSettings
from harness.annex.triage.subject import Subject
from harness.core.values.value import Array, Tensor, Value, tensor
from tests.kit import run_on_cpu

onnxruntime: Any = pytest.importorskip("onnxruntime")
onnxruntime.set_default_logger_severity(4)

Judge = Callable[[onnx.ModelProto, dict[str, Array]], bool]


def values_by_cpu(subject: Subject, names: Sequence[str]) -> dict[str, Value] | None:
    model = subject.proto()
    there = {output.name for output in model.graph.output}
    for name in names:
        if name not in there:
            model.graph.output.add().name = name
    try:
        found = run_on_cpu(model, arrays(subject), list(names))
    except Exception:  # noqa: BLE001 - onnxruntime has many kinds
        return None
    return {name: tensor(one) for name, one in zip(names, found, strict=True) if isinstance(one, np.ndarray)}


def arrays(subject: Subject) -> dict[str, Array]:
    return {name: value.array for name, value in subject.inputs if isinstance(value, Tensor)}


def subject(text: str, **fed: Any) -> Subject:
    """Make a subject from ONNX's text form and arrays by input name."""
    model = onnx.parser.parse_model(text)
    onnx.checker.check_model(model)
    named = tuple((name, tensor(np.asarray(array))) for name, array in fed.items())
    return Subject(model=model.SerializeToString(), inputs=named)


def first_output(model: onnx.ModelProto, fed: Mapping[str, Array]) -> Any:
    """Run a model on the CPU EP; its first output, or None if the EP refuses it."""
    try:
        return run_on_cpu(model, fed)[0]
    except Exception:  # noqa: BLE001 - onnxruntime has many kinds
        return None


def apply(
    transformation: NetTransformation, subject: Subject, judge: Judge | None = None, **settings: Any
) -> Net:
    """Give one transformation its turn; every candidate has to be valid, and to run on the CPU EP."""

    def is_interesting(one: Subject) -> bool:
        onnx.checker.check_model(one.proto(), full_check=True)
        return judge is None or judge(one.proto(), arrays(one))

    once = ReductionSettings(values=values_by_cpu, most_rounds=1, **settings)
    smallest, _ = finish(reduction(subject, once, lambda _: None, (transformation,)), is_interesting)
    return load(smallest)


def finish(steps: ReductionSteps, is_interesting: Callable[[Subject], bool]) -> tuple[Subject, list[Subject]]:
    """Answer a reduction's questions to its end; the smallest subject, and all that were tried."""
    tried: list[Subject] = []
    answers = None
    while True:
        try:
            batch = next(steps) if answers is None else steps.send(answers)
        except StopIteration as end:
            return end.value, tried
        tried += batch
        answers = tuple(map(is_interesting, batch))


def reduced(subject: Subject, judge: Judge, **settings: Any) -> tuple[Subject, list[Subject]]:
    """Reduce a subject; the smallest, and all that were tried."""
    steps = reduction(subject, ReductionSettings(**{"values": values_by_cpu, **settings}), lambda _: None)
    return finish(steps, lambda one: judge(one.proto(), arrays(one)))
