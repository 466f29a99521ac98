"""A record judged again by another tolerance is what the run would have been, witnesses included."""

import functools
import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.core.metrics import ATOL_GRID
from harness.core.record import SCHEMA, Placement, Record, decode_record, encode_record
from harness.core.rejudge import UNHEARD, USUAL, Allowed, needed_rtol, rejudged
from harness.core.tolerance import Tolerance
from harness.core.value import tensor
from harness.core.verdict import Verdict
from harness.corpus.case import Case, DataSet
from harness.corpus.facts import ModelFacts
from harness.corpus.port import ValueType
from harness.engine.evidence import Evidence
from harness.engine.judge import Judgement, judge, needs_witnesses
from harness.engine.outcome import NamedValues, Ran
from harness.engine.question import EVALUATED, FLOAT64, UNOPTIMIZED
from harness.engine.rule import Rule
from harness.golden.golden import Golden

PLACEMENT = Placement(ep_nodes=1, cpu_nodes=0, ep_ops={"Erf": 1}, cpu_ops={}, partitions=1, source="profile")
CASE = Case(
    model_path=Path("m.onnx"),
    ports=(),
    outputs=("y", "z"),
    output_types=(ValueType(kind="tensor"),) * 2,
    data_sets=(DataSet(name="given", inputs=()),),
    rtol=0.0,
    atol=0.0,
    digest="d",
    facts=ModelFacts(
        ir_version=9, opsets={}, nodes=0, op_types={}, float_types=frozenset(), shape_only_ops=frozenset()
    ),
)
TRUTH = np.array([[1.0, -3e-3, 7e-6, 50.0], [0.5, 2.0, -1e-4, 1e-7]])
FIXED = [one for one in USUAL if isinstance(one, Tolerance)]


def values(error: float, seed: int, dtype: type = np.float32) -> NamedValues:
    """Two outputs, each element off by up to so much of itself."""
    signs = np.random.default_rng(seed).uniform(-1, 1, TRUTH.shape)
    with np.errstate(all="ignore"):
        rows: list[Any] = list((TRUTH * (1 + error * signs)).astype(dtype))
    return tuple((name, tensor(row)) for name, row in zip("yz", rows, strict=True))


def under(tolerance: Tolerance, outcome: Ran, golden: Golden, witnesses: dict[str, Golden]) -> Judgement:
    """What a run does: witnesses are heard where they are needed."""
    rule = Rule(tolerance_for=lambda _: tolerance)
    evidence = Evidence(golden=golden, reference=golden)
    judgement = judge(outcome, CASE, evidence, rule)
    if not needs_witnesses(judgement):
        return judgement
    return judge(outcome, CASE, msgspec.structs.replace(evidence, witnesses=witnesses), rule)


def record(judgement: Judgement) -> Record:
    told = ("verdict", "reason", "placement", "outputs", "again", "golden", "adjudication", "hearing")
    fields: dict[str, Any] = {name: getattr(judgement, name) for name in told}
    made = Record(
        schema=SCHEMA,
        cell="s/m[t]",
        suite="s",
        model="m",
        target="t",
        provider="P",
        family=judgement.verdict.family,
        expected=True,
        **fields,
    )
    return decode_record(encode_record(made))


def near_a_limit(found: Record, tolerance: Tolerance) -> bool:
    """Whether an element lies so close to what is allowed that the order of roundings decides."""
    witnesses = found.hearing.witnesses if found.hearing else ()
    rows = (*found.outputs, *(row for one in witnesses for row in (*one.golden, *one.ep)))
    needed = (needed_rtol(row, tolerance.atol) for row in rows)
    return any(math.isclose(rtol, tolerance.rtol, rel_tol=1e-9) for rtol in needed if rtol)


ERRORS = st.sampled_from([0.0, 1e-7, 1e-6, 2e-5, 1e-4, 2e-3, 0.3, 0.9, math.nan])
TOLERANCES = st.builds(
    Tolerance, rtol=st.sampled_from([0.0, 1e-6, 1e-4, 1e-2]), atol=st.sampled_from(ATOL_GRID)
) | st.sampled_from(FIXED)


@given(
    errors=st.lists(ERRORS, min_size=4, max_size=4),
    absent=st.sets(st.sampled_from([EVALUATED, UNOPTIMIZED, FLOAT64])),
    before=TOLERANCES,
    after=TOLERANCES,
    providers_changed=st.sampled_from(["", "", "CPU only"]),
)
def test_it_is_what_a_run_would_have_said(
    errors: list[float], absent: set[str], before: Tolerance, after: Tolerance, providers_changed: str
) -> None:
    golden, result, evaluated, unoptimized = (values(error, seed) for seed, error in enumerate(errors))
    witnesses = {
        EVALUATED: evaluated,
        UNOPTIMIZED: unoptimized,
        FLOAT64: values(0.0, 0, np.float64),
    }
    answers = {
        kind: Golden(status="refused") if kind in absent else Golden(status="ok", outputs=(outputs,))
        for kind, outputs in witnesses.items()
    }
    outcome = Ran(outputs=(result,), placement=PLACEMENT, timings_ms={}, providers_changed=providers_changed)
    run = functools.partial(
        under, outcome=outcome, golden=Golden(status="ok", outputs=(golden,)), witnesses=answers
    )
    was, wanted = record(run(before)), record(run(after))
    assume(not near_a_limit(wanted, after) and not near_a_limit(was, before))
    judged = rejudged(was, Allowed(after))
    if was.hearing is None and judged.verdict is Verdict.MISMATCH:
        assert judged.reason.endswith(UNHEARD)
        assert after not in FIXED  # what these fail is heard in every run
        return
    assert judged.verdict is wanted.verdict
    assert judged.adjudication == wanted.adjudication
    again = rejudged(judged, Allowed(before))
    assert again.verdict is was.verdict
