from pathlib import Path

import pytest

from tests.annex.publication.publisher import Publisher


@pytest.fixture
def publisher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Publisher:
    monkeypatch.setenv("EP_HARNESS_CACHE", str(tmp_path / "cache"))
    return Publisher(tmp_path)
