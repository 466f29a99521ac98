"""Fixed sizes: what they change is told, and trying them costs no cell its verdict."""

import os
from pathlib import Path

import msgspec
import pytest

from harness.core.records.cell_end import CellEnd
from harness.core.records.facts import Facts
from harness.core.records.record import Record
from harness.core.records.verdict import Phase, Verdict
from harness.engine.steps.fixed_size_step import may_be_fixed
from tests.kit import fake_target, of_folder, placement_of, records_of, run_matrix, write_model

FREE = """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[batch] x) => (float[batch] y, int32[batch] k, float[batch] z) {
    y = Relu(x) k = Cast<to=6>(x) z = Neg(x)
}"""


@pytest.mark.skipif(os.name != "posix", reason="the fake is for POSIX systems")
def test_what_fixed_sizes_change_is_told_and_a_crash_of_that_session_is_no_verdict(tmp_path: Path) -> None:
    for number, fault in enumerate(("free_dimension", "free_crash", "placed_nowhere", "exact")):
        write_model(tmp_path / "models" / f"{number}_{fault}.onnx", FREE)
    target = fake_target("fake")
    fixed = {"model": "*exact*", "dimensions": {"batch": 3}, "fixed": True}
    matrix = of_folder(target, model=[fixed])
    events = run_matrix(tmp_path, matrix)
    found: dict[str, Record] = {
        record.model.partition("_")[2].removesuffix(".onnx"): record for record in records_of(events)
    }
    told = "with `batch = 1` all 3 nodes run on the EP: dimensions = { batch = 1 }, fixed = true in [[model]]"
    assert found["free_dimension"].verdict is Verdict.FALLBACK
    assert found["free_dimension"].reason.endswith(told)
    assert [found[name].verdict for name in ("free_crash", "placed_nowhere")] == [Verdict.FALLBACK] * 2
    assert found["free_crash"].fixed is found["placed_nowhere"].fixed is None
    assert (found["exact"].verdict, found["exact"].fixed) == (Verdict.PASS, None)


PARTLY = placement_of({"Relu": 1}, {"Shape": 1})


def test_only_compute_on_the_cpu_or_a_refusal_asks_for_fixed_sizes() -> None:
    assert may_be_fixed(Facts(placement=PARTLY))
    by_design = msgspec.structs.replace(PARTLY, shape_ops=("Shape",))
    assert not may_be_fixed(Facts(placement=by_design))
    assert not may_be_fixed(Facts(placement=PARTLY, provider="CPUExecutionProvider"))
    refused = CellEnd(how="raised", message="no dynamic shape", refused=True)
    assert may_be_fixed(Facts(phase=Phase.CREATE, ended=refused))
    assert not may_be_fixed(Facts(phase=Phase.RUN, ended=refused))
    assert not may_be_fixed(Facts(phase=Phase.CREATE, ended=CellEnd(how="died")))
