import json
import zipfile
from pathlib import Path

import pytest

from harness.annex.conformance.profiles import profile as profiles
from harness.annex.conformance.profiles.profile import load_profile, profile_labels, profiles_folder
from harness.annex.conformance.profiles.profile_archive import read_profile_archive, write_archive
from harness.cli import main
from tests.kit import Capture


def test_list_has_each_profile_with_its_cases(capsys: Capture) -> None:
    assert main(["profiles", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(profile_labels())
    count = len(load_profile(profile_labels()[0]).cases)
    assert f" {count} cases  " in lines[0]


def test_list_as_json(capsys: Capture) -> None:
    assert main(["profiles", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(one["label"], one["digest"]) for one in listed] == [
        (label, load_profile(label).digest) for label in profile_labels()
    ]


def test_show_counts_cases_by_feature(capsys: Capture) -> None:
    assert main(["profiles", "show", "qdq@1"]) == 0
    printed = capsys.readouterr().out
    profile = load_profile("qdq@1")
    core = sum(case.feature == "core" for case in profile.cases)
    assert profile.title in printed
    assert f"SHA-256 {profile.digest}" in printed
    assert f"{core:>5}  core\n" in printed
    assert all(case.name in printed for case in profile.cases)


def test_show_as_json_is_the_profile(capsys: Capture) -> None:
    assert main(["profiles", "show", "qdq@1", "--json"]) == 0
    path = profiles_folder() / "qdq@1.json"
    assert (
        json.loads(capsys.readouterr().out)["cases"][0].items()
        >= json.loads(path.read_text())["cases"][0].items()
    )


def test_export_copies_the_archive_once(capsys: Capture, tmp_path: Path) -> None:
    out = tmp_path / "qdq.zip"
    assert main(["profiles", "export", "qdq@1", "--out", str(out)]) == 0
    assert load_profile("qdq@1").archive in capsys.readouterr().out
    assert out.read_bytes() == (profiles_folder() / "qdq@1.zip").read_bytes()
    with zipfile.ZipFile(out) as archive:
        assert archive.testzip() is None
    assert main(["profiles", "export", "qdq@1", "--out", str(out)]) == 2
    assert "the file exists" in capsys.readouterr().err


def test_export_into_a_missing_folder_is_an_error_of_use(capsys: Capture, tmp_path: Path) -> None:
    assert main(["profiles", "export", "qdq@1", "--out", str(tmp_path / "no" / "qdq.zip")]) == 2
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["show"], ["export", "--out", "never.zip"]])
def test_an_unknown_label_names_the_nearest(command: list[str], capsys: Capture) -> None:
    assert main(["profiles", *command, "qdq@7"]) == 2
    error = capsys.readouterr().err
    assert "there is no profile 'qdq@7'" in error
    assert "qdq@1" in error
    assert not Path("never.zip").exists()


def test_an_altered_archive_is_not_exported(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = profiles_folder()
    folder = tmp_path / "matrices" / "profiles"
    folder.mkdir(parents=True)
    (folder / "qdq@1.json").write_bytes((shipped / "qdq@1.json").read_bytes())
    files = read_profile_archive((shipped / "qdq@1.zip").read_bytes())
    golden = next(name for name in files if name.endswith("output_0.pb"))
    files[golden] = files[golden][:-1] + bytes([files[golden][-1] ^ 1])
    (folder / "qdq@1.zip").write_bytes(write_archive(files))
    monkeypatch.setattr(profiles, "data_root", lambda: tmp_path)
    out = tmp_path / "out.zip"
    assert main(["profiles", "export", "qdq@1", "--out", str(out)]) == 2
    assert "SHA-256" in capsys.readouterr().err
    assert not out.exists()
