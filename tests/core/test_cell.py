"""Ids of cells: derived from values alone, and readable back."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.records.cell import AXIS_DEFAULTS, Cell, escape, parse_cell_id

ALPHABET = re.compile(r"[A-Za-z0-9._+=,/%-]+/[A-Za-z0-9._+=,/%-]+\[[A-Za-z0-9._+=,/%-]+\]")

# Lone surrogates included: that is how file names that are no UTF-8 look.
anything = st.text(st.characters(), min_size=1)
option_axes = st.dictionaries(st.text(min_size=1).map("option.{}".format), st.text(), max_size=3)
known_axes = st.fixed_dictionaries({axis: st.just(value) | anything for axis, value in AXIS_DEFAULTS.items()})


@st.composite
def cells(draw: st.DrawFn) -> Cell:
    axes = {**draw(known_axes), **draw(option_axes)}
    return Cell(
        suite=draw(anything), model=draw(anything), target=draw(anything), axes=tuple(sorted(axes.items()))
    )


def test_an_id_leaves_defaults_out_and_sorts_the_rest() -> None:
    cell = Cell(
        suite="onnx-node",
        model="test_abs",
        target="openvino-cpu",
        axes=(("graph_optimization", "basic"), ("option.num_streams", "2"), ("precision", "fp32")),
    )
    assert cell.id == "onnx-node/test_abs[openvino-cpu,graph_optimization=basic,option.num_streams=2]"


def test_a_folder_model_keeps_its_slashes() -> None:
    assert Cell(suite="models", model="a/b.onnx", target="cpu").id == "models/a/b.onnx[cpu]"


@pytest.mark.parametrize(
    ("text", "escaped"),
    [("a b", "a%20b"), ("::", "%3A%3A"), ("~", "%7E"), ("é", "%C3%A9"), ("[x]", "%5Bx%5D"), ("%41", "%2541")],
)
def test_what_lies_outside_the_alphabet_is_percent_encoded(text: str, escaped: str) -> None:
    assert escape(text) == escaped


@given(cells())
def test_ids_parse_back(cell: Cell) -> None:
    suite, model, target, axes = parse_cell_id(cell.id)
    assert (suite, model, target) == (cell.suite, cell.model, cell.target)
    assert tuple(sorted((AXIS_DEFAULTS | axes).items())) == cell.axes


@given(cells())
def test_ids_keep_to_their_alphabet(cell: Cell) -> None:
    assert ALPHABET.fullmatch(cell.id)
    assert "::" not in cell.id


@given(cells(), cells())
def test_ids_are_injective(one: Cell, other: Cell) -> None:
    assert (one.id == other.id) == (one == other)


@given(st.data())
def test_pieces_cannot_leak_into_each_other(data: st.DataObject) -> None:
    piece = st.text(st.sampled_from("a/,=[]%"), min_size=1, max_size=3)

    def draw() -> Cell:
        axes = (("option." + data.draw(piece), data.draw(piece)),)
        return Cell(suite=data.draw(piece), model=data.draw(piece), target=data.draw(piece), axes=axes)

    one, other = draw(), draw()
    assert (one.id == other.id) == (one == other)


@pytest.mark.parametrize("text", ["", "a", "a/b", "a/b[c", "/b[c]", "a/[c]", "a[c]", "a/b[c,d]", "a/b[%FF]"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the text differs, the type is the contract
        parse_cell_id(text)


@pytest.mark.parametrize(("axis", "value"), [("precision", "fp32"), ("option.x", "1"), ("option.y", "")])
def test_an_axis_is_looked_up_with_its_default(axis: str, value: Any) -> None:
    cell = Cell(suite="s", model="m", target="t", axes=(("option.x", "1"),))
    assert cell.axis(axis) == value
