"""What was seen in a cell's scenario, in one line."""

from collections.abc import Iterator

from harness.core.errors import one_line
from harness.core.record import Record
from harness.core.scenario import Observation, Scalar
from harness.report.figures import brief

_CHARS = 600
_UNITS = {"ms": "ms", "mib": "MiB", "bytes": "bytes"}


def scenario_facts(record: Record) -> Iterator[tuple[str, str]]:
    """``("Scenario", "dynamic_shapes: shapes given, batch=2; run 3.1, 40 ms")``; none of a plain cell."""
    told = "; ".join(_fact(name, fact) for name, fact in record.scenario.items())
    if told:
        yield "Scenario", one_line(f"{record.axes.get('scenario', '')}: {told}", _CHARS)


def _fact(name: str, fact: Observation) -> str:
    stem, _, last = name.rpartition("_")
    unit = _UNITS.get(last, "") if stem else ""
    label = (stem if unit else name).replace("_", " ")
    values = fact if isinstance(fact, tuple) else (fact,)
    return f"{label} {', '.join(map(_scalar, values)) or 'none'}" + (f" {unit}" if unit else "")


def _scalar(value: Scalar) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return brief(value)
    return f"{value:,}" if isinstance(value, int) else value
