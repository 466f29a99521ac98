"""The drawing of a minimal model: nothing overlaps, edges lead downwards, and no model breaks it."""

import re
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.records.fault import GraphNode, GraphTensor, ReducedModel
from harness.report.drawings.fault_graph import MAX_NODES, GraphDrawing, draw
from harness.report.drawings.graph_layout import BETWEEN_BOXES, Layout, arrange

Edges = set[tuple[int, int]]


def model(nodes: Sequence[GraphNode], *tensors: GraphTensor) -> ReducedModel:
    return ReducedModel(nodes=tuple(nodes), tensors=tensors, bytes=1, nodes_before=99, bytes_before=99)


def chain(length: int) -> ReducedModel:
    nodes = [
        GraphNode(name=f"n{i}", op_type="Relu", inputs=(f"t{i}",), outputs=(f"t{i + 1}",), guilty=i == 1)
        for i in range(length)
    ]
    ends = (GraphTensor(name="t0", role="input"), GraphTensor(name=f"t{length}", role="output"))
    return model(nodes, *ends)


@st.composite
def graphs(draw_from: st.DrawFn) -> tuple[list[tuple[float, float]], Edges]:
    count = draw_from(st.integers(1, 25))
    side = st.floats(10, 300)
    sizes = draw_from(st.lists(st.tuples(side, side), min_size=count, max_size=count))
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    edges = draw_from(st.sets(pairs, max_size=50))
    return sizes, {(min(pair), max(pair)) for pair in edges if pair[0] != pair[1]}


@given(graphs())
@settings(max_examples=150, deadline=None)
def test_boxes_lie_apart_and_edges_lead_downwards(graph: tuple[list[tuple[float, float]], Edges]) -> None:
    sizes, edges = graph
    layout = arrange(sizes, edges)
    assert layout is not None
    assert layout == arrange(sizes, edges)
    boxes = [(at.x, at.y, at.x + w, at.y + h) for at, (w, h) in zip(layout.corners, sizes, strict=True)]
    for index, one in enumerate(boxes):
        assert one[0] > -0.01
        assert one[2] < layout.width + 0.01
        assert one[3] < layout.height + 0.01
        for other in boxes[index + 1 :]:
            beside = one[2] + BETWEEN_BOXES < other[0] + 0.01 or other[2] + BETWEEN_BOXES < one[0] + 0.01
            assert beside or one[3] < other[1] or other[3] < one[1]
    assert set(layout.routes) == edges
    for (start, end), route in layout.routes.items():
        assert (route[0].y, route[-1].y) == (boxes[start][3], boxes[end][1])
        assert all(one.y <= other.y for one, other in pairwise(route))
        assert not through_a_box(layout, boxes, route_of=(start, end))


def through_a_box(
    layout: Layout, boxes: Sequence[tuple[float, float, float, float]], route_of: tuple[int, int]
) -> bool:
    """Whether the vertical parts of a route, which pass layers, touch a box."""
    route = layout.routes[route_of]
    passes = list(pairwise(route))[1::2]
    return any(
        left < upper.x < right and upper.y < bottom and top < lower.y
        for upper, lower in passes
        for left, top, right, bottom in boxes
    )


@pytest.mark.parametrize("edges", [{(0, 0)}, {(0, 1), (1, 0)}, {(0, 1), (1, 2), (2, 0)}])
def test_a_circle_has_no_layout(edges: Edges) -> None:
    assert arrange([(10, 10)] * 3, edges) is None


def test_crossings_that_need_not_be_are_not() -> None:
    layout = arrange([(10, 10)] * 6, {(0, 5), (1, 4), (2, 3)})
    assert layout is not None
    upper = sorted(range(3), key=lambda box: layout.corners[box].x)
    lower = sorted(range(3, 6), key=lambda box: layout.corners[box].x)
    assert [5 - box for box in upper] == lower


def test_a_node_has_its_attributes_and_initializers() -> None:
    node = GraphNode(
        name="n0",
        op_type="Conv",
        domain="com.microsoft",
        inputs=("x", "", "w", "outer"),
        outputs=("t",),
        attributes={"group": "2"},
        guilty=True,
    )
    behind = GraphNode(name="n1", op_type="Relu", inputs=("t", "t"), outputs=("y",))
    drawing = draw(
        model(
            [node, behind],
            GraphTensor(name="x", role="input", dtype="float32", shape="1x4"),
            GraphTensor(name="w", role="initializer", dtype="float32", shape="4x4"),
            GraphTensor(name="t", role="inner", dtype="float32", shape="1x8"),
            GraphTensor(name="y", role="output", dtype="float16"),
        )
    )
    conv, relu, *ends = drawing.boxes
    assert (conv.head, conv.guilty, relu.guilty) == ("com.microsoft.Conv", True, False)
    assert [(row.label, row.text) for row in conv.rows] == [("group =", "2"), ("w:", "float32 4x4")]
    assert {(box.kind, box.head, *(row.text for row in box.rows)) for box in ends} == {
        ("input", "x", "float32 1x4"),
        ("input", "outer"),  # of a graph around it: what no node makes is an input
        ("output", "y", "float16"),
    }
    assert [label.text for label in drawing.labels] == ["float32 1x8"]
    assert len(drawing.edges) == 4
    assert drawing.words == "The model has 2 nodes: Conv, Relu. The failure is in Conv."


def test_sixty_nodes_are_drawn_and_more_are_told() -> None:
    assert len(draw(chain(MAX_NODES)).boxes) == MAX_NODES + 2
    larger = draw(chain(MAX_NODES + 1))
    assert larger.boxes == ()
    assert larger.words == (
        "The model has 61 nodes: Relu (61). The failure is in Relu. It is too large to draw."
    )


def test_a_model_of_too_many_tensors_or_without_order_is_told() -> None:
    wide = GraphNode(name="n", op_type="Sum", inputs=tuple(f"t{i}" for i in range(5000)), outputs=("y",))
    assert draw(model([wide])).words.endswith("It has too many tensors to draw.")
    itself = GraphNode(name="n", op_type="Add", inputs=("y",), outputs=("y",))
    assert draw(model([itself])).words.endswith("It has a circle, so it is not drawn.")
    assert draw(model([])).boxes == ()


names = st.text(max_size=40) | st.sampled_from(["", "x", "y", "\x1b[31m", "\u202e", "</svg>", "日" * 30])


@given(
    st.lists(
        st.builds(
            GraphNode,
            name=names,
            op_type=names,
            domain=names,
            inputs=st.lists(names, max_size=5).map(tuple),
            outputs=st.lists(names, max_size=3).map(tuple),
            attributes=st.dictionaries(names, names, max_size=12),
            guilty=st.booleans(),
        ),
        max_size=8,
    ),
    st.lists(
        st.builds(
            GraphTensor,
            name=names,
            role=st.sampled_from(["input", "output", "initializer", "inner"]),
            dtype=names,
            shape=names,
        ),
        max_size=12,
    ),
)
@settings(max_examples=200, deadline=None)
def test_no_model_breaks_the_drawing(nodes: list[GraphNode], tensors: list[GraphTensor]) -> None:
    drawing = draw(model(nodes, *tensors))
    assert drawing.words
    for box in drawing.boxes:
        assert 0 <= box.x <= box.x + box.width <= drawing.width + 1
        assert 0 <= box.y <= box.y + box.height <= drawing.height + 1
        assert len(box.rows) <= 8
        for text in texts(drawing):
            assert len(text) <= 140
            assert not set(text) & {"\x1b", "\u202e", "\n", "\x00"}
    for edge in drawing.edges:
        assert re.fullmatch(r"[MCVLZ\d. -]+", edge.line + edge.head)


def texts(drawing: GraphDrawing) -> list[str]:
    boxes = [text for box in drawing.boxes for text in (box.head, box.tip)]
    rows = [text for box in drawing.boxes for row in box.rows for text in (row.label, row.text)]
    return [*boxes, *rows, *(label.text for label in drawing.labels)]
