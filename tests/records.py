"""Records that tests of several floors make, with no more in them than a test is about."""

import glob
from collections.abc import Sequence
from typing import Any

import msgspec

from harness.core.decide import decide
from harness.core.ended import Ended, How
from harness.core.facts import Placement
from harness.core.policy import Policy
from harness.core.record import SCHEMA, Record
from harness.core.verdict import Phase, Verdict
from harness.plan.expectation import Expectation, is_expected
from harness.plan.matrix import Matrix, Models
from harness.plan.selector import Selector
from harness.plan.target import Target


def bare_record(
    model: str,
    verdict: Verdict = Verdict.PASS,
    *,
    suite: str = "s",
    target: str = "ep",
    provider: str = "AcmeExecutionProvider",
    **fields: Any,
) -> Record:
    """Return the record of a cell; its family and id are those of the other fields.

    Args:
        model: Name of the model in the suite.
        verdict: Its verdict.
        suite: Its suite.
        target: Its target.
        provider: The target's provider.
        fields: Other fields of ``Record``.
    """
    usual: dict[str, Any] = {"cell": f"{suite}/{model}[{target}]", "expected": True}
    return Record(
        schema=SCHEMA,
        suite=suite,
        model=model,
        target=target,
        provider=provider,
        verdict=verdict,
        family=verdict.family,
        **(usual | fields),
    )


def with_facts(record: Record) -> Record:
    """Return a record with facts that give its verdict, so that a reader finds the same."""
    verdict = record.verdict
    if verdict in _ENDED:
        how, phase = _ENDED[verdict]
        ended = Ended(how=how, message=record.reason)
        return msgspec.structs.replace(record, ended=ended, phase=phase, golden="")
    exact, far = ((0.0, 0.0),), ((0.0, 1e6), (1e3, 1e3))
    rows = tuple(
        msgspec.structs.replace(row, frontier=far if verdict is Verdict.MISMATCH else exact)
        for row in record.outputs
    )
    none = Placement(
        ep_nodes=0, cpu_nodes=1, ep_ops={}, cpu_ops={"Abs": 1}, partitions=0, source="assignment"
    )
    placement = none if verdict is Verdict.FALLBACK else record.placement
    made = msgspec.structs.replace(record, golden="cpu", outputs=rows, placement=placement)
    assert decide(made, Policy()).verdict is verdict
    return made


def matrix_of(records: Sequence[Record], path: str = "m.toml", required: Sequence[str] = ()) -> Matrix:
    """Return a matrix by which each record is as expected, or not, as it tells."""
    targets = {record.target: record.provider for record in records}
    entries = (
        (one, one.verdict if one.expected else Verdict.CRASH)
        for one in records
        if one.expected is not is_expected(None, one.verdict)
    )
    return Matrix(
        path=path,
        schema=1,
        models=Models(suites=tuple(dict.fromkeys(record.suite for record in records))),
        targets=tuple(
            Target(name=name, provider=(provider,), required=name in required)
            for name, provider in targets.items()
        ),
        expect=tuple(
            Expectation(
                selector=Selector(model=(glob.escape(f"{one.suite}/{one.model}"),), target=(one.target,)),
                verdicts=(verdict,),
                reason="known",
            )
            for one, verdict in entries
        ),
    )


_ENDED: dict[Verdict, tuple[How, Phase]] = {
    Verdict.CRASH: ("died", Phase.CREATE),
    Verdict.HANG: ("hung", Phase.RUN),
    Verdict.ERROR: ("raised", Phase.RUN),
    Verdict.UNSUPPORTED: ("unsupported", Phase.CREATE),
    Verdict.UNAVAILABLE: ("unavailable", Phase.REGISTER),
    Verdict.INVALID_MODEL: ("broken_model", Phase.CREATE),
}
