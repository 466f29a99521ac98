"""The first page says what works, what is wrong, what changed and what to do, in this order."""

from pathlib import Path
from typing import Any

import msgspec

from harness.core.records.record import ModelContent, Record
from harness.core.records.verdict import Verdict
from harness.report.changes.diff import compare_merged
from harness.report.pages.main_causes import main_causes
from harness.report.pages.suggested_commands import suggested_commands
from harness.report.pages.target_sentence import target_sentences
from harness.report.view import Report, build_report
from tests.kit import latency, make_matrix, merged, record, site


def report(*records: Record, **fields: Any) -> Report:
    run = msgspec.structs.replace(merged(list(records)), **fields)
    return build_report(run, lambda *_: "", {})


def failing(count: int, reason: str, **fields: Any) -> list[Record]:
    return [
        record(f"{reason[:2]}{number}", verdict=Verdict.ERROR, reason=reason, **fields)
        for number in range(count)
    ]


def test_a_sentence_tells_what_a_target_did() -> None:
    made = report(
        record("a"),
        record("b"),
        record("c", verdict=Verdict.CRASH, reason="SIGSEGV"),
        record("d", verdict=Verdict.FALLBACK),
        record("e", verdict=Verdict.UNSUPPORTED),
        record("a", target="other", verdict=Verdict.UNAVAILABLE, reason="no device"),
        simulated={"npu": "the processor"},
    )
    first, second = target_sentences(made).shown
    assert first.right == "computes 2 of 5 cells right (40.0%)"
    assert first.wrong == "fails 1: crash 1"
    assert first.rest.startswith("The CPU provider computed 1 in its place. It refuses 1.")
    assert (second.tone, second.right) == ("skipped", "could not be used: no device")


def test_a_right_answer_that_shows_nothing_does_not_count_as_right() -> None:
    why = "the golden's output is zero"
    made = report(record("a"), record("b", weak_golden=why), record("a", target="t", weak_golden=why))
    some, none = target_sentences(made).shown
    assert (some.tone, some.right) == ("passed", "computes 1 of 2 cells right (50.0%)")
    assert some.rest == "For 1 more a wrong answer would pass, too."
    assert (none.tone, none.right) == ("weak", "computes 0 of 1 cell right (0%)")


def test_more_targets_than_fit_are_counted() -> None:
    made = report(*(record("a", target=f"t{number}") for number in range(14)))
    found = target_sentences(made)
    assert (len(found.shown), found.more) == (12, 2)


def test_scenarios_of_a_target_are_left_to_their_page() -> None:
    bound = {"scenario": "io_binding"}
    found = target_sentences(
        report(record("a"), record("a", axes=bound), record("b", target="q", axes=bound))
    )
    assert [one.column.label for one in found.shown] == ["npu", "q · scenario=io_binding"]
    assert found.scenarios
    assert not target_sentences(report(record("a"))).scenarios


def test_the_causes_that_explain_most_cells_are_told_and_unexpected_ones_first() -> None:
    made = report(
        *failing(9, "no kernel", expected=True),
        *failing(5, "bad graph", expected=True),
        *failing(1, "odd", expected=False),
        *(
            failure
            for number in range(6)
            for failure in failing(2, f"{'abcdef'[number]} rare {'ghijkl'[number]}", expected=True)
        ),
    )
    found = main_causes(made)
    assert [(one.words, one.count, one.unexpected) for one in found.shown[:3]] == [
        ("odd", 1, 1),
        ("no kernel", 9, 0),
        ("bad graph", 5, 0),
    ]
    assert (found.failed, len(found.shown)) == (27, 5)
    assert found.explained == sum(one.count for one in found.shown)


def test_wrong_numbers_of_one_operator_are_one_cause() -> None:
    content = ModelContent(opsets={"": 20}, ops={"Resize": 1})
    made = report(
        *(
            record(name, verdict=Verdict.MISMATCH, reason=f"output {name}: far off", content=content)
            for name in ("x", "y")
        )
    )
    (one,) = main_causes(made).shown
    assert (one.count, one.words) == (2, "Resize: output x: far off")


def test_the_next_step_is_a_command_without_a_path_of_the_machine() -> None:
    bad = report(*failing(1, "odd", expected=False))
    commands = [step.command for step in suggested_commands(bad)]
    assert commands[0].startswith("ep-harness triage ")
    assert not any(str(Path.cwd()) in command for command in commands)
    assert any("diff OLD-RUN" in command for command in commands)
    good = suggested_commands(report(record("a")))
    assert [step.command.split()[1] for step in good] == ["diff", "fuzz"]


def test_only_a_target_that_ran_nothing_sends_to_the_doctor() -> None:
    nothing = record("a", target="other", verdict=Verdict.UNAVAILABLE, reason="no device")
    some = record("b", verdict=Verdict.UNAVAILABLE, reason="no locale")
    names = [one.command.split()[1] for one in suggested_commands(report(record("a"), some))]
    assert "doctor" not in names
    assert suggested_commands(report(record("a"), some, nothing))[0].command.split()[1] == "doctor"


def test_the_page_has_the_four_answers_in_order(tmp_path: Path) -> None:
    old, new = merged([record("a")]), merged([record("a", verdict=Verdict.CRASH, reason="<b>SIGSEGV")])
    changes = compare_merged(old, new, names=("last week", "this run"))
    made = build_report(new, lambda *_: "", {}, changes=changes)
    page = site(tmp_path, made)["index.html"]
    places = [page.index(f'<section id="{name}"') for name in ("works", "wrong", "changed", "do", "summary")]
    assert places == sorted(places)
    assert "Since last week" in page
    assert "pass -&gt; crash" in page
    assert "&lt;b&gt;SIGSEGV" in page
    assert "ep-harness gate &#39;last week&#39;" in page


def test_what_can_be_shipped_has_the_code_to_paste(tmp_path: Path) -> None:
    matrix = make_matrix(
        {
            "schema": 1,
            "models": {"folders": ["nets"]},
            "target": [
                {"name": "npu", "provider": "NpuExecutionProvider", "plugin": "/home/someone/libnpu.so"},
            ],
        }
    )
    made = report(
        record("a.onnx", target="npu", suite="nets", latency=latency(2.0), provider="NpuExecutionProvider"),
        record("b.onnx", target="npu", suite="nets", verdict=Verdict.CRASH),
        matrix=msgspec.to_builtins(matrix),
    )
    pages = site(tmp_path, made)
    assert 'href="ship.html#s1-1"' in pages["index.html"]
    assert "ship.html#s2-1" not in pages["index.html"]
    code = pages["ship.html"]
    assert '<section id="s1-1">' in code
    assert "nets/a.onnx" in code
    assert "libnpu.so" in code
    assert "/home/someone" not in code
