"""The golden cache: content-addressed entries in ONNX's own test-data layout.

An entry is ``<cache>/goldens/<2 digits>/<key>/`` with ``manifest.json`` and, where the CPU EP computed
something, ``test_data_set_N/output_M.pb`` as other tools read and write them.
"""

import contextlib
import hashlib
import shutil
from pathlib import Path
from typing import Literal

import msgspec
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from harness.corpus.cache import cache_root, fill_once
from harness.corpus.case import Case
from harness.corpus.protos import decode, encode
from harness.golden.golden import Golden, NamedValues

FORMAT = 1
"""Rises when entries change in meaning although nothing that they depend on does."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """``manifest.json`` of an entry: the golden without its tensors."""

    format: int
    status: Literal["ok", "refused"]
    message: str
    deterministic: bool
    outputs: tuple[str, ...]
    data_sets: int
    case: str
    provenance: dict[str, str]


class GoldenStore:
    """Goldens computed under one provenance.

    Args:
        provenance: What values depend on besides model and inputs; part of every key.
        root: Folder of the store; the cache by default.
    """

    def __init__(self, provenance: dict[str, str], root: Path | None = None) -> None:
        self._provenance = provenance
        self._root = root or cache_root() / "goldens"

    def load(self, case: Case) -> Golden | None:
        """The stored golden of a case, or None. A damaged entry counts as none and is written anew."""
        entry = self._entry(case)
        try:
            manifest = _decoder.decode((entry / "manifest.json").read_bytes())
            outputs = tuple(
                _read_outputs(entry / f"test_data_set_{index}", manifest.outputs, case)
                for index in range(manifest.data_sets)
            )
        except (OSError, ValueError, msgspec.MsgspecError, DecodeError):
            # Not there, or torn by a full disk or a power loss: what cannot be read is computed again.
            shutil.rmtree(entry, ignore_errors=True)
            return None
        return Golden(
            status=manifest.status,
            message=manifest.message,
            outputs=outputs,
            deterministic=manifest.deterministic,
            provenance=manifest.provenance,
        )

    def save(self, case: Case, golden: Golden) -> None:
        """Keep a golden. One that was ``lost`` is not kept: its next chance is the next run.

        Nor is one with values of another kind than the model declares, for which there is no file format.

        Raises:
            UsageError: The cache cannot be written.
        """
        if golden.status == "lost":
            return
        manifest = Manifest(
            format=FORMAT,
            status=golden.status,
            message=golden.message,
            deterministic=golden.deterministic,
            outputs=case.outputs,
            data_sets=len(golden.outputs),
            case=case.digest,
            provenance=self._provenance,
        )

        def build(folder: Path) -> None:
            for index, outputs in enumerate(golden.outputs):
                _write_outputs(folder / f"test_data_set_{index}", outputs, case)
            (folder / "manifest.json").write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))

        with contextlib.suppress(TypeError, KeyError):
            fill_once(self._entry(case), build)

    def _entry(self, case: Case) -> Path:
        identity = (FORMAT, case.digest, sorted(self._provenance.items()))
        key = hashlib.sha256(msgspec.json.encode(identity)).hexdigest()
        return self._root / key[:2] / key


def _write_outputs(folder: Path, outputs: NamedValues, case: Case) -> None:
    folder.mkdir()
    values = dict(outputs)
    for index, (name, declared) in enumerate(zip(case.outputs, case.output_types, strict=True)):
        (folder / f"output_{index}.pb").write_bytes(encode(values[name], declared))


def _read_outputs(folder: Path, names: tuple[str, ...], case: Case) -> NamedValues:
    return tuple(
        (name, decode((folder / f"output_{index}.pb").read_bytes(), declared))
        for index, (name, declared) in enumerate(zip(names, case.output_types, strict=True))
    )


_decoder = msgspec.json.Decoder(Manifest)
