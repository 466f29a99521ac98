"""`ep-harness slowest RUN`: the cells that took longest."""

from pathlib import Path

from harness.cli.command_type import Command
from harness.cli.options import GivenArguments, Options, RunCommand


def declare(options: Options) -> RunCommand:
    folder = options.one("RUN", "run folder", Path)
    most = options.value("--most", "N", "cells to show; default: 10", int, 10)

    def run(given: GivenArguments) -> int:
        from harness.report.runs.read import read_run

        records = sorted(read_run(given[folder]).records, key=lambda one: -one.took_ms)
        for record in records[: given[most]]:
            print(f"{record.took_ms:8.0f} ms  {record.cell}")
        return 0

    return run


SLOWEST = Command(name="slowest", summary="show the cells that took longest", aim="compare", declare=declare)
