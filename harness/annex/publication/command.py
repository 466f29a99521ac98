"""The command `publish`."""

import datetime as dt
from pathlib import Path

from harness.cli.command_type import Command
from harness.cli.options import GivenArguments, Options, RunCommand


def _declare(options: Options) -> RunCommand:
    submissions = options.one("SUBMISSIONS", "folder of submissions: folders or zips", Path)
    out = options.required("--out", "DIR", "folder of the site", Path)
    text = "headline of the site"
    title = options.value("--title", "TEXT", text, str, "Execution provider conformance")
    text = "day on which waivers count or not; default: today"
    day = options.value("--day", "YYYY-MM-DD", text, dt.date.fromisoformat)
    signers = options.path("--signers", "FILE", "allowed signers, as ssh-keygen reads them; see `verify`")

    def run(given: GivenArguments) -> int:
        from harness.annex.publication.command_publish import publish

        return publish(
            given[submissions], given[out], title=given[title], day=given[day], signers=given[signers]
        )

    return run


PUBLISH = Command(
    name="publish",
    summary="write a static site of conformance submissions",
    aim="publish",
    declare=_declare,
    exit_codes={
        0: "every submission is published",
        1: "some submission is refused; the site lists it with the reason",
        2: "an argument is wrong, or there is no submission",
    },
)
