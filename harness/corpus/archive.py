"""Test data inside the archive that a model zoo ships beside each model: ``resnet50.tar.gz``.

Read in memory, nothing is unpacked to the disk: no name inside an archive can lead anywhere.
"""

import re
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

ARCHIVE_SUFFIX = ".tar.gz"

LIMIT_BYTES = 8 << 30
"""What an archive may hold, unpacked; the model and its weights are part of it."""

_MEMBER = re.compile(r"(?:^|/)(test_data_set_\d+)/([^/]+)$")
_GZIP = b"\x1f\x8b"


def data_archive(model: Path) -> Path:
    """Where the archive of a model lies, if it has one."""
    return model.with_suffix(ARCHIVE_SUFFIX)


def read_archive(path: Path) -> dict[str, dict[str, bytes]]:
    """The data sets of an archive: name of the data set -> name of the file -> content.

    Returns:
        Nothing where there is no such file, or where it is none of gzip: a clone of a zoo without its large
        files has pointers in their place.

    Raises:
        ValueError: It is cut short, corrupt or too large.
        OSError: It cannot be read.
    """
    if not path.is_file():  # before it is opened, for a pipe would wait
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
    for data_set, name, member in _members(archive):
        stream = archive.extractfile(member)
        if stream is not None:
            found.setdefault(data_set, {})[name] = stream.read()
    return found


def _members(archive: tarfile.TarFile) -> Iterator[tuple[str, str, tarfile.TarInfo]]:
    total = 0
    for member in archive:
        total += member.size
        if total > LIMIT_BYTES:
            raise ValueError(f"holds more than {LIMIT_BYTES} bytes")
        # macOS adds a "._" file to each file, which holds none of its content.
        match = _MEMBER.search(member.name)
        if match and member.isreg() and not match[2].startswith("."):
            yield match[1], match[2], member
