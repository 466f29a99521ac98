"""The command `operators`."""

from pathlib import Path

from harness.cli.command_type import Command
from harness.cli.options import GivenArguments, Options, RunCommand
from harness.cli.shared_options import ONE_OBJECT, RUN, as_json


def _declare(options: Options) -> RunCommand:
    run_folder = options.one("RUN", RUN, Path)
    text = "TOML with [[operators]], or CSV: operator, opset, types, ranks, notes"
    listed = options.one("LIST", text, Path)
    target = options.value("--target", "NAME", "default: the only target besides the CPU provider's", str)
    json = as_json(options, ONE_OBJECT)

    def run(given: GivenArguments) -> int:
        from harness.cli.operators import operators

        return operators(given[run_folder], given[listed], target=given[target], as_json=given[json])

    return run


OPERATORS = Command(
    name="operators",
    summary="hold a list of operators against what a run shows of a provider",
    aim="publish",
    declare=_declare,
    exit_codes={
        0: "each entry that was tried is right",
        1: "an entry is wrong, or its operator was left to the CPU provider",
        2: "an argument is wrong",
        3: "no entry was tried",
    },
)
