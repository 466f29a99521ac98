"""What `compare-speed` found, in place of a comparison from night to night."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from harness.core.files.reading import MOST_FILE, read_regular
from harness.core.text.errors import UsageError, one_line
from harness.core.timing.speed_change import SpeedChange, SpeedComparison
from harness.report.changes.latency_change import LatencyChange, LatencyVerdict

_VERDICTS: dict[str, LatencyVerdict] = {"slower": "slower", "faster": "faster", "not_slower": "same"}


def read_speed(path: Path) -> dict[str, LatencyChange]:
    """Return cell -> change of its latency; a cell without a verdict may be slower.

    Raises:
        UsageError: It is no file of `compare-speed --out`.
    """
    hint = "write one: ep-harness compare-speed MATRIX --base OLD --new NEW --out FILE"
    try:
        found = msgspec.json.decode(read_regular(path, MOST_FILE), type=SpeedComparison)
    except OSError as error:
        raise UsageError.at(path, f"cannot be read: {error.strerror or error}", hint) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError.at(path, f"no comparison of speed: {one_line(error, 200)}", hint) from error
    return dict(_changes(found.cells))


def _changes(cells: tuple[SpeedChange, ...]) -> Iterator[tuple[str, LatencyChange]]:
    for one in cells:
        change = one.changes.get(one.clock or "wall")
        verdict = _VERDICTS.get(one.verdict, "unclear")
        yield (
            one.cell,
            LatencyChange(
                verdict=verdict,
                may_be_slower=verdict == "unclear",
                ratio=change.ratio if change else None,
                low=change.low if change else None,
                high=change.high if change else None,
                reason=f"in turns: {one.reason}",
            ),
        )
