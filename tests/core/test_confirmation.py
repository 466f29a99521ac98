"""Float64 confirms that values are wrong, or clears the EP of it."""

from typing import Literal

import msgspec
import pytest

from harness.core.comparison.output_metrics import Noise, OutputMetrics
from harness.core.comparison.policy import Policy
from harness.core.comparison.tolerance import Tolerance
from harness.core.records.facts import Facts
from harness.core.records.reference_answer import Adjudication, Reference, ReferenceCheck, ReferenceDistance
from harness.core.records.verdict import Verdict
from harness.core.verdicts.decide import decide
from tests.kit import placement_of

ON_EP = placement_of({"Exp": 1})
FLOAT64 = "float64 on the CPU EP"


def row(rms: float, dtype: str = "float32", name: str = "y") -> OutputMetrics:
    """Return an output that is off by a multiple of the model's noise."""
    return OutputMetrics(
        name=name,
        dtype=dtype,
        shape=(100,),
        elements=100,
        mismatched=3,
        max_abs=1e-5 * rms,
        frontier=((0.0, 1e-5 * rms), (1.0, 0.0)),
        delivered_bits=16.0,
        noise=Noise(precision="float32", rms=rms, max=2 * rms) if dtype == "float32" else None,
    )


def distance(rms: float, dtype: str = "float32", name: str = "y") -> ReferenceDistance:
    of = row(rms, dtype, name)
    kept = set(ReferenceDistance.__struct_fields__) - {"shape"}
    return ReferenceDistance(**{field: getattr(of, field) for field in kept})


def facts(
    golden: float | None,
    ep: float,
    *,
    nearer: Literal["golden", "ep", "equal"] = "equal",
    dtype: str = "float32",
    doubt: str = "",
) -> Facts:
    """Return a cell that fails its golden, with the distances of both from float64; None without that."""
    references: tuple[Reference, ...] = ()
    adjudication: tuple[Adjudication, ...] = ()
    if golden is not None:
        truth = Reference(name=FLOAT64, in_float64=True, doubt=doubt)
        sides = (distance(golden, dtype),), (distance(ep, dtype),)
        references = (msgspec.structs.replace(truth, golden=sides[0], ep=sides[1]),)
        adjudication = (
            Adjudication(
                output="y",
                by=FLOAT64,
                golden=1e-6,
                ep=1e-5 if nearer == "golden" else 1.2e-6,
                nearer=nearer,
                doubt=doubt,
            ),
        )
    return Facts(
        provider="AnyExecutionProvider",
        placement=ON_EP,
        golden="cpu",
        outputs=(row(90.0, dtype),),
        reference_check=ReferenceCheck(references=references, adjudication=adjudication),
    )


def test_a_failure_stands_when_the_golden_is_near_and_the_ep_far_off() -> None:
    found = decide(facts(1.0, 91.0, nearer="golden"), Policy())
    assert (found.verdict, found.unconfirmed) == (Verdict.MISMATCH, "")


def test_float64_clears_an_ep_whose_golden_was_the_worse() -> None:
    found = decide(facts(89.0, 1.0, nearer="ep"), Policy())
    assert (found.verdict, found.unconfirmed) == (Verdict.PASS, "")
    assert found.reason == (f"right by {FLOAT64}: the golden is off by 0.00089 at most, the EP by 1e-05")


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        (facts(None, 90.0), "there is no answer in float64"),
        (
            msgspec.structs.replace(facts(None, 90.0), reference_check=None),
            "there is no answer in float64: the references were not asked",
        ),
        (
            facts(1.0, 91.0, nearer="golden", doubt="it computes Pow wrongly"),
            f"{FLOAT64} is not believed alone: it computes Pow wrongly",
        ),
    ],
)
def test_what_float64_cannot_confirm_is_marked_and_stands(cell: Facts, why: str) -> None:
    found = decide(cell, Policy())
    assert (found.verdict, found.unconfirmed) == (Verdict.MISMATCH, why)


def test_a_golden_that_is_as_far_off_accuses_nobody() -> None:
    found = decide(facts(40.0, 60.0), Policy())
    assert (found.verdict, found.unconfirmed) == (Verdict.REFERENCE_DISPUTED, "")
    assert found.reason.startswith(
        f"golden and EP are both far from {FLOAT64}: the golden is off by 0.0004 at most"
    )


def test_a_doubted_float64_clears_nobody() -> None:
    found = decide(facts(89.0, 1.0, doubt="it computes Pow wrongly"), Policy())
    assert found.verdict is not Verdict.PASS


def test_what_has_one_right_answer_needs_no_confirmation() -> None:
    found = decide(facts(None, 90.0, dtype="int64"), Policy())
    assert (found.verdict, found.unconfirmed) == (Verdict.MISMATCH, "")


def test_a_golden_of_a_model_in_float64_needs_none_either() -> None:
    cell = facts(None, 90.0, dtype="float64")
    assert decide(cell, Policy()).unconfirmed == ""
    narrow = ReferenceCheck(no_float64="it takes too much memory")  # float64 made of float32
    unknown = msgspec.structs.replace(cell, reference_check=narrow)
    assert decide(unknown, Policy()).unconfirmed == "there is no answer in float64: it takes too much memory"


def test_every_failing_output_has_to_be_near_float64() -> None:
    cell = facts(89.0, 1.0, nearer="ep")
    other = msgspec.structs.replace(cell, outputs=(*cell.outputs, row(90.0, name="z")))
    assert decide(other, Policy()).verdict is not Verdict.PASS


def test_under_a_table_float64_is_held_against_the_table() -> None:
    by_table = Policy(judge_by="table", fixed=Tolerance(rtol=1e-4, atol=0.0))
    assert decide(facts(89.0, 1.0, nearer="ep"), by_table).verdict is Verdict.PASS
    assert decide(facts(9.0, 99.0, nearer="golden"), by_table).verdict is Verdict.MISMATCH
