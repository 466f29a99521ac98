"""Whatever a golden and a result are made of: they are compared, judged, recorded and judged again."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_values import natures, pairs

from harness.core.compare import compare_all
from harness.core.decide import decide
from harness.core.facts import Facts, facts_of
from harness.core.nature import Nature
from harness.core.noise import NoiseRule
from harness.core.policy import Policy
from harness.core.precise import judge_precision
from harness.core.record import SCHEMA, Placement, Record, decode_record, encode_record
from harness.core.spread import spread_of
from harness.core.tolerance import default_tolerance
from harness.core.value import Value, from_wire, to_wire, value_bytes

EXAMPLES = settings(max_examples=400, derandomize=True)
PLACED = Placement(ep_nodes=1, cpu_nodes=0, ep_ops={}, cpu_ops={}, partitions=1, source="assignment")
POLICIES = (Policy(), Policy(judge_by="noise"), Policy(judge_by="table"), Policy(precision="float16"))

NAMED = st.lists(pairs(), min_size=1, max_size=2)


@EXAMPLES
@given(NAMED, st.lists(natures(), min_size=2, max_size=2), st.sampled_from(POLICIES))
def test_any_pair_of_results_gets_a_verdict(
    both: list[tuple[Value, Value]], kinds: list[Nature | None], policy: Policy
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
    record = Record(
        schema=SCHEMA,
        cell="s/m[t]",
        suite="s",
        model="m",
        target="t",
        provider="p",
        verdict=decision.verdict,
        family=decision.verdict.family,
        expected=True,
        golden="cpu",
        placement=PLACED,
        outputs=facts.outputs,
    )
    again = decode_record(encode_record(record))
    assert decide(facts_of(again), policy).verdict is decision.verdict


@EXAMPLES
@given(NAMED, st.sampled_from(["own", "none"]), st.sampled_from(["float16", "bfloat16", "float8"]))
def test_any_pair_of_results_of_a_converted_model_gets_a_verdict(
    both: list[tuple[Value, Value]], known: str, precision: str
) -> None:
    golden = [(name, pair[0]) for name, pair in zip("yz", both, strict=False)]
    actual = [(name, pair[1]) for name, pair in zip("yz", both, strict=False)]
    tolerance = lambda dtype: default_tolerance(dtype, "float16")  # noqa: E731
    own = actual if known == "own" else None
    compared = judge_precision(golden, own, actual, tolerance, precision, {})
    decide(Facts(golden="cpu", placement=PLACED, outputs=compared.outputs, converted=True), Policy())


@EXAMPLES
@given(pairs())
def test_values_survive_the_wire(both: tuple[Value, Value]) -> None:
    for value in both:
        assert value_bytes(value) >= 0
        wire = msgspec.msgpack.decode(msgspec.msgpack.encode(_without_surrogates(to_wire(value))))
        from_wire(wire)


def _without_surrogates(wire: object) -> object:
    if isinstance(wire, str):
        return wire.encode("utf-8", errors="replace").decode("utf-8")
    if isinstance(wire, list):
        return [_without_surrogates(item) for item in wire]
    if isinstance(wire, dict):
        return {key: _without_surrogates(item) for key, item in wire.items()}
    return wire
