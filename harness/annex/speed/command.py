"""The command `compare-speed`."""

from pathlib import Path

from harness.cli.argument_values import duration_s
from harness.cli.command_type import Command
from harness.cli.options import GivenArguments, Options, RunCommand
from harness.cli.shared_options import MATRIX, ONE_OBJECT, as_json, model_globs, target_globs

_BUILD = (
    "a Python or its environment, packages, or a table of a matrix's `runtime`, with `plugin` if it is one"
)


def _declare(options: Options) -> RunCommand:
    matrix = options.one("MATRIX", MATRIX, Path)
    base = options.required("--base", "RUNTIME", f"the old build: {_BUILD}", str)
    new = options.required("--new", "RUNTIME", "the build that may be slower; same form", str)
    target, model = target_globs(options), model_globs(options)
    text = "time after which no process starts, such as 1h; default: 10m"
    limit_s = options.value("--for", "TIME", text, duration_s, 600.0)
    seed = options.value("--seed", "N", "of the order of the builds; default: drawn, and printed", int)
    out = options.path("--out", "FILE", "also write the result as JSON, for `gate --speed`")
    json = as_json(options, ONE_OBJECT)

    def run(given: GivenArguments) -> int:
        from harness.annex.speed.command_compare_speed import SpeedRequest, compare_speed

        request = SpeedRequest(
            matrix=given[matrix],
            base=given[base],
            new=given[new],
            targets=given[target],
            models=given[model],
            limit_s=given[limit_s],
            seed=given[seed],
        )
        return compare_speed(request, out=given[out], as_json=given[json])

    return run


COMPARE_SPEED = Command(
    name="compare-speed",
    summary="run two builds in turns: is the new one slower?",
    aim="compare",
    declare=_declare,
    exit_codes={
        0: "no cell is slower",
        1: "a cell is slower",
        2: "an argument or the matrix is wrong",
        3: "the machine is too noisy for a verdict on a cell, or a cell cannot be timed",
    },
)
