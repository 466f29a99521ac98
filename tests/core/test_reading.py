"""Files of folders that somebody else may have made."""

import errno
import io
import os
import zipfile
from pathlib import Path

import pytest

from harness.core.files.reading import open_regular, read_regular
from harness.core.files.zips import MOST_DIRECTORY, open_zip

posix = pytest.mark.skipif(os.name != "posix", reason="Windows has neither pipes nor devices in folders")


def test_a_file_is_read_up_to_its_bound(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"a\r\nb" * 256)
    assert read_regular(file, 1024) == b"a\r\nb" * 256
    with pytest.raises(OSError, match="bound") as caught:
        read_regular(file, 1023)
    assert caught.value.errno == errno.EFBIG
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "other", 1)


def test_a_file_that_grows_meanwhile_is_not_read_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"abc")
    monkeypatch.setattr("harness.core.files.reading._check", lambda *_: None)
    with pytest.raises(OSError, match="larger"):
        read_regular(file, 2)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="not a file"):
        open_regular(tmp_path, 1 << 20)


@posix
def test_neither_a_pipe_nor_a_device_is_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    (tmp_path / "around").symlink_to(tmp_path / "around")
    for name in ("pipe", "endless"):
        with pytest.raises(OSError, match="not a file"):
            open_regular(tmp_path / name, 1 << 60)
    with pytest.raises(OSError, match="symbolic links"):
        open_regular(tmp_path / "around", 1)


@posix
def test_links_are_followed_only_where_they_may_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("file")
    assert read_regular(tmp_path / "link", 3) == b"abc"
    with pytest.raises(OSError, match="not a file"):
        read_regular(tmp_path / "link", 3, follow=False)


def zipped(entries: int, size: int = 0) -> io.BytesIO:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for number in range(entries):
            archive.writestr(zipfile.ZipInfo(f"{number:050}"), bytes(size))
    return content


def test_the_list_of_a_zip_is_bounded_and_its_files_are_not() -> None:
    with pytest.raises(zipfile.BadZipFile, match="list of entries is larger than 4 MiB"):
        open_zip(zipped(MOST_DIRECTORY // 96 + 1))
    large = zipped(2, MOST_DIRECTORY + 1)
    with open_zip(large) as archive:
        assert [len(archive.read(name)) for name in archive.namelist()] == [MOST_DIRECTORY + 1] * 2
    assert not large.closed


@pytest.mark.parametrize("content", [b"", b"abc", b"PK\x03\x04" + bytes(100)])
def test_what_is_no_zip_is_none(content: bytes) -> None:
    with pytest.raises(zipfile.BadZipFile):
        open_zip(io.BytesIO(content))
