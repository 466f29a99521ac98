"""Model Builder of onnxruntime-genai makes a model, and its folder is read as it is.

It needs onnxruntime-genai, torch and transformers, 5 GB with what they bring. ``EP_HARNESS_GENAI_PYTHON``
names an interpreter that has them, if it is not this one.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from harness.core.values.value import Tensor
from harness.corpus.decoders.decoder import Decoder, decoder_of
from harness.corpus.load_case import load_case
from harness.corpus.suites.suite import open_folder

ort = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.real_ep

PYTHON = os.environ.get("EP_HARNESS_GENAI_PYTHON", sys.executable)

MAKE = """
import sys
import torch
from tokenizers import Tokenizer, models
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

torch.manual_seed(1)
config = LlamaConfig(
    hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
    head_dim=64, vocab_size=256, max_position_embeddings=512, bos_token_id=1, eos_token_id=2, pad_token_id=0,
    tie_word_embeddings=False, initializer_range=0.2,
)
LlamaForCausalLM(config).save_pretrained(sys.argv[1])
words = Tokenizer(models.WordLevel({f"w{index}": index for index in range(256)}, unk_token="w3"))
PreTrainedTokenizerFast(
    tokenizer_object=words, bos_token="w1", eos_token="w2", pad_token="w0", unk_token="w3"
).save_pretrained(sys.argv[1])
"""
"""Saves a Llama of random weights, with a tokenizer of words."""


def ran(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "hub")}
    return subprocess.run(
        [PYTHON, *arguments],
        capture_output=True,
        check=False,
        cwd=folder,
        env=env,
        text=True,
        timeout=600,
    )


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("builder")
    found = ran("-c", "import onnxruntime_genai.models, torch, transformers", folder=folder)
    if found.returncode:
        pytest.skip(f"{PYTHON} lacks Model Builder: {found.stderr.strip().splitlines()[-1]}")
    made = ran("-c", MAKE, str(folder / "weights"), folder=folder)
    assert made.returncode == 0, made.stderr
    return folder


@pytest.mark.parametrize(("precision", "provider"), [("fp32", "cpu"), ("int4", "cpu"), ("fp16", "dml")])
def test_its_folder_is_read_unchanged(seeded: Path, precision: str, provider: str) -> None:
    out = seeded / f"{precision}-{provider}"
    options = ["-m", str(seeded / "weights"), "-o", str(out), "-p", precision, "-e", provider]
    made = ran("-m", "onnxruntime_genai.models.builder", *options, "-c", str(seeded / "cache"), folder=seeded)
    assert made.returncode == 0, made.stderr
    assert {"genai_config.json", "model.onnx", "model.onnx.data"} <= {entry.name for entry in out.iterdir()}
    case = load_case(open_folder(out), "model.onnx", {"batch_size": 1})
    decoder = decoder_of(case)
    assert isinstance(decoder, Decoder), decoder
    assert (decoder.vocabulary, decoder.context, decoder.shares_buffer) == (256, 512, True)
    assert [pair.past for pair in decoder.cache] == [
        f"past_key_values.{layer}.{part}" for layer in (0, 1) for part in ("key", "value")
    ]
    assert bool(decoder.positions) == (provider == "dml")
    session = ort.InferenceSession(str(case.model_path), providers=["CPUExecutionProvider"])
    given = case.data_sets[0].inputs
    feeds = {name: value.array for name, value in given if isinstance(value, Tensor)}
    logits = session.run([decoder.logits], feeds)[0]
    assert np.isfinite(logits).all()
    assert logits.std() > 0
