"""The golden cache: content-addressed entries in ONNX's own test-data layout.

An entry is ``<cache>/goldens/<2 digits>/<key>/`` with ``manifest.json``. If the CPU EP computed something,
it also has ``test_data_set_N/output_M.pb``, in the format of other tools, and ``other/output_M.pb``, the
outputs for other inputs; values of a GiB or more have external data beside them. The modification time of the
folder is the time of the last use.

The row cache beside the entries has copies of what was read. A copy is valid while the entry's files look the
same, so that the CPU EP computes a deleted entry again.
"""

import contextlib
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from harness.core.text.errors import one_line
from harness.core.values.value import NamedValues, from_wire, to_wire
from harness.corpus.beside.file_state import cached_state
from harness.corpus.beside.value_file import read_value, write_value
from harness.corpus.caches.cache import cache_root, fill_once
from harness.corpus.caches.row_cache import LARGEST_CONTENT, open_row_cache
from harness.corpus.case import Case
from harness.corpus.model.protos import TooLargeError
from harness.golden.golden_answer import Golden

GOLDEN_FORMAT = 6
"""Changes when the meaning of entries changes, but nothing that is part of their key."""


class GoldenManifest(msgspec.Struct, frozen=True, kw_only=True):
    """``manifest.json`` of an entry: the golden without its tensors.

    Attributes:
        files: For each data set the SHA-256 of its outputs' files, in the order of ``outputs``. A loss of
            power may leave files of the right length that contain zeros.
        other: The same for the outputs for other inputs.
    """

    format: int
    status: Literal["ok", "refused"]
    message: str
    disputed: str
    outputs: tuple[str, ...]
    files: tuple[tuple[str, ...], ...]
    case: str
    provenance: dict[str, str]
    data_set: int | None = None
    other: tuple[str, ...] = ()


def goldens_folder() -> Path:
    """Return the folder of all goldens."""
    return cache_root() / "goldens"


def read_manifest(entry: Path) -> GoldenManifest | None:
    """Return the manifest of an entry; None if it cannot be read."""
    try:
        return _manifests.decode((entry / _MANIFEST).read_bytes())
    except (OSError, ValueError, msgspec.MsgspecError):
        return None


def read_intact(file: Path, digest: str) -> bytes:
    """Return the content of a file.

    Raises:
        OSError: It cannot be read.
        ValueError: Its SHA-256 is not ``digest``.
    """
    content = file.read_bytes()
    if hashlib.sha256(content).hexdigest() != digest:
        raise ValueError(f"{file} has another SHA-256")
    return content


def keep_beside(entry: Path, name: str, build: Callable[[Path], None]) -> None:
    """Have a new folder in the entry of a golden filled, once; do nothing if the golden is not stored.

    Raises:
        UsageError: The cache cannot be written.
    """
    if read_manifest(entry) is not None:
        with contextlib.suppress(FileNotFoundError):  # the golden has just been pruned
            fill_once(entry / name, build)


class GoldenStore:
    """Goldens computed under one provenance, which is part of every key; in the cache by default."""

    def __init__(self, provenance: dict[str, str], root: Path | None = None) -> None:
        self._provenance = provenance
        self._identity = sorted(provenance.items())
        self._root = root or goldens_folder()
        self._row_cache = open_row_cache(self._root)

    def load(self, case: Case) -> Golden | None:
        """Return the stored golden of a case, or None. A damaged entry is removed."""
        key = self._key(case)
        entry = f"{self._root}/{key[:2]}/{key}"
        outputs = (
            f"{entry}/test_data_set_{number}/output_{index}.pb"
            for number in range(len(case.data_sets))
            for index in range(len(case.outputs))
        )
        state = cached_state(f"{entry}/{_MANIFEST}", *outputs)
        if state:
            with contextlib.suppress(OSError):  # the cache is owned, and pruned, by another user
                os.utime(entry)
        kept = state and self._row_cache.get(key, state.text)
        if kept:
            return _unpack(kept)
        golden = self._read(Path(entry), case)
        if golden and state and golden.nbytes < LARGEST_CONTENT:
            self._row_cache.put(key, state.text, _pack(golden))
        return golden

    def save(self, case: Case, golden: Golden) -> str:
        """Store a golden.

        Not stored are goldens that were ``lost``, and values of another kind than the model declares: no file
        format can hold these.

        Returns:
            Why it is too large for memory or a file; otherwise empty.

        Raises:
            UsageError: The cache cannot be written.
        """
        status = golden.status
        if status == "lost":
            return ""

        def build(folder: Path) -> None:
            manifest = GoldenManifest(
                format=GOLDEN_FORMAT,
                status=status,
                message=golden.message,
                disputed=golden.disputed,
                outputs=case.outputs,
                files=tuple(
                    _write_outputs(folder / f"test_data_set_{index}", outputs, case)
                    for index, outputs in enumerate(golden.outputs)
                ),
                case=case.digest,
                provenance=self._provenance,
                data_set=golden.data_set,
                other=_write_outputs(folder / "other", golden.other, case) if golden.other else (),
            )
            (folder / _MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))

        try:
            fill_once(self._entry(self._key(case)), build)
        except (TypeError, KeyError):
            return ""
        except (TooLargeError, MemoryError) as error:
            why = one_line(error) or "out of memory"
            return f"its {golden.nbytes / (1 << 30):.1f} GiB cannot be kept: {why}"
        return ""

    def _read(self, entry: Path, case: Case) -> Golden | None:
        try:
            manifest = _manifests.decode((entry / _MANIFEST).read_bytes())
            outputs = tuple(
                _read_outputs(entry / f"test_data_set_{index}", digests, case)
                for index, digests in enumerate(manifest.files)
            )
            other = _read_outputs(entry / "other", manifest.other, case) if manifest.other else ()
        except (OSError, ValueError, msgspec.MsgspecError, DecodeError):
            # Missing, or damaged by a full disk or a power loss: it will be computed again.
            shutil.rmtree(entry, ignore_errors=True)
            return None
        return Golden(
            status=manifest.status,
            message=manifest.message,
            data_set=manifest.data_set,
            outputs=outputs,
            other=other,
            disputed=manifest.disputed,
            provenance=manifest.provenance,
        )

    def entry(self, case: Case) -> Path:
        """Return the folder of a case's golden, which need not exist."""
        return self._entry(self._key(case))

    def _key(self, case: Case) -> str:
        identity = (GOLDEN_FORMAT, case.digest, self._identity)
        return hashlib.sha256(msgspec.json.encode(identity)).hexdigest()

    def _entry(self, key: str) -> Path:
        return self._root / key[:2] / key


def _write_outputs(folder: Path, outputs: NamedValues, case: Case) -> tuple[str, ...]:
    folder.mkdir()
    values = dict(outputs)
    digests = []
    for index, (name, declared) in enumerate(zip(case.outputs, case.output_types, strict=True)):
        digests.append(write_value(folder / f"output_{index}.pb", values[name], declared))
    return tuple(digests)


def _read_outputs(folder: Path, digests: tuple[str, ...], case: Case) -> NamedValues:
    declared = zip(case.outputs, case.output_types, digests, strict=True)
    return tuple(
        (name, read_value(folder / f"output_{index}.pb", kind, digest))
        for index, (name, kind, digest) in enumerate(declared)
    )


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    """A golden in the row cache, with values in their wire form."""

    status: Literal["ok", "refused", "lost"]
    message: str
    outputs: tuple[tuple[tuple[str, Any], ...], ...]
    disputed: str
    provenance: dict[str, str]
    data_set: int | None = None
    other: tuple[tuple[str, Any], ...] = ()


def _pack(golden: Golden) -> bytes:
    values = {
        "outputs": tuple(tuple((name, to_wire(value)) for name, value in one) for one in golden.outputs),
        "other": tuple((name, to_wire(value)) for name, value in golden.other),
    }
    kept = {field: getattr(golden, field) for field in _Kept.__struct_fields__}
    return msgspec.msgpack.encode(_Kept(**kept | values))


def _unpack(content: bytes) -> Golden:
    kept = _rows.decode(content)
    values = {
        "outputs": tuple(tuple((name, from_wire(wire)) for name, wire in one) for one in kept.outputs),
        "other": tuple((name, from_wire(wire)) for name, wire in kept.other),
    }
    return Golden(**msgspec.structs.asdict(kept) | values)


_MANIFEST = "manifest.json"
_manifests = msgspec.json.Decoder(GoldenManifest)
_rows = msgspec.msgpack.Decoder(_Kept)
