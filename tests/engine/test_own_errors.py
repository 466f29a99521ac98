"""An exception of the harness's own costs one cell its verdict, and never a run."""

import importlib
import os
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import main
from harness.core.records.record import Record
from harness.core.records.verdict import Family, Verdict
from harness.core.verdicts.own_error import own_error
from harness.corpus.caches.cache import ENVIRONMENT
from harness.report.runs.read import read_run
from tests.kit import FAKE_ENV, write_model

pytestmark = [
    pytest.mark.real_ep,
    pytest.mark.skipif(os.name != "posix", reason="the fake is for POSIX"),
]
MODEL = """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[4] x) => (float[4] y, int32[4] k, float[4] z) { y = Relu(x) k = Cast<to=6>(x) z = Neg(x) }"""
SOFT = """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[n, 4] x) => (float[n, 4] y) { y = Softmax(x) }"""
CHOSEN = """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[3, 4] x) => (int64[3] y) { s = Softmax(x) y = ArgMax<axis = 1, keepdims = 0>(s) }"""
ANYWHERE = (
    # feeding
    "engine.answers.cases.load_case",
    "corpus.load_case.model_facts",
    "corpus.load_case.hash_data_set",
    "engine.dispatcher.job",
    "engine.workers.worker.Worker.give",
    "engine.questions.open_questions.OpenQuestions.foresee",
    "engine.questions.open_questions.OpenQuestions.awaits",
    "engine.cell_pipeline.CellPipeline.case",
    "engine.answers.cases.Cases.of",
    # reading messages
    "engine.listener.from_result",
    "engine.workers.worker.Worker.count",
    # goldens
    "engine.questions.answer.golden_of",
    "engine.questions.answer.compare_sets",
    "engine.questions.answer.output_kinds_of",
    "engine.questions.answer.computing_precision",
    "engine.answers.references.References.find",
    "engine.answers.references.References.keep",
    # measuring and judging
    "engine.questions.next_step.rule_of",
    "engine.questions.next_step.measure",
    "engine.answers.noise_rules.noise_rule",
    "engine.measuring.measure.check_references",
    "engine.measuring.measure.output_kinds_of",
    "engine.questions.next_step.missing",
    "engine.measuring.measure.compare_sets",
    "engine.answers.compare_sets.compare_all",
    "core.verdicts.compare.measure_error",
    "core.verdicts.missing.verdict_of",
    "core.verdicts.judging.judge_rows",
    "core.verdicts.run_rules.Ruling",
    "engine.cell_pipeline.decide",
    # recording
    "engine.cell_pipeline.record_of",
    "engine.measuring.cell_record.is_expected",
)
"""Where an exception is planted, once: each a name as its module uses it. Every cell comes to these."""

RUNS = 5
"""Over how many runs these are spread, neighbours apart: whichever cell comes first to a place is lost there,
and enough of the others come to the next one."""

BY_TARGET = {
    "faulty": (
        (
            "engine.answers.cases.noisy_case",
            "engine.questions.answer.spread_of",
            "core.verdicts.judging.check_golden",
        ),
        (
            "engine.workers.job.trusted_in_float64",
            "engine.questions.answer.amplitudes_of",
            "run.artifacts.encode",
        ),
        ("run.run_folder.encode_record",),  # even a cell that is lost already comes to this one
    ),
    "sound": (
        (
            "engine.answers.cases.precision_case",
            "engine.listener.from_making",
            "engine.answers.cases.scenario_case",
        ),
        ("engine.answers.cases.rounded_case", "engine.questions.answer.keep_made"),
        ("engine.measuring.measure.judge_precision", "engine.measuring.measure.with_noise"),
    ),
}
"""Target -> places to which some of its cells come, by run: of a run's places, each loses another cell."""

PLANTED = [
    *(("faulty", ANYWHERE[number::RUNS]) for number in range(RUNS)),
    *((target, places) for target, runs in BY_TARGET.items() for places in runs),
]


class PlantedError(RuntimeError):
    """An exception without a cause."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("planted")
    for number in range(8):
        write_model(home / "faulty" / f"{number}_fine.onnx")
    for size in range(4, 8):  # what is derived from a model is made once for equal ones
        write_model(home / "faulty" / f"{size + 4}_zeros.onnx", MODEL.replace("[4]", f"[{size}]"))
    write_model(home / "sound" / "soft.onnx", SOFT)
    write_model(home / "sound" / "chosen.onnx", CHOSEN)
    (home / "m.toml").write_text(
        f"""schema = 1
[models]
folders = ["faulty", "sound"]
[[target]]
name = "faulty"
provider = "CUDAExecutionProvider"
env = {{ PYTHONPATH = {FAKE_ENV["PYTHONPATH"]!r} }}
[[target]]
name = "sound"
provider = "CPUExecutionProvider"
axes = {{ precision = ["fp32", "fp16"], scenario = ["plain", "dynamic_shapes"] }}
[[exclude]]
target = "faulty"
suite = "sound"
[[exclude]]
target = "sound"
suite = "faulty"
""",
        encoding="utf-8",
    )
    return home


def run(home: Path, out: Path, *more: str) -> tuple[int, dict[str, Record]]:
    """Run the matrix, with a cache of its own."""
    code = main(["run", str(home / "m.toml"), "--no-report", *(more or ("--out", str(out)))])
    return code, {record.cell: record for record in read_run(out).records}


@pytest.fixture(scope="module")
def usual(home: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Verdict]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ENVIRONMENT, str(tmp_path_factory.mktemp("cache")))
        _, records = run(home, tmp_path_factory.mktemp("usual") / "run")
    return {cell: record.verdict for cell, record in records.items()}


def plant(patch: pytest.MonkeyPatch, place: str) -> list[str]:
    """Have a place raise an exception the first time; the list holds it once that has happened."""
    module, _, name = place.rpartition(".")
    owner: Any
    if name[0].islower() and module.rpartition(".")[2][0].isupper():
        module, _, kind = module.rpartition(".")
        owner = getattr(importlib.import_module(f"harness.{module}"), kind)
    else:
        owner = importlib.import_module(f"harness.{module}")
    usual = getattr(owner, name)
    raised: list[str] = []

    def once(*args: Any, **named: Any) -> Any:
        if not raised:
            raised.append(place)
            raise PlantedError(f"at {place}")
        return usual(*args, **named)

    patch.setattr(owner, name, once)
    return raised


@pytest.mark.parametrize(
    ("target", "places"), PLANTED, ids=lambda one: one if isinstance(one, str) else one[0]
)
def test_one_cell_is_lost_for_each_and_no_run(
    home: Path,
    usual: dict[str, Verdict],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    target: str,
    places: tuple[str, ...],
) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "cache"))
    with monkeypatch.context() as patch:
        raised = [plant(patch, place) for place in places]
        code, records = run(home, tmp_path / "run", "--out", str(tmp_path / "run"), "--target", target)
    assert raised == [[place] for place in places], "the run has never come to one of them"
    assert records.keys() == {cell for cell in usual if f"[{target}" in cell}
    lost = [record for record in records.values() if record.verdict is Verdict.HARNESS_ERROR]
    assert len(lost) == len(places)
    assert code == 3
    told = {}
    for record in lost:
        assert record.family is Family.MISSING
        (place,) = (one for one in places if f"PlantedError: at {one}; please report it" in record.reason)
        told[place] = (tmp_path / "run" / record.artifacts / "traceback.txt").read_text(encoding="utf-8")
        assert told[place].startswith("Traceback")
        assert f"PlantedError: at {place}" in told[place]
    assert told.keys() == set(places)
    others = {cell: record.verdict for cell, record in records.items() if record not in lost}
    assert others == {cell: usual[cell] for cell in others}
    assert f"INCOMPLETE   {len(places)} of" in capsys.readouterr().out


def test_what_is_lost_is_tried_again(
    home: Path, usual: dict[str, Verdict], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "cache"))
    with monkeypatch.context() as patch:
        plant(patch, "engine.cell_pipeline.record_of")
        run(home, tmp_path / "run")
    code, again = run(home, tmp_path / "run", "--resume", str(tmp_path / "run"))
    assert {cell: record.verdict for cell, record in again.items()} == usual
    assert code == 1


@pytest.mark.parametrize(
    "place",
    [
        "engine.listener.parse_message",
        pytest.param("engine.workers.worker.Worker.begin_next", marks=pytest.mark.long),
    ],
)
def test_a_process_without_a_cell_is_replaced(
    home: Path, usual: dict[str, Verdict], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "cache"))
    with monkeypatch.context() as patch:
        assert plant(patch, place) == []
        code, records = run(home, tmp_path / "run")
    assert {cell: record.verdict for cell, record in records.items()} == usual
    assert code == 1


def test_an_exception_without_a_text_is_reported() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise ValueError

    told = own_error(MuteError())
    assert told.reason == "an exception of the harness itself: MuteError; please report it"
