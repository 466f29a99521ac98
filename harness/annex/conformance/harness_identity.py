"""The running harness: its release, the digest of its sources, and why it may be unofficial.

An installed wheel carries the SHA-256 of each of its files in its own ``RECORD``; a checkout has git. Neither
stops a person from rewriting both: a publisher compares ``Harness.sources`` with a release of that version.
"""

import base64
import functools
import hashlib
import importlib.metadata
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from harness import __version__
from harness.annex.conformance.submission import Harness
from harness.core.text.errors import one_line
from harness.data_files import PACKAGE

DISTRIBUTION = "ort-ep-harness"

SUFFIXES = frozenset({".py", ".mjs", ".js", ".html"})
"""Suffixes of files that compute: Python, and the agent of Node.js and browsers."""

JUDGING = ("harness", "matrices/profiles", "matrices/providers")
"""Parts of a checkout that can change a verdict; the user's own matrix files do not make it dirty."""

_MOST_NAMED = 3
_GIT_LIMIT_S = 30.0


def this_harness() -> Harness:
    """Return the harness that runs."""
    return Harness(
        version=__version__,
        sources=sources_digest(PACKAGE),
        unofficial=(*_foreign_modules(PACKAGE), *_changes(PACKAGE)),
    )


@functools.cache
def own_sources() -> str:
    """Return the digest of the running harness's sources, read once in a process."""
    return sources_digest(PACKAGE)


def sources_digest(package: Path) -> str:
    """Return the SHA-256 over the names and contents of a package's sources, whatever its line endings."""
    total = hashlib.sha256()
    for path in _sources(package):
        content = path.read_bytes().replace(b"\r\n", b"\n")
        name = path.relative_to(package).as_posix()
        total.update(f"{name}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return total.hexdigest()


def _sources(package: Path) -> list[Path]:
    data = package / "_data"  # scripts of a bundle, which judge nothing
    found = (path for path in package.rglob("*") if path.suffix in SUFFIXES and data not in path.parents)
    return sorted(found, key=lambda path: path.relative_to(package).as_posix())


def _foreign_modules(package: Path) -> Iterator[str]:
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name.startswith("harness.") and file and package not in Path(file).resolve().parents:
            yield f"{name} is imported from {Path(file).parent}, not from the harness"


def _changes(package: Path) -> list[str]:
    try:
        files = importlib.metadata.distribution(DISTRIBUTION).files or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    recorded = {
        PurePosixPath(str(file).replace("\\", "/")): file
        for file in files
        if Path(str(file.locate())).resolve().is_relative_to(package)
    }
    if PurePosixPath("harness/__init__.py") in recorded:
        return _differs_from_record(package, recorded)
    if (package.parent / ".git").exists():
        return _differs_from_commit(package.parent)
    return ["the harness is neither an installed release nor a checkout of git, so nobody can compare it"]


def _differs_from_record(
    package: Path, recorded: dict[PurePosixPath, importlib.metadata.PackagePath]
) -> list[str]:
    changed = []
    for name, file in recorded.items():
        if file.hash is None:
            continue
        try:
            content = Path(str(file.locate())).read_bytes()
        except OSError:
            changed.append(str(name))
            continue
        digest = hashlib.new(file.hash.mode, content).digest()
        if base64.urlsafe_b64encode(digest).decode().rstrip("=") != file.hash.value.rstrip("="):
            changed.append(str(name))
    added = {
        PurePosixPath("harness", path.relative_to(package).as_posix()) for path in _sources(package)
    } - set(recorded)
    return [
        *_named("not as in the release", sorted(changed)),
        *_named("not in the release", sorted(map(str, added))),
    ]


def _differs_from_commit(root: Path) -> list[str]:
    command = ["git", "-C", str(root), "status", "--porcelain", "--untracked-files=all", "--", *JUDGING]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=_GIT_LIMIT_S)  # noqa: S603 - no shell
    except (OSError, subprocess.TimeoutExpired) as error:
        return [f"git cannot compare the checkout with its commit: {one_line(error)}"]
    if done.returncode != 0:
        told = one_line(done.stderr.decode("utf-8", "replace"))
        return [f"git cannot compare the checkout with its commit: {told}"]
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    return _named("not as in the commit", sorted(line[3:] for line in lines))


def _named(what: str, names: list[str]) -> list[str]:
    if not names:
        return []
    more = len(names) - _MOST_NAMED
    listed = ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    return [f"{what}: {listed}"]
