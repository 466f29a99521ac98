"""The pages of the benchmarks: what a script prints gets into its places, with the machine of it."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.all import PAGES, Step
from benchmarks.growth_chart import chart, series_of
from benchmarks.measured_page import Limit, Printed, read_printed, with_measured, with_steps

PLACES = """# Page
<!-- limits -->

| limit | wanted | measured | script | machine |
|---|---|---|---|---|
| seconds | at most 5 | 3 | `one.py` | A |
| MB | at most 9 | 8 | `one.py` | A |
| others | at most 1 | 1 | `two.py` | A |

<!-- end -->
<!-- steps -->
<!-- end -->
<!-- machines -->

| machine | |
|---|---|
| A | old |

<!-- end -->
<!-- measured: one.py -->

Machine A, load 1.

| x |
|---|
| old |

<!-- end -->
"""
OUTPUT = """progress
| x | y |
|---|---|
| 1 | 2 |
between
| z |
|---|
| 3 |
seconds: 4.2, at most 5 wanted: met
MB at most: 1e+03, at least 2 wanted: MISSED
"""


def test_rows_and_limits_of_an_output() -> None:
    printed = read_printed(OUTPUT)
    assert printed.rows == ("| x | y |", "|---|---|", "| 1 | 2 |", "", "| z |", "|---|", "| 3 |")
    assert printed.limits == (
        Limit("seconds", "at most 5", "4.2"),
        Limit("MB at most", "at least 2", "missed: 1e+03"),
    )


def test_a_measurement_replaces_all_of_its_script() -> None:
    page = with_measured(PLACES, "one.py", read_printed(OUTPUT), "new", "2")
    assert "| B | new |" in page
    assert "| A | old |" in page, "the other script was measured there"
    assert "Machine B, load 2.\n\n| x | y |" in page
    assert "Machine A" not in page
    assert "| seconds | at most 5 | 4.2 | `one.py` | B |" in page
    assert "| MB | at most 9 |" not in page
    assert "| others | at most 1 | 1 | `two.py` | A |" in page


def test_a_machine_without_any_figure_left_is_not_listed() -> None:
    page = with_measured(PLACES, "one.py", read_printed(OUTPUT), "new", "2")
    page = with_measured(page, "two.py", Printed((), (Limit("others", "at most 1", "0"),)), "new", "2")
    assert "old" not in page


def test_scripts_with_their_machines() -> None:
    page = with_steps(PLACES, ("script", "minutes"), [("`one.py`", "3"), ("`new.py`", "1")])
    assert "| `one.py` | 3 | A |" in page
    assert "| `new.py` | 1 | ? |" in page


def test_a_page_without_a_place_for_limits_is_an_error() -> None:
    with pytest.raises(ValueError, match="no place <!-- machines -->"):
        with_measured("# Page", "one.py", read_printed(OUTPUT), "new", "2")


@pytest.mark.parametrize(("page", "steps"), PAGES.values(), ids=PAGES)
def test_every_place_of_a_page_belongs_to_a_script(page: Path, steps: Sequence[Step]) -> None:
    text = page.read_text(encoding="utf-8")
    names = {step.name for step in steps}
    assert set(re.findall("<!-- measured: (.*?) -->", text)) <= names
    for name in names:
        assert f"| `{name}` |" in with_measured(text, name, read_printed(OUTPUT), "new", "2")


def test_every_script_exists() -> None:
    root = Path(__file__).resolve().parents[2]
    for step in (step for _, steps in PAGES.values() for step in steps):
        first, *rest = step.command.split()
        path = Path(*rest[0].split("."), "__main__.py") if first == "-m" else Path("benchmarks", first)
        assert (root / path).is_file(), step.name


def test_a_chart_of_rows() -> None:
    rows = [
        "| cells | step | wall |",
        "|---|---:|---:|",
        "| 2,000 | run | 1.5 s |",
        "| 20,000 | run | 15 s |",
        "",
        "| 2,000 | once | 1 s |",
    ]
    series = series_of(rows, "step", "cells", "wall", {})
    assert series == {"run": [(2000, 1.5), (20000, 15)]}
    drawn = chart("Growth", "cells", "s", series)
    assert drawn.count("<circle") == 2
    assert ">20,000</text>" in drawn
