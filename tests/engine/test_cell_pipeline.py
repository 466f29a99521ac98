"""Goldens and second opinions: what the CPU provider's answer, or its silence, means for a cell."""

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from harness.core.records.verdict import Phase, Verdict
from harness.core.values.value import Tensor, tensor
from harness.corpus.caches.cache import ENVIRONMENT
from harness.corpus.case import Case
from harness.corpus.model.protos import tensor_proto
from harness.engine.answers.references import References
from harness.engine.tasks.events import Finished, Warned
from harness.engine.tasks.task import Question
from harness.golden.golden_answer import Golden
from tests.kit import FAKE_ENV, fake_target, of_folder, records_of, run_matrix, start_engine, write_model

HEAD = '<ir_version: 9, opset_import: ["" : 17, "nowhere" : 1]>\n'
# The CPU provider refuses it; the fake one computes it all the same.
STRANGE = (
    HEAD
    + "agraph (float[4] x) => (float[4] y, int32[4] k, float[4] z) {\n"
    + ("y = Relu(x) k = Cast<to=6>(x) z = nowhere.Neg(x) }")
)
RANDOM = HEAD + "agraph (float[4] x) => (float[4] z) { y = RandomNormalLike(x) z = Add(x, y) }"
EXTERNAL = HEAD + "agraph (float[4] x) => (float[4] z) <float[4] w> { z = Add(x, w) }"

MATRIX = """
[models]
folders = ["fake", "real"]
[[target]]
name = "fake"
provider = "CUDAExecutionProvider"
env = { PYTHONPATH = '%s' }
[[target]]
name = "real"
provider = "CPUExecutionProvider"
[[exclude]]
suite = "fake"
target = "real"
[[exclude]]
suite = "real"
target = "fake"
"""


def expect(folder: Path, x: list[float], *outputs: Tensor) -> None:
    data_set = folder / "test_data_set_0"
    data_set.mkdir()
    values = {"input_0.pb": tensor(np.array(x, np.float32))}
    values |= {f"output_{index}.pb": value for index, value in enumerate(outputs)}
    for name, value in values.items():
        (data_set / name).write_bytes(tensor_proto(value).SerializeToString())


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("pipeline")
    x = [-1.5, 2.0, 0.0, 3.5]
    right = np.maximum(np.array(x, np.float32), 0), np.array(x, np.int32), -np.array(x, np.float32)
    write_model(home / "fake/expected/model.onnx", STRANGE)
    expect(home / "fake/expected", x, *map(tensor, right))
    write_model(home / "fake/contradicted/model.onnx", STRANGE)
    expect(home / "fake/contradicted", x, tensor(right[0] + 1), *map(tensor, right[1:]))
    write_model(home / "fake/disputed/model.onnx")
    expect(home / "fake/disputed", x, *map(tensor, right[:2]), tensor(right[2] + 1))
    write_model(home / "fake/agreed/model.onnx")
    expect(home / "fake/agreed", x, *map(tensor, right))
    write_model(home / "fake/nobody_knows/model.onnx", STRANGE)
    write_model(home / "fake/both_refuse/1_error_in_create.onnx", STRANGE)
    write_model(home / "fake/ep_refuses/1_error_in_create.onnx")
    write_model(home / "real/refused/model.onnx", STRANGE)
    write_model(home / "real/random/model.onnx", RANDOM)
    (home / "real/corrupt").mkdir()
    (home / "real/corrupt/model.onnx").write_bytes(b"\x08\x07garbage")
    (home / "real/external").mkdir()
    model = onnx.parser.parse_model(EXTERNAL)
    weight = model.graph.initializer.add(name="w", data_type=1, dims=[4], data_location=1)
    weight.external_data.add(key="location", value="gone.bin")
    onnx.save(model, home / "real/external/model.onnx")
    write_model(home / "real/well/model.onnx")
    return home


@pytest.fixture(scope="module")
def cells(home: Path) -> dict[str, Finished]:
    events = run_matrix(home, MATRIX % FAKE_ENV["PYTHONPATH"])
    return {event.record.model.split("/")[0]: event for event in events if isinstance(event, Finished)}


@pytest.mark.parametrize(
    ("name", "verdict", "golden", "reason"),
    [
        ("expected", Verdict.PASS, "expected", ""),
        ("contradicted", Verdict.MISMATCH, "expected", "output 'y'"),
        ("disputed", Verdict.REFERENCE_DISPUTED, "cpu", "golden and expected data disagree: output 'z'"),
        ("agreed", Verdict.PASS, "cpu", ""),
        ("nobody_knows", Verdict.NO_GOLDEN, "", "the CPU EP gives no golden"),
        ("both_refuse", Verdict.NO_GOLDEN, "", "nowhere"),
        ("ep_refuses", Verdict.ERROR, "", "something is wrong"),
        ("refused", Verdict.UNSUPPORTED, "", "nowhere"),
        ("random", Verdict.REFERENCE_DISPUTED, "cpu", "RandomNormalLike draws numbers"),
        ("corrupt", Verdict.INVALID_MODEL, "", "corrupt/model.onnx"),
        ("external", Verdict.INVALID_MODEL, "", "gone.bin"),
        ("well", Verdict.PASS, "cpu", ""),
    ],
)
def test_who_judges(
    cells: dict[str, Finished], name: str, verdict: Verdict, golden: str, reason: str
) -> None:
    record = cells[name].record
    assert (record.verdict, record.golden) == (verdict, golden), record
    assert reason in record.reason
    assert bool(reason) is bool(record.reason), record.reason


def test_a_model_that_cannot_be_read_fails_in_create(cells: dict[str, Finished]) -> None:
    for name in ("corrupt", "external"):
        assert cells[name].record.phase is Phase.CREATE
        assert cells[name].case is None


def test_a_result_brings_its_case_but_no_outputs_unasked(cells: dict[str, Finished]) -> None:
    case = cells["agreed"].case
    assert case is not None
    assert case.outputs == ("y", "k", "z")
    assert cells["agreed"].outputs == ()


def test_a_golden_is_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "cache"))
    write_model(tmp_path / "models" / "1_one.onnx")
    target = fake_target()
    matrix = of_folder(target)
    keep, asked = References.keep, []

    def watched(references: References, question: Question, case: Case, golden: Golden) -> None:
        asked.append(question)
        keep(references, question, case, golden)

    monkeypatch.setattr(References, "keep", watched)

    def run() -> bool:
        """Whether the CPU provider was asked."""
        asked.clear()
        engine = start_engine(tmp_path, matrix)
        found = [record.verdict for record in records_of(engine.events())]
        assert found == [Verdict.PASS]
        return bool(asked)

    assert run()
    assert not run()
    (stored,) = (tmp_path / "cache").rglob("test_data_set_0/output_0.pb")
    content = stored.read_bytes()
    stored.write_bytes(content[:-3])
    assert run()
    assert stored.read_bytes() == content
    assert not run()


def test_a_cache_that_cannot_be_written_costs_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").touch()
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "cache"))
    write_model(tmp_path / "models" / "1_one.onnx")
    target = fake_target()
    events = run_matrix(tmp_path, of_folder(target))
    assert [record.verdict for record in records_of(events)] == [Verdict.PASS]
    warnings = [event.message for event in events if isinstance(event, Warned)]
    assert "devices cannot be locked against other runs" in warnings[0]
    assert len(warnings) == 3  # the golden, and the model that tells whether it is weak
    assert all(ENVIRONMENT in warning for warning in warnings[1:])
