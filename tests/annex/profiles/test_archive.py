"""Archives are written in one way, and nothing in a foreign one is trusted."""

import stat
import zipfile
from io import BytesIO

import pytest

from harness.annex.conformance.profiles.profile_archive import (
    ArchiveLimits,
    read_profile_archive,
    write_archive,
)


def zipped(*entries: tuple[str, bytes], mode: int = stat.S_IFREG | 0o644) -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = mode << 16
            archive.writestr(entry, content)
    return buffer.getvalue()


def test_the_order_of_files_makes_no_difference() -> None:
    files = {"a/model.onnx": b"1" * 100, "B/model.onnx": b"2"}
    content = write_archive(files)
    assert content == write_archive(dict(reversed(files.items())))
    assert read_profile_archive(content) == files
    assert list(read_profile_archive(content)) == sorted(files)


@pytest.mark.parametrize(
    "name", ["../a", "a/../b", "/a", "a//b", "a\\b", "C:a", ".hidden", "a/.b", "a/", "a\nb", "", "x" * 181]
)
def test_names_that_lead_elsewhere_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no plain relative path"):
        read_profile_archive(zipped((name, b"")))


def test_links_are_refused() -> None:
    with pytest.raises(ValueError, match="is a link"):
        read_profile_archive(zipped(("a", b"/etc/passwd"), mode=stat.S_IFLNK | 0o777))


def test_names_that_some_systems_take_for_one_are_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        read_profile_archive(zipped(("a/model.onnx", b"1"), ("A/model.onnx", b"2")))


def test_a_file_below_a_file_is_refused() -> None:
    with pytest.raises(ValueError, match="below a file"):
        read_profile_archive(zipped(("a", b"1"), ("a/b", b"2")))


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (ArchiveLimits(entries=1), "2 entries"),
        (ArchiveLimits(file_bytes=999), "takes 1000 bytes"),
        (ArchiveLimits(total_bytes=1500), "2000 bytes unpacked"),
        (ArchiveLimits(ratio=2), "more than deflate"),
    ],
)
def test_limits_are_checked_before_anything_is_unpacked(limits: ArchiveLimits, message: str) -> None:
    content = zipped(("a", bytes(1000)), ("b", bytes(1000)))
    assert read_profile_archive(content)
    with pytest.raises(ValueError, match=message):
        read_profile_archive(content, limits)


def test_an_entry_larger_than_declared_is_refused() -> None:
    content = zipped(("a", bytes(1000)))
    forged = content.replace((1000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    assert forged != content
    with pytest.raises(ValueError, match=r"another size|not a whole archive"):
        read_profile_archive(forged)


@pytest.mark.parametrize("content", [b"", b"no zip", zipped(("a", b"x" * 500))[:-30]])
def test_what_is_no_archive_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="not a whole archive"):
        read_profile_archive(content)
