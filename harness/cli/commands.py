"""Every command by its name: our own, and those that other distributions add.

Our own are a table, not entry points of our distribution: a checkout that runs without being installed has no
entry points, one that is installed as editable has those of the day of its installation, and to read the
metadata of all that is installed takes longer than all else that happens before `run` starts. Nobody else can
replace a command of ours.

Another distribution adds commands by entry points of the group ``ep_harness.commands``: see
docs/how-to/extend.md. They are looked up for a name that is not ours, and for `ep-harness --help`. One that
cannot be imported costs its own command, in one line.
"""

import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from harness.cli.command import Command, CommandGroup
from harness.core.errors import HarnessError, UsageError, one_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

AnyCommand: TypeAlias = Command | CommandGroup

ENTRY_POINTS = "ep_harness.commands"

OWN = {
    "doctor": "harness.cli.doctor_command:DOCTOR",
    "check": "harness.cli.check_command:CHECK",
    "init": "harness.cli.init_command:INIT",
    "list": "harness.cli.listing_command:LIST",
    "run": "harness.cli.run_command:RUN",
    "report": "harness.cli.results_command:REPORT",
    "diff": "harness.cli.results_command:DIFF",
    "triage": "harness.triage.command:TRIAGE",
    "replay": "harness.triage.command:REPLAY",
    "levels": "harness.studies.command:LEVELS",
    "fuzz": "harness.fuzz.command:FUZZ",
    "gate": "harness.cli.results_command:GATE",
    "judge": "harness.cli.judge_command:JUDGE",
    "baseline": "harness.cli.baseline_command:BASELINE",
    "history": "harness.store.command:HISTORY",
    "query": "harness.store.command:QUERY",
    "operators": "harness.cli.operators_command:OPERATORS",
    "ops": "harness.cli.ops_command:OPS",
    "profiles": "harness.conformance.command:PROFILES",
    "conform": "harness.conformance.command:CONFORM",
    "verify": "harness.conformance.command:VERIFY",
    "publish": "harness.publication.command:PUBLISH",
    "advise": "harness.studies.command:ADVISE",
    "record": "harness.record.command:RECORD",
    "golden": "harness.cli.golden_command:GOLDEN",
    "runtime": "harness.cli.runtime_command:RUNTIME",
    "agent-check": "harness.agent_check.command:AGENT_CHECK",
}
"""Name -> where its command is, as in an entry point; in the order of `ep-harness --help`."""


def own_command(name: str) -> AnyCommand:
    """Return a command of ours. Imports its module, and that of no other command."""
    module, _, attribute = OWN[name].partition(":")
    command: AnyCommand = getattr(importlib.import_module(module), attribute)
    return command


def own_commands() -> Iterator[AnyCommand]:
    """Yield our own commands."""
    return map(own_command, OWN)


def foreign_names() -> tuple[str, ...]:
    """Return the names of commands that other distributions add, sorted."""
    return tuple(sorted({entry.name for entry in _entry_points()} - OWN.keys()))


def foreign_command(name: str) -> AnyCommand:
    """Return a command that another distribution adds.

    Raises:
        UsageError: It cannot be imported, is no command of this name, or two distributions have one.
    """
    entries = [entry for entry in _entry_points() if entry.name == name]
    whose = ", ".join(map(_whose, entries))
    if len(entries) > 1:
        raise UsageError.at(name, f"several packages have a command of this name: {whose}", "uninstall one")
    (entry,) = entries
    try:
        command = entry.load()
    except (Exception, SystemExit) as error:
        words = str(error) if isinstance(error, HarnessError) else f"{type(error).__name__}: {error}"
        what = f"{entry.value} of {whose} cannot be imported: {one_line(words, 200)}"
        raise UsageError.at(name, what, "update or uninstall that package") from error
    if not isinstance(command, AnyCommand) or command.name != name:
        what = f"{entry.value} of {whose} is no command of this name"
        raise UsageError.at(name, what, "tell its authors: docs/how-to/extend.md has what is expected")
    return command


def _entry_points() -> Iterator["EntryPoint"]:
    """Yield what other distributions register; a distribution whose metadata is damaged has nothing.

    A distribution that is installed twice counts once, as the first one on the path is what is imported.
    """
    from importlib.metadata import distributions  # takes longer than to find a command of ours

    seen = set[str]()
    for distribution in distributions():
        try:
            entries = distribution.entry_points.select(group=ENTRY_POINTS)
            name = distribution.name if entries else ""
        except Exception:  # noqa: BLE001, S112 - of others; their own tools tell what is wrong
            continue
        if entries and name not in seen:
            seen.add(name)
            yield from entries


def _whose(entry: "EntryPoint") -> str:
    return "?" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
