import errno
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.records.run_info import RunInfo
from harness.core.text.errors import UsageError
from harness.engine.tasks.events import TargetReady
from harness.plan.plan import Plan
from harness.run import own_runs, run_folder
from harness.run.resume import check_same_plan, json_differences
from harness.run.run_folder import RunFolder
from tests.kit import cpu_record, plan_of, read_rows

TABLE: dict[str, Any] = {
    "schema": 1,
    "models": {"folders": ["m"]},
    "target": [{"name": "cpu", "provider": "CPUExecutionProvider"}],
}
READY = TargetReady(target="cpu", fingerprint={"onnxruntime": "1.31.1", "packages": {"numpy": "2.4.6"}})


def plan(models: tuple[str, ...] = ("a.onnx", "b.onnx"), **tables: Any) -> Plan:
    return plan_of(TABLE | tables, {"m": models})


def info(folder: Path) -> RunInfo:
    return msgspec.json.decode((folder / "run.json").read_bytes(), type=RunInfo)


@pytest.fixture
def broken_off(tmp_path: Path) -> Path:
    folder = RunFolder.create(tmp_path / "run", plan())
    folder.ready(READY)
    folder.add(cpu_record("a.onnx"))
    assert folder.finish() is False
    return folder.path


def test_the_plan_is_there_from_the_start_by_name(broken_off: Path) -> None:
    listing = (broken_off / "plan.txt").read_bytes()
    assert listing == b"m/a.onnx[cpu]\nm/b.onnx[cpu]\n"
    assert hashlib.sha256(listing).hexdigest() == info(broken_off).plan
    (broken_off / "plan.txt").unlink()
    RunFolder.reopen(broken_off, plan(), info(broken_off), 1).finish()
    assert (broken_off / "plan.txt").read_bytes() == listing


def test_a_run_is_completed_by_what_is_missing(broken_off: Path) -> None:
    folder = RunFolder.reopen(broken_off, plan(), info(broken_off), 1)
    folder.ready(READY)
    folder.add(cpu_record("b.onnx"))
    assert folder.finish() is True
    assert info(broken_off).complete is True
    cells = [row["cell"] for row in read_rows(broken_off)]
    assert cells == ["m/a.onnx[cpu]", "m/b.onnx[cpu]"]


@pytest.mark.parametrize(
    ("harm", "left"),
    [
        (lambda whole: whole + b'{"schema": 1, "cell": "m/b', lambda whole: whole),
        (lambda whole: whole + b"\xff\xfe", lambda whole: whole),
        (lambda whole: whole[:-1], lambda whole: whole),
        (lambda whole: whole, lambda whole: whole),
        (lambda _: b'{"sch', lambda _: b""),
        (lambda _: b"", lambda _: b""),
    ],
)
def test_the_last_line_is_mended(
    broken_off: Path, harm: Callable[[bytes], bytes], left: Callable[[bytes], bytes]
) -> None:
    records = broken_off / "records.jsonl"
    whole = records.read_bytes()
    records.write_bytes(harm(whole))
    RunFolder.reopen(broken_off, plan(), info(broken_off), 1).finish()
    assert records.read_bytes() == left(whole)


@pytest.mark.parametrize(
    ("now", "message"),
    [
        (plan(tolerance=[{"rtol": 0.1, "atol": 0.1}]), "tolerance: "),
        (plan(target=[TABLE["target"][0] | {"env": {"A": "1"}}]), "targets[0].env.A: (absent) -> 1"),
        (plan(("a.onnx", "c.onnx")), "a suite, a folder, --target"),
        (plan(("a.onnx",)), "from 2 to 1 cells"),
    ],
)
def test_another_plan_is_refused_with_what_changed(broken_off: Path, now: Plan, message: str) -> None:
    with pytest.raises(UsageError) as error:
        RunFolder.reopen(broken_off, now, info(broken_off), 1)
    assert message in str(error.value)
    assert "--out" in str(error.value)
    assert len((broken_off / "records.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("now", "message"),
    [
        ({"onnxruntime": "1.32.0", "packages": {"numpy": "2.4.6"}}, "onnxruntime: 1.31.1 -> 1.32.0"),
        ({"onnxruntime": "1.31.1", "packages": {}}, "packages.numpy: 2.4.6 -> (absent)"),
    ],
)
def test_another_environment_is_refused_with_what_changed(
    broken_off: Path, now: dict[str, Any], message: str
) -> None:
    folder = RunFolder.reopen(broken_off, plan(), info(broken_off), 1)
    with pytest.raises(UsageError) as error:
        folder.ready(TargetReady(target="cpu", fingerprint=now))
    folder.finish()
    assert message in str(error.value)
    assert info(broken_off).targets["cpu"] == READY.fingerprint


BUILT = {"plugin": {"library": "/opt/libep.so", "version": "1.0"}, "sha256": {"libep.so": "a" * 64}}


@pytest.mark.parametrize(
    ("now", "message"),
    [
        ({"sha256": {"libep.so": "a" * 64}}, ""),
        ({"sha256": {"libep.so": "a" * 64, "liblater.so": "b" * 64}}, ""),
        ({"sha256": {}}, ""),
        (
            {"sha256": {"libep.so": "b" * 64}},
            "other build of the plugin (libep.so, sha256 aaaaaaaaaaaa... -> bbbbbbbbbbbb...)",
        ),
    ],
)
def test_another_build_is_another_environment(tmp_path: Path, now: dict[str, Any], message: str) -> None:
    """The path and the version are the same; what only one of the two told is not compared."""
    first = RunFolder.create(tmp_path / "run", plan())
    first.ready(TargetReady(target="cpu", fingerprint=BUILT))
    first.finish()
    folder = RunFolder.reopen(first.path, plan(), info(first.path), 0)
    told = ""
    try:
        folder.ready(TargetReady(target="cpu", fingerprint=BUILT | now))
    except UsageError as error:
        told = str(error)
    folder.finish()
    assert (message in told) if message else not told


def test_a_target_that_has_gone_missing_is_another_environment(broken_off: Path) -> None:
    folder = RunFolder.reopen(broken_off, plan(), info(broken_off), 1)
    with pytest.raises(UsageError, match="unavailable"):
        folder.ready(msgspec.structs.replace(READY, problem="no device"))
    folder.finish()


def test_one_process_at_a_time(tmp_path: Path) -> None:
    first = RunFolder.create(tmp_path / "run", plan())
    with pytest.raises(UsageError, match="another process"):
        RunFolder.reopen(first.path, plan(), info(first.path), 0)
    first.finish()
    RunFolder.reopen(first.path, plan(), info(first.path), 0).finish()
    assert not (first.path / "run.lock").exists()


TREES = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=3), below, max_size=3),
    max_leaves=8,
)


@given(TREES, TREES)
def test_trees_differ_somewhere_or_not_at_all(left: Any, right: Any) -> None:
    assert (not list(json_differences(left, right))) == (left == right)


@pytest.mark.parametrize(("field", "refused"), [("workers = 2", False), ("memory_limit_mb = 2", True)])
def test_a_run_goes_on_with_more_workers_and_no_other_change(
    field: str,
    refused: bool,  # noqa: FBT001
) -> None:
    target = (
        'models = { suites = ["onnx-node"] }\n[[target]]\nname = "t"\nprovider = "CPUExecutionProvider"\n'
    )
    before, after = (plan_of(f"{target}{more}") for more in ("", field))
    matrix = msgspec.json.decode(msgspec.json.encode(before.matrix))
    info = RunInfo(schema=1, plan=before.digest, cells=1, matrix=matrix, targets={}, complete=False)
    check_same_plan(info, before, "run")
    if refused:
        with pytest.raises(UsageError, match=r"the matrix has changed .*memory_limit_mb"):
            check_same_plan(info, after, "run")
    else:
        check_same_plan(info, after, "run")


def test_only_a_folder_that_describes_its_run_promises_to_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run folder without space or inodes, first for `plan.txt`, then for a later `run.json`."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as full:
        full.setattr(run_folder, "write_aside", refuse)
        with pytest.raises(UsageError) as caught:
            RunFolder.create(tmp_path / "run", plan())
    assert "nothing has been recorded" in str(caught.value)
    assert "--resume" not in str(caught.value)

    folder = RunFolder.create(tmp_path / "run", plan())  # as the message says
    before = info(folder.path)
    with monkeypatch.context() as full:
        full.setattr(own_runs, "aside", refuse)
        with pytest.raises(UsageError, match="continue with --resume"):
            folder.ready(READY)
    folder.finish()
    assert info(folder.path).plan == before.plan
    RunFolder.reopen(folder.path, plan(), before, 0).finish()
