"""Values of any origin: a wire form is a value or a ValueError, and two values can always be judged."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.comparison.output_kind import OutputKind, Quantized
from harness.core.comparison.policy import Policy
from harness.core.comparison.random_outputs import Bernoulli, Dropped, Multinomial, Normal, Uniform
from harness.core.comparison.ties import Chosen
from harness.core.comparison.tolerance import default_tolerance
from harness.core.comparison.unordered import Unordered
from harness.core.noise.noise import NoiseRule
from harness.core.noise.spread import spread_of
from harness.core.records.facts import Facts
from harness.core.records.record import decode_record, encode_record
from harness.core.values.value import (
    BITS,
    DTYPES,
    STRING,
    Tensor,
    Value,
    from_wire,
    leaves,
    to_wire,
    value_bytes,
)
from harness.core.verdicts.compare import OutputComparison, compare_all
from harness.core.verdicts.decide import decide
from harness.core.verdicts.judge_output import judge_row
from harness.core.verdicts.precise import judge_precision
from tests.kit import bare_record, placement_of
from tests.mutations import mutated

Wire = dict[str, Any]

FEW = settings(max_examples=200, derandomize=True, deadline=None, database=None)

SHAPES: tuple[tuple[int, ...], ...] = (
    *((), (0,), (1,), (2,), (3,), (5,), (17,), (2, 3), (0, 3), (3, 0), (1, 3), (4, 3), (3, 4)),
    *((0, 0), (2, 0, 3), (2, 2, 3), (1, 2, 2, 2), (2, 1, 3), (1, 0, 1 << 40)),
    *((1,) * 32, (1,) * 33, (2, *(1,) * 38, 2), (0, *(1,) * 40), (1,) * 64, (*(1,) * 62, 2, 2)),
)
NAMES = (*DTYPES, STRING)
EXTREMES = (0.0, -0.0, 1.0, 1e-161, 1e-40, 5e-324, 1e153, 1e30, -1e308, 1e308, float("inf"), float("nan"))
WORDS = ("", "a", "b", "ä€😀", "\0", "\ud800", "a\nb", "<script>", "x" * 300)


@st.composite
def tensors(draw: Callable[..., Any], dtype: str = "", shape: tuple[int, ...] | None = None) -> Wire:
    """A tensor in wire form whose bytes are anything: NaN, infinity and subnormal numbers with them."""
    dtype = dtype or draw(st.sampled_from(NAMES))
    shape = draw(st.sampled_from(SHAPES)) if shape is None else shape
    elements = int(np.prod(shape, dtype=np.int64))
    if dtype == STRING:
        words = draw(st.lists(st.sampled_from(WORDS), min_size=elements, max_size=elements))
        return {"dtype": dtype, "shape": list(shape), "data": words}
    nbytes = -(-elements * (BITS.get(dtype) or 8 * DTYPES[dtype].itemsize) // 8)
    data = draw(st.binary(min_size=nbytes, max_size=nbytes))
    if dtype in {"float32", "float64", "complex64", "complex128"} and draw(st.booleans()):
        part = "f4" if dtype in {"float32", "complex64"} else "f8"
        extremes = draw(st.lists(st.sampled_from(EXTREMES), min_size=1, max_size=4))
        with np.errstate(over="ignore"):
            return {
                "dtype": dtype,
                "shape": list(shape),
                "data": np.resize(np.array(extremes, part), nbytes // int(part[1])).tobytes(),
            }
    if draw(st.booleans()) and dtype not in BITS:  # small numbers, which are positions, too
        numbers = np.frombuffer(data, np.uint8)[:elements] % 4
        data = np.resize(numbers, elements).astype(DTYPES[dtype]).tobytes()
    return {"dtype": dtype, "shape": list(shape), "data": data}


@st.composite
def values(draw: Callable[..., Any]) -> Any:
    kind = draw(st.sampled_from(["tensor"] * 6 + ["sequence", "map", "none"]))
    if kind == "tensor":
        return draw(tensors())
    if kind == "none":
        return None
    if kind == "sequence":
        return {"sequence": draw(st.lists(tensors() | st.none(), max_size=3))}
    shape = (draw(st.integers(0, 3)),)
    keys = draw(st.sampled_from(("int64", "uint8", STRING)))
    return {"keys": draw(tensors(keys, shape)), "values": draw(tensors(shape=shape))}


@st.composite
def pairs(draw: Callable[..., Any]) -> tuple[Any, Any]:
    """Two values that often have a shape, or a type, or all but one element in common."""
    golden = draw(values())
    alike = draw(st.sampled_from(("same", "element", "shape", "dtype", "nothing")))
    if not isinstance(golden, dict) or "dtype" not in golden or alike == "nothing":
        return golden, draw(values())
    if alike == "element" and golden["data"]:
        at = draw(st.integers(0, len(golden["data"]) - 1))
        other = (
            [draw(st.sampled_from(WORDS))]
            if golden["dtype"] == STRING
            else draw(st.binary(min_size=1, max_size=1))
        )
        return golden, {**golden, "data": golden["data"][:at] + other + golden["data"][at + 1 :]}
    if alike in {"same", "element"}:
        return golden, draw(tensors(golden["dtype"], tuple(golden["shape"])))
    if alike == "shape":
        return golden, draw(tensors(shape=tuple(golden["shape"])))
    return golden, draw(tensors(golden["dtype"]))


@st.composite
def kinds(draw: Callable[..., Any]) -> OutputKind:
    data = from_wire(draw(tensors(draw(st.sampled_from(("float32", "float64", "int64", "bfloat16"))))))
    assert isinstance(data, Tensor)
    numbers = data.array.astype(np.float64)
    axis = draw(st.sampled_from((-1, 0, 1, -70, 70)))
    ops = ("ArgMax", "ArgMin", "TopK", "MaxPool", "NonMaxSuppression", "NonZero")
    output_kind: OutputKind = draw(
        st.sampled_from(
            (
                *(Chosen(op=op, data=data, axis=axis, unordered=True) for op in ops),
                *(Chosen(op=op, data=data, axis=axis, exact=True) for op in ops),
                *(Unordered(axis=axis, positions=positions) for positions in ("", "k", "y", "nowhere")),
                *(Quantized(scale=scale) for scale in (np.ones(()), numbers)),
                *(Uniform(low=0.0, high=high) for high in (1.0, 0.0, -1.0, math.nan)),
                *(Normal(mean=0.0, scale=scale) for scale in (1.0, 0.0, math.nan)),
                Bernoulli(probabilities=numbers),
                Multinomial(logits=numbers),
                *(Dropped(data=numbers, ratio=0.5, mask=mask) for mask in (True, False)),
            )
        )
    )
    return output_kind


def tolerance_for(dtype: str) -> Any:
    return default_tolerance(dtype, "float32")


POLICIES = (
    Policy(),
    Policy(judge_by="table"),
    Policy(precision="float16", converted=True),
)


RULES = (Policy(), Policy(judge_by="noise"), Policy(judge_by="table"), Policy(precision="float16"))
PLACED = placement_of({}, ep_nodes=1, partitions=1)


def judged(found: OutputComparison) -> None:
    """Judge every row under other policies, too, and write it as a record does."""
    for row in found.outputs:
        for policy in POLICIES:
            judge_row(row, policy)
    assert msgspec.json.decode(msgspec.json.encode(found), type=OutputComparison) == found


@FEW
@given(pairs(), pairs(), st.none() | kinds(), st.booleans())
def test_any_two_results_are_compared(
    y: tuple[Any, Any],
    k: tuple[Any, Any],
    output_kind: OutputKind | None,
    both: bool,  # noqa: FBT001 - drawn
) -> None:
    golden, actual = (
        tuple((name, from_wire(wires[side])) for name, wires in (("y", y), ("k", k))) for side in (0, 1)
    )
    known: Mapping[str, OutputKind] = (
        {} if output_kind is None else {"y": output_kind} | ({"k": output_kind} if both else {})
    )
    judged(compare_all(golden, actual, tolerance_for, known))
    judged(judge_precision(golden, golden, actual, tolerance_for, "float16", known))
    judged(judge_precision(golden, actual, actual, tolerance_for, "bfloat16", known))
    for part in (golden, actual):
        assert all(value_bytes(value) >= 0 for _, value in part)


@FEW
@given(pairs(), values())
def test_any_samples_have_a_spread_or_none(pair: tuple[Any, Any], third: Any) -> None:
    golden, one, other = ((("y", from_wire(wire)),) for wire in (*pair, third))
    for amplitudes in ([0.0, 1.0, 1.0], [0.0, 1.0, 8.0]):
        spread = spread_of([golden], [golden, one, other], amplitudes, "float32")
        noise = NoiseRule(precision="float32", spreads=spread.outputs[0])
        judged(compare_all(golden, one, tolerance_for, noise=noise))


@FEW
@given(st.data())
def test_a_wire_form_is_a_value_or_a_value_error(data: st.DataObject) -> None:
    wire = data.draw(mutated(data.draw(values())))
    try:
        value: Value = from_wire(wire)
    except ValueError:
        return
    assert to_wire(from_wire(to_wire(value))) == to_wire(value)
    assert value_bytes(value) >= 0
    judged(compare_all((("y", value),), (("y", value),), tolerance_for))


@FEW
@given(pairs(), pairs(), st.lists(st.none() | kinds(), min_size=2, max_size=2), st.sampled_from(RULES))
def test_any_two_results_get_a_verdict_and_the_same_one_from_the_record(
    y: tuple[Any, Any], k: tuple[Any, Any], kinds: list[OutputKind | None], policy: Policy
) -> None:
    golden, actual = (
        tuple((name, from_wire(wires[side])) for name, wires in (("y", y), ("k", k))) for side in (0, 1)
    )
    known = {name: kind for name, kind in zip("yk", kinds, strict=True) if kind is not None}
    spread = spread_of((golden,), (golden, actual, actual), (0.0, 1.0, 1.0), "float32")
    noise = NoiseRule(precision="float32", spreads=spread.outputs[0])
    compared = compare_all(golden, actual, tolerance_for, known, noise)
    facts = Facts(golden="cpu", placement=PLACED, outputs=compared.outputs)
    decision = decide(facts, policy)
    record = bare_record(
        "m", decision.verdict, target="t", golden="cpu", placement=PLACED, outputs=facts.outputs
    )
    again = decode_record(encode_record(record))
    assert decide(again, policy).verdict is decision.verdict


@pytest.mark.parametrize("rank", [32, 33, 40, 64])
def test_arrays_of_as_many_dimensions_as_numpy_has_are_values(rank: int) -> None:
    words = from_wire({"dtype": STRING, "shape": [*[1] * (rank - 1), 2], "data": ["a", "b"]})
    assert value_bytes(words) > 0
    ((_, tensor),) = leaves("y", words)
    assert isinstance(tensor, Tensor)
    assert tensor.array.ndim == rank
    other = from_wire({**to_wire(words), "data": ["b", "a"]})
    found = compare_all((("y", words),), (("y", other),), tolerance_for)
    assert "same values in another order" in found.message


def test_arrays_of_more_dimensions_are_none() -> None:
    with pytest.raises(ValueError, match="65 dimensions"):
        from_wire({"dtype": "float32", "shape": [1] * 65, "data": bytes(4)})
