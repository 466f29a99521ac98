"""What tests of several floors share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.corpus.cache import ENVIRONMENT


@pytest.fixture(scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache for this session: its goldens stay out of the user's, but serve all tests that ask for it."""
    with pytest.MonkeyPatch.context() as patch:
        cache = tmp_path_factory.mktemp("cache")
        patch.setenv(ENVIRONMENT, str(cache))
        yield cache
