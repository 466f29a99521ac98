"""What was measured becomes a table, and the table a page."""

import tomllib
from typing import Any

import msgspec

from benchmarks.reference_trust.measure import Result
from benchmarks.reference_trust.page import PAGE, page_of
from benchmarks.reference_trust.table import table_of, toml_of
from harness.golden.trust import Checked, Trust, shipped_trust


def result(status: str, **more: Any) -> Result:
    given: dict[str, Any] = {"op_type": "Relu", "since": 14, "dtype": "float32", "elements": 4} | more
    return Result(domain="", status=status, **given)


def relu(*results: Result) -> Checked:
    trust = table_of(results, 5)
    return next(one for one in trust.operators if one.key == ("", "Relu", 14))


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


def test_every_operator_version_has_a_row() -> None:
    keys = {one.key for one in table_of([], 0).operators}
    assert keys == {one.key for one in shipped_trust().operators}


def test_the_table_survives_being_written() -> None:
    trust = table_of([AGREES, AGREES, differs("cpu", about={"mode": 'a "b"'}, by=None)], 5)
    assert msgspec.convert(tomllib.loads(toml_of(trust)), Trust) == trust


def test_the_page_is_that_of_the_shipped_table() -> None:
    assert PAGE.read_text("utf-8") == page_of(shipped_trust())
