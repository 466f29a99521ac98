"""Run all checks of an agent, and tell about each as it ends."""

import time
from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

from harness.annex.agent_check.bench import Bench, Setup
from harness.annex.agent_check.check_group import AgentCheck
from harness.annex.agent_check.early_ends import FaultError, NotDoneError, Word
from harness.annex.agent_check.ending import ENDING, NONSENSE
from harness.annex.agent_check.error_checks import ERRORS
from harness.annex.agent_check.jobs import JOBS
from harness.annex.agent_check.setting_checks import SCENARIO, SETTING_CHECKS, SPECIAL_JOBS
from harness.annex.agent_check.start_checks import GREETING_CHECKS, START
from harness.annex.agent_check.upload import UPLOAD
from harness.annex.agent_check.value_checks import FILES, TYPES, VALUE_CHECKS

_GROUPS = (
    *(GREETING_CHECKS, START, JOBS, SETTING_CHECKS, ERRORS, TYPES, VALUE_CHECKS, FILES),
    *(UPLOAD, SCENARIO, SPECIAL_JOBS, ENDING, NONSENSE),
)

CHECKS = tuple(check for group in _GROUPS for check in group.checks)


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check.

    Attributes:
        state: ``ok``; ``failed``; ``not done``: the agent says that it does not support this.
        word: What is wrong, in one word; empty if nothing is.
        text: What is wrong, or why it was not done.
    """

    check: AgentCheck
    state: Literal["ok", "failed", "not done"]
    word: Word | Literal[""] = ""
    text: str = ""
    took_s: float = 0.0


def run_checks(
    setup: Setup, selected: Callable[[AgentCheck], bool] = lambda _: True
) -> Iterator[CheckResult]:
    """Run the checks one after another.

    If no agent greets, the first check reports why, and the others would only repeat it: they are left out.
    """
    bench = Bench(setup)
    try:
        for check in filter(selected, CHECKS):
            checked = _run(bench, check)
            yield checked
            if checked.state == "failed" and bench.greeting is None:
                return
    finally:
        bench.close()


def _run(bench: Bench, check: AgentCheck) -> CheckResult:
    started = time.monotonic()
    checked = CheckResult(check=check, state="ok")
    try:
        check.run(bench)
    except FaultError as error:
        bench.give_up_shared()
        checked = CheckResult(check=check, state="failed", word=error.word, text=error.text)
    except NotDoneError as error:
        checked = CheckResult(check=check, state="not done", text=str(error))
    finally:
        bench.end_check()
    return msgspec.structs.replace(checked, took_s=round(time.monotonic() - started, 3))
