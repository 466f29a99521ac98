"""Arguments of `golden` and `runtime`, the commands about what is cached."""

from harness.cli.arguments.command import (
    MATRIX,
    MODELS,
    ONE_ARRAY,
    ONE_OBJECT,
    Commands,
    add_age,
    add_command,
    add_json,
    add_path,
    add_value,
)


def add_golden(commands: Commands) -> None:
    """Declare the commands of `golden`."""
    record = add_command(
        commands,
        "record",
        "compute and keep the goldens of a matrix's models",
        "golden.record",
        {
            0: "all goldens are recorded",
            2: "an argument or the matrix is wrong",
            3: "a model could not be read, or there is no onnxruntime to compute it",
        },
    )
    add_path(record, "matrix", "MATRIX", MATRIX)
    add_path(
        record,
        "--out",
        "DIR",
        "also write models, inputs and outputs into a new folder, in ONNX's own layout",
    )
    verify = add_command(
        commands,
        "verify",
        "compute goldens again, and show which outputs changed",
        "golden.verify",
        {
            0: "no output changed",
            1: "an output or a refusal changed, or a recorded file was altered",
            2: "an argument or the matrix is wrong",
            3: "a model could not be read, or there is no onnxruntime to compute it",
        },
    )
    add_path(
        verify,
        "what",
        "MATRIX-or-DIR",
        "matrix file: verify what the cache holds of its models; folder: verify what `record --out` "
        "wrote; default: the goldens shipped with this package",
        nargs="?",
    )
    add_value(
        verify,
        "--packages",
        "REQUIREMENT",
        "compute with this onnxruntime, such as onnxruntime==1.24.1; default: the harness's own",
        nargs="+",
        default=[],
    )
    add_value(verify, "--python", "VERSION", "Python for the packages, such as 3.11")
    add_value(verify, "--target", "NAME", "compute in the runtime of this target of the matrix")
    for command in (record, verify):
        add_value(command, "--model", "GLOB", MODELS)
        add_json(command, ONE_OBJECT)
    prune = add_command(
        commands, "prune", "remove goldens and derived models unused for 30 days", "golden.prune"
    )
    add_age(prune)
    add_json(prune, ONE_OBJECT)


def add_runtime(commands: Commands) -> None:
    """Declare the commands of `runtime`."""
    listing = add_command(commands, "list", "show the environments in the cache", "runtime.list_runtimes")
    add_json(listing, ONE_ARRAY)

    build = add_command(
        commands,
        "build",
        "build environments ahead, such as for an offline machine",
        "runtime.build_runtimes",
    )
    add_value(
        build,
        "what",
        "MATRIX-or-REQUIREMENT",
        "matrix files (*.toml): build the runtimes of their targets; requirements: build one runtime "
        "of all of them",
        nargs="+",
    )
    add_value(build, "--python", "VERSION", "Python for the requirements, such as 3.11")

    prune = add_command(commands, "prune", "remove environments unused for 30 days", "runtime.prune_runtimes")
    add_age(prune)
