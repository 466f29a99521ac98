"""The commands `report`, `diff` and `gate`."""

from pathlib import Path

from harness.cli.command_type import Command
from harness.cli.options import Argument, GivenArguments, Options, RunCommand
from harness.cli.shared_options import ONE_OBJECT, RUN, as_json, store_folder


def _declare_report(options: Options) -> RunCommand:
    runs = options.many("RUN", RUN, Path)
    out = options.required("--out", "DIR", "folder of the report", Path)
    names = "html (default), markdown, csv, json, junit, ctrf, sarif, openmetrics, badge, wpt"
    text = f"{names}; separate several with commas"
    formats = options.value("--format", "F,F", text, str, "html")
    templates = options.path("--templates", "DIR", "HTML templates that replace shipped ones")
    baseline = options.path("--baseline", "RUN", "show changes since this run (HTML)")
    history = options.path("--history", "FILE", "show since when faults are there (HTML)")
    text = "results of another tool on the page Compare (HTML): ExecuTorch's CSV, or wptreport.json"
    beside = options.values("--beside", "FILE", text, Path)
    over_time = options.flag(
        "--over-time",
        "RUN is a folder of successive runs: the newest in full, and the trends of all; default: if "
        "there are more than 16 runs of one matrix in it",
    )
    store = store_folder(options)

    def run(given: GivenArguments) -> int:
        from harness.cli.results import report

        return report(
            given[runs],
            out=given[out],
            formats=given[formats],
            templates=given[templates],
            baseline=given[baseline],
            history=given[history],
            beside=given[beside],
            over_time=given[over_time],
            store=given[store],
        )

    return run


class _TwoRuns:
    """The runs that are compared, and those before them."""

    def __init__(self, options: Options) -> None:
        self.old = options.one("OLD", RUN, Path)
        self.new = options.one("NEW", "the run to compare with it; same form", Path)
        text = "runs before OLD, same form: they show how far latencies differ from night to night"
        self.earlier = options.values("--earlier", "RUN", text, Path)


def _declare_diff(options: Options) -> RunCommand:
    runs = _TwoRuns(options)
    how = options.either()
    style: Argument[str] = how.choice("--format", ("text", "markdown", "github"), "default: text", "text")
    json = as_json(how, ONE_OBJECT)

    def run(given: GivenArguments) -> int:
        from harness.cli.results import diff

        return diff(
            given[runs.old],
            given[runs.new],
            earlier=given[runs.earlier],
            style=given[style],
            as_json=given[json],
        )

    return run


def _declare_gate(options: Options) -> RunCommand:
    runs = _TwoRuns(options)
    text = "what `compare-speed --out` wrote: it decides which of its cells are slower"
    speed = options.path("--speed", "FILE", text)
    policy = options.path("--policy", "FILE", "TOML; default: nothing may get worse")
    text = "least share of a task's answers that agree, such as 0.98, in every cell that has some"
    min_agreement = options.value("--min-agreement", "SHARE", text, float)
    how = options.either()
    github = how.flag("--github", "print annotations, as on GitHub's runners by default")
    json = as_json(how, ONE_OBJECT)

    def run(given: GivenArguments) -> int:
        from harness.cli.results import gate

        return gate(
            given[runs.old],
            given[runs.new],
            earlier=given[runs.earlier],
            speed=given[speed],
            policy=given[policy],
            min_agreement=given[min_agreement],
            github=given[github],
            as_json=given[json],
        )

    return run


REPORT = Command(
    name="report",
    summary="write a report of finished runs: HTML, Markdown, CSV, ...",
    aim="begin",
    declare=_declare_report,
)
DIFF = Command(
    name="diff",
    summary="compare two runs cell by cell, or two traces node by node",
    aim="begin",
    declare=_declare_diff,
)
GATE = Command(
    name="gate",
    summary="compare two runs for CI: exit code 1 if a policy is violated",
    aim="compare",
    declare=_declare_gate,
    exit_codes={
        0: "the new run may pass",
        1: "a limit of the policy is exceeded",
        2: "an argument or the policy is wrong",
    },
)
