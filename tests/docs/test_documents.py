"""What the documentation points at is there, and the commands that it shows are commands."""

import functools
import itertools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from harness.cli.commands import OWN_COMMANDS
from harness.cli.parser import parser_for
from harness.engine.prepare import prepare

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
SELECTED = re.compile(r"(matrices/\w+\.toml)::([^\[\"`\s]+)")
MARKED = re.compile(r'ep_matrix\("(matrices/\w+\.toml)",[^)]*model="([^"]+)"')
COMMANDS_END = re.compile(r"^(?:[|;&<>]+|[0-9]?>{1,2}.*)$")


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@functools.cache
def tokens(page: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(page.read_text("utf-8"))


def links(page: Path) -> Iterator[str]:
    for token in tokens(page):
        for child in token.children or ():
            if child.type in {"link_open", "image"}:
                yield str(child.attrGet("href") or child.attrGet("src"))


@functools.cache
def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings: lower case, no punctuation, hyphens for spaces, equal numbered."""
    found: set[str] = set()
    opened = False
    for token in tokens(page):
        if opened:
            text = "".join(child.content for child in token.children or ())
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            numbered = (f"{slug}-{number}" for number in itertools.count(1))
            found.add(slug if slug not in found else next(one for one in numbered if one not in found))
        opened = token.type == "heading_open"
    return found


def commands(page: Path) -> Iterator[list[str]]:
    """Arguments of each `ep-harness` command in a shell block, as far as the next pipe or redirection."""
    for token in tokens(page):
        if token.type != "fence" or token.info not in {"sh", "console"}:
            continue
        for line in token.content.replace("\\\n", " ").splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True) if "ep-harness" in line else []
            for start, word in enumerate(words):
                if Path(word).name == "ep-harness":
                    rest = words[start + 1 :]
                    end = next((i for i, one in enumerate(rest) if COMMANDS_END.match(one)), len(rest))
                    yield rest[:end]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in links(page):
        parts = urlsplit(link)
        if parts.scheme:
            assert parts.scheme == "https", link
            continue
        target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        if parts.fragment:
            assert parts.fragment in anchors(target), link


def test_links_lead_from_the_readme_to_every_page() -> None:
    reached, waiting = set[Path](), {ROOT / "README.md"}
    while waiting:
        reached |= waiting
        linked = {
            (page.parent / unquote(urlsplit(link).path)).resolve() for page in waiting for link in links(page)
        }
        waiting = linked & {*PAGES} - reached
    assert {name(page) for page in PAGES if page not in reached} == set()


def test_the_readme_fits_two_screens() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) <= 80
    assert len(list(commands(ROOT / "README.md"))) == 1  # the first command; the others are in one table
    assert len(re.findall(r"^\|.*\| `(?:ep-harness|pytest) .*` \|$", text, re.MULTILINE)) == 10
    (picture,) = re.findall(r"!\[.+\]\((.+)\)", text)
    assert (ROOT / picture).stat().st_size < 1 << 20


def test_the_page_of_commands_has_every_command() -> None:
    page = (ROOT / "docs/reference/commands.md").read_text("utf-8")
    assert {word for word in OWN_COMMANDS if not re.search(rf"`(ep-harness )?{word}\b", page)} == set()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_command_can_be_called_so(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "extension"))  # the commands of docs/how-to/extend.md
    for command in commands(page):
        if "..." in " ".join(command) or any(word.startswith("[") for word in command):
            continue  # a form to fill in
        parser_for(command).parse_args(command)


def test_the_cells_that_are_named_are_in_their_matrix() -> None:
    named = {
        found.groups()
        for page in PAGES
        for pattern in (SELECTED, MARKED)
        for found in re.finditer(pattern, page.read_text("utf-8"))
    }
    assert named  # else nothing is looked at
    for matrix, model in named:
        prepare(ROOT / matrix)[0].only(models=[model])


def test_commands_are_found() -> None:
    """Else the test above would pass for ever."""
    found = {command[0] for page in PAGES for command in commands(page) if command}
    assert {
        "run",
        "check",
        "doctor",
        "list",
        "report",
        "diff",
        "gate",
        "history",
        "levels",
        "advise",
    } <= found
