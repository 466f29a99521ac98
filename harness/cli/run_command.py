"""The command `run`."""

from pathlib import Path

from harness.cli.argument_values import duration_s
from harness.cli.command_type import Command
from harness.cli.options import GivenArguments, Options, RunCommand
from harness.cli.shared_options import MATRIX, SelectionOptions, baselines, native_stack, with_report
from harness.core.collector import without_collector


def _declare(options: Options) -> RunCommand:
    matrix = options.one("MATRIX", MATRIX, Path)
    text = "after the last cell, explain failing ones for 10 minutes at most"
    triage_budget_s = options.constant("--triage", text, 600.0, None)
    text = "the same with another limit, such as 30m"
    options.value("--triage-budget", "TIME", text, duration_s, into=triage_budget_s)
    folder = options.either()
    out = folder.path("--out", "DIR", "run folder; default: runs/<matrix>-<time>")
    resume = folder.path("--resume", "DIR", "continue an interrupted run")
    selection = SelectionOptions(options)
    known = baselines(options)
    report = with_report(options)
    native = native_stack(options)

    def run(given: GivenArguments) -> int:
        from harness.engine.processes.prestarted import prestart

        prestart(given[matrix])  # before the rest of the package is imported
        with without_collector():
            from harness.cli.run import run as run_matrix

        return run_matrix(
            given[matrix],
            out=given[out],
            resume=given[resume],
            with_report=given[report],
            triage_budget_s=given[triage_budget_s],
            native_stack=given[native],
            **selection.selected(given, known),
        )

    return run


RUN = Command(
    name="run",
    summary="run a matrix: live progress, records, report",
    aim="begin",
    declare=_declare,
    exit_codes={
        0: "every verdict is as expected",
        1: "some verdicts are not as expected",
        2: "an argument or the matrix is wrong",
        3: "a required target is unavailable, cells are missing, or none was judged",
    },
)
