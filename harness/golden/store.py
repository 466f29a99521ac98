"""The golden cache: content-addressed entries in ONNX's own test-data layout.

An entry is ``<cache>/goldens/<2 digits>/<key>/`` with ``manifest.json`` and, where the CPU EP computed
something, ``test_data_set_N/output_M.pb`` as other tools read and write them, and ``other/output_M.pb``, the
outputs for other inputs; from a GiB on with external data beside it. The folder's own time says when the
golden was last used.

What was read from an entry lies in the row cache beside the entries, too. It counts while the entry's files
look the same: deleting an entry, or all of them, makes the CPU EP compute anew.
"""

import contextlib
import hashlib
import os
import shutil
from pathlib import Path
from typing import Any, Literal

import msgspec
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from harness.core.errors import one_line
from harness.core.value import from_wire, to_wire
from harness.corpus.cache import cache_root, fill_once
from harness.corpus.case import Case
from harness.corpus.file_state import cached_state
from harness.corpus.protos import TooLargeError
from harness.corpus.row_cache import LARGEST, open_row_cache
from harness.corpus.value_file import read_value, write_value
from harness.golden.golden import Golden, NamedValues

FORMAT = 5
"""Rises when entries change in meaning although nothing that they depend on does."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """``manifest.json`` of an entry: the golden without its tensors.

    Attributes:
        other: The same of the outputs for other inputs.
        files: For each data set the SHA-256 of its outputs' files, in the order of ``outputs``. A loss of
            power may leave files of the right length that hold zeros.
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
    """Where goldens are kept."""
    return cache_root() / "goldens"


def read_manifest(entry: Path) -> Manifest | None:
    """What stands beside the outputs of an entry; None where that cannot be read."""
    try:
        return _manifests.decode((entry / _MANIFEST).read_bytes())
    except (OSError, ValueError, msgspec.MsgspecError):
        return None


def read_intact(file: Path, digest: str) -> bytes:
    """The content of a file that has a SHA-256.

    Raises:
        OSError: It cannot be read.
        ValueError: It is not what it was.
    """
    content = file.read_bytes()
    if hashlib.sha256(content).hexdigest() != digest:
        raise ValueError(f"{file} has another SHA-256")
    return content


class GoldenStore:
    """Goldens computed under one provenance.

    Args:
        provenance: What values depend on besides model and inputs; part of every key.
        root: Folder of the store; the cache's by default.
    """

    def __init__(self, provenance: dict[str, str], root: Path | None = None) -> None:
        self._provenance = provenance
        self._identity = sorted(provenance.items())
        self._root = root or goldens_folder()
        self._row_cache = open_row_cache(self._root)

    def load(self, case: Case) -> Golden | None:
        """The stored golden of a case, or None. A damaged entry counts as none and is written anew."""
        key = self._key(case)
        entry = f"{self._root}/{key[:2]}/{key}"
        outputs = (
            f"{entry}/test_data_set_{number}/output_{index}.pb"
            for number in range(len(case.data_sets))
            for index in range(len(case.outputs))
        )
        state = cached_state(f"{entry}/{_MANIFEST}", *outputs)
        if state:
            with contextlib.suppress(OSError):  # a cache that others own: then it is for them to prune
                os.utime(entry)
        kept = state and self._row_cache.get(key, state.text)
        if kept:
            return _unpack(kept)
        golden = self._read(Path(entry), case)
        if golden and state and golden.nbytes < LARGEST:
            self._row_cache.put(key, state.text, _pack(golden))
        return golden

    def save(self, case: Case, golden: Golden) -> str:
        """Keep a golden. One that was ``lost`` is not kept: its next chance is the next run.

        Nor is one with values of another kind than the model declares, for which there is no file format.

        Returns:
            Why there is no room for it, in memory or in a file; else empty.

        Raises:
            UsageError: The cache cannot be written.
        """
        status = golden.status
        if status == "lost":
            return ""

        def build(folder: Path) -> None:
            manifest = Manifest(
                format=FORMAT,
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
            # Not there, or damaged by a full disk or a power loss: what cannot be read is computed again.
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
        """Where the golden of a case is kept, if it is."""
        return self._entry(self._key(case))

    def _key(self, case: Case) -> str:
        identity = (FORMAT, case.digest, self._identity)
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
    """A golden as it lies in the row cache, values in their wire form."""

    status: Literal["ok", "refused", "lost"]
    message: str
    outputs: tuple[tuple[tuple[str, Any], ...], ...]
    disputed: str
    provenance: dict[str, str]
    data_set: int | None = None
    other: tuple[tuple[str, Any], ...] = ()


def _pack(golden: Golden) -> bytes:
    kept = _Kept(
        status=golden.status,
        message=golden.message,
        outputs=tuple(tuple((name, to_wire(value)) for name, value in one) for one in golden.outputs),
        disputed=golden.disputed,
        provenance=golden.provenance,
        data_set=golden.data_set,
        other=tuple((name, to_wire(value)) for name, value in golden.other),
    )
    return msgspec.msgpack.encode(kept)


def _unpack(content: bytes) -> Golden:
    kept = _shelved.decode(content)
    return Golden(
        status=kept.status,
        message=kept.message,
        outputs=tuple(tuple((name, from_wire(wire)) for name, wire in one) for one in kept.outputs),
        disputed=kept.disputed,
        provenance=kept.provenance,
        data_set=kept.data_set,
        other=tuple((name, from_wire(wire)) for name, wire in kept.other),
    )


_MANIFEST = "manifest.json"
_manifests = msgspec.json.Decoder(Manifest)
_shelved = msgspec.msgpack.Decoder(_Kept)
