"""Operator forms: the same for ever, valid, and away from jumps."""

import hashlib
import subprocess
import sys
from collections import Counter

import numpy as np
import onnx
import pytest

from harness.annex.made.forms.draw import ChoiceStream
from harness.annex.made.forms.families import FORM_FAMILIES
from harness.annex.made.forms.form_model import Built
from harness.annex.made.forms.input_values import APART, DISTINCT, ValueKind, values
from harness.annex.made.forms.numbered_forms import (
    KernelChoice,
    choose,
    count_choices,
    form_model,
    known_operators,
)
from harness.annex.made.fuzz_suite import choice_of, fuzz_name, model_number
from harness.core.text.errors import UsageError
from harness.core.values.value import Tensor
from harness.corpus.load_case import load_case
from harness.corpus.model.element_types import is_floating
from harness.corpus.model.undefined import undefined_outputs
from harness.corpus.suites.suites import open_model, open_suite

MODELS = 400


@pytest.fixture(scope="module")
def built() -> dict[str, Built]:
    made = {}
    for number in range(MODELS):
        draw = ChoiceStream(7, number)
        choice = choose(draw)
        made[f"{number}-{choice.name}"] = form_model(choice, draw)
    return made


def test_every_family_is_of_an_operator_that_exists() -> None:
    assert set(FORM_FAMILIES) == set(known_operators())


def test_onnx_accepts_every_form(built: dict[str, Built]) -> None:
    for name, one in built.items():
        if "com.microsoft" not in name:
            onnx.shape_inference.infer_shapes(one.model, check_type=True, strict_mode=True)
        names = {info.name for info in one.model.graph.input}
        assert names == one.inputs.keys()
        assert names, f"{name} would fold to a constant"


def test_no_input_is_nan_or_infinite(built: dict[str, Built]) -> None:
    for name, one in built.items():
        for port, array in one.inputs.items():
            if is_floating(array.dtype.name):
                assert np.isfinite(array.astype(np.float64)).all(), (name, port)


def test_forms_vary(built: dict[str, Built]) -> None:
    ranks = Counter(array.ndim for one in built.values() for array in one.inputs.values())
    assert set(range(7)) <= set(ranks)
    assert any(0 in array.shape for one in built.values() for array in one.inputs.values())
    assert any(one.model.graph.initializer for one in built.values())
    symbols = [
        dim.dim_param
        for one in built.values()
        for info in one.model.graph.input
        for dim in info.type.tensor_type.shape.dim
    ]
    assert any(symbols)
    assert not all(symbols)
    nodes = [node for one in built.values() for node in one.model.graph.node]
    reads = [[name for name in node.input if name] for node in nodes]
    assert any(len(set(names)) < len(names) for names in reads), "no tensor is fed twice"


def test_a_seed_gives_the_same_bytes_everywhere() -> None:
    """Python 3.11 made these with numpy 2.0 and 2.4. A change needs another ``GENERATOR``."""
    digest = hashlib.sha256()
    for number in range(60):
        draw = ChoiceStream(1, number)
        for shape in ((), (3,), (2, 5)):
            for kind in (APART, DISTINCT, ValueKind(away=0.5)):
                digest.update(values(draw, "float32", shape, kind).tobytes())
        digest.update(repr((draw.order(5), draw.between(-3, 3), draw.whole((2, 2), 0, 9).tolist())).encode())
    assert digest.hexdigest()[:16] == "454b663b99db0d06"
    names = "".join(fuzz_name(1, number) for number in range(300))
    assert hashlib.sha256(names.encode()).hexdigest()[:16] == "02329552e3cdd104"


def test_values_apart_are_far_from_every_jump() -> None:
    array = values(ChoiceStream(3), "float32", (500,), APART)
    assert np.abs(2 * array - np.round(2 * array)).min() >= 0.25


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8", "int64"])
def test_distinct_values_differ_in_their_type(dtype: str) -> None:
    array = values(ChoiceStream(4), dtype, (200,), DISTINCT)
    assert len(np.unique(array.astype(np.float64))) == 200


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_values_are_exact_in_every_float(dtype: str) -> None:
    array = values(ChoiceStream(5), dtype, (300,), ValueKind(fine=False)).astype(np.float64)
    assert np.array_equal(array * 64, np.round(array * 64))
    assert np.abs(array).max() <= 4


def test_no_form_asks_for_what_onnx_leaves_undefined() -> None:
    wanted = {"BitShift", "Cast", "Div", "Mod", "Pow", "ScatterElements", "ScatterND"}
    numbers = [number for number in range(3000) if choice_of(2, number).operator.name in wanted]
    assert len(numbers) > 60
    for number in numbers[:60]:
        name = f"fuzz:2:3000/{fuzz_name(2, number)}"
        suite = open_model(name)
        case = load_case(suite, suite.models()[0], {})
        graph = onnx.load(case.model_path).graph
        known = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer if one.data_type == 7}
        given = dict(case.data_sets[0].inputs)
        given |= {key: Tensor(dtype="int64", array=array) for key, array in known.items()}
        assert not undefined_outputs(case.facts.partials, given), name


def test_a_suite_is_part_of_a_longer_one_of_its_seed() -> None:
    short, long = open_suite("fuzz:1:5"), open_suite("fuzz:1:9")
    assert long.models()[:5] == short.models()
    assert short.name == "fuzz-1"
    assert short.model_path(short.models()[2]) == long.model_path(short.models()[2])
    assert model_number(short.models()[3]) == 3
    assert open_suite("fuzz:2:5").models() != short.models()


@pytest.mark.parametrize(
    "name", ["fuzz:", "fuzz:1", "fuzz:a:3", "fuzz:1:0", "fuzz:1:2:3", f"fuzz:{1 << 63}:3"]
)
def test_a_wrong_name_is_a_usage_error(name: str) -> None:
    with pytest.raises(UsageError, match=r"fuzz:1:1000|1 to 1,000,000"):
        open_suite(name)


def test_listing_imports_no_onnx() -> None:
    code = (
        "import sys; from harness.corpus.suites.suites import open_suite;"
        "print(len(open_suite('fuzz:1:50').models()), 'onnx' in sys.modules, 'onnxruntime' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["50", "False", "False"]


def test_choices_are_counted() -> None:
    assert count_choices(["Conv"]) >= 3
    assert count_choices(known_operators()) > 5000


def test_edges_of_a_filter_bank_are_apart_from_whole_numbers() -> None:
    """Below a whole number they are rounded down: ONNX's text of MelWeightMatrix."""
    (operator,) = known_operators()["MelWeightMatrix"]
    for number in range(40):
        types = {"T1": "int64", "T2": "float32", "T3": "float32"}
        built = form_model(KernelChoice(operator=operator, opset=17, types=types), ChoiceStream(8, number))
        given = {name: float(array) for name, array in built.inputs.items()}
        given |= {one.name: float(onnx.numpy_helper.to_array(one)) for one in built.model.graph.initializer}
        bins, length, rate, low, high = (given[name] for name in built.model.graph.node[0].input)
        mel = [2595 * np.log10(1 + one / 700) for one in (low, high)]
        points = np.arange(bins + 2) * (mel[1] - mel[0]) / (bins + 2) + mel[0]
        edges = (length + 1) * 700 * (10 ** (points / 2595) - 1) / rate
        assert np.abs(edges - np.round(edges))[edges > 0].min() > 0.01, number


def test_unpooled_values_have_places_of_their_own() -> None:
    for number in range(40):
        operator = known_operators()["MaxUnpool"][-1]
        choice = KernelChoice(operator=operator, opset=22, types={"T1": "float32", "T2": "int64"})
        built = form_model(choice, ChoiceStream(9, number))
        given = built.inputs | {
            one.name: onnx.numpy_helper.to_array(one) for one in built.model.graph.initializer
        }
        indices = given[built.model.graph.node[0].input[1]]
        assert len(np.unique(indices)) == indices.size


@pytest.mark.parametrize(
    "name",
    ["DFT", "STFT", "MelWeightMatrix", "MaxUnpool", "MaxRoiPool", "Optional", "OptionalHasElement",
     "OptionalGetElement", "StringConcat", "StringSplit", "StringNormalizer", "RegexFullMatch",
     "TfIdfVectorizer", "com.microsoft.GridSample"],
)  # fmt: skip
def test_the_cpu_runs_every_form(name: str) -> None:
    runtime = pytest.importorskip("onnxruntime")
    for number in range(12):
        draw = ChoiceStream(10, number)
        operator = draw.pick(known_operators()[name])
        kernel = draw.pick(operator.kernels)
        types = {one: draw.pick(kernel[one]) for one in sorted(kernel) if kernel[one]}
        built = form_model(KernelChoice(operator=operator, opset=operator.last, types=types), draw)
        session = runtime.InferenceSession(
            built.model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        for found in session.run(None, built.inputs):
            assert found.dtype.kind != "f" or np.isfinite(found).all()


@pytest.mark.parametrize("name", ["Resize", "Upsample"])
def test_integers_are_not_averaged(name: str) -> None:
    """ONNX leaves open whether the average is rounded or truncated."""
    operator = known_operators()[name][-1]
    modes = set()
    for number in range(60):
        built = form_model(
            KernelChoice(operator=operator, opset=operator.last, types={"T": "int8", "T1": "int8"}),
            ChoiceStream(13, number),
        )
        (node,) = [one for one in built.model.graph.node if one.op_type == name]
        modes |= {one.s for one in node.attribute if one.name == "mode"}
    assert modes == {b"nearest"}


def test_shrink_takes_whole_numbers_from_integers() -> None:
    (operator,) = known_operators()["Shrink"]
    biases = set()
    for number in range(60):
        built = form_model(
            KernelChoice(operator=operator, opset=9, types={"T": "int32"}), ChoiceStream(14, number)
        )
        (node,) = [one for one in built.model.graph.node if one.op_type == "Shrink"]
        biases |= {one.f for one in node.attribute if one.name == "bias"}
    assert biases == {0.0, 1.0}
