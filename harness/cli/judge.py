"""`ep-harness judge`: what a finished run would have been under other tolerances."""

import os
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.core.decide import decide
from harness.core.errors import Problem, UsageError
from harness.core.exit_code import EXIT_INCOMPLETE, EXIT_OK, EXIT_UNEXPECTED
from harness.core.facts import facts_of
from harness.core.missing import Need, missing
from harness.core.policy import Policy
from harness.core.record import Record, encode_record
from harness.core.run_info import RunInfo
from harness.core.verdict import Family
from harness.data_files import data_root
from harness.plan.matrix import Matrix
from harness.plan.plan import Plan, is_expected
from harness.plan.tolerance_entry import ToleranceEntry
from harness.plan.tolerance_policy import cell_of, load_policy, policy_rule
from harness.report.read import read_run
from harness.run.run_folder import PLAN, RECORDS

_SHOWN = 20
_ASKED_IN_A_RUN = frozenset({Need.NOISE, Need.REFERENCES})
"""What a verdict under another policy may need, and a run asks of every model."""


def judge(run: Path, policy: str, out: Path | None) -> int:
    """Judge a run again and print what changes.

    Args:
        run: A run folder; it is only read.
        policy: A file of ``[[tolerance]]`` entries, or the name of a shipped policy.
        out: Folder of a new run with the other verdicts, for ``diff`` and the like; None for none.

    Returns:
        0 where every verdict is as the run's matrix expects, 1 where one is not, 3 where it is incomplete.

    Raises:
        UsageError: The run or the policy cannot be used, or the folder cannot be written; or the policy
            is about rounding noise, of which the run tells nothing.
    """
    entries = load_policy(_policy_path(policy))
    data = read_run(run)
    if out is not None and (out / "run.json").exists():
        what = "there is a run in this folder already"
        raise UsageError(Problem(where=str(out), what=what, hint="choose another folder"))
    rule = policy_rule(entries, data.records)
    matrix = _matrix(data.info, run)
    plan = Plan(matrix=matrix, cells=())
    after: list[Record] = []
    lacks: Counter[Need] = Counter()
    for record in data.records:
        allowed = rule(record)
        judged = record
        if allowed is not None:
            need = missing(facts_of(record), allowed, _ASKED_IN_A_RUN)
            lacks.update([need] if need is not None else [])
            judged = record if need is Need.NOISE else judged_again(record, allowed)
        if judged.verdict is not record.verdict:
            expected = is_expected(plan.expectation(cell_of(judged)), judged.verdict)
            judged = msgspec.structs.replace(judged, expected=expected)
        after.append(judged)
    if lacks[Need.NOISE] and not any(output.noise for record in data.records for output in record.outputs):
        what = "none of its records tells the rounding noise of its model"
        raise UsageError(
            Problem(where=str(run), what=what, hint="run the matrix again: this version keeps it")
        )
    for line in data.damaged:
        sys.stderr.write(f"{line}; it is left out\n")
    info = msgspec.structs.replace(data.info, complete=data.info.complete and not data.damaged)
    if out is not None:
        _write(out, run, info, matrix, entries, after)
    _tell(data.records, after, lacks, out)
    if not info.complete:
        return EXIT_INCOMPLETE
    return EXIT_OK if all(record.expected for record in after) else EXIT_UNEXPECTED


def judged_again(record: Record, policy: Policy) -> Record:
    """The record as a run under the policy would have written it."""
    decision = decide(facts_of(record), policy)
    verdict = decision.verdict
    return msgspec.structs.replace(
        record,
        verdict=verdict,
        family=verdict.family,
        reason=record.reason if verdict is record.verdict else decision.reason,
        outputs=decision.outputs,
        again=decision.again,
        adjudication=decision.adjudication,
        suspicious=decision.suspicious,
        latency=record.latency if verdict.family is Family.PASSED else None,
    )


def _policy_path(policy: str) -> Path:
    shipped = data_root() / "matrices" / "policies"
    named = shipped / f"{policy}.toml"
    if named.parent == shipped and named.is_file():
        return named
    if not Path(policy).exists():
        names = ", ".join(sorted(path.stem for path in shipped.glob("*.toml")))
        hint = f"a file with [[tolerance]] entries, or one of {names}"
        raise UsageError(Problem(where="--policy", what=f"there is no {policy!r}", hint=hint))
    return Path(policy)


def _matrix(info: RunInfo, run: Path) -> Matrix:
    try:
        return msgspec.convert(info.matrix, Matrix)
    except msgspec.ValidationError as error:
        where = str(run / "run.json")
        raise UsageError(Problem(where=where, what=f"the matrix in it is not one: {error}")) from error


def _write(
    out: Path,
    run: Path,
    info: RunInfo,
    matrix: Matrix,
    entries: tuple[ToleranceEntry, ...],
    records: Sequence[Record],
) -> None:
    """A run whose matrix has the policy's entries as its last ones."""
    matrix = msgspec.structs.replace(matrix, tolerance=matrix.tolerance + entries)
    info = msgspec.structs.replace(info, matrix=msgspec.to_builtins(matrix))
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / RECORDS).write_bytes(b"".join(encode_record(record) + b"\n" for record in records))
        if (run / PLAN).is_file():
            shutil.copyfile(run / PLAN, out / PLAN)
        # Last and at once: a folder without it is no run.
        fresh = out / "run.json.new"
        fresh.write_bytes(msgspec.json.format(msgspec.json.encode(info)) + b"\n")
        os.replace(fresh, out / "run.json")  # noqa: PTH105 - replaces on Windows too
    except OSError as error:
        raise UsageError(Problem(where=str(out), what=f"cannot be written: {error.strerror}")) from error


def _tell(before: Sequence[Record], after: Sequence[Record], lacks: Counter[Need], out: Path | None) -> None:
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old.verdict is not new.verdict]
    lines = [f"{len(after):,} records judged again; {len(changed):,} have another verdict"]
    turns = Counter((old.verdict.value, new.verdict.value) for old, new in changed)
    lines += [f"  {count:6,}  {old} -> {new}" for (old, new), count in turns.most_common()]
    for old, new in changed[:_SHOWN]:
        lines += [f"{old.cell}", f"    {old.verdict.value} -> {new.verdict.value}: {new.reason}"]
    if len(changed) > _SHOWN:
        lines.append(f"and {len(changed) - _SHOWN:,} more" + ("" if out else ": --out DIR, then diff"))
    if count := lacks[Need.NOISE]:
        lines.append(f"{count:,} do not tell the rounding noise of their model: these keep their verdict")
    if count := lacks[Need.REFERENCES]:
        lines.append(f"{count:,} were not compared with references: a run may call some of these disputed")
    unexpected = sum(not record.expected for record in after)
    lines.append(f"{unexpected:,} unexpected" if unexpected else "every verdict is as the matrix expects")
    if out is not None:
        lines.append(f"records  {out / RECORDS}")
    sys.stdout.write("\n".join(lines) + "\n")
