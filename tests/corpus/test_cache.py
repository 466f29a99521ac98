import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.core.text.errors import UsageError
from harness.corpus.caches.cache import ENVIRONMENT, cache_root, fill_once

BUILDER = """
import sys, time
from pathlib import Path
from harness.corpus.caches.cache import fill_once

def build(folder):
    with open(sys.argv[2], "a") as log:
        log.write("built\\n")
    (folder / "a").write_text("first")
    time.sleep(0.3)
    (folder / "b").write_text("second")

entry = fill_once(Path(sys.argv[1]), build)
assert sorted(one.name for one in entry.iterdir()) == ["a", "b"]
"""


def write_one(folder: Path) -> None:
    (folder / "content").write_text("whole")


def test_the_environment_moves_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "elsewhere"))
    assert cache_root() == tmp_path / "elsewhere"


def test_without_it_the_operating_system_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    assert cache_root().is_absolute()
    assert "ort-ep-harness" in str(cache_root())


def test_an_entry_is_built_once(tmp_path: Path) -> None:
    built = []

    def build(folder: Path) -> None:
        built.append(folder)
        write_one(folder)

    entry = tmp_path / "deep" / "entry"
    assert fill_once(entry, build) == fill_once(entry, build) == entry
    assert len(built) == 1
    assert (entry / "content").read_text() == "whole"


def test_a_failed_build_leaves_no_entry_and_can_be_repeated(tmp_path: Path) -> None:
    entry = tmp_path / "entry"

    def fail(folder: Path) -> None:
        write_one(folder)
        raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        fill_once(entry, fail)
    assert [one.name for one in tmp_path.iterdir() if not one.name.endswith(".lock")] == []
    assert (fill_once(entry, write_one) / "content").exists()


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    orphan = tmp_path / ".entry.abc123" / "content"
    orphan.mkdir(parents=True)
    fill_once(tmp_path / "entry", write_one)
    assert not orphan.parent.exists()


def test_processes_that_race_build_once_and_all_see_it_whole(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-c", BUILDER, str(tmp_path / "entry"), str(log)]
    racing = [subprocess.Popen(command, env={**os.environ, "PYTHONPATH": os.getcwd()}) for _ in range(3)]  # noqa: PTH109
    assert [one.wait(timeout=30) for one in racing] == [0, 0, 0]
    assert log.read_text() == "built\n"


def test_a_full_disk_is_a_usage_error_that_says_what_to_do(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))

    with pytest.raises(UsageError) as caught:
        fill_once(tmp_path / "entry", fail)
    assert str(tmp_path / "entry") in str(caught.value)
    assert ENVIRONMENT in str(caught.value)
    assert len(str(caught.value).splitlines()) == 2


def test_a_cache_that_cannot_be_written_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UsageError, match="the cache cannot be filled"):
        fill_once(tmp_path / "file" / "entry", write_one)
