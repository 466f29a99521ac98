"""From a matrix to cells: order, ids, and entries that match nothing."""

import time
from collections.abc import Mapping, Sequence
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from harness.core.records.cell import AXIS_DEFAULTS, Cell, parse_cell_id
from harness.core.text.errors import UsageError
from harness.plan.expand import cells, expand
from harness.plan.matrix import Matrix, ModelSelection
from harness.plan.target import Target
from tests.kit import make_matrix, plan_of

MODELS = {"onnx-node": ["test_abs", "test_stft", "test_add_expanded"], "models": ["a/b.onnx"]}

HEAD = """
schema = 1
[models]
suites = ["onnx-node"]
folders = ["models"]
exclude = ["*_expanded"]
[axes]
graph_optimization = ["disabled", "all"]
[[target]]
name = "openvino"
provider = "OpenVINOExecutionProvider"
options = { streams = 4 }
unchecked_options = true
axes = { "option.streams" = ["2", "1"] }
[[target]]
name = "qnn"
provider = "QNNExecutionProvider"
axes = { graph_optimization = ["all"] }
"""


def matrix(lists: str = "") -> Matrix:
    return make_matrix(HEAD + lists)


def complaint(lists: str, models: Mapping[str, Sequence[str]] = MODELS) -> str:
    with pytest.raises(UsageError) as caught:
        expand(matrix(lists), models)
    return str(caught.value)


def test_the_order_is_target_configuration_model_other_axes(snapshot: SnapshotAssertion) -> None:
    assert [cell.id for cell in expand(matrix(), MODELS).cells] == snapshot


def test_a_cell_holds_every_axis_sorted() -> None:
    first = expand(matrix(), MODELS).cells[0]
    assert first.axes == (
        ("execution_mode", "sequential"),
        ("graph_optimization", "disabled"),
        ("option.streams", "2"),
        ("precision", "fp32"),
        ("scenario", "plain"),
    )


def test_excluded_cells_leave_the_plan() -> None:
    plan = expand(
        matrix('[[exclude]]\ntarget = "openvino"\n"option.streams" = "1"\nmodel = "test_*"\n'), MODELS
    )
    gone = {cell.id for cell in expand(matrix(), MODELS).cells} - {cell.id for cell in plan.cells}
    assert gone == {
        "onnx-node/test_abs[openvino,graph_optimization=disabled,option.streams=1]",
        "onnx-node/test_abs[openvino,option.streams=1]",
        "onnx-node/test_stft[openvino,graph_optimization=disabled,option.streams=1]",
        "onnx-node/test_stft[openvino,option.streams=1]",
    }


def test_every_entry_that_matches_nothing_is_reported(snapshot: SnapshotAssertion) -> None:
    lists = """
[[exclude]]
suite = "onnx-nodes"
[[exclude]]
target = "openvino-*"
[[exclude]]
target = "qnn"
model = "test_stft"
[[tolerance]]
provider = "QMNExecutionProvider"
rtol = 1
atol = 0
[[tolerance]]
"option.stream" = "1"
rtol = 1
atol = 0
[[expect]]
target = "qnn"
model = "test_stft"
verdict = "crash"
reason = "excluded above"
[[expect]]
target = "qnn"
"option.streams" = "1"
verdict = "crash"
reason = "never together"
[[expect]]
model = ["onnx-node/test_stfft*", "onnx-node/x"]
verdict = "crash"
reason = "misspelt"
"""
    broken = make_matrix((HEAD + lists).replace('"*_expanded"', '"*_expanded", "test_expandd"'))
    with pytest.raises(UsageError) as caught:
        expand(broken, MODELS)
    assert str(caught.value) == snapshot


def test_suites_without_models_make_no_plan() -> None:
    assert complaint("", {"onnx-node": [], "models": []}) == "m.toml: models: the suites hold no models"


def test_excluding_everything_makes_no_plan() -> None:
    assert "the exclude lists match all of them" in complaint('[[exclude]]\ntarget = "*"\n')


def test_duplicate_ids_are_named() -> None:
    text = complaint("", {"onnx-node": ["test_abs", "b", "test_abs", "x_expanded"], "models": ["m"]})
    assert "2 cells have the id onnx-node/test_abs[qnn]" in text
    assert "onnx-node/b[" not in text


names = st.lists(st.text("ab/[]=,% é", min_size=1, max_size=4), min_size=1, max_size=3, unique=True)


@st.composite
def matrices(draw: st.DrawFn) -> tuple[Matrix, dict[str, list[str]]]:
    axes = st.dictionaries(
        st.sampled_from(["option.a", "option.b=", "graph_optimization", "precision"]),
        names.map(tuple),
        max_size=3,
    )
    targets = tuple(
        Target(name=name, provider=("CPUExecutionProvider",), axes=draw(axes)) for name in draw(names)
    )
    models = {suite: draw(names) for suite in draw(names)}
    return Matrix(path="m", schema=1, models=ModelSelection(), axes=draw(axes), targets=targets), models


@given(matrices())
def test_expansion_is_unique_repeatable_and_contiguous(drawn: tuple[Matrix, dict[str, list[str]]]) -> None:
    given_matrix, models = drawn
    plan = expand(given_matrix, models)
    ids = [cell.id for cell in plan.cells]
    assert len(set(ids)) == len(ids)
    assert plan.cells == expand(given_matrix, models).cells
    assert plan.digest == expand(given_matrix, dict(reversed(models.items()))).digest

    def configuration(cell: Cell) -> tuple[object, ...]:
        fixed = [pair for pair in cell.axes if pair[0] == "precision" or pair[0].startswith("option.")]
        return cell.target, fixed

    blocks = [key for key, _ in groupby(plan.cells, key=configuration)]
    assert len(blocks) == len({str(block) for block in blocks})
    targets = [name for name, _ in groupby(cell.target for cell in plan.cells)]
    assert targets == [target.name for target in given_matrix.targets]
    for cell in plan.cells:
        assert list(cell.axes) == sorted(cell.axes)
        assert AXIS_DEFAULTS.keys() <= dict(cell.axes).keys()
        assert parse_cell_id(cell.id)[:3] == (cell.suite, cell.model, cell.target)


def test_the_product_is_lazy() -> None:
    class Endless(Sequence[str]):
        def __len__(self) -> int:
            return 10**9

        def __getitem__(self, index: object) -> str:
            raise AssertionError(f"item {index} was read before the first cell")

    made = cells(matrix(), {"s": Endless()})
    assert iter(made) is made


def test_an_entry_for_scenarios_that_repeat_in_their_own_way_is_refused() -> None:
    head = 'schema = 1\n[models]\nsuites = ["onnx-node"]\n[axes]\nscenario = ["lifecycle"]\n'
    lists = '[[target]]\nname = "cpu"\nprovider = "CPUExecutionProvider"\n[[repeat]]\nruns = 2\n'
    with pytest.raises(UsageError) as caught:
        expand(make_matrix(head + lists), MODELS)
    assert "repeat[0]: matches no cell: the scenarios of this plan are neither repeated" in str(caught.value)


def test_a_hundred_thousand_cells_expand_quickly() -> None:
    lists = "".join(
        f'[[expect]]\nmodel = "onnx-node/test_{i}*"\nverdict = "crash"\nreason = "r"\n' for i in range(10, 60)
    )
    models = {"onnx-node": [f"test_{i}" for i in range(20_000)], "models": ["x_expanded"]}
    start = time.process_time()
    plan = expand(matrix(lists), models)
    elapsed_s = time.process_time() - start
    assert len(plan.cells) == 100_000
    # About 0.4 s of a processor.
    assert elapsed_s < 3


def test_too_many_cells_are_refused_before_they_fill_the_memory() -> None:
    axes = "".join(f'"option.o{index}" = {[str(value) for value in range(10)]}\n' for index in range(12))
    table = f"""
schema = 1
[models]
suites = ["onnx-node"]
[[target]]
name = "a"
provider = "AExecutionProvider"
plugin = "a"
[target.axes]
{axes}"""
    with pytest.raises(UsageError, match="the axes make 2,000,000,000,000 cells"):
        plan_of(table, {"onnx-node": ["test_abs", "test_stft"]})
