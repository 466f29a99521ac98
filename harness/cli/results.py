"""`ep-harness report`, `diff` and `gate`: finished runs, published and compared."""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict, Unpack

import msgspec

from harness.cli.gate_policy import GatePolicy, flake_reasons, limits_apart, load_gate_policy
from harness.cli.output import notify, print_lines, print_result
from harness.core.text.errors import EXIT_OK, EXIT_UNEXPECTED, UsageError
from harness.report.changes.diff_text import diff_github, diff_lines, diff_markdown, gate_github, gate_lines
from harness.report.changes.gate import has_answers, judge_changes
from harness.report.changes.run_comparison import Comparison, compare_runs
from harness.report.changes.trace_diff import compare_traces, trace_diff_lines, trace_file
from harness.report.history.history_file import History
from harness.report.runs.side_by_side import is_over_time
from harness.run.annexes import find_report_over_time

_DIFF_FORMATS = {"text": diff_lines, "markdown": diff_markdown, "github": diff_github}


class LatencySources(TypedDict):
    """What shows if latencies changed: nights before, and what `compare-speed --out` wrote."""

    earlier: Sequence[Path]
    speed: Path | None


class Months(TypedDict):
    """How the runs of months are shown: whether this is requested, and the folder of their store."""

    over_time: bool
    store: Path | None


def report(
    runs: Sequence[Path],
    *,
    out: Path,
    formats: str,
    templates: Path | None,
    baseline: Path | None,
    history: Path | None,
    beside: Sequence[Path] = (),
    **months: Unpack[Months],
) -> int:
    """Render one run, or several as one, or the runs of months, and print the paths of the written files."""
    from harness.report.report_files import write_report  # its templates take 0.1 s to import

    names = [name.strip() for name in formats.split(",")]
    side_by_side = baseline is not None or history is not None or bool(beside)
    if months["over_time"] or (not side_by_side and is_over_time(runs)):
        if len(runs) != 1 or side_by_side:
            what = "it takes one folder of runs, which is its own history"
            raise UsageError.at("--over-time", what, "drop --baseline, --history and --beside")
        written = find_report_over_time()(runs[0], out, names, store=months["store"], templates=templates)
    else:
        with contextlib.nullcontext() if history is None else History(history) as opened:
            written = write_report(
                runs, out, names, templates=templates, baseline=baseline, history=opened, beside=beside
            )
    print_lines(str(path) for path in written)
    return EXIT_OK


def diff(old: Path, new: Path, *, earlier: Sequence[Path], style: str, as_json: bool) -> int:
    """Print what changed between two runs, each of which may be a folder of runs, or between two traces.

    Returns:
        Always 0: ``gate`` decides whether the changes are acceptable.
    """
    files = trace_file(old), trace_file(new)
    if files[0] is not None and files[1] is not None:
        if earlier or style != "text":
            flag = "--earlier" if earlier else "--format"
            raise UsageError.at(flag, "it is about runs, and these are traces", "omit it; --json has all")
        traces = compare_traces(files[0], files[1])
        print_result(traces, trace_diff_lines(traces), as_json=as_json)
        return EXIT_OK
    found = _compared(old, new, earlier).diff
    print_result(found, _DIFF_FORMATS[style](found), as_json=as_json)
    return EXIT_OK


def gate(
    old: Path,
    new: Path,
    *,
    policy: Path | None,
    min_agreement: float | None,
    github: bool,
    as_json: bool,
    **latency: Unpack[LatencySources],
) -> int:
    """Print whether the new run may pass; with ``github``, or on GitHub's runners, print annotations as well.

    Returns:
        Return 0 if the run may pass, 1 if it may not.
    """
    chosen = GatePolicy() if policy is None else load_gate_policy(policy)
    limits = chosen.limits
    if min_agreement is not None:
        if not 0 <= min_agreement <= 1:
            raise UsageError.at("--min-agreement", f"got {min_agreement:g}", "valid: a share from 0 to 1")
        limits = msgspec.structs.replace(limits, min_agreement=min_agreement)
    compared = _compared(old, new, **latency)
    found, tested = compared.diff, [record for _, record in compared.new.records]
    apart = limits_apart(chosen, found.judged)
    if limits.min_agreement is not msgspec.UNSET and not has_answers(tested):
        what = "no cell of the new run has answers of a task"
        raise UsageError.at("min_agreement", what, "name the task of a model: agree, in [[model]]")
    records = (record for side in (compared.old, compared.new) for _, record in side.records)
    judgement = judge_changes(found, limits, flake_reasons(chosen, records), tested, apart)
    told = {"judgement": judgement, "diff": found}
    print_result(told, gate_lines(found, judgement), as_json=as_json)
    if not as_json and (github or os.environ.get("GITHUB_ACTIONS") == "true"):
        print_lines(gate_github(judgement))
    return EXIT_OK if judgement.passed else EXIT_UNEXPECTED


def _compared(old: Path, new: Path, earlier: Sequence[Path], speed: Path | None = None) -> Comparison:
    found = compare_runs(old, new, earlier=earlier, speed=speed)
    for notice in found.notices:
        notify(notice)
    return found
