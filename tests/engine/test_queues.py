import itertools
from pathlib import Path

from harness.core.records.verdict import Verdict
from harness.engine.engine import Engine
from harness.engine.prepare import prepare
from harness.engine.tasks.events import Finished, TargetReady
from tests.kit import records_of, write_model

MATRIX = """
schema = 1
[models]
folders = ["models"]
[[target]]
name = "host"
provider = "CPUExecutionProvider"
env = { SOME = "1" }
[[target]]
name = "cpu"
provider = "CPUExecutionProvider"
"""


def test_a_target_that_is_the_reference_still_has_a_life_of_its_own(tmp_path: Path) -> None:
    # The CPU provider is asked for a golden before the target "cpu", of the same configuration, gets a cell.
    write_model(tmp_path / "models" / "a.onnx")
    (tmp_path / "m.toml").write_text(MATRIX, "utf-8")
    plan, suites = prepare(tmp_path / "m.toml")
    host, cpu = plan.cells
    engine = Engine(plan, suites)
    engine.submit([host])
    first = list(itertools.takewhile(lambda event: not isinstance(event, Finished), engine.events()))
    engine.submit([cpu])
    engine.drain()
    rest = list(engine.events())
    assert [event.target for event in first if isinstance(event, TargetReady)] == ["host"]
    assert [event.target for event in rest if isinstance(event, TargetReady)] == ["cpu"]
    assert [record.verdict for record in records_of(rest)] == [Verdict.PASS]
