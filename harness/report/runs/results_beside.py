"""Results of other tools that stand beside the targets of a report, on its page *Compare*."""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from harness.core.files.reading import read_regular
from harness.core.records.verdict import Verdict
from harness.core.text.errors import UsageError, one_line
from harness.core.text.visible_text import visible
from harness.report.runs.executorch_csv import executorch_results, is_executorch_csv
from harness.report.runs.wpt_report import WptReport, wpt_results

_MOST_FILE = 256 << 20
_MOST_NAME = 300


class ResultsBeside(msgspec.Struct, frozen=True, kw_only=True):
    """Results of one flow or product in a file.

    Attributes:
        file: Name of the file.
        name: The flow or product; empty if the file does not tell.
        verdicts: Name of a case -> what its result means here.
    """

    file: str
    name: str
    verdicts: Mapping[str, Verdict]

    @property
    def id(self) -> str:
        """Its address on the page, which stays while the file and its flow keep their names."""
        return f"{self.file}: {self.name}" if self.name else self.file


def read_results_beside(path: Path) -> tuple[ResultsBeside, ...]:
    """Read the results of each flow or product of a file.

    Of a case that occurs several times the last result counts.

    Raises:
        UsageError: The file cannot be read, or is in no format that is read.
    """
    try:
        text = read_regular(path, _MOST_FILE).decode("utf-8-sig")
        found: dict[str, dict[str, Verdict]] = {}
        for name, case, verdict in _results(text):
            found.setdefault(_shown(name), {})[_shown(case)] = verdict
    except OSError as error:
        raise UsageError.at(path, f"cannot be read: {error.strerror or error}") from error
    except (ValueError, msgspec.MsgspecError, csv.Error, RecursionError) as error:
        hint = "valid: the CSV report of ExecuTorch's backend test suite, or wptreport.json"
        raise UsageError.at(path, one_line(error), hint) from error
    if not found:
        raise UsageError.at(path, "it has no results", "run its tests again, or drop --beside")
    return tuple(ResultsBeside(file=_shown(path.name), name=one, verdicts=found[one]) for one in found)


def _results(text: str) -> Iterator[tuple[str, str, Verdict]]:
    if is_executorch_csv(text):
        return executorch_results(text)
    if text.lstrip().startswith("{"):
        return wpt_results(msgspec.json.decode(text, type=WptReport))
    raise ValueError("neither a CSV with the columns Test ID, Flow and Result nor a JSON object")


def _shown(text: str) -> str:
    return one_line(visible(text), _MOST_NAME)
