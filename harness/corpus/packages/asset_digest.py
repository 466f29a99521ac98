"""The address of a shared asset: a digest of the contents and the names of its files."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

ASSET_SCHEME = "sha256:"


def asset_address(folder: Path) -> str:
    """Return the address of a folder: ``sha256:`` and 64 hexadecimal digits.

    It is the digest of the lines ``<digest of a file>  <relative path>``, sorted by path. Empty folders do
    not count.

    Raises:
        OSError: The folder cannot be read, or has a symbolic link, which no asset may have.
    """
    lines = sorted((path, _digest(folder / path)) for path in _files(folder))
    text = "".join(f"{digest}  {path}\n" for path, digest in lines)
    return ASSET_SCHEME + hashlib.sha256(text.encode()).hexdigest()


def asset_folder(address: str) -> str:
    """Return the name of the folder of an asset by convention."""
    return address.replace(":", "-", 1)


def _files(root: Path, relative: str = "") -> Iterator[str]:
    with os.scandir(root / relative) as entries:
        for entry in entries:
            path = f"{relative}/{entry.name}" if relative else entry.name
            if entry.is_symlink():
                raise OSError(0, f"{path} is a symbolic link, which an asset must not have", str(root))
            if entry.is_dir(follow_symlinks=False):
                yield from _files(root, path)
            elif entry.is_file(follow_symlinks=False):
                yield path


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
