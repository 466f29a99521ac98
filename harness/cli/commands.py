"""Every command by its name: our own, and those that other distributions add.

Commands of other distributions come through a door of ``harness.doors``. It is asked for a name that is not
ours, and for `ep-harness --help`: to read the metadata of all that is installed takes longer than all else
before `run` starts. A command that cannot be imported costs itself alone, in one line.
"""

import importlib
from collections.abc import Iterator

from harness.cli.command_type import RegisteredCommand
from harness.core.text.errors import UsageError
from harness.doors import COMMANDS, behind, load_registered

OWN_COMMANDS = {
    "doctor": "harness.cli.doctor_command:DOCTOR",
    "check": "harness.cli.check_command:CHECK",
    "init": "harness.cli.init_command:INIT",
    "list": "harness.cli.listing_command:LIST",
    "run": "harness.cli.run_command:RUN",
    "report": "harness.cli.results_command:REPORT",
    "diff": "harness.cli.results_command:DIFF",
    "triage": "harness.annex.triage.command:TRIAGE",
    "replay": "harness.annex.triage.command:REPLAY",
    "trace": "harness.annex.trace.command:TRACE",
    "levels": "harness.annex.advise.command:LEVELS",
    "fuzz": "harness.annex.fuzz.command:FUZZ",
    "gate": "harness.cli.results_command:GATE",
    "compare-speed": "harness.annex.speed.command:COMPARE_SPEED",
    "judge": "harness.cli.judge_command:JUDGE",
    "baseline": "harness.cli.baseline_command:BASELINE",
    "history": "harness.annex.store.command:HISTORY",
    "query": "harness.annex.store.command:QUERY",
    "operators": "harness.cli.operators_command:OPERATORS",
    "ops": "harness.cli.ops_command:OPS",
    "profiles": "harness.annex.conformance.command:PROFILES",
    "conform": "harness.annex.conformance.command:CONFORM",
    "submit": "harness.annex.conformance.command:SUBMIT",
    "verify": "harness.annex.conformance.command:VERIFY",
    "publish": "harness.annex.publication.command:PUBLISH",
    "advise": "harness.annex.advise.command:ADVISE",
    "pack": "harness.annex.pack.command:PACK",
    "record": "harness.record.command:RECORD",
    "golden": "harness.cli.golden_command:GOLDEN",
    "runtime": "harness.cli.runtime_command:RUNTIME",
    "agent": "harness.cli.agent_command:AGENT",
    "agent-check": "harness.annex.agent_check.command:AGENT_CHECK",
}
"""Name -> where its command is, as in an entry point; in the order of `ep-harness --help`."""


def own_command(name: str) -> RegisteredCommand:
    """Return a command of ours. Imports its module, and that of no other command."""
    module, _, attribute = OWN_COMMANDS[name].partition(":")
    command: RegisteredCommand = getattr(importlib.import_module(module), attribute)
    return command


def own_commands() -> Iterator[RegisteredCommand]:
    """Yield our own commands."""
    return map(own_command, OWN_COMMANDS)


def foreign_names() -> tuple[str, ...]:
    """Return the names of commands that other distributions add, sorted."""
    return tuple(name for name in behind(COMMANDS) if name not in OWN_COMMANDS)


def foreign_command(name: str) -> RegisteredCommand:
    """Return a command that another distribution adds.

    Raises:
        UsageError: It cannot be imported, is no command of this name, or two distributions have one.
    """
    command = load_registered(COMMANDS, name, RegisteredCommand)
    if command.name != name:
        (entry,) = behind(COMMANDS)[name]
        what = f"{entry.value} of {entry.whose} has the name {command.name!r}"
        raise UsageError.at(name, what, "tell its authors: docs/how-to/extend.md has what is expected")
    return command
