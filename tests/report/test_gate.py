import msgspec
import pytest

from harness.core.records.manner import Manner
from harness.core.records.record import ProcessState, Record
from harness.core.records.verdict import Verdict
from harness.report.changes.diff import compare_merged
from harness.report.changes.diff_text import gate_github, gate_lines
from harness.report.changes.gate import Enter, GateLimits, Judgement, TargetLimits, judge_changes
from harness.report.changes.run_diff import Diff
from harness.report.runs.merge import merge
from harness.report.words.inert import annotation, plain_line
from tests.kit import record, run_of


def between(old: list[Record], new: list[Record], missing: list[str] | None = None) -> Diff:
    runs = merge([run_of(old)]), merge([run_of(new, missing=missing or [])])
    return compare_merged(*runs, names=("old", "new"))


def strict(diff: Diff) -> Judgement:
    return judge_changes(diff, GateLimits(), lambda _: "")


def breached(judgement: Judgement) -> dict[str, int]:
    return {breach.limit: breach.count for breach in judgement.breaches}


def test_nothing_worse_passes() -> None:
    judgement = strict(between([record("a"), record("b", verdict=Verdict.CRASH)], [record("a"), record("b")]))
    assert judgement.passed
    assert judgement.breaches == ()


def test_one_fixed_does_not_make_up_for_one_regressed() -> None:
    diff = between(
        [record("a"), record("b", verdict=Verdict.CRASH)],
        [record("a", verdict=Verdict.CRASH), record("b")],
    )
    judgement = strict(diff)
    assert not judgement.passed
    assert breached(judgement) == {"regressed": 1, "enter.failed": 1}
    text = "\n".join(gate_lines(diff, judgement))
    assert "limits.regressed: 1 cell, 0 allowed" in text
    assert text.endswith("gate: FAILED")


@pytest.mark.parametrize(
    ("after", "limits"),
    [
        (Verdict.UNAVAILABLE, {"gone": 1, "judged": 1}),
        (Verdict.INVALID_MODEL, {"gone": 1, "judged": 1}),
        (Verdict.NOT_RUN, {"gone": 1, "not_run": 1, "judged": 1}),
        (Verdict.FALLBACK, {"regressed": 1}),
        (Verdict.PASS, {}),
    ],
)
def test_what_a_pass_may_become(after: Verdict, limits: dict[str, int]) -> None:
    assert breached(strict(between([record("a")], [record("a", verdict=after)]))) == limits


def test_a_cell_that_left_the_plan_or_was_not_run() -> None:
    assert breached(strict(between([record("a"), record("b")], [record("a")]))) == {"gone": 1, "judged": 1}
    incomplete = between([record("a")], [record("a")], missing=["onnx-node/new[npu]"])
    assert breached(strict(incomplete)) == {"not_run": 1}


def test_a_required_target_that_is_unavailable_fails_every_night() -> None:
    run = merge([run_of([record("a", verdict=Verdict.UNAVAILABLE)], required=["npu"])])
    diff = compare_merged(run, run, names=("old", "new"))
    assert breached(strict(diff)) == {"required_unavailable": 1, "judged": 1}
    assert "limits.required_unavailable: 1 target, 0 allowed" in gate_lines(diff, strict(diff))
    assert judge_changes(diff, GateLimits(required_unavailable=1, judged=0), lambda _: "").passed


def test_new_cells_that_fail_enter_the_family() -> None:
    diff = between([record("a")], [record("a"), record("new", verdict=Verdict.HANG)])
    assert breached(strict(diff)) == {"enter.failed": 1}
    assert judge_changes(diff, GateLimits(enter=Enter(failed=1)), lambda _: "").passed


def test_families_have_limits_of_their_own() -> None:
    diff = between(
        [record(f"m{i}") for i in range(3)], [record(f"m{i}", verdict=Verdict.UNSUPPORTED) for i in range(3)]
    )
    loose = GateLimits(regressed=3, enter=Enter(unsupported=2))
    assert breached(judge_changes(diff, loose, lambda _: "")) == {"enter.unsupported": 3}
    assert judge_changes(diff, GateLimits(regressed=3), lambda _: "").passed


def test_expected_failures_count_unless_the_policy_says_otherwise() -> None:
    diff = between([record("a")], [record("a", verdict=Verdict.CRASH, expected=True)])
    assert not strict(diff).passed
    assert judge_changes(diff, GateLimits(expected_failures=False), lambda _: "").passed


def test_known_flakes_do_not_count_and_are_reported() -> None:
    diff = between([record("a")], [record("a", verdict=Verdict.CRASH)])
    judgement = judge_changes(diff, GateLimits(), lambda change: "tracked" if change.model == "a" else "")
    assert judgement.passed
    text = "\n".join(gate_lines(diff, judgement))
    assert "known flakes, not counted: 1 cell" in text
    assert "tracked" in text


def test_annotations_are_bounded_and_escaped() -> None:
    diff = between(
        [record(f"m{i}") for i in range(30)],
        [record(f"m{i}", verdict=Verdict.ERROR, reason="50%\n::error::x ##[error]y") for i in range(30)],
    )
    lines = list(gate_github(strict(diff)))
    assert len(lines) == 10
    assert all(line.startswith("::error title=") and "\n" not in line for line in lines)
    assert lines[0] == "::error title=ep-harness gate::limits.regressed: 30 cells, 0 allowed"
    assert lines[-1].endswith("(50%25 : :error: :x # #[error]y)")


def test_a_log_line_holds_no_command_of_its_text() -> None:
    assert (
        plain_line("a\n::add-mask::b ##[set-env]c \x1b[31m\u202e")
        == r"a : :add-mask: :b # #[set-env]c \u202e"
    )
    assert annotation("error", "a:b,c%", "x\r\ny%") == "::error title=a%3Ab%2Cc%25::x\\x0d%0Ay%25"


def test_a_run_of_which_nothing_was_judged_never_passes() -> None:
    silent = [record("a", verdict=Verdict.UNAVAILABLE), record("b", verdict=Verdict.NO_GOLDEN)]
    diff = between(silent, silent)
    judgement = strict(diff)
    assert breached(judgement) == {"judged": 1}
    text = "\n".join(gate_lines(diff, judgement))
    assert "limits.judged: 1 target below 0.9" in text
    assert "no cell in either run" in text
    assert any("no cell in either run" in line for line in gate_github(judgement))
    assert judge_changes(diff, GateLimits(judged=0), lambda _: "").passed


@pytest.mark.parametrize(("lost", "judged"), [(1, {}), (2, {"judged": 1})])
def test_nine_tenths_of_a_target_must_be_judged_again(lost: int, judged: dict[str, int]) -> None:
    names = [f"m{number}" for number in range(10)]
    before = [record(name) for name in names]
    after = [
        record(name, verdict=Verdict.TIMEOUT if at < lost else Verdict.PASS) for at, name in enumerate(names)
    ]
    assert breached(judge_changes(between(before, after), GateLimits(gone=lost), lambda _: "")) == judged


def test_new_manners_and_leaks_fail_the_gate() -> None:
    def state(session: int, *manners: Manner, mib: float = 80.0) -> ProcessState:
        return ProcessState(pid=7, session=session, rss_mib=mib, manners=manners)

    rounding = Manner(kind="fp_control", phase="run", text="it changed rounding from to nearest to up")
    loaded = Manner(kind="environment", phase="register", text="it changed the environment: OMP_NUM_THREADS")
    old = [record(f"m{at}", process=state(at + 1, *[loaded] * (at == 0))) for at in range(30)]
    # The first cell of a process may be another one.
    new = [
        record(f"m{at}", process=state(at + 1, *[loaded] * (at == 3), mib=80 + 9.5 * at)) for at in range(29)
    ]
    new.append(record("m29", process=state(30, rounding, mib=400)))
    diff = between(old, new)
    judgement = strict(diff)
    assert breached(judgement) == {"manners": 1, "leaks": 1}
    text = "\n".join(gate_lines(diff, judgement))
    assert "limits.manners: 1 cell, 0 allowed" in text
    assert "m29[npu]: it changed rounding from to nearest to up (in run)" in " ".join(text.split())
    assert "limits.leaks: 1 leak, 0 allowed" in text
    assert judge_changes(diff, GateLimits(manners=1, leaks=1), lambda _: "").passed
    assert strict(between(new, new)).passed


def test_a_target_with_limits_of_its_own_is_judged_by_these() -> None:
    worse = [record(name, target=target, verdict=Verdict.CRASH) for target in ("npu", "gpu") for name in "ab"]
    diff = between([record(name, target=target) for target in ("npu", "gpu") for name in "ab"], worse)
    limits = GateLimits(regressed=1, enter=Enter(failed=9))
    own = TargetLimits(limits=GateLimits(regressed=2, enter=Enter(failed=9)), owner="npu-team@example.org")
    judgement = judge_changes(diff, limits, lambda _: "", apart={"npu": own})
    assert [(one.limit, one.target, one.count) for one in judgement.breaches] == [("regressed", "", 2)]
    stricter = msgspec.structs.replace(own, limits=GateLimits(enter=Enter(failed=9)))
    judgement = judge_changes(
        diff, GateLimits(regressed=9, enter=Enter(failed=9)), lambda _: "", apart={"npu": stricter}
    )
    assert [(one.limit, one.target, one.count) for one in judgement.breaches] == [("regressed", "npu", 2)]
    assert "target npu (owner: npu-team@example.org): limits.regressed: 2 cells, 0 allowed" in list(
        gate_lines(diff, judgement)
    )


@pytest.mark.parametrize("apart", [{}, {"npu": TargetLimits(limits=GateLimits(), owner="x")}])
def test_too_few_judged_cells_of_one_target_do_not_pass(apart: dict[str, TargetLimits]) -> None:
    names = [f"m{at}" for at in range(20)]
    old = [record(name, target=target) for target in ("npu", "cpu") for name in names]
    new = [
        record(
            name, target=target, verdict=Verdict.UNAVAILABLE if target == "npu" and at < 3 else Verdict.PASS
        )
        for target in ("npu", "cpu")
        for at, name in enumerate(names)
    ]
    judgement = judge_changes(between(old, new), GateLimits(gone=9), lambda _: "a flake", apart=apart)
    assert [(one.limit, one.cells) for one in judgement.breaches] == [("judged", ("npu: 17 of 20 cells",))]


def test_nothing_judged_at_all_never_passes() -> None:
    """A run against itself, with nothing tried, and with no record; also where all targets are apart."""
    skipped = [record(name, verdict=Verdict.UNAVAILABLE) for name in "ab"]
    for records in (skipped, [], [record("a", verdict=Verdict.INVALID_MODEL)]):
        diff = between(records, records)
        assert breached(strict(diff)).keys() == {"judged"}
        its = {"npu": TargetLimits(limits=GateLimits())}
        assert breached(judge_changes(diff, GateLimits(), lambda _: "", apart=its)).keys() == {"judged"}


def test_a_base_that_was_partial_is_told_in_the_run_that_is_so_too() -> None:
    partial = [
        record("a"),
        *(record(f"m{at}", verdict=Verdict.UNAVAILABLE) for at in range(9)),
        record("a", target="cpu"),
    ]
    diff = between(partial, partial)
    judgement = strict(diff)
    assert judgement.passed  # nothing got worse
    assert "not tried: 9 of 10 cells of target npu in the new run" in list(gate_lines(diff, judgement))
    assert diff.untried == {"npu": (9, 10)}
