"""Neither a wrong reference nor a disputed golden hides a faulty EP: runs of the real engine."""

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from harness.core.comparison.policy import Policy
from harness.core.records.record import Record, decode_record, encode_record
from harness.core.records.reference_answer import REFERENCE
from harness.core.records.verdict import Verdict
from harness.core.verdicts.decide import decide
from harness.engine.tasks.events import Event
from tests.kit import fake_target, of_folder, records_of, run_matrix, write_model

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the fake is for POSIX")

MODELS = {
    "BatchNormalization-9": """<ir_version: 9, opset_import: ["" : 9]>
agraph (float[2, 3, 4, 4] x) => (float[2, 3, 4, 4] y)
<float[3] s = {1, 2, 3}, float[3] b = {0, 1, 2}, float[3] m = {3, -3, 1}, float[3] v = {4, 9, 1}>
{ y = BatchNormalization<momentum = 0.1>(x, s, b, m, v) }""",
    "LRN-13": """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[2, 7, 3, 3] x) => (float[2, 7, 3, 3] y) { y = LRN<size = 3, alpha = 9.0>(x) }""",
    "LpNormalization-1": """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[3, 8] x) => (float[3, 8] y) { y = LpNormalization<p = 1>(x) }""",
}
"""What onnx.reference computes wrongly; each by half or more."""


def found(events: list[Event]) -> dict[str, Record]:
    records = records_of(events)
    return {record.model.partition("/")[0]: record for record in records}


@pytest.fixture(scope="module")
def wrong_reference(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Record]:
    home = tmp_path_factory.mktemp("wrong_reference")
    for name, text in MODELS.items():
        write_model(home / "models" / name / "2_reference.onnx", text)
    target = fake_target("faulty")
    return found(run_matrix(home, of_folder(target)))


@pytest.mark.parametrize("name", MODELS)
def test_an_ep_with_the_fault_of_a_wrong_reference_is_found(
    wrong_reference: dict[str, Record], name: str
) -> None:
    record = wrong_reference[name]
    assert record.verdict is Verdict.MISMATCH
    assert record.outputs[0].delivered_bits is not None
    assert record.outputs[0].delivered_bits < 2  # the plant is no rounding
    assert record.reference_check is not None
    (reference,) = (one for one in record.reference_check.references if one.name == REFERENCE)
    assert [row.mismatched for row in reference.ep] == [0]  # it does have the EP's answer
    assert reference.doubt == f"it is wrong, or not checked, for {name}"
    assert "onnx.reference" in record.reason


@pytest.mark.parametrize("name", MODELS)
def test_judging_again_knows_what_is_doubted(wrong_reference: dict[str, Record], name: str) -> None:
    record = decode_record(encode_record(wrong_reference[name]))
    assert decide(record, Policy()).verdict is Verdict.MISMATCH


X = np.array([1.0, -2.0, 3.5, -0.5], np.float32)
OFF = np.array([1.005, 0.995, 1.005, 0.995], np.float32)
"""By how much the expected data of an output differ from what the CPU EP computes: enough for a dispute."""


@pytest.fixture(scope="module")
def disputed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Record]:
    """By fault; of every model the expected ``z`` disputes the golden."""
    home = tmp_path_factory.mktemp("disputed")
    for fault in ("zeros", "nan", "reordered", "sound"):
        folder = home / "models" / fault
        write_model(folder / f"2_{fault}.onnx")
        expected = np.maximum(X, 0), X.astype(np.int32), -X * OFF
        write_data(folder / "test_data_set_0", X, expected)
    target = fake_target("ep")
    return found(run_matrix(home, of_folder(target)))


def write_data(folder: Path, value: np.ndarray, expected: tuple[np.ndarray, ...]) -> None:
    folder.mkdir()
    for kind, arrays in (("input", (value,)), ("output", expected)):
        for place, array in enumerate(arrays):
            name = "x" if kind == "input" else "ykz"[place]
            onnx.save_tensor(numpy_helper.from_array(array, name), folder / f"{kind}_{place}.pb")


@pytest.mark.parametrize(
    ("fault", "verdict"),
    [("zeros", Verdict.MISMATCH), ("reordered", Verdict.MISMATCH), ("nan", Verdict.NAN_MISMATCH)],
)
def test_a_disputed_golden_hides_no_faulty_ep(
    disputed: dict[str, Record], fault: str, verdict: Verdict
) -> None:
    record = disputed[fault]
    assert record.dispute.startswith("golden and expected data disagree")
    assert record.verdict is verdict
    assert record.reason.startswith("the EP differs from the expected data")
    assert "the golden is disputed: golden and expected data disagree" in record.reason
    again = decide(decode_record(encode_record(record)), Policy())
    assert (again.verdict, again.reason) == (record.verdict, record.reason)


def test_an_ep_that_agrees_with_a_disputed_golden_is_not_blamed(disputed: dict[str, Record]) -> None:
    assert disputed["sound"].verdict is Verdict.REFERENCE_DISPUTED
