"""Inputs by recipe: what they look like, that they fit each other, and what a cell is told to be fed."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from harness.core.records.input_recipe import RECIPES
from harness.core.records.model_settings import InputSettings, ModelSettings
from harness.core.values.value import Array, Tensor
from harness.corpus.input_words import fed_words
from harness.corpus.inputs.recipes.recipe_parts import by_recipe, elements_of
from harness.corpus.inputs.recipes.row_lengths import row_lengths
from harness.corpus.load_case import load_case
from harness.corpus.model.model_errors import SettingsError
from harness.corpus.model.port import Port, ValueType
from harness.corpus.suites.suite import open_folder

READER = """agraph (float[N,3,32,48] image, int64[N,T] ids, int64[N,T] mask, int64[N] size, float[B,4] boxes)
=> (float[a,b,c,d] y, int64[e,f] z, int64[g,h] m, int64[i] s, float[j,k] x)
{ y = Identity(image) z = Identity(ids) m = Identity(mask) s = Identity(size) x = Identity(boxes) }"""


def made(recipe: str, dtype: str, *shape: int, other: str = "", **settings: int) -> Array:
    """One input by its recipe, beside a second one of shape (2, 3, 40, 60) if that has one."""
    port = Port(name="x", type=ValueType(kind="tensor", dtype=dtype, shape=shape))
    beside = Port(name="o", type=ValueType(kind="tensor", dtype="float32", shape=(2, 3, 40, 60)))
    given = {"x": InputSettings(recipe=recipe, **settings)}  # type: ignore[arg-type]
    if other:
        given["o"] = InputSettings(recipe=other)  # type: ignore[arg-type]
    content = by_recipe(port, (port, beside), given, None)
    assert content is not None
    return elements_of(content, dtype, shape, np.random.default_rng(1))


@pytest.mark.parametrize(
    ("recipe", "dtype", "low", "high"),
    [
        ("rgb", "float32", 0, 1),
        ("rgb", "uint8", 0, 255),
        ("rgb-255", "float16", 0, 255),
        ("rgb-signed", "float32", -1, 1),
        ("rgb-imagenet", "float32", -2.2, 2.7),
        ("gray", "float32", 0, 1),
        ("gray-255", "float32", 0, 255),
        ("gray-signed", "float32", -1, 1),
    ],
)
def test_pictures_fill_their_range_in_either_layout(recipe: str, dtype: str, low: float, high: float) -> None:
    channels = 3 if recipe.startswith("rgb") else 1
    for shape in ((2, channels, 64, 96), (2, 64, 96, channels)):
        pixels = made(recipe, dtype, *shape)
        assert pixels.shape == shape
        assert low <= pixels.min() < low + 0.3 * (high - low)
        assert high - 0.3 * (high - low) < pixels.max() <= high
        # Neighbours are alike, as in photographs and unlike in noise.
        along = pixels if shape[-1] == channels else np.moveaxis(pixels, 1, -1)
        assert np.abs(np.diff(along, axis=2)).mean() < 0.1 * pixels.std() + 0.05 * (high - low)
        assert not np.array_equal(pixels[0], pixels[1])


def test_a_region_is_part_of_a_picture() -> None:
    region = made("region", "float32", 1, 1, 40, 60)
    assert set(np.unique(region)) == {0, 1}
    assert 0.1 < region.mean() < 0.9


def test_a_picture_without_its_channels_is_refused() -> None:
    with pytest.raises(ValueError, match="needs an axis of 3, and the shape is 1x64x64"):
        made("rgb", "float32", 1, 64, 64)
    assert made("gray", "uint8", 64, 64).shape == (64, 64)


def test_a_voice_has_sounds_pauses_and_a_range() -> None:
    voice = made("audio", "float32", 1, 32_000)
    assert 0.3 < np.abs(voice).max() < 1
    loud = np.abs(voice.reshape(-1, 400)).max(axis=1)
    assert (loud < 0.01).any()
    assert (loud > 0.2).any()
    assert np.abs(made("audio-int16", "float32", 32_000)).max() > 9_000
    assert np.abs(made("audio", "int16", 32_000)).max() > 9_000


def test_rows_fit_each_other() -> None:
    sizes = row_lengths(4, 10).tolist()
    assert sizes == [10, 8, 7, 6]
    counted = made("mask", "float32", 4, 10).sum(axis=1)
    ids = made("tokens", "int64", 4, 10, other="mask", high=100)
    assert counted.tolist() == (ids > 0).sum(axis=1).tolist() == sizes
    assert ids.max() < 100
    assert (made("tokens", "int64", 4, 10, high=100) > 0).all()  # nothing tells what would be padded
    assert made("lengths", "int64", 2, other="tokens").tolist() == row_lengths(2, 60).tolist()
    assert made("lengths", "int32", 2, 1, other="audio").tolist() == row_lengths(2, 60).reshape(2, 1).tolist()


def test_probabilities_and_boxes() -> None:
    chances = made("probabilities", "float32", 5, 7)
    assert (chances > 0).all()
    assert np.allclose(chances.sum(axis=-1), 1)
    for boxes, most in (
        (made("boxes", "float32", 9, 4), (1, 1)),
        (made("boxes-pixels", "int64", 9, 4, other="rgb"), (60, 40)),
    ):
        assert (boxes >= 0).all()
        assert (boxes[:, :2] < boxes[:, 2:]).all()
        assert (boxes[:, 2:] <= most).all()


@pytest.mark.parametrize(
    ("recipe", "dtype", "shape", "told"),
    [
        ("tokens", "int64", (2, 3), "the graph does not show how many tokens there are"),
        ("lengths", "int64", (2,), "belong to another input"),
        ("boxes-pixels", "int64", (2, 4), "belong to another input"),
        ("boxes", "float32", (2, 5), "a last axis of 4, and the shape is 2x5"),
        ("probabilities", "int64", (2,), "for floating types, and the input is of type int64"),
        ("tokens", "float32", (2,), "for integers"),
        ("rgb-signed", "uint8", (1, 3, 8, 8), "for floating types"),
        ("rgb", "int8", (1, 3, 8, 8), "of type int8"),
        ("mask", "string", (2, 3), "for numbers or bool"),
    ],
)
def test_a_recipe_that_does_not_suit_its_input_is_refused(
    recipe: str, dtype: str, shape: tuple[int, ...], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        made(recipe, dtype, *shape)


def test_every_recipe_is_tried_here() -> None:
    text = Path(__file__).read_text("utf-8")
    assert [name for name in RECIPES if f'"{name}"' not in text] == []


def test_a_model_is_fed_by_recipes_and_its_record_says_so(write_model: Callable[..., Path]) -> None:
    path = write_model("m/reader.onnx", READER)
    Path(f"{path}.toml").write_text(
        'dimensions = { T = 8, N = 3, B = 2 }\n[inputs]\nimage = "rgb"\nmask = "mask"\n'
        'ids = { recipe = "tokens", high = 50 }\nsize = "lengths"\n',
        encoding="utf-8",
    )
    case = load_case(open_folder(path.parent), "reader.onnx", {})
    values = {name: one.array for name, one in case.data_sets[0].inputs if isinstance(one, Tensor)}
    assert (
        values["size"].tolist() == values["mask"].sum(axis=1).tolist() == (values["ids"] > 0).sum(1).tolist()
    )
    fed = "generated image 3x3x32x48 (rgb), ids 3x8 (tokens), mask 3x8 (mask), size 3 (lengths)"
    assert fed_words(case, case) == f"{fed} and 1 more, seed 0"


def test_a_name_that_the_model_does_not_have_is_told_in_two_lines(write_model: Callable[..., Path]) -> None:
    path = write_model("m/one.onnx")
    settings = ModelSettings(inputs={"X": "gray"})
    with pytest.raises(SettingsError) as caught:
        load_case(open_folder(path.parent), "one.onnx", {}, settings=settings)
    first, second = caught.value.shown.splitlines()
    assert first == "m/one.onnx: its settings name the input 'X', which it does not have"
    assert second.strip() == "valid: x"


def test_what_one_input_is_fed_is_its_shape(write_model: Callable[..., Path]) -> None:
    path = write_model("m/one.onnx")
    case = load_case(open_folder(path.parent), "one.onnx", {})
    assert fed_words(case, case) == "generated 2, seed 0"
