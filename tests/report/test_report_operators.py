import msgspec
import pytest

from harness.core.records.facts import Placement
from harness.core.records.record import ModelContent
from harness.core.records.verdict import Verdict
from harness.report.pages import operator_pages
from harness.report.pages.failures import failures_view
from harness.report.pages.operator_pages import OperatorCoverage, documented_operators, operator_table
from harness.report.runs.merged_run import MergedRun, RunEnvironment
from harness.report.view import Documented, Report, build_report
from tests.kit import merged, record

LISTED: Documented = {"NpuExecutionProvider": {"Abs": "", "Conv": "2-D only", "Gone": ""}}


def content(*ops: str, opset: int = 21, types: tuple[str, ...] = ("float32",)) -> ModelContent:
    return ModelContent(opsets={"ai.onnx": opset}, ops=dict.fromkeys(ops, 1), types=types)


def report_of(run: MergedRun, documented: Documented = LISTED) -> Report:
    return build_report(run, lambda _folder, _record: "", documented)


def found(run: MergedRun, documented: Documented = LISTED) -> dict[str, OperatorCoverage]:
    (column,) = operator_table(report_of(run, documented)).columns
    return {operator.name: operator for operator in column.operators}


def test_verdicts_count_where_a_model_holds_one_operator_only() -> None:
    records = [
        record("abs21", content=content("Abs")),
        record("abs13", content=content("Abs", opset=13, types=("float16",))),
        record("abs_cpu", verdict=Verdict.FALLBACK, reason="left", content=content("Abs", types=("int8",))),
        record("abs_new", verdict=Verdict.INVALID_MODEL, content=content("Abs", opset=99)),
        record("conv", verdict=Verdict.MISMATCH, op="Conv", reason="bad", content=content("Conv")),
        record("conv2", verdict=Verdict.PASS_PARTIAL, op="Conv", content=content("Conv")),
        record("both", op="Relu", content=content("Conv", "Relu")),
        record("old"),
        record("far", content=ModelContent(opsets={"com.microsoft": 1}, ops={"Gelu": 1}), op="Gelu"),
    ]
    by_name = found(merged(records))
    assert list(by_name) == ["Abs", "Conv", "Gather", "Gelu", "Relu"]
    tested = by_name["Abs"]
    assert tested.passed.text == "2 of 3 (66.7%)"
    assert [(version, share.count, share.total) for version, share in tested.opsets] == [
        (13, 1, 1),
        (21, 1, 2),
    ]
    assert (tested.types, tested.other_types) == (("float16", "float32"), ("int8",))
    assert (tested.reach, tested.tone, tested.failed) == ("some", "partial", 0)
    assert [(trouble.verdict, trouble.count, trouble.reason) for trouble in tested.troubles] == [
        (Verdict.FALLBACK, 1, "left")
    ]
    conv = by_name["Conv"]
    assert (conv.passed.count, conv.passed.total, conv.failed, conv.reach, conv.tone) == (
        0,
        2,
        1,
        "none",
        "failed",
    )
    assert by_name["Relu"].passed.total == 0
    assert (by_name["Relu"].reach, by_name["Relu"].tone) == ("", "skipped")
    assert [version for version, _ in by_name["Gelu"].opsets] == [0]


def test_an_operator_that_the_provider_leaves_alone_is_no_failure() -> None:
    records = [
        record("a", verdict=Verdict.FALLBACK, content=content("Abs")),
        record("b", verdict=Verdict.UNSUPPORTED, content=content("Abs")),
    ]
    assert (found(merged(records))["Abs"].reach, found(merged(records))["Abs"].tone) == (
        "none",
        "unsupported",
    )


def test_placement_counts_in_every_model() -> None:
    def placed(ep: dict[str, int], cpu: dict[str, int]) -> Placement:
        return Placement(
            ep_nodes=sum(ep.values()),
            cpu_nodes=sum(cpu.values()),
            ep_ops=ep,
            cpu_ops=cpu,
            partitions=1,
            source="assignment",
        )

    records = [
        record("a", placement=placed({"Conv": 3, "Relu": 1}, {"Gather": 2})),
        record("b", verdict=Verdict.MISMATCH, placement=placed({"Conv": 2}, {"Relu": 4})),
        record("c", verdict=Verdict.UNSUPPORTED, content=content("Einsum")),
    ]
    by_name = found(merged(records))
    nodes = {name: (found.ep_nodes, found.cpu_nodes, found.where) for name, found in by_name.items()}
    assert nodes == {
        "Conv": (5, 0, "on the EP"),
        "Gather": (0, 2, "CPU only"),
        "Relu": (1, 4, "partly"),
        "Einsum": (0, 0, ""),
    }


def test_documents_stand_beside_the_evidence() -> None:
    records = [
        record("abs", verdict=Verdict.UNSUPPORTED, content=content("Abs")),
        record("conv", op="Conv", content=content("Conv")),
        record("relu", op="Relu", content=content("Relu")),
        record("elu", verdict=Verdict.UNSUPPORTED, content=content("Elu")),
    ]
    by_name = found(merged(records))
    assert {name: (o.listed, o.restriction, o.differs) for name, o in by_name.items()} == {
        "Abs": (True, "", "listed, but none passes"),
        "Conv": (True, "2-D only", ""),
        "Relu": (False, "", "works, but not listed"),
        "Elu": (False, "", ""),
    }
    unlisted = found(merged(records), {})
    assert {(o.listed, o.differs) for o in unlisted.values()} == {(None, "")}


def test_lists_come_from_the_catalogue() -> None:
    documented = documented_operators()
    assert "Conv" in documented["OpenVINOExecutionProvider"]
    assert "Conv" in documented["QNNExecutionProvider"]
    assert "WebGpuExecutionProvider" not in documented, "it has no list, which is no empty list"


def test_failures_are_told_by_operator_the_worst_first() -> None:
    records = [
        record("abs", verdict=Verdict.ERROR, reason="one", content=content("Abs")),
        record("abs", target="gpu", content=content("Abs")),
        *[
            record(f"conv{i}", verdict=Verdict.CRASH, target="gpu", op="Conv", content=content("Conv"))
            for i in range(3)
        ],
        record("conv0", verdict=Verdict.MISMATCH, op="Conv", content=content("Conv")),
        record("both", verdict=Verdict.ERROR, content=content("Conv", "Abs")),
        record("untried", verdict=Verdict.INVALID_MODEL, content=content("Abs")),
    ]
    (failures,) = failures_view(report_of(merged(records)))
    rows = failures.operators
    assert [(row.name, row.failed.text, row.columns, row.kinds) for row in rows] == [
        ("Conv", "4 of 4 (100%)", (("gpu", 3), ("npu", 1)), (("crash", 3), ("mismatch", 1))),
        ("Abs", "1 of 2 (50.0%)", (("npu", 1),), (("error", 1),)),
    ]


def test_endless_operators_do_not_fill_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_pages, "MAX_TABLE_SQUARES", 20)
    records = [
        record(f"m{i}", op=f"Op{i:03}", target=target, content=content(f"Op{i:03}"))
        for i in range(50)
        for target in ("a", "b")
    ]
    table = operator_table(report_of(merged(records)))
    assert (len(table.names), table.left_out) == (10, 40)
    assert [len(column.operators) for column in table.columns] == [10, 10]


def test_declared_kernels_are_held_against_documents_and_evidence() -> None:
    """A kernel of another domain is none of ONNX's operator of that name."""
    kernels = ["Abs 13-", "Abs 6-12", "com.ms.internal.nhwc:Conv 11-", "com.microsoft:Gelu 1"]
    far = ModelContent(opsets={"com.microsoft": 1}, ops={"Gelu": 1})
    left = Placement(
        ep_nodes=0, cpu_nodes=1, ep_ops={}, cpu_ops={"Conv": 1}, partitions=0, source="assignment"
    )
    records = [
        record("abs", content=content("Abs")),
        record("conv", verdict=Verdict.FALLBACK, placement=left, content=content("Conv")),
        record("gelu", op="Gelu", content=far),
        record("relu", op="Relu", content=content("Relu")),
    ]
    environment = RunEnvironment(target="npu", run="run", fingerprint={"kernels": kernels})
    run = merged(records)
    by_name = found(msgspec.structs.replace(run, environments=(environment,)))
    assert {name: operator.declared for name, operator in by_name.items()} == {
        "Abs": ("6-12", "13-"),
        "Conv": ("11-",),
        "Gelu": ("1",),
        "Relu": (),
    }
    assert {name: operator.differs for name, operator in by_name.items()} == {
        "Abs": "",
        "Conv": "listed, but none passes; a kernel is declared for 11-, but takes no node of opset 21",
        "Gelu": "works, but not listed",
        "Relu": "works, but not listed; computed without a declared kernel",
    }
    by_name = found(
        msgspec.structs.replace(
            merged([record("gelu", op="Gelu", content=content("Gelu"))]), environments=(environment,)
        )
    )
    assert by_name["Gelu"].declared == ()
    assert found(run)["Relu"].declared is None  # nothing is told: no disagreement
    assert found(run)["Relu"].differs == "works, but not listed"
