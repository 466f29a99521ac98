"""Provider options and precision modes, checked before a device is used."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from harness.catalog.catalog import load_catalog
from harness.core.text.errors import UsageError
from harness.plan.known_provider import known_provider, release_of
from harness.plan.matrix import Matrix
from tests.kit import make_matrix

HEAD = "schema = 1\n[models]\nsuites = ['s']\n"


def load(text: str) -> Matrix:
    return make_matrix(HEAD + text)


def complaint(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        load(text)
    return str(caught.value)


def target(provider: str, rest: str = "", name: str = "t") -> str:
    return f'[[target]]\nname = "{name}"\nprovider = "{provider}"\n{rest}\n'


def test_a_value_outside_the_list_is_refused_with_the_valid_ones(snapshot: SnapshotAssertion) -> None:
    text = complaint(target("CANNExecutionProvider", 'options = { precision_mode = "force_fp61" }'))
    assert text == snapshot
    assert "did you mean 'force_fp16'?" in text
    for mode in ("force_fp32", "force_fp16", "allow_fp32_to_fp16", "must_keep_origin_dtype"):
        assert mode in text


def test_every_wrong_option_is_reported_with_its_place(snapshot: SnapshotAssertion) -> None:
    text = """
[axes]
"option.device_id" = [0, "one"]
"option.nonsense" = [1, 2]
[[target]]
name = "cuda"
provider = ["CUDAExecutionProvider", "CPUExecutionProvider"]
options = { use_tf23 = 1, use_tf32 = "perhaps", gpu_mem_limit = 1.5, cudnn_conv_algo_search = true }
axes = { "option.arena_extend_strategy" = ["kNextPowerOfTwo", "kNext"] }
[[target]]
name = "cuda again"
provider = "CUDAExecutionProvider"
axes = { "option.device_id" = [0] }
[[target]]
name = "openvino"
provider = "OpenVINOExecutionProvider"
plugin = "onnxruntime_ep_openvino"
options = { INFERENCE_PRECISION_HINT = "f32" }
axes = { "option.device_id" = ["CPU"], "option.nonsense" = [1] }
"""
    assert complaint(text) == snapshot


def test_unchecked_options_are_passed_unchanged() -> None:
    plain = 'plugin = "onnxruntime_ep_openvino"\noptions = { INFERENCE_PRECISION_HINT = "f32" }\n'
    assert "the EP would ignore it" in complaint(target("OpenVINOExecutionProvider", plain))
    matrix = load(target("OpenVINOExecutionProvider", plain + "unchecked_options = true"))
    assert matrix.targets[0].options == {"INFERENCE_PRECISION_HINT": "f32"}


def test_an_unknown_provider_may_have_any_option() -> None:
    rest = 'plugin = "acme"\noptions = { x = true }\naxes = { "option.y" = [true, 1.5] }'
    (found,) = load(target("AcmeExecutionProvider", rest)).targets
    assert found.options == {"x": "1"}
    assert found.axes == {"option.y": ("1", "1.5")}


@pytest.mark.parametrize(
    ("provider", "option", "spelled"),
    [
        ("TensorrtExecutionProvider", "trt_fp16_enable", ("True", "False")),
        ("DmlExecutionProvider", "disable_metacommands", ("true", "false")),
        ("CUDAExecutionProvider", "use_tf32", ("1", "0")),
    ],
)
def test_booleans_are_spelled_as_the_provider_reads_them(
    provider: str, option: str, spelled: tuple[str, str]
) -> None:
    rest = f'options = {{ {option} = true }}\naxes = {{ "option.{option}" = [true, false] }}'
    (own,) = load(target(provider, rest)).targets
    assert own.options == {option: spelled[0]}
    assert own.axes == {f"option.{option}": spelled}
    matrix = load(f'[axes]\n"option.{option}" = [true, false]\n' + target(provider))
    assert {**matrix.axes, **matrix.targets[0].axes} == {f"option.{option}": spelled}


def test_a_boolean_and_its_spelling_are_one_value() -> None:
    rest = 'axes = { "option.trt_fp16_enable" = [true, "True"] }'
    assert "'True' is listed twice" in complaint(target("TensorrtExecutionProvider", rest))


@pytest.mark.parametrize(
    ("packages", "refused"),
    [
        (["onnxruntime-cann==1.22.0"], True),
        (["onnxruntime-cann==1.24.4", "numpy<2"], False),
        (["numpy<2", "onnxruntime_cann == 1.22.0 ; sys_platform == 'linux'"], True),
        (["onnxruntime-cann>=1.22"], False),
        ([], False),
    ],
)
def test_an_option_of_another_release_is_refused(packages: list[str], refused: bool) -> None:  # noqa: FBT001
    options = "options = { enable_cann_subgraph = true }"
    runtime = f"runtime = {{ packages = {packages} }}" if packages else ""
    text = target("CANNExecutionProvider", f"{options}\n{runtime}")
    if refused:
        assert "enable_cann_subgraph needs onnxruntime 1.23 or newer, and this is 1.22.0" in complaint(text)
    else:
        load(text)


def test_the_release_comes_from_packages_of_onnxruntime_only() -> None:
    provider = known_provider(["CUDAExecutionProvider"])
    assert provider is not None
    assert release_of(provider, ["numpy==1.26", "onnxruntime-gpu[cuda]==1.24.1"]) == "1.24.1"
    assert release_of(provider, ["onnxruntime-qnn==2.7.0", 3]) == ""
    assert known_provider([]) is None
    assert known_provider(3) is None


VALUES = (
    st.text(st.characters(exclude_characters="\0"), max_size=8)
    | st.integers(-(1 << 63) + 1, (1 << 63) - 1)
    | st.booleans()
)
KEYS = st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=8)
OPTIONS = st.dictionaries(KEYS, VALUES, max_size=3)


@given(st.sampled_from(load_catalog().names), OPTIONS)
def test_any_option_is_accepted_or_refused_at_its_place(
    provider: str, options: dict[str, str | int | bool]
) -> None:
    one = {"name": "t", "provider": provider, "options": options}
    table = {"schema": 1, "models": {"suites": ["s"]}, "target": [one]}
    message = ""
    try:
        make_matrix(table)
    except UsageError as error:
        message = str(error)
    assert message.startswith("m.toml: target[0].options") or not message
    assert make_matrix({**table, "target": [{**one, "unchecked_options": True}]}) or message
