"""report, diff, gate and history, as a person or a CI job calls them."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from harness.cli import main
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.records.verdict import Family, Verdict
from tests.kit import Capture, bare_record, matrix_of, placement_of, with_facts, write_run

SaveRun = Callable[..., Path]
OUTPUT = OutputMetrics(
    name="y", dtype="float32", shape=(3,), elements=3, mismatched=0, delivered_bits=23.3, headroom=0.00501
)
PLACEMENT = placement_of({"MatMul": 1})
EVIL = "\x1b[31m::error::x ##[error]y\u202e"


@pytest.fixture
def save_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SaveRun:
    """Write a run folder from model -> verdict, below a folder that commands are called in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)

    def save(name: str, verdicts: Mapping[str, Verdict], reason: str = "") -> Path:
        made = [
            bare_record(
                model,
                verdict,
                target="npu",
                expected=verdict.family is not Family.FAILED,
                axes={"precision": "fp32", "scenario": "plain"},
                reason=reason,
                placement=PLACEMENT,
                outputs=(OUTPUT,),
                started=f"2026-11-01T00:00:0{len(name) % 10}Z",
            )
            for model, verdict in verdicts.items()
        ]
        records = [with_facts(each) for each in made]
        write_run(tmp_path / name, records, matrix=matrix_of(records), targets={"npu": {}})
        return Path(name)

    return save


@pytest.fixture
def nights(save_run: SaveRun) -> tuple[str, str]:
    save_run("old", {"a": Verdict.PASS, "b": Verdict.CRASH, "c": Verdict.PASS})
    save_run("new", {"a": Verdict.MISMATCH, "b": Verdict.PASS, "c": Verdict.PASS}, reason=EVIL)
    return "old", "new"


def test_diff_shows_both_and_gate_fails(nights: tuple[str, str], capsys: Capture) -> None:
    assert main(["diff", *nights]) == 0
    shown = capsys.readouterr().out
    assert "regressed: 1 cell" in shown
    assert "fixed: 1 cell" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert main(["gate", *nights]) == 1
    assert capsys.readouterr().out.endswith("gate: FAILED\n")
    assert main(["gate", nights[0], nights[0]]) == 0
    assert capsys.readouterr().out.endswith("gate: passed\n")


@pytest.mark.parametrize("arguments", [(), ("--format", "markdown"), ("--format", "github"), ("--json",)])
def test_no_output_of_diff_holds_a_command(
    arguments: tuple[str, ...], nights: tuple[str, str], capsys: Capture
) -> None:
    assert main(["diff", *nights, *arguments]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    if arguments != ("--json",):
        assert "##[" not in shown
        assert not any(line.lstrip().startswith("::error::x") for line in shown.splitlines())


def test_diff_as_json(nights: tuple[str, str], capsys: Capture) -> None:
    main(["diff", *nights, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["kinds"] == {
        "regressed": 1,
        "fixed": 1,
        "changed": 0,
        "other_measure": 0,
        "golden_moved": 0,
        "other_model": 0,
        "new": 0,
        "gone": 0,
    }


def test_annotations_where_github_wants_them(
    nights: tuple[str, str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["gate", *nights])
    assert "::error" not in capsys.readouterr().out
    main(["gate", *nights, "--github"])
    assert "::error title=regressed%3A s/a[npu]::" in capsys.readouterr().out
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    main(["gate", *nights])
    assert "::error title=regressed%3A s/a[npu]::" in capsys.readouterr().out
    main(["gate", *nights, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (found["judgement"]["passed"], found["diff"]["kinds"]["fixed"]) == (False, 1)


def policy(text: str) -> str:
    Path("gate.toml").write_text(f"schema = 1\n{text}", "utf-8")
    return "gate.toml"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 1),
        ("[limits]\nregressed = 1", 1),
        ("[limits]\nregressed = 1\n[limits.enter]\nfailed = 1", 0),
        ('[[flaky]]\nmodel = "a"\nverdict = "mismatch"\nreason = "timer"', 0),
        ('[[flaky]]\ntarget = "n*"\nprecision = "fp32"\nverdict = ["crash", "hang"]\nreason = "timer"', 1),
    ],
)
def test_policies(text: str, code: int, nights: tuple[str, str], capsys: Capture) -> None:
    assert main(["gate", *nights, "--policy", policy(text)]) == code
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[limits]\nregresed = 1", "did you mean 'regressed'?"),
        ("[limits]\nmin_agreement = 1.5", "expected a finite number from 0 to 1, got 1.5"),
        ("[limits]\nmin_agreement = 0.9", "no cell of the new run has answers of a task"),
        ("[limits]\ngone = -1", "an integer of at least 0, got -1"),
        ("[limits.enter]\npassed = 1", "limits.enter.passed: unknown key"),
        ('[[flaky]]\nmodel = "a"\nverdict = "mismatch"', "the key 'reason' is missing"),
        ('[[flaky]]\nmodel = "a"\nverdict = "mismatsch"\nreason = "x"', "did you mean 'mismatch'?"),
        (
            '[[flaky]]\nmodel = "zz"\nverdict = "crash"\nreason = "x"',
            "flaky[0]: matches no cell of either run",
        ),
        ("limits = 1", "expected a table"),
        ("[limits", "not TOML"),
    ],
)
def test_wrong_policies(text: str, message: str, nights: tuple[str, str], capsys: Capture) -> None:
    assert main(["gate", *nights, "--policy", policy(text)]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""
    assert len(shown.err.splitlines()) <= 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("diff", "old", "nwe"), "nwe: there is no such run folder"),
        (("diff", "old", "empty"), "empty: no run"),
        (("gate", "old", "new", "--policy", "gat.toml"), "gat.toml: no such file"),
        (("gate", "old", "new", "--min-agreement", "98"), "--min-agreement: got 98"),
        (("gate", "old", "new", "--min-agreement", "nan"), "valid: a share from 0 to 1"),
        (("report", "old", "--out", "r", "--format", "htlm"), "did you mean 'html'?"),
        (("report", "old", "--out", "r", "--format", "html,"), "there is no format ''"),
        (("report", "old", "nwe", "--out", "r"), "nwe: there is no such run folder"),
        (("report", "old", "--out", "old/run.json"), "old/run.json: the report cannot be written"),
        (("history", "show"), "history.sqlite: there is no history"),
        (("history", "add", "empty"), "empty: no run"),
        (("history", "add", "old", "--db", "none/h.sqlite"), "unable to open database file"),
    ],
)
def test_mistakes(
    arguments: tuple[str, ...],
    message: str,
    nights: tuple[str, str],
    capsys: Capture,
) -> None:
    assert nights
    Path("empty").mkdir()
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert message.replace("/", "\\") in shown.err or message in shown.err
    assert "Traceback" not in shown.err
    assert len(shown.err.splitlines()) <= 2


def test_report_names_what_it_wrote(nights: tuple[str, str], capsys: Capture) -> None:
    arguments = ["report", "new", "--out", "r", "--format", "html, markdown,badge", "--baseline", nights[0]]
    assert main(arguments) == 0
    written = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert written == [Path("r/index.html"), Path("r/report.md"), Path("r/badge.json")]
    assert all(path.is_file() for path in written)


def test_history_from_the_first_night_on(nights: tuple[str, str], capsys: Capture) -> None:
    assert main(["history", "add", *nights]) == 0
    assert main(["history", "add", nights[1]]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["added", "old"],
        ["added", "new"],
        ["already", "there", "new"],
    ]
    assert main(["history", "show"]) == 0
    shown = capsys.readouterr().out
    assert "2 of 3 (66.7%)" in shown
    assert " 23.3  0.00501 " in shown
    assert "failing: 1 cell" in shown
    assert "s/a[npu]" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert main(["history", "show", "--json", "--target", "n*"]) == 0
    assert json.loads(capsys.readouterr().out)["failing"][0]["verdict_before"] == "pass"
    assert main(["history", "show", "--cell", "s/a[npu]"]) == 0
    assert "mismatch !" in capsys.readouterr().out
    assert main(["history", "show", "--out", "trend"]) == 0
    assert Path(capsys.readouterr().out.strip()).is_file()


def test_a_cell_in_conflict_costs_itself_and_the_exit_codes_tell(save_run: SaveRun, capsys: Capture) -> None:
    save_run("before", {"a": Verdict.PASS, "b": Verdict.PASS})
    save_run("night/one", {"a": Verdict.PASS, "b": Verdict.PASS})
    save_run("night/again", {"a": Verdict.CRASH})
    assert main(["report", "night", "--out", "site", "--baseline", "before"]) == 0
    assert main(["history", "add", "before"]) == 0
    assert main(["history", "add", "night"]) == 1
    told = capsys.readouterr()
    assert "added          night" in told.out
    assert "1 of them in the verdict; these count as not run, such as s/a[npu]." in told.err
    assert main(["history", "show", "--cell", "s/a[npu]"]) == 0
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()[3:]] == ["pass", "not_run"]
    assert main(["gate", "before", "night"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "its runs hold different results: crash in again, pass in one" in out
    assert "limits.not_run: 1 cell, 0 allowed" in out


def test_a_policy_names_the_owner_of_a_target(
    nights: tuple[str, str], tmp_path: Path, capsys: Capture
) -> None:
    policy = tmp_path / "gate.toml"
    own = (
        'schema = 1\n[limits]\nenter = { failed = 1 }\n[[target]]\ntarget = "n*"\nowner = "npu@example.org"\n'
    )
    policy.write_text(own, encoding="utf-8")
    assert main(["gate", *nights, "--policy", "gate.toml"]) == 1
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "limits." in line]
    assert line == "target npu (owner: npu@example.org): limits.regressed: 1 cell, 0 allowed"
    policy.write_text(own + "limits = { regressed = 1 }\n", encoding="utf-8")
    assert main(["gate", *nights, "--policy", "gate.toml"]) == 0
    policy.write_text('schema = 1\n[[target]]\ntarget = "gpu"\n', encoding="utf-8")
    assert main(["gate", *nights, "--policy", "gate.toml"]) == 2
    assert (
        "target[0]: no target of either run is like 'gpu'\n    did you mean 'npu'?" in capsys.readouterr().err
    )


def test_earlier_nights_are_read_and_their_problems_told(
    nights: tuple[str, str], save_run: SaveRun, capsys: Capture
) -> None:
    save_run("night/one", {"a": Verdict.PASS})
    save_run("night/again", {"a": Verdict.CRASH})
    assert main(["diff", *nights, "--earlier", "night", "old"]) == 0
    assert "CONFLICT: the runs differ in 1 cell of target npu" in capsys.readouterr().err
    assert main(["gate", *nights, "--earlier", "nowhere"]) == 2
    assert "nowhere" in capsys.readouterr().err
