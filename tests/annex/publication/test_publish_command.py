"""The command, with verification as it is."""

import json
from pathlib import Path

import pytest

from harness.cli.main import main
from tests.annex.conformance.small_profiles import tiny_profile, write_profile
from tests.annex.conformance.submissions import Draft, new_key, write_folder, write_zip, wrong


def test_an_honest_submission_is_published_and_a_forged_one_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EP_HARNESS_CACHE", str(tmp_path / "cache"))
    profiles = write_profile(tmp_path / "profiles", tiny_profile())
    for module in (
        "harness.annex.conformance.profiles.profile",
        "harness.annex.conformance.verify.verification",
    ):
        monkeypatch.setattr(f"{module}.profiles_folder", lambda: profiles)
    key, line = new_key(tmp_path, "vendor@example.org")
    (tmp_path / "signers").write_text(line, "utf-8")
    submissions = tmp_path / "submissions"
    submissions.mkdir()
    write_folder(Draft().files(key), submissions / "honest")
    forged = Draft(lambda index, record: wrong(record) if index == 0 else record).files()
    forged["records.jsonl"] = forged["records.jsonl"].replace(b"mismatch", b"pass", 1)
    write_zip(forged, submissions / "forged.zip")
    options = ["--day", "2026-11-25", "--signers", str(tmp_path / "signers")]
    assert main(["publish", str(submissions), "--out", str(tmp_path / "site"), *options]) == 1
    assert "refused: forged.zip" in capsys.readouterr().err
    data = json.loads((tmp_path / "site" / "data.json").read_bytes())
    assert [one["level"] for one in data["submissions"]] == ["conformant"]
    page = (tmp_path / "site" / "s" / data["submissions"][0]["id"] / "index.html").read_text("utf-8")
    assert "each verdict decided again" in page
    assert "vendor@example.org" in page
    assert "<li>refused" not in page
