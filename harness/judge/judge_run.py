"""A finished run under another policy: the same rules on the same facts, so no device is needed."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.core.comparison.policy import Policy
from harness.core.files.reading import MOST_FILE, read_regular
from harness.core.files.writing import write_aside, writing
from harness.core.records.facts import facts_for_other_inputs
from harness.core.records.record import Record, encode_record
from harness.core.records.run_info import RunInfo
from harness.core.text.errors import UsageError
from harness.core.text.later_words import what_is_wrong
from harness.core.verdicts.decide import judged_again
from harness.core.verdicts.missing import Need, missing
from harness.data_files import data_root
from harness.plan.expectation import is_expected, open_condition
from harness.plan.matrix import Matrix
from harness.plan.plan import Plan
from harness.plan.tolerance_entry import ToleranceEntry
from harness.plan.tolerance_policy import cell_of, load_policy, policy_rule
from harness.report.runs.read import RunData, read_run
from harness.run.own_runs import own_info, write_info
from harness.run.run_folder import PLAN, RECORDS

_ASKED_IN_A_RUN = frozenset({Need.NOISE, Need.REFERENCES})
"""Facts that another policy may need, and that a run finds out when they are needed."""


class JudgedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run under another policy.

    Attributes:
        before: The run as it was read.
        after: The same with the new verdicts in the same order, and the policy added to its matrix. It is
            incomplete also if lines are damaged.
        lacks: What records lack for the policy -> how many; those without noise keep their verdict.
        open_conditions: Lines about expectations of which the environment does not tell whether they apply.
    """

    before: RunData
    after: RunData
    lacks: Counter[Need]
    open_conditions: tuple[str, ...]

    @property
    def changed(self) -> list[tuple[Record, Record]]:
        """Each record with another verdict, before and after."""
        pairs = zip(self.before.records, self.after.records, strict=True)
        return [(old, new) for old, new in pairs if new.verdict is not old.verdict]

    def write(self, out: Path | str) -> Path:
        """Write the run with its new verdicts, and return its folder.

        That of a run of this user is one of this user again.

        Raises:
            UsageError: There is a run in the folder already, or it cannot be written.
        """
        out, run = Path(out), self.before.folder
        check_is_free(out)
        records = b"".join(encode_record(record) + b"\n" for record in self.after.records)
        with writing(out, hint=""):
            out.mkdir(parents=True, exist_ok=True)
            write_aside(out / RECORDS, records)
            if (run / PLAN).is_file():
                write_aside(out / PLAN, read_regular(run / PLAN, MOST_FILE))
            # Last and at once: without this file the folder is not a run.
            content = msgspec.json.format(msgspec.json.encode(self.after.info)) + b"\n"
            write_info(out, content, is_own=own_info(run) == self.before.info)
        return out


def check_is_free(out: Path) -> None:
    """Refuse a folder that has a run in it.

    Raises:
        UsageError: It has one.
    """
    if (out / "run.json").exists():
        raise UsageError.at(out, "there is a run in this folder already", "choose another folder")


def judge_run(run: RunData | Path | str, policy: Path | str | tuple[ToleranceEntry, ...]) -> JudgedRun:
    """Judge a finished run again.

    Args:
        run: A run folder, or what ``read_run`` returns.
        policy: A file with ``[[tolerance]]`` entries, the name of a shipped policy, or one that is read.

    Raises:
        UsageError: The run cannot be read. There is no such policy, it is wrong or fits no record, or all
            records lack what it needs.
    """
    entries = policy if isinstance(policy, tuple) else read_policy(policy)
    run = run if isinstance(run, RunData) else read_run(run)
    rule = policy_rule(entries, run.records)
    matrix = matrix_of(run.info, run.folder)
    plan = Plan(matrix=matrix, cells=())
    open_conditions: dict[str, None] = {}
    after: list[Record] = []
    lacks: Counter[Need] = Counter()
    for record in run.records:
        allowed = rule(record)
        judged = record
        if allowed is not None:
            need = _missing(record, allowed)
            lacks.update([need] if need is not None else [])
            judged = record if need is Need.NOISE else judged_again(record, allowed)
        if judged.verdict is not record.verdict:
            judged, conditions = _expected_anew(judged, plan, run.info)
            open_conditions |= dict.fromkeys(conditions)
        after.append(judged)
    if lacks[Need.NOISE] and not any(output.noise for record in run.records for output in record.outputs):
        what = "the policy needs the rounding noise of the models, and no record has it"
        raise UsageError.at(run.folder, what, "run the matrix again: this version records it")
    matrix = msgspec.structs.replace(matrix, tolerance=matrix.tolerance + entries)
    info = msgspec.structs.replace(
        run.info, complete=run.info.complete and not run.damaged, matrix=msgspec.to_builtins(matrix)
    )
    judged_run = msgspec.structs.replace(run, info=info, records=tuple(after))
    return JudgedRun(before=run, after=judged_run, lacks=lacks, open_conditions=tuple(open_conditions))


def matrix_of(info: RunInfo, run: Path) -> Matrix:
    """Return the matrix of a run, as its ``run.json`` keeps it."""
    try:
        return msgspec.convert(info.matrix, Matrix)
    except msgspec.ValidationError as error:
        raise UsageError.at(run / "run.json", f"its matrix is invalid: {what_is_wrong(error)}") from error


def _expected_anew(record: Record, plan: Plan, info: RunInfo) -> tuple[Record, Sequence[str]]:
    """Return a record with another verdict, held against the matrix, and lines about open conditions."""
    environment = info.environment_of(record.target, record.place)
    expectation, conditions = plan.expectation_at(
        cell_of(record), environment, record.outputs, record.placement
    )
    expected = is_expected(expectation, record.verdict)
    told = [open_condition(record.target, condition) for condition in conditions]
    return msgspec.structs.replace(record, expected=expected), told


def _missing(record: Record, policy: Policy) -> Need | None:
    """Return what a record lacks, as a run under the policy would ask for it."""
    asked = _ASKED_IN_A_RUN - ({Need.NOISE} if policy.judge_by == "table" else set())
    need = missing(record, policy, asked, by_usual=record.generation is None)
    if need is None and record.other_check is not None:
        return missing(facts_for_other_inputs(record), policy, asked)
    return need


def read_policy(policy: Path | str) -> tuple[ToleranceEntry, ...]:
    """Read a policy file, or a shipped policy by its name.

    Raises:
        UsageError: There is no such policy, or it is wrong.
    """
    return load_policy(_policy_path(str(policy)))


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
