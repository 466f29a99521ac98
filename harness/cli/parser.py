"""The parser of a command line, and the page of `ep-harness --help`."""

import argparse
import textwrap
from collections.abc import Iterable, Sequence

from harness import __version__
from harness.cli.command_type import Aim, RegisteredCommand, run_parsed
from harness.cli.commands import OWN_COMMANDS, foreign_command, foreign_names, own_command, own_commands
from harness.core.text.errors import UsageError, one_line
from harness.core.text.visible_text import WIDTH, visible

_AIMS: dict[Aim, str] = {
    "begin": "To begin:",
    "cause": "Find the cause:",
    "compare": "Compare:",
    "publish": "Publish:",
    "share": "Share:",
    "maintain": "Maintain:",
    "other": "Of other packages:",
}
"""What a user wants -> the title of its section, in their order."""


def run_words(words: Sequence[str]) -> int:
    """Run a command by its name and arguments, and return its exit code.

    Raises:
        UsageError: The command is one of another distribution, and cannot be used.
    """
    return run_parsed(parser_for(words).parse_args(words))


def parser_for(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Return a parser that knows the command of these arguments; without one, or for help, all commands.

    Raises:
        UsageError: The command is one of another distribution, and cannot be used.
    """
    name = arguments[0] if arguments else ""
    if name in OWN_COMMANDS:
        return _parser([own_command(name)])
    if name and not name.startswith("-") and name in foreign_names():
        return _parser([foreign_command(name)])
    return full_parser()


def full_parser() -> argparse.ArgumentParser:
    """Return a parser that knows all commands; one of another distribution that is broken is only told."""
    commands = [*own_commands()]
    broken = []
    for name in foreign_names():
        try:
            commands.append(foreign_command(name))
        except UsageError as error:
            broken.append(error.problems[0].what)
    return _parser(commands, broken)


class _Root(argparse.ArgumentParser):
    """The parser whose help names the commands by what one wants."""

    commands: Sequence[RegisteredCommand] = ()
    broken: Sequence[str] = ()

    def format_help(self) -> str:
        """Return the page: with a summary, the commands with which to begin; by name, all others."""
        lines = [self.format_usage(), *textwrap.wrap(self.description or "", WIDTH), ""]
        width = max((len(one.name) for one in self.commands if one.aim == "begin"), default=0)
        for aim, title in _AIMS.items():
            group = [one for one in self.commands if one.aim == aim]
            if aim == "begin":
                lines += [title, *(f"  {one.name:<{width}}  {one.summary}" for one in group), ""]
            elif group:
                lines += _names(title, group)
        lines += [visible(one_line(f"not usable: {what}", 160)) for what in self.broken]
        return "\n".join([*lines, "", self.epilog or "", ""])


def _names(title: str, commands: Iterable[RegisteredCommand]) -> list[str]:
    indent = max(map(len, _AIMS.values())) + 1
    names = ", ".join(one.name for one in commands)
    return textwrap.wrap(names, WIDTH, initial_indent=f"{title:<{indent}}", subsequent_indent=" " * indent)


def _parser(commands: Sequence[RegisteredCommand], broken: Sequence[str] = ()) -> argparse.ArgumentParser:
    root = _Root(
        prog="ep-harness",
        description="Does this model, on this execution provider (EP), give the right answer, and did the "
        "provider really compute it?",
        epilog="What a command does, and its options: `ep-harness COMMAND --help`.",
    )
    root.commands, root.broken = commands, broken
    root.add_argument("--version", action="version", version=f"ep-harness {__version__}")
    below = root.add_subparsers(required=True, metavar="COMMAND", parser_class=argparse.ArgumentParser)
    for command in commands:
        command.add_to(below)
    return root
