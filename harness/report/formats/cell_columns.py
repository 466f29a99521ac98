"""Every column of the table of cells, for the formats that programs read and for queries: one field for each.

A field says the type of its column, what it means, how a record gives it, and whether queries have it.
CSV, JSON and its schema, the view `records` and its reference are made of these fields.
"""

import operator
import typing
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec

from harness.core.agreement.agreement import agreements_words, least_share
from harness.core.findings.compute_share import share_on_ep
from harness.core.findings.lacking import lack_of
from harness.core.records.manner import manners_words
from harness.core.records.record import Record
from harness.core.records.run_work import unchecked_words
from harness.core.records.verdict import Family, Phase, Verdict
from harness.report.cells.worst import least_bits, most_headroom, worst_error, worst_noise
from harness.report.changes.latency_change import median_error
from harness.report.changes.same_measure import policy_json

Kind = Literal["VARCHAR", "DOUBLE", "BIGINT", "BOOLEAN", "TIMESTAMP"]
"""A type of the database."""

Found = TypeVar("Found")

_KINDS: dict[type, Kind] = {float: "DOUBLE", bool: "BOOLEAN", int: "BIGINT", str: "VARCHAR"}


class CellColumn(msgspec.Struct, frozen=True):
    """What a field says about its column.

    Attributes:
        meaning: A sentence.
        value: How a record gives it; None where its field has the same name. In files, an empty text where
            there is none; in queries, that is null.
        view: Its name in the view `records`; True for the same name, False if queries do not have it.
        kind: Its type there, where the type of the field does not say it.
    """

    meaning: str
    value: Callable[[Record], object] | None = None
    view: str | bool = False
    kind: Kind | None = None


class RecordColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column of the view `records`; a value of None is null."""

    name: str
    kind: Kind
    meaning: str
    value: Callable[[Record], Any]


class FromReport(msgspec.Struct, frozen=True):
    """Says of a field that the report gives its value, not the record alone."""

    meaning: str


class RecordRow(msgspec.Struct, frozen=True, kw_only=True):
    """The cell of a row."""

    cell: Annotated[str, CellColumn("Id of the cell.")]
    label: Annotated[str, FromReport("Target and axes, as the report names them.")]
    run: Annotated[str, FromReport("Name of the run folder.")]
    suite: Annotated[str, CellColumn("Suite of the model.")]
    model: Annotated[str, CellColumn("Name of the model.")]
    target: Annotated[str, CellColumn("Name of the target; `target @ run` if runs contradict each other.")]
    provider: Annotated[str, CellColumn("First preferred provider of the target.", view=True)]


class _Once(Generic[Found]):
    """Finds something of a record once for all columns of it, which are made one after the other."""

    def __init__(self, find: Callable[[Record], Found]) -> None:
        self._find = find
        self._last: tuple[Record, Found] | None = None

    def __call__(self, record: Record) -> Found:
        if self._last is None or self._last[0] is not record:
            self._last = record, self._find(record)
        return self._last[1]


_worst_noise, _worst_error = _Once(worst_noise), _Once(worst_error)


def _noise(record: Record, name: str, otherwise: object) -> object:
    found = _worst_noise(record)
    return otherwise if found is None else getattr(found[1], name)


def _error(record: Record, name: str, otherwise: object) -> object:
    found = _worst_error(record)
    return otherwise if found is None else getattr(found, name)


def _placed(record: Record, name: str) -> int | None:
    return None if record.placement is None else int(getattr(record.placement, name))


def _largest(record: Record, name: Literal["max_abs", "max_rel"]) -> float | None:
    figures: list[float | None] = [getattr(output, name) for output in record.outputs]
    return max((figure for figure in figures if figure is not None), default=None)


def _runs(record: Record) -> int | None:
    return record.repeats.runs * record.repeats.sessions if record.repeats else None


def _latency(record: Record, name: Literal["p50_ms", "p90_ms"]) -> float | None:
    return None if record.latency is None else float(getattr(record.latency, name))


class CellRow(RecordRow, frozen=True, kw_only=True):
    """One cell with the figures of its worst output."""

    axes: Annotated[dict[str, str], CellColumn("Axis -> value.")]
    verdict: Annotated[Verdict, CellColumn("Verdict, such as `pass`.", view=True)]
    family: Annotated[Family, CellColumn("Family of the verdict, such as `passed`.", view=True)]
    expected: Annotated[bool, CellColumn("Whether the matrix expects the verdict.", view=True)]
    flaky: Annotated[bool, CellColumn("Whether a further try gave another verdict.", view=True)]
    phase: Annotated[Phase | None, CellColumn("Phase in which the cell ended.", view=True)]
    cause: Annotated[str, CellColumn("Cause of `unavailable`; signal of a crash.", view=True)]
    reason: Annotated[str, CellColumn("One line for people.", view=True)]
    ep_nodes: Annotated[
        int | None, CellColumn("Nodes on the EP.", lambda r: _placed(r, "ep_nodes"), view=True)
    ]
    cpu_nodes: Annotated[
        int | None, CellColumn("Nodes on the CPU EP.", lambda r: _placed(r, "cpu_nodes"), view=True)
    ]
    ep_share: Annotated[
        float | None,
        CellColumn(
            "Part of the compute on the EP, from 0 to 1; null if the cell did not run, or nothing tells.",
            lambda r: share_on_ep(r.placement),
        ),
    ]
    partitions: Annotated[
        int | None, CellColumn("Subgraphs of the EP.", lambda r: _placed(r, "partitions"), view=True)
    ]
    headroom: Annotated[
        float | None,
        CellColumn(
            "Largest error over the allowed one; 1.0 is the limit; null if it is undefined or infinite.",
            most_headroom,
            view=True,
        ),
    ]
    delivered_bits: Annotated[
        float | None,
        CellColumn(
            "Delivered bits of the least precise output; null if all are exact, or not floating.",
            least_bits,
            view="bits",
        ),
    ]
    max_abs: Annotated[
        float | None,
        CellColumn("Largest absolute difference of an element.", lambda r: _largest(r, "max_abs")),
    ]
    max_rel: Annotated[
        float | None,
        CellColumn("Largest relative difference of an element.", lambda r: _largest(r, "max_rel")),
    ]
    noise_rms: Annotated[
        float | None,
        CellColumn(
            "Error of the worst output over the rounding noise of its model; null if it is exact, or the "
            "noise is unknown.",
            lambda r: _noise(r, "rms", None),
        ),
    ]
    noise_max: Annotated[
        float | None,
        CellColumn(
            "The largest such multiple of any element of that output.", lambda r: _noise(r, "max", None)
        ),
    ]
    noise_precision: Annotated[
        str,
        CellColumn("The precision whose rounding makes the noise.", lambda r: _noise(r, "precision", "")),
    ]
    noise_like: Annotated[
        str, CellColumn("The precision that the error is most like.", lambda r: _noise(r, "like", ""))
    ]
    precision_error: Annotated[
        float | None,
        CellColumn(
            "Relative error of the worst output against the golden of the model before its conversion to "
            "another precision.",
            lambda r: _error(r, "error", None),
        ),
    ]
    cpu_error: Annotated[
        float | None,
        CellColumn(
            "The same on the CPU EP with the same converted model.", lambda r: _error(r, "cpu_error", None)
        ),
    ]
    error_ratio: Annotated[
        float | None, CellColumn("The ratio of the two.", lambda r: _error(r, "ratio", None))
    ]
    error_unknown: Annotated[
        str,
        CellColumn(
            "Why one of these three is missing; empty if none is, or the model was not converted.",
            lambda r: _error(r, "unknown", ""),
        ),
    ]
    nearer: Annotated[
        str,
        CellColumn(
            "Whether the `golden` or the `ep` is nearer to a more precise answer, in the first output that "
            "was compared with one; empty if none was.",
            lambda r: r.adjudication[0].nearer if r.adjudication else "",
        ),
    ]
    weak_golden: Annotated[str, CellColumn("Why a wrong answer could go unnoticed, if it could.", view=True)]
    approximate: Annotated[str, CellColumn("Which output passes by what the EP documents.", view=True)]
    unconfirmed: Annotated[str, CellColumn("Why float64 has not confirmed that values are wrong.", view=True)]
    lacks: Annotated[
        str,
        CellColumn(
            "The feature of the device for want of which it fails or is refused; empty if there is none.",
            lack_of,
        ),
    ]
    manners: Annotated[
        str,
        CellColumn(
            "What the cell changed around it that its user does not expect.",
            lambda r: manners_words(r.manners),
            view=True,
        ),
    ]
    agreement: Annotated[
        float | None,
        CellColumn(
            "The least part of a task's answers that do not disagree with the golden's; null if no task is "
            "known, or no figure.",
            lambda r: least_share(r.agreement),
        ),
    ]
    answers: Annotated[
        str,
        CellColumn(
            "The same in words, for each output and task; may be empty.",
            lambda r: agreements_words(r.agreement),
        ),
    ]
    unchecked: Annotated[
        str,
        CellColumn(
            "Checks that were left out, and why; empty if none was.", lambda r: unchecked_words(r.unchecked)
        ),
    ]
    known: Annotated[str, FromReport("Why the matrix expects the failure; empty if it expects none.")]
    command: Annotated[
        str, FromReport("Runs the model on the target again; empty unless the cell failed or is unexpected.")
    ]
    runs: Annotated[
        int | None,
        CellColumn(
            "How often the first data set was run, over all sessions; null if that is not known.", _runs
        ),
    ]
    results: Annotated[
        int | None,
        CellColumn(
            "Different results of these runs, bit for bit.",
            lambda r: r.repeats.distinct if r.repeats else None,
        ),
    ]
    mismatched: Annotated[
        int,
        CellColumn(
            "Elements outside the tolerance, of all outputs.", lambda r: sum(o.mismatched for o in r.outputs)
        ),
    ]
    elements: Annotated[int, CellColumn("Elements compared.", lambda r: sum(o.elements for o in r.outputs))]
    golden: Annotated[str, CellColumn("Source of the golden.", view=True)]
    create_ms: Annotated[
        float | None,
        CellColumn("Creation of the session.", lambda r: r.timings_ms.get("create"), view=True),
    ]
    first_run_ms: Annotated[
        float | None, CellColumn("First run.", lambda r: r.timings_ms.get("first_run"), view=True)
    ]
    p50_ms: Annotated[
        float | None,
        CellColumn("Median latency.", lambda r: _latency(r, "p50_ms"), view=True),
    ]
    started: Annotated[str, CellColumn("Start of the cell, UTC.", view=True, kind="TIMESTAMP")]


class QueriedOnly(msgspec.Struct, frozen=True, kw_only=True):
    """Columns of the view `records` that no file has."""

    place: Annotated[str, CellColumn("Place of the target that ran it.", view=True)]
    these_alone: Annotated[
        bool,
        CellColumn(
            "Whether it fails with its generated inputs, and with none of two others.",
            lambda r: r.fails_with_these_alone,
            view=True,
        ),
    ]
    golden_digest: Annotated[str, CellColumn("Digest of the golden's values.", view=True)]
    policy: Annotated[
        str, CellColumn("Settings that judged it, as JSON.", lambda r: policy_json(r.policy), view=True)
    ]
    computed_in: Annotated[
        str, CellColumn("Precision that decides the default tolerance.", lambda r: r.precision, view=True)
    ]
    took_ms: Annotated[
        float | None,
        CellColumn("Time in the process, sessions and all runs.", lambda r: r.took_ms or None, view=True),
    ]
    p50_error: Annotated[
        float | None,
        CellColumn(
            "Standard error of the logarithm of `p50_ms`, by the runs of its process.",
            lambda r: r.latency and median_error(r.latency),
            view=True,
        ),
    ]
    p90_ms: Annotated[
        float | None,
        CellColumn("90th percentile of the latency.", lambda r: _latency(r, "p90_ms"), view=True),
    ]
    rss_mib: Annotated[
        float | None,
        CellColumn("Memory of its process, after it.", lambda r: r.process and r.process.rss_mib, view=True),
    ]
    attempt: Annotated[int, CellColumn("1, or 2 after a process was killed from outside.", view=True)]
    model_digest: Annotated[str, CellColumn("SHA-256 of model and test data.", view=True)]
    fed: Annotated[str, CellColumn("What the model was fed, in words.", view=True)]
    artifacts: Annotated[str, CellColumn("Folder of a failing cell, below the run's.", view=True)]


def _columns(kind: type[msgspec.Struct]) -> Iterator[tuple[str, Any, CellColumn | FromReport]]:
    """Yield name, type and column of each field."""
    hints = typing.get_type_hints(kind, include_extras=True)
    for name in kind.__struct_fields__:
        value_type, column = typing.get_args(hints[name])
        yield name, value_type, column


def _value(name: str, column: CellColumn) -> Callable[[Record], Any]:
    return column.value or operator.attrgetter(name)


VALUES: dict[str, Callable[[Record], Any]] = {
    name: _value(name, column)
    for name, _, column in _columns(CellRow)
    if isinstance(column, CellColumn) and name not in RecordRow.__struct_fields__
}
"""Column of the files that a record gives -> how, but for those of ``RecordRow``."""

MEANINGS = {name: column.meaning for name, _, column in _columns(CellRow)}
"""Column of the files -> what it means."""


def view_columns() -> Iterator[RecordColumn]:
    """Yield every column of a record in the view `records`: those of the files first."""
    for kind in (CellRow, QueriedOnly):
        for name, value_type, column in _columns(kind):
            if isinstance(column, CellColumn) and column.view:
                yield _in_view(name, value_type, column)


def _in_view(name: str, value_type: Any, column: CellColumn) -> RecordColumn:
    # A type with ``| None`` is a union; null is always possible here.
    (known,) = (one for one in typing.get_args(value_type) or (value_type,) if one is not type(None))
    value = _value(name, column)
    if issubclass(known, str):
        value = _text_or_null(value)
    kind = column.kind or _KINDS[str if issubclass(known, str) else known]
    in_view = name if column.view is True else str(column.view)
    return RecordColumn(name=in_view, kind=kind, meaning=column.meaning, value=value)


def _text_or_null(value: Callable[[Record], Any]) -> Callable[[Record], str | None]:
    """Return the same with plain texts, such as the word of a verdict, and null for an empty one."""

    def read(record: Record) -> str | None:
        found = value(record)
        return str(found) if found else None

    return read
