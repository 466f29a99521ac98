"""What tests of the engine share."""

from pathlib import Path

import pytest

from harness.engine.processes import mapped_tensors


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the system's memory of shared tensors."""
    memory = tmp_path / "memory"
    memory.mkdir()
    monkeypatch.setattr(mapped_tensors, "MEMORY", memory)
    return memory
