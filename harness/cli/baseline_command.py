"""The command `baseline`."""

from pathlib import Path

from harness.cli.command_type import Command, CommandGroup
from harness.cli.options import GivenArguments, Options, RunCommand
from harness.cli.shared_options import RUN, target_globs


def _declare_write(options: Options) -> RunCommand:
    run_folder = options.one("RUN", RUN, Path)
    text = "in a folder the file gets a name by its class; default: baselines"
    out = options.path("--out", "FILE-OR-FOLDER", text)
    target = target_globs(options)

    def run(given: GivenArguments) -> int:
        from harness.cli.baseline import write

        return write(given[run_folder], out=given[out], target=given[target])

    return run


BASELINE = CommandGroup(
    name="baseline",
    summary="write which failures a kind of machine is known to have",
    aim="compare",
    commands=(
        Command(
            name="write",
            summary="write the failures of a run and its kind of machine to a file",
            declare=_declare_write,
            exit_codes={
                0: "it is written",
                2: "an argument or the run is wrong",
                3: "it is written, but the run is incomplete",
            },
        ),
    ),
)
