"""How a command is declared: its help, its exit codes, and the arguments that several commands share."""

import argparse
from pathlib import Path
from typing import Any, TypeAlias

from harness.cli.arguments.values import days

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 - it has no other name


MATRIX = "matrix file (TOML); `ep-harness init` writes one"
MODELS = "only these models: suite/model, or the model alone; may be repeated"
RUN = "run folder, or a folder of run folders, which count as one"
ONE_OBJECT = "print one JSON object"
ONE_ARRAY = "print one JSON array"


def command(
    commands: "Commands", name: str, summary: str, call: str, exit_codes: dict[int, str] | None = None
) -> argparse.ArgumentParser:
    """Declare a command.

    Its summary is one line without a full stop, of at most 64 characters, which fit into 80 columns.
    ``call`` is the ``module.function`` that runs it.
    """
    meanings = "\n".join(f"  {code}  {meaning}" for code, meaning in (exit_codes or {}).items())
    declared = commands.add_parser(
        name,
        help=summary,
        description=_sentence(summary),
        epilog=meanings and f"exit codes:\n{meanings}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    declared.set_defaults(call=call)
    declared.register("action", None, _Once)
    return declared


def group(commands: "Commands", name: str, summary: str) -> "Commands":
    """Declare a command that consists of further commands."""
    declared = commands.add_parser(name, help=summary, description=_sentence(summary))
    return declared.add_subparsers(required=True, metavar="COMMAND")


def value(command: argparse._ActionsContainer, name: str, metavar: str, text: str, **how: Any) -> None:
    """Declare an argument with a value; ``how`` are further arguments of ``add_argument``."""
    command.add_argument(name, metavar=metavar, help=text, **how)


def path(command: argparse._ActionsContainer, name: str, metavar: str, text: str, **how: Any) -> None:
    """Declare an argument that is a path."""
    value(command, name, metavar, text, type=Path, **how)


def repeated(command: argparse._ActionsContainer, name: str, metavar: str, text: str, **how: Any) -> None:
    """Declare an option that may be repeated; its values are a list."""
    value(command, name, metavar, text, action="append", default=[], **how)


def flag(command: argparse._ActionsContainer, name: str, text: str, **how: Any) -> None:
    """Declare an option without a value."""
    command.add_argument(name, action="store_true", help=text, **how)


def json(command: argparse._ActionsContainer, text: str) -> None:
    """Declare ``--json``, as ``as_json``."""
    flag(command, "--json", text, dest="as_json")


def age(command: argparse.ArgumentParser) -> None:
    """Declare how old the removed entries of a cache are, as ``older_than_days``."""
    which = command.add_mutually_exclusive_group()
    value(
        which,
        "--older-than",
        "DAYS",
        "remove what has been unused for this many days; default: 30",
        type=days,
        dest="older_than_days",
        default=30.0,
    )
    which.add_argument(
        "--all", action="store_const", const=0.0, dest="older_than_days", help="remove everything"
    )


def options(command: argparse.ArgumentParser) -> None:
    """Declare ``--option``, as a list ``options``."""
    repeated(
        command,
        "--option",
        "K=V",
        "provider option, such as backend_type=htp; may be repeated",
        dest="options",
    )


def provider_settings(command: argparse.ArgumentParser) -> None:
    """Declare ``--plugin``, ``--option`` and ``--device``."""
    value(command, "--plugin", "PACKAGE-OR-PATH", "plugin EP: its package or library")
    options(command)
    repeated(command, "--device", "K=V", "only devices with this property, such as type=NPU; may be repeated")


def env(command: argparse.ArgumentParser) -> None:
    """Declare ``--env``, as a list ``env``."""
    repeated(command, "--env", "K=V", "environment variable of the provider's process; may be repeated")


def place(command: argparse.ArgumentParser, text: str, where: str = "") -> None:
    """Declare ``--browser``, ``--node`` and ``--software-gpu``; ``{}`` in a text stands for the place."""
    either = command.add_mutually_exclusive_group()
    for name, what in (("browser", "onnxruntime-web in a browser"), ("node", "onnxruntime-node in Node.js")):
        told = text.format(what)
        either.add_argument(f"--{name}", action="store_const", const=name, dest="place", help=told)
    flag(command, "--software-gpu", f"with --browser: compute WebGPU on the processor{where}")


def targets(command: argparse.ArgumentParser) -> None:
    """Declare ``--target``, as a list ``target``."""
    repeated(command, "--target", "GLOB", "only these targets; may be repeated")


def models(command: argparse.ArgumentParser) -> None:
    """Declare ``--model``, as a list ``model``."""
    repeated(command, "--model", "GLOB", MODELS)


def selection(command: argparse.ArgumentParser) -> None:
    """Declare the arguments that select cells; see ``harness.cli.selection``."""
    targets(command)
    models(command)
    value(
        command,
        "--shard",
        "I/N",
        "only the I-th of N shares, for N machines; auto: as Slurm, Kubernetes or CI number them",
    )
    path(command, "--durations", "RUN", "with --shard: an earlier run, to make shares equally long")


def baselines(command: argparse.ArgumentParser) -> None:
    """Declare ``--baseline``, as a list ``baseline``."""
    repeated(
        command,
        "--baseline",
        "FILE-OR-FOLDER",
        "compare with the baseline that fits this machine; may be repeated",
        type=Path,
    )


def no_report(command: argparse.ArgumentParser) -> None:
    """Declare ``--no-report``, as ``with_report``."""
    command.add_argument("--no-report", action="store_false", dest="with_report", help="write no HTML report")


def native_stack(command: argparse.ArgumentParser) -> None:
    """Declare ``--native-stack``."""
    flag(command, "--native-stack", "print the native stack of each crash into its output (Linux)")


class _Once(argparse.Action):
    """Takes one value; a second value is an error, where argparse would keep the last one."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 - argparse's signature
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        """Keep the value, unless there is one."""
        if option_string and getattr(namespace, self.dest) is not self.default:
            raise argparse.ArgumentError(self, "given twice; give it once")
        setattr(namespace, self.dest, values)


def _sentence(summary: str) -> str:
    return f"{summary[0].upper()}{summary[1:]}."
