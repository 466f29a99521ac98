"""Noise as the CPU EP shows it: none where nothing is rounded, enough for honest sums in any order."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from harness.core.comparison.noise_limits import DEFAULT_LIMITS, rms_limit
from harness.core.comparison.output_metrics import Noise, OutputMetrics
from harness.core.noise.noise import NoiseRule, with_noise
from harness.core.noise.spread import Spread, spread_of
from harness.core.values.value import Array, Tensor, tensor
from harness.corpus.case import Case
from harness.corpus.derived.noisy import amplitudes_of, noisy_case
from harness.corpus.load_case import load_case
from harness.corpus.suites.suite import open_folder
from tests.kit import answers_on_cpu

pytestmark = [pytest.mark.real_ep, pytest.mark.usefixtures("own_cache")]

Write = Callable[..., Path]
Single = NDArray[np.float32]
HALVES = np.arange(512, dtype=np.float32) / 4 - 64
WEIGHT = ", ".join(f"{step / 2:g}" for step in np.random.default_rng(0).integers(-9, 9, 256))


def case_of(write_model: Write, graph: str, opset: int, **inputs: Array) -> Case:
    path: Path = write_model(graph=graph)
    model = onnx.load(path)
    model.opset_import[0].version = opset
    onnx.save(model, path)
    case = load_case(open_folder(path.parent), "one.onnx", {})
    fed = tuple((name, tensor(array)) for name, array in inputs.items())
    data_sets = tuple(msgspec.structs.replace(one, inputs=fed) for one in case.data_sets)
    return msgspec.structs.replace(case, data_sets=data_sets)


def measured(case: Case, precision: str = "float32") -> tuple[Tensor, Spread]:
    """The golden of ``y``, and the spread."""
    golden, noisy = answers_on_cpu(case), noisy_case(case, precision)
    assert isinstance(noisy, Case)
    right = dict(golden[0])["y"]
    assert isinstance(right, Tensor)
    return right, spread_of(golden, answers_on_cpu(noisy), amplitudes_of(noisy), precision)


def multiples(golden: Tensor, actual: Array, spread: Spread) -> Noise:
    row = OutputMetrics(name="y", dtype=golden.dtype, shape=golden.array.shape)
    rule = NoiseRule(precision=spread.precision, spreads=spread.outputs[0])
    noise = with_noise(row, golden, tensor(actual.astype(golden.array.dtype)), rule).noise
    assert noise is not None
    return noise


@pytest.mark.parametrize("opset", [10, 17, 22])
@pytest.mark.parametrize(
    "step",
    [
        "<float h={0.5}> { m = Mul(x, h) y = Round(m) }",
        "<float h={0.5}> { m = Add(x, h) y = Round(m) }",
        "<float h={0.5}> { m = Sub(x, h) y = Floor(m) }",
        "<float h={2}> { m = Div(x, h) y = Ceil(m) }",
        "<float h={0.5}> { m = Mul(x, h) i = Cast<to=6>(m) y = Cast<to=1>(i) }",
        (
            "<float h={0.5}, float s={1}, int8 z={0}> { m = Mul(x, h) q = QuantizeLinear(m, s, z)"
            " y = DequantizeLinear(q, s, z) }"
        ),
        "<float h={0.5}, float o={3}> { m = Mul(x, h) g = Greater(m, o) y = Cast<to=1>(g) }",
    ],
)
def test_a_tie_of_exact_operands_is_moved_by_nothing(write_model: Write, step: str, opset: int) -> None:
    if "Round" in step and opset < 11:
        pytest.skip("Round came with opset 11")
    case = case_of(write_model, f"agraph (float[512] x) => (float[512] y) {step}", opset, x=HALVES)
    golden, spread = measured(case)
    ties = np.where(np.arange(512) % 4 == 2, golden.array + np.float32(1), golden.array)
    assert multiples(golden, ties, spread).max > 1e5


def test_sums_of_products_that_are_exact_move_no_tie(write_model: Write) -> None:
    graph = (
        f"agraph (float[32,16] x) => (float[32,16] y) <float[16,16] w={{{WEIGHT}}}>"
        " { m = MatMul(x, w) y = Round(m) }"
    )
    golden, spread = measured(case_of(write_model, graph, 17, x=HALVES.reshape(32, 16)))
    assert spread.outputs[0]["y"].max() < 1e-3
    # Elements of another kind do round.
    golden, spread = measured(case_of(write_model, graph, 17, x=(HALVES * np.float32(0.1)).reshape(32, 16)))
    assert np.count_nonzero(spread.outputs[0]["y"] > 0.1) < golden.array.size / 100


def test_what_is_rounded_before_a_jump_may_jump(write_model: Write) -> None:
    graph = "agraph (float[512] x) => (float[512] y) <float h={0.1}> { m = Mul(x, h) y = Floor(m) }"
    x = np.arange(512, dtype=np.float32)
    golden, spread = measured(case_of(write_model, graph, 17, x=x))
    # A product that is rounded upwards is a whole number here, and one that is not is just below it.
    jumped = np.where((x % 10 == 0) & (x > 0), golden.array - 1, golden.array)
    assert multiples(golden, jumped, spread).max <= DEFAULT_LIMITS.max
    assert multiples(golden, golden.array + (x == 5), spread).max > 1e5


def test_noise_that_would_undo_another_in_every_draw_does_not(write_model: Write) -> None:
    """Softplus and Tanh have noise of one size here, and random signs of one size cancel out."""
    graph = "agraph (float[10000] x) => (float[10000] y) { s = Softplus(x) y = Tanh(s) }"
    x = np.linspace(-10, -9, 10000, dtype=np.float32)
    _, spread = measured(case_of(write_model, graph, 22, x=x))
    found = spread.outputs[0]["y"]
    assert found.min() > np.median(found) / 30


def added_up(terms: Single) -> Single:
    """The sum along the last axis, term by term, in float32."""
    total = np.zeros(terms.shape[:-1], np.float32)
    for index in range(terms.shape[-1]):
        total = total + terms[..., index]
    return total


def softmax(x: Single) -> Single:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(powers / added_up(powers)[..., None], np.float32)


def normalized(x: Single) -> Single:
    count = np.float32(x.shape[-1])
    away = x - (added_up(x) / count)[..., None]
    return np.asarray(away / np.sqrt((added_up(away * away) / count)[..., None] + np.float32(1e-5)))


def attention(q: Single, k: Single, v: Single) -> Single:
    scores = added_up(q[..., :, None, :] * k[..., None, :, :]) * np.float32(32**-0.5)
    return added_up(np.swapaxes(softmax(scores)[..., None] * v[..., None, :, :], -1, -2))


HONEST: dict[str, tuple[str, int, Callable[[Single], Single]]] = {
    "Softmax": ("y = Softmax<axis=-1>(x)", 17, softmax),
    "flattened Softmax": (
        "y = Softmax<axis=1>(x)",
        9,
        lambda x: softmax(x.reshape(len(x), -1)).reshape(x.shape),
    ),
    "ReduceMean": ("m = ReduceMean<axes=[2]>(x) y = Sub(m, z)", 13, lambda x: _mean(x)[..., None]),
    "ReduceSum": ("m = ReduceSum(x, a) y = Sub(m, z)", 18, lambda x: added_up(x)[..., None]),
    "GlobalAveragePool": ("m = GlobalAveragePool(x) y = Sub(m, z)", 17, lambda x: _mean(x)[..., None]),
    "InstanceNormalization": ("y = InstanceNormalization(x, s, b)", 17, normalized),
    "LayerNormalization": ("y = LayerNormalization(x, w)", 17, normalized),
}


def _mean(x: Single) -> Single:
    return np.asarray(added_up(x) / np.float32(x.shape[-1]), np.float32)


@pytest.mark.parametrize("terms", [336, 1872])
@pytest.mark.parametrize("name", HONEST)
def test_honest_sums_term_by_term_pass(write_model: Write, name: str, terms: int) -> None:
    nodes, opset, honest = HONEST[name]
    ones = ", ".join(["1"] * terms)
    rows = "float[4,16,1]" if "(m, z)" in nodes else f"float[4,16,{terms}]"
    graph = f"""agraph (float[4,16,{terms}] x) => ({rows} y)
        <int64[1] a = {{2}}, float z = {{0}}, float[16] s = {{{", ".join(["1"] * 16)}}},
        float[16] b = {{{", ".join(["0"] * 16)}}}, float[{terms}] w = {{{ones}}}> {{ {nodes} }}"""
    x = np.random.default_rng(5).random((4, 16, terms), np.float32)
    golden, spread = measured(case_of(write_model, graph, opset, x=x))
    noise = multiples(golden, honest(x).reshape(golden.array.shape), spread)
    limit = rms_limit(DEFAULT_LIMITS, golden.array.size)
    assert noise.each is not None
    assert max(noise.rms, noise.each) < 0.7 * limit
    assert noise.max < DEFAULT_LIMITS.max / 2
    assert multiples(golden, golden.array * np.float32(1.0001), spread).rms > limit


def test_an_honest_attention_passes(write_model: Write) -> None:
    graph = """agraph (float[1,2,8,32] q, float[1,2,900,32] k, float[1,2,900,32] v) => (float[1,2,8,32] y)
        { y = Attention(q, k, v) }"""
    rng = np.random.default_rng(6)
    q, k, v = (rng.standard_normal((1, 2, rows, 32)).astype(np.float32) for rows in (8, 900, 900))
    golden, spread = measured(case_of(write_model, graph, 23, q=q, k=k, v=v))
    assert multiples(golden, attention(q, k, v), spread).rms < 2


@pytest.mark.parametrize(
    ("graph", "moves"),
    [
        (
            "(float[512] x) => (int8[512] y) <float s={0.5}, int8 z={3}> { y = QuantizeLinear(x, s, z) }",
            False,
        ),
        (
            "(float[512] x) => (int8[512] y) <float s={0.1}, int8 z={3}> { y = QuantizeLinear(x, s, z) }",
            True,  # 0.75 / 0.1 is beside a tie
        ),
        (
            (
                "(float[4,128] x) => (int8[4,128] y) <float[4] s={0.5, 1, 2, 4}, int8[4] z={0, 0, 0, 0}> "
                "{ y = QuantizeLinear<axis=0>(x, s, z) }"
            ),
            False,
        ),
    ],
)
def test_a_quotient_is_rounded_before_it_is_quantized(
    write_model: Write,
    graph: str,
    moves: bool,  # noqa: FBT001
) -> None:
    x = HALVES.reshape(4, 128) if "4,128" in graph else HALVES
    _, spread = measured(case_of(write_model, f"agraph {graph}", 17, x=x))
    assert bool(spread.moved[0]["y"].most) is moves


def test_weights_stored_in_another_type_round_nothing_more(write_model: Write) -> None:
    graph = (
        f"agraph (float[4,16] x) => (float[4,16] y) <float[16,16] v={{{WEIGHT}}}> "
        "{ h = Cast<to=10>(v) w = Cast<to=1>(h) y = MatMul(x, w) }"
    )
    x = np.linspace(0.1, 0.9, 64, dtype=np.float32).reshape(4, 16)
    golden, spread = measured(case_of(write_model, graph, 17, x=x))
    assert multiples(golden, golden.array * np.float32(1.0001), spread).max > 100


@pytest.mark.parametrize("precision", ["tf32", "float16"])
def test_tf32_reaches_as_far_as_float32(write_model: Write, precision: str) -> None:
    graph = "agraph (float[512] x) => (float[512] y) <float h={1e-30}> { m = Mul(x, h) y = Abs(m) }"
    golden, spread = measured(case_of(write_model, graph, 17, x=HALVES + np.float32(0.3)), precision)
    # float16 has nothing between 0 and 6e-8: of such numbers it leaves none.
    share = float(np.median(spread.outputs[0]["y"] / golden.array))
    assert share < 1e-3 if precision == "tf32" else share > 0.5
