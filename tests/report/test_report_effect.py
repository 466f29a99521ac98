"""Options without effect in the report."""

from pathlib import Path

from harness.core.records.facts import OptionEffect
from harness.core.records.verdict import Verdict
from harness.report.pages.details import detail_pages
from harness.report.pages.effect import report_effects
from harness.report.pages.overview import overview_view
from harness.report.runs.merged_run import MergedRun
from harness.report.view import Report, build_report
from tests.kit import merged, placement_of, record, site


def report_of(run: MergedRun) -> Report:
    return build_report(run, lambda *_: "", {})


def effect(*options: str, seen: bool) -> OptionEffect:
    return OptionEffect(options=options, seen=seen)


def test_each_target_tells_in_how_many_cells_its_options_had_an_effect(tmp_path: Path) -> None:
    records = [
        record("a", target="deaf", effect=effect("HINT", "mode", seen=False)),
        record("b", target="deaf", effect=effect("HINT", "mode", seen=False)),
        record("c", target="deaf"),
        record("a", target="hears", effect=effect("HINT", seen=True)),
        record("b", target="hears", effect=effect("HINT", seen=False)),
        record("a", target="hears", axes={"precision": "ep:bf16"}, effect=effect("ep:bf16", seen=False)),
        record("a", target="plain"),
    ]
    report = report_of(merged(records))
    assert [(row.column.label, row.options, row.judged, row.seen) for row in report_effects(report)] == [
        ("deaf", ("HINT", "mode"), 2, 0),
        ("hears", ("HINT",), 2, 1),
        ("hears · precision=ep:bf16", ("ep:bf16",), 1, 0),
    ]
    (overview,) = overview_view(report)
    assert overview.without_effect == ("HINT, mode on deaf", "ep:bf16 on hears · precision=ep:bf16")
    pages = site(tmp_path, report)
    assert (
        '<a href="precision.html#effect"><strong>No effect seen</strong></a> of options'
        in pages["index.html"]
    )
    assert pages["precision.html"].count('<strong class="badge bad">no effect seen</strong>') == 2


def test_a_run_without_such_options_has_no_such_part(tmp_path: Path) -> None:
    page = "".join(site(tmp_path, report_of(merged([record()]))).values())
    assert "#effect" not in page
    assert 'id="effect"' not in page


def test_many_and_long_options_do_not_bloat_the_page(tmp_path: Path) -> None:
    options = tuple("x" * 100_000 + str(number) for number in range(30))
    records = [record(f"m{n}", target=f"t{n}", effect=effect(*options, seen=False)) for n in range(30)]
    report = report_of(merged(records))
    (overview,) = overview_view(report)
    assert overview.without_effect[-1] == "25 more"
    pages = site(tmp_path, report)
    assert len(pages["index.html"]) + len(pages["precision.html"]) < 500_000


def test_the_details_name_each_provider_of_a_chain() -> None:
    chain_ops = {"First": {"Conv": 2}, "Second": {"Relu": 1}}
    placement = placement_of(
        {"Conv": 2, "Relu": 1},
        {"Gather": 1},
        partitions=2,
        providers={"First": 2, "Second": 1, "CPUExecutionProvider": 1},
        chain_ops=chain_ops,
    )
    report = report_of(merged([record(verdict=Verdict.PASS_PARTIAL, placement=placement)]))
    (page,) = detail_pages(report)
    facts = dict(page.sections[0].details[0].facts)
    assert [label for label in facts if label.startswith("On ")] == ["On First", "On Second", "On the CPU"]
    assert "Conv" in facts["On First"]
