"""The table of commands: each names a function that takes its arguments, and its help fits a terminal."""

import argparse
import importlib
import inspect
from collections.abc import Iterator

import pytest

from harness.cli.arguments.parser import parser
from harness.cli.selection import Selection
from harness.cli.targets import Request
from harness.triage.triage import TriageSettings

GROUPS = {
    "selection": Selection.__struct_fields__,
    "request": Request.__struct_fields__,
    "settings": TriageSettings.__struct_fields__,
}


def commands(parent: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parsers of all commands, those inside of others too."""
    for action in parent._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield command
                yield from commands(command)


def summaries(parent: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parent._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action._choices_actions


COMMANDS = [command for command in commands(parser()) if command.get_default("call")]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.prog)
def test_a_command_calls_a_function_that_takes_its_arguments(command: argparse.ArgumentParser) -> None:
    module, _, name = command.get_default("call").partition(".")
    function = getattr(importlib.import_module(f"harness.cli.{module}"), name)
    given = {action.dest for action in command._actions} - {"help"}
    parameters = inspect.signature(function).parameters.values()
    named = {one.name for one in parameters if one.kind is not inspect.Parameter.VAR_KEYWORD}
    grouped = {field for one in parameters for field in GROUPS.get(one.name, ())}
    assert named <= given
    assert given - named <= grouped


@pytest.mark.parametrize("command", [parser(), *commands(parser())], ids=lambda command: command.prog)
def test_help_fits_a_terminal(command: argparse.ArgumentParser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = command.format_help().splitlines()
    assert max(map(len, lines)) <= 80
    assert all(len(action.help or "") <= 64 for action in summaries(command))
