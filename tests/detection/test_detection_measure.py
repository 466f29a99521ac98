"""A model on the bench, from the golden to the page."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.detection import cpu
from benchmarks.detection.elsewhere import CPU, Answer, Stranger, ask
from benchmarks.detection.healthy import REWRITES, rewritten
from benchmarks.detection.measure import FULL, Bench
from benchmarks.detection.page import page
from benchmarks.detection.policies import CALIBRATED, TABLE
from benchmarks.detection.rows import Measured, Results, Row
from benchmarks.detection.subjects import Subject, subjects
from benchmarks.detection.tally import accused, bands, curve, found, seen_from, visible
from harness.core.values.value import Tensor

USED = ("mnist", "trees", "bert-1")
ENVIRONMENT = {
    "onnxruntime": "1.0",
    "onnx": "1.0",
    "numpy": "2.0",
    "processor": "a | pipe",
    "system": "a system",
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory, own_cache: Path) -> dict[str, Subject]:  # noqa: ARG001 - used
    return {one.name: one for one in subjects(tmp_path_factory.mktemp("models"), USED)}


@pytest.fixture(scope="module")
def measured(models: dict[str, Subject]) -> Measured:
    """A model with two strangers: one with the right answer, one that is far off."""
    subject = models["mnist"]
    golden = Bench(subject, {}).golden
    wrong = tuple(
        (name, Tensor(dtype=value.dtype, array=value.array + np.float32(1)))
        for name, value in golden
        if isinstance(value, Tensor)
    )
    answers = {"onnxruntime 1.20.1": Answer(values=golden), "WebGPU": Answer(values=wrong)}
    return Bench(subject, answers).measure((FULL,), faults=True)


def test_what_every_healthy_way_contradicts_is_doubtful(measured: Measured) -> None:
    assert [row.way for row in measured.rows if row.doubtful] == ["WebGPU"]


def test_what_equals_the_golden_is_counted_apart(measured: Measured) -> None:
    assert measured.equal >= 1
    assert "onnxruntime 1.20.1" not in {row.way for row in measured.rows}


def test_the_calibrated_tolerance_finds_the_faults_and_spares_the_rest(measured: Measured) -> None:
    caught, blamed = found(measured.rows, CALIBRATED), accused(measured.rows, CALIBRATED)
    assert caught.of >= 30
    assert caught.share >= 0.99
    assert blamed.count == 0 < blamed.of


def test_the_noise_is_what_healthy_results_differ_by(measured: Measured) -> None:
    effects = [row.effect for row in measured.rows if row.fault is None and not row.doubtful]
    assert effects
    assert all(effect is not None and 0 < effect < 16 for effect in effects)


@pytest.mark.parametrize("way", sorted(REWRITES))
def test_rewriting_changes_roundings_only(models: dict[str, Subject], way: str) -> None:
    bench = Bench(models["bert-1"], {})
    values = cpu.run(rewritten(bench.model, bench.values, REWRITES[way]), bench.subject.feeds)
    for (_, right), (_, other) in zip(bench.golden, values, strict=True):
        assert isinstance(right, Tensor)
        assert isinstance(other, Tensor)
        assert not np.array_equal(right.array, other.array)
        np.testing.assert_allclose(other.array, right.array, rtol=1e-4, atol=1e-5)


def test_a_stranger_answers_and_a_broken_model_is_an_answer(
    models: dict[str, Subject], tmp_path: Path
) -> None:
    stranger = Stranger(name="this one", precision=FULL, request={"provider": CPU})
    good, bad = models["mnist"], models["trees"]
    content = bad.case.model_path.read_bytes()
    bad.case.model_path.write_bytes(content[: len(content) // 2])
    try:
        answers = dict(ask(stranger, [bad, good], tmp_path))
    finally:
        bad.case.model_path.write_bytes(content)
    assert answers[bad.label].values is None
    assert answers[bad.label].why_not
    assert answers[good.label].values is not None


def test_a_provider_that_is_not_there_says_so(models: dict[str, Subject], tmp_path: Path) -> None:
    stranger = Stranger(name="nobody", precision=FULL, request={"provider": "NoSuchExecutionProvider"})
    answers = dict(ask(stranger, [models["mnist"], models["trees"]], tmp_path))
    assert {answer.values for answer in answers.values()} == {None}
    assert all("NoSuchExecutionProvider is not in this" in one.why_not for one in answers.values())


def test_rates_leave_out_what_is_small_or_doubtful() -> None:
    rows = [
        Row(model="m", precision=FULL, way="a", effect=1.0),
        Row(model="m", precision=FULL, way="b", effect=40.0, failed=(TABLE,), doubtful=True),
        Row(model="m", precision=FULL, way="n", fault="f", effect=15.0),
        Row(model="m", precision=FULL, way="n", fault="f", effect=17.0, failed=(TABLE,)),
        Row(model="m", precision=FULL, way="n", fault="f", effect=None),
    ]
    assert [visible(row) for row in rows] == [False, False, False, True, True]
    assert str(found(rows, TABLE)) == "50.0% (1 of 2)"
    assert str(accused(rows, TABLE)) == "0.0% (0 of 1)"
    by_size = dict(curve(rows, TABLE))
    assert (by_size["8 to 16"].of, by_size["16 to 64"].count, by_size["1024 or more"].of) == (1, 1, 0)
    assert by_size["shape, integer, NaN or infinity"].of == 1


def test_the_effect_from_which_on_a_policy_finds_nearly_all() -> None:
    rows = [
        Row(model="m", precision=FULL, way="n", fault="f", effect=size, failed=(TABLE,) if caught else ())
        for size, caught in [(2.0, True), (3.0, False), (5.0, True), (9.0, True), (None, False)]
    ]
    assert seen_from(rows, TABLE) == 5.0
    assert seen_from(rows, "nobody") is None
    assert [str(rate) for _, rate in bands(rows, TABLE, (2.0, 4.0, 8.0))] == [
        "50.0% (1 of 2)",
        "100.0% (1 of 1)",
    ]


def test_the_page_shows_every_table(measured: Measured) -> None:
    text = page(Results(environment=ENVIRONMENT, seconds=60.0, models=(measured,)))
    assert "{" not in text.replace("`noise = {}`", "")
    assert "| bias-dropped |" in text
    assert "| mnist | float32 | WebGPU |" in text
