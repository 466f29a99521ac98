"""Arguments and help of all commands: each help fits a terminal, and names what `--help` of all says."""

import contextlib
import io
import os
import re
from collections.abc import Iterator
from typing import get_args
from unittest import mock

import pytest

from harness.cli.command_type import Aim
from harness.cli.commands import OWN_COMMANDS, own_command
from harness.cli.parser import full_parser

Words = tuple[str, ...]

PARSER = full_parser()
"""One for all: to build it takes longer than to ask it."""


def help_of(words: Words, columns: int) -> str:
    """What ``ep-harness WORDS --help`` prints on a terminal of this width."""
    printed = io.StringIO()
    with (
        mock.patch.dict(os.environ, COLUMNS=str(columns)),
        contextlib.redirect_stdout(printed),
        pytest.raises(SystemExit) as ended,
    ):
        PARSER.parse_args([*words, "--help"])
    assert ended.value.code == 0
    return printed.getvalue()


def summaries(words: Words) -> dict[str, str]:
    """The commands below a group, and what its help says about each."""
    return dict(re.findall(r"^    (\w[\w-]*) +(.*)$", help_of(words, 500), re.MULTILINE))


def commands() -> Iterator[Words]:
    """All commands, those of groups too."""
    for name in OWN_COMMANDS:
        yield (name,)
        yield from ((name, below) for below in summaries((name,)))


ALL = [(), *commands()]


def test_commands_are_found() -> None:
    """Else the test below looks at nothing."""
    assert {("run",), ("golden",), ("golden", "verify"), ("history", "add"), ("triage",)} <= set(ALL)


@pytest.mark.parametrize("words", ALL, ids=lambda words: " ".join(("ep-harness", *words)))
def test_help_fits_a_terminal(words: Words) -> None:
    assert max(map(len, help_of(words, 80).splitlines())) <= 80
    assert all(len(summary) <= 64 for summary in summaries(words).values())


def test_the_help_of_all_is_one_screen_with_every_command() -> None:
    page = help_of((), 80)
    assert len(page.splitlines()) <= 24
    begin, _, others = page.partition("\n\nFind the cause: ")
    assert len(re.findall(r"^  [a-z]+  +\w.*$", begin, re.MULTILINE)) == 8
    named = {
        *re.findall(r"^  ([a-z]+) ", begin, re.MULTILINE),
        *re.findall(r"[a-z-]+(?=,|$)", others, re.MULTILINE),
    }
    assert OWN_COMMANDS.keys() <= named


@pytest.mark.parametrize("name", OWN_COMMANDS)
def test_a_command_of_ours_is_registered_under_its_name(name: str) -> None:
    command = own_command(name)
    assert command.name == name
    assert command.aim in get_args(Aim)
    assert command.aim != "other"
    assert len(command.summary) <= 64
