"""The table of commands: each names a function that takes its arguments, and its help fits a terminal."""

import contextlib
import importlib
import inspect
import io
import os
import re
from collections.abc import Iterator
from unittest import mock

import pytest

from harness.cli.arguments.parser import parser
from harness.cli.check import Checked
from harness.cli.conform import Asked
from harness.cli.fuzz import Wanted
from harness.cli.results import Months
from harness.cli.selection import Selection
from harness.cli.targets import Request
from harness.triage.triage import TriageSettings

GROUPS = {
    "selection": Selection.__struct_fields__,
    "request": Request.__struct_fields__,
    "settings": TriageSettings.__struct_fields__,
    "wanted": tuple(Wanted.__annotations__),
    "asked": Asked.__struct_fields__,
    "checked": tuple(Checked.__annotations__),
    "months": tuple(Months.__annotations__),
}
OF_CALLERS = {"told"}
"""Parameters for callers in Python: `conform` keeps what a run prints."""
Words = tuple[str, ...]

PARSER = parser()
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
    """The commands below a command, and what its help says about each."""
    return dict(re.findall(r"^    (\w[\w-]*) +(.*)$", help_of(words, 500), re.MULTILINE))


def commands(words: Words = ()) -> Iterator[Words]:
    """All commands, those of groups too."""
    for name in summaries(words):
        yield (*words, name)
        yield from commands((*words, name))


def required(words: Words) -> list[str]:
    """A value for each argument that a command cannot do without, according to its usage."""
    usage = help_of(words, 500).partition("\n\n")[0].partition(": ep-harness")[2]
    while "[" in usage:
        usage = re.sub(r"\[[^\[\]]*\]", "", usage)
    usage = re.sub(r"\(([^|()]*)\|[^()]*\)", r"\1", usage)
    return [word if word.startswith("--") else "x" for word in usage.split()[len(words) :]]


ALL = [(), *commands()]
RUNNING = [words for words in ALL if words and not summaries(words)]


def test_commands_are_found() -> None:
    """Else the tests below look at nothing."""
    assert {("run",), ("golden",), ("golden", "verify"), ("history", "add"), ("triage",)} <= set(ALL)
    assert required(("report",)) == ["--out", "x", "x"]


@pytest.mark.parametrize("words", RUNNING, ids=" ".join)
def test_a_command_calls_a_function_that_takes_its_arguments(words: Words) -> None:
    given = vars(PARSER.parse_args([*words, *required(words)]))
    module, _, name = given.pop("call").partition(".")
    function = getattr(importlib.import_module(f"harness.cli.{module}"), name)
    parameters = inspect.signature(function).parameters.values()
    named = {one.name for one in parameters if one.kind is not inspect.Parameter.VAR_KEYWORD} - OF_CALLERS
    grouped = {field for one in parameters for field in GROUPS.get(one.name, ())}
    assert named <= given.keys()
    assert given.keys() - named <= grouped


@pytest.mark.parametrize("words", ALL, ids=lambda words: " ".join(("ep-harness", *words)))
def test_help_fits_a_terminal(words: Words) -> None:
    assert max(map(len, help_of(words, 80).splitlines())) <= 80
    assert all(len(summary) <= 64 for summary in summaries(words).values())
