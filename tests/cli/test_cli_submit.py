"""`ep-harness submit`: one file of one device, told first, without names, folders or hosts."""

import zipfile
from pathlib import Path

import pytest

from harness.annex.conformance.profiles.profile import load_profile
from harness.annex.conformance.submission_scrub import scrubbed_line
from harness.annex.conformance.verify.opening import open_submission
from harness.annex.publication.gather import gather
from harness.cli import main
from harness.core.records.facts import CPU_PROVIDER
from harness.studies.usable_providers import DoctorRow
from tests.annex.conformance.submissions import NOW

QUICK = load_profile("quick@1")


@pytest.fixture(autouse=True)
def _own_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "deepthought.example.org")
    monkeypatch.setenv("USER", "arthurdent")
    monkeypatch.chdir(tmp_path)


def test_one_file_of_the_processor_is_verified_and_hides_where_it_ran(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxruntime")
    file = tmp_path / "arthurdent" / "mine.zip"
    assert main(["submit", "--profile", "qdq@1", "--target", CPU_PROVIDER, "--out", str(file)]) == 0
    said = capsys.readouterr()
    assert f"writes       {file}" in said.err
    assert "withholds    your name" in said.err
    assert f"ep-harness verify {file}" in said.out
    files = open_submission(file).files
    assert "statement.json" in files
    text = b"".join(files.values()).decode()
    for hidden in ("arthurdent", "deepthought", str(tmp_path)):
        assert hidden not in text
    (entry,) = gather(file.parent, now=NOW).entries
    assert entry.statement.product.vendor == "unnamed"


def row(provider: str) -> DoctorRow:
    return DoctorRow(provider=provider, state="usable", nodes=1)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ([CPU_PROVIDER], "no accelerator computes here"),
        (
            [CPU_PROVIDER, "AExecutionProvider", "BExecutionProvider"],
            "AExecutionProvider, BExecutionProvider",
        ),
    ],
)
def test_without_one_accelerator_a_name_is_needed(
    found: list[str], told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = "harness.annex.conformance.command_submit"
    monkeypatch.setattr(f"{module}.examine_here", lambda _: tuple(map(row, found)))
    assert main(["submit"]) == 2
    assert told in capsys.readouterr().err


def test_a_provider_that_cannot_be_used_gives_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "none.zip"
    target = ["--target", "AcmeExecutionProvider", "--plugin", str(tmp_path / "libacme.so")]
    assert main(["submit", "--profile", "qdq@1", *target, "--out", str(out)]) == 3
    assert "no file was written" in capsys.readouterr().err
    assert not out.exists()


def test_free_texts_lose_names_and_folders_and_names_of_tensors_stay() -> None:
    line = (
        b'{"model":"arthurdent","outputs":[{"name":"/encoder/layer.0/MatMul"}],'
        b'"ended":{"message":"arthurdent@deepthought: /home/x/lib/a.so fails"},"reason":"in /srv/m/m.onnx"}'
    )
    assert scrubbed_line(line) == (
        b'{"model":"arthurdent","outputs":[{"name":"/encoder/layer.0/MatMul"}],'
        b'"ended":{"message":"<user>@<host>: a.so fails"},"reason":"in m.onnx"}'
    )


def test_the_quick_profile_has_cases_of_published_profiles_alone() -> None:
    """The same bytes, so a device gets the same verdict; quantized and float16 ones are features."""
    known = {
        (case.name, case.model, case.inputs, case.golden)
        for label in ("cnn@1", "transformer@1", "qdq@1", "llm-ops@1", "core-opset21@1")
        for case in load_profile(label).cases
    }
    assert {(case.name, case.model, case.inputs, case.golden) for case in QUICK.cases} <= known
    core = [case for case in QUICK.cases if case.feature == "core"]
    assert 100 <= len(core) <= 200
    assert not any("float16" in case.types for case in core)
    with zipfile.ZipFile(Path(__file__).parents[2] / "matrices" / "profiles" / "quick@1.zip") as archive:
        assert {name.split("/")[0] for name in archive.namelist()} >= {"onnx-node", "zoo"}
