"""Named recipes of inputs: the content of a generated input where random numbers would have no meaning."""

from typing import Literal

RecipeName = Literal[
    "rgb",
    "rgb-255",
    "rgb-signed",
    "rgb-imagenet",
    "gray",
    "gray-255",
    "gray-signed",
    "region",
    "audio",
    "audio-int16",
    "tokens",
    "mask",
    "lengths",
    "probabilities",
    "boxes",
    "boxes-pixels",
]

RECIPES: dict[str, str] = {
    "rgb": "pictures of three channels, 0 to 1; in integers 0 to 255",
    "rgb-255": "the same, 0 to 255 in any type",
    "rgb-signed": "the same, -1 to 1",
    "rgb-imagenet": "the same, with ImageNet's mean and deviation",
    "gray": "pictures of one channel, 0 to 1; in integers 0 to 255",
    "gray-255": "the same, 0 to 255 in any type",
    "gray-signed": "the same, -1 to 1",
    "region": "1 within a region of a picture, 0 outside, as for inpainting",
    "audio": "a voice at 16 kHz, -1 to 1; in integers 16 bits",
    "audio-int16": "the same, -32768 to 32767 in any type",
    "tokens": "ids of a vocabulary, frequent ones more often; 0 where a row is padded",
    "mask": "1 up to the length of each row, 0 for the rest of the last axis",
    "lengths": "the length of each row of the input of tokens, mask or audio",
    "probabilities": "0 to 1, with a sum of 1 along the last axis",
    "boxes": "corners x0, y0, x1, y1 along the last axis, 0 to 1",
    "boxes-pixels": "the same in pixels of the picture that another input is",
}
"""Recipe -> what it makes, for the documentation."""

RANGED = "tokens"
"""The recipe that takes ``low`` and ``high``: ids of a vocabulary."""

PICTURES = frozenset(name for name in RECIPES if name.startswith(("rgb", "gray")))
SEQUENCES = frozenset({"tokens", "mask", "audio", "audio-int16"})
"""Recipes whose rows have a length, which ``lengths`` fits."""
