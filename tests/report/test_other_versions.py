"""Runs of other versions: an older one is read, judged again and compared; a later one is told."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.cli import main
from harness.core.comparison.policy import Policy
from harness.core.comparison.policy_terms import policy_terms
from harness.core.records.record import Record, decode_record, encode_record
from harness.core.records.verdict import Family, Verdict
from harness.core.text.errors import UsageError
from harness.core.text.later_words import what_is_wrong
from harness.report.changes.diff import compare_merged
from harness.report.changes.gate import GateLimits, judge_changes
from harness.report.changes.run_comparison import read_side
from harness.report.changes.run_diff import CellChangeKind
from harness.report.changes.same_measure import measure_change
from harness.report.history.history_file import History
from harness.report.history.trend import cell_points
from harness.report.runs.merge import merge
from harness.report.runs.read import read_run
from tests.kit import Capture, read_rows, record, write_run

STORED = Path(__file__).parent / "stored" / "before_policies"
"""A run of version 0.1.0 as of November 2026: its records have neither policy nor digest of their golden."""

Rows = list[dict[str, Any]]


def rows() -> Rows:
    return read_rows(STORED)


def copied(to: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """Return a copy of the stored run, with each row changed."""
    shutil.copytree(STORED, to)
    changed = rows()
    for row in changed:
        change(row)
    text = "".join(json.dumps(row) + "\n" for row in changed)
    (to / "records.jsonl").write_text(text, encoding="utf-8")
    return to


def test_a_stored_run_reads_back_without_loss() -> None:
    run = read_run(STORED)
    assert (len(run.records), run.damaged, run.info.complete) == (12, (), True)
    assert all(record.policy == {} for record in run.records)
    for one, row in zip(run.records, rows(), strict=True):
        assert json.loads(encode_record(one)).items() >= row.items()


def test_a_stored_run_is_judged_again_and_the_rule_is_told(tmp_path: Path, capsys: Capture) -> None:
    policy, out = tmp_path / "p.toml", tmp_path / "out"
    policy.write_text(
        'schema = 1\n[[tolerance]]\ntarget = "*"\nrtol = 1e-3\natol = 1e-5\ntable_only = true\n', "utf-8"
    )
    main(["judge", str(STORED), "--policy", str(policy), "--out", str(out)])
    printed = capsys.readouterr().out
    assert "12 records judged again" in printed
    assert "judged by  precision float32, fixed.rtol 0.001, fixed.atol 1e-05, judge_by table" in printed
    assert {row["verdict"] for row in rows()} == {record.verdict for record in read_run(out).records}


def test_a_stored_run_is_its_own_equal(tmp_path: Path) -> None:
    diff = compare_merged(read_side(STORED), read_side(STORED), names=("old", "new"))
    assert (diff.changes, diff.measures, diff.unlike) == ((), {}, ())
    assert judge_changes(diff, GateLimits(), lambda _: "").passed
    with History(tmp_path / "h.sqlite", create=True) as history:
        assert history.add(STORED)
        assert cell_points(history, "onnx-node/test_sin_example[cpu]")


@pytest.mark.parametrize(
    ("turned", "kind"), [("pass", CellChangeKind.REGRESSED), ("mismatch", CellChangeKind.FIXED)]
)
def test_a_stored_run_against_one_of_today(tmp_path: Path, turned: str, kind: CellChangeKind) -> None:
    """The same cell by another rule: it is a change, and that its policy is unknown is told."""

    def today(row: dict[str, Any]) -> None:
        row["policy"] = policy_terms(Policy())
        row["golden_digest"] = "a" * 16
        if row["verdict"] == turned and row["target"] == "openvino":
            # An output that fails or passes by today's rules.
            frontier, differ = {"pass": ([[0.0, 1e6]], 3), "mismatch": ([[0.0, 0.0]], 0)}[turned]
            more = {"max_abs": 0.5} if differ else {"details": None}
            row["outputs"] = [
                {**one, "frontier": frontier, "mismatched": differ, **more} for one in row["outputs"]
            ]

    new = copied(tmp_path / "new", today)
    diff = compare_merged(read_side(STORED), read_side(new), names=("old", "new"))
    assert {change.kind for change in diff.changes} == {kind}
    assert judge_changes(diff, GateLimits(), lambda _: "").passed is (kind is CellChangeKind.FIXED)


def test_a_policy_of_a_later_version_has_settings_that_this_one_lacks() -> None:
    terms = policy_terms(Policy())
    old, new = record("a", policy=terms), record("a", policy={**terms, "bits.y": 5.5})
    assert measure_change(old, new).policy == "the tolerance changed: bits.y none -> 5.5"
    assert decode_record(encode_record(new)).policy["bits.y"] == 5.5


def later(row: dict[str, Any]) -> None:
    if row["target"] == "openvino":
        row["verdict"] = "melted"


def test_a_verdict_of_a_later_version_is_one_clear_line(tmp_path: Path, capsys: Capture) -> None:
    new = copied(tmp_path / "new", later)
    line = "`verdict` is 'melted', a word that this version does not know: update ort-ep-harness to read it"
    assert line in str(read_run(new).damaged[0])
    assert main(["gate", str(STORED), str(new)]) == 1
    printed, told = capsys.readouterr()
    assert told.count(line) == 1
    assert "3 not run" in printed
    assert "no result now: not_run" in " ".join(printed.split())


def test_a_run_of_nothing_but_later_words_cannot_be_read(tmp_path: Path) -> None:
    new = copied(tmp_path / "new", lambda row: row.update(verdict="melted"))
    with pytest.raises(UsageError, match="a word that this version does not know: update ort-ep-harness"):
        read_run(new)


def test_a_history_of_a_later_version_is_told(tmp_path: Path) -> None:
    with History(tmp_path / "h.sqlite", create=True) as history:
        history.add(STORED)
        history.database.execute("DROP TRIGGER result_no_update")
        history.database.execute("UPDATE result SET verdict = 'melted'")
        with pytest.raises(UsageError, match="the verdict 'melted', a word that this version does not know"):
            cell_points(history, "onnx-node/test_sin_example[cpu]")


def test_other_mistakes_keep_their_own_words() -> None:
    with pytest.raises(msgspec.ValidationError) as error:
        msgspec.json.decode(b'{"schema": "one"}', type=Record)
    assert what_is_wrong(error.value) == str(error.value)


@pytest.mark.parametrize(
    "verdict", [one for one in Verdict if one.family in (Family.SKIPPED, Family.EXCLUDED)]
)
def test_what_is_no_longer_judged_never_passes_a_gate_in_silence(verdict: Verdict, tmp_path: Path) -> None:
    write_run(tmp_path / "old", [record("a")])
    write_run(tmp_path / "new", [record("a", verdict=verdict)])
    sides = (merge([read_run(tmp_path / name)]) for name in ("old", "new"))
    diff = compare_merged(*sides, names=("old", "new"))
    (change,) = diff.changes
    word = {Family.SKIPPED: "no longer tested: skipped as", Family.EXCLUDED: "no longer judged: excluded as"}
    assert (change.kind, change.facts) == (CellChangeKind.GONE, (f"{word[verdict.family]} {verdict.value}",))
    assert [breach.limit for breach in judge_changes(diff, GateLimits(), lambda _: "").breaches] == [
        "gone",
        "judged",
    ]
