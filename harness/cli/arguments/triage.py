"""Arguments of `triage` and `replay`."""

from pathlib import Path

from harness.cli.arguments.command import ONE_OBJECT, Commands, add_command, add_json, add_provider_settings
from harness.cli.arguments.values import count, duration_s


def add_triage(commands: Commands) -> None:
    """Declare `triage` and `replay`."""
    triage = add_command(
        commands,
        "triage",
        "explain failing cells: guilty node, minimal model, sentence",
        "triage.triage",
        {
            0: "each failure is explained",
            2: "an argument is wrong",
            3: "a failure is not explained: it did not appear again, or time ran out",
        },
    )
    triage.add_argument("run", type=Path, metavar="RUN", help="run folder")
    triage.add_argument(
        "cells", nargs="*", metavar="CELL", help="ids of cells; default: one of each group of failures"
    )
    triage.add_argument("--jobs", type=count, metavar="N", help="targets at once; default: processors")
    triage.add_argument(
        "--budget", type=duration_s, dest="budget_s", metavar="TIME", help="such as 10m; default: no limit"
    )
    triage.add_argument("--out", type=Path, metavar="DIR", help="default: the folder triage of the run")
    triage.add_argument(
        "--write-expect",
        type=Path,
        metavar="FILE",
        help="write [[expect]] entries for unexpected cells that are explained",
    )
    triage.add_argument("--resume", action="store_true", help="continue an interrupted triage")
    triage.add_argument(
        "--keep-weights",
        action="store_true",
        help="keep initializers; default: random numbers of their range",
    )

    replay = add_command(
        commands,
        "replay",
        "judge the fault of a bundle here, without running its script",
        "replay.replay_bundle",
        {
            0: "the fault is gone",
            1: "the fault is there",
            2: "the bundle or an argument is wrong",
            3: "it cannot be judged here, or it fails in another way",
        },
    )
    replay.add_argument("bundle", type=Path, metavar="BUNDLE", help="folder or .zip")
    where = replay.add_mutually_exclusive_group()
    where.add_argument(
        "--target", metavar="MATRIX:NAME", help="a target of a matrix file; default: the bundle's own target"
    )
    where.add_argument("--provider", metavar="PROVIDER", help="exact name, such as QNNExecutionProvider")
    add_provider_settings(replay)
    add_json(replay, ONE_OBJECT)
