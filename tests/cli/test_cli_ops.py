"""`ep-harness ops` as people call it."""

import json

import pytest

from harness.cli.main import main
from harness.operators.book import ROWS


def test_an_operator_is_told_with_meaning_and_source_of_each_fact(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "Tan"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("Tan (elementwise)\n  The poles are at 1.57.\n  units: 2.5\n")
    assert "  values: input 0: -1.2 to 1.2\n" in told
    assert "Source: OpenCL C specification" in told


def test_a_name_without_a_domain_finds_all_its_operators(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "Gelu"]) == 0
    heads = [line for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]
    assert heads == ["Gelu (elementwise)", "com.microsoft.Gelu (elementwise)"]


def test_an_operator_with_nothing_special_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "com.microsoft.Irfft"]) == 0
    assert capsys.readouterr().out == "com.microsoft.Irfft (contrib)\n  nothing special: it rounds once\n"


def test_json_has_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "com.microsoft.Gelu", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert told["operators"] == ["com.microsoft.Gelu"]
    assert told["facts"]["units"]["value"] == "4"
    assert told["facts"]["from_one"]["value"] is True


def test_without_a_name_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Abs: exact, ")
    assert sum(not line.startswith(" ") for line in lines) == len(ROWS)


def test_an_unknown_operator_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "Gelo"]) == 2
    assert "no operator 'Gelo'" in (told := capsys.readouterr().err)
    assert "did you mean 'Gelu'?" in told
