"""Faults that only one scenario shows: each is told in its word, and nothing is told without a fault."""

import json
import sys
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.core.record import Record
from harness.core.verdict import Verdict
from tests.crooked_ep.faults import SHOWN_BY, Planted, scenario_faults
from tests.crooked_ep.models import small_models, write_model
from tests.crooked_ep.planted_run import PROVIDER
from tests.kit import read_records

pytestmark = [
    pytest.mark.real_ep,
    pytest.mark.skipif(sys.platform != "linux", reason="the library is compiled for Linux"),
]

FAULTS = scenario_faults()
ONLY = {
    "constants_of_newest": "only in the company of a model with other weights: ",
    "kernels_by_size": "only in the company of a model with other activations: ",
    "adds_to_output": "only in buffers filled with a pattern: ",
    "skips_last": "only in buffers filled with a pattern: ",
    "reads_file": "only with weights as values, other contents in the file: ",
    "shared_by_address": "only with weights that sessions share: ",
    "context_file_missing": "from file to file, embed_mode 0, moved, loaded by a fresh process: ",
    "context_absolute_path": "from file to file, embed_mode 0, moved, loaded by a fresh process: ",
    "stale_is_optimal": "the description of a damaged compiled model is called EP_SUPPORTED_OPTIMAL",
    "fresh_is_unsupported": "a model that was compiled here and loads is called EP_UNSUPPORTED",
    "stale_refused_later": "is called EP_SUPPORTED_PREFER_RECOMPILATION, and then: refused",
    "copy_beyond_end": "a copy of 4 bytes from the device: 4 bytes after its buffer were written",
    "writes_beyond": "bytes after its buffer were written",
    "writes_before": "bytes before its buffer were written",
}
"""Fault -> words of the reason."""

OWN_TARGET = [fault.name for fault in FAULTS if fault.place in {"MODEL_COMPILER", "NPU_BUFFERS"}]
"""Faults of the library as a whole, which a session's graph cannot choose."""

Records = dict[tuple[str, str], Record]


@pytest.fixture(scope="module")
def records(crooked_ep: Path, tmp_path_factory: pytest.TempPathFactory) -> Records:
    """Target and fault -> the record of the scenario that shows it."""
    folder = tmp_path_factory.mktemp("scenario_faults")
    models = small_models()
    for fault in FAULTS:
        write_model(folder / "models" / SHOWN_BY[fault.place] / fault.name, models[fault.model], fault.name)
    scenarios = sorted({SHOWN_BY[fault.place] for fault in FAULTS})
    text = f"""schema = 1
models = {{ folders = [{", ".join(json.dumps(f"models/{name}") for name in scenarios)}] }}
axes = {{ scenario = ["plain", {", ".join(map(json.dumps, scenarios))}] }}
"""
    compiled = [fault.name for fault in FAULTS if fault.place == "MODEL_COMPILER"]
    npu = [fault.name for fault in FAULTS if fault.place == "NPU_BUFFERS"]
    for name, chosen in (("honest", "none"), ("crooked", "graph"), *((one, one) for one in OWN_TARGET)):
        text += f"""[[target]]
name = "{name}"
provider = "{PROVIDER}"
plugin = "{crooked_ep}"
options = {{ fault = "{chosen}" }}
"""
        text += 'device = { type = "NPU" }\n' if name in npu else ""
    own = json.dumps([f"*/{name}/*" for name in OWN_TARGET])
    text += f'[[exclude]]\ntarget = "crooked"\nmodel = {own}\n'
    for name in OWN_TARGET:
        others = [f"*/{one.name}/*" for one in FAULTS if one.name != name]
        text += f"[[exclude]]\ntarget = {json.dumps(name)}\nmodel = {json.dumps(others)}\n"
    once = [f"compile/{name}/*" for name in compiled[1:]]  # they share a model
    text += f'[[exclude]]\ntarget = "honest"\nmodel = {json.dumps(once)}\n'
    for name in scenarios:
        others = [other for other in scenarios if other != name]
        text += f"[[exclude]]\nscenario = {json.dumps(name)}\nsuite = {json.dumps(others)}\n"
    (folder / "matrix.toml").write_text(text, encoding="utf-8")
    main(["run", str(folder / "matrix.toml"), "--out", str(folder / "run"), "--no-report"])
    return {
        (f"{record.target} {record.axes.get('scenario', 'plain')}", record.model.partition("/")[0]): record
        for record in read_records(folder / "run")
    }


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_a_scenario_tells_its_fault(records: Records, fault: Planted) -> None:
    """A plain run of the same model, with the same fault, passes: it needs the scenario."""
    scenario = SHOWN_BY[fault.place]
    target = fault.name if fault.name in OWN_TARGET else "crooked"
    assert records[f"{target} plain", fault.name].verdict is Verdict.PASS
    found = records[f"{target} {scenario}", fault.name]
    assert found.verdict == fault.told, found.reason
    assert ONLY.get(fault.name, "") in found.reason


def test_nothing_is_told_without_a_fault(records: Records) -> None:
    honest = [record for (where, _), record in records.items() if where.startswith("honest")]
    once = sum(SHOWN_BY[fault.place] == "compile" for fault in FAULTS) - 1  # they share a model
    assert len(honest) == 2 * (len(FAULTS) - once)
    assert {record.verdict for record in honest} == {Verdict.PASS}
    assert not [record.cell for record in honest if record.manners]
