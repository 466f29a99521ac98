"""What a plan says about its cells, and how it is narrowed."""

import hashlib

import pytest
from syrupy.assertion import SnapshotAssertion

from harness.core.comparison.noise_limits import DEFAULT_LIMITS, NoiseLimits
from harness.core.comparison.tolerance import Tolerance
from harness.core.records.cell import Cell
from harness.core.records.verdict import Verdict
from harness.core.text.errors import UsageError
from harness.plan.plan import Plan
from tests.kit import plan_of

TEXT = """
schema = 1
models = { suites = ["onnx-node"] }
[[target]]
name = "openvino"
provider = "OpenVINOExecutionProvider"
axes = { "option.streams" = ["1", "2"] }
unchecked_options = true
[[target]]
name = "qnn"
provider = ["QNNExecutionProvider", "CPUExecutionProvider"]
[[exclude]]
target = "qnn"
model = "test_add"
[[tolerance]]
rtol = 1e-3
atol = 1e-4
target = "openvino"
[[tolerance]]
noise = { rms = 2 }
target = "openvino"
"option.streams" = "2"
[[expect]]
provider = "QNN*"
verdict = "fallback"
reason = "first"
[[expect]]
model = "onnx-node/test_stft"
provider = "QNN*"
verdict = "crash"
reason = "last wins"
"""


@pytest.fixture
def plan() -> Plan:
    return plan_of(TEXT, {"onnx-node": ["test_abs", "test_stft", "test_add"]})


def cell(plan: Plan, cell_id: str) -> Cell:
    return next(cell for cell in plan.cells if cell.id == cell_id)


def test_the_last_tolerance_wins(plan: Plan) -> None:
    first = plan.tolerance(cell(plan, "onnx-node/test_abs[openvino,option.streams=1]"))
    last = plan.tolerance(cell(plan, "onnx-node/test_abs[openvino,option.streams=2]"))
    assert first is not None
    assert first.fixed == Tolerance(rtol=1e-3, atol=1e-4)
    assert first.noise is None
    assert last is not None
    assert last.fixed is None
    assert last.noise == NoiseLimits(rms=2.0, max=DEFAULT_LIMITS.max)
    assert plan.tolerance(cell(plan, "onnx-node/test_abs[qnn]")) is None


def test_the_last_expectation_wins(plan: Plan) -> None:
    last = plan.expectation(cell(plan, "onnx-node/test_stft[qnn]"))
    assert last is not None
    assert (last.verdicts, last.reason) == ((Verdict.CRASH,), "last wins")
    first = plan.expectation(cell(plan, "onnx-node/test_abs[qnn]"))
    assert first is not None
    assert first.verdicts == (Verdict.FALLBACK,)
    assert plan.expectation(cell(plan, "onnx-node/test_abs[openvino,option.streams=1]")) is None


def test_a_target_is_found_by_name(plan: Plan) -> None:
    assert plan.target("qnn").provider == ("QNNExecutionProvider", "CPUExecutionProvider")
    with pytest.raises(KeyError):
        plan.target("gpu")


def test_the_digest_is_that_of_the_sorted_ids(plan: Plan) -> None:
    text = "".join(cell_id + "\n" for cell_id in sorted(cell.id for cell in plan.cells))
    assert plan.digest == hashlib.sha256(text.encode()).hexdigest()
    assert plan.digest != plan.only(["qnn"]).digest


@pytest.mark.parametrize(
    ("target", "model", "left"),
    [
        ([], [], 8),
        (["qnn"], [], 2),
        (["*"], ["test_a*"], 5),
        (["openvino"], ["onnx-node/test_stft"], 2),
        ([], ["test_add"], 2),
        (["openvino", "qnn"], [], 8),
        ([], ["test_add", "test_stft"], 5),
    ],
)
def test_a_plan_is_narrowed_in_order(plan: Plan, target: list[str], model: list[str], left: int) -> None:
    part = plan.only(target, model)
    assert len(part.cells) == left
    assert [cell for cell in plan.cells if cell in set(part.cells)] == list(part.cells)
    assert part.matrix is plan.matrix


@pytest.mark.parametrize(
    ("target", "model"),
    [
        (["qn"], []),
        ([], ["onnx-node/test_sfft"]),
        (["gpu"], ["test_abz"]),
        (["qnn"], ["test_add"]),
        ([""], []),
        (["qnn", "gpu"], ["test_stft"]),
    ],
)
def test_narrowing_to_nothing_is_an_error(
    plan: Plan, target: list[str], model: list[str], snapshot: SnapshotAssertion
) -> None:
    with pytest.raises(UsageError) as caught:
        plan.only(target, model)
    assert str(caught.value) == snapshot


def test_a_narrowed_plan_still_answers(plan: Plan) -> None:
    (stft,) = plan.only(["qnn"], ["test_stft"]).cells
    expectation = plan.only(["qnn"], ["test_stft"]).expectation(stft)
    assert expectation is not None
    assert expectation.verdicts == (Verdict.CRASH,)


def test_forty_stars_take_no_time(plan: Plan) -> None:
    for glob in ({"targets": ["*q" * 40 + "x"]}, {"models": ["*t" * 40 + "x"]}):
        with pytest.raises(UsageError, match="of the plan matches"):
            plan.only(**glob)
