"""`ep-harness check`: a provider over the operator suite, without a matrix file."""

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath

import msgspec

from harness.cli.init import short_name
from harness.cli.run import default_folder, run
from harness.cli.selection import Selection
from harness.cli.toml_text import inline_table, text
from harness.core.errors import Problem, UsageError
from harness.engine.prepare import open_suites
from harness.plan.expand import expand
from harness.plan.matrix import matrix_from
from harness.plan.target import from_here

SUITE = "onnx-node"
MATRIX = "matrix.toml"

_ARGUMENTS = {
    "target[0].provider": "PROVIDER",
    "target[0].plugin": "--plugin",
    "target[0].options.": "--option ",
    "target[0].device.": "--device ",
    "models.suites": "--suite",
}
"""Places in the matrix, as the command line knows them."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be checked, as it was given.

    Attributes:
        provider: Its exact name.
        plugin: A package, or a library's path; None for a provider of the build.
        options: ``KEY=VALUE`` each.
        device: ``KEY=VALUE`` each.
        suites: Names of suites; none for the operator suite.
    """

    provider: str
    plugin: str | None = None
    options: Sequence[str] = ()
    device: Sequence[str] = ()
    suites: Sequence[str] = ()


def check(request: Request, *, model: str | None, out: Path | None, with_report: bool) -> int:
    """Run a provider over suites; its matrix goes into the run folder, so that it can be resumed or built on.

    Args:
        request: What is to be checked.
        model: Glob on the models.
        out: The run folder.
        with_report: Whether to render the report.

    Returns:
        As ``run``; a provider that cannot be used is a required target that was unavailable.

    Raises:
        UsageError: An argument is wrong, or the run folder cannot be written.
    """
    name = short_name(request.provider)
    folder = out or default_folder(PurePath(f"check-{name}"))
    content = "\n".join(matrix_lines(request, name))
    file = folder / MATRIX
    try:
        matrix = matrix_from(tomllib.loads(content), file)
        suites = open_suites(matrix)
    except UsageError as error:
        raise UsageError(*(as_argument(problem, file) for problem in error.problems)) from error
    selection = Selection(model=model)
    selection.of(expand(matrix, {suite: opened.models() for suite, opened in suites.items()}))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(content)
    except FileExistsError as error:
        what = "there is a run in this folder already, or something else that has this name"
        raise UsageError(Problem(where=str(file), what=what, hint="choose another folder: --out")) from error
    except OSError as error:
        what = f"cannot be written: {error.strerror}"
        raise UsageError(Problem(where=str(file), what=what, hint="choose another folder: --out")) from error
    return run(file, out=folder, resume=None, selection=selection, with_report=with_report)


def matrix_lines(request: Request, name: str) -> Iterator[str]:
    """The lines of a matrix file for what is asked for; its only target has this name."""
    yield "# Written by `ep-harness check`. Every key: docs/reference/matrix.md."
    yield "schema = 1"
    yield ""
    yield "[models]"
    yield f"suites = [{', '.join(map(text, request.suites or [SUITE]))}]"
    yield ""
    yield "[[target]]"
    yield f"name     = {text(name)}"
    yield f"provider = {text(request.provider)}"
    if request.plugin is not None:
        # A library's path starts where the command was called, and not where the matrix lies.
        plugin = from_here(os.path.expanduser(request.plugin), Path.cwd())  # noqa: PTH111 - "" stays
        yield f"plugin   = {text(plugin)}"
    for key, flag, given in (
        ("device ", "--device", request.device),
        ("options", "--option", request.options),
    ):
        if given:
            yield f"{key}  = {inline_table(_pairs(given, flag))}"
    yield "required = true"
    yield ""


def _pairs(given: Sequence[str], flag: str) -> Mapping[str, str]:
    pairs: dict[str, str] = {}
    for one in given:
        key, separator, value = one.partition("=")
        if not separator or not key:
            raise UsageError(Problem(where=flag, what=f"expected KEY=VALUE, got {one!r}"))
        if key in pairs:
            raise UsageError(Problem(where=f"{flag} {key}", what="given twice", hint="keep one value"))
        pairs[key] = value
    return pairs


def as_argument(problem: Problem, file: Path) -> Problem:
    """A problem of the matrix as one of the command that it was made of."""
    where = problem.where.removeprefix(f"{file}: ")
    for place, argument in _ARGUMENTS.items():
        if where.startswith(place):
            where = argument + where.removeprefix(place)
            break
    return msgspec.structs.replace(problem, where=where)
