"""The command `ops`."""

from harness.cli.command_type import Command
from harness.cli.options import GivenArguments, Options, RunCommand
from harness.cli.shared_options import ONE_ARRAY, as_json


def _declare(options: Options) -> RunCommand:
    text = "operator, such as Gelu or com.microsoft.Gelu; default: all, without meanings and sources"
    name = options.one_or("NAME", text, str, "")
    json = as_json(options, ONE_ARRAY)

    def run(given: GivenArguments) -> int:
        from harness.cli.ops import ops

        return ops(given[name], as_json=given[json])

    return run


OPS = Command(
    name="ops", summary="show what the harness knows about an operator", aim="maintain", declare=_declare
)
