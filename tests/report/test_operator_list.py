"""A vendor's list of operators: read from two formats, and held against what a run shows."""

from pathlib import Path

import pytest

from harness.core.records.facts import Placement
from harness.core.records.record import ModelContent, Record
from harness.core.records.verdict import Verdict
from harness.core.text.errors import UsageError
from harness.report.pages.operator_list import EntryResult, ListEntry, compare_list, read_operator_list
from tests.kit import bare_record

LIST = """\
operator,opset,types,ranks,notes
Conv,11-,float32 float16,3 4,"groups of 1, only"
Abs,13,,,
Gone,,,,
"""
TOML = """\
[[operators]]
operator = "Conv"
opset = "11-"
types = ["float32", "float16"]
ranks = [3, 4]
notes = "groups of 1, only"
[[operators]]
operator = "Abs"
opset = 13
[[operators]]
operator = "Gone"
"""


def cell(
    name: str,
    verdict: Verdict,
    op: str,
    *,
    opset: int = 13,
    types: str = "float32",
    ranks: tuple[int, ...] = (4,),
) -> Record:
    placed = verdict not in (Verdict.FALLBACK, Verdict.UNSUPPORTED)
    ops = {op: 1}
    return bare_record(
        name,
        verdict,
        reason="the reason" if verdict is not Verdict.PASS else "",
        content=ModelContent(opsets={"ai.onnx": opset}, ops=ops, types=(types,), ranks=ranks),
        placement=Placement(
            ep_nodes=placed,
            cpu_nodes=not placed,
            ep_ops=ops if placed else {},
            cpu_ops={} if placed else ops,
            partitions=int(placed),
            source="assignment",
        ),
    )


def compared(entry: ListEntry, *records: Record) -> EntryResult:
    return compare_list([entry], records, "ep").entries[0]


def test_both_formats_mean_the_same(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text(LIST, encoding="utf-8")
    (tmp_path / "list.toml").write_text(TOML, encoding="utf-8")
    entries = read_operator_list(tmp_path / "list.csv")
    assert entries == read_operator_list(tmp_path / "list.toml")
    assert entries[0] == ListEntry(
        operator="Conv", opset="11-", types=("float32", "float16"), ranks=(3, 4), notes="groups of 1, only"
    )
    assert entries[1] == ListEntry(operator="Abs", opset="13")


@pytest.mark.parametrize(
    ("verdicts", "outcome"),
    [
        ([], "not tried"),
        ([Verdict.NO_GOLDEN, Verdict.UNAVAILABLE, Verdict.FOLDED], "not tried"),
        ([Verdict.PASS], "right"),
        ([Verdict.PASS, Verdict.FALLBACK], "partly"),
        ([Verdict.PASS, Verdict.PASS_PARTIAL], "partly"),
        ([Verdict.FALLBACK, Verdict.UNSUPPORTED], "not placed"),
        ([Verdict.PASS, Verdict.FALLBACK, Verdict.CRASH], "wrong"),
    ],
)
def test_an_entry_is_what_its_cells_show(verdicts: list[Verdict], outcome: str) -> None:
    found = compared(
        ListEntry(operator="Abs"), *(cell(f"m{i}", one, "Abs") for i, one in enumerate(verdicts))
    )
    assert found.outcome == outcome
    assert bool(found.reason) == (outcome not in ("right", "not tried"))


def test_an_entry_is_about_its_opsets_types_and_ranks_alone() -> None:
    records = [
        cell("right", Verdict.PASS, "Conv"),
        cell("old", Verdict.CRASH, "Conv", opset=10),
        cell("type", Verdict.CRASH, "Conv", types="float64"),
        cell("rank", Verdict.CRASH, "Conv", ranks=(1, 5)),
        cell("other", Verdict.CRASH, "Abs"),
    ]
    entry = ListEntry(operator="Conv", opset="11-13", types=("float32",), ranks=(3, 4))
    assert compared(entry, *records).outcome == "right"
    assert compared(ListEntry(operator="Conv", opset="11"), *records).outcome == "not tried"
    assert compared(ListEntry(operator="Conv"), *records).wrong == 3


def test_what_is_computed_without_an_entry_is_listed() -> None:
    records = [
        cell("listed", Verdict.PASS, "Abs"),
        cell("wider", Verdict.MISMATCH, "Abs", types="float16"),
        cell("more", Verdict.PASS, "Exp", opset=6),
        cell("left", Verdict.FALLBACK, "Log"),
        cell("old", Verdict.PASS, "Exp"),
    ]
    found = compare_list([ListEntry(operator="Abs", types=("float32",))], records, "ep")
    told = [(one.operator, one.opsets, one.types, one.cells, one.failed) for one in found.unlisted]
    assert told == [("Abs", (13,), ("float16",), 1, 1), ("Exp", (6, 13), ("float32",), 2, 0)]
    assert compare_list([], records, "another").unlisted == ()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "operator,opsett\nAbs,3\n", "line 2: unknown key 'opsett'"),
        ("a.csv", "operator,ranks\nAbs,many\n", "line 2: Expected `int`"),
        ("a.csv", "operator,opset\nAbs,3..5\n", "such as 13, 7- or 7-13"),
        ("a.csv", "operator,opset\n,13\n", "the operator is missing"),
        ("a.csv", "operator\n", "the list has no entry"),
        ("a.csv", "operator,opset\nAbs,1,2\n", "unknown key"),
        ("a.toml", "operators = 3", "expected a list of tables"),
        ("a.toml", "operators = [3]", "operators[0]: expected a table"),
        ("a.toml", "operator = []", "valid: operators"),
        ("a.toml", "[[operators]]\nopset = 3", "the operator is missing"),
        ("a.toml", "[[", "is no TOML file"),
    ],
)
def test_what_is_wrong_with_a_list_is_said_with_its_place(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        read_operator_list(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_operator_list(tmp_path / "none.csv")
