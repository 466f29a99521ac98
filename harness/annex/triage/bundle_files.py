"""Reads a bundle from a stranger: checked against its manifest; nothing of it is run or imported."""

import hashlib
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec

from harness.annex.triage.manifest import BUNDLE_SCHEMA, MANIFEST, BundleManifest, FileEntry
from harness.core.files.reading import open_regular
from harness.core.files.zips import open_zip
from harness.core.text.errors import Problem, UsageError, one_line
from harness.core.text.visible_text import visible

_MOST_BYTES = 16 << 30
"""Largest size in bytes of all files of a bundle together, unpacked."""

MOST_MANIFEST_BYTES = 16 << 20

_BLOCK = 1 << 20
_RESERVED = frozenset(
    {"con", "prn", "aux", "nul", *(f"{name}{digit}" for name in ("com", "lpt") for digit in "0123456789")}
)
"""Names that are devices on Windows, whatever their suffix."""


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle, a folder or a zip, with the files of its manifest."""

    path: Path
    manifest: BundleManifest

    def refused(self, what: str, hint: str = "") -> UsageError:
        """Return the error that it cannot be used here."""
        return UsageError.at(self.path, what, hint)

    def unpack(self, folder: Path) -> None:
        """Copy the model and its data into a folder, and check them once more on the way.

        Raises:
            UsageError: A file has changed meanwhile.
        """
        with _blame(self.path), _source(self.path) as source:
            for name in sorted(self.manifest.paths()):
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("xb") as file:
                    _check(name, self.manifest.files[name], source, file)


def read_bundle(path: Path) -> Bundle:
    """Read a bundle, a folder or a zip, and check all of its files.

    Raises:
        UsageError: It is not a bundle, or does not match its manifest.
    """
    if not path.exists():
        raise UsageError.at(path, "there is no such bundle", "name a folder or a .zip")
    with _blame(path), _source(path) as source:
        with source.open(MANIFEST) as file:
            content = file.read(MOST_MANIFEST_BYTES + 1)
        if len(content) > MOST_MANIFEST_BYTES:
            raise ValueError(f"{MANIFEST} has more than {MOST_MANIFEST_BYTES} bytes")
        manifest = _decode(content)
        _check_paths(manifest)
        source.refuse_others({MANIFEST, *manifest.files})
        for name, entry in sorted(manifest.files.items()):
            _check(name, entry, source, None)
    return Bundle(path=path, manifest=manifest)


def _decode(content: bytes) -> BundleManifest:
    try:
        schema = msgspec.json.decode(content, type=dict[str, msgspec.Raw]).get("schema")
        found = msgspec.json.decode(schema, type=int) if schema else None
        if found != BUNDLE_SCHEMA:
            raise ValueError(f"{MANIFEST} has schema {found}; this version reads {BUNDLE_SCHEMA}")
        return msgspec.json.decode(content, type=BundleManifest)
    except RecursionError as error:
        raise ValueError(f"{MANIFEST} is nested too deeply") from error
    except msgspec.MsgspecError as error:
        raise ValueError(f"{MANIFEST}: {error}") from error


def _check_paths(manifest: BundleManifest) -> None:
    """Refuse paths that two systems read differently, and data that the manifest does not list."""
    spelled: set[str] = set()
    for name in manifest.files:
        parts = name.lower().split("/")
        if name.lower() in spelled or any(part.partition(".")[0] in _RESERVED for part in parts):
            raise ValueError(f"the file name {name!r} is not portable")
        spelled.add(name.lower())
    missing = manifest.paths() - manifest.files.keys()
    if missing:
        raise ValueError(f"{MANIFEST} names {min(missing)!r} without its SHA-256")
    if sum(entry.bytes for entry in manifest.files.values()) > _MOST_BYTES:
        raise ValueError(f"it holds more than {_MOST_BYTES >> 30} GiB")


def _check(name: str, entry: FileEntry, source: "_Folder | _Zip", copy: IO[bytes] | None) -> None:
    """Read one file, and compare size and digest; write the content to ``copy``."""
    digest, size = hashlib.sha256(), 0
    with source.open(name) as file:
        while block := file.read(_BLOCK):
            size += len(block)
            if size > entry.bytes:
                break
            digest.update(block)
            if copy is not None:
                copy.write(block)
    if size != entry.bytes:
        more = "more" if size > entry.bytes else "fewer"
        raise ValueError(f"{name} has {more} bytes than the {entry.bytes} of {MANIFEST}")
    if digest.hexdigest() != entry.sha256:
        raise ValueError(f"{name} is not the file of {MANIFEST}: another SHA-256")


class _Folder:
    """The files of a folder. No link is followed; files that the manifest does not name are left alone."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def open(self, name: str) -> IO[bytes]:
        path = self._root
        for part in name.split("/"):
            path /= part
            try:
                mode = path.lstat().st_mode
            except FileNotFoundError as error:
                raise ValueError(f"{name} is missing") from error
            if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
                raise ValueError(f"{name} is a link or no regular file")
        if not path.is_file():
            raise ValueError(f"{name} is no file")
        return open_regular(path, _MOST_BYTES, follow=False)

    def refuse_others(self, names: set[str]) -> None:
        """Accept other files: the owner of a folder may have added them."""


class _Zip:
    """The files of a zip, read in place: nothing is unpacked under a name that the archive chooses."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._entries: dict[str, zipfile.ZipInfo] = {}
        for info in archive.infolist():
            if info.is_dir():
                continue
            if info.filename in self._entries:
                raise ValueError(f"{info.filename!r} is in it twice")
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in {0, stat.S_IFREG} or info.flag_bits & 1:
                raise ValueError(f"{info.filename!r} is a link, encrypted or no regular file")
            self._entries[info.filename] = info

    def open(self, name: str) -> IO[bytes]:
        info = self._entries.get(name)
        if info is None:
            raise ValueError(f"{name} is missing")
        return self._archive.open(info)

    def refuse_others(self, names: set[str]) -> None:
        others = self._entries.keys() - names
        if others:
            raise ValueError(f"{min(others)!r} is not in {MANIFEST}")


@contextmanager
def _source(path: Path) -> Iterator[_Folder | _Zip]:
    if path.is_dir():
        yield _Folder(path)
        return
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("neither a folder nor a zip")
    with open_regular(path, _MOST_BYTES) as file, open_zip(file) as archive:
        yield _Zip(archive)


@contextmanager
def _blame(path: Path) -> Iterator[None]:
    """Turn any error caused by a broken bundle into one line that names it."""
    try:
        yield
    except OSError as error:
        reason: object = error.strerror or error
        raise UsageError(_problem(path, f"cannot be read: {reason}")) from error
    except (ValueError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise UsageError(_problem(path, f"is no sound bundle: {error}")) from error


def _problem(path: Path, what: str) -> Problem:
    return Problem(where=str(path), what=one_line(visible(what)))
