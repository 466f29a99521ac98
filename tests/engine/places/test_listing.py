"""Places from a file and from a command."""

import json
import sys
from pathlib import Path

import pytest

from harness.core.text.errors import UsageError
from harness.places.place_list import list_places
from harness.plan.places import Place, Places

BOARDS = [
    {"name": "board-1", "ssh": "user@board-1", "env": {"N": 1}},
    {"name": "board-2", "command": "python3"},
]
READ = (Place(name="board-1", ssh="user@board-1", env={"N": "1"}), Place(name="board-2", command="python3"))


def test_a_file_lists_places(tmp_path: Path) -> None:
    (tmp_path / "places.json").write_text(json.dumps(BOARDS), encoding="utf-8")
    assert list_places(Places(file=str(tmp_path / "places.json")), "npu") == READ


def test_a_command_lists_places(tmp_path: Path) -> None:
    command = (sys.executable, "-S", "-c", f"print({json.dumps(BOARDS)!r})")
    assert list_places(Places(list=command, folder=str(tmp_path)), "npu") == READ


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nothing", "it is no JSON"),
        ("[]", "got 0 places"),
        ("{}", "expected a list of tables"),
        ('[{"ssh": "x"}]', "the key 'name' is missing"),
        ('[{"name": "a", "sh": "x"}]', "unknown key"),
        ('[{"name": "a/../b c", "ssh": "x"}]', "expected a unique name of up to 63 letters"),
        ('[{"name": "a"}, {"name": "a"}]', "another place has the name 'a'"),
        ('[{"name": "a", "ssh": "x", "command": "y"}]', "exclude each other"),
        ("[" * 100000, "it is no JSON"),
    ],
)
def test_what_is_no_list_of_places_is_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "places.json").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=told):
        list_places(Places(file=str(tmp_path / "places.json")), "npu")


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("/nowhere/list",), "it cannot be started"),
        ((sys.executable, "-S", "-c", "raise SystemExit('no inventory')"), "no inventory"),
        ((sys.executable, "-S", "-c", "import time; time.sleep(60)"), "did not end within 0.5 s"),
    ],
)
def test_a_command_that_fails_is_told(tmp_path: Path, command: tuple[str, ...], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        list_places(Places(list=command, limit_s=0.5, folder=str(tmp_path)), "npu")


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        list_places(Places(file=str(tmp_path / "none.json")), "npu")
