import errno
import threading
from pathlib import Path

import pytest

from harness.run.durable import DurableFile


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.run.durable.SYNC_EVERY_S", 0.01)


def test_what_was_added_is_in_the_file_before_it_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.run.durable.SYNC_EVERY_S", 3600.0)
    file = DurableFile(tmp_path / "records")
    file.add(b"one\n")
    assert (tmp_path / "records").read_bytes() == b"one\n"
    file.close()  # does not wait for the clock


@pytest.mark.usefixtures("_quick")
def test_the_clock_puts_it_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = threading.Event()
    monkeypatch.setattr("harness.run.durable.os.fsync", lambda _: synced.set())
    file = DurableFile(tmp_path / "records")
    for line in (b"one\n", b"two\n"):  # again after the first time
        file.add(line)
        assert synced.wait(60)
        synced.clear()
    file.close()


def add_until_it_fails(file: DurableFile) -> None:
    while True:
        file.add(b"two\n")


@pytest.mark.usefixtures("_quick")
def test_a_disk_that_fails_meanwhile_is_told_by_what_comes_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("harness.run.durable.os.fsync", fail)
    file = DurableFile(tmp_path / "records")
    file.add(b"one\n")
    with pytest.raises(OSError, match="Input/output"):
        add_until_it_fails(file)
    with pytest.raises(OSError, match="Input/output"):
        file.close()
