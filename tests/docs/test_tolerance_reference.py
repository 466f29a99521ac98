"""The published table of tolerances is the one in the code."""

import re
from pathlib import Path

import pytest

from harness.core.comparison.noise_limits import DEFAULT_LIMITS
from harness.core.comparison.output_metrics import LOST
from harness.core.comparison.tolerance import DEFAULTS, EXACT, FLOORS, Tolerance, default_tolerance
from harness.core.records.verdict import Verdict
from harness.core.values.value import DTYPES
from harness.core.verdicts.judge_output import FAR_FROM_CPU
from harness.core.verdicts.missing import SHIPPED_POLICIES
from harness.core.verdicts.precise import LIMITS, MAX_FACTOR
from harness.core.verdicts.rules import RULE_WORDS
from harness.plan.tolerance_entry import policy_of
from harness.plan.tolerance_policy import load_policy

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "tolerances.md").read_text("utf-8")


def rows(heading: str, columns: str) -> dict[str, list[str]]:
    """First cell -> the others, of the first table with these columns below a heading."""
    part = PAGE.partition(f"## {heading}\n")[2]
    lines = part.partition(f"| {columns}")[2].split("\n\n")[0].splitlines()[2:]
    table = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines]
    return {first: rest for first, *rest in table}


def test_the_table_is_that_of_the_code() -> None:
    published = rows("The built-in table", "computing precision |")
    given = {
        name: Tolerance(*(float(number) for number in cells[0].split(", ")))
        for name, cells in published.items()
    }
    assert given == DEFAULTS
    assert {cells[1] for cells in published.values()} == {"exact"}
    floors = rows("The built-in table", "computes in |")
    assert {computes: at for computes, (at,) in floors.items()} == FLOORS


def test_every_rule_has_its_row_in_the_order_in_which_it_is_tried() -> None:
    published = rows("The order in which a verdict is found", "rule |")
    assert [(name, said) for name, (said, _) in published.items()] == list(RULE_WORDS.items())
    named = {word for _, words in published.values() for word in re.findall(r"[a-z_]+", words)}
    assert named & set(Verdict) >= {
        *set(Verdict) - {Verdict.NOT_RUN, Verdict.UNCLEAN_EXIT},  # that is of a target
    } - {Verdict.SHAPE_MISMATCH, Verdict.DTYPE_MISMATCH, Verdict.NAN_MISMATCH, Verdict.MISMATCH}


@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_every_element_type_stands_in_its_column(dtype: str) -> None:
    tolerant, exact = re.findall(r"\| computing precision \| (.*?) \| (.*?) \|", PAGE)[0]
    kinds = {
        "uint": "integers",
        "int": "integers",
        "float8": "float8",
        "float4": "float4",
        "complex": "complex",
    }
    named = next((word for start, word in kinds.items() if dtype.startswith(start)), dtype)
    column = exact if default_tolerance(dtype, "float32") == EXACT else tolerant
    assert named in column.split(", ")


def test_the_limits_of_noise_are_those_of_the_code() -> None:
    assert (
        f"`noise = {{ rms = {DEFAULT_LIMITS.rms:g}, max = {DEFAULT_LIMITS.max:g} }}` are the defaults" in PAGE
    )


def test_the_limits_of_converted_models_are_those_of_the_code() -> None:
    page = " ".join(PAGE.split())
    assert f"its error is no more than {FAR_FROM_CPU:g} times what the precision costs" in page
    others = {limit for precision, limit in LIMITS.items() if precision != "float16"}
    assert (others, MAX_FACTOR, LOST) == ({2.0}, 2.0, 0.5)
    assert f"at most 2 times the CPU provider's error, at float16 {LIMITS['float16']:g} times" in page
    assert "off by more than twice that times the CPU provider's worst" in page
    assert "If the CPU provider itself is off by more than half" in page


def test_shipped_policies_are_what_the_page_says() -> None:
    published = {cells[-1]: cells[0] for cells in rows("What others use", "source |").values() if cells[-1]}
    files = {path.stem: path for path in (ROOT / "matrices" / "policies").glob("*.toml")}
    assert published.keys() == files.keys()
    for name, path in files.items():
        (entry,) = load_policy(path)
        if entry.noise is not None:
            assert (published[name], entry.noise) == ("noise = {}", DEFAULT_LIMITS)
        elif entry.fixed is None:
            assert (name, entry.table_only) == ("default", False)
        else:
            rtol, atol = map(float, published[name].split(", "))
            assert entry.fixed == Tolerance(rtol=rtol, atol=atol)


def test_the_usual_policies_are_those_that_are_shipped() -> None:
    shipped = [
        policy_of(entry, "float32", converted=False)
        for path in (ROOT / "matrices" / "policies").glob("*.toml")
        for entry in load_policy(path)
    ]
    assert sorted(map(repr, shipped)) == sorted(map(repr, SHIPPED_POLICIES))
