"""The command `trace`."""

from harness.cli.command_type import Command
from harness.cli.options import GivenArguments, Options, RunCommand
from harness.cli.shared_options import ONE_OBJECT, ProviderSettings, as_json


def _declare_trace(options: Options) -> RunCommand:
    what = options.one(
        "MODEL-or-RUN", ".onnx file, or suite/model such as zoo/vit-small-op17; a run folder", str
    )
    cells = options.many("CELL", "of a run: ids of cells", str, least=0)
    text = "MATRIX:NAME, or NAME[AXIS=VALUE,...] of it; or an exact provider; may be repeated"
    targets = options.repeated("--target", "TARGET", text, str)
    settings = ProviderSettings(options)
    matrix = options.path("--matrix", "FILE", "of a run: matrix file with the targets to start")
    inputs = options.path("--inputs", "FILE.npz", "real inputs, an array for each input of the model")
    out = options.path("--out", "DIR", "default: the folder trace of the run; of a model: trace")
    text = "of a converted model: find the fewest nodes to keep in float32, and try them"
    advise = options.flag("--advise", text)
    resume = options.flag("--resume", "continue an interrupted trace; no session is made twice")
    json = as_json(options, f"{ONE_OBJECT} in place of the sentences")

    def run(given: GivenArguments) -> int:
        from harness.annex.trace.command_trace import TraceRequest, trace

        request = TraceRequest(
            what=given[what],
            cells=tuple(given[cells]),
            targets=tuple(given[targets]),
            settings=settings.request(given, ""),
            matrix=given[matrix],
            inputs=given[inputs],
            out=given[out],
            advise=given[advise],
            resume=given[resume],
        )
        return trace(request, as_json=given[json])

    return run


TRACE = Command(
    name="trace",
    summary="show where the accuracy goes: error by depth, made and inherited",
    aim="cause",
    declare=_declare_trace,
    exit_codes={
        0: "no error but rounding at the delivered precision",
        1: "an error that is more: made, from a range, or by nodes together",
        2: "an argument is wrong",
        3: "a target could not be traced, or the error not be located",
    },
)
