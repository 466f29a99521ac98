"""`ep-harness publish`: a static site of submissions."""

import datetime as dt
from pathlib import Path

from harness.annex.publication.gather import gather
from harness.annex.publication.publisher_site import write_publication
from harness.cli.output import notify, print_lines
from harness.core.text.errors import EXIT_OK
from harness.core.text.errors import EXIT_UNEXPECTED as EXIT_REFUSED


def publish(submissions: Path, out: Path, *, title: str, day: dt.date | None, signers: Path | None) -> int:
    """Write the site; refused submissions are reported, listed, and not published."""
    today = day or dt.datetime.now(dt.UTC).date()
    # Only the day counts, so that two sites of one day are the same.
    now = dt.datetime.combine(today, dt.time.max, dt.UTC)
    gathered = gather(submissions, signers=signers, now=now)
    index = write_publication(gathered, out, title=title, today=today)
    for one in gathered.refused:
        notify(f"refused: {one.source}: {one.reason}")
    print_lines([str(index)])
    return EXIT_REFUSED if gathered.refused else EXIT_OK
