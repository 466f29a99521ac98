"""The commands `triage` and `replay`."""

from pathlib import Path

from harness.cli.argument_values import count, duration_s
from harness.cli.command_type import Command
from harness.cli.options import GivenArguments, Options, RunCommand
from harness.cli.shared_options import ONE_OBJECT, ProviderSettings, as_json


def _declare_triage(options: Options) -> RunCommand:
    run_folder = options.one("RUN", "run folder", Path)
    cells = options.many("CELL", "ids of cells; default: one of each group of failures", str, least=0)
    text = "matrix file with the targets to start; default: that of a run of yours"
    matrix = options.path("--matrix", "FILE", text)
    jobs = options.value("--jobs", "N", "targets at once; default: processors", count)
    budget_s = options.value("--budget", "TIME", "such as 10m; default: no limit", duration_s)
    out = options.path("--out", "DIR", "default: the folder triage of the run")
    text = "write [[expect]] entries for unexpected cells that are explained"
    write_expect = options.path("--write-expect", "FILE", text)
    resume = options.flag("--resume", "continue an interrupted triage")
    keep_weights = options.flag("--keep-weights", "keep initializers; default: random numbers of their range")

    def run(given: GivenArguments) -> int:
        from harness.annex.triage.command_triage import triage

        return triage(
            given[run_folder],
            matrix=given[matrix],
            out=given[out],
            resume=given[resume],
            write_expect=given[write_expect],
            cells=given[cells],
            jobs=given[jobs],
            budget_s=given[budget_s],
            keep_weights=given[keep_weights],
        )

    return run


def _declare_replay(options: Options) -> RunCommand:
    bundle = options.one("BUNDLE", "folder or .zip", Path)
    where = options.either()
    text = "a target of a matrix file; default: the bundle's own target"
    target = where.value("--target", "MATRIX:NAME", text, str)
    text = "exact name, such as QNNExecutionProvider"
    provider = where.value("--provider", "PROVIDER", text, str, "")
    settings = ProviderSettings(options)
    json = as_json(options, ONE_OBJECT)

    def run(given: GivenArguments) -> int:
        from harness.annex.triage.command_replay import replay_bundle

        request = settings.request(given, given[provider])
        return replay_bundle(given[bundle], request, target=given[target], as_json=given[json])

    return run


TRIAGE = Command(
    name="triage",
    summary="explain failing cells: guilty node, minimal model, sentence",
    aim="begin",
    declare=_declare_triage,
    exit_codes={
        0: "each failure is explained",
        2: "an argument is wrong",
        3: "a failure is not explained: it did not appear again, or time ran out",
    },
)
REPLAY = Command(
    name="replay",
    summary="judge the fault of a bundle here, without running its script",
    aim="cause",
    declare=_declare_replay,
    exit_codes={
        0: "the fault is gone",
        1: "the fault is there",
        2: "the bundle or an argument is wrong",
        3: "it cannot be judged here, or it fails in another way",
    },
)
