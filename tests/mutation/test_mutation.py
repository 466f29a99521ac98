"""A few mutations of each kind of input that others write; ``tox -e mutation`` makes some for ten minutes."""

import os
import random
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from benchmarks.mutation.attempt import Attempt
from benchmarks.mutation.command import tally
from benchmarks.mutation.commands import Commands, Ended, commands
from benchmarks.mutation.kinds import KINDS

pytestmark = [
    pytest.mark.real_ep,
    pytest.mark.skipif(os.name != "posix", reason="each command is a fork"),
]

COUNTS = {
    "models": 2,
    "data sets": 2,
    "bundles": 4,
    "submissions": 6,
    "run folders": 8,
    "matrices": 12,
    "agents": 2,
    "caches": 2,
}
"""A few seconds of a processor for each."""


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    with commands(tmp_path_factory.mktemp("commands")) as made:
        yield made


def test_each_kind_has_a_number() -> None:
    assert COUNTS.keys() == KINDS.keys()


@pytest.mark.parametrize("kind", COUNTS)
def test_what_others_write_costs_nothing_but_itself(kind: str, given: Commands, tmp_path: Path) -> None:
    found = tally(kind, tmp_path, given, seed=46, count=COUNTS[kind])
    assert found.problems == {}
    assert found.attempts == COUNTS[kind]


def test_a_command_tells_how_it_ended(given: Commands, tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text("schema = 1\n", encoding="utf-8")
    ended = given.run(("list", "m.toml"), tmp_path)
    assert ended.code == 2
    assert ended.peak_mib > 10
    assert ended.err.startswith("ep-harness: m.toml: ")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, []),
        ({"code": None}, ["list: a hang"]),
        ({"code": -11}, ["list: exit code -11; "]),
        (
            {"err": "Traceback (most recent call last):"},
            ["list: a traceback; Traceback (most recent call last):"],
        ),
        ({"processor_s": 61.0}, ["list: 61 s of a processor"]),
        ({"peak_mib": 1025.0}, ["list: 1025 MiB"]),
    ],
)
def test_what_no_command_may_do_is_noted(changes: dict[str, Any], words: list[str], tmp_path: Path) -> None:
    usual = Ended(code=1, out="", err="", processor_s=1.0, peak_mib=100.0)
    stand_in: Any = SimpleNamespace(run=lambda *_, **__: msgspec.structs.replace(usual, **changes))
    made = Attempt(random.Random(0), tmp_path, stand_in)  # noqa: S311 - nobody is to be fooled
    made.run("list", "m.toml")
    assert made.problems == words
