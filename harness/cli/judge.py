"""`ep-harness judge`: judge a finished run again, with other tolerances."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.cli.output import notify, print_lines
from harness.core.comparison.policy_terms import policy_text
from harness.core.records.record import Record
from harness.core.text.counted import plural
from harness.core.text.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_UNEXPECTED, Problem
from harness.core.verdicts.missing import Need
from harness.judge.judge_run import JudgedRun, check_is_free, judge_run, read_policy
from harness.report.runs.read import read_run
from harness.run.run_folder import RECORDS

_SHOWN = 20
_SHOWN_RULES = 5


def judge(run: Path, policy: str, out: Path | None) -> int:
    """Judge a run again and print the verdicts that change.

    Returns:
        0 if every verdict is as the run's matrix expects, 1 if one is not, 3 if the run is incomplete.
    """
    entries = read_policy(policy)
    before = read_run(run)
    if out is not None:
        check_is_free(out)
    judged = judge_run(before, entries)
    _tell([*before.told, *judged.open_conditions], before.damaged)
    if out is not None:
        judged.write(out)
    print_lines(_changes(judged, out))
    if not judged.after.info.complete:
        return EXIT_INCOMPLETE
    return EXIT_OK if all(record.expected for record in judged.after.records) else EXIT_UNEXPECTED


def _tell(lines: Sequence[str], damaged: Sequence[Problem]) -> None:
    """Print lines about the run, and about the first damaged lines."""
    for line in (*lines, *(f"{line}; it is left out" for line in damaged[:_SHOWN])):
        notify(line)
    if len(damaged) > _SHOWN:
        notify(f"{len(damaged) - _SHOWN:,} more lines are left out")


def _rule(old: Record, new: Record) -> str:
    """Return the policy of a record's second judgement; empty if there was none."""
    return policy_text(new.policy) if new is not old else ""


def _changes(judged: JudgedRun, out: Path | None) -> Iterator[str]:
    before, after, changed = judged.before.records, judged.after.records, judged.changed
    yield f"{len(after):,} records judged again; {len(changed):,} have another verdict"
    rules = Counter(text for old, new in zip(before, after, strict=True) if (text := _rule(old, new)))
    for text, count in rules.most_common(_SHOWN_RULES):
        yield f"judged by  {text}: {plural(count, 'record')}"
    if len(rules) > _SHOWN_RULES:
        yield f"judged by  {len(rules) - _SHOWN_RULES:,} other policies"
    turns = Counter((old.verdict.value, new.verdict.value) for old, new in changed)
    yield from (f"  {count:6,}  {old} -> {new}" for (old, new), count in turns.most_common())
    for old, new in changed[:_SHOWN]:
        yield old.cell
        yield f"    {old.verdict.value} -> {new.verdict.value}: {new.reason}"
    if len(changed) > _SHOWN:
        yield f"and {len(changed) - _SHOWN:,} more" + ("" if out else "; --out DIR, then `ep-harness diff`")
    if count := judged.lacks[Need.NOISE]:
        yield f"{count:,} records lack the rounding noise of their model and keep their verdict"
    if count := judged.lacks[Need.REFERENCES]:
        yield f"{count:,} were not compared with references; a run may find some of these disputed"
    unexpected = sum(not record.expected for record in after)
    yield f"{unexpected:,} unexpected" if unexpected else "every verdict is as the matrix expects"
    if out is not None:
        yield f"records  {out / RECORDS}"
