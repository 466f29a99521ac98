"""Inputs whose names say that they count the rows of another input."""

import pytest

from harness.corpus.inputs.named_lengths import with_named_lengths
from harness.corpus.model.port import Port, ValueType
from harness.operators.value_domains import Domain


def port(name: str, dtype: str, *axes: int | str) -> Port:
    shape = tuple(None if isinstance(axis, str) else axis for axis in axes)
    symbols = tuple(axis if isinstance(axis, str) else None for axis in axes)
    return Port(name=name, type=ValueType(kind="tensor", dtype=dtype, shape=shape, symbols=symbols))


WAVES = port("waveforms", "float32", "rows", "time")
MEL = port("melFrames", "float32", "rows", 80, "frames")


@pytest.mark.parametrize(
    ("lengths", "others", "wanted"),
    [
        (port("waveforms_lens", "int64", "rows"), [WAVES], ("time",)),
        (port("melLength", "int32", "rows", 1), [WAVES, MEL], ("frames",)),
        (port("length", "int64"), [WAVES, MEL], ("time", "frames")),
        (port("length", "int64", 1), [port("x", "float32", 1, 80, 3000)], (3000,)),
        (port("length", "int64"), [port("wave", "float32", "")], ("axis 0",)),
        (port("length", "int64", "rows"), [], None),
        (port("length", "float32", "rows"), [WAVES], None),  # a share of the longest
        (port("length_scale", "int64", "rows"), [WAVES], None),
        (port("lengths", "int64", "rows", "time"), [WAVES], None),
        (port("max_length", "int64", 1), [WAVES], None),
        (port("past_len", "int64", 1), [WAVES], None),
    ],
)
def test_lengths_fit_the_input_that_they_count(
    lengths: Port, others: list[Port], wanted: tuple[int | str, ...] | None
) -> None:
    found = with_named_lengths({}, [*others, lengths])
    assert found == ({} if wanted is None else {lengths.name: Domain(lengths=wanted)})


def test_what_the_graph_demands_comes_first() -> None:
    known = {"waveforms_lens": Domain(extents=(7,))}
    assert with_named_lengths(known, [WAVES, port("waveforms_lens", "int64", "rows")]) == known
