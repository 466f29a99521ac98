"""Archives of profiles: zip files that are written the same way each time, and read with care.

An archive comes from elsewhere, so nothing in it is trusted. Names are plain relative paths, sizes are
limited before anything is unpacked, and links, duplicates and encrypted entries are refused.
"""

import re
import stat
import zipfile
import zlib
from collections.abc import Mapping
from io import BytesIO

import msgspec

from harness.core.files.zips import open_zip

_NAME = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9._+-]*(/[A-Za-z0-9_+-][A-Za-z0-9._+-]*)*")
"""No part begins with a dot, so none is ``..``; backslashes and colons are excluded because Windows
resolves them."""

_TIME = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip can express."""

_MODE = (stat.S_IFREG | 0o644) << 16
_UNIX = 3
_ENCRYPTED = 1
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})


class ArchiveLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Largest sizes of an archive.

    Attributes:
        entries: Files.
        file_bytes: Unpacked bytes of a file.
        total_bytes: Unpacked bytes of all files.
        ratio: Unpacked over packed bytes of a file. Deflate cannot exceed 1032.
        name_chars: Characters of a name. Windows limits whole paths to 260.
    """

    entries: int = 20_000
    file_bytes: int = 16 << 20
    total_bytes: int = 64 << 20
    ratio: int = 1100
    name_chars: int = 180


PROFILE_LIMITS = ArchiveLimits()


def write_archive(files: Mapping[str, bytes]) -> bytes:
    """Return a zip of files by name: sorted, without times, with the same modes everywhere.

    Equal files give equal bytes with equal versions of zlib.

    Raises:
        ValueError: A name is not allowed, or the files exceed the limits of profiles.
    """
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system, entry.external_attr = _UNIX, _MODE
            archive.writestr(entry, files[name], compresslevel=9)
    content = buffer.getvalue()
    read_profile_archive(content)
    return content


def read_profile_archive(content: bytes, limits: ArchiveLimits = PROFILE_LIMITS) -> dict[str, bytes]:
    """Return the files of a zip by name, in the order of the archive; nothing is written.

    Raises:
        ValueError: It is not a zip, is damaged or too large, or has an entry that our archives never have.
    """
    try:
        with open_zip(BytesIO(content)) as archive:
            entries = archive.infolist()
            _check(entries, limits)
            return {entry.filename: _read(archive, entry) for entry in entries}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"not a whole archive: {error}") from error


def _check(entries: list[zipfile.ZipInfo], limits: ArchiveLimits) -> None:
    """Check everything in the directory of an archive, before anything is unpacked."""
    if len(entries) > limits.entries:
        raise ValueError(f"{len(entries)} entries, and the limit is {limits.entries}")
    total = sum(entry.file_size for entry in entries)
    if total > limits.total_bytes:
        raise ValueError(f"{total} bytes unpacked, and the limit is {limits.total_bytes}")
    seen: set[str] = set()
    for entry in entries:
        name = entry.filename
        if why := _why_refused(entry, limits):
            raise ValueError(f"the entry {name[: limits.name_chars]!r} {why}")
        folded = name.lower()  # Windows and macOS treat both as one file
        if folded in seen:
            raise ValueError(f"the entry {name!r} is there twice")
        seen.add(folded)
    for name in seen:
        if any(parent in seen for parent in _parents(name)):
            raise ValueError(f"the entry {name!r} lies below a file")


def _why_refused(entry: zipfile.ZipInfo, limits: ArchiveLimits) -> str:
    kind = stat.S_IFMT(entry.external_attr >> 16)
    is_plain = len(entry.filename) <= limits.name_chars and _NAME.fullmatch(entry.filename)
    refusals = {
        "has no plain relative path": not is_plain,
        "is a link or no file": kind not in {0, stat.S_IFREG},
        "is encrypted": bool(entry.flag_bits & _ENCRYPTED),
        "is packed in another way than deflate": entry.compress_type not in _METHODS,
        f"takes {entry.file_size} bytes, and the limit is {limits.file_bytes}": (
            entry.file_size > limits.file_bytes
        ),
        "unpacks to more than deflate can pack": (
            entry.file_size > limits.ratio * max(1, entry.compress_size)
        ),
    }
    return next((why for why, applies in refusals.items() if applies), "")


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    # One byte more than declared: the directory may declare less than there is.
    with archive.open(entry) as file:
        content = file.read(entry.file_size + 1)
    if len(content) != entry.file_size:
        raise ValueError(f"the entry {entry.filename!r} has another size than the archive declares")
    return content


def _parents(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]
