"""Models without test data in whole runs: inputs that the CPU provider refuses are followed by others."""

from pathlib import Path

import pytest

from harness.core.records.record import GeneratedInputs, Record
from harness.core.records.verdict import Family, Phase, Verdict
from harness.corpus.caches.cache import ENVIRONMENT
from harness.corpus.case import Case
from harness.engine.answers.references import References
from harness.engine.tasks.task import Question
from harness.golden.golden_answer import Golden
from tests.kit import by_model, records_of, run_matrix, start_engine, write_model

HEAD = '<ir_version: 9, opset_import: ["" : 17, "nowhere" : 1]> '
MODELS = {
    "takes_first": "agraph (float[n, w] x) => (float[n, w] y) { y = Softmax(x) }",
    "equal_sizes": "agraph (float[n] x, float[w] z) => (float[v] y) { y = Add(x, z) }",
    "sum_of_sizes": "agraph (float[n, w] x) => (float[16] y) <int64[1] s = {16}> { y = Reshape(x, s) }",
    "no_size": "agraph (float[n] x) => (float[7, 11] y, float[2, 3] z)"
    " <int64[2] s = {7, 11}, int64[2] r = {2, 3}> { y = Reshape(x, s) z = Reshape(x, r) }",
    "no_session": "agraph (float[n] x) => (float[n] y) { y = nowhere.Relu(x) }",
    "weak": "agraph (float[n, w] x) => (float[n, w] y) { z = Neg(x) a = Neg(z) y = Sqrt(a) }",
    "silent": "agraph (float[n, 3, h, w] x) => (float[n, 3, 1, 1] y)"
    " <float steep = {40.0}, float least = {8.0}>"
    " { mean = GlobalAveragePool(x) far = Abs(mean) a = Mul(far, steep) b = Sub(a, least) y = Sigmoid(b) }",
    "always_weak": "agraph (float[n] x) => (float[n] y) { z = Sub(x, x) y = Div(z, z) }",
}
MATRIX = """
[models]
folders = ["models"]
[axes]
%s
[[target]]
name = "cpu"
provider = "CPUExecutionProvider"
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("trials")
    for name, graph in MODELS.items():
        write_model(home / "models" / f"{name}.onnx", HEAD + graph)
    return home


@pytest.fixture(scope="module")
def records(home: Path) -> dict[str, Record]:
    return by_model(run_matrix(home, MATRIX % ""))


def inputs(record: Record) -> GeneratedInputs:
    assert record.content is not None
    assert record.content.generated is not None
    return record.content.generated


@pytest.mark.parametrize(
    ("name", "sizes", "values", "dimensions"),
    [
        ("takes_first", "distinct", "plain", {"n": 2, "w": 3}),
        ("equal_sizes", "distinct", "plain", {"n": 2, "w": 2}),
        ("sum_of_sizes", "distinct", "plain", {"n": 2, "w": 8}),
        ("weak", "distinct", "positive", {"n": 2, "w": 3}),
        # Noise has a mean of zero, to which this answers with 3e-4; pictures are bright or dark.
        ("silent", "distinct", "natural", {"n": 2, "h": 64, "w": 96}),
    ],
)
def test_the_first_inputs_that_run_and_can_tell_are_taken_and_recorded(
    records: dict[str, Record], name: str, sizes: str, values: str, dimensions: dict[str, int]
) -> None:
    record = records[name]
    assert record.verdict is Verdict.PASS, record
    assert inputs(record) == GeneratedInputs(dimensions=dimensions, sizes=sizes, values=values)


def test_a_model_that_loads_and_never_runs_has_no_input(records: dict[str, Record]) -> None:
    record = records["no_size"]
    assert (record.verdict, record.family, record.phase) == (
        Verdict.NO_INPUT,
        Family.EXCLUDED,
        Phase.RUN,
    )
    assert record.reason.startswith("no generated input runs on the CPU EP (")
    assert "Reshape" in record.reason
    # The first attempt is the one that is told.
    assert inputs(record).dimensions == {"n": 77}


def test_a_model_that_does_not_load_is_not_tried_again(records: dict[str, Record]) -> None:
    assert records["no_session"].verdict is Verdict.UNSUPPORTED
    assert inputs(records["no_session"]) == GeneratedInputs(dimensions={"n": 2})


def test_a_golden_that_stays_weak_is_that_of_the_first_inputs(records: dict[str, Record]) -> None:
    assert inputs(records["always_weak"]) == GeneratedInputs(dimensions={"n": 2})


def test_a_second_run_asks_nothing(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "cache"))
    keep, asked = References.keep, []

    def watched(references: References, question: Question, case: Case, golden: Golden) -> None:
        asked.append(question)
        keep(references, question, case, golden)

    monkeypatch.setattr(References, "keep", watched)

    def run() -> tuple[dict[str, Record], bool]:
        """The records, and whether the CPU provider was asked for goldens."""
        asked.clear()
        engine = start_engine(home, MATRIX % "" + '[[exclude]]\nmodel = "no_session.onnx"')
        records = by_model(engine.events())
        return records, bool(asked)

    first, was_asked = run()
    assert was_asked
    second, was_asked = run()
    assert not was_asked
    assert {name: record.content for name, record in first.items()} == {
        name: record.content for name, record in second.items()
    }
    assert {name: record.verdict for name, record in first.items()} == {
        name: record.verdict for name, record in second.items()
    }


def test_other_data_and_other_precisions_are_made_of_the_inputs_that_run(home: Path) -> None:
    events = run_matrix(home, MATRIX % 'scenario = ["dynamic_shapes", "external_data", "sessions"]')
    of_shapes = {
        record.model.removesuffix(".onnx"): record
        for record in records_of(events)
        if record.axes["scenario"] == "dynamic_shapes"
    }
    assert of_shapes["takes_first"].scenario["shapes"] == ("given", "n=4", "w=1", "given")
    # With 2 for both, one of them may be 1 or, as the batch, 4, which the other does not broadcast to.
    assert of_shapes["equal_sizes"].scenario["shapes"] == ("given", "w=1", "given")
    assert of_shapes["no_size"].verdict is Verdict.NO_INPUT
    events = run_matrix(home, MATRIX % 'precision = ["fp16"]')
    converted = by_model(events)
    assert inputs(converted["equal_sizes"]).dimensions == {"n": 2, "w": 2}
    assert converted["no_size"].verdict is Verdict.NO_INPUT
