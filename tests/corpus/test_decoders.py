"""The suite ``generate``: its names, its place in the cache, its reference."""

import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest

from harness.annex.made.decoders.blocks import in_blocks
from harness.annex.made.decoders.form import LAYERS
from harness.annex.made.decoders.roster import DECODERS, LEFT_OUT, build, decoder_names
from harness.corpus.beside.genai_config import CONFIG_NAME
from harness.corpus.load_case import load_case
from harness.corpus.suites.suites import open_suite

LISTING = """
import sys
from harness.corpus.beside.genai_config import CONFIG_NAME
from harness.corpus.suites.suites import open_suite

suite = open_suite("generate")
assert len(suite.models()) > 20
assert not list(suite.root.iterdir())
loaded = {"onnx", "onnxruntime", "google.protobuf"} & set(sys.modules)
assert not loaded, loaded
"""


def test_listing_builds_nothing_and_imports_no_onnx(own_cache: Path) -> None:
    # The cache's place comes from the environment, which the child inherits.
    subprocess.run([sys.executable, "-c", LISTING], check=True, timeout=120)
    assert not list(own_cache.rglob("*.onnx"))


def test_the_forms_differ_in_what_the_issue_of_decoders_lists() -> None:
    forms = [DECODERS[name] for name in decoder_names()]
    assert {form.head for form in forms} == {64, 80, 96, 128, 256, 512}
    assert {form.heads // form.key_heads for form in forms} == {1, 4, 8}
    assert {form.bits for form in forms} == {0, 4, 8}
    assert {form.opset for form in forms if form.dialect == "onnx"} == {23, 24}
    assert {form.attention for form in forms} == {"Attention", "GroupQueryAttention", "MultiHeadAttention"}
    for part in ("packed", "interleaved", "window", "soft_cap", "final_cap", "sinks", "head_norm", "experts"):
        assert any(getattr(form, part) for form in forms), part
    assert LEFT_OUT.keys() < DECODERS.keys()


def test_a_model_lies_beside_its_configuration(own_cache: Path) -> None:
    case = load_case(open_suite("generate"), "gqa-h64-int4", {})
    assert case.model_path.is_relative_to(own_cache)
    config = msgspec.json.decode((case.model_path.parent / CONFIG_NAME).read_bytes())
    assert config["model"]["decoder"]["num_hidden_layers"] == LAYERS
    (data_set,) = case.data_sets
    assert [name for name, _ in data_set.inputs][:2] == ["input_ids", "attention_mask"]
    plain = load_case(open_suite("generate"), "onnx23-h64", {})
    assert not (plain.model_path.parent / CONFIG_NAME).exists()


@pytest.mark.parametrize("name", DECODERS)
def test_a_model_is_small_and_made_again_with_the_same_bytes(name: str) -> None:
    content = build(name).model(name).SerializeToString()
    assert len(content) < 3 << 20
    assert build(name).model(name).SerializeToString() == content


@pytest.mark.parametrize("name", [name for name, form in DECODERS.items() if form.dialect == "onnx"])
def test_a_model_of_onnx_alone_is_valid(name: str) -> None:
    model = build(name).model(name)
    onnx.checker.check_model(model, full_check=True)
    assert {entry.domain for entry in model.opset_import} == {""}


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("zero_points", [True, False])
def test_quantized_blocks_give_the_weights_back(bits: int, zero_points: bool) -> None:  # noqa: FBT001
    weights = np.random.default_rng(1).standard_normal((5, 96)) + 0.5
    blocks = in_blocks(weights, bits, np.dtype(np.float32), zero_points=zero_points)

    def unpacked(packed: np.ndarray, count: int) -> np.ndarray:
        if bits == 8:
            return packed
        return np.stack([packed & 15, packed >> 4], axis=-1).reshape(5, -1)[:, :count]

    points = np.full((5, 3), 1 << (bits - 1))
    if blocks.zero_points is not None:
        points = unpacked(blocks.zero_points, 3)
        assert len(np.unique(points)) > 3
    steps = unpacked(blocks.numbers, 96).reshape(5, 3, 32).astype(float) - points[..., None]
    restored = (steps * blocks.scales[..., None]).reshape(5, 96)
    assert np.abs(restored - weights).max() <= 0.51 * blocks.scales.max()
