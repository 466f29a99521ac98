"""Reports a cell without pytest's setup, call and teardown phases, which do nothing for a cell.

The engine has already run the cell. pytest's phases, with capturing, collectors and warning filters, take
longer than many cells. They are skipped only if no other plugin uses them.
"""

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

import pluggy
import pytest

from harness.pytest_plugin.items import CellItem

_INDIFFERENT = frozenset(
    {
        "_pytest",
        "_hypothesis_pytestplugin",
        "harness",
        "pytest_benchmark",
        "pytest_cov",
        "pytest_randomly",
        "syrupy",
        "xdist",
    }
)
"""Packages whose hooks do nothing for an item that is not a Python function."""

Complete = Callable[[CellItem, pytest.TestReport], None]

_STOPS = (pytest.exit.Exception, KeyboardInterrupt)
"""Exceptions that end the session, not the item."""


class Brevity:
    """Decides which of pytest's phases a session can skip for cells, and runs cells without them.

    All plugins are loaded at that time; ``complete`` adds the cell's data to its report.
    """

    def __init__(self, config: pytest.Config, complete: Complete) -> None:
        self._complete = complete
        hooks, option = config.hook, config.option
        ways = hooks.pytest_runtest_protocol.get_hookimpls()
        phases = (hooks.pytest_runtest_setup, hooks.pytest_runtest_call, hooks.pytest_runtest_teardown)
        inside = [impl for hook in phases for impl in hook.get_hookimpls()]
        # Wrappers of the whole protocol also wrap the short one.
        inside += [impl for impl in ways if not (impl.wrapper or impl.hookwrapper)]
        wants_to_see = option.usepdb or getattr(option, "setupshow", False)
        self.spares_phases = indifferent(inside) and not wants_to_see
        """Whether no other plugin uses the phases of an item, or runs items itself."""
        self.spares_protocol = (
            self.spares_phases
            and indifferent(ways)
            and _of(hooks.pytest_runtestloop.get_hookimpls()) <= {"_pytest", "harness"}
            and not float(config.getini("faulthandler_timeout") or 0)
        )
        """Whether, also, no other plugin loops over the items, or wraps each of them."""
        self._all_phases = config.getoption("xmlpath", None) is not None or not indifferent(
            hooks.pytest_runtest_logreport.get_hookimpls()
        )
        self._makes_reports = indifferent(hooks.pytest_runtest_makereport.get_hookimpls())
        self._hooks: dict[Path, Any] = {}

    def run(self, item: CellItem) -> None:
        """Wait for the result of a submitted cell without marks, and report it as pytest does.

        Setup and teardown are reported only if a plugin reads these reports.
        """
        # Else the report would keep a copy of the names of its collectors.
        item.keywords = {}
        hook = self._hooks.get(item.path)
        if hook is None:
            hook = self._hooks[item.path] = item.ihook
        location = item.location
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=location)
        if self._all_phases:
            hook.pytest_runtest_logreport(report=_passed(item, "setup"))
        call = pytest.CallInfo.from_call(item.end, when="call", reraise=_STOPS)
        if call.excinfo is None and self._makes_reports:
            report = _passed(item, "call")
            self._complete(item, report)
        else:
            report = hook.pytest_runtest_makereport(item=item, call=call)
        hook.pytest_runtest_logreport(report=report)
        if report.failed and call.excinfo is not None:
            hook.pytest_exception_interact(node=item, call=call, report=report)
        if self._all_phases:
            hook.pytest_runtest_logreport(report=_passed(item, "teardown"))
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=location)


def indifferent(implementations: "Iterable[pluggy.HookImpl]") -> bool:
    """Whether all these hook implementations do nothing for a cell."""
    return _of(implementations) <= _INDIFFERENT


def _of(implementations: "Iterable[pluggy.HookImpl]") -> set[str]:
    return {impl.function.__module__.partition(".")[0] for impl in implementations}


def _passed(item: CellItem, when: Literal["setup", "call", "teardown"]) -> pytest.TestReport:
    now_s = time.time()
    return pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords={},
        outcome="passed",
        longrepr=None,
        when=when,
        start=now_s,
        stop=now_s,
        user_properties=item.user_properties,
    )
