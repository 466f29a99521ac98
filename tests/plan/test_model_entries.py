"""``[[model]]``: settings of single models."""

import pytest

from harness.core.records.model_settings import InputSettings, ModelSettings
from harness.core.text.errors import UsageError
from harness.plan.plan import Plan
from tests.kit import plan_of

MODELS = {"texts": ("bert/model.onnx", "gpt.onnx"), "images": ("resnet.onnx", "left_out.onnx")}
REST = """
schema = 1
models = { folders = ["texts", "images"], exclude = ["left_out.onnx"] }
[[target]]
name = "cpu"
provider = "CPUExecutionProvider"
"""


def plan(text: str) -> Plan:
    return plan_of(REST + text, MODELS)


def problems(text: str) -> list[str]:
    with pytest.raises(UsageError) as caught:
        plan(text)
    return [str(problem) for problem in caught.value.problems]


def test_later_entries_win_for_each_dimension_and_input() -> None:
    settings = plan("""
[[model]]
model = "texts/*"
dimensions = { batch = 1, sequence = 8 }
inputs = { ids = { high = 100 }, mask = { value = 1 } }
[[model]]
model = ["gpt.onnx", "resnet.onnx"]
dimensions = { batch = 4 }
inputs = { ids = { low = 5, high = 10 } }
""")
    high, mask = InputSettings(high=100), InputSettings(value=1)
    assert settings.model_settings("texts", "bert/model.onnx") == ModelSettings(
        dimensions={"batch": 1, "sequence": 8}, inputs={"ids": high, "mask": mask}
    )
    assert settings.model_settings("texts", "gpt.onnx") == ModelSettings(
        dimensions={"batch": 4, "sequence": 8}, inputs={"ids": InputSettings(low=5, high=10), "mask": mask}
    )
    assert settings.model_settings("images", "resnet.onnx").dimensions == {"batch": 4}


def test_a_model_that_no_entry_selects_has_no_settings() -> None:
    settings = plan('[[model]]\nmodel = "texts/*"\ndimensions = { batch = 1 }')
    assert settings.model_settings("images", "resnet.onnx") == ModelSettings()


def test_an_entry_that_matches_no_model_is_an_error_with_the_nearest() -> None:
    (found,) = problems('[[model]]\nmodel = "texts/gtp.onnx"\ndimensions = { batch = 1 }')
    assert found.startswith("m.toml: model[0].model: no model matches 'texts/gtp.onnx'\n")
    assert "did you mean 'texts/gpt.onnx'?" in found
    # An excluded model does not count.
    assert problems('[[model]]\nmodel = "left_out*"\ndimensions = { batch = 1 }')


@pytest.mark.parametrize(
    ("entry", "place", "what"),
    [
        ("dimensions = { b = -1 }", "dimensions.b", "expected an integer from 0 to 2147483647, got -1"),
        ("inputs = { x = { hgih = 1 } }", "inputs.x.hgih", "did you mean 'high'?"),
        ("inputs = { x = { high = nan } }", "inputs.x.high", "expected an integer or a finite number"),
        ("inputs = { x = { low = 1 } }", "inputs.x", "a range without its upper end"),
        ("inputs = { x = { low = 2, high = 2 } }", "inputs.x", "no value is at least 2 and less than 2"),
        ("inputs = { x = { high = -1.5 } }", "inputs.x", "no value is at least 0 and less than -1.5"),
        ("inputs = { x = { value = 1, high = 2 } }", "inputs.x", "both a value and a range"),
        ("inputs = { x = {} }", "inputs.x", "the table is empty"),
        (
            "inputs = { x = { shape = 3 } }",
            "inputs.x.shape",
            "expected a list of integers from 0 to 2147483647",
        ),
        ('inputs = { x = "rbg" }', "inputs.x", "did you mean 'rgb'?"),
        ('inputs = { x = { recipe = "mask", value = 1 } }', "inputs.x", "both a recipe and a value"),
        ('inputs = { x = { recipe = "mask", high = 2 } }', "inputs.x", "only tokens takes low and high"),
        ("vary = 3", "vary", "expected a list of texts, got 3"),
        ("dimension = { b = 1 }", "dimension", "did you mean 'dimensions'?"),
        ("", "", "this entry sets neither dimensions, inputs, vary nor agree"),
        ('agree = "topp1"', "agree", "did you mean 'top1'?"),
        ('agree = { logits = "argmx" }', "agree.logits", "did you mean 'argmax'?"),
        ('agree = "no_such_module:f"', "agree", "there is no module 'no_such_module'"),
        ("agree = {}", "agree", "the table is empty"),
        ("agree = 3", "agree", "expected non-empty text or a table, got 3"),
        ("agree = { y = 3 }", "agree.y", "expected non-empty text, got 3"),
    ],
)
def test_invalid_entries_are_refused(entry: str, place: str, what: str) -> None:
    found = problems(f'[[model]]\nmodel = "*"\n{entry}')
    where = f"m.toml: model[0].{place}".rstrip(".")
    assert any(one.startswith(f"{where}: ") and what in one for one in found), found


def test_an_entry_without_a_glob_is_an_error() -> None:
    assert "the key 'model' is missing" in problems("[[model]]\ndimensions = { b = 1 }")[0]
