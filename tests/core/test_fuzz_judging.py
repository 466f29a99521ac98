"""Whatever a golden and a result are made of: there is a verdict, and the same one from the record."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.compare import compare_all
from harness.core.decide import decide
from harness.core.draws import Bernoulli, Dropped, Multinomial, Normal, Uniform
from harness.core.facts import Facts, facts_of
from harness.core.noise import NoiseRule
from harness.core.output_kind import OutputKind, Quantized
from harness.core.policy import Policy
from harness.core.record import decode_record, encode_record
from harness.core.spread import spread_of
from harness.core.ties import Chosen
from harness.core.tolerance import default_tolerance
from harness.core.unordered import Unordered
from harness.core.value import (
    DTYPES,
    STRING,
    Map,
    Sequence,
    Tensor,
    Value,
    unpack,
)
from tests.kit import bare_record, placement_of

TEXTS = st.text(max_size=6) | st.sampled_from(["", "\x00", "\ud800", "a\nb", "<script>", "🙂"])


@st.composite
def shapes(draw: st.DrawFn) -> tuple[int, ...]:
    """Mostly small ones; sometimes more dimensions than numpy's older functions take."""
    if draw(st.integers(0, 15)) == 0:
        return (1,) * draw(st.integers(30, 64))
    return tuple(draw(st.lists(st.sampled_from([0, 1, 1, 2, 3]), max_size=4)))


@st.composite
def tensors(draw: st.DrawFn, dtype: str = "", shape: tuple[int, ...] | None = None) -> Tensor:
    """A tensor of any type, of any bits."""
    dtype = dtype or draw(st.sampled_from([STRING, *DTYPES]))
    shape = draw(shapes()) if shape is None else shape
    count = int(np.prod(shape, dtype=np.int64))
    if dtype == STRING:
        array = np.empty(count, object)
        array[:] = draw(st.lists(TEXTS, min_size=count, max_size=count))
        return Tensor(dtype=STRING, array=array.reshape(shape))
    small = draw(st.booleans())
    if small:  # numbers that meet each other, zeros and ones among them
        drawn = draw(st.lists(st.sampled_from([0, 1, 2, 3]), min_size=count, max_size=count))
        with np.errstate(all="ignore"):
            return Tensor(dtype=dtype, array=np.array(drawn, np.int64).astype(DTYPES[dtype]).reshape(shape))
    bits = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float4e2m1": 4}.get(
        dtype, 8 * DTYPES[dtype].itemsize
    )
    size = -(-count * bits // 8)
    data = draw(st.binary(min_size=size, max_size=size))
    if dtype == "bool":
        data = bytes(byte & 1 for byte in data)
    return unpack(dtype, shape, data)


@st.composite
def changed(draw: st.DrawFn, value: Tensor) -> Tensor:
    """A tensor that differs from another in a few elements, in its type, or in its shape."""
    how = draw(st.sampled_from(["same", "elements", "type", "shape", "other"]))
    if how == "same":
        return value
    if how == "type":
        return draw(tensors(shape=value.array.shape))
    if how == "shape":
        return draw(tensors(dtype=value.dtype))
    if how == "other" or not value.array.size:
        return draw(tensors())
    other = draw(tensors(dtype=value.dtype, shape=value.array.shape))
    at = draw(st.integers(0, value.array.size - 1))
    array = value.array.copy()
    array.reshape(-1)[at] = other.array.reshape(-1)[at]
    return Tensor(dtype=value.dtype, array=array)


@st.composite
def values(draw: st.DrawFn, depth: int = 2) -> Value:
    """A tensor, an empty optional, or a container of such."""
    kind = draw(st.sampled_from(["tensor"] * 4 + ["none", "sequence", "map"] * (depth > 0)))
    if kind == "none":
        return None
    if kind == "sequence":
        return Sequence(items=tuple(draw(st.lists(values(depth - 1), max_size=3))))
    if kind == "map":
        count = draw(st.integers(0, 3))
        key_type = draw(st.sampled_from(["int64", STRING]))
        return Map(keys=draw(tensors(key_type, (count,))), values=draw(tensors("", (count,))))
    return draw(tensors())


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Value, Value]:
    """A golden and a result."""
    golden = draw(values())
    if isinstance(golden, Tensor):
        return golden, draw(changed(golden) | values())
    return golden, draw(st.just(golden) | values())


@st.composite
def kinds(draw: st.DrawFn) -> OutputKind | None:
    """What an output may be besides numbers; it need not suit the output at all."""
    axes = st.integers(-4, 4)
    number = st.floats(allow_nan=True, width=32)
    arrays = tensors("float32").map(lambda value: value.array)
    return draw(
        st.none()
        | st.builds(Unordered, axis=axes, positions=st.sampled_from(["", "y", "z"]))
        | st.builds(Quantized, scale=arrays.map(np.abs))
        | st.builds(Uniform, low=number, high=number)
        | st.builds(Normal, mean=number, scale=number)
        | st.builds(Bernoulli, probabilities=arrays)
        | st.builds(Multinomial, logits=arrays)
        | st.builds(Dropped, data=arrays, ratio=st.floats(0, 0.9), mask=st.booleans())
        | st.builds(
            Chosen,
            op=st.sampled_from(["ArgMax", "ArgMin", "TopK", "NonMaxSuppression", "NonZero"]),
            data=tensors(),
            axis=axes,
            exact=st.booleans(),
            unordered=st.booleans(),
        )
    )


EXAMPLES = settings(max_examples=200, derandomize=True)
PLACED = placement_of({}, ep_nodes=1, partitions=1)
POLICIES = (Policy(), Policy(judge_by="noise"), Policy(judge_by="table"), Policy(precision="float16"))

NAMED = st.lists(pairs(), min_size=1, max_size=2)


@EXAMPLES
@given(NAMED, st.lists(kinds(), min_size=2, max_size=2), st.sampled_from(POLICIES))
def test_any_pair_of_results_gets_a_verdict(
    both: list[tuple[Value, Value]], kinds: list[OutputKind | None], policy: Policy
) -> None:
    names = ["y", "z"]
    golden = [(name, pair[0]) for name, pair in zip(names, both, strict=False)]
    actual = [(name, pair[1]) for name, pair in zip(names, both, strict=False)]
    known = {name: kind for name, kind in zip(names, kinds, strict=True) if kind is not None}
    noisy = (tuple(golden), tuple(actual), tuple(actual))
    spread = spread_of((tuple(golden),), noisy, (0.0, 1.0, 1.0), "float32")
    noise = NoiseRule(precision="float32", spreads=spread.outputs[0])
    tolerance = lambda dtype: default_tolerance(dtype, "float32")  # noqa: E731
    compared = compare_all(golden, actual, tolerance, known, noise)
    facts = Facts(golden="cpu", placement=PLACED, outputs=compared.outputs)
    decision = decide(facts, policy)
    record = bare_record(
        "m", decision.verdict, target="t", golden="cpu", placement=PLACED, outputs=facts.outputs
    )
    again = decode_record(encode_record(record))
    assert decide(facts_of(again), policy).verdict is decision.verdict
