"""The command `doctor`."""

from pathlib import Path

from harness.cli.command_type import Command
from harness.cli.options import GivenArguments, Options, RunCommand
from harness.cli.shared_options import ONE_ARRAY, as_json, plugins
from harness.core.collector import without_collector


def _declare(options: Options) -> RunCommand:
    text = "matrix file whose targets to start and try as well"
    matrix = options.one_or("MATRIX", text, Path, None)
    tried = plugins(options)
    json = as_json(options, f"{ONE_ARRAY}, with versions and devices")

    def run(given: GivenArguments) -> int:
        from harness.engine.processes.prestarted import prestart_here

        prestart_here()  # before the rest of the package is imported
        with without_collector():
            from harness.cli.doctor import doctor

        return doctor(given[matrix], plugins=given[tried], as_json=given[json])

    return run


DOCTOR = Command(
    name="doctor",
    summary="show which providers work here, why others do not, what to do",
    aim="begin",
    declare=_declare,
)
