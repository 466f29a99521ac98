import ml_dtypes
import numpy as np
import pytest

from harness.core.values.value import Map, NamedValues, Sequence, Tensor, Value
from harness.core.values.value_digest import SHORT_DIGITS, short_digest, values_digest
from harness.golden.golden_answer import Golden


def floats(*numbers: float) -> Tensor:
    return Tensor(dtype="float32", array=np.array(numbers, np.float32))


VALUES: list[Value] = [
    floats(),
    floats(0.0),
    floats(-0.0),
    floats(np.nan),
    floats(1.0, 2.0),
    Tensor(dtype="float32", array=np.array([[1.0], [2.0]], np.float32)),
    Tensor(dtype="float64", array=np.array([1.0, 2.0])),
    Tensor(dtype="float32", array=np.array(1.0, np.float32)),
    Tensor(dtype="bool", array=np.array([True, False])),
    Tensor(dtype="bfloat16", array=np.array([1.0, 2.0], ml_dtypes.bfloat16)),
    Tensor(dtype="int4", array=np.array([1, -2], ml_dtypes.int4)),
    Tensor(dtype="string", array=np.array(["1", "2"], object)),
    Tensor(dtype="string", array=np.array(["1, 2"], object)),
    Sequence(items=(floats(1.0),)),
    Sequence(items=()),
    Map(keys=Tensor(dtype="int64", array=np.array([1])), values=floats(1.0)),
    None,
]


def of(value: Value, name: str = "y") -> tuple[NamedValues, ...]:
    return (((name, value),),)


def test_other_bits_types_shapes_and_names_have_other_digests() -> None:
    digests = [values_digest(of(value)) for value in VALUES]
    assert len(set(digests)) == len(VALUES)
    assert values_digest(of(floats(1.0), "x")) != values_digest(of(floats(1.0)))


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_equal_values_have_one_digest(value: Value) -> None:
    again = value
    if isinstance(value, Tensor) and value.array.ndim:
        strided = np.repeat(value.array, 2, axis=0)[::2]
        again = Tensor(dtype=value.dtype, array=strided)
    assert values_digest(of(again)) == values_digest(of(value))
    assert short_digest(of(value)) == values_digest(of(value))[:SHORT_DIGITS]


def test_a_golden_knows_its_digest() -> None:
    golden = Golden(status="ok", outputs=of(floats(1.0)))
    assert golden.digest == short_digest(of(floats(1.0))) == golden.digest
    assert Golden(status="refused", message="no").digest == ""
