"""The command `list`."""

from pathlib import Path

from harness.cli.command_type import Command
from harness.cli.options import GivenArguments, Options, RunCommand
from harness.cli.shared_options import MATRIX, ONE_ARRAY, SelectionOptions, as_json


def _declare(options: Options) -> RunCommand:
    matrix = options.one_or("MATRIX", MATRIX, Path, None)
    suites = options.flag("--suites", "show the built-in suites instead")
    json = as_json(options, ONE_ARRAY)
    count = options.flag("--count", "show only the number of cells of each target")
    selection = SelectionOptions(options)

    def run(given: GivenArguments) -> int:
        from harness.cli.listing import listing

        return listing(
            given[matrix],
            suites=given[suites],
            as_json=given[json],
            count=given[count],
            **selection.selected(given),
        )

    return run


LIST = Command(
    name="list",
    summary="show the plan of a matrix, or the built-in suites",
    aim="begin",
    declare=_declare,
)
