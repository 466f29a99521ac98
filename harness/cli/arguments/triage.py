"""Arguments of `triage` and `replay`."""

from harness.cli.arguments import declare
from harness.cli.arguments.values import count, duration_s


def add_triage(commands: declare.Commands) -> None:
    """Declare `triage` and `replay`."""
    triage = declare.command(
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
    declare.path(triage, "run", "RUN", "run folder")
    declare.value(triage, "cells", "CELL", "ids of cells; default: one of each group of failures", nargs="*")
    declare.path(
        triage,
        "--matrix",
        "FILE",
        "matrix file with the targets to start; default: the matrix of your own run",
    )
    declare.value(triage, "--jobs", "N", "targets at once; default: processors", type=count)
    declare.value(
        triage, "--budget", "TIME", "such as 10m; default: no limit", type=duration_s, dest="budget_s"
    )
    declare.path(triage, "--out", "DIR", "default: the folder triage of the run")
    declare.path(
        triage, "--write-expect", "FILE", "write [[expect]] entries for unexpected cells that are explained"
    )
    declare.flag(triage, "--resume", "continue an interrupted triage")
    declare.flag(triage, "--keep-weights", "keep initializers; default: random numbers of their range")

    replay = declare.command(
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
    declare.path(replay, "bundle", "BUNDLE", "folder or .zip")
    where = replay.add_mutually_exclusive_group()
    declare.value(
        where, "--target", "MATRIX:NAME", "a target of a matrix file; default: the bundle's own target"
    )
    declare.value(where, "--provider", "PROVIDER", "exact name, such as QNNExecutionProvider", default="")
    declare.provider_settings(replay)
    declare.json(replay, declare.ONE_OBJECT)
