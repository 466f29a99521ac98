"""A failure on generated inputs is tried with two others before it is final, or until one fails, too."""

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.core.comparison.policy import Policy
from harness.core.records.cell_end import CellEnd
from harness.core.records.facts import Facts
from harness.core.records.record import OtherDraw, Record
from harness.core.records.verdict import Phase, Verdict
from harness.core.verdicts.decide import decide, judged_again
from harness.run.tally import TargetTotals
from tests.kit import of_folder, records_of, run_matrix, write_model

PLANTED = Path(__file__).with_name("planted_sizes")
ROOT = Path(__file__).parents[2]
HEAD = '<ir_version: 9, opset_import: ["" : 17]> '
MODELS = {
    "open": "agraph (float[n, w] x) => (float[n, w] y) { y = Softmax(x) }",
    "fixed": "agraph (float[4, 9] x) => (float[4, 9] y) { y = Softmax(x) }",
    # The CPU EP takes a window of 3 over 1.
    "window": "agraph (float[9, 2, 1] x) => (float[9, 2, s] y) "
    "{ y = AveragePool<kernel_shape = [3], strides = [3]>(x) }",
}
TARGETS = {"at-one-size": "2", "at-two-sizes": "2 3", "at-all-sizes": "2 3 4 9", "never": ""}
"""Target -> extents that it refuses; the batches are 2, 3 and 4."""


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Record]:
    home = tmp_path_factory.mktemp("draws")
    for name, graph in MODELS.items():
        write_model(home / "models" / f"{name}.onnx", HEAD + graph)
    targets: list[dict[str, Any]] = [
        {
            "name": name,
            "provider": "CPUExecutionProvider",
            "env": {"PYTHONPATH": f"{PLANTED}{os.pathsep}{ROOT}", "REFUSED_EXTENTS": refused},
        }
        for name, refused in TARGETS.items()
    ]
    matrix = of_folder(*targets)
    return {
        (record.model.removesuffix(".onnx"), record.target): record
        for record in records_of(run_matrix(home, matrix))
    }


def test_a_failure_at_one_size_alone_stays_one_and_says_so(records: dict[tuple[str, str], Record]) -> None:
    record = records["open", "at-one-size"]
    assert (record.verdict, record.expected) == (Verdict.ERROR, False)
    assert record.other_draws == (
        OtherDraw(verdict=Verdict.PASS, dimensions={"n": 3, "w": 5}),
        OtherDraw(verdict=Verdict.PASS, dimensions={"n": 4, "w": 7}),
    )
    assert record.fails_with_these_alone
    assert record.reason == (
        "fails only at this size, and not with 2 other generated inputs "
        "(with n = 3, w = 5 and with n = 4, w = 7); RuntimeError: no kernel for an extent of 2"
    )
    assert record.content is not None
    assert record.content.generated is not None
    assert record.content.generated.dimensions == {"n": 2, "w": 3}  # what failed
    row = TargetTotals(target=record.target, planned=1)
    row.add(record)
    assert row.these_alone == 1


def test_a_failure_at_another_size_is_none_of_one_size(records: dict[tuple[str, str], Record]) -> None:
    record = records["open", "at-two-sizes"]
    assert [one.verdict for one in record.other_draws] == [Verdict.ERROR]
    assert not record.fails_with_these_alone
    assert record.reason == "RuntimeError: no kernel for an extent of 2"


def test_a_failure_at_all_sizes_is_tried_with_one_other(
    records: dict[tuple[str, str], Record],
) -> None:
    for name in ("open", "fixed"):
        record = records[name, "at-all-sizes"]
        assert [one.verdict for one in record.other_draws] == [Verdict.ERROR]
        assert not record.fails_with_these_alone
        assert record.reason.startswith("RuntimeError: no kernel for an extent of")


def test_what_passes_is_not_tried_again(records: dict[tuple[str, str], Record]) -> None:
    for name in MODELS:
        assert (records[name, "never"].verdict, records[name, "never"].other_draws) == (Verdict.PASS, ())


def test_a_provider_that_refuses_a_window_beyond_the_data_has_no_input(
    records: dict[tuple[str, str], Record],
) -> None:
    record = records["window", "at-all-sizes"]
    assert record.verdict is Verdict.NO_INPUT
    assert record.beyond == "AveragePool '' has a window of 3 over 1"
    assert record.reason.endswith(f"{record.beyond}; RuntimeError: no kernel for an extent of 2")
    assert judged_again(record, Policy()).verdict is Verdict.NO_INPUT


BEYOND = "Conv 'c' has a window of 7 over 5"


def test_what_is_smaller_than_a_window_is_no_fault_of_the_provider() -> None:
    raised = Facts(ended=CellEnd(how="raised", message="kernel shape: 7"), phase=Phase.RUN, beyond=BEYOND)
    found = decide(raised, Policy())
    assert found.verdict is Verdict.NO_INPUT
    assert found.reason == f"the generated data are smaller than a window: {BEYOND}; kernel shape: 7"
    without = decide(msgspec.structs.replace(raised, beyond=""), Policy())
    assert without.verdict is Verdict.ERROR
    died = Facts(ended=CellEnd(how="died", message="signal 11"), phase=Phase.RUN, beyond=BEYOND)
    assert decide(died, Policy()).verdict is Verdict.CRASH
