"""The Slurm of these tests, started once."""

import importlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.slurm.slurm_cluster import Slurm


@pytest.fixture(scope="session")
def running_slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Slurm"]:
    """A Slurm with the nodes n1 and n2, each with two devices; in CI it must be there."""
    cluster: Any = importlib.import_module("slurm_cluster")
    if missing := cluster.missing_programs():
        problem = f"Slurm is not installed: no {', '.join(missing)} (Debian: apt-get install slurm-wlm)"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(problem)
        pytest.skip(problem)
    slurm: Slurm = cluster.Slurm(tmp_path_factory.mktemp("slurm"), ("n1", "n2"))
    try:
        slurm.start()
        yield slurm
    finally:
        slurm.stop()


@pytest.fixture
def slurm(running_slurm: "Slurm", monkeypatch: pytest.MonkeyPatch) -> Iterator["Slurm"]:
    """The same, with the variables of its commands, and no job before and after the test."""
    for name, value in running_slurm.environment.items():
        monkeypatch.setenv(name, value)
    yield running_slurm
    left = running_slurm.wait_for_no_job()
    running_slurm.clear()
    assert not left, "jobs outlived the run"
