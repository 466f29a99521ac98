"""Models with noise: where it is added and where not, and what the CPU EP computes."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.core.noise.noise import noise_of
from harness.core.noise.spread import PROBES, Spread, spread_of
from harness.core.values.value import Array, NamedValues, Tensor, tensor
from harness.corpus.case import Case
from harness.corpus.derived.derived_models import MODEL_FILE
from harness.corpus.derived.noisy import (
    JUMPING,
    SAMPLES,
    SMOOTH,
    amplitudes_of,
    discard_noisy,
    noisy_case,
    noisy_entry,
)
from harness.corpus.derived.scenario_case import Inapplicable
from harness.corpus.load_case import load_case
from harness.corpus.noise import AMPLITUDE
from harness.corpus.suites.suite import open_folder
from tests.kit import answers_on_cpu

pytestmark = pytest.mark.usefixtures("own_cache")

Write = Callable[..., Path]
MLP = """
agraph (float[4,64] x) => (float[4,8] y)
{ m = MatMul(x, w) r = Relu(m) t = Tanh(r) y = MatMul(t, v) }
"""


def a_case(folder: Path) -> Case:
    return load_case(open_folder(folder), "one.onnx", {})


def saved(write_model: Write, graph: str, opset: int = 17, **weights: Array) -> Path:
    """A model in ONNX's text form with these weights."""
    path: Path = write_model(graph=graph)
    model = onnx.load(path)
    model.opset_import[0].version = opset
    for name, numbers in weights.items():
        model.graph.initializer.append(numpy_helper.from_array(numbers, name))
    onnx.save(model, path)
    return path


def case_of(write_model: Write, graph: str, opset: int = 17, **weights: Array) -> Case:
    return a_case(saved(write_model, graph, opset, **weights).parent)


def made(case: Case, precision: str = "float32") -> tuple[Case, onnx.ModelProto]:
    noisy = noisy_case(case, precision)
    assert isinstance(noisy, Case)
    return noisy, onnx.load(noisy.model_path, load_external_data=False)


def sites(model: onnx.ModelProto) -> list[str]:
    """Operators whose results get noise, and ``Op:operand`` where an operand does."""
    makers = {name: node.op_type for node in model.graph.node for name in node.output}
    readers = {name: node for node in model.graph.node for name in node.input}
    found = []
    for node in model.graph.node:
        if node.op_type == "Add" and node.input[1].endswith(".noise"):
            operand = ".operand." in node.output[0]
            op = readers[node.output[0]].op_type if operand else makers[node.input[0]]
            found.append(f"{op}:operand" if operand else op)
    return found


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def normal(*shape: int) -> Array:
    return rng().standard_normal(shape).astype(np.float32)


def test_what_rounds_gets_noise_and_what_copies_does_not(write_model: Write) -> None:
    _, model = made(case_of(write_model, MLP, w=normal(64, 32), v=normal(32, 8)))
    assert sites(model) == ["MatMul:operand", "MatMul", "Tanh", "MatMul:operand", "MatMul"]


def test_samples_of_a_smooth_model(write_model: Write) -> None:
    case = case_of(write_model, MLP, w=normal(64, 32), v=normal(32, 8))
    noisy, _ = made(case)
    assert amplitudes_of(noisy) == (0.0, *(SMOOTH[0],) * SAMPLES, *(1.0,) * PROBES)
    assert noisy.ports[-1].name == AMPLITUDE
    assert noisy.outputs == case.outputs
    assert noisy.digest != case.digest
    assert noisy.digest != made(case, "float16")[0].digest
    assert noisy_entry(case, "float32") == noisy.model_path.parent


def test_samples_of_a_model_with_jumps(write_model: Write) -> None:
    graph = "agraph (float[N] x) => (float[N] y) { e = Exp(x) y = Round(e) }"
    noisy, _ = made(case_of(write_model, graph))
    assert amplitudes_of(noisy) == (0.0, *(level for level in JUMPING for _ in range(SAMPLES)))


def test_a_model_of_exact_operators_runs_once_without_noise(write_model: Write) -> None:
    noisy, model = made(case_of(write_model, "agraph (float[N] x) => (float[N] y) { y = Relu(x) }"))
    assert sites(model) == []
    assert amplitudes_of(noisy) == (0.0,)


def test_constants_carry_noise_only_where_there_is_nothing_else(write_model: Write) -> None:
    graph = "agraph (float[4] x) => (float[4] y) { e = Exp(w) y = Add(x, e) }"
    assert sites(made(case_of(write_model, graph, w=normal(4)))[1]) == ["Add"]
    alone = "agraph () => (float[4] y) { y = Exp(w) }"
    assert "Exp" in sites(made(case_of(write_model, alone, w=normal(4)))[1])


def test_what_sizes_come_from_stays_exact(write_model: Write) -> None:
    graph = """
    agraph (float[2,6] x, float[1] share) => (float[N,3] y) <float[1] six = {6.0}>
    { c = Mul(share, six) i = Cast<to = 7>(c) three = Constant<value_ints = [3]>()
      s = Concat<axis = 0>(i, three) e = Exp(x) y = Reshape(e, s) }
    """
    assert sites(made(case_of(write_model, graph))[1]) == ["Exp:operand", "Exp"]


def test_whole_numbers_stay_exact(write_model: Write) -> None:
    graph = """
    agraph (int64[4] mask, float[4] x) => (float[4] y) <float one = {1.0}, float least = {-3.4028235e38}>
    { f = Cast<to = 1>(mask) n = Sub(one, f) p = Mul(n, least) y = Add(x, p) }
    """
    assert sites(made(case_of(write_model, graph))[1]) == ["Mul", "Add"]


def test_bodies_carry_noise_too(write_model: Write) -> None:
    graph = """
    agraph (float[4] x, bool c) => (float[4] y) {
      y = If(c) <then_branch = t () => (float[4] a) { a = Exp(x) },
                 else_branch = e () => (float[4] b) { b = Neg(x) }>
    }
    """
    _, model = made(case_of(write_model, graph))
    body = next(one.g for one in model.graph.node[0].attribute if one.name == "then_branch")
    assert [node.op_type for node in body.node].count("RandomUniformLike") == 2


def test_a_product_that_only_circular_functions_read_is_exact(write_model: Write) -> None:
    graph = """
    agraph (float[4,1] step, float[1,4] rates) => (float[4,8] y)
    { angles = MatMul(step, rates) both = Concat<axis = 1>(angles, angles) y = Sin(both) }
    """
    assert sites(made(case_of(write_model, graph))[1]) == ["Sin"]
    assert rounded(made(case_of(write_model, graph), "bfloat16")[1]) >= {"MatMul", "Sin"}


@pytest.mark.parametrize(
    "graph",
    [
        "agraph (float[4] x, float[4] z) => (float[4] y) { a = Mul(x, z) s = Sin(a) y = Add(s, a) }",
        "agraph (float[4] x, float[4] z) => (float[4] y, float[4] a) { a = Mul(x, z) y = Sin(a) }",
        "agraph (float[4] x, float[4] z) => (float[4] y) { e = Exp(x) a = Mul(e, z) y = Sin(a) }",
        "agraph (float[4] x, float[4] z) => (float[4] y) { a = Mul(x, z) y = Exp(a) }",
        "agraph (float[4,2] x, float[2,4] z) => (float[4,4] y) { a = MatMul(x, z) y = Sin(a) }",
        """agraph (float[4] x, float[4] z, bool c) => (float[4] y) {
          a = Mul(x, z) s = Sin(a)
          y = If(c) <then_branch = t () => (float[4] p) { p = Exp(a) },
                     else_branch = e () => (float[4] q) { q = Neg(s) }>
        }""",
    ],
)
def test_other_products_are_rounded(write_model: Write, graph: str) -> None:
    assert {"Mul", "MatMul"} & rounded(made(case_of(write_model, graph))[1])


def rounded(model: onnx.ModelProto) -> set[str]:
    """Operators whose results get noise."""
    exact = ".ep_harness.exact"
    return {node.op_type for node in model.graph.node for name in node.output if name.endswith(exact)}


def with_function(write_model: Write, opset: int) -> Path:
    path: Path = write_model(graph="agraph (float[4] x) => (float[4] y) { t = Neg(x) y = own.Tilt(t) }")
    model = onnx.load(path)
    nodes = [helper.make_node("Exp", ["a"], ["e"]), helper.make_node("Tanh", ["e"], ["b"])]
    imports = [helper.make_opsetid("", opset)]
    model.functions.append(helper.make_function("own", "Tilt", ["a"], ["b"], nodes, imports))
    model.opset_import.add(domain="own", version=1)
    onnx.save(model, path)
    return path


@pytest.mark.real_ep
def test_noise_goes_into_functions(write_model: Write) -> None:
    path = with_function(write_model, onnx.load(write_model(graph=MLP)).opset_import[0].version)
    case = a_case(path.parent)
    noisy, model = made(case)
    assert not model.functions
    assert sites(model) == ["Exp:operand", "Exp", "Tanh"]
    assert np.allclose(values(answers_on_cpu(noisy)[0]), values(answers_on_cpu(case)[0]), rtol=1e-6, atol=0)


def test_an_opset_before_7_is_raised_where_it_means_the_same(write_model: Write) -> None:
    _, model = made(case_of(write_model, MLP, 6, w=normal(64, 32), v=normal(32, 8)))
    assert model.opset_import[0].version == 7


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("agraph (float[N] x) => (float[N] y) { y = RandomUniformLike(x) }", "random numbers"),
        (
            "agraph (float[4] x) => (float[4] y) { e = Exp(x) y = Add(e, x) }",
            "opset before 7, which changed Add",
        ),
        ("functions", "functions of another opset"),
    ],
)
def test_models_without_noise(write_model: Write, model: str, why: str) -> None:
    if model == "functions":
        path = with_function(write_model, 11)
    else:
        path = write_model(graph=model)
        proto = onnx.load(path)
        proto.opset_import[0].version = 6 if "Add" in model else 17
        onnx.save(proto, path)
    found = noisy_case(a_case(path.parent), "float32")
    assert isinstance(found, Inapplicable)
    assert why in found.reason
    assert noisy_case(a_case(path.parent), "float32") == found


@pytest.mark.real_ep
def test_external_data_lies_beside_the_model(write_model: Write) -> None:
    path = saved(write_model, MLP, w=normal(64, 32), v=normal(32, 8))
    model = onnx.load(path)
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    case = a_case(path.parent)
    noisy, _ = made(case)
    assert [file.name for file in noisy.external] == ["weights.bin"]
    assert noisy.external[0].read_bytes() == path.with_name("weights.bin").read_bytes()
    assert np.allclose(values(answers_on_cpu(noisy)[0]), values(answers_on_cpu(case)[0]), rtol=0, atol=1e-3)


def spread_at(case: Case, precision: str) -> tuple[NamedValues, Spread]:
    golden = answers_on_cpu(case)
    noisy, _ = made(case, precision)
    return golden[0], spread_of(golden, answers_on_cpu(noisy), amplitudes_of(noisy), precision)


@pytest.mark.real_ep
@pytest.mark.parametrize("opset", [10, 17, 22, 28])
def test_float64_lies_one_noise_away(write_model: Write, opset: int) -> None:
    weights = [normal(64, 32), normal(32, 8)]
    case = case_of(write_model, MLP, opset, w=weights[0], v=weights[1])
    golden, spread = spread_at(case, "float32")
    hidden = np.tanh(np.maximum(values(case.data_sets[0].inputs).astype(np.float64) @ weights[0], 0))
    rms, largest = noise_of(tensor(values(golden)), tensor(hidden @ weights[1]), spread.outputs[0]["y"])
    assert 0.1 < rms < 2
    assert largest < 8


@pytest.mark.real_ep
@pytest.mark.parametrize("opset", [17, 22, 28])
def test_noise_in_a_body_reaches_the_result(write_model: Write, opset: int) -> None:
    """Of opset 22, a Dropout whose switch lies outside of its body would be optimized away."""
    graph = """
    agraph (float[64] x, bool c) => (float[64] y, float[64] z) <int64 two = {2}, bool yes = {1}> {
      y = If(c) <then_branch = t () => (float[64] a) { a0 = Exp(x) a = Neg(a0) },
                 else_branch = e () => (float[64] b) { b0 = Exp(x) b = Abs(b0) }>
      z = Loop(two, yes, x) <body = l (int64 i, bool go, float[64] old) => (bool on, float[64] new)
          { on = Identity(go) grown = Exp(x) new = Add(grown, old) }>
    }
    """
    golden, spread = spread_at(case_of(write_model, graph, opset), "float32")
    for name, value in golden:
        assert isinstance(value, Tensor)
        moved = spread.outputs[0][name] / (2.0**-24 * np.abs(value.array))
        assert 0.3 < np.median(moved) < 3


@pytest.mark.real_ep
@pytest.mark.parametrize("opset", [17, 22, 28])
def test_the_noise_of_an_element_is_drawn_anew_in_each_run(write_model: Write, opset: int) -> None:
    """Signs that follow each other in equal steps were the same in all runs for one element in 14."""
    noisy, _ = made(case_of(write_model, "agraph (float[64,64] x) => (float[64,64] y) { y = Exp(x) }", opset))
    found = [values(outputs) for outputs in answers_on_cpu(noisy)[: 1 + SAMPLES]]
    signs = np.sign(np.array(found[1:]) - found[0]).reshape(SAMPLES, -1)
    assert np.mean(np.abs(signs)) > 0.9
    assert np.mean(np.abs(signs.sum(axis=0)) == SAMPLES) < 2 * 2.0 ** (1 - SAMPLES)
    alike = np.abs((signs[:, 1:] * signs[:, :-1]).sum(axis=0)) == SAMPLES
    assert np.mean(alike) < 2 * 2.0 ** (1 - SAMPLES)


@pytest.mark.real_ep
def test_a_normalization_made_a_product_and_an_offset_is_noise(write_model: Write) -> None:
    """Its few small results behind Relu are differences of larger numbers."""
    graph = (
        "agraph (float[64,1,8] x) => (float[64,1,8] y) { n = BatchNormalization(x, s, b, m, v) y = Relu(n) }"
    )
    scale, offset, mean, variance = (np.array([one], np.float32) for one in (1.546875, -0.9, 0.65875113, 3.5))
    case = case_of(write_model, graph, s=scale, b=offset, m=mean, v=variance)
    golden, spread = spread_at(case, "float32")
    given = values(case.data_sets[0].inputs)
    factor = scale / np.sqrt(variance + np.float32(1e-5))
    # One unit roundoff of the product and one of the sum, the least that such a computation rounds.
    folded = np.maximum(given * factor + (offset - mean * factor), 0)
    error = np.where(folded > 0, 2.0**-24 * np.abs(given * factor) * np.sign(given), 0).astype(np.float32)
    rms, largest = noise_of(tensor(values(golden)), tensor(folded + error), spread.outputs[0]["y"])
    assert 0 < rms < 2
    assert largest < 8


def with_input(case: Case, x: Array) -> Case:
    inputs = (("x", tensor(x)),)
    data_sets = tuple(msgspec.structs.replace(one, inputs=inputs) for one in case.data_sets)
    return msgspec.structs.replace(case, data_sets=data_sets)


def erf_of_a_shader(x: Array) -> Array:
    """Abramowitz and Stegun 7.1.26, as WebGPU computes it."""
    t = 1 / (1 + np.float32(0.3275911) * np.abs(x))
    sums = np.zeros_like(x)
    for factor in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        sums = (sums + np.float32(factor)) * t
    return np.asarray(np.sign(x) * (1 - sums * np.exp(-x * x)), np.float32)


def log_sum_exp_at_once(x: Array) -> Array:
    """Without the largest one taken out first: the logarithm of a rounded sum near 1."""
    rounded = np.exp(x).astype(np.float32) * np.float32(1 + 2.0**-23)
    return np.asarray(np.log(rounded), np.float32)


def softplus_of_a_shader(x: Array) -> Array:
    return np.asarray(np.log(1 + np.exp(x)), np.float32)


def tanh_of_a_shader(x: Array) -> Array:
    return np.asarray(1 - 2 / (np.exp(2 * x) + 1), np.float32)


def elu_of_a_shader(x: Array) -> Array:
    return np.asarray(np.exp(x) - 1, np.float32)


def gelu_of_a_shader(x: Array) -> Array:
    return np.asarray(x * np.float32(0.5) * (1 + erf_of_a_shader(x * np.float32(0.5**0.5))), np.float32)


def sigmoid_around_a_half(x: Array) -> Array:
    """The CPU EP's way, with the other rounding of the quotient."""
    exact = 1 / (1 + np.exp(-x.astype(np.float64)))
    return np.asarray(
        np.float32(0.5) + (exact - 0.5).astype(np.float32) * np.float32(1 + 2.0**-23), np.float32
    )


@pytest.mark.real_ep
def test_a_recurrent_cell_with_small_results_has_the_error_of_its_gates(write_model: Write) -> None:
    graph = """agraph (float[1,1,1] x) => (float[1,1,1,1] y)
        <float[1,4,1] w = {0, 0, 0, 1}, float[1,4,1] r = {0, 0, 0, 0}> { y = LSTM<hidden_size=1>(x, w, r) }"""
    x = np.array([[[0.008]]], np.float32)
    case = with_input(case_of(write_model, graph), x)
    golden, spread = spread_at(case, "float32")
    # Its gates are open by half.
    found = np.float32(0.5) * tanh_of_a_shader(np.float32(0.5) * tanh_of_a_shader(x))
    rms, _ = noise_of(tensor(values(golden)), tensor(found.reshape(1, 1, 1, 1)), spread.outputs[0]["y"])
    assert 0 < rms < 3


@pytest.mark.real_ep
@pytest.mark.parametrize(
    ("node", "fed", "computed"),
    [
        ("Erf(x)", 0.15625, erf_of_a_shader),
        ("ReduceLogSumExp<axes=[1]>(x)", 0.0025, log_sum_exp_at_once),
        ("Softplus(x)", -3.84375, softplus_of_a_shader),
        ("Tanh(x)", 0.002, tanh_of_a_shader),
        ("Elu(x)", -0.002, elu_of_a_shader),
        ("Gelu(x)", -3.5, gelu_of_a_shader),
        ("Sigmoid(x)", -9.25, sigmoid_around_a_half),
    ],
)
def test_a_small_result_of_a_number_near_one_has_its_error(
    write_model: Write, node: str, fed: float, computed: Callable[[Array], Array]
) -> None:
    opset = 20 if "Gelu" in node else 17
    case = case_of(write_model, f"agraph (float[1,1] x) => (float[1,1] y) {{ y = {node} }}", opset)
    x = np.array([[fed]], np.float32)
    case = with_input(case, x)
    golden, spread = spread_at(case, "float32")
    rms, _ = noise_of(tensor(values(golden)), tensor(computed(x)), spread.outputs[0]["y"])
    assert 0 < rms < 3


@pytest.mark.real_ep
@pytest.mark.parametrize("node", ["Tanh(x)", "Erf(x)", "Asinh(x)", "Atanh(x)"])
def test_a_small_result_in_float16_has_no_error_of_one(write_model: Write, node: str) -> None:
    """A cap, 30 tanh(x / 30), of small scores: an error of 1 would be larger than all of them."""
    case = case_of(write_model, f"agraph (float16[8,64] x) => (float16[8,64] y) {{ y = {node} }}")
    case = with_input(case, (normal(8, 64) * np.float32(1e-3)).astype(np.float16))
    golden, spread = spread_at(case, "float16")
    right = values(golden).astype(np.float64)
    assert np.linalg.norm(spread.outputs[0]["y"]) < 0.01 * np.linalg.norm(right)


@pytest.mark.real_ep
def test_tanh_in_float16_may_be_computed_from_one_where_its_results_are_not_small(write_model: Write) -> None:
    case = case_of(write_model, "agraph (float16[8,64] x) => (float16[8,64] y) { y = Tanh(x) }")
    x = normal(8, 64).astype(np.float16)
    golden, spread = spread_at(with_input(case, x), "float16")
    e = np.exp(-2 * np.abs(x))
    found = np.sign(x) * (1 - e) / (1 + e)
    assert found.dtype == np.float16
    rms, largest = noise_of(tensor(values(golden)), tensor(found), spread.outputs[0]["y"])
    assert 0.1 < rms < 3
    assert largest < 32


@pytest.mark.real_ep
@pytest.mark.parametrize(("precision", "to"), [("float16", 10), ("bfloat16", 16)])
def test_a_model_that_rounds_every_result_lies_one_noise_away(
    write_model: Write, precision: str, to: int
) -> None:
    case = case_of(write_model, MLP, w=normal(64, 32), v=normal(32, 8))
    golden, spread = spread_at(case, precision)
    rounded = answers_on_cpu(case, rounding(onnx.load(case.model_path), to))[0]
    rms, largest = noise_of(tensor(values(golden)), tensor(values(rounded)), spread.outputs[0]["y"])
    assert 0.2 < rms < 2
    assert largest < 12


def rounding(model: onnx.ModelProto, to: int) -> onnx.ModelProto:
    """The model with inputs, weights and every result rounded to a narrower type."""
    names = [port.name for port in model.graph.input] + [weight.name for weight in model.graph.initializer]
    renamed = {name: f"{name}.rounded" for name in names}
    nodes = [cast for name in names for cast in casts(name, renamed[name], to)]
    for node in model.graph.node:
        for index, name in enumerate(node.input):
            node.input[index] = renamed.get(name, name)
        result = node.output[0]
        node.output[0] = f"{result}.exact"
        nodes += [node, *casts(node.output[0], result, to)]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def casts(source: str, result: str, to: int) -> list[onnx.NodeProto]:
    narrow = f"{result}.narrow"
    there = helper.make_node("Cast", [source], [narrow], to=to)
    return [there, helper.make_node("Cast", [narrow], [result], to=TensorProto.FLOAT)]


@pytest.mark.real_ep
def test_masks_of_infinity_stay_what_they_are(write_model: Write) -> None:
    graph = """
    agraph (float[4,4] x, bool[4,4] keep) => (float[4,4] y)
    { m = Where(keep, x, least) e = Exp(x) y = Add(m, e) }
    """
    case = case_of(write_model, graph, least=np.array(-np.inf, np.float32))
    noisy, _ = made(case)
    golden, *samples = answers_on_cpu(noisy)
    assert (mask := np.isinf(values(golden))).any()
    assert not mask.all()
    for sample in samples:
        assert (np.isinf(values(sample)) == mask).all()
        assert not np.isnan(values(sample)).any()


def values(outputs: NamedValues) -> Array:
    value = outputs[0][1]
    assert isinstance(value, Tensor)
    return value.array


def test_the_model_is_written_once(write_model: Write) -> None:
    case = case_of(write_model, MLP, w=normal(64, 32), v=normal(32, 8))
    path = made(case)[0].model_path
    assert path.name == MODEL_FILE
    before = path.stat().st_mtime_ns
    assert made(case)[0].model_path.stat().st_mtime_ns == before


def test_large_weights_stay_in_the_file_of_the_model(write_model: Write) -> None:
    draw = np.random.default_rng(1)
    random, coarse = draw.standard_normal((600, 600)).astype(np.float32), np.full((600, 99), 0.5, np.float32)
    graph = "agraph (float[4,600] x) => (float[4,99] y) { m = MatMul(x, w) y = MatMul(m, v) }"
    path = saved(write_model, graph, w=random, v=coarse, unread=np.zeros(1, np.float32))
    case = a_case(path.parent)
    noisy, model = made(case)
    location = {one.name: one.data_location == one.EXTERNAL for one in model.graph.initializer}
    assert location["w"]
    assert not location["v"], "whether its products are exact is read from its elements"
    assert noisy.model_path.stat().st_size < random.nbytes
    (own,) = noisy.external
    assert own.read_bytes() == path.read_bytes()
    for weight in model.graph.initializer:
        if location[weight.name]:
            weight.CopyFrom(numpy_helper.from_array(random, weight.name))
    for ours, theirs in zip(answers_on_cpu(noisy), answers_on_cpu(noisy, model), strict=True):
        for (_, one), (_, other) in zip(ours, theirs, strict=True):
            assert isinstance(one, Tensor)
            assert isinstance(other, Tensor)
            np.testing.assert_array_equal(one.array, other.array)
    discard_noisy(case, "float32")
    assert not noisy.model_path.parent.exists()
    assert path.is_file()
