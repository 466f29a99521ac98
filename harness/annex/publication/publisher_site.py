"""The publisher's site: its files, a function of only the submissions and the day."""

import datetime as dt
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path

from harness.annex.conformance.profiles.profile_archive import write_archive
from harness.annex.publication.entry import AcceptedSubmission
from harness.annex.publication.formats import (
    atom,
    data_of,
    data_pages,
    devices_data,
    history_csv,
    shields,
)
from harness.annex.publication.gather import Gathered
from harness.annex.publication.pages import SitePages
from harness.annex.publication.site_file import SiteFile
from harness.core.files.reading import MOST_FILE, read_regular
from harness.core.files.writing import write_aside, writing
from harness.core.text.errors import UsageError
from harness.report.formats.badge import badge_svg
from harness.report.words.inert import inert_json

_LISTING = "files.txt"
"""The files of a site, each with its state; files that a later site no longer has are removed."""

_KEPT = re.compile(r"[sldm]/[0-9a-f]{8,16}/index\.html")
"""Pages whose address stays after their subject is withdrawn."""


def write_publication(gathered: Gathered, out: Path, *, title: str, today: dt.date) -> Path:
    """Write the site and return its first page; files of an earlier site are replaced or removed.

    A page of one submission, line or device whose state is as before is not made again.

    ``today`` decides which waivers count.

    Raises:
        UsageError: It cannot be written, or ``out`` has files but no site.
    """
    with writing(out, "the site"):
        old = _old_files(out)
        files: dict[str, str] = {}
        for file in site_files(gathered, SitePages(gathered, title, today), old):
            if not file.state or old.get(file.name) != file.state or not os.path.isfile(f"{out}/{file.name}"):  # noqa: PTH113 - of fifty thousand
                path = out / file.name
                path.parent.mkdir(parents=True, exist_ok=True)
                write_aside(path, file.make())
            files[file.name] = file.state
        for name in old.keys() - files.keys():
            path = out / name
            if path.is_file() and path.resolve().is_relative_to(out.resolve()):
                path.unlink()
        write_aside(out / _LISTING, "".join(f"{name}\t{state}\n" for name, state in sorted(files.items())))
    return out / "index.html"


def _old_files(out: Path) -> dict[str, str]:
    """Return name -> state of the files of an earlier site; a site of before has no states."""
    if not out.exists():
        return {}
    if (out / _LISTING).is_file():
        text = read_regular(out / _LISTING, MOST_FILE).decode("utf-8")
        return {name: state for name, _, state in (line.partition("\t") for line in text.splitlines())}
    if any(out.iterdir()):
        what = f"the folder has files but no {_LISTING}: it is no site of this command"
        raise UsageError.at(out, what, "choose another --out")
    return {}


def site_files(gathered: Gathered, pages: SitePages, old: Iterable[str] = ()) -> Iterator[SiteFile]:
    """Yield every file of a site; ``old`` are the names of an earlier one."""
    made = set()
    for page in pages.all():
        yield page
        made.add(page.name)
    # A published address must lead somewhere for ever.
    yield from pages.withdrawn(sorted(name for name in set(old) - made if _KEPT.fullmatch(name)))
    yield from _of_all(gathered, pages)
    for device in pages.devices:
        state = pages.state_of(device)
        yield _json(f"d/{device.id}/data.json", state, partial(data_of, [one for one, *_ in device.history]))
        yield SiteFile(f"d/{device.id}/history.csv", state, partial(history_csv, device))
    for entry in gathered.entries:
        yield from _of_submission(entry, gathered, pages.states.of_entry(entry))
    for line in pages.lines:
        for label, entry in line.newest.items():
            yield from _badges(f"l/{line.id}/{label}", entry, pages.states.of_entry(entry))


def _of_all(gathered: Gathered, pages: SitePages) -> Iterator[SiteFile]:
    for name, data in data_pages(gathered.entries, gathered.refused):
        state = pages.states.of([pages.states.of_entry(one) for one in data.entries], data.next, data.refused)
        yield _json(name, state, data.contents)
    yield _json("devices.json", "", lambda: devices_data(pages.devices))
    yield SiteFile("feed.xml", "", lambda: atom(gathered, pages.title).encode())


def _of_submission(entry: AcceptedSubmission, gathered: Gathered, state: str) -> Iterator[SiteFile]:
    home = f"s/{entry.id}"
    files = cache(lambda: gathered.files(entry))
    yield from _badges(f"{home}/badge", entry, state)
    yield SiteFile(f"{home}/submission.zip", state, lambda: write_archive(files()))
    for name in entry.names:
        yield SiteFile(f"{home}/files/{name}", state, partial(_part, files, name))


def _part(files: Callable[[], Mapping[str, bytes]], name: str) -> bytes:
    return files()[name]


def _badges(stem: str, entry: AcceptedSubmission, state: str) -> Iterator[SiteFile]:
    yield SiteFile(f"{stem}.svg", state, lambda: badge_svg(shields(entry)).encode())
    yield _json(f"{stem}.json", state, lambda: shields(entry))


def _json(name: str, state: str, make: Callable[[], object]) -> SiteFile:
    return SiteFile(name, state, lambda: inert_json(make()))
