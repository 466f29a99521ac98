"""`ep-harness check`: test one provider with the operator suite, without a matrix file."""

import tomllib
from pathlib import Path, PurePath
from typing import Any

from harness.cli.run import default_folder, run
from harness.cli.selection import Selection
from harness.cli.targets import Request, as_arguments
from harness.core.errors import Problem, UsageError
from harness.engine.prepare import open_suites
from harness.plan.expand import expand
from harness.plan.matrix import matrix_from


def check(*, model: str | None, out: Path | None, with_report: bool, **request: Any) -> int:
    """Run a provider over suites. The run folder gets its matrix file, to resume the run or to extend it.

    Returns:
        As ``run``; a provider that cannot be used counts as an unavailable required target.

    Raises:
        UsageError: An argument is wrong, or the run folder cannot be written.
    """
    wanted = Request(**request)
    folder = out or default_folder(PurePath(f"check-{wanted.name}"))
    content = wanted.matrix_text()
    file = folder / "matrix.toml"
    try:
        matrix = matrix_from(tomllib.loads(content), file)
        suites = open_suites(matrix)
    except UsageError as error:
        raise as_arguments(error, file) from error
    plan = expand(matrix, {suite: opened.models() for suite, opened in suites.items()})
    Selection(model=model).of(plan)  # refuses a glob that matches nothing, before anything is written
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(content)
    except OSError as error:
        taken = isinstance(error, FileExistsError)
        what = "a run or another file is there already" if taken else f"cannot be written: {error.strerror}"
        raise UsageError(Problem(where=str(file), what=what, hint="choose another folder: --out")) from error
    return run(file, out=folder, resume=None, with_report=with_report, model=model)
