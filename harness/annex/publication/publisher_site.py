"""The publisher's site: its files, a function of only the submissions and the day."""

import datetime as dt
import re
from collections.abc import Iterator
from pathlib import Path

from harness.annex.conformance.profiles.profile_archive import write_archive
from harness.annex.publication.entry import AcceptedSubmission
from harness.annex.publication.formats import atom, badge_svg, data_of, devices_data, history_csv, shields
from harness.annex.publication.gather import Gathered
from harness.annex.publication.pages import SitePages
from harness.core.errors import UsageError
from harness.core.reading import MOST_FILE, read_regular
from harness.core.writing import write_aside, writing
from harness.report.inert import inert_json

_LISTING = "files.txt"
"""The files of a site; files that a later site no longer has are removed."""

_KEPT = re.compile(r"[sldm]/[0-9a-f]{8,16}/index\.html")
"""Pages whose address stays after their subject is withdrawn."""


def write_publication(gathered: Gathered, out: Path, *, title: str, today: dt.date) -> Path:
    """Write the site and return its first page; files of an earlier site are replaced or removed.

    ``today`` decides which waivers count.

    Raises:
        UsageError: It cannot be written, or ``out`` has files but no site.
    """
    with writing(out, "the site"):
        old = _old_files(out)
        files = set()
        for name, content in _files(gathered, SitePages(gathered, title, today), old):
            path = out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_aside(path, content)
            files.add(name)
        for name in old - files:
            path = out / name
            if path.is_file() and path.resolve().is_relative_to(out.resolve()):
                path.unlink()
        write_aside(out / _LISTING, "".join(f"{name}\n" for name in sorted(files)))
    return out / "index.html"


def _old_files(out: Path) -> set[str]:
    if not out.exists():
        return set()
    if (out / _LISTING).is_file():
        return set(read_regular(out / _LISTING, MOST_FILE).decode("utf-8").splitlines())
    if any(out.iterdir()):
        what = f"the folder has files but no {_LISTING}: it is no site of this command"
        raise UsageError.at(out, what, "choose another --out")
    return set()


def _files(gathered: Gathered, pages: SitePages, old: set[str]) -> Iterator[tuple[str, bytes]]:
    made = set()
    for name, text in pages.all():
        yield name, text.encode()
        made.add(name)
    # A published address must lead somewhere for ever.
    gone = sorted(name for name in old - made if _KEPT.fullmatch(name))
    for name, text in pages.withdrawn(gone):
        yield name, text.encode()
    yield "data.json", inert_json(data_of(gathered.entries, gathered.refused))
    yield "devices.json", inert_json(devices_data(pages.devices))
    for device in pages.devices:
        yield f"d/{device.id}/data.json", inert_json(data_of(entry for entry, *_ in device.history))
        yield f"d/{device.id}/history.csv", history_csv(device)
    yield "feed.xml", atom(gathered, pages.title).encode()
    for entry in gathered.entries:
        yield from _of_submission(entry)
    for line in pages.lines:
        for label, entry in line.newest.items():
            yield from _badges(f"l/{line.id}/{label}", entry)


def _of_submission(entry: AcceptedSubmission) -> Iterator[tuple[str, bytes]]:
    home = f"s/{entry.id}"
    yield from _badges(f"{home}/badge", entry)
    yield f"{home}/submission.zip", write_archive(entry.files)
    for name, content in sorted(entry.files.items()):
        yield f"{home}/files/{name}", content


def _badges(stem: str, entry: AcceptedSubmission) -> Iterator[tuple[str, bytes]]:
    yield f"{stem}.svg", badge_svg(entry).encode()
    yield f"{stem}.json", inert_json(shields(entry))
