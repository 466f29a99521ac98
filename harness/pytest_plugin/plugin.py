"""The part that pytest always loads: an option, a marker, a fixture. The rest needs a named matrix."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.pytest_plugin.matrices import MATRICES, named_matrices

if TYPE_CHECKING:
    from harness.pytest_plugin.fixture import EpCell
    from harness.pytest_plugin.items import MatrixCollector


_MARKER = (
    "ep_matrix(path, **selector): run the test for each cell of a matrix file, relative to rootdir, that "
    "the selector matches: globs on suite, model, target, provider or an axis. Use the fixture ep_cell."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--ep-out``, ``--ep-baseline`` and ``--ep-triage``."""
    group = parser.getgroup("ep-harness", "execution provider harness (pytest MATRIX.toml)")
    group.addoption(
        "--ep-out", metavar="DIR", help="write run.json, records.jsonl and artifacts of the matrix into DIR"
    )
    group.addoption(
        "--ep-baseline",
        metavar="FILE-OR-FOLDER",
        action="append",
        default=[],
        help="compare with the baseline that fits this machine; may be repeated",
    )
    group.addoption(
        "--ep-triage",
        action="store_true",
        help="explain failing cells at the end, for 10 minutes at most; needs --ep-out",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and, if a matrix is named, the hooks that run it."""
    config.addinivalue_line("markers", _MARKER)
    matrices = named_matrices(config)
    config.stash[MATRICES] = matrices
    out = config.getoption("ep_out")
    if out is not None:
        if len(matrices) != 1:
            got = f"{len(matrices)} are named" if matrices else "none is named"
            raise pytest.UsageError(f"--ep-out takes the run of one matrix, and {got}: pytest MATRIX.toml")
        config.option.ep_out = _absolute(config, out)
    elif config.getoption("ep_triage"):
        raise pytest.UsageError("--ep-triage keeps faults in the run folder: add --ep-out DIR")
    compared = config.getoption("ep_baseline")
    if compared and not matrices:
        raise pytest.UsageError("--ep-baseline is about a matrix, and none is named: pytest MATRIX.toml")
    if not hasattr(config, "workerinput"):
        config.option.ep_baseline = [_absolute(config, path) for path in compared]
    if matrices:
        from harness.pytest_plugin.collecting import Collecting

        config.pluginmanager.register(Collecting(config), "ep_harness_collecting")
    if matrices and not config.option.collectonly:
        shared = hasattr(config, "workerinput") or getattr(config.option, "dist", "no") != "no"
        if not shared:  # a worker of xdist may get no cells
            from harness.engine.processes.prestarted import prestart

            prestart(matrices[0])  # the processes start while the next line imports

        from harness.core.collector import without_collector

        with without_collector():
            from harness.pytest_plugin.conductor import register

        register(config, matrices)


def _absolute(config: pytest.Config, path: str) -> str:
    """Return a path that means the same to xdist's workers, which may have another working directory."""
    return os.path.abspath(config.invocation_params.dir / path)  # noqa: PTH100 - as pytest does


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "MatrixCollector | None":
    """Collect a matrix file named on the command line."""
    if file_path.suffix != ".toml" or file_path not in parent.config.stash[MATRICES]:
        return None
    from harness.pytest_plugin.items import MatrixCollector, node_id

    return MatrixCollector.from_parent(parent, path=file_path, nodeid=node_id(parent.config, file_path))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes ``ep_cell`` once for each cell that its marker selects."""
    if "ep_cell" in metafunc.fixturenames:
        from harness.pytest_plugin.marker import parametrize

        parametrize(metafunc)


@pytest.fixture
def ep_cell(request: pytest.FixtureRequest) -> "EpCell":
    """One cell of the matrix that the test's marker ``ep_matrix`` names; ``run()`` runs it."""
    from harness.pytest_plugin.fixture import open_cell

    return open_cell(request)
