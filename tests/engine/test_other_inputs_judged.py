"""A provider that is right for the first inputs of a session, and wrong for others."""

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from harness.core.comparison.policy import Policy
from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.core.verdicts.decide import judged_again
from tests.kit import records_of, run_matrix

PLANTED = Path(__file__).with_name("planted_others")
ROOT = Path(__file__).parents[2]
ZOO = ("mnist-small-op12", "bert-small-fixed-op17", "trees-small-fixed-op17")

PASS, MISMATCH = Verdict.PASS, Verdict.MISMATCH
SHAPE, DTYPE, NAN = Verdict.SHAPE_MISMATCH, Verdict.DTYPE_MISMATCH, Verdict.NAN_MISMATCH

FLOATS = {
    "honest": PASS,
    "rounds": PASS,
    "stale": MISMATCH,
    "off by 1e-3": MISMATCH,
    "off by 10 %": MISMATCH,
    "off by 30 %": MISMATCH,
    "one element": NAN,
    "shorter": SHAPE,
    "wider": DTYPE,
    "last of a tie": PASS,
    "raises": Verdict.ERROR,
}
"""Fault -> verdict, of an output of floats."""

OTHERS = dict.fromkeys(FLOATS, PASS) | {
    "stale": MISMATCH,
    "one element": MISMATCH,
    "shorter": SHAPE,
    "raises": Verdict.ERROR,
}
POSITIONS = OTHERS | {"last of a tie": MISMATCH}


def weights(seed: int, *, tied: bool = False) -> str:
    found = np.random.default_rng(seed).standard_normal((16, 6))
    if tied:  # two columns whose product is the greatest one, and the same
        found[:, 0] = found[:, 1] = 3 * np.abs(found[:, 0])
    return f"<float[16, 6] w = {{{', '.join(f'{one:.6f}' for one in found.reshape(-1))}}}>"


X = "float[8, 16] x"
W, TIED = weights(3), weights(4, tied=True)
TOPK = "s = MatMul(x, w) v, i = TopK(s, k)"
BOXES, SUPPRESSED = "float[1, 12, 4] b, float[1, 1, 12] s", "y = NonMaxSuppression(b, s, k, o)"
MODELS: dict[str, tuple[str, Mapping[str, Verdict]]] = {
    "argmax": (f"({X}) => (int64[8, 1] y) {W} {{ s = MatMul(x, w) y = ArgMax<axis = -1>(s) }}", POSITIONS),
    "argmax_of_input": (f"({X}) => (int64[8, 1] y) {{ y = ArgMax<axis = -1>(x) }}", POSITIONS),
    # The values at both positions are computed and equal: either is right, and so is the answer of before.
    "argmax_of_ties": (
        f"({X}) => (int64[8, 1] y) {TIED} {{ a = Abs(x) s = MatMul(a, w) y = ArgMax<axis = -1>(s) }}",
        OTHERS | {"stale": PASS, "one element": PASS},
    ),
    "topk": (
        f"({X}) => (float[8, 3] v, int64[8, 3] i) {W[:-1]}, int64[1] k = {{3}}> {{ {TOPK} }}",
        FLOATS | {"last of a tie": MISMATCH},
    ),
    "nms": (
        f"({BOXES}) => (int64[N, 3] y) <int64 k = {{4}}, float o = {{0.5}}> {{ {SUPPRESSED} }}",
        POSITIONS,
    ),
    "nonzero": (
        f"({X}) => (int64[2, N] y) {W} {{ s = MatMul(x, w) r = Relu(s) y = NonZero(r) }}",
        POSITIONS | {"stale": SHAPE},
    ),
    "integers": (
        f"({X}) => (int64[8, 16] y) <float f = {{100}}> {{ m = Mul(x, f) y = Cast<to = 7>(m) }}",
        OTHERS,
    ),
    "flags": (f"({X}) => (bool[8, 16] y) <float f = {{0.3}}> {{ y = Greater(x, f) }}", OTHERS),
    "texts": (f"({X}) => (string[8, 16] y) {{ y = Cast<to = 8>(x) }}", OTHERS),
    "sequence": (
        f"({X}) => (seq(float[2, 16]) y) <int64 n = {{2}}> {{ e = Exp(x) y = SplitToSequence(e, n) }}",
        FLOATS,
    ),
    "values": (f"({X}) => (float[8, 6] y) {W} {{ s = MatMul(x, w) y = Tanh(s) }}", FLOATS),
    # Its shape depends on the values.
    "masked": (
        f"({X}) => (float[N] y) <float f = {{0.3}}> {{ g = Greater(x, f) y = Compress(x, g) }}",
        FLOATS,
    ),
}


def run(
    folder: Path, faults: tuple[str, ...], models: tuple[str, ...] = (), **axes: list[str]
) -> list[Record]:
    """Return the records of all faults in all models, and in some of the zoo's."""
    for name, (text, _) in MODELS.items():
        model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 17]> agraph {text}')
        onnx.checker.check_model(model)
        (folder / "models").mkdir(exist_ok=True)
        onnx.save(model, folder / "models" / f"{name}.onnx")
    targets = [
        {
            "name": fault.replace(" ", "-").replace("%", "percent"),
            "provider": "CPUExecutionProvider",
            "env": {"PYTHONPATH": f"{PLANTED}{os.pathsep}{ROOT}", "FAULT_FOR_OTHERS": fault},
        }
        for fault in faults
    ]
    where = {"suites": ["zoo"]} if models else {"folders": ["models"]}
    table = {"models": where, "target": targets, "axes": axes}
    return records_of(run_matrix(folder, table, None, {"zoo": models} if models else None))


def fault_of(record: Record) -> str:
    return record.target.replace("percent", "%").replace("-", " ").replace("1e 3", "1e-3")


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    return run(tmp_path_factory.mktemp("others"), tuple(FLOATS))


def test_every_kind_of_output_is_judged_for_other_inputs_like_for_the_first_ones(
    records: list[Record],
) -> None:
    found = {(Path(record.model).stem, fault_of(record)): record.verdict for record in records}
    assert found == {
        (name, fault): verdict for name, (_, by) in MODELS.items() for fault, verdict in by.items()
    }


def test_the_reason_says_for_which_inputs(records: list[Record]) -> None:
    for record in records:
        assert all(row.mismatched == 0 for row in record.outputs)
        if record.verdict is not PASS:
            alone = "fails only with these numbers, and not with 2 other generated inputs; "
            reason = record.reason.removeprefix(alone)
            assert reason.startswith("for other inputs in the same session"), record.reason
    stale = [record.reason for record in records if record.target == "stale" and record.verdict is MISMATCH]
    assert stale
    assert all(reason.endswith("is the output for the inputs before, bit for bit") for reason in stale)
    raised = {record.reason for record in records if record.target == "raises"}
    assert raised == {
        "for other inputs in the same session it raises RuntimeError: the shapes of before were kept"
    }


def test_bits_that_are_equal_ask_and_record_nothing(records: list[Record]) -> None:
    for record in records:
        if record.target == "honest":
            assert (record.other, record.other_check) == ((), None)


def test_a_record_is_judged_again_as_it_was_judged(records: list[Record]) -> None:
    for record in records:
        again = judged_again(record, Policy())
        assert (again.verdict, again.other) == (record.verdict, record.other)
    rounds = [record for record in records if record.target == "off-by-1e-3" and record.verdict is MISMATCH]
    assert {judged_again(record, Policy(judge_by="noise")).verdict for record in rounds} == {MISMATCH}


def test_models_of_the_zoo(tmp_path: Path) -> None:
    records = run(tmp_path, ("honest", "rounds", "stale", "off by 1e-3", "off by 10 %", "off by 30 %"), ZOO)
    assert len(records) == 6 * len(ZOO)
    for record in records:
        right = fault_of(record) in {"honest", "rounds"}
        assert (record.verdict is PASS) is right, (record.cell, record.reason)


def test_a_converted_model_fails_for_other_inputs_beyond_doubt_only(tmp_path: Path) -> None:
    """A conversion to integers takes its ranges from the first inputs."""
    precisions = ["fp16", "int8-static"]
    records = run(tmp_path, ("honest", "stale", "lost", "off by 30 %"), ZOO[:1], precision=precisions)
    verdicts = {(fault_of(record), record.axes["precision"]): record.verdict for record in records}
    wanted = {"honest": PASS, "stale": MISMATCH, "lost": MISMATCH, "off by 30 %": PASS}
    assert verdicts == {(fault, mode): verdict for fault, verdict in wanted.items() for mode in precisions}
    assert all(record.other_check is None or not record.other_check.answered for record in records)
