"""The goldens in the cache: list them, and remove those that are no longer used."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from harness.corpus.caches.cache import remove_entry
from harness.golden.golden_cache import GOLDEN_FORMAT, GoldenManifest, goldens_folder, read_manifest
from harness.golden.provenance import provenance

_KEY = re.compile(r"[0-9a-f]{64}")


class KeptGolden(msgspec.Struct, frozen=True, kw_only=True):
    """A golden of the cache, without a manifest if that cannot be read.

    Attributes:
        used_at: When it was last read or written, in seconds since the epoch.
    """

    folder: Path
    manifest: GoldenManifest | None
    used_at: float

    @property
    def nbytes(self) -> int:
        """Size of its files."""
        return sum(path.lstat().st_size for path in self.folder.rglob("*") if path.is_file())


def kept_goldens(root: Path | None = None) -> Iterator[KeptGolden]:
    """Yield every golden of the cache, or of another store, of any release and format."""
    root = root or goldens_folder()
    for folder in sorted(root.glob("??/*")):
        if _KEY.fullmatch(folder.name):
            try:
                used_at = folder.stat().st_mtime
            except OSError:  # another process has just removed it
                continue
            yield KeptGolden(folder=folder, manifest=read_manifest(folder), used_at=used_at)


def kept_by_case(root: Path | None = None) -> dict[str, list[dict[str, str]]]:
    """Return digest of a case -> the provenances of its cached goldens, without those of references."""
    found: dict[str, list[dict[str, str]]] = {}
    for one in kept_goldens(root):
        if one.manifest is not None and one.manifest.format == GOLDEN_FORMAT and _is_golden(one.manifest):
            found.setdefault(one.manifest.case, []).append(one.manifest.provenance)
    return found


def _is_golden(manifest: GoldenManifest) -> bool:
    """Return whether an entry is a golden, and not an answer of a reference or of a target's own CPU EP.

    References are onnx.reference and the CPU EP without optimizations.
    """
    made = manifest.provenance
    level = provenance()["graph_optimization"]
    return not {"evaluator", "environment"} & made.keys() and made.get("graph_optimization", level) == level


class Removed(msgspec.Struct, frozen=True, kw_only=True):
    """A golden that was removed, and what computed it: ``onnxruntime 1.31.1``; empty if it told nothing."""

    by: str
    nbytes: int


def prune_goldens(*, older_than_s: float, root: Path | None = None) -> Iterator[Removed]:
    """Remove goldens that were not used for so long, in seconds, and yield each that is gone.

    The CPU EP can compute them again. A golden that another process is writing stays.
    """
    now = time.time()
    for one in kept_goldens(root):
        if now - one.used_at < older_than_s:
            continue
        nbytes = one.nbytes
        if remove_entry(one.folder):
            yield Removed(by=_maker(one.manifest) if one.manifest else "", nbytes=nbytes)


def _maker(manifest: GoldenManifest) -> str:
    made = manifest.provenance
    if "evaluator" in made:
        return f"{made['evaluator']} {made.get('onnx', '')}"
    return f"onnxruntime {made.get('onnxruntime', '')}"
