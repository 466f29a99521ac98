"""The benchmark of planted wrong answers, from the models to the page."""

import numpy as np
import pytest

from benchmarks.planted.arithmetic import Drawn, Rounded, tf32
from benchmarks.planted.court import Court
from benchmarks.planted.faults import faults
from benchmarks.planted.honest import honest
from benchmarks.planted.measure import measure
from benchmarks.planted.models import models
from benchmarks.planted.models.model import Model
from benchmarks.planted.page import page
from benchmarks.planted.rows import Results, Row, is_aside
from benchmarks.planted.subject import Subject
from harness.corpus.caches.cache import ENVIRONMENT

USED = ("mlp", "argmax", "round-of-product", "layer-norm")
KINDS = (
    "last row zero",
    "small half doubled",
    "one NaN",
    "off by 1e-3",
    "half away from zero",
    "dropped bias",
)
RUNS = (
    "other inputs: off by 1e-3",
    "other inputs: stale positions, integers, flags",
    "second run: off by 1e-3",
)
RIGHT = ("bit for bit", "sums in one row", "bfloat16, delivered")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    """A handful of kinds on a handful of models."""
    found: list[Row] = []
    with pytest.MonkeyPatch.context() as patch:
        for model in (one for one in models() if one.name in USED):
            folder = tmp_path_factory.mktemp(model.name)
            patch.setenv(ENVIRONMENT, str(folder / "cache"))
            model.write(folder / "models")
            court = Court(folder)
            wrong = [one for one in faults() if one.name in (*KINDS, *RUNS)]
            right = [one for one in honest() if one.name in RIGHT]
            found += measure(Subject(model, court), court, wrong, right)
            assert not court.errors
    return found


def test_there_are_as_many_kinds_and_models_as_were_asked_for() -> None:
    kinds = [one.name for one in faults()]
    names = [one.name for one in models()]
    assert len(kinds) == len(set(kinds)) >= 60
    assert len(names) == len(set(names)) >= 40
    for found in (kinds, names):
        assert 0.2 < sum(map(is_aside, found)) / len(found) < 0.5


def test_every_visible_fault_is_found(rows: list[Row]) -> None:
    visible = [row for row in rows if not row.honest and row.effect == "visible"]
    assert {row.kind for row in visible} == {*KINDS, *RUNS}
    assert {row.model for row in visible} == set(USED)
    assert [(row.kind, row.model) for row in visible if row.family != "failed"] == []


def test_no_honest_answer_fails(rows: list[Row]) -> None:
    right = [row for row in rows if row.honest]
    assert {row.kind for row in right} == set(RIGHT)
    assert [(row.kind, row.model) for row in right if row.family != "passed"] == []


def test_the_page_names_what_passes_and_what_is_accused(rows: list[Row]) -> None:
    base = {"effect": "visible", "size": 1e6, "verdict": "word", "reason": "because | of"}
    silent = Row(kind="a fault", model="mlp", honest=False, family="passed", **base)  # type: ignore[arg-type]
    accused = Row(kind="a right one", model="mlp", honest=True, family="failed", **base)  # type: ignore[arg-type]
    facts = {"onnxruntime": "1", "onnx": "1", "numpy": "2", "processor": "any"}
    text = page(Results(environment=facts, models=USED, seconds=1.0, rows=(*rows, silent, accused)))
    assert "| a fault | mlp | 1e+06 | word | because / of |" in text
    assert "| a right one | mlp |" in text
    assert "{" not in text


def test_arithmetic_by_hand() -> None:
    third = np.array([1 / 3])
    assert Rounded("float32")(third)[0] == np.float32(1 / 3)
    assert abs(tf32(third)[0] * 3 - 1) < 2**-10
    drawn = {Drawn(seed)(third)[0] for seed in range(20)}
    assert len(drawn) == 2  # its neighbours
    assert Drawn(1)(np.array([0.5]))[0] == 0.5  # what is exact stays
    terms = np.array([[1e8, 1.0, -1e8]])
    assert {Drawn(seed, jitter=False).total(terms, 1)[0, 0] for seed in range(20)} == {0.0, 1.0}


@pytest.mark.parametrize("model", models(), ids=lambda one: one.name)
def test_models_are_computed_in_float64_by_hand(model: Model) -> None:
    truth = model.run(Rounded())
    near = model.run(Drawn(3))
    for right, found in zip(truth, near, strict=True):
        if right.shape == found.shape and model.name not in {
            "ill-conditioned",
            "attention-fully-masked",
            "argmax-near-ties",
        }:
            finite = np.isfinite(right) & np.isfinite(found)
            size = np.abs(right[finite].astype(np.float64)).max(initial=1e-30)
            assert np.abs(right[finite] * 1.0 - found[finite] * 1.0).max(initial=0) <= size * 0.3
