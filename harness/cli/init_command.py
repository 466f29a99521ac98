"""The command `init`."""

from pathlib import Path

from harness.cli.command_type import Command
from harness.cli.options import GivenArguments, Options, RunCommand
from harness.cli.shared_options import plugins


def _declare(options: Options) -> RunCommand:
    tried = plugins(options)
    out = options.value("--out", "FILE", "default: matrix.toml", Path, Path("matrix.toml"))

    def run(given: GivenArguments) -> int:
        from harness.cli.init import init

        return init(given[out], plugins=given[tried])

    return run


INIT = Command(
    name="init",
    summary="write a matrix file for the models and providers here",
    aim="begin",
    declare=_declare,
)
