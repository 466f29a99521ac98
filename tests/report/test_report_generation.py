"""The page *Generation*: what it shows is what the records say, however hostile or large they are."""

import csv
import html
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.core.records.generation_figures import Generated, GenerationFigures, GenerationSpeed
from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.report.cells import paging
from harness.report.cells.failing_ways import decisive
from harness.report.drawings.kl_curve import MOST_POINTS, kl_curve
from harness.report.pages import generation as module
from harness.report.pages.generation import GenerationPage, generation_pages
from harness.report.report_files import write_report
from harness.report.view import build_report
from tests.kit import merged, read_rows, record, write_run

HOSTILE = "</svg><script>alert(1)</script><img src=x onerror=alert(1)>\"' \x1b[31m\x07\u202e {{ 7 * 7 }}"
GENERATES = {"scenario": "generate"}
RIGHT = Generated(
    way="at_once",
    positions=4,
    kl=(0.0, 1e-9, 3e-10, 2e-9),
    top1=1.0,
    top5=1.0,
    top10=0.9996,
    noise=1.31,
    perplexity=12.3456,
    golden_perplexity=12.3457,
)
LATE = Generated(
    way="chunks",
    positions=4,
    kl=(1e-10, 1e-9, 1e-9, 0.5),
    top1=0.75,
    top5=0.75,
    top10=0.75,
    noise=8123.4,
    first_bad=3,
    perplexity=99.0,
    golden_perplexity=12.3457,
)
EARLY = Generated(
    way="step",
    positions=4,
    kl=(1e-10, 0.25, None, 0.125),
    top1=0.0,
    top5=None,
    top10=0.5,
    first_bad=2,
    first_cache="present.1.key",
    cache_from=1,
    golden_perplexity=12.3457,
)
UNEQUAL = GenerationFigures(
    ways=(RIGHT, LATE, EARLY),
    declined={"shared_buffer": "past and present differ in shape"},
    disagreements=("step differs from at_once from position 2 on",),
    text=(5, 6, 7, 8),
    golden_text=(5, 6, 9, 9, 9),
)
EQUAL = GenerationFigures(ways=(RIGHT,), text=(5, 6), golden_text=(5, 6))


@pytest.fixture
def pages_of() -> Callable[[list[Record]], list[GenerationPage]]:
    return lambda records: list(generation_pages(build_report(merged(records), lambda *_: "", {})))


PagesOf = Callable[[list[Record]], list[GenerationPage]]


def generating(model: str, target: str = "npu", verdict: Verdict = Verdict.PASS, **fields: Any) -> Record:
    return record(model, verdict, target=target, suite="generate", axes=GENERATES, **fields)


@pytest.mark.parametrize(
    ("ways", "name"),
    [
        ((RIGHT, LATE, EARLY), "step"),
        ((RIGHT, LATE), "chunks"),
        ((LATE, Generated(way="cache only", positions=4, first_cache="k", cache_from=0)), "cache only"),
        ((RIGHT, Generated(way="farther", positions=4, kl=(1e-3,))), "farther"),
        (
            (Generated(way="nan", positions=1, kl=(None,)), Generated(way="far", positions=1, kl=(9.0,))),
            "nan",
        ),
        ((RIGHT, Generated(way="same", positions=4, kl=RIGHT.kl)), "at_once"),
    ],
)
def test_the_way_that_fails_first_stands_for_its_cell(ways: tuple[Generated, ...], name: str) -> None:
    way = decisive(GenerationFigures(ways=ways))
    assert way is not None
    assert way.way == name


def test_a_cell_without_ways_has_none_that_stands_for_it() -> None:
    assert decisive(GenerationFigures(declined={"step": "no cache"})) is None


def points(path: str) -> list[tuple[float, float]]:
    numbers = [float(number) for number in re.findall(r"-?[\d.]+", path.replace("h0", ""))]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def test_a_curve_has_one_scale_and_breaks_where_it_is_not_finite() -> None:
    curve = kl_curve((0.0, 1e-15, 1e-6, None, 10.0, 1e9), 3)
    assert curve is not None
    assert curve.path.count("M") == 2
    (zero, least, middle, *high) = points(curve.path)
    low, top = zero[1], high[0][1]
    assert least[1] == low
    assert middle[1] == pytest.approx(low - (low - top) * 9 / 16, abs=0.06)
    assert high[0][1] == high[1][1] == top
    assert 0 < top < low < curve.height
    assert [x for x, _ in (zero, least, middle, *high)] == [20, 60, 100, 180, 220]
    assert curve.broken == ((120.0, 40.0),)
    assert curve.bad == 140.0
    assert curve.label == (
        "KL divergence over 6 positions; largest 1e+09 nats at position 5; not finite at 1; "
        "first failing position 3"
    )


def test_one_position_is_a_dot_and_none_is_no_curve() -> None:
    curve = kl_curve((1e-3,), None)
    assert curve is not None
    assert curve.path.endswith("h0")
    assert curve.bad is None
    assert kl_curve((), None) is None


def test_a_long_text_keeps_its_peaks() -> None:
    values: list[float | None] = [1e-9] * 4096
    values[1234] = 2.5
    values[4000] = None
    curve = kl_curve(values, 1234)
    assert curve is not None
    found = points(curve.path)
    assert len(found) < MOST_POINTS
    peak = min(found, key=lambda point: point[1])
    assert sum(y < 20 for _, y in found) == 1
    assert peak[0] == pytest.approx(1234.5 / 4096 * curve.width, abs=curve.width / MOST_POINTS)
    assert len(curve.broken) == 1
    assert "largest 2.5 nats at position 1,234; not finite at 1" in curve.label


def test_every_figure_of_the_page_is_what_the_records_say(tmp_path: Path) -> None:
    records = [
        generating("a", "good", generation=EQUAL),
        generating("a", "bad", Verdict.MISMATCH, generation=UNEQUAL, reason="step: position 1"),
        generating("b", "good", Verdict.UNSUPPORTED, reason="no kernel"),
        generating("b", "bad", generation=GenerationFigures(ways=(RIGHT, RIGHT), declined={"x": "y"})),
        record("plain", target="good"),
    ]
    run = write_run(tmp_path / "run", records)
    page = (write_report([run], run / "report")[0].parent / "generation.html").read_text("utf-8")
    rows = read_rows(run)
    told = [row for row in rows if row["axes"].get("scenario") == "generate"]
    assert len(told) == 4
    assert f"{sum(row['family'] == 'failed' for row in told)} of {len(told)} cells fail" in words(page)
    columns = table_rows(page.partition('id="models"')[0])
    assert len(columns) == 2
    for name, shown in columns:
        its = [row for row in told if name == row["target"]]
        ways = [way for row in its for way in row.get("generation", {}).get("ways", [])]
        failing = [way for way in ways if "first_bad" in way or "first_cache" in way]
        families = [row["family"] for row in its]
        assert shown == {
            "Right": str(families.count("passed")),
            "Failed": str(families.count("failed")),
            "Others": str(len(its) - families.count("passed") - families.count("failed")),
            "Ways that fail": f"{len(failing)} of {len(ways)} played",
            "Ways declined": str(sum(len(r.get("generation", {}).get("declined", {})) for r in its)),
        }
    details = re.findall(r"<details id=.*?</details>", page, re.DOTALL)
    order = [("a", "good"), ("a", "bad"), ("b", "good"), ("b", "bad")]
    assert len(details) == len(order)
    for (model, target), detail in zip(order, details, strict=True):
        row = next(row for row in told if (row["model"], row["target"]) == (model, target))
        found = row.get("generation", {})
        shown_ways = table_rows(detail)
        ways = sorted(found.get("ways", ()), key=lambda way: "first_bad" not in way)
        assert [name.removeprefix("✗ ") for name, _ in shown_ways] == [way["way"] for way in ways]
        for way, (name, shown) in zip(ways, shown_ways, strict=True):
            assert name.startswith("✗") is ("first_bad" in way or "first_cache" in way)
            assert shown == figures(way)
        for name, why in found.get("declined", {}).items():
            assert f"{name} {why}" in words(detail)
        for sentence in found.get("disagreements", ()):
            assert sentence in words(detail)
        if found:
            assert " ".join(map(str, found.get("text", ()))) in words(detail)
        assert row.get("reason", "") in words(detail)


def figures(way: dict[str, Any]) -> dict[str, str]:
    """The figures of a way in words, derived from its record by other means than the product's."""
    values = [math.inf if value is None else value for value in way.get("kl", [])]
    largest = max(values)
    shares = [way.get(name) for name in ("top1", "top5", "top10")]
    layer = f"{way['first_cache']} from position {way['cache_from']}" if "first_cache" in way else "–"  # noqa: RUF001
    own = f"{way['perplexity']:.3g}" if "perplexity" in way else "not finite"
    at = values.index(largest)
    return {
        "Positions": str(way["positions"]),
        "First bad position": str(way.get("first_bad", "–")),  # noqa: RUF001 - as the page has it
        "First bad cache": layer,
        "Top-1, 5, 10": "{} {}, {}".format(*map(share, shares)),
        "Largest KL": f"{'not finite' if largest == math.inf else format(largest, '.3g')} at {at}",
        "Error / noise": "unknown"
        if "noise" not in way
        else {1.31: "1.31 ×", 8123.4: "8,123 ×"}[way["noise"]],  # noqa: RUF001
        "Perplexity": f"{own} golden {way['golden_perplexity']:.3g}",
    }


def share(value: float | None) -> str:
    if value is None:
        return "–"  # noqa: RUF001 - as the page has it
    return {0.0: "0%", 1.0: "100%", 0.9996: "99.9%"}.get(value, f"{value * 100:.1f}%")


def words(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


def table_rows(page: str) -> list[tuple[str, dict[str, str]]]:
    """The rows of all tables: the heading, and label -> text of each labelled cell."""
    found = []
    for body in re.findall(r"<tbody>(.*?)</tbody>", page, re.DOTALL):
        for row in re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL):
            name = re.search(r'<th scope="row">(.*?)</th>', row, re.DOTALL)
            assert name
            cells = re.findall(r'<td[^>]*data-label="([^"]*)">(.*?)</td>', row, re.DOTALL)
            found.append((words(name[1]), {label: words(cell) for label, cell in cells}))
    return found


def test_a_row_has_the_way_that_stands_for_the_cell(pages_of: PagesOf) -> None:
    (page,) = pages_of(
        [
            generating("calm", generation=EQUAL),
            generating("odd", verdict=Verdict.MISMATCH, generation=UNEQUAL),
        ]
    )
    assert [model.name for model in page.models] == ["generate/odd", "generate/calm"]
    odd, calm = (model.cells[0] for model in page.models)
    assert odd.way is not None
    assert (odd.way.name, odd.failing, odd.others) == ("step", 2, 1)
    assert odd.way.layer == "present.1.key from position 1"
    assert (odd.equal, calm.equal) == (2, 2)
    assert odd.text is not None
    assert odd.golden_text is not None
    assert (odd.text.same, odd.text.rest) == ("5 6", "7 8")
    assert (odd.golden_text.same, odd.golden_text.rest) == ("5 6", "9 9 9")
    assert calm.text is not None
    assert (calm.text.same, calm.text.rest) == ("5 6", "")


@pytest.mark.parametrize(
    ("cpu", "shown"),
    [
        ({}, "5 9"),
        ({"verdict": Verdict.MISMATCH}, None),
        ({"provider": "QNNExecutionProvider"}, None),
        ({"golden_perplexity": 3.0}, None),
    ],
)
def test_a_passing_cell_shows_the_text_of_the_cpu_eps_own_cell(
    cpu: dict[str, Any], shown: str | None, pages_of: PagesOf
) -> None:
    way = msgspec.structs.replace(RIGHT, golden_perplexity=cpu.pop("golden_perplexity", 12.3457))
    fields = {"provider": "CPUExecutionProvider", **cpu}
    own = GenerationFigures(ways=(way,), text=(5, 9))
    plain = GenerationFigures(ways=(RIGHT,), text=(5, 6))
    (page,) = pages_of(
        [
            generating("a", target="cpu", generation=own, **fields),
            generating("a", generation=plain),
        ]
    )
    by_target = {cell.cell.column.target: cell for cell in page.models[0].cells}
    assert by_target["cpu"].golden_text is None
    golden, equal = by_target["npu"].golden_text, by_target["npu"].equal
    assert (None if golden is None else f"{golden.same} {golden.rest}") == shown
    assert equal == (1 if shown else None)


def test_text_of_one_side_only_is_not_compared(pages_of: PagesOf) -> None:
    only = GenerationFigures(text=tuple(range(100)))
    (page,) = pages_of([generating("a", generation=only)])
    (cell,) = page.models[0].cells
    assert (cell.way, cell.equal, cell.golden_text) == (None, None, None)
    assert cell.text is not None
    assert (cell.text.same, cell.text.rest.split()[-1], cell.text.left_out) == ("", "63", 36)


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    way = Generated(
        way=HOSTILE, positions=1, kl=(1.0,), first_bad=0, first_cache=HOSTILE, cache_from=0, perplexity=2.0
    )
    speed = GenerationSpeed(first_token_ms={1: 1.0}, tokens_per_s={1: 1.0}, cache_mib=1.0)
    found = GenerationFigures(ways=(way,), declined={HOSTILE: HOSTILE}, disagreements=(HOSTILE,), speed=speed)
    made = record(
        HOSTILE,
        target=HOSTILE,
        verdict=Verdict.MISMATCH,
        suite=HOSTILE,
        axes=GENERATES,
        generation=found,
        reason=HOSTILE,
    )
    run = write_run(tmp_path / "run", [made])
    write_report([run], tmp_path / "out", ("html", "markdown", "csv", "json"))
    for name in ("generation.html", "performance.html", "report.md", "report.json"):
        text = (tmp_path / "out" / name).read_text("utf-8")
        body = text.partition("<body>")[2].rpartition("<script>")[0] if name.endswith("html") else text
        assert "<img" not in body
        assert "<script>alert" not in body
        assert "49" not in body or "{{ 7 * 7 }}" in html.unescape(body)
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
    with (tmp_path / "out" / "generation.csv").open(encoding="utf-8-sig", newline="") as file:
        played, declined = csv.DictReader(file)
    assert played["first_cache"].startswith("</svg>")
    assert (played["declined"], declined["way"] == played["way"]) == ("", True)


def test_many_cells_are_spread_over_files(pages_of: PagesOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "PART_CHARS", 20_000)
    monkeypatch.setattr(module, "MOST_PAGES", 2)
    records = [generating(f"m{number}", target, generation=EQUAL) for number in range(5) for target in "xyz"]
    found = pages_of(records)
    assert [page.file for page in found] == ["generation.html", "generation-2.html"]
    assert [[model.name for model in page.models] for page in found] == [["generate/m0"], ["generate/m1"]]
    assert [page.left_out for page in found] == [9, 9]
    assert {page.cells for page in found} == {15}
    anchors = [cell.anchor for page in found for model in page.models for cell in model.cells]
    assert len(set(anchors)) == 6


def test_without_generated_text_there_is_no_page(tmp_path: Path) -> None:
    write_report(
        [write_run(tmp_path / "run", [record()])], tmp_path / "out", ("html", "csv", "markdown", "json")
    )
    assert not (tmp_path / "out" / "generation.html").exists()
    assert not (tmp_path / "out" / "generation.csv").exists()
    assert "Generated text" not in (tmp_path / "out" / "report.md").read_text("utf-8")
    told = json.loads((tmp_path / "out" / "report.json").read_bytes())
    assert (told["ways"], told["speed"]) == ([], [])


def test_the_other_formats_have_the_same_figures(tmp_path: Path) -> None:
    speed = GenerationSpeed(first_token_ms={128: 20.5, 16: 4.25}, tokens_per_s={1: 50.0}, cache_mib=0.5)
    speed = msgspec.structs.replace(speed, tokens_per_s_at={16: 40.0})
    found = GenerationFigures(ways=UNEQUAL.ways, declined=UNEQUAL.declined, speed=speed)
    run = write_run(
        tmp_path / "run",
        [
            generating("calm", generation=EQUAL),
            generating("odd", verdict=Verdict.MISMATCH, generation=found),
        ],
    )
    out = tmp_path / "out"
    write_report([run], out, ("json", "csv", "markdown"))
    told = json.loads((out / "report.json").read_bytes())
    assert [(row["model"], row["way"], row["fails"]) for row in told["ways"]] == [
        ("calm", "at_once", False),
        ("odd", "at_once", False),
        ("odd", "chunks", True),
        ("odd", "step", True),
        ("odd", "shared_buffer", False),
    ]
    step = told["ways"][3]
    assert (step["first_bad"], step["first_cache"], step["cache_from"]) == (2, "present.1.key", 1)
    assert (step["largest_kl"], step["largest_kl_at"], step["perplexity"]) == (None, 2, None)
    assert (told["ways"][2]["largest_kl"], told["ways"][2]["largest_kl_at"]) == (0.5, 3)
    assert told["ways"][4]["declined"] == "past and present differ in shape"
    assert [(row["figure"], row["size"], row["value"]) for row in told["speed"]] == [
        ("first_token_ms", 16, 4.25),
        ("first_token_ms", 128, 20.5),
        ("tokens_per_s", 1, 50.0),
        ("tokens_per_s_at", 16, 40.0),
        ("cache_mib", None, 0.5),
    ]
    for name, rows in (("generation.csv", told["ways"]), ("generation-speed.csv", told["speed"])):
        with (out / name).open(encoding="utf-8-sig", newline="") as file:
            table = list(csv.DictReader(file))
        assert [[plain(value) for value in row.values()] for row in rows] == [list(r.values()) for r in table]
    text = (out / "report.md").read_text("utf-8")
    assert (
        "| `npu · scenario=generate` | `generate/odd` | mismatch | `step` | `present.1.key` | 2 | 0% | "
        "not finite | – | 12.3 |"  # noqa: RUF001 - as the document has it
    ) in text
    assert text.index("generate/odd") < text.index("generate/calm")


def plain(value: object) -> str:
    """A value of JSON as the tables have it."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
