"""Which runs a report shows side by side, and which as one run and its history."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.core.files.reading import MOST_FILE, read_regular
from harness.core.records.run_info import ShardInfo

SIDE_BY_SIDE = 16
"""Runs of one share of a matrix that a report shows side by side at most; each may add a column for each
target, and more columns cannot be compared by eye."""


class _Share(msgspec.Struct, frozen=True):
    """What ``run.json`` tells about the share of a matrix that a run is."""

    matrix: dict[str, object] = {}
    shard: ShardInfo | None = None


def is_over_time(runs: Sequence[Path]) -> bool:
    """Return whether a folder has more runs of a share of a matrix than can be shown side by side."""
    if len(runs) != 1 or (runs[0] / "run.json").exists() or not runs[0].is_dir():
        return False
    counts: Counter[tuple[object, int]] = Counter()
    for path in runs[0].glob("*/run.json"):
        try:
            share = msgspec.json.decode(read_regular(path, MOST_FILE), type=_Share)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue  # whoever reads the run reports it
        counts[str(share.matrix.get("path")), share.shard.index if share.shard else 0] += 1
    return max(counts.values(), default=0) > SIDE_BY_SIDE
