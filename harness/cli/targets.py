"""The targets of a command about one model: a matrix file's, one provider, or whatever can be used here."""

import tomllib
from pathlib import Path

import msgspec

from harness.cli.check import Request, as_argument, matrix_lines
from harness.cli.doctor import tell
from harness.cli.init import matrix_text, short_name
from harness.core.errors import Problem, UsageError
from harness.engine.job import CPU
from harness.plan.matrix import Matrix, load_matrix, matrix_from
from harness.studies.doctor import examine

HERE = "this machine"
"""What stands in place of a matrix file's path where the targets were found by looking."""


def wanted_matrix(where: str | None, request: Request) -> Matrix:
    """The matrix whose targets are meant, each with all of its axes; the models do not matter.

    Args:
        where: A matrix file (``*.toml``), the exact name of a provider, or None for all that compute here.
        request: The arguments that go with a provider.

    Raises:
        UsageError: The matrix or an argument is wrong, or nothing here computes.
    """
    if where is None or where.endswith(".toml"):
        if request.plugin or request.options or request.device:
            what = "--plugin, --option and --device say how to use a provider, and none is named"
            raise UsageError(
                Problem(where=where or "arguments", what=what, hint="name PROVIDER after the model")
            )
        return _with_own_axes(load_matrix(Path(where))) if where else _found_here()
    name = short_name(where)
    file = Path(f"{name}.toml")
    try:
        return matrix_from(tomllib.loads("\n".join(matrix_lines(request, name))), file)
    except UsageError as error:
        raise UsageError(*(as_argument(problem, file) for problem in error.problems)) from error


def _with_own_axes(matrix: Matrix) -> Matrix:
    """The same with all axes of a target in the target itself."""
    targets = tuple(
        msgspec.structs.replace(target, axes=matrix.axes | target.axes) for target in matrix.targets
    )
    return msgspec.structs.replace(matrix, axes={}, targets=targets)


def _found_here() -> Matrix:
    tell("looking for providers that compute here (name one, or a matrix file, to skip this) ...")
    rows = examine(None, tell)
    if not any(row.usable and row.nodes for row in rows):
        broken = next(row for row in rows if row.provider == CPU)
        what = f"no provider works here: {broken.reason}"
        raise UsageError(Problem(where=HERE, what=what, hint=broken.advice))
    return matrix_from(tomllib.loads("\n".join(matrix_text(rows))), Path(HERE))
