"""Folders of runs."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def _isolated(own_cache: Path) -> None:
    """Every test of this folder keeps its goldens apart."""
