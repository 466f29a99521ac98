"""The commands of `golden`."""

from pathlib import Path

from harness.cli.command_type import Command, CommandGroup
from harness.cli.options import GivenArguments, Options, RunCommand
from harness.cli.shared_options import MATRIX, ONE_OBJECT, age_days, as_json, model_globs


def _declare_record(options: Options) -> RunCommand:
    matrix = options.one("MATRIX", MATRIX, Path)
    text = "also write models, inputs and outputs into a new folder, in ONNX's own layout"
    out = options.path("--out", "DIR", text)
    model = model_globs(options)
    json = as_json(options, ONE_OBJECT)

    def run(given: GivenArguments) -> int:
        from harness.cli.golden import record

        return record(given[matrix], model=given[model], out=given[out], as_json=given[json])

    return run


def _declare_verify(options: Options) -> RunCommand:
    text = (
        "matrix file: verify what the cache holds of its models; folder: verify what `record --out` "
        "wrote; default: the goldens shipped with this package"
    )
    what = options.one_or("MATRIX-or-DIR", text, Path, None)
    text = "compute with this onnxruntime, such as onnxruntime==1.24.1; default: the harness's own"
    packages = options.values("--packages", "REQUIREMENT", text, str)
    python = options.value("--python", "VERSION", "Python for the packages, such as 3.11", str)
    text = "compute in the runtime of this target of the matrix"
    target = options.value("--target", "NAME", text, str)
    model = model_globs(options)
    json = as_json(options, ONE_OBJECT)

    def run(given: GivenArguments) -> int:
        from harness.cli.golden import verify

        return verify(
            given[what],
            model=given[model],
            packages=given[packages],
            python=given[python],
            target=given[target],
            as_json=given[json],
        )

    return run


def _declare_prune(options: Options) -> RunCommand:
    older_than_days = age_days(options)
    json = as_json(options, ONE_OBJECT)

    def run(given: GivenArguments) -> int:
        from harness.cli.golden import prune

        return prune(older_than_days=given[older_than_days], as_json=given[json])

    return run


GOLDEN = CommandGroup(
    name="golden",
    summary="record, verify or prune goldens: the CPU provider's results",
    aim="maintain",
    commands=(
        Command(
            name="record",
            summary="compute and keep the goldens of a matrix's models",
            declare=_declare_record,
            exit_codes={
                0: "all goldens are recorded",
                2: "an argument or the matrix is wrong",
                3: "a model could not be read, or there is no onnxruntime to compute it",
            },
        ),
        Command(
            name="verify",
            summary="compute goldens again, and show which outputs changed",
            declare=_declare_verify,
            exit_codes={
                0: "no output changed",
                1: "an output or a refusal changed, or a recorded file was altered",
                2: "an argument or the matrix is wrong",
                3: "a model could not be read, or there is no onnxruntime to compute it",
            },
        ),
        Command(
            name="prune",
            summary="remove goldens and derived models unused for 30 days",
            declare=_declare_prune,
        ),
    ),
)
