"""The key ``agree``: the task of each output, as a matrix or the side file of a model names it."""

import re
from collections.abc import Callable, Iterator

from harness.core.agreement.agreement import TASK_NAMES
from harness.core.files.structure import FilePlace, shown
from harness.core.text.errors import Problem, valid_names

FIRST_OUTPUT = ""
"""The key of a task that is given without an output's name."""

NO_TASK = "none"
"""Task that excludes an output which would have a task by default."""

TASKS = (*TASK_NAMES, NO_TASK)
_WITH_INTEGER = {"argmax": r"-?\d{1,2}", "ctc": r"\d{1,9}"}
_WITH_NUMBER = frozenset({"threshold", "boxes"})
_NUMBER = re.compile(r"-?\d{1,9}(\.\d{1,9})?([eE]-?\d{1,2})?")
_FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


def is_function(task: str) -> bool:
    """Return whether a task is a function that the user wrote, ``module:function``."""
    return task.partition(":")[0] not in TASKS and _FUNCTION.fullmatch(task) is not None


def tasks_by_output(agree: object) -> dict[str, str]:
    """Return the tasks by output from a valid value of the key."""
    if isinstance(agree, str):
        return {FIRST_OUTPUT: agree}
    return dict(agree) if isinstance(agree, dict) else {}


Finds = Callable[[str], bool]
"""Function that returns whether a module of this name exists."""


def agree_problems(agree: object, place: FilePlace, finds: Finds | None) -> Iterator[Problem]:
    """Yield the problems of the parsed value of the key; values of a wrong type are ignored.

    ``finds`` is None for a file that travels with a model: it must not name code.
    """
    if isinstance(agree, str):
        yield from _in_task(agree, place, finds)
    elif isinstance(agree, dict):
        if not agree:
            yield place.problem("the table is empty", 'give it output = "top1", or leave it out')
        for output, task in agree.items():
            if isinstance(task, str):
                yield from _in_task(task, place.key(output), finds)


def _in_task(task: str, place: FilePlace, finds: Finds | None) -> Iterator[Problem]:
    stem, colon, number = task.partition(":")
    if is_function(task):
        module = stem.partition(".")[0]
        if finds is None:
            what = f"{shown(task)} is code, which a file that travels with a model must not name"
            yield place.problem(what, "name it in the matrix")
        elif not finds(module):
            hint = f"{valid_names(stem, TASKS, limit=len(TASKS))}; or put {module}.py beside the matrix"
            yield place.problem(f"there is no module {module!r} for {shown(task)}", hint)
    elif stem not in TASKS:
        yield place.problem(
            f"got {shown(task)}", f"{valid_names(stem, TASKS, limit=len(TASKS))}, module:function"
        )
    elif colon and not _takes(stem, number):
        yield place.problem(f"got {shown(task)}", _form_of(stem))


def _takes(stem: str, number: str) -> bool:
    if stem in _WITH_INTEGER:
        return re.fullmatch(_WITH_INTEGER[stem], number, re.ASCII) is not None
    if stem not in _WITH_NUMBER or _NUMBER.fullmatch(number) is None:
        return False
    return stem != "boxes" or 0 < float(number) <= 1


def _form_of(stem: str) -> str:
    forms = {
        "argmax": "valid: argmax, or argmax:AXIS such as argmax:1",
        "ctc": "valid: ctc, or ctc:BLANK, the index of the blank",
        "threshold": "valid: threshold, or threshold:LIMIT such as threshold:0.3",
        "boxes": "valid: boxes, or boxes:IOU with a number above 0, up to 1",
    }
    return forms.get(stem, f"valid: {stem}, without a number")
