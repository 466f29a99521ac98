"""`ep-harness init`: write a matrix file for the models and the providers that work here."""

import os
from collections.abc import Sequence
from pathlib import Path

from harness.cli.matrix_text import HEAD, HEAD_OF_FOLDERS, matrix_of, target_names, toml
from harness.cli.output import notify, print_lines
from harness.core.files.writing import write_new, writing
from harness.core.records.facts import CPU_PROVIDER as CPU
from harness.core.text.counted import plural
from harness.core.text.errors import EXIT_OK, UsageError
from harness.corpus.suites.model_folder import find_models, model_folders
from harness.plan.target import from_here
from harness.studies.usable_providers import DoctorRow, examine


def init(out: Path, *, plugins: list[str]) -> int:
    """Write a matrix file with a target for each provider, and each plugin, that computes here.

    Its models are those in the folder of the file; without any, ONNX's operator tests.
    """
    hint = "name another file: --out FILE"
    if out.exists():
        raise UsageError.at(out, "exists already", hint)
    rows = examine_here("init", plugins_from_here(plugins))
    folders = model_folders(out.absolute().parent)
    head = HEAD_OF_FOLDERS.format(folders=toml(folders)) if folders else HEAD
    with writing(out, hint=hint):
        write_new(out, "\n".join(matrix_of(rows, head)).encode())
    names = target_names(row for row in rows if row.computes)
    print_lines(
        [
            f"wrote    {out}: {len(names)} targets ({', '.join(names)})",
            f"models   {_models(folders, out.absolute().parent)}",
            f"next     ep-harness run {out}",
        ]
    )
    return EXIT_OK


def _models(folders: Sequence[str], root: Path) -> str:
    if not folders:
        return "ONNX's operator tests, as there is no .onnx file here"
    count = sum(len(find_models(root / folder)) for folder in folders)
    return f"{plural(count, 'model')} in {', '.join(folders)}"


def plugins_from_here(plugins: Sequence[str]) -> list[str]:
    """Return plugins as given on the command line, libraries with absolute paths."""
    expanded = (os.path.expanduser(plugin) for plugin in plugins)  # noqa: PTH111 - a package stays
    return [from_here(plugin, Path.cwd()) for plugin in expanded]


def examine_here(where: str, plugins: Sequence[str] = ()) -> tuple[DoctorRow, ...]:
    """Try the providers of this machine, and plugins; ``where`` names the command in an error."""
    rows = examine(None, notify, plugins)
    if not any(row.computes for row in rows):
        broken = next(row for row in rows if row.provider == CPU)
        raise UsageError.at(where, f"no provider works here: {broken.reason}", broken.advice)
    return rows
