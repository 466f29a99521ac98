"""`ep-harness conform`: a run of a profile, its submission, its level and exit code."""

import hashlib
import json
import shutil
import subprocess
import tomllib
from pathlib import Path

import msgspec
import pytest

from harness.annex.conformance.command_conform_matrix import matrix_text, wanted_of_request
from harness.annex.conformance.level import case_key, profile_result
from harness.annex.conformance.profiles.profile import load_profile, profile_labels
from harness.annex.conformance.signing import check_ssh
from harness.annex.conformance.submission import Level, Statement
from harness.cli import main
from harness.cli.targets import ProviderRequest
from harness.engine.prepare import open_suites
from harness.plan.expand import expand
from tests.kit import make_matrix, read_records

CPU = "CPUExecutionProvider"
LABEL = "qdq@1"
CASE = load_profile(LABEL).cases[0].name


def conform(*arguments: str) -> int:
    return main(["conform", "--profile", LABEL, *arguments])


def statement_of(folder: Path) -> Statement:
    return msgspec.json.decode((folder / "statement.json").read_bytes(), type=Statement)


def test_a_run_becomes_a_submission(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime")
    waivers = tmp_path / "w.toml"
    waivers.write_text(
        f'[[waiver]]\ncase = "{CASE}"\nissue = "https://example.org/1"\n'
        'expires = 2099-01-01\nwords = "known"\n'
    )
    out = tmp_path / "out"
    code = conform("--target", CPU, "--vendor", "Acme", "--waivers", str(waivers), "--out", str(out))
    folder = out / f"{LABEL}-cpu"
    statement = statement_of(folder)
    assert code == (0 if statement.level is Level.CONFORMANT else 1)
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    attested = json.loads((folder / "attestation.json").read_bytes())["subject"]
    assert files == {"attestation.json", "waivers.toml", *(one["name"] for one in attested)}
    for one in attested:
        assert hashlib.sha256((folder / one["name"]).read_bytes()).hexdigest() == one["digest"]["sha256"]

    profile = load_profile(LABEL)
    records = read_records(folder)
    assert [record.cell for record in records] == sorted(record.cell for record in records)
    assert {case_key(record) for record in records} == {case.key for case in profile.cases}
    assert statement.features == profile_result(profile, (), records).features
    assert statement.product.vendor == "Acme"
    assert statement.environment.libraries  # the agent identifies what a profile runs on
    assert statement.waivers[0].words == "known"
    assert str(tmp_path) not in "".join((folder / name).read_text("utf-8") for name in files)

    printed = capsys.readouterr().out.partition(f"\n{LABEL}: ")[2]
    assert f"verify       ep-harness verify {folder}" in printed
    assert "refused" not in printed
    assert "several at once" in printed  # not each of these features, if none is claimed
    assert all(len(line) <= 80 for line in printed.splitlines() if str(folder) not in line)


def test_a_submission_that_would_be_refused_is_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.setattr("harness.annex.conformance.command_conform.verified", lambda _: "refused: m: why")
    assert conform("--target", CPU, "--out", str(tmp_path / "out")) == 3
    assert "verification refused: m: why" in capsys.readouterr().out


def test_a_signature_is_that_of_the_attestation(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    if shutil.which("ssh-keygen") is None:
        pytest.skip("needs ssh-keygen")
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    conform("--target", CPU, "--sign", str(key), "--out", str(tmp_path / "out"))
    folder = tmp_path / "out" / f"{LABEL}-cpu"
    content, signature = ((folder / f"attestation.json{end}").read_bytes() for end in ("", ".sig"))
    assert check_ssh(content, signature).startswith("SHA256:")


def test_a_target_that_cannot_be_used_leaves_every_case_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    arguments = ["--plugin", str(tmp_path / "libacme.so"), "--option", "a=1"]
    assert conform("--target", "AcmeExecutionProvider", *arguments, "--out", str(out)) == 3
    statement = statement_of(out / f"{LABEL}-acme")
    assert statement.level is Level.NOT
    assert statement.features["core"].open == statement.features["core"].cases
    assert statement.reproduce[-4:] == ("--plugin", "libacme.so", "--option", "a=1")
    assert "not conformant" in capsys.readouterr().out


def test_a_target_of_a_matrix_keeps_its_settings_but_not_its_axes(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    file = tmp_path / "mine.toml"
    file.write_text(
        'schema = 1\n[models]\nsuites = ["onnx-node"]\n[axes]\ngraph_optimization = ["all", "disabled"]\n'
        f'[[target]]\nname = "mine"\nprovider = "{CPU}"\nenv = {{ A_B = "c\\"d" }}\n'
        'timeouts_s = { run = 90 }\naxes = { scenario = ["plain", "io_binding"] }\n'
        "[[tolerance]]\nrtol = 1.0\natol = 1.0\n"
    )
    out = tmp_path / "out"
    assert conform("--target", "mine", "--matrix", str(file), "--out", str(out)) in {0, 1}
    written = tomllib.loads((out / "run" / "matrix.toml").read_text("utf-8"))
    (target,) = written["target"]
    assert target["env"] == {"A_B": 'c"d'}
    assert target["timeouts_s"] == {"run": 90.0}
    assert "axes" not in target
    assert "tolerance" not in written
    info = json.loads((out / f"{LABEL}-mine" / "run.json").read_bytes())
    assert info["cells"] == len(load_profile(LABEL).cases)


@pytest.mark.parametrize("label", profile_labels())
def test_the_plan_has_the_cases_of_the_profile_and_no_others(label: str, tmp_path: Path) -> None:
    profile = load_profile(label)
    text = matrix_text(profile, wanted_of_request(ProviderRequest(provider=CPU)))
    matrix = make_matrix(text, tmp_path / "matrix.toml")
    plan = expand(matrix, {name: suite.models() for name, suite in open_suites(matrix).items()})
    planned = [(cell.model, cell.axis("scenario")) for cell in plan.cells]
    assert sorted(planned) == sorted(case.key for case in profile.cases)


MATRIX = ["--matrix", str(Path(__file__).parents[2] / "matrices" / "local.toml")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--profile", "qdk@1", "--target", CPU], f"did you mean '{LABEL}'?"),
        (["--profile", LABEL, "--target", "CPUExecutionProvidr"], f"did you mean '{CPU}'?"),
        (["--profile", LABEL, "--target", CPU, "--claim", "wings"], "has no feature 'wings'"),
        (["--profile", LABEL, "--target", CPU, "--sign", "no/such"], "there is no such key"),
        (["--profile", LABEL, "--target", CPU, "--waivers", "no.toml"], "no such file"),
        (["--profile", LABEL, "--target", CPU, "--option", "x"], "expected KEY=VALUE"),
        (["--profile", LABEL, "--target", "cpuu", *MATRIX], "did you mean 'cpu'?"),
        (["--profile", LABEL, "--target", "cpu", *MATRIX, "--option", "a=b"], "has its own plugin"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["conform", *arguments, "--out", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_an_earlier_submission_stays_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out" / f"{LABEL}-cpu").mkdir(parents=True)
    assert conform("--target", CPU, "--out", str(tmp_path / "out")) == 2
    assert "there is a submission already" in capsys.readouterr().err
    assert [each.name for each in (tmp_path / "out").iterdir()] == [f"{LABEL}-cpu"]
