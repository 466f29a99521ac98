import datetime as dt
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from harness.conformance.submission import Waiver
from harness.core.errors import UsageError
from harness.core.verdict import Verdict
from harness.publication.entry import Checked, version_order
from harness.publication.formats import data_schema
from harness.publication.gather import Gathered, Profiles, gather
from harness.publication.site import write_publication

Submit = Callable[..., Path]
PROFILES: list[Profiles] = []
DAY = dt.date(2026, 11, 25)


def gathered(tmp_path: Path) -> Gathered:
    return gather(tmp_path / "submissions", PROFILES[0])


@pytest.fixture(autouse=True)
def _profiles(profiles: Profiles) -> None:
    PROFILES[:] = [profiles]


def site(tmp_path: Path, out: str = "site") -> dict[str, bytes]:
    folder = tmp_path / out
    write_publication(gathered(tmp_path), folder, title="Table", today=DAY)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.*")}


def test_addresses_stay_and_the_same_input_gives_the_same_bytes(submit: Submit, tmp_path: Path) -> None:
    submit("one")
    first = site(tmp_path)
    (page,) = (name for name in first if name.startswith("s/") and name.endswith("index.html"))
    assert site(tmp_path, "other") == first
    submit("two", version="2.0")
    second = site(tmp_path)
    assert page in second
    assert len([name for name in second if name.endswith("/submission.zip")]) == 2


def test_files_of_a_withdrawn_submission_are_removed(submit: Submit, tmp_path: Path) -> None:
    submit("one")
    two = submit("two", version="2.0")
    before = site(tmp_path)
    two.rename(tmp_path / "withdrawn")
    assert len([name for name in site(tmp_path) if name in before and "badge.svg" in name]) == 1


def test_a_page_names_what_is_missing_with_its_waiver(submit: Submit, tmp_path: Path) -> None:
    old = Waiver(case="ab*", issue="https://example.com/1", expires=dt.date(2026, 1, 1), words="Soon.")
    submit("one", {"abs": Verdict.FALLBACK}, waivers=(old,), reason="left to the CPU")
    (page,) = (text.decode() for name, text in site(tmp_path).items() if name.endswith("/index.html"))
    assert "partly conformant" in page
    assert "left to the CPU" in page
    assert "expired 2026-01-01" in page
    assert "not signed" in page


def test_a_newer_version_tells_what_it_gained_and_lost(submit: Submit, tmp_path: Path) -> None:
    submit("one", {"abs": Verdict.MISMATCH}, version="1.9")
    submit("two", {"add": Verdict.MISMATCH}, version="1.24")
    pages = [text.decode() for name, text in site(tmp_path).items() if name.endswith("/index.html")]
    (told,) = (page for page in pages if 'id="since"' in page)
    assert "Since Npu EP 1.9" in told
    assert '<h3>Gained</h3><ul class="cells"><li>abs</li></ul>' in told
    assert '<h3>Lost</h3><ul class="cells"><li>add</li></ul>' in told


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("statement.json", b" ", "statement.json"),
        ("records.jsonl", b"\n", "records.jsonl"),
        ("evil.html", b"x", "a submission has only"),
    ],
)
def test_what_does_not_match_is_refused_and_listed(
    submit: Submit, tmp_path: Path, name: str, change: bytes, reason: str
) -> None:
    home = submit("one")
    with (home / name).open("ab") as file:
        file.write(change)
    files = site(tmp_path)
    (refused,) = gathered(tmp_path).refused
    assert reason in refused.reason
    assert reason in files["refused.html"].decode()
    assert not [each for each in files if each.startswith("s/")]


def test_a_link_out_of_a_submission_is_refused(submit: Submit, tmp_path: Path) -> None:
    home = submit("one")
    (home / "waivers.toml").symlink_to("/etc/passwd")
    (refused,) = gathered(tmp_path).refused
    assert "a link, pipe or device" in refused.reason


def test_a_zip_is_the_same_submission(submit: Submit, tmp_path: Path) -> None:
    submit("one")
    (entry,) = gathered(tmp_path).entries
    packed = site(tmp_path)[f"s/{entry.id}/submission.zip"]
    (tmp_path / "submissions" / "again.zip").write_bytes(packed)
    assert gathered(tmp_path).entries == (entry,)
    with zipfile.ZipFile(tmp_path / "submissions" / "more.zip", "w") as archive:
        archive.writestr("../out", "x")
    assert "../out" in gathered(tmp_path).refused[0].reason


def test_hostile_names_stay_text(submit: Submit, tmp_path: Path) -> None:
    submit("one", {"abs": Verdict.FALLBACK}, name="<script>alert(1)</script>\x1b[31m", reason='"><img src=x>')
    for name, content in site(tmp_path).items():
        if name.endswith((".html", ".svg", ".xml", "badge.json", "data.json")):
            assert b"<script>alert" not in content, name
            assert b"<img" not in content, name
            assert b"\x1b" not in content, name


def test_feed_and_data_can_be_read(submit: Submit, tmp_path: Path) -> None:
    submit("one", {"gelu": Verdict.UNSUPPORTED})
    files = site(tmp_path)
    feed = ET.fromstring(files["feed.xml"])  # noqa: S314 - of our own
    assert len(feed.findall("{http://www.w3.org/2005/Atom}entry")) == 1
    (told,) = json.loads(files["data.json"])["submissions"]
    assert (told["level"], told["passed"], told["required"]) == ("conformant", 2, 2)
    assert told["cases"]["gelu"] == "unsupported"
    operators = files["operators.html"].decode()
    assert "com.microsoft.Gelu" in operators
    assert "opset 21: 1/1" in operators


def test_the_published_schema_is_that_of_the_file() -> None:
    path = Path(__file__).parents[2] / "docs" / "reference" / "publication.schema.json"
    assert json.loads(path.read_text("utf-8")) == json.loads(json.dumps(data_schema()))


def test_another_folder_is_not_overwritten(submit: Submit, tmp_path: Path) -> None:
    submit("one")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "mine").write_text("x", "utf-8")
    with pytest.raises(UsageError, match=r"files\.txt"):
        site(tmp_path)


def test_versions_are_ordered() -> None:
    versions = ["2.0", "1.24", "2.0rc1", "1.9"]
    assert sorted(versions, key=version_order) == ["1.9", "1.24", "2.0rc1", "2.0"]


def test_what_verification_refuses_is_not_published_and_what_it_marks_is_told(
    submit: Submit, profiles: Profiles, tmp_path: Path
) -> None:
    submit("good")
    submit("bad", version="2.0")
    answers = {
        "good": Checked(findings=("marked: look at <this>",), signer="key-1"),
        "bad": Checked(refused="forged"),
    }
    found = gather(tmp_path / "submissions", profiles, lambda paths: [answers[path.name] for path in paths])
    assert [(one.source, one.reason) for one in found.refused] == [("bad", "forged")]
    write_publication(found, tmp_path / "site", title="Table", today=DAY)
    (page,) = (tmp_path / "site" / "s").glob("*/index.html")
    assert "marked: look at &lt;this&gt;" in page.read_text("utf-8")
    assert "key-1" in page.read_text("utf-8")
