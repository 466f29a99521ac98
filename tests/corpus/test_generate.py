import numpy as np
import pytest

from harness.core.values.value import DTYPES, Map, Sequence, Tensor, Value
from harness.corpus.inputs.generated_inputs import SAMPLE_WORDS, generate
from harness.corpus.model.port import Port, ValueType


def made(declared: ValueType, model: str = "m", name: str = "x", seed: int = 0) -> Value:
    return generate(model, Port(name=name, type=declared), seed)


def array(dtype: str, *shape: int | None, seed: int = 0, name: str = "x") -> np.ndarray:
    value = made(ValueType(kind="tensor", dtype=dtype, shape=shape), name=name, seed=seed)
    assert isinstance(value, Tensor)
    assert value.dtype == dtype
    return value.array


def test_the_same_words_make_the_same_input_and_others_another() -> None:
    first = array("float32", 8)
    np.testing.assert_array_equal(first, array("float32", 8))
    assert not np.array_equal(first, array("float32", 8, seed=1))
    assert not np.array_equal(first, array("float32", 8, name="y"))


def test_unknown_dimensions_are_one_and_zero_stays_zero() -> None:
    assert array("float32", None, 3).shape == (1, 3)
    assert array("float32", 0, 3).shape == (0, 3)
    assert array("float32").shape == ()


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_element_type_is_finite_and_varies(dtype: str) -> None:
    drawn = array(dtype, 64, 4)
    assert drawn.dtype == DTYPES[dtype]
    assert drawn.shape == (64, 4)
    wide = drawn.astype(np.complex128)
    assert np.isfinite(wide).all()
    assert len(np.unique(wide)) > 1


def test_wide_integers_are_safe_as_indices_and_narrow_ones_take_their_range() -> None:
    for dtype in ("int32", "int64", "uint32", "uint64"):
        assert set(array(dtype, 100).tolist()) == {0, 1}
    assert array("uint8", 10_000).max() == 255
    assert array("int8", 10_000).min() == -128
    assert set(array("uint4", 1000).astype(int).tolist()) == set(range(16))
    assert set(array("int2", 1000).astype(int).tolist()) == {-2, -1, 0, 1}


def test_floating_types_are_standard_normal() -> None:
    drawn = array("float32", 10_000)
    assert abs(drawn.mean()) < 0.05
    assert abs(drawn.std() - 1) < 0.05


def test_strings_sequences_optionals_and_maps() -> None:
    words = array("string", 50)
    assert words.dtype == object
    assert set(words.tolist()) <= set(SAMPLE_WORDS)
    tensor = ValueType(kind="tensor", dtype="float32", shape=(2,))
    sequence = made(ValueType(kind="sequence", item=tensor))
    assert isinstance(sequence, Sequence)
    assert len(sequence.items) == 1
    assert isinstance(made(ValueType(kind="optional", item=tensor)), Tensor)
    scalar = ValueType(kind="tensor", dtype="float32")
    table = made(ValueType(kind="map", dtype="string", item=scalar))
    assert isinstance(table, Map)
    assert table.keys.array.shape == table.values.array.shape == (1,)


@pytest.mark.parametrize(
    ("declared", "cause"),
    [
        (ValueType(kind="tensor", dtype="float32"), "no shape is declared"),
        (ValueType(kind="tensor", dtype="float6e2m3", shape=(1,)), "float6e2m3 cannot be generated"),
        (ValueType(kind="tensor", shape=(1,)), "unknown cannot be generated"),
        (ValueType(kind="map", dtype="int64", item=ValueType(kind="sequence")), "map with sequence values"),
    ],
)
def test_what_cannot_be_made_says_why(declared: ValueType, cause: str) -> None:
    with pytest.raises(ValueError, match=cause):
        made(declared)


def test_a_single_string_is_an_array_too() -> None:
    words = array("string")
    assert words.shape == ()
    assert isinstance(words.item(), str)
