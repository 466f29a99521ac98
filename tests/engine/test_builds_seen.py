"""Digests of libraries: kept between runs, and two builds in one run refused."""

from pathlib import Path

import pytest

from harness.core.text.errors import UsageError
from harness.engine.tasks.configuration import Configuration
from harness.engine.workers.builds_seen import BuildsSeen
from harness.plan.target import Runtime

HERE = Configuration(runtime=Runtime(), plugin="/opt/libep.so", providers=("EP",))
BOARD = Configuration(runtime=Runtime(ssh="board"), plugin="/opt/libep.so", providers=("EP",))
FILES = {"/opt/libep.so": ("7 1 1 1", "a" * 64), "/opt/libnew.so": ("", "b" * 64)}


def test_digests_are_kept_for_the_next_run_unless_their_state_is_not_trusted(tmp_path: Path) -> None:
    seen = BuildsSeen(tmp_path)
    assert seen.known(HERE, "") == {}
    seen.learn("ep", HERE, "", FILES)
    kept = {"/opt/libep.so": FILES["/opt/libep.so"]}
    assert seen.known(HERE, "") == kept
    assert BuildsSeen(tmp_path).known(HERE, "") == kept
    other = Configuration(runtime=Runtime(python="/opt/python"), plugin=HERE.plugin, providers=HERE.providers)
    assert BuildsSeen(tmp_path).known(other, "") == {}


def test_what_is_elsewhere_is_kept_for_the_run(tmp_path: Path) -> None:
    seen = BuildsSeen(tmp_path)
    seen.learn("ep", BOARD, "", FILES)
    assert "/opt/libep.so" in seen.known(BOARD, "")
    assert BuildsSeen(tmp_path).known(BOARD, "") == {}
    assert [*tmp_path.iterdir()] == []


def test_a_library_that_is_replaced_during_a_run_ends_it(tmp_path: Path) -> None:
    seen = BuildsSeen(tmp_path)
    seen.learn("ep", HERE, "", FILES)
    seen.learn("ep", HERE, "", FILES)
    rebuilt = {"/opt/libep.so": ("7 2 2 1", "c" * 64)}
    seen.learn("ep", BOARD, "", rebuilt)  # another machine
    with pytest.raises(UsageError) as error:
        seen.learn("ep", HERE, "", rebuilt)
    assert str(error.value).splitlines()[0] == (
        "target ep: libep.so was replaced during the run (sha256 aaaaaaaaaaaa... -> cccccccccccc...): "
        "cells would be of two builds"
    )


@pytest.mark.parametrize("content", [b"", b"{", b'{"a": 1}', b"\xff", b'{"a\x80": ["b", "c"]}'])
def test_a_damaged_entry_of_the_cache_costs_nothing_but_time(tmp_path: Path, content: bytes) -> None:
    seen = BuildsSeen(tmp_path)
    seen.learn("ep", HERE, "", FILES)
    (entry,) = tmp_path.iterdir()
    entry.write_bytes(content)
    assert BuildsSeen(tmp_path).known(HERE, "") == {}
