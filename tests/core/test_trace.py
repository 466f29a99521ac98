"""The lines of a trace: what is written is read again, and what is wrong is named by its line."""

import pytest

from harness.core.records.trace import (
    BAND,
    Trace,
    TracedModel,
    TracedNode,
    TracedPartition,
    TracedTarget,
    TraceError,
    decode_traces,
    encode_trace,
)

MODEL = TracedModel(model="zoo/m", digest="d", nodes=2, inputs="generated")
NODE = TracedNode(target="t", number=0, depth=0, node="a", op_type="Add", made=TraceError(noise=1.5))
PART = TracedPartition(target="t", number=0, nodes=2, first="a", last="b", made=TraceError(noise=1.5))
END = TracedTarget(target="t", provider="P", sentence="None.", finding="none")


def test_several_models_in_one_file() -> None:
    one = Trace(model=MODEL, targets=((END, (NODE,)),), partitions=(PART,))
    assert decode_traces(encode_trace(one) + b"\n" + encode_trace(one)) == (one, one)


def test_nodes_of_an_unfinished_target_are_left_out() -> None:
    whole = encode_trace(Trace(model=MODEL, targets=((END, (NODE,)),)))
    lines = whole.splitlines(keepends=True)
    (other,) = encode_trace(Trace(model=MODEL, targets=((END, ()),), partitions=(PART,))).splitlines(
        keepends=True
    )[1:2]
    (read,) = decode_traces(b"".join([*lines, lines[1], other]))
    assert read.partitions == ()
    assert read.targets == ((END, (NODE,)),)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{\n", "line 1"),
        (b'{"kind": "target", "target": "t"}\n', "line 1"),
        (encode_trace(Trace(model=MODEL, targets=((END, ()),))).splitlines()[1], "line 1: no model"),
        (
            b'{"kind": "model", "model": "m", "digest": "", "nodes": 1, "inputs": "file", "schema": 9}',
            "schema 9",
        ),
        (b"\xff\n", "line 1"),
    ],
)
def test_a_wrong_line_is_named(content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decode_traces(content)


def test_beyond_the_band() -> None:
    assert not TraceError(noise=BAND).is_beyond
    assert TraceError(noise=BAND * 1.01).is_beyond
    assert TraceError(noise=0.0, special=1).is_beyond
    assert TraceError(noise=0.0, differs="shape").is_beyond
    assert TraceError().is_beyond  # unknown noise explains nothing
    assert not TraceError(exact=True).is_beyond
