"""A one-stage detector with its postprocessing: a loop that refines boxes, suppression, and a branch."""

import numpy as np

from harness.annex.made.zoo.graph_builder import BATCH_DIM, FLOAT, Architecture, GraphBuilder
from harness.annex.made.zoo.inputs import images
from harness.annex.made.zoo.layers import batch_norm, conv
from harness.core.values.value import Array

_CLASSES = 4
_STRIDE = 8
_REFINEMENTS = 3
_MOST = 5
"""Boxes kept for each class of each image."""

_FOUND = "found"
"""Rows of the output."""

_COLUMNS = 7
"""Image, class, score and four corners in each row."""


def build(g: GraphBuilder, *, image: int, width: int) -> None:
    """Add a backbone of strided convolutions, two heads, Loop, NonMaxSuppression and If."""
    x = g.input("image", (BATCH_DIM, 3, image, image), images)
    channels = 3
    for stage in range(3):
        with g.scope(f"stage{stage}"):
            x = conv(g, x, (channels, width << stage), 3, stride=2, bias=False)
            channels = width << stage
            x = g.op("LeakyRelu", batch_norm(g, x, channels), alpha=0.1)
    boxes, scores = _heads(g, x, channels, image)
    boxes = _refine(g, boxes, image)
    with g.scope("suppression"):
        limits = (g.constant(np.array([_MOST])), g.scalar(0.5), g.scalar(0.6))
        selected = g.op("NonMaxSuppression", boxes, scores, *limits)
    rows = _gather(g, boxes, scores, selected)
    g.output("detections", rows, "float32", (_FOUND, _COLUMNS))


def _heads(g: GraphBuilder, x: str, channels: int, image: int) -> tuple[str, str]:
    """Add boxes ``(N, anchors, 4)`` in pixels, and scores ``(N, classes, anchors)`` from 0 to 1."""
    anchors = _anchors(image)
    count = len(anchors)
    with g.scope("scores"):
        scores = conv(g, x, (channels, _CLASSES), 1, gain=1.0)
        scores = g.op("Sigmoid", g.op("Reshape", scores, g.ints(0, _CLASSES, count)))
    with g.scope("boxes"):
        moves = g.op("Tanh", conv(g, x, (channels, 4), 1, gain=1.0))
        moves = g.op("Transpose", g.op("Reshape", moves, g.ints(0, 4, count)), perm=[0, 2, 1])
        pixels = g.op("Mul", moves, g.scalar(_STRIDE / 2))
        return g.op("Add", pixels, g.weight("anchors", anchors)), scores


def _anchors(image: int) -> Array:
    """Return one square of twice the stride for each cell of the grid, as ``y1, x1, y2, x2``; float32."""
    centres = (np.arange(image // _STRIDE) + 0.5) * _STRIDE
    y, x = (part.ravel() for part in np.meshgrid(centres, centres, indexing="ij"))
    return np.stack([y - _STRIDE, x - _STRIDE, y + _STRIDE, x + _STRIDE], axis=1).astype(np.float32)


def _refine(g: GraphBuilder, boxes: str, image: int) -> str:
    """Move the boxes several times, by the result of a small layer at their place."""
    weight, bias = g.normal("refine/weight", (4, 4), 0.5), g.normal("refine/bias", (4,), 0.1)
    trip = [g.declare("step", "int64", ()), g.declare("go_on", "bool", ())]
    state = g.declare("boxes_so_far", "float32", (BATCH_DIM, (image // _STRIDE) ** 2, 4))
    with g.body("refine", [*trip, state]) as body:
        place = g.op("Sub", g.op("Mul", "boxes_so_far", g.scalar(2 / image)), g.scalar(1))
        move = g.op("Tanh", g.op("Add", g.op("MatMul", place, weight), bias))
        moved = g.op("Add", "boxes_so_far", move)
        go_on = g.op("Identity", "go_on")
        body.outputs += [
            g.declare(go_on, "bool", ()),
            g.declare(moved, "float32", (BATCH_DIM, (image // _STRIDE) ** 2, 4)),
        ]
    steps, start = g.constant(np.array(_REFINEMENTS)), g.constant(np.ones((), bool))
    return g.op("Loop", steps, start, boxes, body=body.graph)


def _gather(g: GraphBuilder, boxes: str, scores: str, selected: str) -> str:
    """Add the rows of the selected boxes, each ``(image, class, box)``; there may be none."""
    count = g.op("Gather", g.op("Shape", selected), g.constant(np.array(0)), axis=0)
    some = g.op("Greater", count, g.constant(np.array(0)))
    with g.body("some") as then:
        where = g.op("Gather", selected, g.ints(0, 2), axis=1)
        kind = g.op("Cast", g.op("Slice", selected, g.ints(0), g.ints(2), g.ints(1)), to=FLOAT)
        score = g.op("Unsqueeze", g.op("GatherND", scores, selected), g.ints(1))
        rows = g.op("Concat", kind, score, g.op("GatherND", boxes, where), axis=1)
        then.outputs.append(g.declare(rows, "float32", (_FOUND, _COLUMNS)))
    with g.body("none") as otherwise:
        rows = g.op("ConstantOfShape", g.ints(0, _COLUMNS))
        otherwise.outputs.append(g.declare(rows, "float32", (0, _COLUMNS)))
    return g.op("If", some, then_branch=then.graph, else_branch=otherwise.graph)


DETECTOR = Architecture(
    name="detector",
    what="object detector with its postprocessing: LeakyRelu, Loop, NonMaxSuppression, If, GatherND",
    build=build,
    sizes={"small": {"image": 64, "width": 8}, "base": {"image": 96, "width": 24}},
)
