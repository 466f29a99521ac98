"""A faulty EP that ``onnx.reference`` agrees with: is it found?

The EP has the misunderstanding of the reference: in each check in which the reference differs from the CPU EP,
the EP gets the reference's answer. The golden is the CPU EP's, and so is the answer of the CPU EP without
optimizations. Where the CPU EP has a kernel for doubles, float64 is asked as well. An EP is excused where
its golden is disputed by that.

Exit code 1: an EP is excused although the table says where the reference is wrong.
"""

import importlib.metadata
import sys
from collections import Counter
from typing import Any

import numpy as np

from benchmarks.reference_trust.command import subjects
from benchmarks.reference_trust.measure import answer_of_cpu, answer_of_reference, compared, named, table
from benchmarks.reference_trust.subject import Subject, in_float64, model_of
from harness.core.adjudicate import adjudicate, rows_apart, rule
from harness.core.hearing import Adjudication, Witness
from harness.corpus.used_operators import used_operators
from harness.golden.trust import CPU_FLOAT64, REFERENCE, doubts_of, shipped_trust


def main() -> int:
    """Plant, and count what is excused with the table and without it."""
    trust = shipped_trust()
    wrong = {one.key for one in trust.operators if any(found.right != "reference" for found in one.findings)}
    names = frozenset(op_type for _, op_type, _ in wrong)
    counts: Counter[str] = Counter()
    excused = []
    for one in subjects(names):
        if one.key not in wrong:
            continue
        try:
            cpu, told = answer_of_cpu(one), answer_of_reference(one)
        except Exception:  # noqa: BLE001, S112 - nothing is planted where one of the two has no answer
            continue
        if compared([name for name in one.node.output if name], cpu, told).verdict is None:
            continue
        counts["planted"] += 1
        counts["excused without the table"] += is_excused(one, cpu, told, {})
        doubts = doubts_of(
            used_operators(model_of(one)),
            trust,
            onnx_version=importlib.metadata.version("onnx"),
            onnxruntime_version=importlib.metadata.version("onnxruntime"),
            float_types={one.dtype} if one.dtype else (),
        )
        if is_excused(one, cpu, told, doubts):
            counts["excused with the table"] += 1
            excused.append(f"{one.node.op_type}-{one.since} {one.dtype} {dict(one.about)}")
    for what, count in counts.items():
        print(f"{what:30} {count:6,}")
    print("\n".join(excused))
    return 1 if excused else 0


def is_excused(one: Subject, golden: list[Any], ep: list[Any], doubts: dict[str, str]) -> bool:
    """Whether a golden is disputed that an EP differs from, where the reference says what the EP says."""
    names = [name for name in one.node.output if name]
    against = compared(names, golden, ep)
    says = compared(names, ep, golden), compared(names, ep, ep)
    again = compared(names, golden, golden), compared(names, golden, ep)
    witnesses = [
        Witness(name=REFERENCE, golden=rows_apart(says[0], names), ep=rows_apart(says[1], names)),
        Witness(
            name="the CPU EP without optimizations",
            golden=rows_apart(again[0], names),
            ep=rows_apart(again[1], names),
            is_golden_again=True,
        ),
    ]
    return bool(rule(against, witnesses, _adjudications(one, names, golden, ep), doubts).disputed)


def _adjudications(
    one: Subject, names: list[str], golden: list[Any], ep: list[Any]
) -> tuple[Adjudication, ...]:
    double = in_float64(one) if one.dtype == "float32" else None
    if double is None:
        return ()
    try:
        truth = answer_of_cpu(double)
    except Exception:  # noqa: BLE001 - it has no kernel for doubles
        return ()
    with np.errstate(all="ignore"):
        return adjudicate(named(names, truth), named(names, golden), named(names, ep), table, CPU_FLOAT64)


if __name__ == "__main__":
    sys.exit(main())
