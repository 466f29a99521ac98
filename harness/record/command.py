"""The command `record`."""

from harness.cli.command import Command
from harness.cli.options import Given, Options, Run
from harness.cli.values import count


def _declare(options: Options) -> Run:
    command = options.many("COMMAND", "the application and its arguments, after --", str)
    calls = options.value("--calls", "N", "different calls to save for each model; default: 3", count, 3)
    out = options.path("--out", "DIR", "folder for the data; default: beside each model")
    text = "data to save for each model, at most; default: 256"
    max_mib = options.value("--max-mib", "MIB", text, count, 256)

    def run(given: Given) -> int:
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
