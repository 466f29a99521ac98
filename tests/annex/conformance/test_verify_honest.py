"""Honest submissions of several levels, claims and forms are verified; and what the command prints."""

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from markdown_it import MarkdownIt

from harness.annex.conformance.submission import SSH_SIGNATURE, STATEMENT, Level, Statement, Waiver
from harness.annex.conformance.verify.finding import FINDING_KINDS
from harness.annex.conformance.verify.plausible import plausibility_findings
from harness.annex.conformance.verify.verdict_check import verdict_findings
from harness.annex.conformance.verify.verification import verify_submissions
from harness.annex.conformance.verify.verification_text import markdown_of
from harness.cli.main import main
from harness.core.records.facts import CPU_PROVIDER
from harness.core.records.record import Record
from tests.annex.conformance.small_profiles import RULES, golden_of, tiny_profile, write_profile
from tests.annex.conformance.submissions import (
    NOW,
    Draft,
    changed,
    fallen,
    new_key,
    refused,
    rows_of,
    write_folder,
    write_zip,
    wrong,
)
from tests.annex.conformance.test_verify_tampered import WAIVER

DOC = Path(__file__).parents[3] / "docs" / "reference" / "verify.md"

Edit = Callable[[Record], Record]
LEVELS: dict[str, tuple[Edit, Level]] = {
    "right": (lambda record: record, Level.CONFORMANT),
    "refused": (refused, Level.PARTIAL),
    "fallen": (fallen, Level.PARTIAL),
    "wrong": (wrong, Level.NOT),
}


@pytest.mark.parametrize("kind", LEVELS)
@pytest.mark.parametrize("claims", [(), ("float16",)])
@pytest.mark.parametrize("form", ["folder", "zip", "signed"])
def test_an_honest_submission(kind: str, claims: tuple[str, ...], form: str, tmp_path: Path) -> None:
    edit, level = LEVELS[kind]
    waivers: tuple[Waiver, ...] = () if kind == "right" else (WAIVER,)
    draft = Draft(lambda i, r: edit(r) if i in {0, 3} else r, claims=claims, waivers=waivers)
    signers = None
    if form == "signed":
        key, line = new_key(tmp_path, "vendor@example.org")
        signers = tmp_path / "signers"
        signers.write_text(line)
        path = write_folder(draft.files(key), tmp_path / "s")
    else:
        path = (write_zip if form == "zip" else write_folder)(draft.files(), tmp_path / f"s.{form}")
    profiles = write_profile(tmp_path / "profiles", tiny_profile())
    (done,) = verify_submissions([path], signers=signers, now=NOW, profiles=profiles)
    assert [one for one in done.findings if one.name != "no-signature"] == []
    assert (done.outcome, done.result and done.result.level) == ("verified", level)


def test_an_honest_submission_of_the_cpu_provider_and_a_larger_profile(tmp_path: Path) -> None:
    profile = tiny_profile(200)
    path = write_folder(Draft(profile=profile, provider=CPU_PROVIDER).files(), tmp_path / "s")
    (done,) = verify_submissions([path], now=NOW, profiles=write_profile(tmp_path / "profiles", profile))
    assert [one.name for one in done.findings] == ["no-signature"]


def test_a_refusal_of_a_case_at_another_precision() -> None:
    case = changed(tiny_profile().cases[0], precision="float16")
    record = Draft().records[0]
    assert [*verdict_findings(refused(record), case, RULES)] == []
    assert [one.name for one in verdict_findings(record, case, RULES)] == ["excuse"]


def test_a_zip_of_the_folder_itself(tmp_path: Path) -> None:
    files = {f"mine/{name}": content for name, content in Draft().files().items()}
    path = write_zip(files, tmp_path / "s.zip")
    (done,) = verify_submissions(
        [path], now=NOW, profiles=write_profile(tmp_path / "profiles", tiny_profile())
    )
    assert done.outcome == "verified"


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_profile(tmp_path / "profiles", tiny_profile())
    monkeypatch.setattr("harness.annex.conformance.verify.verification.profiles_folder", lambda: folder)
    draft = Draft()
    draft.statement = lambda s: changed(s, created="2026-01-01T00:00:00+00:00")
    write_folder(Draft().files(), tmp_path / "all" / "good")
    comment = tmp_path / "comment.md"
    assert main(["verify", str(tmp_path / "all" / "good"), "--markdown", str(comment)]) in {0, 1}
    assert "cannot show" in comment.read_text()
    draft.after = lambda files: files.pop(SSH_SIGNATURE, None)
    write_folder(draft.files(), tmp_path / "all" / "late")
    capsys.readouterr()
    assert main(["verify", str(tmp_path / "all"), "--json"]) == 1
    done = json.loads(capsys.readouterr().out)
    assert [one["submission"] for one in done] == ["good", "late"]
    assert "time" in {found["name"] for found in done[1]["findings"]}
    assert main(["verify", str(tmp_path / "none")]) == 2


def test_markup_of_a_submission_stays_text(tmp_path: Path) -> None:
    evil = "[x](javascript:alert(1)) <img src=x> @maintainer | **b** `c` #1 \n# h"
    draft = Draft()
    draft.statement = lambda s: changed(
        s, product=changed(s.product, vendor=evil), profile=changed(s.profile, label=evil)
    )
    path = write_folder(draft.files(), tmp_path / "s")
    done = verify_submissions([path], now=NOW, profiles=write_profile(tmp_path / "profiles", tiny_profile()))
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(markdown_of(done))
    kinds = {child.type for token in tokens for child in token.children or ()}
    assert kinds <= {"text", "softbreak", "text_special"}
    assert sum(token.type == "heading_open" for token in tokens) == 1


def test_every_finding_is_documented() -> None:
    text = DOC.read_text("utf-8")
    for name, kind in FINDING_KINDS.items():
        assert f"| `{name}` | {kind.weight} | {kind.meaning} |" in text


def test_exact_answers_of_quantized_models() -> None:
    profile = tiny_profile()
    ops = {"MatMul": 1, "QuantizeLinear": 1}
    quantized = changed(profile, cases=tuple(changed(case, ops=ops) for case in profile.cases))
    draft = Draft(lambda index, record: changed(record, outputs=rows_of(golden_of(index), index)))
    found = [
        {
            one.name
            for one in plausibility_findings(
                each, msgspec.json.decode(draft.files()[STATEMENT], type=Statement), draft.records
            )
        }
        for each in (profile, quantized)
    ]
    assert found == [{"too-exact"}, set()]
