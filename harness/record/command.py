"""The command `record`."""

from harness.cli.argument_values import count
from harness.cli.command_type import Command
from harness.cli.options import GivenArguments, Options, RunCommand


def _declare(options: Options) -> RunCommand:
    command = options.many("COMMAND", "the application and its arguments, after --", str)
    calls = options.value("--calls", "N", "different calls to save for each model; default: 3", count, 3)
    out = options.path("--out", "DIR", "folder for the data; default: beside each model")
    text = "data to save for each model, at most; default: 256"
    max_mib = options.value("--max-mib", "MIB", text, count, 256)

    def run(given: GivenArguments) -> int:
        from harness.record.command_record import record

        return record(given[command], given[calls], given[out], given[max_mib])

    return run


RECORD = Command(
    name="record",
    summary="save what an application feeds its models, as their test data",
    aim="share",
    declare=_declare,
    exit_codes={2: "an argument is wrong; any other code is the application's"},
)
