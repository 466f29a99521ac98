"""The content of generated inputs that the model, or the name of an input, decides."""

import numpy as np
import pytest

from harness.core.records.model_settings import InputSettings
from harness.core.values.value import Array, Tensor
from harness.corpus.inputs.contents import Constant, Content, Counting, Indices, Range, content_of
from harness.corpus.inputs.generated_inputs import generate
from harness.corpus.model.port import Port, ValueType
from harness.operators.value_domains import Domain


def port(name: str, dtype: str = "int64", *shape: int) -> Port:
    return Port(name=name, type=ValueType(kind="tensor", dtype=dtype, shape=shape or (2, 50)))


def drawn(name: str, content: Content | None, dtype: str = "int64", *shape: int) -> Array:
    value = generate("m", port(name, dtype, *shape), 0, content)
    assert isinstance(value, Tensor)
    assert value.dtype == dtype
    return value.array


@pytest.mark.parametrize(
    ("name", "dtype", "content"),
    [
        ("attention_mask", "int64", Constant(value=True)),
        ("encoder_attention_mask", "bool", Constant(value=True)),
        ("attentionMask", "int32", Constant(value=True)),
        ("input_mask:0", "int32", Constant(value=True)),
        # A float mask may hide a token by 0 or by a large negative number.
        ("attention_mask", "float32", None),
        ("key_padding_mask", "bool", None),
        ("mask", "bool", None),
        ("position_ids", "int64", Counting()),
        ("position_ids", "float32", None),
        ("x", "int64", None),
        ("ids", "int64", None),
    ],
)
def test_names_that_decide_and_names_that_do_not(name: str, dtype: str, content: Content | None) -> None:
    assert content_of(port(name, dtype), None, None, {}) == content


def test_images_are_between_black_and_white() -> None:
    image = Port(name="input_image", type=ValueType(kind="tensor", dtype="float32", shape=(1, 3, 8, 8)))
    assert content_of(image, None, None, {}) == Range(0.0, 1.0)
    assert content_of(port("image", "uint8", 1, 3, 8, 8), None, None, {}) is None
    assert content_of(port("image_size", "float32", 2), None, None, {}) is None
    pixels = drawn("image", Range(0.0, 1.0), "float32", 1, 3, 8, 8)
    assert 0 <= pixels.min() < 0.2
    assert 0.8 < pixels.max() < 1


def test_the_graph_overrides_names_and_settings_override_both() -> None:
    ids = port("attention_mask")
    table = Domain(extents=("rows",))
    assert content_of(ids, None, table, {"rows": 2}) == Indices(2)
    assert content_of(port("position_ids"), None, table, {"rows": 16}) == Counting(16)
    assert content_of(ids, InputSettings(high=9), table, {"rows": 2}) == Range(0, 9)
    assert content_of(ids, InputSettings(shape=[1, 1]), table, {"rows": 2}) == Indices(2)


def test_indices_stay_within_the_table_and_within_the_type() -> None:
    assert set(drawn("x", Indices(3)).ravel().tolist()) == {0, 1, 2}
    assert drawn("x", Indices(1000), "int8").max() <= 127
    assert drawn("x", Indices(1000), "float32").max() > 100
    assert drawn("x", Indices(1)).max() == 0


def test_counting_begins_anew_at_the_end_of_the_table() -> None:
    assert drawn("x", Counting(), "int64", 2, 3).tolist() == [[0, 1, 2]] * 2
    assert drawn("x", Counting(2), "int64", 1, 5).tolist() == [[0, 1, 0, 1, 0]]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "uint64", "int4", "float8e5m2"])
def test_constants_of_every_kind_of_type(dtype: str) -> None:
    assert set(drawn("x", Constant(3), dtype).astype(np.float64).ravel().tolist()) == {3}


def test_constants_of_texts_and_truths() -> None:
    assert drawn("x", Constant("word"), "string", 3).tolist() == ["word"] * 3
    assert drawn("x", Constant(value=False), "bool", 3).tolist() == [False] * 3


@pytest.mark.parametrize(
    ("dtype", "settings", "cause"),
    [
        ("int8", InputSettings(low=-129, high=0), "-129 is no value of type int8, which holds -128 to 127"),
        ("int8", InputSettings(high=129), "129 is no value of type int8"),
        ("uint4", InputSettings(value=16), "16 is no value of type uint4, which holds 0 to 15"),
        ("uint8", InputSettings(value=-1), "-1 is no value of type uint8"),
        ("bool", InputSettings(high=2), "values of type bool have no range"),
        ("bool", InputSettings(value=2), "2 is no value of type bool"),
        ("string", InputSettings(high=2), "values of type string have no range"),
        ("string", InputSettings(value=2), "2 is no value of type string"),
        ("complex64", InputSettings(high=2), "have no range"),
        ("float32", InputSettings(value="x"), "'x' is no value of type float32"),
    ],
)
def test_settings_that_do_not_suit_the_type(dtype: str, settings: InputSettings, cause: str) -> None:
    with pytest.raises(ValueError, match=cause):
        content_of(port("x", dtype), settings, None, {})


def test_the_whole_range_of_a_type_can_be_asked_for() -> None:
    content = content_of(port("x", "uint8"), InputSettings(low=0, high=256), None, {})
    assert content is not None
    assert drawn("x", content, "uint8", 5000).max() == 255
