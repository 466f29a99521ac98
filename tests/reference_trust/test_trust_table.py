"""What was measured becomes a table, and the table a page."""

import re
import tomllib
from typing import Any

from benchmarks.reference_trust.checked import Checked, table_of
from benchmarks.reference_trust.measure import Result
from benchmarks.reference_trust.page import PAGE, page_of
from benchmarks.reference_trust.table import toml_of
from harness.golden.trust import shipped_trust


def result(status: str, **more: Any) -> Result:
    given: dict[str, Any] = {"op_type": "Relu", "since": 14, "dtype": "float32", "elements": 4} | more
    return Result(domain="", status=status, **given)


def relu(*results: Result) -> Checked:
    trust = table_of(results, 5)
    return next(one for one in trust.operators if (one.name, one.since) == ("Relu", 14))


def differs(right: str, **more: Any) -> Result:
    return result("differs", **({"right": right, "by": 0.5, "how": "formula"} | more))


AGREES = result("agrees")


def test_two_checks_that_agree_are_enough() -> None:
    assert relu().standing == "not checked"
    assert relu(AGREES).standing == "not checked"
    assert relu(AGREES, AGREES).standing == "agrees"
    assert relu(AGREES, AGREES, result("raises")).standing == "agrees"
    assert relu(AGREES, result("agrees", elements=0)).standing == "not checked"
    assert relu(result("raises")).standing == "raises"
    assert relu(result("refused"), result("undefined")).standing == "not checked"


def test_a_difference_counts_unless_the_reference_is_right() -> None:
    for right in ("cpu", "neither", "open"):
        assert relu(AGREES, AGREES, differs(right)).standing == "disagrees"
    assert relu(AGREES, AGREES, differs("reference")).standing == "agrees"
    assert relu(AGREES, differs("both")).standing == "agrees"


def test_a_finding_names_what_its_checks_share() -> None:
    agrees = result("agrees", about={"p": "2", "axis": "1"})
    one = differs("cpu", about={"p": "1", "axis": "1"}, by=0.25)
    other = differs("cpu", about={"p": "1", "axis": "0"}, dtype="float64")
    (finding,) = relu(agrees, one, other).findings
    assert (finding.where, finding.checks, finding.by) == ("p = 1", 2, 0.5)
    assert finding.types == ("float32", "float64")


def test_a_difference_in_one_type_does_not_count_against_the_other() -> None:
    only_double = differs("cpu", dtype="float64")
    assert relu(AGREES, AGREES, only_double).is_right_in("float32")
    assert not relu(AGREES, AGREES, only_double).is_right_in("float64")
    assert not relu(AGREES, AGREES, differs("cpu", dtype="")).is_right_in("float32")
    assert not relu(AGREES, only_double, differs("open")).is_right_in("float32")
    assert not relu(result("raises")).is_right_in("float32")


def test_the_table_lists_what_the_reference_is_right_for() -> None:
    trust = table_of([AGREES, AGREES, differs("cpu", dtype="float64")], 5)
    written = tomllib.loads(toml_of(trust))
    assert (written["float32"], written["float64"]) == ({"Relu": [14]}, {})


def test_the_page_names_where_they_differ() -> None:
    page = page_of(table_of([AGREES, AGREES, differs("cpu", about={"mode": "a|b"})], 5))
    assert "| Relu | 14 | mode = a\\|b | float32 | 0.5 | 1 | CPU EP | formula |" in page


def test_the_shipped_page_and_the_shipped_table_are_of_one_check() -> None:
    trust = shipped_trust()
    text = PAGE.read_text("utf-8")
    assert f"Checked: onnx {trust.onnx} with" in text
    every = text.partition("## Every operator")[2]
    standings = {
        (name, int(since)): standing
        for name, versions in re.findall(r"^\| (\S+) \| (\d.*) \|$", every, re.MULTILINE)
        for since, standing in (version.split(": ") for version in versions.split("; "))
    }
    assert len(standings) > 500
    listed = [
        {(name, since) for name, all_of in versions.items() for since in all_of}
        for versions in (trust.float32, trust.float64)
    ]
    agree = {key for key, standing in standings.items() if standing.endswith(" agree")}
    disagree = {key for key, standing in standings.items() if standing == "**disagrees**"}
    assert agree == listed[0] & listed[1] - disagree
    assert listed[0] | listed[1] <= agree | disagree
