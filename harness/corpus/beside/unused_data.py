"""Test data beside a model where nothing reads them."""

import os
from pathlib import Path

from harness.corpus.model.model_errors import InputError

_VALUES = ("inputs.npz", "input_0.pb", "input_0.npy")
"""Files of a data set, which belong in their own folder."""

_SETS = ("test_data_set_0", "test_data_0.npz")
"""Data sets, which belong beside a model that is alone in its folder."""


def unused_data(model: Path, home: Path) -> tuple[Path, ...]:
    """Return files beside a model, or in the folder of its data sets, that are not read as its data.

    A few names are checked, because a folder may hold thousands of models. ``home`` is the folder of the
    model's data sets: the model's own folder, or one of its name where models share a folder.
    """
    places = [home / name for name in _VALUES]
    if home != model.parent:
        places += [model.parent / name for name in (*_SETS, *_VALUES)]
    return tuple(place for place in places if os.path.lexists(place))


def refuse_unused(model: Path, home: Path) -> None:
    """Refuse to generate inputs for a model whose test data are where nothing reads them.

    Raises:
        InputError: There are such data; the text says where they belong.
    """
    unused = unused_data(model, home)
    if not unused:
        return
    found = unused[0]
    shared = home != model.parent
    folder = f"{home.name}/" if shared else ""
    if found.name in _SETS:
        what = "lies in a folder of several models, so it is the data of none"
        remedy = f"move it to {folder}{found.name}"
    else:
        what = "lies beside the model, not in a data set, so nothing reads it"
        remedy = f"move it to {folder}test_data_set_0/{found.name}"
    raise InputError(found, f"{what}; {remedy}, or elsewhere to have inputs generated")
