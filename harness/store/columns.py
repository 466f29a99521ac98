"""The columns of a record in the store: name, type, meaning, and how the value is taken from a record."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec
import numpy as np

from harness.core.manner import manners_words
from harness.core.record import Record
from harness.report.measure import policy_json
from harness.report.worst import least_bits, most_headroom

Kind = Literal["VARCHAR", "DOUBLE", "BIGINT", "BOOLEAN", "TIMESTAMP"]


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a view: its name, its SQL type, and its meaning."""

    name: str
    kind: str
    meaning: str


class RecordColumn(Column, frozen=True, kw_only=True):
    """A column that a record fills; its value is None for null."""

    kind: Kind
    value: Callable[[Record], object]


def _of(name: str, kind: Kind, meaning: str, value: Callable[[Record], object]) -> RecordColumn:
    return RecordColumn(name=name, kind=kind, meaning=meaning, value=value)


RECORD_COLUMNS = (
    _of("provider", "VARCHAR", "First preferred provider of the target.", lambda r: r.provider),
    _of("place", "VARCHAR", "Place of the target that ran it.", lambda r: r.place or None),
    _of("verdict", "VARCHAR", "Verdict, such as `pass`.", lambda r: r.verdict.value),
    _of("family", "VARCHAR", "Family of the verdict, such as `passed`.", lambda r: r.family.value),
    _of("expected", "BOOLEAN", "Whether the matrix expects the verdict.", lambda r: r.expected),
    _of("phase", "VARCHAR", "Phase in which the cell ended.", lambda r: r.phase and r.phase.value),
    _of("cause", "VARCHAR", "Cause of `unavailable`; signal of a crash.", lambda r: r.cause or None),
    _of("reason", "VARCHAR", "One line for people.", lambda r: r.reason or None),
    _of("flaky", "BOOLEAN", "Whether a further try gave another verdict.", lambda r: r.flaky),
    _of(
        "these_alone",
        "BOOLEAN",
        "Whether it fails with its generated inputs, and with none of two others.",
        lambda r: r.fails_with_these_alone,
    ),
    _of("approximate", "VARCHAR", "What an EP documents that it passes by.", lambda r: r.approximate or None),
    _of("unconfirmed", "VARCHAR", "Why float64 confirms no failure.", lambda r: r.unconfirmed or None),
    _of("manners", "VARCHAR", "What it changed around it.", lambda r: manners_words(r.manners) or None),
    _of("weak_golden", "VARCHAR", "Why the golden proves little.", lambda r: r.weak_golden or None),
    _of("golden", "VARCHAR", "Source of the golden.", lambda r: r.golden or None),
    _of("golden_digest", "VARCHAR", "Digest of the golden's values.", lambda r: r.golden_digest or None),
    _of("policy", "VARCHAR", "Settings that judged it, as JSON.", lambda r: policy_json(r.policy) or None),
    _of("computed_in", "VARCHAR", "Precision that decides the default tolerance.", lambda r: r.precision),
    _of("headroom", "DOUBLE", "Largest error over the allowed one; 1.0 is the limit.", most_headroom),
    _of("bits", "DOUBLE", "Delivered bits of the least precise output.", least_bits),
    _of("ep_nodes", "BIGINT", "Nodes on the EP.", lambda r: r.placement and r.placement.ep_nodes),
    _of("cpu_nodes", "BIGINT", "Nodes on the CPU EP.", lambda r: r.placement and r.placement.cpu_nodes),
    _of("partitions", "BIGINT", "Subgraphs of the EP.", lambda r: r.placement and r.placement.partitions),
    _of("create_ms", "DOUBLE", "Creation of the session.", lambda r: r.timings_ms.get("create")),
    _of("first_run_ms", "DOUBLE", "First run.", lambda r: r.timings_ms.get("first_run")),
    _of("took_ms", "DOUBLE", "Time in the process, sessions and all runs.", lambda r: r.took_ms or None),
    _of("p50_ms", "DOUBLE", "Median latency.", lambda r: r.latency and r.latency.p50_ms),
    _of("p90_ms", "DOUBLE", "90th percentile of the latency.", lambda r: r.latency and r.latency.p90_ms),
    _of("rss_mib", "DOUBLE", "Memory of its process, after it.", lambda r: r.process and r.process.rss_mib),
    _of("started", "TIMESTAMP", "Start of the cell, UTC.", lambda r: r.started or None),
    _of("attempt", "BIGINT", "1, or 2 after a process was killed from outside.", lambda r: r.attempt),
    _of("model_digest", "VARCHAR", "SHA-256 of model and test data.", lambda r: r.model_digest or None),
    _of("fed", "VARCHAR", "What the model was fed, in words.", lambda r: r.fed or None),
    _of("artifacts", "VARCHAR", "Folder of a failing cell, below the run's.", lambda r: r.artifacts or None),
)
"""Every column of a record, in the order of the view ``records``."""


def to_array(kind: Kind, values: Sequence[object]) -> "np.ndarray[Any, Any]":
    """Return values as the array that the database reads: texts as objects, figures with NaN for null."""
    if kind in {"DOUBLE", "BIGINT"}:
        try:
            return np.array(values, dtype=np.float64)
        except OverflowError:  # an integer of a record may be of any size
            return np.array([_figure(value) for value in values], dtype=np.float64)
    if kind == "BOOLEAN":
        return np.array(values, dtype=np.bool_)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def from_array(name: str, kind: Kind, table: str = "") -> str:
    """Return the SQL expression that turns a column of such arrays into its type."""
    # A time or count that is out of range becomes null.
    if kind in {"BIGINT", "TIMESTAMP"}:
        return f"TRY_CAST({table}{name} AS {kind}) AS {name}"
    return f"{table}{name}"


def _figure(value: Any) -> float:
    try:
        return math.nan if value is None else float(value)
    except OverflowError:
        return math.nan
