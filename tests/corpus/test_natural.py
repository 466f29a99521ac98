"""Inputs that are pictures or voices by their shapes and names."""

import pytest

from harness.corpus.inputs.recipes.natural import natural
from harness.corpus.model.port import Port, ValueType


@pytest.mark.parametrize(
    ("name", "dtype", "shape", "recipe"),
    [
        ("x", "float32", (2, 3, 64, 96), "rgb-imagenet"),
        ("x", "float16", (2, 64, 96, 3), "rgb-imagenet"),
        ("x", "uint8", (2, 64, 96, 3), "rgb"),
        ("x", "float32", (2, 1, 64, 96), "gray-signed"),
        ("x", "uint8", (2, 1, 64, 96), "gray"),
        ("x", "float32", (2, 7, 64, 96), ""),
        ("x", "int64", (2, 3, 64, 96), ""),
        ("x", "float32", (3, 64, 96), ""),
        ("waveform", "float32", (2, 4000), "audio"),
        ("waveform", "int64", (2, 4000), ""),
        ("x", "float32", (2, 4000), ""),
        ("waveform", "float32", (), ""),
    ],
)
def test_what_an_input_takes(name: str, dtype: str, shape: tuple[int, ...], recipe: str) -> None:
    found = natural(Port(name=name, type=ValueType(kind="tensor", dtype=dtype, shape=shape)))
    assert (found.recipe if found else "") == recipe
