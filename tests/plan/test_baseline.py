"""Baselines: the class of a machine, which one fits, and what is expected where one does or none."""

import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.records.cell import Cell
from harness.core.records.facts import Placement
from harness.core.records.verdict import Family, Verdict
from harness.core.text.errors import UsageError
from harness.plan.baseline_file import (
    FAILURES,
    RESULTS,
    baseline_schema,
    baseline_text,
    baselines_from,
    load_baselines,
    with_baselines,
)
from harness.plan.baselines import FIRST_RUN, Baseline, KnownVerdicts, fitting
from harness.plan.device_class import class_differences, class_of, class_words
from harness.plan.expectation import Expectation, is_expected
from harness.plan.matrix import Matrix
from harness.plan.plan import Plan
from harness.plan.surroundings import Surroundings, surroundings_of
from harness.plan.where import Where, holds
from tests.kit import make_matrix
from tests.mutations import mutated

OPENVINO = "OpenVINOExecutionProvider"
WITH_AMX: dict[str, Any] = {
    "platform": "Linux-6.18-x86_64-with-glibc2.36",
    "onnxruntime": "1.32.0",
    "machine": "x86_64",
    "processor": {"model": "Xeon 8488C", "count": 2, "features": ["amx_bf16", "avx512_bf16", "avx2"]},
    "plugin": {"library": "/x.so", "version": "1.8.1"},
    "devices": [
        {"device": {"type": "CPU", "vendor": "Intel"}, "metadata": {"FULL_DEVICE_NAME": "Xeon 8488C"}}
    ],
}
WITHOUT: dict[str, Any] = {**WITH_AMX, "processor": {"model": "Xeon", "features": ["avx2"]}}
GPU: dict[str, Any] = {
    **WITH_AMX,
    "devices": [
        {"device": {"type": "GPU"}, "metadata": {"description": "Arc [A770]", "driver_version": "32.1"}}
    ],
}


def seen(fingerprint: dict[str, Any]) -> Surroundings:
    return surroundings_of(fingerprint, (OPENVINO,), {})


def test_a_processor_is_a_class_by_its_features_and_not_by_its_name() -> None:
    where = class_of(seen(WITH_AMX))
    assert {"amx_bf16", "avx512_bf16", "avx2", "!amx_fp16"} <= {*where.processor}
    assert not {"asimd", "!asimd"} & {*where.processor}
    assert where.device == ()
    renamed = {**WITH_AMX, "processor": {**WITH_AMX["processor"], "model": "other"}, "devices": []}
    assert holds(where, seen(WITH_AMX), "") == (True, ())
    assert holds(where, seen(renamed), "")[0] is False  # no device is known, so no simulator either
    assert holds(where, seen(WITHOUT), "")[0] is False
    assert class_differences(where, seen(WITHOUT)) == ("the processor here has no amx_bf16, avx512_bf16",)
    assert class_differences(class_of(seen(WITHOUT)), seen(WITH_AMX)) == (
        "the processor here has amx_bf16, avx512_bf16",
    )


def test_an_accelerator_is_a_class_by_its_name() -> None:
    where = class_of(seen(GPU))
    assert (where.device, where.processor, where.driver) == (("Arc [[]A770]",), (), "")
    elsewhere = {**GPU, "processor": {"features": []}}
    assert holds(where, seen(elsewhere), "") == (True, ())
    other = {**GPU, "devices": [{"device": {"type": "GPU"}, "metadata": {"description": "Arc 5"}}]}
    assert class_differences(where, seen(other)) == ("device Arc [[]A770], here Arc 5",)


def test_releases_are_part_of_the_class() -> None:
    where = class_of(seen(WITH_AMX))
    assert (where.onnxruntime, where.ep_version) == ("==1.32.0", "==1.8.1")
    newer = {**WITH_AMX, "onnxruntime": "1.33.0"}
    assert class_differences(where, seen(newer)) == ("onnxruntime ==1.32.0, here 1.33.0",)
    assert (
        class_words(where) == "onnxruntime 1.32.0, ep_version 1.8.1, x86_64, linux, amx_bf16 avx512_bf16 avx2"
    )


FACT = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
TABLE = st.dictionaries(st.sampled_from(["version", "type", "device", "metadata", "x"]), FACT, max_size=3)
FACTS = FACT | TABLE | st.lists(FACT | TABLE, max_size=3)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "onnxruntime": st.text(max_size=8)
            | st.from_regex(r"1\.[0-9]{1,2}(\.[0-9]|rc1)?", fullmatch=True),
            "machine": st.sampled_from(["x86_64", "AMD64", "arm64", "riscv"]),
            "platform": st.text(max_size=8),
            "processor": st.fixed_dictionaries({"features": st.lists(st.sampled_from(["avx2", "sve"]))}),
            "devices": FACTS,
            "plugin": FACTS,
        },
    )
)
def test_a_machine_is_of_its_own_class(fingerprint: dict[str, Any]) -> None:
    here = seen(fingerprint)
    assert holds(class_of(here), here, "") == (True, ())
    assert class_differences(class_of(here), here) == ()
    assert msgspec.convert(msgspec.to_builtins(class_of(here)), Where) == class_of(here)


def baseline(fingerprint: dict[str, Any] = WITH_AMX, **fields: Any) -> Baseline:
    usual: dict[str, Any] = {"file": "b.toml", "target": "ov", "provider": OPENVINO}
    return Baseline(**{**usual, "where": class_of(seen(fingerprint)), **fields})


def test_the_baseline_with_the_most_conditions_fits() -> None:
    wide = baseline(file="wide.toml", where=Where(os=("linux",)))
    fit = fitting([wide, baseline(), baseline(file="same.toml")], "ov", OPENVINO, seen(WITH_AMX))
    assert fit.baseline is not None
    assert fit.baseline.file == "b.toml"
    assert fit.why.startswith("b.toml fits: onnxruntime 1.32.0, ep_version 1.8.1, x86_64, linux, amx_bf16")
    assert fitting([wide, baseline()], "ov", OPENVINO, seen(WITHOUT)).baseline is wide


def test_the_nearest_baseline_is_told_where_none_fits() -> None:
    far = baseline(
        file="far.toml", where=class_of(seen({**WITH_AMX, "machine": "arm64", "onnxruntime": "1.1"}))
    )
    fit = fitting([far, baseline()], "ov", OPENVINO, seen(WITHOUT))
    assert fit.baseline is None
    assert fit.why == (
        f"{FIRST_RUN}; b.toml is of another kind: the processor here has no amx_bf16, avx512_bf16"
    )
    for target, provider in (("other", OPENVINO), ("ov", "QNNExecutionProvider")):
        assert fitting([baseline()], target, provider, seen(WITH_AMX)).why == FIRST_RUN


def matrix(*entries: dict[str, Any]) -> Matrix:
    table = {
        "schema": 1,
        "models": {"suites": ["onnx-node"]},
        "target": [{"name": "ov", "provider": OPENVINO}],
        "expect": [{"model": "a", "reason": "issue 7", **entry} for entry in entries],
    }
    return make_matrix(table)


A = Cell(suite="onnx-node", model="a", target="ov")


def expected(
    plan: Plan, verdict: Verdict, fingerprint: dict[str, Any] = WITH_AMX, placement: Placement | None = None
) -> tuple[bool, str]:
    """Whether a verdict of ``a`` is expected, and why if it is, or what is."""
    found, _ = plan.expectation_at(A, fingerprint, (), placement)
    if is_expected(found, verdict):
        return True, "" if found is None else found.why(verdict)
    return False, "" if found is None else f"{found.wanted} ({found.reason})"


def plan(
    verdict: str = "",
    *,
    known: Verdict | None = None,
    entry: dict[str, Any] | None = None,
    share: float | None = None,
) -> Plan:
    table = "failures" if known is not None and known.family is Family.FAILED else "results"
    fields: dict[str, Any] = {} if known is None else {table: {known: (A.id,)}}
    entries = ([{"verdict": verdict}] if verdict else []) + ([entry] if entry else [])
    known_here = (baseline(**fields, shares={} if share is None else {A.id: share}),)
    return Plan(matrix=msgspec.structs.replace(matrix(*entries), baselines=known_here), cells=(A,))


def test_a_known_failure_is_expected_and_another_one_is_not() -> None:
    known = plan(known=Verdict.MISMATCH)
    assert expected(known, Verdict.MISMATCH) == (True, "as b.toml knows")
    assert expected(known, Verdict.CRASH) == (False, "mismatch (as b.toml knows)")
    assert expected(known, Verdict.PASS)[0]  # it is told as mended
    unknown = plan()
    assert expected(unknown, Verdict.MISMATCH) == (
        False,
        "no failure (it is not among the failures that b.toml knows)",
    )
    assert expected(unknown, Verdict.FALLBACK)[0]
    assert not expected(known, Verdict.NOT_RUN)[0]
    assert not expected(known, Verdict.HARNESS_ERROR)[0]


def test_a_worse_result_than_the_known_one_is_unexpected() -> None:
    """The rule is that of ``gate``: right answers alone do not show that the EP still computes them."""
    passed = plan(known=Verdict.PASS)
    for worse in (Verdict.PASS_PARTIAL, Verdict.FALLBACK, Verdict.UNSUPPORTED, Verdict.MISMATCH):
        assert expected(passed, worse) == (False, "pass (as b.toml knows)")
        # A matrix may say that it varies.
        assert expected(plan("pass", known=Verdict.PASS, entry={"verdict": ["pass", worse.value]}), worse)[0]
    untested = plan(known=Verdict.FALLBACK)
    for fine in (Verdict.FALLBACK, Verdict.PASS, Verdict.NO_GOLDEN, Verdict.UNAVAILABLE):
        assert expected(untested, fine)[0]
    assert not expected(untested, Verdict.UNSUPPORTED)[0]
    assert expected(plan(known=Verdict.PASS), Verdict.FALLBACK, WITHOUT)[0]  # no baseline fits there


def test_less_on_the_ep_is_a_worse_result() -> None:
    placed = Placement(
        ep_nodes=3, cpu_nodes=3, ep_ops={"Add": 3}, cpu_ops={"Mul": 3}, partitions=1, source="assignment"
    )
    partly = plan(known=Verdict.PASS_PARTIAL, share=0.9)
    less = "pass_partial with 90% of the compute on the EP (as b.toml knows)"
    for now, told in ((0.4, less), (0.892, ""), (1.0, "")):
        here = msgspec.structs.replace(placed, ep_share=now)
        found = expected(partly, Verdict.PASS_PARTIAL, placement=here)
        assert found[0] is not bool(told)
        assert found[1] == told or found[0]
    assert expected(partly, Verdict.PASS, placement=msgspec.structs.replace(placed, ep_share=0.4))[0]
    assert expected(partly, Verdict.PASS_PARTIAL)[0]  # nothing is known of its placement


@pytest.mark.parametrize("verdict", [one for one in Verdict if one.family is Family.FAILED])
def test_on_a_first_run_crashes_and_hangs_alone_count(verdict: Verdict) -> None:
    counts = verdict in (Verdict.CRASH, Verdict.HANG, Verdict.UNCLEAN_EXIT)
    assert expected(plan(), verdict, WITHOUT) == (
        (False, f"no crash and no hang ({FIRST_RUN})") if counts else (True, FIRST_RUN)
    )
    assert not expected(plan(), Verdict.NOT_RUN, WITHOUT)[0]


def test_the_matrix_has_the_reasons() -> None:
    assert expected(plan("mismatch", known=Verdict.MISMATCH), Verdict.MISMATCH) == (True, "issue 7")
    # On a first run as well, a crash that it knows included; another failure is compared with nothing.
    assert expected(plan("crash"), Verdict.CRASH, WITHOUT) == (True, "issue 7")
    assert expected(plan("crash"), Verdict.ERROR, WITHOUT) == (True, FIRST_RUN)
    assert expected(plan("crash"), Verdict.PASS, WITHOUT)[0]


def test_where_a_baseline_fits_the_matrix_counts_only_if_it_agrees() -> None:
    # Written on another machine, and this one did not fail.
    assert not expected(plan("mismatch"), Verdict.MISMATCH)[0]
    assert expected(plan("mismatch"), Verdict.PASS)[0]
    unstable = {"verdict": ["mismatch", "pass"]}
    assert expected(plan(entry=unstable), Verdict.MISMATCH) == (True, "issue 7")
    either = {"verdict": ["mismatch", "nan_mismatch"]}
    assert expected(plan(known=Verdict.MISMATCH, entry=either), Verdict.NAN_MISMATCH) == (True, "issue 7")
    assert not expected(plan(known=Verdict.CRASH, entry=either), Verdict.NAN_MISMATCH)[0]


def test_without_baselines_nothing_changes() -> None:
    bare = Plan(matrix=matrix({"verdict": "mismatch"}), cells=(A,))
    found, _ = bare.expectation_at(A, WITH_AMX, ())
    assert type(found) is Expectation
    assert not isinstance(found, KnownVerdicts)
    assert not is_expected(found, Verdict.PASS)
    assert bare.fit("ov", WITH_AMX) is None
    assert "baselines" not in msgspec.to_builtins(bare.matrix)


def test_clean_ends_fail_no_run_that_is_compared() -> None:
    entry = {"target": "ov", "verdict": "unclean_exit", "reason": "dies"}
    table = {
        "schema": 1,
        "models": {"suites": ["onnx-node"]},
        "target": [{"name": "ov", "provider": OPENVINO}],
    }
    alone = Plan(matrix=make_matrix({**table, "expect": [entry]}), cells=())
    compared = msgspec.structs.replace(alone, matrix=msgspec.structs.replace(alone.matrix, baselines=()))
    assert alone.exit_verdicts("ov", WITHOUT) == (Verdict.UNCLEAN_EXIT,)
    assert compared.exit_verdicts("ov", WITHOUT) == (Verdict.UNCLEAN_EXIT, Verdict.PASS)


def test_a_file_reads_back_and_has_one_line_for_each_cell(tmp_path: Path) -> None:
    cells = {Verdict.MISMATCH: ("s/b[ov]", 'm/x%22[ov,option.a="1"]'), Verdict.CRASH: ("s/\u20ac\x7f[ov]",)}
    file = tmp_path / "b.toml"
    results = {Verdict.PASS: ("s/c[ov]",), Verdict.PASS_PARTIAL: ("s/d[ov]",)}
    known: dict[str, Any] = {"failures": cells, "results": results, "shares": {"s/d[ov]": 0.125}}
    written = tuple(
        baseline(file=str(file), target=name, **(known if name == "ov" else {})) for name in ("ov", "a")
    )
    file.write_text(baseline_text(written), encoding="utf-8")
    read = load_baselines(file)
    assert [one.target for one in read] == ["a", "ov"]
    assert read[1].where == written[0].where
    for field in ("by_cell", "others", "shares"):
        assert getattr(read[1], field) == getattr(written[0], field)
    assert baseline_text(read) == file.read_text("utf-8")
    assert file.read_text("utf-8").count("[ov") == 6


def entry(**fields: Any) -> str:
    usual = {"name": '"ov"', "provider": '"P"', "where": '{ os = "linux" }'}
    return "schema = 1\n[[target]]\n" + "".join(
        f"{key} = {value}\n" for key, value in (usual | fields).items()
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (entry(where="{ }"), "target[0].where: there is no condition"),
        (entry(where='{ processor = "amx" }'), "where.processor: got 'amx'"),
        (
            entry(where='{ delivers = "bfloat16" }'),
            "where.delivers: the precision of single cells is no class",
        ),
        (entry(failures='{ pass = ["s/a[ov]"] }'), "failures.pass: not a failure of a cell"),
        (entry(failures='{ unclean_exit = ["s/a[ov]"] }'), "failures.unclean_exit: not a failure of a cell"),
        (entry(results='{ crash = ["s/a[ov]"] }'), "results.crash: not a result without a failure"),
        (entry(shares='{ "s/a[cpu]" = 0.5 }'), "a cell of the target 'cpu', in the table of 'ov'"),
        (entry(shares='{ "s/a[ov]" = 2 }'), "shares"),
        (
            entry(failures='{ crash = ["s/a[ov]"] }', results='{ pass = ["s/a[ov]"] }'),
            "results.pass[0]: 's/a[ov]' is crash as well",
        ),
        (entry(failures='{ crash = ["a"] }'), "failures.crash[0]: not a cell id: 'a'"),
        (entry(failures='{ crash = ["s/a[cpu]"] }'), "a cell of the target 'cpu', in the table of 'ov'"),
        (entry(failures='{ crash = ["s/a[ov]"], hang = ["s/a[ov]"] }'), "'s/a[ov]' is crash as well"),
        (entry(failures="{ crash = 1 }"), "failures.crash: expected a list of texts, got 1"),
        (entry(failures='{ crash = ["x"] }', nmae="1"), "target[0].nmae: unknown key"),
        (entry(failures=f"{{ crash = {['x'] * 9} }}".replace("'", '"')), "and 4 more problems"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "b.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as error:
        load_baselines(file)
    assert told in str(error.value)
    assert len(error.value.problems) <= 6


def test_a_folder_has_the_files_of_many_machines(tmp_path: Path) -> None:
    own = Plan(matrix=matrix(), cells=())
    assert with_baselines(own, []) is own
    assert with_baselines(own, [tmp_path]).matrix.baselines == ()
    for name in ("b", "a"):
        (tmp_path / f"{name}.toml").write_text(baseline_text((baseline(),)), encoding="utf-8")
    (tmp_path / "c.toml").write_text(baseline_text((baseline(target="other"),)), encoding="utf-8")
    found = with_baselines(own, [tmp_path]).matrix.baselines
    assert [Path(one.file).name for one in found or ()] == ["a.toml", "b.toml"]
    with pytest.raises(UsageError, match="knows no target of the matrix, but 'other'"):
        with_baselines(own, [tmp_path / "c.toml"])


def test_the_schema_names_every_verdict() -> None:
    properties = baseline_schema()["$defs"]["BaselineTarget"]["properties"]
    for name, verdicts in (("failures", FAILURES), ("results", RESULTS)):
        assert properties[name]["propertyNames"] == {"enum": [one.value for one in verdicts]}


def test_a_folder_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such folder of baselines\n    for a first run, make an empty"):
        load_baselines(tmp_path / "base")
    with pytest.raises(UsageError, match="no such file"):
        load_baselines(tmp_path / "base.toml")


def test_a_folder_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.plan.baseline_file.MOST_FILES", 1)
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_text("x", encoding="utf-8")
    with pytest.raises(UsageError, match="more than 1 baselines"):
        load_baselines(tmp_path)


@settings(max_examples=100, derandomize=True, deadline=None, database=None)
@given(st.data())
def test_any_table_is_a_baseline_or_an_error_of_use(data: st.DataObject) -> None:
    valid = tomllib.loads(baseline_text((baseline(failures={Verdict.CRASH: (A.id,)}),)))
    table = data.draw(mutated(valid).filter(lambda made: isinstance(made, dict)))
    try:
        found = baselines_from(table, Path("b.toml"))
    except UsageError as error:
        told = error.problems
    else:
        told = ()
        fitting(found, "ov", OPENVINO, seen(WITH_AMX))
    assert len(told) <= 6
    assert all(map(str, told))
