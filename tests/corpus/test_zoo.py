"""The suite ``zoo``: its names, its place in the cache, its reference."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness.annex.made.zoo.roster import ARCHITECTURES, zoo_models
from harness.core.text.errors import UsageError
from harness.corpus.load_case import load_case
from harness.corpus.model.model_errors import ModelError
from harness.corpus.suites.suite import Suite
from harness.corpus.suites.suites import open_suite

MODELS = zoo_models()

LISTING = """
import sys
from harness.corpus.suites.suites import open_suite

suite = open_suite("zoo")
assert len(suite.models()) == 100
assert not list(suite.root.iterdir())
loaded = {"onnx", "onnxruntime", "google.protobuf"} & set(sys.modules)
assert not loaded, loaded
"""


def test_every_architecture_comes_small_and_large_at_two_opsets() -> None:
    assert {each.name for each in ARCHITECTURES} == {
        "mnist", "resnet", "mobilenet", "efficientnet", "unet", "vit", "bert", "gpt", "llama", "speech-lstm",
        "speech-gru", "detector", "diffusion", "int8-cnn", "int4-mlp", "trees", "text",
    }  # fmt: skip
    for each in ARCHITECTURES:
        own = [model for model in MODELS.values() if model.architecture is each]
        assert {(model.size, model.opset) for model in own} == {
            (size, opset) for size in ("small", "base") for opset in each.opsets
        }
        assert {model.fixed for model in own} == ({False, True} if each.symbolic else {False})
    assert {"resnet-small-op17", "resnet-small-fixed-op22", "llama-base-op23"} <= MODELS.keys()


def test_listing_builds_nothing_and_imports_no_onnx(own_cache: Path) -> None:
    # The cache's place comes from the environment, which the child inherits.
    subprocess.run([sys.executable, "-c", LISTING], check=True, timeout=120)
    assert not list(own_cache.rglob("*.onnx"))


def test_a_model_is_built_when_it_is_asked_for_and_then_kept(own_cache: Path) -> None:
    suite = open_suite("zoo")
    case = load_case(suite, "bert-small-op17", {})
    assert case.model_path.is_relative_to(own_cache)
    assert [entry.name for entry in suite.root.iterdir() if entry.is_dir()] == ["bert-small-op17"]
    (data_set,) = case.data_sets
    assert [name for name, _ in data_set.inputs] == ["input_ids", "attention_mask", "token_type_ids"]
    assert data_set.expected == ()
    stamp = case.model_path.stat().st_mtime_ns
    again = load_case(open_suite("zoo"), "bert-small-op17", {})
    assert (again.digest, again.model_path.stat().st_mtime_ns) == (case.digest, stamp)


def test_a_cache_that_cannot_be_written_is_told_at_once(own_cache: Path) -> None:
    own_cache.write_text("not a folder", encoding="utf-8")
    with pytest.raises(UsageError, match="the cache cannot be filled"):
        open_suite("zoo")


def test_a_model_that_cannot_be_written_costs_its_own_cells(
    own_cache: Path,
) -> None:
    def no_room(_name: str, _folder: Path) -> None:
        raise OSError(28, "No space left on device")

    suite = open_suite("zoo")
    broken = Suite(name="zoo", root=suite.root, kind="built_in", names=suite.names, make=no_room)
    with pytest.raises(ModelError, match="No space left"):
        load_case(broken, "mnist-small-op12", {})
    assert load_case(suite, "mnist-small-op12", {}).model_path.is_relative_to(own_cache)
