"""The commands of `runtime`."""

from harness.cli.command_type import Command, CommandGroup
from harness.cli.options import GivenArguments, Options, RunCommand
from harness.cli.shared_options import ONE_ARRAY, age_days, as_json


def _declare_list(options: Options) -> RunCommand:
    json = as_json(options, ONE_ARRAY)

    def run(given: GivenArguments) -> int:
        from harness.cli.runtime import list_runtimes

        return list_runtimes(as_json=given[json])

    return run


def _declare_build(options: Options) -> RunCommand:
    text = (
        "matrix files (*.toml): build the runtimes of their targets; requirements of packages: build one "
        "runtime of all of them"
    )
    what = options.many("MATRIX|PACKAGE", text, str)
    python = options.value("--python", "VERSION", "Python for the requirements, such as 3.11", str)

    def run(given: GivenArguments) -> int:
        from harness.cli.runtime import build_runtimes

        return build_runtimes(given[what], python=given[python])

    return run


def _declare_prune(options: Options) -> RunCommand:
    older_than_days = age_days(options)

    def run(given: GivenArguments) -> int:
        from harness.cli.runtime import prune_runtimes

        return prune_runtimes(older_than_days=given[older_than_days])

    return run


RUNTIME = CommandGroup(
    name="runtime",
    summary="list, build or prune environments made of packages",
    aim="maintain",
    commands=(
        Command(name="list", summary="show the environments in the cache", declare=_declare_list),
        Command(
            name="build",
            summary="build environments ahead, such as for an offline machine",
            declare=_declare_build,
        ),
        Command(name="prune", summary="remove environments unused for 30 days", declare=_declare_prune),
    ),
)
