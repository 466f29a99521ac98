"""Waivers: each fault with its line."""

import datetime as dt
from pathlib import Path

import msgspec
import pytest

from harness.annex.conformance.submission import Waiver
from harness.annex.conformance.waivers import covers, load_waivers
from harness.core.text.errors import UsageError

LABELS = ("a/x", "a/y io_binding")
GOOD = '[[waiver]]\ncase = "a/*"\nissue = "https://example.org/1"\nexpires = 2027-03-31\nwords = "Known."\n'


def written(folder: Path, text: str) -> Path:
    path = folder / "waivers.toml"
    path.write_text(text)
    return path


def test_a_file_is_read(tmp_path: Path) -> None:
    (waiver,) = load_waivers(written(tmp_path, GOOD), LABELS)
    assert waiver == Waiver(
        case="a/*", issue="https://example.org/1", expires=dt.date(2027, 3, 31), words="Known."
    )
    assert all(covers(waiver, label) for label in LABELS)
    assert not covers(waiver, "b/x")


def test_forty_stars_take_no_time_and_nothing_else_is_special(tmp_path: Path) -> None:
    waiver = Waiver(case="*a" * 40 + "b", issue="", expires=dt.date(2027, 3, 31), words="")
    assert not covers(waiver, "a" * 400)
    assert covers(msgspec.structs.replace(waiver, case="a/?[x]*"), "a/?[x] io_binding")
    assert not covers(msgspec.structs.replace(waiver, case="a/?[x]*"), "a/bx")
    with pytest.raises(UsageError, match="no case is named"):
        load_waivers(written(tmp_path, GOOD.replace('"a/*"', f'"{waiver.case}"')), ("a" * 400,))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"a/*"', '"b/*"', "no case is named 'b/*'"),
        ('"https://example.org/1"', '"#1"', "issue is no URL"),
        ("2027-03-31", '"soon"', "expires"),
        ('"Known."', '" "', "words are empty"),
        ('words = "Known."\n', "", "words"),
        ('words = "', 'owner = "me"\nwords = "', "there is no key 'owner'"),
    ],
)
def test_a_fault_is_told_with_its_line(tmp_path: Path, old: str, new: str, told: str) -> None:
    with pytest.raises(UsageError) as error:
        load_waivers(written(tmp_path, GOOD + "\n" + GOOD.replace(old, new)), LABELS)
    assert "waivers.toml: line 7: " in str(error.value)
    assert told in str(error.value)


@pytest.mark.parametrize("text", ["", "[waiver]\n", "waiver = 1\n", GOOD + "[other]\n"])
def test_only_waivers_are_expected(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="expected"):
        load_waivers(written(tmp_path, text), LABELS)
