"""The command `check`."""

from harness.cli.command_type import Command
from harness.cli.options import GivenArguments, Options, RunCommand
from harness.cli.shared_options import (
    PlaceOptions,
    ProviderSettings,
    baselines,
    env_options,
    model_globs,
    native_stack,
    with_report,
)
from harness.core.collector import without_collector


def _declare(options: Options) -> RunCommand:
    what = options.one(
        "PROVIDER-or-FOLDER",
        "exact name, such as QNNExecutionProvider; or a folder of models, in which those that generate "
        "text do so",
        str,
    )
    text = "after a folder: exact name of a provider; default: all that work here"
    provider = options.one_or("PROVIDER", text, str, "")
    settings = ProviderSettings(options)
    env = env_options(options)
    place = PlaceOptions(
        options, "test {}; PROVIDER may then be a name such as webgpu", ", with SwiftShader of Chromium"
    )
    text = "test with an agent of another author, such as ./my_agent: a program without arguments"
    agent = options.value("--agent", "PATH", text, str)
    text = "test with this suite alone; `ep-harness list --suites` names all; may be repeated"
    suites = options.repeated("--suite", "S", text, str)
    how_much = options.either()
    extent = how_much.constant("--quick", "ONNX's operator tests alone", "quick", "")
    text = "besides the usual tests, fuzz until 15 minutes are over"
    how_much.constant("--thorough", text, "thorough", "", into=extent)
    text = "the rest of onnxruntime's API: eight small architectures and some decoders, in every scenario"
    how_much.constant("--api", text, "api", "", into=extent)
    model = model_globs(options)
    out = options.path("--out", "DIR", "run folder; default: runs/check-<provider>-<time>")
    known = baselines(options)
    report = with_report(options)
    native = native_stack(options)

    def run(given: GivenArguments) -> int:
        if not given[env] and given[place.place] is None and given[agent] is None:
            from harness.engine.processes.prestarted import prestart_here

            prestart_here()  # before the rest of the package is imported
        with without_collector():
            from harness.cli.check import check

        return check(
            what=given[what],
            provider=given[provider],
            out=given[out],
            with_report=given[report],
            native_stack=given[native],
            baseline=given[known],
            suites=given[suites],
            model=given[model],
            extent=given[extent],
            plugin=given[settings.plugin],
            options=given[settings.options],
            device=given[settings.device],
            env=given[env],
            place=given[place.place],
            software_gpu=given[place.software_gpu],
            agent=given[agent],
        )

    return run


CHECK = Command(
    name="check",
    summary="test a provider, or a folder of models, without a matrix file",
    aim="begin",
    declare=_declare,
    exit_codes={
        0: "nothing failed",
        1: "something failed",
        2: "an argument is wrong",
        3: "the provider cannot be used, cells are missing, or none was judged",
    },
)
