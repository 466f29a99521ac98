"""Read a matrix file: its plan and its suites."""

from pathlib import Path

from harness.core.errors import Problem, UsageError
from harness.corpus.suites import PROFILE, Suite, open_folder, open_suite
from harness.plan.expand import expand
from harness.plan.matrix import Matrix, load_matrix
from harness.plan.plan import Plan
from harness.profiles.suite import open_profile


def prepare(path: Path) -> tuple[Plan, dict[str, Suite]]:
    """Read a matrix, list its models and expand it. Opens no model, imports no onnxruntime.

    Raises:
        UsageError: The matrix, a suite or a folder is wrong; all problems that could be found together.
    """
    matrix = load_matrix(path)
    suites = open_suites(matrix)
    return expand(matrix, {name: suite.models() for name, suite in suites.items()}), suites


def open_suites(matrix: Matrix) -> dict[str, Suite]:
    """Return the suites of a matrix by name, built-in ones first, in the order of the file.

    Raises:
        UsageError: A suite or folder cannot be opened, or two have the same name.
    """
    suites: dict[str, Suite] = {}
    problems: list[Problem] = []
    wanted: list[str | Path] = [*matrix.models.suites, *matrix.folder_paths]
    for what in wanted:
        try:
            suite = _open(what) if isinstance(what, str) else open_folder(what)
        except UsageError as error:
            problems += error.problems
            continue
        if suite.name in suites:
            where = f"{matrix.path}: models"
            text = f"{what} makes a second suite {suite.name!r}, and ids of cells would collide"
            problems.append(Problem(where=where, what=text, hint="rename the folder, or list its parent"))
        suites[suite.name] = suite
    if problems:
        raise UsageError(*problems)
    return suites


def _open(name: str) -> Suite:
    """Open a suite by name; profiles are not part of the corpus, which knows nothing of archives."""
    return open_profile(name.removeprefix(PROFILE)) if name.startswith(PROFILE) else open_suite(name)
