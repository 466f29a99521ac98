"""The command `pack`: write a model package of what was proved, or check one."""

from harness.cli.command_type import Command
from harness.cli.options import GivenArguments, Options, RunCommand
from harness.cli.shared_options import ONE_OBJECT, as_json


def _declare_pack(options: Options) -> RunCommand:
    model = options.one_or("MODEL", ".onnx file, or a folder of models, or of onnxruntime-genai", str, "")
    text = "matrix file with the targets; default: all providers that work here"
    matrix = options.value("--matrix", "M", text, str, "")
    out = options.path("--out", "PACKAGE", "folder of the new package")
    check = options.path("--check", "PACKAGE", "check this package in place of writing one")
    json = as_json(options, f"{ONE_OBJECT} in place of the tables")

    def run(given: GivenArguments) -> int:
        from harness.annex.pack.command_pack import check_given, pack_models

        if (package := given[check]) is not None:
            return check_given(
                package, given[matrix], model=given[model], out=given[out], as_json=given[json]
            )
        return pack_models(given[model], given[matrix], given[out], as_json=given[json])

    return run


PACK = Command(
    name="pack",
    summary="write a model package of what passes, or check one",
    aim="share",
    declare=_declare_pack,
    exit_codes={
        0: "every variant that could be tried is right, and so is every selection",
        1: "one is not; a new package is then not written",
        2: "an argument or the package is wrong",
        3: "nothing could be tried",
    },
)
