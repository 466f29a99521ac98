"""`ep-harness judge`: judge a finished run again, with other tolerances."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from harness.cli.output import notify, print_lines
from harness.core.decide import judged_again
from harness.core.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_UNEXPECTED, Problem, UsageError
from harness.core.facts import facts_for_other_inputs, facts_of
from harness.core.later_words import what_is_wrong
from harness.core.missing import Need, missing
from harness.core.policy import Policy
from harness.core.policy_terms import policy_text
from harness.core.reading import MOST_FILE, read_regular
from harness.core.record import Record, encode_record
from harness.core.run_info import RunInfo
from harness.core.writing import write_aside, writing
from harness.data_files import data_root
from harness.plan.expectation import is_expected, open_condition
from harness.plan.matrix import Matrix
from harness.plan.plan import Plan
from harness.plan.tolerance_policy import cell_of, load_policy, policy_rule
from harness.report.figures import plural
from harness.report.read import read_run
from harness.run.own_runs import own_info, write_info
from harness.run.run_folder import PLAN, RECORDS

_SHOWN = 20
_SHOWN_RULES = 5
_ASKED_IN_A_RUN = frozenset({Need.NOISE, Need.REFERENCES})
"""Facts that another policy may need, and that only a run can find out."""


def judge(run: Path, policy: str, out: Path | None) -> int:
    """Judge a run again and print the verdicts that change.

    Returns:
        0 if every verdict is as the run's matrix expects, 1 if one is not, 3 if the run is incomplete.
    """
    entries = load_policy(_policy_path(policy))
    data = read_run(run)
    if out is not None and (out / "run.json").exists():
        raise UsageError.at(out, "there is a run in this folder already", "choose another folder")
    rule = policy_rule(entries, data.records)
    matrix = matrix_of(data.info, run)
    plan = Plan(matrix=matrix, cells=())
    open_conditions: dict[str, None] = {}
    after: list[Record] = []
    lacks: Counter[Need] = Counter()
    for record in data.records:
        allowed = rule(record)
        judged = record
        if allowed is not None:
            need = _missing(record, allowed)
            lacks.update([need] if need is not None else [])
            judged = record if need is Need.NOISE else judged_again(record, allowed)
        if judged.verdict is not record.verdict:
            judged, conditions = _expected_anew(judged, plan, data.info)
            open_conditions |= dict.fromkeys(conditions)
        after.append(judged)
    if lacks[Need.NOISE] and not any(output.noise for record in data.records for output in record.outputs):
        what = "the policy needs the rounding noise of the models, and no record has it"
        raise UsageError.at(run, what, "run the matrix again: this version records it")
    _tell([*data.told, *open_conditions], data.damaged)
    info = msgspec.structs.replace(data.info, complete=data.info.complete and not data.damaged)
    if out is not None:
        matrix = msgspec.structs.replace(matrix, tolerance=matrix.tolerance + entries)
        info = msgspec.structs.replace(info, matrix=msgspec.to_builtins(matrix))
        _write(out, run, info, after, is_own=own_info(run) == data.info)
    print_lines(_changes(data.records, after, lacks, out))
    if not info.complete:
        return EXIT_INCOMPLETE
    return EXIT_OK if all(record.expected for record in after) else EXIT_UNEXPECTED


def _expected_anew(record: Record, plan: Plan, info: RunInfo) -> tuple[Record, list[str]]:
    """Return a record with another verdict, held against the matrix, and lines about open conditions."""
    environment = info.environment_of(record.target, record.place)
    expectation, conditions = plan.expectation_at(cell_of(record), environment, record.outputs)
    expected = is_expected(expectation, record.verdict)
    told = [open_condition(record.target, condition) for condition in conditions]
    return msgspec.structs.replace(record, expected=expected), told


def _tell(lines: Sequence[str], damaged: Sequence[Problem]) -> None:
    """Print lines about the run, and about the first damaged lines."""
    for line in (*lines, *(f"{line}; it is left out" for line in damaged[:_SHOWN])):
        notify(line)
    if len(damaged) > _SHOWN:
        notify(f"{len(damaged) - _SHOWN:,} more lines are left out")


def _missing(record: Record, policy: Policy) -> Need | None:
    """Return what a record lacks that a run under the policy would ask for."""
    facts, by_usual = facts_of(record), record.generation is None
    asked = _ASKED_IN_A_RUN - ({Need.NOISE} if policy.judge_by == "table" else set())
    need = missing(facts, policy, asked, by_usual=by_usual)
    if need is None and facts.other_check is not None:
        return missing(facts_for_other_inputs(facts), policy, asked)
    return need


def _policy_path(policy: str) -> Path:
    shipped = data_root() / "matrices" / "policies"
    named = shipped / f"{policy}.toml"
    if named.parent == shipped and named.is_file():
        return named
    if not Path(policy).exists():
        names = ", ".join(sorted(path.stem for path in shipped.glob("*.toml")))
        hint = f"valid: a file with [[tolerance]] entries, or one of {names}"
        raise UsageError.at("--policy", f"no file or shipped policy {policy!r}", hint)
    return Path(policy)


def matrix_of(info: RunInfo, run: Path) -> Matrix:
    """Return the matrix of a run, as its ``run.json`` keeps it."""
    try:
        return msgspec.convert(info.matrix, Matrix)
    except msgspec.ValidationError as error:
        raise UsageError.at(run / "run.json", f"its matrix is invalid: {what_is_wrong(error)}") from error


def _write(out: Path, run: Path, info: RunInfo, records: Sequence[Record], *, is_own: bool) -> None:
    """Write the judged run; the copy of a run of this user also counts as this user's."""
    with writing(out, hint=""):
        out.mkdir(parents=True, exist_ok=True)
        write_aside(out / RECORDS, b"".join(encode_record(record) + b"\n" for record in records))
        if (run / PLAN).is_file():
            write_aside(out / PLAN, read_regular(run / PLAN, MOST_FILE))
        # Last and at once: without this file the folder is not a run.
        write_info(out, msgspec.json.format(msgspec.json.encode(info)) + b"\n", is_own=is_own)


def _rule(old: Record, new: Record) -> str:
    """Return the policy of a record's second judgement; empty if there was none."""
    return policy_text(new.policy) if new is not old else ""


def _changes(
    before: Sequence[Record], after: Sequence[Record], lacks: Counter[Need], out: Path | None
) -> Iterator[str]:
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old.verdict is not new.verdict]
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
    if count := lacks[Need.NOISE]:
        yield f"{count:,} records lack the rounding noise of their model and keep their verdict"
    if count := lacks[Need.REFERENCES]:
        yield f"{count:,} were not compared with references; a run may find some of these disputed"
    unexpected = sum(not record.expected for record in after)
    yield f"{unexpected:,} unexpected" if unexpected else "every verdict is as the matrix expects"
    if out is not None:
        yield f"records  {out / RECORDS}"
