"""Two traces: which nodes are guilty now, which no longer are, and what is not comparable."""

import json
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.core.records.trace import (
    Trace,
    TracedModel,
    TracedNode,
    TracedPartition,
    TracedTarget,
    TraceError,
    encode_trace,
)
from harness.core.text.errors import UsageError
from harness.report.changes.trace_diff import compare_traces, trace_diff_lines

ROUNDING, WRONG = TraceError(noise=0.8, relative=1e-7), TraceError(noise=5000.0, relative=0.002)


def write(
    path: Path,
    guilty: tuple[str, ...],
    *,
    target: str = "npu",
    model: str = "zoo/m",
    digest: str = "1",
    wrong: bool = False,
) -> Path:
    """A trace of three nodes, in one partition that may be wrong as compiled."""
    nodes = tuple(
        TracedNode(
            target=target,
            number=at,
            depth=at,
            node=name,
            op_type="MatMul",
            made=WRONG if name in guilty else ROUNDING,
            guilty=name in guilty,
        )
        for at, name in enumerate("abc")
    )
    sentence = f"Made at {', '.join(guilty)}." if guilty else "No error but rounding."
    end = TracedTarget(target=target, provider="P", sentence=sentence, finding="made" if guilty else "none")
    known = TracedModel(model=model, digest=digest, nodes=3, inputs="generated")
    path.parent.mkdir(exist_ok=True)
    part = TracedPartition(
        target=target,
        number=0,
        nodes=3,
        first="a",
        last="c",
        made=WRONG if wrong else ROUNDING,
        guilty=wrong,
    )
    path.write_bytes(encode_trace(Trace(model=known, targets=((end, nodes),), partitions=(part,))))
    return path


def test_nodes_become_guilty_and_are_mended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = (
        write(tmp_path / "old" / "trace.jsonl", ("a",)),
        write(tmp_path / "new" / "trace.jsonl", ("b",)),
    )
    assert main(["diff", str(old), str(new.parent)]) == 0
    shown = capsys.readouterr().out
    assert "guilty now: 1\n        MatMul b: 0.8 times its noise -> 5e+03 times its noise" in shown
    assert "no longer guilty: 1\n        MatMul a:" in shown
    assert "before  onnxruntime unknown: Made at a." in shown
    assert main(["diff", str(old), str(new), "--json"]) == 0
    (target,) = json.loads(capsys.readouterr().out)["targets"]
    assert [one["node"] for one in target["guilty_now"]] == ["b"]


def test_a_partition_becomes_wrong_as_compiled(tmp_path: Path) -> None:
    old = write(tmp_path / "old" / "trace.jsonl", ())
    new = write(tmp_path / "new" / "trace.jsonl", (), wrong=True, target="other")
    words = "now wrong as compiled: 3 nodes from a to c: 0.8 times its noise -> 5e+03 times its noise"
    assert words in "\n".join(trace_diff_lines(compare_traces(old, new)))
    mended = compare_traces(new, old).targets[0]
    assert mended.partitions_now == ()
    assert [one.first for one in mended.partitions_mended] == ["a"]


def test_equal_traces_have_no_changes(tmp_path: Path) -> None:
    path = write(tmp_path / "trace.jsonl", ("a",))
    diff = compare_traces(path, path)
    assert diff.same_inputs
    assert (diff.targets[0].guilty_now, diff.targets[0].mended) == ((), ())


def test_the_only_target_may_have_another_name_and_other_inputs_are_told(tmp_path: Path) -> None:
    old = write(tmp_path / "old.jsonl", ())
    new = write(tmp_path / "new.jsonl", ("c",), target="npu[precision=fp16]", digest="2")
    diff = compare_traces(old, new)
    assert [one.node for one in diff.targets[0].guilty_now] == ["c"]
    assert "not alike: the model or its inputs" in trace_diff_lines(diff)


def test_what_cannot_be_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, other = write(tmp_path / "old.jsonl", ()), write(tmp_path / "other.jsonl", (), model="zoo/other")
    with pytest.raises(UsageError, match="a trace of zoo/other; the old one is of zoo/m"):
        compare_traces(old, other)
    (tmp_path / "no.jsonl").write_text("{}", encoding="utf-8")
    with pytest.raises(UsageError, match="no trace: line 1"):
        compare_traces(old, tmp_path / "no.jsonl")
    assert main(["diff", str(old), str(old), "--format", "github"]) == 2
    assert "these are traces" in capsys.readouterr().err
