"""Triages of what a target with a planted fault computes."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

from harness.annex.triage.run_triage import Triage, TriageSettings
from harness.core.records.fault import Fault
from harness.engine.prepare import open_suites
from tests.annex.triage.planted_faults import run_planted


@pytest.fixture
def triage_planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Fault]]:
    """Run models on a target with a planted fault, and triage what failed."""
    if os.name != "posix":
        pytest.skip("faults are planted by POSIX signals")
    monkeypatch.setenv("EP_HARNESS_CACHE", str(tmp_path / "cache"))

    def triage(
        fault: dict[str, Any],
        *,
        budget_s: float | None = None,
        tables: dict[str, Any] | None = None,
        target: dict[str, Any] | None = None,
        learnt: list[str] | None = None,
        **models: onnx.ModelProto,
    ) -> list[Fault]:
        matrix, records = run_planted(tmp_path, fault, models, tables, **(target or {}))
        learnt = [] if learnt is None else learnt
        work = Triage(
            matrix,
            open_suites(matrix),
            records,
            tmp_path / "triage",
            TriageSettings(budget_s=budget_s),
            lambda note: learnt.append(note.text),
        )
        return list(work.run())

    return triage
