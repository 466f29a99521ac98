"""The command `init`."""

from pathlib import Path

from harness.cli.command import Command
from harness.cli.options import Given, Options, Run
from harness.cli.shared_options import plugins


def _declare(options: Options) -> Run:
    tried = plugins(options)
    out = options.value("--out", "FILE", "default: matrix.toml", Path, Path("matrix.toml"))

    def run(given: Given) -> int:
        from harness.cli.init import init

        return init(given[out], plugins=given[tried])

    return run


INIT = Command(
    name="init",
    summary="write a matrix file for the models and providers here",
    aim="begin",
    declare=_declare,
)
