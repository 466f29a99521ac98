"""Read the CSV report of ExecuTorch's backend test suite (``backends/test/suite``, ``--report``)."""

import csv
import io
import json
from collections.abc import Iterator, Mapping

from harness.core.records.verdict import Verdict

EXECUTORCH_COLUMNS = ("Test ID", "Test Case", "Flow", "Params", "Result", "Result Detail")
"""Columns without which a file is no such report."""

EXECUTORCH_DETAILS = {
    "Quantization Failed": Verdict.ERROR,
    "Lowering Failed": Verdict.ERROR,
    "PTE Load Failed": Verdict.ERROR,
    "PTE Run Failed": Verdict.ERROR,
    "Output Mismatch": Verdict.MISMATCH,
    "Unknown Failure": Verdict.ERROR,
}
"""``Result Detail`` of a ``Fail`` -> verdict."""


def is_executorch_csv(text: str) -> bool:
    """Return whether the first line of a file has the columns of such a report."""
    header = next(csv.reader(io.StringIO(text[:10_000])), [])
    return set(EXECUTORCH_COLUMNS) <= set(header)


def executorch_results(text: str) -> Iterator[tuple[str, str, Verdict]]:
    """Yield ``(flow, case, verdict)`` of each row.

    Raises:
        ValueError: A row is not as the suite writes it; its text names the line.
    """
    rows = csv.DictReader(io.StringIO(text))
    for row in rows:
        try:
            yield row["Flow"] or "", _case(row), _verdict(row)
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(f"line {rows.line_num}: {error}") from error


def _case(row: Mapping[str, str]) -> str:
    """Return the name of a case without its flow, so that it is the same in every flow."""
    params = json.loads(row["Params"]) if row["Params"] else {}
    told = ", ".join(f"{key}={value}" for key, value in sorted(params.items()))
    index = row.get("Subtest") or "0"
    return " ".join(
        filter(None, (row["Test Case"], told and f"[{told}]", "" if index == "0" else f"#{index}"))
    )


def _verdict(row: Mapping[str, str]) -> Verdict:
    result, detail = row["Result"], row["Result Detail"]
    match result:
        case "Pass" if row.get("Delegated") == "False":
            return Verdict.FALLBACK
        case "Pass" if (row.get("Undelegated Nodes") or "0") != "0":
            return Verdict.PASS_PARTIAL
        case "Pass":
            return Verdict.PASS
        case "Skip":
            return Verdict.DECLARED
        case "Fail" if detail in EXECUTORCH_DETAILS:
            return EXECUTORCH_DETAILS[detail]
    raise ValueError(f"the result is {result!r}, {detail!r}; valid: Pass, Skip, or Fail with a known detail")
