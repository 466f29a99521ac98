"""What people read of the cross-checks of goldens."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from harness.core.errors import one_line
from harness.golden.cross_check import CrossCheck, Result

Checks = Mapping[str, Sequence[CrossCheck]]
"""``suite/model`` -> its cross-checks."""

_NAME, _FIGURE = 40, 9


def table(checks: Checks) -> Iterator[str]:
    """Who agrees with how many goldens; nothing where nobody was asked."""
    counts: dict[str, Counter[Result]] = {}
    for of_model in checks.values():
        for check in of_model:
            counts.setdefault(check.by, Counter())[check.result] += 1
    if not counts:
        return
    results = get_args(Result)
    yield f"{'  cross-checked with':<{_NAME}}" + "".join(f" {result:>{_FIGURE}}" for result in results)
    for by, found in counts.items():
        figures = "".join(f" {found[result]:>{_FIGURE},}" for result in results)
        yield f"{'    ' + one_line(by, _NAME - 5):<{_NAME}}{figures}"


def differing(checks: Checks) -> dict[str, list[tuple[str, str]]]:
    """Who differs -> each model with what is different."""
    found: dict[str, list[tuple[str, str]]] = {}
    for model, of_model in checks.items():
        for check in of_model:
            if check.result == "differs":
                found.setdefault(check.by, []).append((model, check.message))
    return found
