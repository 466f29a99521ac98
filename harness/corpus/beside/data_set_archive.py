"""Test data inside the archive that a model zoo ships beside each model: ``resnet50.tar.gz``.

It is read in memory, never unpacked to disk, so no name inside an archive can do harm.
"""

import os
import re
import tarfile
import zlib
from pathlib import Path

from harness.corpus.model.data_budget import DataBudget

ARCHIVE_SUFFIX = ".tar.gz"

LIMIT_BYTES = 8 << 30
"""Largest unpacked size of an archive; the model and its weights are part of it."""

MOST_MEMBERS = 10_000
"""Largest number of files in an archive: Python keeps an entry for each."""

_MEMBER = re.compile(r"(?:^|/)(test_data_set_\d+)/([^/]+)$")
_GZIP = b"\x1f\x8b"


def data_archive(model: Path) -> Path:
    """Return the path of a model's archive, which need not exist."""
    return model.with_suffix(ARCHIVE_SUFFIX)


def read_data_set_archive(path: Path) -> dict[str, dict[str, bytes]]:
    """Return the data sets of an archive: name of the data set -> name of the file -> content.

    There are none if there is no such file, or no gzip: a zoo cloned without its large files has pointers.

    Raises:
        ValueError: It is cut short, corrupt or too large.
        OSError: It cannot be read.
    """
    # Checked first, because opening a pipe would wait. pathlib raises if the name is too long for a file.
    if not os.path.isfile(path):  # noqa: PTH113
        return {}
    try:
        with path.open("rb") as file:
            if file.read(len(_GZIP)) != _GZIP:
                return {}
            file.seek(0)
            with tarfile.open(fileobj=file, mode="r|gz") as archive:
                return _collect(archive)
    except (tarfile.TarError, zlib.error, EOFError) as error:
        raise ValueError(f"not a whole archive: {error}") from error


def _collect(archive: tarfile.TarFile) -> dict[str, dict[str, bytes]]:
    found: dict[str, dict[str, bytes]] = {}
    total = 0
    budget = DataBudget()
    for number, member in enumerate(archive):
        total += member.size
        if total > LIMIT_BYTES:
            raise ValueError(f"holds more than {LIMIT_BYTES} bytes")
        if number >= MOST_MEMBERS:
            raise ValueError(f"holds more than {MOST_MEMBERS:,} files")
        # macOS adds a "._" file to each file, with none of its content.
        match = _MEMBER.search(member.name)
        if match and member.isreg() and not match[2].startswith("."):
            budget.take(member.size)
            stream = archive.extractfile(member)
            if stream is not None:
                found.setdefault(match[1], {})[match[2]] = stream.read()
    return found
