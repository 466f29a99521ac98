"""Models made from others are removed if they are no longer used; nothing else is."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import filelock
import pytest

from harness.corpus.case import Case
from harness.corpus.derived.derived_models import prune_derived
from harness.corpus.derived.upcast import float64_case
from harness.corpus.load_case import load_case
from harness.corpus.suites.suite import open_file

DAY_S = 86400.0


@pytest.fixture
def made(write_model: Callable[..., Path], own_cache: Path) -> Path:
    """The folder of a model in float64, last used two days ago."""
    assert own_cache
    case = float64_case(load_case(open_file(write_model()), "one.onnx", {"N": 4}))
    assert isinstance(case, Case)
    then = time.time() - 2 * DAY_S
    os.utime(case.model_path.parent, (then, then))
    return case.model_path.parent


def test_unused_models_are_removed(made: Path) -> None:
    other = made.parents[1] / "precision" / "fp16" / "entry"
    other.mkdir(parents=True)
    (other / "model.onnx").write_bytes(b"abc")
    size = sum(file.stat().st_size for file in made.iterdir())
    assert list(prune_derived(older_than_s=3 * DAY_S)) == []
    assert list(prune_derived(older_than_s=DAY_S)) == [size]
    assert not made.exists()
    assert list(prune_derived(older_than_s=0.0)) == [3]
    assert not other.exists()


def test_use_keeps(made: Path, write_model: Callable[..., Path]) -> None:
    float64_case(load_case(open_file(write_model()), "one.onnx", {"N": 4}))
    assert list(prune_derived(older_than_s=DAY_S)) == []
    assert made.exists()


def test_what_another_process_fills_stays(made: Path) -> None:
    with filelock.FileLock(made.with_name(f"{made.name}.lock")):
        assert list(prune_derived(older_than_s=0.0)) == []
    assert made.exists()


def test_suites_and_goldens_are_none(own_cache: Path) -> None:
    for name in ("suites", "goldens", "runtimes"):
        (own_cache / name / "entry").mkdir(parents=True)
        (own_cache / name / "entry" / "file").touch()
    assert list(prune_derived(older_than_s=0.0)) == []
