"""The counts of each target as OpenMetrics text, for dashboards of nightly runs."""

from collections.abc import Iterator, Sequence

from harness.core.text.errors import one_line
from harness.core.text.visible_text import visible
from harness.report.formats.rows import TargetRow
from harness.report.view import Report

_FAMILIES = (
    "passed",
    "passed_in_part",
    "weak",
    "untested",
    "unsupported",
    "failed",
    "excluded",
    "skipped",
    "not_run",
)
_MOST_LABEL = 200


def to_open_metrics(report: Report, targets: Sequence[TargetRow]) -> str:
    """Render the file; a figure that a target does not have is left out."""
    return "".join(f"{line}\n" for line in _lines(report, targets))


def _lines(report: Report, targets: Sequence[TargetRow]) -> Iterator[str]:
    yield from _head("ep_harness_cells", "Cells of a target by how they ended; they add up to its cells.")
    for row in targets:
        for family in _FAMILIES:
            yield _sample("ep_harness_cells", row, getattr(row, family), family=family)
    yield from _head("ep_harness_unexpected_cells", "Cells whose verdict is not what the matrix expects.")
    for row in targets:
        yield _sample("ep_harness_unexpected_cells", row, row.unexpected)
    yield from _head("ep_harness_delivered_bits", "Median of the delivered bits of compute-heavy cells.")
    for row in targets:
        if row.median_bits is not None:
            yield _sample("ep_harness_delivered_bits", row, row.median_bits)
    yield from _head("ep_harness_target", "Versions of a target; the value is 1.", kind="info")
    for row in targets:
        about = {name: getattr(row, name) for name in ("onnxruntime", "ep_version", "driver", "device")}
        yield _sample("ep_harness_target_info", row, 1, **about)
    yield from _head("ep_harness_complete", "Whether every planned cell has a result.")
    yield f"ep_harness_complete {int(report.complete)}"
    yield "# EOF"


def _head(name: str, about: str, *, kind: str = "gauge") -> Iterator[str]:
    yield f"# TYPE {name} {kind}"
    yield f"# HELP {name} {about}"


def _sample(name: str, row: TargetRow, value: float, **labels: str) -> str:
    told = {"target": row.label, "provider": row.provider, **labels}
    listed = ",".join(f'{key}="{_label(text)}"' for key, text in told.items())
    return f"{name}{{{listed}}} {value!r}"


def _label(text: str) -> str:
    line = one_line(visible(text), _MOST_LABEL)
    return line.replace("\\", "\\\\").replace('"', '\\"')
