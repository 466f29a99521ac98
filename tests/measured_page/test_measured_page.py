"""The page of the benchmarks: what a script prints gets into its places, with the machine of it."""

import re
from pathlib import Path

import pytest

from benchmarks.all import PAGE, STEPS
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


def test_a_whole_measurement_replaces_all_of_its_script() -> None:
    page = with_measured(PLACES, "one.py", read_printed(OUTPUT), "new", "2", whole=True)
    assert "| B | new |" in page
    assert "| A | old |" in page, "the other script was measured there"
    assert "Machine B, load 2.\n\n| x | y |" in page
    assert "Machine A" not in page
    assert "| seconds | at most 5 | 4.2 | `one.py` | B |" in page
    assert "| MB | at most 9 |" not in page
    assert "| others | at most 1 | 1 | `two.py` | A |" in page


def test_a_part_leaves_what_it_has_not_measured() -> None:
    part = Printed(("| x |", "|---|", "| 7 |"), (Limit("seconds", "at most 5", "1"),))
    page = with_measured(PLACES, "one.py", part, "new", "2", whole=False)
    page = with_measured(page, "one.py", part, "new", "3", whole=False)
    assert re.findall("Machine . , load|Machine ., load .", page) == [
        "Machine B, load 3",
        "Machine A, load 1",
    ]
    assert "| seconds | at most 5 | 1 | `one.py` | B |" in page
    assert "| MB | at most 9 | 8 | `one.py` | A |" in page


def test_a_machine_without_any_figure_left_is_not_listed() -> None:
    page = with_measured(PLACES, "one.py", read_printed(OUTPUT), "new", "2", whole=True)
    page = with_measured(
        page, "two.py", Printed((), (Limit("others", "at most 1", "0"),)), "new", "2", whole=True
    )
    assert "old" not in page


def test_scripts_with_their_machines() -> None:
    page = with_steps(PLACES, ("script", "minutes"), [("`one.py`", "3"), ("`new.py`", "1")])
    assert "| `one.py` | 3 | A |" in page
    assert "| `new.py` | 1 | ? |" in page


def test_a_page_without_a_place_for_limits_is_an_error() -> None:
    with pytest.raises(ValueError, match="no place <!-- machines -->"):
        with_measured("# Page", "one.py", read_printed(OUTPUT), "new", "2", whole=True)


def test_every_place_of_the_page_belongs_to_a_script() -> None:
    page = PAGE.read_text(encoding="utf-8")
    names = {step.name for step in STEPS}
    assert set(re.findall("<!-- measured: (.*?) -->", page)) <= names
    for name in names:
        again = with_measured(page, name, read_printed(OUTPUT), "new", "2", whole=True)
        assert f"| `{name}` |" in again


def test_every_script_exists() -> None:
    folder = PAGE.parents[2] / "benchmarks"
    for step in STEPS:
        first, *rest = step.command.split()
        path = Path(*rest[0].split("."), "__main__.py") if first == "-m" else Path("benchmarks", first)
        assert (folder.parent / path).is_file(), step.name


def test_a_chart_of_rows() -> None:
    rows = [
        "| cells | step | wall |",
        "|---|---:|---:|",
        "| 2,000 | run | 1.5 s |",
        "| 20,000 | run | 15 s |",
        "| 2,000 | once | 1 s |",
    ]
    series = series_of(rows, "step", "cells", "wall", {})
    assert series == {"run": [(2000, 1.5), (20000, 15)]}
    drawn = chart("Growth", "cells", "s", series)
    assert drawn.count("<circle") == 2
    assert ">20,000</text>" in drawn
