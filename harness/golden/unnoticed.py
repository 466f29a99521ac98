"""Operators whose errors a golden does not show, stored in its entry: ``unnoticed_<format>``."""

from pathlib import Path

import msgspec

from harness.corpus import zeroed
from harness.golden.store import keep_beside

_HOME = f"unnoticed_{zeroed.FORMAT}"
_FILE = "operators.json"
_operators = msgspec.json.Decoder(tuple[str, ...])


def load_unnoticed(entry: Path) -> tuple[str, ...] | None:
    """Return operators of nodes that could compute zeros unnoticed; None if this was not tried."""
    try:
        return _operators.decode((entry / _HOME / _FILE).read_bytes())
    except (OSError, ValueError, msgspec.MsgspecError):
        return None


def save_unnoticed(entry: Path, operators: tuple[str, ...]) -> None:
    """Store such operators with a golden; do nothing if the golden is not stored.

    Raises:
        UsageError: The cache cannot be written.
    """

    def build(folder: Path) -> None:
        (folder / _FILE).write_bytes(msgspec.json.encode(operators))

    keep_beside(entry, _HOME, build)
