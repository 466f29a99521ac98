"""Where tensor files lie: a folder for each run in memory, which goes with the run, however that ends."""

import os
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from harness.agent.tensor_files import FILE_FROM
from harness.core.values.value import tensor
from harness.engine.processes import mapped_tensors
from harness.engine.processes.mapped_tensors import TensorHome

LARGE = tensor(np.zeros(FILE_FROM, np.uint8))
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="a file system in memory")


def test_a_worker_has_a_folder_in_memory_and_one_on_disk(memory: Path, tmp_path: Path) -> None:
    home = TensorHome()
    scratch = tmp_path / "7"
    scratch.mkdir()
    tensors = home.open(scratch)
    first, second = map(Path, tensors.folders)
    assert (first.parent.parent, first.name, second) == (memory, "7", scratch / "tensors")
    tensors.put(LARGE)
    assert [path.name for path in first.iterdir()] == ["in-1"]
    tensors.remove()
    assert not first.exists()
    assert not second.exists()
    tensors.remove()
    home.close()
    assert list(memory.iterdir()) == []
    home.close()


def test_without_a_place_in_memory_there_is_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped_tensors, "MEMORY", tmp_path / "none")
    home = TensorHome()
    assert home.open(tmp_path).folders == [str(tmp_path / "tensors")]
    home.close()


def test_a_home_that_was_deleted_is_done_without(memory: Path, tmp_path: Path) -> None:
    home = TensorHome()
    shutil.rmtree(next(memory.iterdir()))
    assert home.open(tmp_path).folders == [str(tmp_path / "tensors")]
    home.close()


def test_a_forgotten_home_goes_with_its_owner(memory: Path) -> None:
    home = TensorHome()
    assert len(list(memory.iterdir())) == 1
    del home
    assert list(memory.iterdir()) == []


@LINUX
@pytest.mark.parametrize("lock", ["link", "file", "pipe"])
@pytest.mark.parametrize("of", ["another user", "this user, open to others", "a link"])
def test_a_folder_that_others_may_have_prepared_is_left_alone(
    memory: Path, of: str, lock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = memory.parent / "victim"
    victim.write_text("content", encoding="utf-8")
    trap = memory.parent / "trap" if of == "a link" else memory / "ep-harness-trap"
    trap.mkdir(mode=0o700)
    if of == "a link":
        (memory / "ep-harness-trap").symlink_to(trap)
    elif of == "this user, open to others":
        trap.chmod(0o777)
    else:  # what lies there is not this user's
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    if lock == "link":
        (trap / "lock").symlink_to(victim)
    elif lock == "pipe":
        os.mkfifo(trap / "lock")
    else:
        (trap / "lock").touch()
    TensorHome().close()
    assert [path.name for path in trap.iterdir()] == ["lock"]
    assert victim.read_text(encoding="utf-8") == "content"


@LINUX
def test_a_lock_that_is_a_link_is_not_followed_in_an_own_folder_either(memory: Path) -> None:
    victim = memory.parent / "victim"
    victim.write_text("content", encoding="utf-8")
    own = memory / "ep-harness-own"
    own.mkdir(mode=0o700)
    (own / "lock").symlink_to(victim)
    TensorHome().close()
    assert victim.read_text(encoding="utf-8") == "content"
    assert own.exists()


@LINUX
def test_a_name_that_is_taken_leaves_nothing_behind(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(path: Path, target: Path) -> Path:
        raise PermissionError(f"{path} to {target}")

    monkeypatch.setattr(Path, "rename", taken)
    home = TensorHome()
    assert list(memory.iterdir()) == []
    home.close()


def test_locks_follow_no_link() -> None:
    """Of filelock before 3.20.1 the victim's file was truncated: CVE-2025-68146."""
    file = Path(__file__).parents[2] / "pyproject.toml"
    needed = tomllib.loads(file.read_text(encoding="utf-8"))["project"]["dependencies"]
    (version,) = (one.partition(">=")[2] for one in needed if one.startswith("filelock"))
    assert tuple(map(int, version.split("."))) >= (3, 20, 3)


HOLD = """
import sys, time
from pathlib import Path
from harness.engine.processes import mapped_tensors
mapped_tensors.MEMORY = Path(sys.argv[1])
home = mapped_tensors.TensorHome()
(home._folder / "1").mkdir()
(home._folder / "1" / "in-1").write_bytes(bytes(1 << 20))
print("made", flush=True)
time.sleep(100)
"""


@LINUX
def test_the_next_run_deletes_what_a_killed_one_left_and_nothing_else(memory: Path) -> None:
    alive = TensorHome()
    with subprocess.Popen([sys.executable, "-c", HOLD, memory], stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"made\n"
        elsewhere = memory.parent / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "lock").touch()
        (memory / "ep-harness-link").symlink_to(elsewhere)
        (memory / "ep-harness-new").mkdir()
        (memory / "other").mkdir()
        during = set(memory.iterdir())
        TensorHome().close()
        assert set(memory.iterdir()) == during
        process.send_signal(signal.SIGKILL)
    TensorHome().close()
    assert len(during - set(memory.iterdir())) == 1
    assert sum(1 for path in memory.rglob("in-1")) == 0
    assert (elsewhere / "lock").exists()
    alive.close()
