"""The time limit of CI: no test begins after it, and those that start processes come last."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import END_BY, pytest_collection_modifyitems

HERE = Path(__file__).parent


@pytest.mark.parametrize(("seconds", "outcome"), [(-1.0, "5 skipped"), (600.0, "5 passed")])
def test_no_test_begins_after_the_limit(seconds: float, outcome: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/plan/test_where.py"]
    done = subprocess.run(
        [*command, "--collect-only"], cwd=HERE.parent, capture_output=True, text=True, check=True
    )
    chosen = [line for line in done.stdout.splitlines() if "::" in line][:5]
    done = subprocess.run(
        [*command[:-1], *chosen],
        cwd=HERE.parent,
        env={**os.environ, END_BY: str(time.time() + seconds)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert outcome in done.stdout, done.stdout


class _Item:
    def __init__(self, place: str) -> None:
        self.path = HERE / place


PLACES = [
    *("annex/triage/test_triage.py", "core/test_a.py", "real_ep/test_b.py", "engine/test_c.py"),
    "slurm/test_d.py",
    "real_ep/test_local_matrix.py",
]


def test_with_a_limit_slow_folders_come_last(monkeypatch: pytest.MonkeyPatch) -> None:
    def ordered() -> list[str]:
        items = [_Item(place) for place in PLACES]
        pytest_collection_modifyitems(items)  # type: ignore[arg-type]
        return [item.path.stem for item in items]

    monkeypatch.delenv(END_BY, raising=False)
    real, most = ["test_d", "test_local_matrix"], ["test_b", "test_triage", "test_c"]
    assert ordered() == [*real, *most, "test_a"]
    monkeypatch.setenv(END_BY, "0")
    assert ordered() == [*real, "test_a", *most]
