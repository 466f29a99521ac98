"""From a matrix to a plan that can be run: its cells, and the suites that their models come from."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.core.text.errors import Problem, UsageError
from harness.corpus.packages.package_suite import open_package
from harness.corpus.suites.model_package import is_package
from harness.corpus.suites.suite import Suite, open_folder
from harness.corpus.suites.suites import open_suite
from harness.plan.baseline_file import with_baselines
from harness.plan.expand import expand
from harness.plan.matrix import Matrix, read_matrix
from harness.plan.plan import Plan
from harness.plan.selector import one_or_more
from harness.plan.shard import parse_shard
from harness.plan.shard import shard as share_of


class RunnablePlan(Plan, frozen=True, kw_only=True, dict=True, eq=False):
    """A plan with what else a run needs.

    Attributes:
        suites: Name -> suite, of all suites of the matrix.
        named: Whether its targets were chosen by name, so that the run is about each of them.
    """

    suites: dict[str, Suite]
    named: bool = False


def make_plan(
    matrix: Matrix,
    *,
    targets: str | Sequence[str] = (),
    models: str | Sequence[str] = (),
    shard: str = "",
    durations_ms: Mapping[str, float] | None = None,
    baselines: Path | str | Sequence[Path | str] = (),
) -> RunnablePlan:
    """Return the cells of a matrix, or of a part of it. Opens no model, imports no onnxruntime.

    Args:
        matrix: What ``read_matrix`` returns.
        targets: Globs on the target's name; none stands for all.
        models: Globs on ``suite/model``, or on the model alone; none stands for all.
        shard: ``2/8`` for the second of eight shares, which machines run side by side; empty for all.
        durations_ms: Id of a cell -> milliseconds, which make the shares equally long.
        baselines: Files or folders of known failures that the verdicts are compared with.

    Raises:
        UsageError: A suite, a folder, a baseline or the share is wrong, or a glob matches nothing.
    """
    suites = open_suites(matrix)
    uses = {name: suite.uses for name, suite in suites.items() if suite.uses}
    plan: Plan = expand(matrix, {name: suite.models() for name, suite in suites.items()}, uses)
    if targets or models:
        plan = plan.only(one_or_more(targets), one_or_more(models))
    known = [baselines] if isinstance(baselines, Path | str) else baselines
    plan = with_baselines(plan, [*map(Path, known)])
    if shard:
        plan = share_of(plan, *parse_shard(shard), durations_ms or {})
    return RunnablePlan(
        matrix=plan.matrix, cells=plan.cells, shard=plan.shard, suites=suites, named=bool(targets)
    )


def prepare(path: Path) -> tuple[Plan, dict[str, Suite]]:
    """Read a matrix, list its models and expand it. Opens no model, imports no onnxruntime.

    Raises:
        UsageError: The matrix, a suite or a folder is wrong; all problems that could be found together.
    """
    plan = make_plan(read_matrix(path))
    return plan, plan.suites


def open_suites(matrix: Matrix) -> dict[str, Suite]:
    """Return the suites of a matrix by name, built-in ones first, in the order of the file.

    Raises:
        UsageError: A suite or folder cannot be opened, or two have the same name.
    """
    suites: dict[str, Suite] = {}
    problems: list[Problem] = []
    wanted: list[str | Path] = [*matrix.models.suites, *matrix.folder_paths, *matrix.package_paths]
    packages = frozenset(matrix.package_paths)
    for what in wanted:
        try:
            if isinstance(what, str):
                suite = open_suite(what)
            else:
                suite = open_package(what) if what in packages or is_package(what) else open_folder(what)
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
