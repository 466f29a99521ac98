"""The cache of a converted model: the model, its twin for the CPU EP, or why there is none."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from filelock import FileLock

from harness.core.values.value import Tensor
from harness.corpus.case import Case
from harness.corpus.derived.converted_models import (
    keep_declined,
    keep_failed,
    keep_made,
    precision_case,
    precision_entry,
    rounded_case,
)
from harness.corpus.derived.scenario_case import Inapplicable
from harness.corpus.load_case import load_case
from harness.corpus.model.model_errors import ModelError
from harness.corpus.suites.suite import open_folder

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def case(write_model: Callable[..., Path]) -> Case:
    path = write_model()
    return load_case(open_folder(path.parent), path.name, {"N": 3})


def model(op: str) -> Tensor:
    text = f'<ir_version: 9, opset_import: ["" : 17]> agraph (float[N] x) => (float[N] y) {{ y = {op}(x) }}'
    content = onnx.parser.parse_model(text).SerializeToString()
    return Tensor(dtype="uint8", array=np.frombuffer(content, np.uint8))


def made(case: Case, precision: str) -> Case:
    found = precision_case(case, precision)
    assert isinstance(found, Case)
    return found


def test_nobody_has_tried(case: Case) -> None:
    assert precision_case(case, "fp16") is None


def test_the_same_inputs_for_another_model(case: Case) -> None:
    keep_made(case, "fp16", model("Abs"), model("Neg"))
    found = made(case, "fp16")
    assert found.facts.op_types == {"Abs": 1}
    assert rounded_case(found).facts.op_types == {"Neg": 1}
    assert (found.ports, found.outputs, found.output_types) == (case.ports, case.outputs, case.output_types)
    ((name, value),) = found.data_sets[0].inputs
    ((_, given),) = case.data_sets[0].inputs
    assert isinstance(value, Tensor)
    assert isinstance(given, Tensor)
    assert (name, value.array.tolist()) == ("x", given.array.tolist())
    assert [data_set.expected for data_set in found.data_sets] == [()]
    assert len({case.digest, found.digest, rounded_case(found).digest}) == 3
    assert precision_case(case, "bf16") is None


def test_a_model_without_a_twin_is_its_own(case: Case) -> None:
    keep_made(case, "int8-static", model("Abs"))
    assert rounded_case(made(case, "int8-static")) == made(case, "int8-static")


def test_equal_models_are_one_case_whatever_they_were_made_for(case: Case) -> None:
    keep_made(case, "int8-static", model("Abs"))
    keep_made(case, "int8-dynamic", model("Abs"))
    assert made(case, "int8-static").digest == made(case, "int8-dynamic").digest


def test_why_there_is_none_is_kept(case: Case) -> None:
    keep_declined(case, "int8-dynamic", "it has no\nweights")
    assert precision_case(case, "int8-dynamic") == Inapplicable(
        "int8-dynamic does not apply: it has no weights"
    )
    keep_made(case, "int8-dynamic", model("Abs"))  # another process was faster
    assert isinstance(precision_case(case, "int8-dynamic"), Inapplicable)


def test_a_failure_is_kept_once_it_is_one_again(case: Case) -> None:
    keep_failed(case, "fp16", "the converter crashed: SIGSEGV")
    assert precision_case(case, "fp16") is None
    keep_failed(case, "bf16", "the converter crashed: SIGSEGV")
    assert precision_case(case, "bf16") is None
    keep_failed(case, "fp16", "the converter crashed: SIGABRT")
    assert precision_case(case, "fp16") == Inapplicable(
        "fp16 does not apply: the converter crashed: SIGABRT, and failed in an earlier run, too"
    )


def test_another_converter_makes_another_model(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = precision_entry(case, "fp16")
    monkeypatch.setattr("harness.corpus.derived.converted_models.converters", lambda: "newer")
    assert precision_entry(case, "fp16") != entry


@pytest.mark.parametrize("name", ["model.onnx", "rounded.onnx", "sha256.json"])
@pytest.mark.parametrize(
    "content", [b"", b"\0" * 99, model("Neg").array.tobytes(), b'{"model.onnx": ""}', None]
)
def test_a_damaged_model_is_made_again(case: Case, name: str, content: bytes | None) -> None:
    keep_made(case, "fp16", model("Abs"), model("Relu"))
    path = precision_entry(case, "fp16") / name
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    assert precision_case(case, "fp16") is None
    keep_made(case, "fp16", model("Abs"), model("Relu"))
    assert rounded_case(made(case, "fp16")).facts.op_types == {"Relu": 1}


def test_a_damaged_model_that_cannot_be_removed_is_an_error(case: Case) -> None:
    keep_made(case, "fp16", model("Abs"))
    entry = precision_entry(case, "fp16")
    (entry / "model.onnx").write_bytes(b"nonsense")
    with FileLock(f"{entry}.lock"), pytest.raises(ModelError, match="in use by another process"):
        precision_case(case, "fp16")


def test_a_model_is_parsed_once(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_made(case, "fp16", model("Abs"), model("Neg"))
    first = rounded_case(made(case, "fp16"))
    made(case, "fp16")
    monkeypatch.setattr(
        "harness.corpus.derived.derived_facts.load_lean", lambda _: pytest.fail("it is parsed again")
    )
    again = made(case, "fp16")
    assert again.facts.op_types == {"Abs": 1}
    assert rounded_case(again) == first
