"""onnxruntime-genai plays folders of several sessions, too: its tokens and logits are those of the golden.

It is installed into an environment of its own.
"""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.annex.made.decoders.folders import speech
from harness.annex.made.decoders.roster import write_decoder
from harness.core.records.ways import TextSettings
from harness.core.values.value import Array, Tensor
from harness.corpus.case import Case
from harness.corpus.derived.scenario_case import scenario_case
from harness.corpus.load_case import load_case
from harness.corpus.suites.suite import open_folder
from harness.plan.target import Runtime
from harness.runtimes.environments import build
from harness.runtimes.installer import InstallError

ort: Any = pytest.importorskip("onnxruntime")
pytestmark = [pytest.mark.real_ep, pytest.mark.long]

PACKAGE = "onnxruntime-genai==0.18.0"
NEW_TOKENS = 8
GENAI_FRAMES = 3000
"""Frames of sound: it takes no other number."""

PLAY = """
import sys
import numpy as np
import onnxruntime_genai as og

folder, count = sys.argv[1], int(sys.argv[2])
given = dict(np.load(folder + "/given.npz"))
tokens = given.pop("input_ids")
model = og.Model(og.Config(folder))
params = og.GeneratorParams(model)
params.set_search_options(max_length=tokens.shape[1] + count, do_sample=False)
generator = og.Generator(model, params)
for name, values in given.items():
    generator.set_model_input(name, values)
generator.append_tokens(tokens.astype(np.int32))
logits, chosen = [], []
for _ in range(count):
    logits.append(generator.get_logits()[0, -1])
    generator.generate_next_token()
    chosen.append(int(generator.get_next_tokens()[0]))
np.savez(folder + "/told.npz", logits=np.array(logits), tokens=np.array(chosen))
"""
"""Plays the prompt in ``given.npz`` greedily."""


@pytest.fixture(scope="module")
def genai() -> Path:
    try:
        return build(Runtime(packages=(PACKAGE,)))
    except InstallError as error:
        pytest.skip(f"{PACKAGE} cannot be installed: {error}")


def case_of(folder: Path, kind: str) -> tuple[Case, dict[str, Array]]:
    """Return the folder as one model, and its inputs for one text."""
    folder.mkdir()
    write_decoder(f"folder-{kind}", folder)
    shutil.rmtree(folder / "test_data_set_0")
    if kind == "speech":
        for file, g in speech(kind, GENAI_FRAMES).items():
            (folder / file).write_bytes(g.model(kind).SerializeToString())
    text = TextSettings(ways=("at_once",), length=20, new_tokens=NEW_TOKENS)
    plain = load_case(open_folder(folder), "model.onnx", {})
    case = scenario_case(plain, "generate", text=text)
    assert isinstance(case, Case)
    inputs = dict(case.data_sets[0].inputs)
    return case, {name: one.array for name, one in inputs.items() if isinstance(one, Tensor)}


def asked(genai: Path, folder: Path, inputs: dict[str, Array], more: dict[str, Array]) -> str:
    """Let genai play the beginning of a text; return what it says if it cannot."""
    beside = ("vision.pixel_values", "encoder.audio_features")
    given = {name.partition(".")[2]: inputs[name] for name in beside if name in inputs}
    prompt = {"input_ids": inputs["input_ids"][:, :-NEW_TOKENS]}
    np.savez(folder / "given.npz", allow_pickle=False, **given, **more, **prompt)
    played = subprocess.run(
        [genai, "-c", PLAY, folder, str(NEW_TOKENS)], capture_output=True, check=False, text=True, timeout=300
    )
    return played.stderr.strip().splitlines()[-1] if played.returncode else ""


@pytest.mark.parametrize(
    ("kind", "more"),
    [("pipeline", {}), ("speech", {}), ("vision", {"num_image_tokens": np.array([4])})],
)
def test_tokens_and_logits_are_those_of_the_golden(
    genai: Path, tmp_path: Path, kind: str, more: dict[str, Array]
) -> None:
    folder = tmp_path / kind
    case, inputs = case_of(folder, kind)
    assert not asked(genai, folder, inputs, more)
    told = np.load(folder / "told.npz")
    inputs["input_ids"][:, -NEW_TOKENS:] = told["tokens"]
    session = ort.InferenceSession(str(case.model_path), providers=["CPUExecutionProvider"])
    (logits,) = session.run(["logits"], inputs)
    golden = logits[0, -NEW_TOKENS - 1 : -1]
    assert np.abs(golden - told["logits"]).max() < 1e-4
    assert (golden.argmax(-1) == told["tokens"]).all()


def test_a_folder_of_translation_is_of_no_type_that_it_knows(genai: Path, tmp_path: Path) -> None:
    _, inputs = case_of(tmp_path / "translation", "translation")
    told = asked(genai, tmp_path / "translation", inputs, {})
    assert told == "RuntimeError: Unsupported model_type in config.json: t5"
