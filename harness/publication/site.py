"""The publisher's site: its files, a function of the submissions and the day alone."""

import datetime as dt
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.conformance.waivers import covers
from harness.core.errors import Problem, UsageError
from harness.publication.compare import changes_since, operators_of, rows_of
from harness.publication.entry import Entry
from harness.publication.formats import atom, badge_svg, data_of, shields
from harness.publication.gather import Gathered
from harness.report.inert import inert_json
from harness.report.page import Pages

_LISTING = "files.txt"
"""The files that a site consists of; what a later one has no longer is removed."""


def write_publication(gathered: Gathered, out: Path, *, title: str, today: dt.date) -> Path:
    """Write the site and return its first page.

    Args:
        gathered: The submissions.
        out: Folder of the site; files of an earlier site in it are replaced or removed.
        title: Headline of the site.
        today: The day on which waivers count or not.

    Raises:
        UsageError: It cannot be written, or ``out`` has files but no site.
    """
    try:
        old = _old_files(out)
        files = dict(_files(gathered, title, today))
        for name, content in files.items():
            path = out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        for name in old - files.keys():
            path = out / name
            if path.is_file() and path.resolve().is_relative_to(out.resolve()):
                path.unlink()
        (out / _LISTING).write_text("".join(f"{name}\n" for name in sorted(files)), "utf-8", newline="\n")
    except OSError as error:
        what = f"the site cannot be written: {error.strerror or error}"
        raise UsageError(Problem(where=str(out), what=what, hint="choose another --out")) from error
    return out / "index.html"


def _old_files(out: Path) -> set[str]:
    if not out.exists():
        return set()
    if (out / _LISTING).is_file():
        return set((out / _LISTING).read_text("utf-8").splitlines())
    if any(out.iterdir()):
        what = f"the folder has files but no {_LISTING}: it is no site of this command"
        raise UsageError(Problem(where=str(out), what=what, hint="choose another --out"))
    return set()


def _files(gathered: Gathered, title: str, today: dt.date) -> Iterator[tuple[str, bytes]]:
    maker = Pages()
    rows = rows_of(gathered.entries)
    labels = sorted({entry.statement.profile.label for entry in gathered.entries})
    scripts = ("report.js", "tables.js", "publication.js")
    shared: dict[str, Any] = {"title": title, "root": "", "gathered": gathered}
    page = maker.make("publication_start.html", scripts=scripts, rows=rows, labels=labels, **shared)
    yield "index.html", page.encode()
    columns = [(row, operators_of(row)) for row in rows]
    names = sorted({name for _, operators in columns for name in operators})
    page = maker.make(
        "publication_operators.html", scripts=scripts[:2], columns=columns, names=names, **shared
    )
    yield "operators.html", page.encode()
    if gathered.refused:
        yield "refused.html", maker.make("publication_refused.html", **shared).encode()
    yield "data.json", inert_json(data_of(gathered))
    yield "feed.xml", atom(gathered, title).encode()
    for entry in gathered.entries:
        yield from _submission(entry, gathered, maker, title, today)


def _submission(
    entry: Entry, gathered: Gathered, maker: Pages, title: str, today: dt.date
) -> Iterator[tuple[str, bytes]]:
    waivers = entry.statement.waivers
    page = maker.make(
        "publication_submission.html",
        title=title,
        root="../../",
        gathered=gathered,
        entry=entry,
        changes=changes_since(entry, gathered.entries),
        rows=[
            (one, reason, [waiver for waiver in waivers if covers(waiver, one.label)])
            for one, reason in entry.not_passed
        ],
        today=today,
    )
    home = f"s/{entry.id}"
    yield f"{home}/index.html", page.encode()
    yield f"{home}/badge.svg", badge_svg(entry).encode()
    yield f"{home}/badge.json", inert_json(shields(entry))
    yield f"{home}/submission.zip", _packed(entry)
    for name, content in sorted(entry.files.items()):
        yield f"{home}/files/{name}", content


def _packed(entry: Entry) -> bytes:
    """Return the submission as a zip, the same bytes each time."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in sorted(entry.files.items()):
            info = zipfile.ZipInfo(name)  # of 1980, by default
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3
            info.external_attr = 0o100644 << 16
            archive.writestr(info, content)
    return packed.getvalue()
