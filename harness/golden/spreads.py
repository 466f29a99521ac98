"""The spread of a golden, kept beside it: ``spread_<precision>/`` in the folder of its entry.

``spread.json`` says which arrays there are and what they were made from; each lies in a ``.npy`` file that
any tool reads. Whatever removes the golden removes them, too.
"""

import contextlib
import hashlib
import io
import shutil
from pathlib import Path

import msgspec
import numpy as np

from harness.core.spread import Floats, Spread
from harness.corpus import noisy
from harness.corpus.cache import fill_once
from harness.golden.store import read_intact, read_manifest

FORMAT = 6
"""Rises when spreads are computed or kept in another way."""


class SpreadManifest(msgspec.Struct, frozen=True, kw_only=True):
    """``spread.json``.

    Attributes:
        format: ``FORMAT``.
        noise_format: That of the model with noise.
        precision: Whose rounding makes the noise.
        samples: Runs at each amplitude.
        amplitudes: By what the noise was multiplied.
        leaves: For each data set the leaves of outputs that have a spread, in the order of their files, and
            the SHA-256 of these.
    """

    format: int
    noise_format: int
    precision: str
    samples: int
    amplitudes: tuple[float, ...]
    leaves: tuple[dict[str, str], ...]


def load_spread(entry: Path, precision: str) -> Spread | None:
    """The spread that is kept with a golden, or None; a damaged one counts as none and is removed.

    Args:
        entry: The golden's folder.
        precision: Whose rounding.
    """
    home = _home(entry, precision)
    if not home.is_dir():
        return None
    try:
        manifest = _manifests.decode((home / _MANIFEST).read_bytes())
        if (manifest.format, manifest.noise_format, manifest.samples) == _CURRENT:
            return Spread(
                precision=precision,
                outputs=tuple(
                    {
                        leaf: _read(home / _file(number, index), digest)
                        for index, (leaf, digest) in enumerate(leaves.items())
                    }
                    for number, leaves in enumerate(manifest.leaves)
                ),
            )
    except (OSError, ValueError, EOFError, msgspec.MsgspecError):
        pass
    shutil.rmtree(home, ignore_errors=True)
    return None


def save_spread(entry: Path, spread: Spread, amplitudes: tuple[float, ...]) -> None:
    """Keep a spread with its golden. Where no golden is kept, neither is its spread.

    Args:
        entry: The golden's folder.
        spread: What to keep.
        amplitudes: What the samples were drawn at; see ``harness.corpus.noisy.amplitudes_of``.

    Raises:
        UsageError: The cache cannot be written.
    """
    if read_manifest(entry) is None:
        return

    def build(folder: Path) -> None:
        manifest = SpreadManifest(
            format=FORMAT,
            noise_format=noisy.FORMAT,
            precision=spread.precision,
            samples=noisy.SAMPLES,
            amplitudes=tuple(sorted({amplitude for amplitude in amplitudes if amplitude})),
            leaves=tuple(
                {
                    leaf: _write(folder / _file(number, index), array)
                    for index, (leaf, array) in enumerate(outputs.items())
                }
                for number, outputs in enumerate(spread.outputs)
            ),
        )
        (folder / _MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))

    with contextlib.suppress(FileNotFoundError):  # the golden has just been pruned
        fill_once(_home(entry, spread.precision), build)


def _home(entry: Path, precision: str) -> Path:
    return entry / f"spread_{precision}"


def _file(number: int, index: int) -> str:
    return f"test_data_set_{number}-output_{index}.npy"


def _write(file: Path, array: Floats) -> str:
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    file.write_bytes(content.getvalue())
    return hashlib.sha256(content.getvalue()).hexdigest()


def _read(file: Path, digest: str) -> Floats:
    return np.asarray(np.load(io.BytesIO(read_intact(file, digest)), allow_pickle=False), np.float64)


_MANIFEST = "spread.json"
_CURRENT = (FORMAT, noisy.FORMAT, noisy.SAMPLES)
_manifests = msgspec.json.Decoder(SpreadManifest)
