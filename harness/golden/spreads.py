"""The spread of a golden, stored in its entry: ``spread_<precision>/``.

``spread.json`` lists the arrays and what they were made from. Each array is a ``.npy`` file, which any tool
reads. Removing the golden removes its spread.
"""

import hashlib
import io
import shutil
from pathlib import Path

import msgspec
import numpy as np

from harness.core.spread import Spread
from harness.core.value import Floats
from harness.corpus import noisy
from harness.golden.store import keep_beside, read_intact

FORMAT = 6
"""Changes when spreads are computed or stored in another way."""


class _SpreadManifest(msgspec.Struct, frozen=True, kw_only=True):
    """``spread.json``.

    Attributes:
        precision: Precision whose rounding makes the noise.
        samples: Runs at each amplitude.
        leaves: For each data set: leaf of an output -> SHA-256 of its file, in the order of the files.
    """

    format: int
    noise_format: int
    precision: str
    samples: int
    amplitudes: tuple[float, ...]
    leaves: tuple[dict[str, str], ...]


def load_spread(entry: Path, precision: str) -> Spread | None:
    """Return the spread at a precision in the entry of a golden, or None; a damaged one is removed."""
    home = entry / f"spread_{precision}"
    if not home.is_dir():
        return None
    try:
        manifest = _manifests.decode((home / _MANIFEST).read_bytes())
        made_with = (manifest.format, manifest.noise_format, manifest.samples)
        if made_with == (FORMAT, noisy.FORMAT, noisy.SAMPLES):
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
    """Store a spread in the entry of its golden; do nothing if the golden is not stored.

    For ``amplitudes`` see ``harness.corpus.noisy.amplitudes_of``.

    Raises:
        UsageError: The cache cannot be written.
    """

    def build(folder: Path) -> None:
        manifest = _SpreadManifest(
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

    keep_beside(entry, f"spread_{spread.precision}", build)


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
_manifests = msgspec.json.Decoder(_SpreadManifest)
