"""An answer of which more than half is lost passes under no tolerance."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from harness.core.comparison.noise_limits import NoiseLimits
from harness.core.comparison.output_kind import OutputKind, Quantized
from harness.core.comparison.output_metrics import relative_error
from harness.core.comparison.policy import Policy
from harness.core.comparison.tolerance import Tolerance, default_tolerance
from harness.core.noise.noise import NoiseRule
from harness.core.records.verdict import Verdict
from harness.core.values.value import tensor
from harness.core.verdicts.compare import OutputComparison, compare_all, compare_outputs

SMALL = np.full(1000, 5e-6, np.float32)
SMALL[::2] = -4e-6


def table(dtype: str) -> Tolerance:
    return default_tolerance(dtype, "float32")


def judged(
    actual: object,
    golden: object = SMALL,
    output_kind: OutputKind | None = None,
    noise: NoiseRule | None = None,
    policy: Policy | None = None,
) -> OutputComparison:
    one, other = (tensor(np.asarray(values, np.float32)) for values in (golden, actual))
    return compare_outputs("y", one, other, table, output_kind, noise, policy)


FAULTS: dict[str, Callable[[], object]] = {
    "zeros": lambda: np.zeros_like(SMALL),
    "the other sign": lambda: -SMALL,
    "shifted": lambda: np.roll(SMALL, 1),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_values_beneath_the_tolerance_excuse_nothing(fault: str) -> None:
    found = judged(FAULTS[fault]())
    assert found.verdict is Verdict.MISMATCH
    assert "the tolerance is wider than the values" in found.message
    assert found.outputs[0].mismatched == 1000


@pytest.mark.parametrize(
    ("golden", "actual"),
    [
        (SMALL, SMALL * np.float32(1.4)),  # wrong, but an answer
        ([1.0, 1e-6], [1.0, 0.0]),  # small beside the others
        ([0.0, 0.0], [1e-7, 0.0]),  # nothing to be relative to
        ([np.nan, np.inf], [np.nan, np.inf]),
        ([], []),
    ],
)
def test_what_is_left_is_a_matter_of_the_tolerance(golden: object, actual: object) -> None:
    assert judged(actual, golden).verdict is None


def noise(size: float) -> NoiseRule:
    return NoiseRule(precision="float32", spreads={"y": np.full(1000, size)})


WIDE = NoiseLimits(rms=1e9, max=1e9)


@pytest.mark.parametrize(
    "policy",
    [Policy(), Policy(judge_by="table"), Policy(judge_by="noise"), Policy(judge_by="noise", limits=WIDE)],
)
def test_a_model_whose_rounding_takes_all_cannot_judge(policy: Policy) -> None:
    found = judged(np.zeros_like(SMALL), noise=noise(4e-6), policy=policy)
    assert found.verdict is Verdict.ILL_CONDITIONED
    assert found.message.startswith(
        "output 'y' cannot be judged: rounding at float32 moves it by 0.88 of its size"
    )
    wide = Policy(judge_by="noise", limits=WIDE)
    assert judged(np.zeros_like(SMALL), noise=noise(1e-9), policy=wide).verdict is Verdict.MISMATCH


def test_what_is_wrong_for_certain_goes_first() -> None:
    undecided, wrong = tensor(SMALL), tensor(np.ones(3, np.float32))
    golden = [("y", undecided), ("z", wrong)]
    actual = [("y", tensor(np.zeros_like(SMALL))), ("z", tensor(np.zeros(3, np.float32)))]
    found = compare_all(golden, actual, table, noise=noise(4e-6))
    assert found.verdict is Verdict.MISMATCH
    assert [row.mismatched for row in found.outputs] == [0, 3]


def test_a_step_that_is_granted_is_right_however_small_the_values() -> None:
    quantized = Quantized(scale=np.array(1e-5))
    for steps, verdict in ((1.0, None), (0.0, Verdict.MISMATCH)):
        found = judged(np.zeros_like(SMALL), output_kind=quantized, policy=Policy(steps=steps))
        assert found.verdict is verdict


def test_an_error_beyond_every_number_is_infinite() -> None:
    assert relative_error(-1043.0) == math.inf
    assert relative_error(-1000.0) == 2.0**1000
