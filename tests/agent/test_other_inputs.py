"""Other inputs, made of the same numbers."""

import numpy as np

from harness.agent.other_inputs import other_inputs

MATRIX, VECTOR = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(3, dtype=np.float32)
SIZES, SAME = np.array([2, 3], np.int64), np.ones((2, 3), np.float32)


def test_data_change_and_vectors_beside_them_stay() -> None:
    feeds = {"x": MATRIX, "scales": VECTOR, "sizes": SIZES, "words": ["a"], "none": None}
    found = other_inputs(feeds)
    assert found is not None
    assert found["x"].tolist() == [[5, 4, 3], [2, 1, 0]]
    assert found["x"].dtype == np.float32
    assert all(found[name] is feeds[name] for name in feeds if name != "x")


def test_without_floating_data_integers_change_and_then_vectors() -> None:
    table = MATRIX.astype(np.int64)
    found = other_inputs({"x": table, "v": VECTOR})
    assert found is not None
    assert found["x"].tolist() == [[5, 4, 3], [2, 1, 0]]
    assert found["v"] is VECTOR
    found = other_inputs({"x": SAME, "v": VECTOR, "sizes": SIZES})
    assert found is not None
    assert found["v"].tolist() == [2, 1, 0]
    assert found["sizes"] is SIZES


def test_what_would_be_the_same_is_no_other_input() -> None:
    assert other_inputs({"x": SAME, "sizes": SIZES, "scalar": np.float32(3)}) is None
    assert other_inputs({}) is None
