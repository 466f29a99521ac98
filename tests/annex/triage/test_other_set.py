"""The second data set of a bundle: other inputs, where a failure needs them."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx.parser
import pytest

from harness.annex.triage.hand_over import other_set
from harness.annex.triage.session_use import REPEATED_RUNS, RUNS, THREADS_FIGURE
from harness.annex.triage.signature import AT_FIRST_RUN, AT_OTHER_INPUTS
from harness.annex.triage.subject import Subject
from harness.core.records.fault import Signature
from harness.core.records.verdict import Phase, Verdict
from harness.core.values.value import NamedValues, Tensor, tensor

X = np.arange(6, dtype=np.float32).reshape(2, 3)
GOLDEN = (("y", tensor(X)),)
ERROR = Signature(verdict=Verdict.ERROR, phase=Phase.RUN)
STALE = Signature(verdict=Verdict.MISMATCH, message=AT_OTHER_INPUTS)
WRONG = Signature(verdict=Verdict.MISMATCH, message=AT_FIRST_RUN)


def subject(array: Any = X) -> Subject:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        agraph (float[N, M] x) => (float[N, M] y) { y = Neg (x) }""")
    return Subject(model=model.SerializeToString(), inputs=(("x", tensor(array)),))


def check(signature: Signature, axes: dict[str, str], golden: NamedValues | None = GOLDEN) -> Any:
    lab = SimpleNamespace(golden=lambda _: golden)
    return SimpleNamespace(signature=signature, axes=tuple(sorted(axes.items())), lab=lab)


@pytest.mark.parametrize(
    ("signature", "axes"),
    [
        (STALE, {}),
        (ERROR, {REPEATED_RUNS: "2"}),
        (ERROR, {"scenario": "from_bytes", REPEATED_RUNS: "2"}),
        (WRONG, {"scenario": "concurrent", THREADS_FIGURE: "2", RUNS: "1"}),
    ],
)
def test_other_inputs_are_those_of_the_agent(signature: Signature, axes: dict[str, str]) -> None:
    found = other_set(subject(), check(signature, axes))
    assert found is not None
    ((name, value),) = found.inputs
    assert name == "x"
    assert isinstance(value, Tensor)
    assert value.array.tolist() == X.reshape(-1)[::-1].reshape(X.shape).tolist()
    assert found.expected == GOLDEN


@pytest.mark.parametrize(
    ("signature", "axes"),
    [
        (WRONG, {}),
        (ERROR, {REPEATED_RUNS: "1"}),
        (WRONG, {"scenario": "sessions"}),
        (STALE, {"scenario": "io_binding"}),
    ],
)
def test_a_failure_that_needs_none_has_none(signature: Signature, axes: dict[str, str]) -> None:
    assert other_set(subject(), check(signature, axes)) is None


def test_without_other_inputs_or_right_outputs_there_is_none() -> None:
    assert other_set(subject(np.ones((2, 3), np.float32)), check(STALE, {})) is None
    assert other_set(subject(), check(STALE, {}, golden=None)) is None
