"""Arguments of `triage` and `replay`."""

from harness.cli.arguments.command import (
    ONE_OBJECT,
    Commands,
    add_command,
    add_flag,
    add_json,
    add_path,
    add_provider_settings,
    add_value,
)
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
    add_path(triage, "run", "RUN", "run folder")
    add_value(triage, "cells", "CELL", "ids of cells; default: one of each group of failures", nargs="*")
    add_value(triage, "--jobs", "N", "targets at once; default: processors", type=count)
    add_value(triage, "--budget", "TIME", "such as 10m; default: no limit", type=duration_s, dest="budget_s")
    add_path(triage, "--out", "DIR", "default: the folder triage of the run")
    add_path(
        triage, "--write-expect", "FILE", "write [[expect]] entries for unexpected cells that are explained"
    )
    add_flag(triage, "--resume", "continue an interrupted triage")
    add_flag(triage, "--keep-weights", "keep initializers; default: random numbers of their range")

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
    add_path(replay, "bundle", "BUNDLE", "folder or .zip")
    where = replay.add_mutually_exclusive_group()
    add_value(where, "--target", "MATRIX:NAME", "a target of a matrix file; default: the bundle's own target")
    add_value(where, "--provider", "PROVIDER", "exact name, such as QNNExecutionProvider")
    add_provider_settings(replay)
    add_json(replay, ONE_OBJECT)
