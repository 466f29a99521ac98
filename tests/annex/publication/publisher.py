"""A publisher's folder of honest submissions, for tests of its site."""

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.annex.conformance.profiles.profile import Profile
from harness.annex.conformance.submission import Statement, Waiver
from harness.annex.publication.gather import Gathered, gather
from harness.annex.publication.publisher_site import write_publication
from harness.core.records.record import Record
from tests.annex.conformance.small_profiles import operators_profile, tiny_profile, write_profile
from tests.annex.conformance.submissions import FINGERPRINT, NOW, Draft, changed, write_folder

DAY = dt.date(2026, 11, 25)


class Publisher:
    """A publisher's folder of submissions, each as ``conform`` makes it, and the site of it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.submissions = home / "submissions"
        self.profiles = home / "profiles"
        for profile in (tiny_profile(), operators_profile(), operators_profile("same")):
            write_profile(self.profiles, profile)
        self._made = 0

    def submit(
        self,
        folder: str,
        edits: dict[int, Callable[[Record], Record]] | None = None,
        *,
        profile: Profile | None = None,
        claims: tuple[str, ...] = (),
        waivers: tuple[Waiver, ...] = (),
        **said: Any,
    ) -> Path:
        """Write a submission whose records are right, but for edits by the index of their case.

        ``said`` is of its product, but ``unofficial`` of its harness and ``reproduce`` of its statement.
        """
        self._made += 1
        unofficial, reproduce = said.pop("unofficial", ()), said.pop("reproduce", ("ep-harness", "conform"))
        version = said.setdefault("version", "2.7.0")

        def edit(index: int, record: Record) -> Record:
            # Two runs never take the same times.
            times = {phase: ms + self._made / 64 for phase, ms in record.timings_ms.items()}
            return (edits or {}).get(index, _same)(changed(record, timings_ms=times))

        draft = Draft(edit, profile=profile or operators_profile(), claims=claims, waivers=waivers)
        draft.fingerprint |= {"plugin": {**FINGERPRINT["plugin"], "version": version}}

        def statement(made: Statement) -> Statement:
            harness = changed(made.harness, unofficial=unofficial)
            product = changed(made.product, **said)
            return changed(made, product=product, harness=harness, reproduce=reproduce)

        draft.statement = statement
        return write_folder(draft.files(), self.submissions / folder)

    def gathered(self) -> Gathered:
        """Return what is published of the folder."""
        return gather(self.submissions, now=NOW, profiles=self.profiles)

    def site(self, out: str = "site") -> dict[str, bytes]:
        """Write the site and return its files by name."""
        folder = self.home / out
        write_publication(self.gathered(), folder, title="Table", today=DAY)
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }

    def page(self, folder: str, out: str = "site") -> str:
        """Return the page of a submission."""
        statement = (self.submissions / folder / "statement.json").read_bytes()
        (name,) = (
            name
            for name, content in self.site(out).items()
            if name.endswith("/files/statement.json") and content == statement
        )
        return (self.home / out / name).parents[1].joinpath("index.html").read_text("utf-8")


def _same(record: Record) -> Record:
    return record
