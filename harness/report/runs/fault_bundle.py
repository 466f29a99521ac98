"""The target of the report's link to a fault's bundle: in the run folder, or a copy in the site."""

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import quote

import msgspec

from harness.core.files.reading import read_regular
from harness.core.files.writing import write_aside
from harness.core.records.fault import TRIAGE_FOLDER, Fault

MAX_COPIED_BYTES = 16 * 2**20
"""Size of the largest bundle that is copied into a report outside the run folder."""

FOLDER = "bundles"
"""Folder for copies in the site."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class BundleArchive(msgspec.Struct, frozen=True, kw_only=True):
    """The archive of one bundle.

    Attributes:
        href: Link to it, relative to the site; empty if it is too large to be copied.
        source: The archive to copy into the site; null if the link leads into the run folder.
    """

    file: str
    href: str
    bytes: int
    source: Path | None = None


BundleOf = Callable[[Path, Fault], BundleArchive | None]
"""``(run folder, fault) -> bundle``; null if the fault has none."""


def no_bundle(_folder: Path, _fault: Fault) -> BundleArchive | None:
    """Return null: the report is not written to any folder."""
    return None


def bundles_for(out: Path) -> BundleOf:
    """Return a function that finds bundles for a report in the folder ``out``.

    The name of a bundle comes from a file, so a name that leads out of the triage folder is not followed.
    """
    site = out.resolve()

    def find(folder: Path, fault: Fault) -> BundleArchive | None:
        if not _NAME.fullmatch(fault.bundle):
            return None
        name = f"{fault.bundle}.zip"
        path = folder / TRIAGE_FOLDER / name
        try:
            root = path.parent.resolve()
            if not (path.is_file() and path.resolve().is_relative_to(root)):
                return None
            size = path.stat().st_size
            inside = site.is_relative_to(folder.resolve())
        except OSError:
            return None
        if inside:
            way = Path(os.path.relpath(folder.resolve() / TRIAGE_FOLDER / name, site)).as_posix()
            return BundleArchive(file=name, href=quote(way), bytes=size)
        if size > MAX_COPIED_BYTES:
            return BundleArchive(file=name, href="", bytes=size)
        return BundleArchive(file=name, href=f"{FOLDER}/{name}", bytes=size, source=path)

    return find


def copy_bundles(bundles: Iterable[BundleArchive], out: Path) -> None:
    """Copy the bundles to which the site links and that are not in the run folder.

    Raises:
        OSError: One cannot be read or written.
    """
    for bundle in bundles:
        if bundle.source is not None:
            target = out / bundle.href
            target.parent.mkdir(exist_ok=True)
            write_aside(target, read_regular(bundle.source, MAX_COPIED_BYTES))
