"""The command `judge`."""

from pathlib import Path

from harness.cli.command_type import Command
from harness.cli.options import GivenArguments, Options, RunCommand


def _declare(options: Options) -> RunCommand:
    run_folder = options.one("RUN", "run folder; it is not changed", Path)
    text = "file of [[tolerance]] entries, or a shipped one: default, polygraphy"
    policy = options.required("--policy", "FILE", text, str)
    out = options.path("--out", "DIR", "write the judged run into a new folder")

    def run(given: GivenArguments) -> int:
        from harness.cli.judge import judge

        return judge(given[run_folder], given[policy], given[out])

    return run


JUDGE = Command(
    name="judge",
    summary="judge a finished run again, with other tolerances",
    aim="compare",
    declare=_declare,
)
