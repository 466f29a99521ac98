"""A vendor's own list of operators, compared with the evidence of a run.

A list is a TOML file with a table ``[[operators]]`` for each entry, or a CSV file with a line for each. Both
have the same names: ``operator``, ``opset``, ``types``, ``ranks``, ``notes``. Evidence comes from cells of
models with no other type of operator, as for the pages *Operators*.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from harness.core.files.reading import MOST_SETTINGS, read_regular
from harness.core.files.toml_text import toml_table
from harness.core.records.record import ModelContent, Record
from harness.core.records.verdict import Family, Verdict
from harness.core.text.errors import UsageError, one_line, valid_names
from harness.report.pages.operator_pages import is_tried, only_operator

_KEYS = ("operator", "opset", "types", "ranks", "notes")
_ONNX = "ai.onnx"
_OPSETS = re.compile(r"(\d{1,4})(?:(-)(\d{1,4})?)?")
_PARTS = re.compile(r"[\s;,]+")

EntryOutcome = Literal["right", "wrong", "partly", "not placed", "not tried"]
"""``partly``: right where the EP computed it, but some cells were left to the CPU provider or refused."""


class ListEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a list; empty fields are not restricted.

    Attributes:
        operator: Type of operator.
        opset: Version of ONNX's operators that a model imports: ``13``, ``7-`` or ``7-13``.
        types: Element types of all inputs, such as ``float32``.
        ranks: Numbers of dimensions of all inputs.
        notes: Restrictions in words, which nothing checks.
    """

    operator: str
    opset: str = ""
    types: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    notes: str = ""

    def covers(self, content: ModelContent) -> bool:
        """Return whether the entry is about a model with only this operator."""
        return (
            self.operator in content.ops
            and _in_range(content.opsets.get(_ONNX, 0), self.opset)
            and (not self.types or set(content.types) <= set(self.types))
            and (not self.ranks or set(content.ranks) <= set(self.ranks))
        )


class EntryResult(msgspec.Struct, frozen=True, kw_only=True):
    """An entry with its evidence.

    Attributes:
        right: Cells with a right answer computed wholly by the EP.
        wrong: Cells that failed.
        left: Cells in which the EP computed no node of it, or refused the model.
        cell: The first cell that failed, else the first that was left; empty if there is neither.
        reason: Reason of that cell.
    """

    entry: ListEntry
    right: int
    wrong: int
    left: int
    cell: str
    reason: str

    @property
    def outcome(self) -> EntryOutcome:
        """Return what the evidence says about the entry."""
        if self.wrong:
            return "wrong"
        if self.right:
            return "partly" if self.left else "right"
        return "not placed" if self.left else "not tried"


class Unlisted(msgspec.Struct, frozen=True, kw_only=True):
    """An operator that the EP computed in models that no entry covers.

    Attributes:
        opsets: Versions of ONNX's operators of these models, ascending.
        types: Element types of their inputs.
        cells: Their number, and how many of them failed.
    """

    operator: str
    opsets: tuple[int, ...]
    types: tuple[str, ...]
    cells: int
    failed: int


class ListComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A list compared with a target of a run."""

    target: str
    entries: tuple[EntryResult, ...]
    unlisted: tuple[Unlisted, ...]


def read_operator_list(path: Path) -> tuple[ListEntry, ...]:
    """Read a list.

    Raises:
        UsageError: It cannot be read, has no entry, or one is wrong.
    """
    try:
        content = read_regular(path, MOST_SETTINGS)
        rows = list(_csv_rows(content) if path.suffix.lower() == ".csv" else _toml_rows(content, path))
    except OSError as error:
        raise UsageError.at(path, f"cannot be read: {one_line(error.strerror or error)}") from error
    except (ValueError, RecursionError, csv.Error) as error:
        kind = "CSV" if path.suffix.lower() == ".csv" else "TOML"
        raise UsageError.at(path, f"is no {kind} file: {one_line(error)}") from error
    entries = tuple(_entry(row, f"{path}: {where}") for where, row in rows)
    if not entries:
        hint = 'write [[operators]] with operator = "Conv", or a CSV file with the columns ' + ", ".join(
            _KEYS
        )
        raise UsageError.at(path, "the list has no entry", hint)
    return entries


def compare_list(entries: Sequence[ListEntry], records: Iterable[Record], target: str) -> ListComparison:
    """Compare a list with the cells of one target."""
    cells = [
        (record, record.content)
        for record in records
        if record.target == target and only_operator(record) and record.content is not None
    ]
    tried = [(record, content) for record, content in cells if is_tried(record)]
    of_operator: dict[str, list[ListEntry]] = {}
    for entry in entries:
        of_operator.setdefault(entry.operator, []).append(entry)
    unlisted: dict[str, list[tuple[Record, ModelContent]]] = {}
    for record, content in tried:
        name = only_operator(record)
        is_covered = any(entry.covers(content) for entry in of_operator.get(name, ()))
        if not is_covered and record.placement is not None and record.placement.ep_ops.get(name):
            unlisted.setdefault(name, []).append((record, content))
    return ListComparison(
        target=target,
        entries=tuple(_compared(entry, tried) for entry in entries),
        unlisted=tuple(_unlisted(name, found) for name, found in sorted(unlisted.items())),
    )


def _compared(entry: ListEntry, tried: Sequence[tuple[Record, ModelContent]]) -> EntryResult:
    covered = [record for record, content in tried if entry.covers(content)]
    wrong = [record for record in covered if record.verdict.family is Family.FAILED]
    right = [record for record in covered if record.verdict is Verdict.PASS]
    left = [record for record in covered if _is_left(record)]
    first = next(iter((*wrong, *left)), None)
    return EntryResult(
        entry=entry,
        right=len(right),
        wrong=len(wrong),
        left=len(left),
        cell=first.cell if first else "",
        reason=first.reason if first else "",
    )


def _is_left(record: Record) -> bool:
    """Return whether the EP left nodes to the CPU provider, or refused the model."""
    in_part = record.verdict in (Verdict.FALLBACK, Verdict.PASS_PARTIAL)
    return in_part or record.verdict.family is Family.UNSUPPORTED


def _unlisted(name: str, found: Sequence[tuple[Record, ModelContent]]) -> Unlisted:
    return Unlisted(
        operator=name,
        opsets=tuple(sorted({content.opsets.get(_ONNX, 0) for _, content in found})),
        types=tuple(sorted({one for _, content in found for one in content.types})),
        cells=len(found),
        failed=sum(record.verdict.family is Family.FAILED for record, _ in found),
    )


def _in_range(opset: int, wanted: str) -> bool:
    found = _OPSETS.fullmatch(wanted)
    if found is None:
        return True  # it is empty; ``_entry`` refuses everything else
    first, dash, last = found.groups()
    return int(first) <= opset <= int(last or (9999 if dash else first))


def _toml_rows(content: bytes, path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    table = toml_table(content)
    for key in table:
        if key != "operators":
            raise UsageError.at(f"{path}: {key}", "unknown key", "valid: operators")
    rows = table.get("operators", [])
    if not isinstance(rows, list):
        raise UsageError.at(f"{path}: operators", "expected a list of tables, [[operators]]")
    for index, row in enumerate(rows):
        if not isinstance(row, dict):
            raise UsageError.at(f"{path}: operators[{index}]", "expected a table")
        yield f"operators[{index}]", row


def _csv_rows(content: bytes) -> Iterator[tuple[str, Mapping[str, Any]]]:
    reader = csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
    for row in reader:
        where = f"line {reader.line_num}"
        parts = {key: _PARTS.split(row[key].strip()) for key in ("types", "ranks") if row.get(key)}
        texts = {str(key): value for key, value in row.items() if value not in (None, "", [])}
        yield where, {**texts, **parts}


def _entry(row: Mapping[str, Any], where: str) -> ListEntry:
    for key in row:
        if key not in _KEYS:
            raise UsageError.at(where, f"unknown key {key!r}", valid_names(key, _KEYS))
    if not row.get("operator"):
        raise UsageError.at(where, "the operator is missing")
    try:
        # Ranks of a CSV file are texts.
        entry = msgspec.convert({**row, "opset": str(row.get("opset", ""))}, ListEntry, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError.at(where, one_line(error)) from error
    if entry.opset and not _OPSETS.fullmatch(entry.opset):
        what = f"opset: expected a version or a range, got {entry.opset!r}"
        raise UsageError.at(where, what, "such as 13, 7- or 7-13")
    return entry
