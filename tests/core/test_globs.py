"""The one matcher of globs. With tries, 40 stars would take longer than the sun lasts."""

import fnmatch
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness.core.text.globs import MOST_LENGTH, glob_matcher, only_stars

STARS = "*a" * 40 + "b"
TEXT = "a" * 400


@pytest.mark.parametrize(
    "glob", [STARS, "*" * 40 + "b", "*?" * 40 + "b", "*[ab]" * 40 + "c", "a*" * 40 + "b"]
)
def test_forty_stars_take_no_time(glob: str) -> None:
    matches = glob_matcher(("x", glob))
    assert not matches(TEXT)
    assert matches(TEXT + glob[-1])


@given(st.text("ab*?[]", max_size=8), st.text("ab*?[]", max_size=8))
def test_where_stars_alone_are_special(glob: str, text: str) -> None:
    pattern = ".*".join(map(re.escape, glob.split("*")))
    assert glob_matcher((only_stars(glob),))(text) == bool(re.fullmatch(pattern, text))


def test_what_is_longer_than_any_name_matches_nothing() -> None:
    assert not glob_matcher(("*" * (MOST_LENGTH + 1),))("a")
    assert glob_matcher(("*" * (MOST_LENGTH + 1), "a"))("a")


def test_nothing_else_makes_expressions_of_globs() -> None:
    package = Path(harness.__file__).parent
    users = {path.name for path in package.rglob("*.py") if "import fnmatch" in path.read_text("utf-8")}
    assert users == {"globs.py"}
    assert fnmatch.translate("*a*b").count("(?>") == 1, "Python's own expressions try nothing twice"
