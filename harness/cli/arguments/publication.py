"""Arguments of `publish`."""

import datetime as dt
from pathlib import Path

from harness.cli.arguments.command import Commands, add_command


def add_publication(commands: Commands) -> None:
    """Declare `publish`."""
    publish = add_command(
        commands,
        "publish",
        "write a static site of conformance submissions",
        "publish.publish",
        {
            0: "every submission is published",
            1: "some submission is refused; the site lists it with the reason",
            2: "an argument is wrong, or there is no submission",
        },
    )
    publish.add_argument(
        "submissions", type=Path, metavar="SUBMISSIONS", help="folder of submissions: folders or zips"
    )
    publish.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the site")
    publish.add_argument(
        "--title", default="Execution provider conformance", metavar="TEXT", help="headline of the site"
    )
    publish.add_argument(
        "--day",
        type=dt.date.fromisoformat,
        metavar="YYYY-MM-DD",
        help="day on which waivers count or not; default: today",
    )
    publish.add_argument(
        "--signers", type=Path, metavar="FILE", help="allowed signers, as ssh-keygen reads them; see `verify`"
    )
