"""The documentation as a site: how pages are laid out for the generator, versions, addresses outside."""

import json
import re
import tomllib
from pathlib import Path
from urllib.error import HTTPError

import pytest

from docs.site import build, external

ROOT = Path(__file__).parents[2]


def test_links_that_leave_the_docs_lead_to_pages_of_the_site() -> None:
    text = (
        "[a](../../CONTRIBUTING.md#rules) [b](../../harness/core/verdicts/rules.py) [c](gate.md) "
        "[d](https://x.y/z)"
    )
    page, outside = build.rewritten(text, "docs/how-to/triage.md")
    assert page == (
        "[a](../contributing.md#rules) [b](../source/harness/core/verdicts/rules.py.md) [c](gate.md) "
        "[d](https://x.y/z)"
    )
    assert outside == {"harness/core/verdicts/rules.py"}


def test_a_page_beside_the_docs_moves_with_its_links() -> None:
    page, outside = build.rewritten("[a](docs/tutorial.md) [b](.ci/run)", "CONTRIBUTING.md")
    assert page == "[a](tutorial.md) [b](source/ci/run.md)"
    assert outside == {".ci/run"}


@pytest.mark.parametrize("fence", ["```", "~~~~"])
def test_code_is_left_alone(fence: str) -> None:
    text = f"{fence}md\n[a](../../LICENSE)\n{fence}\n"
    assert build.rewritten(text, "docs/how-to/gate.md") == (text, set())


def test_code_keeps_the_first_word_of_its_kind() -> None:
    assert build.rewritten("```yaml gitlab-ci\na:\n```\n", "docs/tutorial.md")[0] == "```yaml\na:\n```\n"


def test_a_source_with_fences_is_shown_whole() -> None:
    page = build.source_page("a.py", '"""\n```sh\nx\n```\n"""\n')
    assert "\n````python\n" in page
    assert page.endswith("\n````\n")


def test_all_that_is_linked_is_laid_out(tmp_path: Path) -> None:
    build.lay_out(ROOT, tmp_path)
    pages = tmp_path / "docs"
    assert (pages / "index.md").is_file()
    assert not (pages / "site").exists()
    for page in pages.rglob("*.md"):
        if page.relative_to(pages).parts[0] == "source" and not page.name.endswith(".md.md"):
            continue  # code, in which brackets are no links
        for found in re.findall(
            r"\]\((?!https:|#)([^)\s#]+)", re.sub(r"`[^`\n]*`", "", page.read_text("utf-8"))
        ):
            assert (page.parent / found).exists(), f"{page}: {found}"


def test_every_page_is_in_the_navigation_once() -> None:
    text = (ROOT / "docs/site/mkdocs.yml").read_text("utf-8")
    named = re.findall(r"^ +- (?:\w[\w-]*: )?(\S+\.md)$", text, re.MULTILINE)
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in ROOT.glob("docs/**/*.md")]
    assert sorted(named) == sorted([*pages, "contributing.md", "changelog.md"])


def site(folder: Path, text: str) -> Path:
    (folder / "how-to").mkdir(parents=True)
    (folder / "index.html").write_text(text)
    (folder / "how-to/gate.html").write_text(text)
    return folder


def test_an_older_version_keeps_its_address_and_the_newest_is_latest(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    build.add_version(site(tmp_path / "one", "one"), tree, "0.1.0")
    build.add_version(site(tmp_path / "two", "two"), tree, "0.2.0")
    assert (tree / "0.1.0/how-to/gate.html").read_text() == "one"
    assert (tree / "0.2.0/how-to/gate.html").read_text() == "two"
    assert 'href="../../0.2.0/how-to/gate.html"' in (tree / "latest/how-to/gate.html").read_text()
    assert json.loads((tree / "versions.json").read_text()) == [
        {"version": "0.2.0", "title": "0.2.0", "aliases": ["latest"]},
        {"version": "0.1.0", "title": "0.1.0", "aliases": []},
    ]


def test_a_version_built_again_loses_the_pages_that_are_gone(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    build.add_version(site(tmp_path / "one", "one"), tree, "0.1.0")
    (tmp_path / "one/how-to/gate.html").unlink()
    build.add_version(tmp_path / "one", tree, "0.1.0")
    assert not (tree / "0.1.0/how-to/gate.html").exists()
    assert not (tree / "latest/how-to/gate.html").exists()
    assert len(json.loads((tree / "versions.json").read_text())) == 1


@pytest.mark.parametrize("version", ["../up", "", "latest", "a/b", ".hidden"])
def test_a_version_that_is_no_folder_is_refused(
    version: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        build.main([str(tmp_path / "out"), "--version", version])
    assert "names no folder" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_tox_builds_with_the_release_of_the_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    (generator,) = extras["docs"]
    assert f"    {generator}\n" in (ROOT / "tox.ini").read_text("utf-8")


def test_addresses_have_the_pages_that_link_them(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("[x](https://b.example/1) [y](https://a.example/)")
    (tmp_path / "README.md").write_text("[x](https://b.example/1)")
    assert external.addresses(tmp_path) == {
        "https://a.example/": ["docs/a.md"],
        "https://b.example/1": ["README.md", "docs/a.md"],
    }


def test_an_address_that_does_not_answer_fails_the_check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(request: object, timeout: float) -> None:
        del request, timeout
        raise HTTPError("https://x.example", 404, "gone", {}, None)  # type: ignore[arg-type]

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    assert external.main([]) == 1
    assert "HTTP 404; linked in" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("known failure", "known-failures.md"),
        ("expected failure", "known-failures.md"),
        ("xfail", "known-failures.md"),
        ("fp16", "precision.md"),
    ],
)
def test_what_people_search_stands_in_the_title_of_its_page(words: str, page: str) -> None:
    # The search of the site ranks titles first; no other page may have the words there.
    titled = {
        path.name
        for path in (ROOT / "docs").rglob("*.md")
        if words in path.read_text("utf-8").partition("\n")[0].lower()
    }
    assert titled == {page}
