"""The digests of the files that processes load: kept, so that each state of a file is read only once.

Digests of this machine are kept in the cache, one entry for each environment. Digests of another machine are
kept as long as the run.
"""

import hashlib
from pathlib import Path

import msgspec

from harness.core.files.reading import read_regular
from harness.core.files.writing import aside
from harness.core.text.errors import UsageError
from harness.corpus.caches.cache import cache_root
from harness.engine.processes.launch import is_local
from harness.engine.tasks.configuration import Configuration

_ENTRY = "libraries"
"""Folder of the cache with the entries."""

_MOST_BYTES = 4 << 20
_MOST_KEPT = 5000
"""Largest number of files of one environment; libraries of former releases are never asked for again."""

_SHOWN = 12
"""Digits of a digest that a message shows."""

SeenFiles = dict[str, tuple[str, str]]
"""Path -> state of the file, and its digest in that state."""


class BuildsSeen:
    """The digests that processes reported; for the engine's thread alone."""

    def __init__(self, home: Path | None = None) -> None:
        self._home = home
        self._known: dict[str, SeenFiles] = {}
        self._seen: dict[tuple[str, str], str] = {}

    def known(self, config: Configuration, place: str) -> SeenFiles:
        """Return what is known about the files of a configuration."""
        key = _key(config, place)
        if key not in self._known:
            self._known[key] = self._read(key) if is_local(config.runtime) else {}
        return self._known[key]

    def learn(self, target: str, config: Configuration, place: str, files: SeenFiles) -> None:
        """Keep the digests that a process reported.

        Raises:
            UsageError: A file differs from that of an earlier process of this run: cells of one target must
                not use two builds.
        """
        where = "" if is_local(config.runtime) else f"{config.runtime}{place}"
        for path, (_, digest) in files.items():
            before = self._seen.setdefault((where, path), digest)
            if before != digest:
                name = path.replace("\\", "/").rpartition("/")[2]
                digests = " -> ".join(f"{each[:_SHOWN]}..." for each in (before, digest))
                what = f"{name} was replaced during the run (sha256 {digests}): cells would be of two builds"
                hint = "restore it and continue with --resume, or begin anew"
                raise UsageError.at(f"target {target}", what, hint)
        known = self.known(config, place)
        fresh = {path: kept for path, kept in files.items() if kept[0] and known.get(path) != kept}
        if fresh:
            if len(known) > _MOST_KEPT:
                known.clear()
            known.update(fresh)
            if is_local(config.runtime):
                self._write(_key(config, place), known)

    def _path(self, key: str) -> Path:
        return (self._home or cache_root() / _ENTRY) / f"{key}.json"

    def _read(self, key: str) -> SeenFiles:
        try:
            content = read_regular(self._path(key), _MOST_BYTES)
            return msgspec.json.decode(content, type=SeenFiles)
        except (OSError, ValueError):  # not JSON, or not UTF-8
            return {}

    def _write(self, key: str, files: SeenFiles) -> None:
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with aside(path) as fresh:
                fresh.write_bytes(msgspec.json.encode(files))
        except OSError:
            return  # the next run reads the files again


def _key(config: Configuration, place: str) -> str:
    """Return the key of an environment; options may load other libraries, which are added to its entry."""
    named = [config.runtime, config.providers, config.plugin, place]
    return hashlib.sha256(msgspec.json.encode(named)).hexdigest()[:32]
