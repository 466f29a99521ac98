"""What is stored in a golden's entry: its spreads, and operators whose errors it does not show.

``spread_<precision>/spread.json`` lists the arrays and what they were made from. Each array is a ``.npy``
file, which any tool reads. Removing the golden removes its spread.
"""

import hashlib
import io
import shutil
from pathlib import Path

import msgspec
import numpy as np

from harness.core.noise.noise_moves import Move
from harness.core.noise.spread import Spread
from harness.core.values.value import Array, Floats
from harness.corpus.derived import noisy, zeroing
from harness.golden.golden_cache import keep_beside, read_intact

SPREADS_FORMAT = 10
"""Changes when spreads are computed or stored in another way."""


class _SpreadManifest(msgspec.Struct, frozen=True, kw_only=True):
    """``spread.json``; ``leaves`` are, for each data set, leaf of an output -> SHA-256 of its file.

    ``lost`` is that of the spread; ``moved`` is like ``leaves``, of the reaches, with ``most`` beside it.
    """

    format: int
    noise_format: int
    precision: str
    samples: int
    amplitudes: tuple[float, ...]
    leaves: tuple[dict[str, str], ...]
    lost: tuple[dict[str, float], ...]
    moved: tuple[dict[str, str], ...]
    most: tuple[dict[str, int], ...]


def load_spread(entry: Path, noise_at: str) -> Spread | None:
    """Return a spread in the entry of a golden, or None; a damaged one is removed.

    For ``noise_at`` see ``harness.corpus.derived.noisy.with_allowed``.
    """
    home = entry / f"spread_{noise_at}"
    if not home.is_dir():
        return None
    try:
        manifest = _manifests.decode((home / _MANIFEST).read_bytes())
        made_with = (manifest.format, manifest.noise_format, manifest.samples)
        if made_with == (SPREADS_FORMAT, noisy.NOISE_FORMAT, noisy.SAMPLES):
            return Spread(
                precision=manifest.precision,
                outputs=tuple(
                    {
                        leaf: _read(home / _file(number, index), digest)
                        for index, (leaf, digest) in enumerate(leaves.items())
                    }
                    for number, leaves in enumerate(manifest.leaves)
                ),
                lost=manifest.lost,
                moved=tuple(
                    {
                        leaf: Move(
                            reach=_read(home / _file(number, index, "moved"), digest),
                            most=manifest.most[number][leaf],
                        )
                        for index, (leaf, digest) in enumerate(leaves.items())
                    }
                    for number, leaves in enumerate(manifest.moved)
                ),
            )
    except (OSError, ValueError, EOFError, LookupError, msgspec.MsgspecError):
        pass
    shutil.rmtree(home, ignore_errors=True)
    return None


def save_spread(entry: Path, noise_at: str, spread: Spread, amplitudes: tuple[float, ...]) -> None:
    """Store a spread in the entry of its golden; do nothing if the golden is not stored.

    For ``amplitudes`` see ``harness.corpus.derived.noisy.amplitudes_of``.

    Raises:
        UsageError: The cache cannot be written.
    """

    def build(folder: Path) -> None:
        manifest = _SpreadManifest(
            format=SPREADS_FORMAT,
            noise_format=noisy.NOISE_FORMAT,
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
            lost=tuple(dict(leaves) for leaves in spread.lost),
            moved=tuple(
                {
                    leaf: _write(folder / _file(number, index, "moved"), move.reach)
                    for index, (leaf, move) in enumerate(outputs.items())
                }
                for number, outputs in enumerate(spread.moved)
            ),
            most=tuple({leaf: move.most for leaf, move in outputs.items()} for outputs in spread.moved),
        )
        (folder / _MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))

    keep_beside(entry, f"spread_{noise_at}", build)


def load_unnoticed(entry: Path) -> tuple[str, ...] | None:
    """Return operators of nodes that could compute zeros unnoticed; None if this was not tried."""
    try:
        return _operators.decode((entry / _UNNOTICED / _OPERATORS).read_bytes())
    except (OSError, ValueError, msgspec.MsgspecError):
        return None


def save_unnoticed(entry: Path, operators: tuple[str, ...]) -> None:
    """Store such operators with a golden; do nothing if the golden is not stored.

    Raises:
        UsageError: The cache cannot be written.
    """

    def build(folder: Path) -> None:
        (folder / _OPERATORS).write_bytes(msgspec.json.encode(operators))

    keep_beside(entry, _UNNOTICED, build)


def _file(number: int, index: int, what: str = "output") -> str:
    return f"test_data_set_{number}-{what}_{index}.npy"


def _write(file: Path, array: Array) -> str:
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    file.write_bytes(content.getvalue())
    return hashlib.sha256(content.getvalue()).hexdigest()


def _read(file: Path, digest: str) -> Floats:
    return np.asarray(_array(file, digest), np.float64)


def _array(file: Path, digest: str) -> Array:
    return np.asarray(np.load(io.BytesIO(read_intact(file, digest)), allow_pickle=False))


_MANIFEST = "spread.json"
_manifests = msgspec.json.Decoder(_SpreadManifest)
_UNNOTICED = f"unnoticed_{zeroing.ZEROED_FORMAT}"
_OPERATORS = "operators.json"
_operators = msgspec.json.Decoder(tuple[str, ...])
