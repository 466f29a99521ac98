"""Random graphs: valid, finite, the same everywhere; and the graphs of a suite."""

import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from harness.annex.made.forms.draw import ChoiceStream
from harness.annex.made.fuzz_suite import fuzz_maker, fuzz_name
from harness.annex.made.grown.grow import grow
from harness.annex.made.grown.growth import Growth, MisfitError
from harness.annex.made.variants.source import STEPS, original_of
from harness.core.values.value import Tensor
from harness.corpus.load_case import load_case
from harness.corpus.suites.suites import open_suite
from tests.kit import run_on_cpu, write_model

GRAPHS = 200


def test_random_graphs_are_valid_and_finite_on_the_cpu_ep() -> None:
    import onnxruntime

    refused, operators, ranks = [], Counter[str](), set()
    for number in range(GRAPHS):
        grown = grow(ChoiceStream(11, number))
        onnx.checker.check_model(grown.model, full_check=True)
        names = [port.name for port in grown.model.graph.output]
        try:
            found = run_on_cpu(grown.model, grown.inputs, names, optimized=False)
        except onnxruntime.capi.onnxruntime_pybind11_state.OrtException as error:
            refused.append(str(error))
            continue
        for port, array in zip(grown.model.graph.output, found, strict=True):
            declared = [dim.dim_value for dim in port.type.tensor_type.shape.dim]
            assert list(array.shape) == declared
            assert array.dtype.kind != "f" or np.isfinite(array).all()
            ranks.add(array.ndim)
        operators.update(node.op_type for node in grown.model.graph.node)
    assert len(refused) <= GRAPHS // 100, refused
    assert len(operators) > 60
    assert ranks >= {0, 1, 2, 3, 4, 5}


def test_a_graph_is_the_same_on_every_machine() -> None:
    """Another digest means that numbers stand for other models: raise the version of the generator."""
    digest = hashlib.sha256()
    for number in range(30):
        grown = grow(ChoiceStream(1, number))
        digest.update(grown.model.SerializeToString(deterministic=True))
        for name, array in grown.inputs.items():
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(array.tobytes())
    assert digest.hexdigest() == "8088f7100cb0117861559a490b81178e97ad3fae53203297e1e4bfe71b929e38"


@pytest.mark.parametrize(
    ("op_type", "attributes"),
    [("Concat", {"axis": 9}), ("NoSuchOperator", {}), ("GroupNormalization", {"num_groups": 1})],
)
def test_what_onnx_does_not_allow_leaves_no_node(op_type: str, attributes: dict[str, Any]) -> None:
    """GroupNormalization is deprecated at opset 18."""
    g = Growth(ChoiceStream(0), 18)
    x = g.input("float32", (2, 3))
    with pytest.raises(MisfitError):
        g.op(op_type, x, x, x, most=1, **attributes)
    assert g.nodes == []
    assert g.values == [x]


def test_only_what_is_computed_from_exact_values_is_exact() -> None:
    g = Growth(ChoiceStream(0), 18)
    x = g.input("float32", (2, 3))
    rounded = g.op("Exp", x, most=8)
    moved = g.op("Transpose", rounded, most=8, exact=True)
    assert (x.exact, rounded.exact, moved.exact) == (True, False, False)
    assert g.op("Transpose", x, most=8, exact=True).exact


def test_names_tell_what_a_graph_is() -> None:
    names = [fuzz_name(3, number) for number in range(400)]
    assert sum(name.endswith("-grown") for name in names) == 100
    variants = [name for name in names if "-variant-of-" in name]
    assert len(variants) == 100
    of_grown = [name for name in variants if original_of(name)]
    assert set(map(original_of, of_grown)) <= set(names)
    assert {original_of(name) for name in names if name not in variants} == {""}
    others = {name.partition("-of-")[2] for name in variants if not original_of(name)}
    assert "operator-test" in others
    assert len(others) > 5


@pytest.mark.usefixtures("own_cache")
def test_graphs_are_read_as_any_other_model() -> None:
    suite = open_suite("fuzz:3:40")
    graphs = [name for name in suite.models() if "-grown" in name or original_of(name)]
    for name in graphs:
        case = load_case(suite, name, {})
        steps = {one.key: one.value for one in onnx.load(case.model_path).metadata_props}
        assert (STEPS in steps) == bool(original_of(name))
        if original_of(name):
            original = load_case(suite, original_of(name), {})
            assert [port for port in case.ports if port in original.ports] == list(original.ports)
            for (_, one), (_, other) in zip(
                case.data_sets[0].inputs, original.data_sets[0].inputs, strict=True
            ):
                assert isinstance(one, Tensor)
                assert isinstance(other, Tensor)
                np.testing.assert_array_equal(one.array, other.array)
    assert graphs


def test_a_variant_of_an_operator_test_has_its_data(tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    home = tests / "test_relu"
    (home / "test_data_set_0").mkdir(parents=True)
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Relu (x) }'
    write_model(home / "model.onnx", text)
    for name, values in (("input_0", [-1, 2]), ("output_0", [0, 2])):
        proto = onnx.numpy_helper.from_array(np.array(values, np.float32), name)
        (home / "test_data_set_0" / f"{name}.pb").write_bytes(proto.SerializeToString())
    (home / "data.json").write_text('{"rtol": 0.01, "atol": 0.0}', encoding="utf-8")
    name = next(
        one for number in range(100) if (one := fuzz_name(3, number)).endswith("-variant-of-operator-test")
    )
    folder = tmp_path / "made"
    folder.mkdir()
    fuzz_maker(3, lambda: tests)(name, folder)
    made = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    assert made == ["data.json", "model.onnx", "test_data_set_0/input_0.pb", "test_data_set_0/output_0.pb"]
    assert (folder / "model.onnx").read_bytes() != (home / "model.onnx").read_bytes()
