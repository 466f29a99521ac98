"""The checks of agents: the real agent passes, and each broken one fails with the right word."""

import json
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.agent.stream import GRACE_S
from harness.annex.agent_check import dialogue
from harness.annex.agent_check.all_checks import CHECKS
from harness.cli.main import main

pytest.importorskip("onnxruntime")

BROKEN = Path(__file__).with_name("broken_agent.py")
# Fault, what is in the title of a check, and the word with which that check must fail.
FAULTS = [
    ("silent", "it greets", "greeting"),
    ("greets_with_another_token", "it greets", "token"),
    ("speaks_the_next_version", "it greets", "version"),
    ("chooses_its_own_mode", "it greets", "mode"),
    ("declines_without_a_reason", "it greets", "declines"),
    ("declines_what_nobody_knows", "known name", "declines"),
    ("prints_into_the_stream", "without waiting", "frame"),
    ("counts_wrong_checks", "without waiting", "frame"),
    ("sends_a_message_of_its_own", "without waiting", "form"),
    ("sends_what_is_no_json", "without waiting", "form"),
    ("says_nothing_about_itself", "release of the runtime", "environment"),
    ("takes_any_provider", "an EP that does not exist", "accepted"),
    ("ends_with_an_exit_code", "exit code 0", "end"),
    ("keeps_its_phases_to_itself", "the phase run", "order"),
    ("begins_a_run_for_ever", "the right one", "budget"),
    ("is_done_before_the_result", "the right one", "order"),
    ("answers_another_job", "the right one", "order"),
    ("rounds_the_identities_of_jobs", "below 2^53", "order"),
    ("makes_up_its_placement", "every node", "placement"),
    ("runs_the_first_data_set_only", "data sets", "form"),
    ("repeats_only_what_is_quick", "takes long", "form"),
    ("plays_no_ways", "scenario generate", "form"),
    ("sorts_its_outputs", "order of their names", "value"),
    ("dies_in_a_run", "the right one", "died"),
    ("hangs_in_a_job", "the right one", "time"),
    ("ignores_what_it_does_not_know", "unknown key of a job", "accepted"),
    ("fails_without_a_word", "a model that is none", "error"),
    ("makes_vectors_of_scalars", "a scalar", "value"),
    ("swaps_bytes", "a matrix", "value"),
    ("knows_one_nan_only", "NaN", "value"),
    ("counts_in_float64", "ends of int64", "value"),
    ("leaves_out_empty_tensors", "a tensor without elements", "value"),
    ("leaves_its_files", "no file stays", "written"),
    ("believes_any_content", "SHA-256", "upload"),
    ("writes_anywhere", "outside of the model", "written"),
    ("goes_on_without_a_harness", "ends in a long run", "end"),
]


def checked(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    code = main(["agent-check", "--json", *arguments])
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return code, rows


@pytest.mark.parametrize(("fault", "title", "word"), FAULTS, ids=[fault for fault, _, _ in FAULTS])
def test_a_broken_agent_fails_with_the_right_word(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, fault: str, title: str, word: str
) -> None:
    monkeypatch.setattr(dialogue, "END_S", GRACE_S + 1)
    limit = "5" if word in {"greeting", "time"} else "60"
    command = ("--only", title, "--limit", limit, "--", sys.executable, str(BROKEN), fault)
    code, rows = checked(capsys, *command)
    assert code == 1
    assert word in {row["word"] for row in rows}, rows


def test_there_are_a_hundred_checks_and_each_has_its_own_title() -> None:
    titles = [(check.group, check.title) for check in CHECKS]
    assert len(titles) >= 100
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize(
    "group", ["greeting", "start and end", "settings", "scenarios", "tensors in files", "pieces"]
)
def test_the_agent_of_the_package_passes(capsys: pytest.CaptureFixture[str], group: str) -> None:
    code, rows = checked(capsys, "--only", f"{group}: ", "--", sys.executable, "-m", "harness.agent")
    assert rows
    assert [row for row in rows if row["state"] == "failed"] == []
    assert code == 0


def test_a_late_reader_takes_nothing_from_the_next_agent(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(descriptor: int, size: int) -> bytes:
        time.sleep(0.1)
        return os.read(descriptor, size)

    monkeypatch.setattr(dialogue, "os", SimpleNamespace(read=late))
    command = ("--only", "pieces: ", "--limit", "20", "--", sys.executable, "-m", "harness.agent")
    code, rows = checked(capsys, *command)
    assert [row for row in rows if row["state"] != "ok"] == []
    assert code == 0


def test_a_table_fits_into_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    command = ("--only", "element types: i", "--", sys.executable, "-m", "harness.agent")
    assert main(["agent-check", *command]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "element types"
    assert "  ok       int64" in lines
    assert lines[-1].startswith("6 checks: 6 ok")
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--", "no-such-program-anywhere"), "there is no program 'no-such-program-anywhere'"),
        (("--only", "zzz", "--", sys.executable), "no check has 'zzz' in its title"),
        (("--option", "x", "--", sys.executable), "expected KEY=VALUE, got 'x'"),
    ],
)
def test_errors_of_use_are_told(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    assert main(["agent-check", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_without_a_greeting_the_rest_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    code, rows = checked(capsys, "--limit", "5", "--", sys.executable, "-c", "raise SystemExit(3)")
    assert code == 1
    assert [(row["check"], row["word"]) for row in rows] == [("it greets", "greeting")]
    assert "exit code 3" in rows[0]["text"]
