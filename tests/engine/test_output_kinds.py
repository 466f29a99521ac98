"""Outputs that are more than numbers, from the model to the verdict; and runs that are repeated."""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import msgspec
import numpy as np
import pytest

from harness.core.comparison.output_kind import Quantized, UnknownPositions
from harness.core.comparison.policy import Policy
from harness.core.comparison.random_outputs import Bernoulli, Dropped, Multinomial, Normal, Uniform
from harness.core.comparison.ties import Chosen
from harness.core.comparison.tolerance import default_tolerance
from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.core.values.value import Array, NamedValues, Tensor, tensor
from harness.core.verdicts.decide import decide
from harness.corpus.case import Case
from harness.corpus.load_case import load_case
from harness.corpus.model.protos import tensor_proto
from harness.corpus.suites.suite import open_folder
from harness.engine.answers.compare_sets import compare_sets
from harness.engine.answers.evidence import CellRule, Evidence
from harness.engine.measuring.measure import measure
from harness.engine.measuring.output_kinds import draws, output_kinds_of
from harness.engine.questions.answer import golden_of
from harness.engine.tasks.events import Event
from harness.engine.tasks.outcome import Ran
from harness.golden.golden_answer import Golden
from tests.kit import fake_target, of_folder, placement_of, records_of, run_matrix, write_model

HEAD = '<ir_version: 9, opset_import: ["" : 17]>\n'
CHOSEN = (
    HEAD
    + "g (float[4] x) => (float[4] y, int32[4] k, float[4] z) "
    + "<float[4,4] w = {-1.0, -%s, 0, 0, 0, -5, 0, 0, 0, 0, -5, 0, 0, 0, 0, -5}> "
    + "{ y = Relu(x) z = Neg(x) h = Neg(w) r = Cast<to=7>(x) n = Gather(h, r) "
    + "e = Exp(n) i = ArgMax<axis=1, keepdims=0>(e) k = Cast<to=6>(i) }"
)
"""The fake gives ``x`` as ``k``; in place of 0 the right answer has 1, whose value is written in."""

DRAWN = HEAD + "g (float[400] x) => (float[400] y, float[400] z) { y = RandomNormalLike(x) z = Neg(x) }"
COUNTING = np.arange(4, dtype=np.float32)

posix = pytest.mark.skipif(os.name != "posix", reason="the fake is for POSIX systems")


def write(path: Path, text: str, *inputs: Array) -> None:
    data_set = path.parent / "test_data_set_0"
    data_set.mkdir(parents=True)
    write_model(path, text)
    for index, array in enumerate(inputs):
        (data_set / f"input_{index}.pb").write_bytes(tensor_proto(tensor(array)).SerializeToString())


def load(tmp_path: Path, graph: str, *inputs: Array) -> Case:
    write(tmp_path / "models" / "m.onnx", '<ir_version: 9, opset_import: ["" : 20]>\n' + graph, *inputs)
    return load_case(open_folder(tmp_path / "models"), "m.onnx", {})


def answer(**outputs: Array) -> tuple[NamedValues, ...]:
    return (tuple((name, tensor(array)) for name, array in outputs.items()),)


def records(events: list[Event]) -> Mapping[str, Record]:
    return {record.model.split("/")[0]: record for record in records_of(events)}


@posix
def test_positions_of_hidden_values_that_tie(tmp_path: Path) -> None:
    write(tmp_path / "models/tie/model.onnx", CHOSEN % "1.0000002", COUNTING)
    write(tmp_path / "models/lesser/model.onnx", CHOSEN % "1.5", COUNTING)
    target = fake_target()
    found = records(run_matrix(tmp_path, of_folder(target)))
    tie, lesser = found["tie"], found["lesser"]
    assert (tie.verdict, tie.reason) == (
        Verdict.PASS,
        "output 'k': 1 positions differ where the values tie",
    )
    assert [output.details and output.details.ties for output in tie.outputs] == [None, 1, None]
    assert lesser.verdict is Verdict.MISMATCH
    assert [output.mismatched for output in lesser.outputs] == [0, 1, 0]


def test_a_top_k_that_need_not_sort_is_a_set_in_every_data_set(tmp_path: Path) -> None:
    case = load(
        tmp_path,
        "g (float[4] x) => (float[2] v, int64[2] i) <int64[1] k = {2}> { v, i = TopK<sorted=0>(x, k) }",
        np.array([1, 3, 2, 3], np.float32),
    )
    case = msgspec.structs.replace(case, data_sets=case.data_sets * 2)
    golden = answer(v=np.array([3, 3], np.float32), i=np.array([1, 3])) * 2
    other = answer(v=np.array([3, 3], np.float32), i=np.array([3, 1]))
    wrong = answer(v=np.array([3, 2], np.float32), i=np.array([1, 2]))
    compare = partial(
        compare_sets,
        golden,
        tolerance_for=lambda dtype: default_tolerance(dtype, "float32"),
        kinds=output_kinds_of(case, golden),
    )
    assert compare(other * 2).verdict is None
    assert [row.mismatched for row in compare(other + wrong).outputs] == [0, 0, 1, 1]


def test_draws_are_judged_by_their_distribution(tmp_path: Path) -> None:
    write(tmp_path / "models/drawn/model.onnx", DRAWN, np.zeros(400, np.float32))
    target = {"name": "t", "provider": "CPUExecutionProvider"}
    repeat = [{"model": "*", "runs": 2, "bit_equal": True}]
    matrix = of_folder(target, repeat=repeat)
    record = records(run_matrix(tmp_path, matrix))["drawn"]
    assert record.verdict is Verdict.PASS
    assert record.reason.startswith("output 'y' is judged by its distribution (normal), of which 400 numbers")
    assert record.outputs[0].details is not None
    assert record.repeats is not None
    assert not record.repeats.bit_equal  # which nothing that draws numbers can be


def test_a_cpu_provider_that_draws_wrong_numbers_judges_nobody(tmp_path: Path) -> None:
    case = load(
        tmp_path, "g (float[64] x) => (float[64] y) { y = Bernoulli(x) }", np.full(64, 0.5, np.float32)
    )
    placement = placement_of({"Bernoulli": 1})
    wrong = Ran(outputs=answer(y=np.zeros(64, np.float32)), placement=placement, timings_ms={})
    assert golden_of(wrong, case).disputed.startswith("the CPU EP itself is wrong: output 'y': this is no")
    right = Ran(outputs=answer(y=(np.arange(64) % 2).astype(np.float32)), placement=placement, timings_ms={})
    assert golden_of(right, case).disputed == ""


def test_numbers_that_are_wrong_in_another_run_only_are_wrong(tmp_path: Path) -> None:
    case = load(
        tmp_path, "g (float[64] x) => (float[64] y) { y = RandomUniformLike(x) }", np.zeros(64, np.float32)
    )
    right, wrong = np.random.default_rng(0).random(64, np.float32), np.full(64, 0.5, np.float32)
    placement = placement_of({"RandomUniformLike": 1})
    ran = Ran(outputs=answer(y=right), second=answer(y=wrong)[0], placement=placement, timings_ms={})
    golden = Golden(status="ok", outputs=answer(y=right))
    found = decide(measure(ran, case, Evidence(golden=golden), CellRule(), "AnyExecutionProvider"), Policy())
    assert found.verdict is Verdict.MISMATCH
    assert found.reason.startswith(
        "in another run output 'y': this is no sample of its distribution (uniform)"
    )


REPEATED: dict[str, tuple[dict[str, Any], Verdict, str]] = {
    "1_small_jitter": ({}, Verdict.PASS, ""),
    "2_small_jitter": (
        {"bit_equal": True},
        Verdict.NONDETERMINISTIC,
        "and the matrix asks for equal bits",
    ),
    "3_jitter": (
        {},
        Verdict.NONDETERMINISTIC,
        "6 different results in 2 sessions of 5 runs each, up to 2.5 from",
    ),
    "4_tires": ({"runs": 10}, Verdict.NONDETERMINISTIC, "2 different results in 2 sessions of 10 runs each"),
    "5_tires": ({"runs": 3}, Verdict.PASS, ""),
}
"""Model of the fake -> how it is repeated, and what comes of that."""


@posix
def test_repeated_runs(tmp_path: Path) -> None:
    repeat = []
    for name, (settings, _, _) in REPEATED.items():
        write_model(tmp_path / "models" / f"{name}.onnx", "rounded")
        repeat.append({"model": f"{name}.onnx", "runs": 5, "sessions": 2, **settings})
    target = fake_target()
    matrix = of_folder(target, repeat=repeat)
    found = records(run_matrix(tmp_path, matrix))
    for name, (settings, verdict, reason) in REPEATED.items():
        record = found[f"{name}.onnx"]
        assert record.verdict is verdict, record.reason
        assert reason in record.reason
        assert record.repeats is not None
        assert (record.repeats.runs, record.repeats.sessions) == (settings.get("runs", 5), 2)
        assert bool(record.again) is (record.repeats.distinct > 1)


HALVES = np.full(4, 0.5, np.float32)


@pytest.mark.parametrize(
    ("graph", "inputs", "outputs", "output_kind"),
    [
        (
            "g (float[2,2] x) => (int64[2,1] y) { y = ArgMax<axis=1>(x) }",
            [np.ones((2, 2), np.float32)],
            {"y": np.zeros((2, 1), np.int64)},
            Chosen(op="ArgMax", data=tensor(np.ones((2, 2), np.float32)), axis=1, exact=True),
        ),
        (
            "g (float[4] x) => (uint8[4] y) <float s = {0.5}> { y = QuantizeLinear(x, s) }",
            [HALVES],
            {"y": np.ones(4, np.uint8)},
            None,
        ),
        (
            (
                "g (uint8[4] x) => (uint8[4] y) <float s = {0.5}> "
                "{ d = DequantizeLinear(x, s) e = Exp(d) y = QuantizeLinear(e, s) }"
            ),
            [np.zeros(4, np.uint8)],
            {"y": np.ones(4, np.uint8)},
            Quantized(scale=np.ones(())),
        ),
        (
            (
                "g (uint8[1,2,1] x, float[2] s) => (float[1,2,1] y) "
                "{ d = DequantizeLinear(x, s) q = QuantizeLinear(d, s) y = DequantizeLinear(q, s) }"
            ),
            [np.zeros((1, 2, 1), np.uint8), np.array([0.5, 2], np.float32)],
            {"y": np.zeros((1, 2, 1), np.float32)},
            Quantized(scale=np.array([[[0.5], [2.0]]])),
        ),
        (
            "g (float[4] x) => (float[4] y) { y = RandomUniformLike<high=3.0>(x) }",
            [HALVES],
            {"y": HALVES},
            Uniform(low=0.0, high=3.0),
        ),
        (
            "g (float[4] x) => (float[4] y) { y = RandomNormal<shape=[4], mean=3.0>() }",
            [HALVES],
            {"y": HALVES},
            Normal(mean=3.0, scale=1.0),
        ),
        (
            "g (float[4] x) => (float[4] y) { y = Bernoulli(x) }",
            [HALVES],
            {"y": HALVES},
            Bernoulli(probabilities=HALVES),
        ),
        (
            "g (float[1,4] x) => (int32[1,9] y) { y = Multinomial<sample_size=9>(x) }",
            [HALVES.reshape(1, 4)],
            {"y": np.zeros((1, 9), np.int32)},
            Multinomial(logits=HALVES.reshape(1, 4)),
        ),
        (
            "g (float[4] x, float r, bool t) => (float[4] y) { y = Dropout(x, r, t) }",
            [HALVES, np.array(0.25, np.float32), np.ones((), bool)],
            {"y": HALVES},
            Dropped(data=HALVES, ratio=0.25),
        ),
        (
            "g (float[4] x, float r, bool t) => (float[4] y) { y = Dropout(x, r, t) }",
            [HALVES, np.array(0.25, np.float32), np.zeros((), bool)],
            {"y": HALVES},
            None,
        ),
        (
            "g (float[4] x, float r, bool t) => (float[4] y) { y = Dropout(x, r, t) }",
            [HALVES, np.array(0, np.float32), np.ones((), bool)],
            {"y": HALVES},
            None,
        ),
        (
            "g (float[4] x) => (float8e4m3fn[4] y) <float s={2}> {y = QuantizeLinear<output_dtype=17>(x,s)}",
            [HALVES],
            {"y": HALVES.astype(ml_dtypes.float8_e4m3fn)},
            None,
        ),
        (
            "g (float[4] x) => (int64[1] y) { h = Neg(x) y = ArgMax(h) }",
            [HALVES],
            {"y": np.zeros(1, np.int64)},
            UnknownPositions(),
        ),
    ],
)
def test_what_an_output_is(
    tmp_path: Path, graph: str, inputs: list[Array], outputs: dict[str, Array], output_kind: Any
) -> None:
    case = load(tmp_path, graph, *inputs)
    (found,) = output_kinds_of(case, answer(**outputs))
    np.testing.assert_equal(plain(found.get("y")), plain(output_kind))
    assert draws(case, (found,)) is isinstance(
        output_kind, Uniform | Normal | Bernoulli | Multinomial | Dropped
    )


def plain(output_kind: Any) -> Any:
    """A output_kind as numpy's comparison takes it."""
    if output_kind is None:
        return None
    fields = {name: getattr(output_kind, name) for name in output_kind.__struct_fields__}
    return type(output_kind).__name__, {
        name: value.array if isinstance(value, Tensor) else value for name, value in fields.items()
    }


def test_what_was_revealed_tells(tmp_path: Path) -> None:
    case = load(tmp_path, "g (float[4] x) => (int64[1] y) { h = Neg(x) y = ArgMax(h) }", HALVES)
    (found,) = output_kinds_of(case, answer(y=np.zeros(1, np.int64)), revealed=answer(h=-HALVES))
    output_kind = found["y"]
    assert isinstance(output_kind, Chosen)
    assert not output_kind.exact
    np.testing.assert_array_equal(output_kind.data.array, -HALVES)


def test_where_inputs_may_be_rounded_they_are_not_exact(tmp_path: Path) -> None:
    case = load(tmp_path, "g (float[4] x) => (int64[1] y) { y = ArgMax(x) }", HALVES)
    (found,) = output_kinds_of(case, answer(y=np.zeros(1, np.int64)), exact_inputs=False)
    assert isinstance(found["y"], Chosen)
    assert not found["y"].exact
