"""Arguments of `golden` and `runtime`, the commands about caches."""

from harness.cli.arguments import declare


def add_golden(commands: declare.Commands) -> None:
    """Declare the commands of `golden`."""
    record = declare.command(
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
    declare.path(record, "matrix", "MATRIX", declare.MATRIX)
    declare.path(
        record,
        "--out",
        "DIR",
        "also write models, inputs and outputs into a new folder, in ONNX's own layout",
    )
    verify = declare.command(
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
    declare.path(
        verify,
        "what",
        "MATRIX-or-DIR",
        "matrix file: verify what the cache holds of its models; folder: verify what `record --out` "
        "wrote; default: the goldens shipped with this package",
        nargs="?",
    )
    declare.value(
        verify,
        "--packages",
        "REQUIREMENT",
        "compute with this onnxruntime, such as onnxruntime==1.24.1; default: the harness's own",
        nargs="+",
        default=[],
    )
    declare.value(verify, "--python", "VERSION", "Python for the packages, such as 3.11")
    declare.value(verify, "--target", "NAME", "compute in the runtime of this target of the matrix")
    for command in (record, verify):
        declare.models(command)
        declare.json(command, declare.ONE_OBJECT)
    prune = declare.command(
        commands, "prune", "remove goldens and derived models unused for 30 days", "golden.prune"
    )
    declare.age(prune)
    declare.json(prune, declare.ONE_OBJECT)


def add_runtime(commands: declare.Commands) -> None:
    """Declare the commands of `runtime`."""
    listing = declare.command(commands, "list", "show the environments in the cache", "runtime.list_runtimes")
    declare.json(listing, declare.ONE_ARRAY)

    build = declare.command(
        commands,
        "build",
        "build environments ahead, such as for an offline machine",
        "runtime.build_runtimes",
    )
    declare.value(
        build,
        "what",
        "MATRIX|PACKAGE",
        "matrix files (*.toml): build the runtimes of their targets; requirements of packages: build one "
        "runtime of all of them",
        nargs="+",
    )
    declare.value(build, "--python", "VERSION", "Python for the requirements, such as 3.11")

    prune = declare.command(
        commands, "prune", "remove environments unused for 30 days", "runtime.prune_runtimes"
    )
    declare.age(prune)
