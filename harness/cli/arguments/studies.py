"""Arguments of `levels` and `advise`, the commands about one model."""

from harness.cli.arguments import declare


def add_studies(commands: declare.Commands) -> None:
    """Declare `levels` and `advise`."""
    levels = declare.command(
        commands, "levels", "show what each graph optimization level does to a model", "levels.levels"
    )
    advise = declare.command(
        commands,
        "advise",
        "find what to ship: the fastest configuration that passes",
        "advise.advise_on",
        {
            0: "a configuration passes; of a folder, for every model",
            1: "none passes",
            2: "an argument is wrong",
        },
    )
    for command in (levels, advise):
        folders = "; or a folder of models, or of onnxruntime-genai" if command is advise else ""
        declare.value(
            command, "model", "MODEL", f".onnx file, or suite/model such as zoo/vit-small-op17{folders}"
        )
        declare.value(
            command,
            "provider",
            "MATRIX-or-PROVIDER",
            "matrix file (*.toml), or exact name of a provider; default: all that work here",
            nargs="?",
            default="",
        )
        declare.provider_settings(command)
    declare.path(levels, "--out", "DIR", "also write a page into this folder")
    declare.json(levels, f"{declare.ONE_OBJECT} in place of the tables")
    declare.value(
        advise,
        "--budget",
        "S",
        "seconds; default: 120, of a folder 12 for each model, and 120 at least",
        type=float,
        dest="budget_s",
        default=None,
    )
    declare.flag(advise, "--details", "of a folder, also every other target that may be shipped")
    declare.json(advise, f"{declare.ONE_OBJECT}, with every record")
