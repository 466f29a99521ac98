"""The files of a site, and from what each is made: a file of the same state is not made again."""

import hashlib
from collections.abc import Callable
from typing import NamedTuple

from harness.annex.conformance.harness_identity import own_sources
from harness.annex.publication.entry import AcceptedSubmission
from harness.annex.publication.lines import Line
from harness.data_files import data_root


class SiteFile(NamedTuple):
    """A file of a site.

    Attributes:
        name: Its path within the site.
        state: Digest of all that it is made from; empty if it is made each time.
        make: Returns its content.
    """

    name: str
    state: str
    make: Callable[[], bytes]


class SiteStates:
    """Gives the states of files; ``common`` are values that decide about every page, besides the harness."""

    def __init__(self, *common: object) -> None:
        templates = sorted((data_root() / "report_templates").glob("publication*"))
        templates += [
            data_root() / "report_templates" / name for name in ("page.html", "report.css", "report.js")
        ]
        contents = [hashlib.sha256(path.read_bytes()).hexdigest() for path in templates]
        self._common = hashlib.sha256(repr((own_sources(), contents, common)).encode()).hexdigest()

    def of(self, *parts: object) -> str:
        """Return the state of a file that is made from these values, which their ``repr`` tells apart."""
        return hashlib.sha256(repr((self._common, parts)).encode()).hexdigest()[:16]

    def of_entry(self, entry: AcceptedSubmission) -> str:
        """Return the state of a submission: its files, and what is told about it."""
        return self.of(
            entry.id, entry.content, entry.marks, entry.notes, entry.signer, entry.simulated, entry.has_plugin
        )

    def of_line(self, line: Line) -> str:
        """Return the state of a line with all its submissions."""
        entries = [
            (label, [self.of_entry(entry) for entry in line.of_profile(label)]) for label in line.newest
        ]
        return self.of(line.id, entries)
