"""Arguments of `levels` and `advise`, the commands about one model."""

from harness.cli.arguments.command import (
    ONE_OBJECT,
    Commands,
    add_command,
    add_json,
    add_path,
    add_provider_settings,
    add_value,
)


def add_studies(commands: Commands) -> None:
    """Declare `levels` and `advise`."""
    levels = add_command(
        commands, "levels", "show what each graph optimization level does to a model", "levels.levels"
    )
    advise = add_command(
        commands,
        "advise",
        "find the fastest configuration that passes, for one model",
        "advise.advise_on",
        {0: "a configuration passes", 1: "none passes", 2: "an argument is wrong"},
    )
    for command in (levels, advise):
        folders = "; or a folder of onnxruntime-genai" if command is advise else ""
        add_value(
            command, "model", "MODEL", f".onnx file, or suite/model such as zoo/vit-small-op17{folders}"
        )
        add_value(
            command,
            "provider",
            "MATRIX-or-PROVIDER",
            "matrix file (*.toml), or exact name of a provider; default: all that work here",
            nargs="?",
            default="",
        )
        add_provider_settings(command)
    add_path(levels, "--out", "DIR", "also write a page into this folder")
    add_json(levels, f"{ONE_OBJECT} in place of the tables")
    add_value(advise, "--budget", "S", "seconds; default: 120", type=float, dest="budget_s", default=120.0)
    add_json(advise, f"{ONE_OBJECT}, with every record")
