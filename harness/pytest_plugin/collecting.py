"""The hooks that collect the cells of the named matrices."""

import atexit
import gc
from collections.abc import Generator

import pytest

from harness.core.collector import without_collector
from harness.pytest_plugin.matrices import only_matrices


class Collecting:
    """Collects cells without what takes time for each of them."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._only_matrices = only_matrices(config)

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Collect without the garbage collector, which would visit all items and free none.

        Unregister pytest's fixture manager, too: cells have no fixtures, and sorting the items by fixtures
        took a third of the time.
        """
        fixtures = self._config.pluginmanager.get_plugin("funcmanage")
        if self._only_matrices and fixtures is not None:
            self._config.pluginmanager.unregister(fixtures)
        with without_collector():
            return (yield)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        """Spare the collector the items, which stay until the end."""
        gc.freeze()
        if self._only_matrices:
            atexit.register(gc.freeze)  # spares a last collection at exit: 0.2 s
