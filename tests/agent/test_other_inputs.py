"""Other inputs, made of the same numbers."""

import numpy as np

from harness.agent.other_inputs import reversed_inputs

MATRIX, VECTOR = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(3, dtype=np.float32)
SIZES, SAME = np.array([2, 3], np.int64), np.ones((2, 3), np.float32)


def test_data_change_and_vectors_beside_them_stay() -> None:
    feeds = {"x": MATRIX, "scales": VECTOR, "sizes": SIZES, "words": ["a"], "none": None}
    found = reversed_inputs(feeds)
    assert found is not None
    assert found["x"].tolist() == [[5, 4, 3], [2, 1, 0]]
    assert found["x"].dtype == np.float32
    assert all(found[name] is feeds[name] for name in feeds if name != "x")


def test_without_floating_data_integers_change_and_then_vectors() -> None:
    table = MATRIX.astype(np.int64)
    found = reversed_inputs({"x": table, "v": VECTOR})
    assert found is not None
    assert found["x"].tolist() == [[5, 4, 3], [2, 1, 0]]
    assert found["v"] is VECTOR
    found = reversed_inputs({"x": SAME, "v": VECTOR, "sizes": SIZES})
    assert found is not None
    assert found["v"].tolist() == [2, 1, 0]
    assert found["sizes"] is SIZES


def test_texts_and_truths_change_where_nothing_else_does() -> None:
    words = np.array(["a", "b"], dtype=object)
    found = reversed_inputs({"words": words, "sizes": SIZES})
    assert found is not None
    assert found["words"].tolist() == ["b", "a"]


def test_masks_of_padding_stay_where_tokens_change() -> None:
    tokens, mask = np.arange(8).reshape(2, 4), np.array([[1, 1, 1, 1], [1, 1, 1, 0]])
    found = reversed_inputs({"tokens": tokens, "mask": mask})
    assert found is not None
    assert found["tokens"].tolist() == [[7, 6, 5, 4], [3, 2, 1, 0]]
    assert found["mask"] is mask
    alone = reversed_inputs({"mask": mask})
    assert alone is not None
    assert alone["mask"].tolist() == [[0, 1, 1, 1], [1, 1, 1, 1]]
    for data in (mask * 2, np.array([[1, 0, 1, 0]]), np.array([[0.5, 0, 0]], np.float32)):
        both = reversed_inputs({"data": data, "tokens": tokens.astype(data.dtype)})
        assert both is not None
        assert both["data"] is not data


def test_what_would_be_the_same_is_no_other_input() -> None:
    assert reversed_inputs({"x": SAME, "sizes": SIZES, "scalar": np.float32(3)}) is None
    assert reversed_inputs({}) is None
