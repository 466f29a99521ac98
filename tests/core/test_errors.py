"""The errors that a person sees."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.text.errors import HarnessError, Problem, UsageError, one_line, valid_names


def test_a_usage_error_lists_every_problem() -> None:
    error = UsageError(
        Problem(where="m.toml: target[0].name", what="is missing"),
        Problem(where="m.toml: axes", what="'precison' is unknown", hint="did you mean 'precision'?"),
    )
    assert str(error).splitlines() == [
        "m.toml: target[0].name: is missing",
        "m.toml: axes: 'precison' is unknown",
        "    did you mean 'precision'?",
    ]
    assert [problem.where for problem in error.problems] == ["m.toml: target[0].name", "m.toml: axes"]
    with pytest.raises(HarnessError):
        raise error


@given(st.text(), st.integers(1, 50))
def test_one_line_is_one_line_within_its_limit(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert len(line.splitlines()) <= 1


def test_one_line_marks_what_it_cut() -> None:
    assert one_line("a\n  b\tc") == "a b c"
    assert one_line("abcdef", 4) == "ab…f"


def test_valid_names_puts_the_nearest_first() -> None:
    assert valid_names("precison", ["scenario", "precision"]) == (
        "did you mean 'precision'? valid: scenario, precision"
    )
    assert valid_names("x", []) == "valid: none"
    assert valid_names("zzz", map(str, range(10)), limit=2) == "valid: 0, 1, … (10 in all)"
