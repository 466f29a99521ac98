"""What a golden would not show, kept beside it: ``unnoticed_<format>/operators.json`` in its entry's folder.

Whatever removes the golden removes it, too.
"""

import contextlib
from pathlib import Path

import msgspec

from harness.corpus import zeroed
from harness.corpus.cache import fill_once
from harness.golden.store import read_manifest

_FILE = "operators.json"


def load_unnoticed(entry: Path) -> tuple[str, ...] | None:
    """Operators of nodes that could compute zeros without being noticed; None where nobody has tried.

    Args:
        entry: The golden's folder.
    """
    try:
        return _operators.decode((_home(entry) / _FILE).read_bytes())
    except (OSError, ValueError, msgspec.MsgspecError):
        return None


def save_unnoticed(entry: Path, operators: tuple[str, ...]) -> None:
    """Keep such operators with a golden. Where no golden is kept, neither are they.

    Args:
        entry: The golden's folder.
        operators: Their names.

    Raises:
        UsageError: The cache cannot be written.
    """
    if read_manifest(entry) is None:
        return

    def build(folder: Path) -> None:
        (folder / _FILE).write_bytes(msgspec.json.encode(operators))

    with contextlib.suppress(FileNotFoundError):  # the golden has just been pruned
        fill_once(_home(entry), build)


def _home(entry: Path) -> Path:
    return entry / f"unnoticed_{zeroed.FORMAT}"


_operators = msgspec.json.Decoder(tuple[str, ...])
