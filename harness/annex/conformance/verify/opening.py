"""Open a submission: a folder or a zip, read whole into memory within limits, never unpacked to disk."""

import errno
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path

import msgspec

from harness.annex.conformance.submission import (
    ATTESTATION,
    LOG,
    SIGSTORE_BUNDLE,
    SSH_SIGNATURE,
    STATEMENT,
    SUBMITTED_RECORDS,
    SUBMITTED_RUN,
    WAIVERS,
)
from harness.annex.conformance.verify.finding import Finding, finding
from harness.core.files.reading import read_regular
from harness.core.files.zips import open_zip

_MOST_BYTES = 64 << 20
"""Largest size of all files of a submission together; a record has some kilobytes, and a profile some
hundred cases."""

_MOST_ENTRIES = 64
MOST_RATIO = 200.0
"""Unpacked bytes for each packed one, for entries over a megabyte. Records shrink to a tenth; deflate itself
cannot exceed 1032."""

_RATIO_FROM = 1 << 20
_PACKINGS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_ENCRYPTED = 0x1
_ZIP = b"PK\x03\x04"

_NEEDED = (STATEMENT, SUBMITTED_RECORDS, SUBMITTED_RUN, LOG, ATTESTATION)
SIGNATURES = (SSH_SIGNATURE, SIGSTORE_BUNDLE)
KNOWN = frozenset({*_NEEDED, *SIGNATURES, WAIVERS})

_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?", re.IGNORECASE)
"""Names that Windows reserves for devices, with any ending (learn.microsoft.com, "Naming Files")."""


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a submission: name -> content. Empty if a finding refuses it."""

    files: dict[str, bytes]
    findings: tuple[Finding, ...] = ()


def submissions_in(folder: Path) -> tuple[Path, ...]:
    """Return the submissions directly in a folder: folders with a statement, and zips; sorted."""
    return tuple(
        path for path in sorted(folder.iterdir()) if path.suffix == ".zip" or (path / STATEMENT).exists()
    )


def open_submission(path: Path) -> Opened:
    """Read a submission; every error becomes a finding."""
    files: dict[str, bytes] = {}
    findings: list[Finding] = []
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            findings += _read_folder(path, files)
        elif stat.S_ISREG(mode):
            findings += _read_zip(path, files)
        else:
            findings.append(finding("not-a-file", path.name, "neither a folder nor a zip"))
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError) as error:
        findings.append(finding("unreadable", path.name, error))
    except RuntimeError as error:  # zipfile's word for an entry with a password
        findings.append(finding("encrypted", path.name, error))
    if not findings:
        findings += missing_files(files)
    return Opened(files={} if findings else files, findings=tuple(findings))


def name_findings(names: Iterable[str]) -> Iterator[Finding]:
    """Yield what is wrong with the names of a submission's files, read with forward slashes."""
    seen: dict[str, str] = {}
    for name in names:
        if why := _unsafe(name):
            yield finding("unsafe-name", name, why)
        elif (other := seen.setdefault(name.casefold(), name)) != name:
            yield finding("duplicate-name", name, f"differs from {other!r} in case alone")
        elif name not in KNOWN:
            yield finding("unknown-file", name, f"a submission has only {', '.join(sorted(KNOWN))}")


def missing_files(names: Iterable[str]) -> Iterator[Finding]:
    """Yield the files that are missing."""
    for name in _NEEDED:
        if name not in names:
            yield finding("not-a-submission", name, "the file is missing")


def _read_folder(root: Path, files: dict[str, bytes]) -> Iterator[Finding]:
    names: list[str] = []
    left = _MOST_BYTES
    pending = [root]
    while pending:
        for entry in sorted(os.scandir(pending.pop()), key=lambda each: each.name):
            name = Path(entry.path).relative_to(root).as_posix()
            names.append(name)
            if len(names) > _MOST_ENTRIES:
                yield finding("too-large", name, f"more than {_MOST_ENTRIES} files and folders")
                return
            if entry.is_dir(follow_symlinks=False):
                names.pop()
                if root in Path(entry.path).parents and len(Path(name).parts) == 1:
                    pending.append(Path(entry.path))
                else:
                    yield finding("unknown-file", name, "a submission has no such folder")
            elif not entry.is_file(follow_symlinks=False):
                yield finding("not-a-file", name, "a link, pipe or device")
            else:
                content = _read_file(Path(entry.path), left)
                if content is None:
                    yield finding("too-large", name, f"more than {_MOST_BYTES:,} bytes in all")
                    return
                left -= len(content)
                files[name] = content
    yield from name_findings(names)


def _read_file(path: Path, most: int) -> bytes | None:
    """Return the content of a regular file, but not of a link; None if it has more bytes."""
    try:
        return read_regular(path, most, follow=False)
    except OSError as error:
        if error.errno == errno.EFBIG:
            return None
        raise


def _read_zip(path: Path, files: dict[str, bytes]) -> Iterator[Finding]:
    packed = _read_file(path, _MOST_BYTES)
    if packed is None:
        yield finding("too-large", path.name, f"more than {_MOST_BYTES:,} bytes")
        return
    if not packed.startswith(_ZIP):
        yield finding("unreadable", path.name, "neither a folder nor a zip")
        return
    with open_zip(BytesIO(packed)) as archive:
        entries = archive.infolist()
        found = [*_entry_findings(entries)]
        yield from found
        if found:
            return
        plain = [entry for entry in entries if not entry.is_dir()]
        prefix = _common_folder([entry.filename for entry in plain])
        names = [entry.filename.removeprefix(prefix) for entry in plain]
        found = [*name_findings(names)]
        yield from found
        if found:
            return
        for entry, name in zip(plain, names, strict=True):
            with archive.open(entry) as file:
                content = file.read(entry.file_size + 1)
            if len(content) != entry.file_size:
                yield finding("unreadable", name, "its length is not that of the directory")
            files[name] = content


def _entry_findings(entries: list[zipfile.ZipInfo]) -> Iterator[Finding]:
    if len(entries) > _MOST_ENTRIES:
        yield finding("too-large", "zip", f"more than {_MOST_ENTRIES} entries")
        return
    if sum(entry.file_size for entry in entries) > _MOST_BYTES:
        yield finding("too-large", "zip", f"more than {_MOST_BYTES:,} bytes unpacked")
    seen: set[str] = set()
    for entry in entries:
        # ``filename`` is truncated at a zero byte and has other slashes on Windows.
        name = entry.orig_filename
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if name in seen:
            yield finding("duplicate-name", name, "two entries have this name")
        seen.add(name)
        if kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
            yield finding("not-a-file", name, "a link or device")
        if entry.flag_bits & _ENCRYPTED or entry.compress_type not in _PACKINGS:
            yield finding("encrypted", name, "encrypted, or packed by other means than deflate")
        if entry.file_size > max(_RATIO_FROM, MOST_RATIO * entry.compress_size):
            yield finding("too-large", name, f"unpacks to more than {MOST_RATIO:.0f} times its size")
        if "\\" in name or "\0" in name or name.startswith("/") or ".." in name.split("/"):
            yield finding("unsafe-name", name, "absolute, with .., a backslash or a zero byte")


def _common_folder(names: list[str]) -> str:
    """Return the folder that surrounds all files in a zip of a folder; empty if there is none."""
    tops = {name.partition("/")[0] for name in names}
    if len(tops) == 1 and all("/" in name for name in names):
        return f"{tops.pop()}/"
    return ""


def _unsafe(name: str) -> str:
    parts = name.split("/")
    if "\\" in name or ":" in name:
        return "a backslash or colon, which Windows reads as another place"
    if name.startswith("/"):
        return "an absolute name"
    if any(part in {"", ".", ".."} for part in parts):
        return "an empty part, . or .."
    if any(_RESERVED.fullmatch(part) or part != part.rstrip(". ") for part in parts):
        return "a name that Windows keeps for a device, or changes"
    if not name.isprintable():
        return "control or invisible characters"
    return ""
