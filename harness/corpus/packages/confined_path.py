"""Paths in a package: relative, without ``..``, and never outside of the package's folder."""

import os
import re
from pathlib import Path

_DRIVE = re.compile(r"^[A-Za-z]:")
_PARTS = re.compile(r"[/\\]")

OUTSIDE = "the harness reads nothing outside of a package: copy what it needs into it"


def why_refused(text: str) -> str:
    """Return what is wrong with a path that a package gives; empty if it is relative and goes only down."""
    if not text:
        return "is empty"
    if "\0" in text:
        return "has a NUL"
    if text.startswith(("/", "\\")) or _DRIVE.match(text):
        return "is absolute"
    if ".." in _PARTS.split(text):
        return "has a segment '..'"
    return ""


def leads_out(real_root: str, path: Path) -> bool:
    """Return whether a path leads out of a folder by symbolic links.

    ``real_root`` is the folder itself, with its own links resolved.
    """
    real = os.path.realpath(path)
    return real != real_root and not real.startswith(real_root.rstrip(os.sep) + os.sep)
