"""A target that has the only device: questions to the CPU provider of its runtime get it in turn."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.core.records.verdict import Verdict
from tests.kit import fake_target, of_folder, records_of, start_engine, write_model

if TYPE_CHECKING:
    from tests.slurm.slurm_cluster import Slurm

SRUN = f"srun --quiet --gres=npu:1 {shlex.quote(sys.executable)}"


@pytest.mark.parametrize(
    "where",
    [{"runtime": {"command": SRUN}}, {"places": {"count": 1, "command": SRUN}}],
    ids=["runtime", "place"],
)
def test_an_error_is_explained_although_one_process_at_a_time_gets_the_device(
    where: dict[str, Any], slurm: "Slurm", tmp_path: Path
) -> None:
    for name in ("1_error_in_run", "2_fine"):
        write_model(tmp_path / "models" / f"{name}.onnx")
    slurm.occupy(free=1)
    target = fake_target("npu", **where)
    engine = start_engine(tmp_path, of_folder(target))
    # An error is the EP's if the CPU EP of the same runtime works, and that needs the device as well.
    records = records_of(engine.events())
    assert {(record.model, record.verdict) for record in records} == {
        ("1_error_in_run.onnx", Verdict.ERROR),
        ("2_fine.onnx", Verdict.PASS),
    }
    slurm.clear()
