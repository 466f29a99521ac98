"""What each level makes of a model: with onnxruntime itself, and with one that dies at it."""

from pathlib import Path

import pytest

from harness.annex.advise.level_study import examine_levels
from harness.core.records.graph_levels import Levels, LevelStep
from harness.core.records.verdict import Verdict
from harness.core.text.errors import UsageError
from harness.corpus.suites.suites import open_model
from harness.plan.matrix import Matrix, ModelSelection
from harness.plan.target import Target
from tests.kit import FAKE_ENV, write_model


def matrix_of(*targets: Target) -> Matrix:
    return Matrix(path="m", schema=1, models=ModelSelection(), targets=targets)


def quiet(_: str) -> None:
    pass


@pytest.fixture(scope="module")
def mnist() -> Levels:
    name = "zoo/mnist-small-op12"
    target = Target(name="again", provider=("CPUExecutionProvider",))
    return examine_levels(name, open_model(name), matrix_of(target), quiet)


def step(found: Levels, name: str) -> LevelStep:
    return next(one for one in found.steps if one.name == name)


def changes_at(found: Levels, name: str) -> set[tuple[str, str, int]]:
    return {(change.kind, change.text, change.times) for change in step(found, name).changes}


@pytest.mark.real_ep
def test_the_mnist_cnn_as_the_nnapi_page_explains_it(mnist: Levels) -> None:
    assert changes_at(mnist, "basic") == {
        ("fused", "Conv + Add → Conv", 2),
        ("fused", "MatMul + Add → Gemm", 1),
        ("folded", "Reshape → a constant", 1),
    }
    assert changes_at(mnist, "extended") == {("fused", "Conv + Relu → com.microsoft.FusedConv", 2)}
    fused = next(row for row in mnist.operators if row.operator.label == "com.microsoft.FusedConv")
    assert (fused.in_model, fused.counts[:3]) == (0, (0, 0, 2))
    assert [one.nodes for one in mnist.steps[:3]] == [12, 8, 6]
    assert mnist.nodes == 12


@pytest.mark.real_ep
def test_a_conversion_to_ort_format_keeps_the_graph_of_its_level(mnist: Levels) -> None:
    for level in ("basic", "extended"):
        assert step(mnist, f"ORT {level}").nodes == step(mnist, level).nodes
        assert step(mnist, f"ORT {level}").changes == ()
        assert step(mnist, f"ORT {level}").against == level


@pytest.mark.real_ep
def test_what_a_target_takes_is_judged_step_by_step(mnist: Levels) -> None:
    (target,) = mnist.targets
    assert [share.verdict for share in target.shares if share] == [Verdict.PASS] * 7
    basic, ort = target.shares[1], target.shares[5]
    assert basic is not None
    assert (basic.nodes, basic.of, basic.inferred) == (8, 8, False)
    assert ort is not None
    assert (ort.nodes, ort.inferred) == (8, True)
    assert target.onnxruntime == mnist.onnxruntime != ""


def test_operators_are_counted_in_every_graph(mnist: Levels) -> None:
    for number, one in enumerate(mnist.steps):
        assert sum(row.counts[number] or 0 for row in mnist.operators) == one.nodes


def test_a_runtime_that_dies_at_it_costs_the_graph_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fake onnxruntime computes; the process that asks it for the graph dies at every level."""
    path = tmp_path / "1_segv_in_create.onnx"
    write_model(path)
    for name, value in FAKE_ENV.items():
        monkeypatch.setenv(name, value)
    found = examine_levels(path.name, open_model(str(path)), matrix_of(), quiet)
    assert found.nodes == 3
    assert [one.nodes for one in found.steps] == [None] * 7
    assert all(one.problem.startswith("crash: the process died in phase create") for one in found.steps)
    assert all(count is None for row in found.operators for count in row.counts)


def test_a_file_that_is_no_model_is_said(tmp_path: Path) -> None:
    path = tmp_path / "x.onnx"
    path.write_bytes(b"\xff\xff\xff")
    with pytest.raises(UsageError, match="cannot be read"):
        examine_levels("x", open_model(str(path)), matrix_of(), quiet)


def test_a_runtime_that_writes_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "1_ok.onnx"
    write_model(path)
    for name, value in FAKE_ENV.items():
        monkeypatch.setenv(name, value)
    found = examine_levels(path.name, open_model(str(path)), matrix_of(), quiet)
    assert all(one.problem.startswith("error: FileNotFoundError") for one in found.steps)
