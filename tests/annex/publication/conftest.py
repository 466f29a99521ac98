from pathlib import Path

import pytest

from tests.annex.publication.publisher import Publisher


@pytest.fixture
def publisher(tmp_path: Path) -> Publisher:
    return Publisher(tmp_path)
