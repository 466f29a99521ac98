"""Build the documentation as a site, strictly: `python -m docs.site.build OUT [--version V]`.

OUT is a tree of versions, as mike lays it out: OUT/V, OUT/latest, OUT/versions.json. Other versions stay.
"""

import argparse
import json
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
LATEST = "latest"
# Pages outside `docs` that are pages of the site.
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "README.md": "index.md"}
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)")
FENCE = re.compile(r"^ *(`{3,}|~{3,})")
KINDS = re.compile(r"^( *[`~]{3,}\S+) .*")
VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+-]*")
LANGUAGES = {".py": "python", ".toml": "toml", ".html": "jinja", ".yml": "yaml", ".sh": "sh"}
HIDDEN = "---\nsearch:\n  exclude: true\n---\n\n"  # from searching
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
REDIRECT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Redirecting</title>
<script>location.replace("{to}" + location.search + location.hash)</script>
<noscript><meta http-equiv="refresh" content="0; url={to}"></noscript></head>
<body><a href="{to}">{to}</a></body></html>
"""


def main(arguments: list[str] | None = None) -> int:
    """Build the version into the tree, and return the exit code of the generator."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument(
        "--version", default=declared_version(), help="default: %(default)s, of pyproject.toml"
    )
    given = parser.parse_args(arguments)
    if not VERSION.fullmatch(given.version) or given.version == LATEST:
        parser.error(f"--version: {given.version!r} names no folder; valid: letters, digits and . + -")
    with tempfile.TemporaryDirectory() as temporary:
        stage = Path(temporary)
        lay_out(ROOT, stage)
        ended = generate(stage / "mkdocs.yml")
        print(COLOURS.sub("", ended.stdout), end="")
        if ended.returncode == 0:
            add_version(stage / "site", given.out, given.version)
            print(f"{given.out / given.version / 'index.html'}")
    return ended.returncode


def generate(configuration: Path) -> subprocess.CompletedProcess[str]:
    """Run the generator; a link or an anchor that leads nowhere is an error."""
    command = [sys.executable, "-m", "zensical", "build", "--strict", "-f", str(configuration)]
    return subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def declared_version() -> str:
    """Return the version of pyproject.toml."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"])


def lay_out(root: Path, stage: Path) -> None:
    """Write the configuration and all pages as the generator takes them.

    Links that leave `docs` lead to pages with the text of what they name: the site needs no repository.
    """
    shutil.copy(HERE / "mkdocs.yml", stage)
    shutil.copytree(HERE / "overrides", stage / "overrides")
    pages = stage / "docs"
    shutil.copytree(
        root / "docs", pages, ignore=lambda folder, _: {"site"} if Path(folder) == root / "docs" else set()
    )
    shutil.copytree(HERE / "assets", pages / "assets")
    names = [page.relative_to(root).as_posix() for page in sorted((root / "docs").rglob("*.md"))]
    waiting = [*names, "CONTRIBUTING.md", "CHANGELOG.md"]
    known = set(waiting)
    while waiting:
        name = waiting.pop()
        text, outside = as_page(name, (root / name).read_text("utf-8"))
        page = pages / place(name)
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, "utf-8")
        waiting += sorted(outside - known)
        known |= outside


def place(name: str) -> str:
    """Return where a file of the repository is in the site."""
    if name.startswith("docs/") and not name.startswith("docs/site/"):
        return name.removeprefix("docs/")
    # The generator passes over what begins with a dot.
    return PAGES.get(name) or f"source/{name.lstrip('.')}.md"


def as_page(name: str, text: str) -> tuple[str, set[str]]:
    """Return a file of the repository as a page, and the files outside of `docs` that it links."""
    if not name.endswith(".md"):
        return source_page(name, text), set()
    page, outside = rewritten(text, name)
    return (HIDDEN + page if place(name).startswith("source/") else page), outside


def rewritten(text: str, name: str) -> tuple[str, set[str]]:
    """Return a page with its links as they are in the site, and the files outside of it that it links."""
    outside: set[str] = set()
    here = posixpath.dirname(place(name)) or "."

    def link(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), found[1]))
        if place(target).startswith("source/"):
            outside.add(target)
        return posixpath.relpath(place(target), here)

    lines: list[str] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        opened = FENCE.match(line)
        if opened and not fence:
            fence = opened[1]
        elif opened and opened[1].startswith(fence) and line.strip() == opened[1]:
            fence = ""
        # Python-Markdown takes one word for the kind of code; for more, it sees no code at all.
        lines.append(KINDS.sub(r"\1", line) if opened else line if fence else LINK.sub(link, line))
    return "".join(lines), outside


def source_page(name: str, text: str) -> str:
    """Return a page that shows a file of the repository as it is."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return (
        f"{HIDDEN}# `{name}`\n\n{fence}{LANGUAGES.get(Path(name).suffix, 'text')}\n{text.rstrip()}\n{fence}\n"
    )


def add_version(site: Path, tree: Path, version: str) -> None:
    """Put a built site into a tree of versions, as the newest; the same version in it is replaced."""
    tree.mkdir(parents=True, exist_ok=True)
    listed = tree / "versions.json"
    before = json.loads(listed.read_text("utf-8")) if listed.exists() else []
    others = [{**one, "aliases": []} for one in before if one["version"] != version]
    for folder in (version, LATEST):
        shutil.rmtree(tree / folder, ignore_errors=True)
    shutil.copytree(site, tree / version)
    for page in sorted(site.rglob("*.html")):
        name = page.relative_to(site)
        alias = tree / LATEST / name
        alias.parent.mkdir(parents=True, exist_ok=True)
        alias.write_text(
            REDIRECT.format(to="../" * len(name.parts) + f"{version}/{name.as_posix()}"), "utf-8"
        )
    (tree / "index.html").write_text(REDIRECT.format(to=f"{LATEST}/index.html"), "utf-8")
    newest = {"version": version, "title": version, "aliases": [LATEST]}
    listed.write_text(json.dumps([newest, *others], indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
