"""How a cell is reported without the phases, and the wrappers around them, in which it has nothing to do.

The engine has set the cell up and torn it down. pytest's way through these phases, with its capturing, its
stack of collectors and its filters of warnings, takes longer than many a cell. It is spared only where nobody
but pytest itself walks it.
"""

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

import pluggy
import pytest

from harness.pytest_plugin.items import CellItem

INDIFFERENT = frozenset(
    {"_pytest", "_hypothesis_pytestplugin", "harness", "pytest_benchmark", "pytest_cov", "syrupy", "xdist"}
)
"""Packages whose hooks have nothing to do where an item is no Python function and a phase is empty."""

Complete = Callable[[CellItem, pytest.TestReport], None]

STOPS = (pytest.exit.Exception, KeyboardInterrupt)
"""What ends the session and not the item."""


class Brevity:
    """What of pytest's way a session's cells can be spared, and the way that is left.

    Args:
        config: Of the session, once all plugins are there.
        complete: Puts into the report of a cell what pytest does not know of it.
    """

    def __init__(self, config: pytest.Config, complete: Complete) -> None:
        self._complete = complete
        hooks, option = config.hook, config.option
        ways = hooks.pytest_runtest_protocol.get_hookimpls()
        phases = (hooks.pytest_runtest_setup, hooks.pytest_runtest_call, hooks.pytest_runtest_teardown)
        inside = [impl for hook in phases for impl in hook.get_hookimpls()]
        # Those around the whole protocol are around the brief one, too.
        inside += [impl for impl in ways if not (impl.wrapper or impl.hookwrapper)]
        wants_to_see = option.usepdb or getattr(option, "setupshow", False)
        self.spares_phases = indifferent(inside) and not wants_to_see
        """Whether nobody but pytest itself looks at the phases of an item, or runs it in its own way."""
        self.spares_protocol = (
            self.spares_phases
            and indifferent(ways)
            and _of(hooks.pytest_runtestloop.get_hookimpls()) <= {"_pytest", "harness"}
            and not float(config.getini("faulthandler_timeout") or 0)
        )
        """Whether nobody goes from item to item in its own way either, or does something around each."""
        self._all_phases = config.getoption("xmlpath", None) is not None or not indifferent(
            hooks.pytest_runtest_logreport.get_hookimpls()
        )
        self._makes_reports = indifferent(hooks.pytest_runtest_makereport.get_hookimpls())
        self._hooks: dict[Path, Any] = {}

    def run(self, item: CellItem) -> None:
        """Wait for a cell's result, and report it as pytest does.

        Setup and teardown are reported only where somebody reads these reports.

        Args:
            item: A cell whose result is there or on its way, without marks.
        """
        # The names of its collectors would be copied into its report, and kept.
        item.keywords = {}
        hook = self._hooks.get(item.path)
        if hook is None:
            hook = self._hooks[item.path] = item.ihook
        location = item.location
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=location)
        if self._all_phases:
            hook.pytest_runtest_logreport(report=_passed(item, "setup"))
        call = pytest.CallInfo.from_call(item.end, when="call", reraise=STOPS)
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
    """Whether all these implementations of hooks have nothing to do with a cell."""
    return _of(implementations) <= INDIFFERENT


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
