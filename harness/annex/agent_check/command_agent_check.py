"""`ep-harness agent-check`: check any agent against the agent protocol."""

import os
import shutil
import tempfile
from collections import Counter
from pathlib import Path

from harness.annex.agent_check.all_checks import CHECKS, CheckResult, run_checks
from harness.annex.agent_check.bench import Setup
from harness.annex.agent_check.check_group import AgentCheck
from harness.cli.output import print_lines, print_result, wrapped
from harness.cli.targets import pairs_of
from harness.core.text.errors import EXIT_OK, EXIT_UNEXPECTED, UsageError, one_line

_STATES = {"ok": "ok", "failed": "FAILED", "not done": "-"}
_INDENT = " " * 11


def agent_check(
    command: list[str],
    provider: str,
    options: list[str],
    only: str,
    limit_s: float,
    large_mib: int,
    *,
    as_json: bool,
) -> int:
    """Run the checks, and show each as it ends."""
    program = shutil.which(command[0])
    if program is None:
        problem = f"there is no program {command[0]!r}"
        raise UsageError.at("agent-check", problem, "give the agent's command after --")
    selected = _selected(only)
    with tempfile.TemporaryDirectory(prefix="ep-harness-", ignore_cleanup_errors=True) as folder:
        setup = Setup(
            command=(os.path.abspath(program), *_from_here(command[1:])),  # noqa: PTH100 - keeps links
            folder=Path(folder),
            provider=provider,
            options=pairs_of("--option", options),
            limit_s=limit_s,
            large_bytes=large_mib << 20,
        )
        checked = []
        group = ""
        for one in run_checks(setup, lambda check: check in selected):
            checked.append(one)
            if not as_json:
                print_lines([*([one.check.group] if one.check.group != group else []), *_lines(one)])
            group = one.check.group
    failed = [one for one in checked if one.state == "failed"]
    print_result([_row(one) for one in checked], _summary(checked, len(selected)), as_json=as_json)
    return EXIT_UNEXPECTED if failed else EXIT_OK


def _selected(only: str) -> tuple[AgentCheck, ...]:
    selected = tuple(check for check in CHECKS if only.lower() in f"{check.group}: {check.title}".lower())
    if not selected:
        groups = ", ".join(dict.fromkeys(check.group for check in CHECKS))
        raise UsageError.at("--only", f"no check has {only!r} in its title", f"groups: {groups}")
    return selected


def _from_here(arguments: list[str]) -> list[str]:
    """Return arguments with absolute paths in place of relative ones: the agent runs in another folder."""
    return [str(Path(each).absolute()) if Path(each).exists() else each for each in arguments]


def _lines(checked: CheckResult) -> list[str]:
    state = _STATES[checked.state]
    lines = wrapped(checked.check.title, f"  {state:<9}", _INDENT)
    if checked.state == "failed":
        lines += wrapped(f"{checked.word}: {one_line(checked.text, 600)}", _INDENT)
    elif checked.state == "not done":
        lines += wrapped(one_line(checked.text, 150), _INDENT)
    return lines


def _summary(checked: list[CheckResult], selected: int) -> list[str]:
    counts = Counter(one.state for one in checked)
    words = Counter(one.word for one in checked if one.state == "failed")
    parts = [
        f"{counts['ok']} ok",
        f"{counts['failed']} failed",
        f"{counts['not done']} not done by this agent",
    ]
    if selected > len(checked):
        parts.append(f"{selected - len(checked)} left out")
    lines = ["", *wrapped(f"{selected} checks: {', '.join(parts)}")]
    if words:
        listed = ", ".join(f"{word} {count}" for word, count in sorted(words.items()))
        lines += wrapped(f"what is wrong: {listed} (docs/reference/agent-protocol.md)")
    return lines


def _row(checked: CheckResult) -> dict[str, object]:
    return {
        "group": checked.check.group,
        "check": checked.check.title,
        "state": checked.state,
        "word": checked.word,
        "text": checked.text,
        "took_s": checked.took_s,
    }
