"""The commands `levels` and `advise`, which are about one model."""

from harness.cli.command_type import Command
from harness.cli.options import GivenArguments, Options, RunCommand
from harness.cli.shared_options import ONE_OBJECT, ProviderSettings, as_json

_MODEL = ".onnx file, or suite/model such as zoo/vit-small-op17"
_FOLDER = "; or a folder of models, or of onnxruntime-genai"
_PROVIDER = "matrix file (*.toml), or exact name of a provider; default: all that work here"


def _declare_levels(options: Options) -> RunCommand:
    model = options.one("MODEL", _MODEL, str)
    provider = options.one_or("MATRIX-or-PROVIDER", _PROVIDER, str, "")
    settings = ProviderSettings(options)
    out = options.path("--out", "DIR", "also write a page into this folder")
    json = as_json(options, f"{ONE_OBJECT} in place of the tables")

    def run(given: GivenArguments) -> int:
        from harness.annex.advise.command_levels import levels

        request = settings.request(given, given[provider])
        return levels(given[model], request, out=given[out], as_json=given[json])

    return run


def _declare_advise(options: Options) -> RunCommand:
    model = options.one("MODEL", f"{_MODEL}{_FOLDER}", str)
    provider = options.one_or("MATRIX-or-PROVIDER", _PROVIDER, str, "")
    settings = ProviderSettings(options)
    text = "seconds; default: 120, of a folder 12 for each model, and 120 at least"
    budget_s = options.value("--budget", "S", text, float)
    details = options.flag("--details", "of a folder, also every other target that may be shipped")
    json = as_json(options, f"{ONE_OBJECT}, with every record")

    def run(given: GivenArguments) -> int:
        from harness.annex.advise.command_advise import advise_on

        request = settings.request(given, given[provider])
        return advise_on(
            given[model], request, budget_s=given[budget_s], details=given[details], as_json=given[json]
        )

    return run


LEVELS = Command(
    name="levels",
    summary="show what each graph optimization level does to a model",
    aim="cause",
    declare=_declare_levels,
)
ADVISE = Command(
    name="advise",
    summary="find what to ship: the fastest configuration that passes",
    aim="share",
    declare=_declare_advise,
    exit_codes={
        0: "a configuration passes; of a folder, for every model",
        1: "none passes",
        2: "an argument is wrong",
    },
)
