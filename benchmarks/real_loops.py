"""What bare loops need, made of a run's cache: a folder for each model and precision, with goldens.

    python real_loops.py HOME

The files are links. ``skipped.json`` lists for each target the models on which its provider crashes or hangs.
"""

import sys
from collections import defaultdict
from pathlib import Path

import msgspec

from harness.core.records.precision import AS_IS
from harness.core.records.verdict import Verdict
from harness.corpus.case import Case
from harness.corpus.derived.converted_models import precision_case
from harness.corpus.load_case import load_case
from harness.corpus.suites.suites import open_model
from harness.engine.answers.references import Stores
from harness.report.runs.read import read_run

ENDED = (Verdict.CRASH, Verdict.HANG, Verdict.TIMEOUT, Verdict.OUT_OF_MEMORY)


def main(home: Path) -> None:
    """Write the folders and the list."""
    run = read_run(home / "runs" / "cold")
    goldens = Stores.of_here().goldens
    skipped = defaultdict[str, list[str]](list)
    wanted = set[tuple[str, str]]()
    for record in run.records:
        name = Path(record.model).parent.name
        precision = record.axes.get("precision", AS_IS)
        wanted.add((name, precision))
        if record.verdict in ENDED:
            skipped[record.target].append(f"{name}-{precision}")
    for name, precision in sorted(wanted):
        source = home / "models" / name
        case = load_case(open_model(str(source / "model.onnx")), "model.onnx", {})
        made = case if precision == AS_IS else precision_case(case, precision)
        golden = goldens.entry(case)
        if isinstance(made, Case) and (golden / "test_data_set_0").is_dir():
            _link(home / "loops" / f"{name}-{precision}", made.model_path, source, golden)
    tiny = home / "loops" / "test_relu"
    if not tiny.is_dir():
        tiny.mkdir(parents=True)
        (tiny / "model.onnx").symlink_to(home / "tiny" / tiny.name / "model.onnx")
    (home / "skipped.json").write_bytes(msgspec.json.encode(skipped))


def _link(folder: Path, model: Path, source: Path, golden: Path) -> None:
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    for path, target in [
        (folder / "model.onnx", model),
        *((data / file.name, file) for file in (source / "test_data_set_0").glob("input_*")),
        *((data / file.name, file) for file in (golden / "test_data_set_0").glob("output_*")),
    ]:
        path.unlink(missing_ok=True)
        path.symlink_to(target)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
