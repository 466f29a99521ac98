"""Sizes of generated inputs follow what the graph needs of the dimensions that a model leaves open."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

from harness.core.values.value import Tensor
from harness.corpus.case import Case, at_draw
from harness.corpus.inputs.attempts import ATTEMPTS, InputAttempt
from harness.corpus.inputs.fitting.demand_walk import Walk
from harness.corpus.inputs.fitting.known_tensors import KnownTensor
from harness.corpus.inputs.recipe import Recipe
from harness.corpus.load_case import load_case
from harness.corpus.model.nodes import bodies
from harness.corpus.suites.suite import open_folder

HEADER = '<ir_version: 9, opset_import: ["" : 17]>'


def model_of(graph: str) -> onnx.ModelProto:
    """Return a model whose declared tensors without a node are weights."""
    model = onnx.parser.parse_model(f"{HEADER} {graph}")
    for one in (model.graph, *(body for node in model.graph.node for body in bodies(node))):
        for declared in one.value_info:
            shape = [dim.dim_value for dim in declared.type.tensor_type.shape.dim]
            one.initializer.append(numpy_helper.from_array(np.ones(shape, np.float32), declared.name))
        del one.value_info[:]
    return model


def case_of(folder: Path, graph: str, name: str = "m.onnx", **dimensions: int) -> Case:
    onnx.save(model_of(graph), folder / name)
    return load_case(open_folder(folder), name, dimensions)


def recipe_of(folder: Path, graph: str, **dimensions: int) -> Recipe:
    recipe = case_of(folder, graph, "m.onnx", **dimensions).recipe
    assert recipe is not None
    return recipe


FITTING = """
nothing asks | n=2 w=3
    (float[n, w] x) => (float[n, w] y) { y = Relu(x) }
a picture | n=2 h=64 w=96
    (float[n, 3, h, w] x) => (float[n, 4, a, b] y) <float[4, 3, 3, 3] k> { y = Conv<strides = [2, 2]>(x, k) }
a picture with channels last | n=2 h=64 w=96
    (uint8[n, h, w, 3] x) => (float[n, h, w, 3] y) { y = Cast<to = 1>(x) }
a line of text | n=2 w=96
    (float[n, 1, 32, w] x) => (float[n, 1, 32, w] y) { y = Relu(x) }
no picture | n=2 h=3 w=5
    (float[n, 7, h, w] x) => (float[n, 7, h, w] y) { y = Relu(x) }
channels by the weight | n=2 c=3 h=64 w=96
    (float[n, c, h, w] x) => (float[n, 4, a, b] y) <float[4, 3, 1, 1] k> { y = Conv(x, k) }
a window has several places | n=2 t=15
    (float[n, 2, t] x) => (float[n, 4, s] y) <float[4, 2, 7] k> { y = Conv(x, k) }
padding counts | n=2 t=3
    (float[n, 2, t] x) => (float[n, 4, s] y) <float[4, 2, 7] k> { y = Conv<pads = [3, 3]>(x, k) }
windows behind each other, of which 68 gives one place | n=2 t=137
    (float[n, 1, t] x) => (float[n, 1, s] y) <float[1, 1, 8] k>
    { a = Conv<strides = [4]>(x, k) b = Conv<strides = [4]>(a, k) y = MaxPool<kernel_shape = [3]>(b) }
mirrored samples and a spectrum | n=2 u=257
    (float[n, u] x) => (float[n, 8, s] y)
    <int64[6] pads = {0, 0, 64, 0, 0, 64}, float[8, 1, 256] w, int64 one = {1}>
    { z = Unsqueeze(x, one) p = Pad<mode = "reflect">(z, pads) y = Conv<strides = [128]>(p, w) }
sound by its name | n=2 t=4000
    (float[n, t] audio) => (float[n, t] y) { y = Relu(audio) }
a spectrum by the name of its axis | n=2 num_frames=64
    (float[n, 80, num_frames] x) => (float[n, 80, num_frames] y) { y = Relu(x) }
a state joined with data | n=2 m=2
    (float[n, 4] x, float[m, 8] state) => (float[n, 12] y) { y = Concat<axis = 1>(x, state) }
terms of a product | n=2 k=6
    (float[n, k] x) => (float[n, 5] y) <float[6, 5] w> { y = MatMul(x, w) }
elements of a shape | n=2 t=40
    (float[n, t] x) => (float[a, 16] y) <int64[2] s = {-1, 16}> { y = Reshape(x, s) }
halves and doubles | n=2 t=8
    (float[n, 2, t] x) => (float[n, 2, t] y) <float[2, 2, 2] k>
    { a = MaxPool<kernel_shape = [4], strides = [4]>(x)
      b = ConvTranspose<strides = [4], output_padding = [2]>(a, k) y = Add(x, b) }
shape arithmetic | n=2 t=3
    (float[n, t] x) => (float[n, a, 3] y) <int64[1] zero = {0}, int64[2] rest = {-1, 3}>
    { s = Shape(x) first = Gather(s, zero) to = Concat<axis = 0>(first, rest) y = Reshape(x, to) }
behind a bias | n=2 t=43
    (float[n, t] x) => (float[n] y) <int64 last = {20}, float half = {0.5}>
    { a = Add(x, half) b = Pow(a, half) y = Gather<axis = 1>(b, last) }
behind an operator that the book has no rule for | n=2 t=81
    (float[n, t, 1] x) => (float[n, 2] y) <int64 last = {20}>
    { a = DFT<axis = 1, onesided = 1>(x) y = Gather<axis = 1>(a, last) }
the least that an index needs | n=2 t=43
    (float[n, t] x) => (float[n] y) <int64 last = {20}> { y = Gather<axis = 1>(x, last) }
"""
"""What asks, the sizes of the first inputs, and the model."""


def rows() -> Iterator[tuple[str, str, str]]:
    for text in re.split(r"\n(?=\S)", FITTING.strip()):
        head, _, graph = text.partition("\n")
        name, _, sizes = head.partition(" | ")
        yield name, sizes, graph


@pytest.mark.parametrize(("sizes", "graph"), [pytest.param(*row, id=name) for name, *row in rows()])
def test_the_sizes_of_the_first_inputs(tmp_path: Path, sizes: str, graph: str) -> None:
    recipe = recipe_of(tmp_path, f"agraph {graph}")
    assert {f"{name}={size}" for name, size in recipe.sizes.items()} == set(sizes.split())
    assert (recipe.fit.unmet, recipe.fit.beyond) == (0, ())
    for draw in (1, 2):
        others = recipe.at(InputAttempt(draw=draw)).sizes
        assert others != recipe.sizes
        assert all(size >= recipe.fit.least[name] for name, size in others.items())


def test_given_sizes_stay_and_windows_beyond_them_are_told(tmp_path: Path) -> None:
    graph = "agraph (float[n, 2, t] x) => (float[n, 4, s] y) <float[4, 2, 7] k> { y = Conv(x, k) }"
    recipe = recipe_of(tmp_path, graph, t=5)
    assert recipe.sizes == {"n": 2, "t": 5}
    assert recipe.fit.beyond == ("Conv '' has a window of 7 over 5",)


def test_tiny_sizes_come_last_and_only_where_the_graph_allows_them(tmp_path: Path) -> None:
    graph = "agraph (float[n, 2, t] x) => (float[n, 4, s] y) <float[4, 2, 7] k> { y = Conv(x, k) }"
    recipe = recipe_of(tmp_path, graph)
    sizes = [recipe.at(attempt).sizes["t"] for attempt in recipe.attempts()]
    assert min(sizes) == 7
    assert sizes[0] == 15
    order = [attempt.sizes for attempt in ATTEMPTS]
    assert order.index(1) > order.index(2) > order.index(16)


def test_the_branch_of_the_sample_rate_counts(tmp_path: Path) -> None:
    def branch(name: str, window: int) -> str:
        return (
            f"{name} () => (float[n, 1, {name}_s] {name}_y)"
            f" <float[1, 1, {window}] {name}_k> {{ {name}_y = Conv(x, {name}_k) }}"
        )

    graph = (
        "agraph (float[n, 1, t] x, int64 sr) => (float[n, 1, s] y) <int64 rate = {16000}> {"
        " is = Equal(sr, rate)"
        f" y = If(is) <then_branch = {branch('a', 64)}, else_branch = {branch('b', 640)}> }}"
    )
    case = case_of(tmp_path, graph)
    assert values(case)["sr"] == 16000
    assert case.recipe is not None
    assert case.recipe.fit.least == {"n": 1, "t": 64}


def test_inputs_without_names_of_dimensions_get_sizes_of_their_own_where_the_graph_needs_them(
    tmp_path: Path,
) -> None:
    graph = """agraph (float[n, t] x, float[u, v] z) => (float[n, a] y) <float[64, 2] w> {
        long = MatMul(x, w) y = Add(long, z) }"""
    model = model_of(graph)
    for port in model.graph.input:
        for dim in port.type.tensor_type.shape.dim:
            dim.ClearField("dim_param")
    onnx.save(model, tmp_path / "m.onnx")
    case = load_case(open_folder(tmp_path), "m.onnx", {})
    shapes = {name: one.array.shape for name, one in case.data_sets[0].inputs if isinstance(one, Tensor)}
    assert shapes == {"x": (2, 64), "z": (2, 2)}


def values(case: Case) -> dict[str, np.ndarray]:
    return {name: one.array for name, one in case.data_sets[0].inputs if isinstance(one, Tensor)}


def test_a_file_of_another_name_gets_the_same_inputs_and_another_model_others(tmp_path: Path) -> None:
    graph = "agraph (float[n, w] x) => (float[n, w] y) { y = Relu(x) }"
    first, renamed = (values(case_of(tmp_path, graph, name)) for name in ("a.onnx", "b.onnx"))
    other = values(case_of(tmp_path, graph.replace("Relu", "Neg"), "c.onnx"))
    assert np.array_equal(first["x"], renamed["x"])
    assert not np.array_equal(first["x"], other["x"])


def test_another_draw_has_other_numbers_where_all_sizes_are_fixed(tmp_path: Path) -> None:
    case = case_of(tmp_path, "agraph (float[4] x) => (float[4] y) { y = Relu(x) }")
    drawn = [values(at_draw(case, draw))["x"] for draw in (0, 1, 2)]
    assert len({one.tobytes() for one in drawn}) == 3
    assert len({at_draw(case, draw).digest for draw in (0, 1, 2)}) == 3


def test_what_is_compared_with_a_table_takes_all_of_its_numbers(tmp_path: Path) -> None:
    table = f"<int64[257] t = {{{', '.join(map(str, range(257)))}}}, int64 one = {{1}}>"
    case = case_of(
        tmp_path,
        f"agraph (int64[300, 1] x, int64[n, 9] ids) => (bool[300, 257] y, bool[n, 9] pad) {table} {{"
        " y = Equal(x, t) pad = Equal(ids, one) }",
    )
    x = values(case)["x"]
    assert (x.min() < 20, x.max() > 237) == (True, True)
    assert set(values(case)["ids"].reshape(-1)) == {0, 1}  # one number says nothing of the others


@pytest.mark.parametrize(
    ("declared", "rate"),
    [
        ("int64 sr", 16000),
        ("float[1] sample_rate", 16000),
        ("int64[1] samplingRate", 16000),
        ("int64[2] sr", None),
        ("int8 sr", None),
        ("int64 fsr", None),
    ],
)
def test_a_scalar_named_like_a_sample_rate_is_one(tmp_path: Path, declared: str, rate: int | None) -> None:
    kind, name = declared.split()
    case = case_of(tmp_path, f"agraph ({kind} {name}) => ({kind} y) {{ y = Identity({name}) }}")
    drawn = values(case)[name].reshape(-1)[0]
    assert drawn == rate if rate is not None else drawn != 16000


def test_each_branch_has_weights_of_its_own() -> None:
    """Weights are kept by the place of a branch: its address is that of another one once it is free."""
    branch = "(float[1, 1, A] a) { a = Conv (x, w) }"
    nodes = " ".join(
        f"y{number} = If (flag) <then_branch = t () => {branch}, else_branch = e () => {branch}>"
        for number in range(4)
    )
    text = f"""<ir_version: 10, opset_import: ["" : 21]>
    g (bool flag, float[1, 1, N] x) => (float[1, 1, M] y0) {{ {nodes} }}"""
    model = onnx.parser.parse_model(text)
    for size, node in enumerate(model.graph.node, start=2):
        for attribute in node.attribute:
            extra = 10 if attribute.name == "else_branch" else 0
            kernel = np.ones((1, 1, size + extra), np.float32)
            attribute.g.initializer.append(numpy_helper.from_array(kernel, "w"))
    walk = Walk(model)
    for flag, first in ((True, 2), (False, 12), (True, 2)):
        inputs = {"flag": KnownTensor((), np.array(flag)), "x": KnownTensor((1, 1, 20))}
        windows = [demand.window for demand in walk.demands(inputs).values() if demand.window]
        assert windows == [f"Conv '' has a window of {size} over 20" for size in range(first, first + 4)]
