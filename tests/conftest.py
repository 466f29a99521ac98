"""What tests of several floors share."""

import functools
import gc
import itertools
import os
import shlex
import signal
import sys
import time
import types
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from hypothesis import settings
from onnx import TensorProto, helper, numpy_helper

from harness.corpus.caches.cache import ENVIRONMENT
from harness.corpus.suites.suite import suites_cache
from harness.runtimes import uv

# Tests import what they share as ``tests.…``. The checkout itself is not on the path: the harness under test
# may be an installed one.
_package = sys.modules.setdefault("tests", types.ModuleType("tests"))
_package.__path__ = [str(Path(__file__).parent)]


# How long an example takes is no matter: machines that run tests are slow, and busy. Each run draws others.
settings.register_profile("harness", deadline=None, max_examples=50)
settings.load_profile("harness")

# A shell lets what it starts with "&" ignore Ctrl-C, and so would every run a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


WAITING = "slurm"
"""Folder whose tests wait, and hardly compute."""

LONGEST = "test_triage.py"
"""File that takes longest, of those that compute: whole triages, one after the other."""

FIRST = (
    "real_ep",
    "crooked_ep",
    "triage",
    "engine",
    "pytest_plugin",
    "cli",
    "docs",
    "studies",
    "report",
    "agent_check",
)
"""Folders whose tests start processes: with xdist, what begins last should be short."""

END_BY = "EP_HARNESS_TESTS_END_BY"
"""Variable with the time, in seconds since 1970, from which on no further test begins; CI has a limit."""

EARLIER_S = {"crooked_ep": 180.0, "real_ep": 60.0, "triage": 60.0}
"""How long before that time the last test of a folder begins; a slow processor takes as long for one."""

OF_REAL_PROVIDERS = ("test_local_matrix.py", "test_real_providers.py")
"""Files that begin first: each real provider, and the README's first command."""

SUITES = suites_cache()
"""The user's suites, whatever cache tests have."""

OWN_CACHE = {"advise", "cli", "crooked_ep", "engine", "freeze", "pytest_plugin", "run", "studies"}


def pytest_configure(config: pytest.Config) -> None:
    """Have each worker of xdist begin to collect with another folder.

    Pytest compiles each file of tests once and keeps that: on a fresh checkout, workers that collect the same
    file at the same time would all compile it.
    """
    home = Path(__file__).parent
    worker = getattr(config, "workerinput", None)
    if worker is not None and [Path(path).resolve() for path in config.args] == [home]:
        paths = sorted(str(path) for path in home.iterdir() if path.is_dir() or path.match("test_*.py"))
        start = len(paths) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
        config.args = [*paths[start:], *paths[:start]]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without the garbage collector, and have it visit none of that later: a million objects stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the folders that take longest, or end with them. The tests of a file keep their order.

    Of the first ones every second file only waits: the processors have nothing to do if all workers have one.
    """
    folders = {path: folder_of(path) for path in {item.path for item in items}}
    order = ["", *FIRST] if END_BY in os.environ else [*FIRST, ""]
    rank = {
        path: -1 if path.name in OF_REAL_PROVIDERS else order.index(name if name in FIRST else "")
        for path, name in folders.items()
    }
    paths = sorted(rank, key=lambda path: (rank[path], path.name != LONGEST, path))
    waiting = [path for path in paths if folders[path] == WAITING]
    others = [path for path in paths if folders[path] != WAITING]
    first = itertools.chain(*zip(waiting, others, strict=False))
    place = {path: number for number, path in enumerate(dict.fromkeys([*first, *waiting, *others]))}
    items.sort(key=lambda item: place[item.path])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test for which no time is left."""
    if time.time() > float(os.environ.get(END_BY, "inf")) - EARLIER_S.get(folder_of(item.path), 0.0):
        pytest.skip("no time is left for it: CI has a quarter of an hour, and this processor is slow")


def folder_of(path: Path) -> str:
    """Return the folder of a file of tests below ``tests`` or ``tests/annex``."""
    return next((part for part in folders_of(path) if part != "annex"), "")


@functools.cache
def folders_of(path: Path) -> tuple[str, ...]:
    home = Path(__file__).parent
    return path.relative_to(home).parts if path.is_relative_to(home) else ()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give the tests of these folders a cache of their own, before any other fixture."""
    if isinstance(item, pytest.Function) and not OWN_CACHE.isdisjoint(folders_of(item.path)):
        item.fixturenames.insert(0, "own_cache")


@pytest.fixture(scope="session")
def with_suites() -> Callable[[Path], Path]:
    """``with_suites(cache)``: give a new cache the suites of the user's.

    To make ONNX's operator tests takes some 5 s, and no test changes a suite of these.
    """

    def link(cache: Path) -> Path:
        cache.mkdir(parents=True, exist_ok=True)
        SUITES.mkdir(parents=True, exist_ok=True)
        if os.name == "posix":  # elsewhere, links take a right that few users have
            (cache / "suites").symlink_to(SUITES)
        return cache

    return link


@pytest.fixture(scope="session", autouse=True)
def _engines() -> Iterator[None]:
    """Close the engines that tests have started."""
    yield
    if "tests.kit" in sys.modules:
        from tests.kit import STARTED

        for engine in STARTED:
            engine.close()


@pytest.fixture(scope="session")
def own_cache(
    tmp_path_factory: pytest.TempPathFactory, with_suites: Callable[[Path], Path]
) -> Iterator[Path]:
    """A cache for this session: its goldens stay out of the user's, but serve all tests that ask for it."""
    with pytest.MonkeyPatch.context() as patch:
        cache = with_suites(tmp_path_factory.mktemp("cache"))
        patch.setenv(ENVIRONMENT, str(cache))
        yield cache


@pytest.fixture(scope="session")
def endless_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``endless.onnx``: a model that runs for some hours."""
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Identity", ["go_on"], ["again"]), helper.make_node("Sin", ["a"], ["b"])],
        "body",
        [
            value("i", TensorProto.INT64, []),
            value("go_on", TensorProto.BOOL, []),
            value("a", TensorProto.FLOAT, [2, 3]),
        ],
        [value("again", TensorProto.BOOL, []), value("b", TensorProto.FLOAT, [2, 3])],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["trips", "", "x"], ["y"], body=body)],
        "endless",
        [value("x", TensorProto.FLOAT, [2, 3])],
        [value("y", TensorProto.FLOAT, [2, 3])],
        [numpy_helper.from_array(np.array(1 << 40, np.int64), "trips")],
    )
    path = tmp_path_factory.mktemp("models") / "endless.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture
def fake_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have environments built by ``fake_uv.py``, in a cache of the test's own; the log of its calls."""
    if os.name != "posix":
        pytest.skip("the fake is a shell script")
    from tests.programs import write_program

    log, program = tmp_path / "uv.log", tmp_path / "uv"
    command = [sys.executable, "-S", str(Path(__file__).with_name("fake_uv.py")), str(log)]
    write_program(program, f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    log.touch()
    monkeypatch.setattr(uv, "find_uv", lambda: str(program))
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "cache"))
    for name in tuple(os.environ):
        if name.startswith("UV_"):
            monkeypatch.delenv(name)
    return log


@pytest.fixture(scope="session")
def crooked_ep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of the plugin EP in ``tests/crooked_ep``, compiled once for all workers."""
    from tests.crooked_ep.build import COMPILER, build

    if sys.platform != "linux":
        pytest.skip("the crooked EP is built on Linux alone")
    if COMPILER is None and os.environ.get("CI", "").lower() != "true":
        pytest.skip("no C compiler is installed")
    base = tmp_path_factory.getbasetemp()
    return build((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "crooked_ep")


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """Return what makes a distribution of one module and its entry points, as pip would install it."""

    def make(name: str, entry_points: str, code: str = "") -> Path:
        folder = tmp_path / name
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(entry_points)
        (folder / f"{name}_module.py").write_text(code)
        monkeypatch.syspath_prepend(folder)
        return folder

    yield make
    for module in [name for name in sys.modules if name.endswith("_module")]:
        del sys.modules[module]
