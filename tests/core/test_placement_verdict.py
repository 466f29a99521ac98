"""Where the nodes ran decides between pass, pass in part and fallback."""

import msgspec
import pytest

from harness.core.records.verdict import Verdict
from harness.core.verdicts.placement_verdict import INCOMPLETE, TOO_LITTLE, verdict_by_placement
from tests.kit import placement_of

PARTLY = placement_of({"Add": 2}, {"Conv": 406})


@pytest.mark.parametrize(
    ("share", "of", "verdict", "words"),
    [
        (
            0.0001,
            "work",
            Verdict.FALLBACK,
            "too little to be tested: less than 1% of the work, 2 of 408",
        ),
        (0.09, "work", Verdict.FALLBACK, "too little to be tested: 9% of the work, 2 of 408 nodes on the EP"),
        (0.0049, "nodes", Verdict.FALLBACK, "too little to be tested: 2 of 408 nodes on the EP"),
        (0.1, "work", Verdict.PASS_PARTIAL, "10% of the work, 2 of 408 nodes on the EP"),
        (None, "", Verdict.PASS_PARTIAL, "left to the CPU: Conv x406"),
    ],
)
def test_less_than_a_tenth_of_the_compute_is_not_tested(
    share: float | None, of: str, verdict: Verdict, words: str
) -> None:
    placed = msgspec.structs.replace(PARTLY, ep_share=share, share_of=of)
    found = verdict_by_placement(placed, converted=False)
    assert (found.verdict, found.cause) == (verdict, TOO_LITTLE if verdict is Verdict.FALLBACK else "")
    assert found.reason.startswith(words)
    assert found.reason.endswith("left to the CPU: Conv x406")


def test_shapes_on_the_cpu_are_no_compute() -> None:
    placed = msgspec.structs.replace(PARTLY, shape_ops=("Conv",))
    assert verdict_by_placement(placed, converted=False).verdict is Verdict.PASS


def test_a_record_that_may_lack_nodes_of_the_cpu_proves_no_pass() -> None:
    whole = msgspec.structs.replace(placement_of({"Add": 2}, {}), source="incomplete")
    found = verdict_by_placement(whole, converted=False)
    assert (found.verdict, found.cause) == (Verdict.PASS_PARTIAL, INCOMPLETE)
    assert "float16" in found.reason
    partly = msgspec.structs.replace(PARTLY, source="incomplete")
    assert verdict_by_placement(partly, converted=False).cause == ""
