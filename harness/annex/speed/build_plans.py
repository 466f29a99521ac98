"""The two builds that are compared: one matrix, with another runtime, or another plugin, on each side."""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness.core.text.errors import Problem, UsageError
from harness.engine.prepare import RunnablePlan, make_plan
from harness.plan.file_format import RenewAfter
from harness.plan.matrix import Matrix, matrix_from, read_toml
from harness.plan.runs_entry import LatencySettings, RunsRequest, has_latency
from harness.plan.selector import Selector

TIMED = LatencySettings(warm_up=3, repeats=1000, budget_s=0.25)
"""How each process times its runs.

Processes of one build differ by more than the runs of one, so that many short processes tell more than few
long ones (Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM 2013).
"""

_PLUGIN = "plugin"
_INTERPRETERS = ("bin/python", "Scripts/python.exe")


def plan_of_build(
    path: Path, flag: str, build: str, *, targets: Sequence[str] = (), models: Sequence[str] = ()
) -> RunnablePlan:
    """Return the cells whose runs can be timed, on one build, each in a fresh process.

    If the matrix asks for latency, they are those for which it does.

    Args:
        path: The matrix file.
        flag: The argument that names the build, for messages.
        build: What ``build_table`` reads.
        targets: Globs on the target's name; none stands for all.
        models: Globs on ``suite/model``, or on the model alone; none stands for all.

    Raises:
        UsageError: The matrix or the build is wrong, or no cell is left.
    """
    matrix = _matrix_of_build(path, flag, build)
    plan = make_plan(matrix, targets=targets, models=models)
    cells = tuple(
        cell for cell in plan.cells if (plan.latency(cell) if matrix.latency else has_latency(cell))
    )
    if not cells:
        raise UsageError.at(path, "no cell has runs that can be timed", "select other cells")
    every = RunsRequest(selector=Selector(), settings=TIMED)
    timed = msgspec.structs.replace(plan.matrix, latency=(every,), expect=(), repeat=())
    return RunnablePlan(matrix=timed, cells=cells, suites=plan.suites)


def build_table(text: str, flag: str) -> dict[str, Any]:
    """Return the keys of a target that a build sets: ``runtime``, and ``plugin`` if the build is one.

    Args:
        text: A Python, or the folder of its environment; packages, separated by spaces; or an inline table of
            TOML with the keys of a matrix's ``runtime``, and ``plugin``.
        flag: The argument that has it, for messages.

    Raises:
        UsageError: It is empty, or no table.
    """
    text = text.strip()
    if not text:
        hint = "valid: a Python, packages such as onnxruntime==1.31.1, or a table of a matrix's runtime"
        raise UsageError.at(flag, "it is empty", hint)
    if text.startswith("{"):
        try:
            table = tomllib.loads(f"runtime = {text}")["runtime"]
        except tomllib.TOMLDecodeError as error:
            hint = """write it as in a matrix: '{ python = "/opt/new/bin/python" }'"""
            raise UsageError.at(flag, f"not an inline table of TOML: {error}", hint) from error
        plugin = {_PLUGIN: table.pop(_PLUGIN)} if _PLUGIN in table else {}
        return {**plugin, **({"runtime": table} if table or not plugin else {})}
    path = Path(text)
    if path.is_dir():
        found = [path / name for name in _INTERPRETERS if (path / name).is_file()]
        if not found:
            raise UsageError.at(
                flag, f"there is no Python in {text}", f"valid: a folder with {_INTERPRETERS[0]}"
            )
        path = found[0]
    if path.is_file():
        # Relative to the working folder; not resolved, as the Python of an environment is a link.
        return {"runtime": {"python": str(path.absolute())}}
    if len(path.parts) > 1 and not re.search(r"[=<>@\[]", text):
        raise UsageError.at(flag, f"there is no {text}", "name a Python, or packages")
    return {"runtime": {"packages": text.split()}}


def _matrix_of_build(path: Path, flag: str, build: str) -> Matrix:
    table = read_toml(path)
    own = build_table(build, flag)
    targets = table.get("target")
    if isinstance(targets, list):
        # Places are runtimes, too.
        table["target"] = [
            {key: value for key, value in each.items() if key != "places"} | own
            if isinstance(each, dict)
            else each
            for each in targets
        ]
    try:
        matrix = matrix_from(table, path)
    except UsageError as error:
        raise UsageError(*(_with_flag(problem, flag, own) for problem in error.problems)) from error
    fresh = RenewAfter(sessions=1)
    one_by_one = [msgspec.structs.replace(each, renew_after=fresh, workers=1) for each in matrix.targets]
    return msgspec.structs.replace(matrix, targets=tuple(one_by_one))


def _with_flag(problem: Problem, flag: str, own: dict[str, Any]) -> Problem:
    """Say which argument is meant, if the problem is with what it sets."""
    is_of_build = any(f".{key}" in problem.where or f"[{key}" in problem.where for key in own)
    return msgspec.structs.replace(problem, where=f"{flag}: {problem.where}") if is_of_build else problem
